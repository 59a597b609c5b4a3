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

use crate::kernel::placement::idle_sibling::sched_idle_rq;
use crate::kernel::rq::Rq;
use crate::state::class::Class;
use crate::state::group::level_avg;
use crate::state::hooks::Point;
use crate::state::hooks::Step;
use crate::state::machine::from_time_0;
use risetime_kernel::eevdf::{DequeueKind, Dequeued, EnqueueKind, LoadWeight};
use risetime_kernel::features;
use risetime_kernel::fits::{Fit, MisfitTask, update_misfit_status};
use risetime_kernel::pelt::{get_pelt_divider, update_load_avg_blocked_se, update_load_avg_se};
use risetime_kernel::pelt_cfs::{
    attach_entity_load_avg, detach_entity_load_avg, reweight_entity_load_avg,
    update_cfs_rq_load_avg,
};
use risetime_kernel::units::{CpuId, GroupId, TaskId, Util};
use risetime_kernel::util_est::{util_est_dequeue, util_est_enqueue};
use risetime_trace::Event;

/// Work of [`Rq::update_load_avg`] beside ageing (`DO_ATTACH`, `DO_DETACH`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    /// The entity neither joins nor leaves.
    Stay,
    /// Attach the entity if it comes from elsewhere.
    Attach,
    /// Detach it: it migrates.
    Detach,
}

impl Rq<'_, '_> {
    /// Ages the entity and its runqueue to the CPU's clock, and tells cpufreq if the runqueue's
    /// averages changed (`update_load_avg`). Call before the state changes: the flags are those
    /// of the time that passed.
    pub(crate) fn update_load_avg(&mut self, task: TaskId, join: Join) {
        let cpu = self.cpu;
        let m = self.m();
        let (pelt, decay, rev) = (m.pelt(cpu), m.decay, m.rev);
        let group = m.task(task).group;
        let now = m.cfs_rq_clock_pelt(cpu, group);
        if m.task(task).avg.last_update_time.0 != 0 {
            let queue = m.queue(cpu, group);
            let running = queue.curr().is_some_and(|e| e.id == task);
            let entity = if running { queue.curr() } else { queue.get(task) };
            let (on_rq, delayed) = entity.map_or((false, false), |e| (true, e.sched_delayed));
            let runnable = u64::from(on_rq && !delayed);
            let waits = runnable == 1 && !running;
            let m = self.parts();
            let t = &mut m.tasks[task.index()];
            let wait = m.series.tracks_waiting()
                && t.slots.series.waiting.catch_up(decay, &t.avg)
                    | t.slots.series.waiting.update(decay, now, waits);
            if update_load_avg_se(pelt, now, &mut t.avg, t.weight, on_rq, runnable, running) {
                t.util_est.cfs_se_util_change();
                self.trace_task(task);
            }
            if wait {
                let waiting_avg = self.m().task(task).slots.series.waiting.value();
                self.emit(Event::WaitingAvg { task, waiting_avg });
            }
        }
        let groups = self.m().groups.on();
        let mut changed = if groups { self.update_level(group) } else { self.update_cfs_rq() };
        let m = self.parts();
        let t = &mut m.tasks[task.index()];
        let cfs_avg = level_avg(m.c, m.groups, cpu, group);
        if t.avg.last_update_time.0 == 0 && join == Join::Attach {
            attach_entity_load_avg(rev, decay, cfs_avg, &mut t.avg, t.weight);
            if m.series.tracks_waiting() {
                t.slots.series.waiting.attach(decay, &t.avg);
            }
            self.trace_task(task);
            changed = true;
        } else if join == Join::Detach {
            detach_entity_load_avg(rev, decay, cfs_avg, &t.avg, t.weight);
            changed = true;
        }
        let at_once = self.m().yes(Point::Step(Step::LooksAtOnce), false);
        if changed || (at_once && join == Join::Attach) {
            self.cfs_rq_util_change(group);
        }
    }

    /// `cfs_rq_util_change`, and `update_tg_load_avg` of a group: passes on that a level's averages have changed, to the CPU's
    /// frequency or to the group's load.
    pub(crate) fn cfs_rq_util_change(&mut self, g: GroupId) {
        let cpu = self.cpu;
        if g == GroupId::ROOT {
            self.trace_cfs();
            self.cpufreq_update_util();
            return;
        }
        let m = self.parts();
        let now = m.c.clock.clock.0;
        let group = &mut m.groups.list[g.index()];
        let rq = &mut group.rq[cpu.index()];
        let avg = &rq.avg.avg;
        rq.told.update_tg_load_avg(m.rev, &mut group.load, now, avg.load_avg, avg.runnable_avg);
    }

    /// Ages the CPU's own signals; true if its averages changed.
    pub(crate) fn update_cfs_rq(&mut self) -> bool {
        if self.m().groups.on() {
            return self.update_level(GroupId::ROOT);
        }
        let (pelt, rev) = (self.m().pelt(self.cpu), self.m().rev);
        let c = self.c();
        let now = c.clock.rq_clock_pelt();
        let (load, runnable, running) =
            (c.cfs.load_weight(), c.cfs.nr_runnable() as u64, c.cfs.curr().is_some());
        c.needs_changed();
        update_cfs_rq_load_avg(rev, pelt, now, &mut c.cfs_avg, load, runnable, running)
    }

    pub(crate) fn trace_task(&mut self, task: TaskId) {
        let cpu = self.cpu;
        let avg = &self.m().task(task).avg;
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

    pub(crate) fn trace_cfs(&mut self) {
        let cpu = self.cpu;
        let c = self.m().cpu(cpu);
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
    pub(crate) fn enqueue_task_fair(&mut self, task: TaskId, kind: EnqueueKind, waking: bool) {
        let cpu = self.cpu;
        let mut counted = true;
        let forgets = self.m().hooked()
            && !self.m().need_resched.contains(cpu)
            && !self.m().does(Step::TurnEndsAtWakeup);
        let (util_est, group) = (self.m().task(task).util_est, self.m().task(task).group);
        // Balancing brings a task that sleeps with its dequeue delayed.
        let asleep = self.m().task(task).entity.is_some_and(|e| e.sched_delayed);
        if !asleep {
            let c = self.c();
            c.util_est = util_est_enqueue(c.util_est, util_est);
            c.needs_changed();
        }
        if self.m().fair_entity(cpu, task).is_some() {
            // Asleep but still queued: it owed service (`ENQUEUE_DELAYED`). Its runnable time
            // starts now, so what has passed is aged first.
            self.update_load_avg(task, Join::Stay);
            self.queue_mut(group).requeue_delayed(task);
            self.turn_over_by_then(group);
            self.count_runnable(group, 1);
        } else {
            self.update_curr(group);
            self.update_load_avg(task, Join::Attach);
            let entity =
                self.t(task).entity.take().expect("an entity is on a queue or with its task");
            if self.m().groups.on() {
                counted = self.enqueue_grouped(task, entity, kind);
            } else {
                self.c().cfs.enqueue(entity, kind);
            }
            self.list(task);
        }
        self.take_departed();
        if forgets && self.m().need_resched.contains(cpu) {
            self.forget_resched();
        }
        self.vendor_enqueued(task, kind != EnqueueKind::Migrated);
        if waking && counted {
            self.check_update_overutilized();
        }
    }

    /// `dequeue_task_fair`; `sleep`: it falls asleep (else it migrates).
    ///
    /// util_est samples after the PELT update up to 6.11, before it in 6.12, after it again in
    /// 7.2.
    pub(crate) fn dequeue_task_fair(&mut self, task: TaskId, kind: DequeueKind) {
        let cpu = self.cpu;
        let (rev, group) = (self.m().rev, self.m().task(task).group);
        let was_sched_idle = sched_idle_rq(self.m(), cpu);
        let delayed_already = self.m().fair_entity(cpu, task).is_some_and(|e| e.sched_delayed);
        if !delayed_already {
            let util_est = self.m().task(task).util_est;
            let c = self.c();
            c.util_est = util_est_dequeue(c.util_est, util_est);
            c.needs_changed();
        }
        let sleep = matches!(kind, DequeueKind::Sleep | DequeueKind::SleepSpecial);
        if self.m().cpu(cpu).curr == Some(task) {
            self.account_anew();
        }
        let sample_first = rev.has(features::UTIL_EST_SAMPLE_FIRST);
        if sleep && sample_first {
            self.util_est_sample(task);
        }
        self.update_curr(group);
        let join = if kind == DequeueKind::Migrate { Join::Detach } else { Join::Stay };
        self.update_load_avg(task, join);
        if sleep && !sample_first {
            self.util_est_sample(task);
        } else if !sleep && !delayed_already {
            self.util_est_running(task);
        }
        self.vendor_dequeues(task, kind != DequeueKind::Migrate);
        if sleep {
            let cfs = self.queue_mut(group);
            cfs.clear_delta_exec(task);
            if let Some(ran) = cfs.get(task).map(|entity| entity.sum_exec_runtime) {
                self.t(task).slept_at = ran;
            }
        }
        self.clear_buddies(group, task.into());
        match self.queue_mut(group).dequeue(task, kind) {
            Dequeued::Yes(entity) => {
                self.t(task).entity = Some(entity);
                self.task_left(task, !delayed_already, sleep);
                if !was_sched_idle && sched_idle_rq(self.m(), cpu) {
                    // What is left gives way to anything: look for that soon.
                    self.c().next_balance = self.m().jiffies();
                }
            }
            Dequeued::Delayed if !delayed_already => self.count_runnable(group, -1),
            Dequeued::Delayed | Dequeued::Absent => {}
        }
    }

    /// Entities whose delayed dequeue has been completed go back to their tasks.
    #[inline]
    pub(crate) fn take_departed(&mut self) {
        self.take_departed_of(GroupId::ROOT);
    }

    /// Entities of `g`'s queue whose delayed dequeue has been completed go back to their tasks.
    #[inline]
    pub(crate) fn take_departed_of(&mut self, g: GroupId) {
        let cpu = self.cpu;
        if self.m().queue(cpu, g).has_departed() {
            self.bring_home_departed(g);
        }
    }

    #[inline(never)]
    fn bring_home_departed(&mut self, g: GroupId) {
        let cpu = self.cpu;
        let mut departed = self.queue_mut(g).take_departed();
        for entity in departed.drain(..) {
            if let Some(group) = entity.id.as_group() {
                self.group_departed(group, entity);
                continue;
            }
            let Some(task) = entity.id.as_task() else { continue };
            // `dequeue_entity` of the delayed one: after a yield, or while another class has the CPU,
            // nobody has brought the queue up to now.
            if self.update_cfs_rq() {
                self.trace_cfs();
                self.cpufreq_update_util();
            }
            // The task's sums end here: until now it was queued but not runnable.
            let group = self.m().task(task).group;
            let now = self.m().cfs_rq_clock_pelt(cpu, group);
            let pelt = self.m().pelt(cpu);
            let m = self.parts();
            let t = &mut m.tasks[task.index()];
            update_load_avg_se(pelt, now, &mut t.avg, t.weight, true, 0, false);
            t.entity = Some(entity);
            if m.groups.on() {
                self.update_level(group);
                self.task_left(task, false, true);
            }
        }
        self.queue_mut(g).keep_room(departed);
    }

    /// `task_tick_fair`.
    pub(crate) fn task_tick_fair(&mut self, curr: TaskId) {
        self.account_anew();
        let group = self.m().task(curr).group;
        self.update_curr(group);
        self.update_load_avg(curr, Join::Stay);
        self.check_preempt_tick(group);
        if self.m().groups.on() {
            self.tick_parents(curr);
        }
        self.task_tick_cache(curr);
        self.util_est_update_running(curr);
        if self.m().does(Step::MisfitAtTick) {
            self.update_misfit_status(Some(curr));
        }
        self.check_update_overutilized();
    }

    /// `update_misfit_status`: does the CPU's fair task need a bigger CPU?
    pub(crate) fn update_misfit_status(&mut self, task: Option<TaskId>) {
        let cpu = self.cpu;
        // Android's EAS of before 4.20 moves such tasks, too.
        let pulled = self.m().rev.has(features::MISFIT) || self.m().root.energy_aware;
        if !self.m().root.asym_cpucap || !pulled {
            return;
        }
        let state = task.map(|task| MisfitTask {
            nr_cpus_allowed: self.m().task(task).nr_cpus_allowed,
            max_allowed_capacity: self.m().task(task).max_allowed_capacity,
            fits: self.m().task_fits(task, cpu) == Fit::Fits,
        });
        let capacity = self.m().cpu(cpu).capacity;
        let h_load = || task.map_or(0, |task| self.m().task_h_load(task));
        let load = update_misfit_status(self.m().rev, true, state, capacity, h_load);
        let Some(load) = load else { return };
        let before = std::mem::replace(&mut self.c().misfit_task_load, load);
        if (before == 0) != (load == 0) {
            self.emit(Event::Misfit { cpu, task: task.filter(|_| load != 0) });
        }
    }

    /// `check_update_overutilized_status`: sets the flag; only load balancing clears it.
    pub(crate) fn check_update_overutilized(&mut self) {
        let cpu = self.cpu;
        if !self.m().root.overutilized && self.m().cpu_overutilized(cpu) {
            self.set_overutilized(true);
        }
    }

    /// Sets the task's PELT state from outside (`start_util`, `start_period_contrib`, a start
    /// image) and, by the difference, its runqueue's, at their new place in the period.
    pub(crate) fn set_signals(
        &mut self,
        task: TaskId,
        util: Option<Util>,
        runnable: Option<Util>,
        contrib: Option<u32>,
    ) {
        let cpu = self.cpu;
        if contrib.is_some() {
            self.update_levels();
        }
        let decay = self.m().decay;
        let m = self.parts();
        let t = &mut m.tasks[task.index()];
        let group = t.group;
        if let Some(contrib) = contrib {
            t.avg.period_contrib = contrib;
            m.c.cfs_avg.avg.period_contrib = contrib;
            self.groups_in_step();
        }
        let m = self.parts();
        let t = &mut m.tasks[task.index()];
        let level = level_avg(m.c, m.groups, cpu, group);
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
        self.trace_task(task);
        self.cpufreq_update_util();
    }
}

impl Rq<'_, '_> {
    /// Gives a task of this CPU, whether it is queued or not, the weight of another nice value
    /// (`reweight_task_fair`, and what `set_user_nice` does around it).
    pub(crate) fn reweight_task_fair(&mut self, task: TaskId, nice: i8, load: LoadWeight) {
        let (rev, cpu) = (self.m().rev, self.cpu);
        let group = self.m().task(task).group;
        let queued = self.m().fair_entity(cpu, task).is_some();
        if queued {
            self.update_rq_clock();
            self.update_curr(group);
            self.update_load_avg(task, Join::Stay);
            self.queue_mut(group).renice(task, load);
            if self.m().groups.on() {
                let weight = self.m().task(task).weight;
                let level = self.level(group);
                level.load = level.load - (weight.0 << 10) + load.scaled();
            }
        }
        let m = self.parts();
        let t = &mut m.tasks[task.index()];
        if let Some(entity) = &mut t.entity {
            entity.reweight(rev, load);
        }
        let old = std::mem::replace(&mut t.weight, load.weight());
        t.nice = nice;
        if t.sched.class() != Class::Fair {
            // The task's load is counted nowhere while it is of another class.
        } else if t.avg.last_update_time.0 != 0 {
            let cfs = level_avg(m.c, m.groups, cpu, group);
            reweight_entity_load_avg(rev, m.decay, cfs, &mut t.avg, old, t.weight);
        } else {
            // Not on any runqueue yet: a new task's load is its weight.
            t.avg.load_avg = t.weight.0;
        }
        if queued && self.m().groups.on() {
            self.refresh_parents(group);
            self.reweight_flat(task);
        }
    }

    /// Ages what a task of another class has left of its time as a fair one, when it comes here
    /// from another CPU, up to where the old queue was updated last.
    pub(crate) fn set_task_rq_fair(&mut self, task: TaskId, from: CpuId) {
        let (to, m) = (self.cpu, self.m());
        let t = m.task(task);
        if t.avg.last_update_time.0 == 0 {
            return;
        }
        let updated = |cpu: CpuId| m.cfs_avg_of(cpu, t.group).avg.last_update_time;
        let (decay, before, after) = (m.decay, updated(from), updated(to));
        let t = self.t(task);
        let changed = update_load_avg_blocked_se(decay, before, &mut t.avg, t.weight);
        t.avg.last_update_time = after;
        if changed {
            self.trace_task(task);
        }
    }
}

impl Rq<'_, '_> {
    /// Ages a sleeping task's load to its runqueue's last update, so that placement sees it.
    pub(crate) fn sync_entity_load_avg(&mut self, task: TaskId) {
        let cpu = self.cpu;
        let m = self.parts();
        let t = &mut m.tasks[task.index()];
        let cfs = level_avg(m.c, m.groups, cpu, t.group);
        risetime_kernel::pelt_cfs::sync_entity_load_avg(m.decay, cfs, &mut t.avg, t.weight);
    }
}
