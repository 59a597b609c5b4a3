//! A grid of experiments.

use super::{SCHEMA, print, settings};
use crate::csv::{self, Set};
use crate::words::round3;
use risetime_analysis::metric::{Metric, Unit};
use risetime_analysis::sweep::{Axis, Point, Recipe, Sweep};
use serde_json::{Map, Value, json};

/// Writes the measurements of each point as JSON, with what it takes to repeat them. Ends in a
/// newline. `set`: settings of all points beside their policies.
pub fn sweep(s: &Sweep, set: &Set) -> String {
    let axis = |a: &Axis| json!({"name": a.name, "unit": a.unit, "values": a.values});
    let metric = |(m, unit): (&Metric, Unit)| json!({"metric": m.name, "unit": unit.word(), "less_is_better": m.less_is_better()});
    print(&json!({
        "schema": SCHEMA,
        "backend": s.backend.as_str(),
        "axes": s.axes.iter().map(axis).collect::<Vec<_>>(),
        "metrics": s.metrics().map(metric).collect::<Vec<_>>(),
        "points": s.points.iter().map(|p| point(s, p, set)).collect::<Vec<_>>(),
        "cautions": super::cautions(s.points.first().map_or(&[], |p| &p.measured.cautions)),
    }))
}

fn point(s: &Sweep, p: &Point, set: &Set) -> Value {
    let [platform, workload, policy] = csv::point_names(s, p, set);
    let at: Map<String, Value> =
        s.axes.iter().zip(&p.at).map(|(axis, v)| (axis.name.clone(), json!(v))).collect();
    let figures = p.measured.metrics.iter().enumerate().map(|(m, (metric, _, values))| {
        let estimate = p.measured.estimate(m);
        let interval = estimate.and_then(|e| e.interval);
        json!({
            "metric": metric.name,
            "median": estimate.map(|e| round3(e.median)),
            "low": interval.map(|i| round3(i.0)),
            "high": interval.map(|i| round3(i.1)),
            "n": estimate.map_or(0, |e| e.n),
            "never": p.measured.never(m),
            "values": values.iter().map(|v| v.map(round3)).collect::<Vec<_>>(),
        })
    });
    json!({
        "platform": platform,
        "workload": workload,
        "policy": policy,
        "at": at,
        "experiment": recipe(&p.recipe),
        "command": p.command,
        "settings": settings(&p.measured.settings),
        "figures": figures.collect::<Vec<_>>(),
    })
}

/// Writes what it takes to build the experiment again.
fn recipe(r: &Recipe) -> Value {
    let changes: Map<String, Value> =
        r.changes.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    json!({
        "workload": r.workload,
        "vary": changes,
        "platform": r.platform,
        "hz": r.hz,
        "policy": r.policy,
        "set": settings(&r.set.iter().cloned().collect()),
        "seconds": r.seconds,
        "seed": r.seed,
        "phases": r.phases,
    })
}
