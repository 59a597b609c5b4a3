//! The fair runqueue of whichever kernel is meant: CFS up to 6.5, EEVDF from 6.6.
//!
//! ```text
//!  CfsRq ─┬─ cfs::CfsRq      5.10 … 6.5    who has had least runs; slices of a common period
//!         └─ eevdf::CfsRq    6.6 … 7.3     the earliest eligible deadline; slices of one's own
//! ```
//!
//! What only one of the two knows (delayed dequeue, slices of tasks, lag) does nothing in the other.

use crate::cfs;
use crate::eevdf::{
    self, BuddyOf, DequeueKind, Dequeued, EnqueueKind, Entity, EntityId, FairPolicy, LoadWeight,
    Place, Wakeup,
};
use crate::switches::Switches;
use crate::units::Weight;
use crate::{KernelRev, features};
use alloc::vec::Vec;

/// Whether this kernel's fair class is CFS.
pub fn is_cfs(rev: KernelRev) -> bool {
    !rev.has(features::EEVDF)
}

/// The lengths of time that either form depends on, and the switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// Tunables of EEVDF, from 6.6.
    pub eevdf: eevdf::Tunables,
    /// Tunables of CFS, before 6.6.
    pub cfs: cfs::Tunables,
    /// The scheduler's switches.
    pub switches: Switches,
}

impl Tunables {
    /// The defaults of `rev` on a machine with `cpus` CPUs and `hz` ticks a second.
    pub fn of(rev: KernelRev, cpus: u32, hz: u32) -> Tunables {
        Tunables {
            eevdf: eevdf::Tunables::of(rev, cpus, hz),
            cfs: cfs::Tunables::of(cpus),
            switches: Switches::of(rev),
        }
    }

    /// The least running time, in ns, of a task that did not ask for a slice itself: the minimum
    /// granularity of CFS, the base slice of EEVDF.
    pub fn base_slice_ns(&self, rev: KernelRev) -> u64 {
        if is_cfs(rev) { self.cfs.min_granularity_ns } else { self.eevdf.base_slice_ns }
    }
}

/// The fair runqueue of one CPU, or of one group on it (`struct cfs_rq`).
#[derive(Clone, Debug)]
pub enum CfsRq {
    /// CFS's queue, up to 6.5.
    Cfs(cfs::CfsRq),
    /// EEVDF's queue, from 6.6.
    Eevdf(eevdf::CfsRq),
}

macro_rules! either {
    // What only one of the two has.
    ($self:expr, cfs: $cfs:expr, eevdf($rq:ident): $eevdf:expr) => {
        match $self {
            CfsRq::Cfs(_) => $cfs,
            CfsRq::Eevdf($rq) => $eevdf,
        }
    };
    ($self:expr, $rq:ident => $of:expr) => {
        match $self {
            CfsRq::Cfs($rq) => $of,
            CfsRq::Eevdf($rq) => $of,
        }
    };
    ($self:expr, $rq:ident => cfs: $cfs:expr, eevdf: $eevdf:expr) => {
        match $self {
            CfsRq::Cfs($rq) => $cfs,
            CfsRq::Eevdf($rq) => $eevdf,
        }
    };
}

impl CfsRq {
    /// An empty runqueue.
    pub fn new(rev: KernelRev, tunables: Tunables) -> CfsRq {
        if is_cfs(rev) {
            let features = cfs::Features::switched(rev, tunables.switches);
            return CfsRq::Cfs(cfs::CfsRq::new(rev, features, tunables.cfs));
        }
        let features = eevdf::Features::switched(rev, tunables.switches);
        CfsRq::Eevdf(eevdf::CfsRq::new(rev, features, tunables.eevdf))
    }

    /// Turns `DELAY_DEQUEUE` off, so that no task stays queued asleep.
    pub fn keep_no_sleepers(&mut self) {
        if let CfsRq::Eevdf(rq) = self {
            rq.set_features(|features| features.delay_dequeue = false);
        }
    }

    /// The queue as CFS's, for what only CFS knows; `None` under EEVDF.
    pub fn as_cfs(&self) -> Option<&cfs::CfsRq> {
        match self {
            CfsRq::Cfs(rq) => Some(rq),
            CfsRq::Eevdf(_) => None,
        }
    }

    /// The queue as one of CFS, to change; `None`: EEVDF's.
    pub fn as_cfs_mut(&mut self) -> Option<&mut cfs::CfsRq> {
        match self {
            CfsRq::Cfs(rq) => Some(rq),
            CfsRq::Eevdf(_) => None,
        }
    }

    /// Sets the task clock (`rq_clock_task`: time less interrupts), in ns.
    #[inline]
    pub fn update_clock(&mut self, clock_task_ns: u64) {
        either!(self, rq => rq.update_clock(clock_task_ns));
    }

    /// The queue finds itself in a run under way: v0 (`min_vruntime`, `zero_vruntime`) is `zero` there. Virtual
    /// times are counted from the same origin here already, or everything moves.
    pub fn resume(&mut self, zero: u64, same_origin: bool) {
        either!(self, rq => rq.resume(zero, same_origin));
    }

    /// Puts one queued entity back at `place`, as [`CfsRq::resume`] does for the queue.
    pub fn resume_entity(&mut self, id: EntityId, place: &Place) {
        either!(self, rq => rq.resume_entity(id, place));
    }

    /// The vruntime v0 from which the queue counts (`min_vruntime`, from 6.18 on `zero_vruntime`).
    pub fn zero_vruntime(&self) -> u64 {
        either!(self, rq => cfs: rq.min_vruntime(), eevdf: rq.zero_vruntime())
    }

    /// Entities queued, running and delayed ones included (`nr_queued`, `nr_running`).
    #[inline]
    pub fn nr_queued(&self) -> usize {
        either!(self, rq => cfs: rq.nr_running(), eevdf: rq.nr_queued())
    }

    /// Entities that want to run: without the delayed ones (`h_nr_runnable`).
    #[inline]
    pub fn nr_runnable(&self) -> usize {
        either!(self, rq => cfs: rq.nr_running(), eevdf: rq.nr_runnable())
    }

    /// The running entity.
    #[inline]
    pub fn curr(&self) -> Option<&Entity> {
        either!(self, rq => rq.curr())
    }

    /// The entity of `id` if it is queued here, running or not.
    #[inline]
    pub fn get(&self, id: impl Into<EntityId>) -> Option<&Entity> {
        either!(self, rq => rq.get(id))
    }

    /// Iterates over all queued entities: the running one, then the others by task number.
    pub fn iter(&self) -> impl Iterator<Item = &Entity> {
        self.curr().into_iter().chain(either!(self, rq => rq.timeline().iter()))
    }

    /// The sum of the queued entities' weights, delayed ones included (`cfs_rq::load`).
    #[inline]
    pub fn load_weight(&self) -> Weight {
        either!(self, rq => rq.load_weight())
    }

    /// Whether the running entity should be replaced (`TIF_NEED_RESCHED`).
    #[inline]
    pub fn need_resched(&self) -> bool {
        either!(self, rq => rq.need_resched())
    }

    /// `clear_tsk_need_resched`.
    #[inline]
    pub fn clear_need_resched(&mut self) {
        either!(self, rq => rq.clear_need_resched());
    }

    /// Entities whose delayed dequeue has been completed since the last call.
    #[inline]
    pub fn take_departed(&mut self) -> Vec<Entity> {
        either!(self, cfs: Vec::new(), eevdf(rq): rq.take_departed())
    }

    /// Takes back what [`CfsRq::take_departed`] gave, emptied, so that the next ones need no new room.
    pub fn keep_room(&mut self, emptied: Vec<Entity>) {
        either!(self, cfs: (), eevdf(rq): rq.keep_room(emptied));
    }

    /// Whether [`CfsRq::take_departed`] would give any.
    #[inline]
    pub fn has_departed(&self) -> bool {
        either!(self, cfs: false, eevdf(rq): rq.has_departed())
    }

    /// Whether `id` has had no more service than it ought to; nobody asks CFS.
    pub fn entity_eligible(&self, id: impl Into<EntityId>) -> bool {
        either!(self, rq => cfs: rq.get(id).is_some(), eevdf: rq.entity_eligible(id))
    }

    /// The shortest slice asked for in the queue; `u64::MAX`: nobody asks.
    #[inline]
    pub fn min_slice(&self) -> u64 {
        either!(self, cfs: u64::MAX, eevdf(rq): rq.min_slice())
    }

    /// Accounts the running entity's time up to the clock; true if its turn is over by it (CFS looks
    /// at the tick only).
    #[inline]
    pub fn update_curr(&mut self) -> bool {
        either!(self, rq => cfs: { rq.update_curr(); false }, eevdf: rq.update_curr())
    }

    /// Forgets how long the queued `id` ran at its last accounting.
    pub fn clear_delta_exec(&mut self, id: impl Into<EntityId>) {
        match self {
            CfsRq::Cfs(rq) => {
                if let Some(entity) = rq.get_mut(id.into()) {
                    entity.delta_exec = 0;
                }
            }
            CfsRq::Eevdf(rq) => rq.clear_delta_exec(id),
        }
    }

    /// The scheduler tick; true if the running entity should be replaced.
    #[inline]
    pub fn tick(&mut self) -> bool {
        either!(self, rq => rq.tick())
    }

    /// Queues `entity`.
    #[inline]
    pub fn enqueue(&mut self, entity: Entity, kind: EnqueueKind) {
        either!(self, rq => rq.enqueue(entity, kind));
    }

    /// Takes `id` off the queue, unless it has to stay for its lag.
    #[inline]
    pub fn dequeue(&mut self, id: impl Into<EntityId>, kind: DequeueKind) -> Dequeued {
        match self {
            CfsRq::Cfs(rq) => rq.dequeue(id, kind).map_or(Dequeued::Absent, Dequeued::Yes),
            CfsRq::Eevdf(rq) => rq.dequeue(id, kind),
        }
    }

    /// Completes the delayed dequeue of `id`; `None` if it is not delayed.
    pub fn finish_delayed(&mut self, id: impl Into<EntityId>) -> Option<Entity> {
        either!(self, cfs: None, eevdf(rq): rq.finish_delayed(id))
    }

    /// Wakes `id`, which sleeps but is still queued here; false if that is not so.
    pub fn requeue_delayed(&mut self, id: impl Into<EntityId>) -> bool {
        either!(self, cfs: false, eevdf(rq): rq.requeue_delayed(id))
    }

    /// Picks the entity that should run now; delayed ones whose turn has come leave instead.
    #[inline]
    pub fn pick(&mut self) -> Option<EntityId> {
        either!(self, rq => rq.pick())
    }

    /// The entity that is next in order, its dequeue delayed or not; changes nothing.
    #[inline]
    pub fn pick_entity(&self) -> Option<EntityId> {
        either!(self, rq => rq.pick_entity())
    }

    /// Takes the delayed `id` out of the queue.
    pub fn depart(&mut self, id: EntityId) {
        either!(self, cfs: (), eevdf(rq): rq.depart(id));
    }

    /// Puts the queued `id` on the CPU; `first` = because it was picked. False if it is not in the
    /// tree.
    #[inline]
    pub fn set_next(&mut self, id: impl Into<EntityId>, first: bool) -> bool {
        either!(self, rq => cfs: rq.set_next(id), eevdf: rq.set_next(id, first))
    }

    /// Puts the queued `id` on the CPU because it was picked, and gives it a new weight at this moment.
    /// False if it is not in the tree.
    pub fn set_next_reweighted(&mut self, id: impl Into<EntityId>, load: LoadWeight) -> bool {
        match self {
            CfsRq::Cfs(rq) => {
                let id = id.into();
                rq.set_next(id) && rq.reweight(id, load)
            }
            CfsRq::Eevdf(rq) => rq.set_next_reweighted(id, load),
        }
    }

    /// Takes the running entity off the CPU, back into the tree.
    #[inline]
    pub fn put_prev(&mut self) {
        either!(self, rq => rq.put_prev());
    }

    /// Whether the just enqueued `id` preempts the running entity.
    #[inline]
    pub fn wakeup_preempt_by(&mut self, id: impl Into<EntityId>, wakeup: &Wakeup) -> bool {
        either!(self, rq => rq.wakeup_preempt_by(id, wakeup))
    }

    /// Tells as which buddies (last, next, skip) this queue holds `id`.
    pub fn buddy_of(&self, id: impl Into<EntityId>) -> BuddyOf {
        either!(self, rq => rq.buddy_of(id))
    }

    /// The queued `id` should run next, unless it is idle (`set_next_buddy`).
    pub fn set_next_buddy(&mut self, id: impl Into<EntityId>) {
        either!(self, rq => rq.set_next_buddy(id));
    }

    /// `id` is no longer the buddies that it is and `of` names.
    pub fn clear_buddy(&mut self, id: impl Into<EntityId>, of: BuddyOf) {
        either!(self, rq => rq.clear_buddy(id, of));
    }

    /// Makes the running entity give way (`sched_yield`); the caller reschedules.
    pub fn yield_task(&mut self) {
        either!(self, rq => rq.yield_task());
    }

    /// A new weight for the queued `id` where it stands; false if it is not queued.
    pub fn reweight(&mut self, id: impl Into<EntityId>, load: LoadWeight) -> bool {
        either!(self, rq => rq.reweight(id, load))
    }

    /// A change of nice of the queued `id`; false if it is not queued.
    pub fn renice(&mut self, id: impl Into<EntityId>, load: LoadWeight) -> bool {
        match self {
            CfsRq::Cfs(rq) => rq.change(id.into(), |entity| entity.load = load),
            CfsRq::Eevdf(rq) => rq.renice(id, load),
        }
    }

    /// A change of slice of the queued `id`; CFS has none of tasks' own.
    pub fn set_slice(&mut self, id: impl Into<EntityId>, slice_ns: Option<u64>) -> bool {
        either!(self, rq => cfs: rq.get(id).is_some(), eevdf: rq.set_slice(id, slice_ns))
    }

    /// Sets another `latency_nice` of the queued `id`; false if it is not queued.
    pub fn set_latency_nice(&mut self, id: impl Into<EntityId>, latency_nice: i8) -> bool {
        either!(self, rq => rq.set_latency_nice(id, latency_nice))
    }

    /// Sets the slice of a queued group's entity to that of its most impatient task, in ns.
    pub fn set_group_slice(&mut self, id: impl Into<EntityId>, slice_ns: u64) {
        either!(self, cfs: (), eevdf(rq): rq.set_group_slice(id, slice_ns));
    }

    /// Sets another policy of the queued `id`; false if it is not queued.
    pub fn set_policy(&mut self, id: impl Into<EntityId>, policy: FairPolicy) -> bool {
        match self {
            CfsRq::Cfs(rq) => rq.change(id.into(), |entity| entity.policy = policy),
            CfsRq::Eevdf(rq) => rq.set_policy(id, policy),
        }
    }
}
