//! Small scenarios with exact times, and laws over random operations.

use super::*;
use crate::units::TaskId;

const MS: u64 = 1_000_000;
const A: TaskId = TaskId(1);
const B: TaskId = TaskId(2);
const REVS: [KernelRev; 2] = [KernelRev::V5_10, KernelRev::V6_1];

/// A queue of a machine with 8 CPUs: latency 24 ms, granularity 3 ms, wakeup granularity 4 ms.
fn runqueue(rev: KernelRev) -> CfsRq {
    CfsRq::new(rev, Features::of(rev), Tunables::of(8))
}

fn task(id: TaskId, nice: i32) -> Entity {
    Entity::new(id, LoadWeight::of_nice(nice))
}

/// Tasks 1, 2, … of these nice levels, all with the same vruntime, the first one running.
fn queue(rev: KernelRev, nice: &[i32]) -> CfsRq {
    let mut rq = runqueue(rev);
    for (i, &nice) in nice.iter().enumerate() {
        let mut entity = task(TaskId(i as u32 + 1), nice);
        entity.rel_deadline = true;
        rq.enqueue(entity, EnqueueKind::Restore);
    }
    switch(&mut rq);
    rq
}

/// `__schedule`: true if another entity runs now.
fn switch(rq: &mut CfsRq) -> bool {
    let next = rq.pick();
    rq.clear_need_resched();
    if next == rq.curr().map(|curr| curr.id) {
        return false;
    }
    rq.put_prev();
    next.is_some_and(|next| rq.set_next(next))
}

/// Ticks of 1 ms from `from` to `to`, with the switches at them.
fn run(rq: &mut CfsRq, from: u64, to: u64) -> Vec<(u64, u32)> {
    let mut switches = Vec::new();
    for ms in from + 1..=to {
        rq.update_clock(ms * MS);
        if rq.tick() && switch(rq) {
            let curr = rq.curr().and_then(|curr| curr.id.as_task());
            switches.push((ms, curr.map_or(0, |task| task.0)));
        }
    }
    switches
}

use alloc::vec;
use alloc::vec::Vec;

#[test]
fn two_spinners_take_turns_of_half_a_latency() {
    for rev in REVS {
        let mut rq = queue(rev, &[0, 0]);
        // The inverse of 2048 is rounded down, and with it the slice: a tick at 12 ms is past it.
        assert_eq!(rq.sched_slice(rq.curr().unwrap(), false), 12 * MS - 6);
        assert_eq!(run(&mut rq, 0, 60), [(12, 2), (24, 1), (36, 2), (48, 1), (60, 2)], "{rev}");
    }
}

#[test]
fn the_lead_ends_a_turn_before_the_slice_does() {
    // Alone for 20 ms, then another one comes 16 ms of virtual time behind (no sleeper's credit).
    let mut rq = queue(KernelRev::V6_1, &[0]);
    run(&mut rq, 0, 20);
    let mut b = task(B, 0);
    b.vruntime = 4 * MS;
    (b.rel_deadline, b.exec_start) = (false, 1);
    rq.features.wakeup_preemption = false;
    rq.enqueue(b, EnqueueKind::Wakeup);
    assert_eq!(rq.get(B).unwrap().vruntime, rq.min_vruntime().wrapping_sub(12 * MS));
    // 20 ms ran > 12 ms slice: at the very next tick.
    assert_eq!(run(&mut rq, 20, 22)[0], (21, 2));
}

#[test]
fn shares_follow_the_nice_weights() {
    // To a slice: what one of them runs in one go.
    for (nice, slice_ms) in [(vec![0, 5], 24), (vec![-5, 0, 3], 24), (vec![0; 12], 36)] {
        for rev in REVS {
            let mut rq = queue(rev, &nice);
            run(&mut rq, 0, 20_000);
            rq.put_prev();
            let all: u64 = rq.load_weight().0;
            for e in rq.timeline().iter() {
                let due = 20_000 * MS * e.weight().0 / all;
                let off = e.sum_exec_runtime.abs_diff(due);
                assert!(off <= slice_ms * MS, "{rev} {nice:?}: {} of {due}", e.sum_exec_runtime);
            }
        }
    }
    // −20 beside 0: 98.9 %.
    let mut rq = queue(KernelRev::V6_1, &[-20, 0]);
    run(&mut rq, 0, 100_000);
    let ran = rq.get(A).unwrap().sum_exec_runtime / MS;
    assert!(ran.abs_diff(100_000 * 88_761 / (88_761 + 1024)) <= 300, "{ran}");
}

#[test]
fn slices_and_periods() {
    let mut rq = queue(KernelRev::V6_1, &[0; 8]);
    assert_eq!((rq.sched_period(8), rq.sched_period(9)), (24 * MS, 27 * MS));
    // By the inverse of 8192, which is rounded down: 2^32/8192 − 1.
    let nice_0 = LoadWeight::of_nice(0);
    assert_eq!(
        rq.slice_part(24 * MS, &nice_0, 0),
        (24 * MS * (1024 * (u64::from(u32::MAX) / 8192))) >> 32
    );
    rq.enqueue(task(TaskId(9), 19), EnqueueKind::Initial);
    let light = *rq.get(TaskId(9)).unwrap();
    assert_eq!(rq.sched_slice(&light, false), 3 * MS, "never below the granularity, from 5.13");
    let mut old = queue(KernelRev::V5_10, &[0; 8]);
    old.enqueue(task(TaskId(9), 19), EnqueueKind::Initial);
    let weight = 8 * 1024 + 15;
    assert_eq!(old.sched_slice(&light, false) / 100, 27 * MS * 15 / weight / 100);
}

#[test]
fn tunables_grow_with_the_cpus() {
    let of = |cpus| Tunables::of(cpus).latency_ns / MS;
    assert_eq!([0, 1, 2, 3, 4, 8, 64].map(of), [6, 6, 12, 12, 18, 24, 24]);
    let eight = Tunables::of(8);
    assert_eq!((eight.min_granularity_ns, eight.wakeup_granularity_ns), (3 * MS, 4 * MS));
    assert_eq!(eight.idle_min_granularity_ns, 750_000, "not scaled");
}

/// Lets task B sleep at 5 ms and wake at `wakes` ms beside A, which runs all the time. Returns the
/// queue and B's vruntime when it fell asleep.
fn sleeper(rev: KernelRev, policy: FairPolicy, wakes: u64) -> (CfsRq, u64) {
    let mut rq = queue(rev, &[0, 0]);
    rq.update_clock(5 * MS);
    let mut b = rq.dequeue(B, DequeueKind::Sleep).unwrap();
    let slept_at = b.vruntime;
    b.policy = policy;
    run(&mut rq, 5, wakes);
    rq.enqueue(b, EnqueueKind::Wakeup);
    (rq, slept_at)
}

#[test]
fn sleep_counts_for_half_a_latency_at_most() {
    for rev in REVS {
        let (rq, _) = sleeper(rev, FairPolicy::Normal, 100);
        let credit = rq.min_vruntime().wrapping_sub(rq.get(B).unwrap().vruntime);
        assert_eq!(credit, 12 * MS, "{rev}");
        // A short sleep gives nothing that was not there: it keeps its vruntime.
        let (rq, slept_at) = sleeper(rev, FairPolicy::Normal, 7);
        assert_eq!(rq.get(B).unwrap().vruntime, slept_at, "{rev}");
    }
    // An idle one: half the least granularity; in 5.10 as any other.
    let credit = |rev| {
        let (rq, _) = sleeper(rev, FairPolicy::Idle, 100);
        rq.min_vruntime().wrapping_sub(rq.get(B).unwrap().vruntime)
    };
    assert_eq!((credit(KernelRev::V6_1), credit(KernelRev::V5_10)), (3 * MS / 2, 12 * MS));
}

#[test]
fn a_wakeup_preempts_from_the_granularity_on() {
    // B, of this nice level, is this far behind A.
    let preempts = |behind: u64, nice: i32| {
        let mut rq = queue(KernelRev::V6_1, &[0]);
        run(&mut rq, 0, 50);
        let mut b = task(B, nice);
        b.vruntime = rq.curr().unwrap().vruntime - behind;
        rq.enqueue(b, EnqueueKind::Wakeup);
        rq.clear_need_resched();
        rq.wakeup_preempt(B, false)
    };
    assert!(!preempts(4 * MS, 0) && preempts(4 * MS + 1, 0));
    // A light one's granularity is longer in its virtual time, a heavy one's shorter.
    let gran = |nice| LoadWeight::of_nice(nice).calc_delta_fair(KernelRev::V6_1, 4 * MS);
    for nice in [-10, -3, 2] {
        assert!(!preempts(gran(nice), nice) && preempts(gran(nice) + 1, nice), "nice {nice}");
    }
    assert!(!preempts(0, 0));
    assert!(gran(10) > 12 * MS && !preempts(40 * MS, 10), "no sleep is worth that much");
}

#[test]
fn policies_decide_before_vruntimes_do() {
    let preempts = |curr: FairPolicy, woken: FairPolicy| {
        let mut rq = queue(KernelRev::V6_1, &[0]);
        run(&mut rq, 0, 50);
        rq.curr.as_mut().unwrap().policy = curr;
        let mut b = task(B, 0);
        b.policy = woken;
        b.vruntime = rq.curr().unwrap().vruntime.wrapping_sub(30 * MS);
        rq.enqueue(b, EnqueueKind::Wakeup);
        rq.wakeup_preempt(B, false)
    };
    use FairPolicy::{Batch, Idle, Normal};
    assert!(preempts(Normal, Normal) && preempts(Batch, Normal) && preempts(Idle, Normal));
    assert!(preempts(Idle, Batch), "an idle one gives way to anybody");
    assert!(!preempts(Normal, Batch) && !preempts(Normal, Idle) && !preempts(Idle, Idle));
}

#[test]
fn who_preempts_is_picked_and_who_was_preempted_comes_back_where_many_wait() {
    // Two others, far behind: the woken one is picked before them, as long as that is fair.
    for (others, back) in [(2, false), (8, true)] {
        let mut rq = queue(KernelRev::V6_1, &vec![0; others + 1]);
        let a = rq.curr().unwrap().id;
        rq.update_clock(9 * MS);
        rq.update_curr();
        let mut woken = task(TaskId(99), 0);
        woken.vruntime = rq.curr().unwrap().vruntime.wrapping_sub(7 * MS);
        rq.enqueue(woken, EnqueueKind::Wakeup);
        assert!(rq.wakeup_preempt(TaskId(99), false));
        assert!(rq.buddy_of(TaskId(99)).next && rq.buddy_of(a).last == back);
        assert!(rq.need_resched() && !rq.wakeup_preempt(TaskId(99), false), "once");
        assert!(switch(&mut rq));
        assert_eq!(rq.curr().unwrap().id, TaskId(99));
        assert!(!rq.buddy_of(TaskId(99)).next, "it has what it wanted");
        // It sleeps again. A is 9 ms ahead of the others: too far to be preferred.
        rq.dequeue(TaskId(99), DequeueKind::Sleep).unwrap();
        assert!(switch(&mut rq));
        assert_ne!(rq.curr().unwrap().id, a);
    }
    // No further than the granularity ahead, the last buddy is preferred to the leftmost.
    let mut rq = queue(KernelRev::V6_1, &[0; 9]);
    let a = rq.curr().unwrap().id;
    rq.update_clock(4 * MS);
    rq.update_curr();
    rq.set_last_buddy(a);
    rq.put_prev();
    assert_eq!(rq.pick(), Some(a));
    rq.update_clock(5 * MS);
    let second = rq.timeline().first().unwrap().id;
    rq.set_next(a);
    rq.update_clock(6 * MS);
    rq.set_last_buddy(a);
    assert_eq!(rq.pick(), Some(second), "more than 4 ms ahead");
}

#[test]
fn a_yield_lets_the_second_go_first_if_that_is_fair() {
    for (ahead, passes) in [(3, true), (4, true), (5, false)] {
        let mut rq = queue(KernelRev::V6_1, &[0, 0]);
        let mut b = rq.dequeue(B, DequeueKind::Save).unwrap();
        b.vruntime = b.vruntime.wrapping_add(ahead * MS);
        rq.enqueue(b, EnqueueKind::Restore);
        rq.yield_task();
        assert!(rq.buddy_of(A).skip);
        assert_eq!(switch(&mut rq), passes, "{ahead} ms");
        if passes {
            // It is the leftmost and still to be skipped: until it runs.
            assert!(rq.buddy_of(A).skip);
            rq.put_prev();
            assert_eq!(rq.pick_entity(), Some(B.into()), "skipped again, B is within 4 ms");
        }
    }
}

#[test]
fn a_new_task_starts_a_slice_behind() {
    for rev in REVS {
        let mut rq = queue(rev, &[0, 0]);
        run(&mut rq, 0, 10);
        rq.enqueue(task(TaskId(3), 0), EnqueueKind::Initial);
        let debit = rq.get(TaskId(3)).unwrap().vruntime.wrapping_sub(rq.min_vruntime());
        assert!(debit.abs_diff(8 * MS) < 10, "{rev}: {debit}, a third of the latency");
        // Not before its parent.
        let mut child = task(TaskId(4), 0);
        let parent = rq.min_vruntime().wrapping_add(90 * MS);
        rq.task_fork(&mut child, Some(parent), 8 * MS);
        assert_eq!(child.vruntime, 90 * MS, "relative to the queue, on whichever it will be");
        let mut other = runqueue(rev);
        other.enqueue(child, EnqueueKind::Initial);
        let at = other.get(TaskId(4)).unwrap().vruntime;
        assert_eq!(at.wrapping_sub(other.min_vruntime()), 90 * MS);
    }
}

#[test]
fn a_move_keeps_the_distance_to_min_vruntime() {
    let mut from = queue(KernelRev::V6_1, &[0, 0, 0]);
    run(&mut from, 0, 40);
    let mut to = queue(KernelRev::V6_1, &[0]);
    to.update_clock(200 * MS);
    to.update_curr();
    // Awake: as far ahead there as here.
    let third = TaskId(3);
    let ahead = from.get(third).unwrap().vruntime.wrapping_sub(from.min_vruntime());
    let mut moved = from.dequeue(third, DequeueKind::Migrate).unwrap();
    moved.id = TaskId(7).into();
    to.enqueue(moved, EnqueueKind::Migrated);
    let there = to.get(TaskId(7)).unwrap();
    assert_eq!(there.vruntime.wrapping_sub(to.min_vruntime()), ahead);
    assert_eq!(there.exec_start, 0, "no longer cache-hot");
    // Asleep: the same, and the sleeper's credit comes on top.
    let mut asleep = from.dequeue(B, DequeueKind::Sleep).unwrap();
    switch(&mut from);
    run(&mut from, 40, 100);
    from.migrate_asleep(&mut asleep);
    from.migrate_asleep(&mut asleep);
    asleep.id = TaskId(8).into();
    to.enqueue(asleep, EnqueueKind::WakeupMigrated);
    let behind = to.min_vruntime().wrapping_sub(to.get(TaskId(8)).unwrap().vruntime);
    assert_eq!(behind, 12 * MS, "it slept for 60 ms of the others' running");
}

#[test]
fn a_new_weight_changes_no_vruntime() {
    let mut rq = queue(KernelRev::V6_1, &[0, 0]);
    run(&mut rq, 0, 7);
    let v = |rq: &CfsRq, id: TaskId| rq.get(id).unwrap().vruntime;
    let before = (v(&rq, A), v(&rq, B));
    assert!(rq.reweight(B, LoadWeight::of_nice(5)) && rq.reweight(A, LoadWeight::of_nice(-5)));
    assert!(rq.change(B.into(), |e| e.load = LoadWeight::of_nice(1)));
    assert_eq!((v(&rq, A), v(&rq, B)), before);
    assert_eq!(rq.load_weight().0, 3121 + 820);
    assert!(!rq.reweight(TaskId(9), LoadWeight::of_nice(0)));
}

/// A fixed sequence that looks random.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Over 60,000 random operations, around the point where virtual time wraps: min_vruntime never goes
/// back and is never ahead of the leftmost; the sums are those of the entities; the pick is the
/// leftmost, or a buddy no further than its granularity right of it; and nobody is further from
/// min_vruntime than can be.
#[test]
fn laws_hold_over_random_operations() {
    for rev in REVS {
        let (mut rq, mut random, mut clock) = (runqueue(rev), Random(7), 0u64);
        let mut asleep: Vec<Entity> =
            (1..=14).map(|id| task(TaskId(id), [-10, 0, 0, 5, 15][id as usize % 5])).collect();
        let mut born = [false; 15];
        for step in 0..60_000 {
            let floor = rq.min_vruntime();
            clock += random.below(3 * MS);
            rq.update_clock(clock);
            match random.below(8) {
                0 | 1 if !asleep.is_empty() => {
                    let at = random.below(asleep.len() as u64) as usize;
                    let e = asleep.swap_remove(at);
                    let id = e.id.as_task().unwrap();
                    let kind = match (
                        core::mem::replace(&mut born[id.0 as usize], true),
                        e.rel_deadline,
                    ) {
                        (false, _) => EnqueueKind::Initial,
                        (true, true) => EnqueueKind::Migrated,
                        (true, false) => EnqueueKind::Wakeup,
                    };
                    rq.enqueue(e, kind);
                    rq.wakeup_preempt(id, kind == EnqueueKind::Initial);
                }
                2 if rq.nr_running() > 0 => {
                    let kinds = [DequeueKind::Sleep, DequeueKind::Sleep, DequeueKind::Migrate];
                    let kind = kinds[random.below(3) as usize];
                    let n = random.below(rq.nr_running() as u64) as usize;
                    let id = rq.curr().into_iter().chain(rq.timeline().iter()).nth(n).unwrap().id;
                    asleep.extend(rq.dequeue(id, kind));
                    assert!(!rq.buddy_of(id).any());
                }
                3 => rq.yield_task(),
                4 => {
                    let id = TaskId(1 + random.below(14) as u32);
                    let load = LoadWeight::of_nice(random.below(40) as i32 - 20);
                    rq.reweight(id, load);
                }
                _ => {
                    rq.tick();
                }
            }
            if rq.need_resched() || rq.curr().is_none() {
                let picked = rq.pick();
                let all = || rq.curr().into_iter().chain(rq.timeline().iter());
                let left = all().map(|e| e.vruntime).min_by_key(|v| v.wrapping_sub(floor) as i64);
                if let (Some(picked), Some(left)) = (picked.and_then(|id| rq.get(id)), left) {
                    // Any of several leftmost ones.
                    let first = all().filter(|e| e.vruntime == left);
                    let gran = first.map(|e| e.load.calc_delta_fair(rev, 4 * MS)).max().unwrap();
                    let ahead = picked.vruntime.wrapping_sub(left);
                    assert!(ahead <= gran, "{rev}, step {step}: {ahead} ahead of the leftmost");
                } else {
                    assert_eq!((picked, rq.nr_running()), (None, 0));
                }
                switch(&mut rq);
            }
            assert!(
                !before(rq.min_vruntime(), floor),
                "{rev}, step {step}: min_vruntime went back"
            );
            let all = || rq.curr().into_iter().chain(rq.timeline().iter());
            assert_eq!(all().map(|e| e.load.scaled()).sum::<u64>(), rq.load);
            assert_eq!(all().count(), rq.nr_running());
            for e in all() {
                // At most the credit behind; ahead by what the lightest gets in one slice and a tick.
                let lag = e.vruntime.wrapping_sub(rq.min_vruntime()) as i64;
                assert!(lag >= -((12 * MS) as i64), "{rev}, step {step}: {lag}");
                assert!(lag < (45 * MS * 1024) as i64, "{rev}, step {step}: {lag}");
            }
        }
        assert!((rq.min_vruntime() as i64) > 0, "it has wrapped");
    }
}

#[test]
fn calls_in_any_order_do_not_panic() {
    let mut rq = runqueue(KernelRev::V6_1);
    rq.update_curr();
    rq.put_prev();
    rq.yield_task();
    rq.check_preempt_tick(0);
    assert!(!rq.tick() && !rq.wakeup_preempt(A, false) && rq.pick().is_none());
    assert!(rq.dequeue(A, DequeueKind::Sleep).is_none() && !rq.set_next(A));
    assert_eq!(rq.load_weight(), Weight(0));
    rq.set_next_buddy(A);
    assert_eq!(rq.buddy_of(A), BuddyOf::default(), "who is not here is nobody's buddy");
}
