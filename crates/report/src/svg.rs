//! Pictures (SVG 1.1): published and measured curves over each other; work lost against energy.
//!
//! ```text
//! history.rs                     a panel a figure: kernels and simulator, release by release
//! climb.rs                       util_est of all figures in one panel, mainline's util_avg beside it
//! slack.rs                       a panel a grid of tasks, one point a policy: slack against energy
//! one panel a figure and curve   grey band and blue line: our phases and their median
//!                                black steps: values that the document prints, or promises
//!                                orange points: read off the document's own plot
//! ```
//!
//! Our own, because what is needed is a hundred lines, and plot libraries bring font stacks. Left
//! out: anything interactive.

mod climb;
mod history;
mod pareto;
mod slack;

pub use history::history;
pub use pareto::pareto;

use risetime_analysis::study::{CurvePair, Reproduced, ReproducedFigure};
use std::fmt::Write;

const PANEL: (f64, f64) = (560.0, 300.0);
const MARGIN: (f64, f64) = (56.0, 46.0);
const COLUMNS: usize = 2;
const HEAD: f64 = 64.0;

/// All curves of the study. Ends in a newline.
pub fn study(study: &Reproduced) -> String {
    let panels: Vec<(&ReproducedFigure, &CurvePair)> =
        study.figures.iter().flat_map(|f| f.curves.iter().map(move |c| (f, c))).collect();
    let (climbs, slacks) = (climb::groups(&study.figures), slack::drawn(&study.figures));
    let wide = if climbs.is_empty() { 1 } else { COLUMNS };
    let columns = COLUMNS.min(panels.len().max(slacks.len()).max(wide));
    let head = if panels.is_empty() { 40.0 } else { HEAD };
    let slacks_from = head + climbs.len() as f64 * climb::HEIGHT;
    let curves_from = slacks_from + slacks.len().div_ceil(COLUMNS) as f64 * slack::HEIGHT;
    let rows = panels.len().div_ceil(COLUMNS);
    let (width, height) = (columns as f64 * PANEL.0, curves_from + rows as f64 * PANEL.1);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    text(&mut out, (16.0, 24.0), "start", 16, &format!("{}: {}", study.study, study.about));
    for (i, group) in climbs.iter().enumerate() {
        climb::panel(&mut out, head + i as f64 * climb::HEIGHT, width, group);
    }
    for (i, figure) in slacks.iter().enumerate() {
        slack::panel(&mut out, i, slacks_from, figure);
    }
    if !panels.is_empty() {
        legend(&mut out, study.phases);
    }
    for (i, (figure, curve)) in panels.iter().enumerate() {
        let corner = ((i % COLUMNS) as f64 * PANEL.0, curves_from + (i / COLUMNS) as f64 * PANEL.1);
        panel(&mut out, corner, figure, curve);
    }
    out.push_str("</svg>\n");
    out
}

fn legend(out: &mut String, phases: u32) {
    let mut x = 16.0;
    let entries = [
        ("#1f77b4", format!("measured, median of {phases} start phases, band: all of them")),
        ("#000000", "published list".to_string()),
        ("#e07b00", "read off the published plot".to_string()),
    ];
    for (colour, what) in entries {
        let _ =
            writeln!(out, "<rect x=\"{x}\" y=\"40\" width=\"18\" height=\"6\" fill=\"{colour}\"/>");
        text(out, (x + 24.0, 48.0), "start", 12, &what);
        x += 44.0 + 6.2 * what.len() as f64;
    }
}

fn panel(out: &mut String, corner: (f64, f64), figure: &ReproducedFigure, curve: &CurvePair) {
    let points = || {
        let plain = curve.listed.iter().chain(&curve.drawn).copied();
        plain.chain(curve.measured.iter().map(|m| (m.0, m.3)))
    };
    let x_top = nice(points().map(|p| p.0).fold(1.0, f64::max));
    let y_top = nice(points().map(|p| p.1).fold(0.1, f64::max));
    let (left, top) = (corner.0 + MARGIN.0, corner.1 + 30.0);
    let (w, h) = (PANEL.0 - MARGIN.0 - 20.0, PANEL.1 - 30.0 - MARGIN.1);
    let at = |x: f64, y: f64| (left + w * x / x_top, top + h - h * y / y_top);
    text(out, (left, top - 10.0), "start", 13, &format!("{} · {}", figure.id, curve.what));
    grid(out, (left, top, w, h), x_top, y_top, "ms");
    let low = curve.measured.iter().map(|m| at(m.0, m.1));
    let high = curve.measured.iter().rev().map(|m| at(m.0, m.3));
    let band: Vec<(f64, f64)> = high.chain(low).collect();
    shape(out, "polygon", &band, "fill=\"#1f77b4\" fill-opacity=\"0.2\"");
    let line = |points: &mut dyn Iterator<Item = (f64, f64)>| -> Vec<(f64, f64)> {
        points.map(|(x, y)| at(x, y)).collect()
    };
    let ours = line(&mut curve.measured.iter().map(|m| (m.0, m.2)));
    shape(out, "polyline", &ours, "fill=\"none\" stroke=\"#1f77b4\" stroke-width=\"2\"");
    let listed = line(&mut curve.listed.iter().copied());
    shape(out, "polyline", &listed, "fill=\"none\" stroke=\"black\" stroke-width=\"1.2\"");
    for (x, y) in line(&mut curve.drawn.iter().copied()) {
        let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\" fill=\"#e07b00\"/>");
    }
}

fn grid(
    out: &mut String,
    (left, top, w, h): (f64, f64, f64, f64),
    x_top: f64,
    y_top: f64,
    unit: &str,
) {
    const STEPS: u32 = 5;
    let _ = writeln!(
        out,
        "<rect x=\"{left}\" y=\"{top}\" width=\"{w}\" height=\"{h}\" fill=\"none\" stroke=\"#888\"/>"
    );
    for i in 0..=STEPS {
        let share = f64::from(i) / f64::from(STEPS);
        let (x, y) = (left + w * share, top + h - h * share);
        if (1..STEPS).contains(&i) {
            let _ = writeln!(
                out,
                "<path d=\"M{x:.1} {top}v{h}M{left} {y:.1}h{w}\" stroke=\"#ddd\" stroke-width=\"1\"/>"
            );
        }
        let unit = if i == STEPS { format!(" {unit}") } else { String::new() };
        let anchor = if i == STEPS { "end" } else { "middle" };
        text(out, (x, top + h + 16.0), anchor, 11, &format!("{}{unit}", label(x_top * share)));
        text(out, (left - 6.0, y + 4.0), "end", 11, &label(y_top * share));
    }
}

fn shape(out: &mut String, element: &str, points: &[(f64, f64)], style: &str) {
    if points.is_empty() {
        return;
    }
    let _ = write!(out, "<{element} points=\"");
    for (x, y) in points {
        let _ = write!(out, "{x:.1},{y:.1} ");
    }
    let _ = writeln!(out, "\" {style}/>");
}

fn text(out: &mut String, at: (f64, f64), anchor: &str, size: u32, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let (x, y) = at;
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{words}</text>"
    );
}

fn label(x: f64) -> String {
    let text = format!("{x:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// The least of 1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10 times a power of ten that is not below `x`.
fn nice(x: f64) -> f64 {
    let power = 10f64.powf(x.log10().floor());
    let steps = [1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.5, 10.0];
    steps.into_iter().map(|s| s * power).find(|s| *s >= x * 0.9999).unwrap_or(10.0 * power)
}
