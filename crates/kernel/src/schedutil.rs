//! schedutil's arithmetic: from a CPU's util to a frequency, the iowait boost, the rate limit.
//!
//! ```text
//!  perf      = max(min, min(util + util/4, max))                     since 6.8
//!  next_freq = ref_freq · perf / capacity           then resolved to an OPP ([`crate::opp`])
//!  before 6.8: next_freq = ref_freq · (util + util/4) / capacity
//!  as posted on 2 March 2016, before it was merged: min + util · (max - min) / capacity
//! ```
//!
//! `util`, `min`, `max` come from [`crate::cpu_util::effective_cpu_util`]. The governor around it
//! (shared policies, hold of a decrease, the kthread) belongs to the simulator; pure decisions of
//! it are here. Left out: the `adjust_perf` path of intel_pstate.
//!
//! Source: kernel/sched/cpufreq_schedutil.c, include/linux/sched/cpufreq.h.

use crate::units::{Capacity, Instant, KHz, Span, Util};
use crate::{KernelRev, features};

/// The first step of the iowait boost.
pub const IOWAIT_BOOST_MIN: u32 = 1024 / 8;

/// Adds a quarter to `util`: headroom to rise into. Rounding: down. Source:
/// cpufreq.h:map_util_perf.
#[inline]
pub const fn map_util_perf(util: Util) -> Util {
    Util(util.0.wrapping_add(util.0 >> 2))
}

/// The performance to ask for: util with headroom, but no more than `max` needs and no less than
/// `min`. Source: cpufreq_schedutil.c:sugov_effective_cpu_perf (since 6.8).
#[inline]
pub fn sugov_effective_cpu_perf(actual: Util, min: Util, max: Util) -> Util {
    perf_within(map_util_perf(actual), min, max)
}

/// The second half of [`sugov_effective_cpu_perf`]: what is `wanted`, whose headroom may be another
/// than mainline's (RFC 00/16), within the limits; `min` decides where they cross.
#[inline]
pub fn perf_within(wanted: Util, min: Util, max: Util) -> Util {
    wanted.min(max).max(min)
}

/// Frequencies from which the reference frequency is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreqRef {
    /// `arch_scale_freq_ref()`: where capacity is defined; 0 = the platform does not say.
    pub arch_scale_freq_ref: KHz,
    /// Whether util is frequency-invariant.
    pub freq_invariant: bool,
    /// `policy->cpuinfo.max_freq`.
    pub cpuinfo_max_freq: KHz,
    /// `policy->cur`.
    pub cur: KHz,
}

/// The frequency that the full capacity stands for. Without any invariance a quarter above the
/// current one (before 6.8: the current one, as the headroom came with the util).
/// Source: cpufreq_schedutil.c:get_capacity_ref_freq; before 6.8 inside get_next_freq.
#[inline]
pub const fn get_capacity_ref_freq(rev: KernelRev, policy: &FreqRef) -> KHz {
    if rev.has(features::ARCH_SCALE_FREQ_REF) && policy.arch_scale_freq_ref.0 as u32 != 0 {
        return policy.arch_scale_freq_ref;
    }
    if policy.freq_invariant {
        return policy.cpuinfo_max_freq;
    }
    let cur = policy.cur.0 as u32;
    let room = if rev.has(features::SUGOV_EFFECTIVE_CPU_PERF) { cur >> 2 } else { 0 };
    KHz(cur.wrapping_add(room) as u64)
}

/// The frequency for `util` of `max`, before the driver resolves it to an OPP.
///
/// `util` is [`sugov_effective_cpu_perf`]'s since 6.8 and plain util before, when the headroom was
/// added here. Rounding: down; 32 bits wide, as the kernel's. `max` 0, which the kernel would
/// divide by, gives 0. Source: cpufreq_schedutil.c:get_next_freq.
#[inline]
pub fn get_next_freq(rev: KernelRev, util: Util, max: Capacity, ref_freq: KHz) -> KHz {
    let has_room = rev.has(features::SUGOV_EFFECTIVE_CPU_PERF);
    let util = if has_room { util } else { map_util_perf(util) };
    let freq = (ref_freq.0 as u32 as u64).wrapping_mul(util.0).checked_div(max.0);
    KHz(freq.unwrap_or(0) as u32 as u64)
}

/// The frequency for `util` of `max` between the policy's limits, as schedutil was first posted: no headroom, and the
/// lowest frequency counts as nothing. Source: sugov_next_freq of the postings before v4 (16 March 2016).
pub fn sugov_next_freq_pre_v4(util: Util, max: Capacity, (min_f, max_f): (KHz, KHz)) -> KHz {
    if util.0 > max.0 || min_f >= max_f {
        return max_f;
    }
    let part = util.0.wrapping_mul(max_f.0 - min_f.0).checked_div(max.0);
    KHz(min_f.0 + part.unwrap_or(0))
}

/// The default of `rate_limit_us`, from the largest transition latency of the domain's OPPs, or
/// from the driver's own delay if it has one.
///
/// ```text
///  L = latency in whole µs; L = 0: 1000
///  up to 4.13     1000 L
///  4.14 to 6.8    min(1000 L, 10000)
///  6.9 to 6.11    L if above 2000, else min(1000 L, 2000)
///  from 6.12      L + L/2
/// ```
///
/// Rounding: down; 32 bits, wrapping. Source: cpufreq.c:cpufreq_policy_transition_delay_us.
pub fn cpufreq_policy_transition_delay_us(
    rev: KernelRev,
    transition_latency_ns: u32,
    transition_delay_us: u32,
) -> u32 {
    /// Default delay, in µs; `LATENCY_MULTIPLIER`, too.
    const DEFAULT_US: u32 = 1000;
    if transition_delay_us != 0 {
        return transition_delay_us;
    }
    let latency = transition_latency_ns / 1000;
    if latency == 0 {
        DEFAULT_US
    } else if rev.has(features::TRANSITION_DELAY_HALF) {
        latency + (latency >> 1)
    } else if rev.has(features::TRANSITION_DELAY_2MS) {
        if latency > 2000 { latency } else { latency.wrapping_mul(DEFAULT_US).min(2000) }
    } else if rev.has(features::TRANSITION_DELAY_10MS) {
        latency.wrapping_mul(DEFAULT_US).min(10_000)
    } else {
        latency.wrapping_mul(DEFAULT_US)
    }
}

/// Whether enough time has passed since the last frequency change.
///
/// A change of limits, or a deadline task that needs more, bypasses this (the caller's flags).
/// Source: cpufreq_schedutil.c:sugov_should_update_freq.
#[inline]
pub fn sugov_rate_limit_passed(time: Instant, last_update: Instant, rate_limit_us: u32) -> bool {
    let delta = time.0.wrapping_sub(last_update.0) as i64;
    delta >= rate_limit_us as i64 * 1000
}

/// Whether a single-CPU policy keeps its frequency instead of lowering it, because the CPU has not
/// been idle since the last check.
///
/// `idle_calls_unchanged`: no entry into idle since. `capped`: [`crate::uclamp::uclamp_rq_is_capped`].
/// `forced`: the policy's limits changed. Source: cpufreq_schedutil.c:sugov_hold_freq and its
/// caller; sugov_cpu_is_busy before 6.12.
#[inline]
pub fn sugov_hold_freq(
    next: KHz,
    current: KHz,
    idle_calls_unchanged: bool,
    capped: bool,
    forced: bool,
) -> bool {
    !capped && idle_calls_unchanged && next < current && !forced
}

/// The iowait boost of one CPU (part of `struct sugov_cpu`).
///
/// Each wakeup from I/O within a tick doubles it, from 128 to 1024; each update without one halves
/// it; a tick without an update ends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IowaitBoost {
    /// The boost, of 1024.
    pub iowait_boost: u32,
    /// True if the boost was raised since it was last applied.
    pub iowait_boost_pending: bool,
    /// Time of the CPU's last update; the governor sets it after [`IowaitBoost::sugov_iowait_boost`].
    pub last_update: Instant,
}

impl IowaitBoost {
    /// Restarts the boost if more than a tick passed since the last update; true if it did.
    /// Source: cpufreq_schedutil.c:sugov_iowait_reset.
    pub fn sugov_iowait_reset(
        &mut self,
        time: Instant,
        tick: Span,
        set_iowait_boost: bool,
    ) -> bool {
        let delta = time.0.wrapping_sub(self.last_update.0) as i64;
        if delta <= tick.0 as i64 {
            return false;
        }
        self.iowait_boost = if set_iowait_boost { IOWAIT_BOOST_MIN } else { 0 };
        self.iowait_boost_pending = set_iowait_boost;
        true
    }

    /// An update; `set_iowait_boost`: a task wakes up after waiting for I/O.
    /// Source: cpufreq_schedutil.c:sugov_iowait_boost.
    #[inline]
    pub fn sugov_iowait_boost(&mut self, time: Instant, tick: Span, set_iowait_boost: bool) {
        if self.iowait_boost != 0 && self.sugov_iowait_reset(time, tick, set_iowait_boost) {
            return;
        }
        if !set_iowait_boost || self.iowait_boost_pending {
            return;
        }
        self.iowait_boost_pending = true;
        self.iowait_boost = if self.iowait_boost != 0 {
            (self.iowait_boost << 1).min(1024)
        } else {
            IOWAIT_BOOST_MIN
        };
    }

    /// The boost to apply now, as a util of a CPU of this capacity; decays it if none is pending.
    /// Rounding: down. Source: cpufreq_schedutil.c:sugov_iowait_apply.
    #[inline]
    pub fn sugov_iowait_apply(&mut self, time: Instant, tick: Span, max_cap: Capacity) -> Util {
        if self.iowait_boost == 0 || self.sugov_iowait_reset(time, tick, false) {
            return Util(0);
        }
        if !self.iowait_boost_pending {
            self.iowait_boost >>= 1;
            if self.iowait_boost < IOWAIT_BOOST_MIN {
                self.iowait_boost = 0;
                return Util(0);
            }
        }
        self.iowait_boost_pending = false;
        Util((self.iowait_boost as u64).wrapping_mul(max_cap.0) >> 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_rate_limits_of_each_generation() {
        let limit = |minor, ns| cpufreq_policy_transition_delay_us(KernelRev::new(6, minor), ns, 0);
        // (latency in ns, up to 6.8, 6.9 to 6.11, from 6.12)
        for (ns, old, middle, new) in [
            (0, 1000, 1000, 1000),
            (999, 1000, 1000, 1000),
            (1_000, 1000, 1000, 1),
            (7_500, 7000, 2000, 10),
            (56_000, 10_000, 2000, 84),
            (2_000_000, 10_000, 2000, 3000),
            (2_001_000, 10_000, 2001, 3001),
            // CPUFREQ_ETERNAL, as reported of the Raspberry Pi 4 under 6.12.
            (u32::MAX, 10_000, 4_294_967, 6_442_450),
        ] {
            assert_eq!([1, 8].map(|m| limit(m, ns)), [old; 2], "{ns} ns, up to 6.8");
            assert_eq!([9, 11].map(|m| limit(m, ns)), [middle; 2], "{ns} ns, 6.9 to 6.11");
            assert_eq!(limit(12, ns), new, "{ns} ns, 6.12");
        }
        let oldest = cpufreq_policy_transition_delay_us(KernelRev::new(4, 7), 140_000, 0);
        assert_eq!(oldest, 140_000, "140 ms");
        let own = cpufreq_policy_transition_delay_us(KernelRev::V7_2, 56_000, 70);
        assert_eq!(own, 70, "the driver's own delay");
    }

    #[test]
    fn reference_frequency_without_invariance_leaves_room() {
        let policy = FreqRef {
            arch_scale_freq_ref: KHz(0),
            freq_invariant: false,
            cpuinfo_max_freq: KHz(3_204_000),
            cur: KHz(1_000_001),
        };
        let of = |rev, policy: FreqRef| get_capacity_ref_freq(rev, &policy).0;
        assert_eq!(of(KernelRev::V7_2, policy), 1_250_001);
        assert_eq!(of(KernelRev::new(6, 1), policy), 1_000_001);
        let invariant = FreqRef { freq_invariant: true, ..policy };
        assert_eq!(of(KernelRev::V7_2, invariant), 3_204_000);
        let with_ref = FreqRef { arch_scale_freq_ref: KHz(3_000_000), ..invariant };
        assert_eq!(of(KernelRev::V6_8, with_ref), 3_000_000);
        assert_eq!(of(KernelRev::new(6, 7), with_ref), 3_204_000, "not known before 6.8");
    }

    #[test]
    fn the_headroom_moved_but_the_frequency_did_not() {
        let (max, top) = (Capacity(459), KHz(2_064_000));
        for util in 0..=459 {
            let util = Util(util);
            let perf = sugov_effective_cpu_perf(util, Util(0), Util(1024));
            let new = get_next_freq(KernelRev::V7_2, perf, max, top);
            assert_eq!(new, get_next_freq(KernelRev::new(6, 1), util, max, top), "{util}");
        }
        assert_eq!(get_next_freq(KernelRev::V7_2, Util(1), Capacity(0), top), KHz(0));
    }

    #[test]
    fn as_first_posted_it_went_in_proportion_from_the_lowest_frequency_on() {
        let limits = (KHz(200_000), KHz(2_000_000));
        let next = |util| sugov_next_freq_pre_v4(Util(util), Capacity(1024), limits).0;
        assert_eq!(
            [0, 341, 512, 1024, 1025].map(next),
            [200_000, 799_414, 1_100_000, 2_000_000, 2_000_000]
        );
        // Whoever runs real-time or deadline tasks says ULONG_MAX of 0.
        assert_eq!(sugov_next_freq_pre_v4(Util(u64::MAX), Capacity(0), limits), limits.1);
        assert_eq!(sugov_next_freq_pre_v4(Util(1), Capacity(1024), (limits.1, limits.1)), limits.1);
    }

    #[test]
    fn limits_on_performance() {
        let perf =
            |actual, min, max| sugov_effective_cpu_perf(Util(actual), Util(min), Util(max)).0;
        assert_eq!(perf(100, 0, 1024), 125);
        assert_eq!(perf(100, 0, 110), 110);
        assert_eq!(perf(100, 500, 1024), 500);
        assert_eq!(perf(100, 500, 200), 500, "the minimum wins");
    }

    #[test]
    fn rate_limit_is_over_after_exactly_its_time() {
        let passed = |now, last| sugov_rate_limit_passed(Instant(now), Instant(last), 10);
        assert!(!passed(19_999, 10_000));
        assert!(passed(20_000, 10_000));
        assert!(!passed(0, 10_000), "a clock that went back");
    }

    #[test]
    fn only_a_decrease_of_a_busy_cpu_is_held() {
        let (low, high) = (KHz(600_000), KHz(972_000));
        assert!(sugov_hold_freq(low, high, true, false, false));
        assert!(!sugov_hold_freq(high, low, true, false, false), "an increase");
        assert!(!sugov_hold_freq(low, high, false, false, false), "it was idle");
        assert!(!sugov_hold_freq(low, high, true, true, false), "capped");
        assert!(!sugov_hold_freq(low, high, true, false, true), "limits changed");
    }

    #[test]
    fn iowait_boost_doubles_halves_and_ends() {
        let (tick, cap) = (Span(4_000_000), Capacity(1024));
        let mut cpu = IowaitBoost { last_update: Instant(0), ..IowaitBoost::default() };
        let mut time = 0;
        let mut update = |step: u64, wakes: bool| {
            time += step;
            cpu.sugov_iowait_boost(Instant(time), tick, wakes);
            cpu.last_update = Instant(time);
            cpu.sugov_iowait_apply(Instant(time), tick, cap).0
        };
        let up: alloc::vec::Vec<u64> = (0..5).map(|_| update(1_000_000, true)).collect();
        assert_eq!(up, [128, 256, 512, 1024, 1024]);
        let down: alloc::vec::Vec<u64> = (0..4).map(|_| update(1_000_000, false)).collect();
        assert_eq!(down, [512, 256, 128, 0]);
        update(1_000_000, true);
        assert_eq!(update(4_000_000, true), 256, "within a tick");
        assert_eq!(update(4_000_001, true), 128, "more than a tick: from the start");
        assert_eq!(update(4_000_001, false), 0);
    }
}
