//! Pressure: what takes capacity from a CPU from outside the scheduler: interrupts, limits on the
//! frequency, and hardware that slows down by itself.
//!
//! ```text
//!             what happens                                  what the kernel knows of it
//! interrupts  the handler has the CPU, the task waits       clock_task stands still; avg_irq
//! limits      policy->min ≤ every request ≤ policy->max     cpufreq pressure (since 6.10)
//! heat        limits that come and go                       the same; from 5.7 to 6.9 as hardware pressure
//! firmware,   likewise                                      the same since 6.10: see caps.rs
//! budgets
//! hardware    min(asked for, cap), whatever is asked for    hw pressure, averaged in avg_hw
//!
//! actual      = capacity - max(avg_hw, cpufreq pressure)              (before 6.10: - hw pressure)
//! capacity_of = (actual - rt - dl) · (actual - irq) / actual          every tick
//! ```
//!
//! One source is one file and one line in [`SOURCES`].
//!
//! Source: kernel/sched/core.c:sched_tick; pelt.c:update_other_load_avgs; fair.c:get_actual_cpu_capacity,
//! update_cpu_capacity.

pub(crate) mod state;

mod averages;
pub(crate) mod caps;
pub(crate) mod emergency;
pub(crate) mod irq;
pub(crate) mod limits;
pub(crate) mod thermal;

use crate::kernel::Kernel;
use crate::kernel::policy::Policy;
use crate::mech::mechanism::Mechanism;
use crate::mech::pressure::state::{Caps, CpuPressure, DomainPressure, Input, Interface, UNCAPPED};
use crate::mech::slots::Id;
use crate::state::machine::Machine;
use crate::state::machine::{FreqDomain, UPTIME};
use crate::time::queue::{Ev, Planned};
use risetime_kernel::opp::{FreqTableEntry, cpufreq_set_policy};
use risetime_kernel::pelt::SchedAvg;
use risetime_kernel::units::{Capacity, ClockPelt, CpuId, Instant, KHz, Span, Util};
use risetime_model::platform::Domain;
use risetime_model::settings::{Group, Int, Param, Settings};
use risetime_model::{Experiment, InputError, Platform, Policy as ModelPolicy};

impl Mechanism for state::Own {
    fn groups() -> Vec<Group> {
        groups().collect()
    }
    fn of_domain(e: &Experiment, index: usize) -> DomainPressure {
        DomainPressure { caps: caps(e, index), ..DomainPressure::default() }
    }
    fn of_cpu(e: &Experiment, m: &Machine, cpu: CpuId) -> Option<Box<CpuPressure>> {
        cpu_pressure(e, m.cpu(cpu).domain)
    }
    fn bends(m: &Machine) -> bool {
        m.cpus.iter().any(|c| c.slots.pressure.is_some()) || m.domains.iter().any(changes_later)
    }
    /// Puts limits in force, and plans interrupts and caps.
    fn begin(k: &mut Kernel, e: &Experiment) -> Result<bool, InputError> {
        // What user space said before the run has held for long.
        (0..k.m.domains.len()).for_each(|domain| k.policy(domain).has_heard());
        (0..k.m.domains.len()).for_each(|domain| k.policy(domain).tell_cap(Input::User));
        for cpu in (0..k.m.cpus.len() as u32).map(CpuId) {
            k.rq(cpu).update_actual();
            if k.m.domain_of(cpu).slots.pressure.taken != Capacity(0)
                || k.m.cpu(cpu).slots.pressure.is_some()
            {
                k.rq(cpu).update_cpu_capacity();
            }
        }
        let mut changed = false;
        for domain in 0..k.m.domains.len() {
            if k.m.domains[domain].slots.pressure.caps.heard(Interface::Permanent) != UNCAPPED {
                changed |= k.policy(domain).capacity_changes(0);
            }
        }
        for (index, source) in SOURCES.iter().enumerate() {
            for own in policies(&e.platform, &e.settings, start(e)) {
                source.plan(&mut k.policy(own.index), own, index as u8);
            }
        }
        Ok(changed)
    }
    /// Changes what a source takes from the CPUs of a domain.
    fn event(k: &mut Kernel, planned: Planned) -> bool {
        let Planned { kind: source, index, value, .. } = planned;
        let domain = index as usize;
        if source == caps::PERMANENT {
            return k.policy(domain).capacity_changes(value);
        }
        let (now, d) = (k.m.now, &k.m.domains[domain]);
        let watched =
            d.slots.pressure.caps.of(Input::Hardware).plan.is_some_and(|p| p.heat.is_some());
        let zones = k.m.slots.thermal.as_mut().filter(|_| watched);
        let millicelsius = zones.and_then(|t| t.millicelsius(d.related[0], now));
        let told = Told { source, value, millicelsius };
        SOURCES[usize::from(source)].changes(&mut k.policy(domain), told);
        false
    }
}

/// The longest period, and the longest time to a cap.
const LONGEST_US: i64 = 10_000_000;
const MOST_KHZ: i64 = u32::MAX as i64;

/// All of them, in the order in which their settings are listed.
const SOURCES: [&dyn Source; 9] = [
    &irq::Device,
    &limits::Limits,
    &caps::HARDWARE,
    &emergency::Emergency,
    &caps::FIRMWARE,
    &caps::BUDGET,
    &caps::USER,
    &caps::Interfaces,
    &thermal::Zones,
];

/// Something that takes capacity from CPUs, a domain at a time.
pub(crate) trait Source: Sync {
    /// The name of the source, and in a line what it does, where it takes capacity.
    fn title(&self) -> Option<(&'static str, &'static str)> {
        None
    }
    /// The heading of its settings, for a reader of the list.
    fn heading(&self) -> &'static str;
    /// Lists the source's settings.
    fn params(&self) -> &'static [Param];
    /// Lists the settings that a policy may have of its own, as `NAME.policyN`.
    fn per_policy(&self) -> &'static [Param];
    /// Checks what single settings cannot say: that some contradict each other.
    fn check(&self, _: OfPolicy) -> Result<(), InputError> {
        Ok(())
    }
    /// Notes what it puts on the policy from the beginning on, and what it plans.
    fn plan_caps(&self, _: OfPolicy, _: &mut Caps) {}
    /// Sets up what a CPU of the policy keeps for the source; false: nothing.
    fn on_cpu(&self, _: OfPolicy, _: &Caps, _: &mut CpuPressure) -> bool {
        false
    }
    /// Plans what it does later, of its own accord; `source`: its index in [`SOURCES`], for
    /// [`change`].
    fn plan(&self, _: &mut Policy, _: OfPolicy, _source: u8) {}
    /// Carries out a change that was planned for now ([`change`]).
    fn changes(&self, _: &mut Policy, _: Told) {}
}

/// Message to a source whose time has come.
#[derive(Clone, Copy)]
pub(crate) struct Told {
    /// Number of the source, and what it said then.
    source: u8,
    value: u32,
    /// Temperature of the zone that the policy's CPUs heat, in m°C, where that matters.
    millicelsius: Option<i64>,
}

impl Told {
    /// The same source at another time.
    fn again(&self, policy: &Policy, value: u32) -> Ev {
        change(self.source, policy.domain, value)
    }
}

/// The settings as one policy sees them.
#[derive(Clone, Copy)]
pub(crate) struct OfPolicy<'a> {
    platform: &'a Platform,
    settings: &'a Settings,
    domain: &'a Domain,
    /// Index of the platform's domain.
    index: usize,
    /// Time at which the workload starts: what settings say of later counts from there.
    start: Instant,
}

impl OfPolicy<'_> {
    /// The number N of `policyN`.
    fn policy(&self) -> u32 {
        self.domain.cpus[0].0
    }
    /// Reads a setting: the policy's own value, else that of all.
    fn int(&self, of: &Int) -> Option<u64> {
        self.settings.of_policy(of, self.domain.cpus[0]).map(|v| v.max(0) as u64)
    }
    /// The value of all policies.
    fn of_all(&self, of: &Int) -> Option<u64> {
        self.settings.get(of).map(|v| v.max(0) as u64)
    }
}

/// Lists what takes capacity from CPUs: name and a line.
pub fn sources() -> impl Iterator<Item = (&'static str, &'static str)> {
    SOURCES.iter().filter_map(|s| s.title())
}

/// Iterates over the policies of the platform.
fn policies<'a>(
    platform: &'a Platform,
    settings: &'a Settings,
    start: Instant,
) -> impl Iterator<Item = OfPolicy<'a>> {
    let own = move |(index, domain)| OfPolicy { platform, settings, domain, index, start };
    platform.domains.iter().enumerate().map(own)
}

/// The settings of all sources; the last group has none, and the check of all.
pub(crate) fn groups() -> impl Iterator<Item = Group> {
    let of = |s: &&dyn Source| Group::of(s.params()).titled(s.heading()).per_policy(s.per_policy());
    SOURCES.iter().map(of).chain([Group::of(&[]).checked(check)])
}

/// Errors: settings of one source that contradict each other.
fn check(platform: &Platform, policy: &ModelPolicy, settings: &Settings) -> Result<(), InputError> {
    policies(platform, settings, Instant(0))
        .try_for_each(|own| SOURCES.iter().try_for_each(|s| s.check(own)))
        .map_err(|e| policy.at_setting(e))
}

/// The time at which the workload of `e` starts.
fn start(e: &Experiment) -> Instant {
    Instant(0) + e.phase
}

fn of_policy(e: &Experiment, index: usize) -> OfPolicy<'_> {
    let domain = &e.platform.domains[index];
    OfPolicy { platform: &e.platform, settings: &e.settings, domain, index, start: start(e) }
}

/// The caps of domain `index`, from the beginning on and later.
pub(crate) fn caps(e: &Experiment, index: usize) -> Caps {
    let own = of_policy(e, index);
    let mut caps = caps::of_policy(own, e.policy.kernel, KHz(0));
    SOURCES.iter().for_each(|s| s.plan_caps(own, &mut caps));
    caps
}

/// Whether a domain's limits, or the capacity of its CPUs, change while the machine runs.
pub(crate) fn changes_later(d: &FreqDomain) -> bool {
    d.slots.pressure.caps.is_planned() || d.slots.pressure.caps.uses(Interface::Permanent)
}

/// Whether boost OPPs are there (`/sys/devices/system/cpu/cpufreq/boost`).
pub(crate) fn has_boost(settings: &Settings) -> bool {
    settings.get(&limits::BOOST) == Some(1)
}

/// The pressure state of a CPU of domain `index`; `None`: no source keeps anything there.
pub(crate) fn cpu_pressure(e: &Experiment, index: usize) -> Option<Box<CpuPressure>> {
    let own = of_policy(e, index);
    let avg = SchedAvg { last_update_time: ClockPelt(UPTIME.0), ..SchedAvg::default() };
    let mut pressure = CpuPressure {
        period: Span(0),
        handler: Span(0),
        in_irq: false,
        irq_time: Span(0),
        irq_avg: avg,
        hw_pressure: Capacity(0),
        hw_avg: avg,
    };
    let caps = caps(e, index);
    let mut kept = caps.uses(Interface::Average);
    for source in SOURCES {
        kept |= source.on_cpu(own, &caps, &mut pressure);
    }
    kept.then(|| Box::new(pressure))
}

/// A change of what a source takes from a domain, to be carried out later.
fn change(source: u8, domain: usize, value: u32) -> Ev {
    let index = domain as u32;
    Ev::MechanismFirst(Planned { of: Id::pressure, kind: source, index, value })
}

/// `policy->min` and `policy->max`.
pub(crate) fn limits_of(table: &[FreqTableEntry], caps: &Caps, cpuinfo_max: KHz) -> (KHz, KHz) {
    let (min, max) = (caps.min, caps.max().min(cpuinfo_max));
    cpufreq_set_policy(table, min, max).unwrap_or((min, max))
}

impl FreqDomain {
    /// Lifts user space's limit on the domain for good; what a task may get at most stays as it is.
    pub(crate) fn lift_user(&mut self) {
        let own = self.slots.pressure.caps.of_mut(Input::User);
        (own.khz, own.plan) = (UNCAPPED, None);
        self.limit();
    }
    /// Returns the domain with its caps in force.
    pub(crate) fn limited(mut self) -> FreqDomain {
        self.limit();
        self.limit_at_start = self.max;
        self.max_speed = self.max_speed(Util(1024));
        self
    }
    fn limit(&mut self) {
        let (min, max) = limits_of(&self.table, &self.slots.pressure.caps, self.scale.cpuinfo_max);
        (self.min, self.max) = (min, max);
        let heard = self.slots.pressure.caps.heard(Interface::Instant).min(self.scale.cpuinfo_max);
        let heard = cpufreq_set_policy(&self.table, KHz(0), heard).map_or(heard, |(_, max)| max);
        self.slots.pressure.taken = self.scale.pressure(self.scale.capacity, heard);
    }
}
