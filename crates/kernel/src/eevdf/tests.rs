//! Edge cases of the runqueue, one behaviour each. Laws and vectors: tests/eevdf.rs.

use super::*;
use crate::units::TaskId;
use crate::weight::LoadWeight;

const REVS: [KernelRev; 3] = [KernelRev::V6_8, KernelRev::V6_12, KernelRev::V7_2];
const MS: u64 = 1_000_000;
const A: EntityId = EntityId::of_task(TaskId(0));
const B: EntityId = EntityId::of_task(TaskId(1));
const C: EntityId = EntityId::of_task(TaskId(2));

fn runqueue(rev: KernelRev) -> CfsRq {
    CfsRq::new(rev, Features::of(rev), Tunables::of(rev, 8, 1000))
}

fn task(id: EntityId, nice: i32) -> Entity {
    Entity::new(id, LoadWeight::of_nice(nice))
}

fn short(id: EntityId) -> Entity {
    let mut entity = task(id, 0);
    entity.request_slice(Some(100_000));
    entity
}

/// `A` and `B` queued, `A` running since 0.
fn two(rev: KernelRev) -> CfsRq {
    let mut rq = runqueue(rev);
    rq.enqueue(task(A, 0), EnqueueKind::Initial);
    rq.schedule();
    rq.enqueue(task(B, 0), EnqueueKind::Initial);
    rq
}

fn run_to(rq: &mut CfsRq, ns: u64) -> bool {
    rq.update_clock(ns);
    rq.tick()
}

#[test]
fn an_empty_queue_has_nothing_to_give() {
    for rev in REVS {
        let mut rq = runqueue(rev);
        assert_eq!(rq.schedule(), None);
        assert!(!rq.tick() && !rq.wakeup_preempt(A, false) && !rq.requeue_delayed(A));
        assert_eq!(rq.dequeue(A, DequeueKind::Sleep), Dequeued::Absent);
        assert!(!rq.reweight(A, LoadWeight::of_nice(1)) && !rq.renice(A, LoadWeight::of_nice(1)));
        assert!(!rq.set_slice(A, None) && !rq.set_next(A, true));
        assert_eq!((rq.finish_delayed(A), rq.entity_lag(A)), (None, None));
        rq.yield_task();
        rq.put_prev();
        assert_eq!((rq.nr_queued(), rq.load_weight()), (0, Weight(0)));
    }
}

#[test]
fn who_is_alone_runs_on_for_slice_after_slice() {
    for rev in REVS {
        let mut rq = runqueue(rev);
        rq.enqueue(task(A, 0), EnqueueKind::Initial);
        assert_eq!(rq.schedule(), Some(A));
        for ms in 1..50 {
            assert!(!run_to(&mut rq, ms * MS));
        }
        let curr = rq.curr().unwrap();
        assert_eq!(curr.sum_exec_runtime, 49 * MS);
        assert!(before(curr.vruntime, curr.deadline), "its request was renewed");
    }
}

#[test]
fn a_clock_that_stands_or_goes_back_accounts_nothing() {
    for rev in REVS {
        let mut rq = two(rev);
        run_to(&mut rq, MS);
        let curr = *rq.curr().unwrap();
        run_to(&mut rq, MS);
        run_to(&mut rq, MS / 2);
        assert_eq!(*rq.curr().unwrap(), curr);
    }
}

#[test]
fn a_new_task_waits_half_a_slice_less_than_a_woken_one_from_6_12() {
    for (rev, first) in [(REVS[0], 3 * MS), (REVS[1], 1_400_000), (REVS[2], 1_400_000)] {
        let mut rq = runqueue(rev);
        rq.enqueue(task(A, 0), EnqueueKind::Initial);
        let a = *rq.get(A).unwrap();
        assert_eq!(a.deadline.wrapping_sub(a.vruntime), first, "{rev}");
    }
}

#[test]
fn slice_protection_lasts_to_the_deadline_and_to_the_shortest_slice_in_7_2() {
    for rev in REVS {
        let mut rq = two(rev);
        run_to(&mut rq, MS);
        assert!(rq.curr_protected() && !rq.need_resched(), "{rev}");
    }
    let mut rq = runqueue(KernelRev::V7_2);
    rq.enqueue(short(B), EnqueueKind::Initial);
    rq.enqueue(task(A, 0), EnqueueKind::Initial);
    rq.set_next(A, true);
    assert!(!run_to(&mut rq, 99_999), "protected for B's slice");
    assert!(run_to(&mut rq, 100_000));
}

#[test]
fn a_short_slice_preempts_from_6_12_and_only_if_eligible() {
    for (rev, preempts) in REVS.into_iter().zip([false, true, true]) {
        let mut rq = two(rev);
        run_to(&mut rq, MS / 10);
        rq.enqueue(short(C), EnqueueKind::Wakeup);
        assert_eq!(rq.wakeup_preempt(C, false), preempts, "{rev}");
        assert_eq!(rq.need_resched(), preempts, "{rev}");

        let mut rq = two(rev);
        run_to(&mut rq, MS / 10);
        let mut owing = short(C);
        owing.vlag = -(MS as i64);
        rq.enqueue(owing, EnqueueKind::Wakeup);
        assert!(!rq.wakeup_preempt(C, false), "{rev}: it owes service");
    }
}

#[test]
fn forking_preempts_until_7_1() {
    for (rev, preempts) in REVS.into_iter().zip([true, true, false]) {
        let mut rq = runqueue(rev);
        rq.enqueue(task(A, 0), EnqueueKind::Initial);
        rq.schedule();
        run_to(&mut rq, 10 * MS);
        rq.enqueue(task(B, -10), EnqueueKind::Initial);
        assert_eq!(rq.wakeup_preempt(B, true), preempts, "{rev}");
    }
}

#[test]
fn the_idle_policy_yields_to_others_and_batch_never_preempts() {
    for rev in REVS {
        let mut idle = Entity::new(A, LoadWeight::of_idle_policy());
        idle.policy = FairPolicy::Idle;
        let mut rq = runqueue(rev);
        rq.enqueue(idle, EnqueueKind::Initial);
        rq.schedule();
        rq.enqueue(task(B, 0), EnqueueKind::Wakeup);
        assert!(rq.wakeup_preempt(B, false), "{rev}");

        let mut batch = short(B);
        batch.policy = FairPolicy::Batch;
        let mut rq = two(rev);
        rq.dequeue(B, DequeueKind::Save);
        run_to(&mut rq, 20 * MS);
        rq.enqueue(batch, EnqueueKind::Wakeup);
        assert!(!rq.wakeup_preempt(B, false), "{rev}");
    }
}

#[test]
fn a_sleeper_in_debt_stays_queued_from_6_12_and_leaves_without_gain() {
    for rev in REVS {
        let mut rq = two(rev);
        run_to(&mut rq, MS);
        let slept = rq.dequeue(A, DequeueKind::Sleep);
        if rev < KernelRev::V6_12 {
            assert!(matches!(slept, Dequeued::Yes(a) if a.vlag < 0));
            continue;
        }
        assert_eq!(slept, Dequeued::Delayed);
        assert_eq!((rq.nr_queued(), rq.nr_runnable()), (2, 1));
        assert_eq!(rq.schedule(), Some(B));
        assert!(rq.take_departed().is_empty(), "not eligible yet");
        run_to(&mut rq, 30 * MS);
        assert_eq!(rq.schedule(), Some(B), "A's turn is the end of its delay");
        let departed = rq.take_departed();
        assert_eq!((departed.len(), departed[0].id, departed[0].vlag), (1, A, 0));
        assert_eq!((rq.nr_queued(), rq.nr_runnable()), (1, 1));
        assert!(rq.take_departed().is_empty());
    }
}

#[test]
fn a_delayed_sleeper_can_be_woken_moved_or_made_to_leave() {
    for rev in [KernelRev::V6_12, KernelRev::V7_2] {
        let mut rq = two(rev);
        run_to(&mut rq, MS);
        rq.dequeue(A, DequeueKind::Sleep);
        rq.schedule();

        let mut woken = rq.clone();
        assert!(woken.requeue_delayed(A) && !woken.requeue_delayed(A));
        assert_eq!((woken.nr_queued(), woken.nr_runnable()), (2, 2));

        let mut moved = rq.clone();
        let Dequeued::Yes(a) = moved.dequeue(A, DequeueKind::Migrate) else { panic!("{rev}") };
        assert!(a.sched_delayed && a.rel_deadline && a.vlag < 0);
        assert_eq!((moved.nr_queued(), moved.nr_runnable()), (1, 1));
        let mut other = runqueue(rev);
        other.enqueue(task(C, 0), EnqueueKind::Initial);
        other.enqueue(a, EnqueueKind::Migrated);
        assert_eq!((other.nr_queued(), other.nr_runnable()), (2, 1), "it sleeps there, too");

        let gone = rq.finish_delayed(A).unwrap();
        assert!(!gone.sched_delayed && gone.vlag < 0);
        assert_eq!(rq.finish_delayed(B), None);
    }
}

#[test]
fn who_must_not_be_woken_in_vain_is_not_delayed() {
    let mut rq = two(KernelRev::V7_2);
    run_to(&mut rq, MS);
    assert!(matches!(rq.dequeue(A, DequeueKind::SleepSpecial), Dequeued::Yes(_)));
    assert!(rq.curr().is_none());
}

#[test]
fn moving_keeps_lag_and_the_distance_to_the_deadline() {
    for rev in REVS {
        let mut here = two(rev);
        run_to(&mut here, MS);
        let b = *here.get(B).unwrap();
        let Dequeued::Yes(moving) = here.dequeue(B, DequeueKind::Migrate) else { panic!("{rev}") };
        let mut there = runqueue(rev);
        there.enqueue(task(C, 0), EnqueueKind::Initial);
        there.schedule();
        run_to(&mut there, 7 * MS);
        there.enqueue(moving, EnqueueKind::Migrated);
        let arrived = *there.get(B).unwrap();
        assert!(there.entity_lag(B).unwrap().abs_diff(moving.vlag) <= 1, "{rev}");
        if rev >= KernelRev::V6_12 {
            assert_eq!(
                arrived.deadline.wrapping_sub(arrived.vruntime),
                b.deadline.wrapping_sub(b.vruntime)
            );
        }
        assert_eq!(arrived.exec_start, 0, "not cache-hot there");
    }
}

#[test]
fn renice_keeps_the_service_owed() {
    for rev in REVS {
        let mut rq = two(rev);
        run_to(&mut rq, MS);
        let owed = rq.entity_lag(B).unwrap() * 1024;
        for nice in [5, -7, 0] {
            let load = LoadWeight::of_nice(nice);
            assert!(rq.reweight(B, load));
            let now = rq.entity_lag(B).unwrap() * load.weight().0 as i64;
            assert!(now.abs_diff(owed) < 4 * load.weight().0.max(1024), "{rev}: {now} vs {owed}");
        }
    }
}

#[test]
fn renicing_or_resizing_the_running_task_leaves_it_running() {
    for rev in REVS {
        let mut rq = two(rev);
        run_to(&mut rq, MS);
        assert!(rq.renice(A, LoadWeight::of_nice(3)) && rq.set_slice(A, Some(5 * MS)));
        let curr = *rq.curr().unwrap();
        assert_eq!((curr.id, curr.weight(), curr.sum_exec_runtime), (A, Weight(526), MS));
        assert_eq!(curr.slice, if rev < KernelRev::V6_12 { 3 * MS } else { 5 * MS });
        assert_eq!(rq.nr_queued(), 2);
    }
}

#[test]
fn yield_passes_the_turn_on() {
    for rev in REVS {
        let mut rq = two(rev);
        rq.schedule();
        // At the start A is eligible (it has had nothing yet).
        rq.yield_task();
        rq.schedule();
        let (a, b) = (*rq.get(A).unwrap(), *rq.get(B).unwrap());
        assert!(before(b.deadline, a.deadline), "{rev}: A now waits for B");
    }
}

#[test]
fn slices_are_clamped_and_the_base_slice_grows_with_the_cpus() {
    let mut entity = task(A, 0);
    for (asked, got) in [(1, 100_000), (5 * MS, 5 * MS), (u64::MAX, 100 * MS)] {
        entity.request_slice(Some(asked));
        assert_eq!(entity.slice, got);
    }
    let base = |rev, cpus| Tunables::of(rev, cpus, 250).base_slice_ns;
    assert_eq!([1, 2, 4, 8, 256].map(|n| base(KernelRev::V7_2, n) / 700_000), [1, 2, 3, 4, 4]);
    assert_eq!([0, 3, 7].map(|n| base(KernelRev::V6_8, n) / 750_000), [1, 2, 3]);
}

/// Both stand at the same deadline; who was queued first is picked, also once the queue counts from another origin.
#[test]
fn of_equal_deadlines_the_first_queued_is_picked_after_a_resume_too() {
    for rev in REVS {
        let mut rq = runqueue(rev);
        rq.enqueue(task(B, 0), EnqueueKind::Initial);
        rq.enqueue(task(A, 0), EnqueueKind::Initial);
        let place = |id| rq.get(id).map(|e| (e.vruntime, e.deadline));
        assert_eq!(place(A), place(B));
        rq.resume(1_000_000, false);
        assert_eq!(rq.schedule(), Some(B));
    }
}

#[test]
fn virtual_time_wraps_unnoticed() {
    for rev in REVS {
        let mut rq = runqueue(rev);
        for id in [A, B, C] {
            rq.enqueue(task(id, 0), EnqueueKind::Initial);
        }
        assert!((rq.avg_vruntime() as i64) < 0, "v0 starts just before the wrap");
        for ms in 1..400 {
            rq.schedule();
            run_to(&mut rq, ms * MS);
        }
        let ran: Vec<u64> = rq.iter().map(|e| e.sum_exec_runtime / MS).collect();
        assert!(ran.iter().all(|ms| (129..=137).contains(ms)), "{rev}: {ran:?}");
        assert!((rq.avg_vruntime() as i64) > 0);
    }
}
