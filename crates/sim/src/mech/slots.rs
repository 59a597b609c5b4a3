//! Slots: what the mechanisms keep of the machine, of each frequency domain, CPU and task, a plain
//! field each.

use crate::mech::mechanisms;

/// The types of what a mechanism keeps; `()`: nothing.
pub(crate) trait Slot {
    /// State of the machine.
    type OfMachine: Default;
    /// State of a frequency domain.
    type OfDomain: Default;
    /// State of a CPU.
    type OfCpu: Default;
    /// State of a task.
    type OfTask: Default;

    /// Creates its state of a task that is forked.
    fn of_task(_: &Slots) -> Self::OfTask {
        Self::OfTask::default()
    }
}

macro_rules! slots {
    ($($name:ident,)*) => {
        /// The mechanisms, by the names of their folders.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(non_camel_case_types, dead_code, reason = "most mechanisms plan nothing")]
        pub(crate) enum Id {
            $($name,)*
        }

        /// State of the mechanisms, of the machine.
        #[derive(Default)]
        #[allow(dead_code, reason = "some mechanisms keep nothing there: a field without size")]
        pub(crate) struct Slots {
            $(pub(crate) $name: <crate::mech::$name::state::Own as Slot>::OfMachine,)*
        }

        /// State of the mechanisms, of one frequency domain.
        #[derive(Default)]
        #[allow(dead_code, reason = "most mechanisms keep nothing there: a field without size")]
        pub(crate) struct DomainSlots {
            $(pub(crate) $name: <crate::mech::$name::state::Own as Slot>::OfDomain,)*
        }

        /// State of the mechanisms, of one CPU.
        #[derive(Default)]
        #[allow(dead_code, reason = "most mechanisms keep nothing there: a field without size")]
        pub(crate) struct CpuSlots {
            $(pub(crate) $name: <crate::mech::$name::state::Own as Slot>::OfCpu,)*
        }

        /// State of the mechanisms, of one task.
        #[allow(dead_code, reason = "most mechanisms keep nothing there: a field without size")]
        pub(crate) struct TaskSlots {
            $(pub(crate) $name: <crate::mech::$name::state::Own as Slot>::OfTask,)*
        }

        impl TaskSlots {
            /// Creates the state of a task that is forked.
            pub(crate) fn of(slots: &Slots) -> TaskSlots {
                TaskSlots { $($name: <crate::mech::$name::state::Own as Slot>::of_task(slots),)* }
            }
        }
    };
}
mechanisms!(slots);
