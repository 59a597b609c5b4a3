//! SCHED_DEADLINE on one CPU: queue, budget, bandwidth.
//!
//! ```text
//!  activate ─> CBS: keep the instance or begin a new one ─> queued by deadline ─> runs
//!     running: budget shrinks at each update ─> used up: throttled, off the queue
//!                                                  └─ timer: replenished, queued again
//!  sleep ──> its bandwidth counts until the 0-lag time (inactive timer), then no more
//! ```
//!
//! A budget is looked at where the kernel looks: at ticks and when tasks come and go, so that an
//! instance may overrun by up to a tick (`HRTICK_DL`, with which it could not, is off on the
//! kernels and machines here); the overrun is paid back. Each change of the running bandwidth kicks
//! cpufreq.
//!
//! Arithmetic: [`risetime_kernel::deadline`]. Where deadline tasks go: [`super::dl_push`].
//! Source: kernel/sched/deadline.c.

use super::sched_class::{Preempts, SchedClass};
use crate::kernel::placement::Placement;
use crate::kernel::rq::Rq;
use crate::mech::before::Above;
use crate::state::class::Class;
use crate::state::class::ClassTimer;
use crate::state::class::DlFrequency;
use crate::state::effects::Effects;
use crate::state::hooks::{Placed, Waker};
use crate::state::hooks::{Point, Step};
use crate::state::machine::Machine;
use crate::state::machine::{State, pelt_pressure};
use risetime_kernel::deadline::{DlEntity, DlId, dl_scaled_delta};
use risetime_kernel::eevdf::{DequeueKind, EnqueueKind};
use risetime_kernel::pelt::update_dl_rq_load_avg;
use risetime_kernel::units::{CpuId, Instant, TaskId};
use risetime_trace::{Event, PressureClass};

/// Reason for which a reservation is queued (`ENQUEUE_…`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Joins {
    /// The task wakes; `migrated`: on another CPU than the one it slept on.
    Wakes { migrated: bool },
    /// The task's timer expires, or an instance ends that may go on at once.
    Replenish,
    /// The task comes from another CPU, with its instance as it stands.
    Moves,
    /// Into the class, or with other attributes.
    Restored,
}

/// SCHED_DEADLINE, and among its tasks the servers of the fair class and of real-time groups.
pub(crate) struct Deadline;

impl SchedClass for Deadline {
    fn about(&self) -> (&'static str, &'static str) {
        (
            "SCHED_DEADLINE",
            "earliest deadline first, a runtime in each period (CBS, GRUB), admission",
        )
    }
    fn enqueue(&self, rq: &mut Rq<'_, '_>, task: TaskId, kind: EnqueueKind, _: bool) {
        rq.activate_dl(task, kind);
    }
    fn dequeue(&self, rq: &mut Rq<'_, '_>, task: TaskId, kind: DequeueKind) {
        rq.deactivate_dl(task, kind);
    }
    fn pick(&self, rq: &mut Rq<'_, '_>) -> Option<TaskId> {
        while let Some(first) = rq.m().cpu(rq.cpu).dl.first() {
            match first {
                DlId::Task(task) => return Some(task),
                DlId::FairServer => {
                    if let Some(task) = Class::Fair.of().serve(rq, first) {
                        return Some(task);
                    }
                }
                DlId::GroupServer(_) => {
                    if let Some(task) = Class::RtGroup.of().serve(rq, first) {
                        return Some(task);
                    }
                }
            }
        }
        None
    }
    fn wakeup_preempt(&self, rq: &mut Rq<'_, '_>, curr: TaskId, task: TaskId, _: bool) -> Preempts {
        if rq.wakeup_preempt_dl(curr, task) { Preempts::Now } else { Preempts::No }
    }
    fn put_prev(&self, rq: &mut Rq<'_, '_>, _: TaskId, _: Option<TaskId>) {
        rq.update_curr_dl();
        rq.update_dl(true);
    }
    fn set_next(&self, rq: &mut Rq<'_, '_>, _: TaskId) {
        rq.update_dl(false);
        rq.push_dl_tasks();
    }
    fn tick(&self, rq: &mut Rq<'_, '_>, _: TaskId) {
        rq.update_curr_dl();
    }
    /// Makes `curr` wait for its next instance.
    fn yield_task(&self, rq: &mut Rq<'_, '_>, curr: TaskId) {
        rq.dl_mut(curr).yielded = true;
        rq.update_curr_dl();
    }
    fn woken(&self, rq: &mut Rq<'_, '_>, task: TaskId) {
        rq.task_woken_dl(task);
    }
    /// A CPU whose deadline task leaves looks for others, and for real-time ones.
    fn balance(&self, rq: &mut Rq<'_, '_>, prev: TaskId) {
        if !rq.m().cpu(rq.cpu).dl.contains(DlId::Task(prev)) {
            rq.pull_dl_task();
        }
        if rq.m().cpu(rq.cpu).dl.is_empty() && !rq.m().rules.rt_first {
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
        m.rules.placement.wake(m, task, waker.cpu, effects)
    }
}

impl Rq<'_, '_> {
    pub(crate) fn activate_dl(&mut self, task: TaskId, kind: EnqueueKind) {
        let joins = match kind {
            EnqueueKind::Wakeup | EnqueueKind::Initial => Joins::Wakes { migrated: false },
            // Asleep it has left its old CPU's bandwidth; awake it is moved.
            EnqueueKind::WakeupMigrated => Joins::Wakes { migrated: true },
            EnqueueKind::Migrated => Joins::Moves,
            EnqueueKind::Restore => Joins::Restored,
        };
        self.enqueue_task_dl(task, joins);
    }

    /// `enqueue_dl_entity` of a task.
    pub(crate) fn enqueue_task_dl(&mut self, task: TaskId, joins: Joins) {
        let cpu = self.cpu;
        let now = self.m().rq_clock(cpu);
        let dl = self.dl_mut(task);
        let before = dl.timer;
        dl.check_constrained(now);
        let (bw, special) = (dl.bw, dl.special);
        match joins {
            Joins::Moves | Joins::Restored => {
                self.add_rq_bw(task);
                self.add_running_bw(bw, special);
            }
            Joins::Wakes { migrated } => self.task_contending(task, migrated),
            Joins::Replenish => {}
        }
        let dl = self.dl_mut(task);
        let queued = !dl.throttled || joins == Joins::Replenish;
        if queued {
            match joins {
                Joins::Wakes { .. } => dl.update_at_wakeup(now),
                Joins::Replenish => dl.replenish(now),
                Joins::Restored if dl.deadline < now => dl.setup_new(now),
                Joins::Moves | Joins::Restored => {}
            }
        }
        let (deadline, timer) = (dl.deadline, dl.timer);
        if queued {
            self.c().dl.insert(deadline, DlId::Task(task));
            if !special && self.m().yes(Point::Step(Step::LooksAtDeadline), false) {
                self.cpufreq_update_util();
            }
        }
        self.arm_changed(ClassTimer::Replenish(task), before, timer);
        self.tell_throttled(task);
    }

    /// Whether its runtime is used up goes into the trace, if that has changed. A task that yielded has not used it up:
    /// it is done with its period.
    pub(crate) fn tell_throttled(&mut self, task: TaskId) {
        let sched = &mut self.t(task).sched;
        let used_up = |dl: &DlEntity| dl.throttled && !dl.yielded && !dl.special;
        let on = sched.dl.as_deref().is_some_and(used_up);
        if std::mem::replace(&mut sched.told_throttled, on) != on {
            self.emit(Event::Throttled { task, on });
        }
    }

    /// `dequeue_task_dl`.
    pub(crate) fn deactivate_dl(&mut self, task: TaskId, kind: DequeueKind) {
        let cpu = self.cpu;
        if self.m().cpu(cpu).curr == Some(task) {
            self.update_curr_dl();
        }
        self.c().dl.remove(DlId::Task(task));
        match kind {
            DequeueKind::Migrate | DequeueKind::Save => {
                let dl = self.m().dl(task);
                self.sub_running_bw(dl.bw, dl.special);
                self.sub_rq_bw(task);
            }
            DequeueKind::Sleep | DequeueKind::SleepSpecial => self.task_non_contending(task),
        }
    }

    /// `update_curr_dl`: the running task uses up its instance.
    pub(crate) fn update_curr_dl(&mut self) {
        let cpu = self.cpu;
        let Some(task) = self.m().cpu(cpu).curr else { return };
        let id = DlId::Task(task);
        let own = self.m().task(task).sched.dl.as_ref();
        let Some(yielded) = own.filter(|dl| !dl.special).map(|dl| dl.yielded) else { return };
        if !self.m().cpu(cpu).dl.contains(id) {
            return;
        }
        let delta = self.delta_exec().0;
        if delta == 0 && !yielded {
            return;
        }
        if delta > 0 && !self.m().knows_deadline_bandwidth() {
            self.cpufreq_update_util();
        }
        let c = self.m().cpu(cpu);
        let dl = self.m().dl(task);
        let scaled = if dl.params.reclaim {
            self.m().charged_by_grub(cpu, delta, dl.bw)
        } else {
            dl_scaled_delta(delta, self.m().domains[c.domain].freq_scale, c.capacity)
        };
        let now = self.m().rq_clock(cpu);
        let before = self.m().dl(task).timer;
        let over = self.dl_mut(task).consume(scaled);
        if over && self.m().does(Step::ThrottleDl) {
            self.dl_mut(task).throttled = true;
            self.c().dl.remove(id);
            if self.dl_mut(task).start_timer(now) {
                self.arm_changed(ClassTimer::Replenish(task), before, self.m().dl(task).timer);
                if self.m().slots.sysctls.demotion {
                    self.demote_later(task);
                }
            } else {
                self.enqueue_task_dl(task, Joins::Replenish);
            }
            self.tell_throttled(task);
            if self.m().cpu(cpu).dl.first() != Some(id) {
                self.resched_curr();
            }
        }
        // Deadline time counts as real-time, as long as that is not over.
        let throttle = &self.m().cpu(cpu).rt_throttle;
        let runtime = self.m().slots.sysctls.rt.runtime.map_or(0, |r| r.0);
        if self.m().rt_throttles()
            && (self.m().classes.rt_period.is_some() || throttle.time < runtime)
        {
            self.c().rt_throttle.time += delta;
        }
    }

    /// `__add_running_bw`.
    pub(crate) fn add_running_bw(&mut self, bw: u64, special: bool) {
        if !special {
            let c = self.c();
            c.dl.running_bw += bw;
            c.needs_changed();
            if self.m().knows_deadline_bandwidth() {
                self.cpufreq_update_util();
            }
        }
    }

    /// `__sub_running_bw`.
    pub(crate) fn sub_running_bw(&mut self, bw: u64, special: bool) {
        if !special {
            let c = self.c();
            c.dl.running_bw = c.dl.running_bw.saturating_sub(bw);
            c.needs_changed();
            if self.m().knows_deadline_bandwidth() {
                self.cpufreq_update_util();
            }
        }
    }

    /// `add_rq_bw`.
    pub(crate) fn add_rq_bw(&mut self, task: TaskId) {
        let (bw, special) = (self.m().dl(task).bw, self.m().dl(task).special);
        if !special {
            self.c().dl.this_bw += bw;
            self.admitted_changed();
        }
    }

    /// `sub_rq_bw`.
    pub(crate) fn sub_rq_bw(&mut self, task: TaskId) {
        let (bw, special) = (self.m().dl(task).bw, self.m().dl(task).special);
        if !special {
            let dl = &mut self.c().dl;
            dl.this_bw = dl.this_bw.saturating_sub(bw);
            self.admitted_changed();
        }
    }

    /// Frequencies that go by what is admitted hear of it.
    fn admitted_changed(&mut self) {
        if self.m().rules.frequency == Some(DlFrequency::Admitted) {
            self.cpufreq_update_util();
        }
    }

    /// `task_contending`: it is active again, or still.
    fn task_contending(&mut self, task: TaskId, migrated: bool) {
        if migrated {
            self.add_rq_bw(task);
        }
        let dl = self.dl_mut(task);
        if std::mem::replace(&mut dl.non_contending, false) {
            let before = dl.inactive_timer.take();
            self.arm_changed(ClassTimer::Inactive(task), before, None);
        } else {
            let (bw, special) = (dl.bw, dl.special);
            self.add_running_bw(bw, special);
        }
    }

    /// `task_non_contending`: it sleeps, and is inactive from its 0-lag time on.
    fn task_non_contending(&mut self, task: TaskId) {
        let cpu = self.cpu;
        let now = self.m().rq_clock(cpu);
        if self.m().dl(task).special {
            return;
        }
        match self.m().dl(task).zero_lag(now) {
            Some(at) if self.m().dl(task).inactive_timer.is_none() => {
                let dl = self.dl_mut(task);
                (dl.non_contending, dl.inactive_timer) = (true, Some(at));
                self.arm_changed(ClassTimer::Inactive(task), None, Some(at));
            }
            _ => {
                let bw = self.m().dl(task).bw;
                self.sub_running_bw(bw, false);
                if self.m().task(task).state == State::Exited {
                    self.sub_rq_bw(task);
                    self.release_bw(bw);
                }
            }
        }
    }

    /// `update_dl_rq_load_avg`; `running`: a deadline task ran until now.
    pub(crate) fn update_dl(&mut self, running: bool) {
        let cpu = self.cpu;
        self.rt_avg_update(Above::Deadline, running);
        let pelt = self.m().pelt(cpu);
        let c = self.c();
        let now = c.clock.rq_clock_pelt();
        if update_dl_rq_load_avg(pelt, now, &mut c.dl_avg, running) {
            c.needs_changed();
            let event = pelt_pressure(cpu, PressureClass::Dl, &c.dl_avg);
            self.emit(event);
        }
    }
}

impl Rq<'_, '_> {
    /// `migrate_task_rq_dl`: a sleeping task leaves its CPU's bandwidth.
    pub(crate) fn migrate_task_rq_dl(&mut self, task: TaskId) {
        if self.m().class_of(task) != Class::Deadline || self.m().dl(task).special {
            return;
        }
        self.update_rq_clock();
        let dl = self.dl_mut(task);
        let (bw, timer) = (dl.bw, dl.timer);
        if std::mem::replace(&mut dl.non_contending, false) {
            let before = dl.inactive_timer.take();
            self.arm_changed(ClassTimer::Inactive(task), before, None);
            self.sub_running_bw(bw, false);
        }
        self.sub_rq_bw(task);
        self.arm_changed(ClassTimer::Replenish(task), timer, None);
    }

    /// A task that has come here from another CPU has taken its replenishment timer along.
    pub(crate) fn replenish_here(&mut self, task: TaskId) {
        if self.m().class_of(task) == Class::Deadline {
            let timer = self.m().dl(task).timer;
            self.arm_changed(ClassTimer::Replenish(task), None, timer);
        }
    }

    /// `inactive_task_timer`: the 0-lag time has come.
    pub(crate) fn inactive_task_timer(&mut self, task: TaskId) {
        let dl = self.dl_mut(task);
        dl.inactive_timer = None;
        let (bw, counts) = (dl.bw, std::mem::replace(&mut dl.non_contending, false));
        let dead = self.m().task(task).state == State::Exited;
        let left = self.m().class_of(task) != Class::Deadline;
        if counts && !left {
            self.sub_running_bw(bw, false);
            if dead {
                self.sub_rq_bw(task);
            }
        }
        if dead || left {
            self.release_bw(bw);
        }
    }
}

impl Machine {
    /// The runtime that a task that reclaims is charged for `delta`.
    fn charged_by_grub(&self, cpu: CpuId, delta: u64, bw: u64) -> u64 {
        if !self.does(Step::GrubReclaim) {
            return delta;
        }
        self.cpu(cpu).dl.grub_reclaim(self.rev, delta, bw)
    }

    // ------------------------------------------------------------------ bandwidth

    /// `rq_clock`: the time that deadlines are in.
    pub(crate) fn rq_clock(&self, cpu: CpuId) -> Instant {
        self.cpu(cpu).clock.clock
    }
}

impl Rq<'_, '_> {
    /// `wakeup_preempt_dl`: the earlier deadline; of equals the one that cannot go elsewhere.
    pub(crate) fn wakeup_preempt_dl(&mut self, curr: TaskId, task: TaskId) -> bool {
        let cpu = self.cpu;
        let (own, woken) = (self.m().dl(curr), self.m().dl(task));
        if woken.preempts(own) {
            return true;
        }
        if woken.deadline != own.deadline || self.m().need_resched.contains(cpu) {
            return false;
        }
        // `check_preempt_equal_dl`
        let moves =
            |t: TaskId| self.m().task(t).nr_cpus_allowed > 1 && !self.m().cpudl_find(t).is_empty();
        moves(curr) && !moves(task)
    }
}
