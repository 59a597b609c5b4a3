//! How many of `verify`'s checks a kernel holds against itself, started 1 µs later, and the simulator against it; or with
//! PHASES, how many figures of `--mode spread`.
//!
//! ```text
//! twins RELEASE N SEED [DIR [PHASES]]     the first N that `verify --draw` draws from SEED, under the noise profile `vm`;
//!                                         DIR: where runs are kept (`verify --references`)
//! ```

use risetime_analysis::verify::{Mode, Tally};
use risetime_kernel::units::Span;
use risetime_lab::{Kept, record};
use risetime_model::Experiment;
use risetime_verify::{Can, spread_all, spread_twins, verify, verify_twin, wide};
use risetime_vm::Vm;
use risetime_vm::fetch::Cache;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (Some(release), Some(n), Some(seed)) = (args.first(), number(&args, 1), number(&args, 2))
    else {
        eprintln!("usage: twins RELEASE N SEED [DIR [PHASES]]");
        std::process::exit(2);
    };
    let cache = Cache::from_env().unwrap_or_else(|e| panic!("{e}"));
    let (vm, kernel) = Vm::find(&cache, Some(release), risetime_sim::catalogue())
        .unwrap_or_else(|e| panic!("{e}"));
    let rev = kernel.rev().expect("a stock kernel says what it is");
    let directory = args.get(3).map_or_else(|| cache.references(), Into::into);
    let kept = Kept::new(&vm, directory).unwrap_or_else(|e| panic!("{e}"));
    let can = Can::of(rev, kernel.build().uclamp.unwrap_or(true));
    let cases = (1..=n).map(|i| {
        let mut case = wide(seed, i, can);
        case.settings += "+noise=vm";
        let e = case.experiment(Some(rev)).unwrap_or_else(|e| panic!("{e}"));
        (case.name, e)
    });
    match number(&args, 4) {
        Some(phases) => figures(&kept, &cases.collect::<Vec<_>>(), phases as u32),
        None => checks(&kept, cases),
    }
}

fn checks(kept: &Kept<'_>, cases: impl Iterator<Item = (String, Experiment)>) {
    let (mut own, mut simulated, mut of) = (0, 0, 0);
    for (name, e) in cases {
        let later = e.later(Span::from_us(1));
        let run = |e| record(kept, e).unwrap_or_else(|e| panic!("{name}: {e}"));
        let (first, twin) = (run(&e), run(&later));
        let twin = verify_twin(&e, &first, &twin).unwrap_or_else(|e| panic!("{e}")).comparison;
        let here = verify(&e, &first, Mode::Free).unwrap_or_else(|e| panic!("{e}")).comparison;
        let all = twin.checks.len();
        println!("{name}: {} of {all} against itself, {} simulated", twin.held(), here.held());
        own += twin.held();
        simulated += here.held();
        of += all;
    }
    println!("{own} of {of} against itself, {simulated} simulated");
}

fn figures(kept: &Kept<'_>, cases: &[(String, Experiment)], phases: u32) {
    for (what, all) in [
        ("against itself", spread_twins(kept, cases, phases, |_| ())),
        ("simulated", spread_all(kept, cases, phases, |_| ())),
    ] {
        let (all, release) = all.unwrap_or_else(|e| panic!("{e}"));
        let tally = Tally::of(all.iter().flat_map(|e| &e.figures));
        let Tally { equivalent, different, undecided } = tally;
        println!(
            "{release} {what}: {equivalent} equivalent, {different} different, {undecided} undecided"
        );
    }
}

fn number(args: &[String], i: usize) -> Option<u64> {
    args.get(i)?.parse().ok()
}
