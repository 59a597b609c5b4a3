//! Workloads, the actions of tasks: rt-app's model, parsed and checked.
//!
//! The file form is rt-app's JSON, strict about meaning and lenient about syntax:
//!
//! ```text
//! tasks      NAME: { instance, delay, loop, phases { NAME: { loop, attributes, events } },
//!            attributes: cpus, priority, policy, dl-runtime, dl-period, dl-deadline,
//!                        util_min, util_max, latency_nice, sched_qos, taskgroup
//!            events in file order, kind by prefix (run1, sleep_b) }
//! events     run, runtime, sleep, timer, mem, iorun, yield, fork
//!            lock, unlock, wait, signal, broad, sync, suspend, resume, barrier
//!            sem_wait, sem_post (rt-app has no semaphores)
//! taskgroups what the groups that tasks name may do ([`TaskGroup`]; not rt-app's)
//! global     partitions (CPUs of exclusive cpusets; not rt-app's), duration, default_policy, calibration, mem_buffer_size, io_device; more is
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
mod change;
mod doubt;
mod events;
mod export;
mod group;
mod hotplug;
mod job;
mod json;
mod meet;
mod objects;
mod omitted;
mod partitions;
mod placeholder;
mod policy;
mod qos;
mod read;
mod rtapp;
mod tree;
mod yaml;

pub use change::{Change, KeyOf};
pub use export::Exported;
pub use group::MAX_GROUPS;
pub use objects::{Barrier, Objects};
pub use risetime_job::mark::{JobMark, Link, MARK_NUMBERS, Marks, Stage};
pub use risetime_job::program::{Counter, Step};
pub use risetime_job::{
    Event, Expiry, FOR_EVER, Hotplug, LOG_WRITE, MAX_FORKS, PIECE, Policy, Repeat, TaskGroup,
    Timer, duty,
};
pub use rtapp::RtApp;
pub use tree::Tree;

pub(crate) use read::about_in;

use crate::InputError;
use risetime_kernel::sched_qos::SchedQosHint;
use risetime_kernel::units::{CpuId, Span, Util};
use std::collections::BTreeMap;

/// The most tasks that a workload may have, instances and forks counted.
pub const MAX_TASKS: usize = 10_000;

/// The most events that the phases of all tasks may hold, instances counted (loops are not
/// unrolled).
pub const MAX_EVENTS: usize = 1_000_000;

/// Bytes that `mem` and `iorun` write in a µs: 4 GB/s, an estimate of what one core writes to
/// memory.
pub const BYTES_PER_US: u64 = 4000;

/// Time that a system call of `iorun` takes, in ns: an estimate.
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
    /// Objects that the tasks share.
    pub objects: Objects,
    /// The task groups, by path: each behind the one above it. Empty: all tasks are in the root.
    pub groups: Vec<TaskGroup>,
    /// `global.duration`; `None`: until every task has exited or the run's own limit.
    pub duration: Option<Span>,
    /// `global.calibration: "CPUn"`: `run` means µs on that CPU at its top frequency.
    /// `None`: µs at capacity 1024 (or [`Workload::bind`] has rescaled them already).
    pub calibration: Option<CpuId>,
    /// The workload's jobs, in the order of the tasks that begin them.
    pub jobs: Vec<JobSpec>,
    /// Jobs of which a power HAL is told, if there is one.
    pub sessions: Vec<HintSession>,
    /// CPUs that go and come, by time.
    pub hotplug: Vec<Hotplug>,
    /// Exclusive cpusets, each a root domain: deadlines are guaranteed on the CPUs of one. Empty: all CPUs are one.
    pub partitions: Vec<Vec<CpuId>>,
    /// Keys that were accepted and have no effect, with the reason, for the reader.
    pub without_effect: Vec<String>,
    /// Values that are allowed and likely meant otherwise, each at its place: ms for µs.
    pub doubts: Vec<InputError>,
    /// `file:line:column` of each task by its name, and of `global.calibration`, for what is said of them once the
    /// machine is known.
    pub places: BTreeMap<String, String>,
    /// Start at which `start_util`, `start_period_contrib` and `first_tick_ns` take effect.
    pub start_at: StartAt,
    /// The text that it was read from, keys that were changed included.
    pub source: Source,
}

/// The text of a workload, and where it was read. Workloads that do the same are equal, however they are written.
#[derive(Clone, Debug, Default)]
pub struct Source {
    text: Option<std::sync::Arc<str>>,
    /// Name or file as a person gave it; empty: a program put the workload together.
    given: String,
}

impl Source {
    /// The source of a text that was read from `given`, a name or a file.
    fn of(text: &str, given: &str) -> Source {
        Source { text: Some(text.into()), given: given.to_string() }
    }

    /// The text; `None`: a program put the workload together.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }
}

impl PartialEq for Source {
    fn eq(&self, _: &Source) -> bool {
        true
    }
}

impl Eq for Source {}

/// Jobs: pieces of work that are released, due and done, of one task or of a chain of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobSpec {
    /// Name in reports: the task's name, or what `"job"` says.
    pub name: String,
    /// The job's tasks by their places in [`Workload::tasks`], the one that begins first.
    pub tasks: Vec<u32>,
    /// Deadline from a job's release; `None`: it is due with the timer that ends it.
    pub deadline: Option<Span>,
    /// Period of the first timer in the program of the task that begins.
    pub period: Option<Span>,
}

/// A hint session (Android's Dynamic Performance Framework): some tasks whose jobs should take so long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HintSession {
    /// Job whose durations are reported: a place among [`Workload::jobs`].
    pub job: u32,
    /// The tasks that are to be sped up: those of the job's chain, then others, by their places in [`Workload::tasks`].
    pub tasks: Vec<u32>,
    /// Target duration of a job.
    pub target: Span,
}

/// The moment at which the start settings take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// The start is when the first task is created.
    Creation,
    /// The start is when task 0 wakes into its phase of this index (`rampup`: the busy phase).
    Phase(usize),
}

impl Workload {
    /// The group in which each task is created; "" is the root. Empty if all are there.
    pub fn task_groups(&self) -> Vec<String> {
        let own = |t: &TaskSpec| t.attr.taskgroup.clone().unwrap_or_default();
        match self.groups.is_empty() {
            true => Vec::new(),
            false => self.tasks.iter().map(own).collect(),
        }
    }

    /// Lists the paths of all groups by their numbers; the first one is the root, "".
    pub fn group_paths(&self) -> Vec<String> {
        let own = self.groups.iter().map(|g| g.path.clone());
        std::iter::once(String::new()).chain(own).collect()
    }

    /// Returns what errors call the workload: the name or file that a person gave, else its name.
    pub fn place(&self) -> &str {
        if self.source.given.is_empty() { &self.name } else { &self.source.given }
    }

    /// `file:line:column: SAYS`, the place of an error about `what`, a task or `global.calibration`.
    pub fn place_of(&self, what: &str, says: &str) -> String {
        format!("{}: {says}", self.places.get(what).map_or(self.place(), String::as_str))
    }

    /// The number of the task that is created first, the first in the file of those created at the
    /// same time: whom every command means where none is named.
    pub fn first_created(&self) -> usize {
        let by_time = |i: &usize| (self.tasks[*i].delay, *i);
        (0..self.tasks.len()).min_by_key(by_time).unwrap_or(0)
    }
}

/// One thread.
pub type TaskSpec = risetime_job::Task<Attr>;

/// A named run of events.
pub type Phase = risetime_job::Phase<Attr>;

/// Attributes that `phases` may change as well as the task: those that a phase leaves out stay as
/// they were, but for its CPUs, which are its task's again (rt-app's rules).
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
    /// Wish for latency, −20..=19, in kernels with `latency_nice`; `None`: unchanged (at creation:
    /// 0).
    pub latency_nice: Option<i8>,
    /// Hints given to the scheduler, each of which the kernel would take; empty: none.
    pub qos: Vec<SchedQosHint>,
    /// The task group, as a path of [`Workload::groups`], "" the root; `None`: unchanged (at
    /// creation: the root).
    pub taskgroup: Option<String>,
}

impl Attr {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        let Attr { cpus, policy, nice, uclamp_min, uclamp_max, latency_nice, qos, taskgroup } =
            self;
        cpus.is_none()
            && policy.is_none()
            && nice.is_none()
            && uclamp_min.is_none()
            && uclamp_max.is_none()
            && latency_nice.is_none()
            && qos.is_empty()
            && taskgroup.is_none()
    }
}
