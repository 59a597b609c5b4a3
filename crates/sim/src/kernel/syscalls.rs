//! The task that runs on a CPU, and what it can ask the kernel for: the only way from user space into it.
//!
//! ```text
//! Kernel ── current(cpu, task) ──> Current   changes    what the task does next, whether it sleeps
//!                                            reads      all of the machine
//!                                            tells      the trace
//!                                            calls up   wake_up and wake_up_new_task of another task
//! ```
//!
//! What programs do is done by this and cannot reach past it: the field is private to this file.

use crate::kernel::Kernel;
use crate::kernel::fork::new_task;
use crate::state::costs::Kind;
use crate::state::machine::{Machine, Role, State, Todo};
use risetime_kernel::eevdf::DequeueKind;
use risetime_kernel::units::{CpuId, Instant, Span, TaskId, Util};
use risetime_model::workload::{Attr, Policy};
use risetime_trace::{Event, Name};

/// A running task (`current`), back in user mode.
pub(crate) struct Current<'k, 'a> {
    k: &'k mut Kernel<'a>,
    pub(crate) cpu: CpuId,
    pub(crate) task: TaskId,
}

impl<'a> Kernel<'a> {
    /// The task that runs on `cpu`.
    #[inline]
    pub(crate) fn current(&mut self, cpu: CpuId, task: TaskId) -> Current<'_, 'a> {
        debug_assert_eq!(self.m.cpu(cpu).curr, Some(task));
        Current { k: self, cpu, task }
    }
}

impl Current<'_, '_> {
    /// The machine, to read.
    #[inline]
    pub(crate) fn m(&self) -> &Machine {
        &self.k.m
    }
    /// Emits an event into the trace.
    #[inline]
    pub(crate) fn emit(&mut self, event: Event) {
        self.k.emit(event);
    }

    // ------------------------------------------------------------------ what it does

    /// Gives the task this to work on.
    #[inline]
    pub(crate) fn works(&mut self, todo: Todo) {
        self.k.m.task_mut(self.task).todo = todo;
        self.k.rq(self.cpu).arm_work();
    }
    /// Sets the kind of the work that comes next, 0 the plain one.
    pub(crate) fn kind_of_work(&mut self, kind: u16) {
        if self.m().task(self.task).kind != kind {
            self.k.rq(self.cpu).tell_progress();
            self.k.m.task_mut(self.task).kind = kind;
            self.k.emit(Event::Work { cpu: self.cpu, kind: kind.into() });
        }
    }
    /// The task's speed here and now ([`SPEED_SHIFT`](crate::state::machine::SPEED_SHIFT)).
    pub(crate) fn speed(&self) -> u64 {
        self.m().speed_of(self.cpu)
    }
    /// Puts the task to sleep until then; without a time it exits.
    pub(crate) fn fall_asleep(&mut self, until: Option<Instant>) {
        self.k.rq(self.cpu).fall_asleep(self.task, until);
    }
    /// Puts the task to sleep until it is woken.
    pub(crate) fn waits(&mut self) {
        self.k.rq(self.cpu).leave_queue(self.task, State::Sleeping, DequeueKind::Sleep);
    }
    /// `sched_yield`.
    pub(crate) fn sched_yield(&mut self) {
        self.k.rq(self.cpu).sched_yield();
    }
    /// The time that the task's next system call takes, or something of this kind that it does
    /// besides.
    #[inline]
    pub(crate) fn takes(&mut self, kind: Kind) -> Span {
        if self.m().costs.is_free(kind) {
            return Span(0);
        }
        self.k.rq(self.cpu).takes(kind, self.task)
    }
    /// Lets the task see requests to reschedule: it comes back from a system call.
    pub(crate) fn hears(&mut self) {
        self.k.rq(self.cpu).hears();
    }
    /// Whether it keeps the CPU: no affinity change has moved it, or will as soon as the stopper has run.
    pub(crate) fn stays(&self) -> bool {
        self.m().cpu(self.cpu).curr == Some(self.task) && !self.m().stop_pending(self.cpu)
    }

    // ------------------------------------------------------------------ what it is

    /// `sched_setattr` and `sched_setaffinity` of a task on itself.
    pub(crate) fn set_attr(&mut self, attr: &Attr) {
        self.k.rq(self.cpu).set_attr(self.task, attr);
    }
    /// Moves the task to its own group, which is its first act.
    #[inline]
    pub(crate) fn enters_group(&mut self) {
        self.k.rq(self.cpu).enters_group(self.task);
    }
    /// Makes the task a deadline or an idle task if it was to be one; true: just now.
    #[inline]
    pub(crate) fn takes_policy(&mut self) -> bool {
        self.m().task(self.task).sched.takes.is_some() && {
            self.k.rq(self.cpu).take_policy(self.task);
            true
        }
    }
    /// The time that the task goes on before it begins, once it has its policy.
    pub(crate) fn begins_in(&mut self) -> Span {
        let told = std::mem::take(&mut self.k.m.task_mut(self.task).begins_in);
        if told > Span(0) { told } else { self.takes(Kind::Call) }
    }
    /// Binds the task to the CPUs that it is to have, which is its first act.
    #[inline]
    pub(crate) fn binds_itself(&mut self) {
        if let Some(cpus) = self.k.m.task_mut(self.task).binds_itself.take() {
            self.k.rq(self.cpu).set_cpus_allowed(self.task, *cpus);
        }
    }
    /// The time from which the task's timers count, said once.
    #[inline]
    pub(crate) fn timers_from(&mut self) -> Option<Instant> {
        self.k.m.task_mut(self.task).timers_from.take()
    }
    /// Whether its next wakeup is the start.
    pub(crate) fn start_is_upcoming(&mut self, upcoming: bool) {
        self.k.m.start.upcoming = upcoming;
    }

    // ------------------------------------------------------------------ others

    /// `copy_process`: a child, which has what a child inherits. Not its sched-qos: `sched_qos_fork` gives every
    /// new task the system's default.
    pub(crate) fn copy_process(&mut self, comm: Name) -> TaskId {
        let m = &mut self.k.m;
        let nth = m.names.next(comm);
        let (child, mut t) = new_task(m, comm, nth, Role::User);
        let p = m.task(self.task);
        let nice = p.nice;
        t.set_allowed(&m.cpus, p.allowed);
        (t.asked, t.uclamp.request, t.limits) = (p.asked, p.uclamp.request, p.limits);
        let group = p.group;
        m.tasks.push(t);
        m.first_fork.get_or_insert(child);
        self.k.rq(self.cpu).set_nice(child, nice);
        let t = self.k.m.task_mut(child);
        (t.cpu, t.group) = (self.cpu, group);
        child
    }
    /// `wake_up_new_task`.
    pub(crate) fn wake_up_new_task(&mut self, child: TaskId) {
        self.k.create(child);
    }
    /// Wakes another task on behalf of this one, and charges this one for it.
    pub(crate) fn wakes(&mut self, task: TaskId) {
        self.k.wake_up_by(self.cpu, task);
        if !self.m().costs.is_free(Kind::Wakeup) {
            let span = self.k.rq(self.cpu).takes(Kind::Wakeup, task);
            self.k.rq(self.cpu).steal(span);
        }
    }
    /// Wakes another task at the end of a call that the running one has paid for already.
    pub(crate) fn wakes_at_last(&mut self, task: TaskId) {
        self.k.wake_up_by(self.cpu, task);
    }
    /// Wakes a task that may sleep until a time (`hrtimer_cancel`, `try_to_wake_up`); one that is
    /// not created yet is left alone.
    pub(crate) fn wakes_from_timer(&mut self, task: TaskId) {
        if self.m().task(task).state != State::Sleeping {
            return;
        }
        if let Some(cpu) = self.m().timer_cpu(task) {
            self.k.rq(cpu).cancels_sleep(task);
        }
        self.wakes(task);
    }
    /// `sched_setattr` of another task: its `uclamp_min` alone, at most what the run's own limit leaves.
    pub(crate) fn sets_uclamp_min(&mut self, task: TaskId, min: Util) {
        if matches!(self.m().task(task).state, State::New | State::Exited) {
            return;
        }
        let cpu = self.m().task(task).cpu;
        let max = self.m().task(task).asked.max;
        let attr = Attr { uclamp_min: Some(min.min(max)), ..Attr::default() };
        self.k.rq(cpu).set_attr(task, &attr);
    }
    /// `rt_mutex_setprio`: puts a task under the policy that it inherits, or under its own again.
    pub(crate) fn rt_mutex_setprio(&mut self, task: TaskId, policy: Policy) {
        if matches!(self.m().task(task).state, State::New | State::Exited) {
            return;
        }
        let cpu = self.m().task(task).cpu;
        self.k.rq(cpu).change_class(task, policy);
        self.k.rq(cpu).emit_policy(task);
    }
    /// Whether it goes on only later: somebody else is to run first, or what it has done takes its time.
    pub(crate) fn is_held_up(&self) -> bool {
        let m = self.m();
        m.need_resched.contains(self.cpu) || m.cpu(self.cpu).run_since > m.now
    }
}
