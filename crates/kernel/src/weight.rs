//! Nice levels as weights, and time scaled by them.
//!
//! ```text
//!  weight(nice) ≈ 1024 / 1.25^nice            one nice level ≈ 10 % of a CPU
//!  wmult(nice)  = 2^32 / weight, rounded
//!  vruntime     = delta · 1024 / weight       (calc_delta_fair)
//! ```
//!
//! Inside the kernel a weight has 10 more bits (`scale_load`): [`LoadWeight`]. PELT uses it scaled
//! down: [`Weight`].
//!
//! Source: kernel/sched/core.c:sched_prio_to_weight, sched_prio_to_wmult,
//! kernel/sched/fair.c:__calc_delta.

use crate::KernelRev;
use crate::units::Weight;

/// Weight of nice −20 … 19 (`sched_prio_to_weight`).
pub const SCHED_PRIO_TO_WEIGHT: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, //
    9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277, //
    1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, //
    110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// 2³² / weight of nice −20 … 19, to the nearest (`sched_prio_to_wmult`).
pub const SCHED_PRIO_TO_WMULT: [u32; 40] = wmult_table();

const fn wmult_table() -> [u32; 40] {
    let mut table = [0; 40];
    let mut i = 0;
    while i < table.len() {
        let weight = SCHED_PRIO_TO_WEIGHT[i] as u64;
        table[i] = (((1 << 32) + weight / 2) / weight) as u32;
        i += 1;
    }
    table
}

/// `scale_load(1024)`: the internal weight of nice 0.
pub const NICE_0_LOAD: u64 = 1 << 20;
/// Weight and inverse of SCHED_IDLE (`WEIGHT_IDLEPRIO`, `WMULT_IDLEPRIO`).
const IDLEPRIO: LoadWeight = LoadWeight {
    weight: 3 << 10,
    inv_weight: 1_431_655_765,
};

/// A weight at the kernel's internal resolution, with its inverse (`struct load_weight`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadWeight {
    /// The weight × 1024.
    pub weight: u64,
    /// 2³² / weight; 0 = not computed yet.
    pub inv_weight: u32,
}

impl LoadWeight {
    /// The weight of a nice level; levels outside −20 … 19 count as the nearest.
    pub const fn of_nice(nice: i32) -> LoadWeight {
        let i = if nice < -20 {
            0
        } else if nice > 19 {
            39
        } else {
            (nice + 20) as usize
        };
        LoadWeight {
            weight: (SCHED_PRIO_TO_WEIGHT[i] as u64) << 10,
            inv_weight: SCHED_PRIO_TO_WMULT[i],
        }
    }
    /// The weight of a SCHED_IDLE task.
    pub const fn idle() -> LoadWeight {
        IDLEPRIO
    }
    /// As PELT uses it: `scale_load_down`, at least 2 unless 0.
    pub const fn scale_load_down(self) -> Weight {
        Weight(scale_load_down(self.weight))
    }
}

/// An internal weight at the resolution users see, at least 2 unless 0.
/// Source: sched.h:scale_load_down.
pub const fn scale_load_down(weight: u64) -> u64 {
    if weight == 0 {
        return 0;
    }
    let down = weight >> 10;
    if down < 2 { 2 } else { down }
}

/// delta · weight / lw (`weight` at internal resolution).
///
/// In 7.2 one 64-bit product that wraps, and one division, rounded down (a weight of 0, which the
/// kernel would divide by, gives 0). Before, a multiplication by the 32-bit inverse, which loses
/// low bits. Source: fair.c:__calc_delta.
///
/// `DEVIATES(calc-delta)`: which release between 6.12 and 7.2 changed it is not known here; the
/// revisions in between are taken to behave like 6.12.
pub fn calc_delta(rev: KernelRev, delta: u64, weight: u64, lw: LoadWeight) -> u64 {
    if rev < KernelRev::V7_2 {
        return calc_delta_pre_7_2(delta, weight, lw);
    }
    delta
        .wrapping_mul(weight)
        .checked_div(lw.weight)
        .unwrap_or(0)
}

/// By the inverse weight, kept within 32 bits by shifting.
fn calc_delta_pre_7_2(delta: u64, weight: u64, lw: LoadWeight) -> u64 {
    let mut fact = scale_load_down(weight);
    let mut shift = 32;
    // Keeps the factor within 32 bits; what it loses comes off the final shift.
    let mut fit = |fact: u64| {
        let bits = 32 - ((fact >> 32) as u32).leading_zeros();
        shift -= bits as i32;
        fact >> bits
    };
    fact = fit(fact);
    fact = (fact as u32 as u64) * inv_weight(lw) as u64;
    fact = fit(fact);
    // Weights large enough to shift further do not occur; the C would be undefined.
    ((delta as u128 * fact as u32 as u128) >> shift.max(0)) as u64
}

/// The inverse, computed if it is not there. Source: fair.c:__update_inv_weight.
fn inv_weight(lw: LoadWeight) -> u32 {
    if lw.inv_weight != 0 {
        return lw.inv_weight;
    }
    match scale_load_down(lw.weight) {
        0 => u32::MAX,
        w if w >= u32::MAX as u64 => 1,
        w => u32::MAX / w as u32,
    }
}

/// Virtual time of `delta` ns of running at a weight: delta · 1024 / weight.
/// Source: fair.c:calc_delta_fair.
pub fn calc_delta_fair(rev: KernelRev, delta: u64, lw: LoadWeight) -> u64 {
    if lw.weight == NICE_0_LOAD {
        delta
    } else {
        calc_delta(rev, delta, NICE_0_LOAD, lw)
    }
}
