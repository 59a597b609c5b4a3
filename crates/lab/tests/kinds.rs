//! Kinds of work: how long they take and what that costs is what the platform's tables say.

use risetime_kernel::units::{KHz, Span};
use risetime_lab::{Request, run};
use risetime_model::{Experiment, Platform, Workload};
use risetime_sim::Simulator;
use std::sync::Arc;

/// One task on one CPU, 10 ms of a kind of work every 200 ms.
fn workload(kind: &str, cpu: u32) -> String {
    let kind = if kind.is_empty() { String::new() } else { format!(r#""kind": "{kind}", "#) };
    format!(
        r#"{{ "tasks": {{ "t": {{ "cpus": [{cpu}], "loop": -1, {kind}"run": 10000,
                          "timer": {{ "ref": "unique", "period": 200000, "mode": "absolute" }} }} }} }}"#
    )
}

fn experiment(platform: &str, text: &str, khz: u64) -> Experiment {
    let request = Request {
        policies: vec![format!("mainline+governor=userspace+scaling_setspeed={khz}")],
        seconds: Some(2.1),
        ..Request::new("periodic", platform)
    };
    let template = request.experiments().expect("built in").remove(0);
    // Leaving an idle state would be in the response.
    let mut platform = Platform::clone(&template.platform);
    platform.domains.iter_mut().for_each(|d| d.idle.clear());
    let workload = Arc::new(Workload::parse(text, "my.json").expect("good"));
    Experiment { workload, platform: Arc::new(platform), ..template }
}

#[test]
fn each_kind_takes_the_time_and_power_of_its_table() {
    for name in ["odroid-xu4", "rpi4", "zcu102"] {
        let platform = Platform::load(name).expect("built in");
        let kinds: Vec<&str> = std::iter::once("").chain(platform.kinds()).collect();
        assert!(kinds.len() > 3, "{name}: {kinds:?}");
        for d in &platform.domains {
            for (number, kind) in kinds.iter().enumerate() {
                // The lowest OPP, one in between, the highest.
                for at in [0, d.opps.len() / 2, d.opps.len() - 1] {
                    let freq = d.opps[at].freq;
                    let ppm = match number.checked_sub(1) {
                        Some(i) => d.work[i].speed_ppm[at],
                        None => d.capacity.0 * 1_000_000 * freq.0 / (1024 * d.freq_max().0),
                    };
                    let wanted_ms = 10.0 * 1e6 / ppm as f64;
                    let e = experiment(name, &workload(kind, d.cpus[0].0), freq.0);
                    let result =
                        run(&Simulator, &e, Default::default(), None).expect("it runs").result;
                    let task = &result.tasks[0];
                    // The first job begins before the frequency is there.
                    let job = result.jobs[0].response.as_ref().expect("it has jobs");
                    assert!(
                        (job.p50 / wanted_ms - 1.0).abs() < 0.005,
                        "{name} {freq:?} {kind}: {} {wanted_ms}",
                        job.p50
                    );
                    let Some(power) = d.power_of_work(freq, number) else {
                        assert_eq!(task.whole.energy_mj, None, "{name}: no power is known");
                        continue;
                    };
                    let mw = task.whole.energy_mj.expect("known") / task.whole.running_ms * 1000.0;
                    assert!(
                        (mw / (power.0 as f64 / 1000.0) - 1.0).abs() < 0.02,
                        "{name} {freq:?} {kind}: {mw} mW, {power:?}"
                    );
                    // What is done is what was asked for, whatever kind: 11 jobs of 10 ms.
                    assert!((task.whole.work_ms - 110.0).abs() < 11.0, "{}", task.whole.work_ms);
                }
            }
        }
    }
}

/// Energy of the CPUs is that of their tasks, idle CPUs and nothing else, kinds or not; two kinds in one job take both.
#[test]
fn a_job_of_two_kinds_takes_both() {
    let text = r#"{ "tasks": { "t": { "cpus": [4], "loop": -1, "run": 3000, "kind": "hash", "run1": 4000,
        "kind1": "cachekiller", "run2": 5000, "kind2": "", "run3": 1000,
        "timer": { "ref": "unique", "period": 200000, "mode": "absolute" } } } }"#;
    let platform = Platform::load("odroid-xu4").expect("built in");
    let d = &platform.domains[1];
    let freq = KHz(1_000_000);
    let at = d.opps.iter().position(|o| o.freq == freq).expect("an OPP");
    let of = |kind: &str| d.work.iter().find(|w| w.kind == kind).expect("known");
    let ms = |work: f64, ppm: u64| work * 1e6 / ppm as f64;
    let (hash, memory) = (of("hash"), of("cachekiller"));
    let times = [4.0 * 2.0, ms(4.0, hash.speed_ppm[at]), ms(5.0, memory.speed_ppm[at])];
    let powers = [d.opps[at].power.0, hash.power[at].0, memory.power[at].0];
    let e = experiment("odroid-xu4", text, freq.0);
    let result = run(&Simulator, &e, Default::default(), None).expect("it runs").result;
    let job = result.jobs[0].response.as_ref().expect("it has jobs");
    let wanted: f64 = times.iter().sum();
    assert!((job.p50 / wanted - 1.0).abs() < 0.005, "{} {wanted}", job.p50);
    let wanted: f64 = times.iter().zip(powers).map(|(ms, uw)| ms * uw as f64 / 1e6).sum();
    let each = result.jobs[0].mj_per_job.expect("known");
    assert!((each / wanted - 1.0).abs() < 0.06, "{each} {wanted}");
}

#[test]
fn a_kind_that_the_platform_does_not_know_is_refused_with_its_place() {
    let told = |kind: &str, platform: &str| {
        let workload = Workload::parse(&workload(kind, 0), "my.json").expect("good");
        let platform = Platform::load(platform).expect("built in");
        workload.bind(&platform).map(drop).unwrap_err().to_string()
    };
    assert_eq!(
        told("encypt", "odroid-xu4"),
        "my.json:1:54: `kind`: odroid-xu4 has no table of work \"encypt\"\n  hint: did you mean `encrypt`? known: cachekiller, decrypt, encrypt, hash"
    );
    assert!(told("hash", "m1").contains("it knows plain work alone"), "{}", told("hash", "m1"));
    // Bound twice is bound once.
    let workload = Workload::parse(&workload("hash", 0), "my.json").expect("good");
    let platform = Platform::load("rpi4").expect("built in");
    let bound = workload.bind(&platform).expect("known");
    assert_eq!(bound.bind(&platform).expect("known"), bound);
    assert_eq!(
        Span::from_ms(10),
        bound.tasks[0].phases[0]
            .events
            .iter()
            .find_map(|e| match e {
                risetime_model::workload::Event::RunOf { work, kind: 2 } => Some(*work),
                _ => None,
            })
            .expect("the third kind")
    );
}
