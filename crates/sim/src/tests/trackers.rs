//! Contract that every load tracker of the registry has to keep, and what tells them apart.

use super::generate::experiments;
use super::properties::step_through;
use super::{Bytes, experiment};
use crate::run::cause::{Cause, Causes};
use crate::run::setup;
use crate::{Counterfactual, Simulator, draws, tracker};
use proptest::prelude::*;
use risetime_kernel::units::{Instant, KHz, Span, TaskId, Util};
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Workload};
use risetime_trace::{Backend, Event, Memory};

/// `e` with util tracked by another.
fn tracked_by(e: &Experiment, tracker: &str) -> Experiment {
    let policy = e.policy.clone().set_for_all("tracker", Value::Name(tracker.into()));
    let settings = crate::resolve(&e.platform, &policy).expect("settings");
    Experiment { policy, settings, ..e.clone() }
}

/// Steps through it; after each event each answer is within its bounds, and the same again.
fn answers_hold(e: &Experiment) -> Result<(), String> {
    let mut sink = ();
    let mut engine =
        setup::simulation(e, &mut sink, Counterfactual::default()).map_err(|e| e.to_string())?;
    engine.start();
    while engine.step(Instant(e.duration.0)).map_err(|e| e.to_string())? {
        let m = &engine.k.m;
        let Some(tracker) = &m.tracker else { return Ok(()) };
        let at = m.now;
        for task in (0..m.tasks.len() as u32).map(TaskId) {
            let utils = [tracker.task_util(task), tracker.task_util_est(task)];
            if utils.iter().any(|util| *util > Util(1024)) {
                return Err(format!("{at}: {task} of {utils:?}"));
            }
        }
        for (c, cpu) in m.cpus.iter().map(|c| (c, m.id_of(c))) {
            let utils = || (tracker.cpu_util(cpu), tracker.cpu_util_freq(cpu));
            if utils() != utils() {
                return Err(format!("{at}: {cpu} of {:?}, then {:?}", utils(), utils()));
            }
            let most = m.cpu_util_cfs(cpu).max(m.cpu_util_freq(cpu));
            if most > Util(c.capacity.0) {
                return Err(format!("{at}: {cpu} of {most:?}"));
            }
            for task in (0..m.tasks.len() as u32).map(TaskId) {
                if tracker.cpu_util_without(cpu, task) > tracker.cpu_util(cpu) {
                    return Err(format!("{at}: {cpu} with more without {task}"));
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(draws::config(48))]

    #[test]
    fn every_tracker_answers_within_bounds_and_the_same_again(e in experiments()) {
        for d in tracker::REGISTRY {
            let e = tracked_by(&e, d.name);
            answers_hold(&e).map_err(|wrong| TestCaseError::fail(format!("{}: {wrong}", d.name)))?;
            step_through(&e, Counterfactual::default(), &mut ())
                .map_err(|wrong| TestCaseError::fail(format!("{}: {wrong}", d.name)))?;
            let bytes = || {
                let mut bytes = Bytes::default();
                Simulator.run(&e, &mut bytes).expect("a run");
                bytes.0
            };
            prop_assert!(bytes() == bytes(), "{}", d.name);
        }
    }
}

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
    d.fast_switch = true;
    platform
}

pub(super) fn run(platform: Platform, workload: &str, policy: &str, ms: u64) -> Memory {
    let workload = Workload::parse(workload, "trackers.json").expect("a workload");
    let e = experiment(platform, workload, policy, &[], Span::from_ms(ms));
    let mut memory = Memory::new();
    Simulator.run(&e, &mut memory).expect("a run");
    memory
}

/// The time, in ms from `from` on, at which the frequency first was `ghz`.
pub(super) fn first_at(trace: &Memory, from: u64, ghz: u64) -> Option<u64> {
    trace.events().iter().find_map(|(at, event)| match event {
        Event::Freq { freq, .. } if at.0 >= from * 1_000_000 && freq.0 == ghz * 1_000_000 => {
            Some(at.0 / 1_000_000 - from)
        }
        _ => None,
    })
}

/// "PELT is not responsive enough" (BUD17): a busy CPU has the highest frequency after three windows of
/// 10 ms, where a half-life of 32 ms takes half as long again.
#[test]
fn windows_follow_a_busy_cpu_sooner_than_averages() {
    let busy = r#"{"tasks": {"t": {"loop": 1, "sleep": 40000, "runtime": 400000}}}"#;
    let top = |set: &str| {
        let trace = run(one_cpu(), busy, &format!("linux-6.1{set}"), 400);
        first_at(&trace, 40, 4).expect("it gets there")
    };
    let (pelt, walt) = (top(""), top("+tracker=walt+walt_ravg_window=10000000"));
    // At 1 GHz a full window is 256 of 1024, with headroom 320: 2 GHz, then 3, then 4. From 40 to 50 the first.
    assert!((30..=32).contains(&walt), "{walt}");
    assert!(pelt >= walt + 10, "{pelt} of PELT, {walt} of WALT");
    assert!(top("+tracker=walt") > walt + 15, "a window more a step with 20 ms");
    assert!(top("+pelt_half_life=8") < pelt, "the other cure");
}

/// A task that has slept long is new to PELT (unless util_est remembers it), and to WALT what it was.
#[test]
fn demand_outlives_a_sleep() {
    let m1 = Platform::load("m1").expect("built in");
    let workload = r#"{"tasks": {"t": {"loop": -1, "run": 60000, "sleep": 400000}}}"#;
    let woken = |set: &str| {
        let trace = run(m1.clone(), workload, &format!("linux-6.1{set}"), 3000);
        let of = |(_, event): &(Instant, Event)| match *event {
            Event::Wakeup { task: TaskId(0), cpu, .. } => Some(cpu.0 >= 4),
            _ => None,
        };
        trace.events().iter().filter_map(of).next_back().expect("it wakes")
    };
    assert!(woken("+tracker=walt"), "on a big CPU");
}

#[test]
fn a_windows_length_and_statistics_are_settings_of_walt() {
    let platform = one_cpu();
    let resolve = |arg: &str| {
        let policy = risetime_model::Policy::from_arg(arg).expect("a policy");
        crate::resolve(&platform, &policy).map_err(|e| e.to_string())
    };
    let settings = resolve("mainline+tracker=walt").expect("settings");
    assert_eq!(settings.get(&crate::settings::walt::WINDOW), Some(20_000_000));
    let error = resolve("mainline+walt_ravg_window=20000000").expect_err("PELT has none");
    assert!(error.contains("a setting of the tracker `walt`"), "{error}");
    let error = resolve("mainline+tracker=walt+walt_ravg_window=9999999").expect_err("too short");
    assert!(error.contains("from 10000000 to 1000000000 ns"), "{error}");
    let error = resolve("mainline+tracker=walt+sched_window_stats_policy=sum").expect_err("none");
    assert!(error.contains("recent, max, max_recent_avg"), "{error}");
}

#[test]
fn a_result_says_whose_util_it_shows() {
    let notes = |policy: &str| {
        let workload = Workload::load("idle").expect("built in");
        setup::notes(&experiment(one_cpu(), workload, policy, &[], Span::from_ms(1)))
    };
    let says = |policy: &str| notes(policy).iter().any(|note| note.starts_with("tracker="));
    assert!(says("linux-6.1+tracker=walt"));
    assert!(!says("linux-6.1+tracker=pelt") && !says("linux-6.1"));
}

/// What `explain` takes away reaches every tracker: where a slow CPU scales nothing, one full window is full.
#[test]
fn without_invariance_windows_count_time() {
    let busy = r#"{"tasks": {"t": {"loop": 1, "sleep": 40000, "runtime": 400000}}}"#;
    let workload = Workload::parse(busy, "busy.json").expect("a workload");
    let e = experiment(one_cpu(), workload, "linux-6.1+tracker=walt", &[], Span::from_ms(300));
    let top = |without: Causes| {
        let mut memory = Memory::new();
        let other = Counterfactual { without, ..Counterfactual::default() };
        other.run(&e, &mut memory).expect("a run");
        first_at(&memory, 40, 4).expect("it gets there")
    };
    let (with, without) = (top(Causes::NONE), top(Causes::NONE.with(Cause::Invariance)));
    assert!((60..=62).contains(&with) && (20..=22).contains(&without), "{with}, {without}");
}
