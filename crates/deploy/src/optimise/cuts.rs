//! Cuts: lower bounds of λ by which places and OPPs that do not fit are refused without solving
//! anything.
//!
//! ```text
//! flow      a part of each graph's end, backwards along its edges to where it begins: all parts are 1, φᵥ goes through node v
//! whatever the deadlines   λ ≥ Σᵥ φᵥ·(dᵥ + wake + 1 µs)/D        a mean of paths is no longer than the longest
//!                            ≥ Σᵥ φᵥ·(wake + 1 µs)/D  +  Σₖ (Σᵥ √(φᵥ·qᵥ/D))² / Lₖ        Σ q/d ≤ L, by Cauchy and Schwarz
//! ```
//!
//! Equal where φ are the multipliers of the convex part of that configuration: whoever does not do leaves a flow that says so, also
//! of its neighbours. For one flow the places are a problem of balance: √(φ·q/D) is what a node weighs on a CPU.

use super::deadlines::{FITS, Until, spread_until};
use super::price::Price;
use super::{Config, Effort, Place, Problem, Stop};

/// One flow.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    /// φ/D, by node.
    flow: Vec<f64>,
    /// φ·(wake + 1 µs)/D, by node and domain.
    wake: Vec<Vec<f64>>,
    /// √(φ·q/D), by node and domain.
    weight: Vec<Vec<f64>>,
}

impl Cut {
    pub(super) fn new(p: &Problem, flow: &[f64]) -> Cut {
        let unit = |i: usize| p.graphs[p.nodes[i].graph].deadline_us as f64;
        let flow: Vec<f64> = flow.iter().enumerate().map(|(i, f)| f / unit(i)).collect();
        let by = |of: &dyn Fn(usize, usize) -> f64| -> Vec<Vec<f64>> {
            let domains = 0..p.domains.len();
            (0..flow.len()).map(|i| domains.clone().map(|j| of(i, j)).collect()).collect()
        };
        let wake = by(&|i, j| flow[i] * (1.0 + p.domains[j].wake_us as f64));
        let weight = by(&|i, j| (flow[i] * p.nodes[i].budget_us[j] as f64).sqrt());
        Cut { flow, wake, weight }
    }

    pub(super) fn weight(&self, node: usize, domain: usize) -> f64 {
        self.weight[node][domain]
    }

    pub(super) fn wake(&self, node: usize, domain: usize) -> f64 {
        self.wake[node][domain]
    }

    /// The lower bound of λ that this flow gives for `config`.
    pub(super) fn bound(&self, p: &Problem, config: &Config) -> f64 {
        let mut on = vec![0.0; p.cpus.len()];
        let mut sum = 0.0;
        let mut on_devices = false;
        for (i, place) in config.place.iter().enumerate() {
            match *place {
                Place::Cpu(c) => {
                    let j = p.cpus[c].domain;
                    on[c] += self.weight[i][j];
                    sum += self.wake[i][j];
                }
                Place::Version(_) => on_devices = true,
            }
        }
        for (c, weight) in on.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            let j = p.cpus[c].domain;
            sum += weight * weight * 1e6 / p.domains[j].opps[config.opp[j]].room_ppm as f64;
        }
        if on_devices {
            let places: Vec<Option<Place>> = config.place.iter().copied().map(Some).collect();
            let responses = p.responses_us(&places, &config.opp);
            for (i, place) in config.place.iter().enumerate() {
                if let Place::Version(a) = *place {
                    sum += self.flow[i] * responses[p.nodes[i].versions[a].device] as f64;
                }
            }
        }
        sum
    }
}

impl Cut {
    /// The lower bound of λ for a partial assignment: a node without a place counts with its least
    /// weight, spread over all CPUs like water; one that may go to a device counts 0.
    fn bound_partly(&self, p: &Problem, opp: &[usize], places: &[Option<Place>]) -> f64 {
        let mut on = vec![0.0; p.cpus.len()];
        let (mut sum, mut rest) = (0.0, 0.0);
        let mut on_devices = false;
        for (i, place) in places.iter().enumerate() {
            match *place {
                Some(Place::Cpu(c)) => {
                    let j = p.cpus[c].domain;
                    on[c] += self.weight[i][j];
                    sum += self.wake[i][j];
                }
                Some(Place::Version(_)) => on_devices = true,
                None if p.nodes[i].versions.is_empty() => {
                    rest += self.weight[i].iter().copied().fold(f64::INFINITY, f64::min);
                    sum += self.wake[i].iter().copied().fold(f64::INFINITY, f64::min);
                }
                None => {}
            }
        }
        let room = |c: usize| {
            let j = p.cpus[c].domain;
            let room = p.domains[j].opps[opp[j]].room_ppm as f64 / 1e6;
            if p.takes_nodes(c) { room } else { 0.0 }
        };
        let mut cpus: Vec<(f64, f64)> = on.iter().enumerate().map(|(c, w)| (*w, room(c))).collect();
        cpus.retain(|(_, room)| *room > 0.0);
        cpus.sort_unstable_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
        // The level is that of the first CPUs, as long as the next one is above it.
        let (mut weight, mut whole, mut wet) = (rest, 0.0, 0);
        for (own, room) in &cpus {
            if wet > 0 && weight / whole <= own / room {
                break;
            }
            (weight, whole, wet) = (weight + own, whole + room, wet + 1);
        }
        if wet > 0 {
            sum += weight * weight / whole;
        }
        sum += cpus[wet..].iter().map(|(own, room)| own * own / room).sum::<f64>();
        if on_devices {
            let responses = p.responses_us(places, opp);
            for (i, place) in places.iter().enumerate() {
                if let Some(Place::Version(a)) = *place {
                    sum += self.flow[i] * responses[p.nodes[i].versions[a].device] as f64;
                }
            }
        }
        sum
    }
}

/// Known flows, and how much longer one may look.
pub(super) struct Cuts<'p> {
    p: &'p Problem,
    /// The last one that was of use comes first.
    all: Vec<Cut>,
    /// Steps left, each of about a ns.
    pub(super) work: u64,
    stop: Stop<'p>,
    /// Steps until it is asked again.
    asked_in: u64,
    /// Whether it has said yes.
    pub(super) stopped: bool,
}

/// Largest number of cuts that are kept.
const MOST: usize = 48;
/// Number of cuts that give prices.
const PRICED: usize = 3;
/// Steps, some ms, after which the caller is asked again whether to stop.
const ASKED_EACH: u64 = 4_000_000;

impl<'p> Cuts<'p> {
    /// The cuts of a problem, one to begin with: all paths of a graph alike, all graphs alike.
    pub(super) fn new(p: &'p Problem, effort: Effort<'p>) -> Cuts<'p> {
        let mut flow = vec![0.0; p.nodes.len()];
        for graph in &p.graphs {
            if let Some(last) = graph.nodes.last() {
                flow[*last] = 1.0 / p.graphs.len() as f64;
            }
        }
        for i in (0..p.nodes.len()).rev() {
            let after = &p.nodes[i].after;
            for a in after {
                flow[*a] += flow[i] / after.len() as f64;
            }
        }
        let Effort { steps, stop } = effort;
        let all = vec![Cut::new(p, &flow)];
        Cuts { p, all, work: steps, stop, asked_in: ASKED_EACH, stopped: false }
    }

    /// Spends so many steps; asks now and then whether to stop, and leaves no steps if so.
    fn steps(&mut self, steps: u64) {
        self.work = self.work.saturating_sub(steps);
        self.asked_in = self.asked_in.saturating_sub(steps);
        if self.asked_in == 0 {
            self.asked_in = ASKED_EACH;
            self.stopped |= (self.stop)();
        }
        if self.stopped {
            self.work = 0;
        }
    }

    pub(super) fn first(&self) -> &Cut {
        &self.all[0]
    }

    /// Spends the work of so many states or bounds.
    pub(super) fn spend(&mut self, times: u64) {
        let n = self.p.nodes.len() as u64;
        self.steps(times * (60 + 4 * n));
    }

    /// Spends the work of one convex problem: some 25 steps of Newton's method, each of which
    /// builds a matrix and takes it apart.
    pub(super) fn spend_solved(&mut self) {
        let n = 2 * self.p.nodes.len() as u64 + 1;
        self.steps(25 * (n * n * n / 3 + 20 * n * n + 60 * n));
    }

    /// Whether a known cut shows that `config` does not fit. That cut comes first from then on.
    pub(super) fn forbids(&mut self, config: &Config) -> bool {
        self.spend(self.all.len() as u64);
        let known = self.all.iter().position(|cut| cut.bound(self.p, config) > FITS + 1e-9);
        if let Some(at) = known {
            self.all[..=at].rotate_right(1);
        }
        known.is_some()
    }

    /// Whether `config` fits, by solving if no cut forbids it. If it does not, its flow is kept as
    /// a new cut.
    pub(super) fn does(&mut self, config: &Config) -> bool {
        if self.forbids(config) {
            return false;
        }
        self.spend_solved();
        let Some(found) = spread_until(self.p, config, Until::Fits) else { return false };
        if found.lambda <= FITS {
            return true;
        }
        self.learn(&found.flow);
        false
    }

    /// The lower bound of λ with these places, wherever the other nodes go; cuts are asked only
    /// until the bound is above `most`.
    pub(super) fn bound_partly(
        &mut self,
        opp: &[usize],
        places: &[Option<Place>],
        most: f64,
    ) -> f64 {
        let (mut bound, mut asked) = (0.0f64, 0);
        for (at, cut) in self.all.iter().enumerate() {
            bound = bound.max(cut.bound_partly(self.p, opp, places));
            asked += 1;
            if bound > most {
                self.all[..=at].rotate_right(1);
                break;
            }
        }
        self.spend(asked);
        bound
    }

    /// The prices by which a λ of `most` at these OPPs needs the most power, among the flows that
    /// were of use last.
    pub(super) fn price(&mut self, opp: &[usize], most: f64) -> Price {
        let known = &self.all[..self.all.len().min(PRICED)];
        let all = known.iter().map(|cut| Price::new(self.p, opp, cut, most));
        let best = all.max_by(|a, b| a.bound.total_cmp(&b.bound));
        self.steps(PRICED as u64 * Price::steps(self.p));
        best.unwrap_or_else(|| Price::new(self.p, opp, self.first(), most))
    }

    /// The power that a λ of `most` needs at least at these OPPs, in nW, by the flow that was of
    /// use last.
    pub(super) fn needs_nw(&self, opp: &[usize], most: f64) -> f64 {
        Price::new(self.p, opp, self.first(), most).bound
    }

    /// The lower bound of λ at these OPPs, wherever the nodes go.
    pub(super) fn bound_of(&self, opp: &[usize]) -> f64 {
        let nowhere = vec![None; self.p.nodes.len()];
        self.all.iter().map(|cut| cut.bound_partly(self.p, opp, &nowhere)).fold(0.0, f64::max)
    }

    pub(super) fn learn(&mut self, flow: &[f64]) {
        self.all.insert(0, Cut::new(self.p, flow));
        self.all.truncate(MOST);
    }

    /// The lower bound of λ for `config`, by all cuts; asked only until it is `most` or more.
    pub(super) fn bound(&self, config: &Config, most: f64) -> f64 {
        let mut bound = 0.0f64;
        for cut in &self.all {
            bound = bound.max(cut.bound(self.p, config));
            if bound >= most {
                break;
            }
        }
        bound
    }
}
