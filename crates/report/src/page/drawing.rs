//! A plot as a drawing in a page of HTML.

use super::html::class;
use super::plot::{Plot, ticks};
use std::fmt::Write;

/// Width and height of a drawing, and its margins: left, right, top, bottom.
const SIZE: (f64, f64) = (640.0, 220.0);
const MARGIN: (f64, f64, f64, f64) = (48.0, 12.0, 8.0, 24.0);

/// The plot with its title, which is HTML already.
pub(super) fn figure(plot: &Plot, title: &str) -> String {
    let (left, right, top, bottom) = MARGIN;
    let (wide, high) = (SIZE.0 - left - right, SIZE.1 - top - bottom);
    let share = |v: f64, (from, to): (f64, f64)| match to > from {
        true => ((v - from) / (to - from)).clamp(0.0, 1.0),
        false => 0.0,
    };
    let x = |v: f64| left + wide * share(v, plot.x);
    let y = |v: f64| top + high * (1.0 - share(v, plot.y));
    let mut out = format!(
        "<figure><figcaption>{title}</figcaption><div class=\"wide\">\
         <svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{title}\" fill=\"none\" font-size=\"11\">\n",
        SIZE.0, SIZE.1
    );
    // Writing into a string cannot fail.
    for (value, label) in marks(plot, high) {
        let _ = writeln!(
            out,
            "<path d=\"M{left} {0:.1}H{1}\" stroke=\"currentColor\" stroke-opacity=\".15\"/>\
             <text x=\"{2}\" y=\"{3:.1}\" text-anchor=\"end\" fill=\"currentColor\">{4}</text>",
            y(value),
            left + wide,
            left - 6.0,
            y(value) + 4.0,
            super::html::escaped(&label)
        );
    }
    for (value, label) in ticks(plot.x, 7) {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"currentColor\">{label}</text>",
            x(value),
            SIZE.1 - 6.0
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"currentColor\">{}</text>",
        SIZE.0 - 1.0,
        SIZE.1 - 6.0,
        super::html::escaped(&plot.x_unit)
    );
    for curve in &plot.curves {
        for part in &curve.parts {
            let inside = |p: &&(f64, f64)| {
                p.0.is_finite() && p.1.is_finite() && plot.x.0 <= p.0 && p.0 <= plot.x.1
            };
            let points: Vec<String> = part
                .iter()
                .filter(inside)
                .map(|p| format!("{:.1},{:.1}", x(p.0), y(p.1)))
                .collect();
            if points.len() > 1 {
                let _ = writeln!(
                    out,
                    "<polyline class=\"{}\" stroke=\"currentColor\" stroke-width=\"1.6\" points=\"{}\"/>",
                    class(curve.ink),
                    points.join(" ")
                );
            }
        }
    }
    out + "</svg></div></figure>\n"
}

/// Returns the marks of the y axis that do not stand in each other's way, in their order.
fn marks(plot: &Plot, high: f64) -> Vec<(f64, String)> {
    const APART: f64 = 13.0;
    let span = plot.y.1 - plot.y.0;
    let mut shown: Vec<(f64, String)> = Vec::new();
    for (value, label) in &plot.y_marks {
        let near = |(other, _): &(f64, String)| (value - other).abs() / span * high < APART;
        if span > 0.0 && !shown.iter().any(near) {
            shown.push((*value, label.clone()));
        }
    }
    shown
}
