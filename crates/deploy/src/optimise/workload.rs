//! A deployment as rt-app's JSON: each node a task under SCHED_DEADLINE on its CPU, edges as semaphores.
//!
//! ```text
//! node on a CPU      sem_wait of each edge to it · run · sem_post of each edge from it      period = deadline = d, runtime = q
//! first of a graph   the same, and a timer with the graph's period
//! node on a device   sem_wait … · lock the device · sleep · unlock · sem_post …             SCHED_FIFO: who asks the device
//! ```
//!
//! A node's server has its deadline as period: a node begins when those before it are done, so that two of its jobs may come closer
//! than a period T of its graph, but never closer than d: the first began at D − d at the latest, the second not before T, and D ≤ T.
//! The graph's job is the way through it with the longest deadlines. The devices' tasks are below all deadlines in Linux: they are on
//! a CPU without nodes where there is one. Semaphores keep count and are not rt-app's.

use super::{Deployment, Place, Problem};
use crate::dice::Dice;
use std::fmt::Write;

/// How long jobs take of what they may.
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
        /// For the draw.
        seed: u64,
    },
}

/// Jobs that are drawn before they begin anew.
const DRAWN: usize = 64;

/// `d` as a workload. A name that JSON would not take is written as JSON has it.
pub fn workload(p: &Problem, d: &Deployment, runs: Runs) -> String {
    let used: Vec<usize> =
        (0..p.cpus.len()).filter(|c| d.config.place.contains(&Place::Cpu(*c))).collect();
    let free = (0..p.cpus.len()).rev().find(|c| !used.contains(c));
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
                let cpu = p.cpus[free.or(used.first().copied()).unwrap_or(0)].id.0;
                let _ =
                    write!(out, "\"cpus\": [{cpu}], \"policy\": \"SCHED_FIFO\", \"priority\": 99");
                (version.work_us, Some(text(&p.devices[version.device].0)))
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
            let _ = match &device {
                None => write!(out, " \"run\": {us}"),
                Some(g) => write!(out, " \"lock\": {g}, \"sleep\": {us}, \"unlock\": {g}"),
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
    let own: Vec<String> = used.iter().map(|c| format!("[{}]", p.cpus[*c].id.0)).collect();
    let _ = write!(out, "  }},\n  \"global\": {{ \"partitions\": [{}] }}\n}}\n", own.join(", "));
    out
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

/// As a string of JSON.
fn text(s: &str) -> String {
    let escaped = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04x}", c as u32),
        c => c.to_string(),
    };
    format!("\"{}\"", s.chars().map(escaped).collect::<String>())
}
