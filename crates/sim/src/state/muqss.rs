//! What MuQSS keeps of the machine and of each CPU (`kernel/class/muqss.rs` has what it does, and the settings).

use crate::state::class::Class;
use crate::state::cpuset::CpuSet;
use crate::state::machine::Machine;
use risetime_kernel::muqss::{LoadAvg, SkipList, Tunables};
use risetime_kernel::units::{CpuId, Instant, Span, TaskId, Util};

/// As the settings say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Muqss {
    pub(crate) tunables: Tunables,
    /// For how long a look for the next task holds its runqueue's lock.
    pub(crate) holds_lock: Span,
}

/// What a CPU keeps for it.
pub(crate) struct MuqssRq {
    /// Who waits.
    pub(crate) queue: SkipList,
    /// Who runs; in no queue.
    pub(crate) curr: Option<TaskId>,
    /// Up to when what `curr` ran is accounted, in niffies.
    pub(crate) last_ran: u64,
    pub(crate) load: LoadAvg,
    /// When `hrexpiry_timer` expires, in the CPU's clock.
    pub(crate) expires: Option<Instant>,
    /// Until then a trylock gives up.
    pub(crate) locked_until: Instant,
    /// `rq_order`: all CPUs, this one first, the nearest next.
    pub(crate) order: Vec<CpuId>,
}

/// How far two CPUs are apart (`cpu_locality`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Locality {
    Same,
    Smt,
    Cache,
    Node,
    Distant,
}

impl MuqssRq {
    /// Tasks here, the running one counted (`rq_load`).
    pub(crate) fn nr_running(&self) -> usize {
        self.queue.entries() + usize::from(self.curr.is_some())
    }
}

impl Machine {
    /// `cpu_locality` of `b` as `a` sees it.
    pub(crate) fn locality(&self, a: CpuId, b: CpuId) -> Locality {
        let node = |cpu: CpuId| self.platform.topology.nodes.iter().position(|n| n.contains(&cpu));
        if a == b {
            Locality::Same
        } else if self.cpu(a).place.smt.contains(&b) {
            Locality::Smt
        } else if self.cpus_share_cache(a, b) {
            Locality::Cache
        } else if node(a) == node(b) {
            Locality::Node
        } else {
            Locality::Distant
        }
    }

    /// Whether a task is one of MuQSS's.
    pub(crate) fn is_muqss(&self, task: TaskId) -> bool {
        self.class_of(task) == Class::Muqss
    }

    /// `cpu_idle_map`: the CPUs whose current task is the idle one.
    pub(crate) fn cpu_idle_map(&self) -> CpuSet {
        self.root.online.iter().filter(|c| self.cpu(*c).curr.is_none()).collect()
    }

    /// What MuQSS has cpufreq know of a CPU: its load, as a share of the CPU.
    pub(crate) fn muqss_util(&self, rq: &MuqssRq, capacity: u64) -> Util {
        Util(rq.load.util() * capacity / 1024)
    }
}
