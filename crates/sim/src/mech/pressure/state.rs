//! State of interrupts and slow hardware on a CPU, and of the caps on a policy's frequency
//! ([`super`]).

use crate::mech::slots::Slot;
use risetime_kernel::pelt::SchedAvg;
use risetime_kernel::units::{Capacity, Instant, KHz, Span, Util};
use risetime_trace::Limit;

/// The mechanism.
pub(crate) struct Own;

impl Slot for Own {
    type OfMachine = ();
    type OfDomain = DomainPressure;
    type OfCpu = Option<Box<CpuPressure>>;
    type OfTask = ();
}

/// The party that caps a policy's frequency, from those that change their mind often to those that
/// seldom do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Input {
    /// The hardware itself, whatever it is asked for.
    Hardware,
    /// A thermal zone, by its cooling device.
    Thermal,
    /// Firmware, by a request of its driver.
    Firmware,
    /// A power budget.
    Budget,
    /// User space.
    User,
}

impl Input {
    /// The name of the input in a trace.
    pub(crate) fn limit(self) -> Limit {
        Limit::ALL[self as usize]
    }
}

/// Interface by which the scheduler hears of a cap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Interface {
    /// The scheduler does not hear of it.
    None,
    /// The scheduler hears of it at once (`cpufreq_get_pressure`).
    Instant,
    /// The scheduler hears of an average that follows it (`hw_load_avg`; before 6.10, where it is
    /// called thermal, EAS knows at once).
    Average,
    /// The CPU has another capacity, once the cap has held for some time.
    Permanent,
}

/// A cap: what one input allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cap {
    /// Frequency that is allowed at this moment; the highest number: any.
    pub(crate) khz: KHz,
    /// Frequency as the trace has it: the OPP that is left.
    pub(crate) told: Option<KHz>,
    pub(crate) interface: Interface,
    /// Plan of when that changes.
    pub(crate) plan: Option<CapPlan>,
}

/// A cap that comes and goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapPlan {
    pub(crate) khz: KHz,
    /// While it is gone.
    pub(crate) otherwise: KHz,
    /// Time at which the cap is gone for good.
    pub(crate) until: Option<Instant>,
    /// Period after which the cap comes again, for a part of it; 0: it stays.
    pub(crate) period: Span,
    pub(crate) on: Span,
    /// Or with heat: it comes at the first of these temperatures, and goes below the second, in m°C.
    pub(crate) heat: Option<(i64, i64)>,
}

/// The caps of a policy (`freq_constraints`, and the hardware beside them).
#[derive(Clone, Debug)]
pub(crate) struct Caps {
    /// Caps by [`Input`].
    all: [Cap; 5],
    /// `scaling_min_freq`.
    pub(crate) min: KHz,
    /// Number of times that caps with a permanent interface have changed.
    pub(crate) permanent_gen: u32,
    /// Time for which such caps have to hold.
    pub(crate) permanent_after: Span,
}

/// State of a policy for what takes capacity from its CPUs.
#[derive(Clone, Debug, Default)]
pub(crate) struct DomainPressure {
    /// Caps of the policy's frequency.
    pub(crate) caps: Caps,
    /// `cpufreq_get_pressure`: what they take of each CPU's capacity.
    pub(crate) taken: Capacity,
    /// Frequency above which the hardware does not go, whatever it is asked for.
    pub(crate) hw_cap: Option<KHz>,
}

impl Default for Caps {
    /// Returns no caps, of which nobody hears.
    fn default() -> Caps {
        Caps::new(KHz(0), Span(0), |_| Interface::None)
    }
}

/// No cap.
pub(crate) const UNCAPPED: KHz = KHz(u64::MAX);

impl Caps {
    /// None in force yet.
    pub(crate) fn new(min: KHz, permanent_after: Span, hears: impl Fn(Input) -> Interface) -> Caps {
        use Input::*;
        let cap = |input| Cap { khz: UNCAPPED, told: None, interface: hears(input), plan: None };
        let all = [Hardware, Thermal, Firmware, Budget, User].map(cap);
        Caps { all, min, permanent_gen: 0, permanent_after }
    }
    pub(crate) fn of(&self, input: Input) -> &Cap {
        &self.all[input as usize]
    }
    pub(crate) fn of_mut(&mut self, input: Input) -> &mut Cap {
        &mut self.all[input as usize]
    }
    /// The cap that cpufreq keeps to, the lowest of all but the hardware's.
    pub(crate) fn max(&self) -> KHz {
        self.all[1..].iter().map(|c| c.khz).min().unwrap_or(UNCAPPED)
    }
    /// The lowest of those that the scheduler hears of in this way.
    pub(crate) fn heard(&self, interface: Interface) -> KHz {
        let heard = self.all.iter().filter(|c| c.interface == interface);
        heard.map(|c| c.khz).min().unwrap_or(UNCAPPED)
    }
    /// Whether any comes or goes later.
    pub(crate) fn is_planned(&self) -> bool {
        self.all.iter().any(|c| c.plan.is_some())
    }
    /// Whether any may ever come by this interface.
    pub(crate) fn uses(&self, interface: Interface) -> bool {
        let used = |c: &&Cap| c.khz != UNCAPPED || c.plan.is_some();
        self.all.iter().filter(used).any(|c| c.interface == interface)
    }
}

/// State of interrupts and slow hardware that a CPU keeps; most CPUs have none.
#[derive(Clone, Debug)]
pub(crate) struct CpuPressure {
    /// Period of the CPU's interrupt, and the time that it takes.
    pub(crate) period: Span,
    pub(crate) handler: Span,
    /// True while the interrupt's handler has the CPU.
    pub(crate) in_irq: bool,
    /// `irq_time_read() - rq->prev_irq_time`: what the task clock has not been told of yet.
    pub(crate) irq_time: Span,
    /// `rq->avg_irq`.
    pub(crate) irq_avg: SchedAvg,
    /// The per-CPU `hw_pressure`.
    pub(crate) hw_pressure: Capacity,
    /// `rq->avg_hw`, `avg_thermal` before 6.10.
    pub(crate) hw_avg: SchedAvg,
}

impl CpuPressure {
    /// Whether the interrupt's handler has the CPU.
    pub(crate) fn in_irq(&self) -> bool {
        self.in_irq
    }
    /// `cpu_util_irq`.
    pub(crate) fn irq_util(&self) -> Util {
        self.irq_avg.util_avg
    }
    /// `hw_load_avg`.
    pub(crate) fn hw_load_avg(&self) -> u64 {
        self.hw_avg.load_avg
    }
    /// Whether pressure averages are left to decay, as part of `others_have_blocked`.
    pub(crate) fn is_left(&self) -> bool {
        self.irq_avg.util_avg != Util(0) || self.hw_avg.load_avg != 0
    }
    /// Takes the interrupt time within `delta`, which the task clock is told of now; the rest comes
    /// later.
    pub(crate) fn take_irq_time(&mut self, delta: Span) -> Span {
        let irq = self.irq_time.min(delta);
        self.irq_time.0 -= irq.0;
        irq
    }
}

/// A moment of an interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IrqStep {
    /// The device raises it.
    Raised,
    /// The CPU has left its idle state for it.
    Awake,
    /// The handler is done.
    Done,
}
