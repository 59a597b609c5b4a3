//! Screens of the commands, as a person at a terminal of 80 columns sees them: files in `tests/screens/`, the command on the
//! first line, what it says on standard error behind it, `exit code N` last if it is not 0.
//!
//! `BLESS=1` writes them anew. Look at each as somebody would who sees the command for the first time.

use crate::documents::{in_shell, with_own_files};
use crate::{page, prints, risetime_in, scratch};
use std::path::{Path, PathBuf};

/// Lines of a screen.
const LINES: usize = 40;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens")
}

#[test]
fn the_screens_are_what_commands_print() {
    let dir = with_own_files("screens");
    // b waits for "bb", a resumes "b".
    let misspelt = r#"{ "tasks": {
        "a": { "run": 5000, "resume": "b", "timer": { "ref": "unique", "period": 16600 }, "loop": -1 },
        "b": { "loop": -1, "suspend": "bb", "run": 100 } } }"#;
    std::fs::write(dir.join("misspelt.json"), misspelt).expect("written");
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory())
        .expect("screens")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    assert!(files.len() >= 12, "{files:?}");
    for file in files {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        let shown = std::fs::read_to_string(&file).expect("a text");
        let command = shown.lines().next().expect("a command").to_string();
        let said = in_shell(&dir, command.trim_start_matches("$ "));
        let code =
            if said.code == 0 { String::new() } else { format!("exit code {}\n", said.code) };
        let now = format!("{command}\n{}{}{code}", said.out, said.err);
        if page::blessing() {
            std::fs::write(&file, &now).expect("written");
        } else {
            assert!(now == shown, "{name} shows something else (BLESS=1); now:\n{now}");
        }
        let lines: Vec<&str> = said.out.lines().collect();
        // What `check` says is a line for a program, too.
        let widest = lines.iter().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80) || name.starts_with("check"), "{name}: {widest:?} columns");
        if name.starts_with("run") {
            assert!(lines.len() <= LINES, "{name}: {} lines", lines.len());
        }
    }
}

/// Whatever is run, its first screen is one: each workload on a platform of its turn.
#[test]
fn whatever_runs_is_told_on_one_screen() {
    let names = |what: &str| -> Vec<String> {
        let page = prints(&["list", what]);
        let entries = page.lines().skip(1).filter(|l| l.starts_with("  ") && !l.starts_with("   "));
        entries.filter_map(|l| l.split_whitespace().next()).map(str::to_string).collect()
    };
    let platforms: Vec<String> =
        names("platforms").into_iter().filter(|p| !p.starts_with("server")).collect();
    for (i, workload) in names("workloads").iter().enumerate().filter(|(i, _)| i % 3 == 0) {
        let platform = &platforms[i % platforms.len()];
        let said = crate::risetime(&["run", workload, "-p", platform, "--seconds", "0.3"]);
        // Some workloads name CPUs that a platform has not.
        if said.code == 2 {
            continue;
        }
        let lines = said.out.lines().count();
        assert!(said.code == 0 && lines <= LINES, "{workload} on {platform}: {lines} lines");
    }
}

const TWO: &str = r#"{ "tasks": {
    "a": { "loop": -1, "run": 2000, "timer": { "ref": "unique", "period": 16667 } },
    "b": { "instance": 2, "loop": -1, "run": 6000, "timer": { "ref": "unique", "period": 20000 } },
    "io-1": { "loop": -1, "run": 100, "sleep": 9000 } } }"#;

/// In a directory of the test's own.
fn two(name: &str, more: &[&str]) -> crate::Said {
    let dir = scratch(&format!("two-{name}"));
    std::fs::write(dir.join("two.json"), TWO).expect("written");
    risetime_in(
        &dir,
        &[&more[..1], &["two.json", "-p", "m1", "--seconds", "0.5"], &more[1..]].concat(),
    )
}

/// The page is about whoever is asked for, else about those with most work.
#[test]
fn a_page_is_about_the_task_that_is_meant() {
    let leads = |more: &[&str]| {
        let said = two("page", &[&["run"], more].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        let of = |line: &str| line.split(": ").next().map(str::to_string);
        let heads: Vec<String> =
            said.out.lines().filter(|l| l.contains(" bursts,")).filter_map(of).collect();
        heads.first().cloned().unwrap_or_default()
    };
    assert_eq!(leads(&[]), "b-0");
    for (name, who) in [("a", "a"), ("b", "b-0"), ("b-1", "b-1"), ("io*", "io-1"), ("?", "b-0")] {
        assert_eq!(leads(&["--task", name]), who, "{name}");
    }
    for none in ["bb", "io-2", "x*"] {
        let said = two("page", &["run", "--task", none]);
        assert!(said.code == 2 && said.err.contains("the workload has a, b, io"), "{}", said.err);
    }
}

/// Each task counts its own jobs from 0, also where it is not the first, and each instance.
#[test]
fn jobs_have_small_numbers_whoever_begins_them() {
    for (task, number, says) in [
        ("a", "5", "Number 5 of 30 jobs of a "),
        ("b", "5", "Number 5 of 25 jobs of b-0 "),
        ("b-1", "23", "Number 23 of 25 jobs of b-1 "),
    ] {
        let said = two("numbers", &["explain", "--task", task, "--over", number]);
        assert!(said.code == 0 && said.out.contains(says), "{} {}", said.out, said.err);
    }
    let said = two("numbers", &["explain", "--task", "b", "--over", "25"]);
    assert!(said.code == 2 && said.err.contains("there are 0 to 24"), "{}", said.err);
}

/// What finite work took is what it takes at full speed and what it took longer, in all of a run and in its parts.
#[test]
fn time_taken_is_work_and_what_it_took_longer() {
    let said = two("time", &["run", "--format", "json"]);
    let results: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
    let run = &results["runs"][0];
    let n = |record: &serde_json::Value, key: &str| record[key].as_f64().expect("a number");
    let sum = |states: &serde_json::Value| -> f64 {
        states.as_array().expect("states").iter().map(|s| n(s, "ms")).sum()
    };
    for task in run["tasks"].as_array().expect("tasks") {
        let (whole, burst) = (&task["whole"], &task["burst"]);
        let longer = n(whole, "running_ms") + n(whole, "wait_ms") - n(whole, "work_ms");
        assert!((n(whole, "longer_ms") - longer).abs() < 0.005, "{whole}");
        assert!((sum(&whole["longer"]) - longer).abs() < 0.02 && longer > 0.0, "{whole}");
        assert!((n(burst, "took_ms") - n(burst, "work_ms") - n(burst, "longer_ms")).abs() < 0.005);
        assert_eq!(task["endless"], false);
    }
    // A job that nobody else holds up is its task's activation.
    let of = |list: &str, key: &str, name: &str| -> serde_json::Value {
        let all = run[list].as_array().expect("a list");
        all.iter().find(|j| j[key] == name).expect("it is there")["longer"].clone()
    };
    let (job, activation) = (of("jobs", "name", "b"), of("latency", "tasks", "b"));
    assert!(
        (n(&job, "p50_ms") / n(&activation, "p50_ms") - 1.0).abs() < 0.05,
        "{job} {activation}"
    );
    let endless = prints(&["run", "rampup", "-p", "m1", "--seconds", "1.2", "--format", "json"]);
    assert!(endless.contains("\"endless\": true"), "{endless}");
}

/// Anybody can have the simulator's short ways closed, and hears what came of it.
#[test]
fn both_ways_are_the_same_and_said_to_be() {
    for command in [
        &["run"][..],
        &["explain"],
        &["compare", "--policy", "linux-6.8", "--policy", "linux-7.2", "--phases", "1"],
    ] {
        let said = two("both", &[command, &["--slow"]].concat());
        let told = said.err.contains("made with the simulator's short ways and without: all");
        assert!(said.code == 0 && told, "{command:?} {}", said.err);
        let plain = two("both", command);
        let own = |out: &str| {
            out.lines()
                .filter(|l| !l.contains("risetime explain"))
                .map(str::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(own(&said.out), own(&plain.out), "{command:?}");
    }
}
