//! Places of nodes at given OPPs, branch by branch; what cannot be better is left out.
//!
//! ```text
//! nodes, the largest first: on a CPU with others, on the first one without, on a device
//!   power so far + least of the rest ≥ best, or what its price ([`super::price`]) says; or λ > 1 with the rest on one CPU as large as all           ── not this way
//!     all placed: does it do? (deadlines)                      ── the best so far
//! ```
//!
//! CPUs of a domain are alike, so the first empty one stands for all; so are those of domains that are alike, at the same OPP, and of
//! OPPs of such domains one order stands for all. What a known flow ([`super::cuts`]) says is enough is not solved. With enough steps nothing is
//! left out.

use super::cuts::Cuts;
use super::deadlines::{FITS, Until, spread_partly, spread_until};
use super::greedy::proportional;
use super::price::Price;
use super::{Config, Effort, Ended, Place, Problem};

/// Combinations of OPPs beyond which there are no lists of them.
const MAX_OPPS: usize = 1_000_000;

/// The part of λ from which on branches are solved.
const DOUBTFUL: f64 = 0.95;

/// The aim of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Aim {
    /// The aim is less power.
    Power,
    /// A smaller λ, with no more than so many nW.
    Slack(u64),
}

/// The best so far.
pub(super) struct Tree<'p> {
    p: &'p Problem,
    pub(super) aim: Aim,
    pub(super) best: Option<Config>,
    /// Power of the best, in nW.
    pub(super) power: u64,
    /// λ of the best, where slack counts.
    pub(super) lambda: f64,
    /// The nodes, the largest first.
    order: Vec<usize>,
    longest: Vec<u64>,
    alike: Vec<usize>,
    /// Price at the OPPs that are looked at.
    price: Option<Price>,
    pub(super) cuts: Cuts<'p>,
}

/// A partial assignment.
struct Partly {
    place: Vec<Option<Place>>,
    left: Vec<u64>,
    used: Vec<bool>,
    nw: u64,
    /// Lower bound of the power of any completion, by the prices, in nW.
    least_nw: f64,
}

/// OPPs of all domains with the least power that they allow, that first; of domains that are alike the earlier one is never slower. `None`:
/// there are too many.
pub(super) fn opps(p: &Problem) -> Option<Vec<(u64, Vec<usize>)>> {
    let alike = p.alike();
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    for (j, domain) in p.domains.iter().enumerate() {
        let before = (0..j).rev().find(|i| alike[*i] == alike[j]);
        let mut longer = Vec::new();
        for opp in &all {
            let most = before.map_or(domain.opps.len(), |i| opp[i] + 1);
            longer.extend((0..most).map(|o| [&opp[..], &[o]].concat()));
            if longer.len() > MAX_OPPS {
                return None;
            }
        }
        all = longer;
    }
    let nw = |opp: &[usize]| (0..p.nodes.len()).map(|i| least(p, opp, i)).sum::<u64>() + p.base_nw;
    let mut all: Vec<(u64, Vec<usize>)> = all.into_iter().map(|opp| (nw(&opp), opp)).collect();
    all.sort_unstable();
    Some(all)
}

/// The power that a node takes at least at these OPPs, in nW.
fn least(p: &Problem, opp: &[usize], i: usize) -> u64 {
    let open = |j: &usize| {
        let d = &p.domains[*j];
        d.opps[opp[*j]].room_ppm > 0 && !d.cpus.is_empty()
    };
    let cpus = (0..opp.len()).filter(open);
    let cpus = cpus.map(|j| p.node_nw(i, j, opp[j]));
    let versions = p.nodes[i].versions.iter().map(|a| a.power_nw);
    cpus.chain(versions).min().unwrap_or(u64::MAX / 1000)
}

impl<'p> Tree<'p> {
    /// A search that begins with nothing, or with the best deployment that is known.
    pub(super) fn new(p: &'p Problem, best: Option<Config>, effort: Effort<'p>) -> Tree<'p> {
        let deadlines = proportional(p);
        let density = |i: &usize| p.nodes[*i].budget_us[0] * 1_000_000 / deadlines[*i].max(1);
        let mut order: Vec<usize> = (0..p.nodes.len()).collect();
        order.sort_by_key(|i| (std::cmp::Reverse(density(i)), *i));
        let power = best.as_ref().map_or(u64::MAX, |c| p.power_nw(c));
        let longest = p.longest_us();
        let (alike, cuts) = (p.alike(), Cuts::new(p, effort));
        Tree {
            p,
            aim: Aim::Power,
            best,
            power,
            lambda: FITS,
            order,
            longest,
            alike,
            price: None,
            cuts,
        }
    }

    /// The power that these OPPs need at least for the aim, in nW; `None`: they do not do.
    pub(super) fn price(&mut self, opp: &[usize]) -> Option<u64> {
        let most = self.most();
        let known = self.cuts.bound_partly(opp, &vec![None; self.p.nodes.len()], most + 1e-9);
        (known <= most + 1e-9).then(|| self.cuts.price(opp, most).bound.max(0.0) as u64)
    }

    /// The lower bound of λ at these OPPs with no more than `most_nw`; never above `least`.
    pub(super) fn least_lambda(&self, opp: &[usize], most_nw: u64, least: f64) -> f64 {
        let needs = |lambda: f64| self.cuts.needs_nw(opp, lambda) > most_nw as f64;
        let (mut low, mut high) = (self.cuts.bound_of(opp), least);
        if low >= high || needs(high) {
            return least;
        }
        for _ in 0..12 {
            let middle = 0.5 * (low + high);
            *(if needs(middle) { &mut low } else { &mut high }) = middle;
        }
        low
    }

    /// Searches all places at these OPPs.
    pub(super) fn search(&mut self, opp: &[usize]) {
        let p = self.p;
        let price = self.cuts.price(opp, self.most());
        let least_nw = price.bound;
        self.price = Some(price);
        let room = |c: &super::Cpu| p.domains[c.domain].opps[opp[c.domain]].room_ppm;
        let mut partly = Partly {
            place: vec![None; p.nodes.len()],
            left: p.cpus.iter().map(room).collect(),
            used: vec![false; p.cpus.len()],
            nw: p.base_nw,
            least_nw,
        };
        let order = self.order.clone();
        self.go(opp, &order, &mut partly);
    }

    pub(super) fn hopeless(&self, nw: u64) -> bool {
        match self.aim {
            Aim::Power => nw >= self.power,
            Aim::Slack(most) => nw > most,
        }
    }

    /// Returns the λ above which none is of use.
    fn most(&self) -> f64 {
        match self.aim {
            Aim::Power => FITS,
            Aim::Slack(_) => self.lambda.min(FITS) - 1e-9,
        }
    }

    /// The reason for which the search ended: stopped, out of steps, or complete.
    pub(super) fn ended(&self) -> Ended {
        match (self.cuts.stopped, self.cuts.work) {
            (true, _) => Ended::Stopped,
            (false, 0) => Ended::Steps,
            (false, _) => Ended::Whole,
        }
    }

    fn until(&self) -> Until {
        match self.aim {
            Aim::Power => Until::Fits,
            Aim::Slack(_) => Until::Below(self.lambda),
        }
    }

    fn go(&mut self, opp: &[usize], order: &[usize], partly: &mut Partly) {
        let rest: u64 = order.iter().map(|i| least(self.p, opp, *i)).sum();
        let priced = (partly.least_nw - 1.0).max(0.0) as u64;
        if self.cuts.work == 0 || self.hopeless((partly.nw + rest).max(priced)) {
            return;
        }
        let most = self.most();
        let known = self.cuts.bound_partly(opp, &partly.place, most + 1e-9);
        if known > most + 1e-9 {
            return;
        }
        let Some((i, order)) = order.split_first() else {
            self.cuts.spend_solved();
            self.look(opp, partly);
            return;
        };
        // Far from what is known to be too much it would only be solved to be told so.
        if known > DOUBTFUL * most {
            self.cuts.spend_solved();
            match spread_partly(self.p, opp, &partly.place, self.until()) {
                Some(relaxed) if relaxed.bound <= most => {}
                Some(relaxed) => return self.cuts.learn(&relaxed.flow),
                None => return,
            }
        }
        for (nw, place) in self.ways(opp, *i, partly) {
            let was = self.put(*i, place, nw, partly);
            self.go(opp, order, partly);
            self.take(*i, place, nw, was, partly);
        }
    }

    /// The places where a node may go, with the power that each adds, the least first.
    fn ways(&self, opp: &[usize], i: usize, partly: &Partly) -> Vec<(u64, Place)> {
        let (p, v) = (self.p, &self.p.nodes[i]);
        let mut ways: Vec<(u64, Place)> = Vec::new();
        for (j, domain) in p.domains.iter().enumerate() {
            let longest = self.longest[i].saturating_sub(domain.wake_us);
            if longest < super::problem::PERIOD_MIN_US {
                continue;
            }
            let needs = v.budget_us[j] * 1_000_000 / longest;
            let empty = |j: usize| p.domains[j].cpus.iter().copied().find(|c| !partly.used[*c]);
            let before = (0..j)
                .any(|i| self.alike[i] == self.alike[j] && opp[i] == opp[j] && empty(i).is_some());
            let empty = empty(j).filter(|_| !before);
            let used = domain.cpus.iter().copied().filter(|c| partly.used[*c]);
            for c in used.chain(empty).filter(|c| needs <= partly.left[*c]) {
                let more = if partly.used[c] { 0 } else { domain.used_nw };
                ways.push((p.node_nw(i, j, opp[j]) + more, Place::Cpu(c)));
            }
        }
        for (a, version) in v.versions.iter().enumerate() {
            if let Some(more) = p.requested(i, a, &partly.place, opp, &self.longest) {
                ways.push((version.power_nw + more, Place::Version(a)));
            }
        }
        ways.sort_unstable();
        ways
    }

    /// The share of a CPU that a node takes at least, in 10⁻⁶.
    fn needs(&self, i: usize, cpu: usize) -> u64 {
        let longest = self.longest[i].saturating_sub(self.p.wake_us(Place::Cpu(cpu))).max(1);
        self.p.nodes[i].budget_us[self.p.cpus[cpu].domain] * 1_000_000 / longest
    }

    /// Places node `i`; returns whether its CPU was used before.
    fn put(&self, i: usize, place: Place, nw: u64, partly: &mut Partly) -> bool {
        partly.place[i] = Some(place);
        partly.nw += nw;
        partly.least_nw += self.price.as_ref().map_or(0.0, |price| price.more(self.p, i, place));
        match place {
            Place::Cpu(c) => {
                partly.left[c] -= self.needs(i, c);
                std::mem::replace(&mut partly.used[c], true)
            }
            Place::Version(_) => true,
        }
    }

    fn take(&self, i: usize, place: Place, nw: u64, was: bool, partly: &mut Partly) {
        partly.place[i] = None;
        partly.nw -= nw;
        partly.least_nw -= self.price.as_ref().map_or(0.0, |price| price.more(self.p, i, place));
        if let Place::Cpu(c) = place {
            partly.left[c] += self.needs(i, c);
            partly.used[c] = was;
        }
    }

    /// Solves for the deadlines, now that all nodes are placed, and keeps the deployment if it is
    /// better.
    fn look(&mut self, opp: &[usize], partly: &Partly) {
        let p = self.p;
        let unused = |j: usize| !p.domains[j].cpus.iter().any(|c| partly.used[*c]);
        if (0..opp.len()).any(|j| opp[j] > 0 && unused(j) && !p.helps(j)) {
            return;
        }
        let Some(place) = partly.place.iter().copied().collect::<Option<Vec<Place>>>() else {
            return;
        };
        let config = Config { opp: opp.to_vec(), place };
        let Some(found) = spread_until(p, &config, self.until()) else { return };
        let better = match self.aim {
            Aim::Power => found.lambda <= FITS,
            Aim::Slack(_) => found.lambda < self.lambda - 1e-7,
        };
        if !better {
            self.cuts.learn(&found.flow);
        } else {
            self.power = partly.nw;
            self.lambda = found.lambda;
            self.best = Some(config);
        }
    }
}
