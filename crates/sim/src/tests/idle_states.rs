//! Idle states: the way in, the way out, and those for which others have to be asleep.

use super::experiment;
use crate::Simulator;
use risetime_kernel::units::{CpuId, Instant, Span, TaskId};
use risetime_model::settings::Value;
use risetime_model::{Platform, Workload};
use risetime_trace::{Backend, Event, Memory};

/// Returns a platform of two CPUs of one frequency; `deep`: keys of their deep states.
fn platform(deep: &[&str]) -> Platform {
    let deep: Vec<String> = deep
        .iter()
        .enumerate()
        .map(|(i, keys)| format!(r#"{{ name = "off{i}", power_uw = 10, {keys} }},"#))
        .collect();
    let text = format!(
        r#"schema = 1
name = "two"
about = "two CPUs"
hz = 250
sources = {{ capacity = "estimate", opp = "estimate", idle = "estimate" }}
[[domain]]
cpus = "0-1"
capacity = 1024
opp = [{{ freq_khz = 1000000, power_uw = 100000, latency_ns = 0 }}]
idle = [
  {{ name = "wfi", exit_latency_us = 1, min_residency_us = 1, power_uw = 1000 }},
  {}
]"#,
        deep.concat()
    );
    Platform::parse(&text, "two.toml").expect("a platform")
}

/// A task of CPU 1 that sleeps so many µs again and again.
fn sleeper(us: u64) -> String {
    format!(r#""sleeper": {{"cpus": [1], "loop": -1, "run": 1000, "sleep": {us}}}"#)
}

/// Returns what happens within 400 ms.
fn run(platform: Platform, tasks: &str, set: &[(&str, Value)]) -> Vec<(Instant, Event)> {
    let workload = Workload::parse(&format!(r#"{{"tasks": {{{tasks}}}}}"#), "t").expect("tasks");
    let e = experiment(platform, workload, "linux-7.3", set, Span::from_ms(400));
    let mut trace = Memory::new();
    Simulator.run(&e, &mut trace).expect("runs");
    trace.events().to_vec()
}

/// Lists the state and the length, in µs, of each sleep of CPU 1 after 200 ms that a task of it ended.
fn sleeps(events: &[(Instant, Event)]) -> Vec<(u32, u64)> {
    let (mut asleep, mut all) = (None, Vec::new());
    for (at, event) in events.iter().filter(|(at, _)| at.0 > 200_000_000) {
        match event {
            Event::Idle { cpu: CpuId(1), state: Some(state) } => asleep = Some((*state, at.0)),
            Event::Switch { cpu: CpuId(1), next: Some(_), .. } => {
                all.extend(asleep.take().map(|(state, since)| (state, (at.0 - since) / 1000)));
            }
            _ => {}
        }
    }
    all
}

fn slept(deep: &[&str], us: u64, set: &[(&str, Value)]) -> (u32, u64) {
    let all = sleeps(&run(platform(deep), &sleeper(us), set));
    assert!(all.len() > 5 && all.iter().all(|one| *one == all[0]), "{all:?}");
    all[0]
}

/// A CPU that is woken while it enters its state finishes the entry, then leaves; where a part of the entry can be given up,
/// it is awake by `wakeup_latency_us`.
#[test]
fn an_entry_cannot_be_cut_short() {
    let of = |keys: &str, us| slept(&[&format!("min_residency_us = 100, {keys}")], us, &[]);
    // Long enough for the tick to stop.
    let (state, plain) = of("exit_latency_us = 500", 10_000);
    let timer = plain - 500;
    assert!(state == 1 && (10_000..10_100).contains(&timer), "{state} {plain}");
    let within = of("entry_latency_us = 15000, exit_latency_us = 500", 10_000);
    assert_eq!(within, (1, 15_500));
    let after = of("entry_latency_us = 6000, exit_latency_us = 500", 10_000);
    assert_eq!(after, (1, plain));
    let given_up =
        of("entry_latency_us = 15000, exit_latency_us = 500, wakeup_latency_us = 700", 10_000);
    assert_eq!(given_up, (1, timer + 700));
}

/// Governors see entry and exit as one, `exit_latency`, unless the file says how long a wakeup takes at most: a limit forbids
/// the state that takes longer than that.
#[test]
fn governors_see_entry_and_exit_as_one() {
    let of = |keys: &str| {
        let limit = [("cpu_dma_latency", Value::Int(1000))];
        slept(&[&format!("min_residency_us = 100, {keys}")], 5000, &limit).0
    };
    assert_eq!(of("exit_latency_us = 700"), 1);
    assert_eq!(of("entry_latency_us = 400, exit_latency_us = 700"), 0);
    assert_eq!(of("entry_latency_us = 400, exit_latency_us = 700, wakeup_latency_us = 900"), 1);
}

/// A cluster sleeps while all of its CPUs have asked for it: beside a busy CPU the other one is in its own deepest state, and
/// leaves that.
#[test]
fn a_cluster_sleeps_with_its_last_cpu_only() {
    let own = "min_residency_us = 100, exit_latency_us = 200";
    let cluster = "min_residency_us = 300, entry_latency_us = 50, exit_latency_us = 900";
    let together = format!("{cluster}, together = \"domain\"");
    let busy = format!(r#"{}, "hog": {{"cpus": [0], "loop": -1, "run": 1000}}"#, sleeper(5000));
    let of = |deep: &str, tasks: &str| {
        let all = sleeps(&run(platform(&[own, deep]), tasks, &[]));
        assert!(all.len() > 5 && all.iter().all(|one| *one == all[0]), "{all:?}");
        all[0]
    };
    let alone = of(cluster, &busy);
    // Each CPU for itself: the same beside a busy one, and beside one that sleeps.
    assert_eq!(alone, of(cluster, &sleeper(5000)));
    // The state that is asked for is the same; the way out is that of the state in which it is.
    assert_eq!(of(&together, &sleeper(5000)), alone);
    assert_eq!(of(&together, &busy), (2, alone.1 - 900 + 200));
}

/// The last CPU takes the cluster along: one that has long been asleep is woken within the entry of that.
#[test]
fn the_entry_of_a_cluster_begins_with_its_last_cpu() {
    let own = "min_residency_us = 100, exit_latency_us = 200";
    let cluster = "min_residency_us = 300, entry_latency_us = 4000, exit_latency_us = 900, together = \"domain\"";
    let tasks = r#"
        "sleeper": {"cpus": [1], "loop": -1, "run": 1000, "timer": {"ref": "a", "period": 20000}},
        "other": {"cpus": [0], "loop": -1, "run": 17000, "timer": {"ref": "b", "period": 40000}}"#;
    let all = run(platform(&[own, cluster]), tasks, &[]);
    let first = |from: u64, is: &dyn Fn(&Event) -> bool| {
        all.iter().find(|(at, e)| at.0 > from && is(e)).expect("there is one").0.0
    };
    for n in 0..4 {
        let is_last = |e: &Event| matches!(e, Event::Idle { cpu: CpuId(0), state: Some(2) });
        let last = first(200_000_000 + n * 40_000_000, &is_last);
        let runs = |e: &Event| matches!(e, Event::Switch { next: Some(TaskId(0)), .. });
        // Woken some 2 ms after the last one went to sleep, it waits for the rest of the entry.
        assert_eq!(first(last, &runs) - last, 4_900_000, "{n}");
    }
}

/// A run says where exits vary and which end of the range it takes, and nothing where no file says that they do.
#[test]
fn a_run_says_which_end_of_an_exit_s_range_it_takes() {
    let note = |deep: &str| crate::kernel::cpuidle::notes(&platform(&[deep]));
    assert_eq!(note("exit_latency_us = 700, min_residency_us = 900"), None);
    let said = note("exit_least_us = 90, exit_latency_us = 700, min_residency_us = 900");
    assert_eq!(
        said.expect("a note"),
        "leaving an idle state takes the longest time of its range here, so that wakeups are late at worst: `off0` 90 to 700 µs"
    );
}
