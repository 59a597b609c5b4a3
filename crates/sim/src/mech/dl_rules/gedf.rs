//! Global EDF: what the kernel does ([`crate::kernel::class::dl_push`]).
//!
//! ```text
//! m CPUs ── the m earliest deadlines of the machine run, wherever that takes them
//! ```
//!
//! On CPUs of equal speed tasks of Σ u ≤ m are late by a bounded time at most, and may be late from Σ u > 1 on (Dhall's effect).
//! Source: kernel/sched/deadline.c; tardiness: U. Devi, J. Anderson, "Tardiness bounds under global EDF scheduling on a
//! multiprocessor" (RTSS 2005).

use crate::kernel::class::dl_push::select_task_rq_dl;
use crate::state::class::DlPlacement;
use crate::state::effects::Effects;
use crate::state::hooks::Placed;
use crate::state::machine::Machine;
use risetime_kernel::units::{CpuId, TaskId};

/// The stock kernel's.
pub(crate) struct GlobalEdf;

impl DlPlacement for GlobalEdf {
    fn about(&self) -> (&'static str, &'static str) {
        ("gedf", "global EDF: the earliest deadlines of the machine run")
    }
    fn wake(&self, m: &Machine, task: TaskId, this_cpu: CpuId, effects: &mut Effects) -> Placed {
        select_task_rq_dl(m, task, this_cpu, effects)
    }
}
