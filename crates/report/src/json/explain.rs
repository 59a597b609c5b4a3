//! Explanations of a burst's debt.

use super::{SCHEMA, print, spread};
use crate::words::round3;
use risetime_analysis::Spread;
use risetime_analysis::explain::{About, CauseShare, Explanation, Over};
use serde_json::{Value, json};

/// Writes explanations as JSON, one a start phase, and with several of them their medians. Ends in
/// a newline.
pub fn explain(explanations: &[Explanation]) -> String {
    let list: Vec<Value> = explanations.iter().map(explanation).collect();
    let mut record = json!({"schema": SCHEMA, "explanations": list});
    if explanations.len() > 1 {
        record["summary"] = summary(explanations);
    }
    print(&record)
}

fn explanation(e: &Explanation) -> Value {
    let (key, value) = about(e);
    json!({
        "policy": e.policy,
        "backend": "sim",
        "platform": e.platform,
        "workload": e.workload,
        "seed": e.seed,
        "phase_us": super::us(e.phase),
        "settings": super::settings(&e.settings),
        "comm": e.comm,
        key: value,
        "debt_ms": round3(e.about.ms()),
        "causes": e.causes.iter().map(cause).collect::<Vec<_>>(),
        "affinity_ms": round3(e.affinity_ms),
        "unexplained_ms": round3(e.unexplained_ms),
        "simulations": e.runs,
        "notes": e.notes,
        "cautions": super::cautions(&e.cautions),
    })
}

/// The key and the value that say what is explained.
fn about(e: &Explanation) -> (&'static str, Value) {
    match &e.about {
        About::Burst(b) => ("burst", super::burst(b)),
        About::Pieces { job, over, chosen, of, ms } => {
            let over = match over {
                Over::All => json!("all"),
                Over::Worst(share) => json!({"worst": share}),
                Over::One(number) => json!(number),
            };
            let what = if job.is_some() { "jobs" } else { "activations" };
            let value = json!({"what": what, "over": over, "chosen": chosen, "of": of, "mean_ms": round3(*ms)});
            ("pieces", value)
        }
    }
}

fn cause(c: &CauseShare) -> Value {
    json!({
        "cause": c.cause,
        "acts": c.acts,
        "share_ms": round3(c.ms),
        "share_error_ms": c.error_ms.map(round3),
        "gain_ms": round3(c.gain_ms),
        "alone_ms": round3(c.alone_ms),
    })
}

fn summary(all: &[Explanation]) -> Value {
    let over =
        |f: &dyn Fn(&Explanation) -> f64| spread(&Spread::of(all.iter().map(|e| Some(f(e)))));
    let causes = all.first().map_or(&[][..], |e| &e.causes);
    let cause = |(i, c): (usize, &CauseShare)| {
        json!({
            "cause": c.cause,
            "share_ms": over(&|e| e.causes[i].ms),
            "gain_ms": over(&|e| e.causes[i].gain_ms),
            "alone_ms": over(&|e| e.causes[i].alone_ms),
        })
    };
    json!({
        "phases_us": all.iter().map(|e| super::us(e.phase)).collect::<Vec<_>>(),
        "debt_ms": over(&|e| e.about.ms()),
        "causes": causes.iter().enumerate().map(cause).collect::<Vec<_>>(),
        "affinity_ms": over(&|e| e.affinity_ms),
        "unexplained_ms": over(&|e| e.unexplained_ms),
    })
}
