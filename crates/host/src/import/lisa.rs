//! LISA's `plat_info.yml`.
//!
//! ```text
//! platform-info: conf:  name, cpus-count, freq-domains, freqs, cpu-capacities: orig (or itself), kernel: config, version
//!   nrg-model           `active_states` of nodes with `cpus`, as LISA before 2021 wrote them: power in mW before Linux 6.0
//! ```
//!
//! Tags (`!call:…`, `!!python/object:…`) are passed over; what an alias stands for is not followed, since each node of the
//! energy model is there once in full.
//!
//! Source: LISA (github.com/ARM-software/lisa), `lisa/platforms/platinfo.py`, `lisa/energy_model.py`.

use super::Input;
use super::draft::{Draft, Group, Point};
use risetime_kernel::{KernelRev, features};
use risetime_model::InputError;
use risetime_model::platform::MAX_CPUS;
use risetime_model::yaml_tree::{self, Node, Place, Rules, Value};
use std::collections::BTreeMap;

/// Rules of files that LISA writes.
const RULES: Rules = Rules { depth: 100, values: 4_000_000, strict: false };

/// Whether the input is a `plat_info.yml`.
pub(super) fn tells(input: &Input) -> bool {
    let first = |line: &str| line.trim_end().ends_with("platform-info:");
    input.text().is_some_and(|text| text.lines().any(first))
}

/// Reads a `plat_info.yml`.
pub(super) fn read(input: &Input) -> Result<Draft, InputError> {
    let file = File { name: &input.name };
    let root = yaml_tree::parse(input.text().unwrap_or_default(), file.name, RULES)?;
    let Some(conf) = root.get("platform-info").and_then(|n| n.get("conf")) else {
        return Err(file.error(root.at, "has no `platform-info: conf:`"));
    };
    let mut draft = Draft {
        model: conf.get("name").and_then(Node::text).map(str::to_owned),
        ..Draft::default()
    };
    let kernel = kernel(conf);
    file.hz(conf, &mut draft)?;
    file.groups(conf, &mut draft)?;
    file.energy_model(conf, kernel, &mut draft)?;
    if draft.groups.is_empty() {
        return Err(
            file.error(conf.at, "has neither `freq-domains` nor `cpus-count` nor `freqs`: no CPUs")
        );
    }
    Ok(draft)
}

/// The release of the kernel that LISA saw.
fn kernel(conf: &Node) -> Option<KernelRev> {
    let version = conf.get("kernel")?.get("version")?;
    let text = ["version_string", "release"].iter().find_map(|key| version.get(key)?.text());
    KernelRev::of_release(text.or(version.text())?)
}

/// A file by the name that errors have for it.
struct File<'a> {
    name: &'a str,
}

impl File<'_> {
    fn error(&self, at: Place, what: impl Into<String>) -> InputError {
        yaml_tree::error(self.name, at, what)
    }

    fn number(&self, node: &Node, what: &str, most: u64) -> Result<u64, InputError> {
        let number = node.text().and_then(|t| t.parse::<f64>().ok());
        match number.filter(|n| *n >= 0.0 && *n <= most as f64) {
            Some(n) => Ok(n.round() as u64),
            None => {
                let found = match node.text() {
                    Some(text) => format!("\"{}\"", text.escape_default()),
                    None => "no number".into(),
                };
                Err(self
                    .error(node.at, format!("`{what}` is {found}, wanted a number up to {most}")))
            }
        }
    }

    fn hz(&self, conf: &Node, draft: &mut Draft) -> Result<(), InputError> {
        let Some(config) = conf.get("kernel").and_then(|k| k.get("config")) else { return Ok(()) };
        let by_key = config.get("CONFIG_HZ").or_else(|| config.get("HZ"));
        let hz = match by_key {
            Some(node) => Some(self.number(node, "CONFIG_HZ", 10_000)?),
            None => {
                let text = config.get("text").unwrap_or(config).text().unwrap_or_default();
                let line = text.lines().find_map(|l| l.trim().strip_prefix("CONFIG_HZ="));
                line.and_then(|l| l.parse().ok())
            }
        };
        draft.hz = hz.filter(|hz| (24..=10_000).contains(hz)).map(|hz| hz as u32);
        if draft.hz.is_some() {
            draft.source("hz", format!("{}: kernel: config: CONFIG_HZ", self.name));
        }
        Ok(())
    }

    /// Domains, frequencies and capacities.
    fn groups(&self, conf: &Node, draft: &mut Draft) -> Result<(), InputError> {
        let mut freqs: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for (cpu, list) in conf.get("freqs").map(Node::pairs).unwrap_or_default() {
            let cpu = self.number(cpu, "freqs", MAX_CPUS - 1)? as u32;
            let own = list.items().iter().map(|n| self.number(n, "freqs", 100_000_000));
            freqs.insert(cpu, own.collect::<Result<_, _>>()?);
        }
        let mut capacity: BTreeMap<u32, u64> = BTreeMap::new();
        if let Some(node) = conf.get("cpu-capacities") {
            for (cpu, value) in node.get("orig").unwrap_or(node).pairs() {
                // Without `orig` the table itself has other keys beside its CPUs.
                let Some(Ok(cpu)) = cpu.text().map(str::parse::<u32>) else { continue };
                capacity.insert(cpu, self.number(value, "cpu-capacities", 1024)?.max(1));
            }
        }
        let mut domains: Vec<Vec<u32>> = Vec::new();
        for domain in conf.get("freq-domains").map(Node::items).unwrap_or_default() {
            let own = domain.items().iter().map(|n| self.number(n, "freq-domains", MAX_CPUS - 1));
            let mut own: Vec<u32> = own.map(|n| n.map(|n| n as u32)).collect::<Result<_, _>>()?;
            own.sort_unstable();
            domains.push(own);
        }
        let count = conf.get("cpus-count").map(|n| self.number(n, "cpus-count", MAX_CPUS));
        let count = count.transpose()?.unwrap_or(0) as u32;
        let known = |c: &u32| domains.iter().any(|d| d.contains(c));
        let mut alone: Vec<u32> =
            (0..count).chain(freqs.keys().copied()).filter(|c| !known(c)).collect();
        alone.sort_unstable();
        alone.dedup();
        if !alone.is_empty() && domains.is_empty() {
            draft
                .estimates
                .push("frequency domains: `freq-domains` is missing; each CPU is one".into());
        }
        domains.extend(alone.into_iter().map(|c| vec![c]));
        let mut seen = std::collections::BTreeSet::new();
        for cpus in domains.into_iter().filter(|d| !d.is_empty()) {
            if let Some(twice) = cpus.iter().find(|c| !seen.insert(**c)) {
                let at = conf.get("freq-domains").map_or(conf.at, |n| n.at);
                return Err(self.error(at, format!("`freq-domains` has CPU {twice} twice")));
            }
            let mut by_capacity: BTreeMap<Option<u64>, Vec<u32>> = BTreeMap::new();
            cpus.iter().for_each(|c| {
                by_capacity.entry(capacity.get(c).copied()).or_default().push(*c);
            });
            for (capacity, cpus) in by_capacity {
                let mut own = freqs.get(&cpus[0]).cloned().unwrap_or_default();
                own.retain(|f| *f > 0);
                own.sort_unstable();
                own.dedup();
                let point = |khz| Point { khz, ..Point::default() };
                let points = own.into_iter().map(point).collect();
                draft.groups.push(Group { cpus, capacity, points, ..Group::default() });
            }
        }
        if !capacity.is_empty() {
            draft.source("capacity", format!("{}: cpu-capacities", self.name));
        }
        if !freqs.is_empty() {
            draft.source("frequencies", format!("{}: freqs", self.name));
        }
        Ok(())
    }

    /// Powers of the energy model.
    fn energy_model(
        &self,
        conf: &Node,
        kernel: Option<KernelRev>,
        draft: &mut Draft,
    ) -> Result<(), InputError> {
        let Some(model) = conf.get("nrg-model") else { return Ok(()) };
        let mut found: Vec<&Node> = Vec::new();
        with_states(model, &mut found);
        if found.is_empty() {
            draft.missing("power: `nrg-model` is of a form that has no `active_states`: left out");
            return Ok(());
        }
        let unit = match kernel {
            Some(k) if k.has(features::EM_MICROWATTS) => 1,
            Some(_) => 1000,
            None => {
                draft.missing("power: `nrg-model` does not say its unit, and `kernel: version` is missing, from which it would follow: left out");
                return Ok(());
            }
        };
        let mut powers: BTreeMap<(u32, u64), u64> = BTreeMap::new();
        for node in found {
            let mut states: Vec<(u64, u64)> = Vec::new();
            for (freq, state) in node.get("active_states").map(entries).unwrap_or_default() {
                let khz = self.number(freq, "active_states", 100_000_000)?;
                let power = state.get("power").or(state.items().get(1));
                let Some(power) = power else {
                    return Err(self.error(state.at, "a state of `active_states` has no power"));
                };
                states.push((khz, self.number(power, "active_states", 1_000_000_000)?));
            }
            let cpus = node.get("cpus").map(Node::items).unwrap_or_default();
            for cpu in cpus {
                let cpu = self.number(cpu, "cpus", MAX_CPUS - 1)? as u32;
                powers.extend(states.iter().map(|(khz, p)| ((cpu, *khz), p.saturating_mul(unit))));
            }
        }
        for group in &mut draft.groups {
            let cpu = group.cpus[0];
            if group.points.is_empty() {
                let own = powers.range((cpu, 0)..=(cpu, u64::MAX)).map(|((_, khz), _)| *khz);
                group.points = own.map(|khz| Point { khz, ..Point::default() }).collect();
            }
            group.points.iter_mut().for_each(|p| p.uw = powers.get(&(cpu, p.khz)).copied());
        }
        let text = if unit == 1 { "nrg-model" } else { "nrg-model, in mW" };
        draft.source("power", format!("{}: {text}", self.name));
        Ok(())
    }
}

/// Lists the pairs of a mapping, or of a list of mappings of one pair each (`!!omap`).
fn entries(node: &Node) -> Vec<&(Node, Node)> {
    match node.items() {
        [] => node.pairs().iter().collect(),
        items => items.iter().flat_map(Node::pairs).collect(),
    }
}

/// Collects the mappings that have states of their own.
fn with_states<'n>(node: &'n Node, found: &mut Vec<&'n Node>) {
    let has = node.get("active_states").is_some_and(|s| !entries(s).is_empty());
    if has && node.get("cpus").is_some_and(|c| !c.items().is_empty()) {
        found.push(node);
    }
    match &node.value {
        Value::List(list) => list.iter().for_each(|n| with_states(n, found)),
        Value::Map(pairs) => pairs.iter().for_each(|(_, n)| with_states(n, found)),
        Value::Scalar(_) | Value::Alias => {}
    }
}
