//! What a CPU keeps of interrupts and of hardware that slows down (`kernel/pressure/`).

use risetime_kernel::pelt::SchedAvg;
use risetime_kernel::units::{Capacity, Span, Util};

/// What a CPU keeps of all this; most have none.
#[derive(Clone, Debug)]
pub(crate) struct CpuPressure {
    /// Its interrupt: how often, for how long.
    pub(crate) period: Span,
    pub(crate) handler: Span,
    /// Its handler has the CPU.
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
    /// Its part of `others_have_blocked`.
    pub(crate) fn is_left(&self) -> bool {
        self.irq_avg.util_avg != Util(0) || self.hw_avg.load_avg != 0
    }
    /// Interrupt time within `delta`, which the task clock is told of now; the rest comes later.
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
