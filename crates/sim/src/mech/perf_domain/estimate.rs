//! The estimate of energy by which fair tasks are placed: what the CPUs of a domain use with a task
//! on one of them.
//!
//! ```text
//! energy of a domain = cost of the OPP for its most demanding CPU · busy time of its CPUs
//!                              (`eenv_pd_max_util`)                (`eenv_pd_busy_time`)
//! ```
//!
//! Whoever asks what a fair task costs somewhere asks here: the search of a wakeup
//! ([`find_energy_efficient_cpu`](crate::kernel::placement)), and placements that are plugged in,
//! by their view ([`added`]). The model behind it is asked by
//! [`PerfDomain::energy`](super::state::PerfDomain::energy) alone, of deadline tasks, too.
//!
//! A search asks a domain about several CPUs: what it needs without the task is found once
//! ([`Without`]), and each candidate only adds its own CPU. Where nothing bends what a CPU needs
//! ([`crate::state::plain`]) that goes by the short way, which debug builds compare with the long
//! one.
//! Source: kernel/sched/fair.c:eenv_task_busy_time, eenv_pd_busy_time, eenv_pd_max_util,
//! compute_energy.

use crate::state::effects::Effects;
use crate::state::machine::{Cpu, FreqDomain, Machine, Task};
use risetime_kernel::cpu_util::{
    CfsUtil, EffectiveUtil, TaskUtil, cpu_util, cpu_util_boost_pre_6_12, effective_cpu_util,
    scale_irq_capacity,
};
use risetime_kernel::features;
use risetime_kernel::schedutil::perf_within;
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::{Capacity, CpuId, TaskId, Util};
use std::cell::RefCell;

/// The task that is to be placed, with what every domain asks about it (`struct energy_env`).
pub(crate) struct EnergyEnv<'a> {
    pub(crate) m: &'a Machine,
    pub(crate) id: TaskId,
    pub(crate) task: &'a Task,
    pub(crate) prev: CpuId,
    pub(crate) p: TaskUtil,
    pub(crate) clamps: Uclamp,
    /// `eenv_task_busy_time`.
    busy: Util,
    /// See [`crate::state::plain`]; its clamps are open, too.
    pub(crate) plain: bool,
    /// Effects: as posted, the energy estimate, too, counts as the last look at each CPU's util
    /// (RFC 00/16, patch 14).
    effects: RefCell<Effects>,
}

/// `compute_energy` of the domain of `cpu` with the task there, less that without it; `None`: there is no model of it.
pub(crate) fn added(m: &Machine, task: TaskId, cpu: CpuId) -> Option<u64> {
    let domain = m.domain_of(cpu);
    if domain.slots.perf_domain.states.is_empty() {
        return None;
    }
    let asked = EnergyEnv::new(m, task, Effects::default());
    let mut without = Without::nothing(&asked, domain);
    without.count_all();
    Some(without.energy(Some(cpu)).saturating_sub(without.energy(None)))
}

impl<'a> EnergyEnv<'a> {
    /// The questions about a task that wakes; `effects` get to know at which CPUs an estimate has
    /// looked.
    #[inline]
    pub(crate) fn new(m: &'a Machine, id: TaskId, effects: Effects) -> EnergyEnv<'a> {
        let (task, p, busy) = (m.task(id), m.task_util(id), task_busy_time(m, id));
        let clamps = task.clamps();
        let plain = m.is_plain() && clamps == Uclamp::default() && !p.queued;
        let effects = RefCell::new(effects);
        EnergyEnv { m, id, task, prev: task.cpu, p, clamps, busy, plain, effects }
    }

    /// Effects of the estimates on the machine.
    pub(crate) fn into_effects(self) -> Effects {
        self.effects.into_inner()
    }

    /// The fair class's use of a CPU with the task there; `own`: where it was.
    #[inline]
    pub(crate) fn plain_joined(&self, cfs: &CfsUtil, own: bool) -> Util {
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
    pub(crate) fn cpu_util(&self, cpu: CpuId, dst: Option<CpuId>, boost: bool) -> Util {
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

    /// The util that schedutil makes of `eff`: with headroom, and within the clamps.
    #[inline]
    fn clamped(&self, cpu: CpuId, eff: EffectiveUtil) -> Util {
        let mut effects = self.effects.borrow_mut();
        let (wanted, _) = self.m.dvfs_util(cpu, eff.util, Some(&mut effects));
        perf_within(wanted, eff.min, eff.max)
    }
}

/// Need of a domain with the task nowhere, so that each candidate only adds its own CPU.
pub(crate) struct Without<'a> {
    asked: &'a EnergyEnv<'a>,
    pub(crate) domain: &'a FreqDomain,
    /// Capacity of each of the domain's CPUs.
    pub(crate) capacity: Capacity,
    actual: Capacity,
    /// `eenv_pd_busy_time`.
    pub(crate) busy: Util,
    /// Utils that the most and the second most demanding CPU make schedutil ask for, and the most
    /// demanding one.
    most: Util,
    of: Option<CpuId>,
    second: Util,
}

impl<'a> Without<'a> {
    #[inline]
    pub(crate) fn nothing(asked: &'a EnergyEnv<'a>, domain: &'a FreqDomain) -> Without<'a> {
        let Cpu { capacity, actual, .. } = *asked.m.cpu(domain.cpus[0]);
        let (busy, most, of, second) = (Util(0), Util(0), None, Util(0));
        Without { asked, domain, capacity, actual, busy, most, of, second }
    }

    /// Counts what every CPU of the domain needs.
    pub(crate) fn count_all(&mut self) {
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
    pub(crate) fn count(&mut self, cpu: CpuId, perf: Util) {
        if self.of.is_none() || perf > self.most {
            (self.second, self.most, self.of) = (self.most, perf, Some(cpu));
        } else {
            self.second = self.second.max(perf);
        }
    }

    pub(crate) fn sums(&self) -> (Util, Util, Option<CpuId>, Util) {
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
    #[inline]
    pub(crate) fn energy(&self, dst: Option<CpuId>) -> u64 {
        let total = Util(self.actual.0 * self.domain.cpus.len() as u64);
        let busy = self.busy.min(total);
        let sum = if dst.is_some() { Util(busy.0 + self.asked.busy.0).min(total) } else { busy };
        let (m, rev) = (self.asked.m, self.asked.m.rev);
        let max = self.max_util(dst).min(Util(self.capacity.0));
        let has_room = rev.has(features::SUGOV_EFFECTIVE_CPU_PERF);
        let max = if has_room { max } else { m.slots.series.room_pre_6_8(max) };
        self.domain.slots.perf_domain.energy(rev, max, sum, self.actual)
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
