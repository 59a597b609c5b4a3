//! Construction of a machine's scheduling domains from the online CPUs, as at every hotplug.
//!
//! ```text
//! levels     the topology's, bottom up, each a partition of the CPUs; NUMA: a span a node
//! classify   the complete flags of every span
//! attach     which levels a CPU keeps: of one CPU, or of the same CPUs as the one below and with
//!            nothing new to say, is dropped (`sd_degenerate`)
//! Build      their groups, and what all CPUs of a domain have in common
//! place      what a CPU looks up without walking: its cache, its lowest domain of all capacities
//! ```
//!
//! Left out: what `state/topology.rs` leaves out.
//!
//! Source: kernel/sched/topology.c:build_sched_domains.

use crate::state::cpuset::CpuSet;
use crate::state::dice::NewidleStats;
use crate::state::topology::{Place, SchedDomain, SchedDomains, SchedGroup, SdShared, Shape, sd};
use risetime_kernel::units::{Capacity, CpuId};
use risetime_kernel::{KernelRev, features};
use risetime_model::Platform;
use std::collections::BTreeMap;
use std::sync::Arc;

/// `RECLAIM_DISTANCE`: beyond, tasks are neither forked nor woken across.
const RECLAIM_DISTANCE: u32 = 30;

/// A level of the topology before anything is dropped.
struct Level {
    name: &'static str,
    flags: u32,
    cache_nice_tries: u32,
    /// Index of the one of `spans` that each CPU belongs to.
    of: Vec<usize>,
    spans: Vec<CpuSet>,
    /// Complete flags by span.
    all_flags: Vec<u32>,
}

impl Level {
    fn span(&self, cpu: CpuId) -> &CpuSet {
        &self.spans[self.of[cpu.index()]]
    }
}

/// `build_sched_domains` of the online CPUs.
pub(crate) fn sched_domains(
    platform: &Platform,
    capacity: &[Capacity],
    rev: KernelRev,
    online: &CpuSet,
) -> SchedDomains {
    let mut levels = levels(platform, online);
    // How many levels each CPU has: up to the first that spans all.
    let height: Vec<usize> = platform
        .cpus()
        .map(|c| {
            let all = levels.iter().position(|l| l.span(c) == online);
            all.map_or(levels.len(), |top| top + 1)
        })
        .collect();
    classify(&mut levels, &height, capacity, rev, online);
    let kept: Vec<Vec<(usize, u32)>> =
        platform
            .cpus()
            .map(|c| {
                if online.contains(c) {
                    attach(&levels[..height[c.index()]], c)
                } else {
                    Vec::new()
                }
            })
            .collect();
    let smt: Vec<Vec<CpuId>> = smt_masks(platform, online);
    let mut build = Build {
        levels: &levels,
        height: &height,
        kept: &kept,
        smt: &smt,
        shapes: BTreeMap::new(),
        ids: BTreeMap::new(),
        slots: 0,
    };
    let mut result = SchedDomains {
        of: vec![Vec::new(); platform.nr_cpus()],
        places: vec![Place::default(); platform.nr_cpus()],
        shared: Vec::new(),
        nr_groups: 0,
        smt: smt.iter().any(|core| core.len() > 1),
        cluster: false,
        asym_cpucap: false,
    };
    for cpu in online.iter() {
        let domains: Vec<SchedDomain> = kept[cpu.index()]
            .iter()
            .map(|&(level, flags)| build.domain(cpu, level, flags))
            .collect();
        // The level is older, but until 6.6 nobody asks who shares an L2.
        let asked = rev.has(features::CLUSTER);
        result.cluster |= asked && domains.iter().any(|d| d.has(sd::CLUSTER));
        result.asym_cpucap |= domains.iter().any(|d| d.has(sd::ASYM_CPUCAPACITY));
        result.of[cpu.index()] = domains;
    }
    result.nr_groups = build.ids.len();
    let mut index = BTreeMap::new();
    for cpu in online.iter() {
        let place = place(cpu, &result.of[cpu.index()], rev, &mut result.shared, &mut index);
        result.places[cpu.index()] = Place { smt: smt[cpu.index()].clone(), ..place };
    }
    result
}

/// The online threads of each CPU's core.
fn smt_masks(platform: &Platform, online: &CpuSet) -> Vec<Vec<CpuId>> {
    let mut masks: Vec<Vec<CpuId>> = platform.cpus().map(|c| vec![c]).collect();
    for core in &platform.topology.cores {
        let threads: Vec<CpuId> = core.iter().copied().filter(|c| online.contains(*c)).collect();
        core.iter().for_each(|c| masks[c.index()] = threads.clone());
    }
    masks
}

/// The topology's levels, bottom up (`default_topology`, `sched_init_numa`).
fn levels(platform: &Platform, online: &CpuSet) -> Vec<Level> {
    let n = platform.nr_cpus();
    let partition = |groups: &mut dyn Iterator<Item = &Vec<CpuId>>, below: Option<&Level>| {
        // Whoever is in no group keeps the span of the level below, or itself.
        let (mut of, mut spans) = (vec![usize::MAX; n], Vec::new());
        for g in groups {
            g.iter().for_each(|c| of[c.index()] = spans.len());
            spans.push(g.iter().copied().filter(|c| online.contains(*c)).collect::<CpuSet>());
        }
        for cpu in platform.cpus() {
            if of[cpu.index()] == usize::MAX {
                let span = below.map_or([cpu].into_iter().collect(), |b| *b.span(cpu));
                let first = span.lowest().unwrap_or(cpu);
                of[cpu.index()] = if first < cpu && of[first.index()] != usize::MAX {
                    of[first.index()]
                } else {
                    spans.push(span);
                    spans.len() - 1
                };
            }
        }
        (of, spans)
    };
    let level = |name, flags, tries, (of, spans): (Vec<usize>, Vec<CpuSet>)| Level {
        name,
        flags,
        cache_nice_tries: tries,
        of,
        spans,
        all_flags: Vec::new(),
    };
    let caches = platform.caches();
    let t = &platform.topology;
    let smt = level(
        "SMT",
        sd::SHARE_CPUCAPACITY | sd::SHARE_LLC,
        0,
        partition(&mut t.cores.iter(), None),
    );
    // An L2 that is the last level is none of its own (`cpu_clustergroup_mask`).
    let mut inner = t.l2.iter().filter(|g| !caches.contains(g));
    let cls = level("CLS", sd::CLUSTER | sd::SHARE_LLC, 1, partition(&mut inner, Some(&smt)));
    let mut used = caches.iter().filter(|c| !c.is_empty());
    let mc = level("MC", sd::SHARE_LLC, 1, partition(&mut used, None));
    let everyone = vec![platform.cpus().collect::<Vec<CpuId>>()];
    let nodes = if t.nodes.is_empty() { &everyone } else { &t.nodes };
    let pkg = level("PKG", 0, 1, partition(&mut nodes.iter(), None));
    let mut levels = vec![smt, cls, mc, pkg];
    if nodes.len() > 1 {
        let mut distances: Vec<u32> = t.distance.iter().flatten().copied().collect();
        distances.sort_unstable();
        distances.dedup();
        for (i, &d) in distances.iter().enumerate() {
            let within = |from: usize| {
                let near = (0..nodes.len()).filter(move |to| t.distance[from][*to] <= d);
                near.flat_map(|to| nodes[to].iter().copied())
                    .filter(|c| online.contains(*c))
                    .collect()
            };
            let spans: Vec<CpuSet> = (0..nodes.len()).map(within).collect();
            let of = levels[3].of.clone();
            let far = if d > RECLAIM_DISTANCE { sd::SERIALIZE } else { 0 };
            levels.push(match i {
                0 => level("NODE", 0, 1, (of, spans)),
                // SERIALIZE stands for "far" until the flags are complete.
                _ => level("NUMA", sd::NUMA | far, 2, (of, spans)),
            });
        }
    }
    levels
}

/// `sd_init`: the complete flags of every span.
fn classify(
    levels: &mut [Level],
    height: &[usize],
    capacity: &[Capacity],
    rev: KernelRev,
    online: &CpuSet,
) {
    let everywhere = capacities(online, capacity);
    for l in levels.iter_mut() {
        let mut flags = sd::BALANCE_NEWIDLE
            | sd::BALANCE_EXEC
            | sd::BALANCE_FORK
            | sd::WAKE_AFFINE
            | sd::PREFER_SIBLING
            | l.flags;
        if l.flags & sd::NUMA != 0 {
            flags = (flags & !sd::PREFER_SIBLING) | sd::SERIALIZE;
            if l.flags & sd::SERIALIZE != 0 {
                flags &= !(sd::BALANCE_EXEC | sd::BALANCE_FORK | sd::WAKE_AFFINE);
            }
        }
        let asym = |span: &CpuSet| match capacities(span, capacity) {
            inside if inside.len() < 2 => 0,
            inside if inside == everywhere => sd::ASYM_CPUCAPACITY | sd::ASYM_CPUCAPACITY_FULL,
            _ => sd::ASYM_CPUCAPACITY,
        };
        l.all_flags = l.spans.iter().map(|span| flags | asym(span)).collect();
    }
    if !rev.has(features::PREFER_SIBLING_ASYM) {
        // Unequal capacities take the preference for siblings from the level below.
        for cpu in online.iter() {
            for upper in 1..height[cpu.index()] {
                let (below, above) = levels.split_at_mut(upper);
                if above[0].all_flags[above[0].of[cpu.index()]] & sd::ASYM_CPUCAPACITY != 0 {
                    let child = &mut below[upper - 1];
                    child.all_flags[child.of[cpu.index()]] &= !sd::PREFER_SIBLING;
                }
            }
        }
    }
}

fn capacities(span: &CpuSet, capacity: &[Capacity]) -> Vec<Capacity> {
    let mut all: Vec<Capacity> = span.iter().map(|c| capacity[c.index()]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// `cpu_attach_domain`: the levels of `cpu` that contribute, with their flags.
fn attach(levels: &[Level], cpu: CpuId) -> Vec<(usize, u32)> {
    let flags = |l: usize| levels[l].all_flags[levels[l].of[cpu.index()]];
    // A level has several groups where the level below does not span it.
    let groups = |l: usize| match l {
        0 => levels[0].span(cpu).len() > 1,
        _ => levels[l - 1].span(cpu) != levels[l].span(cpu),
    };
    let degenerate = |l: usize, flags: u32| {
        levels[l].span(cpu).len() == 1
            || !((groups(l) && flags & sd::NEED_GROUPS != 0) || flags & sd::WAKE_AFFINE != 0)
    };
    let mut kept: Vec<(usize, u32)> = Vec::new();
    for l in 0..levels.len() {
        let parent = flags(l);
        let Some((below, child)) = kept.last_mut() else {
            kept.push((l, parent));
            continue;
        };
        let counted = if groups(l) { parent } else { parent & !sd::NEED_GROUPS };
        let same = levels[*below].span(cpu) == levels[l].span(cpu);
        if degenerate(l, parent) || (same && !*child & counted == 0) {
            // The level goes; what it prefers passes down where the spans are the same.
            *child |= parent & sd::PREFER_SIBLING;
        } else {
            kept.push((l, parent));
        }
    }
    if kept.first().is_some_and(|&(l, flags)| degenerate(l, flags)) {
        kept.remove(0);
    }
    kept
}

/// Shapes under construction.
struct Build<'a> {
    levels: &'a [Level],
    height: &'a [usize],
    kept: &'a [Vec<(usize, u32)>],
    smt: &'a [Vec<CpuId>],
    /// Shapes by level, span, flags.
    shapes: BTreeMap<(usize, usize, u32), Arc<Shape>>,
    /// Numbers of groups, by level and first balancing CPU.
    ids: BTreeMap<(usize, CpuId), usize>,
    /// Groups so far.
    slots: usize,
}

impl Build<'_> {
    fn domain(&mut self, cpu: CpuId, level: usize, flags: u32) -> SchedDomain {
        let key = (level, self.levels[level].of[cpu.index()], flags);
        let shape = match self.shapes.get(&key) {
            Some(shape) => Arc::clone(shape),
            None => {
                let shape = Arc::new(self.shape(cpu, level, flags));
                self.shapes.insert(key, Arc::clone(&shape));
                shape
            }
        };
        let local = shape.groups.iter().position(|g| g.span.contains(cpu)).unwrap_or(0);
        let weight = u64::from(shape.weight);
        SchedDomain {
            shape,
            local,
            last_balance: 0,
            balance_interval: weight,
            nr_balance_failed: 0,
            newidle: NewidleStats::default(),
            next_update: 0,
        }
    }

    fn shape(&mut self, cpu: CpuId, level: usize, flags: u32) -> Shape {
        let l = &self.levels[level];
        let span = *l.span(cpu);
        let groups = self.groups(cpu, level, &span);
        let smt = flags & sd::SHARE_CPUCAPACITY != 0;
        Shape {
            name: l.name,
            span,
            weight: span.len() as u32,
            groups,
            flags,
            imbalance_pct: if smt { 110 } else { 117 },
            cache_nice_tries: if smt { 0 } else { l.cache_nice_tries },
            imb_numa_nr: self.imb_numa_nr(cpu, level),
        }
    }

    /// `build_sched_groups`, and `build_overlap_sched_groups` where `level` is of NUMA.
    fn groups(&mut self, cpu: CpuId, level: usize, span: &CpuSet) -> Vec<SchedGroup> {
        let numa = self.levels[level].flags & sd::NUMA != 0;
        let first = if numa { cpu } else { span.lowest().unwrap_or(cpu) };
        let mut covered = CpuSet::EMPTY;
        let mut groups: Vec<SchedGroup> = Vec::new();
        for i in span.iter_wrap(first) {
            if covered.contains(i) || (numa && self.height[i.index()] <= level) {
                continue;
            }
            // The domain below that of `i` that does not reach beyond this one: the group.
            let inside = |l: &usize| self.levels[*l].span(i).iter().all(|c| span.contains(c));
            let below = (0..level).rfind(inside);
            let group = below.map_or([i].into_iter().collect(), |l| *self.levels[l].span(i));
            group.iter().for_each(|c| covered.insert(c));
            let mask = if numa { self.balance_mask(below, &group) } else { group };
            let owner = mask.lowest().unwrap_or(i);
            let ids = self.ids.len();
            let id = *self.ids.entry((level, owner)).or_insert(ids);
            let own = &self.kept[group.lowest().unwrap_or(i).index()];
            let flags = own.iter().rfind(|(l, _)| *l < level).map_or(0, |(_, flags)| *flags);
            let cores = group.iter().filter(|c| self.smt[c.index()].first() == Some(c)).count();
            groups.push(SchedGroup {
                span: group,
                mask,
                weight: group.len() as u32,
                cores: cores as u32,
                flags,
                id,
                slot: self.slots,
            });
            self.slots += 1;
        }
        groups
    }

    /// `build_balance_mask`: the CPUs whose own domain below is this group.
    fn balance_mask(&self, below: Option<usize>, group: &CpuSet) -> CpuSet {
        let own = |c: &CpuId| below.is_none_or(|l| self.levels[l].span(*c) == group);
        group.iter().filter(own).collect()
    }

    /// `adjust_numa_imbalance`.
    fn imb_numa_nr(&self, cpu: CpuId, level: usize) -> u32 {
        let height = self.height[cpu.index()];
        let weight = |l: usize| self.levels[l].span(cpu).len();
        let llc = (0..height).rfind(|l| self.levels[*l].flags & sd::SHARE_LLC != 0);
        let Some(llc) = llc.filter(|l| l + 1 < height && *l < level) else { return 0 };
        let parent = llc + 1;
        let llcs = weight(parent) / weight(llc).max(1);
        let imb = if llcs == 1 { weight(parent) >> 3 } else { llcs }.max(1);
        let numa = (parent + 1..height).find(|l| self.levels[*l].flags & sd::NUMA != 0);
        let span = weight(numa.unwrap_or(parent));
        (imb * (weight(level) / span.max(1)).max(1)) as u32
    }
}

/// `update_top_cache_domain`.
fn place(
    cpu: CpuId,
    domains: &[SchedDomain],
    rev: KernelRev,
    shared: &mut Vec<SdShared>,
    index: &mut BTreeMap<(bool, CpuId), usize>,
) -> Place {
    let mut of = |asym: bool, span: &CpuSet| {
        let first = span.lowest().unwrap_or(cpu);
        *index.entry((asym, first)).or_insert_with(|| {
            // As after a look at an idle machine.
            let nr_idle_scan = span.len() as u32;
            shared.push(SdShared { has_idle_cores: true, nr_idle_scan });
            shared.len() - 1
        })
    };
    let llc = domains.iter().rposition(|d| d.has(sd::SHARE_LLC));
    let first = |level: usize| domains[level].span.lowest().unwrap_or(cpu);
    let cluster = domains.iter().position(|d| d.has(sd::CLUSTER));
    let asym = domains.iter().position(|d| d.has(sd::ASYM_CPUCAPACITY_FULL));
    let llc_shared = llc.map(|l| of(false, &domains[l].span));
    // Until 7.2 what a search knows is kept with the cache, whatever the capacities.
    let of_asym =
        asym.filter(|l| rev.has(features::SD_BALANCE_SHARED_ASYM) && !domains[*l].has(sd::NUMA));
    let balance_shared = of_asym.map(|l| of(true, &domains[l].span)).or(llc_shared);
    Place {
        llc,
        llc_id: llc.map_or(cpu, first),
        llc_size: llc.map_or(1, |l| domains[l].weight),
        share_id: cluster.or(llc).map_or(cpu, first),
        asym,
        llc_shared,
        balance_shared,
        smt: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use risetime_model::platform::cpu_ranges;

    fn build(p: &Platform, rev: KernelRev, online: &CpuSet) -> SchedDomains {
        let capacity: Vec<Capacity> =
            p.cpus().map(|c| p.domains[p.domain_of(c).unwrap()].capacity).collect();
        sched_domains(p, &capacity, rev, online)
    }

    fn list(set: &CpuSet) -> String {
        cpu_ranges(&set.iter().collect::<Vec<_>>())
    }

    /// `MC 0-3: 0|1|2|3 prefer`: a line for each level of `cpu`, its own group first.
    fn shape(domains: &SchedDomains, cpu: u32) -> Vec<String> {
        let level = |d: &SchedDomain| {
            let groups: Vec<String> = d.groups().map(|g| list(&g.span)).collect();
            let flags = [
                (sd::ASYM_CPUCAPACITY_FULL, " full"),
                (sd::PREFER_SIBLING, " prefer"),
                (sd::WAKE_AFFINE, " affine"),
                (sd::SERIALIZE, " serialize"),
            ];
            let flags: String = flags.iter().filter(|f| d.has(f.0)).map(|f| f.1).collect();
            format!("{} {}: {}{flags}", d.name, list(&d.span), groups.join("|"))
        };
        domains.of[cpu as usize].iter().map(level).collect()
    }

    fn of(name: &str, rev: KernelRev, cpu: u32) -> Vec<String> {
        let p = Platform::load(name).unwrap();
        shape(&build(&p, rev, &CpuSet::first(p.nr_cpus())), cpu)
    }

    #[test]
    fn the_m1_has_clusters_below_a_package_with_unequal_capacities() {
        // Until 7.2 unequal capacities take the preference for siblings from the level below.
        let package = "PKG 0-7: 4-7|0-3 full prefer affine";
        assert_eq!(of("m1", KernelRev::V7_2, 5), ["MC 4-7: 5|6|7|4 affine", package]);
        assert_eq!(of("m1", KernelRev::V7_3, 5), ["MC 4-7: 5|6|7|4 prefer affine", package]);
        assert_eq!(of("laptop4", KernelRev::V7_2, 0), ["MC 0-3: 0|1|2|3 prefer affine"]);
    }

    #[test]
    fn a_server_has_threads_caches_and_nodes() {
        // /proc/schedstat and /sys/kernel/debug/sched/domains of two such sockets: SMT, MC, PKG, NUMA.
        let caches = |first: u32| -> Vec<String> {
            (0..8)
                .map(|i| first + (i * 8 + 8) % 64)
                .map(|c| format!("{c}-{},{}-{}", c + 7, c + 128, c + 135))
                .collect()
        };
        let cores = [9, 10, 11, 12, 13, 14, 15, 8].map(|c| format!("{c},{}", c + 128)).join("|");
        let expected = [
            "SMT 9,137: 137|9 prefer affine".to_string(),
            format!("MC 8-15,136-143: {cores} prefer affine"),
            format!("PKG 0-63,128-191: {} prefer affine", caches(0).join("|")),
            // Distance 32 is beyond RECLAIM_DISTANCE.
            "NUMA 0-255: 0-63,128-191|64-127,192-255 serialize".to_string(),
        ];
        assert_eq!(of("server256", KernelRev::V7_2, 137), expected);
        let p = Platform::load("server256").unwrap();
        let domains = build(&p, KernelRev::V7_2, &CpuSet::first(256));
        assert!(domains.smt && !domains.cluster && !domains.asym_cpucap);
        let place = &domains.places[137];
        assert_eq!((place.llc_id, place.llc_size, place.smt.len()), (CpuId(8), 16, 2));
        // Eight caches a node: eight tasks may stay together, on twice the CPUs as many more.
        let imb: Vec<u32> = domains.of[137].iter().map(|d| d.imb_numa_nr).collect();
        assert_eq!(imb, [0, 0, 8, 8]);
        let pct: Vec<u64> = domains.of[137].iter().map(|d| d.imbalance_pct).collect();
        assert_eq!(pct, [110, 117, 117, 117]);
        assert_eq!(
            domains.of[137].iter().map(|d| d.cache_nice_tries).collect::<Vec<_>>(),
            [0, 1, 1, 2]
        );
        assert_eq!(domains.of[137][1].local().cores, 1);
        assert_eq!(domains.of[137][2].local().cores, 8);
    }

    #[test]
    fn unlike_cores_have_unlike_levels() {
        let p = |cpu| of("intel-hybrid", KernelRev::V7_2, cpu);
        let mc = |first: &str, rest: &str| format!("MC 0-23: {first}|{rest} full prefer affine");
        let pairs = "2-3|4-5|6-7|8-9|10-11|12-13|14-15";
        assert_eq!(
            p(0),
            ["SMT 0-1: 0|1 prefer affine", &mc("0-1", &format!("{pairs}|16-19|20-23"))]
        );
        assert_eq!(
            p(22),
            ["CLS 20-23: 22|23|20|21 affine", &mc("20-23", &format!("0-1|{pairs}|16-19"))]
        );
        // Pairs without a cache above them: the package's groups.
        assert_eq!(of("server64", KernelRev::V7_2, 3)[0], "MC 2-3: 3|2 prefer affine");
        assert!(of("server64", KernelRev::V7_2, 3)[1].starts_with("PKG 0-63: 2-3|4-5|6-7|"));
    }

    #[test]
    fn who_shares_an_l2_is_asked_since_6_7() {
        let p = Platform::load("intel-hybrid").unwrap();
        let asked = |rev| build(&p, rev, &CpuSet::first(p.nr_cpus())).cluster;
        assert!(!asked(KernelRev::V6_1) && !asked(KernelRev::V6_6));
        assert!(asked(KernelRev::V6_8) && asked(KernelRev::V7_3));
    }

    /// Four nodes in a line, a CPU each: the kernel's own drawing of a diameter of three.
    #[test]
    fn groups_of_far_nodes_overlap() {
        let text = r#"
schema = 1
name = "line"
about = "four nodes in a line"
hz = 250
[[domain]]
cpus = "0-3"
cpus_per_policy = 1
capacity = 1024
opp = [ { freq_khz = 1000000 } ]
[topology]
llc = ["0", "1", "2", "3"]
node = ["0", "1", "2", "3"]
distance = [[10, 20, 30, 40], [20, 10, 20, 30], [30, 20, 10, 20], [40, 30, 20, 10]]
[sources]
capacity = "made up"
opp = "made up"
"#;
        let p = Platform::parse(text, "line").unwrap();
        let domains = build(&p, KernelRev::V7_2, &CpuSet::first(4));
        let near = "affine serialize";
        assert_eq!(
            shape(&domains, 0),
            [
                format!("NUMA 0-1: 0|1 {near}"),
                format!("NUMA 0-2: 0-1|1-2 {near}").replace("1-2", "2"),
                "NUMA 0-3: 0-2|1-3 serialize".into()
            ]
        );
        assert_eq!(
            shape(&domains, 1),
            [format!("NUMA 0-2: 1|2|0 {near}"), format!("NUMA 0-3: 0-2|2-3 {near}")]
        );
    }

    #[test]
    fn a_cpu_that_is_offline_is_in_no_domain() {
        let p = Platform::load("m1").unwrap();
        let mut online = CpuSet::first(8);
        online.remove(CpuId(4));
        (5..8).for_each(|c| online.remove(CpuId(c)));
        let domains = build(&p, KernelRev::V7_2, &online);
        assert_eq!(shape(&domains, 0), ["MC 0-3: 0|1|2|3 prefer affine"]);
        assert_eq!(shape(&domains, 4), [""; 0]);
        assert!(!domains.asym_cpucap, "only the little CPUs are left");
        online.insert(CpuId(6));
        let domains = build(&p, KernelRev::V7_2, &online);
        assert_eq!(shape(&domains, 6), ["PKG 0-3,6: 6|0-3 full prefer affine"]);
        assert!(domains.asym_cpucap);
    }

    /// Every CPU's own group holds it, the groups cover the span, and the spans nest.
    #[test]
    fn domains_nest_and_groups_cover_them() {
        for entry in risetime_model::library::platforms() {
            let p = Platform::load(entry.name).unwrap();
            let n = p.nr_cpus();
            for online in [CpuSet::first(n), (0..n as u32).step_by(2).map(CpuId).collect()] {
                let domains = build(&p, KernelRev::V7_2, &online);
                for cpu in online.iter() {
                    let mut below = [cpu].into_iter().collect::<CpuSet>();
                    for d in &domains.of[cpu.index()] {
                        assert!(d.local().span.contains(cpu) && d.local().mask.contains(cpu));
                        assert!(below.iter().all(|c| d.span.contains(c)));
                        assert!(d.weight > 1 && d.weight as usize == d.span.len());
                        let all: CpuSet = d.groups().flat_map(|g| g.span.iter()).collect();
                        assert_eq!(all, d.span, "{} CPU {}", entry.name, cpu.0);
                        below = d.span;
                    }
                    assert_eq!(below, online, "{} CPU {}", entry.name, cpu.0);
                }
            }
        }
    }
}
