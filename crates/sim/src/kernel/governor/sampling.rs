//! Parts that the sampling governors share: when they look, and what they see.
//!
//! ```text
//! cpufreq_update_util ── sampling_rate · rate_mult since the last sample? ── worker of that CPU ── dbs_update ── driver
//!                        no: nothing; nor while one is on its way
//! ```
//!
//! No timer: the scheduler's updates of util are what a sample follows, at a tick or a wakeup mostly, so that an idle
//! CPU is not looked at. The worker is a fair task like any other and waits for its turn.
//!
//! Up to 4.5 (`sampling=timer`) each CPU has a timer: in jiffies, run by its tick, and deferrable, so that it wakes no idle
//! CPU. What is due meanwhile is done by the first tick after the sleep, and then all CPUs of the policy have their
//! timers set anew. One that finds the policy looked at half a period ago or less leaves it at that.
//! Source: drivers/cpufreq/cpufreq_governor.c:dbs_update_util_handler, dbs_work_handler; of 3.15 gov_queue_work,
//! need_load_eval, cpufreq_ondemand.c:od_dbs_timer.
//!
//! `DEVIATES(dbs-worker)`: the worker is that of the CPU whose util has changed; in the kernel it is that of the CPU that
//! changed it, which is another one where a task wakes one elsewhere within a policy of several CPUs. It is awake when all
//! CPUs' ticks of the moment are done, or after `irq_exit_ns`; but whom it preempts is still pulled by idle CPUs
//! more often than in the kernel. `periodic` on `rpi4` with `--noise vm` (3 start phases, 2 s), moves a second and MHz in the
//! mean: `ondemand` 8.3 and 881, on 7.3.4 0.3 and 863; 5.7 and 1011, on 6.12 1.0 and 990; `conservative` 8.5 and 843, on
//! 7.3.4 0 and 872.
//!
//! `DEVIATES(dbs-iowait)`: no task waits for a device here, so that `io_is_busy` changes nothing.

use crate::kernel::governor::{DomainView, FreqRequest, schedutil};
use crate::state::effects::Effects;
use risetime_kernel::dbs::{
    AfterIdle, CpuDbs, CpuTimes, Sample, Sampling, delay_for_sampling_rate,
};
use risetime_kernel::features;
use risetime_kernel::units::{CpuId, Instant, KHz, Span, Util};
use risetime_model::settings::{
    Default, Home, Int, Key, Name, Neutral, Param, Range, Setting, Settings, Value,
};
use risetime_model::{InputError, Platform, Policy};
use risetime_trace::Why;

/// The shortest time between two samples, of every governor that samples.
const SAMPLING_RATE: Key<Int> = Key::new("sampling_rate");
const IGNORE_NICE_LOAD: Key<Int> = Key::new("ignore_nice_load");
/// The highest number that a governor's file is read as (`%u`).
pub(super) const UINT_MAX: i64 = u32::MAX as i64;

/// `sampling_rate` of a governor, with its default ([`default_rate`]).
pub(super) const fn sampling_rate(
    home: &'static str,
    default: fn(&Platform, &Policy) -> Option<Value>,
) -> Int {
    Int::new(Param {
        name: SAMPLING_RATE.name(),
        doc: "shortest time between two samples; less than two ticks is refused, up to 4.13 less than 20 transition latencies, 10 ms (ondemand) or 20 ticks is as much",
        unit: "µs",
        range: Range::Int(1, UINT_MAX),
        default: Default::Derived(
            "two ticks, or the transition delay if that is longer (rate_limit_us); up to 4.13 1000 times the transition latency, at least 10 ms (ondemand) or 20 ticks",
            default,
        ),
        home: Home::Tunable(home),
    })
}

/// `ignore_nice_load`.
pub(super) const fn ignore_nice_load(home: &'static str) -> Int {
    Int::new(Param {
        name: IGNORE_NICE_LOAD.name(),
        doc: "count the time of tasks with a nice value above 0 as idle; more than 1 is 1",
        unit: "",
        range: Range::Int(0, UINT_MAX),
        default: Default::Int(0),
        home: Home::Tunable(home),
    })
}

/// Setting of the load of a sample that a sleep put off.
pub(crate) const AFTER_IDLE: Name = Name::new(Param {
    name: "load_after_idle",
    doc: "load of a sample that a sleep put off: copy = the one before, once (copy_prev_load, since 3.16); computed = what it comes to (before that); full = 100 %",
    unit: "",
    range: Range::OneOf(&["copy", "computed", "full"]),
    // Copied since commit 18b46abd0009.
    default: Default::Derived("copy, up to 3.15 computed", |_, policy| {
        let copied = policy.kernel.has(features::DBS_COPY_LOAD);
        Some(if copied { "copy" } else { "computed" }.into())
    }),
    home: Home::Patched(None, Neutral::Name("copy")),
});

/// The setting of what makes a governor look.
pub(crate) const SAMPLING: Name = Name::new(Param {
    name: "sampling",
    doc: "trigger of the governor's looks: scheduler = updates of util; timer = a deferrable timer of each CPU",
    unit: "",
    range: Range::OneOf(&["scheduler", "timer"]),
    // The scheduler's updates since commit 9be4fd2c7723.
    default: Default::Derived("scheduler, up to 4.5 timer", |_, policy| {
        let hooked = policy.kernel.has(features::DBS_UTIL_HOOK);
        Some(if hooked { "scheduler" } else { "timer" }.into())
    }),
    home: Home::Patched(None, Neutral::Name("scheduler")),
});

/// The default `sampling_rate`, in µs. Source: cpufreq_governor.c:cpufreq_dbs_governor_init; up to 4.13
/// [`least_rate`], and LATENCY_MULTIPLIER.
pub(super) fn default_rate(
    platform: &Platform,
    policy: &Policy,
    least: fn(i64) -> i64,
) -> Option<Value> {
    let delay = schedutil::rate_limit_us(policy.kernel, platform.domains.first()?);
    Some(Value::Int(delay.max(least_rate(platform, policy, least))))
}

/// The least `sampling_rate` that the kernel samples at, in µs: two ticks
/// (`CPUFREQ_DBS_MIN_SAMPLING_INTERVAL`); up to 4.13 `min_sampling_rate`, which is `least` for a tick
/// of so many µs, or MIN_LATENCY_MULTIPLIER times the latency. Rounding: down.
fn least_rate(platform: &Platform, policy: &Policy, least: fn(i64) -> i64) -> i64 {
    let hz = i64::from(platform.hz.max(1));
    if policy.kernel.has(features::DBS_SAMPLING_RATE) {
        return 2 * ((1_000_000_000 + hz / 2) / hz) / 1000;
    }
    let latency = platform.domains.first().map_or(0, |d| d.transition_latency().0 / 1000).max(1);
    least(1_000_000 / hz).max(i64::try_from(latency).map_or(UINT_MAX, |us| us.saturating_mul(20)))
}

/// Errors: a `sampling_rate` for which the kernel's file says EINVAL, since 4.14 one below
/// [`least_rate`]. Source: cpufreq_governor.c:sampling_rate_store.
pub(super) fn check_rate(
    platform: &Platform,
    policy: &Policy,
    settings: &Settings,
) -> Result<(), InputError> {
    if !policy.kernel.has(features::DBS_SAMPLING_RATE) {
        return Ok(());
    }
    let (least, rate) = (least_rate(platform, policy, |_| 0), settings.get(&SAMPLING_RATE));
    let Some(rate) = rate.filter(|us| *us < least) else { return Ok(()) };
    let what = format!(
        "`{SAMPLING_RATE}` is {rate} µs, less than two ticks, {least} µs ({} Hz): kernels refuse it ({})",
        platform.hz,
        features::DBS_SAMPLING_RATE
    );
    Err(InputError::new(policy.place_of(SAMPLING_RATE.name()), what)
        .hint(format!("the least is {SAMPLING_RATE}={least}")))
}

/// Makes of what the files were told what they hold: up to 4.13 a `sampling_rate` below
/// [`least_rate`] is raised to it, and of `most`, the files that take every number, those above the
/// most that they hold are that. Source: cpufreq_ondemand.c:ignore_nice_load_store, io_is_busy_store,
/// powersave_bias_store, cpufreq_conservative.c:freq_step_store.
pub(super) fn round(
    platform: &Platform,
    policy: &Policy,
    settings: &mut Settings,
    least: fn(i64) -> i64,
    most: &[(Int, i64)],
) {
    if let Some(rate) = settings.get(&SAMPLING_RATE) {
        settings.set(&SAMPLING_RATE, rate.max(least_rate(platform, policy, least)));
    }
    if settings.get(&IGNORE_NICE_LOAD).is_some_and(|value| value > 1) {
        settings.set(&IGNORE_NICE_LOAD, 1);
    }
    for (of, most) in most {
        if settings.get(of).is_some_and(|value| value > *most) {
            settings.set(of, *most);
        }
    }
}

/// A number that the settings hold.
pub(super) fn number<S>(settings: &Settings, of: &S) -> u32
where
    S: for<'a> Setting<Read<'a> = i64>,
{
    settings.get(of).and_then(|v| u32::try_from(v).ok()).unwrap_or(0)
}

/// `struct policy_dbs_info`.
pub(super) struct PolicyDbs {
    /// Samples by place in the policy.
    cpus: Vec<CpuDbs>,
    pub(super) sampling_rate: u32,
    ignore_nice: bool,
    after_idle: AfterIdle,
    /// `rate_mult`.
    pub(super) rate_mult: u32,
    last_sample: Option<Instant>,
    sample_delay: Span,
    work_in_progress: bool,
    /// Jiffy in which each CPU's timer expires, where timers make the governor look.
    timers: Option<Vec<u64>>,
    /// `explain` has had a CPU want the highest frequency at the last sample, whatever its load.
    pub(super) wants_all: bool,
    hz: u32,
}

impl PolicyDbs {
    pub(super) fn new(platform: &Platform, domain: usize, settings: &Settings) -> PolicyDbs {
        let sampling_rate = number(settings, &SAMPLING_RATE).max(1);
        PolicyDbs {
            cpus: vec![CpuDbs::default(); platform.domains[domain].cpus.len()],
            sampling_rate,
            ignore_nice: settings.get(&IGNORE_NICE_LOAD) == Some(1),
            after_idle: match settings.get(&AFTER_IDLE) {
                Some("computed") => AfterIdle::Computed,
                Some("full") => AfterIdle::Full,
                _ => AfterIdle::CopyPrevLoad,
            },
            rate_mult: 1,
            last_sample: None,
            sample_delay: Span::from_us(sampling_rate.into()),
            work_in_progress: false,
            timers: (settings.get(&SAMPLING) == Some("timer"))
                .then(|| vec![0; platform.domains[domain].cpus.len()]),
            wants_all: false,
            hz: platform.hz,
        }
    }

    /// Whether it needs to hear of ticks.
    pub(super) fn attends(&self) -> bool {
        self.timers.is_some()
    }

    /// `gov_queue_work`, of all CPUs.
    fn set_timers(&mut self, domain: &DomainView<'_>, delay_us: u32) {
        let now = domain.jiffies();
        // What `powersave_bias` leaves of a period is not brought in line.
        let whole = delay_us == self.sampling_rate.wrapping_mul(self.rate_mult);
        let together = Some(now).filter(|_| domain.several_cpus() && whole);
        let expires = now + delay_for_sampling_rate(delay_us, self.hz, together);
        if let Some(timers) = &mut self.timers {
            timers.fill(expires);
        }
    }

    /// A tick of `cpu`: has its worker take a sample if its timer is due.
    pub(super) fn tick(&mut self, domain: &DomainView<'_>, cpu: CpuId, effects: &mut Effects) {
        let place = domain.place_in_policy(cpu);
        let due = self.timers.as_ref().is_some_and(|timers| timers[place] <= domain.jiffies());
        if !domain.rate_limit_passed(due) || self.work_in_progress {
            return;
        }
        let now = domain.now();
        let half = Span::from_us(u64::from(self.sampling_rate / 2));
        let recently = self.last_sample.is_some_and(|at| now.since(at) < half);
        if domain.cpus().len() > 1 && !domain.rate_limit_passed(!recently) {
            let together = domain.several_cpus().then(|| domain.jiffies());
            let delay = delay_for_sampling_rate(self.sampling_rate, self.hz, together);
            if let Some(timers) = &mut self.timers {
                timers[place] = domain.jiffies() + delay;
            }
            return;
        }
        (self.last_sample, self.work_in_progress) = (Some(now), true);
        effects.defer_work_to(cpu);
    }

    /// `cpufreq_dbs_governor_start`.
    pub(super) fn start(&mut self, domain: &DomainView<'_>) {
        for &cpu in domain.cpus() {
            self.cpus[domain.place_in_policy(cpu)] = CpuDbs::start(times(domain, cpu));
        }
        self.set_timers(domain, self.sampling_rate);
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
        let due = !early && self.timers.is_none();
        if self.work_in_progress || !domain.rate_limit_passed(due) {
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
            by_wall: !domain.rev().has(features::DBS_IDLE_PERIODS),
        };
        self.wants_all = false;
        domain.cpus().iter().fold(Sample::NONE, |all, &cpu| {
            let own = &mut self.cpus[domain.place_in_policy(cpu)];
            let sample = own.dbs_update(times(domain, cpu), &by);
            // What `explain` has the CPU want in place of it, whatever its load.
            let wants_all = domain.wanted(cpu, Util(0)) > Util(0);
            self.wants_all |= wants_all;
            all.and(if wants_all { Sample { load: 100, ..sample } } else { sample })
        })
    }

    /// Ends a sample; the next one comes `delay_us` after it at the earliest.
    pub(super) fn done(&mut self, domain: &DomainView<'_>, delay_us: u32) {
        self.set_timers(domain, delay_us);
        (self.sample_delay, self.work_in_progress) = (Span::from_us(delay_us.into()), false);
    }
}

/// The request for `freq` at a load.
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
