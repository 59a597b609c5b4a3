//! What the numbers on standard output are: complete, documented, repeatable, and without
//! knowledge of names.

use crate::{command, prints, ramp, repository, risetime, risetime_in, scratch};
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&prints(args)).expect("JSON")
}

/// All keys of all records in `value`; what `settings` and a sweep's points hold are names of their own.
fn keys(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Array(list) => list.iter().for_each(|v| keys(v, into)),
        Value::Object(record) => {
            for (key, v) in record {
                into.insert(key.clone());
                if !["settings", "set", "at", "vary"].contains(&key.as_str()) {
                    keys(v, into);
                }
            }
        }
        _ => {}
    }
}

/// The first jobs and activations are not counted, and nothing else changes.
#[test]
fn a_start_that_is_left_out_is_in_no_count_of_jobs_and_activations() {
    let run = ["run", "periodic", "--platform", "rpi4", "--seconds", "1", "--format", "json"];
    let [whole, later] = [&[][..], &["--skip-ms", "500"]].map(|more| json(&[&run, more].concat()));
    let [whole, later] = [&whole["runs"][0], &later["runs"][0]];
    for same in ["tasks", "cpus", "energy_mj", "work_ms"] {
        assert_eq!(whole[same], later[same], "{same}");
    }
    let settings = |run: &Value| run["settings"].get("skip_ms").and_then(Value::as_u64);
    assert_eq!((settings(whole), settings(later)), (None, Some(500)));
    assert!(later["notes"][0].as_str().expect("a note").contains("first 500 ms"));
    let n = |run: &Value, of: &str, what: &str| run[of][0][what].as_u64().expect("a number");
    for (of, what) in [("jobs", "due"), ("jobs", "done"), ("latency", "activations")] {
        let (all, left) = (n(whole, of, what), n(later, of, what));
        assert!(2 * left <= all + 2 && 2 * left + 2 >= all, "{of} {what}: {left} of {all}");
    }
    // The same in each start phase, and where figures are compared.
    let max =
        json(&[&run[..], &["--skip-ms", "500", "--expect", "frame.response_max > 0"]].concat());
    let max = max["runs"][0]["jobs"][0]["response"]["max_ms"].as_f64();
    let sweep = ["sweep", "periodic", "--platform", "rpi4", "--seconds", "1", "--skip-ms", "500"];
    let of = ["--vary", "seed=1", "--metric", "frame.response_max", "--phases", "1"];
    let swept = json(&[&sweep[..], &of, &["--format", "json"]].concat());
    let point = &swept["points"][0];
    assert_eq!(point["figures"][0]["median"].as_f64(), max);
    assert!(point["command"].as_str().expect("a command").contains("--skip-ms 500"), "{point}");
    let said = prints(&[&sweep[..], &of].concat());
    assert!(said.contains("without the first 500 ms"), "{said}");
    let wrong = risetime(&[&run[..], &["--skip-ms", "1000"]].concat());
    assert!(wrong.code == 2 && wrong.err.contains("nothing would be left"), "{}", wrong.err);
    let debts = ["compare", "rampup", "-p", "m1", "--policy", "linux-6.8", "--policy", "linux-7.2"];
    let wrong = risetime(&[&debts[..], &["--skip-ms", "10"]].concat());
    assert!(wrong.code == 2 && wrong.err.contains("--metric"), "{}", wrong.err);
}

/// What is missed is listed one by one, as often as it is counted; its first task leads the page wherever it stands.
#[test]
fn missed_jobs_are_listed_and_declared_ones_lead() {
    let dir = scratch("missed");
    let chain = r#"{"tasks": {"first": {"loop": -1, "run": 4000, "sleep": 2000},
        "ui": {"job": {"name": "frame", "deadline": 33333, "tasks": ["render"]}, "loop": -1, "run": 3000,
               "resume": "render", "timer": {"ref": "unique", "period": 16667}},
        "render": {"loop": -1, "suspend": "render", "run": 5000}}}"#;
    std::fs::write(dir.join("chain.json"), chain).expect("written");
    let run = ["run", "chain.json", "--platform", "pixel6", "--seconds", "0.5"];
    let said = |more: &[&str]| risetime_in(&dir, &[&run[..], more].concat()).out;
    let page = said(&["--bursts", "--full"]);
    let line = |starts: &str| page.lines().position(|l| l.starts_with(starts));
    let places = ["frame: ", "Jobs (", "ui: ", "Other tasks", "Late jobs of frame"].map(line);
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} {page}");
    let results: Value =
        serde_json::from_str(&said(&["--bursts", "--format", "json"])).expect("JSON");
    let run = &results["runs"][0];
    let listed = run["listed"].as_array().expect("a list").iter().filter(|r| r["what"] == "job");
    let listed: Vec<&Value> = listed.collect();
    for how in ["late", "dropped"] {
        let n = listed.iter().filter(|r| r["how"] == how).count();
        assert_eq!(run["jobs"][0][how].as_u64(), Some(n as u64), "{how}");
    }
    let late = listed.iter().find(|r| r["how"] == "late").expect("some are late");
    assert!(["ui", "render"].map(Value::from).contains(&late["longest_with"]), "{late}");
    let rows = said(&["--bursts", "--format", "csv"]);
    assert!(rows.contains(",ui,missed_how,job=frame number="), "{rows}");
}

/// What helps a small workload, on a small budget.
const ADVICE: [&str; 9] = [
    "advise",
    "periodic",
    "--platform",
    "rpi4",
    "--seconds",
    "0.6",
    "--budget",
    "60",
    "--phases=6",
];

/// The first line of an advice does what it says: its own command gives its figures.
#[test]
fn the_command_of_an_advice_gives_its_figures() {
    let advice = json(&[&ADVICE[..], &["--format", "json"]].concat());
    let first = &advice["options"][0];
    let change = &first["change"];
    assert!(change["high"].as_f64() < Some(0.0) && change["n"] == 6, "{change}");
    let command = first["command"].as_str().expect("a command");
    assert!(command.starts_with("risetime run periodic --platform rpi4 "), "{command}");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let runs = json(&[&words[..], &["--format", "json"]].concat());
    let p99 = |run: &Value| run["jobs"][0]["response"]["p99_ms"].as_f64().expect("a number");
    let mut all: Vec<f64> = runs["runs"].as_array().expect("runs").iter().map(p99).collect();
    all.sort_by(f64::total_cmp);
    let median = (all[2] + all[3]) / 2.0;
    let said = first["measured"]["value"]["median"].as_f64().expect("a number");
    assert!((median - said).abs() < 0.001, "{median} {said}");
    let page = prints(&ADVICE);
    for line in ["frame.response_p99: ", "On your system, as root", "--backend vm"] {
        assert!(page.contains(line), "{line} in {page}");
    }
    let of = ["advise", "periodic", "--platform", "rpi4", "--seconds", "0.3", "--metric"];
    let nothing = prints(&[&of[..], &["frame.dropped"]].concat());
    assert!(nothing.contains("frame.dropped is 0 as it is") && !nothing.contains("0.000"));
    let unsure = [&of[..], &["frame.wakeup_max", "--phases", "6", "--budget", "60"]].concat();
    let page = prints(&unsure);
    assert!(page.contains("for sure:") && page.contains("\n0  "), "{page}");
    let record = json(&[&unsure[..], &["--format", "json"]].concat());
    let nearest = record["nearest"].as_array().expect("a list");
    assert_eq!((nearest.is_empty(), &record["unit"]), (false, &Value::from("ms")));
    assert!(nearest[0]["command"].as_str().expect("a text").contains(" --phases 6 "));
    let refused = risetime(&["advise", "periodic", "--platform", "rpi4", "--metric", "frame.fun"]);
    assert_eq!((refused.code, refused.out.as_str()), (2, ""));
    assert!(refused.err.contains("there is no figure `frame.fun`"), "{}", refused.err);
}

#[test]
fn every_key_of_the_json_is_documented_and_every_documented_run_key_is_there() {
    let documented =
        std::fs::read_to_string(repository().join("docs/json.md")).expect("docs/json.md");
    let mut found = BTreeSet::new();
    keys(&json(&ramp(&["--format", "json", "--bursts"])), &mut found);
    keys(&json(&ramp(&["--format", "json", "--phases", "2"])), &mut found);
    let on_m1 = ["rampup", "--platform", "m1", "--phases", "2", "--format", "json"];
    keys(&json(&[&["explain"], &on_m1[..]].concat()), &mut found);
    keys(&json(&[&["compare"], &on_m1[..], &["--ablate", "rfc-v1"]].concat()), &mut found);
    let sweep = ["sweep", "--vary", "hz=250", "--metric", "energy"];
    keys(&json(&[&sweep, &on_m1[..]].concat()), &mut found);
    keys(&json(&[&ADVICE[..], &["--format", "json"]].concat()), &mut found);
    let missing: Vec<_> = found
        .iter()
        .filter(|k| {
            !["schema", "runs"].contains(&k.as_str()) && !documented.contains(&format!("`{k}`"))
        })
        .collect();
    assert_eq!(missing, [""; 0], "not in docs/json.md");
    for key in [
        "schema",
        "runs",
        "policy",
        "backend",
        "platform",
        "seed",
        "phase_us",
        "settings",
        "tasks",
        "comm",
        "bursts",
        "burst",
        "t0_ms",
        "t1_ms",
        "end_ms",
        "ended_by",
        "reach",
        "signal",
        "level",
        "after_ms",
        "perf_10_90_ms",
        "debt_ms",
        "debt_capped_ms",
        "wait_ms",
        "energy_mj",
        "running",
        "cpu",
        "freq_khz",
        "ms",
        "util_residency",
        "util",
        "migrations",
        "at_ms",
        "from",
        "to",
        "why",
        "cpus",
        "freq",
        "idle",
        "state",
    ] {
        assert!(found.contains(key), "no `{key}`");
    }
}

#[test]
fn ticks_a_second_can_be_others_than_the_platforms() {
    let with = |args: &[&str]| json(&ramp(&[&["--format", "json"], args].concat()));
    let (own, same, fast) = (with(&[]), with(&["--hz", "1000"]), with(&["--hz", "100"]));
    let lost = |run: &Value| run["runs"][0]["tasks"][0]["debt_ms"].clone();
    assert_eq!(own["runs"][0]["platform"], "m1");
    assert!(own["runs"][0]["settings"].get("hz").is_none());
    assert_eq!((&same["runs"][0]["platform"], lost(&same)), (&Value::from("m1"), lost(&own)));
    assert_eq!(fast["runs"][0]["platform"], "m1+hz=100");
    assert_eq!(fast["runs"][0]["settings"]["hz"], 100);
    assert_ne!(lost(&fast), lost(&own));
    assert!(prints(&ramp(&["--hz", "100"])).contains("m1+hz=100"));
    let explained = prints(&["explain", "rampup", "--platform", "m1", "--hz", "100"]);
    assert!(explained.contains("m1+hz=100"), "{explained}");
    let two = ["--policy", "linux-6.8", "--policy", "linux-6.1", "--phases", "1"];
    let on_m1 = ["compare", "rampup", "--platform", "m1", "--hz", "100", "--start-utils", "own"];
    let compared = prints(&[&on_m1[..], &two].concat());
    assert!(compared.contains("m1+hz=100"), "{compared}");
}

#[test]
fn the_json_holds_every_resolved_setting() {
    let all = json(&ramp(&[
        "--format",
        "json",
        "--set",
        "rate_limit_us=10000",
        "--uclamp-min",
        "300",
        "--set",
        "start_util=0",
    ]));
    assert_eq!(all["schema"], 2);
    let run = &all["runs"][0];
    assert_eq!(
        (run["backend"].as_str(), run["platform"].as_str(), run["policy"].is_string()),
        (Some("sim"), Some("m1"), true)
    );
    let settings = run["settings"].as_object().expect("settings");
    for (name, value) in [("rate_limit_us", 10000), ("uclamp_min", 300), ("start_util", 0)] {
        assert_eq!(settings[name], value, "{name}");
    }
    // Everything that has a default on this machine under this governor.
    for name in [
        "governor",
        "placement",
        "sched_energy_aware",
        "base_slice_ns",
        "sugov_work_ns",
        "background_util",
    ] {
        assert!(settings.contains_key(name), "{name} in {settings:?}");
    }
    assert!(
        !settings.contains_key("scaling_setspeed"),
        "a tunable of a governor that is not in use"
    );
}

#[test]
fn reach_holds_450_1000_every_opp_and_the_biggest_cpu() {
    let all = json(&ramp(&["--format", "json"]));
    let reach = all["runs"][0]["tasks"][0]["reach"].as_array().expect("reach").clone();
    let has = |signal: &str, level: u64| {
        reach.iter().any(|r| r["signal"] == signal && r["level"] == level)
    };
    assert!(has("util", 450) && has("util", 1000) && has("capacity", 1024), "{reach:?}");
    assert_eq!(reach.iter().filter(|r| r["signal"] == "freq_khz").count(), 5 + 15);
}

#[test]
fn each_start_phase_can_be_repeated_by_what_is_printed_of_it() {
    // A tick of 3333333 ns: no phase but the first is a whole number of µs.
    let dir = scratch("phases-again");
    let platform = prints(&["show", "--source", "m1"]).replace("hz = 1000", "hz = 300");
    std::fs::write(dir.join("m300.toml"), platform).unwrap();
    let run = |more: &[&str]| {
        let args = ["run", "rampup", "--platform", "m300.toml", "--seconds", "1.5"];
        let said = risetime_in(&dir, &[&args[..], more].concat());
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{more:?}");
        said.out
    };
    let all: Value =
        serde_json::from_str(&run(&["--phases", "4", "--format", "json"])).expect("JSON");
    let table = run(&["--phases", "4", "--every-phase"]);
    let csv = run(&["--phases", "4", "--format", "csv"]);
    for (k, one) in all["runs"].as_array().unwrap().iter().enumerate() {
        let phase = one["phase_us"].to_string();
        assert_eq!(phase.contains('.'), k > 0, "{phase}");
        assert!(table.lines().any(|l| l.split_whitespace().next() == Some(&phase)), "{table}");
        // Each has a seed of its own, too.
        let seed = one["seed"].to_string();
        let again = run(&["--phase-us", &phase, "--seed", &seed, "--format", "json"]);
        let again: Value = serde_json::from_str(&again).expect("JSON");
        assert_eq!(again["runs"][0].to_string(), one.to_string(), "{phase}");
        let again = run(&["--phase-us", &phase, "--seed", &seed, "--format", "csv"]);
        let rows: Vec<&str> =
            csv.lines().filter(|row| row.split(',').nth(5) == Some(&phase)).collect();
        assert_eq!(again.lines().skip(1).collect::<Vec<_>>(), rows, "{phase}");
    }
}

/// Any figure, several platforms, and a series taken apart: the same experiments in each format.
#[test]
fn experiments_are_compared_by_any_figure() {
    let policies = ["--policy", "linux-6.8", "--policy", "linux-7.2"];
    let how = ["--seconds", "1.2", "--phases", "6"];
    let of = |more: &[&str]| {
        prints(&[&["compare", "rampup", "-p", "m1"][..], &how, &policies, more].concat())
    };
    let metrics = ["--metric", "debt", "--task", "rampup", "--metric", "energy", "-p", "pixel6"];
    let json = |more: &[&str]| of(&[&metrics[..], more, &["--format", "json"]].concat());
    let all: Value = serde_json::from_str(&json(&[])).expect("JSON");
    let experiments = all["experiments"].as_array().expect("a list");
    let names: Vec<_> =
        experiments.iter().map(|e| (e["platform"].as_str(), e["policy"].as_str())).collect();
    let (m1, pixel6) = (Some("m1"), Some("pixel6"));
    let (old, new) = (Some("linux-6.8"), Some("linux-7.2"));
    assert_eq!(names, [(m1, old), (m1, new), (pixel6, old), (pixel6, new)]);
    // The difference is that of the pairs, to the first policy of the same platform.
    for pair in experiments.chunks(2) {
        for m in 0..2 {
            let values = |e: &Value| -> Vec<f64> {
                let values = e["metrics"][m]["values"].as_array().expect("values");
                values.iter().map(|v| v.as_f64().expect("a number")).collect()
            };
            let (first, second) = (values(&pair[0]), values(&pair[1]));
            let mut apart: Vec<f64> = second.iter().zip(&first).map(|(a, b)| a - b).collect();
            apart.sort_by(f64::total_cmp);
            let told = pair[1]["metrics"][m]["against_first"]["median"].as_f64().expect("there");
            assert!((told - (apart[2] + apart[3]) / 2.0).abs() < 0.002, "{told} {apart:?}");
            assert!(pair[0]["metrics"][m]["against_first"].is_null());
        }
    }
    let csv = of(&[&metrics[..], &["--format", "csv"]].concat());
    assert_eq!(csv.lines().count(), 1 + 4 * 2 * 6);
    let clamped = json(&["--uclamp-min", "1024"]);
    assert!(clamped != json(&[]), "a clamp changes it");
    // A run from the phase of a value has that value.
    let phase = experiments[0]["phases_us"][3].to_string();
    let one = prints(&[
        "run",
        "rampup",
        "-p",
        "m1",
        "--policy",
        "linux-6.8",
        "--seconds",
        "1.2",
        "--phase-us",
        &phase,
        "--seed",
        &experiments[0]["seeds"][3].to_string(),
        "--format",
        "json",
    ]);
    let one: Value = serde_json::from_str(&one).expect("JSON");
    assert_eq!(one["runs"][0]["tasks"][0]["debt_ms"], experiments[0]["metrics"][0]["values"][3]);
}

/// Two that differ at the end of a long name are not cut to the same.
#[test]
fn long_policies_stand_above_their_tables() {
    let long = ["10", "20"].map(|n| format!("linux-7.2+dvfs_headroom=update_delay+uclamp_min={n}"));
    let policies = ["--policy", &long[0], "--policy", &long[1], "--metric", "energy"];
    let how = ["compare", "idle", "-p", "m1", "--seconds", "0.1", "--phases", "2"];
    let text = prints(&[&how[..], &policies].concat());
    for (letter, name) in ["A", "B"].iter().zip(&long) {
        assert!(text.contains(&format!("\n{letter}  {name}\n")), "{text}");
        assert!(text.contains(&format!("\n  {letter}  ")), "{text}");
    }
}

/// Files of several runs are put together: what was asked for beside the policy's name is told, as that would tell it.
#[test]
fn the_csv_tells_runs_apart_by_all_that_was_set() {
    let policy = |command: &[&str]| {
        let on = ["--platform", "m1", "--seconds", "1.1", "--format", "csv"];
        let text = prints(&[command, &on].concat());
        let mut rows: Vec<String> = text
            .lines()
            .skip(1)
            .map(|row| row.split(',').nth(2).unwrap_or_default().into())
            .collect();
        rows.dedup();
        rows
    };
    let run = |args: &[&str]| policy(&[&["run", "rampup"], args].concat());
    for (args, wanted) in [
        (&[][..], "linux-7.2"),
        (&["--policy", "mainline+governor=performance"], "linux-7.2+governor=performance"),
        (&["--set", "governor=performance"], "linux-7.2+governor=performance"),
        (&["--vary", "governor=performance"], "linux-7.2+governor=performance"),
        (&["--policy", "mainline+uclamp_min=9", "--uclamp-min", "9"], "linux-7.2+uclamp_min=9"),
        (
            &["--without", "pelt_ramp,margin", "--noise", "off"],
            "linux-7.2+noise=off without margin+pelt_ramp",
        ),
        (&["--phases", "2", "--noise", "off"], "linux-7.2+noise=off"),
    ] {
        assert_eq!(run(args), [wanted], "{args:?}");
    }
    let compare = [
        "compare",
        "rampup",
        "--policy",
        "linux-6.8",
        "--policy",
        "linux-7.2",
        "--phases",
        "1",
        "--noise",
        "off",
    ];
    let both = ["linux-6.8+noise=off", "linux-7.2+noise=off"];
    assert_eq!(policy(&compare), both);
    assert_eq!(policy(&[&compare[..], &["--metric", "energy"]].concat()), both);
    let sweep =
        ["sweep", "rampup", "--metric", "energy", "--phases", "1", "--noise", "off", "--vary"];
    assert_eq!(policy(&[&sweep[..], &["policy=linux-6.8,linux-7.2"]].concat()), both);
}

#[test]
fn compared_workloads_of_one_name_are_told_apart_by_their_paths() {
    let dir = scratch("one-name");
    let text = std::fs::read(repository().join("crates/lab/tests/side_by_side/chain.json"));
    std::fs::create_dir_all(dir.join("a")).expect("a directory");
    for path in ["chain.json", "a/chain.json"] {
        std::fs::write(dir.join(path), text.as_ref().expect("a workload")).expect("written");
    }
    let args = ["compare", "chain.json", "a/chain.json", "-p", "pixel6", "--metric", "energy"];
    let said = risetime_in(&dir, &[&args[..], &["--seconds", "0.1", "--phases", "1"]].concat());
    for row in ["  chain.json ", "  a/chain.json "] {
        assert!(said.out.contains(row), "{row} in {}{}", said.out, said.err);
    }
}

/// Before it runs, and with the name that was likely meant.
#[test]
fn an_unknown_figure_is_told_before_the_run() {
    for (figure, wanted) in [
        ("rampup.p99", "did you mean `rampup.activation_p99`?"),
        ("rampup.activaton_p99", "did you mean `rampup.activation_p99`?"),
        ("enrgy", "did you mean `energy`?"),
        ("ramp.debt", "known: rampup.…"),
        ("rampup.periods", "known: rampup.activation_p50"),
    ] {
        let expect = format!("{figure}<=1");
        let said = risetime(&["run", "rampup", "--platform", "m1", "--expect", &expect]);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{figure}");
        assert!(said.err.contains(wanted), "{}", said.err);
    }
    let args = ["run", "rampup", "--platform", "m1", "--seconds", "1.2", "--expect"];
    assert_eq!(risetime(&[&args[..], &["rampup.wakeup_p99.9<=9s"]].concat()).code, 0);
    let said = risetime(&[&args[..], &["rampup.throttled<=1"]].concat());
    assert!(said.code == 2 && said.err.contains("of deadline tasks"), "{}", said.err);
}

#[test]
fn the_csv_has_one_figure_a_row() {
    let text =
        prints(&ramp(&["--format", "csv", "--policy", "linux-6.8", "--policy", "linux-7.2"]));
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header: Vec<String> =
        reader.headers().expect("a header").iter().map(str::to_string).collect();
    let columns = "platform workload policy backend seed phase_us task figure key value unit";
    assert_eq!(header.join(" "), columns);
    let rows: Vec<csv::StringRecord> =
        reader.records().collect::<Result<_, _>>().expect("rows of equal length");
    for policy in ["linux-6.8", "linux-7.2"] {
        for figure in ["setting", "debt", "reach", "running", "cpu_freq", "energy"] {
            assert!(rows.iter().any(|r| &r[2] == policy && &r[7] == figure), "{policy} {figure}");
        }
    }
}

#[test]
fn what_is_expected_decides_the_exit_code_and_the_results_are_printed_either_way() {
    let dir = scratch("expected");
    std::fs::write(
        dir.join("frames.json"),
        r#"{"tasks": {"ui": {"loop": -1, "run": 3000, "timer": {"ref": "unique", "period": 16667}}}}"#,
    )
    .unwrap();
    let run = |more: &[&str]| {
        let args = ["run", "frames.json", "--platform", "m1", "--seconds", "1"];
        risetime_in(&dir, &[&args[..], more].concat())
    };
    let plain = run(&[]);
    for (expected, code, says) in [
        ("ui.done > 50", 0, ""),
        ("ui.response_p99 <= 1us", 1, "expected ui.response_p99 <= 1us: found "),
        ("ui.wakeup_max < 1s", 0, ""),
        ("ui.overdue = 1", 1, "found 0 (linux-7.2 from phase 0 µs)"),
        ("energy < 1J", 0, ""),
        ("makespan < 5s", 1, "found nothing"),
        ("ui.response_p98 < 1s", 2, "ui.response_p99"),
        ("ux.response_p99 < 1s", 2, "ui.…"),
        ("ui.done < 1s", 2, "the figure is a number, not in ms"),
        ("ui.done", 2, "wanted a figure"),
    ] {
        let said = run(&["--expect", expected]);
        assert_eq!(said.code, code, "{expected}: {}", said.err);
        assert!(said.err.contains(says), "{expected}: {}", said.err);
        // What is no figure is told before anything runs; what it counts only its value says.
        let told_before = code == 2 && expected != "ui.done < 1s";
        let printed = if told_before { "" } else { &plain.out };
        assert_eq!(said.out, printed, "{expected}");
    }
    let both = run(&["--expect", "ui.late = 0", "--expect", "ui.done > 9", "--phases", "3"]);
    assert_eq!(both.code, 0, "{}", both.err);
    // `git bisect run` takes all below 128 but 0 and 125 for "bad".
    let late = ["--expect", "ui.response_p99 <= 1us"];
    for (more, code) in [
        (&["--expect", "ui.late = 0"][..], 0),
        (&late, 1),
        (&["--expect", "ui.done < 1s"], 125),
        (&["--expect", "ui.response_p98 < 1s"], 125),
        (&[&late[..], &["--seconds", "-1"]].concat(), 125),
        (&[&late[..], &["--policy", "linux-9.9"]].concat(), 125),
        (&[&late[..], &["--no-such-option"]].concat(), 125),
        (&[&late[..], &["--kernel", "6.12"]].concat(), 125),
        (&[&late[..], &["--backend", "vm", "--kernel", "no/such/Image"]].concat(), 125),
        (&[&late[..], &["--perfetto", "no/such/trace"]].concat(), 125),
        (&["--help"], 125),
        (&[], 125),
    ] {
        let said = run(&[more, &["--git-bisect"]].concat());
        assert_eq!(said.code, code, "{more:?}: {}", said.err);
    }
}

#[test]
fn two_runs_give_the_same_bytes() {
    let dir = scratch("twice");
    for format in ["text", "json", "csv", "markdown", "html"] {
        for more in [
            &["--seed", "7"][..],
            &["--phases", "3"],
            &["--policy", "linux-6.8", "--policy", "linux-6.12"],
        ] {
            let args = ramp(&[&["--format", format], more].concat());
            assert!(prints(&args) == prints(&args), "{args:?}");
        }
    }
    let trace = |name: &str| {
        assert_eq!(risetime_in(&dir, &ramp(&["--perfetto", name])).code, 0);
        std::fs::read(dir.join(name)).expect("a trace")
    };
    let first = trace("a");
    assert!(first == trace("b") && first.len() > 10_000, "{} bytes", first.len());
    assert_eq!(
        std::fs::read_dir(&dir).expect("the directory").count(),
        2,
        "nothing but the traces"
    );
}

/// Of one run with its lists, and of two policies from several start phases: one document each.
#[test]
fn a_report_is_one_document_as_markdown_and_as_html() {
    let two = ["--policy", "linux-6.8", "--policy", "linux-6.12", "--phases", "2", "--every-phase"];
    for more in [&["--full", "--bursts"][..], &two] {
        let of = |format: &str| prints(&ramp(&[&["--format", format], more].concat()));
        let (html, markdown) = (of("html"), of("markdown"));
        assert!(html.starts_with("<!DOCTYPE html>\n") && html.ends_with("</html>\n"), "{html}");
        assert_eq!(html.matches("<html").count(), 1, "{html}");
        assert!(markdown.starts_with("# rampup"), "{markdown}");
        assert!(!html.contains("<script") && !markdown.contains('\u{1b}'));
    }
    let lists = prints(&ramp(&["--bursts", "--format", "markdown"]));
    assert!(lists.contains("## All bursts under") && lists.contains("full speed after"), "{lists}");
}

#[test]
fn a_trace_replaces_a_file_but_not_a_link_or_a_device() {
    let dir = scratch("replace");
    std::fs::create_dir(dir.join("there")).expect("a directory");
    std::fs::write(dir.join("there/old"), "something else").expect("a file");
    let mode = |name: &str| std::fs::metadata(dir.join(name)).unwrap().permissions().mode() & 0o777;
    let only_mine = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(dir.join("there/old"), only_mine).unwrap();
    std::os::unix::fs::symlink("old", dir.join("there/link")).expect("a link");
    std::os::unix::fs::symlink("there/link", dir.join("links")).expect("a link to it");
    assert_eq!(risetime_in(&dir, &ramp(&["--perfetto", "links"])).code, 0);
    assert!(dir.join("links").is_symlink() && dir.join("there/link").is_symlink());
    assert!(std::fs::read(dir.join("there/old")).expect("the trace").len() > 10_000);
    assert_eq!(mode("there/old"), 0o640, "its mode stays");

    std::os::unix::fs::symlink("there/new", dir.join("dangling")).expect("a link to nothing");
    assert_eq!(risetime_in(&dir, &ramp(&["--perfetto", "dangling"])).code, 0);
    assert!(dir.join("dangling").is_symlink() && dir.join("there/new").is_file());
    let mut in_there: Vec<_> =
        std::fs::read_dir(dir.join("there")).unwrap().map(|e| e.unwrap().file_name()).collect();
    in_there.sort();
    assert_eq!(in_there, ["link", "new", "old"], "nothing is left beside them");
    std::os::unix::fs::symlink("circle", dir.join("circle")).expect("a link to itself");
    let said = risetime_in(&dir, &ramp(&["--perfetto", "circle"]));
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert_eq!(said.err, "risetime: circle: too many levels of symbolic links\n");

    let fifo = dir.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || std::fs::read(fifo).unwrap()
    });
    assert_eq!(risetime_in(&dir, &ramp(&["--perfetto", "fifo"])).code, 0);
    assert_eq!(reader.join().unwrap(), std::fs::read(dir.join("there/new")).unwrap());
    assert!(!fifo.is_file(), "still a pipe");

    // After what is there already, as `>>` asks for, and before what is printed.
    std::fs::write(dir.join("all"), "before\n").unwrap();
    let all = std::fs::File::options().append(true).open(dir.join("all")).unwrap();
    let to_stdout = ramp(&["--perfetto", "/dev/stdout", "--format", "csv"]);
    assert!(command(&dir, &to_stdout).stdout(all).status().unwrap().success());
    let all = std::fs::read(dir.join("all")).unwrap();
    let trace = std::fs::read(dir.join("there/new")).unwrap();
    assert!(all.starts_with(&[b"before\n", &trace[..], b"platform,"].concat()));
    assert_eq!(risetime_in(&dir, &ramp(&["--perfetto", "/dev/null"])).code, 0);
    assert!(!std::path::Path::new("/dev/null").is_file(), "still a device");
}

#[test]
fn a_renamed_platform_gives_the_same_numbers() {
    let dir = scratch("renamed");
    let source = prints(&["show", "--source", "m1"]).replace("name = \"m1\"", "name = \"another\"");
    std::fs::write(dir.join("another.toml"), source).expect("a file");
    for more in [&[][..], &["--phases", "2"], &["--uclamp-min", "512"]] {
        let own = risetime_in(
            &dir,
            &[&["run", "rampup", "--platform", "another.toml", "--format", "json"], more].concat(),
        );
        assert_eq!((own.code, own.err.as_str()), (0, ""));
        assert!(own.out.contains("\"another\""));
        assert_eq!(
            own.out.replace("\"another\"", "\"m1\""),
            prints(&ramp(&[&["--format", "json"], more].concat()))
        );
    }
}

#[test]
fn policy_and_set_say_the_same_thing() {
    let figures = |args: &[&str]| {
        let mut all = json(args);
        all["runs"][0]["policy"] = Value::Null;
        all
    };
    let in_policy = figures(&ramp(&["--format", "json", "--policy", "linux-6.8+rate_limit_us=70"]));
    let by_set =
        figures(&ramp(&["--format", "json", "--policy", "linux-6.8", "--set", "rate_limit_us=70"]));
    assert_eq!(in_policy, by_set);
    let without = figures(&ramp(&["--format", "json", "--policy", "linux-6.8"]));
    assert_ne!(in_policy, without);
    assert_eq!(
        figures(&ramp(&["--format", "json"])),
        figures(&ramp(&["--format", "json", "--policy", "mainline"]))
    );
}

#[test]
fn a_study_gives_the_promised_json_and_a_picture() {
    let dir = scratch("study");
    let plot = dir.join("x1.svg");
    let plot = plot.to_str().expect("UTF-8");
    let args = ["reproduce", "--figure", "x1", "--phases", "4", "--format", "json"];
    let said = crate::risetime(&[&args[..], &["--plot", plot]].concat());
    assert!(said.code <= 1 && said.err.is_empty(), "{said:?}");
    let all: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!((all["schema"].as_u64(), all["study"].as_str()), (Some(2), Some("rfc-2024")));
    let rows = all["rows"].as_array().expect("rows");
    assert!(rows.len() > 40, "{}", rows.len());
    for key in ["id", "published", "measured", "unit", "tolerance", "holds", "note"] {
        assert!(rows.iter().all(|r| r.get(key).is_some()), "a row without {key}");
    }
    assert!(rows.iter().any(|r| r["holds"].is_null()) && rows.iter().any(|r| r["holds"] == true));
    let documented =
        std::fs::read_to_string(repository().join("docs/json.md")).expect("docs/json.md");
    let mut found = BTreeSet::new();
    keys(&all, &mut found);
    let missing: Vec<_> =
        found.iter().filter(|k| !documented.contains(&format!("`{k}`"))).collect();
    assert_eq!(missing, [""; 0], "not in docs/json.md");
    let picture = std::fs::read_to_string(plot).expect("the picture");
    assert!(picture.contains("x1 · util_avg") && picture.contains("published list"));
}

#[test]
fn a_study_says_no_with_its_exit_code_and_faults_with_their_place() {
    let dir = scratch("study-faults");
    let file = |name: &str, published: &str| {
        let text = format!(
            "schema = 1\nname = \"mine\"\nsource = \"me\"\n[[figure]]\nid = \"f\"\nplace = \"p\"\n\
             [[figure.list]]\nquantity = \"threshold\"\nrows = [[160, {published}]]\n"
        );
        std::fs::write(dir.join(name), text).expect("written");
    };
    file("right.toml", "26");
    file("wrong.toml", "27");
    file("broken.toml", "");
    let run = |args: &[&str]| crate::risetime_in(&dir, &[&["reproduce"], args].concat());
    assert_eq!(run(&["right.toml"]).code, 0);
    let wrong = run(&["wrong.toml"]);
    assert_eq!(wrong.code, 1);
    assert!(wrong.out.contains("f/threshold/160: 27 published, 26.0 measured"), "{}", wrong.out);
    assert!(wrong.out.contains("Not argued: 1.") && wrong.out.contains("\n  Not argued.\n"));
    // A miss that is argued is none, but for --strict; an argument for what holds is said to be stale.
    let argued = |name: &str, published: u64| {
        let row = format!("{{ at = 160, published = {published}, note = \"a typing error\" }}");
        let text = std::fs::read_to_string(dir.join("right.toml")).expect("written");
        std::fs::write(dir.join(name), text.replace("[160, 26]", &row)).expect("written");
    };
    argued("argued.toml", 27);
    argued("stale.toml", 26);
    let said = run(&["argued.toml"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    assert!(said.out.contains("0 of 1 hold (0.0 %). What misses is argued."), "{}", said.out);
    assert_eq!(run(&["argued.toml", "--strict"]).code, 1);
    let said = run(&["stale.toml", "--strict"]);
    assert_eq!(said.code, 0);
    assert_eq!(said.err, "risetime: f/threshold/160: holds, though mine says why it misses\n");
    for (args, words) in [
        (&["broken.toml"][..], "broken.toml:9:"),
        (&["nope"], "no built-in study and no file of this name"),
        (&["right.toml", "--figure", "g"], "\"g\" is no figure of mine"),
        (&["right.toml", "--plot", "a.gif"], "wanted a name that ends in .svg or .png"),
        (&["right.toml", "--plot", "no/where.svg"], "there is no directory no"),
    ] {
        let said = run(args);
        assert_eq!(said.code, 2, "{args:?}");
        assert!(said.err.contains(words) && said.out.is_empty(), "{args:?}: {}", said.err);
    }
    assert_eq!(crate::risetime_in(&dir, &["check", "right.toml"]).out, "right.toml: study, ok\n");
}

/// Where a metric is a job's, options are compared by what all CPUs take for one: more of them may be done.
#[test]
fn energy_is_compared_by_jobs_done() {
    let advice = json(&[&ADVICE[..3], &["pixel6"], &ADVICE[4..], &["--format", "json"]].concat());
    let of = |key: &str| advice["now"][key]["median"].as_f64().expect(key);
    let done = of("mj") / of("mj_all_per_job");
    assert!((25.0..45.0).contains(&done), "some 36 frames in 0.6 s: {done}");
    assert!(of("mj_per_job") < of("mj_all_per_job"), "its own CPUs take less than all");
    let page = prints(&[&ADVICE[..3], &["pixel6"], &ADVICE[4..]].concat());
    assert!(page.contains("mJ/job") && page.contains("energy per frame "), "{page}");
    assert!(page.contains("\nframe.response_p99 ms of periodic on pixel6\n"), "{page}");
}
