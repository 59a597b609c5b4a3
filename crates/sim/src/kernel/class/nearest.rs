//! Choice among the CPUs on which a task of a class above the fair one could run: real-time and
//! deadline tasks, and those of SCHED_HIGH, ask alike.
//!
//! Source: kernel/sched/rt.c:find_lowest_rq, kernel/sched/deadline.c:find_later_rq, lib/cpumask.c.

use crate::state::cpuset::CpuSet;
use crate::state::effects::Effects;
use crate::state::machine::Machine;
use risetime_kernel::features;
use risetime_kernel::units::CpuId;

/// Picks one of the CPUs `among`: the task's own, the waker's, one that shares a domain, any.
pub(crate) fn nearest_of(
    m: &Machine,
    among: &CpuSet,
    cpu: CpuId,
    this_cpu: CpuId,
    effects: &mut Effects,
) -> CpuId {
    if among.contains(cpu) {
        return cpu;
    }
    let this = Some(this_cpu).filter(|this| among.contains(*this));
    for level in 0..m.cpu(cpu).sched_domains.len() {
        let span = &m.cpu(cpu).sched_domains[level].span;
        if let Some(this) = this.filter(|this| span.contains(*this)) {
            return this;
        }
        if let Some(found) = any_distribute(m, &among.and(span), this_cpu, effects) {
            return found;
        }
    }
    this.or_else(|| any_distribute(m, among, this_cpu, effects)).unwrap_or(cpu)
}

/// Picks any of `among`, looked for on `this_cpu`; the first one up to 5.10 (that release is from
/// memory of the commit).
fn any_distribute(
    m: &Machine,
    among: &CpuSet,
    this_cpu: CpuId,
    effects: &mut Effects,
) -> Option<CpuId> {
    if !m.rev.has(features::RT_ANY_DISTRIBUTE) {
        return among.lowest();
    }
    let found = m.classes.any_distribute(among, this_cpu)?;
    effects.distributed(this_cpu, found);
    Some(found)
}
