//! The figures of one burst, and sums over a task's whole run.
//!
//! Each piece of time is added to the present burst, once. When the burst is over its sums go into the
//! task's, and it stays as it is if it has more running time than any before: which burst is reported is
//! known only at the end.

use crate::curve::Curve;
use crate::lost::{Debt, FullSpeed, Most, ONE, Place, State};
use crate::machine::{Machine, energy, femto_to_milli, ms};
use crate::result::{
    Burst, EndedBy, Level, Migration, Moves, Reach, RunningAt, Spent, Timeline, UtilResidency,
};
use crate::rise::Rise;
use crate::stretch::Stretch;
use risetime_kernel::units::{CpuId, KHz};
use std::collections::BTreeSet;

/// Most changes of CPU of a burst that are listed.
const MIGRATIONS: usize = 64;
/// Largest util_avg that has its own residency (PELT cannot exceed it).
const UTIL_MAX: u64 = 1024;

/// The levels that are watched, ascending.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels {
    pub(crate) util: Vec<u64>,
    pub(crate) capacity: Vec<u64>,
    /// (first CPU, OPPs) of each domain.
    pub(crate) freq: Vec<(CpuId, Vec<KHz>)>,
    /// First domain with the same capacity and OPPs, for each domain.
    pub(crate) kind: Vec<usize>,
}

/// Times at which ascending levels were reached; reaching one reaches all below.
#[derive(Clone, Debug, Default)]
struct Climb(Vec<u64>);

impl Climb {
    /// Notes that the lowest `level`s are reached at `at`; those reached before keep their time.
    fn reach(&mut self, level: usize, at: u64) {
        while self.0.len() < level {
            self.0.push(at);
        }
    }
    fn after_ms(&self, level: usize, t0: u64) -> Option<f64> {
        self.0.get(level).map(|at| ms(at - t0))
    }
}

/// Times by a small number, in the order of first occurrence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    ns: Vec<(u32, u64)>,
    /// Position in `ns` plus 1, by number; 0: not seen. Empty, or all 0, while there are few.
    at: Vec<u16>,
    /// True if there are more than a few: they are found by `at`.
    many: bool,
}

/// Number of times that are looked through one by one: most bursts have no more, and a table for
/// each task does not fit into a cache.
const FEW: usize = 8;

impl Times {
    #[inline]
    fn add(&mut self, number: u32, dt: u64) {
        if !self.many {
            if let Some((_, ns)) = self.ns.iter_mut().find(|(known, _)| *known == number) {
                *ns += dt;
                return;
            }
            if self.ns.len() < FEW {
                if self.ns.capacity() == 0 {
                    self.ns.reserve(FEW);
                }
                self.ns.push((number, dt));
                return;
            }
            self.many = true;
            (0..self.ns.len())
                .for_each(|place| *self.place_of(self.ns[place].0) = place as u16 + 1);
        }
        let known = usize::from(*self.place_of(number));
        match known.checked_sub(1) {
            Some(place) => self.ns[place].1 += dt,
            None => {
                self.ns.push((number, dt));
                *self.place_of(number) = self.ns.len() as u16;
            }
        }
    }

    fn place_of(&mut self, number: u32) -> &mut u16 {
        if self.at.len() <= number as usize {
            self.at.resize((number as usize + 1).next_multiple_of(128), 0);
        }
        &mut self.at[number as usize]
    }

    /// Forgets everything, keeping its memory.
    fn clear(&mut self) {
        if std::mem::take(&mut self.many) {
            self.ns.iter().for_each(|(number, _)| self.at[*number as usize] = 0);
        }
        self.ns.clear();
    }

    pub(crate) fn absorb(&mut self, other: &Times) {
        other.ns.iter().for_each(|(number, ns)| self.add(*number, *ns));
    }
}

/// Sums of what a burst, or a whole run, took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    /// Running, by the [key](Place::key) of where.
    run: Times,
    /// Part of that time in which the task did not get on.
    stolen: Times,
    wait: u64,
    /// Changes of CPU by capacity (its place among all) and reason.
    moves: Vec<((usize, usize, &'static str), u64)>,
}

impl Sums {
    fn clear(&mut self) {
        self.run.clear();
        self.stolen.clear();
        self.wait = 0;
        self.moves.clear();
    }

    pub(crate) fn absorb(&mut self, other: &Sums) {
        self.run.absorb(&other.run);
        self.stolen.absorb(&other.stolen);
        self.wait += other.wait;
        other.moves.iter().for_each(|(what, n)| self.moved(*what, *n));
    }

    fn moved(&mut self, what: (usize, usize, &'static str), n: u64) {
        match self.moves.iter_mut().find(|(known, _)| *known == what) {
            Some((_, times)) => *times += n,
            None => self.moves.push((what, n)),
        }
    }

    /// Counts `ns` run under `key` without getting on.
    pub(crate) fn stolen(&mut self, key: u32, ns: u64) {
        self.stolen.add(key, ns);
    }

    pub(crate) fn running(&self) -> u64 {
        self.run.ns.iter().map(|(_, ns)| ns).sum()
    }

    /// The work done, in ns of full speed on the scale of [`ONE`].
    pub(crate) fn work(&self, machine: &Machine) -> u128 {
        let work = |(key, ns): &(u32, u64)| u128::from(*ns) * u128::from(machine.at(*key).2);
        let all: u128 = self.run.ns.iter().map(work).sum();
        all.saturating_sub(self.stolen.ns.iter().map(work).sum())
    }

    /// The energy of the CPUs while the task ran, in 10⁻¹⁵ J; `None`: it ran where the power is
    /// unknown.
    pub(crate) fn energy(&self, machine: &Machine) -> Option<u128> {
        let piece = |(key, ns): &(u32, u64)| energy(*ns, machine.at(*key).3);
        self.run.ns.iter().map(piece).sum()
    }

    /// The result of what these sums are of; `longer`: time by which that took longer than at full speed, by state.
    pub(crate) fn result(&self, longer: &Debt, machine: &Machine) -> Spent {
        let at = |(key, ns): &(u32, u64)| {
            let (cpu, freq, ..) = machine.at(*key);
            RunningAt { cpu, freq, ms: ms(*ns) }
        };
        let mut running: Vec<RunningAt> = self.run.ns.iter().map(at).collect();
        running.sort_by_key(|r| (r.cpu, r.freq));
        // Work of all kinds, beside whomever.
        running.dedup_by(|more, all| {
            let same = (more.cpu, more.freq) == (all.cpu, all.freq);
            all.ms += if same { more.ms } else { 0.0 };
            same
        });
        let mut by: Vec<Moves> = self
            .moves
            .iter()
            .map(|&((from, to, why), n)| {
                let capacity = |kind: usize| machine.capacities.get(kind).copied().unwrap_or(0);
                Moves { from: capacity(from), to: capacity(to), why, n }
            })
            .collect();
        by.sort_by_key(|m| (std::cmp::Reverse(m.n), m.from, m.to, m.why));
        Spent {
            running_ms: ms(self.running()),
            wait_ms: ms(self.wait),
            work_ms: self.work(machine) as f64 / ONE as f64 / 1e6,
            longer_ms: longer.ms(),
            longer: longer.parts(),
            energy_mj: self.energy(machine).map(femto_to_milli),
            running,
            migrations: by,
        }
    }
}

/// A piece of time in which nothing about the task changed.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) from: u64,
    pub(crate) dt: u64,
    /// Place where the task ran; `None`: it waited.
    pub(crate) place: Option<Place>,
    pub(crate) util: Option<u64>,
    pub(crate) most: Most,
    /// State in which waiting is lost.
    pub(crate) waits: State,
    /// Whether the task has a reservation (SCHED_DEADLINE).
    pub(crate) reserved: bool,
    pub(crate) tick: u64,
}

/// Time at which more of a domain's OPPs were reached than before.
#[derive(Clone, Copy, Debug)]
struct Reached {
    domain: u32,
    opps: u32,
    at: u64,
}

/// See the head of the file. In memory in this order: first what each piece of time changes; of a server's tasks not all fits
/// into a cache.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Figures {
    pub(crate) t0: u64,
    pub(crate) running: u64,
    /// Running and waiting.
    awake: u64,
    t1: Option<u64>,
    full: FullSpeed,
    /// Debt until t1.
    debt: Debt,
    /// Debt at the start of the stretch at full speed, if there is one.
    at_start: Debt,
    rise: Rise,
    pub(crate) sums: Sums,
    /// Running time by util.
    residency: Times,
    util: Climb,
    capacity: Climb,
    opps: Vec<Reached>,
    end: u64,
    pub(crate) curves: Option<Box<Curves>>,
    /// Stretch of the task's program in which the burst lies.
    pub(crate) stretch: Stretch,
    ended_by: Option<EndedBy>,
    migrations: Vec<Migration>,
    /// Debt from t1 on; nobody's before there is one.
    later: Debt,
}

/// The curves of a [`Timeline`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Curves {
    pub(crate) util: Curve,
    speed: Curve,
    /// 0: not running; else the CPU plus 1.
    cpu: Curve,
    /// Frequencies by domain.
    pub(crate) freq: Vec<Curve>,
}

impl Figures {
    /// Begins a burst at `t0`, keeping the memory of the one that was here.
    pub(crate) fn restart(&mut self, t0: u64) {
        self.t0 = t0;
        (self.running, self.awake) = (0, 0);
        self.debt.clear();
        self.full.clear();
        (self.t1, self.end, self.ended_by) = (None, t0, None);
        self.stretch = Stretch::default();
        self.sums.clear();
        self.opps.clear();
        self.residency.clear();
        self.util.0.clear();
        self.capacity.0.clear();
        self.rise.clear();
        self.migrations.clear();
        if let Some(c) = &mut self.curves {
            c.util.clear();
            c.speed.clear();
            c.cpu.clear();
            c.freq.iter_mut().for_each(Curve::clear);
        }
    }

    /// Adds a piece of the burst itself, to be given to [`add`](Self::add) as well.
    #[inline]
    pub(crate) fn add_to_burst(&mut self, p: &Piece) {
        self.awake += p.dt;
        if let Some(place) = &p.place {
            self.running += p.dt;
            if self.t1.is_none() {
                let piece = (p.from, p.dt);
                let (speeds, at_start) = ((place.speed, p.most.speed), &mut self.at_start);
                if let Some(t1) = self.full.run(piece, speeds, p.tick, &self.debt, at_start) {
                    self.later = self.debt.since(&self.at_start);
                    (self.t1, self.debt) = (Some(t1), self.at_start);
                }
            }
        }
        let debt = if self.t1.is_none() { &mut self.debt } else { &mut self.later };
        debt.add(p.dt, p.place.as_ref(), p.most, (p.waits, p.reserved));
    }

    /// Counts `ns` of what was added, run at `speed` under `key`, as time in which it did not get on.
    pub(crate) fn stolen(&mut self, key: u32, ns: u64, speed: u64) {
        self.sums.stolen(key, ns);
        let debt = if self.t1.is_none() { &mut self.debt } else { &mut self.later };
        debt.add_stolen(ns, speed);
    }

    /// The time by which all of it took longer than at full speed.
    fn longer(&self) -> Debt {
        let mut all = Debt::default();
        self.add_longer(&mut all);
        all
    }

    /// Adds the time by which all of it took longer than at full speed to `all`.
    pub(crate) fn add_longer(&self, all: &mut Debt) {
        all.absorb(&self.debt);
        if self.t1.is_some() {
            all.absorb(&self.later);
        }
    }

    /// Adds a piece of time to what [`add_to_burst`](Self::add_to_burst) leaves out.
    #[inline]
    pub(crate) fn add(&mut self, p: &Piece, levels: &Levels) {
        if self.rise.wants() {
            let speed = p.place.map_or(0, |place| place.speed);
            self.rise.feed((p.from, p.dt), speed, p.most.speed, p.tick);
        }
        match &p.place {
            None => self.sums.wait += p.dt,
            Some(place) => self.run_at(place, p, levels),
        }
    }

    fn run_at(&mut self, place: &Place, p: &Piece, levels: &Levels) {
        self.sums.run.add(place.key, p.dt);
        if let Some(util) = p.util {
            self.residency.add(util.min(UTIL_MAX) as u32, p.dt);
        }
        let (domain, opps) = (place.domain as u32, place.opps as u32);
        let before = self.opps.iter().rev().find(|r| r.domain == domain).map_or(0, |r| r.opps);
        if opps > before {
            self.opps.push(Reached { domain, opps, at: p.from });
        }
        if levels.capacity.get(self.capacity.0.len()).is_some_and(|&c| c <= place.capacity) {
            let reached = levels.capacity.partition_point(|&c| c <= place.capacity);
            self.capacity.reach(reached, p.from);
        }
    }

    /// The curves of a piece of time; they go on after the burst.
    pub(crate) fn draw(&mut self, p: &Piece) {
        if let Some(c) = &mut self.curves {
            c.speed.step(p.from, p.place.map_or(0, |place| place.speed));
            c.cpu.step(p.from, p.place.map_or(0, |place| place.cpu as u64 + 1));
        }
    }

    /// The task fell asleep at `at`.
    pub(crate) fn asleep(&mut self, at: u64) {
        if let Some(c) = &mut self.curves {
            c.speed.step(at.max(self.t0), 0);
            c.cpu.step(at.max(self.t0), 0);
        }
    }

    /// util_avg has been `util` since `at` (or longer: then since t0).
    #[inline]
    pub(crate) fn had_util(&mut self, at: u64, util: u64, levels: &Levels) {
        while levels.util.get(self.util.0.len()).is_some_and(|&level| level <= util) {
            self.util.0.push(at.max(self.t0));
        }
    }

    /// Forgets what util came to after the burst's end.
    pub(crate) fn cut(&mut self) {
        let within = self.util.0.partition_point(|at| *at <= self.end);
        self.util.0.truncate(within);
    }

    /// The curve of what [`had_util`](Self::had_util) is told.
    pub(crate) fn draw_util(&mut self, at: u64, util: u64) {
        if let Some(c) = &mut self.curves {
            c.util.push(at.max(self.t0), util);
        }
    }

    /// Counts a migration `from` one CPU `to` another, whose kinds are given, and lists it if there
    /// is room.
    pub(crate) fn migrated(
        &mut self,
        at: u64,
        (from, to): (CpuId, CpuId),
        kinds: (usize, usize),
        why: &'static str,
    ) {
        self.sums.moved((kinds.0, kinds.1, why), 1);
        if self.migrations.len() < MIGRATIONS {
            self.migrations.push(Migration { at_ms: ms(at - self.t0), from, to, why });
        }
    }

    /// Closes the burst at `end`, in ns; a burst that has reached full speed ended by that, else by
    /// `how`.
    pub(crate) fn close(&mut self, end: u64, how: EndedBy) {
        self.end = end;
        self.ended_by = Some(if self.t1.is_some() { EndedBy::FullSpeed } else { how });
    }

    pub(crate) fn burst(&self) -> Burst {
        Burst {
            t0_ms: ms(self.t0),
            t1_ms: ms(self.t1.unwrap_or(self.end)),
            end_ms: ms(self.end),
            ended_by: self.ended_by.unwrap_or(EndedBy::RunEnd),
            running_ms: ms(self.running),
            took_ms: ms(self.awake),
            longer_ms: self.longer().ms(),
            debt_ms: self.debt.ms(),
            debt_capped_ms: self.debt.capped_ms(),
            debt_affinity_ms: self.debt.of(State::Affinity),
        }
    }

    /// The result of the burst that these figures tell; fields of the task are left to the caller.
    pub(crate) fn result(&self, levels: &Levels, machine: &Machine) -> crate::TaskResult {
        crate::TaskResult {
            task: Default::default(),
            comm: String::new(),
            endless: false,
            policies: Vec::new(),
            bursts: 0,
            burst: Some(self.burst()),
            reach: self.reach(levels),
            perf_10_90_ms: self.rise.ms(),
            spent: self.sums.result(&self.longer(), machine),
            util_residency: self
                .residency
                .ns
                .iter()
                .map(|&(util, ns)| UtilResidency { util: u64::from(util), ms: ms(ns) })
                .collect(),
            migrations: self.migrations.clone(),
            whole: Spent::default(),
            reservation: None,
            stretch: self.stretch,
            looked_for: None,
            lost: self.debt.parts(),
        }
    }

    /// The time at which the OPP of that number in its domain was reached.
    fn opp_reached(&self, domain: usize, opp: usize) -> Option<u64> {
        let reached = |r: &&Reached| r.domain as usize == domain && r.opps as usize > opp;
        self.opps.iter().find(reached).map(|r| r.at)
    }

    /// Whether OPPs of each domain are told of: where it ran, and the first of a kind that it never
    /// ran in. A server has hundreds of domains, all alike.
    fn told(&self, levels: &Levels) -> Vec<bool> {
        let mut told = vec![false; levels.kind.len()];
        let mut known = told.clone();
        for reached in &self.opps {
            let domain = reached.domain as usize;
            told[domain] = true;
            known[levels.kind[domain]] = true;
        }
        for (domain, kind) in levels.kind.iter().enumerate() {
            told[domain] |= !std::mem::replace(&mut known[*kind], true);
        }
        told
    }

    fn reach(&self, levels: &Levels) -> Vec<Reach> {
        let told = self.told(levels);
        let util = levels.util.iter().enumerate().map(|(i, &level)| Reach {
            what: Level::Util(level),
            after_ms: self.util.after_ms(i, self.t0),
        });
        let domains = levels.freq.iter().enumerate().filter(|(d, _)| told[*d]);
        let freq = domains.flat_map(|(d, (cpu, opps))| {
            opps.iter().enumerate().map(move |(i, &freq)| Reach {
                what: Level::Freq { cpu: *cpu, freq },
                after_ms: self.opp_reached(d, i).map(|at| ms(at - self.t0)),
            })
        });
        let capacity = levels.capacity.iter().enumerate().map(|(i, &level)| Reach {
            what: Level::Capacity(level),
            after_ms: self.capacity.after_ms(i, self.t0),
        });
        util.chain(freq).chain(capacity).collect()
    }

    /// The curves until `end`; frequencies of the CPUs it ran on.
    pub(crate) fn timeline(&mut self, machine: &Machine, end: u64) -> Option<Timeline> {
        let mut curves = self.curves.take()?;
        let Curves { util, speed, cpu, freq } = &mut *curves;
        [util, speed, cpu].into_iter().chain(freq).for_each(|c| c.end(end));
        let cpus: BTreeSet<u64> = curves.cpu.map(|c| c).iter().map(|c| c.1).collect();
        let of_cpu = |cpu: u64| {
            let cpu = CpuId(cpu.checked_sub(1)? as u32);
            let curve = curves.freq.get(machine.domain_of(cpu))?;
            Some((cpu, curve.map(KHz)))
        };
        Some(Timeline {
            freq: cpus.into_iter().filter_map(of_cpu).collect(),
            util: curves.util.map(|u| u),
            speed: curves.speed.map(|s| s as f64 / crate::lost::UNIT as f64),
            cpu: curves.cpu.map(|c| c.checked_sub(1).map(|c| CpuId(c as u32))),
            latency: Vec::new(),
            jobs: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_kept_in_their_order_whether_few_or_many() {
        let mut times = Times::default();
        for round in 0..3 {
            for numbers in [3, FEW as u32, FEW as u32 + 1, 300] {
                let number = |i: u32| (i * 7 + round) % numbers;
                let (mut wanted, mut of) = (Vec::new(), BTreeSet::new());
                (0..2 * numbers).map(number).filter(|n| of.insert(*n)).for_each(|n| {
                    let ns = (0..2 * numbers).filter(|i| number(*i) == n).map(u64::from).sum();
                    wanted.push((n, ns));
                });
                times.clear();
                (0..2 * numbers).for_each(|i| times.add(number(i), u64::from(i)));
                assert_eq!(times.ns, wanted, "{numbers}");
            }
        }
    }

    #[test]
    fn of_domains_alike_only_those_it_ran_in_are_told_of() {
        // Three of a kind, two of another, one of its own.
        let levels = Levels { kind: vec![0, 0, 0, 3, 3, 5], ..Levels::default() };
        let ran = |domains: &[u32]| {
            let opps = domains.iter().map(|&domain| Reached { domain, opps: 1, at: 0 }).collect();
            let told = Figures { opps, ..Figures::default() }.told(&levels);
            told.iter().enumerate().filter(|(_, t)| **t).map(|(d, _)| d).collect::<Vec<_>>()
        };
        assert_eq!(ran(&[]), [0, 3, 5]);
        assert_eq!(ran(&[2]), [2, 3, 5]);
        assert_eq!(ran(&[4, 1, 0]), [0, 1, 4, 5]);
        assert_eq!(ran(&[5, 3, 2]), [2, 3, 5]);
    }
}
