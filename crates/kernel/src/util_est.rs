//! util_est: what a task needed when it last ran, for when it wakes up again.
//!
//! PELT forgets a sleeping task; util_est remembers. At every dequeue to sleep:
//!
//! ```text
//!  sample = util_avg
//!  sample ≥ est            est' = sample                        (up at once)
//!  est - sample < 10       est' = est                           (within 1 %)
//!  sample + 10 < runnable  est' = est                           (it had to wait: sample is low)
//!  else                    est' = (4·est - (est - sample)) / 4  (down by a quarter)
//! ```
//!
//! Bit 31 (`UTIL_AVG_UNCHANGED`) is set with each sample and cleared by the next PELT update that
//! crosses a period boundary while the task is on a queue: no second sample of one old value.
//!
//! Which util the sample sees is the caller's order of calls: up to 6.11 after the dequeue's PELT
//! update, in 6.12 before it, in 7.2 after it again. Left out: the two values (`enqueued`, `ewma`)
//! kept before 6.8.
//!
//! Source: kernel/sched/fair.c:util_est_update, util_est_enqueue, util_est_dequeue.

use crate::KernelRev;
use crate::units::{Capacity, Util};

/// Set in a task's util_est when `util_avg` has not changed since the last sample.
pub const UTIL_AVG_UNCHANGED: u32 = 0x8000_0000;
/// About 1 % of full scale.
const UTIL_EST_MARGIN: u64 = 1024 / 100;
/// New samples weigh 1/4.
const UTIL_EST_WEIGHT_SHIFT: u32 = 2;

/// A task's estimate with its flag, as the kernel stores it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UtilEst(pub u32);

impl UtilEst {
    /// The estimate without the flag. Source: fair.c:_task_util_est.
    pub const fn value(self) -> Util {
        Util((self.0 & !UTIL_AVG_UNCHANGED) as u64)
    }
    /// Whether `util_avg` is still the one of the last sample.
    pub const fn unchanged(self) -> bool {
        self.0 & UTIL_AVG_UNCHANGED != 0
    }
    /// `util_avg` has been updated: the next dequeue may sample it.
    /// Call when [`crate::pelt::update_load_avg_se`] returned true. Source: pelt.h:cfs_se_util_change.
    pub const fn cfs_se_util_change(&mut self) {
        self.0 &= !UTIL_AVG_UNCHANGED;
    }
}

/// The estimate after a dequeue.
///
/// `task_sleep`: it was dequeued to sleep, not to migrate. `cpu_capacity` matters up to 6.12 only:
/// a sample above the CPU's capacity does not lower the estimate and does not set the flag.
/// Rounding: down. Source: fair.c:util_est_update.
pub fn util_est_update(
    rev: KernelRev,
    est: UtilEst,
    util_avg: Util,
    runnable_avg: Util,
    cpu_capacity: Capacity,
    task_sleep: bool,
) -> UtilEst {
    if !task_sleep || est.unchanged() {
        return est;
    }
    let ewma = est.0;
    let sample = util_avg.0 as u32;
    if ewma <= sample {
        return UtilEst(sample | UTIL_AVG_UNCHANGED);
    }
    let drop = ewma - sample;
    let kept = UtilEst(ewma | UTIL_AVG_UNCHANGED);
    if (drop as u64) < UTIL_EST_MARGIN {
        return kept;
    }
    if checks_capacity(rev) && sample as u64 > cpu_capacity.0 {
        return est;
    }
    if sample as u64 + UTIL_EST_MARGIN < runnable_avg.0 {
        return kept;
    }
    let lowered = (ewma << UTIL_EST_WEIGHT_SHIFT).wrapping_sub(drop) >> UTIL_EST_WEIGHT_SHIFT;
    UtilEst(lowered | UTIL_AVG_UNCHANGED)
}

/// The early return on capacity is in 6.12 and gone in 7.2.
///
/// `DEVIATES(util-est-capacity)`: which release between them dropped it is not known here; the
/// revisions in between are taken to have it.
fn checks_capacity(rev: KernelRev) -> bool {
    rev < KernelRev::V7_2
}

/// The util a task is expected to need: the larger of util and estimate.
/// Source: fair.c:task_util_est.
pub fn task_util_est(util_avg: Util, est: UtilEst) -> Util {
    util_avg.max(est.value())
}

/// The runqueue's sum of estimates after enqueuing a task. Wraps at 32 bits.
/// Source: fair.c:util_est_enqueue.
pub fn util_est_enqueue(cfs_util_est: Util, task: UtilEst) -> Util {
    Util((cfs_util_est.0 as u32).wrapping_add(task.value().0 as u32) as u64)
}

/// The runqueue's sum of estimates after dequeuing a task, not below 0.
/// Source: fair.c:util_est_dequeue.
pub fn util_est_dequeue(cfs_util_est: Util, task: UtilEst) -> Util {
    Util((cfs_util_est.0 as u32).saturating_sub(task.value().0 as u32) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rev: KernelRev, est: u32, util: u64, runnable: u64, capacity: u64) -> UtilEst {
        let (util, runnable) = (Util(util), Util(runnable));
        util_est_update(rev, UtilEst(est), util, runnable, Capacity(capacity), true)
    }

    #[test]
    fn rises_at_once_and_falls_by_a_quarter() {
        for rev in [KernelRev::V6_8, KernelRev::V6_12, KernelRev::V7_2] {
            assert_eq!(sample(rev, 100, 400, 400, 1024).value(), Util(400));
            assert_eq!(sample(rev, 400, 100, 100, 1024).value(), Util(325));
            assert_eq!(sample(rev, 400, 391, 391, 1024).value(), Util(400), "within 1 %");
            assert_eq!(sample(rev, 400, 390, 390, 1024).value(), Util(397), "no longer");
            assert_eq!(sample(rev, 400, 100, 110, 1024).value(), Util(325));
            assert_eq!(sample(rev, 400, 100, 111, 1024).value(), Util(400), "it had to wait");
        }
    }

    #[test]
    fn one_sample_for_each_change_and_only_at_sleep() {
        let mut est = sample(KernelRev::V7_2, 0, 300, 300, 1024);
        assert!(est.unchanged());
        let again =
            util_est_update(KernelRev::V7_2, est, Util(500), Util(500), Capacity(1024), true);
        assert_eq!(again, est, "util_avg has not been updated since");
        est.cfs_se_util_change();
        let migrating =
            util_est_update(KernelRev::V7_2, est, Util(500), Util(500), Capacity(1024), false);
        assert_eq!(migrating, est);
    }

    #[test]
    fn a_full_little_cpu_says_nothing_up_to_6_12() {
        let old = sample(KernelRev::V6_12, 900, 500, 500, 459);
        assert_eq!(old, UtilEst(900), "no flag either");
        assert_eq!(sample(KernelRev::V7_2, 900, 500, 500, 459).value(), Util(800));
    }

    #[test]
    fn runqueue_sums_do_not_go_below_zero() {
        let task = UtilEst(300 | UTIL_AVG_UNCHANGED);
        assert_eq!(util_est_enqueue(Util(50), task), Util(350));
        assert_eq!(util_est_dequeue(Util(350), task), Util(50));
        assert_eq!(util_est_dequeue(Util(100), task), Util(0));
        assert_eq!(task_util_est(Util(200), task), Util(300));
    }
}
