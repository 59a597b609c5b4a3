//! Does a wakeup pull the task to the waker's CPU, or does it stay around its previous one
//! (`wake_affine`)?
//!
//! ```text
//! wake_wide            the one of waker and wakee that wakes fewer has flips ≥ size of the cache,
//!                      and the other that many times as many: a server with clients, so no
//! wake_affine_idle     the waker's CPU is idle (an interrupt) and shares the cache   → there, unless
//!                                                                        the previous one is idle, too
//!                      synchronous, and the waker is alone                           → there
//!                      the previous CPU is idle                                      → stay
//! wake_affine_weight   (load here + task) · capacity there < (load there − task) · capacity here · bias
//!                      bias = 100 + (imbalance_pct − 100) / 2, of 100
//! ```
//!
//! Left out: the per-CPU kthread that completes a wakee's work (no such kthread is simulated).
//! Source: kernel/sched/fair.c.

use super::Waker;
use crate::kernel::rq::Rq;
use crate::state::machine::Machine;
use crate::state::topology::Shape;
use risetime_kernel::switches::Switch;
use risetime_kernel::units::{CpuId, TaskId};

impl Rq<'_, '_> {
    /// `record_wakee`: this CPU, or who runs on it, wakes `task`.
    pub(crate) fn record_wakee(&mut self, task: TaskId) {
        if self.m().task(task).nr_cpus_allowed == 1 {
            return;
        }
        let (now, second) = (self.m().jiffies(), u64::from(self.m().platform.hz));
        let wakees = match self.m().cpu(self.cpu).curr {
            Some(curr) => &mut self.t(curr).wakees,
            None => &mut self.c().idle_wakees,
        };
        if now > wakees.decayed_at + second {
            (wakees.flips, wakees.decayed_at) = (wakees.flips >> 1, now);
        }
        if wakees.last != Some(task) {
            wakees.last = Some(task);
            wakees.flips += 1;
        }
    }
}

/// `wake_wide`: the waker serves many, so that they are better spread.
pub(super) fn wake_wide(m: &Machine, task: TaskId, waker: Waker) -> bool {
    let c = m.cpu(waker.cpu);
    let waking = c.curr.map_or(c.idle_wakees.flips, |curr| m.task(curr).wakees.flips);
    let (a, b) = (waking, m.task(task).wakees.flips);
    let (master, slave) = (a.max(b), a.min(b));
    let factor = c.place.llc_size;
    slave >= factor && u64::from(master) >= u64::from(slave) * u64::from(factor)
}

/// `wake_affine`: the waker's CPU or the previous one.
pub(super) fn wake_affine(m: &Machine, domain: &Shape, task: TaskId, waker: Waker) -> CpuId {
    let prev = m.task(task).cpu;
    let on = |switch| m.slots.switches.on(switch);
    let idle = on(Switch::WaIdle).then(|| wake_affine_idle(m, prev, waker)).flatten();
    let weight = || wake_affine_weight(m, domain, task, prev, waker);
    let target = idle.or_else(|| on(Switch::WaWeight).then(weight).flatten());
    if target == Some(waker.cpu) { waker.cpu } else { prev }
}

fn wake_affine_idle(m: &Machine, prev: CpuId, waker: Waker) -> Option<CpuId> {
    let this = waker.cpu;
    if m.idle_cpu(this) && m.cpus_share_cache(this, prev) {
        return Some(if m.idle_cpu(prev) { prev } else { this });
    }
    let c = m.cpu(this);
    let delayed = c.h_nr_queued() - c.h_nr_runnable();
    if waker.sync && c.nr_running() - delayed == 1 {
        return Some(this);
    }
    m.idle_cpu(prev).then_some(prev)
}

fn wake_affine_weight(
    m: &Machine,
    domain: &Shape,
    task: TaskId,
    prev: CpuId,
    waker: Waker,
) -> Option<CpuId> {
    let load = |cpu: CpuId| m.cpu(cpu).cfs_avg.avg.load_avg as i128;
    let of = |task: TaskId| m.task_h_load(task) as i128;
    let capacity = |cpu: CpuId| i128::from(m.capacity_of(cpu).0);
    let this = waker.cpu;
    let mut here = load(this);
    if waker.sync {
        let waking = m.cpu(this).curr.map_or(0, of);
        if waking > here {
            return Some(this);
        }
        here -= waking;
    }
    here = (here + of(task)) * 100 * capacity(prev);
    let more = (i128::from(domain.imbalance_pct) - 100) / 2;
    let bias = if m.slots.switches.on(Switch::WaBias) { 100 + more } else { 100 };
    let mut there = (load(prev) - of(task)) * bias * capacity(this);
    // Equal is good enough for a waker about to sleep.
    there += i128::from(waker.sync);
    (here < there).then_some(this)
}
