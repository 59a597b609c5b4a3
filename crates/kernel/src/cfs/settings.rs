//! Settings of a CFS runqueue, told once: its switches and its tunables.

use crate::switches::{Switch, Switches};
use crate::{KernelRev, features};

/// The scheduler's switches (kernel/sched/features.h), named as there, and what else differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// `GENTLE_FAIR_SLEEPERS`: half a latency of sleep counts, not a whole one.
    pub gentle_fair_sleepers: bool,
    /// `START_DEBIT`: a new task starts behind the period promised to the others.
    pub start_debit: bool,
    /// `NEXT_BUDDY`: a woken task is preferred even where it did not preempt.
    pub next_buddy: bool,
    /// `LAST_BUDDY`: a preempted task is preferred where many are queued.
    pub last_buddy: bool,
    /// `WAKEUP_PREEMPTION`: waking may preempt the running entity at all.
    pub wakeup_preemption: bool,
    /// `ALT_PERIOD` (5.13): a group's period counts the tasks of the whole CPU.
    pub alt_period: bool,
    /// `BASE_SLICE` (5.13): slices are not shorter than the minimal granularity.
    pub base_slice: bool,
    /// Idle entities (5.15: groups, too) get less credit for sleep and shorter slices, and are told
    /// from others on every level.
    pub idle_entities: bool,
    /// True up to 5.13: every pick forgets the buddies that the picked entity was; since 5.14 only
    /// one that changes the running entity.
    pub pick_clears: bool,
}

impl Features {
    /// The defaults of `rev`.
    pub fn of(rev: KernelRev) -> Features {
        Features::switched(rev, Switches::of(rev))
    }

    /// The switches of `rev` as they are set.
    pub fn switched(rev: KernelRev, switches: Switches) -> Features {
        let on = |switch| switches.on(switch);
        Features {
            gentle_fair_sleepers: on(Switch::GentleFairSleepers),
            start_debit: on(Switch::StartDebit),
            next_buddy: on(Switch::NextBuddy),
            last_buddy: on(Switch::LastBuddy),
            wakeup_preemption: on(Switch::WakeupPreemption),
            alt_period: on(Switch::AltPeriod),
            base_slice: on(Switch::BaseSlice),
            idle_entities: rev.has(features::SCHED_IDLE_ENTITIES),
            pick_clears: !rev.has(features::CLEAR_BUDDIES_ON_CHANGE),
        }
    }
}

/// The lengths of time that the arithmetic depends on, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// The period in which up to eight tasks each run once (`sysctl_sched_latency`).
    pub latency_ns: u64,
    /// The least a task runs before a tick takes the CPU from it (`sysctl_sched_min_granularity`).
    pub min_granularity_ns: u64,
    /// Lag that a woken task has to have to preempt, in ns (`sysctl_sched_wakeup_granularity`).
    pub wakeup_granularity_ns: u64,
    /// The least slice of an idle entity beside others (`sysctl_sched_idle_min_granularity`).
    pub idle_min_granularity_ns: u64,
    /// Tasks may say how soon they want the CPU ([`crate::latency_nice`]; no mainline kernel).
    pub latency_nice: bool,
}

impl Tunables {
    /// The defaults on a machine with `cpus` CPUs: those of one CPU, times 1 + log2 of the CPUs, of
    /// which at most 8 count; that of idle entities is not scaled.
    /// Source: fair.c:`get_update_sysctl_factor`, `update_sysctl`.
    pub fn of(cpus: u32) -> Tunables {
        let factor = 1 + u64::from(cpus.clamp(1, 8).ilog2());
        Tunables {
            latency_ns: 6_000_000 * factor,
            min_granularity_ns: 750_000 * factor,
            wakeup_granularity_ns: 1_000_000 * factor,
            idle_min_granularity_ns: 750_000,
            latency_nice: false,
        }
    }
}
