//! Figures that have to hold whatever is run: work is what was done, times of a CPU are the whole run, nothing lost is negative.

use crate::draws;
use crate::experiment;
use crate::generate;
use proptest::prelude::*;
use risetime_analysis::{Options, RunResult};
use risetime_kernel::units::Span;
use risetime_lab::{Run, phase_spans, run};
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Workload};
use risetime_sim::Simulator;

fn result(e: &Experiment) -> RunResult {
    let Run { result, .. } = run(&Simulator, e, Options::default(), None).expect("a run");
    result
}

fn of(platform: &str, workload: &str, policy: &str, set: &[(&str, Value)], ms: u64) -> Experiment {
    let platform = match platform.contains('\n') {
        true => Platform::parse(platform, "p.toml").expect("a platform"),
        false => Platform::load(platform).expect("built in"),
    };
    let workload = match workload.contains('{') {
        true => Workload::parse(workload, "w.json").expect("a workload"),
        false => Workload::load(workload).expect("built in"),
    };
    experiment(platform, workload, policy, set, Span::from_ms(ms))
}

const SMT: &str = r#"
schema = 1
name = "smt"
hz = 250
sources = { capacity = "estimate", opp = "estimate", idle = "estimate" }
[[domain]]
cpus = "0-3"
capacity = 1024
fast_switch = true
opp = [{ freq_khz = 1500000, power_uw = 1000000, latency_ns = 50000 }, { freq_khz = 3000000, power_uw = 4000000, latency_ns = 50000 }]
idle = [{ name = "C1", exit_latency_us = 1, min_residency_us = 1, power_uw = 100000 }]
[topology]
core = { cpus = "0-3", each = 2 }
"#;

fn int(n: i64) -> Value {
    Value::Int(n)
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-5 * (1.0 + a.abs().max(b.abs()))
}

/// What adds up in any run.
fn holds(e: &Experiment, r: &RunResult) -> Result<(), TestCaseError> {
    for c in &r.cpus {
        let idle: f64 = c.idle.iter().map(|(_, ms)| ms).sum();
        let all = idle + c.busy_ms;
        prop_assert!(near(all, r.end_ms), "CPU{}: {all} of {}", c.cpu.0, r.end_ms);
    }
    let fastest = |cpu: usize| {
        let d = &e.platform.domains
            [e.platform.domain_of(risetime_kernel::units::CpuId(cpu as u32)).unwrap()];
        let (c, f, max) = d.capacity_at(d.freq_boost());
        (c.0 * f.0) as f64 / (1024 * max.0) as f64
    };
    for t in &r.tasks {
        let most: f64 = t.whole.running.iter().map(|at| at.ms * fastest(at.cpu.index())).sum();
        prop_assert!(
            t.whole.work_ms <= most * 1.000001 + 1e-6,
            "{}: {} of {most}",
            t.comm,
            t.whole.work_ms
        );
        prop_assert!(t.spent.work_ms <= t.whole.work_ms + 1e-6);
        prop_assert!(t.lost.iter().all(|l| l.ms >= 0.0));
        let b = t.burst.expect("a task has a burst");
        prop_assert!(b.debt_ms >= 0.0 && b.debt_ms <= b.t1_ms - b.t0_ms + 1e-6, "{b:?}");
        prop_assert!(near(t.lost.iter().map(|l| l.ms).sum(), b.debt_ms));
    }
    let work: f64 = r.tasks.iter().map(|t| t.whole.work_ms).sum();
    prop_assert!(near(work, r.work_ms));
    let (ran, busy): (f64, f64) =
        (r.tasks.iter().map(|t| t.whole.running_ms).sum(), r.cpus.iter().map(|c| c.busy_ms).sum());
    prop_assert!(ran <= busy + 1e-5 * (1.0 + busy), "tasks ran {ran} of {busy}");
    let of_tasks: Option<f64> = r.tasks.iter().map(|t| t.whole.energy_mj).sum();
    if let (Some(tasks), Some(all)) = (of_tasks, r.energy_mj) {
        prop_assert!(tasks <= all * 1.00001 + 1e-6, "tasks took {tasks} of {all} mJ");
    }
    Ok(())
}

proptest! {
    #![proptest_config(draws::config(40))]

    #[test]
    fn any_run_adds_up(e in generate::experiments(), noise in prop::sample::select(vec!["off", "vm", "machine"])) {
        let mut e = e;
        e.policy.set.insert("noise".into(), Value::Name(noise.into()));
        e.settings = risetime_sim::resolve(&e.platform, &e.policy).expect("settings");
        if let Ok(run) = run(&Simulator, &e, Options::default(), None) {
            holds(&e, &run.result)?;
        }
    }
}

/// Work is what the programs do, whatever makes it slow: no more and no less.
#[test]
fn finite_work_is_all_done() {
    let four = r#"{"tasks": {"w": {"instance": 4, "loop": 1, "run": 100000}}}"#;
    for set in [
        vec![],
        vec![("smt_speed", int(600))],
        vec![("smt_speed", int(1024))],
        vec![("memory_bound", int(512))],
        vec![("memory_bound", int(1024)), ("smt_speed", int(300))],
        vec![("irq_period_us", int(1000)), ("irq_us", int(300))],
        vec![("scaling_max_freq", int(1_500_000)), ("memory_bound", int(700))],
    ] {
        for platform in [SMT, "laptop4", "rpi4", "m1"] {
            let r = result(&of(platform, four, "linux-7.2", &set, 2000));
            assert_eq!(r.exited, (4, 4), "{set:?}");
            assert!(
                (r.work_ms - 400.0).abs() < 0.01,
                "{} of 400 on {platform}, {set:?}",
                r.work_ms
            );
        }
    }
}

/// Two threads of a core are no two cores: in time, work and energy, by default.
#[test]
fn threads_of_a_core_share_it() {
    let instances =
        |n: u32| format!(r#"{{"tasks": {{"w": {{"instance": {n}, "loop": 1, "run": 100000}}}}}}"#);
    let set = [("governor", Value::Name("performance".into()))];
    let of = |n: u32| result(&of(SMT, &instances(n), "linux-7.2", &set, 400));
    let (two, four) = (of(2), of(4));
    let took = |r: &RunResult| r.makespan_ms.expect("all are done");
    assert!((took(&two) - 100.0).abs() < 2.0, "one on each core: {}", took(&two));
    // 640 of 1024.
    assert!((took(&four) - 160.0).abs() < 2.0, "{}", took(&four));
    // Two cores at 4 W, never four.
    let busy = |r: &RunResult| r.tasks.iter().map(|t| t.whole.energy_mj.unwrap()).sum::<f64>();
    assert!((busy(&two) - 800.0).abs() < 10.0, "{}", busy(&two));
    assert!((busy(&four) - 1280.0).abs() < 20.0, "{}", busy(&four));
    let idle = two.energy_mj.unwrap() - busy(&two);
    assert!((idle - 2.0 * 0.1 * 300.0).abs() < 5.0, "two idle cores for 300 ms: {idle}");
}

/// The time that groups are throttled, by what cpu.stat of 6.12.117 (353 to 357 ms) and 6.1.0-50 (434 to 496) says.
#[test]
fn throttled_time_is_the_kernels() {
    let quota = r#"{ "taskgroups": { "/pod": { "quota_us": 20000, "period_us": 100000 } },
        "tasks": { "burn": { "taskgroup": "/pod", "loop": 40, "run": 5000, "sleep": 10000 } } }"#;
    // Where ticks take time from it, the task needs more than its quota for four bursts: after some periods a tick finds that out in the
    // midst of one, and all later ones are shifted.
    for (noise, policy, least, most) in [
        ("off", "linux-6.12", 330.0, 372.0),
        ("vm", "linux-6.12", 330.0, 372.0),
        ("machine", "linux-6.12", 330.0, 372.0),
        ("off", "linux-6.1", 430.0, 500.0),
        ("vm", "linux-6.1", 430.0, 500.0),
        ("machine", "linux-6.1", 345.0, 500.0),
    ] {
        let set =
            [("governor", Value::Name("performance".into())), ("noise", Value::Name(noise.into()))];
        let e = of("laptop4", quota, policy, &set, 1500);
        let mut all: Vec<f64> = phase_spans(e.platform.tick(), 7)
            .map(|by| result(&e.later(by)).quotas[0].throttled_ms)
            .collect();
        all.sort_by(f64::total_cmp);
        assert!((least..=most).contains(&all[3]), "{policy}, {noise}: {all:?}");
    }
}

/// A cap comes so long after the workload starts, in whichever phase that is.
#[test]
fn later_times_count_from_the_workloads_start() {
    let busy = r#"{"tasks": {"w": {"loop": -1, "run": 100000}}}"#;
    let set = [
        ("scaling_max_freq_to", int(1_000_000)),
        ("scaling_max_freq_from_ms", int(100)),
        ("governor", Value::Name("performance".into())),
    ];
    let e = of("rpi4", busy, "linux-7.2", &set, 300);
    for phase in phase_spans(e.platform.tick(), 8) {
        let r = result(&e.later(phase));
        let slow = r.tasks[0].whole.running.iter().filter(|at| at.freq.0 <= 1_000_000);
        let ms: f64 = slow.map(|at| at.ms).sum();
        // A kthread, the driver and the hardware take their time.
        assert!((ms - 200.0).abs() < 2.0, "from phase {phase:?}: {ms}");
    }
}

/// Timer expiry to running has the way out of an idle state in it; a limit takes that away.
#[test]
fn a_timer_wakes_through_the_idle_state() {
    let cyclic = r#"{"tasks": {"cyclic": {"policy": "SCHED_FIFO", "priority": 80, "cpus": [3], "loop": -1, "run": 3,
        "timer": {"ref": "unique", "period": 10000, "mode": "absolute"}}}}"#;
    let of = |set: &[(&str, Value)]| {
        let mut r = result(&of("laptop4", cyclic, "linux-7.2", set, 1000));
        let l = r.latency.swap_remove(0);
        (l.wakeup.took.unwrap().p99, l.wu_lat.took.unwrap().p99)
    };
    let (wakeup, all) = of(&[]);
    assert!(wakeup < 0.001 && (all - 0.89).abs() < 0.01, "{wakeup} {all}");
    for (name, n, most) in
        [("cpu_dma_latency", 10, 0.0101), ("cpu_dma_latency", 0, 0.0021), ("max_cstate", 1, 0.0021)]
    {
        assert!(of(&[(name, int(n))]).1 <= most, "{name}={n}");
        assert!(
            of(&[(name, int(n)), ("cpuidle_governor", Value::Name("teo".into()))]).1 <= most,
            "teo, {name}={n}"
        );
    }
    let deepest = Platform::load("laptop4").unwrap().domains[0].idle.len() - 1;
    let off = format!("state{deepest}_disable");
    assert!(of(&[(&off, int(1))]).1 < 0.85, "the deepest disabled");
}
