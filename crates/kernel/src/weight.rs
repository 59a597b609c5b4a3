//! Nice levels as weights, and real time as the virtual time of a weight.
//!
//! ```text
//!  weight(nice)    ≈ 1024 / 1.25^nice                  one nice level ≈ 10 % of a CPU
//!  inv_weight      ≈ 2^32 / weight
//!  calc_delta_fair = delta · 1024 / weight
//!                  ≈ delta · (1024 · inv_weight) >> 32         up to 6.12
//! ```
//!
//! The weights of the nice levels were chosen by hand, within 2.5 % of the formula; their inverses
//! are rounded sometimes down and sometimes up. The inverse of any other weight is rounded down.
//! The difference of one in the last place shows in a vruntime after a few milliseconds.
//!
//! Inside the kernel a weight has ten more bits (`scale_load`): [`LoadWeight`]. PELT uses it scaled
//! down: [`Weight`].
//!
//! Source: kernel/sched/core.c:sched_prio_to_weight, sched_prio_to_wmult,
//! kernel/sched/fair.c:__calc_delta.

use crate::units::Weight;
use crate::{KernelRev, features};

/// Weight of nice −20 … 19 (`sched_prio_to_weight`).
#[rustfmt::skip]
pub const SCHED_PRIO_TO_WEIGHT: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
     9548,  7620,  6100,  4904,  3906,  3121,  2501,  1991,  1586,  1277,
     1024,   820,   655,   526,   423,   335,   272,   215,   172,   137,
      110,    87,    70,    56,    45,    36,    29,    23,    18,    15,
];

/// 2³² / weight of nice −20 … 19 (`sched_prio_to_wmult`).
#[rustfmt::skip]
pub const SCHED_PRIO_TO_WMULT: [u32; 40] = [
       48388,    59856,    76040,    92818,   118348,    147320,    184698,    229616,
      287308,   360437,   449829,   563644,   704093,    875809,   1099582,   1376151,
     1717300,  2157191,  2708050,  3363326,  4194304,   5237765,   6557202,   8165337,
    10153587, 12820798, 15790321, 19976592, 24970740,  31350126,  39045157,  49367440,
    61356676, 76695844, 95443717, 119304647, 148102320, 186737708, 238609294, 286331153,
];

/// Fixed-point bits of a load weight (`SCHED_FIXEDPOINT_SHIFT` on 64-bit kernels).
const SCALE_SHIFT: u32 = 10;
/// The internal weight of nice 0.
pub const NICE_0_LOAD: u64 = 1024 << SCALE_SHIFT;

/// A weight at the kernel's internal resolution, with its inverse (`struct load_weight`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadWeight {
    scaled: u64,
    inv_weight: u32,
}

impl LoadWeight {
    /// The load of a task at `nice`; levels outside −20 … 19 count as the nearest.
    /// Source: core.c:set_load_weight.
    pub const fn of_nice(nice: i32) -> LoadWeight {
        let prio = if nice < -20 {
            0
        } else if nice > 19 {
            39
        } else {
            (nice + 20) as usize
        };
        LoadWeight {
            scaled: (SCHED_PRIO_TO_WEIGHT[prio] as u64) << SCALE_SHIFT,
            inv_weight: SCHED_PRIO_TO_WMULT[prio],
        }
    }

    /// The load of a `SCHED_IDLE` task (`WEIGHT_IDLEPRIO`, `WMULT_IDLEPRIO`).
    pub const fn of_idle_policy() -> LoadWeight {
        LoadWeight { scaled: 3 << SCALE_SHIFT, inv_weight: 1_431_655_765 }
    }

    /// A load of any weight, with its fixed-point bits, as group entities have (`update_load_set`);
    /// its inverse is rounded down. Source: fair.c:__update_inv_weight.
    pub const fn of_scaled(scaled: u64) -> LoadWeight {
        let inv_weight = match scale_load_down(scaled) {
            0 => u32::MAX,
            w if w >= u32::MAX as u64 => 1,
            w => u32::MAX / w as u32,
        };
        LoadWeight { scaled, inv_weight }
    }

    /// The weight as people write it and as PELT uses it, nice 0 = 1024 (`scale_load_down`).
    pub const fn weight(&self) -> Weight {
        Weight(scale_load_down(self.scaled))
    }

    /// The weight with its ten fixed-point bits, nice 0 = 2²⁰ (`load_weight::weight`).
    pub const fn scaled(&self) -> u64 {
        self.scaled
    }

    /// The distance that virtual time moves while this weight runs `delta_ns`.
    ///
    /// Rounding: down; in 7.2 the product wraps at 64 bits, before it loses low bits of the
    /// inverse instead. A weight of 0, which the kernel would divide by, counts as the least.
    ///
    /// `DEVIATES(calc-delta)`: which release between 6.12 and 7.2 went over to the division is not known
    /// here; those in between are taken to behave like 6.12. Only weights other than that of nice 0
    /// differ, by a few nanoseconds of virtual time per update.
    /// Source: fair.c:calc_delta_fair, __calc_delta.
    #[inline]
    pub fn calc_delta_fair(&self, rev: KernelRev, delta_ns: u64) -> u64 {
        if self.scaled == NICE_0_LOAD {
            return delta_ns;
        }
        if rev.has(features::CALC_DELTA_FAIR) {
            return delta_ns.wrapping_mul(NICE_0_LOAD) / self.scaled.max(1);
        }
        calc_delta_by_inverse(delta_ns, NICE_0_LOAD >> SCALE_SHIFT, self.inv_weight)
    }

    /// The part of `delta_ns` that this weight has of `all`, by the inverse of that. Rounding: down.
    /// Source: fair.c:__calc_delta (before 7.2).
    pub fn part_of(&self, all: &LoadWeight, delta_ns: u64) -> u64 {
        calc_delta_by_inverse(delta_ns, scale_load_down(self.scaled), all.inv_weight)
    }
}

/// `delta_ns · weight · inverse / 2^32`. Source: fair.c:__calc_delta (before 7.2).
#[inline]
fn calc_delta_by_inverse(delta_ns: u64, weight: u64, inverse: u32) -> u64 {
    // The factors are kept within 32 bits; what they lose comes off the final shift.
    let above = |fact: u64| u32::BITS - ((fact >> 32) as u32).leading_zeros();
    let first = above(weight);
    let fact = (weight >> first) * inverse as u64;
    let second = above(fact);
    let shift = 32 - (first + second).min(32);
    ((delta_ns as u128 * (fact >> second) as u128) >> shift) as u64
}

/// An internal weight at the resolution people see, at least 2 unless 0.
/// Source: sched.h:scale_load_down.
pub const fn scale_load_down(scaled: u64) -> u64 {
    match scaled >> SCALE_SHIFT {
        0 | 1 if scaled != 0 => 2,
        down => down,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_follow_their_formulas() {
        // 1.25^n as the exact fraction 5^n / 4^n, so that no float is needed.
        for (i, &weight) in SCHED_PRIO_TO_WEIGHT.iter().enumerate() {
            let (up, down) = if i < 20 { (20 - i, 0) } else { (0, i - 20) };
            let (num, den) = (
                5u128.pow(up as u32) * 4u128.pow(down as u32),
                4u128.pow(up as u32) * 5u128.pow(down as u32),
            );
            let formula_x1000 = 1024 * 1000 * num / den;
            let off = (weight as u128 * 1000).abs_diff(formula_x1000);
            assert!(off * 1000 <= formula_x1000 * 25, "nice {}: {weight}", i as i32 - 20);
        }
        for (&weight, &wmult) in SCHED_PRIO_TO_WEIGHT.iter().zip(&SCHED_PRIO_TO_WMULT) {
            let floor = (1u64 << 32) / weight as u64;
            assert!((floor..=floor + 1).contains(&(wmult as u64)), "{weight}: {wmult}");
        }
        assert_eq!(LoadWeight::of_idle_policy(), LoadWeight::of_scaled(3 << SCALE_SHIFT));
    }

    #[test]
    fn virtual_time_is_real_time_over_weight() {
        let ms4 = |rev, nice| LoadWeight::of_nice(nice).calc_delta_fair(rev, 4_000_000);
        assert_eq!(ms4(KernelRev::V7_2, 5), 4_000_000 * 1024 / 335);
        for nice in -20..20 {
            let (old, new) = (ms4(KernelRev::V6_12, nice), ms4(KernelRev::V7_2, nice));
            assert!(old.abs_diff(new) <= 1 + new / 10_000, "nice {nice}: {old} vs {new}");
        }
        let differs = |nice| ms4(KernelRev::V6_12, nice) != ms4(KernelRev::V7_2, nice);
        assert!((-20..20).any(differs), "the inverse loses bits");
        let nice_0 = LoadWeight::of_nice(0);
        assert_eq!(nice_0.calc_delta_fair(KernelRev::V6_12, u64::MAX), u64::MAX);
    }

    #[test]
    fn extremes_do_not_panic() {
        for weight in [0, 1, 2, 3, u32::MAX as u64, u64::MAX >> 10] {
            let load = LoadWeight::of_scaled(weight << SCALE_SHIFT);
            for rev in [KernelRev::V6_12, KernelRev::V7_2] {
                load.calc_delta_fair(rev, u64::MAX);
            }
        }
        assert_eq!(LoadWeight::of_scaled(1 << SCALE_SHIFT).weight(), Weight(2), "never below 2");
        assert_eq!(LoadWeight::of_nice(-99), LoadWeight::of_nice(-20));
        assert_eq!(LoadWeight::of_nice(99), LoadWeight::of_nice(19));
    }
}
