//! Options of `risetime report`.

use super::values::{Job, Window, job, window};
use super::{AnyFormat, Plot};
use crate::complete;
use clap::Args;

/// Examples in the help of `risetime report`.
pub(crate) const REPORT_EXAMPLES: &str = "\
Examples:
  risetime report trace.dat
      what happened in a trace: tasks by CPU time, their waits by cause, jobs, CPUs (docs/traces.md)
  risetime report trace.html --task RenderThread --window 2.5..4 --platform pixel6
  risetime run phone --platform pixel6 --save-result phone.json
  risetime report phone.json --full
  risetime compare rampup -p m1 --policy linux-6.8 --policy linux-7.2 --save-result both.json
  risetime report both.json --format mail";

#[derive(Args, Debug)]
pub(crate) struct Report {
    /// A trace, or a file that a command wrote with --save-result FILE; its content says what it is
    #[arg(value_hint = clap::ValueHint::FilePath)]
    pub(crate) file: String,
    #[command(flatten)]
    pub(crate) of_trace: OfTrace,
    /// The jobs of a trace: a task whose wakeups begin jobs, with their period if it is known (`ui=16.6ms`), or slices of that
    /// name that programs mark in the trace [default: every period that is found, every frame that is told]
    #[arg(long, value_name = "NAME[=PERIOD]", value_parser = job)]
    pub(crate) job: Option<Job>,
    /// Print all there is, not one screen: plots, residencies, every task
    #[arg(long)]
    pub(crate) full: bool,
    /// List of all bursts, too: of a trace (those of --task), of runs that were saved with --bursts or --full
    #[arg(long)]
    pub(crate) bursts: bool,
    /// Print every phase, too, of runs of --phases
    #[arg(long)]
    pub(crate) every_phase: bool,
    #[command(flatten)]
    pub(crate) plot: Plot,
    /// Format of the results
    #[arg(long, value_enum, default_value_t = AnyFormat::Text)]
    pub(crate) format: AnyFormat,
}

/// Options of a report of a trace.
#[derive(Args, Debug, Default)]
pub(crate) struct OfTrace {
    /// A task of a trace: its name, that of its instances, a pattern (`kworker*`), or its number (PID)
    #[arg(long, value_name = "NAME|PID")]
    pub(crate) task: Option<String>,
    /// Stretch of a trace, in seconds from its begin or by its own clock; either end may be left out
    #[arg(long, value_name = "A..B", value_parser = window, allow_hyphen_values = true)]
    pub(crate) window: Option<Window>,
    /// Machine of a trace: capacities, OPPs, powers, a built-in platform or a platform file
    #[arg(long, short, value_name = "P", add = complete::platform())]
    pub(crate) platform: Option<String>,
}

impl OfTrace {
    /// Names of the options that were given.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("--task", self.task.is_some()),
            ("--window", self.window.is_some()),
            ("--platform", self.platform.is_some()),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(name, _)| name)
    }
}
