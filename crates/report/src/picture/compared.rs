//! Figures of experiments side by side: a panel a metric of each workload on each platform, a row a policy.

use crate::chart::{Axis, AxisKind, Chart, Colour, Mark, Panel, Series, Shape, Size};
use crate::words::{digits3, noise};
use risetime_analysis::compare::{Difference, Estimate};
use risetime_analysis::metric::{Metric, Unit};
use risetime_analysis::{Compared, Measured, Switched};

/// Medians with intervals, the first policy on top; of a policy that is taken apart also what each switch changes. Where nobody said
/// by which figures, the first of them against energy comes first.
pub fn compared(c: &Compared) -> Chart {
    let Some(first) = c.groups.first().and_then(|g| g.first()) else { return Chart::default() };
    let many = c.groups.len() > 1;
    let of = |m: &Measured| format!("{} on {}", m.workload, m.platform);
    let mut panels: Vec<Panel> = match c.subjects.is_empty() {
        true => Vec::new(),
        false => super::pareto::panel(c).into_iter().collect(),
    };
    let most = c.groups.iter().map(|g| g.first().map_or(0, |one| one.metrics.len())).max();
    for m in 0..most.unwrap_or(0) {
        for group in c.groups.iter().filter(|g| g.first().is_some_and(|one| m < one.metrics.len()))
        {
            let beside = if many { of(&group[0]) } else { String::new() };
            panels.push(panel(c.shown(group), m, &beside));
        }
        if !c.switches.is_empty() {
            panels.push(taken_apart(&first.metrics[m], &c.switches, m));
        }
    }
    let noise = noise(&first.settings, first.seed).map_or(String::new(), |n| format!("; {n}"));
    let own = first.starts.iter().all(|start| start.util.is_none());
    let from = if own { "phases" } else { "states" };
    Chart {
        title: if many { "Figures side by side".into() } else { of(first) },
        subtitle: format!(
            "Medians of {} start {from}, lines: their 95 % intervals{noise}",
            first.starts.len()
        ),
        panels,
        ..Chart::default()
    }
}

/// Names from above, what is drawn beside them, and a broken line at `at`.
fn rows(names: Vec<String>, x: Axis, series: Vec<Series>, at: Option<f64>) -> Panel {
    let n = names.len() as f64;
    let line = at.map(|x| Shape::Line(vec![(x, -0.5), (x, n - 0.5)]));
    let line = line.map(|shape| Series::new("", Colour::Ink, shape).dashed());
    Panel {
        x,
        y: Axis::default().kind(AxisKind::Names(names.into_iter().rev().collect())),
        series: series.into_iter().chain(line).collect(),
        size: Size::Whole,
        ..Panel::default()
    }
}

fn point(e: &Estimate, row: usize, of: usize) -> Mark {
    Mark { x: e.median, y: (of - 1 - row) as f64, x_range: e.interval, ..Mark::default() }
}

fn title((metric, unit, _): &(Metric, Unit, Vec<Option<f64>>)) -> String {
    match unit.as_str().trim() {
        "" => metric.name.clone(),
        unit => format!("{} ({unit})", metric.name),
    }
}

fn panel(group: &[Measured], m: usize, beside: &str) -> Panel {
    let n = group.len();
    let all = group.iter().map(|one| one.estimate(m)).enumerate();
    let marks = all.filter_map(|(row, e)| Some(point(&e?, row, n))).collect();
    let median = |one: &Measured| one.estimate(m).map_or("–".into(), |e| digits3(e.median));
    let names = group.iter().map(|one| format!("{}: {}", one.policy, median(one))).collect();
    let first = group[0].estimate(m).filter(|_| n > 1).map(|e| e.median);
    let points = Series::new("", Colour::Nth(0), Shape::Points(marks));
    let head = title(&group[0].metrics[m]);
    let never = group.iter().any(|one| one.never(m) > 0);
    let note = "From some start phases there is no such figure, and they are left out.";
    Panel {
        title: if beside.is_empty() { head } else { format!("{head}: {beside}") },
        notes: never.then(|| note.to_string()).into_iter().collect(),
        ..rows(names, Axis::default().kind(AxisKind::Near), vec![points], first)
    }
}

/// The panel of an ablation: the effects of the switches that act.
fn taken_apart(
    metric: &(Metric, Unit, Vec<Option<f64>>),
    switches: &[Switched],
    m: usize,
) -> Panel {
    let acting: Vec<&Switched> = switches.iter().filter(|s| s.acts).collect();
    let n = acting.len();
    let of = |what: fn(&Switched) -> &[Option<Difference>]| {
        let all = acting.iter().enumerate();
        let marks = all.filter_map(|(row, s)| Some((row, what(s).get(m).copied().flatten()?)));
        let point = |(row, d): (usize, Difference)| Mark {
            x: d.median,
            y: (n - 1 - row) as f64,
            x_range: Some(d.interval),
            ..Mark::default()
        };
        Shape::Points(marks.map(point).collect())
    };
    let series = vec![
        Series::new("the last one that is added", Colour::Nth(0), of(|s| &s.last)),
        Series::new("alone", Colour::Nth(1), of(|s| &s.alone)),
    ];
    let names = acting.iter().map(|s| s.setting.clone()).collect();
    Panel {
        title: format!("{}: what each switch changes", title(metric)),
        ..rows(names, Axis::default().kind(AxisKind::Near), series, Some(0.0))
    }
}
