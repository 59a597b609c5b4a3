//! User space: what the tasks of the workload do, and what they share.
//!
//! ```text
//! program ── next step ──> work, sleep, exit ─────────────> kernel: arm_work, fall_asleep
//!                     └──> an act that concerns others ──> sync says who waits and who wakes ──> kernel: wake_up
//! ```

pub(crate) mod program;
pub(crate) mod sync;
pub(crate) mod together;

use crate::kernel::Kernel;
use crate::state::machine::{State, Todo};
use crate::time::work;
use crate::user::program::{Program, Step};
use crate::user::together::Together;
use risetime_kernel::eevdf::DequeueKind;
use risetime_kernel::units::{CpuId, Instant, TaskId};
use risetime_trace::Event;

/// Who says when tasks are awake and for how long they run, in place of their programs (`run/replay.rs`).
pub(crate) trait Turns {
    /// The running task's next turn: it works, or sleeps. False: its program decides.
    fn turn(&mut self, k: &mut Kernel<'_>, cpu: CpuId, task: TaskId) -> bool;
}

/// The programs of all tasks, and what they have in common.
pub(crate) struct User {
    /// By task; `None`: one that is none of the workload's.
    programs: Vec<Option<Program>>,
    pub(crate) together: Together,
    pub(crate) turns: Option<Box<dyn Turns>>,
    /// Whose [`Event::Step`]s are wanted.
    pub(crate) told_steps: Option<TaskId>,
    /// The entry into the phase that the start is known by is in the trace.
    told: bool,
    /// A task whose program makes no progress.
    pub(crate) stuck: Option<TaskId>,
}

impl User {
    pub(crate) fn new(together: Together, told_steps: Option<TaskId>) -> User {
        User { programs: Vec::new(), together, turns: None, told_steps, told: false, stuck: None }
    }

    /// `task` follows `program`.
    pub(crate) fn follows(&mut self, task: TaskId, program: Program) {
        if self.programs.len() <= task.index() {
            self.programs.resize_with(task.index() + 1, || None);
        }
        self.programs[task.index()] = Some(program);
    }

    fn program(&self, task: TaskId) -> Option<&Program> {
        self.programs.get(task.index())?.as_ref()
    }

    /// The running task is done with what it did: on to its next step.
    pub(crate) fn advance(&mut self, k: &mut Kernel<'_>, cpu: CpuId, task: TaskId) {
        k.enters_group(task);
        while self.next_step(k, cpu, task) {}
    }

    /// The running task's next step; true if it was one without time and it goes on.
    fn next_step(&mut self, k: &mut Kernel<'_>, cpu: CpuId, task: TaskId) -> bool {
        let now = k.m.now;
        // The phase that the start is known by is still entered.
        if k.m.task(task).sched.takes.is_some() {
            k.take_policy(task);
        }
        let start = &k.m.start;
        let told = start.phase.is_none() || std::mem::replace(&mut self.told, start.done);
        if told && self.given_turn(k, cpu, task) {
            return false;
        }
        if !self.resumes(k, cpu, task) {
            return false;
        }
        let step = loop {
            let Some(Some(program)) = self.programs.get_mut(task.index()) else { return false };
            if let Some(from) = k.m.task_mut(task).timers_from.take() {
                program.count_timers_from(from);
            }
            let step = program.next(now);
            let number = program.done();
            if self.told_steps == Some(task) {
                k.emit(Event::Step { task, number });
            }
            match step {
                Some(Step::Phase(phase)) => self.enter_phase(k, task, phase),
                step => break step,
            }
            if k.m.cpu(cpu).curr != Some(task) || k.m.stop_pending(cpu) {
                // An affinity change has moved it, or will as soon as the stopper has run: it goes on
                // there.
                return false;
            }
        };
        if !told && self.given_turn(k, cpu, task) {
            return false;
        }
        let todo = match step {
            Some(Step::Run(span)) => work::at_full_speed(span),
            Some(Step::Busy(span)) => Todo::Time(span),
            Some(Step::RunUntil(at)) => Todo::Until(at),
            Some(Step::SharedTimer(timer, period, began)) => {
                return self.shared_timer(k, cpu, task, timer, period, began);
            }
            Some(Step::Act(event)) => {
                k.rq(cpu).hears();
                return self.act(k, cpu, task, event);
            }
            Some(Step::SleepUntil(at)) => {
                self.fall_asleep(k, cpu, task, Some(at));
                return false;
            }
            Some(Step::Exit) => {
                self.fall_asleep(k, cpu, task, None);
                return false;
            }
            Some(Step::Phase(_)) | None => {
                self.stuck = Some(task);
                return false;
            }
        };
        k.m.task_mut(task).todo = todo;
        k.rq(cpu).arm_work();
        false
    }

    #[inline]
    fn given_turn(&mut self, k: &mut Kernel<'_>, cpu: CpuId, task: TaskId) -> bool {
        self.turns.as_mut().is_some_and(|turns| turns.turn(k, cpu, task))
    }

    /// A task enters a phase: it takes on the phase's attributes.
    fn enter_phase(&mut self, k: &mut Kernel<'_>, task: TaskId, index: usize) {
        let Some(program) = self.program(task) else { return };
        let phase = program.phase(index);
        k.emit(Event::Phase { task, index: index as u32, name: &phase.name });
        if !phase.attr.is_empty() {
            let (spec, own) = program.spec_arc();
            k.set_attr(task, &spec[own].phases[index].attr);
        }
    }

    /// The running task sleeps until `until`, or exits.
    fn fall_asleep(
        &mut self,
        k: &mut Kernel<'_>,
        cpu: CpuId,
        task: TaskId,
        until: Option<Instant>,
    ) {
        self.before_sleep(k, task);
        k.rq(cpu).fall_asleep(task, until);
    }

    /// The running task sleeps until somebody wakes it.
    fn waits(&mut self, k: &mut Kernel<'_>, cpu: CpuId, task: TaskId) {
        self.before_sleep(k, task);
        k.rq(cpu).leave_queue(task, State::Sleeping, DequeueKind::Sleep);
    }

    /// Whether the next wakeup of the first task is the start.
    fn before_sleep(&mut self, k: &mut Kernel<'_>, task: TaskId) {
        if task == TaskId(0)
            && let Some(phase) = k.m.start.phase
            && let Some(program) = self.program(task)
        {
            k.m.start.upcoming = program.upcoming_phase() == phase;
        }
    }
}
