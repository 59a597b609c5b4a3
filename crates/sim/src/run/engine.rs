//! A simulation in progress: takes the next event, lets kernel and user space react, and goes on.
//!
//! ```text
//! queue ── pop ──> event ──> kernel, or user space by way of the running task
//!                    └─ after each event: every CPU that needs to reschedule does so, and whoever got it goes on
//! ```
//!
//! Everything that happens at one instant happens in a fixed order: events by rank and
//! sequence ([`crate::time::queue`]), reschedules by CPU number.

use crate::kernel::Kernel;
use crate::run::cause::{self, Without};
use crate::run::mechanisms;
use crate::run::replay::Steers;
use crate::state::machine::{Role, Todo};
use crate::time::queue::Ev;
use crate::user::User;
use risetime_kernel::units::{CpuId, Instant, TaskId};
use risetime_model::{InputError, Subject, Workload};
use risetime_trace::RunError;

/// A simulation.
pub(crate) struct Simulation<'a> {
    pub(crate) k: Kernel<'a>,
    pub(crate) user: User,
    /// Answers that another trace dictates.
    pub(crate) steers: Option<Steers>,
    /// Causes that are absent.
    pub(crate) without: Without,
}

/// Reason for which a run cannot go on.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// A request that is refused.
    Refused(InputError),
    /// A task does what cannot go on.
    Task { comm: String, what: String },
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stopped::Refused(e) => e.fmt(f),
            Stopped::Task { comm, what } => write!(f, "task {comm}: {what}"),
        }
    }
}

impl Stopped {
    /// The error, with the place in the workload's file where its task stands.
    pub(crate) fn located(self, workload: &Workload) -> RunError {
        match self {
            Stopped::Refused(e) => located(e, workload).into(),
            Stopped::Task { ref comm, .. } => {
                let at = workload.places.get(comm).map(|at| format!("{at}: "));
                RunError::Failed(format!("{}{self}", at.unwrap_or_default()))
            }
        }
    }
}

/// The error with the place in the workload's file where its task stands, if it is about one.
pub(crate) fn located(e: InputError, workload: &Workload) -> InputError {
    let at = match &e.subject {
        Some(Subject::Task(comm)) => workload.places.get(comm),
        _ => None,
    };
    match at {
        Some(at) => InputError { place: format!("{at}: {}", e.place), subject: None, ..e },
        None => e,
    }
}

impl Simulation<'_> {
    /// Runs until `end`, also where every task has exited before.
    pub(crate) fn run(&mut self, end: Instant) -> Result<Instant, Stopped> {
        self.start();
        while self.step(end)? {}
        self.k.m.now = end;
        Ok(end)
    }

    /// Starts the policies, with all CPUs idle, before the first event.
    pub(crate) fn start(&mut self) {
        let k = &mut self.k;
        (0..k.m.domains.len()).for_each(|domain| k.policy(domain).start_governor());
        for cpu in (0..k.m.cpus.len() as u32).map(CpuId) {
            k.rq(cpu).enter_idle();
            k.rq(cpu).trace_cfs();
        }
    }

    /// Handles one event with all that follows at once; false if there is none until `end`.
    pub(crate) fn step(&mut self, end: Instant) -> Result<bool, Stopped> {
        let Some((at, ev)) = self.k.q.pop_until(end) else { return Ok(false) };
        self.k.m.now = at;
        self.dispatch(ev);
        if !(self.k.m.need_resched.is_empty() && self.k.m.throttle_work.is_empty()) {
            self.drain_resched();
        }
        if self.without.pulls() {
            cause::pull_at_once(self);
        }
        let failed = self.user.together.failed.is_some() || self.user.stuck.is_some();
        if failed || self.k.refused.is_some() {
            return Err(self.failure());
        }
        Ok(true)
    }

    /// The reason for which the run cannot go on.
    #[cold]
    fn failure(&self) -> Stopped {
        let of = |task: TaskId, what: String| Stopped::Task {
            comm: self.k.m.task(task).comm.to_string(),
            what,
        };
        if let Some((task, what)) = &self.user.together.failed {
            return of(*task, what.clone());
        }
        if let Some(refused) = &self.k.refused {
            return Stopped::Refused(refused.clone());
        }
        let at = self.k.m.now.as_ms();
        let endless = self.user.stuck.unwrap_or(TaskId(0));
        of(endless, format!("its loops take no time (at {at} ms)"))
    }

    pub(crate) fn dispatch(&mut self, ev: Ev) {
        let k = &mut self.k;
        match ev {
            Ev::Given { index } => {
                if let Some(steers) = &self.steers {
                    steers.change(k, index);
                }
            }
            Ev::FreqDone { domain, generation } => {
                k.policy(domain as usize).freq_done(generation);
            }
            Ev::WorkDone { cpu, generation } => self.work_done(cpu, generation),
            Ev::Timer { task, generation } | Ev::IrqWork { task, generation } => {
                if let Some(cpu) = k.m.timer_expires(task, generation) {
                    k.rq(cpu).timer(task, generation);
                }
            }
            Ev::TimerAwake { task, generation } => {
                if let Some(cpu) = k.m.timer_expires(task, generation) {
                    k.rq(cpu).timer_awake(task);
                }
            }
            Ev::Woken { task, by } => k.wake_up_by(by, task),
            Ev::TtwuPending { cpu } => k.rq(cpu).wake_list_interrupt(),
            Ev::Create { task } if k.m.creator.is_some() && !k.m.is_fork(task) => {}
            Ev::Create { task } => k.create(task),
            Ev::Tick { cpu, generation } => k.rq(cpu).tick(generation),
            Ev::ClassTimer { timer, awake } => k.class_timer(timer, awake),
            Ev::GovernorTimer { cpu, generation, awake } => {
                k.policy(k.m.cpu(cpu).domain).governor_timer(cpu, generation, awake);
            }
            Ev::RunQueues { cpu, done } => k.rq(cpu).run_queues(done),
            Ev::Resched { cpu } => k.rq(cpu).idle_resched(),
            Ev::NohzBalance { cpu } => k.nohz_balance(cpu),
            Ev::CfsPeriod { group, awake } => k.cfs_period(group, awake),
            Ev::CfsSlack { group, awake } => k.cfs_slack(group, awake),
            Ev::Irq { cpu, step } => k.rq(cpu).irq(step),
            Ev::MechanismFirst(planned) | Ev::MechanismLast(planned) => {
                if mechanisms::event(k, planned) {
                    k.rebuild_sched_domains();
                }
            }
            Ev::Hotplug { cpu, online } => k.hotplug(cpu, online),
        }
    }

    /// Reschedules every CPU that needs to, and lets the tasks go on that got a CPU by it.
    pub(crate) fn drain_resched(&mut self) {
        loop {
            while !self.k.m.throttle_work.is_empty() {
                let due: Vec<CpuId> = self.k.m.throttle_work.iter().collect();
                let leaves = |cpu: &CpuId| !self.k.rq(*cpu).throttle_work_waits();
                let Some(cpu) = due.into_iter().find(leaves) else { break };
                if let Some(task) = self.k.rq(cpu).throttle_cfs_rq_work() {
                    self.go_on(cpu, task);
                }
            }
            let Some(cpu) = self.k.m.need_resched.lowest() else { return };
            self.k.m.need_resched.remove(cpu);
            if self.k.rq(cpu).is_in_irq_work() {
                continue;
            }
            if let Some(task) = self.k.rq(cpu).schedule() {
                self.go_on(cpu, task);
            }
            if self.k.m.classes.push_groups {
                self.k.rq(cpu).push_throttled_groups();
            }
            if self.k.m.classes.push_rt {
                self.k.rto_push();
            }
        }
    }

    /// Lets the running task go on: it is in user mode (or, a kthread, back at its work).
    fn go_on(&mut self, cpu: CpuId, task: TaskId) {
        let m = &self.k.m;
        if m.task(task).todo == Todo::Nothing && m.cpu(cpu).run_since <= m.now {
            self.advance(cpu, task);
        } else {
            self.k.rq(cpu).arm_work();
        }
    }

    fn work_done(&mut self, cpu: CpuId, generation: u32) {
        if self.k.m.cpu(cpu).work_gen != generation {
            return;
        }
        self.k.rq(cpu).book_progress();
        if let Some(task) = self.k.m.cpu(cpu).curr {
            self.k.m.task_mut(task).todo = Todo::Nothing;
            self.advance(cpu, task);
        }
    }

    /// Takes the running task, whose step is over, on to its next one.
    fn advance(&mut self, cpu: CpuId, task: TaskId) {
        match self.k.m.task(task).role {
            Role::User => self.user.advance(&mut self.k.current(cpu, task)),
            Role::Sugov(domain) => self.k.policy(domain).advance_sugov(cpu, task),
            Role::Stopper => self.k.advance_stopper(cpu, task),
            Role::Creator => {
                if let Some(steers) = &self.steers {
                    steers.advance_creator(&mut self.k, cpu, task);
                }
            }
        }
    }
}
