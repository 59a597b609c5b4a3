//! APEDF, adaptive partitioned EDF: tasks stay where they are as long as EDF's test holds there.
//!
//! ```text
//! wakes, or asks ─> Σ u of those that belong to its CPU, itself among them, within the limit? ── yes ─> stays
//!                                      └ no ─> a CPU on which the test holds with it, by first or worst fit
//!                                                  └ none ─> as under global EDF
//! waits ─────────> on a CPU whose test holds: nobody moves; on any other: pushed and pulled as under global EDF
//! ```
//!
//! A set that gets a CPU each misses nothing, migrates once at most for each task, and tasks need ask for nothing that they
//! do not ask SCHED_DEADLINE for. What gets none is late by a time that is bounded by experience (the paper's word), and so may be
//! those on whose CPUs it runs. With DVFS: since the sums are those of CPUs, `dl_frequency` has something to go by (`admitted`:
//! the frequency at which the test still holds; `grub-pa`: that of those that are active).
//!
//! Source: L. Abeni, T. Cucinotta, "Adaptive partitioning of real-time tasks on multiple processors" (SAC 2020), and "EDF scheduling of
//! real-time tasks on multiple cores: adaptive partitioning vs. global scheduling" (ACM SIGAPP ACR 20(2), 2020): their abstracts, and
//! the report of OSPM 2023.
//!
//! DEVIATES(apedf-details): the papers' pseudo-code was not at hand. What a task does that finds no CPU (the kernel's own push and
//! pull, from and to every CPU), and that unequal CPUs are tried from the smallest on, is chosen here. It bears on sets that are not
//! partitioned only, and on which CPUs others get.

use crate::kernel::class::dl_push::select_task_rq_dl;
use crate::state::class::DlPlacement;
use crate::state::effects::Effects;
use crate::state::hooks::Placed;
use crate::state::machine::Machine;
use risetime_kernel::deadline::DlEntity;
use risetime_kernel::units::{CpuId, TaskId};
use risetime_trace::Why;

/// By which fit.
pub(super) struct Adaptive {
    name: &'static str,
    doc: &'static str,
    worst: bool,
}

pub(super) const FIRST_FIT: Adaptive = Adaptive {
    name: "apedf-ff",
    doc: "adaptive partitioned EDF: moves where EDF's test fails, to the first CPU on which it holds",
    worst: false,
};

pub(super) const WORST_FIT: Adaptive = Adaptive {
    name: "apedf-wf",
    doc: "adaptive partitioned EDF: moves where EDF's test fails, to the CPU with most room",
    worst: true,
};

impl Adaptive {
    /// Where it passes with `bw`, of which `counted` is in the sum of its own CPU already.
    fn place(&self, m: &Machine, task: TaskId, bw: u64, counted: u64) -> Option<CpuId> {
        let own = m.task(task).cpu;
        let sum = |cpu: CpuId| {
            let all = m.cpu(cpu).dl.this_bw;
            if cpu == own { all.saturating_sub(counted) } else { all }
        };
        let fits = |cpu: &CpuId| m.dl_fits(*cpu, sum(*cpu), bw);
        if m.is_cpu_allowed(task, own) && fits(&own) {
            return Some(own);
        }
        let mut fitting = m.dl_smallest_first(task).into_iter().filter(fits);
        if !self.worst {
            return fitting.next();
        }
        fitting.rev().max_by_key(|cpu| m.dl_room(*cpu, sum(*cpu)))
    }
}

impl DlPlacement for Adaptive {
    fn about(&self) -> (&'static str, &'static str) {
        (self.name, self.doc)
    }
    fn enter(&self, m: &Machine, task: TaskId, asked: &DlEntity) -> Option<CpuId> {
        let bw = asked.bw;
        // Another reservation than the one it has counts in place of it.
        let counted = if m.dl_counts(task) { m.dl(task).bw } else { 0 };
        Some(self.place(m, task, bw, counted).unwrap_or(m.task(task).cpu))
    }
    fn wake(&self, m: &Machine, task: TaskId, this_cpu: CpuId, effects: &mut Effects) -> Placed {
        let bw = m.dl(task).bw;
        match self.place(m, task, bw, bw) {
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
