//! Time to solve, by size, on drawn sets on an ODROID-XU4: the table of docs/evidence/optimiser.md.
//!
//! ```text
//! sizes [SETS [LOOKS [NODES…]]]   greedy, descent, and exact with up to LOOKS looks
//! sizes write DIR SETS NODES      the same sets as files, for `risetime deploy optimise --solver highs --factor 100`
//! ```

use risetime_deploy::optimise::{
    Deployment, DrawnDags, ENDLESS, Effort, Ended, Objective, Options, Problem, descent, draw_dags,
    exact, greedy,
};
use risetime_model::{Dags, Platform};
use std::fmt::Write;
use std::time::Instant;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| args.get(i).and_then(|n| n.parse::<u64>().ok());
    if let (Some("write"), Some(dir)) = (args.first().map(String::as_str), args.get(1)) {
        let (sets, nodes) = (number(2).unwrap_or(10), number(3).unwrap_or(8));
        for seed in 0..sets {
            let text = toml(&drawn(nodes, seed));
            std::fs::write(format!("{dir}/{nodes}-{seed}.toml"), text).expect("written");
        }
        return;
    }
    let (sets, looks) = (number(0).unwrap_or(10), number(1).unwrap_or(1_000_000));
    let sizes: Vec<u64> = match args.len() {
        0..=2 => vec![4, 6, 8, 12, 16, 24],
        n => (2..n).filter_map(number).collect(),
    };
    println!("{HEAD}");
    sizes.into_iter().for_each(|nodes| row(nodes, sets, looks));
}

const HEAD: &str = "nodes  sets      greedy ms  of exact      descent ms (max)  of exact (max)      exact ms (max)  proven  of bound";

fn drawn(nodes: u64, seed: u64) -> Dags {
    let n = nodes as usize / 2;
    draw_dags(&DrawnDags { graphs: 2, nodes: (n, n), percent: 60, accelerated: 0 }, seed)
}

/// Of one solver, over all sets: ms, and power as a multiple of the exact one's.
#[derive(Default)]
struct Of {
    ms: Vec<f64>,
    ratio: Vec<f64>,
}

impl Of {
    fn mean(all: &[f64]) -> f64 {
        all.iter().sum::<f64>() / all.len().max(1) as f64
    }
    fn max(all: &[f64]) -> f64 {
        all.iter().copied().fold(0.0, f64::max)
    }
}

fn row(nodes: u64, sets: u64, looks: u64) {
    let platform = Platform::load("odroid-xu4").expect("built in");
    let [mut by_greed, mut down, mut whole] = [Of::default(), Of::default(), Of::default()];
    let mut proven = 0;
    for seed in 0..sets {
        let options = Options { factor_permille: 1000 };
        let p = Problem::new(&drawn(nodes, seed), &platform, options).expect("fits");
        let timed = |of: &mut Of, f: &mut dyn FnMut() -> Option<Deployment>| {
            let begun = Instant::now();
            let found = f();
            of.ms.push(begun.elapsed().as_secs_f64() * 1e3);
            found.map(|d| p.power_nw(&d.config) as f64)
        };
        let greed = timed(&mut by_greed, &mut || greedy(&p, Objective::Power));
        let descended = timed(&mut down, &mut || descent(&p, Objective::Power, ENDLESS.stop));
        let mut bound = 0.0;
        let least = timed(&mut whole, &mut || {
            let (found, all) = exact(&p, Objective::Power, Effort::of(looks * 1_000_000));
            proven += u32::from(all == Ended::Whole);
            bound = found.as_ref().map_or(0.0, |f| f.bound_nw as f64);
            found.map(|f| f.deployment)
        });
        let Some(least) = least else { continue };
        by_greed.ratio.extend(greed.map(|nw| nw / least));
        down.ratio.extend(descended.map(|nw| nw / least));
        whole.ratio.push(least / bound);
    }
    println!(
        "{nodes:5}  {sets:4}  {:13.2}  {:8.3}  {:10.0} ({:.0})  {:8.4} ({:.4})  {:13.0} ({:.0})  {proven:6}  {:8.4}",
        Of::mean(&by_greed.ms),
        Of::mean(&by_greed.ratio),
        Of::mean(&down.ms),
        Of::max(&down.ms),
        Of::mean(&down.ratio),
        Of::max(&down.ratio),
        Of::mean(&whole.ms),
        Of::max(&whole.ms),
        Of::mean(&whole.ratio),
    );
}

/// As `risetime deploy optimise` reads it.
fn toml(dags: &Dags) -> String {
    let mut out = format!("schema = 1\nname = \"{}\"\n", dags.name);
    for dag in &dags.dags {
        let _ = writeln!(
            out,
            "[[dag]]\nname = \"{}\"\nperiod_us = {}\ndeadline_us = {}",
            dag.name, dag.period_us, dag.deadline_us
        );
        for node in &dag.nodes {
            let after: Vec<String> =
                node.after.iter().map(|a| format!("\"{}\"", dag.nodes[*a].name)).collect();
            let _ = writeln!(
                out,
                "[[dag.node]]\nname = \"{}\"\nruntime_us = {}\nafter = [{}]",
                node.name,
                node.runtime_us,
                after.join(", ")
            );
        }
    }
    out
}
