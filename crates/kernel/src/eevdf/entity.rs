//! One task or group as the fair class sees it, and the ways it comes and goes.

use core::fmt;

use crate::KernelRev;
use crate::units::{GroupId, TaskId, Weight};
use crate::weight::LoadWeight;

/// The scheduling policy of a fair task, as far as wakeup preemption asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FairPolicy {
    /// `SCHED_OTHER`.
    #[default]
    Normal,
    /// `SCHED_BATCH`: does not preempt when it wakes.
    Batch,
    /// `SCHED_IDLE`: neither, and is preempted by any task of another policy.
    Idle,
}

/// Roles of an entity as a buddy, now or before (`cfs_rq::last`, `next`, `skip`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuddyOf {
    /// True if the entity was preempted last.
    pub last: bool,
    /// True if the entity preempted last.
    pub next: bool,
    /// True if the entity yielded.
    pub skip: bool,
}

impl BuddyOf {
    /// Whether it is any.
    pub const fn any(self) -> bool {
        self.last || self.next || self.skip
    }
}

/// A wakeup on a CPU on which a fair task runs, as its preemption check asks for it. The check is made
/// where the two compete: of tasks in different groups that is a level above, between groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// The woken task is a new one (`WF_FORK`).
    pub fork: bool,
    /// The CPU is to reschedule already (`TIF_NEED_RESCHED`).
    pub due: bool,
    /// The policy of the woken task.
    pub woken: FairPolicy,
    /// Policy of the task that runs.
    pub running: FairPolicy,
}

impl Wakeup {
    /// The decision by the policies of the two tasks alone, whatever groups they are in; `None`:
    /// they decide nothing. Source: fair.c:`check_preempt_wakeup`, until 6.11.
    pub(crate) fn by_policies_pre_6_12(&self) -> Option<bool> {
        if self.running == FairPolicy::Idle && self.woken != FairPolicy::Idle {
            return Some(true);
        }
        (self.woken != FairPolicy::Normal).then_some(false)
    }
}

/// Identifies an entity: a task's, or that of a task group on one CPU (`entity_is_task`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntityId(u32);

impl EntityId {
    /// The bit that tells groups from tasks.
    const GROUP: u32 = 1 << 31;

    /// A task's entity.
    #[inline]
    pub const fn of_task(task: TaskId) -> EntityId {
        debug_assert!(task.0 & EntityId::GROUP == 0, "there are not that many tasks");
        EntityId(task.0)
    }

    /// The task, if it is one (`task_of`).
    #[inline]
    pub const fn as_task(self) -> Option<TaskId> {
        if self.0 & EntityId::GROUP == 0 { Some(TaskId(self.0)) } else { None }
    }

    /// The group, if it is one (`group_cfs_rq`).
    #[inline]
    pub const fn as_group(self) -> Option<GroupId> {
        if self.0 & EntityId::GROUP == 0 { None } else { Some(GroupId(self.0 & !EntityId::GROUP)) }
    }
}

impl From<TaskId> for EntityId {
    #[inline]
    fn from(task: TaskId) -> EntityId {
        EntityId::of_task(task)
    }
}

impl From<GroupId> for EntityId {
    #[inline]
    fn from(group: GroupId) -> EntityId {
        EntityId(group.0 | EntityId::GROUP)
    }
}

impl PartialEq<TaskId> for EntityId {
    #[inline]
    fn eq(&self, task: &TaskId) -> bool {
        self.0 == task.0
    }
}

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_group() {
            Some(group) => group.fmt(f),
            None => TaskId(self.0).fmt(f),
        }
    }
}

impl fmt::Debug for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A task or group as the fair class sees it (`struct sched_entity`). The caller keeps it while the
/// task sleeps; the runqueue keeps it while it is queued or runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entity {
    /// The task or group whose entity this is.
    pub id: EntityId,
    /// Weight and inverse.
    pub load: LoadWeight,
    /// Policy.
    pub policy: FairPolicy,
    /// The request: how long it wants to run in one go, in ns.
    pub slice: u64,
    /// Whether the task asked for `slice` (`sched_attr::sched_runtime`, from 6.12).
    pub custom_slice: bool,
    /// Wish for latency ([`crate::latency_nice`]); 0 but where the kernel knows of that.
    pub latency_nice: i8,
    /// Service received in virtual ns; wraps.
    pub vruntime: u64,
    /// The virtual time by which the request is to be served; wraps. Relative to `vruntime`
    /// while `rel_deadline`.
    pub deadline: u64,
    /// Whether `deadline` is relative: in a task that left without sleeping.
    pub rel_deadline: bool,
    /// Virtual lag V - v when last dequeued. Until 7.1 it holds, in a queued entity, the
    /// deadline it was picked with instead: the mark of slice protection.
    pub vlag: i64,
    /// The vruntime up to which it is protected from preemption (7.2).
    pub vprot: u64,
    /// Asleep, but still queued to pay off negative lag.
    pub sched_delayed: bool,
    /// The task clock when its running time was last accounted, in ns.
    pub exec_start: u64,
    /// Running time from the accounting before to then, in ns (`delta_exec`, which only the
    /// response-time series keeps: RFC 00/16, patch 8).
    pub delta_exec: u64,
    /// All its running time, in ns.
    pub sum_exec_runtime: u64,
    /// `sum_exec_runtime` when the entity was put on the CPU last (CFS only).
    pub prev_sum_exec_runtime: u64,
}

/// Place of an entity in its runqueue, told by another run of the same kernel. What a release does
/// not have is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// `se->vruntime`.
    pub vruntime: u64,
    /// `se->deadline`.
    pub deadline: u64,
    /// `se->vlag`.
    pub vlag: i64,
    /// `se->slice`, in ns.
    pub slice: u64,
    /// The vruntime up to which a running entity's slice is protected (`se->vprot`, from 6.17;
    /// before, `vlag` does).
    pub vprot: u64,
    /// Weight with which the entity competes, with its ten fixed-point bits (`se->load.weight`,
    /// from 7.3 `se->h_load.weight`).
    pub weight: u64,
}

impl Place {
    /// The load with which the entity competes: the weight recorded here, or `own` where none is.
    pub(crate) fn load(&self, own: LoadWeight) -> LoadWeight {
        if self.weight == 0 || self.weight == own.scaled() {
            own
        } else {
            LoadWeight::of_scaled(self.weight)
        }
    }
}

impl Entity {
    /// A new task, never queued (`__sched_fork`); its slice is the runqueue's base slice.
    pub fn new(id: impl Into<EntityId>, load: LoadWeight) -> Entity {
        Entity {
            id: id.into(),
            load,
            policy: FairPolicy::Normal,
            slice: 0,
            custom_slice: false,
            latency_nice: 0,
            vruntime: 0,
            deadline: 0,
            rel_deadline: false,
            vlag: 0,
            vprot: 0,
            sched_delayed: false,
            exec_start: 0,
            delta_exec: 0,
            sum_exec_runtime: 0,
            prev_sum_exec_runtime: 0,
        }
    }

    /// Asks for slices of `slice_ns`, clamped to 0.1 … 100 ms; `None` = the base slice. For a
    /// task that is not queued; else [`set_slice`](super::CfsRq::set_slice).
    /// Source: fair.c:`__setparam_fair`.
    pub fn request_slice(&mut self, slice_ns: Option<u64>) {
        self.custom_slice = slice_ns.is_some();
        if let Some(ns) = slice_ns {
            self.slice = ns.clamp(100_000, 100_000_000);
        }
    }

    /// A new weight for a task that is not queued; else [`reweight`](super::CfsRq::reweight).
    /// Source: fair.c:`reweight_entity`.
    pub fn reweight(&mut self, rev: KernelRev, load: LoadWeight) {
        self.rescale_asleep(rev, load);
    }

    /// The weight as people write it, nice 0 = 1024.
    pub fn weight(&self) -> Weight {
        self.load.weight()
    }
}

/// Reason for which an entity is enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnqueueKind {
    /// The entity is enqueued for the first time in its life (`ENQUEUE_INITIAL`).
    Initial,
    /// The task woke here (`ENQUEUE_WAKEUP`).
    Wakeup,
    /// The task woke, and not where it slept (`ENQUEUE_WAKEUP | ENQUEUE_MIGRATED`).
    WakeupMigrated,
    /// The task comes from another CPU, awake (`ENQUEUE_MIGRATED`).
    Migrated,
    /// Back after a change of its attributes (`ENQUEUE_RESTORE`).
    Restore,
}

/// Reason for which an entity is dequeued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DequeueKind {
    /// The task goes to sleep, and may stay queued to pay off its lag (`DEQUEUE_SLEEP`).
    Sleep,
    /// The task leaves for good, or sleeps such that it must not be woken spuriously
    /// (`DEQUEUE_SLEEP | DEQUEUE_SPECIAL`).
    SleepSpecial,
    /// The task moves to another CPU.
    Migrate,
    /// The task comes right back after a change of its attributes (`DEQUEUE_SAVE`).
    Save,
}

/// Outcome of a dequeue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeued {
    /// The entity left; with its lag, to be enqueued again here or elsewhere.
    Yes(Entity),
    /// The entity stays queued, `sched_delayed`: to be woken by
    /// [`requeue_delayed`](super::CfsRq::requeue_delayed), or handed out by
    /// [`take_departed`](super::CfsRq::take_departed) when a pick has met it.
    Delayed,
    /// The entity was not queued here.
    Absent,
}
