//! Tests of where wakeups go, in small machines set up by hand.

use super::Bytes;
use super::classes::{cpus, run};
use crate::Counterfactual;
use crate::kernel::placement::{self, Placed, Waker};
use crate::run::engine::Simulation;
use crate::run::setup;
use crate::state::effects::Effects;
use crate::state::machine::Machine;
use risetime_kernel::units::{CpuId, Span, TaskId, Util};
use risetime_model::{Platform, Workload};
use risetime_trace::Why;

/// A machine of this platform with as many tasks that have not begun.
fn machine(platform: &str, tasks: usize, test: impl FnOnce(&mut Simulation<'_>)) {
    let text = format!(
        r#"{{"tasks": {{"t": {{"instance": {tasks}, "loop": -1, "run": 10, "sleep": 10}}}}}}"#
    );
    let (platform, workload) = (Platform::load(platform), Workload::parse(&text, "asleep"));
    let (platform, workload) = (platform.expect("built in"), workload.expect("a workload"));
    let e = super::experiment(platform, workload, "linux-7.2", &[], Span::from_ms(1));
    let mut sink = Bytes::default();
    let other = Counterfactual::default();
    test(&mut setup::simulation(&e, &mut sink, other).expect("an engine"));
}

/// `cpu` runs `task`.
fn occupy(m: &mut Machine, cpu: u32, task: u32) {
    m.cpu_mut(CpuId(cpu)).curr = Some(TaskId(task));
}

/// Places the first task at its wakeup; what the search has found out is kept, as the kernel does.
fn wake(m: &mut Machine, cpu: u32, sync: bool) -> Placed {
    let mut fair =
        (placement::find("fair").make)(&m.platform, &risetime_model::Settings::default());
    let mut effects = Effects::default();
    let placed = fair.wake(
        &placement::PlacementView { machine: m },
        TaskId(0),
        Waker { cpu: CpuId(cpu), sync, irq: false },
        &mut effects,
    );
    if let Some(cpu) = effects.recent_used_cpu {
        m.task_mut(TaskId(0)).recent_used_cpu = cpu;
    }
    if let Some(cpu) = effects.no_idle_core {
        m.root.set_idle_cores(&m.cpus[cpu.index()].place, false);
    }
    placed
}

fn placed(cpu: u32, why: Why) -> Placed {
    Placed { cpu: CpuId(cpu), why }
}

#[test]
fn a_wakeup_prefers_the_previous_cpu_then_a_core_of_its_cache() {
    machine("server256", 40, |e| {
        let m = &mut e.k.m;
        m.task_mut(TaskId(0)).cpu = CpuId(8);
        assert_eq!(wake(m, 8, false), placed(8, Why::PrevCpu));
        // Busy: the next core of the cache, not the idle sibling 136.
        occupy(m, 8, 1);
        assert_eq!(wake(m, 8, false), placed(9, Why::IdleSibling));
        // No whole core left: the first idle thread, and the hint is dropped …
        (9..16).for_each(|cpu| occupy(m, cpu, cpu - 7));
        assert_eq!(wake(m, 8, false), placed(137, Why::IdleSibling));
        let shared = m.cpu(CpuId(8)).place.balance_shared.expect("it has a cache");
        assert!(!m.root.shared[shared].has_idle_cores);
        // … so that the next search takes the sibling of the previous CPU at once.
        assert_eq!(wake(m, 8, false), placed(136, Why::IdleSibling));
        occupy(m, 136, 20);
        assert_eq!(wake(m, 8, false), placed(137, Why::IdleSibling));
        // A full cache: nobody looks beyond it.
        (137..144).for_each(|cpu| occupy(m, cpu, cpu - 110));
        assert_eq!(wake(m, 8, false), placed(8, Why::PrevCpu));
        m.cpu_mut(CpuId(140)).curr = None;
        m.root.shared[shared].nr_idle_scan = 3;
        assert_eq!(wake(m, 8, false), placed(8, Why::PrevCpu), "beyond the limit of the search");
        m.root.shared[shared].nr_idle_scan = 16;
        assert_eq!(wake(m, 8, false), placed(140, Why::IdleSibling));
    });
}

#[test]
fn an_interrupt_pulls_only_within_the_cache() {
    machine("server256", 40, |e| {
        let m = &mut e.k.m;
        m.task_mut(TaskId(0)).cpu = CpuId(8);
        occupy(m, 8, 1);
        // CPU 10 is idle, takes the interrupt and shares the cache.
        assert_eq!(wake(m, 10, false), placed(10, Why::WakeAffine));
        // CPU 20 does not share it.
        assert_eq!(wake(m, 20, false), placed(9, Why::IdleSibling));
        // Both idle: no reason to move.
        m.cpu_mut(CpuId(8)).curr = None;
        assert_eq!(wake(m, 10, false), placed(8, Why::PrevCpu));
    });
}

#[test]
fn a_waker_pulls_by_weight_and_one_of_many_does_not() {
    machine("server256", 40, |e| {
        let m = &mut e.k.m;
        m.task_mut(TaskId(0)).cpu = CpuId(8);
        m.task_mut(TaskId(0)).avg.load_avg = 100;
        // Both busy; load there 1000, here 300: 400 · 100 < 900 · 108.
        occupy(m, 8, 1);
        occupy(m, 40, 2);
        m.cpu_mut(CpuId(8)).cfs_avg.avg.load_avg = 1000;
        m.cpu_mut(CpuId(40)).cfs_avg.avg.load_avg = 300;
        assert_eq!(wake(m, 40, false), placed(41, Why::IdleSibling), "around the waker");
        // 872 · 100 = 87200 is not below 800 · 108 = 86400 …
        m.cpu_mut(CpuId(8)).cfs_avg.avg.load_avg = 900;
        m.cpu_mut(CpuId(40)).cfs_avg.avg.load_avg = 772;
        assert_eq!(wake(m, 40, false), placed(9, Why::IdleSibling), "around its own");
        // … but what the synchronous waker takes with it does not count.
        m.task_mut(TaskId(2)).avg.load_avg = 700;
        assert_eq!(wake(m, 40, true), placed(41, Why::IdleSibling));
        // The waker serves many: the wakee stays where it was.
        m.cpu_mut(CpuId(40)).cfs_avg.avg.load_avg = 0;
        assert_eq!(wake(m, 40, false), placed(41, Why::IdleSibling));
        for round in 0..600 {
            e.k.rq(CpuId(40)).record_wakee(TaskId(round % 30));
        }
        for _ in 0..16 {
            (3..5).for_each(|t| {
                let cpu = CpuId(50);
                e.k.m.cpu_mut(cpu).curr = Some(TaskId(0));
                e.k.rq(cpu).record_wakee(TaskId(t));
            });
        }
        e.k.m.cpu_mut(CpuId(50)).curr = None;
        assert_eq!(wake(&mut e.k.m, 40, false), placed(9, Why::IdleSibling), "wake_wide");
    });
}

#[test]
fn an_l2_is_searched_before_the_rest_of_the_cache() {
    machine("intel-hybrid", 30, |e| {
        let m = &mut e.k.m;
        m.root.asym_cpucap = false;
        m.task_mut(TaskId(0)).cpu = CpuId(21);
        occupy(m, 21, 1);
        occupy(m, 22, 2);
        // After 21: 22 is busy, 23 idle; 0 would come first in the whole cache's order after that.
        assert_eq!(wake(m, 21, false), placed(23, Why::IdleSibling));
        occupy(m, 23, 3);
        assert_eq!(wake(m, 21, false), placed(20, Why::IdleSibling));
        occupy(m, 20, 4);
        assert_eq!(wake(m, 21, false), placed(0, Why::IdleSibling));
    });
}

#[test]
fn a_task_that_does_not_fit_takes_an_idle_core_before_a_thread_that_fits() {
    machine("intel-hybrid", 30, |e| {
        let m = &mut e.k.m;
        let t = m.task_mut(TaskId(0));
        (t.avg.util_avg, t.cpu) = (Util(700), CpuId(16));
        // It fits on a P-core: from 16 on and round to CPU 0.
        assert_eq!(wake(m, 16, false), placed(0, Why::IdleSibling));
        // Of every P-core one thread is busy: an E-core, though too small, has no neighbour.
        (0..8).for_each(|core| occupy(m, 2 * core, core + 1));
        assert_eq!(wake(m, 16, false), placed(16, Why::PrevCpu));
        // Nothing but threads left: one that fits.
        (16..24).for_each(|cpu| occupy(m, cpu, cpu - 6));
        assert_eq!(wake(m, 16, false), placed(1, Why::IdleSibling));
    });
}

#[test]
fn a_forbidden_cpu_falls_back_within_the_node() {
    machine("server256", 2, |e| {
        let m = &mut e.k.m;
        m.task_mut(TaskId(0)).cpu = CpuId(70);
        m.tasks[0].set_allowed(&m.cpus, [3, 90].into_iter().map(CpuId).collect());
        assert_eq!(wake(m, 70, false), placed(90, Why::Affinity));
    });
}

/// `wake_up_new_task` notes as recently used where the task was made, before it is placed: when its own CPU is taken at its
/// first wakeup, it goes there. Before 4.16 nobody noted that.
#[test]
fn a_new_task_has_used_the_cpu_of_its_parent() {
    let tasks = r#"
        "parent": {"cpus": [0], "loop": -1, "run": 5000, "sleep": 100000},
        "child": {"delay": 2000, "loop": -1, "run": 1000, "sleep": 20000},
        "hog": {"cpus": [1], "delay": 10000, "loop": -1, "run": 1000000}"#;
    for (policy, then) in [("linux-4.14", 2), ("linux-6.1", 0), ("linux-6.12", 0), ("linux-7.3", 0)]
    {
        let runs = run(cpus(4), tasks, &format!("{policy}+governor=performance"), 40);
        let child: Vec<CpuId> =
            runs.moves.iter().filter(|(task, ..)| *task == TaskId(1)).map(|m| m.1).collect();
        assert_eq!(child[0], CpuId(1), "{policy}: an idle one");
        assert_eq!(child[1], CpuId(then), "{policy}");
    }
}

/// `cpumask_any_and_distribute`: each goes to the next CPU of its new affinity, since 5.7; before, all to the first.
#[test]
fn who_may_not_stay_goes_to_the_next_cpu_in_turn() {
    let task = |n: u32| {
        format!(
            r#""t{n}": {{"delay": {}, "loop": 1, "phases": {{"here": {{"loop": 1, "cpus": [0], "run": 1000}},
                "there": {{"loop": 1, "cpus": [1, 2, 3], "run": 1000}}}}}}"#,
            n * 10_000
        )
    };
    let tasks = (0..5).map(task).collect::<Vec<_>>().join(", ");
    let went = |policy: &str| -> Vec<u32> {
        let runs = run(cpus(4), &tasks, policy, 100);
        (0..5).map(|n| runs.turns(&format!("t{n}")).last().expect("it ran").0).collect()
    };
    assert_eq!(went("linux-4.14"), [1; 5]);
    for policy in ["linux-6.1", "linux-6.12", "linux-7.3"] {
        assert_eq!(went(policy), [1, 2, 3, 1, 2], "{policy}");
    }
}
