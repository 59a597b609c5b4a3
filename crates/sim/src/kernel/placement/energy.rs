//! Energy-aware placement: the CPU on which a waking task costs least
//! (`find_energy_efficient_cpu`).
//!
//! ```text
//! per performance domain: candidates = previous CPU, and the CPU with most spare capacity
//! cost of a candidate    = em_cpu_energy(with the task there) − em_cpu_energy(without it)
//! ```
//!
//! The previous CPU wins ties, and against all that save less than a margin (`eas_margin`; none since
//! 6.0). A candidate that cannot give `uclamp_min` is taken only if none can, the biggest first.
//! Source: kernel/sched/fair.c.

use super::{Effects, Placed};
use crate::state::cpuset::CpuSet;
use crate::state::machine::{Cpu, FreqDomain, Machine, Task};
use crate::state::short_ways;
use crate::state::short_ways::ShortWay;
use risetime_kernel::cpu_util::{
    CfsUtil, EffectiveUtil, TaskUtil, cpu_util, cpu_util_boost_pre_6_12, effective_cpu_util,
    scale_irq_capacity,
};
use risetime_kernel::energy_model::{em_cpu_energy, feec_saves};
use risetime_kernel::features;
use risetime_kernel::fits::{Fit, fits_capacity};
use risetime_kernel::schedutil::perf_within;
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::{Capacity, CpuId, TaskId, Util};
use risetime_trace::Why;
use std::cell::RefCell;

/// The rank of how well a CPU fits, in the kernel's order: fits, does not, only its boost does not.
fn rank(fit: Fit) -> i32 {
    match fit {
        Fit::Fits => 1,
        Fit::DoesNotFit => 0,
        Fit::BoostDoesNotFit => -1,
    }
}

/// The best so far over all domains.
#[derive(Clone, Copy)]
struct Best {
    cpu: CpuId,
    delta: u64,
    fits: i32,
    capacity: Capacity,
}

/// A domain's candidates.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Candidates {
    prev: Option<(u64, i32)>,
    most_spare: Option<(CpuId, u64, i32)>,
}

/// The task that is to be placed, with what every domain asks about it.
struct Asked<'a> {
    m: &'a Machine,
    id: TaskId,
    task: &'a Task,
    prev: CpuId,
    p: TaskUtil,
    clamps: Uclamp,
    /// `eenv_task_busy_time`.
    busy: Util,
    /// See [`crate::state::plain`]; its clamps are open, too.
    plain: bool,
    /// Effects: as posted, the energy estimate, too, counts as the last look at each CPU's util
    /// (RFC 00/16, patch 14).
    effects: RefCell<Effects>,
}

pub(super) fn find_energy_efficient_cpu(
    m: &Machine,
    task: TaskId,
    this: CpuId,
    effects: &mut Effects,
) -> Option<Placed> {
    let prev = m.task(task).cpu;
    // The lowest domain from the waker's asymmetric one on that holds the previous CPU.
    let c = m.cpu(this);
    let domains = c.place.asym.map_or(&[][..], |level| &c.sched_domains[level..]);
    let span = &domains.iter().find(|d| d.span.contains(prev))?.span;
    let (id, task, p) = (task, m.task(task), m.task_util(task));
    let clamps = task.clamps();
    if m.task_util_est(id) == Util(0) && clamps.min == Util(0) {
        return Some(Placed { cpu: prev, why: Why::PrevCpu });
    }
    let busy = task_busy_time(m, id);
    let plain = m.is_plain() && clamps == Uclamp::default() && !p.queued;
    let noted = RefCell::new(std::mem::take(effects));
    let asked = Asked { m, id, task, prev, p, clamps, busy, plain, effects: noted };
    let placed = asked.cheapest(span);
    *effects = asked.effects.into_inner();
    Some(placed)
}

/// `compute_energy` of the domain of `cpu` with the task there, less that without it; `None`: there is no model of it.
pub(super) fn added(m: &Machine, task: TaskId, cpu: CpuId) -> Option<u64> {
    let domain = m.domain_of(cpu);
    if domain.pd.states.is_empty() {
        return None;
    }
    let (id, task) = (task, m.task(task));
    let (p, clamps, busy) = (m.task_util(id), task.clamps(), task_busy_time(m, id));
    let effects = RefCell::new(Effects::default());
    let asked = Asked { m, id, task, prev: task.cpu, p, clamps, busy, plain: false, effects };
    let mut without = Without::nothing(&asked, domain);
    without.count_all();
    Some(without.energy(Some(cpu)).saturating_sub(without.energy(None)))
}

impl Asked<'_> {
    fn cheapest(&self, span: &CpuSet) -> Placed {
        let stay = Placed { cpu: self.prev, why: Why::PrevCpu };
        let (mut best, mut best_delta) = (None::<Best>, u64::MAX);
        let (mut prev_delta, mut prev_fits, mut prev_capacity) = (u64::MAX, -1, Capacity(0));
        let mut base_energy = 0u64;
        // The list of performance domains begins with the one found last (`build_perf_domains`).
        for domain in self.m.domains.iter().rev() {
            let mut without = Without::nothing(self, domain);
            let found = match self.plain {
                true => self.survey(span, &mut without),
                false => self.candidates(domain, span),
            };
            if found.prev.is_none() && found.most_spare.is_none() {
                continue;
            }
            if !self.plain {
                without.count_all();
            }
            let (without, capacity) = (without, self.m.cpu(domain.cpus[0]).actual);
            let base = without.energy(None);
            base_energy = base_energy.wrapping_add(base);
            if let Some((_, fits)) = found.prev {
                let Some(delta) = without.energy(Some(self.prev)).checked_sub(base) else {
                    return stay;
                };
                (prev_delta, prev_fits, prev_capacity) = (delta, fits, capacity);
                best_delta = best_delta.min(delta);
            }
            let Some((cpu, spare, fits)) = found.most_spare else { continue };
            if found.prev.is_some_and(|(prev_spare, _)| spare <= prev_spare) {
                continue;
            }
            let (best_fits, best_capacity) =
                best.map_or((-1, Capacity(0)), |b| (b.fits, b.capacity));
            if fits < best_fits || (fits < 0 && capacity <= best_capacity) {
                continue;
            }
            let Some(delta) = without.energy(Some(cpu)).checked_sub(base) else { return stay };
            if fits > 0 && best_fits > 0 && delta >= best_delta {
                continue;
            }
            best_delta = delta;
            best = Some(Best { cpu, delta, fits, capacity });
        }
        let saves =
            |b: &Best| feec_saves(prev_delta, b.delta, base_energy, self.m.slots.series.eas_margin);
        match best {
            Some(b)
                if b.fits > prev_fits
                    || (b.fits > 0 && saves(&b))
                    || (b.fits < 0 && b.capacity > prev_capacity) =>
            {
                Placed { cpu: b.cpu, why: Why::Energy }
            }
            _ => stay,
        }
    }

    /// The previous CPU (if it is in this domain) and the one with most spare capacity, each with
    /// its spare capacity and how it fits; CPUs that do not fit are none.
    fn candidates(&self, domain: &FreqDomain, span: &CpuSet) -> Candidates {
        let m = self.m;
        let Uclamp { min: mut util_min, max: mut util_max } = self.clamps;
        let mut found = Candidates { prev: None, most_spare: None };
        for &cpu in &domain.cpus {
            let usable = span.contains(cpu) && self.task.allowed.contains(cpu);
            let fits = || m.hook(Fit::Fits, |h, own| h.task_fits(m, self.id, cpu, own));
            if !usable || fits() == Fit::DoesNotFit {
                continue;
            }
            let c = m.cpu(cpu);
            let util = self.cpu_util(cpu, Some(cpu), false);
            if !c.uclamp.uclamp_rq_is_idle() {
                let queued = c.uclamp.clamps();
                util_min = queued.min.max(self.clamps.min);
                util_max = queued.max.max(self.clamps.max);
            }
            let fits = rank(c.util_fits(util, util_min, util_max));
            if fits == 0 {
                continue;
            }
            let spare = c.cpu_capacity.0.saturating_sub(util.0);
            if cpu == self.prev {
                found.prev = Some((spare, fits));
            } else if found
                .most_spare
                .is_none_or(|(_, most, best)| fits > best || (fits == best && spare > most))
            {
                found.most_spare = Some((cpu, spare, fits));
            }
        }
        found
    }

    /// [`Asked::candidates`] and [`Without::count_all`] in one go, by the short way.
    #[inline]
    fn survey(&self, span: &CpuSet, w: &mut Without<'_>) -> Candidates {
        let (m, p, domain) = (self.m, &self.p, w.domain);
        let mut found = Candidates { prev: None, most_spare: None };
        let capacity = Util(w.capacity.0);
        for &cpu in &domain.cpus {
            let (c, own) = (m.cpu(cpu), cpu == self.prev);
            let cfs = c.plain_cfs();
            // The task nowhere: its own CPU without it.
            let (left, left_runnable) = match own {
                true => (
                    cfs.util_avg.saturating_sub(p.util_avg),
                    cfs.runnable_avg.saturating_sub(p.runnable_avg),
                ),
                false => (cfs.util_avg, cfs.runnable_avg),
            };
            let plain = left.max(cfs.util_est).min(capacity);
            w.busy += c.plain_util(plain);
            w.count(cpu, c.plain_needs(plain.max(left_runnable.min(capacity)), capacity).perf);
            // The task there.
            if !(span.contains(cpu) && self.task.allowed.contains(cpu)) {
                continue;
            }
            let util = self.plain_joined(&cfs, own).min(capacity);
            if !fits_capacity(util, c.cpu_capacity) {
                continue;
            }
            let spare = c.cpu_capacity.0.saturating_sub(util.0);
            if own {
                found.prev = Some((spare, 1));
            } else if found.most_spare.is_none_or(|(_, most, _)| spare > most) {
                found.most_spare = Some((cpu, spare, 1));
            }
        }
        debug_assert_eq!(found, self.candidates(domain, span));
        debug_assert_eq!(w.sums(), {
            let mut by_the_long_way = Without::nothing(self, domain);
            by_the_long_way.count_all();
            by_the_long_way.sums()
        });
        found
    }

    /// The fair class's use of a CPU with the task there; `own`: where it was.
    #[inline]
    fn plain_joined(&self, cfs: &CfsUtil, own: bool) -> Util {
        let avg = if own { cfs.util_avg } else { cfs.util_avg + self.p.util_avg };
        avg.max(cfs.util_est + self.p.util_est)
    }

    /// The util that `cpu` makes schedutil ask for with the task there.
    #[inline]
    fn perf_there(&self, cpu: CpuId) -> Util {
        if !self.plain {
            return self.perf(cpu, cpu);
        }
        let (c, own) = (self.m.cpu(cpu), cpu == self.prev);
        let cfs = c.plain_cfs();
        let runnable = if own { cfs.runnable_avg } else { cfs.runnable_avg + self.p.runnable_avg };
        let util = self.plain_joined(&cfs, own).max(runnable).min(Util(c.capacity.0));
        let perf = c.plain_needs(util, self.clamps.max).perf;
        debug_assert_eq!(perf, self.perf(cpu, cpu));
        perf
    }

    /// The fair class's use of `cpu` that counts for its frequency, with the task on `dst` (`None`:
    /// nowhere): with contention from 6.5 on.
    fn frequency_util(&self, cpu: CpuId, dst: Option<CpuId>) -> Util {
        self.cpu_util(cpu, dst, self.m.slots.series.runnable_boost)
    }

    /// `cpu_util` with the task on `dst` (`None`: nowhere). Of a sleeping task only PELT knows what it has left
    /// behind on a CPU: elsewhere it joins its own like any other (`cpu_util_wake` of Android's WALT).
    fn cpu_util(&self, cpu: CpuId, dst: Option<CpuId>, boost: bool) -> Util {
        let (m, c) = (self.m, self.m.cpu(cpu));
        if m.tracker.is_some() {
            let joins =
                if dst == Some(cpu) { self.p.util_avg.max(self.p.util_est) } else { Util(0) };
            return (m.cpu_util_without(cpu, self.id) + joins).min(Util(c.capacity.0));
        }
        let (cfs, p) = (m.cfs_util(c), Some(&self.p));
        if boost && !m.rev.has(features::CPU_UTIL_BOOST) {
            return cpu_util_boost_pre_6_12(cpu, &cfs, p, dst, c.capacity);
        }
        cpu_util(cpu, &cfs, p, dst, boost, c.capacity)
    }

    /// The util that `cpu` makes schedutil ask for with the task on `dst`.
    fn perf(&self, cpu: CpuId, dst: CpuId) -> Util {
        let (m, c) = (self.m, self.m.cpu(cpu));
        let util = self.frequency_util(cpu, Some(dst));
        let here = dst == cpu;
        if !m.rev.has(features::SUGOV_EFFECTIVE_CPU_PERF) {
            return m.frequency_util_pre_6_8(cpu, util, here.then_some(self.clamps));
        }
        let mut eff = effective_cpu_util(util, &m.rq_util_of(cpu, c), c.capacity);
        if here {
            eff.min = eff.min.max(self.clamps.min);
            let idle = c.uclamp.uclamp_rq_is_idle();
            eff.max = if idle { self.clamps.max } else { eff.max.max(self.clamps.max) };
        }
        self.clamped(cpu, eff)
    }
}

impl Asked<'_> {
    /// The util that schedutil makes of `eff`: with headroom, and within the clamps.
    #[inline]
    fn clamped(&self, cpu: CpuId, eff: EffectiveUtil) -> Util {
        let mut effects = self.effects.borrow_mut();
        let (wanted, _) = self.m.dvfs_util(cpu, eff.util, Some(&mut effects));
        perf_within(wanted, eff.min, eff.max)
    }
}

/// Need of a domain with the task nowhere, so that each candidate only adds its own CPU.
struct Without<'a> {
    asked: &'a Asked<'a>,
    domain: &'a FreqDomain,
    /// Capacity of each of the domain's CPUs.
    capacity: Capacity,
    actual: Capacity,
    /// `eenv_pd_busy_time`.
    busy: Util,
    /// Utils that the most and the second most demanding CPU make schedutil ask for, and the most
    /// demanding one.
    most: Util,
    of: Option<CpuId>,
    second: Util,
}

impl<'a> Without<'a> {
    fn nothing(asked: &'a Asked<'a>, domain: &'a FreqDomain) -> Without<'a> {
        let Cpu { capacity, actual, .. } = *asked.m.cpu(domain.cpus[0]);
        let (busy, most, of, second) = (Util(0), Util(0), None, Util(0));
        Without { asked, domain, capacity, actual, busy, most, of, second }
    }

    /// Counts what every CPU of the domain needs.
    fn count_all(&mut self) {
        let (m, asked) = (self.asked.m, self.asked);
        for &cpu in &self.domain.cpus {
            let c = m.cpu(cpu);
            let rq = m.rq_util_of(cpu, c);
            let plain = asked.cpu_util(cpu, None, false);
            let boosted = asked.frequency_util(cpu, None);
            self.busy += rq.effective_util(plain, c.capacity);
            let perf = match m.rev.has(features::SUGOV_EFFECTIVE_CPU_PERF) {
                true => asked.clamped(cpu, effective_cpu_util(boosted, &rq, c.capacity)),
                // Clamped, and without headroom: the energy model adds it.
                false => m.frequency_util_pre_6_8(cpu, boosted, None),
            };
            self.count(cpu, perf);
        }
    }

    /// `cpu` makes schedutil ask for `perf`.
    #[inline]
    fn count(&mut self, cpu: CpuId, perf: Util) {
        if self.of.is_none() || perf > self.most {
            (self.second, self.most, self.of) = (self.most, perf, Some(cpu));
        } else {
            self.second = self.second.max(perf);
        }
    }

    fn sums(&self) -> (Util, Util, Option<CpuId>, Util) {
        (self.busy, self.most, self.of, self.second)
    }

    /// `eenv_pd_max_util`: what the busiest CPU makes schedutil ask for, with the task on `dst`.
    fn max_util(&self, dst: Option<CpuId>) -> Util {
        let Some(dst) = dst else { return self.most };
        if self.asked.m.slots.series.no_decaying_headroom {
            // Each estimate is a look at every CPU.
            let all = self.domain.cpus.iter().map(|c| self.asked.perf(*c, dst));
            return all.max().unwrap_or_default();
        }
        let others = if self.of == Some(dst) { self.second } else { self.most };
        others.max(self.asked.perf_there(dst))
    }

    /// `compute_energy`: of the whole domain, with the task on `dst` (`None`: nowhere).
    fn energy(&self, dst: Option<CpuId>) -> u64 {
        let total = Util(self.actual.0 * self.domain.cpus.len() as u64);
        let busy = self.busy.min(total);
        let sum = if dst.is_some() { Util(busy.0 + self.asked.busy.0).min(total) } else { busy };
        let (m, rev) = (self.asked.m, self.asked.m.rev);
        let max = self.max_util(dst).min(Util(self.capacity.0));
        let has_room = rev.has(features::SUGOV_EFFECTIVE_CPU_PERF);
        let max = if has_room { max } else { m.slots.series.room_pre_6_8(max) };
        let long_way = || {
            let pd = &self.domain.pd;
            em_cpu_energy(rev, &pd.em_perf_domain(), max, sum, self.actual, pd.capacity)
        };
        let Some(cost) = self.domain.pd.cost.get(max.0.min(self.actual.0) as usize) else {
            return long_way();
        };
        short_ways::take(ShortWay::EmCost);
        let energy = cost.wrapping_mul(sum.0);
        debug_assert_eq!(energy, long_way());
        energy
    }
}

/// `eenv_task_busy_time`, as seen by the wall clock of the CPU it was on. At least 1 where there are
/// no interrupts.
fn task_busy_time(m: &Machine, task: TaskId) -> Util {
    let (c, util) = (m.cpu(m.task(task).cpu), m.task_util_est(task).max(Util(1)));
    match c.slots.pressure.as_ref().map(|p| p.irq_util()) {
        None => util,
        Some(irq) if irq.0 >= c.capacity.0 => Util(c.capacity.0),
        Some(irq) => Util(scale_irq_capacity(util.0, irq.0, c.capacity.0)),
    }
}
