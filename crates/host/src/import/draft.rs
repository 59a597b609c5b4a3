//! Drafts: facts of one input, of several together, and the platform that they come to.
//!
//! ```text
//! capacity   as given, else ⌊dmips · kHz · 1024 / S⌋, S the largest product, else 1024 for all
//! conflict   the input that was named first is taken, and the other is told
//! gap        what the simulator needs and nobody says: `# key = ?` in the file, and an error
//! ```
//!
//! Source: `drivers/base/arch_topology.c:topology_normalize_cpu_scale`.

use crate::root::format_cpu_list;
use risetime_kernel::units::{Capacity, CpuId, KHz, MicroWatts, Span};
use risetime_model::platform::{Domain, IdleState, Opp, Topology};
use risetime_model::{InputError, Platform};
use std::collections::{BTreeMap, BTreeSet};

/// Facts of one input.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    /// Name of the machine as the input has it.
    pub(super) model: Option<String>,
    /// Ticks per second.
    pub(super) hz: Option<u32>,
    /// True if the CPUs stand in the order of a device tree, which a kernel keeps but for the one that boots: that is
    /// its CPU 0.
    pub(super) by_order: bool,
    /// Frequency domains, with CPUs by the kernel's numbers, or in the order of a device tree.
    pub(super) groups: Vec<Group>,
    /// Groups of CPUs that share something, by the same numbers.
    pub(super) topology: Topology,
    /// Sources of each kind of figure.
    pub(super) sources: BTreeMap<&'static str, BTreeSet<String>>,
    /// Facts that the input does not have or that find no place in a platform, a line each.
    pub(super) missing: Vec<String>,
    /// Facts that were derived, a line each.
    pub(super) estimates: Vec<String>,
    /// Facts that no input has, with what stands in the file for them, and CPUs that lack them.
    pub(super) lacking: BTreeMap<(&'static str, &'static str), Vec<u32>>,
}

/// CPUs of one clock, of one capacity, around one cache.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// CPUs, ascending.
    pub(super) cpus: Vec<u32>,
    /// Number of the last-level cache.
    pub(super) cluster: Option<u32>,
    /// Capacity, of 1024.
    pub(super) capacity: Option<u64>,
    /// `dynamic-power-coefficient`, in µW/MHz/V².
    pub(super) coefficient: Option<u64>,
    /// `capacity-dmips-mhz`.
    pub(super) dmips: Option<u64>,
    /// Whether the driver switches in the governor's context.
    pub(super) fast_switch: Option<bool>,
    /// The driver's own delay between changes.
    pub(super) transition_delay_us: Option<u32>,
    /// Operating points, frequency ascending.
    pub(super) points: Vec<Point>,
    /// Idle states, shallow to deep.
    pub(super) idle: Vec<IdleState>,
}

/// An operating point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Point {
    /// Frequency in kHz.
    pub(super) khz: u64,
    /// Power of one CPU in µW.
    pub(super) uw: Option<u64>,
    /// Time that a change takes, in ns.
    pub(super) latency_ns: Option<u64>,
    /// True for an OPP that is there only while `boost` is on.
    pub(super) turbo: bool,
}

/// A platform with all that is told about it.
pub(super) struct Built {
    /// The platform; where there are gaps, with 0 and without OPPs.
    pub(super) platform: Platform,
    /// Facts that are needed and missing, a line each that says how to add them.
    pub(super) gaps: Vec<String>,
    /// Facts that are missing, a line each.
    pub(super) missing: Vec<String>,
    /// Facts that were derived, a line each.
    pub(super) estimates: Vec<String>,
}

impl Draft {
    /// Notes where figures of a kind come from.
    pub(super) fn source(&mut self, kind: &'static str, text: impl Into<String>) {
        self.sources.entry(kind).or_default().insert(text.into());
    }

    /// Notes what is missing, once.
    pub(super) fn missing(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.missing.contains(&text) {
            self.missing.push(text);
        }
    }

    fn take_source(&mut self, other: &Draft, kind: &'static str) {
        for text in other.sources.get(kind).into_iter().flatten() {
            self.source(kind, text.clone());
        }
    }

    /// Adds what `other`, the input `name`, says and this one does not.
    ///
    /// Errors: CPUs that share a clock in one and not in the other.
    pub(super) fn merge(&mut self, mut other: Draft, name: &str) -> Result<(), InputError> {
        self.number_alike(&mut other, name)?;
        self.add(&other, name);
        Ok(())
    }

    /// Gives the CPUs the same numbers in both: those of an input that has a kernel's.
    fn number_alike(&mut self, other: &mut Draft, name: &str) -> Result<(), InputError> {
        let clocks =
            |draft: &Draft| draft.groups.iter().map(|g| g.cpus.clone()).collect::<Vec<_>>();
        let (own, theirs) = (clocks(self), clocks(other));
        if own.is_empty() || theirs.is_empty() {
            return Ok(());
        }
        if fit(&own, &theirs) {
            self.by_order &= other.by_order;
            return Ok(());
        }
        let list: Vec<String> = theirs.iter().map(|c| format_cpu_list(c)).collect();
        let refused = || {
            let list = list.join(" and ");
            let what = format!(
                "has the clocks of CPUs {list}, which fit those of the inputs before it under no numbering"
            );
            InputError::new(name, what).hint("are these files of the same machine?")
        };
        let (draft, moved, fixed) = match (self.by_order, other.by_order) {
            (true, false) => (&mut *self, &own, &theirs),
            (false, true) => (&mut *other, &theirs, &own),
            _ => return Err(refused()),
        };
        let fits = |boot: &u32| {
            let renumbered =
                |group: &Vec<u32>| group.iter().map(|c| after_boot(*boot, *c)).collect();
            let moved: Vec<Vec<u32>> = moved.iter().map(renumbered).collect();
            fit(&moved, fixed)
        };
        let boot = moved.iter().flatten().copied().find(fits).ok_or_else(refused)?;
        draft.boots_on(boot);
        self.estimates.push(format!(
            "CPU numbers: CPU {boot} in the order of the device tree boots, and is CPU 0: so its clocks fit those of the other inputs"
        ));
        Ok(())
    }

    /// Gives the CPUs the numbers that they have where the one of number `boot` boots.
    fn boots_on(&mut self, boot: u32) {
        self.by_order = false;
        self.estimates.retain(|text| !text.starts_with("CPU numbers: "));
        for group in &mut self.groups {
            group.cpus.iter_mut().for_each(|c| *c = after_boot(boot, *c));
            group.cpus.sort_unstable();
        }
        let t = &mut self.topology;
        for groups in [&mut t.cores, &mut t.l2, &mut t.nodes] {
            for group in groups.iter_mut() {
                group.iter_mut().for_each(|c| c.0 = after_boot(boot, c.0));
                group.sort_unstable();
            }
            groups.sort();
        }
    }

    fn add(&mut self, other: &Draft, name: &str) {
        self.model = self.model.take().or(other.model.clone());
        match (self.hz, other.hz) {
            (None, Some(hz)) => {
                self.hz = Some(hz);
                self.take_source(other, "hz");
            }
            (Some(a), Some(b)) if a != b => {
                self.missing(format!("hz: {a}, and {b} by {name}: the first is taken"));
            }
            _ => {}
        }
        other.missing.iter().for_each(|text| self.missing(text.clone()));
        self.estimates.extend(other.estimates.iter().cloned());
        if self.groups.is_empty() {
            self.by_order = other.by_order;
            self.groups = other.groups.clone();
            self.topology = other.topology.clone();
            for kind in other.sources.keys().filter(|kind| **kind != "hz") {
                self.take_source(other, kind);
            }
            return;
        }
        if other.groups.is_empty() {
            return;
        }
        self.merge_topology(other);
        let own: BTreeSet<u32> = self.groups.iter().flat_map(|g| g.cpus.clone()).collect();
        let more: Vec<u32> = other
            .groups
            .iter()
            .flat_map(|g| &g.cpus)
            .copied()
            .filter(|c| !own.contains(c))
            .collect();
        if !more.is_empty() {
            let cpus = format_cpu_list(&more);
            self.missing(format!(
                "CPUs {cpus}: {name} has them, the first input does not: left out"
            ));
        }
        let mut groups = std::mem::take(&mut self.groups);
        for group in &mut groups {
            let cpus = format_cpu_list(&group.cpus);
            let found = other.groups.iter().find(|g| g.cpus.contains(&group.cpus[0]));
            match found {
                Some(theirs) => self.merge_group(group, theirs, other, name),
                None => self.missing(format!("CPUs {cpus}: {name} says nothing of them")),
            }
        }
        self.groups = groups;
    }

    fn merge_topology(&mut self, other: &Draft) {
        if self.topology.cores.is_empty() && !other.topology.cores.is_empty() {
            self.topology.cores = other.topology.cores.clone();
            self.take_source(other, "core");
        }
        if self.topology.l2.is_empty() && !other.topology.l2.is_empty() {
            self.topology.l2 = other.topology.l2.clone();
            self.take_source(other, "l2");
        }
        if self.topology.nodes.is_empty() && !other.topology.nodes.is_empty() {
            self.topology.nodes = other.topology.nodes.clone();
            self.topology.distance = other.topology.distance.clone();
            self.take_source(other, "node");
        }
    }

    fn merge_group(&mut self, own: &mut Group, theirs: &Group, other: &Draft, name: &str) {
        let cpus = format_cpu_list(&own.cpus);
        if own.capacity.is_none() && own.dmips.is_none() {
            (own.capacity, own.dmips) = (theirs.capacity, theirs.dmips);
            self.take_source(other, "capacity");
        } else if let (Some(a), Some(b)) = (own.capacity, theirs.capacity)
            && a != b
        {
            self.missing(format!(
                "capacity of CPUs {cpus}: {a}, and {b} by {name}: the first is taken"
            ));
        }
        macro_rules! fill {
            ($field:ident, $kind:literal) => {
                if own.$field.is_none() && theirs.$field.is_some() {
                    own.$field = theirs.$field;
                    self.take_source(other, $kind);
                }
            };
        }
        own.coefficient = own.coefficient.or(theirs.coefficient);
        fill!(cluster, "cluster");
        fill!(fast_switch, "fast_switch");
        fill!(transition_delay_us, "transition_delay_us");
        if own.idle.is_empty() && !theirs.idle.is_empty() {
            own.idle = theirs.idle.clone();
            self.take_source(other, "idle");
        }
        if own.points.is_empty() {
            own.points = theirs.points.clone();
            ["frequencies", "power", "latency"].iter().for_each(|k| self.take_source(other, k));
            return;
        }
        self.merge_points(own, theirs, other, name);
    }

    /// Powers and latencies of the same frequencies.
    fn merge_points(&mut self, own: &mut Group, theirs: &Group, other: &Draft, name: &str) {
        if theirs.points.is_empty() {
            return;
        }
        let cpus = format_cpu_list(&own.cpus);
        let at = |khz: u64| theirs.points.iter().find(|p| p.khz == khz);
        let without: Vec<String> =
            own.points.iter().filter(|p| at(p.khz).is_none()).map(|p| p.khz.to_string()).collect();
        if !without.is_empty() {
            let list = without.join(", ");
            self.missing(format!("{list} kHz of CPUs {cpus}: {name} does not have them"));
        }
        let known = own.points.iter().any(|p| p.uw.is_some());
        let theirs_known = theirs.points.iter().any(|p| p.uw.is_some());
        if known && theirs_known {
            let differ = own.points.iter().find_map(|p| {
                let (a, b) = (p.uw?, at(p.khz)?.uw?);
                (a != b).then_some((p.khz, a, b))
            });
            if let Some((khz, a, b)) = differ {
                self.missing(format!(
                    "power of CPUs {cpus} at {khz} kHz: {a} µW, and {b} by {name}: the first is taken"
                ));
            }
        } else if theirs_known {
            own.points.iter_mut().for_each(|p| p.uw = at(p.khz).and_then(|p| p.uw));
            self.take_source(other, "power");
        }
        if own.points.iter().all(|p| p.latency_ns.is_none()) {
            own.points.iter_mut().for_each(|p| p.latency_ns = at(p.khz).and_then(|p| p.latency_ns));
            self.take_source(other, "latency");
        }
    }

    /// The platform that all this comes to.
    pub(super) fn build(mut self, name: Option<&str>) -> Built {
        let mut gaps = Vec::new();
        if self.groups.is_empty() {
            gaps.push(
                "no CPUs: add a device tree or a machine's /sys, which say which there are".into(),
            );
        }
        self.groups.sort_by_key(|g| g.cpus.first().copied());
        let capacities = self.capacities(&mut gaps);
        let numbers = self.numbers();
        let mut domains = Vec::new();
        let groups = std::mem::take(&mut self.groups);
        for (group, capacity) in groups.iter().zip(capacities) {
            domains.push(self.domain(group, capacity, &numbers, &mut gaps));
        }
        for ((what, instead), mut cpus) in std::mem::take(&mut self.lacking) {
            cpus.sort_unstable();
            let cpus = format_cpu_list(&cpus);
            self.missing(format!("{what} of CPUs {cpus}: no input has it; {instead}"));
        }
        if self.hz.is_none() {
            gaps.push("`hz`: no input says how many ticks a second the kernel has: add its configuration (/boot/config-*, /proc/config.gz), or --hz N".into());
        }
        let number = |groups: &[Vec<CpuId>]| -> Vec<Vec<CpuId>> {
            let one = |c: &CpuId| numbers.get(&c.0).copied();
            let all = groups.iter().map(|g| g.iter().filter_map(one).collect::<Vec<_>>());
            all.filter(|g| !g.is_empty()).collect()
        };
        let topology = Topology {
            cores: number(&self.topology.cores),
            l2: number(&self.topology.l2),
            nodes: number(&self.topology.nodes),
            distance: self.topology.distance.clone(),
        };
        let model = self.model.clone().unwrap_or_default();
        let platform = Platform {
            name: name.map_or_else(|| crate::capture::file_name(&model), str::to_owned),
            about: format!("{} (imported)", if model.is_empty() { "a machine" } else { &model }),
            hz: self.hz.unwrap_or(0),
            domains,
            topology,
            thermal: Vec::new(),
            sources: self.said(),
            doubts: Vec::new(),
        };
        Built { platform, gaps, missing: self.missing, estimates: self.estimates }
    }

    /// Notes that no input has `what` of `cpus`, and what stands in the file for it.
    fn lacks(&mut self, what: &'static str, instead: &'static str, cpus: &[u32]) {
        self.lacking.entry((what, instead)).or_default().extend(cpus);
    }

    /// The capacity of each group, 0 where it cannot be known.
    fn capacities(&mut self, gaps: &mut Vec<String>) -> Vec<u64> {
        let all = self.groups.iter();
        if all.clone().all(|g| g.capacity.is_some()) {
            return all.map(|g| g.capacity.unwrap_or(0)).collect();
        }
        let raw: Vec<Option<(u64, u64)>> = all
            .clone()
            .map(|g| {
                let top = g.points.iter().rev().find(|p| !p.turbo).or(g.points.last())?;
                Some((g.dmips?, top.khz))
            })
            .collect();
        let with_dmips = all.clone().filter(|g| g.dmips.is_some()).count();
        let with_capacity = all.clone().filter(|g| g.capacity.is_some()).count();
        if with_dmips < self.groups.len() && with_capacity == 0 {
            if with_dmips > 0 {
                self.missing(
                    "capacity-dmips-mhz: not of every CPU: the kernel then takes 1024 for all",
                );
            }
            self.source(
                "capacity",
                "1024 for all: what the kernel takes where no file gives a capacity",
            );
            return vec![1024; self.groups.len()];
        }
        if raw.iter().all(Option::is_some) {
            return normalized(&raw.into_iter().flatten().collect::<Vec<_>>());
        }
        let mut of = Vec::new();
        for group in &self.groups {
            let cpus = format_cpu_list(&group.cpus);
            match (group.capacity, group.dmips) {
                (Some(capacity), _) => of.push(capacity),
                (None, Some(dmips)) => {
                    gaps.push(format!("`capacity` of CPUs {cpus}: {dmips} DMIPS/MHz, which count for nothing until every domain has its highest frequency: add what gives `opp`, or write both"));
                    of.push(0);
                }
                (None, None) => {
                    gaps.push(format!("`capacity` of CPUs {cpus}: no input has it, and others have one: write it, of 1024"));
                    of.push(0);
                }
            }
        }
        of
    }

    /// The platform's number of each CPU: without gaps.
    fn numbers(&mut self) -> BTreeMap<u32, CpuId> {
        let cpus: BTreeSet<u32> = self.groups.iter().flat_map(|g| g.cpus.iter().copied()).collect();
        let numbers: BTreeMap<u32, CpuId> =
            cpus.iter().enumerate().map(|(i, c)| (*c, CpuId(i as u32))).collect();
        if numbers.iter().any(|(c, n)| *c != n.0) {
            let all: Vec<u32> = cpus.iter().copied().collect();
            self.estimates.push(format!(
                "numbers: a platform's CPUs are numbered without gaps; CPUs 0-{} of the file are CPUs {} of the machine",
                all.len() - 1,
                format_cpu_list(&all)
            ));
        }
        numbers
    }

    fn domain(
        &mut self,
        group: &Group,
        capacity: u64,
        numbers: &BTreeMap<u32, CpuId>,
        gaps: &mut Vec<String>,
    ) -> Domain {
        let cpus = format_cpu_list(&group.cpus);
        if group.points.is_empty() {
            gaps.push(format!("`opp` of CPUs {cpus}: no input has their frequencies: add that machine's /sys, its energy_model dump or LISA's plat_info.yml, or write them"));
        }
        let powers = group.points.iter().filter(|p| p.uw.is_some()).count();
        if powers == 0
            && let Some(c) = group.coefficient
        {
            self.missing(format!(
                "voltages of CPUs {cpus}: from them dynamic-power-coefficient {c} µW/MHz/V² would give the power"
            ));
        }
        if powers == 0 && !group.points.is_empty() {
            self.lacks("power", "energies stay unknown and EAS off", &group.cpus);
        } else if powers < group.points.len() {
            let without = group.points.iter().filter(|p| p.uw.is_none());
            let list: Vec<String> = without.map(|p| p.khz.to_string()).collect();
            self.missing(format!("power of CPUs {cpus} at {} kHz: no input has it, and a domain has a power for every OPP or for none: left out", list.join(", ")));
        }
        if group.points.iter().any(|p| p.latency_ns.is_none()) {
            self.lacks(
                "time of a frequency change",
                "latency_ns = 0 where it is not known",
                &group.cpus,
            );
        }
        if group.fast_switch.is_none() {
            self.lacks("cpufreq driver", "fast_switch = false", &group.cpus);
        }
        if group.idle.is_empty() {
            self.lacks("idle states", "idle power is taken as 0", &group.cpus);
        } else if group.idle.iter().all(|s| s.power.0 == 0) {
            self.lacks("power in idle states", "power_uw = 0", &group.cpus);
        }
        if group.cluster.is_none() {
            self.lacks("caches", "all share one, cluster = 0", &group.cpus);
        }
        let opp = |p: &Point| Opp {
            turbo: p.turbo,
            ..Opp::new(
                KHz(p.khz),
                MicroWatts(p.uw.filter(|_| powers == group.points.len()).unwrap_or(0)),
                Span(p.latency_ns.unwrap_or(0)),
            )
        };
        Domain {
            cpus: group.cpus.iter().filter_map(|c| numbers.get(c).copied()).collect(),
            cluster: group.cluster.unwrap_or(0),
            capacity: Capacity(capacity),
            fast_switch: group.fast_switch.unwrap_or(false),
            transition_delay_us: group.transition_delay_us,
            energy_model: true,
            opps: group.points.iter().map(opp).collect(),
            levels: None,
            idle: group.idle.clone(),
            work: Vec::new(),
        }
    }

    /// The sources as a platform file has them.
    fn said(&self) -> BTreeMap<String, String> {
        let text = |kind: &str| {
            let all = self.sources.get(kind)?;
            Some(all.iter().cloned().collect::<Vec<_>>().join("; "))
        };
        let mut said: BTreeMap<String, String> = BTreeMap::new();
        for kind in self.sources.keys().filter(|k| !OF_OPP.contains(k)) {
            said.insert((*kind).to_owned(), text(kind).unwrap_or_default());
        }
        let part = |kind: &&str| Some(format!("{kind}: {}", text(kind)?));
        let parts: Vec<String> = OF_OPP.iter().filter_map(part).collect();
        if !parts.is_empty() {
            said.insert("opp".to_owned(), parts.join("; "));
        }
        for kind in ["capacity", "opp"] {
            said.entry(kind.to_owned()).or_insert_with(|| "unknown".to_owned());
        }
        said
    }
}

/// The number of CPU `cpu` in the order of a tree where CPU `boot` of it boots.
fn after_boot(boot: u32, cpu: u32) -> u32 {
    match cpu {
        _ if cpu == boot => 0,
        _ if cpu < boot => cpu + 1,
        _ => cpu,
    }
}

/// Whether the groups of one are parts or wholes of those of the other.
fn fit(a: &[Vec<u32>], b: &[Vec<u32>]) -> bool {
    let within = |x: &[u32], y: &[u32]| x.iter().all(|c| y.contains(c));
    let meets = |x: &[u32], y: &[u32]| x.iter().any(|c| y.contains(c));
    a.iter().all(|x| b.iter().all(|y| !meets(x, y) || within(x, y) || within(y, x)))
}

/// Kinds of figures that a platform file has one source for, `opp`.
const OF_OPP: [&str; 3] = ["frequencies", "power", "latency"];

/// The capacities that a kernel makes of DMIPS/MHz and highest frequencies. Rounding: down.
///
/// Source: `drivers/base/arch_topology.c:topology_normalize_cpu_scale`.
fn normalized(raw: &[(u64, u64)]) -> Vec<u64> {
    let products: Vec<u128> =
        raw.iter().map(|(d, khz)| u128::from(*d) * u128::from(*khz)).collect();
    let scale = products.iter().max().copied().unwrap_or(1).max(1);
    products.iter().map(|p| ((p << 10) / scale) as u64).collect()
}
