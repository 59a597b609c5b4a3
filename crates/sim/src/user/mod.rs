//! User space: what the tasks of the workload do, and what they share.
//!
//! ```text
//! program ── next step ──> work, sleep, exit ─────────────> current: works, fall_asleep
//!                     └──> an act that concerns others ──> sync says who waits and who wakes ──> current: wakes
//! job of a hint session is done ──> power_hal, a task of its own ──> current: sets_uclamp_min
//! ```

pub(crate) mod for_ever;
mod inherit;
pub mod power_hal;
pub(crate) mod program;
pub(crate) mod sync;
pub(crate) mod together;

use crate::kernel::syscalls::Current;
use crate::state::costs::Kind;
use crate::state::machine::{SPEED_SHIFT, Todo};
use crate::time::work;
use crate::user::power_hal::tells_job;
use crate::user::program::{Program, Step};
use crate::user::together::Together;
use risetime_kernel::units::{Instant, Span, TaskId};
use risetime_model::workload::{self, LOG_WRITE};
use risetime_trace::Event;

/// Tells when tasks are awake and for how long they run, in place of their programs
/// (`run/replay.rs`).
pub(crate) trait Turns {
    /// The running task's next turn: it works, or sleeps. False: its program decides.
    fn turn(&mut self, current: &mut Current<'_, '_>) -> bool;
}

/// The programs of all tasks, and what they have in common.
pub(crate) struct User {
    /// Programs by task; `None`: one that is none of the workload's.
    programs: Vec<Option<Program>>,
    pub(crate) together: Together,
    pub(crate) turns: Option<Box<dyn Turns>>,
    /// Task whose [`Event::Step`]s are wanted.
    pub(crate) told_steps: Option<TaskId>,
    /// The entry into the phase that the start is known by is in the trace.
    told: bool,
    /// A task whose program makes no progress.
    pub(crate) stuck: Option<TaskId>,
    /// Service that hears of hint sessions.
    pub(crate) power_hal: Option<power_hal::Service>,
    /// Steps of tasks that told it something and were held up by that, or that are on their way into a call.
    held: Vec<(TaskId, Step)>,
    /// Calls by task, as far as one has called.
    calls: Vec<Call>,
}

/// Time that system calls take a task (`call_cost_ns`).
#[derive(Clone, Copy, Default)]
struct Call {
    /// True while the task is on its way into a system call.
    entered: bool,
    /// Time that calls have taken since the task's last work.
    spent: Span,
}

impl User {
    pub(crate) fn new(together: Together, told_steps: Option<TaskId>) -> User {
        User {
            programs: Vec::new(),
            together,
            turns: None,
            told_steps,
            told: false,
            stuck: None,
            power_hal: None,
            held: Vec::new(),
            calls: Vec::new(),
        }
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

    /// Takes the running task, done with what it did, on to its next step.
    pub(crate) fn advance(&mut self, current: &mut Current<'_, '_>) {
        current.enters_group();
        if self.serves(current) {
            return;
        }
        while self.next_step(current) {}
    }

    /// The running task's next step; true if it was one without time and it goes on.
    fn next_step(&mut self, current: &mut Current<'_, '_>) -> bool {
        let (now, task) = (current.m().now, current.task);
        current.binds_itself();
        let took = current.takes_policy();
        if !current.stays() {
            // The task's placement moves it.
            return false;
        }
        let begins_in = if took { current.begins_in() } else { Span(0) };
        if begins_in > Span(0) {
            current.works(Todo::Time(begins_in));
            return false;
        }
        // The phase that the start is known by is still entered.
        let start = &current.m().start;
        let told = start.phase.is_none() || std::mem::replace(&mut self.told, start.done);
        if told && self.given_turn(current) {
            return false;
        }
        if self.together.waits(task) && self.enters_call(current, Kind::Again) {
            return false;
        }
        if !self.resumes(current) {
            return false;
        }
        let held = self.held.iter().position(|(of, _)| *of == task);
        if held.is_some() {
            // What it was held up by, if not by somebody else.
            self.has_entered(task);
        }
        let step = match held.map(|at| self.held.swap_remove(at).1) {
            // Held up for as long as it was to sleep.
            Some(Step::SleepUntil(at)) if at <= now => return true,
            Some(step) => Some(step),
            None => match self.new_step(current) {
                Some(step) => step,
                None => return false,
            },
        };
        if !told && self.given_turn(current) {
            return false;
        }
        let todo = match step {
            Some(Step::Run(span, kind)) => {
                current.kind_of_work(kind);
                work::at_full_speed(self.less_spent(task, span, current.speed()))
            }
            Some(Step::Busy(span)) => {
                current.kind_of_work(0);
                Todo::Time(self.less_spent(task, span, 1 << SPEED_SHIFT))
            }
            Some(Step::Pieces { until, piece }) => {
                current.kind_of_work(0);
                work::pieces(piece, until)
            }
            Some(Step::Log) => {
                current.kind_of_work(0);
                Todo::Time(LOG_WRITE)
            }
            Some(Step::SharedTimer(timer, period, began)) => {
                return self.shared_timer(current, timer, period, began);
            }
            Some(Step::Act(event)) => {
                current.hears();
                return self.act(current, event);
            }
            Some(Step::SleepUntil(at)) => {
                if let Some(service) = &mut self.power_hal {
                    service.sleeps(task, at.since(now));
                }
                self.fall_asleep(current, Some(at));
                return false;
            }
            Some(Step::Exit) => {
                self.fall_asleep(current, None);
                return false;
            }
            Some(Step::Phase(_)) | None => {
                self.stuck = Some(task);
                return false;
            }
        };
        current.works(todo);
        false
    }

    /// The next step of the running task's program, unless it is held up before: `None`, and the step is kept. The inner `None`:
    /// the program makes no progress.
    fn new_step(&mut self, current: &mut Current<'_, '_>) -> Option<Option<Step>> {
        let task = current.task;
        let Some(step) = self.program_step(current)? else { return Some(None) };
        if self.calls_service(current) {
            // Whoever preempts it runs before its next event.
            self.held.push((task, step));
            current.works(Todo::Nothing);
            return None;
        }
        let pays = match step {
            Step::Act(workload::Event::Unlock(mutex)) if self.pays_first(task, mutex) => {
                self.enters_call(current, Kind::Wakeup)
            }
            _ => false,
        };
        let acts = matches!(step, Step::Act(_) | Step::SleepUntil(_));
        if pays || (acts && self.enters_call(current, Kind::Call)) {
            self.held.push((task, step));
            return None;
        }
        Some(Some(step))
    }

    /// The running task calls the kernel, which takes its time; false: it has been through that, or it takes none.
    fn enters_call(&mut self, current: &mut Current<'_, '_>, kind: Kind) -> bool {
        let task = current.task;
        if self.has_entered(task) {
            return false;
        }
        let span = current.takes(kind);
        if span == Span(0) {
            return false;
        }
        if self.calls.len() <= task.index() {
            self.calls.resize(task.index() + 1, Call::default());
        }
        let call = &mut self.calls[task.index()];
        (call.entered, call.spent) = (true, call.spent + span);
        current.works(Todo::Time(span));
        true
    }

    /// True if the task entered a system call since this was last asked; clears the mark.
    fn has_entered(&mut self, task: TaskId) -> bool {
        self.calls.get_mut(task.index()).is_some_and(|call| std::mem::take(&mut call.entered))
    }

    /// Whether the unlock of `mutex` by `task` wakes somebody who would be too late: the wakeup is the last that the
    /// call does, and the task may want the mutex again at once (glibc: `lll_unlock`, `futex_wake`).
    fn pays_first(&self, task: TaskId, mutex: u32) -> bool {
        let sync = &self.together.sync;
        !sync.pi
            && self.program(task).is_some_and(Program::contends)
            && sync.waiters(mutex).next().is_some()
    }

    /// The rest of a piece of work, in time at full speed, when calls have taken some of it
    /// already, at this speed. The virtual machine's agent keeps no more than 10 µs for the piece
    /// after it.
    fn less_spent(&mut self, task: TaskId, work: Span, speed: u64) -> Span {
        const KEPT: Span = Span::from_us(10);
        let Some(call) = self.calls.get_mut(task.index()) else { return work };
        let done = ((u128::from(call.spent.0) * u128::from(speed)) >> SPEED_SHIFT) as u64;
        let over = (u128::from(done.saturating_sub(work.0)) << SPEED_SHIFT) / u128::from(speed);
        call.spent = Span(over as u64).min(KEPT);
        Span(work.0.saturating_sub(done))
    }

    /// The next step of the running task's program, its phases entered; the inner `None`: it makes
    /// no progress. The outer one: the task goes on where its affinity moves it, or has no program.
    fn program_step(&mut self, current: &mut Current<'_, '_>) -> Option<Option<Step>> {
        let (now, task) = (current.m().now, current.task);
        loop {
            let Some(Some(program)) = self.programs.get_mut(task.index()) else { return None };
            if let Some(from) = current.timers_from() {
                program.count_timers_from(from);
            }
            let step = program.next(now);
            let number = program.done();
            while let Some(mark) = program.next_mark() {
                tells_job(&mut self.power_hal, current, mark);
            }
            if self.told_steps == Some(task) {
                current.emit(Event::Step { task, number });
            }
            match step {
                Some(Step::Phase(phase)) => self.enter_phase(current, phase),
                step => return Some(step),
            }
            if !current.stays() {
                return None;
            }
        }
    }

    #[inline]
    fn given_turn(&mut self, current: &mut Current<'_, '_>) -> bool {
        self.turns.as_mut().is_some_and(|turns| turns.turn(current))
    }

    /// Takes a task into a phase, with the phase's attributes.
    fn enter_phase(&mut self, current: &mut Current<'_, '_>, index: usize) {
        let task = current.task;
        let Some(program) = self.program(task) else { return };
        let phase = program.phase(index);
        current.emit(Event::Phase { task, index: index as u32, name: phase.name });
        if !phase.attr.is_empty() {
            let (spec, own) = program.spec_arc();
            current.set_attr(&spec[own].phases[index].attr);
        }
    }

    /// Puts the running task to sleep until `until`; `None`: it exits.
    fn fall_asleep(&mut self, current: &mut Current<'_, '_>, until: Option<Instant>) {
        self.before_sleep(current);
        current.fall_asleep(until);
    }

    /// Puts the running task to sleep until another one wakes it.
    fn waits(&mut self, current: &mut Current<'_, '_>) {
        self.before_sleep(current);
        current.waits();
    }

    /// Whether the next wakeup of the first task is the start.
    fn before_sleep(&mut self, current: &mut Current<'_, '_>) {
        if current.task == TaskId(0)
            && let Some(phase) = current.m().start.phase
            && let Some(program) = self.program(current.task)
        {
            current.start_is_upcoming(program.upcoming_phase() == phase);
        }
    }
}
