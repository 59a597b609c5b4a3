//! `fair`: the fair class's own placement (`select_task_rq_fair`).
//!
//! ```text
//! wake   EAS on and nothing overutilized?          → find_energy_efficient_cpu
//!        else, where waker and previous CPU share a domain (not wake_wide):
//!             wake_affine chooses between the two  → select_idle_sibling around that one
//!        else                                      → select_idle_sibling around the previous CPU
//! fork   idlest group, then idlest CPU             → sched_balance_find_dst_cpu
//! ```
//!
//! A task that may run on one CPU only is not asked about (`select_task_rq`). Where capacities differ,
//! the caller has aged the task's signals before (`sync_entity_load_avg`).
//! Source: kernel/sched/fair.c.

use super::wake_affine::{wake_affine, wake_wide};
use super::{
    Descriptor, Placed, Placement, PlacementView, Waker, energy, fork, idle_sibling,
    within_affinity,
};
use crate::state::effects::Effects;
use crate::state::machine::Machine;
use crate::state::topology::sd;
use risetime_kernel::units::{CpuId, TaskId};
use risetime_model::settings::Group;
use risetime_trace::Why;

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "fair",
    doc: "energy-aware where that is possible, else an idle CPU near the previous or the waker's",
    settings: Group::of(&[]),
    make: |_, _| Box::new(Fair),
};

pub(super) struct Fair;

impl Placement for Fair {
    fn wake(
        &mut self,
        view: &PlacementView<'_>,
        task: TaskId,
        waker: Waker,
        effects: &mut Effects,
    ) -> Placed {
        let machine = view.machine;
        let prev = machine.task(task).cpu;
        let root = &machine.root;
        if machine.is_energy_aware()
            && !root.overutilized
            && let Some(placed) =
                energy::find_energy_efficient_cpu(machine, task, waker.cpu, effects)
        {
            return within_affinity(machine, task, placed);
        }
        let target = affine_target(machine, task, waker).unwrap_or(prev);
        let cpu = idle_sibling::select_idle_sibling(machine, task, prev, target, effects);
        let why = match cpu {
            _ if cpu == prev => Why::PrevCpu,
            _ if cpu == target => Why::WakeAffine,
            _ => Why::IdleSibling,
        };
        within_affinity(machine, task, Placed { cpu, why })
    }
    fn fork(&mut self, view: &PlacementView<'_>, task: TaskId) -> Placed {
        fork::idlest_cpu(view.machine, task)
    }
}

/// The CPU that `wake_affine` chooses, where it is asked: in the waker's smallest domain that also
/// holds the previous CPU.
fn affine_target(m: &Machine, task: TaskId, waker: Waker) -> Option<CpuId> {
    let t = m.task(task);
    if waker.cpu == t.cpu || !t.allowed.contains(waker.cpu) || wake_wide(m, task, waker) {
        return None;
    }
    let shared = m.cpu(waker.cpu).sched_domains.iter();
    let domain = shared.into_iter().find(|d| d.has(sd::WAKE_AFFINE) && d.span.contains(t.cpu))?;
    Some(wake_affine(m, domain, task, waker))
}
