//! Decisions one by one, for a program.

use super::{SCHEMA, print};
use risetime_analysis::verify::step::{Stepped, bounds};
use serde_json::json;

/// Writes all decisions of one experiment, or of several, as JSON. Ends in a newline.
pub fn verify_step(name: &str, release: &str, found: &Stepped) -> String {
    let decisions: Vec<_> = found
        .rows
        .iter()
        .map(|(decision, row)| {
            json!({
                "decision": decision.as_str(), "asked": row.asked, "comparable": row.comparable,
                "real": row.real, "alike": row.agree, "trivial": row.trivial,
                "bounds_pct": bounds(row.agree, row.real).map(|(low, high)| [low, high]),
                "wanted_pct": decision.wanted(), "holds": row.holds(decision.wanted()),
            })
        })
        .collect();
    let states: Vec<_> = found
        .states
        .iter()
        .map(|s| {
            json!({
                "state": s.what, "compared": s.compared, "same": s.equal, "near": s.near, "p90": s.p90,
                "max": s.most, "wanted_pct": s.wanted(), "holds": s.holds(),
            })
        })
        .collect();
    let differences: Vec<_> = found
        .differences
        .iter()
        .map(|d| {
            json!({
                "experiment": d.experiment, "at_ns": d.at.0, "decision": d.decision.as_str(),
                "about": d.about, "own": d.own, "given": d.given, "cause": d.cause.as_str(),
                "reason": d.reason, "theirs": d.theirs,
            })
        })
        .collect();
    let moves = &found.moves;
    print(&json!({
        "schema": SCHEMA, "experiment": name, "kernel": release, "mode": "step",
        "decisions": decisions, "states": states, "differences": differences,
        "moves": {
            "given": moves.given, "recalled": moves.recalled,
            "own": moves.own, "precise": moves.precise,
        },
        "out_of_step": found.lost, "holds": found.holds(),
    }))
}
