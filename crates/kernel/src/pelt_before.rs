//! PELT as it was: before 5.1, before 4.13, before 4.12.
//!
//! ```text
//!  before 5.1    the clock is the task clock; the contribution of the time that passed is scaled by the
//!                frequency (all sums) and by the CPU's capacity (util_sum)
//!  before 4.13   avg = sum / LOAD_AVG_MAX: the period under way counts as if it were whole, and
//!                the average of a task that always runs goes up and down by 2 % within each period
//!  before 4.12   what is less than 1024 ns at an update is lost, instead of being kept for the next one;
//!                the three parts of the time that passed are scaled one by one, rounded down each time
//! ```
//!
//! Scaled contributions never let a CPU look busier than its frequency makes it: at half speed util ends at 512
//! however long a task runs, and each update scales all the time that passed with the speed of that moment.
//!
//! `DEVIATES(pelt-runnable-pre-5.7)`: in the form of before 5.1, too, `runnable_sum` counts tasks as
//! since 5.7, and is scaled by the frequency, where the `runnable_load_sum` of that time weighted them.
//! No effect on util or load.
//!
//! `DEVIATES(pelt-attach-pre-4.15)`: in all forms entities join and leave a runqueue's sums as they do since 5.17,
//! aligned with its period and held above a bound; up to 4.14 the bare sums were added and
//! taken off. Effect: within a period's rounding.
//!
//! Source: Linux 4.20 pelt.c:accumulate_sum; Linux 4.4 fair.c:__update_load_avg,
//! __compute_runnable_contrib; commits bb0bd044e65c (4.12, small tasks), 625ed2bf049d (4.13, more stable averages).

use crate::pelt::{Decay, SchedAvg, age_sums, cap_scale, elapsed_units};
use crate::units::{Capacity, ClockPelt};

/// Factors by which a contribution is scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// `arch_scale_freq_capacity`.
    pub freq: u64,
    /// `arch_scale_cpu_capacity`.
    pub cpu: Capacity,
}

impl Default for Scale {
    /// The scale of the biggest CPU at its highest frequency, which changes nothing.
    fn default() -> Scale {
        Scale { freq: 1024, cpu: Capacity(1024) }
    }
}

/// The counts that held while time passed: the weight that was runnable, the number runnable,
/// whether one of them ran.
type Counts = (u64, u64, bool);

/// [`crate::pelt::update_load_sum`] with scaled contributions, on the task clock.
/// Source: Linux 4.20 pelt.c:___update_load_sum.
pub(crate) fn update_load_sum_pre_5_1(
    decay: &Decay,
    clock_task: ClockPelt,
    sa: &mut SchedAvg,
    counts: Counts,
    scale: Scale,
) -> bool {
    let Some(delta) = elapsed_units(decay, clock_task.0, sa) else {
        return false;
    };
    if decay.loses_rest() {
        return accumulate_sum_pre_4_12(decay, delta, sa, counts, scale);
    }
    let (periods, contrib) = age_sums(decay, sa, delta, counts.0 != 0);
    add(sa, contrib, counts, scale);
    periods as u32 != 0
}

/// `contrib` units more, if anything was runnable.
fn add(sa: &mut SchedAvg, contrib: u32, (load, runnable, running): Counts, scale: Scale) {
    if load == 0 {
        return;
    }
    let contrib = cap_scale(contrib as u64, scale.freq) as u32;
    sa.load_sum = sa.load_sum.wrapping_add(load.wrapping_mul(contrib as u64));
    let runnable = runnable.wrapping_mul(contrib as u64) << 10;
    sa.runnable_sum = sa.runnable_sum.wrapping_add(runnable);
    if running {
        let util = (contrib as u64).wrapping_mul(scale.cpu.0) as u32;
        sa.util_sum = sa.util_sum.wrapping_add(util);
    }
}

/// `delta` units of time have passed: the rest of the period that the last update left, which fades with what
/// was there before, the whole periods since, and what has passed of the one under way.
/// Source: Linux 4.4 fair.c:__update_load_avg.
fn accumulate_sum_pre_4_12(
    decay: &Decay,
    delta: u64,
    sa: &mut SchedAvg,
    counts: Counts,
    scale: Scale,
) -> bool {
    let first = 1024 - sa.period_contrib as u64;
    if delta < first {
        add(sa, delta as u32, counts, scale);
        sa.period_contrib += delta as u32;
        return false;
    }
    add(sa, first as u32, counts, scale);
    let (periods, rest) = ((delta - first) / 1024, (delta - first) % 1024);
    sa.load_sum = decay.decay_load(sa.load_sum, periods + 1);
    sa.runnable_sum = decay.decay_load(sa.runnable_sum, periods + 1);
    sa.util_sum = decay.decay_load(sa.util_sum as u64, periods + 1) as u32;
    add(sa, compute_runnable_contrib(decay, periods), counts, scale);
    add(sa, rest as u32, counts, scale);
    sa.period_contrib = rest as u32;
    true
}

/// The contribution of `periods` whole periods at their end: Σ 1024·yⁿ over 1..=periods, rounded
/// down at each period within a half-life, and each half-life before that halved.
///
/// From 345 periods on (of a half-life of 32; `LOAD_AVG_MAX_N`) it is `LOAD_AVG_MAX`.
/// Source: Linux 4.4 fair.c:__compute_runnable_contrib, whose table `runnable_avg_yN_sum` this sums up.
fn compute_runnable_contrib(decay: &Decay, periods: u64) -> u32 {
    let half_life = decay.half_life() as u64;
    if periods >= 345 * half_life / 32 {
        return decay.load_avg_max();
    }
    let sum = |n: u64| (0..n).fold(0, |sum, _| decay.decay_load(sum + 1024, 1));
    if periods <= half_life {
        return sum(periods) as u32;
    }
    let (of_half_life, mut left, mut contrib) = (sum(half_life), periods, 0);
    while left > half_life {
        contrib = contrib / 2 + of_half_life;
        left -= half_life;
    }
    (decay.decay_load(contrib, left) + sum(left)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pelt::{Pelt, update_load_avg_se};
    use crate::units::Weight;

    /// The time in ns, runnable, running, frequency and capacity of 1024.
    const UPDATES: [(u64, bool, bool, u64, u64); 8] = [
        (300_999, true, true, 1024, 1024),
        (1_000_700, true, true, 700, 459),
        (4_000_000, true, true, 700, 459),
        (9_500_123, true, false, 512, 1024),
        (60_000_000, false, false, 1024, 1024),
        (100_000_000, true, true, 333, 1000),
        (700_000_000, true, true, 777, 801),
        (701_999_999, true, true, 777, 801),
    ];

    /// Sums, `period_contrib`, averages and time stamp after each of them.
    fn after(decay: &Decay) -> [(u64, u32, u32, u64, u64, u64); 8] {
        let mut sa = SchedAvg::default();
        UPDATES.map(|(ns, on_rq, running, freq, cpu)| {
            let pelt = Pelt { decay, scale: Some(Scale { freq, cpu: Capacity(cpu) }) };
            let (weight, on) = (Weight(1), on_rq as u64);
            update_load_avg_se(pelt, ClockPelt(ns), &mut sa, weight, on_rq, on, running);
            let stamp = sa.last_update_time.0;
            (sa.load_sum, sa.util_sum, sa.period_contrib, sa.load_avg, sa.util_avg.0, stamp)
        })
    }

    /// By a transcription of 4.20's arithmetic.
    #[test]
    fn scaled_contributions_are_those_of_4_20() {
        let wanted = [
            (293, 300_032, 293, 0, 0, 300_032),
            (760, 514_385, 977, 0, 0, 1_000_448),
            (2665, 1_378_448, 834, 0, 28, 3_999_744),
            (4851, 1_210_451, 61, 0, 25, 9_499_648),
            (1714, 427_958, 225, 0, 9, 59_999_232),
            (9364, 8_799_900, 376, 0, 186, 99_999_744),
            (35_892, 28_749_528, 585, 0, 607, 699_999_232),
            (35_820, 28_692_092, 490, 0, 607, 701_999_104),
        ];
        assert_eq!(after(&Decay::MS32), wanted);
    }

    /// By a transcription of 4.4's, with its tables.
    #[test]
    fn scaled_contributions_are_those_of_4_4() {
        let wanted = [
            (293, 300_032, 293, 0, 0, 300_999),
            (759, 513_926, 976, 0, 0, 1_000_700),
            (2664, 1_378_012, 833, 0, 28, 4_000_000),
            (4851, 1_210_068, 60, 0, 25, 9_500_123),
            (1714, 427_823, 224, 0, 8, 60_000_000),
            (9367, 8_802_997, 374, 0, 184, 100_000_000),
            (36_668, 29_371_106, 583, 0, 615, 700_000_000),
            (36_563, 29_287_188, 488, 0, 613, 701_999_999),
        ];
        assert_eq!(after(&Decay::MS32.before(true, true)), wanted);
    }

    /// `runnable_avg_yN_sum` as 4.4 prints it, and what it makes of longer times.
    #[test]
    fn whole_periods_are_worth_what_the_table_says() {
        let table = [0, 1002, 1982, 2941, 3880, 4798, 5697, 6576, 7437, 8279, 9103];
        let of = |n| compute_runnable_contrib(&Decay::MS32, n);
        assert!((0..).zip(table).all(|(n, sum)| of(n) == sum));
        assert_eq!([31, 32, 33, 100, 344, 345].map(of), [22859, 23371, 23872, 41384, 46714, 47742]);
    }

    /// A task that runs 1.9 of every 10 µs: 195 of 1024. Before 4.12 one unit of 1024 ns was left of each run, and
    /// seven of each sleep: an eighth.
    #[test]
    fn small_tasks_were_underestimated_before_4_12() {
        let util = |decay: &Decay| {
            let (mut sa, weight) = (SchedAvg::default(), Weight(1024));
            for us in (10..500_000u64).step_by(10) {
                let wakes = ClockPelt(us * 1000);
                update_load_avg_se(decay, wakes, &mut sa, weight, false, 0, false);
                let sleeps = ClockPelt(us * 1000 + 1900);
                update_load_avg_se(decay, sleeps, &mut sa, weight, true, 1, true);
            }
            sa.util_avg.0
        };
        assert_eq!(util(&Decay::MS32), 193);
        assert_eq!(util(&Decay::MS32.before(true, false)), 128);
    }

    #[test]
    fn averages_went_up_and_down_within_a_period_before_4_13() {
        let range = |decay: &Decay| {
            let mut sa = SchedAvg::default();
            // Updates drift through the period.
            let utils = (0..2000u64).map(|i| {
                let now = ClockPelt(i * 1_100_000);
                update_load_avg_se(decay, now, &mut sa, Weight(1024), true, 1, true);
                sa.util_avg.0
            });
            let steady: alloc::vec::Vec<u64> = utils.skip(1000).collect();
            (*steady.iter().min().unwrap_or(&0), *steady.iter().max().unwrap_or(&0))
        };
        assert_eq!(range(&Decay::MS32.before(false, true)), (1002, 1024));
        assert_eq!(range(&Decay::MS32), (1024, 1024));
    }

    #[test]
    fn half_a_cpu_never_looks_busier_than_half() {
        let mut sa = SchedAvg::default();
        let mut speed = |freq, cpu, at_ms: u64| {
            let scale = Some(Scale { freq, cpu: Capacity(cpu) });
            let pelt = Pelt { decay: &Decay::MS32, scale };
            let now = ClockPelt(at_ms * 1_000_000);
            update_load_avg_se(pelt, now, &mut sa, Weight(1024), true, 1, true);
            (sa.util_avg.0, sa.load_avg)
        };
        let (util, load) = (1..500).map(|ms| speed(1024, 512, ms)).last().expect("updates");
        assert!((505..=512).contains(&util), "{util}");
        assert!((1015..=1024).contains(&load), "capacity does not scale the load: {load}");
        let (util, load) = (500..1000).map(|ms| speed(512, 512, ms)).last().expect("updates");
        assert!((250..=256).contains(&util), "{util}");
        assert!((505..=512).contains(&load), "frequency does: {load}");
    }
}
