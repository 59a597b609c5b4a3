//! The program without its products: what a solver of mixed-integer linear programs is given.
//!
//! ```text
//! x[v,k]  node v is on CPU k               z[v,a]  v is on a device, by its version a        whole, 0 or 1
//! o[j,m]  domain j is at its OPP m         n[k], n[g]  CPU k, device g has a node            whole, 0 or 1
//! t[v,k]  x · d/D      h[v,k]  x · q/d     e[v]  when v is done, in D      W[j,m]  o · work of j in each µs
//!
//! Σₖ x + Σₐ z = 1     Σₘ o = 1     Σᵥ h ≤ Σₘ L·o     Σₘ W = Σ x·w/T     W ≤ (CPUs of j)·L·o     100/D·x ≤ t ≤ x
//! e[v] ≥ e[u] + Σₖ (t + x·(wake + 1 µs)/D) + r[v]        r[v] ≥ Σ z·runtime/D of the device − (1 − z[v,a]) · (all of that device)/D
//! h ≥ q/D · (2x/τ − t/τ²)                  a tangent of the hyperbola h·t = x·q/D at t = τ: the only thing that is not exact
//! ```
//!
//! Power is Σ (busy − idle)/speed · W and what stands beside it: a product of OPP and work in the quadratic program, exact here. With
//! tangents at τ, ρτ, ρ²τ, … the hyperbola lies above them by (ρ − 1)²/(ρ + 1)² of itself at most: 1.2 % of what a node takes of
//! its CPU for ρ = 1.25. So a program may have an answer that does not do, never the other way round: its least power is a bound.

use super::problem::PERIOD_MIN_US;
use super::{Config, Objective, Place, Problem};

/// A variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// Objective coefficient.
    pub cost: f64,
    /// Lower bound of the variable.
    pub lower: f64,
    /// Upper bound of the variable.
    pub upper: f64,
    /// Whole.
    pub integer: bool,
}

/// `lower ≤ Σ factor · column ≤ upper`.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// May be −∞.
    pub lower: f64,
    /// May be ∞.
    pub upper: f64,
    /// Columns by their places, and their factors.
    pub terms: Vec<(usize, f64)>,
}

/// A mixed-integer linear program; to be made least.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Linear {
    /// Variables.
    pub columns: Vec<Column>,
    /// Constraints.
    pub rows: Vec<Row>,
    /// Constant of the objective.
    pub constant: f64,
}

/// An answer of a solver.
#[derive(Clone, Debug, PartialEq)]
pub struct Solved {
    /// Values by column.
    pub values: Vec<f64>,
    /// Lower bound of the objective, without [`Linear::constant`]: proven, so that no answer has
    /// less.
    pub bound: f64,
}

/// A solver.
pub trait Milp {
    /// The least of it; `None`: nothing obeys all rows.
    ///
    /// Errors: the solver gave up, in its words.
    fn solve(&mut self, program: &Linear) -> Result<Option<Solved>, String>;
}

/// Ratio of one tangent's place to the next.
pub(super) const RATIO: f64 = 1.25;
/// Power in nW of one unit of the objective: mW. A solver's tolerances are about 10⁻⁶ of it.
const NW_IN_UNIT: f64 = 1e6;

/// The program with the places of its variables.
pub(super) struct Written<'p> {
    p: &'p Problem,
    pub(super) program: Linear,
    x: Vec<Vec<usize>>,
    t: Vec<Vec<usize>>,
    h: Vec<Vec<usize>>,
    z: Vec<Vec<usize>>,
    o: Vec<Vec<usize>>,
    w: Vec<Vec<usize>>,
    power: Vec<(usize, f64)>,
    lambda: usize,
}

impl<'p> Written<'p> {
    /// The program of a problem, with tangents from the shortest deadlines to the longest.
    pub(super) fn new(p: &'p Problem) -> Written<'p> {
        let mut w = Written {
            p,
            program: Linear::default(),
            x: Vec::new(),
            t: Vec::new(),
            h: Vec::new(),
            z: Vec::new(),
            o: Vec::new(),
            w: Vec::new(),
            power: Vec::new(),
            lambda: 0,
        };
        w.lambda = w.column(0.0, 1.0, false);
        w.domains();
        w.nodes();
        w.processors();
        w.devices();
        w.paths();
        w
    }

    fn column(&mut self, lower: f64, upper: f64, integer: bool) -> usize {
        self.program.columns.push(Column { cost: 0.0, lower, upper, integer });
        self.program.columns.len() - 1
    }

    fn at_most(&mut self, terms: Vec<(usize, f64)>, upper: f64) {
        self.program.rows.push(Row { lower: f64::NEG_INFINITY, upper, terms });
    }

    fn equal(&mut self, terms: Vec<(usize, f64)>, to: f64) {
        self.program.rows.push(Row { lower: to, upper: to, terms });
    }

    fn deadline(&self, node: usize) -> f64 {
        self.p.graphs[self.p.nodes[node].graph].deadline_us as f64
    }

    fn domains(&mut self) {
        for j in 0..self.p.domains.len() {
            let opps = 0..self.p.domains[j].opps.len();
            let opps: Vec<usize> = opps.map(|_| self.column(0.0, 1.0, true)).collect();
            self.o.push(opps);
            let one = self.o[j].iter().map(|o| (*o, 1.0)).collect();
            self.equal(one, 1.0);
        }
        self.program.constant = self.p.base_nw as f64 / NW_IN_UNIT;
    }

    fn nodes(&mut self) {
        let p = self.p;
        for (i, v) in p.nodes.iter().enumerate() {
            let d = self.deadline(i);
            let (mut x, mut t, mut h, mut all) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            for cpu in &p.cpus {
                let room = p.domains[cpu.domain].opps.iter().map(|o| o.room_ppm).max().unwrap_or(0);
                let most = room as f64 / 1e6;
                let q = v.budget_us[cpu.domain] as f64 / d;
                let fits = if q <= most { 1.0 } else { 0.0 };
                let columns = [
                    self.column(0.0, fits, true),
                    self.column(0.0, fits, false),
                    self.column(0.0, most, false),
                ];
                all.push((columns[0], 1.0));
                self.at_most(vec![(columns[1], 1.0), (columns[0], -1.0)], 0.0);
                let least = PERIOD_MIN_US as f64 / d;
                self.at_most(vec![(columns[0], least), (columns[1], -1.0)], 0.0);
                x.push(columns[0]);
                t.push(columns[1]);
                h.push(columns[2]);
            }
            self.x.push(x);
            self.t.push(t);
            self.h.push(h);
            let z: Vec<usize> = v.versions.iter().map(|_| self.column(0.0, 1.0, true)).collect();
            for (a, version) in z.iter().zip(&v.versions) {
                all.push((*a, 1.0));
                self.power.push((*a, version.power_nw as f64 / NW_IN_UNIT));
            }
            self.z.push(z);
            self.equal(all, 1.0);
            let shortest = p.shortest_us(i).max(1) as f64 / d;
            let mut tau = shortest.min(1.0);
            loop {
                self.tangents(i, tau);
                if tau >= 1.0 {
                    break;
                }
                tau = (tau * RATIO).min(1.0);
            }
        }
    }

    /// Adds the tangents of what node `i` takes of each CPU, at a deadline of the part `tau` of its
    /// graph's.
    fn tangents(&mut self, i: usize, tau: f64) {
        for (k, cpu) in self.p.cpus.iter().enumerate() {
            let q = self.p.nodes[i].budget_us[cpu.domain] as f64 / self.deadline(i);
            let (x, t, h) = (self.x[i][k], self.t[i][k], self.h[i][k]);
            self.at_most(vec![(x, 2.0 * q / tau), (t, -q / (tau * tau)), (h, -1.0)], 0.0);
        }
    }

    fn processors(&mut self) {
        let p = self.p;
        for (j, domain) in p.domains.iter().enumerate() {
            let room = |m: usize| domain.opps[m].room_ppm as f64 / 1e6;
            let rooms: Vec<(usize, f64)> =
                self.o[j].iter().enumerate().map(|(m, o)| (*o, -room(m))).collect();
            let most = (0..domain.opps.len()).map(room).fold(0.0, f64::max);
            let mut before: Option<usize> = None;
            let mut works = Vec::new();
            for k in &domain.cpus {
                let here: Vec<(usize, f64)> = self.h.iter().map(|h| (h[*k], 1.0)).collect();
                self.at_most([&here[..], &rooms[..]].concat(), 0.0);
                let used = self.column(0.0, 1.0, true);
                self.power.push((used, domain.used_nw as f64 / NW_IN_UNIT));
                self.at_most([&here[..], &[(used, -most)]].concat(), 0.0);
                for i in 0..p.nodes.len() {
                    self.at_most(vec![(self.x[i][*k], 1.0), (used, -1.0)], 0.0);
                    let period = p.graphs[p.nodes[i].graph].period_us as f64;
                    works.push((self.x[i][*k], p.nodes[i].work_us[j] as f64 / period));
                }
                // CPUs of a domain are alike: they are numbered by the first of their nodes.
                if let Some(before) = before {
                    for i in 0..p.nodes.len() {
                        let mut terms = vec![(self.x[i][*k], 1.0)];
                        terms.extend((0..i).map(|u| (self.x[u][before], -1.0)));
                        self.at_most(terms, 0.0);
                    }
                }
                before = Some(*k);
            }
            self.w.push(Vec::new());
            for (m, o) in domain.opps.iter().enumerate() {
                let work = self.column(0.0, f64::INFINITY, false);
                self.w[j].push(work);
                works.push((work, -1.0));
                self.at_most(
                    vec![(work, 1.0), (self.o[j][m], -room(m) * domain.cpus.len() as f64)],
                    0.0,
                );
                let slower = 1024.0 * o.freq_max.0 as f64 / (domain.capacity * o.freq.0) as f64;
                self.power.push((work, slower * o.busy_uw as f64 * 1000.0 / NW_IN_UNIT));
            }
            self.equal(works, 0.0);
        }
    }

    fn devices(&mut self) {
        let p = self.p;
        for (g, device) in p.devices.iter().enumerate() {
            let used = self.column(0.0, 1.0, true);
            self.power.push((used, device.idle_nw as f64 / NW_IN_UNIT));
            for (i, a) in self.versions(g) {
                let z = self.z[i][a];
                self.at_most(vec![(z, 1.0), (used, -1.0)], 0.0);
            }
        }
    }

    /// Nodes and versions of a device.
    fn versions(&self, device: usize) -> Vec<(usize, usize)> {
        let of = |(i, v): (usize, &super::Vertex)| {
            v.versions.iter().position(|b| b.device == device).map(|a| (i, a))
        };
        self.p.nodes.iter().enumerate().filter_map(of).collect()
    }

    fn paths(&mut self) {
        let p = self.p;
        for k in (0..p.cpus.len()).filter(|k| !p.takes_nodes(*k)) {
            (0..p.nodes.len()).for_each(|i| self.at_most(vec![(self.x[i][k], 1.0)], 0.0));
        }
        let ends: Vec<usize> = p.nodes.iter().map(|_| self.column(0.0, 1.0, false)).collect();
        for (i, v) in p.nodes.iter().enumerate() {
            let d = self.deadline(i);
            let response = self.column(0.0, f64::INFINITY, false);
            for (a, own) in v.versions.iter().enumerate() {
                let others = self.versions(own.device);
                let runtime =
                    |(w, b): (usize, usize)| p.request_us(&p.nodes[w].versions[b]) as f64 / d;
                let all: f64 = others.iter().map(|other| runtime(*other)).sum();
                let mut terms: Vec<(usize, f64)> =
                    others.iter().map(|(w, b)| (self.z[*w][*b], runtime((*w, *b)))).collect();
                match terms.iter_mut().find(|(column, _)| *column == self.z[i][a]) {
                    Some((_, factor)) => *factor += all,
                    None => continue,
                }
                terms.push((response, -1.0));
                self.at_most(terms, all);
            }
            let mut own: Vec<(usize, f64)> = vec![(response, 1.0), (ends[i], -1.0)];
            own.extend(self.t[i].iter().map(|t| (*t, 1.0)));
            let wake = |k: usize| 1.0 + p.wake_us(Place::Cpu(k)) as f64;
            own.extend(self.x[i].iter().enumerate().map(|(k, x)| (*x, wake(k) / d)));
            match v.after.is_empty() {
                true => self.at_most(own, 0.0),
                false => {
                    for a in &v.after {
                        self.at_most([&own[..], &[(ends[*a], 1.0)]].concat(), 0.0);
                    }
                }
            }
        }
        for graph in &p.graphs {
            if let Some(last) = graph.nodes.last() {
                self.at_most(vec![(ends[*last], 1.0), (self.lambda, -1.0)], 0.0);
            }
        }
    }

    /// Sets the objective: the power in mW; or λ, at no more than `most_nw`.
    pub(super) fn aim(&mut self, objective: Objective, most_nw: u64) {
        for column in &mut self.program.columns {
            column.cost = 0.0;
        }
        match objective {
            Objective::Power => {
                for (column, cost) in self.power.clone() {
                    self.program.columns[column].cost += cost;
                }
            }
            Objective::Slack { .. } => {
                self.program.columns[self.lambda].cost = 1.0;
                self.no_more_than(most_nw);
            }
        }
    }

    /// Adds a bound of the power, in nW; of each node's power the integers have rounded up less
    /// than one.
    pub(super) fn no_more_than(&mut self, nw: u64) {
        let power = self.power.clone();
        self.at_most(power, nw as f64 / NW_IN_UNIT - self.program.constant + 1e-9);
    }

    /// Tangents at those deadlines, in µs.
    pub(super) fn cut(&mut self, deadlines: &[f64]) {
        for (i, us) in deadlines.iter().enumerate() {
            let tau = us / self.deadline(i);
            if tau > 0.0 && tau.is_finite() {
                self.tangents(i, tau);
            }
        }
    }

    /// Adds a constraint that excludes these places at these OPPs.
    pub(super) fn forbid(&mut self, config: &Config) {
        let mut terms: Vec<(usize, f64)> =
            config.opp.iter().zip(&self.o).map(|(m, o)| (o[*m], 1.0)).collect();
        for (i, place) in config.place.iter().enumerate() {
            terms.push((
                match *place {
                    Place::Cpu(k) => self.x[i][k],
                    Place::Version(a) => self.z[i][a],
                },
                1.0,
            ));
        }
        let upper = terms.len() as f64 - 1.0;
        self.at_most(terms, upper);
    }

    /// Reads the integers of an answer: the place of each node, the OPP of each domain.
    pub(super) fn config(&self, values: &[f64]) -> Config {
        let on = |column: usize| values.get(column).copied().unwrap_or(0.0);
        let largest = |columns: &mut dyn Iterator<Item = (usize, usize)>| {
            columns
                .max_by(|a, b| on(a.1).total_cmp(&on(b.1)).then(b.0.cmp(&a.0)))
                .map_or(0, |(at, _)| at)
        };
        let place = |i: usize| {
            let n = self.x[i].len();
            let all = self.x[i].iter().chain(&self.z[i]).copied().enumerate();
            let at = largest(&mut all.into_iter());
            if at < n { Place::Cpu(at) } else { Place::Version(at - n) }
        };
        let place: Vec<Place> = (0..self.p.nodes.len()).map(place).collect();
        let opp = self.o.iter().enumerate().map(|(j, o)| {
            let has =
                place.iter().any(|at| matches!(at, Place::Cpu(c) if self.p.cpus[*c].domain == j));
            if has { largest(&mut o.iter().copied().enumerate()) } else { 0 }
        });
        Config { opp: opp.collect(), place: place.clone() }
    }
}

#[cfg(test)]
impl Written<'_> {
    /// The values that a deployment has.
    pub(super) fn point(&self, config: &Config, deadlines: &[f64]) -> Vec<f64> {
        let p = self.p;
        let mut values = vec![f64::NAN; self.program.columns.len()];
        for (j, o) in self.o.iter().enumerate() {
            o.iter().enumerate().for_each(|(m, o)| values[*o] = f64::from(m == config.opp[j]));
        }
        for (i, v) in p.nodes.iter().enumerate() {
            let part = deadlines[i] / self.deadline(i);
            for (k, cpu) in p.cpus.iter().enumerate() {
                let on = f64::from(config.place[i] == Place::Cpu(k));
                values[self.x[i][k]] = on;
                values[self.t[i][k]] = on * part;
                let q = v.budget_us[cpu.domain] as f64 / self.deadline(i);
                values[self.h[i][k]] = on * q / part.max(1e-9);
            }
            for (a, z) in self.z[i].iter().enumerate() {
                values[*z] = f64::from(config.place[i] == Place::Version(a));
            }
        }
        values[self.lambda] = 1.0;
        for (j, domain) in p.domains.iter().enumerate() {
            let here =
                |i: &usize| matches!(config.place[*i], Place::Cpu(c) if domain.cpus.contains(&c));
            let work = |i: usize| {
                p.nodes[i].work_us[j] as f64 / p.graphs[p.nodes[i].graph].period_us as f64
            };
            let all: f64 = (0..p.nodes.len()).filter(here).map(work).sum();
            for (m, work) in self.w[j].iter().enumerate() {
                values[*work] = if m == config.opp[j] { all } else { 0.0 };
            }
        }
        // What is left follows from those: the least that the rows ask for, until no row asks for more.
        let open: Vec<usize> = (0..values.len()).filter(|i| values[*i].is_nan()).collect();
        open.iter().for_each(|i| values[*i] = self.program.columns[*i].lower);
        for _ in 0..open.len() {
            for row in &self.program.rows {
                for (column, by) in row.terms.iter().filter(|(i, by)| *by < 0.0 && open.contains(i))
                {
                    let sum: f64 = row.terms.iter().map(|(i, f)| f * values[*i]).sum();
                    if sum > row.upper {
                        values[*column] += (sum - row.upper) / -by;
                    }
                }
            }
        }
        values
    }
}
