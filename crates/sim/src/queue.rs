//! The event queue: what happens next.
//!
//! Events at the same time are ordered by rank, then by the order in which they were queued,
//! so a run does not depend on how a heap breaks ties. Nothing is ever removed: an event
//! that has been overtaken carries an old generation and is dropped when it comes up.

use risetime_kernel::units::{CpuId, Instant, TaskId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that will happen. The order of the variants is the rank at equal times.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Ev {
    /// The hardware of a frequency domain has finished a change.
    FreqDone { domain: u32, generation: u32 },
    /// The running task has done its work, or its time is up.
    WorkDone { cpu: CpuId, generation: u32 },
    /// A task's timer expires (and finds its CPU idle or busy).
    Timer { task: TaskId, generation: u32 },
    /// The same after the CPU has left its idle state.
    TimerAwake { task: TaskId, generation: u32 },
    /// A task is created.
    Create { task: TaskId },
    /// The periodic tick.
    Tick { cpu: CpuId, generation: u32 },
    /// A woken idle CPU has left its idle state and schedules.
    Resched { cpu: CpuId },
    /// A kicked idle CPU balances on behalf of the idle ones.
    NohzBalance { cpu: CpuId },
    /// A change that another trace dictates: after what led to it there ([`crate::replay`]).
    Given { index: u32 },
}

/// Events by (time, rank, sequence).
#[derive(Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Reverse<(Instant, Ev, u64)>>,
    sequence: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, at: Instant, ev: Ev) {
        self.sequence += 1;
        self.heap.push(Reverse((at, ev, self.sequence)));
    }
    pub(crate) fn pop(&mut self) -> Option<(Instant, Ev)> {
        self.heap.pop().map(|Reverse((at, ev, _))| (at, ev))
    }
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }
}
