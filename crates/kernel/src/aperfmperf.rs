//! Frequency invariance of x86: what a CPU did since its last tick, by two counters.
//!
//! ```text
//! APERF counts cycles at the present frequency, MPERF at a fixed one, both only while the CPU is not idle
//! arch_freq_scale = 1024 · (APERF / MPERF) / ratio, at most 1024          ratio: of the frequency that is full capacity
//! ```
//!
//! So the scheduler hears of a frequency a tick late, as the mean over the time that was not idle, and above the ratio's
//! frequency it hears of no difference.
//!
//! Left out: AMD's `highest_perf` of single models in place of the highest level, 4-core turbo in place of the highest.
//!
//! Source: arch/x86/kernel/cpu/aperfmperf.c, arch/x86/kernel/acpi/cppc.c of 6.1.192, 6.12.117 and 7.3.4.

use crate::units::SCHED_CAPACITY_SCALE;

const SCHED_CAPACITY_SHIFT: u32 = 10;

/// `arch_freq_scale` after a tick that found these counts; `None`: it stays as it is. Rounding: down.
///
/// Source: aperfmperf.c:scale_freq_tick (whose errors, which end invariance, do not come about here).
pub fn scale_freq_tick(acnt: u64, mcnt: u64, ratio: u64) -> Option<u64> {
    let per = u128::from(mcnt) * u128::from(ratio);
    if per == 0 {
        return None;
    }
    let scale = (u128::from(acnt) << (2 * SCHED_CAPACITY_SHIFT)) / per;
    (scale > 0).then(|| (scale as u64).min(SCHED_CAPACITY_SCALE))
}

/// `arch_turbo_freq_ratio` of AMD: half way between the nominal level and the highest. Rounding: down.
///
/// Source: cppc.c:amd_set_max_freq_ratio.
pub fn amd_set_max_freq_ratio(highest: u64, nominal: u64) -> u64 {
    (highest * SCHED_CAPACITY_SCALE / nominal + SCHED_CAPACITY_SCALE) >> 1
}

/// `arch_turbo_freq_ratio` of Intel, and of hybrid processors each CPU's `freq_ratio`: turbo by base. Rounding: down.
///
/// Source: aperfmperf.c:intel_set_max_freq_ratio, arch_set_cpu_capacity.
pub fn intel_set_max_freq_ratio(turbo: u64, base: u64) -> u64 {
    turbo * SCHED_CAPACITY_SCALE / base
}
