//! Quotas of groups (CFS bandwidth): a group's pool, its account on each CPU, and who is throttled.
//!
//! What happens to them: `kernel/bandwidth.rs`; arithmetic: [`risetime_kernel::bandwidth`].

use risetime_kernel::bandwidth::{CfsBandwidth, Runtime};
use risetime_kernel::units::{ClockPelt, CpuId, Instant, Span, TaskId};
use risetime_kernel::{KernelRev, features};
use risetime_trace::QuotaStat;

/// A group's pool with its timers.
pub(crate) struct Pool {
    pub(crate) cfs: CfsBandwidth,
    pub(crate) period: Span,
    /// Remainder of a period's end divided by the period.
    pub(crate) phase: Span,
    /// Time at which the period timer fires; `None`: it is off.
    pub(crate) expires: Option<Instant>,
    /// CPU on which the timer was started last.
    pub(crate) cpu: CpuId,
    /// CPU where the slack timer runs, if it does.
    pub(crate) slack: Option<CpuId>,
    /// CPUs where the group is throttled, the first first (`throttled_cfs_rq`).
    pub(crate) throttled: Vec<CpuId>,
    /// Counts of the quota's periods and throttling (`nr_periods`, `nr_throttled`,
    /// `throttled_time`).
    pub(crate) stat: QuotaStat,
}

/// A group's account on one CPU (the bandwidth part of `struct cfs_rq`).
#[derive(Default)]
pub(crate) struct RqBandwidth {
    pub(crate) runtime: Runtime,
    /// The task clock up to which its running time is booked.
    pub(crate) booked: u64,
    pub(crate) throttled: bool,
    /// Time since which a task waits for new quota (`throttled_clock`).
    pub(crate) waits: Option<Instant>,
    /// Number of throttled groups among this one and those above it (`throttle_count`).
    pub(crate) throttle_count: u32,
    /// PELT clock at which it stands still, if it does (`throttled_clock_pelt`).
    pub(crate) stopped: Option<u64>,
    /// Time for which the clock has stood in all (`throttled_clock_pelt_time`).
    pub(crate) lost: u64,
    /// Tasks that wait for the next distribution, the last one last (`throttled_limbo_list`).
    pub(crate) limbo: Vec<TaskId>,
}

impl Pool {
    pub(crate) fn new(quota: Span, period: Span, burst: Span) -> Pool {
        Pool {
            cfs: CfsBandwidth::new(quota, burst),
            period,
            phase: Span(0),
            expires: None,
            cpu: CpuId(0),
            slack: None,
            throttled: Vec::new(),
            stat: QuotaStat { longest: Some(Span(0)), ..QuotaStat::default() },
        }
    }

    /// Adds a time for which the group was throttled on some CPU.
    pub(crate) fn waited(&mut self, span: Span) {
        self.stat.time += span;
        self.stat.longest = self.stat.longest.max(Some(span));
    }

    /// The first end of a period after `now` (`hrtimer_forward_now`).
    pub(crate) fn next_end(&self, now: Instant) -> Instant {
        let (period, phase) = (self.period.0, self.phase.0);
        Instant((now.0 + period - phase) / period * period + phase)
    }
}

impl RqBandwidth {
    /// Notes that a task of the group is queued, or in limbo: from now on the group counts as
    /// throttled, if it is.
    pub(crate) fn waits(&mut self, now: Instant) {
        if self.throttled {
            self.waits.get_or_insert(now);
        }
    }

    /// The PELT clock of the group where the CPU's is `now`.
    pub(crate) fn clock_pelt(&self, now: ClockPelt) -> ClockPelt {
        ClockPelt(self.stopped.unwrap_or(now.0).wrapping_sub(self.lost))
    }

    /// `throttled_hierarchy`.
    pub(crate) fn in_throttled_hierarchy(&self) -> bool {
        self.throttle_count > 0
    }

    pub(crate) fn stop(&mut self, now: ClockPelt) {
        self.stopped.get_or_insert(now.0);
    }

    pub(crate) fn start(&mut self, now: ClockPelt) {
        if let Some(since) = self.stopped.take() {
            self.lost = self.lost.wrapping_add(now.0.wrapping_sub(since));
        }
    }
}

/// Whether this kernel throttles tasks one by one instead of a group as a whole.
pub(crate) fn throttles_tasks(rev: KernelRev) -> bool {
    rev.has(features::TASK_THROTTLE)
}

/// Whether the time of a group that is throttled counts from then on; `queued`: it has a task.
///
/// Source: fair.c:`throttle_cfs_rq`; "sched: don't account throttle time for empty groups" (6.6), "sched/fair: Task based throttle
/// time accounting" (6.18).
pub(crate) fn counts_from_throttling(rev: KernelRev, queued: bool) -> bool {
    !rev.has(features::THROTTLE_TIME_QUEUED) || (queued && !throttles_tasks(rev))
}
