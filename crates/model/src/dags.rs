//! Real-time work as directed acyclic graphs: a file of theirs, for `risetime deploy optimise`.
//!
//! ```toml
//! schema = 1
//! name = "vision"
//!
//! [[device]]                 # what does functions in a CPU's place: a slot of an FPGA, a GPU
//! name = "fpga0"
//! idle_mw = 40               # taken while some node is on it; unless said: nothing
//! helper_us = 150            # what whoever asks it takes of a CPU for each request, as a node's runtime_us; unless said: 100, an estimate
//! reprogram_us = 8000        # to load another node's function into it; unless said: nothing, all stay loaded
//!
//! [[dag]]
//! name = "track"
//! period_us = 33333          # shortest time between two activations
//! deadline_us = 30000        # from an activation to the end of its last node; unless said: the period
//!
//! [[dag.node]]
//! name = "grab"
//! runtime_us = 1500          # at most, on a CPU of capacity 1024 at its highest frequency
//!
//! [[dag.node]]
//! name = "detect"
//! after = ["grab"]           # begins when all of these are done
//! runtime_us = 9000
//! on = [{ cpu = 0, runtime_us = 22000 }]   # at most, on that CPU's domain at its highest frequency,
//!                                          # where capacity does not tell it
//! accelerated = [{ device = "fpga0", runtime_us = 2000, power_mw = 900 }]
//! ```
//!
//! A graph has one node with which it begins and one with which it ends: so "from its activation to its end" is about two nodes.

use crate::InputError;
use crate::input::{one_line, read_file};
use crate::platform::checked_name;
use crate::toml_in::{Doc, Table, TextsOrTable};
use risetime_kernel::units::{CpuId, MicroWatts};

/// Size limit of a file.
const MAX_BYTES: usize = 1 << 20;
/// Graphs of a file, nodes of all graphs, devices.
const MAX_DAGS: usize = 100;
/// See [`MAX_DAGS`].
const MAX_NODES: usize = 400;
/// See [`MAX_DAGS`].
const MAX_DEVICES: usize = 32;
/// The longest time in a file: about 4 s, the longest period of SCHED_DEADLINE (`sched_deadline_period_max_us`).
const MAX_US: u64 = 1 << 22;
/// Time that a request takes of a CPU unless the file says so, in µs: some system calls and
/// switches, an estimate.
const HELPER_US: u64 = 100;
/// 1 kW: anything above is a unit mistaken.
const MAX_MW: u64 = 1_000_000;
/// The highest number of a CPU.
const MAX_CPU: u64 = 1023;

/// A file of graphs, validated: at least one graph, each without cycles, with one first and one last node, deadlines within
/// periods, names of their own, every device declared. That its CPUs exist is settled where a platform is at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dags {
    /// Name of the set.
    pub name: String,
    /// Devices, which run functions in a CPU's place.
    pub devices: Vec<Device>,
    /// The graphs.
    pub dags: Vec<Dag>,
}

/// An accelerator: serves one request after the other, first come, first served, none of them interrupted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Name of the device.
    pub name: String,
    /// Taken all the time, where some node is on it.
    pub idle: MicroWatts,
    /// Time that a request takes of a CPU of capacity 1024 at its highest frequency, at most, in
    /// µs.
    pub helper_us: u64,
    /// Time that it takes to load a function at most, where the device has more than one, in µs.
    /// Devices are loaded one after the other.
    pub reprogram_us: u64,
}

/// A graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dag {
    /// Name of the graph.
    pub name: String,
    /// Place in the file.
    pub at: String,
    /// Shortest time between two activations, in µs.
    pub period_us: u64,
    /// Deadline from an activation to the end of the last node, in µs; at most the period.
    pub deadline_us: u64,
    /// The graph's nodes, in the order of the file.
    pub nodes: Vec<Node>,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Name of the node, unique in the file.
    pub name: String,
    /// Place in the file.
    pub at: String,
    /// Running time at most, in µs of a CPU of capacity 1024 at its highest frequency.
    pub runtime_us: u64,
    /// Running time at most on single CPUs, in µs of the CPUs of that one's domain at their highest
    /// frequency, with the place in the file.
    pub on: Vec<(CpuId, u64, String)>,
    /// Places in [`Dag::nodes`] of those that must be done before it begins; ascending, each once.
    pub after: Vec<usize>,
    /// Versions of it for devices.
    pub accelerated: Vec<Accelerated>,
}

/// A version of a function for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accelerated {
    /// Place in [`Dags::devices`].
    pub device: usize,
    /// Time at most, in µs, with all that a request takes.
    pub runtime_us: u64,
    /// Taken while it runs, more than [`Device::idle`].
    pub power: MicroWatts,
}

impl Dags {
    /// The file called `path`.
    ///
    /// Errors: what is wrong in it, with its place.
    pub fn load(path: &str) -> Result<Dags, InputError> {
        Dags::parse(&read_file(path, MAX_BYTES)?, path)
    }

    /// `text`, which errors call `file`.
    ///
    /// Errors: as [`Dags::load`]'s.
    pub fn parse(text: &str, file: &str) -> Result<Dags, InputError> {
        let doc = Doc::parse(text, file)?;
        let root = doc.root();
        root.only(&["schema", "name", "device", "dag"])?;
        root.int("schema", 1, 1)?;
        let name = checked_name(&root, "name", root.str("name")?)?;
        let devices = devices(&root)?;
        let tables = root.opt_tables("dag", "dag")?.unwrap_or_default();
        if tables.is_empty() {
            return Err(root.error("no `[[dag]]`: a file has at least one"));
        }
        if tables.len() > MAX_DAGS {
            return Err(root.error(format!("{} graphs, at most {MAX_DAGS}", tables.len())));
        }
        let mut dags: Vec<Dag> = Vec::new();
        for table in &tables {
            let dag = dag(table, &devices)?;
            if let Some(first) = dags.iter().find(|d| d.name == dag.name) {
                let what = format!("`{}` is called as the graph at {}", dag.name, first.at);
                return Err(InputError::new(&dag.at, what));
            }
            for node in &dag.nodes {
                let all = dags.iter().flat_map(|d| &d.nodes).chain(&dag.nodes);
                let same = |n: &&Node| n.name == node.name && n.at != node.at;
                if let Some(first) = all.into_iter().find(same) {
                    let what = format!("`{}` is called as the node at {}", node.name, first.at);
                    return Err(InputError::new(&node.at, what));
                }
            }
            dags.push(dag);
        }
        let nodes: usize = dags.iter().map(|d| d.nodes.len()).sum();
        if nodes > MAX_NODES {
            return Err(root.error(format!("{nodes} nodes in all, at most {MAX_NODES}")));
        }
        Ok(Dags { name, devices, dags })
    }
}

fn devices(root: &Table<'_>) -> Result<Vec<Device>, InputError> {
    let tables = root.opt_tables("device", "device")?.unwrap_or_default();
    if tables.len() > MAX_DEVICES {
        return Err(root.error(format!("{} devices, at most {MAX_DEVICES}", tables.len())));
    }
    let mut all: Vec<Device> = Vec::new();
    for table in &tables {
        table.only(&["name", "idle_mw", "helper_us", "reprogram_us"])?;
        let name = checked_name(table, "name", table.str("name")?)?;
        if all.iter().any(|d| d.name == name) {
            return Err(table.error_of("name", format!("\"{name}\" is another device's")));
        }
        let idle = MicroWatts(1000 * table.opt_int("idle_mw", 0, MAX_MW)?.unwrap_or(0));
        let helper_us = table.opt_int("helper_us", 0, MAX_US)?.unwrap_or(HELPER_US);
        let reprogram_us = table.opt_int("reprogram_us", 0, MAX_US)?.unwrap_or(0);
        all.push(Device { name, idle, helper_us, reprogram_us });
    }
    Ok(all)
}

fn dag(toml: &Table<'_>, devices: &[Device]) -> Result<Dag, InputError> {
    toml.only(&["name", "period_us", "deadline_us", "node"])?;
    let name = checked_name(toml, "name", toml.str("name")?)?;
    let period_us = toml.int("period_us", 1, MAX_US)?;
    let deadline_us = toml.opt_int("deadline_us", 1, MAX_US)?.unwrap_or(period_us);
    if deadline_us > period_us {
        return Err(toml.error_of("deadline_us", "is behind the end of `period_us`").hint(
            "a graph is done before it is activated again; where stages overlap, make them graphs of their own",
        ));
    }
    let tables = toml.opt_tables("node", "node")?.unwrap_or_default();
    if tables.is_empty() {
        return Err(toml.error("no `[[dag.node]]`: a graph has at least one"));
    }
    let mut nodes = Vec::new();
    for table in &tables {
        nodes.push(node(table, devices)?);
    }
    for (i, table) in tables.iter().enumerate() {
        let mut after = Vec::new();
        for wanted in texts(table, "after")? {
            let Some(other) = nodes.iter().position(|n: &Node| n.name == wanted) else {
                let what =
                    format!("names \"{}\", which is no node of this graph", one_line(wanted));
                return Err(table.error_of("after", what));
            };
            if other == i {
                return Err(table.error_of("after", "names the node itself"));
            }
            after.push(other);
        }
        after.sort_unstable();
        after.dedup();
        nodes[i].after = after;
    }
    let dag = Dag { name, at: toml.place_of("name"), period_us, deadline_us, nodes };
    let Some(order) = dag.order() else {
        return Err(toml.error("its nodes wait for each other in a circle: see their `after`"));
    };
    let firsts: Vec<&str> = dag.names(|i| dag.nodes[i].after.is_empty());
    let lasts: Vec<&str> = dag.names(|i| dag.nodes.iter().all(|n| !n.after.contains(&i)));
    for (names, what) in [(&firsts, "begins"), (&lasts, "ends")] {
        if names.len() > 1 {
            return Err(toml
                .error(format!("it {what} with {}, wanted one node", names.join(", ")))
                .hint("a node of 1 µs before, or behind, all of them makes them one"));
        }
    }
    let shortest = dag.longest(&order, |i| {
        let on = dag.nodes[i].on.iter().map(|(_, us, _)| *us);
        let accelerated = dag.nodes[i].accelerated.iter().map(|a| a.runtime_us);
        on.chain(accelerated).fold(dag.nodes[i].runtime_us, u64::min)
    });
    if shortest > deadline_us {
        let key = if toml.has("deadline_us") { "deadline_us" } else { "period_us" };
        let what = format!("is {deadline_us} µs, and its longest path takes {shortest} µs at best");
        return Err(toml.error_of(key, what));
    }
    Ok(dag)
}

fn node(toml: &Table<'_>, devices: &[Device]) -> Result<Node, InputError> {
    toml.only(&["name", "runtime_us", "after", "on", "accelerated"])?;
    let name = checked_name(toml, "name", toml.str("name")?)?;
    let runtime_us = toml.int("runtime_us", 1, MAX_US)?;
    let mut on: Vec<(CpuId, u64, String)> = Vec::new();
    for table in toml.opt_tables("on", "on")?.unwrap_or_default() {
        table.only(&["cpu", "runtime_us"])?;
        let cpu = CpuId(table.int("cpu", 0, MAX_CPU)? as u32);
        on.push((cpu, table.int("runtime_us", 1, MAX_US)?, table.place_of("cpu")));
    }
    let mut accelerated: Vec<Accelerated> = Vec::new();
    for table in toml.opt_tables("accelerated", "accelerated")?.unwrap_or_default() {
        table.only(&["device", "runtime_us", "power_mw"])?;
        let wanted = table.str("device")?;
        let Some(device) = devices.iter().position(|d| d.name == wanted) else {
            let known: Vec<&str> = devices.iter().map(|d| d.name.as_str()).collect();
            let hint = match known.is_empty() {
                true => "each has a [[device]] with its name".to_string(),
                false => format!("devices: {}", known.join(", ")),
            };
            let what = format!("is \"{}\", which is no device of this file", one_line(wanted));
            return Err(table.error_of("device", what).hint(hint));
        };
        if accelerated.iter().any(|a| a.device == device) {
            return Err(table.error_of("device", format!("\"{wanted}\" has a version already")));
        }
        let power = MicroWatts(1000 * table.int("power_mw", 0, MAX_MW)?);
        accelerated.push(Accelerated {
            device,
            runtime_us: table.int("runtime_us", 1, MAX_US)?,
            power,
        });
    }
    Ok(Node { name, at: toml.place_of("name"), runtime_us, on, after: Vec::new(), accelerated })
}

fn texts<'d>(toml: &Table<'d>, key: &'static str) -> Result<Vec<&'d str>, InputError> {
    match toml.opt_texts_or_table(key)? {
        None => Ok(Vec::new()),
        Some(TextsOrTable::Texts(all)) => Ok(all),
        Some(TextsOrTable::Table(_)) => {
            Err(toml.error_of(key, "is a table, wanted a list of names of nodes"))
        }
    }
}

impl Dag {
    fn names(&self, of: impl Fn(usize) -> bool) -> Vec<&str> {
        let of = (0..self.nodes.len()).filter(|i| of(*i));
        of.map(|i| self.nodes[i].name.as_str()).collect()
    }

    /// The graph's nodes, each behind all that it waits for; those that could go next in the order
    /// of the file. `None`: there is a circle.
    pub fn order(&self) -> Option<Vec<usize>> {
        let mut order = Vec::new();
        let mut done = vec![false; self.nodes.len()];
        while order.len() < self.nodes.len() {
            let ready = |i: &usize| !done[*i] && self.nodes[*i].after.iter().all(|a| done[*a]);
            let next = (0..self.nodes.len()).find(ready)?;
            done[next] = true;
            order.push(next);
        }
        Some(order)
    }

    /// The longest way through it, where node i takes `time(i)`; `order` is [`Dag::order`].
    fn longest(&self, order: &[usize], time: impl Fn(usize) -> u64) -> u64 {
        let mut end = vec![0; self.nodes.len()];
        for i in order {
            let begins = self.nodes[*i].after.iter().map(|a| end[*a]).max().unwrap_or(0);
            end[*i] = begins + time(*i);
        }
        end.into_iter().max().unwrap_or(0)
    }
}
