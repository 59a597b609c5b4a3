//! What a CPU remembers of the tasks that sleep on it, and of whom those that run there wake.

use risetime_kernel::units::{Instant, TaskId};

/// When the tasks that sleep on a CPU want to be woken, the first one last: that one leaves first.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskTimers(Vec<(Instant, TaskId)>);

impl TaskTimers {
    /// The first to expire.
    #[inline]
    pub(crate) fn first(&self) -> Option<(Instant, TaskId)> {
        self.0.last().copied()
    }
    pub(crate) fn insert(&mut self, timer: (Instant, TaskId)) {
        let at = self.0.partition_point(|other| *other > timer);
        self.0.insert(at, timer);
    }
    /// That of `task`, if it has one: most often the first.
    pub(crate) fn remove(&mut self, task: TaskId) {
        if let Some(at) = self.0.iter().rposition(|(_, t)| *t == task) {
            self.0.remove(at);
        }
    }
    /// All of them, none are left.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (Instant, TaskId)> + use<> {
        std::mem::take(&mut self.0).into_iter()
    }
}

/// Whom a task (or a CPU's idle task: its interrupts) wakes, and how often another than last time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wakees {
    pub(crate) last: Option<TaskId>,
    pub(crate) flips: u32,
    /// In jiffies.
    pub(crate) decayed_at: u64,
}
