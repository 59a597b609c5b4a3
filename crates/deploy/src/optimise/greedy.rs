//! A deployment as one would make it by hand: a deadline for each node in proportion to its work,
//! the largest node first where it takes least, and then every domain slower as long as that saves
//! power.
//!
//! No claim that it is the least; the solvers begin with it, and are measured by it.

use super::deadlines::deployment;
use super::{Config, Deployment, Objective, Place, Problem};

/// A deployment that a greedy finds, whose deadlines the objective then chooses. `None`: it finds none, which proves nothing.
pub fn greedy(p: &Problem, objective: Objective) -> Option<Deployment> {
    deployment(p, &greedy_config(p)?, objective)
}

pub(super) fn greedy_config(p: &Problem) -> Option<Config> {
    let deadlines = proportional(p);
    let mut opp: Vec<usize> = p.domains.iter().map(|d| d.opps.len() - 1).collect();
    let mut best = placed(p, &opp, &deadlines)?;
    loop {
        let slower = (0..opp.len()).filter(|j| opp[*j] > 0).filter_map(|j| {
            let mut less = opp.clone();
            less[j] -= 1;
            Some((placed(p, &less, &deadlines)?, less))
        });
        let cheapest = slower.min_by_key(|(config, less)| (p.power_nw(config), less.clone()));
        match cheapest {
            Some((config, less)) if p.power_nw(&config) <= p.power_nw(&best) => {
                (best, opp) = (config, less);
            }
            _ => break,
        }
    }
    best.idle_slowest(p);
    Some(best)
}

/// The deadline of each node, in µs: as much of its graph's, less a µs for each node, as its work
/// has of the longest path through it.
pub(super) fn proportional(p: &Problem) -> Vec<u64> {
    let n = p.nodes.len();
    let own: Vec<u64> = (0..n).map(|i| p.shortest_us(i)).collect();
    let longest = p.longest_us();
    let room = |i: usize| {
        let graph = &p.graphs[p.nodes[i].graph];
        let path = (graph.deadline_us - longest[i]).saturating_add(own[i]);
        let spare = graph.deadline_us.saturating_sub(graph.nodes.len() as u64);
        let wake = p.domains.iter().map(|d| d.wake_us).max().unwrap_or(0);
        let part = u64::try_from(u128::from(spare) * u128::from(own[i]) / u128::from(path.max(1)))
            .unwrap_or(0);
        part.saturating_sub(wake)
    };
    (0..n).map(room).collect()
}

/// Places all nodes at these OPPs and by these deadlines, the densest first; `None`: some node has
/// no room.
fn placed(p: &Problem, opp: &[usize], deadlines: &[u64]) -> Option<Config> {
    let n = p.nodes.len();
    let density = |i: usize| p.nodes[i].budget_us[0] * 1_000_000 / deadlines[i].max(1);
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|i| (std::cmp::Reverse(density(*i)), *i));
    let room = |c: usize| p.domains[p.cpus[c].domain].opps[opp[p.cpus[c].domain]].room_ppm;
    let open = |c: usize| if p.takes_nodes(c) { room(c) } else { 0 };
    let mut left: Vec<u64> = (0..p.cpus.len()).map(open).collect();
    let mut used = vec![false; p.cpus.len()];
    let mut place: Vec<Option<Place>> = vec![None; n];
    for i in order {
        let v = &p.nodes[i];
        let needs = |cpu: usize| {
            (v.budget_us[p.cpus[cpu].domain] * 1_000_000).div_ceil(deadlines[i].max(1))
        };
        let long_enough = deadlines[i] >= super::problem::PERIOD_MIN_US;
        let cpus = (0..p.cpus.len()).filter(|c| long_enough && needs(*c) <= left[*c]).map(|c| {
            let j = p.cpus[c].domain;
            let more = if used[c] { 0 } else { p.domains[j].used_nw };
            (p.node_nw(i, j, opp[j]) + more, Place::Cpu(c))
        });
        let versions = v.versions.iter().enumerate().filter_map(|(a, version)| {
            let more = p.requested(i, a, &place, opp, deadlines)?;
            Some((version.power_nw + more, Place::Version(a)))
        });
        let (_, at) = cpus.chain(versions).min()?;
        if let Place::Cpu(c) = at {
            left[c] -= needs(c);
            used[c] = true;
        }
        place[i] = Some(at);
    }
    Some(Config { opp: opp.to_vec(), place: place.into_iter().collect::<Option<_>>()? })
}
