//! Virtual time of a runqueue: V, eligibility, lag, placement, and what a new weight does.
//!
//! ```text
//! V     = sum(w_i * v_i) / sum(w_i)      kept as  v0 + sum(w_i * (v_i - v0)) / sum(w_i), floor
//! lag_i = w_i * (V - v_i)                stored as vlag_i = V - v_i, bounded (`entity_lag`)
//! eligible(v)  <=>  sum(w_i * (v_i - v0)) >= (v - v0) * sum(w_i)
//! place:  v = V - vlag * (W + w) / W,    d = v + slice * 1024 / w
//! renice: vlag' = vlag * w / w',         d' = V + (d - V) * w / w'
//! ```
//!
//! The sums run over the tree; the current entity is added on the fly. Until 6.11 v0 is
//! `min_vruntime`, which only moves forward; from 6.12 (in its stable series) it is
//! `zero_vruntime`, which every exact evaluation of V moves to V. The choice of v0 shows only
//! in the V of an empty runqueue. 7.2 weighs with all fixed-point bits, and no longer lets the
//! product in `eligible` wrap.
//!
//! DEVIATES(eevdf-stable): the forms are those of 6.12.117 and 7.2.12, and those between take that of
//! 6.12. 6.6 to 6.11, whose source is not at hand, take the form that their stable series ended with,
//! and its base slice: 0.7 ms in 6.6 and 6.12, 0.75 ms in 6.7 to 6.11. Mainline 6.12.0 starts an empty
//! queue at another V, with a slice of 0.75 ms.

use super::timeline::before;
use super::{CfsRq, EnqueueKind, Entity, EntityId, Place};
use crate::units::Weight;
use crate::weight::{LoadWeight, scale_load_down};
use crate::{KernelRev, features};

/// The test "may this vruntime run now?" at one moment (`vruntime_eligible`).
#[derive(Clone, Copy)]
pub(super) struct Eligibility {
    v0: u64,
    sum: i64,
    weight: i64,
    wide: bool,
}

impl Eligibility {
    #[inline]
    pub(super) fn of(self, vruntime: u64) -> bool {
        let key = vruntime.wrapping_sub(self.v0) as i64;
        if self.wide {
            i128::from(self.sum) >= i128::from(key) * i128::from(self.weight)
        } else {
            self.sum >= key.wrapping_mul(self.weight)
        }
    }
}

impl CfsRq {
    /// The weight of an entity in V: with the fixed-point bits from 7.2 on, without them before.
    #[inline]
    fn average_weight(&self, load: &LoadWeight) -> i64 {
        if self.rev.has(features::AVG_VRUNTIME_WEIGHT) {
            load.scaled() as i64
        } else {
            load.weight().0 as i64
        }
    }

    /// The weight of all entities in the tree, nice 0 = 1024.
    pub(super) fn tree_weight(&self) -> Weight {
        if self.rev.has(features::AVG_VRUNTIME_WEIGHT) {
            Weight(scale_load_down(self.sum_weight as u64))
        } else {
            Weight(self.sum_weight as u64)
        }
    }

    #[inline]
    fn key(&self, vruntime: u64) -> i64 {
        vruntime.wrapping_sub(self.zero_vruntime) as i64
    }

    /// `avg_vruntime_add` / `sum_w_vruntime_add` and the insertion (`__enqueue_entity`).
    pub(super) fn insert(&mut self, entity: Entity) {
        self.comes(&entity);
        self.timeline.insert(entity);
    }

    fn comes(&mut self, entity: &Entity) {
        let weight = self.average_weight(&entity.load);
        let term = self.key(entity.vruntime).wrapping_mul(weight);
        self.sum_w_vruntime = self.sum_w_vruntime.wrapping_add(term);
        self.sum_weight += weight;
    }

    /// `avg_vruntime_sub` / `sum_w_vruntime_sub` and the removal (`__dequeue_entity`).
    pub(super) fn remove(&mut self, id: EntityId) -> Option<Entity> {
        let entity = self.timeline.remove(id)?;
        self.goes(&entity);
        Some(entity)
    }

    fn goes(&mut self, entity: &Entity) {
        let weight = self.average_weight(&entity.load);
        let term = self.key(entity.vruntime).wrapping_mul(weight);
        self.sum_w_vruntime = self.sum_w_vruntime.wrapping_sub(term);
        self.sum_weight -= weight;
    }

    /// Moves v0 by `delta`, leaving every v_i where it is (`update_zero_vruntime`).
    fn move_zero(&mut self, delta: i64) {
        let shift = self.sum_weight.wrapping_mul(delta);
        self.sum_w_vruntime = self.sum_w_vruntime.wrapping_sub(shift);
        self.zero_vruntime = self.zero_vruntime.wrapping_add_signed(delta);
    }

    /// The vruntime v0 from which keys count (`zero_vruntime`; before 6.12 `min_vruntime`).
    pub fn zero_vruntime(&self) -> u64 {
        self.zero_vruntime
    }

    /// The queue finds itself in a run under way, in which v0 is `zero`; virtual times are counted from the same
    /// origin, so that every v_i stays where it is, or everything moves.
    pub fn resume(&mut self, zero: u64, same_origin: bool) {
        if same_origin {
            return self.move_zero(self.key(zero));
        }
        let by = zero.wrapping_sub(self.zero_vruntime);
        let shift = |e: &mut Entity| {
            e.vruntime = e.vruntime.wrapping_add(by);
            e.deadline = e.deadline.wrapping_add(by);
            e.vprot = e.vprot.wrapping_add(by);
        };
        self.curr.iter_mut().for_each(shift);
        for mut entity in self.timeline.drain() {
            shift(&mut entity);
            self.timeline.insert(entity);
        }
        self.zero_vruntime = zero;
    }

    /// Puts one entity back at `place`, as [`CfsRq::resume`] does for the queue. Up to 6.16 the
    /// `vlag` of a running one is what protects its slice.
    pub fn resume_entity(&mut self, id: EntityId, place: &Place) {
        let take = |e: &mut Entity| {
            (e.vruntime, e.deadline) = (place.vruntime, place.deadline);
            (e.vlag, e.slice, e.vprot) = (place.vlag, place.slice, place.vprot);
            e.load = place.load(e.load);
        };
        if let Some(curr) = self.curr.as_mut().filter(|curr| curr.id == id) {
            take(curr);
        } else if let Some(mut entity) = self.timeline.get(id).copied() {
            let stays = (entity.vruntime, entity.deadline, entity.slice)
                == (place.vruntime, place.deadline, place.slice);
            self.goes(&entity);
            take(&mut entity);
            self.comes(&entity);
            // Among equals it stays where it is: who came first is first.
            match self.timeline.get_mut(id).filter(|_| stays) {
                Some(queued) => *queued = entity,
                None => self.timeline.put_right(entity),
            }
        }
    }

    /// The distance V - v0. Rounding: to the left, so that V itself is eligible.
    fn average_offset(&self) -> i64 {
        let mut weight = self.sum_weight;
        if weight == 0 {
            return self.curr.as_ref().map_or(0, |curr| self.key(curr.vruntime));
        }
        let mut sum = self.sum_w_vruntime;
        if let Some(curr) = &self.curr {
            let w = self.average_weight(&curr.load);
            sum = sum.wrapping_add(self.key(curr.vruntime).wrapping_mul(w));
            weight += w;
        }
        // The division truncates; V has to err to the left, so that V itself is eligible.
        if sum < 0 {
            sum = sum.wrapping_sub(weight - 1);
        }
        sum.wrapping_div(weight)
    }

    /// The runqueue's virtual time V, rounded down: what every entity's vruntime would be had
    /// all been served exactly by weight. On an empty runqueue, the V it was left with.
    /// Source: kernel/sched/fair.c:`avg_vruntime`.
    pub fn avg_vruntime(&self) -> u64 {
        self.zero_vruntime.wrapping_add_signed(self.average_offset())
    }

    /// The first vruntime at which the running entity is not eligible: just beyond the average of
    /// the others. Source: fair.c:`ineligible_vruntime` (7.3).
    pub(super) fn ineligible_vruntime(&self) -> u64 {
        let (mut sum, weight) = (self.sum_w_vruntime, self.sum_weight);
        if weight == 0 {
            return self.zero_vruntime.wrapping_add(1);
        }
        if sum < 0 {
            sum = sum.wrapping_sub(weight - 1);
        }
        self.zero_vruntime.wrapping_add_signed(sum.wrapping_div(weight)).wrapping_add(1)
    }

    /// The average vruntime V; moves v0 there where the kernel does.
    pub(super) fn sync_avg_vruntime(&mut self) -> u64 {
        let offset = self.average_offset();
        if !self.rev.has(features::ZERO_VRUNTIME) {
            return self.zero_vruntime.wrapping_add_signed(offset);
        }
        self.move_zero(offset);
        self.zero_vruntime
    }

    /// Advances v0 to the least vruntime, never back (`update_min_vruntime`, until 6.11).
    pub(super) fn update_min_vruntime_pre_6_12(&mut self) {
        if self.rev.has(features::ZERO_VRUNTIME) {
            return;
        }
        let queued = self.timeline.min_vruntime();
        let least = match (self.curr.as_ref().map(|c| c.vruntime), queued) {
            (Some(curr), Some(queued)) if before(queued, curr) => queued,
            (Some(curr), _) => curr,
            (None, Some(queued)) => queued,
            (None, None) => return,
        };
        let delta = self.key(least);
        if delta > 0 {
            self.move_zero(delta);
        }
    }

    pub(super) fn eligibility(&self) -> Eligibility {
        let mut test = Eligibility {
            v0: self.zero_vruntime,
            sum: self.sum_w_vruntime,
            weight: self.sum_weight,
            wide: self.rev.has(features::VRUNTIME_ELIGIBLE_WIDE),
        };
        if let Some(curr) = &self.curr {
            let w = self.average_weight(&curr.load);
            test.sum = test.sum.wrapping_add(self.key(curr.vruntime).wrapping_mul(w));
            test.weight += w;
        }
        test
    }

    /// `entity`'s lag V - v in virtual ns, bounded by two slices or a tick (until 6.12), or by
    /// the longest slice in the queue and a tick (7.2). Source: fair.c:`entity_lag`.
    pub(super) fn bounded_lag(&self, avruntime: u64, entity: &Entity) -> i64 {
        let vlag = avruntime.wrapping_sub(entity.vruntime) as i64;
        let bound = if self.rev.has(features::CFS_RQ_MAX_SLICE) {
            self.max_slice().wrapping_add(self.tunables.tick_ns)
        } else {
            entity.slice.wrapping_mul(2).max(self.tunables.tick_ns)
        };
        let limit = entity.load.calc_delta_fair(self.delta_rev, bound) as i64;
        vlag.max(limit.wrapping_neg()).min(limit)
    }

    /// The lag a leaving or woken `entity` keeps, and whether it differs from V - v; `entity`
    /// must still be counted in the queue. Source: fair.c:`update_entity_lag`.
    pub(super) fn update_entity_lag(&mut self, entity: &Entity) -> (i64, bool) {
        let avruntime = self.sync_avg_vruntime();
        let mut vlag = self.bounded_lag(avruntime, entity);
        if self.rev.has(features::UPDATE_ENTITY_LAG) && entity.sched_delayed {
            // Staying queued may burn negative lag, never gather more of it.
            vlag = vlag.max(entity.vlag);
            if self.features.delay_zero {
                vlag = vlag.min(0);
            }
        }
        (vlag, avruntime.wrapping_sub(vlag as u64) != entity.vruntime)
    }

    /// Gives `entity`, which is not in the tree, its vruntime and deadline; `others` = queued
    /// entities apart from it. Source: fair.c:`place_entity`.
    pub(super) fn place_entity(&mut self, entity: &mut Entity, kind: EnqueueKind, others: usize) {
        let v = self.sync_avg_vruntime();
        let custom = entity.custom_slice && self.rev.has(features::CUSTOM_SLICE);
        if !custom {
            entity.slice = self.tunables.slice_of(entity.latency_nice);
        }
        let mut vslice = entity.load.calc_delta_fair(self.delta_rev, entity.slice);

        let skip = self.rev.has(features::PLACE_ZERO_LAG) && entity.vlag == 0;
        let lag = if self.features.place_lag && others > 0 && !skip {
            self.inflated_lag(entity)
        } else {
            0
        };
        entity.vruntime = v.wrapping_sub(lag as u64);

        if self.features.place_rel_deadline && entity.rel_deadline {
            entity.deadline = entity.deadline.wrapping_add(entity.vruntime);
            entity.rel_deadline = false;
            return;
        }
        if self.features.place_deadline_initial && kind == EnqueueKind::Initial {
            vslice /= 2;
        }
        entity.deadline = entity.vruntime.wrapping_add(vslice);
    }

    /// The lag to place with, so that `entity.vlag` remains once its own arrival has moved V.
    fn inflated_lag(&mut self, entity: &Entity) -> i64 {
        let curr = self.curr.as_ref().map_or(0, |curr| self.average_weight(&curr.load));
        let load = self.sum_weight + curr;
        let weight = self.average_weight(&entity.load);
        let lag = if self.rev.has(features::LAG_INFLATION) {
            // vl + w·vl/W: the product stays within 64 bits for longer, the rounding differs.
            entity.vlag.wrapping_add(entity.vlag.wrapping_mul(weight).wrapping_div(load.max(1)))
        } else {
            entity.vlag.wrapping_mul(load + weight).wrapping_div(load.max(1))
        };
        // Next to a heavy arrival v0 goes with it, or the products grow beyond 64 bits.
        if self.rev.has(features::PLACE_HEAVY) && weight > load {
            self.move_zero(lag.wrapping_neg());
        }
        lag
    }

    /// `entity`, queued, taken out of the tree and with all its running time committed, gets
    /// a new weight at unchanged lag. Source: fair.c:`reweight_eevdf` (until 6.12).
    pub(super) fn rescale_queued_pre_7_2(&self, v: u64, entity: &mut Entity, load: LoadWeight) {
        if v != entity.vruntime {
            let vlag = rescale(self.bounded_lag(v, entity), &entity.load, &load);
            entity.vruntime = v.wrapping_sub(vlag as u64);
        }
        let vslice = entity.deadline.wrapping_sub(v) as i64;
        entity.deadline = v.wrapping_add(rescale(vslice, &entity.load, &load) as u64);
        entity.load = load;
    }

    /// Gives a queued entity a new weight, from 7.2 on; `vlag` is the bounded lag before,
    /// `protected` whether the entity is running within its protected slice. Source:
    /// fair.c:`reweight_entity`, `rescale_entity`.
    pub(super) fn rescale_queued(
        v: u64,
        entity: &mut Entity,
        load: LoadWeight,
        vlag: i64,
        protected: bool,
    ) {
        let about_v = |at: u64| {
            let offset = rescale(at.wrapping_sub(v) as i64, &entity.load, &load);
            v.wrapping_add(offset as u64)
        };
        let (deadline, vprot) = (about_v(entity.deadline), about_v(entity.vprot));
        entity.vlag = rescale(vlag, &entity.load, &load);
        entity.vruntime = v.wrapping_sub(entity.vlag as u64);
        entity.deadline = deadline;
        if protected {
            entity.vprot = vprot;
        }
        entity.load = load;
    }
}

impl Entity {
    /// A new weight while not queued: the kept lag is worth as much service as before.
    pub(super) fn rescale_asleep(&mut self, rev: KernelRev, load: LoadWeight) {
        self.vlag = rescale(self.vlag, &self.load, &load);
        if rev.has(features::RESCALE_REL_DEADLINE) && self.rel_deadline {
            self.deadline = rescale(self.deadline as i64, &self.load, &load) as u64;
        }
        self.load = load;
    }
}

/// A virtual time of weight `old` in units of weight `new`; truncates towards zero.
fn rescale(virtual_ns: i64, old: &LoadWeight, new: &LoadWeight) -> i64 {
    let product = virtual_ns.wrapping_mul(old.scaled() as i64);
    product.wrapping_div((new.scaled() as i64).max(1))
}
