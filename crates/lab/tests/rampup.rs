//! The ramp-up of a task on the Mac mini M1, held against the figures of RFC 00/16 "Better manage
//! system response time" (August 2024) and against a real kernel.
//!
//! A tick and a PELT period have no common measure, so where a burst starts decides which sample
//! first passes a threshold; figures are medians over start phases. Bands are those that
//! hardware and a real kernel on the same machine description agree on.

use risetime_analysis::{Level, Options, PhaseSummary, RunResult, Spread};
use risetime_kernel::units::{CpuId, KHz, Span};
use risetime_lab::{Request, phase_spans, run, run_phases};
use risetime_model::Experiment;
use risetime_model::settings::Value;
use risetime_sim::Simulator;
use risetime_sim::settings::RATE_LIMIT_US;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

fn rampup(policy: &str, set: &[(&str, i64)]) -> Experiment {
    let request = Request {
        policies: vec![policy.into()],
        set: set.iter().map(|(k, v)| (k.to_string(), Value::Int(*v))).collect(),
        ..Request::new("rampup", "m1")
    };
    request.experiments().expect("built in").remove(0)
}

fn phases(policy: &str, set: &[(&str, i64)], n: u32) -> PhaseSummary {
    run_phases(&Simulator, &rampup(policy, set), n, &Options::default(), |_| ())
        .expect("runs")
        .summary
}

fn one(policy: &str, set: &[(&str, i64)]) -> RunResult {
    run(&Simulator, &rampup(policy, set), Options::default(), None).expect("runs").result
}

fn reach(summary: &PhaseSummary, level: Level) -> Spread {
    summary.tasks[0].reach.iter().find(|r| r.what == level).expect("always in the result").after_ms
}

fn at(summary: &PhaseSummary, mhz: u64) -> Spread {
    let little =
        |r: &&risetime_analysis::RunningPhases| r.cpu == CpuId(0) && r.freq == KHz(mhz * 1000);
    summary.tasks[0].domain_running.iter().find(little).expect("it ran there").ms
}

#[track_caller]
fn median(what: &str, spread: Spread, band: RangeInclusive<f64>) {
    let m = spread.median.unwrap_or(f64::NAN);
    assert!(band.contains(&m), "{what}: {m:.1} ms, wanted {band:?}; all: {spread:?}");
}

/// Every phase, not only the median.
#[track_caller]
fn all(what: &str, spread: Spread, band: RangeInclusive<f64>) {
    let (min, max) = (spread.min.unwrap_or(f64::NAN), spread.max.unwrap_or(f64::NAN));
    assert!(
        band.contains(&min) && band.contains(&max),
        "{what}: {min:.1} to {max:.1} ms, wanted {band:?}"
    );
}

#[test]
fn with_a_10_ms_rate_limit() {
    let s = phases("linux-6.8", &[("rate_limit_us", 10_000)], 16);
    median("on the little CPU", reach(&s, Level::Capacity(1024)), 94.0..=101.0);
    median("at 600 MHz", at(&s, 600), 41.0..=51.0);
    let both = at(&s, 972).median.unwrap_or(0.0) + at(&s, 1332).median.unwrap_or(0.0);
    assert!((29.0..=33.0).contains(&both), "at 972 and 1332 MHz: {both}");
    median("at 1704 MHz", at(&s, 1704), 10.5..=14.5);
    median("at 2064 MHz", at(&s, 2064), 7.5..=13.0);
    median("to util 450", reach(&s, Level::Util(450)), 107.0..=115.0);
    median("to util 1000", reach(&s, Level::Util(1000)), 272.0..=284.0);
    // The way there: one move, which misfit asked for.
    let r = one("linux-6.8", &[("rate_limit_us", 10_000)]);
    let moves: Vec<_> = r.tasks[0].migrations.iter().map(|m| (m.from, m.to, m.why)).collect();
    assert_eq!(moves, [(CpuId(0), CpuId(4), "misfit")]);
}

#[test]
fn the_default_of_6_8_on_this_machine_is_those_10_ms() {
    let limit = |policy: &str| rampup(policy, &[]).settings.get(&RATE_LIMIT_US);
    assert_eq!(limit("linux-6.8"), Some(10_000));
    // 1.5 times the 50 µs of the little CPUs' slowest OPP.
    assert_eq!((limit("linux-6.12"), limit("linux-7.2")), (Some(75), Some(75)));
}

#[test]
fn with_a_70_us_rate_limit() {
    let s = phases("linux-6.8", &[("rate_limit_us", 70)], 16);
    median("to util 1000", reach(&s, Level::Util(1000)), 268.0..=282.0);
}

/// The list that the series prints for its fastest case, to util 453: util, and how long.
const PUBLISHED: [(u64, f64); 27] = [
    (26, 1.0),
    (47, 1.0),
    (67, 1.0),
    (86, 1.0),
    (105, 1.0),
    (124, 1.0),
    (143, 1.0),
    (161, 1.0),
    (178, 1.0),
    (196, 1.0),
    (213, 1.0),
    (229, 1.0),
    (245, 2.0),
    (277, 1.0),
    (292, 1.0),
    (307, 1.0),
    (322, 1.0),
    (336, 1.0),
    (350, 1.0),
    (364, 1.0),
    (378, 1.0),
    (391, 1.0),
    (404, 1.0),
    (416, 1.0),
    (429, 1.0),
    (441, 1.0),
    (453, 1.0),
];

#[test]
fn at_full_speed_from_the_start_the_published_list_to_the_last_digit() {
    let set = [
        ("uclamp_min", 1024),
        ("start_util", 0),
        ("start_period_contrib", 352),
        ("first_tick_ns", 286_720),
    ];
    let r = one("linux-6.8", &set);
    let residency = &r.tasks[0].util_residency;
    let first = residency.iter().position(|u| u.util == 26).expect("the first value after 0");
    let got: Vec<(u64, f64)> =
        residency[first..].iter().take(PUBLISHED.len()).map(|u| (u.util, u.ms)).collect();
    assert_eq!(got, PUBLISHED);
    assert!(residency[..first].iter().all(|u| u.util == 0), "{residency:?}");
}

#[test]
fn at_full_speed_from_any_start() {
    let s = phases("linux-6.8", &[("uclamp_min", 1024)], 64);
    all("to util 450", reach(&s, Level::Util(450)), 27.9..=30.0);
    all("to util 1000", reach(&s, Level::Util(1000)), 180.0..=183.0);
}

#[test]
fn held_at_the_lowest_opp() {
    let s = phases("linux-6.8", &[("uclamp_max", 0)], 16);
    all("to util 450", reach(&s, Level::Util(450)), 215.0..=225.0);
    all("to util 1000", reach(&s, Level::Util(1000)), 1380.0..=1410.0);
    // A PELT period at 600 MHz lasts 1.048576 · 1024/459 · 2064/600 = 8.05 ms.
    let r = one("linux-6.8", &[("uclamp_max", 0)]);
    let steps = &r.tasks[0].util_residency[1..40];
    assert!(steps.iter().all(|u| (7.0..=9.0).contains(&u.ms)), "{steps:?}");
    assert!(
        r.tasks[0].spent.running.iter().all(|at| at.freq == KHz(600_000)),
        "{:?}",
        r.tasks[0].spent.running
    );
    assert_eq!(r.tasks[0].migrations, []);
}

/// The machine with its clusters' CPU numbers exchanged: big 0–3, little 4–7.
fn exchanged(e: &Experiment) -> Experiment {
    let mut platform = (*e.platform).clone();
    platform.name = "1m".into();
    platform.domains.reverse();
    for (i, domain) in platform.domains.iter_mut().enumerate() {
        domain.cpus = (0..4).map(|c| CpuId(4 * i as u32 + c)).collect();
    }
    let settings = risetime_sim::resolve(&platform, &e.policy).expect("the same settings");
    Experiment { platform: Arc::new(platform), settings, ..e.clone() }
}

/// Running time by capacity and frequency.
fn by_frequency(e: &Experiment) -> BTreeMap<(u64, KHz), f64> {
    let r = run(&Simulator, e, Options::default(), None).expect("runs").result;
    let mut times = BTreeMap::new();
    for at in &r.tasks[0].spent.running {
        let capacity =
            e.platform.domains[e.platform.domain_of(at.cpu).expect("its CPU")].capacity.0;
        *times.entry((capacity, at.freq)).or_insert(0.0) += at.ms;
    }
    times
}

#[test]
fn the_numbers_of_the_cpus_mean_nothing() {
    for policy in [
        "linux-6.8",
        "linux-6.8+rate_limit_us=70",
        "linux-6.12",
        "linux-7.2",
        "linux-7.2+governor=performance",
    ] {
        for phase in phase_spans(Span(1_000_000), 16) {
            let e = Experiment { phase, ..rampup(policy, &[]) };
            let (one, other) = (by_frequency(&e), by_frequency(&exchanged(&e)));
            let frequencies: Vec<_> = one.keys().chain(other.keys()).collect();
            for f in frequencies {
                let (a, b) = (one.get(f).unwrap_or(&0.0), other.get(f).unwrap_or(&0.0));
                assert!((a - b).abs() < 0.1, "{policy}, phase {phase}: {f:?} {a} ms or {b} ms");
            }
        }
    }
}

#[test]
fn every_generation_climbs_and_the_newer_ones_climb_no_slower() {
    let debt = |policy| phases(policy, &[], 8).tasks[0].debt_ms.median.expect("reaches full speed");
    let (old, middle, new) = (debt("linux-6.8"), debt("linux-6.12"), debt("linux-7.2"));
    assert!(middle <= old && (middle - new).abs() < 3.0, "{old} {middle} {new}");
    let fast = phases("linux-7.2+governor=performance", &[("first_cpu", 4)], 2).tasks[0]
        .debt_ms
        .max
        .expect("full speed");
    assert!(fast < 1.0, "{fast}");
}

/// The little CPUs' and the big ones' running times by frequency.
fn at_of(summary: &PhaseSummary, first: u32, mhz: u64) -> f64 {
    let here =
        |r: &&risetime_analysis::RunningPhases| r.cpu == CpuId(first) && r.freq == KHz(mhz * 1000);
    let found = summary.tasks[0].domain_running.iter().find(here);
    found.and_then(|r| r.ms.median).unwrap_or(0.0)
}

#[test]
fn the_whole_series_climbs_as_published() {
    let s = phases("rfc-v1", &[], 16);
    // 8 ms to the first PELT boundary at most, then 28 ticks to the margin of 445.
    let little = reach(&s, Level::Capacity(1024));
    all("on the little CPU", little, 27.5..=36.5);
    median("on the little CPU, 32.5 published", little, 30.5..=33.5);
    median("at 600 MHz, 12.1 published", at(&s, 600), 10.5..=14.5);
    // The published list of util values reaches 452 after 65.6 ms.
    median("to util 450", reach(&s, Level::Util(450)), 63.0..=68.0);
    for (mhz, published) in [
        (1500, 4.0),
        (1956, 9.0),
        (2184, 9.0),
        (2388, 11.0),
        (2592, 16.0),
        (2772, 18.0),
        (2988, 47.0),
    ] {
        let found = at_of(&s, 4, mhz);
        assert!((found - published).abs() <= 1.5, "{mhz} MHz: {found} ms, {published} published");
    }
}

#[test]
fn a_higher_multiplier_climbs_faster_and_0_slower_than_mainline() {
    let to_big = |policy: &str| {
        reach(&phases(policy, &[], 16), Level::Capacity(1024)).median.expect("gets there")
    };
    let [one, two, three, four] = ["rfc-v1", "rfc-v1-x2", "rfc-v1-x3", "rfc-v1-x4"].map(to_big);
    assert!(
        two < one - 10.0 && three < two - 2.0 && four < three - 1.0,
        "{one} {two} {three} {four}"
    );
    // 16.7 ms published.
    assert!((15.5..=19.5).contains(&two), "{two}");
    let (mainline, zero) = (to_big("linux-6.11"), to_big("rfc-v1-x0"));
    assert!(zero > mainline + 10.0, "{zero} {mainline}");
}

/// "Ticks from the first rise of util on": the same on little CPUs of any capacity and at any
/// frequency, where mainline takes a third longer on some than on others.
#[test]
fn the_response_time_no_longer_depends_on_the_cpu() {
    let spread = |policy: &str| {
        let times: Vec<f64> = [100u64, 200, 459]
            .into_iter()
            .map(|capacity| {
                let e = rampup(policy, &[]);
                let mut platform = (*e.platform).clone();
                platform.domains[0].capacity = risetime_kernel::units::Capacity(capacity);
                let settings = risetime_sim::resolve(&platform, &e.policy).expect("the same");
                let e = Experiment { platform: Arc::new(platform), settings, ..e };
                let r = run(&Simulator, &e, Options::default(), None).expect("runs").result;
                let first = r.tasks[0].util_residency.iter().take_while(|u| u.util == 0);
                let onset: f64 = first.map(|u| u.ms).sum();
                let freq = r.tasks[0].reach.iter().find(|x| {
                    matches!(x.what, Level::Freq { cpu: CpuId(4), freq: KHz(2_388_000) })
                });
                freq.and_then(|x| x.after_ms).expect("gets there") - onset
            })
            .collect();
        let (min, max) = times.iter().fold((f64::MAX, 0.0f64), |(a, b), t| (a.min(*t), b.max(*t)));
        max / min
    };
    let (mainline, series) = (spread("linux-6.11"), spread("rfc-v1"));
    assert!(series < 1.05 && mainline > 1.3, "{mainline} {series}");
}
