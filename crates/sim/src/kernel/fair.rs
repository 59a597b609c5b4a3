//! The fair class: an EEVDF queue ([`risetime_kernel::eevdf`]) with its load tracking.
//!
//! ```text
//!            enqueue                     tick / pick / put                dequeue
//! update_curr → update_load_avg(ATTACH)   update_curr → update_load_avg   util_est → update_load_avg(DETACH)
//!             → place_entity                                              → leave, or stay delayed
//! ```
//!
//! Every update of a CPU's signals that changes them tells cpufreq ([`crate::kernel::cpufreq`]). What stands
//! here is the task's own level; the levels above it are those of its groups ([`crate::state::group`]), and
//! there are none in a workload without.
//! Source: kernel/sched/fair.c.

use crate::kernel::Kernel;
use crate::kernel::placement::idle_sibling::sched_idle_rq;
use crate::state::class::{Class, load_of};
use crate::state::group::level_avg;
use crate::state::hooks::Point;
use crate::state::hooks::Step;
use crate::state::machine::from_time_0;
use risetime_kernel::KernelRev;
use risetime_kernel::eevdf::{DequeueKind, Dequeued, EnqueueKind};
use risetime_kernel::fits::{Fit, MisfitTask, update_misfit_status};
use risetime_kernel::pelt::{get_pelt_divider, update_load_avg_blocked_se, update_load_avg_se};
use risetime_kernel::pelt_cfs::{
    attach_entity_load_avg, detach_entity_load_avg, reweight_entity_load_avg,
    update_cfs_rq_load_avg,
};
use risetime_kernel::units::{CpuId, GroupId, TaskId, Util};
use risetime_kernel::util_est::{util_est_dequeue, util_est_enqueue};
use risetime_trace::Event;

/// What [`Kernel::update_load_avg`] does beside ageing (`DO_ATTACH`, `DO_DETACH`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    /// Nothing.
    Stay,
    /// Attach the entity if it comes from elsewhere.
    Attach,
    /// Detach it: it migrates.
    Detach,
}

impl Kernel<'_> {
    /// Ages the entity and its runqueue to the CPU's clock, and tells cpufreq if the runqueue's
    /// averages changed (`update_load_avg`). Call before the state changes: the flags are those
    /// of the time that passed.
    pub(crate) fn update_load_avg(&mut self, cpu: CpuId, task: TaskId, join: Join) {
        let m = &mut self.m;
        let (decay, rev) = (m.decay, m.rev);
        let group = m.tasks[task.index()].group;
        let now = m.cfs_rq_clock_pelt(cpu, group);
        if m.tasks[task.index()].avg.last_update_time.0 != 0 {
            let queue = m.queue(cpu, group);
            let running = queue.curr().is_some_and(|e| e.id == task);
            let entity = if running { queue.curr() } else { queue.get(task) };
            let (on_rq, delayed) = entity.map_or((false, false), |e| (true, e.sched_delayed));
            let runnable = u64::from(on_rq && !delayed);
            let waits = runnable == 1 && !running;
            let t = &mut m.tasks[task.index()];
            let wait = m.series.tracks_waiting()
                && t.waiting.catch_up(decay, &t.avg) | t.waiting.update(decay, now, waits);
            if update_load_avg_se(decay, now, &mut t.avg, t.weight, on_rq, runnable, running) {
                t.util_est.cfs_se_util_change();
                self.trace_task(cpu, task);
            }
            if wait {
                let waiting_avg = self.m.task(task).waiting.value();
                self.emit(Event::WaitingAvg { task, waiting_avg });
            }
        }
        let groups = self.m.groups.on();
        let mut changed =
            if groups { self.update_level(cpu, group) } else { self.update_cfs_rq(cpu) };
        let m = &mut self.m;
        let t = &mut m.tasks[task.index()];
        let cfs_avg = level_avg(&mut m.cpus, &mut m.groups, cpu, group);
        if t.avg.last_update_time.0 == 0 && join == Join::Attach {
            attach_entity_load_avg(rev, decay, cfs_avg, &mut t.avg, t.weight);
            if m.series.tracks_waiting() {
                t.waiting.attach(decay, &t.avg);
            }
            self.trace_task(cpu, task);
            changed = true;
        } else if join == Join::Detach {
            detach_entity_load_avg(rev, decay, cfs_avg, &t.avg, t.weight);
            changed = true;
        }
        let at_once = self.m.yes(Point::Step(Step::LooksAtOnce), false);
        if changed || (at_once && join == Join::Attach) {
            self.level_changed(cpu, group);
        }
    }

    /// Ages the CPU's own signals; true if its averages changed.
    pub(crate) fn update_cfs_rq(&mut self, cpu: CpuId) -> bool {
        if self.m.groups.on() {
            return self.update_level(cpu, GroupId::ROOT);
        }
        let (decay, rev) = (self.m.decay, self.m.rev);
        let c = self.m.cpu_mut(cpu);
        let now = c.clock.rq_clock_pelt();
        let (load, runnable, running) =
            (c.cfs.load_weight(), c.cfs.nr_runnable() as u64, c.cfs.curr().is_some());
        update_cfs_rq_load_avg(rev, decay, now, &mut c.cfs_avg, load, runnable, running)
    }

    pub(crate) fn trace_task(&mut self, cpu: CpuId, task: TaskId) {
        let avg = &self.m.task(task).avg;
        let event = Event::PeltTask {
            task,
            cpu,
            util_avg: avg.util_avg,
            runnable_avg: avg.runnable_avg,
            util_sum: u64::from(avg.util_sum),
            period_contrib: avg.period_contrib,
            last_update_time: from_time_0(avg),
        };
        self.emit(event);
    }

    pub(crate) fn trace_cfs(&mut self, cpu: CpuId) {
        let c = self.m.cpu(cpu);
        let avg = &c.cfs_avg.avg;
        let event = Event::PeltCfs {
            cpu,
            util_avg: avg.util_avg,
            runnable_avg: avg.runnable_avg,
            util_est: c.util_est,
            util_sum: u64::from(avg.util_sum),
            period_contrib: avg.period_contrib,
            last_update_time: from_time_0(avg),
        };
        self.emit(event);
    }

    /// `enqueue_task_fair`; `waking`: not new, and not moved by balancing.
    pub(crate) fn enqueue_task_fair(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        kind: EnqueueKind,
        waking: bool,
    ) {
        let mut counted = true;
        let forgets = self.m.hooked()
            && !self.m.need_resched.contains(cpu)
            && !self.m.does(Step::TurnEndsAtWakeup);
        let (c, t) = (&mut self.m.cpus[cpu.index()], &self.m.tasks[task.index()]);
        c.util_est = util_est_enqueue(c.util_est, t.util_est);
        let group = t.group;
        if self.m.fair_entity(cpu, task).is_some() {
            // Asleep but still queued: it owed service (`ENQUEUE_DELAYED`). Its runnable time
            // starts now, so what has passed is aged first.
            self.update_load_avg(cpu, task, Join::Stay);
            self.m.queue_mut(cpu, group).requeue_delayed(task);
            self.turn_over_by_then(cpu, group);
            self.m.count_runnable(cpu, group, 1);
        } else {
            self.update_curr(cpu, group);
            self.update_load_avg(cpu, task, Join::Attach);
            let entity = self
                .m
                .task_mut(task)
                .entity
                .take()
                .expect("an entity is on a queue or with its task");
            if self.m.groups.on() {
                counted = self.enqueue_grouped(cpu, task, entity, kind);
            } else {
                self.m.cpu_mut(cpu).cfs.enqueue(entity, kind);
            }
            self.list(task);
        }
        self.take_departed(cpu);
        if forgets && self.m.need_resched.contains(cpu) {
            self.forget_resched(cpu);
        }
        if waking && counted {
            self.check_update_overutilized(cpu);
        }
    }

    /// `dequeue_task_fair`; `sleep`: it falls asleep (else it migrates).
    ///
    /// util_est samples after the PELT update up to 6.11, before it in 6.12, after it again in
    /// 7.2.
    pub(crate) fn dequeue_task_fair(&mut self, cpu: CpuId, task: TaskId, kind: DequeueKind) {
        let (rev, group) = (self.m.rev, self.m.task(task).group);
        let was_sched_idle = sched_idle_rq(&self.m, cpu);
        let delayed_already = self.m.fair_entity(cpu, task).is_some_and(|e| e.sched_delayed);
        if !delayed_already {
            let (c, t) = (&mut self.m.cpus[cpu.index()], &self.m.tasks[task.index()]);
            c.util_est = util_est_dequeue(c.util_est, t.util_est);
        }
        let sleep = matches!(kind, DequeueKind::Sleep | DequeueKind::SleepSpecial);
        if self.m.cpu(cpu).curr == Some(task) {
            self.account_anew(cpu);
        }
        let sample_first = (KernelRev::V6_12..KernelRev::V7_2).contains(&rev);
        if sleep && sample_first {
            self.util_est_sample(cpu, task);
        }
        self.update_curr(cpu, group);
        let join = if kind == DequeueKind::Migrate { Join::Detach } else { Join::Stay };
        self.update_load_avg(cpu, task, join);
        if sleep && !sample_first {
            self.util_est_sample(cpu, task);
        } else if !sleep {
            self.util_est_running(cpu, task);
        }
        if sleep {
            let cfs = self.m.queue_mut(cpu, group);
            cfs.clear_delta_exec(task);
            if let Some(ran) = cfs.get(task).map(|entity| entity.sum_exec_runtime) {
                self.m.tasks[task.index()].slept_at = ran;
            }
        }
        self.clear_buddies(cpu, group, task.into());
        match self.m.queue_mut(cpu, group).dequeue(task, kind) {
            Dequeued::Yes(entity) => {
                self.m.task_mut(task).entity = Some(entity);
                self.task_left(cpu, task, !delayed_already, sleep);
                if !was_sched_idle && sched_idle_rq(&self.m, cpu) {
                    // What is left gives way to anything: look for that soon.
                    self.m.cpu_mut(cpu).next_balance = self.m.jiffies();
                }
            }
            Dequeued::Delayed if !delayed_already => self.m.count_runnable(cpu, group, -1),
            Dequeued::Delayed | Dequeued::Absent => {}
        }
    }

    /// Entities whose delayed dequeue has been completed go back to their tasks.
    #[inline]
    pub(crate) fn take_departed(&mut self, cpu: CpuId) {
        self.take_departed_of(cpu, GroupId::ROOT);
    }

    /// The same of the queue that `g`'s entities are in.
    #[inline]
    pub(crate) fn take_departed_of(&mut self, cpu: CpuId, g: GroupId) {
        if self.m.queue(cpu, g).has_departed() {
            self.bring_home_departed(cpu, g);
        }
    }

    #[inline(never)]
    fn bring_home_departed(&mut self, cpu: CpuId, g: GroupId) {
        let mut departed = self.m.queue_mut(cpu, g).take_departed();
        for entity in departed.drain(..) {
            if let Some(group) = entity.id.as_group() {
                self.group_departed(cpu, group, entity);
                continue;
            }
            let Some(task) = entity.id.as_task() else { continue };
            // `dequeue_entity` of the delayed one: after a yield, or while another class has the CPU,
            // nobody has brought the queue up to now.
            if self.update_cfs_rq(cpu) {
                self.trace_cfs(cpu);
                self.cpufreq_update_util(cpu, false);
            }
            // Its sums end here: until now it was queued but not runnable.
            let group = self.m.task(task).group;
            let now = self.m.cfs_rq_clock_pelt(cpu, group);
            let m = &mut self.m;
            let t = &mut m.tasks[task.index()];
            update_load_avg_se(m.decay, now, &mut t.avg, t.weight, true, 0, false);
            t.entity = Some(entity);
            if m.groups.on() {
                self.update_level(cpu, group);
                self.task_left(cpu, task, false, true);
            }
        }
        self.m.queue_mut(cpu, g).keep_room(departed);
    }

    /// `task_tick_fair`.
    pub(crate) fn task_tick_fair(&mut self, cpu: CpuId, curr: TaskId) {
        self.account_anew(cpu);
        let group = self.m.task(curr).group;
        self.update_curr(cpu, group);
        self.update_load_avg(cpu, curr, Join::Stay);
        self.check_preempt_tick(cpu, group);
        if self.m.groups.on() {
            self.tick_parents(cpu, curr);
        }
        self.util_est_update_running(cpu, curr);
        if self.m.does(Step::MisfitAtTick) {
            self.update_misfit_status(cpu, Some(curr));
        }
        self.check_update_overutilized(cpu);
    }

    /// `update_misfit_status`: does the CPU's fair task need a bigger CPU?
    pub(crate) fn update_misfit_status(&mut self, cpu: CpuId, task: Option<TaskId>) {
        if !self.m.root.asym_cpucap {
            return;
        }
        let h_load = task.map_or(0, |task| self.m.task_h_load(task));
        let state = task.map(|task| MisfitTask {
            nr_cpus_allowed: self.m.task(task).nr_cpus_allowed,
            max_allowed_capacity: self.m.task(task).max_allowed_capacity,
            fits: self.m.task_fits(task, cpu) == Fit::Fits,
            h_load,
        });
        let capacity = self.m.cpu(cpu).capacity;
        let Some(load) = update_misfit_status(self.m.rev, true, state, capacity) else { return };
        let before = std::mem::replace(&mut self.m.cpu_mut(cpu).misfit_task_load, load);
        if (before == 0) != (load == 0) {
            self.emit(Event::Misfit { cpu, task: task.filter(|_| load != 0) });
        }
    }

    /// `check_update_overutilized_status`: sets the flag; only load balancing clears it.
    pub(crate) fn check_update_overutilized(&mut self, cpu: CpuId) {
        if !self.m.root.overutilized && self.m.cpu_overutilized(cpu) {
            self.set_overutilized(true);
        }
    }

    pub(crate) fn set_overutilized(&mut self, on: bool) {
        if self.m.root.overutilized != on {
            self.m.root.overutilized = on;
            self.emit(Event::Overutilized { on });
        }
    }

    /// `set_user_nice` on a task, wherever it is.
    pub(crate) fn set_nice(&mut self, task: TaskId, nice: i8) {
        let load = load_of(self.m.task(task).sched.policy, nice);
        let (rev, cpu) = (self.m.rev, self.m.task(task).cpu);
        let group = self.m.task(task).group;
        let queued = self.m.fair_entity(cpu, task).is_some();
        if queued {
            self.update_rq_clock(cpu);
            self.update_curr(cpu, group);
            self.update_load_avg(cpu, task, Join::Stay);
        }
        if queued {
            self.m.queue_mut(cpu, group).renice(task, load);
            if self.m.groups.on() {
                let level = self.m.groups.rq_mut(cpu, group);
                level.load =
                    level.load - (self.m.tasks[task.index()].weight.0 << 10) + load.scaled();
            }
        }
        let m = &mut self.m;
        let t = &mut m.tasks[task.index()];
        if let Some(entity) = &mut t.entity {
            entity.reweight(rev, load);
        }
        let old = std::mem::replace(&mut t.weight, load.weight());
        t.nice = nice;
        if t.sched.class() != Class::Fair {
            // Its load is nowhere counted while it is of another class.
        } else if t.avg.last_update_time.0 != 0 {
            let cfs = level_avg(&mut m.cpus, &mut m.groups, cpu, group);
            reweight_entity_load_avg(rev, m.decay, cfs, &mut t.avg, old, t.weight);
        } else {
            // Not on any runqueue yet: a new task's load is its weight.
            t.avg.load_avg = t.weight.0;
        }
        if queued && self.m.groups.on() {
            self.refresh_parents(cpu, group);
            self.reweight_flat(cpu, task);
        }
    }

    /// What a task of another class has left of its time as a fair one fades when it changes CPU, up to
    /// where the old queue was updated last.
    pub(crate) fn set_task_rq_fair(&mut self, task: TaskId, from: CpuId, to: CpuId) {
        let m = &mut self.m;
        let t = &mut m.tasks[task.index()];
        if t.avg.last_update_time.0 == 0 {
            return;
        }
        let mut updated =
            |cpu| level_avg(&mut m.cpus, &mut m.groups, cpu, t.group).avg.last_update_time;
        let (before, after) = (updated(from), updated(to));
        let changed = update_load_avg_blocked_se(m.decay, before, &mut t.avg, t.weight);
        t.avg.last_update_time = after;
        if changed {
            self.trace_task(to, task);
        }
    }

    /// The task's PELT state is set from outside (`start_util`, `start_period_contrib`, a start
    /// image): its own and, by the difference, its runqueue's, at their new place in the period.
    pub(crate) fn set_signals(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        util: Option<Util>,
        runnable: Option<Util>,
        contrib: Option<u32>,
    ) {
        if contrib.is_some() {
            self.update_levels(cpu);
        }
        let decay = self.m.decay;
        let m = &mut self.m;
        let t = &mut m.tasks[task.index()];
        let group = t.group;
        if let Some(contrib) = contrib {
            t.avg.period_contrib = contrib;
            m.cpus[cpu.index()].cfs_avg.avg.period_contrib = contrib;
            m.groups_in_step(cpu);
        }
        let t = &mut m.tasks[task.index()];
        let level = level_avg(&mut m.cpus, &mut m.groups, cpu, group);
        // The levels above follow at their next update.
        level.propagate |= util.is_some() && group != GroupId::ROOT;
        let cfs = &mut level.avg;
        if let Some(util) = util {
            let runnable = runnable.unwrap_or(util);
            cfs.util_avg = cfs.util_avg.saturating_sub(t.avg.util_avg) + util;
            cfs.runnable_avg = cfs.runnable_avg.saturating_sub(t.avg.runnable_avg) + runnable;
            (t.avg.util_avg, t.avg.runnable_avg) = (util, runnable);
        }
        for avg in [&mut t.avg, cfs] {
            let divider = u64::from(get_pelt_divider(decay, avg));
            avg.util_sum = (avg.util_avg.0 * divider) as u32;
            avg.runnable_sum = avg.runnable_avg.0 * divider;
        }
        self.trace_task(cpu, task);
        self.cpufreq_update_util(cpu, false);
    }
}
