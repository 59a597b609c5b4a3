//! The header of a trace: what must be known before the first event.

use risetime_kernel::cpuidle::menu::MenuDevice;
use risetime_kernel::units::{CpuId, GroupId, Instant, Span};
use risetime_model::workload::JobSpec;
use risetime_model::{Experiment, Platform, Settings};
use std::sync::Arc;

/// The head of a trace.
#[derive(Clone, Debug)]
pub struct Header {
    /// Maker of the trace, and how it was made.
    pub run: Run,
    /// The experiment that it is a run of; `None`: the machine ran for itself, and somebody looked.
    pub asked: Option<Asked>,
    /// The machine, as far as it is known.
    pub machine: MachineInfo,
    /// Memory of the kernel when the first task was created, for whoever goes on from there.
    pub image: Image,
}

/// Maker of a trace, and how it was made.
#[derive(Clone, Debug)]
pub struct Run {
    /// The kind of backend.
    pub backend: BackendKind,
    /// Kernel release: the simulated generation, or what the kernel says.
    pub kernel_release: String,
    /// The clock of the timestamps.
    pub clock: Clock,
    /// Signals that are in the trace, and whence.
    pub signals: Vec<Signal>,
    /// Losses, one line each; empty: none.
    pub lost: Vec<String>,
}

/// The experiment of which a trace is a run, as far as readers of the trace need it.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Workload name.
    pub workload: String,
    /// Policy name.
    pub policy: String,
    /// Start phase.
    pub phase: Span,
    /// Seed.
    pub seed: u64,
    /// The workload's jobs; tasks by their places in it, which are their ids.
    pub jobs: Vec<JobSpec>,
    /// The task groups in which the workload's tasks are created, by their places in it; "" is the root.
    pub task_groups: Vec<String>,
    /// All task groups by their numbers ([`GroupId`]); the first one is the root, "".
    pub groups: Vec<String>,
}

/// The machine, as far as it is known.
#[derive(Clone, Debug)]
pub struct MachineInfo {
    /// CPUs, frequency domains, speeds, powers: analyses need them.
    pub platform: Arc<Platform>,
    /// Source of the description.
    pub whence: Whence,
    /// Settings with their values: all resolved ones of an experiment, or what was read of a machine.
    pub settings: Settings,
}

/// Source of the description of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    /// A platform file: speeds and powers are those that it states.
    Described,
    /// The trace itself: CPUs, domains and frequencies are those that were seen, each OPP's speed is taken to be its
    /// frequency's share of the highest one, CPUs are taken to be equal, and powers are not known.
    Seen,
}

/// Memory of a kernel when the first task was created. Empty where nobody told.
#[derive(Clone, Debug, Default)]
pub struct Image {
    /// Memory of `menu` of each CPU's sleeps.
    pub idle: Vec<IdleMemory>,
    /// Times at which each CPU is due to balance.
    pub balance: Vec<BalanceMemory>,
    /// Ends of the periods of task groups with a quota.
    pub periods: Vec<PeriodMemory>,
    /// A tick came then, from time 0 of the trace; the others are whole ticks away.
    pub tick: Option<Instant>,
}

impl Header {
    /// Returns the head of a run of `experiment`: everything but what only the run can tell, on the machine that its platform
    /// file describes.
    pub fn of(experiment: &Experiment, run: Run) -> Header {
        let workload = &experiment.workload;
        Header {
            run,
            asked: Some(Asked {
                workload: workload.name.clone(),
                policy: experiment.policy.name.clone(),
                phase: experiment.phase,
                seed: experiment.seed,
                jobs: workload.jobs.clone(),
                task_groups: workload.task_groups(),
                groups: workload.group_paths(),
            }),
            machine: MachineInfo {
                platform: Arc::clone(&experiment.platform),
                whence: Whence::Described,
                settings: experiment.settings.clone(),
            },
            image: Image::default(),
        }
    }
}

/// The clock of a trace's timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Simulated time.
    Simulated,
    /// `CLOCK_BOOTTIME`.
    Boot,
    /// `CLOCK_MONOTONIC`.
    Mono,
    /// ftrace's `local`: `sched_clock()` of each CPU.
    Local,
}

impl Clock {
    /// All of them.
    pub const ALL: [Clock; 4] = [Clock::Simulated, Clock::Boot, Clock::Mono, Clock::Local];

    /// Returns its word in files, which for the kernel's clocks is ftrace's.
    pub const fn as_str(self) -> &'static str {
        match self {
            Clock::Simulated => "simulated",
            Clock::Boot => "boot",
            Clock::Mono => "mono",
            Clock::Local => "local",
        }
    }
}

/// A moment at which a group's quota is refilled; the others are whole periods away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodMemory {
    /// The group, by its number in the workload.
    pub group: GroupId,
    /// A period ends, from time 0.
    pub ends: Instant,
}

/// The times at which a CPU is due to balance, as the kernel had it at its first look after the
/// first task's creation: what it found there it had at the creation, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalanceMemory {
    /// The CPU.
    pub cpu: CpuId,
    /// Time from the creation to that look, at which `jiffies` was 0 in what follows.
    pub after: Span,
    /// `rq->next_balance`.
    pub next_balance: i64,
    /// State of each scheduling domain, the lowest first: `last_balance`, and `balance_interval` in
    /// ms.
    pub domains: Vec<(i64, u64)>,
}

/// Memory of the idle governor of a CPU when the CPU last fell asleep before the first task's
/// creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleMemory {
    /// The CPU.
    pub cpu: CpuId,
    /// The governor's memory, the choice of this sleep's state included.
    pub menu: MenuDevice,
    /// The state it chose.
    pub state: u32,
    /// Time from there to the creation.
    pub before: Span,
    /// Length of the sleep; `None`: it went on.
    pub slept: Option<Span>,
    /// Memory of the CPU's runqueue then; `None`: not told.
    pub rq: Option<RqMemory>,
}

/// State that new tasks, real-time and deadline ones will go by on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RqMemory {
    /// `distribute_cpu_mask_prev`: where its last search for any of several CPUs ended.
    pub distribute: CpuId,
    /// `extra_bw`: its part of what nobody has reserved, for who reclaims it; below 0 it wraps.
    pub extra_bw: u64,
    /// `total_bw`: what is reserved in its root domain.
    pub total_bw: u64,
    /// `rq->idle_stamp`: how long before the creation it had last gone idle; `None`: not told.
    pub idled: Option<Span>,
}

/// A signal of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Kernel name of the signal: `util_avg`, `util_est`, `cpu_frequency`.
    pub name: &'static str,
    /// Whence it comes.
    pub origin: Origin,
}

/// Source of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The kernel said so.
    Recorded,
    /// Computed again from recorded events.
    Recomputed,
    /// A simulator made it.
    Simulated,
}

/// A kind of backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// The simulator.
    Sim,
    /// A real kernel in a virtual machine.
    Vm,
    /// This machine.
    Host,
    /// A trace that somebody else took.
    File,
}

impl BackendKind {
    /// All of them.
    pub const ALL: [BackendKind; 4] =
        [BackendKind::Sim, BackendKind::Vm, BackendKind::Host, BackendKind::File];

    /// Returns its word on the command line and in results.
    pub const fn as_str(self) -> &'static str {
        match self {
            BackendKind::Sim => "sim",
            BackendKind::Vm => "vm",
            BackendKind::Host => "host",
            BackendKind::File => "file",
        }
    }

    /// Returns the kind with this word; `None`: there is none.
    pub fn of_word(word: &str) -> Option<BackendKind> {
        BackendKind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Whether each trace tells every frequency and idle state of all CPUs, from its begin on.
    pub const fn tells_cpus(self) -> bool {
        matches!(self, BackendKind::Sim | BackendKind::Vm)
    }

    /// Whether runs are models of a kernel and not one: they repeat themselves, draw chance from the experiment's seed, do not
    /// disturb each other on other cores, and their figures can be off where the model is.
    pub const fn is_simulated(self) -> bool {
        matches!(self, BackendKind::Sim)
    }
}

impl std::fmt::Display for BackendKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A header of the built-in M1.
    pub(crate) fn header() -> Header {
        Header {
            run: Run {
                backend: BackendKind::Sim,
                kernel_release: "7.2".into(),
                clock: Clock::Simulated,
                signals: Vec::new(),
                lost: Vec::new(),
            },
            asked: Some(Asked {
                workload: "rampup".into(),
                policy: "mainline".into(),
                phase: Span(1_500_250),
                seed: 1,
                ..Asked::default()
            }),
            machine: MachineInfo {
                platform: Arc::new(Platform::load("m1").expect("built in")),
                whence: Whence::Described,
                settings: Settings::default(),
            },
            image: Image::default(),
        }
    }
}
