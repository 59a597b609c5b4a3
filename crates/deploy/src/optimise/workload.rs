//! A deployment as rt-app's JSON: each node a task under SCHED_DEADLINE on its CPU, edges as semaphores.
//!
//! ```text
//! node on a CPU      sem_wait of each edge to it · run · sem_post of each edge from it      period = deadline = d, runtime = q
//! first of a graph   the same, and a timer with the graph's period
//! node on a device   sem_wait … · lock the device · run: ask it · sleep · unlock · sem_post …       SCHED_FIFO, on the helpers' CPU
//!                    where it does more than one function, before the sleep: lock what loads them · sleep · unlock
//! ```
//!
//! A node's server has its deadline as period: a node begins when those before it are done, so that two of its jobs may come closer
//! than a period T of its graph, but never closer than d: the first began at D − d at the latest, the second not before T, and D ≤ T.
//! The graph's job is the way through it with the longest deadlines. The devices' tasks are below all deadlines in Linux: they are on
//! a CPU without nodes, or come first (`class_order=rt-dl`): see [`super::Helper`]. Semaphores keep count and are not rt-app's.

use super::{Deployment, Place, Problem};
use crate::dice::Dice;
use std::fmt::Write;

/// Length of jobs, of what they may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// All of it.
    Longest,
    /// Drawn, each job for itself: from so many % to so many %, all equally likely.
    Drawn {
        /// The least.
        low: u64,
        /// The most; above 100: more than declared.
        high: u64,
        /// Seed of the draw.
        seed: u64,
    },
}

/// The task that loads functions into devices, one after the other: no device has this name.
const LOADER: &str = "\"<loads devices>\"";
/// Jobs that are drawn before they begin anew.
const DRAWN: usize = 64;

/// `d` as a workload. A name that JSON would not take is written as JSON has it.
pub fn workload(p: &Problem, d: &Deployment, runs: Runs) -> String {
    beside(p, d, runs, false)
}

/// `d` as [`workload`] writes it, if `busy` with an ordinary task that never sleeps on each CPU, whose name no node has.
pub fn beside(p: &Problem, d: &Deployment, runs: Runs, busy: bool) -> String {
    let used: Vec<usize> =
        (0..p.cpus.len()).filter(|c| d.config.place.contains(&Place::Cpu(*c))).collect();
    let free = (0..p.cpus.len()).rev().find(|c| !used.contains(c));
    let asks = p.helper.map(|h| h.cpu).or(free).or(used.first().copied()).unwrap_or(0);
    let mut out =
        format!("// {}: written by `risetime deploy optimise`\n{{\n  \"tasks\": {{\n", p.name);
    let mut dice = Dice::new(if let Runs::Drawn { seed, .. } = runs { seed } else { 0 });
    for (i, v) in p.nodes.iter().enumerate() {
        let graph = &p.graphs[v.graph];
        let behind: Vec<usize> =
            (0..p.nodes.len()).filter(|b| p.nodes[*b].after.contains(&i)).collect();
        let path = path(p, d, v.graph);
        // What a chain goes through is waited for first: a job ends where its task waits there again.
        let mut before = v.after.clone();
        before.sort_by_key(|a| (!path.contains(a) || !path.contains(&i), *a));
        let _ = write!(out, "    {}: {{ \"loop\": -1, ", text(&v.name));
        let take = |percent: u64, us: u64| (us * percent).div_ceil(100).max(1);
        let (work, device) = match d.config.place[i] {
            Place::Cpu(cpu) => {
                let (c, us) = (p.cpus[cpu], d.deadline_us[i]);
                let q = v.budget_us[c.domain];
                let _ = write!(
                    out,
                    "\"cpus\": [{}], \"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": {q}, \"dl-period\": {us}, \"dl-deadline\": {us}",
                    c.id.0
                );
                (v.work_us[c.domain], None)
            }
            Place::Version(a) => {
                let version = v.versions[a];
                let cpu = p.cpus[asks].id.0;
                let _ =
                    write!(out, "\"cpus\": [{cpu}], \"policy\": \"SCHED_FIFO\", \"priority\": 99");
                (version.work_us, Some(version.device))
            }
        };
        if v.after.is_empty() {
            let then: Vec<String> = path.iter().skip(1).map(|n| text(&p.nodes[*n].name)).collect();
            let _ = write!(
                out,
                ",\n      \"job\": {{ \"name\": {}, \"deadline\": {}, \"tasks\": [{}] }}",
                text(&graph.name),
                graph.deadline_us,
                then.join(", ")
            );
        }
        let edge =
            |from: usize, to: usize| text(&format!("{}>{}", p.nodes[from].name, p.nodes[to].name));
        let jobs = if runs == Runs::Longest { 1 } else { DRAWN };
        for _ in 0..jobs {
            let percent = match runs {
                Runs::Longest => 100,
                Runs::Drawn { low, high, .. } => low + dice.below(high.max(low) - low + 1),
            };
            out.push_str(",\n     ");
            for a in &before {
                let _ = write!(out, " \"sem_wait\": {},", edge(*a, i));
            }
            let us = take(percent, work);
            let _ = match device {
                None => write!(out, " \"run\": {us}"),
                Some(device) => request(&mut out, p, d, device, us),
            };
            for b in &behind {
                let _ = write!(out, ", \"sem_post\": {}", edge(i, *b));
            }
            if v.after.is_empty() {
                let _ = write!(
                    out,
                    ", \"timer\": {{ \"ref\": \"unique\", \"period\": {}, \"mode\": \"absolute\" }}",
                    graph.period_us
                );
            }
        }
        out.push_str(if i + 1 < p.nodes.len() { " },\n" } else { " }\n" });
    }
    if busy {
        let mut name = "busy-cpu".to_string();
        while p.nodes.iter().any(|v| v.name.starts_with(&name)) {
            name.push('x');
        }
        for cpu in p.cpus.iter().map(|c| c.id.0) {
            let name = text(&format!("{name}{cpu}"));
            let _ = writeln!(
                out,
                "    ,{name}: {{ \"cpus\": [{cpu}], \"loop\": -1, \"run\": 100000 }}"
            );
        }
    }
    let own: Vec<String> = used.iter().map(|c| format!("[{}]", p.cpus[*c].id.0)).collect();
    let _ = write!(out, "  }},\n  \"global\": {{ \"partitions\": [{}] }}\n}}\n", own.join(", "));
    out
}

/// Writes a request of `device`, whose function takes `us`: the function of another node is always
/// taken to have been there before.
fn request(
    out: &mut String,
    p: &Problem,
    d: &Deployment,
    device: usize,
    us: u64,
) -> std::fmt::Result {
    let own = &p.devices[device];
    let name = text(&own.name);
    let here = |(i, at): (usize, &Place)| matches!(*at, Place::Version(a) if p.nodes[i].versions[a].device == device);
    let several = d.config.place.iter().enumerate().filter(|at| here(*at)).count() > 1;
    write!(out, " \"lock\": {name},")?;
    if own.helper_work_us > 0 && p.helper.is_some() {
        write!(out, " \"run\": {},", own.helper_work_us)?;
    }
    if several && own.reprogram_us > 0 && p.helper.is_some() {
        let load = own.reprogram_us;
        write!(out, " \"lock\": {LOADER}, \"sleep\": {load}, \"unlock\": {LOADER},")?;
    }
    write!(out, " \"sleep\": {us}, \"unlock\": {name}")
}

/// The nodes of a graph's longest way, by the deadlines, first to last.
fn path(p: &Problem, d: &Deployment, g: usize) -> Vec<usize> {
    let nodes = &p.graphs[g].nodes;
    let mut done = vec![0; p.nodes.len()];
    let latest = |done: &[u64], i: usize| {
        p.nodes[i].after.iter().copied().max_by_key(|a| (done[*a], std::cmp::Reverse(*a)))
    };
    for i in nodes {
        done[*i] = latest(&done, *i).map_or(0, |a| done[a]) + d.deadline_us[*i];
    }
    let mut path: Vec<usize> = nodes.last().copied().into_iter().collect();
    while let Some(before) = path.last().and_then(|i| latest(&done, *i)) {
        path.push(before);
    }
    path.reverse();
    path
}

/// Writes `s` as a string of JSON.
pub(crate) fn text(s: &str) -> String {
    let escaped = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04x}", c as u32),
        c => c.to_string(),
    };
    format!("\"{}\"", s.chars().map(escaped).collect::<String>())
}
