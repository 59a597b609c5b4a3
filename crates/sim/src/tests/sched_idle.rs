//! CPUs that only SCHED_IDLE tasks use: who counts them as idle, and how often they look for more.

use super::spread::platform;
use super::{Bytes, experiment};
use crate::Simulator;
use crate::kernel::placement::fork::idlest_of_group;
use crate::kernel::placement::idle_sibling::sched_idle_rq;
use crate::kernel::placement::{self, Waker};
use crate::run::engine::Simulation;
use crate::state::cpuset::CpuSet;
use crate::state::effects::Effects;
use crate::state::machine::State;
use crate::{Counterfactual, setup};
use risetime_kernel::units::{CpuId, Instant, Span, TaskId};
use risetime_model::settings::Value;
use risetime_model::workload::Policy;
use risetime_model::{Platform, Workload};
use risetime_trace::{Backend, Event, Memory, SwitchOut};

const SPIN: &str = r#""loop": -1, "run": 1000000"#;
const IDLE: &str = r#""policy": "SCHED_IDLE""#;

/// The machine after `ms` of these tasks (rt-app's JSON, without the outer braces).
fn after(
    p: Platform,
    workload: &str,
    kernel: &str,
    ms: u64,
    test: impl FnOnce(&mut Simulation<'_>),
) {
    let workload = Workload::parse(&format!("{{{workload}}}"), "made").expect("a workload");
    let e = super::experiment(p, workload, kernel, &[], Span::from_ms(ms));
    let mut sink = Bytes::default();
    let mut engine =
        setup::simulation(&e, &mut sink, Counterfactual::default()).expect("an engine");
    engine.run(Instant(e.duration.0)).expect("a run");
    test(&mut engine);
}

fn four() -> Platform {
    platform("0-3", "")
}

#[test]
fn only_idle_tasks_and_idle_groups_make_a_cpu_one_that_gives_way() {
    let is_idle = |workload: &str, kernel: &str| {
        let mut found = false;
        after(four(), workload, kernel, 50, |e| found = sched_idle_rq(&e.k.m, CpuId(2)));
        found
    };
    let on = |tasks: &str| format!(r#""tasks": {{{tasks}}}"#);
    let spin = |name: &str, more: &str| format!(r#""{name}": {{"cpus": [2], {more}, {SPIN}}}"#);
    let idle = spin("a", IDLE);
    let nice = spin("b", r#""priority": 19"#);
    let rt = spin("rt", r#""policy": "SCHED_FIFO", "priority": 1"#);
    let grouped = format!(
        r#""taskgroups": {{"/g": {{"idle": 1}}}}, {}"#,
        on(&spin("in", r#""taskgroup": "/g/h""#))
    );
    let within = on(&spin("in", &format!(r#"{IDLE}, "taskgroup": "/g""#)));
    for kernel in ["linux-6.1", "linux-6.12", "linux-7.2", "linux-7.3"] {
        assert!(is_idle(&on(&idle), kernel), "{kernel}");
        assert!(!is_idle(&on(&nice), kernel), "{kernel}");
        assert!(!is_idle(&on(&format!("{idle}, {nice}")), kernel), "{kernel}");
        assert!(!is_idle(&on(&format!("{idle}, {rt}")), kernel), "{kernel}");
        assert!(is_idle(&grouped, kernel), "{kernel}: by a group above its own");
        assert!(is_idle(&within, kernel), "{kernel}: in a group that is not");
        let elsewhere = on(&idle.replace("[2]", "[1]"));
        assert!(!is_idle(&elsewhere, kernel), "{kernel}: nothing queued at all");
    }
}

/// CPU 2 runs a SCHED_IDLE task, CPU 3 a normal one, 0 and 1 are idle.
#[test]
fn a_new_task_prefers_the_cpu_whose_task_gives_way() {
    let tasks = format!(
        r#""tasks": {{"idle": {{"cpus": [2], {IDLE}, {SPIN}}}, "spin": {{"cpus": [3], {SPIN}}},
            "new": {{"delay": 1000000, {SPIN}}}}}"#
    );
    let all = CpuSet::first(4);
    let chosen = |new: Policy, kernel: &str, among: &CpuSet| {
        let mut cpu = CpuId(9);
        after(four(), &tasks, kernel, 50, |e| {
            e.k.m.task_mut(TaskId(2)).sched.policy = new;
            cpu = idlest_of_group(&e.k.m, TaskId(2), among, CpuId(0));
        });
        cpu.0
    };
    for kernel in ["linux-6.1", "linux-6.12", "linux-7.2", "linux-7.3"] {
        assert_eq!(chosen(Policy::default(), kernel, &all), 2, "{kernel}");
        let without: CpuSet = [0, 1, 3].into_iter().map(CpuId).collect();
        assert!(chosen(Policy::default(), kernel, &without) < 2, "{kernel}: an idle one");
    }
    // One of SCHED_IDLE itself would have to share it: until 7.0 it did.
    assert_eq!(chosen(Policy::Idle, "linux-6.12", &all), 2);
    assert!(chosen(Policy::Idle, "linux-7.2", &all) < 2);
}

#[test]
fn a_task_of_the_idle_policy_wakes_beside_its_like_until_7_0() {
    let woken_on = |policy: Policy, kernel: &str| {
        let tasks = format!(
            r#""tasks": {{"spin": {{"cpus": [2], {IDLE}, {SPIN}}},
                "later": {{"delay": 1000000, {SPIN}}}}}"#
        );
        let mut cpu = CpuId(9);
        after(four(), &tasks, kernel, 50, |e| {
            let later = e.k.m.task_mut(TaskId(1));
            (later.cpu, later.sched.policy) = (CpuId(2), policy);
            let mut fair = (placement::find("fair").make)(
                &e.k.m.platform,
                &risetime_model::Settings::default(),
            );
            let view = placement::PlacementView { machine: &e.k.m };
            cpu = fair.wake(&view, TaskId(1), Waker::timer(CpuId(2)), &mut Effects::default()).cpu;
        });
        cpu.0
    };
    assert_eq!(woken_on(Policy::Idle, "linux-6.12"), 2);
    assert_ne!(woken_on(Policy::Idle, "linux-7.2"), 2);
    assert_eq!(woken_on(Policy::default(), "linux-7.2"), 2, "it preempts what is there");
}

#[test]
fn a_cpu_of_idle_tasks_looks_for_work_as_often_as_an_idle_one() {
    let jiffies_between_looks = |policy: &str| {
        let tasks = format!(r#""tasks": {{"a": {{"cpus": [1], {policy} {SPIN}}}}}"#);
        let mut wait = 0;
        after(platform("0-1", ""), &tasks, "linux-7.2", 3000, |e| {
            let c = e.k.m.cpu(CpuId(1));
            let d = &c.sched_domains[0];
            // Two CPUs: 2 to 4 ms, 16 times that while busy; one jiffy less then.
            assert!([2, 4].contains(&d.balance_interval), "{} ms", d.balance_interval);
            wait = c.next_balance - d.last_balance;
        });
        wait
    };
    assert_eq!(jiffies_between_looks(&format!("{IDLE},")), 1);
    assert!([7, 15].contains(&jiffies_between_looks("")), "{}", jiffies_between_looks(""));
}

/// CPU 1 is left with a SCHED_IDLE task: it looks at the next tick, not when its long interval ends.
#[test]
fn a_cpu_left_to_idle_tasks_looks_at_once() {
    let jiffies_to_look = |left: &str| {
        let tasks = format!(
            r#""tasks": {{"left": {{"cpus": [1], {left} {SPIN}}},
                "ends": {{"cpus": [1], "loop": 1, "runtime": 50000}}}}"#
        );
        let mut wait = (0, 0);
        after(platform("0-1", ""), &tasks, "linux-7.2", 1, |e| {
            while e.k.m.task(TaskId(1)).state != State::Exited {
                wait.0 = e.k.m.cpu(CpuId(1)).next_balance.saturating_sub(e.k.m.jiffies());
                assert!(e.step(Instant(1_000_000_000)).expect("a run"), "it never ends");
            }
            wait.1 = e.k.m.cpu(CpuId(1)).next_balance.saturating_sub(e.k.m.jiffies());
        });
        wait
    };
    let (before, after) = jiffies_to_look(&format!("{IDLE},"));
    assert!(before > 1 && after == 0, "{before} jiffies before, {after} after");
    let (before, after) = jiffies_to_look("");
    assert!(before > 1 && after == before, "{before} jiffies before, {after} after");
}

/// With lazy preemption a SCHED_IDLE task is charged for the time from a wakeup to the switch away from it, 341 times as
/// fast as one of nice 0, and has its next turn so much later; else the look at the clock in between is left out.
#[test]
fn lazy_preemption_charges_an_idle_task_for_the_way_to_the_switch() {
    let turns = |preempt: &str, ns: i64| {
        let tasks = r#"{"tasks": {
            "t": {"instance": 8, "loop": -1, "run": 5333, "timer": {"ref": "unique", "period": 7777}},
            "hog": {"instance": 5, "policy": "SCHED_IDLE", "loop": -1, "run": 3000}},
            "global": {"calibration": "CPU0"}}"#;
        let workload = Workload::parse(tasks, "t").expect("tasks");
        let set = [("preempt", Value::Name(preempt.into())), ("preempt_delay_ns", Value::Int(ns))];
        let platform = Platform::load("hikey620").expect("built in");
        let e = experiment(platform, workload, "linux-7.3", &set, Span::from_ms(800));
        let mut trace = Memory::new();
        Simulator.run(&e, &mut trace).expect("runs");
        let taken = |(_, event): &&(Instant, Event)| match event {
            Event::Switch {
                prev: Some((prev, SwitchOut::Preempted)), next: Some(next), ..
            } => prev.0 < 8 && (8..13).contains(&next.0),
            _ => false,
        };
        trace.events().iter().filter(taken).count()
    };
    // 16 µs are 5.5 ms of its virtual time: more than the other's 5.3.
    let [never, lazy, full] = [turns("lazy", 0), turns("lazy", 16_000), turns("full", 16_000)];
    assert!(lazy * 5 < never, "{never} turns of SCHED_IDLE tasks, {lazy} if they are charged");
    assert!(full * 5 > never * 4, "{never} and {full}");
}
