//! Holds comparisons against what is known of them: a policy is no better than itself, whoever is named first changes only the
//! sign, and other seeds are seldom called another policy.
//!
//! ```sh
//! cargo run -p risetime-lab --example compare_same > crates/lab/tests/compare/counts.csv
//! ```
//!
//! ```text
//! same,WORKLOAD,PLATFORM,DIFFERENCES,NOT 0       linux-7.2 beside itself, under its other name and with defaults spelt out
//! turned,WORKLOAD,PLATFORM,DIFFERENCES,NOT OPPOSITE   linux-6.6 and linux-7.2, and the other way round
//! seeds,WORKLOAD,PLATFORM,PAGES,SURE            pages of linux-7.2 beside itself from other seeds
//! ```
//!
//! `lab/tests/compare.rs` judges the counts. Takes some minutes.

use risetime_analysis::compare::{Difference, Family};
use risetime_analysis::{Measured, Subject};
use risetime_lab::{Grid, Request, measure_from};
use risetime_model::{Experiment, library};
use risetime_sim::Simulator;

const PLATFORMS: [&str; 6] = ["m1", "pixel6", "rpi4", "hikey960", "chromebook4", "laptop4"];

/// Pages of the same policy from disjoint seeds, and start phases of each.
const PAGES: u64 = 400;
const PHASES: u32 = 9;

fn experiments(
    workload: &str,
    platform: &str,
    policies: &[String],
    seed: u64,
) -> Option<Vec<Experiment>> {
    let seconds = match workload {
        "server" => 0.05,
        of if of.starts_with("rampup") => 1.15,
        _ => 0.12,
    };
    let request = Request {
        policies: policies.to_vec(),
        seconds: Some(seconds),
        noise: Some("machine"),
        seed,
        ..Request::new(workload, platform)
    };
    request.experiments().ok()
}

fn compared(experiments: &[Experiment], phases: u32) -> Vec<Measured> {
    let figures = Subject::of(&experiments[0], None).figures();
    measure_from(&Simulator, experiments, &Grid::of_phases(phases), &figures, |_| ())
        .unwrap_or_else(|e| panic!("{e}"))
}

fn differences(a: &Measured, b: &Measured) -> Vec<Option<Difference>> {
    (0..a.metrics.len()).map(|m| a.difference_in(b, m, Family(a.metrics.len()))).collect()
}

/// The policy with each of three of its settings spelt out, others in every cell: what changes no setting.
fn spelt_out(workload: &str, platform: &str, cell: usize) -> Vec<String> {
    let of = |policy: &str| experiments(workload, platform, &[policy.to_string()], 1);
    let own = of("linux-7.2").expect("built in").remove(0).settings;
    // A noise profile draws what somebody who says it says once.
    let quiet = of("linux-7.2+noise=off").expect("built in").remove(0).settings;
    let all: Vec<String> = (own.iter())
        .filter(|(key, value)| quiet.by_name(key) == Some(value))
        .map(|(key, value)| format!("linux-7.2+{key}={value}"))
        .filter(|said| of(said).is_some_and(|e| e[0].settings == own))
        .collect();
    (0..3).filter_map(|i| all.get((3 * cell + i) % all.len().max(1)).cloned()).collect()
}

fn main() {
    let cells = || {
        let of = |w: library::Entry| PLATFORMS.map(|platform| (w.name, platform));
        library::workloads().into_iter().flat_map(of)
    };
    for (cell, (workload, platform)) in cells().enumerate() {
        let named = ["linux-7.2", "mainline", "linux-7.2"].map(String::from);
        let policies =
            [&named[..], &spelt_out(workload, platform, cell), &["linux-6.6".into()]].concat();
        let all = compared(&experiments(workload, platform, &policies, 1).expect("built in"), 4);
        let (other, same) = all.split_last().expect("there are some");
        let of =
            |one: &Measured| differences(one, &same[0]).into_iter().flatten().collect::<Vec<_>>();
        let found: Vec<Difference> = same[1..].iter().flat_map(of).collect();
        let none = |d: &&Difference| d.median == 0.0 && d.interval == (0.0, 0.0) && !d.is_sure();
        let wrong = found.len() - found.iter().filter(none).count();
        println!("same,{workload},{platform},{},{wrong}", found.len());
        let turned = |d: &Difference| Difference {
            median: -d.median,
            interval: (-d.interval.1, -d.interval.0),
            ..*d
        };
        let (there, back) = (differences(other, &same[0]), differences(&same[0], other));
        let wrong = there.iter().zip(&back).filter(|(a, b)| a.as_ref().map(turned) != **b).count();
        println!("turned,{workload},{platform},{},{wrong}", there.len());
    }
    let light: Vec<(&str, &str)> = cells().filter(|(workload, _)| *workload != "server").collect();
    for (c, (workload, platform)) in light.iter().enumerate() {
        let pages: Vec<u64> = (0..PAGES).filter(|page| *page as usize % light.len() == c).collect();
        let sure = |page: &&u64| {
            let of = |seed| {
                let all =
                    experiments(workload, platform, &["linux-7.2".into()], seed).expect("built in");
                compared(&all, PHASES).remove(0)
            };
            let found = differences(&of(2 * **page + 1), &of(2 * **page + 2));
            found.into_iter().flatten().any(|d| d.is_sure())
        };
        println!(
            "seeds,{workload},{platform},{},{}",
            pages.len(),
            pages.iter().filter(sure).count()
        );
    }
}
