//! `prev`: a task stays where it was, and new tasks go where the fair class would put them.
//!
//! Not a kernel policy. It takes wakeup placement out of an experiment: what is left are
//! frequency and load balancing.

use super::{Descriptor, Placed, Placement, PlacementView, Waker, fork, within_affinity};
use crate::state::effects::Effects;
use risetime_kernel::units::TaskId;
use risetime_model::settings::Group;
use risetime_trace::Why;

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "prev",
    doc: "a waking task stays on its CPU",
    settings: Group::of(&[]),
    make: |_, _| Box::new(Prev),
};

struct Prev;

impl Placement for Prev {
    fn wake(
        &mut self,
        view: &PlacementView<'_>,
        task: TaskId,
        _waker: Waker,
        _: &mut Effects,
    ) -> Placed {
        let machine = view.machine;
        let cpu = machine.task(task).cpu;
        within_affinity(machine, task, Placed { cpu, why: Why::PrevCpu })
    }
    fn fork(&mut self, view: &PlacementView<'_>, task: TaskId) -> Placed {
        fork::idlest_cpu(view.machine, task)
    }
}
