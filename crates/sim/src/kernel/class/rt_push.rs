//! Pushing and pulling of RT tasks: each runs on the CPU whose tasks matter least.
//!
//! ```text
//!  wakeup     stays, unless an RT task runs there that may not be disturbed, or the CPU is too small
//!  target     cpupri_find: the CPUs of the lowest level below the task's own, of those that fit
//!             its uclamp_min if there are any; of these its own, then the waker's, then one near
//!  push       more RT tasks than can run: the next one goes to such a CPU
//!  pull       a CPU whose RT task leaves asks the others to push
//! ```
//!
//! DEVIATES(rt_push_ipi): the CPUs that are asked to push their real-time tasks do so right after the
//! asking CPU has switched, where the kernel's interrupt goes round from one to the next
//! (`RT_PUSH_IPI`): a few µs earlier.
//! Leaves out: migrate_disable.
//! Source: kernel/sched/rt.c, kernel/sched/cpupri.c.

use crate::kernel::Kernel;
use crate::kernel::class::nearest::nearest_of;
use crate::kernel::placement::Placed;
use crate::kernel::rq::Rq;
use crate::state::effects::Effects;
use crate::state::hooks::Step;
use crate::state::machine::Machine;
use risetime_kernel::units::{CpuId, TaskId};
use risetime_trace::Why;

impl Machine {
    /// Whether `task`, queued on `cpu` and not running, may be pushed.
    fn rt_pushable(&self, cpu: CpuId, task: TaskId) -> bool {
        self.cpu(cpu).curr != Some(task) && self.task(task).nr_cpus_allowed > 1
    }

    /// `pick_next_pushable_task`.
    pub(super) fn next_pushable_rt(&self, cpu: CpuId) -> Option<TaskId> {
        let queue = &self.cpu(cpu).rt;
        if queue.is_empty()
            || (queue.len() == 1 && self.cpu(cpu).curr == queue.first().map(|q| q.1))
        {
            return None;
        }
        queue.iter().map(|(_, t)| t).find(|t| self.rt_pushable(cpu, *t))
    }
}

/// `select_task_rq_rt`.
pub(crate) fn select_task_rq_rt(
    m: &Machine,
    task: TaskId,
    this_cpu: CpuId,
    effects: &mut Effects,
) -> Placed {
    let prev = m.task(task).cpu;
    let stay = Placed { cpu: prev, why: Why::PrevCpu };
    let rank = m.rt_rank(task);
    let disturbs = m.cpu(prev).curr.is_some_and(|curr| {
        let held = m.task(curr).nr_cpus_allowed < 2 || m.rt_rank(curr) >= rank;
        m.rt_task(curr) && held
    });
    let allowed = m.task(task).allowed.contains(prev);
    if !disturbs && allowed && m.rt_fits(task, prev) {
        return stay;
    }
    let fallback = m.within_allowed(task, stay);
    let Some(target) = find_lowest_rq(m, task, this_cpu, effects) else { return fallback };
    // Not for a CPU that does not fit either, and only where it would run.
    let no_better = !disturbs && allowed && !m.rt_fits(task, target);
    let runs = m.cpu(target).rt.first().is_none_or(|(priority, _)| rank > priority);
    if target == prev || no_better || !runs {
        return fallback;
    }
    Placed { cpu: target, why: Why::LowestRq }
}

/// A new task's CPU (`select_task_rq_rt` at a fork): its parent, of its own rank, has the CPU they are on.
pub(crate) fn select_task_rq_rt_fork(m: &Machine, task: TaskId, effects: &mut Effects) -> Placed {
    let parent = m.task(task).cpu;
    let stay = m.within_allowed(task, Placed { cpu: parent, why: Why::PrevCpu });
    match m.cpupri_find(task, Some(parent)) {
        Some(lowest) => {
            Placed { cpu: nearest_of(m, &lowest, parent, parent, effects), why: Why::LowestRq }
        }
        None => stay,
    }
}

/// `find_lowest_rq`.
fn find_lowest_rq(
    m: &Machine,
    task: TaskId,
    this_cpu: CpuId,
    effects: &mut Effects,
) -> Option<CpuId> {
    if m.task(task).nr_cpus_allowed == 1 {
        return None;
    }
    if let Some(vendor) = m.vendor() {
        return m.vendor_lowest_rqs(vendor, task, m.task(task).clamps()).first().copied();
    }
    let lowest = m.cpupri_find(task, None)?;
    Some(nearest_of(m, &lowest, m.task(task).cpu, this_cpu, effects))
}

impl Rq<'_, '_> {
    /// `pull_rt_task`: the overloaded CPUs are told to push (`tell_cpu_to_push`).
    pub(crate) fn pull_rt_task(&mut self) {
        self.set_push_rt(true);
    }

    /// `task_woken_rt`: it does not get this CPU soon, so another one is looked for.
    pub(crate) fn task_woken_rt(&mut self, task: TaskId) {
        let cpu = self.cpu;
        let Some(curr) = self.m().cpu(cpu).curr.filter(|curr| *curr != task) else { return };
        let (own, woken) = (self.m().rt_rank(curr), self.m().rt_rank(task));
        let waits = own != 0 && (self.m().task(curr).nr_cpus_allowed < 2 || own >= woken);
        if waits && self.m().task(task).nr_cpus_allowed > 1 && !self.m().need_resched.contains(cpu)
        {
            self.push_rt_tasks();
        }
    }
}

impl Kernel<'_> {
    /// `push_rt_tasks`.
    pub(crate) fn push_rt_tasks(&mut self, cpu: CpuId) {
        if self.m.does(Step::PushOrPull) {
            while self.push_rt_task(cpu) {}
        }
    }

    /// `push_rt_task`: the next RT task goes where it can run; false: nowhere.
    fn push_rt_task(&mut self, cpu: CpuId) -> bool {
        if !self.m.does(Step::PushRt) {
            return false;
        }
        let Some(next) = self.m.next_pushable_rt(cpu) else { return false };
        let rank = self.m.rt_rank(next);
        // Idle is of the lowest rank: whoever waits there is about to be picked.
        if self.m.cpu(cpu).curr.is_none_or(|curr| rank > self.m.rt_rank(curr)) {
            self.rq(cpu).resched_curr();
            return false;
        }
        // `find_lock_lowest_rq`
        let to = find_lowest_rq(&self.m, next, cpu, &mut self.effects);
        self.m.classes.take_distribute(&mut self.effects);
        let Some(to) = to.filter(|to| *to != cpu) else { return false };
        if self.m.cpu(to).rt.first().is_some_and(|(priority, _)| priority >= rank) {
            return false;
        }
        self.move_queued(next, cpu, to, Why::RtPush);
        self.rq(to).resched_curr();
        true
    }
}
