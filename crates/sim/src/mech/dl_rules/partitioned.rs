//! Partitioned EDF: a CPU for good, given when the reservation is asked for.
//!
//! ```text
//! asks ─> the CPUs it may run on on which EDF's test holds with it ─> first fit: the smallest, then the first
//!              └ none: refused                                        worst fit: the one with most room
//! ```
//!
//! The test counts what was given a CPU, also while a task is on its way there, and one that leaves until its 0-lag
//! time. A task that asks on another CPU moves at once; if its affinity changes or its CPU goes offline, it goes where it may.
//! With the test on each CPU, EDF misses nothing (C. Liu, J. Layland, 1973); first fit admits every set of Σ u ≤ (m + 1) / 2 on equal CPUs
//! (J. López et al., "Utilization bounds for EDF scheduling on real-time multiprocessor systems", 2004).
//!
//! Where a deadline comes before the end of its period, what is due within any time has to fit, too ([`risetime_kernel::demand`]): sums of
//! utilisations, the kernel's, do not see that. With priorities in place of deadlines (`dl_as`): [`super::fixed`].
//!
//! Leaves out: tasks are taken in the order in which they ask, so that it is not first-fit decreasing; `risetime deploy plan`
//! partitions off-line.

use crate::kernel::class::dl_push::select_task_rq_dl;
use crate::state::class::{DlPlacement, Fit};
use crate::state::effects::Effects;
use crate::state::hooks::Placed;
use crate::state::machine::Machine;
use risetime_kernel::deadline::DlEntity;
use risetime_kernel::units::{CpuId, TaskId};
use risetime_trace::Why;

/// Partitioned EDF with this fit.
pub(crate) struct Partitioned {
    name: &'static str,
    doc: &'static str,
    fit: Fit,
}

pub(crate) const FIRST_FIT: Partitioned = Partitioned {
    name: "partitioned-ff",
    doc: "partitioned EDF: a CPU for good, the first on which its test holds",
    fit: Fit::First,
};

pub(crate) const WORST_FIT: Partitioned = Partitioned {
    name: "partitioned-wf",
    doc: "partitioned EDF: a CPU for good, the one with most room",
    fit: Fit::Worst,
};

/// The CPU on which `asked` is in time beside all that belong there, by that fit.
pub(crate) fn fitting(m: &Machine, task: TaskId, asked: &DlEntity, fit: Fit) -> Option<CpuId> {
    let all = m.dl_smallest_first(task);
    let mut fitting = all.into_iter().filter(|cpu| m.dl_holds(*cpu, task, asked));
    match fit {
        Fit::First => fitting.next(),
        // Of equals the first.
        Fit::Worst => fitting.rev().max_by_key(|cpu| m.dl_room(*cpu, m.dl_homed(*cpu, task))),
    }
}

impl DlPlacement for Partitioned {
    fn about(&self) -> (&'static str, &'static str) {
        (self.name, self.doc)
    }
    fn enter(&self, m: &Machine, task: TaskId, asked: &DlEntity) -> Option<CpuId> {
        fitting(m, task, asked, self.fit)
    }
    fn fit(&self) -> Option<Fit> {
        Some(self.fit)
    }
    fn wake(&self, m: &Machine, task: TaskId, this_cpu: CpuId, effects: &mut Effects) -> Placed {
        match m.task(task).slots.dl_rules.home.filter(|home| m.is_cpu_allowed(task, *home)) {
            Some(cpu) if cpu == m.task(task).cpu => Placed { cpu, why: Why::PrevCpu },
            Some(cpu) => Placed { cpu, why: Why::DlFits },
            None => select_task_rq_dl(m, task, this_cpu, effects),
        }
    }
    fn moves(&self, m: &Machine, task: TaskId, to: CpuId) -> bool {
        let home = m.task(task).slots.dl_rules.home.filter(|home| m.is_cpu_allowed(task, *home));
        home.is_none_or(|home| home == to)
    }
}
