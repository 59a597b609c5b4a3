//! Placements of deadline tasks on drawn sets: big.LITTLE CBS beside global EDF, APEDF beside global EDF, and what is
//! late where nothing fits.
//!
//! docs/real-time-schedulers.md has them on 240 and 200 each: `cargo test --locked -p risetime-lab --test dl_sets -- --ignored --nocapture`.

#[path = "dl_sets/sets.rs"]
mod sets;

use risetime_analysis::compare::Estimate;
use risetime_model::Platform;
use sets::{BASE, Draw, Outcome, experiment, outcome, set};
use std::sync::Arc;

/// The outcome of each set under each policy.
fn under(draw: &Draw, policies: &[&str]) -> Vec<Vec<Option<Outcome>>> {
    let platform = Arc::new(Platform::load(draw.platform).expect("built in"));
    let mut all = Vec::new();
    for &percent in draw.percents {
        for seed in 1..=draw.seeds {
            let set = set(&platform, draw, percent, seed);
            let one = |policy: &&str| {
                outcome(&experiment(&platform, &set, draw.work, &format!("{BASE}{policy}")), &set)
            };
            all.push(policies.iter().map(one).collect());
        }
    }
    all
}

/// Median and interval of what `b` has more than `a`, in %, of sets that both took; `None`: there are none.
fn more(
    all: &[Vec<Option<Outcome>>],
    a: usize,
    b: usize,
    of: fn(&Outcome) -> f64,
) -> Option<Estimate> {
    let percent = all.iter().filter_map(|set| {
        let (a, b) = (of(set[a].as_ref()?), of(set[b].as_ref()?));
        (a > 0.0).then_some(100.0 * (b / a - 1.0))
    });
    Estimate::of(percent)
}

fn energy(o: &Outcome) -> f64 {
    o.energy_mj
}

fn row(name: &str, all: &[Vec<Option<Outcome>>], policy: usize) {
    let taken: Vec<&Outcome> = all.iter().filter_map(|set| set[policy].as_ref()).collect();
    let sum = |of: fn(&Outcome) -> u64| taken.iter().map(|o| of(o)).sum::<u64>();
    let most = |of: fn(&Outcome) -> f64| taken.iter().map(|o| of(o)).fold(0.0, f64::max);
    let late = taken.iter().filter(|o| o.missed > 0).count();
    let per_second = |n: u64| n as f64 / taken.len().max(1) as f64 / 1.8;
    let e = more(all, 0, policy, energy);
    let energy = match e.and_then(|e| Some((e.median, e.interval?))) {
        Some((median, (low, high))) => format!("{median:+6.1} % [{low:+.1}, {high:+.1}]"),
        None => "     –".into(),
    };
    println!(
        "{name:<34}{:>6}{:>7}{:>8}{:>8}{:>9}{:>8.2}{:>8.2}{:>9.1}{:>9.1}   {energy}",
        taken.len(),
        late,
        sum(|o| o.missed),
        sum(|o| o.missed_big),
        sum(|o| o.due),
        most(|o| o.late_ms),
        most(|o| o.late_periods),
        per_second(sum(|o| o.migrations)),
        per_second(sum(|o| o.fallback)),
    );
}

/// Energy beside the first policy, of sets in which neither missed a job.
fn at_equal_misses(all: &[Vec<Option<Outcome>>], policy: usize) -> Option<Estimate> {
    let none = |o: &Option<Outcome>| o.is_some_and(|o| o.missed == 0);
    let both: Vec<Vec<Option<Outcome>>> =
        all.iter().filter(|set| none(&set[0]) && none(&set[policy])).cloned().collect();
    more(&both, 0, policy, energy)
}

fn table(title: &str, draw: &Draw, policies: &[&str]) {
    let all = under(draw, policies);
    println!(
        "{title}: {} sets of {} tasks, {:?} % of {}",
        all.len(),
        draw.tasks,
        draw.percents,
        draw.platform
    );
    println!(
        "{:<34}{:>6}{:>7}{:>8}{:>8}{:>9}{:>8}{:>8}{:>9}{:>9}   energy",
        "", "taken", "late", "missed", "by big", "due", "ms", "periods", "moves/s", "by gEDF"
    );
    for (i, policy) in policies.iter().enumerate() {
        row(policy, &all, i);
    }
    if let Some(e) = at_equal_misses(&all, 1) {
        println!("{} where neither missed: {e:?}", policies[1]);
    }
}

const GEDF: &str = "+dl_placement=gedf";
const BL: &str = "+dl_placement=bl-cbs";
const AP: &str = "+dl_placement=apedf-ff";

#[test]
#[ignore = "the tables of the page, by hand: minutes"]
fn the_tables_of_the_page() {
    let policies = [
        GEDF,
        BL,
        AP,
        "+dl_placement=apedf-wf",
        "+dl_placement=partitioned-ff",
        "+dl_placement=partitioned-wf",
        "+dl_placement=clustered",
        "+dl_placement=apedf-ff+dl_frequency=admitted",
        "+dl_placement=apedf-wf+dl_frequency=admitted",
        "+dl_placement=gedf+dl_frequency=max",
        "+dl_as=rm",
    ];
    let xu4 = |percents, seeds| Draw {
        platform: "odroid-xu4",
        tasks: 16,
        percents,
        seeds,
        most: 90,
        work: 95,
    };
    table("light to half full", &xu4(&[10, 20, 30, 40, 50, 60], 40), &policies);
    let small = Draw {
        platform: "odroid-xu4",
        tasks: 24,
        percents: &[10, 20, 30, 40, 50, 60],
        seeds: 40,
        most: 30,
        work: 75,
    };
    table("no task too big, jobs of 75 %", &small, &policies);
    table("nearly full", &xu4(&[70, 80, 90], 70), &policies[..9]);
    let rpi = Draw {
        platform: "rpi4",
        tasks: 12,
        percents: &[30, 50, 70, 80],
        seeds: 50,
        most: 90,
        work: 95,
    };
    table("equal CPUs", &rpi, &policies[..9]);
    let few = Draw { platform: "rpi4", tasks: 6, percents: &[90], seeds: 200, most: 90, work: 95 };
    table("few and big", &few, &policies[..9]);
}

/// On the ODROID, of 20 sets.
#[test]
fn big_little_cbs_takes_less_energy_than_global_edf() {
    let draw = Draw {
        platform: "odroid-xu4",
        tasks: 16,
        percents: &[10, 20, 30, 40, 50],
        seeds: 4,
        most: 90,
        work: 95,
    };
    let all = under(&draw, &[GEDF, BL]);
    let e = more(&all, 0, 1, energy).expect("all were taken");
    let (_, high) = e.interval.expect("of 20");
    assert!(high < 0.0, "{e:?}");
    let missed = |i: usize| all.iter().filter_map(|s| s[i]).map(|o| o.missed).sum::<u64>();
    assert!(missed(1) <= missed(0), "{} {}", missed(1), missed(0));
}

/// On equal CPUs, of 20 sets; where a set has a CPU for each task, and frequencies stay, nobody is late.
#[test]
fn apedf_keeps_deadlines_with_fewer_migrations_than_global_edf() {
    let draw = Draw {
        platform: "rpi4",
        tasks: 12,
        percents: &[30, 50, 60, 70],
        seeds: 5,
        most: 90,
        work: 95,
    };
    let [ff, wf] = ["ff", "wf"].map(|by| format!("+dl_placement=apedf-{by}+dl_frequency=admitted"));
    let all = under(&draw, &[GEDF, AP, &ff, &wf]);
    for set in &all {
        let [gedf, grub_pa, admitted @ ..] = &set[..] else { panic!("four") };
        let gedf = gedf.expect("admitted").migrations;
        for o in [grub_pa].into_iter().chain(admitted).map(|o| o.expect("admitted")) {
            assert!(o.migrations < gedf || gedf == 0, "{} of {gedf}", o.migrations);
        }
        for o in admitted.iter().map(|o| o.expect("admitted")) {
            assert!(o.fallback > 0 || o.missed == 0, "{o:?}");
        }
    }
}

/// Six tasks of 0.6 on four CPUs: some set has no partition.
#[test]
fn where_nothing_fits_it_is_told_how_late() {
    let draw = Draw { platform: "rpi4", tasks: 6, percents: &[92], seeds: 20, most: 90, work: 95 };
    let all = under(&draw, &[GEDF, AP, "+dl_placement=partitioned-ff"]);
    let fallback: Vec<&Vec<Option<Outcome>>> =
        all.iter().filter(|s| s[1].is_some_and(|o| o.fallback > 0)).collect();
    assert!(!fallback.is_empty());
    assert!(fallback.iter().any(|s| s[1].expect("taken").late_ms > 0.0));
    assert!(fallback.iter().any(|s| s[2].is_none()), "it has no partition");
}
