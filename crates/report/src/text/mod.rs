//! Pages that a person reads at a terminal: the answer first, the evidence below it.
//!
//! Every function returns the whole page: as [blocks](crate::page), and as text that fits into
//! [`Style::width`] columns (40 at least) and is plain when no colour is wanted.

mod advice;
mod compare;
mod compared;
mod demo;
mod deploy;
mod deploy_commands;
mod deploy_optimised;
mod explain;
mod figures;
mod goal;
mod history;
mod jobs;
mod lists;
mod phases;
mod run;
mod screen;
mod spread;
mod step;
mod study;
mod sweep;
mod trace;
mod verify;
mod walk;

pub use advice::advice;
pub(crate) use advice::{letter, shown};
pub use compare::{compare, compare_phases};
pub use compared::{compared, mail};
pub(crate) use compared::{energy_of, marks};
pub use demo::{Demo, Next, Published, demo};
pub use deploy::{deploy_plan, deploy_server};
pub use deploy_optimised::{Optimised, Proof, deploy_optimised};
pub use explain::explain;
pub(crate) use explain::{AFFINITY, rest};
pub(crate) use goal::again as goal_again;
pub use goal::goal;
pub use history::{bisected, history};
pub use jobs::late_jobs;
pub(crate) use jobs::sentence as sentence_of_jobs;
pub use lists::{
    Finding, Severity, drawn, findings, listed, names, param_table, platform, policy, workload,
};
pub use phases::phases;
pub use run::{burst_line, migration_line, run};
pub(crate) use run::{running_intervals, sentence, window};
pub use screen::View;
pub use spread::{verify_spread, verify_spread_set};
pub use step::{verify_first, verify_step};
pub use study::{study, study_against, study_contents};
pub use sweep::sweep;
pub use trace::{TraceView, trace};
pub use verify::{Verified, mutants, verify, verify_phases, verify_set};
pub use walk::{WalkView, walk};

/// Appearance of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal; reports use between 40 and 200 of them.
    pub width: usize,
    /// Whether to emit colours.
    pub color: bool,
    /// Whether the terminal shows Unicode; else the nearest ASCII is printed.
    pub unicode: bool,
}

impl Style {
    pub(crate) fn columns(&self) -> usize {
        self.width.clamp(40, 200)
    }
}
