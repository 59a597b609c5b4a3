//! The figures of one burst and of everything after it.
//!
//! Which burst is reported is known only at the end, and its task's figures count from its t0
//! to the run's end. So a task carries at most two of these: the present burst, and the best
//! one so far as long as the present one has not overtaken it. Both see the same pieces of
//! time; what belongs to the burst alone goes to the present one.

use crate::curve::Curve;
use crate::lost::{Debt, FullSpeed, Place};
use crate::machine::{Machine, ms};
use crate::result::{Burst, EndedBy, Level, Migration, Reach, RunningAt, Timeline, UtilResidency};
use crate::rise::Rise;
use crate::stretch::Stretch;
use risetime_kernel::units::{CpuId, KHz};
use std::collections::BTreeMap;

/// Most changes of CPU that are listed.
const MIGRATIONS: usize = 1 << 16;
/// Largest util_avg that has its own residency (PELT cannot exceed it).
const UTIL_MAX: u64 = 1024;

/// The levels that are watched, ascending.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels {
    pub(crate) util: Vec<u64>,
    pub(crate) capacity: Vec<u64>,
    /// (first CPU, OPPs) of each domain.
    pub(crate) freq: Vec<(CpuId, Vec<KHz>)>,
    /// For each domain, the first one with the same capacity and OPPs.
    pub(crate) kind: Vec<usize>,
}

/// Times at which ascending levels were reached; reaching one reaches all below.
#[derive(Clone, Debug, Default)]
struct Climb(Vec<u64>);

impl Climb {
    /// The lowest `level`s are reached at `at`, if they were not.
    fn reach(&mut self, level: usize, at: u64) {
        while self.0.len() < level {
            self.0.push(at);
        }
    }
    fn after_ms(&self, level: usize, t0: u64) -> Option<f64> {
        self.0.get(level).map(|at| ms(at - t0))
    }
}

/// Running time by util, in the order of first occurrence.
#[derive(Clone, Debug, Default)]
struct Residency {
    /// Position in `ns` plus 1, by util; 0: not seen.
    at: Vec<u16>,
    ns: Vec<(u64, u64)>,
}

impl Residency {
    fn add(&mut self, util: u64, dt: u64) {
        let util = util.min(UTIL_MAX);
        if self.at.len() <= util as usize {
            self.at.resize(util as usize + 1, 0);
        }
        let at = &mut self.at[util as usize];
        if *at == 0 {
            self.ns.push((util, 0));
            *at = self.ns.len() as u16;
        }
        self.ns[usize::from(*at) - 1].1 += dt;
    }
}

/// A piece of time in which nothing about the task changed.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) from: u64,
    pub(crate) dt: u64,
    /// Where it ran; `None`: it waited.
    pub(crate) place: Option<Place>,
    pub(crate) util: Option<u64>,
    pub(crate) s_max: u64,
    pub(crate) tick: u64,
}

/// How long the task ran on a CPU at a frequency: of all CPUs a burst knows few, and of 2000 tasks on
/// 256 CPUs these lists are what does not stay in the cache.
#[derive(Clone, Copy, Debug)]
struct Ran {
    cpu: u32,
    slot: u32,
    ns: u64,
}

/// When more of a domain's OPPs were reached than before.
#[derive(Clone, Copy, Debug)]
struct Reached {
    domain: u32,
    opps: u32,
    at: u64,
}

/// See the head of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    // The burst.
    pub(crate) t0: u64,
    pub(crate) running: u64,
    debt: Debt,
    full: FullSpeed,
    t1: Option<u64>,
    end: u64,
    ended_by: Option<EndedBy>,
    /// Where the burst lies in the task's program.
    pub(crate) stretch: Stretch,
    // From t0 on.
    run: Vec<Ran>,
    wait: u64,
    residency: Residency,
    util: Climb,
    capacity: Climb,
    opps: Vec<Reached>,
    rise: Rise,
    migrations: Vec<Migration>,
    pub(crate) migrations_left_out: u64,
    pub(crate) curves: Option<Box<Curves>>,
}

/// The curves of a [`Timeline`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Curves {
    pub(crate) util: Curve,
    speed: Curve,
    /// 0: not running; else the CPU plus 1.
    cpu: Curve,
    /// By domain.
    pub(crate) freq: Vec<Curve>,
}

impl Figures {
    /// Begins a burst at `t0`, keeping the memory of the one that was here.
    pub(crate) fn restart(&mut self, t0: u64) {
        self.t0 = t0;
        self.running = 0;
        self.debt = Debt::default();
        self.full = FullSpeed::default();
        (self.t1, self.end, self.ended_by) = (None, t0, None);
        self.stretch = Stretch::default();
        self.run.clear();
        self.opps.clear();
        self.wait = 0;
        for (util, _) in self.residency.ns.drain(..) {
            self.residency.at[util as usize] = 0;
        }
        self.util.0.clear();
        self.capacity.0.clear();
        self.rise.clear();
        self.migrations.clear();
        self.migrations_left_out = 0;
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
        if let Some(place) = &p.place {
            self.running += p.dt;
            if self.t1.is_none() {
                let piece = (p.from, p.dt);
                let full = self.full.run(piece, place.speed, p.s_max, p.tick, &self.debt);
                if let Some((t1, debt)) = full {
                    (self.t1, self.debt) = (Some(t1), debt);
                }
            }
        }
        if self.t1.is_none() {
            self.debt.add(p.dt, p.place.as_ref(), p.s_max);
        }
    }

    /// Adds a piece of time after t0.
    #[inline]
    pub(crate) fn add(&mut self, p: &Piece, levels: &Levels) {
        if self.rise.wants() {
            let speed = p.place.map_or(0, |place| place.speed);
            self.rise.feed((p.from, p.dt), speed, p.s_max, p.tick);
        }
        match &p.place {
            None => self.wait += p.dt,
            Some(place) => self.run_at(place, p, levels),
        }
        if let Some(c) = &mut self.curves {
            c.speed.step(p.from, p.place.map_or(0, |place| place.speed));
            c.cpu.step(p.from, p.place.map_or(0, |place| place.cpu as u64 + 1));
        }
    }

    fn run_at(&mut self, place: &Place, p: &Piece, levels: &Levels) {
        let (cpu, slot) = (place.cpu as u32, place.slot as u32);
        match self.run.iter_mut().rev().find(|ran| (ran.cpu, ran.slot) == (cpu, slot)) {
            Some(ran) => ran.ns += p.dt,
            None => self.run.push(Ran { cpu, slot, ns: p.dt }),
        }
        if let Some(util) = p.util {
            self.residency.add(util, p.dt);
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
        if let Some(c) = &mut self.curves {
            c.util.push(at.max(self.t0), util);
        }
    }

    pub(crate) fn migrated(&mut self, at: u64, from: CpuId, to: CpuId, why: &'static str) {
        if self.migrations.len() < MIGRATIONS {
            self.migrations.push(Migration { at_ms: ms(at - self.t0), from, to, why });
        } else {
            self.migrations_left_out += 1;
        }
    }

    /// The burst is over.
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
            debt_ms: self.debt.ms(),
            debt_capped_ms: self.debt.capped_ms(),
        }
    }

    /// Everything about the task that these figures tell; name and counts are the caller's.
    pub(crate) fn result(&self, levels: &Levels, machine: &Machine) -> crate::TaskResult {
        let mut running: Vec<RunningAt> = Vec::new();
        let mut energy_mj = Some(0.0);
        for (cpu, slots) in self.slots_by_cpu() {
            let d = machine.domain_of(cpu);
            energy_mj = energy_mj.zip(machine.energy_mj(d, &slots)).map(|(sum, mj)| sum + mj);
            let freqs = &machine.domains[d].slots;
            let used = slots.iter().zip(freqs).filter(|(ns, _)| **ns > 0);
            running.extend(used.map(|(ns, s)| RunningAt { cpu, freq: s.freq, ms: ms(*ns) }));
        }
        running.sort_by_key(|r| (r.cpu, r.freq));
        crate::TaskResult {
            task: Default::default(),
            comm: String::new(),
            policies: Vec::new(),
            bursts: 0,
            all_bursts: Vec::new(),
            burst: Some(self.burst()),
            reach: self.reach(levels),
            perf_10_90_ms: self.rise.ms(),
            wait_ms: ms(self.wait),
            energy_mj,
            running,
            util_residency: self
                .residency
                .ns
                .iter()
                .map(|&(util, ns)| UtilResidency { util, ms: ms(ns) })
                .collect(),
            migrations: self.migrations.clone(),
            reservation: None,
            stretch: self.stretch,
            looked_for: None,
            lost: self.debt.parts(),
        }
    }

    /// Its time by slot on each CPU that it ran on.
    fn slots_by_cpu(&self) -> BTreeMap<CpuId, Vec<u64>> {
        let mut cpus: BTreeMap<CpuId, Vec<u64>> = BTreeMap::new();
        for ran in self.run.iter().filter(|ran| ran.ns > 0) {
            let slots = cpus.entry(CpuId(ran.cpu)).or_default();
            slots.resize(slots.len().max(ran.slot as usize + 1), 0);
            slots[ran.slot as usize] += ran.ns;
        }
        cpus
    }

    /// When the OPP of that number in its domain was reached.
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
        let cpus = self.slots_by_cpu();
        let of_cpu = |cpu: &CpuId| {
            let curve = curves.freq.get(machine.domain_of(*cpu))?;
            Some((*cpu, curve.map(KHz)))
        };
        Some(Timeline {
            freq: cpus.keys().filter_map(of_cpu).collect(),
            util: curves.util.map(|u| u),
            speed: curves.speed.map(|s| s as f64 / crate::lost::UNIT as f64),
            cpu: curves.cpu.map(|c| c.checked_sub(1).map(|c| CpuId(c as u32))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
