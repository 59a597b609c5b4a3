//! CPUs, operating points, idle states and caches of a device tree.
//!
//! ```text
//! numbers    CPU nodes in their order, 0 first: the kernel gives 0 to the CPU that boots, which no tree says
//! policy     CPUs of one table with `opp-shared`; else of one hardware domain (qcom,freq-domain, performance-domains, clocks)
//! power      opp-microwatt, else ⌊C · ⌊uV/1000⌋² · ⌊Hz/10⁶⌋ / 10⁶⌋ µW with C = dynamic-power-coefficient
//! idle       WFI (exit 1, residency 1 µs), then cpu-idle-states, or those of the CPU's own power domain; exit = entry + exit
//!            latency (wakeup-latency-us, where it is there), as the kernel adds them
//! llc, l2    the last cache of `next-level-cache`; the leaf clusters of cpu-map that are part of one
//! ```
//!
//! Source: `drivers/opp/of.c`, `drivers/cpuidle/dt_idle_states.c`, `drivers/cpuidle/cpuidle-psci.c`,
//! `drivers/base/arch_topology.c`.

use super::{Cell, Node, NodeId, Tree};
use crate::import::draft::{Draft, Group, Point};
use crate::root::format_cpu_list;
use risetime_kernel::units::{CpuId, MicroWatts, Span};
use risetime_model::InputError;
use risetime_model::platform::{IdleState, Topology};
use std::collections::{BTreeMap, BTreeSet};

/// The most CPUs that a platform has.
const MAX_CPUS: usize = 1024;
/// The most idle states that a CPU has (`CPUIDLE_STATE_MAX`).
const MAX_IDLE_STATES: usize = 10;

/// Groups of CPUs.
type Groups = Vec<Vec<u32>>;

/// Reader of a tree's CPUs.
struct Reader<'t> {
    tree: &'t Tree,
    file: &'t str,
    /// CPU nodes by the kernel's numbers.
    cpus: Vec<NodeId>,
    draft: Draft,
}

/// Clock of a CPU: who has the same changes its frequency with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Clock {
    /// A shared table of operating points.
    Table(NodeId),
    /// A domain of the hardware: the property and its cells.
    Hardware(&'static str, String),
    /// Nobody's but its own.
    Own(usize),
}

/// Reads what `tree`, the file `file`, says of its CPUs.
///
/// Errors: no CPUs, a value that is none, a reference to nothing, each with its place.
pub(in crate::import) fn draft(tree: &Tree, file: &str) -> Result<Draft, InputError> {
    let mut reader = Reader { tree, file, cpus: Vec::new(), draft: Draft::default() };
    reader.find_cpus()?;
    reader.draft.by_order = true;
    reader.draft.model = tree.nodes[0].prop("model").and_then(|p| p.texts().into_iter().next());
    reader.caches_and_cores()?;
    reader.groups()?;
    reader.domain_states()?;
    Ok(reader.draft)
}

impl Reader<'_> {
    fn node(&self, id: NodeId) -> &Node {
        &self.tree.nodes[id]
    }

    fn find_cpus(&mut self) -> Result<(), InputError> {
        let Some(cpus) = self.tree.by_path("/cpus") else {
            return Err(InputError::new(self.file, "has no node `/cpus`: no CPUs to read")
                .hint("an overlay or a part of a tree says nothing of them: give the board's whole .dts, or its .dtb"));
        };
        let is_cpu = |id: &NodeId| {
            let node = self.node(*id);
            let kind = node.prop("device_type").map(|p| p.texts());
            let named = node.name == "cpu" || node.name.starts_with("cpu@");
            kind.map_or(named, |kind| kind.first().is_some_and(|k| k == "cpu"))
        };
        let all: Vec<NodeId> = self.node(cpus).children.iter().copied().filter(is_cpu).collect();
        let (here, gone): (Vec<NodeId>, Vec<NodeId>) =
            all.into_iter().partition(|id| self.node(*id).is_available());
        for id in gone {
            let name = self.node(id).name.clone();
            self.draft.missing(format!("{name}: its status says that it is not there: left out"));
        }
        if here.is_empty() || here.len() > MAX_CPUS {
            let what = format!("has {} CPUs in `/cpus`, wanted 1 to {MAX_CPUS}", here.len());
            return Err(InputError::new(&*self.node(cpus).place, what));
        }
        self.cpus = here;
        if self.cpus.len() > 1 {
            let first = self.node(self.cpus[0]).name.clone();
            self.draft.estimates.push(format!(
                "CPU numbers: in the order of the tree, 0 is {first}; a kernel gives 0 to the CPU that boots"
            ));
        }
        Ok(())
    }

    /// The number of the CPU whose node is `id`.
    fn number(&self, id: NodeId) -> Option<u32> {
        self.cpus.iter().position(|cpu| *cpu == id).map(|n| n as u32)
    }

    /// Threads of cores and leaf clusters of `cpu-map`.
    fn cpu_map(&self) -> Result<(Groups, Groups), InputError> {
        let Some(map) = self.tree.by_path("/cpus/cpu-map") else { return Ok(Default::default()) };
        let (mut cores, mut clusters) = (Vec::new(), Vec::new());
        let mut open = vec![map];
        while let Some(id) = open.pop() {
            let mut own = Vec::new();
            for &child in &self.node(id).children {
                let name = &self.node(child).name;
                if name.starts_with("core") {
                    let core = self.core(child)?;
                    own.extend(core.clone());
                    cores.push(core);
                } else if name.starts_with("cluster") || name.starts_with("socket") {
                    open.push(child);
                }
            }
            own.sort_unstable();
            clusters.extend((!own.is_empty()).then_some(own));
        }
        Ok((cores, clusters))
    }

    /// The CPUs of a node `coreN`: itself, or its threads.
    fn core(&self, core: NodeId) -> Result<Vec<u32>, InputError> {
        let threads = self.node(core).children.iter().copied();
        let mut cpus = BTreeSet::new();
        for id in std::iter::once(core).chain(threads) {
            if let Some(cpu) = self.tree.reference(id, "cpu")? {
                cpus.extend(self.number(cpu));
            }
        }
        Ok(cpus.into_iter().collect())
    }

    /// The chain of caches of a CPU, the closest first.
    fn cache_chain(&self, cpu: NodeId) -> Result<Vec<NodeId>, InputError> {
        let mut chain = Vec::new();
        let mut at = cpu;
        loop {
            let next = match self.tree.reference(at, "next-level-cache")? {
                None => self.tree.reference(at, "l2-cache")?,
                next => next,
            };
            let fresh = |id: &NodeId| *id != cpu && !chain.contains(id) && chain.len() < 8;
            let Some(next) = next.filter(fresh) else { break };
            chain.push(next);
            at = next;
        }
        Ok(chain)
    }

    fn caches_and_cores(&mut self) -> Result<(), InputError> {
        let (cores, clusters) = self.cpu_map()?;
        let last: Vec<Option<NodeId>> = self
            .cpus
            .iter()
            .map(|cpu| self.cache_chain(*cpu).map(|chain| chain.last().copied()))
            .collect::<Result<_, _>>()?;
        let by_cache = last.iter().all(Option::is_some);
        let mut of = vec![None; self.cpus.len()];
        if by_cache {
            let mut seen: Vec<NodeId> = Vec::new();
            for (cpu, cache) in last.iter().flatten().enumerate() {
                let known = seen.iter().position(|c| c == cache);
                of[cpu] = Some(known.unwrap_or_else(|| {
                    seen.push(*cache);
                    seen.len() - 1
                }));
            }
            self.draft.source("cluster", format!("{}: next-level-cache", self.file));
        } else if !clusters.is_empty() {
            let mut sorted = clusters.clone();
            sorted.sort();
            for (n, cluster) in sorted.iter().enumerate() {
                cluster.iter().for_each(|c| of[*c as usize] = Some(n));
            }
            let text = "no next-level-cache of every CPU; the CPUs of a cluster of cpu-map are taken to share a cache";
            self.draft.source("cluster", format!("estimate: {text}"));
            self.draft.estimates.push(format!("cluster: {text}"));
        }
        let id = |c: &u32| CpuId(*c);
        let ids = |group: &Vec<u32>| group.iter().map(id).collect::<Vec<_>>();
        let mut threads: Vec<Vec<u32>> = cores.iter().filter(|c| c.len() > 1).cloned().collect();
        threads.sort();
        let llcs: BTreeSet<Vec<u32>> = (0..self.cpus.len())
            .map(|n| (0..self.cpus.len() as u32).filter(|c| of[*c as usize] == of[n]).collect())
            .collect();
        // The kernel's CLS: part of a last-level cache, and more than a core.
        let within =
            |c: &&Vec<u32>| llcs.iter().any(|l| l != *c && c.iter().all(|cpu| l.contains(cpu)));
        let mut l2: Vec<Vec<u32>> = clusters
            .iter()
            .filter(|c| c.len() > 1 && !cores.contains(c))
            .filter(within)
            .cloned()
            .collect();
        l2.sort();
        if !threads.is_empty() {
            self.draft.source("core", format!("{}: cpu-map", self.file));
        }
        if !l2.is_empty() {
            self.draft.source("l2", format!("{}: leaf clusters of cpu-map", self.file));
        }
        self.draft.topology = Topology {
            cores: threads.iter().map(ids).collect(),
            l2: l2.iter().map(ids).collect(),
            ..Topology::default()
        };
        self.draft.groups = (0..self.cpus.len())
            .map(|n| Group {
                cpus: vec![n as u32],
                cluster: of[n].map(|c| c as u32),
                ..Group::default()
            })
            .collect();
        Ok(())
    }

    /// Puts CPUs of one clock together, and reads the figures of each.
    fn groups(&mut self) -> Result<(), InputError> {
        let mut groups: BTreeMap<(Clock, Option<u64>, Option<u32>), Vec<u32>> = BTreeMap::new();
        let mut clocks = Vec::new();
        for n in 0..self.cpus.len() {
            let node = self.node(self.cpus[n]);
            let dmips = node.number("capacity-dmips-mhz")?.map(u64::from);
            let clock = self.clock(n)?;
            clocks.push(clock.clone());
            groups.entry((clock, dmips, self.draft.groups[n].cluster)).or_default().push(n as u32);
        }
        for clock in clocks.iter().collect::<BTreeSet<_>>() {
            let parts = groups.keys().filter(|k| k.0 == *clock).count();
            if parts > 1 {
                let of = |n: &usize| clocks[*n] == *clock;
                let cpus: Vec<u32> = (0..clocks.len()).filter(of).map(|n| n as u32).collect();
                self.draft.missing(format!(
                    "one clock for CPUs {} of different capacity or cache; the file has a domain for each kind, which change frequency independently",
                    format_cpu_list(&cpus)
                ));
            }
        }
        let dmips = groups.keys().any(|k| k.1.is_some());
        if dmips {
            self.draft.source(
                "capacity",
                format!("{}: capacity-dmips-mhz times the highest frequency", self.file),
            );
        }
        let mut all = Vec::new();
        for ((_, dmips, cluster), cpus) in groups {
            let first = self.cpus[cpus[0] as usize];
            let points = self.points(first, &cpus)?;
            let idle = self.idle(first)?;
            let coefficient = self.node(first).number("dynamic-power-coefficient")?.map(u64::from);
            all.push(Group { cpus, cluster, dmips, coefficient, points, idle, ..Group::default() });
        }
        all.sort_by_key(|g| g.cpus[0]);
        self.draft.groups = all;
        Ok(())
    }

    fn clock(&self, n: usize) -> Result<Clock, InputError> {
        let cpu = self.cpus[n];
        let hardware = |name: &'static str| {
            let cells = self.node(cpu).prop(name)?.cells(name).ok()?;
            Some(Clock::Hardware(name, format!("{cells:?}")))
        };
        let domain = || hardware("qcom,freq-domain").or_else(|| hardware("performance-domains"));
        if let Some(table) = self.tree.reference(cpu, "operating-points-v2")? {
            let shared = self.node(table).prop("opp-shared").is_some();
            return Ok(match shared {
                true => Clock::Table(table),
                false => domain().unwrap_or(Clock::Own(n)),
            });
        }
        if self.node(cpu).prop("operating-points").is_some() {
            // Without opp-shared in that binding, cpufreq-dt takes all CPUs for one policy.
            return Ok(Clock::Hardware("operating-points", String::new()));
        }
        let perf = self.power_domain(cpu, "perf")?;
        let perf = perf.map(|d| Clock::Hardware("power-domains", format!("{d:?}")));
        let own = domain().or(perf);
        Ok(own.or_else(|| hardware("clocks")).unwrap_or(Clock::Own(n)))
    }

    fn points(&mut self, cpu: NodeId, cpus: &[u32]) -> Result<Vec<Point>, InputError> {
        let list = format_cpu_list(cpus);
        let coefficient = self.node(cpu).number("dynamic-power-coefficient")?.map(u64::from);
        let Some(table) = self.tree.reference(cpu, "operating-points-v2")? else {
            if self.node(cpu).prop("operating-points").is_some() {
                return self.points_v1(cpu, coefficient);
            }
            return Ok(Vec::new());
        };
        let mut points: BTreeMap<u64, Point> = BTreeMap::new();
        let (mut by_watt, mut by_volt, mut latency) = (false, false, false);
        let tree = self.tree;
        for &opp in &tree.nodes[table].children {
            let node = &tree.nodes[opp];
            if !node.is_available() {
                continue;
            }
            let Some(hz) = self.hertz(opp)? else { continue };
            let watts = self.first(opp, "opp-microwatt")?;
            let volts = self.first(opp, "opp-microvolt")?;
            if node.prop("opp-supported-hw").is_some() {
                let what = format!(
                    "which frequencies CPUs {list} have hangs on the chip's fuses (opp-supported-hw): all are in the file"
                );
                self.draft.missing(what);
            }
            let computed = coefficient.zip(volts).map(|(c, uv)| power(c, uv, hz));
            by_watt |= watts.is_some();
            by_volt |= watts.is_none() && computed.is_some();
            let own = self.node(opp).number("clock-latency-ns")?.map(u64::from);
            latency |= own.is_some();
            let point = Point {
                khz: hz / 1000,
                uw: watts.or(computed),
                latency_ns: own,
                turbo: self.node(opp).prop("turbo-mode").is_some(),
            };
            points.entry(point.khz).or_insert(point);
        }
        if points.is_empty() {
            return Err(InputError::new(
                &*self.node(table).place,
                "a table of operating points without one that has `opp-hz`",
            ));
        }
        let file = self.file;
        self.draft.source("frequencies", format!("{file}: operating-points-v2"));
        if by_watt {
            self.draft.source("power", format!("{file}: opp-microwatt"));
        }
        if by_volt {
            let c = coefficient.unwrap_or(0);
            self.draft.source("power", format!("{file}: dynamic-power-coefficient {c} and opp-microvolt, as drivers/opp/of.c computes it"));
        }
        if latency {
            self.draft.source("latency", format!("{file}: clock-latency-ns"));
        }
        let points = boosts_last(points.into_values().collect());
        let text = "capacity: counts up to the highest frequency that is no boost (turbo-mode); where the driver switches boost on, as apple-soc-cpufreq does, a kernel counts the boost, too";
        if points.iter().any(|p| p.turbo) && !self.draft.estimates.iter().any(|e| e == text) {
            self.draft.estimates.push(text.to_owned());
        }
        Ok(points)
    }

    /// `operating-points`: pairs of kHz and µV.
    fn points_v1(&mut self, cpu: NodeId, c: Option<u64>) -> Result<Vec<Point>, InputError> {
        let Some(prop) = self.node(cpu).prop("operating-points") else { return Ok(Vec::new()) };
        let cells = prop.numbers("operating-points")?;
        if cells.is_empty() || !cells.len().is_multiple_of(2) {
            let what =
                format!("`operating-points` has {} cells, wanted pairs of kHz and µV", cells.len());
            return Err(InputError::new(&*prop.place, what));
        }
        let latency_ns = self.node(cpu).number("clock-latency")?.map(u64::from);
        let point = |pair: &[u32]| {
            let khz = u64::from(pair[0]);
            let uw = c.map(|c| power(c, u64::from(pair[1]), khz * 1000));
            (khz, Point { khz, uw, latency_ns, turbo: false })
        };
        let points: BTreeMap<u64, Point> = cells.chunks(2).map(point).collect();
        let file = self.file;
        self.draft.source("frequencies", format!("{file}: operating-points"));
        if let Some(c) = c {
            self.draft.source("power", format!("{file}: dynamic-power-coefficient {c} and operating-points, as drivers/opp/of.c computes it"));
        }
        if latency_ns.is_some() {
            self.draft.source("latency", format!("{file}: clock-latency"));
        }
        Ok(points.into_values().filter(|p| p.khz > 0).collect())
    }

    /// The first number of a property; `None`: absent.
    fn first(&self, id: NodeId, name: &str) -> Result<Option<u64>, InputError> {
        let Some(prop) = self.node(id).prop(name) else { return Ok(None) };
        match prop.numbers(name)?.first() {
            Some(n) => Ok(Some(u64::from(*n))),
            None => Err(InputError::new(&*prop.place, format!("`{name}` is empty"))),
        }
    }

    /// `opp-hz`; `None`: a level without one.
    fn hertz(&self, opp: NodeId) -> Result<Option<u64>, InputError> {
        let Some(prop) = self.node(opp).prop("opp-hz") else { return Ok(None) };
        match prop.numbers("opp-hz")?[..] {
            [high, low, ..] => match u64::from(high) << 32 | u64::from(low) {
                hz if (1000..=100_000_000_000).contains(&hz) => Ok(Some(hz)),
                hz => {
                    let what = format!("`opp-hz` is {hz}, wanted 1000 to 100000000000");
                    Err(InputError::new(&*prop.place, what))
                }
            },
            ref cells => {
                let what = format!("`opp-hz` has {} cells, wanted 64 bits", cells.len());
                Err(InputError::new(&*prop.place, what).hint("opp-hz = /bits/ 64 <…>"))
            }
        }
    }

    /// The domains that `power-domains` of `id` names, each with its arguments.
    fn power_domains(&self, id: NodeId) -> Result<Vec<(NodeId, Vec<Cell>)>, InputError> {
        let Some(prop) = self.node(id).prop("power-domains") else { return Ok(Vec::new()) };
        let mut domains = Vec::new();
        let mut cells = prop.cells("power-domains")?.into_iter();
        while let Some(cell) = cells.next() {
            // Of a file that is not there, how many arguments it takes is not known either.
            let Some(domain) = self.tree.resolve(&cell) else { break };
            let arguments = self.node(domain).number("#power-domain-cells")?.unwrap_or(0);
            domains.push((domain, cells.by_ref().take(arguments as usize).collect()));
        }
        Ok(domains)
    }

    /// The power domain of a CPU that has this name.
    fn power_domain(
        &self,
        cpu: NodeId,
        name: &str,
    ) -> Result<Option<(NodeId, Vec<Cell>)>, InputError> {
        let names = self.node(cpu).prop("power-domain-names").map(|p| p.texts());
        let Some(at) = names.unwrap_or_default().iter().position(|n| n == name) else {
            return Ok(None);
        };
        Ok(self.power_domains(cpu)?.into_iter().nth(at))
    }

    /// The CPU's own power domain for idle states.
    fn own_domain(&self, cpu: NodeId) -> Result<Option<NodeId>, InputError> {
        let own = match self.power_domain(cpu, "psci")? {
            None => self.power_domains(cpu)?.into_iter().next(),
            own => own,
        };
        let own = own.map(|(id, _)| id);
        Ok(own.filter(|id| self.node(*id).prop("domain-idle-states").is_some()))
    }

    fn idle(&mut self, cpu: NodeId) -> Result<Vec<IdleState>, InputError> {
        let own = match self.own_domain(cpu)? {
            Some(domain) => self.tree.references(domain, "domain-idle-states")?,
            None => self.tree.references(cpu, "cpu-idle-states")?,
        };
        let method = self.node(cpu).prop("enable-method").map(|p| p.texts());
        let psci = method.is_some_and(|m| m.iter().any(|m| m == "psci"));
        if own.is_empty() && !psci {
            return Ok(Vec::new());
        }
        let us = Span::from_us(1);
        let mut states = vec![IdleState::new("WFI", us, us, MicroWatts(0))];
        self.draft.source(
            "idle",
            "WFI: exit and residency 1 µs, drivers/cpuidle/cpuidle-psci.c".to_owned(),
        );
        for id in own {
            if !self.node(id).is_available() {
                continue;
            }
            let state = self.latencies(id)?;
            let node = self.node(id);
            let name = node.prop("idle-state-name").and_then(|p| p.texts().into_iter().next());
            let name = crate::capture::clean(&name.unwrap_or_else(|| node.name.clone()));
            let twice = states.iter().any(|s| s.name == name);
            let name = if twice { format!("{name}-{}", states.len()) } else { name };
            states.push(IdleState { name, ..state });
            self.draft.source("idle", format!("{}: idle states", self.file));
        }
        if states.len() > MAX_IDLE_STATES {
            self.draft.missing(format!(
                "idle states: more than {MAX_IDLE_STATES}: the deepest are left out"
            ));
            states.truncate(MAX_IDLE_STATES);
        }
        states.sort_by_key(|s| s.min_residency);
        Ok(states)
    }

    /// An idle state's times, without its name.
    fn latencies(&self, id: NodeId) -> Result<IdleState, InputError> {
        let node = self.node(id);
        let need = |name: &str| {
            node.number(name)?.map(u64::from).ok_or_else(|| {
                InputError::new(
                    &*node.place,
                    format!("idle state `{}`: `{name}` is missing", node.name),
                )
            })
        };
        let bound = |us: u64| Span::from_us(us.min(1_000_000_000));
        // The binding wants both unless the wakeup's is there, which then is all that is known.
        let wakeup = node.number("wakeup-latency-us")?.map(u64::from);
        let of = |name: &str, other: Option<u64>| match (node.number(name)?, other) {
            (Some(us), _) => Ok(u64::from(us)),
            (None, Some(us)) => Ok(us),
            (None, None) => need(name),
        };
        let exit = of("exit-latency-us", wakeup)?;
        let entry = of("entry-latency-us", wakeup.map(|_| 0))?;
        let residency = bound(need("min-residency-us")?);
        let state = IdleState::new("", bound(exit), residency, MicroWatts(0));
        let wakeup_latency = wakeup.map(|us| bound(us.max(exit)));
        Ok(IdleState { entry_latency: bound(entry), wakeup_latency, ..state })
    }

    /// Names the idle states of domains above a CPU, which no CPU of a platform has by itself.
    fn domain_states(&mut self) -> Result<(), InputError> {
        let mut of: BTreeMap<NodeId, Vec<u32>> = BTreeMap::new();
        for n in 0..self.cpus.len() {
            let Some(mut at) = self.own_domain(self.cpus[n])? else { continue };
            for _ in 0..8 {
                let parent = self.power_domains(at)?.first().map(|(id, _)| *id);
                let Some(parent) = parent.filter(|p| *p != at) else { break };
                of.entry(parent).or_default().push(n as u32);
                at = parent;
            }
        }
        for (domain, cpus) in of {
            for id in self.tree.references(domain, "domain-idle-states")? {
                let state = self.latencies(id)?;
                let us = |span: Span| span.0 / 1000;
                let (exit, residency) = (us(state.longest_wakeup()), us(state.min_residency));
                let name = self.node(id).name.clone();
                self.draft.missing(format!(
                    "idle state `{name}` of the domain of CPUs {} (exit {exit} µs with its entry, residency {residency} µs): entered by the last CPU alone, which a platform's states cannot say: left out",
                    format_cpu_list(&cpus)
                ));
            }
        }
        Ok(())
    }
}

/// The power of an OPP in µW. Rounding: down, of voltage to mV and of frequency to MHz too.
///
/// Source: `drivers/opp/of.c:_get_power` (`dev_pm_opp_calc_power`).
fn power(c: u64, uv: u64, hz: u64) -> u64 {
    let (mv, mhz) = (u128::from(uv / 1000), u128::from(hz / 1_000_000));
    let uw = u128::from(c) * mv * mv * mhz / 1_000_000;
    u64::try_from(uw).unwrap_or(u64::MAX)
}

/// Leaves boosts only where they are the highest, as cpufreq's table has them in the end.
fn boosts_last(mut points: Vec<Point>) -> Vec<Point> {
    let own = points.iter().rposition(|p| !p.turbo);
    match own {
        Some(last) => points[..last].iter_mut().for_each(|p| p.turbo = false),
        None => points.iter_mut().for_each(|p| p.turbo = false),
    }
    points
}
