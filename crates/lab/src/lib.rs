//! Backends put to work: experiments from what a person asked for, and their results.
//!
//! ```text
//! Request ── read() ──> Documents ── experiments() ──> Experiment(s) ── run() ──> RunResult (+ Timeline)
//!                                            └─ phases() ─> one result a start phase, medians
//! ```

mod ablation;
mod advise;
pub mod deploy;
mod document;
#[cfg(test)]
#[path = "../../../tests/draws.rs"]
mod draws;
pub mod executor;
mod explain;
mod graphs;
mod history;
mod in_vm;
#[cfg(unix)]
mod kept;
mod measure;
pub mod names;
mod parallel;
mod phases;
mod request;
mod run;
mod sweep;

pub use ablation::{Ablation, ablation};
pub use advise::{Goal, MIN_BUDGET, Wanted, advise, advise_goal, advised_on};
pub use document::{
    Advised, BisectedBy, ComparedBy, Contents, Filed, Found, Listed, Listing, Saved, Shown,
    SoughtBy, Swept, is_saved, read_saved, series_of,
};
pub use explain::{Why, explain};
pub use graphs::{Answer, Graphs, Optimised, optimised};
pub use history::{
    Kernel, Told, WANTED, history, history_bisect, history_experiments, simulated_only, task_of,
};
pub use in_vm::as_in_vm;
#[cfg(unix)]
pub use kept::{Kept, read_kept};
pub use measure::{Grid, measure, measure_each, measure_from, measure_on};
pub use names::{Request, quoted};
pub use parallel::parallel;
pub use phases::{PhaseRuns, phase_span, phase_spans, run_again, run_each, run_phases, seed_of};
pub use request::workload_doubts;
pub use request::{DEFAULT_SECONDS, Documents, MAX_SECONDS, doubts, policy_doubts, rehearse};
pub use run::{Run, both_ways, record, run, run_beside};
pub use sweep::{MAX_POINTS, axis, named, sweep, sweep_of, varied};
