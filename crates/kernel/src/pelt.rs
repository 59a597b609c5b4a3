//! PELT, per-entity load tracking: how much an entity wanted, waited and ran, recently.
//!
//! Time is cut into periods of 1024 units of 1024 ns (1.048576 ms). Every period weighs y of
//! the period after it, with `y^h = 1/2` (mainline: h = 32 periods):
//!
//! ```text
//!            d1           d2            d3          d1: rest of the period the last update left
//!          |<-->|<------------------>|<---->|       d2: the whole periods since
//!  ... |---x----|------| .... |------|------x now   d3: what has passed of the current period
//!
//!                                  p-1
//!  sum' = sum y^p + d1 y^p + 1024 ( Σ  y^n ) + d3           p = period boundaries crossed
//!                                  n=1
//!  avg  = sum / divider,    divider = LOAD_AVG_MAX - 1024 + period_contrib
//! ```
//!
//! The divider is the largest sum that can exist at this position in the period. `*_avg` are
//! refreshed only when a boundary is crossed; `*_sum` at every whole unit of 1024 ns.
//!
//! The time is a runqueue's `clock_pelt` ([`crate::clock_pelt`]), already scaled by capacity and
//! frequency; before 5.1 it was the task clock and the contribution was scaled instead
//! ([`crate::pelt_before`]). How an entity joins and leaves a runqueue's sums is in
//! [`crate::pelt_cfs`]. Left out: CFS bandwidth throttling of the clock.
//!
//! Source: kernel/sched/pelt.c, kernel/sched/pelt.h, Documentation/scheduler/sched-pelt.c.

use crate::pelt_before::{Scale, update_load_sum_pre_5_1};
use crate::units::{Capacity, ClockPelt, Instant, Util, Weight};

/// The longest half-life a [`Decay`] can hold, in periods.
pub const MAX_HALF_LIFE: u32 = 512;

/// Units of 1024 ns in one PELT period.
const PERIOD: u64 = 1024;

/// The decay `y` of one half-life: `y^h = 1/2`, as tables.
///
/// Mainline is [`Decay::MS32`]; Android's `pelt=16` and `pelt=8` used shorter ones, with a `LOAD_AVG_MAX` of
/// 24152 and 12337, 1024 / (1 - y) without rounding. Here it is what the kernel's generator gives, 24130 and
/// 12326: a sum that its own arithmetic reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decay {
    /// `LOAD_AVG_PERIOD`: half-life in periods of 1.048576 ms.
    half_life: u32,
    /// `LOAD_AVG_MAX`: the sum of an entity that always ran, at the end of a period.
    load_avg_max: u32,
    /// `runnable_avg_yN_inv[n]` = ⌊(2³² − 1) · yⁿ⌋ for n < half_life.
    yn_inv: [u32; MAX_HALF_LIFE as usize],
    /// `sched_pelt_lshift` of the response-time series: a unit is 1024 ns >> this.
    lshift: u32,
    /// True before 4.12: what is less than a unit at an update is lost.
    loses_rest: bool,
    /// True before 4.13: a sum is divided by what a whole period would hold.
    whole_divider: bool,
}

impl Decay {
    /// Mainline: half-life of 32 periods (33.55 ms).
    pub const MS32: Decay = Decay::of(32);
    /// Half-life of 16 periods.
    pub const MS16: Decay = Decay::of(16);
    /// Half-life of 8 periods.
    pub const MS8: Decay = Decay::of(8);

    /// The decay with a half-life of `periods`; `None` outside 1..=[`MAX_HALF_LIFE`].
    pub const fn new(periods: u32) -> Option<Decay> {
        if periods == 0 || periods > MAX_HALF_LIFE {
            return None;
        }
        Some(Decay::of(periods))
    }

    /// `half_life` must be in 1..=MAX_HALF_LIFE.
    const fn of(half_life: u32) -> Decay {
        let y = half_life_root(half_life);
        let mut yn_inv = [0; MAX_HALF_LIFE as usize];
        let mut power = ONE;
        let mut n = 0;
        while n < half_life as usize {
            yn_inv[n] = inverse(power);
            power = mul_fixed(power, y);
            n += 1;
        }
        Decay {
            half_life,
            load_avg_max: converged_max(inverse(y)),
            yn_inv,
            lshift: 0,
            loses_rest: false,
            whole_divider: false,
        }
    }

    /// Returns this decay with time running 1, 2 or 4 times as fast: half-lives of 32, 16 and 8 of
    /// mainline's periods with the tables of one, which is how the response-time series shortens
    /// them. `None` for other multipliers. Source: RFC 00/16, patch 7, `sched_pelt_multiplier`.
    pub const fn with_multiplier(self, multiplier: u32) -> Option<Decay> {
        match multiplier {
            1 | 2 | 4 => Some(Decay { lshift: multiplier >> 1, ..self }),
            _ => None,
        }
    }

    /// Returns this decay as before 4.12 (`loses_rest`) and before 4.13 (`whole_divider`); see
    /// [`crate::pelt_before`].
    pub const fn before(self, loses_rest: bool, whole_divider: bool) -> Decay {
        Decay { loses_rest, whole_divider, ..self }
    }

    /// Whether what is less than a unit at an update is lost.
    pub(crate) const fn loses_rest(&self) -> bool {
        self.loses_rest
    }

    /// `sched_pelt_lshift`: so many bits shorter than 1024 ns is a unit of time.
    pub const fn lshift(&self) -> u32 {
        self.lshift
    }

    /// `LOAD_AVG_PERIOD`: the half-life in periods.
    pub const fn half_life(&self) -> u32 {
        self.half_life
    }

    /// `LOAD_AVG_MAX`: the largest `load_sum` of an entity of weight 1.
    pub const fn load_avg_max(&self) -> u32 {
        self.load_avg_max
    }

    /// `PELT_MIN_DIVIDER`: the divider at the very start of a period.
    pub const fn pelt_min_divider(&self) -> u32 {
        self.load_avg_max - PERIOD as u32
    }

    /// Decays `val` by `n` periods: val · yⁿ.
    ///
    /// Rounding: down, once for the halvings and once for the rest. Beyond 63 half-lives: 0.
    /// Source: pelt.c:decay_load.
    #[inline]
    pub const fn decay_load(&self, val: u64, n: u64) -> u64 {
        if n > self.half_life as u64 * 63 {
            return 0;
        }
        let mut val = val;
        let mut n = n as u32;
        if n >= self.half_life {
            val >>= n / self.half_life;
            n %= self.half_life;
        }
        ((val as u128 * self.yn_inv[n as usize] as u128) >> 32) as u64
    }
}

/// 1 in the fixed point (62 fractional bits) in which `y` is found.
const ONE: u64 = 1 << 62;

const fn mul_fixed(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 62) as u64
}

const fn pow_fixed(base: u64, exp: u32) -> u64 {
    let (mut result, mut square, mut exp) = (ONE, base, exp);
    while exp > 0 {
        if exp & 1 == 1 {
            result = mul_fixed(result, square);
        }
        square = mul_fixed(square, square);
        exp >>= 1;
    }
    result
}

/// The largest y with y^h ≤ 1/2. Its error of about h · 2⁻⁶² is far below the 2⁻³² of the table.
const fn half_life_root(h: u32) -> u64 {
    let (mut low, mut high) = (ONE / 2, ONE);
    while high - low > 1 {
        let mid = low + (high - low) / 2;
        if pow_fixed(mid, h) <= ONE / 2 {
            low = mid;
        } else {
            high = mid;
        }
    }
    low
}

/// Computes ⌊(2³² − 1) · v⌋ of a fixed-point v ≤ 1.
const fn inverse(v: u64) -> u32 {
    ((u32::MAX as u128 * v as u128) >> 62) as u32
}

/// The fixed point of max ← max · y + 1024. Source:
/// Documentation/scheduler/sched-pelt.c:calc_converged_max.
const fn converged_max(y_inv: u32) -> u32 {
    let mut max: u64 = PERIOD;
    loop {
        let next = ((max * y_inv as u64) >> 32) + PERIOD;
        if next == max {
            return max as u32;
        }
        max = next;
    }
}

/// The PELT signals of an entity or a runqueue (`struct sched_avg`).
///
/// For a task `load_sum` carries no weight; for a `cfs_rq` all its entities' weights are in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedAvg {
    /// Time up to which the sums are current, in the clock this signal uses.
    pub last_update_time: ClockPelt,
    /// Decayed runnable time (× weight on a `cfs_rq`), in units of 1024 ns.
    pub load_sum: u64,
    /// Decayed runnable time × 1024 × number runnable.
    pub runnable_sum: u64,
    /// Decayed running time × 1024. 32 bits wide, as in the kernel.
    pub util_sum: u32,
    /// Units of the current period already in the sums, 0..1023.
    pub period_contrib: u32,
    /// Weight × share of time runnable.
    pub load_avg: u64,
    /// 1024 × number runnable, averaged.
    pub runnable_avg: Util,
    /// 1024 × share of time running.
    pub util_avg: Util,
}

/// Parameters of an update.
#[derive(Clone, Copy)]
pub struct Pelt<'a> {
    /// Decay of time that is past.
    pub decay: &'a Decay,
    /// Scale of a contribution; `None`: none, since the clock is scaled.
    pub scale: Option<Scale>,
}

impl<'a> From<&'a Decay> for Pelt<'a> {
    fn from(decay: &'a Decay) -> Pelt<'a> {
        Pelt { decay, scale: None }
    }
}

/// The largest unweighted sum at this entity's position in the period.
/// Source: pelt.h:get_pelt_divider.
#[inline]
pub const fn get_pelt_divider(decay: &Decay, sa: &SchedAvg) -> u32 {
    if decay.whole_divider {
        return decay.load_avg_max;
    }
    decay.pelt_min_divider().wrapping_add(sa.period_contrib)
}

/// The contribution of `periods` crossed boundaries: d1 units, whole periods, d3 units. Source:
/// pelt.c:__accumulate_pelt_segments.
#[inline]
fn accumulate_pelt_segments(decay: &Decay, periods: u64, d1: u32, d3: u32) -> u32 {
    let max = decay.load_avg_max as u64;
    let c1 = decay.decay_load(d1 as u64, periods) as u32;
    // Σ y^n over 1..p-1 is what the infinite sum loses to its tail and its first term.
    let c2 = max.wrapping_sub(decay.decay_load(max, periods)).wrapping_sub(PERIOD) as u32;
    c1.wrapping_add(c2).wrapping_add(d3)
}

/// Ages the sums over `delta` units and moves `period_contrib`. Returns the boundaries crossed
/// and the contribution of the elapsed time.
#[inline]
pub(crate) fn age_sums(
    decay: &Decay,
    sa: &mut SchedAvg,
    delta: u64,
    contributes: bool,
) -> (u64, u32) {
    let mut contrib = delta as u32;
    let mut delta = delta.wrapping_add(sa.period_contrib as u64);
    let periods = delta / PERIOD;
    if periods != 0 {
        sa.load_sum = decay.decay_load(sa.load_sum, periods);
        sa.runnable_sum = decay.decay_load(sa.runnable_sum, periods);
        sa.util_sum = decay.decay_load(sa.util_sum as u64, periods) as u32;
        delta %= PERIOD;
        if contributes {
            let d1 = (PERIOD as u32).wrapping_sub(sa.period_contrib);
            contrib = accumulate_pelt_segments(decay, periods, d1, delta as u32);
        }
    }
    sa.period_contrib = delta as u32;
    (periods, contrib)
}

/// Adds `delta` units of running to the util signal only (`accumulate_sum(delta, sa, 1, 0, 1)`).
pub(crate) fn accumulate_running(decay: &Decay, sa: &mut SchedAvg, delta: u64) {
    let (_, contrib) = age_sums(decay, sa, delta, true);
    sa.util_sum = sa.util_sum.wrapping_add(contrib << 10);
}

/// Counts the whole units of time since the last update, which moves on by them; `None` if there is
/// none or the clock went back (then only the time stamp follows).
#[inline]
pub(crate) fn elapsed_units(decay: &Decay, now: u64, sa: &mut SchedAvg) -> Option<u64> {
    let delta = now.wrapping_sub(sa.last_update_time.0);
    if (delta as i64) < 0 {
        sa.last_update_time = ClockPelt(now);
        return None;
    }
    let time_shift = 10 - decay.lshift;
    let delta = delta >> time_shift;
    if delta == 0 {
        return None;
    }
    sa.last_update_time.0 = match decay.loses_rest {
        false => sa.last_update_time.0.wrapping_add(delta << time_shift),
        true => now,
    };
    Some(delta)
}

/// Brings the sums up to `now`, the flags being the state during the time that passed.
///
/// `load` = weight that was runnable, `runnable` = number runnable, `running` = one of them ran.
/// Without load the other two count as zero. Returns whether a period boundary was crossed.
/// Wraps where the kernel's C wraps. Source: pelt.c:___update_load_sum, accumulate_sum.
#[inline]
pub fn update_load_sum(
    decay: &Decay,
    now: ClockPelt,
    sa: &mut SchedAvg,
    load: u64,
    runnable: u64,
    running: bool,
) -> bool {
    match elapsed_units(decay, now.0, sa) {
        // As often as not: what happens at one instant updates a signal more than once.
        None => false,
        Some(delta) => accumulate_sum(decay, delta, sa, load, runnable, running),
    }
}

/// `delta` units of time have passed. Source: pelt.c:accumulate_sum.
fn accumulate_sum(
    decay: &Decay,
    delta: u64,
    sa: &mut SchedAvg,
    load: u64,
    runnable: u64,
    running: bool,
) -> bool {
    let (periods, contrib) = age_sums(decay, sa, delta, load != 0);
    if load != 0 {
        sa.load_sum = sa.load_sum.wrapping_add(load.wrapping_mul(contrib as u64));
        let runnable = runnable.wrapping_mul(contrib as u64) << 10;
        sa.runnable_sum = sa.runnable_sum.wrapping_add(runnable);
        if running {
            sa.util_sum = sa.util_sum.wrapping_add(contrib << 10);
        }
    }
    // The kernel hands the number of periods back as 32 bits.
    periods as u32 != 0
}

/// Refreshes the averages from the sums; `load` is the weight that `load_sum` does not carry.
///
/// Rounding: down. Source: pelt.c:___update_load_avg.
#[inline]
pub fn update_load_avg(decay: &Decay, sa: &mut SchedAvg, load: u64) {
    let divider = get_pelt_divider(decay, sa);
    sa.load_avg = load.wrapping_mul(sa.load_sum) / divider as u64;
    sa.runnable_avg = Util(sa.runnable_sum / divider as u64);
    sa.util_avg = Util((sa.util_sum / divider) as u64);
}

/// Sums, then averages if a boundary was crossed (which is also the answer).
#[inline]
fn update<'a>(
    pelt: impl Into<Pelt<'a>>,
    now: ClockPelt,
    sa: &mut SchedAvg,
    state: (u64, u64, bool),
    weight: u64,
) -> bool {
    let Pelt { decay, scale } = pelt.into();
    let crossed = match scale {
        None if !decay.loses_rest => update_load_sum(decay, now, sa, state.0, state.1, state.2),
        scale => update_load_sum_pre_5_1(decay, now, sa, state, scale.unwrap_or_default()),
    };
    if crossed {
        update_load_avg(decay, sa, weight);
    }
    crossed
}

/// Updates an entity on a runqueue: a task (`runnable` 0 or 1) or a group (`runnable` = its
/// children's `h_nr_runnable`).
///
/// `on_rq`, `runnable` and `running` are the state during the time that passed; a task whose
/// dequeue is delayed is on the queue but not runnable. True when a period boundary was crossed,
/// and then the caller clears the task's [`crate::util_est::UtilEst`] flag.
/// Source: pelt.c:__update_load_avg_se.
#[inline]
pub fn update_load_avg_se<'a>(
    pelt: impl Into<Pelt<'a>>,
    now: ClockPelt,
    sa: &mut SchedAvg,
    weight: Weight,
    on_rq: bool,
    runnable: u64,
    running: bool,
) -> bool {
    update(pelt, now, sa, (on_rq as u64, runnable, running), weight.0)
}

/// Ages an entity that is not on a runqueue. True when a period boundary was crossed.
/// Source: pelt.c:__update_load_avg_blocked_se.
#[inline]
pub fn update_load_avg_blocked_se(
    decay: &Decay,
    now: ClockPelt,
    sa: &mut SchedAvg,
    weight: Weight,
) -> bool {
    update(decay, now, sa, (0, 0, false), weight.0)
}

/// Updates the signals of a `cfs_rq`: `load` = sum of the queued weights, `h_nr_runnable` = tasks
/// runnable below it, `running` = it has a current entity. True when a boundary was crossed.
///
/// Removed load is not taken off here: see [`crate::pelt_cfs::update_cfs_rq_load_avg`].
/// Source: pelt.c:__update_load_avg_cfs_rq.
#[inline]
pub fn update_load_avg_cfs_rq<'a>(
    pelt: impl Into<Pelt<'a>>,
    now: ClockPelt,
    sa: &mut SchedAvg,
    load: Weight,
    h_nr_runnable: u64,
    running: bool,
) -> bool {
    update(pelt, now, sa, (load.0, h_nr_runnable, running), 1)
}

/// Updates a CPU's RT signal (`rq->avg_rt`); only `util_avg` means something.
/// Source: pelt.c:update_rt_rq_load_avg.
#[inline]
pub fn update_rt_rq_load_avg<'a>(
    pelt: impl Into<Pelt<'a>>,
    now: ClockPelt,
    sa: &mut SchedAvg,
    running: bool,
) -> bool {
    update(pelt, now, sa, (running as u64, running as u64, running), 1)
}

/// Updates a CPU's deadline signal (`rq->avg_dl`); only `util_avg` means something.
/// Source: pelt.c:update_dl_rq_load_avg.
#[inline]
pub fn update_dl_rq_load_avg<'a>(
    pelt: impl Into<Pelt<'a>>,
    now: ClockPelt,
    sa: &mut SchedAvg,
    running: bool,
) -> bool {
    update_rt_rq_load_avg(pelt, now, sa, running)
}

/// Updates the signal of capacity lost to hardware (`rq->avg_hw`, thermal pressure before 6.10);
/// only `load_avg` means something. It runs on `rq->clock_task`, not on `clock_pelt`.
/// Source: pelt.c:update_hw_load_avg.
#[inline]
pub fn update_hw_load_avg(
    decay: &Decay,
    clock_task: Instant,
    sa: &mut SchedAvg,
    pressure: Capacity,
) -> bool {
    let state = (pressure.0, pressure.0, pressure.0 as u32 != 0);
    update(decay, ClockPelt(clock_task.0), sa, state, 1)
}

/// Updates the IRQ signal (`rq->avg_irq`) with `running_ns` of interrupt time that ended at
/// `clock` (`rq->clock`). Only `util_avg` means something.
///
/// The running time is scaled by frequency first and by capacity second, each rounded down: the
/// other way round than `clock_pelt`. Returns how many of the two steps (up to the interrupt, and
/// through it) crossed a period boundary. Source: pelt.c:update_irq_load_avg.
pub fn update_irq_load_avg(
    decay: &Decay,
    clock: Instant,
    sa: &mut SchedAvg,
    running_ns: u64,
    cpu_capacity: Capacity,
    freq_scale: u64,
) -> u32 {
    let running = cap_scale(cap_scale(running_ns, freq_scale), cpu_capacity.0);
    let before = ClockPelt(clock.0.wrapping_sub(running));
    let crossed = update_load_sum(decay, before, sa, 0, 0, false) as u32
        + update_load_sum(decay, ClockPelt(clock.0), sa, 1, 1, true) as u32;
    if crossed != 0 {
        update_load_avg(decay, sa, 1);
    }
    crossed
}

/// Computes v · s / 1024, rounded down; the product wraps at 64 bits. Source: sched.h:cap_scale.
#[inline]
pub const fn cap_scale(v: u64, s: u64) -> u64 {
    v.wrapping_mul(s) >> 10
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task that runs all the time, updated at each of `steps` ns.
    fn busy(sa: &mut SchedAvg, steps: impl IntoIterator<Item = u64>) -> alloc::vec::Vec<u64> {
        let decay = &Decay::MS32;
        let mut now = sa.last_update_time;
        let update = |step| {
            now.0 += step;
            update_load_avg_se(decay, now, sa, Weight(1024), true, 1, true);
            sa.util_avg.0
        };
        steps.into_iter().map(update).collect()
    }

    #[test]
    fn mainline_tables_follow_from_the_half_life() {
        assert_eq!(Decay::MS32.load_avg_max(), 47742);
        let inv = &Decay::MS32.yn_inv[..Decay::MS32.half_life as usize];
        assert_eq!(inv.len(), 32);
        // As printed by the kernel's own generator, which computes in floating point.
        assert_eq!(inv[..4], [0xffff_ffff, 0xfa83_b2da, 0xf525_7d14, 0xefe4_b99a]);
        assert_eq!(inv[16], 0xb504_f333, "2^32 / sqrt 2");
        // What the generator gives for others; the sums of exact arithmetic are a little larger.
        assert_eq!([Decay::MS16, Decay::MS8].map(|d| d.load_avg_max()), [24130, 12326]);
        assert_eq!(inv[28..], [0x8b95_c1e3, 0x8898_0e80, 0x85aa_c367, 0x82cd_8698]);
    }

    #[test]
    fn every_half_life_halves() {
        for periods in 1..=MAX_HALF_LIFE {
            let decay = Decay::new(periods).expect("in range");
            assert_eq!(decay.half_life(), periods);
            let half = decay.decay_load(1 << 20, periods as u64);
            assert!((1 << 19) - half <= 1, "{periods}: {half}");
            // Σ 1024·y^n = 1024 / (1 - y) ≈ 1024 · (h / ln 2 + 1/2), less what rounding loses.
            let ideal = 1024 * periods as u64 * 1_442_695 / 1_000_000 + 512;
            let max = decay.load_avg_max() as u64;
            assert!(max <= ideal + 90 && ideal - ideal / 60 <= max, "{periods}: {max} of {ideal}");
            // No further period moves a sum that has reached the maximum.
            assert_eq!(decay.decay_load(max, 1) + 1024, max, "{periods}");
        }
        assert_eq!(Decay::new(0), None);
        assert_eq!(Decay::new(MAX_HALF_LIFE + 1), None);
        assert_eq!(Decay::new(8), Some(Decay::MS8));
        assert_eq!(Decay::new(16), Some(Decay::MS16));
    }

    #[test]
    fn decay_ends_after_63_half_lives() {
        let decay = &Decay::MS32;
        assert_eq!(decay.decay_load(u64::MAX, 0), u64::MAX - (1 << 32), "even no time rounds down");
        assert_eq!(decay.decay_load(u64::MAX, 32 * 63), 0);
        assert_eq!(decay.decay_load(u64::MAX, 32 * 63 - 1), 1);
        assert_eq!(decay.decay_load(u64::MAX, 32 * 63 + 1), 0);
        assert_eq!(decay.decay_load(u64::MAX, u64::MAX), 0);
    }

    /// The list in the response-time series (rfc-2024): util at each 1-ms tick of an ideal ramp.
    #[test]
    fn published_ramp_is_matched_exactly() {
        let mut sa = SchedAvg { period_contrib: 352, ..SchedAvg::default() };
        let steps = core::iter::once(286_720).chain(core::iter::repeat_n(1_000_000, 31));
        let util = busy(&mut sa, steps);
        assert_eq!(util[..9], [0, 26, 47, 67, 86, 105, 124, 143, 161]);
        assert!(util.contains(&453), "{util:?}");
    }

    #[test]
    fn the_multiplier_lets_time_run_faster() {
        for multiplier in [2u64, 4] {
            let fast = Decay::MS32.with_multiplier(multiplier as u32).expect("known");
            let (mut a, mut b) = (SchedAvg::default(), SchedAvg::default());
            for ms in [1, 3, 40, 41, 90, 300] {
                let at = |factor| ClockPelt(ms * factor * 1_024_000);
                update_load_avg_se(&fast, at(1), &mut a, Weight(1024), true, 1, ms < 100);
                let (decay, now) = (&Decay::MS32, at(multiplier));
                update_load_avg_se(decay, now, &mut b, Weight(1024), true, 1, ms < 100);
                let b = SchedAvg { last_update_time: a.last_update_time, ..b };
                assert_eq!(a, b, "{multiplier} {ms}");
            }
            // Less than a unit of time is kept for later: 512 or 256 ns.
            let now = ClockPelt(a.last_update_time.0 + 1024 / multiplier - 1);
            let before = a.last_update_time;
            update_load_avg_se(&fast, now, &mut a, Weight(1024), true, 1, true);
            assert_eq!(a.last_update_time, before);
        }
        assert_eq!([0, 3, 5, 8].map(|m| Decay::MS32.with_multiplier(m)), [const { None }; 4]);
    }

    #[test]
    fn averages_wait_for_the_period_boundary() {
        let mut sa = SchedAvg::default();
        assert_eq!(busy(&mut sa, [1_048_575]), [0], "one ns short of a period");
        assert_eq!((sa.util_sum, sa.period_contrib), (1023 << 10, 1023));
        assert_eq!(sa.last_update_time, ClockPelt(1023 << 10), "the rest of a unit is kept");
        assert_eq!(busy(&mut sa, [1024]), [21]);
        assert_eq!(sa.period_contrib, 0);
    }

    #[test]
    fn a_clock_that_goes_back_only_moves_the_stamp() {
        let mut sa = SchedAvg::default();
        busy(&mut sa, [50_000_000]);
        let before = sa;
        let early = ClockPelt(1_000_000);
        assert!(!update_load_avg_se(&Decay::MS32, early, &mut sa, Weight(1024), true, 1, true));
        assert_eq!(sa, SchedAvg { last_update_time: early, ..before });
    }

    #[test]
    fn running_without_load_counts_as_idle() {
        let (mut odd, mut idle) = (SchedAvg::default(), SchedAvg::default());
        busy(&mut odd, [50_000_000]);
        busy(&mut idle, [50_000_000]);
        let later = ClockPelt(80_000_000);
        update_load_avg_se(&Decay::MS32, later, &mut odd, Weight(1024), false, 1, true);
        update_load_avg_blocked_se(&Decay::MS32, later, &mut idle, Weight(1024));
        assert_eq!(odd, idle);
    }

    #[test]
    fn a_period_count_beyond_32_bits_is_cut_off() {
        // 2^32 periods: the kernel's return value is 32 bits wide, so the averages stay.
        let mut sa = SchedAvg::default();
        busy(&mut sa, [50_000_000]);
        let before = sa.util_avg;
        let far = ClockPelt(sa.last_update_time.0 + (1 << 52));
        assert!(!update_load_avg_blocked_se(&Decay::MS32, far, &mut sa, Weight(1024)));
        assert_eq!((sa.util_sum, sa.util_avg), (0, before));
    }

    #[test]
    fn irq_time_scales_by_frequency_first() {
        // 358269 ns at 3/1024 and then 1000/1024 are 1024 ns, one unit; the other way round 1025,
        // which would begin a second unit.
        let mut sa = SchedAvg::default();
        let (clock, running) = (Instant(512 << 10), 358_269);
        update_irq_load_avg(&Decay::MS32, clock, &mut sa, running, Capacity(1000), 3);
        assert_eq!(cap_scale(cap_scale(running, 1000), 3), 1025);
        assert_eq!(sa.util_sum, 1 << 10);
    }

    #[test]
    fn hardware_pressure_averages_the_lost_capacity() {
        let mut sa = SchedAvg::default();
        for ms in 1..500u64 {
            let now = Instant(ms * 1_000_000);
            update_hw_load_avg(&Decay::MS32, now, &mut sa, Capacity(300));
        }
        assert!((297..=300).contains(&sa.load_avg), "{}", sa.load_avg);
    }
}
