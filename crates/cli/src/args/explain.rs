//! Options of `risetime explain`.

use super::values::{Chosen, Window, chosen, phase, seconds, window};
use super::{Clamped, OfTrace, Plot, Save, TextOrJson};
use crate::complete;
use clap::Args;
use risetime_kernel::units::Span;

#[derive(Args, Debug)]
pub(crate) struct Explain {
    /// A built-in workload (`risetime list workloads`), an rt-app JSON file, or a trace
    #[arg(add = complete::workload())]
    pub(crate) workload: String,
    /// A built-in platform (`risetime list platforms`) or a platform file; needed unless it is a trace
    #[arg(long, short, value_name = "P", add = complete::platform())]
    pub(crate) platform: Option<String>,
    /// The task whose reported burst is explained, with --over also the name of a job [default: the workload's first]; of a
    /// trace also its number (PID) [default there: the one that ran longest]
    #[arg(long, value_name = "NAME|PID")]
    pub(crate) task: Option<String>,
    /// Stretch of a trace, in seconds from its begin or by its own clock; either end may be left out
    #[arg(long, value_name = "A..B", value_parser = window, allow_hyphen_values = true)]
    pub(crate) window: Option<Window>,
    /// The policy, NAME[+key=value…]
    #[arg(long, value_name = "NAME[+key=value…]", default_value = "mainline", add = complete::policy())]
    pub(crate) policy: String,
    /// Instead of the burst: `all` activations of the task (or jobs of that name), the `worst` 1 % (`worst:5`: 5 %), or one by
    /// its number from 0; the same ones in every simulation. Of a trace, activations longer than a time (`16.6ms`) [default of a
    /// trace: the longest]
    #[arg(long, value_name = "all|worst|N|TIME", value_parser = chosen)]
    pub(crate) over: Option<Chosen>,
    /// Print every activation of a trace, step by step
    #[arg(long)]
    pub(crate) full: bool,
    /// Seconds to be simulated at most, for each start phase; where all sets of causes are more, sets are drawn and shares have
    /// an error (what each cause alone saves is always looked at)
    #[arg(long, value_name = "S", default_value_t = 2000.0, value_parser = seconds)]
    pub(crate) budget: f64,
    #[command(flatten)]
    pub(crate) settings: Clamped,
    /// Length of the run [default: the workload's, else 3]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub(crate) seconds: Option<f64>,
    /// The workload starts this much later, to the ns (`1500.25`)
    #[arg(long, value_name = "US", default_value = "0", allow_negative_numbers = true, value_parser = phase)]
    pub(crate) phase_us: Span,
    /// Explain N start phases, k · 7.618 ticks apart, and report medians
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) phases: u32,
    /// Seed of everything that is drawn by chance
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) save: Save,
    #[command(flatten)]
    pub(crate) plot: Plot,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = TextOrJson::Text)]
    pub(crate) format: TextOrJson,
}

impl Explain {
    /// Returns the options of a trace.
    pub(crate) fn of_trace(&self) -> OfTrace {
        let (task, platform) = (self.task.clone(), self.platform.clone());
        OfTrace { task, window: self.window, platform }
    }
}
