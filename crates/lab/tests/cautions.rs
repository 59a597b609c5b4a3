//! A caution appears where a figure is known to be weak, and nowhere else.

use risetime_analysis::caution::{Caution, Figure, WEAK, cautions, of_metric};
use risetime_analysis::metric::Metric;
use risetime_analysis::{Options, RunResult};
use risetime_lab::Request;
use risetime_model::Experiment;
use risetime_sim::Simulator;

const ALL: [Figure; 6] = [
    Figure::Speed,
    Figure::Activations,
    Figure::Wakeups,
    Figure::Responses,
    Figure::Migrations,
    Figure::Energy,
];

fn request(workload: &str, platform: &str, policy: &str) -> Request {
    Request {
        policies: vec![policy.into()],
        seconds: Some(0.3),
        ..Request::new(workload, platform)
    }
}

fn experiment(workload: &str, platform: &str, policy: &str) -> Experiment {
    request(workload, platform, policy).experiments().unwrap_or_else(|e| panic!("{e}")).remove(0)
}

/// A workload of these tasks, in a file of its own.
fn of_tasks(name: &str, tasks: &str, policy: &str) -> Experiment {
    let file =
        std::env::temp_dir().join(format!("risetime-cautions-{}-{name}.json", std::process::id()));
    std::fs::write(&file, format!("{{\"tasks\": {{{tasks}}}}}")).unwrap();
    let e = experiment(file.to_str().unwrap(), "rpi4", policy);
    std::fs::remove_file(file).unwrap();
    e
}

fn run(workload: &str, platform: &str) -> RunResult {
    let e = experiment(workload, platform, "mainline");
    risetime_lab::run(&Simulator, &e, Options::default(), None).unwrap().result
}

fn named(all: &[Caution]) -> Vec<&str> {
    all.iter().map(|c| c.figure).collect()
}

const NAPS: &str = "{\"run\": 300, \"sleep\": 2700";

#[test]
fn one_task_that_becomes_busy_gets_none() {
    for platform in ["m1", "pixel6", "rpi4"] {
        for policy in ["linux-6.1", "linux-6.8", "linux-7.2", "linux-7.3"] {
            let e = experiment("rampup", platform, policy);
            let of_run = [Figure::Speed, Figure::Activations, Figure::Wakeups];
            assert_eq!(cautions(&e, &of_run), [], "{platform} {policy}");
        }
    }
    assert_eq!(run("rampup", "m1").cautions, []);
    assert_eq!(run("periodic", "chromebook4").cautions, [], "energy is not what a run is about");
}

#[test]
fn what_was_measured_to_be_weak_is_named_where_it_is_shown() {
    let phone = run("phone", "pixel6");
    assert_eq!(named(&phone.cautions), ["p99 of wakeups", "p99"]);
    let e = experiment("phone", "pixel6", "mainline");
    assert_eq!(cautions(&e, &[Figure::Speed, Figure::Energy]), [], "medians of what it lost");
    let e = experiment("server", "server256", "mainline");
    assert_eq!(cautions(&e, &[Figure::Speed])[0].figure, "every figure");
    let e = experiment("rampup", "chromebook4", "mainline");
    assert_eq!(named(&cautions(&e, &[Figure::Speed, Figure::Energy])), ["energy"]);
}

#[test]
fn tasks_of_a_class_that_is_weak_are_told_apart_from_those_that_are_not() {
    let on = |policy: &str| {
        format!("\"p\": {NAPS}, \"cpus\": [0]}}, \"q\": {NAPS}, \"cpus\": [0]{policy}}}")
    };
    let tail = [Figure::Activations];
    let of = |name: &str, tasks: &str, policy: &str| {
        named(&cautions(&of_tasks(name, tasks, policy), &tail)).concat()
    };
    assert_eq!(of("fair", &on(""), "linux-7.3"), "", "two fair tasks of one CPU");
    let idle = on(", \"policy\": \"SCHED_IDLE\"");
    assert_eq!(of("idle", &idle, "linux-7.3"), "p99 beside SCHED_IDLE tasks");
    assert_eq!(of("idle-before", &idle, "linux-6.12"), "");
    let rt = ", \"policy\": \"SCHED_FIFO\", \"priority\": 10";
    assert_eq!(of("one-rt", &on(rt), "linux-7.3"), "");
    let two = format!("\"p\": {NAPS}, \"cpus\": [0]{rt}}}, \"q\": {NAPS}, \"cpus\": [0]{rt}}}");
    assert_eq!(of("two-rt", &two, "linux-7.3"), "p99 of real-time tasks that share a CPU");
    assert_eq!(of("two-rt-before", &two, "linux-6.12"), "");
    let hogs = |n: u32| {
        format!(
            "\"p\": {NAPS}, \"cpus\": [0]}}, \"hog\": {{\"instance\": {n}, \"cpus\": [0], \"run\": 1000000}}"
        )
    };
    assert_eq!(of("hogs", &hogs(5), "linux-7.3"), "p99 beside more busy tasks than CPUs");
    assert_eq!(of("fewer-hogs", &hogs(4), "linux-7.3"), "");
}

#[test]
fn metrics_are_judged_by_what_they_are() {
    let of = |name: &str| of_metric(&Metric::new(name));
    assert_eq!(of("ui.activation_p99"), Figure::Activations);
    assert_eq!(of("a.b.wakeup_p99_9"), Figure::Wakeups);
    assert_eq!(of("frame.response_max"), Figure::Responses);
    assert_eq!(of("energy"), Figure::Energy);
    assert_eq!(of("migrations"), Figure::Migrations);
    for name in ["rampup.debt", "ui.activation_p50", "work", "makespan"] {
        assert_eq!(of(name), Figure::Speed, "{name}");
    }
}

/// One place: what is said stands in docs/accuracy.md, too, and takes two lines of 80 columns.
#[test]
fn each_caution_is_short_and_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/accuracy.md");
    let page = std::fs::read_to_string(path).unwrap();
    for Caution { of, figure, typical, why } in WEAK.iter().map(|w| w.says) {
        let said = format!("caution: {figure}: {typical}; {why}");
        assert!(said.chars().count() <= 140, "{said}");
        assert!(of.iter().all(|f| ALL.contains(f)));
        assert!(page.contains(&format!("| {figure} | {typical} | {why} |")), "{said}");
    }
}
