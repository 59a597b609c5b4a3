//! The simulator beside real kernels on small experiments (`tests/side_by_side/`).
//!
//! ```text
//! side_by_side record RELEASE…   runs them on these kernels (as `risetime vm kernels` lists them)
//!                                and adds what they gave to real.csv; ONLY=name,… these alone, anew
//! side_by_side                   prints what was recorded beside what is simulated, as Markdown;
//!                                MUTANT=name: by this wrong simulator
//! ```

#[path = "../tests/side_by_side/figures.rs"]
mod figures;

use figures::{Figures, Outcome, dir, experiment, names, recorded, run, to_csv};
use risetime_sim::Replay;
use risetime_sim::mutant::{MUTANTS, OLDER_MUTANTS};
use risetime_vm::Vm;
use risetime_vm::fetch::Cache;
use std::time::Duration;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((word, releases)) if word == "record" => record(releases),
        None => table(),
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
        let (mut vm, kernel) = Vm::find(&cache, Some(release)).unwrap_or_else(|e| panic!("{e}"));
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

fn table() {
    let name = std::env::var("MUTANT").unwrap_or_default();
    let mutant = MUTANTS.iter().chain(OLDER_MUTANTS).find(|(_, n, _)| *n == name).map(|m| m.0);
    let simulator = Replay { mutant, ..Replay::default() };
    println!("| experiment | kernel | task | activations | p50 ms | p99 ms | turns | switches |");
    println!("|---|---|---|---|---|---|---|---|");
    for ((name, release), real) in recorded() {
        let Some(rev) = release_rev(&release) else { continue };
        let here = match run(&simulator, &experiment(&name, &format!("linux-{rev}"))) {
            Ok((outcome, _)) => outcome,
            Err(e) => {
                println!("| {name} | {release} | {e} | | | | | |");
                continue;
            }
        };
        rows(&name, &release, &real, &here);
    }
}

fn rows(name: &str, release: &str, real: &Outcome, here: &Outcome) {
    let pair = |here: f64, real: f64, digits: usize| {
        let off = (here - real).abs() > real.abs() * if digits == 0 { 0.1 } else { 0.05 };
        let mark = if off { "**" } else { "" };
        format!("{mark}{here:.digits$} ({real:.digits$}){mark}")
    };
    let mut switches = pair(here.switches as f64, real.switches as f64, 0);
    for (task, real) in &real.tasks {
        let f = here.tasks.get(task).copied().unwrap_or_else(Figures::default);
        println!(
            "| {name} | {release} | {task} | {} | {} | {} | {} | {switches} |",
            pair(f.activations as f64, real.activations as f64, 0),
            pair(f.p50_us / 1e3, real.p50_us / 1e3, 3),
            pair(f.p99_us / 1e3, real.p99_us / 1e3, 3),
            pair(f.turns as f64, real.turns as f64, 0),
        );
        switches.clear();
    }
}

/// "7.2.13+deb14-arm64" is 7.2.
fn release_rev(release: &str) -> Option<String> {
    let mut numbers = release.split('.');
    Some(format!("{}.{}", numbers.next()?, numbers.next()?))
}
