//! What the numbers on standard output are: complete, documented, repeatable, and without
//! knowledge of names.

use crate::{prints, ramp, repository, risetime, risetime_in, scratch};
use serde_json::Value;
use std::collections::BTreeSet;

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&prints(args)).expect("JSON")
}

/// All keys of all records in `value`; what `settings` holds are names of its own.
fn keys(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Array(list) => list.iter().for_each(|v| keys(v, into)),
        Value::Object(record) => {
            for (key, v) in record {
                into.insert(key.clone());
                if key != "settings" {
                    keys(v, into);
                }
            }
        }
        _ => {}
    }
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
    let runs = json(&[&words[..], &["--phases", "6", "--format", "json"]].concat());
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
        ("ui.overdue = 1", 1, "found 0.000 (linux-7.2 from phase 0 µs)"),
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
        let printed = if expected == "ui.done" { "" } else { &plain.out };
        assert_eq!(said.out, printed, "{expected}");
    }
    let both = run(&["--expect", "ui.late = 0", "--expect", "ui.done > 9", "--phases", "3"]);
    assert_eq!(both.code, 0, "{}", both.err);
}

#[test]
fn two_runs_give_the_same_bytes() {
    let dir = scratch("twice");
    for format in ["text", "json", "csv"] {
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

#[test]
fn a_trace_replaces_a_file_but_not_a_link_or_a_device() {
    let dir = scratch("replace");
    std::fs::write(dir.join("old"), "something else").expect("a file");
    std::os::unix::fs::symlink("old", dir.join("link")).expect("a link");
    assert_eq!(risetime_in(&dir, &ramp(&["--perfetto", "link"])).code, 0);
    assert!(dir.join("link").is_symlink());
    assert!(std::fs::read(dir.join("old")).expect("the trace").len() > 10_000);
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
    assert!(picture.contains("x1 · util_avg") && picture.contains("<polyline"));
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
    for (args, words) in [
        (&["broken.toml"][..], "broken.toml:9:"),
        (&["nope"], "no built-in study and no file of this name"),
        (&["right.toml", "--figure", "g"], "\"g\" is no figure of mine"),
        (&["right.toml", "--plot", "a.png"], "a.png: the picture is an SVG"),
        (&["right.toml", "--plot", "no/where.svg"], "there is no directory no"),
    ] {
        let said = run(args);
        assert_eq!(said.code, 2, "{args:?}");
        assert!(said.err.contains(words) && said.out.is_empty(), "{args:?}: {}", said.err);
    }
    assert_eq!(crate::risetime_in(&dir, &["check", "right.toml"]).out, "right.toml: study, ok\n");
}
