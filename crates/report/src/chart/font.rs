//! The font of pictures: DejaVu Sans, of which Latin and a few signs are in the binary.
//!
//! SVG names fonts and does not hold them, so that a text there may be narrower than this says, by the viewer's
//! font; DejaVu Sans and Verdana are the widest that are common.

use std::sync::LazyLock;
use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// Made by `pyftsubset DejaVuSans.ttf`, see LICENSE beside it.
static FILE: &[u8] = include_bytes!("font/dejavu-sans-subset.ttf");
/// `None` cannot be: a test reads the file.
static FACE: LazyLock<Option<Face<'static>>> = LazyLock::new(|| Face::parse(FILE, 0).ok());

/// The width of `text` at `size`, in px.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let Some(face) = FACE.as_ref() else { return 0.0 };
    let units: f64 = text.chars().map(|c| advance(face, glyph(face, c))).sum();
    units * size / f64::from(face.units_per_em())
}

/// `text` with the outlines of its characters told to `pen`; (x, y) is where its first one stands, y counts downwards.
pub(super) fn outline(text: &str, (x, y): (f64, f64), size: f64, pen: &mut dyn Pen) {
    let Some(face) = FACE.as_ref() else { return };
    let scale = size / f64::from(face.units_per_em());
    let mut at = x;
    for c in text.chars() {
        let id = glyph(face, c);
        face.outline_glyph(id, &mut Placed { pen, at: (at, y), scale });
        at += advance(face, id) * scale;
    }
}

/// The glyph of a character, the font's box for one that it lacks.
fn glyph(face: &Face<'_>, c: char) -> GlyphId {
    face.glyph_index(c).unwrap_or(GlyphId(0))
}

fn advance(face: &Face<'_>, id: GlyphId) -> f64 {
    face.glyph_hor_advance(id).map_or(0.0, f64::from)
}

/// Draws outlines, in px.
pub(super) trait Pen {
    fn from(&mut self, to: (f64, f64));
    fn line(&mut self, to: (f64, f64));
    fn curve(&mut self, by: (f64, f64), to: (f64, f64));
    fn close(&mut self);
}

struct Placed<'a> {
    pen: &'a mut dyn Pen,
    at: (f64, f64),
    scale: f64,
}

impl Placed<'_> {
    fn place(&self, x: f32, y: f32) -> (f64, f64) {
        (self.at.0 + f64::from(x) * self.scale, self.at.1 - f64::from(y) * self.scale)
    }
}

impl OutlineBuilder for Placed<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        self.pen.from(self.place(x, y));
    }
    fn line_to(&mut self, x: f32, y: f32) {
        self.pen.line(self.place(x, y));
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.pen.curve(self.place(x1, y1), self.place(x, y));
    }
    /// Draws a straight line: TrueType has no cubic curves.
    fn curve_to(&mut self, _: f32, _: f32, _: f32, _: f32, x: f32, y: f32) {
        self.pen.line(self.place(x, y));
    }
    fn close(&mut self) {
        self.pen.close();
    }
}

/// `text` cut where it would be wider than `room`.
pub(super) fn cut(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_string();
    }
    let mut kept = text.to_string();
    while !kept.is_empty() && width(&kept, size) + width("…", size) > room {
        kept.pop();
    }
    kept + "…"
}

/// `text` in lines of at most `room`, broken between words; at most `most` of them.
pub(super) fn wrap(text: &str, size: f64, room: f64, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), size) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    if lines.len() > most {
        lines.truncate(most);
        lines.last_mut().into_iter().for_each(|l| l.push_str(" …"));
    }
    lines.iter().map(|line| cut(line, size, room)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_is_there_with_all_that_is_printed() {
        let face = FACE.as_ref().expect("the font can be read");
        for c in (' '..='~').chain("·–—…×²³µ°±≤≥≈→−é üß".chars()) {
            assert!(face.glyph_index(c).is_some(), "{c}");
        }
        assert!(face.glyph_index('語').is_none() && width("語", 12.0) > 5.0, "a box");
    }

    #[test]
    fn texts_are_as_wide_as_they_are_and_cut_where_there_is_no_room() {
        assert!((width("util", 12.0) - 18.98).abs() < 0.01, "{}", width("util", 12.0));
        assert_eq!(cut("short", 12.0, 100.0), "short");
        let cut = cut("a policy with a long name", 12.0, 60.0);
        assert!(cut.ends_with('…') && width(&cut, 12.0) <= 60.0, "{cut}");
        assert_eq!(wrap("one two three", 12.0, 60.0, 9), ["one two", "three"]);
        assert_eq!(wrap("one two three four five", 12.0, 60.0, 2).len(), 2);
    }
}
