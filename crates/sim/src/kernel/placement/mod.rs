//! Placement: on which CPU a waking or new task is queued.
//!
//! A placement is one file and one line in [`REGISTRY`]. It reads the machine through a shared
//! borrow and returns a CPU with the reason; the engine moves the task and records both.

mod energy;
mod fair;
pub(crate) mod fork;
pub(crate) mod idle_sibling;
mod prev;
pub(crate) mod wake_affine;

pub use crate::state::effects::Effects;
pub use crate::state::hooks::{Placed, Waker};

use crate::state::machine::Machine;
use risetime_kernel::units::{CpuId, TaskId};
use risetime_model::settings::{Default, Home, Name, Neutral, Param, Range};
use risetime_trace::Why;

/// A rule for choosing CPUs (`select_task_rq`). What it finds out on the way it notes in `effects`.
pub trait Placement {
    /// `waker` wakes a task that slept on its `task_cpu`.
    fn wake(
        &mut self,
        machine: &Machine,
        task: TaskId,
        waker: Waker,
        effects: &mut Effects,
    ) -> Placed;
    /// Places a new task, created by one that runs on the first CPU.
    fn fork(&mut self, machine: &Machine, task: TaskId) -> Placed;
}

/// One placement.
pub struct Descriptor {
    /// Name of the placement.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// A new instance.
    pub make: fn() -> Box<dyn Placement>,
}

/// All placements.
pub const REGISTRY: &[Descriptor] = &[fair::DESCRIPTOR, prev::DESCRIPTOR];

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
    doc: "choice of a CPU at wakeups: fair = EAS, else select_idle_sibling; prev = stay where it was",
    unit: "",
    range: Range::OneOf(NAMES),
    default: Default::Name("fair"),
    home: Home::Simulator(Neutral::Name("fair")),
});

/// The placement called `name`; settings were checked against [`NAMES`].
pub(crate) fn find(name: &str) -> &'static Descriptor {
    REGISTRY.iter().find(|d| d.name == name).unwrap_or(&REGISTRY[0])
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
