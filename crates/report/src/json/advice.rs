//! Changes that a user can make, and their gain, as JSON.

use super::{SCHEMA, print, settings};
use super::{difference, estimate};
use crate::apply;
use risetime_analysis::Measured;
use risetime_analysis::advice::{Advice, EACH, ENERGY, PER_JOB, Round, Tried};
use serde_json::{Value, json};

/// Writes advice as JSON. `real`: the first line, measured on a real kernel. Ends in a newline.
pub fn advice(a: &Advice, command: &str, real: Option<&(Measured, Measured)>) -> String {
    let phases = a.rounds.last().map_or(0, |round| round.phases);
    let option = |t: &Tried| option(t, a, &format!("{command} --phases {phases}"));
    let mut record = json!({
        "schema": SCHEMA,
        "workload": a.base.workload,
        "platform": a.base.platform,
        "policy": a.base.policy,
        "backend": "sim",
        "seed": a.seed,
        "metric": a.metric.name,
        "unit": a.unit.word(),
        "settings": settings(&a.base.settings),
        "now": measured(&a.base),
        "cautions": super::cautions(&a.base.cautions),
        "options": a.tried.iter().map(option).collect::<Vec<_>>(),
        "nearest": a.nearest.iter().map(option).collect::<Vec<_>>(),
        "rounds": a.rounds.iter().map(round).collect::<Vec<_>>(),
        "simulations": a.runs,
        "untried": a.untried,
        "unsure": a.unsure,
        "not_tried": a.left_out,
    });
    if let Some((base, with)) = real {
        record["real"] = json!({
            "now": measured(base),
            "first": measured(with),
            "change": difference(with.difference(base, 0).as_ref()),
            "mj_change": difference(with.difference(base, ENERGY).as_ref()),
            "mj_all_per_job_change": difference(with.difference(base, PER_JOB).as_ref()),
            "mj_per_job_change": difference(with.difference(base, EACH).as_ref()),
        });
    }
    print(&record)
}

fn measured(m: &Measured) -> Value {
    json!({
        "value": estimate(m.estimate(0).as_ref()),
        "mj": estimate(m.estimate(ENERGY).as_ref()),
        "work_ms": estimate(m.estimate(2).as_ref()),
        "mj_all_per_job": estimate(m.estimate(PER_JOB).as_ref()),
        "mj_per_job": estimate(m.estimate(EACH).as_ref()),
    })
}

fn option(t: &Tried, a: &Advice, command: &str) -> Value {
    let options = apply::options(&t.steps);
    json!({
        "what": apply::words(&t.steps),
        "options": options,
        "apply": apply::lines(&t.steps),
        "command": apply::again(command, &t.steps).join(" "),
        "measured": measured(&t.measured),
        "change": difference(Some(&t.metric)),
        "mj_change": difference(t.measured.difference(&a.base, ENERGY).as_ref()),
        "mj_all_per_job_change": difference(t.measured.difference(&a.base, PER_JOB).as_ref()),
        "mj_per_job_change": difference(t.measured.difference(&a.base, EACH).as_ref()),
        "work_change_ms": difference(t.work.as_ref()),
        "efficient": t.efficient,
    })
}

fn round(r: &Round) -> Value {
    json!({ "candidates": r.candidates, "phases": r.phases, "seconds": r.seconds })
}
