//! `util_est`: sampled when a task falls asleep, and, in the response-time series, while it runs.
//!
//! Arithmetic: [`risetime_kernel::util_est`]. Source: kernel/sched/fair.c; RFC 00/16, patches 8 to 11.

use crate::kernel::rq::Rq;
use crate::mech::series::state::Series;
use crate::state::machine::{State, Task};
use risetime_kernel::sched_qos::SchedQosHint;
use risetime_kernel::units::TaskId;
use risetime_kernel::util_est::{
    Running, UTIL_EST_OFF, util_est_dequeue, util_est_enqueue, util_est_update,
    util_est_update_running,
};
use risetime_trace::Event;

impl Rq<'_, '_> {
    /// The kernel accounts the running task's time once more, some µs after whatever it did before
    /// at this instant. Here no time has passed, and so nothing has to be added to its estimate,
    /// instead of what was added last.
    pub(crate) fn account_anew(&mut self) {
        let cpu = self.cpu;
        if !self.m().slots.series.util_est_running {
            return;
        }
        let now = self.m().cpu(cpu).clock.clock_task.0;
        let curr = self.m().fair_curr(cpu).filter(|curr| curr.exec_start == now);
        if let Some(task) = curr.and_then(|curr| curr.id.as_task()) {
            let group = self.m().task(task).group;
            self.queue_mut(group).clear_delta_exec(task);
        }
    }

    /// `util_est_update_running` of a queued task: its CPU's sum follows.
    pub(crate) fn util_est_update_running(&mut self, task: TaskId) {
        if !self.m().slots.series.util_est_running {
            return;
        }
        let before = self.m().task(task).util_est;
        self.util_est_running(task);
        let after = self.m().task(task).util_est;
        let c = self.c();
        c.util_est = util_est_enqueue(util_est_dequeue(c.util_est, before), after);
        c.needs_changed();
    }

    /// Counts the other's time when a fair task has been picked after another one (or itself).
    pub(crate) fn util_est_switched(&mut self, prev: Option<TaskId>, next: Option<TaskId>) {
        if let (Some(prev), Some(next)) = (prev, next)
            && self.m().is_fair(prev)
            && self.m().is_fair(next)
            && self.m().task(prev).state == State::Runnable
            && !self.m().task(prev).throttled
        {
            self.util_est_update_running(prev);
        }
    }

    /// `util_est_update` of a task that does not sleep; its CPU's sum is left alone.
    pub(crate) fn util_est_running(&mut self, task: TaskId) {
        let cpu = self.cpu;
        if !(self.m().slots.series.util_est_running && self.m().slots.before.util_est) {
            return;
        }
        let (off, multiplier) = (self.m().util_est_off(task), self.m().rampup_multiplier(task));
        let periodic = self.m().slots.series.util_est_periodic;
        let decay = self.m().decay;
        let delta_exec = self.m().fair_entity(cpu, task).map_or(0, |entity| entity.delta_exec);
        let t = self.t(task);
        let before = t.util_est.value();
        t.util_est = if off {
            UTIL_EST_OFF
        } else {
            let risen = periodic.then_some((t.avg.util_avg, t.slots.series.util_avg_dequeued));
            let running = Running { delta_exec, rampup_multiplier: multiplier, risen };
            util_est_update_running(decay, t.util_est, &running)
        };
        let util_est = t.util_est.value();
        if util_est != before {
            self.emit(Event::UtilEst { task, util_est });
        }
    }

    /// `util_est_update`.
    pub(crate) fn util_est_sample(&mut self, task: TaskId) {
        let cpu = self.cpu;
        if !self.m().slots.before.util_est {
            return;
        }
        let (rev, capacity) = (self.m().rev, self.m().cpu(cpu).capacity);
        let held = self.m().hooks.as_ref().and_then(|h| h.util_est());
        let (off, multiplier) = (self.m().util_est_off(task), self.m().rampup_multiplier(task));
        let t = self.t(task);
        let before = t.util_est.value();
        if let Some(held) = held {
            t.util_est = held;
            return;
        }
        if self.vendor_samples(task) {
            return;
        }
        let t = self.t(task);
        if off {
            t.util_est = UTIL_EST_OFF;
        } else {
            if !t.util_est.unchanged() {
                t.slots.series.util_avg_dequeued = t.avg.util_avg;
            }
            let (util, runnable) = (t.avg.util_avg, t.avg.runnable_avg);
            t.util_est =
                util_est_update(rev, t.util_est, util, runnable, capacity, true, multiplier);
        }
        let util_est = t.util_est.value();
        if util_est != before {
            self.emit(Event::UtilEst { task, util_est });
        }
    }
}

/// Takes the hints that a task gives about itself (`sched_setattr` with `SCHED_FLAG_QOS`); without
/// sched-qos they have no effect.
pub(crate) fn take_hints(series: &Series, t: &mut Task, hints: &[SchedQosHint]) {
    if series.rampup_multiplier.is_none() {
        return;
    }
    for hint in hints {
        // The workload was checked: the kernel takes them all.
        let _ = t.slots.series.qos.set(*hint);
    }
}
