//! State of which CPUs should reschedule, and how they learn of it (`kernel/preempt.rs`).

use crate::state::cpuset::CpuSet;
use risetime_kernel::units::{CpuId, Instant, TaskId};
use risetime_trace::Why;

/// A task on a CPU's wake list.
#[derive(Clone, Copy)]
pub(crate) struct Wakee {
    pub(crate) task: TaskId,
    /// Time at which the CPU, if it is awake, has the waker's interrupt.
    pub(crate) heard: Instant,
    /// True if the task comes from another CPU; and why this one was chosen.
    pub(crate) migrated: bool,
    pub(crate) why: Why,
}

/// The flags of all CPUs.
pub(crate) struct Preempt {
    pub(crate) lazy: bool,
    /// The kernel itself is not preempted.
    pub(crate) voluntary: bool,
    /// The CPU on which a wakeup is carried out.
    pub(crate) waking_on: Option<CpuId>,
    /// CPUs whose flag is the lazy one alone. One that is not in `need_resched`, too, has not
    /// heard of it yet.
    pub(crate) flagged: CpuSet,
}
