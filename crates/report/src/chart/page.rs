//! The sheet: shapes with their places and colours, and sizes of text.

use super::font::wrap;
use super::theme::{Palette, Rgb};

/// A mail shows so many.
pub(super) const WIDTH: f64 = 600.0;
pub(super) const MARGIN: f64 = 14.0;
pub(super) const GAP: f64 = 18.0;
/// Sizes of text.
pub(super) const TITLE: f64 = 15.0;
pub(super) const HEADING: f64 = 13.0;
pub(super) const TEXT: f64 = 12.0;
pub(super) const SMALL: f64 = 11.0;
/// Distance from one line of text to the next, of its size.
pub(super) const LEADING: f64 = 1.35;

/// All that is to be drawn, in this order.
pub(super) struct Drawing {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) paper: Rgb,
    pub(super) shapes: Vec<Draw>,
}

pub(super) enum Draw {
    Path { points: Vec<(f64, f64)>, closed: bool, paint: Paint },
    Dot { at: (f64, f64), radius: f64, fill: Rgb },
    Text { at: (f64, f64), anchor: Anchor, size: f64, fill: Rgb, words: String },
}

pub(super) enum Paint {
    /// Colour and opacity.
    Fill(Rgb, f64),
    Stroke(Stroke),
}

pub(super) struct Stroke {
    pub(super) colour: Rgb,
    pub(super) width: f64,
    pub(super) dash: bool,
}

impl Stroke {
    /// Drawn and left out in turn.
    pub(super) const DASH: (f64, f64) = (5.0, 3.0);
}

#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The shapes drawn so far, with the colours in use.
pub(super) struct Page {
    pub(super) palette: &'static Palette,
    pub(super) shapes: Vec<Draw>,
}

impl Page {
    pub(super) fn text(
        &mut self,
        at: (f64, f64),
        anchor: Anchor,
        size: f64,
        fill: Rgb,
        words: &str,
    ) {
        let words = words.to_string();
        self.shapes.push(Draw::Text { at, anchor, size, fill, words });
    }

    pub(super) fn line(&mut self, points: &[(f64, f64)], colour: Rgb, width: f64) {
        let stroke = Stroke { colour, width, dash: false };
        self.path(points.to_vec(), stroke);
    }

    pub(super) fn path(&mut self, points: Vec<(f64, f64)>, stroke: Stroke) {
        if points.len() > 1 {
            self.shapes.push(Draw::Path { points, closed: false, paint: Paint::Stroke(stroke) });
        }
    }

    pub(super) fn fill(&mut self, points: Vec<(f64, f64)>, colour: Rgb, opacity: f64) {
        if points.len() > 2 {
            self.shapes.push(Draw::Path {
                points,
                closed: true,
                paint: Paint::Fill(colour, opacity),
            });
        }
    }

    pub(super) fn block(&mut self, (x, y): (f64, f64), (w, h): (f64, f64), colour: Rgb) {
        self.fill(vec![(x, y), (x + w, y), (x + w, y + h), (x, y + h)], colour, 1.0);
    }

    /// Lines of text from `top` on; where they end.
    pub(super) fn lines(
        &mut self,
        words: &str,
        (left, top): (f64, f64),
        size: f64,
        fill: Rgb,
        most: usize,
    ) -> f64 {
        self.lines_within(words, (left, top), WIDTH - MARGIN - left, size, fill, most)
    }

    pub(super) fn lines_within(
        &mut self,
        words: &str,
        (left, top): (f64, f64),
        room: f64,
        size: f64,
        fill: Rgb,
        most: usize,
    ) -> f64 {
        let mut y = top;
        for line in words.lines().flat_map(|paragraph| wrap(paragraph, size, room, most)) {
            self.text((left, y + size), Anchor::Start, size, fill, &line);
            y += size * LEADING;
        }
        y
    }
}

/// Mixes two colours: `share` of `a`, the rest of `b`.
pub(super) fn mix(a: Rgb, b: Rgb, share: f64) -> Rgb {
    let one = |i: usize| (f64::from(a[i]) * share + f64::from(b[i]) * (1.0 - share)).round() as u8;
    [one(0), one(1), one(2)]
}
