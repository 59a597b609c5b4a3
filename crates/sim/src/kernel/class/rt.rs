//! SCHED_FIFO and SCHED_RR on one CPU, and throttling before 6.12; in groups of their own: [`crate::mech::rt_groups`].
//!
//! ```text
//!  enqueue ─> first come, first served within a priority ─> runs until it sleeps, or
//!                  a higher priority comes (it stays first in its list)
//!                  RR: its 100 ms are over, and somebody else of its priority waits
//! ```
//!
//! Arithmetic: [`risetime_kernel::rt`]; where RT tasks go: [`super::rt_push`].
//! Source: kernel/sched/rt.c.

use super::rt_push::{select_task_rq_rt, select_task_rq_rt_fork};
use super::sched_class::{Preempts, SchedClass};
use crate::kernel::Kernel;
use crate::kernel::placement::Placement;
use crate::kernel::rq::Rq;
use crate::mech::before::Above;
use crate::state::class::Class;
use crate::state::effects::Effects;
use crate::state::hooks::{Placed, Waker};
use crate::state::machine::Machine;
use crate::state::machine::State;
use crate::state::machine::pelt_pressure;
use risetime_kernel::eevdf::{DequeueKind, EnqueueKind};
use risetime_kernel::features;
use risetime_kernel::pelt::update_rt_rq_load_avg;
use risetime_kernel::units::{CpuId, Span, TaskId};
use risetime_model::workload::Policy;
use risetime_trace::PressureClass;

/// SCHED_FIFO and SCHED_RR.
pub(crate) struct RealTime;

impl SchedClass for RealTime {
    fn about(&self) -> (&'static str, &'static str) {
        ("SCHED_FIFO, SCHED_RR", "highest priority first; throttled up to 6.11")
    }
    fn enqueue(&self, rq: &mut Rq<'_, '_>, task: TaskId, _: EnqueueKind, _: bool) {
        rq.enqueue_task_rt(task, false);
    }
    fn dequeue(&self, rq: &mut Rq<'_, '_>, task: TaskId, _: DequeueKind) {
        rq.dequeue_task_rt(task);
    }
    /// Picks the first real-time task. Where they are throttled, what the previous one ran counts
    /// before that: up to 6.11 it is put first.
    fn pick(&self, rq: &mut Rq<'_, '_>) -> Option<TaskId> {
        rq.update_curr_rt();
        let c = rq.m().cpu(rq.cpu);
        c.rt.first().filter(|_| !c.rt_throttle.throttled).map(|(_, task)| task)
    }
    fn wakeup_preempt(&self, rq: &mut Rq<'_, '_>, curr: TaskId, task: TaskId, _: bool) -> Preempts {
        if rq.wakeup_preempt_rt(curr, task) { Preempts::Now } else { Preempts::No }
    }
    fn put_prev(&self, rq: &mut Rq<'_, '_>, _: TaskId, _: Option<TaskId>) {
        rq.update_curr_rt();
        rq.update_rt(true);
    }
    fn set_next(&self, rq: &mut Rq<'_, '_>, _: TaskId) {
        rq.update_rt(false);
        rq.push_rt_tasks();
    }
    fn tick(&self, rq: &mut Rq<'_, '_>, curr: TaskId) {
        rq.task_tick_rt(curr);
    }
    /// Moves `curr` to the end of its priority's list.
    fn yield_task(&self, rq: &mut Rq<'_, '_>, curr: TaskId) {
        rq.c().rt.requeue(curr, false);
    }
    fn woken(&self, rq: &mut Rq<'_, '_>, task: TaskId) {
        rq.task_woken_rt(task);
    }
    /// A CPU whose real-time task leaves asks the others for theirs.
    fn balance(&self, rq: &mut Rq<'_, '_>, prev: TaskId) {
        let (m, cpu) = (rq.m(), rq.cpu);
        let runs = m.cpu(cpu).rt.first().map_or(0, |(priority, _)| priority);
        let left = m.task(prev).state != State::Runnable || m.task(prev).cpu != cpu;
        if left && runs < m.rt_rank(prev) {
            rq.pull_rt_task();
        }
    }
    fn select_task_rq(
        &self,
        m: &Machine,
        _: &mut dyn Placement,
        task: TaskId,
        waker: Waker,
        effects: &mut Effects,
    ) -> Placed {
        match m.vendor() {
            Some(vendor) => m.vendor_select_rt(vendor, task, waker),
            None => select_task_rq_rt(m, task, waker.cpu, effects),
        }
    }
    fn select_task_rq_fork(
        &self,
        m: &Machine,
        _: &mut dyn Placement,
        task: TaskId,
        effects: &mut Effects,
    ) -> Placed {
        select_task_rq_rt_fork(m, task, effects)
    }
}

impl Rq<'_, '_> {
    /// `enqueue_task_rt`; every one kicks cpufreq.
    pub(crate) fn enqueue_task_rt(&mut self, task: TaskId, head: bool) {
        let priority = self.m().task(task).sched.rt_priority();
        let c = self.c();
        c.rt.enqueue(priority, task, head);
        c.needs_changed();
        self.start_rt_bandwidth();
        if self.m().slots.sysctls.demotion && self.m().cpu(self.cpu).rt_throttle.throttled {
            self.demote_later(task);
        }
        self.rt_rq_changed();
    }

    /// Tells cpufreq of a change of the queue, since 4.17; before, cpufreq heard of the time that a
    /// task has run. Source: commit 8f111bc357aa, "cpufreq/schedutil: Rewrite CPUFREQ_RT support".
    fn rt_rq_changed(&mut self) {
        if self.m().rev.has(features::RT_RQ_CPUFREQ) {
            self.cpufreq_update_util();
        }
    }

    /// `dequeue_task_rt`.
    pub(crate) fn dequeue_task_rt(&mut self, task: TaskId) {
        let cpu = self.cpu;
        self.update_curr_rt();
        let c = self.c();
        c.rt.dequeue(task);
        c.needs_changed();
        if !self.m().cpu(cpu).rt_throttle.throttled {
            self.rt_rq_changed();
        }
    }

    /// `update_curr_rt`: before 6.12 the running RT task uses up the CPU's RT runtime.
    pub(crate) fn update_curr_rt(&mut self) {
        let cpu = self.cpu;
        let runs = self.m().cpu(cpu).curr.is_some_and(|t| self.m().class_of(t) == Class::Rt)
            && self.m().cpu(cpu).rt.first().is_some();
        let kicks = !self.m().rev.has(features::RT_RQ_CPUFREQ);
        let throttles = self.m().rt_throttles();
        if !runs || !(throttles || kicks) {
            return;
        }
        let (delta, limit) = (self.delta_exec(), self.m().slots.sysctls.rt);
        if kicks && delta > Span(0) {
            self.cpufreq_update_util();
        }
        if !throttles {
            return;
        }
        if self.c().rt_throttle.account(limit, delta) {
            self.resched_curr();
            self.start_rt_bandwidth();
            self.demote_queue_rt();
        }
    }

    /// `wakeup_preempt_rt`: the woken task has a higher priority; of two equals the one that can
    /// go elsewhere makes way.
    pub(crate) fn wakeup_preempt_rt(&mut self, curr: TaskId, task: TaskId) -> bool {
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
    pub(crate) fn task_tick_rt(&mut self, curr: TaskId) {
        let cpu = self.cpu;
        self.update_curr_rt();
        if self.slice_is_over(curr) && self.m().cpu(cpu).rt.has_equal(curr) {
            self.c().rt.requeue(curr, false);
            self.resched_curr();
        }
    }

    /// Counts a tick of a SCHED_RR task's slice; returns whether it was the last one, and a new
    /// slice begins.
    pub(crate) fn slice_is_over(&mut self, curr: TaskId) -> bool {
        let timeslice = self.m().slots.sysctls.rr_timeslice;
        let sched = &mut self.t(curr).sched;
        if !matches!(sched.policy, Policy::Rr { .. }) {
            return false;
        }
        sched.rr_left = sched.rr_left.saturating_sub(1);
        if sched.rr_left > 0 {
            return false;
        }
        sched.rr_left = timeslice;
        true
    }

    /// `update_rt_rq_load_avg`; `running`: an RT task ran until now.
    pub(crate) fn update_rt(&mut self, running: bool) -> bool {
        let cpu = self.cpu;
        self.rt_avg_update(Above::Rt, running);
        let pelt = self.m().pelt(cpu);
        let c = self.c();
        let now = c.clock.rq_clock_pelt();
        let changed = update_rt_rq_load_avg(pelt, now, &mut c.rt_avg, running);
        if changed {
            c.needs_changed();
            let event = pelt_pressure(cpu, PressureClass::Rt, &c.rt_avg);
            self.emit(event);
        }
        changed
    }
}

impl Rq<'_, '_> {
    /// Gives the CPU its RT runtime back; returns whether the timer has to go on for it.
    fn rt_period_over(&mut self) -> bool {
        self.update_rq_clock();
        let limit = self.m().slots.sysctls.rt;
        let c = self.c();
        let resumes = c.rt_throttle.period_over(limit);
        let busy = c.rt_throttle.time != 0 || !c.rt.is_empty();
        if resumes {
            self.rt_rq_changed();
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
