//! Runs as documents: what is read back is what was written, and reports made of it are the run's own, byte by byte.

use risetime_analysis::{Options, Timeline};
use risetime_lab::{
    Contents, Filed, Found, Listing, Request, Saved, Shown, Swept, axis, read_saved, run,
    run_beside, run_phases, series_of, sweep_of,
};
use risetime_model::settings::Value;
use risetime_model::{Experiment, library, sha256};
use risetime_report::text::{self, Style, View};
use risetime_report::{Told, csv, json};
use risetime_sim::Simulator;
use serde_json::Value as Json;

/// Platforms of several kinds; a workload that needs more CPUs than one has is run on the next.
const PLATFORMS: [&str; 4] = ["pixel6", "m1", "server64", "laptop4"];

fn request(workload: &str, platform: &str) -> Request {
    Request {
        seconds: Some(0.25),
        noise: Some("machine"),
        set: vec![("rate_limit_us".into(), Value::Int(500))],
        ..Request::new(workload, platform)
    }
}

fn saved(e: &Experiment) -> Saved {
    let options = Options { timeline: true, ..Options::default() };
    let run = run(&Simulator, e, options, None).expect("it runs");
    let shown = Shown {
        task: Some("x".into()),
        why: vec!["risetime explain".into(), "--task x".into()],
        set: vec![("rate_limit_us".into(), Value::Int(500))],
        series: None,
    };
    Saved::of(e, run, shown)
}

/// All that is made of a run: the first screen, the whole page, JSON, CSV.
fn reports(run: &Saved) -> [String; 4] {
    let style = Style { width: 100, color: false, unicode: true };
    let about = run.experiment.as_ref().map_or("", |e| e.workload.about.as_str());
    let curves = run.timeline.as_ref();
    let page = |full| {
        let view = View { about, task: run.shown.task.as_deref(), full, why: &run.shown.why };
        text::run(&run.result, curves.unwrap_or(&Timeline::default()), &view, &style).into()
    };
    let told = || [Told { run: &run.result, listed: None }];
    let (mut data, mut rows) = (Vec::new(), Vec::new());
    json::runs(&mut data, &mut told()).expect("to memory");
    csv::runs(&mut rows, &mut told(), &run.shown.set).expect("to memory");
    let utf8 = |bytes| String::from_utf8(bytes).expect("text");
    [page(false), page(true), utf8(data), utf8(rows)]
}

/// Every built-in workload on two platforms.
#[test]
fn reports_of_a_run_that_was_read_back_are_its_own() {
    for workload in library::workloads() {
        let fitting = PLATFORMS.iter().filter_map(|platform| {
            let all = request(workload.name, platform).experiments();
            all.ok().map(|mut all| all.remove(0))
        });
        let fitting: Vec<Experiment> = fitting.take(2).collect();
        assert_eq!(fitting.len(), 2, "{} fits two platforms", workload.name);
        for e in fitting {
            let run = saved(&e);
            let text = run.to_json().expect("a text of it");
            assert!(!text.contains('\n'), "one line");
            let back = Saved::from_json(&text, "x").expect("it reads back");
            let of = format!("{} on {}", workload.name, e.platform.name);
            assert_eq!(back.result, run.result, "{of}");
            assert_eq!((&back.timeline, &back.shown), (&run.timeline, &run.shown), "{of}");
            assert!(reports(&back) == reports(&run), "{of}");
            assert_eq!(back.to_json().expect("likewise"), text, "{of}");
            let again = back.experiment.as_ref().expect("inline");
            assert_eq!(again.hash(), e.hash(), "{of}");
        }
    }
}

#[test]
fn the_same_experiment_has_the_same_hashes_elsewhere_and_another_has_others() {
    let e = request("rampup", "m1").experiments().expect("built in").remove(0);
    let (here, there) = (saved(&e), saved(&e));
    assert_eq!(here.hash(), there.hash());
    let other =
        saved(&Experiment { phase: e.phase + risetime_kernel::units::Span(1), ..e.clone() });
    assert_ne!(other.hash(), here.hash());
}

#[test]
fn a_document_that_was_changed_is_refused() {
    let e = request("rampup", "m1").experiments().expect("built in").remove(0);
    let text = saved(&e).to_json().expect("a text of it");
    let error = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        Saved::from_json(&text.replacen(from, to, 1), "r.json").unwrap_err().to_string()
    };
    for (from, to, wanted) in [
        ("\"risetime\":\"result\"", "\"risetime\":\"experiment\"", "r.json: is no result"),
        ("\"schema\":2", "\"schema\":1", "r.json: schema: found 1, wanted 2"),
        ("\"bursts\":", "\"bursts\":1", "r.json: result: is not the one of result_sha256"),
        ("\"seed\":1", "\"seed\":2", "r.json: experiment: is not the one of experiment_sha256"),
        (
            "\"shown\":{\"task\":\"x\"",
            "\"shown\":{\"task\":\"y\"",
            "r.json: is not the one of its sha256",
        ),
        ("\"of\":\"run\"", "\"of\":\"sweep\"", "r.json: is the result of `sweep`"),
        ("\"version\":\"", "\"version\":\"9", "r.json: is not the one of its sha256"),
        ("{", "", "r.json: is no JSON"),
    ] {
        let found = error(from, to);
        assert!(found.starts_with(wanted), "{found:?}, wanted {wanted:?}");
    }
}

#[test]
fn a_series_reads_back_with_its_medians() {
    let e = request("rampup", "m1").experiments().expect("built in").remove(0);
    let runs = run_phases(&Simulator, &e, 3, &Options::default(), |_| ()).expect("it runs");
    let all = Saved::series(&e, &runs.runs, &Shown::default(), 0);
    let lines = all.iter().map(|run| run.to_json().expect("a text of it") + "\n");
    let back = read_saved(&lines.collect::<String>(), "x").expect("it reads back");
    let Contents::Runs(back) = back else { panic!("these are runs") };
    let series = series_of(&back);
    assert_eq!((series.len(), &series[0].runs), (1, &runs.runs));
    assert_eq!(series[0].summary, runs.summary);
    // Each holds the experiment that gave it.
    let last = back.last().expect("three");
    let again =
        run(&Simulator, last.experiment.as_ref().expect("inline"), Options::default(), None);
    assert_eq!(again.expect("it runs").result, last.result);
}

/// Whoever makes documents can make wrong ones, with hashes that fit: they are refused, or reported as they are.
#[test]
fn no_number_in_a_document_stops_a_report() {
    let e = request("phone", "pixel6").experiments().expect("built in").remove(0);
    let text = saved(&e).to_json().expect("a text of it");
    let mut document: Json = serde_json::from_str(&text).expect("JSON");
    document["experiment"] = Json::Null;
    let mut paths = Vec::new();
    leaves(&document["result"], String::new(), &mut paths);
    leaves(&document["timeline"], String::new(), &mut paths);
    let (mut shown, mut refused) = (0, 0);
    let step = (paths.len() / 60).max(1);
    for (n, path) in paths.iter().step_by(step).enumerate() {
        let wrong = [Json::Null, 0.into(), 1e300.into(), (-1).into(), 4_000_000_000u64.into()];
        let mut other = document.clone();
        for part in ["result", "timeline"] {
            if let Some(leaf) = other[part].pointer_mut(path) {
                *leaf = wrong[n % wrong.len()].clone();
            }
        }
        seal(&mut other);
        match Saved::from_value(&other, "x") {
            Ok(run) => shown += reports(&run).len(),
            Err(_) => refused += 1,
        }
    }
    assert!(shown > 100 && refused > 0, "{shown} {refused}");
}

/// Makes the hashes of a document fit again.
fn seal(document: &mut Json) {
    document["result_sha256"] = sha256(&document["result"].to_string()).into();
    let all = document.as_object().expect("an object").iter();
    let parts = all.filter(|(key, _)| *key != "sha256");
    let parts = parts.map(|(key, value)| format!("\"{key}\":{value}\n"));
    document["sha256"] = sha256(&parts.collect::<String>()).into();
}

/// Whatever is listed comes back, in its order.
#[test]
fn lists_of_a_run_are_kept_with_it() {
    let e = request("phone", "pixel6").experiments().expect("built in").remove(0);
    let mut lists = Listing::default();
    let options = Options::default();
    let run = run_beside(&Simulator, &e, options, Some(&mut lists), None).expect("it runs");
    assert!(lists.0.len() > 20, "{}", lists.0.len());
    let run = Saved { lists: Some(lists), ..Saved::of(&e, run, Shown::default()) };
    let text = run.to_json().expect("a text of it");
    let back = Saved::from_json(&text, "x").expect("it reads back");
    assert_eq!(back.lists, run.lists);
    let mut again = Listing::default();
    back.lists.expect("kept").replay(&mut again);
    assert_eq!(Some(again), run.lists);
}

/// Experiments of a sweep share their texts, and come back as they were.
#[test]
fn what_another_command_found_reads_back_with_its_experiments() {
    let request = Request { seconds: Some(0.25), ..Request::new("rampup", "m1") };
    let axes =
        [axis("rate_limit_us=500,1000").expect("it is one"), axis("hz=250,1000").expect("too")];
    let metrics = [risetime_analysis::metric::Metric::new("rampup.debt")];
    let (sweep, experiments) =
        sweep_of(&Simulator, &request, &axes, 2, &metrics, |_| ()).expect("it runs");
    let found = Found::Swept(Swept { sweep, set: vec![("x".into(), Value::Int(-1))] });
    let filed = Filed { experiments, found };
    let text = filed.to_json().expect("a text of it");
    let document: Json = serde_json::from_str(&text).expect("JSON");
    // Two platforms (hz), one workload.
    let texts = document["texts"].as_array().expect("a list").len();
    assert_eq!((document["experiments"].as_array().map(Vec::len), texts), (Some(4), 3));
    let back = Filed::from_json(&text, "x").expect("it reads back");
    assert_eq!(back.found, filed.found);
    let hashes =
        |all: &[Experiment]| all.iter().map(|e| e.hash().expect("a text")).collect::<Vec<_>>();
    assert_eq!(hashes(&back.experiments), hashes(&filed.experiments));
    assert_eq!(back.to_json().expect("likewise"), text);

    let error =
        |other: &Json| Filed::from_json(&other.to_string(), "s.json").unwrap_err().to_string();
    let mut other = document.clone();
    other["texts"][0] = "schema = 1".into();
    assert!(error(&other).starts_with("s.json: is not the one of its sha256"), "{}", error(&other));
    // Whoever puts another workload under a result gives it hashes that do not fit it.
    seal(&mut other);
    assert!(error(&other).starts_with("s.json: experiments[0]: wanted the one of its hash"));
    // Another version that knows more says who has to show it.
    let mut newer = document.clone();
    newer["version"] = "9.1.0".into();
    newer["of"] = "forecast".into();
    seal(&mut newer);
    let said = error(&newer);
    assert!(
        said.contains("a kind that this version knows") && said.contains("Risetime 9.1.0 wrote it"),
        "{said}"
    );
    let mut foreign = document;
    foreign["schema"] = 3.into();
    assert!(
        error(&foreign).starts_with("s.json: schema: found 3, wanted 2"),
        "{}",
        error(&foreign)
    );
}

/// Lists the paths of all numbers.
fn leaves(value: &Json, path: String, out: &mut Vec<String>) {
    match value {
        Json::Array(all) => {
            all.iter().enumerate().for_each(|(n, v)| leaves(v, format!("{path}/{n}"), out));
        }
        Json::Object(all) => {
            all.iter().for_each(|(key, v)| leaves(v, format!("{path}/{key}"), out));
        }
        Json::Number(_) => out.push(path),
        _ => {}
    }
}
