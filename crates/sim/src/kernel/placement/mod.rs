//! Placement: on which CPU a waking or new task is queued.
//!
//! A placement is one file and one line in [`REGISTRY`], or a plug-in that is in neither
//! ([`Custom`](crate::Custom)). It asks a view of the machine and returns a CPU with the reason, which may be its own
//! ([`Why::other`]); the engine moves the task and records both.

mod energy;
mod fair;
pub(crate) mod fork;
pub(crate) mod idle_sibling;
mod pixel;
mod prev;
mod view;
pub(crate) mod wake_affine;

pub use view::PlacementView;

pub use crate::state::effects::Effects;
pub use crate::state::hooks::{Placed, Waker};

use crate::state::machine::Machine;
use risetime_kernel::units::{CpuId, TaskId};
use risetime_model::Platform;
use risetime_model::settings::{Default, Group, Home, Name, Neutral, Param, Range, Settings};
use risetime_trace::Why;

/// A rule for choosing CPUs (`select_task_rq`). What it finds out on the way it notes in `effects`.
pub trait Placement {
    /// `waker` wakes a task that slept on its `task_cpu`.
    fn wake(
        &mut self,
        view: &PlacementView<'_>,
        task: TaskId,
        waker: Waker,
        effects: &mut Effects,
    ) -> Placed;
    /// Places a new task, created by one that runs on the first CPU.
    fn fork(&mut self, view: &PlacementView<'_>, task: TaskId) -> Placed;
}

/// One placement.
pub struct Descriptor {
    /// Name of the placement.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Settings of the placement, with their check.
    pub settings: Group,
    /// A new instance.
    pub make: fn(&Platform, &Settings) -> Box<dyn Placement>,
}

/// All placements.
pub const REGISTRY: &[Descriptor] = &[fair::DESCRIPTOR, prev::DESCRIPTOR, pixel::DESCRIPTOR];

/// Names of the placements, for the setting `placement`.
pub const NAMES: &[&str] = &{
    let (mut names, mut i) = ([""; REGISTRY.len()], 0);
    while i < names.len() {
        names[i] = REGISTRY[i].name;
        i += 1;
    }
    names
};

/// Choice of a CPU at wakeups.
pub const PLACEMENT: Name = Name::new(Param {
    name: "placement",
    doc: "choice of a CPU at wakeups: fair = EAS, else select_idle_sibling; prev = stay where it was; pixel = as the modules of Pixel phones (vendor_sched)",
    unit: "",
    range: Range::OneOf(NAMES),
    default: Default::Name("fair"),
    home: Home::Simulator(Neutral::Name("fair")),
});

/// The placement called `name`; settings were checked against [`NAMES`].
pub(crate) fn find(name: &str) -> &'static Descriptor {
    REGISTRY.iter().find(|d| d.name == name).unwrap_or(&REGISTRY[0])
}

/// The placements' settings, each group available only when its placement is in use.
pub(crate) fn groups() -> impl Iterator<Item = Group> {
    REGISTRY.iter().map(|d| d.settings.owned_by(&PLACEMENT, d.name))
}

/// A placement that is in no registry: where it names a CPU on which the task must not run, the kernel's fallback is taken.
pub(crate) struct Checked(pub(crate) Box<dyn Placement>);

impl Placement for Checked {
    fn wake(
        &mut self,
        view: &PlacementView<'_>,
        task: TaskId,
        waker: Waker,
        effects: &mut Effects,
    ) -> Placed {
        within_affinity(view.machine, task, self.0.wake(view, task, waker, effects))
    }
    fn fork(&mut self, view: &PlacementView<'_>, task: TaskId) -> Placed {
        within_affinity(view.machine, task, self.0.fork(view, task))
    }
}

/// `placed` if the task may run there, else [`select_fallback_rq`].
fn within_affinity(machine: &Machine, task: TaskId, placed: Placed) -> Placed {
    if machine.is_cpu_allowed(task, placed.cpu) {
        return placed;
    }
    Placed { cpu: select_fallback_rq(machine, task), why: Why::Affinity }
}

/// The first CPU a task may run on, in its old CPU's node if there is one (`select_fallback_rq`).
pub(crate) fn select_fallback_rq(machine: &Machine, task: TaskId) -> CpuId {
    let t = machine.task(task);
    let nodes = &machine.platform.topology.nodes;
    let own = nodes.iter().find(|n| n.contains(&t.cpu)).into_iter().flatten();
    let near = own.copied().find(|c| machine.is_cpu_allowed(task, *c));
    near.or(t.allowed.and(&machine.root.online).lowest()).unwrap_or(t.cpu)
}
