//! MuQSS, the Multiple Queue Skiplist Scheduler of Con Kolivas, as of linux-ck 4.14 (v0.162): its integers.
//!
//! ```text
//! niffies      ns that never go back, alike on all CPUs
//! prio_ratios  128 at nice -20, each nice value 11/10 of the one before, rounded down
//! time_slice   rr_interval << 10, in units of 1024 ns; used up as the task runs
//! deadline     niffies + prio_ratio · rr_interval · 2^20 / 128         set when the slice is used up
//! sl_id        the deadline; SCHED_IDLE: with its four highest bits set, behind all others
//! preempts     by an earlier deadline; SCHED_BATCH by none; SCHED_IDLE nobody
//! ```
//!
//! All tasks get the same slice; what tells nice values apart is how far off the deadline is. A task that
//! sleeps keeps slice and deadline, so that it is soon due where it slept long.
//! Source: kernel/sched/MuQSS.c (GPL-2.0) of linux-ck, symbols named at each function; understood from
//! it, not checked against what it compiles to.

use crate::eevdf::FairPolicy;
use crate::units::TaskId;
use alloc::vec;
use alloc::vec::Vec;

/// `NICE_WIDTH`.
const NICE_WIDTH: usize = 40;
/// A slice with less left than this, in 1024 ns, is as good as used up (`RESCHED_US`).
const RESCHED_US: i64 = 100;
/// Upper bits of the key of an idle task.
const IDLE_KEY: u64 = 0xF000_0000_0000_0000;

/// `prio_ratios`: how long each nice value's deadline is, of 128.
const PRIO_RATIOS: [u64; NICE_WIDTH] = {
    let mut ratios = [128; NICE_WIDTH];
    let mut i = 1;
    while i < NICE_WIDTH {
        ratios[i] = ratios[i - 1] * 11 / 10;
        i += 1;
    }
    ratios
};

/// The tunables of MuQSS (`/proc/sys/kernel`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// `rr_interval`, in ms.
    pub rr_interval: u64,
    /// `sched_interactive`: the earliest deadline of all CPUs comes first; else only that of fuller queues.
    pub interactive: bool,
    /// `sched_yield_type`.
    pub yield_type: YieldType,
}

/// Effect of `sched_yield`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YieldType {
    /// 0: nothing.
    No,
    /// 1: whoever has an earlier deadline comes first.
    Better,
    /// 2: the slice is used up.
    Expire,
}

impl Default for Tunables {
    fn default() -> Tunables {
        Tunables { rr_interval: 6, interactive: true, yield_type: YieldType::Better }
    }
}

impl Tunables {
    /// The slice of every task, in 1024 ns. Source: `timeslice`.
    fn timeslice(&self) -> i64 {
        (self.rr_interval << 10) as i64
    }

    /// The distance of a deadline from the time at which it is set, in ns. Source:
    /// `prio_deadline_diff`.
    pub fn prio_deadline_diff(&self, nice: i8) -> u64 {
        let user_prio = (i32::from(nice) + 20).clamp(0, NICE_WIDTH as i32 - 1) as usize;
        PRIO_RATIOS[user_prio] * self.rr_interval * ((1 << 20) / 128)
    }
}

/// State of a task in MuQSS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entity {
    /// The rest of the task's slice, in 1024 ns; below 0: it ran longer.
    pub time_slice: i64,
    /// Virtual deadline, in niffies.
    pub deadline: u64,
    /// The task's place in the skip list while it waits.
    pub node: Option<u32>,
}

impl Entity {
    /// Charges the slice for `ran_ns`. Source: `update_cpu_clock_switch`. Rounding: down, each
    /// time.
    pub fn account(&mut self, ran_ns: u64) {
        self.time_slice -= (ran_ns >> 10) as i64;
    }

    /// Whether what is left of the slice is not worth going on for.
    pub fn is_expired(&self) -> bool {
        self.time_slice < RESCHED_US
    }

    /// A new slice and a new deadline. Source: `time_slice_expired`.
    pub fn time_slice_expired(&mut self, tunables: &Tunables, niffies: u64, nice: i8) {
        self.time_slice = tunables.timeslice();
        self.deadline = niffies.wrapping_add(tunables.prio_deadline_diff(nice));
    }

    /// Gives a task that leaves the CPU with its slice used up a new slice, and with it a later
    /// deadline; SCHED_BATCH gets these each time. Source: `check_deadline`.
    pub fn check_deadline(
        &mut self,
        tunables: &Tunables,
        niffies: u64,
        nice: i8,
        policy: FairPolicy,
    ) {
        if self.is_expired() || policy == FairPolicy::Batch {
            self.time_slice_expired(tunables, niffies, nice);
        }
    }

    /// Splits with a new child what is left of the slice; both keep the deadline. `None`: too
    /// little is left. Source: `wake_up_new_task`, where there is enough left.
    pub fn fork(&mut self) -> Option<Entity> {
        self.time_slice /= 2;
        (!self.is_expired()).then_some(Entity { node: None, ..*self })
    }

    /// Moves the deadline when the nice value changes from `before` to `nice`. Source:
    /// `adjust_deadline`.
    pub fn adjust_deadline(&mut self, tunables: &Tunables, before: i8, nice: i8) {
        let (old, new) = (tunables.prio_deadline_diff(before), tunables.prio_deadline_diff(nice));
        self.deadline = self.deadline.wrapping_add(new).wrapping_sub(old);
    }

    /// The time left of the slice, in ns, after which the CPU looks again (`hrexpiry_start`).
    pub fn left_ns(&self) -> u64 {
        (self.time_slice.max(0) as u64) << 10
    }

    /// The key of the task in a queue: its deadline, of SCHED_IDLE tasks behind all others. Source:
    /// `enqueue_task`.
    pub fn sl_id(&self, policy: FairPolicy) -> u64 {
        match policy {
            FairPolicy::Idle => self.deadline | IDLE_KEY,
            FairPolicy::Normal | FairPolicy::Batch => self.deadline,
        }
    }

    /// Whether it takes the CPU from `curr`. Source: `can_preempt`, `try_preempt`.
    pub fn can_preempt(&self, policy: FairPolicy, curr: (&Entity, FairPolicy)) -> bool {
        match (policy, curr.1) {
            (FairPolicy::Idle, _) => false,
            (_, FairPolicy::Idle) => true,
            (FairPolicy::Batch, _) => false,
            (FairPolicy::Normal, _) => self.deadline < curr.0.deadline,
        }
    }
}

/// `load_avg` of a runqueue, which cpufreq follows: about what 1024 · tasks² would be over 52 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadAvg {
    load_avg: u64,
    updated: u64,
}

impl LoadAvg {
    /// A queue that has been empty until then.
    pub fn new(niffies: u64) -> LoadAvg {
        LoadAvg { load_avg: 0, updated: niffies }
    }

    /// Ages the average up to `niffies`, during which `tasks` were runnable, the running one
    /// counted; false: no time has passed. `tasks` is the number *now*, so that an idle time ends
    /// up as load. Source: `update_load_avg`, without the quick rise that v0.150 and older had.
    pub fn update(&mut self, niffies: u64, tasks: u64) -> bool {
        if niffies <= self.updated {
            return false;
        }
        let us = (niffies - self.updated) >> 10;
        let part = |load: u64| (u128::from(load) * u128::from(us) * 5 / 262_144) as u64;
        let kept = self.load_avg.saturating_sub(part(self.load_avg));
        self.load_avg = kept + part(tasks * tasks * 1024);
        self.updated = niffies;
        true
    }

    /// The load of 1024, at most 1024.
    pub fn util(&self) -> u64 {
        self.load_avg.min(1024)
    }
}

/// Largest number of levels of a skip list.
const LEVELS: usize = 8;
/// The place before the first and behind the last one.
const HEAD: u32 = 0;

/// Tasks in the order of their keys, those of one key in the order of their coming (`skip_list.c`).
///
/// One in four nodes is also on the second level, one in sixteen on the third, and so on, so that looking for
/// a place takes about log(n) steps; who is first, and leaving from a known place, takes one.
#[derive(Clone, Debug)]
pub struct SkipList {
    /// The head, then nodes in use or free.
    nodes: Vec<Node>,
    free: Vec<u32>,
    entries: usize,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    key: u64,
    task: TaskId,
    /// Number of levels that the node is on.
    levels: usize,
    next: [u32; LEVELS],
    prev: [u32; LEVELS],
}

impl Default for SkipList {
    fn default() -> SkipList {
        let head = Node {
            key: 0,
            task: TaskId(u32::MAX),
            levels: LEVELS,
            next: [HEAD; LEVELS],
            prev: [HEAD; LEVELS],
        };
        SkipList { nodes: vec![head], free: Vec::new(), entries: 0 }
    }
}

impl SkipList {
    /// Tasks in it.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// The first one's key; `u64::MAX`: there is none (`best_key`).
    pub fn best_key(&self) -> u64 {
        self.iter().next().map_or(u64::MAX, |(key, _)| key)
    }

    /// Keys and tasks in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, TaskId)> + '_ {
        let mut at = HEAD;
        core::iter::from_fn(move || {
            at = self.node(at).next[0];
            (at != HEAD).then(|| (self.node(at).key, self.node(at).task))
        })
    }

    fn node(&self, at: u32) -> &Node {
        &self.nodes[at as usize]
    }

    /// Puts `task` behind all of no greater key; `randseed` says on how many levels. Its place.
    /// Source: `skiplist_insert`, `randomLevel`.
    pub fn insert(&mut self, key: u64, task: TaskId, randseed: u32) -> u32 {
        let levels = 1 + (randseed.trailing_zeros() as usize / 2).min(LEVELS - 1);
        let node = Node { key, task, levels, next: [HEAD; LEVELS], prev: [HEAD; LEVELS] };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.nodes[slot as usize] = node;
                slot
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        };
        let mut at = HEAD;
        for level in (0..LEVELS).rev() {
            let next = |at: u32| self.nodes[at as usize].next[level];
            while next(at) != HEAD && self.node(next(at)).key <= key {
                at = next(at);
            }
            if level < levels {
                self.link(at, slot, level);
            }
        }
        self.entries += 1;
        slot
    }

    /// `slot` comes behind `at` on that level.
    fn link(&mut self, at: u32, slot: u32, level: usize) {
        let next = core::mem::replace(&mut self.nodes[at as usize].next[level], slot);
        (self.nodes[slot as usize].prev[level], self.nodes[slot as usize].next[level]) = (at, next);
        self.nodes[next as usize].prev[level] = slot;
    }

    /// Takes out what stands at that place. Source: `skiplist_delete`.
    pub fn delete(&mut self, slot: u32) {
        let Node { levels, next, prev, .. } = *self.node(slot);
        for level in 0..levels {
            self.nodes[prev[level] as usize].next[level] = next[level];
            self.nodes[next[level] as usize].prev[level] = prev[level];
        }
        self.free.push(slot);
        self.entries -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1 << 20;

    #[test]
    fn deadlines_grow_by_a_tenth_with_each_nice_value() {
        let ratio = |nice: i8| Tunables::default().prio_deadline_diff(nice) / (6 * MS / 128);
        assert_eq!([ratio(-20), ratio(-19), ratio(-18)], [128, 140, 154]);
        for nice in -20..19 {
            assert_eq!(ratio(nice + 1), ratio(nice) * 11 / 10);
        }
        // 1.1 to the 20th and to the 39th is 6.7 and 41; rounded down at each step, 6.5 and 39.8.
        assert_eq!((ratio(0), ratio(19)), (836, 5089));
        assert_eq!(Tunables::default().prio_deadline_diff(-20), 6 * MS);
        let twice = Tunables { rr_interval: 12, ..Tunables::default() };
        assert_eq!(twice.prio_deadline_diff(3), 2 * Tunables::default().prio_deadline_diff(3));
    }

    /// The documentation says that nice -10 has a cycle of 16 ms.
    #[test]
    fn the_deadline_of_nice_minus_10_is_about_16_ms() {
        let ns = Tunables::default().prio_deadline_diff(-10);
        assert!((15 * MS..16 * MS).contains(&ns), "{ns}");
    }

    #[test]
    fn a_slice_is_used_up_when_little_is_left() {
        let t = Tunables::default();
        let mut e = Entity::default();
        e.time_slice_expired(&t, 1000, 0);
        assert_eq!((e.time_slice, e.deadline, e.left_ns()), (6144, 1000 + 836 * 6 * 8192, 6 * MS));
        e.account(1023);
        assert_eq!(e.time_slice, 6144, "less than 1024 ns are nothing");
        e.account(6044 * 1024);
        assert!(!e.is_expired());
        let due = e.deadline;
        e.check_deadline(&t, 9000, 0, FairPolicy::Normal);
        assert_eq!((e.time_slice, e.deadline), (100, due));
        e.account(1024);
        assert!(e.is_expired());
        e.check_deadline(&t, 9000, 0, FairPolicy::Normal);
        assert_eq!((e.time_slice, e.deadline), (6144, due + 8000));
        e.check_deadline(&t, 9001, 0, FairPolicy::Batch);
        assert_eq!(e.deadline, due + 8001, "batch: each time");
    }

    #[test]
    fn a_child_halves_its_parents_slice() {
        let mut parent = Entity { time_slice: 500, deadline: 7, node: Some(3) };
        let child = parent.fork().expect("enough");
        assert_eq!(child, Entity { time_slice: 250, deadline: 7, node: None });
        assert_eq!(parent.time_slice, 250);
        parent.time_slice = 199;
        assert_eq!(parent.fork(), None, "less than 100 each: the child begins anew");
        let t = Tunables::default();
        let mut e = Entity { deadline: 1 << 40, ..child };
        e.adjust_deadline(&t, 0, 5);
        e.adjust_deadline(&t, 5, 0);
        assert_eq!(e.deadline, 1 << 40);
        e.adjust_deadline(&t, 0, -20);
        assert_eq!(e.deadline, (1 << 40) - (836 - 128) * 6 * 8192);
    }

    #[test]
    fn the_earlier_deadline_preempts() {
        use FairPolicy::{Batch, Idle, Normal};
        let at = |deadline| Entity { deadline, ..Entity::default() };
        let (early, late) = (at(1), at(2));
        assert!(early.can_preempt(Normal, (&late, Normal)));
        assert!(early.can_preempt(Normal, (&late, Batch)));
        assert!(!early.can_preempt(Normal, (&at(1), Normal)));
        assert!(!late.can_preempt(Normal, (&early, Normal)));
        assert!(!early.can_preempt(Batch, (&late, Normal)));
        assert!(
            late.can_preempt(Normal, (&early, Idle)) && late.can_preempt(Batch, (&early, Idle))
        );
        assert!(
            !early.can_preempt(Idle, (&late, Idle)) && !early.can_preempt(Idle, (&late, Normal))
        );
        assert!(at(1).sl_id(Idle) > at(1 << 50).sl_id(Normal));
    }

    #[test]
    fn load_rises_to_a_cpu_in_some_50_ms_and_falls_as_fast() {
        let mut load = LoadAvg::new(0);
        let mut reach = |tasks: u64, done: fn(u64) -> bool, from: u64| {
            let at = (1..500).find(|ms| {
                assert!(load.update(from + ms * MS, tasks));
                done(load.util())
            });
            at.expect("it gets there")
        };
        let up = reach(1, |util| util > 640, 0);
        assert!((45..60).contains(&up), "63 % after {up} ms");
        let up = reach(1, |util| util > 1000, up * MS) + up;
        let down = reach(0, |util| util < 376, up * MS);
        assert!((45..60).contains(&down), "37 % after {down} ms");
        assert!(!load.update(0, 1), "no time has passed");
        let mut two = LoadAvg::new(0);
        two.update(13 * MS, 2);
        assert_eq!(two.util(), 1024, "two tasks count four times");
        let mut idle = LoadAvg::new(0);
        idle.update(60_000 * MS, 0);
        assert_eq!(idle.util(), 0);
    }

    /// Against a list sorted by key, then by time of coming.
    #[test]
    fn a_skip_list_is_sorted_and_first_come_first_served() {
        let mut seed = 1u64;
        let mut draw = |below: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let (mut list, mut model) = (SkipList::default(), Vec::<(u64, TaskId, u32)>::new());
        for i in 0..5000u32 {
            if model.is_empty() || draw(5) < 3 {
                let key = draw(40);
                let slot = list.insert(key, TaskId(i), draw(1 << 31) as u32);
                let behind = model.iter().position(|m| m.0 > key).unwrap_or(model.len());
                model.insert(behind, (key, TaskId(i), slot));
            } else {
                let (_, _, slot) = model.remove(draw(model.len() as u64) as usize);
                list.delete(slot);
            }
            assert_eq!(list.entries(), model.len());
            assert_eq!(list.best_key(), model.first().map_or(u64::MAX, |m| m.0));
            if i % 50 == 0 {
                assert!(list.iter().eq(model.iter().map(|m| (m.0, m.1))), "after {i}");
            }
        }
        assert!(list.nodes.len() < 2500, "places are used again");
        assert_eq!(SkipList::default().insert(1, TaskId(0), 0), 1, "a seed of 0 is on all levels");
    }
}
