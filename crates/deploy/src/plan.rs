//! Plans: from what tasks need to where they go, and what they have to ask the kernel for.
//!
//! ```text
//! runtime and period, or a share   to be guaranteed   each on one CPU, where the tests admit all that are there ([`machine`])
//!   edf          SCHED_DEADLINE, in a root domain of that CPU alone (an exclusive cpuset)
//!   rm, dm       SCHED_FIFO from 98 on downwards, the shortest period (deadline) first, and a CPU mask
//! period alone   not guaranteed: SCHED_FIFO below all of those, the shortest period first
//! priority alone not guaranteed: SCHED_FIFO with that priority; where that is not below the FIFO tasks of a CPU that have a guarantee it
//!                has to go to another one
//! ```
//!
//! What is not guaranteed may run for ever: it goes where most is left and where the others are in time all the same; where there is no such
//! CPU, [`Plan::trusting`] names the one. The kernel admits deadline tasks by its own rule as well: a CPU is full for EDF where either says so. Where a test admits too little, tasks are placed
//! by what the kernel admits and by their work alone, and [`Used::proof`] says what is not proven.
//!
//! After G. Serra, G. Ara, P. Fara and T. Cucinotta, "ReTiF: a declarative real-time scheduling framework for POSIX systems",
//! 2021: tasks declare a priority, a period, or a runtime as well.
//!
//! [`machine`]: crate::machine

use crate::admit::Scheduler;
use crate::machine::{self, Budget, Machine, Proof};
use crate::{Fit, Share};
use risetime_kernel::units::{CpuId, KHz, Span};
use risetime_model::Platform;
use risetime_model::needs::{Need, Needs, What};
use risetime_model::platform::Domain;
use std::cmp::Reverse;

/// Rules of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Scheduler of each CPU.
    pub scheduler: Scheduler,
    /// Choice among the CPUs that fit.
    pub fit: Fit,
    /// Margin that is added to what tasks declare, in %.
    pub margin_percent: u64,
}

/// Attributes that a task asks the kernel for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attr {
    /// SCHED_DEADLINE: runtime, deadline, period.
    Deadline(Span, Span, Span),
    /// SCHED_FIFO.
    Fifo(u8),
}

/// A task that has a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Name of the task.
    pub name: String,
    /// The CPU that it is bound to.
    pub cpu: CpuId,
    /// Scheduling attributes.
    pub attr: Attr,
    /// True if the task says how long it takes: its deadlines are to be met if it and all others
    /// keep to what they declare.
    pub wanted: bool,
}

/// A CPU with tasks that are to be guaranteed.
#[derive(Clone, Debug)]
pub struct Used {
    /// The CPU.
    pub cpu: CpuId,
    /// Utilisation by its tasks at the highest frequency, in %.
    pub percent: f64,
    /// Bandwidth that the tasks reserve, in % of a CPU of capacity 1024, and what the kernel
    /// admits; `None`: they do not reserve.
    pub reserved: Option<(f64, f64)>,
    /// Reservations there.
    pub budgets: Vec<Budget>,
    /// Proof that its tasks are in time, overheads counted; or why there is none.
    pub proof: Result<Proof, String>,
}

/// All of them have a place.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Tasks in the order of the file.
    pub tasks: Vec<Planned>,
    /// CPUs that are used.
    pub used: Vec<Used>,
    /// CPUs that become root domains of their own.
    pub partitions: Vec<CpuId>,
    /// CPUs where ordinary tasks, and all that the plan does not name, run.
    pub ordinary: Vec<CpuId>,
    /// CPUs whose tasks are in time only if those of unknown length there leave ordinary tasks what the kernel would take for them.
    pub trusting: Vec<CpuId>,
    /// Policies, by their first CPU, whose frequency has to stay at that or above (`scaling_min_freq`).
    pub floors: Vec<(CpuId, KHz)>,
}

impl Plan {
    /// Whether the tests admit every CPU of it.
    pub fn proven(&self) -> bool {
        self.used.iter().all(|u| u.proof.is_ok())
    }
}

/// A task without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// The task's place in the file.
    pub at: String,
    /// The task's name.
    pub name: String,
    /// Reason for which it has no place.
    pub reason: String,
}

/// The highest priority of guaranteed FIFO tasks: 99 is the stopper's and the watchdog's neighbourhood.
const HIGHEST: u8 = 98;
/// The highest priority of tasks of which a period alone is known: guaranteed ones have those
/// above.
const HIGHEST_OF_PERIODS: u8 = 48;

/// Plans where all of `needs` go on `platform`, whose costs are `machine`. Where the tasks are in
/// time only with a floor under their domains' frequencies, the plan has the lowest floors with
/// which that is proven.
///
/// Errors: those that have no place, each with its reason; the others then have none either.
pub fn plan(
    needs: &Needs,
    platform: &Platform,
    machine: &Machine,
    rules: Rules,
) -> Result<Plan, Vec<NoRoom>> {
    let own = placed(needs, platform, machine, rules)?;
    if own.proven() {
        return Ok(own);
    }
    // The first CPU of each domain, which knows its frequencies.
    let domains: Vec<&machine::Cpu> = (0..platform.domains.len())
        .filter_map(|domain| machine.cpus.iter().find(|c| c.domain == domain))
        .collect();
    let at = |floors: &[usize]| {
        let each = domains.iter().zip(floors);
        let m = each.fold(machine.clone(), |m, (c, at)| m.at_least(c.domain, c.speeds[*at].0));
        placed(needs, platform, &m, rules).ok().filter(Plan::proven)
    };
    let mut floors: Vec<usize> = domains.iter().map(|c| c.speeds.len() - 1).collect();
    let Some(mut best) = at(&floors) else { return Ok(own) };
    for domain in 0..domains.len() {
        let mut low = 0;
        while low < floors[domain] {
            let mut lower = floors.clone();
            lower[domain] = (low + floors[domain]) / 2;
            match at(&lower) {
                Some(found) => (best, floors) = (found, lower),
                None => low = lower[domain] + 1,
            }
        }
    }
    let needed = domains.iter().zip(&floors).filter(|(_, at)| **at > 0);
    let floors = needed.map(|(c, at)| (c.id, c.speeds[*at].0)).collect();
    Ok(Plan { floors, ..best })
}

/// Places all tasks on a machine as it is, without floors: where that is proven, else where the
/// kernel admits them.
fn placed(
    needs: &Needs,
    platform: &Platform,
    machine: &Machine,
    rules: Rules,
) -> Result<Plan, Vec<NoRoom>> {
    let mut p = Planner::new(needs, platform, machine, rules);
    if !p.place(&Planner::proven) {
        p.clear();
        p.place(&Planner::possible);
    }
    p.others();
    p.finish()
}

/// A plan under way.
struct Planner<'a> {
    needs: &'a Needs,
    m: &'a Machine,
    rules: Rules,
    /// Needs of each task in each domain; `None`: it does not say how long it takes.
    on: Vec<Vec<Option<machine::Need>>>,
    cpu_of: Vec<Option<usize>>,
    /// Tasks with a guarantee, by CPU.
    members: Vec<Vec<usize>>,
    /// Real-time tasks of unknown length.
    crowd: Vec<Vec<usize>>,
    /// True for CPUs whose guaranteed tasks would be late if those of unknown length ran without
    /// end.
    trusting: Vec<bool>,
    /// Capacity left, of a CPU of capacity 1024, at the highest frequency.
    left: Vec<f64>,
    missing: Vec<NoRoom>,
}

/// Asks whether tasks fit on a CPU, crowded or not.
type Fits<'f, P> = &'f dyn Fn(&P, &[usize], usize, bool) -> Result<Proof, String>;

impl<'a> Planner<'a> {
    fn new(needs: &'a Needs, platform: &Platform, m: &'a Machine, rules: Rules) -> Planner<'a> {
        let need = |t: &Need, d: &Domain| {
            let own = load(t, d)?;
            let with_margin = |ns: u128| {
                let more = ns * u128::from(100 + rules.margin_percent);
                u64::try_from(more.div_ceil(100)).unwrap_or(u64::MAX)
            };
            let (work, clock) = (with_margin(own.work.into()), with_margin(own.clock.into()));
            Some(machine::Need { work, clock, ..own })
        };
        let on = needs.tasks.iter().map(|t| platform.domains.iter().map(|d| need(t, d)).collect());
        let cpus = m.cpus.len();
        let mut planner = Planner {
            needs,
            m,
            rules,
            on: on.collect(),
            cpu_of: Vec::new(),
            members: vec![Vec::new(); cpus],
            crowd: vec![Vec::new(); cpus],
            trusting: vec![false; cpus],
            left: Vec::new(),
            missing: Vec::new(),
        };
        planner.clear();
        planner
    }

    fn clear(&mut self) {
        self.cpu_of = vec![None; self.needs.tasks.len()];
        self.members.iter_mut().for_each(Vec::clear);
        let speed = |cpu: &machine::Cpu| cpu.fastest().0 as f64 / 1024.0;
        self.left = self.m.cpus.iter().map(speed).collect();
        self.missing.clear();
    }

    fn need(&self, task: usize, cpu: usize) -> Option<machine::Need> {
        self.on[task][self.m.cpus[cpu].domain]
    }

    fn share(&self, task: usize, cpu: usize) -> f64 {
        let fastest = self.m.cpus[cpu].fastest();
        self.need(task, cpu).map_or(0.0, |n| Share::of(n.at(fastest), n.period).as_f64())
    }

    /// Whether the file, and who asked for the plan, let the task onto the CPU.
    fn allowed(&self, task: usize, cpu: usize) -> bool {
        let own = &self.m.cpus[cpu];
        own.usable && self.needs.tasks[task].cpus.as_ref().is_none_or(|cpus| cpus.contains(&own.id))
    }

    fn edf(&self) -> bool {
        matches!(self.rules.scheduler, Scheduler::Edf | Scheduler::GlobalEdf)
    }

    /// The lower, the earlier a task goes under fixed priorities.
    fn key(&self, need: &machine::Need) -> u64 {
        if self.rules.scheduler == Scheduler::Rm { need.period } else { need.deadline }
    }

    /// Priorities for tasks with a guarantee on one CPU.
    fn levels(&self) -> usize {
        let periods = self.needs.tasks.iter().any(|t| matches!(t.what, What::Period(_)));
        usize::from(HIGHEST - if periods { HIGHEST_OF_PERIODS } else { 1 })
    }

    fn of_cpu(&self, tasks: &[usize], cpu: usize) -> (Vec<machine::Need>, Vec<u64>) {
        let needs: Vec<machine::Need> = tasks.iter().filter_map(|t| self.need(*t, cpu)).collect();
        let keys = needs.iter().map(|n| self.key(n)).collect();
        (needs, keys)
    }

    /// Whether a CPU has priorities for them.
    fn priorities_last(&self, keys: &[u64]) -> Result<(), String> {
        let mut all = keys.to_vec();
        all.sort_unstable();
        all.dedup();
        let levels = self.levels();
        match self.edf() || all.len() <= levels {
            true => Ok(()),
            false => Err(format!(
                "{} different periods or deadlines need as many priorities, and a CPU has {levels} for them",
                all.len()
            )),
        }
    }

    /// Whether the tests admit `tasks` on a CPU.
    fn proven(&self, tasks: &[usize], cpu: usize, crowded: bool) -> Result<Proof, String> {
        let (needs, keys) = self.of_cpu(tasks, cpu);
        self.priorities_last(&keys)?;
        self.m.holds(&self.m.cpus[cpu], &needs, &keys, self.rules.scheduler, crowded)
    }

    /// Checks that the kernel admits the tasks on that CPU and that their work alone fits,
    /// overheads left out.
    fn possible(&self, tasks: &[usize], cpu: usize, _: bool) -> Result<Proof, String> {
        let (needs, keys) = self.of_cpu(tasks, cpu);
        self.priorities_last(&keys)?;
        self.m.bare().holds(&self.m.cpus[cpu].bare(), &needs, &keys, self.rules.scheduler, false)
    }

    /// Puts all that are to be guaranteed somewhere, the largest first; whether all have a place.
    fn place(&mut self, fits: Fits<'_, Self>) -> bool {
        let best = |i: usize| {
            (0..self.m.cpus.len()).filter_map(|c| self.need(i, c)).min_by_key(machine::Need::whole)
        };
        let density = |n: &machine::Need| Share::of(n.whole(), n.deadline.min(n.period).max(1));
        let mut order: Vec<(usize, Share)> =
            (0..self.on.len()).filter_map(|i| Some((i, density(&best(i)?)))).collect();
        order.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        for (task, _) in order {
            let mut cpus: Vec<usize> =
                (0..self.m.cpus.len()).filter(|c| self.allowed(task, *c)).collect();
            let after: Vec<f64> =
                (0..self.left.len()).map(|c| self.left[c] - self.share(task, c)).collect();
            match self.rules.fit {
                Fit::First => {}
                Fit::Best => machine::by_left(&after, &mut cpus, false),
                Fit::Worst => machine::by_left(&after, &mut cpus, true),
            }
            let mut why = None;
            let found = cpus.into_iter().find(|cpu| {
                let with: Vec<usize> = self.members[*cpu].iter().copied().chain([task]).collect();
                fits(self, &with, *cpu, false).map_err(|e| why = Some(e)).is_ok()
            });
            match found {
                Some(cpu) => {
                    self.cpu_of[task] = Some(cpu);
                    self.members[cpu].push(task);
                    self.left[cpu] -= self.share(task, cpu);
                }
                None => {
                    let room = self.no_room(task, why);
                    self.missing.push(room);
                }
            }
        }
        self.missing.is_empty()
    }

    fn no_room(&self, task: usize, why: Option<String>) -> NoRoom {
        let need = &self.needs.tasks[task];
        let reason = why.unwrap_or_else(|| "there is no CPU on which it may run".into());
        NoRoom {
            at: need.at.clone(),
            name: need.name.clone(),
            reason: format!("{reason}, on the last CPU looked at"),
        }
    }

    /// The priority of a task that does not say how long it takes.
    fn asked(&self, task: usize) -> Option<u8> {
        match self.needs.tasks[task].what {
            What::Priority(priority) => Some(priority),
            What::Period(period) => {
                let shorter = |t: &&Need| matches!(t.what, What::Period(p) if p < period);
                let mut all: Vec<What> =
                    self.needs.tasks.iter().filter(shorter).map(|t| t.what).collect();
                all.sort_by_key(|w| if let What::Period(p) = w { *p } else { Span(0) });
                all.dedup();
                let faster = u8::try_from(all.len()).unwrap_or(u8::MAX);
                Some(HIGHEST_OF_PERIODS.saturating_sub(faster).max(1))
            }
            What::Job { .. } | What::Share { .. } => None,
        }
    }

    /// Places those of unknown length: where the others are in time all the same, else where they go after them at least.
    fn others(&mut self) {
        for task in 0..self.on.len() {
            let Some(priority) = self.asked(task) else { continue };
            let mut cpus: Vec<usize> =
                (0..self.m.cpus.len()).filter(|c| self.allowed(task, *c)).collect();
            let key = |c: &usize| (Reverse((self.left[*c] * 1e9) as i64), self.crowd[*c].len(), *c);
            cpus.sort_by_key(key);
            let below =
                |c: &usize| self.edf() || self.lowest(*c).is_none_or(|lowest| priority < lowest);
            let harmless = |c: &&usize| {
                self.members[**c].is_empty() || self.proven(&self.members[**c], **c, true).is_ok()
            };
            cpus.retain(below);
            let found = cpus.iter().find(harmless).or(cpus.first()).copied();
            let found = found.map(|cpu| (cpu, !harmless(&&cpu)));
            match found {
                Some((cpu, trusts)) => {
                    self.cpu_of[task] = Some(cpu);
                    self.trusting[cpu] |= trusts;
                    self.crowd[cpu].push(task);
                }
                None => {
                    let what = format!(
                        "priority {priority} is not below the guaranteed tasks, of which every CPU has some"
                    );
                    let need = &self.needs.tasks[task];
                    self.missing.push(NoRoom {
                        at: need.at.clone(),
                        name: need.name.clone(),
                        reason: what,
                    });
                }
            }
        }
    }

    /// The lowest priority of the guaranteed FIFO tasks of a CPU.
    fn lowest(&self, cpu: usize) -> Option<u8> {
        self.members[cpu].iter().filter_map(|t| self.priority(*t)).min()
    }

    /// Returns the RT priority of a task by its key; the first key of a CPU has the highest.
    /// `None`: under EDF, or not placed.
    fn priority(&self, task: usize) -> Option<u8> {
        let cpu = self.cpu_of[task].filter(|_| !self.edf())?;
        let own = self.key(&self.need(task, cpu)?);
        let mut keys = self.of_cpu(&self.members[cpu], cpu).1;
        keys.sort_unstable();
        keys.dedup();
        Some(HIGHEST - u8::try_from(keys.partition_point(|k| *k < own)).ok()?)
    }

    fn finish(mut self) -> Result<Plan, Vec<NoRoom>> {
        if !self.missing.is_empty() {
            self.missing.sort_by_key(|m| self.needs.tasks.iter().position(|t| t.name == m.name));
            return Err(self.missing);
        }
        let cpus = 0..self.m.cpus.len();
        let mut budgets: Vec<Option<Budget>> = vec![None; self.on.len()];
        let mut used = Vec::new();
        for cpu in cpus.clone().filter(|c| !self.members[*c].is_empty()) {
            let tasks = &self.members[cpu];
            let proof = self.proven(tasks, cpu, !self.crowd[cpu].is_empty() && !self.trusting[cpu]);
            let own = match &proof {
                Ok(proof) => proof.budgets.clone(),
                Err(_) if self.edf() => self
                    .m
                    .reserves(&self.m.cpus[cpu], &self.of_cpu(tasks, cpu).0)
                    .unwrap_or_default(),
                Err(_) => Vec::new(),
            };
            for (task, budget) in tasks.iter().zip(&own) {
                budgets[*task] = Some(*budget);
            }
            let taken: f64 = tasks.iter().map(|t| self.share(*t, cpu)).sum();
            let fastest = self.m.cpus[cpu].fastest().0.max(1) as f64 / 1024.0;
            let unit = 100.0 / (1u64 << 20) as f64;
            let sum: u64 = own.iter().map(Budget::bandwidth).sum();
            let room = self.m.room(&self.m.cpus[cpu]);
            let room = if room == u64::MAX { 100.0 } else { room as f64 * unit };
            used.push(Used {
                cpu: self.m.cpus[cpu].id,
                percent: 100.0 * taken / fastest,
                reserved: (!own.is_empty()).then_some((sum as f64 * unit, room)),
                budgets: own,
                proof,
            });
        }
        let planned = |(i, task): (usize, &Need)| {
            let attr = match budgets[i] {
                Some(b) => Attr::Deadline(Span(b.runtime), Span(b.period), Span(b.period)),
                None => Attr::Fifo(self.priority(i).or(self.asked(i))?),
            };
            let cpu = self.m.cpus[self.cpu_of[i]?].id;
            Some(Planned { name: task.name.clone(), cpu, attr, wanted: self.asked(i).is_none() })
        };
        let tasks: Vec<Planned> = self.needs.tasks.iter().enumerate().filter_map(planned).collect();
        let reserves =
            |cpu: CpuId| tasks.iter().any(|t| t.cpu == cpu && matches!(t.attr, Attr::Deadline(..)));
        let partitions: Vec<CpuId> =
            self.m.cpus.iter().map(|c| c.id).filter(|c| reserves(*c)).collect();
        let mut ordinary: Vec<CpuId> =
            self.m.cpus.iter().map(|c| c.id).filter(|c| !partitions.contains(c)).collect();
        if ordinary.is_empty() {
            // The root group keeps a CPU, which is a root domain of its own when all others have left it.
            ordinary.extend(partitions.last());
        }
        let trusting = cpus.filter(|c| self.trusting[*c]).map(|c| self.m.cpus[c].id).collect();
        Ok(Plan { tasks, used, partitions, ordinary, trusting, floors: Vec::new() })
    }
}

/// The need that can be guaranteed on a CPU of this domain, its work as a CPU of capacity 1024 would
/// see it; `None`: it does not say how long it takes. Work of a kind
///
/// ```text
/// takes    work · 10⁶ / speed_ppm   at the highest frequency,   which is   work · capacity / 1024 · 10⁶ / speed_ppm   of 1024's time
/// ```
///
/// Rounding: up.
pub(crate) fn load(need: &Need, domain: &Domain) -> Option<machine::Need> {
    let (work, period, deadline) = match need.what {
        What::Job { runtime, period, deadline } => (runtime, period, deadline),
        What::Share { runtime, period } => (runtime, period, period),
        What::Period(_) | What::Priority(_) => return None,
    };
    let mut plain = work.0;
    let mut others: u128 = 0;
    for (kind, work) in &need.kinds {
        let Some(table) = domain.work.iter().find(|w| w.kind == *kind) else { continue };
        let ppm = u128::from(table.speed_ppm.last().copied().unwrap_or(1_000_000));
        plain = plain.saturating_sub(work.0);
        let scaled = u128::from(work.0) * u128::from(domain.capacity.0) * 1_000_000;
        others += scaled.div_ceil(1024 * ppm);
    }
    // The clock does not wait for a slow CPU.
    plain = plain.saturating_sub(need.clock.0);
    let work = u64::try_from(u128::from(plain) + others).unwrap_or(u64::MAX);
    let (clock, period, deadline) = (need.clock.0, period.0.max(1), deadline.0);
    Some(machine::Need { work, clock, period, deadline })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Cpu;
    use risetime_kernel::units::Capacity;

    const RULES: Rules = Rules { scheduler: Scheduler::Edf, fit: Fit::Worst, margin_percent: 0 };

    fn needs(tasks: &[(&str, &str)]) -> Needs {
        let of = |(name, what): &(&str, &str)| format!("[[task]]\nname = \"{name}\"\n{what}\n");
        let all: String = tasks.iter().map(of).collect();
        Needs::parse(&format!("schema = 1\nname = \"n\"\n{all}"), "n.toml").expect("right")
    }

    /// The platform at its highest frequency, without costs; from 7.2 on, or before: all of a CPU less the fair server's, or 95 %.
    fn machine(platform: &Platform, percent: u64) -> Machine {
        let cpu = |id: CpuId| {
            let domain = platform.domain_of(id).expect("one");
            let capacity = platform.domains[domain].capacity;
            Cpu {
                id,
                domain,
                capacity,
                speeds: vec![(KHz(1_000_000), capacity)],
                change: Span(0),
                follows_deadlines: true,
                invariant: true,
                kthread: None,
                idle: Vec::new(),
                usable: true,
            }
        };
        Machine {
            max_bw: Some((1 << 20) * percent / 100),
            fair_server: Some((Span::from_ms(50), Span::from_ms(1000))),
            rt_limit: None,
            timer: Span(0),
            switch: Span(0),
            interrupt: Span(0),
            tick: Span::from_ms(4),
            noise: (Span(0), Span(0)),
            cpus: platform.cpus().map(cpu).collect(),
        }
    }

    fn planned(tasks: &[(&str, &str)], platform: &str, rules: Rules) -> Result<Plan, Vec<NoRoom>> {
        let platform = Platform::load(platform).expect("built in");
        plan(&needs(tasks), &platform, &machine(&platform, 100), rules)
    }

    const HALF: &str = "period_us = 10000\nruntime_us = 5000";

    /// Asked of kernels: 6.12 refuses 94 of 100 ms on a CPU, 7.2 takes 94 and refuses 96; of a CPU of capacity 377 7.2 leaves 31 %.
    #[test]
    fn the_kernel_admits_what_its_release_does() {
        let rpi4 = Platform::load("rpi4").expect("built in");
        let xu4 = Platform::load("odroid-xu4").expect("built in");
        let of = |ms: u64, platform: &Platform, percent: u64, cpus: std::ops::Range<u32>| {
            let what = format!("period_us = 100000\nruntime_us = {}", ms * 1000);
            let mut machine = machine(platform, percent);
            machine.cpus.retain(|c| cpus.contains(&c.id.0));
            plan(&needs(&[("a", &what)]), platform, &machine, RULES)
        };
        assert!(of(94, &rpi4, 95, 0..4).is_err() && of(94, &rpi4, 100, 0..4).is_ok());
        assert!(of(89, &rpi4, 95, 0..4).is_ok() && of(96, &rpi4, 100, 0..4).is_err());
        assert!(of(33, &xu4, 100, 0..4).is_err() && of(30, &xu4, 100, 0..4).is_ok());
        let e = of(96, &rpi4, 100, 0..4).expect_err("too much for the kernel");
        assert_eq!((e[0].at.as_str(), e[0].name.as_str()), ("n.toml:4:1", "a"));
        assert!(e[0].reason.contains("the kernel admits 95.0 %"), "{e:?}");
    }

    /// 3.9 of 20 ms by the clock are 3.9 ms at the lowest frequency, too, and 5 % of margin; as much work is twice that at half the speed, for
    /// which it asks.
    #[test]
    fn time_that_passes_by_the_clock_is_not_work_at_a_low_frequency() {
        let rpi4 = Platform::load("rpi4").expect("built in");
        let mut slow = machine(&rpi4, 100);
        for cpu in &mut slow.cpus {
            cpu.speeds = (1..=4).map(|n| (KHz(250_000 * n), Capacity(256 * n))).collect();
        }
        let reserved = |clock: Span| {
            let mut needs = needs(&[("a", "period_us = 20000\nruntime_us = 3900")]);
            needs.tasks[0].clock = clock;
            let plan = plan(&needs, &rpi4, &slow, RULES).expect("room");
            match plan.tasks[0].attr {
                Attr::Deadline(runtime, ..) => runtime.0 / 1000,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(reserved(Span::from_us(3900)), 4097);
        assert!(reserved(Span(0)) >= 7802);
    }

    #[test]
    fn fixed_priorities_follow_periods_or_deadlines() {
        // Behind `fast` 5 ms, and what the timers' interrupts take: by 6 both are in time on one CPU.
        let tasks = [
            ("slow", "period_us = 40000\nruntime_us = 4000\ndeadline_us = 6000"),
            ("fast", "period_us = 10000\nruntime_us = 1000"),
        ];
        let prio = |scheduler| {
            let rules = Rules { scheduler, fit: Fit::First, ..RULES };
            let plan = planned(&tasks, "rpi4", rules).expect("room");
            plan.tasks.iter().map(|t| t.attr).collect::<Vec<_>>()
        };
        assert_eq!(prio(Scheduler::Dm), [Attr::Fifo(98), Attr::Fifo(97)]);
        assert_eq!(prio(Scheduler::Rm), [Attr::Fifo(97), Attr::Fifo(98)]);
    }

    #[test]
    fn who_says_only_a_priority_delays_nobody_that_is_guaranteed() {
        let rm = Rules { scheduler: Scheduler::Rm, fit: Fit::First, ..RULES };
        let plan = planned(&[("a", HALF), ("p", "priority = 99")], "rpi4", rm).expect("room");
        assert_ne!(plan.tasks[0].cpu, plan.tasks[1].cpu);
        let all: Vec<(&str, &str)> =
            [("a", HALF), ("b", HALF), ("c", HALF), ("d", HALF), ("p", "priority = 99")].to_vec();
        let spread = Rules { fit: Fit::Worst, ..rm };
        let e = planned(&all, "rpi4", spread).expect_err("no CPU is free of them");
        assert!(e[0].reason.contains("priority 99 is not below"), "{e:?}");
        // Deadline tasks come before all of FIFO.
        assert!(planned(&all, "rpi4", RULES).is_ok());
    }

    #[test]
    fn periods_alone_are_ordered_below_what_is_guaranteed() {
        let tasks = [
            ("slow", "period_us = 90000"),
            ("fast", "period_us = 3000"),
            ("job", "period_us = 90000\nruntime_us = 90"),
        ];
        let rm = Rules { scheduler: Scheduler::Rm, fit: Fit::First, ..RULES };
        let plan = planned(&tasks, "rpi4", rm).expect("room");
        let [slow, fast, job] = [0, 1, 2].map(|i| plan.tasks[i].attr);
        let of = |attr| if let Attr::Fifo(p) = attr { p } else { 0 };
        assert!(of(slow) < of(fast) && of(fast) < of(job), "{plan:?}");
        assert_eq!(plan.tasks.iter().map(|t| t.wanted).collect::<Vec<_>>(), [false, false, true]);
    }

    /// 120 different deadlines on one CPU are more than there are priorities; 60 are with a period alone beside them.
    #[test]
    fn priorities_that_run_out_are_not_shared() {
        let run = |n: usize, more: &[(&str, &str)], cpus: usize| {
            let names: Vec<String> = (0..n).map(|i| format!("t{i}")).collect();
            let what: Vec<String> = (0..n)
                .map(|i| format!("period_us = {}\nruntime_us = 20", 50_000 + 10 * i))
                .collect();
            let mut all: Vec<(&str, &str)> =
                names.iter().zip(&what).map(|(n, w)| (n.as_str(), w.as_str())).collect();
            all.extend(more);
            let rpi4 = Platform::load("rpi4").expect("built in");
            let mut machine = machine(&rpi4, 100);
            machine.cpus.truncate(cpus);
            plan(
                &needs(&all),
                &rpi4,
                &machine,
                Rules { scheduler: Scheduler::Dm, fit: Fit::First, ..RULES },
            )
        };
        assert!(run(97, &[], 1).is_ok() && run(98, &[], 1).is_err());
        let period = [("p", "period_us = 9000")];
        assert!(run(50, &period, 1).is_ok());
        let e = run(60, &period, 1).expect_err("50 priorities");
        assert!(e[0].reason.contains("51 different periods or deadlines"), "{e:?}");
        // On two CPUs each has its own, and no two tasks of a CPU share one.
        let two = run(120, &[], 2).expect("as many CPUs as it takes");
        let mut all: Vec<(CpuId, u8)> = two
            .tasks
            .iter()
            .map(|t| (t.cpu, if let Attr::Fifo(p) = t.attr { p } else { 0 }))
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 120);
    }

    /// At 500 MHz the work takes twice as long. A deadline task that schedutil follows needs no floor; a FIFO task has the least that holds.
    #[test]
    fn the_lowest_frequency_that_proves_it_is_asked_for() {
        let rpi4 = Platform::load("rpi4").expect("built in");
        let mut m = machine(&rpi4, 100);
        for cpu in &mut m.cpus {
            cpu.speeds = (1..=4).map(|n| (KHz(250_000 * n), Capacity(256 * n))).collect();
        }
        let own = needs(&[("a", "period_us = 10000\nruntime_us = 4000")]);
        let of = |scheduler| super::plan(&own, &rpi4, &m, Rules { scheduler, ..RULES });
        let fifo = of(Scheduler::Dm).expect("room");
        assert_eq!((fifo.proven(), &fifo.floors[..]), (true, &[(CpuId(0), KHz(500_000))][..]));
        let edf = of(Scheduler::Edf).expect("room");
        assert_eq!((edf.proven(), &edf.floors[..]), (true, &[][..]), "{edf:?}");
    }

    /// The next job may wake sooner after the one before by what that was late.
    #[test]
    fn a_reservation_ends_before_the_next_wakeup() {
        let rpi4 = Platform::load("rpi4").expect("built in");
        let mut m = machine(&rpi4, 100);
        m.timer = Span(100_000);
        let own = needs(&[
            ("implicit", "period_us = 10000\nruntime_us = 1000"),
            ("early", "period_us = 10000\nruntime_us = 1000\ndeadline_us = 5000"),
        ]);
        let found = super::plan(&own, &rpi4, &m, RULES).expect("room");
        let attr = |us: u64| move |t: &Planned| matches!(t.attr, Attr::Deadline(_, d, p) if (d, p) == (Span::from_us(us), Span::from_us(us)));
        assert!(attr(9800)(&found.tasks[0]) && attr(5000)(&found.tasks[1]), "{found:?}");
    }

    #[test]
    fn a_small_cpu_takes_longer() {
        // 50 % of a big CPU is more than a little one of m1 has.
        let plan = planned(&[("a", HALF)], "m1", Rules { fit: Fit::First, ..RULES }).expect("room");
        let m1 = Platform::load("m1").expect("built in");
        let domain = m1.domain_of(plan.tasks[0].cpu).expect("one");
        assert!(m1.domains[domain].capacity.0 > 512);
    }

    #[test]
    fn tasks_stay_where_their_file_and_the_command_let_them() {
        let rpi4 = Platform::load("rpi4").expect("built in");
        let mut own = needs(&[("a", HALF), ("b", HALF)]);
        own.tasks[0].cpus = Some(vec![CpuId(2)]);
        let plan = |own: &Needs, free: &[u32]| {
            let mut machine = machine(&rpi4, 100);
            machine.cpus.iter_mut().for_each(|c| c.usable = !free.contains(&c.id.0));
            super::plan(own, &rpi4, &machine, RULES)
        };
        let cpus = |p: &Plan| p.tasks.iter().map(|t| t.cpu.0).collect::<Vec<_>>();
        let found = plan(&own, &[0]).expect("room");
        assert_eq!((cpus(&found), &found.ordinary[..]), (vec![2, 1], &[CpuId(0), CpuId(3)][..]));
        let e = plan(&own, &[2]).expect_err("its only CPU is kept free");
        assert!(e[0].name == "a" && e[0].reason.contains("no CPU on which it may run"), "{e:?}");
    }
}
