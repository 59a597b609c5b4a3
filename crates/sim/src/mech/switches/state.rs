//! The scheduler's switches, as the settings say ([`super`] has those).

use crate::mech::slots::Slot;
use risetime_kernel::switches::Switches;

/// The mechanism.
pub(crate) struct Own;

impl Slot for Own {
    type OfMachine = Switches;
    type OfCpu = ();
    type OfTask = ();
    type OfDomain = ();
}
