//! From the greedy's deployment downhill: as long as one change takes less power and still does, that change.
//!
//! ```text
//! changes  a domain one OPP slower, or faster · a node to another CPU, to an empty one of each domain, to a device
//!          · all nodes of a CPU to another one · a node moved and a domain one OPP slower
//! ```
//!
//! In each round the change to the least power that does. No claim that nothing takes less.

use super::deadlines::{FITS, Until, deployment, spread_until};
use super::greedy::greedy_config;
use super::{Config, Deployment, Objective, Place, Problem};

/// What the greedy finds, downhill. `None`: the greedy finds nothing, which proves nothing.
pub fn descent(p: &Problem, objective: Objective) -> Option<Deployment> {
    let mut best = greedy_config(p)?;
    if spread_until(p, &best, Until::Fits).is_none_or(|s| s.lambda > FITS) {
        return None;
    }
    loop {
        let now = p.power_nw(&best);
        let mut changes: Vec<(u64, Config)> = changed(p, &best)
            .into_iter()
            .map(|c| (p.power_nw(&c), c))
            .filter(|(nw, _)| *nw < now)
            .collect();
        changes
            .sort_unstable_by(|a, b| (a.0, &a.1.opp, &a.1.place).cmp(&(b.0, &b.1.opp, &b.1.place)));
        let does = |c: &Config| spread_until(p, c, Until::Fits).is_some_and(|s| s.lambda <= FITS);
        match changes.into_iter().find(|(_, c)| does(c)) {
            Some((_, better)) => best = better,
            None => return deployment(p, &best, objective),
        }
    }
}

/// All that is one change away.
fn changed(p: &Problem, from: &Config) -> Vec<Config> {
    let slower = |c: &Config| -> Vec<Config> {
        let step = |(j, up): (usize, bool)| {
            let mut opp = c.opp.clone();
            opp[j] = if up { opp[j] + 1 } else { opp[j].checked_sub(1)? };
            (opp[j] < p.domains[j].opps.len()).then(|| Config { opp, place: c.place.clone() })
        };
        (0..c.opp.len()).flat_map(|j| [(j, false), (j, true)]).filter_map(step).collect()
    };
    let mut moved = Vec::new();
    let mut all = slower(from);
    let has = |cpu: usize| from.place.contains(&Place::Cpu(cpu));
    let empty = p.domains.iter().filter_map(|d| d.cpus.iter().copied().find(|c| !has(*c)));
    let targets: Vec<usize> = (0..p.cpus.len()).filter(|c| has(*c)).chain(empty).collect();
    for (i, v) in p.nodes.iter().enumerate() {
        let cpus = targets.iter().map(|c| Place::Cpu(*c));
        for place in cpus.chain((0..v.versions.len()).map(Place::Version)) {
            if place != from.place[i] {
                let mut to = from.clone();
                to.place[i] = place;
                moved.push(to);
            }
        }
    }
    for cpu in (0..p.cpus.len()).filter(|c| has(*c)) {
        for to in targets.iter().filter(|to| **to != cpu) {
            let mut config = from.clone();
            let all = config.place.iter_mut().filter(|at| **at == Place::Cpu(cpu));
            all.for_each(|at| *at = Place::Cpu(*to));
            moved.push(config);
        }
    }
    all.extend(moved.iter().flat_map(slower));
    all.extend(moved);
    for config in &mut all {
        config.idle_slowest(p);
    }
    all
}
