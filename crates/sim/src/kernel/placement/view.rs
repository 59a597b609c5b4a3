//! Questions that a placement may ask about the machine.

use crate::mech::perf_domain::estimate;
use crate::state::machine::Machine;
use risetime_kernel::KernelRev;
use risetime_kernel::units::{Capacity, CpuId, Instant, TaskId, Util};
use risetime_model::Platform;

/// A placement's view of the machine, on which it changes nothing.
pub struct PlacementView<'a> {
    pub(crate) machine: &'a Machine,
}

impl PlacementView<'_> {
    /// The time.
    pub fn now(&self) -> Instant {
        self.machine.now
    }
    /// The kernel meant.
    pub fn rev(&self) -> KernelRev {
        self.machine.rev
    }
    /// The platform: domains, caches, cores, nodes.
    pub fn platform(&self) -> &Platform {
        &self.machine.platform
    }
    /// Iterates over the CPUs that are online, ascending.
    pub fn online(&self) -> impl Iterator<Item = CpuId> + '_ {
        self.machine.root.online.iter()
    }
    /// Iterates over the CPUs on which `task` may run now, ascending: online, and named by its affinity.
    pub fn allowed(&self, task: TaskId) -> impl Iterator<Item = CpuId> + '_ {
        self.online().filter(move |cpu| self.machine.is_cpu_allowed(task, *cpu))
    }
    /// The CPU on which `task` last was (`task_cpu`).
    pub fn prev_cpu(&self, task: TaskId) -> CpuId {
        self.machine.task(task).cpu
    }
    /// The util of `task` by which it is placed: what it had before it slept, where that is remembered (`task_util_est`).
    pub fn task_util(&self, task: TaskId) -> Util {
        self.machine.task_util_est(task)
    }
    /// Whether `cpu` has nothing to run (`idle_cpu`).
    pub fn is_idle(&self, cpu: CpuId) -> bool {
        self.machine.idle_cpu(cpu)
    }
    /// The number of fair tasks that `cpu` has to run.
    pub fn nr_running(&self, cpu: CpuId) -> usize {
        self.machine.cpu(cpu).h_nr_runnable()
    }
    /// The capacity of `cpu` at its highest frequency, 1024 that of the fastest CPU.
    pub fn capacity(&self, cpu: CpuId) -> Capacity {
        self.machine.cpu(cpu).capacity
    }
    /// The capacity that interrupts, limits and other classes leave of `cpu` (`capacity_of`).
    pub fn capacity_of(&self, cpu: CpuId) -> Capacity {
        self.machine.capacity_of(cpu)
    }
    /// The util of the fair tasks on `cpu` (`cpu_util_cfs`).
    pub fn util(&self, cpu: CpuId) -> Util {
        self.machine.cpu_util_cfs(cpu)
    }
    /// The util of the fair tasks on `cpu` without `task`, which left some there when it fell asleep
    /// (`cpu_util_without`).
    pub fn util_without(&self, cpu: CpuId, task: TaskId) -> Util {
        self.machine.cpu_util_without(cpu, task)
    }
    /// The capacity that `cpu` has to spare without `task`; 0 where there is none.
    pub fn spare(&self, cpu: CpuId, task: TaskId) -> Capacity {
        let (capacity, util) = (self.capacity_of(cpu), self.util_without(cpu, task));
        Capacity(capacity.0.saturating_sub(util.0))
    }
    /// Whether placement by energy is possible, and switched on (`sched_energy_enabled`).
    pub fn is_energy_aware(&self) -> bool {
        self.machine.is_energy_aware()
    }
    /// The energy that `cpu`'s domain would use more with the sleeping `task` there, in the energy model's own unit; `None`: it has no model.
    pub fn energy(&self, cpu: CpuId, task: TaskId) -> Option<u64> {
        estimate::added(self.machine, task, cpu)
    }
}
