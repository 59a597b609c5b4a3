//! Figures over start phases, for a program.

use super::{SCHEMA, print};
use crate::words::round3;
use risetime_analysis::verify::{Equivalence, Figure, Side, Tally, all_equivalent};
use serde_json::{Value, json};

/// Writes every figure of one experiment, on both sides, as JSON. Ends in a newline.
pub fn verify_spread(release: &str, found: &Equivalence) -> String {
    let mut record = json!({"schema": SCHEMA, "kernel": release, "mode": "spread"});
    if let (Value::Object(all), Value::Object(own)) = (&mut record, experiment(found)) {
        all.extend(own);
    }
    print(&record)
}

/// Writes many experiments as JSON, and whether they hold together. Ends in a newline.
pub fn verify_spread_set(release: &str, set: &[Equivalence]) -> String {
    let tally = Tally::of(set.iter().flat_map(|e| &e.figures));
    print(&json!({
        "schema": SCHEMA, "kernel": release, "mode": "spread",
        "experiments": set.iter().map(experiment).collect::<Vec<_>>(),
        "equivalent": tally.equivalent, "different": tally.different, "undecided": tally.undecided,
        "holds": all_equivalent(set),
    }))
}

fn experiment(found: &Equivalence) -> Value {
    let tally = Tally::of(&found.figures);
    json!({
        "experiment": found.name, "phases": found.phases,
        "figures": found.figures.iter().map(figure).collect::<Vec<_>>(),
        "equivalent": tally.equivalent, "different": tally.different, "undecided": tally.undecided,
        "holds": found.holds(),
    })
}

fn figure(f: &Figure) -> Value {
    let side = |s: &Side| match f.pairs {
        0 => Value::Null,
        _ => json!({"mean": round3(s.mean), "min": round3(s.min), "max": round3(s.max)}),
    };
    let interval = f.interval.map(|(low, high)| json!([round3(low), round3(high)]));
    json!({
        "figure": f.kind.as_str(), "of": f.of, "unit": f.kind.unit(), "pairs": f.pairs,
        "alone": f.alone, "reference": side(&f.reference), "simulated": side(&f.candidate),
        "difference": round3(f.difference), "interval": interval, "margin": round3(f.margin),
        "verdict": f.verdict.as_str(),
    })
}
