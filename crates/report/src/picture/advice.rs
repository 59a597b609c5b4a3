//! Picture of the options tried: the metric against energy, lettered as in the text.

use super::mark;
use crate::apply;
use crate::chart::{Axis, AxisKind, Chart, Colour, Mark, Panel, Series, Shape, Size};
use crate::text::{letter, shown};
use crate::words::simulated;
use risetime_analysis::Measured;
use risetime_analysis::advice::{Advice, PER_JOB, comparable_energy};

/// The baseline, 0, and the options of the text's table; those that nobody beats in both, whatever work is done, are
/// joined. Options whose energy is unknown are not in it.
pub fn advice(a: &Advice) -> Chart {
    let compared = comparable_energy(&a.base);
    let point = |m: &Measured, label: String| {
        Some(mark(m.estimate(compared).as_ref()?, m.estimate(0).as_ref()?, label))
    };
    let of = |efficient: bool| -> Vec<Mark> {
        let all = shown(a).iter().enumerate().filter(|(_, t)| t.efficient == efficient);
        all.filter_map(|(i, t)| point(&t.measured, letter(i).to_string())).collect()
    };
    let front = of(true);
    let sign = if a.metric.less_is_better() == Some(false) { -1.0 } else { 1.0 };
    let mut joined: Vec<(f64, f64)> = front.iter().map(|m| (m.x, m.y)).collect();
    joined.sort_by(|a, b| a.0.total_cmp(&b.0));
    // A measure that is beaten here is kept for the work that is done under it.
    let mut best = f64::INFINITY;
    joined.retain(|(_, y)| {
        let better = y * sign < best;
        best = best.min(y * sign);
        better
    });
    let base = point(&a.base, "0".into()).into_iter().collect();
    let series = vec![
        Series::new("", Colour::Nth(0), Shape::Line(joined)),
        Series::new("as it is", Colour::Ink, Shape::Points(base)),
        Series::new(
            "nobody gains more for less energy and as much work",
            Colour::Nth(0),
            Shape::Points(front),
        ),
        Series::new("somebody does", Colour::Nth(1), Shape::Points(of(false))),
    ];
    let options = shown(a).iter().enumerate();
    let options = options.map(|(i, t)| (letter(i).to_string(), apply::words(&t.steps)));
    let near = |label: &str, unit: &str| Axis::new(label, unit).kind(AxisKind::Near);
    let panel = Panel {
        x: near("energy of all CPUs", if compared == PER_JOB { "mJ per job done" } else { "mJ" }),
        y: near(&a.metric.name, a.unit.as_str().trim()),
        series: series.into_iter().filter(|s| !s.is_empty()).collect(),
        keys: options.collect(),
        size: Size::Whole,
        ..Panel::default()
    };
    let (base, phases) = (&a.base, a.rounds.last().map_or(0, |round| round.phases));
    Chart {
        title: format!("{} on {}: what helps", base.workload, base.platform),
        subtitle: format!(
            "{}, {}; medians of {phases} start phases, lines: their 95 % intervals",
            base.policy,
            simulated(&base.settings, a.seed)
        ),
        panels: vec![panel],
        ..Chart::default()
    }
}
