//! Wake lists: a task that another CPU wakes is queued by its waker, or by the CPU itself when it hears of it.

use super::experiment;
use crate::Simulator;
use risetime_kernel::units::{CpuId, Instant, Span, TaskId};
use risetime_model::settings::Value;
use risetime_model::{Platform, Workload};
use risetime_trace::{Backend, Event, Memory};

/// A task that is woken by another CPU is on the wake list of an idle one, which hears of it later
/// (`ttwu_queue_wakelist`, since 5.8); a busy one has it in its queue at once, and looks later.
#[test]
fn another_cpu_hears_later_of_a_task_that_it_is_to_run() {
    let busy = r#", "busy": {"cpus": [1], "priority": 19, "loop": -1, "run": 1000}"#;
    let woken = |kernel: &str, others: &str, ns: i64| {
        let tasks = format!(
            r#""waker": {{"cpus": [0], "loop": -1, "run": 1000, "resume": "wakee", "runtime": 300, "sleep": 4000}},
               "wakee": {{"cpus": [1], "policy": "SCHED_FIFO", "priority": 5, "loop": -1, "suspend": "wakee", "run": 400}}{others}"#
        );
        let workload =
            Workload::parse(&format!(r#"{{"tasks": {{{tasks}}}}}"#), "t").expect("tasks");
        let set = [("remote_resched_delay_ns", Value::Int(ns))];
        let platform = Platform::load("m1").expect("built in");
        let e = experiment(platform, workload, kernel, &set, Span::from_ms(14));
        let mut trace = Memory::new();
        Simulator.run(&e, &mut trace).expect("runs");
        let of = |(at, event): &(Instant, Event)| match event {
            Event::Wakeup { task: TaskId(1), .. } => Some((at.0, false)),
            Event::Switch { next: Some(TaskId(1)), .. } => Some((at.0, true)),
            _ => None,
        };
        let mut all = trace.events().iter().filter_map(of).skip_while(|(_, runs)| *runs);
        (all.next().expect("woken").0, all.find(|(_, runs)| *runs).expect("runs").0)
    };
    for (kernel, wakelist) in [("linux-4.20", false), ("linux-6.1", true), ("linux-7.3", true)] {
        let ((at, runs), (late_at, late_runs)) = (woken(kernel, "", 0), woken(kernel, "", 40_000));
        assert_eq!(late_at - at, if wakelist { 40_000 } else { 0 }, "{kernel}");
        assert_eq!(late_runs - runs, 40_000, "{kernel}");
        let ((at, runs), (late_at, late_runs)) =
            (woken(kernel, busy, 0), woken(kernel, busy, 40_000));
        assert_eq!((late_at, late_runs - runs), (at, 40_000), "{kernel}, busy");
    }
}

/// Returns when CPU 1, which sleeps deeply, is out of its idle state for a task that CPU 0 or 4 wakes, and when the task is
/// runnable, in ns.
fn woken_from_afar(kernel: &str, by: u32) -> [u64; 2] {
    let tasks = format!(
        r#""waker": {{"cpus": [{by}], "loop": -1, "run": 1000, "resume": "wakee", "run": 3000, "sleep": 20000}},
           "wakee": {{"cpus": [1], "loop": -1, "suspend": "wakee", "run": 400}}"#
    );
    let workload = Workload::parse(&format!(r#"{{"tasks": {{{tasks}}}}}"#), "t").expect("tasks");
    let platform = Platform::load("hikey960").expect("built in");
    let e = experiment(platform, workload, kernel, &[], Span::from_ms(120));
    let mut trace = Memory::new();
    Simulator.run(&e, &mut trace).expect("runs");
    let at = |from: u64, is: &dyn Fn(&Event) -> bool| {
        let mut later = trace.events().iter().filter(|(at, _)| at.0 >= from);
        later.find(|(_, e)| is(e)).expect("an event of that kind").0.0
    };
    let runs = at(70_000_000, &|e| matches!(e, Event::Switch { next: Some(TaskId(0)), .. }));
    let out = at(runs, &|e| matches!(e, Event::Idle { cpu: CpuId(1), state: None }));
    let wakes = at(runs, &|e| matches!(e, Event::Wakeup { task: TaskId(1), .. }));
    [out, wakes]
}

/// An idle CPU leaves its idle state, and then queues whom it was woken for (`ttwu_queue_cond`): since 6.0 if it shares the
/// waker's cache, before if it does not. Else the task is queued at once, and waits in the queue while the CPU comes.
#[test]
fn an_idle_cpu_wakes_up_before_it_queues() {
    for (kernel, by, first) in [
        ("linux-7.3", 0, true),
        ("linux-6.1", 0, true),
        ("linux-5.10", 0, false),
        ("linux-4.20", 0, false),
        ("linux-5.10", 4, true),
        ("linux-4.20", 4, true),
    ] {
        let [out, wakes] = woken_from_afar(kernel, by);
        // The exit latency of the state that CPU 1 was in: `cpu-sleep`, or `cluster-sleep`.
        let waits = out - wakes;
        let as_it_should = if first { waits == 0 } else { waits == 650_000 || waits == 1_600_000 };
        assert!(as_it_should, "{kernel}, woken by CPU {by}: {waits} ns");
    }
}

/// A task of 5 ms (of a small CPU) each 30 ms, woken by another one, belongs on a small CPU. If the way out of an idle state
/// counts as time for which it was runnable, its util_est is never let down, and it stays on the big CPU on which it was forked.
#[test]
fn a_small_task_of_a_cpu_that_sleeps_deeply_goes_to_a_small_cpu() {
    let tasks = r#"{"tasks": {
        "tick": {"cpus": [0], "priority": -19, "loop": -1, "resume": "out", "timer": {"ref": "t", "period": 30000}},
        "out": {"loop": -1, "run": 4700, "suspend": "out"}}, "global": {"calibration": "CPU0"}}"#;
    for name in ["hikey960", "odroid-xu4"] {
        let platform = Platform::load(name).expect("built in");
        let big = platform.domains.iter().map(|d| d.capacity).max().expect("a domain");
        let is_big: Vec<bool> = platform
            .cpus()
            .map(|cpu| platform.domains[platform.domain_of(cpu).expect("there")].capacity == big)
            .collect();
        let workload = Workload::parse(tasks, "t").expect("tasks");
        let e = experiment(platform, workload, "linux-7.3", &[], Span::from_ms(6000));
        let mut trace = Memory::new();
        Simulator.run(&e, &mut trace).expect("runs");
        let on = |(_, event): &(Instant, Event)| match event {
            Event::Wakeup { task: TaskId(1), cpu, .. } => Some(is_big[cpu.index()]),
            _ => None,
        };
        let wakes: Vec<bool> = trace.events().iter().filter_map(on).collect();
        let on_big = wakes.iter().filter(|big| **big).count();
        assert!(
            wakes.len() > 190 && on_big * 20 <= wakes.len(),
            "{name}: {on_big} of {}",
            wakes.len()
        );
    }
}
