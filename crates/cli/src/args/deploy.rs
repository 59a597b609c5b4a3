//! Arguments of `risetime deploy`.

use super::rtapp::{Reader, Reading};
use super::values::{CpuList, cpus, file, percents, permille, setting, utilisation};
use crate::complete;
use clap::{Args, Subcommand, ValueEnum};
use risetime_model::settings::Value;
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(crate) enum Deploy {
    /// Partition tasks onto CPUs, prove and try that they are in time, and print masks and attributes; exit code 1: not all of them
    /// fit, or they are not guaranteed
    #[command(
        after_long_help = "Examples:\n  risetime deploy plan robot.toml --platform rpi4\n  risetime deploy plan robot.toml --platform rpi4 --policy linux-6.12 --housekeeping 0 --workload plan.json\n      what a file says, and what is promised: docs/deploy.md"
    )]
    Plan(Plan),
    /// Draw a task set by a seed, as rt-app JSON: one for `run --workload`, `plan` or a real kernel
    #[command(
        after_long_help = "Examples:\n  risetime deploy draw --tasks 8 --utilisation 2.5 --seed 7 > set.json\n  risetime deploy draw --tasks 2 --utilisation 1.2 --graph layered --nodes 6 --output graphs.json\n      how, and after whom: docs/task-sets.md"
    )]
    Draw(Draw),
    /// Read a task set (rt-app JSON, PARTSim's YAML, needs) and write it as rt-app JSON under a policy; a system file of PARTSim: as a
    /// platform
    #[command(
        after_long_help = "Examples:\n  risetime deploy convert taskset.yml --scheduler rm > set.json\n  risetime deploy convert system.yml > my-soc.toml\n      what is read, and what of it has no effect: docs/task-sets.md"
    )]
    Convert(Convert),
    /// Put graphs of real-time functions on CPUs, frequencies and devices at the least power; exit code 1: none was found
    #[command(
        after_long_help = "Example:\n  risetime deploy optimise vision.toml --platform odroid-xu4 --objective slack --workload vision.json\n      what a file says, and which program is solved: docs/optimiser.md"
    )]
    Optimise(Optimise),
}

#[derive(Args, Debug)]
pub(crate) struct Draw {
    /// Number of tasks, or of graphs of them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) tasks: u32,
    /// Utilisation of all tasks together: 1 is a CPU of capacity 1024 at its highest frequency
    #[arg(long, value_name = "U", value_parser = utilisation)]
    pub(crate) utilisation: f64,
    /// Algorithm that shares the utilisation out among them
    #[arg(long, value_enum, default_value = "randfixedsum")]
    pub(crate) by: By,
    /// The shortest period
    #[arg(long, value_name = "US", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=4_194_304))]
    pub(crate) shortest_us: u64,
    /// The longest period; in between log-uniform
    #[arg(long, value_name = "US", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=4_194_304))]
    pub(crate) longest_us: u64,
    /// Periods are whole multiples of it
    #[arg(long, value_name = "US", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=4_194_304))]
    pub(crate) step_us: u64,
    /// Deadlines are drawn, too, between what a task needs at least and its period
    #[arg(long)]
    pub(crate) constrained: bool,
    /// Each task is a graph of tasks that wait for each other
    #[arg(long, value_enum, requires = "nodes")]
    pub(crate) graph: Option<Graph>,
    /// Tasks of a graph
    #[arg(long, value_name = "N", requires = "graph", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) nodes: Option<u32>,
    /// Probability of an edge, in %
    #[arg(long, value_name = "PERCENT", default_value_t = 30, requires = "graph", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) edges: u8,
    /// Layers of a graph
    #[arg(long, value_name = "N", default_value_t = 3, requires = "graph", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) layers: u32,
    /// Number of mutexes; half of the tasks hold one for up to a fifth of their work
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(crate) resources: u32,
    /// A kind of work of the platform's tables; repeated: each task does one of them
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Vec<String>,
    /// Seed of the draw: the same seed draws the same set
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) written: Written,
}

#[derive(Args, Debug)]
pub(crate) struct Convert {
    /// A task set (.json, .yml), what tasks need (.toml), or a system of PARTSim's (.yml)
    #[arg(add = complete::anything())]
    pub(crate) file: String,
    /// Length of PARTSim's tick
    #[arg(long, value_name = "US", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) tick_us: u64,
    /// Kind of work of a system by which CPUs are compared (`capacity`) [default: its first]
    #[arg(long, value_name = "KIND")]
    pub(crate) plain: Option<String>,
    /// Each task of a graph begins when its part of the deadline does, and is due when that is over
    #[arg(long)]
    pub(crate) slices: bool,
    #[command(flatten)]
    pub(crate) reading: Reading,
    #[command(flatten)]
    pub(crate) written: Written,
}

/// Written form of a task set.
#[derive(Args, Debug)]
pub(crate) struct Written {
    /// Under which policy its tasks run
    #[arg(long, value_enum, default_value = "edf")]
    pub(crate) scheduler: Policy,
    /// First jobs come together, so long after the start; else each when its task first runs
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u64).range(1..=3_600_000_000))]
    pub(crate) together_us: Option<u64>,
    /// Program that is to run the set, as `risetime export` writes for it [default: risetime]
    #[arg(long = "for", value_name = "PROGRAM", value_enum)]
    pub(crate) reader: Option<Reader>,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE", value_parser = file)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// SCHED_DEADLINE: its server, or what it needs
    Edf,
    /// SCHED_FIFO, the shortest period first
    Rm,
    /// SCHED_FIFO, the shortest deadline first
    Dm,
    /// SCHED_FIFO, one priority for all
    Fifo,
    /// SCHED_RR, one priority for all
    Rr,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// Stafford's: evenly over all that have this sum and none above 1
    Randfixedsum,
    /// UUniFast, drawn again where one is above 1
    UunifastDiscard,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Graph {
    /// An edge between any two
    ErdosRenyi,
    /// Edges from layer to layer
    Layered,
}

#[derive(Args, Debug)]
pub(crate) struct Optimise {
    /// The graphs (.toml)
    #[arg(add = complete::anything())]
    pub(crate) file: String,
    /// A built-in platform or a platform file
    #[arg(long, short, value_name = "P", add = complete::platform())]
    pub(crate) platform: String,
    /// Objective: the least power, or of all with the least power the one with the largest least
    /// slack
    #[arg(long, value_enum, default_value = "power")]
    pub(crate) objective: Objective,
    /// Power above the least, in %, that may be spent on more slack, with `--objective slack`
    #[arg(long, value_name = "PERCENT", value_parser = permille)]
    pub(crate) slack_power: Option<u64>,
    /// Solver that searches the deployment
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) solver: Solver,
    /// Servers get so many % of what the nodes take at most [default: 105, or the first of more whose plan is in time as it runs]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(100..=1000))]
    pub(crate) factor: Option<u64>,
    /// Whether deadlines come before who asks devices, as in every stock kernel [default: that, or what is found]
    #[arg(long, value_enum, value_name = "ORDER")]
    pub(crate) class_order: Option<ClassOrder>,
    /// The kernel under which what is found is tried
    #[arg(long, value_name = "NAME[+key=value…]", default_value = "mainline", add = complete::policy())]
    pub(crate) policy: String,
    /// An answer in so many seconds, with what is known of it by then
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) within: u64,
    /// Write what was found as a workload for `risetime run`
    #[arg(long, value_name = "OUT.json", value_parser = file)]
    pub(crate) workload: Option<PathBuf>,
    /// Range of what jobs in the workload take of what they may, in %, drawn for each
    #[arg(long, value_name = "LOW-HIGH", requires = "workload", value_parser = percents)]
    pub(crate) runs: Option<(u64, u64)>,
    /// Seed of what is drawn
    #[arg(long, value_name = "N", default_value_t = 1, requires = "runs")]
    pub(crate) seed: u64,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Objective {
    Power,
    Slack,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClassOrder {
    /// SCHED_DEADLINE first: who asks devices has a CPU without deadlines
    DlRt,
    /// SCHED_FIFO first (no stock kernel): nodes may be on that CPU, too
    RtDl,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Solver {
    /// exact, which begins with descent
    Auto,
    /// Deadlines by work, the largest node where it takes least, domains slower one by one
    Greedy,
    /// Downhill from the greedy deployment and from many other starts
    Descent,
    /// Every deployment, but for those that cannot be the best
    Exact,
    /// Linear programs, solved by HiGHS (`cargo build --features highs`)
    Highs,
}

#[derive(Args, Debug)]
pub(crate) struct Plan {
    /// Needs of the tasks (.toml), or a task set (.json, .yml)
    #[arg(add = complete::anything())]
    pub(crate) file: String,
    /// A built-in platform or a platform file
    #[arg(long, short, value_name = "P", add = complete::platform())]
    pub(crate) platform: String,
    /// Length of PARTSim's tick
    #[arg(long, value_name = "US", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) tick_us: u64,
    /// Scheduler of the tasks that are guaranteed something
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) scheduler: Scheduler,
    /// Choice among the CPUs on which a task fits: the first, the fullest, the emptiest
    #[arg(long, value_enum, default_value = "worst")]
    pub(crate) fit: Fit,
    /// All of them as a real-time group on one CPU, under the least deadline server of that period
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u64).range(100..=4_194_304))]
    pub(crate) server_period_us: Option<u64>,
    /// The kernel that it is for, NAME[+key=value…]: its admission, its governor
    #[arg(long, value_name = "NAME[+key=value…]", default_value = "mainline", add = complete::policy())]
    pub(crate) policy: String,
    /// A setting of it, such as governor=performance; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, add = complete::setting())]
    pub(crate) set: Vec<(String, Value)>,
    /// Take tasks to need so many % more than they declare (beside the margin that budgets have anyway)
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1000))]
    pub(crate) margin: u64,
    /// Measured interference: a histogram of `rtla osnoise hist` or `rtla timerlat hist`; may be
    /// repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) interference: Vec<String>,
    /// Tasks of the file go on these CPUs alone: 2-3, or 0,2-3 [default: all]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub(crate) cpus: Option<CpuList>,
    /// Tasks of the file go on none of these CPUs
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub(crate) housekeeping: Option<CpuList>,
    /// Write the plan as a workload for `risetime run`: as it was tried
    #[arg(long, value_name = "OUT.json", value_parser = file, conflicts_with = "server_period_us")]
    pub(crate) workload: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheduler {
    /// Deadlines if all fit so, else priorities by deadline
    Auto,
    /// SCHED_DEADLINE, a CPU each
    Edf,
    /// SCHED_FIFO, the shortest period first
    Rm,
    /// SCHED_FIFO, the shortest deadline first
    Dm,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    First,
    Best,
    Worst,
}
