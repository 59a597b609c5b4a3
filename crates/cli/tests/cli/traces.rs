//! Traces that somebody took, as a person meets them: told by their content, reported, explained, refused.

use crate::{Said, repository, risetime_in, scratch};
use serde_json::Value;

/// Runs the command beside the traces of the pages.
fn said(args: &[&str]) -> Said {
    risetime_in(&repository().join("docs/traces"), args)
}

fn json(args: &[&str]) -> Value {
    let said = said(&[args, &["--format", "json"]].concat());
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{args:?}");
    serde_json::from_str(&said.out).expect("JSON")
}

#[test]
fn a_trace_is_told_by_its_content_whatever_its_name_is() {
    let dir = scratch("trace-by-content");
    let text = std::fs::read(repository().join("docs/traces/bug.txt")).expect("a trace");
    std::fs::write(dir.join("saved.json"), text).expect("written");
    let said = risetime_in(&dir, &["report", "saved.json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.starts_with("saved.json · ftrace text"), "{}", said.out);
    std::fs::write(dir.join("trace.dat"), "neither a trace nor a result").expect("written");
    let said = risetime_in(&dir, &["report", "trace.dat"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("is no trace that is known"), "{}", said.err);
}

#[test]
fn every_screen_of_a_trace_is_eighty_columns_and_forty_lines() {
    for args in [
        &["report", "bug.txt"][..],
        &["report", "bug.txt", "--task", "ui"],
        &["report", "bug.txt", "--task", "*", "--platform", "m1"],
        &["report", "app.txt", "--platform", "pixel6", "--task", "4120"],
        &["explain", "bug.txt"],
        &["explain", "app.txt", "--task", "4120", "--over", "all", "--platform", "pixel6"],
    ] {
        let said = said(args);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{args:?}");
        let wide = said.out.lines().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None, "{args:?}");
        assert!(said.out.lines().count() <= 42, "{args:?}: {}", said.out);
        assert!(!said.out.contains("NaN") && !said.out.contains("inf"), "{}", said.out);
    }
}

/// The figures are the text's own, counted by hand.
#[test]
fn a_trace_of_twenty_lines_has_its_figures() {
    let all = json(&["report", "bug.txt"]);
    let threads = all["trace"]["threads"].as_array().expect("a list");
    let ui = threads.iter().find(|t| t["comm"] == "ui").expect("there");
    let figures = ["pid", "wakeups", "switches", "activations", "migrations"];
    assert_eq!(figures.map(|f| ui[f].as_u64()), [812, 2, 4, 2, 1].map(Some));
    // 2.01 + 3.79 ms on CPU 1, 4.05 and 4 ms on CPU 0; 0.2, 0.03 and 0.06 ms on an idle CPU; 1.2 behind irq/45-touch, 1.32 behind net-rx.
    assert_eq!((ui["running_ms"].as_f64(), ui["waiting_ms"].as_f64()), (Some(13.85), Some(2.81)));
    assert_eq!(ui["wakeup"]["max_ms"], 0.2);
    let parts = &ui["parts"];
    assert_eq!((&parts["strict_task_ms"], &parts["idle_exit_ms"]), (&1.2.into(), &0.29.into()));
    assert_eq!(parts["fair_task_ms"], 1.32);
    assert_eq!(all["trace"]["speeds"], "frequencies");
    assert!(all["runs"][0]["energy_mj"].is_null() && all["runs"][0]["unknown"].is_array());
}

#[test]
fn shares_of_an_explanation_are_the_whole_time() {
    for args in [
        &["explain", "bug.txt", "--task", "ui", "--over", "all"][..],
        &["explain", "bug.txt", "--task", "812", "--platform", "m1", "--over", "worst"],
        &["explain", "app.txt", "--task", "Render*", "--over", "1ms", "--platform", "pixel6"],
    ] {
        let all = json(args);
        let took = all["took_ms"].as_f64().expect("a number");
        let parts = all["parts"].as_object().expect("a record");
        let sum: f64 = parts.values().filter_map(Value::as_f64).sum();
        assert!(took > 0.0 && (sum - took).abs() <= 0.01 * took, "{args:?}: {sum} of {took}");
    }
}

#[test]
fn slices_of_a_program_are_jobs_by_their_name() {
    let all = json(&["report", "app.txt", "--job", "Choreographer#doFrame"]);
    let jobs = &all["trace"]["marked"][0];
    assert_eq!((&jobs["name"], &jobs["n"]), (&"Choreographer#doFrame".into(), &4.into()));
    assert_eq!(jobs["took"]["max_ms"], 11.5);
    let all = json(&["report", "app.txt", "--job", "ample.app=10ms"]);
    let threads = all["trace"]["threads"].as_array().expect("a list");
    let app = threads.iter().find(|t| t["comm"] == "ample.app").expect("there");
    assert_eq!((&app["jobs"]["period_ms"], &app["jobs"]["late"]), (&10.0.into(), &1.into()));
}

/// Two activations 4 ms apart are one burst.
#[test]
fn bursts_of_a_trace_are_listed_for_the_tasks_that_are_meant() {
    let said = said(&["report", "bug.txt", "--task", "ui", "--bursts"]);
    let bursts: Vec<&str> = said.out.lines().filter(|line| line.contains(" ms  ui: ")).collect();
    assert_eq!(bursts, ["       1.0 ms  ui: took 16.7 ms"], "{}", said.out);
    let listed = json(&["report", "bug.txt", "--bursts"])["runs"][0]["listed"].clone();
    let n = listed.as_array().map_or(0, |all| all.iter().filter(|e| e["what"] == "burst").count());
    assert_eq!(n, 3, "{listed}");
}

#[test]
fn a_stretch_may_be_named_by_either_clock() {
    let of = |window| json(&["report", "bug.txt", "--window", window])["trace"]["threads"].clone();
    assert_eq!(of("0.001..0.005"), of("100.001..100.005"));
}

#[test]
fn wrong_questions_to_a_trace_have_one_clear_answer() {
    for (args, answer) in [
        (&["run", "bug.txt", "-p", "m1"][..], "is a trace"),
        (&["report", "bug.txt", "--task", "nobody"], "no task of"),
        (&["report", "bug.txt", "--task", "4711"], "no task of"),
        (&["report", "bug.txt", "--window", "5..6"], "the trace has no such stretch"),
        (&["report", "bug.txt", "--window", "2..1"], "wanted seconds A..B"),
        (&["report", "app.txt", "--platform", "rpi4"], "the platform `rpi4` has"),
        (&["report", "bug.txt", "--every-phase"], "is a trace"),
        (&["explain", "bug.txt", "--over", "3"], "have no numbers"),
        (&["explain", "rampup"], "--platform: is missing"),
        (&["explain", "rampup", "-p", "m1", "--over", "5ms"], "is for traces"),
    ] {
        let said = said(args);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?}");
        assert!(
            said.err.contains(answer) && said.err.lines().count() <= 8,
            "{args:?}: {}",
            said.err
        );
    }
}
