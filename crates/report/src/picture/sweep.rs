//! A sweep: a panel a metric, curves over the first axis that is numbers (one for each value of the other), or a map.

use crate::chart::{Axis, AxisKind, Chart, Panel, Series, Shape, curves, heat};
use risetime_analysis::sweep::{Axis as Varied, Sweep};

/// The picture of a sweep: each metric over what was varied. Medians, with their intervals of 95 %
/// where there are any.
pub fn sweep(s: &Sweep) -> Chart {
    let names: Vec<&str> = s.axes.iter().map(|a| a.name.as_str()).collect();
    let first = s.points.first();
    // What is varied is in the panels.
    let of = first.map_or(Vec::new(), |p| {
        let m = &p.measured;
        let parts = [("workload", &m.workload), ("platform", &m.platform), ("policy", &m.policy)];
        let fixed = parts.into_iter().filter(|(name, _)| !names.contains(name));
        fixed.map(|(_, value)| value.clone()).collect()
    });
    let of = of.join(", ");
    let phases = first.map_or(0, |p| p.measured.starts.len());
    let panels: Vec<Panel> = (0..s.metrics().count()).map(|m| panel(s, m)).collect();
    let is_band = |series: &Series| matches!(series.shape, Shape::Band(_));
    let banded = panels.iter().any(|p| p.series.iter().any(is_band));
    let bands = if banded { ", bands: their 95 % intervals" } else { "" };
    Chart {
        title: format!("over {}", names.join(" and ")),
        subtitle: format!("{of}; medians of {phases} start phases{bands}"),
        panels,
        ..Chart::default()
    }
}

/// Largest number of curves that can be told apart.
const CURVES: usize = 8;

fn panel(s: &Sweep, m: usize) -> Panel {
    let (metric, unit) = s.metrics().nth(m).expect("there are so many");
    let numbers = s.axes.first().and_then(Varied::numbers);
    match (s.axes.as_slice(), numbers) {
        ([x], Some(at)) => drawn(s, m, (x, &at), &[None]),
        ([x, by], Some(at)) if by.values.len() <= CURVES => {
            let all: Vec<Option<&String>> = by.values.iter().map(Some).collect();
            drawn(s, m, (x, &at), &all)
        }
        ([x, y], _) => {
            let medians = s.medians(m);
            let n = y.values.len();
            let row = |j: usize| (0..x.values.len()).map(|i| medians[i * n + j]).collect();
            let title = format!("{}, {}", metric.name, unit.word());
            let title = title.trim_end_matches([',', ' ']);
            heat(
                title,
                (&x.name, x.unit, &x.values),
                (&y.name, y.unit, &y.values),
                (0..n).map(row).collect(),
            )
        }
        // One axis of names, or more than two: in the order of the points.
        _ => {
            let label = |p: &risetime_analysis::sweep::Point| p.at.join(" ");
            let names: Vec<String> = s.points.iter().map(label).collect();
            heat(&metric.name, ("", "", &names), ("", "", &[String::new()]), vec![s.medians(m)])
        }
    }
}

/// Values of an axis, medians there, and their intervals.
type Curve = Vec<(f64, f64, Option<(f64, f64)>)>;

/// Curves over `x`, one for each value of the second axis.
fn drawn(s: &Sweep, m: usize, (x, at): (&Varied, &[f64]), by: &[Option<&String>]) -> Panel {
    let (metric, unit) = s.metrics().nth(m).expect("there are so many");
    let curve = |value: Option<&String>| -> Curve {
        let here = s.points.iter().filter(|p| value.is_none_or(|v| p.at.get(1) == Some(v)));
        let found = here.zip(at).filter_map(|(p, x)| {
            let e = p.measured.estimate(m)?;
            Some((*x, e.median, e.interval))
        });
        found.collect()
    };
    let all: Vec<_> = by.iter().map(|value| curve(*value)).collect();
    let second = s.axes.get(1).map_or((String::new(), ""), |a| (format!("{} ", a.name), a.unit));
    let name = |value: &String| format!("{}{value} {}", second.0, second.1).trim_end().to_string();
    let names: Vec<String> = by.iter().map(|value| value.map_or(String::new(), name)).collect();
    let names = names.iter().map(String::as_str);
    let rows: Vec<_> = names.zip(all.iter().map(Vec::as_slice)).collect();
    let y = Axis::new(&metric.name, unit.word()).kind(AxisKind::Near);
    curves("", Axis::new(&x.name, x.unit), y, &rows)
}
