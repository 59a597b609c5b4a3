//! A weight with its inverse, and the virtual time that a span of real time becomes under it.
//!
//! ```text
//! calc_delta_fair(delta) = delta * 1024 / weight
//!                        ~ delta * (1024 * inv_weight) >> 32,   inv_weight ~ 2^32 / weight
//! ```
//!
//! The inverse of a nice level comes from a table whose roundings follow no single rule; the
//! inverse of any other weight is the floor. Both kinds are needed: they differ by one in the
//! last place, which is visible in a vruntime after a few milliseconds.

use crate::units::Weight;

/// Fixed-point bits of a load weight on 64-bit kernels (`SCHED_FIXEDPOINT_SHIFT`).
const SCALE_SHIFT: u32 = 10;
/// The weight of nice 0, scaled up (`NICE_0_LOAD`).
const NICE_0_LOAD: u64 = 1024 << SCALE_SHIFT;

/// Weights of nice -20 … 19 (`sched_prio_to_weight`).
const PRIO_TO_WEIGHT: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

/// Inverse weights of nice -20 … 19 (`sched_prio_to_wmult`).
const PRIO_TO_WMULT: [u32; 40] = [
    48388, 59856, 76040, 92818, 118348, 147320, 184698, 229616, 287308, 360437, 449829, 563644,
    704093, 875809, 1099582, 1376151, 1717300, 2157191, 2708050, 3363326, 4194304, 5237765,
    6557202, 8165337, 10153587, 12820798, 15790321, 19976592, 24970740, 31350126, 39045157,
    49367440, 61356676, 76695844, 95443717, 119304647, 148102320, 186737708, 238609294, 286331153,
];

/// A load weight with its cached inverse (`struct load_weight`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadWeight {
    scaled: u64,
    inv_weight: u32,
}

impl LoadWeight {
    /// The load of a task at `nice`, clamped to -20 … 19 (`set_load_weight`).
    pub fn of_nice(nice: i32) -> LoadWeight {
        let prio = (nice.clamp(-20, 19) + 20) as usize;
        LoadWeight {
            scaled: PRIO_TO_WEIGHT[prio] << SCALE_SHIFT,
            inv_weight: PRIO_TO_WMULT[prio],
        }
    }

    /// The load of a `SCHED_IDLE` task (`WEIGHT_IDLEPRIO`).
    pub fn of_idle_policy() -> LoadWeight {
        LoadWeight {
            scaled: 3 << SCALE_SHIFT,
            inv_weight: 1_431_655_765,
        }
    }

    /// Any weight; the inverse is its floor, as for group entities (`__update_inv_weight`).
    pub fn of_weight(weight: Weight) -> LoadWeight {
        let inv_weight = match weight.0 {
            0 => u32::MAX,
            w if w >= u64::from(u32::MAX) => 1,
            w => u32::MAX / w as u32,
        };
        LoadWeight {
            scaled: weight.0 << SCALE_SHIFT,
            inv_weight,
        }
    }

    /// The weight as people write it, nice 0 = 1024 (`scale_load_down`).
    pub fn weight(&self) -> Weight {
        Weight(self.scaled >> SCALE_SHIFT)
    }

    /// The weight with its ten fixed-point bits, nice 0 = 2^20 (`load_weight::weight`).
    pub(super) fn scaled(&self) -> u64 {
        self.scaled
    }

    /// How far virtual time moves while this weight runs `delta_ns`; rounds down.
    /// Source: kernel/sched/fair.c:`calc_delta_fair`, `__calc_delta`.
    #[inline]
    pub fn calc_delta_fair(&self, delta_ns: u64) -> u64 {
        if self.scaled == NICE_0_LOAD {
            return delta_ns;
        }
        let mut fact = 1024 * u64::from(self.inv_weight);
        let high = (fact >> 32) as u32;
        let dropped = u32::BITS - high.leading_zeros();
        fact >>= dropped;
        ((u128::from(delta_ns) * u128::from(fact)) >> (32 - dropped)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverses_are_the_weights_inverses_to_one_in_the_last_place() {
        for nice in -20..20 {
            let load = LoadWeight::of_nice(nice);
            let floor = (1u64 << 32) / load.weight().0;
            assert!(
                (floor..=floor + 1).contains(&u64::from(load.inv_weight)),
                "nice {nice}"
            );
        }
        assert_eq!(
            LoadWeight::of_idle_policy(),
            LoadWeight::of_weight(Weight(3)),
            "the idle policy's inverse is no exception"
        );
    }

    #[test]
    fn virtual_time_is_real_time_over_weight() {
        for nice in -20..20 {
            let load = LoadWeight::of_nice(nice);
            let ns = 4_000_000;
            let exact = ns * 1024 / load.weight().0;
            let got = load.calc_delta_fair(ns);
            assert!(
                got.abs_diff(exact) <= 1 + exact / 10_000,
                "nice {nice}: {got} vs {exact}"
            );
        }
        assert_eq!(LoadWeight::of_nice(0).calc_delta_fair(u64::MAX), u64::MAX);
    }

    #[test]
    fn the_table_and_the_floor_differ_at_nice_0_and_others() {
        assert_ne!(LoadWeight::of_nice(-4), LoadWeight::of_weight(Weight(2501)));
        assert_eq!(LoadWeight::of_nice(19), LoadWeight::of_weight(Weight(15)));
    }
}
