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
mod figures;

use figures::{Pair, dir, experiment, names, pairs, policy_of, recorded, run, simulate, to_csv};
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
    println!("| experiment | Linux | task | activations | p50 ms | p99 ms | turns | switches |");
    println!("|---|---|---|---|---|---|---|---|");
    let (mut hold, mut count) = (0, 0);
    for ((name, release), real) in recorded() {
        let simulated = simulate(&simulator, &experiment(&name, &policy_of(&release)));
        let pairs = simulated.map(|s| pairs(&s, &real)).unwrap_or_else(|e| panic!("{name}: {e}"));
        hold += pairs.iter().filter(|p| p.holds()).count();
        count += pairs.len();
        rows(&name, &release, &pairs);
    }
    println!("\n{hold} of {count} figures hold.");
}

fn rows(name: &str, release: &str, pairs: &[Pair]) {
    let version = release.split(['+', '-']).next().unwrap_or(release);
    let cell = |task: &str, figure: &str| {
        pairs.iter().find(|p| p.task == task && p.figure == figure).map_or(String::new(), |p| {
            let (by, digits) = if figure.ends_with("_us") { (1e3, 2) } else { (1.0, 0) };
            let [low, mid, high, real] =
                [p.simulated[0], p.median(), p.simulated[p.simulated.len() - 1], p.real]
                    .map(|v| format!("{:.digits$}", v / by));
            let mark = if p.holds() { "" } else { "**" };
            let range = if low == high { String::new() } else { format!(" [{low}–{high}]") };
            format!("{mark}{mid}{range} · {real}{mark}")
        })
    };
    let mut tasks: Vec<&str> =
        pairs.iter().map(|p| p.task.as_str()).filter(|t| !t.is_empty()).collect();
    tasks.dedup();
    for (i, task) in tasks.into_iter().enumerate() {
        let first = |text: &str| if i == 0 { text.to_string() } else { String::new() };
        let [a, p50, p99, turns] =
            ["activations", "p50_us", "p99_us", "turns"].map(|f| cell(task, f));
        let (name, switches) = (first(name), first(&cell("", "switches")));
        println!(
            "| {name} | {} | {task} | {a} | {p50} | {p99} | {turns} | {switches} |",
            first(version)
        );
    }
}
