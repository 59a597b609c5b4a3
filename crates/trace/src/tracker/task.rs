//! State of a task, as far as events have told.

use super::ids::NOBODY;
use risetime_kernel::units::{CpuId, Instant, TaskId};
use risetime_model::Name;
use risetime_model::workload::{JobMark, Policy};

/// The priority of a fair task of nice 0.
const PRIO: i32 = 120;
/// Below are the real-time and deadline classes (include/linux/sched/prio.h).
const MAX_RT_PRIO: i32 = 100;

/// Activity of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Unknown: events were lost in which it may have slept, woken, run or moved.
    Unknown,
    /// Runnable, not running.
    Waits,
    /// Running there.
    Runs(CpuId),
    /// Asleep.
    Sleeps,
    /// Has exited.
    Gone,
}

impl Doing {
    /// Whether the task is known to be runnable or running.
    #[inline]
    pub fn is_awake(self) -> bool {
        matches!(self, Doing::Waits | Doing::Runs(_))
    }
}

/// State of a task.
#[derive(Clone, Debug)]
pub struct Task {
    /// Id of the task; one that has exited may share it with a later one.
    pub id: TaskId,
    /// Name of the task.
    pub comm: Name,
    /// True for a task that was asked for, which a workload or a reader's choice says.
    pub user: bool,
    /// Activity of the task.
    pub doing: Doing,
    /// Time since which the task does that, in ns.
    pub since: u64,
    /// CPU on which it is, or was last.
    pub cpu: CpuId,
    /// Time at which the task was created, in ns.
    pub created: u64,
    /// Time at which the task first had a CPU, in ns.
    pub first_ran: Option<u64>,
    /// Time at which the task exited, in ns.
    pub gone: Option<u64>,
    /// Begin of its present or last activation, in ns; `None`: unknown.
    pub woke: Option<u64>,
    /// Time of the wakeup, or creation, since which the task waits for a CPU, in ns; `None`: it has had one since then.
    pub woken: Option<u64>,
    /// Time at which the wakeup that is to come was due, or the one since which the task waits for a CPU, in ns.
    pub due: Option<u64>,
    /// Policy of the task; `None`: SCHED_OTHER since its creation, or not told.
    pub policy: Option<Policy>,
    /// Priority of the task (`p->prio`), as it was told or follows from its policy; that of nice 0 as long as nothing tells.
    pub prio: i32,
    /// The priority that it has, or had last, in the fair class.
    pub fair_prio: i32,
    /// True while its reservation is used up.
    pub throttled: bool,
    /// The last mark that its program passed, and when.
    pub mark: Option<(Instant, JobMark)>,
    /// Number that the observer has noted beside the task; [`Task::UNNOTED`] at first.
    pub note: u32,
}

impl Task {
    /// Note of a task beside which nothing was noted.
    pub const UNNOTED: u32 = NOBODY;

    /// Returns a task that was created, and is runnable, on `cpu` at `now`.
    pub(super) fn new(id: TaskId, comm: Name, user: bool, cpu: CpuId, now: u64) -> Task {
        Task {
            id,
            comm,
            user,
            doing: Doing::Waits,
            since: now,
            cpu,
            created: now,
            first_ran: None,
            gone: None,
            woke: Some(now),
            woken: Some(now),
            due: None,
            policy: None,
            prio: PRIO,
            fair_prio: PRIO,
            throttled: false,
            mark: None,
            note: Task::UNNOTED,
        }
    }

    /// The time that the task's present activation has taken by `now`, in ns; `None`: the task is not awake, or it is unknown
    /// since when it is.
    #[inline]
    pub fn awake_for(&self, now: u64) -> Option<u64> {
        self.woke.filter(|_| self.doing.is_awake()).map(|woke| now - woke)
    }

    /// Sets the policy of the task, and the priority that follows from it.
    pub(super) fn set_policy(&mut self, policy: Policy) {
        self.policy = Some(policy);
        self.prio = match policy {
            Policy::Deadline { .. } => -1,
            Policy::Fifo { priority } | Policy::Rr { priority } => 99 - i32::from(priority),
            Policy::Overcommit { .. } | Policy::High { .. } => 99,
            _ => self.fair_prio,
        };
    }

    /// Sets the priority of the task.
    pub(super) fn set_prio(&mut self, prio: i32) {
        self.prio = prio;
        self.fair_prio = if prio >= MAX_RT_PRIO { prio } else { self.fair_prio };
    }

    /// Sets what the task does from `now` on.
    #[inline]
    pub(super) fn does(&mut self, now: u64, doing: Doing) {
        (self.doing, self.since) = (doing, now);
    }

    /// Wakes the task, if it is not known to be awake or gone; returns what it did before, and since when.
    #[inline]
    pub(super) fn wake(&mut self, now: u64) -> Option<(Doing, u64)> {
        let before = (self.doing, self.since);
        if !matches!(self.doing, Doing::Sleeps | Doing::Unknown) {
            return None;
        }
        (self.woke, self.woken) = (Some(now), Some(now));
        self.does(now, Doing::Waits);
        Some(before)
    }
}
