//! Which random requests for SCHED_DEADLINE a real kernel takes.
//!
//! ```text
//! dl_requests RELEASE…   asks these kernels (as `risetime vm kernels` lists them), a boot for 48 requests, and adds their answers
//!                        to tests/admission/kernels.csv, by which the test `admission` judges
//! ```

#[path = "../tests/admission/requests.rs"]
mod requests;

use requests::{PLATFORM, SEEDS, file, recorded, said, taken, workload};
use risetime_lab::{Request, run};
use risetime_model::{Experiment, Workload};
use risetime_vm::Vm;
use risetime_vm::fetch::Cache;
use std::sync::Arc;

fn main() {
    let releases: Vec<String> = std::env::args().skip(1).collect();
    let cache = Cache::from_env().unwrap_or_else(|e| panic!("{e}"));
    for release in releases {
        let (vm, kernel) = Vm::find(&cache, Some(&release), risetime_sim::catalogue())
            .unwrap_or_else(|e| panic!("{e}"));
        let rev = kernel.rev().expect("a stock kernel says what it is");
        let request = Request {
            policies: vec![format!("linux-{rev}")],
            seconds: Some(1.4),
            ..Request::new("periodic", PLATFORM)
        };
        let template = request.experiments().unwrap_or_else(|e| panic!("{e}")).remove(0);
        for seed in SEEDS {
            let workload = Workload::parse(&workload(seed), "requests.json").expect("good");
            let e = Experiment { workload: Arc::new(workload), ..template.clone() };
            let answer = match run(&vm, &e, Default::default(), None) {
                Ok(_) => "+".repeat(requests::requests(seed).len()),
                Err(e) => said(&e.to_string()).unwrap_or_else(|e| panic!("{e}")),
            };
            let ours = taken(&release, seed);
            let differ = answer.chars().zip(ours.chars()).filter(|(a, b)| a != b);
            eprintln!("{release} {seed}: {answer}, {} differ", differ.count());
            let mut all = recorded();
            all.insert((release.clone(), seed), answer);
            let row = |((release, seed), answer): (&(String, u64), &String)| {
                format!("{release},{seed},{answer}\n")
            };
            let rows: String = all.iter().map(row).collect();
            std::fs::write(file(), format!("release,seed,taken\n{rows}")).expect("kernels.csv");
        }
    }
}
