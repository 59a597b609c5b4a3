//! The event queue: what happens next.
//!
//! Events at the same time are ordered by rank, then by the order in which they were queued,
//! so a run does not depend on how a heap breaks ties. A CPU's tick and the end of its work replace
//! the ones before. Else nothing is ever removed: an event that has been overtaken carries an old
//! generation and is dropped when it comes up.

use crate::mech::pressure::state::IrqStep;
use crate::mech::slots::Id;
use crate::state::class::ClassTimer;
use crate::state::cpuset::MAX_CPUS;
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
    /// A task's timer has expired, and its CPU has left its idle state for it.
    TimerAwake { task: TaskId, generation: u32 },
    /// A task that was still on its CPU when another one woke it can be queued.
    Woken { task: TaskId, by: CpuId },
    /// The interrupt of a CPU's wake list, for which an idle one has left its idle state.
    TtwuPending { cpu: CpuId },
    /// A timer of a scheduling class; `awake`: its CPU has left its idle state for it.
    ClassTimer { timer: ClassTimer, awake: bool },
    /// A governor's timer expires; `awake`: its CPU need not be woken for it (any more).
    GovernorTimer { cpu: CpuId, generation: u32, awake: bool },
    /// Timers that waited for the tick of a CPU expire there, which has left its idle state; `done`: that was all of them.
    RunQueues { cpu: CpuId, done: bool },
    /// A task is created.
    Create { task: TaskId },
    /// The periodic tick.
    Tick { cpu: CpuId, generation: u32 },
    /// Rest of an interrupt's work (`irq_work_queue`): a kernel thread is woken. Behind the ticks
    /// of all CPUs, which begin together.
    IrqWork { task: TaskId, generation: u32 },
    /// A woken idle CPU has left its idle state and schedules.
    Resched { cpu: CpuId },
    /// A kicked idle CPU balances on behalf of the idle ones.
    NohzBalance { cpu: CpuId },
    /// A period of a group's quota ends; `awake`: the timer's CPU has left its idle state for it.
    CfsPeriod { group: GroupId, awake: bool },
    /// Running time that a group got back is given out; `awake`: likewise.
    CfsSlack { group: GroupId, awake: bool },
    /// A CPU goes offline or comes back ([`crate::kernel::hotplug`]).
    Hotplug { cpu: CpuId, online: bool },
    /// A device's interrupt, a moment of it ([`crate::mech::pressure`]).
    Irq { cpu: CpuId, step: IrqStep },
    /// A mechanism changes what the hardware gives: before all else of that time ([`crate::mech`]).
    MechanismFirst(Planned),
    /// A mechanism looks, or a setting changes: behind all that a kernel does at that time.
    MechanismLast(Planned),
    /// A change that another trace dictates: after what led to it there ([`crate::run::replay`]).
    Given { index: u32 },
}

/// Plan of a mechanism for some time; only the mechanism knows the meaning of the numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Planned {
    /// Mechanism whose it is.
    pub(crate) of: Id,
    pub(crate) kind: u8,
    pub(crate) index: u32,
    pub(crate) value: u32,
}

impl Planned {
    /// The one thing that a mechanism plans.
    pub(crate) fn only(of: Id) -> Planned {
        Planned { of, kind: 0, index: 0, value: 0 }
    }
}

impl Ev {
    /// The rank of the event among those at one time, the lowest first.
    #[inline]
    fn rank(&self) -> u64 {
        match self {
            Ev::FreqDone { .. } | Ev::MechanismFirst(_) => 0,
            Ev::WorkDone { .. } => 1,
            Ev::Timer { .. } | Ev::Irq { .. } => 2,
            Ev::TimerAwake { .. } | Ev::Woken { .. } | Ev::ClassTimer { .. } => 3,
            Ev::TtwuPending { .. } => 3,
            Ev::GovernorTimer { .. } | Ev::RunQueues { done: false, .. } => 3,
            Ev::Create { .. } => 4,
            Ev::Tick { .. } => 5,
            Ev::IrqWork { .. } | Ev::Resched { .. } => 6,
            Ev::NohzBalance { .. } => 7,
            Ev::CfsPeriod { .. } => 8,
            Ev::CfsSlack { .. } => 9,
            Ev::Hotplug { .. } | Ev::MechanismLast(_) => 10,
            Ev::RunQueues { done: true, .. } => 10,
            Ev::Given { .. } => 11,
        }
    }
}

/// A place in the order, the least first: time, then rank and sequence.
///
/// ```text
///  127        64 63  56 55        11 10   0
///  | time, ns  | rank | sequence   | slot |      one number, so that an order is one comparison
/// ```
///
/// No two sequences are the same, so the slot decides nothing: it says whose the key is.
type Key = u128;
/// Two slots for each of 1024 CPUs.
const SLOT_BITS: u32 = 11;
const _: () = assert!(2 * MAX_CPUS == 1 << SLOT_BITS);
/// Key of nothing: later than any event, as no sequence gets that far.
const NEVER: Key = Key::MAX;

fn time_of(key: Key) -> Instant {
    Instant((key >> 64) as u64)
}

/// An event with its place in the order; the greatest comes first.
struct Entry {
    key: Key,
    ev: Ev,
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        other.key.cmp(&self.key)
    }
}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.key == other.key
    }
}
impl Eq for Entry {}

/// Times of which every CPU has one at most, its tick and the end of its work: a tree of minima, in
/// which a new time replaces the old one.
///
/// ```text
///            0                  tree[k] = min of its four children, tree[4k + 1 ..= 4k + 4]
///     1    2    3    4          the last level are the slots
///   5 6 7 8  …  17 … 20
/// ```
#[derive(Default)]
struct Slots {
    tree: Vec<Key>,
    /// Generation of each slot: a power of four of them, 0 before the first is set.
    generation: Vec<u32>,
    /// Slot that was taken last: it is empty, though the tree does not say so yet, since most often
    /// it is filled again before the next look.
    taken: Option<usize>,
}

impl Slots {
    /// The index in the tree at which the slots begin.
    fn inner(&self) -> usize {
        self.tree.len() - self.generation.len()
    }

    /// The least of the children of `parent`.
    #[inline]
    fn least_below(&self, parent: usize) -> Key {
        let children = &self.tree[4 * parent + 1..4 * parent + 5];
        children[0].min(children[1]).min(children[2].min(children[3]))
    }

    /// Sets the key of a slot. Minima above are looked for anew only as far up as the slot's old key
    /// was one.
    fn set(&mut self, slot: usize, key: Key, generation: u32) {
        if slot >= self.generation.len() {
            self.grow(slot + 1);
        }
        if self.taken == Some(slot) {
            self.taken = None;
        }
        self.generation[slot] = generation;
        let mut at = self.inner() + slot;
        let old = std::mem::replace(&mut self.tree[at], key);
        while at > 0 {
            at = (at - 1) / 4;
            let least = self.tree[at];
            let new = if key <= least {
                key
            } else if old == least {
                self.least_below(at)
            } else {
                return;
            };
            self.tree[at] = new;
        }
    }

    #[cold]
    fn grow(&mut self, slots: usize) {
        let mut leaves = 4;
        while leaves < slots {
            leaves *= 4;
        }
        let inner = (leaves - 1) / 3;
        let mut tree = vec![NEVER; inner + leaves];
        let old = &self.tree[self.inner()..];
        tree[inner..inner + old.len()].copy_from_slice(old);
        self.tree = tree;
        self.generation.resize(leaves, 0);
        for at in (0..inner).rev() {
            self.tree[at] = self.least_below(at);
        }
    }

    fn first(&mut self) -> Key {
        if let Some(slot) = self.taken {
            self.set(slot, NEVER, self.generation[slot]);
        }
        self.tree.first().copied().unwrap_or(NEVER)
    }

    /// Takes what is due first, which somebody has looked at.
    fn pop(&mut self, first: Key) -> (usize, u32) {
        let slot = first as usize & ((1 << SLOT_BITS) - 1);
        self.taken = Some(slot);
        (slot, self.generation[slot])
    }
}

/// Events by (time, rank, sequence).
#[derive(Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Entry>,
    /// Event that is due before all of the heap: most of those that are queued follow at once, or in some µs.
    front: Option<Entry>,
    slots: Slots,
    sequence: u64,
}

impl Queue {
    /// Pushes an event. Inlined, since most callers know which kind of event it is, and with that
    /// where it goes.
    #[inline]
    pub(crate) fn push(&mut self, at: Instant, ev: Ev) {
        self.sequence += 1;
        let order = ev.rank() << 56 | self.sequence << SLOT_BITS;
        let key = |slot: usize| Key::from(at.0) << 64 | Key::from(order | slot as u64);
        match ev {
            Ev::WorkDone { cpu, generation } => {
                let slot = 2 * cpu.index();
                self.slots.set(slot, key(slot), generation);
            }
            Ev::Tick { cpu, generation } => {
                let slot = 2 * cpu.index() + 1;
                self.slots.set(slot, key(slot), generation);
            }
            _ => self.push_other(Entry { key: key(0), ev }),
        }
    }

    #[inline(never)]
    fn push_other(&mut self, entry: Entry) {
        let first = self.front.as_ref().or(self.heap.peek()).map_or(NEVER, |e| e.key);
        if entry.key > first {
            self.heap.push(entry);
        } else if let Some(second) = self.front.replace(entry) {
            self.heap.push(second);
        }
    }

    /// Takes the first event that is no slot's.
    fn pop_other(&mut self) -> Option<Ev> {
        self.front.take().or_else(|| self.heap.pop()).map(|e| e.ev)
    }

    /// The next event, if it is due by `end`.
    pub(crate) fn pop_until(&mut self, end: Instant) -> Option<(Instant, Ev)> {
        let slot = self.slots.first();
        let event = self.front.as_ref().or(self.heap.peek()).map_or(NEVER, |e| e.key);
        let first = slot.min(event);
        let at = time_of(first);
        if first == NEVER || at > end {
            return None;
        }
        if event < slot {
            return self.pop_other().map(|ev| (at, ev));
        }
        let (slot, generation) = self.slots.pop(first);
        let cpu = CpuId((slot / 2) as u32);
        let ev = if slot % 2 == 0 {
            Ev::WorkDone { cpu, generation }
        } else {
            Ev::Tick { cpu, generation }
        };
        Some((at, ev))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_give_what_a_sorted_list_gives() {
        let mut q = Queue::default();
        let mut list: Vec<(u64, u64, u64, Ev)> = Vec::new();
        let mut x = 1u64;
        for step in 1..3000u64 {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (cpu, at) = (CpuId((x >> 33) as u32 % 11), (x >> 40) % 500 + step);
            let ev = match x >> 61 {
                0..=2 => Ev::WorkDone { cpu, generation: step as u32 },
                3..=5 => Ev::Tick { cpu, generation: step as u32 },
                6 => Ev::Resched { cpu },
                _ => {
                    list.sort_by_key(|e| (e.0, e.1, e.2));
                    if let Some(next) = list.first() {
                        assert_eq!(q.pop_until(Instant(next.0 - 1)), None);
                    }
                    let expected = (!list.is_empty()).then(|| list.remove(0));
                    let by = expected.as_ref().map_or(Instant(u64::MAX), |e| Instant(e.0));
                    assert_eq!(q.pop_until(by), expected.map(|e| (Instant(e.0), e.3)));
                    continue;
                }
            };
            // A CPU has one of these at most.
            let same = |e: &Ev| match (ev, *e) {
                (Ev::WorkDone { cpu: a, .. }, Ev::WorkDone { cpu: b, .. })
                | (Ev::Tick { cpu: a, .. }, Ev::Tick { cpu: b, .. }) => a == b,
                _ => false,
            };
            list.retain(|e| !same(&e.3));
            list.push((at, ev.rank(), step, ev));
            q.push(Instant(at), ev);
        }
    }

    #[test]
    fn at_one_time_rank_decides_and_then_the_order_of_arrival() {
        let mut q = Queue::default();
        let tick = |cpu| Ev::Tick { cpu: CpuId(cpu), generation: 0 };
        let done = Ev::WorkDone { cpu: CpuId(9), generation: 0 };
        for (at, ev) in [(2, tick(0)), (1, tick(3)), (1, tick(1)), (1, done), (0, tick(7))] {
            q.push(Instant(at), ev);
        }
        let order: Vec<(u64, Ev)> =
            std::iter::from_fn(|| q.pop_until(Instant(9))).map(|(at, ev)| (at.0, ev)).collect();
        assert_eq!(order, [(0, tick(7)), (1, done), (1, tick(3)), (1, tick(1)), (2, tick(0))]);
    }
}
