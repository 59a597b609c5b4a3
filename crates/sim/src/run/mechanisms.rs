//! Assembly of the mechanisms ([`crate::mech`]), whichever there are.

use crate::kernel::Kernel;
use crate::mech::mechanism::Mechanism;
use crate::mech::mechanisms;
use crate::mech::slots::{CpuSlots, DomainSlots, Id, Slots};
use crate::state::machine::Machine;
use crate::time::queue::{Ev, Planned};
use risetime_kernel::units::{CpuId, Instant};
use risetime_model::settings::Group;
use risetime_model::{Experiment, InputError};

macro_rules! of_all {
    ($($name:ident,)*) => {
        /// Lists the settings of the mechanisms that are listed before those of costs, or `late`.
        pub(crate) fn groups(late: bool) -> Vec<Group> {
            let mut all = Vec::new();
            $(if crate::mech::$name::state::Own::LISTED_LATE == late {
                all.extend(crate::mech::$name::state::Own::groups());
            })*
            all
        }

        /// Creates the state of all mechanisms, of the machine.
        pub(crate) fn of_machine(e: &Experiment, m: &Machine) -> Slots {
            Slots { $($name: crate::mech::$name::state::Own::of_machine(e, m),)* }
        }

        /// Creates the state of all mechanisms, of one frequency domain.
        pub(crate) fn of_domain(e: &Experiment, domain: usize) -> DomainSlots {
            DomainSlots { $($name: crate::mech::$name::state::Own::of_domain(e, domain),)* }
        }

        /// Creates the state of all mechanisms, of one CPU.
        pub(crate) fn of_cpu(e: &Experiment, m: &Machine, cpu: CpuId) -> CpuSlots {
            CpuSlots { $($name: crate::mech::$name::state::Own::of_cpu(e, m, cpu),)* }
        }

        /// Whether some mechanism closes the short ways.
        pub(crate) fn bend(m: &Machine) -> bool {
            [$(crate::mech::$name::state::Own::bends(m)),*].contains(&true)
        }

        /// Lists the notes of all mechanisms.
        pub(crate) fn notes(e: &Experiment) -> Vec<String> {
            [$(crate::mech::$name::state::Own::notes(e)),*].concat()
        }

        /// Lists the signals that the mechanisms record.
        pub(crate) fn signals(e: &Experiment) -> Vec<&'static str> {
            [$(crate::mech::$name::state::Own::signals(e)),*].concat()
        }

        /// Lets each mechanism do what it has to before time 0. True: the scheduling domains are to be built anew.
        ///
        /// Errors: those of the mechanisms.
        pub(crate) fn begin(k: &mut Kernel, e: &Experiment) -> Result<bool, InputError> {
            let mut rebuild = false;
            $(rebuild |= crate::mech::$name::state::Own::begin(k, e)?;)*
            Ok(rebuild)
        }

        /// Lets a mechanism carry out what it has planned for now. True: the scheduling domains are
        /// to be built anew.
        pub(crate) fn event(k: &mut Kernel, planned: Planned) -> bool {
            match planned.of {
                $(Id::$name => crate::mech::$name::state::Own::event(k, planned),)*
            }
        }

        /// Lists what the mechanisms plan at the start.
        pub(crate) fn plans(e: &Experiment, m: &Machine) -> Vec<(Instant, Ev)> {
            [$(crate::mech::$name::state::Own::plans(e, m)),*].concat()
        }
    };
}
mechanisms!(of_all);
