//! The engine: takes the next event, lets the machine react, and goes on.
//!
//! ```text
//! queue ── pop ──> event ──> core / cpufreq / balance change the machine and push events
//!                    └─ after each event: every CPU that needs to reschedule does so
//! ```
//!
//! Everything that happens at one instant happens in a fixed order: events by rank and
//! sequence ([`crate::time::queue`]), reschedules by CPU number.

use crate::kernel::governor::Governor;
use crate::kernel::placement::Placement;
use crate::run::replay::{Change, Given, Image, Kthread};
use crate::state::cpuset::CpuSet;
use crate::state::machine::{Machine, State, Todo};
use crate::state::preempt::Preempt;
use crate::time::queue::{Ev, Queue};
use crate::user::together::Together;
use risetime_kernel::units::{CpuId, Instant, KHz, Span, TaskId, Util};
use risetime_model::InputError;
use risetime_trace::{Event, RunError, TraceSink};

/// A simulation in progress.
pub(crate) struct Engine<'a> {
    pub(crate) m: Machine,
    pub(crate) q: Queue,
    pub(crate) governors: Vec<Box<dyn Governor>>,
    pub(crate) placement: Box<dyn Placement>,
    pub(crate) start: StartState,
    pub(crate) sink: &'a mut dyn TraceSink,
    /// Somebody wants them ([`TraceSink::listens`]).
    pub(crate) listens: bool,
    pub(crate) events: u64,
    /// CPUs with `need_resched` set that are awake.
    pub(crate) need_resched: CpuSet,
    /// How they got it.
    pub(crate) preempt: Preempt,
    /// CPUs whose task is in a throttled group and has not left yet ([`crate::kernel::bandwidth`]).
    pub(crate) throttle_work: CpuSet,
    /// CPU time that a frequency change costs the sugov kthread, at full speed.
    pub(crate) sugov_work: Span,
    /// Where the workload's first task is created, if that was said.
    pub(crate) first_cpu: Option<CpuId>,
    pub(crate) created_any: bool,
    /// Running number behind [`Task::listed`](crate::state::machine::Task::listed).
    pub(crate) listed: u64,
    /// Where the first task was created; the others are its siblings.
    pub(crate) parent_cpu: CpuId,
    /// `uclamp_min` and `uclamp_max` that hold for every task, whatever the workload says.
    pub(crate) forced_clamps: (Option<Util>, Option<Util>),
    /// The first tick after the grid was moved.
    pub(crate) grid_first: Option<Instant>,
    /// What the tasks share ([`crate::user::sync`]), and what they do with each other.
    pub(crate) together: Together,
    /// The state to start from.
    pub(crate) image: Option<Image>,
    /// When the start came.
    pub(crate) started: Instant,
    /// What another trace dictates, and the changes queued from it.
    pub(crate) given: Option<Given>,
    pub(crate) changes: Vec<Change>,
    /// See [`crate::Replay`].
    pub(crate) free_idle_exit: bool,
    /// See [`crate::Replay`].
    pub(crate) kthread: Option<Kthread>,
    /// Whose [`Event::Step`]s are wanted.
    pub(crate) told_steps: Option<TaskId>,
    /// A reservation that the machine cannot give.
    pub(crate) refused: Option<InputError>,
    /// A task whose program makes no progress.
    pub(crate) stuck: Option<TaskId>,
}

/// The start settings, until they have taken effect.
#[derive(Clone, Copy, Default)]
pub(crate) struct StartState {
    pub(crate) util: Option<Util>,
    pub(crate) period_contrib: Option<u32>,
    pub(crate) first_tick: Option<Span>,
    /// Into which phase of task 0; `None`: at its creation.
    pub(crate) phase: Option<usize>,
    /// The start has come; and everything has taken effect.
    pub(crate) begun: bool,
    pub(crate) done: bool,
    /// The phase's entry is in the trace.
    pub(crate) told: bool,
}

impl Engine<'_> {
    /// Runs until `end`, also where every task has exited before.
    pub(crate) fn run(&mut self, end: Instant) -> Result<Instant, RunError> {
        self.start();
        while self.step(end)? {}
        self.m.now = end;
        Ok(end)
    }

    /// Before the first event: the policies start, all CPUs idle.
    pub(crate) fn start(&mut self) {
        self.start_policies();
        for cpu in 0..self.m.cpus.len() {
            self.enter_idle(CpuId(cpu as u32));
            self.trace_cfs(CpuId(cpu as u32));
        }
    }

    /// One event with all that follows at once; false if there is none until `end`.
    pub(crate) fn step(&mut self, end: Instant) -> Result<bool, RunError> {
        let Some((at, ev)) = self.q.pop_until(end) else { return Ok(false) };
        self.m.now = at;
        self.dispatch(ev);
        self.drain_resched();
        self.pull_at_once();
        if self.together.failed.is_some() || self.refused.is_some() || self.stuck.is_some() {
            return Err(self.failure());
        }
        Ok(true)
    }

    /// Why the run cannot go on.
    #[cold]
    fn failure(&mut self) -> RunError {
        if let Some(failure) = self.together.failed.take() {
            return RunError::Failed(failure);
        }
        if let Some(refused) = self.refused.take() {
            return refused.into();
        }
        let comm = self.stuck.map_or("", |task| &self.m.task(task).comm);
        let at = self.m.now.as_ms();
        RunError::Failed(format!("task {comm}: its loops take no time (at {at} ms)"))
    }

    #[inline]
    pub(crate) fn emit(&mut self, event: Event<'_>) {
        self.events += 1;
        if self.listens {
            self.sink.event(self.m.now, &event);
        }
    }

    fn dispatch(&mut self, ev: Ev) {
        match ev {
            Ev::Given { index } => self.given_change(index),
            Ev::FreqDone { domain, generation } => self.freq_done(domain as usize, generation),
            Ev::WorkDone { cpu, generation } => self.work_done(cpu, generation),
            Ev::Timer { task, generation } => self.timer(task, generation),
            Ev::TimerAwake { task, generation } => self.timer_awake(task, generation),
            Ev::Woken { task, by } => self.woken(task, by),
            Ev::Create { task } if self.m.creator.is_some() && !self.is_fork(task) => {}
            Ev::Create { task } => self.create(task),
            Ev::Tick { cpu, generation } => self.tick(cpu, generation),
            Ev::ClassTimer { timer, awake } => self.class_timer(timer, awake),
            Ev::Resched { cpu } => self.idle_resched(cpu),
            Ev::NohzBalance { cpu } => self.nohz_balance(cpu),
            Ev::CfsPeriod { group, awake } => self.cfs_period(group, awake),
            Ev::CfsSlack { group, awake } => self.cfs_slack(group, awake),
            Ev::Irq { cpu, step } => self.irq(cpu, step),
            Ev::HwCap { domain, khz } => self.hw_cap(domain as usize, KHz(khz.into())),
            Ev::Hotplug { cpu, online } => self.hotplug(cpu, online),
        }
    }

    pub(crate) fn drain_resched(&mut self) {
        loop {
            self.drain_throttle_work();
            let Some(cpu) = self.need_resched.lowest() else { return };
            self.need_resched.remove(cpu);
            if self.is_in_irq_work(cpu) {
                continue;
            }
            self.schedule(cpu);
            if self.m.classes.push_rt {
                self.rto_push();
            }
        }
    }

    /// Whether `cpu` is still in the interrupt that wakes a kthread of its own; it then reschedules
    /// once for both. (A task that gives up the CPU is in no interrupt.)
    fn is_in_irq_work(&mut self, cpu: CpuId) -> bool {
        let (c, now) = (self.m.cpu(cpu), self.m.now);
        let until = c.irq_work_until;
        if until <= now || c.curr.is_some_and(|t| self.m.task(t).state != State::Runnable) {
            return false;
        }
        self.m.cpu_mut(cpu).resched_held = true;
        self.q.push(until, Ev::Resched { cpu });
        true
    }

    /// Books what the running task of `cpu` has done since the last time.
    pub(crate) fn book_progress(&mut self, cpu: CpuId) {
        let speed = self.m.speed_of(cpu);
        let now = self.m.now;
        let c = self.m.cpu_mut(cpu);
        if c.run_since > now {
            // An interrupt, or the switch itself, still has the CPU.
            return;
        }
        let ran = now.since(c.run_since);
        c.run_since = now;
        let Some(curr) = c.curr else { return };
        match &mut self.m.task_mut(curr).todo {
            Todo::Work(left) => *left = left.saturating_sub(u128::from(ran.0) * u128::from(speed)),
            Todo::Time(left) => left.0 = left.0.saturating_sub(ran.0),
            Todo::Nothing | Todo::Until(_) => {}
        }
    }

    /// Queues the moment at which the running task of `cpu` is done with its step.
    pub(crate) fn arm_work(&mut self, cpu: CpuId) {
        let speed = self.m.speed_of(cpu);
        let c = self.m.cpu(cpu);
        let now = self.m.now.max(c.run_since);
        let c = self.m.cpu_mut(cpu);
        c.work_gen = c.work_gen.wrapping_add(1);
        let generation = c.work_gen;
        let Some(curr) = c.curr else { return };
        let at = match self.m.task(curr).todo {
            Todo::Nothing => now,
            Todo::Until(at) => at.max(now),
            Todo::Time(left) => now + left,
            Todo::Work(left) => match u64::try_from(left) {
                Ok(left) => now + Span(left.div_ceil(speed)),
                Err(_) => Instant(
                    u64::try_from(left.div_ceil(u128::from(speed)))
                        .map_or(u64::MAX, |ns| now.0.saturating_add(ns)),
                ),
            },
        };
        self.q.push(at, Ev::WorkDone { cpu, generation });
    }

    fn work_done(&mut self, cpu: CpuId, generation: u32) {
        if self.m.cpu(cpu).work_gen != generation {
            return;
        }
        self.book_progress(cpu);
        if let Some(task) = self.m.cpu(cpu).curr {
            self.m.task_mut(task).todo = Todo::Nothing;
            self.advance(cpu, task);
        }
    }

    /// Sets the state; nothing else may.
    pub(crate) fn set_state(&mut self, task: TaskId, state: State) {
        self.m.task_mut(task).state = state;
    }
}
