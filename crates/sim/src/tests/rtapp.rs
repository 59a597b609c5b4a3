//! rt-app's events as the packaged rt-app 1.0-1 and its development of 2026 carry them out: what was seen there is said beside each.

use super::experiment;
use super::together::{Turns, does, platform};
use crate::Simulator;
use risetime_kernel::units::{CpuId, Instant, Span, TaskId};
use risetime_model::Workload;
use risetime_model::settings::Value;
use risetime_trace::{Backend, Event, Header, SwitchOut, TraceSink, Why};

/// Turns of the tasks of a whole file within `ms`.
fn turns(file: &str, ms: u64) -> Vec<String> {
    let mut turns = Turns::default();
    run(file, ms, &mut turns);
    turns.lines()
}

fn run(file: &str, ms: u64, sink: &mut dyn TraceSink) {
    run_with(file, ms, "off", sink);
}

fn run_with(file: &str, ms: u64, noise: &'static str, sink: &mut dyn TraceSink) {
    let workload = Workload::parse(file, "w.json").unwrap_or_else(|e| panic!("{e}"));
    let set = [("governor", "performance"), ("noise", noise)];
    let set = set.map(|(key, value)| (key, Value::Name(value.into())));
    let e = experiment(platform(), workload, "linux-7.2", &set, Span::from_ms(ms));
    Simulator.run(&e, sink).unwrap_or_else(|e| panic!("{e}"));
}

/// Three instances and a fourth task: 17 rounds of each in the same second, all together.
#[test]
fn a_barrier_waits_for_every_instance() {
    does(
        r#""r": {"instance": 2, "cpus": [0], "loop": 2, "run": 1000, "barrier": "x", "sleep": 5000},
           "slow": {"cpus": [1], "loop": 2, "run": 4000, "barrier": "x"}"#,
        30,
        &["r-0 0-1000 9000-10000 exits", "r-1 1000-2000 10000-11000 exits", "slow 0-8000 exits"],
    );
}

/// A child of the third fork of three at 200, 400 and 600 ms begins at once, its delay of 50 ms long over.
#[test]
fn the_delay_of_a_forked_task_counts_from_the_start() {
    does(
        r#""main": {"cpus": [0], "loop": 1, "phases": {"p": {"loop": 2, "sleep": 20000, "fork": "c"}}},
           "c": {"instance": 0, "cpus": [1], "delay": 30000, "loop": 1, "run": 1000}"#,
        60,
        &["main exits", "c-0000 30000-31000 exits", "c-0001 40000-41000 exits"],
    );
}

/// A fork at 500 ms with a timer of 100: 503, 504, 604.
#[test]
fn timers_of_a_forked_task_count_from_the_start() {
    does(
        r#""main": {"cpus": [0], "loop": 1, "sleep": 50000, "fork": "c"},
           "c": {"instance": 0, "cpus": [1], "loop": 4, "run": 1000,
                 "timer": {"ref": "unique", "period": 10000}}"#,
        100,
        &["main exits", "c-0000 50000-52000 61000-62000 71000-72000 exits"],
    );
}

/// Ends with a whole piece of 32 µs: never before its time, and at full speed up to 31 µs after it.
#[test]
fn runtime_ends_with_a_piece_of_work() {
    does(
        r#""a": {"loop": 1, "runtime": 100, "sleep": 1000, "runtime": 960}"#,
        10,
        &["a 0-128 1128-2088 exits"],
    );
}

/// Events of a deadline task that yields.
#[derive(Default)]
struct Periods {
    throttled: usize,
    begun: Vec<u64>,
    slept: usize,
}

impl TraceSink for Periods {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        match event {
            Event::Throttled { on: true, .. } => self.throttled += 1,
            Event::Wakeup { why: Why::NewPeriod, .. } => self.begun.push(at.0 / 1_000_000),
            Event::Switch {
                cpu: CpuId(_), prev: Some((TaskId(0), SwitchOut::Sleeping)), ..
            } => {
                self.slept += 1;
            }
            _ => {}
        }
    }
    fn end(&mut self, _: Instant) {}
}

/// Nine periods of 100 ms in a second, each with its job, none throttled.
#[test]
fn a_deadline_task_that_yields_sleeps_until_its_next_period() {
    let file = r#"{"tasks": {"a": {"policy": "SCHED_DEADLINE", "dl-runtime": 5000,
        "dl-period": 10000, "dl-deadline": 10000, "run": 1000, "yield": ""}}}"#;
    let mut periods = Periods::default();
    run(file, 35, &mut periods);
    assert_eq!((periods.throttled, periods.slept), (0, 4));
    assert_eq!(periods.begun, [10, 20, 30]);
    assert_eq!(turns(file, 35), ["a 0-1000 10000-11000 20000-21000 30000-31000"]);
}

fn contended(global: &str) -> String {
    format!(
        r#"{{"tasks": {{
            "a": {{"policy": "SCHED_FIFO", "cpus": [0], "lock": "m", "run": 500, "unlock": "m"}},
            "b": {{"policy": "SCHED_FIFO", "cpus": [1], "lock": "m", "run": 500, "unlock": "m"}}
        }}, "global": {{"duration": 1{global}}}}}"#
    )
}

/// Rounds of 500 µs that each task has at a time.
fn streaks(file: &str) -> Vec<u64> {
    streaks_with(file, "off")
}

fn streaks_with(file: &str, noise: &'static str) -> Vec<u64> {
    let mut turns = Turns::default();
    run_with(file, 200, noise, &mut turns);
    let mut all: Vec<(u64, u64)> = Vec::new();
    for line in turns.lines() {
        for turn in line.split(' ').skip(1) {
            let (from, to) = turn.split_once('-').expect("a turn");
            all.push((from.parse().expect("µs"), to.parse().expect("µs")));
        }
    }
    all.sort_unstable();
    all.iter().map(|(from, to)| (to - from) / 500).filter(|rounds| *rounds > 0).collect()
}

/// A task that unlocks takes the mutex again before the one that it has woken is there, until the C library writes out what it
/// has logged: 33 rounds at a time on two CPUs, 46 to 54. In memory it logs without that: 1943 to 1.
#[test]
fn a_contended_mutex_changes_hands_where_the_log_is_written() {
    let all = streaks(&contended(""));
    assert!(all.len() > 10, "{all:?}");
    let (last, whole) = all.split_last().expect("streaks");
    assert!(whole.iter().all(|rounds| (33..=34).contains(rounds)) && *last <= 34, "{all:?}");
    for silent in [r#", "log_size": 2"#, r#", "log_size": "disable""#] {
        assert_eq!(streaks(&contended(silent)), [400], "{silent}");
    }
    // 1.0 compares the wrong way round.
    let disabled = contended(r#", "log_size": "disable", "rt_app": "1.0""#);
    assert_eq!(streaks(&disabled), all);
}

/// What a wakeup costs the one that unlocks, it has paid when the other one is on its way.
#[test]
fn a_contended_mutex_is_no_ping_pong_where_wakeups_take_time() {
    let all = streaks_with(&contended(""), "machine");
    let whole = all.iter().filter(|rounds| (32..=34).contains(*rounds)).count();
    assert!(all.len() > 10 && whole + 2 >= all.len(), "{all:?}");
}

/// With `pi_enabled` the kernel hands the mutex to who waits: 522 to 522, each round.
#[test]
fn a_mutex_that_inherits_is_handed_over() {
    let all = streaks(&contended(r#", "pi_enabled": true"#));
    assert!(all.len() > 300 && all.iter().all(|rounds| *rounds == 1), "{all:?}");
}

/// The task of priority 1 that holds the mutex is not preempted by that of 5 while one of 10 waits for it.
#[test]
fn who_holds_a_mutex_inherits_the_priority_of_who_waits() {
    let file = |pi: bool| {
        format!(
            r#"{{"tasks": {{
            "low": {{"policy": "SCHED_FIFO", "priority": 1, "cpus": [0], "loop": 1,
                    "lock": "m", "run": 5000, "unlock": "m", "run": 1000}},
            "mid": {{"policy": "SCHED_FIFO", "priority": 5, "cpus": [0], "loop": 1, "delay": 2000, "run": 10000}},
            "high": {{"policy": "SCHED_FIFO", "priority": 10, "cpus": [0], "loop": 1, "delay": 1000,
                     "lock": "m", "run": 1000, "unlock": "m"}}
        }}, "global": {{"duration": 1, "log_size": "disable", "pi_enabled": {pi}}}}}"#
        )
    };
    assert_eq!(
        turns(&file(false), 30),
        [
            "low 0-2000 12000-15000 16000-17000 exits",
            "mid 2000-12000 exits",
            "high 15000-16000 exits"
        ]
    );
    assert_eq!(
        turns(&file(true), 30),
        ["low 0-5000 16000-17000 exits", "mid 6000-16000 exits", "high 5000-6000 exits"]
    );
}
