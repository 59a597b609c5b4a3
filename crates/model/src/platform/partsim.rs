//! PARTSim's system files, in YAML, with the tables that they name, in CSV.
//!
//! ```text
//! cpu_islands   numcpus, freqs (MHz)   ──> a domain each, CPUs numbered in that order
//! power_models  type: table_based      ──> rows  model,freq,workload,power (W),speed
//!
//! capacity   1024 · speed of the plain kind at the highest frequency, of the island that is fastest at it
//! power      that of the plain kind, of one CPU
//! work       speed of each other kind, 1 where the machine is fastest at it
//! ```
//!
//! PARTSim knows no plain work: the kind that is to count as such is named, else it is the first of the table. Between
//! OPPs plain work gets on with the frequency here, and as the table says there.
//!
//! Left out: voltages (powers are in the table), schedulers and placements of islands, `base_freq` (where a simulation begins),
//! parametric models (`balsini_pannocchi`).
//!
//! Source: PARTSim (github.com/gabrieleara/PARTSim, commit 37a9a4c of 2023), `librtsim/system_descriptor.cpp`, `simconf/systems/`.

use super::bounds::MAX_CPUS;
use super::{Domain, Opp, Platform, Topology, Work, checked_word};
use crate::InputError;
use crate::input::{check_size, meant, one_line, printable, read_file};
use crate::yaml_in::{Map, Yaml};
use risetime_kernel::units::{Capacity, CpuId, KHz, MicroWatts, Span};
use std::collections::BTreeMap;
use std::path::Path;

/// Size limit of each file.
const MAX_BYTES: usize = 4 << 20;
/// 100 GHz.
const MAX_MHZ: u64 = 100_000;

/// Gives a table's place and text by the name that a system file has for it.
pub type ReadTable<'r> = dyn Fn(&str) -> Result<(String, String), InputError> + 'r;

/// A row of a table.
struct Row {
    mhz: u64,
    kind: String,
    /// Power in µW.
    power: u64,
    speed: f64,
}

/// An island, as its file has it.
struct Island {
    cpus: u64,
    mhz: Vec<u64>,
    rows: Vec<Row>,
}

impl Platform {
    /// The machine in the system file `path`; `plain`: the kind of work that counts as the plain one. `None`: the file is no
    /// system file.
    ///
    /// Errors: what is wrong in it or in a table that it names, with its place.
    pub fn load_partsim(path: &str, plain: Option<&str>) -> Result<Option<Platform>, InputError> {
        let beside = Path::new(path).parent().unwrap_or(Path::new(""));
        let read = |name: &str| {
            let path = beside.join(name).to_string_lossy().into_owned();
            read_file(&path, MAX_BYTES).map(|text| (path, text))
        };
        Platform::parse_partsim(&read_file(path, MAX_BYTES)?, path, plain, &read)
    }

    /// Parses `text`, which errors call `file`, as [`Platform::load_partsim`] does; `read` gives a
    /// table's place and text by the name that the file has for it.
    ///
    /// Errors: as [`Platform::load_partsim`]'s.
    pub fn parse_partsim(
        text: &str,
        file: &str,
        plain: Option<&str>,
        read: &ReadTable<'_>,
    ) -> Result<Option<Platform>, InputError> {
        let file = printable(file);
        check_size(text.len(), MAX_BYTES, &file)?;
        let (yaml, root) = Yaml::parse(text, &file)?;
        let root = yaml.map(&root, "the file")?;
        if !root.has("cpu_islands") {
            return Ok(None);
        }
        root.only(&["cpu_islands", "power_models"])?;
        let models = root.maps("power_models", "power model")?;
        let islands = root.maps("cpu_islands", "island")?;
        if islands.is_empty() {
            return Err(root.error_of("cpu_islands", "is empty, wanted at least one"));
        }
        let islands: Vec<Island> =
            islands.iter().map(|map| island(map, &models, read)).collect::<Result<_, _>>()?;
        let plain = plain_kind(&root, &islands, plain)?;
        let stem = Path::new(&file).file_stem().and_then(|s| s.to_str()).unwrap_or("partsim");
        let name = if checked_word(stem).is_ok() { stem } else { "partsim" };
        machine(&root, name, &islands, &plain).map(Some)
    }
}

fn island(map: &Map<'_>, models: &[Map<'_>], read: &ReadTable<'_>) -> Result<Island, InputError> {
    let keys =
        ["name", "numcpus", "kernel", "volts", "freqs", "base_freq", "power_model", "speed_model"];
    map.only(&keys)?;
    let cpus = map.int("numcpus", 1, MAX_CPUS)?;
    let mut mhz = Vec::new();
    for (text, at) in map.texts("freqs")? {
        let number = text.parse::<u64>().ok().filter(|n| (1..=MAX_MHZ).contains(n));
        mhz.push(number.ok_or_else(|| {
            let what = format!("`freqs` holds \"{}\", wanted MHz up to {MAX_MHZ}", one_line(text));
            InputError::new(at, what)
        })?);
    }
    mhz.sort_unstable();
    mhz.dedup();
    if mhz.is_empty() {
        return Err(map.error("`freqs` is missing or empty, wanted MHz"));
    }
    let name = map.str("power_model")?;
    if map.opt_str("speed_model")?.is_some_and(|speed| speed != name) {
        return Err(
            map.error_of("speed_model", "is another than `power_model`, wanted one for both")
        );
    }
    let known = |m: &&Map<'_>| m.opt_str("name").ok().flatten() == Some(name);
    let Some(model) = models.iter().find(known) else {
        let what = format!("is \"{}\", which is not in `power_models`", one_line(name));
        return Err(map.error_of("power_model", what));
    };
    model.only(&["name", "type", "filename", "fname", "params"])?;
    let kind = model.str("type")?;
    if kind != "table_based" {
        let what = format!("is \"{}\", wanted table_based", one_line(kind));
        return Err(model
            .error_of("type", what)
            .hint("PARTSim comes with a table of the same machine: simconf/models/tb"));
    }
    let (place, text) = read(model.str("filename")?)?;
    Ok(Island { cpus, mhz, rows: rows(&text, &printable(&place), name)? })
}

/// Reads the rows of `model` in a table.
fn rows(text: &str, file: &str, model: &str) -> Result<Vec<Row>, InputError> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let cells = |line: &str| line.split(',').map(|c| c.trim().to_string()).collect::<Vec<_>>();
    let Some((_, head)) = lines.next() else { return Err(InputError::new(file, "is empty")) };
    let head = cells(head);
    let column = |name: &str| {
        head.iter().position(|c| c == name).ok_or_else(|| {
            let what = format!("no column `{name}`, wanted model,freq,workload,power,speed");
            InputError::new(format!("{file}:1"), what)
        })
    };
    let [of, freq, kind, power, speed] =
        ["model", "freq", "workload", "power", "speed"].map(column);
    let (of, freq, kind, power, speed) = (of?, freq?, kind?, power?, speed?);
    let mut all = Vec::new();
    for (i, line) in lines {
        let cells = cells(line);
        let error = |what: String| InputError::new(format!("{file}:{}", i + 1), what);
        if cells.len() != head.len() {
            return Err(error(format!("{} columns, wanted {}", cells.len(), head.len())));
        }
        if cells[of] != model {
            continue;
        }
        let number = |at: usize, most: f64| {
            let found = cells[at].parse::<f64>().ok().filter(|n| *n >= 0.0 && *n <= most);
            let shown = one_line(&cells[at]);
            found.ok_or_else(|| {
                error(format!("`{}` is \"{shown}\", wanted a number up to {most}", head[at]))
            })
        };
        checked_word(&cells[kind]).map_err(|what| error(format!("`workload` {what}")))?;
        all.push(Row {
            mhz: number(freq, MAX_MHZ as f64)? as u64,
            kind: cells[kind].clone(),
            power: (number(power, 1000.0)? * 1e6).round() as u64,
            speed: number(speed, 1e6)?,
        });
    }
    if all.is_empty() {
        return Err(InputError::new(
            file,
            format!("has no row of the model \"{}\"", one_line(model)),
        ));
    }
    Ok(all)
}

/// Chooses the kind that counts as plain work: the one asked for, else the first that is not
/// `idle`.
fn plain_kind(
    root: &Map<'_>,
    islands: &[Island],
    wanted: Option<&str>,
) -> Result<String, InputError> {
    let mut known: Vec<&str> = Vec::new();
    for row in islands[0].rows.iter().filter(|r| r.kind != "idle") {
        if !known.contains(&row.kind.as_str()) {
            known.push(&row.kind);
        }
    }
    match wanted.or(known.first().copied()) {
        Some(kind) if known.contains(&kind) => Ok(kind.to_string()),
        Some(kind) => {
            let what = format!("`--plain`: the tables know no work \"{}\"", one_line(kind));
            let all = format!("known: {}", known.join(", "));
            Err(root.error(what).hint(meant(kind, &known, &all)))
        }
        None => Err(root.error("the tables know no work but idle")),
    }
}

fn machine(
    root: &Map<'_>,
    name: &str,
    islands: &[Island],
    plain: &str,
) -> Result<Platform, InputError> {
    let at = |island: &'_ Island, mhz: u64, kind: &str| -> Result<(u64, f64), InputError> {
        let row = island.rows.iter().find(|r| r.mhz == mhz && r.kind == kind);
        row.map(|r| (r.power, r.speed)).ok_or_else(|| {
            root.error(format!("the tables have no row of \"{}\" at {mhz} MHz", one_line(kind)))
        })
    };
    let fastest = |kind: &str| -> Result<f64, InputError> {
        let mut most = 0.0f64;
        for island in islands {
            for mhz in &island.mhz {
                most = most.max(at(island, *mhz, kind)?.1);
            }
        }
        match most > 0.0 {
            true => Ok(most),
            false => Err(root.error(format!("the tables have no speed of \"{}\"", one_line(kind)))),
        }
    };
    let mut kinds: Vec<&str> = islands[0].rows.iter().map(|r| r.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.retain(|kind| *kind != "idle" && *kind != plain);
    let top = |island: &Island| *island.mhz.last().expect("an island has frequencies");
    let mut best = 0.0f64;
    for island in islands {
        best = best.max(at(island, top(island), plain)?.1);
    }
    let mut domains: Vec<Domain> = Vec::new();
    let mut first = 0u32;
    for (number, island) in islands.iter().enumerate() {
        let capacity = (1024.0 * at(island, top(island), plain)?.1 / best).round() as u64;
        let mut opps = Vec::new();
        for mhz in &island.mhz {
            let power = MicroWatts(at(island, *mhz, plain)?.0.max(1));
            opps.push(Opp::new(KHz(mhz * 1000), power, Span(0)));
        }
        let mut work = Vec::new();
        for kind in &kinds {
            let most = fastest(kind)?;
            let (mut speed_ppm, mut power) = (Vec::new(), Vec::new());
            for mhz in &island.mhz {
                let (uw, speed) = at(island, *mhz, kind)?;
                speed_ppm.push(((speed / most * 1e6).round() as u64).max(1));
                power.push(MicroWatts(uw.max(1)));
            }
            work.push(Work { kind: kind.to_string(), speed_ppm, power });
        }
        let cpus = (first..first + island.cpus as u32).map(CpuId).collect();
        first += island.cpus as u32;
        if u64::from(first) > MAX_CPUS {
            return Err(root.error(format!("more than {MAX_CPUS} CPUs")));
        }
        domains.push(Domain {
            cpus,
            cluster: number as u32,
            capacity: Capacity(capacity.clamp(1, 1024)),
            fast_switch: false,
            transition_delay_us: None,
            energy_model: true,
            opps,
            levels: None,
            idle: Vec::new(),
            work,
        });
    }
    let table = format!("tables of PARTSim; plain work is \"{plain}\"");
    let sources = [
        ("capacity", format!("{table}: speeds at the highest frequencies")),
        ("opp", format!("{table}; latency: none, as there")),
        ("work", table.clone()),
        ("hz", "estimate: PARTSim has no tick".to_string()),
    ];
    Ok(Platform {
        name: name.to_string(),
        about: format!("{} CPUs, converted from a system file of PARTSim", first),
        hz: 250,
        domains,
        topology: Topology::default(),
        thermal: Vec::new(),
        sources: sources.into_iter().map(|(k, v)| (k.to_string(), v)).collect::<BTreeMap<_, _>>(),
        doubts: Vec::new(),
    })
}
