//! Picture of a burst's losses, a bar a cause.

use crate::chart::{Axis, AxisKind, Chart, Colour, Mark, Panel, Series, Shape, Size};
use crate::text::{AFFINITY, rest};
use crate::words::{self, one};
use risetime_analysis::compare::Estimate;
use risetime_analysis::explain::{About, Explanation};

/// Shares of the causes that can act, the largest first, then what is unexplained; of several start phases their
/// medians with intervals.
pub fn causes(all: &[Explanation]) -> Chart {
    let Some(first) = all.first() else { return Chart::default() };
    let over = |f: &dyn Fn(&Explanation) -> f64| Estimate::of(all.iter().map(f));
    let acting = first.causes.iter().enumerate().filter(|(_, c)| c.acts);
    let mut rows: Vec<(&str, Estimate)> =
        acting.filter_map(|(i, c)| Some((c.label, over(&|e| e.causes[i].ms)?))).collect();
    rows.sort_by(|a, b| b.1.median.total_cmp(&a.1.median));
    rows.extend(over(&|e| e.affinity_ms).filter(|ms| ms.median >= 0.05).map(|ms| (AFFINITY, ms)));
    rows.extend(over(&|e| e.unexplained_ms).map(|ms| (rest(&first.about), ms)));
    rows.reverse();
    let names = rows.iter().map(|r| r.0.to_string()).collect();
    let bar = |(i, (_, ms)): (usize, &(&str, Estimate))| Mark {
        x: ms.median,
        y: i as f64,
        x_range: ms.interval,
        y_range: None,
        label: one(ms.median),
    };
    let bars = Shape::Bars(rows.iter().enumerate().map(bar).collect());
    let panel = Panel {
        x: match first.about {
            About::Burst(_) => Axis::new("share of the work lost", "ms of full speed"),
            About::Pieces { .. } => Axis::new("share of the time it takes", "ms"),
        },
        y: Axis::default().kind(AxisKind::Names(names)),
        series: vec![Series::new("", Colour::Nth(0), bars)],
        size: Size::Whole,
        ..Panel::default()
    };
    let lost = over(&|e| e.about.ms()).map_or(0.0, |e| e.median);
    let medians = match all.len() {
        1 => String::new(),
        n if rows.iter().any(|r| r.1.interval.is_some()) => {
            format!("; medians of {n} start phases, lines: their 95 % intervals")
        }
        n => format!("; medians of {n} start phases"),
    };
    Chart {
        title: match &first.about {
            About::Burst(burst) => {
                let bound = words::bound(burst);
                format!("{} lost {bound}{} ms under {}", first.comm, one(lost), first.policy)
            }
            About::Pieces { chosen, of, .. } => {
                let (name, policy) = (&first.comm, &first.policy);
                format!("{name}: {chosen} of {of} take {} ms each under {policy}", one(lost))
            }
        },
        subtitle: format!(
            "{} on {}, {}{medians}",
            first.workload,
            first.platform,
            words::simulated(&first.settings, first.seed)
        ),
        panels: vec![panel],
        ..Chart::default()
    }
}
