//! The first metric against energy: one point a policy, with its intervals.

use super::mark;
use crate::chart::{Axis, AxisKind, Colour, Mark, Panel, Series, Shape, Size};
use crate::text::{energy_of, marks};
use risetime_analysis::{Compared, Measured, efficient};

/// The policies of the only group; `None`: there are several groups, no energy, or no second place.
pub(super) fn panel(c: &Compared) -> Option<Panel> {
    let [group] = c.groups.as_slice() else { return None };
    let energy = energy_of(group)?;
    let (metric, unit, _) = &group.first()?.metrics[0];
    let efficient = efficient(group);
    let marks = marks(c, group);
    let marked: Vec<(&Measured, &String, bool)> = (group.iter().zip(&marks).zip(efficient))
        .filter_map(|((one, mark), efficient)| Some((one, mark.as_ref()?, efficient)))
        .collect();
    let points = |of: bool| -> Vec<Mark> {
        let these = marked.iter().filter(|(.., efficient)| *efficient == of);
        let point = |(one, label, _): &(&Measured, &String, bool)| {
            Some(mark(one.estimate(energy).as_ref()?, one.estimate(0).as_ref()?, (*label).clone()))
        };
        these.filter_map(point).collect()
    };
    let series = [
        ("nobody beats it", Colour::Nth(0), points(true)),
        (
            "somebody is surely better in one figure, and in none worse",
            Colour::Nth(1),
            points(false),
        ),
    ];
    if series.iter().map(|(.., points)| points.len()).sum::<usize>() < 2 {
        return None;
    }
    let near = |label: &str, unit: &str| Axis::new(label, unit).kind(AxisKind::Near);
    Some(Panel {
        x: near("energy of all CPUs", "mJ"),
        y: near(&metric.name, unit.as_str().trim()),
        series: series
            .map(|(name, colour, points)| Series::new(name, colour, Shape::Points(points)))
            .to_vec(),
        keys: marked.iter().map(|(one, mark, _)| ((*mark).clone(), one.policy.clone())).collect(),
        size: Size::Whole,
        ..Panel::default()
    })
}
