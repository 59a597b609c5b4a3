//! The power HAL of Google's Pixel phones: a PID controller over each session's error sets its threads' `uclamp_min`.
//!
//! ```text
//! report ─> adpf::Session: variable += P + I + D ─> largest valid vote ─> uclamp_min of the session's threads
//! no report for stale_factor · target ───────────> 0
//! ```
//!
//! Its constants are settings, by default those of the Pixel 6 at 60 Hz; arithmetic, source and what is left out:
//! [`risetime_kernel::adpf`].

use super::{Descriptor, HintSession, PowerHal};
use risetime_kernel::adpf::{Hint, Profile, Session};
use risetime_kernel::units::{Instant, Span, Util};
use risetime_model::settings::{Default, Group, Home, Int, Neutral, Param, Range, Settings};

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "pixel",
    doc: "as on Pixel phones: a PID controller over each hint session's error sets uclamp_min",
    settings: Group::of(PARAMS),
    make: |settings| Some(Box::new(Pixel(profile(settings)))),
};

const fn param(
    name: &'static str,
    doc: &'static str,
    unit: &'static str,
    range: (i64, i64),
    default: i64,
) -> Param {
    let (range, default) = (Range::Int(range.0, range.1), Default::Int(default));
    Param { name, doc, unit, range, default, home: Home::Simulator(Neutral::None) }
}

const P: Profile = Profile::PIXEL6_60;
const GAIN: (i64, i64) = (0, 1_000_000);
const CLAMP: (i64, i64) = (0, 1024);

pub(crate) const ADPF_PID_ON: Int = Int::new(param(
    "adpf_pid_on",
    "0: a session that reports has adpf_uclamp_min_high",
    "",
    (0, 1),
    P.pid_on as i64,
));

pub(crate) const ADPF_PID_PO: Int = Int::new(param(
    "adpf_pid_po",
    "gain of the error where jobs take longer than their target, in thousandths of a clamp per 100 µs (PID_Po)",
    "/1000",
    GAIN,
    P.p_over,
));

pub(crate) const ADPF_PID_PU: Int =
    Int::new(param("adpf_pid_pu", "where they take less (PID_Pu)", "/1000", GAIN, P.p_under));

pub(crate) const ADPF_PID_I: Int = Int::new(param(
    "adpf_pid_i",
    "gain of the error's integral, in thousandths per (100 µs)² (PID_I)",
    "/1000",
    GAIN,
    P.i,
));

pub(crate) const ADPF_PID_I_INIT: Int = Int::new(param(
    "adpf_pid_i_init",
    "what the integral gives at least when a stale session reports again (PID_I_Init)",
    "of 1024",
    (-1024, 1024),
    P.i_init,
));

pub(crate) const ADPF_PID_I_HIGH: Int = Int::new(param(
    "adpf_pid_i_high",
    "what the integral gives at most (PID_I_High)",
    "of 1024",
    (-1024, 1024),
    P.i_high,
));

pub(crate) const ADPF_PID_I_LOW: Int = Int::new(param(
    "adpf_pid_i_low",
    "what the integral gives at least (PID_I_Low)",
    "of 1024",
    (-1024, 1024),
    P.i_low,
));

pub(crate) const ADPF_PID_DO: Int = Int::new(param(
    "adpf_pid_do",
    "gain of the error's change where jobs get longer, in thousandths (PID_Do)",
    "/1000",
    GAIN,
    P.d_over,
));

pub(crate) const ADPF_PID_DU: Int =
    Int::new(param("adpf_pid_du", "where they get shorter (PID_Du)", "/1000", GAIN, P.d_under));

pub(crate) const ADPF_SAMPLING_WINDOW_P: Int = Int::new(param(
    "adpf_sampling_window_p",
    "of reports that come together so many count for the error, the last ones; 0 = all",
    "reports",
    (0, 1000),
    P.windows[0] as i64,
));

pub(crate) const ADPF_SAMPLING_WINDOW_I: Int = Int::new(param(
    "adpf_sampling_window_i",
    "for its integral",
    "reports",
    (0, 1000),
    P.windows[1] as i64,
));

pub(crate) const ADPF_SAMPLING_WINDOW_D: Int = Int::new(param(
    "adpf_sampling_window_d",
    "for its change",
    "reports",
    (0, 1000),
    P.windows[2] as i64,
));

pub(crate) const ADPF_UCLAMP_MIN_INIT: Int = Int::new(param(
    "adpf_uclamp_min_init",
    "a session's uclamp_min when it is created, and at least after a reset",
    "of 1024",
    CLAMP,
    P.init.0 as i64,
));

pub(crate) const ADPF_UCLAMP_MIN_HIGH: Int = Int::new(param(
    "adpf_uclamp_min_high",
    "the controller's upper limit",
    "of 1024",
    CLAMP,
    P.high.0 as i64,
));

pub(crate) const ADPF_UCLAMP_MIN_LOW: Int =
    Int::new(param("adpf_uclamp_min_low", "its lower limit", "of 1024", CLAMP, P.low.0 as i64));

pub(crate) const ADPF_UCLAMP_MIN_LOAD_UP: Int = Int::new(param(
    "adpf_uclamp_min_load_up",
    "for two targets after the hint CPU_LOAD_UP",
    "of 1024",
    CLAMP,
    P.load_up.0 as i64,
));

pub(crate) const ADPF_UCLAMP_MIN_LOAD_RESET: Int = Int::new(param(
    "adpf_uclamp_min_load_reset",
    "for half of the stale time after CPU_LOAD_RESET, until a report comes",
    "of 1024",
    CLAMP,
    P.load_reset.0 as i64,
));

pub(crate) const ADPF_REPORTING_RATE_LIMIT_NS: Int = Int::new(param(
    "adpf_reporting_rate_limit_ns",
    "an app whose jobs are in time reports so often, after a while",
    "ns",
    (0, 10_000_000_000),
    P.rate_limit.0 as i64,
));

pub(crate) const ADPF_TARGET_TIME_FACTOR: Int = Int::new(param(
    "adpf_target_time_factor",
    "the controller's target, in thousandths of the session's",
    "/1000",
    (1, 100_000),
    P.target_factor as i64,
));

pub(crate) const ADPF_STALE_TIME_FACTOR: Int = Int::new(param(
    "adpf_stale_time_factor",
    "without a report for so many thousandths of its target a session is stale, and its threads' uclamp_min 0",
    "/1000",
    (1, 1_000_000),
    P.stale_factor as i64,
));

const PARAMS: &[Param] = &[
    ADPF_PID_ON.0,
    ADPF_PID_PO.0,
    ADPF_PID_PU.0,
    ADPF_PID_I.0,
    ADPF_PID_I_INIT.0,
    ADPF_PID_I_HIGH.0,
    ADPF_PID_I_LOW.0,
    ADPF_PID_DO.0,
    ADPF_PID_DU.0,
    ADPF_SAMPLING_WINDOW_P.0,
    ADPF_SAMPLING_WINDOW_I.0,
    ADPF_SAMPLING_WINDOW_D.0,
    ADPF_UCLAMP_MIN_INIT.0,
    ADPF_UCLAMP_MIN_HIGH.0,
    ADPF_UCLAMP_MIN_LOW.0,
    ADPF_UCLAMP_MIN_LOAD_UP.0,
    ADPF_UCLAMP_MIN_LOAD_RESET.0,
    ADPF_REPORTING_RATE_LIMIT_NS.0,
    ADPF_TARGET_TIME_FACTOR.0,
    ADPF_STALE_TIME_FACTOR.0,
];

fn profile(settings: &Settings) -> Profile {
    // The defaults stand beside the items.
    let int = |of: &Int| match of.default {
        Default::Int(default) => settings.get(of).unwrap_or(default),
        _ => 0,
    };
    let util = |of: &Int| Util(int(of).clamp(0, 1024) as u64);
    let whole = |of: &Int| int(of).max(0) as u64;
    let window = |of: &Int| whole(of) as usize;
    Profile {
        pid_on: int(&ADPF_PID_ON) != 0,
        p_over: int(&ADPF_PID_PO),
        p_under: int(&ADPF_PID_PU),
        i: int(&ADPF_PID_I),
        i_init: int(&ADPF_PID_I_INIT),
        i_high: int(&ADPF_PID_I_HIGH),
        i_low: int(&ADPF_PID_I_LOW),
        d_over: int(&ADPF_PID_DO),
        d_under: int(&ADPF_PID_DU),
        windows: [
            window(&ADPF_SAMPLING_WINDOW_P),
            window(&ADPF_SAMPLING_WINDOW_I),
            window(&ADPF_SAMPLING_WINDOW_D),
        ],
        init: util(&ADPF_UCLAMP_MIN_INIT),
        load_up: util(&ADPF_UCLAMP_MIN_LOAD_UP),
        load_reset: util(&ADPF_UCLAMP_MIN_LOAD_RESET),
        high: util(&ADPF_UCLAMP_MIN_HIGH),
        low: util(&ADPF_UCLAMP_MIN_LOW),
        rate_limit: Span(whole(&ADPF_REPORTING_RATE_LIMIT_NS)),
        target_factor: whole(&ADPF_TARGET_TIME_FACTOR),
        stale_factor: whole(&ADPF_STALE_TIME_FACTOR),
    }
}

struct Pixel(Profile);

impl PowerHal for Pixel {
    fn preferred_rate(&self) -> Span {
        self.0.rate_limit
    }
    fn create(&self, target: Span, now: Instant) -> Box<dyn HintSession> {
        Box::new(Session::new(self.0, target, now))
    }
}

impl HintSession for Session {
    fn reports(&mut self, actual: &[Span], now: Instant) {
        Session::reports(self, actual, now);
    }
    fn hint(&mut self, hint: Hint, now: Instant) {
        Session::hint(self, hint, now);
    }
    fn uclamp_min(&self, now: Instant) -> Util {
        Session::uclamp_min(self, now)
    }
    fn changes_at(&self, now: Instant) -> Option<Instant> {
        Session::changes_at(self, now)
    }
}
