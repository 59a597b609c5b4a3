//! Every fault in a workload: one clear message, quickly.

use crate::common::{check_transcript, entry};
use risetime_model::{Platform, Workload};
use std::time::{Duration, Instant};

/// A file with one task that has this body.
fn task(body: &str) -> String {
    format!(r#"{{"tasks": {{"a": {{{body}}}}}}}"#)
}

/// A file with this `global`.
fn global(body: &str) -> String {
    format!(r#"{{"tasks": {{"a": {{"run": 1}}}}, "global": {{{body}}}}}"#)
}

fn message(text: &str) -> String {
    match Workload::parse(text, "my.json") {
        Ok(w) => panic!("accepted: {text}\n{w:?}"),
        Err(e) => e.to_string(),
    }
}

const SYNTAX: &[&str] = &[
    "",
    "// nothing\n",
    "{",
    r#"{"tasks": {"a": {"run": 10"#,
    r#"{"tasks": {"a": {"run": "#,
    r#"{"tasks": {"a": {"cpus": [0, "#,
    r#"{"tasks": {"a": {"run": 10"}}}"#,
    "[]",
    "7",
    "\0",
    "{\"tasks\": {\"a\0\": {\"run\": 1}}}",
    "{tasks: {}}",
    r#"{"tasks": {"a": {"run": 1}}} x"#,
    r#"{"tasks": {"a": {"run": 1 "sleep": 2}}}"#,
    "{\n  \"tasks\": {\n    \"a\": { \"run\": 1.5 }\n  }\n}",
];

const FILE: &[&str] = &[
    "{}",
    r#"{"tasks": {}}"#,
    r#"{"tasks": 3}"#,
    r#"{"task": {}}"#,
    r#"{"tasks": {"a": {"run": 1}}, "tasks": {}}"#,
    r#"{"tasks": {"": {"run": 1}}}"#,
    r#"{"tasks": {"a": {"instance": 6000, "run": 1}, "b": {"instance": 6000, "run": 1}}}"#,
    r#"{"tasks": {"a": {"fork": "c", "run": 1}, "b": {"run": 1}}}"#,
    r#"{"tasks": {"a": {"fork": "b", "run": 1}, "b": {"instance": 0, "barrier": "x", "run": 1}}}"#,
    r#"{"tasks": {"a": {"instance": 0, "fork": "a", "run": 1}}}"#,
    r#"{"global": {"duration": 1}}"#,
];

const TASK: &[&str] = &[
    "",
    r#""run": "10""#,
    r#""run": 1.5"#,
    r#""run": 1e3"#,
    r#""run": -2"#,
    r#""sleep": -5"#,
    r#""delay": -5, "run": 1"#,
    r#""run": 99999999999999999999999"#,
    r#""run": 1000000000001"#,
    r#""run": null"#,
    // of other times, of other programs
    r#""exec": 500, "period": 1000, "deadline": 1000, "lock_order": ["r0"]"#,
    r#""run": 5, "resources": {"r0": {"duration": 300}}"#,
    r#""phases": {"p": {"external_workload1": {"library_name": "some.so", "main_method": "go"}}}"#,
    // loops
    r#""run": 0"#,
    r#""loop": 5, "sleep": 0"#,
    r#""loop": -1, "timer": {"ref": "unique", "period": 0}"#,
    r#""loop": 1, "phases": {"p": {"loop": -1, "run": 0}}"#,
    r#""phases": {"p": {"run": 0}, "q": {"sleep": 0}}"#,
    r#""loop": 0, "sleep": 1"#,
    r#""loop": -2, "sleep": 1"#,
    r#""loop": 4294967296, "sleep": 1"#,
    r#""loop": 1, "loop": 2, "run": 1"#,
    // phases
    r#""phases": {}"#,
    r#""phases": []"#,
    r#""phases": {"p": {}}"#,
    r#""phases": {"p": {"delay": 3, "run": 1}}"#,
    r#""phases": {"p": {"run": 1}}, "run": 1"#,
    // instances
    r#""instance": 1000000000, "run": 1"#,
    r#""instance": -1, "run": 1"#,
    r#""instance": 0, "run": 1"#,
    // what rt-app has and this has not, and what nobody has
    // what tasks share
    r#""lock": 3, "run": 1"#,
    r#""unlock": "m", "run": 1"#,
    r#""lock": "m", "unlock": "m", "unlock": "m", "run": 1"#,
    r#""run": 1, "wait": {"ref": "c", "mutex": "m"}"#,
    r#""phases": {"p": {"lock": "m", "run": 1}, "q": {"loop": 2, "run": 1, "unlock": "m"}}"#,
    r#""lock": "m", "wait": {"ref": "c"}, "unlock": "m""#,
    r#""lock": "m", "wait": {"mutex": "m"}, "unlock": "m""#,
    r#""lock": "m", "wait": {"ref": "c", "mutx": "m"}, "unlock": "m""#,
    r#""sync": "c", "run": 1"#,
    r#""lock": "m", "signal": "c", "unlock": "m""#,
    r#""suspend": 3"#,
    r#""barrier": {}, "run": 1"#,
    r#""sem_post": "s""#,
    r#""sem_wiat": "s""#,
    r#""fork": "b""#,
    r#""fork": "", "run": 1"#,
    r#""mem": -1, "run": 1"#,
    r#""iorun": "12", "run": 1"#,
    r#""mem": 0"#,
    r#""nodes_membind": 3, "run": 1"#,
    r#""membind_nodes": [-1], "run": 1"#,
    r#""taskgroup": "x", "run": 1"#,
    r#""dl-runtime": 5, "run": 1"#,
    r#""dl-period": 5, "run": 1"#,
    r#""dl-reclaim": 1, "run": 1"#,
    r#""frag": 1"#,
    r#""sleeep": 1"#,
    r#""utilmin": 1, "run": 1"#,
    // attributes
    r#""policy": "SCHED_FIF", "run": 1"#,
    r#""policy": "SCHED_FIFO", "priority": 0, "run": 1"#,
    r#""policy": "SCHED_RR", "priority": -5, "run": 1"#,
    r#""policy": "SCHED_RR", "dl-period": 500, "run": 1"#,
    r#""policy": "SCHED_IDLE", "dl-runtime": 500, "run": 1"#,
    r#""policy": "SCHED_BATCH", "priority": 20, "run": 1"#,
    r#""policy": "SCHED_DEADLINE", "run": 1"#,
    r#""policy": "SCHED_DEADLINE", "dl-runtime": 1, "run": 1"#,
    r#""policy": "SCHED_DEADLINE", "dl-runtime": 10, "dl-period": 99, "run": 1"#,
    r#""policy": "SCHED_DEADLINE", "dl-runtime": 10, "dl-period": 4194305, "run": 1"#,
    r#""policy": "SCHED_DEADLINE", "dl-runtime": 300, "dl-deadline": 299, "dl-period": 400, "run": 1"#,
    r#""policy": "SCHED_DEADLINE", "dl-runtime": 300, "dl-deadline": 500, "dl-period": 400, "run": 1"#,
    r#""policy": "SCHED_DEADLINE", "dl-runtime": 300, "priority": 4, "run": 1"#,
    r#""phases": {"p": {"priority": 3, "run": 1}, "q": {"policy": "SCHED_FIFO", "run": 1}}"#,
    r#""phases": {"p": {"policy": "SCHED_FIFO", "run": 1}, "q": {"priority": -3, "run": 1}}"#,
    r#""dl-runtime": 300, "dl-period": 500, "period": 500, "policy": "SCHED_DEADLINE", "run": 1"#,
    r#""period": 500, "run": 1"#,
    r#""policy": "SCHED_BOGUS", "run": 1"#,
    r#""policy": 3, "run": 1"#,
    r#""priority": 20, "run": 1"#,
    r#""job": 3, "run": 1"#,
    r#""job": {"period": 3}, "run": 1"#,
    r#""job": {"deadline": 0}, "run": 1"#,
    r#""job": {"tasks": "b"}, "run": 1"#,
    r#""job": {"tasks": ["b"]}, "run": 1"#,
    r#""job": {"deadline": 9}, "run": 1"#,
    r#""job": {}, "run": 1, "sleep": 1"#,
    r#""job": {"deadline": 9, "tasks": ["t"]}, "run": 1, "sleep": 1"#,
    r#""sched_qos": 3, "run": 1"#,
    r#""sched_qos": {"type": "rampup_multiplier"}, "run": 1"#,
    r#""sched_qos": {"type": "latency", "value": 1}, "run": 1"#,
    r#""sched_qos": {"type": 1, "value": 1}, "run": 1"#,
    r#""sched_qos": {"type": "rampup_multiplier", "value": -1}, "run": 1"#,
    r#""sched_qos": [{"type": "rampup_multiplier", "value": 2, "cookie": 7}], "run": 1"#,
    r#""sched_qos": {"type": "rampup_multiplier", "value": 2, "kookie": 0}, "run": 1"#,
    r#""util_min": 1025, "run": 1"#,
    r#""util_min": -2, "run": 1"#,
    r#""util_min": 600, "util_max": 500, "run": 1"#,
    r#""phases": {"p": {"util_max": 300, "run": 1}, "q": {"util_min": 400, "run": 1}}"#,
    r#""phases": {"p": {"util_min": 300, "run": 1}, "q": {"util_min": 0, "util_max": 200, "run": 1}}"#,
    r#""cpus": [], "run": 1"#,
    r#""cpus": 3, "run": 1"#,
    r#""cpus": [5000], "run": 1"#,
    r#""cpus": ["0"], "run": 1"#,
    // mutexes that nobody would ever get again
    r#""lock": "m", "run": 1, "lock": "m", "unlock": "m""#,
    r#""run": 1, "lock": "m""#,
    r#""phases": {"p": {"lock": "m", "run": 1}, "q": {"loop": 2, "lock": "m", "unlock": "m"}}"#,
    // timers
    r#""timer": {"ref": "unique"}"#,
    r#""timer": 10"#,
    r#""timer": {"ref": "unique", "period": 1, "mode": "sometimes"}"#,
    r#""timer": {"ref": "unique", "perod": 1}"#,
];

const GLOBAL: &[&str] = &[
    r#""duration": 0"#,
    r#""duration": -2"#,
    r#""duration": 1.5"#,
    r#""duration": "3""#,
    r#""duration": 1, "duration": 2"#,
    r#""default_policy": "SCHED_R""#,
    r#""default_policy": "SCHED_DEADLINE""#,
    r#""hotplug": {}"#,
    r#""hotplug": [3]"#,
    r#""hotplug": [{"at_us": 1, "cpu": 0, "online": 0}]"#,
    r#""hotplug": [{"at_us": 1, "cpu": 3, "online": 2}]"#,
    r#""hotplug": [{"at_us": 1, "cpu": 3}]"#,
    r#""hotplug": [{"at_us": 1, "cpu": 3, "on": 1}]"#,
    r#""hotplug": [{"at_us": 1, "cpu": 3, "online": 1}]"#,
    r#""partitions": {}"#,
    r#""partitions": [3]"#,
    r#""partitions": [[]]"#,
    r#""partitions": [[3], [4, 3]]"#,
    r#""partitions": [[-1]]"#,
    r#""hotplug": [{"at_us": 9, "cpu": 3, "online": 0}, {"at_us": 8, "cpu": 3, "online": 1}]"#,
    r#""calibration": "CPU""#,
    r#""calibration": "CPU1x""#,
    r#""calibration": "CPU4096""#,
    r#""calibration": true"#,
    r#""mem_buffer_size": 0"#,
    r#""io_device": 3"#,
];

#[test]
fn every_fault_has_one_clear_message() {
    let mut said = String::new();
    for text in SYNTAX.iter().chain(FILE) {
        said += &entry(text, &message(text));
    }
    for body in TASK {
        said += &entry(body, &message(&task(body)));
    }
    for body in GLOBAL {
        said += &entry(body, &message(&global(body)));
    }
    check_transcript("bad_workloads.txt", &said);
}

#[test]
fn what_is_too_deep_or_too_much_is_refused_at_once() {
    let cases = [
        "[".repeat(200_000),
        "{\"a\":".repeat(200_000),
        "[{\"a\":".repeat(100_000),
        format!("/* [ */ // [\r{}", "[".repeat(200_000)),
        format!(r#"{{"tasks": {}"#, "[".repeat(200_000)),
        "x".repeat(5 << 20),
        "/".repeat(4 << 20),
        "\"".repeat(4 << 20),
        format!("[{}", "1,".repeat(2_000_000)),
        format!("{}{}", "\n".repeat(4_000_000), "x"),
        task(&format!(r#""instance": 10000, {}"#, r#""run": 1, "#.repeat(101))),
        task(&format!(r#""cpus": [{}0.5], "run": 1"#, "1,".repeat(1_000_000))),
        format!(r#"{{"tasks": {{{}}}}}"#, r#""a": {"run": 1}, "#.repeat(200_000)),
        task(&format!(r#""phases": {{{}}}"#, r#""p": {"run": 0}, "#.repeat(200_000))),
    ];
    let mut said = String::new();
    for text in &cases {
        let begun = Instant::now();
        said += &entry(text, &message(text));
        // Generous: a fraction of a second alone, more on a busy machine.
        assert!(begun.elapsed() < Duration::from_secs(5), "took {:?}", begun.elapsed());
    }
    check_transcript("too_much.txt", &said);
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let mut said = String::new();
    for name in ["nope", "rampp", "no/such.json", "/", ""] {
        let e = Workload::load(name).expect_err(name);
        said += &entry(name, &e.to_string());
    }
    check_transcript("unknown_workloads.txt", &said);
}

#[test]
fn a_cpu_that_the_platform_lacks_is_refused_when_the_two_meet() {
    let m1 = Platform::load("m1").unwrap_or_else(|e| panic!("{e}"));
    let mut said = String::new();
    for text in [
        task(r#""cpus": [1, 9], "run": 1"#),
        task(r#""phases": {"p": {"cpus": [8], "run": 1}}"#),
        global(r#""calibration": "CPU8""#),
        task(r#""policy": "SCHED_DEADLINE", "dl-runtime": 300, "cpus": [0], "run": 1"#),
        task(
            r#""phases": {"p": {"policy": "SCHED_DEADLINE", "dl-runtime": 300, "run": 1},
                          "q": {"cpus": [0], "policy": "SCHED_OTHER", "run": 1}}"#,
        ),
    ] {
        let w = Workload::parse(&text, "dir/my.json").unwrap_or_else(|e| panic!("{e}"));
        let e = w.bind(&m1).expect_err("a CPU is missing");
        said += &entry(&text, &e.to_string());
    }
    check_transcript("missing_cpus.txt", &said);
}
