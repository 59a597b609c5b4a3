//! Tasks go from one CPU to another: queued or running ones, sleeping ones, and those in the limbo
//! of a throttled group.
//!
//! ```text
//! balancing, push, pull, affinity   detach from one queue ─> attach to another
//! a wakeup elsewhere                the old queue forgets its load at the next update
//! ```
//!
//! Source: kernel/sched/core.c:move_queued_task; kernel/sched/fair.c:detach_task, attach_task,
//! migrate_task_rq_fair.

use crate::kernel::Kernel;
use crate::kernel::fair::Join;
use crate::kernel::rq::{Parts, Rq};
use crate::state::group::level_avg;
use crate::state::hooks::Step;
use crate::state::tracker::Heard;
use crate::time::cost;
use risetime_kernel::eevdf::{DequeueKind, EnqueueKind};
use risetime_kernel::pelt_cfs::{migrate_se_pelt_lag, remove_entity_load_avg};
use risetime_kernel::uclamp::UclampRq;
use risetime_kernel::units::{CpuId, TaskId, Util};
use risetime_trace::{Event, SwitchOut, Why};

impl Kernel<'_> {
    /// Takes a queued or running task to another CPU (`move_queued_task`, and what the stopper
    /// does in active balance).
    pub(crate) fn move_queued(&mut self, task: TaskId, from: CpuId, to: CpuId, why: Why) {
        self.rq(from).detach(task, to, why);
        self.rq(to).attach(task, from);
    }
}

impl Rq<'_, '_> {
    // ------------------------------------------------------------------ from one CPU to another

    /// Takes a queued or running task, or one in limbo, off this CPU for its move to another one.
    pub(crate) fn detach(&mut self, task: TaskId, to: CpuId, why: Why) {
        match self.m().task(task).throttled {
            true => self.detach_throttled(task, to, why),
            false => self.detach_task(task, to, why),
        }
    }

    /// Queues `task`, which left CPU `from`, here: the second half of a migration.
    pub(crate) fn attach(&mut self, task: TaskId, from: CpuId) {
        match self.m().task(task).throttled {
            true => self.attach_throttled(task),
            false => self.attach_task(task, from),
        }
    }

    /// `detach_task`: a queued or running task leaves for another CPU.
    fn detach_task(&mut self, task: TaskId, to: CpuId, why: Why) {
        let from = self.cpu;
        self.update_rq_clock();
        let running = self.m().cpu(from).curr == Some(task);
        if running {
            self.tell_progress();
        }
        self.deactivate(task, DequeueKind::Migrate);
        if running {
            // The task leaves the CPU runnable: the stopper has taken its place.
            if self.m().groups.on() {
                let group = self.m().task(task).group;
                self.put_prev_parents(group, None);
            }
            self.cool_down(task);
            let (now, c) = (self.m().now, self.c());
            c.curr = None;
            c.idle_time.begins(now);
            self.counts_cycles(false);
            self.track(Heard::Switch { cpu: from, prev: Some(task), next: None });
            self.core_shared();
            self.c().work_gen += 1;
            let prev = Some((task, SwitchOut::Preempted));
            self.emit(Event::Switch { cpu: from, prev, next: None });
            self.set_need_resched();
        }
        let forgets = !self.m().does(Step::SignalsMigrate);
        let fair = self.m().is_fair(task);
        let t = self.t(task);
        if fair {
            t.avg.last_update_time.0 = 0;
        }
        if forgets {
            (t.avg.util_avg, t.avg.util_sum) = (Util(0), 0);
        }
        t.cpu = to;
        if fair {
            self.track(Heard::Migrate { task, from, to });
        }
        self.emit(Event::Migrate { task, from, to, why });
    }

    /// `attach_task`.
    fn attach_task(&mut self, task: TaskId, from: CpuId) {
        if !self.m().is_fair(task) {
            self.set_task_rq_fair(task, from);
        }
        self.update_rq_clock();
        self.activate(task, EnqueueKind::Migrated, false);
        self.wakeup_preempt(task, false);
    }

    /// Takes a task in limbo off this CPU for its move to another one (`dequeue_throttled_task`).
    fn detach_throttled(&mut self, task: TaskId, to: CpuId, why: Why) {
        let (from, g) = (self.cpu, self.m().task(task).group);
        self.level(g).bandwidth.limbo.retain(|t| *t != task);
        self.update_rq_clock();
        self.update_load_avg(task, Join::Detach);
        self.uclamp(task, |rq, task, _| rq.uclamp_rq_dec(task));
        let t = self.t(task);
        t.avg.last_update_time.0 = 0;
        t.cpu = to;
        self.emit(Event::Migrate { task, from, to, why });
    }

    /// Puts a migrated, throttled task into limbo here, or onto the queue
    /// where its group has quota (`enqueue_throttled_task`).
    fn attach_throttled(&mut self, task: TaskId) {
        let g = self.m().task(task).group;
        self.update_rq_clock();
        if self.level(g).bandwidth.in_throttled_hierarchy() {
            self.uclamp(task, UclampRq::uclamp_rq_inc);
            self.level(g).bandwidth.limbo.push(task);
        } else {
            self.t(task).throttled = false;
            self.activate(task, EnqueueKind::Migrated, false);
            self.wakeup_preempt(task, false);
        }
    }

    /// A task that another trace moves waits in limbo here, if throttled by some µs more: it goes on.
    pub(crate) fn leave_limbo(&mut self, task: TaskId) {
        let g = self.m().task(task).group;
        if !std::mem::take(&mut self.t(task).throttled) {
            return;
        }
        self.level(g).bandwidth.limbo.retain(|t| *t != task);
        self.update_rq_clock();
        self.enqueue_task_fair(task, EnqueueKind::Wakeup, true);
    }

    /// Moves a sleeping task; its load is taken off its old runqueue, this one, at the next update
    /// (`migrate_task_rq_fair`).
    pub(crate) fn migrate_task_rq(&mut self, task: TaskId, to: CpuId, why: Why) {
        let from = self.cpu;
        if !self.m().is_fair(task) {
            self.migrate_task_rq_dl(task);
            self.migrate_task_rq_overcommit(task);
            self.t(task).cpu = to;
            return self.emit(Event::Migrate { task, from, to, why });
        }
        self.migrate_vruntime(task);
        let now = self.m().sched_clock();
        let Parts { c, tasks, groups, series, decay, .. } = self.parts();
        let t = &mut tasks[task.index()];
        let (clock, idle) = (c.clock, c.curr.is_none());
        let cfs = level_avg(c, groups, from, t.group);
        remove_entity_load_avg(decay, cfs, &mut t.avg, t.weight);
        migrate_se_pelt_lag(decay, cfs, &clock, idle, now, &mut t.avg, t.weight);
        if series.tracks_waiting() {
            t.slots.series.waiting.catch_up(decay, &t.avg);
        }
        t.avg.last_update_time.0 = 0;
        t.cpu = to;
        self.track(Heard::Migrate { task, from, to });
        self.emit(Event::Migrate { task, from, to, why });
    }

    /// Lets the caches of `task` cool down, since another task will run.
    pub(super) fn cool_down(&mut self, task: TaskId) {
        if cost::switches(&self.m().costs) {
            let m = self.parts();
            cost::cool_down(m.c, &mut m.tasks[task.index()], m.now);
        }
    }
}
