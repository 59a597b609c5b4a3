//! Two ideas beside the response-time series that the discussion of it compares it with; neither is
//! in mainline. (The third, counting contention in `cpu_util`, is: [`crate::cpu_util`].)
//!
//! ```text
//!  UTIL_EST_FASTER   cpu_util ≥ A(0, 2 · running time of the current activation)
//!  UTIL_EST_BOOST    task_util_est = util + (util - est) / 2   if 0 < est < util, else the larger
//! ```
//!
//! Source: UTIL_EST_FASTER: P. Zijlstra, linux-kernel, 7 Nov 2022,
//! Y2kLA8x40IiBEPYg@hirez.programming.kicks-ass.net, with the running time as D. Eggemann measured it;
//! UTIL_EST_BOOST: Wang Qing, linux-kernel, "sched: fair: add UTIL_EST_BOOST", v2.

use crate::pelt::{Decay, SchedAvg, accumulate_running};
use crate::units::Util;
use crate::util_est::{UtilEst, task_util_est};

/// The util of a task that has run for `delta` units of 1024 ns and never before.
///
/// Unlike [`crate::approximate::approximate_util_avg`] the divider is that of a period's start, so
/// that it is up to 22 above it within one. Rounding: down. Source: faster_est_approx, as posted.
pub fn faster_est_approx(decay: &Decay, delta: u64) -> Util {
    let mut sa = SchedAvg::default();
    accumulate_running(decay, &mut sa, delta);
    Util((sa.util_sum / decay.pelt_min_divider()) as u64)
}

/// The util that [`faster_est_approx`] gives a task that has run for `ns` since it woke: twice as
/// fast, in plain time.
pub fn util_est_faster(decay: &Decay, ns: u64) -> Util {
    faster_est_approx(decay, (ns >> 10).wrapping_mul(2))
}

/// [`task_util_est`] with a push for a util above its estimate. Rounding: down.
/// Source: UTIL_EST_BOOST, as posted (v2).
pub fn task_util_est_boost(util_avg: Util, est: UtilEst) -> Util {
    let value = est.value();
    if value != Util(0) && util_avg > value {
        return Util(util_avg.0 + (util_avg.0 - value.0) / 2);
    }
    task_util_est(util_avg, est)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approximate::approximate_util_avg;

    #[test]
    fn faster_is_the_climb_of_twice_the_time() {
        for ms in [1u64, 5, 20, 60, 200] {
            let fast = util_est_faster(&Decay::MS32, ms * 1_024_000).0;
            let slow = approximate_util_avg(&Decay::MS32, Util(0), 2 * ms * 1000).0;
            assert!(fast.abs_diff(slow) <= 30, "{ms} ms: {fast}, {slow}");
        }
        assert_eq!(faster_est_approx(&Decay::MS32, 0), Util(0));
        assert_eq!(faster_est_approx(&Decay::MS32, 1023), Util(22), "no boundary yet");
    }

    #[test]
    fn a_boost_needs_an_estimate_below_util() {
        let boost = |util, est| task_util_est_boost(Util(util), UtilEst(est)).0;
        assert_eq!(boost(400, 200), 500);
        assert_eq!(boost(401, 200), 501);
        assert_eq!(boost(400, 0), 400, "never sampled");
        assert_eq!(boost(200, 400), 400);
    }
}
