//! Time to solve, by size, on drawn sets on an ODROID-XU4: the table of docs/optimiser.md.
//!
//! `cargo run --release -p risetime-deploy --example sizes [SETS]`

use risetime_deploy::optimise::{
    DrawnDags, Objective, Options, Problem, descent, draw_dags, exact, greedy,
};
use risetime_model::Platform;
use std::time::Instant;

fn main() {
    let sets = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(10);
    let platform = Platform::load("odroid-xu4").expect("built in");
    println!(
        "nodes  sets  greedy ms  descent ms  exact ms (max)  proven  greedy/exact  descent/exact"
    );
    for n in [2, 3, 4, 5, 6, 10, 20] {
        let (mut times, mut proven, mut ratios) = ([0.0; 3], 0, [Vec::new(), Vec::new()]);
        let mut longest: f64 = 0.0;
        for seed in 0..sets {
            let what = DrawnDags { graphs: 2, nodes: (n, n), percent: 60, accelerated: 0 };
            let options = Options { factor_permille: 1000 };
            let p = Problem::new(&draw_dags(&what, seed), &platform, options).expect("fits");
            let mut timed = |which: usize, f: &dyn Fn() -> Option<u64>| {
                let begun = Instant::now();
                let nw = f();
                let ms = begun.elapsed().as_secs_f64() * 1e3;
                times[which] += ms;
                (nw, ms)
            };
            let power = |d: risetime_deploy::optimise::Deployment| p.power_nw(&d.config);
            let (by_greed, _) = timed(0, &|| greedy(&p, Objective::Power).map(power));
            let (down, _) = timed(1, &|| descent(&p, Objective::Power).map(power));
            if n > 6 {
                continue;
            }
            let whole = std::cell::Cell::new(false);
            let (least, ms) = timed(2, &|| {
                let (found, all) = exact(&p, Objective::Power, 1_000_000);
                whole.set(all);
                found.map(|f| power(f.deployment))
            });
            longest = longest.max(ms);
            proven += u32::from(whole.get());
            if let Some(least) = least.filter(|_| whole.get()) {
                for (ratio, nw) in ratios.iter_mut().zip([by_greed, down]) {
                    ratio.extend(nw.map(|nw| nw as f64 / least as f64));
                }
            }
        }
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len().max(1) as f64;
        let ms = times.map(|t| t / sets as f64);
        println!(
            "{:5}  {sets:4}  {:9.2}  {:10.1}  {:8.0} ({longest:.0})  {proven:6}  {:12.2}  {:13.3}",
            2 * n,
            ms[0],
            ms[1],
            ms[2],
            mean(&ratios[0]),
            mean(&ratios[1])
        );
    }
}
