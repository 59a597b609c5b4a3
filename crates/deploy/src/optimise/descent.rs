//! Downhill from many starts: what may take the least power is looked at first, and what certainly does not do is not solved.
//!
//! ```text
//! state    an OPP for each domain, a domain (or device) for each node, how many CPUs of each domain are used
//! packed   its nodes on those CPUs, the heaviest first on the lightest one, by the weights of a cut ([`super::cuts`])
//! starts   at all OPPs, those first whose least power is least: each node where it takes least, then one by one to where it makes
//!          most of λ for the least power, until no cut says that it does not do
//! change   a node elsewhere · two of different domains swapped · a CPU more or fewer;  with OPPs as they are, or a step lower,
//!          or one domain lower and another higher: the change to the least power that does, until none is less
//! kick     some nodes elsewhere and OPPs near, drawn; repaired as a start is, and downhill again
//! ```
//!
//! No claim that nothing takes less. The draw is the same each time, and what ends it is a number of steps, no clock.

use super::cuts::Cuts;
use super::deadlines::{Until, spread_until};
use super::greedy::greedy_config;
use super::solve::{Solver, solve};
use super::tree::opps;
use super::{Config, Deployment, ENDLESS, Effort, Objective, Place, Problem, Stop};
use crate::dice::Dice;

/// Steps of about a ns: half a second from 16 nodes on, of fewer as their square.
const WORK: u64 = 500_000_000;
const NODES: u64 = 16;
/// Number of tenths of the steps that are for the starts.
const STARTS: u64 = 5;
/// Number of domains up to which one is made slower and another faster at once: of more there are
/// too many pairs.
const PAIRS: usize = 6;
/// Number of times that a start is repaired by what the convex part says of it.
const REPAIRS: usize = 4;

/// The least power that is found so. `None`: nothing was found, which proves nothing.
pub fn descent(p: &Problem, objective: Objective, stop: Stop<'_>) -> Option<Deployment> {
    let effort = Effort { stop, ..ENDLESS };
    let (found, _) = solve(std::slice::from_ref(p), objective, Solver::Descent, effort);
    found.map(|(_, found)| found.deployment)
}

/// Descends from the greedy deployment and other starts; returns the places and OPPs with the least
/// power that was found, without deadlines.
pub(super) fn downhill(p: &Problem, stop: Stop<'_>) -> Option<Config> {
    let n = (p.nodes.len() as u64).min(NODES);
    let steps = WORK * n * n / (NODES * NODES);
    let mut search = Search::new(p, Effort { steps, stop });
    if let Some(config) = greedy_config(p) {
        search.take(&config);
    }
    search.starts();
    search.kicks();
    search.best.map(|(_, config)| config)
}

/// Descends from `from` to ever smaller λ, with no more than `most_nw`, by the first change that
/// helps, those first that a cut thinks most of.
pub(super) fn slacker(p: &Problem, from: Config, most_nw: u64, stop: Stop<'_>) -> Config {
    let lambda = |c: &Config, until| spread_until(p, c, until);
    let Some(first) = lambda(&from, Until::Below(f64::INFINITY)) else { return from };
    let mut search = Search::new(p, Effort { steps: u64::MAX, stop });
    let (mut best, mut least) = (from, first.lambda);
    search.cuts.learn(&first.flow);
    loop {
        let mut changes: Vec<(f64, Config)> = Vec::new();
        let mut states = search.changed(&search.state(&best), 1);
        states.retain(|state| search.nw(state) <= most_nw);
        search.cuts.spend(4 * states.len() as u64);
        for state in states {
            let mut config = search.packed(&state);
            config.idle_slowest(p);
            let bound = search.cuts.bound(&config, least - SLACKER);
            if bound < least - SLACKER && config != best {
                changes.push((bound, config));
            }
        }
        changes.sort_by(|a, b| {
            let key = |c: &Config| (c.opp.clone(), c.place.clone());
            a.0.total_cmp(&b.0).then_with(|| key(&a.1).cmp(&key(&b.1)))
        });
        changes.dedup();
        let mut better = None;
        for (_, config) in changes.into_iter().take(LOOKS) {
            // What has been learnt from those before may know it.
            if search.cuts.bound(&config, least - SLACKER) >= least - SLACKER {
                continue;
            }
            search.cuts.spend_solved();
            if search.cuts.work == 0 {
                break;
            }
            let Some(found) = lambda(&config, Until::Below(least)) else { continue };
            search.cuts.learn(&found.flow);
            if found.lambda < least - SLACKER {
                better = Some((found.lambda, config));
                break;
            }
        }
        match better {
            Some(found) => (least, best) = found,
            None => return best,
        }
    }
}

/// A λ that is no smaller than that is none.
const SLACKER: f64 = 1e-5;
/// Number of changes that are solved in each round.
const LOOKS: usize = 24;

/// Place of a node, CPUs that are alike taken as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    Domain(usize),
    Version(usize),
}

#[derive(Clone, Debug)]
struct State {
    opp: Vec<usize>,
    at: Vec<At>,
    /// Largest number of CPUs that may be used, by domain.
    cpus: Vec<usize>,
}

struct Search<'p> {
    p: &'p Problem,
    cuts: Cuts<'p>,
    /// Power that each node takes, in nW, by domain, OPP and node.
    nw: Vec<Vec<Vec<u64>>>,
    /// nW, and what takes them.
    best: Option<(u64, Config)>,
}

impl<'p> Search<'p> {
    fn new(p: &'p Problem, effort: Effort<'p>) -> Search<'p> {
        let mut search = Search { p, cuts: Cuts::new(p, effort), nw: Vec::new(), best: None };
        for (j, domain) in p.domains.iter().enumerate() {
            let of = |o: usize| (0..p.nodes.len()).map(|i| p.node_nw(i, j, o)).collect();
            search.nw.push((0..domain.opps.len()).map(of).collect());
        }
        search
    }

    fn power(&self) -> u64 {
        self.best.as_ref().map_or(u64::MAX, |(nw, _)| *nw)
    }

    /// Takes `config` as the best if it needs less power than the best and fits; true if so.
    fn take(&mut self, config: &Config) -> bool {
        let nw = self.p.power_nw(config);
        let better = nw < self.power() && self.cuts.does(config);
        if better {
            self.best = Some((nw, config.clone()));
        }
        better
    }

    fn starts(&mut self) {
        let p = self.p;
        let Some(all) = opps(p) else { return };
        let end = self.cuts.work - self.cuts.work * STARTS / 10;
        for (nw, opp) in all {
            if nw >= self.power() || self.cuts.work < end {
                break;
            }
            let least = |i: usize| {
                let of = |at: &At| (self.own_nw(&opp, i, *at), *at);
                self.ways(i).into_iter().min_by_key(of).unwrap_or(At::Domain(0))
            };
            let at = (0..p.nodes.len()).map(least).collect();
            let cpus = p.domains.iter().map(|d| d.cpus.len()).collect();
            self.repair(State { opp, at, cpus });
        }
        self.downhill();
    }

    /// Changes a state that needs little power until it fits, if one that does still needs less
    /// than the best.
    fn repair(&mut self, mut state: State) {
        for _ in 0..REPAIRS {
            let mut config = self.packed(&state);
            let mut bound = self.cuts.first().bound(self.p, &config);
            while bound > 1.0 {
                let nw = self.nw(&state);
                if nw >= self.power() || self.cuts.work == 0 {
                    return;
                }
                let mut most: Option<(f64, State, Config, f64)> = None;
                for i in 0..self.p.nodes.len() {
                    for at in self.ways(i).into_iter().filter(|at| *at != state.at[i]) {
                        let mut next = state.clone();
                        next.at[i] = at;
                        let config = self.packed(&next);
                        let own = self.cuts.first().bound(self.p, &config);
                        self.cuts.spend(5);
                        let more = self.nw(&next).saturating_sub(nw).max(1) as f64;
                        let worth = (bound - own.max(1.0)) / more;
                        if own < bound && most.as_ref().is_none_or(|(best, ..)| worth > *best) {
                            most = Some((worth, next, config, own));
                        }
                    }
                }
                let Some((_, next, better, own)) = most else { return };
                (state, config, bound) = (next, better, own);
            }
            config.idle_slowest(self.p);
            if self.p.power_nw(&config) >= self.power() {
                return;
            }
            if self.take(&config) {
                return;
            }
        }
    }

    fn kicks(&mut self) {
        let (p, n, mut dice) = (self.p, self.p.nodes.len(), Dice::new(0x5eed));
        let mut below = |n: usize| dice.below(n as u64) as usize;
        while let (Some((before, best)), 1..) = (self.best.clone(), self.cuts.work) {
            let mut state = self.state(&best);
            for opp in state.opp.iter_mut().zip(&p.domains) {
                *opp.0 = (*opp.0 + below(5)).saturating_sub(2).min(opp.1.opps.len() - 1);
            }
            for _ in 0..below(n.min(6) + 1) {
                let i = below(n);
                let ways = self.ways(i);
                state.at[i] = ways[below(ways.len())];
            }
            state.cpus = p.domains.iter().map(|d| d.cpus.len()).collect();
            self.cuts.spend(10);
            self.repair(state);
            if self.power() < before {
                self.downhill();
            }
        }
    }

    /// Goes from the best to the change with the least power that fits, as long as there is one.
    fn downhill(&mut self) {
        while let (Some((now, best)), 1..) = (self.best.clone(), self.cuts.work) {
            let mut changes: Vec<(u64, Config)> = Vec::new();
            let states = self.changed(&self.state(&best), -1);
            self.cuts.spend(3 * states.len() as u64);
            for state in states {
                let nw = self.nw(&state);
                if nw < now {
                    let mut config = self.packed(&state);
                    config.idle_slowest(self.p);
                    changes.push((nw, config));
                }
            }
            self.cuts.spend(4 * changes.len() as u64);
            changes.sort_unstable_by(|a, b| {
                (a.0, &a.1.opp, &a.1.place).cmp(&(b.0, &b.1.opp, &b.1.place))
            });
            changes.dedup();
            if !changes.iter().any(|(_, config)| self.take(config)) {
                return;
            }
        }
    }

    fn ways(&self, i: usize) -> Vec<At> {
        let open = (0..self.p.domains.len()).filter(|j| !self.p.domains[*j].cpus.is_empty());
        open.map(At::Domain).chain((0..self.p.nodes[i].versions.len()).map(At::Version)).collect()
    }

    fn own_nw(&self, opp: &[usize], i: usize, at: At) -> u64 {
        match at {
            At::Domain(j) => self.nw[j][opp[j]][i],
            At::Version(a) => self.p.nodes[i].versions[a].power_nw,
        }
    }

    /// The power of a state, in nW, with its nodes packed onto as few CPUs as it allows.
    fn nw(&self, state: &State) -> u64 {
        let p = self.p;
        let own = state.at.iter().enumerate().map(|(i, at)| self.own_nw(&state.opp, i, *at));
        let mut sum = p.base_nw + own.sum::<u64>();
        for (j, domain) in p.domains.iter().enumerate() {
            let here = state.at.iter().filter(|at| **at == At::Domain(j)).count();
            let most = state.cpus[j].max(1).min(domain.cpus.len());
            sum += here.min(most) as u64 * domain.used_nw;
        }
        for (d, device) in p.devices.iter().enumerate() {
            let on = |(i, at): (usize, &At)| matches!(*at, At::Version(a) if p.nodes[i].versions[a].device == d);
            sum += if state.at.iter().enumerate().any(on) { device.idle_nw } else { 0 };
        }
        sum
    }

    fn state(&self, config: &Config) -> State {
        let at = |place: &Place| match *place {
            Place::Cpu(c) => At::Domain(self.p.cpus[c].domain),
            Place::Version(a) => At::Version(a),
        };
        let used = |d: &super::Island| {
            d.cpus.iter().filter(|c| config.place.contains(&Place::Cpu(**c))).count()
        };
        State {
            opp: config.opp.clone(),
            at: config.place.iter().map(at).collect(),
            cpus: self.p.domains.iter().map(used).collect(),
        }
    }

    /// Puts the nodes of a state on CPUs, by the weights of the first cut.
    fn packed(&self, state: &State) -> Config {
        let (p, cut) = (self.p, self.cuts.first());
        let mut place = Vec::with_capacity(state.at.len());
        let mut on: Vec<Vec<(f64, usize)>> = vec![Vec::new(); p.domains.len()];
        for (i, at) in state.at.iter().enumerate() {
            place.push(match *at {
                At::Domain(j) => {
                    on[j].push((cut.weight(i, j), i));
                    Place::Cpu(p.domains[j].cpus[0])
                }
                At::Version(a) => Place::Version(a),
            });
        }
        for (j, nodes) in on.iter_mut().enumerate() {
            nodes.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let mut load = vec![0.0f64; state.cpus[j].min(p.domains[j].cpus.len()).max(1)];
            for (weight, i) in nodes {
                let lightest = (0..load.len()).min_by(|a, b| load[*a].total_cmp(&load[*b]));
                let k = lightest.unwrap_or(0);
                load[k] += *weight;
                place[*i] = Place::Cpu(p.domains[j].cpus[k]);
            }
        }
        Config { opp: state.opp.clone(), place }
    }

    /// Lists all states that are one change away; `step`: the direction in which a domain's OPP
    /// alone goes.
    fn changed(&self, from: &State, step: isize) -> Vec<State> {
        let (n, domains) = (from.at.len(), &self.p.domains);
        let mut all = vec![from.clone()];
        let mut with = |change: &dyn Fn(&mut State)| {
            let mut next = from.clone();
            change(&mut next);
            all.push(next);
        };
        for i in 0..n {
            for at in self.ways(i).into_iter().filter(|at| *at != from.at[i]) {
                let room = |s: &mut State| {
                    if let At::Domain(j) = at {
                        s.cpus[j] = s.cpus[j].max(1);
                    }
                };
                with(&|s| {
                    s.at[i] = at;
                    room(s);
                });
                with(&|s| {
                    s.at[i] = at;
                    if let At::Domain(j) = at {
                        s.cpus[j] = (s.cpus[j] + 1).min(domains[j].cpus.len());
                    }
                });
            }
            for k in (0..i).filter(|k| from.at[*k] != from.at[i]) {
                if let (At::Domain(_), At::Domain(_)) = (from.at[i], from.at[k]) {
                    with(&|s| s.at.swap(i, k));
                }
            }
        }
        for (j, domain) in domains.iter().enumerate() {
            if from.cpus[j] > 1 {
                with(&|s| s.cpus[j] -= 1);
            }
            if from.cpus[j] < domain.cpus.len() {
                with(&|s| s.cpus[j] += 1);
            }
        }
        let mut shifts: Vec<Vec<isize>> = vec![vec![0; domains.len()]];
        for j in 0..domains.len() {
            let others = if domains.len() > PAIRS { j..j + 1 } else { 0..domains.len() };
            for other in others {
                let mut shift = vec![0; domains.len()];
                shift[j] = if other == j { step } else { -1 };
                if other != j {
                    shift[other] = 1;
                }
                shifts.push(shift);
            }
        }
        let shifted = |s: &State| -> Vec<State> {
            let by = |shift: &Vec<isize>| {
                let opp = |(j, by): (usize, &isize)| {
                    let opp = s.opp[j].checked_add_signed(*by)?;
                    (opp < domains[j].opps.len()).then_some(opp)
                };
                let opp = shift.iter().enumerate().map(opp).collect::<Option<Vec<usize>>>()?;
                Some(State { opp, ..s.clone() })
            };
            shifts.iter().filter_map(by).collect()
        };
        all.iter().flat_map(shifted).collect()
    }
}
