//! Demotion keeps what a demoted task was with the task ([`Demoted`](crate::state::class::Demoted)), and its switch among the sysctls.

use crate::mech::slots::Slot;

/// The mechanism.
pub(crate) struct Own;

impl Slot for Own {
    type OfMachine = ();
    type OfCpu = ();
}
