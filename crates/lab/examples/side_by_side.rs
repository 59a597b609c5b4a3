//! The simulator beside real kernels on small experiments (`tests/side_by_side/`).
//!
//! ```text
//! side_by_side record RELEASE…   runs them on these kernels (as `risetime vm kernels` lists them)
//!                                and adds what they gave to real.csv; ONLY=name,… these alone, anew
//! side_by_side                   prints what is simulated (median [range over start phases]) · what was
//!                                recorded, as Markdown, what differs in bold;
//!                                MUTANT=name: by this wrong simulator
//! ```

#[path = "../tests/side_by_side/figures.rs"]
#[allow(dead_code, reason = "what the test `side_by_side` judges with")]
mod figures;

use figures::{dir, experiment, names, recorded, run, table, to_csv};
use risetime_sim::Replay;
use risetime_sim::mutant::{FIGURE_MUTANTS, MUTANTS};
use risetime_vm::Vm;
use risetime_vm::fetch::Cache;
use std::time::Duration;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((word, releases)) if word == "record" => record(releases),
        None => print_table(),
        _ => {
            eprintln!("side_by_side [record RELEASE…]");
            std::process::exit(2);
        }
    }
}

fn record(releases: &[String]) {
    let only = std::env::var("ONLY").unwrap_or_default();
    let wanted = |name: &String| only.is_empty() || only.split(',').any(|o| o == name);
    let cache = Cache::from_env().unwrap_or_else(|e| panic!("{e}"));
    for release in releases {
        let (mut vm, kernel) = Vm::find(&cache, Some(release), risetime_sim::catalogue())
            .unwrap_or_else(|e| panic!("{e}"));
        // Many boots in a row, perhaps beside other work.
        vm.limit = Some(Duration::from_secs(1200));
        let rev = kernel.rev().expect("a stock kernel says what it is");
        let there = recorded();
        let new = |name: &String| !there.contains_key(&(name.clone(), release.clone()));
        for name in names().into_iter().filter(|n| wanted(n) && (new(n) || !only.is_empty())) {
            match run(&vm, &experiment(&name, &format!("linux-{rev}"))) {
                Ok((outcome, _)) => {
                    let mut all = recorded();
                    all.insert((name.clone(), release.clone()), outcome);
                    std::fs::write(dir().join("real.csv"), to_csv(&all)).expect("real.csv");
                    eprintln!("{release} {name}");
                }
                Err(e) => eprintln!("{release} {name}: {e}"),
            }
        }
    }
}

fn print_table() {
    let name = std::env::var("MUTANT").unwrap_or_default();
    let mutant = MUTANTS.iter().chain(FIGURE_MUTANTS).find(|(_, n, _)| *n == name).map(|m| m.0);
    print!("{}", table(&Replay { mutant, ..Replay::default() }));
}
