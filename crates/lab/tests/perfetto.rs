//! A Perfetto file beside the analysis of the same run: what both tell is the same.

#[path = "../../trace/tests/reader/mod.rs"]
mod reader;

use reader::Read;
use risetime_analysis::Options;
use risetime_kernel::units::Span;
use risetime_lab::{Run, run};
use risetime_model::{Experiment, Platform, Policy, Workload};
use risetime_sim::Simulator;
use risetime_trace::write::perfetto::Writer;
use std::sync::Arc;

/// A chain beside background work; its middle goes from nice 5 to -7 and to SCHED_FIFO, and is clamped in between.
const CHAIN: &str = r#"{ "tasks": {
    "ui":     { "job": { "name": "frame", "tasks": ["render"] },
                "loop": -1, "run": 3000, "resume": "render", "timer": { "ref": "unique", "period": 16667 } },
    "render": { "phases": {
                "slow": { "loop": 20, "policy": "SCHED_OTHER", "priority": 5, "suspend": "render", "run": 9000 },
                "fast": { "loop": 20, "policy": "SCHED_OTHER", "priority": -7, "util_min": 300, "suspend": "render", "run": 9000 },
                "real": { "loop": 20, "policy": "SCHED_FIFO", "priority": 10, "util_min": 0, "util_max": 700,
                          "suspend": "render", "run": 9000 } } },
    "late":   { "loop": -1, "run": 12000, "timer": { "ref": "t", "period": 10000, "mode": "absolute" } },
    "background": { "instance": 3, "loop": -1, "run": 4000, "sleep": 2000 } } }"#;

fn written(workload: &str, platform: &str) -> (Run, Read) {
    let platform = Platform::load(platform).expect("built in");
    let workload = Workload::parse(workload, "chain.json").expect("a workload");
    let policy = Policy::from_arg("linux-7.2").expect("built in");
    let settings = risetime_sim::resolve(&platform, &policy).expect("settings");
    let experiment = Experiment {
        platform: Arc::new(platform),
        workload: Arc::new(workload),
        policy,
        settings,
        duration: Span::from_ms(1500),
        phase: Span(300_000),
        seed: 1,
    };
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    let run = run(&Simulator, &experiment, Options::default(), Some(&mut writer)).expect("a run");
    writer.finish().expect("written");
    (run, Read::of(&bytes))
}

/// The account of the analysis, and what the counters of all domains add up to.
#[test]
fn the_power_adds_up_to_the_energy() {
    for platform in ["pixel6", "m1"] {
        let (run, read) = written(CHAIN, platform);
        let mut mj = 0.0;
        for domain in &Platform::load(platform).unwrap().domains {
            let points = read.doubles(&format!("policy{} power", domain.cpus[0].0));
            assert_eq!(points[0].0, 0);
            let ends = points.iter().map(|p| p.0).skip(1).chain([1_500_000_000]);
            mj += points
                .iter()
                .zip(ends)
                .map(|((at, mw), end)| mw * (end - at) as f64 / 1e9)
                .sum::<f64>();
        }
        let told = run.result.energy_mj.expect("known");
        assert!((mj - told).abs() < 1e-6 * told, "{platform}: {mj} mJ, {told}");
    }
}

#[test]
fn every_job_of_the_analysis_is_a_slice() {
    let (run, read) = written(CHAIN, "pixel6");
    assert_eq!(run.result.jobs.len(), 2);
    for jobs in &run.result.jobs {
        let slices = read.slices(&jobs.name);
        let many = |s: &reader::Slice| s.number("jobs").unwrap_or(1);
        let of =
            |outcome: &str| slices.iter().filter(|s| s.outcome() == outcome).map(many).sum::<u64>();
        let told = ["done", "late", "merged", "dropped"].map(of);
        let wanted = [jobs.done - jobs.late, jobs.late, jobs.merged, jobs.dropped];
        assert_eq!(told, wanted, "{}", jobs.name);
        assert!(told.iter().sum::<u64>() > 50, "{told:?}");
        let worst = slices.iter().filter(|s| ["done", "late"].contains(&s.outcome().as_str()));
        let response = worst.map(|s| s.to as f64 / 1e6 - s.ms("released_ms").unwrap());
        let worst = response.fold(0.0, f64::max);
        if jobs.overdue == 0 {
            assert!((worst - jobs.response.unwrap().max).abs() < 1e-6, "{worst}");
        }
    }
    // Ever more behind: its jobs take all tracks there are.
    let mut tracks: Vec<u64> = read.slices("late").iter().map(|s| s.track).collect();
    tracks.sort_unstable();
    tracks.dedup();
    assert_eq!(tracks.len(), 16);
}

#[test]
fn priorities_and_clamps_change_with_the_phases() {
    let (_, read) = written(CHAIN, "pixel6");
    let mut seen = Vec::new();
    let mut switches = read.kind(4);
    switches.sort_by_key(|e| e.1);
    for (_, _, _, switch) in switches {
        // sched_switch { next_comm = 5, next_prio = 7 }
        let prio = (switch.text(5) == "render").then(|| switch.number(7).unwrap());
        seen.extend(prio.filter(|prio| seen.last() != Some(prio)));
    }
    // A thread is created with nice 0, and takes on its phase's when it runs.
    assert_eq!(seen[..4], [120, 125, 113, 89]);
    let values = |name: &str| read.counter(name).iter().map(|c| c.1).collect::<Vec<_>>();
    assert_eq!(values("render uclamp_min")[..2], [300, 0]);
    assert_eq!(values("render uclamp_max")[..2], [1024, 700]);
    let cpus = (0..8).map(|cpu| format!("CPU{cpu} uclamp_min")).filter(|name| read.has(name));
    assert!(cpus.map(|name| values(&name)).any(|values| values.contains(&300)));
    let kthread = read.kind(4).into_iter().find(|e| e.3.text(5).starts_with("sugov"));
    let prio = kthread.map(|e| e.3.number(7).unwrap() as i64);
    assert!(prio.is_none_or(|prio| prio == -1), "{prio:?}");
}
