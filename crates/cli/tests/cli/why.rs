//! `explain` and `compare` from outside.

use crate::{prints, risetime, risetime_in, scratch};
use serde_json::Value;

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&prints(args)).expect("JSON")
}

const EXPLAIN: [&str; 6] = ["explain", "rampup", "--platform", "m1", "--policy", "linux-6.8"];
const COMPARE: [&str; 6] = ["compare", "rampup", "--platform", "m1", "--phases", "2"];

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

#[test]
fn shares_add_up_and_a_fresh_run_confirms_what_a_cause_saves() {
    let e = &json(&[&EXPLAIN[..], &["--format", "json"]].concat())["explanations"][0];
    let causes = e["causes"].as_array().expect("a list");
    let sum: f64 = causes.iter().map(|c| number(&c["share_ms"])).sum();
    let debt = number(&e["debt_ms"]);
    assert!((sum + number(&e["unexplained_ms"]) - debt).abs() < 0.01 * debt, "{sum} of {debt}");
    let fresh = |more: &[&str]| {
        let run =
            ["run", "rampup", "--platform", "m1", "--policy", "linux-6.8", "--format", "json"];
        let all = json(&[&run[..], more].concat());
        let run = &all["runs"][0];
        let noted = run["notes"].to_string().contains("no real system");
        assert_eq!(noted, more.contains(&"--without"), "{}", run["notes"]);
        (number(&run["tasks"][0]["debt_ms"]), run["settings"]["without"].clone())
    };
    assert_eq!(fresh(&[]), (debt, Value::Null));
    for cause in causes {
        let name = cause["cause"].as_str().expect("a name");
        let (without, said) = fresh(&["--without", name]);
        assert_eq!(said, name);
        assert!((debt - without - number(&cause["gain_ms"])).abs() < 0.002, "{name}: {without}");
    }
    let limit = causes.iter().find(|c| c["cause"] == "rate_limit").expect("it acts");
    let limit = number(&limit["gain_ms"]);
    assert!((debt - fresh(&["--set", "rate_limit_us=0"]).0 - limit).abs() < 0.002 && limit > 1.0);
    let all: Vec<&str> = causes.iter().map(|c| c["cause"].as_str().unwrap()).collect();
    assert!(fresh(&["--without", &all.join(",")]).0 < 0.1);
}

#[test]
fn again_it_is_the_same_in_every_byte() {
    for format in ["text", "json"] {
        let more = ["--format", format];
        for args in [
            [&EXPLAIN[..], &["--phases", "2"], &more].concat(),
            [&COMPARE[..], &["--ablate", "rfc-v1", "--seconds", "1.2"], &more].concat(),
        ] {
            assert!(prints(&args) == prints(&args), "{args:?}");
        }
    }
}

const PHONE: [&str; 8] =
    ["compare", "phone", "-p", "pixel6", "--policy", "linux-6.6", "--policy", "linux-7.2"];

/// What it prints for a mailing list is narrow, plain, and says how to repeat it.
#[test]
fn a_comparison_goes_by_mail() {
    let long = [
        "--policy",
        "linux-7.2+dvfs_headroom=10%+fits_capacity=70%+rate_limit_us=500+uclamp_min=128",
    ];
    let more = ["--seconds", "0.2", "--phases", "6", "--seed", "9", "--format", "mail"];
    let said = risetime(&[&PHONE[..], &long, &more].concat());
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(said.out.is_ascii() && said.out.lines().all(|line| line.len() <= 72), "{}", said.out);
    for words in ["all activations of ui", "6 start phases", "seed 9", "  linux-6.6", "energy (mJ)"]
    {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    // A shell reads the last lines as one command, which gives the same.
    let command = said.out.split("risetime compare").last().expect("a command").to_string();
    let words = command.replace("\\\n", "");
    let words: Vec<&str> = words.split_whitespace().map(|w| w.trim_matches('\'')).collect();
    let again = risetime(&[&["compare"], &words[..], &["--format", "mail"]].concat());
    assert_eq!(again.out, said.out);
}

/// Exchanging the policies changes the sign of what is said, and nothing else; no policy is better
/// than itself.
#[test]
fn exchanged_policies_differ_by_the_opposite() {
    let of = |policies: [&str; 2]| {
        let [a, b] = policies;
        let args = ["compare", "audio", "-p", "pixel6", "--policy", a, "--policy", b];
        let more = ["--seconds", "0.5", "--phases", "8", "--format", "json"];
        let said = risetime(&[&args[..], &more].concat());
        let all: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
        let figures = all["experiments"][1]["metrics"].as_array().expect("a list").clone();
        figures.into_iter().map(move |m| {
            let d = &m["against_first"];
            let number = |key: &str| d[key].as_f64().expect("a number");
            ([number("median"), number("low"), number("high")], d["sure"] == true)
        })
    };
    let (there, back) = (of(["linux-6.6", "linux-7.2"]), of(["linux-7.2", "linux-6.6"]));
    for (([a, low, high], sure), (turned, too)) in there.zip(back) {
        assert_eq!((turned, too), ([-a, -high, -low], sure));
    }
    for same in ["linux-7.2", "mainline", "linux-7.2+sched_energy_aware=1"] {
        assert!(of(["linux-7.2", same]).all(|found| found == ([0.0; 3], false)), "{same}");
    }
}

#[test]
fn a_comparison_and_its_picture() {
    let dir = scratch("compare");
    let more =
        ["--policy", "linux-6.11", "--policy", "rfc-v1", "--plot", "p.svg", "--seconds", "1.5"];
    let said = risetime_in(&dir, &[&COMPARE[..], &more].concat());
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    for words in [
        "start util 0, 50, 100, 200",
        "  linux-6.11 ",
        "  rfc-v1 ",
        "vs first",
        "the burst of rampup from rest",
    ] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    let picture = std::fs::read_to_string(dir.join("p.svg")).expect("a picture");
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
}

/// A name without its number is the first instance's, which is said; a name that is not there, not at length.
#[test]
fn one_of_many_instances_and_jobs_are_found_by_name() {
    let dir = scratch("instances");
    let tasks = r#""server": { "instance": 30, "loop": -1, "run": 500, "sleep": 9500 },
        "ui": { "job": { "name": "frame", "deadline": 9000 }, "loop": -1, "run": 2000,
                "timer": { "ref": "unique", "period": 10000 } }"#;
    std::fs::write(dir.join("w.json"), format!("{{ \"tasks\": {{ {tasks} }} }}")).expect("written");
    let why = |more: &[&str]| {
        let of = ["explain", "w.json", "--platform", "rpi4", "--seconds", "0.1", "--task"];
        risetime_in(&dir, &[&of[..], more].concat())
    };
    let said = why(&["server", "--over", "all"]);
    assert_eq!(said.code, 0, "{}", said.err);
    for words in
        ["activations of server-0 take", "the first of the 30 instances of server", "alone:"]
    {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    assert!(!why(&["server-3"]).out.contains("instances"));
    for (more, words) in [
        (&["serv"][..], "there is no task `serv`, the workload has server-0 to server-29, ui\n"),
        (&["frame"], "hint: frame is a job: add --over all"),
        (&["fram", "--over", "all"], "no task or job `fram`"),
        (&["fram", "--over", "all"], "ui, frame"),
    ] {
        let said = why(more);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{more:?}");
        assert!(said.err.contains(words), "{more:?}: {}", said.err);
    }
}

#[test]
fn what_cannot_be_explained_or_compared_is_said_so() {
    for (args, code, words) in [
        (&["explain", "rampup", "--platform", "m1", "--task", "x"][..], 2, "there is no task `x`"),
        (&["explain", "rampup", "--platform", "m2"], 2, "m2"),
        (&["run", "rampup", "--platform", "m1", "--without", "luck"], 2, "wanted one of pelt_ramp"),
        (&["compare", "rampup", "--platform", "m1"], 2, "--policy"),
        (&["compare", "rampup", "--platform", "m1", "--policy", "rfc-v1"], 2, "at least two"),
        (&["compare", "rampup", "--platform", "m1", "--ablate", "linux-6.8"], 2, "sets nothing"),
        (&["compare", "rampup", "--platform", "m1", "--ablate", "rfc-v9"], 2, "rfc-v1"),
        (
            &[
                "compare",
                "rampup",
                "--platform",
                "m1",
                "--ablate",
                "rfc-v1",
                "--start-utils",
                "9,2000",
            ],
            2,
            "wanted utils from 0 to 1024",
        ),
        (
            &[&PHONE[..], &["--start-utils", "0,100"]].concat(),
            2,
            "`ui` of phone has no burst from rest",
        ),
        (&[&PHONE[..], &["--task", "fun"]].concat(), 2, "no figure `fun.activation_p99`"),
    ] {
        let said = risetime(args);
        assert_eq!((said.code, said.out.as_str()), (code, ""), "{args:?}: {}", said.err);
        assert!(said.err.contains(words), "{args:?}: {}", said.err);
    }
}
