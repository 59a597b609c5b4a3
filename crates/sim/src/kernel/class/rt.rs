//! SCHED_FIFO and SCHED_RR on one CPU, and throttling before 6.12.
//!
//! ```text
//!  enqueue ─> first come, first served within a priority ─> runs until it sleeps, or
//!                  a higher priority comes (it stays first in its list)
//!                  RR: its 100 ms are over, and somebody else of its priority waits
//! ```
//!
//! Arithmetic: [`risetime_kernel::rt`]; where RT tasks go: [`super::rt_push`].
//! Source: kernel/sched/rt.c.

use crate::kernel::Kernel;
use crate::kernel::rq::Rq;
use crate::state::machine::pelt_pressure;
use risetime_kernel::pelt::update_rt_rq_load_avg;
use risetime_kernel::rt::rt_throttles;
use risetime_kernel::units::{CpuId, TaskId};
use risetime_model::workload::Policy;

impl Rq<'_, '_> {
    /// `enqueue_task_rt`; every one kicks cpufreq.
    pub(crate) fn enqueue_task_rt(&mut self, task: TaskId, head: bool) {
        let priority = self.m().task(task).sched.rt_priority();
        self.c().rt.enqueue(priority, task, head);
        if rt_throttles(self.m().rev) {
            self.start_rt_bandwidth();
        }
        self.cpufreq_update_util();
    }

    /// `dequeue_task_rt`.
    pub(crate) fn dequeue_task_rt(&mut self, task: TaskId) {
        let cpu = self.cpu;
        self.update_curr_rt();
        self.c().rt.dequeue(task);
        if !self.m().cpu(cpu).rt_throttle.throttled {
            self.cpufreq_update_util();
        }
    }

    /// `update_curr_rt`: before 6.12 the running RT task uses up the CPU's RT runtime.
    pub(crate) fn update_curr_rt(&mut self) {
        let cpu = self.cpu;
        let runs = self.m().cpu(cpu).curr.is_some_and(|t| self.m().rt_rank(t) != 0)
            && self.m().cpu(cpu).rt.first().is_some();
        if !runs || !rt_throttles(self.m().rev) {
            return;
        }
        let delta = self.delta_exec();
        if self.c().rt_throttle.account(delta) {
            self.resched_curr();
            self.start_rt_bandwidth();
        }
    }

    /// `wakeup_preempt_rt`: the woken task has a higher priority; of two equals the one that can
    /// go elsewhere makes way.
    pub(super) fn wakeup_preempt_rt(&mut self, curr: TaskId, task: TaskId) -> bool {
        let cpu = self.cpu;
        let (own, woken) = (self.m().rt_rank(curr), self.m().rt_rank(task));
        if woken != own || self.m().need_resched.contains(cpu) {
            return woken > own;
        }
        // `check_preempt_equal_prio`
        let can_move = |e: &Self, t: TaskId| {
            e.m().task(t).nr_cpus_allowed > 1 && e.m().cpupri_find(t, None).is_some()
        };
        if !can_move(self, curr) || can_move(self, task) {
            return false;
        }
        self.c().rt.requeue(task, true);
        true
    }

    /// `task_tick_rt`.
    pub(super) fn task_tick_rt(&mut self, curr: TaskId) {
        let cpu = self.cpu;
        self.update_curr_rt();
        let timeslice = self.m().classes.rr_timeslice;
        let sched = &mut self.t(curr).sched;
        if !matches!(sched.policy, Policy::Rr { .. }) {
            return;
        }
        sched.rr_left = sched.rr_left.saturating_sub(1);
        if sched.rr_left > 0 {
            return;
        }
        sched.rr_left = timeslice;
        if self.m().cpu(cpu).rt.has_equal(curr) {
            self.c().rt.requeue(curr, false);
            self.resched_curr();
        }
    }

    /// `update_rt_rq_load_avg`; `running`: an RT task ran until now.
    pub(crate) fn update_rt(&mut self, running: bool) -> bool {
        let cpu = self.cpu;
        let decay = self.m().decay;
        let c = self.c();
        let now = c.clock.rq_clock_pelt();
        let changed = update_rt_rq_load_avg(decay, now, &mut c.rt_avg, running);
        if changed {
            let event = pelt_pressure(cpu, "rt", &c.rt_avg);
            self.emit(event);
        }
        changed
    }
}

impl Rq<'_, '_> {
    /// The CPU gets its RT runtime back; true if the timer has to go on for it.
    fn rt_period_over(&mut self) -> bool {
        self.update_rq_clock();
        let c = self.c();
        let resumes = c.rt_throttle.period_over();
        let busy = c.rt_throttle.time != 0 || !c.rt.is_empty();
        if resumes {
            self.cpufreq_update_util();
            if !self.m().cpu(self.cpu).rt.is_empty() {
                self.resched_curr();
            }
        }
        busy
    }
}

impl Kernel<'_> {
    /// `do_sched_rt_period_timer`: every CPU gets its RT runtime back.
    pub(crate) fn rt_period_timer(&mut self) {
        self.m.classes.rt_period = None;
        let mut busy = false;
        for cpu in (0..self.m.cpus.len() as u32).map(CpuId) {
            let c = self.m.cpu(cpu);
            if c.rt_throttle.time == 0 && c.rt.is_empty() {
                continue;
            }
            busy |= self.rq(cpu).rt_period_over();
        }
        if busy {
            self.rq(CpuId(0)).start_rt_bandwidth();
        }
    }
}
