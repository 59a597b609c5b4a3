//! Thermal zones: what heats them, how they cool, and what is done where it gets hot.
//!
//! ```text
//! [[thermal]]
//! name = "big"
//! heated_by = "4-7"                      # CPUs whose power goes there; "all"; without it: none
//! ambient_millicelsius = 25000
//! resistance_mk_per_w = 12000            # to ambient: 12 °C more for each W, in the end
//! capacitance_mj_per_k = 900             # 0.9 J to warm it by 1 °C
//! coupled = [ { zone = "skin", resistance_mk_per_w = 5000 } ]
//! polling_delay_passive_ms = 100         # while a passive trip is crossed
//! polling_delay_ms = 1000                # else
//! governor = "step_wise"                 # or "power_allocator", with sustainable_power_mw, k_po, k_pu, k_i, …
//! cools = "4-7"                          # CPUs whose frequency is capped, whole domains; without it: none
//! trip = [ { type = "passive", temp_millicelsius = 70000, hysteresis_millicelsius = 2000 } ]
//! ```
//!
//! Keys are those of a device tree's `thermal-zones` where there is one (Documentation/devicetree/bindings/thermal), with
//! units. Left out: sensors that interrupt (a polling delay of 0), limits and weights of cooling maps, fans.

use super::bounds::{MAX_DELAY_MS, MAX_K, MAX_MILLICELSIUS, MAX_MJ_PER_K, MAX_MK_PER_W, MAX_MW};
use super::text::{checked_name, cpu_list};
use super::{Domain, Platform, cpu_ranges, keys};
use crate::InputError;
use crate::toml_in::{Table, quote};
use risetime_kernel::thermal::rc::TAU_MIN;
use risetime_kernel::units::{CpuId, Span};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Most zones, trip points of one, couplings of one.
const MOST: usize = 64;

/// A thermal zone, which is one node of the thermal network with one sensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The zone's name.
    pub name: String,
    /// CPUs whose power heats it, ascending.
    pub heated_by: Vec<CpuId>,
    /// Temperature of the surroundings, in m°C.
    pub ambient_millicelsius: i64,
    /// Thermal resistance to that, in mK/W.
    pub resistance_mk_per_w: u64,
    /// Thermal capacitance, in mJ/K.
    pub capacitance_mj_per_k: u64,
    /// Other zones, by their place in the file, and the resistance between; each pair at one of the two.
    pub coupled: Vec<(usize, u64)>,
    /// Time between two looks while a passive trip is crossed.
    pub polling_delay_passive: Span,
    /// Else.
    pub polling_delay: Span,
    /// Trip points, by temperature.
    pub trips: Vec<Trip>,
    /// The governor that decides on cooling.
    pub governor: Governor,
    /// CPUs whose frequency it caps, ascending: whole domains.
    pub cools: Vec<CpuId>,
}

/// A trip point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trip {
    /// Whether it is `critical` (a kernel powers the machine off), else `passive`.
    pub critical: bool,
    /// Temperature of the trip, in m°C.
    pub temp_millicelsius: i64,
    /// Hysteresis of the trip, in m°C.
    pub hysteresis_millicelsius: i64,
}

/// A thermal governor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Governor {
    /// `step_wise`.
    StepWise,
    /// `power_allocator`; what is unset the kernel estimates.
    PowerAllocator {
        /// Sustainable power, in mW.
        sustainable_power_mw: u32,
        /// Factor of an overshoot as sysfs has it, in 1/1024 mW/m°C; the other two are in the same
        /// unit.
        k_po: Option<i32>,
        /// Below the control temperature.
        k_pu: Option<i32>,
        /// Factor of the sum of errors.
        k_i: Option<i32>,
        /// Cutoff of the integral, in m°C.
        integral_cutoff: i32,
    },
}

impl Zone {
    /// The trip points at which it cools.
    pub fn passive(&self) -> impl Iterator<Item = &Trip> {
        self.trips.iter().filter(|t| !t.critical)
    }
}

/// The zones of a platform that is complete but for them.
pub(super) fn read(root: &Table<'_>, platform: &Platform) -> Result<Vec<Zone>, InputError> {
    let tables = root.opt_tables("thermal", "thermal zone")?.unwrap_or_default();
    if tables.len() > MOST {
        let what = format!("has {} zones, wanted at most {MOST}", tables.len());
        return Err(root.error_of("thermal", what));
    }
    let mut names = Vec::new();
    for t in &tables {
        let name = checked_name(t, "name", t.str("name")?)?;
        if names.contains(&name) {
            return Err(t.error_of("name", format!("is \"{name}\" a second time")));
        }
        names.push(name);
    }
    let mut zones: Vec<Zone> = Vec::new();
    let mut heats = BTreeMap::new();
    for (i, t) in tables.iter().enumerate() {
        let zone = zone(t, i, &names, platform)?;
        for cpu in &zone.heated_by {
            if let Some(other) = heats.insert(*cpu, i) {
                let what = format!("names CPU {}, which heats `{}` already", cpu.0, names[other]);
                return Err(t.error_of("heated_by", what));
            }
        }
        let twice = |(j, _): &&(usize, u64)| zones.get(*j).is_some_and(|z| is_coupled(z, i));
        if let Some((j, _)) = zone.coupled.iter().find(twice) {
            let what = format!("names `{}`, which names this zone already", names[*j]);
            return Err(t.error_of("coupled", what));
        }
        zones.push(zone);
    }
    for (i, t) in tables.iter().enumerate() {
        let tau = tau_ns(&zones, i);
        if tau < u128::from(TAU_MIN.0) {
            let what = format!(
                "makes a time constant of {} ms with all resistances of the zone, wanted at least {} ms",
                tau / 1_000_000,
                TAU_MIN.0 / 1_000_000
            );
            return Err(t.error_of("capacitance_mj_per_k", what));
        }
    }
    if !zones.is_empty() && !platform.sources.contains_key("thermal") {
        let what = "`[sources]` says nothing of `thermal`: where do these figures come from?";
        return Err(tables[0].error(what).hint("\"estimate\" is an honest answer"));
    }
    Ok(zones)
}

fn is_coupled(zone: &Zone, with: usize) -> bool {
    zone.coupled.iter().any(|(j, _)| *j == with)
}

/// The time constant of zone `i` in ns: C over the sum of its conductances. Rounding: down.
fn tau_ns(zones: &[Zone], i: usize) -> u128 {
    let own = zones[i].coupled.iter().map(|(_, r)| *r);
    let others = zones.iter().flat_map(|z| z.coupled.iter()).filter(|(j, _)| *j == i);
    let all = own.chain(others.map(|(_, r)| *r)).chain([zones[i].resistance_mk_per_w]);
    // mJ/K / (pW/mK), so that no conductance is 0.
    let conductance: u128 = all.map(|r| 1_000_000_000_000 / u128::from(r)).sum();
    u128::from(zones[i].capacitance_mj_per_k) * 1_000_000_000_000_000 / conductance.max(1)
}

fn zone(
    t: &Table<'_>,
    index: usize,
    names: &[String],
    platform: &Platform,
) -> Result<Zone, InputError> {
    t.only(&keys::names("thermal"))?;
    let ms = |key| Ok::<_, InputError>(Span::from_ms(t.int(key, 1, MAX_DELAY_MS)?));
    let heated_by = cpus(t, "heated_by", platform)?;
    let unknown = |d: &&Domain| {
        d.busy_power(d.freq_max()).is_none() && d.cpus.iter().any(|c| heated_by.contains(c))
    };
    if let Some(d) = platform.domains.iter().find(unknown) {
        let what = format!("names CPUs {}, whose power is unknown", cpu_ranges(&d.cpus));
        return Err(t.error_of("heated_by", what));
    }
    let cools = cpus(t, "cools", platform)?;
    let divided = |d: &&Domain| {
        let n = d.cpus.iter().filter(|c| cools.contains(c)).count();
        n > 0 && n < d.cpus.len()
    };
    if let Some(d) = platform.domains.iter().find(divided) {
        let cpus = cpu_ranges(&d.cpus);
        return Err(t.error_of("cools", format!("divides CPUs {cpus}, which have one frequency")));
    }
    let trips = trips(t)?;
    let zone = Zone {
        name: names[index].clone(),
        heated_by,
        ambient_millicelsius: t.int("ambient_millicelsius", 0, MAX_MILLICELSIUS)? as i64,
        resistance_mk_per_w: t.int("resistance_mk_per_w", 1, MAX_MK_PER_W)?,
        capacitance_mj_per_k: t.int("capacitance_mj_per_k", 1, MAX_MJ_PER_K)?,
        coupled: coupled(t, index, names)?,
        polling_delay_passive: ms("polling_delay_passive_ms")?,
        polling_delay: ms("polling_delay_ms")?,
        governor: governor(t)?,
        trips,
        cools,
    };
    if zone.passive().next().is_none() && !zone.cools.is_empty() {
        return Err(t.error_of("cools", "has no effect: no trip of this zone is passive"));
    }
    let power = |d: &Domain| d.busy_power(d.freq_max()).is_some();
    let blind = |d: &&Domain| !power(d) && zone.cools.contains(&d.cpus[0]);
    if zone.governor != Governor::StepWise
        && let Some(d) = platform.domains.iter().find(blind)
    {
        let what = format!(
            "names CPUs {}, whose power is unknown: not for power_allocator",
            cpu_ranges(&d.cpus)
        );
        return Err(t.error_of("cools", what));
    }
    Ok(zone)
}

/// The CPUs of a list, or of "all"; none without it.
fn cpus(t: &Table<'_>, key: &'static str, p: &Platform) -> Result<Vec<CpuId>, InputError> {
    let list = match t.opt_str(key)? {
        None => return Ok(Vec::new()),
        Some("all") => return Ok(p.cpus().collect()),
        Some(list) => cpu_list(list).map_err(|what| t.error_of(key, what))?,
    };
    match list.iter().find(|c| **c as usize >= p.nr_cpus()) {
        Some(c) => {
            let last = p.nr_cpus() - 1;
            Err(t.error_of(key, format!("names CPU {c}: there are CPUs 0 to {last}")))
        }
        None => Ok(list.into_iter().map(CpuId).collect()),
    }
}

fn coupled(t: &Table<'_>, index: usize, names: &[String]) -> Result<Vec<(usize, u64)>, InputError> {
    let mut all: Vec<(usize, u64)> = Vec::new();
    for c in t.opt_tables("coupled", "coupling")?.unwrap_or_default() {
        c.only(&keys::names("thermal.coupled"))?;
        let other = c.str("zone")?;
        let at = names.iter().position(|n| n == other).filter(|at| *at != index);
        let Some(at) = at.filter(|at| all.iter().all(|(j, _)| j != at)) else {
            let what = "wanted another zone of this file, each once";
            return Err(c.error_of("zone", format!("is {}, {what}", quote(other))));
        };
        all.push((at, c.int("resistance_mk_per_w", 1, MAX_MK_PER_W)?));
    }
    Ok(all)
}

fn trips(t: &Table<'_>) -> Result<Vec<Trip>, InputError> {
    let mut all = Vec::new();
    let tables = t.opt_tables("trip", "trip")?.unwrap_or_default();
    if tables.len() > MOST {
        let what = format!("has {} trip points, wanted at most {MOST}", tables.len());
        return Err(t.error_of("trip", what));
    }
    for trip in tables {
        trip.only(&keys::names("thermal.trip"))?;
        let critical = match trip.str("type")? {
            "passive" => false,
            "critical" => true,
            other => {
                let what = format!("is {}, wanted \"passive\" or \"critical\"", quote(other));
                return Err(trip.error_of("type", what));
            }
        };
        let temp = trip.int("temp_millicelsius", 1, MAX_MILLICELSIUS)?;
        let hysteresis = trip.opt_int("hysteresis_millicelsius", 0, temp)?.unwrap_or(0);
        all.push(Trip {
            critical,
            temp_millicelsius: temp as i64,
            hysteresis_millicelsius: hysteresis as i64,
        });
    }
    all.sort_by_key(|trip| trip.temp_millicelsius);
    Ok(all)
}

/// Keys that only `power_allocator` has.
const CONTROLLER: [&str; 5] =
    ["sustainable_power_mw", "k_po", "k_pu", "k_i", "integral_cutoff_millicelsius"];

fn governor(t: &Table<'_>) -> Result<Governor, InputError> {
    let k = |key| Ok::<_, InputError>(t.opt_int(key, 0, MAX_K)?.map(|k| k as i32));
    let cutoff = t.opt_int(CONTROLLER[4], 0, MAX_MILLICELSIUS)?.unwrap_or(0) as i32;
    match t.opt_str("governor")?.unwrap_or("step_wise") {
        "step_wise" => {
            for key in CONTROLLER {
                if t.opt_int(key, 0, MAX_K)?.is_some() {
                    return Err(t.error_of(key, "has no effect: it is of power_allocator"));
                }
            }
            Ok(Governor::StepWise)
        }
        "power_allocator" => Ok(Governor::PowerAllocator {
            sustainable_power_mw: t.int(CONTROLLER[0], 1, MAX_MW)? as u32,
            k_po: k("k_po")?,
            k_pu: k("k_pu")?,
            k_i: k("k_i")?,
            integral_cutoff: cutoff,
        }),
        other => {
            let what = format!("is {}, wanted \"step_wise\" or \"power_allocator\"", quote(other));
            Err(t.error_of("governor", what))
        }
    }
}

/// A zone as the file has it.
pub(super) fn write(out: &mut String, zone: &Zone, zones: &[Zone]) {
    let _ = writeln!(out, "\n[[thermal]]\nname = {}", quote(&zone.name));
    let mut line = |key: &str, value: String| {
        let _ = writeln!(out, "{key} = {value}");
    };
    let cpus = |cpus: &[CpuId]| format!("\"{}\"", cpu_ranges(cpus));
    let ms = |span: Span| (span.0 / 1_000_000).to_string();
    if !zone.heated_by.is_empty() {
        line("heated_by", cpus(&zone.heated_by));
    }
    line("ambient_millicelsius", zone.ambient_millicelsius.to_string());
    line("resistance_mk_per_w", zone.resistance_mk_per_w.to_string());
    line("capacitance_mj_per_k", zone.capacitance_mj_per_k.to_string());
    let coupled = zone.coupled.iter().map(|(j, r)| {
        let other = quote(&zones[*j].name);
        format!("  {{ zone = {other}, resistance_mk_per_w = {r} }},\n")
    });
    let coupled: String = coupled.collect();
    if !coupled.is_empty() {
        line("coupled", format!("[\n{coupled}]"));
    }
    line("polling_delay_passive_ms", ms(zone.polling_delay_passive));
    line("polling_delay_ms", ms(zone.polling_delay));
    match zone.governor {
        Governor::StepWise => line("governor", "\"step_wise\"".into()),
        Governor::PowerAllocator { sustainable_power_mw, k_po, k_pu, k_i, integral_cutoff } => {
            line("governor", "\"power_allocator\"".into());
            line("sustainable_power_mw", sustainable_power_mw.to_string());
            for (key, k) in [("k_po", k_po), ("k_pu", k_pu), ("k_i", k_i)] {
                k.into_iter().for_each(|k| line(key, k.to_string()));
            }
            line(CONTROLLER[4], integral_cutoff.to_string());
        }
    }
    if !zone.cools.is_empty() {
        line("cools", cpus(&zone.cools));
    }
    let trips = zone.trips.iter().map(|t| {
        let kind = if t.critical { "critical" } else { "passive" };
        format!(
            "  {{ type = \"{kind}\", temp_millicelsius = {}, hysteresis_millicelsius = {} }},\n",
            t.temp_millicelsius, t.hysteresis_millicelsius
        )
    });
    let trips: String = trips.collect();
    if !trips.is_empty() {
        line("trip", format!("[\n{trips}]"));
    }
}
