//! `prev`: a task stays where it was, and new tasks go where the fair class would put them.
//!
//! Not a kernel policy. It takes wakeup placement out of an experiment: what is left are
//! frequency and load balancing.

use super::{Descriptor, Placed, Placement, Waker, fork, within_affinity};
use crate::state::effects::Effects;
use crate::state::machine::Machine;
use risetime_kernel::units::TaskId;
use risetime_trace::Why;

pub(super) const DESCRIPTOR: Descriptor =
    Descriptor { name: "prev", doc: "a waking task stays on its CPU", make: || Box::new(Prev) };

struct Prev;

impl Placement for Prev {
    fn wake(&mut self, machine: &Machine, task: TaskId, _waker: Waker, _: &mut Effects) -> Placed {
        let cpu = machine.task(task).cpu;
        within_affinity(machine, task, Placed { cpu, why: Why::PrevCpu })
    }
    fn fork(&mut self, machine: &Machine, task: TaskId) -> Placed {
        fork::idlest_cpu(machine, task)
    }
}
