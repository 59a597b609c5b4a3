//! The switches of the response-time series (RFC 00/16 "Better manage system response time",
//! August 2024) and of its neighbours: which are on, and what a CPU keeps for them.
//!
//! ```text
//! patch  setting                            arithmetic                what it changes
//! 4      fits_capacity=rfc                  approximate.rs            Machine::util_fits
//! 5      dvfs_headroom=update_delay         headroom.rs               Machine::dvfs_util
//! 6      response_time_ms                   response_time.rs          Machine::dvfs_util
//! 7      sched_pelt_multiplier              pelt.rs, approximate.rs   every signal
//! ```
//!
//! Patches 2 and 3 are the functions in `approximate.rs`; patch 1 only renames. Each setting acts
//! alone; without any of them nothing here does anything, and the results are mainline's.

use crate::governor::schedutil;
use crate::machine::Machine;
use risetime_kernel::approximate::{Margin, fits_capacity_threshold, margin_wraps, tick_usec};
use risetime_kernel::headroom::{Decided, Headroom, dvfs_delay_us};
use risetime_kernel::pelt::Decay;
use risetime_kernel::response_time::{response_time_mult, sugov_apply_response_time};
use risetime_kernel::units::{CpuId, Util};
use risetime_model::platform::Domain;
use risetime_model::settings::{Default, Param, Range, Settings, Value};
use risetime_model::{Experiment, Platform};

/// Switches of the scheduler; those of schedutil are in [`schedutil`].
pub(crate) const PARAMS: &[Param] = &[
    Param {
        name: "fits_capacity",
        doc: "the margin before a task counts as misfit: mainline = 80 %, the others by capacity and tick (rfc: patch 4 of RFC 00/16; threshold, threshold-tick: its earlier posting)",
        unit: "",
        range: Range::OneOf(&["mainline", "threshold", "threshold-tick", "rfc"]),
        default: Default::Unset,
        kernel_name: "",
    },
    Param {
        name: "sched_pelt_multiplier",
        doc: "time runs 1, 2 or 4 times as fast for load tracking: half-lives of 32, 16, 8 ms (patch 7 of RFC 00/16)",
        unit: "times",
        range: Range::Int(1, 4),
        default: Default::Unset,
        kernel_name: "kernel.sched_pelt_multiplier",
    },
];

/// `response_time_ms`, if the policy has it: of all policies but those with their own.
pub(crate) const RESPONSE_TIME: &str = "response_time_ms";

/// PELT's decay by multiplier; statics, so that every machine shares the tables.
static DECAYS: [Decay; 3] = [faster(1), faster(2), faster(4)];

const fn faster(multiplier: u32) -> Decay {
    match Decay::MS32.with_multiplier(multiplier) {
        Some(decay) => decay,
        None => panic!("a multiplier of the series"),
    }
}

/// The decay that these settings mean.
pub(crate) fn decay(settings: &Settings) -> &'static Decay {
    let multiplier = settings.int("sched_pelt_multiplier");
    &DECAYS[match multiplier {
        Some(2) => 1,
        Some(4) => 2,
        _ => 0,
    }]
}

/// Which switches are on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Series {
    /// Headroom until the next change of frequency, not a quarter.
    pub(crate) headroom_by_delay: bool,
}

/// What a CPU keeps for them.
#[derive(Clone, Debug)]
pub(crate) struct CpuSeries {
    /// `rq->fits_capacity_threshold`; `None`: mainline's margin.
    threshold: Option<Util>,
    /// The per-CPU `dvfs_update_delay`, in µs.
    dvfs_update_delay_us: u64,
    /// The per-CPU `response_time_mult`; `None`: no such tunable.
    response_time_mult: Option<u64>,
}

impl Series {
    pub(crate) fn of(settings: &Settings) -> Series {
        Series { headroom_by_delay: settings.name("dvfs_headroom") == Some("update_delay") }
    }
}

fn margin(settings: &Settings) -> Margin {
    match settings.name("fits_capacity") {
        Some("threshold") => Margin::Threshold,
        Some("threshold-tick") => Margin::ThresholdTick,
        Some("rfc") => Margin::Rfc,
        _ => Margin::Fifth,
    }
}

impl CpuSeries {
    /// Of a CPU of this domain.
    pub(crate) fn of(platform: &Platform, domain: &Domain, settings: &Settings) -> CpuSeries {
        let decay = decay(settings);
        let default_ms = schedutil::response_time_ms(decay, domain);
        let own = format!("{RESPONSE_TIME}.policy{}", domain.cpus[0].0);
        let ms = settings.int(&own).or(settings.int(RESPONSE_TIME));
        CpuSeries {
            threshold: fits_capacity_threshold(
                decay,
                margin(settings),
                domain.capacity,
                tick_usec(platform.hz),
            ),
            dvfs_update_delay_us: schedutil::rate_limit_in_force(settings, domain),
            response_time_mult: ms.map(|ms| response_time_mult(default_ms, ms.max(0) as u64)),
        }
    }
}

/// Fills in what each policy's response time is, if there is the tunable at all: as said (0: its
/// default) for that policy, else for all.
///
/// Each policy has a tunable of its own here. With a driver that keeps one for all (cpufreq-dt) the
/// series leaves the others' factor at 0, so that they stay at their lowest frequency.
pub(crate) fn add_response_times(platform: &Platform, settings: &mut Settings) {
    let own = |d: &Domain| format!("{RESPONSE_TIME}.policy{}", d.cpus[0].0);
    let said = |name: &str| settings.int(name);
    let all = said(RESPONSE_TIME);
    if all.is_none() && !platform.domains.iter().any(|d| said(&own(d)).is_some()) {
        return;
    }
    let decay = decay(settings);
    let default = |d: &Domain| schedutil::response_time_ms(decay, d) as i64;
    let or_default = |ms: Option<i64>, d: &Domain| ms.filter(|ms| *ms != 0).unwrap_or(default(d));
    let of_all = or_default(all, &platform.domains[0]);
    let each: Vec<(String, i64)> =
        platform.domains.iter().map(|d| (own(d), or_default(said(&own(d)).or(all), d))).collect();
    for (name, ms) in each {
        settings.0.remove(&name);
        if ms != of_all {
            settings.0.insert(name, Value::Int(ms));
        }
    }
    settings.0.insert(RESPONSE_TIME.to_string(), Value::Int(of_all));
}

/// What a reader of the result should know about the switches of this run.
pub(crate) fn notes(e: &Experiment) -> Vec<String> {
    let (decay, margin) = (decay(&e.settings), margin(&e.settings));
    let wraps = |d: &&Domain| margin_wraps(decay, margin, d.capacity, tick_usec(e.platform.hz));
    let note = |d: &Domain| {
        format!(
            "capacity {} (CPU{}): a tick at HZ={} is longer than such a CPU takes to fill, so the series' margin wraps, as posted, and everything fits there",
            d.capacity, d.cpus[0].0, e.platform.hz
        )
    };
    e.platform.domains.iter().filter(wraps).map(note).collect()
}

impl Machine {
    /// Whether `util` fits on `cpu` by the margin in force; `None`: by mainline's.
    pub(crate) fn fits_threshold(&self, util: Util, cpu: CpuId) -> Option<bool> {
        self.cpu(cpu).series.threshold.map(|threshold| util < threshold)
    }

    /// What `cpu` should be able to do for `util`: response time and headroom applied, the clamps
    /// not yet (the first half of `sugov_effective_cpu_perf`).
    pub(crate) fn dvfs_util(&self, cpu: CpuId, util: Util) -> (Util, Decided) {
        let c = self.cpu(cpu);
        let util = match c.series.response_time_mult {
            Some(mult) => sugov_apply_response_time(util, mult),
            None => util,
        };
        self.headroom(cpu).sugov_apply_dvfs_headroom(util)
    }

    fn headroom(&self, cpu: CpuId) -> Headroom<'_> {
        let c = self.cpu(cpu);
        let delay = || {
            // Whoever else is current, idle or a kthread, carries the slice of its creation.
            let slice = c.cfs.curr().map_or(self.base_slice.0, |curr| curr.slice);
            let tick = tick_usec(self.platform.hz);
            dvfs_delay_us(c.cfs.nr_runnable(), slice, tick, c.series.dvfs_update_delay_us)
        };
        Headroom {
            decay: self.decay,
            delay_us: self.series.headroom_by_delay.then(delay),
            waiting_avg: None,
            last_update_util: None,
        }
    }
}
