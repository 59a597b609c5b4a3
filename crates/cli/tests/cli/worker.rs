//! Experiments sent as documents to another process, and their figures back.

use crate::{prints, repository, risetime_in, scratch};
use risetime_analysis::metric::Metric;
use risetime_lab::executor::{Executor, Threads, Workers};
use risetime_lab::{Grid, Request, measure_from, measure_on};
use risetime_model::Experiment;
use risetime_sim::Simulator;
use std::process::Command;

fn experiments() -> Vec<Experiment> {
    let of = |workload: &str, platform: &str, policy: &str| Request {
        seconds: Some(0.4),
        policies: vec![policy.into()],
        noise: Some("machine"),
        ..Request::new(workload, platform)
    };
    let requests = [
        of("rampup", "m1", "linux-6.6"),
        of("rampup", "m1", "linux-7.2+rate_limit_us=500"),
        of("rampup", "hikey960", "rfc-v1"),
    ];
    requests.iter().flat_map(|r| r.experiments().expect("built in")).collect()
}

/// The worker is another process: nothing of this one's memory can help it.
#[test]
fn other_processes_measure_the_same() {
    let workers = Workers::start(|| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_risetime"));
        command.arg("worker");
        command
    });
    let workers = workers.expect("they start");
    let metrics = ["rampup.debt", "energy", "rampup.activation_p99", "migrations"].map(Metric::new);
    let grid = Grid { phases: 3, start_utils: vec![0, 700] };
    let here = measure_from(&Simulator, &experiments(), &grid, &metrics, |_| ()).unwrap();
    let mut done = 0;
    let there = measure_on(&workers, &experiments(), &grid, &metrics, |n| done = n).unwrap();
    assert_eq!((format!("{there:?}"), done), (format!("{here:?}"), 3 * 3 * 2));

    // The first fault in the order of the experiments, whoever met it.
    let wrong = [Metric::new("energy"), Metric::new("rampap.debt")];
    let [here, there]: [&dyn Executor; 2] = [&Threads(&Simulator), &workers];
    let fault =
        |e: &dyn Executor| measure_on(e, &experiments(), &grid, &wrong, |_| ()).unwrap_err();
    assert_eq!(fault(here), fault(there));
}

#[test]
fn what_is_printed_as_a_document_is_what_would_run() {
    let printed = prints(&[
        "run",
        "rampup",
        "--platform",
        "m1",
        "--policy",
        "linux-6.6",
        "--policy",
        "linux-7.2",
        "--vary",
        "rampup.phases.busy.run=3000",
        "--seconds",
        "0.5",
        "--seed",
        "7",
        "--document",
    ]);
    let read: Vec<Experiment> = printed
        .lines()
        .map(|line| Experiment::from_json(line, "printed").expect("a document"))
        .collect();
    assert_eq!(read.len(), 2);
    for e in &read {
        assert_eq!((e.seed, e.duration.0), (7, 500_000_000));
        assert!(e.workload.source.text().is_some_and(|text| text.contains("3000")));
    }
    assert_eq!(read[0].policy.kernel.to_string(), "6.6");
    assert_ne!(read[0].hash(), read[1].hash());
}

#[test]
fn each_code_of_a_fault_is_in_the_documents_table_with_its_status() {
    let page = std::fs::read_to_string(repository().join("docs/documents.md")).expect("the page");
    for code in risetime_model::Code::ALL {
        let row = format!("| `{}` | {} |", code.as_str(), code.exit());
        assert!(page.contains(&row), "{row}");
    }
}

/// Whatever the run itself prints can be had later, from the file alone.
#[test]
fn a_report_of_saved_results_is_what_the_run_printed() {
    let dir = scratch("saved");
    let of = |more: &[&str]| {
        let run =
            ["run", "rampup", "--platform", "m1", "--seconds", "0.5", "--set", "rate_limit_us=900"];
        let mut args: Vec<String> = run.iter().chain(more).map(|s| s.to_string()).collect();
        args.extend(["--save-result".into(), "r.json".into()]);
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        let said = risetime_in(&dir, &words);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{more:?}");
        said.out
    };
    let report = |more: &[&str]| {
        let said = risetime_in(&dir, &[&["report", "r.json"], more].concat());
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{more:?}");
        said.out
    };
    for runs in [&[][..], &["--task", "rampup"], &["--policy", "linux-6.8"], &["--phases", "2"]] {
        for format in [
            &[][..],
            &["--full"],
            &["--format", "json"],
            &["--format", "csv"],
            &["--format", "markdown"],
            &["--full", "--format", "html"],
        ] {
            let direct = of(&[runs, format].concat());
            assert_eq!(report(format), direct, "{runs:?} {format:?}");
        }
    }
    for lists in [&["--bursts"][..], &["--full"], &["--bursts", "--full"]] {
        for format in [&[][..], &["--format", "json"], &["--format", "csv"]] {
            let words = [lists, format].concat();
            assert_eq!(of(&words), report(&words), "{words:?}");
        }
    }
    of(&[]);
    let said = risetime_in(&dir, &["report", "r.json", "--bursts"]);
    assert!(said.code == 2 && said.err.contains("r.json has no list of bursts"), "{}", said.err);
    let said = risetime_in(&dir, &["report", "r.json", "--format", "mail"]);
    assert!(
        said.code == 2 && said.err.contains("the result of `run` has no `mail`"),
        "{}",
        said.err
    );
    let both = of(&["--policy", "linux-6.8", "--policy", "linux-6.12"]);
    assert_eq!(report(&[]), both);
    let phases =
        ["--policy", "linux-6.8", "--policy", "linux-6.12", "--phases", "2", "--format", "json"];
    assert_eq!(of(&phases), report(&["--format", "json"]));

    let said = risetime_in(&dir, &["report", "no.json"]);
    assert_eq!((said.code, said.err.as_str()), (2, "risetime: no.json: no such file\n"));
    std::fs::write(dir.join("other.txt"), "cpu0 12 34\n").expect("a file");
    let said = risetime_in(&dir, &["report", "other.txt"]);
    assert!(
        said.code == 2
            && said.err.contains("other.txt: is no trace that is known, and holds no results"),
        "{}",
        said.err
    );
    let saved = std::fs::read_to_string(dir.join("r.json")).expect("saved");
    std::fs::write(dir.join("r.json"), saved.replacen("\"bursts\":", "\"bursts\":9", 1))
        .expect("a file");
    let said = risetime_in(&dir, &["report", "r.json"]);
    assert!(
        said.code == 2 && said.err.contains("r.json:1: result: is not the one"),
        "{}",
        said.err
    );
}

/// Whatever a command that runs more than one experiment prints can be had later, from its file
/// alone, in every format.
#[test]
fn a_report_of_what_a_command_found_is_what_it_printed() {
    const TEXT_JSON: &[&str] = &["text", "json"];
    const ALL: &[&str] = &["text", "json", "csv"];
    let dir = scratch("found");
    let on = ["--platform", "m1", "--seconds", "0.5"];
    let two = [
        "--policy",
        "linux-6.8",
        "--policy",
        "linux-7.2",
        "--phases",
        "2",
        "--set",
        "rate_limit_us=900",
    ];
    let of = |command: &'static str, more: &[&'static str]| {
        let workload = ["rampup"];
        [&[command], &workload[..], &on, more].concat()
    };
    let advise = [
        "advise",
        "periodic",
        "--platform",
        "rpi4",
        "--seconds",
        "0.3",
        "--budget",
        "60",
        "--phases=6",
    ];
    let study = ["reproduce", "--figure", "x1", "--phases", "1"];
    let cases: Vec<(Vec<&str>, &[&str])> = vec![
        (of("compare", &two), &["text", "json", "csv", "mail"]),
        (of("compare", &["--ablate", "rfc-v1", "--phases", "2"]), &["text", "json", "csv", "mail"]),
        (
            of(
                "sweep",
                &["--vary", "rate_limit_us=500,1000", "--vary", "policy=linux-6.8,linux-7.2"],
            ),
            ALL,
        ),
        (of("explain", &["--phases", "2", "--budget", "20"]), TEXT_JSON),
        (of("explain", &["--over", "worst", "--budget", "20"]), TEXT_JSON),
        (of("history", &["--simulated", "--phases", "2"]), TEXT_JSON),
        (of("history", &["--simulated", "--phases", "2", "--bisect", "lost_ms"]), TEXT_JSON),
        (advise.to_vec(), TEXT_JSON),
        ([&advise[..], &["--goal", "frame.missed = 0"]].concat(), TEXT_JSON),
        (study.to_vec(), TEXT_JSON),
    ];
    for (n, (args, formats)) in cases.iter().enumerate() {
        let file = format!("{n}.json");
        let mut saved = None;
        for format in *formats {
            let format = ["--format", format];
            let save = ["--save-result", &file];
            let direct = risetime_in(&dir, &[&args[..], &format, &save].concat());
            // A study whose rows miss from so few phases ends with 1.
            let fine = if args[0] == "reproduce" { 0..=1 } else { 0..=0 };
            assert!(fine.contains(&direct.code), "{args:?}: {}", direct.err);
            let again = risetime_in(&dir, &[&["report", &file], &format[..]].concat());
            assert_eq!((again.code, again.err.as_str()), (0, ""), "{args:?}");
            assert!(again.out == direct.out, "{args:?} {format:?}");
            // The document does not depend on the format that was printed.
            let text = std::fs::read_to_string(dir.join(&file)).expect("saved");
            assert!(saved.replace(text.clone()).is_none_or(|before| before == text), "{args:?}");
        }
        let other = ["mail", "csv"].into_iter().find(|other| !formats.contains(other));
        if let Some(other) = other {
            let said = risetime_in(&dir, &["report", &file, "--format", other]);
            assert!(
                said.code == 2 && said.err.contains(&format!("has no `{other}`")),
                "{}",
                said.err
            );
        }
        let said = risetime_in(&dir, &["report", &file, "--full"]);
        assert!(said.code == 2 && said.err.contains("it is for results of `run`"), "{}", said.err);
        let text = saved.expect("one format at least");
        let altered = text.replace("\"version\":\"", "\"version\":\"9");
        std::fs::write(dir.join("altered.json"), altered).expect("a file");
        let said = risetime_in(&dir, &["report", "altered.json"]);
        assert!(
            said.code == 2 && said.err.contains("is not the one of its sha256"),
            "{}",
            said.err
        );
    }
}

/// The whole result comes back from another process as this one would have it.
#[test]
fn other_processes_return_whole_results() {
    let workers = Workers::start(|| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_risetime"));
        command.arg("worker");
        command
    });
    let workers = workers.expect("they start");
    let all = experiments();
    let run =
        |e: &dyn Executor| e.runs(all.len(), &|i| all[i].clone(), &mut |_| ()).expect("they run");
    let (here, there) = (run(&Threads(&Simulator)), run(&workers));
    for (here, there) in here.iter().zip(&there) {
        assert_eq!(here.to_json(), there.to_json());
        assert!(here.result == there.result && here.timeline == there.timeline);
    }
}
