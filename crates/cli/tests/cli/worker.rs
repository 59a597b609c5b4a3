//! Experiments sent as documents to another process, and their figures back.

use crate::{prints, repository};
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
