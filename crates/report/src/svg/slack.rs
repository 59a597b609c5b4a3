//! Slack of periodic tasks against energy: one point a policy, for each grid of tasks.
//!
//! ```text
//! x energy in mJ, average of the tasks      y median of what is left of a period, in ms
//! both axes where the points are, not from 0; each point named beside the picture
//! ```

use super::pareto::Axis;
use super::{COLUMNS, PANEL, text};
use risetime_analysis::study::{ReproducedFigure, TradeOff};
use std::fmt::Write;

/// Height of a panel: two fit beside each other.
pub(super) const HEIGHT: f64 = PANEL.1;
const NAMES: f64 = 190.0;
const LINE: f64 = 17.0;

/// Figures that have more than one policy to draw.
pub(super) fn drawn(figures: &[ReproducedFigure]) -> Vec<&ReproducedFigure> {
    figures.iter().filter(|f| points(f).count() > 1).collect()
}

fn points(f: &ReproducedFigure) -> impl Iterator<Item = (&TradeOff, f64, f64)> {
    f.trade_offs.iter().filter_map(|t| Some((t, t.energy_mj?, t.slack_ms?)))
}

/// The `i`th of them, the first of which begins at `top`.
pub(super) fn panel(out: &mut String, i: usize, top: f64, f: &ReproducedFigure) {
    let left = (i % COLUMNS) as f64 * PANEL.0 + 64.0;
    let top = top + (i / COLUMNS) as f64 * HEIGHT + 44.0;
    let (w, h) = (PANEL.0 - 64.0 - NAMES, HEIGHT - 44.0 - 46.0);
    let x = Axis::of(&points(f).map(|p| p.1).collect::<Vec<_>>());
    let y = Axis::of(&points(f).map(|p| p.2).collect::<Vec<_>>());
    text(out, (left, top - 26.0), "start", 13, &format!("{} · slack against energy", f.id));
    for value in x.steps() {
        let at = left + w * x.share(value);
        let _ = writeln!(out, "<path d=\"M{at:.1} {top}v{h}\" stroke=\"#ddd\"/>");
        text(out, (at, top + h + 16.0), "middle", 11, &number(value));
    }
    for value in y.steps() {
        let at = top + h * (1.0 - y.share(value));
        let _ = writeln!(out, "<path d=\"M{left} {at:.1}h{w}\" stroke=\"#ddd\"/>");
        text(out, (left - 6.0, at + 4.0), "end", 11, &number(value));
    }
    let _ = writeln!(
        out,
        "<rect x=\"{left}\" y=\"{top}\" width=\"{w}\" height=\"{h}\" fill=\"none\" stroke=\"#888\"/>"
    );
    text(out, (left, top - 8.0), "start", 11, "slack, median (ms)");
    text(out, (left + w / 2.0, top + h + 34.0), "middle", 11, "energy of a task's run (mJ)");
    let mut marks: Vec<(f64, f64, String)> = Vec::new();
    for (n, (t, mj, ms)) in points(f).enumerate() {
        let mark = char::from(b'a' + (n % 26) as u8).to_string();
        let (cx, cy) = (left + w * x.share(mj), top + h * (1.0 - y.share(ms)));
        let _ = writeln!(out, "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"4\" fill=\"#1f77b4\"/>");
        let name = (left + w + 14.0, top + 10.0 + LINE * n as f64);
        text(out, name, "start", 12, &format!("{mark}  {}", t.policy));
        let near = |m: &&mut (f64, f64, String)| (m.0 - cx).abs() < 14.0 && (m.1 - cy).abs() < 10.0;
        match marks.iter_mut().find(near) {
            Some((_, _, marks)) => *marks += &format!(" {mark}"),
            None => marks.push((cx, cy, mark)),
        }
    }
    for (cx, cy, mark) in marks {
        let fits = cx + 12.0 + 7.0 * mark.len() as f64 <= left + w;
        let (x, anchor) = if fits { (cx + 6.0, "start") } else { (cx - 6.0, "end") };
        text(out, (x, (cy - 6.0).max(top + 12.0)), anchor, 12, &mark);
    }
}

/// Steps may be of 0.025.
fn number(x: f64) -> String {
    let text = format!("{x:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}
