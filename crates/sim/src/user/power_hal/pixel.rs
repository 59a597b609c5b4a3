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
use risetime_model::settings::{Default, Home, Neutral, Param, Range, Settings};

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "pixel",
    doc: "as on Pixel phones: a PID controller over each hint session's error sets uclamp_min",
    params: PARAMS,
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

const PARAMS: &[Param] = &[
    param(
        "adpf_pid_on",
        "0: a session that reports has adpf_uclamp_min_high",
        "",
        (0, 1),
        P.pid_on as i64,
    ),
    param(
        "adpf_pid_po",
        "gain of the error where jobs take longer than their target, in thousandths of a clamp per 100 µs (PID_Po)",
        "/1000",
        GAIN,
        P.p_over,
    ),
    param("adpf_pid_pu", "where they take less (PID_Pu)", "/1000", GAIN, P.p_under),
    param(
        "adpf_pid_i",
        "gain of the error's integral, in thousandths per (100 µs)² (PID_I)",
        "/1000",
        GAIN,
        P.i,
    ),
    param(
        "adpf_pid_i_init",
        "what the integral gives at least when a stale session reports again (PID_I_Init)",
        "of 1024",
        (-1024, 1024),
        P.i_init,
    ),
    param(
        "adpf_pid_i_high",
        "what the integral gives at most (PID_I_High)",
        "of 1024",
        (-1024, 1024),
        P.i_high,
    ),
    param(
        "adpf_pid_i_low",
        "what the integral gives at least (PID_I_Low)",
        "of 1024",
        (-1024, 1024),
        P.i_low,
    ),
    param(
        "adpf_pid_do",
        "gain of the error's change where jobs get longer, in thousandths (PID_Do)",
        "/1000",
        GAIN,
        P.d_over,
    ),
    param("adpf_pid_du", "where they get shorter (PID_Du)", "/1000", GAIN, P.d_under),
    param(
        "adpf_sampling_window_p",
        "of reports that come together so many count for the error, the last ones; 0 = all",
        "reports",
        (0, 1000),
        P.windows[0] as i64,
    ),
    param("adpf_sampling_window_i", "for its integral", "reports", (0, 1000), P.windows[1] as i64),
    param("adpf_sampling_window_d", "for its change", "reports", (0, 1000), P.windows[2] as i64),
    param(
        "adpf_uclamp_min_init",
        "a session's uclamp_min when it is created, and at least after a reset",
        "of 1024",
        CLAMP,
        P.init.0 as i64,
    ),
    param(
        "adpf_uclamp_min_high",
        "the controller's upper limit",
        "of 1024",
        CLAMP,
        P.high.0 as i64,
    ),
    param("adpf_uclamp_min_low", "its lower limit", "of 1024", CLAMP, P.low.0 as i64),
    param(
        "adpf_uclamp_min_load_up",
        "for two targets after the hint CPU_LOAD_UP",
        "of 1024",
        CLAMP,
        P.load_up.0 as i64,
    ),
    param(
        "adpf_uclamp_min_load_reset",
        "for half of the stale time after CPU_LOAD_RESET, until a report comes",
        "of 1024",
        CLAMP,
        P.load_reset.0 as i64,
    ),
    param(
        "adpf_reporting_rate_limit_ns",
        "an app whose jobs are in time reports so often, after a while",
        "ns",
        (0, 10_000_000_000),
        P.rate_limit.0 as i64,
    ),
    param(
        "adpf_target_time_factor",
        "the controller's target, in thousandths of the session's",
        "/1000",
        (1, 100_000),
        P.target_factor as i64,
    ),
    param(
        "adpf_stale_time_factor",
        "without a report for so many thousandths of its target a session is stale, and its threads' uclamp_min 0",
        "/1000",
        (1, 1_000_000),
        P.stale_factor as i64,
    ),
];

fn profile(settings: &Settings) -> Profile {
    let int = |name: &str, default: i64| settings.int(name).unwrap_or(default);
    let util = |name: &str, default: Util| Util(int(name, default.0 as i64).clamp(0, 1024) as u64);
    let whole = |name: &str, default: u64| int(name, default as i64).max(0) as u64;
    let window = |name: &str, default: usize| whole(name, default as u64) as usize;
    Profile {
        pid_on: int("adpf_pid_on", 1) != 0,
        p_over: int("adpf_pid_po", P.p_over),
        p_under: int("adpf_pid_pu", P.p_under),
        i: int("adpf_pid_i", P.i),
        i_init: int("adpf_pid_i_init", P.i_init),
        i_high: int("adpf_pid_i_high", P.i_high),
        i_low: int("adpf_pid_i_low", P.i_low),
        d_over: int("adpf_pid_do", P.d_over),
        d_under: int("adpf_pid_du", P.d_under),
        windows: [
            window("adpf_sampling_window_p", P.windows[0]),
            window("adpf_sampling_window_i", P.windows[1]),
            window("adpf_sampling_window_d", P.windows[2]),
        ],
        init: util("adpf_uclamp_min_init", P.init),
        load_up: util("adpf_uclamp_min_load_up", P.load_up),
        load_reset: util("adpf_uclamp_min_load_reset", P.load_reset),
        high: util("adpf_uclamp_min_high", P.high),
        low: util("adpf_uclamp_min_low", P.low),
        rate_limit: Span(whole("adpf_reporting_rate_limit_ns", P.rate_limit.0)),
        target_factor: whole("adpf_target_time_factor", P.target_factor),
        stale_factor: whole("adpf_stale_time_factor", P.stale_factor),
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
