//! What `explain` says has to add up, to be 0 where there is nothing, and to come true.

use crate::draws;
use proptest::prelude::*;
use risetime_analysis::Options;
use risetime_analysis::explain::{About, Explanation, Over};
use risetime_kernel::units::Span;
use risetime_lab::{Request, Why, explain, run};
use risetime_model::{Experiment, Workload};
use risetime_sim::cause::{CAUSES, Cause, Causes};
use risetime_sim::{Counterfactual, Simulator};
use std::sync::Arc;

fn experiment(workload: &str, platform: &str, policy: &str, seconds: f64) -> Experiment {
    let request = Request {
        policies: vec![policy.into()],
        seconds: Some(seconds),
        ..Request::new(workload, platform)
    };
    request.experiments().expect("built in").remove(0)
}

/// The reported burst, whatever it takes.
fn burst(task: Option<&str>) -> Why<'_> {
    Why { task, over: None, budget: Span::from_ms(86_400_000) }
}

fn explained(e: &Experiment) -> Explanation {
    explain(e, burst(None), |_, _| {}).expect("runs")
}

fn share(e: &Explanation, cause: Cause) -> f64 {
    e.causes.iter().find(|c| c.cause == cause.name()).expect("every cause is there").ms
}

fn gain(e: &Explanation, cause: Cause) -> f64 {
    e.causes.iter().find(|c| c.cause == cause.name()).expect("every cause is there").gain_ms
}

/// The debt of the first task's reported burst, as `run` gives it.
fn debt(e: &Experiment, without: Causes) -> f64 {
    let backend = Counterfactual { without, ..Counterfactual::default() };
    let result = run(&backend, e, Options::default(), None).expect("runs").result;
    result.tasks[0].burst.expect("a burst").debt_ms
}

fn assert_adds_up(e: &Explanation, what: &str) {
    let sum: f64 = e.causes.iter().map(|c| c.ms).sum::<f64>() + e.unexplained_ms;
    let debt = e.about.ms();
    assert!((sum - debt).abs() <= 1e-6 * debt.max(1.0), "{what}: {sum} of {debt}");
}

#[test]
fn built_in_experiments_are_explained() {
    for platform in ["m1", "laptop4"] {
        for (workload, seconds) in [("rampup", 1.4), ("periodic", 0.3), ("spinners", 0.2)] {
            for policy in ["linux-6.8", "rfc-v1", "rfc-v1-x2", "mainline+governor=powersave"] {
                let what = format!("{workload} on {platform} under {policy}");
                let e = explained(&experiment(workload, platform, policy, seconds));
                assert_adds_up(&e, &what);
                assert!(e.unexplained_ms.abs() < 0.05, "{what}: {} left", e.unexplained_ms);
            }
        }
    }
}

#[test]
fn a_cause_that_is_not_there_gets_nothing() {
    let e = explained(&experiment("rampup", "m1", "linux-6.8+rate_limit_us=0", 1.4));
    for (cause, acts) in [(Cause::RateLimit, false), (Cause::Clamps, false), (Cause::Opp, true)] {
        let c = e.causes.iter().find(|c| c.cause == cause.name()).unwrap();
        assert_eq!((c.acts, c.ms == 0.0), (acts, !acts), "{c:?}");
    }
    let e = explained(&experiment("rampup", "laptop4", "linux-6.8", 1.4));
    assert_eq!((share(&e, Cause::Margin), share(&e, Cause::Pull)), (0.0, 0.0));
    // With the highest frequency from the start, nothing about frequencies can matter.
    let e = explained(&experiment("rampup", "m1", "linux-6.8+governor=performance", 1.4));
    for cause in [Cause::Opp, Cause::RateLimit, Cause::Transition] {
        assert_eq!(share(&e, cause), 0.0, "{cause:?}");
    }
    assert!(share(&e, Cause::PeltRamp) > 1.0 && share(&e, Cause::Margin) > 1.0, "{e:?}");
}

/// A governor whose worker is a fair task of the same CPU: it goes first where nobody waits, else no frequency would change
/// and all would be the task's own fault. One long burst under each that has such a worker, and the others of their time.
#[test]
fn older_governors_are_explained_without_loose_ends() {
    let policy = "linux-4.5-schedutil-rfc+sampling_rate=20000";
    let others = ["ondemand", "conservative", "interactive", "schedfreq"]
        .map(|governor| format!("linux-4.5-schedutil-rfc+governor={governor}"));
    for policy in others.into_iter().chain([policy.into()]) {
        let mut e = experiment("periodic-2in10", "exynos5800", &policy, 2.0);
        let text = r#"{"tasks": {"burst": {"cpus": [0], "delay": 300000, "loop": -1, "run": 400000,
            "timer": {"ref": "unique", "period": 1000000}}}}"#;
        e.workload = Arc::new(Workload::parse(text, "burst.json").expect("a workload"));
        let e = explained(&e);
        assert_adds_up(&e, &policy);
        assert!(share(&e, Cause::Queueing).abs() < 2.0, "{policy}: {e:?}");
        assert!(share(&e, Cause::Opp) > 1.0 && e.notes.is_empty(), "{policy}: {e:?}");
    }
}

/// What a governor waits for before it looks, and by which steps it climbs, are causes like any other: without all of
/// them nothing is lost but the microseconds that its worker takes. What they are called is that governor's.
#[test]
fn sampling_leaves_nothing_unexplained() {
    let text = r#"{"tasks": {"burst": {"cpus": [0], "delay": 301300, "loop": -1, "run": 40000,
        "timer": {"ref": "unique", "period": 200000}}}}"#;
    let burst_of = |platform: &str, policy: &str| {
        let mut e = experiment("periodic", platform, policy, 1.0);
        e.workload = Arc::new(Workload::parse(text, "burst.json").expect("a workload"));
        e
    };
    for platform in ["rpi4", "hikey620", "laptop4", "server64"] {
        for (policy, label, worker) in [
            ("linux-3.15", "sampling", "transition and worker"),
            ("linux-6.12+governor=ondemand", "sampling", "transition and worker"),
            ("linux-6.12+governor=conservative", "sampling", "transition and worker"),
            ("linux-4.4+governor=interactive", "sampling", "transition and kthread"),
            ("linux-4.4", "rate limit", "transition and kthread"),
            ("linux-4.4-walt", "rate limit", "transition and kthread"),
            ("linux-4.5-schedutil-rfc", "rate limit", "transition and worker"),
        ] {
            let what = format!("{platform}, {policy}");
            let e = explained(&burst_of(platform, policy));
            assert_adds_up(&e, &what);
            assert!(e.unexplained_ms.abs() < 0.05, "{what}: {} of {e:?}", e.unexplained_ms);
            let of = |cause: Cause| e.causes.iter().find(|c| c.cause == cause.name()).unwrap();
            let labels = (of(Cause::RateLimit).label, of(Cause::Transition).label);
            assert_eq!(labels, (label, worker), "{what}");
            let samples = label == "sampling";
            assert_eq!(samples, !of(Cause::Opp).about.contains("headroom"), "{what}");
            assert!(!samples || share(&e, Cause::RateLimit) != 0.0, "{what}: {e:?}");
        }
    }
}

#[test]
fn what_a_cause_saves_is_what_a_run_without_it_saves() {
    let real = experiment("rampup", "m1", "linux-6.8+uclamp_max=800", 1.6);
    let e = explained(&real);
    let before = debt(&real, Causes::NONE);
    assert!((e.about.ms() - before).abs() < 1e-9);
    for known in CAUSES {
        let after = debt(&real, Causes::NONE.with(known.cause));
        let gain = gain(&e, known.cause);
        assert!((before - after - gain).abs() < 0.001, "{}: {gain}", known.name);
    }
}

#[test]
fn ordinary_settings_say_the_same() {
    let debt = |e: &Experiment| {
        let result = run(&Simulator, e, Options::default(), None).expect("runs").result;
        result.tasks[0].burst.expect("a burst").debt_ms
    };
    let real = experiment("rampup", "m1", "linux-6.8", 1.6);
    let e = explained(&real);
    let saved = debt(&real) - debt(&experiment("rampup", "m1", "linux-6.8+rate_limit_us=0", 1.6));
    assert!((gain(&e, Cause::RateLimit) - saved).abs() < 1e-6 && saved > 1.0, "{saved}");

    let mut at_once = real.clone();
    for domain in &mut Arc::make_mut(&mut at_once.platform).domains {
        domain.fast_switch = true;
        domain.opps.iter_mut().for_each(|o| o.latency = Span(0));
    }
    let saved = debt(&real) - debt(&at_once);
    assert!((gain(&e, Cause::Transition) - saved).abs() < 1e-6, "{saved}");

    let boosted = experiment("rampup", "m1", "linux-6.8+uclamp_min=300", 1.6);
    let saved = debt(&boosted) - debt(&real);
    assert!((gain(&explained(&boosted), Cause::Clamps) - saved).abs() < 1e-6 && saved < -1.0);
}

#[test]
fn it_is_the_same_again() {
    let e = experiment("spinners", "m1", "rfc-v1", 0.2);
    assert_eq!(explained(&e), explained(&e));
}

#[test]
fn a_task_can_be_asked_for_by_name() {
    let e = experiment("spinners", "m1", "linux-6.8", 0.2);
    let second = e.workload.tasks[1].comm.clone();
    assert_eq!(explain(&e, burst(Some(&second)), |_, _| {}).unwrap().comm, second);
    let error = explain(&e, burst(Some("nobody")), |_, _| {}).unwrap_err().to_string();
    let last = &e.workload.tasks.last().expect("some").comm;
    assert!(error.contains("no task `nobody`") && error.contains(last), "{error}");
}

fn of_workload(text: &str, seconds: f64) -> Experiment {
    let workload = Arc::new(Workload::parse(text, "drawn").expect("a workload"));
    Experiment { workload, ..experiment("rampup", "m1", "linux-7.2", seconds) }
}

/// A task clamped by its group loses what it loses clamped by itself, to the same causes.
#[test]
fn clamps_of_a_group_are_clamps() {
    for (own, group) in [
        (r#""util_max": 300"#, r#""uclamp_max": 300"#),
        (r#""util_min": 600"#, r#""uclamp_min": 600"#),
    ] {
        let task = r#""loop": 1, "phases": {"p": {"loop": 1, "run": 200000}}"#;
        let own = of_workload(&format!(r#"{{"tasks": {{"a": {{{own}, {task}}}}}}}"#), 0.5);
        let group = of_workload(
            &format!(
                r#"{{"taskgroups": {{"/g": {{{group}}}}}, "tasks": {{"a": {{"taskgroup": "/g", {task}}}}}}}"#
            ),
            0.5,
        );
        let [own, group] = [explained(&own), explained(&group)];
        for e in [&own, &group] {
            let clamps = e.causes.iter().find(|c| c.cause == "clamps").unwrap();
            assert!(clamps.acts && e.unexplained_ms.abs() < 0.05, "{e:?}");
        }
        for known in CAUSES {
            let (a, b) = (share(&own, known.cause), share(&group, known.cause));
            assert!((a - b).abs() < 0.5, "{}: {a} ms by itself, {b} by its group", known.name);
        }
    }
}

/// The file's first task is created last; every command is about the one created first.
#[test]
fn without_names_it_is_about_the_task_created_first() {
    let hog = |name: &str, more: &str| {
        format!(r#""{name}": {{{more} "cpus": [0], "loop": -1, "run": 3000, "sleep": 1000}}"#)
    };
    let text =
        format!(r#"{{"tasks": {{{}, {}}}}}"#, hog("late", r#""delay": 9000,"#), hog("a", ""));
    let e = of_workload(&text, 0.2);
    assert_eq!(explained(&e).comm, "a");
    let without = Causes::NONE.with(Cause::Queueing).with(Cause::IdleExit);
    let backend = Counterfactual { without, ..Counterfactual::default() };
    let result = run(&backend, &e, Options::default(), None).expect("runs").result;
    let waited = |name: &str| result.tasks.iter().find(|t| t.comm == name).unwrap().whole.wait_ms;
    assert!(waited("a") < 0.01 && waited("late") > 10.0, "{result:?}");
}

/// In a run in which nobody waits, bursts that queueing had merged are many: the share is of what the
/// same work lost there, and never more than all of it.
#[test]
fn every_simulation_is_asked_about_the_same_burst() {
    let text = r#"{"tasks": {
        "p": {"cpus": [0], "loop": -1, "run": 9000, "timer": {"ref": "unique", "period": 46000}},
        "hog": {"cpus": [0], "loop": 40, "run": 4000, "sleep": 100, "delay": 100},
        "far": {"cpus": [0], "loop": -1, "run": 300, "timer": {"ref": "unique", "period": 7000}}}}"#;
    let e = explained(&of_workload(text, 0.6));
    assert_adds_up(&e, "merged");
    let missed: Vec<_> = e.notes.iter().filter(|note| note.contains("simulations")).collect();
    assert!(missed.is_empty(), "it is gone through in each of them: {missed:?}");
    for c in &e.causes {
        assert!(c.alone_ms <= e.about.ms() + 1.0, "{c:?} of {:?}", e.about);
        assert!(c.ms >= -1.0, "{c:?}");
    }
    assert!(share(&e, Cause::Queueing) > 1.0, "{e:?}");
}

fn any_experiment() -> impl Strategy<Value = Experiment> {
    let policy = prop::sample::select(vec!["linux-6.8", "mainline", "rfc-v1", "rfc-v1-p08"]);
    let platform = prop::sample::select(vec!["m1", "laptop4"]);
    let limit = prop::sample::select(vec![0, 70, 2000, 10_000]);
    let task = (1..30_000_u32, 0..30_000_u32, 0..5_000_u32, any::<bool>());
    let tasks = prop::collection::vec(task, 1..4);
    let clamps = (0..400_i64, prop::sample::select(vec![400_i64, 700, 1024]));
    (policy, platform, limit, tasks, clamps, any::<bool>(), 0..20_000_u64).prop_map(
        |(policy, platform, limit, tasks, (min, max), clamped, phase)| {
            let task = |(i, (run, sleep, delay, timer)): (usize, &(u32, u32, u32, bool))| {
                let rest = if *timer {
                    format!(r#""timer": {{"ref": "unique", "period": {}}}"#, sleep + 1000)
                } else {
                    format!(r#""sleep": {sleep}"#)
                };
                format!(r#""t{i}": {{"delay": {delay}, "run": {run}, {rest}}}"#)
            };
            let tasks: Vec<String> = tasks.iter().enumerate().map(task).collect();
            let text = format!(r#"{{"tasks": {{{}}}}}"#, tasks.join(", "));
            let workload = Workload::parse(&text, "drawn").expect("a workload");
            let clamps =
                if clamped { format!("+uclamp_min={min}+uclamp_max={max}") } else { String::new() };
            let policy = format!("{policy}+rate_limit_us={limit}{clamps}");
            let mut e = experiment("rampup", platform, &policy, 0.12);
            e.workload = Arc::new(workload);
            e.phase = Span::from_us(phase);
            e
        },
    )
}

/// All activations, the slowest ones, one job: the same ones in every simulation, and what is drawn is near it.
#[test]
fn what_is_done_again_and_again_is_explained() {
    let frames = r#"{
        "tasks": {
            "ui": { "job": { "name": "frame", "tasks": ["render"] }, "loop": -1, "run": 3000, "resume": "render",
                    "timer": { "ref": "unique", "period": 16667 } },
            "render": { "loop": -1, "suspend": "render", "run": 4000 },
            "background": { "instance": 6, "loop": -1, "run": 4000, "sleep": 2000 } } }"#;
    let mut e = experiment("rampup", "pixel6", "linux-7.2", 0.3);
    e.workload = Arc::new(Workload::parse(frames, "frames").expect("a workload"));
    let ask = |task, over, budget_ms| {
        let why = Why { task: Some(task), over: Some(over), budget: Span::from_ms(budget_ms) };
        explain(&e, why, |_, _| {}).expect("runs")
    };
    const ALL: u64 = 1_000_000;
    let total = |e: &Explanation| e.causes.iter().map(|c| c.ms).sum::<f64>() + e.unexplained_ms;
    let run = run(&Simulator, &e, Options::default(), None).expect("runs").result;
    // Who asks about `ui`, which begins the frames, hears of frames: activations are those of `render`.
    let latency = run.latency.iter().find(|l| l.tasks == "render").expect("it runs");
    let jobs = &run.jobs[0];
    for (task, n, mean) in
        [("frame", jobs.done, None), ("render", latency.activations, Some(latency.p50_ms))]
    {
        let all = ask(task, Over::All, ALL);
        assert_adds_up(&all, task);
        let About::Pieces { chosen, of, ms, .. } = all.about.clone() else { panic!("{all:?}") };
        assert_eq!((u64::from(chosen), u64::from(of)), (n, n), "{task}");
        // Without anything in its way it takes its work, 4 ms, in one activation or two; of the two
        // tasks of a frame one still waits for CPUs.
        let work = if task == "frame" { 7.0..ms } else { 2.9..4.6 };
        assert!(work.contains(&all.unexplained_ms) && ms > all.unexplained_ms, "{task}: {all:?}");
        assert!(mean.is_none_or(|p50| (ms - p50).abs() < 0.5 * p50), "{task}: {ms} {mean:?}");
        let worst = ask(task, Over::Worst(0.1), ALL);
        assert!(worst.about.ms() > ms, "{task}");
        let drawn = ask(task, Over::All, 60 * 300);
        assert!(drawn.runs < all.runs && drawn.runs <= 60, "{}", drawn.runs);
        assert!((total(&drawn) - ms).abs() < 1e-6 * ms);
        for (c, exact) in drawn.causes.iter().zip(&all.causes) {
            let near = 1.0 + 4.0 * c.error_ms.unwrap_or(0.0);
            assert!((c.ms - exact.ms).abs() < near, "{task}: {c:?} {exact:?}");
            assert_eq!((c.gain_ms, c.alone_ms), (exact.gain_ms, exact.alone_ms));
        }
    }
    let one = ask("frame", Over::One(3), ALL);
    assert!(matches!(one.about, About::Pieces { chosen: 1, .. }));
    let why = Why { task: Some("frame"), over: Some(Over::One(999)), budget: Span(0) };
    let said = explain(&e, why, |_, _| {}).unwrap_err().to_string();
    assert!(said.contains("--over") && said.contains("999"), "{said}");
}

proptest! {
    #![proptest_config(draws::config(24))]

    /// Whatever runs: the shares add up, what cannot act gets nothing, and without all causes
    /// there is next to no debt.
    #[test]
    fn drawn_experiments_are_explained(e in any_experiment()) {
        let found = explained(&e);
        assert_adds_up(&found, "drawn");
        for c in found.causes.iter().filter(|c| !c.acts) {
            prop_assert_eq!((c.ms, c.gain_ms), (0.0, 0.0));
        }
        let left = found.unexplained_ms;
        prop_assert!(left.abs() <= 0.1, "{} of {} left", left, found.about.ms());
    }
}
