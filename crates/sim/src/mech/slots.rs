//! Slots: what the mechanisms keep of the machine, and of each CPU, a plain field each.

use crate::mech::mechanisms;

/// The types of what a mechanism keeps; `()`: nothing.
pub(crate) trait Slot {
    /// State of the machine.
    type OfMachine: Default;
    /// State of a CPU.
    type OfCpu: Default;
}

macro_rules! slots {
    ($($name:ident,)*) => {
        /// State of the mechanisms, of the machine.
        #[derive(Default)]
        #[allow(dead_code, reason = "some mechanisms keep nothing there: a field without size")]
        pub(crate) struct Slots {
            $(pub(crate) $name: <crate::mech::$name::state::Own as Slot>::OfMachine,)*
        }

        /// State of the mechanisms, of one CPU.
        #[derive(Default)]
        #[allow(dead_code, reason = "most mechanisms keep nothing there: a field without size")]
        pub(crate) struct CpuSlots {
            $(pub(crate) $name: <crate::mech::$name::state::Own as Slot>::OfCpu,)*
        }
    };
}
mechanisms!(slots);
