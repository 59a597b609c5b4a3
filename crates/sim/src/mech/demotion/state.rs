//! Demotion keeps what a demoted task was with the task; its switch is among the sysctls.

use crate::mech::slots::Slot;
use risetime_model::workload::Policy;

/// The mechanism.
pub(crate) struct Own;

impl Slot for Own {
    type OfMachine = ();
    type OfDomain = ();
    type OfCpu = ();
    type OfTask = Option<Box<Demoted>>;
}

/// A demotion of a task: its runtime is used up, and it is to be a normal task, or is.
pub(crate) struct Demoted {
    /// Policy before the demotion; `None`: the task still has it.
    pub(crate) was: Option<Policy>,
    /// True if the task had runtime again in its sleep, and is promoted when it wakes.
    pub(crate) due: bool,
}
