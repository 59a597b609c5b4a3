//! Experiments side by side.

use super::{SCHEMA, difference, estimate, print, settings, us};
use crate::words::round3;
use risetime_analysis::{Compared, Measured, Subject, Switched, efficient};
use serde_json::{Value, json};

/// Writes compared experiments as JSON, with the figures of [`text`](crate::text::compared). Ends
/// in a newline.
pub fn compare(c: &Compared) -> String {
    let mut all = Vec::new();
    for (g, group) in c.groups.iter().enumerate() {
        let efficient = efficient(group);
        let subject = c.subjects.get(g);
        all.extend(group.iter().zip(efficient).enumerate().map(|(i, (one, efficient))| {
            let against = (i > 0).then_some(&group[0]);
            let mut record = experiment(c, against, one);
            record["subject"] = json!(subject.map(Subject::to_string));
            record["efficient"] = json!(efficient);
            record
        }));
    }
    let family = c.family();
    let mut record = json!({
        "schema": SCHEMA, "experiments": all, "command": c.command.join(" "),
        "differences": family.0, "sure_from": family.pairs(),
    });
    if let (false, Some(base)) = (c.switches.is_empty(), c.groups.first().and_then(|g| g.first())) {
        record["switches"] = c.switches.iter().map(|s| switch(base, s)).collect();
    }
    print(&record)
}

fn experiment(c: &Compared, against: Option<&Measured>, one: &Measured) -> Value {
    let metrics = one.metrics.iter().enumerate().map(|(m, (metric, unit, values))| {
        let less = against.and_then(|first| one.difference_in(first, m, c.family()));
        json!({
            "metric": metric.name, "unit": unit.word(), "less_is_better": metric.less_is_better(),
            "estimate": estimate(one.estimate(m).as_ref()), "never": one.never(m), "lower_bounds": one.bounds(m),
            "against_first": difference(less.as_ref()),
            "values": values.iter().map(|v| json!(v.map(round3))).collect::<Vec<_>>(),
        })
    });
    json!({
        "workload": one.workload, "platform": one.platform, "policy": one.policy, "backend": "sim", "seed": one.seed,
        "phases_us": one.starts.iter().map(|s| us(s.phase)).collect::<Vec<_>>(),
        "start_utils": one.starts.iter().map(|s| s.util).collect::<Vec<_>>(),
        "seeds": one.starts.iter().map(|s| s.seed).collect::<Vec<_>>(),
        "settings": settings(&one.settings), "metrics": metrics.collect::<Vec<_>>(),
        "cautions": super::cautions(&one.cautions),
    })
}

fn switch(base: &Measured, s: &Switched) -> Value {
    let metrics = base.metrics.iter().enumerate().map(|(m, (metric, unit, _))| {
        let of = |all: &[Option<_>]| difference(all.get(m).and_then(Option::as_ref));
        json!({"metric": metric.name, "unit": unit.word(), "last": of(&s.last), "alone": of(&s.alone)})
    });
    json!({"setting": s.setting, "acts": s.acts, "metrics": metrics.collect::<Vec<_>>()})
}
