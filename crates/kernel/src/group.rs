//! Task groups: what a group weighs on one CPU, and how much of its parents' load a task is.
//!
//! ```text
//!  shares_cpu = shares · load_cpu / Σ load            of the group's weight, this CPU's part
//!     load_cpu = max(queued weight, load_avg)         queued weight: at once, load_avg: what stays
//!     Σ load   = tg.load_avg − contrib_cpu + load_cpu tg.load_avg is a sum of what CPUs last told
//!  contribution: told again when it is off by more than 1/64, at most once a millisecond
//!  7.3:  shares · min(runnable tasks, CPUs) in place of shares, at least once ("concur")
//!
//!  h_load(group)  = h_load(parent) · ge.load_avg / (load_avg(parent) + 1)
//!  task_h_load    = task.load_avg · h_load(group) / (load_avg(group) + 1)
//!  7.3:  h_weight = Π over levels, from the task up: · weight / queued weight of the level
//! ```
//!
//! Shares have the kernel's ten fixed-point bits. How sums and averages travel up the hierarchy:
//! [`crate::pelt_cfs`]. Left out: the other modes of `sched_cgroup_mode` (7.3), cpusets (all CPUs
//! count), CPUs that go offline.
//!
//! Source: kernel/sched/fair.c.

use crate::units::{Util, Weight};
use crate::weight::NICE_0_LOAD;
use crate::{KernelRev, features};

/// The least a group entity weighs, with its fixed-point bits (`MIN_SHARES`).
const MIN_SHARES: u64 = 2;
/// Nanoseconds between two contributions of a CPU to its group's load (from 6.7).
const CONTRIBUTION_NS: u64 = 1_000_000;

/// A group's load over all CPUs, as far as they have told (`tg->load_avg`, `tg->runnable_avg`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TgLoad {
    /// Σ of the contributions' load.
    pub load_avg: u64,
    /// Σ of the contributions' runnable time, 1024 for each task that always is (from 7.3).
    pub runnable_avg: u64,
}

/// The part of a group's load that one CPU has reported (`tg_load_avg_contrib`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contribution {
    load_avg: u64,
    runnable_avg: u64,
    /// The runqueue's clock then.
    at_ns: u64,
}

impl Contribution {
    /// The load that is in the group's sum.
    pub const fn load_avg(&self) -> u64 {
        self.load_avg
    }

    /// Tells the group how much load its runqueue has on this CPU, if that is worth it.
    /// Source: fair.c:update_tg_load_avg.
    pub fn update_tg_load_avg(
        &mut self,
        rev: KernelRev,
        tg: &mut TgLoad,
        now_ns: u64,
        load_avg: u64,
        runnable_avg: Util,
    ) {
        let limited = rev.has(features::UPDATE_TG_LOAD_AVG_RATE);
        if limited && now_ns.wrapping_sub(self.at_ns) < CONTRIBUTION_NS {
            return;
        }
        let off = |new: u64, told: u64| new.abs_diff(told) > told / 64;
        let told = rev.has(features::CONCUR_SHARES);
        let runnable = told && off(runnable_avg.0, self.runnable_avg);
        if !off(load_avg, self.load_avg) && !runnable {
            return;
        }
        tg.load_avg = tg.load_avg.wrapping_sub(self.load_avg).wrapping_add(load_avg);
        tg.runnable_avg =
            tg.runnable_avg.wrapping_sub(self.runnable_avg).wrapping_add(runnable_avg.0);
        *self = Contribution { load_avg, runnable_avg: runnable_avg.0, at_ns: now_ns };
    }
}

/// The weight of a group's entity on one CPU, with its fixed-point bits.
///
/// `shares`: the group's, scaled; `queued`: the weight queued in it there, scaled; `load_avg`: of its
/// runqueue there. Rounding: down. Source: fair.c:calc_group_shares, from 7.3 calc_concur_shares and
/// __calc_smp_shares.
pub fn calc_group_shares(
    rev: KernelRev,
    shares: u64,
    tg: &TgLoad,
    told: &Contribution,
    queued: u64,
    load_avg: u64,
    cpus: u64,
) -> u64 {
    let all = if rev.has(features::CONCUR_SHARES) {
        let tasks = (tg.runnable_avg >> 10).max(1);
        shares.wrapping_mul(tasks.min(cpus.max(1)))
    } else {
        shares
    };
    let load = crate::weight::scale_load_down(queued).max(load_avg);
    let sum = tg.load_avg.wrapping_sub(told.load_avg).wrapping_add(load);
    let part = all.wrapping_mul(load);
    let part = part.checked_div(sum).unwrap_or(part);
    // The kernel's clamp(): the upper limit wins where the two cross.
    part.max(MIN_SHARES).min(all)
}

/// `cpu.weight` as shares, with their fixed-point bits: 100 weighs as much as nice 0. Rounding: to
/// the nearest. Source: sched.h:sched_weight_from_cgroup, sched_group_set_shares.
pub fn shares_of_cgroup_weight(weight: u64) -> u64 {
    ((weight * 1024 + 50) / 100).clamp(2, 1 << 18) << 10
}

/// The shares of a group with `cpu.idle`. Source: fair.c:sched_group_set_idle.
pub const IDLE_SHARES: u64 = 3 << 10;

/// The product `so_far` times one level of a task's weight in the flat queue of 7.3, from the task
/// up, beginning with [`NICE_0_LOAD`]. `weight`: of the entity, in a queue of weight `queued`;
/// `top`: that queue is the CPU's own. Rounding: down. Source: fair.c:__calc_prop_weight.
pub fn calc_prop_weight(so_far: u64, weight: u64, queued: u64, top: bool) -> u64 {
    let of = if top { NICE_0_LOAD } else { queued.max(1) };
    ((u128::from(so_far) * u128::from(weight) / u128::from(of)) as u64).max(MIN_SHARES)
}

/// The part of load `h_load` of a runqueue (its `load_avg`) that one entity of it has.
/// Rounding: down. Source: fair.c:update_cfs_rq_h_load, task_h_load.
pub fn h_load_of(h_load: u64, load_avg: u64, entity_load_avg: u64) -> u64 {
    h_load.wrapping_mul(entity_load_avg) / load_avg.wrapping_add(1).max(1)
}

/// A scaled weight as PELT counts it (`se_weight`, `scale_load_down`).
pub fn se_weight(scaled: u64) -> Weight {
    Weight(crate::weight::scale_load_down(scaled))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALED: u64 = NICE_0_LOAD;

    #[test]
    fn a_group_on_one_cpu_weighs_all_it_has() {
        let (tg, told) = (TgLoad::default(), Contribution::default());
        for rev in [KernelRev::V6_12, KernelRev::V7_2, KernelRev::V7_3] {
            assert_eq!(calc_group_shares(rev, 3 * SCALED, &tg, &told, SCALED, 0, 8), 3 * SCALED);
        }
    }

    #[test]
    fn two_cpus_with_the_same_load_share_it() {
        let mut tg = TgLoad::default();
        let mut told = [Contribution::default(); 2];
        for told in &mut told {
            told.update_tg_load_avg(KernelRev::V7_2, &mut tg, 1 << 40, 1024, Util(1024));
        }
        assert_eq!(tg, TgLoad { load_avg: 2048, runnable_avg: 2048 });
        let of = |rev| calc_group_shares(rev, SCALED, &tg, &told[0], SCALED, 1024, 8);
        assert_eq!((of(KernelRev::V7_2), of(KernelRev::V7_3)), (SCALED / 2, SCALED));
    }

    #[test]
    fn a_contribution_is_renewed_at_most_each_millisecond_and_for_more_than_a_64th() {
        let (mut tg, mut told) = (TgLoad::default(), Contribution::default());
        let tell = |told: &mut Contribution, tg: &mut TgLoad, ns, load| {
            told.update_tg_load_avg(KernelRev::V7_2, tg, ns, load, Util(0));
            tg.load_avg
        };
        assert_eq!(tell(&mut told, &mut tg, 5_000_000, 640), 640);
        assert_eq!(tell(&mut told, &mut tg, 5_999_999, 900), 640, "too early");
        assert_eq!(tell(&mut told, &mut tg, 6_000_000, 650), 640, "10 of 640 are a 64th");
        assert_eq!(tell(&mut told, &mut tg, 6_000_000, 651), 651);
        // Before 6.7 there was no limit in time.
        told.update_tg_load_avg(KernelRev::new(6, 6), &mut tg, 6_000_001, 0, Util(0));
        assert_eq!(tg.load_avg, 0);
    }

    #[test]
    fn shares_stay_within_their_bounds() {
        let tg = TgLoad { load_avg: 1 << 40, runnable_avg: 0 };
        let told = Contribution::default();
        let of =
            |shares, queued| calc_group_shares(KernelRev::V7_2, shares, &tg, &told, queued, 0, 1);
        assert_eq!((of(SCALED, 0), of(SCALED, SCALED)), (2, 2));
    }

    #[test]
    fn weights_of_cgroups() {
        let of = |w| shares_of_cgroup_weight(w) >> 10;
        assert_eq!([1, 2, 100, 300, 10_000].map(of), [10, 20, 1024, 3072, 102_400]);
    }

    #[test]
    fn in_the_flat_queue_a_group_s_tasks_share_its_weight() {
        // One of two equal tasks in a group of weight 2048 at the top.
        let inner = calc_prop_weight(NICE_0_LOAD, SCALED, 2 * SCALED, false);
        assert_eq!(inner, SCALED / 2);
        assert_eq!(calc_prop_weight(inner, 2 * SCALED, 0, true), SCALED);
        assert_eq!(calc_prop_weight(2, 2, 1 << 40, false), 2, "never nothing");
    }
}
