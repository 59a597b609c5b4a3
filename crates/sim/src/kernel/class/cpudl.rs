//! Which CPUs a deadline task may go to. Source: kernel/sched/cpudeadline.c, deadline.c.

use crate::state::cpuset::CpuSet;
use crate::state::machine::Machine;
use risetime_kernel::units::Capacity;
use risetime_kernel::units::CpuId;
use risetime_kernel::units::Instant;
use risetime_kernel::units::TaskId;
impl Machine {
    /// `cpudl_find`: the CPUs that `task` may go to.
    pub(crate) fn cpudl_find(&self, task: TaskId) -> CpuSet {
        let t = self.task(task);
        let (mut free, mut fitting) = (CpuSet::EMPTY, CpuSet::EMPTY);
        let mut biggest: Option<(Capacity, CpuId)> = None;
        let mut latest: Option<(Instant, CpuId)> = None;
        for cpu in (0..self.cpus.len() as u32).map(CpuId) {
            let (c, allowed) = (self.cpu(cpu), t.allowed.contains(cpu));
            // Stock: every CPU is within reach.
            let reach = self.dl_moves(task, cpu);
            match c.dl.earliest() {
                None if allowed && reach => {
                    free.insert(cpu);
                    if !self.root.asym_cpucap || self.dl(task).fits_capacity(c.capacity) {
                        fitting.insert(cpu);
                    } else if biggest
                        .is_none_or(|(b, _)| c.capacity > b || (cpu == t.cpu && c.capacity == b))
                    {
                        biggest = Some((c.capacity, cpu));
                    }
                }
                Some(deadline) if reach && latest.is_none_or(|(l, _)| deadline > l) => {
                    latest = Some((deadline, cpu));
                }
                _ => {}
            }
        }
        if !fitting.is_empty() {
            return fitting;
        }
        if !free.is_empty() {
            return biggest.map(|(_, cpu)| cpu).into_iter().collect();
        }
        let later =
            latest.filter(|(l, cpu)| t.allowed.contains(*cpu) && self.dl(task).deadline < *l);
        later.map(|(_, cpu)| cpu).into_iter().collect()
    }

    /// `dl_task_is_earliest_deadline`: would `task` be the first of `cpu`?
    pub(crate) fn dl_is_earliest(&self, task: TaskId, cpu: CpuId) -> bool {
        self.cpu(cpu).dl.earliest().is_none_or(|earliest| self.dl(task).deadline < earliest)
    }
}
