//! Experiments measured by metrics.

use super::{SCHEMA, estimate, print, settings, us};
use crate::words::round3;
use risetime_analysis::{Measured, Switched};
use serde_json::{Value, json};

/// What do these experiments measure? As [`text`](crate::text::metrics), for a program. Ends in a newline.
pub fn metrics(groups: &[&[Measured]], switches: &[Switched]) -> String {
    let all = groups.iter().flat_map(|g| g.iter().map(|one| experiment(&g[0], one)));
    let mut record = json!({"schema": SCHEMA, "experiments": all.collect::<Vec<_>>()});
    if !switches.is_empty() {
        record["switches"] = switches.iter().map(|s| switch(&groups[0][0], s)).collect();
    }
    print(&record)
}

fn experiment(first: &Measured, one: &Measured) -> Value {
    let metrics = one.metrics.iter().enumerate().map(|(m, (metric, unit, values))| {
        json!({
            "metric": metric.name, "unit": unit.as_str().trim(),
            "estimate": estimate(one.estimate(m).as_ref()), "never": one.never(m),
            "against_first": if one == first { Value::Null } else { estimate(one.difference(first, m).as_ref()) },
            "values": values.iter().map(|v| json!(v.map(round3))).collect::<Vec<_>>(),
        })
    });
    json!({
        "workload": one.workload, "platform": one.platform, "policy": one.policy, "backend": "sim",
        "seed": one.seed, "phases_us": one.phases.iter().map(|p| us(*p)).collect::<Vec<_>>(),
        "settings": settings(&one.settings), "metrics": metrics.collect::<Vec<_>>(),
        "cautions": super::cautions(&one.cautions),
    })
}

fn switch(base: &Measured, s: &Switched) -> Value {
    let metrics = base.metrics.iter().enumerate().map(|(m, (metric, unit, _))| {
        let of = |all: &[Option<_>]| estimate(all.get(m).and_then(Option::as_ref));
        json!({"metric": metric.name, "unit": unit.as_str().trim(), "last": of(&s.last), "alone": of(&s.alone)})
    });
    json!({"setting": s.setting, "acts": s.acts, "metrics": metrics.collect::<Vec<_>>()})
}
