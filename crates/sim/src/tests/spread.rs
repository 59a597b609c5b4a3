//! Tests of what load balancing makes of spinners on machines with threads, caches and nodes.

use super::Bytes;
use crate::state::cpuset::CpuSet;
use crate::{Counterfactual, setup};
use risetime_kernel::units::{CpuId, Instant, Span, TaskId};
use risetime_model::{Platform, Workload};

/// A platform of 16 CPUs: two nodes, in each two caches of two cores of two threads. CPU n and n +
/// 8 share a core.
pub(crate) fn sixteen() -> Platform {
    platform(
        "0-15",
        r#"
core = { cpus = "0-15", each = 2, stride = 8 }
llc = { cpus = "0-7", each = 2 }
node = ["0-3", "4-7"]
distance = [[10, 20], [20, 10]]
"#,
    )
}

pub(crate) fn platform(cpus: &str, topology: &str) -> Platform {
    let text = format!(
        r#"
schema = 1
name = "made"
about = "made up"
hz = 250
[[domain]]
cpus = "{cpus}"
cpus_per_policy = 1
capacity = 1024
fast_switch = true
opp = [ {{ freq_khz = 1000000 }} ]
[topology]
{topology}
[sources]
capacity = "made up"
opp = "made up"
"#
    );
    Platform::parse(&text, "made").expect("a platform")
}

/// The number of tasks on each CPU after so many ms.
fn spread(platform: &Platform, tasks: &str, ms: u64) -> Vec<usize> {
    let workload = Workload::parse(&format!(r#"{{"tasks": {{{tasks}}}}}"#), "spinners");
    let workload = workload.expect("a workload");
    // Of a process that has its affinity against it more would stay under one cache (`tests/cache.rs`).
    let policy = "linux-7.2+sched_cache=0";
    let e = super::experiment(platform.clone(), workload, policy, &[], Span::from_ms(ms));
    let mut sink = Bytes::default();
    let mut engine =
        setup::simulation(&e, &mut sink, Counterfactual::default()).expect("an engine");
    engine.run(Instant(e.duration.0)).expect("a run");
    engine.k.m.cpus.iter().map(|c| c.nr_running()).collect()
}

fn spinners(n: usize, more: &str) -> String {
    format!(r#""spin": {{"instance": {n}, {more}"loop": -1, "run": 1000000}}"#)
}

#[test]
fn tasks_take_whole_cores_before_they_share_one() {
    let p = sixteen();
    for n in [4, 8, 12, 16, 24] {
        let on = spread(&p, &spinners(n, ""), 3000);
        let cores: Vec<usize> = (0..8).map(|c| on[c] + on[c + 8]).collect();
        let (least, most) = (cores.iter().min().unwrap_or(&0), cores.iter().max().unwrap_or(&0));
        assert!(most - least <= 1, "{n} spinners: {on:?}");
        assert!(*on.iter().max().unwrap_or(&0) <= n.div_ceil(16), "{n} spinners: {on:?}");
    }
}

#[test]
fn spinners_that_all_begin_on_one_cpu_leave_it() {
    // Forced together first: only balancing can take them apart.
    let tasks = r#""spin": {"instance": 16, "loop": 1, "phases": {
      "together": {"cpus": [0], "loop": 1, "run": 1000},
      "apart": {"cpus": [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15], "loop": -1, "run": 1000000}}}"#;
    assert_eq!(spread(&sixteen(), tasks, 3000), [1; 16]);
}

/// The example in the kernel's comment on `sg_imbalanced`: by weight, two tasks in each group would
/// be balanced, and CPU 3 would have two.
#[test]
fn an_imbalance_that_affinity_makes_is_passed_up() {
    let p = platform("0-7", r#"llc = ["0-3", "4-7"]"#);
    let tasks = r#""spin": {"instance": 4, "loop": 1, "phases": {
      "together": {"cpus": [3], "loop": 1, "run": 1000},
      "apart": {"cpus": [3,4,5,6], "loop": -1, "run": 1000000}}}"#;
    assert_eq!(spread(&p, tasks, 3000), [0, 0, 0, 1, 1, 1, 1, 0]);
}

/// Tasks that may not come to the CPU that looks are pulled to another one of its group.
#[test]
fn pinned_tasks_go_to_another_cpu_of_the_group() {
    let p = platform("0-7", r#"llc = ["0-3", "4-7"]"#);
    let tasks = r#""pin": {"instance": 2, "cpus": [0, 5], "loop": 1, "phases": {
      "together": {"cpus": [0], "loop": 1, "run": 1000},
      "apart": {"cpus": [0, 5], "loop": -1, "run": 1000000}}},
      "busy": {"instance": 1, "cpus": [4], "loop": -1, "run": 1000000}"#;
    assert_eq!(spread(&p, tasks, 3000), [1, 0, 0, 0, 1, 1, 0, 0]);
}

/// Of a node of eight caches, eight tasks may be more than its neighbour's (`imb_numa_nr`): its
/// parent counted, six stay. As many as there are cores fill both nodes evenly.
#[test]
fn a_few_tasks_stay_in_their_node() {
    let server = Platform::load("server256").expect("built in");
    let first = |on: &[usize]| on[..64].iter().chain(&on[128..192]).sum::<usize>();
    let six = spread(&server, &spinners(6, ""), 300);
    assert_eq!(first(&six), 6, "{six:?}");
    let eight = spread(&sixteen(), &spinners(8, ""), 3000);
    let first: usize = [0, 1, 2, 3, 8, 9, 10, 11].iter().map(|c| eight[*c]).sum();
    assert_eq!(first, 4, "{eight:?}");
}

#[test]
fn a_machine_of_one_cpu_has_no_domain() {
    // It runs all the same.
    let p = platform("0", "");
    assert_eq!(spread(&p, &spinners(3, ""), 100), [3]);
}

/// The tasks of a CPU that goes find another one, and come back by balancing alone.
#[test]
fn tasks_leave_a_cpu_that_goes_offline() {
    let tasks = |hotplug: &str| {
        format!(
            r#"{}}}, "global": {{"hotplug": [{hotplug}]"#,
            spinners(4, r#""cpus": [0, 1, 2, 3], "#)
        )
    };
    let down =
        r#"{"at_us": 500000, "cpu": 2, "online": 0}, {"at_us": 500000, "cpu": 3, "online": 0}"#;
    let up = r#", {"at_us": 1000000, "cpu": 2, "online": 1}"#;
    let p = platform("0-3", "");
    let on = spread(&p, &tasks(down), 1000);
    assert_eq!((on[0] + on[1], on[2], on[3]), (4, 0, 0), "{on:?}");
    let on = spread(&p, &tasks(&format!("{down}{up}")), 2000);
    assert_eq!((on[0] + on[1] + on[2], on[3]), (4, 0), "{on:?}");
    assert!(on[2] > 0, "{on:?}");
}

/// Sixteen policies of sixteen states and a CPU each: up to 6.6 more than EAS would go through.
#[test]
fn eas_stays_off_where_the_model_is_too_large_until_6_6() {
    let aware = |per_policy: u32, kernel: &str| {
        let opps = |power: u32| -> String {
            (1..=16)
                .map(|i| format!("{{ freq_khz = {i}00000, power_uw = {} }},", i * power))
                .collect()
        };
        let domain = |cpus: &str, capacity: u32, power: u32| {
            format!(
                "[[domain]]\ncpus = \"{cpus}\"\ncpus_per_policy = {per_policy}\ncapacity = {capacity}\nopp = [ {} ]\n",
                opps(power)
            )
        };
        let text = format!(
            "schema = 1\nname = \"many\"\nabout = \"made up\"\nhz = 250\n{}{}[sources]\ncapacity = \"made up\"\nopp = \"made up\"\n",
            domain("0-7", 400, 10_000),
            domain("8-15", 1024, 50_000)
        );
        let many = Platform::parse(&text, "many").expect("a platform");
        let workload = Workload::parse(&format!(r#"{{"tasks": {{{}}}}}"#, spinners(1, "")), "one");
        let workload = workload.expect("a workload");
        let policy = format!("linux-{kernel}");
        let e = super::experiment(many, workload, &policy, &[], Span::from_ms(1));
        let mut sink = Bytes::default();
        let engine =
            setup::simulation(&e, &mut sink, Counterfactual::default()).expect("an engine");
        engine.k.m.root.energy_aware
    };
    for kernel in ["6.1", "6.6"] {
        assert!(!aware(1, kernel), "{kernel}");
        assert!(aware(8, kernel), "{kernel}: two policies");
    }
    for kernel in ["6.8", "6.12", "7.3"] {
        assert!(aware(1, kernel), "{kernel}");
    }
}

/// With its only CPU gone, a task may run anywhere, and EAS ends with the big CPUs.
#[test]
fn affinity_and_energy_awareness_follow_the_cpus_online() {
    let m1 = Platform::load("m1").expect("built in");
    let tasks = |hotplug: &str| {
        format!(
            r#""pinned": {{"cpus": [5], "loop": -1, "run": 1000, "sleep": 9000}}}},
            "global": {{"hotplug": [{hotplug}]"#
        )
    };
    let off = |c: u32| format!(r#"{{"at_us": 100000, "cpu": {c}, "online": 0}}"#);
    let all = [4, 5, 6, 7].map(off).join(", ");
    let end = |hotplug: &str, test: &dyn Fn(&crate::state::machine::Machine)| {
        let text = format!(r#"{{"tasks": {{{}}}}}"#, tasks(hotplug));
        let w = Workload::parse(&text, "w").expect("a workload");
        let e = super::experiment(m1.clone(), w, "linux-7.2", &[], Span::from_ms(300));
        let mut sink = Bytes::default();
        let mut engine =
            setup::simulation(&e, &mut sink, Counterfactual::default()).expect("an engine");
        engine.run(Instant(e.duration.0)).expect("a run");
        test(&engine.k.m);
    };
    end("", &|m| assert!(m.root.energy_aware && m.task(TaskId(0)).cpu == CpuId(5)));
    end(&off(5), &|m| {
        assert!(m.root.energy_aware);
        let t = m.task(TaskId(0));
        assert!(t.cpu != CpuId(5) && t.allowed == CpuSet::first(8));
    });
    end(&all, &|m| {
        assert!(!m.root.energy_aware && !m.root.asym_cpucap);
        assert!(m.task(TaskId(0)).cpu < CpuId(4));
        assert_eq!(m.domains[1].cpus, [CpuId(7)], "the last one stays with its frozen policy");
    });
}
