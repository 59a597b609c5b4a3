//! The parts of CFS (up to 6.5) that span more than one queue: new tasks, moves, and the levels of
//! groups.
//!
//! ```text
//!  fork     the child's vruntime is found on its parent's queue, relative to min_vruntime
//!  move     a sleeping task's vruntime becomes relative to the queue that it slept on
//!  slice    period · Π over levels, from the task up: weight / Σ weights
//!  buddies  next, last, skip are set on all levels from where the two compete upwards, and an
//!           entity that stops being one stops its groups from being one as far as they go together
//! ```
//!
//! The thread that creates the workload's tasks runs on their first CPU but is no task (unless a
//! trace is replayed): for the first vruntime of a task it counts as one of nice 0 at min_vruntime.
//! From 6.6 on only the next buddies of groups are left. Arithmetic: [`risetime_kernel::cfs`].
//! Source: kernel/sched/fair.c of 6.1, symbols named at each function.

use crate::kernel::rq::Rq;
use crate::state::bandwidth::throttles_tasks;
use crate::state::hooks::Point;
use crate::state::hooks::Step;
use crate::state::machine::Machine;
use risetime_kernel::cfs_rq::is_cfs;
use risetime_kernel::eevdf::{BuddyOf, Entity, EntityId, LoadWeight};
use risetime_kernel::switches::Switch;
use risetime_kernel::units::{CpuId, GroupId, TaskId};
use risetime_kernel::weight::NICE_0_LOAD;

impl Machine {
    /// The time that `entity` of the level of `g` may run in one go, in ns; `joins`: it is not
    /// queued yet, and (true) an entity of nice 0 that is no task joins with it. Source:
    /// fair.c:`sched_slice`.
    fn sched_slice(&self, cpu: CpuId, g: GroupId, entity: &Entity, joins: Option<bool>) -> u64 {
        let Some(rq) = self.queue(cpu, g).as_cfs() else { return 0 };
        let (nr, weight) = match joins {
            None => (0, 0),
            Some(beside) => {
                let more = if beside { NICE_0_LOAD } else { 0 };
                (1 + usize::from(beside), entity.load.scaled() + more)
            }
        };
        let period = rq.period_of(self.cpu(cpu).h_nr_queued(), nr);
        let mut slice = rq.slice_part(period, &entity.load, weight);
        let mut at = g;
        while at != GroupId::ROOT {
            let (above, se) = (self.groups.parent(at), &self.groups.rq(cpu, at).se);
            let load = LoadWeight::of_scaled(se.load);
            let joins = if se.on_rq { 0 } else { se.load };
            if let Some(rq) = self.queue(cpu, above).as_cfs() {
                slice = rq.slice_part(slice, &load, joins);
            }
            at = above;
        }
        rq.slice_at_least(slice, entity)
    }

    /// Whether the queued `task` is one that its CPU prefers, so that it is not taken away as long as
    /// `dst` has other work (`CACHE_HOT_BUDDY` in `task_hot`).
    pub(crate) fn cache_hot_buddy(&self, src: CpuId, task: TaskId, dst: CpuId) -> bool {
        let buddy = |of: BuddyOf| of.next || of.last;
        self.cpu(dst).nr_running() > 0
            && self.slots.switches.on(Switch::CacheHotBuddy)
            && buddy(self.queue(src, self.task(task).group).buddy_of(task))
    }
}

impl Rq<'_, '_> {
    /// `task_fork_fair`: where the new `task` of a parent on `cpu` will begin, on whichever CPU.
    pub(crate) fn task_fork_fair(&mut self, task: TaskId) {
        let cpu = self.cpu;
        if !is_cfs(self.m().rev) || !self.m().is_fair(task) {
            return;
        }
        self.update_rq_clock();
        let g = self.m().task(task).group;
        self.update_curr(g);
        let own = self.m().is_fork(task) || self.m().creator.is_some();
        let Some(mut entity) = self.t(task).entity.take() else { return };
        let slice = self.m().sched_slice(cpu, g, &entity, Some(!own));
        if let Some(rq) = self.m().queue(cpu, g).as_cfs() {
            let parent = rq.curr().filter(|_| own).map(|curr| curr.vruntime);
            rq.task_fork(&mut entity, parent, slice);
        }
        self.t(task).entity = Some(entity);
    }

    /// `check_preempt_tick` on the level of `g`, whose running entity has been accounted.
    pub(crate) fn check_preempt_tick(&mut self, g: GroupId) {
        let cpu = self.cpu;
        if !is_cfs(self.m().rev) {
            return;
        }
        let Some(curr) = self.m().queue(cpu, g).curr().copied() else { return };
        let slice = self.m().sched_slice(cpu, g, &curr, None);
        let Some(rq) = self.queue_mut(g).as_cfs_mut() else { return };
        let was = rq.buddy_of(curr.id);
        rq.check_preempt_tick(slice);
        let (over, is) = (rq.need_resched(), rq.buddy_of(curr.id));
        rq.clear_need_resched();
        if was != is {
            self.clear_buddies_above(g, was);
        }
        if over && self.m().may_end_turn(cpu) {
            self.resched_curr();
        }
    }

    /// A wakeup preempts on the level of `g`, where `woken` competes: on those above, the groups that
    /// hold both are preferred, too (`set_next_buddy`, `set_last_buddy`).
    pub(crate) fn buddies_above(&mut self, g: GroupId, woken: EntityId) {
        let cpu = self.cpu;
        let Some(rq) = self.m().queue(cpu, g).as_cfs() else { return };
        let next = rq.buddy_of(woken).next;
        let last = rq.curr().is_some_and(|curr| rq.buddy_of(curr.id).last);
        let mut at = g;
        while at != GroupId::ROOT {
            let above = self.m().groups.parent(at);
            if let Some(rq) = self.queue_mut(above).as_cfs_mut() {
                if next {
                    rq.set_next_buddy(at);
                }
                if last {
                    rq.set_last_buddy(at);
                }
            }
            at = above;
        }
    }

    /// Makes the next buddies of `g` and the groups above it: a task of the level has fallen asleep
    /// and others of its group are queued, so one of them comes next, if that is fair
    /// (`set_next_buddy`; nobody looks from 6.6 to 6.11).
    pub(crate) fn next_of_group(&mut self, g: GroupId) {
        let cpu = self.cpu;
        if self.m().throttled_hierarchy(cpu, g) && !throttles_tasks(self.m().rev)
            || !self.m().does(Step::NextBuddyOfGroup)
        {
            return;
        }
        let mut at = g;
        while at != GroupId::ROOT && self.m().groups.rq(cpu, at).se.on_rq {
            let above = self.m().groups.parent(at);
            let queue = self.queue_mut(above);
            queue.set_next_buddy(at);
            if !queue.buddy_of(at).next {
                // An idle one: nor are those above it.
                return;
            }
            at = above;
        }
    }

    /// The running entity of the level of `g`, its turn over, is nobody's buddy.
    pub(crate) fn clear_buddies_of_curr(&mut self, g: GroupId) {
        let cpu = self.cpu;
        if let Some(curr) = self.m().queue(cpu, g).curr().map(|curr| curr.id) {
            self.clear_buddies(g, curr);
        }
    }

    /// `clear_buddies` of `id`, which is queued on the level of `g`.
    pub(crate) fn clear_buddies(&mut self, g: GroupId, id: EntityId) {
        if !self.m().groups.nested {
            return;
        }
        let rq = self.queue_mut(g);
        let was = rq.buddy_of(id);
        if was.any() {
            rq.clear_buddy(id, was);
            self.clear_buddies_above(g, was);
        }
    }

    /// The groups from `g` up are no longer the buddies that `of` says, as far as all of them are.
    fn clear_buddies_above(&mut self, g: GroupId, of: BuddyOf) {
        let (mut at, mut of) = (g, of);
        while at != GroupId::ROOT && of.any() {
            let above = self.m().groups.parent(at);
            let rq = self.queue_mut(above);
            let is = rq.buddy_of(at);
            of = BuddyOf {
                last: of.last && is.last,
                next: of.next && is.next,
                skip: of.skip && is.skip,
            };
            rq.clear_buddy(at, of);
            at = above;
        }
    }

    /// `yield_task_fair` of the running `task`: on every level others go first, once.
    pub(crate) fn yield_grouped(&mut self, task: TaskId) {
        let g = self.m().task(task).group;
        self.clear_buddies(g, task.into());
        self.update_curr(g);
        let (mut at, mut id) = (g, EntityId::from(task));
        loop {
            if let Some(rq) = self.queue_mut(at).as_cfs_mut() {
                rq.set_skip_buddy(id);
            }
            if at == GroupId::ROOT {
                return;
            }
            id = at.into();
            at = self.m().groups.parent(at);
        }
    }
}

impl Rq<'_, '_> {
    /// `migrate_task_rq_fair` of a task that has slept here and will wake elsewhere.
    pub(crate) fn migrate_vruntime(&mut self, task: TaskId) {
        if !is_cfs(self.m().rev) {
            return;
        }
        let (cpu, g) = (self.cpu, self.m().task(task).group);
        let Some(mut entity) = self.t(task).entity.take() else { return };
        if let Some(rq) = self.m().queue(cpu, g).as_cfs() {
            rq.migrate_asleep(&mut entity);
        }
        self.t(task).entity = Some(entity);
    }
}

impl Machine {
    /// Whether the running task's turn, which is over, ends.
    #[inline]
    pub(crate) fn may_end_turn(&self, cpu: CpuId) -> bool {
        let curr = || self.cpu(cpu).curr.unwrap_or(TaskId(u32::MAX));
        !self.hooked() || self.yes(Point::TickPreempt { cpu, curr: curr() }, true)
    }
}

impl Rq<'_, '_> {
    /// `resched_curr` of a fair entity whose turn the accounting of its time has found over.
    #[inline]
    pub(crate) fn turn_over(&mut self, g: GroupId) {
        let cpu = self.cpu;
        self.queue_mut(g).clear_need_resched();
        if !self.m().may_end_turn(cpu) {
            return;
        }
        self.resched_curr_lazy();
        if self.m().groups.nested {
            self.clear_buddies_of_curr(g);
        }
    }

    /// [`Self::turn_over`], if the queue of this level has found by its own accounting that a turn is over.
    pub(crate) fn turn_over_by_then(&mut self, g: GroupId) {
        let cpu = self.cpu;
        if self.m().queue(cpu, g).need_resched() {
            self.turn_over(g);
        }
    }

    /// Settles the reschedule request of this level after a wakeup's check: where the check does
    /// not preempt, its accounting may still have found the turn over. (The preempted entity stays
    /// the buddy that it is.)
    pub(crate) fn after_wakeup_check(&mut self, g: GroupId, preempts: bool) {
        if preempts {
            self.queue_mut(g).clear_need_resched();
        } else {
            self.turn_over_by_then(g);
        }
    }
}
