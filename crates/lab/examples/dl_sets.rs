//! The tables of docs/real-time-schedulers.md: placements of deadline tasks on 240 and 200 drawn sets each. Some minutes:
//! `cargo run --release --locked -p risetime-lab --example dl_sets`.

#[path = "../tests/dl_sets/sets.rs"]
mod sets;

use risetime_analysis::compare::Estimate;
use sets::{Draw, Outcome, energy, more, under};

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

fn main() {
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
