//! Arithmetic of the scheduler modules that Google's Pixel phones run: governor `sched_pixel`, and
//! the vendor hooks behind `/proc/vendor_sched`.
//!
//! ```text
//!  nominal     rt(capacity at the second highest OPP + 1), in ms        response_time_ms_nom
//!  headroom    automatic  A(util, up_rate_limit_us)
//!              tapered    util + (capacity − util) · (headroom − 1024) / 1024
//!              constant   util · headroom / 1024
//!  down limit  down_rate_limit_us · (next / now)^pow                    since the last change
//!  util_est    A(util when it woke, Σ running time · multiplier)        while util does not fall
//!  fits        util < threshold of its CPU, or util · margin ≤ capacity · 1024
//!  energy      power / capacity of an OPP · util        of the OPP for the most demanding CPU
//! ```
//!
//! A and rt are those of the response-time series ([`crate::approximate`]), which came from here:
//! the same author put them into these modules from January to May 2024, and posted them in
//! August. Two forms: that of 5.10 (gs101, gs201), whose headroom comes after the clamps, and that
//! of 6.1 (zuma, zumapro).
//!
//! Source: drivers/soc/google/vh/kernel/sched/ (cpufreq_gov.c, fair.c, pelt.c, sched_priv.h,
//! core.c) and drivers/soc/google/vh/kernel/pixel_em/ of Google's modules for 6.1, of which
//! GrapheneOS keeps a copy (zumapro, January 2025), and of gs201 for 5.10.

use crate::approximate::{approximate_runtime, approximate_util_avg};
use crate::cpu_util::{CpuUtilType, RqUtil, scale_irq_capacity};
use crate::pelt::Decay;
use crate::schedutil::IOWAIT_BOOST_MIN;
use crate::units::{Capacity, Instant, KHz, Span, Util};
use crate::util_est::UTIL_AVG_UNCHANGED;

/// Headroom and margin by default, of 1024 (`DEF_UTIL_THRESHOLD`).
pub const DEF_UTIL_THRESHOLD: u64 = 1280;

/// The time in ms after which a policy asks for its highest frequency, of a task that never sleeps;
/// `capacities`: of its OPPs, ascending. Source: cpufreq_gov.c:sugov_calc_freq_response_ms.
pub fn response_time_ms_nom(decay: &Decay, capacities: &[Capacity]) -> u64 {
    let util = match capacities {
        [] => 0,
        [only] => only.0,
        [.., second, _] => second.0 + 1,
    };
    approximate_runtime(decay, Util(util))
}

/// Room that a CPU is given above its util.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Room for what util grows in so many µs (`auto_dvfs_headroom_enable`).
    Auto(u64),
    /// Room of a share, of 1024, of what is left of the capacity (`tapered_dvfs_headroom_enable`).
    Tapered(u64),
    /// Room in proportion to util: util times so much, of 1024.
    Constant(u64),
}

/// `util` with its headroom; `tapered`: of fair and real-time tasks, to which alone a tapered one
/// applies. Rounding: down. Source: cpufreq_gov.c:apply_dvfs_headroom.
pub fn apply_dvfs_headroom(
    decay: &Decay,
    util: Util,
    capacity: Capacity,
    room: Room,
    tapered: bool,
) -> Util {
    match room {
        Room::Auto(us) => approximate_util_avg(decay, util, us),
        Room::Tapered(_) if tapered && util.0 >= capacity.0 => util,
        Room::Tapered(share) if tapered => {
            Util(util.0 + (((capacity.0 - util.0) * share.saturating_sub(1024)) >> 10))
        }
        Room::Tapered(share) | Room::Constant(share) => Util(util.0.wrapping_mul(share) >> 10),
    }
}

/// Rate limits of a policy, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// `up_rate_limit_us` · 1000.
    pub up_ns: u64,
    /// `down_rate_limit_us` · 1000.
    pub down_ns: u64,
    /// `down_rate_limit_scale_pow`, at least 1.
    pub scale_pow: u32,
}

impl RateLimits {
    /// Whether no look counts so early after a change (`min_rate_limit_ns`).
    pub fn holds_all(&self, delta_ns: u64) -> bool {
        delta_ns < self.up_ns.min(self.down_ns)
    }
    /// Whether a change from `now` to `next` comes too early after the last one. Rounding: down at
    /// each power; 64 bits, wrapping, as the kernel's. `now` 0, by which the kernel would divide,
    /// holds nothing. Source: cpufreq_gov.c:sugov_up_down_rate_limit.
    pub fn sugov_up_down_rate_limit(&self, delta_ns: u64, now: KHz, next: KHz) -> bool {
        if next > now {
            return delta_ns < self.up_ns;
        }
        if next == now || now.0 == 0 {
            return false;
        }
        let mut comp = self.down_ns.wrapping_mul(next.0);
        for _ in 1..self.scale_pow {
            comp = (comp / now.0).wrapping_mul(next.0);
        }
        delta_ns.wrapping_mul(now.0) < comp
    }
}

/// The iowait boost of one CPU, as `sched_pixel` has it: limited for each CPU, and kept for a ms
/// where nobody asks again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IowaitBoost {
    /// The boost, of 1024.
    pub boost: u32,
    /// True if the boost was raised since it was last applied.
    pub pending: bool,
    /// Time of the CPU's last update.
    pub last_update: Instant,
}

impl IowaitBoost {
    fn reset(&mut self, time: Instant, tick: Span, asked: bool) -> bool {
        let delta = time.0.wrapping_sub(self.last_update.0) as i64;
        if delta <= tick.0 as i64 {
            return false;
        }
        (self.boost, self.pending) = (if asked { IOWAIT_BOOST_MIN } else { 0 }, asked);
        true
    }

    /// Takes in an update; `asked`: by a task that waited for IO (whose own boost, with which the
    /// modules begin from 6.1 on, is left out); `most`: `per_cpu_iowait_boost_max_value`. Source:
    /// cpufreq_gov.c:sugov_iowait_boost.
    pub fn asks(&mut self, time: Instant, tick: Span, asked: bool, most: u32) {
        let resets = self.boost != 0 && self.reset(time, tick, asked);
        if !resets && asked && !self.pending {
            self.pending = true;
            self.boost = match self.boost {
                0 => IOWAIT_BOOST_MIN,
                boost => (boost << 1).min(most),
            };
        }
        self.last_update = time;
    }

    /// The boost to apply now, as a util of a CPU of this capacity; `keeps`: it is halved only a ms
    /// after the last update (from 6.1 on). Rounding: down. Source:
    /// cpufreq_gov.c:sugov_iowait_apply.
    pub fn applies(&mut self, time: Instant, tick: Span, capacity: Capacity, keeps: bool) -> Util {
        if self.boost == 0 || self.reset(time, tick, false) {
            return Util(0);
        }
        let since = time.0.wrapping_sub(self.last_update.0) as i64;
        let kept = self.pending || (keeps && since <= 1_000_000);
        if !kept {
            self.boost >>= 1;
            if self.boost < IOWAIT_BOOST_MIN {
                self.boost = 0;
                return Util(0);
            }
        }
        self.pending = false;
        Util((u64::from(self.boost)).wrapping_mul(capacity.0) >> 10)
    }
}

/// Parts of a CPU's util for its frequency.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// PELT's decay.
    pub decay: &'a Decay,
    /// `response_time_mult`, of 1024; 1024 where headroom is not automatic.
    pub response_time_mult: u64,
    /// Headroom; `None`: added to the frequency (the form of 5.10), or none.
    pub room: Option<Room>,
    /// Capacity of the CPU.
    pub capacity: Capacity,
}

/// `schedutil_cpu_util_pixel_mod`: util of a CPU for its frequency or its energy; `clamp`:
/// `uclamp_rq_util_with`, which comes after the headroom in 6.1. Rounding: down. Source:
/// cpufreq_gov.c.
pub fn schedutil_cpu_util(
    ask: &Ask<'_>,
    util_cfs: Util,
    rq: &RqUtil,
    kind: CpuUtilType,
    clamp: impl FnOnce(Util) -> Util,
) -> Util {
    let (max, frequency) = (ask.capacity.0, kind == CpuUtilType::Frequency);
    let room = |util: u64, tapered| match ask.room {
        Some(room) => apply_dvfs_headroom(ask.decay, Util(util), ask.capacity, room, tapered).0,
        None => util,
    };
    if (!rq.uclamp_is_used && frequency && rq.rt_runnable) || rq.irq.0 >= max {
        return Util(max);
    }
    let mut util = util_cfs.0 + rq.rt.0;
    if frequency {
        util = util.wrapping_mul(ask.response_time_mult) >> 10;
        util = clamp(Util(room(util, true))).0;
    }
    if util + rq.dl.0 >= max {
        return Util(max);
    }
    if !frequency {
        util += rq.dl.0;
    }
    util = scale_irq_capacity(util, rq.irq.0, max);
    util += if frequency { room(rq.irq.0, false) } else { rq.irq.0 };
    if frequency {
        util += room(rq.cpu_bw_dl().0, false);
    }
    Util(util.min(max))
}

/// The frequency for `util` of `capacity` before an OPP is chosen; `margin`: what is added here, of
/// 1024 (the form of 5.10; 1024 in 6.1). Rounding: down, after the margin and after the share.
/// Source: fair.c:map_util_freq_pixel_mod.
pub fn map_util_freq(util: Util, max: KHz, capacity: Capacity, margin: u64) -> KHz {
    let freq = max.0.wrapping_mul(margin) >> 10;
    KHz(freq.wrapping_mul(util.0).checked_div(capacity.0).unwrap_or(0))
}

/// Whether `util` fits by a fixed margin, of 1024 (`util_threshold`): other than mainline's, it may
/// fill its share to the last bit. Source: sched_priv.h:cpu_overutilized.
pub const fn fits_by_margin(util: Util, capacity: Capacity, margin: u64) -> bool {
    util.0.wrapping_mul(margin) <= capacity.0 << 10
}

/// Whether a task or CPU with these clamps fits, where its util does or does not (`fits`): other
/// than in mainline, a boost that the CPU cannot give means that it does not, but on the biggest
/// CPUs. `left`: the capacity less what heat takes. Source: sched_priv.h:util_fits_cpu.
pub fn util_fits_cpu(
    fits: bool,
    util: Util,
    (uclamp_min, uclamp_max): (Util, Util),
    capacity: Capacity,
    left: Capacity,
) -> bool {
    let biggest = capacity.0 == 1024;
    let forced = !(biggest && uclamp_max.0 == 1024) && uclamp_max.0 <= capacity.0;
    let min = uclamp_min.min(uclamp_max);
    let too_much = util < min && !biggest && min.0 > left.0;
    (fits || forced) && !too_much
}

/// `util_est` of a task: the two values that kernels up to 6.7 keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// The last sample (`util_est.enqueued`), without its flag.
    pub enqueued: u32,
    /// The average of samples (`util_est.ewma`).
    pub ewma: u32,
}

impl Estimate {
    /// The estimate. Source: sched_priv.h:_task_util_est.
    pub const fn value(self) -> Util {
        Util(if self.ewma > self.enqueued { self.ewma } else { self.enqueued } as u64)
    }
}

/// Account from which a task's estimate grows while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RampUp {
    /// `sum_exec_runtime` at the last look, in ns.
    pub prev_sum_exec_runtime: u64,
    /// Running time that counts, multiplied, in µs.
    pub delta_exec: u64,
    /// `util_avg` when the task last woke, and the time before.
    pub util_enqueued: Util,
    /// See [`RampUp::util_enqueued`].
    pub prev_util_enqueued: Util,
    /// True if no sample is taken when the task falls asleep.
    pub ignore_util_est_update: bool,
}

impl RampUp {
    /// Begins a turn of a task that wakes with `util_avg`. What it ran counts on, while util does
    /// not fall from one wakeup to the next. Source: fair.c:rvh_enqueue_task_fair_pixel_mod.
    pub fn wakes(&mut self, sum_exec_runtime: u64, util_avg: Util) {
        self.prev_sum_exec_runtime = sum_exec_runtime;
        self.util_enqueued = util_avg;
        self.ignore_util_est_update = util_avg >= self.prev_util_enqueued;
        if !self.ignore_util_est_update {
            self.delta_exec = 0;
        }
    }
    /// Ends a turn: what the task has run since the last tick or switch counts for nothing.
    /// Source: fair.c:rvh_dequeue_task_fair_pixel_mod.
    pub const fn sleeps(&mut self, sum_exec_runtime: u64) {
        self.prev_sum_exec_runtime = sum_exec_runtime;
        self.prev_util_enqueued = self.util_enqueued;
    }
    /// The new sample of a task at a tick or when it is switched out runnable; `None`: util has
    /// fallen since it woke, or it has no multiplier. Rounding: to whole µs, down. Source:
    /// sched_priv.h:__update_util_est_invariance.
    pub fn update_util_est_invariance(
        &mut self,
        decay: &Decay,
        sum_exec_runtime: u64,
        util_avg: Util,
        rampup_multiplier: u32,
    ) -> Option<Util> {
        if rampup_multiplier == 0 {
            return None;
        }
        let ran = sum_exec_runtime.wrapping_sub(self.prev_sum_exec_runtime) / 1000;
        self.delta_exec =
            self.delta_exec.wrapping_add(ran.wrapping_mul(u64::from(rampup_multiplier)));
        self.prev_sum_exec_runtime = sum_exec_runtime;
        (util_avg >= self.util_enqueued)
            .then(|| approximate_util_avg(decay, self.util_enqueued, self.delta_exec))
    }
}

/// Rules by which a task's sample is taken when it falls asleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Headroom is automatic: a sample may be above the CPU's capacity, and may be of an old value.
    pub auto: bool,
    /// `disable_util_est` of the task's group; acts with automatic headroom.
    pub disabled: bool,
    /// [`RampUp::ignore_util_est_update`], of a task that has a multiplier.
    pub ignored: bool,
}

/// The estimate of a task that falls asleep with `util_avg`; `unchanged`: of which a sample was
/// taken already. Rounding: down. Source: fair.c:rvh_util_est_update_pixel_mod.
pub fn util_est_update(
    est: Estimate,
    util_avg: Util,
    unchanged: bool,
    capacity: Capacity,
    rules: Sampling,
) -> (Estimate, bool) {
    let near = |value: i64| (-9..=9).contains(&value);
    let flag = if unchanged { i64::from(UTIL_AVG_UNCHANGED) } else { 0 };
    if rules.auto && rules.disabled {
        return (Estimate::default(), false);
    }
    if if rules.auto { rules.ignored } else { unchanged } {
        return (est, unchanged);
    }
    let sample = util_avg.0 as u32;
    let sampled = Estimate { enqueued: sample, ..est };
    if est.ewma < sample {
        return (Estimate { enqueued: sample, ewma: sample }, true);
    }
    let diff = i64::from(sample) - i64::from(est.ewma);
    let of_last = (i64::from(est.enqueued) | flag) - i64::from(sample);
    if near(diff) {
        return if near(of_last) { (est, unchanged) } else { (sampled, true) };
    }
    if !rules.auto && util_avg.0 > capacity.0 {
        return (est, unchanged);
    }
    let ewma = ((i64::from(est.ewma) << 2) + diff) >> 2;
    (Estimate { ewma: ewma as u32, ..sampled }, true)
}

/// `util_avg` of a new task, where headroom is not automatic (where it is, 0): only on a CPU whose
/// fair tasks had nothing, else the kernel's own. Rounding: down. Source:
/// fair.c:rvh_post_init_entity_util_avg_pixel_mod.
pub const fn post_init_util(capacity: Capacity, scale: u64) -> Util {
    Util(scale.wrapping_mul(capacity.0) / 1024)
}

/// An OPP of the modules' own energy model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PixelOpp {
    /// Frequency of the OPP.
    pub freq: KHz,
    /// Capacity of a CPU there.
    pub capacity: Capacity,
    /// Power for a unit of capacity.
    pub cost: u64,
    /// True if the next OPP costs no more.
    pub inefficient: bool,
}

/// The energy model of a cluster from frequency, capacity and power (µW) of its OPPs, ascending.
/// Rounding: down. Source: pixel_em.c:update_em_entry, update_inefficient_prev_opp.
pub fn pixel_em(opps: impl Iterator<Item = (KHz, Capacity, u64)>) -> alloc::vec::Vec<PixelOpp> {
    let cost = |power: u64, capacity: Capacity| power.checked_div(capacity.0).unwrap_or(0);
    let mut all: alloc::vec::Vec<PixelOpp> = opps
        .map(|(freq, capacity, power)| PixelOpp {
            freq,
            capacity,
            cost: cost(power, capacity),
            inefficient: false,
        })
        .collect();
    for i in 1..all.len() {
        all[i - 1].inefficient = all[i - 1].cost >= all[i].cost;
    }
    all
}

/// The first OPP that is fast enough, else the last; `efficient`: of those that are no waste.
/// Source: fair.c:map_util_freq_pixel_mod, em_cpu_energy_pixel_mod.
pub fn opp_for(opps: &[PixelOpp], freq: KHz, efficient: bool) -> Option<&PixelOpp> {
    let enough = opps.iter().find(|o| o.freq >= freq && !(efficient && o.inefficient));
    enough.or(opps.last())
}

#[cfg(test)]
mod tests;
