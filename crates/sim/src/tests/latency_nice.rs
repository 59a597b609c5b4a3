//! `latency_nice`: who is in a hurry gets the CPU sooner, and not more of it; in both forms.

use super::Bytes;
use super::classes::{SPIN, cpus, experiment_of, run};
use crate::Simulator;
use risetime_trace::Backend;

/// A task that wakes often beside a busy one.
fn beside_busy(latency_nice: i32) -> String {
    format!(
        r#""busy": {{{SPIN}}},
           "t": {{"latency_nice": {latency_nice}, "delay": 30000, "loop": -1, "runtime": 3000, "sleep": 2500}}"#
    )
}

/// The average time from wakeup to sleep, in µs; and the time that the task ran, in ms.
fn response(policy: &str, latency_nice: i32) -> (u64, u64) {
    let runs = run(cpus(1), &beside_busy(latency_nice), policy, 4000);
    let all = runs.responses("t");
    (all.iter().sum::<u64>() / all.len() as u64 / 1000, runs.ran("t", 0, 4000) / 1_000_000)
}

#[test]
fn with_cfs_the_hasty_preempt_and_the_patient_wait() {
    for policy in ["linux-5.10+latency_nice=1", "linux-6.1+latency_nice=1"] {
        let [soon, plain, late] = [-20, 0, 19].map(|nice| response(policy, nice).0);
        assert!(soon < plain && plain <= late, "{policy}: {soon} {plain} {late}");
    }
}

#[test]
fn with_eevdf_the_hasty_take_short_turns() {
    let two = |nice: i32| format!(r#""a": {{"latency_nice": {nice}, {SPIN}}}, "b": {{{SPIN}}}"#);
    for policy in ["linux-6.6", "linux-6.12", "linux-7.2"] {
        let policy = format!("{policy}+latency_nice=1+base_slice_ns=3000000");
        let runs = |nice| run(cpus(1), &two(nice), &policy, 4000);
        let (hasty, plain, patient) = (runs(-10), runs(0), runs(10));
        for runs in [&hasty, &plain, &patient] {
            let share = runs.ran("a", 0, 4000) / 1_000_000;
            assert!((1900..2100).contains(&share), "{policy}: {share} ms");
        }
        let turns = [&hasty, &plain, &patient].map(|runs| runs.turns("a").len());
        assert!(turns[0] > turns[2], "{policy}: {turns:?}");
    }
}

#[test]
fn one_that_wakes_late_with_eevdf_waits_less_if_hasty() {
    for policy in ["linux-6.6+latency_nice=1", "linux-6.12+latency_nice=1"] {
        let [soon, late] = [-20, 19].map(|nice| response(policy, nice).0);
        assert!(soon < late, "{policy}: {soon} {late}");
    }
}

/// Without the setting, and with it at 0, everything is as it was.
#[test]
fn it_takes_the_setting() {
    let bytes = |policy: &str, tasks: &str| {
        let mut sink = Bytes::default();
        let e = experiment_of(cpus(1), tasks, policy, 300);
        Simulator.run(&e, &mut sink).expect("a run");
        sink.0
    };
    let plain = beside_busy(0).replace(r#""latency_nice": 0, "#, "");
    for kernel in ["linux-6.1", "linux-6.6", "linux-7.2"] {
        assert_eq!(bytes(kernel, &plain), bytes(kernel, &beside_busy(-20)), "{kernel}");
        let on = format!("{kernel}+latency_nice=1");
        assert_ne!(bytes(&on, &beside_busy(-20)), bytes(&on, &beside_busy(19)), "{kernel}");
    }
    for kernel in ["linux-6.6", "linux-7.2"] {
        let on = format!("{kernel}+latency_nice=1");
        assert_eq!(bytes(kernel, &plain), bytes(&on, &beside_busy(0)), "{kernel}");
    }
}
