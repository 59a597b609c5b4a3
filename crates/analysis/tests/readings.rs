//! The figures of a part of a run, by a trace written by hand.

use crate::common;
use SwitchOut::{Exited, Preempted, Sleeping};
use common::{MS, T, U, US, header};
use risetime_analysis::{Kind, Reading, Readings};
use risetime_kernel::units::{CpuId, Instant, KHz, Span, TaskId, Util};
use risetime_model::workload::{JobMark, JobSpec};
use risetime_trace::{Event, SwitchOut, TraceSink, Why};

fn new(task: TaskId, comm: &'static str, user: bool) -> Event {
    let (cpu, why, max_speed) = (CpuId(0), Why::Unknown, Util(1024));
    Event::TaskNew { task, comm: comm.into(), user, cpu, why, max_speed }
}
fn wakeup(task: TaskId) -> Event {
    Event::Wakeup { task, cpu: CpuId(0), why: Why::Unknown }
}
fn switch(cpu: u32, prev: Option<(TaskId, SwitchOut)>, next: Option<TaskId>) -> Event {
    Event::Switch { cpu: CpuId(cpu), prev, next }
}

/// The figures of `events` (times in µs) from `from` ms on for `length` ms; the run ends at 1 s.
fn readings(events: &[(u64, Event)], from: u64, length: u64) -> Vec<Reading> {
    let mut sink = Readings::new(Instant(from * MS), Span(length * MS));
    sink.header(&header());
    for (at, event) in events {
        sink.event(Instant(at * US), event);
    }
    sink.end(Instant(1000 * MS));
    sink.finish()
}

fn of(all: &[Reading], kind: Kind, of: &str) -> Option<f64> {
    all.iter().find(|r| r.kind == kind && r.of == of).map(|r| r.value)
}

fn near(found: Option<f64>, wanted: f64) {
    // Quantiles are those of buckets.
    let found = found.expect("a figure");
    assert!((found - wanted).abs() <= 0.004 * wanted + 1e-9, "{found}, wanted {wanted}");
}

/// Two tasks of 100 ms, from 100 ms on; what was before tells where everything stands.
fn trace() -> Vec<(u64, Event)> {
    let freq = |cpu, mhz: u64| Event::Freq { cpu: CpuId(cpu), freq: KHz(mhz * 1000) };
    let kthread = TaskId(9);
    vec![
        (0, freq(0, 1000)),
        (0, freq(2, 1000)),
        (0, new(kthread, "kworker", false)),
        // Before the part: its activation and its wakeup count in none of the figures.
        (10_000, new(T, "a", true)),
        (15_000, switch(0, None, Some(T))),
        (90_000, switch(0, Some((T, Sleeping)), None)),
        // In it. T waits 2 ms for a CPU, is preempted for 4 ms, moved, and runs on elsewhere.
        (100_000, wakeup(T)),
        (101_000, wakeup(T)),
        (102_000, switch(0, None, Some(T))),
        (106_000, switch(0, Some((T, Preempted)), Some(kthread))),
        (106_500, freq(2, 2000)),
        (110_000, switch(2, None, Some(T))),
        (114_000, freq(2, 1000)),
        (116_000, switch(2, Some((T, Sleeping)), None)),
        (120_000, switch(0, Some((kthread, Sleeping)), None)),
        (130_000, new(U, "b-1", true)),
        (130_000, switch(0, None, Some(U))),
        (140_000, switch(0, Some((U, Exited)), None)),
        (150_000, wakeup(T)),
        (150_500, switch(2, None, Some(T))),
        // Cut off by the end of the part.
        (400_000, switch(2, Some((T, Sleeping)), None)),
    ]
}

#[test]
fn each_figure_is_what_its_definition_says() {
    let all = readings(&trace(), 100, 100);
    // Activations of a: 16 ms; the other is cut off. Its wakeups took 2 and 0.5 ms.
    near(of(&all, Kind::ActivationP50, "a"), 16.0);
    near(of(&all, Kind::ActivationP95, "a"), 16.0);
    near(of(&all, Kind::WakeupP50, "a"), 0.5);
    near(of(&all, Kind::WakeupP99, "a"), 2.0);
    near(of(&all, Kind::ActivationP50, "b"), 10.0);
    assert_eq!(of(&all, Kind::WakeupP50, "b"), Some(0.0));
    // Per second: ten times what it is in 100 ms.
    let a = 4.0 + 6.0 + 49.5;
    near(of(&all, Kind::Running, "a"), 10.0 * a);
    near(of(&all, Kind::Running, "b"), 10.0 * 10.0);
    near(of(&all, Kind::Cluster, "capacity 512"), 10.0 * 14.0);
    near(of(&all, Kind::Cluster, "capacity 1024"), 10.0 * 55.5);
    near(of(&all, Kind::Frequency, "capacity 512"), 1000.0);
    near(of(&all, Kind::Frequency, "capacity 1024"), (4.0 * 2000.0 + 51.5 * 1000.0) / 55.5);
    // 0 to 2, and there it stays: once.
    near(of(&all, Kind::Migrations, ""), 10.0);
    // CPU 0: 28 ms at 40 mW (with the kernel's thread), 72 idle at 2; CPU 1: 100 idle; CPU 2: 4 ms at
    // 500 mW, 51.5 at 100, 44.5 idle; CPU 3: 100 idle.
    let uj = 28.0 * 40.0 + 72.0 * 2.0 + 200.0 + 4.0 * 500.0 + 51.5 * 100.0 + 44.5 * 2.0 + 200.0;
    near(of(&all, Kind::Energy, ""), 10.0 * uj / 1000.0);
    let kinds: Vec<Kind> = all.iter().map(|r| r.kind).collect();
    assert!(kinds.is_sorted(), "{kinds:?}");
}

#[test]
fn a_wait_after_a_preemption_is_no_wakeup() {
    let events = [
        (0, new(T, "a", true)),
        (0, switch(0, None, Some(T))),
        (5_000, switch(0, Some((T, Preempted)), None)),
        (9_000, switch(0, None, Some(T))),
        (10_000, switch(0, Some((T, Sleeping)), None)),
    ];
    let all = readings(&events, 0, 100);
    assert_eq!(of(&all, Kind::WakeupP99, "a"), Some(0.0));
    near(of(&all, Kind::ActivationP50, "a"), 10.0);
}

#[test]
fn a_wakeup_that_was_lost_makes_no_figure() {
    let events = [
        (0, new(T, "a", true)),
        (1_000, switch(0, None, Some(T))),
        (2_000, switch(0, Some((T, Sleeping)), None)),
        (50_000, switch(0, None, Some(T))),
        (60_000, switch(0, Some((T, Sleeping)), None)),
    ];
    let all = readings(&events, 0, 100);
    near(of(&all, Kind::WakeupP99, "a"), 1.0);
    near(of(&all, Kind::ActivationP95, "a"), 2.0);
}

#[test]
fn what_hardly_runs_has_no_frequency_and_nothing_no_figures() {
    let events = [
        (0, new(T, "a", true)),
        (0, switch(0, None, Some(T))),
        (900, switch(0, Some((T, Sleeping)), None)),
    ];
    assert_eq!(of(&readings(&events, 0, 100), Kind::Frequency, "capacity 512"), None);
    assert!(of(&readings(&events, 0, 50), Kind::Frequency, "capacity 512").is_some());
    assert_eq!(readings(&events, 0, 0), []);
    assert_eq!(readings(&events, 2000, 100), [], "after the run's end");
    assert_eq!(Readings::new(Instant(0), Span(1)).finish(), []);
}

#[test]
fn jobs_count_from_the_part_on() {
    let timer = |due: u64, release: u64| {
        let (due, release) = (Instant(due * MS), Instant(release * MS));
        let period = Span(10 * MS);
        let mark = JobMark::Timer { due, release, period, absolute: false, worked: true };
        Event::Job { task: T, mark }
    };
    let begins = |release: u64| {
        let release = Some(Instant(release * MS));
        Event::Job { task: T, mark: JobMark::Begins { release, period: None, counted: false } }
    };
    let events = [
        (0, new(T, "a", true)),
        (0, begins(0)),
        // Before the part, and across its beginning.
        (4_000, timer(10, 10)),
        (10_000, begins(10)),
        (23_000, timer(20, 23)),
        (23_000, begins(23)),
        // In time, late by 2 ms, and not done by the end of the part.
        (31_000, timer(33, 33)),
        (33_000, begins(33)),
        (45_000, timer(43, 45)),
        (45_000, begins(45)),
    ];
    let mut header = header();
    header.asked.as_mut().expect("of an experiment").jobs =
        vec![JobSpec { name: "frame".into(), tasks: vec![0], deadline: None, period: None }];
    let mut sink = Readings::new(Instant(20 * MS), Span(40 * MS));
    sink.header(&header);
    events.iter().for_each(|(at, event)| sink.event(Instant(at * US), event));
    sink.end(Instant(1000 * MS));
    let all = sink.finish();
    let found = |kind| of(&all, kind, "frame");
    // Due at 33, 43 and 55, the last one overdue at 60.
    assert_eq!(found(Kind::JobsDue), Some(3.0));
    assert_eq!(found(Kind::JobsReleased), Some(3.0 * 25.0));
    assert_eq!((found(Kind::JobsDone), found(Kind::JobsLate)), (Some(50.0), Some(25.0)));
    assert_eq!((found(Kind::JobsMissed), found(Kind::JobsDropped)), (Some(50.0), Some(0.0)));
    near(found(Kind::ResponseP50), 12.0);
    near(found(Kind::ResponseP99), 15.0);
    near(found(Kind::LatenessP50), 2.0);
    near(found(Kind::LatenessP99), 5.0);
    let floor = |kind| all.iter().find(|r| r.kind == kind).unwrap().floor;
    // A hundredth of the jobs, and a twentieth of the response.
    near(Some(floor(Kind::JobsMissed)), 0.75);
    near(Some(floor(Kind::LatenessP50)), 0.6);
}

#[test]
fn names_are_told_once_and_events_of_unknown_cpus_are_left_out() {
    let events = [
        (0, new(T, "w-0", true)),
        (0, new(U, "w-1", true)),
        (0, switch(77, None, Some(T))),
        (0, switch(0, None, Some(T))),
        (0, switch(1, None, Some(U))),
        (10_000, switch(0, Some((T, Sleeping)), None)),
        (20_000, switch(1, Some((U, Sleeping)), None)),
    ];
    let all = readings(&events, 0, 100);
    near(of(&all, Kind::Running, "w"), 300.0);
    near(of(&all, Kind::ActivationP95, "w"), 20.0);
}
