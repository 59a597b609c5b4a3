//! An idle CPU near a target (`select_idle_sibling`).
//!
//! ```text
//! the target · the previous CPU · the one used before that      idle, sharing the cache, big enough; the last one
//!                                                               (`recent_used_cpu`) since 4.16
//! unequal capacities     select_idle_capacity   first idle CPU that fits (on a core without work),
//!                                               else the one that misses least
//! no idle core known     select_idle_smt        a sibling thread of the previous CPU
//! select_idle_cpu        in the L2 of the target first, then in its cache, each from the target on:
//!    an idle core known     select_idle_core    all of whose threads are idle
//!    else                                       the first idle CPU among nr_idle_scan (SIS_UTIL)
//! else the target
//! ```
//!
//! "Idle" is also a CPU that only SCHED_IDLE tasks use, and what is in groups of that kind; from 7.1
//! on not for a SCHED_IDLE task. Every search begins at the target and wraps.
//! Source: kernel/sched/fair.c.

use crate::kernel::rq::Rq;
use crate::state::cpuset::CpuSet;
use crate::state::effects::Effects;
use crate::state::hooks::Point;
use crate::state::machine::Machine;
use crate::state::topology::{SchedDomain, SdShared, sd};
use risetime_kernel::features;
use risetime_kernel::fits::Fit;
use risetime_kernel::switches::Switch;
use risetime_kernel::units::{CpuId, TaskId};
use risetime_model::workload::Policy;

pub(super) fn select_idle_sibling(
    m: &Machine,
    task: TaskId,
    prev: CpuId,
    target: CpuId,
    effects: &mut Effects,
) -> CpuId {
    if let Some(placed) = m.cpu_instead(Point::IdleSibling { task, target }) {
        return placed.cpu;
    }
    let t = m.task(task);
    let good = |cpu: CpuId| choose_idle_cpu(m, cpu, task) && asym_fits_cpu(m, task, cpu);
    if good(target) {
        return target;
    }
    let mut prev_aff = None;
    if prev != target && m.cpus_share_cache(prev, target) && good(prev) {
        if !m.root.cluster || cpus_share_resources(m, prev, target) {
            return prev;
        }
        prev_aff = Some(prev);
    }
    // "sched/fair: Use a recently used CPU as an idle candidate and the basis for SIS".
    let mut recent = m.rev.has(features::RECENT_USED_CPU).then_some(t.recent_used_cpu);
    effects.recent_used_cpu(prev);
    if let Some(cpu) = recent
        && cpu != prev
        && cpu != target
        && m.cpus_share_cache(cpu, target)
        && t.allowed.contains(cpu)
        && good(cpu)
    {
        if !m.root.cluster || cpus_share_resources(m, cpu, target) {
            return cpu;
        }
    } else {
        recent = None;
    }
    let c = m.cpu(target);
    if m.root.asym_cpucap
        && let Some(level) = c.place.asym
    {
        return select_idle_capacity(m, task, &c.sched_domains[level], target, effects)
            .unwrap_or(target);
    }
    let Some(llc) = c.place.llc.map(|l| &c.sched_domains[l]) else { return target };
    let mut has_idle_core = false;
    if m.root.smt {
        has_idle_core = test_idle_cores(m, target);
        if !has_idle_core
            && m.cpus_share_cache(prev, target)
            && let Some(cpu) = select_idle_smt(m, task, llc, prev)
        {
            return cpu;
        }
    }
    let found = select_idle_cpu(m, task, llc, has_idle_core, target, effects);
    found.or(prev_aff).or(recent).unwrap_or(target)
}

/// `choose_idle_cpu`: nothing runs there, or nothing that this task would not preempt.
fn choose_idle_cpu(m: &Machine, cpu: CpuId, task: TaskId) -> bool {
    m.idle_cpu(cpu) || choose_sched_idle_rq(m, cpu, task)
}

/// `choose_sched_idle_rq`: what is queued there gives way to this task. Until 7.0 the task's own
/// policy did not matter (`sched_idle_cpu`).
pub(crate) fn choose_sched_idle_rq(m: &Machine, cpu: CpuId, task: TaskId) -> bool {
    sched_idle_rq(m, cpu)
        && (!m.rev.has(features::SCHED_IDLE_NOT_FOR_IDLE)
            || m.task(task).sched.policy != Policy::Idle)
}

/// `sched_idle_rq`: there is something queued, and all of it is of SCHED_IDLE or in an idle group
/// (`nr_running == h_nr_idle`).
pub(crate) fn sched_idle_rq(m: &Machine, cpu: CpuId) -> bool {
    if !m.classes.idle_used {
        return false;
    }
    let c = m.cpu(cpu);
    c.h_nr_queued() > 0
        && c.nr_running() == c.h_nr_queued()
        && m.fair_queued(cpu).all(|(task, _)| m.is_sched_idle(task))
}

/// `cpus_share_resources`: the L2, where some share one.
fn cpus_share_resources(m: &Machine, a: CpuId, b: CpuId) -> bool {
    m.cpu(a).place.share_id == m.cpu(b).place.share_id
}

/// `asym_fits_cpu`: on machines of unequal capacity the task must fit, on a core without other work.
fn asym_fits_cpu(m: &Machine, task: TaskId, cpu: CpuId) -> bool {
    // Until 7.1 the core did not count.
    let core = !m.rev.has(features::ASYM_CORE_IDLE) || is_core_idle(m, cpu);
    !m.root.asym_cpucap || (core && m.task_fits(task, cpu) == Fit::Fits)
}

/// `is_core_idle`: the other threads of the core are idle.
pub(crate) fn is_core_idle(m: &Machine, cpu: CpuId) -> bool {
    m.cpu(cpu).place.smt.iter().all(|t| *t == cpu || m.idle_cpu(*t))
}

fn balance_shared(m: &Machine, cpu: CpuId) -> Option<&SdShared> {
    m.cpu(cpu).place.balance_shared.map(|i| &m.root.shared[i])
}

fn test_idle_cores(m: &Machine, cpu: CpuId) -> bool {
    balance_shared(m, cpu).is_some_and(|s| s.has_idle_cores)
}

impl Rq<'_, '_> {
    /// `update_idle_core`: `cpu` goes idle, perhaps as the last of its core.
    pub(crate) fn update_idle_core(&mut self) {
        let cpu = self.cpu;
        if self.m().root.smt && !test_idle_cores(self.m(), cpu) && is_core_idle(self.m(), cpu) {
            self.set_idle_core();
        }
    }
}

/// The number of CPUs that a search of `domain` looks at; `None`: it is left out.
fn scan_limit(m: &Machine, shared: Option<usize>) -> Option<u32> {
    let shared = shared.filter(|_| m.slots.switches.on(Switch::SisUtil));
    match shared.map(|i| m.root.shared[i].nr_idle_scan) {
        Some(0) => None,
        Some(n) => Some(n),
        None => Some(u32::MAX),
    }
}

/// A sibling thread of `target` that is idle.
fn select_idle_smt(m: &Machine, task: TaskId, llc: &SchedDomain, target: CpuId) -> Option<CpuId> {
    let allowed = &m.task(task).allowed;
    let threads = m.cpu(target).place.smt.iter().copied();
    threads
        .filter(|c| *c != target && allowed.contains(*c) && llc.span.contains(*c))
        .find(|c| choose_idle_cpu(m, *c, task))
}

/// The core of `core` if all its threads are idle; else it leaves `cpus`, and a thread of it that is
/// idle is noted in `idle`.
fn select_idle_core(
    m: &Machine,
    task: TaskId,
    core: CpuId,
    cpus: &mut CpuSet,
    idle: &mut Option<CpuId>,
) -> bool {
    let mut whole = true;
    let threads = &m.cpu(core).place.smt;
    for &cpu in threads {
        if !m.idle_cpu(cpu) {
            whole = false;
            if idle.is_some() {
                break;
            }
            if choose_sched_idle_rq(m, cpu, task) && cpus.contains(cpu) {
                *idle = Some(cpu);
                break;
            }
        } else if idle.is_none() && cpus.contains(cpu) {
            *idle = Some(cpu);
        }
    }
    if !whole {
        threads.iter().for_each(|c| cpus.remove(*c));
    }
    whole
}

/// An idle CPU of the cache, on an idle core where there is one.
fn select_idle_cpu(
    m: &Machine,
    task: TaskId,
    llc: &SchedDomain,
    has_idle_core: bool,
    target: CpuId,
    effects: &mut Effects,
) -> Option<CpuId> {
    let mut left = scan_limit(m, m.cpu(target).place.llc_shared)?;
    let mut cpus = llc.span.and(&m.task(task).allowed);
    let mut idle = None;
    let near = Some(llc.local()).filter(|g| m.root.cluster && g.flags & sd::CLUSTER != 0);
    let start = CpuId(target.0 + 1);
    for cpu in near.iter().flat_map(|g| g.span.iter_wrap(start)) {
        if !cpus.contains(cpu) {
            continue;
        }
        if has_idle_core {
            if select_idle_core(m, task, cpu, &mut cpus, &mut idle) {
                return Some(cpu);
            }
        } else {
            // `--nr <= 0` of one more than the limit.
            left = left.checked_sub(1)?;
            if choose_idle_cpu(m, cpu, task) {
                return Some(cpu);
            }
        }
    }
    near.iter().flat_map(|g| g.span.iter()).for_each(|c| cpus.remove(c));
    let far = cpus;
    for cpu in far.iter_wrap(start) {
        if !has_idle_core {
            left = left.checked_sub(1)?;
            if choose_idle_cpu(m, cpu, task) {
                return Some(cpu);
            }
        } else if cpus.contains(cpu) && select_idle_core(m, task, cpu, &mut cpus, &mut idle) {
            return Some(cpu);
        }
    }
    if has_idle_core {
        effects.no_idle_core(target);
    }
    idle
}

/// The rank of how little a CPU misses what the task needs, lower is better (`enum
/// asym_fits_state`): first idle cores, then threads beside a busy one; on either, what fits but
/// for `uclamp_min` before what does not. (An idle core that fits is taken at once.)
fn rank(fit: Fit, idle_core: bool) -> i32 {
    const ASYM_IDLE_CORE_BIAS: i32 = -3;
    let thread = match fit {
        Fit::Fits => -2,
        Fit::BoostDoesNotFit => -1,
        Fit::DoesNotFit => 0,
    };
    if idle_core { thread + ASYM_IDLE_CORE_BIAS } else { thread }
}

/// The first idle CPU of the asymmetric domain that fits; else the idle one that misses least, of
/// those the biggest.
fn select_idle_capacity(
    m: &Machine,
    task: TaskId,
    domain: &SchedDomain,
    target: CpuId,
    effects: &mut Effects,
) -> Option<CpuId> {
    /// An idle core, but too small.
    const ASYM_IDLE_COMPLETE_MISFIT: i32 = -3;
    let by_core = m.rev.has(features::SELECT_IDLE_CAPACITY_CORE) && m.root.smt;
    let has_idle_core = by_core && test_idle_cores(m, target);
    let place = &m.cpu(target).place;
    // Until 7.1 every CPU was looked at.
    let limited =
        m.rev.has(features::SELECT_IDLE_CAPACITY_LIMIT) && place.balance_shared != place.llc_shared;
    let mut left = scan_limit(m, place.balance_shared.filter(|_| limited))?;
    let cpus = domain.span.and(&m.task(task).allowed);
    let mut best: Option<(i32, u64, CpuId)> = None;
    for cpu in cpus.iter_wrap(target) {
        let preferred = !has_idle_core || is_core_idle(m, cpu);
        if !has_idle_core {
            match left.checked_sub(1) {
                Some(n) => left = n,
                None => return best.map(|(_, _, cpu)| cpu),
            }
        }
        if !choose_idle_cpu(m, cpu, task) {
            continue;
        }
        let fit = m.task_fits(task, cpu);
        if fit == Fit::Fits && preferred {
            return Some(cpu);
        }
        let c = m.cpu(cpu);
        let capacity = if fit == Fit::BoostDoesNotFit { c.actual.0 } else { c.cpu_capacity.0 };
        let rank = rank(fit, preferred);
        let better = |&(r, c, _): &(i32, u64, CpuId)| rank < r || (rank == r && capacity > c);
        if best.as_ref().map_or(rank < 0 || capacity > 0, better) {
            best = Some((rank, capacity, cpu));
        }
    }
    if has_idle_core && best.is_none_or(|(rank, _, _)| rank > ASYM_IDLE_COMPLETE_MISFIT) {
        effects.no_idle_core(target);
    }
    best.map(|(_, _, cpu)| cpu)
}
