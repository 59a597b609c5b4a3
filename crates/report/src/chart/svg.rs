//! Shapes as SVG 1.1.

use super::page::{Anchor, Draw, Drawing, Paint, Stroke};
use super::theme::Rgb;
use std::fmt::Write;

pub(super) fn text(drawing: &Drawing) -> String {
    let (width, height) = (number(drawing.width), number(drawing.height));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"DejaVu Sans,Verdana,sans-serif\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n",
        hex(drawing.paper)
    );
    for shape in &drawing.shapes {
        // Writing into a string cannot fail.
        let _ = match shape {
            Draw::Path { points, closed, paint } => path(&mut out, points, *closed, paint),
            Draw::Dot { at, radius, fill } => writeln!(
                out,
                "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"/>",
                number(at.0),
                number(at.1),
                number(*radius),
                hex(*fill)
            ),
            Draw::Text { at, anchor, size, fill, words } => writeln!(
                out,
                "<text x=\"{}\" y=\"{}\"{} font-size=\"{}\" fill=\"{}\">{}</text>",
                number(at.0),
                number(at.1),
                match anchor {
                    Anchor::Start => "",
                    Anchor::Middle => " text-anchor=\"middle\"",
                    Anchor::End => " text-anchor=\"end\"",
                },
                number(*size),
                hex(*fill),
                escaped(words)
            ),
        };
    }
    out.push_str("</svg>\n");
    out
}

fn path(out: &mut String, points: &[(f64, f64)], closed: bool, paint: &Paint) -> std::fmt::Result {
    out.push_str("<path d=\"");
    for (i, (x, y)) in points.iter().enumerate() {
        let letter = ["L", "M"][usize::from(i == 0)];
        write!(out, "{letter}{} {}", number(*x), number(*y))?;
    }
    out.push_str(if closed { "Z\"" } else { "\"" });
    match paint {
        Paint::Fill(colour, opacity) => {
            write!(out, " fill=\"{}\"", hex(*colour))?;
            if *opacity < 1.0 {
                write!(out, " fill-opacity=\"{opacity}\"")?;
            }
        }
        Paint::Stroke(Stroke { colour, width, dash }) => {
            write!(out, " fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\"", hex(*colour))?;
            if *dash {
                write!(out, " stroke-dasharray=\"{} {}\"", Stroke::DASH.0, Stroke::DASH.1)?;
            }
        }
    }
    out.push_str("/>\n");
    Ok(())
}

/// Formats a coordinate to a tenth of a px.
fn number(x: f64) -> String {
    let text = format!("{:.1}", x + 0.0);
    text.strip_suffix(".0").unwrap_or(&text).to_string()
}

fn hex([r, g, b]: Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Escapes text for XML 1.0, which has no control characters.
fn escaped(words: &str) -> String {
    let mut out = String::new();
    for c in words.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
