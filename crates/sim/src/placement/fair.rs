//! `fair`: the fair class's own placement (`select_task_rq_fair`).
//!
//! ```text
//! wake   EAS on and nothing overutilized?  → find_energy_efficient_cpu
//!        else                              → select_idle_sibling around the previous CPU
//! fork   idlest group, then idlest CPU     → sched_balance_find_dst_cpu
//! ```
//!
//! A task is woken by a timer on its own CPU, so the waking and the previous CPU are the same
//! and `wake_affine` has nothing to decide.

use super::{Descriptor, Placed, Placement, Waker, energy, fork, idle_sibling, within_affinity};
use crate::machine::Machine;
use risetime_kernel::units::TaskId;

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "fair",
    doc: "energy-aware where that is possible, else an idle CPU nearby",
    make: || Box::new(Fair),
};

struct Fair;

impl Placement for Fair {
    fn wake(&mut self, machine: &Machine, task: TaskId, _waker: Waker) -> Placed {
        let root = &machine.root;
        let placed = if root.energy_aware && !root.overutilized {
            energy::find_energy_efficient_cpu(machine, task)
        } else {
            idle_sibling::select_idle_sibling(machine, task)
        };
        within_affinity(machine, task, placed)
    }
    fn fork(&mut self, machine: &Machine, task: TaskId) -> Placed {
        fork::idlest_cpu(machine, task)
    }
}
