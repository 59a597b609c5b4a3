//! State of drivers that hand performance levels to the hardware ([`super`]): what was asked for, what the hardware makes of
//! it, and the counters by which the kernel learns of it.

use crate::mech::slots::Slot;
use risetime_kernel::amd_pstate::{self, Request, amd_pstate_adjust_perf, amd_pstate_update_freq};
use risetime_kernel::aperfmperf::{
    amd_set_max_freq_ratio, intel_set_max_freq_ratio, scale_freq_tick,
};
use risetime_kernel::intel_pstate::{
    self, CORE_SCALING, intel_cpufreq_adjust_perf, intel_cpufreq_fast_switch,
    intel_pstate_update_perf_limits,
};
use risetime_kernel::units::{Capacity, Instant, KHz, Span, Util};
use risetime_kernel::{KernelRev, features};
use risetime_model::platform::{Driver, Levels};

/// The mechanism.
pub(crate) struct Own;

impl Slot for Own {
    type OfMachine = ();
    type OfDomain = Option<Box<Perf>>;
    type OfCpu = Option<Box<Cycles>>;
    type OfTask = ();
}

/// Mode of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The driver has an algorithm of its own, or the hardware decides alone.
    Active,
    /// A cpufreq governor asks, the hardware does that.
    Passive,
    /// A cpufreq governor says the least, the hardware decides above it.
    Guided,
}

/// A policy of such a driver.
pub(crate) struct Perf {
    pub(crate) levels: Levels,
    pub(crate) mode: Mode,
    /// True if requests go by HWP or CPPC, not by PERF_CTL.
    pub(crate) hwp: bool,
    /// Ratio of the frequency of full scale to that of MPERF, of 1024.
    pub(crate) ratio: u64,
    /// Distance between the times at which the hardware takes up a request; 0: it does so at once.
    pub(crate) grid: Span,
    /// Frequency of the last request of a governor.
    pub(crate) asked: KHz,
    /// The hardware's own choice, where it has one.
    pub(crate) own: Option<Autonomy>,
}

/// Manner in which the hardware chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manner {
    /// Time between two looks.
    pub(crate) interval: Span,
    /// Time from the lowest level to the highest.
    pub(crate) ramp: Span,
    /// Time for which a level is held before a lower one.
    pub(crate) hold: Span,
    /// Level aimed at by the share of time that the CPU was busy, of 1024 per 1024: 2048 is the highest at half.
    pub(crate) gain: u64,
}

/// The hardware's own choice of a level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Autonomy {
    pub(crate) manner: Manner,
    /// Level below which it does not go, whatever the limits.
    pub(crate) floor: u64,
    /// Level, in 1024ths.
    level: u64,
    looked: Instant,
    /// Time that the CPU had been busy by then.
    busy_then: Span,
    held_until: Instant,
    /// True while a look is planned.
    pub(crate) planned: bool,
}

/// Cycles in a level's fraction.
const FRACTION: u32 = 10;

impl Autonomy {
    /// A choice that has been at `level` for long.
    pub(crate) fn at(manner: Manner, level: u64) -> Autonomy {
        Autonomy {
            manner,
            floor: 0,
            level: level << FRACTION,
            looked: Instant(0),
            busy_then: Span(0),
            held_until: Instant(0),
            planned: false,
        }
    }
    /// The level in force. Rounding: down.
    pub(crate) fn level(&self) -> u64 {
        self.level >> FRACTION
    }
    /// Looks at the CPU, which has been busy for `busy` since the start; between `least` and `most`.
    pub(crate) fn look(&mut self, now: Instant, busy: Span, (least, most): (u64, u64)) {
        let (elapsed, worked) = (now.since(self.looked).0, busy.0.saturating_sub(self.busy_then.0));
        (self.looked, self.busy_then) = (now, busy);
        if elapsed == 0 {
            return;
        }
        let least = least.max(self.floor).min(most);
        let share = (worked.min(elapsed) << FRACTION) / elapsed;
        let full = 1 << FRACTION;
        let want = ((share * self.manner.gain) >> FRACTION).min(full);
        let aim = (least << FRACTION) + (most - least) * want;
        let way = (most - least) << FRACTION;
        let step = (way * elapsed / self.manner.ramp.0.max(1)).max(1);
        if aim >= self.level {
            self.level = aim.min(self.level + step);
            self.held_until = now + self.manner.hold;
        } else if now >= self.held_until {
            self.level = aim.max(self.level.saturating_sub(step));
        }
        self.level = self.level.max(least << FRACTION).min(most << FRACTION);
    }
    /// The CPU wakes after the last look: what has been idle for longer than a level is held starts from the least.
    pub(crate) fn wakes(&mut self, now: Instant, busy: Span, (least, most): (u64, u64)) {
        if now.since(self.looked) > self.manner.hold {
            self.level = least.max(self.floor).min(most) << FRACTION;
        }
        (self.looked, self.busy_then) = (now, busy);
    }
    /// Jumps to `level`: for who asks what a ramp costs.
    pub(crate) fn jump(&mut self, now: Instant, busy: Span, level: u64) {
        (self.looked, self.busy_then, self.level) = (now, busy, level << FRACTION);
    }
}

impl Perf {
    /// A policy at its lowest level.
    pub(crate) fn new(levels: Levels, mode: Mode, hwp: bool) -> Perf {
        let ratio = match levels.driver {
            Driver::AmdPstate => amd_set_max_freq_ratio(levels.highest, levels.nominal),
            Driver::IntelPstate => intel_set_max_freq_ratio(levels.highest, physical(&levels)),
        };
        let asked = levels.freq(levels.lowest);
        Perf { levels, mode, hwp, ratio, grid: Span(0), asked, own: None }
    }

    /// `arch_freq_scale` of a CPU that has been at `freq` since its last tick.
    pub(crate) fn scale_at(&self, freq: KHz) -> Option<u64> {
        scale_freq_tick(freq.0, self.levels.base_freq.0, self.ratio)
    }

    /// Whether schedutil hands util over (`cpufreq_driver_has_adjust_perf`).
    pub(crate) fn adjusts_perf(&self, rev: KernelRev) -> bool {
        self.mode != Mode::Active && self.hwp && rev.has(features::ADJUST_PERF)
    }

    /// The request for these utils, at least, desired and at most, within the policy's limits (`adjust_perf`).
    pub(crate) fn adjust(
        &self,
        rev: KernelRev,
        limits: (KHz, KHz),
        utils: (Util, Util, Util),
        capacity: Capacity,
    ) -> Request {
        match self.levels.driver {
            Driver::IntelPstate => {
                intel_cpufreq_adjust_perf(rev, &self.intel(limits), utils, capacity)
            }
            Driver::AmdPstate => {
                amd_pstate_adjust_perf(rev, &self.amd(rev, limits), utils.0, utils.1, capacity)
            }
        }
    }

    /// The frequency of the level that the driver asks for where a governor wants `freq`.
    pub(crate) fn resolve(&self, rev: KernelRev, limits: (KHz, KHz), freq: KHz) -> KHz {
        let request = match self.levels.driver {
            Driver::IntelPstate => intel_cpufreq_fast_switch(&self.intel(limits), freq),
            Driver::AmdPstate => amd_pstate_update_freq(rev, &self.amd(rev, limits), freq),
        };
        self.desired(request)
    }

    /// The frequency that a request is for: the desired one, else the least.
    pub(crate) fn desired(&self, request: Request) -> KHz {
        let level = if request.des_perf > 0 { request.des_perf } else { request.min_perf };
        self.levels.freq(level.clamp(self.levels.lowest, self.levels.highest))
    }

    /// The levels of the policy's limits.
    pub(crate) fn limits(&self, rev: KernelRev, (min, max): (KHz, KHz)) -> (u64, u64) {
        let Levels { driver, highest, lowest, nominal, nominal_freq, .. } = self.levels;
        let within = |level: u64| level.clamp(lowest, highest);
        match driver {
            Driver::IntelPstate => {
                let (min, max) = intel_pstate_update_perf_limits(&self.intel_unlimited(), min, max);
                (within(min), within(max))
            }
            Driver::AmdPstate if rev.has(features::AMD_PSTATE_NOMINAL) => {
                let level = |freq: KHz| within((freq.0 * nominal).div_ceil(nominal_freq.0));
                (level(min), level(max))
            }
            Driver::AmdPstate => {
                let of_max = self.levels.freq(highest).0;
                (within(min.0 * highest / of_max), within(max.0 * highest / of_max))
            }
        }
    }

    /// The levels as intel_pstate has them, without limits.
    pub(crate) fn intel_unlimited(&self) -> intel_pstate::Levels {
        let l = &self.levels;
        intel_pstate::Levels {
            highest: l.highest,
            guaranteed: l.nominal,
            lowest: l.lowest,
            min_limit: l.lowest,
            max_limit: l.highest,
            scaling: KHz(l.nominal_freq.0 / l.nominal),
        }
    }

    fn intel(&self, limits: (KHz, KHz)) -> intel_pstate::Levels {
        let unlimited = self.intel_unlimited();
        let (min_limit, max_limit) =
            intel_pstate_update_perf_limits(&unlimited, limits.0, limits.1);
        intel_pstate::Levels { min_limit, max_limit, ..unlimited }
    }

    fn amd(&self, rev: KernelRev, limits: (KHz, KHz)) -> amd_pstate::Levels {
        let l = &self.levels;
        let (min_limit, max_limit) = self.limits(rev, limits);
        amd_pstate::Levels {
            highest: l.highest,
            nominal: l.nominal,
            lowest_nonlinear: l.lowest_nonlinear,
            lowest: l.lowest,
            min_limit,
            max_limit,
            max_freq: l.freq(l.highest),
            nominal_freq: l.nominal_freq,
            boost_supported: true,
            guided: self.mode == Mode::Guided,
        }
    }
}

/// `max_pstate_physical`: the level of the frequency at which MPERF counts. Rounding: up.
pub(crate) fn physical(levels: &Levels) -> u64 {
    let scaling = levels.nominal_freq.0 / levels.nominal;
    levels.base_freq.0.div_ceil(scaling)
}

/// Whether a level is not a bus ratio of 100 MHz, as on hybrid processors.
pub(crate) fn is_hybrid(levels: &Levels) -> bool {
    levels.nominal_freq.0 != levels.nominal * CORE_SCALING.0
}

/// Counters of a CPU: `IA32_APERF` and `IA32_MPERF`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cycles {
    /// Cycles at the present frequency while busy, in kHz · ns.
    aperf: u128,
    /// Time that the CPU has been busy.
    busy: Span,
    /// Time up to which the current busy time is counted; `None`: the CPU is idle.
    since: Option<Instant>,
    /// Counters at the last tick.
    at_tick: (u128, Span),
}

/// ns · kHz in a cycle.
const PER_CYCLE: u128 = 1_000_000;

impl Cycles {
    /// Counts up to now, at `hw`; the CPU is busy from now on, or not.
    pub(crate) fn count(&mut self, now: Instant, hw: KHz, busy: bool) {
        (self.aperf, self.busy) = self.until(now, hw);
        self.since = busy.then_some(now);
    }
    /// Counts up to now, at `hw`.
    pub(crate) fn count_on(&mut self, now: Instant, hw: KHz) {
        self.count(now, hw, self.since.is_some());
    }
    /// Whether the CPU is busy.
    pub(crate) fn is_busy(&self) -> bool {
        self.since.is_some()
    }
    /// Returns both counters at `now`: kHz · ns, and busy time.
    pub(crate) fn until(&self, now: Instant, hw: KHz) -> (u128, Span) {
        let ran = self.since.map_or(Span(0), |since| now.since(since));
        (self.aperf + u128::from(ran.0) * u128::from(hw.0), self.busy + ran)
    }
    /// Returns APERF and MPERF, in cycles; MPERF counts at `base`. Rounding: down.
    pub(crate) fn registers(&self, now: Instant, hw: KHz, base: KHz) -> (u64, u64) {
        let (aperf, busy) = self.until(now, hw);
        ((aperf / PER_CYCLE) as u64, cycles(busy, base))
    }
    /// `arch_scale_freq_tick`: `arch_freq_scale` by what was counted since the last tick.
    pub(crate) fn tick(&mut self, now: Instant, hw: KHz, perf: &Perf) -> Option<u64> {
        self.count_on(now, hw);
        let (aperf, busy) = (self.aperf - self.at_tick.0, self.busy - self.at_tick.1);
        self.at_tick = (self.aperf, self.busy);
        let acnt = (aperf / PER_CYCLE) as u64;
        scale_freq_tick(acnt, cycles(busy, perf.levels.base_freq), perf.ratio)
    }
}

/// Cycles of a clock of `freq` in `time`. Rounding: down.
pub(crate) fn cycles(time: Span, freq: KHz) -> u64 {
    (u128::from(time.0) * u128::from(freq.0) / PER_CYCLE) as u64
}
