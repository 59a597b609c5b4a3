//! Cache-aware scheduling (SCHED_CACHE): what is known of the process, of each CPU and of each last-level cache.
//!
//! The tasks of a workload are threads of one process, as rt-app's and the agent's are: one `sched_cache_group`. What
//! is done with it: [`super`].

use crate::mech::slots::Slot;
use crate::state::cpuset::CpuSet;
use risetime_kernel::sched_cache::{CacheTime, CpuEpoch, Knobs, LlcStats};
use risetime_kernel::units::{CpuId, TaskId};
use std::cell::Cell;

/// The mechanism.
pub(crate) struct Own;

impl Slot for Own {
    type OfMachine = Option<Box<SchedCache>>;
    type OfDomain = ();
    type OfCpu = ();
    type OfTask = ();
}

/// State of cache-aware scheduling, on a machine with several last-level caches whose kernel
/// gathers tasks by them.
pub(crate) struct SchedCache {
    pub(crate) knobs: Knobs,
    /// `sched_cache_active`: an online CPU shares a cache with another one, and there are others beyond.
    pub(crate) active: bool,
    /// Number of each CPU's cache, online or not (`sd_llc_id`), from 0 in the order of their first
    /// CPUs.
    pub(crate) llc_id: Vec<u32>,
    pub(crate) llcs: Vec<Llc>,
    /// Number of tasks that prefer each cache, queued or not, those that have exited counted: at 0
    /// no look is needed.
    pub(crate) preferring: Vec<u32>,
    pub(crate) cpus: Vec<CpuEpoch>,
    pub(crate) process: Process,
    /// State by task; tasks that are none of the process prefer nothing.
    pub(crate) tasks: Vec<TaskCache>,
    /// The thread that creates the others, where another trace is followed, in which it is one of many.
    pub(crate) main: Option<TaskId>,
}

/// A last-level cache.
pub(crate) struct Llc {
    /// Online CPUs of the cache.
    pub(crate) cpus: CpuSet,
    /// `sd_llc_size` of those CPUs.
    pub(crate) size: u64,
    /// Several CPUs share it: there is a domain of it (`sd_llc`).
    pub(crate) shared: bool,
    /// State of the cache that balancing has last seen.
    pub(crate) stats: Cell<LlcStats>,
}

/// `struct sched_cache_group`.
pub(crate) struct Process {
    /// CPU in whose cache the process belongs, if that is known.
    pub(crate) cpu: Cell<Option<CpuId>>,
    /// Epoch in which a tick has last asked for a scan.
    pub(crate) epoch: u64,
    /// Time of the next scan, in jiffies.
    pub(crate) next_scan: u64,
    pub(crate) nr_running_avg: u64,
    /// `pcpu_sched`
    pub(crate) times: Vec<CacheTime>,
}

/// State of a task for cache-aware scheduling.
#[derive(Clone, Copy, Default)]
pub(crate) struct TaskCache {
    pub(crate) preferred_llc: Option<u32>,
    /// `cache_work` is on its way: to be done when it is back in user mode.
    pub(crate) work: bool,
    /// `sum_exec_runtime` up to which its time has been accounted.
    pub(crate) accounted: u64,
}

impl SchedCache {
    /// `p->preferred_llc`
    #[inline]
    pub(crate) fn preferred_llc(&self, task: TaskId) -> Option<u32> {
        self.tasks.get(task.index()).and_then(|t| t.preferred_llc)
    }

    pub(crate) fn task(&mut self, task: TaskId) -> &mut TaskCache {
        if self.tasks.len() <= task.index() {
            self.tasks.resize(task.index() + 1, TaskCache::default());
        }
        &mut self.tasks[task.index()]
    }

    /// `get_pref_llc`
    pub(crate) fn pref_llc(&self) -> Option<u32> {
        self.process.cpu.get().map(|cpu| self.llc_id[cpu.index()])
    }

    /// `get_llc_stats`
    pub(crate) fn stats(&self, cpu: CpuId) -> Option<LlcStats> {
        let llc = &self.llcs[self.llc_id[cpu.index()] as usize];
        llc.shared.then(|| llc.stats.get())
    }
}
