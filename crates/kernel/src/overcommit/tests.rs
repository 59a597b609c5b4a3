//! Tests of the claims in the head of the file, with a CPU of 1 µs steps.

use super::*;
use alloc::{vec, vec::Vec};

const US: u64 = 1000;
const MS: u64 = 1000 * US;

/// A task that has a job of so much work in each period, or always wants to run.
#[derive(Clone, Copy)]
struct Task {
    ask: Ask,
    /// Work of a job; 0: the task always wants to run.
    work: u64,
    /// Time from one release to the next.
    every: u64,
}

fn ask(runtime: u64, period: u64) -> Ask {
    Ask { runtime: Span(runtime), period: Span(period) }
}

fn job(runtime: u64, period: u64) -> Task {
    Task { ask: ask(runtime, period), work: runtime, every: period }
}

fn spins(runtime: u64, period: u64) -> Task {
    Task { ask: ask(runtime, period), work: 0, every: period }
}

/// Outcome of a run: ns run by task and by the classes below, the latest that a job was, by task.
struct Came {
    ran: Vec<u64>,
    below: u64,
    late: Vec<i64>,
}

/// `above`: whether the CPU runs something of a higher class at that time.
fn run(tasks: &[Task], below: bool, ms: u64, above: impl Fn(u64) -> bool) -> Came {
    let n = tasks.len();
    let mut class = Overcommit::new(6, 0);
    let mut came = Came { ran: vec![0; n], below: 0, late: vec![i64::MIN; n] };
    let (mut left, mut released) = (vec![0u64; n], vec![0u64; n]);
    let mut runs = None;
    class.below_wants(below);
    let mut now = 0;
    while now < ms * MS {
        for (i, t) in tasks.iter().enumerate() {
            let id = TaskId(i as u32);
            if t.work == 0 {
                if now == 0 {
                    class.wake(id, t.ask);
                }
            } else if now % t.every == 0 {
                // Late jobs queue.
                left[i] += t.work;
                class.wake(id, t.ask);
            }
        }
        let turn = class.turn(runs);
        let gave = match turn {
            _ if above(now) => Gave::Above,
            Some(turn) => Gave::Turn(turn, US),
            None => Gave::Spare(US),
        };
        now += US;
        class.advance(US, gave);
        runs = turn.filter(|_| gave != Gave::Above);
        match runs {
            Some(Turn::Task(id)) => {
                let i = id.0 as usize;
                came.ran[i] += US;
                if tasks[i].work == 0 {
                    continue;
                }
                left[i] -= US;
                if left[i] % tasks[i].work == 0 {
                    released[i] += tasks[i].every;
                    came.late[i] = came.late[i].max(now as i64 - released[i] as i64);
                }
                if left[i] == 0 {
                    class.sleep(id);
                }
            }
            Some(Turn::Below) => came.below += US,
            None => came.below += if below && gave != Gave::Above { US } else { 0 },
        }
    }
    came
}

#[test]
fn its_timer_never_expires_without_end() {
    // On a slow CPU, a few ns are no work at all: what is left stays as it is.
    let mut class = Overcommit::new(6, 0);
    class.wake(TaskId(0), ask(MS, 10 * MS));
    let turn = class.turn(None);
    class.advance(MS + SLACK - 1, Gave::Turn(Turn::Task(TaskId(0)), MS + SLACK - 1));
    assert!(class.next_change(turn, FULL_SPEED / 10).is_some_and(|after| after.0 >= SLACK));
    // Only those below lag, and count for nothing without tasks that do.
    let mut class = Overcommit::new(6, 0);
    class.wake(TaskId(0), ask(MS, 10 * MS));
    class.below_wants(true);
    class.advance(MS / 2, Gave::Turn(Turn::Below, MS / 2));
    class.sleep(TaskId(0));
    class.below_wants(false);
    for _ in 0..100 {
        let Some(after) = class.next_change(None, FULL_SPEED) else { return };
        class.advance(after.0, Gave::Spare(after.0));
    }
    panic!("{class:?}");
}

#[test]
fn at_100_percent_no_deadline_is_missed() {
    for set in [
        vec![job(5 * MS, 10 * MS), job(4 * MS, 16 * MS), job(12 * MS, 48 * MS)],
        vec![job(10 * MS, 20 * MS), job(15 * MS, 30 * MS)],
        vec![job(MS, 2 * MS), job(10 * MS, 20 * MS)],
        vec![job(30 * MS, 30 * MS)],
    ] {
        let came = run(&set, false, 2000, |_| false);
        assert!(came.late.iter().all(|late| (i64::MIN + 1..=0).contains(late)), "{:?}", came.late);
        // What is below has its 6 %: 94 % of each ask is no miss.
        let smaller =
            |t: &Task| Task { ask: ask(t.ask.runtime.0 * 94 / 100 / US * US, t.every), ..*t };
        let set: Vec<Task> =
            set.iter().map(smaller).map(|t| Task { work: t.ask.runtime.0, ..t }).collect();
        let came = run(&set, true, 2000, |_| false);
        // A step is what anybody may run past its request: [`SLACK`].
        let late = |late: &i64| (i64::MIN + 1..=SLACK as i64).contains(late);
        assert!(came.late.iter().all(late), "{:?}", came.late);
        assert!(came.below >= 118 * MS, "{}", came.below);
    }
}

#[test]
fn above_100_percent_each_has_its_share_divided_by_the_sum() {
    for (set, sum) in [
        (vec![spins(12 * MS, 20 * MS), spins(15 * MS, 30 * MS), spins(20 * MS, 50 * MS)], 150),
        (vec![job(12 * MS, 20 * MS), job(15 * MS, 30 * MS), job(20 * MS, 50 * MS)], 150),
        (
            vec![spins(MS, MS), spins(9 * MS, 10 * MS), spins(MS, 100 * MS), job(30 * MS, 60 * MS)],
            241,
        ),
    ] {
        for below in [false, true] {
            let came = run(&set, below, 3000, |_| false);
            let ours = if below { 94 } else { 100 };
            for (t, ran) in set.iter().zip(&came.ran) {
                let wanted = 3000 * MS * t.ask.runtime.0 / t.ask.period.0 * ours / sum;
                assert!(
                    ran.abs_diff(wanted) <= t.ask.runtime.0 + MS,
                    "{:?}: {ran} of {wanted}",
                    t.ask
                );
            }
            let wanted = if below { 180 * MS } else { 0 };
            assert!(came.below.abs_diff(wanted) <= 2 * MS, "{} below", came.below);
        }
    }
}

#[test]
fn time_of_higher_classes_is_made_up_for_and_shared_while_it_lasts() {
    // 80 % asked for, a fifth of the CPU taken in pieces of 2 ms: jobs are late by no more than a piece and what it delays.
    let set = [job(4 * MS, 10 * MS), job(8 * MS, 20 * MS)];
    let came = run(&set, false, 2000, |now| now % (10 * MS) < 2 * MS);
    assert!(came.late.iter().all(|late| *late <= 2 * MS as i64), "{:?}", came.late);
    // Half of the CPU taken: each has five eighths of what it asks for.
    let set = [spins(4 * MS, 10 * MS), spins(8 * MS, 20 * MS)];
    let came = run(&set, false, 2000, |now| now % (10 * MS) < 5 * MS);
    assert!(came.ran.iter().all(|ran| ran.abs_diff(500 * MS) <= 8 * MS), "{:?}", came.ran);
}

#[test]
fn nobody_pays_for_what_was_spare_and_nobody_gains_by_sleeping() {
    // Alone, it is held to its share: what it does not ask for is not its own.
    let came = run(&[spins(3 * MS, 10 * MS)], true, 1000, |_| false);
    assert!(came.ran[0].abs_diff(300 * MS) <= 3 * MS);
    // One that ran in small pieces has no more for it.
    let bursts = Task { ask: ask(5 * MS, 10 * MS), work: 9 * MS, every: 30 * MS };
    let came = run(&[bursts, job(5 * MS, 10 * MS)], false, 3000, |_| false);
    assert!(came.late[1] <= SLACK as i64, "{}", came.late[1]);
}

#[test]
fn it_says_when_it_has_to_be_asked_again() {
    let mut class = Overcommit::new(6, 0);
    assert_eq!(class.next_change(None, FULL_SPEED), None);
    class.wake(TaskId(0), ask(2 * MS, 10 * MS));
    let runs = class.turn(None);
    assert_eq!(class.next_change(runs, FULL_SPEED), Some(Span(2 * MS + US)));
    // At half speed it takes twice as long.
    assert_eq!(class.next_change(runs, FULL_SPEED / 2), Some(Span(4 * MS + 2 * US)));
    class.advance(2 * MS + US, Gave::Turn(Turn::Task(TaskId(0)), 2 * MS + US));
    assert_eq!(class.turn(None), None);
    assert_eq!(class.next_change(None, FULL_SPEED), Some(Span(8 * MS - US)));
    class.advance(8 * MS - US, Gave::Spare(8 * MS - US));
    assert_eq!(class.turn(None), Some(Turn::Task(TaskId(0))));
    class.sleep(TaskId(0));
    // It has run 1 µs too long, which it owes for five.
    assert_eq!(class.next_change(None, FULL_SPEED), Some(Span(5 * US)));
    class.advance(5 * US, Gave::Spare(5 * US));
    assert_eq!((class.asked_now(), class.behind()), (0, Span(0)));
}
