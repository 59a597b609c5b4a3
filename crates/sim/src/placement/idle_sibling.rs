//! An idle CPU near the one the task wakes on (`select_idle_sibling`).
//!
//! In this order, each only if the task fits there: the target itself, the CPU it used before
//! if that shares the cache; then on machines of unequal capacity the first idle CPU of the
//! whole asymmetric domain that fits, else the best-fitting idle one; on others the first idle
//! CPU of the cache after the target; else the target.
//!
//! Leaves out: SMT, the search limit SIS_UTIL, clusters below the cache.
//! Source: kernel/sched/fair.c.

use super::Placed;
use crate::machine::Machine;
use crate::topology::sd;
use risetime_kernel::fits::Fit;
use risetime_kernel::units::{Capacity, CpuId, TaskId};
use risetime_trace::Why;

pub(super) fn select_idle_sibling(m: &Machine, task: TaskId) -> Placed {
    let target = m.task(task).cpu;
    let allowed = &m.task(task).allowed;
    let good = |cpu: CpuId| allowed.contains(cpu) && m.idle_cpu(cpu) && asym_fits(m, task, cpu);
    if good(target) {
        return Placed { cpu: target, why: Why::PrevCpu };
    }
    let recent = m.task(task).recent_used_cpu;
    if recent != target && shares_cache(m, recent, target) && good(recent) {
        return Placed { cpu: recent, why: Why::IdleSibling };
    }
    let idle = if m.root.asym_cpucap {
        select_idle_capacity(m, task, target)
    } else {
        select_idle_cpu(m, task, target)
    };
    match idle {
        Some(cpu) => Placed { cpu, why: Why::IdleSibling },
        None => Placed { cpu: target, why: Why::PrevCpu },
    }
}

/// `asym_fits_cpu`: only machines of unequal capacity ask.
fn asym_fits(m: &Machine, task: TaskId, cpu: CpuId) -> bool {
    !m.root.asym_cpucap || m.task_fits(task, cpu) == Fit::Fits
}

/// `cpus_share_cache`.
fn shares_cache(m: &Machine, a: CpuId, b: CpuId) -> bool {
    m.cpu(a).place.llc_id == m.cpu(b).place.llc_id
}

/// The first idle CPU of the asymmetric domain that fits; else the idle one that misses least:
/// only the boost first, then the biggest.
fn select_idle_capacity(m: &Machine, task: TaskId, target: CpuId) -> Option<CpuId> {
    let domain = m.cpu(target).sched_domains.iter().find(|d| d.has(sd::ASYM_CPUCAPACITY_FULL))?;
    let cpus = domain.span.and(&m.task(task).allowed);
    let mut best: Option<(bool, Capacity, CpuId)> = None;
    for cpu in cpus.iter_wrap(target).filter(|c| m.idle_cpu(*c)) {
        let fit = m.task_fits(task, cpu);
        if fit == Fit::Fits {
            return Some(cpu);
        }
        let boost_only = fit == Fit::BoostDoesNotFit;
        let capacity = if boost_only { m.cpu(cpu).capacity } else { m.capacity_of(cpu) };
        if best.is_none_or(|(b, c, _)| (boost_only && !b) || (boost_only == b && capacity > c)) {
            best = Some((boost_only, capacity, cpu));
        }
    }
    best.map(|(_, _, cpu)| cpu)
}

/// The first idle CPU that shares the cache, after the target.
fn select_idle_cpu(m: &Machine, task: TaskId, target: CpuId) -> Option<CpuId> {
    let cache = m.cpu(target).sched_domains.iter().rev().find(|d| d.has(sd::SHARE_LLC))?;
    let cpus = cache.span.and(&m.task(task).allowed);
    cpus.iter_wrap(CpuId(target.0 + 1)).find(|c| m.idle_cpu(*c))
}
