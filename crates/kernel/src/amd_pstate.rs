//! amd-pstate's requests in its modes passive and guided: the fields of CPPC in which a governor's wish reaches
//! the hardware.
//!
//! ```text
//! adjust_perf   desired = ⌈highest · target / capacity⌉, least = ⌈highest · min / capacity⌉, but no less than a floor
//! target        desired = frequency in levels: nearest of the highest; since 6.15 up, of the nominal one
//! guided        under a governor that changes frequencies: least = desired, desired = 0, the hardware chooses above it
//! ```
//!
//! With a driver that has `adjust_perf` schedutil hands util over as it is, and its `get_next_freq` is not asked. Which
//! speed the hardware answers a request with is no part of this.
//!
//! Left out: `policy->cur`, energy_performance_preference, writes that are left out because nothing changed, the mode
//! active, in which the hardware decides alone.
//!
//! Source: drivers/cpufreq/amd-pstate.c of 6.1.176, 6.12.107, 7.1.8 and 7.2.12.

use crate::units::{Capacity, KHz, Util};
use crate::{KernelRev, features};

/// Performance levels of a CPU, on CPPC's scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// The highest, with boost.
    pub highest: u64,
    /// The highest that can be kept up.
    pub nominal: u64,
    /// The lowest that saves energy.
    pub lowest_nonlinear: u64,
    /// The lowest.
    pub lowest: u64,
    /// Level of the policy's lower limit.
    pub min_limit: u64,
    /// Level of the policy's upper limit.
    pub max_limit: u64,
    /// Frequency of the highest level.
    pub max_freq: KHz,
    /// Frequency of the nominal level.
    pub nominal_freq: KHz,
    /// Whether levels above the nominal one can be had.
    pub boost_supported: bool,
    /// Whether the driver is in its mode guided, under a governor that changes frequencies
    /// (`CPUFREQ_GOV_DYNAMIC_SWITCHING`).
    pub guided: bool,
}

/// A request: the fields of `MSR_AMD_CPPC_REQ`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The least performance.
    pub min_perf: u64,
    /// The desired performance; 0: the hardware chooses.
    pub des_perf: u64,
    /// The most performance.
    pub max_perf: u64,
}

/// The request for `target` util and at least `min`, both of `capacity`. Rounding: up.
///
/// Source: amd-pstate.c:amd_pstate_adjust_perf.
pub fn amd_pstate_adjust_perf(
    rev: KernelRev,
    levels: &Levels,
    min: Util,
    target: Util,
    capacity: Capacity,
) -> Request {
    let of = |util: Util| (levels.highest * util.0).div_ceil(capacity.0);
    let des_perf = if target.0 < capacity.0 { of(target) } else { levels.highest };
    let asked = (min.0 < capacity.0).then(|| of(min));
    let (min_perf, max_perf) = match rev.has(features::AMD_PSTATE_NOMINAL) {
        true => (asked.unwrap_or(levels.highest).max(levels.min_limit), levels.max_limit),
        false => (asked.unwrap_or(levels.lowest).max(levels.lowest_nonlinear), levels.highest),
    };
    update(rev, levels, Request { min_perf, des_perf, max_perf: max_perf.max(min_perf) })
}

/// The request for a frequency.
///
/// Source: amd-pstate.c:amd_pstate_update_freq.
pub fn amd_pstate_update_freq(rev: KernelRev, levels: &Levels, target_freq: KHz) -> Request {
    let des_perf = freq_to_perf(rev, levels, target_freq);
    let (min_perf, max_perf) = match rev.has(features::AMD_PSTATE_NOMINAL) {
        true => (levels.min_limit, levels.max_limit),
        false => (levels.lowest, levels.highest),
    };
    update(rev, levels, Request { min_perf, des_perf, max_perf })
}

/// The level of a frequency. Rounding: up; before 6.15: to nearest.
fn freq_to_perf(rev: KernelRev, levels: &Levels, freq: KHz) -> u64 {
    if rev.has(features::AMD_PSTATE_NOMINAL) {
        let level = (freq.0 * levels.nominal).div_ceil(levels.nominal_freq.0);
        return within(level, levels.lowest, levels.highest);
    }
    (freq.0 * levels.highest + levels.max_freq.0 / 2) / levels.max_freq.0
}

/// Puts a request within limits, as the release has them.
///
/// Source: amd-pstate.c:amd_pstate_update.
fn update(rev: KernelRev, levels: &Levels, asked: Request) -> Request {
    let Request { mut min_perf, mut des_perf, mut max_perf } = asked;
    if rev.has(features::AMD_PSTATE_LIMITS) && !rev.has(features::AMD_PSTATE_NOMINAL) {
        min_perf = within(min_perf, levels.min_limit, levels.max_limit);
        max_perf = within(max_perf, levels.min_limit, levels.max_limit);
    }
    let no_boost = rev.has(features::AMD_PSTATE_NO_BOOST) && !levels.boost_supported;
    let first = no_boost && rev.has(features::AMD_PSTATE_NO_BOOST_FIRST);
    if first {
        max_perf = max_perf.min(levels.nominal);
    }
    des_perf = within(des_perf, min_perf, max_perf);
    if levels.guided && rev.has(features::AMD_PSTATE_GUIDED) {
        (min_perf, des_perf) = (des_perf, 0);
    }
    if no_boost && !first {
        max_perf = max_perf.min(levels.nominal);
    }
    Request { min_perf, des_perf, max_perf }
}

/// `clamp`: where the limits cross, the upper one decides.
fn within(n: u64, low: u64, high: u64) -> u64 {
    n.max(low).min(high)
}
