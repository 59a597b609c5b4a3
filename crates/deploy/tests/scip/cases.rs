//! The sets that SCIP was asked about.

use risetime_deploy::optimise::{DrawnDags, Options, Problem, draw_dags};
use risetime_model::Platform;

/// Their names and numbers: on the ODROID-XU4 some with a device: SCIP takes up to minutes for each.
pub(crate) fn cases() -> Vec<(String, Problem)> {
    let mut all = Vec::new();
    let platform = "odroid-xu4";
    {
        for seed in 0..6 {
            let what = DrawnDags {
                graphs: 1 + seed as usize % 2,
                nodes: (2, 3),
                percent: 30 + 10 * (seed % 5),
                accelerated: if seed % 3 == 0 { 40 } else { 0 },
            };
            let on = Platform::load(platform).expect("built in");
            let options = Options { factor_permille: 1100 };
            let problem = Problem::new(&draw_dags(&what, seed), &on, options).expect("fits");
            all.push((format!("{platform}-{seed}"), problem));
        }
    }
    all
}
