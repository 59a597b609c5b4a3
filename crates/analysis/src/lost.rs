//! Work lost (`debt`), and in which state it was lost.
//!
//! ```text
//!   full speed   the biggest CPU at its highest frequency, boost OPPs counted where boost is on
//!   s            speed, of full speed: 0 to 1                      C  that of the CPU at its own highest frequency
//!   debt         = Σ (1 − s)·dt          over [t0, t1], time asleep left out: at least 0, at most the time
//!   debt_capped  = Σ (s_max − s)·dt      (negative where a task runs faster than its s_max,
//!                                         on a CPU that others clamp up)
//!   1 − s  = capped + beside + cpu + freq
//!     capped = min(1 − s, 1 − s_max)     no decision could have given this: affinity first, then `uclamp_max`,
//!                                        then user space's limits with which the machine starts
//!     beside = s of it alone − s         lost to other threads of its core, and to interrupts
//!     cpu    = max(0, (1 − C) − capped)  lost to the smaller CPU
//!     freq   = the rest                  lost to a frequency below the CPU's highest
//! ```
//!
//! Full speed is that of capacity 1024 (1024 ms of plain work take 1024 ms) unless `cpufreq_boost` is on: then it is
//! the speed of the highest boost OPP, and who runs at the highest ordinary OPP loses the difference.
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
    ("throttled", "runnable, but its reservation was used up until the next period"),
    ("idle_exit", "runnable, and its CPU was idle: on its way out of an idle state"),
    ("little_cpu", "on a smaller CPU, and not (yet) marked as too big for it"),
    ("waiting_for_misfit", "marked misfit, and not yet moved to a bigger CPU"),
    ("lowest_opp", "at the lowest frequency, because the governor asked for no more"),
    ("opp_climb", "above the lowest frequency, because the governor asked for no more"),
    (
        "not_invariant",
        "as far as the governor goes in one step: util is not frequency-invariant, and stands for a share of the frequency of the moment",
    ),
    ("reserved", "a deadline task, at the frequency that goes with what such tasks have reserved"),
    ("boost_not_asked", "boost is on, and the governor asked for no boost frequency"),
    (
        "last_asked",
        "at the frequency last asked for before the CPU was idle, a tick or longer: the governor had not looked since",
    ),
    ("rate_limited", "the governor wanted more and was inside its rate limit"),
    ("transition", "a higher frequency was asked for and the hardware had not changed yet"),
    ("uclamp_max", "held by uclamp_max, or more than that ever allows"),
    ("fixed_governor", "the choice of a governor that never looks"),
    ("user_capped", "the governor wanted more, and user space's scaling_max_freq allowed no more"),
    ("firmware_capped", "the governor wanted more, and firmware allowed no more"),
    ("power_capped", "the governor wanted more, and a power budget allowed no more"),
    (
        "cooled",
        "the governor wanted more, and a thermal zone's cooling had lowered the highest frequency",
    ),
    ("hw_capped", "more was asked for, and the hardware capped itself"),
    ("affinity", "the task's affinity allows no CPU that is as fast as the biggest one"),
    (
        "small_cpu",
        "on a smaller CPU; the trace does not say whether it was marked as too big for it",
    ),
    ("low_frequency", "below the highest frequency; the trace does not say what was asked for"),
    ("smt_sibling", "another thread of its core was busy"),
    ("interrupted", "an interrupt's handler had the CPU"),
];
/// Number of states.
pub(crate) const LOST: usize = 25;

/// Index into [`LOST_STATES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    WaitingForCpu,
    Throttled,
    IdleExit,
    LittleCpu,
    WaitingForMisfit,
    LowestOpp,
    OppClimb,
    NotInvariant,
    Reserved,
    BoostNotAsked,
    LastAsked,
    RateLimited,
    Transition,
    UclampMax,
    FixedGovernor,
    UserCapped,
    FirmwareCapped,
    PowerCapped,
    Cooled,
    HwCapped,
    Affinity,
    SmallCpu,
    LowFrequency,
    Sibling,
    Interrupted,
}

/// The most speed that a task may have, and what takes the rest, each on the scale of [`ONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Most {
    /// s_max.
    pub(crate) speed: u64,
    /// Highest speed that the task's affinity allows, on the scale of [`ONE`].
    pub(crate) affinity: u64,
    /// Highest speed that the task's affinity and `uclamp_max` allow, on the same scale.
    pub(crate) clamped: u64,
}

impl Most {
    /// The limits of a task that runs at `speed` and is not known to be limited by affinity or
    /// clamp.
    pub(crate) fn of(speed: u64) -> Most {
        Most { speed, affinity: ONE, clamped: ONE }
    }
}

/// Place where a task runs, as far as figures depend on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) cpu: usize,
    pub(crate) domain: usize,
    /// The number of CPU and frequency ([`Machine::at`](crate::machine::Machine::at)).
    pub(crate) key: u32,
    /// Number of OPPs of the domain that are at or below the frequency.
    pub(crate) opps: usize,
    pub(crate) capacity: u64,
    /// Power of the CPU there, in µW; 0: unknown.
    pub(crate) power_uw: u64,
    /// The CPU's speed at its highest frequency, on the scale of [`ONE`].
    pub(crate) highest: u64,
    /// Speed on the scale of [`ONE`]; at most that.
    pub(crate) speed: u64,
    /// Speed if the CPU were alone: no other thread of the core busy, no interrupt.
    pub(crate) alone: u64,
    /// State that the part lost by not being alone on the core is charged to.
    pub(crate) beside_state: State,
    /// State that the part lost to the smaller CPU is charged to.
    pub(crate) cpu_state: State,
    /// State that the part lost to the lower frequency is charged to.
    pub(crate) freq_state: State,
}

/// The debt of one burst, in ns · 2⁻³². A burst loses in few states: these lie together, in the order in which they came up,
/// so that the rest of the table need not be in a cache.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Debt {
    capped: i128,
    /// States in which something was lost, a bit each, and their number.
    used: u32,
    states: u8,
    /// Place in `lost` of each state that is used.
    places: [u8; LOST],
    /// Amounts lost, of as many states as are used.
    lost: [u128; LOST],
}

const _: () = assert!(LOST <= u32::BITS as usize);

impl Debt {
    /// Adds `dt` ns at `place`, or if there is none waiting, which is lost in `waits`. `reserved`: it is a deadline task's.
    pub(crate) fn add(&mut self, dt: u64, place: Option<&Place>, most: Most, task: (State, bool)) {
        let (waits, reserved) = task;
        let speed = place.map_or(0, |p| p.speed);
        let total = ONE.saturating_sub(speed);
        self.capped += i128::from(dt) * (i128::from(most.speed) - i128::from(speed));
        let capped = total.min(ONE.saturating_sub(most.speed));
        let rest = total - capped;
        if capped > 0 {
            let affinity = capped.min(ONE.saturating_sub(most.affinity));
            let clamped = capped.min(ONE.saturating_sub(most.clamped)).max(affinity);
            self.charge(State::Affinity, dt, affinity);
            self.charge(State::UclampMax, dt, clamped - affinity);
            self.charge(State::UserCapped, dt, capped - clamped);
        }
        match place {
            None => self.charge(waits, dt, rest),
            Some(p) if rest > 0 => {
                let beside = rest.min(p.alone.saturating_sub(speed));
                if beside > 0 {
                    self.charge(p.beside_state, dt, beside);
                }
                let rest = rest - beside;
                let cpu = ONE.saturating_sub(p.highest).saturating_sub(capped).min(rest);
                self.charge(p.cpu_state, dt, cpu);
                let freq_state = match p.freq_state {
                    State::LowestOpp | State::OppClimb | State::LastAsked if reserved => {
                        State::Reserved
                    }
                    other => other,
                };
                self.charge(freq_state, dt, rest - cpu);
            }
            Some(_) => {}
        }
    }

    /// Adds `dt` ns of running at `speed` that were somebody else's: an interrupt's, the kernel's.
    pub(crate) fn add_stolen(&mut self, dt: u64, speed: u64) {
        self.capped += i128::from(dt) * i128::from(speed);
        self.charge(State::Interrupted, dt, speed);
    }

    #[inline]
    fn charge(&mut self, state: State, dt: u64, speed: u64) {
        let lost = u128::from(dt) * u128::from(speed);
        if lost > 0 {
            self.lose(state as usize, lost);
        }
    }

    /// Adds what was lost in the state of this number.
    #[inline]
    fn lose(&mut self, state: usize, lost: u128) {
        let bit = 1 << state;
        if self.used & bit != 0 {
            self.lost[usize::from(self.places[state])] += lost;
            return;
        }
        self.used |= bit;
        self.places[state] = self.states;
        self.lost[usize::from(self.states)] = lost;
        self.states += 1;
    }

    /// Iterates over the states in which something was lost, by number, ascending, with what was lost.
    fn all(&self) -> impl Iterator<Item = (usize, u128)> + '_ {
        let mut left = self.used;
        std::iter::from_fn(move || {
            let state = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some((state, self.lost[usize::from(self.places[state])]))
        })
    }

    /// Forgets all of it.
    pub(crate) fn clear(&mut self) {
        (self.capped, self.used, self.states) = (0, 0, 0);
    }

    /// Becomes `other`.
    pub(crate) fn copy(&mut self, other: &Debt) {
        self.clear();
        self.absorb(other);
    }

    /// Adds all of `other`.
    pub(crate) fn absorb(&mut self, other: &Debt) {
        other.all().for_each(|(state, lost)| self.lose(state, lost));
        self.capped += other.capped;
    }

    /// The debt that was added to `before` to come to this.
    pub(crate) fn since(&self, before: &Debt) -> Debt {
        let mut more = *self;
        before.all().for_each(|(state, lost)| more.lost[usize::from(more.places[state])] -= lost);
        more.capped -= before.capped;
        more
    }

    /// The debt ∫(1 − s) dt in ms.
    pub(crate) fn ms(&self) -> f64 {
        work_ms(self.all().map(|(_, lost)| lost).sum::<u128>() as f64)
    }
    /// The part of the debt that was lost in a state, in ms.
    pub(crate) fn of(&self, state: State) -> f64 {
        let lost = self.all().find(|(used, _)| *used == state as usize);
        work_ms(lost.map_or(0, |(_, lost)| lost) as f64)
    }
    /// ∫(s_max − s) dt in ms.
    pub(crate) fn capped_ms(&self) -> f64 {
        work_ms(self.capped as f64)
    }
    /// The parts above 0, largest first.
    pub(crate) fn parts(&self) -> Vec<crate::Lost> {
        let mut parts: Vec<_> = self.all().filter(|(_, lost)| *lost > 0).collect();
        parts.sort_by_key(|(_, lost)| std::cmp::Reverse(*lost));
        let part = |(state, lost): (usize, u128)| crate::Lost {
            state: LOST_STATES[state].0,
            ms: work_ms(lost as f64),
        };
        parts.into_iter().map(part).collect()
    }
}

fn work_ms(fixed: f64) -> f64 {
    fixed / ONE as f64 / 1e6
}

/// Watch for full speed of a burst: the start of the first whole tick with s ≥ 0.99 · s_max.
///
/// "A whole tick" is any stretch of the length of a tick, wherever the tick itself falls (a
/// trace need not show ticks). A stretch begins where the speed is reached and ends with a
/// gap of more than 100 µs; shorter gaps inside count as part of it, whether the task then
/// waited, slept or ran slower. A longer sleep does end it, though it is left out of the
/// integrals: during it the task did not run at full speed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FullSpeed {
    /// Start and so-far end of the stretch.
    stretch: Option<(u64, u64)>,
}

/// Gaps up to this many ns are ignored.
pub(crate) const GAP_NS: u64 = 100_000;

impl FullSpeed {
    /// Forgets the stretch.
    pub(crate) fn clear(&mut self) {
        self.stretch = None;
    }

    /// Notes that the task ran at `speed` from `from` for `dt` ns; `debt` is that before, and `at_start` becomes that at the
    /// start of the stretch. Returns the start of the whole tick, once it is known.
    pub(crate) fn run(
        &mut self,
        (from, dt): (u64, u64),
        (speed, s_max): (u64, u64),
        tick: u64,
        debt: &Debt,
        at_start: &mut Debt,
    ) -> Option<u64> {
        // One unit of 2⁻³² in favour, so that the rounding of a speed does not decide.
        if (speed + 1) * 100 < s_max * 99 {
            return None;
        }
        let to = from + dt;
        match &mut self.stretch {
            Some((_, until)) if from - *until <= GAP_NS => *until = to,
            stretch => {
                *stretch = Some((from, to));
                at_start.copy(debt);
            }
        }
        let (since, until) = self.stretch?;
        (until - since >= tick).then_some(since)
    }
}

/// The speed of `util` of 1024, on the scale of [`UNIT`]: that of an OPP if one lies closer than one unit (s_max is
/// given in whole units, the speeds of OPPs are not whole), else exactly `util`; at most `full`.
pub(crate) fn snap(util: Util, full: u64, speeds: impl Iterator<Item = u64>) -> u64 {
    let exact = util.0.saturating_mul(UNIT).min(full);
    speeds.filter(|s| s.abs_diff(exact) < UNIT).min_by_key(|s| s.abs_diff(exact)).unwrap_or(exact)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws;
    use proptest::prelude::*;

    fn place(highest: u64, speed: u64) -> Place {
        Place {
            cpu: 0,
            domain: 0,
            key: 0,
            opps: 1,
            capacity: 1024,
            power_uw: 0,
            highest,
            speed,
            alone: speed,
            beside_state: State::Sibling,
            cpu_state: State::LittleCpu,
            freq_state: State::OppClimb,
        }
    }

    fn lost(debt: &Debt) -> Vec<(&'static str, f64)> {
        debt.parts().into_iter().map(|part| (part.state, part.ms)).collect()
    }

    const MS: u64 = 1_000_000;
    const WAITS: (State, bool) = (State::WaitingForCpu, false);

    /// What no decision could have given goes to affinity first, then to the clamp, then to user space's limit.
    #[test]
    fn what_takes_speed_from_a_task_for_ever_is_told_apart() {
        let most = Most { speed: ONE / 8, affinity: ONE / 2, clamped: ONE / 4 };
        let mut debt = Debt::default();
        debt.add(8 * MS, Some(&place(ONE, ONE / 8)), most, WAITS);
        assert_eq!(lost(&debt), [("affinity", 4.0), ("uclamp_max", 2.0), ("user_capped", 1.0)]);
        assert_eq!((debt.ms(), debt.capped_ms(), debt.of(State::Affinity)), (7.0, 0.0, 4.0));
    }

    #[test]
    fn a_deadline_task_has_the_frequency_of_its_reservation() {
        let of = |reserved| {
            let mut debt = Debt::default();
            debt.add(MS, Some(&place(ONE, ONE / 2)), Most::of(ONE), (State::Throttled, reserved));
            debt.add(MS, None, Most::of(ONE), (State::Throttled, reserved));
            lost(&debt)
        };
        assert_eq!(of(true), [("throttled", 1.0), ("reserved", 0.5)]);
        assert_eq!(of(false), [("throttled", 1.0), ("opp_climb", 0.5)]);
    }

    proptest! {
        #![proptest_config(draws::config(256))]

        #[test]
        fn what_is_lost_adds_up_in_each_state_in_whatever_order_states_come_up(
            parts in prop::collection::vec((0..LOST, 1..1000u128), 0..60),
            cut in 0..60usize,
        ) {
            let debt = |parts: &[(usize, u128)]| {
                let mut debt = Debt::default();
                parts.iter().for_each(|(state, lost)| debt.lose(*state, *lost));
                debt
            };
            let sums = |parts: &[(usize, u128)]| {
                let mut sums = [0; LOST];
                parts.iter().for_each(|(state, lost)| sums[*state] += lost);
                sums
            };
            let told = |debt: &Debt| sums(&debt.all().collect::<Vec<_>>());
            let (before, behind) = parts.split_at(cut.min(parts.len()));
            let (mut first, second, all) = (debt(before), debt(behind), debt(&parts));
            prop_assert_eq!(told(&all), sums(&parts));
            prop_assert_eq!(told(&all.since(&first)), sums(behind));
            first.absorb(&second);
            prop_assert_eq!(told(&first), sums(&parts));
            first.copy(&second);
            prop_assert_eq!(told(&first), sums(behind));
            first.clear();
            prop_assert_eq!(told(&first), [0; LOST]);
        }

        /// Whatever a trace tells, even speeds above full speed: nothing less than 0 is lost, and no more than there was time.
        #[test]
        fn lost_is_at_least_nothing_and_at_most_the_time(
            speeds in prop::array::uniform5(0..(2 * ONE)),
            waits in any::<bool>(),
            reserved in any::<bool>(),
        ) {
            let [highest, speed, s_max, affinity, clamped] = speeds;
            let most = Most { speed: s_max, affinity, clamped };
            let mut debt = Debt::default();
            let place = place(highest, speed);
            debt.add(MS, (!waits).then_some(&place), most, (State::WaitingForCpu, reserved));
            prop_assert!((0.0..=1.0).contains(&debt.ms()), "{}", debt.ms());
            let sum: f64 = debt.parts().iter().map(|part| part.ms).sum();
            prop_assert!((sum - debt.ms()).abs() < 1e-9);
            prop_assert!(debt.parts().iter().all(|part| part.ms <= 1.0));
        }
    }
}
