//! EEVDF: which of the fair tasks of one CPU runs, and for how long.
//!
//! Models one flat `cfs_rq` of tasks: enqueue, dequeue (delayed, too), placement by lag, pick
//! of the earliest eligible virtual deadline, slice protection, wakeup preemption, new weights
//! and slices. Four generations, bit for bit:
//!
//! ```text
//! 6.6 – 6.11   lag, eligibility, RUN_TO_PARITY as "vlag == deadline"; one slice for all
//! 6.12 – 7.1   + delayed dequeue, DELAY_ZERO, slices per task, PREEMPT_SHORT, relative deadlines
//! 7.2          + protection up to vprot, lag bounded by the longest slice, full weights in V
//! 7.3          + a shorter slice in the queue protects up to where the running one is no longer
//!                eligible; a woken one that is shorter and eligible comes next, whoever is picked
//!
//! pick = running entity while protected and eligible,
//!        else argmin deadline over { i : v_i <= V }     (average.rs has V, lag and placement)
//! ```
//!
//! A group one of whose tasks falls asleep while others are queued is the next to be picked, as long as
//! it is eligible (`PICK_BUDDY`, 6.12 – 7.2): the caller says so, level by level.
//!
//! Left out: bandwidth, the wakeup-sync hint that only acts on buddies, HRTICK, NUMA and
//! cache affinity. Load averages are kept by the caller.
//! Checked against the C of 6.12 and 7.2; the forms of 6.6 – 6.11 and of 7.3 are not (the latter
//! against a running kernel: `risetime verify`).
//! Source: kernel/sched/fair.c.

mod average;
mod control;
mod entity;
mod settings;
#[cfg(test)]
mod tests;
pub(crate) mod timeline;

use alloc::vec::Vec;

pub use entity::{
    BuddyOf, DequeueKind, Dequeued, EnqueueKind, Entity, EntityId, FairPolicy, Place, Wakeup,
};
pub use settings::{Features, Tunables};

pub use crate::weight::LoadWeight;
use timeline::{Timeline, before};

use crate::units::Weight;
use crate::{KernelRev, features};

/// Value of v0 of a new runqueue, so that wrapping is met early (`init_cfs_rq`).
const INITIAL_VRUNTIME: u64 = 0u64.wrapping_sub(1 << 20);

/// The fair runqueue of one CPU (`struct cfs_rq`).
///
/// Set the clock with [`CfsRq::update_clock`] before any other call at a new time, as the
/// kernel does with `update_rq_clock`. A task that is dequeued while running is no longer
/// current.
///
/// In memory in this order: how many are queued stands together.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct CfsRq {
    /// The running entity is not in the tree.
    curr: Option<Entity>,
    nr_delayed: usize,
    timeline: Timeline,
    clock_task: u64,
    /// v0 of average.rs: `zero_vruntime`; until 6.11 `min_vruntime`.
    zero_vruntime: u64,
    /// Σ w_i (v_i − v0) over the tree: `sum_w_vruntime`, before 7.2 `avg_vruntime`.
    sum_w_vruntime: i64,
    /// Σ w_i over the tree: `sum_weight`, before 7.2 `avg_load`.
    sum_weight: i64,
    /// The entity that should run next where that is not unfair (`cfs_rq::next`): from 7.3 the one
    /// that a wakeup has put first; before, in queues of groups, the one whose task has fallen
    /// asleep.
    next: Option<EntityId>,
    need_resched: bool,
    features: Features,
    rev: KernelRev,
    /// The release whose `calc_delta_fair` is used.
    delta_rev: KernelRev,
    tunables: Tunables,
    departed: Vec<Entity>,
}

impl CfsRq {
    /// An empty runqueue.
    pub fn new(rev: KernelRev, features: Features, tunables: Tunables) -> CfsRq {
        CfsRq {
            rev,
            delta_rev: if features.inverse_weights { KernelRev::OLDEST } else { rev },
            features,
            tunables,
            clock_task: 0,
            zero_vruntime: INITIAL_VRUNTIME,
            sum_w_vruntime: 0,
            sum_weight: 0,
            curr: None,
            timeline: Timeline::new(),
            nr_delayed: 0,
            next: None,
            need_resched: false,
            departed: Vec::new(),
        }
    }

    /// Changes the switches, as `/sys/kernel/debug/sched/features` does.
    pub fn set_features(&mut self, change: impl FnOnce(&mut Features)) {
        change(&mut self.features);
    }

    /// The kernel it behaves like.
    pub fn rev(&self) -> KernelRev {
        self.rev
    }

    /// Sets the task clock (`rq_clock_task`: time less interrupts), in ns.
    #[inline]
    pub fn update_clock(&mut self, clock_task_ns: u64) {
        self.clock_task = clock_task_ns;
    }

    /// Entities queued, running and delayed ones included (`nr_queued`, `nr_running`).
    #[inline]
    pub fn nr_queued(&self) -> usize {
        self.timeline.len() + usize::from(self.curr.is_some())
    }

    /// Entities that want to run: without the delayed ones (`h_nr_runnable`).
    #[inline]
    pub fn nr_runnable(&self) -> usize {
        self.nr_queued() - self.nr_delayed
    }

    /// The running entity.
    #[inline]
    pub fn curr(&self) -> Option<&Entity> {
        self.curr.as_ref()
    }

    /// The entity of `id` if it is queued here, running or not.
    pub fn get(&self, id: impl Into<EntityId>) -> Option<&Entity> {
        let id = id.into();
        self.curr.as_ref().filter(|curr| curr.id == id).or_else(|| self.timeline.get(id))
    }

    pub(crate) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Iterates over all queued entities: the running one, then the others by task number.
    pub fn iter(&self) -> impl Iterator<Item = &Entity> {
        self.curr.iter().chain(self.timeline.iter())
    }

    /// The sum of the queued entities' weights, delayed ones included (`cfs_rq::load`).
    pub fn load_weight(&self) -> Weight {
        let curr = self.curr.as_ref().map_or(Weight(0), Entity::weight);
        self.tree_weight() + curr
    }

    /// Whether the running entity should be replaced (`TIF_NEED_RESCHED`). Set by
    /// [`CfsRq::update_curr`] and [`CfsRq::wakeup_preempt`], cleared by [`CfsRq::schedule`].
    #[inline]
    pub fn need_resched(&self) -> bool {
        self.need_resched
    }

    /// Clears the request to reschedule, for callers that do not use [`CfsRq::schedule`].
    pub fn clear_need_resched(&mut self) {
        self.need_resched = false;
    }

    /// Entities whose delayed dequeue a pick (or, in 7.2, a wakeup's preemption check) has
    /// completed since the last call: they now sleep.
    #[inline]
    pub fn take_departed(&mut self) -> Vec<Entity> {
        core::mem::take(&mut self.departed)
    }

    /// Takes back what [`CfsRq::take_departed`] gave, emptied, so that the next ones need no new room.
    pub fn keep_room(&mut self, emptied: Vec<Entity>) {
        if self.departed.capacity() == 0 {
            self.departed = emptied;
        }
    }

    /// Whether [`CfsRq::take_departed`] would give any.
    #[inline]
    pub fn has_departed(&self) -> bool {
        !self.departed.is_empty()
    }

    /// Whether `id` has had no more service than it ought to; false if it is not queued.
    pub fn entity_eligible(&self, id: impl Into<EntityId>) -> bool {
        let id = id.into();
        self.get(id).is_some_and(|entity| self.eligibility().of(entity.vruntime))
    }

    /// The lag of `id`, bounded, in virtual ns; `None` if it is not queued.
    pub fn entity_lag(&self, id: impl Into<EntityId>) -> Option<i64> {
        let id = id.into();
        self.get(id).map(|entity| self.bounded_lag(self.avg_vruntime(), entity))
    }

    /// Whether the running entity is within the part of its slice that no wakeup of an equal
    /// cuts short (`protect_slice`).
    pub fn curr_protected(&self) -> bool {
        self.curr.as_ref().is_some_and(|curr| self.protected(curr))
    }

    #[inline]
    fn protected(&self, entity: &Entity) -> bool {
        if self.rev.has(features::VPROT) {
            before(entity.vruntime, entity.vprot)
        } else {
            entity.vlag as u64 == entity.deadline
        }
    }

    /// The shortest slice in the queue, the running entity's included; `u64::MAX` if it is empty
    /// (`cfs_rq_min_slice`).
    pub fn min_slice(&self) -> u64 {
        let curr = self.curr.as_ref().map_or(u64::MAX, |curr| curr.slice);
        curr.min(self.timeline.min_slice())
    }

    fn max_slice(&self) -> u64 {
        let curr = self.curr.as_ref().map_or(0, |curr| curr.slice);
        curr.max(self.timeline.max_slice())
    }

    /// Accounts the running entity's time up to the clock; true if it should be replaced
    /// because its slice, or its protection, has run out while others are queued.
    /// Source: fair.c:`update_curr`.
    pub fn update_curr(&mut self) -> bool {
        let Some(curr) = &mut self.curr else {
            return false;
        };
        let ran = self.clock_task.wrapping_sub(curr.exec_start);
        if ran as i64 <= 0 {
            return false;
        }
        curr.exec_start = self.clock_task;
        curr.delta_exec = ran;
        curr.sum_exec_runtime = curr.sum_exec_runtime.wrapping_add(ran);
        curr.vruntime = curr.vruntime.wrapping_add(curr.load.calc_delta_fair(self.delta_rev, ran));
        let served = self.update_deadline();
        self.update_min_vruntime_pre_6_12();
        if self.timeline.is_empty() {
            return false;
        }
        let resched = served || self.unprotected();
        if resched {
            self.need_resched = true;
            self.clear_buddies(self.curr.as_ref().map(|curr| curr.id));
        }
        resched
    }

    /// Makes the queued `id`, unless it is idle, the one to run next, as far as it is eligible.
    /// Source: fair.c:`set_next_buddy`; before 6.12, when there was no `PICK_BUDDY`, nobody looks unless `NEXT_BUDDY` is on.
    pub fn set_next_buddy(&mut self, id: impl Into<EntityId>) {
        let id = id.into();
        let wanted = |entity: &Entity| entity.policy != FairPolicy::Idle && !entity.sched_delayed;
        let looked_at = match self.rev.has(features::PICK_BUDDY) {
            true => self.features.pick_buddy,
            false => self.features.next_buddy,
        };
        if looked_at && self.get(id).is_some_and(wanted) {
            self.next = Some(id);
        }
    }

    /// Tells as which buddies this queue holds `id`: as `next`, or as none.
    pub fn buddy_of(&self, id: impl Into<EntityId>) -> BuddyOf {
        BuddyOf { next: self.next == Some(id.into()), ..BuddyOf::default() }
    }

    /// `id` is no longer what it is and `of` names.
    pub fn clear_buddy(&mut self, id: impl Into<EntityId>, of: BuddyOf) {
        if of.next {
            self.clear_buddies(Some(id.into()));
        }
    }

    /// `id` is no longer the one that should run next (`clear_buddies`); on the levels above the caller
    /// sees to it.
    fn clear_buddies(&mut self, id: Option<EntityId>) {
        self.next = self.next.filter(|next| Some(*next) != id);
    }

    /// Forgets how long the queued `id` ran at its last accounting.
    pub fn clear_delta_exec(&mut self, id: impl Into<EntityId>) {
        let id = id.into();
        if let Some(entity) = self.get_mut(id) {
            entity.delta_exec = 0;
        }
    }

    /// Whether, by this kernel, the running entity's lost protection alone ends its turn.
    fn unprotected(&self) -> bool {
        let Some(curr) = &self.curr else { return false };
        if self.rev.has(features::VPROT) {
            !self.protected(curr)
        } else {
            self.rev.has(features::DID_PREEMPT_SHORT)
                && self.features.preempt_short
                && !self.protected(curr)
                && !self.eligibility().of(curr.vruntime)
        }
    }

    /// A new request for the running entity if it has used up the last one.
    fn update_deadline(&mut self) -> bool {
        let Some(curr) = &mut self.curr else {
            return false;
        };
        if before(curr.vruntime, curr.deadline) {
            return false;
        }
        if !curr.custom_slice || !self.rev.has(features::CUSTOM_SLICE) {
            curr.slice = self.tunables.slice_of(curr.latency_nice);
        }
        curr.deadline =
            curr.vruntime.wrapping_add(curr.load.calc_delta_fair(self.delta_rev, curr.slice));
        self.sync_avg_vruntime();
        true
    }

    /// The scheduler tick; true if the running entity should be replaced.
    /// Source: fair.c:`entity_tick`.
    pub fn tick(&mut self) -> bool {
        self.update_curr();
        self.need_resched
    }

    /// Queues `entity`, placed by its lag. An entity that is delayed stays so.
    /// Source: fair.c:`enqueue_entity`.
    pub fn enqueue(&mut self, mut entity: Entity, kind: EnqueueKind) {
        debug_assert!(self.get(entity.id).is_none(), "{} is queued already", entity.id);
        self.update_curr();
        let others = self.nr_queued();
        self.place_entity(&mut entity, kind, others);
        if matches!(kind, EnqueueKind::Migrated | EnqueueKind::WakeupMigrated) {
            entity.exec_start = 0;
        }
        self.nr_delayed += usize::from(entity.sched_delayed);
        self.insert(entity);
    }

    /// Takes `id` off the queue, unless it has to stay for its lag.
    /// Source: fair.c:`dequeue_entity`.
    pub fn dequeue(&mut self, id: impl Into<EntityId>, kind: DequeueKind) -> Dequeued {
        let id = id.into();
        self.update_curr();
        self.clear_buddies(Some(id));
        let Some(entity) = self.get(id).copied() else {
            return Dequeued::Absent;
        };
        if kind == DequeueKind::Sleep {
            if entity.sched_delayed {
                return Dequeued::Delayed;
            }
            if self.features.delay_dequeue && !self.eligibility().of(entity.vruntime) {
                self.delay(&entity);
                return Dequeued::Delayed;
            }
        }
        self.leave(entity, kind).map_or(Dequeued::Absent, Dequeued::Yes)
    }

    /// Completes the delayed dequeue of `id`, as when the task dies or changes its class;
    /// `None` if it is not delayed. Source: fair.c:`dequeue_entities` with `DEQUEUE_DELAYED`.
    pub fn finish_delayed(&mut self, id: impl Into<EntityId>) -> Option<Entity> {
        let id = id.into();
        self.update_curr();
        let entity = self.get(id).copied().filter(|entity| entity.sched_delayed)?;
        self.clear_buddies(Some(id));
        let mut entity = self.leave(entity, DequeueKind::Sleep)?;
        entity.sched_delayed = false;
        if self.rev.has(features::FINISH_DELAYED_DEQUEUE) && self.features.delay_zero {
            entity.vlag = entity.vlag.min(0);
        }
        Some(entity)
    }

    fn delay(&mut self, entity: &Entity) {
        let updates = self.rev.has(features::UPDATE_ENTITY_LAG);
        let vlag = if updates { self.update_entity_lag(entity).0 } else { entity.vlag };
        if let Some(queued) = self.get_mut(entity.id) {
            queued.vlag = vlag;
            queued.sched_delayed = true;
            self.nr_delayed += 1;
        }
    }

    fn leave(&mut self, entity: Entity, kind: DequeueKind) -> Option<Entity> {
        let (vlag, _) = self.update_entity_lag(&entity);
        let mut entity = self.take_out(entity.id)?;
        entity.vlag = vlag;
        let sleeps = matches!(kind, DequeueKind::Sleep | DequeueKind::SleepSpecial);
        if self.features.place_rel_deadline && !sleeps {
            entity.deadline = entity.deadline.wrapping_sub(entity.vruntime);
            entity.rel_deadline = true;
        }
        self.nr_delayed -= usize::from(entity.sched_delayed);
        if kind != DequeueKind::Save {
            self.update_min_vruntime_pre_6_12();
        }
        Some(entity)
    }

    fn get_mut(&mut self, id: EntityId) -> Option<&mut Entity> {
        match &mut self.curr {
            Some(curr) if curr.id == id => self.curr.as_mut(),
            _ => self.timeline.get_mut(id),
        }
    }

    /// Takes `id` out of the tree or from the CPU.
    fn take_out(&mut self, id: EntityId) -> Option<Entity> {
        if self.curr.as_ref().is_some_and(|curr| curr.id == id) {
            self.curr.take()
        } else {
            self.remove(id)
        }
    }

    /// Wakes `id`, which sleeps but is still queued here; false if that is not so.
    /// Source: fair.c:`requeue_delayed_entity`.
    pub fn requeue_delayed(&mut self, id: impl Into<EntityId>) -> bool {
        let id = id.into();
        let updates = self.rev.has(features::UPDATE_ENTITY_LAG);
        if updates {
            self.update_curr();
        }
        let Some(entity) = self.get(id).copied().filter(|e| e.sched_delayed) else {
            return false;
        };
        if updates {
            let (vlag, changed) = self.update_entity_lag(&entity);
            self.replace_delayed(id, vlag, changed);
        } else if self.features.delay_zero {
            let (vlag, _) = self.update_entity_lag(&entity);
            self.replace_delayed(id, vlag.min(0), vlag > 0);
        }
        if let Some(entity) = self.get_mut(id) {
            entity.sched_delayed = false;
            self.nr_delayed -= 1;
        }
        true
    }

    /// Gives the queued `id` the lag `vlag` and, if it `moves`, the place that goes with it.
    fn replace_delayed(&mut self, id: EntityId, vlag: i64, moves: bool) {
        if let Some(entity) = self.get_mut(id) {
            entity.vlag = vlag;
        }
        if !moves {
            return;
        }
        let others = self.nr_queued() - 1;
        if let Some(mut curr) = self.curr.filter(|curr| curr.id == id) {
            self.place_entity(&mut curr, EnqueueKind::Wakeup, others);
            self.curr = Some(curr);
        } else if let Some(mut entity) = self.remove(id) {
            self.place_entity(&mut entity, EnqueueKind::Wakeup, others);
            self.insert(entity);
        }
    }

    /// Picks the entity that should run now; the running one takes part. Delayed entities whose
    /// turn has come leave instead (see [`CfsRq::take_departed`]). Source: fair.c:`pick_task_fair`.
    pub fn pick(&mut self) -> Option<EntityId> {
        loop {
            self.update_curr();
            let id = self.pick_eevdf(true)?;
            if !self.depart_if_delayed(id) {
                return Some(id);
            }
        }
    }

    /// The entity that should run now, delayed or not, without changing anything: for a walk down
    /// nested queues, which comes back to the top after a delayed one has left.
    /// Source: fair.c:`pick_next_entity`.
    pub fn pick_entity(&self) -> Option<EntityId> {
        self.pick_eevdf(true)
    }

    /// Takes the delayed `id` out of the queue (see [`CfsRq::take_departed`]).
    pub fn depart(&mut self, id: EntityId) {
        self.depart_if_delayed(id);
    }

    fn depart_if_delayed(&mut self, id: EntityId) -> bool {
        if !self.get(id).is_some_and(|entity| entity.sched_delayed) {
            return false;
        }
        let entity = self.finish_delayed(id);
        self.departed.extend(entity);
        true
    }

    /// The earliest eligible virtual deadline; `protect` = respect the running entity's slice
    /// protection. `None` only on an empty queue.
    fn pick_eevdf(&self, protect: bool) -> Option<EntityId> {
        if self.timeline.is_empty() {
            return self.curr.as_ref().map(|curr| curr.id);
        }
        if self.curr.is_none() && self.timeline.len() == 1 {
            return self.timeline.first().map(|entity| entity.id);
        }
        if protect
            && let Some(next) = self.next.and_then(|id| self.get(id))
            && self.eligibility().of(next.vruntime)
        {
            return Some(next.id);
        }
        self.pick_by_deadline(protect)
    }

    /// The eligible entity with the earliest deadline, whatever buddy there is.
    fn pick_by_deadline(&self, protect: bool) -> Option<EntityId> {
        if self.timeline.is_empty() {
            return self.curr.as_ref().map(|curr| curr.id);
        }
        let eligible = self.eligibility();
        let curr = self.curr.as_ref().filter(|curr| eligible.of(curr.vruntime));
        if let Some(curr) = curr
            && protect
            && (self.rev.has(features::VPROT) || self.features.run_to_parity)
            && self.protected(curr)
        {
            return Some(curr.id);
        }
        let best = self.timeline.first_eligible(|vruntime| eligible.of(vruntime));
        let pick = match (curr, best) {
            (Some(curr), Some(best)) if before(curr.deadline, best.deadline) => Some(curr),
            (_, Some(best)) => Some(best),
            (curr, None) => curr.or_else(|| self.timeline.first()),
        };
        pick.map(|entity| entity.id)
    }

    /// Puts the queued `id` on the CPU; `first` = because it was picked (false: it was running
    /// before a change of its attributes). False if it is not in the tree.
    /// Source: fair.c:`set_next_entity`.
    pub fn set_next(&mut self, id: impl Into<EntityId>, first: bool) -> bool {
        let id = id.into();
        debug_assert!(self.curr.is_none(), "the CPU is taken");
        let Some(mut entity) = self.remove(id) else {
            return false;
        };
        self.clear_buddies(Some(id));
        if !self.rev.has(features::VPROT) {
            entity.vlag = entity.deadline as i64;
        } else if first {
            entity.vprot = self.protected_until(&entity);
        }
        entity.exec_start = self.clock_task;
        self.curr = Some(entity);
        true
    }

    /// [`set_next`](CfsRq::set_next) of a picked entity that takes a new weight at this moment, before
    /// it is protected (`set_next_task_fair` of 7.3). False if it is not in the tree.
    pub fn set_next_reweighted(&mut self, id: impl Into<EntityId>, load: LoadWeight) -> bool {
        let id = id.into();
        if !self.set_next(id, false) {
            return false;
        }
        if self.curr.as_ref().is_some_and(|curr| curr.load != load) {
            self.reweight(id, load);
        }
        if self.rev.has(features::VPROT)
            && let Some(mut curr) = self.curr
        {
            curr.vprot = self.protected_until(&curr);
            self.curr = Some(curr);
        }
        true
    }

    /// The vruntime up to which `entity`, just picked and out of the tree, may run undisturbed: to
    /// its deadline, or for the shortest slice that anyone waiting asks for (7.2,
    /// `set_protect_slice`).
    fn protected_until(&self, entity: &Entity) -> u64 {
        let quantum = if self.features.run_to_parity {
            self.min_slice()
        } else {
            self.tunables.normalized_base_slice_ns
        };
        if quantum >= entity.slice {
            return entity.deadline;
        }
        let while_eligible = self.rev.has(features::PROTECT_WHILE_ELIGIBLE);
        let until = if while_eligible && self.features.preempt_short {
            self.ineligible_vruntime()
        } else {
            entity.vruntime.wrapping_add(entity.load.calc_delta_fair(self.delta_rev, quantum))
        };
        earlier(entity.deadline, until)
    }

    /// Takes the running entity off the CPU, back into the tree; whose turn is over by that time is off it.
    /// Source: `put_prev_entity`.
    pub fn put_prev(&mut self) {
        self.update_curr();
        self.need_resched = false;
        if let Some(prev) = self.curr.take() {
            self.insert(prev);
        }
    }

    /// Picks and switches, as `__schedule` does; the running entity if it goes on keeps its
    /// slice protection as it is.
    pub fn schedule(&mut self) -> Option<EntityId> {
        let next = self.pick();
        if next != self.curr.as_ref().map(|curr| curr.id) {
            self.put_prev();
            if let Some(next) = next {
                self.set_next(next, true);
            }
        }
        self.need_resched = false;
        next
    }
}

/// The earlier of two virtual times.
fn earlier(a: u64, b: u64) -> u64 {
    if before(b, a) { b } else { a }
}
