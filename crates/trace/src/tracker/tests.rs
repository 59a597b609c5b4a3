//! Tests of the state, event by event.

use super::*;
use crate::Limit;
use risetime_model::workload::Policy;

const A: TaskId = TaskId(0);
const B: TaskId = TaskId(70_000);

/// The state of the M1; `told`: it is known from the begin on.
fn state(told: bool) -> Tracker {
    Tracker::new(&Platform::load("m1").expect("built in"), told)
}

fn new(task: TaskId, cpu: u32) -> Event {
    let (comm, why) = (Name::of("task"), Why::Unknown);
    Event::TaskNew { task, comm, user: true, cpu: CpuId(cpu), why, max_speed: Util(1024) }
}

fn wakes(task: TaskId, cpu: u32) -> Event {
    Event::Wakeup { task, cpu: CpuId(cpu), why: Why::Unknown }
}

fn goes_over(cpu: u32, prev: Option<(TaskId, SwitchOut)>, next: Option<TaskId>) -> Event {
    Event::Switch { cpu: CpuId(cpu), prev, next }
}

/// A task comes to an idle CPU.
fn comes(state: &mut Tracker, cpu: u32, task: TaskId) -> Option<Begins> {
    let places = state.of_switch(CpuId(cpu), None, Some(task));
    state.switched(CpuId(cpu), None, Some(task), places)
}

/// Feeds events, each with its time in ns.
fn feed(state: &mut Tracker, events: &[(u64, Event)]) {
    events.iter().for_each(|(at, event)| state.event(Instant(*at), event));
}

#[test]
fn a_task_waits_runs_sleeps_and_is_gone() {
    let mut s = state(true);
    feed(&mut s, &[(10, new(A, 1)), (12, goes_over(1, None, Some(A)))]);
    let t = s.task(A).expect("created");
    assert_eq!(
        (t.doing, t.since, t.woke, t.first_ran),
        (Doing::Runs(CpuId(1)), 12, Some(10), Some(12))
    );
    assert_eq!((t.awake_for(15), s.cpu(CpuId(1)).current(), t.woken), (Some(5), Some(A), None));
    feed(&mut s, &[(20, goes_over(1, Some((A, SwitchOut::Preempted)), None))]);
    assert_eq!(
        (s.task(A).unwrap().doing, s.task(A).unwrap().awake_for(21)),
        (Doing::Waits, Some(11))
    );
    feed(
        &mut s,
        &[
            (30, goes_over(1, None, Some(A))),
            (40, goes_over(1, Some((A, SwitchOut::Sleeping)), None)),
            (50, wakes(A, 2)),
        ],
    );
    let t = s.task(A).unwrap();
    assert_eq!((t.doing, t.cpu, t.woken, t.woke), (Doing::Waits, CpuId(2), Some(50), Some(50)));
    feed(&mut s, &[(60, goes_over(2, None, Some(A)))]);
    feed(&mut s, &[(70, goes_over(2, Some((A, SwitchOut::Exited)), None))]);
    assert_eq!((s.task(A).unwrap().doing, s.task(A).unwrap().gone), (Doing::Gone, Some(70)));
}

#[test]
fn an_id_that_is_used_again_is_another_task() {
    let mut s = state(true);
    feed(&mut s, &[(1, new(B, 0)), (5, new(B, 0))]);
    let all: Vec<(Doing, u64)> = s.tasks().iter().map(|t| (t.doing, t.created)).collect();
    assert_eq!(all, [(Doing::Gone, 1), (Doing::Waits, 5)]);
    assert_eq!(s.place(B), Some(1));
}

/// Before a CPU has said anything nobody knows that it idles: time in which it may have run is no idle time.
#[test]
fn a_cpu_is_unknown_until_it_switches_or_tells_its_idle_state() {
    let mut s = state(false);
    let of = |s: &Tracker, cpu: u32| (s.cpu(CpuId(cpu)).is_known(), s.cpu(CpuId(cpu)).is_idle());
    assert_eq!(of(&s, 0), (false, false));
    feed(&mut s, &[(5, Event::Freq { cpu: CpuId(0), freq: KHz(600_000) })]);
    assert_eq!(of(&s, 0), (false, false), "a frequency does not say what runs");
    feed(
        &mut s,
        &[(7, Event::Idle { cpu: CpuId(0), state: Some(0) }), (8, goes_over(1, None, None))],
    );
    assert_eq!([of(&s, 0), of(&s, 1), of(&s, 2)], [(true, true), (true, true), (false, false)]);
    assert_eq!((of(&state(true), 3), s.cpu(CpuId(0)).since()), ((true, true), Instant(7)));
}

/// A loss on one CPU says nothing of a task that runs on another: such a task leaves it by a switch there alone.
#[test]
fn after_a_loss_all_is_unknown_but_what_runs_elsewhere() {
    let mut s = state(true);
    let (c, d) = (TaskId(2), TaskId(3));
    feed(
        &mut s,
        &[
            (1, new(A, 0)),
            (1, new(B, 1)),
            (1, new(c, 1)),
            (1, new(d, 2)),
            (2, goes_over(0, None, Some(A))),
            (3, goes_over(1, None, Some(B))),
            (4, goes_over(2, None, Some(d))),
            (5, goes_over(2, Some((d, SwitchOut::Sleeping)), None)),
            (9, Event::Unseen { cpu: CpuId(0) }),
        ],
    );
    let doing = |s: &Tracker| [A, B, c, d].map(|id| s.task(id).unwrap().doing);
    let (unknown, runs) = (Doing::Unknown, |cpu| Doing::Runs(CpuId(cpu)));
    assert_eq!(doing(&s), [unknown, runs(1), unknown, unknown]);
    assert_eq!((s.cpu(CpuId(0)).is_known(), s.cpu(CpuId(0)).current()), (false, None));
    assert_eq!(s.task(A).unwrap().awake_for(10), None);
    // A wakeup tells when it woke, a switch does not.
    feed(&mut s, &[(20, wakes(d, 3)), (30, goes_over(0, None, Some(A)))]);
    assert_eq!(doing(&s), [runs(0), runs(1), unknown, Doing::Waits]);
    let woke = [A, d].map(|id| s.task(id).unwrap().woke);
    assert_eq!(woke, [None, Some(20)]);
    assert!(s.cpu(CpuId(0)).is_known());
}

#[test]
fn who_was_there_unseen_waits_and_who_comes_unwoken_wakes() {
    let mut s = state(true);
    feed(&mut s, &[(1, new(A, 0)), (1, new(B, 0)), (2, goes_over(0, None, Some(A)))]);
    // The switch from A to B was lost, and that B slept.
    feed(&mut s, &[(5, goes_over(0, Some((B, SwitchOut::Sleeping)), None))]);
    assert_eq!([A, B].map(|id| s.task(id).unwrap().doing), [Doing::Waits, Doing::Sleeps]);
    s.advance(9);
    let begins = comes(&mut s, 1, B).expect("known");
    assert_eq!(begins.placed.woken_from, Some((Doing::Sleeps, 5)));
    assert_eq!((begins.waited, begins.placed.from), (Some((9, 9)), CpuId(0)));
}

#[test]
fn a_domain_tells_its_frequency_its_caps_and_how_many_run() {
    let mut s = state(true);
    let first = CpuId(0);
    assert_eq!(s.domain_of(first).freq(), None, "unknown until it is told");
    let most = s.domain_of(first).most;
    let cap = |max| Event::Capped { cpu: first, by: Limit::Heat, max };
    feed(
        &mut s,
        &[
            (1, Event::Freq { cpu: first, freq: KHz(972_000) }),
            (2, new(A, 0)),
            (3, goes_over(0, None, Some(A))),
            (4, cap(Some(most))),
        ],
    );
    let d = s.domain_of(first);
    assert_eq!(
        (d.freq(), d.running(), d.caps()[Limit::Heat as usize]),
        (Some(KHz(972_000)), 1, None)
    );
    feed(
        &mut s,
        &[(5, cap(Some(KHz(600_000)))), (6, goes_over(0, Some((A, SwitchOut::Sleeping)), None))],
    );
    let d = s.domain_of(first);
    assert_eq!((d.running(), d.idle_since()), (0, 6));
    assert_eq!(d.caps()[Limit::Heat as usize], Some(KHz(600_000)));
}

#[test]
fn a_priority_follows_from_the_policy_and_returns_to_the_fair_one() {
    let mut s = state(true);
    let policy = |policy| Event::Policy { task: A, policy };
    feed(&mut s, &[(1, new(A, 0)), (2, Event::Prio { task: A, prio: 115 })]);
    let prio = |s: &Tracker| s.task(A).unwrap().prio;
    feed(&mut s, &[(3, policy(Policy::Fifo { priority: 20 }))]);
    assert_eq!(prio(&s), 79);
    feed(&mut s, &[(4, policy(Policy::Other { slice: None }))]);
    assert_eq!(prio(&s), 115);
}

#[test]
fn a_due_wakeup_is_told_with_the_turn_that_it_leads_to() {
    let mut s = state(true);
    feed(
        &mut s,
        &[
            (1, new(A, 0)),
            (2, goes_over(0, None, Some(A))),
            (3, goes_over(0, Some((A, SwitchOut::Sleeping)), None)),
            (100, Event::Due { task: A, ago: Span(30) }),
            (110, wakes(A, 0)),
        ],
    );
    s.advance(120);
    assert_eq!(comes(&mut s, 0, A).expect("known").waited, Some((110, 70)));
}

#[test]
fn events_of_a_cpu_that_the_machine_lacks_change_nothing() {
    let mut s = state(true);
    feed(&mut s, &[(1, new(A, 99)), (2, goes_over(99, None, Some(A)))]);
    assert_eq!(s.task(A).expect("a task is created wherever").doing, Doing::Waits);
}

/// Otherwise each thread of a trace would have an activation of no length, begun when it was first seen.
#[test]
fn a_task_that_was_there_before_the_trace_is_unknown_until_its_next_event() {
    let mut s = state(false);
    let there = |task| match new(task, 1) {
        Event::TaskNew { task, comm, user, cpu, max_speed, .. } => {
            Event::TaskNew { task, comm, user, cpu, max_speed, why: Why::Earlier }
        }
        other => other,
    };
    feed(&mut s, &[(10, there(A))]);
    assert_eq!(s.task(A).map(|t| (t.doing, t.woke)), Some((Doing::Unknown, None)));
    // Whoever leaves a CPU has been there for an unknown time.
    feed(&mut s, &[(10, goes_over(1, Some((A, SwitchOut::Sleeping)), None))]);
    assert_eq!(s.task(A).map(|t| (t.doing, t.woke)), Some((Doing::Sleeps, None)));
    feed(&mut s, &[(20, wakes(A, 1))]);
    assert_eq!(s.task(A).map(|t| (t.doing, t.woke)), Some((Doing::Waits, Some(20))));
    // Whoever comes to one has waited for an unknown time.
    feed(&mut s, &[(30, there(B))]);
    let begins = comes(&mut s, 0, B).expect("a task");
    assert_eq!((begins.waited, s.task(B).and_then(|t| t.awake_for(31))), (None, None));
}
