//! The header of a trace: what must be known before the first event.

use risetime_kernel::cpuidle::menu::MenuDevice;
use risetime_kernel::units::{CpuId, GroupId, Instant, Span};
use risetime_model::workload::JobSpec;
use risetime_model::{Platform, Settings};
use std::sync::Arc;

/// The head of a trace.
#[derive(Clone, Debug)]
pub struct Header {
    /// `sim`, `vm`, `host`.
    pub backend: &'static str,
    /// The machine as it was described (its speeds and powers are needed by the analyses).
    pub platform: Arc<Platform>,
    /// Workload name.
    pub workload: String,
    /// Policy name.
    pub policy: String,
    /// Every setting with its resolved value.
    pub settings: Settings,
    /// Kernel release: the simulated generation, or what the booted kernel says.
    pub kernel_release: String,
    /// What the timestamps count: `simulated`, `boot`, `mono`.
    pub clock: &'static str,
    /// Start phase.
    pub phase: Span,
    /// Seed.
    pub seed: u64,
    /// Signals that are in the trace, and whence.
    pub signals: Vec<Signal>,
    /// Losses, one line each; empty: none.
    pub lost: Vec<String>,
    /// What `menu` remembers of each CPU's sleeps when the first task is created, where that is known.
    pub idle: Vec<IdleMemory>,
    /// Times at which each CPU is due to balance, where that is known.
    pub balance: Vec<BalanceMemory>,
    /// Ends of the periods of task groups with a quota, where that is known.
    pub periods: Vec<PeriodMemory>,
    /// A tick came then, from time 0 of the trace; the others are whole ticks away. `None`: nobody knows.
    pub tick: Option<Instant>,
    /// The task groups in which the workload's tasks are created, by their places in it; "" is the root.
    pub task_groups: Vec<String>,
    /// All task groups by their numbers ([`GroupId`]); the first one is the root, "".
    pub groups: Vec<String>,
    /// The workload's jobs; tasks by their places in it, which are their ids.
    pub jobs: Vec<JobSpec>,
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

/// What the idle governor of a CPU knew when the CPU last fell asleep before the first task's creation.
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

/// What new tasks, real-time and deadline ones will go by on a CPU.
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A header of the built-in M1.
    pub(crate) fn header() -> Header {
        Header {
            backend: "sim",
            platform: Arc::new(Platform::load("m1").expect("built in")),
            workload: "rampup".into(),
            policy: "mainline".into(),
            settings: Settings::default(),
            kernel_release: "7.2".into(),
            clock: "simulated",
            phase: Span(1_500_250),
            seed: 1,
            signals: Vec::new(),
            lost: Vec::new(),
            idle: Vec::new(),
            balance: Vec::new(),
            periods: Vec::new(),
            tick: None,
            jobs: Vec::new(),
            task_groups: Vec::new(),
            groups: Vec::new(),
        }
    }
}
