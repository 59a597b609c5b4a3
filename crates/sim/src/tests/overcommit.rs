//! SCHED_OVERCOMMIT: up to 100 % no deadline is missed, above it everybody has the same part of what it asks for.

use super::classes::{Runs, SPIN, cpus, experiment_of, run};
use super::generate::experiments;
use super::properties::run_checked;
use crate::Simulator;
use crate::draws;
use proptest::prelude::*;
use risetime_kernel::units::{CpuId, Span};
use risetime_model::Platform;
use risetime_model::settings::Value;
use risetime_model::workload::Policy;
use risetime_trace::{Backend, Why};

const KERNELS: [&str; 4] = ["linux-6.1", "linux-6.8", "linux-6.12", "linux-7.2"];

/// A task with a job of `runtime` µs in each `period`.
fn periodic(comm: &str, runtime: u64, period: u64) -> String {
    format!(
        r#""{comm}": {{"policy": "SCHED_OVERCOMMIT", "dl-runtime": {runtime}, "dl-period": {period},
            "loop": -1, "run": {runtime}, "timer": {{"ref": "unique", "period": {period}, "mode": "absolute"}}}}"#
    )
}

fn spinner(comm: &str, runtime: u64, period: u64) -> String {
    format!(
        r#""{comm}": {{"policy": "SCHED_OVERCOMMIT", "dl-runtime": {runtime}, "dl-period": {period}, {SPIN}}}"#
    )
}

fn fair(comm: &str) -> String {
    format!(r#""{comm}": {{{SPIN}}}"#)
}

/// Lists by how many µs each job of the periodic task `comm` was late, of those that are done;
/// negative: early.
fn lateness(runs: &Runs, comm: &str, runtime: u64, period: u64) -> Vec<i64> {
    let turns = runs.turns(comm);
    let first = turns[0].1;
    let (mut done, mut late) = (0, Vec::new());
    for (_, from, to) in turns {
        let had = done;
        done += to - from;
        while (late.len() as u64 + 1) * runtime <= done {
            let k = late.len() as u64 + 1;
            late.push((from + k * runtime - had) as i64 - (first + k * period) as i64);
        }
    }
    late
}

/// The per mille of the time from `from` to `to` (ms) that `comm` ran.
fn permille(runs: &Runs, comm: &str, from: u64, to: u64) -> u64 {
    runs.ran(comm, from, to) / ((to - from) * 1000)
}

#[test]
fn at_100_percent_nobody_is_late_and_at_150_all_have_two_thirds() {
    for kernel in KERNELS {
        let set = [(10_000, 20_000), (9_000, 30_000), (10_000, 50_000)];
        let tasks: Vec<String> =
            set.iter().enumerate().map(|(i, (c, t))| periodic(&format!("t{i}"), *c, *t)).collect();
        let runs = run(cpus(1), &tasks.join(", "), kernel, 3000);
        for (i, (c, t)) in set.iter().enumerate() {
            let late = lateness(&runs, &format!("t{i}"), *c, *t);
            assert!(late.len() as u64 >= 3000 * 1000 / t - 1, "{kernel}: {} jobs", late.len());
            assert!(late.iter().all(|us| *us <= 1), "{kernel}: t{i} {:?}", late.iter().max());
        }
        let set = [(12_000, 20_000), (15_000, 30_000), (20_000, 50_000)];
        let tasks: Vec<String> =
            set.iter().enumerate().map(|(i, (c, t))| periodic(&format!("t{i}"), *c, *t)).collect();
        let runs = run(cpus(1), &tasks.join(", "), kernel, 6000);
        for (i, (c, t)) in set.iter().enumerate() {
            let ran = runs.ran(&format!("t{i}"), 0, 6000) as f64 / 1e9;
            let part = ran / (6.0 * *c as f64 / *t as f64);
            assert!((part * 1.5 - 1.0).abs() < 0.01, "{kernel}: t{i} has {part} of its share");
        }
    }
}

#[test]
fn it_starves_nobody_below() {
    for kernel in KERNELS {
        for asks in [1, 3, 10] {
            let mut tasks: Vec<String> =
                (0..asks).map(|i| spinner(&format!("t{i}"), 9_000, 10_000)).collect();
            tasks.push(fair("low"));
            let runs = run(cpus(1), &tasks.join(", "), kernel, 4000);
            let low = permille(&runs, "low", 0, 4000);
            let wanted = if asks == 1 { 100 } else { 60 };
            assert!(low.abs_diff(wanted) <= 4, "{kernel}, {asks}: {low} ‰");
            let waits = runs.turns("low");
            let longest = waits.windows(2).map(|w| w[1].1 - w[0].2).max().unwrap_or(0);
            assert!(longest <= 41_000, "{kernel}, {asks}: it waited for {longest} µs");
        }
    }
}

#[test]
fn beside_fair_tasks_94_percent_is_the_limit() {
    for kernel in KERNELS {
        let tasks = [periodic("a", 10_000, 20_000), periodic("b", 13_200, 30_000), fair("low")];
        let runs = run(cpus(1), &tasks.join(", "), kernel, 3000);
        for (comm, c, t) in [("a", 10_000, 20_000), ("b", 13_200, 30_000)] {
            let late = lateness(&runs, comm, c, t);
            assert!(late.iter().all(|us| *us <= 3), "{kernel}: {comm} {:?}", late.iter().max());
        }
        assert!(permille(&runs, "low", 0, 3000) >= 58, "{kernel}");
    }
}

#[test]
fn real_time_tasks_come_first_and_take_from_all_alike() {
    let rt = r#""rt": {"policy": "SCHED_FIFO", "loop": -1, "run": 20000, "sleep": 30000}"#;
    for kernel in KERNELS {
        let tasks = [rt.into(), spinner("a", 4_000, 10_000), spinner("b", 16_000, 20_000)];
        let runs = run(cpus(1), &tasks.join(", "), kernel, 5000);
        let [rt, a, b] = ["rt", "a", "b"].map(|comm| permille(&runs, comm, 0, 5000));
        assert!((395..=405).contains(&rt), "{kernel}: rt {rt} ‰");
        // Of 60 % of the CPU a third and two thirds.
        assert!(a.abs_diff(200) <= 4 && b.abs_diff(400) <= 4, "{kernel}: {a} and {b} ‰");
    }
}

#[test]
fn a_slower_cpu_has_less_to_share() {
    let mut platform = Platform::load("m1").expect("built in");
    platform.domains.iter_mut().for_each(|d| d.idle.clear());
    let little = CpuId(0);
    let capacity =
        platform.domain_of(little).map(|d| platform.domains[d].capacity.0).expect("a CPU");
    let task = |comm: &str| spinner(comm, 5_000, 10_000).replacen('{', r#"{"cpus": [0], "#, 1);
    let runs = run(platform, &[task("a"), task("b")].join(", "), "linux-7.2", 3000);
    assert!(capacity < 1000, "{capacity}");
    let [a, b] = ["a", "b"].map(|comm| permille(&runs, comm, 0, 3000));
    assert!(a.abs_diff(500) <= 5 && b.abs_diff(500) <= 5, "{a} and {b} ‰");
}

#[test]
fn on_several_cpus_sums_are_made_even() {
    for kernel in KERNELS {
        // 60 + 60 + 40 + 40 % on two CPUs: a pair of each.
        let tasks = [
            periodic("a", 12_000, 20_000),
            periodic("b", 12_000, 20_000),
            periodic("c", 8_000, 20_000),
            periodic("d", 8_000, 20_000),
        ];
        let runs = run(cpus(2), &tasks.join(", "), kernel, 3000);
        for comm in ["a", "b", "c", "d"] {
            let asked = if comm < "c" { 600 } else { 400 };
            let had = permille(&runs, comm, 500, 3000);
            assert!(had.abs_diff(asked) <= 5, "{kernel}: {comm} has {had} ‰ of {asked}");
        }
    }
}

#[test]
fn one_that_waits_is_pushed_when_another_cpu_is_free() {
    // Two spinners begin on one CPU, and may use the other one 100 ms later.
    let task = |comm: &str| {
        format!(
            r#""{comm}": {{"policy": "SCHED_OVERCOMMIT", "share": 80, "phases": {{
                "bound": {{"cpus": [0], "runtime": 100000}}, "free": {{"cpus": [0, 1], "loop": -1, "run": 100000}}}}}}"#
        )
    };
    for kernel in KERNELS {
        let runs = run(cpus(2), &[task("a"), task("b")].join(", "), kernel, 2000);
        assert!(runs.moves.iter().any(|(_, _, why)| *why == Why::OvercommitPush), "{kernel}");
        for comm in ["a", "b"] {
            let had = permille(&runs, comm, 500, 2000);
            assert!(had.abs_diff(800) <= 10, "{kernel}: {comm} {had} ‰");
        }
    }
}

#[test]
fn a_task_comes_and_goes() {
    let tasks = format!(
        r#""t": {{"loop": -1, "phases": {{
            "asks": {{"policy": "SCHED_OVERCOMMIT", "share": 50, "run": 20000}},
            "other": {{"policy": "SCHED_OTHER", "run": 2000}},
            "rt": {{"policy": "SCHED_RR", "run": 3000, "sleep": 1000}},
            "again": {{"policy": "SCHED_OVERCOMMIT", "dl-runtime": 4000, "dl-period": 5000, "run": 5000, "sleep": 500}}}}}}, {}"#,
        fair("low")
    );
    for kernel in KERNELS {
        let runs = run(cpus(1), &tasks, kernel, 2000);
        assert!(permille(&runs, "t", 0, 2000) > 400, "{kernel}");
        assert!(permille(&runs, "low", 0, 2000) > 100, "{kernel}");
    }
}

proptest! {
    #![proptest_config(draws::config(200))]

    /// Whatever else the machine does: after every event, and by its trace.
    #[test]
    fn a_machine_with_the_class_stays_consistent(mut e in experiments(), every in 1..4usize, percent in 1..120u64) {
        let workload = std::sync::Arc::make_mut(&mut e.workload);
        if workload.hotplug.is_empty() {
            let mut n = percent;
            let mut asks = |policy: &mut Option<Policy>| {
                n = n * 7 % 97 + 3;
                let period = Span::from_us(1000 + n * 300);
                *policy = Some(Policy::Overcommit { runtime: Span(period.0 / 100 * n), period });
            };
            for task in workload.tasks.iter_mut().chain(&mut workload.forked).step_by(every) {
                asks(&mut task.attr.policy);
                for phase in task.phases.iter_mut().skip(1).step_by(2) {
                    asks(&mut phase.attr.policy);
                }
            }
        }
        let checker = run_checked(&e)?;
        prop_assert!(checker.wrong.is_empty(), "{:?}", checker.wrong);
    }
}

proptest! {
    #![proptest_config(draws::config(100))]

    /// Sets of up to 100 %: no job is late, whatever the periods.
    #[test]
    fn no_set_of_up_to_100_percent_misses(
        kernel in 0..4usize,
        asks in proptest::collection::vec((1..100u64, 2..60u64), 1..7),
        fair_too: bool,
        part in 1..=100u64,
    ) {
        // Weights and periods in ms, scaled to so many percent in all: 94 beside a fair task.
        let all: u64 = asks.iter().map(|(w, _)| w).sum();
        let most = if fair_too { part * 94 / 100 } else { part };
        let sets: Vec<(u64, u64)> = asks
            .iter()
            .map(|(w, t)| (t * 1000, t * 10 * w * most / all))
            .filter(|(_, c)| *c >= 100)
            .map(|(t, c)| (c, t))
            .collect();
        prop_assume!(!sets.is_empty());
        let mut tasks: Vec<String> =
            sets.iter().enumerate().map(|(i, (c, t))| periodic(&format!("t{i}"), *c, *t)).collect();
        if fair_too {
            tasks.push(fair("low"));
        }
        let runs = run(cpus(1), &tasks.join(", "), KERNELS[kernel], 1500);
        for (i, (c, t)) in sets.iter().enumerate() {
            let late = lateness(&runs, &format!("t{i}"), *c, *t);
            // 1 µs of grace for each of the others, and what µs round.
            let grace = sets.len() as i64 + 3;
            prop_assert!(late.iter().all(|us| *us <= grace), "{sets:?}: t{i} {:?}", late.iter().max());
            prop_assert!(late.len() as u64 >= 1500 * 1000 / t - 1);
        }
    }

    /// Sets of more than 100 %: each has its share divided by the sum, to one request of its own.
    #[test]
    fn above_100_percent_all_have_the_same_part(
        kernel in 0..4usize,
        asks in proptest::collection::vec((5..=100u64, 2..40u64, any::<bool>()), 2..8),
        fair_too: bool,
    ) {
        let sum: u64 = asks.iter().map(|(percent, ..)| percent).sum();
        prop_assume!(sum > 100);
        let mut tasks: Vec<String> = asks.iter().enumerate().map(|(i, (percent, ms, spins))| {
            let of = if *spins { spinner } else { periodic };
            of(&format!("t{i}"), percent * ms * 10, ms * 1000)
        }).collect();
        if fair_too {
            tasks.push(fair("low"));
        }
        let ms = 4000;
        let runs = run(cpus(1), &tasks.join(", "), KERNELS[kernel], ms);
        let ours = if fair_too { 0.94 } else { 1.0 };
        for (i, (percent, period, _)) in asks.iter().enumerate() {
            let ran = runs.ran(&format!("t{i}"), 0, ms) as f64 / 1e6;
            let wanted = ms as f64 * *percent as f64 / sum as f64 * ours;
            let one = *percent as f64 * *period as f64 / 100.0;
            prop_assert!((ran - wanted).abs() <= one + 1.0, "{asks:?}: t{i} {ran} of {wanted} ms");
        }
    }
}

#[test]
fn what_those_below_have_can_be_set() {
    for percent in [1, 25, 50] {
        let tasks = [spinner("a", 9_000, 10_000), spinner("b", 9_000, 10_000), fair("low")];
        let mut e = experiment_of(cpus(1), &tasks.join(", "), "linux-6.8", 4000);
        e.settings.insert("sched_overcommit_fair_percent", Value::Int(percent));
        let mut runs = Runs::default();
        Simulator.run(&e, &mut runs).unwrap_or_else(|e| panic!("{e}"));
        let low = permille(&runs, "low", 0, 4000);
        assert!(low.abs_diff(percent as u64 * 10) <= 4, "{percent} %: {low} ‰");
    }
}
