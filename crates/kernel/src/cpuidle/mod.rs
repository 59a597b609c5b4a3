//! Governors of cpuidle: which idle state, and does the tick stop?
//!
//! ```text
//! select   before each sleep: the timer that will end it is known, what else may come is not
//! update   after it: how long it was, and whether the tick ended it
//! ```
//!
//! With one idle state, or none, no governor is asked. Up to 6.11 the tick stops then; in 6.1's last
//! stable releases and since 6.12 it goes on, and stops once it has ended a sleep
//! ([`single_state_stops_tick`]).
//! Source: drivers/cpuidle/governors/, kernel/sched/idle.c:`cpuidle_idle_call`.

pub mod menu;
pub mod teo;
pub mod teo_pre_7_1;

use crate::units::Span;
use crate::{KernelRev, features};
use menu::MenuDevice;
use teo::TeoCpu;
use teo_pre_7_1::TeoCpuPre71;

/// Below it the time to the next timer is not worth asking for.
pub(crate) const RESIDENCY_THRESHOLD_NS: u64 = 15_000;

/// Largest number of idle states of a CPU (`CPUIDLE_STATE_MAX`).
pub const CPUIDLE_STATE_MAX: usize = 10;

/// An idle state, as its governor sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleState {
    /// `target_residency_ns`.
    pub target_residency: Span,
    /// `exit_latency_ns`.
    pub exit_latency: Span,
}

/// Facts that a CPU knows when it goes idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// Time to the next timer other than the tick; `None`: there is none.
    pub next_timer: Option<Span>,
    /// Time to the next tick, if it were kept.
    pub next_tick: Span,
    /// The tick is stopped already.
    pub tick_stopped: bool,
    /// `TICK_NSEC`.
    pub tick: Span,
    /// `teo_cpu_is_utilized` (6.3 to 6.10): the CPU's util is more than a 64th of its capacity.
    pub utilized: bool,
    /// Limits on the states that the CPU may take.
    pub limits: Limits,
}

/// Limits on the states that may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `cpuidle_governor_latency_req`: none that takes longer to leave.
    pub latency_req: Span,
    /// `states_usage[i].disable`: bit i, not that state.
    pub disabled: u16,
}

impl Limits {
    /// All of them.
    pub const NONE: Limits = Limits { latency_req: Span(u64::MAX), disabled: 0 };

    /// Whether the state of this index is not disabled.
    pub(crate) const fn enabled(self, state: usize) -> bool {
        self.disabled >> state & 1 == 0
    }

    /// The deepest state up to `idx` that may be taken; if there is none, the shallowest that is not disabled, else 0
    /// (`constraint_idx`, `idx0`).
    pub(crate) fn at_most(self, states: &[IdleState], idx: usize) -> usize {
        if self == Limits::NONE {
            return idx;
        }
        let fits = |i: &usize| self.enabled(*i) && states[*i].exit_latency.0 <= self.latency_req.0;
        let first = (0..states.len()).find(|i| self.enabled(*i)).unwrap_or(0);
        (0..=idx).rev().find(fits).unwrap_or(first)
    }

    /// The deepest state shallower than `idx` that is not disabled and pays off within `duration`, else the shallowest of those
    /// (`teo_find_shallower_state`).
    pub(crate) fn shallower(self, states: &[IdleState], idx: usize, duration: u64) -> usize {
        let mut found = idx;
        for i in (0..idx).rev().filter(|i| self.enabled(*i)) {
            found = i;
            if states[i].target_residency.0 <= duration {
                break;
            }
        }
        found
    }
}

impl Sleep {
    /// The ns to the next event of the CPU's clock: the next timer, or the tick while it runs
    /// (`tick_nohz_get_sleep_length`).
    fn delta_next(&self) -> u64 {
        let timer = self.next_timer.map_or(i64::MAX as u64, |s| s.0);
        if self.tick_stopped { timer } else { timer.min(self.next_tick.0) }
    }
}

/// Decision of a governor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selected {
    /// Index of the state.
    pub state: usize,
    /// Whether the tick stops (or stays so).
    pub stop_tick: bool,
}

/// A CPU's governor with what it remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdleGovernor {
    /// Governor that goes by typical sleeps and the next timer.
    Menu(MenuDevice),
    /// Timers first; what cut sleeps short is counted.
    Teo(TeoCpu),
    /// `teo` up to 7.0.
    TeoPre71(TeoCpuPre71),
}

impl IdleGovernor {
    /// Names of the governors, as in `/sys/devices/system/cpu/cpuidle/available_governors`.
    pub const NAMES: &'static [&'static str] = &["menu", "teo"];

    /// The governor of that name as `rev` has it, without memories; `menu` for any other name.
    pub fn named(name: &str, rev: KernelRev) -> IdleGovernor {
        match name {
            "teo" if rev.has(features::TEO_TICK_INTERCEPTS) => IdleGovernor::Teo(TeoCpu::default()),
            "teo" => IdleGovernor::TeoPre71(TeoCpuPre71::new(rev)),
            _ => IdleGovernor::Menu(MenuDevice::new(rev)),
        }
    }

    /// Whether it looks at [`Sleep::utilized`].
    pub fn asks_for_util(&self) -> bool {
        matches!(self, IdleGovernor::TeoPre71(teo) if teo.asks_for_util())
    }

    /// Chooses which of `states` (shallowest first, at most [`CPUIDLE_STATE_MAX`]) to enter now,
    /// and whether to stop the tick; not to be asked with less than two
    /// ([`single_state_stops_tick`]).
    pub fn select(&mut self, states: &[IdleState], sleep: Sleep) -> Selected {
        if states.len() < 2 {
            return Selected { state: 0, stop_tick: sleep.tick_stopped };
        }
        match self {
            IdleGovernor::Menu(menu) => menu.select(states, sleep),
            IdleGovernor::Teo(teo) => teo.select(states, sleep),
            IdleGovernor::TeoPre71(teo) => teo.select(states, sleep),
        }
    }

    /// Learns that the CPU has been idle for `idle` in the state of that index; `by_tick`: the tick
    /// woke it.
    pub fn update(
        &mut self,
        states: &[IdleState],
        state: usize,
        idle: Span,
        by_tick: bool,
        tick: Span,
    ) {
        let Some(of) = states.get(state).filter(|_| states.len() > 1) else { return };
        match self {
            IdleGovernor::Menu(menu) => menu.update(*of, idle, by_tick, tick),
            IdleGovernor::Teo(teo) => teo.update(states, *of, idle, by_tick, tick),
            IdleGovernor::TeoPre71(teo) => teo.update(states, *of, idle, by_tick, tick),
        }
    }
}

/// Whether a CPU with one idle state, or none, stops its tick; `got_tick`: the tick has ended the
/// sleep just before.
///
/// The form of 6.1.192 and 6.12.117 is that of mainline 7.0; 6.6 to 6.11 are taken not to have it
/// (the deviation `idle-stable`). Source: idle.c:`cpuidle_idle_call`, `do_idle`.
pub fn single_state_stops_tick(rev: KernelRev, got_tick: bool) -> bool {
    got_tick || rev.has(features::SINGLE_STATE_STOPS_TICK)
}

/// Whether the tick stops whatever the governor selects: up to 4.16 it did upfront, unless the next timer was one tick
/// away or less, in whole ticks. Source: tick-sched.c:`tick_nohz_stop_sched_tick` of 3.15; commit 2aaf709a518d.
pub fn stops_tick_upfront(rev: KernelRev, sleep: &Sleep) -> bool {
    let soon = sleep.next_timer.is_some_and(|at| at.0 < 2 * sleep.tick.0);
    !rev.has(features::TICK_AFTER_SELECT) && !soon
}

/// A CPU with four states, and its sleeps.
#[cfg(test)]
mod sample {
    use super::{IdleState, Limits, Sleep};
    use crate::units::Span;

    pub(super) const MS: u64 = 1_000_000;
    pub(super) const TICK: Span = Span(4 * MS);

    pub(super) fn states() -> [IdleState; 4] {
        [(1, 1), (100, 70), (800, 200), (5000, 480)].map(|(residency, latency)| IdleState {
            target_residency: Span(residency * 1000),
            exit_latency: Span(latency * 1000),
        })
    }

    pub(super) fn sleep(next_timer: Option<u64>, tick_stopped: bool) -> Sleep {
        let next_timer = next_timer.map(Span);
        let next_tick = Span(3 * MS);
        Sleep {
            next_timer,
            next_tick,
            tick_stopped,
            tick: TICK,
            utilized: false,
            limits: Limits::NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_one_state_the_tick_ends_a_sleep_before_it_stops() {
        for (rev, at_once) in [
            (KernelRev::V6_1, false),
            (KernelRev::V6_6, true),
            (KernelRev::V6_8, true),
            (KernelRev::V6_12, false),
            (KernelRev::V7_3, false),
        ] {
            assert_eq!(single_state_stops_tick(rev, false), at_once, "{rev}");
            assert!(single_state_stops_tick(rev, true), "{rev}");
        }
    }

    #[test]
    fn no_governor_takes_what_is_forbidden() {
        use super::sample::{TICK, sleep, states};
        let revs =
            [KernelRev::V6_1, KernelRev::V6_6, KernelRev::V6_12, KernelRev::V7_2, KernelRev::V7_3];
        for (name, rev) in IdleGovernor::NAMES.iter().flat_map(|n| revs.map(|rev| (n, rev))) {
            let mut governor = IdleGovernor::named(name, rev);
            let mut x = 1u64;
            for _ in 0..4000 {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let disabled = (x >> 60) as u16;
                let latency_req = Span([0, 1_000, 100_000, u64::MAX][(x >> 58) as usize & 3]);
                let limits = Limits { latency_req, disabled };
                let timer = Some((x >> 20) % 20_000_000).filter(|_| x >> 50 & 7 > 0);
                let asked = Sleep { limits, ..sleep(timer, x >> 57 & 1 == 1) };
                let Selected { state, .. } = governor.select(&states(), asked);
                let fits =
                    |i: &usize| limits.enabled(*i) && states()[*i].exit_latency.0 <= latency_req.0;
                let allowed = (0..4).any(|i| fits(&i));
                // With a limit of 0 the first is taken, disabled or not.
                let zero = latency_req == Span(0) && state == 0;
                // With the tick stopped `menu` up to 6.11 takes a deeper one that pays off until the next timer, however long
                // that takes to leave.
                let stuck = *name == "menu" && rev < KernelRev::V6_12 && asked.tick_stopped;
                assert!(
                    !allowed || fits(&state) || zero || stuck,
                    "{name} {rev} {limits:?}: {state}"
                );
                governor.update(&states(), state, Span((x >> 30) % 9_000_000), x & 1 == 1, TICK);
            }
        }
    }

    #[test]
    fn with_one_state_nobody_is_asked() {
        let one = [IdleState { target_residency: Span(1), exit_latency: Span(1) }];
        let sleep = Sleep {
            next_timer: Some(Span(1)),
            next_tick: Span(1),
            tick_stopped: false,
            tick: Span(4_000_000),
            utilized: false,
            limits: Limits::NONE,
        };
        let revs = [KernelRev::V6_1, KernelRev::V6_6, KernelRev::V6_12, KernelRev::V7_2];
        for (name, rev) in IdleGovernor::NAMES.iter().flat_map(|n| revs.map(|rev| (n, rev))) {
            for states in [&one[..0], &one] {
                let mut governor = IdleGovernor::named(name, rev);
                assert!(!governor.select(states, sleep).stop_tick, "{name}");
                governor.update(states, 0, Span(5), false, sleep.tick);
                assert_eq!(governor, IdleGovernor::named(name, rev));
            }
        }
    }
}
