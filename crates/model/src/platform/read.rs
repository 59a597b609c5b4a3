//! Reader of TOML into [`Platform`], and all that can be wrong on the way.

use super::bounds::{MAX_C, MAX_CPUS, MAX_KHZ, MAX_LATENCY_NS, MAX_UV, MAX_UW};
use super::text::{checked_name, cpu_list};
use super::{
    Domain, HZ, Opp, Platform, Topology, check, idle, keys, levels, thermal, topology, work,
};
use crate::InputError;
use crate::input::{check_size, looks_like_path, printable, read_file, unknown_name};
use crate::library;
use crate::toml_in::{Doc, Scalar, Table};
use risetime_kernel::units::{Capacity, CpuId, KHz, MicroWatts, SCHED_CAPACITY_SCALE, Span};
use std::collections::BTreeMap;
use std::path::Path;

/// Size limit of a platform file.
const MAX_BYTES: usize = 1 << 20;
/// Frequencies of a range.
const MAX_STEPS: u64 = 256;

impl Platform {
    /// The machine called `name_or_path`: a built-in name, or a file.
    ///
    /// Errors: unknown name (the built-in ones are listed), or a fault in the file.
    pub fn load(name_or_path: &str) -> Result<Platform, InputError> {
        let known = library::platforms();
        if !looks_like_path(name_or_path, ".toml") {
            if let Some(e) = known.iter().find(|e| e.name == name_or_path) {
                return Platform::parse(e.text, &format!("{}.toml (built in)", e.name));
            }
            if !Path::new(name_or_path).exists() {
                let names: Vec<&str> = known.iter().map(|e| e.name).collect();
                return Err(unknown_name("platform", name_or_path, &names));
            }
        }
        Platform::parse(&read_file(name_or_path, MAX_BYTES)?, name_or_path)
    }

    /// The machine that `text` describes; `place` is what errors call the text.
    ///
    /// Errors: the first fault found, with line and column, and the domain and OPP counted
    /// from 1 as they stand in the file.
    pub fn parse(text: &str, place: &str) -> Result<Platform, InputError> {
        let place = printable(place);
        check_size(text.len(), MAX_BYTES, &place)?;
        let doc = Doc::parse(text, &place)?;
        let root = doc.root();
        root.only(&keys::names(""))?;
        root.int("schema", 1, 1)?;
        let name = root.str("name")?;
        let about = root.opt_str("about")?.unwrap_or("").to_string();
        let hz = root.int("hz", HZ.0.into(), HZ.1.into())? as u32;
        // With another HZ than its own, as `with_hz` calls it.
        let own = name.strip_suffix(&format!("+hz={hz}")).unwrap_or(name);
        checked_name(&root, "name", own)?;
        let name = name.to_string();
        let tables = root.opt_tables("domain", "domain")?.unwrap_or_default();
        if tables.is_empty() {
            return Err(root.error("no `[[domain]]`: a machine has at least one CPU"));
        }
        let (mut domains, mut doubts) = (Vec::new(), Vec::new());
        let mut owner = BTreeMap::new();
        let mut cluster_given = false;
        for (i, table) in tables.into_iter().enumerate() {
            cluster_given |= table.opt_int("cluster", 0, MAX_CPUS - 1)?.is_some();
            domains.extend(domain(&table, i, &mut owner)?);
            doubts.extend(check::doubts(&table)?);
        }
        no_gaps(&root, &owner)?;
        domains.sort_by_key(|d: &Domain| d.cpus[0]);
        let sources = sources(&root)?;
        work::agree(&root, &domains, &sources)?;
        let mut platform = Platform {
            name,
            about,
            hz,
            domains,
            topology: Topology::default(),
            thermal: Vec::new(),
            sources,
            doubts,
        };
        if let Some(table) = root.opt_table("topology")? {
            let read = topology::read(&table, owner.len())?;
            if cluster_given && !read.llc.is_empty() {
                let what = "and the `cluster` of a domain say the same thing: one of them";
                return Err(table.error_of("llc", what));
            }
            platform.topology = read.topology;
            set_clusters(&mut platform, &read.llc).map_err(|what| table.error_of("llc", what))?;
            topology::check(&platform).map_err(|what| table.error(what))?;
        }
        platform.check_levels().map_err(|what| root.error(what))?;
        platform.check_idle().map_err(|what| root.error(what))?;
        platform.thermal = thermal::read(&root, &platform)?;
        Ok(platform)
    }
}

/// The clusters of the domains from the list of last-level caches, if there is one.
fn set_clusters(platform: &mut Platform, llc: &[Vec<CpuId>]) -> Result<(), String> {
    let mut of = vec![0; platform.nr_cpus()];
    for (i, cpus) in llc.iter().enumerate() {
        cpus.iter().for_each(|c| of[c.index()] = i as u32);
    }
    for d in platform.domains.iter_mut().filter(|_| !llc.is_empty()) {
        d.cluster = of[d.cpus[0].index()];
        if d.cpus.iter().any(|c| of[c.index()] != d.cluster) {
            let cpus = super::cpu_ranges(&d.cpus);
            return Err(format!(
                "divides CPUs {cpus}, which have one frequency: not possible here"
            ));
        }
    }
    Ok(())
}

fn domain(
    t: &Table<'_>,
    index: usize,
    owner: &mut BTreeMap<u32, usize>,
) -> Result<Vec<Domain>, InputError> {
    t.only(&keys::names("domain"))?;
    let cpus = cpu_list(t.str("cpus")?).map_err(|what| t.error_of("cpus", what))?;
    for &cpu in &cpus {
        if let Some(other) = owner.insert(cpu, index) {
            let what = format!("names CPU {cpu}, which domain {} has already", other + 1);
            return Err(t.error_of("cpus", what));
        }
    }
    let cluster = t.opt_int("cluster", 0, MAX_CPUS - 1)?.unwrap_or(0) as u32;
    let capacity = Capacity(t.int("capacity", 1, SCHED_CAPACITY_SCALE)?);
    let fast_switch = t.opt_bool("fast_switch")?.unwrap_or(false);
    let transition_delay_us =
        t.opt_int("transition_delay_us", 1, u64::from(u32::MAX) / 1000)?.map(|n| n as u32);
    let energy_model = t.opt_bool("energy_model")?.unwrap_or(true);
    let coefficient = t.opt_int("dynamic_power_coefficient", 1, MAX_C)?;
    let (levels, opps) = match levels::read(t)? {
        Some(_) if t.opt_tables("opp", "opp")?.is_some() || t.opt_table("opp_range")?.is_some() => {
            return Err(
                t.error_of("levels", "and frequencies are both there: the levels are these")
            );
        }
        Some((levels, opps)) => (Some(levels), opps),
        None => (None, opps(t, coefficient)?),
    };
    capacities(t, capacity, &opps)?;
    let idle = idle::read(t)?;
    let work = work::read(t, &opps)?;
    let cpus: Vec<CpuId> = cpus.into_iter().map(CpuId).collect();
    let each = t.opt_int("cpus_per_policy", 1, MAX_CPUS)?.map_or(cpus.len(), |n| n as usize);
    if !cpus.len().is_multiple_of(each) {
        let what = format!("is {each}, which does not divide {} CPUs", cpus.len());
        return Err(t.error_of("cpus_per_policy", what));
    }
    let policy = |cpus: &[CpuId]| Domain {
        cpus: cpus.to_vec(),
        cluster,
        capacity,
        fast_switch,
        transition_delay_us,
        energy_model,
        opps: opps.clone(),
        levels,
        idle: idle.clone(),
        work: work.clone(),
    };
    Ok(cpus.chunks(each).map(policy).collect())
}

/// Checks that CPU numbers run from 0 without gaps.
fn no_gaps(root: &Table<'_>, owner: &BTreeMap<u32, usize>) -> Result<(), InputError> {
    let last = owner.keys().next_back().copied().unwrap_or(0);
    match (0..last).find(|c| !owner.contains_key(c)) {
        None => Ok(()),
        Some(gap) => Err(root.error(format!(
            "CPU {gap} is in no domain, yet there is a CPU {last}: CPU numbers run from 0 without gaps"
        ))),
    }
}

fn opps(t: &Table<'_>, coefficient: Option<u64>) -> Result<Vec<Opp>, InputError> {
    let tables = t.opt_tables("opp", "opp")?.unwrap_or_default();
    if let Some(range) = t.opt_table("opp_range")? {
        if !tables.is_empty() {
            return Err(t.error_of("opp_range", "and `opp` are both there, wanted one of them"));
        }
        return opp_range(&range);
    }
    if tables.is_empty() {
        return Err(t.error("no OPPs: `opp` needs at least one { freq_khz, power_uw, latency_ns }"));
    }
    let mut opps: Vec<Opp> = Vec::new();
    let mut first_has_power = None;
    let mut uses_voltage = false;
    for o in tables {
        o.only(&keys::names("domain.opp"))?;
        let freq = KHz(o.int("freq_khz", 1, MAX_KHZ)?);
        let power = power(&o, freq, coefficient)?;
        uses_voltage |= o.opt_int("uv", 1, MAX_UV)?.is_some();
        let latency = Span(o.opt_int("latency_ns", 0, MAX_LATENCY_NS)?.unwrap_or(0));
        if let Some(below) = opps.last().filter(|p| p.freq >= freq) {
            let what = format!(
                "is {}, wanted more than the {} of the OPP before: frequencies ascend",
                freq.0, below.freq.0
            );
            return Err(o.error_of("freq_khz", what));
        }
        if *first_has_power.get_or_insert(power.is_some()) != power.is_some() {
            return Err(o.error("either every OPP of a domain has a power or none has"));
        }
        let turbo = o.opt_bool("turbo")?.unwrap_or(false);
        match opps.last() {
            Some(below) if below.turbo && !turbo => {
                return Err(o.error("is no boost, and stands above one: boosts are the highest"));
            }
            None if turbo => {
                return Err(o.error_of("turbo", "of the lowest OPP: one at least is no boost"));
            }
            _ => {}
        }
        let capacity = o.opt_int("capacity", 1, 2 * SCHED_CAPACITY_SCALE)?.map(Capacity);
        opps.push(Opp { freq, power: power.unwrap_or_default(), latency, turbo, capacity });
    }
    if coefficient.is_some() && !uses_voltage {
        let what = "has no effect: no OPP of this domain has a voltage `uv`";
        return Err(t.error_of("dynamic_power_coefficient", what));
    }
    Ok(opps)
}

/// A continuous range: every frequency that its driver can ask for, `step_khz` apart.
fn opp_range(t: &Table<'_>) -> Result<Vec<Opp>, InputError> {
    t.only(&keys::names("domain.opp_range"))?;
    let min = t.int("min_khz", 1, MAX_KHZ)?;
    let max = t.int("max_khz", min, MAX_KHZ)?;
    let step = t.int("step_khz", 1, MAX_KHZ)?;
    let latency = Span(t.opt_int("latency_ns", 0, MAX_LATENCY_NS)?.unwrap_or(0));
    let steps = (max - min).div_ceil(step);
    if steps >= MAX_STEPS {
        let what = format!("makes {} frequencies, wanted at most {MAX_STEPS}", steps + 1);
        return Err(t.error_of("step_khz", what));
    }
    let freq = |i: u64| KHz((min + i * step).min(max));
    Ok((0..=steps).map(|i| Opp::new(freq(i), MicroWatts(0), latency)).collect())
}

/// Capacities of single OPPs: those of all or of none, ascending; at the highest that is no boost it is the domain's.
fn capacities(t: &Table<'_>, capacity: Capacity, opps: &[Opp]) -> Result<(), InputError> {
    let given = || opps.iter().filter_map(|o| o.capacity);
    if given().count() == 0 {
        return Ok(());
    }
    if given().count() < opps.len() {
        return Err(t.error("either every OPP of a domain has a capacity or none has"));
    }
    if !given().is_sorted_by(|a, b| a < b) {
        return Err(t.error("the capacities of the OPPs do not ascend with their frequencies"));
    }
    let top = opps.iter().rev().find(|o| !o.turbo).and_then(|o| o.capacity);
    match top.filter(|top| *top != capacity) {
        Some(top) => {
            let what =
                format!("is {}, yet {} at its highest OPP that is no boost", capacity.0, top.0);
            Err(t.error_of("capacity", what))
        }
        None => Ok(()),
    }
}

/// The power of an OPP: as written, or from its voltage (formula at the top of
/// [`platform`](super)); `None`: neither is there.
///
/// Source: `drivers/opp/of.c:_get_power`.
fn power(
    o: &Table<'_>,
    freq: KHz,
    coefficient: Option<u64>,
) -> Result<Option<MicroWatts>, InputError> {
    let written = o.opt_int("power_uw", 0, MAX_UW)?;
    let uv = o.opt_int("uv", 1, MAX_UV)?;
    match (written, uv, coefficient) {
        (Some(_), Some(_), _) => Err(o.error("has both `power_uw` and `uv`, wanted one of them")),
        (Some(p), None, _) => Ok(Some(MicroWatts(p))),
        (None, Some(_), None) => {
            Err(o.error_of("uv", "needs a `dynamic_power_coefficient` in its domain"))
        }
        (None, Some(uv), Some(c)) => {
            let (mv, mhz) = (uv / 1000, freq.0 / 1000);
            let uw = u128::from(c) * u128::from(mv * mv) * u128::from(mhz) / 1_000_000;
            match u64::try_from(uw) {
                Ok(uw) if uw <= MAX_UW => Ok(Some(MicroWatts(uw))),
                _ => Err(o.error(format!("comes to {uw} µW, wanted at most {MAX_UW}"))),
            }
        }
        (None, None, _) => Ok(None),
    }
}

fn sources(root: &Table<'_>) -> Result<BTreeMap<String, String>, InputError> {
    let Some(table) = root.opt_table("sources")? else {
        return Err(root
            .error("no `[sources]`: say where the figures come from")
            .hint("[sources] capacity = \"…\", opp = \"…\"; \"estimate\" is an honest answer"));
    };
    let mut sources = BTreeMap::new();
    for (key, value) in table.scalars()? {
        match value {
            Scalar::Text(s) if !s.trim().is_empty() => {
                sources.insert(key.to_string(), s.to_string());
            }
            _ => return Err(table.error_of(key, "does not say where the figures come from")),
        }
    }
    for key in ["capacity", "opp"] {
        if !sources.contains_key(key) {
            return Err(table
                .error(format!("`{key}` is missing: where do these figures come from?"))
                .hint("\"estimate\" is an honest answer"));
        }
    }
    Ok(sources)
}
