//! One experiment under one release after another.

use super::{SCHEMA, difference, print, spread};
use crate::words::round3;
use risetime_analysis::history::{Bisected, Build, History, Release, Side, Taken};
use serde_json::{Value, json};

/// Writes a history of releases as JSON. Ends in a newline.
pub fn history(h: &History) -> String {
    let figures: Vec<Value> =
        h.figures.iter().map(|f| json!({"name": f.name, "about": f.about})).collect();
    let releases: Vec<Value> =
        h.releases.iter().enumerate().map(|(i, r)| release(h, i, r)).collect();
    let missing: Vec<String> = h.missing.iter().map(|rev| rev.to_string()).collect();
    print(&json!({
        "schema": SCHEMA, "workload": h.workload, "platform": h.platform, "task": h.task,
        "phases": h.phases, "figures": figures, "releases": releases, "missing": missing,
        "notes": h.notes,
    }))
}

fn release(h: &History, at: usize, r: &Release) -> Value {
    let of = |all: &[Taken], side: Side| -> Vec<Value> {
        let figure = |(i, t): (usize, &Taken)| {
            json!({
                "name": h.figures.get(i).map(|f| &f.name), "spread": spread(&t.spread), "groups": groups(t),
                "step": difference(h.step(at, i, side).as_ref()), "changed": h.changed(at, i, side),
            })
        };
        all.iter().enumerate().map(figure).collect()
    };
    let Build { hz, preemption, uclamp, energy_model } = &r.build;
    json!({
        "release": r.name, "simulated_as": format!("linux-{}", r.rev),
        "hz": hz, "preemption": preemption, "uclamp": uclamp, "energy_model": energy_model,
        "kernel": r.real.as_deref().map(|all| of(all, Side::Real)),
        "simulated": of(&r.simulated, Side::Simulated),
        "differ": (0..r.simulated.len()).filter(|i| h.disagrees(at, *i))
            .filter_map(|i| h.figures.get(i).map(|f| &f.name)).collect::<Vec<_>>(),
    })
}

/// The two groups of a bistable figure.
fn groups(t: &Taken) -> Value {
    let of = |groups: [(f64, usize); 2]| groups.map(|(x, n)| json!({"median": round3(x), "n": n}));
    json!(t.groups().map(of))
}

/// Writes as JSON with which release a figure makes its largest step. Ends in a newline.
pub fn bisected(
    figure: &str,
    side: Side,
    releases: &[String],
    found: &Bisected,
    between: &[String],
) -> String {
    let asked: Vec<Value> = found
        .asked
        .iter()
        .map(|(i, t, step)| {
            json!({
                "release": releases[*i], "spread": spread(&t.spread), "groups": groups(t),
                "step": difference(step.as_ref()),
            })
        })
        .collect();
    print(&json!({
        "schema": SCHEMA, "figure": figure,
        "side": match side { Side::Real => "kernel", Side::Simulated => "simulated" },
        "first": found.first.map(|i| &releases[i]), "sure": found.asked.iter()
            .any(|(i, _, step)| Some(*i) == found.first && step.is_some_and(|step| step.is_sure())),
        "asked": asked, "between": between,
    }))
}
