//! One experiment under one release after another: a panel a figure.

use crate::chart::{Axis, AxisKind, Chart, Colour, Mark, Panel, Series, Shape, Size};
use risetime_analysis::Spread;
use risetime_analysis::history::{Figure, History, Release, Side};

const SIDES: [(Side, &str, Colour); 2] =
    [(Side::Real, "kernel", Colour::Ink), (Side::Simulated, "simulated", Colour::Nth(0))];

/// The telling figures, oldest release left.
pub fn history(h: &History) -> Chart {
    Chart {
        title: format!("{} on {}, release by release", h.workload, h.platform),
        subtitle: format!(
            "Medians of {} start phases, lines: from the lowest to the highest",
            h.phases
        ),
        panels: h.telling().map(|(i, figure)| panel(h, i, figure)).collect(),
        ..Chart::default()
    }
}

fn panel(h: &History, i: usize, figure: &Figure) -> Panel {
    let of = |side: Side| -> Vec<Option<&Spread>> {
        let at = |r| Release::on(r, side).and_then(|all| all.get(i)).map(|t| &t.spread);
        h.releases.iter().map(at).collect()
    };
    let mut series = Vec::new();
    for (side, name, colour) in SIDES.into_iter().filter(|(s, ..)| *s != Side::Real || h.has_real())
    {
        let all = of(side);
        let median = |s: &Option<&Spread>| s.and_then(|s| s.median).unwrap_or(f64::NAN);
        let line = all.iter().enumerate().map(|(at, s)| (at as f64, median(s))).collect();
        series.push(Series::new("", colour, Shape::Line(line)));
        let mark = |(at, s): (usize, &Option<&Spread>)| {
            let s = (*s)?;
            let median = s.median?;
            // Without a highest one it never happened in some run.
            let y_range = Some((s.min.unwrap_or(median), s.max.unwrap_or(f64::INFINITY)));
            Some(Mark { x: at as f64, y: median, y_range, ..Mark::default() })
        };
        let marks = all.iter().enumerate().filter_map(mark).collect();
        series.push(Series::new(name, colour, Shape::Points(marks)));
    }
    Panel {
        title: figure.name.clone(),
        x: Axis::default()
            .kind(AxisKind::Names(h.releases.iter().map(|r| short(&r.name)).collect())),
        y: Axis::new(&figure.about, ""),
        series,
        size: Size::Half,
        ..Panel::default()
    }
}

/// Shortens a release's name to its numbers: 6.12.107 of 6.12.107+deb13-arm64, 6.12 of linux-6.12.
fn short(name: &str) -> String {
    let name = name.strip_prefix("linux-").unwrap_or(name);
    let numbers = |c: &char| c.is_ascii_digit() || *c == '.' || *c == '-';
    let short: String = name.chars().take_while(numbers).collect();
    let short = short.trim_end_matches(['.', '-']);
    if short.is_empty() { name.into() } else { short.into() }
}
