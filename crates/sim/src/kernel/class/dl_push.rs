//! Global EDF: each CPU should run one of the earliest deadlines of the machine.
//!
//! ```text
//!  wakeup   stays, unless an earlier deadline runs there or the CPU is too small
//!  target   cpudl_find: a CPU without deadline tasks that is big enough (else the biggest);
//!           without one of those: the CPU whose earliest deadline is the latest, if it is later
//!  push     a queued deadline task that does not run goes to such a CPU
//!  pull     a CPU whose deadline task leaves takes the earliest ones that wait elsewhere
//! ```
//!
//! Other placements narrow this down ([`crate::mech::dl_rules`]).
//! Leaves out: migrate_disable, CPUs offline.
//! Source: kernel/sched/deadline.c, kernel/sched/cpudeadline.c.

use crate::kernel::Kernel;
use crate::kernel::class::deadline::Joins;
use crate::kernel::class::nearest::nearest_of;
use crate::kernel::placement::Placed;
use crate::kernel::rq::Rq;
use crate::state::class::Class;
use crate::state::effects::Effects;
use crate::state::hooks::Step;
use crate::state::machine::{Cpu, Machine, State};
use risetime_kernel::deadline::DlId;
use risetime_kernel::features;
use risetime_kernel::units::{CpuId, Instant, TaskId};
use risetime_trace::{Event, Why};

impl Machine {
    /// The deadline task on `cpu` with the earliest deadline that waits and may move; `to`: to
    /// that CPU.
    fn next_pushable_dl(&self, cpu: CpuId, to: Option<CpuId>) -> Option<TaskId> {
        let c = self.cpu(cpu);
        let waiting = |(_, id): (Instant, DlId)| match id {
            DlId::Task(task) if c.curr != Some(task) => Some(task),
            _ => None,
        };
        let moves = |id: &TaskId| {
            let t = self.task(*id);
            let there = |to| t.allowed.contains(to) && self.dl_moves(*id, to);
            t.nr_cpus_allowed > 1 && to.is_none_or(there)
        };
        c.dl.iter().filter_map(waiting).find(moves)
    }
}

/// `select_task_rq_dl`.
pub(crate) fn select_task_rq_dl(
    m: &Machine,
    task: TaskId,
    this_cpu: CpuId,
    effects: &mut Effects,
) -> Placed {
    let prev = m.task(task).cpu;
    let stay = m.within_allowed(task, Placed { cpu: prev, why: Why::PrevCpu });
    let later_here = m.cpu(prev).curr.is_some_and(|curr| {
        m.class_of(curr) == Class::Deadline
            && (m.task(curr).nr_cpus_allowed < 2 || !m.dl(task).preempts(m.dl(curr)))
    });
    let moves = later_here && m.task(task).nr_cpus_allowed > 1;
    let too_small = m.root.asym_cpucap && !m.dl(task).fits_capacity(m.cpu(prev).capacity);
    if !moves && !too_small {
        return stay;
    }
    match find_later_rq(m, task, this_cpu, effects) {
        Some(cpu) if cpu != prev && m.dl_is_earliest(task, cpu) => {
            Placed { cpu, why: Why::LaterRq }
        }
        _ => stay,
    }
}

/// `find_later_rq`.
fn find_later_rq(
    m: &Machine,
    task: TaskId,
    this_cpu: CpuId,
    effects: &mut Effects,
) -> Option<CpuId> {
    if m.task(task).nr_cpus_allowed == 1 {
        return None;
    }
    let later = m.cpudl_find(task);
    (!later.is_empty()).then(|| nearest_of(m, &later, m.task(task).cpu, this_cpu, effects))
}

impl Rq<'_, '_> {
    /// `task_woken_dl`.
    pub(crate) fn task_woken_dl(&mut self, task: TaskId) {
        let cpu = self.cpu;
        let Some(curr) = self.m().cpu(cpu).curr.filter(|curr| *curr != task) else { return };
        if self.m().class_of(curr) == Class::Deadline
            && self.m().task(task).nr_cpus_allowed > 1
            && !self.m().need_resched.contains(cpu)
            && (self.m().task(curr).nr_cpus_allowed < 2
                || !self.m().dl(task).preempts(self.m().dl(curr)))
        {
            self.push_dl_tasks();
        }
    }
}

impl Kernel<'_> {
    /// `push_dl_task`; false: nothing moved. From 6.7 on a task that is replenished on an idle CPU moves, too: it is not
    /// current there yet, and whoever is pushable makes the CPU overloaded. Before, two tasks did.
    /// Source: commit 177f608a4c82, "sched/deadline: Make dl_rq->pushable_dl_tasks update drive dl_rq->overloaded".
    pub(crate) fn push_dl_task(&mut self, cpu: CpuId) -> bool {
        if !self.m.does(Step::PushOrPull) {
            return false;
        }
        let by_pushable = self.m.rev.has(features::DL_PUSHABLE_OVERLOADED);
        if !by_pushable && self.m.cpu(cpu).dl.tasks() < 2 {
            return false;
        }
        let Some(next) = self.m.next_pushable_dl(cpu, None) else { return false };
        if self.m.cpu(cpu).curr.is_some_and(|curr| {
            self.m.class_of(curr) == Class::Deadline
                && self.m.dl(next).deadline < self.m.dl(curr).deadline
                && self.m.task(curr).nr_cpus_allowed > 1
        }) {
            self.rq(cpu).resched_curr();
            return false;
        }
        let to = find_later_rq(&self.m, next, cpu, &mut self.effects);
        self.m.classes.take_distribute(&mut self.effects);
        let Some(to) = to.filter(|to| *to != cpu) else { return false };
        if !self.m.dl_is_earliest(next, to) {
            return false;
        }
        self.move_queued(next, cpu, to, Why::DlPush);
        self.rq(to).resched_curr();
        true
    }

    /// `pull_dl_task`: takes what should rather run here.
    pub(crate) fn pull_dl_task(&mut self, this_cpu: CpuId) {
        if !self.m.does(Step::PushOrPull) {
            return;
        }
        // `dlo_mask`
        let crowded = |cpus: &[Cpu]| cpus.iter().position(|c| c.dl.tasks() >= 2);
        let mut from = 0;
        while let Some(at) = crowded(&self.m.cpus[from..]) {
            let cpu = CpuId((from + at) as u32);
            from = cpu.index() + 1;
            if cpu == this_cpu {
                continue;
            }
            let Some(task) = self.m.next_pushable_dl(cpu, Some(this_cpu)) else { continue };
            let about_to_run = self.m.cpu(cpu).curr.is_some_and(|curr| {
                self.m.class_of(curr) == Class::Deadline
                    && self.m.dl(task).deadline < self.m.dl(curr).deadline
            });
            if !about_to_run && self.m.dl_is_earliest(task, this_cpu) {
                debug_assert!(self.m.task(task).state == State::Runnable);
                self.move_queued(task, cpu, this_cpu, Why::DlPull);
            }
        }
    }
}

impl Rq<'_, '_> {
    /// `dl_task_timer`: a throttled task gets its runtime back.
    pub(crate) fn dl_task_timer(&mut self, task: TaskId) {
        let cpu = self.cpu;
        let now = self.m().rq_clock(cpu);
        self.dl_mut(task).timer = None;
        let waited = self.m().waits_for_period(task);
        if self.m().class_of(task) != Class::Deadline || !self.m().dl(task).throttled {
            return;
        }
        if self.m().task(task).state != State::Runnable {
            // The task's wakeup will queue it.
            self.dl_mut(task).replenish(now);
            self.tell_throttled(task);
            return;
        }
        if waited {
            self.emit(Event::Wakeup { task, cpu, why: Why::NewPeriod });
        }
        self.enqueue_task_dl(task, Joins::Replenish);
        let preempts = match self.m().cpu(cpu).curr {
            Some(curr) if curr == task => false,
            Some(curr) if self.m().class_of(curr) == Class::Deadline => {
                self.wakeup_preempt_dl(curr, task)
            }
            _ => true,
        };
        if preempts {
            self.resched_curr();
        }
        self.push_dl_task();
    }
}
