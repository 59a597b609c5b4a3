//! Tasks under the Pixel modules: as they wake, run and fall asleep.

use crate::kernel::rq::Rq;
use crate::state::machine::State;
use risetime_kernel::pixel::{Sampling, post_init_util, util_est_update};
use risetime_kernel::units::{TaskId, Util};
use risetime_kernel::util_est::{UTIL_AVG_UNCHANGED, UtilEst, util_est_dequeue, util_est_enqueue};
use risetime_trace::Event;

impl Rq<'_, '_> {
    /// `rvh_enqueue_task_pixel_mod`: before a task is counted and queued. `auto_uclamp_max` is that
    /// of its CPU from now on.
    pub(crate) fn vendor_before_enqueue(&mut self, task: TaskId) {
        let cpu = self.cpu;
        let m = self.m();
        let Some(vendor) = m.vendor() else { return };
        let group = *m.vendor_group(vendor, task);
        let off = vendor.auto_headroom && group.disable_util_est;
        if group.auto_uclamp_max && !vendor.is_adpf(task) {
            let most = m.cpu(cpu).slots.pixel.auto_uclamp_max;
            let mut limits = m.limits_of(m.task(task).group);
            if let Some(own) = &mut limits.group {
                own.max = own.max.min(most);
            }
            self.t(task).limits = limits;
        }
        if off {
            let t = self.t(task);
            (t.slots.pixel.est, t.util_est) = Default::default();
        }
    }

    /// `rvh_enqueue_task_fair_pixel_mod`: `waking`: it was not moved.
    pub(crate) fn vendor_enqueued(&mut self, task: TaskId, waking: bool) {
        if self.m().vendor().is_none() || !waking {
            return;
        }
        let cpu = self.cpu;
        let ran = self.m().fair_entity(cpu, task).map_or(0, |entity| entity.sum_exec_runtime);
        let t = self.t(task);
        t.slots.pixel.ramp.wakes(ran, t.avg.util_avg);
    }

    /// `rvh_dequeue_task_fair_pixel_mod`; `sleep`: it is not moved.
    pub(crate) fn vendor_dequeues(&mut self, task: TaskId, sleep: bool) {
        if self.m().vendor().is_none() {
            return;
        }
        let cpu = self.cpu;
        let ran = self.m().fair_entity(cpu, task).map(|entity| entity.sum_exec_runtime);
        if let Some(ran) = ran.filter(|_| sleep) {
            self.t(task).slots.pixel.ramp.sleeps(ran);
        }
    }

    /// `vh_sched_switch_pixel_mod`: a task that could go on is switched out.
    pub(crate) fn vendor_switched(&mut self, prev: Option<TaskId>) {
        let runnable = |task: &TaskId| self.m().task(*task).state == State::Runnable;
        if let Some(task) = prev.filter(runnable) {
            self.vendor_ramps_up(task, false);
        }
    }

    /// `__update_util_est_invariance` of a queued task, at a tick (`alone`: also where nobody else
    /// is there) or a switch.
    pub(crate) fn vendor_ramps_up(&mut self, task: TaskId, alone: bool) {
        let (cpu, decay) = (self.cpu, self.m().decay);
        let Some(vendor) = self.m().vendor().filter(|v| v.auto_headroom) else { return };
        if !self.m().is_fair(task) || !self.m().slots.before.util_est {
            return;
        }
        let multiplier = self.m().vendor_multiplier(vendor, task);
        let Some(entity) = self.m().fair_entity(cpu, task) else { return };
        let ran = entity.sum_exec_runtime;
        let counts = alone || self.m().cpu(cpu).nr_running() > 1;
        let t = self.t(task);
        let util = t.avg.util_avg;
        let ramp = &mut t.slots.pixel.ramp;
        let Some(new) = ramp.update_util_est_invariance(decay, ran, util, multiplier) else {
            return;
        };
        let before = t.util_est;
        t.slots.pixel.est.enqueued = new.0 as u32;
        t.util_est = UtilEst(t.slots.pixel.est.value().0 as u32);
        let after = t.util_est;
        if counts {
            // The queue's sum gets the sample, also where the average is more.
            let c = self.c();
            c.util_est =
                util_est_enqueue(util_est_dequeue(c.util_est, before), UtilEst(new.0 as u32));
            c.needs_changed();
        }
        if after.value() != before.value() {
            self.emit(Event::UtilEst { task, util_est: after.value() });
        }
    }

    /// `rvh_util_est_update_pixel_mod` of a task that falls asleep; false: there are no modules.
    pub(crate) fn vendor_samples(&mut self, task: TaskId) -> bool {
        let cpu = self.cpu;
        let m = self.m();
        let Some(vendor) = m.vendor() else { return false };
        let auto = vendor.auto_headroom;
        let multiplier = m.vendor_multiplier(vendor, task);
        let rules = Sampling {
            auto,
            disabled: m.vendor_group(vendor, task).disable_util_est,
            ignored: m.task(task).slots.pixel.ramp.ignore_util_est_update && multiplier > 0,
        };
        let capacity = m.cpu(cpu).capacity;
        let t = self.t(task);
        let (est, unchanged) = (t.slots.pixel.est, t.util_est.unchanged());
        let (est, unchanged) = util_est_update(est, t.avg.util_avg, unchanged, capacity, rules);
        let before = t.util_est.value();
        let flag = if unchanged { UTIL_AVG_UNCHANGED } else { 0 };
        (t.slots.pixel.est, t.util_est) = (est, UtilEst(est.value().0 as u32 | flag));
        let util_est = t.util_est.value();
        if util_est != before {
            self.emit(Event::UtilEst { task, util_est });
        }
        true
    }

    /// `rvh_post_init_entity_util_avg_pixel_mod`, once the kernel's own rule has been applied; and
    /// the clamps of its vendor group. Returns the nice value that a thread of a session is given.
    pub(crate) fn vendor_new_task(&mut self, task: TaskId) -> Option<i8> {
        let cpu = self.cpu;
        let vendor = self.m().vendor()?;
        let (auto, scale) = (vendor.auto_headroom, vendor.util_post_init_scale);
        let boosts = vendor.boost_adpf_prio && vendor.is_adpf(task) && self.m().is_fair(task);
        let group = self.m().task(task).group;
        let empty = self.m().cfs_avg_of(cpu, group).avg.util_avg == Util(0);
        let (capacity, limits) = (self.m().cpu(cpu).capacity, self.m().limits_of(group));
        let t = self.t(task);
        t.limits = limits;
        if auto {
            (t.avg.util_avg, t.avg.runnable_avg) = (Util(0), Util(0));
            (t.slots.pixel.est, t.util_est) = (Default::default(), UtilEst(UTIL_AVG_UNCHANGED));
        } else if empty {
            let util = post_init_util(capacity, scale);
            (t.avg.util_avg, t.avg.runnable_avg) = (util, util);
        }
        boosts.then_some(-20)
    }
}
