//! The real-time class: queues by priority, the round-robin slice, and throttling before 6.12.
//!
//! ```text
//!  priority 99 ─ [a] [b]      the highest first; within one priority first come, first served
//!           10 ─ [c]          a preempted task keeps its place, one whose slice is over goes to
//!            1 ─ [d] [e]      the end
//!
//!  throttling (up to 6.11)    rt_time += what RT tasks ran;  rt_time > runtime (950 ms): nobody runs
//!                             every period (1 s): rt_time -= runtime;  rt_time < runtime: go on
//!
//!  cpupri                     CPU: higher (deadline) > 99 > … > 1 > normal (fair or idle)
//! ```
//!
//! The kernel keeps a list for each of its 100 priorities and a bitmap of those not empty; one
//! sorted list gives the same order, since a queue holds few tasks. Groups under deadline servers:
//! [`crate::rt_group`]. Left out: groups that are throttled by a runtime of their own
//! (`CONFIG_RT_GROUP_SCHED`), priority inheritance, `RT_RUNTIME_SHARE` (off since 5.10).
//!
//! Source: kernel/sched/rt.c, kernel/sched/cpupri.c.

use crate::units::{Capacity, Span, TaskId, Util};
use crate::{KernelRev, features};
use alloc::vec::Vec;

/// A real-time priority, 1 to 99, the highest first (`sched_priority`; the kernel's own `prio`
/// counts the other way).
pub type RtPriority = u8;

/// Share of each CPU that real-time and deadline tasks may have (`sched_rt_period_us`,
/// `sched_rt_runtime_us`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtBandwidth {
    /// Period after which the runtime comes back.
    pub period: Span,
    /// Runtime in each period, at most the period. `None`: no limit (`RUNTIME_INF`, -1).
    pub runtime: Option<Span>,
}

impl Default for RtBandwidth {
    fn default() -> RtBandwidth {
        RtBandwidth { period: Span(1_000_000_000), runtime: Some(Span(950_000_000)) }
    }
}

/// `RR_TIMESLICE`: 100 ms in ticks, rounded down. Source: include/linux/sched/rt.h.
pub const fn rr_timeslice(hz: u32) -> u32 {
    100 * hz / 1000
}

/// `sched_rr_timeslice_ms` as it reads unless it is written. Rounding: down.
pub const fn rr_timeslice_ms(hz: u32) -> u32 {
    1000 * rr_timeslice(hz) / hz
}

/// The slice in ticks if `sched_rr_timeslice_ms` is written. Rounding: up, as `msecs_to_jiffies`.
/// Source: rt.c:sched_rr_handler.
pub const fn rr_timeslice_of_ms(ms: u64, hz: u32) -> u32 {
    (ms * hz as u64).div_ceil(1000) as u32
}

/// Whether this kernel throttles RT tasks as such; from 6.12 on fair tasks have a deadline server
/// instead ([`crate::dl_server`]).
pub fn rt_throttles(rev: KernelRev) -> bool {
    rev.has(features::RT_BANDWIDTH)
}

/// `rt_task_fits_capacity`: is the CPU as big as the task's clamps ask for?
pub fn rt_task_fits_capacity(min: Util, max: Util, capacity: Capacity) -> bool {
    capacity.0 >= min.min(max).0
}

/// Rank of a CPU among the targets of RT tasks (`cpupri`): the lowest is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CpuPri {
    /// Fair tasks or none.
    Normal,
    /// The highest priority of its RT tasks.
    Rt(RtPriority),
    /// Deadline tasks.
    Higher,
}

/// The RT tasks of one CPU, the current one among them (`struct rt_prio_array`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RtQueue {
    queue: Vec<(RtPriority, TaskId)>,
}

impl RtQueue {
    /// `enqueue_task_rt`: behind its equals, or before them (`ENQUEUE_HEAD`).
    pub fn enqueue(&mut self, priority: RtPriority, task: TaskId, head: bool) {
        let at =
            self.queue.partition_point(|(p, _)| if head { *p > priority } else { *p >= priority });
        self.queue.insert(at, (priority, task));
    }
    /// `dequeue_task_rt`; false: it was not there.
    pub fn dequeue(&mut self, task: TaskId) -> bool {
        let at = self.queue.iter().position(|(_, t)| *t == task);
        at.map(|at| self.queue.remove(at)).is_some()
    }
    /// `requeue_task_rt`: to the end of its priority's list, or to the head.
    pub fn requeue(&mut self, task: TaskId, head: bool) {
        if let Some(at) = self.queue.iter().position(|(_, t)| *t == task) {
            let (priority, task) = self.queue.remove(at);
            self.enqueue(priority, task, head);
        }
    }
    /// `pick_next_rt_entity`.
    pub fn first(&self) -> Option<(RtPriority, TaskId)> {
        self.queue.first().copied()
    }
    /// `rt_nr_running`.
    pub fn len(&self) -> usize {
        self.queue.len()
    }
    /// Whether no RT task is runnable.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
    /// Whether another task has the priority of `task`, which is queued.
    pub fn has_equal(&self, task: TaskId) -> bool {
        let own = self.queue.iter().find(|(_, t)| *t == task);
        own.is_some_and(|(p, _)| self.queue.iter().filter(|(q, _)| q == p).count() > 1)
    }
    /// Iterates over all queued tasks in the order in which they would run.
    pub fn iter(&self) -> impl Iterator<Item = (RtPriority, TaskId)> + '_ {
        self.queue.iter().copied()
    }
}

/// Use of the RT runtime by a CPU, before 6.12 (`rt_time`, `rt_throttled`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtThrottle {
    /// `rt_time`, in ns.
    pub time: u64,
    /// `rt_throttled`: no RT task runs until the next period.
    pub throttled: bool,
}

impl RtThrottle {
    /// Charges `delta` of running RT tasks; true: from now on they are throttled. A runtime of a
    /// whole period limits nobody, and neither does one of 0, which would never come back. Source:
    /// Linux 6.1 rt.c:update_curr_rt, sched_rt_runtime_exceeded.
    pub fn account(&mut self, limit: RtBandwidth, delta: Span) -> bool {
        let Some(runtime) = limit.runtime else { return false };
        self.time = self.time.saturating_add(delta.0);
        if self.throttled || runtime >= limit.period || self.time <= runtime.0 {
            return false;
        }
        if runtime == Span(0) {
            self.time = 0;
            return false;
        }
        self.throttled = true;
        true
    }
    /// Takes a period's runtime off the time used; returns whether throttled RT tasks may run
    /// again. Source: Linux 6.1 rt.c:do_sched_rt_period_timer.
    pub fn period_over(&mut self, limit: RtBandwidth) -> bool {
        let Some(runtime) = limit.runtime else { return false };
        self.time = self.time.saturating_sub(runtime.0);
        let resumes = self.throttled && self.time < runtime.0;
        self.throttled &= !resumes;
        resumes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(q: &RtQueue) -> Vec<u32> {
        q.iter().map(|(_, t)| t.0).collect()
    }

    #[test]
    fn the_highest_first_and_equals_in_turn() {
        let mut q = RtQueue::default();
        for (priority, task) in [(10, 1), (99, 2), (10, 3), (1, 4), (10, 5)] {
            q.enqueue(priority, TaskId(task), false);
        }
        assert_eq!(order(&q), [2, 1, 3, 5, 4]);
        q.enqueue(10, TaskId(6), true);
        assert_eq!(order(&q), [2, 6, 1, 3, 5, 4]);
        q.requeue(TaskId(6), false);
        assert_eq!(order(&q), [2, 1, 3, 5, 6, 4]);
        q.requeue(TaskId(5), true);
        assert_eq!(order(&q), [2, 5, 1, 3, 6, 4]);
        assert!(q.has_equal(TaskId(1)) && !q.has_equal(TaskId(2)) && !q.has_equal(TaskId(9)));
        assert!(q.dequeue(TaskId(2)) && !q.dequeue(TaskId(2)));
        assert_eq!((q.first(), q.len()), (Some((10, TaskId(5))), 5));
    }

    #[test]
    fn throttled_after_950_ms_until_the_period_is_over() {
        let (mut t, limit) = (RtThrottle::default(), RtBandwidth::default());
        assert!(!t.account(limit, Span(950_000_000)), "exactly the runtime is no excess");
        assert!(t.account(limit, Span(1)) && t.throttled);
        assert!(!t.account(limit, Span(1)), "told once");
        assert!(t.period_over(limit) && !t.throttled);
        assert_eq!(t.time, 2);
        // An overrun of more than a whole runtime takes two periods.
        assert!(t.account(limit, Span(1_900_000_000)));
        assert!(!t.period_over(limit) && t.throttled);
        assert!(t.period_over(limit));
    }

    #[test]
    fn who_has_no_limit_is_not_throttled() {
        let period = Span(1_000_000_000);
        for runtime in [None, Some(Span(0)), Some(period)] {
            let (mut t, limit) = (RtThrottle::default(), RtBandwidth { period, runtime });
            assert!((0..9).all(|_| !t.account(limit, period) && !t.throttled), "{runtime:?}");
        }
        let (mut t, limit) =
            (RtThrottle::default(), RtBandwidth { period, runtime: Some(Span(9)) });
        assert!(!t.account(limit, Span(9)) && t.account(limit, Span(1)));
    }

    #[test]
    fn a_slice_is_100_ms_in_whole_ticks() {
        assert_eq!([1000, 250, 300, 100].map(rr_timeslice), [100, 25, 30, 10]);
        assert_eq!([1000, 300, 24].map(rr_timeslice_ms), [100, 100, 83]);
        assert_eq!([1, 4, 5, 100].map(|ms| rr_timeslice_of_ms(ms, 250)), [1, 1, 2, 25]);
    }

    #[test]
    fn targets_are_ordered_from_idle_to_deadline() {
        assert!(CpuPri::Normal < CpuPri::Rt(1) && CpuPri::Rt(1) < CpuPri::Rt(99));
        assert!(CpuPri::Rt(99) < CpuPri::Higher);
    }
}
