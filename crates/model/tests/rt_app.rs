//! Files as people have them for rt-app, by what an rt-app makes of them.

use risetime_kernel::units::{Span, Util};
use risetime_model::workload::{Change, Event, FOR_EVER, Policy, Repeat, RtApp};
use risetime_model::{Platform, TaskSet, Workload};

fn us(us: u64) -> Span {
    Span::from_us(us)
}

fn parse(text: &str) -> Workload {
    Workload::parse(text, "w.json").unwrap_or_else(|e| panic!("{e}"))
}

/// The file's global section is `global`.
fn with_global(task: &str, global: &str) -> Workload {
    parse(&format!(r#"{{"tasks": {{"a": {{{task}}}}}, "global": {{{global}}}}}"#))
}

#[test]
fn each_instance_comes_to_a_barrier() {
    let w = parse(
        r#"{"tasks": {"r": {"instance": 3, "run": 1, "barrier": "x"}, "s": {"run": 1, "barrier": "x"}}}"#,
    );
    assert_eq!(w.objects.barriers[0].users, 4);
    assert_eq!((w.without_effect.len(), w.never_meet().len()), (0, 0));
}

#[test]
fn a_clamp_of_minus_one_changes_nothing() {
    let w = parse(
        r#"{"tasks": {"a": {"util_min": 300, "phases": {"p": {"run": 1, "util_min": -1, "util_max": 400}}}}}"#,
    );
    assert_eq!(w.tasks[0].attr.uclamp_min, Some(Util(300)));
    let attr = &w.tasks[0].phases[0].attr;
    assert_eq!((attr.uclamp_min, attr.uclamp_max), (None, Some(Util(400))));
}

#[test]
fn work_of_minus_one_never_ends() {
    let w = parse(
        r#"{"tasks": {"hog": {"loop": 2000, "run": -1, "sleep": 0}}, "global": {"calibration": "CPU0"}}"#,
    );
    assert!(w.tasks[0].is_endless());
    let bound = w.bind(&Platform::load("m1").expect("built in")).expect("it fits");
    assert_eq!(bound.tasks[0].phases[0].events[0], Event::Run(FOR_EVER));
}

#[test]
fn a_chase_through_memory_takes_a_time_that_no_frequency_changes() {
    let chase = r#""memrun_a": {"type": "chase", "size": 1048576, "stride": 64, "pattern": "random", "count": 1000, "ref": "s"}"#;
    let w = with_global(chase, "");
    assert_eq!(w.tasks[0].phases[0].events, [Event::Busy(us(100))]);
    let e = Workload::parse(
        r#"{"tasks": {"a": {"memrun": {"type": "jump", "size": 1, "count": 1}}}}"#,
        "w.json",
    );
    let e = e.expect_err("no such type").to_string();
    assert!(
        e.contains("`memrun`: `type` is \"jump\", wanted \"chase\", \"read\" or \"write\""),
        "{e}"
    );
    let e = Workload::parse(r#"{"tasks": {"a": {"memrun": 5}}}"#, "w.json").expect_err("a number");
    assert!(e.to_string().contains("`memrun`"), "{e}");
}

#[test]
fn runtime_of_a_deadline_task_is_its_reservation_too() {
    let task = r#""policy": "SCHED_DEADLINE", "runtime": 2000, "period": 10000, "deadline": 9000"#;
    let timer = r#""timer": {"ref": "unique", "period": 10000}"#;
    let policy = Policy::Deadline {
        runtime: us(2000),
        deadline: us(9000),
        period: us(10_000),
        reclaim: false,
    };
    let w = with_global(&format!("{task}, {timer}"), "");
    assert_eq!(w.tasks[0].attr.policy, Some(policy));
    assert_eq!(w.tasks[0].phases[0].events[0], Event::Runtime { time: us(2000), piece: us(32) });
    let phases = format!(r#"{task}, "phases": {{"p": {{"run": 5, {timer}}}}}"#);
    let w = with_global(&phases, "");
    assert_eq!((w.tasks[0].attr.policy, w.tasks[0].phases.len()), (Some(policy), 1));
}

#[test]
fn an_unknown_key_of_global_is_told_and_passed_over() {
    let w = with_global(r#""run": 1"#, r#""logsize": 4, "zzz": []"#);
    assert_eq!(
        w.without_effect,
        [
            "`global.logsize`: unknown, and rt-app passes over it; did you mean `log_size`?",
            "`global.zzz`: unknown, and rt-app passes over it"
        ]
    );
}

#[test]
fn a_template_is_filled_in_by_name() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = dir.join("rt-app-template.json");
    let template =
        r#"{"tasks": {"t": {"cpus": [__CPU__], "run": 1}}, "global": {"duration": __DURATION__}}"#;
    std::fs::write(&path, template).expect("a scratch file");
    let load = |changes: &[(&str, &str)]| {
        let change =
            |(key, value): &(&str, &str)| Change { key: (*key).into(), value: (*value).into() };
        let changes: Vec<Change> = changes.iter().map(change).collect();
        Workload::load_changed(path.to_str().expect("UTF-8"), &changes).map_err(|e| e.to_string())
    };
    let e = load(&[("t.run", "5"), ("__CPU__", "1")]).expect_err("one is left");
    assert!(
        e.contains("`__DURATION__` is a placeholder") && e.contains("--fill DURATION=…"),
        "{e}"
    );
    let w = load(&[("t.run", "5"), ("__CPU__", "1"), ("__DURATION__", "7")])
        .expect("all are filled in");
    assert_eq!(
        (w.duration, w.tasks[0].phases[0].events[0]),
        (Some(Span::from_ms(7000)), Event::Run(us(5)))
    );
}

#[test]
fn what_1_0_does_not_know_is_passed_over() {
    let tasks = r#""a": {"loop": 3, "run": 5, "fork": "b", "sem_post": "s", "util_min": 100},
                   "b": {"phases": {"p": {"run": 1, "policy": "SCHED_FIFO", "priority": 5}}}"#;
    let file = |which: &str| {
        parse(&format!(r#"{{"tasks": {{{tasks}}}, "global": {{"rt_app": "{which}"}}}}"#))
    };
    let (old, new) = (file("1.0"), file("2026"));
    assert_eq!(old.tasks[0].phases[0].events, [Event::Run(us(5))]);
    assert_eq!((old.tasks[0].repeat, new.tasks[0].repeat), (Repeat::Forever, Repeat::Times(3)));
    assert_eq!(
        (old.tasks[0].attr.uclamp_min, new.tasks[0].attr.uclamp_min),
        (None, Some(Util(100)))
    );
    assert_eq!(old.tasks[1].phases[0].attr.policy, None);
    assert_eq!(new.tasks[1].phases[0].attr.policy, Some(Policy::Fifo { priority: 5 }));
    assert_eq!(
        (old.without_effect.len(), new.without_effect.len()),
        (6, 0),
        "{:?}",
        old.without_effect
    );
    let wrong =
        Workload::parse(r#"{"tasks": {"a": {"run": 1}}, "global": {"rt_app": "2.0"}}"#, "w.json");
    let wrong = wrong.expect_err("no such rt-app").to_string();
    assert!(wrong.contains("`rt_app` is \"2.0\", wanted \"1.0\" or \"2026\""), "{wrong}");
}

/// Names of all built-in workloads.
fn built_in() -> Vec<&'static str> {
    risetime_model::library::workloads().iter().map(|entry| entry.name).collect()
}

/// What is exported and read again does the same, as far as nothing was said to be lost.
#[test]
fn an_export_reads_back_as_the_same_workload() {
    let platform = Platform::load("pixel6").expect("built in");
    let mut whole = 0;
    for name in built_in() {
        let w = Workload::load(name).expect("built in");
        let Ok(bound) = w.bind(&platform) else { continue };
        let exported = w.exported(RtApp::V2026, Some(&platform));
        let again = Workload::parse(&exported.text, "again.json");
        let again = again.unwrap_or_else(|e| panic!("{name}: {e}\n{}", exported.text));
        if !exported.notes.iter().all(|note| note.contains("thread's name"))
            || !w.objects.timers.is_empty()
        {
            continue;
        }
        let again = again.bind(&platform).unwrap_or_else(|e| panic!("{name}: {e}"));
        let does = |w: &Workload| -> Vec<_> {
            let events = |t: &risetime_model::workload::TaskSpec| -> Vec<_> {
                t.phases.iter().map(|p| (p.repeat, p.events.len(), p.attr.cpus.clone())).collect()
            };
            w.tasks
                .iter()
                .map(|t| (t.comm.clone(), t.repeat, t.attr.nice.unwrap_or(0), events(t)))
                .collect()
        };
        assert_eq!(does(&again), does(&bound), "{name}");
        whole += 1;
    }
    assert!(whole > 10, "{whole}");
}

#[test]
fn an_export_says_what_it_cannot_carry() {
    let w = parse(
        r#"{"tasks": {"a-task-with-a-long-name": {"policy": "SCHED_IDLE", "run": 5, "run": 7, "suspend": "door", "sem_wait": "s"},
            "b": {"run": 9, "resume": "door", "sem_post": "s", "duty": 50, "fork": "c"},
            "c": {"instance": 0, "run": 1}}}"#,
    );
    let old = w.exported(RtApp::V1_0, None);
    for words in [
        "CPU0: name the platform",
        "no SCHED_IDLE",
        "semaphores",
        "`duty`",
        "`fork`",
        "is called \"rt-app\"",
    ] {
        assert!(old.notes.iter().any(|note| note.contains(words)), "{words}: {:?}", old.notes);
    }
    assert!(old.text.contains("\"run\": 5") && old.text.contains("\"run2\": 7"), "{}", old.text);
    assert!(!old.text.contains("suspend") && !old.text.contains("sem_wait"), "{}", old.text);
    let new = w.exported(RtApp::V2026, Some(&Platform::load("m1").expect("built in")));
    assert!(new.text.contains("\"calibration\": \"CPU4\""), "{}", new.text);
    assert!(
        new.text.contains("\"sem_wait\": \"s\"") && new.text.contains("\"fork\": \"c\""),
        "{}",
        new.text
    );
}

/// A set as jlelli/rt-audit generates it: the need of each task is its time on the clock.
#[test]
fn a_set_of_runtimes_has_needs() {
    let w = parse(
        r#"{"tasks": {"task_0": {"policy": "SCHED_DEADLINE", "dl-runtime": 4000, "dl-period": 20000, "dl-deadline": 20000,
            "phases": {"phase_0": {"loop": -1, "runtime": 3900,
                "timer": {"ref": "unique", "period": 20000, "mode": "absolute"}}}}},
            "global": {"default_policy": "SCHED_DEADLINE", "ftrace": "none"}}"#,
    );
    let set = TaskSet::of_workload(&w).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((set.tasks[0].work(), set.tasks[0].period), (us(3900), us(20_000)));
}
