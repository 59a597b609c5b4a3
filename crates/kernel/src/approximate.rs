//! Between compute and time: how far util climbs in a given time at full speed, and how long a
//! util takes to reach; and the migration margin that the response-time series derives from them.
//!
//! ```text
//!  approximate_util_avg(u, d)   A(u, d): util after running for d µs from util u, at the start of
//!                               a PELT period; a µs counts as one unit of 1024 ns
//!  approximate_runtime(u)       rt(u): the least n with A(0, 1024 n) ≥ u, called ms
//!
//!  fits_capacity: util < threshold        t = TICK_USEC, c = capacity of the CPU
//!   threshold       A(0, 1000 rt(c) · c/1024)            ┐ the posting of February 2024
//!   threshold-tick  A(0, (1000 rt(c) − t) · c/1024)      ┘
//!   rfc             A(0, 1000 rt(c) − t)                   the series' own
//! ```
//!
//! Nothing here knows capacity or frequency: that is the point. With the PELT multiplier m (patch
//! 7) each µs counts m units. Left out: `sd->balance_interval`, which the series names as the better
//! t and does not use.
//!
//! Source: RFC 00/16 "Better manage system response time" (August 2024), patches 2, 3, 4 and 7;
//! for `threshold` and `threshold-tick` 20240205223344.2280519-4-qyousef@layalina.io.

use crate::pelt::{Decay, SchedAvg, accumulate_running, cap_scale, update_load_avg};
use crate::units::{Capacity, Util};

/// The util that an entity has after it has gone on running for `delta_us` from `util`.
///
/// Rounding: down. `util` above some 90 000 wraps, as the kernel's 32-bit sum does.
/// Source: RFC 00/16, patch 2 (multiplier: patch 7), `approximate_util_avg`.
pub fn approximate_util_avg(decay: &Decay, util: Util, delta_us: u64) -> Util {
    if delta_us == 0 {
        return util;
    }
    let sum = util.0.wrapping_mul(u64::from(decay.pelt_min_divider()));
    let mut sa = SchedAvg { util_sum: sum as u32, util_avg: util, ..SchedAvg::default() };
    accumulate_running(decay, &mut sa, delta_us << decay.lshift());
    update_load_avg(decay, &mut sa, 0);
    sa.util_avg
}

/// The running time, in periods of 1.024 ms that count as ms, that takes an entity from 0 to
/// `util`.
///
/// `DEVIATES(approximate_runtime-end)`: a util that is never reached (1025: the default response time of
/// a policy with one frequency) would keep the series' loop going for ever. Here it ends when the sum no
/// longer grows, with the time that took.
/// Source: RFC 00/16, patch 3 (multiplier: patch 7), `approximate_runtime`.
pub fn approximate_runtime(decay: &Decay, util: Util) -> u64 {
    let mut sa = SchedAvg::default();
    let mut runtime = 0;
    while sa.util_avg < util {
        let before = sa.util_sum;
        accumulate_running(decay, &mut sa, 1024 << decay.lshift());
        update_load_avg(decay, &mut sa, 0);
        if sa.util_sum == before {
            break;
        }
        runtime += 1;
    }
    runtime
}

/// `TICK_USEC`: a tick in µs. Rounding: to the nearest. Source: include/linux/jiffies.h.
pub const fn tick_usec(hz: u32) -> u64 {
    let hz = hz as u64;
    (1_000_000 + hz / 2) / hz
}

/// Margin that a CPU keeps before a task or a CPU counts as too big for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Margin {
    /// Mainline: 80 % of what the CPU has to give ([`crate::fits::fits_capacity`]).
    #[default]
    Fifth,
    /// The first column of the earlier posting's table: no tick in it.
    Threshold,
    /// The second column: a tick less.
    ThresholdTick,
    /// The series of August 2024, patch 4.
    Rfc,
}

/// `rq->fits_capacity_threshold` of a CPU: the util from which on nothing fits. `None`: mainline,
/// which has none.
///
/// `DEVIATES(fits-capacity-wraps)`: the time is unsigned, and where a CPU fills in less than a tick
/// (capacity up to 64 at HZ=250) the subtraction wraps, so that everything fits such a CPU. Kept as the
/// series has it, though it cannot be what it means; a run says so.
/// Source: RFC 00/16, patch 4, update_cpu_capacity.
pub fn fits_capacity_threshold(
    decay: &Decay,
    margin: Margin,
    capacity: Capacity,
    tick_us: u64,
) -> Option<Util> {
    let us = approximate_runtime(decay, Util(capacity.0)).wrapping_mul(1000);
    let less_a_tick = us.wrapping_sub(tick_us);
    let limit = match margin {
        Margin::Fifth => return None,
        Margin::Threshold => cap_scale(us, capacity.0),
        Margin::ThresholdTick => cap_scale(less_a_tick, capacity.0),
        Margin::Rfc => less_a_tick,
    };
    Some(approximate_util_avg(decay, Util(0), limit))
}

/// Whether [`fits_capacity_threshold`] wraps on such a CPU, so that everything fits it: its time to
/// fill is shorter than a tick. Capacities up to 64 at HZ=250 and up to 181 at HZ=100, at
/// mainline's half-life.
pub fn margin_wraps(decay: &Decay, margin: Margin, capacity: Capacity, tick_us: u64) -> bool {
    matches!(margin, Margin::ThresholdTick | Margin::Rfc)
        && approximate_runtime(decay, Util(capacity.0)).wrapping_mul(1000) < tick_us
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const MS32: &Decay = &Decay::MS32;

    fn threshold(margin: Margin, capacity: u64, hz: u32) -> u64 {
        fits_capacity_threshold(MS32, margin, Capacity(capacity), tick_usec(hz))
            .expect("not mainline")
            .0
    }

    /// All 29 rows of the table in RFC 00/16: capacity, `threshold`, `threshold-tick`.
    #[test]
    fn the_published_table_to_the_last_row() {
        let table = [
            (0, 0, 0),
            (16, 0, 0),
            (32, 1, 0),
            (48, 3, 2),
            (64, 4, 2),
            (80, 6, 5),
            (96, 10, 8),
            (112, 14, 11),
            (128, 18, 16),
            (144, 21, 18),
            (160, 26, 23),
            (176, 33, 29),
            (192, 39, 35),
            (208, 47, 43),
            (224, 55, 50),
            (240, 63, 59),
            (256, 73, 68),
            (272, 82, 77),
            (288, 93, 87),
            (304, 103, 97),
            (320, 114, 108),
            (336, 126, 120),
            (352, 138, 132),
            (368, 151, 144),
            (384, 163, 157),
            (704, 557, 550),
            (720, 578, 572),
            (736, 606, 600),
            (752, 633, 627),
        ];
        assert_eq!(table.len(), 29);
        for (capacity, plain, tick) in table {
            let plain_found = threshold(Margin::Threshold, capacity, 1000);
            // Capacity 0 fills in no time, and less a tick that wraps; scaled by 0 it is 0 again.
            let found = (plain_found, threshold(Margin::ThresholdTick, capacity, 1000));
            assert_eq!(found, (plain, tick), "{capacity}");
        }
    }

    #[test]
    fn the_thresholds_that_the_review_measured() {
        assert_eq!(approximate_runtime(MS32, Util(160)), 8);
        assert_eq!(threshold(Margin::Rfc, 160, 250), 83);
        assert_eq!(threshold(Margin::Rfc, 459, 1000), 445);
        assert_eq!(fits_capacity_threshold(MS32, Margin::Fifth, Capacity(459), 1000), None);
    }

    #[test]
    fn a_tick_longer_than_the_climb_wraps_and_everything_fits() {
        let wraps =
            |capacity, hz| margin_wraps(MS32, Margin::Rfc, Capacity(capacity), tick_usec(hz));
        // Whether it wraps is whether the threshold is absurd.
        for hz in [100, 250, 300, 1000] {
            for capacity in 0..=1024 {
                let threshold = threshold(Margin::Rfc, capacity, hz);
                assert_eq!(wraps(capacity, hz), threshold > capacity.max(8), "{capacity} {hz}");
            }
        }
        let last = |hz| (0..1024).rfind(|c| wraps(*c, hz));
        assert_eq!((last(1000), last(250), last(100)), (Some(0), Some(64), Some(181)));
        assert!(!margin_wraps(MS32, Margin::Threshold, Capacity(10), tick_usec(100)));
    }

    /// The rise of the time-based estimate: ticks until 900, and where rounding ends the climb.
    #[test]
    fn the_climb_in_ticks_ends_below_the_top() {
        let climb = |tick_us: u64| -> Vec<u64> {
            let next = |u: &Util| Some(approximate_util_avg(MS32, *u, tick_us));
            core::iter::successors(Some(Util(0)), next).take(2000).map(|u| u.0).collect()
        };
        let ms = climb(1000);
        assert_eq!(ms.iter().position(|u| *u >= 900), Some(110));
        assert_eq!(ms.iter().position(|u| *u >= 445), Some(28));
        assert_eq!((ms[1999], climb(4000)[1999]), (977, 1012));
    }

    #[test]
    fn time_and_util_are_each_others_inverse() {
        for half_life in [1, 2, 4].map(|m| Decay::MS32.with_multiplier(m).expect("known")) {
            let mut last = 0;
            for util in 0..=1000 {
                let ms = approximate_runtime(&half_life, Util(util));
                assert!(ms >= last, "{util}");
                last = ms;
                // A whole period is 1024 units, and the posted caller says 1000 µs to it.
                let at = |ms: u64| approximate_util_avg(&half_life, Util(0), ms * 1024).0;
                assert!(at(ms) + 1 >= util, "{util}: {ms} ms give {}", at(ms));
                assert!(ms == 0 || at(ms - 1) < util, "{util}: {ms} ms, one too many");
            }
        }
    }

    #[test]
    fn what_is_never_reached_ends_all_the_same() {
        let to = |util| approximate_runtime(MS32, Util(util));
        // 323 is also what the review of the series gives for capacity 1024.
        assert_eq!([1000, 1023, 1024].map(to), [172, 290, 323]);
        assert_eq!(to(1025), to(u64::MAX), "when the sum stands still");
        assert_eq!(approximate_util_avg(MS32, Util(0), u64::MAX >> 1), Util(1024));
        assert_eq!(approximate_util_avg(MS32, Util(300), 0), Util(300));
    }

    #[test]
    fn a_shorter_half_life_climbs_that_much_faster() {
        let [half, quarter] = [2, 4].map(|m| Decay::MS32.with_multiplier(m).expect("known"));
        for us in [1, 999, 1000, 4000, 33_000, 100_000] {
            let at = |decay, us| approximate_util_avg(decay, Util(77), us);
            assert_eq!(at(&half, us), at(MS32, 2 * us));
            assert_eq!(at(&quarter, us), at(MS32, 4 * us));
        }
        let to = |decay| approximate_runtime(decay, Util(900));
        assert_eq!((to(MS32), to(&half), to(&quarter)), (98, 49, 25));
    }

    #[test]
    fn a_tick_is_rounded_to_the_nearest_us() {
        assert_eq!([100, 250, 300, 1000, 1024].map(tick_usec), [10_000, 4000, 3333, 1000, 977]);
    }
}
