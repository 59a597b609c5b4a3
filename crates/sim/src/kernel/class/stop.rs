//! The stop class: each CPU's `migration/N`, which comes before every other task and moves tasks away
//! from a CPU that will not leave it by themselves.
//!
//! ```text
//! stop_one_cpu_nowait(cpu, work) ── migration/N wakes ── takes the CPU from whoever runs
//!      stop_work_ns for each work, in the order asked for ── the work is done ── it sleeps again
//!
//! work                          asked for by
//! active_load_balance_cpu_stop  a look that found something to move, which runs (misfit, a thread beside
//!                               a busy one, balancing that failed too often)         [balance/pull.rs]
//! migration_cpu_stop            a running task that has forbidden itself its CPU
//! ```
//!
//! What the work finds counts when it is done, not when it was asked for: a task that has fallen asleep
//! or moved on meanwhile stays where it is. The class is in no PELT average and asks for no frequency;
//! the CPU's clocks go on, and what waits meanwhile is runnable, not running. While `stop_work_ns` is
//! not set, or 0, there is no such task, and the work is done the moment it is asked for.
//!
//! Left out: `push_cpu_stop`, which real-time and deadline tasks need where migration is disabled, as
//! nothing here disables it; `__balance_push_cpu_stop` of a CPU that goes offline
//! ([`crate::kernel::hotplug`]: at once); stop_machine.
//! Source: kernel/sched/stop_task.c; kernel/stop_machine.c:stop_one_cpu_nowait, cpu_stopper_thread;
//! kernel/sched/core.c:migration_cpu_stop, affine_move_task;
//! kernel/sched/fair.c:active_load_balance_cpu_stop.

use super::sched_class::{Preempts, SchedClass};
use crate::kernel::Kernel;
use crate::kernel::fork::new_task;
use crate::kernel::placement::select_fallback_rq;
use crate::kernel::rq::Rq;
use crate::state::class::Class;
use crate::state::class::StopWork;
use crate::state::class::Stopper;
use crate::state::hooks::Step;
use crate::state::machine::Machine;
use crate::state::machine::{Role, State, Todo};
use risetime_kernel::eevdf::DequeueKind;
use risetime_kernel::eevdf::EnqueueKind;
use risetime_kernel::units::{CpuId, Span, TaskId};
use risetime_model::Name;
use risetime_model::settings::{Default, Group, Home, Int, Neutral, Param, Range, Settings};
use risetime_trace::{Event, SwitchOut, Why};
use std::collections::VecDeque;

pub(crate) const STOP_WORK: Int = Int::new(Param {
    name: "stop_work_ns",
    doc: "time for which migration/N keeps a CPU before it moves a task away from it (active balance, affinity)",
    unit: "ns",
    range: Range::Int(0, 10_000_000),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Int(0)),
});

/// Cost of a stopper: nothing unless set.
pub(crate) const GROUP: Group = Group::of(&[STOP_WORK.0]).titled("The stop class");

/// A CPU's stopper, above all others.
pub(super) struct Stop;

impl SchedClass for Stop {
    fn about(&self) -> (&'static str, &'static str) {
        ("stop", "the stopper of each CPU: comes before everybody, moves tasks that run")
    }
    fn enqueue(&self, rq: &mut Rq<'_, '_>, _: TaskId, _: EnqueueKind, _: bool) {
        rq.queue_stopper(true);
    }
    fn dequeue(&self, rq: &mut Rq<'_, '_>, _: TaskId, _: DequeueKind) {
        rq.queue_stopper(false);
    }
    fn pick(&self, rq: &mut Rq<'_, '_>) -> Option<TaskId> {
        rq.m().pick_task_stop(rq.cpu)
    }
    fn wakeup_preempt(&self, _: &mut Rq<'_, '_>, _: TaskId, _: TaskId, _: bool) -> Preempts {
        Preempts::No
    }
}

impl Rq<'_, '_> {
    /// `enqueue_task_stop`, `dequeue_task_stop`.
    pub(super) fn queue_stopper(&mut self, on: bool) {
        if let Some(stopper) = self.c().stopper.as_mut() {
            stopper.queued = on;
        }
    }
}

impl Rq<'_, '_> {
    /// `stop_one_cpu_nowait`. A second active balance of the same CPU is not asked for.
    pub(crate) fn stop_one_cpu_nowait(&mut self, work: StopWork) {
        let Some(stopper) = self.c().stopper.as_mut() else { return };
        if matches!(work, StopWork::ActiveBalance { .. })
            && std::mem::replace(&mut stopper.active_balance, true)
        {
            return;
        }
        stopper.works.push_back(work);
        let task = stopper.task;
        self.wake_up(task);
    }
}

impl Kernel<'_> {
    /// A stopper for every CPU, if they take time.
    pub(crate) fn add_stoppers(&mut self, settings: &Settings) {
        let takes = Span(settings.get(&STOP_WORK).unwrap_or(0).max(0) as u64);
        if takes == Span(0) {
            return;
        }
        for cpu in (0..self.m.cpus.len() as u32).map(CpuId) {
            let comm = Name::new(&format!("migration/{}", cpu.0));
            let nth = self.m.names.next(comm);
            let (task, mut t) = new_task(&self.m, comm, nth, Role::Stopper);
            t.set_allowed(&self.m.cpus, [cpu].into_iter().collect());
            (t.cpu, t.sched.stop) = (cpu, true);
            self.m.tasks.push(t);
            self.m.cpu_mut(cpu).stopper = Some(Box::new(Stopper {
                task,
                takes,
                works: VecDeque::new(),
                doing: None,
                active_balance: false,
                queued: false,
            }));
        }
    }

    /// `cpu_stopper_thread`: the work it has spent its time on is done; on to the next.
    pub(crate) fn advance_stopper(&mut self, cpu: CpuId, task: TaskId) {
        let done = self.m.cpu_mut(cpu).stopper.as_mut().and_then(|s| s.doing.take());
        if let Some(done) = done {
            self.do_stop_work(cpu, done);
        }
        let Some(stopper) = self.m.cpu_mut(cpu).stopper.as_mut() else { return };
        stopper.doing = stopper.works.pop_front();
        if stopper.doing.is_some() {
            let takes = stopper.takes;
            self.m.task_mut(task).todo = Todo::Time(takes);
            self.rq(cpu).arm_work();
        } else {
            self.rq(cpu).leave_queue(task, State::Sleeping, DequeueKind::SleepSpecial);
        }
    }

    fn do_stop_work(&mut self, cpu: CpuId, work: StopWork) {
        match work {
            StopWork::ActiveBalance { to, why } => {
                if let Some(stopper) = self.m.cpu_mut(cpu).stopper.as_mut() {
                    stopper.active_balance = false;
                }
                self.active_load_balance_cpu_stop(cpu, to, why);
            }
            StopWork::Home { task, to } => {
                let t = self.m.task(task);
                let here = t.cpu == cpu && t.state == State::Runnable;
                let belongs =
                    t.sched.class() == Class::Deadline && t.slots.dl_rules.home == Some(to);
                if here && belongs && self.m.is_cpu_allowed(task, to) {
                    self.move_queued(task, cpu, to, Why::DlFits);
                }
            }
            StopWork::Migrate { task, to } => {
                let t = self.m.task(task);
                let here = t.cpu == cpu && t.state == State::Runnable;
                if here && !t.allowed.contains(cpu) {
                    let to = if self.m.is_cpu_allowed(task, to) {
                        to
                    } else {
                        select_fallback_rq(&self.m, task)
                    };
                    self.move_queued(task, cpu, to, Why::Affinity);
                }
            }
        }
    }

    /// `cpu` goes offline: what its stopper still has to do is done now, and it is off the CPU.
    pub(crate) fn park_stopper(&mut self, cpu: CpuId) {
        let Some(stopper) = self.m.cpu_mut(cpu).stopper.as_mut() else { return };
        let task = stopper.task;
        let left: Vec<StopWork> =
            stopper.doing.take().into_iter().chain(stopper.works.drain(..)).collect();
        for work in left {
            self.do_stop_work(cpu, work);
        }
        if self.m.task(task).state != State::Runnable {
            return;
        }
        let runs = self.m.cpu(cpu).curr == Some(task);
        if runs {
            self.rq(cpu).book_progress();
        }
        self.rq(cpu).leave_queue(task, State::Sleeping, DequeueKind::SleepSpecial);
        self.m.task_mut(task).todo = Todo::Nothing;
        if runs {
            let (now, c) = (self.m.now, self.m.cpu_mut(cpu));
            c.curr = None;
            c.idle_time.begins(now);
            c.work_gen = c.work_gen.wrapping_add(1);
            self.rq(cpu).counts_cycles(false);
            self.core_shared(cpu);
            let prev = Some((task, SwitchOut::Sleeping));
            self.emit(Event::Switch { cpu, prev, next: None });
        }
    }
}

impl Machine {
    /// Whether what a stopper does on `cpu` takes time.
    pub(crate) fn stops(&self, cpu: CpuId) -> bool {
        self.cpu(cpu).stopper.is_some() && self.does(Step::StopperTakesTime)
    }

    /// Whether the stopper of `cpu` has work, so that it is who runs next.
    pub(crate) fn stop_pending(&self, cpu: CpuId) -> bool {
        self.cpu(cpu).stopper.as_ref().is_some_and(|s| s.queued)
    }

    /// `pick_task_stop`.
    pub(super) fn pick_task_stop(&self, cpu: CpuId) -> Option<TaskId> {
        let stopper = self.cpu(cpu).stopper.as_ref()?;
        stopper.queued.then_some(stopper.task)
    }
}
