//! Threads that belong to no workload: who changes frequencies, and where; who creates another trace's tasks.

use super::classes::{Runs, cpus};
use super::experiment;
use crate::replay::{Creator, Image, Turn};
use crate::run::setup;
use crate::{Counterfactual, Replay};
use risetime_kernel::units::{CpuId, Span, TaskId};
use risetime_model::{Platform, Workload};
use risetime_trace::Backend;

fn slow(n: usize) -> Platform {
    let mut platform = cpus(n);
    platform.domains.iter_mut().for_each(|d| d.fast_switch = false);
    platform
}

/// Where the thread of each one-CPU policy may run.
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

/// When the third of three real-time tasks of one CPU is created, in ms, by a thread that only a deadline server lets in
/// while the first two take turns.
fn third_is_created(policy: &str) -> u64 {
    let tasks = r#"{"tasks": {"r": {"instance": 3, "cpus": [0], "policy": "SCHED_RR", "priority": 10, "loop": -1,
                    "run": 400000, "sleep": 150000}}}"#;
    let workload = Workload::parse(tasks, "t").expect("a workload");
    let (e, mut runs) =
        (experiment(cpus(1), workload, policy, &[], Span::from_ms(2000)), Runs::default());
    let turn = |creates: Option<u32>| Turn {
        wakes: Span(0),
        runs: Span::from_us(200),
        creates: creates.map(TaskId),
    };
    let creator = Creator {
        cpu: CpuId(0),
        slice: Span::from_us(100),
        before: Span(0),
        turns: vec![turn(Some(1)), turn(Some(2)), turn(None)],
    };
    let image = Some(Image { creator: Some(creator), ..Image::default() });
    Replay { image, ..Replay::default() }.run(&e, &mut runs).expect("runs");
    runs.created("r-2") / 1_000_000
}

/// Who rises to a real-time policy is asked for its CPU since 7.0, and waits behind those that are there.
#[test]
fn who_creates_a_real_time_task_waits_for_its_turn_since_7_0() {
    let (before, since) = (third_is_created("linux-6.12"), third_is_created("linux-7.3"));
    assert!((950..955).contains(&before), "within the server's time: {before}");
    // Two slices of 100 ms come first, or what is left of them.
    assert!((1000..1200).contains(&since), "{since}");
}
