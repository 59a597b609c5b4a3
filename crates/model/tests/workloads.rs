//! What rt-app's JSON means.

use risetime_kernel::sched_qos::{SchedQosHint, SchedQosType};
use risetime_kernel::units::{CpuId, Span, Util};
use risetime_model::workload::{Attr, Event, Phase, Repeat, StartAt, Timer, Workload};
use risetime_model::{Platform, workload};

fn parse(text: &str) -> Workload {
    Workload::parse(text, "dir/my.json").unwrap_or_else(|e| panic!("{e}"))
}

fn us(n: u64) -> Span {
    Span::from_us(n)
}

#[test]
fn a_file_as_rt_app_users_write_it() {
    let w = parse(
        r#"/*
            * A camera, and what it wakes
            */
        {
            "tasks" : {
                "camera" : {
                    "instance" : 2, "delay" : 500, "loop" : 3,   // three rounds
                    "cpus" : [2, 0, 2], "priority" : -5, "util_min" : 100,
                    "phases" : {
                        "light" : { "loop" : 10, "run" : 100, "sleep" : 5, "run" : 300,
                                    "timer" : { "ref" : "uniqueA", "period" : 30000 }, },
                        "heavy" : { "run1" : 4000, "runtime_x" : 7, "sleep0" : 9,
                                    "timerB" : { "ref" : "uniqueB", "period" : 40000, "mode" : "relative" },
                                    "timerA" : { "ref" : "uniqueA", "period" : 30000 },
                                    "cpus" : [1], "util_min" : -1, "util_max" : 512, "policy" : "SCHED_OTHER", },
                    },
                },
            },
            "global" : {
                "duration" : 6, "calibration" : 128, "default_policy" : "SCHED_OTHER",
                "pi_enabled" : false, "lock_pages" : true, "logdir" : "./", "ftrace" : "main,task",
            },
        }"#,
    );
    assert_eq!((w.name.as_str(), w.about.as_str()), ("my", "A camera, and what it wakes"));
    assert_eq!((w.duration, w.calibration), (Some(Span::from_ms(6000)), None));
    assert_eq!(w.start_at, StartAt::Creation);
    let unheeded: Vec<&str> = w.without_effect.iter().filter_map(|l| l.split(':').next()).collect();
    assert_eq!(
        unheeded,
        ["`global.calibration`", "`global.lock_pages`", "`global.logdir`", "`global.ftrace`"]
    );

    let timer = |timer, period| Event::Timer { timer: Timer::own(timer), period: us(period) };
    let names: Vec<&str> = w.tasks.iter().map(|t| t.comm.as_str()).collect();
    assert_eq!(names, ["camera-0", "camera-1"]);
    let t = &w.tasks[1];
    assert_eq!((t.delay, t.repeat), (us(500), Repeat::Times(3)));
    assert_eq!(
        t.attr,
        Attr {
            cpus: Some(vec![CpuId(0), CpuId(2)]),
            policy: None,
            nice: Some(-5),
            uclamp_min: Some(Util(100)),
            uclamp_max: None,
            latency_nice: None,
            qos: Vec::new(),
            taskgroup: None,
        }
    );
    assert_eq!(
        t.phases,
        [
            Phase {
                name: "light".into(),
                repeat: Repeat::Times(10),
                events: vec![
                    Event::Run(us(100)),
                    Event::Sleep(us(5)),
                    Event::Run(us(300)),
                    timer(0, 30_000),
                ],
                attr: Attr::default(),
            },
            Phase {
                name: "heavy".into(),
                repeat: Repeat::Times(1),
                events: vec![
                    Event::Run(us(4000)),
                    Event::Runtime { time: us(7), piece: us(32) },
                    Event::Sleep(us(9)),
                    timer(1, 40_000),
                    timer(0, 30_000),
                ],
                attr: Attr {
                    cpus: Some(vec![CpuId(1)]),
                    policy: Some(workload::Policy::Other { slice: None }),
                    nice: Some(0),
                    uclamp_min: None,
                    uclamp_max: Some(Util(512)),
                    latency_nice: None,
                    qos: Vec::new(),
                    taskgroup: None,
                },
            },
        ]
    );
}

#[test]
fn policies_and_priorities_as_rt_app_has_them() {
    use workload::Policy;
    let w = parse(
        r#"{"tasks": {
            "default": {"run": 1},
            "fifo": {"policy": "SCHED_FIFO", "run": 1},
            "slice": {"policy": "SCHED_OTHER", "priority": -3, "dl-runtime": 3000, "run": 1},
            "dl": {"policy": "SCHED_DEADLINE", "dl-runtime": 500, "dl-period": 9000, "run": 1},
            "late": {"policy": "SCHED_DEADLINE", "dl-runtime": 500, "dl-period": 9000,
                     "dl-deadline": 4000, "dl-reclaim": true, "run": 1},
            "phases": {"policy": "SCHED_BATCH", "loop": 1, "phases": {
                "kept": {"run": 1}, "nice": {"priority": 7, "run": 1},
                "rr": {"policy": "SCHED_RR", "priority": 4, "run": 1}, "more": {"priority": 5, "run": 1},
                "back": {"policy": "SCHED_OTHER", "run": 1}, "idle": {"policy": "SCHED_IDLE", "run": 1},
                "high": {"policy": "SCHED_HIGH", "priority": -8, "dl-runtime": 4000, "run": 1}}}
        }, "global": {"default_policy": "SCHED_RR"}}"#,
    );
    let deadline = |deadline, reclaim| Policy::Deadline {
        runtime: us(500),
        deadline: us(deadline),
        period: us(9000),
        reclaim,
    };
    let of = |a: &Attr| (a.policy, a.nice);
    let tasks: Vec<_> = w.tasks.iter().map(|t| of(&t.attr)).collect();
    assert_eq!(
        tasks,
        [
            (Some(Policy::Rr { priority: 10 }), None),
            (Some(Policy::Fifo { priority: 10 }), None),
            (Some(Policy::Other { slice: Some(us(3000)) }), Some(-3)),
            (Some(deadline(9000, false)), None),
            (Some(deadline(4000, true)), None),
            (Some(Policy::Batch { slice: None }), Some(0)),
        ]
    );
    let phases: Vec<_> = w.tasks[5].phases.iter().map(|p| of(&p.attr)).collect();
    assert_eq!(
        phases,
        [
            (None, None),
            (None, Some(7)),
            (Some(Policy::Rr { priority: 4 }), None),
            (Some(Policy::Rr { priority: 5 }), None),
            (Some(Policy::Other { slice: None }), Some(0)),
            (Some(Policy::Idle), Some(0)),
            (Some(Policy::High { slice: Some(us(4000)) }), Some(-8)),
        ]
    );
}

#[test]
fn a_task_without_phases_is_one_phase_that_repeats_as_the_task_does() {
    for (text, repeat) in [
        (r#"{"tasks": {"a": {"run": 5}}}"#, Repeat::Forever),
        (r#"{"tasks": {"a": {"run": 5, "loop": 7}}}"#, Repeat::Times(7)),
        (r#"{"tasks": {"a": {"run": 5, "loop": -1}}}"#, Repeat::Forever),
    ] {
        let w = parse(text);
        assert_eq!(w.tasks[0].repeat, repeat);
        assert_eq!((w.tasks[0].phases.len(), w.tasks[0].phases[0].repeat), (1, Repeat::Times(1)));
        assert_eq!(w.tasks[0].comm, "a", "a single instance has no number");
    }
}

#[test]
fn an_endless_duration_is_no_duration() {
    assert_eq!(parse(r#"{"tasks": {"a": {"run": 5}}, "global": {"duration": -1}}"#).duration, None);
}

#[test]
fn tasks_of_the_same_name_are_all_kept_under_distinct_names() {
    let w = parse(
        r#"{"tasks": {"a": {"run": 1}, "a": {"run": 2}, "a#2": {"run": 3}, "a": {"run": 4},
            "b": {"run": 5, "instance": 2}, "b-1": {"run": 6}, "b": {"instance": 2, "run": 7}}}"#,
    );
    let mut names: Vec<&str> = w.tasks.iter().map(|t| t.comm.as_str()).collect();
    assert_eq!(names, ["a", "a#2", "a#2#2", "a#3", "b-0", "b-1", "b-1#2", "b-0#2", "b-1#3"]);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 9);
}

#[test]
fn an_instance_of_zero_never_starts_and_is_named() {
    let w = parse(r#"{"tasks": {"a": {"run": 1, "instance": 0}, "b": {"run": 1}}}"#);
    assert_eq!(w.tasks.len(), 1);
    assert_eq!(
        w.without_effect,
        ["task `a`: `instance` is 0 and nobody forks it: it never starts"]
    );
}

#[test]
fn a_zero_long_event_is_fine_where_something_else_takes_time() {
    let w = parse(r#"{"tasks": {"a": {"run": 10000, "sleep": 0, "loop": -1}}}"#);
    assert_eq!(w.tasks[0].phases[0].events, [Event::Run(us(10_000)), Event::Sleep(us(0))]);
    // Once is no loop.
    parse(r#"{"tasks": {"a": {"loop": 1, "phases": {"p": {"cpus": [0], "run": 0}}}}}"#);
}

#[test]
fn a_named_timer_is_fine_as_long_as_one_task_has_it() {
    let w = parse(
        r#"{"tasks": {"a": {"phases": {"p": {"timer": {"ref": "tick", "period": 6}},
                                       "q": {"timer": {"ref": "tick", "period": 6}}}}}}"#,
    );
    for phase in &w.tasks[0].phases {
        assert_eq!(phase.events, [Event::Timer { timer: Timer::own(0), period: us(6) }]);
    }
}

#[test]
fn calibration_turns_run_into_full_speed_time_once() {
    let m1 = Platform::load("m1").unwrap_or_else(|e| panic!("{e}"));
    let w = parse(
        r#"{"tasks": {"a": {"run": 1000, "runtime": 1000, "sleep": 1000}},
            "global": {"calibration": "CPU0"}}"#,
    );
    assert_eq!(w.calibration, Some(CpuId(0)));
    let bound = w.bind(&m1).unwrap_or_else(|e| panic!("{e}"));
    // 1 ms at 459 of 1024 is 448.242 µs of full-speed work; only work is rescaled.
    assert_eq!(
        bound.tasks[0].phases[0].events,
        [
            Event::Run(Span(448_242)),
            Event::Runtime { time: us(1000), piece: Span(14_344) },
            Event::Sleep(us(1000))
        ]
    );
    assert_eq!(bound.bind(&m1).as_ref(), Ok(&bound), "a second time changes nothing");
}

#[test]
fn a_deadline_may_be_said_in_rt_app_s_older_names() {
    let of = |keys: &str| {
        let body = format!(r#""policy": "SCHED_DEADLINE", "dl-runtime": 300, {keys} "run": 1"#);
        let w = parse(&format!(r#"{{"tasks": {{"a": {{{body}}}}}}}"#));
        w.tasks[0].attr.policy
    };
    let now = of(r#""dl-deadline": 400, "dl-period": 900,"#);
    assert_eq!(of(r#""deadline": 400, "period": 900,"#), now);
    assert_eq!(of(r#""period": 900, "dl-deadline": 400,"#), now);
    assert_ne!(of(""), now);
}

#[test]
fn what_is_switched_off_is_no_key_without_effect() {
    let of = |global: &str| {
        parse(&format!(r#"{{"tasks": {{"a": {{"run": 1}}}}, "global": {{{global}}}}}"#))
            .without_effect
            .len()
    };
    assert_eq!(of(r#""pi_enabled": false, "lock_pages": false, "ftrace": "none""#), 0);
    assert_eq!(of(r#""pi_enabled": true, "lock_pages": true, "ftrace": "main,task""#), 2);
    assert_eq!(of(r#""logdir": "./", "gnuplot": false, "ftrace": true"#), 2);
}

#[test]
fn a_resource_s_target_is_named_as_without_effect() {
    let w = parse(
        r#"{"resources": {"go": {"type": "signal", "target": "q"}, "q": {"type": "wait"}},
            "tasks": {"a": {"run": 1, "signal": "go"}, "b": {"lock": "m",
                "wait": {"ref": "q", "mutex": "m"}, "unlock": "m"}}}"#,
    );
    assert_eq!(w.objects.conds.len(), 2, "the signal is to a name of its own");
    assert_eq!(w.without_effect.len(), 2, "{:?}", w.without_effect);
    assert!(w.without_effect[1].starts_with("`resources.go.target`: "), "{:?}", w.without_effect);
}

/// rt-app's order: a phase's own CPUs, else its task's, else all; whatever the phase before had.
#[test]
fn a_phase_without_cpus_has_those_of_its_task_again() {
    let m1 = Platform::load("m1").unwrap_or_else(|e| panic!("{e}"));
    let masks = |task: &str, phases: &[&str]| -> Vec<Option<Vec<u32>>> {
        let phases: Vec<String> = phases
            .iter()
            .enumerate()
            .map(|(i, cpus)| format!(r#""p{i}": {{{cpus} "run": 10}}"#))
            .collect();
        let text =
            format!(r#"{{"tasks": {{"a": {{{task} "phases": {{{}}}}}}}}}"#, phases.join(", "));
        let bound = parse(&text).bind(&m1).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(bound.bind(&m1).as_ref(), Ok(&bound), "a second time changes nothing");
        let cpus =
            |p: &workload::Phase| p.attr.cpus.as_ref().map(|c| c.iter().map(|c| c.0).collect());
        bound.tasks[0].phases.iter().map(cpus).collect()
    };
    let (one, two) = (r#""cpus": [1],"#, r#""cpus": [2],"#);
    let all = Some((0..8).collect());
    let only = |cpu| Some(vec![cpu]);
    // Nothing to take back.
    assert_eq!(masks("", &["", ""]), [None, None]);
    assert_eq!(masks(one, &["", ""]), [None, None]);
    assert_eq!(masks(one, &[one, ""]), [only(1), None]);
    // From the phase before it, once.
    assert_eq!(masks(two, &[one, "", ""]), [only(1), only(2), None]);
    assert_eq!(masks("", &[one, "", two]), [only(1), all.clone(), only(2)]);
    // From the last one, where the first comes round again.
    assert_eq!(masks(two, &["", one]), [only(2), only(1)]);
    assert_eq!(masks(r#""loop": 3,"#, &["", one, two]), [all, only(1), only(2)]);
    assert_eq!(masks(r#""loop": 1,"#, &["", one]), [None, only(1)]);
}

#[test]
fn as_many_tasks_as_the_limit_says_are_accepted() {
    let text = |n| format!(r#"{{"tasks": {{"a": {{"run": 1, "instance": {n}}}}}}}"#);
    assert_eq!(parse(&text(workload::MAX_TASKS)).tasks.len(), workload::MAX_TASKS);
    assert!(Workload::parse(&text(workload::MAX_TASKS + 1), "my.json").is_err());
}

#[test]
fn forks_count_as_tasks() {
    let text = |parents: usize, loops: u32| {
        let task = |i| {
            format!(
                r#""p{i}": {{"loop": {loops}, "run": 1, "fork": "c{i}"}}, "c{i}": {{"instance": 0, "run": 1}}"#
            )
        };
        format!(r#"{{"tasks": {{{}}}}}"#, (0..parents).map(task).collect::<Vec<_>>().join(", "))
    };
    assert_eq!(parse(&text(9, 1000)).forked.len(), 9);
    let error = Workload::parse(&text(100, 1000), "my.json").expect_err("too many").to_string();
    assert!(error.ends_with("100 tasks fork 100000 more: more than 10000 tasks in all"), "{error}");
    // One of them is forked 1024 times at most: more end the run.
    assert_eq!(parse(&text(9, u32::MAX)).forked.len(), 9);
    assert!(Workload::parse(&text(10, u32::MAX), "my.json").is_err());
}

#[test]
fn no_deadline_task_forks() {
    let dl = r#""policy": "SCHED_DEADLINE", "dl-runtime": 1000, "dl-period": 10000"#;
    let other = r#""policy": "SCHED_OTHER""#;
    let refused = |task: &str| {
        let text = format!(
            r#"{{"tasks": {{"a": {{{task}}}, "c": {{"instance": 0, "loop": 1, "run": 1}}}}}}"#
        );
        Workload::parse(&text, "my.json").err().map(|e| e.to_string())
    };
    let e = refused(&format!(r#"{dl}, "run": 1, "fork": "c""#)).expect("refused");
    assert!(e.contains("my.json:1:12: task `a` forks as a deadline task"), "{e}");
    let phases = |looped: i32, first: &str, second: &str| {
        refused(&format!(
            r#""loop": {looped}, "phases": {{"x": {{{first} "run": 1, "fork": "c"}}, "y": {{{second}, "run": 1}}}}"#
        ))
    };
    assert_eq!(phases(1, "", dl), None, "not yet");
    assert!(phases(2, "", dl).is_some_and(|e| e.contains("phase `x`")), "the loop comes round");
    assert_eq!(phases(2, &format!("{other},"), dl), None);
}

#[test]
fn the_first_task_is_the_one_created_first() {
    let of = |text: &str| parse(text).first_created();
    let tasks = |a, b, c| {
        format!(
            r#"{{"tasks": {{"a": {{"delay": {a}, "run": 1}}, "b": {{"delay": {b}, "run": 1}}, "c": {{"delay": {c}, "run": 1}}}}}}"#
        )
    };
    assert_eq!((of(&tasks(0, 0, 0)), of(&tasks(5, 2, 2)), of(&tasks(5, 3, 2))), (0, 1, 2));
}

#[test]
fn a_busy_phase_after_others_is_where_a_workload_starts() {
    let built_in = Workload::load("rampup").unwrap_or_else(|e| panic!("{e}"));
    let entry = risetime_model::library::workloads().into_iter().find(|e| e.name == "rampup");
    let text = entry.map_or("", |e| e.text);
    let copy = Workload::parse(text, "dir/other.json").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((copy.start_at, copy.tasks), (StartAt::Phase(1), built_in.tasks));
    let first = parse(r#"{"tasks": {"a": {"phases": {"busy": {"run": 1}, "nap": {"sleep": 1}}}}}"#);
    assert_eq!(first.start_at, StartAt::Creation);
}

#[test]
fn hints_are_one_or_several_and_a_phase_may_give_them() {
    let text = r#"{"tasks": {"a": {
        "sched_qos": {"type": "SCHED_QOS_RAMPUP_MULTIPLIER", "value": 4, "cookie": 0},
        "phases": {"x": {"run": 1, "sched_qos": [{"type": "rampup_multiplier", "value": 0}]},
                   "y": {"run": 1, "sched_qos": []}}}}}"#;
    let w = Workload::parse(text, "w.json").unwrap_or_else(|e| panic!("{e}"));
    let hint = |value| SchedQosHint { kind: SchedQosType::RampupMultiplier, value, cookie: 0 };
    assert_eq!(w.tasks[0].attr.qos, [hint(4)]);
    assert_eq!(w.tasks[0].phases[0].attr.qos, [hint(0)]);
    assert_eq!(w.tasks[0].phases[1].attr.qos, []);
}

/// The events of task `a` of this file.
fn events_of(tasks: &str) -> (Vec<Event>, Workload) {
    let w = parse(&format!(r#"{{"tasks": {{{tasks}}}}}"#));
    (w.tasks[0].phases.iter().flat_map(|p| p.events.clone()).collect(), w)
}

#[test]
fn short_forms_are_spelled_out() {
    use Event::{Broadcast, Lock, Run, Signal, Unlock, Wait};
    let wait = Wait { cond: 0, mutex: 0 };
    let bare = [Lock(0), Signal(0), wait, Unlock(0)];
    let (events, _) = events_of(r#""a": {"sync": {"ref": "c", "mutex": "m"}}"#);
    assert_eq!(events, bare);
    let (events, _) =
        events_of(r#""a": {"lock": "m", "sync": {"ref": "c", "mutex": "m"}, "unlock": "m"}"#);
    assert_eq!(events, bare, "within its mutex it needs none of its own");
    for text in [r#""a": {"suspend": "", "run": 1}"#, r#""a": {"suspend": "a", "run": 1}"#] {
        let (events, w) = events_of(text);
        assert_eq!(events, [Lock(0), wait, Unlock(0), Run(us(1))]);
        assert_eq!((w.objects.mutexes, w.objects.conds), (vec!["a".into()], vec!["a".into()]));
    }
    let (events, _) = events_of(r#""a": {"resume": "b", "run": 1}, "b": {"suspend": ""}"#);
    assert_eq!(events, [Lock(0), Broadcast(0), Unlock(0), Run(us(1))]);
}

#[test]
fn a_name_is_one_object_of_each_kind() {
    let (events, w) = events_of(
        r#""a": {"lock": "x", "wait": {"ref": "x", "mutex": "x"}, "unlock1": "x", "sem_post": "x",
                 "barrier": "x", "signal": "y", "broad": "x"}, "b": {"barrier": "x", "run": 1}"#,
    );
    assert_eq!(
        events,
        [
            Event::Lock(0),
            Event::Wait { cond: 0, mutex: 0 },
            Event::Unlock(0),
            Event::SemPost(0),
            Event::Barrier(0),
            Event::Signal(1),
            Event::Broadcast(0)
        ]
    );
    let barriers = w.objects.barriers;
    assert_eq!((barriers.len(), barriers[0].users), (1, 2), "as often as the file names it");
    assert_eq!(w.objects.conds, ["x", "y"]);
}

#[test]
fn a_timer_is_shared_by_more_than_one_thread_only() {
    let timer = r#""run": 1, "timer": {"ref": "t", "period": 5"#;
    for (text, shared, absolute) in [
        (format!(r#""a": {{{timer}}}}}"#), false, false),
        (format!(r#""a": {{"instance": 2, {timer}}}}}"#), true, false),
        (format!(r#""a": {{{timer}}}}}, "b": {{{timer}, "mode": "absolute"}}}}"#), true, true),
        (format!(r#""a": {{{timer}, "mode": "absolute"}}}}"#), false, true),
        (format!(r#""a": {{"fork": "a", {timer}}}}}"#), true, false),
        (format!(r#""a": {{{}}}}}"#, timer.replace("\"t\"", "\"unique\"")), false, false),
    ] {
        let (events, w) = events_of(&text);
        let timer = events.iter().find_map(|e| match e {
            Event::Timer { timer, .. } => Some(*timer),
            _ => None,
        });
        assert_eq!(timer, Some(Timer { index: 0, shared, absolute }), "{text}");
        assert_eq!(w.objects.timers.len(), usize::from(shared), "{text}");
    }
}

#[test]
fn writing_takes_its_time_by_the_byte_and_the_call() {
    let busy = |global: &str, event: &str| {
        let text =
            format!(r#"{{"tasks": {{"a": {{"run": 1, {event}}}}}, "global": {{{global}}}}}"#);
        parse(&text).tasks[0].phases[0].events[1]
    };
    assert_eq!(busy("", r#""mem": 4000"#), Event::Busy(us(1)));
    assert_eq!(busy("", r#""mem_x": 1"#), Event::Busy(Span(1)), "to the next ns");
    // To /dev/null a call takes no longer for being long; to a file, all of it is copied.
    assert_eq!(busy("", r#""iorun": 4000000"#), Event::Busy(Span(300)));
    assert_eq!(busy(r#""mem_buffer_size": 1000"#, r#""iorun": 4000"#), Event::Busy(Span(1200)));
    assert_eq!(busy(r#""io_device": "f""#, r#""iorun": 4000"#), Event::Busy(Span(1300)));
}

#[test]
fn a_forked_task_is_a_copy_of_one_of_the_file() {
    let (events, w) = events_of(
        r#""a": {"fork": "b", "run": 1, "fork": "b", "fork": "c"},
           "b": {"instance": 0, "cpus": [1], "run": 2}, "c": {"run": 3}"#,
    );
    assert_eq!(events, [Event::Fork(0), Event::Run(us(1)), Event::Fork(0), Event::Fork(1)]);
    let names =
        |tasks: &[workload::TaskSpec]| tasks.iter().map(|t| t.comm.clone()).collect::<Vec<_>>();
    assert_eq!(names(&w.forked), ["b", "c"]);
    assert_eq!(names(&w.tasks), ["a", "c"]);
    assert_eq!(w.forked[0].attr.cpus, Some(vec![CpuId(1)]));
    assert_eq!(w.without_effect, Vec::<String>::new());
}

#[test]
fn what_has_no_effect_is_told() {
    let w = parse(
        r#"{"tasks": {"a": {"instance": 2, "nodes_membind": [0], "barrier": "x", "run": 1}},
            "global": {"gnuplot": true, "frag": 1, "io_device": "/dev/null"}}"#,
    );
    assert_eq!(w.without_effect.len(), 3, "{:?}", w.without_effect);
}

#[test]
fn every_key_is_in_the_page_about_workloads() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/workloads.md");
    let page = std::fs::read_to_string(page).unwrap_or_else(|e| panic!("{e}"));
    let example = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next());
    assert_eq!(parse(example.expect("an example")).tasks.len(), 2);
    // What a message lists is all that there is.
    for unknown in [
        r#"{"nope": 1}"#,
        r#"{"tasks": {"a": {"nope": 1}}}"#,
        r#"{"tasks": {"a": {"timer": {"nope": 1}}}}"#,
        r#"{"tasks": {"a": {"run": 1}}, "taskgroups": {"/a": {"nope": 1}}}"#,
    ] {
        let said = Workload::parse(unknown, "my.json").expect_err(unknown).to_string();
        let known = said.lines().find_map(|l| l.split("known: ").nth(1));
        let keys: Vec<&str> = known.unwrap_or_else(|| panic!("{said}")).split(", ").collect();
        let missing: Vec<_> = keys.iter().filter(|k| !page.contains(&format!("`{k}`"))).collect();
        assert!(keys.len() > 2 && missing.is_empty(), "not in docs/workloads.md: {missing:?}");
    }
}

/// Tasks that wait for each other by a name that is not the same are told of, at their place; tasks
/// that meet are not.
#[test]
fn names_that_do_not_meet_are_doubtful() {
    let doubts = |tasks: &str| -> Vec<String> {
        let w =
            Workload::parse(&format!(r#"{{"tasks": {{{tasks}}}}}"#), "w.json").expect("a workload");
        w.never_meet().iter().map(ToString::to_string).collect()
    };
    let timer = r#""timer": {"ref": "unique", "period": 16600}"#;
    for (tasks, says) in [
        (format!(r#""a": {{"run": 9, "resume": "b", {timer}}}, "b": {{"suspend": "bb", "run": 9}}"#),
         &["task `b`: it waits for \"bb\"", "hint: \"b\"?", "task `a`: it resumes or signals \"b\"", "hint: \"bb\"?"][..]),
        (r#""b": {"suspend", "run": 9}"#.into(), &["task `b`: it waits for \"b\", and no other task"]),
        (r#""b": {"lock": "m", "wait": {"ref": "c", "mutex": "m"}, "unlock": "m", "signal": "c", "run": 9}"#.into(),
         &["it waits for \"c\", and no other task"]),
        (format!(r#""a": {{"run": 9, "sem_post": "s", {timer}}}, "b": {{"sem_wait": "t", "run": 9}}"#),
         &["it waits for semaphore \"t\", and no task posts it", "hint: \"s\"?"]),
        (r#""a": {"run": 9, "barrier": "o"}"#.into(), &["nobody else comes to barrier \"o\""]),
        (r#""a": {"run": 9, "barrier": "o", "barrier": "o"}"#.into(), &["barrier \"o\" waits for 2, and 1 task(s) come"]),
        (r#""a": {"loop": 1, "lock": "m", "run": 9}, "b": {"lock": "m", "run": 9, "unlock": "m"}"#.into(),
         &["task `a`: it locks mutex \"m\" and never unlocks it"]),
    ] {
        let found = doubts(&tasks).join("\n");
        for says in says {
            assert!(found.contains(says), "{tasks}: {found}");
        }
    }
    for fine in [
        format!(r#""a": {{"run": 9, "resume": "b", {timer}}}, "b": {{"suspend", "run": 9}}"#),
        r#""a": {"sem_post": "s", "sem_wait": "s", "run": 9}"#.into(),
        r#""a": {"run": 9, "barrier": "o"}, "b": {"run": 9, "barrier": "o"}"#.into(),
        r#""a": {"run": 9, "fork": "b"}, "b": {"instance": 0, "loop": 1, "suspend": "x", "run": 9, "resume": "x"}"#.into(),
    ] {
        assert_eq!(doubts(&fine), [""; 0], "{fine}");
    }
}
