//! Least power needed for a λ: a flow ([`super::cuts`]) bounds λ by the places, and multipliers
//! make of that bound a price of each place.
//!
//! ```text
//! least Σ p(v,j) + Σ used(j)·m(j)    such that   Σ wake(v,j) + Σⱼ (Σᵥ w(v,j))² / (m(j)·L(j))  ≤ Λ,     m(j) ≤ M(j) CPUs of domain j
//! for any μ ≥ 0, bⱼ ≥ 0    it is no less than
//!     Σᵥ minⱼ [p + μ·wake + 2·bⱼ·w]  -  μ·Λ  +  Σⱼ M(j) · min(0, used(j) - bⱼ²·L(j)/μ)
//! ```
//!
//! by Lagrange, and since W²/C ≥ 2·a·W - a²·C with b = μ·a. In μ and b it is concave; any of them is a bound. Of places some of which are given the
//! same sum, with the prices of those, says as much: a branch whose price is above the best power need not be looked at.

use super::cuts::Cut;
use super::{Place, Problem};

/// Prices at some OPPs, in nW.
#[derive(Clone, Debug)]
pub(super) struct Price {
    /// Prices by node and domain; infinite where none may go.
    on: Vec<Vec<f64>>,
    /// Price of the cheapest place by node, versions among them.
    least: Vec<f64>,
    /// Lower bound of all nodes' power, each on its cheapest place.
    pub(super) bound: f64,
}

/// Number of times that steps are halved.
const HALVED: usize = 5;

impl Price {
    /// The best that a short search finds for `cut`, where λ is to be `most` or less.
    pub(super) fn new(p: &Problem, opp: &[usize], cut: &Cut, most: f64) -> Price {
        let program = Program::new(p, opp, cut, most);
        let domains = p.domains.len();
        // Multipliers: μ, then b of each domain.
        let mut at = vec![program.scale; domains + 1];
        at[1..].fill(program.scale * program.level);
        let mut best = program.value(&at);
        let (mut factor, mut halved) = (4.0f64, 0);
        while halved < HALVED {
            let mut better = false;
            // All b together, μ alone, both; then each b.
            let groups: [(bool, bool); 3] = [(false, true), (true, false), (true, true)];
            for by in [factor, 1.0 / factor] {
                for (mu, b) in groups {
                    let mut next = at.clone();
                    if mu {
                        next[0] *= by;
                    }
                    if b {
                        next[1..].iter_mut().for_each(|b| *b *= by);
                    }
                    better |= program.take(&mut at, &mut best, next);
                }
                for j in (0..domains).filter(|_| domains > 1) {
                    let mut next = at.clone();
                    next[1 + j] *= by;
                    better |= program.take(&mut at, &mut best, next);
                }
            }
            if !better {
                (factor, halved) = (factor.sqrt(), halved + 1);
            }
        }
        program.price(&at, best)
    }

    /// The power that node `i` takes at `place` beyond its cheapest place, in nW.
    pub(super) fn more(&self, p: &Problem, i: usize, place: Place) -> f64 {
        let own = match place {
            Place::Cpu(c) => self.on[i][p.cpus[c].domain],
            Place::Version(a) => p.nodes[i].versions[a].power_nw as f64,
        };
        own - self.least[i]
    }

    /// Steps that it takes, each of about a ns.
    pub(super) fn steps(p: &Problem) -> u64 {
        let (n, domains) = (p.nodes.len() as u64, p.domains.len() as u64);
        (HALVED as u64 + 4) * 2 * (3 + domains) * (60 + 4 * n * domains)
    }
}

/// The program whose optimum is a price.
struct Program<'p> {
    p: &'p Problem,
    cut: &'p Cut,
    most: f64,
    /// p(v,j), infinite where none may go.
    nw: Vec<Vec<f64>>,
    /// L(j) of a CPU of capacity 1024.
    room: Vec<f64>,
    /// About a power, and about Σ w / Σ L.
    scale: f64,
    level: f64,
}

impl<'p> Program<'p> {
    fn new(p: &'p Problem, opp: &[usize], cut: &'p Cut, most: f64) -> Program<'p> {
        let n = p.nodes.len();
        let room: Vec<f64> =
            p.domains.iter().zip(opp).map(|(d, o)| d.opps[*o].room_ppm as f64 / 1e6).collect();
        let open = |j: usize| room[j] > 0.0 && !p.domains[j].cpus.is_empty();
        let price = |i: usize, j: usize| match open(j) {
            true => p.node_nw(i, j, opp[j]) as f64,
            false => f64::INFINITY,
        };
        let nw: Vec<Vec<f64>> =
            (0..n).map(|i| (0..room.len()).map(|j| price(i, j)).collect()).collect();
        let used: u64 = p.domains.iter().map(|d| d.used_nw).sum();
        let least = |i: &Vec<f64>| i.iter().copied().fold(f64::INFINITY, f64::min);
        let sum: f64 = nw.iter().map(least).filter(|nw| nw.is_finite()).sum();
        let all: f64 = p.domains.iter().zip(&room).map(|(d, l)| l * d.cpus.len() as f64).sum();
        let weights: f64 = (0..n)
            .map(|i| (0..room.len()).map(|j| cut.weight(i, j)).fold(f64::INFINITY, f64::min))
            .sum();
        let level = (weights / all.max(1e-9)).max(1e-9);
        let scale = (sum + used as f64).max(1.0);
        Program { p, cut, most, nw, room, scale, level }
    }

    fn on(&self, at: &[f64], i: usize, j: usize) -> f64 {
        self.nw[i][j] + at[0] * self.cut.wake(i, j) + 2.0 * at[1 + j] * self.cut.weight(i, j)
    }

    fn least(&self, at: &[f64], i: usize) -> f64 {
        let on = (0..self.room.len()).map(|j| self.on(at, i, j));
        let versions = self.p.nodes[i].versions.iter().map(|a| a.power_nw as f64);
        on.chain(versions).fold(f64::INFINITY, f64::min)
    }

    fn value(&self, at: &[f64]) -> f64 {
        let nodes: f64 = (0..self.nw.len()).map(|i| self.least(at, i)).sum();
        let cpus = self.p.domains.iter().zip(&self.room).zip(&at[1..]);
        let cpus = cpus.map(|((d, room), b)| {
            let own = d.used_nw as f64 - b * b * room / at[0];
            own.min(0.0) * d.cpus.len() as f64
        });
        self.p.base_nw as f64 + nodes - at[0] * self.most + cpus.sum::<f64>()
    }

    /// Moves to `next` if its value is better; true if so.
    fn take(&self, at: &mut Vec<f64>, best: &mut f64, next: Vec<f64>) -> bool {
        let value = self.value(&next);
        let better = value > *best + 1e-6 * self.scale;
        if better {
            (*at, *best) = (next, value);
        }
        better
    }

    fn price(&self, at: &[f64], bound: f64) -> Price {
        let n = self.nw.len();
        let of = |i: usize| (0..self.room.len()).map(|j| self.on(at, i, j)).collect();
        Price {
            on: (0..n).map(of).collect(),
            least: (0..n).map(|i| self.least(at, i)).collect(),
            bound,
        }
    }
}
