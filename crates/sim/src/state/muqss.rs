//! What MuQSS keeps of the machine and of each CPU (`kernel/class/muqss.rs` has what it does, and the settings).

use risetime_kernel::muqss::{LoadAvg, SkipList, Tunables};
use risetime_kernel::units::{Capacity, CpuId, Instant, Span, TaskId, Util};

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
    /// It looks for who is to run, and takes whom it finds.
    pub(crate) looks: bool,
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

    /// What cpufreq knows of it: its load, as a share of the CPU.
    pub(crate) fn util(&self, capacity: Capacity) -> Util {
        Util(self.load.util() * capacity.0 / 1024)
    }
}
