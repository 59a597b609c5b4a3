//! Settings of a runqueue, told once: the kernel's switches and its tunables.

use crate::latency_nice::latency_slice;
use crate::switches::{Switch, Switches};
use crate::{KernelRev, features};

/// The scheduler's switches (kernel/sched/features.h), named as there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// `PLACE_LAG`: an entity comes back with the lag it left with; off: with none.
    pub place_lag: bool,
    /// `PLACE_DEADLINE_INITIAL`: the first deadline of a new task is half a slice away.
    pub place_deadline_initial: bool,
    /// `PLACE_REL_DEADLINE`: a deadline keeps its distance across migration and renice.
    pub place_rel_deadline: bool,
    /// `RUN_TO_PARITY`: the running entity is not preempted while protected and eligible.
    pub run_to_parity: bool,
    /// `PREEMPT_SHORT`: a woken entity with a shorter slice breaks that protection.
    pub preempt_short: bool,
    /// `DELAY_DEQUEUE`: who falls asleep owing service stays queued until it is paid off.
    pub delay_dequeue: bool,
    /// `DELAY_ZERO`: who was dequeued late keeps no positive lag.
    pub delay_zero: bool,
    /// Virtual time by the weights' 32-bit inverses instead of by division: every kernel
    /// before 7.2, and 7.2 built for 32 bits (a build option, not a switch of features.h).
    pub inverse_weights: bool,
    /// `NEXT_BUDDY`: a woken entity is preferred at the next pick.
    pub next_buddy: bool,
    /// `PICK_BUDDY`: whoever is said to come next does, if eligible.
    pub pick_buddy: bool,
    /// `WAKEUP_PREEMPTION`: waking may preempt the running entity at all.
    pub wakeup_preemption: bool,
}

impl Features {
    /// The defaults of `rev`.
    pub fn of(rev: KernelRev) -> Features {
        Features::switched(rev, Switches::of(rev))
    }

    /// The switches of `rev` as they are set.
    ///
    /// Until 6.11 a new task was placed twice, the second time without `ENQUEUE_INITIAL`, so
    /// that `PLACE_DEADLINE_INITIAL`, though on, had no effect: it is off here.
    pub fn switched(rev: KernelRev, switches: Switches) -> Features {
        let on = |switch| switches.on(switch);
        Features {
            place_lag: on(Switch::PlaceLag),
            place_deadline_initial: on(Switch::PlaceDeadlineInitial),
            place_rel_deadline: on(Switch::PlaceRelDeadline),
            run_to_parity: on(Switch::RunToParity),
            preempt_short: on(Switch::PreemptShort),
            delay_dequeue: on(Switch::DelayDequeue),
            delay_zero: on(Switch::DelayZero),
            next_buddy: on(Switch::NextBuddy),
            pick_buddy: on(Switch::PickBuddy),
            inverse_weights: !rev.has(features::CALC_DELTA_FAIR),
            wakeup_preemption: on(Switch::WakeupPreemption),
        }
    }
}

/// The lengths of time that the arithmetic depends on, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// The slice of a task that asks for none (`sysctl_sched_base_slice`: the normalised one
    /// times 1 + log2 of the CPUs, at most 8 of which count).
    pub base_slice_ns: u64,
    /// The base slice of a single-CPU machine (`normalized_sysctl_sched_base_slice`).
    pub normalized_base_slice_ns: u64,
    /// The length of a tick (`TICK_NSEC`).
    pub tick_ns: u64,
}

/// `normalized_sysctl_sched_base_slice`: 0.75 ms, from 6.15 on 0.7 ms.
///
/// 6.6, 6.12 and 6.14 are taken as their stable series have it, which took the change over in May 2025
/// (6.6.93); those between them had ended before.
fn normalized_base_slice(rev: KernelRev) -> u64 {
    if rev.has(features::BASE_SLICE_700US) { 700_000 } else { 750_000 }
}

impl Tunables {
    /// The slice of a task that asks for none itself.
    pub(super) fn slice_of(&self, latency_nice: i8) -> u64 {
        match latency_nice {
            0 => self.base_slice_ns,
            nice => latency_slice(self.base_slice_ns, nice),
        }
    }

    /// The defaults of `rev` on a machine with `cpus` CPUs and `hz` ticks a second.
    /// Source: fair.c:`sysctl_sched_base_slice`, `get_update_sysctl_factor`.
    pub fn of(rev: KernelRev, cpus: u32, hz: u32) -> Tunables {
        let normalized = normalized_base_slice(rev);
        let factor = 1 + u64::from(cpus.clamp(1, 8).ilog2());
        Tunables {
            base_slice_ns: normalized * factor,
            normalized_base_slice_ns: normalized,
            tick_ns: 1_000_000_000 / u64::from(hz.max(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_slice_is_that_of_the_last_stable_release() {
        let base = |minor, cpus| Tunables::of(KernelRev::new(6, minor), cpus, 1000).base_slice_ns;
        assert_eq!(
            [6, 8, 11, 12, 13, 15].map(|minor| base(minor, 8)),
            [2_800_000, 3_000_000, 3_000_000, 2_800_000, 3_000_000, 2_800_000]
        );
        assert_eq!(
            [1, 2, 4, 7, 8, 64].map(|cpus| base(12, cpus)),
            [700_000, 1_400_000, 2_100_000, 2_100_000, 2_800_000, 2_800_000]
        );
        assert_eq!(Tunables::of(KernelRev::V7_2, 8, 1000).base_slice_ns, 2_800_000);
    }
}
