//! State of which CPUs should reschedule, and how they learn of it ([`super`]).

use crate::mech::slots::Slot;
use crate::state::cpuset::CpuSet;
use risetime_kernel::units::CpuId;

/// The mechanism.
pub(crate) struct Own;

impl Slot for Own {
    type OfMachine = Preempt;
    type OfDomain = ();
    type OfCpu = ();
    type OfTask = ();
}

/// The flags of all CPUs.
#[derive(Default)]
pub(crate) struct Preempt {
    pub(crate) lazy: bool,
    /// The kernel itself is not preempted.
    pub(crate) voluntary: bool,
    /// The CPU on which a wakeup is carried out.
    pub(crate) waking_on: Option<CpuId>,
    /// CPUs whose flag is the lazy one alone. One that is not in `need_resched`, too, has not
    /// heard of it yet.
    pub(crate) flagged: CpuSet,
}
