//! How many of `verify`'s checks a kernel holds against itself, started 1 µs later, and the simulator against it.
//!
//! ```text
//! twins RELEASE N SEED [DIR]     the first N that `verify --draw` draws from SEED, under the noise profile `vm`; DIR: where
//!                                runs are kept (`verify --references`)
//! ```

use risetime_analysis::verify::Mode;
use risetime_kernel::units::Span;
use risetime_lab::{Can, Kept, record, verify, verify_twin, wide};
use risetime_vm::Vm;
use risetime_vm::fetch::Cache;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (Some(release), Some(n), Some(seed)) = (args.first(), number(&args, 1), number(&args, 2))
    else {
        eprintln!("usage: twins RELEASE N SEED [DIR]");
        std::process::exit(2);
    };
    let cache = Cache::from_env().unwrap_or_else(|e| panic!("{e}"));
    let (vm, kernel) = Vm::find(&cache, Some(release), risetime_sim::catalogue())
        .unwrap_or_else(|e| panic!("{e}"));
    let rev = kernel.rev().expect("a stock kernel says what it is");
    let directory = args.get(3).map_or_else(|| cache.references(), Into::into);
    let kept = Kept::new(&vm, directory).unwrap_or_else(|e| panic!("{e}"));
    let can = Can::of(rev, kernel.build().uclamp.unwrap_or(true));
    let (mut own, mut simulated, mut of) = (0, 0, 0);
    for i in 1..=n {
        let mut case = wide(seed, i, can);
        case.settings += "+noise=vm";
        let e = case.experiment(Some(rev)).unwrap_or_else(|e| panic!("{e}"));
        let later = e.later(Span::from_us(1));
        let run = |e| record(&kept, e).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        let (first, twin) = (run(&e), run(&later));
        let twin = verify_twin(&e, &first, &twin).unwrap_or_else(|e| panic!("{e}")).comparison;
        let here = verify(&e, &first, Mode::Free).unwrap_or_else(|e| panic!("{e}")).comparison;
        println!(
            "{}: {} of {} against itself, {} simulated",
            case.name,
            twin.held(),
            twin.checks.len(),
            here.held()
        );
        own += twin.held();
        simulated += here.held();
        of += twin.checks.len();
    }
    println!("{own} of {of} against itself, {simulated} simulated");
}

fn number(args: &[String], i: usize) -> Option<u64> {
    args.get(i)?.parse().ok()
}
