//! util_est: what a task needed when it last ran, for when it wakes up again.
//!
//! PELT forgets a sleeping task; util_est remembers. At every dequeue to sleep:
//!
//! ```text
//!  sample = util_avg
//!  sample ≥ est            est' = sample                        (up at once)
//!  est - sample < 10       est' = est                           (within 1 %)
//!  sample + 10 < runnable  est' = est                           (it had to wait: sample is low; from 6.8)
//!  else                    est' = (4·est - (est - sample)) / 4  (down by a quarter)
//! ```
//!
//! Bit 31 (`UTIL_AVG_UNCHANGED`) is set with each sample and cleared by the next PELT update that
//! crosses a period boundary while the task is on a queue: no second sample of one old value.
//!
//! Which util the sample sees is the caller's order of calls: up to 6.11 after the dequeue's PELT
//! update, in 6.12 before it, in 7.2 after it again.
//!
//! Before 6.8 a task kept its last sample (`enqueued`) beside the average of its samples (`ewma`), and
//! its estimate was the larger. Since the average follows a rise at once (5.5), it is never the
//! smaller: one value says the same. That a task which had to wait keeps its estimate is new in 6.8.
//! DEVIATES(util-est-lsb): up to 5.12 the flag of a sampled util_est was its bit 0, so that estimates
//! there are odd: up to 1 more than here.
//!
//! The response-time series (RFC 00/16, August 2024) lets it rise while a task runs, in plain time:
//!
//! ```text
//!  at each tick and switch of a runnable task:
//!  est' = A(est, delta_exec · rampup_multiplier)      if util_avg > util_avg at its last sample
//!  at dequeue, the last line:   est' = (4·est - (est - sample) / rampup_multiplier) / 4
//! ```
//!
//! A(u, d) is [`crate::approximate::approximate_util_avg`], which knows neither capacity nor frequency.
//!
//! Source: kernel/sched/fair.c:util_est_update, util_est_enqueue, util_est_dequeue.

use crate::approximate::approximate_util_avg;
use crate::pelt::Decay;
use crate::units::{Capacity, Util};
use crate::{KernelRev, features};

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
/// `rampup_multiplier`: a fall is slowed down by it; mainline is 1, and 0 counts as 1.
/// Rounding: down. Source: fair.c:util_est_update; the multiplier: RFC 00/16, patch 11.
pub fn util_est_update(
    rev: KernelRev,
    est: UtilEst,
    util_avg: Util,
    runnable_avg: Util,
    cpu_capacity: Capacity,
    task_sleep: bool,
    rampup_multiplier: u32,
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
    if rev.has(features::UTIL_EST_RUNNABLE) && sample as u64 + UTIL_EST_MARGIN < runnable_avg.0 {
        return kept;
    }
    let drop = drop / rampup_multiplier.max(1);
    let lowered = (ewma << UTIL_EST_WEIGHT_SHIFT).wrapping_sub(drop) >> UTIL_EST_WEIGHT_SHIFT;
    UtilEst(lowered | UTIL_AVG_UNCHANGED)
}

/// Facts that [`util_est_update_running`] asks about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// Running time at the last accounting (`se.delta_exec`), in ns.
    pub delta_exec: u64,
    /// The task's `rampup_multiplier`; 1 without sched-qos.
    pub rampup_multiplier: u32,
    /// The task's `util_avg` now and at its last sample (`util_avg_dequeued`): only a util that has
    /// risen counts. `None`: any util counts.
    pub risen: Option<(Util, Util)>,
}

/// The estimate of a task that runs, or has just been switched out runnable, or moves.
///
/// As posted, the flag is set as at a dequeue, so that a dequeue before the next PELT update takes
/// no sample; and the time since the last but one accounting is lost, since `delta_exec` is that
/// of the last one only. Rounding: to whole µs, down; util down.
/// Source: RFC 00/16, patches 8, 9 and 11, util_est_update with task_sleep false.
pub fn util_est_update_running(decay: &Decay, est: UtilEst, task: &Running) -> UtilEst {
    if task.risen.is_some_and(|(util, dequeued)| util <= dequeued) {
        return est;
    }
    let us = (task.delta_exec / 1000).wrapping_mul(u64::from(task.rampup_multiplier));
    let risen = approximate_util_avg(decay, est.value(), us);
    UtilEst(risen.0 as u32 | UTIL_AVG_UNCHANGED)
}

/// The estimate of a task whose multiplier of 0 switches util_est off, at every update.
/// Source: RFC 00/16, patch 15.
pub const UTIL_EST_OFF: UtilEst = UtilEst(UTIL_AVG_UNCHANGED);

/// Whether the estimate's update returns early on capacity, as in 6.12 and no longer in 7.2.
///
/// `DEVIATES(util-est-capacity)`: which release between 6.12 and 7.2 dropped the early return on
/// capacity is not known here; those in between are taken to have it.
fn checks_capacity(rev: KernelRev) -> bool {
    rev.has(features::UTIL_EST_CAPACITY)
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
        util_est_update(rev, UtilEst(est), util, runnable, Capacity(capacity), true, 1)
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
            util_est_update(KernelRev::V7_2, est, Util(500), Util(500), Capacity(1024), true, 1);
        assert_eq!(again, est, "util_avg has not been updated since");
        est.cfs_se_util_change();
        let migrating =
            util_est_update(KernelRev::V7_2, est, Util(500), Util(500), Capacity(1024), false, 1);
        assert_eq!(migrating, est);
    }

    #[test]
    fn a_full_little_cpu_says_nothing_up_to_6_12() {
        let old = sample(KernelRev::V6_12, 900, 500, 500, 459);
        assert_eq!(old, UtilEst(900), "no flag either");
        assert_eq!(sample(KernelRev::V7_2, 900, 500, 500, 459).value(), Util(800));
    }

    #[test]
    fn a_multiplier_slows_the_fall_down() {
        let fall = |multiplier| {
            let (util, capacity) = (Util(100), Capacity(1024));
            let rev = KernelRev::V6_8;
            let est = UtilEst(400);
            util_est_update(rev, est, util, util, capacity, true, multiplier).value().0
        };
        assert_eq!([0, 1, 2, 3, 300].map(fall), [325, 325, 362, 375, 399]);
    }

    #[test]
    fn it_rises_with_time_that_nothing_scales() {
        let run = |est, us, multiplier, risen| {
            let task =
                Running { delta_exec: us * 1000 + 999, rampup_multiplier: multiplier, risen };
            util_est_update_running(&Decay::MS32, UtilEst(est), &task)
        };
        let at = |us| approximate_util_avg(&Decay::MS32, Util(200), us);
        for (us, multiplier) in [(1000, 1), (1000, 2), (500, 4), (4000, 3), (700, 0)] {
            let after = run(200, us, multiplier, None);
            assert_eq!(after.value(), at(us * u64::from(multiplier)), "{us} {multiplier}");
            assert!(after.unchanged(), "as at a dequeue");
        }
        // Only while util is above what it was at the last sample.
        let flagged = 200 | UTIL_AVG_UNCHANGED;
        assert_eq!(run(flagged, 1000, 1, Some((Util(51), Util(50)))).value(), at(1000));
        for util in [49, 50] {
            assert_eq!(run(200, 1000, 1, Some((Util(util), Util(50)))), UtilEst(200), "no flag");
        }
        assert_eq!(UTIL_EST_OFF.value(), Util(0));
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
