//! The behaviour of the simulator, event by event: experiments of every kind, and a hash of what each gives.
//!
//! ```text
//! shipped     built-in workloads, platforms, policies          one short run of each, all generations
//! beside      the small experiments of `side_by_side/`         under every generation
//! generated   drawn as the simulator's own properties draw     (fixed seed)
//! mutant      every wrong simulator                            on a phone, in groups, among classes
//! cause       every cause of `explain` absent, alone; all      likewise
//! replay      a trace's start state, and its decisions         free and given
//! ```
//!
//! `corpus/hashes.txt` holds `name hash events`. The hash (FNV-1a, 64 bits) is of every event with its time,
//! the end, and the notes; of a run that fails, of its error. A change that is meant to change nothing leaves the file as it
//! is; one that is meant to change something writes it anew with `BLESS=1` and says in its message what moved.

use crate::draws;
use crate::experiment;
use crate::generate;
use crate::side_by_side_figures as side_by_side;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use risetime_analysis::verify::Mode;
use risetime_kernel::units::{Instant, Span};
use risetime_lab::record;
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Workload, library};
use risetime_sim::cause::{CAUSES, Causes};
use risetime_sim::mutant::{self, Mutant};
use risetime_sim::{Counterfactual, Replay, Simulator};
use risetime_trace::{Backend, Event, Header, Memory, TraceSink};
use risetime_verify::verify;
use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// FNV-1a of everything that is written into it.
struct Hash {
    state: u64,
    events: u64,
}

impl Hash {
    fn new() -> Hash {
        Hash { state: 0xcbf2_9ce4_8422_2325, events: 0 }
    }
    fn take(&mut self, what: &dyn Debug) {
        writeln!(self, "{what:?}").expect("a hash takes all");
    }
}

impl Write for Hash {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        for byte in s.bytes() {
            self.state = (self.state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}

impl TraceSink for Hash {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        if matches!(event, Event::Due { .. } | Event::Stolen { .. }) {
            // Told beside what happens: both follow from it.
            return;
        }
        self.events += 1;
        write!(self, "{} ", at.0).expect("a hash takes all");
        self.take(event);
    }
    fn end(&mut self, at: Instant) {
        self.take(&at);
    }
}

/// One line of the file.
fn hashed(run: impl FnOnce(&mut Hash)) -> String {
    let mut hash = Hash::new();
    run(&mut hash);
    format!("{:016x} {}", hash.state, hash.events)
}

fn of_run(backend: &dyn Backend, experiment: &Experiment) -> String {
    hashed(|hash| match backend.run(experiment, hash) {
        Ok(outcome) => hash.take(&(outcome.end, outcome.notes)),
        Err(error) => hash.take(&error.to_string()),
    })
}

/// What the simulator makes of another simulation's trace.
fn of_replay(experiment: &Experiment, mode: Mode) -> String {
    hashed(|hash| {
        let later = Experiment {
            phase: experiment.phase + Span(10_300_000),
            duration: experiment.duration + Span(10_300_000),
            ..experiment.clone()
        };
        let reference: Memory = record(&Simulator, &later).expect("a reference");
        match verify(experiment, &reference, mode) {
            Ok(found) => found.trace.replay(hash),
            Err(error) => hash.take(&error.to_string()),
        }
    })
}

/// One experiment of the corpus: its name, and what gives its line.
type Entry = (String, Box<dyn Fn() -> String + Send + Sync>);

fn shipped(platform: &str, workload: &str, policy: &str, set: &[(&str, i64)]) -> Experiment {
    let ms = match (platform, workload) {
        ("server256" | "server64", _) => 40,
        (_, "phone" | "compile" | "server" | "audio") => 250,
        _ => 500,
    };
    let set: Vec<(&str, Value)> = set.iter().map(|(k, v)| (*k, Value::Int(*v))).collect();
    let platform = Platform::load(platform).expect("built in");
    let workload = Workload::load(workload).expect("built in");
    Experiment {
        phase: Span(300_000),
        ..experiment(platform, workload, policy, &set, Span::from_ms(ms))
    }
}

/// The platform with thermal zones.
const UNCOOLED: &str = "hikey620-uncooled";

/// Platforms that came after the pairs of workloads and platforms were made, which go by position.
const LATER: [&str; 10] = [
    UNCOOLED,
    "lunar-lake",
    "mt8195",
    "pixel8",
    "pixel9",
    "rk3588",
    "ryzen-8840u",
    "sc8280xp",
    "sm8550",
    "steam-deck",
];

/// Workloads that came after them.
const LATER_WORKLOADS: [&str; 1] = ["periodic-visited"];

const GENERATIONS: [&str; 7] =
    ["linux-6.1", "linux-6.6", "linux-6.8", "linux-6.11", "linux-6.12", "linux-7.2", "linux-7.3"];

fn entry(name: String, backend: impl Backend + Send + 'static, e: Experiment) -> Entry {
    (name, Box::new(move || of_run(&backend, &e)))
}

fn built_in() -> Vec<Entry> {
    let names = |of: &[library::Entry]| of.iter().map(|e| e.name).collect::<Vec<_>>();
    let (mut platforms, mut workloads) =
        (names(&library::platforms()), names(&library::workloads()));
    // Which workload meets which platform stays as it was.
    platforms.retain(|p| !LATER.contains(p));
    workloads.retain(|w| !LATER_WORKLOADS.contains(w));
    let mut all = Vec::new();
    let mut add = |platform: &str, workload: &str, policy: &str, set: &[(&str, i64)]| {
        let set_name: String = set.iter().map(|(k, v)| format!("+{k}={v}")).collect();
        let name = format!("shipped/{platform}/{workload}/{policy}{set_name}");
        all.push(entry(name, Simulator, shipped(platform, workload, policy, set)));
    };
    for (w, workload) in workloads.iter().enumerate() {
        for (g, policy) in GENERATIONS.iter().enumerate() {
            add(platforms[(w * 5 + g * 7) % platforms.len()], workload, policy, &[]);
        }
    }
    for (p, platform) in platforms.iter().enumerate() {
        add(platform, "rampup", "mainline", &[]);
        add(platform, "phone", GENERATIONS[p % GENERATIONS.len()], &[("ni_random", 1)]);
    }
    for workload in ["rampup", "spinners"] {
        add(UNCOOLED, workload, "linux-4.4", &[("start_temp", 74_000)]);
    }
    // Releases whose rules are all their neighbours' came later, and have no bytes of their own here.
    let neighbours = ["linux-6.18", "linux-7.0"];
    for policy in names(&library::policies()).into_iter().filter(|name| !neighbours.contains(name))
    {
        add("pixel6", "rampup", policy, &[]);
        add("m1", "periodic-crowd", policy, &[]);
    }
    let irq = [("irq_period_us", 900), ("irq_us", 70)];
    for policy in GENERATIONS {
        add("pixel6", "phone", policy, &irq);
        add(
            "laptop4",
            "phone",
            policy,
            &[("stop_work_ns", 300_000), ("scaling_max_freq", 1_500_000)],
        );
        add(
            "m1",
            "phone",
            policy,
            &[("uclamp_min", 300), ("hw_capped_khz", 1_500_000), ("hw_capped_from_ms", 60)],
        );
        add(
            "server64",
            "server",
            policy,
            &[("switch_cost_ns", 1500), ("cold_cache_ns", 90_000), ("smt_speed", 600)],
        );
    }
    all
}

fn beside() -> Vec<Entry> {
    let short = |name: &str, policy: &str| {
        let mut e = side_by_side::experiment(name, policy);
        e.duration = e.duration.min(Span::from_ms(400));
        e
    };
    let names = side_by_side::names().into_iter();
    let all = names.flat_map(|name| {
        ["linux-6.1", "linux-6.12", "linux-7.2", "linux-7.3"]
            .map(|policy| entry(format!("beside/{name}/{policy}"), Simulator, short(&name, policy)))
    });
    all.collect()
}

fn drawn(n: usize, of: impl Strategy<Value = Experiment>) -> Vec<Experiment> {
    let mut runner = TestRunner::new(draws::config(1));
    (0..n).map(|_| of.new_tree(&mut runner).expect("an experiment").current()).collect()
}

fn generated() -> Vec<Entry> {
    let any = drawn(96, generate::experiments()).into_iter().enumerate();
    let plain = drawn(48, generate::mostly_plain()).into_iter().enumerate();
    any.map(|(i, e)| entry(format!("generated/any/{i:02}"), Simulator, e))
        .chain(plain.map(|(i, e)| entry(format!("generated/plain/{i:02}"), Simulator, e)))
        .collect()
}

/// Where most mechanisms take part: asymmetric CPUs, groups, other classes than the fair one, cores and nodes.
fn stages() -> Vec<(&'static str, Experiment)> {
    let of_files = |name: &str, policy: &str| {
        let mut e = side_by_side::experiment(name, policy);
        e.duration = Span::from_ms(400);
        e
    };
    let classes = r#"{"tasks": {
        "dl": {"policy": "SCHED_DEADLINE", "dl-runtime": 2000, "dl-period": 10000, "loop": -1, "run": 2500, "timer": {"ref": "d", "period": 10000}},
        "grub": {"policy": "SCHED_DEADLINE", "dl-runtime": 1500, "dl-period": 16000, "dl-reclaim": true, "loop": -1, "run": 4000, "timer": {"ref": "g", "period": 16000}},
        "rt": {"policy": "SCHED_FIFO", "priority": 5, "instance": 3, "loop": -1, "run": 6000, "sleep": 1000},
        "ui": {"instance": 2, "util_min": 400, "loop": -1, "run": 3000, "sleep": 5000},
        "hog": {"instance": 3, "loop": -1, "run": 20000}}}"#;
    let classes = Workload::parse(classes, "classes.json").expect("a workload");
    let together = r#"{"tasks": {
        "a": {"loop": -1, "lock1": "m", "run1": 700, "signal": "c", "unlock1": "m", "run2": 300, "barrier": "b", "sem_post": "s", "sleep": 900},
        "b": {"loop": -1, "lock": "m", "run": 500, "unlock": "m", "barrier": "b", "yield": "", "run3": 100},
        "c": {"loop": -1, "lock": "m", "wait": {"ref": "c", "mutex": "m"}, "run": 200, "unlock": "m"},
        "d": {"loop": -1, "sem_wait": "s", "run": 2500, "timer": {"ref": "tick", "period": 4000}},
        "e": {"loop": 8, "run": 1500, "fork": "f", "sleep": 20000},
        "f": {"instance": 0, "loop": 3, "run": 3000, "sleep": 1000, "iorun": 400000}}}"#;
    let together = Workload::parse(together, "together.json").expect("a workload");
    let juno = || Platform::load("juno").expect("built in");
    let meets =
        |policy: &str| experiment(juno(), together.clone(), policy, &[], Span::from_ms(300));
    let rpi4 = || Platform::load("rpi4").expect("built in");
    let on = |policy: &str| experiment(rpi4(), classes.clone(), policy, &[], Span::from_ms(500));
    vec![
        ("ramp", shipped("m1", "rampup", "mainline", &[])),
        ("phone", shipped("pixel6", "phone", "mainline", &[])),
        ("phone-6.1", shipped("pixel6", "phone", "linux-6.1", &[])),
        ("nested", of_files("nested-groups", "linux-7.2")),
        ("naps", of_files("groups-and-naps", "linux-6.1")),
        ("classes", on("mainline")),
        ("classes-6.8", on("linux-6.8")),
        ("together", meets("mainline")),
        ("together-6.1", meets("linux-6.1")),
        ("cores", shipped("server64", "server", "mainline", &[])),
    ]
}

fn mutants() -> Vec<Entry> {
    let listed =
        mutant::MUTANTS.iter().chain(mutant::FIGURE_MUTANTS).map(|(m, name, _)| (*m, *name));
    let others = [
        (Mutant::HotplugIgnored, "hotplug-ignored"),
        (Mutant::BalancesAs6_1, "balances-as-6.1"),
        (Mutant::IdleForgets, "idle-forgets"),
        (Mutant::SyncedAlways, "synced-always"),
    ];
    let mut all = Vec::new();
    for (mutant, name) in listed.chain(others) {
        let simulator = || Replay { mutant: Some(mutant), ..Replay::default() };
        for (stage, e) in stages() {
            all.push(entry(format!("mutant/{name}/{stage}"), simulator(), e));
        }
    }
    let plug = r#"{"global": {"hotplug": [{"at_us": 50000, "cpu": 1, "online": 0}, {"at_us": 150000, "cpu": 1, "online": 1}]},
        "tasks": {"hog": {"instance": 4, "loop": -1, "run": 20000}}}"#;
    let plug = Workload::parse(plug, "plug.json").expect("a workload");
    for mutant in [None, Some(Mutant::HotplugIgnored)] {
        let rpi4 = Platform::load("rpi4").expect("built in");
        let e = experiment(rpi4, plug.clone(), "mainline", &[], Span::from_ms(300));
        let simulator = Replay { mutant, ..Replay::default() };
        all.push(entry(format!("mutant/{mutant:?}/plug"), simulator, e));
    }
    all
}

fn causes() -> Vec<Entry> {
    let each = CAUSES.iter().map(|c| (c.name, Causes::NONE.with(c.cause)));
    let all = ("all", CAUSES.iter().map(|c| c.cause).collect());
    let entries = each.chain([all]).flat_map(|(name, without)| {
        stages().into_iter().map(move |(stage, e)| {
            let task = (stage == "phone").then_some(risetime_kernel::units::TaskId(2));
            entry(format!("cause/{name}/{stage}"), Counterfactual { without, task }, e)
        })
    });
    entries.collect()
}

fn replays() -> Vec<Entry> {
    let clamped = shipped("m1", "rampup", "mainline", &[("uclamp_min", 1024)]);
    let quota = side_by_side::experiment("nested-groups", "linux-7.3");
    let short = Experiment { duration: Span::from_ms(400), ..quota };
    let more = vec![("clamped", clamped), ("groups", short)];
    let periodic = ("periodic", shipped("pixel6", "periodic", "linux-6.8", &[]));
    let all = stages().into_iter().chain(more).chain([periodic]);
    let entries = all.flat_map(|(stage, mut e)| {
        e.phase = Span(100_000_000);
        // A ramp starts only when its task has slept for long.
        let longer =
            if stage == "ramp" || stage == "clamped" { Span::from_ms(2000) } else { Span(0) };
        e.duration = e.duration + e.phase + longer;
        [Mode::Free, Mode::Given].map(|mode| {
            let e = e.clone();
            let run: Box<dyn Fn() -> String + Send + Sync> = Box::new(move || of_replay(&e, mode));
            (format!("replay/{}/{stage}", mode.as_str()), run)
        })
    });
    entries.collect()
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/hashes.txt")
}

fn all() -> Vec<Entry> {
    [built_in(), beside(), generated(), mutants(), causes(), replays()]
        .into_iter()
        .flatten()
        .collect()
}

/// Every entry's line, on all cores.
fn lines(entries: Vec<Entry>) -> BTreeMap<String, String> {
    let queue = Mutex::new(entries.into_iter());
    let found = Mutex::new(BTreeMap::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("no thread panics with it").next();
                    let Some((name, run)) = next else { return };
                    let line = run();
                    let before =
                        found.lock().expect("no thread panics with it").insert(name.clone(), line);
                    assert!(before.is_none(), "two entries of the name {name}");
                }
            });
        }
    });
    found.into_inner().expect("no thread panicked with it")
}

#[test]
fn everything_happens_as_it_did() {
    let found = lines(all());
    assert!(found.len() >= 300, "{} experiments", found.len());
    let text: String = found.iter().map(|(name, line)| format!("{name} {line}\n")).collect();
    if std::env::var_os("BLESS").is_some() {
        return std::fs::write(path(), text).expect("corpus/hashes.txt");
    }
    let known = std::fs::read_to_string(path()).expect("corpus/hashes.txt");
    let differ: Vec<String> = known
        .lines()
        .filter(|line| !text.lines().any(|l| l == *line))
        .map(|line| {
            let name = line.split(' ').next().unwrap_or_default();
            format!("{line} (now {})", found.get(name).map_or("missing", |l| l.as_str()))
        })
        .collect();
    let new = found.len() as i64 - known.lines().count() as i64;
    assert!(
        differ.is_empty() && new == 0,
        "{} differ, {new} new:\n{}",
        differ.len(),
        differ.join("\n")
    );
}
