//! Tasks that wake, create and wait for each other: from a program's event to the machine.
//!
//! ```text
//! act       lock, wait, signal, …  ─> crate::user::sync says who waits and who wakes
//!             waits                ─> off the queue, as in any sleep, but without a timer
//!             wakes                ─> try_to_wake_up from the waker's CPU, without WF_SYNC (a futex's)
//! resume    a woken task that has a CPU tries again what it waited in
//! fork      a copy of a task of the file, placed as its parent's child
//! yield     sched_yield
//! ```
//!
//! DEVIATES(sync-free): without noise calls take no CPU time (`call_cost_ns`, `again_cost_ns`, `wakeup_cost_ns`): a signal and the unlock
//! after it are one moment, where in the virtual machine each takes some 10 µs. Who is woken while its waker still holds the
//! mutex does not see it held then, and falls asleep once less. Forking takes none in any case.
//!
//! A wakeup that preempts the waker does so at once: the waker goes on
//! with its next event when it has the CPU again.
//!
//! A task that is woken while it is still on its CPU is queued when it has left it (`p->on_cpu`).
//!
//! A forked task is placed with its parent's nice value, clamps and affinity. It takes on its own as
//! its first act, except affinity and clamps that the file does not give, and sleeps for its `delay`. It is of
//! the fair class from the start, also as the child of a real-time task.
//! That and its timers count from the workload's start, as those of all tasks do.
//!
//! Source: kernel/futex/waitwake.c; core.c:`do_sched_yield`; rt-app, `src/rt-app.c:create_thread`.

use crate::kernel::syscalls::Current;
use crate::state::machine::Todo;
use crate::user::User;
use crate::user::power_hal::tells_job;
use crate::user::program::Program;
use crate::user::sync::{Did, Objects, Wait};
use risetime_kernel::units::{Instant, Span, TaskId};
use risetime_model::workload::{Event, MAX_FORKS, MAX_TASKS, Policy, Timer};
use risetime_model::{Name, Workload};
use std::collections::BTreeMap;

/// Acts of tasks with each other.
#[derive(Default)]
pub(crate) struct Together {
    pub(crate) sync: Objects,
    /// Room for those that one act wakes.
    wakes: Vec<TaskId>,
    /// Number of times that each task of [`Workload::forked`] was forked.
    forks: Vec<u32>,
    /// Tasks that start: behind them in the list of specifications are those that are forked.
    started: usize,
    /// Progress of each forked task, by its number from the first.
    begun: Vec<Begun>,
    mutexes: Vec<String>,
    /// Policies of their own of tasks that are under one that they inherit.
    pub(super) own: BTreeMap<TaskId, Policy>,
    /// Failure that ended the run before its time.
    pub(crate) failed: Option<(TaskId, String)>,
}

/// Progress of a forked task before its program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begun {
    No,
    Attributes,
    Delay,
}

impl Together {
    /// Whether `task` has yet to get what it waits for, or was woken from.
    pub(super) fn waits(&self, task: TaskId) -> bool {
        self.sync.wait_of(task).0 != Wait::Nothing
    }
    pub(crate) fn new(workload: &Workload) -> Together {
        Together {
            sync: Objects::new(&workload.objects),
            forks: vec![0; workload.forked.len()],
            started: workload.tasks.len(),
            mutexes: workload.objects.mutexes.clone(),
            ..Together::default()
        }
    }
}

impl User {
    /// Carries out `event` for the running task; returns whether it goes on at once.
    pub(super) fn act(&mut self, current: &mut Current<'_, '_>, event: Event) -> bool {
        match event {
            Event::Yield => current.sched_yield(),
            Event::Fork(index) => self.fork(current, index),
            _ => {
                self.orders_waiters(current, event);
                let Together { sync, wakes, .. } = &mut self.together;
                let did = sync.act(current.task, event, current.m().now, wakes);
                if !wakes.is_empty() {
                    let mut wakes = std::mem::take(wakes);
                    let paid = matches!(event, Event::Unlock(_))
                        && !self.together.sync.pi
                        && self.program(current.task).is_some_and(Program::contends);
                    for woken in wakes.drain(..) {
                        match paid {
                            true => current.wakes_at_last(woken),
                            false => current.wakes(woken),
                        }
                    }
                    self.together.wakes = wakes;
                }
                self.inherits(current, event);
                return self.goes_on(current, did);
            }
        }
        self.goes_on(current, Did::Done)
    }

    /// A task that waited has a CPU again: true if it has got what it waited for. Also the first
    /// act of a forked one.
    pub(super) fn resumes(&mut self, current: &mut Current<'_, '_>) -> bool {
        if current.m().first_fork.is_some() && !self.begins(current) {
            return false;
        }
        if !self.together.waits(current.task) {
            return true;
        }
        let waited = self.together.sync.wait_of(current.task).0;
        let did = self.together.sync.resume(current.task, current.m().now);
        if let Wait::Mutex(mutex) | Wait::Cond { mutex, .. } = waited {
            self.inherits(current, Event::Lock(mutex));
        }
        self.goes_on(current, did)
    }

    /// True if the running task has done what it wanted and keeps the CPU.
    fn goes_on(&mut self, current: &mut Current<'_, '_>, did: Did) -> bool {
        match did {
            Did::Waits => {
                self.waits(current);
                false
            }
            Did::NotHeld(mutex) => {
                let mutex = self.together.mutexes.get(mutex as usize).map_or("?", |m| m.as_str());
                let what = format!(
                    "it unlocks mutex \"{mutex}\", which it does not hold (at {} ms)",
                    current.m().now.as_ms()
                );
                self.together.failed = Some((current.task, what));
                false
            }
            Did::Done if current.is_held_up() => {
                // Whoever preempts it runs before its next event.
                current.works(Todo::Nothing);
                false
            }
            Did::Done => true,
        }
    }

    /// A timer that several tasks use; true if its expiry is past.
    pub(super) fn shared_timer(
        &mut self,
        current: &mut Current<'_, '_>,
        timer: Timer,
        period: Span,
        began: Instant,
    ) -> bool {
        let (task, now) = (current.task, current.m().now);
        let expiry = self.together.sync.timer(timer, period, began, now);
        if let Some(Some(program)) = self.programs.get_mut(task.index()) {
            program.timer_used(timer, period, expiry);
            while let Some(mark) = program.next_mark() {
                tells_job(&mut self.power_hal, current, mark);
            }
            self.calls_service(current);
        }
        match expiry.sleeps {
            Some(until) => {
                self.fall_asleep(current, Some(until));
                false
            }
            None => true,
        }
    }

    // ------------------------------------------------------------------ fork

    /// Creates a copy of the forked task of this index, for the task that runs on `cpu`.
    fn fork(&mut self, current: &mut Current<'_, '_>, index: u32) {
        let parent = current.task;
        let Some(program) = self.program(parent) else { return };
        let (specs, spec) = (program.spec_arc().0, self.together.started + index as usize);
        if self.together.started + self.together.begun.len() >= MAX_TASKS {
            let what = format!(
                "it forks `{}`, and {MAX_TASKS} tasks are there already (at {} ms)",
                specs[spec].comm,
                current.m().now.as_ms()
            );
            self.together.failed = Some((parent, what));
            return;
        }
        let count = &mut self.together.forks[index as usize];
        let nth = *count;
        *count += 1;
        if nth >= MAX_FORKS {
            let what = format!(
                "it forks `{}` for the {}th time, rt-app's limit is {MAX_FORKS} (at {} ms)",
                specs[spec].comm,
                nth + 1,
                current.m().now.as_ms()
            );
            self.together.failed = Some((parent, what));
            return;
        }
        let comm = format!("{}-{nth:04}", specs[spec].comm);
        let child = current.copy_process(Name::new(&comm));
        let mut program = Program::new(specs, spec);
        program.count_timers_from(current.m().start.planned + program.spec().delay);
        self.follows(child, program);
        self.together.begun.push(Begun::No);
        current.wake_up_new_task(child);
    }

    /// Gives a forked task its own attributes and puts it to sleep for its delay; returns whether
    /// both are behind it.
    fn begins(&mut self, current: &mut Current<'_, '_>) -> bool {
        let task = current.task;
        let Some(first) = current.m().first_fork else { return true };
        let Some(number) = task.index().checked_sub(first.index()) else { return true };
        let Some(begun) = self.together.begun.get_mut(number) else { return true };
        let before = std::mem::replace(begun, Begun::Delay);
        let Some(program) = self.program(task) else { return true };
        let delay = program.spec().delay;
        match before {
            Begun::Delay => true,
            Begun::Attributes | Begun::No => {
                if before == Begun::No {
                    let mut attr = program.spec().attr.clone();
                    attr.policy = attr.policy.or(Some(Policy::Other { slice: None }));
                    attr.nice = attr.nice.or(Some(0));
                    current.set_attr(&attr);
                    if current.m().cpu(current.cpu).curr != Some(task) {
                        // The task goes on where its affinity has moved it.
                        self.together.begun[number] = Begun::Attributes;
                        return false;
                    }
                }
                let until = current.m().start.planned + delay;
                if until > current.m().now {
                    self.fall_asleep(current, Some(until));
                    return false;
                }
                true
            }
        }
    }
}
