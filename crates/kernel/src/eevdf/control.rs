//! Changes of a runqueue from outside the pick: wakeup preemption, yield, new weights and slices of
//! queued tasks.

use super::average::Eligibility;
use super::{CfsRq, DequeueKind, Dequeued, EnqueueKind, Entity, EntityId, FairPolicy, Wakeup};
use super::{earlier, timeline::before};
use crate::features;
use crate::weight::LoadWeight;

impl CfsRq {
    /// [`CfsRq::wakeup_preempt_by`] on a queue of tasks: `fork` = it is a new one.
    pub fn wakeup_preempt(&mut self, id: impl Into<EntityId>, fork: bool) -> bool {
        let id = id.into();
        let (Some(curr), Some(woken)) = (&self.curr, self.get(id)) else { return false };
        let wakeup =
            Wakeup { fork, due: self.need_resched, woken: woken.policy, running: curr.policy };
        self.wakeup_preempt_by(id, &wakeup)
    }

    /// Whether the just enqueued (or requeued) entity `id`, the woken task's own or that of a group
    /// which holds it, preempts the running one; then [`CfsRq::need_resched`] is set.
    /// Source: fair.c:`check_preempt_wakeup_fair`, 7.2: `wakeup_preempt_fair`.
    pub fn wakeup_preempt_by(&mut self, id: impl Into<EntityId>, wakeup: &Wakeup) -> bool {
        let id = id.into();
        let (Some(curr), Some(woken)) = (self.curr, self.get(id).copied()) else {
            return false;
        };
        if self.features.next_buddy
            && !self.rev.has(features::WAKEUP_PREEMPT_FAIR)
            && curr.id != id
            && !wakeup.fork
        {
            self.set_next_buddy(id);
        }
        let decided_when_due = self.rev.has(features::PREEMPT_WHEN_DUE);
        let resched_decides = !decided_when_due || !self.features.preempt_short;
        let due = wakeup.due && resched_decides;
        if curr.id == id || due || !self.features.wakeup_preemption {
            return false;
        }
        if !self.rev.has(features::WAKEUP_BY_ENTITY)
            && let Some(preempts) = wakeup.by_policies_pre_6_12()
        {
            self.need_resched |= preempts;
            return preempts;
        }
        // Of the entities that compete, here and below, but for a task of SCHED_BATCH.
        let [curr_idle, woken_idle] =
            [curr.policy, woken.policy].map(|policy| policy == FairPolicy::Idle);
        let normal = wakeup.woken == FairPolicy::Normal;
        let preempts = if curr_idle && !woken_idle {
            if self.rev.has(features::CANCEL_PROTECT_SLICE) {
                self.cancel_protection();
            }
            true
        } else if self.rev.has(features::WAKEUP_PREEMPT_NEXT) {
            self.update_curr();
            let may = curr_idle == woken_idle && normal;
            self.preempted_by_or_protected(&woken, may, wakeup.fork)
        } else if curr_idle != woken_idle || !normal {
            false
        } else {
            self.update_curr();
            if self.rev.has(features::WAKEUP_PREEMPT_FAIR) {
                self.preempted_by_pre_7_3(&woken, wakeup.fork)
            } else {
                self.preempted_by_pre_7_2(&woken)
            }
        };
        self.need_resched |= preempts;
        preempts
    }

    fn preempted_by_pre_7_2(&mut self, woken: &Entity) -> bool {
        let eligible = self.eligibility();
        if self.features.preempt_short
            && self.curr.as_ref().is_some_and(|curr| shorter(woken, curr, eligible))
        {
            self.cancel_protection();
        }
        // The next buddy counts only where a task is picked to run.
        self.pick_by_deadline(true) == Some(woken.id)
    }

    fn preempted_by_pre_7_3(&mut self, woken: &Entity, fork: bool) -> bool {
        let short = self.features.preempt_short
            && self.curr.as_ref().is_some_and(|curr| woken.slice < curr.slice);
        if !short {
            if fork || woken.sched_delayed {
                return false;
            }
            self.set_preempt_buddy(woken);
        }
        while let Some(next) = self.pick_eevdf(!short) {
            // As in the kernel: who is met delayed has left, even if it is the running one.
            if !self.depart_if_delayed(next) {
                if next == woken.id {
                    if short {
                        self.cancel_protection();
                    }
                    return true;
                }
                break;
            }
        }
        if self.features.run_to_parity {
            self.shorten_protection();
        }
        false
    }

    /// Decides whether `woken` preempts, from 7.3 on: one that does not shortens the protection,
    /// and one that asks for shorter slices and is eligible comes next even where another would be
    /// picked.
    fn preempted_by_or_protected(&mut self, woken: &Entity, may: bool, fork: bool) -> bool {
        let short = self.features.preempt_short
            && self.curr.as_ref().is_some_and(|curr| woken.slice < curr.slice);
        let competes = may && !woken.sched_delayed && (short || !fork);
        if competes && !short {
            self.set_preempt_buddy(woken);
        }
        let preempts = competes && self.is_next(woken, short);
        if preempts {
            self.cancel_protection();
            let sooner =
                self.next.and_then(|id| self.get(id)).is_some_and(|n| n.slice < woken.slice);
            if short && !sooner {
                self.set_next_buddy(woken.id);
            }
        } else if self.features.run_to_parity {
            self.shorten_protection();
        }
        preempts
    }

    /// `NEXT_BUDDY`, from 7.2 on: `woken` comes next, unless another one that does has an earlier deadline
    /// (`set_preempt_buddy`).
    fn set_preempt_buddy(&mut self, woken: &Entity) {
        let next = self.next.and_then(|id| self.get(id));
        let sooner = next.is_some_and(|next| before(next.deadline, woken.deadline));
        if self.features.next_buddy && !sooner {
            self.set_next_buddy(woken.id);
        }
    }

    /// Whether `woken` is picked now, or may be first for its short slice.
    fn is_next(&mut self, woken: &Entity, short: bool) -> bool {
        while let Some(next) = self.pick_eevdf(!short) {
            if !self.depart_if_delayed(next) {
                return next == woken.id || (short && self.entity_eligible(woken.id));
            }
        }
        false
    }

    /// Protects the running entity no longer than the shortest slice in the queue, from now
    /// (`update_protect_slice`); from 7.3 from V, if that is earlier.
    fn shorten_protection(&mut self) {
        let slice = self.min_slice();
        let from_v = self.rev.has(features::PROTECT_WHILE_ELIGIBLE);
        let v = from_v.then(|| self.avg_vruntime());
        if let Some(curr) = &mut self.curr {
            let from = v.map_or(curr.vruntime, |v| earlier(curr.vruntime, v));
            let until = from.wrapping_add(curr.load.calc_delta_fair(self.delta_rev, slice));
            curr.vprot = earlier(curr.vprot, until);
        }
    }

    /// `cancel_protect_slice`.
    fn cancel_protection(&mut self) {
        if !self.curr_protected() {
            return;
        }
        let Some(curr) = &mut self.curr else { return };
        if self.rev.has(features::VPROT) {
            curr.vprot = curr.vruntime;
        } else {
            curr.vlag = curr.deadline.wrapping_add(1) as i64;
        }
    }

    /// Makes the running entity give up the rest of its request (`sched_yield`); the caller
    /// reschedules. Nothing happens if it is alone. Source: fair.c:`yield_task_fair`.
    pub fn yield_task(&mut self) {
        if self.timeline.is_empty() {
            return;
        }
        self.update_curr();
        let eligible = self.eligibility();
        let pre_6_12 = !self.rev.has(features::YIELD_TASK_FAIR);
        let Some(curr) = &mut self.curr else { return };
        if pre_6_12 {
            let more = curr.load.calc_delta_fair(self.delta_rev, curr.slice);
            curr.deadline = curr.deadline.wrapping_add(more);
        } else if eligible.of(curr.vruntime) {
            curr.vruntime = curr.deadline;
            self.update_deadline();
        }
    }

    /// A new weight for the queued `id` where it stands, at unchanged lag; false if it is not
    /// queued. (A change of nice goes through [`CfsRq::renice`].)
    /// Source: fair.c:`reweight_entity`.
    pub fn reweight(&mut self, id: impl Into<EntityId>, load: LoadWeight) -> bool {
        let id = id.into();
        if self.get(id).is_none() {
            return false;
        }
        self.update_curr();
        let v = self.sync_avg_vruntime();
        let lag = self.entity_lag(id).unwrap_or(0);
        let is_curr = self.curr.as_ref().is_some_and(|curr| curr.id == id);
        let protected = is_curr && self.curr_protected();
        let Some(mut entity) = self.take_out(id) else {
            return false;
        };
        if self.rev.has(features::REWEIGHT_ENTITY) {
            CfsRq::rescale_queued(v, &mut entity, load, lag, protected);
        } else {
            self.rescale_queued_pre_7_2(v, &mut entity, load);
        }
        if is_curr {
            self.curr = Some(entity);
        } else {
            self.insert(entity);
        }
        self.update_min_vruntime_pre_6_12();
        true
    }

    /// A change of nice of the queued `id`: it leaves, takes its new weight and comes back;
    /// false if it is not queued. Source: `set_user_nice`.
    pub fn renice(&mut self, id: impl Into<EntityId>, load: LoadWeight) -> bool {
        let id = id.into();
        let rev = self.rev;
        self.change(id, |entity| entity.rescale_asleep(rev, load))
    }

    /// A change of slice of the queued `id`, as [`Entity::request_slice`]; false if it is not
    /// queued. Source: `sched_setattr`.
    pub fn set_slice(&mut self, id: impl Into<EntityId>, slice_ns: Option<u64>) -> bool {
        let id = id.into();
        self.change(id, |entity| entity.request_slice(slice_ns))
    }

    /// Sets another `latency_nice` of the queued `id`, which counts for itself from its next
    /// request on, for others at once; false if it is not queued. Source: `set_latency_fair`.
    pub fn set_latency_nice(&mut self, id: impl Into<EntityId>, latency_nice: i8) -> bool {
        let (id, slice) = (id.into(), self.tunables.slice_of(latency_nice));
        let Some(custom) = self.get(id).map(|e| e.custom_slice) else { return false };
        match &mut self.curr {
            Some(curr) if curr.id == id => curr.latency_nice = latency_nice,
            _ => {
                if let Some(entity) = self.timeline.get_mut(id) {
                    entity.latency_nice = latency_nice;
                }
            }
        }
        if !custom {
            self.set_group_slice(id, slice);
        }
        true
    }

    /// Sets the slice of a queued group's entity, where it stands, to that of its most impatient
    /// task. Source: fair.c:`enqueue_task_fair`, `dequeue_entities` (6.12).
    pub fn set_group_slice(&mut self, id: impl Into<EntityId>, slice_ns: u64) {
        let id = id.into();
        match &mut self.curr {
            Some(curr) if curr.id == id => curr.slice = slice_ns,
            _ => self.timeline.set_slice(id, slice_ns),
        }
    }

    /// Sets another policy of the queued `id`; false if it is not queued. Source: `sched_setattr`.
    pub fn set_policy(&mut self, id: impl Into<EntityId>, policy: FairPolicy) -> bool {
        self.change(id.into(), |entity| entity.policy = policy)
    }

    fn change(&mut self, id: EntityId, change: impl FnOnce(&mut Entity)) -> bool {
        let running = self.curr.as_ref().is_some_and(|curr| curr.id == id);
        let Dequeued::Yes(mut entity) = self.dequeue(id, DequeueKind::Save) else {
            return false;
        };
        change(&mut entity);
        self.enqueue(entity, EnqueueKind::Restore);
        if running {
            self.set_next(id, false);
        }
        true
    }
}

/// Whether `woken`, with its shorter slice, ends `curr`'s protection (6.12,
/// `do_preempt_short`).
fn shorter(woken: &Entity, curr: &Entity, eligible: Eligibility) -> bool {
    woken.slice < curr.slice
        && eligible.of(woken.vruntime)
        && (before(woken.deadline, curr.deadline) || !eligible.of(curr.vruntime))
}
