//! Scheduling domains: which CPUs balance with which, and who shares a core or a cache.
//!
//! ```text
//! NUMA  { node 0 | node 1 }        by distance, a level each; groups may overlap
//! PKG   { 0-7 | 8-15 }             the node            groups: its caches
//! MC    { 0 1 | 2 3 | 4 5 | 6 7 }  last-level cache    groups: cores, or what shares an L2
//! CLS   { 0 1 | 2 3 }              L2
//! SMT   { 0 | 1 }                  core                groups: its threads
//! ```
//!
//! This is what they are; `kernel/topology.rs` makes them. Span, groups and flags are the same for all CPUs of a
//! domain and kept once ([`Shape`]); what balancing remembers is each CPU's own.
//!
//! The groups of a domain stand in the order of their first CPUs, and a CPU begins with its own.
//! (The kernel goes on from the CPU's own number; the same wherever groups do not interleave
//! irregularly.) Left out: SD_ASYM_PACKING (no platform asks for it), cpusets.
//!
//! Source: include/linux/sched/topology.h; kernel/sched/sched.h:sched_group.

use crate::state::cpuset::CpuSet;
use crate::state::dice::NewidleStats;
use risetime_kernel::units::CpuId;
use std::sync::Arc;

/// Flags of a domain: its properties and its work (include/linux/sched/sd_flags.h).
pub(crate) mod sd {
    pub(crate) const BALANCE_NEWIDLE: u32 = 1;
    pub(crate) const BALANCE_EXEC: u32 = 1 << 1;
    pub(crate) const BALANCE_FORK: u32 = 1 << 2;
    pub(crate) const WAKE_AFFINE: u32 = 1 << 3;
    pub(crate) const ASYM_CPUCAPACITY: u32 = 1 << 4;
    pub(crate) const ASYM_CPUCAPACITY_FULL: u32 = 1 << 5;
    pub(crate) const SHARE_CPUCAPACITY: u32 = 1 << 6;
    pub(crate) const CLUSTER: u32 = 1 << 7;
    pub(crate) const SHARE_LLC: u32 = 1 << 8;
    pub(crate) const SERIALIZE: u32 = 1 << 9;
    pub(crate) const PREFER_SIBLING: u32 = 1 << 10;
    pub(crate) const NUMA: u32 = 1 << 11;
    /// `SD_DEGENERATE_GROUPS_MASK`: worth nothing with one group.
    pub(crate) const NEED_GROUPS: u32 = !WAKE_AFFINE;
}

/// Properties that all CPUs of a domain have in common.
#[derive(Debug)]
pub(crate) struct Shape {
    /// `SMT`, `CLS`, `MC`, `PKG`, `NODE`, `NUMA`.
    #[cfg_attr(not(test), expect(dead_code, reason = "how tests and debuggers tell levels apart"))]
    pub(crate) name: &'static str,
    pub(crate) span: CpuSet,
    pub(crate) weight: u32,
    pub(crate) groups: Vec<SchedGroup>,
    /// See [`sd`].
    pub(crate) flags: u32,
    pub(crate) imbalance_pct: u64,
    /// Number of times that hot tasks are left alone.
    pub(crate) cache_nice_tries: u32,
    /// Tasks by which nodes may differ.
    pub(crate) imb_numa_nr: u32,
}

/// A part of a domain (`struct sched_group`).
#[derive(Debug)]
pub(crate) struct SchedGroup {
    pub(crate) span: CpuSet,
    /// `group_balance_mask`: who may balance on its behalf.
    pub(crate) mask: CpuSet,
    pub(crate) weight: u32,
    /// Cores among its CPUs.
    pub(crate) cores: u32,
    /// Flags of the domain below, which the group is; 0: of a single CPU.
    pub(crate) flags: u32,
    /// Index of what is shared about it ([`RootDomain::group_imbalance`]).
    pub(crate) id: usize,
    /// Number of the group among the groups of all domains ([`crate::state::tally`]).
    pub(crate) slot: usize,
}

impl Shape {
    pub(crate) fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

/// One level of one CPU's domain hierarchy (`struct sched_domain`).
#[derive(Clone, Debug)]
pub(crate) struct SchedDomain {
    pub(crate) shape: Arc<Shape>,
    /// Index of the CPU's own group.
    pub(crate) local: usize,
    /// Time of the last balance, in jiffies.
    pub(crate) last_balance: u64,
    /// Interval of balancing, in ms.
    pub(crate) balance_interval: u64,
    pub(crate) nr_balance_failed: u32,
    pub(crate) newidle: NewidleStats,
    /// `sgc->next_update` of the own group, in jiffies: only the lowest level's is asked.
    pub(crate) next_update: u64,
}

impl std::ops::Deref for SchedDomain {
    type Target = Shape;
    fn deref(&self) -> &Shape {
        &self.shape
    }
}

impl SchedDomain {
    /// `min_interval`: one ms a CPU; `max_interval` is twice that.
    pub(crate) fn min_interval(&self) -> u64 {
        u64::from(self.weight)
    }
    /// The group that holds the owning CPU (`sd->groups`).
    pub(crate) fn local(&self) -> &SchedGroup {
        &self.shape.groups[self.local]
    }
    /// Iterates over all groups, the own one first.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &SchedGroup> {
        let (before, from) = self.shape.groups.split_at(self.local);
        from.iter().chain(before)
    }
}

/// Facts that the CPUs of a cache know about it (`struct sched_domain_shared`). All of them are
/// hints, which a search may correct.
#[derive(Debug)]
pub(crate) struct SdShared {
    pub(crate) has_idle_cores: bool,
    /// Number of CPUs that a search looks at (SIS_UTIL).
    pub(crate) nr_idle_scan: u32,
}

/// Place of a CPU in its domains (`sd_llc`, `sd_llc_id`, `sd_asym_cpucapacity`, …).
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// Level of the highest domain that shares a cache.
    pub(crate) llc: Option<usize>,
    /// First CPU of that cache, and how many CPUs it has.
    pub(crate) llc_id: CpuId,
    pub(crate) llc_size: u32,
    /// First CPU of the L2, where CPUs share one; else `llc_id`.
    pub(crate) share_id: CpuId,
    /// Level of the lowest domain with every capacity of the machine.
    pub(crate) asym: Option<usize>,
    /// `sd_llc_shared` and `sd_balance_shared`.
    pub(crate) llc_shared: Option<usize>,
    pub(crate) balance_shared: Option<usize>,
    /// `cpu_smt_mask`: the online threads of its core, ascending.
    pub(crate) smt: Vec<CpuId>,
}

/// State shared by all CPUs.
pub(crate) struct RootDomain {
    pub(crate) overutilized: bool,
    /// `rd->overloaded`: some CPU has two runnable tasks or a misfit one.
    pub(crate) overloaded: bool,
    /// EAS is possible and switched on (`sched_energy_enabled`).
    pub(crate) energy_aware: bool,
    /// `sched_asym_cpucap_active`, `sched_smt_active`, `sched_cluster_active`.
    pub(crate) asym_cpucap: bool,
    pub(crate) smt: bool,
    pub(crate) cluster: bool,
    /// `cpu_online_mask`; active is the same here.
    pub(crate) online: CpuSet,
    /// EAS is possible where the capacities are unequal: an energy model, schedutil, not switched off.
    pub(crate) energy_model: bool,
    /// Facts that the CPUs of a cache know about it, see [`Place`].
    pub(crate) shared: Vec<SdShared>,
    /// `sgc->imbalance`, by group: affinity kept tasks on it that should have left.
    pub(crate) group_imbalance: Vec<bool>,
    /// `nohz.idle_cpus_mask`.
    pub(crate) idle_cpus: CpuSet,
    pub(crate) has_blocked: bool,
    /// `nohz.needs_update`: a CPU has gone idle since `next_balance` was found.
    pub(crate) needs_update: bool,
    /// `nohz.next_balance`, `nohz.next_blocked`, in jiffies.
    pub(crate) next_balance: u64,
    pub(crate) next_blocked: u64,
}

impl RootDomain {
    /// `set_idle_cores`: around a CPU there is a core of which all threads are idle, or none.
    pub(crate) fn set_idle_cores(&mut self, place: &Place, there: bool) {
        if let Some(shared) = place.balance_shared {
            self.shared[shared].has_idle_cores = there;
        }
    }
}

/// The domains of all CPUs.
pub(crate) struct SchedDomains {
    /// Domains of each CPU, smallest first; none for an offline CPU.
    pub(crate) of: Vec<Vec<SchedDomain>>,
    pub(crate) places: Vec<Place>,
    pub(crate) shared: Vec<SdShared>,
    pub(crate) nr_groups: usize,
    /// `sched_smt_active`, `sched_cluster_active`, `sched_asym_cpucap_active`.
    pub(crate) smt: bool,
    pub(crate) cluster: bool,
    pub(crate) asym_cpucap: bool,
}
