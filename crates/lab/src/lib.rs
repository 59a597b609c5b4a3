//! Backends put to work: experiments from what a person asked for, and their results.
//!
//! ```text
//! Request ── experiments() ──> Experiment(s) ── run() ──> RunResult (+ Timeline)
//!                                            └─ phases() ─> one result a start phase, medians
//! ```

mod ablation;
mod advise;
pub mod deploy;
#[cfg(test)]
#[path = "../../../tests/draws.rs"]
mod draws;
pub mod executor;
mod explain;
mod graphs;
mod history;
#[cfg(unix)]
mod kept;
mod measure;
mod parallel;
mod phases;
mod request;
mod run;
mod study;
mod sweep;
mod verify;

pub use ablation::{Ablation, ablation};
pub use advise::{Goal, MIN_BUDGET, Wanted, advise, advise_goal, advised_on};
pub use explain::{Why, explain};
pub use graphs::{Answer, Graphs, Optimised, optimised};
pub use history::{Kernel, Told, WANTED, history, history_bisect, simulated_only, task_of};
#[cfg(unix)]
pub use kept::{Kept, read_kept};
pub use measure::{Grid, measure, measure_from, measure_on};
pub use phases::{PhaseRuns, phase_spans, run_again, run_each, run_phases, seed_of};
pub use request::{DEFAULT_SECONDS, MAX_SECONDS, Request, check_fit, check_supported, rehearse};
pub use request::{doubts, policy_doubts, quoted, reservation_doubts, workload_doubts};
pub use run::{Run, both_ways, record, run, run_beside};
pub use study::{STUDY_PHASES, check_study, reproduce};
pub use sweep::{MAX_POINTS, axis, named, sweep, varied};
pub use verify::{
    Can, Case, MadeWith, OUTSIDE, Recorded, SET_PHASES, SET_SEED, SPREAD_PHASES, Shrunk,
    Verification, WIDE_ON, Wrong, beside, catch, outside, record_set, set, set_holds, shrink,
    spread_all, spread_twins, step, step_all, verify, verify_phases, verify_twin, wide, wide_named,
};
