//! Interface of a scheduling class (`struct sched_class`), as core asks it.

use crate::kernel::Rq;
use crate::kernel::placement::{Placement, PlacementView};
use crate::state::effects::Effects;
use crate::state::hooks::{Placed, Waker};
use crate::state::machine::Machine;
use risetime_kernel::deadline::DlId;
use risetime_kernel::eevdf::{DequeueKind, EnqueueKind};
use risetime_kernel::units::TaskId;
use risetime_trace::Why;

/// Whether a woken task preempts another one of its class, and how soon the CPU hears of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Preempts {
    No,
    /// `resched_curr`.
    Now,
    /// `resched_curr_lazy`.
    Lazily,
}

/// A scheduling class: one file, and one line in [`CLASSES`](super::CLASSES). What is not said here does nothing.
pub(crate) trait SchedClass: Sync {
    /// Tells what a task asks for to be of the class, and what the class is, in a sentence.
    fn about(&self) -> (&'static str, &'static str);
    /// `enqueue_task`; `waking`: not new, and not moved by balancing.
    fn enqueue(&self, rq: &mut Rq<'_, '_>, task: TaskId, kind: EnqueueKind, waking: bool);
    /// `dequeue_task`.
    fn dequeue(&self, rq: &mut Rq<'_, '_>, task: TaskId, kind: DequeueKind);
    /// `pick_task`: who of this class runs next, if anybody may.
    fn pick(&self, rq: &mut Rq<'_, '_>) -> Option<TaskId>;
    /// `server_pick_task`: whom one of its servers lets in; it stops if there is nobody.
    fn serve(&self, _: &mut Rq<'_, '_>, _server: DlId) -> Option<TaskId> {
        None
    }
    /// `wakeup_preempt` between two of this class: does `task` take the CPU from `curr`?
    fn wakeup_preempt(
        &self,
        rq: &mut Rq<'_, '_>,
        curr: TaskId,
        task: TaskId,
        fork: bool,
    ) -> Preempts;
    /// `put_prev_task`: `prev` leaves the CPU to `next`.
    fn put_prev(&self, _: &mut Rq<'_, '_>, _prev: TaskId, _next: Option<TaskId>) {}
    /// `set_next_task`: `task` has the CPU from now on.
    fn set_next(&self, _: &mut Rq<'_, '_>, _task: TaskId) {}
    /// `task_tick` of the running task.
    fn tick(&self, _: &mut Rq<'_, '_>, _curr: TaskId) {}
    /// `yield_task` of the running task.
    fn yield_task(&self, _: &mut Rq<'_, '_>, _curr: TaskId) {}
    /// `task_woken`: it is queued, and may not get this CPU soon.
    fn woken(&self, _: &mut Rq<'_, '_>, _task: TaskId) {}
    /// `balance`: `prev`, of this class, may be about to leave the CPU.
    fn balance(&self, _: &mut Rq<'_, '_>, _prev: TaskId) {}
    /// `select_task_rq` of a waking task that may run on several CPUs.
    fn select_task_rq(
        &self,
        m: &Machine,
        _: &mut dyn Placement,
        task: TaskId,
        _: Waker,
        _: &mut Effects,
    ) -> Placed {
        Placed { cpu: m.task(task).cpu, why: Why::Affinity }
    }
    /// `select_task_rq` of a new task, whose parent runs on its CPU, under the same policy: that is
    /// where the task has it from.
    fn select_task_rq_fork(
        &self,
        m: &Machine,
        placement: &mut dyn Placement,
        task: TaskId,
        _: &mut Effects,
    ) -> Placed {
        placement.fork(&PlacementView { machine: m }, task)
    }
}
