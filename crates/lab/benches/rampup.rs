//! How fast the simulator is, in the loop: experiments are made beforehand.
//!
//! `rampup` on the m1 is 100 naps of 10 ms and then one busy task to the end, 2 s in all: what
//! costs is a tick of one busy CPU. `crowd` is 60 tasks on the same 8 CPUs. Each with the trace
//! thrown away, and analysed. Then whole machines.

mod stopwatch;

use risetime_analysis::{Analyzer, Options};
use risetime_lab::Request;
use risetime_model::{Experiment, Workload};
use risetime_sim::Simulator;
use risetime_trace::Backend;
use std::sync::Arc;
use stopwatch::measure;

/// Sixty tasks that run a fifth to a third of the time each: about two per CPU.
const CROWD: &str = r#"{
  "global": { "duration": 2 },
  "tasks": {
    "short": { "instance": 30, "loop": -1, "run": 1000, "timer": { "ref": "unique", "period": 8000 } },
    "long":  { "instance": 20, "loop": -1, "run": 10000, "sleep": 40000 },
    "spin":  { "instance": 10, "loop": -1, "priority": 5, "run": 500000, "sleep": 10000 }
  }
}"#;

/// A built-in workload for `seconds`.
fn built_in(workload: &str, platform: &str, seconds: f64, policy: &str) -> Experiment {
    let request = Request {
        policies: vec![policy.into()],
        seconds: Some(seconds),
        ..Request::new(workload, platform)
    };
    request.experiments().expect("built in").remove(0)
}

fn rampup() -> Experiment {
    built_in("rampup", "m1", 2.0, "linux-7.2")
}

fn crowd() -> Experiment {
    let workload = Workload::parse(CROWD, "crowd").expect("a workload");
    Experiment { workload: Arc::new(workload), ..rampup() }
}

/// Fifty deadline tasks on the 8 CPUs of an XU4, 1804 jobs a second, as PARTSim's `rt50`: two thirds of what the board can do.
/// PARTSim's own models of that board give each CPU a queue of its own (`partitioned-ff`); the kernel has one for all (`gedf`).
fn rt50(placement: &str) -> Experiment {
    // Periods in ms, and how many tasks have each.
    const PERIODS: [(u64, u64); 5] = [(20, 20), (25, 9), (40, 8), (50, 12), (250, 1)];
    let task = |(i, period): (usize, u64)| {
        let (runtime, period) = (period * 73, period * 1000);
        let work = runtime * 95 / 100;
        format!(
            r#""t{i}": {{"policy": "SCHED_DEADLINE", "dl-runtime": {runtime}, "dl-period": {period}, "phases": {{
                "asks": {{"loop": 1, "sleep": 50000}},
                "works": {{"loop": -1, "timer": {{"ref": "unique", "period": {period}}}, "run": {work}}}}}}}"#
        )
    };
    let all = PERIODS.iter().flat_map(|(period, n)| (0..*n).map(|_| *period));
    let tasks: Vec<String> = all.enumerate().map(task).collect();
    let workload = Workload::parse(&format!(r#"{{"tasks": {{{}}}}}"#, tasks.join(", ")), "rt50");
    let policy = format!("linux-7.2+noise=off+dl_placement={placement}");
    let of = built_in("rampup", "odroid-xu4", 20.0, &policy);
    Experiment { workload: Arc::new(workload.expect("a workload")), ..of }
}

/// Measures simulations of `seconds`, with the trace thrown away and analysed.
fn simulate(name: &str, seconds: f64, experiment: &Experiment) {
    let made = (seconds, "simulated seconds");
    measure(&format!("{name}, null sink"), made, || {
        Simulator.run(experiment, &mut ()).expect("runs");
    });
    measure(&format!("{name}, analyzed"), made, || {
        let mut analyzer = Analyzer::new(Options::default());
        Simulator.run(experiment, &mut analyzer).expect("runs");
        analyzer.finish()
    });
}

fn main() {
    simulate("rampup, 2 s", 2.0, &rampup());
    simulate("crowd, 2 s", 2.0, &crowd());
    simulate("rt50, 20 s", 20.0, &rt50("gedf"));
    simulate("rt50 partitioned, 20 s", 20.0, &rt50("partitioned-ff"));
    // Whole machines.
    for (workload, platform, seconds) in [("phone", "pixel6", 60.0), ("server", "server256", 1.0)] {
        let experiment = built_in(workload, platform, seconds, "linux-7.2+ni_random=1");
        let name = format!("{workload} on {platform}, {seconds} s");
        simulate(&name, seconds, &experiment);
        measure(&format!("{name}, perfetto"), (seconds, "simulated seconds"), || {
            let mut writer = risetime_trace::write::perfetto::Writer::new(std::io::sink());
            Simulator.run(&experiment, &mut writer).expect("runs");
        });
    }
}
