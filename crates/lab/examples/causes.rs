//! `causes RELEASE…`: asks these kernels (as `risetime vm kernels` lists them) in which states work is lost, and
//! keeps it for the test of that name (`tests/causes/`).

#[path = "../tests/causes/figures.rs"]
mod figures;

use figures::{EXPERIMENTS, file, mean, phases, recorded, request, run, to_csv};
use risetime_lab::Request;
use risetime_vm::Vm;
use risetime_vm::fetch::Cache;

fn main() {
    let cache = Cache::from_env().unwrap_or_else(|e| panic!("{e}"));
    let mut all = recorded();
    for release in std::env::args().skip(1) {
        let found = Vm::find(&cache, Some(&release), risetime_sim::catalogue());
        let (vm, kernel) = found.unwrap_or_else(|e| panic!("{e}"));
        let policy = format!("linux-{}", kernel.rev().expect("a stock kernel says what it is"));
        for (experiment, asked) in EXPERIMENTS.iter().enumerate() {
            let from = |phase| run(&vm, &Request { phase, ..request(experiment, &policy, None) });
            match phases(experiment).into_iter().map(from).collect::<Result<Vec<_>, _>>() {
                Ok(runs) => {
                    let lost = mean(&runs);
                    eprintln!("{release} {asked:?}: {lost:.1?}");
                    all.insert((experiment, release.clone()), lost);
                }
                Err(e) => eprintln!("{release} {asked:?}: {e}"),
            }
        }
    }
    std::fs::write(file(), to_csv(&all)).expect("real.csv");
}
