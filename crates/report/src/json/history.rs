//! One experiment under one release after another.

use super::{SCHEMA, print, spread};
use risetime_analysis::Spread;
use risetime_analysis::history::{Bisected, Build, History, Release, Side};
use serde_json::{Value, json};

/// Which release changed what? Ends in a newline.
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
    let of = |all: &[Spread], side: Side| -> Vec<Value> {
        let figure = |(i, s): (usize, &Spread)| {
            json!({
                "name": h.figures.get(i).map(|f| &f.name), "spread": spread(s),
                "changed": h.changed(at, i, side),
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

/// Which release was the first that differs? Ends in a newline.
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
        .map(|(i, s)| json!({"release": releases[*i], "spread": spread(s)}))
        .collect();
    print(&json!({
        "schema": SCHEMA, "figure": figure,
        "side": match side { Side::Real => "kernel", Side::Simulated => "simulated" },
        "first": found.first.map(|i| &releases[i]), "asked": asked, "between": between,
    }))
}
