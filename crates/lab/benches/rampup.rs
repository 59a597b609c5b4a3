//! How fast the simulator is, in the loop: experiments are made beforehand.
//!
//! `rampup` on the m1 is 100 naps of 10 ms and then one busy task to the end, 2 s in all: what
//! costs is a tick of one busy CPU. `crowd` is 60 tasks on the same 8 CPUs. Each with the trace
//! thrown away, and analysed. Then whole machines.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use risetime_analysis::{Analyzer, Options};
use risetime_lab::Request;
use risetime_model::{Experiment, Workload};
use risetime_sim::Simulator;
use risetime_trace::Backend;
use std::sync::Arc;

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

/// Whole machines: throughput is simulated time, so that "Kelem/s" reads as simulated seconds a second.
fn machines(c: &mut Criterion) {
    for (workload, platform, seconds) in [("phone", "pixel6", 60.0), ("server", "server256", 1.0)] {
        let experiment = built_in(workload, platform, seconds, "linux-7.2+ni_random=1");
        let mut group = c.benchmark_group(format!("{workload} on {platform}, {seconds} s"));
        group.sample_size(10).throughput(Throughput::Elements((seconds * 1e3) as u64));
        group.bench_function("null sink", |b| {
            b.iter(|| Simulator.run(&experiment, &mut ()).expect("runs"))
        });
        group.bench_function("analyzed", |b| {
            b.iter(|| {
                let mut analyzer = Analyzer::new(Options::default());
                Simulator.run(&experiment, &mut analyzer).expect("runs");
                analyzer.finish()
            });
        });
        group.bench_function("perfetto", |b| {
            b.iter(|| {
                let mut writer = risetime_trace::write::perfetto::Writer::new(std::io::sink());
                Simulator.run(&experiment, &mut writer).expect("runs")
            });
        });
        group.finish();
    }
}

fn benches(c: &mut Criterion) {
    for (name, experiment) in [("rampup 2 s", rampup()), ("crowd 2 s", crowd())] {
        let mut group = c.benchmark_group(name);
        group.sample_size(20);
        group.bench_function("null sink", |b| {
            b.iter(|| Simulator.run(&experiment, &mut ()).expect("runs"))
        });
        group.bench_function("analyzed", |b| {
            b.iter(|| {
                let mut analyzer = Analyzer::new(Options::default());
                Simulator.run(&experiment, &mut analyzer).expect("runs");
                analyzer.finish()
            });
        });
        group.finish();
    }
}

criterion_group!(all, benches, machines);
criterion_main!(all);
