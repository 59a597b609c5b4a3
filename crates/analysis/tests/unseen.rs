//! Stretches of which a trace tells nothing: no figure takes them for idle, asleep or waiting.

use crate::common::*;
use risetime_analysis::*;
use risetime_kernel::units::*;
use risetime_trace::{BackendKind, Event, TraceSink};

/// T runs on CPU 2 from 0 to 1 ms, when that CPU's events are lost; U runs on CPU 0 all the time.
fn lost_at_1_ms() -> Trace {
    let t = Trace::new().freq(0, 1000).freq(2, 2000);
    let t = t.new_task(T, 2, 1024).run(2, T).new_task(U, 0, 512).run(0, U);
    t.at(MS).event(Event::Unseen { cpu: CpuId(2) })
}

fn cpu(r: &RunResult, cpu: u32) -> &CpuResult {
    r.cpus.iter().find(|c| c.cpu == CpuId(cpu)).expect("one a CPU")
}

fn idle(r: &RunResult, of: u32) -> f64 {
    cpu(r, of).idle.iter().map(|(_, ms)| ms).sum()
}

#[test]
fn what_a_cpu_did_unseen_is_neither_busy_nor_idle() {
    let r = lost_at_1_ms().at(5 * MS).idle(2, Some(0)).at(7 * MS).end();
    close(cpu(&r, 2).busy_ms, 1.0);
    close(idle(&r, 2), 2.0);
    close(cpu(&r, 0).busy_ms, 7.0);
    close(idle(&r, 3), 7.0);
    // The energy is that of the time that is known.
    close(cpu(&r, 2).energy_mj.unwrap(), 500.0 * 1e-3 + 2.0 * 2e-3);
    assert!(r.notes.iter().any(|n| n.contains("4.0 ms")), "{:?}", r.notes);
}

#[test]
fn a_burst_ends_where_its_task_is_lost_and_another_begins_where_it_is_seen_again() {
    let t = lost_at_1_ms();
    let listed = t.listed.clone();
    let r = t.at(2 * MS).run(2, T).at(4 * MS).end();
    let ends = |of| listed.bursts(of).iter().map(|b| (b.t0_ms, b.end_ms)).collect::<Vec<_>>();
    assert_eq!(ends(T), [(0.0, 1.0), (2.0, 4.0)]);
    // U ran elsewhere: it can only have left by a switch there.
    assert_eq!(ends(U), [(0.0, 4.0)]);
    let of = |task: TaskId| &r.tasks.iter().find(|t| t.task == task).unwrap().whole;
    close(of(T).running_ms, 3.0);
    close(of(T).wait_ms, 0.0);
    close(of(U).running_ms, 4.0);
}

/// Nobody knows when the task woke: how long it waited is no sample, nor how long its activation was.
#[test]
fn a_task_that_is_seen_again_running_has_no_wakeup_and_no_activation() {
    let r = lost_at_1_ms().at(5 * MS).run(2, T).at(6 * MS).sleep(2, T).at(7 * MS).end();
    assert!(r.latency.iter().all(|l| l.activations == 0), "{:?}", r.latency);
    let r = lost_at_1_ms().at(5 * MS).wake(T, 2).at(6 * MS).run(2, T).at(7 * MS).sleep(2, T).end();
    let of = r.latency.iter().find(|l| l.tasks == "t").expect("a group");
    // Both were woken when they were created.
    assert_eq!((of.activations, of.wakeup.n), (1, 3));
}

/// A trace that somebody took begins on each CPU when its first event comes.
#[test]
fn a_cpu_of_a_foreign_trace_is_unknown_until_it_tells() {
    let mut analyzer = Analyzer::new(Options::default());
    let mut head = header();
    head.run.backend = BackendKind::File;
    analyzer.header(&head);
    let mut tell = |at: u64, event: Event| analyzer.event(Instant(at), &event);
    tell(3 * MS, Event::Idle { cpu: CpuId(0), state: Some(0) });
    tell(4 * MS, Event::Switch { cpu: CpuId(1), prev: None, next: None });
    analyzer.end(Instant(10 * MS));
    let r = analyzer.finish().0;
    assert_eq!([0, 1, 2, 3].map(|of| idle(&r, of).round()), [7.0, 6.0, 0.0, 0.0]);
}
