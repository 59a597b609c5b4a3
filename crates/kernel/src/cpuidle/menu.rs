//! The `menu` governor of cpuidle: how long will this CPU sleep, how deep may it, and does the tick
//! stop?
//!
//! ```text
//! typical    mean of the last 8 sleeps without outliers, if they are alike; else none
//!            (up to 6.14 outliers are long sleeps only; since 6.15 at either end)
//! corrected  time to the next timer · the ratio found so far for that order of magnitude
//! predicted  min(typical, corrected)
//! state      deepest whose residency fits in it;   the tick stops if predicted ≥ TICK_NSEC, or if
//!            it is stopped already
//!
//! up to 6.5  the next timer is asked for first, and not only where sleeps are typically long
//! up to 6.11 while the tick runs, no state that takes longer to leave than the sleep is predicted
//! tick stopped, and predicted less than a tick: the next timer is taken instead; since 7.1 only
//!            if that is more than two ticks away
//! ```
//!
//! A state too deep for a prediction of a tick or more leaves a shallower one, and the tick running,
//! so that the choice is made again soon. Whether the tick stops is what schedutil's
//! `sugov_hold_freq` looks at on a policy of one CPU, and what makes a CPU one of nohz balancing's.
//!
//! Left out: polling states, tasks that wait for IO (up to 6.11 they
//! multiply exit latencies and have buckets of their own).
//! DEVIATES(idle-stable): `menu` of 6.12 is as its stable series has it, which asks for the next timer
//! wherever the tick is stopped (mainline: from 7.0 on), and so is the tick of CPUs with one idle state
//! of 6.1 and 6.12. 6.6 to 6.11 are taken not to have that, whether their series ended so or not. With
//! the tick stopped and typical sleeps of up to 15 µs, a CPU takes its deepest state there; with one
//! idle state its tick stops at once.
//! Source: drivers/cpuidle/governors/menu.c.

use super::{IdleState, RESIDENCY_THRESHOLD_NS, Selected, Sleep};
use crate::units::Span;
use crate::{KernelRev, features};

const INTERVALS: usize = 8;
const BUCKETS: usize = 6;
const RESOLUTION: u64 = 1024;
const DECAY: u64 = 8;
/// Sleeps longer than this count as predicted perfectly.
const MAX_INTERESTING: u64 = 50_000_000;
/// "No prediction", in µs.
const NONE_US: u64 = u32::MAX as u64;
const NSEC_PER_USEC: u64 = 1_000;

/// A CPU's memory of its sleeps (`struct menu_device`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MenuDevice {
    rev: KernelRev,
    next_timer_ns: u64,
    bucket: usize,
    correction_factor: [u64; BUCKETS],
    intervals_us: [u64; INTERVALS],
    /// `intervals_us`, ascending.
    sorted_us: [u64; INTERVALS],
    interval_ptr: usize,
}

impl MenuDevice {
    /// A CPU that has not slept yet.
    ///
    /// Left out: a kernel's very first choice counts as a sleep that was refused.
    pub const fn new(rev: KernelRev) -> MenuDevice {
        MenuDevice {
            rev,
            next_timer_ns: 0,
            bucket: 0,
            correction_factor: [RESOLUTION * DECAY; BUCKETS],
            intervals_us: [0; INTERVALS],
            sorted_us: [0; INTERVALS],
            interval_ptr: 0,
        }
    }

    /// A memory as a running kernel has it (`struct menu_device`).
    ///
    /// A bucket or a pointer that cannot be counts as 0.
    pub fn from_parts(
        rev: KernelRev,
        next_timer_ns: u64,
        bucket: usize,
        correction_factor: [u32; 6],
        intervals_us: [u32; 8],
        interval_ptr: usize,
    ) -> MenuDevice {
        let intervals_us = intervals_us.map(u64::from);
        let mut sorted_us = intervals_us;
        sorted_us.sort_unstable();
        MenuDevice {
            rev,
            next_timer_ns,
            bucket: if bucket < BUCKETS { bucket } else { 0 },
            correction_factor: correction_factor.map(u64::from),
            intervals_us,
            sorted_us,
            interval_ptr: if interval_ptr < INTERVALS { interval_ptr } else { 0 },
        }
    }

    /// The memory as parts, from which [`from_parts`](MenuDevice::from_parts) makes it again.
    pub fn to_parts(&self) -> (u64, usize, [u32; 6], [u32; 8], usize) {
        let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        (
            self.next_timer_ns,
            self.bucket,
            self.correction_factor.map(small),
            self.intervals_us.map(small),
            self.interval_ptr,
        )
    }

    /// The release whose `menu` this is.
    pub fn rev(&self) -> KernelRev {
        self.rev
    }

    /// Chooses which of `states` to enter now, and whether to stop the tick. At least two states.
    ///
    /// Source: menu.c:`menu_select`.
    pub(super) fn select(&mut self, states: &[IdleState], sleep: Sleep) -> Selected {
        let (mut predicted, delta_tick) = self.predict(sleep);
        let limits = sleep.limits;
        let (own, second) = (limits.latency_req.0, &states[1]);
        let no_choice =
            self.next_timer_ns < second.target_residency.0 || own < second.exit_latency.0;
        if own == 0 || (no_choice && limits.enabled(0)) {
            return Selected { state: 0, stop_tick: true };
        }
        let latency_first = self.rev.has(features::MENU_NO_INTERACTIVITY);
        let interactive = !latency_first && !sleep.tick_stopped;
        let latency_req = if interactive { predicted.min(own) } else { own };
        let enabled = || (0..states.len()).filter(|i| limits.enabled(*i));
        let mut idx = enabled().next().unwrap_or(0);
        for i in enabled() {
            let s = &states[i];
            if latency_first && s.exit_latency.0 > latency_req {
                break;
            }
            if s.target_residency.0 <= predicted {
                if s.exit_latency.0 > latency_req {
                    break;
                }
                idx = i;
                continue;
            }
            if predicted < sleep.tick.0 {
                break;
            }
            let shallow = states[idx].target_residency.0;
            if !sleep.tick_stopped {
                predicted = shallow;
                break;
            }
            if shallow < sleep.tick.0 && s.target_residency.0 <= delta_tick {
                idx = i;
            }
            return Selected { state: idx, stop_tick: true };
        }
        if sleep.tick_stopped || predicted >= sleep.tick.0 {
            return Selected { state: idx, stop_tick: true };
        }
        // The tick goes on: nothing deeper than what pays off until then.
        if states[idx].target_residency.0 > delta_tick {
            idx = limits.shallower(states, idx, delta_tick);
        }
        Selected { state: idx, stop_tick: false }
    }

    /// The predicted length of the sleep, and the time until the next event that the CPU knows of,
    /// both in ns.
    fn predict(&mut self, sleep: Sleep) -> (u64, u64) {
        let typical = self.typical_interval_us().saturating_mul(NSEC_PER_USEC);
        let stopped_asks = sleep.tick_stopped && self.rev.has(features::MENU_STOPPED_ASKS);
        let asks = !self.rev.has(features::MENU_TIMER_IF_WORTH)
            || typical > RESIDENCY_THRESHOLD_NS
            || stopped_asks;
        let (mut predicted, delta_tick) = if asks {
            self.next_timer_ns = sleep.next_timer.map_or(i64::MAX as u64, |s| s.0);
            self.bucket = which_bucket(self.next_timer_ns);
            (typical.min(self.corrected_us() * NSEC_PER_USEC), sleep.delta_next())
        } else {
            self.next_timer_ns = i64::MAX as u64;
            self.bucket = BUCKETS - 1;
            (typical, sleep.tick.0 / 2)
        };
        let safe =
            self.rev.has(features::SAFE_TIMER_RANGE_NS) && self.next_timer_ns <= 2 * sleep.tick.0;
        if sleep.tick_stopped && predicted < sleep.tick.0 && !safe {
            predicted = self.next_timer_ns;
        }
        (predicted, delta_tick)
    }

    /// The time to the next timer as it mostly was, in µs. Rounding: to nearest, half up.
    fn corrected_us(&self) -> u64 {
        let factor = self.correction_factor[self.bucket];
        self.next_timer_ns
            .checked_mul(factor)
            .and_then(|product| product.checked_add(RESOLUTION * DECAY * NSEC_PER_USEC / 2))
            // What does not fit 64 bits is far beyond 32. The kernel keeps it in those.
            .map_or(NONE_US, |sum| (sum / (RESOLUTION * DECAY * NSEC_PER_USEC)).min(NONE_US))
    }

    /// Learns that the CPU has been idle for `idle` in `state`; `tick_wakeup`: the tick woke it.
    ///
    /// Source: menu.c:`menu_update`.
    pub(super) fn update(&mut self, state: IdleState, idle: Span, tick_wakeup: bool, tick: Span) {
        let measured = if tick_wakeup && self.next_timer_ns > tick.0 {
            // The prediction was too short; how long it would have been is not known.
            9 * MAX_INTERESTING / 10
        } else if idle.0 > 2 * state.exit_latency.0 {
            idle.0 - state.exit_latency.0
        } else {
            idle.0 / 2
        };
        let measured = measured.min(self.next_timer_ns);
        let factor = &mut self.correction_factor[self.bucket];
        *factor -= *factor / DECAY;
        *factor += if self.next_timer_ns > 0 && measured < MAX_INTERESTING {
            RESOLUTION * measured / self.next_timer_ns
        } else {
            RESOLUTION
        };
        // The kernel keeps it in 32 bits.
        self.remember(u64::from((measured / NSEC_PER_USEC) as u32));
    }

    /// Puts a sleep, in µs, in the place of the oldest one.
    fn remember(&mut self, us: u64) {
        let oldest = core::mem::replace(&mut self.intervals_us[self.interval_ptr], us);
        self.interval_ptr = (self.interval_ptr + 1) % INTERVALS;
        let sorted = &mut self.sorted_us;
        let mut at = sorted.iter().position(|v| *v == oldest).unwrap_or(0);
        while at + 1 < INTERVALS && sorted[at + 1] < us {
            sorted[at] = sorted[at + 1];
            at += 1;
        }
        while at > 0 && sorted[at - 1] > us {
            sorted[at] = sorted[at - 1];
            at -= 1;
        }
        sorted[at] = us;
    }

    /// The typical interval of the last sleeps, in µs; [`NONE_US`] if they have nothing in common.
    fn typical_interval_us(&self) -> u64 {
        if self.rev.has(features::GET_TYPICAL_INTERVAL) {
            self.typical_interval_us_since_6_15()
        } else {
            self.typical_interval_us_pre_6_15()
        }
    }

    /// Outliers go from the upper end only, all that are equal at once.
    ///
    /// A CPU that has not slept yet remembers eight sleeps of no length; up to 6.5 that is what it
    /// expects, too. Rounding: mean and variance down. Source: menu.c:`get_typical_interval`.
    fn typical_interval_us_pre_6_15(&self) -> u64 {
        let upto = self.sorted_us.partition_point(|v| *v <= i32::MAX as u64);
        let mut kept = &self.sorted_us[..upto];
        while let Some(&max) = kept.last() {
            if max == 0 && self.rev.has(features::MENU_NO_LENGTH) {
                return NONE_US;
            }
            let n = kept.len() as u64;
            let avg = kept.iter().sum::<u64>() / n;
            let squares = kept.iter().map(|v| v.abs_diff(avg).pow(2));
            let variance = squares.fold(0u64, u64::wrapping_add) / n;
            if alike(n, avg, variance) {
                return avg;
            }
            if n * 4 <= INTERVALS as u64 * 3 {
                return NONE_US;
            }
            kept = &kept[..kept.partition_point(|v| *v < max)];
        }
        NONE_US
    }

    /// Outliers go from either end of the sorted sleeps, all that are equal at once.
    /// Rounding: mean and variance down. Source: menu.c:`get_typical_interval`.
    fn typical_interval_us_since_6_15(&self) -> u64 {
        let (mut kept, mut sum, mut squares) = (&self.sorted_us[..], 0, 0u64);
        while let [others @ .., NONE_US] = kept {
            kept = others;
        }
        for v in kept {
            sum += v;
            squares = squares.wrapping_add(v * v);
        }
        loop {
            let (Some(&min), Some(&max)) = (kept.first(), kept.last()) else { return NONE_US };
            if max == 0 {
                return NONE_US;
            }
            let n = kept.len() as u64;
            let avg = sum / n;
            let variance = (squares / n).wrapping_sub(avg * avg);
            if alike(n, avg, variance) {
                return avg;
            }
            if n * 4 <= INTERVALS as u64 * 3 {
                return NONE_US;
            }
            let outlier = if avg - min > max - avg { min } else { max };
            while let Some((v, others)) =
                if outlier == min { kept.split_first() } else { kept.split_last() }
                && *v == outlier
            {
                kept = others;
                sum -= v;
                squares = squares.wrapping_sub(v * v);
            }
        }
    }
}

/// Whether `n` sleeps of that mean and variance are typical: a deviation of up to 20 µs, or of less
/// than a sixth of the mean where most are kept.
fn alike(n: u64, avg: u64, variance: u64) -> bool {
    let most = n * 4 >= INTERVALS as u64 * 3;
    variance <= u64::MAX / 36 && ((avg * avg > variance * 36 && most) || variance <= 400)
}

fn which_bucket(ns: u64) -> usize {
    [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000].iter().filter(|b| ns >= **b).count()
}

#[cfg(test)]
mod tests {
    use super::super::sample::{MS, TICK, sleep, states};
    use super::*;

    #[test]
    fn a_long_sleep_is_deep_and_stops_the_tick() {
        let mut menu = MenuDevice::new(KernelRev::V7_3);
        let deep = Selected { state: 3, stop_tick: true };
        assert_eq!(menu.select(&states(), sleep(None, false)), deep);
        assert_eq!(menu.select(&states(), sleep(Some(20 * MS), false)), deep);
        assert_eq!(menu.select(&states(), sleep(Some(5 * MS), true)), deep);
    }

    #[test]
    fn the_tick_stays_where_the_next_deeper_state_would_not_pay_off() {
        // 4.95 ms are more than a tick, but the state below is for 5 ms: shallow, and looked at
        // again at the tick.
        let mut menu = MenuDevice::new(KernelRev::V7_3);
        let shallow = Selected { state: 2, stop_tick: false };
        assert_eq!(menu.select(&states(), sleep(Some(4_950_000), false)), shallow);
        assert_eq!(menu.select(&states(), sleep(Some(2 * MS), false)), shallow);
        // With the tick stopped already it stays so.
        let stopped = menu.select(&states(), sleep(Some(4_950_000), true));
        assert_eq!(stopped, Selected { state: 2, stop_tick: true });
        // No state deeper than pays off until the tick that is kept.
        let soon = Sleep { next_tick: Span(200_000), ..sleep(Some(2 * MS), false) };
        assert_eq!(menu.select(&states(), soon), Selected { state: 1, stop_tick: false });
    }

    #[test]
    fn sleeps_that_are_alike_predict_the_next() {
        let mut menu = MenuDevice::new(KernelRev::V7_3);
        for us in [500, 510, 490, 505, 495, 500, 500, 40_000] {
            menu.select(&states(), sleep(None, false));
            menu.update(states()[0], Span(us * 1000 + 1000), false, TICK);
        }
        assert_eq!(menu.typical_interval_us(), 500, "one outlier is left out");
        let s = menu.select(&states(), sleep(None, false));
        assert_eq!(s, Selected { state: 1, stop_tick: false });
    }

    /// The sleeps as they come, and what a pass over them finds without the sorted ones.
    fn typical_by_passes(sleeps: &[u64]) -> u64 {
        let (mut from, mut below) = (0, NONE_US);
        loop {
            let kept = || sleeps.iter().filter(|v| (from..below).contains(*v));
            let n = kept().count() as u64;
            let (Some(&min), Some(&max)) = (kept().min(), kept().max()) else { return NONE_US };
            if max == 0 {
                return NONE_US;
            }
            let avg = kept().sum::<u64>() / n;
            let squares = kept().fold(0u64, |sum, v| sum.wrapping_add(v * v));
            let variance = (squares / n).wrapping_sub(avg * avg);
            let most = n * 4 >= INTERVALS as u64 * 3;
            let alike = || (avg * avg > variance * 36 && most) || variance <= 400;
            if variance <= u64::MAX / 36 && alike() {
                return avg;
            }
            if n * 4 <= INTERVALS as u64 * 3 {
                return NONE_US;
            }
            (from, below) = if avg - min > max - avg { (min + 1, below) } else { (from, max) };
        }
    }

    #[test]
    fn sorted_sleeps_say_what_passes_over_them_say() {
        let mut menu = MenuDevice::new(KernelRev::V7_3);
        let mut x = 1u64;
        let mut typical = 0;
        for _ in 0..20_000 {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Often alike, often equal, sometimes as long as 32 bits hold.
            let us = match x >> 60 {
                0..=9 => 500 + ((x >> 40) & 15),
                10 | 11 => 500,
                12 => u64::from(u32::MAX) - ((x >> 40) & 1),
                13 => 0,
                _ => (x >> 40) & 0xffff,
            };
            menu.remember(us);
            let mut sorted = menu.intervals_us;
            sorted.sort_unstable();
            assert_eq!(menu.sorted_us, sorted);
            let found = menu.typical_interval_us();
            assert_eq!(found, typical_by_passes(&menu.intervals_us), "{:?}", menu.intervals_us);
            typical += u32::from(found != NONE_US);
        }
        assert!((1000..19_000).contains(&typical), "{typical}");
    }

    #[test]
    fn sleeps_cut_short_correct_the_timer() {
        let mut menu = MenuDevice::new(KernelRev::V7_3);
        let before = menu.select(&states(), sleep(Some(9 * MS), false));
        assert!(before.stop_tick);
        for i in 0..40 {
            menu.select(&states(), sleep(Some(9 * MS), false));
            // Unlike each other, so that only the ratio tells.
            menu.update(states()[0], Span(100_000 << (i % 5)), false, TICK);
        }
        assert!(!menu.select(&states(), sleep(Some(9 * MS), false)).stop_tick);
        // Other orders of magnitude are not touched.
        assert!(menu.select(&states(), sleep(Some(90 * MS), false)).stop_tick);
    }

    #[test]
    fn a_wakeup_by_the_tick_says_that_more_was_possible() {
        let mut menu = MenuDevice::new(KernelRev::V7_3);
        menu.select(&states(), sleep(None, false));
        menu.update(states()[0], Span(MS), true, TICK);
        assert_eq!(menu.intervals_us[0], 45_000);
        menu.select(&states(), sleep(Some(MS), false));
        menu.update(states()[0], Span(MS), true, TICK);
        assert_eq!(menu.intervals_us[1], 999, "the timer was as near");
    }
}
