//! CFS: which of the fair tasks of one CPU runs, and for how long, before EEVDF (up to 6.5).
//!
//! ```text
//!  vruntime      += ran · 1024 / weight                    who has the least runs ("leftmost")
//!  min_vruntime   = max(min_vruntime, least vruntime)      never goes back
//!  sched_period   = nr ≤ 8: latency, else nr · min_granularity
//!  sched_slice    = period · weight / Σ weights            of each level of groups, the task's own first
//!                   from 5.13 at least min_granularity, and nr counts the whole CPU (BASE_SLICE, ALT_PERIOD)
//!
//!  place:  woken  v = max(v, min_vruntime − latency/2)     (GENTLE_FAIR_SLEEPERS)
//!          new    v = max(v of its parent, min_vruntime + sched_slice · 1024 / weight)   (START_DEBIT)
//!  moved:  v is relative to min_vruntime while it is on no queue, unless it sleeps
//!
//!  tick:   ran > slice                                 ─> resched, and no buddy any more
//!          ran ≥ min_granularity, v − leftmost > slice ─> resched
//!  wakeup: v(curr) − v(woken) > wakeup_granularity · 1024 / weight(woken) ─> preempt
//!  pick:   next buddy, else last buddy, else leftmost (not the skip buddy): a buddy only while it is
//!          no further than that granularity right of the leftmost
//! ```
//!
//! A wakeup that preempts makes the woken entity the `next` buddy; with 8 or more queued the one
//! preempted becomes the `last` one. `sched_yield` makes the caller the `skip` buddy, no more.
//!
//! One queue is one level; what spans levels of groups (the slice, the buddies above) the caller
//! puts together from the parts here. Left out: `sched_child_runs_first` (off), HRTICK, the
//! vruntime of a task that slept for more than 100 days, load averages (the caller's).
//! Understood from the C of 6.1, not checked against it; what differs in 5.10 is from its history.
//! Source: kernel/sched/fair.c, symbols named at each function.

mod latency;
mod settings;
#[cfg(test)]
mod tests;

pub use settings::{Features, Tunables};

use crate::KernelRev;
pub use crate::eevdf::BuddyOf;
use crate::eevdf::timeline::{Timeline, before};
use crate::eevdf::{DequeueKind, EnqueueKind, Entity, EntityId, FairPolicy, Place, Wakeup};
use crate::units::Weight;
use crate::weight::{LoadWeight, scale_load_down};
use alloc::vec::Vec;

/// Value of min_vruntime of a new runqueue, so that wrapping is met early (`init_cfs_rq`).
const INITIAL_VRUNTIME: u64 = 0u64.wrapping_sub(1 << 20);
/// Number of queued entities from which on periods are stretched, and buddies are made
/// (`sched_nr_latency`).
pub const SCHED_NR_LATENCY: usize = 8;

/// The fair runqueue of one CPU or of one group on it (`struct cfs_rq`).
///
/// Set the clock with [`CfsRq::update_clock`] before any other call at a new time. A task that is
/// dequeued while running is no longer current. Its entities' `deadline` is a copy of the
/// vruntime, by which the tree is ordered; `rel_deadline` says that the vruntime is relative to
/// min_vruntime; lag and protection are not used.
#[derive(Clone, Debug)]
pub struct CfsRq {
    rev: KernelRev,
    features: Features,
    tunables: Tunables,
    clock_task: u64,
    min_vruntime: u64,
    /// Σ weights with their fixed-point bits, the running entity's included (`load.weight`).
    load: u64,
    /// Entities of SCHED_IDLE or of idle groups (`idle_nr_running`).
    nr_idle: usize,
    /// The running entity is not in the tree.
    curr: Option<Entity>,
    timeline: Timeline,
    buddies: Buddies,
    /// Entities that want the CPU soon and have not had it since they woke (`latency_timeline`).
    latency: Vec<EntityId>,
    need_resched: bool,
}

/// The entities that are preferred or avoided as far as that is not unfair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Buddies {
    last: Option<EntityId>,
    next: Option<EntityId>,
    skip: Option<EntityId>,
}

impl CfsRq {
    /// An empty runqueue.
    pub fn new(rev: KernelRev, features: Features, tunables: Tunables) -> CfsRq {
        CfsRq {
            rev,
            features,
            tunables,
            clock_task: 0,
            min_vruntime: INITIAL_VRUNTIME,
            load: 0,
            nr_idle: 0,
            curr: None,
            timeline: Timeline::new(),
            buddies: Buddies::default(),
            latency: Vec::new(),
            need_resched: false,
        }
    }

    /// Sets the task clock (`rq_clock_task`), in ns.
    #[inline]
    pub fn update_clock(&mut self, clock_task_ns: u64) {
        self.clock_task = clock_task_ns;
    }

    /// Entities queued, the running one included (`nr_running`).
    #[inline]
    pub fn nr_running(&self) -> usize {
        self.timeline.len() + usize::from(self.curr.is_some())
    }

    /// The running entity.
    #[inline]
    pub fn curr(&self) -> Option<&Entity> {
        self.curr.as_ref()
    }

    pub(crate) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The entity of `id` if it is queued here, running or not.
    pub fn get(&self, id: impl Into<EntityId>) -> Option<&Entity> {
        let id = id.into();
        self.curr.as_ref().filter(|curr| curr.id == id).or_else(|| self.timeline.get(id))
    }

    /// The entity of `id` if it is queued here, to change; not its vruntime or weight, by which the queue
    /// is ordered and summed.
    pub(crate) fn get_mut(&mut self, id: EntityId) -> Option<&mut Entity> {
        match &mut self.curr {
            Some(curr) if curr.id == id => self.curr.as_mut(),
            _ => self.timeline.get_mut(id),
        }
    }

    /// The sum of the queued entities' weights (`cfs_rq::load`).
    pub fn load_weight(&self) -> Weight {
        Weight(scale_load_down(self.load))
    }

    /// The vruntime that nobody here, placed anew, gets far behind; wraps.
    pub fn min_vruntime(&self) -> u64 {
        self.min_vruntime
    }

    /// Whether the running entity should be replaced (`TIF_NEED_RESCHED`).
    #[inline]
    pub fn need_resched(&self) -> bool {
        self.need_resched
    }

    /// `clear_tsk_need_resched`.
    pub fn clear_need_resched(&mut self) {
        self.need_resched = false;
    }

    /// Whether entities of SCHED_IDLE count for less in more than their weight.
    fn is_idle(&self, entity: &Entity) -> bool {
        self.features.idle_entities && entity.policy == FairPolicy::Idle
    }

    // ------------------------------------------------------------------ virtual time

    /// Accounts the running entity's time up to the clock. Source: fair.c:`update_curr`.
    pub fn update_curr(&mut self) {
        let Some(curr) = &mut self.curr else { return };
        let ran = self.clock_task.wrapping_sub(curr.exec_start);
        if ran as i64 <= 0 {
            return;
        }
        curr.exec_start = self.clock_task;
        curr.delta_exec = ran;
        curr.sum_exec_runtime = curr.sum_exec_runtime.wrapping_add(ran);
        curr.vruntime = curr.vruntime.wrapping_add(curr.load.calc_delta_fair(self.rev, ran));
        self.update_min_vruntime();
    }

    /// Moves min_vruntime forward to the least vruntime. Source: fair.c:`update_min_vruntime`.
    fn update_min_vruntime(&mut self) {
        let queued = self.timeline.first().map(|left| left.vruntime);
        let least = match (self.curr.as_ref().map(|curr| curr.vruntime), queued) {
            (Some(curr), Some(queued)) if before(queued, curr) => queued,
            (Some(curr), _) => curr,
            (None, Some(queued)) => queued,
            (None, None) => return,
        };
        if before(self.min_vruntime, least) {
            self.min_vruntime = least;
        }
    }

    // ------------------------------------------------------------------ slices

    /// The time in which each of `nr` entities is to run once, in ns.
    /// Source: fair.c:`__sched_period`.
    pub fn sched_period(&self, nr: usize) -> u64 {
        if nr > SCHED_NR_LATENCY {
            nr as u64 * self.tunables.min_granularity_ns
        } else {
            self.tunables.latency_ns
        }
    }

    /// The slice at one level of `sched_slice`: the part of `ns` that `load` has of this queue, to
    /// whose weight what `joins` (with its fixed-point bits) is added first. Rounding: down, by the
    /// inverse of the sum.
    pub fn slice_part(&self, ns: u64, load: &LoadWeight, joins: u64) -> u64 {
        load.part_of(&LoadWeight::of_scaled(self.load + joins), ns)
    }

    /// The last step of `sched_slice`: not less than what `entity` gets at least.
    pub fn slice_at_least(&self, ns: u64, entity: &Entity) -> u64 {
        if !self.features.base_slice {
            return ns;
        }
        let all_idle = self.nr_idle == self.nr_running() && self.nr_idle > 0;
        let least = if self.is_idle(entity) && !all_idle {
            self.tunables.idle_min_granularity_ns
        } else {
            self.tunables.min_granularity_ns
        };
        ns.max(least)
    }

    /// The time that `entity` may run in one go on a CPU without groups, in ns; `joins`: it is not
    /// queued yet. Source: fair.c:`sched_slice`.
    pub fn sched_slice(&self, entity: &Entity, joins: bool) -> u64 {
        let period = self.sched_period(self.nr_running() + usize::from(joins));
        let weight = if joins { entity.load.scaled() } else { 0 };
        self.slice_at_least(self.slice_part(period, &entity.load, weight), entity)
    }

    /// The period of a group's queue, to which `joins` more will come: it counts the tasks of the
    /// whole CPU (`h_nr`) from 5.13 on (`ALT_PERIOD`), before its own.
    pub fn period_of(&self, h_nr: usize, joins: usize) -> u64 {
        let nr = if self.features.alt_period { h_nr } else { self.nr_running() };
        self.sched_period(nr + joins)
    }

    // ------------------------------------------------------------------ coming and going

    /// Places a new task: after the period that is promised to those who are there, and not before
    /// its parent, whose vruntime is `parent`. `vslice`: its slice in its virtual time. The
    /// vruntime is relative to this queue until it is enqueued, on whichever CPU. Source:
    /// fair.c:`task_fork_fair`.
    pub fn task_fork(&self, entity: &mut Entity, parent: Option<u64>, slice: u64) {
        if let Some(parent) = parent {
            entity.vruntime = parent;
        }
        let mut v = self.min_vruntime;
        if self.features.start_debit {
            v = v.wrapping_add(entity.load.calc_delta_fair(self.rev, slice));
        }
        if parent.is_none() || before(entity.vruntime, v) {
            entity.vruntime = v;
        }
        self.normalize(entity);
    }

    /// The vruntime of an entity that leaves, relative to this queue.
    fn normalize(&self, entity: &mut Entity) {
        entity.vruntime = entity.vruntime.wrapping_sub(self.min_vruntime);
        entity.rel_deadline = true;
    }

    /// `entity`, asleep since it left this queue, will wake on another CPU.
    /// Source: fair.c:`migrate_task_rq_fair`.
    pub fn migrate_asleep(&self, entity: &mut Entity) {
        if !entity.rel_deadline {
            self.normalize(entity);
        }
    }

    /// Sets a woken entity's vruntime: its own, or one half a latency behind the others, whichever
    /// is later; so much of its sleep counts. Source: fair.c:`place_entity`.
    fn place_woken(&self, entity: &mut Entity) {
        let mut credit = self.tunables.latency_ns;
        if self.is_idle(entity) {
            credit = self.tunables.min_granularity_ns;
        }
        if self.features.gentle_fair_sleepers {
            credit >>= 1;
        }
        let v = self.min_vruntime.wrapping_sub(credit);
        if before(entity.vruntime, v) {
            entity.vruntime = v;
        }
    }

    /// Queues `entity`. A new one that [`CfsRq::task_fork`] has not placed is placed here.
    /// Source: fair.c:`enqueue_entity`.
    pub fn enqueue(&mut self, mut entity: Entity, kind: EnqueueKind) {
        debug_assert!(self.get(entity.id).is_none(), "{} is queued already", entity.id);
        self.update_curr();
        if kind == EnqueueKind::Initial && !entity.rel_deadline {
            let slice = self.sched_slice(&entity, true);
            self.task_fork(&mut entity, None, slice);
        }
        if entity.rel_deadline {
            entity.vruntime = entity.vruntime.wrapping_add(self.min_vruntime);
            entity.rel_deadline = false;
        }
        if matches!(kind, EnqueueKind::Wakeup | EnqueueKind::WakeupMigrated) {
            self.place_woken(&mut entity);
        }
        if matches!(kind, EnqueueKind::Migrated | EnqueueKind::WakeupMigrated) {
            entity.exec_start = 0;
        }
        // What others call a slice: how long it runs at least.
        entity.slice = self.tunables.min_granularity_ns;
        self.load += entity.load.scaled();
        self.nr_idle += usize::from(self.is_idle(&entity));
        let woken = matches!(kind, EnqueueKind::Wakeup | EnqueueKind::WakeupMigrated);
        self.enqueue_latency(&entity, woken);
        self.insert(entity);
    }

    /// Takes `id` off the queue; `None` if it is not here. Source: fair.c:`dequeue_entity`.
    pub fn dequeue(&mut self, id: impl Into<EntityId>, kind: DequeueKind) -> Option<Entity> {
        let id = id.into();
        self.update_curr();
        self.clear_buddies(id);
        self.dequeue_latency(id);
        let mut entity = if self.curr.as_ref().is_some_and(|curr| curr.id == id) {
            self.curr.take()
        } else {
            self.timeline.remove(id)
        }?;
        self.load -= entity.load.scaled();
        self.nr_idle -= usize::from(self.is_idle(&entity));
        if !matches!(kind, DequeueKind::Sleep | DequeueKind::SleepSpecial) {
            self.normalize(&mut entity);
        }
        // An entity that comes right back must not find itself behind where it was.
        if kind != DequeueKind::Save {
            self.update_min_vruntime();
        }
        Some(entity)
    }

    fn insert(&mut self, mut entity: Entity) {
        entity.deadline = entity.vruntime;
        self.timeline.insert(entity);
    }

    /// A new weight for the queued `id` where it stands; false if it is not queued.
    /// Source: fair.c:`reweight_entity`.
    pub fn reweight(&mut self, id: impl Into<EntityId>, load: LoadWeight) -> bool {
        let id = id.into();
        if self.curr.as_ref().is_some_and(|curr| curr.id == id) {
            self.update_curr();
        }
        let Some(entity) = self.get_mut(id) else { return false };
        let old = core::mem::replace(&mut entity.load, load);
        self.load = self.load - old.scaled() + load.scaled();
        true
    }

    /// The queue finds itself in a run under way, in which its `min_vruntime` is that; virtual times are counted
    /// from the same origin, or everything moves.
    pub fn resume(&mut self, min_vruntime: u64, same_origin: bool) {
        let by = min_vruntime.wrapping_sub(self.min_vruntime);
        self.min_vruntime = min_vruntime;
        if same_origin {
            return;
        }
        let shift = |e: &mut Entity| e.vruntime = e.vruntime.wrapping_add(by);
        self.curr.iter_mut().for_each(shift);
        for mut entity in self.timeline.drain() {
            shift(&mut entity);
            self.insert(entity);
        }
    }

    /// Puts one queued entity back at `place`, as [`CfsRq::resume`] does for the queue.
    pub fn resume_entity(&mut self, id: EntityId, place: &Place) {
        if let Some(curr) = self.curr.as_mut().filter(|curr| curr.id == id) {
            curr.vruntime = place.vruntime;
        } else if let Some(entity) = self.timeline.get(id).copied() {
            let vruntime = place.vruntime;
            self.timeline.put_right(Entity { vruntime, deadline: vruntime, ..entity });
        }
    }

    /// A change of the queued `id`, which leaves for it and comes back; false if it is not queued.
    /// Source: `set_user_nice`, `sched_setattr`.
    pub fn change(&mut self, id: EntityId, change: impl FnOnce(&mut Entity)) -> bool {
        let running = self.curr.as_ref().is_some_and(|curr| curr.id == id);
        let Some(mut entity) = self.dequeue(id, DequeueKind::Save) else { return false };
        change(&mut entity);
        self.enqueue(entity, EnqueueKind::Restore);
        if running {
            self.set_next(id);
        }
        true
    }

    // ------------------------------------------------------------------ who runs

    /// Compares a woken entity with the running one. 1: `woken` is so far behind `curr` that it
    /// should run instead; 0: behind, but by no more than the granularity; −1: not behind. Source:
    /// fair.c:`wakeup_preempt_entity`.
    fn wakeup_preempt_entity(&self, curr: &Entity, woken: &Entity) -> i32 {
        let behind = curr.vruntime.wrapping_sub(woken.vruntime) as i64;
        // In the woken one's virtual time: light tasks have to be further behind.
        let gran =
            || woken.load.calc_delta_fair(self.rev, self.tunables.wakeup_granularity_ns) as i64;
        if self.tunables.latency_nice {
            return self.preempt_by_latency(behind, self.latency_gran(curr, woken), gran());
        }
        if behind <= 0 { -1 } else { i32::from(behind > gran()) }
    }

    /// The entity that should run now; the running one takes part. Source:
    /// fair.c:`pick_next_entity`.
    pub fn pick_entity(&self) -> Option<EntityId> {
        let picked = self.pick_entity_by_vruntime()?;
        Some(self.sooner_than(picked).unwrap_or(picked))
    }

    fn pick_entity_by_vruntime(&self) -> Option<EntityId> {
        let curr = self.curr.as_ref();
        let first = self.timeline.first();
        let left = match (first, curr) {
            (Some(first), Some(curr)) if before(curr.vruntime, first.vruntime) => curr,
            (Some(first), _) => first,
            (None, curr) => curr?,
        };
        let fair = |entity: &Entity| self.wakeup_preempt_entity(entity, left) < 1;
        let buddy = |id: Option<EntityId>| id.and_then(|id| self.get(id)).filter(|e| fair(e));
        if let Some(buddy) = buddy(self.buddies.next).or_else(|| buddy(self.buddies.last)) {
            return Some(buddy.id);
        }
        if self.buddies.skip == Some(left.id) {
            let second = if curr.is_some_and(|curr| curr.id == left.id) {
                first
            } else {
                match (self.timeline.second(), curr) {
                    (Some(second), Some(curr)) if before(curr.vruntime, second.vruntime) => {
                        Some(curr)
                    }
                    (None, curr) => curr,
                    (second, _) => second,
                }
            };
            if let Some(second) = second.filter(|second| fair(second)) {
                return Some(second.id);
            }
        }
        Some(left.id)
    }

    /// Picks the entity that should run now, with the running one's time accounted. Up to 5.13 the
    /// one picked is no buddy any more, even where it goes on running.
    pub fn pick(&mut self) -> Option<EntityId> {
        self.update_curr();
        let id = self.pick_entity()?;
        if self.features.pick_clears {
            self.clear_buddies(id);
        }
        Some(id)
    }

    /// Puts the queued `id` on the CPU; false if it is not in the tree.
    /// Source: fair.c:`set_next_entity`.
    pub fn set_next(&mut self, id: impl Into<EntityId>) -> bool {
        let id = id.into();
        debug_assert!(self.curr.is_none(), "the CPU is taken");
        self.clear_buddies(id);
        let Some(mut entity) = self.timeline.remove(id) else { return false };
        self.dequeue_latency(id);
        entity.exec_start = self.clock_task;
        entity.prev_sum_exec_runtime = entity.sum_exec_runtime;
        self.curr = Some(entity);
        true
    }

    /// Takes the running entity off the CPU, back into the tree. Source: `put_prev_entity`.
    pub fn put_prev(&mut self) {
        self.update_curr();
        if let Some(prev) = self.curr.take() {
            self.enqueue_latency(&prev, false);
            self.insert(prev);
        }
    }

    /// The scheduler tick on a CPU without groups; true if the running entity should be replaced.
    /// Source: fair.c:`entity_tick`.
    pub fn tick(&mut self) -> bool {
        self.update_curr();
        if let Some(curr) = &self.curr
            && !self.timeline.is_empty()
        {
            let slice = self.sched_slice(curr, false);
            self.check_preempt_tick(slice);
        }
        self.need_resched
    }

    /// Whether the running entity, which may run for `ideal_runtime` ns in one go, should be replaced:
    /// it has, or after the least time it is ahead of the leftmost by that much. Nothing if it is
    /// alone. Source: fair.c:`check_preempt_tick`.
    pub fn check_preempt_tick(&mut self, ideal_runtime: u64) {
        let (Some(curr), Some(first)) = (&self.curr, self.timeline.first()) else { return };
        let ran = curr.sum_exec_runtime.wrapping_sub(curr.prev_sum_exec_runtime);
        if ran > ideal_runtime {
            let id = curr.id;
            self.need_resched = true;
            self.clear_buddies(id);
        } else if ran >= self.tunables.min_granularity_ns {
            let ahead = curr.vruntime.wrapping_sub(first.vruntime) as i64;
            if self.tunables.latency_nice {
                self.need_resched |= self.tick_by_latency(ahead, curr, first, ideal_runtime);
                return;
            }
            // The kernel compares as unsigned, after the sign.
            self.need_resched |= ahead >= 0 && ahead as u64 > ideal_runtime;
        }
    }

    /// [`CfsRq::wakeup_preempt_by`] on a queue of tasks: `fork` = it is a new one.
    pub fn wakeup_preempt(&mut self, id: impl Into<EntityId>, fork: bool) -> bool {
        let id = id.into();
        let (Some(curr), Some(woken)) = (&self.curr, self.get(id)) else { return false };
        let wakeup =
            Wakeup { fork, due: self.need_resched, woken: woken.policy, running: curr.policy };
        self.wakeup_preempt_by(id, &wakeup)
    }

    /// Whether the just enqueued entity `id`, the woken task's own or that of a group which holds it,
    /// preempts the running one; then [`CfsRq::need_resched`] is set, and buddies are made. False if a
    /// reschedule is due already. Source: fair.c:`check_preempt_wakeup`.
    pub fn wakeup_preempt_by(&mut self, id: impl Into<EntityId>, wakeup: &Wakeup) -> bool {
        let id = id.into();
        let (Some(curr), Some(woken)) = (self.curr, self.get(id).copied()) else { return false };
        if curr.id == id {
            return false;
        }
        let scale = self.nr_running() >= SCHED_NR_LATENCY;
        let marked = self.features.next_buddy && scale && !wakeup.fork;
        if marked {
            self.set_next_buddy(id);
        }
        if wakeup.due {
            return false;
        }
        let (curr_idle, woken_idle) = (self.is_idle(&curr), self.is_idle(&woken));
        let preempts = match wakeup.by_policies_pre_6_12() {
            Some(preempts) => preempts,
            None if !self.features.wakeup_preemption || (woken_idle && !curr_idle) => false,
            None if curr_idle && !woken_idle => true,
            None => {
                self.update_curr();
                let curr = self.curr.as_ref().unwrap_or(&curr);
                let behind = self.wakeup_preempt_entity(curr, &woken) == 1;
                if behind && !marked {
                    self.set_next_buddy(id);
                }
                behind
            }
        };
        if !preempts {
            return false;
        }
        self.need_resched = true;
        if self.features.last_buddy && scale && curr.id.as_task().is_some() && !curr_idle {
            self.buddies.last = Some(curr.id);
        }
        true
    }

    /// The running entity lets others go first, once (`sched_yield`); the caller reschedules.
    /// Nothing happens if it is alone. Source: fair.c:`yield_task_fair`.
    pub fn yield_task(&mut self) {
        if self.timeline.is_empty() {
            return;
        }
        let Some(curr) = self.curr.as_ref().map(|curr| (curr.id, curr.policy)) else { return };
        self.clear_buddies(curr.0);
        if curr.1 != FairPolicy::Batch {
            self.update_curr();
        }
        self.buddies.skip = Some(curr.0);
    }

    // ------------------------------------------------------------------ buddies

    /// Tells as which buddies (last, next, skip) this queue holds `id`.
    pub fn buddy_of(&self, id: impl Into<EntityId>) -> BuddyOf {
        let id = Some(id.into());
        let Buddies { last, next, skip } = self.buddies;
        BuddyOf { last: last == id, next: next == id, skip: skip == id }
    }

    /// Makes the queued `id`, unless it is idle, the entity that should run next
    /// (`set_next_buddy`). On levels above those that compete this is their common group.
    pub fn set_next_buddy(&mut self, id: impl Into<EntityId>) {
        let id = id.into();
        if self.get(id).is_some_and(|e| !self.is_idle(e)) {
            self.buddies.next = Some(id);
        }
    }

    /// Makes the queued `id`, which is preempted, unless it is idle, the entity to go back to
    /// (`set_last_buddy`).
    pub fn set_last_buddy(&mut self, id: impl Into<EntityId>) {
        let id = id.into();
        if self.get(id).is_some_and(|e| !self.is_idle(e)) {
            self.buddies.last = Some(id);
        }
    }

    /// Makes `id`, which yields, the entity to pass over (`set_skip_buddy`).
    pub fn set_skip_buddy(&mut self, id: impl Into<EntityId>) {
        self.buddies.skip = Some(id.into());
    }

    /// `id` is no longer the buddies that it is and `of` names.
    pub fn clear_buddy(&mut self, id: impl Into<EntityId>, of: BuddyOf) {
        let id = Some(id.into());
        let Buddies { last, next, skip } = &mut self.buddies;
        for (buddy, clear) in [(last, of.last), (next, of.next), (skip, of.skip)] {
            if clear && *buddy == id {
                *buddy = None;
            }
        }
    }

    /// `id` is nobody's buddy any more (`clear_buddies`).
    pub fn clear_buddies(&mut self, id: EntityId) {
        self.clear_buddy(id, BuddyOf { last: true, next: true, skip: true });
    }
}
