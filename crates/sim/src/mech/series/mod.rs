//! The switches of the response-time series (RFC 00/16 "Better manage system response time",
//! August 2024) and of its neighbours: which are on, and what a CPU keeps for them.
//!
//! ```text
//! patch  setting                            arithmetic                what it changes
//! 4      fits_capacity=rfc                  approximate.rs            Cpu::util_fits
//!        fits_capacity=N                    fits.rs                   Cpu::util_fits
//! 5      dvfs_headroom=update_delay         headroom.rs               Machine::dvfs_util
//!        dvfs_headroom=N                    headroom.rs               Machine::dvfs_util
//! 6      response_time_ms                   response_time.rs          Machine::dvfs_util
//! 7      sched_pelt_multiplier              pelt.rs, approximate.rs   every signal
//! 8      util_est_running                   util_est.rs               util_est at ticks, switches, moves
//! 9      util_est_periodic                  util_est.rs               the same, if util rises
//! 10, 11 rampup_multiplier, hints           sched_qos.rs              how fast it rises and falls
//! 12     waiting_avg                        waiting_avg.rs            a signal; no decision
//! 13     waiting_headroom                   headroom.rs               Machine::dvfs_util
//! 14     no_decaying_headroom               headroom.rs               Machine::dvfs_util
//! 15     util_est_off_at_0                  util_est.rs               multiplier 0: no util_est
//! 16     util_avg_0_on_fork                 pelt_cfs.rs               core.rs:create
//!        util_est_faster, util_est_boost    neighbours.rs             Machine::cpu_util_cfs, task_util_est
//!        runnable_boost=0                   cpu_util.rs               Machine::cpu_util_cfs_boost
//!        pelt_half_life                     pelt.rs                   every signal
//!        latency_nice                       latency_nice.rs           who preempts (CFS), slices (EEVDF)
//!        eas_margin                         energy_model.rs           placement/energy.rs
//! ```
//!
//! `DEVIATES(rfc-v2)`: of the posting of May 2026 (20260504020003.71306-1-qyousef@layalina.io, 13
//! patches) only patches 4, 7, 9 and 10 are known here, in part. The preset `rfc-v2` takes v1's form of
//! them and of those that they build on (v1's numbers 2 to 5, 8 to 11, 15), and leaves out what is not
//! known. It is taken to be on 7.1; on 7.2 and later its `fits_capacity(util, cpu)` meets `invalid_llc_nr`, which passes a number of
//! CPUs: there mainline's margin stays, and a run says so.
//!
//! Patches 2 and 3 are the functions in `approximate.rs`; patch 1 only renames. Each setting acts
//! alone; without any of them nothing here does anything, and the results are mainline's.

pub(crate) mod state;

use crate::kernel::Kernel;
use crate::kernel::governor::schedutil;
use crate::kernel::governor::schedutil::RESPONSE_TIME_MS;
use crate::mech::before;
use crate::mech::mechanism::Mechanism;
use crate::mech::pixel::tunables;
use crate::mech::series::state::{CpuSeries, Limit, Room, Series};
use crate::mech::slots::Id;
use crate::state::machine::Machine;
use crate::time::queue::{Ev, Planned};
use risetime_kernel::approximate::{Margin, fits_capacity_threshold, margin_wraps, tick_usec};
use risetime_kernel::energy_model::feec_margin;
use risetime_kernel::pelt::{Decay, MAX_HALF_LIFE};
use risetime_kernel::response_time::response_time_mult;
use risetime_kernel::units::CpuId;
use risetime_kernel::units::Instant;
use risetime_kernel::units::{Span, Util};
use risetime_kernel::{KernelRev, features};
use risetime_model::platform::Domain;
use risetime_model::settings::{
    Default, Group, Home, Int, IntOrName, Neutral, Param, Range, Settings, Value,
};
use risetime_model::workload::TaskSpec;
use risetime_model::{Experiment, InputError, Platform, Policy};
use std::sync::OnceLock;

impl Mechanism for state::Own {
    fn groups() -> Vec<Group> {
        vec![GROUP]
    }
    fn of_machine(e: &Experiment, m: &Machine) -> Series {
        of_settings(m.rev, &e.settings)
    }
    /// Creates that of a domain's first CPU, and copies it for the others: its response time takes a while to find out.
    fn of_cpu(e: &Experiment, m: &Machine, cpu: CpuId) -> CpuSeries {
        let domain = m.cpu(cpu).domain;
        match m.cpus[..cpu.index()].iter().find(|c| c.domain == domain) {
            Some(first) => first.slots.series.clone(),
            None => of_cpu(m.rev, &e.platform, &e.platform.domains[domain], &e.settings),
        }
    }
    fn bends(m: &Machine) -> bool {
        !m.slots.series.is_mainline() || m.cpus.iter().any(|c| !c.slots.series.is_mainline())
    }
    fn notes(e: &Experiment) -> Vec<String> {
        notes(e)
    }
    fn signals(e: &Experiment) -> &'static [&'static str] {
        let waits = of_settings(e.policy.kernel, &e.settings).tracks_waiting();
        if waits { &["waiting_avg"] } else { &[] }
    }
    fn plans(e: &Experiment, _: &Machine) -> Vec<(Instant, Ev)> {
        let change = decay_change(e.policy.kernel, &e.settings).into_iter();
        let at = |after| Instant(0) + e.phase + after;
        let planned = Ev::MechanismLast(Planned::only(Id::series));
        change.map(|(after, _)| (at(after), planned)).collect()
    }
    /// Writes the multiplier anew.
    fn event(k: &mut Kernel, _: Planned) -> bool {
        k.m.decay = k.m.slots.series.decay_later.unwrap_or(k.m.decay);
        false
    }
}

pub(crate) const FITS_CAPACITY: IntOrName = IntOrName::new(Param {
    name: "fits_capacity",
    doc: "the margin before a task counts as misfit: it fits while its util is below so much of what the CPU has to give; mainline = 80, the other names by capacity and tick (rfc: patch 4 of RFC 00/16; threshold, threshold-tick: its earlier posting)",
    unit: "%",
    range: Range::IntOr(1, 100, &["mainline", "threshold", "threshold-tick", "rfc"]),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Both(80, "mainline")),
});

pub(crate) const UTIL_EST_RUNNING: Int = Int::new(Param {
    name: "util_est_running",
    doc: "util_est rises in plain time while a task runs (patch 8 of RFC 00/16)",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Int(0)),
});

pub(crate) const UTIL_EST_PERIODIC: Int = Int::new(Param {
    name: "util_est_periodic",
    doc: "util_est_running holds only for tasks whose util has risen since their last sleep (patch 9 of RFC 00/16)",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Int(0)),
});

/// Speed with which a task's util climbs.
pub const RAMPUP_MULTIPLIER: Int = Int::new(Param {
    name: "rampup_multiplier",
    doc: "rise of util_est for tasks that give no hint; if set, tasks may hint how fast their util_est rises, by sched-qos (patches 10 and 11 of RFC 00/16)",
    unit: "times",
    range: Range::Int(0, 1024),
    default: Default::Unset,
    home: Home::Patched(Some("kernel.sched_qos_default_rampup_multiplier"), Neutral::None),
});

pub(crate) const UTIL_EST_OFF_AT_0: Int = Int::new(Param {
    name: "util_est_off_at_0",
    doc: "a rampup multiplier of 0 switches a task's util_est off (patch 15 of RFC 00/16)",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Int(0)),
});

pub(crate) const WAITING_AVG: Int = Int::new(Param {
    name: "waiting_avg",
    doc: "waiting time of each task is tracked and traced (patch 12 of RFC 00/16)",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Int(0)),
});

pub(crate) const UTIL_AVG_0_ON_FORK: Int = Int::new(Param {
    name: "util_avg_0_on_fork",
    doc: "a new task starts with util 0, not with up to half a CPU (patch 16 of RFC 00/16)",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Int(0)),
});

pub(crate) const UTIL_EST_FASTER: Int = Int::new(Param {
    name: "util_est_faster",
    doc: "a CPU's util is at least that of twice its task's running time since it woke (UTIL_EST_FASTER, 2022)",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Int(0)),
});

pub(crate) const UTIL_EST_BOOST: Int = Int::new(Param {
    name: "util_est_boost",
    doc: "a task whose util is above its util_est counts for half the difference more (UTIL_EST_BOOST, 2022)",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Int(0)),
});

pub(crate) const RUNNABLE_BOOST: Int = Int::new(Param {
    name: "runnable_boost",
    doc: "frequencies also follow contention, runnable_avg; unset: as mainline, 1 since 6.5",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Int(1)),
});

pub(crate) const EAS_MARGIN: Int = Int::new(Param {
    name: "eas_margin",
    doc: "a wakeup leaves its CPU for the energy only if that saves more than this share of it; unset: as mainline, 0 since 6.0, 64 (a sixteenth) before",
    unit: "of 1024",
    range: Range::Int(0, 1024),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Int(0)),
});

/// Switches of the scheduler; those of schedutil are in [`schedutil`].
const GROUP: Group = Group::of(&[
    FITS_CAPACITY.0,
    MULTIPLIER.0,
    MULTIPLIER_TO.0,
    MULTIPLIER_CHANGE.0,
    UTIL_EST_RUNNING.0,
    UTIL_EST_PERIODIC.0,
    RAMPUP_MULTIPLIER.0,
    UTIL_EST_OFF_AT_0.0,
    WAITING_AVG.0,
    UTIL_AVG_0_ON_FORK.0,
    UTIL_EST_FASTER.0,
    UTIL_EST_BOOST.0,
    RUNNABLE_BOOST.0,
    LATENCY_NICE.0,
    HALF_LIFE.0,
    EAS_MARGIN.0,
])
.titled("Response-time series, and other patches")
.checked(check)
.completed(add_response_times);

/// Whether tasks may have a `latency_nice`.
pub(crate) const LATENCY_NICE: Int = Int::new(Param {
    name: "latency_nice",
    doc: "tasks may say how soon they want the CPU (latency_nice in workloads): V. Guittot's form with CFS, P. Zijlstra's with EEVDF, both of 2023",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Int(0)),
});
const HALF_LIFE: Int = Int::new(Param {
    name: "pelt_half_life",
    doc: "half-life of load tracking, in PELT periods of 1.05 ms: what ran so long ago counts half (Android: pelt=8 and pelt=16; mainline: 32); together with sched_pelt_multiplier, which shortens the periods, both count",
    unit: "periods",
    range: Range::Int(1, MAX_HALF_LIFE as i64),
    default: Default::Unset,
    home: Home::Patched(Some("pelt="), Neutral::Int(32)),
});
const MULTIPLIER: Int = Int::new(Param {
    name: "sched_pelt_multiplier",
    doc: "time runs 1, 2 or 4 times as fast for load tracking: half-lives of 32, 16, 8 ms (patch 7 of RFC 00/16)",
    unit: "times",
    range: Range::Int(1, 4),
    default: Default::Unset,
    home: Home::Patched(Some("kernel.sched_pelt_multiplier"), Neutral::Int(1)),
});
const MULTIPLIER_TO: Int = Int::new(Param {
    name: "sched_pelt_multiplier_to",
    doc: "new value of sched_pelt_multiplier from sched_pelt_multiplier_change_ms on: 1, 2 or 4",
    unit: "times",
    range: Range::Int(1, 4),
    default: Default::Unset,
    home: Home::Simulator(Neutral::None),
});
const MULTIPLIER_CHANGE: Int = Int::new(Param {
    name: "sched_pelt_multiplier_change_ms",
    doc: "time after the workload's start at which sched_pelt_multiplier is written anew",
    unit: "ms",
    range: Range::Int(0, 1_000_000_000),
    default: Default::Unset,
    home: Home::Simulator(Neutral::None),
});

/// Number of speeds of time for PELT, as `lshift`: 1, 2 and 4 times.
const SHIFTS: usize = 3;
/// Mainline's decay, and with each multiplier; statics, so that every machine shares the tables.
static DECAYS: [Decay; SHIFTS] = [faster(32, 1), faster(32, 2), faster(32, 4)];
/// Decays of other half-lives, made when they are first asked for.
static OTHERS: [[[OnceLock<Box<Decay>>; FORMS]; SHIFTS]; MAX_HALF_LIFE as usize] =
    [const { [const { [const { OnceLock::new() }; FORMS] }; SHIFTS] }; MAX_HALF_LIFE as usize];
/// Number of forms, with and without what [`before`] knows of.
const FORMS: usize = 4;

const fn faster(half_life: u32, multiplier: u32) -> Decay {
    let Some(decay) = Decay::new(half_life) else { panic!("out of range") };
    let Some(decay) = decay.with_multiplier(multiplier) else { panic!("not in the series") };
    decay
}

/// The decay that these settings mean under `rev`. With half-lives of hundreds of periods a `util_sum` of 32 bits, as the
/// kernel's is, holds few full tasks (5 with 512): more that come to one CPU at once wrap it.
pub(crate) fn decay(rev: KernelRev, settings: &Settings) -> &'static Decay {
    decay_with(rev, settings, settings.get(&MULTIPLIER))
}

/// The time at which the multiplier is written anew, and the decay from then on. Signals go on from
/// where they are, as their units do not change.
///
/// DEVIATES(pelt-multiplier-written): who sleeps while it is written fades by the new multiplier from the beginning of its sleep on, where the patch
/// multiplies the clock; margins and response times that are reckoned from the multiplier stay as they were.
fn decay_change(rev: KernelRev, settings: &Settings) -> Option<(Span, &'static Decay)> {
    let at = settings.get(&MULTIPLIER_CHANGE)?;
    let to = settings.get(&MULTIPLIER_TO)?;
    Some((Span::from_ms(at.max(0) as u64), decay_with(rev, settings, Some(to))))
}

/// Errors: multipliers that there are not, and one half of a change.
fn check(_: &Platform, policy: &Policy, settings: &Settings) -> Result<(), InputError> {
    for name in [MULTIPLIER, MULTIPLIER_TO] {
        if settings.get(&name) == Some(3) {
            let what = format!("`{name}` is 3, wanted 1, 2 or 4");
            return Err(InputError::new(policy.place_of(name.name), what));
        }
    }
    let [to, at] = [MULTIPLIER_TO, MULTIPLIER_CHANGE].map(|of| settings.is_set(&of));
    if to != at {
        let (there, missing) = if to {
            (MULTIPLIER_TO, MULTIPLIER_CHANGE)
        } else {
            (MULTIPLIER_CHANGE, MULTIPLIER_TO)
        };
        let what = format!("`{there}` without `{missing}`");
        return Err(InputError::new(policy.place_of(there.name), what));
    }
    Ok(())
}

fn decay_with(rev: KernelRev, settings: &Settings, multiplier: Option<i64>) -> &'static Decay {
    let shift = match multiplier {
        Some(2) => 1,
        Some(4) => 2,
        _ => 0,
    };
    let (lost, whole) = before::of_decay(rev, settings);
    let form = usize::from(lost) + 2 * usize::from(whole);
    let half_life = settings.get(&HALF_LIFE).unwrap_or(32).clamp(1, MAX_HALF_LIFE.into()) as u32;
    if (half_life, form) == (32, 0) {
        return &DECAYS[shift];
    }
    let other = || Box::new(faster(half_life, 1 << shift).before(lost, whole));
    OTHERS[half_life as usize - 1][shift][form].get_or_init(other)
}

/// Whether settings that `sched_pixel` has under the same names are schedutil's.
fn of_schedutil(settings: &Settings) -> bool {
    !tunables::in_force(settings)
}

/// The switches that settings ask for.
pub(crate) fn of_settings(rev: KernelRev, settings: &Settings) -> Series {
    let on = |of: &Int| settings.get(of) == Some(1);
    Series {
        room: room(settings),
        util_est_running: on(&UTIL_EST_RUNNING),
        util_est_periodic: on(&UTIL_EST_PERIODIC),
        rampup_multiplier: settings.get(&RAMPUP_MULTIPLIER).map(|m| m.max(0) as u32),
        util_est_off_at_0: on(&UTIL_EST_OFF_AT_0),
        waiting_avg: on(&WAITING_AVG),
        waiting_headroom: on(&schedutil::WAITING_HEADROOM),
        no_decaying_headroom: on(&schedutil::NO_DECAYING_HEADROOM),
        util_avg_0_on_fork: on(&UTIL_AVG_0_ON_FORK),
        util_est_faster: on(&UTIL_EST_FASTER),
        util_est_boost: on(&UTIL_EST_BOOST),
        runnable_boost: settings
            .get(&RUNNABLE_BOOST)
            .map_or(rev.has(features::RUNNABLE_BOOST), |boost| boost != 0),
        latency_nice: on(&LATENCY_NICE),
        decay_later: decay_change(rev, settings).map(|(_, decay)| decay),
        eas_margin: settings.get(&EAS_MARGIN).map_or(feec_margin(rev), |m| m.max(0) as u64),
    }
}

fn room(settings: &Settings) -> Room {
    match settings.get(&schedutil::DVFS_HEADROOM).filter(|_| of_schedutil(settings)) {
        Some(Value::Int(percent)) => Room::Percent((*percent).max(0) as u64),
        Some(Value::Name(name)) if name == "update_delay" => Room::UpdateDelay,
        _ => Room::Mainline,
    }
}

/// The margin that has a name.
fn margin(settings: &Settings) -> Margin {
    match settings.get(&FITS_CAPACITY) {
        Some(Value::Name(name)) if name == "threshold" => Margin::Threshold,
        Some(Value::Name(name)) if name == "threshold-tick" => Margin::ThresholdTick,
        Some(Value::Name(name)) if name == "rfc" => Margin::Rfc,
        _ => Margin::Fifth,
    }
}

/// The switches of a CPU of this domain.
pub(crate) fn of_cpu(
    rev: KernelRev,
    platform: &Platform,
    domain: &Domain,
    settings: &Settings,
) -> CpuSeries {
    let decay = decay(rev, settings);
    let default_ms = schedutil::response_time_ms(decay, domain);
    let ms = settings.of_policy(&RESPONSE_TIME_MS, domain.cpus[0]);
    let ms = ms.filter(|_| of_schedutil(settings));
    let tick_us = tick_usec(platform.hz);
    let threshold = || fits_capacity_threshold(decay, margin(settings), domain.capacity, tick_us);
    CpuSeries {
        limit: match settings.get(&FITS_CAPACITY) {
            Some(Value::Int(percent)) => Some(Limit::Percent((*percent).max(0) as u64)),
            _ => threshold().map(Limit::Threshold),
        },
        dvfs_update_delay_us: schedutil::rate_limit_in_force(settings, domain),
        response_time_mult: ms.map(|ms| response_time_mult(default_ms, ms.max(0) as u64)),
        last_update_util: Util(0),
    }
}

/// Fills in what each policy's response time is, if there is the tunable at all: as said (0: its
/// default) for that policy, else for all.
///
/// Each policy has a tunable of its own here. With a driver that keeps one for all (cpufreq-dt) the
/// series leaves the others' factor at 0, so that they stay at their lowest frequency.
fn add_response_times(platform: &Platform, policy: &Policy, settings: &mut Settings) {
    let all = settings.get(&RESPONSE_TIME_MS);
    if !settings.is_set_anywhere(&RESPONSE_TIME_MS) || !of_schedutil(settings) {
        return;
    }
    let decay = decay(policy.kernel, settings);
    let default = |d: &Domain| schedutil::response_time_ms(decay, d) as i64;
    let or_default = |ms: Option<i64>, d: &Domain| ms.filter(|ms| *ms != 0).unwrap_or(default(d));
    let of_all = or_default(all, &platform.domains[0]);
    for d in &platform.domains {
        let ms = or_default(settings.of_policy(&RESPONSE_TIME_MS, d.cpus[0]), d);
        settings.unset_own(&RESPONSE_TIME_MS, d.cpus[0]);
        if ms != of_all {
            settings.set_own(&RESPONSE_TIME_MS, d.cpus[0], ms);
        }
    }
    settings.set(&RESPONSE_TIME_MS, of_all);
}

/// The notes for the reader on the switches of this run.
pub(crate) fn notes(e: &Experiment) -> Vec<String> {
    let (decay, margin) = (decay(e.policy.kernel, &e.settings), margin(&e.settings));
    let wraps = |d: &&Domain| margin_wraps(decay, margin, d.capacity, tick_usec(e.platform.hz));
    let note = |d: &Domain| {
        format!(
            "capacity {} (CPU{}): a tick at HZ={} is longer than such a CPU takes to fill, so the series' margin wraps, as posted, and everything fits there",
            d.capacity, d.cpus[0].0, e.platform.hz
        )
    };
    let mut notes: Vec<String> = e.platform.domains.iter().filter(wraps).map(note).collect();
    let by_cpu =
        e.settings.get(&FITS_CAPACITY).is_some_and(|v| matches!(v, Value::Name(n) if n == "rfc"));
    if by_cpu && e.policy.kernel.has(features::SCHED_CACHE) {
        notes.push(
            "fits_capacity=rfc on a kernel with SCHED_CACHE: `invalid_llc_nr` compares threads with a number of CPUs, where a margin by CPU has no meaning (as reposted it would take that number for a CPU's); it keeps mainline's here"
                .into(),
        );
    }
    let hints = |t: &&TaskSpec| {
        !t.attr.qos.is_empty() || t.phases.iter().any(|phase| !phase.attr.qos.is_empty())
    };
    if e.settings.get(&RAMPUP_MULTIPLIER).is_none()
        && let Some(task) = e.workload.tasks.iter().find(hints)
    {
        notes.push(format!(
            "without effect: `sched_qos` of task `{}`: this policy has no sched-qos (rampup_multiplier=1 adds it)",
            task.comm
        ));
    }
    let hurries = |t: &&TaskSpec| {
        let phases = t.phases.iter().map(|phase| &phase.attr);
        std::iter::once(&t.attr).chain(phases).any(|attr| attr.latency_nice.is_some())
    };
    if e.settings.get(&LATENCY_NICE) != Some(1)
        && let Some(task) = e.workload.tasks.iter().find(hurries)
    {
        notes.push(format!(
            "without effect: `latency_nice` of task `{}`: this policy's kernel does not know it (latency_nice=1 adds it)",
            task.comm
        ));
    }
    notes
}
