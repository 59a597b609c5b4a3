//! rt-app's events between tasks, each as its documentation describes it: who runs when.
//!
//! Two CPUs without idle states, at one frequency: every time is exact.

use super::experiment;
use crate::Simulator;
use risetime_kernel::units::{CpuId, Instant, Span, TaskId};
use risetime_model::settings::Value;
use risetime_model::{Platform, Workload};
use risetime_trace::{Backend, Event, Header, Outcome, RunError, SwitchOut, TraceSink};
use std::collections::BTreeMap;

/// Stretches of time on a CPU by task, in µs: `A 0-1000 2000-2500`.
#[derive(Default)]
pub(super) struct Turns {
    names: BTreeMap<TaskId, String>,
    /// Turns by task in order of creation; a preemption without anyone between is none.
    turns: BTreeMap<TaskId, Vec<(u64, u64)>>,
    on: BTreeMap<CpuId, (TaskId, u64)>,
}

impl TraceSink for Turns {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        match *event {
            Event::TaskNew { task, comm, user: true, .. } => {
                self.names.insert(task, comm.to_string());
                self.turns.insert(task, Vec::new());
            }
            Event::Switch { cpu, prev, next } => {
                if let (Some((task, _)), Some((_, from))) = (prev, self.on.remove(&cpu)) {
                    self.off(task, from, at.0);
                }
                if let Some(task) = next {
                    self.on.insert(cpu, (task, at.0));
                }
                if let Some((task, SwitchOut::Exited)) = prev {
                    self.off(task, u64::MAX, u64::MAX);
                }
            }
            _ => {}
        }
    }
    fn end(&mut self, at: Instant) {
        for (task, from) in std::mem::take(&mut self.on).into_values() {
            self.off(task, from, at.0);
        }
    }
}

impl Turns {
    fn off(&mut self, task: TaskId, from: u64, to: u64) {
        let Some(turns) = self.turns.get_mut(&task) else { return };
        match turns.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => turns.push((from, to)),
        }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let us = |ns: u64| ns / 1000;
        let turn = |(from, to): &(u64, u64)| match (from, to) {
            (&u64::MAX, _) => " exits".to_string(),
            // What took no time is left out.
            (from, to) if from == to => String::new(),
            (from, to) => format!(" {}-{}", us(*from), us(*to)),
        };
        let line = |(task, turns): (&TaskId, &Vec<(u64, u64)>)| {
            self.names[task].clone() + &turns.iter().map(turn).collect::<String>()
        };
        self.turns.iter().map(line).collect()
    }
}

pub(super) fn platform() -> Platform {
    let mut platform = Platform::load("laptop4").expect("built in");
    platform.domains.truncate(2);
    for d in &mut platform.domains {
        d.idle.clear();
        d.opps.drain(..d.opps.len() - 1);
    }
    platform
}

fn run(tasks: &str, ms: u64) -> (Vec<String>, Result<Outcome, RunError>) {
    let workload = Workload::parse(&format!("{{\"tasks\": {{{tasks}}}}}"), "w.json")
        .unwrap_or_else(|e| panic!("{e}"));
    let set = [("governor", Value::Name("performance".into()))];
    let e = experiment(platform(), workload, "linux-7.2", &set, Span::from_ms(ms));
    let mut turns = Turns::default();
    let outcome = Simulator.run(&e, &mut turns);
    (turns.lines(), outcome)
}

/// The notes of a run, without the dice that are left out of all.
#[track_caller]
fn said(outcome: Result<Outcome, RunError>) -> Vec<String> {
    let mut notes = outcome.expect("it runs").notes;
    notes.retain(|note| !note.starts_with("ni_random=0"));
    notes
}

/// Checks what the tasks do within `ms`, and that there is nothing to be said of it.
#[track_caller]
pub(super) fn does(tasks: &str, ms: u64, want: &[&str]) {
    let (lines, outcome) = run(tasks, ms);
    assert_eq!(lines, want);
    assert_eq!(said(outcome), Vec::<String>::new());
}

const ON0: &str = r#""cpus": [0]"#;
const ON1: &str = r#""cpus": [1]"#;

#[test]
fn a_signal_wakes_who_waits_and_is_lost_where_nobody_does() {
    let wait = r#""lock": "m", "wait": {"ref": "c", "mutex": "m"}, "unlock": "m""#;
    does(
        &format!(
            r#""A": {{{ON0}, "loop": 3, "run": 1000, "signal": "c", "sleep": 1000}},
               "B": {{{ON1}, "loop": 2, {wait}, "run": 3000}}"#
        ),
        20,
        // The second signal finds B busy.
        &["A 0-1000 2000-3000 4000-5000 exits", "B 1000-4000 5000-8000 exits"],
    );
}

#[test]
fn a_mutex_keeps_others_out_and_is_not_fair() {
    does(
        &format!(
            r#""A": {{{ON0}, "loop": 1, "lock": "m", "run": 2000, "unlock": "m",
                      "lock": "m", "run": 1000, "unlock": "m", "run": 500}},
               "B": {{{ON1}, "loop": 1, "sleep": 1000, "lock": "m", "run": 700, "unlock": "m"}}"#
        ),
        10,
        // A unlocks at 2000 and locks again before B, which that woke, has a CPU.
        &["A 0-3500 exits", "B 3000-3700 exits"],
    );
}

#[test]
fn waiting_gives_the_mutex_back_and_takes_it_again() {
    does(
        &format!(
            r#""A": {{{ON0}, "loop": 1, "lock": "m", "wait": {{"ref": "c", "mutex": "m"}},
                      "run": 1000, "unlock": "m"}},
               "B": {{{ON1}, "loop": 1, "sleep": 500, "lock": "m", "run": 1500, "signal": "c",
                      "run": 500, "unlock": "m", "lock": "m", "run": 100, "unlock": "m"}}"#
        ),
        10,
        // Signalled at 2000, A needs the mutex, which is free for a moment at 2500 and then at 2600.
        &["A 2600-3600 exits", "B 500-2600 exits"],
    );
}

#[test]
fn sync_hands_over_back_and_forth() {
    for locked in [false, true] {
        let sync = match locked {
            false => r#""sync": {"ref": "c", "mutex": "m"}"#,
            true => r#""lock": "m", "sync": {"ref": "c", "mutex": "m"}, "unlock": "m""#,
        };
        does(
            &format!(
                r#""A": {{{ON0}, "loop": 2, "run": 1000, {sync}}},
                   "B": {{{ON1}, "loop": 2, "lock": "m", "wait": {{"ref": "c", "mutex": "m"}},
                          "unlock": "m", "run": 2000, "lock": "m", "signal": "c", "unlock": "m"}}"#
            ),
            20,
            &["A 0-1000 3000-4000 exits", "B 1000-3000 4000-6000 exits"],
        );
    }
}

#[test]
fn broad_wakes_all_and_each_needs_the_mutex() {
    let wait = r#""loop": 1, "lock": "m", "wait": {"ref": "c", "mutex": "m"}"#;
    does(
        &format!(
            r#""A": {{{ON0}, "loop": 1, "sleep": 500, "run": 500, "broad": "c"}},
               "B": {{{ON0}, {wait}, "run": 300, "unlock": "m"}},
               "C": {{{ON1}, {wait}, "run": 300, "unlock": "m"}}"#
        ),
        10,
        &["A 500-1000 exits", "B 1000-1300 exits", "C 1300-1600 exits"],
    );
}

#[test]
fn suspend_waits_for_a_resume_by_name() {
    does(
        &format!(
            r#""A": {{{ON0}, "loop": 2, "run": 500, "suspend": ""}},
               "B": {{{ON1}, "loop": 2, "run": 2000, "resume": "A", "run": 1000}}"#
        ),
        20,
        &["A 0-500 2000-2500 exits", "B 0-6000 exits"],
    );
}

#[test]
fn a_barrier_lets_all_go_when_the_last_has_come() {
    does(
        &format!(
            r#""A": {{{ON0}, "loop": 2, "run": 1000, "barrier": "x"}},
               "B": {{{ON1}, "loop": 2, "run": 3000, "barrier": "x"}},
               "C": {{"loop": 2, "sleep": 2000, "barrier": "x"}}"#
        ),
        20,
        &["A 0-1000 3000-4000 exits", "B 0-6000 exits", "C exits"],
    );
}

#[test]
fn a_semaphore_serves_in_the_order_of_waiting() {
    does(
        &format!(
            r#""W": {{"instance": 2, {ON1}, "loop": 2, "sem_wait": "s", "run": 400}},
               "P": {{{ON0}, "loop": 4, "run": 1000, "sem_post": "s"}}"#
        ),
        20,
        &["W-0 1000-1400 3000-3400 exits", "W-1 2000-2400 4000-4400 exits", "P 0-4000 exits"],
    );
}

#[test]
fn what_was_given_before_anyone_waits_is_not_lost() {
    does(
        &format!(
            r#""P": {{{ON0}, "loop": 1, "sem_post": "s", "sem_post": "s", "run": 100}},
               "W": {{{ON1}, "delay": 1000, "loop": 2, "sem_wait": "s", "run": 300}}"#
        ),
        10,
        &["P 0-100 exits", "W 1000-1600 exits"],
    );
}

/// The two drawings of rt-app's documentation.
#[test]
fn a_missed_timer_starts_anew_or_keeps_its_reference() {
    let task = |mode: &str| {
        let timer = format!(r#""timer": {{"ref": "unique", "period": 20000, "mode": "{mode}"}}"#);
        format!(
            r#""r": {{{ON0}, "loop": 1, "phases": {{
                "a": {{"loop": 2, "run": 10000, {timer}}}, "long": {{"run": 30000, {timer}}},
                "b": {{"loop": 3, "run": 10000, {timer}}}}}}}"#
        )
    };
    does(
        &task("relative"),
        200,
        &["r 0-10000 20000-30000 40000-80000 90000-100000 110000-120000 exits"],
    );
    does(&task("absolute"), 200, &["r 0-10000 20000-30000 40000-90000 100000-110000 exits"]);
}

#[test]
fn a_timer_of_several_tasks_moves_on_with_each_use() {
    let timer = r#""loop": 2, "timer": {"ref": "tick", "period": 5000}, "run": 100"#;
    does(
        &format!(r#""A": {{{ON0}, {timer}}}, "B": {{{ON1}, {timer}}}"#),
        30,
        &["A 5000-5100 15000-15100 exits", "B 10000-10100 20000-20100 exits"],
    );
}

#[test]
fn a_fork_runs_beside_its_parent_with_attributes_of_its_own() {
    does(
        &format!(
            r#""parent": {{{ON0}, "priority": -5, "loop": 2, "run": 1000, "fork": "child", "sleep": 3000}},
               "child": {{"instance": 0, {ON1}, "delay": 500, "loop": 2, "run": 700,
                          "timer": {{"ref": "unique", "period": 1000}}}}"#
        ),
        20,
        // The child is created on its parent's CPU, and moves: that takes no time. Its delay is long over, and its timer
        // counts from there.
        &[
            "parent 0-1000 4000-5000 exits",
            "child-0000 1000-2400 exits",
            "child-0001 5000-6400 exits",
        ],
    );
}

#[test]
fn a_fork_without_cpus_stays_where_its_parent_may_run() {
    let (lines, _) = run(
        &format!(
            r#""parent": {{{ON1}, "loop": 1, "run": 1000, "fork": "child", "run": 3000}},
               "child": {{"instance": 0, "loop": 1, "run": 500}}"#
        ),
        20,
    );
    // CPU 0 is idle all the time.
    let alone = lines[0] == "parent 0-4000 exits";
    assert!(!alone, "{lines:?}");
}

#[test]
fn more_forks_than_rt_app_allows_end_the_run() {
    let (_, outcome) = run(
        r#""a": {"loop": -1, "run": 10, "fork": "b"}, "b": {"instance": 0, "loop": 1, "run": 1}"#,
        100,
    );
    let message = outcome.expect_err("too many").to_string();
    assert!(message.contains("it forks `b` for the 1025th time"), "{message}");
}

#[test]
fn whoever_yields_lets_the_other_run_at_once() {
    let (lines, _) = run(
        &format!(
            r#""A": {{{ON0}, "loop": 1, "run": 200, "yield": "", "run": 200}},
               "B": {{{ON0}, "loop": 1, "run": 100}}"#
        ),
        10,
    );
    assert_eq!(lines, ["A 0-200 300-500 exits", "B 200-300 exits"]);
    does(&format!(r#""A": {{{ON0}, "loop": 2, "run": 200, "yield": ""}}"#), 10, &["A 0-400 exits"]);
}

#[test]
fn memory_does_not_get_faster_with_the_cpu() {
    for cpu in [0, 4] {
        let text = format!(
            r#"{{"tasks": {{"a": {{"cpus": [{cpu}], "loop": 1, "mem": 4000000, "memory": 4000000}}}}}}"#
        );
        let workload = Workload::parse(&text, "w.json").expect("a workload");
        let set = [("governor", Value::Name("powersave".into()))];
        let m1 = Platform::load("m1").expect("built in");
        let e = experiment(m1, workload, "linux-7.2", &set, Span::from_ms(20));
        let mut turns = Turns::default();
        Simulator.run(&e, &mut turns).expect("it runs");
        let (from, to) = turns.turns[&TaskId(0)][0];
        assert_eq!(to - from, 2_000_000, "8 MB at 4 GB/s on CPU {cpu}");
    }
}

#[test]
fn who_waits_for_ever_is_named() {
    let (lines, outcome) = run(
        &format!(
            r#""A": {{{ON0}, "loop": 1, "lock": "m", "run": 1000, "lock": "n", "unlock": "n", "unlock": "m"}},
               "B": {{{ON1}, "loop": 1, "lock": "n", "run": 2000, "lock": "m", "unlock": "m", "unlock": "n"}},
               "C": {{"loop": -1, "run": 10, "sleep": 1000}}"#
        ),
        10,
    );
    assert_eq!(lines[..2], ["A 0-1000", "B 0-2000"]);
    let says = |task, mutex, owner, since| {
        format!(
            "task {task} waits for mutex \"{mutex}\", which {owner} holds from {since} ms to the end: nobody is left to wake it"
        )
    };
    assert_eq!(said(outcome), [says("A", "n", "B", "1.000"), says("B", "m", "A", "2.000")]);
    let (_, outcome) = run(r#""A": {"loop": 1, "run": 100, "suspend": "x"}"#, 10);
    assert_eq!(
        said(outcome),
        ["task A waits for a signal of \"x\" from 0.100 ms to the end: nobody is left to wake it"]
    );
}

/// A task that cannot be woken by those that go on is named, and no other.
#[test]
fn who_is_left_behind_by_those_that_go_on_is_named() {
    let busy = r#""go": {"loop": -1, "run": 10, "resume": "x", "sem_post": "s", "sleep": 1000}"#;
    let named = |tasks: &str| {
        let (_, outcome) = run(&format!("{busy}, {tasks}"), 20);
        let names = said(outcome)
            .into_iter()
            .filter_map(|note| Some(note.strip_prefix("task ")?.split(' ').next()?.to_string()));
        names.collect::<Vec<_>>()
    };
    // A name that is spelt wrong; a semaphore that nobody posts; two that only wait for each other.
    assert_eq!(named(r#""b": {"loop": -1, "suspend": "xx", "run": 10}"#), ["b"]);
    assert_eq!(named(r#""b": {"loop": -1, "sem_wait": "t", "run": 10}"#), ["b"]);
    assert_eq!(
        named(
            r#""b": {"loop": -1, "suspend": "c", "run": 10, "resume": "d"},
               "c": {"loop": -1, "suspend": "d", "run": 10, "resume": "c"}"#
        ),
        ["b", "c"]
    );
    // At a barrier with one that never comes; behind a mutex whose owner goes on and keeps it.
    assert_eq!(
        named(
            r#""b": {"loop": 1, "run": 10, "barrier": "o"},
               "c": {"loop": 1, "suspend": "nobody", "barrier": "o"}"#
        ),
        ["b", "c"]
    );
    assert_eq!(
        named(
            r#""a": {"phases": {"p": {"lock": "m", "run": 10}, "q": {"loop": -1, "run": 10, "sleep": 100}}},
               "b": {"loop": 1, "delay": 1000, "lock": "m", "unlock": "m"}"#
        ),
        ["b"]
    );
    // These are woken, by one that goes on or will be there.
    assert_eq!(named(r#""b": {"loop": -1, "suspend": "x", "run": 10}"#), [""; 0]);
    assert_eq!(named(r#""b": {"loop": -1, "sem_wait": "s", "run": 10}"#), [""; 0]);
    assert_eq!(
        named(
            r#""b": {"loop": -1, "suspend": "late", "run": 10},
               "c": {"loop": 1, "delay": 50000000, "resume": "late"}"#
        ),
        [""; 0]
    );
}

#[test]
fn tasks_that_only_wake_each_other_are_noticed() {
    let (_, outcome) = run(
        &format!(
            r#""A": {{{ON0}, "loop": -1, "sem_post": "x", "sem_wait": "y"}},
               "B": {{{ON0}, "loop": -1, "sem_wait": "x", "sem_post": "y"}}"#
        ),
        1,
    );
    let message = outcome.expect_err("no time passes").to_string();
    assert!(message.contains("its loops take no time (at 0 ms)"), "{message}");
}

#[test]
fn a_phase_that_moves_a_task_may_begin_with_anything() {
    for (first, want) in [
        (r#""sleep": 1000"#, "a 0-500 1500-1600 exits"),
        (r#""lock": "m", "unlock": "m""#, "a 0-600 exits"),
        (r#""timer": {"ref": "unique", "period": 2000}"#, "a 0-500 2000-2100 exits"),
    ] {
        does(
            &format!(
                r#""a": {{"loop": 1, "phases": {{"p": {{{ON0}, "run": 500}}, "q": {{{ON1}, {first}, "run": 100}}}}}}"#
            ),
            10,
            &[want],
        );
    }
}

// ---------------------------------------------------------------------- whole use cases, built as
// those of rt-app's documentation are

#[test]
fn a_player_passes_buffers_down_a_chain() {
    let timer = r#""timer": {"ref": "tick", "period": 5000}"#;
    does(
        &format!(
            r#""clock": {{{ON0}, "priority": -19, "loop": -1, "phases": {{
                   "buffer": {{"loop": 1, "resume": "sink", {timer}}}, "rest": {{"loop": 3, {timer}}}}}}},
               "sink": {{{ON0}, "loop": -1, "run": 200, "resume": "track", "run": 800, "suspend": "sink"}},
               "track": {{{ON1}, "loop": -1, "suspend": "track", "run": 300, "resume": "decoder"}},
               "decoder": {{{ON1}, "loop": -1, "suspend": "decoder", "run": 1000, "lock": "m", "signal": "q",
                   "wait": {{"ref": "q", "mutex": "m"}}, "unlock": "m", "run": 100}},
               "codec": {{{ON1}, "loop": -1, "lock": "m", "wait": {{"ref": "q", "mutex": "m"}}, "unlock": "m",
                   "run": 300, "lock": "m", "signal": "q", "unlock": "m"}}"#
        ),
        39,
        &[
            "clock",
            "sink 0-1000 20000-21000",
            "track 200-500 20200-20500",
            "decoder 500-1500 1800-1900 20500-21500 21800-21900",
            "codec 1500-1800 21500-21800",
        ],
    );
}

#[test]
fn a_browser_renders_with_helpers_and_waits_for_its_display() {
    let (lines, _) = run(
        &format!(
            r#""main": {{{ON0}, "loop": 1, "phases": {{
                   "start": {{"sleep": 2000, "run": 1000, "resume": "view", "run": 500}},
                   "render": {{"loop": 3, "resume": "sub", "run": 1000}},
                   "stop": {{"suspend": "view", "run": 200}}}}}},
               "sub1": {{{ON1}, "loop": -1, "suspend": "sub", "run": 100}},
               "sub2": {{{ON1}, "loop": -1, "suspend": "sub", "run": 100}},
               "view": {{{ON1}, "loop": -1, "suspend": "view", "run": 300, "sleep": 6000, "run": 50,
                   "resume": "view"}}"#
        ),
        20,
    );
    assert_eq!(
        lines,
        [
            "main 2000-6500 9350-9550 exits",
            "sub1 3500-3600 4500-4600 5500-5600",
            "sub2 3600-3700 4600-4700 5600-5700",
            "view 3000-3300 9300-9350",
        ]
    );
}

/// As in rt-app's video example: who only says `suspend` waits under its own name.
#[test]
fn a_display_is_woken_by_name_though_its_suspend_names_nobody() {
    does(
        &format!(
            r#""flinger": {{{ON0}, "loop": 2, "suspend", "run": 1500}},
               "events": {{{ON1}, "loop": 1, "phases": {{
                   "odd": {{"suspend" : "EventThread", "run": 25, "resume": "flinger", "sleep": 4000}},
                   "even": {{"run": 75, "resume": "flinger", "yield"}}}}}},
               "vsync": {{{ON1}, "loop": 1, "sleep": 1000, "resume": "EventThread"}}"#
        ),
        20,
        &["flinger 1025-2525 5100-6600 exits", "events 1000-1025 5025-5100 exits", "vsync exits"],
    );
}

#[test]
fn a_signal_before_the_wait_is_missed_and_the_next_one_is_not() {
    does(
        &format!(
            r#""first": {{{ON0}, "loop": 2, "lock": "m", "signal": "q", "run": 10000, "unlock": "m",
                   "run": 10000, "timer": {{"ref": "tick", "period": 200000}}}},
               "second": {{{ON1}, "loop": 1, "lock": "m", "wait": {{"ref": "q", "mutex": "m"}},
                   "unlock": "m", "run": 10000}}"#
        ),
        500,
        &["first 0-20000 200000-220000 exits", "second 210000-220000 exits"],
    );
}

#[test]
fn work_memory_and_io_follow_each_other() {
    does(
        &format!(
            r#""t": {{{ON0}, "loop": 2, "run": 1000, "mem": 1000, "sleep": 5000, "iorun": 100000}}"#
        ),
        30,
        &["t 0-1000 6000-7000 12000-12001 exits"],
    );
}

// ---------------------------------------------------------------------- whatever they do

mod any {
    use super::super::Bytes;
    use super::super::generate::experiments;
    use super::super::properties::step_through;
    use crate::Counterfactual;
    use crate::draws;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use risetime_kernel::units::Span;
    use risetime_model::Workload;
    use std::sync::Arc;

    /// Events in the file's form; what is locked is unlocked.
    fn events() -> impl Strategy<Value = String> {
        let time = 1..4000u32;
        let event = prop_oneof![
            3 => time.clone().prop_map(|us| format!(r#""run": {us}"#)),
            2 => time.prop_map(|us| format!(r#""sleep": {us}"#)),
            2 => (0..2u8, 1..900u32).prop_map(|(m, us)| {
                format!(r#""lock": "m{m}", "run": {us}, "unlock": "m{m}""#)
            }),
            1 => (0..2u8).prop_map(|m| {
                format!(r#""lock": "m{m}", "wait": {{"ref": "c", "mutex": "m{m}"}}, "unlock": "m{m}""#)
            }),
            1 => Just(r#""sync": {"ref": "c", "mutex": "m1"}"#.to_string()),
            2 => Just(r#""signal": "c""#.to_string()),
            1 => Just(r#""broad": "c""#.to_string()),
            1 => Just(r#""barrier": "b""#.to_string()),
            2 => Just(r#""sem_post": "s""#.to_string()),
            1 => Just(r#""sem_wait": "s""#.to_string()),
            1 => Just(r#""suspend": "x""#.to_string()),
            1 => Just(r#""resume": "x""#.to_string()),
            1 => Just(r#""yield": """#.to_string()),
            1 => Just(r#""mem": 900000"#.to_string()),
            1 => Just(r#""fork": "child""#.to_string()),
            1 => (1000..9000u32).prop_map(|us| {
                format!(r#""timer": {{"ref": "shared", "period": {us}, "mode": "absolute"}}"#)
            }),
        ];
        vec(event, 1..7).prop_map(|events| events.join(", "))
    }

    fn workloads() -> impl Strategy<Value = Workload> {
        let task = (events(), -5..5i8, prop::option::weighted(0.3, 0..2u8));
        vec(task, 2..7).prop_map(|tasks| {
            let line = |(i, (events, nice, cpu)): (usize, (String, i8, Option<u8>))| {
                let cpus = cpu.map_or(String::new(), |c| format!(r#""cpus": [{c}], "#));
                format!(r#""t{i}": {{{cpus}"priority": {nice}, "run": 50, {events}}}"#)
            };
            let tasks: Vec<String> = tasks.into_iter().enumerate().map(line).collect();
            let child =
                r#""child": {"instance": 0, "loop": 2, "delay": 100, "run": 300, "sleep": 700}"#;
            let text = format!("{{\"tasks\": {{{}, {child}}}}}", tasks.join(", "));
            Workload::parse(&text, "any.json").unwrap_or_else(|e| panic!("{e}\n{text}"))
        })
    }

    proptest! {
        #![proptest_config(draws::config(24))]

        /// The machine agrees with itself after every event, and the same run is the same again.
        #[test]
        fn tasks_that_wait_for_each_other_leave_a_consistent_machine(
            mut e in experiments(),
            workload in workloads(),
        ) {
            prop_assume!(workload.bind(&e.platform).is_ok());
            (e.workload, e.duration) = (Arc::new(workload), Span::from_ms(150));
            let mut runs = [Bytes::default(), Bytes::default()];
            let ends = runs.each_mut().map(|b| step_through(&e, Counterfactual::default(), b));
            // More forks than allowed are a fair end.
            if let Err(what) = &ends[0] {
                prop_assert!(what.contains("it forks"), "{what}");
            }
            prop_assert_eq!(&ends[0], &ends[1]);
            prop_assert_eq!(&runs[0].0, &runs[1].0);
        }
    }
}

/// Lists the turns of the tasks on a kernel, with settings.
fn turns_of(tasks: &str, policy: &str, set: &[(&str, i64)], ms: u64) -> Turns {
    let workload = Workload::parse(&format!("{{\"tasks\": {{{tasks}}}}}"), "w.json")
        .unwrap_or_else(|e| panic!("{e}"));
    let mut all = vec![("governor", Value::Name("performance".into()))];
    all.extend(set.iter().map(|(name, n)| (*name, Value::Int(*n))));
    let e = experiment(platform(), workload, policy, &all, Span::from_ms(ms));
    let mut turns = Turns::default();
    Simulator.run(&e, &mut turns).expect("it runs");
    turns
}

const SIGNALS_UNDER_ITS_MUTEX: &str = r#"
    "boss": {"cpus": [0], "loop": -1, "run": 1000, "resume": "hand", "timer": {"ref": "unique", "period": 8000}},
    "hand": {"cpus": [0], "loop": -1, "suspend": "hand", "run": 500}"#;

/// `boss` signals while it holds the mutex, as `resume` does: `hand` gets the CPU, finds the mutex held, and sleeps again, for
/// which it needs its time. Without `call_cost_ns` that takes no time.
#[test]
fn who_is_woken_under_a_mutex_comes_and_goes() {
    let short = |set: &[(&str, i64)]| {
        let turns = turns_of(SIGNALS_UNDER_ITS_MUTEX, "linux-6.12", set, 40);
        let (hand, _) = turns.names.iter().find(|(_, name)| *name == "hand").expect("it is there");
        let took: Vec<u64> = turns.turns[hand].iter().map(|(from, to)| to - from).collect();
        took.into_iter().filter(|ns| (1..100_000).contains(ns)).collect::<Vec<u64>>()
    };
    assert_eq!(short(&[]), [0; 0]);
    let costs = [("call_cost_ns", 8_000), ("again_cost_ns", 9_000)];
    // At first it locks and waits, which are two calls.
    let took = short(&costs);
    assert_eq!(took.split_first(), Some((&16_000, &[9_000; 2][..])), "{took:?}");
}

/// Time that calls take is part of the work that comes next: all in all a task runs as long as it
/// would without.
#[test]
fn what_calls_take_counts_as_work() {
    let tasks = r#""one": {"cpus": [0], "loop": -1, "run": 1000, "sleep": 1000}"#;
    let of = |ns: i64| {
        let turns = turns_of(tasks, "linux-7.2", &[("call_cost_ns", ns)], 100);
        let mut all: Vec<u64> =
            turns.turns[&TaskId(0)].iter().map(|(from, to)| to - from).collect();
        // The run's end may cut the last.
        all.pop();
        all
    };
    let without = of(0);
    assert!(without.len() > 30 && without.iter().all(|ns| *ns == without[0]), "{without:?}");
    // The first has nothing before it. What the last call of a turn takes, the next turn has less to do.
    let with = of(10_000);
    assert_eq!(with[0], without[0] + 10_000);
    assert!(with[1..].iter().all(|ns| ns.abs_diff(without[0]) <= 1), "{with:?}");
}

/// Another CPU looks at a forked task as late as at one that is woken.
#[test]
fn a_forked_task_waits_for_its_cpu_to_look() {
    let tasks = r#"
        "boss": {"cpus": [0, 1], "loop": 1, "run": 1000, "fork": "child", "run_on": 3000},
        "child": {"instance": 0, "loop": 1, "run": 500}"#;
    let begins = |ns: i64| {
        let turns = turns_of(tasks, "linux-7.2", &[("resched_delay_ns", ns)], 20);
        let (child, _) =
            turns.names.iter().find(|(_, name)| name.starts_with("child")).expect("forked");
        turns.turns[child]
            .iter()
            .map(|(from, _)| *from)
            .find(|from| *from != u64::MAX)
            .expect("it ran")
    };
    assert_eq!(begins(40_000) - begins(0), 40_000);
}
