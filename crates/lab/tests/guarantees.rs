//! What a plan calls guaranteed is kept as printed; what is called so is not too little.

#[path = "guarantees/draw.rs"]
#[allow(dead_code, reason = "what the example `guarantees` records with")]
mod draw;

use draw::Case;
use risetime_deploy::admit::Scheduler;
use risetime_deploy::plan::Attr;
use risetime_deploy::promise::{Promise, Tried};
use risetime_lab::deploy::{Asked, plan_tried};
use risetime_model::settings::Value;
use risetime_model::taskset::TaskSet;
use risetime_model::{Needs, Platform, Workload};
use std::sync::Arc;

const RECORD: &str = include_str!("guarantees/record.csv");
const VM_RECORD: &str = include_str!("guarantees/vm.csv");

/// Of the plans called guaranteed none missed a deadline in runs that it had not seen; no proof was contradicted by a run; and of the
/// files that keep with 10 % more runtime at least 90 % are guaranteed.
#[test]
fn the_record_keeps_what_it_says() {
    let head = RECORD.lines().next();
    assert_eq!(head, Some(draw::HEAD));
    let at = |name: &str| draw::HEAD.split(',').position(|n| n == name).expect("a column");
    let rows = draw::rows(RECORD);
    let seeds = |wrong: &dyn Fn(&str) -> bool, of: [&str; 2]| -> Vec<&str> {
        let [first, second] = of.map(at);
        let all = rows.iter().filter(|r| r[first] == "1" && wrong(r[second]));
        all.map(|row| row[0]).collect()
    };
    assert_eq!(seeds(&|n| n != "0", ["guaranteed", "missed"]), [""; 0], "were not kept");
    assert_eq!(seeds(&|n| n == "0", ["proven", "kept"]), [""; 0], "are proven, and missed");
    let able = rows.iter().filter(|r| r[at("more_kept")] == "1");
    let (promised, others): (Vec<_>, Vec<_>) = able.partition(|r| r[at("guaranteed")] == "1");
    let (n, all) = (promised.len(), promised.len() + others.len());
    assert!(10 * n >= 9 * all, "{n} of {all} that could be are guaranteed");
}

/// On stock kernels none of them was late either.
#[test]
fn kernels_keep_what_is_called_guaranteed() {
    assert_eq!(VM_RECORD.lines().next(), Some(draw::VM_HEAD));
    let at = |name: &str| draw::VM_HEAD.split(',').position(|n| n == name).expect("a column");
    let rows = draw::rows(VM_RECORD);
    let missed: Vec<&str> =
        rows.iter().filter(|r| r[at("missed")] != "0").map(|r| r[at("seed")]).collect();
    assert_eq!(missed, [""; 0], "seeds of plans that were late there");
    assert!(rows.len() >= 40, "{}", rows.len());
    let due: u64 = rows.iter().filter_map(|r| r[at("due")].parse::<u64>().ok()).sum();
    assert!(due > 1000 * rows.len() as u64 / 2, "{due}");
}

/// A few drawn anew: what is called guaranteed misses nothing in runs that it has not seen, what is proven nothing in its own. Most of
/// them were late before: at a frequency that the rate limit held (89), by a job that the way out of idle lets in (9), under a reservation
/// with a period longer than its deadline (245) or under the deadline of the job before (1073), behind a kthread whose CPU slept (618).
#[test]
fn what_is_called_guaranteed_is_kept() {
    let mut guaranteed = 0;
    for seed in [5, 9, 89, 245, 618, 1073] {
        let case = Case::of(seed);
        let needs = case.needs(0);
        let tried = case.tried(&needs);
        let (Ok(plan), Some(promise)) = (&tried.plan, &tried.promise) else { continue };
        assert!(promise.kept() || !plan.proven(), "seed {seed}");
        if tried.guaranteed() {
            guaranteed += 1;
            assert_eq!(case.again(&needs, plan, promise.length).1, 0, "seed {seed}");
        }
    }
    assert!(guaranteed >= 4, "{guaranteed}");
}

fn tried(text: &str, platform: &str, asked: &Asked) -> Tried {
    let needs = Needs::parse(text, "n.toml").expect("right");
    let platform = Arc::new(Platform::load(platform).expect("built in"));
    plan_tried(&needs, &platform, asked, &mut |_, _| {}).expect("it can be asked")
}

fn one(period: u64, runtime: u64) -> String {
    format!(
        "schema = 1\nname = \"n\"\n[[task]]\nname = \"a\"\nperiod_us = {period}\nruntime_us = {runtime}\n"
    )
}

fn under(policy: &str, scheduler: Scheduler) -> Asked {
    Asked { policy: policy.into(), schedulers: vec![scheduler], ..Asked::new() }
}

const ROBOT: &str = "schema = 1\nname = \"arm\"\n\
    [[task]]\nname = \"current_loop\"\nperiod_us = 1000\nruntime_us = 150\n\
    [[task]]\nname = \"joint_ctl\"\nperiod_us = 2000\nruntime_us = 500\n\
    [[task]]\nname = \"imu_fuse\"\nperiod_us = 5000\nruntime_us = 900\n\
    [[task]]\nname = \"planner\"\nperiod_us = 20000\nruntime_us = 6000\n\
    [[task]]\nname = \"vision\"\nperiod_us = 33333\nruntime_us = 18000\n\
    [[task]]\nname = \"logger\"\npriority = 5\n";

/// With the governor that the kernel has: each budget has its margin, and nobody is late.
#[test]
fn a_robot_is_guaranteed_with_a_margin() {
    let t = tried(ROBOT, "rpi4", &Asked::new());
    assert!(t.guaranteed(), "{t:#?}");
    let plan = t.plan.expect("a place for all");
    for (task, runtime) in plan.tasks.iter().zip([150, 500, 900, 6000, 18000]) {
        let Attr::Deadline(budget, ..) = task.attr else { panic!("{task:?}") };
        assert!(budget.0 > runtime * 1000, "{task:?}");
    }
    assert!(!plan.floors.is_empty(), "{plan:?}");
    assert!(t.promise.is_some_and(|p| p.governor == "schedutil" && p.trials.len() == 2));
}

/// Asked of kernels with one CPU: 6.12.117 refuses 94 of 100, 7.2.13 and 7.3.4 take it and refuse 96.
#[test]
fn admission_is_that_of_the_kernel() {
    for (policy, ms, takes) in [
        ("linux-6.12", 94, false),
        ("linux-6.12", 85, true),
        ("linux-7.2", 92, true),
        ("linux-7.2", 96, false),
        ("linux-7.3", 92, true),
        ("linux-7.3", 96, false),
    ] {
        let asked = Asked {
            set: vec![("governor".into(), Value::Name("performance".into()))],
            ..under(policy, Scheduler::Edf)
        };
        let t = tried(&one(100_000, 1000 * ms), "rpi4", &asked);
        assert_eq!(t.plan.is_ok(), takes, "{policy} {ms}");
        assert!(
            t.promise.is_none_or(|p| p.trials.iter().all(|t| t.refused.is_none())),
            "{policy} {ms}"
        );
    }
    // 31 % are left of a CPU of capacity 377, and 33 of 100 ms there is 33 %.
    let small = Asked {
        cpus: Some((0..4).map(risetime_kernel::units::CpuId).collect()),
        ..under("linux-7.2", Scheduler::Edf)
    };
    let t = tried(&one(100_000, 33_000), "odroid-xu4", &small);
    assert!(t.plan.is_err());
}

/// What real-time tasks are kept from is counted: throttling, and the fair server.
#[test]
fn nearly_a_whole_cpu_of_fifo_is_no_guarantee() {
    for policy in ["linux-6.1", "linux-6.8", "linux-6.12", "linux-7.2"] {
        for scheduler in [Scheduler::Rm, Scheduler::Dm] {
            let t = tried(&one(20_000, 19_300), "rpi4", &under(policy, scheduler));
            assert!(!t.guaranteed(), "{policy}");
        }
        let auto = Asked { policy: policy.into(), ..Asked::new() };
        assert!(!tried(&one(20_000, 19_500), "rpi4", &auto).guaranteed(), "{policy}");
    }
}

/// rt-audit's form: time by the clock, with a timer in a phase that loops.
#[test]
fn the_need_of_a_runtime_event_is_that_time() {
    let text = r#"{ "tasks": { "task_0": { "policy": "SCHED_DEADLINE", "dl-runtime": 4000, "dl-period": 20000, "cpus": [2, 3],
        "phases": { "phase_0": { "loop": -1, "runtime": 3900, "timer": { "ref": "unique", "period": 20000, "mode": "absolute" } } } } } }"#;
    let set =
        TaskSet::of_workload(&Workload::parse(text, "rt.json").expect("right")).expect("periodic");
    let rpi4 = Arc::new(Platform::load("rpi4").expect("built in"));
    let t =
        plan_tried(&set.needs(), &rpi4, &Asked::new(), &mut |_, _| {}).expect("it can be asked");
    assert!(t.guaranteed() && t.promise.as_ref().is_some_and(Promise::kept), "{t:#?}");
    assert!(t.plan.is_ok_and(|p| p.tasks[0].cpu.0 >= 2), "`cpus` is kept");
}
