//! What takes capacity from a CPU from outside the scheduler: interrupts, limits on the frequency, and
//! hardware that slows down by itself.
//!
//! ```text
//!             what happens                                  what the kernel knows of it
//! interrupts  the handler has the CPU, the task waits       clock_task stands still; avg_irq
//! limits      policy->min ≤ every request ≤ policy->max     cpufreq pressure (since 6.10)
//! hardware    min(asked for, cap), whatever is asked for    hw pressure, averaged in avg_hw
//!
//! actual      = capacity - max(avg_hw, cpufreq pressure)              (before 6.10: - hw pressure)
//! capacity_of = (actual - rt - dl) · (actual - irq) / actual          every tick
//! ```
//!
//! Each CPU's interrupt comes once a period, CPUs one after the other. An idle CPU leaves its idle
//! state for it, with its exit latency, and chooses anew after the handler; its tick stays off. As in
//! the kernel, the handler's time is taken off the task clock when the handler is over.
//!
//! DEVIATES(irq_switch): a CPU that reschedules during the handler of an interrupt does so at once, and
//! its new task makes no progress until the handler is over. The switch is stamped up to a handler's
//! length too early.
//!
//! The kernel scales PELT with the frequency that it asked for, so under a hardware cap a CPU looks
//! faster than it is. Left out: thermal zones that decide about caps; the scheduler's own interrupts
//! (ticks, timers, IPIs) cost nothing here; limits that change during a run.
//!
//! Source: kernel/sched/core.c:update_rq_clock_task, sched_tick; pelt.c:update_other_load_avgs;
//! fair.c:get_actual_cpu_capacity; drivers/base/arch_topology.c:topology_update_hw_pressure;
//! drivers/cpufreq/cpufreq.c:cpufreq_set_policy.

use crate::kernel::Kernel;
use crate::kernel::rq::Rq;
use crate::state::machine::Cpu;
use crate::state::machine::{FreqDomain, UPTIME, from_time_0};
use crate::state::pressure::{CpuPressure, IrqStep};
use crate::time::queue::Ev;
use risetime_kernel::KernelRev;
use risetime_kernel::cpu_util::capacity_of;
use risetime_kernel::cpu_util::get_actual_cpu_capacity;
use risetime_kernel::opp::{FreqTableEntry, cpufreq_set_policy, cpufreq_update_pressure};
use risetime_kernel::pelt::{SchedAvg, update_hw_load_avg};
use risetime_kernel::units::{Capacity, ClockPelt, CpuId, Instant, KHz, Span, Util};
use risetime_model::platform::Domain;
use risetime_model::settings::{Default, Home, Neutral, Param, Range, Settings};
use risetime_model::{Experiment, InputError, Platform};
use risetime_trace::Event;

/// The longest period, and the longest time to a cap.
const LONGEST_US: i64 = 10_000_000;
const MOST_KHZ: i64 = u32::MAX as i64;

/// Interrupts, limits, caps. All of them also for one policy, as `NAME.policyN`.
pub(crate) const PARAMS: &[Param] = &[
    Param {
        name: IRQ_PERIOD,
        doc: "every CPU has a device's interrupt so often (of one policy: irq_period_us.policyN)",
        unit: "µs",
        range: Range::Int(1, LONGEST_US),
        default: Default::Unset,
        home: Home::Simulator(Neutral::None),
    },
    Param {
        name: IRQ,
        doc: "CPU time that its handler takes, at any speed",
        unit: "µs",
        range: Range::Int(0, LONGEST_US),
        default: Default::Unset,
        home: Home::Simulator(Neutral::Int(0)),
    },
    Param {
        name: MAX_FREQ,
        doc: "no governor gets more than the highest OPP up to here (of one policy: scaling_max_freq.policyN)",
        unit: "kHz",
        range: Range::Int(0, MOST_KHZ),
        default: Default::Unset,
        home: Home::Policy(MAX_FREQ),
    },
    Param {
        name: MIN_FREQ,
        doc: "no governor gets less than the lowest OPP from here on (of one policy: scaling_min_freq.policyN)",
        unit: "kHz",
        range: Range::Int(0, MOST_KHZ),
        default: Default::Unset,
        home: Home::Policy(MIN_FREQ),
    },
    Param {
        name: HW_CAPPED,
        doc: "the hardware goes no faster than the highest OPP up to here, whatever it is asked for, and reports it (of one policy: hw_capped_khz.policyN)",
        unit: "kHz",
        range: Range::Int(0, MOST_KHZ),
        default: Default::Unset,
        home: Home::Simulator(Neutral::None),
    },
    Param {
        name: HW_CAPPED_FROM,
        doc: "from when on it is capped",
        unit: "ms",
        range: Range::Int(0, 1_000_000_000),
        default: Default::Unset,
        home: Home::Simulator(Neutral::None),
    },
];

const IRQ_PERIOD: &str = "irq_period_us";
const IRQ: &str = "irq_us";
const MAX_FREQ: &str = "scaling_max_freq";
const MIN_FREQ: &str = "scaling_min_freq";
const HW_CAPPED: &str = "hw_capped_khz";
const HW_CAPPED_FROM: &str = "hw_capped_from_ms";

/// A setting of the policy of `domain`: its own, else that of all.
fn of_policy(settings: &Settings, name: &str, domain: &Domain) -> Option<u64> {
    let own = settings.int(&format!("{name}.policy{}", domain.cpus[0].0));
    own.or(settings.int(name)).map(|v| v.max(0) as u64)
}

/// What single settings cannot say: that some contradict each other.
///
/// Errors: handlers as long as their period, or without one; a minimum above the maximum.
pub(crate) fn check(platform: &Platform, settings: &Settings) -> Result<(), InputError> {
    for d in &platform.domains {
        let of = |name| of_policy(settings, name, d);
        let cpu = d.cpus[0].0;
        match (of(IRQ), of(IRQ_PERIOD)) {
            (Some(irq), None) if irq > 0 => {
                return Err(InputError::new(
                    format!("setting {IRQ}={irq}"),
                    "how often is not said",
                )
                .hint(format!("add {IRQ_PERIOD}=1000")));
            }
            (Some(irq), Some(period)) if irq >= period => {
                let what = format!(
                    "{IRQ} of policy{cpu} is {irq}, wanted less than {IRQ_PERIOD}, {period}"
                );
                return Err(InputError::new("settings", what));
            }
            _ => {}
        }
        if let (Some(min), Some(max)) = (of(MIN_FREQ), of(MAX_FREQ))
            && min > max
        {
            let what = format!("{MIN_FREQ} of policy{cpu} is {min}, above {MAX_FREQ}, {max}");
            return Err(InputError::new("settings", what));
        }
    }
    Ok(())
}

/// `policy->min` and `policy->max` of a domain under these settings.
pub(crate) fn limits(settings: &Settings, d: &Domain, table: &[FreqTableEntry]) -> (KHz, KHz) {
    let of = |name| of_policy(settings, name, d).map(KHz);
    let (min, max) = (of(MIN_FREQ).unwrap_or(KHz(0)), of(MAX_FREQ).unwrap_or(KHz(u64::MAX)));
    cpufreq_set_policy(table, min, max).unwrap_or((d.opps[0].freq, d.freq_max()))
}

/// That of a CPU of `domain`; `None`: neither interrupts nor a cap.
pub(crate) fn cpu_pressure(settings: &Settings, domain: &Domain) -> Option<Box<CpuPressure>> {
    let us = |name| of_policy(settings, name, domain).map_or(Span(0), Span::from_us);
    let (period, handler) = (us(IRQ_PERIOD), us(IRQ));
    let capped = of_policy(settings, HW_CAPPED, domain).is_some();
    if !capped && (period == Span(0) || handler == Span(0)) {
        return None;
    }
    let avg = SchedAvg { last_update_time: ClockPelt(UPTIME.0), ..SchedAvg::default() };
    Some(Box::new(CpuPressure {
        period,
        handler,
        in_irq: false,
        irq_time: Span(0),
        irq_avg: avg,
        hw_pressure: Capacity(0),
        hw_avg: avg,
    }))
}

impl Cpu {
    /// `get_actual_cpu_capacity`, when something that it depends on has changed; `limit`: the cpufreq
    /// pressure of its domain.
    pub(crate) fn update_actual(&mut self, rev: KernelRev, limit: Capacity) {
        let (average, now) =
            self.pressure.as_ref().map_or((0, Capacity(0)), |p| (p.hw_load_avg(), p.hw_pressure));
        self.actual = if rev >= KernelRev::new(6, 10) {
            get_actual_cpu_capacity(self.capacity, average, limit.0)
        } else {
            Capacity(self.capacity.0.saturating_sub(now.0))
        };
    }
}

impl Rq<'_, '_> {
    // ------------------------------------------------------------------ interrupts

    fn update_hw(&mut self) -> bool {
        let cpu = self.cpu;
        let decay = self.m().decay;
        let c = self.c();
        let now = c.clock.clock_task;
        let Some(p) = &mut c.pressure else { return false };
        let avg = &mut p.hw_avg;
        let before = avg.load_avg;
        let changed = update_hw_load_avg(decay, now, avg, p.hw_pressure);
        if changed && (before, avg.load_avg) != (0, 0) {
            let event = Event::PeltPressure {
                cpu,
                class: "hw",
                util_avg: Util(avg.load_avg),
                util_sum: avg.load_sum,
                period_contrib: avg.period_contrib,
                last_update_time: from_time_0(avg),
            };
            self.update_actual();
            self.emit(event);
        }
        changed
    }

    /// `sched_tick`'s part.
    pub(crate) fn pressure_tick(&mut self) {
        let cpu = self.cpu;
        if self.m().cpu(cpu).pressure.is_some() {
            self.update_hw();
            self.update_cpu_capacity();
        }
    }

    /// Their part of `update_other_load_avgs`; true if an average changed.
    pub(crate) fn update_pressure(&mut self) -> bool {
        let cpu = self.cpu;
        if self.m().cpu(cpu).pressure.is_none() {
            return false;
        }
        // All of them, whatever the first one says.
        let hw = self.update_hw();
        self.update_irq(Span(0)) || hw
    }
}

impl Kernel<'_> {
    /// Limits hold from the beginning; interrupts and caps are to come.
    pub(crate) fn plan_pressure(&mut self, e: &Experiment) {
        let n = self.m.cpus.len() as u64;
        for cpu in (0..n as u32).map(CpuId) {
            self.rq(cpu).update_actual();
            if self.m.domain_of(cpu).pressure != Capacity(0) {
                self.rq(cpu).update_cpu_capacity();
            }
            let Some(p) = &self.m.cpu(cpu).pressure else { continue };
            if p.period > Span(0) && p.handler > Span(0) {
                let first = p.period.0 * (u64::from(cpu.0) + 1) / (n + 1);
                self.q.push(Instant(first), Ev::Irq { cpu, step: IrqStep::Raised });
            }
        }
        let from = e.settings.int(HW_CAPPED_FROM).unwrap_or(0).max(0) as u64;
        for (domain, d) in e.platform.domains.iter().enumerate() {
            if let Some(khz) = of_policy(&e.settings, HW_CAPPED, d) {
                let at = Instant(0) + Span::from_ms(from);
                // The setting's range is 32 bits.
                self.q.push(at, Ev::HwCap { domain: domain as u32, khz: khz as u32 });
            }
        }
    }
}

impl FreqDomain {
    /// With these limits in force.
    pub(crate) fn limited(mut self, capacity: Capacity, (min, max): (KHz, KHz)) -> FreqDomain {
        (self.min, self.max) = (min, max);
        self.pressure = cpufreq_update_pressure(capacity, max, self.freq_max());
        self
    }
}

impl Rq<'_, '_> {
    /// `update_cpu_capacity`: what rt, dl and irq leave of the CPU.
    pub(crate) fn update_cpu_capacity(&mut self) {
        let cpu = self.cpu;
        let (c, limit) = (self.m().cpu(cpu), self.m().domain_of(cpu).pressure);
        let hw = c.pressure.as_ref().map_or(0, |p| p.hw_load_avg());
        let others = self.m().hook(self.m().rq_util(cpu), |h, own| h.rq_util(true, own));
        let capacity = capacity_of(self.m().rev, c.capacity, &others, hw, limit.0);
        let before = std::mem::replace(&mut self.c().cpu_capacity, capacity);
        if before != capacity {
            self.emit(Event::CpuCapacity { cpu, capacity });
        }
    }
}
