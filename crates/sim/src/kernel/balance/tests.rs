//! Differences between releases, on small machines in a state made by hand.

use super::env::{Env, Migrate, When};
use super::group::{
    Group, busier, busier_of_its_kind, group_stats, prefer_sibling, sibling_imbalance,
};
use crate::kernel::Kernel;
use crate::kernel::placement::fork::GroupType;
use crate::run::engine::Simulation;
use crate::state::machine::Machine;
use crate::state::topology::SchedGroup;
use crate::tests::experiment;
use crate::tests::spread::{platform, sixteen};
use crate::{Counterfactual, setup};
use risetime_kernel::KernelRev;
use risetime_kernel::units::{Capacity, CpuId, Instant, Span, TaskId};
use risetime_model::{Platform, Workload};

const SPIN: &str = r#""loop": -1, "run": 1000000"#;

/// The machine after `ms` of these tasks.
fn after(p: Platform, tasks: &str, kernel: &str, ms: u64, test: impl FnOnce(&mut Kernel<'_>)) {
    let workload = Workload::parse(&format!(r#"{{"tasks": {{{tasks}}}}}"#), "made");
    let policy = format!("linux-{kernel}");
    let e = experiment(p, workload.expect("a workload"), &policy, &[], Span::from_ms(ms));
    let mut nobody = ();
    let mut engine =
        setup::simulation(&e, &mut nobody, Counterfactual::default()).expect("an engine");
    engine.run(Instant(e.duration.0)).expect("a run");
    test(&mut engine.k);
}

/// An engine after 1 ms, with as many tasks that have not begun.
fn still(p: Platform, tasks: usize, kernel: &str, test: impl FnOnce(&mut Kernel<'_>)) {
    let tasks = format!(r#""t": {{"instance": {tasks}, "delay": 1000000, {SPIN}}}"#);
    after(p, &tasks, kernel, 1, test);
}

fn load(name: &str) -> Platform {
    Platform::load(name).expect("built in")
}

fn looks(m: &Machine, cpu: u32, level: usize, idle: When) -> Env {
    Env::new(CpuId(cpu), level, idle, &m.cpu(CpuId(cpu)).sched_domains[level])
}

/// The group of that CPU in another's domain.
fn group_of<'a>(m: &'a Machine, env: &Env, cpu: u32) -> (usize, &'a SchedGroup) {
    let domain = &m.cpu(env.this).sched_domains[env.level];
    let mut groups = domain.groups().enumerate();
    groups.find(|(_, g)| g.span.contains(CpuId(cpu))).expect("a group")
}

/// A group of that kind, with tasks to give.
fn of_kind(m: &Machine, env: &Env, cpu: u32, kind: GroupType) -> Group {
    let (at, group) = group_of(m, env, cpu);
    let capacity = |c: CpuId| m.capacity_of(c).0;
    Group {
        kind,
        running: 4,
        fair_queued: 4,
        max_capacity: group.span.iter().map(capacity).max().unwrap_or(0),
        min_capacity: group.span.iter().map(capacity).min().unwrap_or(0),
        ..Group::empty(group, at)
    }
}

fn occupy(m: &mut Machine, cpu: u32, task: u32) {
    m.cpu_mut(CpuId(cpu)).curr = Some(TaskId(task));
}

/// Of a cache, CPU 0 is the first idle one, but 8 beside it is busy; 1 has a core of its own.
#[test]
fn since_6_6_an_idle_core_balances_before_an_idle_thread() {
    let in_charge = |kernel: &str| -> Vec<u32> {
        let mut found = Vec::new();
        still(sixteen(), 1, kernel, |e| {
            occupy(&mut e.m, 8, 0);
            let all = [0, 1, 9];
            found = all
                .into_iter()
                .filter(|c| {
                    let level = e.m.cpu(CpuId(*c)).sched_domains.len() - 1;
                    e.m.should_we_balance(&looks(&e.m, *c, level, When::Idle))
                })
                .collect();
        });
        found
    };
    assert_eq!(in_charge("6.1"), [0]);
    for kernel in ["6.6", "6.8", "6.12", "7.2", "7.3"] {
        assert_eq!(in_charge(kernel), [1], "{kernel}");
    }
}

#[test]
fn since_6_6_two_busy_threads_of_a_core_are_a_kind_of_their_own() {
    let kind = |kernel: &str| {
        let mut kind = GroupType::Overloaded;
        let two = format!(r#""a": {{"cpus": [2], {SPIN}}}, "b": {{"cpus": [10], {SPIN}}}"#);
        after(sixteen(), &two, kernel, 50, |e| {
            let env = looks(&e.m, 3, 1, When::Idle);
            let (at, group) = group_of(&e.m, &env, 2);
            assert_eq!(group.weight, 2, "a core");
            let domain = e.m.cpu(env.this).sched_domains[1].clone();
            e.m.tally = None;
            let group = group_of(&e.m, &env, 2).1;
            kind = group_stats(&e.m, &env, &domain, group, at).kind;
        });
        kind
    };
    assert!(kind("6.1") < GroupType::SmtBalance);
    for kernel in ["6.6", "6.12", "7.2"] {
        assert_eq!(kind(kernel), GroupType::SmtBalance, "{kernel}");
    }
}

#[test]
fn of_groups_alike_the_first_or_the_last_is_the_busiest() {
    still(sixteen(), 1, "7.2", |e| {
        let env = looks(&e.m, 3, 2, When::Idle);
        let last_wins = |minor: u16, kind| {
            let (g, b) = (of_kind(&e.m, &env, 0, kind), of_kind(&e.m, &env, 0, kind));
            busier_of_its_kind(KernelRev::new(6, minor), &g, &b)
        };
        assert_eq!(
            [1, 4, 5, 6, 12].map(|r| last_wins(r, GroupType::FullyBusy)),
            [false, false, true, true, true]
        );
        assert_eq!(
            [1, 6, 8, 9, 12].map(|r| last_wins(r, GroupType::Misfit)),
            [true, true, true, false, false]
        );
    });
}

#[test]
fn until_6_5_a_busy_cpu_evens_out_tasks_too() {
    still(sixteen(), 1, "7.2", |e| {
        let env = looks(&e.m, 3, 2, When::Idle);
        let busiest = of_kind(&e.m, &env, 0, GroupType::HasSpare);
        let local = Group { running: 1, ..of_kind(&e.m, &env, 3, GroupType::HasSpare) };
        let more = |rev, idle| sibling_imbalance(rev, idle, &busiest, &local);
        let (old, new) = (KernelRev::V6_5, KernelRev::V6_6);
        assert_eq!([more(old, When::Busy), more(new, When::Busy)], [3, 0]);
        assert_eq!([more(old, When::Idle), more(new, When::Idle)], [3, 3]);
    });
}

/// A core of two threads looks at four small CPUs: the core's domain prefers siblings, that of the four
/// does not.
#[test]
fn since_6_5_the_busiest_group_says_whether_tasks_spread() {
    let spreads = |kernel: &str| {
        let mut found = false;
        still(load("intel-hybrid"), 1, kernel, |e| {
            let env = looks(&e.m, 0, 1, When::Idle);
            found = prefer_sibling(&env, &e.m, &of_kind(&e.m, &env, 20, GroupType::HasSpare));
        });
        found
    };
    assert!(spreads("6.1"));
    for kernel in ["6.6", "6.12", "7.2"] {
        assert!(!spreads(kernel), "{kernel}");
    }
}

fn chosen(p: &str, kernel: &str, dst: u32, cpu: u32, kind: GroupType, busy: Option<u32>) -> bool {
    let mut found = false;
    still(load(p), 1, kernel, |e| {
        busy.into_iter().for_each(|c| occupy(&mut e.m, c, 0));
        let env = looks(&e.m, dst, 1, When::Idle);
        let local = of_kind(&e.m, &env, dst, GroupType::HasSpare);
        found = busier(&e.m, &env, true, &local, &of_kind(&e.m, &env, cpu, kind), None);
    });
    found
}

#[test]
fn small_cpus_leave_full_big_ones_alone_but_in_6_1_6_8_and_6_11() {
    for kernel in ["6.1", "6.8", "6.11"] {
        assert!(chosen("m1", kernel, 0, 5, GroupType::FullyBusy, None), "{kernel}");
        assert!(!chosen("m1", kernel, 0, 5, GroupType::HasSpare, None), "{kernel}");
    }
    for kernel in ["6.6", "6.12", "7.2", "7.3"] {
        assert!(!chosen("m1", kernel, 0, 5, GroupType::FullyBusy, None), "{kernel}");
    }
}

/// `dst_core_idle`: from the small CPUs of a hybrid machine to a thread whose sibling, 1, is busy or not.
#[test]
fn a_busy_core_takes_no_misfit_task() {
    for kernel in ["6.1", "6.6", "6.8", "6.11", "6.12", "7.2", "7.3"] {
        let to = |busy| chosen("intel-hybrid", kernel, 0, 20, GroupType::Misfit, busy);
        assert!(to(None), "{kernel}");
        assert_eq!(to(Some(1)), ["6.1", "6.8", "6.11"].contains(&kernel), "{kernel}");
    }
}

#[test]
fn until_6_9_a_misfit_task_on_the_biggest_cpus_wakes_nobody() {
    let big = format!(r#""a": {{"cpus": [4, 5], {SPIN}}}"#);
    after(load("m1"), &big, "6.8", 500, |e| {
        let cpu = if e.m.cpu(CpuId(4)).curr.is_some() { CpuId(4) } else { CpuId(5) };
        assert!(e.m.cpu(cpu).misfit_task_load > 0, "it fits nowhere");
        assert!(!e.m.has_misfit(cpu));
        e.m.cpu_mut(cpu).cpu_capacity = Capacity(800);
        assert!(e.m.has_misfit(cpu), "but here others take a fifth");
        e.m.cpu_mut(CpuId(0)).misfit_task_load = 1;
        assert!(e.m.has_misfit(CpuId(0)));
    });
}

/// A task that may use little CPUs only cannot be helped; until 6.9 it is asked about all the same.
#[test]
fn until_6_9_a_misfit_task_that_stays_counts_as_a_failure() {
    let little = format!(r#""a": {{"cpus": [0, 1, 2, 3], {SPIN}}}"#);
    let failed = |kernel: &str| {
        let mut found = (0, 0);
        after(load("m1"), &little, kernel, 1000, |e| {
            let all = (4..8).map(|c| &e.m.cpu(CpuId(c)).sched_domains[1]);
            found = all.map(|d| (d.nr_balance_failed, d.balance_interval)).max().expect("four");
        });
        found
    };
    let (failures, interval) = failed("6.8");
    // The longest interval of what is pinned (`MAX_PINNED_INTERVAL`).
    assert!(failures > 3 && interval == 512, "{failures} failures, {interval} ms");
    assert_eq!(failed("6.12").0, 0, "it is no misfit task");
}

#[test]
fn tasks_of_the_idle_policy_are_never_cache_hot() {
    let tasks = format!(
        r#""a": {{"cpus": [2], {SPIN}}}, "b": {{"cpus": [2], {SPIN}}},
           "idle": {{"cpus": [2], "policy": "SCHED_IDLE", {SPIN}}}"#
    );
    for kernel in ["6.1", "6.6", "6.8", "6.12", "7.2", "7.3"] {
        after(platform("0-3", ""), &tasks, kernel, 60, |e| {
            let everywhere = e.m.root.online;
            (0..3).for_each(|t| e.rq(CpuId(2)).set_allowed(TaskId(t), everywhere));
            // All have run just now.
            e.m.cpu_mut(CpuId(2)).clock.clock_task.0 = 0;
            let (mut env, curr) = (looks(&e.m, 0, 0, When::Idle), e.m.cpu(CpuId(2)).curr);
            for task in (0..3).map(TaskId).filter(|t| Some(*t) != curr) {
                let started = e.m.fair_entity(CpuId(2), task).expect("queued").exec_start;
                e.m.cpu_mut(CpuId(2)).clock.clock_task.0 = started + 1000;
                let moves = e.m.can_migrate_task(&mut env, CpuId(2), task, 0);
                assert_eq!(moves, task == TaskId(2), "{kernel}, {task:?}");
            }
        });
    }
}

/// Forty tasks that stay on their CPU stand before the one that may leave it.
#[test]
fn who_looks_at_32_pinned_tasks_goes_on_in_6_8() {
    let tasks = format!(
        r#""pin": {{"instance": 40, "cpus": [2], {SPIN}}}, "free": {{"cpus": [2], {SPIN}}}"#
    );
    let finds = |kernel: &str| {
        let mut found = false;
        after(platform("0-3", ""), &tasks, kernel, 1000, |e| {
            let (everywhere, free) = (e.m.root.online, TaskId(40));
            e.rq(CpuId(2)).set_allowed(free, everywhere);
            if e.m.cpu(CpuId(2)).curr != Some(free) {
                e.rq(CpuId(2)).list(free);
            }
            let mut env = looks(&e.m, 0, 0, When::Idle);
            env.all_pinned = true;
            found = e.pull(&mut env, CpuId(2), Migrate::Task, 1);
        });
        found
    };
    assert!(finds("6.8"));
    for kernel in ["6.1", "6.6", "6.12", "7.2"] {
        assert!(!finds(kernel), "{kernel}");
    }
}

/// Lists which of four tasks on CPU 2, from the one that waits longest on, come to CPU 0, which
/// looks for two; in the order in which they are looked at there.
fn two_of_four(kernel: &str, idle: When) -> Vec<usize> {
    let tasks = format!(r#""t": {{"instance": 4, "cpus": [2], {SPIN}}}"#);
    let mut came = Vec::new();
    after(platform("0-3", ""), &tasks, kernel, 60, |e| {
        let (all, everywhere) = ((0..4).map(TaskId), e.m.root.online);
        let curr = e.m.cpu(CpuId(2)).curr;
        let mut waiting: Vec<TaskId> = all.filter(|t| Some(*t) != curr).collect();
        waiting.iter().for_each(|t| e.rq(CpuId(2)).set_allowed(*t, everywhere));
        waiting.sort_by_key(|t| e.m.task(*t).listed);
        // None of them has run of late.
        e.m.now += Span::from_ms(1);
        let mut env = looks(&e.m, 0, 0, idle);
        e.pull(&mut env, CpuId(2), Migrate::Task, 2);
        let came_from = waiting.iter().enumerate();
        let mut there: Vec<_> = came_from.filter(|(_, t)| e.m.task(**t).cpu == CpuId(0)).collect();
        there.sort_by_key(|(_, t)| e.m.task(**t).listed);
        came = there.into_iter().map(|(at, _)| at).collect();
    });
    came
}

/// `detach_tasks` puts each at the head of a list, from whose head `attach_tasks` takes them.
#[test]
fn of_tasks_that_are_moved_together_the_last_to_leave_is_the_first_to_come() {
    for kernel in ["6.1", "6.6", "6.12", "7.2", "7.3"] {
        assert_eq!(two_of_four(kernel, When::Idle), [1, 0], "{kernel}");
    }
}

#[test]
fn a_cpu_that_goes_idle_takes_several_tasks_unless_the_kernel_is_preemptible() {
    for kernel in ["6.1", "6.12", "7.2", "7.3"] {
        let voluntary = format!("{kernel}+preempt=voluntary");
        assert_eq!(two_of_four(kernel, When::NewlyIdle), [0], "{kernel}");
        assert_eq!(two_of_four(&voluntary, When::NewlyIdle), [1, 0], "{kernel}");
    }
}

/// A CPU that goes idle while no CPU has work to give ages nothing on its way.
#[test]
fn blocked_load_is_aged_only_where_there_is_work_to_find() {
    let workload = r#"{"taskgroups": {"/g": {}},
        "tasks": {"in": {"cpus": [2], "taskgroup": "/g", "loop": -1, "run": 2000, "sleep": 8000}}}"#;
    let aged = |overloaded: bool| {
        let workload = Workload::parse(workload, "made").expect("a workload");
        let e = experiment(platform("0-3", ""), workload, "linux-7.2", &[], Span::from_ms(47));
        let mut nobody = ();
        let mut e =
            setup::simulation(&e, &mut nobody, Counterfactual::default()).expect("an engine");
        e.run(Instant(47_000_000)).expect("a run");
        let group = e.k.m.task(TaskId(0)).group;
        e.k.m.now += Span::from_ms(5);
        e.k.rq(CpuId(2)).update_rq_clock();
        let seen = |e: &Simulation<'_>| e.k.m.groups.rq(CpuId(2), group).avg.avg.last_update_time;
        let before = seen(&e);
        e.k.m.root.overloaded = overloaded;
        e.k.newidle_balance(CpuId(2));
        seen(&e) != before
    };
    assert!(aged(true) && !aged(false));
}

#[test]
fn a_run_says_where_the_dice_of_its_kernel_are_left_out() {
    let said = |policy: &str| {
        let workload = Workload::parse(r#"{"tasks": {"t": {"run": 1000}}}"#, "made");
        let workload = workload.expect("a workload");
        let e = experiment(platform("0-3", ""), workload, policy, &[], Span::from_ms(1));
        let notes = setup::notes(&e);
        notes.iter().filter(|n| n.contains("NI_RANDOM") && n.contains("ni_random=0")).count()
    };
    for kernel in ["linux-6.1", "linux-6.6", "linux-6.12", "linux-7.2", "linux-7.3"] {
        assert_eq!(said(kernel), 1, "{kernel}");
        assert_eq!(said(&format!("{kernel}+ni_random=1")), 0, "{kernel}");
    }
    assert_eq!([said("linux-6.8"), said("linux-6.11"), said("rfc-v1")], [0, 0, 0]);
}
