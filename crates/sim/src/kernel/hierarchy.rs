//! The walk up and down a task's groups (`for_each_sched_entity`).
//!
//! ```text
//!  task ─> ge(/a/b) ─> ge(/a) ─> CPU
//!     enqueue   each level: age, attach ─ runnable count ─ weight (update_cfs_group) ─ queue
//!     dequeue   as far as levels become empty; above that, age and weigh
//!     tick      age, weigh
//!     propagate what joined or left a level goes on to the one above at its next update
//!     pick      up to 7.2 down a queue per level; from 7.3 one queue with every task's h_load
//! ```
//!
//! The task's own level is that of [`crate::kernel::fair`]. Nothing here runs in a workload without groups.
//! Source: kernel/sched/fair.c, symbols named at each function.

use crate::kernel::rq::Rq;
use crate::state::bandwidth::throttles_tasks;
use crate::state::group::level_avg;
use crate::state::hooks::Step;
use crate::state::machine::State;
use risetime_kernel::eevdf::{
    DequeueKind, Dequeued, EnqueueKind, Entity, EntityId, LoadWeight, Wakeup,
};
use risetime_kernel::features;
use risetime_kernel::group::{calc_group_shares, se_weight};
use risetime_kernel::pelt::update_load_avg_se;
use risetime_kernel::pelt_cfs::{
    attach_entity_load_avg, detach_entity_load_avg, propagate_entity_load_avg,
    reweight_entity_load_avg, update_cfs_rq_load_avg,
};
use risetime_kernel::uclamp::UclampRq;
use risetime_kernel::units::{GroupId, TaskId};

impl Rq<'_, '_> {
    /// Adds `by` to the counts of runnable tasks from `g` up: a queued task of `g` is no longer, or
    /// again, runnable (`set_delayed`, `clear_delayed`).
    pub(crate) fn count_runnable(&mut self, g: GroupId, by: i32) {
        if !self.m().groups.on() {
            return;
        }
        let mut at = g;
        loop {
            self.count(at, 0, by);
            if at == GroupId::ROOT || self.m().ends_at_throttled(self.cpu, at) {
                return;
            }
            at = self.m().groups.parent(at);
        }
    }

    /// Ages a level's own signals; true if its averages changed (`update_cfs_rq_load_avg`).
    pub(crate) fn update_level(&mut self, g: GroupId) -> bool {
        let cpu = self.cpu;
        let (now, pelt) = (self.m().cfs_rq_clock_pelt(cpu, g), self.m().pelt(cpu));
        let m = self.parts();
        let rq = m.groups.rq(cpu, g);
        let (load, runnable, running) =
            (se_weight(rq.load), u64::from(rq.h_nr_runnable), rq.running);
        let avg = level_avg(m.c, m.groups, cpu, g);
        update_cfs_rq_load_avg(m.rev, pelt, now, avg, load, runnable, running)
    }

    /// Updates all of the CPU's levels and the entities between them, the inner ones first.
    pub(crate) fn update_levels(&mut self) {
        for g in (1..self.m().groups.list.len() as u32).rev().map(GroupId) {
            if self.update_level(g) {
                self.cfs_rq_util_change(g);
            }
            self.update_load_avg_group(g);
        }
    }

    /// `update_load_avg` of the group's entity on the level above.
    pub(crate) fn update_load_avg_group(&mut self, g: GroupId) {
        let cpu = self.cpu;
        let above = self.m().groups.parent(g);
        let (now, pelt) = (self.m().cfs_rq_clock_pelt(cpu, above), self.m().pelt(cpu));
        let m = self.parts();
        let running = m.groups.rq(cpu, above).running;
        let rq = m.groups.rq_mut(cpu, g);
        let (se, running) = (&mut rq.se, running && rq.running);
        let weight = se_weight(se.load);
        let runnable = if se.on_rq { se.runnable } else { 0 };
        update_load_avg_se(pelt, now, &mut se.avg, weight, se.on_rq, runnable, running);
        let mut changed = self.update_level(above);
        changed |= self.propagate(g);
        if changed {
            self.cfs_rq_util_change(above);
        }
    }

    /// `propagate_entity_load_avg`: what joined or left the group goes on to the level above.
    fn propagate(&mut self, g: GroupId) -> bool {
        let cpu = self.cpu;
        let m = self.m();
        let above = m.groups.parent(g);
        let propagates = m.groups.rq(cpu, g).avg.propagate && m.slots.before.propagates;
        if !propagates || !m.does(Step::Propagate) {
            return false;
        }
        let m = self.parts();
        let (decay, rev) = (m.decay, m.rev);
        // Parents come first in the list.
        let (head, tail) = m.groups.list.split_at_mut(g.index());
        let rq = &mut tail[0].rq[cpu.index()];
        let cfs = if above == GroupId::ROOT {
            m.c.needs_changed();
            &mut m.c.cfs_avg
        } else {
            &mut head[above.index()].rq[cpu.index()].avg
        };
        let (weight, load) = (se_weight(rq.se.load), se_weight(rq.load));
        propagate_entity_load_avg(rev, decay, cfs, &mut rq.se.avg, weight, &mut rq.avg, load)
    }

    /// `update_cfs_group`: the entity's weight follows the group's load on this CPU.
    pub(crate) fn update_cfs_group(&mut self, g: GroupId) {
        let cpu = self.cpu;
        let m = self.m();
        let group = &m.groups.list[g.index()];
        let rq = &group.rq[cpu.index()];
        let frozen = !throttles_tasks(m.rev) && rq.bandwidth.in_throttled_hierarchy();
        if rq.load == 0 || frozen {
            return;
        }
        let cpus = m.cpus.len() as u64;
        let load_avg = rq.avg.avg.load_avg;
        let shares =
            calc_group_shares(m.rev, group.shares, &group.load, &rq.told, rq.load, load_avg, cpus);
        if shares != rq.se.load {
            self.reweight_group(g, shares);
        }
    }

    /// `reweight_entity` of a group's entity.
    fn reweight_group(&mut self, g: GroupId, shares: u64) {
        let cpu = self.cpu;
        let m = self.m();
        let (rev, decay, above) = (m.rev, m.decay, m.groups.parent(g));
        let load = LoadWeight::of_scaled(shares);
        let on_rq = m.groups.rq(cpu, g).se.on_rq;
        if m.groups.nested && on_rq {
            self.queue_mut(above).reweight(g, load);
            self.turn_over_by_then(above);
        }
        let m = self.parts();
        let se = &mut m.groups.rq_mut(cpu, g).se;
        if let Some(entity) = &mut se.entity {
            entity.reweight(rev, load);
        }
        let old = std::mem::replace(&mut se.load, shares);
        if on_rq {
            let level = m.groups.rq_mut(cpu, above);
            level.load = level.load - old + shares;
        }
        let (head, tail) = m.groups.list.split_at_mut(g.index());
        let se = &mut tail[0].rq[cpu.index()].se.avg;
        let cfs = if above == GroupId::ROOT {
            m.c.needs_changed();
            &mut m.c.cfs_avg
        } else {
            &mut head[above.index()].rq[cpu.index()].avg
        };
        reweight_entity_load_avg(rev, decay, cfs, se, se_weight(old), se_weight(shares));
    }

    /// Brings a queued group's entity up to date: ages, counts and weighs it, and sets its slice to
    /// that of its most impatient task.
    fn refresh_group(&mut self, g: GroupId) {
        let cpu = self.cpu;
        if !self.m().groups.nested {
            self.charge(self.m().groups.parent(g));
        }
        self.update_load_avg_group(g);
        self.se_update_runnable(g);
        self.update_cfs_group(g);
        if self.m().groups.nested && self.m().rev.has(features::CFS_RQ_MIN_SLICE) {
            let slice = self.m().groups.rq(cpu, g).cfs.min_slice();
            let above = self.m().groups.parent(g);
            if slice != u64::MAX {
                self.queue_mut(above).set_group_slice(g, slice);
            }
        }
    }

    /// The levels above a task whose weight has changed follow.
    pub(crate) fn refresh_parents(&mut self, g: GroupId) {
        let mut g = g;
        while g != GroupId::ROOT {
            self.refresh_group(g);
            g = self.m().groups.parent(g);
        }
    }

    /// A task, aged and attached, is queued in its group, and what is above it. False if that ends in
    /// a throttled group. Source: fair.c:`enqueue_task_fair`, from 7.3 `enqueue_hierarchy` first.
    pub(crate) fn enqueue_grouped(
        &mut self,
        task: TaskId,
        mut entity: Entity,
        kind: EnqueueKind,
    ) -> bool {
        let cpu = self.cpu;
        let t = self.m().task(task);
        let (g, weight) = (t.group, t.weight.0 << 10);
        if self.m().groups.nested {
            self.queue_mut(g).enqueue(entity, kind);
        }
        self.account_enqueue(g, weight);
        let counted = self.enqueue_parents(g, 1, i32::from(!entity.sched_delayed));
        if !self.m().groups.nested {
            entity.reweight(self.m().rev, self.m().h_weight(cpu, task));
            self.c().cfs.enqueue(entity, kind);
        }
        counted
    }

    /// Counts a task out that has left its queue; `runnable`: it was, until now; `sleeps`: it does
    /// not go elsewhere.
    pub(crate) fn task_left(&mut self, task: TaskId, runnable: bool, sleeps: bool) {
        if !self.m().groups.on() {
            return;
        }
        let t = self.m().task(task);
        let (g, weight) = (t.group, t.weight.0 << 10);
        self.account_dequeue(g, weight);
        self.dequeue_parents(g, 1, i32::from(runnable), sleeps);
    }

    fn se_update_runnable(&mut self, g: GroupId) {
        let rq = self.level(g);
        rq.se.runnable = u64::from(rq.h_nr_runnable);
    }

    /// Counts an entity of weight `load` into a level (`account_entity_enqueue`); the level's load
    /// has been aged before.
    pub(crate) fn account_enqueue(&mut self, g: GroupId, load: u64) {
        let rq = self.level(g);
        rq.load += load;
        rq.nr_queued += 1;
        if rq.nr_queued == 1 && g != GroupId::ROOT {
            self.first_queued(g);
        }
    }

    /// Counts an entity of weight `load` out of a level (`account_entity_dequeue`).
    pub(crate) fn account_dequeue(&mut self, g: GroupId, load: u64) {
        let rq = self.level(g);
        rq.load -= load;
        rq.nr_queued -= 1;
        if rq.nr_queued == 0 && g != GroupId::ROOT {
            self.last_dequeued(g);
        }
    }

    /// The upper part of `enqueue_task_fair`: a task has been queued in `g`, whose entity, and those
    /// above it, are queued as far as they are not. False if that ends in a throttled group (up to
    /// 6.17).
    pub(crate) fn enqueue_parents(&mut self, g: GroupId, queued: i32, runnable: i32) -> bool {
        self.count(g, queued, runnable);
        self.enqueue_upwards(g, queued, runnable)
    }

    /// Queues the entities of all groups above `g`, as far as they are not, and counts the tasks there.
    /// False if that ends in a throttled group (up to 6.17).
    pub(crate) fn enqueue_upwards(&mut self, g: GroupId, queued: i32, runnable: i32) -> bool {
        let cpu = self.cpu;
        let mut g = g;
        while g != GroupId::ROOT {
            if self.m().ends_at_throttled(cpu, g) {
                return false;
            }
            let above = self.m().groups.parent(g);
            if self.m().groups.rq(cpu, g).se.on_rq {
                if self.m().queue(cpu, above).get(g).is_some_and(|e| e.sched_delayed) {
                    self.update_load_avg_group(g);
                    self.queue_mut(above).requeue_delayed(g);
                    self.turn_over_by_then(above);
                }
                self.refresh_group(g);
            } else {
                self.enqueue_group(g);
            }
            g = above;
            self.count(g, queued, runnable);
        }
        true
    }

    /// `enqueue_entity` of a group's entity.
    pub(crate) fn enqueue_group(&mut self, g: GroupId) {
        let above = self.m().groups.parent(g);
        self.update_curr(above);
        self.update_load_avg_group(g);
        self.se_update_runnable(g);
        self.update_cfs_group(g);
        if self.m().groups.nested {
            let rev = self.m().rev;
            let rq = self.level(g);
            let slice = rq.cfs.min_slice();
            if let Some(mut entity) = rq.se.entity.take() {
                if rev.has(features::CFS_RQ_MIN_SLICE) && slice != u64::MAX {
                    (entity.slice, entity.custom_slice) = (slice, true);
                }
                self.queue_mut(above).enqueue(entity, EnqueueKind::Wakeup);
            }
        }
        let se = &mut self.level(g).se;
        se.on_rq = true;
        let load = se.load;
        self.account_enqueue(above, load);
    }

    /// The upper part of `dequeue_entities`: an entity has left the level of `g`, and groups that
    /// are empty by it follow. `queued`, `runnable`: how many tasks go; `sleeps`: where others are left,
    /// one of them should come next. False if that ends in a throttled group (up to 6.17).
    pub(crate) fn dequeue_parents(
        &mut self,
        g: GroupId,
        queued: i32,
        runnable: i32,
        sleeps: bool,
    ) -> bool {
        self.count(g, -queued, -runnable);
        self.dequeue_upwards(g, (queued, runnable), DequeueKind::Sleep, sleeps)
    }

    /// Counts tasks off in all groups above `g`, and dequeues those that are empty by it; `gone`: how many
    /// queued and runnable tasks; `kind`: how emptied groups leave, and a throttled one.
    pub(crate) fn dequeue_upwards(
        &mut self,
        g: GroupId,
        (queued, runnable): (i32, i32),
        kind: DequeueKind,
        sleeps: bool,
    ) -> bool {
        let cpu = self.cpu;
        let mut g = g;
        let throttles = kind == DequeueKind::SleepSpecial;
        let mut empties = true;
        let mut first = true;
        while g != GroupId::ROOT {
            if self.m().ends_at_throttled(cpu, g) {
                return false;
            }
            let above = self.m().groups.parent(g);
            let rq = self.m().groups.rq(cpu, g);
            let (on_rq, emptied) = (rq.se.on_rq, rq.load == 0 || (throttles && first));
            if sleeps && empties && !emptied && self.m().groups.nested {
                self.next_of_group(g);
            }
            empties &= emptied;
            first = false;
            if empties && on_rq {
                empties = self.dequeue_group(g, kind);
            } else if on_rq {
                self.refresh_group(g);
            }
            g = above;
            self.count(g, -queued, -runnable);
        }
        true
    }

    /// `dequeue_entity` of a group's entity; false if it stays, delayed.
    pub(crate) fn dequeue_group(&mut self, g: GroupId, kind: DequeueKind) -> bool {
        let cpu = self.cpu;
        let above = self.m().groups.parent(g);
        self.update_curr(above);
        self.update_load_avg_group(g);
        self.se_update_runnable(g);
        if self.m().groups.nested {
            let delayed = self.m().queue(cpu, above).get(g).is_some_and(|e| e.sched_delayed);
            self.clear_buddies(above, g.into());
            let queue = self.queue_mut(above);
            let left = if delayed && kind == DequeueKind::SleepSpecial {
                queue.finish_delayed(g)
            } else {
                match queue.dequeue(g, kind) {
                    Dequeued::Yes(entity) => Some(entity),
                    Dequeued::Delayed | Dequeued::Absent => None,
                }
            };
            let Some(entity) = left else { return false };
            self.level(g).se.entity = Some(entity);
        }
        let se = &mut self.level(g).se;
        se.on_rq = false;
        let load = se.load;
        self.account_dequeue(above, load);
        true
    }

    /// Completes the accounts of a group whose entity's delayed dequeue a pick has completed;
    /// `entity` is out of the queue of the level above.
    pub(crate) fn group_departed(&mut self, g: GroupId, entity: Entity) {
        let above = self.m().groups.parent(g);
        self.update_load_avg_group(g);
        self.se_update_runnable(g);
        let se = &mut self.level(g).se;
        (se.on_rq, se.entity) = (false, Some(entity));
        let load = se.load;
        self.account_dequeue(above, load);
        self.dequeue_parents(above, 0, 0, true);
    }

    /// The way down to the task to run, a queue per level (`pick_task_fair`, up to 7.2).
    pub(crate) fn pick_nested(&mut self) -> Option<TaskId> {
        let cpu = self.cpu;
        'again: loop {
            let mut g = GroupId::ROOT;
            loop {
                if self.m().queue(cpu, g).curr().is_some() {
                    self.update_curr(g);
                }
                if self.check_cfs_rq_runtime(g) {
                    continue 'again;
                }
                let id = self.queue_mut(g).pick_entity()?;
                if self.m().queue(cpu, g).get(id).is_some_and(|e| e.sched_delayed) {
                    self.queue_mut(g).depart(id);
                    self.take_departed_of(g);
                    continue 'again;
                }
                match id.as_group() {
                    Some(group) => g = group,
                    None => return id.as_task(),
                }
            }
        }
    }

    /// `set_next_task_fair` of a picked task: its queue's running one, and its groups' above it.
    pub(crate) fn set_next_task_fair(&mut self, task: TaskId) {
        let cpu = self.cpu;
        if !self.m().groups.on() {
            self.c().cfs.set_next(task, true);
            return;
        }
        let g = self.m().task(task).group;
        if self.m().groups.nested {
            self.clear_buddies(g, task.into());
            self.queue_mut(g).set_next(task, true);
            self.set_next_parents(g, true);
        } else {
            self.set_next_parents(g, true);
            let load = self.m().h_weight(cpu, task);
            self.c().cfs.set_next_reweighted(task, load);
        }
    }

    /// Gives the CPU to the entities above a task of `g` that gets it, unless they have it already
    /// (`set_next_task_fair`). The task itself is set.
    pub(crate) fn set_next_parents(&mut self, g: GroupId, first: bool) {
        let cpu = self.cpu;
        let mut g = g;
        loop {
            let rq = self.level(g);
            let set = std::mem::replace(&mut rq.running, true);
            self.bandwidth_set_next(g, set);
            if g == GroupId::ROOT {
                return;
            }
            let above = self.m().groups.parent(g);
            if !self.m().groups.rq(cpu, above).running {
                self.update_load_avg_group(g);
                if self.m().groups.nested {
                    self.clear_buddies(above, g.into());
                    self.queue_mut(above).set_next(g, first);
                }
            }
            g = above;
        }
    }

    /// The task that ran in `g` has left the CPU for one of `next` (or for none): so do the entities
    /// above it that the two do not share (`put_prev_task_fair`). The task itself has been put.
    pub(crate) fn put_prev_parents(&mut self, g: GroupId, next: Option<GroupId>) {
        let cpu = self.cpu;
        let mut g = g;
        loop {
            if !self.m().groups.rq(cpu, g).running {
                return;
            }
            let shared = next.is_some_and(|next| self.m().groups.holds(g, next));
            if g != GroupId::ROOT && !shared {
                let above = self.m().groups.parent(g);
                if self.m().groups.rq(cpu, g).se.on_rq {
                    self.update_curr(above);
                }
                self.check_cfs_rq_runtime(above);
                if self.m().groups.rq(cpu, g).se.on_rq {
                    self.update_load_avg_group(g);
                }
                let queue = self.m().queue(cpu, above);
                if self.m().groups.nested
                    && queue.curr().is_some_and(|e| e.id.as_group() == Some(g))
                {
                    self.queue_mut(above).put_prev();
                }
            }
            self.level(g).running = false;
            if g == GroupId::ROOT || shared {
                return;
            }
            g = self.m().groups.parent(g);
        }
    }

    /// The upper part of `task_tick_fair`: every level is aged and weighed, and on each the turn may be
    /// over.
    pub(crate) fn tick_parents(&mut self, task: TaskId) {
        let mut g = self.m().task(task).group;
        while g != GroupId::ROOT {
            let above = self.m().groups.parent(g);
            self.update_curr(above);
            self.update_load_avg_group(g);
            self.update_cfs_group(g);
            if self.m().groups.nested {
                self.check_preempt_tick(above);
            }
            g = above;
        }
        self.reweight_flat(task);
    }

    /// Updates the queued task's weight in the flat queue to its groups' (`reweight_eevdf`, from
    /// 7.3).
    pub(crate) fn reweight_flat(&mut self, task: TaskId) {
        let cpu = self.cpu;
        if !self.m().groups.on() || self.m().groups.nested {
            return;
        }
        let load = self.m().h_weight(cpu, task);
        let cfs = &mut self.c().cfs;
        if cfs.get(task).is_some_and(|e| e.load != load) {
            cfs.reweight(task, load);
            self.turn_over_by_then(GroupId::ROOT);
        }
    }

    /// Whether the woken task preempts the running one, on the level at which they compete
    /// (`find_matching_se`); not where a throttled group keeps it off that level.
    pub(crate) fn preempts_nested(&mut self, curr: TaskId, woken: TaskId, wakeup: &Wakeup) -> bool {
        let cpu = self.cpu;
        let (running, group) = (self.m().task(curr).group, self.m().task(woken).group);
        let mut level = group;
        let mut id = EntityId::from(woken);
        while !self.m().groups.holds(level, running) {
            id = level.into();
            level = self.m().groups.parent(level);
        }
        if self.m().queue(cpu, level).get(id).is_none() {
            return false;
        }
        let preempts = self.queue_mut(level).wakeup_preempt_by(id, wakeup);
        self.after_wakeup_check(level, preempts);
        if preempts {
            self.buddies_above(level, id);
        }
        self.take_departed_of(level);
        preempts
    }

    /// `__update_blocked_fair`: what sleeping tasks left in groups is aged, the innermost first.
    pub(crate) fn update_blocked_groups(&mut self) {
        let cpu = self.cpu;
        for g in (1..self.m().groups.list.len() as u32).rev().map(GroupId) {
            if self.update_level(g) {
                self.cfs_rq_util_change(g);
            }
            let rq = self.m().groups.rq(cpu, g);
            let (avg, pending) = (&rq.se.avg, rq.avg.propagate);
            if avg.load_avg != 0 || avg.util_avg.0 != 0 || pending {
                self.update_load_avg_group(g);
            }
        }
    }

    /// Propagates what joined or left the level of `g` up to the CPU (`propagate_entity_cfs_rq`).
    fn propagate_all(&mut self, g: GroupId) {
        let mut g = g;
        while g != GroupId::ROOT {
            self.update_load_avg_group(g);
            g = self.m().groups.parent(g);
        }
    }
}

impl Rq<'_, '_> {
    /// `sched_move_task` as far as the fair class and clamps are concerned.
    pub(crate) fn sched_move_task(&mut self, task: TaskId, to: GroupId) {
        let (from, cpu) = (self.m().task(task).group, self.cpu);
        if from == to {
            return;
        }
        if self.m().task(task).state == State::New {
            self.t(task).moves_to = Some(to);
            return;
        }
        let limits = self.m().limits_of(to);
        let served = self.m().groups.served_by(to);
        (self.t(task).limits, self.t(task).sched.served) = (limits, served);
        if !self.m().is_fair(task) {
            // Only its clamps depend on the group, until it is fair again.
            self.t(task).group = to;
            return self.uclamp(task, UclampRq::uclamp_rq_reinc);
        }
        self.update_rq_clock();
        let queued = self.m().fair_entity(cpu, task).is_some();
        let running = self.m().cpu(cpu).curr == Some(task);
        if queued {
            self.dequeue_task_fair(task, DequeueKind::Save);
        }
        if running {
            self.put_prev_parents(from, None);
        }
        let (rev, decay) = (self.m().rev, self.m().decay);
        if self.m().task(task).avg.last_update_time.0 != 0 {
            let m = self.parts();
            let t = &mut m.tasks[task.index()];
            let cfs = level_avg(m.c, m.groups, cpu, from);
            detach_entity_load_avg(rev, decay, cfs, &t.avg, t.weight);
            self.cfs_rq_util_change(from);
            self.propagate_all(from);
        }
        self.t(task).group = to;
        self.update_level(to);
        let m = self.parts();
        let t = &mut m.tasks[task.index()];
        let cfs = level_avg(m.c, m.groups, cpu, to);
        attach_entity_load_avg(rev, decay, cfs, &mut t.avg, t.weight);
        self.cfs_rq_util_change(to);
        self.propagate_all(to);
        self.uclamp(task, UclampRq::uclamp_rq_reinc);
        if queued {
            self.enqueue_task_fair(task, EnqueueKind::Restore, false);
        }
        if running && queued {
            self.queue_mut(to).set_next(task, false);
            self.set_next_parents(to, false);
            self.resched_curr();
        }
    }
}
