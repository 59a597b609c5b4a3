//! What the tasks do: rt-app's model, parsed and checked.
//!
//! The file form is rt-app's JSON, strict about meaning and lenient about syntax:
//!
//! ```text
//! tasks      NAME: { instance, delay, loop, phases { NAME: { loop, attributes, events } },
//!            attributes: cpus, priority, policy, dl-runtime, dl-period, dl-deadline,
//!                        util_min, util_max, sched_qos, taskgroup
//!            events in file order, kind by prefix (run1, sleep_b) }
//! events     run, runtime, sleep, timer, mem, iorun, yield, fork
//!            lock, unlock, wait, signal, broad, sync, suspend, resume, barrier
//!            sem_wait, sem_post (rt-app has no semaphores)
//! taskgroups what the groups that tasks name may do ([`TaskGroup`]; not rt-app's)
//! global     duration, default_policy, calibration, mem_buffer_size, io_device; more is
//!            accepted without effect
//! ```
//!
//! All times are µs but `duration`, which is in s. A task without `phases` is a single phase;
//! without `loop` a task repeats for ever and a phase runs once. Comments, trailing commas
//! and repeated keys are accepted: repeated events and phases are all kept, in order; tasks
//! of the same name are all kept too, and the later ones are called `NAME#2`, `NAME#3`, …;
//! any other key given twice is an error, since its meaning would be a guess.
//!
//! Where rt-app has short forms, they are spelled out here:
//!
//! ```text
//! sync {c, m}    lock m, signal c, wait {c, m}, unlock m     without lock and unlock where the
//!                                                            task holds m already
//! suspend X      lock X, wait {X, X}, unlock X               X empty or left out: the task's own name
//! resume X       lock X, broad X, unlock X
//! ```
//!

mod actions;
mod bind;
mod events;
mod group;
mod hotplug;
mod json;
mod objects;
mod omitted;
mod policy;
mod qos;
mod read;

pub use group::{MAX_GROUPS, TaskGroup};
pub use objects::{Barrier, Objects};

pub use hotplug::Hotplug;
pub(crate) use read::about_in;

use risetime_kernel::sched_qos::SchedQosHint;
use risetime_kernel::units::{CpuId, Span, Util};

/// The most tasks that a workload may have, instances and forks counted.
pub const MAX_TASKS: usize = 10_000;

/// The most events that the phases of all tasks may hold, instances counted (loops are not
/// unrolled).
pub const MAX_EVENTS: usize = 1_000_000;

/// How often a task may be forked in a run (rt-app's own limit).
pub const MAX_FORKS: u32 = 1024;

/// What `mem` and `iorun` write in a µs, in bytes: 4 GB/s, an estimate of what one core writes
/// to memory.
pub const BYTES_PER_US: u64 = 4000;

/// What a system call of `iorun` takes, in ns: an estimate.
pub const WRITE_CALL_NS: u64 = 300;

/// A set of tasks, validated: at least one task and at most [`MAX_TASKS`], at most
/// [`MAX_EVENTS`] events in all, every loop takes time or may wait, no clamp pair is crossed, no
/// task unlocks or waits with a mutex that it does not hold, every object named exists. That its
/// CPUs exist, and what `run` means on them, is settled by [`Workload::bind`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// File stem or built-in name.
    pub name: String,
    /// One line for a reader: the comment at the head of the file, if there is one.
    pub about: String,
    /// The tasks that start, instances expanded, in file order.
    pub tasks: Vec<TaskSpec>,
    /// The tasks that [`Event::Fork`] makes copies of, by its number.
    pub forked: Vec<TaskSpec>,
    /// What the tasks share.
    pub objects: Objects,
    /// The task groups, by path: each behind the one above it. Empty: all tasks are in the root.
    pub groups: Vec<TaskGroup>,
    /// `global.duration`; `None`: until every task has exited or the run's own limit.
    pub duration: Option<Span>,
    /// `global.calibration: "CPUn"`: `run` means µs on that CPU at its top frequency.
    /// `None`: µs at capacity 1024 (or [`Workload::bind`] has rescaled them already).
    pub calibration: Option<CpuId>,
    /// CPUs that go and come, by time.
    pub hotplug: Vec<Hotplug>,
    /// Keys that were accepted and have no effect, with the reason, for the reader.
    pub without_effect: Vec<String>,
    /// Where `start_util`, `start_period_contrib` and `first_tick_ns` take effect.
    pub start_at: StartAt,
}

/// The moment at which the start settings take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// When the first task is created.
    Creation,
    /// When task 0 wakes into its phase of this index (`rampup`: the busy phase).
    Phase(usize),
}

impl Workload {
    /// The number of the task that is created first, the first in the file of those created at the
    /// same time: whom every command means where none is named.
    pub fn first_created(&self) -> usize {
        let by_time = |i: &usize| (self.tasks[*i].delay, *i);
        (0..self.tasks.len()).min_by_key(by_time).unwrap_or(0)
    }
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    /// Thread name, different for every task; several instances are `name-0`, `name-1`, …
    /// (15 bytes are not enforced).
    pub comm: String,
    /// Created this long after the workload starts.
    pub delay: Span,
    /// How often the list of phases is run.
    pub repeat: Repeat,
    /// The phases in order; at least one.
    pub phases: Vec<Phase>,
    /// Attributes at creation.
    pub attr: Attr,
}

/// What `phases` may change as well as the task: attributes a phase leaves out stay as they
/// were, but for its CPUs, which are its task's again (rt-app's rules).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attr {
    /// CPU affinity, ascending; `None`: at creation all CPUs, in a phase the task's own. Once
    /// [bound](Workload::bind), `None` in a phase is: unchanged.
    pub cpus: Option<Vec<CpuId>>,
    /// The class and its parameters; `None`: unchanged (at creation: SCHED_OTHER).
    pub policy: Option<Policy>,
    /// Nice value −20..=19; `None`: unchanged (at creation: 0). Kept, and without effect, while
    /// the task is not of the fair class.
    pub nice: Option<i8>,
    /// `util_min`; `None`: unchanged (at creation: 0).
    pub uclamp_min: Option<Util>,
    /// `util_max`; `None`: unchanged (at creation: 1024).
    pub uclamp_max: Option<Util>,
    /// Hints given to the scheduler, each of which the kernel would take; empty: none.
    pub qos: Vec<SchedQosHint>,
    /// The task group, as a path of [`Workload::groups`], "" the root; `None`: unchanged (at
    /// creation: the root).
    pub taskgroup: Option<String>,
}

impl Attr {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        let Attr { cpus, policy, nice, uclamp_min, uclamp_max, qos, taskgroup } = self;
        cpus.is_none()
            && policy.is_none()
            && nice.is_none()
            && uclamp_min.is_none()
            && uclamp_max.is_none()
            && qos.is_empty()
            && taskgroup.is_none()
    }
}

/// A scheduling policy with its parameters, such as the kernel accepts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// SCHED_OTHER: the fair class.
    Other {
        /// A slice of its own, 0.1 to 100 ms (kernels since 6.12); `None`: the base slice.
        slice: Option<Span>,
    },
    /// SCHED_BATCH: fair, but its wakeup never preempts.
    Batch {
        /// A slice of its own, as for [`Policy::Other`].
        slice: Option<Span>,
    },
    /// SCHED_IDLE: fair, with the smallest weight there is.
    Idle,
    /// SCHED_FIFO.
    Fifo {
        /// 1..=99, the highest first.
        priority: u8,
    },
    /// SCHED_RR.
    Rr {
        /// 1..=99, the highest first.
        priority: u8,
    },
    /// SCHED_DEADLINE; runtime ≤ deadline ≤ period.
    Deadline {
        /// Time that it may run in each period.
        runtime: Span,
        /// From an activation.
        deadline: Span,
        /// Shortest time between two activations.
        period: Span,
        /// It may use what others leave of their bandwidth (`SCHED_FLAG_RECLAIM`).
        reclaim: bool,
    },
}

impl Policy {
    /// The kernel's name of the policy.
    pub fn name(&self) -> &'static str {
        match self {
            Policy::Other { .. } => "SCHED_OTHER",
            Policy::Batch { .. } => "SCHED_BATCH",
            Policy::Idle => "SCHED_IDLE",
            Policy::Fifo { .. } => "SCHED_FIFO",
            Policy::Rr { .. } => "SCHED_RR",
            Policy::Deadline { .. } => "SCHED_DEADLINE",
        }
    }
    /// Whether it is one of the fair class's.
    pub fn is_fair(&self) -> bool {
        matches!(self, Policy::Other { .. } | Policy::Batch { .. } | Policy::Idle)
    }
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())?;
        match *self {
            Policy::Other { slice: Some(slice) } | Policy::Batch { slice: Some(slice) } => {
                write!(f, " slice {} µs", slice.0 / 1000)
            }
            Policy::Fifo { priority } | Policy::Rr { priority } => write!(f, " {priority}"),
            Policy::Deadline { runtime, deadline, period, reclaim } => {
                let [runtime, deadline, period] = [runtime, deadline, period].map(|s| s.0 / 1000);
                let reclaim = if reclaim { ", reclaims" } else { "" };
                write!(f, " {runtime}/{deadline}/{period} µs{reclaim}")
            }
            _ => Ok(()),
        }
    }
}

/// A named run of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Its key in the file; the task's own body is a single phase with the task's name.
    pub name: String,
    /// How often its events are run.
    pub repeat: Repeat,
    /// The events in order; at least one.
    pub events: Vec<Event>,
    /// Attributes set when it begins.
    pub attr: Attr,
}

/// How often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// A number of times; the parser rejects 0.
    Times(u32),
    /// For ever (`"loop": -1`).
    Forever,
}

/// One thing a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Work: as much as capacity 1024 at top frequency does in this time (rt-app `run`, once
    /// [`Workload::bind`] has rescaled it).
    Run(Span),
    /// Run until this much wall-clock time has passed since the event began (`runtime`).
    Runtime(Span),
    /// Sleep this long (`sleep`).
    Sleep(Span),
    /// rt-app's `timer`. A timer has a reference r, at first the time at which the task that
    /// first uses it began to run its first phase. Each use sets r = r + period and sleeps until
    /// r; if r is not ahead of now, it goes on at once, in relative mode with r = now.
    Timer {
        /// Which.
        timer: Timer,
        /// The period.
        period: Span,
    },
    /// Have a CPU for this long, at whatever speed it runs: what does not get faster with the
    /// frequency (`mem`, `iorun`, at [`BYTES_PER_US`] and [`WRITE_CALL_NS`]).
    Busy(Span),
    /// Let others run that wait for the CPU (`sched_yield`).
    Yield,
    /// Lock a mutex, of [`Objects::mutexes`]. Not fair: it wakes its waiters in the order in which
    /// they came, but who asks while the woken one is on its way gets it first.
    Lock(u32),
    /// Unlock it.
    Unlock(u32),
    /// Unlock the mutex, wait for a signal, and lock it again.
    Wait {
        /// Which of [`Objects::conds`].
        cond: u32,
        /// Which of [`Objects::mutexes`].
        mutex: u32,
    },
    /// Wake who has waited longest; without effect if nobody waits.
    Signal(u32),
    /// Wake all who wait.
    Broadcast(u32),
    /// Wait until as many tasks have come as there are users, of [`Objects::barriers`].
    Barrier(u32),
    /// Take one, of [`Objects::semaphores`], or wait for one.
    SemWait(u32),
    /// Give one.
    SemPost(u32),
    /// Create a task, of [`Workload::forked`].
    Fork(u32),
}

/// A timer that an event uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// Its number among the task's own (each `ref` is one; the same `ref` in several events of a
    /// task is the same timer), or in [`Objects::timers`].
    pub index: u32,
    /// Several tasks use it: its `ref` does not begin with "unique".
    pub shared: bool,
    /// An expiry missed does not move the later ones.
    pub absolute: bool,
}

impl Timer {
    /// The task's own timer of this number, in relative mode.
    pub const fn own(index: u32) -> Timer {
        Timer { index, shared: false, absolute: false }
    }
}

impl Event {
    /// Whether it takes time, or may do so: a loop without such an event would never end.
    pub const fn takes_time(&self) -> bool {
        match self {
            Event::Run(t) | Event::Runtime(t) | Event::Sleep(t) | Event::Busy(t) => t.0 > 0,
            Event::Timer { period, .. } => period.0 > 0,
            Event::Wait { .. } | Event::Barrier(_) | Event::SemWait(_) => true,
            Event::Yield
            | Event::Lock(_)
            | Event::Unlock(_)
            | Event::Signal(_)
            | Event::Broadcast(_)
            | Event::SemPost(_)
            | Event::Fork(_) => false,
        }
    }

    /// Whether it does anything: a loop of such events is none, if it ends.
    pub const fn acts(&self) -> bool {
        self.takes_time()
            || !matches!(
                self,
                Event::Run(_)
                    | Event::Runtime(_)
                    | Event::Sleep(_)
                    | Event::Busy(_)
                    | Event::Timer { .. }
            )
    }
}
