//! Threads that belong to no workload: who changes frequencies, and where; who creates another trace's tasks.

use super::classes::{Runs, cpus};
use super::experiment;
use crate::replay::{Creator, Image, Turn};
use crate::run::setup;
use crate::{Counterfactual, Replay, Simulator};
use risetime_kernel::units::{CpuId, Span, TaskId};
use risetime_model::{Platform, Workload};
use risetime_trace::{Backend, Event, Memory};

fn slow(n: usize) -> Platform {
    let mut platform = cpus(n);
    platform.domains.iter_mut().for_each(|d| d.fast_switch = false);
    platform
}

/// Lists where the thread of each one-CPU policy may run.
fn allowed(policy: &str) -> Vec<Vec<u32>> {
    let tasks = r#"{"tasks": {"t": {"loop": -1, "run": 1000, "sleep": 1000}}}"#;
    let workload = Workload::parse(tasks, "t").expect("a workload");
    let e = experiment(slow(4), workload, policy, &[], Span::from_ms(1));
    let mut nobody = ();
    let simulation = setup::simulation(&e, &mut nobody, Counterfactual::default()).expect("one");
    let m = &simulation.k.m;
    let kthreads = m.domains.iter().filter_map(|d| d.kthread);
    kthreads.map(|t| m.task(t).allowed.iter().map(|cpu| cpu.0).collect()).collect()
}

/// `kthread_bind_mask`; since 6.13 only where one CPU cannot change another's frequency, and since 7.0 what is not bound is
/// allowed every CPU.
#[test]
fn the_kthread_of_a_policy_may_leave_its_cpus_since_7_0() {
    for policy in ["linux-4.14", "linux-6.1", "linux-6.12"] {
        assert_eq!(allowed(policy), [[0], [1], [2], [3]], "{policy}");
    }
    for policy in ["linux-7.2", "linux-7.3"] {
        assert_eq!(allowed(policy), [[0, 1, 2, 3]; 4], "{policy}");
    }
    // That of the governor before it changes all frequencies, and each is bound here (`cfinteractive`).
    assert_eq!(allowed("linux-7.2+governor=interactive"), [[0], [1], [2], [3]]);
}

/// The bandwidth that is reserved when a simulation begins, and that of CPU 0 that may be
/// reclaimed, in 2²⁰ths.
fn reserved(policy: &str) -> (u64, u64) {
    let tasks = r#"{"tasks": {"t": {"loop": -1, "run": 1000, "sleep": 1000}}}"#;
    let workload = Workload::parse(tasks, "t").expect("a workload");
    let e = experiment(slow(4), workload, policy, &[], Span::from_ms(1));
    let mut nobody = ();
    let simulation = setup::simulation(&e, &mut nobody, Counterfactual::default()).expect("one");
    (simulation.k.m.classes.total_bw, simulation.k.m.cpus[0].dl.extra_bw)
}

/// `dl_add_task_root_domain` counts schedutil's threads, 1 of 10 ms each, up to 6.14; 6.12 forgets the fair class's servers, 5 % of
/// a CPU each, and has taken them from what may be reclaimed before. What is reserved is what the virtual machines' kernels
/// showed, four times 104857 and four times 52428.
#[test]
fn a_rebuild_of_the_domains_counts_the_kthreads_up_to_6_14() {
    let all = 996_147;
    assert_eq!(reserved("linux-6.1"), (419_428, all - 4 * 26_214));
    assert_eq!(reserved("linux-6.12"), (419_428, all - 4 * 13_107 - 4 * 26_214));
    // From 7.2 on real-time tasks may have all of a second (`sysctl_sched_rt_runtime`).
    for policy in ["linux-7.2", "linux-7.3"] {
        assert_eq!(reserved(policy), (209_712, (1 << 20) - 4 * 13_107), "{policy}");
    }
    assert_eq!(reserved("linux-6.1+governor=performance"), (0, all));
    assert_eq!(reserved("linux-6.12+governor=performance"), (0, all - 4 * 13_107));
    // Nobody rebuilt what is reserved before 5.4.
    assert_eq!(reserved("linux-4.14").0, 0);
}

/// Runs tasks that a thread of CPU 0 creates, each on the CPU on which the thread then is.
fn created_by_a_thread(machine: Platform, tasks: &str, policy: &str, on: &[(u32, u32)]) -> Runs {
    let workload = Workload::parse(tasks, "t").expect("a workload");
    let (e, mut runs) =
        (experiment(machine, workload, policy, &[], Span::from_ms(2000)), Runs::default());
    let turn = |creates: Option<(u32, u32)>| Turn {
        wakes: Span(0),
        runs: Span::from_us(200),
        creates: creates.map(|(child, cpu)| (TaskId(child), CpuId(cpu))),
    };
    let creator = Creator {
        cpu: CpuId(0),
        slice: Span::from_us(100),
        before: Span(0),
        turns: on.iter().map(|one| turn(Some(*one))).chain([turn(None)]).collect(),
    };
    let image = Some(Image { creator: Some(creator), ..Image::default() });
    Replay { image, ..Replay::default() }.run(&e, &mut runs).expect("runs");
    runs
}

/// The time at which the third of three real-time tasks of one CPU is created, in ms, by a thread
/// that only a deadline server lets in while the first two take turns.
fn third_is_created(policy: &str) -> u64 {
    let tasks = r#"{"tasks": {"r": {"instance": 3, "cpus": [0], "policy": "SCHED_RR", "priority": 10, "loop": -1,
                    "run": 400000, "sleep": 150000}}}"#;
    created_by_a_thread(cpus(1), tasks, policy, &[(1, 0), (2, 0)]).created("r-2") / 1_000_000
}

/// The thread of the agent is bound to the first CPU, and with that what it creates first, until that has said itself where it
/// may run: a real-time task is not pushed away, but makes the thread wait.
#[test]
fn the_first_task_begins_on_the_cpu_of_its_creator() {
    let tasks = r#"{"tasks": {"first": {"policy": "SCHED_FIFO", "loop": -1, "run": 5000, "sleep": 50000},
                              "other": {"loop": -1, "run": 1000, "sleep": 1000}}}"#;
    for policy in ["linux-6.1", "linux-6.12", "linux-7.3"] {
        let policy = format!("{policy}+governor=performance");
        let runs = created_by_a_thread(cpus(2), tasks, &policy, &[(0, 0), (1, 0)]);
        let us = runs.created("other") / 1000;
        assert!((5_000..5_800).contains(&us), "{policy}: {us}");
    }
}

/// A thread that creates a task that may not run on its CPU moves to one of that task's CPUs: there
/// it is in the way.
#[test]
fn a_task_is_created_from_one_of_its_own_cpus() {
    let tasks = r#"{"tasks": {"first": {"cpus": [0], "loop": -1, "run": 100, "sleep": 1000},
                              "other": {"cpus": [1, 2], "loop": -1, "run": 100, "sleep": 1000}}}"#;
    for (on, goes_to) in [(1, 2), (2, 1)] {
        for policy in ["linux-6.1", "linux-6.12", "linux-7.3"] {
            let runs = created_by_a_thread(cpus(4), tasks, policy, &[(0, 0), (1, on)]);
            let began = runs.moves.iter().find(|(task, ..)| *task == TaskId(1)).map(|m| m.1);
            assert_eq!(began, Some(CpuId(goes_to)), "{policy}, from CPU {on}");
        }
    }
}

/// A task that rises to a real-time policy is asked for its CPU since 7.0, and waits behind those
/// that are there.
#[test]
fn who_creates_a_real_time_task_waits_for_its_turn_since_7_0() {
    let (before, since) = (third_is_created("linux-6.12"), third_is_created("linux-7.3"));
    assert!((950..955).contains(&before), "within the server's time: {before}");
    // Two slices of 100 ms come first, or what is left of them.
    assert!((1000..1200).contains(&since), "{since}");
}

/// A deadline task that wakes an idle CPU raises the frequency, and the irq work for that is done before the CPU picks: the
/// task goes first by its deadline, and pushes the policy's thread, which waits beside it, to an idle CPU (as seen on 6.12 and 7.3).
#[test]
fn a_deadline_task_that_wakes_an_idle_cpu_pushes_the_kthread_away() {
    let tasks = r#"{"tasks": {"d": {"policy": "SCHED_DEADLINE", "dl-runtime": 3000, "dl-period": 10000, "loop": -1,
        "run": 100, "timer": {"ref": "t", "period": 10000}}}, "global": {"calibration": "CPU0"}}"#;
    for policy in ["linux-6.12", "linux-7.3"] {
        let workload = Workload::parse(tasks, "t").expect("tasks");
        let mut platform = Platform::load("hikey960").expect("built in");
        let domains = platform.domains.iter_mut();
        domains.flat_map(|d| &mut d.idle).for_each(|s| s.exit_latency = Span(0));
        let e = experiment(platform, workload, policy, &[], Span::from_ms(100));
        let mut trace = Memory::new();
        Simulator.run(&e, &mut trace).expect("runs");
        let kthread = trace.tasks().find(|(_, comm)| comm.as_str() == "sugov:0").expect("one").0;
        let (mut at, mut waited) = (None, Vec::new());
        for (now, event) in trace.events() {
            match event {
                Event::Wakeup { task, .. } if *task == kthread => at = Some(*now),
                Event::Switch { next: Some(task), .. } if *task == kthread => {
                    waited.extend(at.take().map(|at| now.since(at).0));
                }
                _ => {}
            }
        }
        let away = |event: &Event| matches!(event, Event::Migrate { task, from: CpuId(0), .. } if *task == kthread);
        assert!(trace.events().iter().any(|(_, event)| away(event)), "{policy}: not pushed");
        // Once the thread is elsewhere it has its CPU at once.
        let late = waited.iter().skip(2).filter(|ns| **ns > 0).count();
        assert!(waited.len() > 5 && late == 0, "{policy}: {waited:?}");
    }
}
