//! Energy-aware placement: the CPU on which a waking task costs least
//! (`find_energy_efficient_cpu`).
//!
//! ```text
//! per performance domain: candidates = previous CPU, and the CPU with most spare capacity
//! cost of a candidate    = em_cpu_energy(with the task there) − em_cpu_energy(without it)
//! ```
//!
//! The previous CPU wins ties. A candidate that cannot give `uclamp_min` is taken only if none
//! can, the biggest first. Source: kernel/sched/fair.c.

use super::Placed;
use crate::cpuset::CpuSet;
use crate::machine::{Cpu, FreqDomain, Machine};
use risetime_kernel::KernelRev;
use risetime_kernel::cpu_util::{EffectiveUtil, TaskUtil, effective_cpu_util, scale_irq_capacity};
use risetime_kernel::energy_model::{EmPerfDomain, em_cpu_energy};
use risetime_kernel::fits::Fit;
use risetime_kernel::uclamp::UclampId;
use risetime_kernel::units::{Capacity, CpuId, TaskId, Util};
use risetime_trace::Why;

/// How well a CPU fits, in the kernel's order: fits, only its boost does not, not at all.
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
struct Candidates {
    prev: Option<(u64, i32)>,
    most_spare: Option<(CpuId, u64, i32)>,
}

pub(super) fn find_energy_efficient_cpu(m: &Machine, task: TaskId, this: CpuId) -> Option<Placed> {
    let prev = m.task(task).cpu;
    // The lowest domain from the waker's asymmetric one on that holds the previous CPU.
    let c = m.cpu(this);
    let domains = c.place.asym.map_or(&[][..], |level| &c.sched_domains[level..]);
    let span = &domains.iter().find(|d| d.span.contains(prev))?.span;
    Some(cheapest(m, task, prev, span))
}

fn cheapest(m: &Machine, task: TaskId, prev: CpuId, span: &CpuSet) -> Placed {
    let stay = Placed { cpu: prev, why: Why::PrevCpu };
    if m.task_util_est(task) == Util(0) && m.task(task).clamps().min == Util(0) {
        return stay;
    }
    let p = m.task_util(task);
    let (mut best, mut best_delta) = (None::<Best>, u64::MAX);
    let (mut prev_delta, mut prev_fits, mut prev_capacity) = (u64::MAX, -1, Capacity(0));
    // The list of performance domains begins with the one found last (`build_perf_domains`).
    for domain in m.domains.iter().rev() {
        let found = candidates(m, task, &p, domain, prev, span);
        if found.prev.is_none() && found.most_spare.is_none() {
            continue;
        }
        let capacity = m.cpu(domain.cpus[0]).actual;
        let without = Without::of(m, &p, domain);
        let energy = |dst| domain_energy(m, task, &p, domain, &without, dst);
        let base = energy(None);
        if let Some((_, fits)) = found.prev {
            let Some(delta) = energy(Some(prev)).checked_sub(base) else { return stay };
            (prev_delta, prev_fits, prev_capacity) = (delta, fits, capacity);
            best_delta = best_delta.min(delta);
        }
        let Some((cpu, spare, fits)) = found.most_spare else { continue };
        if found.prev.is_some_and(|(prev_spare, _)| spare <= prev_spare) {
            continue;
        }
        let (best_fits, best_capacity) = best.map_or((-1, Capacity(0)), |b| (b.fits, b.capacity));
        if fits < best_fits || (fits < 0 && capacity <= best_capacity) {
            continue;
        }
        let Some(delta) = energy(Some(cpu)).checked_sub(base) else { return stay };
        if fits > 0 && best_fits > 0 && delta >= best_delta {
            continue;
        }
        best_delta = delta;
        best = Some(Best { cpu, delta, fits, capacity });
    }
    match best {
        Some(b)
            if b.fits > prev_fits
                || (b.fits > 0 && b.delta < prev_delta)
                || (b.fits < 0 && b.capacity > prev_capacity) =>
        {
            Placed { cpu: b.cpu, why: Why::Energy }
        }
        _ => stay,
    }
}

/// The previous CPU (if it is in this domain) and the one with most spare capacity, each with
/// its spare capacity and how it fits; CPUs that do not fit are none.
fn candidates(
    m: &Machine,
    task: TaskId,
    p: &TaskUtil,
    domain: &FreqDomain,
    prev: CpuId,
    span: &CpuSet,
) -> Candidates {
    let t = m.task(task);
    let (mut util_min, mut util_max) = (t.clamps().min, t.clamps().max);
    let mut found = Candidates { prev: None, most_spare: None };
    let usable =
        |c: &&CpuId| span.contains(**c) && t.allowed.contains(**c) && !m.too_small(task, **c);
    for &cpu in domain.cpus.iter().filter(usable) {
        let c = m.cpu(cpu);
        let util = m.cpu_util(cpu, Some(p), Some(cpu), false);
        if !c.uclamp.uclamp_rq_is_idle() {
            util_min = c.uclamp.uclamp_rq_get(UclampId::Min).max(t.clamps().min);
            util_max = c.uclamp.uclamp_rq_get(UclampId::Max).max(t.clamps().max);
        }
        let fits = rank(m.util_fits(util, util_min, util_max, cpu));
        if fits == 0 {
            continue;
        }
        let spare = m.capacity_of(cpu).0.saturating_sub(util.0);
        if cpu == prev {
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

/// What a domain needs with the task nowhere, so that each candidate only adds its own CPU.
struct Without<'a> {
    em: EmPerfDomain<'a>,
    /// `eenv_pd_busy_time`.
    busy: Util,
    /// What the most and the second most demanding CPU make schedutil ask for, and which is first.
    most: Util,
    of: Option<CpuId>,
    second: Util,
}

impl<'a> Without<'a> {
    fn of(m: &Machine, p: &TaskUtil, domain: &'a FreqDomain) -> Without<'a> {
        let em = EmPerfDomain::new(&domain.em);
        let mut w = Without { em, busy: Util(0), most: Util(0), of: None, second: Util(0) };
        for &cpu in &domain.cpus {
            let (rq, plain) = (m.rq_util(cpu), m.cpu_util(cpu, Some(p), None, false));
            let boosted = match m.series.runnable_boost {
                true => m.cpu_util(cpu, Some(p), None, true),
                false => plain,
            };
            let eff = |util| effective_cpu_util(util, &rq, m.cpu(cpu).capacity);
            let needs = eff(boosted);
            w.busy += if boosted == plain { needs.util } else { eff(plain).util };
            let perf = match m.rev < KernelRev::V6_8 {
                // Clamped, and without headroom: the energy model adds it.
                true => m.frequency_util_pre_6_8(cpu, boosted, None),
                false => clamped(m, cpu, needs),
            };
            if w.of.is_none() || perf > w.most {
                (w.second, w.most, w.of) = (w.most, perf, Some(cpu));
            } else {
                w.second = w.second.max(perf);
            }
        }
        w
    }

    /// `eenv_pd_max_util`: what the busiest CPU makes schedutil ask for, with the task on `dst`.
    fn max_util(
        &self,
        m: &Machine,
        task: TaskId,
        p: &TaskUtil,
        domain: &FreqDomain,
        dst: Option<CpuId>,
    ) -> Util {
        let Some(dst) = dst else { return self.most };
        if m.series.no_decaying_headroom {
            // As posted, the energy estimate, too, counts as the last look at each CPU's util.
            let all = domain.cpus.iter().map(|c| perf(m, task, p, *c, Some(dst)));
            return all.max().unwrap_or_default();
        }
        let others = if self.of == Some(dst) { self.second } else { self.most };
        others.max(perf(m, task, p, dst, Some(dst)))
    }
}

/// `compute_energy`: of the whole domain, with the task on `dst` (`None`: nowhere).
fn domain_energy(
    m: &Machine,
    task: TaskId,
    p: &TaskUtil,
    domain: &FreqDomain,
    without: &Without<'_>,
    dst: Option<CpuId>,
) -> u64 {
    let Cpu { capacity, actual, .. } = *m.cpu(domain.cpus[0]);
    let total = Util(actual.0 * domain.cpus.len() as u64);
    let busy = without.busy.min(total);
    let sum =
        if dst.is_some() { Util(busy.0 + task_busy_time(m, task).0).min(total) } else { busy };
    let max = without.max_util(m, task, p, domain, dst).min(Util(capacity.0));
    em_cpu_energy(m.rev, &without.em, max, sum, actual, capacity)
}

/// `eenv_task_busy_time`, as seen by the wall clock of the CPU it was on. At least 1 where there are
/// no interrupts.
fn task_busy_time(m: &Machine, task: TaskId) -> Util {
    let (c, util) = (m.cpu(m.task(task).cpu), m.task_util_est(task).max(Util(1)));
    match c.pressure.as_ref().map(|p| p.irq_util()) {
        None => util,
        Some(irq) if irq.0 >= c.capacity.0 => Util(c.capacity.0),
        Some(irq) => Util(scale_irq_capacity(util.0, irq.0, c.capacity.0)),
    }
}

/// What `cpu` makes schedutil ask for with the task on `dst`.
fn perf(m: &Machine, task: TaskId, p: &TaskUtil, cpu: CpuId, dst: Option<CpuId>) -> Util {
    let t = m.task(task);
    let util = m.cpu_util(cpu, Some(p), dst, m.series.runnable_boost);
    if m.rev < KernelRev::V6_8 {
        return m.frequency_util_pre_6_8(cpu, util, (dst == Some(cpu)).then(|| t.clamps()));
    }
    let mut eff = m.effective(cpu, util);
    if dst == Some(cpu) {
        eff.min = eff.min.max(t.clamps().min);
        let idle = m.cpu(cpu).uclamp.uclamp_rq_is_idle();
        eff.max = if idle { t.clamps().max } else { eff.max.max(t.clamps().max) };
    }
    clamped(m, cpu, eff)
}

/// What schedutil makes of it: with headroom, and within the clamps.
fn clamped(m: &Machine, cpu: CpuId, eff: EffectiveUtil) -> Util {
    m.dvfs_util(cpu, eff.util, true).0.min(eff.max).max(eff.min)
}
