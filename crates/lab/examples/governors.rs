//! The governors of stock kernels on the 16 pairs of run and period (`tests/governors/`).
//!
//! ```text
//! governors DIR RELEASE…    what these kernels (as `risetime vm kernels` lists them) give, into real.csv; their runs are
//!                           kept in DIR (`verify --references`). ONLY=governor/run/period,… : these alone
//! ```

#[path = "../tests/governors/figures.rs"]
#[allow(dead_code, reason = "what the test `governors` judges with")]
mod figures;

use figures::{GOVERNORS, PAIRS, experiment, recorded, run, write};
use risetime_lab::Kept;
use risetime_vm::Vm;
use risetime_vm::fetch::Cache;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((directory, releases)) = args.split_first().filter(|(_, r)| !r.is_empty()) else {
        eprintln!("usage: governors DIR RELEASE…");
        std::process::exit(2);
    };
    let only = std::env::var("ONLY").unwrap_or_default();
    let cache = Cache::from_env().unwrap_or_else(|e| panic!("{e}"));
    for release in releases {
        let (vm, kernel) = Vm::find(&cache, Some(release), risetime_sim::catalogue())
            .unwrap_or_else(|e| panic!("{e}"));
        let rev = kernel.rev().expect("a stock kernel says what it is");
        let kept = Kept::new(&vm, directory.into()).unwrap_or_else(|e| panic!("{e}"));
        for (governor, pair) in GOVERNORS.iter().flat_map(|g| PAIRS.map(|pair| (g, pair))) {
            let name = format!("{governor}/{}/{}", pair.0, pair.1);
            if !only.is_empty() && !only.split(',').any(|o| o == name) {
                continue;
            }
            match run(&kept, &experiment(&format!("linux-{rev}"), governor, pair)) {
                Ok(phases) => {
                    let mut all = recorded();
                    all.insert((release.clone(), (*governor).into(), pair), phases);
                    write(&all);
                }
                Err(e) => eprintln!("{release} {name}: {e}"),
            }
        }
    }
}
