//! Every limit is told by its own name in a run, and can be taken away: what is lost to it is then lost to nothing else.

#[path = "limits/figures.rs"]
#[allow(dead_code, reason = "what the example `limits` records with")]
mod figures;

use figures::{Case, PLATFORMS, cases, experiment, explained, words};
use risetime_analysis::explain::{About, Explanation, Over};
use risetime_analysis::{Options, TaskResult};
use risetime_kernel::units::Span;
use risetime_lab::{Request, Why, explain, run};
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Policy, Workload};
use risetime_sim::Simulator;
use risetime_sim::cause::CAUSES;
use std::sync::Arc;

fn set(words: &[&str]) -> Vec<(String, Value)> {
    let of = |word: &&str| {
        let (key, value) = word.split_once('=').expect("a setting");
        (key.to_string(), value.parse().map_or_else(|_| Value::Name(value.into()), Value::Int))
    };
    words.iter().map(of).collect()
}

fn ran(e: &Experiment) -> TaskResult {
    run(&Simulator, e, Options::default(), None).expect("runs").result.tasks.remove(0)
}

fn why(over: Option<Over>) -> Why<'static> {
    Why { task: None, over, budget: Span::from_ms(90_000) }
}

fn explained_as(e: &Experiment, over: Option<Over>) -> Explanation {
    explain(e, why(over), |_, _| ()).expect("explains")
}

/// Share of what is lost, and what the cause's absence saves.
fn of_cause(e: &Explanation, name: &str) -> (f64, f64) {
    let cause = e.causes.iter().find(|c| c.cause == name).expect("a cause");
    (cause.ms / e.about.ms(), cause.gain_ms / e.about.ms())
}

/// The caps: the settings of each, the state that says so, and the cause that takes it away, each
/// at the same frequency.
const CAPS: [(&[&str], &str, &str); 6] = [
    (
        &[
            "scaling_max_freq_to.policy4=1805000",
            "scaling_max_freq_from_ms=100",
            "user_pressure=none",
        ],
        "user_capped",
        "user_cap",
    ),
    (
        &[
            "scaling_max_freq_to.policy4=1805000",
            "scaling_max_freq_from_ms=100",
            "user_pressure=permanent",
            "pressure_permanent_ms=50",
        ],
        "user_capped",
        "user_cap",
    ),
    (&["scaling_max_freq.policy4=1805000"], "user_capped", "user_cap"),
    (&["firmware_capped_khz.policy4=1805000"], "firmware_capped", "firmware_cap"),
    (&["hw_capped_khz.policy4=1805000"], "hw_capped", "hw_cap"),
    (&["power_limit_uw.policy4=1500000"], "power_capped", "power_budget"),
];

#[test]
fn a_cap_is_told_by_its_name_and_can_be_taken_away() {
    for (settings, state, cause) in CAPS {
        let request = Request {
            policies: vec!["linux-7.2".into()],
            set: set(settings),
            seconds: Some(1.7),
            ..Request::new("rampup", "hikey960")
        };
        let e = request.experiments().expect("built in").remove(0);
        let lost = ran(&e).lost;
        // From the start it is what the task may have at most: the way there is short, and no cap's fault.
        let later = settings[0] != "scaling_max_freq.policy4=1805000";
        let told = lost.iter().position(|l| l.state == state);
        assert!(told.is_some_and(|at| at == 0 || !later), "{settings:?}: {lost:?}");
        let e = explained_as(&e, None);
        assert!(e.unexplained_ms.abs() < 0.01 * e.about.ms(), "{settings:?}: {e:?}");
        let (share, saves) = of_cause(&e, cause);
        let saved = share > 0.4 && saves > share / 2.0;
        assert!(saved || !later, "{settings:?}: {:?}", e.causes);
        // No other cap acts.
        let caps = CAPS.iter().filter(|(.., other)| *other != cause);
        assert!(caps.into_iter().all(|(.., other)| of_cause(&e, other) == (0.0, 0.0)), "{e:?}");
    }
}

fn of_text(text: &str, platform: &str, policy: &str) -> Experiment {
    let request = Request { policies: vec![policy.into()], ..Request::new("idle", platform) };
    let mut e = request.experiments().expect("built in").remove(0);
    e.workload = Arc::new(Workload::parse(text, "own.json").expect("a workload"));
    e.duration = Span::from_ms(200);
    e
}

/// 0.5 ms of work take 1.25 ms at the frequency that goes with a reservation of 30 %, the lowest: that is no work.
#[test]
fn a_deadline_tasks_frequency_is_that_of_its_reservation() {
    let text = r#"{"tasks": {"ctl": {"policy": "SCHED_DEADLINE", "dl-runtime": 600, "dl-period": 2000, "loop": -1,
        "run": 500, "timer": {"ref": "unique", "period": 2000, "mode": "absolute"}}}}"#;
    for policy in ["linux-6.1", "linux-6.12", "linux-7.2"] {
        let e = of_text(text, "rpi4", policy);
        let lost = ran(&e).lost;
        assert_eq!(lost[0].state, "reserved", "{policy}: {lost:?}");
        let e = explained_as(&e, Some(Over::One(50)));
        assert!((e.unexplained_ms - 0.5).abs() < 0.005, "{policy}: the work is {e:?}");
        let (share, saves) = of_cause(&e, "reservation");
        assert!(share > 0.4 && saves > share / 2.0, "{policy}: {share} {saves}");
    }
}

const BOOST: &str = r#"
schema = 1
name = "boosts"
hz = 250
sources = { capacity = "x", opp = "x", idle = "x", hz = "x" }
[[domain]]
cpus = "0"
capacity = 1024
fast_switch = true
opp = [
  { freq_khz = 1000000, power_uw = 100000, latency_ns = 10000 },
  { freq_khz = 1800000, power_uw = 300000, latency_ns = 10000 },
  { freq_khz = 2000000, power_uw = 400000, latency_ns = 10000, turbo = true },
]
idle = [{ name = "wfi", exit_latency_us = 1, min_residency_us = 1, power_uw = 5000 }]
"#;

/// Full speed is that of the boost OPP where boost is on: who has it loses nothing, who is not given it loses the difference.
#[test]
fn boost_that_is_on_is_full_speed() {
    let text = r#"{"tasks": {"t": {"run": 100000, "sleep": 20000, "loop": -1}}}"#;
    let of = |policy: &str| {
        let mut e = of_text(text, "rpi4", "linux-7.2");
        e.platform = Arc::new(Platform::parse(BOOST, "boost.toml").expect("a platform"));
        e.policy = Policy::from_arg_with(policy, &[]).expect("a policy");
        e.settings = risetime_sim::resolve(&e.platform, &e.policy).expect("settings");
        e
    };
    let burst = |e: &Experiment| ran(e).burst.expect("a burst");
    let on = of("linux-7.2+cpufreq_boost=1+governor=performance");
    // A µs until the CPU has left its idle state.
    assert!(burst(&on).debt_ms < 0.01, "{:?}", burst(&on));
    let off = of("linux-7.2+governor=performance");
    assert!(burst(&off).debt_ms < 0.01, "{:?}", burst(&off));
    // 1800 of 2000 MHz.
    let unasked = of("linux-7.2+cpufreq_boost=1");
    let lost = ran(&unasked).lost;
    assert_eq!(lost[0].state, "boost_not_asked", "{lost:?}");
    let e = explained_as(&unasked, None);
    assert!(e.unexplained_ms.abs() < 0.01 * e.about.ms(), "{e:?}");
    assert!(of_cause(&e, "boost").0 > 0.7, "{e:?}");
}

/// The settings of the slice: caps and their times, sampling, invariance, what takes time, clamps, sysctls.
const SLICE: [&str; 8] = [
    "hw_capped_period_us",
    "scaling_max_freq",
    "freq_invariance",
    "powersave_bias",
    "uclamp_max",
    "sched_pelt_multiplier",
    "resched_delay_ns",
    "scaling_setspeed",
];

/// A slice of the walk that `examples/limits.rs` does.
#[test]
fn settings_that_act_leave_nothing_unexplained() {
    let mut seen = 0;
    for (i, name) in SLICE.into_iter().enumerate() {
        let platform = PLATFORMS[i % PLATFORMS.len()];
        let mut found = Vec::new();
        cases(platform, |param| param.name == name, |own| found.extend(own));
        // Of many values the first, the last and one between.
        let few = |i: usize| i == 0 || i + 1 == found.len() || i == found.len() / 2;
        for case in found.iter().enumerate().filter(|(i, _)| few(*i)).map(|(_, case)| case) {
            let what = format!("{platform} {} {}", case.kernel, words(&case.set));
            lost_is_time(case, &what);
            let row = explained(case).expect("a burst");
            assert!(row.is_explained() && row.saves(), "{what}: {row:?}");
            seen += 1;
        }
    }
    assert!(seen >= 16, "{seen}");
}

/// At least nothing is lost, and at most the time there was, state by state.
fn lost_is_time(case: &Case, what: &str) {
    let task = ran(&experiment(case).expect("runs"));
    let burst = task.burst.expect("a burst");
    let took = burst.t1_ms - burst.t0_ms + 1e-6;
    assert!((0.0..=took).contains(&burst.debt_ms), "{what}: {burst:?}");
    let parts = task.lost.iter().map(|l| l.ms);
    assert!(parts.clone().all(|ms| (0.0..=took).contains(&ms)), "{what}: {:?}", task.lost);
    assert!((parts.sum::<f64>() - burst.debt_ms).abs() < 1e-6, "{what}");
}

/// What the whole walk found, as it was counted last.
#[test]
fn the_whole_walk_was_explained() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/limits/counts.csv"))
            .expect("counts.csv");
    let mut all = (0, 0, 0);
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [_, n, explained, saves] = cells[..] else { panic!("{line}") };
        let number = |cell: &str| cell.parse::<u32>().expect("a number");
        all = (all.0 + number(n), all.1 + number(explained), all.2 + number(saves));
    }
    let (n, explained, saves) = all;
    // What falls short is counted in ARCHITECTURE.
    assert!(n >= 1200 && explained * 1000 >= n * 995 && saves * 100 >= n * 98, "{all:?}");
}

/// The page on JSON has every cause with its words, and no other.
#[test]
fn every_cause_is_documented() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let section = page.split("\n## Causes\n").nth(1).and_then(|rest| rest.split("\n## ").next());
    let section = section.and_then(|s| s.split("\n# ").next()).expect("the causes");
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
    let wanted: Vec<String> =
        CAUSES.iter().map(|c| format!("| `{}` | {} | {} |", c.name, c.label, c.about)).collect();
    assert_eq!(rows, wanted);
    let names: Vec<&str> = CAUSES.iter().map(|c| c.name).collect();
    assert!(!names.contains(&"other"), "{names:?}");
}

/// What affinity forbids is no cause's share, and not unexplained.
#[test]
fn what_affinity_forbids_has_its_own_name() {
    let text = r#"{"tasks": {"t": {"cpus": [0], "run": 100000}}}"#;
    let mut e = of_text(text, "hikey960", "linux-7.2");
    e.duration = Span::from_ms(600);
    let task = ran(&e);
    let state = task.lost.iter().find(|l| l.state == "affinity").expect("told");
    assert!(state.ms > 0.3 * task.burst.expect("a burst").debt_ms, "{:?}", task.lost);
    let e = explained_as(&e, None);
    let About::Burst(burst) = e.about else { panic!("{e:?}") };
    assert!(e.unexplained_ms.abs() < 0.01 * burst.debt_ms.max(1.0), "{e:?}");
    let sum: f64 = e.causes.iter().map(|c| c.ms).sum::<f64>() + e.affinity_ms + e.unexplained_ms;
    assert!((sum - burst.debt_ms).abs() < 1e-6, "{e:?}");
}
