//! JSON and CSV as their document promises them.

use crate::common;

use crate::common::{DEFAULT, Kind, printed, rampup};
use risetime_analysis::Migration;
use risetime_kernel::units::{CpuId, Span, TaskId};
use risetime_report::chart::{Shape, Theme};
use risetime_report::{Told, csv, json};
use serde_json::Value;

fn keys(record: &Value) -> Vec<&str> {
    record.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn json_has_the_documented_keys_in_order() {
    let (mut run, _) = rampup(DEFAULT);
    common::heated(&mut run);
    let text = printed(std::slice::from_ref(&run), json::runs);
    let all: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(keys(&all), ["schema", "runs"]);
    let document = include_str!("../../../docs/json.md");
    let documented = |section: &str| -> Vec<String> {
        let text = document.split(&format!("## {section}\n")).nth(1).unwrap();
        let rows = text.split("\n## ").next().unwrap().lines();
        let rows = rows.filter(|l| l.starts_with("| `") && l.matches(" | ").count() >= 2);
        rows.map(|l| l.split('`').nth(1).unwrap().to_string()).collect()
    };
    assert_eq!(keys(&all["runs"][0]), documented("A run"));
    let task = &all["runs"][0]["tasks"][0];
    let mut of_task = documented("A task");
    // These are there only where there is something to say.
    let sometimes = ["sched_policies", "reservation"];
    assert_eq!(of_task.split_off(of_task.len() - 2), sometimes);
    assert_eq!(keys(task), of_task);
    assert_eq!(keys(&task["whole"]), documented("A task's whole run"));
    assert_eq!(keys(&all["runs"][0]["cpus"][0]), documented("A CPU"));
    assert_eq!(all["runs"][0]["heat"][0]["max_at_ms"], 812.5);
    assert_eq!(all["runs"][0]["cooling"][1]["lowest_max_khz"], 1_328_000);
    assert_eq!(keys(&task["burst"]), documented("A burst"));
    assert_eq!(keys(&task["reach"][0]), ["signal", "level", "after_ms"]);
    let states = document.split("**States**").nth(1).unwrap();
    for (state, sentence) in risetime_analysis::LOST_STATES {
        let row = format!("| `{state}` | {sentence} |");
        assert!(states.contains(&row), "not in docs/json.md: {row}");
    }
}

#[test]
fn json_of_a_short_run() {
    let (run, _) = rampup(Kind { busy_ms: 30, ..DEFAULT });
    insta::assert_snapshot!("json", printed(&[run], json::runs));
}

#[test]
fn json_says_null_for_never_and_lists_bursts_when_asked() {
    let (mut run, _) = rampup(Kind { busy_ms: 30, ..DEFAULT });
    let burst = run.tasks[0].burst.unwrap();
    let moved = Migration { at_ms: 1.5, from: CpuId(0), to: CpuId(4), why: "misfit" };
    let lines = [
        json::burst_line(TaskId(3), "a\"b", &burst),
        json::migration_line(TaskId(3), "a\"b", &moved),
    ];
    let fifo = risetime_model::workload::Policy::Fifo { priority: 10 };
    run.tasks[0].policies = vec![fifo];
    run.latency[0].policy = Some(fifo);
    run.tasks.push(run.tasks[0].clone());
    run.tasks[1].burst = None;
    run.energy_mj = Some(f64::NAN);
    let with_lists = |out: &mut dyn std::io::Write, told: &mut [Told<'_>]| {
        told[0].listed = Some(Box::new(lines.clone().into_iter().map(Ok)));
        json::runs(out, told)
    };
    let all: Value = serde_json::from_str(&printed(&[run], with_lists)).unwrap();
    let listed = &all["runs"][0]["listed"];
    assert_eq!((&listed[0]["what"], &listed[1]["what"]), (&"burst".into(), &"migration".into()));
    assert_eq!((&listed[0]["comm"], &listed[1]["at_ms"]), (&"a\"b".into(), &1.5.into()));
    assert!(listed[0]["debt_ms"].is_number());
    let tasks = &all["runs"][0]["tasks"];
    assert!(tasks[0]["reach"][1]["after_ms"].is_null());
    assert_eq!(tasks[0]["sched_policies"], serde_json::json!(["SCHED_FIFO 10"]));
    assert_eq!(all["runs"][0]["latency"][0]["sched_policy"], "SCHED_FIFO 10");
    assert!(tasks[1]["burst"].is_null() && tasks[1]["debt_ms"].is_null());
    assert!(all["runs"][0]["energy_mj"].is_null());
}

#[test]
fn json_of_phases_has_every_run_and_a_summary() {
    let runs: Vec<_> =
        (0..3).map(|i| rampup(Kind { phase: Span::from_us(i * 7618), ..DEFAULT }).0).collect();
    let summary = risetime_analysis::phases(&runs);
    let text = printed(&runs, |out, told| json::phases(out, told, &[("linux-6.8", &summary)]));
    let all: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(all["runs"].as_array().unwrap().len(), 3);
    let summary = &all["summary"][0];
    assert_eq!(summary["policy"], "linux-6.8");
    assert_eq!(summary["phases_us"], serde_json::json!([0, 7618, 15236]));
    let debt = &summary["tasks"][0]["debt_ms"];
    assert_eq!(keys(debt), ["median", "min", "q1", "q3", "max", "n", "never"]);
    assert_eq!(debt["median"], all["runs"][0]["tasks"][0]["debt_ms"]);
}

#[test]
fn csv_quotes_what_needs_it_and_tells_tasks_apart() {
    let (mut run, _) = rampup(Kind { busy_ms: 30, ..DEFAULT });
    run.policy = "a,\"b\"\nc".into();
    run.tasks.push(run.tasks[0].clone());
    run.tasks[1].task.0 = 7;
    let burst = run.tasks[0].burst.unwrap();
    let moved = Migration { at_ms: 1.5, from: CpuId(0), to: CpuId(4), why: "misfit" };
    let lines =
        [csv::burst_lines(TaskId(7), "r,", &burst), csv::migration_line(TaskId(7), "r,", &moved)];
    let lines: Vec<String> = lines.join("\n").lines().map(str::to_string).collect();
    let text = printed(&[run], |out, told| {
        told[0].listed = Some(Box::new(lines.clone().into_iter().map(Ok)));
        csv::runs(out, told, &[])
    });
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let head = reader.headers().unwrap().clone();
    assert_eq!(
        head.iter().collect::<Vec<_>>().join(","),
        "platform,workload,policy,backend,seed,phase_us,task,figure,key,value,unit"
    );
    let rows: Vec<::csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert!(rows.iter().all(|r| &r[2] == "a,\"b\"\nc"));
    let debts: Vec<&str> = rows.iter().filter(|r| &r[7] == "debt").map(|r| &r[6]).collect();
    assert_eq!(debts, ["rampup#0", "rampup#7"]);
    let never: Vec<&str> = rows.iter().filter(|r| &r[8] == "util=1000").map(|r| &r[9]).collect();
    assert_eq!(never, ["", ""]);
    let at = rows.iter().find(|r| &r[7] == "running").unwrap();
    assert_eq!((&at[8], &at[9], &at[10]), ("cpu=0 freq_khz=600000", "30", "ms"));
    let listed: Vec<_> = rows.iter().filter(|r| &r[6] == "r,#7").map(|r| (&r[7], &r[9])).collect();
    assert_eq!(listed.len(), lines.len(), "{listed:?}");
    assert_eq!(listed.last(), Some(&("listed_migration", "1.5")));
}

#[test]
fn an_explanation_in_json_adds_up() {
    let text = json::explain(&[common::explanation(0), common::explanation(3)]);
    let all: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(keys(&all), ["schema", "explanations", "summary"]);
    for e in all["explanations"].as_array().unwrap() {
        let shares =
            e["causes"].as_array().unwrap().iter().map(|c| c["share_ms"].as_f64().unwrap());
        let sum = shares.sum::<f64>() + e["unexplained_ms"].as_f64().unwrap();
        assert!((sum - e["debt_ms"].as_f64().unwrap()).abs() < 0.01, "{e}");
    }
    assert_eq!(all["summary"]["causes"].as_array().unwrap().len(), 5);
    let one: Value = serde_json::from_str(&json::explain(&[common::explanation(0)])).unwrap();
    assert_eq!(keys(&one), ["schema", "explanations"]);
}

#[test]
fn a_comparison_in_json_and_as_a_picture_has_every_policy() {
    let c = common::ablation();
    let all: Value = serde_json::from_str(&json::compare(&c)).unwrap();
    assert_eq!(all["experiments"].as_array().unwrap().len(), 6);
    let first = &all["experiments"][0];
    assert_eq!(first["metrics"][0]["values"].as_array().unwrap().len(), 16);
    assert_eq!(first["metrics"][0]["against_first"], Value::Null);
    assert_eq!((&all["differences"], &all["sure_from"]), (&15.into(), &10.into()));
    let bought = &all["switches"][0]["metrics"][0]["last"];
    assert!(bought["median"].as_f64().unwrap() < -20.0 && bought["sure"] == true, "{bought}");
    assert_eq!(all["switches"][1]["acts"], Value::Bool(false));
    let of = |c: &_| risetime_report::picture::compared(c).panels.remove(0);
    let picture = of(&c);
    let points = picture.series.iter().map(|s| match &s.shape {
        Shape::Points(points) => points.len(),
        _ => 0,
    });
    assert_eq!(points.sum::<usize>(), 4, "the idle switch's two are not drawn");
    // One policy twice is one point, no axis of no length, and no difference that would be left out.
    let mut same = common::comparison();
    same.groups[0].truncate(1);
    let again = same.groups[0][0].clone();
    same.groups[0].push(again);
    let picture = risetime_report::picture::compared(&same).svg(Theme::Light);
    assert!(picture.contains(">A B</text>") && !picture.contains("NaN"), "{picture}");
    let all: Value = serde_json::from_str(&json::compare(&same)).unwrap();
    for metric in all["experiments"][1]["metrics"].as_array().unwrap() {
        let d = &metric["against_first"];
        assert_eq!((&d["median"], &d["low"], &d["high"]), (&0.0.into(), &0.0.into(), &0.0.into()));
        assert_eq!(d["sure"], false);
    }
}
