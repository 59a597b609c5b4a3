//! The command line: help, completions and man pages all come from these definitions.

mod convert;
pub(crate) mod deploy;
mod examples;
mod explain;
mod import;
mod on_demand;
mod report;
pub(crate) mod rtapp;
mod values;
mod verify;

use crate::complete;
use clap::{Args, Parser, Subcommand, ValueEnum};
pub(crate) use convert::Convert;
use examples::*;
pub(crate) use explain::Explain;
pub(crate) use import::Import;
use on_demand::OnDemand;
pub(crate) use on_demand::command_for;
use report::REPORT_EXAMPLES;
pub(crate) use report::{OfTrace, Report};
use risetime_kernel::units::Span;
use risetime_model::settings::Value;
use risetime_model::workload::Change;
use risetime_sim::cause::Cause;
use rtapp::{Export, Reading};
use std::path::PathBuf;
pub(crate) use values::{Chosen, Window};
use values::{cause, change, file, hz, phase, picture, setting, start_utils};
pub(crate) use verify::{Verify, VerifyMode};

/// The whole command.
#[derive(Parser, Debug)]
#[command(
    name = "risetime",
    version,
    about = "How long does this Linux system take to become fast, why, and what would fix it?",
    after_help = "Exit codes: 0 ok, 1 a check failed or a run went wrong, 2 usage or bad input, 3 cannot run here.\n\n\
                  Start with `risetime demo`, then `risetime run rampup --platform m1`.",
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// A task becomes busy on a Mac mini M1: what that costs, on one screen
    Demo,
    /// Run one workload on one platform under one or several policies
    #[command(after_long_help = RUN_EXAMPLES)]
    Run(OnDemand<Run>),
    /// Say what happened in a trace; or show again what a command found and saved (`--save-result`)
    #[command(after_long_help = REPORT_EXAMPLES)]
    Report(OnDemand<Report>),
    /// Compare policies over many start states: medians, intervals, what is sure
    #[command(after_long_help = COMPARE_EXAMPLES)]
    Compare(OnDemand<Compare>),
    /// Measure over a grid: any setting, platform, kernel, HZ, or key of the workload varied
    #[command(after_long_help = SWEEP_EXAMPLES)]
    Sweep(OnDemand<Sweep>),
    /// Explain why a task was slow: what its burst lost, shared out among causes by simulations
    /// without them
    #[command(after_long_help = EXPLAIN_EXAMPLES)]
    Explain(OnDemand<Explain>),
    /// Find what could be changed to make it faster, at what energy: clamps, nice, slices, CPUs,
    /// tunables tried out
    #[command(after_long_help = ADVISE_EXAMPLES)]
    Advise(OnDemand<Advise>),
    /// List what there is: platforms, policies, workloads, governors, scheduling classes, …
    List(OnDemand<List>),
    /// Show a platform, policy or workload (a name or a file)
    #[command(
        after_long_help = "Examples:\n  risetime show m1\n  risetime show linux-6.8 --platform m1\n  risetime show my-app.json"
    )]
    Show(OnDemand<Show>),
    /// Check files: do they load, and is anything in them suspicious, such as MHz for kHz or ms for µs?
    #[command(
        after_long_help = "Examples:\n  risetime check my-soc.toml\n  risetime check my-app.json --platform my-soc.toml"
    )]
    Check(OnDemand<Check>),
    /// Write a workload for rt-app, so that it runs there as it does here
    #[command(
        after_long_help = "Examples:\n  risetime export phone --for rt-app-1.0 > phone.json && rt-app phone.json\n  risetime export game --for rt-app --platform pixel6 -o game.json\n      what an rt-app cannot carry is said: docs/rt-app.md"
    )]
    Export(OnDemand<Export>),
    /// Write a trace in another format: trace.dat, ftrace text or Perfetto in, Perfetto or ftrace text out
    #[command(after_long_help = CONVERT_EXAMPLES)]
    Convert(OnDemand<Convert>),
    /// Describe this machine as a platform file
    #[command(
        after_long_help = "Examples:\n  risetime capture -o laptop.toml && risetime run rampup --platform laptop.toml\n  sudo risetime capture        (root reads the energy model in debugfs, too)"
    )]
    Capture(OnDemand<Capture>),
    /// Make a platform file of what another machine, or its device tree, says of itself
    #[command(after_long_help = IMPORT_EXAMPLES)]
    Import(OnDemand<Import>),
    /// Look at this machine: what decides how fast it becomes fast? Changes nothing
    Doctor(OnDemand<Doctor>),
    /// Hold the simulator against a real kernel: the same experiment on both, six checks
    #[command(
        after_long_help = "Examples:\n  risetime verify rampup --platform m1\n  risetime verify rampup --platform m1 --uclamp-max 0 --mode given\n  risetime verify rampup --platform m1 --mode spread\n      are the figures over 16 start phases the same? What was booted is kept, and not booted again\n  risetime verify phone --platform pixel6 --mode step\n      asked at each decision of the kernel: does the simulator decide the same?\n  risetime verify my-app.json --platform my-soc.toml --kernel arch/arm64/boot/Image\n  risetime verify --draw 40 --seed 7\n      forty experiments that nobody chose (--list: what they are; `risetime show wide-7-3 --source`: one of them)\n  risetime verify wide-7-3 --shrink > smaller.json\n      one that fails, made smaller as long as it does"
    )]
    Verify(OnDemand<Verify>),
    /// One experiment under one kernel release after another, real and simulated: which changed what?
    #[command(after_long_help = HISTORY_EXAMPLES)]
    History(OnDemand<History>),
    /// Run a document's experiments, and print its numbers beside ours
    #[command(
        after_long_help = "Examples:\n  risetime reproduce\n      the response-time series of August 2024: every figure of its cover letter\n  risetime reproduce rfc-2024 --figure x1 --plot x1.svg\n      one figure, with the published and our curves drawn over each other\n  risetime reproduce ondemand-2014 --plot ondemand.svg\n      a table of cases and policies; what its document leaves open is searched once\n  risetime reproduce coherent-response\n      does util_est rise in the same time on every CPU?\n  risetime reproduce steady-tasks\n      do periodic tasks keep their util_est, and what does it cost where not?\n      (a minute or two; --phases 8 is a first look)\n  risetime reproduce my-study.toml --format json\n\nExit code 1: a counted row misses, and the study does not argue why (`note`, `instead`); --strict: a row misses."
    )]
    Reproduce(OnDemand<Reproduce>),
    /// Real-time tasks: which CPU, policy and attributes each gets so that all meet their deadlines
    #[command(subcommand)]
    Deploy(OnDemand<deploy::Deploy>),
    /// A real kernel on a virtual SoC: get kernels and QEMU, look around in one
    #[command(subcommand)]
    Vm(OnDemand<Vm>),
    /// Measure experiments that come as documents on standard input, a line each, and answer each with a line
    #[command(
        after_long_help = "Example:\n  echo '{\"risetime\": \"measure\", \"schema\": 1, \"experiment\": …, \"figures\": [\"energy\"]}' | risetime worker\n      the document of an experiment is what `risetime run … --document` prints (docs/documents.md)"
    )]
    Worker,
    /// Print shell completions
    #[command(
        after_long_help = "Example:\n  risetime completions bash > ~/.local/share/bash-completion/completions/risetime"
    )]
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a directory
    Man {
        /// Directory to write to
        directory: PathBuf,
    },
}

/// Number of the six checks that must hold, unless asked for otherwise.
pub(crate) const DEFAULT_SHARE: u8 = 4;

/// The option that makes exit codes fit `git bisect run`.
pub(crate) const GIT_BISECT: &str = "--git-bisect";

/// Default noise of a machine, where nobody says otherwise.
pub(crate) const OF_A_MACHINE: &str = "machine";
/// The default noise where a kernel in the virtual machine is asked, too.
pub(crate) const OF_THE_VM: &str = "vm";

/// A picture of the results.
#[derive(Args, Debug)]
pub(crate) struct Plot {
    /// Draw the results into this file, NAME.svg or NAME.png; may be repeated
    #[arg(id = "plot", long = "plot", value_name = "FILE", value_parser = picture)]
    pub(crate) files: Vec<Picture>,
    /// Colours of the picture
    #[arg(long, value_enum, default_value_t = Theme::Light, requires = "plot")]
    pub(crate) theme: Theme,
}

/// A file for the results.
#[derive(Args, Debug)]
pub(crate) struct Save {
    /// Save the results with their experiments as a JSON document: `risetime report FILE` shows
    /// them again (docs/documents.md)
    #[arg(long, value_name = "FILE", value_parser = file)]
    pub(crate) save_result: Option<PathBuf>,
}

/// A file, and what is written there.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    pub(crate) path: PathBuf,
    pub(crate) png: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Colours for paper, and most mails
    Light,
    /// Colours for a dark screen
    Dark,
}

/// Settings of a command line.
#[derive(Args, Debug)]
pub(crate) struct Set {
    /// A setting for all policies (`risetime list settings`); may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, add = complete::setting())]
    pub(crate) set: Vec<(String, Value)>,
    /// Ticks a second, CONFIG_HZ (100, 250, 300, 1000, …); a real kernel has to have been built so [default: the
    /// platform's]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = hz())]
    pub(crate) hz: Option<u32>,
    /// Noise of a real machine (setting `noise`): timer slack, late timers, time of switches,
    /// wakeups and ticks; `vm` as in the virtual machine, `machine` as on a real one [default:
    /// machine; of what is held against a kernel or is one: vm; of verify's --mode step, --record,
    /// --mutants: off]
    #[arg(long, value_name = "PROFILE", value_parser = clap::builder::PossibleValuesParser::new(risetime_sim::NOISE_PROFILES))]
    pub(crate) noise: Option<String>,
    /// Simulate everything twice, with the simulator's short ways and without: it fails where an event differs, and says so
    /// if none does (docs/performance.md)
    #[arg(long)]
    pub(crate) slow: bool,
}

impl Set {
    pub(crate) fn all(&self) -> Vec<(String, Value)> {
        let noise = self.noise.iter().map(|n| ("noise".to_string(), Value::Name(n.clone())));
        let slow = self.slow.then(|| ("short_ways".to_string(), Value::Int(0)));
        self.set.iter().cloned().chain(noise).chain(slow).collect()
    }
}

/// A start that does not count.
#[derive(Args, Debug)]
pub(crate) struct Skip {
    /// Leave out jobs, activations and wakeups that begin in the workload's first MS (docs/jobs.md); bursts, energy and
    /// all else are of the whole run
    #[arg(long, value_name = "MS", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(0..=86_400_000))]
    pub(crate) skip_ms: Option<u64>,
}

/// Settings, and hints for all tasks.
#[derive(Args, Debug)]
pub(crate) struct Clamped {
    /// util_min of every task (`uclampset -m`)
    #[arg(long, value_name = "0..1024", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(0..=1024))]
    pub(crate) uclamp_min: Option<i64>,
    /// util_max of every task (`uclampset -M`)
    #[arg(long, value_name = "0..1024", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(0..=1024))]
    pub(crate) uclamp_max: Option<i64>,
    #[command(flatten)]
    pub(crate) other: Set,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

impl Clamped {
    pub(crate) fn all(&self) -> Vec<(String, Value)> {
        let clamps = [("uclamp_min", self.uclamp_min), ("uclamp_max", self.uclamp_max)];
        let clamps = clamps.into_iter().filter_map(|(name, v)| Some((name.into(), Value::Int(v?))));
        self.other.all().into_iter().chain(clamps).collect()
    }
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// The simulator
    Sim,
    /// A real kernel in QEMU, on the device tree of the platform (`risetime vm setup` first)
    Vm,
}

/// Times of the virtual machine's idle states.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdleTimes {
    /// The platform's: a program in the kernel lets them pass
    On,
    /// QEMU's: it comes back from each at once
    Off,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Vm {
    /// Get what `--backend vm` needs: a stock kernel, the newest of the mirror if none is in the cache, and QEMU if it
    /// is missing or old
    Setup,
    /// List the kernels in the cache, and those the mirror had when last looked at
    Kernels,
    /// Get a kernel: any, of a generation (`6.12`), or the release named; the newest such in the cache, else of the mirror
    Fetch {
        /// Release as `risetime vm kernels` lists it, or two numbers
        release: Option<String>,
    },
    /// A small prompt in a virtual machine that is this platform to its kernel
    ///
    /// The prompt is no Linux shell: it knows ls, cat, cd, pwd, echo TEXT > FILE, freq, spin, sleep and exit, which is enough
    /// for /sys and /proc. Commands may come from a pipe; the first that fails ends it with exit code 1.
    Shell {
        /// A built-in platform or a platform file
        #[arg(long, short, value_name = "P", add = complete::platform())]
        platform: String,
        /// An Image of your own, or a release in the cache (of `7.2` the newest) [default: the newest there]
        #[arg(long, value_name = "PATH", add = complete::kernel())]
        kernel: Option<String>,
    },
}

/// One experiment: what runs where, under one policy.
#[derive(Args, Debug)]
pub(crate) struct Subject {
    /// A built-in workload (`risetime list workloads`) or an rt-app JSON file
    #[arg(add = complete::workload())]
    pub(crate) workload: String,
    /// A built-in platform (`risetime list platforms`) or a platform file
    #[arg(long, short, value_name = "P", add = complete::platform())]
    pub(crate) platform: String,
    /// The policy, NAME[+key=value…]
    #[arg(long, value_name = "NAME[+key=value…]", default_value = "mainline", add = complete::policy())]
    pub(crate) policy: String,
}

#[derive(Args, Debug)]
pub(crate) struct Run {
    /// A built-in workload (`risetime list workloads`) or an rt-app JSON file
    #[arg(add = complete::workload())]
    pub(crate) workload: String,
    /// A built-in platform (`risetime list platforms`) or a platform file
    #[arg(long, short, value_name = "P", add = complete::platform())]
    pub(crate) platform: String,
    /// Backend that runs the experiment
    #[arg(long, value_enum, default_value_t = Backend::Sim)]
    pub(crate) backend: Backend,
    /// Kernel to boot with --backend vm: an Image of your own, or a release in the cache [default:
    /// the newest there]
    #[arg(long, value_name = "PATH", add = complete::kernel())]
    pub(crate) kernel: Option<String>,
    /// Whether idle states of --backend vm take the time that the platform says [default: on]
    #[arg(long, value_enum)]
    pub(crate) idle_times: Option<IdleTimes>,
    /// Run the kernel of --backend vm without probes, which make each wakeup some µs longer; figures that need them are absent
    #[arg(long)]
    pub(crate) bare: bool,
    /// A policy, NAME[+key=value…]; repeat it to compare [default: mainline]
    #[arg(long = "policy", value_name = "NAME[+key=value…]", add = complete::policy())]
    pub(crate) policies: Vec<String>,
    /// Change a key of the workload, `ui.run=3000`, or whatever else `risetime sweep` varies; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) vary: Vec<String>,
    #[command(flatten)]
    pub(crate) settings: Clamped,
    /// Length of the run [default: the workload's, else 3]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub(crate) seconds: Option<f64>,
    #[command(flatten)]
    pub(crate) skip: Skip,
    /// The workload starts this much later, to the ns (`1500.25`)
    #[arg(long, value_name = "US", default_value = "0", allow_negative_numbers = true, value_parser = phase)]
    pub(crate) phase_us: Span,
    /// Run N start phases, k · 7.618 ticks apart, and report medians and spread
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) phases: Option<u32>,
    /// Run it N times as it is, and report medians and spread (none, if the backend repeats itself)
    #[arg(long, value_name = "N", conflicts_with = "phases", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) repeat: Option<u32>,
    /// Print every phase, too, with --phases
    #[arg(long, requires = "phases")]
    pub(crate) every_phase: bool,
    /// List every burst of every task, too
    #[arg(long, conflicts_with_all = ["phases", "repeat"])]
    pub(crate) bursts: bool,
    /// Print all there is, not one screen: plots, residencies, every task. With --bursts, JSON and CSV also list every change
    /// of CPU
    #[arg(long)]
    pub(crate) full: bool,
    /// The task that it is about: a name, that of its instances, a job's, or a pattern (`io*`) [default: the one that begins
    /// the first declared job, else the one with most work]
    #[arg(long, value_name = "NAME")]
    pub(crate) task: Option<String>,
    /// A util level whose time is wanted besides 450 and 1000; may be repeated
    #[arg(long = "level", value_name = "UTIL", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub(crate) levels: Vec<u64>,
    /// Seed of everything that is drawn by chance
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Simulate a system in which this costs no time (`risetime explain`); may be repeated
    #[arg(long, value_name = "CAUSE", value_parser = cause, value_delimiter = ',')]
    pub(crate) without: Vec<Cause>,
    /// Expectation that has to hold, `ui.response_p99 <= 16.6ms`: exit code 1 where it does not;
    /// may be repeated (docs/jobs.md)
    #[arg(long, value_name = "FIGURE<=VALUE")]
    pub(crate) expect: Vec<String>,
    /// Exit for `git bisect run`, with --expect: code 0 where all of it holds, 1 where it does not,
    /// and 125 (skip this one) wherever that cannot be said: no such kernel, one that does not
    /// boot, bad input, a fault of any other kind
    #[arg(long, requires = "expect")]
    pub(crate) git_bisect: bool,
    #[command(flatten)]
    pub(crate) plot: Plot,
    /// Format of the results
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Write the trace of the run for ui.perfetto.dev (one policy, one run)
    #[arg(long, value_name = "FILE", value_parser = file, conflicts_with_all = ["phases", "repeat"])]
    pub(crate) perfetto: Option<PathBuf>,
    /// Write the trace of the run as the kernel's own text, for trace-cmd's readers and systrace viewers (one policy, one run)
    #[arg(long, value_name = "FILE", value_parser = file, conflicts_with_all = ["phases", "repeat"])]
    pub(crate) ftrace: Option<PathBuf>,
    /// Save the results with their experiments, a JSON document a line: `risetime report FILE` shows them again
    /// (docs/documents.md)
    #[arg(long, value_name = "FILE", value_parser = file, conflicts_with = "without")]
    pub(crate) save_result: Option<PathBuf>,
    /// Run nothing: print each experiment as a JSON document in which everything stands that its runs depend on, a line each
    /// (docs/documents.md)
    #[arg(long, conflicts_with_all = ["phases", "repeat", "without", "expect", "plot", "perfetto", "ftrace", "bursts", "full", "save_result"])]
    pub(crate) document: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Compare {
    /// Built-in workloads (`risetime list workloads`) or rt-app JSON files
    #[arg(required = true, value_name = "WORKLOAD", add = complete::workload())]
    pub(crate) workloads: Vec<String>,
    /// A built-in platform (`risetime list platforms`) or a platform file; may be repeated
    #[arg(long = "platform", short, value_name = "P", required = true, add = complete::platform())]
    pub(crate) platforms: Vec<String>,
    /// A policy, NAME[+key=value…]; the first is what the others are compared with
    #[arg(long = "policy", value_name = "NAME[+key=value…]", add = complete::policy())]
    pub(crate) policies: Vec<String>,
    /// A figure of whole runs to compare (`ui.response_p99`, `energy`: docs/jobs.md); may be repeated [default: of all jobs of
    /// the first that is declared, else of all activations of the task created first, or of its burst where it has one from
    /// rest; energy; work done]
    #[arg(long = "metric", value_name = "NAME")]
    pub(crate) metrics: Vec<String>,
    /// The task or job of metrics that do not say of which (`--metric response_p99 --task ui`), or to compare by
    #[arg(long, value_name = "NAME")]
    pub(crate) task: Option<String>,
    /// Take a policy apart: each switch that it sets left out, and each alone
    #[arg(long, value_name = "POLICY", conflicts_with = "policies", add = complete::policy())]
    pub(crate) ablate: Option<String>,
    /// Start phases, k · 7.618 ticks apart
    #[arg(long, value_name = "N", default_value_t = 16, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) phases: u32,
    /// The first task's utils at its start, each with every phase; `own`: what it is. Only where it has a burst from rest
    /// [default: 0,50,100,200 where that is compared, else own]
    #[arg(long, value_name = "U,U…", value_parser = start_utils)]
    pub(crate) start_utils: Option<StartUtils>,
    #[command(flatten)]
    pub(crate) settings: Clamped,
    /// Length of the run [default: the workload's, else 3]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub(crate) seconds: Option<f64>,
    #[command(flatten)]
    pub(crate) skip: Skip,
    /// Seed of everything that is drawn by chance
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) save: Save,
    #[command(flatten)]
    pub(crate) plot: Plot,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = AnyFormat::Text)]
    pub(crate) format: AnyFormat,
}

#[derive(Args, Debug)]
pub(crate) struct Sweep {
    #[command(flatten)]
    pub(crate) of: Subject,
    /// Setting or key to vary, and its values: `rate_limit_us=500..4000:500`,
    /// `ui.run=1000..8000*2`, `policy=linux-6.8,linux-7.2`; repeat it for every combination
    #[arg(long, value_name = "NAME=VALUES", required = true)]
    pub(crate) vary: Vec<String>,
    /// Metric to measure: `ui.response_p99`, `energy` (docs/jobs.md); may be repeated [default:
    /// what `compare` compares]
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Vec<String>,
    /// The task or job that a --metric without a name before its point is about
    #[arg(long, value_name = "NAME")]
    pub(crate) task: Option<String>,
    /// Start phases of each point, k · 7.618 ticks apart
    #[arg(long, value_name = "N", default_value_t = 4, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) phases: u32,
    #[command(flatten)]
    pub(crate) settings: Clamped,
    /// Length of the run [default: the workload's, else 3]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub(crate) seconds: Option<f64>,
    #[command(flatten)]
    pub(crate) skip: Skip,
    /// Seed of everything that is drawn by chance
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) save: Save,
    #[command(flatten)]
    pub(crate) plot: Plot,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Utils to start from; none: what they are.
#[derive(Clone, Debug)]
pub(crate) struct StartUtils(pub(crate) Vec<u64>);

impl Default for StartUtils {
    fn default() -> StartUtils {
        StartUtils(vec![0, 50, 100, 200])
    }
}

#[derive(Args, Debug)]
pub(crate) struct Advise {
    #[command(flatten)]
    pub(crate) of: Subject,
    /// Goal that has to hold from every start phase, `frame.missed = 0` (as --expect): of all that
    /// reaches it, what costs least
    #[arg(long, value_name = "FIGURE<=VALUE", conflicts_with_all = ["metric", "real", "plot"])]
    pub(crate) goal: Option<String>,
    /// Figure that is to be least, with --goal
    #[arg(long, value_name = "FIGURE", requires = "goal", default_value = "energy")]
    pub(crate) least: String,
    /// Metric that is to become better (docs/jobs.md) [default: response_p99 of the first job, else
    /// activation_p99 or debt of the first task]
    #[arg(long, value_name = "FIGURE")]
    pub(crate) metric: Option<String>,
    /// The task or job that it is about
    #[arg(long, value_name = "NAME")]
    pub(crate) task: Option<String>,
    #[command(flatten)]
    pub(crate) settings: Clamped,
    /// Change a key of the workload first, `ui.run=3000`; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = change)]
    pub(crate) vary: Vec<Change>,
    /// Start phases of the last round, k · 7.618 ticks apart
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(6..=256))]
    pub(crate) phases: u32,
    /// Length of the run [default: the workload's, else 3]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub(crate) seconds: Option<f64>,
    /// Number of simulations at most
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(i64::from(risetime_lab::MIN_BUDGET)..=1_000_000))]
    pub(crate) budget: u32,
    /// Seed of everything that is drawn by chance
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Try the first line on a real kernel, too (as --backend vm of `run`)
    #[arg(long)]
    pub(crate) real: bool,
    /// Kernel to boot with --real: an Image of your own, or a release in the cache [default: the
    /// newest there]
    #[arg(long, value_name = "PATH", requires = "real", add = complete::kernel())]
    pub(crate) kernel: Option<String>,
    #[command(flatten)]
    pub(crate) save: Save,
    #[command(flatten)]
    pub(crate) plot: Plot,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = TextOrJson::Text)]
    pub(crate) format: TextOrJson,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Plots and tables for a terminal
    Text,
    /// JSON, schema 2
    Json,
    /// One figure a line
    Csv,
    /// The page of `text` as Markdown
    Markdown,
    /// The page of `text` as HTML, complete in itself
    Html,
}

/// Formats of a comparison, which has all that any result has.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnyFormat {
    /// Tables and a plot for a terminal
    Text,
    /// JSON, schema 2
    Json,
    /// One value a line
    Csv,
    /// Tables of at most 72 columns in ASCII, with the command that repeats them: for a mailing list
    Mail,
    /// The page of `text` as Markdown
    Markdown,
    /// The page of `text` as HTML, complete in itself
    Html,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextOrJson {
    /// Text for a person
    Text,
    /// JSON for a program
    Json,
    /// The text as Markdown
    Markdown,
    /// The text as a page of HTML, complete in itself
    Html,
}

#[derive(Args, Debug)]
pub(crate) struct History {
    /// A built-in workload (`risetime list workloads`) or an rt-app JSON file
    #[arg(add = complete::workload())]
    pub(crate) workload: String,
    /// A built-in platform (`risetime list platforms`) or a platform file
    #[arg(long, short, value_name = "P", add = complete::platform())]
    pub(crate) platform: String,
    /// Kernels to run: Images of your own, or releases in the cache; may be repeated [default:
    /// every release in the cache]
    #[arg(long, value_name = "PATH", conflicts_with = "simulated", add = complete::kernel())]
    pub(crate) kernel: Vec<String>,
    /// No kernel is booted: every generation that is simulated
    #[arg(long)]
    pub(crate) simulated: bool,
    /// The task whose times are told [default: the workload's first]
    #[arg(long, value_name = "NAME")]
    pub(crate) task: Option<String>,
    /// A figure to tell (`frame.missed`, `ui.activation_p99`: docs/jobs.md) in place of the usual ones; may be repeated
    #[arg(long = "metric", value_name = "NAME", conflicts_with = "bisect")]
    pub(crate) metrics: Vec<String>,
    /// Start phases of each release, k · 7.618 ticks apart [default: 9 of kernels, 32 where all is simulated]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) phases: Option<u32>,
    /// Find the largest step that this figure makes from one release to the next, of the sure ones if there are any (`energy_mj`, `lost_ms`, …, or any of
    /// docs/jobs.md)
    #[arg(long, value_name = "METRIC", conflicts_with = "plot")]
    pub(crate) bisect: Option<String>,
    /// Release to judge the step to, alone, with --bisect (`6.12`)
    #[arg(long, value_name = "RELEASE", requires = "bisect")]
    pub(crate) step: Option<String>,
    #[command(flatten)]
    pub(crate) settings: Set,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Length of the run [default: the workload's, else 3]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub(crate) seconds: Option<f64>,
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

#[derive(Args, Debug)]
pub(crate) struct Reproduce {
    /// A built-in study (`risetime list studies`) or a study file
    #[arg(default_value = "rfc-2024", add = complete::study())]
    pub(crate) study: String,
    /// Names of the figures to reproduce, alone; may be repeated
    #[arg(long, value_name = "ID")]
    pub(crate) figure: Vec<String>,
    /// Start phases of each experiment
    #[arg(long, value_name = "N", default_value_t = risetime_study::STUDY_PHASES, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) phases: u32,
    /// A wrong policy (`linux-6.8`, or `+key=value` on top of each figure's own): how many rows hold under it, too; may be repeated
    #[arg(long, value_name = "POLICY", conflicts_with_all = ["strict", "plot", "save_result"])]
    pub(crate) against: Vec<String>,
    /// Exit code 1 for any row that misses, argued or not
    #[arg(long)]
    pub(crate) strict: bool,
    /// Format of the rows
    #[arg(long, value_enum, default_value_t = TextOrJson::Text)]
    pub(crate) format: TextOrJson,
    #[command(flatten)]
    pub(crate) save: Save,
    #[command(flatten)]
    pub(crate) plot: Plot,
}

#[derive(Args, Debug)]
pub(crate) struct List {
    /// Kind of entries to list; everything but settings if left out
    #[arg(value_enum)]
    pub(crate) what: Option<What>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Platforms,
    Policies,
    Workloads,
    Studies,
    Governors,
    Placements,
    Classes,
    Trackers,
    IdleGovernors,
    /// Sources of pressure, which take capacity from CPUs: interrupts, heat, caps
    Pressure,
    PowerHals,
    Settings,
}

#[derive(Args, Debug)]
pub(crate) struct Show {
    /// Name of an entry, or a file; `wide-7-3`: what `verify --draw` draws as number 3 of seed 7
    #[arg(add = complete::anything())]
    pub(crate) name: String,
    /// Platform on which every setting of a policy is resolved
    #[arg(long, short, value_name = "P", add = complete::platform())]
    pub(crate) platform: Option<String>,
    /// Print the file itself
    #[arg(long)]
    pub(crate) source: bool,
    /// Show the device tree of a platform, on which `--backend vm` boots a kernel
    #[arg(long, conflicts_with = "source")]
    pub(crate) dts: bool,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

#[derive(Args, Debug)]
pub(crate) struct Check {
    /// Files or names: platforms and policies (.toml), workloads (.json)
    #[arg(required = true, add = complete::anything())]
    pub(crate) names: Vec<String>,
    /// Check workloads and policies against this platform, too; deadline tasks and forks are run,
    /// up to 60 s of them, to see whether they can be
    #[arg(long, short, value_name = "P", add = complete::platform())]
    pub(crate) platform: Option<String>,
    /// Policy to check under, with --platform, NAME[+key=value…] [default: mainline]
    #[arg(long, value_name = "NAME[+key=value…]", requires = "platform", add = complete::policy())]
    pub(crate) policy: Option<String>,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// A warning fails the check
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Capture {
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE", value_parser = file)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Doctor {
    /// Format of the findings
    #[arg(long, value_enum, default_value_t = TextOrJson::Text)]
    pub(crate) format: TextOrJson,
}
