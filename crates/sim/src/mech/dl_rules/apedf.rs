//! APEDF, adaptive partitioned EDF: tasks stay where they are as long as EDF's test holds there.
//!
//! ```text
//! asks ──> in time on its CPU, beside all that belong there? ── yes ─> stays
//!              └ no ─> a CPU on which it is, by first or worst fit ── none ─> refused
//! wakes ─> as where it asks; none (a cap that came later) ─> as under global EDF, and what waits there is pushed and pulled so
//! ```
//!
//! What is admitted has a CPU each on which its test holds: it misses nothing, and migrates once at most for each task, as long as no CPU loses
//! what was counted on. On m equal CPUs any set is taken, in whatever order it asks, of Σ u ≤ (β·m + 1) / (β + 1) by first fit, and of
//! Σ u ≤ m - (m - 1)·u_max by worst fit, β = ⌊1 / u_max⌋, all of what a CPU may reserve (J. López, J. Díaz, D. García, "Utilization bounds for EDF
//! scheduling on real-time multiprocessor systems", Real-Time Systems 28, 2004); for unequal ones no such bound is known here, and none is used:
//! what is packed is what is taken. With DVFS: since the sums are those of CPUs, `dl_frequency` has something to go by (`admitted`: the
//! frequency at which the test still holds; `grub-pa`: that of those that are active).
//!
//! Source: L. Abeni, T. Cucinotta, "Adaptive partitioning of real-time tasks on multiple processors" (SAC 2020), and "EDF scheduling of
//! real-time tasks on multiple cores: adaptive partitioning vs. global scheduling" (ACM SIGAPP ACR 20(2), 2020): their abstracts, and
//! the report of OSPM 2023.
//!
//! DEVIATES(apedf-details): the papers' pseudo-code was not at hand. Theirs also takes sets that it cannot partition, as soft real-time under
//! global EDF; here these are refused, as OSPM 2023's report has it ("when proper admission conditions are met"), and gedf takes them. That
//! unequal CPUs are tried from the smallest on is chosen here, too. It bears on sets that have no partition, and on which CPUs others get.

use super::partitioned::fitting;
use crate::kernel::class::dl_push::select_task_rq_dl;
use crate::state::class::{DlPlacement, Fit};
use crate::state::effects::Effects;
use crate::state::hooks::Placed;
use crate::state::machine::Machine;
use risetime_kernel::deadline::DlEntity;
use risetime_kernel::units::{CpuId, TaskId};
use risetime_trace::Why;

/// Adaptive partitioned EDF with this fit.
pub(crate) struct Adaptive {
    name: &'static str,
    doc: &'static str,
    fit: Fit,
}

pub(crate) const FIRST_FIT: Adaptive = Adaptive {
    name: "apedf-ff",
    doc: "adaptive partitioned EDF: moves where EDF's test fails, to the first CPU on which it holds",
    fit: Fit::First,
};

pub(crate) const WORST_FIT: Adaptive = Adaptive {
    name: "apedf-wf",
    doc: "adaptive partitioned EDF: moves where EDF's test fails, to the CPU with most room",
    fit: Fit::Worst,
};

impl Adaptive {
    /// The CPU on which the task is in time with `asked`; `None`: there is none.
    fn place(&self, m: &Machine, task: TaskId, asked: &DlEntity) -> Option<CpuId> {
        let own = m.task(task).cpu;
        let stays = m.is_cpu_allowed(task, own) && m.dl_holds(own, task, asked);
        if stays { Some(own) } else { fitting(m, task, asked, self.fit) }
    }
}

impl DlPlacement for Adaptive {
    fn about(&self) -> (&'static str, &'static str) {
        (self.name, self.doc)
    }
    fn enter(&self, m: &Machine, task: TaskId, asked: &DlEntity) -> Option<CpuId> {
        self.place(m, task, asked)
    }
    fn adapts(&self) -> bool {
        true
    }
    fn wake(&self, m: &Machine, task: TaskId, this_cpu: CpuId, effects: &mut Effects) -> Placed {
        match self.place(m, task, m.dl(task)) {
            Some(cpu) if cpu == m.task(task).cpu => Placed { cpu, why: Why::PrevCpu },
            Some(cpu) => Placed { cpu, why: Why::DlFits },
            None => select_task_rq_dl(m, task, this_cpu, effects),
        }
    }
    fn moves(&self, m: &Machine, task: TaskId, _: CpuId) -> bool {
        let own = m.task(task).cpu;
        !m.dl_fits(own, m.cpu(own).dl.this_bw, 0)
    }
}
