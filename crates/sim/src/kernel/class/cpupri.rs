//! Place of a CPU among priorities, and the lowest CPUs. Source: kernel/sched/cpupri.c.

use crate::state::cpuset::CpuSet;
use crate::state::hooks::Placed;
use crate::state::machine::Machine;
use risetime_kernel::rt::CpuPri;
use risetime_kernel::rt::rt_task_fits_capacity;
use risetime_kernel::units::CpuId;
use risetime_kernel::units::TaskId;
use risetime_trace::Why;
/// The CPUs of one level.
type Level = Option<(CpuPri, CpuSet)>;

impl Machine {
    /// The priority at which a CPU stands (`cpupri_set`).
    pub(crate) fn cpupri(&self, cpu: CpuId) -> CpuPri {
        let c = self.cpu(cpu);
        match c.rt.first() {
            _ if !c.dl.is_empty() => CpuPri::Higher,
            Some((priority, _)) if !c.rt_throttle.throttled => CpuPri::Rt(priority),
            _ => CpuPri::Normal,
        }
    }

    /// `rt_task_fits_capacity`; only machines of unequal capacity ask.
    pub(crate) fn rt_fits(&self, task: TaskId, cpu: CpuId) -> bool {
        let clamps = self.task(task).clamps();
        !self.root.asym_cpucap
            || rt_task_fits_capacity(clamps.min, clamps.max, self.cpu(cpu).capacity)
    }

    /// `cpupri_find_fitness`: the CPUs of the lowest level below the task's at which there are any
    /// that fit it, else at which there are any; `taken` is out of the question.
    pub(crate) fn cpupri_find(&self, task: TaskId, taken: Option<CpuId>) -> Option<CpuSet> {
        let own = match self.rt_rank(task) {
            u8::MAX => CpuPri::Higher,
            priority => CpuPri::Rt(priority),
        };
        // (level, set) of the lowest so far, among all and among those that fit.
        let (mut any, mut fitting): (Level, Level) = (None, None);
        let add = |best: &mut Level, level: CpuPri, cpu: CpuId| match best {
            Some((lowest, set)) if *lowest == level => set.insert(cpu),
            Some((lowest, _)) if *lowest < level => {}
            _ => *best = Some((level, [cpu].into_iter().collect())),
        };
        for cpu in self.task(task).allowed.iter().filter(|cpu| Some(*cpu) != taken) {
            let level = self.cpupri(cpu);
            if level < own {
                add(&mut any, level, cpu);
                if self.rt_fits(task, cpu) {
                    add(&mut fitting, level, cpu);
                }
            }
        }
        fitting.or(any).map(|(_, set)| set)
    }

    /// `placed`, or the lowest CPU that the task may run on.
    pub(crate) fn within_allowed(&self, task: TaskId, placed: Placed) -> Placed {
        let allowed = &self.task(task).allowed;
        match allowed.lowest() {
            Some(cpu) if !allowed.contains(placed.cpu) => Placed { cpu, why: Why::Affinity },
            _ => placed,
        }
    }
}
