//! The questions to a mechanism of those who assemble the machine.

use crate::kernel::Kernel;
use crate::mech::slots::Slot;
use crate::state::machine::Machine;
use crate::time::queue::{Ev, Planned};
use risetime_kernel::units::{CpuId, Instant};
use risetime_model::settings::Group;
use risetime_model::{Experiment, InputError};

/// A mechanism, of which nobody who assembles the machine knows the name.
pub(crate) trait Mechanism: Slot {
    /// True if its settings are listed after those of costs.
    const LISTED_LATE: bool = false;

    /// Lists its settings, with their checks.
    fn groups() -> Vec<Group> {
        Vec::new()
    }
    /// Creates its state of the machine, which is complete but for the mechanisms.
    fn of_machine(_: &Experiment, _: &Machine) -> Self::OfMachine {
        Self::OfMachine::default()
    }
    /// Creates its state of the frequency domain of this number, before there is a machine.
    fn of_domain(_: &Experiment, _domain: usize) -> Self::OfDomain {
        Self::OfDomain::default()
    }
    /// Creates its state of a CPU, when those of lower numbers have theirs.
    fn of_cpu(_: &Experiment, _: &Machine, _: CpuId) -> Self::OfCpu {
        Self::OfCpu::default()
    }
    /// Whether it bends what a CPU needs, or limits it later, so that the short ways are closed ([`crate::state::plain`]).
    fn bends(_: &Machine) -> bool {
        false
    }
    /// Lists notes for the reader of a result.
    fn notes(_: &Experiment) -> Vec<String> {
        Vec::new()
    }
    /// Lists the signals that a simulation records with it, besides those of all.
    fn signals(_: &Experiment) -> &'static [&'static str] {
        &[]
    }
    /// Changes the machine before time 0, once there are tasks. True: the scheduling domains are to be built anew.
    ///
    /// Errors: what the workload asks for, and this machine has not.
    fn begin(_: &mut Kernel, _: &Experiment) -> Result<bool, InputError> {
        Ok(false)
    }
    /// Carries out what was planned for now. True: the scheduling domains are to be built anew.
    fn event(_: &mut Kernel, _: Planned) -> bool {
        false
    }
    /// Lists what is planned at the start, of its own accord.
    fn plans(_: &Experiment, _: &Machine) -> Vec<(Instant, Ev)> {
        Vec::new()
    }
}
