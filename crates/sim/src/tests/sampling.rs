//! `ondemand` and `conservative`: when they sample, what they make of it, and who does the work.

use super::experiment;
use super::generate::experiments;
use super::properties::run_checked;
use crate::{Simulator, draws};
use proptest::prelude::*;
use risetime_kernel::units::{Instant, KHz, Span, TaskId};
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Workload};
use risetime_trace::{Backend, Event, Memory};

/// A platform of one CPU of 1, 2, 3 and 4 GHz, a tick each millisecond, that changes at once.
pub(super) fn one_cpu() -> Platform {
    let mut platform = Platform::load("hikey620").expect("built in");
    platform.hz = 1000;
    platform.domains[0].cpus.truncate(1);
    let d = &mut platform.domains[0];
    d.opps.truncate(4);
    for (opp, ghz) in d.opps.iter_mut().zip(1..) {
        (opp.freq, opp.latency) = (KHz(ghz * 1_000_000), Span(0));
    }
    platform
}

pub(super) fn run(policy: &str, set: &[(&str, Value)], workload: &str, ms: u64) -> Memory {
    let workload = Workload::parse(workload, "sampling.json").expect("a workload");
    let e = experiment(one_cpu(), workload, policy, set, Span::from_ms(ms));
    let mut memory = Memory::new();
    Simulator.run(&e, &mut memory).expect("a run");
    memory
}

/// The workload's task, and the worker.
const TASK: TaskId = TaskId(0);
const WORKER: TaskId = TaskId(1);

/// Lists which task runs from when on, at how many GHz.
fn spells(trace: &Memory) -> Vec<(Instant, u64, Option<TaskId>)> {
    let (mut ghz, mut on) = (0, None);
    let mut all = Vec::new();
    for (at, event) in trace.events() {
        match event {
            Event::Freq { freq, .. } => ghz = freq.0 / 1_000_000,
            Event::Switch { next, .. } => on = *next,
            _ => continue,
        }
        all.push((*at, ghz, on));
    }
    all
}

/// Lists when the frequency changed, in ms, and to how many GHz.
pub(super) fn freqs(trace: &Memory) -> Vec<(u64, u64)> {
    let freq = |(at, e): &(Instant, Event)| match e {
        Event::Freq { freq, .. } => Some((at.0 / 1_000_000, freq.0 / 1_000_000)),
        _ => None,
    };
    trace.events().iter().filter_map(freq).collect()
}

/// Counts the changes of frequency after `from`.
pub(super) fn changes(trace: &Memory, from: Span) -> usize {
    freqs(trace).iter().filter(|(ms, _)| *ms > from.0 / 1_000_000).count()
}

/// The time that the task ran at `ghz` in each `period`, in µs.
pub(super) fn at(trace: &Memory, ghz: u64, period: Span, periods: usize) -> Vec<u64> {
    let all = spells(trace);
    let mut us = vec![0; periods];
    for pair in all.windows(2) {
        let (from, to) = (pair[0].0, pair[1].0);
        if (pair[0].1, pair[0].2) == (ghz, Some(TASK)) {
            us[((from.0 / period.0) as usize).min(periods - 1)] += to.since(from).0 / 1000;
        }
    }
    us
}

/// Busy for 60 ms, asleep for 100 ms: the load before the sleep was 100 %.
const BURSTS: &str =
    r#"{"tasks": {"t": {"loop": -1, "runtime": 60000, "timer": {"ref": "a", "period": 160000}}}}"#;

#[test]
fn a_sleep_costs_a_sampling_period_at_the_lowest_frequency_unless_the_load_is_copied() {
    let at_lowest = |after: &str| {
        let set =
            [("load_after_idle", Value::Name(after.into())), ("sampling_rate", Value::Int(10_000))];
        let trace = run("linux-7.2+governor=ondemand", &set, BURSTS, 1600);
        at(&trace, 1, Span::from_ms(160), 10)
    };
    for us in &at_lowest("computed")[1..] {
        assert!((9_900..14_000).contains(us), "{us} µs at 1 GHz");
    }
    for after in ["copy", "full"] {
        assert_eq!(at_lowest(after)[1..], [0; 9], "{after}");
    }
}

/// Commit "Be friendly towards latency-sensitive bursty workloads": the load of the burst is not copied for ever.
#[test]
fn a_copied_load_is_not_copied_again() {
    let workload = r#"{"tasks": {"t": {"phases": {
        "burst": {"runtime": 60000, "sleep": 100000},
        "visits": {"loop": 9, "runtime": 1000, "sleep": 50000}}}}}"#;
    let fast = |after: &str| {
        let set =
            [("load_after_idle", Value::Name(after.into())), ("sampling_rate", Value::Int(10_000))];
        let trace = run("linux-7.2+governor=ondemand", &set, workload, 600);
        at(&trace, 4, Span::from_ms(600), 1)[0]
    };
    let (computed, copied, full) = (fast("computed"), fast("copy"), fast("full"));
    // The first visit is as fast as the burst, none after it; `full` has all of them fast.
    assert!((500..1_600).contains(&(copied - computed)), "{computed} {copied}");
    assert!(full - computed > 5 * (copied - computed), "{computed} {copied} {full}");
}

/// S. Muckle's mail of 3 March 2016 quotes it: 3 ms of work every 9 ms, and the frequency toggles.
#[test]
fn ondemand_toggles_on_a_steady_task() {
    let workload =
        r#"{"tasks": {"t": {"loop": -1, "run": 3000, "timer": {"ref": "a", "period": 9000}}}}"#;
    let changes = |governor: &str, set: &[(&str, Value)]| {
        let policy = format!("linux-7.2+governor={governor}");
        changes(&run(&policy, set, workload, 2000), Span::from_ms(1000))
    };
    let sampled = changes("ondemand", &[("sampling_rate", Value::Int(10_000))]);
    assert!(sampled > 20, "{sampled}");
    assert_eq!(changes("schedutil", &[]), 0, "util is invariant");
}

#[test]
fn conservative_climbs_a_step_at_a_time() {
    let set = [("sampling_rate", Value::Int(10_000)), ("freq_step", Value::Int(25))];
    let busy = r#"{"tasks": {"t": {"loop": -1, "runtime": 1000000}}}"#;
    let trace = run("linux-7.2+governor=conservative", &set, busy, 200);
    let freqs = freqs(&trace);
    let steps: Vec<u64> = freqs.windows(2).map(|w| w[1].0 - w[0].0).skip(1).collect();
    assert_eq!(freqs.iter().map(|(_, ghz)| *ghz).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(steps.iter().all(|ms| (10..=11).contains(ms)), "{freqs:?}");
}

#[test]
fn the_work_is_a_fair_task_of_the_cpu_and_does_not_come_more_often_than_the_sampling_rate() {
    let set = [("sampling_rate", Value::Int(20_000)), ("sugov_work_ns", Value::Int(100_000))];
    let trace = run("linux-7.2+governor=ondemand", &set, BURSTS, 800);
    let all = spells(&trace);
    let works: Vec<Instant> = all
        .windows(2)
        .filter(|w| w[0].2 != w[1].2 && w[1].2 == Some(WORKER))
        .map(|w| w[1].0)
        .collect();
    assert!(works.len() >= 15, "{works:?}");
    // It waits for its turn, and the next sample counts from when it was asked for.
    assert!(works.windows(2).all(|w| w[1].since(w[0]) > Span::from_ms(16)), "{works:?}");
}

#[test]
fn time_of_nice_tasks_need_not_count() {
    let workload = r#"{"tasks": {"t": {"loop": -1, "runtime": 1000000, "priority": 10}}}"#;
    let highest = |ignored: i64| {
        let set = [("ignore_nice_load", Value::Int(ignored))];
        let trace = run("linux-7.2+governor=ondemand", &set, workload, 500);
        at(&trace, 4, Span::from_ms(500), 1)[0] / 1000
    };
    assert!(highest(0) > 450 && highest(1) == 0, "{} {}", highest(0), highest(1));
}

#[test]
fn powersave_bias_shares_a_period_between_two_frequencies() {
    let set = [("powersave_bias", Value::Int(125)), ("sampling_rate", Value::Int(8_000))];
    let busy = r#"{"tasks": {"t": {"loop": -1, "runtime": 10000000}}}"#;
    let trace = run("linux-7.2+governor=ondemand", &set, busy, 2000);
    // 12.5 % less than 4 GHz: half the time at 4, half at 3.
    let [three, four] = [3, 4].map(|ghz| at(&trace, ghz, Span::from_ms(2000), 1)[0]);
    assert!(three.abs_diff(four) < 100_000 && three + four > 1_900_000, "{three} {four}");
}

#[test]
fn thresholds_that_cross_are_refused() {
    let policy = |set: &str| {
        let policy =
            risetime_model::Policy::from_arg(&format!("mainline+governor=conservative{set}"));
        crate::resolve(&one_cpu(), &policy.expect("a policy")).map_err(|e| e.to_string())
    };
    assert!(policy("+down_threshold=79").is_ok() && policy("+up_threshold=21").is_ok());
    let refused = policy("+down_threshold=80").unwrap_err();
    assert!(
        refused.contains("`down_threshold` is 80 %, not less than `up_threshold`, 80 %"),
        "{refused}"
    );
    assert!(policy("+up_threshold=20").unwrap_err().contains("up_threshold"));
}

/// All but schedutil, which other tests are about, and those that do not look.
const OTHERS: [&str; 5] =
    ["ondemand", "conservative", "schedutil-2016", "interactive", "schedfreq"];

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 60, ..draws::config(48) })]

    #[test]
    fn nothing_impossible_happens_under_other_governors(
        e in experiments(),
        governor in prop::sample::select(&OTHERS[..]),
        profile in prop::sample::select(crate::NOISE_PROFILES),
        sampling in prop::sample::select(&["scheduler", "timer"][..]),
        invariance in prop::sample::select(&["yes", "no"][..]),
        seed in any::<u64>(),
    ) {
        let mut policy = e.policy.clone();
        let of_others = |p: &&risetime_model::settings::Group| {
            p.owner.is_some_and(|(kind, name)| kind == "governor" && name != governor)
        };
        for param in crate::catalogue().groups.iter().filter(of_others).flat_map(|g| g.params) {
            policy.set.remove(param.name);
        }
        let set = |policy: risetime_model::Policy, name: &str, to: &str| {
            policy.set_for_all(name, Value::Name(to.into()))
        };
        let policy = set(policy, "governor", governor);
        let policy = set(set(policy, "noise", profile), "freq_invariance", invariance);
        let samples = matches!(governor, "ondemand" | "conservative");
        let policy = if samples { set(policy, "sampling", sampling) } else { policy };
        let settings = crate::resolve(&e.platform, &policy).expect("settings");
        run_checked(&Experiment { policy, settings, seed, ..e })?;
    }
}
