//! Effects that a policy asks for beside its decision. Policies change nothing themselves: they
//! note an effect here, and the kernel carries it out when they have answered.

use risetime_kernel::units::{CpuId, Instant, Util};

/// A governor's or placement's wishes. Kept by the kernel from one question to the next, empty between them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Effects {
    pub(crate) timers: Vec<(Option<CpuId>, Timer)>,
    pub(crate) work: bool,
    pub(crate) work_on: Option<CpuId>,
    pub(crate) recent_used_cpu: Option<CpuId>,
    pub(crate) no_idle_core: Option<CpuId>,
    pub(crate) looked: Vec<(CpuId, Util)>,
    pub(crate) distributed: Option<(CpuId, CpuId)>,
}

/// A governor's timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// Time at which it expires, whatever the tick does.
    pub at: Instant,
    /// True if the timer wakes no idle CPU: then it expires when that CPU wakes for something else.
    pub deferrable: bool,
}

impl Effects {
    /// Sets the governor's timer on the first CPU of its policy; one set before is set anew.
    pub fn set_timer(&mut self, timer: Timer) {
        self.timers.push((None, timer));
    }
    /// Sets a timer on `cpu`, one of the policy's; each of them has a timer of its own.
    pub fn set_timer_on(&mut self, cpu: CpuId, timer: Timer) {
        self.timers.push((Some(cpu), timer));
    }
    /// Asks the governor again from its kthread, when that runs
    /// ([`Governor::work`](crate::governor::Governor::work)).
    pub fn defer_work(&mut self) {
        self.work = true;
    }
    /// Defers work to the worker of `cpu`, where the governor's work is done by workers
    /// (`schedule_work_on`).
    pub fn defer_work_to(&mut self, cpu: CpuId) {
        (self.work, self.work_on) = (true, Some(cpu));
    }
    /// Whether nothing is wished for.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.timers.is_empty()
            && !self.work
            && self.recent_used_cpu.is_none()
            && self.no_idle_core.is_none()
            && self.looked.is_empty()
    }
    /// The task's `recent_used_cpu`.
    pub(crate) fn recent_used_cpu(&mut self, cpu: CpuId) {
        self.recent_used_cpu = Some(cpu);
    }
    /// Notes that around this CPU no core is idle as a whole (`set_idle_cores`).
    pub(crate) fn no_idle_core(&mut self, cpu: CpuId) {
        self.no_idle_core = Some(cpu);
    }
    /// The util of a CPU that its next look is compared with (`last_update_util`, RFC 00/16, patch 14).
    pub(crate) fn looked(&mut self, cpu: CpuId, util: Util) {
        self.looked.push((cpu, util));
    }
    /// A search from the first CPU came to the second: the next one goes on there.
    pub(crate) fn distributed(&mut self, this_cpu: CpuId, found: CpuId) {
        self.distributed = Some((this_cpu, found));
    }
    /// The util that the last look within this decision left on `cpu`, if it has changed.
    pub(crate) fn last_look(&self, cpu: CpuId) -> Option<Util> {
        self.looked.iter().rev().find(|(c, _)| *c == cpu).map(|(_, util)| *util)
    }
}
