//! EEVDF: which of the fair tasks of one CPU runs, and for how long.
//!
//! Models one flat `cfs_rq` of tasks: enqueue, dequeue (delayed, too), placement by lag, pick
//! of the earliest eligible virtual deadline, slice protection, wakeup preemption, new weights
//! and slices. Three generations, bit for bit:
//!
//! ```text
//! 6.6 – 6.11   lag, eligibility, RUN_TO_PARITY as "vlag == deadline"; one slice for all
//! 6.12 – 7.1   + delayed dequeue, DELAY_ZERO, slices per task, PREEMPT_SHORT, relative deadlines
//! 7.2          + protection up to vprot, lag bounded by the longest slice, full weights in V
//!
//! pick = running entity while protected and eligible,
//!        else argmin deadline over { i : v_i <= V }     (average.rs has V, lag and placement)
//! ```
//!
//! Left out: groups and bandwidth, buddies (`NEXT_BUDDY` is off by default and nothing here
//! yields to another task), the wakeup-sync hint that only acts on buddies, HRTICK, NUMA and
//! cache affinity. Load averages are kept by the caller.
//! Checked against the C of 6.12 and 7.2; the form of 6.6 – 6.11 is not.
//! Source: kernel/sched/fair.c.

mod average;
mod control;
mod load;
#[cfg(test)]
mod tests;
mod timeline;

use alloc::vec::Vec;

pub use load::LoadWeight;
use timeline::{Timeline, before};

use crate::KernelRev;
use crate::units::{TaskId, Weight};

/// Where v0 of a new runqueue stands, so that wrapping is met early (`init_cfs_rq`).
const INITIAL_VRUNTIME: u64 = 0u64.wrapping_sub(1 << 20);

/// The kernels that schedule alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Generation {
    V6_6,
    V6_12,
    V7_2,
}

impl Generation {
    fn of(rev: KernelRev) -> Generation {
        if rev >= KernelRev::V7_2 {
            Generation::V7_2
        } else if rev >= KernelRev::V6_12 {
            Generation::V6_12
        } else {
            Generation::V6_6
        }
    }
}

/// The scheduler's switches (kernel/sched/features.h), named as there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// `PLACE_LAG`: an entity comes back with the lag it left with; off: with none.
    pub place_lag: bool,
    /// `PLACE_DEADLINE_INITIAL`: the first deadline of a new task is half a slice away.
    pub place_deadline_initial: bool,
    /// `PLACE_REL_DEADLINE`: a deadline keeps its distance across migration and renice.
    pub place_rel_deadline: bool,
    /// `RUN_TO_PARITY`: the running entity is not preempted while protected and eligible.
    pub run_to_parity: bool,
    /// `PREEMPT_SHORT`: a woken entity with a shorter slice breaks that protection.
    pub preempt_short: bool,
    /// `DELAY_DEQUEUE`: who falls asleep owing service stays queued until it is paid off.
    pub delay_dequeue: bool,
    /// `DELAY_ZERO`: who was dequeued late keeps no positive lag.
    pub delay_zero: bool,
    /// `WAKEUP_PREEMPTION`: waking may preempt the running entity at all.
    pub wakeup_preemption: bool,
}

impl Features {
    /// The defaults of `rev`.
    ///
    /// Until 6.11 a new task was placed twice, the second time without `ENQUEUE_INITIAL`, so
    /// that `PLACE_DEADLINE_INITIAL`, though on, had no effect: it is off here.
    pub fn of(rev: KernelRev) -> Features {
        let from_6_12 = rev >= KernelRev::V6_12;
        Features {
            place_lag: true,
            place_deadline_initial: from_6_12,
            place_rel_deadline: from_6_12,
            run_to_parity: true,
            preempt_short: from_6_12,
            delay_dequeue: from_6_12,
            delay_zero: from_6_12,
            wakeup_preemption: true,
        }
    }
}

/// The lengths of time that the arithmetic depends on, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// The slice of a task that asks for none (`sysctl_sched_base_slice`: the normalised one
    /// times 1 + log2 of the CPUs, at most 8 of which count).
    pub base_slice_ns: u64,
    /// The base slice of a single-CPU machine (`normalized_sysctl_sched_base_slice`).
    pub normalized_base_slice_ns: u64,
    /// The length of a tick (`TICK_NSEC`).
    pub tick_ns: u64,
}

impl Tunables {
    /// The defaults of `rev` on a machine with `cpus` CPUs and `hz` ticks a second.
    /// Source: fair.c:`sysctl_sched_base_slice`, `get_update_sysctl_factor`.
    pub fn of(rev: KernelRev, cpus: u32, hz: u32) -> Tunables {
        let normalized = if rev >= KernelRev::new(6, 15) {
            700_000
        } else {
            750_000
        };
        let factor = 1 + u64::from(cpus.clamp(1, 8).ilog2());
        Tunables {
            base_slice_ns: normalized * factor,
            normalized_base_slice_ns: normalized,
            tick_ns: 1_000_000_000 / u64::from(hz.max(1)),
        }
    }
}

/// The scheduling policy of a fair task, as far as wakeup preemption asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FairPolicy {
    /// `SCHED_OTHER`.
    #[default]
    Normal,
    /// `SCHED_BATCH`: does not preempt when it wakes.
    Batch,
    /// `SCHED_IDLE`: neither, and is preempted by any task of another policy.
    Idle,
}

/// A task as the fair class sees it (`struct sched_entity`). The caller keeps it while the
/// task sleeps; the runqueue keeps it while it is queued or runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entity {
    /// Whose entity this is.
    pub id: TaskId,
    /// Weight and inverse.
    pub load: LoadWeight,
    /// Policy.
    pub policy: FairPolicy,
    /// The request: how long it wants to run in one go, in ns.
    pub slice: u64,
    /// Whether the task asked for `slice` (`sched_attr::sched_runtime`, from 6.12).
    pub custom_slice: bool,
    /// Service received in virtual ns; wraps.
    pub vruntime: u64,
    /// The virtual time by which the request is to be served; wraps. Relative to `vruntime`
    /// while `rel_deadline`.
    pub deadline: u64,
    /// Whether `deadline` is relative: in a task that left without sleeping.
    pub rel_deadline: bool,
    /// Virtual lag V - v when last dequeued. Until 7.1 it holds, in a queued entity, the
    /// deadline it was picked with instead: the mark of slice protection.
    pub vlag: i64,
    /// The vruntime up to which it is protected from preemption (7.2).
    pub vprot: u64,
    /// Asleep, but still queued to pay off negative lag.
    pub sched_delayed: bool,
    /// The task clock when its running time was last accounted, in ns.
    pub exec_start: u64,
    /// All its running time, in ns.
    pub sum_exec_runtime: u64,
}

impl Entity {
    /// A new task, never queued (`__sched_fork`); its slice is the runqueue's base slice.
    pub fn new(id: TaskId, load: LoadWeight) -> Entity {
        Entity {
            id,
            load,
            policy: FairPolicy::Normal,
            slice: 0,
            custom_slice: false,
            vruntime: 0,
            deadline: 0,
            rel_deadline: false,
            vlag: 0,
            vprot: 0,
            sched_delayed: false,
            exec_start: 0,
            sum_exec_runtime: 0,
        }
    }

    /// Asks for slices of `slice_ns`, clamped to 0.1 … 100 ms; `None` = the base slice. For a
    /// task that is not queued; else [`CfsRq::set_slice`]. Source: fair.c:`__setparam_fair`.
    pub fn request_slice(&mut self, slice_ns: Option<u64>) {
        self.custom_slice = slice_ns.is_some();
        if let Some(ns) = slice_ns {
            self.slice = ns.clamp(100_000, 100_000_000);
        }
    }

    /// A new weight for a task that is not queued; else [`CfsRq::reweight`].
    /// Source: fair.c:`reweight_entity`.
    pub fn reweight(&mut self, rev: KernelRev, load: LoadWeight) {
        self.rescale_asleep(Generation::of(rev), load);
    }

    /// Weight as people write it, nice 0 = 1024.
    pub fn weight(&self) -> Weight {
        self.load.weight()
    }
}

/// Why an entity is enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnqueueKind {
    /// For the first time in its life (`ENQUEUE_INITIAL`).
    Initial,
    /// It woke here (`ENQUEUE_WAKEUP`).
    Wakeup,
    /// It comes from another CPU, awake or waking (`ENQUEUE_MIGRATED`).
    Migrated,
    /// Back after a change of its attributes (`ENQUEUE_RESTORE`).
    Restore,
}

/// Why an entity is dequeued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DequeueKind {
    /// It goes to sleep, and may stay queued to pay off its lag (`DEQUEUE_SLEEP`).
    Sleep,
    /// It leaves for good, or sleeps such that it must not be woken spuriously
    /// (`DEQUEUE_SLEEP | DEQUEUE_SPECIAL`).
    SleepSpecial,
    /// It moves to another CPU.
    Migrate,
    /// It comes right back after a change of its attributes (`DEQUEUE_SAVE`).
    Save,
}

/// What became of a dequeue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeued {
    /// It left; with its lag, to be enqueued again here or elsewhere.
    Yes(Entity),
    /// It stays queued, `sched_delayed`: to be woken by [`CfsRq::requeue_delayed`], or handed
    /// out by [`CfsRq::take_departed`] when a pick has met it.
    Delayed,
    /// It was not queued here.
    Absent,
}

/// The fair runqueue of one CPU (`struct cfs_rq`).
///
/// Set the clock with [`CfsRq::update_clock`] before any other call at a new time, as the
/// kernel does with `update_rq_clock`. A task that is dequeued while running is no longer
/// current.
#[derive(Clone, Debug)]
pub struct CfsRq {
    rev: KernelRev,
    generation: Generation,
    features: Features,
    tunables: Tunables,
    clock_task: u64,
    /// v0 of average.rs: `zero_vruntime`; until 6.11 `min_vruntime`.
    zero_vruntime: u64,
    /// Σ w_i (v_i − v0) over the tree: `sum_w_vruntime`, before 7.2 `avg_vruntime`.
    sum_w_vruntime: i64,
    /// Σ w_i over the tree: `sum_weight`, before 7.2 `avg_load`.
    sum_weight: i64,
    /// The running entity is not in the tree.
    curr: Option<Entity>,
    timeline: Timeline,
    nr_delayed: usize,
    need_resched: bool,
    departed: Vec<Entity>,
}

impl CfsRq {
    /// An empty runqueue.
    pub fn new(rev: KernelRev, features: Features, tunables: Tunables) -> CfsRq {
        CfsRq {
            rev,
            generation: Generation::of(rev),
            features,
            tunables,
            clock_task: 0,
            zero_vruntime: INITIAL_VRUNTIME,
            sum_w_vruntime: 0,
            sum_weight: 0,
            curr: None,
            timeline: Timeline::new(),
            nr_delayed: 0,
            need_resched: false,
            departed: Vec::new(),
        }
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
    pub fn get(&self, id: TaskId) -> Option<&Entity> {
        self.curr
            .as_ref()
            .filter(|curr| curr.id == id)
            .or_else(|| self.timeline.get(id))
    }

    /// All queued entities: the running one, then the others by task number.
    pub fn iter(&self) -> impl Iterator<Item = &Entity> {
        self.curr.iter().chain(self.timeline.iter())
    }

    /// The sum of the queued entities' weights, delayed ones included (`cfs_rq::load`).
    pub fn load_weight(&self) -> Weight {
        Weight(self.iter().map(|entity| entity.weight().0).sum())
    }

    /// Whether the running entity should be replaced (`TIF_NEED_RESCHED`). Set by
    /// [`CfsRq::update_curr`] and [`CfsRq::wakeup_preempt`], cleared by [`CfsRq::schedule`].
    #[inline]
    pub fn need_resched(&self) -> bool {
        self.need_resched
    }

    /// For callers that do not use [`CfsRq::schedule`].
    pub fn clear_need_resched(&mut self) {
        self.need_resched = false;
    }

    /// Entities whose delayed dequeue a pick (or, in 7.2, a wakeup's preemption check) has
    /// completed since the last call: they now sleep.
    pub fn take_departed(&mut self) -> Vec<Entity> {
        core::mem::take(&mut self.departed)
    }

    /// Whether `id` has had no more service than it ought to; false if it is not queued.
    pub fn entity_eligible(&self, id: TaskId) -> bool {
        self.get(id)
            .is_some_and(|entity| self.eligibility().of(entity.vruntime))
    }

    /// The lag of `id`, bounded, in virtual ns; `None` if it is not queued.
    pub fn entity_lag(&self, id: TaskId) -> Option<i64> {
        self.get(id)
            .map(|entity| self.bounded_lag(self.avg_vruntime(), entity))
    }

    /// Whether the running entity is within the part of its slice that no wakeup of an equal
    /// cuts short (`protect_slice`).
    pub fn curr_protected(&self) -> bool {
        self.curr.as_ref().is_some_and(|curr| self.protected(curr))
    }

    #[inline]
    fn protected(&self, entity: &Entity) -> bool {
        match self.generation {
            Generation::V6_6 | Generation::V6_12 => entity.vlag as u64 == entity.deadline,
            Generation::V7_2 => before(entity.vruntime, entity.vprot),
        }
    }

    /// The shortest slice in the queue, the running entity's included (`cfs_rq_min_slice`).
    fn min_slice(&self) -> u64 {
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
        curr.sum_exec_runtime = curr.sum_exec_runtime.wrapping_add(ran);
        curr.vruntime = curr.vruntime.wrapping_add(curr.load.calc_delta_fair(ran));
        let served = self.update_deadline();
        self.update_min_vruntime_pre_6_12();
        if self.timeline.is_empty() {
            return false;
        }
        let resched = served || self.unprotected();
        self.need_resched |= resched;
        resched
    }

    /// Whether, by this kernel, the running entity's lost protection alone ends its turn.
    fn unprotected(&self) -> bool {
        let Some(curr) = &self.curr else { return false };
        match self.generation {
            Generation::V6_6 => false,
            Generation::V6_12 => {
                self.features.preempt_short
                    && !self.protected(curr)
                    && !self.eligibility().of(curr.vruntime)
            }
            Generation::V7_2 => !self.protected(curr),
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
        if !curr.custom_slice || self.generation < Generation::V6_12 {
            curr.slice = self.tunables.base_slice_ns;
        }
        curr.deadline = curr
            .vruntime
            .wrapping_add(curr.load.calc_delta_fair(curr.slice));
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
        debug_assert!(
            self.get(entity.id).is_none(),
            "{} is queued already",
            entity.id
        );
        self.update_curr();
        let others = self.nr_queued();
        self.place_entity(&mut entity, kind, others);
        if kind == EnqueueKind::Migrated {
            entity.exec_start = 0;
        }
        self.nr_delayed += usize::from(entity.sched_delayed);
        self.insert(entity);
    }

    /// Takes `id` off the queue, unless it has to stay for its lag.
    /// Source: fair.c:`dequeue_entity`.
    pub fn dequeue(&mut self, id: TaskId, kind: DequeueKind) -> Dequeued {
        self.update_curr();
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
        self.leave(entity, kind)
            .map_or(Dequeued::Absent, Dequeued::Yes)
    }

    /// Completes the delayed dequeue of `id`, as when the task dies or changes its class;
    /// `None` if it is not delayed. Source: fair.c:`dequeue_entities` with `DEQUEUE_DELAYED`.
    pub fn finish_delayed(&mut self, id: TaskId) -> Option<Entity> {
        self.update_curr();
        let entity = self
            .get(id)
            .copied()
            .filter(|entity| entity.sched_delayed)?;
        let mut entity = self.leave(entity, DequeueKind::Sleep)?;
        entity.sched_delayed = false;
        if self.generation == Generation::V6_12 && self.features.delay_zero {
            entity.vlag = entity.vlag.min(0);
        }
        Some(entity)
    }

    fn delay(&mut self, entity: &Entity) {
        let from_7_2 = self.generation == Generation::V7_2;
        let vlag = if from_7_2 {
            self.update_entity_lag(entity).0
        } else {
            entity.vlag
        };
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

    fn get_mut(&mut self, id: TaskId) -> Option<&mut Entity> {
        match &mut self.curr {
            Some(curr) if curr.id == id => self.curr.as_mut(),
            _ => self.timeline.get_mut(id),
        }
    }

    /// Out of the tree, or from the CPU.
    fn take_out(&mut self, id: TaskId) -> Option<Entity> {
        if self.curr.as_ref().is_some_and(|curr| curr.id == id) {
            self.curr.take()
        } else {
            self.remove(id)
        }
    }

    /// Wakes `id`, which sleeps but is still queued here; false if that is not so.
    /// Source: fair.c:`requeue_delayed_entity`.
    pub fn requeue_delayed(&mut self, id: TaskId) -> bool {
        let from_7_2 = self.generation == Generation::V7_2;
        if from_7_2 {
            self.update_curr();
        }
        let Some(entity) = self.get(id).copied().filter(|e| e.sched_delayed) else {
            return false;
        };
        if from_7_2 {
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
    fn replace_delayed(&mut self, id: TaskId, vlag: i64, moves: bool) {
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

    /// Which entity should run now; the running one counts. Delayed entities whose turn has
    /// come leave instead (see [`CfsRq::take_departed`]). Source: fair.c:`pick_task_fair`.
    pub fn pick(&mut self) -> Option<TaskId> {
        loop {
            self.update_curr();
            let id = self.pick_eevdf(true)?;
            if !self.depart_if_delayed(id) {
                return Some(id);
            }
        }
    }

    fn depart_if_delayed(&mut self, id: TaskId) -> bool {
        if !self.get(id).is_some_and(|entity| entity.sched_delayed) {
            return false;
        }
        let entity = self.finish_delayed(id);
        self.departed.extend(entity);
        true
    }

    /// The earliest eligible virtual deadline; `protect` = respect the running entity's slice
    /// protection. `None` only on an empty queue.
    fn pick_eevdf(&self, protect: bool) -> Option<TaskId> {
        if self.timeline.is_empty() {
            return self.curr.as_ref().map(|curr| curr.id);
        }
        if self.curr.is_none() && self.timeline.len() == 1 {
            return self.timeline.first().map(|entity| entity.id);
        }
        let eligible = self.eligibility();
        let curr = self.curr.as_ref().filter(|curr| eligible.of(curr.vruntime));
        if let Some(curr) = curr
            && protect
            && (self.generation == Generation::V7_2 || self.features.run_to_parity)
            && self.protected(curr)
        {
            return Some(curr.id);
        }
        let best = self
            .timeline
            .first_eligible(|vruntime| eligible.of(vruntime));
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
    pub fn set_next(&mut self, id: TaskId, first: bool) -> bool {
        debug_assert!(self.curr.is_none(), "the CPU is taken");
        let Some(mut entity) = self.remove(id) else {
            return false;
        };
        match self.generation {
            Generation::V6_6 | Generation::V6_12 => entity.vlag = entity.deadline as i64,
            Generation::V7_2 if first => entity.vprot = self.protected_until(&entity),
            Generation::V7_2 => {}
        }
        entity.exec_start = self.clock_task;
        self.curr = Some(entity);
        true
    }

    /// How far `entity`, just picked and out of the tree, may run undisturbed: to its deadline,
    /// or for the shortest slice that anyone waiting asks for (7.2, `set_protect_slice`).
    fn protected_until(&self, entity: &Entity) -> u64 {
        let quantum = if self.features.run_to_parity {
            self.min_slice()
        } else {
            self.tunables.normalized_base_slice_ns
        };
        if quantum >= entity.slice {
            return entity.deadline;
        }
        earlier(
            entity.deadline,
            entity
                .vruntime
                .wrapping_add(entity.load.calc_delta_fair(quantum)),
        )
    }

    /// Takes the running entity off the CPU, back into the tree. Source: `put_prev_entity`.
    pub fn put_prev(&mut self) {
        self.update_curr();
        if let Some(prev) = self.curr.take() {
            self.insert(prev);
        }
    }

    /// Picks and switches, as `__schedule` does; the running entity if it goes on keeps its
    /// slice protection as it is.
    pub fn schedule(&mut self) -> Option<TaskId> {
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
