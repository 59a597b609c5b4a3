//! The `teo` governor of cpuidle: the next timer ends most sleeps, and what ends the others is counted.
//!
//! ```text
//! bin i       sleeps of at least state i's residency and less than the next deeper one's
//! hits        sleeps that lasted until the timer                     } + 1024 for each,
//! intercepts  sleeps that something else ended, by how long they were } − 1/8 after every sleep
//! candidate   the deepest state; if intercepts below it outweigh all that fits it, the deepest one
//!             that half of those intercepts reached
//! state       the candidate, or a shallower one that pays off until the next timer
//! tick        stops if the timer is a tick or more away, unless two thirds of all sleeps ended
//!             within a tick
//! ```
//!
//! A latency limit, and disabled states, leave a shallower one than the candidate. Since 7.1, older ones:
//! [`super::teo_pre_7_1`]. Left out: polling states.
//! Source: drivers/cpuidle/governors/teo.c.

use super::{CPUIDLE_STATE_MAX, IdleState, RESIDENCY_THRESHOLD_NS, Selected, Sleep};
use crate::units::Span;

const PULSE: u32 = 1024;
const DECAY_SHIFT: u32 = 3;
/// "No timer", `KTIME_MAX`.
const NEVER: u64 = i64::MAX as u64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bin {
    intercepts: u32,
    hits: u32,
}

/// A CPU's memory of its sleeps (`struct teo_cpu`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TeoCpu {
    sleep_length_ns: u64,
    bins: [Bin; CPUIDLE_STATE_MAX],
    total: u32,
    total_tick: u32,
    tick_intercepts: u32,
    short_idles: u32,
}

/// An eighth less, rounded down; what is below 8 is gone.
fn decay(metric: &mut u32) {
    let delta = *metric >> DECAY_SHIFT;
    *metric = if delta == 0 { 0 } else { *metric - delta };
}

impl TeoCpu {
    /// Chooses which of `states` to enter now, and whether to stop the tick. At least two states.
    ///
    /// Source: teo.c:`teo_select`.
    pub(super) fn select(&mut self, states: &[IdleState], sleep: Sleep) -> Selected {
        let tick = sleep.tick.0;
        self.sleep_length_ns = NEVER;
        let limits = sleep.limits;
        let mut idx = limits.at_most(states, self.candidate(states.len()));
        let residency = |i: usize| states[i].target_residency.0;
        let keeps = |state| Selected { state, stop_tick: false };
        let stops = |state| Selected { state, stop_tick: true };
        let short = idx == 0 || residency(idx) < RESIDENCY_THRESHOLD_NS;
        if !sleep.tick_stopped && short && 2 * self.short_idles >= self.total {
            return keeps(idx);
        }
        let mut duration = sleep.next_timer.map_or(NEVER, |s| s.0);
        self.sleep_length_ns = duration;
        if sleep.tick_stopped && duration > 2 * tick && residency(idx) < tick {
            // Nothing may come for long: not in a shallow state.
            let deeper = (idx + 1..states.len()).rev().find(|i| residency(*i) <= duration);
            return stops(limits.at_most(states, deeper.unwrap_or(idx)));
        }
        if idx == 0 {
            // With the tick stopped already it stays so: only its owner starts it again.
            return Selected { state: 0, stop_tick: sleep.tick_stopped };
        }
        if residency(idx) > duration {
            idx = limits.shallower(states, idx, duration);
        }
        if residency(idx) < tick && 3 * self.tick_intercepts >= 2 * self.total {
            duration = tick / 2;
        }
        if duration >= tick || sleep.tick_stopped {
            return stops(idx);
        }
        if idx > 0 && residency(idx) > sleep.delta_next() {
            idx = limits.shallower(states, idx, sleep.delta_next());
        }
        keeps(idx)
    }

    /// The deepest state that was not too deep for most sleeps that something cut short.
    fn candidate(&self, nr: usize) -> usize {
        let below = &self.bins[..nr - 1];
        let hits: u32 = below.iter().map(|b| b.hits).sum();
        let intercepts: u32 = below.iter().map(|b| b.intercepts).sum();
        if 2 * intercepts <= self.total.wrapping_sub(hits) {
            return nr - 1;
        }
        let most = (0..nr - 1).max_by_key(|i| (below[*i].intercepts, *i)).unwrap_or(0);
        let mut reached = 0;
        for i in (0..nr - 1).rev() {
            reached += below[i].intercepts;
            if 2 * reached > intercepts && i <= most {
                return i;
            }
        }
        0
    }

    /// Learns that the CPU has been idle for `idle` in `state`; `tick_wakeup`: the tick woke it.
    ///
    /// Source: teo.c:`teo_update`.
    pub(super) fn update(
        &mut self,
        states: &[IdleState],
        state: IdleState,
        idle: Span,
        tick_wakeup: bool,
        tick: Span,
    ) {
        let latency = state.exit_latency.0;
        decay(&mut self.short_idles);
        let measured = if idle.0 >= latency { idle.0 - latency / 2 } else { idle.0 / 2 };
        if idle.0 < latency || measured < RESIDENCY_THRESHOLD_NS {
            self.short_idles += PULSE;
        }
        let (mut timer, mut duration, mut total) = (0, 0, 0);
        for (i, s) in states.iter().enumerate() {
            let bin = &mut self.bins[i];
            decay(&mut bin.hits);
            decay(&mut bin.intercepts);
            total += bin.hits + bin.intercepts;
            let residency = s.target_residency.0;
            if residency <= self.sleep_length_ns {
                timer = i;
                if residency <= measured {
                    duration = i;
                }
            }
        }
        self.total = total + PULSE;
        decay(&mut self.tick_intercepts);
        decay(&mut self.total_tick);
        if tick_wakeup {
            self.total_tick += PULSE;
            if 3 * self.total_tick > 2 * self.total {
                self.bins[states.len() - 1].hits += PULSE;
                return;
            }
            if 3 * self.tick_intercepts < 2 * total {
                self.bins[timer].hits += PULSE;
                return;
            }
        }
        let late = i128::from(self.sleep_length_ns) - i128::from(measured);
        if timer == duration && late < i128::from(latency / 2) {
            self.bins[timer].hits += PULSE;
        } else {
            self.bins[duration].intercepts += PULSE;
            if measured <= tick.0 {
                self.tick_intercepts += PULSE;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{MS, TICK, sleep, states};
    use super::*;

    /// A CPU that has slept `idle` ns, with a timer after `timer` ns, `times` times over.
    fn taught(times: usize, timer: Option<u64>, idle: u64) -> TeoCpu {
        let mut teo = TeoCpu::default();
        for _ in 0..times {
            let s = teo.select(&states(), sleep(timer, false));
            teo.update(&states(), states()[s.state], Span(idle), false, TICK);
        }
        teo
    }

    #[test]
    fn without_memories_the_next_timer_decides() {
        // Long asleep before: no short sleeps to be wary of.
        let mut teo = taught(8, None, 50 * MS);
        let mut at = |timer, stopped| teo.select(&states(), sleep(timer, stopped));
        assert_eq!(at(Some(20 * MS), false), Selected { state: 3, stop_tick: true });
        assert_eq!(at(Some(4_500_000), false), Selected { state: 2, stop_tick: true });
        assert_eq!(at(Some(2 * MS), false), Selected { state: 2, stop_tick: false });
        assert_eq!(at(Some(300_000), false), Selected { state: 1, stop_tick: false });
        assert_eq!(at(Some(300_000), true), Selected { state: 1, stop_tick: true });
    }

    #[test]
    fn sleeps_that_something_cuts_short_become_shallow_and_keep_the_tick() {
        let mut teo = taught(40, Some(50 * MS), 300_000);
        let expected = Selected { state: 1, stop_tick: false };
        assert_eq!(teo.select(&states(), sleep(Some(50 * MS), false)), expected);
        // Even then a CPU whose tick has stopped is not left there if no timer is near.
        let deep = Selected { state: 3, stop_tick: true };
        assert_eq!(teo.select(&states(), sleep(Some(50 * MS), true)), deep);
    }

    #[test]
    fn on_time_wakeups_are_hits_and_do_not_make_sleeps_shallow() {
        let teo = taught(40, Some(MS), MS + 200_000);
        assert!(teo.bins[2].hits > 4 * PULSE && teo.bins[2].intercepts == 0, "{teo:?}");
        let early = taught(40, Some(50 * MS), MS);
        assert!(early.bins[2].intercepts > 4 * PULSE && early.bins[2].hits == 0, "{early:?}");
    }

    #[test]
    fn wakeups_by_the_tick_alone_lead_to_stopping_it() {
        let mut teo = taught(40, Some(50 * MS), 300_000);
        for _ in 0..20 {
            teo.select(&states(), sleep(Some(50 * MS), false));
            teo.update(&states(), states()[1], Span(3 * MS), true, TICK);
        }
        assert!(teo.select(&states(), sleep(Some(50 * MS), false)).stop_tick);
    }

    #[test]
    fn metrics_fade_by_an_eighth_and_end_at_0() {
        let mut metric = PULSE;
        decay(&mut metric);
        assert_eq!(metric, 896);
        let steps = core::iter::repeat_n((), 100).take_while(|()| {
            decay(&mut metric);
            metric > 0
        });
        assert!(steps.count() < 50);
        // Constant sleeps: 1024 each, of which 7/8 stays; rounding down leaves at most 8 · 1024.
        let teo = taught(100, Some(50 * MS), 300_000);
        assert!(teo.bins[1].intercepts <= 8 * PULSE && teo.bins[1].intercepts > 7 * PULSE);
    }
}
