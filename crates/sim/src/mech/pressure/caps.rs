//! System pressure: caps on a policy's frequency that come and go, and how the scheduler hears of them.
//!
//! ```text
//! who caps      how often it changes      setting               interface: mainline 5.7   6.10      as proposed
//! hardware      kHz                       hw_capped_khz                    average        average   average
//! thermal zone  each polling delay        [[thermal]]                      average        instant   instant
//! firmware      10 to 100 ms              firmware_capped_khz              none           instant   instant
//! power budget  10 to 100 ms              power_limit_uw                   none           instant   instant
//! user space    seconds                   scaling_max_freq_to              none           instant   permanent
//!
//! instant     cpufreq pressure: the lowest of all such caps, from the moment it is in force
//! average     avg_hw follows it with PELT's half-life; before 6.10 (avg_thermal) EAS takes the last one written at once
//! permanent   held for pressure_permanent_ms: the CPU has another capacity, and another frequency that this belongs to
//! ```
//!
//! cpufreq keeps every policy within the lowest cap of all (`freq_qos`), whatever the scheduler knows; the hardware keeps
//! to its own, whatever cpufreq thinks: PELT is scaled with the frequency that was asked for, so that a CPU looks faster
//! than it is. A power budget is a frequency, too: the highest at which all CPUs of the policy
//! are within it.
//!
//! DEVIATES(pressure-permanent): the permanent interface of the talk on system pressure (OSPM 2023) has no patch. Here it
//! is a new capacity after a whole second under the cap, and the old one a whole second after it has gone; scheduling
//! domains are built anew each time, as they are where a kernel's capacities change.
//! DEVIATES(pressure-free): who caps takes no CPU time, and is on time.
//!
//! Source: include/linux/cpufreq.h, drivers/cpufreq/cpufreq.c:cpufreq_set_policy, cpufreq_update_pressure;
//! drivers/powercap/dtpm_cpu.c:set_pd_power_limit; drivers/base/arch_topology.c:topology_update_hw_pressure.

use super::{MOST_KHZ, OfPolicy, Source, Told, change, limits_of};
use crate::kernel::policy::Policy;
use crate::mech::pressure::state::{CapPlan, Caps, Input, Interface, UNCAPPED};
use risetime_kernel::opp::cpufreq_set_policy;
use risetime_kernel::pelt::get_pelt_divider;
use risetime_kernel::units::{Capacity, Instant, KHz, Span};
use risetime_kernel::{KernelRev, features};
use risetime_model::InputError;
use risetime_model::settings::{Default, Home, Int, Name, Neutral, Param, Range};
use risetime_trace::Event;

/// Settings of something that caps from some time on, and how often.
pub(crate) struct CapSettings {
    /// Limit that the cap sets.
    pub(crate) most: Int,
    pub(crate) from: Int,
    pub(crate) until: Int,
    pub(crate) period: Int,
    on: Int,
    /// All of them, as a reader should see them.
    pub(crate) params: &'static [Param; 5],
}

macro_rules! cap {
    ($name:literal, $doc:literal, $unit:literal, $most:expr, $prefix:literal, $home:expr) => {{
        const fn time(
            name: &'static str,
            doc: &'static str,
            unit: &'static str,
            range: Range,
        ) -> Int {
            let home = Home::Simulator(Neutral::None);
            Int::new(Param { name, doc, unit, range, default: Default::Unset, home })
        }
        const MOST: Int = Int::new(Param {
            name: $name,
            doc: concat!($doc, " (of one policy: ", $name, ".policyN)"),
            unit: $unit,
            range: Range::Int(0, $most),
            default: Default::Unset,
            home: $home,
        });
        const FROM: Int = time(
            concat!($prefix, "_from_ms"),
            "begin of the cap, after the workload's start (unset: from the beginning of the run)",
            "ms",
            Range::Int(0, 1_000_000_000),
        );
        const UNTIL: Int = time(
            concat!($prefix, "_until_ms"),
            "end of the cap, after the workload's start (unset: to the end of the run)",
            "ms",
            Range::Int(1, 1_000_000_000),
        );
        const PERIOD: Int = time(
            concat!($prefix, "_period_us"),
            "period in which the cap comes once, and goes again (unset: it stays)",
            "µs",
            Range::Int(10, super::LONGEST_US),
        );
        const ON: Int = time(
            concat!($prefix, "_on_us"),
            "part of each period for which the cap stays (unset: half of it)",
            "µs",
            Range::Int(1, super::LONGEST_US),
        );
        CapSettings {
            most: MOST,
            from: FROM,
            until: UNTIL,
            period: PERIOD,
            on: ON,
            params: &[MOST.0, FROM.0, UNTIL.0, PERIOD.0, ON.0],
        }
    }};
}

/// A party that caps.
pub(crate) struct Capped {
    input: Input,
    about: (&'static str, &'static str),
    /// Heading of the settings.
    heading: &'static str,
    pub(crate) settings: CapSettings,
}

pub(crate) static HARDWARE: Capped = Capped {
    input: Input::Hardware,
    about: ("hardware", "goes no faster than a cap, whatever it is asked for (hw_capped_khz)"),
    heading: "Hardware that slows down",
    settings: cap!(
        "hw_capped_khz",
        "the hardware goes no faster than the highest OPP up to here, whatever it is asked for, and reports it",
        "kHz",
        MOST_KHZ,
        "hw_capped",
        Home::Simulator(Neutral::None)
    ),
};
pub(crate) static FIRMWARE: Capped = Capped {
    input: Input::Firmware,
    about: ("firmware", "lets its driver ask for no more than a cap (firmware_capped_khz)"),
    heading: "Firmware that caps",
    settings: cap!(
        "firmware_capped_khz",
        "firmware lets its driver ask for no more than the highest OPP up to here",
        "kHz",
        MOST_KHZ,
        "firmware_capped",
        Home::Simulator(Neutral::None)
    ),
};
pub(crate) static BUDGET: Capped = Capped {
    input: Input::Budget,
    about: ("budget", "a policy's power is limited (power_limit_uw)"),
    heading: "Power budgets",
    settings: cap!(
        "power_limit_uw",
        "a policy gets no more than the highest OPP at which all of its CPUs are within this power (dtpm)",
        "µW",
        1_000_000_000_000,
        "power_limit",
        Home::Simulator(Neutral::None)
    ),
};
pub(crate) static USER: Capped = Capped {
    input: Input::User,
    about: ("user", "writes scaling_max_freq while the machine runs (scaling_max_freq_to)"),
    heading: "Limits that change",
    settings: cap!(
        "scaling_max_freq_to",
        "user space writes this to scaling_max_freq while the machine runs, and scaling_max_freq again later",
        "kHz",
        MOST_KHZ,
        "scaling_max_freq",
        Home::Simulator(Neutral::None)
    ),
};

const INTERFACES: &[&str] = &["none", "instant", "average", "permanent"];

/// Settings of how the scheduler hears of each cap.
pub(crate) struct Interfaces;

const fn heard_by(name: &'static str, doc: &'static str) -> Name {
    Name::new(Param {
        name,
        doc,
        unit: "",
        range: Range::OneOf(INTERFACES),
        default: Default::Unset,
        home: Home::Patched(None, Neutral::None),
    })
}

const AFTER: Int = Int::new(Param {
    name: "pressure_permanent_ms",
    doc: "time for which a cap with a permanent interface has to hold, or to be gone, before the CPU's capacity changes",
    unit: "ms",
    range: Range::Int(0, 1_000_000),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::None),
});

/// Settings by [`Input`].
const OF_INPUT: [Name; 5] = [
    heard_by(
        "hw_pressure",
        "how the scheduler hears of hardware that caps itself (unset: as the release does: average since 5.7)",
    ),
    heard_by(
        "thermal_pressure",
        "likewise of thermal zones (unset: average since 5.7, instant since 6.10)",
    ),
    heard_by("firmware_pressure", "likewise of firmware (unset: instant since 6.10)"),
    heard_by("power_pressure", "likewise of power budgets (unset: instant since 6.10)"),
    heard_by(
        "user_pressure",
        "likewise of user space's limits (unset: instant since 6.10; OSPM 2023 proposes permanent)",
    ),
];

impl Source for Interfaces {
    fn heading(&self) -> &'static str {
        "How the scheduler hears of caps"
    }

    fn params(&self) -> &'static [Param] {
        &[OF_INPUT[0].0, OF_INPUT[1].0, OF_INPUT[2].0, OF_INPUT[3].0, OF_INPUT[4].0, AFTER.0]
    }

    fn per_policy(&self) -> &'static [Param] {
        &[]
    }
}

/// The interface of each release.
fn of_release(rev: KernelRev, input: Input) -> Interface {
    // Commits 36a0df85d2e8: "arm64/topology: Populate arch_scale_thermal_pressure() for arm64 platforms" and
    // 75d659317bb1: "cpufreq: Add a cpufreq pressure feedback for the scheduler".
    let heard = rev.has(features::THERMAL_PRESSURE);
    let instant = rev.has(features::CPUFREQ_PRESSURE);
    match input {
        _ if !heard => Interface::None,
        Input::Hardware => Interface::Average,
        Input::Thermal if !instant => Interface::Average,
        _ if !instant => Interface::None,
        _ => Interface::Instant,
    }
}

/// The caps of a policy before any is in force.
pub(super) fn of_policy(own: OfPolicy, rev: KernelRev, min: KHz) -> Caps {
    let interface = |input: Input| match own.settings.get(&OF_INPUT[input as usize]) {
        Some("none") => Interface::None,
        Some("instant") => Interface::Instant,
        Some("average") => Interface::Average,
        Some("permanent") => Interface::Permanent,
        _ => of_release(rev, input),
    };
    let after = Span::from_ms(own.of_all(&AFTER).unwrap_or(1000));
    Caps::new(min, after, interface)
}

/// Values of an event of a cap: it is there, it is gone, or the permanent ones have held long
/// enough.
const ON: u32 = 1;
const OFF: u32 = 0;
/// Number in place of a source's.
pub(super) const PERMANENT: u8 = u8::MAX;

impl Capped {
    /// The frequency that a policy is left. `None`: it is not capped.
    fn khz(&self, own: OfPolicy) -> Option<KHz> {
        let value = own.int(&self.settings.most)?;
        if self.input != Input::Budget {
            return Some(KHz(value));
        }
        let cpus = own.domain.cpus.len() as u64;
        let within = own.domain.opps.iter().rev().find(|o| o.power.0 * cpus <= value);
        Some(within.unwrap_or(&own.domain.opps[0]).freq)
    }
}

impl Source for Capped {
    fn title(&self) -> Option<(&'static str, &'static str)> {
        Some(self.about)
    }

    fn heading(&self) -> &'static str {
        self.heading
    }

    fn params(&self) -> &'static [Param] {
        self.settings.params
    }

    fn per_policy(&self) -> &'static [Param] {
        &self.settings.params[..1]
    }

    /// Errors: times of a cap that is not there, or that contradict each other; a budget where power is unknown.
    fn check(&self, own: OfPolicy) -> Result<(), InputError> {
        let CapSettings { most: name, from, until, period, on, .. } = &self.settings;
        let err = |name: &Int, what: String| {
            let value = own.of_all(name).unwrap_or(0);
            Err(InputError::of_setting(name, value, what))
        };
        for time in [from, until, period, on] {
            if own.of_all(time).is_some() && !own.settings.is_set_anywhere(name) {
                return err(time, format!("has no effect: {name} is not set"));
            }
        }
        let ms = |of: &Int| own.of_all(of).unwrap_or(0);
        if own.of_all(until).is_some() && ms(until) <= ms(from) {
            return err(until, format!("is not after {from}, {}", ms(from)));
        }
        match (own.of_all(period), own.of_all(on)) {
            (None, Some(_)) => return err(on, format!("has no effect: {period} is not set")),
            (Some(all), Some(part)) if part >= all => {
                return err(on, format!("is not less than {period}, {all}"));
            }
            _ => {}
        }
        if self.input == Input::Budget
            && own.int(name).is_some()
            && own.domain.busy_power(own.domain.freq_max()).is_none()
        {
            let cpus = risetime_model::platform::cpu_ranges(&own.domain.cpus);
            return err(name, format!("the power of CPUs {cpus} is unknown"));
        }
        Ok(())
    }

    fn plan_caps(&self, own: OfPolicy, caps: &mut Caps) {
        let Some(khz) = self.khz(own) else { return };
        let CapSettings { until, period, on, .. } = &self.settings;
        let us = |of: &Int| own.of_all(of).map(Span::from_us);
        let period = us(period).unwrap_or(Span(0));
        let cap = caps.of_mut(self.input);
        cap.plan = Some(CapPlan {
            khz,
            otherwise: cap.khz,
            until: own.of_all(until).map(|ms| own.start + Span::from_ms(ms)),
            period,
            on: us(on).unwrap_or(Span(period.0 / 2)),
            heat: None,
        });
    }

    fn plan(&self, policy: &mut Policy, own: OfPolicy, source: u8) {
        let Some(plan) = policy.d().slots.pressure.caps.of(self.input).plan else { return };
        if plan.heat.is_some() {
            return;
        }
        let from = own.of_all(&self.settings.from);
        let at = from.map_or(Instant(0), |ms| own.start + Span::from_ms(ms));
        policy.push(at, change(source, own.index, ON));
    }

    fn changes(&self, policy: &mut Policy, told: Told) {
        let Some(plan) = policy.d().slots.pressure.caps.of(self.input).plan else { return };
        let now = policy.m().now;
        let over = plan.until.is_some_and(|until| now >= until);
        let on = told.value == ON && !over;
        policy.cap(self.input, if on { plan.khz } else { plan.otherwise });
        let (next, value) = match plan.period {
            _ if over => return,
            Span(0) => (None, OFF),
            _ if on => (Some(now + plan.on), OFF),
            period => (Some(now + Span(period.0 - plan.on.0)), ON),
        };
        let at = match (next, plan.until) {
            (Some(next), Some(until)) => next.min(until),
            (Some(at), None) | (None, Some(at)) => at,
            (None, None) => return,
        };
        policy.push(at, told.again(policy, value));
    }
}

impl Policy<'_, '_> {
    /// Sets the frequency that `input` allows, and acts if it is another than before.
    pub(crate) fn cap(&mut self, input: Input, khz: KHz) {
        let cap = self.d().slots.pressure.caps.of_mut(input);
        let interface = cap.interface;
        if std::mem::replace(&mut cap.khz, khz) == khz {
            return;
        }
        match interface {
            Interface::Permanent => self.plan_permanent(),
            _ => self.heard(input),
        }
        self.tell_cap(input);
        match input {
            Input::Hardware => self.hardware_capped(),
            _ => self.cpufreq_set_policy(),
        }
    }

    /// Tells of somebody's cap as it is now.
    pub(super) fn tell_cap(&mut self, input: Input) {
        let (cpu, khz) = (self.d().related[0], self.d().slots.pressure.caps.of(input).khz);
        let max = (khz < self.d().scale.cpuinfo_max).then(|| self.resolved(khz));
        if max != std::mem::replace(&mut self.d().slots.pressure.caps.of_mut(input).told, max) {
            self.emit(Event::Capped { cpu, by: input.limit(), max });
        }
    }

    /// The OPP that a cap leaves.
    fn resolved(&mut self, khz: KHz) -> KHz {
        let d = self.d();
        let khz = khz.min(d.scale.cpuinfo_max);
        cpufreq_set_policy(&d.table, KHz(0), khz).map_or(khz, |(_, max)| max)
    }

    /// Passes a changed cap on to the scheduler, at once or as an average
    /// (`cpufreq_update_pressure`, `topology_update_hw_pressure`).
    fn heard(&mut self, input: Input) {
        let rev = self.m().rev;
        let caps = &self.d().slots.pressure.caps;
        let own = *caps.of(input);
        let instant = caps.heard(Interface::Instant);
        // Before 6.10 each CPU has one such number, and who writes last is right.
        let one_number = !rev.has(features::CPUFREQ_PRESSURE);
        let average = match one_number && own.interface == Interface::Average {
            true => own.khz,
            false => caps.heard(Interface::Average),
        };
        let (instant, average) = (self.resolved(instant), self.resolved(average));
        let related = self.d().related.clone();
        let capacity = self.m().cpu(related[0]).capacity;
        let d = self.d();
        let averaged = own.interface == Interface::Average;
        let (pressure, hw) =
            (d.scale.pressure(capacity, instant), d.scale.pressure(capacity, average));
        d.slots.pressure.taken = pressure;
        for cpu in related {
            let mut rq = self.rq(cpu);
            if let Some(p) = rq.c().slots.pressure.as_mut().filter(|_| averaged) {
                p.hw_pressure = hw;
            }
            rq.update_actual();
        }
    }

    /// An average that has followed a cap for long.
    pub(super) fn has_heard(&mut self) {
        let capped = self.d().slots.pressure.caps.heard(Interface::Average);
        if capped == UNCAPPED {
            return;
        }
        let max = self.resolved(capped);
        let related = self.d().related.clone();
        let capacity = self.m().cpu(related[0]).capacity;
        let (pressure, decay) = (self.d().scale.pressure(capacity, max), self.m().decay);
        for cpu in related {
            if let Some(p) = &mut self.rq(cpu).c().slots.pressure {
                p.hw_pressure = pressure;
                p.hw_avg.load_avg = pressure.0;
                p.hw_avg.load_sum = pressure.0 * u64::from(get_pelt_divider(decay, &p.hw_avg));
            }
        }
    }

    /// Sets the hardware's frequency as a changed cap of it allows, whatever it was asked for.
    fn hardware_capped(&mut self) {
        let khz = self.d().slots.pressure.caps.of(Input::Hardware).khz;
        let cap = self.resolved(khz);
        let d = self.d();
        d.slots.pressure.hw_cap = Some(cap).filter(|_| khz != UNCAPPED);
        let (asked, hw) = (d.hw_asked, d.hw);
        if d.slots.pressure.hw_cap.map_or(asked, |cap| asked.min(cap)) != hw {
            self.set_hw_to(asked);
        }
    }

    /// `cpufreq_set_policy`: other limits from now on, which its governor hears of. What a task may get at most
    /// stays what it is: this loss is one that a report counts.
    fn cpufreq_set_policy(&mut self) {
        let d = self.d();
        (d.min, d.max) = limits_of(&d.table, &d.slots.pressure.caps, d.scale.cpuinfo_max);
        let (cpu, min, max) = (d.related[0], d.min, d.max);
        self.emit(Event::CpuFrequencyLimits { cpu, min, max });
        self.limits_changed();
    }

    /// Plans that the cap becomes permanent unless it changes before.
    fn plan_permanent(&mut self) {
        let caps = &mut self.d().slots.pressure.caps;
        caps.permanent_gen = caps.permanent_gen.wrapping_add(1);
        let (value, after) = (caps.permanent_gen, caps.permanent_after);
        let at = self.m().now + after;
        self.push(at, change(PERMANENT, self.domain, value));
    }
}

impl Policy<'_, '_> {
    /// Sets the capacity of each of its CPUs to what the caps with a permanent interface, which
    /// have held long enough, leave it (`topology_set_cpu_scale`); it belongs to the highest
    /// frequency that they leave (`capacity_freq_ref`). True: scheduling domains are to be built
    /// anew.
    pub(super) fn capacity_changes(&mut self, generation: u32) -> bool {
        let (rev, coherent) = (self.m().rev, self.m().slots.perf_domain.coherent);
        let d = self.d();
        if d.slots.pressure.caps.permanent_gen != generation {
            return false;
        }
        let top = d.scale.freq_ref_at_first;
        let allowed = d.slots.pressure.caps.heard(Interface::Permanent).min(top);
        let freq_ref =
            cpufreq_set_policy(&d.table, KHz(0), allowed).map_or(allowed, |(_, max)| max);
        if freq_ref == d.scale.freq_ref {
            return false;
        }
        let related = d.related.clone();
        // Time up to here has passed at the old scale.
        for &cpu in &related {
            self.rq(cpu).update_rq_clock();
        }
        let d = self.d();
        d.scale.freq_ref = top;
        let taken = d.scale.pressure(d.scale.capacity, freq_ref);
        let capacity = Capacity(d.scale.capacity.0 - taken.0).max(Capacity(1));
        d.scale.freq_ref = freq_ref;
        d.freq_scale = d.freq_scale(d.cur);
        if !coherent {
            d.em_adjust_new_capacity(rev, capacity);
        }
        for &cpu in &related {
            self.rq(cpu).c().capacity = capacity;
        }
        self.heard(Input::User);
        for cpu in related {
            self.rq(cpu).update_cpu_capacity();
        }
        true
    }
}
