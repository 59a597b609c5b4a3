//! Policies over start states.

use super::{SCHEMA, estimate, print, settings};
use crate::words::round3;
use risetime_analysis::compare::{Compared, Comparison, Difference, Patch, Sample};
use serde_json::{Value, json};

/// What do these policies lose and take, over all start states? Ends in a newline.
pub fn compare(c: &Comparison) -> String {
    let state = |s: &risetime_analysis::compare::StartState| json!({"phase_us": super::us(s.phase), "start_util": s.util});
    let mut record = json!({
        "schema": SCHEMA,
        "workload": c.workload,
        "platform": c.platform,
        "backend": "sim",
        "seed": c.seed,
        "comm": c.comm,
        "start_states": c.states.iter().map(state).collect::<Vec<_>>(),
        "policies": c.policies.iter().map(policy).collect::<Vec<_>>(),
        "cautions": super::cautions(&c.cautions),
    });
    if !c.patches.is_empty() {
        record["patches"] = c.patches.iter().map(patch).collect();
    }
    print(&record)
}

fn difference(d: &Difference) -> Value {
    json!({
        "debt_ms": estimate(d.debt_ms.as_ref()),
        "same_work_mj": estimate(d.same_work_mj.as_ref()),
        "left_out": d.left_out,
    })
}

fn policy(p: &Compared) -> Value {
    json!({
        "policy": p.policy,
        "settings": settings(&p.settings),
        "debt_ms": estimate(Some(&p.debt_ms)),
        "lower_bounds": p.bounds,
        "full_speed_ms": estimate(p.full_speed_ms.as_ref()),
        "energy_mj": estimate(p.energy_mj.as_ref()),
        "same_work_mj": estimate(p.same_work_mj.as_ref()),
        "efficient": p.efficient,
        "against_first": p.against_first.as_ref().map(difference),
        "samples": p.samples.iter().map(sample).collect::<Vec<_>>(),
    })
}

fn sample(s: &Sample) -> Value {
    json!({
        "debt_ms": round3(s.debt_ms),
        "ended_by": s.ended_by.as_str(),
        "full_speed_ms": s.full_speed_ms.map(round3),
        "energy_mj": s.energy_mj.map(round3),
        "same_work_mj": s.same_work_mj.map(round3),
    })
}

fn patch(p: &Patch) -> Value {
    json!({
        "setting": p.setting,
        "acts": p.acts,
        "last": difference(&p.last),
        "alone": difference(&p.alone),
    })
}
