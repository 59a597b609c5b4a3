//! Work lost against energy: one point a policy, with its intervals.
//!
//! ```text
//! x energy for the same work, y work lost; both axes where the points are, not from 0
//! green    efficient: nobody loses less for less energy
//! ```

use super::{label, nice, text};
use crate::text::marks;
use risetime_analysis::compare::{Compared, Comparison, Estimate};
use std::fmt::Write;

const PLOT: (f64, f64) = (560.0, 420.0);
const CORNER: (f64, f64) = (64.0, 56.0);
const LEGEND: f64 = 360.0;
const LINE: f64 = 17.0;

/// The policies as a picture. Ends in a newline.
pub fn pareto(c: &Comparison) -> String {
    let width = CORNER.0 + PLOT.0 + LEGEND;
    let height = (CORNER.1 + PLOT.1 + 52.0).max(CORNER.1 + LINE * (c.policies.len() as f64 + 2.0));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let states = c.states.len();
    let title = format!(
        "{} on {}: work lost against energy, medians of {states} start states",
        c.workload, c.platform
    );
    text(&mut out, (16.0, 26.0), "start", 16, &title);
    let x = Axis::over(c.policies.iter().filter_map(|p| p.same_work_mj.as_ref()));
    let y = Axis::over(c.policies.iter().map(|p| &p.debt_ms));
    axes(&mut out, &x, &y);
    let marks = marks(c);
    let marked: Vec<(&Compared, &String)> =
        c.policies.iter().zip(&marks).filter_map(|(p, m)| Some((p, m.as_ref()?))).collect();
    let mut labels: Vec<(f64, f64, String)> = Vec::new();
    for (i, (p, mark)) in marked.into_iter().enumerate() {
        let (cx, cy) = point(&mut out, p, &x, &y);
        match labels.iter_mut().find(|(x, y, _)| (x - cx).abs() < 12.0 && (y - cy).abs() < 10.0) {
            Some((_, _, label)) => *label += &format!(" {mark}"),
            None => labels.push((cx, cy, mark.clone())),
        }
        let at = (CORNER.0 + PLOT.0 + 20.0, CORNER.1 + 12.0 + LINE * i as f64);
        text(&mut out, at, "start", 12, &format!("{mark}  {}", p.policy));
    }
    for (cx, cy, label) in labels {
        text(&mut out, (cx + 6.0, cy - 6.0), "start", 12, &label);
    }
    let words = "green: nobody loses less for less; lines: 95 % intervals of the medians";
    text(&mut out, (CORNER.0 + PLOT.0, CORNER.1 - 8.0), "end", 11, words);
    out.push_str("</svg>\n");
    out
}

/// A range of values with round ends, and the step of its grid.
pub(super) struct Axis {
    from: f64,
    to: f64,
    step: f64,
}

impl Axis {
    fn over<'a>(estimates: impl Iterator<Item = &'a Estimate>) -> Axis {
        let ends = |e: &Estimate| {
            let (low, high) = e.interval.unwrap_or((e.median, e.median));
            [low, high]
        };
        Axis::of(&estimates.flat_map(ends).collect::<Vec<_>>())
    }

    /// Over these values.
    pub(super) fn of(all: &[f64]) -> Axis {
        let (low, high) = (
            all.iter().copied().fold(f64::INFINITY, f64::min),
            all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        );
        let step = nice(((high - low) * 1.1 / 5.0).max(1e-3));
        let from = ((low - 0.1 * step) / step).floor() * step;
        let to = ((high + 0.1 * step) / step).ceil() * step;
        Axis { from, to, step }
    }

    pub(super) fn share(&self, value: f64) -> f64 {
        (value - self.from) / (self.to - self.from)
    }

    pub(super) fn steps(&self) -> impl Iterator<Item = f64> {
        let n = ((self.to - self.from) / self.step).round() as u32;
        (0..=n).map(move |i| self.from + f64::from(i) * self.step)
    }
}

fn at_x(x: &Axis, value: f64) -> f64 {
    CORNER.0 + PLOT.0 * x.share(value)
}

fn at_y(y: &Axis, value: f64) -> f64 {
    CORNER.1 + PLOT.1 * (1.0 - y.share(value))
}

fn axes(out: &mut String, x: &Axis, y: &Axis) {
    let (left, top, w, h) = (CORNER.0, CORNER.1, PLOT.0, PLOT.1);
    for value in x.steps() {
        let at = at_x(x, value);
        let _ = writeln!(out, "<path d=\"M{at:.1} {top}v{h}\" stroke=\"#ddd\"/>");
        text(out, (at, top + h + 16.0), "middle", 11, &label(value));
    }
    for value in y.steps() {
        let at = at_y(y, value);
        let _ = writeln!(out, "<path d=\"M{left} {at:.1}h{w}\" stroke=\"#ddd\"/>");
        text(out, (left - 6.0, at + 4.0), "end", 11, &label(value));
    }
    let _ = writeln!(
        out,
        "<rect x=\"{left}\" y=\"{top}\" width=\"{w}\" height=\"{h}\" fill=\"none\" stroke=\"#888\"/>"
    );
    let words = "energy for the same work (mJ)";
    text(out, (left + w / 2.0, top + h + 36.0), "middle", 12, words);
    text(out, (left, top - 8.0), "start", 12, "work lost (ms)");
}

/// Draws a policy; where it is.
fn point(out: &mut String, p: &Compared, x: &Axis, y: &Axis) -> (f64, f64) {
    let colour = if p.efficient { "#2a8a2a" } else { "#b03030" };
    // Nothing is drawn where energies are unknown.
    let energy = p.same_work_mj.unwrap_or(Estimate { n: 0, median: 0.0, interval: None });
    let (cx, cy) = (at_x(x, energy.median), at_y(y, p.debt_ms.median));
    if let (Some((x0, x1)), Some((y0, y1))) = (energy.interval, p.debt_ms.interval) {
        let (x0, x1, y0, y1) = (at_x(x, x0), at_x(x, x1), at_y(y, y0), at_y(y, y1));
        let _ = writeln!(
            out,
            "<path d=\"M{x0:.1} {cy:.1}H{x1:.1}M{cx:.1} {y0:.1}V{y1:.1}\" stroke=\"{colour}\" \
             stroke-opacity=\"0.5\"/>"
        );
    }
    let _ = writeln!(out, "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"4\" fill=\"{colour}\"/>");
    (cx, cy)
}
