//! What the sampling governors share: when they look, and what they see.
//!
//! ```text
//! cpufreq_update_util ── sampling_rate · rate_mult since the last sample? ── worker of that CPU ── dbs_update ── driver
//!                        no: nothing; nor while one is on its way
//! ```
//!
//! No timer: the scheduler's updates of util are what a sample follows, at a tick or a wakeup mostly, so that an idle
//! CPU is not looked at. The worker is a fair task like any other and waits for its turn. Before 4.7 a deferrable timer
//! did it. Source: drivers/cpufreq/cpufreq_governor.c:dbs_update_util_handler, dbs_work_handler.
//!
//! `DEVIATES(dbs-worker)`: the worker is that of the CPU whose util has changed; in the kernel it is that of the CPU that
//! changed it, which is another one where a task wakes one elsewhere within a policy of several CPUs. It is awake at once,
//! where the kernel needs some µs: at a tick, when all CPUs look for work, an idle one pulls whom the worker has
//! preempted. `periodic` on `rpi4` under `ondemand`: 8.7 moves a second and 1047 MHz in the mean, on 7.3.4 0.8 and 848.
//!
//! `DEVIATES(dbs-iowait)`: no task waits for a device here, so that `io_is_busy` changes nothing.

use crate::kernel::governor::{DomainView, FreqRequest, schedutil};
use crate::state::effects::Effects;
use risetime_kernel::KernelRev;
use risetime_kernel::dbs::{AfterIdle, CpuDbs, CpuTimes, Sample, Sampling};
use risetime_kernel::units::{CpuId, Instant, KHz, Span, Util};
use risetime_model::Platform;
use risetime_model::settings::{Default, Home, Neutral, Param, Range, Settings};
use risetime_trace::Why;

/// `sampling_rate` of the governor `of`.
pub(super) const fn sampling_rate(home: &'static str) -> Param {
    Param {
        name: "sampling_rate",
        doc: "shortest time between two samples",
        unit: "µs",
        range: Range::Int(1, 1_000_000_000),
        default: Default::Derived(
            "two ticks, or the transition delay if that is longer (rate_limit_us)",
        ),
        home: Home::Tunable(home),
    }
}

/// `ignore_nice_load`.
pub(super) const fn ignore_nice_load(home: &'static str) -> Param {
    Param {
        name: "ignore_nice_load",
        doc: "count the time of tasks with a nice value above 0 as idle",
        unit: "",
        range: Range::Int(0, 1),
        default: Default::Int(0),
        home: Home::Tunable(home),
    }
}

/// What a sample that a sleep put off is worth.
pub(super) const AFTER_IDLE: Param = Param {
    name: "load_after_idle",
    doc: "load of a sample that a sleep put off: copy = the one before, once (copy_prev_load, since 3.16); computed = what it comes to (before that); full = 100 %",
    unit: "",
    range: Range::OneOf(&["copy", "computed", "full"]),
    default: Default::Name("copy"),
    home: Home::Patched(None, Neutral::Name("copy")),
};

/// The default `sampling_rate`, in µs. Source: cpufreq_governor.c:cpufreq_dbs_governor_init.
pub(crate) fn default_rate(kernel: KernelRev, platform: &Platform) -> Option<i64> {
    let tick_us = 1_000_000 / u64::from(platform.hz);
    let delay = schedutil::rate_limit_us(kernel, platform.domains.first()?);
    Some(delay.max(2 * tick_us as i64))
}

/// A number that the settings hold.
pub(super) fn number(settings: &Settings, name: &str) -> u32 {
    settings.int(name).and_then(|v| u32::try_from(v).ok()).unwrap_or(0)
}

/// `struct policy_dbs_info`.
pub(super) struct PolicyDbs {
    /// By place in the policy.
    cpus: Vec<CpuDbs>,
    pub(super) sampling_rate: u32,
    ignore_nice: bool,
    after_idle: AfterIdle,
    /// `rate_mult`.
    pub(super) rate_mult: u32,
    last_sample: Option<Instant>,
    sample_delay: Span,
    work_in_progress: bool,
}

impl PolicyDbs {
    pub(super) fn new(platform: &Platform, domain: usize, settings: &Settings) -> PolicyDbs {
        let sampling_rate = number(settings, "sampling_rate").max(1);
        PolicyDbs {
            cpus: vec![CpuDbs::default(); platform.domains[domain].cpus.len()],
            sampling_rate,
            ignore_nice: settings.int("ignore_nice_load") == Some(1),
            after_idle: match settings.name("load_after_idle") {
                Some("computed") => AfterIdle::Computed,
                Some("full") => AfterIdle::Full,
                _ => AfterIdle::CopyPrevLoad,
            },
            rate_mult: 1,
            last_sample: None,
            sample_delay: Span::from_us(sampling_rate.into()),
            work_in_progress: false,
        }
    }

    /// `cpufreq_dbs_governor_start`.
    pub(super) fn start(&mut self, domain: &DomainView<'_>) {
        for &cpu in domain.cpus() {
            self.cpus[domain.place_in_policy(cpu)] = CpuDbs::start(times(domain, cpu));
        }
    }

    /// `dbs_update_util_handler`: has the worker of `cpu` take a sample if it is time.
    pub(super) fn update_util(
        &mut self,
        domain: &DomainView<'_>,
        cpu: CpuId,
        effects: &mut Effects,
    ) {
        let now = domain.now();
        let early = self.last_sample.is_some_and(|at| now.since(at) < self.sample_delay);
        if self.work_in_progress || early {
            return;
        }
        (self.last_sample, self.work_in_progress) = (Some(now), true);
        effects.defer_work_to(cpu);
    }

    /// `dbs_update`.
    pub(super) fn sample(&mut self, domain: &DomainView<'_>) -> Sample {
        let by = Sampling {
            sampling_rate: self.sampling_rate.wrapping_mul(self.rate_mult),
            ignore_nice: self.ignore_nice,
            after_idle: self.after_idle,
        };
        domain.cpus().iter().fold(Sample::NONE, |all, &cpu| {
            let own = &mut self.cpus[domain.place_in_policy(cpu)];
            let sample = own.dbs_update(times(domain, cpu), &by);
            // What `explain` has the CPU want in place of it.
            let own = Util(u64::from(sample.load) * domain.capacity().0 / 100);
            let more = domain.wanted(cpu, own) > own;
            all.and(if more { Sample { load: 100, ..sample } } else { sample })
        })
    }

    /// The sample is taken; the next one comes `delay_us` after it at the earliest.
    pub(super) fn done(&mut self, delay_us: u32) {
        (self.sample_delay, self.work_in_progress) = (Span::from_us(delay_us.into()), false);
    }
}

/// What a policy asks for at a load.
pub(super) fn request(domain: &DomainView<'_>, load: u32, freq: KHz) -> FreqRequest {
    let why = if freq == domain.cur() { Why::Unchanged } else { Why::Util };
    FreqRequest { util: of_1024(load), freq, why }
}

/// A load in percent, of 1024, rounded down.
fn of_1024(load: u32) -> Util {
    Util(u64::from(load) * 1024 / 100)
}

fn times(domain: &DomainView<'_>, cpu: CpuId) -> CpuTimes {
    CpuTimes {
        wall_us: domain.now().0 / 1000,
        idle_us: domain.idle_time(cpu).0 / 1000,
        nice: domain.nice_time(cpu),
    }
}
