//! Set of CPUs that a deadline task may go to. Source: kernel/sched/cpudeadline.c, deadline.c.

use crate::state::cpuset::CpuSet;
use crate::state::machine::Machine;
use risetime_kernel::units::Capacity;
use risetime_kernel::units::CpuId;
use risetime_kernel::units::Instant;
use risetime_kernel::units::TaskId;
impl Machine {
    /// `cpudl_find`: the CPUs that `task` may go to.
    pub(crate) fn cpudl_find(&self, task: TaskId) -> CpuSet {
        let (t, dl) = (self.task(task), self.dl(task));
        let mut fitting = CpuSet::EMPTY;
        let mut biggest: Option<(Capacity, CpuId)> = None;
        let mut latest: (Instant, Option<CpuId>) = (dl.deadline, None);
        for (c, cpu) in self.cpus.iter().zip((0..).map(CpuId)) {
            // Stock: every CPU is within reach (`dl_moves`).
            match c.dl.earliest() {
                None if t.allowed.contains(cpu) && self.dl_moves(task, cpu) => {
                    if !self.root.asym_cpucap || dl.fits_capacity(c.capacity) {
                        fitting.insert(cpu);
                    } else if biggest
                        .is_none_or(|(b, _)| c.capacity > b || (cpu == t.cpu && c.capacity == b))
                    {
                        biggest = Some((c.capacity, cpu));
                    }
                }
                Some(deadline) if deadline > latest.0 && self.dl_moves(task, cpu) => {
                    latest = (deadline, Some(cpu));
                }
                _ => {}
            }
        }
        if fitting.is_empty() {
            let later = latest.1.filter(|cpu| t.allowed.contains(*cpu));
            let only = biggest.map(|(_, cpu)| cpu).or(later);
            only.into_iter().for_each(|cpu| fitting.insert(cpu));
        }
        fitting
    }

    /// `dl_task_is_earliest_deadline`: would `task` be the first of `cpu`?
    pub(crate) fn dl_is_earliest(&self, task: TaskId, cpu: CpuId) -> bool {
        self.cpu(cpu).dl.earliest().is_none_or(|earliest| self.dl(task).deadline < earliest)
    }
}
