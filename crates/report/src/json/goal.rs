//! The least of one figure with which another reaches a goal.

use super::{SCHEMA, difference, estimate, print, settings};
use crate::apply;
use crate::text::goal_again;
use risetime_analysis::goal::{Reaching, Sought};
use serde_json::{Value, json};

/// Writes the options that reach a goal, and their cost, as JSON. Ends in a newline.
pub fn goal(s: &Sought, command: &str) -> String {
    let b = &s.base.measured;
    let option = |one: &Reaching| option(s, one, command);
    print(&json!({
        "schema": SCHEMA,
        "workload": b.workload,
        "platform": b.platform,
        "policy": b.policy,
        "backend": "sim",
        "seed": s.seed,
        "goal": s.goal.text,
        "metric": s.goal.figure.name,
        "least": s.least.name,
        "settings": settings(&b.settings),
        "phases": b.starts.len(),
        "now": measured(&s.base),
        "options": s.reaching.iter().map(option).collect::<Vec<_>>(),
        "short": s.short.iter().map(option).collect::<Vec<_>>(),
        "tried": s.tried.0,
        "reached": s.tried.1,
        "simulations": s.runs,
        "untried": s.untried,
        "cut": s.cut,
        "not_tried": s.left_out,
        "cautions": super::cautions(&b.cautions),
    }))
}

fn measured(one: &Reaching) -> Value {
    json!({
        "holds": one.holds,
        "value": estimate(one.measured.estimate(0).as_ref()),
        "cost": estimate(one.measured.estimate(1).as_ref()),
        "work_ms": estimate(one.measured.estimate(2).as_ref()),
    })
}

fn option(s: &Sought, one: &Reaching, command: &str) -> Value {
    json!({
        "what": apply::words(&one.steps),
        "options": apply::options(&one.steps),
        "apply": apply::lines(&one.steps),
        "command": goal_again(s, one, command).join(" "),
        "measured": measured(one),
        "cost_change": difference(one.dearer(&s.base).as_ref()),
        "work_change_ms": difference(one.measured.difference(&s.base.measured, 2).as_ref()),
    })
}
