//! Boosting on a Pixel 6: where the energy goes with each half-life, and what hints bring a game at which cost. The table of
//! docs/boosting.md; `BLESS=1` writes it anew.

use crate::page;
use risetime_analysis::Measured;
use risetime_analysis::compare::Estimate;
use risetime_analysis::metric::Metric;
use risetime_lab::{Request, measure, varied};
use risetime_model::Experiment;
use risetime_sim::Simulator;
use std::fmt::Write;
use std::sync::{Mutex, OnceLock};

const PHASES: u32 = 16;
const METRICS: [&str; 6] =
    ["frame.per_second", "frame.missed", "work", "energy", "frame.energy", "frame.response_p95"];
const FPS: usize = 0;
const MISSED: usize = 1;
const WORK: usize = 2;
const ENERGY: usize = 3;
const EACH: usize = 4;
const P95: usize = 5;

fn experiment(workload: &str, policy: &str) -> Experiment {
    let request =
        Request { seconds: Some(10.0), noise: Some("machine"), ..Request::new(workload, "pixel6") };
    let (_, mut found) =
        varied(&request, &[("policy", policy)], Request::experiments).expect("valid");
    found.remove(0)
}

fn measured(workload: &str, policies: &[String]) -> Vec<Measured> {
    let all: Vec<Experiment> = policies.iter().map(|policy| experiment(workload, policy)).collect();
    let metrics: Vec<Metric> = METRICS.into_iter().map(Metric::new).collect();
    measure(&Simulator, &all, PHASES, &metrics, |_| ()).expect("it runs")
}

fn median(of: &Measured, metric: usize) -> f64 {
    of.estimate(metric).expect("there is one").median
}

/// `of` less `than`, from the same start phases, with the interval of 95 %.
fn more(of: &Measured, than: &Measured, metric: usize) -> (f64, f64, f64) {
    let values = |m: &Measured| m.metrics[metric].2.clone();
    let both = values(of).into_iter().zip(values(than));
    let e = Estimate::of(both.filter_map(|(a, b)| Some(a? - b?))).expect("there is one");
    let (low, high) = e.interval.expect("from so many start phases");
    (e.median, low, high)
}

const HALF_LIVES: [u32; 8] = [32, 28, 24, 20, 16, 14, 12, 8];

/// The list under each half-life.
fn by_half_life() -> &'static [Measured] {
    static ALL: OnceLock<Vec<Measured>> = OnceLock::new();
    ALL.get_or_init(|| {
        let policies = HALF_LIVES.map(|periods| format!("linux-6.1+pelt_half_life={periods}"));
        measured("ui-jank-bench", &policies)
    })
}

/// The game: as it comes, and with hints.
fn game() -> &'static [Measured] {
    static ALL: OnceLock<Vec<Measured>> = OnceLock::new();
    ALL.get_or_init(|| measured("game", &["linux-6.1".into(), "linux-6.1+power_hal=pixel".into()]))
}

#[test]
fn the_page_shows_where_the_energy_of_half_lives_goes() {
    static PAGE: Mutex<()> = Mutex::new(());
    let _alone = PAGE.lock().unwrap_or_else(|e| e.into_inner());
    let mut text = String::from("half-life  frames/s   p95 ms  work ms       mJ  mJ a frame\n");
    for (periods, m) in HALF_LIVES.iter().zip(by_half_life()) {
        let [fps, p95, work, mj, each] =
            [FPS, P95, WORK, ENERGY, EACH].map(|metric| median(m, metric));
        writeln!(text, "{periods:9} {fps:9.1} {p95:8.1} {work:8.0} {mj:8.0} {each:11.2}")
            .expect("a string");
    }
    page::holds("boosting.md", "<!-- half-life -->\n```text\n", "```\n", &text);
}

/// Half-life 16 draws less than 32. What is drawn takes more with each shorter half-life.
#[test]
fn a_shorter_half_life_takes_more_for_a_frame() {
    let all = by_half_life();
    for pair in all.windows(2) {
        assert!(median(&pair[1], EACH) > median(&pair[0], EACH));
    }
    let (of_32, of_16, of_8) = (&all[0], &all[4], &all[7]);
    for (short, long) in [(of_16, of_32), (of_8, of_16)] {
        assert!(more(short, long, EACH).1 > 0.0, "a frame, with the interval");
    }
    for metric in [FPS, WORK] {
        assert!(
            median(of_16, metric) < median(of_32, metric).min(median(of_8, metric)),
            "{metric:?}"
        );
    }
    // In all: 8 takes most.
    assert!(more(of_8, of_32, ENERGY).1 > 0.0);
}

/// Hints spare the game nearly all of what it misses, for at most two thirds more energy, and less than that a frame.
#[test]
fn hints_lower_what_a_game_misses_at_a_stated_cost() {
    let [plain, hinted] = game() else { panic!("two of them") };
    let (fewer, _, at_most) = more(hinted, plain, MISSED);
    assert!(at_most < 0.0 && fewer < 0.0, "{fewer} {at_most}");
    assert!(median(hinted, MISSED) * 10.0 < median(plain, MISSED));
    let cost = median(hinted, ENERGY) / median(plain, ENERGY);
    assert!((1.1..1.66).contains(&cost), "{cost}");
    assert!(median(hinted, EACH) / median(plain, EACH) < cost);
}
