//! intel_pstate's requests in passive mode (intel_cpufreq), and its own algorithm in active mode without HWP.
//!
//! ```text
//! adjust_perf   desired = ⌈highest · target / capacity⌉, least = ⌈highest · min / capacity⌉, most = the limit; since 7.3
//!               ⌈highest · max / capacity⌉, too
//! fast_switch   desired = least = ⌈frequency / scaling⌉, most = the limit
//! active        target = 1.25 · highest · busy; half of what the last sample ran above it is added
//! ```
//!
//! With HWP a level is one of HWP's performance scale, else a P-state (a bus ratio). `busy` is the share of a sample, 10 ms or
//! longer, that the CPU was not idle (MPERF / TSC), or the iowait boost if that is more.
//!
//! Left out: `min_perf_pct` and `max_perf_pct`, `hwp_dynamic_boost` (off but on servers), `strict_target`, voltage ids of Atoms,
//! the shift of MPERF on Knights Landing, `energy_efficiency`.
//!
//! Source: drivers/cpufreq/intel_pstate.c of 6.1.192, 6.12.117, 7.2.13 and 7.3.4.

pub use crate::amd_pstate::Request;
use crate::units::{Capacity, KHz, Span, Util};
use crate::{KernelRev, features};

/// Shortest time between two samples (`INTEL_PSTATE_SAMPLING_INTERVAL`).
pub const SAMPLING_INTERVAL: Span = Span(10_000_000);

/// Frequency of a step of PERF_CTL on Core processors (`core_get_scaling`).
pub const CORE_SCALING: KHz = KHz(100_000);

/// Bits behind the point of the driver's fractions (`FRAC_BITS`), and of finer ones (`EXT_FRAC_BITS`).
const FRAC_BITS: u32 = 8;
const EXT_FRAC_BITS: u32 = 14;
/// Such a fraction for one, and for an eighth.
const ONE_FP: u64 = 1 << FRAC_BITS;
const ONE_EIGHTH_FP: u64 = 1 << (FRAC_BITS - 3);

/// Performance levels of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// The highest, with turbo (`turbo_pstate`).
    pub highest: u64,
    /// The highest without turbo (`max_pstate`).
    pub guaranteed: u64,
    /// The lowest (`min_pstate`).
    pub lowest: u64,
    /// Level of the policy's lower limit (`min_perf_ratio`).
    pub min_limit: u64,
    /// Level of the policy's upper limit (`max_perf_ratio`).
    pub max_limit: u64,
    /// Frequency of one level (`pstate.scaling`).
    pub scaling: KHz,
}

/// The request for `target` util, at least `min` and at most `max`, all of `capacity`. Rounding: up.
///
/// Source: intel_pstate.c:intel_cpufreq_adjust_perf.
pub fn intel_cpufreq_adjust_perf(
    rev: KernelRev,
    levels: &Levels,
    (min, target, max): (Util, Util, Util),
    capacity: Capacity,
) -> Request {
    let of = |util: Util| match util.0 < capacity.0 {
        true => (levels.highest * util.0).div_ceil(capacity.0),
        false => levels.highest,
    };
    let min_perf = of(min).max(levels.lowest).max(levels.min_limit).min(levels.max_limit);
    let most = match rev.has(features::ADJUST_PERF_MAX) {
        true => of(max),
        false => levels.highest,
    };
    let max_perf = most.min(levels.max_limit).max(min_perf);
    Request { min_perf, des_perf: of(target).max(min_perf).min(max_perf), max_perf }
}

/// The request for a frequency, with HWP.
///
/// Source: intel_pstate.c:intel_cpufreq_fast_switch, intel_cpufreq_update_pstate.
pub fn intel_cpufreq_fast_switch(levels: &Levels, target_freq: KHz) -> Request {
    let target =
        intel_pstate_prepare_request(levels, intel_pstate_freq_to_hwp(levels, target_freq));
    Request { min_perf: target, des_perf: target, max_perf: levels.max_limit }
}

/// `turbo_freq` and `max_freq`: the frequencies of the highest level and of the highest without turbo, on hybrid processors
/// rounded down to steps of PERF_CTL.
///
/// Source: intel_pstate.c:intel_pstate_update_freq_limits.
pub fn freq_limits(levels: &Levels) -> (KHz, KHz) {
    let of = |level: u64| {
        let freq = level * levels.scaling.0;
        KHz(if levels.scaling == CORE_SCALING { freq } else { freq - freq % CORE_SCALING.0 })
    };
    (of(levels.highest), of(levels.guaranteed))
}

/// The level of a frequency. Rounding: up.
///
/// Source: intel_pstate.c:intel_pstate_freq_to_hwp.
pub fn intel_pstate_freq_to_hwp(levels: &Levels, freq: KHz) -> u64 {
    let (turbo, max) = freq_limits(levels);
    if freq == turbo {
        return levels.highest;
    }
    if freq == max {
        return levels.guaranteed;
    }
    freq.0.div_ceil(levels.scaling.0)
}

/// Puts a level within the limits.
///
/// Source: intel_pstate.c:intel_pstate_prepare_request.
pub fn intel_pstate_prepare_request(levels: &Levels, pstate: u64) -> u64 {
    let least = levels.lowest.max(levels.min_limit);
    pstate.max(least).min(levels.max_limit.max(least))
}

/// The levels of a policy's limits, with `min_perf_pct` and `max_perf_pct` as they are at boot. Rounding: down to steps of
/// PERF_CTL, then up to levels.
///
/// Source: intel_pstate.c:intel_pstate_update_perf_limits.
pub fn intel_pstate_update_perf_limits(levels: &Levels, min: KHz, max: KHz) -> (u64, u64) {
    let mut most = max.0 / CORE_SCALING.0;
    let mut least = if min == max { most } else { (min.0 / CORE_SCALING.0).min(most) };
    if levels.scaling != CORE_SCALING {
        most = intel_pstate_freq_to_hwp(levels, KHz(most * CORE_SCALING.0));
        least = intel_pstate_freq_to_hwp(levels, KHz(least * CORE_SCALING.0));
    }
    // `min_perf_pct_min`, which is what `min_perf_pct` is at boot.
    let pct = levels.lowest * 100 / levels.highest;
    let (global_max, global_min) = (levels.highest, (levels.highest * pct).div_ceil(100));
    let max_ratio = most.min(global_max).max(least);
    let min_ratio = least.max(global_min).min(most).min(max_ratio);
    (min_ratio, max_ratio)
}

/// Counts between two samples, of the CPU's registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Cycles at the present frequency while not idle (`IA32_APERF`).
    pub aperf: u64,
    /// Cycles at the frequency of the TSC while not idle (`IA32_MPERF`).
    pub mperf: u64,
    /// Cycles at the frequency of the TSC.
    pub tsc: u64,
}

/// The level that follows from a sample; `physical`: the level of MPERF's frequency (`max_pstate_physical`). Rounding: down.
///
/// Source: intel_pstate.c:get_target_pstate, get_avg_pstate.
pub fn get_target_pstate(levels: &Levels, physical: u64, sample: Sample, iowait_boost: u64) -> u64 {
    let wide = |n: u64, bits: u32| u128::from(n) << bits;
    let busy = (wide(sample.mperf, FRAC_BITS) / u128::from(sample.tsc.max(1))) as u64;
    let busy_frac = busy.max(iowait_boost);
    let top = levels.highest + (levels.highest >> 2);
    let target = ((top * busy_frac) >> FRAC_BITS).max(levels.lowest);
    let core_avg_perf = wide(sample.aperf, EXT_FRAC_BITS) / u128::from(sample.mperf.max(1));
    let avg_pstate = ((u128::from(physical) * core_avg_perf) >> EXT_FRAC_BITS) as u64;
    target + (avg_pstate.saturating_sub(target) >> 1)
}

/// The iowait boost after an update of util, `since` after the one before; of 256.
///
/// Source: intel_pstate.c:intel_pstate_update_util.
pub fn intel_pstate_iowait_boost(boost: u64, since: Span, tick: Span, iowait: bool) -> u64 {
    let idle = since > tick;
    match (iowait, idle) {
        (true, false) if boost >= ONE_EIGHTH_FP => (boost << 1).min(ONE_FP),
        (true, _) => ONE_EIGHTH_FP,
        (false, true) => 0,
        (false, false) => boost >> 1,
    }
}
