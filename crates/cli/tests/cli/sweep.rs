//! Sweeps: each point is what its command repeats.

use crate::{command, prints, risetime, risetime_in, scratch};
use serde_json::Value;
use std::path::Path;

/// Two tasks; `ui` may miss its deadline.
const FILE: &str = r#"{ "tasks": {
    "ui": { "loop": -1, "run": 2000, "timer": { "ref": "unique", "period": 10000 } },
    "other": { "loop": -1, "run": 3000, "sleep": 4000 } } }
"#;

fn with_file(name: &str) -> std::path::PathBuf {
    let dir = scratch(name);
    std::fs::write(dir.join("app.json"), FILE).expect("a scratch directory");
    dir
}

fn printed(dir: &Path, args: &[&str]) -> String {
    let said = risetime_in(dir, args);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{args:?}");
    said.out
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

const SWEEP: [&str; 17] = [
    "sweep",
    "app.json",
    "-p",
    "m1",
    "--vary",
    "ui.run=2000..8000:3000",
    "--vary",
    "policy=linux-6.8,rfc-v1",
    "--metric",
    "ui.response_p99",
    "--metric",
    "energy",
    "--phases",
    "2",
    "--seconds",
    "0.3",
    "--noise=off",
];

#[test]
fn the_command_of_a_point_gives_its_figures_again() {
    let dir = with_file("sweep-commands");
    let all = parsed(&printed(&dir, &[&SWEEP[..], &["--format", "json"]].concat()));
    let points = all["points"].as_array().expect("points");
    assert_eq!(points.len(), 6);
    for point in points {
        let line = point["command"].as_str().expect("a command");
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words[0], "risetime");
        let again = parsed(&printed(&dir, &[&words[1..], &["--format", "json"]].concat()));
        let runs = again["runs"].as_array().expect("runs");
        assert_eq!(runs.len(), 2);
        for (k, run) in runs.iter().enumerate() {
            assert_eq!(run["settings"], point["settings"], "{line}");
            let response = &run["jobs"][0]["response"]["p99_ms"];
            let figures = [response, &run["energy_mj"]];
            for (figure, found) in
                figures.into_iter().zip(point["figures"].as_array().expect("figures"))
            {
                assert_eq!(*figure, found["values"][k], "{line}");
            }
        }
        assert!(point["experiment"]["vary"]["ui.run"] == point["at"]["ui.run"], "{point}");
    }
    assert_ne!(points[0]["figures"], points[2]["figures"]);
}

#[test]
fn a_key_varied_on_the_command_line_is_a_key_written_into_the_file() {
    let dir = with_file("sweep-by-hand");
    let own = dir.join("own");
    std::fs::create_dir(&own).expect("a scratch directory");
    std::fs::write(
        own.join("app.json"),
        FILE.replace("2000", "3500").replace("4000 }", "4000, \"util_min\": 300 }"),
    )
    .expect("a scratch directory");
    let run = ["run", "app.json", "-p", "m1", "--seconds", "0.3"];
    let varied = ["--vary", "ui.run=3500", "--vary", "other.util_min=300"];
    for format in ["text", "json", "csv"] {
        let by_hand = printed(&own, &[&run[..], &["--format", format]].concat());
        let by_line = printed(&dir, &[&run[..], &varied, &["--format", format]].concat());
        let name = "app+ui.run=3500+other.util_min=300";
        assert!(by_line.contains(name), "{by_line}");
        // The title of a page breaks where it is wide; `explain` takes no varied key, and is not named there.
        let words = |text: &str| {
            let text = text.split("Why: risetime explain").next().unwrap_or_default();
            text.replace(name, "app").split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words(&by_line), words(&by_hand), "{format}");
    }
}

#[test]
fn a_sweep_is_tidy_and_the_same_again() {
    let dir = with_file("sweep-tidy");
    let args = [&SWEEP[..], &["--format", "csv"]].concat();
    let table = printed(&dir, &args);
    assert_eq!(table, printed(&dir, &args));
    let rows: Vec<Vec<&str>> = table.lines().map(|l| l.split(',').collect()).collect();
    let head =
        "platform,workload,policy,backend,seed,ui.run,metric,unit,median,low,high,n,never,command";
    assert_eq!(table.lines().next(), Some(head));
    assert_eq!(rows.len(), 1 + 3 * 2 * 2);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{table}");
    assert_eq!(
        rows[1][..8],
        ["m1", "app", "linux-6.8+noise=off", "sim", "1", "2000", "ui.response_p99", "ms"]
    );
    assert_eq!(rows[1][11..13], ["2", "0"]);
}

#[test]
fn a_sweep_is_drawn_within_the_terminal() {
    let dir = with_file("sweep-drawn");
    for (columns, ascii) in [("80", false), ("40", false), ("60", true)] {
        let page = |more: &[&str]| {
            let args = [&SWEEP[..4], more, &SWEEP[8..]].concat();
            let mut command = command(&dir, &args);
            command.env("COLUMNS", columns).env("LC_ALL", if ascii { "C" } else { "C.UTF-8" });
            let output = command.output().expect("the command starts");
            assert!(output.status.success(), "{output:?}");
            let text = String::from_utf8(output.stdout).expect("UTF-8");
            let widest = text.lines().map(|l| l.chars().count()).max();
            assert!(widest <= columns.parse().ok(), "{text}");
            assert!(!ascii || text.is_ascii(), "{text}");
            text
        };
        let curve = page(&["--vary", "ui.run=2000..8000:2000"]);
        assert!(ascii || curve.contains('┬'), "{curve}");
        assert!(curve.contains("best") && curve.contains("ui.run=2000"), "{curve}");
        let bars = page(&["--vary", "policy=linux-6.8,rfc-v1"]);
        assert!(ascii || bars.contains('▇'), "{bars}");
        let map =
            page(&["--vary", "ui.run=2000..8000:2000", "--vary", "other.run=1000..9000:1000"]);
        assert!(map.contains("██") || map.contains("##"), "{map}");
        for value in ["2000", "8000", "1000", "9000"] {
            assert!(map.contains(value), "{value} in {map}");
        }
    }
}

#[test]
fn what_cannot_be_varied_is_told_with_its_place() {
    for (args, wanted) in [
        (
            &["--vary", "rampup.phases.busy.run=-5"][..],
            "--vary rampup.phases.busy.run=-5: rampup.json (built in):",
        ),
        (
            &["--vary", "rate_limit_us=1..x:2"],
            "--vary rate_limit_us=1..x:2: `1..x:2`: wanted A..B:STEP",
        ),
        (
            &["--vary", "seed=1..9000:1", "--vary", "hz=100,200"],
            "--vary: 9000 × 2 points, wanted at most 10000",
        ),
        (&["--vary", "ramp.run=5"], "there is no `ramp`"),
    ] {
        let said =
            risetime(&[&["sweep", "rampup", "-p", "m1", "--metric", "energy"], args].concat());
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?}");
        assert!(said.err.contains(wanted), "{}", said.err);
    }
    let said = risetime(&["sweep", "rampup", "-p", "m1", "--vary", "hz=100", "--metric", "x.debt"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("there is no figure `x.debt`"), "{}", said.err);
    let said = risetime(&["run", "rampup", "-p", "m1", "--vary", "hz"]);
    assert!(said.code == 2 && said.err.contains("--vary hz: wanted NAME=VALUE"), "{}", said.err);
}

/// A name without a task is that of `--task`.
#[test]
fn a_metric_may_leave_its_task_out() {
    let of = |more: &[&str]| {
        prints(
            &[&["sweep", "rampup", "-p", "m1", "--vary", "hz=250", "--phases", "1"], more].concat(),
        )
    };
    assert_eq!(of(&["--metric", "debt", "--task", "rampup"]), of(&["--metric", "rampup.debt"]));
}

/// A map of two axes has its intervals below it; axes and points have the names that tables have.
#[test]
fn a_map_has_intervals_units_and_the_names_of_tables() {
    let dir = with_file("sweep-map");
    let map = [
        "sweep",
        "app.json",
        "-p",
        "m1",
        "--vary",
        "dvfs_headroom=0,50",
        "--vary",
        "hz=100,250",
        "--metric",
        "ui.response_p99",
        "--phases",
        "6",
        "--seconds",
        "0.3",
        "--set",
        "rate_limit_us=500",
    ];
    let page = printed(&dir, &map);
    assert!(page.contains("ui.response_p99 (ms), dvfs_headroom (%) by hz\n"), "{page}");
    assert!(page.contains("Medians over 6 start phases") && page.contains("95 %\n"), "{page}");
    assert!(page.lines().filter(|l| l.contains('…')).count() >= 2, "{page}");
    let csv = printed(&dir, &[&map[..], &["--format", "csv"]].concat());
    let all = parsed(&printed(&dir, &[&map[..], &["--format", "json"]].concat()));
    assert_eq!(all["axes"][0]["unit"], "%");
    for (row, point) in csv.lines().skip(1).zip(all["points"].as_array().expect("points")) {
        let names = ["platform", "workload", "policy"].map(|key| point[key].as_str().expect(key));
        assert!(row.starts_with(&format!("{},", names.join(","))), "{row} {names:?}");
    }
}
