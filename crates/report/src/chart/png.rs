//! Shapes as pixels. tiny-skia fills and strokes; scalar code only, so that each machine gives the same bytes.

use super::font::{self, Pen};
use super::page::{Anchor, Draw, Drawing, Paint, Stroke};
use super::theme::Rgb;
use tiny_skia as skia;

/// Pixels to each px, so that it is sharp on a fine screen, and where it is shown at half of its size.
const SCALE: f32 = 2.0;

pub(super) fn bytes(drawing: &Drawing) -> Vec<u8> {
    let size = |px: f64| (px * f64::from(SCALE)).ceil().clamp(1.0, 32_000.0) as u32;
    let Some(mut map) = skia::Pixmap::new(size(drawing.width), size(drawing.height)) else {
        return Vec::new();
    };
    let [r, g, b] = drawing.paper;
    map.fill(skia::Color::from_rgba8(r, g, b, 255));
    for shape in &drawing.shapes {
        draw(&mut map, shape);
    }
    // Writing into memory cannot fail.
    map.encode_png().unwrap_or_default()
}

fn draw(map: &mut skia::Pixmap, shape: &Draw) {
    match shape {
        Draw::Path { points, closed, paint } => {
            let mut path = Path(skia::PathBuilder::new());
            for (i, point) in points.iter().enumerate() {
                if i == 0 { path.from(*point) } else { path.line(*point) }
            }
            if *closed {
                path.close();
            }
            match paint {
                Paint::Fill(colour, opacity) => path.fill(map, *colour, *opacity),
                Paint::Stroke(stroke) => path.stroke(map, stroke),
            }
        }
        Draw::Dot { at, radius, fill } => {
            let mut path = Path(skia::PathBuilder::new());
            path.0.push_circle(at.0 as f32, at.1 as f32, *radius as f32);
            path.fill(map, *fill, 1.0);
        }
        Draw::Text { at, anchor, size, fill, words } => {
            let width = font::width(words, *size);
            let left = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => width / 2.0,
                Anchor::End => width,
            };
            let mut path = Path(skia::PathBuilder::new());
            font::outline(words, (at.0 - left, at.1), *size, &mut path);
            path.fill(map, *fill, 1.0);
        }
    }
}

struct Path(skia::PathBuilder);

impl Pen for Path {
    fn from(&mut self, to: (f64, f64)) {
        self.0.move_to(to.0 as f32, to.1 as f32);
    }
    fn line(&mut self, to: (f64, f64)) {
        self.0.line_to(to.0 as f32, to.1 as f32);
    }
    fn curve(&mut self, by: (f64, f64), to: (f64, f64)) {
        self.0.quad_to(by.0 as f32, by.1 as f32, to.0 as f32, to.1 as f32);
    }
    fn close(&mut self) {
        self.0.close();
    }
}

impl Path {
    fn fill(self, map: &mut skia::Pixmap, colour: Rgb, opacity: f64) {
        if let Some(path) = self.0.finish() {
            map.fill_path(&path, &paint(colour, opacity), skia::FillRule::Winding, place(), None);
        }
    }

    fn stroke(self, map: &mut skia::Pixmap, stroke: &Stroke) {
        let (on, off) = Stroke::DASH;
        let dash = stroke.dash.then(|| skia::StrokeDash::new(vec![on as f32, off as f32], 0.0));
        let how = skia::Stroke {
            width: stroke.width as f32,
            dash: dash.flatten(),
            ..skia::Stroke::default()
        };
        if let Some(path) = self.0.finish() {
            map.stroke_path(&path, &paint(stroke.colour, 1.0), &how, place(), None);
        }
    }
}

fn paint([r, g, b]: Rgb, opacity: f64) -> skia::Paint<'static> {
    let mut paint = skia::Paint { anti_alias: true, ..skia::Paint::default() };
    paint.set_color_rgba8(r, g, b, (opacity * 255.0).round() as u8);
    paint
}

fn place() -> skia::Transform {
    skia::Transform::from_scale(SCALE, SCALE)
}
