//! Scheduling domains: which CPUs balance with which.
//!
//! ```text
//! PKG   { 0 1 2 3 | 4 5 6 7 }     groups: the clusters      flags: asym capacity
//! MC    { 0|1|2|3 }  { 4|5|6|7 }  groups: single CPUs       shares the last-level cache
//! ```
//!
//! A level whose span is one CPU, or equal to the level below, is dropped, as the kernel
//! does. Leaves out: SMT, NUMA.

use crate::cpuset::CpuSet;
use risetime_kernel::units::{Capacity, CpuId};
use risetime_model::Platform;

/// `imbalance_pct` of every level here (only SMT has another).
pub(crate) const IMBALANCE_PCT: u64 = 117;

/// One level of one CPU's domain hierarchy (`struct sched_domain`).
#[derive(Clone, Debug)]
pub(crate) struct SchedDomain {
    pub(crate) span: CpuSet,
    /// Groups; the one that holds the owning CPU comes first, then in CPU order, wrapping.
    pub(crate) groups: Vec<CpuSet>,
    pub(crate) weight: u32,
    /// `SD_ASYM_CPUCAPACITY`: not all its CPUs have one capacity.
    pub(crate) asym: bool,
    /// `SD_ASYM_CPUCAPACITY_FULL`: every capacity of the machine occurs in it.
    pub(crate) asym_full: bool,
    /// `SD_SHARE_LLC`.
    pub(crate) share_llc: bool,
    // What load balancing keeps per domain.
    /// In jiffies.
    pub(crate) last_balance: u64,
    /// In ms.
    pub(crate) balance_interval: u64,
    pub(crate) nr_balance_failed: u32,
}

impl SchedDomain {
    /// `min_interval`: one ms a CPU; `max_interval` is twice that.
    pub(crate) fn min_interval(&self) -> u64 {
        u64::from(self.weight)
    }
}

/// The domains of `cpu`, smallest first.
pub(crate) fn sched_domains(
    platform: &Platform,
    capacity: &[Capacity],
    cpu: CpuId,
) -> Vec<SchedDomain> {
    let cluster_of =
        |c: CpuId| platform.domains[platform.domain_of(c).expect("a CPU of the platform")].cluster;
    let all = CpuSet::first(platform.nr_cpus());
    let mut clusters: Vec<(u32, CpuSet)> = Vec::new();
    for c in platform.cpus() {
        match clusters.iter_mut().find(|(id, _)| *id == cluster_of(c)) {
            Some((_, set)) => set.insert(c),
            None => clusters.push((cluster_of(c), [c].into_iter().collect())),
        }
    }
    let own = clusters.iter().position(|(_, s)| s.contains(cpu)).expect("every CPU has a cluster");
    let mc = clusters[own].1;
    let mut levels = Vec::new();
    if mc.iter().count() > 1 {
        let singles = mc.iter_wrap(cpu).map(|c| [c].into_iter().collect()).collect();
        levels.push(level(mc, singles, true, capacity));
    }
    if clusters.len() > 1 {
        let groups = (0..clusters.len()).map(|i| clusters[(own + i) % clusters.len()].1).collect();
        levels.push(level(all, groups, false, capacity));
    }
    levels
}

fn level(span: CpuSet, groups: Vec<CpuSet>, share_llc: bool, capacity: &[Capacity]) -> SchedDomain {
    let mut inside: Vec<Capacity> = span.iter().map(|c| capacity[c.index()]).collect();
    let mut everywhere = capacity.to_vec();
    for v in [&mut inside, &mut everywhere] {
        v.sort();
        v.dedup();
    }
    let weight = span.iter().count() as u32;
    SchedDomain {
        span,
        groups,
        weight,
        asym: inside.len() > 1,
        asym_full: inside.len() > 1 && inside == everywhere,
        share_llc,
        last_balance: 0,
        balance_interval: u64::from(weight),
        nr_balance_failed: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_m1_has_clusters_below_a_package_with_unequal_capacities() {
        let platform = Platform::load("m1").unwrap();
        let capacity: Vec<Capacity> = platform
            .cpus()
            .map(|c| platform.domains[platform.domain_of(c).unwrap()].capacity)
            .collect();
        let domains = sched_domains(&platform, &capacity, CpuId(5));
        let shape: Vec<_> =
            domains.iter().map(|d| (d.weight, d.groups.len(), d.asym, d.asym_full)).collect();
        assert_eq!(shape, [(4, 4, false, false), (8, 2, true, true)]);
        assert_eq!(domains[0].groups[0].lowest(), Some(CpuId(5)));
        assert_eq!(domains[1].groups[0].lowest(), Some(CpuId(4)));
    }
}
