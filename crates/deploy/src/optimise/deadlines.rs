//! The convex part: given places and OPPs, by when each node has to be done.
//!
//! ```text
//! least λ   such that   Σ qᵥ/dᵥ ≤ L            on each CPU
//!                       eᵥ ≥ eᵤ + dᵥ + wake + 1 µs    for each edge u → v: wake is the way out of its CPU's idle state,
//!                                              the µs what rounding dᵥ up may add
//!                       e ≤ λ · D              at the end of each graph
//!                       dᵥ ≥ 100 µs            on a CPU; on a device dᵥ is given
//! ```
//!
//! λ ≤ 1: these places and OPPs do; 1 − λ is the least relative slack, and that is as large as it can be. In d the constraints are
//! convex (q/d is), so a local minimum is the minimum. By a barrier: least s·λ − Σ log(what each constraint leaves), by Newton's
//! method, for ever larger s; with m constraints the minimum lies within m/s of it (Boyd and Vandenberghe, "Convex optimization",
//! 11.2 and 11.3). Times of a graph are in units of its deadline.

use super::problem::PERIOD_MIN_US;
use super::{Config, Deployment, Objective, Place, Problem, check};

/// Criterion for knowing enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Until {
    /// λ ≤ 1, or not.
    Fits,
    /// λ, unless it is certainly not below this one.
    Below(f64),
}

/// Deadlines of nodes, and the λ that they leave.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// λ: such a part of each graph's deadline is enough.
    pub lambda: f64,
    /// No spread is enough with less.
    pub bound: f64,
    /// Deadlines by node, in µs, not yet rounded.
    pub deadline_us: Vec<f64>,
    /// φ, by node: how much of λ hangs on its time. All of a graph's end flow back along its edges; all ends together are 1.
    pub flow: Vec<f64>,
}

/// λ up to which places and OPPs do: what is above 1 is less than half a µs of the longest deadline, and deadlines are whole.
pub(super) const FITS: f64 = 1.0 + 1e-7;
/// λ is exact to so much.
const EXACT: f64 = 1e-8;
/// Steps of Newton's method for one s, and values of s: ends what rounding keeps from ending.
const STEPS: usize = 60;

/// The spread with the least λ. `None`: a node is where nothing has room.
pub fn spread(p: &Problem, config: &Config) -> Option<Spread> {
    spread_until(p, config, Until::Below(f64::INFINITY))
}

pub(super) fn spread_until(p: &Problem, config: &Config, until: Until) -> Option<Spread> {
    let places: Vec<Option<Place>> = config.place.iter().copied().map(Some).collect();
    spread_partly(p, &config.opp, &places, until)
}

/// Solves the spread where not every node has a place yet. Nodes without one are on the CPUs of all
/// domains as on a single one that has the room of all of them, or take their shortest time where
/// they may go to a device. So no completion has a smaller λ.
pub(super) fn spread_partly(
    p: &Problem,
    opp: &[usize],
    places: &[Option<Place>],
    until: Until,
) -> Option<Spread> {
    let mut barrier = Barrier::new(p, opp, places)?;
    let m = barrier.constraints() as f64;
    let mut s = m / barrier.x[barrier.lambda].max(1e-3);
    loop {
        let lambda = |b: &Barrier<'_>| b.x[b.lambda];
        let enough = |b: &Barrier<'_>| until == Until::Fits && lambda(b) <= FITS;
        for _ in 0..STEPS {
            if barrier.step(s) || enough(&barrier) {
                break;
            }
        }
        let now = lambda(&barrier);
        let bound = now - (m + m.sqrt()) / s;
        let known = match until {
            Until::Fits => now <= FITS || bound > FITS,
            Until::Below(best) => bound >= best,
        };
        if known || (m + m.sqrt()) / s < EXACT {
            let (deadline_us, flow) = (barrier.deadlines(), barrier.flow());
            return Some(Spread { lambda: now, bound, deadline_us, flow });
        }
        s *= 12.0;
    }
}

/// Places and OPPs with the deadlines that the objective wants. `None`: they do not do.
///
/// For the slack each node's is as short as its CPU's room allows it; else each graph's whole deadline is handed out.
pub(super) fn deployment(p: &Problem, config: &Config, objective: Objective) -> Option<Deployment> {
    let until = match objective {
        Objective::Power => Until::Fits,
        Objective::Slack { .. } => Until::Below(f64::INFINITY),
    };
    let spread = spread_until(p, config, until)?;
    if spread.lambda > FITS {
        return None;
    }
    let on_cpu = |i: usize| matches!(config.place[i], Place::Cpu(_));
    let least = |i: usize| match on_cpu(i) {
        true => (spread.deadline_us[i].ceil() as u64).max(PERIOD_MIN_US),
        false => spread.deadline_us[i].round() as u64,
    };
    let mut deadline_us: Vec<u64> = (0..p.nodes.len()).map(least).collect();
    if objective == Objective::Power {
        for (g, graph) in p.graphs.iter().enumerate() {
            let by = |factor: f64| {
                let grown = |i: &usize| match on_cpu(*i) {
                    true => deadline_us[*i].max((deadline_us[*i] as f64 * factor) as u64),
                    false => deadline_us[*i],
                };
                graph.nodes.iter().map(grown).collect::<Vec<u64>>()
            };
            let wake = |(i, us): (&usize, u64)| us + p.wake_us(config.place[*i]);
            let fits = |factor: f64| {
                let all: Vec<u64> = graph.nodes.iter().zip(by(factor)).map(wake).collect();
                length(p, g, &all) <= graph.deadline_us
            };
            let (mut low, mut high) = (1.0, graph.deadline_us as f64);
            for _ in 0..60 {
                let middle = 0.5 * (low + high);
                *(if fits(middle) { &mut low } else { &mut high }) = middle;
            }
            for (i, us) in graph.nodes.iter().zip(by(low)) {
                deadline_us[*i] = us;
            }
        }
    }
    let found = Deployment { config: config.clone(), deadline_us };
    check(p, &found).is_ok().then_some(found)
}

/// The longest way through graph `g`, whose nodes take `us`, in their order.
fn length(p: &Problem, g: usize, us: &[u64]) -> u64 {
    let nodes = &p.graphs[g].nodes;
    let mut done = vec![0; nodes.len()];
    for (at, i) in nodes.iter().enumerate() {
        let before =
            p.nodes[*i].after.iter().filter_map(|a| nodes[..at].iter().position(|n| n == a));
        done[at] = before.map(|b| done[b]).max().unwrap_or(0) + us[at];
    }
    done.into_iter().max().unwrap_or(0)
}

/// The problem with a barrier before each constraint.
struct Barrier<'p> {
    p: &'p Problem,
    /// λ, d of each node on a CPU, e of each node: by the places below.
    x: Vec<f64>,
    lambda: usize,
    /// Place of d in `x` by node, or the given deadline.
    own: Vec<Result<usize, f64>>,
    /// Place of the first e.
    ends: usize,
    /// L, and (d, q) of the nodes, of each CPU with some.
    cpus: Vec<(f64, Vec<(usize, f64)>)>,
    /// (d, the least it may be).
    floors: Vec<(usize, f64)>,
    /// Σ sign·x + constant ≥ 0.
    lines: Vec<(Vec<(usize, f64)>, f64)>,
}

impl<'p> Barrier<'p> {
    fn new(p: &'p Problem, opp: &[usize], places: &[Option<Place>]) -> Option<Barrier<'p>> {
        let responses = p.responses_us(places, opp);
        let room = |j: usize| p.domains[j].opps[opp[j]].room_ppm as f64 / 1e6;
        let largest = (0..opp.len()).map(room).fold(0.0, f64::max);
        let mut pool: Vec<(usize, f64)> = Vec::new();
        let unit = |i: usize| p.graphs[p.nodes[i].graph].deadline_us as f64;
        let (mut x, mut own, mut floors) = (vec![0.0f64], Vec::new(), Vec::new());
        let mut on: Vec<Vec<(usize, f64)>> = vec![Vec::new(); p.cpus.len()];
        for (i, place) in places.iter().enumerate() {
            own.push(match *place {
                None if !p.nodes[i].versions.is_empty() => Err(p.shortest_us(i) as f64 / unit(i)),
                None => {
                    let q =
                        p.nodes[i].budget_us.iter().min().copied().unwrap_or(0) as f64 / unit(i);
                    pool.push((x.len(), q));
                    floors.push((x.len(), (q / largest).max(PERIOD_MIN_US as f64 / unit(i))));
                    x.push(0.0);
                    Ok(x.len() - 1)
                }
                Some(Place::Cpu(cpu)) => {
                    let q = p.nodes[i].budget_us[p.cpus[cpu].domain] as f64 / unit(i);
                    on[cpu].push((x.len(), q));
                    pool.push((x.len(), q));
                    floors.push((x.len(), PERIOD_MIN_US as f64 / unit(i)));
                    x.push(0.0);
                    Ok(x.len() - 1)
                }
                Some(Place::Version(a)) => {
                    Err(responses[p.nodes[i].versions[a].device] as f64 / unit(i))
                }
            });
        }
        let ends = x.len();
        let mut cpus = Vec::new();
        for (cpu, nodes) in on.into_iter().enumerate().filter(|(_, nodes)| !nodes.is_empty()) {
            cpus.push((room(p.cpus[cpu].domain), nodes));
        }
        if places.iter().any(Option::is_none) && !pool.is_empty() {
            let open = (0..p.cpus.len()).filter(|c| p.takes_nodes(*c));
            cpus.push((open.map(|c| room(p.cpus[c].domain)).sum(), pool));
        }
        // Somewhere inside: half of the room.
        for (room, nodes) in &cpus {
            if *room <= 0.0 {
                return None;
            }
            for (d, q) in nodes {
                x[*d] = x[*d].max(2.0 * q * nodes.len() as f64 / room);
            }
        }
        for (d, least) in &floors {
            x[*d] = x[*d].max(2.0 * least);
        }
        let least_wake = p.domains.iter().map(|d| d.wake_us).min().unwrap_or(0);
        let wake = |i: usize| 1.0 + places[i].map_or(least_wake, |at| p.wake_us(at)) as f64;
        let (mut lines, mut last) = (Vec::new(), 0.0f64);
        for i in 0..p.nodes.len() {
            let given = own[i].map_or_else(|given| given, |d| x[d] + wake(i) / unit(i));
            let before = p.nodes[i].after.iter().map(|a| x[ends + a]).fold(0.0, f64::max);
            x.push(before + given + 0.01);
            last = last.max(x[ends + i]);
            let mut line = |before: Option<usize>| {
                let mut terms = vec![(ends + i, 1.0)];
                terms.extend(before.map(|a| (ends + a, -1.0)));
                let constant = match own[i] {
                    Ok(d) => {
                        terms.push((d, -1.0));
                        -wake(i) / unit(i)
                    }
                    Err(given) => -given,
                };
                lines.push((terms, constant));
            };
            match p.nodes[i].after.is_empty() {
                true => line(None),
                false => p.nodes[i].after.iter().for_each(|a| line(Some(*a))),
            }
        }
        for graph in &p.graphs {
            let end = *graph.nodes.last()?;
            lines.push((vec![(0, 1.0), (ends + end, -1.0)], 0.0));
        }
        x[0] = last + 0.01;
        Some(Barrier { p, x, lambda: 0, own, ends, cpus, floors, lines })
    }

    fn constraints(&self) -> usize {
        self.cpus.len() + self.floors.len() + self.lines.len()
    }

    /// The barrier's value s·λ − Σ log(…) at `x`; `None`: `x` is not inside.
    fn value(&self, x: &[f64], s: f64) -> Option<f64> {
        let lines = self.lines.iter().map(|(terms, constant)| {
            terms.iter().map(|(i, sign)| sign * x[*i]).sum::<f64>() + constant
        });
        let floors = self.floors.iter().map(|(d, least)| x[*d] - least);
        let cpus = self
            .cpus
            .iter()
            .map(|(room, nodes)| room - nodes.iter().map(|(d, q)| q / x[*d]).sum::<f64>());
        let mut sum = s * x[self.lambda];
        for left in lines.chain(floors).chain(cpus) {
            if left <= 0.0 {
                return None;
            }
            sum -= left.ln();
        }
        Some(sum)
    }

    /// A step of Newton's method; true: that was as far as it goes.
    fn step(&mut self, s: f64) -> bool {
        let n = self.x.len();
        let (mut gradient, mut hessian) = (vec![0.0; n], vec![0.0; n * n]);
        gradient[self.lambda] = s;
        for (terms, constant) in &self.lines {
            let left = terms.iter().map(|(i, sign)| sign * self.x[*i]).sum::<f64>() + constant;
            for (i, a) in terms {
                gradient[*i] -= a / left;
                for (j, b) in terms {
                    hessian[i * n + j] += a * b / (left * left);
                }
            }
        }
        for (d, least) in &self.floors {
            let left = self.x[*d] - least;
            gradient[*d] -= 1.0 / left;
            hessian[d * n + d] += 1.0 / (left * left);
        }
        for (room, nodes) in &self.cpus {
            let left = room - nodes.iter().map(|(d, q)| q / self.x[*d]).sum::<f64>();
            let slope = |d: usize, q: f64| q / (self.x[d] * self.x[d]);
            for (d, q) in nodes {
                gradient[*d] -= slope(*d, *q) / left;
                hessian[d * n + d] += 2.0 * slope(*d, *q) / self.x[*d] / left;
                for (e, r) in nodes {
                    hessian[d * n + e] += slope(*d, *q) * slope(*e, *r) / (left * left);
                }
            }
        }
        let Some(step) = solve(&mut hessian, &gradient) else { return true };
        let decrement: f64 = step.iter().zip(&gradient).map(|(a, b)| a * b).sum();
        if decrement.is_nan() || decrement < 1e-9 {
            return true;
        }
        let Some(now) = self.value(&self.x, s) else { return true };
        let mut part = 1.0;
        while part > 1e-10 {
            let next: Vec<f64> = self.x.iter().zip(&step).map(|(x, d)| x - part * d).collect();
            if self.value(&next, s).is_some_and(|v| v <= now - 0.1 * part * decrement) {
                self.x = next;
                return false;
            }
            part *= 0.5;
        }
        true
    }

    /// The flow of each node, from the multipliers of its lines, 1/(s·slack).
    fn flow(&self) -> Vec<f64> {
        let multiplier = |(terms, constant): &(Vec<(usize, f64)>, f64)| {
            let left = terms.iter().map(|(i, sign)| sign * self.x[*i]).sum::<f64>() + constant;
            1.0 / left.max(1e-300)
        };
        let all: Vec<f64> = self.lines.iter().map(multiplier).collect();
        // Lines: of each node one for each that it waits for, or a single one; then one for each graph's end.
        let nodes = &self.p.nodes;
        let own = all.len() - self.p.graphs.len();
        let ends: f64 = all[own..].iter().sum();
        let mut flow = vec![0.0; nodes.len()];
        for (graph, by) in self.p.graphs.iter().zip(&all[own..]) {
            if let Some(last) = graph.nodes.last() {
                flow[*last] = by / ends;
            }
        }
        let mut behind = own;
        for i in (0..nodes.len()).rev() {
            let after = &nodes[i].after;
            let first = behind - after.len().max(1);
            let sum: f64 = all[first..behind].iter().sum();
            for (a, by) in after.iter().zip(&all[first..behind]) {
                flow[*a] += flow[i] * by / sum;
            }
            behind = first;
        }
        flow
    }

    /// The relative deadline of each node, in µs.
    fn deadlines(&self) -> Vec<f64> {
        let unit = |i: usize| self.p.graphs[self.p.nodes[i].graph].deadline_us as f64;
        let of = |(i, own): (usize, &Result<usize, f64>)| {
            unit(i) * own.map_or_else(|given| given, |d| self.x[d])
        };
        debug_assert_eq!(self.ends + self.p.nodes.len(), self.x.len());
        self.own.iter().enumerate().map(of).collect()
    }
}

/// Solves a·x = `b` for the symmetric positive matrix `a`, by Cholesky; `None`: it is not positive.
fn solve(a: &mut [f64], b: &[f64]) -> Option<Vec<f64>> {
    let n = b.len();
    for j in 0..n {
        for k in 0..j {
            let by = a[j * n + k];
            if by != 0.0 {
                for i in j..n {
                    a[i * n + j] -= a[i * n + k] * by;
                }
            }
        }
        let pivot = a[j * n + j];
        if pivot.is_nan() || pivot <= 0.0 {
            return None;
        }
        let root = pivot.sqrt();
        for i in j..n {
            a[i * n + j] /= root;
        }
    }
    let mut x = b.to_vec();
    for i in 0..n {
        for k in 0..i {
            x[i] -= a[i * n + k] * x[k];
        }
        x[i] /= a[i * n + i];
    }
    for i in (0..n).rev() {
        for k in i + 1..n {
            x[i] -= a[k * n + i] * x[k];
        }
        x[i] /= a[i * n + i];
    }
    Some(x)
}
