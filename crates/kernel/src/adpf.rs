//! Hint sessions of Android's Dynamic Performance Framework (ADPF): from how long frames take to a clamp of their threads.
//!
//! ```text
//! app                      session of some threads, target work duration T; after each frame its actual duration A
//!   │ reports              at once if A ≥ T; while in time, held back for rate_limit at most
//! power HAL                e = (A − T) / 100 µs
//!   variable += P·e + I·Σ(e·T) + D·(e − e before)/T        within [low, high]
//!   uclamp_min of the threads = the largest vote that is still valid
//!                               default: variable           until stale_factor·T behind the last report
//!                               load_reset, load_up, load_resume: values of their own for a while
//! ```
//!
//! No part of a kernel: what user space of a Pixel phone does with one (`sched_setattr`). It is here because it is pure
//! arithmetic of whole numbers as all else in this room.
//!
//! The original reckons gains as doubles and cuts each of the three terms off towards zero; here gains are thousandths, the
//! product is exact, and the cut is the same. Gains that are no multiples of 0.001 cannot be said.
//!
//! Left out: the heuristic boost of Android 15 and later (it watches for jank and raises the limits), `uclamp_max` of power-efficient
//! sessions, hints about the GPU, several sessions' boost of the whole system (`ADPF_DISABLE_TA_BOOST`).
//!
//! Source: Android, hardware/google/pixel, power-libperfmgr/aidl: PowerHintSession.cpp, UClampVoter.cpp (the form of 2024); the
//! app's side: frameworks/base/native/android/performance_hint.cpp.

use crate::units::{Instant, Span, Util};

/// Errors and durations count in this.
const STEP: u64 = 100_000;

/// A device's constants (`AdpfConfig` in its `powerhint.json`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// `PID_On`; without it a session that reports has `high`.
    pub pid_on: bool,
    /// `PID_Po`: gain where frames take too long, in 1/1000 of a clamp per 100 µs.
    pub p_over: i64,
    /// `PID_Pu`: where they are in time.
    pub p_under: i64,
    /// `PID_I`, in 1/1000 per (100 µs)².
    pub i: i64,
    /// `PID_I_Init`: what the integral gives at least where a session reports again after it was stale.
    pub i_init: i64,
    /// `PID_I_High`: what it gives at most.
    pub i_high: i64,
    /// `PID_I_Low`: and at least.
    pub i_low: i64,
    /// `PID_Do`: gain of the change where frames get longer, in 1/1000.
    pub d_over: i64,
    /// `PID_Du`: where they get shorter.
    pub d_under: i64,
    /// `SamplingWindow_P`, `_I`, `_D`: so many of the reports that come together count, the last ones; 0: all.
    pub windows: [usize; 3],
    /// `UclampMin_Init`.
    pub init: Util,
    /// `UclampMin_LoadUp`.
    pub load_up: Util,
    /// `UclampMin_LoadReset`.
    pub load_reset: Util,
    /// `UclampMin_High`.
    pub high: Util,
    /// `UclampMin_Low`.
    pub low: Util,
    /// `ReportingRateLimitNs`.
    pub rate_limit: Span,
    /// `TargetTimeFactor`, in 1/1000.
    pub target_factor: u64,
    /// `StaleTimeFactor`, in 1/1000.
    pub stale_factor: u64,
}

impl Profile {
    /// `REFRESH_60FPS` of the Pixel 6 (oriole): device/google/raviole, powerhint-oriole.json.
    pub const PIXEL6_60: Profile = Profile {
        pid_on: true,
        p_over: 2_000,
        p_under: 1_000,
        i: 0,
        i_init: 200,
        i_high: 512,
        i_low: -30,
        d_over: 500_000,
        d_under: 0,
        windows: [1, 0, 1],
        init: Util(162),
        load_up: Util(480),
        load_reset: Util(480),
        high: Util(480),
        low: Util(2),
        rate_limit: Span(166_666_660),
        target_factor: 1_000,
        stale_factor: 15_000,
    };

    /// The bound of a term of the integral: `what` divided by the gain; 0 without a gain.
    const fn by_gain(&self, what: i64) -> i64 {
        if self.i == 0 { 0 } else { what * 1000 / self.i }
    }
}

/// Hints that an app may give beside its reports (`SessionHint`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// More work is ahead.
    LoadUp,
    /// Less work is ahead.
    LoadDown,
    /// Work begins whose amount nobody knows.
    LoadReset,
    /// Work goes on as it was.
    LoadResume,
}

/// A wish of a session, until then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Vote {
    min: Util,
    until: Instant,
}

/// Place of the default vote; each wish has a place of its own.
const DEFAULT: usize = 0;
const UP: usize = 1;
const RESET: usize = 2;
const RESUME: usize = 3;

/// A hint session on the side of the power HAL.
#[derive(Clone, Debug)]
pub struct Session {
    profile: Profile,
    target: Span,
    integral: i64,
    previous: i64,
    /// `pidControlVariable`.
    variable: i64,
    votes: [Vote; 4],
    /// Time of the last report, or of the session's beginning.
    updated: Instant,
}

impl Session {
    /// A session that is created at `now`, with the votes of a new hint session. `target`: the
    /// target work duration, at least 1 step of 100 µs.
    pub fn new(profile: Profile, target: Span, now: Instant) -> Session {
        let target = u128::from(target.0) * u128::from(profile.target_factor) / 1000;
        let target = Span(u64::try_from(target).unwrap_or(u64::MAX).max(STEP));
        let mut new = Session {
            profile,
            target,
            integral: 0,
            previous: 0,
            variable: 0,
            votes: [Vote::default(); 4],
            updated: now,
        };
        new.votes(RESET, profile.load_reset, now, Span(new.stale().0 / 2));
        new.votes(DEFAULT, profile.init, now, new.target);
        new
    }

    /// The time after which a session without reports is no longer believed.
    fn stale(&self) -> Span {
        let ns = u128::from(self.target.0) * u128::from(self.profile.stale_factor) / 1000;
        Span(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    fn votes(&mut self, which: usize, min: Util, now: Instant, lasts: Span) {
        self.votes[which] = Vote { min, until: Instant(now.0.saturating_add(lasts.0)) };
    }

    fn votes_by_default(&mut self, now: Instant) {
        let lasts = self.stale().0.max(self.profile.rate_limit.0.saturating_mul(2));
        self.votes(DEFAULT, Util(self.variable.clamp(0, 1024) as u64), now, Span(lasts));
    }

    /// `convertWorkDurationToBoostByPid`: by how much the variable is to change, from reports that came together, the oldest
    /// first. Rounding: each term towards 0.
    fn pid(&mut self, actual: &[Span]) -> i64 {
        let p = self.profile;
        let n = actual.len();
        let from = |window: usize| if window == 0 { 0 } else { n.saturating_sub(window) };
        let [p_from, i_from, d_from] = p.windows.map(from);
        let steps = |ns: u64| i64::try_from(ns / STEP).unwrap_or(i64::MAX >> 20);
        let dt = steps(self.target.0).max(1);
        let (low, high) = (p.by_gain(p.i_low), p.by_gain(p.i_high));
        let (mut errors, mut changes) = (0i64, 0i64);
        for (k, actual) in actual.iter().enumerate().skip(p_from.min(i_from).min(d_from)) {
            // As the original divides: of the difference, towards 0.
            let error = match actual.0.checked_sub(self.target.0) {
                Some(over) => steps(over),
                None => -steps(self.target.0 - actual.0),
            };
            if k >= d_from {
                changes = changes.saturating_add(error - self.previous);
            }
            if k >= p_from {
                errors = errors.saturating_add(error);
            }
            if k >= i_from {
                let sum = self.integral.saturating_add(error.saturating_mul(dt));
                self.integral = sum.min(high).max(low);
            }
            self.previous = error;
        }
        let term = |gain: i64, of: i64, by: i64| {
            let exact = i128::from(gain) * i128::from(of) / (1000 * i128::from(by.max(1)));
            exact.clamp(-(1 << 40), 1 << 40) as i64
        };
        let many = |from: usize| (n - from) as i64;
        term(if errors > 0 { p.p_over } else { p.p_under }, errors, many(p_from))
            + term(p.i, self.integral, 1)
            + term(if changes > 0 { p.d_over } else { p.d_under }, changes, dt * many(d_from))
    }

    /// `reportActualWorkDuration`: the actual durations of some frames, the oldest first.
    pub fn reports(&mut self, actual: &[Span], now: Instant) {
        if actual.is_empty() {
            return;
        }
        let p = self.profile;
        if now.0 >= self.updated.0.saturating_add(self.stale().0) {
            self.integral = self.integral.max(p.by_gain(p.i_init));
        }
        self.updated = now;
        // `disableBoosts`
        self.votes[UP..].fill(Vote::default());
        let next = if p.pid_on { self.variable + self.pid(actual) } else { p.high.0 as i64 };
        self.variable = next.min(p.high.0 as i64).max(p.low.0 as i64);
        self.votes_by_default(now);
    }

    /// `sendHint`.
    pub fn hint(&mut self, hint: Hint, now: Instant) {
        let (p, half) = (self.profile, Span(self.stale().0 / 2));
        let variable = Util(self.variable.clamp(0, 1024) as u64);
        match hint {
            Hint::LoadUp => {
                self.votes_by_default(now);
                self.votes(UP, p.load_up, now, Span(self.target.0.saturating_mul(2)));
            }
            Hint::LoadDown => {
                self.variable = p.low.0 as i64;
                self.votes_by_default(now);
            }
            Hint::LoadReset => {
                self.variable = self.variable.max(p.init.0 as i64);
                self.votes(RESET, p.load_reset, now, half);
            }
            Hint::LoadResume => self.votes(RESUME, variable, now, half),
        }
    }

    /// The `uclamp_min` that the session's threads are to have at `now`: the largest vote that is
    /// still valid; 0 once all are over.
    pub fn uclamp_min(&self, now: Instant) -> Util {
        let valid = self.votes.iter().filter(|vote| vote.until > now).map(|vote| vote.min);
        valid.max().unwrap_or(Util(0)).min(Util(1024))
    }

    /// The next time at which a vote runs out and [`Session::uclamp_min`] may change; `None`: no
    /// vote is valid after `now`.
    pub fn changes_at(&self, now: Instant) -> Option<Instant> {
        self.votes.iter().map(|vote| vote.until).filter(|until| *until > now).min()
    }
}

/// A hint session on the side of the app, which holds back what need not be told.
#[derive(Clone, Debug, Default)]
pub struct Reporter {
    target: Span,
    rate_limit: Span,
    first_met: Option<Instant>,
    last_met: Option<Instant>,
}

impl Reporter {
    /// A reporter for a session with the target work duration `target`, at most one report per
    /// `rate_limit`, which the power HAL prefers.
    pub fn new(target: Span, rate_limit: Span) -> Reporter {
        Reporter { target, rate_limit, first_met: None, last_met: None }
    }

    /// A frame took so long: whether all that was held back is told now, and this one with it.
    pub fn tells(&mut self, actual: Span, now: Instant) -> bool {
        if actual >= self.target {
            self.first_met = None;
            return true;
        }
        let since = |at: Instant| now.0.saturating_sub(at.0);
        let (first, last) = match (self.first_met, self.last_met) {
            (Some(first), Some(last)) if since(last) <= self.rate_limit.0.saturating_mul(2) => {
                (first, last)
            }
            (_, last) => {
                self.first_met = Some(now);
                (now, last.unwrap_or(Instant(0)))
            }
        };
        if since(first) > self.rate_limit.0 && since(last) <= self.rate_limit.0 {
            return false;
        }
        self.last_met = Some(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    const T: Span = Span(16_666_666);
    /// The 120-Hz profile that several phones took over; its integral counts.
    const WITH_I: Profile = Profile {
        p_over: 5_000,
        p_under: 3_000,
        i: 1,
        i_low: -120,
        high: Util(384),
        low: Util(0),
        ..Profile::PIXEL6_60
    };
    const WINDOWS: Profile = Profile {
        p_over: 2_500,
        p_under: 500,
        i: 2,
        d_over: 250_000,
        d_under: 100_000,
        windows: [0, 2, 3],
        high: Util(722),
        ..Profile::PIXEL6_60
    };

    /// The variable after each of these reports, as the original's arithmetic of doubles and casts has it.
    #[test]
    fn the_variable_is_that_of_the_original() {
        let us = |all: &[u64]| all.iter().map(|us| Span(*us)).collect::<Vec<_>>();
        let reports = vec![
            us(&[17_000_000]),
            us(&[25_000_000]),
            us(&[16_600_000]),
            us(&[12_345_678]),
            us(&[9_999_999]),
            us(&[40_000_000]),
            us(&[16_666_665]),
            us(&[16_766_667]),
            us(&[15_000_000; 3]),
            us(&[14_000_000, 18_500_000, 15_900_000, 21_000_000]),
            us(&[3_000_000]),
            us(&[3_000_000]),
            us(&[3_000_000]),
            us(&[19_950_000]),
            us(&[33_333_333]),
        ];
        for (profile, wanted) in [
            (
                Profile::PIXEL6_60,
                [15, 421, 421, 378, 312, 480, 480, 480, 464, 480, 344, 208, 72, 480, 480],
            ),
            (WITH_I, [24, 384, 384, 262, 61, 384, 384, 384, 363, 384, 0, 0, 0, 384, 384]),
            (WINDOWS, [11, 366, 344, 312, 259, 722, 651, 722, 722, 722, 573, 487, 389, 703, 722]),
        ] {
            let mut session = Session::new(profile, T, Instant(0));
            let mut now = Instant(0);
            let all = reports.iter().map(|report| {
                now += T;
                session.reports(report, now);
                session.variable
            });
            assert_eq!(all.collect::<Vec<_>>(), wanted);
        }
    }

    #[test]
    fn votes_stand_beside_each_other_and_fade() {
        let p = Profile::PIXEL6_60;
        let mut s = Session::new(p, T, Instant(0));
        let at = |ms: u64| Instant(ms * 1_000_000);
        // Created: load_reset for 7.5 targets, 125 ms.
        assert_eq!(s.uclamp_min(at(0)), Util(480));
        assert_eq!(
            s.changes_at(at(0)),
            Some(Instant(T.0)),
            "the default's first vote, of one target"
        );
        assert_eq!(s.uclamp_min(at(124)), Util(480));
        assert_eq!(s.uclamp_min(at(125)), Util(0));
        // A report takes what was for a while away; its own vote is valid for twice the rate limit, 333 ms.
        s.reports(&[Span(17_000_000)], at(10));
        assert_eq!(s.uclamp_min(at(10)), Util(15));
        assert_eq!(s.uclamp_min(at(343)), Util(15));
        assert_eq!(s.uclamp_min(at(344)), Util(0));
        assert_eq!(s.changes_at(at(344)), None);
        s.hint(Hint::LoadUp, at(20));
        assert_eq!((s.uclamp_min(at(20)), s.uclamp_min(at(54))), (Util(480), Util(15)));
        s.hint(Hint::LoadReset, at(400));
        assert_eq!(s.uclamp_min(at(400)), Util(480));
        s.reports(&[T], at(410));
        assert_eq!(s.uclamp_min(at(410)), Util(162), "at least init, from where it goes on");
        s.hint(Hint::LoadDown, at(411));
        assert_eq!(s.uclamp_min(at(411)), Util(2));
        s.hint(Hint::LoadResume, at(2000));
        assert_eq!((s.uclamp_min(at(2000)), s.uclamp_min(at(2125))), (Util(2), Util(0)));
    }

    #[test]
    fn without_pid_who_reports_has_the_upper_limit() {
        let p = Profile { pid_on: false, ..Profile::PIXEL6_60 };
        let mut s = Session::new(p, T, Instant(0));
        s.reports(&[Span(1)], Instant(1));
        assert_eq!(s.uclamp_min(Instant(1)), p.high);
    }

    #[test]
    fn frames_in_time_are_held_back_after_a_while() {
        let mut r = Reporter::new(T, Span::from_ms(166));
        let at = |frame: u64| Instant(frame * T.0);
        let told: Vec<bool> = (1..60).map(|frame| r.tells(Span(10_000_000), at(frame))).collect();
        // The first ten (167 ms) at once; then one when a rate limit has passed since the last that was told.
        let at_once = told.iter().take_while(|told| **told).count();
        assert_eq!(at_once, 10);
        let later: Vec<usize> =
            told.iter().enumerate().skip(10).filter(|(_, told)| **told).map(|(i, _)| i).collect();
        assert!(
            !later.is_empty() && later.windows(2).all(|two| two[1] - two[0] <= 20),
            "{later:?}"
        );
        assert!(later.len() <= 10, "{later:?}");
        // Who is late is told at once, and those after it, too.
        assert!(r.tells(Span(20_000_000), at(60)));
        assert!((61..70).all(|frame| r.tells(Span(10_000_000), at(frame))));
    }
}
