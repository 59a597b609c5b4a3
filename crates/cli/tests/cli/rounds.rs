//! Rounds of the threads of built-in workloads: by the packaged rt-app 1.0-1 on two CPUs of this machine, and of the same file simulated
//! on two CPUs. `rounds.csv` has all of them; `make evidence-rt-app` adds those that it lacks.
//!
//! Changed in both: tasks are SCHED_FIFO, so that what else this machine does takes none of their time, `run` is calibrated here, and CPUs
//! that are not there are left out. Judged: at most 2 % or one round between the two, of every task that is not busy for ever.

use crate::rt_app::{end, start_as};
use risetime_kernel::units::{CpuId, Instant, Span, TaskId};
use risetime_model::settings::Value;
use risetime_model::workload::{Event as Step, Repeat, RtApp, TaskSpec};
use risetime_model::{Experiment, Platform, Policy, Workload};
use risetime_sim::Simulator;
use risetime_trace::{Backend, Event, Header, SwitchOut, TraceSink};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

/// Workloads whose demand fits two CPUs, and of which rt-app 1.0 carries all. `phone` is left out: its relative timers lose what the fair
/// server of a machine with other programs takes from SCHED_FIFO, 50 ms of each second (4.5 % of the mixer's rounds).
const FIT: [&str; 13] = [
    "audio",
    "hinted",
    "moved",
    "periodic",
    "periodic-2in10",
    "periodic-crowd",
    "rt-crowd",
    "ui-hwuitest",
    "ui-jank-bench",
    "ui-recentfling",
    "vellamo-sysbench",
    "video-playback",
    "video-playback-aligned",
];
/// Workloads that are run in each test.
const SLICE: [&str; 3] = ["periodic", "periodic-crowd", "ui-recentfling"];
/// Length of a run, in s.
const SECONDS: u64 = 3;
/// Runs of a workload of which one has to agree: other programs of the machine come in between.
const TRIES: usize = 3;

/// Rounds of a thread, by rt-app and simulated.
struct Row {
    thread: String,
    real: f64,
    simulated: f64,
}

impl Row {
    fn agrees(&self) -> bool {
        (self.real - self.simulated).abs() <= (self.simulated * 0.02).max(1.0)
    }
}

fn record() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cli/rounds.csv")
}

/// The ns that a loop of rt-app takes on this machine: 20 ms of them at 100 ns each, as long as the fastest of some took.
fn loop_ns() -> u64 {
    let text = r#"{"tasks": {"t": {"loop": 1, "phases": {"p": {"loop": 20, "run": 20000}}}},
        "global": {"calibration": 100, "default_policy": "SCHED_FIFO", "lock_pages": false, "log_basename": "l"}}"#;
    let ran = end(start_as("loop", text, &["chrt", "-f", "50"]));
    let log = std::fs::read_to_string(ran.dir.join("l-t-0.log")).expect("its log");
    let run = |line: &str| line.split_ascii_whitespace().nth(2)?.parse::<u64>().ok();
    let least = log.lines().filter(|l| !l.starts_with('#')).filter_map(run).min();
    // 20 ms are 200000 loops.
    (least.expect("rounds") / 200).max(1)
}

/// The exported workload as both run it.
fn changed(name: &str, loop_ns: u64) -> String {
    let exported = Workload::load(name).expect("built in").exported(RtApp::V1_0, None);
    let line = |line: &str| -> Option<String> {
        let key = line.trim().split(':').next().unwrap_or_default();
        let list = |list: &str| {
            let number = |n: &str| n.trim_matches([']', ',', ' ']).parse().unwrap_or(u32::MAX);
            list.split(", ").all(|n| number(n) < 2)
        };
        match key {
            "\"policy\"" | "\"priority\"" | "\"log_size\"" => None,
            "\"cpus\"" if !list(line.split_once('[').map_or("", |(_, rest)| rest)) => None,
            "\"duration\"" => Some(format!("\"duration\": {SECONDS},")),
            "\"calibration\"" => Some(format!("\"calibration\": {loop_ns},")),
            "\"default_policy\"" => Some("\"default_policy\": \"SCHED_FIFO\",".into()),
            "\"log_basename\"" => Some("\"log_basename\": \"l\",".into()),
            _ => Some(line.into()),
        }
    };
    exported.text.lines().filter_map(line).collect::<Vec<_>>().join("\n")
}

/// Time on a CPU of each task, in ns, and how often it went to sleep.
#[derive(Default)]
struct Took {
    on: BTreeMap<CpuId, (TaskId, u64)>,
    ran: BTreeMap<TaskId, u64>,
    slept: BTreeMap<TaskId, u64>,
}

impl Took {
    fn off(&mut self, cpu: CpuId, at: Instant) {
        if let Some((task, from)) = self.on.remove(&cpu) {
            *self.ran.entry(task).or_default() += at.0 - from;
        }
    }
}

impl TraceSink for Took {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        let Event::Switch { cpu, prev, next } = *event else { return };
        self.off(cpu, at);
        if let Some((task, SwitchOut::Sleeping)) = prev {
            *self.slept.entry(task).or_default() += 1;
        }
        if let Some(task) = next {
            self.on.insert(cpu, (task, at.0));
        }
    }
    fn end(&mut self, at: Instant) {
        for cpu in self.on.keys().copied().collect::<Vec<_>>() {
            self.off(cpu, at);
        }
    }
}

/// Rounds of a whole cycle of the task's phases, its work in ns, and its sleeps; `None`: it is busy for ever, or in a phase for ever.
fn cycle(spec: &TaskSpec) -> Option<(u64, u64, u64)> {
    let mut sum = (0, 0, 0);
    for phase in &spec.phases {
        let Repeat::Times(n) = phase.repeat else { return None };
        let work = |e: &Step| if let Step::Run(work) = e { work.0 } else { 0 };
        let work: u64 = phase.events.iter().map(work).sum();
        let sleeps = phase.events.iter().filter(|e| e.sleeps_or_waits()).count() as u64;
        let n = u64::from(n);
        sum = (sum.0 + n, sum.1 + n * work, sum.2 + n * sleeps);
    }
    (!spec.is_endless()).then_some(sum)
}

fn simulated(workload: &Workload) -> Took {
    let mut platform = Platform::load("laptop4").expect("built in");
    platform.domains.truncate(2);
    for d in &mut platform.domains {
        d.idle.clear();
        d.opps.drain(..d.opps.len() - 1);
    }
    let set = [("governor", "performance"), ("noise", "off")];
    let set = set.map(|(key, value)| (key.to_string(), Value::Name(value.into())));
    let policy = Policy::from_arg_with("linux-7.2", &set).expect("a policy");
    let settings = risetime_sim::resolve(&platform, &policy).expect("settings");
    let (platform, workload) = (Arc::new(platform), Arc::new(workload.clone()));
    let duration = Span::from_ms(SECONDS * 1000);
    let e = Experiment { platform, workload, policy, settings, duration, phase: Span(0), seed: 1 };
    let mut took = Took::default();
    Simulator.run(&e, &mut took).unwrap_or_else(|e| panic!("{e}"));
    took
}

/// Runs a workload both ways.
fn rows(name: &str, loop_ns: u64) -> Vec<Row> {
    let text = changed(name, loop_ns);
    let ran = end(start_as(&format!("rounds-{name}"), &text, &["chrt", "-f", "50"]));
    assert_eq!(ran.code, Some(0), "{name}");
    let logs: BTreeMap<usize, usize> = std::fs::read_dir(&ran.dir)
        .expect("its directory")
        .flatten()
        .filter_map(|file| {
            let name = file.file_name().to_string_lossy().into_owned();
            let number = name.strip_suffix(".log")?.rsplit_once('-')?.1.parse().ok()?;
            let log = std::fs::read_to_string(file.path()).ok()?;
            Some((number, log.lines().filter(|line| !line.starts_with('#')).count()))
        })
        .collect();
    let workload = Workload::parse(&text, name).unwrap_or_else(|e| panic!("{e}"));
    let took = simulated(&workload);
    let row = |(i, spec): (usize, &TaskSpec)| {
        let (rounds, work, sleeps) = cycle(spec)?;
        let task = TaskId(i as u32);
        let of = |map: &BTreeMap<TaskId, u64>| map.get(&task).copied().unwrap_or(0);
        let cycles = match work {
            0 => of(&took.slept) as f64 / sleeps.max(1) as f64,
            work => of(&took.ran) as f64 / work as f64,
        };
        // What calls took at the end of a task that ends is no further round.
        let cycles = match spec.repeat {
            Repeat::Times(n) => cycles.min(f64::from(n)),
            Repeat::Forever => cycles,
        };
        let real = logs.get(&i).copied().unwrap_or(0) as f64;
        Some(Row { thread: spec.comm.clone(), real, simulated: cycles * rounds as f64 })
    };
    workload.tasks.iter().enumerate().filter_map(row).collect()
}

/// Runs a workload until both agree, some times at most.
fn best(name: &str, loop_ns: u64) -> Vec<Row> {
    let mut found = rows(name, loop_ns);
    for _ in 1..TRIES {
        if found.iter().all(Row::agrees) {
            break;
        }
        found = rows(name, loop_ns);
    }
    found
}

fn lines(name: &str, rows: &[Row]) -> String {
    let line = |r: &Row| format!("{name},{},{:.0},{:.1}\n", r.thread, r.real, r.simulated);
    rows.iter().map(line).collect()
}

/// With `RECORD` set, what the record lacks is run and added; it may be stopped at any time.
#[test]
fn packaged_rt_app_makes_as_many_rounds_as_are_simulated() {
    let loop_ns = loop_ns();
    if std::env::var_os("RECORD").is_none() {
        let wrong = |name: &&str| {
            let rows = best(name, loop_ns);
            let wrong: Vec<Row> = rows.into_iter().filter(|row| !row.agrees()).collect();
            lines(name, &wrong)
        };
        let wrong: String = SLICE.iter().map(wrong).collect();
        assert!(wrong.is_empty(), "workload,thread,rt-app,simulated\n{wrong}");
        return;
    }
    let before = std::fs::read_to_string(record()).unwrap_or_default();
    let has: BTreeSet<&str> = before.lines().filter_map(|l| l.split(',').next()).collect();
    let mut out =
        std::fs::OpenOptions::new().create(true).append(true).open(record()).expect("the record");
    if before.is_empty() {
        writeln!(out, "workload,thread,rt-app,simulated").expect("written");
    }
    let date = std::process::Command::new("date").arg("+%F").output().expect("a date");
    let date = String::from_utf8_lossy(&date.stdout).trim().to_string();
    for (i, name) in FIT.iter().filter(|name| !has.contains(**name)).enumerate() {
        if i == 0 {
            writeln!(out, "# rt-app 1.0-1, {SECONDS} s, {loop_ns} ns a loop, {date}")
                .expect("written");
        }
        write!(out, "{}", lines(name, &best(name, loop_ns))).expect("written");
    }
}

#[test]
fn recorded_rounds_of_rt_app_are_those_simulated() {
    let text = std::fs::read_to_string(record()).expect("make evidence-rt-app");
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for line in text.lines().skip(1).filter(|line| !line.starts_with('#')) {
        let [name, thread, real, simulated] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let number = |text: &str| text.parse().expect("a number");
        let row = Row { thread: thread.into(), real: number(real), simulated: number(simulated) };
        if !row.agrees() {
            wrong.push(line);
        }
        seen.insert(name);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(seen, FIT.into());
}
