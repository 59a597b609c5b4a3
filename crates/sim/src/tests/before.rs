//! Tests of load tracking in older kernels: each of the problems that were mended, and that it is
//! mended.

use super::generate::experiments;
use super::properties::step_through;
use super::trackers::{first_at, one_cpu, run};
use super::{Bytes, experiment};
use crate::run::engine::Simulation;
use crate::run::setup;
use crate::state::machine::Machine;
use crate::{Counterfactual, Simulator, draws};
use proptest::prelude::*;
use risetime_kernel::units::{CpuId, Instant, Span, TaskId, Util};
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Workload};
use risetime_trace::{Backend, Event, Memory};

/// Lists the settings of former load tracking. After the first three a runqueue's sums are no
/// longer those of its tasks: entities lose time each by itself, are scaled by the speed at their
/// own updates, or leave without a word.
fn former() -> [(&'static str, Value); 7] {
    let name = |name: &str| Value::Name(name.into());
    [
        ("pelt_invariance", name("contribution")),
        ("pelt_remainder", name("lost")),
        ("pelt_propagate", Value::Int(0)),
        ("pelt_divider", name("whole")),
        ("util_est", Value::Int(0)),
        ("nohz_stats", Value::Int(0)),
        ("rt_tracking", name("rt_avg")),
    ]
}

proptest! {
    #![proptest_config(draws::config(64))]

    /// Every experiment works with some of them, and gives the same bytes again.
    #[test]
    fn a_machine_of_before_stays_consistent(mut e in experiments(), some in 1..128u16) {
        for (_, (key, value)) in (0..).zip(former()).filter(|(i, _)| some & (1 << i) != 0) {
            e.policy = e.policy.set_for_all(key, value);
        }
        e.settings = crate::resolve(&e.platform, &e.policy).expect("settings");
        if some & 7 == 0 {
            step_through(&e, Counterfactual::default(), &mut ()).map_err(TestCaseError::fail)?;
        }
        let bytes = || {
            let mut bytes = Bytes::default();
            Simulator.run(&e, &mut bytes).expect("a run");
            bytes.0
        };
        prop_assert!(bytes() == bytes());
    }
}

/// The machine after so long, under `linux-6.1` with these settings.
fn machine_after<R>(
    platform: &Platform,
    workload: &str,
    set: &str,
    ms: u64,
    look: impl Fn(&Machine) -> R,
) -> R {
    let workload = Workload::parse(workload, "before.json").expect("a workload");
    let policy = format!("linux-6.1{set}");
    let e: Experiment = experiment(platform.clone(), workload, &policy, &[], Span::from_ms(ms));
    let mut sink = ();
    let mut engine: Simulation<'_> =
        setup::simulation(&e, &mut sink, Counterfactual::default()).expect("a machine");
    engine.run(Instant(e.duration.0)).expect("a run");
    look(&engine.k.m)
}

fn task_util(m: &Machine) -> u64 {
    m.task(TaskId(0)).avg.util_avg.0
}

/// The util of the first task, each time that it changed, from `ms` on.
fn utils(trace: &Memory, ms: u64) -> Vec<u64> {
    let util = |(at, event): &(Instant, Event)| match *event {
        Event::PeltTask { task: TaskId(0), util_avg, .. } if at.0 >= ms * 1_000_000 => {
            Some(util_avg.0)
        }
        _ => None,
    };
    trace.events().iter().filter_map(util).collect()
}

const BUSY: &str = r#"{"tasks": {"t": {"runtime": 2000000}}}"#;

/// "New invariance scheme": at a quarter of the speed a busy CPU looked like a quarter for ever, and how full it was
/// nobody could tell.
#[test]
fn util_ended_at_what_the_frequency_gives() {
    let at_1_ghz = |set: &str| {
        let set = format!("+governor=powersave{set}");
        machine_after(&one_cpu(), BUSY, &set, 1500, task_util)
    };
    assert!((1000..=1024).contains(&at_1_ghz("")), "{}", at_1_ghz(""));
    let before = at_1_ghz("+pelt_invariance=contribution");
    assert!((250..=256).contains(&before), "{before}");
    // So schedutil climbs in steps, each as long as four fifths of the next OPP take.
    let top = |set: &str| {
        let trace = run(one_cpu(), BUSY, &format!("linux-6.1{set}"), 1000);
        first_at(&trace, 0, 4).expect("it gets there")
    };
    let (now, before) = (top(""), top("+pelt_invariance=contribution"));
    assert!(before > now + 8, "{before} ms, now {now}");
}

/// The same work looks the same at every frequency in both schemes, where there is idle time.
#[test]
fn both_schemes_are_invariant_with_idle_time() {
    let workload = r#"{"tasks": {"t": {"loop": -1, "run": 2000, "timer": {"ref": "unique", "period": 20000}}}}"#;
    for set in ["", "+pelt_invariance=contribution"] {
        let mean = |governor: &str| {
            let trace =
                run(one_cpu(), workload, &format!("linux-6.1+governor={governor}{set}"), 1500);
            let utils = utils(&trace, 500);
            utils.iter().sum::<u64>() / utils.len() as u64
        };
        let (slow, fast) = (mean("powersave"), mean("performance"));
        assert!(slow.abs_diff(fast) <= 25, "{slow} and {fast} of some 102 with{set}");
    }
}

/// "Fix small task tracking": of each run up to 1 µs was lost.
#[test]
fn small_tasks_looked_smaller() {
    let mut platform = one_cpu();
    platform.domains[0].idle.clear();
    let workload =
        r#"{"tasks": {"t": {"loop": -1, "run": 19, "timer": {"ref": "unique", "period": 100}}}}"#;
    let mean = |set: &str| {
        let policy = format!("linux-6.1+noise=off+governor=performance{set}");
        let utils = utils(&run(platform.clone(), workload, &policy, 400), 300);
        utils.iter().sum::<u64>() / utils.len() as u64
    };
    let (now, before) = (mean(""), mean("+pelt_remainder=lost"));
    assert!((185..=205).contains(&now), "{now}: 19 of 100");
    assert!(before + 3 <= now, "{before}, now {now}");
}

/// "Metrics not always stable": the average of a task that always runs.
#[test]
fn averages_went_up_and_down() {
    let range = |set: &str| {
        let policy = format!("linux-6.1+governor=performance{set}");
        let utils = utils(&run(one_cpu(), BUSY, &policy, 1500), 700);
        (*utils.iter().min().expect("updates"), *utils.iter().max().expect("updates"))
    };
    let ((low, high), (was_low, was_high)) = (range(""), range("+pelt_divider=whole"));
    assert!(high - low <= 1, "{low} to {high}");
    assert!(was_high - was_low >= 15, "{was_low} to {was_high}");
}

/// "Task migrations in groups not reflected": a task of a group moves, and the CPU that it left stays as busy as it
/// was, while the one to which it came knows nothing of it.
#[test]
fn a_groups_task_moved_and_its_util_stayed() {
    let m1 = Platform::load("m1").expect("built in");
    let workload = r#"{"taskgroups": {"/g": {}}, "tasks": {"t": {"taskgroup": "/g", "phases": {
        "here": {"cpus": [4], "loop": 1, "runtime": 300000},
        "there": {"cpus": [5], "loop": 1, "runtime": 300000}}}}}"#;
    let utils = |set: &str| {
        let util = |m: &Machine, cpu: u32| m.cpu(CpuId(cpu)).cfs_avg.avg.util_avg;
        machine_after(&m1, workload, set, 302, |m| (util(m, 4), util(m, 5)))
    };
    let (left, came) = utils("");
    assert!(left < Util(50) && came > Util(950), "{left:?}, {came:?}");
    let (left, came) = utils("+pelt_propagate=0");
    assert!(left > Util(900) && came < Util(100), "{left:?}, {came:?}");
}

/// A task that was big, and has slept until nothing of that is left: the next time it starts from nothing again.
#[test]
fn nothing_remembered_what_a_task_needed() {
    let workload = r#"{"tasks": {"t": {"loop": -1, "run": 60000, "timer": {"ref": "unique", "period": 460000}}}}"#;
    let top = |set: &str| {
        let trace = run(one_cpu(), workload, &format!("linux-6.1{set}"), 1300);
        first_at(&trace, 920, 4)
    };
    assert_eq!(top(""), None, "it asks for no less meanwhile");
    assert!(top("+util_est=0").is_some_and(|ms| ms >= 80), "{:?}", top("+util_est=0"));
}

/// "Update blocked load": a CPU sleeps, and nobody takes off what its tasks left.
#[test]
fn blocked_load_stayed_on_idle_cpus() {
    let m1 = Platform::load("m1").expect("built in");
    let workload = r#"{"tasks": {
        "asleep": {"cpus": [1], "loop": -1, "runtime": 200000, "sleep": 5000000},
        "stays": {"cpus": [0], "loop": -1, "run": 100, "timer": {"ref": "unique", "period": 4000}}}}"#;
    let left = |set: &str, ms: u64| {
        machine_after(&m1, workload, set, ms, |m| m.cpu(CpuId(1)).cfs_avg.avg.util_avg)
    };
    assert_eq!(left("", 1500), Util(0));
    let (soon, late) = (left("+nohz_stats=0", 210), left("+nohz_stats=0", 1500));
    assert!(soon > Util(50) && late == soon, "{soon:?}, then {late:?}");
}

/// "RT task utilization tracking": a mean over a second neither sees a burst while it is there …
#[test]
fn real_time_bursts_were_averaged_away() {
    let m1 = Platform::load("m1").expect("built in");
    // 300 ms busy, then never again, beside a fair task that gets balanced.
    let workload = r#"{"tasks": {
        "rt": {"policy": "SCHED_FIFO", "priority": 5, "cpus": [4], "loop": 1, "sleep": 1000000, "runtime": 100000},
        "t": {"cpus": [4], "loop": -1, "runtime": 10000, "sleep": 1000}}}"#;
    let left = |set: &str, ms: u64| {
        let set = format!("+governor=performance{set}");
        machine_after(&m1, workload, &set, ms, |m| m.cpu(CpuId(4)).cpu_capacity.0)
    };
    let before = "+rt_tracking=rt_avg";
    assert!(left("", 1099) < 300, "{}", left("", 1099));
    assert!(left(before, 1099) > 800, "{}", left(before, 1099));
    // … nor forgets it soon.
    assert!(left("", 1400) > 1000, "{}", left("", 1400));
    assert!(left(before, 1400) < 960, "{}", left(before, 1400));
}

#[test]
fn the_length_of_a_mean_needs_the_mean() {
    let resolve = |arg: &str| {
        let policy = risetime_model::Policy::from_arg(arg).expect("a policy");
        crate::resolve(&one_cpu(), &policy).map_err(|e| e.to_string())
    };
    assert!(resolve("linux-6.1+rt_tracking=rt_avg+sched_time_avg_ms=100").is_ok());
    let error = resolve("linux-6.1+sched_time_avg_ms=100").expect_err("nothing averages");
    assert!(error.contains("is a setting of rt_tracking=rt_avg"), "{error}");
}

/// Up to 4.16 schedutil heard of real-time tasks while they ran, up to 4.15 of deadline tasks; since then of their queues,
/// and of bandwidth.
#[test]
fn above_the_fair_class_frequencies_were_asked_for_at_ticks() {
    let top = |policy: &str, task: &str| {
        let workload = format!(
            r#"{{"tasks": {{"t": {{{task}, "loop": -1, "run": 40000, "timer": {{"ref": "a", "period": 100000}}}}}}}}"#
        );
        first_at(&run(one_cpu(), &workload, policy, 90), 0, 4)
    };
    let rt = r#""policy": "SCHED_FIFO", "priority": 5"#;
    let dl = r#""policy": "SCHED_DEADLINE", "dl-runtime": 20000, "dl-period": 100000, "dl-deadline": 100000"#;
    assert_eq!(top("linux-4.14", rt), Some(1), "at its first tick");
    assert_eq!(top("linux-4.20", rt), Some(0));
    assert_eq!(top("linux-4.14", dl), Some(1));
    // Half of the CPU, as each new fair task, still counts when cpufreq hears of the bandwidth (until 6.18).
    assert_eq!(top("linux-4.20", dl), Some(0));
    assert_eq!(top("linux-7.2", dl), None, "a fifth of the CPU and a quarter more are 1 GHz");
}

/// `sysctl_sched_uclamp_handler`: no task asks for clamps, and real-time tasks have another default.
#[test]
fn another_default_clamp_of_real_time_tasks_counts_by_itself() {
    let workload = r#"{"tasks": {"t": {"policy": "SCHED_FIFO", "priority": 5, "loop": -1, "run": 2000,
        "timer": {"ref": "a", "period": 20000}}}}"#;
    let top = |min: &str| {
        let policy = format!("linux-6.12+sched_util_clamp_min_rt_default={min}");
        first_at(&run(one_cpu(), workload, &policy, 300), 0, 4)
    };
    assert_eq!(top("1024"), Some(0));
    assert_eq!(top("0"), None, "a tenth of the CPU");
}
