//! Everything that simulations and records are held to: one module a subject.

mod admission;
mod boosting;
mod causes;
mod cautions;
mod chromebook;
mod compare;
mod corpus;
mod dl_sets;
mod energy;
mod every_kind;
mod explain;
mod figures_hold;
mod governors;
mod guarantees;
mod guests;
mod hrtimers;
mod kinds;
mod limits;
mod optimiser;
mod perfetto;
mod rampup;
mod saved;
mod side_by_side;
mod what_shipped;

#[path = "../../../tests/page.rs"]
mod page;

#[path = "../../../tests/draws.rs"]
mod draws;

#[path = "../../sim/src/tests/generate.rs"]
mod generate;

#[path = "side_by_side/figures.rs"]
#[allow(dead_code, reason = "only the experiments are wanted here")]
mod side_by_side_figures;

use risetime_kernel::units::Span;
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Policy, Workload};
use std::sync::Arc;

/// A policy with settings, on what was drawn; `generate` makes its own by this.
fn experiment(
    platform: Platform,
    workload: Workload,
    policy: &str,
    set: &[(&str, Value)],
    duration: Span,
) -> Experiment {
    let set: Vec<(String, Value)> = set.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
    let policy = Policy::from_arg_with(policy, &set).expect("a policy");
    let settings = risetime_sim::resolve(&platform, &policy).expect("settings");
    let (platform, workload) = (Arc::new(platform), Arc::new(workload));
    Experiment { platform, workload, policy, settings, duration, phase: Span(0), seed: 1 }
}
