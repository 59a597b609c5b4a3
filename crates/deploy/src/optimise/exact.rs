//! Every deployment, but for those that cannot be the least: branch and bound over OPPs and places.
//!
//! ```text
//! OPPs of all domains, those first whose least power is least   ── least ≥ best: it is done
//!   nodes, the largest first: on a CPU with others, on the first one without, on a device
//!     power so far + least of the rest ≥ best; or λ > 1 with the rest on one CPU as large as all           ── not this way
//!       all placed: does it do? (deadlines)                      ── the best so far
//! ```
//!
//! CPUs of a domain are alike, so the first empty one stands for all. Exact up to what rounding of deadlines to µs costs: the model
//! has a µs for it at each node.

use super::deadlines::{FITS, Until, deployment, spread_partly, spread_until};
use super::descent::descent;
use super::greedy::proportional;
use super::{Config, Found, Objective, Place, Problem};

/// Combinations of OPPs beyond which nothing is looked at.
const MAX_OPPS: u64 = 1_000_000;

/// The best deployment, by looking at up to `looks` of the places of all nodes.
///
/// Result: the best that was found; and whether nothing was left out, so that it is the best, or there is none.
pub fn exact(p: &Problem, objective: Objective, looks: u64) -> (Option<Found>, bool) {
    let of = |all: u64, d: &super::Island| all.saturating_mul(d.opps.len() as u64);
    let too_many = p.domains.iter().fold(1, of) > MAX_OPPS;
    let looks = if too_many { 0 } else { looks };
    let first = descent(p, Objective::Power);
    let mut search = Search::new(p, looks);
    search.power = first.as_ref().map_or(u64::MAX, |d| p.power_nw(&d.config));
    search.best = first.map(|d| d.config);
    let mut bound = search.run(false);
    let all = search.looks > 0;
    if let (Objective::Slack, Some(best)) = (objective, search.best.clone()) {
        if all {
            search.looks = looks;
        }
        search.lambda =
            spread_until(p, &best, Until::Below(f64::INFINITY)).map_or(2.0, |s| s.lambda);
        search.run(true);
    }
    bound = bound.min(search.power);
    let found = search.best.and_then(|c| deployment(p, &c, objective));
    let whole = all && search.looks > 0;
    (found.map(|deployment| Found { deployment, bound_nw: bound }), whole)
}

struct Search<'p> {
    p: &'p Problem,
    looks: u64,
    /// The nodes, the largest first.
    order: Vec<usize>,
    longest: Vec<u64>,
    best: Option<Config>,
    power: u64,
    /// Of the best, where slack counts.
    lambda: f64,
    slack: bool,
}

/// What is placed so far.
struct Partly {
    place: Vec<Option<Place>>,
    left: Vec<u64>,
    used: Vec<bool>,
    responses: Vec<u64>,
    nw: u64,
}

impl<'p> Search<'p> {
    fn new(p: &'p Problem, looks: u64) -> Search<'p> {
        let deadlines = proportional(p);
        let density = |i: &usize| p.nodes[*i].budget_us[0] * 1_000_000 / deadlines[*i].max(1);
        let mut order: Vec<usize> = (0..p.nodes.len()).collect();
        order.sort_by_key(|i| (std::cmp::Reverse(density(i)), *i));
        let longest = p.longest_us();
        Search { p, looks, order, longest, best: None, power: u64::MAX, lambda: 1.0, slack: false }
    }

    /// By all OPPs; the least power that no deployment is below.
    fn run(&mut self, slack: bool) -> u64 {
        self.slack = slack;
        if self.looks == 0 {
            return self.p.base_nw;
        }
        let mut all: Vec<(u64, Vec<usize>)> = vec![(0, Vec::new())];
        for domain in &self.p.domains {
            let longer = |(_, opp): (u64, Vec<usize>)| {
                (0..domain.opps.len()).map(move |o| (0, [&opp[..], &[o]].concat()))
            };
            all = all.into_iter().flat_map(longer).collect();
        }
        for (nw, opp) in &mut all {
            *nw = self.rest(opp, 0) + self.p.base_nw;
        }
        all.sort_unstable();
        for (nw, opp) in all {
            if self.hopeless(nw) {
                return nw.max(self.power);
            }
            if self.looks == 0 {
                return nw;
            }
            let p = self.p;
            let room = |c: &super::Cpu| p.domains[c.domain].opps[opp[c.domain]].room_ppm;
            let mut partly = Partly {
                place: vec![None; p.nodes.len()],
                left: p.cpus.iter().map(room).collect(),
                used: vec![false; p.cpus.len()],
                responses: vec![0; p.devices.len()],
                nw: p.base_nw,
            };
            self.go(&opp, 0, &mut partly);
        }
        self.power
    }

    fn hopeless(&self, nw: u64) -> bool {
        if self.slack { nw > self.power } else { nw >= self.power }
    }

    /// What the nodes from that place of the order on take at least.
    fn rest(&self, opp: &[usize], from: usize) -> u64 {
        let least = |i: &usize| {
            let cpus = (0..opp.len()).filter(|j| self.p.domains[*j].opps[opp[*j]].room_ppm > 0);
            let cpus = cpus.map(|j| self.p.node_nw(*i, j, opp[j]));
            let versions = self.p.nodes[*i].versions.iter().map(|a| a.power_nw);
            cpus.chain(versions).min().unwrap_or(u64::MAX / 1000)
        };
        self.order[from..].iter().map(least).sum()
    }

    fn go(&mut self, opp: &[usize], at: usize, partly: &mut Partly) {
        if self.looks == 0 || self.hopeless(partly.nw + self.rest(opp, at)) {
            return;
        }
        let p = self.p;
        self.looks -= 1;
        let Some(i) = self.order.get(at).copied() else {
            self.look(opp, partly);
            return;
        };
        let until = if self.slack { Until::Below(self.lambda) } else { Until::Fits };
        let relaxed = spread_partly(p, opp, &partly.place, until);
        let most = if self.slack { self.lambda.min(FITS) - 1e-9 } else { FITS };
        if relaxed.is_none_or(|s| s.bound > most) {
            return;
        }
        let v = &p.nodes[i];
        let mut ways: Vec<(u64, Place)> = Vec::new();
        for (j, domain) in p.domains.iter().enumerate() {
            let longest = self.longest[i].saturating_sub(domain.wake_us);
            if longest < super::problem::PERIOD_MIN_US {
                continue;
            }
            let needs = v.budget_us[j] * 1_000_000 / longest;
            let empty = domain.cpus.iter().copied().find(|c| !partly.used[*c]);
            let used = domain.cpus.iter().copied().filter(|c| partly.used[*c]);
            for c in used.chain(empty).filter(|c| needs <= partly.left[*c]) {
                let more = if partly.used[c] { 0 } else { domain.used_nw };
                ways.push((p.node_nw(i, j, opp[j]) + more, Place::Cpu(c)));
            }
        }
        for (a, version) in v.versions.iter().enumerate() {
            let response = partly.responses[version.device] + version.runtime_us;
            let others = (0..p.nodes.len()).filter(|w| match partly.place[*w] {
                Some(Place::Version(b)) => p.nodes[*w].versions[b].device == version.device,
                _ => false,
            });
            if others.chain([i]).all(|w| response <= self.longest[w]) {
                let first = partly.responses[version.device] == 0;
                let more = if first { p.devices[version.device].1 } else { 0 };
                ways.push((version.power_nw + more, Place::Version(a)));
            }
        }
        ways.sort_unstable();
        for (nw, place) in ways {
            partly.place[i] = Some(place);
            partly.nw += nw;
            match place {
                Place::Cpu(c) => {
                    let longest = self.longest[i].saturating_sub(p.wake_us(place)).max(1);
                    let needs = v.budget_us[p.cpus[c].domain] * 1_000_000 / longest;
                    let was = std::mem::replace(&mut partly.used[c], true);
                    partly.left[c] -= needs;
                    self.go(opp, at + 1, partly);
                    partly.left[c] += needs;
                    partly.used[c] = was;
                }
                Place::Version(a) => {
                    let version = v.versions[a];
                    partly.responses[version.device] += version.runtime_us;
                    self.go(opp, at + 1, partly);
                    partly.responses[version.device] -= version.runtime_us;
                }
            }
            partly.nw -= nw;
            partly.place[i] = None;
        }
    }

    /// All are placed.
    fn look(&mut self, opp: &[usize], partly: &Partly) {
        let p = self.p;
        let unused = |j: usize| !p.domains[j].cpus.iter().any(|c| partly.used[*c]);
        if (0..opp.len()).any(|j| opp[j] > 0 && unused(j)) {
            return;
        }
        let Some(place) = partly.place.iter().copied().collect::<Option<Vec<Place>>>() else {
            return;
        };
        let config = Config { opp: opp.to_vec(), place };
        let until = if self.slack { Until::Below(self.lambda) } else { Until::Fits };
        let Some(found) = spread_until(p, &config, until) else { return };
        let better = match self.slack {
            true => found.lambda < self.lambda - 1e-7,
            false => found.lambda <= FITS,
        };
        if better {
            self.power = partly.nw;
            self.lambda = found.lambda;
            self.best = Some(config);
        }
    }
}
