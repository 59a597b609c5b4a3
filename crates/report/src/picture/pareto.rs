//! Work lost against energy: one point a policy, with its intervals.

use super::mark;
use crate::chart::{Axis, AxisKind, Chart, Colour, Mark, Panel, Series, Shape, Size};
use crate::text::marks;
use risetime_analysis::compare::{Compared, Comparison};

/// The policies as a picture; those whose energy is unknown are not in it.
pub fn pareto(c: &Comparison) -> Chart {
    let marks = marks(c);
    let marked: Vec<(&Compared, &String)> =
        c.policies.iter().zip(&marks).filter_map(|(p, m)| Some((p, m.as_ref()?))).collect();
    let points = |efficient: bool| -> Vec<Mark> {
        let these = marked.iter().filter(|(p, _)| p.efficient == efficient);
        these
            .filter_map(|(p, m)| Some(mark(p.same_work_mj.as_ref()?, &p.debt_ms, (*m).clone())))
            .collect()
    };
    let series = [
        ("nobody loses less for less energy", Colour::Nth(0), points(true)),
        ("somebody does", Colour::Nth(1), points(false)),
    ];
    let near = |label: &str, unit: &str| Axis::new(label, unit).kind(AxisKind::Near);
    let panel = Panel {
        x: near("energy for the same work", "mJ"),
        y: near("work lost", "ms"),
        series: series
            .map(|(name, colour, points)| Series::new(name, colour, Shape::Points(points)))
            .to_vec(),
        keys: marked.iter().map(|(p, m)| ((*m).clone(), p.policy.clone())).collect(),
        size: Size::Whole,
        ..Panel::default()
    };
    Chart {
        title: format!("{} on {}: work lost against energy", c.workload, c.platform),
        subtitle: format!(
            "Medians of {} start states; lines: their 95 % intervals",
            c.states.len()
        ),
        panels: vec![panel],
        ..Chart::default()
    }
}
