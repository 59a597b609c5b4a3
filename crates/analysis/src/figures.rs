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
use risetime_kernel::units::{CpuId, KHz};

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
    // From t0 on.
    /// By CPU and slot, ns.
    run: Vec<Vec<u64>>,
    /// CPUs it ran on, with their domains.
    used: Vec<(usize, usize)>,
    wait: u64,
    residency: Residency,
    util: Climb,
    capacity: Climb,
    freq: Vec<Climb>,
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
        // Only what the last burst has used: of many CPUs, few.
        for (cpu, domain) in self.used.drain(..) {
            self.run[cpu].clear();
            self.freq[domain].0.clear();
        }
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
        if self.run.len() <= place.cpu {
            self.run.resize(place.cpu + 1, Vec::new());
        }
        let run = &mut self.run[place.cpu];
        if run.is_empty() {
            self.used.push((place.cpu, place.domain));
        }
        if run.len() <= place.slot {
            run.resize(place.slot + 1, 0);
        }
        run[place.slot] += p.dt;
        if let Some(util) = p.util {
            self.residency.add(util, p.dt);
        }
        if self.freq.len() <= place.domain {
            self.freq.resize(place.domain + 1, Climb::default());
        }
        self.freq[place.domain].reach(place.opps, p.from);
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
        let mut energy_mj = 0.0;
        for (i, slots) in self.run.iter().enumerate() {
            let cpu = CpuId(i as u32);
            let d = machine.domain_of(cpu);
            energy_mj += machine.energy_mj(d, slots);
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
            lost: self.debt.parts(),
        }
    }

    fn reach(&self, levels: &Levels) -> Vec<Reach> {
        let util = levels.util.iter().enumerate().map(|(i, &level)| Reach {
            what: Level::Util(level),
            after_ms: self.util.after_ms(i, self.t0),
        });
        let freq = levels.freq.iter().enumerate().flat_map(|(d, (cpu, opps))| {
            opps.iter().enumerate().map(move |(i, &freq)| Reach {
                what: Level::Freq { cpu: *cpu, freq },
                after_ms: self.freq.get(d).and_then(|c| c.after_ms(i, self.t0)),
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
        let used = self.run.iter().enumerate().filter(|(_, slots)| slots.iter().any(|&ns| ns > 0));
        let of_cpu = |(i, _): (usize, &Vec<u64>)| {
            let cpu = CpuId(i as u32);
            let curve = curves.freq.get(machine.domain_of(cpu))?;
            Some((cpu, curve.map(KHz)))
        };
        Some(Timeline {
            freq: used.filter_map(of_cpu).collect(),
            util: curves.util.map(|u| u),
            speed: curves.speed.map(|s| s as f64 / crate::lost::UNIT as f64),
            cpu: curves.cpu.map(|c| c.checked_sub(1).map(|c| CpuId(c as u32))),
        })
    }
}
