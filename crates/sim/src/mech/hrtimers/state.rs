//! State of high-resolution timers on the machine and its CPUs ([`crate::mech::hrtimers`]).

use crate::mech::slots::Slot;
use risetime_kernel::units::Instant;

/// The mechanism.
pub(crate) struct Own;

impl Slot for Own {
    type OfMachine = Hrtimers;
    type OfDomain = ();
    type OfCpu = CpuHrtimers;
    type OfTask = ();
}

/// Timers of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hrtimers {
    /// Timers expire at ticks only (`!hrtimer_hres_active`).
    pub(crate) low_res: bool,
    /// True if another trace says when they do.
    pub(crate) given: bool,
    /// A change to low resolution leaves the tick's own timer queued.
    pub(crate) keeps_tick: bool,
    /// Interrupts of the CPUs' timers so far.
    pub(crate) interrupts: u64,
}

impl Hrtimers {
    /// Whether a tick of this machine's own runs the timers.
    #[inline]
    pub(crate) fn at_ticks(&self) -> bool {
        self.low_res && !self.given
    }
}

/// Timers of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuHrtimers {
    /// `ts->sched_timer` is still queued, although the tick is no longer made of it.
    pub(crate) sched_timer_left: bool,
    /// Timers of classes that have expired at its tick are yet to be run: it does not go idle.
    pub(crate) running: bool,
    /// Time of the CPU's last timer interrupt.
    pub(crate) interrupt: Option<Instant>,
}
