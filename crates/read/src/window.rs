//! Merging: items of several CPUs, each in the order of its own times, into one order, out of a window of bounded memory.
//!
//! ```text
//! bundle ──sorted──> lane of its CPU (chunks) ─┐
//! bundle ──sorted──> lane of its CPU           ├─ the earliest first ──> out        once the window is full
//! packets with times ──> lane 0                ┘
//! ```
//!
//! A recorder drains the CPUs' buffers one after the other, again and again. What came in the round before the last may go out: every
//! buffer has been drained after it happened. It goes once the window is full, or, as long as nothing but bundles has come, once it would
//! no longer fit into a cache. If that does not make room, the earlier half of the window goes out, and what comes later still than that
//! is told at the time that has been reached, and counted.

use std::collections::VecDeque;

/// Bytes that items in the window may take.
const BUDGET: usize = 40 << 20;
/// Bytes that stay in a processor's cache.
const CACHED: usize = 2 << 20;
/// Items of a chunk to which single ones are added.
const CHUNK: usize = 512;

/// Something with a time and a size.
pub(crate) trait Timed {
    /// Returns the time of the item, in ns.
    fn at(&self) -> u64;
    /// Returns the bytes that the item has outside of itself.
    fn beside(&self) -> usize;
}

/// See the head of the file.
pub(crate) struct Window<T> {
    lanes: Vec<VecDeque<std::vec::IntoIter<T>>>,
    /// Single items of lane 0 that are no chunk yet.
    open: Vec<T>,
    bytes: usize,
    floor: u64,
    /// Items that came too late, and the longest time by which one did, in ns.
    late: (u64, u64),
    rounds: Rounds,
    /// Time up to which everything that was safe has gone out.
    passed: u64,
    /// True once an item of no CPU has come: of those no round says how late they may be.
    mixed: bool,
    budget: usize,
}

/// The rounds in which buffers are drained.
#[derive(Default)]
struct Rounds {
    lane: usize,
    /// The latest time of this round, and of the ones before it.
    latest: u64,
    before: u64,
    safe: u64,
}

impl<T: Timed> Default for Window<T> {
    fn default() -> Window<T> {
        Window {
            lanes: vec![VecDeque::new()],
            open: Vec::new(),
            bytes: 0,
            floor: 0,
            late: (0, 0),
            rounds: Rounds::default(),
            passed: 0,
            mixed: false,
            budget: BUDGET,
        }
    }
}

impl<T: Timed> Window<T> {
    /// Adds an item of no CPU, unless it has no time.
    pub(crate) fn add(&mut self, item: T) {
        if item.at() == NEVER {
            return;
        }
        self.bytes += size_of::<T>() + item.beside();
        self.mixed = true;
        self.open.push(item);
        if self.open.len() == CHUNK {
            self.close();
        }
    }

    fn close(&mut self) {
        let open = std::mem::take(&mut self.open);
        self.chunk(0, open);
    }

    /// Adds the items of a CPU's bundle, in any order.
    pub(crate) fn bundle(&mut self, cpu: u32, items: Vec<T>) {
        let lane = cpu as usize + 1;
        if lane < self.rounds.lane {
            self.rounds.safe = self.rounds.before;
            self.rounds.before = self.rounds.before.max(self.rounds.latest);
        }
        self.rounds.lane = lane;
        self.bytes += items.iter().map(|item| size_of::<T>() + item.beside()).sum::<usize>();
        if self.lanes.len() <= lane {
            self.lanes.resize_with(lane + 1, VecDeque::new);
        }
        let latest = self.chunk(lane, items);
        self.rounds.latest = self.rounds.latest.max(latest);
    }

    /// Adds items to a lane, and returns the latest time among them.
    fn chunk(&mut self, lane: usize, mut items: Vec<T>) -> u64 {
        if !items.is_sorted_by_key(T::at) {
            items.sort_by_key(T::at);
        }
        let (Some(first), Some(last)) = (items.first(), items.last()) else { return 0 };
        let (first, last) = (first.at(), last.at());
        if first < self.floor {
            let late = items.iter().take_while(|item| item.at() < self.floor).count();
            let by = self.floor - first;
            self.late = (self.late.0 + late as u64, self.late.1.max(by));
        }
        let chunks = &mut self.lanes[lane];
        while let Some(before) = chunks.pop_back() {
            if before.as_slice().last().is_none_or(|item| item.at() <= first) {
                chunks.push_back(before);
                break;
            }
            let mut both: Vec<T> = before.collect();
            both.append(&mut items);
            both.sort_by_key(T::at);
            items = both;
        }
        chunks.push_back(items.into_iter());
        last
    }

    /// Hands out what may go, if the window is full: with the time at which it is told, and its CPU (of no CPU: one beyond all).
    pub(crate) fn pass(&mut self, out: &mut dyn FnMut(u64, u32, T)) {
        let safe = self.rounds.safe;
        if !self.mixed && self.bytes > CACHED && safe > self.passed {
            self.passed = safe;
            self.emit(safe, 0, out);
        }
        if self.bytes > self.budget {
            self.close();
            self.emit(safe, 0, out);
            if self.bytes > self.budget / 4 * 3 {
                let half = self.budget / 2;
                self.emit(u64::MAX, half, out);
            }
        }
    }

    /// Hands out all that is left.
    pub(crate) fn finish(&mut self, out: &mut dyn FnMut(u64, u32, T)) {
        self.close();
        self.emit(u64::MAX, 0, out);
    }

    /// Items that came too late, and the longest time by which one did, in ns.
    pub(crate) fn late(&self) -> (u64, u64) {
        self.late
    }

    /// Hands out items up to a time, as long as more than `keep` bytes are in the window.
    fn emit(&mut self, until: u64, keep: usize, out: &mut dyn FnMut(u64, u32, T)) {
        // Of equal times those of CPUs come first: what came with a packet follows them.
        let cpus = self.lanes.len() - 1;
        let mut first = Tournament::new(self.lanes[1..].iter().chain(&self.lanes[..1]).map(front));
        while let Some((at, place)) = first.winner() {
            let lane = if place == cpus { 0 } else { place + 1 };
            if at > until || self.bytes <= keep {
                break;
            }
            let chunks = &mut self.lanes[lane];
            let Some(chunk) = chunks.front_mut() else { break };
            let Some(item) = chunk.next() else { break };
            self.bytes -= size_of::<T>() + item.beside();
            self.floor = self.floor.max(at);
            out(self.floor, place as u32, item);
            let next = match chunk.as_slice().first() {
                Some(next) => next.at(),
                None => {
                    chunks.pop_front();
                    front(chunks)
                }
            };
            first.replay(place, next);
        }
    }
}

/// Returns the time of a lane's first item; [`NEVER`]: it has none.
fn front<T: Timed>(chunks: &VecDeque<std::vec::IntoIter<T>>) -> u64 {
    chunks.front().and_then(|chunk| chunk.as_slice().first()).map_or(NEVER, T::at)
}

/// Time of a lane without items, which no item may have.
pub(crate) const NEVER: u64 = u64::MAX;

/// The earliest of several times, found again with a comparison a level where one of them changes.
struct Tournament {
    times: Vec<u64>,
    /// Winners by place: the first one of all at 1, those of two lanes behind each other from the middle on.
    winners: Vec<u32>,
}

impl Tournament {
    fn new(times: impl Iterator<Item = u64>) -> Tournament {
        let mut times: Vec<u64> = times.collect();
        times.resize(times.len().next_power_of_two().max(2), NEVER);
        let n = times.len();
        let mut of = Tournament { times, winners: vec![0; n] };
        (1..n).rev().for_each(|place| of.play(place));
        of
    }

    /// The earliest time and its lane; of equal ones the first lane. `None`: no lane has items.
    #[inline]
    fn winner(&self) -> Option<(u64, usize)> {
        let lane = self.winners[1] as usize;
        Some((self.times[lane], lane)).filter(|(at, _)| *at != NEVER)
    }

    #[inline]
    fn play(&mut self, place: usize) {
        let n = self.times.len();
        let of = |child: usize| match child.checked_sub(n) {
            Some(lane) => lane as u32,
            None => self.winners[child],
        };
        let (left, right) = (of(2 * place), of(2 * place + 1));
        let earlier = self.times[right as usize] < self.times[left as usize];
        self.winners[place] = if earlier { right } else { left };
    }

    /// Sets the time of a lane.
    #[inline]
    fn replay(&mut self, lane: usize, at: u64) {
        self.times[lane] = at;
        let mut place = (lane + self.times.len()) / 2;
        while place > 0 {
            self.play(place);
            place /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Timed for u64 {
        fn at(&self) -> u64 {
            *self
        }
        fn beside(&self) -> usize {
            0
        }
    }

    fn window(items: usize) -> Window<u64> {
        Window { budget: items * size_of::<u64>(), ..Window::default() }
    }

    #[test]
    fn bundles_in_rounds_come_out_in_order_from_a_window_of_three_rounds() {
        let (mut window, mut out) = (window(4 * 30), Vec::new());
        let mut all = Vec::new();
        for round in 0..50u64 {
            for cpu in 0..4u64 {
                // Each CPU is drained a bit later than the one before.
                let items: Vec<u64> =
                    (0..10).map(|n| round * 1000 + cpu * 90 + n * 97 + cpu).collect();
                all.extend_from_slice(&items);
                window.bundle(cpu as u32, items);
                window.pass(&mut |_, _, item| out.push(item));
                assert!(window.bytes <= 4 * 40 * size_of::<u64>());
            }
        }
        window.finish(&mut |_, _, item| out.push(item));
        all.sort_unstable();
        assert_eq!((out, window.late()), (all, (0, 0)));
    }

    #[test]
    fn what_comes_too_late_is_told_at_the_time_that_has_been_reached() {
        let (mut window, mut out) = (window(8), Vec::new());
        window.bundle(0, (0..20).map(|n| n * 10).collect());
        window.pass(&mut |at, _, item| out.push((at, item)));
        let reached = out.last().unwrap().0;
        window.bundle(1, vec![reached - 25, reached + 1]);
        window.finish(&mut |at, _, item| out.push((at, item)));
        assert!(out.is_sorted_by_key(|(at, _)| *at));
        assert!(out.contains(&(reached, reached - 25)));
        assert_eq!((out.len(), window.late()), (22, (1, 25)));
    }

    #[test]
    fn bundles_of_a_cpu_that_overlap_are_merged() {
        let (mut window, mut out) = (Window::default(), Vec::new());
        window.bundle(2, vec![1, 5, 9]);
        window.bundle(2, vec![10, 20]);
        window.bundle(2, vec![4, 12]);
        window.add(11);
        window.finish(&mut |_, _, item| out.push(item));
        assert_eq!(out, [1, 4, 5, 9, 10, 11, 12, 20]);
    }
}
