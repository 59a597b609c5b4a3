//! Governors of cpuidle: which idle state, and does the tick stop?
//!
//! ```text
//! select   before each sleep: the timer that will end it is known, what else may come is not
//! update   after it: how long it was, and whether the tick ended it
//! ```
//!
//! With one idle state, or none, no governor is asked, and the tick stops.
//! Source: drivers/cpuidle/governors/, kernel/sched/idle.c:`cpuidle_idle_call`.

pub mod menu;
pub mod teo;

use crate::units::Span;
use menu::MenuDevice;
use teo::TeoCpu;

/// Below it the time to the next timer is not worth asking for.
pub(crate) const RESIDENCY_THRESHOLD_NS: u64 = 15_000;

/// As many states as a CPU may have (`CPUIDLE_STATE_MAX`).
pub const CPUIDLE_STATE_MAX: usize = 10;

/// An idle state, as its governor sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleState {
    /// `target_residency_ns`.
    pub target_residency: Span,
    /// `exit_latency_ns`.
    pub exit_latency: Span,
}

/// What a CPU knows when it goes idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// To the next timer other than the tick; `None`: there is none.
    pub next_timer: Option<Span>,
    /// To the next tick, if it were kept.
    pub next_tick: Span,
    /// The tick is stopped already.
    pub tick_stopped: bool,
    /// `TICK_NSEC`.
    pub tick: Span,
}

/// What a governor decides.
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
    /// What typical sleeps and the next timer say.
    Menu(MenuDevice),
    /// Timers first; what cut sleeps short is counted.
    Teo(TeoCpu),
}

impl IdleGovernor {
    /// Their names, as in `/sys/devices/system/cpu/cpuidle/available_governors`.
    pub const NAMES: &'static [&'static str] = &["menu", "teo"];

    /// The one of that name, without memories; `menu` for any other.
    pub fn named(name: &str) -> IdleGovernor {
        match name {
            "teo" => IdleGovernor::Teo(TeoCpu::default()),
            _ => IdleGovernor::Menu(MenuDevice::default()),
        }
    }

    /// Which of `states` (shallowest first, at most [`CPUIDLE_STATE_MAX`]) to enter now, and whether
    /// to stop the tick.
    pub fn select(&mut self, states: &[IdleState], sleep: Sleep) -> Selected {
        if states.len() < 2 {
            return Selected { state: 0, stop_tick: true };
        }
        match self {
            IdleGovernor::Menu(menu) => menu.select(states, sleep),
            IdleGovernor::Teo(teo) => teo.select(states, sleep),
        }
    }

    /// The CPU has been idle for `idle` in the state of that index; `by_tick`: the tick woke it.
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
        }
    }
}

/// A CPU with four states, and its sleeps.
#[cfg(test)]
mod sample {
    use super::{IdleState, Sleep};
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
        Sleep { next_timer, next_tick: Span(3 * MS), tick_stopped, tick: TICK }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_one_state_nobody_is_asked() {
        let one = [IdleState { target_residency: Span(1), exit_latency: Span(1) }];
        let sleep = Sleep {
            next_timer: Some(Span(1)),
            next_tick: Span(1),
            tick_stopped: false,
            tick: Span(4_000_000),
        };
        for name in IdleGovernor::NAMES {
            for states in [&one[..0], &one] {
                let mut governor = IdleGovernor::named(name);
                assert!(governor.select(states, sleep).stop_tick, "{name}");
                governor.update(states, 0, Span(5), false, sleep.tick);
                assert_eq!(governor, IdleGovernor::named(name));
            }
        }
    }
}
