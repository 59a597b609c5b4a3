//! SCHED_HIGH: what it gets, and what it leaves, on CFS and on EEVDF.

use super::classes::{Runs, SPIN, cpus, experiment_of, run};
use super::generate::experiments;
use super::properties::run_checked;
use crate::Simulator;
use crate::draws;
use proptest::prelude::*;
use risetime_model::settings::Value;
use risetime_model::workload::Policy;
use risetime_trace::Backend;

const KERNELS: [&str; 4] = ["linux-6.1", "linux-6.8", "linux-6.12", "linux-7.2"];

fn spinner(comm: &str, policy: &str, priority: i32) -> String {
    format!(r#""{comm}": {{"policy": "{policy}", "priority": {priority}, {SPIN}}}"#)
}

/// The per mille of the time from `from` to `to` (ms) that `comm` ran.
fn permille(runs: &Runs, comm: &str, from: u64, to: u64) -> u64 {
    runs.ran(comm, from, to) / ((to - from) * 1000)
}

fn set(tasks: &str, policy: &str, ms: u64, set: &[(&str, Value)]) -> Runs {
    let mut e = experiment_of(cpus(1), tasks, policy, ms);
    for (name, value) in set {
        e.settings.insert(*name, value.clone());
    }
    let mut runs = Runs::default();
    Simulator.run(&e, &mut runs).unwrap_or_else(|e| panic!("{e}"));
    runs
}

#[test]
fn a_fair_task_keeps_its_share_however_many_are_above_it() {
    for kernel in KERNELS {
        for n in [1, 4, 20] {
            let high: Vec<String> =
                (0..n).map(|i| spinner(&format!("h{i}"), "SCHED_HIGH", -20)).collect();
            let tasks = format!("{}, {}", high.join(", "), spinner("low", "SCHED_OTHER", 19));
            let runs = run(cpus(1), &tasks, kernel, 4000);
            let low = permille(&runs, "low", 0, 4000);
            assert!((95..=105).contains(&low), "{kernel}, {n}: {low} ‰");
        }
    }
}

#[test]
fn its_share_can_be_set_and_its_turns() {
    let tasks = [spinner("h", "SCHED_HIGH", 0), spinner("low", "SCHED_OTHER", 0)].join(", ");
    for percent in [1, 25, 50] {
        let value = [("sched_high_fair_percent", Value::Int(percent))];
        let low = |kernel| permille(&set(&tasks, kernel, 8000, &value), "low", 0, 8000);
        let wanted = percent as u64 * 10;
        assert!(low("linux-6.8").abs_diff(wanted) <= 5, "{percent} %: {} ‰", low("linux-6.8"));
        // There the deadline server gives them up to 5 % beside that.
        let served = low("linux-7.2");
        assert!((wanted - 5..=wanted.max(50) + 5).contains(&served), "{percent} %: {served} ‰");
    }
    let value = [("sched_high_fair_turn_us", Value::Int(20_000))];
    let runs = set(&tasks, "linux-7.2", 2000, &value);
    let turns = runs.turns("low");
    let long: Vec<u64> = turns.iter().skip(1).map(|(_, from, to)| to - from).collect();
    assert!(!long.is_empty() && long.iter().all(|us| (18_900..=21_100).contains(us)), "{long:?}");
}

#[test]
fn nice_values_are_its_priorities() {
    for kernel in KERNELS {
        let tasks = [spinner("a", "SCHED_HIGH", -5), spinner("b", "SCHED_HIGH", 0)].join(", ");
        let runs = run(cpus(1), &tasks, kernel, 4000);
        // 3121 : 1024
        let a = permille(&runs, "a", 0, 4000);
        assert!((743..=763).contains(&a), "{kernel}: {a} ‰");
    }
}

#[test]
fn its_slices_are_its_own() {
    let of = |us: u32| {
        let task = |comm: &str| {
            format!(r#""{comm}": {{"policy": "SCHED_HIGH", "dl-runtime": {us}, {SPIN}}}"#)
        };
        run(cpus(1), &[task("a"), task("b")].join(", "), "linux-7.2", 1000).turns("a").len()
    };
    let (short, long) = (of(2000), of(20_000));
    assert!(short > 5 * long, "{short} turns of 2 ms, {long} of 20");
}

#[test]
fn it_gives_way_to_real_time_tasks_and_its_account_sees_what_they_take() {
    // Half of the time is the real-time task's, in pieces longer than a turn. Of the other half fair tasks have
    // their share: not all of the wall time's, and not what is left of it.
    let rt = r#""rt": {"policy": "SCHED_FIFO", "loop": -1, "run": 30000, "sleep": 30000}"#;
    for kernel in KERNELS {
        let tasks = [rt.into(), spinner("h", "SCHED_HIGH", 0), spinner("low", "SCHED_OTHER", 0)];
        let runs = run(cpus(1), &tasks.join(", "), kernel, 6000);
        let [rt, h, low] = ["rt", "h", "low"].map(|comm| permille(&runs, comm, 0, 6000));
        assert!((490..=510).contains(&rt), "{kernel}: rt {rt} ‰");
        let share = low * 1000 / (low + h);
        // From 6.12 on the deadline server gives them up to 50 ms of a second more, of which a turn's worth is counted.
        let most = if kernel == KERNELS[0] || kernel == KERNELS[1] { 107 } else { 100 + 100 };
        assert!((93..=most).contains(&share), "{kernel}: {share} ‰ of {}", low + h);
    }
}

#[test]
fn it_comes_before_fair_tasks_at_once() {
    let task = r#""h": {"policy": "SCHED_HIGH", "loop": -1, "run": 1000, "sleep": 9000}"#;
    for kernel in KERNELS {
        let fair: Vec<String> =
            (0..10).map(|i| spinner(&format!("f{i}"), "SCHED_OTHER", -20)).collect();
        let runs = run(cpus(1), &format!("{task}, {}", fair.join(", ")), kernel, 3000);
        let turns = runs.turns("h");
        assert!((290..=301).contains(&turns.len()), "{kernel}: {}", turns.len());
        assert!(turns.iter().all(|(_, from, to)| to - from <= 1100), "{kernel}: {turns:?}");
    }
}

/// While it runs nobody else tells the governor.
#[test]
fn its_frequency_rises_while_it_runs() {
    let tasks = [spinner("h", "SCHED_HIGH", 0), spinner("low", "SCHED_OTHER", 0)].join(", ");
    for kernel in ["linux-6.1", "linux-7.2"] {
        let governor = [("governor", Value::Name("schedutil".into()))];
        let runs = set(&tasks, kernel, 60, &governor);
        let (_, from, to) = runs.turns("h")[0];
        let within = |at: u64| (from + 1000..to).contains(&(at / 1000));
        let alone = runs.freqs().iter().filter(|f| within(f.0)).count();
        assert!(alone >= 2, "{kernel}: {alone} changes in {from}…{to} µs: {:?}", runs.freqs());
    }
}

#[test]
fn none_waits_where_another_cpu_has_none() {
    for kernel in KERNELS {
        let high: Vec<String> =
            (0..2).map(|i| spinner(&format!("h{i}"), "SCHED_HIGH", 0)).collect();
        let fair: Vec<String> =
            (0..4).map(|i| spinner(&format!("f{i}"), "SCHED_OTHER", 0)).collect();
        let runs = run(cpus(2), &[high, fair].concat().join(", "), kernel, 3000);
        for comm in ["h0", "h1"] {
            let got = permille(&runs, comm, 100, 3000);
            assert!(got >= 880, "{kernel}: {comm} {got} ‰");
        }
    }
}

#[test]
fn under_the_server_real_time_tasks_do_not_starve_it() {
    let tasks = [
        format!(r#""rt": {{"policy": "SCHED_FIFO", {SPIN}}}"#),
        spinner("h", "SCHED_HIGH", 0),
        spinner("low", "SCHED_OTHER", 0),
    ];
    let got = |server: &str| {
        let value = [("sched_high_server", Value::Name(server.into()))];
        let runs = set(&tasks.join(", "), "linux-7.2", 20_000, &value);
        ["h", "low"].map(|comm| permille(&runs, comm, 0, 20_000))
    };
    let [h, low] = got("no");
    assert!(h == 0 && (45..=55).contains(&low), "{h} and {low} ‰");
    let [h, low] = got("yes");
    assert!((45..=55).contains(&(h + low)) && h > 3 * low && low > 0, "{h} and {low} ‰");
}

#[test]
fn a_task_comes_and_goes() {
    let tasks = format!(
        r#""t": {{"loop": -1, "phases": {{
            "high": {{"policy": "SCHED_HIGH", "priority": -5, "run": 20000}},
            "other": {{"policy": "SCHED_OTHER", "run": 2000}},
            "rt": {{"policy": "SCHED_RR", "run": 3000, "sleep": 1000}},
            "again": {{"policy": "SCHED_HIGH", "dl-runtime": 4000, "run": 5000}}}}}}, {}"#,
        spinner("low", "SCHED_OTHER", 0)
    );
    for kernel in KERNELS {
        let runs = run(cpus(1), &tasks, kernel, 2000);
        assert!(permille(&runs, "t", 0, 2000) > 600, "{kernel}");
        assert!(permille(&runs, "low", 0, 2000) > 100, "{kernel}");
    }
}

proptest! {
    #![proptest_config(draws::config(200))]

    /// Whatever else the machine does: after every event, and by its trace.
    #[test]
    fn a_machine_with_the_class_stays_consistent(mut e in experiments(), every in 1..4usize, served: bool) {
        let workload = std::sync::Arc::make_mut(&mut e.workload);
        if workload.hotplug.is_empty() {
            let high = |policy: &mut Option<Policy>| {
                let slice = match policy {
                    Some(Policy::Other { slice } | Policy::Batch { slice }) => *slice,
                    _ => None,
                };
                *policy = Some(Policy::High { slice });
            };
            for task in workload.tasks.iter_mut().chain(&mut workload.forked).step_by(every) {
                high(&mut task.attr.policy);
                for phase in task.phases.iter_mut().skip(1).step_by(2) {
                    high(&mut phase.attr.policy);
                }
            }
        }
        if served {
            e.settings.insert("sched_high_server", Value::Name("yes".into()));
        }
        let checker = run_checked(&e)?;
        prop_assert!(checker.wrong.is_empty(), "{:?}", checker.wrong);
    }
}

proptest! {
    #![proptest_config(draws::config(48))]

    /// Whatever the class's tasks do, a fair task that always wants to run has its share of what they and it have
    /// run, to a turn and a tick.
    #[test]
    fn nobody_starves(
        kernel in 0..4usize,
        percent in 2..40i64,
        high in proptest::collection::vec((-20..20i32, 100..40_000u32, 0..5_000u32), 1..6),
        rt in 0..20_000u32,
    ) {
        let mut tasks: Vec<String> = high.iter().enumerate().map(|(i, (nice, run, sleep))| format!(
            r#""h{i}": {{"policy": "SCHED_HIGH", "priority": {nice}, "loop": -1, "run": {run}, "sleep": {sleep}}}"#
        )).collect();
        tasks.push(spinner("low", "SCHED_OTHER", 19));
        if rt > 5000 {
            tasks.push(format!(r#""rt": {{"policy": "SCHED_FIFO", "loop": -1, "run": {rt}, "sleep": 20000}}"#));
        }
        let value = [("sched_high_fair_percent", Value::Int(percent))];
        let ms = 3000;
        let runs = set(&tasks.join(", "), KERNELS[kernel], ms, &value);
        let low = runs.ran("low", 0, ms);
        let high: u64 = (0..high.len()).map(|i| runs.ran(&format!("h{i}"), 0, ms)).sum();
        let due = (low + high) / 100 * percent as u64;
        prop_assert!(low + 8_000_000 >= due, "{} of {} ms", low / 1_000_000, due / 1_000_000);
    }
}
