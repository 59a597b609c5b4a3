//! util_est as it climbs, of all figures with the same arithmetic in one panel, and mainline beside it.
//!
//! ```text
//! x ticks since the first at which util_est may rise, y util
//! black    dots: what the arithmetic wants
//! blue     lines over each other, one a figure: median of the start phases; band: all of them
//! green    lines: the speed that is delivered
//! orange   lines, one a figure: mainline's util_avg, named beside its last value
//! ```

use super::{PANEL, grid, nice, shape, text};
use risetime_analysis::study::{Climbed, ReproducedFigure};
use std::fmt::Write;

/// Height of a panel.
pub(super) const HEIGHT: f64 = 1.5 * PANEL.1;
/// Top of the y axis; a tick of 4 ms ends a little above it.
const TOP: f64 = 1000.0;
/// Room for names at its right.
const NAMES: f64 = 210.0;
const LINE: f64 = 17.0;

const BLUE: &str = "#1f77b4";
const GREEN: &str = "#2a8a2a";
/// Light to dark: mainline's, slowest first.
const ORANGE: (f64, f64) = (70.0, 30.0);

/// Figures that climb by the same arithmetic, in order of the first of each.
pub(super) fn groups(figures: &[ReproducedFigure]) -> Vec<Vec<(&str, &Climbed)>> {
    let mut groups: Vec<Vec<(&str, &Climbed)>> = Vec::new();
    for f in figures {
        let Some(climb) = &f.climb else { continue };
        match groups.iter_mut().find(|g| g[0].1.wanted == climb.wanted) {
            Some(group) => group.push((&f.id, climb)),
            None => groups.push(vec![(&f.id, climb)]),
        }
    }
    groups
}

/// One group, from `top` on, `width` wide.
pub(super) fn panel(out: &mut String, top: f64, width: f64, group: &[(&str, &Climbed)]) {
    let ends = group.iter().flat_map(|(_, c)| c.wanted.iter().chain(&c.mainline)).map(|p| p.0);
    let x_top = nice(ends.fold(1.0, f64::max));
    let (left, top, w, h) = (56.0, top + 46.0, width - 56.0 - NAMES, HEIGHT - 46.0 - 40.0);
    let at = |x: f64, y: f64| (left + w * (x / x_top).min(1.0), top + h * (1.0 - y / TOP));
    let alone = if let [(name, _)] = group { format!("{name} · ") } else { String::new() };
    let title = format!("{alone}util against ticks since the first at which util_est may rise");
    text(out, (left, top - 28.0), "start", 13, &title);
    legend(out, (left, top - 12.0), group.len());
    grid(out, (left, top, w, h), x_top, TOP, "ticks");
    let line = |points: &[(f64, f64)]| points.iter().map(|p| at(p.0, p.1)).collect::<Vec<_>>();
    let mut ordered: Vec<&(&str, &Climbed)> = group.iter().collect();
    let last = |c: &Climbed| c.mainline.last().map_or(0.0, |p| p.0);
    ordered.sort_by(|a, b| last(b.1).total_cmp(&last(a.1)));
    for (i, (name, climb)) in ordered.iter().enumerate() {
        let share = i as f64 / (ordered.len().max(2) - 1) as f64;
        let light = ORANGE.0 + (ORANGE.1 - ORANGE.0) * share;
        let colour = format!("hsl(28,100%,{light:.0}%)");
        let style = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.4\"");
        shape(out, "polyline", &line(&climb.mainline), &style);
        let y = top + 28.0 + LINE * i as f64;
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"14\" height=\"4\" fill=\"{colour}\"/>",
            left + w + 12.0,
            y - 6.0
        );
        let said = climb.mainline.last().map_or(String::new(), |(x, u)| format!("{u} at {x}"));
        text(out, (left + w + 32.0, y), "start", 11, &format!("{name}: {said}"));
    }
    text(out, (left + w + 12.0, top + 10.0), "start", 11, "mainline's util_avg, slowest first");
    for (_, climb) in group {
        let style = format!(
            "fill=\"none\" stroke=\"{GREEN}\" stroke-width=\"1\" stroke-opacity=\"0.7\" \
             stroke-dasharray=\"5 3\""
        );
        shape(out, "polyline", &line(&climb.speed), &style);
    }
    for (_, climb) in group {
        let band = climb.util_est.iter().map(|p| at(p.0, p.1));
        let high = climb.util_est.iter().rev().map(|p| at(p.0, p.3));
        let band: Vec<(f64, f64)> = band.chain(high).collect();
        let fill = format!("fill=\"{BLUE}\" fill-opacity=\"0.15\"");
        shape(out, "polygon", &band, &fill);
        let median: Vec<(f64, f64)> = climb.util_est.iter().map(|p| at(p.0, p.2)).collect();
        let style = format!("fill=\"none\" stroke=\"{BLUE}\" stroke-width=\"1.6\"");
        shape(out, "polyline", &median, &style);
    }
    for (x, y) in line(&group[0].1.wanted) {
        let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"black\"/>");
    }
}

fn legend(out: &mut String, (left, y): (f64, f64), n: usize) {
    let mut x = left;
    let entries = [
        ("black", "wanted: the arithmetic".to_string()),
        (BLUE, if n > 1 { format!("util_est, {n} over each other") } else { "util_est".into() }),
        (GREEN, "speed delivered".to_string()),
        ("hsl(28,100%,50%)", "mainline's util_avg".to_string()),
    ];
    for (colour, what) in entries {
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"14\" height=\"5\" fill=\"{colour}\"/>",
            y - 5.0
        );
        text(out, (x + 20.0, y), "start", 11, &what);
        x += 46.0 + 5.8 * what.len() as f64;
    }
}
