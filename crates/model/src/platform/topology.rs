//! Topology of what CPUs share, beyond the last-level cache that a domain names: hardware threads
//! of a core, CPUs around a closer cache, NUMA nodes.
//!
//! ```text
//! [topology]
//! core = { cpus = "0-255", each = 2, stride = 128 }   # CPU n and n + 128 are threads of a core
//! l2   = ["0-1", "2-3"]                               # or every group by itself
//! llc  = { cpus = "0-127", each = 8 }                 # the threads of these cores come along
//! node = { cpus = "0-127", each = 64 }
//! distance = [[10, 32], [32, 10]]                     # without it: 10 here, 20 elsewhere
//! ```
//!
//! A core lies in one L2 group, that in one last-level cache, that in one node, as the kernel's
//! non-NUMA levels must nest (`topology_span_sane`). Left out: packages as a level of their own (the
//! kernel's PKG is the node), books and drawers, memory sizes, nodes without CPUs.

use super::text::{cpu_list, cpu_ranges};
use super::{Domain, Platform, keys};
use crate::InputError;
use crate::settings::{Int, Key};
use crate::toml_in::{Table, TextsOrTable};
use risetime_kernel::units::CpuId;
use std::fmt::Write;

/// `LOCAL_DISTANCE` and `REMOTE_DISTANCE` (include/linux/topology.h).
const LOCAL: u32 = 10;
const REMOTE: u32 = 20;
/// A distance is one byte, and 255 says "unreachable" (ACPI's SLIT).
const MAX_DISTANCE: u64 = 254;
/// Threads a core may have (POWER10 has 8).
pub const MAX_THREADS: usize = 8;

/// The setting that says how fast a thread is beside a busy one of its core, of 1024.
pub const SMT_SPEED: Key<Int> = Key::new("smt_speed");
/// Default of [`SMT_SPEED`], an estimate: two threads do 1.25 of one's work, between 1.18 (on
/// average on Zen 5, Phoronix 2024) and up to 1.3 (Marr et al., Intel Technology Journal 2002).
pub const SMT_SPEED_DEFAULT: u64 = 640;

/// Sharing among CPUs beside frequency and last-level cache. Empty: every CPU is a core of its own,
/// shares nothing below the last level, and there is one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// Cores of more than one hardware thread, each ascending, by their lowest CPU.
    pub cores: Vec<Vec<CpuId>>,
    /// Groups of several CPUs that share an L2 (or the tags of one) below the last level, likewise.
    pub l2: Vec<Vec<CpuId>>,
    /// NUMA nodes, in the order of the file; empty: one.
    pub nodes: Vec<Vec<CpuId>>,
    /// `node_distance`, a row for each node; 10 on the diagonal, symmetric.
    pub distance: Vec<Vec<u32>>,
}

/// The speed of a hardware thread, of 1024, where so many of its core have a task, if with two of them it is `two`: each doubling
/// of the threads takes as much from each, and between that it goes evenly. Rounding: down, never 0.
///
/// ```text
/// threads   1      2     4          8
/// speed     1024   two   two²/1024  two³/1024²
/// ```
pub fn thread_speed(two: u64, threads: usize) -> u64 {
    // What all of them do together, of 1024, where their number is a power of two.
    let together = |doublings: u32| (0..doublings).fold(1024, |all, _| all * 2 * two / 1024);
    let n = (threads.max(1) as u64).min(MAX_THREADS as u64);
    let doublings = n.ilog2();
    let (from, more) = (1 << doublings, n - (1 << doublings));
    let (low, high) = (together(doublings), together(doublings + 1));
    // With two below 512 a core does less with more threads.
    let all = (low * (from - more) + high * more) / from;
    (all / n).clamp(1, 1024)
}

impl Topology {
    /// Whether CPUs share cores.
    pub fn smt(&self) -> bool {
        !self.cores.is_empty()
    }
}

/// The topology as read, with the last-level caches, if they are listed, which [`Topology`] does
/// not hold.
pub(super) struct Read {
    pub(super) topology: Topology,
    pub(super) llc: Vec<Vec<CpuId>>,
}

/// The table of a platform with `cpus` CPUs.
pub(super) fn read(t: &Table<'_>, cpus: usize) -> Result<Read, InputError> {
    t.only(&keys::names("topology"))?;
    let mut cores = groups(t, "core", cpus, &[])?;
    cores.retain(|c| c.len() > 1);
    if let Some(core) = cores.iter().find(|c| c.len() > MAX_THREADS) {
        let what = format!("has {} threads in one core, wanted at most {MAX_THREADS}", core.len());
        return Err(t.error_of("core", what));
    }
    cores.sort();
    let mut l2 = groups(t, "l2", cpus, &cores)?;
    l2.retain(|g| g.len() > 1);
    l2.sort();
    let llc = groups(t, "llc", cpus, &cores)?;
    let nodes = groups(t, "node", cpus, &cores)?;
    for (key, groups) in [("llc", &llc), ("node", &nodes)] {
        let named: usize = groups.iter().map(Vec::len).sum();
        if !groups.is_empty() && named < cpus {
            return Err(t.error_of(key, format!("names {named} of {cpus} CPUs, wanted all")));
        }
    }
    let distance = distance(t, nodes.len())?;
    let nodes = if nodes.len() > 1 { nodes } else { Vec::new() };
    Ok(Read { topology: Topology { cores, l2, nodes, distance }, llc })
}

/// Groups of CPUs; with a CPU come the other threads of its core.
fn groups(
    t: &Table<'_>,
    key: &'static str,
    cpus: usize,
    cores: &[Vec<CpuId>],
) -> Result<Vec<Vec<CpuId>>, InputError> {
    let lists = match t.opt_texts_or_table(key)? {
        None => return Ok(Vec::new()),
        Some(TextsOrTable::Texts(lists)) => lists
            .into_iter()
            .map(|l| cpu_list(l).map_err(|what| t.error_of(key, what)))
            .collect::<Result<Vec<_>, _>>()?,
        Some(TextsOrTable::Table(rule)) => repeated(&rule)?,
    };
    let mut core_of: Vec<Option<&Vec<CpuId>>> = vec![None; cpus];
    for core in cores {
        core.iter().for_each(|c| core_of[c.index()] = Some(core));
    }
    let mut owner = vec![usize::MAX; cpus];
    let mut groups = Vec::new();
    for (i, list) in lists.into_iter().enumerate() {
        let mut group: Vec<CpuId> = Vec::new();
        for cpu in list {
            let Some(core) = core_of.get(cpu as usize) else {
                let what = format!("names CPU {cpu}, but the machine has CPUs 0-{}", cpus - 1);
                return Err(t.error_of(key, what));
            };
            let own = [CpuId(cpu)];
            for &c in core.map_or(&own[..], Vec::as_slice) {
                match owner[c.index()] {
                    usize::MAX => group.push(c),
                    other if other == i => {}
                    _ => {
                        let what = format!("has CPU {} in two groups", c.0);
                        return Err(t.error_of(key, what));
                    }
                }
                owner[c.index()] = i;
            }
        }
        group.sort();
        groups.push(group);
    }
    Ok(groups)
}

/// `{ cpus, each, stride }`: the CPUs in groups of `each`, whose numbers lie `stride` apart;
/// without `stride` they stand side by side in the list.
fn repeated(rule: &Table<'_>) -> Result<Vec<Vec<u32>>, InputError> {
    rule.only(&keys::names(keys::RULE))?;
    let list = cpu_list(rule.str("cpus")?).map_err(|what| rule.error_of("cpus", what))?;
    let each = rule.int("each", 1, 1024)? as usize;
    let stride = rule.opt_int("stride", 1, 1023)?.map(|n| n as u32);
    if !list.len().is_multiple_of(each) {
        let what = format!("is {each}, which does not divide {} CPUs", list.len());
        return Err(rule.error_of("each", what));
    }
    let Some(stride) = stride else { return Ok(list.chunks(each).map(<[u32]>::to_vec).collect()) };
    let mut left: std::collections::BTreeSet<u32> = list.into_iter().collect();
    let mut groups = Vec::new();
    while let Some(&first) = left.first() {
        let group: Vec<u32> = (0..each as u32).map(|k| first + k * stride).collect();
        if let Some(gone) = group.iter().find(|c| !left.remove(c)) {
            let what =
                format!("is {stride}: CPU {gone}, which would go with CPU {first}, is not left");
            return Err(rule.error_of("stride", what));
        }
        groups.push(group);
    }
    Ok(groups)
}

fn distance(t: &Table<'_>, nodes: usize) -> Result<Vec<Vec<u32>>, InputError> {
    let Some(rows) = t.opt_matrix("distance", u64::from(LOCAL), MAX_DISTANCE)? else {
        let row = |a| (0..nodes).map(move |b| if a == b { LOCAL } else { REMOTE }).collect();
        return Ok(if nodes > 1 { (0..nodes).map(row).collect() } else { Vec::new() });
    };
    let err = |what: String| Err(t.error_of("distance", what));
    if nodes < 2 {
        return err("has no effect: there is one node".into());
    }
    if rows.len() != nodes || rows.iter().any(|r| r.len() != nodes) {
        return err(format!("wants {nodes} rows of {nodes}, one for each node"));
    }
    for (a, row) in rows.iter().enumerate() {
        for (b, &d) in row.iter().enumerate() {
            if (d == u64::from(LOCAL)) != (a == b) {
                return err(format!(
                    "from node {a} to {b} is {d}: {LOCAL} is the way from a node to itself"
                ));
            }
            if d != rows[b][a] {
                return err(format!("from node {a} to {b} is {d}, and back {}", rows[b][a]));
            }
        }
    }
    Ok(rows.into_iter().map(|r| r.into_iter().map(|d| d as u32).collect()).collect())
}

/// Checks what must lie within what: a core in an L2 group, that in a cache, that in a node.
///
/// Errors: the first group that is torn.
pub(super) fn check(p: &Platform) -> Result<(), String> {
    let t = &p.topology;
    let torn = |what: &str, groups: &[Vec<CpuId>], within: &str, of: &dyn Fn(CpuId) -> usize| {
        let torn = groups.iter().find(|g| g.iter().any(|c| of(*c) != of(g[0])));
        match torn {
            Some(g) => Err(format!("the {what} of CPUs {} spans two {within}", cpu_ranges(g))),
            None => Ok(()),
        }
    };
    let index = |groups: &[Vec<CpuId>]| {
        let mut of: Vec<usize> = (0..p.nr_cpus()).map(|c| groups.len() + c).collect();
        for (i, g) in groups.iter().enumerate() {
            g.iter().for_each(|c| of[c.index()] = i);
        }
        of
    };
    let mut capacity = vec![0; p.nr_cpus()];
    let mut llc = vec![0; p.nr_cpus()];
    for d in &p.domains {
        for c in &d.cpus {
            (capacity[c.index()], llc[c.index()]) = (d.capacity.0 as usize, d.cluster as usize);
        }
    }
    // A core that is in no group shares its L2 with nobody.
    let alone = t.cores.iter().filter(|c| c.iter().all(|c| !t.l2.iter().any(|g| g.contains(c))));
    let l2: Vec<Vec<CpuId>> = t.l2.iter().chain(alone).cloned().collect();
    let (l2, node) = (index(&l2), index(&t.nodes));
    torn("core", &t.cores, "`l2` groups", &|c| l2[c.index()])?;
    torn("core", &t.cores, "capacities", &|c| capacity[c.index()])?;
    torn("core", &t.cores, "last-level caches", &|c| llc[c.index()])?;
    torn("`l2` group", &t.l2, "last-level caches", &|c| llc[c.index()])?;
    if !t.nodes.is_empty() {
        let mut of: std::collections::BTreeMap<usize, Vec<CpuId>> = Default::default();
        p.cpus().for_each(|c| of.entry(llc[c.index()]).or_default().push(c));
        let llcs: Vec<Vec<CpuId>> = of.into_values().collect();
        torn("last-level cache", &llcs, "nodes", &|c| node[c.index()])?;
    }
    Ok(())
}

/// The table as text; empty where there is nothing to say. `llc`: the caches are listed here.
pub(super) fn write(t: &Topology, llc: &[Vec<CpuId>]) -> String {
    let mut out = String::new();
    for (key, groups) in [("core", &t.cores[..]), ("l2", &t.l2), ("llc", llc), ("node", &t.nodes)] {
        if !groups.is_empty() {
            let _ = writeln!(out, "{key} = {}", group_list(groups));
        }
    }
    if t.nodes.len() > 1 {
        let row = |r: &Vec<u32>| {
            format!("[{}]", r.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
        };
        let rows: Vec<String> = t.distance.iter().map(row).collect();
        let _ = writeln!(out, "distance = [{}]", rows.join(", "));
    }
    if out.is_empty() { out } else { format!("\n[topology]\n{out}") }
}

/// The groups in TOML: one rule (`{ cpus = …, each = 2 }`) where they follow one, else a list.
fn group_list(groups: &[Vec<CpuId>]) -> String {
    let (each, first) = (groups[0].len(), &groups[0]);
    let mut all: Vec<CpuId> = groups.iter().flatten().copied().collect();
    all.sort();
    let alike = groups.len() > 2 && groups.iter().all(|g| g.len() == each);
    if alike && all.chunks(each).eq(groups.iter().map(Vec::as_slice)) {
        return format!("{{ cpus = \"{}\", each = {each} }}", cpu_ranges(&all));
    }
    let stride = if each > 1 { first[1].0 - first[0].0 } else { 0 };
    let regular = |g: &Vec<CpuId>| g.windows(2).all(|w| w[1].0 - w[0].0 == stride);
    // In the order of their lowest CPUs, as the rule gives them.
    if alike && stride > 0 && groups.iter().all(regular) && groups.is_sorted() {
        return format!("{{ cpus = \"{}\", each = {each}, stride = {stride} }}", cpu_ranges(&all));
    }
    let lists: Vec<String> = groups.iter().map(|g| format!("\"{}\"", cpu_ranges(g))).collect();
    format!("[{}]", lists.join(", "))
}

impl Platform {
    /// The CPUs of each last-level cache, by number; some may be nobody's.
    pub fn caches(&self) -> Vec<Vec<CpuId>> {
        let last = self.domains.iter().map(|d| d.cluster).max().unwrap_or(0);
        let mut caches = vec![Vec::new(); last as usize + 1];
        for d in &self.domains {
            caches[d.cluster as usize].extend(&d.cpus);
        }
        caches.iter_mut().for_each(|c| c.sort());
        caches
    }
    /// The CPUs that share a core with `cpu`, itself among them (`cpu_smt_mask`).
    pub fn smt_mask(&self, cpu: CpuId) -> Vec<CpuId> {
        let core = self.topology.cores.iter().find(|c| c.contains(&cpu));
        core.cloned().unwrap_or_else(|| vec![cpu])
    }
    /// The NUMA node of `cpu`.
    pub fn node_of(&self, cpu: CpuId) -> usize {
        self.topology.nodes.iter().position(|n| n.contains(&cpu)).unwrap_or(0)
    }
    /// Runs of domains that differ in nothing but CPUs and cache, as indices; on machines of few
    /// domains each is a run by itself.
    pub fn alike(&self) -> Vec<std::ops::Range<usize>> {
        const MANY: usize = 8;
        let same = |a: &Domain, b: &Domain| {
            let b = Domain { cpus: a.cpus.clone(), cluster: a.cluster, ..b.clone() };
            self.domains.len() > MANY && *a == b
        };
        let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
        for (i, d) in self.domains.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if same(&self.domains[run.start], d) => run.end = i + 1,
                _ => runs.push(i..i + 1),
            }
        }
        runs
    }
}
