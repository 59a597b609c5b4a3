//! Guests that are to come, each as a sketch that uses the interfaces as it will: whoever changes these sees here what it costs
//! them. A worker in another process is in `cli/tests/cli/worker.rs`; `make wasm` builds for a browser.

use risetime_analysis::known::Need;
use risetime_analysis::metric::Metric;
use risetime_analysis::named::{FIGURES, Figure, Owner};
use risetime_analysis::{Analyzer, Options, RunResult, Timeline};
use risetime_kernel::units::{CpuId, Instant, TaskId, Util};
use risetime_lab::{Documents, Request, Saved, Shown, run};
use risetime_model::library::{self, Entry};
use risetime_model::workload::Event as Step;
use risetime_model::{Experiment, Platform, Policy, Workload};
use risetime_report::text::{self, Style, View};
use risetime_report::{Told, csv, json};
use risetime_trace::{
    Backend, BackendKind, Clock, Event, Header, Outcome, Run, RunError, SwitchOut, TraceSink, Why,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant as Now};

/// Two activations of `ui` on CPU 1, and a shell that gets its number once it has exited.
const FTRACE: &str = "\
# tracer: nop
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
          <idle>-0       [000] d..2.   100.000000: sched_wakeup: comm=ui pid=812 prio=120 target_cpu=001
          <idle>-0       [001] d..2.   100.000050: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=ui next_pid=812 next_prio=120
              ui-812     [001] d..2.   100.003050: sched_switch: prev_comm=ui prev_pid=812 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
          <idle>-0       [000] d..2.   100.010000: sched_wakeup: comm=ui pid=812 prio=120 target_cpu=001
          <idle>-0       [001] d..2.   100.010150: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=ui next_pid=812 next_prio=120
              ui-812     [001] d..2.   100.012150: sched_switch: prev_comm=ui prev_pid=812 prev_prio=120 prev_state=X ==> next_comm=swapper/1 next_pid=0 next_prio=120
          <idle>-0       [000] d..2.   100.020000: sched_wakeup: comm=sh pid=812 prio=120 target_cpu=000
          <idle>-0       [000] d..2.   100.020020: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=sh next_pid=812 next_prio=120
              sh-812     [000] d..2.   100.030020: sched_switch: prev_comm=sh prev_pid=812 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
";

/// Reads ftrace's text: nobody knows an experiment, threads are met as they come, and the machine is what was seen, or `described`.
fn read(text: &str, described: Option<Platform>, sink: &mut dyn TraceSink) {
    let source = risetime_read::Source::bytes("seen", text.as_bytes().to_vec());
    let platform = described.map(Arc::new);
    let options = risetime_read::Options { platform, ..Default::default() };
    risetime_read::read(&source, sink, &options).expect("a trace");
}

#[test]
fn a_reader_of_ftrace_text_gives_the_figures_of_its_threads() {
    let mut analyzer = Analyzer::new(Options::default());
    read(FTRACE, None, &mut analyzer);
    let result: RunResult = analyzer.finish().0;
    let names: Vec<&str> = result.tasks.iter().map(|t| &*t.comm).collect();
    assert_eq!(names, ["ui", "sh"], "a number that is used again is another thread");
    let of = |name: &str| result.latency.iter().find(|l| l.tasks == name).expect("a group");
    assert_eq!((of("ui").activations, of("sh").activations), (2, 1));
    assert_eq!(result.energy_mj, None, "nobody said what its CPUs take");
    assert!(
        result.notes.iter().any(|n| n.starts_with("the machine is known from this trace alone"))
    );
    assert_eq!((result.backend, &*result.workload), (BackendKind::File, ""));
}

/// The result of a trace of which nothing is known beside what it tells.
fn of_nothing_known() -> (RunResult, Timeline) {
    let mut analyzer = Analyzer::new(Options { timeline: true, ..Options::default() });
    read(FTRACE, None, &mut analyzer);
    let (result, timeline) = analyzer.finish();
    (result, timeline.expect("asked for"))
}

/// No figure is computed from what somebody assumed: each is there by what the trace tells, or says why it is not.
#[test]
fn a_figure_that_needs_what_is_not_known_is_absent_with_its_reason() {
    let (result, _) = of_nothing_known();
    let (mut there, mut absent) = (BTreeSet::new(), 0);
    for figure in FIGURES {
        for name in figure.names() {
            let metric = Metric::new(match figure.of() {
                Owner::Job => format!("frame.{name}"),
                Owner::Task => format!("ui.{name}"),
                Owner::Group => format!("/bg.{name}"),
                Owner::Run => name,
            });
            let needs_more = figure.needs.iter().any(|need| *need != Need::Throttling);
            let value = metric.of(&result);
            let found = value.as_ref().ok().and_then(|value| value.0);
            if needs_more {
                assert_eq!(value, Ok((None, figure.unit)), "{}", metric.name);
                let why = figure.needs.iter().find_map(|need| result.lacks(*need));
                assert!(why.is_some() && metric.absent(&result) == why, "{}", metric.name);
                absent += 1;
            } else if found.is_some() {
                there.insert(figure.name);
            }
        }
    }
    assert_eq!(absent, 68, "figures that need machine or experiment, each statistic");
    let wanted =
        ["activation", "exited", "migrations", "running", "wait", "wakeup", "wakeups", "wu_lat"];
    assert_eq!(there.into_iter().collect::<Vec<_>>(), wanted);
    let ui = Metric::new("ui.activation_max").of(&result).expect("known");
    assert_eq!(ui.0, Some(3.05), "the trace tells it");
}

/// Whoever says what the machine is gets the figures that need it, and those of jobs are as unknown as before.
#[test]
fn a_platform_file_gives_a_trace_its_speeds_and_powers() {
    let on_m1 = |text: &str| {
        let mut analyzer = Analyzer::new(Options::default());
        read(text, Some(Platform::load("m1").expect("built in")), &mut analyzer);
        analyzer.finish().0
    };
    let first =
        |word: &str| FTRACE.find(word).map(|at| FTRACE[..at].rfind('\n').expect("a line") + 1);
    let (head, events) = FTRACE.split_at(first("sched_wakeup").expect("there"));
    let line = |name: &str, state: u64, cpu: u32| {
        format!(
            "          <idle>-0       [{cpu:03}] d..2.   100.000000: {name}: state={state} cpu_id={cpu}\n"
        )
    };
    let frequencies: String = [0, 4].map(|cpu| line("cpu_frequency", 600_000, cpu)).concat();
    let idle: String = (0..8).map(|cpu| line("cpu_idle", 0, cpu)).collect();
    let speeds = ["work", "ui.longer", "ui.debt", "ui.activation_longer_max"];
    for (text, has_speeds, has_power) in [
        (FTRACE.to_string(), false, false),
        (format!("{head}{frequencies}{events}"), true, false),
        (format!("{head}{frequencies}{idle}{events}"), true, true),
    ] {
        let result = on_m1(&text);
        let value = |name: &str| Metric::new(name).of(&result).expect("known").0;
        for name in speeds {
            assert_eq!(value(name).is_some(), has_speeds, "{name} in {text}");
        }
        assert_eq!(value("energy").is_some(), has_power, "{text}");
        assert_eq!(Metric::new("energy").absent(&result).is_none(), has_power, "{text}");
    }
    let result = on_m1(FTRACE);
    for name in ["frame.missed", "/bg.throttled"] {
        let (metric, why) = (Metric::new(name), result.lacks(Need::Experiment));
        assert!(metric.of(&result).is_ok_and(|(value, _)| value.is_none()), "{name}");
        assert!(why.is_some() && metric.absent(&result) == why, "{name}");
    }
}

/// Where a figure that needs what is not known stands in results, there is nothing in its place.
#[test]
fn reports_of_an_unknown_machine_say_what_is_not_known() {
    let (result, timeline) = of_nothing_known();
    let told = || [Told { run: &result, listed: None }];
    let (mut data, mut rows) = (Vec::new(), Vec::new());
    json::runs(&mut data, &mut told()).expect("to memory");
    csv::runs(&mut rows, &mut told(), &[]).expect("to memory");
    let data: serde_json::Value = serde_json::from_slice(&data).expect("JSON");
    let run = &data["runs"][0];
    let unknown = run["unknown"].as_array().expect("a list");
    let needs: Vec<&str> = unknown.iter().filter_map(|one| one["needs"].as_str()).collect();
    let all = ["speeds", "powers", "idle_states", "idle", "experiment", "timer_interrupts"];
    assert_eq!(needs, all);
    assert!(unknown.iter().all(|one| one["why"].is_string() && one["figures"].is_array()));
    let null = |at: &str| assert!(run.pointer(at).is_some_and(|v| v.is_null()), "{at}");
    for figure in FIGURES.iter().filter(|f| f.of() == Owner::Run && result.hides(f)) {
        figure.json.iter().for_each(|key| null(&format!("/{key}")));
    }
    ["/latency/0/longer", "/cpus/0/capacity", "/cpus/0/energy_mj", "/timer_interrupts_per_s"]
        .into_iter()
        .for_each(null);
    for key in ["debt_ms", "debt_capped_ms", "perf_10_90_ms", "burst/ended_by", "burst/t1_ms"] {
        null(&format!("/tasks/0/{key}"));
    }
    for key in ["burst/longer_ms", "burst/work_ms", "whole/work_ms", "whole/longer_ms"] {
        null(&format!("/tasks/0/{key}"));
    }
    null("/tasks/0/whole/energy_mj");
    null("/tasks/0/whole/running/0/freq_khz");
    assert_eq!(run["tasks"][0]["whole"]["running_ms"], 5.0);

    let rows = String::from_utf8(rows).expect("text");
    let values = |name: &str| -> Vec<&str> {
        let fields = rows.lines().map(|row| row.split(',').collect::<Vec<_>>());
        fields.filter(|row| row.get(7) == Some(&name)).map(|row| row[9]).collect()
    };
    let is_empty = |name: &str| {
        let found = values(name);
        assert!(
            !found.is_empty() && found.iter().all(|value| value.is_empty()),
            "{name} {found:?}"
        );
    };
    for figure in FIGURES.iter().filter(|f| !matches!(f.of(), Owner::Job | Owner::Group)) {
        let Some(name) = figure.csv.filter(|_| result.hides(figure)) else { continue };
        (Figure { name, ..*figure }).names().for_each(|name| is_empty(&name));
    }
    ["debt", "debt_capped", "t1", "perf_10_90", "longer", "burst_work", "ended_by"]
        .into_iter()
        .for_each(is_empty);
    assert!(!rows.contains("capacity") && !rows.contains("freq_khz"), "assumed, not told");

    let style = Style { width: 100, color: false, unicode: true };
    for full in [false, true] {
        let page = text::run(&result, &timeline, &View { full, ..View::default() }, &style);
        for never in ["NaN", "full speed:", "lost on", "full-speed work", "capacity", "MHz", "kHz"]
        {
            assert!(!page.contains(never), "{never} in {page}");
        }
        assert!(page.contains("sh: took 10.0 ms."), "{page}");
        assert!(page.contains("no platform file says what the machine's CPUs take"), "{page}");
        assert!(page.contains("the machine is known from this trace alone"), "{page}");
    }
}

/// A result without an experiment is a document as any other.
#[test]
fn a_run_of_no_experiment_is_a_document() {
    let (result, timeline) = of_nothing_known();
    let run = Saved {
        experiment: None,
        result,
        timeline: Some(timeline),
        lists: None,
        shown: Shown::default(),
    };
    let text = run.to_json().expect("no workload to write");
    let back = Saved::from_json(&text, "x").expect("it reads back");
    assert_eq!((back.to_json(), back.hash()), (Ok(text.clone()), run.hash()));
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["absent"][0]["needs"], "speeds", "the reasons stand beside the figures");
}

/// A browser: it has texts and no files. What it asks for is what a command line asks for by names.
#[test]
fn a_request_of_texts_alone_is_the_one_that_names_make() {
    let of = |all: Vec<Entry>, name: &str| {
        all.into_iter().find(|entry| entry.name == name).expect("built in").text
    };
    let workload = Workload::parse(of(library::workloads(), "phone"), "phone").expect("a workload");
    let platform =
        Platform::parse(of(library::platforms(), "pixel6"), "typed").expect("a platform");
    let policy = Policy::parse(of(library::policies(), "linux-6.12"), "typed").expect("a policy");
    let asked = Documents {
        seconds: Some(0.3),
        noise: Some("machine"),
        ..Documents::new(workload, platform, policy)
    };
    let there = asked.simulated().expect("it fits").remove(0);
    let request = Request {
        seconds: Some(0.3),
        noise: Some("machine"),
        policies: vec!["linux-6.12".into()],
        ..Request::new("phone", "pixel6")
    };
    let here = request.experiments().expect("built in").remove(0);
    assert_eq!(there.to_json(), here.to_json());
}

/// The place of a fault is what the person gave, whoever finds it.
#[test]
fn a_fault_of_a_workload_that_does_not_fit_names_the_text() {
    let text = r#"{"tasks": {"t": {"run": 1000}}, "global": {"partitions": [[0, 9]]}}"#;
    let workload = Workload::parse(text, "pasted.json").expect("a workload");
    let platform = Platform::load("m1").expect("built in");
    let policy = Policy::load("linux-7.2").expect("built in");
    let fault = Documents::new(workload, platform, policy).experiments().unwrap_err();
    assert_eq!(fault.place, "pasted.json", "{fault}");
}

/// This machine as a backend: what a task does is in the experiment, and the trace says what was seen of it here.
struct Here;

impl Backend for Here {
    fn kind(&self) -> BackendKind {
        BackendKind::Host
    }

    fn run(&self, e: &Experiment, sink: &mut dyn TraceSink) -> Result<Outcome, RunError> {
        let run = Run {
            backend: self.kind(),
            kernel_release: std::fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_err(|e| RunError::Unavailable(e.to_string()))?,
            clock: Clock::Mono,
            signals: Vec::new(),
            lost: vec!["when others had the CPU".into()],
        };
        sink.header(&Header::of(e, run));
        let begin = Now::now();
        let now = || Instant(begin.elapsed().as_nanos() as u64);
        let (task, cpu, mut events) = (TaskId(0), CpuId(0), 0);
        let mut tell = |at: Instant, event: Event| {
            sink.event(at, &event);
            events += 1;
        };
        let spec = &e.workload.tasks[0];
        let (comm, why, max_speed) = (spec.comm.as_str().into(), Why::FirstCpu, Util(1024));
        tell(now(), Event::TaskNew { task, comm, user: true, cpu, why, max_speed });
        tell(now(), Event::Switch { cpu, prev: None, next: Some(task) });
        let until = begin + Duration::from_nanos(e.duration.0);
        for step in spec.phases.iter().flat_map(|phase| &phase.events) {
            let rest = until.saturating_duration_since(Now::now());
            match step {
                Step::Run(work) => {
                    let end = Now::now() + Duration::from_nanos(work.0).min(rest);
                    while Now::now() < end {
                        std::hint::spin_loop();
                    }
                }
                Step::Sleep(time) => {
                    let prev = Some((task, SwitchOut::Sleeping));
                    tell(now(), Event::Switch { cpu, prev, next: None });
                    std::thread::sleep(Duration::from_nanos(time.0).min(rest));
                    tell(now(), Event::Wakeup { task, cpu, why: Why::Unknown });
                    tell(now(), Event::Switch { cpu, prev: None, next: Some(task) });
                }
                other => return Err(RunError::Failed(format!("a sketch knows no {other:?}"))),
            }
        }
        let end = now();
        tell(end, Event::Switch { cpu, prev: Some((task, SwitchOut::Exited)), next: None });
        sink.end(end);
        Ok(Outcome { end, events, notes: Vec::new(), timer_interrupts: None })
    }
}

/// Runs an experiment here by the calls with which one is simulated: the result is of the same kind, and no figure of it is judged.
#[test]
fn this_machine_runs_an_experiment() {
    let request = Request { seconds: Some(0.05), ..Request::new("rampup", "m1") };
    let e = request.experiments().expect("built in").remove(0);
    let result = run(&Here, &e, Options::default(), None).expect("it runs").result;
    assert_eq!((result.backend, result.tasks.len()), (BackendKind::Host, 1));
    assert!(result.cautions.is_empty(), "what a machine did is what it did");
    assert!(result.notes.iter().any(|note| note == "when others had the CPU"));
}
