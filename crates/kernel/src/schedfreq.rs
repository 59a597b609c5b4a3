//! The arithmetic of `schedfreq` (cpufreq_sched): the capacity that a CPU asks for.
//!
//! ```text
//!  cfs   = util · 1024 / capacity                       of the CPU's own, as rt and dl
//!  total = (cfs + rt) · capacity_margin / 1024 + dl
//!  freq  = max of the policy's CPUs' total · policy->max / 1024          to the next OPP
//! ```
//!
//! Source: "[RFCv7 PATCH 03/10] sched: scheduler-driven cpu frequency selection" (22 February 2016),
//! kernel/sched/cpufreq_sched.c there.

use crate::units::{Capacity, KHz, Util};

/// A quarter more than is used.
const CAPACITY_MARGIN: u64 = 1280;
const SCHED_CAPACITY_SCALE: u64 = 1024;

/// `struct sched_capacity_reqs`: what the classes of a CPU need, of 1024 of its own capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedCapacityReqs {
    /// The fair class.
    pub cfs: u64,
    /// Real-time tasks.
    pub rt: u64,
    /// Deadline tasks, which have asked for no more than they need.
    pub dl: u64,
}

impl SchedCapacityReqs {
    /// The requested capacity with the margin. Rounding: down. Source: update_cpu_capacity_request,
    /// sum_capacity_reqs.
    pub fn total(&self) -> u64 {
        (self.cfs + self.rt) * CAPACITY_MARGIN / SCHED_CAPACITY_SCALE + self.dl
    }
}

/// A util, which is of the biggest CPU, of a CPU's own capacity.
pub fn of_own(util: Util, capacity: Capacity) -> u64 {
    (util.0 * SCHED_CAPACITY_SCALE).checked_div(capacity.0).unwrap_or(0)
}

/// The frequency for a capacity, before it is resolved to an OPP. Source: update_fdomain_capacity_request.
pub fn freq_of(total: u64, max: KHz) -> KHz {
    KHz(total.wrapping_mul(max.0) / SCHED_CAPACITY_SCALE)
}

/// Whether a CPU that gives `curr` of its capacity at its frequency is about to have no margin left, so that the tick asks
/// for all of it. Source: sched_freq_tick.
pub fn tick_asks_for_all(reqs: &SchedCapacityReqs, cur: KHz, max: KHz) -> bool {
    let curr = (cur.0 * SCHED_CAPACITY_SCALE).checked_div(max.0).unwrap_or(SCHED_CAPACITY_SCALE);
    curr < SCHED_CAPACITY_SCALE && curr < reqs.total()
}

/// Whether a CPU that gives `curr` of its capacity at its frequency has no more than the margin left,
/// so that the tick asks for the util and its margin. Source: Android's common 4.4, core.c:sched_freq_tick_pelt.
pub fn tick_asks_for_more(reqs: &SchedCapacityReqs, cur: KHz, max: KHz) -> bool {
    let curr = (cur.0 * SCHED_CAPACITY_SCALE).checked_div(max.0).unwrap_or(SCHED_CAPACITY_SCALE);
    reqs.total() >= curr
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_for_all_but_deadline_tasks() {
        let reqs = |cfs, rt, dl| SchedCapacityReqs { cfs, rt, dl }.total();
        assert_eq!([reqs(400, 0, 0), reqs(300, 100, 0), reqs(0, 0, 400)], [500, 500, 400]);
        assert_eq!(reqs(400, 0, 100), 600);
        assert_eq!(of_own(Util(100), Capacity(400)), 256);
        assert_eq!(freq_of(512, KHz(2_000_000)), KHz(1_000_000));
    }

    #[test]
    fn the_tick_asks_for_all_where_the_margin_is_touched() {
        let asks = |cfs, khz| {
            let reqs = SchedCapacityReqs { cfs, ..SchedCapacityReqs::default() };
            tick_asks_for_all(&reqs, KHz(khz), KHz(2000))
        };
        // 1 GHz of 2 are 512: 409 with a quarter are 511, 410 are 512.
        assert_eq!([asks(409, 1000), asks(410, 1000), asks(411, 1000)], [false, false, true]);
        assert!(!asks(2000, 2000), "there is no more");
        // Android's asks one earlier, and at the highest frequency as well.
        let more = |cfs, khz| {
            let reqs = SchedCapacityReqs { cfs, ..SchedCapacityReqs::default() };
            tick_asks_for_more(&reqs, KHz(khz), KHz(2000))
        };
        assert_eq!([more(409, 1000), more(410, 1000), more(900, 2000)], [false, true, true]);
    }
}
