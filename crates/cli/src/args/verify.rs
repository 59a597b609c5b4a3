//! Arguments of `verify`.

use super::values::phase;
use super::{Clamped, DEFAULT_SHARE, IdleTimes, Plot, TextOrJson};
use crate::complete;
use clap::{Args, ValueEnum};
use risetime_kernel::units::Span;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Verify {
    /// A built-in workload, an rt-app JSON file, or one of those drawn (`wide-7-3`: it knows its platform)
    #[arg(required_unless_present_any = ["all", "experiment", "mutants", "draw"], add = complete::workload())]
    pub(crate) workload: Option<String>,
    /// A built-in platform or a platform file
    #[arg(long, short, value_name = "P", add = complete::platform())]
    pub(crate) platform: Option<String>,
    /// N experiments drawn from a seed, on 14 machines (docs/wide-draw.md), in both modes
    #[arg(long, value_name = "N", conflicts_with_all = ["workload", "platform", "all", "experiment", "mutants", "record"],
        value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) draw: Option<u64>,
    /// The seed of --draw
    #[arg(long, value_name = "N", default_value_t = 1, requires = "draw")]
    pub(crate) seed: u64,
    /// Only say what is drawn, with --draw
    #[arg(long, requires = "draw")]
    pub(crate) list: bool,
    /// Make the experiment smaller as long as it goes wrong; the result is printed as a file
    #[arg(long, requires = "workload", conflicts_with_all = ["phases", "all", "experiment", "mutants", "draw"])]
    pub(crate) shrink: bool,
    /// Fault that must stay, with --shrink: `checks` (less hold than must), `energy` (5 % off), or
    /// one check's name
    #[arg(long = "while", value_name = "WHAT", default_value = "checks", requires = "shrink")]
    pub(crate) wrong: String,
    /// Number of runs on both sides at most, with --shrink
    #[arg(long, value_name = "N", default_value_t = 200, requires = "shrink", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) tries: u32,
    /// The whole set of experiments, in both modes, each from three start phases (some ten minutes)
    #[arg(long, conflicts_with_all = ["workload", "platform", "experiment", "mutants"])]
    pub(crate) all: bool,
    /// Experiments of the set whose names begin so (`m1/ramp`); may be repeated
    #[arg(long, value_name = "NAME", conflicts_with_all = ["workload", "platform"])]
    pub(crate) experiment: Vec<String>,
    /// Test the checks: wrong simulators, and which experiment of the set exposes each
    #[arg(long, conflicts_with_all = ["workload", "platform"])]
    pub(crate) mutants: bool,
    /// Show the first decision that differs, and what happened around it, with --mode step
    #[arg(long)]
    pub(crate) first: bool,
    /// Directory where --mode spread and --mode step keep what the kernel did, and look for it
    /// before they boot [default: in the cache]
    #[arg(long, value_name = "DIR")]
    pub(crate) references: Option<PathBuf>,
    /// Keep what the kernel did in this directory, for judging without one (not what is drawn)
    #[arg(long, value_name = "DIR", conflicts_with_all = ["workload", "platform"])]
    pub(crate) record: Option<PathBuf>,
    /// Seed from which the second half of the set is drawn
    #[arg(long, value_name = "N", default_value_t = risetime_verify::SET_SEED)]
    pub(crate) set_seed: u64,
    /// The policy, NAME[+key=value…] [default: the booted kernel's]
    #[arg(long, value_name = "NAME[+key=value…]", add = complete::policy())]
    pub(crate) policy: Option<String>,
    #[command(flatten)]
    pub(crate) settings: Clamped,
    /// Length of the run [default: the workload's, else 3]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub(crate) seconds: Option<f64>,
    /// The workload starts this much later, to the ns (`1500.25`)
    #[arg(long, value_name = "US", default_value = "0", allow_negative_numbers = true, value_parser = phase)]
    pub(crate) phase_us: Span,
    /// An Image of your own, or a release in the cache (of `7.2` the newest) [default: the newest there]
    #[arg(long, value_name = "PATH", add = complete::kernel())]
    pub(crate) kernel: Option<String>,
    /// Whether idle states take the time that the platform says, on both sides [default: on; off with --mode step, --record and
    /// --mutants]
    #[arg(long, value_enum)]
    pub(crate) idle_times: Option<IdleTimes>,
    /// Decisions that the simulator may take
    #[arg(long, value_enum, default_value_t = VerifyMode::Free)]
    pub(crate) mode: VerifyMode,
    /// Number of the six checks that must hold
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SHARE, value_parser = clap::value_parser!(u8).range(0..=6))]
    pub(crate) share: u8,
    /// All six must hold
    #[arg(long, conflicts_with = "share")]
    pub(crate) strict: bool,
    /// Number of start phases on both sides: the medians of the time to the top OPP may be 5 %
    /// apart; of the set, the median number of checks that hold counts [default there: 3; of --mode
    /// spread: 16]
    #[arg(long, value_name = "N", conflicts_with = "mutants",
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) phases: Option<u32>,
    #[command(flatten)]
    pub(crate) plot: Plot,
    /// Format of the verdict
    #[arg(long, value_enum, default_value_t = TextOrJson::Text)]
    pub(crate) format: TextOrJson,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VerifyMode {
    /// The simulator decides everything itself, and its course is checked; `spread` judges figures
    Free,
    /// Free, from 16 start phases: are the figures that a user reads the same on both sides? Checks
    /// are not counted
    Spread,
    /// The simulator follows the kernel's run and is asked at each decision; what it answers is
    /// counted, not carried out
    Step,
    /// The kernel's frequencies and migrations are fed in, when tasks were awake, and how long ticks
    /// took: only the signals and who is picked are judged
    Given,
}
