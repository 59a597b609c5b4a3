//! The `teo` governor of cpuidle up to 7.0, in the three forms of the kernels modelled here.
//!
//! ```text
//! bin i       sleeps of at least state i's residency and less than the next deeper one's
//! hits        sleeps that lasted until the timer, or near  } + 1024 for each,
//! intercepts  sleeps that something else ended             } − 1/8 after every sleep
//! recent      intercepts among the last 9 sleeps                                    up to 6.10
//! tick_hits   sleeps of a tick or more, where every state pays off in less          since 6.6
//! candidate   the deepest state, up to 6.5 of those that pay off until the next timer; if
//!             intercepts (or recent ones: 5 of 9) below it outweigh all that fits it, the deepest
//!             one that half of those reached; with the tick stopped not below a tick
//! utilized    one state shallower on a CPU with more util than capacity / 64     6.3 to 6.10
//! tick        stops if the timer is a tick or more away; since 6.6 not if five eighths of all
//!             sleeps were cut short, up to 6.5 not for a candidate so found
//! ```
//!
//! A sleep that the tick ends counts as one that lasted until the timer.
//!
//! A latency limit, and disabled states, leave a shallower one than the candidate. Left out: polling states.
//! DEVIATES(teo-between): `teo` of 6.3 to 6.5 is taken without its look at util, and that of 6.13 to
//! 7.0, which went over to the form of 7.1 step by step, to behave like 6.12's. The presets of 6.18
//! and 7.0 are of them.
//! Source: drivers/cpuidle/governors/teo.c.

use super::{CPUIDLE_STATE_MAX, IdleState, Limits, Selected, Sleep};
use crate::units::Span;
use crate::{KernelRev, features};

const PULSE: u32 = 1024;
const DECAY_SHIFT: u32 = 3;
const NR_RECENT: usize = 9;
/// "No timer", `KTIME_MAX`.
const NEVER: u64 = i64::MAX as u64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bin {
    intercepts: u32,
    hits: u32,
    recent: u32,
}

/// A CPU's memory of its sleeps (`struct teo_cpu`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeoCpuPre71 {
    rev: KernelRev,
    sleep_length_ns: u64,
    bins: [Bin; CPUIDLE_STATE_MAX],
    total: u32,
    tick_hits: u32,
    next_recent: usize,
    /// The bin that each of the last sleeps was an intercept of.
    recent: [Option<u8>; NR_RECENT],
}

/// Sums of the bins of all states shallower than a candidate.
#[derive(Clone, Copy, Default)]
struct Below {
    hits: u32,
    intercepts: u32,
    recent: u32,
}

impl TeoCpuPre71 {
    /// A CPU that has not slept yet.
    pub const fn new(rev: KernelRev) -> TeoCpuPre71 {
        TeoCpuPre71 {
            rev,
            sleep_length_ns: 0,
            bins: [Bin { intercepts: 0, hits: 0, recent: 0 }; CPUIDLE_STATE_MAX],
            total: 0,
            tick_hits: 0,
            next_recent: 0,
            recent: [None; NR_RECENT],
        }
    }

    /// Whether the CPU's util counts.
    pub(super) fn asks_for_util(&self) -> bool {
        self.rev.has(features::TEO_UTIL)
    }

    /// Chooses which of `states` to enter now, and whether to stop the tick. At least two states.
    ///
    /// Source: teo.c:`teo_select`.
    pub(super) fn select(&mut self, states: &[IdleState], sleep: Sleep) -> Selected {
        if self.rev.has(features::TEO_DEEPEST_FIRST) {
            self.select_since_6_6(states, sleep)
        } else {
            self.select_pre_6_6(states, sleep)
        }
    }

    fn select_pre_6_6(&mut self, states: &[IdleState], sleep: Sleep) -> Selected {
        let timer = sleep.next_timer.map_or(NEVER, |s| s.0);
        self.sleep_length_ns = timer;
        let residency = |i: usize| states[i].target_residency.0;
        let deepest = (1..states.len()).take_while(|i| residency(*i) <= timer).last();
        let (mut idx, mut duration) = (sleep.limits.at_most(states, deepest.unwrap_or(0)), timer);
        // A sleep of a bin's middle is what its state is good for.
        let middle = |i: usize| (residency(i) + residency(i + 1)) / 2;
        let suits = |i: usize| !sleep.tick_stopped || middle(i) >= sleep.tick.0;
        if idx > 0
            && let Some(i) = self.intercepted(idx, suits)
        {
            (idx, duration) = (sleep.limits.at_most(states, i), middle(i));
        }
        tick_or_not(states, sleep, idx, duration, sleep.delta_next())
    }

    fn select_since_6_6(&mut self, states: &[IdleState], sleep: Sleep) -> Selected {
        let tick = sleep.tick.0;
        self.sleep_length_ns = NEVER;
        let residency = |i: usize| states[i].target_residency.0;
        // With the tick stopped already it stays so: only its owner starts it again.
        let kept = |state| Selected { state, stop_tick: sleep.tick_stopped };
        let suits = |i: usize| !sleep.tick_stopped || residency(i) >= tick;
        let utilized = self.asks_for_util() && sleep.utilized;
        if utilized && states.len() < 3 && sleep.limits == Limits::NONE {
            if suits(0) {
                return kept(0);
            }
            return tick_or_not(states, sleep, 1, residency(1), tick / 2);
        }
        let deepest = states.len() - 1;
        let idx = self.intercepted(deepest, suits).unwrap_or(deepest);
        let mut idx = sleep.limits.at_most(states, idx);
        if utilized && idx > 0 && suits(idx - 1) && sleep.limits.enabled(idx - 1) {
            idx -= 1;
        }
        let timer = sleep.next_timer.map_or(NEVER, |s| s.0);
        if idx == 0 {
            if self.rev.has(features::TEO_TIMER_AT_SHALLOWEST) {
                // Only to tell, after it, a hit from an intercept.
                self.sleep_length_ns = timer;
            }
            return kept(0);
        }
        self.sleep_length_ns = timer;
        let mut duration = timer;
        if residency(idx) > duration {
            let shallower = sleep.limits.shallower(states, idx, duration);
            if self.rev.has(features::TEO_ANY_SHALLOWER) || suits(shallower) {
                idx = shallower;
            }
        }
        let cut_short: u32 = self.bins[..states.len()].iter().map(|b| b.intercepts).sum();
        if residency(idx) < tick && cut_short > self.total / 2 + self.total / 8 {
            duration = tick / 2;
        }
        tick_or_not(states, sleep, idx, duration, sleep.delta_next())
    }

    /// The state instead of the candidate `idx`, if most sleeps that would have fitted it were cut short:
    /// the deepest one that half of those reached, or a deeper one if it does not suit.
    fn intercepted(&self, idx: usize, suits: impl Fn(usize) -> bool) -> Option<usize> {
        let below = self.bins[..idx].iter().fold(Below::default(), |sum, b| Below {
            hits: sum.hits.wrapping_add(b.hits),
            intercepts: sum.intercepts.wrapping_add(b.intercepts),
            recent: sum.recent.wrapping_add(b.recent),
        });
        let overall = 2 * below.intercepts > self.total.wrapping_sub(below.hits);
        let lately = self.rev.has(features::TEO_RECENT) && below.recent > NR_RECENT as u32 / 2;
        if !overall && !lately {
            return None;
        }
        let (mut reached, mut suitable) = (Below::default(), None);
        for i in (0..idx).rev() {
            reached.intercepts += self.bins[i].intercepts;
            reached.recent = reached.recent.wrapping_add(self.bins[i].recent);
            if (!lately || reached.recent.wrapping_mul(2) > below.recent)
                && (!overall || 2 * reached.intercepts > below.intercepts)
            {
                return if suits(i) { Some(i) } else { suitable };
            }
            if suits(i) {
                suitable = Some(i);
            } else if suitable.is_none() {
                break;
            }
        }
        None
    }

    /// Learns that the CPU has been idle for `idle` in `state`; `tick_wakeup`: the tick woke it.
    ///
    /// Source: teo.c:`teo_update`, `teo_reflect`.
    pub(super) fn update(
        &mut self,
        states: &[IdleState],
        state: IdleState,
        idle: Span,
        tick_wakeup: bool,
        tick: Span,
    ) {
        let latency = state.exit_latency.0;
        let lasted = tick_wakeup && self.sleep_length_ns > tick.0;
        let measured = if lasted || idle.0 >= self.sleep_length_ns {
            u64::MAX
        } else if idle.0 >= latency {
            idle.0 - latency / 2
        } else {
            idle.0 / 2
        };
        let (mut timer, mut duration) = (0, 0);
        self.total = 0;
        for (i, s) in states.iter().enumerate() {
            let bin = &mut self.bins[i];
            bin.hits -= bin.hits >> DECAY_SHIFT;
            bin.intercepts -= bin.intercepts >> DECAY_SHIFT;
            self.total += bin.hits + bin.intercepts;
            let residency = s.target_residency.0;
            if residency <= self.sleep_length_ns {
                timer = i;
                if residency <= measured {
                    duration = i;
                }
            }
        }
        let was_recent = self.next_recent;
        self.next_recent = (self.next_recent + 1) % NR_RECENT;
        if let Some(bin) = self.recent[was_recent] {
            let recent = &mut self.bins[usize::from(bin)].recent;
            *recent = recent.wrapping_sub(1);
        }
        let beyond = states.last().is_some_and(|s| s.target_residency.0 < tick.0);
        if self.rev.has(features::TEO_TICK_HITS) && beyond {
            self.tick_hits -= self.tick_hits >> DECAY_SHIFT;
            self.total += self.tick_hits;
            if tick.0 <= self.sleep_length_ns {
                timer = states.len();
                if tick.0 <= measured {
                    // The kernel leaves the place in `recent` as it is: nine sleeps later the same
                    // intercept is taken back once more.
                    self.tick_hits += PULSE;
                    self.total += PULSE;
                    return;
                }
            }
        }
        self.total += PULSE;
        if timer == duration {
            self.bins[timer].hits += PULSE;
            self.recent[was_recent] = None;
        } else {
            self.bins[duration].intercepts += PULSE;
            let recent = &mut self.bins[duration].recent;
            *recent = recent.wrapping_add(1);
            self.recent[was_recent] = Some(duration as u8);
        }
    }
}

/// Stops the tick for `duration` if that is a tick or more; else the tick ends the sleep after
/// `delta`, and nothing deeper is taken than pays off by then.
fn tick_or_not(
    states: &[IdleState],
    sleep: Sleep,
    idx: usize,
    duration: u64,
    delta: u64,
) -> Selected {
    if sleep.tick_stopped || duration >= sleep.tick.0 {
        return Selected { state: idx, stop_tick: true };
    }
    let too_deep = idx > 0 && states[idx].target_residency.0 > delta;
    let state = if too_deep { sleep.limits.shallower(states, idx, delta) } else { idx };
    Selected { state, stop_tick: false }
}
