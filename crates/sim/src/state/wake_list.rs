//! Tasks that other CPUs have woken, and that their CPU is yet to queue (`kernel/wake_list.rs`).

use risetime_kernel::units::{Instant, TaskId};
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
