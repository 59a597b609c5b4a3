use risetime_lab::*;
use risetime_analysis::Options;
use risetime_sim::Simulator;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let n: u32 = args[2].parse().unwrap();
    let r = Request { workload: "rampup".into(), platform: "m1".into(), policies: vec![args[1].clone()], set: vec![], seconds: None, phase: risetime_kernel::units::Span(0), seed: 1 };
    let e = r.experiments().unwrap();
    let p = run_phases(&Simulator, &e[0], n, &Options::default(), |_| ()).unwrap();
    let t = &p.summary.tasks[0];
    for r in &t.running { println!("{:?} {:?}", (r.cpu, r.freq), r.ms); }
    for r in &t.reach { println!("{:?} {:?}", r.what, r.after_ms); }
    println!("debt {:?}", t.debt_ms);
    println!("{:?}", p.runs[0].tasks[0].migrations);
    println!("{:?}", p.runs[0].tasks[0].burst);
    println!("{:?}", &p.runs[0].tasks[0].util_residency[..40.min(p.runs[0].tasks[0].util_residency.len())]);
}
