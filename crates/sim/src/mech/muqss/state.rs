//! State of MuQSS in the machine and on each CPU ([`super`] has what it does, and the
//! settings).

use crate::mech::slots::Slot;
use risetime_kernel::muqss::{LoadAvg, SkipList, Tunables};
use risetime_kernel::units::{Capacity, CpuId, Instant, Span, TaskId, Util};

/// The mechanism.
pub(crate) struct Own;

impl Slot for Own {
    type OfMachine = Option<Muqss>;
    type OfDomain = ();
    type OfCpu = Option<Box<MuqssRq>>;
    type OfTask = ();
}

/// Settings of MuQSS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Muqss {
    pub(crate) tunables: Tunables,
    /// Time for which a look for the next task holds its runqueue's lock.
    pub(crate) holds_lock: Span,
}

/// State that a CPU keeps for MuQSS.
pub(crate) struct MuqssRq {
    /// Tasks that wait.
    pub(crate) queue: SkipList,
    /// Task that runs; in no queue.
    pub(crate) curr: Option<TaskId>,
    /// Time up to which what `curr` ran is accounted, in niffies.
    pub(crate) last_ran: u64,
    pub(crate) load: LoadAvg,
    /// Time at which `hrexpiry_timer` expires, in the CPU's clock.
    pub(crate) expires: Option<Instant>,
    /// Time until which a trylock gives up.
    pub(crate) locked_until: Instant,
    /// True while the CPU looks for the next task, and takes the one it finds.
    pub(crate) looks: bool,
    /// `rq_order`: all CPUs, this one first, the nearest next.
    pub(crate) order: Vec<CpuId>,
}

/// Distance of two CPUs (`cpu_locality`).
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

    /// The util that cpufreq knows of the CPU: its load, as a share of the CPU.
    pub(crate) fn util(&self, capacity: Capacity) -> Util {
        Util(self.load.util() * capacity.0 / 1024)
    }
}
