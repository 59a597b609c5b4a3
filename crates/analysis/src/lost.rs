//! Work lost (`debt`), and in which state it was lost.
//!
//! ```text
//!   s      speed, of the biggest CPU at its highest frequency      C  capacity of the CPU / 1024
//!   debt         = Σ (1 − s)·dt          over [t0, t1], time asleep left out
//!   debt_capped  = Σ (s_max − s)·dt      (negative where a task runs faster than its s_max,
//!                                         on a CPU that others clamp up)
//!   1 − s  = capped + beside + cpu + freq
//!     capped = min(1 − s, 1 − s_max)     no decision could have given this
//!     beside = s of it alone − s         lost to other threads of its core, and to interrupts
//!     cpu    = max(0, (1 − C) − capped)  lost to the smaller CPU
//!     freq   = the rest                  lost to a frequency below the CPU's highest
//! ```
//!
//! Speeds are whole multiples of 2⁻³², times are in ns, sums are 128-bit: the parts add up
//! exactly to the debt, and the only rounding is that of a speed (2⁻³³, or 0.5 µs of debt in
//! an hour).
//!
//! Which decision a part is charged to is read from the trace, never inferred from shapes;
//! [`LOST_STATES`] says how. A trace whose header has no signal `misfit` or `freq_request` (a kernel before
//! 6.14 in an ordinary run) does not tell these decisions: the last two states say that, and nothing more.

use risetime_kernel::units::{SCHED_CAPACITY_SCALE, Util};

/// Full speed: the biggest CPU at its highest frequency.
pub(crate) const ONE: u64 = 1 << 32;
/// One unit of 1024 on the scale of [`ONE`].
pub(crate) const UNIT: u64 = ONE / SCHED_CAPACITY_SCALE;

/// Every state that debt is charged to, with the sentence that explains it.
pub const LOST_STATES: [(&str, &str); LOST] = [
    ("waiting_for_cpu", "runnable, but another task had the CPU"),
    ("little_cpu", "on a smaller CPU, and not (yet) marked as too big for it"),
    ("waiting_for_misfit", "marked misfit, and not yet moved to a bigger CPU"),
    ("lowest_opp", "at the lowest frequency, because the governor asked for no more"),
    ("opp_climb", "above the lowest frequency, because the governor asked for no more"),
    ("rate_limited", "the governor wanted more and was inside its rate limit"),
    ("transition", "a higher frequency was asked for and the hardware had not changed yet"),
    ("held_down", "the frequency was held by uclamp_max or by the choice of a fixed governor"),
    (
        "cooled",
        "the governor wanted more, and a thermal zone's cooling had lowered the highest frequency",
    ),
    ("capped", "more than affinity, uclamp_max and frequency limits ever allow this task"),
    (
        "small_cpu",
        "on a smaller CPU; the trace does not say whether it was marked as too big for it",
    ),
    ("low_frequency", "below the highest frequency; the trace does not say what was asked for"),
    ("smt_sibling", "another thread of its core was busy"),
    ("interrupted", "an interrupt's handler had the CPU"),
];
/// Number of states.
pub(crate) const LOST: usize = 14;

/// Index into [`LOST_STATES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    WaitingForCpu,
    LittleCpu,
    WaitingForMisfit,
    LowestOpp,
    OppClimb,
    RateLimited,
    Transition,
    HeldDown,
    Cooled,
    Capped,
    SmallCpu,
    LowFrequency,
    Sibling,
    Interrupted,
}

/// Where a task runs, as far as figures depend on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) cpu: usize,
    pub(crate) domain: usize,
    /// The number of CPU and frequency ([`Machine::at`](crate::machine::Machine::at)).
    pub(crate) key: u32,
    /// How many OPPs of the domain are at or below the frequency.
    pub(crate) opps: usize,
    pub(crate) capacity: u64,
    /// On the scale of [`ONE`].
    pub(crate) speed: u64,
    /// The same if it were alone: no other thread of the core busy, no interrupt.
    pub(crate) alone: u64,
    /// What the part lost because it is not is charged to.
    pub(crate) beside_state: State,
    /// What the part lost to the smaller CPU is charged to.
    pub(crate) cpu_state: State,
    /// What the part lost to the lower frequency is charged to.
    pub(crate) freq_state: State,
}

/// The debt of one burst, in ns · 2⁻³².
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Debt {
    lost: [u128; LOST],
    capped: i128,
}

impl Debt {
    /// Adds `dt` ns at `place`, or waiting if there is none.
    pub(crate) fn add(&mut self, dt: u64, place: Option<&Place>, s_max: u64) {
        let speed = place.map_or(0, |p| p.speed);
        let total = ONE - speed;
        self.capped += i128::from(dt) * (i128::from(s_max) - i128::from(speed));
        let capped = total.min(ONE - s_max);
        let rest = total - capped;
        if capped > 0 {
            self.charge(State::Capped, dt, capped);
        }
        match place {
            None => self.charge(State::WaitingForCpu, dt, rest),
            Some(p) if rest > 0 => {
                let beside = rest.min(p.alone.saturating_sub(speed));
                if beside > 0 {
                    self.charge(p.beside_state, dt, beside);
                }
                let rest = rest - beside;
                let cpu = (ONE - p.capacity * UNIT).saturating_sub(capped).min(rest);
                self.charge(p.cpu_state, dt, cpu);
                self.charge(p.freq_state, dt, rest - cpu);
            }
            Some(_) => {}
        }
    }

    fn charge(&mut self, state: State, dt: u64, speed: u64) {
        self.lost[state as usize] += u128::from(dt) * u128::from(speed);
    }

    /// Adds all of `other`.
    pub(crate) fn absorb(&mut self, other: &Debt) {
        self.lost.iter_mut().zip(other.lost).for_each(|(own, more)| *own += more);
        self.capped += other.capped;
    }

    /// What was added to `before` to come to this.
    pub(crate) fn since(&self, before: &Debt) -> Debt {
        let mut more = *self;
        more.lost.iter_mut().zip(before.lost).for_each(|(own, was)| *own -= was);
        more.capped -= before.capped;
        more
    }

    /// ∫(1 − s) dt in ms.
    pub(crate) fn ms(&self) -> f64 {
        work_ms(self.lost.iter().sum::<u128>() as f64)
    }
    /// ∫(s_max − s) dt in ms.
    pub(crate) fn capped_ms(&self) -> f64 {
        work_ms(self.capped as f64)
    }
    /// The parts above 0, largest first.
    pub(crate) fn parts(&self) -> Vec<crate::Lost> {
        let mut parts: Vec<_> =
            self.lost.iter().zip(LOST_STATES).filter(|(v, _)| **v > 0).collect();
        parts.sort_by_key(|(v, _)| std::cmp::Reverse(**v));
        parts
            .into_iter()
            .map(|(v, (state, _))| crate::Lost { state, ms: work_ms(*v as f64) })
            .collect()
    }
}

fn work_ms(fixed: f64) -> f64 {
    fixed / ONE as f64 / 1e6
}

/// When a burst had full speed: the start of the first whole tick with s ≥ 0.99 · s_max.
///
/// "A whole tick" is any stretch of the length of a tick, wherever the tick itself falls (a
/// trace need not show ticks). A stretch begins where the speed is reached and ends with a
/// gap of more than 100 µs; shorter gaps inside count as part of it, whether the task then
/// waited, slept or ran slower. A longer sleep does end it, though it is left out of the
/// integrals: during it the task did not run at full speed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FullSpeed {
    /// Start and so-far end of the stretch, and the debt at its start.
    stretch: Option<(u64, u64, Debt)>,
}

/// Gaps up to this many ns are ignored.
pub(crate) const GAP_NS: u64 = 100_000;

impl FullSpeed {
    /// The task ran at `speed` from `from` for `dt` ns; `debt` is that before. The start of
    /// the whole tick and the debt until then, once it is known.
    pub(crate) fn run(
        &mut self,
        (from, dt): (u64, u64),
        speed: u64,
        s_max: u64,
        tick: u64,
        debt: &Debt,
    ) -> Option<(u64, Debt)> {
        // One unit of 2⁻³² in favour, so that the rounding of a speed does not decide.
        if (speed + 1) * 100 < s_max * 99 {
            return None;
        }
        let to = from + dt;
        match &mut self.stretch {
            Some((_, until, _)) if from - *until <= GAP_NS => *until = to,
            stretch => *stretch = Some((from, to, *debt)),
        }
        let (since, until, at_start) = self.stretch.as_ref()?;
        (until - since >= tick).then_some((*since, *at_start))
    }
}

/// The speed of `util` of 1024: that of an OPP if one lies closer than one unit (s_max is
/// given in whole units, the speeds of OPPs are not whole), else exactly `util`.
pub(crate) fn snap(util: Util, speeds: impl Iterator<Item = u64>) -> u64 {
    let exact = util.0.min(SCHED_CAPACITY_SCALE) * UNIT;
    speeds.filter(|s| s.abs_diff(exact) < UNIT).min_by_key(|s| s.abs_diff(exact)).unwrap_or(exact)
}
