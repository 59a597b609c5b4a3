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
//! Leaves out: migrate_disable, CPUs offline.
//! Source: kernel/sched/deadline.c, kernel/sched/cpudeadline.c.

use crate::kernel::Kernel;
use crate::kernel::placement::Placed;
use crate::state::class::Class;
use crate::state::cpuset::CpuSet;
use crate::state::hooks::Step;
use crate::state::machine::{Machine, State};
use risetime_kernel::deadline::DlId;
use risetime_kernel::units::{Capacity, CpuId, Instant, TaskId};
use risetime_trace::Why;

impl Machine {
    /// `dl_task_is_earliest_deadline`: would `task` be the first of `cpu`?
    fn dl_is_earliest(&self, task: TaskId, cpu: CpuId) -> bool {
        self.cpu(cpu).dl.earliest().is_none_or(|earliest| self.dl(task).deadline < earliest)
    }

    /// The deadline task on `cpu` with the earliest deadline that waits and may move; `to`: to
    /// that CPU.
    fn next_pushable_dl(&self, cpu: CpuId, to: Option<CpuId>) -> Option<TaskId> {
        let c = self.cpu(cpu);
        let waiting = |(_, id): (Instant, DlId)| match id {
            DlId::Task(task) if c.curr != Some(task) => Some(task),
            _ => None,
        };
        let moves = |t: &TaskId| {
            let t = self.task(*t);
            t.nr_cpus_allowed > 1 && to.is_none_or(|to| t.allowed.contains(to))
        };
        c.dl.iter().filter_map(waiting).find(moves)
    }

    /// `cpudl_find`: the CPUs that `task` may go to.
    fn cpudl_find(&self, task: TaskId) -> CpuSet {
        let t = self.task(task);
        let (mut free, mut fitting) = (CpuSet::EMPTY, CpuSet::EMPTY);
        let mut biggest: Option<(Capacity, CpuId)> = None;
        let mut latest: Option<(Instant, CpuId)> = None;
        for cpu in (0..self.cpus.len() as u32).map(CpuId) {
            let (c, allowed) = (self.cpu(cpu), t.allowed.contains(cpu));
            match c.dl.earliest() {
                None if allowed => {
                    free.insert(cpu);
                    if !self.root.asym_cpucap || self.dl(task).fits_capacity(c.capacity) {
                        fitting.insert(cpu);
                    } else if biggest
                        .is_none_or(|(b, _)| c.capacity > b || (cpu == t.cpu && c.capacity == b))
                    {
                        biggest = Some((c.capacity, cpu));
                    }
                }
                Some(deadline) if latest.is_none_or(|(l, _)| deadline > l) => {
                    latest = Some((deadline, cpu));
                }
                _ => {}
            }
        }
        if !fitting.is_empty() {
            return fitting;
        }
        if !free.is_empty() {
            return biggest.map(|(_, cpu)| cpu).into_iter().collect();
        }
        let later =
            latest.filter(|(l, cpu)| t.allowed.contains(*cpu) && self.dl(task).deadline < *l);
        later.map(|(_, cpu)| cpu).into_iter().collect()
    }
}

impl Kernel<'_> {
    /// `select_task_rq_dl`.
    pub(super) fn select_task_rq_dl(&mut self, task: TaskId, this_cpu: CpuId) -> Placed {
        let prev = self.m.task(task).cpu;
        let stay = self.within_allowed(task, Placed { cpu: prev, why: Why::PrevCpu });
        let later_here = self.m.cpu(prev).curr.is_some_and(|curr| {
            self.m.class_of(curr) == Class::Deadline
                && (self.m.task(curr).nr_cpus_allowed < 2
                    || !self.m.dl(task).preempts(self.m.dl(curr)))
        });
        let moves = later_here && self.m.task(task).nr_cpus_allowed > 1;
        let too_small =
            self.m.root.asym_cpucap && !self.m.dl(task).fits_capacity(self.m.cpu(prev).capacity);
        if !moves && !too_small {
            return stay;
        }
        match self.find_later_rq(task, this_cpu) {
            Some(cpu) if cpu != prev && self.m.dl_is_earliest(task, cpu) => {
                Placed { cpu, why: Why::LaterRq }
            }
            _ => stay,
        }
    }

    /// `find_later_rq`.
    fn find_later_rq(&mut self, task: TaskId, this_cpu: CpuId) -> Option<CpuId> {
        if self.m.task(task).nr_cpus_allowed == 1 {
            return None;
        }
        let later = self.m.cpudl_find(task);
        (!later.is_empty()).then(|| self.nearest_of(&later, self.m.task(task).cpu, this_cpu))
    }

    /// `wakeup_preempt_dl`: the earlier deadline; of equals the one that cannot go elsewhere.
    pub(super) fn wakeup_preempt_dl(&mut self, cpu: CpuId, curr: TaskId, task: TaskId) -> bool {
        let (own, woken) = (self.m.dl(curr), self.m.dl(task));
        if woken.preempts(own) {
            return true;
        }
        if woken.deadline != own.deadline || self.m.need_resched.contains(cpu) {
            return false;
        }
        // `check_preempt_equal_dl`
        let moves =
            |t: TaskId| self.m.task(t).nr_cpus_allowed > 1 && !self.m.cpudl_find(t).is_empty();
        moves(curr) && !moves(task)
    }

    /// `task_woken_dl`.
    pub(super) fn task_woken_dl(&mut self, cpu: CpuId, task: TaskId) {
        let Some(curr) = self.m.cpu(cpu).curr.filter(|curr| *curr != task) else { return };
        if self.m.class_of(curr) == Class::Deadline
            && self.m.task(task).nr_cpus_allowed > 1
            && !self.m.need_resched.contains(cpu)
            && (self.m.task(curr).nr_cpus_allowed < 2 || !self.m.dl(task).preempts(self.m.dl(curr)))
        {
            self.push_dl_tasks(cpu);
        }
    }

    /// `push_dl_tasks`.
    pub(crate) fn push_dl_tasks(&mut self, cpu: CpuId) {
        while self.push_dl_task(cpu) {}
    }

    /// `push_dl_task`; false: nothing moved. A task that is replenished on an idle CPU moves, too: it is
    /// not current there yet.
    pub(super) fn push_dl_task(&mut self, cpu: CpuId) -> bool {
        if !self.m.does(Step::PushOrPull) {
            return false;
        }
        let Some(next) = self.m.next_pushable_dl(cpu, None) else { return false };
        if self.m.cpu(cpu).curr.is_some_and(|curr| {
            self.m.class_of(curr) == Class::Deadline
                && self.m.dl(next).deadline < self.m.dl(curr).deadline
                && self.m.task(curr).nr_cpus_allowed > 1
        }) {
            self.resched_curr(cpu);
            return false;
        }
        let Some(to) = self.find_later_rq(next, cpu).filter(|to| *to != cpu) else { return false };
        if !self.m.dl_is_earliest(next, to) {
            return false;
        }
        self.move_queued(next, cpu, to, Why::DlPush);
        self.resched_curr(to);
        true
    }

    /// `pull_dl_task`: takes what should rather run here.
    pub(super) fn pull_dl_task(&mut self, this_cpu: CpuId) {
        if !self.m.does(Step::PushOrPull) {
            return;
        }
        for cpu in (0..self.m.cpus.len() as u32).map(CpuId).filter(|cpu| *cpu != this_cpu) {
            if self.m.cpu(cpu).dl.tasks() < 2 {
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
