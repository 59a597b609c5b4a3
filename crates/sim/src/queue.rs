//! The event queue: what happens next.
//!
//! Events at the same time are ordered by rank, then by the order in which they were queued,
//! so a run does not depend on how a heap breaks ties. Nothing is ever removed: an event
//! that has been overtaken carries an old generation and is dropped when it comes up.

use crate::class::ClassTimer;
use risetime_kernel::units::{CpuId, GroupId, Instant, TaskId};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Something that will happen, in the order of rank at equal times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ev {
    /// The hardware of a frequency domain has finished a change.
    FreqDone { domain: u32, generation: u32 },
    /// The running task has done its work, or its time is up.
    WorkDone { cpu: CpuId, generation: u32 },
    /// A task's timer expires (and finds its CPU idle or busy).
    Timer { task: TaskId, generation: u32 },
    /// The same after the CPU has left its idle state.
    TimerAwake { task: TaskId, generation: u32 },
    /// A task that was still on its CPU when another one woke it can be queued.
    Woken { task: TaskId, by: CpuId },
    /// A timer of a scheduling class; `awake`: its CPU has left its idle state for it.
    ClassTimer { timer: ClassTimer, awake: bool },
    /// A task is created.
    Create { task: TaskId },
    /// The periodic tick.
    Tick { cpu: CpuId, generation: u32 },
    /// A woken idle CPU has left its idle state and schedules.
    Resched { cpu: CpuId },
    /// A kicked idle CPU balances on behalf of the idle ones.
    NohzBalance { cpu: CpuId },
    /// A period of a group's quota ends.
    CfsPeriod { group: GroupId },
    /// Running time that a group got back is given out.
    CfsSlack { group: GroupId },
    /// A CPU goes offline or comes back ([`crate::hotplug`]).
    Hotplug { cpu: CpuId, online: bool },
    /// A change that another trace dictates: after what led to it there ([`crate::replay`]).
    Given { index: u32 },
}

impl Ev {
    /// What comes first of things at one time.
    fn rank(&self) -> u64 {
        match self {
            Ev::FreqDone { .. } => 0,
            Ev::WorkDone { .. } => 1,
            Ev::Timer { .. } => 2,
            Ev::TimerAwake { .. } | Ev::Woken { .. } | Ev::ClassTimer { .. } => 3,
            Ev::Create { .. } => 4,
            Ev::Tick { .. } => 5,
            Ev::Resched { .. } => 6,
            Ev::NohzBalance { .. } => 7,
            Ev::CfsPeriod { .. } => 8,
            Ev::CfsSlack { .. } => 9,
            Ev::Hotplug { .. } => 10,
            Ev::Given { .. } => 11,
        }
    }
}

/// An event with its place in the order; the greatest comes first.
struct Entry {
    at: Instant,
    /// Rank in the top byte, sequence below.
    order: u64,
    ev: Ev,
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Entry {}

/// Events by (time, rank, sequence).
#[derive(Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Entry>,
    sequence: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, at: Instant, ev: Ev) {
        self.sequence += 1;
        self.heap.push(Entry { at, order: ev.rank() << 56 | self.sequence, ev });
    }
    pub(crate) fn pop(&mut self) -> Option<(Instant, Ev)> {
        self.heap.pop().map(|e| (e.at, e.ev))
    }
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|e| e.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_one_time_rank_decides_and_then_the_order_of_arrival() {
        let mut q = Queue::default();
        let tick = |cpu| Ev::Tick { cpu: CpuId(cpu), generation: 0 };
        let done = Ev::WorkDone { cpu: CpuId(9), generation: 0 };
        for (at, ev) in [(2, tick(0)), (1, tick(3)), (1, tick(1)), (1, done), (0, tick(7))] {
            q.push(Instant(at), ev);
        }
        let order: Vec<(u64, Ev)> =
            std::iter::from_fn(|| q.pop()).map(|(at, ev)| (at.0, ev)).collect();
        assert_eq!(order, [(0, tick(7)), (1, done), (1, tick(3)), (1, tick(1)), (2, tick(0))]);
    }
}
