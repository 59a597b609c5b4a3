//! Topology of a captured platform (`[topology]`): which CPUs share what.
//!
//! ```text
//! core      cpuN/topology/thread_siblings_list (core_cpus_list)
//! l2        cpuN/topology/cluster_cpus_list, what the kernel's CLS level is made of;
//!           else cpuN/cache/index*/shared_cpu_list of level 2 below a last level of 3
//! llc       the domains' `cluster`
//! node      devices/system/node/nodeN/{cpulist,distance}
//! ```
//!
//! Of each only what is online counts, and only what the kernel makes a level of: a core of one thread,
//! an L2 of one core, one node are none. What does not lie within the next wider one, as some machines
//! have it (two nodes around one cache), cannot be a platform: it is left out and named.
//!
//! Source: drivers/base/topology.c, drivers/base/cacheinfo.c, drivers/base/node.c.

use super::Draft;
use crate::root::format_cpu_list;
use risetime_kernel::units::CpuId;
use risetime_model::platform::Topology;
use std::collections::BTreeSet;

/// Groups of the machine's CPUs.
type Groups = Vec<Vec<u32>>;

impl Draft<'_> {
    /// Finds what the CPUs share; `llc`: their last-level caches.
    pub(super) fn topology(&mut self, llc: &Groups) -> Topology {
        let m = self.machine;
        let of = |list: Option<&Vec<u32>>, id: u32| list.cloned().unwrap_or_else(|| vec![id]);
        let threads = m.cpus.iter().map(|c| of(c.siblings.as_ref().map(|f| &f.value), c.id));
        let cores = self.online(threads.collect());
        let cores = self.within("cores", cores, &[("last-level caches", llc)]);
        let closer = m.cpus.iter().map(|c| of(c.l2.as_ref().map(|f| &f.value), c.id));
        let l2 = self.online(closer.collect());
        let all = self.cpu_groups(&cores);
        let l2 = match torn(&all, &l2) {
            None => self.within("groups around an L2", l2, &[("last-level caches", llc)]),
            Some(group) => {
                self.left_out("groups around an L2", "one splits the threads of a core", group);
                Vec::new()
            }
        };
        let l2: Groups =
            l2.into_iter().filter(|g| !cores.contains(g) && !llc.contains(g)).collect();
        let (nodes, distance) = self.nodes(&cores, llc);
        if !cores.is_empty() {
            self.source("core", "/sys/devices/system/cpu/cpu*/topology/thread_siblings_list");
        }
        if !l2.is_empty() {
            let files: BTreeSet<&str> = m
                .cpus
                .iter()
                .filter_map(|c| c.l2.as_ref())
                .map(|f| f.file.rsplit('/').next().unwrap_or_default())
                .collect();
            let files: Vec<&str> = files.into_iter().collect();
            self.source("l2", &format!("/sys/devices/system/cpu/cpu*: {}", files.join(", ")));
        }
        if !nodes.is_empty() {
            self.source("node", "/sys/devices/system/node/node*/{cpulist,distance}");
        }
        let number = |groups: Groups| -> Vec<Vec<CpuId>> {
            groups.iter().map(|g| g.iter().filter_map(|id| self.number(*id)).collect()).collect()
        };
        Topology { cores: number(cores), l2: number(l2), nodes: number(nodes), distance }
    }

    /// The CPU's number in the file.
    fn number(&self, id: u32) -> Option<CpuId> {
        self.machine.cpus.iter().position(|c| c.id == id).map(|n| CpuId(n as u32))
    }

    /// The groups of more than one CPU, of those online, each once, by their lowest.
    fn online(&self, groups: Groups) -> Groups {
        let online: BTreeSet<u32> = self.machine.cpus.iter().map(|c| c.id).collect();
        let mut seen = BTreeSet::new();
        for group in groups {
            let group: BTreeSet<u32> = group.into_iter().filter(|c| online.contains(c)).collect();
            if group.len() > 1 {
                seen.insert(group.into_iter().collect::<Vec<u32>>());
            }
        }
        seen.into_iter().collect()
    }

    /// Puts every CPU in a group: those given, the others by themselves.
    fn cpu_groups(&self, groups: &Groups) -> Groups {
        let named: BTreeSet<u32> = groups.iter().flatten().copied().collect();
        let alone = self.machine.cpus.iter().map(|c| c.id).filter(|id| !named.contains(id));
        groups.iter().cloned().chain(alone.map(|id| vec![id])).collect()
    }

    /// `groups` if they share no CPU and each lies within one of each of `wider`; else none, and a note.
    fn within(&mut self, what: &str, groups: Groups, wider: &[(&str, &Groups)]) -> Groups {
        let mut seen = BTreeSet::new();
        let twice = groups.iter().find(|g| !g.iter().all(|c| seen.insert(*c))).cloned();
        if let Some(group) = twice {
            self.left_out(what, "two of them overlap", group);
            return Vec::new();
        }
        for (name, of) in wider {
            if let Some(group) = torn(&groups, of) {
                self.left_out(what, &format!("one spans two {name}"), group);
                return Vec::new();
            }
        }
        groups
    }

    fn left_out(&mut self, what: &str, why: &str, group: Vec<u32>) {
        self.missing.push(format!(
            "topology: {what}: {why} (CPUs {}), which no scheduling domain can have; left out",
            format_cpu_list(&group)
        ));
    }

    /// The nodes with CPUs, if there are several, and how far they are from each other.
    fn nodes(&mut self, cores: &Groups, llc: &Groups) -> (Groups, Vec<Vec<u32>>) {
        let all = &self.machine.nodes;
        let online: BTreeSet<u32> = self.machine.cpus.iter().map(|c| c.id).collect();
        let cpus = |i: usize| -> Vec<u32> {
            all[i].cpus.value.iter().copied().filter(|c| online.contains(c)).collect()
        };
        let kept: Vec<usize> = (0..all.len()).filter(|i| !cpus(*i).is_empty()).collect();
        if kept.len() < 2 {
            return Default::default();
        }
        let nodes: Groups = kept.iter().map(|i| cpus(*i)).collect();
        let named: BTreeSet<u32> = nodes.iter().flatten().copied().collect();
        if named.len() != online.len() || nodes.iter().map(Vec::len).sum::<usize>() != named.len() {
            self.missing.push(
                "topology: nodes: not every CPU is in exactly one (node*/cpulist); left out".into(),
            );
            return Default::default();
        }
        for (what, groups) in [("a core", cores), ("a last-level cache", llc)] {
            if let Some(group) = torn(groups, &nodes) {
                self.left_out("nodes", &format!("{what} spans two"), group);
                return Default::default();
            }
        }
        let row = |i: usize| -> Option<Vec<u32>> {
            let row = &all[i].distance.as_ref()?.value;
            (row.len() == all.len()).then(|| kept.iter().map(|j| row[*j]).collect())
        };
        let distance: Option<Vec<Vec<u32>>> = kept.iter().map(|i| row(*i)).collect();
        let distance = distance.filter(|d| is_metric(d));
        if distance.is_none() {
            self.estimate(
                "node",
                "distance: no usable node*/distance; 10 within a node, 20 between any two",
            );
        }
        let default = |a| (0..kept.len()).map(move |b| if a == b { 10 } else { 20 }).collect();
        let distance = distance.unwrap_or_else(|| (0..kept.len()).map(default).collect());
        (nodes, distance)
    }
}

/// The first of `groups` that lies in several of `wider`.
fn torn(groups: &Groups, wider: &Groups) -> Option<Vec<u32>> {
    let of = |cpu: &u32| wider.iter().position(|w| w.contains(cpu));
    groups.iter().find(|g| g.iter().any(|c| of(c) != of(&g[0]))).cloned()
}

/// Whether a platform takes the distances `d`: 10 on the diagonal and nowhere else, at most 254,
/// the same there and back.
fn is_metric(d: &[Vec<u32>]) -> bool {
    let good = |a: usize, b: usize| {
        let way = d[a][b];
        (10..=254).contains(&way) && (way == 10) == (a == b) && way == d[b][a]
    };
    (0..d.len()).all(|a| (0..d.len()).all(|b| good(a, b)))
}
