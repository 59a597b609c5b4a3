//! The arithmetic of the sampling governors, `ondemand` and `conservative` ("demand-based switching").
//!
//! ```text
//!  elapsed, idle = what has passed since the last sample, and how much of it idle, µs
//!  load          = 100 · (elapsed - idle) / elapsed          %, rounded down; of a policy: its CPUs' largest
//!  idle > 2 · sampling_rate: the sample was put off while the CPU slept, and says nothing of who has woken up.
//!                  Once, the load before is taken instead (copy_prev_load, since 3.16)
//!
//!                  (up to 4.17 whoever slept, or was not looked at, for so long: elapsed > 2 · sampling_rate)
//!
//!  ondemand      load > up_threshold: policy->max, else min + load · (max - min) / 100, to the closest OPP
//!                  (up to 3.16 load · max / 100, to the next OPP)
//!  conservative  a step of freq_step % of policy->max up above up_threshold, down below down_threshold
//! ```
//!
//! Integers are the kernel's: 32 bits wide, and they wrap. Source: drivers/cpufreq/cpufreq_governor.c,
//! cpufreq_ondemand.c, cpufreq_conservative.c.

use crate::units::{KHz, Span};

/// Times that a CPU has spent since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// The time, µs.
    pub wall_us: u64,
    /// `get_cpu_idle_time`, µs.
    pub idle_us: u64,
    /// `CPUTIME_NICE`: by tasks of a nice value above 0.
    pub nice: Span,
}

/// The load that is taken for a sample that a sleep put off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterIdle {
    /// The computed load, near 0: before 3.16.
    Computed,
    /// The load of the sample before, once (`copy_prev_load`).
    CopyPrevLoad,
    /// 100 %: what the authors of `copy_prev_load` did not want.
    Full,
}

/// Parameters of a policy's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// `sampling_rate · rate_mult`, µs.
    pub sampling_rate: u32,
    /// `ignore_nice_load`.
    pub ignore_nice: bool,
    /// Treatment of a sleep.
    pub after_idle: AfterIdle,
    /// Time that has passed counts as a sleep, idle or not (up to 4.17).
    pub by_wall: bool,
}

/// The number of jiffies of `hz` after which a timer-driven governor samples again. `jiffies`: the
/// current one, where there are several CPUs, so that they look together. Rounding: a period up to
/// jiffies, at least one. Source: cpufreq_governor.h:delay_for_sampling_rate (up to 4.5).
pub fn delay_for_sampling_rate(sampling_rate: u32, hz: u32, jiffies: Option<u64>) -> u64 {
    let delay = (u64::from(sampling_rate) * u64::from(hz)).div_ceil(1_000_000).max(1);
    delay - jiffies.map_or(0, |jiffies| jiffies % delay)
}

/// `struct cpu_dbs_info`: a CPU at its last sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuDbs {
    prev: CpuTimes,
    prev_load: u32,
}

/// Result of a policy's sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The load, %.
    pub load: u32,
    /// Load without one from before (`max_sample_load`).
    pub sample_load: u32,
    /// `idle_periods`: how many sampling periods all CPUs have slept through; `u32::MAX`: one has not slept.
    pub idle_periods: u32,
}

impl Sample {
    /// Sample of no CPU yet.
    pub const NONE: Sample = Sample { load: 0, sample_load: 0, idle_periods: u32::MAX };

    /// Merges the sample with that of another CPU of the policy: the largest loads, the fewest idle
    /// periods.
    #[must_use]
    pub fn and(self, cpu: Sample) -> Sample {
        Sample {
            load: self.load.max(cpu.load),
            sample_load: self.sample_load.max(cpu.sample_load),
            idle_periods: self.idle_periods.min(cpu.idle_periods),
        }
    }
}

impl CpuDbs {
    /// Returns the state at the governor's start, from which the first sample computes its load.
    pub fn start(now: CpuTimes) -> CpuDbs {
        CpuDbs { prev: now, prev_load: 0 }
    }

    /// Samples one CPU's load: a CPU's part of `dbs_update`.
    pub fn dbs_update(&mut self, now: CpuTimes, by: &Sampling) -> Sample {
        let elapsed = now.wall_us.wrapping_sub(self.prev.wall_us) as u32;
        let mut idle = now.idle_us.saturating_sub(self.prev.idle_us) as u32;
        if by.ignore_nice {
            let nice = now.nice.0.wrapping_sub(self.prev.nice.0) / 1000;
            idle = idle.wrapping_add(nice as u32);
        }
        self.prev = now;
        let unseen = if by.by_wall { elapsed } else { idle };
        let slept = unseen > by.sampling_rate.wrapping_mul(2);
        let sample_load = match elapsed {
            0 => self.prev_load,
            _ if elapsed > idle => 100u32.wrapping_mul(elapsed - idle) / elapsed,
            _ => 0,
        };
        let load = match by.after_idle {
            _ if elapsed == 0 => sample_load,
            AfterIdle::CopyPrevLoad if slept && self.prev_load > 0 => {
                core::mem::take(&mut self.prev_load)
            }
            AfterIdle::Full if slept => 100,
            _ => {
                self.prev_load = sample_load;
                sample_load
            }
        };
        let idle_periods = if slept { idle / by.sampling_rate.max(1) } else { u32::MAX };
        Sample { load, sample_load, idle_periods }
    }
}

/// The frequency that `ondemand` wants at a load that is not above `up_threshold`: `min` and `max`
/// are the policy's lowest and highest frequency whatever its limits. Source:
/// cpufreq_ondemand.c:od_update.
pub const fn od_freq_next(load: u32, min: KHz, max: KHz) -> KHz {
    let room = (max.0 as u32).wrapping_sub(min.0 as u32);
    KHz((min.0 as u32).wrapping_add(load.wrapping_mul(room) / 100) as u64)
}

/// The same up to 3.16: in proportion from 0 on. Source: Linux 3.15 cpufreq_ondemand.c:od_check_cpu.
pub const fn od_freq_next_pre_3_17(load: u32, max: KHz) -> KHz {
    KHz((load.wrapping_mul(max.0 as u32) / 100) as u64)
}

/// The frequency that `powersave_bias` (in ‰) leaves of the OPP `freq_req`. Source:
/// cpufreq_ondemand.c:generic_powersave_bias_target.
pub const fn powersave_bias_avg(freq_req: KHz, powersave_bias: u32) -> KHz {
    let req = freq_req.0 as u32;
    KHz(req.wrapping_sub(req.wrapping_mul(powersave_bias) / 1000) as u64)
}

/// The µs of each `sampling_rate` for which `hi` runs so that `hi` and `lo` make `avg` in the mean,
/// to the nearest. kHz times µs are computed in 32 bits: a distance of 500 MHz and 8.6 ms overflow,
/// and the result is too small. Source: cpufreq_ondemand.c:generic_powersave_bias_target.
pub const fn freq_hi_delay_us(avg: KHz, lo: KHz, hi: KHz, sampling_rate: u32) -> u32 {
    let between = (hi.0 as u32).wrapping_sub(lo.0 as u32);
    let share = (avg.0 as u32).wrapping_sub(lo.0 as u32).wrapping_mul(sampling_rate);
    share.wrapping_add(between / 2) / between
}

/// A step of `conservative`: `freq_step` percent of `policy->max`. Source: cpufreq_conservative.c:get_freq_step.
pub const fn get_freq_step(freq_step: u32, max: KHz) -> u32 {
    match freq_step.wrapping_mul(max.0 as u32) / 100 {
        0 => 5,
        step => step,
    }
}

/// Step that `conservative` wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// No more and no less.
    Stay,
    /// The highest OPP at or below `requested_freq`.
    Up,
    /// The lowest at or above it.
    Down,
}

/// `conservative`'s tunables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// Above this load it steps up, %.
    pub up_threshold: u32,
    /// Below this one down, %.
    pub down_threshold: u32,
    /// % of `policy->max`.
    pub freq_step: u32,
    /// A step down only at one sample of so many.
    pub sampling_down_factor: u32,
    /// Steps down that a sleep put off are made up for only where the sample itself is below `down_threshold`.
    pub only_below: bool,
}

/// `struct cs_policy_dbs_info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conservative {
    /// The frequency that the governor asked for last, an OPP or not.
    pub requested_freq: KHz,
    down_skip: u32,
}

impl Conservative {
    /// Judges one sample of a policy within `min` and `max` that is at `cur`. Source:
    /// cpufreq_conservative.c:cs_dbs_update.
    pub fn cs_dbs_update(
        &mut self,
        sample: Sample,
        by: &Steps,
        (min, max): (KHz, KHz),
        cur: KHz,
    ) -> Step {
        if by.freq_step == 0 {
            return Step::Stay;
        }
        if !(min..=max).contains(&self.requested_freq) {
            self.requested_freq = cur;
        }
        let freq_step = get_freq_step(by.freq_step, max);
        let down = |from: KHz, by: u32| {
            let left = from.0 > u64::from((min.0 as u32).wrapping_add(by));
            if left { KHz(from.0 - u64::from(by)) } else { min }
        };
        let mut requested = self.requested_freq;
        let makes_up = !by.only_below || sample.sample_load < by.down_threshold;
        if makes_up && sample.idle_periods < u32::MAX {
            requested = down(requested, sample.idle_periods.wrapping_mul(freq_step));
        }
        if sample.load > by.up_threshold {
            self.down_skip = 0;
            self.requested_freq = KHz(requested.0 + u64::from(freq_step)).min(max);
            return Step::Up;
        }
        self.down_skip += 1;
        if self.down_skip < by.sampling_down_factor {
            return Step::Stay;
        }
        self.down_skip = 0;
        if sample.load >= by.down_threshold {
            return Step::Stay;
        }
        self.requested_freq = down(requested, freq_step);
        Step::Down
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const RATE: u32 = 8_000;

    fn by(after_idle: AfterIdle) -> Sampling {
        Sampling { sampling_rate: RATE, ignore_nice: false, after_idle, by_wall: false }
    }

    /// Loads of samples: each is (ms that have passed, ms of them idle).
    fn loads(after_idle: AfterIdle, samples: &[(u64, u64)]) -> Vec<u32> {
        let mut cpu = CpuDbs::start(CpuTimes::default());
        let mut now = CpuTimes::default();
        let mut load = |&(wall, idle): &(u64, u64)| {
            now.wall_us += wall * 1000;
            now.idle_us += idle * 1000;
            cpu.dbs_update(now, &by(after_idle)).load
        };
        samples.iter().map(&mut load).collect()
    }

    /// The sketch in commit "cpufreq: governor: Be friendly towards latency-sensitive bursty workloads": busy,
    /// a long sleep, busy; then short visits to a CPU that is idle by and large.
    #[test]
    fn the_load_before_a_sleep_counts_once() {
        let samples =
            [(8, 0), (8, 0), (80, 75), (8, 0), (80, 79), (80, 79), (80, 79), (17, 16), (17, 16)];
        use AfterIdle::{Computed, CopyPrevLoad, Full};
        assert_eq!(loads(Computed, &samples), [100, 100, 6, 100, 1, 1, 1, 5, 5]);
        // Not copied twice: the second long sleep is computed, and counts as the load before the third.
        assert_eq!(loads(CopyPrevLoad, &samples), [100, 100, 100, 100, 100, 1, 1, 5, 5]);
        assert_eq!(loads(Full, &samples), [100, 100, 100, 100, 100, 100, 100, 5, 5]);
    }

    #[test]
    fn a_sample_in_no_time_repeats_the_last_one() {
        assert_eq!(loads(AfterIdle::CopyPrevLoad, &[(10, 4), (0, 0)]), [60, 60]);
        assert_eq!(loads(AfterIdle::CopyPrevLoad, &[(10, 12)]), [0], "more idle than time");
    }

    #[test]
    fn time_of_nice_tasks_counts_as_idle_where_it_is_to() {
        let now =
            |ms: u64| CpuTimes { wall_us: ms * 1000, idle_us: 0, nice: Span::from_ms(ms / 2) };
        for (ignore_nice, load) in [(false, 100), (true, 50)] {
            let mut cpu = CpuDbs::start(now(0));
            let by = Sampling { ignore_nice, ..by(AfterIdle::Computed) };
            assert_eq!(cpu.dbs_update(now(10), &by).load, load);
        }
    }

    #[test]
    fn a_policy_is_as_loaded_as_its_busiest_cpu_and_has_slept_as_little() {
        let cpu = |load, idle_periods| Sample { load, sample_load: load, idle_periods };
        assert_eq!(Sample::NONE.and(cpu(10, 5)).and(cpu(70, 3)), cpu(70, 3));
        assert_eq!(Sample::NONE.and(cpu(1, u32::MAX)).idle_periods, u32::MAX);
    }

    #[test]
    fn ondemand_goes_in_proportion_from_the_lowest_frequency_on() {
        let next = |load| od_freq_next(load, KHz(600_000), KHz(1_500_000)).0;
        assert_eq!([0, 33, 95, 100].map(next), [600_000, 897_000, 1_455_000, 1_500_000]);
        assert_eq!(od_freq_next_pre_3_17(33, KHz(1_500_000)), KHz(495_000));
        // load · (max - min) has 32 bits.
        assert_eq!(od_freq_next(100, KHz(0), KHz(42_949_673)), KHz(0));
    }

    #[test]
    fn timers_expire_together() {
        let delay = |us, jiffies| delay_for_sampling_rate(us, 250, jiffies);
        assert_eq!([10_000, 8_000, 1].map(|us| delay(us, None)), [3, 2, 1]);
        // At the next jiffy that is a multiple of three.
        assert_eq!([300, 301, 302].map(|j| delay(10_000, Some(j))), [3, 2, 1]);
    }

    /// Before 4.18 a busy CPU that was not looked at for long got the load before, too.
    #[test]
    fn what_was_not_looked_at_counted_as_asleep() {
        for (by_wall, load) in [(false, 95), (true, 40)] {
            let mut cpu = CpuDbs::start(CpuTimes::default());
            let by = Sampling { by_wall, ..by(AfterIdle::CopyPrevLoad) };
            let at = |wall_us, idle_us| CpuTimes { wall_us, idle_us, nice: Span(0) };
            assert_eq!(cpu.dbs_update(at(10_000, 6_000), &by).load, 40);
            assert_eq!(cpu.dbs_update(at(110_000, 11_000), &by).load, load);
        }
    }

    #[test]
    fn powersave_bias_is_time_at_two_frequencies() {
        let avg = powersave_bias_avg(KHz(1_000_000), 130);
        assert_eq!(avg, KHz(870_000));
        // 7 of 10 parts at 900 MHz, 3 at 800.
        assert_eq!(freq_hi_delay_us(avg, KHz(800_000), KHz(900_000), RATE / 10), 560);
        assert_eq!(powersave_bias_avg(KHz(1_000_000), 1000), KHz(0));
    }

    fn steps(only_below: bool) -> Steps {
        Steps {
            up_threshold: 80,
            down_threshold: 20,
            freq_step: 5,
            sampling_down_factor: 1,
            only_below,
        }
    }

    #[track_caller]
    fn check_conservative(by: &Steps, from: u64, sample: Sample, step: Step, to: u64) {
        let mut c = Conservative { requested_freq: KHz(from), down_skip: 0 };
        let limits = (KHz(600), KHz(1000));
        assert_eq!((c.cs_dbs_update(sample, by, limits, KHz(800)), c.requested_freq.0), (step, to));
    }

    #[test]
    fn conservative_goes_by_steps() {
        let load = |load| Sample { load, sample_load: load, idle_periods: u32::MAX };
        let by = &steps(false);
        check_conservative(by, 900, load(81), Step::Up, 950);
        check_conservative(by, 980, load(100), Step::Up, 1000);
        check_conservative(by, 900, load(80), Step::Stay, 900);
        check_conservative(by, 900, load(20), Step::Stay, 900);
        check_conservative(by, 900, load(19), Step::Down, 850);
        check_conservative(by, 630, load(0), Step::Down, 600);
        check_conservative(by, 5000, load(50), Step::Stay, 800);
        check_conservative(&Steps { freq_step: 0, ..*by }, 900, load(100), Step::Stay, 900);
        assert_eq!(get_freq_step(1, KHz(99)), 5);
    }

    #[test]
    fn conservative_makes_up_for_a_sleep() {
        // The load from before a sleep of four periods is 90 %, that of the sample itself 50 or 10 %.
        let slept = |sample_load| Sample { load: 90, sample_load, idle_periods: 4 };
        check_conservative(&steps(false), 900, slept(50), Step::Up, 750);
        check_conservative(&steps(true), 900, slept(50), Step::Up, 950);
        check_conservative(&steps(true), 900, slept(10), Step::Up, 750);
        // What is not asked for is not remembered.
        let stays = Sample { load: 50, ..slept(10) };
        check_conservative(&steps(false), 900, stays, Step::Stay, 900);
    }

    #[test]
    fn conservative_goes_down_at_one_sample_of_so_many() {
        let mut c = Conservative { requested_freq: KHz(900), down_skip: 0 };
        let by = Steps { sampling_down_factor: 3, ..steps(false) };
        let idle = Sample { load: 5, sample_load: 5, idle_periods: u32::MAX };
        let freqs = [0; 4].map(|_| {
            c.cs_dbs_update(idle, &by, (KHz(600), KHz(1000)), KHz(900));
            c.requested_freq.0
        });
        assert_eq!(freqs, [900, 900, 850, 850]);
    }
}
