//! One experiment under one release after another: a panel a figure.
//!
//! ```text
//! x one release after the other, oldest left; y the figure, from 0
//! black    the kernel: median over start phases, line from the lowest to the highest
//! blue     the simulator
//! ```

use super::{label, nice, text};
use risetime_analysis::Spread;
use risetime_analysis::history::{Figure, History, Side};
use std::fmt::Write;

const PANEL: (f64, f64) = (460.0, 250.0);
const MARGIN: (f64, f64) = (64.0, 40.0);
const COLUMNS: usize = 2;
const HEAD: f64 = 66.0;
const COLOURS: [(Side, &str, f64); 2] =
    [(Side::Real, "#000000", -4.0), (Side::Simulated, "#1f77b4", 4.0)];

/// The telling figures as a picture. Ends in a newline.
pub fn history(h: &History) -> String {
    let panels: Vec<(usize, &Figure)> = h.telling().collect();
    let rows = panels.len().div_ceil(COLUMNS);
    let (width, height) = (COLUMNS as f64 * PANEL.0, HEAD + rows as f64 * PANEL.1 + 8.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let title = format!("{} on {}, release by release", h.workload, h.platform);
    text(&mut out, (16.0, 24.0), "start", 16, &title);
    let phases = format!("median of {} start phases, lowest to highest", h.phases);
    let mut x = 16.0;
    for (side, colour, _) in COLOURS.into_iter().filter(|(s, ..)| *s != Side::Real || h.has_real())
    {
        let what = if side == Side::Real { "kernel" } else { "simulated" };
        let _ =
            writeln!(out, "<rect x=\"{x}\" y=\"42\" width=\"18\" height=\"6\" fill=\"{colour}\"/>");
        text(&mut out, (x + 24.0, 49.0), "start", 12, what);
        x += 110.0;
    }
    text(&mut out, (x, 49.0), "start", 12, &phases);
    for (nth, (i, figure)) in panels.into_iter().enumerate() {
        let corner = ((nth % COLUMNS) as f64 * PANEL.0, HEAD + (nth / COLUMNS) as f64 * PANEL.1);
        panel(&mut out, corner, h, i, figure);
    }
    out.push_str("</svg>\n");
    out
}

fn panel(out: &mut String, corner: (f64, f64), h: &History, i: usize, figure: &Figure) {
    let (left, top) = (corner.0 + MARGIN.0, corner.1 + 28.0);
    let (w, height) = (PANEL.0 - MARGIN.0 - 16.0, PANEL.1 - 28.0 - MARGIN.1);
    text(out, (left, top - 9.0), "start", 13, &format!("{} · {}", figure.name, figure.about));
    let of = |side: Side| -> Vec<Option<&Spread>> {
        h.releases.iter().map(|r| r.on(side).and_then(|all| all.get(i))).collect()
    };
    let tops = COLOURS.iter().flat_map(|(side, ..)| of(*side)).flatten();
    let y_top = nice(tops.filter_map(|s| s.max.or(s.median)).fold(0.1, f64::max));
    let _ = writeln!(
        out,
        "<rect x=\"{left}\" y=\"{top}\" width=\"{w}\" height=\"{height}\" fill=\"none\" stroke=\"#888\"/>"
    );
    for step in 0..=4 {
        let share = f64::from(step) / 4.0;
        let y = top + height * (1.0 - share);
        let _ = writeln!(out, "<path d=\"M{left} {y:.1}h{w}\" stroke=\"#ddd\"/>");
        text(out, (left - 6.0, y + 4.0), "end", 11, &label(y_top * share));
    }
    let n = h.releases.len().max(1) as f64;
    let column = |at: usize| left + w * (at as f64 + 0.5) / n;
    for (at, r) in h.releases.iter().enumerate() {
        // 6.12.107+deb13-arm64: the numbers say which.
        let short: String =
            r.name.chars().take_while(|c| c.is_ascii_digit() || *c == '.' || *c == '-').collect();
        let short = short.trim_end_matches(['.', '-']);
        let name = if short.is_empty() { r.name.as_str() } else { short };
        text(out, (column(at), top + height + 16.0), "middle", 11, name);
    }
    for (side, colour, shift) in COLOURS {
        let mut before: Option<(f64, f64)> = None;
        for (at, spread) in of(side).into_iter().enumerate() {
            let point = spread.and_then(|s| Some((s, s.median?)));
            let Some((s, median)) = point else {
                before = None;
                continue;
            };
            let y = |value: f64| top + height * (1.0 - (value / y_top).clamp(0.0, 1.0));
            let x = column(at) + shift;
            if let Some((x0, y0)) = before {
                let line = format!("M{x0:.1} {y0:.1}L{x:.1} {:.1}", y(median));
                let _ = writeln!(
                    out,
                    "<path d=\"{line}\" stroke=\"{colour}\" stroke-opacity=\"0.4\"/>"
                );
            }
            let (low, high) = (s.min.unwrap_or(median), s.max.unwrap_or(y_top));
            let bar = format!("M{x:.1} {:.1}V{:.1}", y(low), y(high));
            let _ = writeln!(
                out,
                "<path d=\"{bar}\" stroke=\"{colour}\" stroke-width=\"2\" stroke-opacity=\"0.5\"/>"
            );
            let _ = writeln!(
                out,
                "<circle cx=\"{x:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{colour}\"/>",
                y(median)
            );
            before = Some((x, y(median)));
        }
    }
}
