//! PELT sums of runqueues: how entities join, leave and change them, and how that reaches the
//! group.
//!
//! ```text
//!  cfs_rq.util_avg = Σ se.util_avg          over queued and blocked entities alike
//!  attach:  se.*_sum = se.*_avg · divider   aligned with the runqueue's period, then added
//!  detach:  subtracted, not below 0, and not below avg · PELT_MIN_DIVIDER
//!  remove:  detach without the lock; taken off at the runqueue's next update
//!  group:   ge.avg = grq.avg, copied on propagation; ge.load from the propagated runnable sum
//! ```
//!
//! Left out: `tg->load_avg` and the shares of a group (`update_cfs_group`), bandwidth control.
//!
//! Source: kernel/sched/fair.c, symbols named at each function.

use crate::clock_pelt::RqClock;
use crate::pelt::{
    Decay, Pelt, SchedAvg, get_pelt_divider, update_load_avg_blocked_se, update_load_avg_cfs_rq,
};
use crate::units::{Capacity, ClockPelt, Instant, Util, Weight};
use crate::{KernelRev, features};

/// The PELT side of a `cfs_rq`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CfsRqAvg {
    /// The sums and averages of all attached entities.
    pub avg: SchedAvg,
    /// Averages that left without the lock and are still in the sums.
    pub removed: Removed,
    /// Something joined or left: the group entity above must follow.
    pub propagate: bool,
    /// Runnable time that joined (positive) or left since the last propagation.
    pub prop_runnable_sum: i64,
}

/// Averages of entities that left a runqueue without its lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Number of entities that left.
    pub nr: u32,
    /// Sum of the removed tasks' `load_avg`.
    pub load_avg: u64,
    /// Sum of the removed tasks' `util_avg`.
    pub util_avg: Util,
    /// Sum of the removed tasks' `runnable_avg`.
    pub runnable_avg: Util,
}

impl CfsRqAvg {
    /// Adds to the runnable sum that is to be propagated to the parent. Source:
    /// fair.c:add_tg_cfs_propagate.
    fn add_tg_cfs_propagate(&mut self, runnable_sum: i64) {
        self.propagate = true;
        self.prop_runnable_sum = self.prop_runnable_sum.wrapping_add(runnable_sum);
    }
}

/// Whether a leaving entity's lower bound on the sums is computed in 32 bits, for all three sums,
/// even the 64-bit ones.
///
/// Then every leave cuts the sum itself to 32 bits: a queue with some 88 runnable tasks, or 88 times
/// nice 0 in weight, loses 2³² of its runnable or load sum (about 88 tasks') at the next one.
///
/// `DEVIATES(update-sa)`: which release between 6.12 and 7.2 changed the bounds of a sum's update is not
/// known here; those in between are taken to behave like 6.12. Only sums beyond 32 bits differ.
fn bounds_in_32_bits(rev: KernelRev) -> bool {
    !rev.has(features::UPDATE_SA)
}

/// `val` moved by `delta`, not below 0. Source: fair.c:add_positive.
fn add_positive(val: u64, delta: i64) -> u64 {
    if delta < 0 {
        val.saturating_sub(delta.unsigned_abs())
    } else {
        val.wrapping_add(delta as u64)
    }
}

/// Moves one pair of average and 64-bit sum and holds the sum above its lower bound.
/// Source: fair.c:__update_sa; before, the same written out at each place.
fn update_sa(
    rev: KernelRev,
    decay: &Decay,
    avg: &mut u64,
    sum: &mut u64,
    delta_avg: i64,
    delta_sum: i64,
) {
    *avg = add_positive(*avg, delta_avg);
    *sum = add_positive(*sum, delta_sum);
    let bound = avg.wrapping_mul(decay.pelt_min_divider() as u64);
    *sum = if bounds_in_32_bits(rev) {
        (*sum as u32).max(bound as u32) as u64
    } else {
        (*sum).max(bound)
    };
}

/// [`update_sa`] for util, whose sum has 32 bits.
fn update_sa_util(
    rev: KernelRev,
    decay: &Decay,
    sa: &mut SchedAvg,
    delta_avg: i64,
    delta_sum: i64,
) {
    sa.util_avg.0 = add_positive(sa.util_avg.0, delta_avg);
    let (negative, size) = if bounds_in_32_bits(rev) {
        (delta_sum < 0, delta_sum.unsigned_abs() as u32)
    } else {
        let delta = delta_sum as i32;
        (delta < 0, delta.unsigned_abs())
    };
    sa.util_sum =
        if negative { sa.util_sum.saturating_sub(size) } else { sa.util_sum.wrapping_add(size) };
    let bound = sa.util_avg.0.wrapping_mul(decay.pelt_min_divider() as u64) as u32;
    sa.util_sum = sa.util_sum.max(bound);
}

fn update_sa_load(rev: KernelRev, decay: &Decay, sa: &mut SchedAvg, avg: i64, sum: i64) {
    update_sa(rev, decay, &mut sa.load_avg, &mut sa.load_sum, avg, sum);
}

fn update_sa_runnable(rev: KernelRev, decay: &Decay, sa: &mut SchedAvg, avg: i64, sum: i64) {
    update_sa(rev, decay, &mut sa.runnable_avg.0, &mut sa.runnable_sum, avg, sum);
}

/// Adds an entity's load. Source: fair.c:enqueue_load_avg.
fn enqueue_load_avg(
    rev: KernelRev,
    decay: &Decay,
    cfs: &mut SchedAvg,
    se: &SchedAvg,
    weight: Weight,
) {
    let sum = weight.0.wrapping_mul(se.load_sum);
    if bounds_in_32_bits(rev) {
        cfs.load_avg = cfs.load_avg.wrapping_add(se.load_avg);
        cfs.load_sum = cfs.load_sum.wrapping_add(sum);
    } else {
        update_sa_load(rev, decay, cfs, se.load_avg as i64, sum as i64);
    }
}

/// Takes an entity's load off. Source: fair.c:dequeue_load_avg.
fn dequeue_load_avg(
    rev: KernelRev,
    decay: &Decay,
    cfs: &mut SchedAvg,
    se: &SchedAvg,
    weight: Weight,
) {
    let sum = weight.0.wrapping_mul(se.load_sum);
    update_sa_load(rev, decay, cfs, neg(se.load_avg), neg(sum));
}

/// Negates `v` as the kernel does: unsigned negation, read as signed.
fn neg(v: u64) -> i64 {
    v.wrapping_neg() as i64
}

/// The signals of an entity at its creation: a task carries its full weight as load, a group
/// nothing. Source: fair.c:init_entity_runnable_average.
pub fn init_entity_runnable_average(task_weight: Option<Weight>) -> SchedAvg {
    SchedAvg { load_avg: task_weight.map_or(0, |w| w.0), ..SchedAvg::default() }
}

/// The util a new task starts with, from the runqueue it is first put on.
///
/// ```text
///  util = cfs.util_avg · weight / (cfs.load_avg + 1)      at most half of what is left of the CPU
/// ```
///
/// On an empty runqueue it is half the CPU, on a full one nothing. Rounding: down. Up to 6.9 the
/// product used the weight at its internal resolution (× 1024), so that the cap nearly always
/// applied. Source: fair.c:post_init_entity_util_avg.
pub fn post_init_entity_util_avg(
    rev: KernelRev,
    sa: &mut SchedAvg,
    weight: Weight,
    cfs: &SchedAvg,
    cpu_capacity: Capacity,
) {
    let cap = (cpu_capacity.0.wrapping_sub(cfs.util_avg.0) as i64) / 2;
    if cap > 0 {
        let scaled_down = rev.has(features::POST_INIT_ENTITY_UTIL_AVG);
        let weight = if scaled_down { weight.0 } else { weight.0 << 10 };
        let share = cfs.util_avg.0.wrapping_mul(weight).checked_div(cfs.load_avg.wrapping_add(1));
        sa.util_avg = match share {
            Some(share) if cfs.util_avg.0 != 0 => Util(share.min(cap as u64)),
            _ => Util(cap as u64),
        };
    }
    sa.runnable_avg = sa.util_avg;
}

/// Attaches an entity to a runqueue that is up to date: rebuilds its sums from its averages at the
/// runqueue's position in the period, and adds them. Source: fair.c:attach_entity_load_avg.
pub fn attach_entity_load_avg(
    rev: KernelRev,
    decay: &Decay,
    cfs: &mut CfsRqAvg,
    se: &mut SchedAvg,
    weight: Weight,
) {
    let divider = get_pelt_divider(decay, &cfs.avg) as u64;
    se.last_update_time = cfs.avg.last_update_time;
    se.period_contrib = cfs.avg.period_contrib;
    se.util_sum = se.util_avg.0.wrapping_mul(divider) as u32;
    se.runnable_sum = se.runnable_avg.0.wrapping_mul(divider);
    let load_sum = se.load_avg.wrapping_mul(divider);
    // A weight of 0 does not exist in the kernel; it would divide by it.
    se.load_sum = if weight.0 < load_sum { load_sum / (weight.0 as u32).max(1) as u64 } else { 1 };

    let avg = &mut cfs.avg;
    enqueue_load_avg(rev, decay, avg, se, weight);
    avg.util_avg.0 = avg.util_avg.0.wrapping_add(se.util_avg.0);
    avg.util_sum = avg.util_sum.wrapping_add(se.util_sum);
    avg.runnable_avg.0 = avg.runnable_avg.0.wrapping_add(se.runnable_avg.0);
    avg.runnable_sum = avg.runnable_sum.wrapping_add(se.runnable_sum);
    cfs.add_tg_cfs_propagate(se.load_sum as i64);
}

/// Takes an entity's averages off its runqueue; both are up to date. Source:
/// fair.c:detach_entity_load_avg.
pub fn detach_entity_load_avg(
    rev: KernelRev,
    decay: &Decay,
    cfs: &mut CfsRqAvg,
    se: &SchedAvg,
    weight: Weight,
) {
    dequeue_load_avg(rev, decay, &mut cfs.avg, se, weight);
    let util_sum = -(se.util_sum as i64);
    update_sa_util(rev, decay, &mut cfs.avg, neg(se.util_avg.0), util_sum);
    let (avg, sum) = (neg(se.runnable_avg.0), neg(se.runnable_sum));
    update_sa_runnable(rev, decay, &mut cfs.avg, avg, sum);
    cfs.add_tg_cfs_propagate(neg(se.load_sum));
}

/// Ages a blocked entity to its runqueue's last update, without the lock.
/// Source: fair.c:sync_entity_load_avg.
pub fn sync_entity_load_avg(decay: &Decay, cfs: &CfsRqAvg, se: &mut SchedAvg, weight: Weight) {
    update_load_avg_blocked_se(decay, cfs.avg.last_update_time, se, weight);
}

/// Ages a blocked entity that leaves a runqueue whose lock is not held (migration at wakeup, exit),
/// and notes it to be taken off at the next [`update_cfs_rq_load_avg`].
///
/// The caller then sets `last_update_time` to 0 when the entity migrates.
/// Source: fair.c:remove_entity_load_avg.
pub fn remove_entity_load_avg(
    decay: &Decay,
    cfs: &mut CfsRqAvg,
    se: &mut SchedAvg,
    weight: Weight,
) {
    sync_entity_load_avg(decay, cfs, se, weight);
    let removed = &mut cfs.removed;
    removed.nr = removed.nr.wrapping_add(1);
    removed.util_avg.0 = removed.util_avg.0.wrapping_add(se.util_avg.0);
    removed.load_avg = removed.load_avg.wrapping_add(se.load_avg);
    removed.runnable_avg.0 = removed.runnable_avg.0.wrapping_add(se.runnable_avg.0);
}

/// Ages a task that migrates away from an idle CPU to about now, although that CPU's clock stood
/// still while it slept.
///
/// `sched_clock` is the wall time on the old CPU; nothing happens unless that CPU is idle (then
/// the estimate is worth it) and something is left to age.
/// Source: fair.c:migrate_se_pelt_lag (since 6.0).
pub fn migrate_se_pelt_lag(
    decay: &Decay,
    cfs: &CfsRqAvg,
    rq: &RqClock,
    rq_is_idle: bool,
    sched_clock: Instant,
    se: &mut SchedAvg,
    weight: Weight,
) {
    let decayed = se.load_sum == 0 && se.util_sum == 0 && se.runnable_sum == 0;
    if decayed || !rq_is_idle {
        return;
    }
    let (idle, last_update) = (rq.clock_pelt_idle.0, cfs.avg.last_update_time.0);
    let now = if idle < last_update {
        last_update
    } else {
        idle.wrapping_add(sched_clock.0.wrapping_sub(rq.clock_idle.0))
    };
    update_load_avg_blocked_se(decay, ClockPelt(now), se, weight);
}

/// Takes removed load off and brings a runqueue's signals up to `now`.
///
/// True if something was removed or a period boundary was crossed: the group's load must follow,
/// and the frequency may. `load`, `h_nr_runnable`, `running` as in
/// [`update_load_avg_cfs_rq`]. Source: fair.c:update_cfs_rq_load_avg.
#[inline]
pub fn update_cfs_rq_load_avg<'a>(
    rev: KernelRev,
    pelt: impl Into<Pelt<'a>>,
    now: ClockPelt,
    cfs: &mut CfsRqAvg,
    load: Weight,
    h_nr_runnable: u64,
    running: bool,
) -> bool {
    let pelt = pelt.into();
    let decayed = cfs.removed.nr != 0;
    if decayed {
        take_off_removed(rev, pelt.decay, cfs);
    }
    update_load_avg_cfs_rq(pelt, now, &mut cfs.avg, load, h_nr_runnable, running) || decayed
}

/// The part of [`update_cfs_rq_load_avg`] where entities have left.
fn take_off_removed(rev: KernelRev, decay: &Decay, cfs: &mut CfsRqAvg) {
    let removed = core::mem::take(&mut cfs.removed);
    let divider = get_pelt_divider(decay, &cfs.avg) as u64;
    let sum = |r: u64| neg(r.wrapping_mul(divider));
    let sa = &mut cfs.avg;
    update_sa_load(rev, decay, sa, neg(removed.load_avg), sum(removed.load_avg));
    let (util, runnable) = (removed.util_avg.0, removed.runnable_avg.0);
    update_sa_util(rev, decay, sa, neg(util), sum(util));
    update_sa_runnable(rev, decay, sa, neg(runnable), sum(runnable));
    cfs.add_tg_cfs_propagate(sum(runnable) >> 10);
}

/// Exchanges a queued or blocked entity's load in the runqueue as its weight changes from `old` to
/// `new`. Source: fair.c:reweight_entity (the PELT part).
pub fn reweight_entity_load_avg(
    rev: KernelRev,
    decay: &Decay,
    cfs: &mut CfsRqAvg,
    se: &mut SchedAvg,
    old: Weight,
    new: Weight,
) {
    dequeue_load_avg(rev, decay, &mut cfs.avg, se, old);
    let divider = get_pelt_divider(decay, se) as u64;
    se.load_avg = new.0.wrapping_mul(se.load_sum) / divider;
    enqueue_load_avg(rev, decay, &mut cfs.avg, se, new);
}

/// Carries what joined or left a group's runqueue (`gcfs`, its queued weight `gcfs_load`) over to
/// the group's entity `se` and the runqueue `cfs` that it is on. True if there was something.
/// Source: fair.c:propagate_entity_load_avg.
pub fn propagate_entity_load_avg(
    rev: KernelRev,
    decay: &Decay,
    cfs: &mut CfsRqAvg,
    se: &mut SchedAvg,
    weight: Weight,
    gcfs: &mut CfsRqAvg,
    gcfs_load: Weight,
) -> bool {
    if !gcfs.propagate {
        return false;
    }
    gcfs.propagate = false;
    cfs.add_tg_cfs_propagate(gcfs.prop_runnable_sum);
    update_tg_cfs_util(rev, decay, cfs, se, &gcfs.avg);
    update_tg_cfs_runnable(rev, decay, cfs, se, &gcfs.avg);
    update_tg_cfs_load(rev, decay, cfs, se, weight, gcfs, gcfs_load);
    true
}

/// Copies a group's runqueue's util to the group's entity. Source: fair.c:update_tg_cfs_util.
fn update_tg_cfs_util(
    rev: KernelRev,
    decay: &Decay,
    cfs: &mut CfsRqAvg,
    se: &mut SchedAvg,
    gcfs: &SchedAvg,
) {
    let delta_avg = gcfs.util_avg.0.wrapping_sub(se.util_avg.0) as i64;
    if delta_avg == 0 {
        return;
    }
    let divider = get_pelt_divider(decay, &cfs.avg) as u64;
    se.util_avg = gcfs.util_avg;
    let new_sum = se.util_avg.0.wrapping_mul(divider) as u32;
    let delta_sum = new_sum as i64 - se.util_sum as i64;
    se.util_sum = new_sum;
    update_sa_util(rev, decay, &mut cfs.avg, delta_avg, delta_sum);
}

/// Copies a group's runqueue's runnable to the group's entity. Source:
/// fair.c:update_tg_cfs_runnable.
fn update_tg_cfs_runnable(
    rev: KernelRev,
    decay: &Decay,
    cfs: &mut CfsRqAvg,
    se: &mut SchedAvg,
    gcfs: &SchedAvg,
) {
    let delta_avg = gcfs.runnable_avg.0.wrapping_sub(se.runnable_avg.0) as i64;
    if delta_avg == 0 {
        return;
    }
    let divider = get_pelt_divider(decay, &cfs.avg) as u64;
    se.runnable_avg = gcfs.runnable_avg;
    let new_sum = se.runnable_avg.0.wrapping_mul(divider);
    let delta_sum = new_sum.wrapping_sub(se.runnable_sum) as i64;
    se.runnable_sum = new_sum;
    update_sa_runnable(rev, decay, &mut cfs.avg, delta_avg, delta_sum);
}

/// The group entity's load from the runnable time that joined or left, assuming the least overlap
/// on joining and equally runnable tasks on leaving. Source: fair.c:update_tg_cfs_load.
fn update_tg_cfs_load(
    rev: KernelRev,
    decay: &Decay,
    cfs: &mut CfsRqAvg,
    se: &mut SchedAvg,
    weight: Weight,
    gcfs: &mut CfsRqAvg,
    gcfs_load: Weight,
) {
    let propagated = core::mem::take(&mut gcfs.prop_runnable_sum);
    if propagated == 0 {
        return;
    }
    let divider = get_pelt_divider(decay, &cfs.avg);
    let runnable_sum = if propagated > 0 {
        propagated.wrapping_add(se.load_sum as i64).min(divider as i64)
    } else {
        // div_u64 divides by 32 bits.
        let per_weight = gcfs.avg.load_sum.checked_div(gcfs_load.0 as u32 as u64).unwrap_or(0);
        se.load_sum.min(per_weight) as i64
    };
    let running_sum = (se.util_sum >> 10) as i64;
    let runnable_sum = runnable_sum.max(running_sum) as u64;

    let load_sum = weight.0.wrapping_mul(runnable_sum);
    let load_avg = load_sum / divider as u64;
    let delta_avg = load_avg.wrapping_sub(se.load_avg) as i64;
    if delta_avg == 0 {
        return;
    }
    let delta_sum = load_sum.wrapping_sub(weight.0.wrapping_mul(se.load_sum)) as i64;
    se.load_sum = runnable_sum;
    se.load_avg = load_avg;
    update_sa_load(rev, decay, &mut cfs.avg, delta_avg, delta_sum);
}
