//! "The promise to steady tasks": what of it a simulation shows.

use crate::page;
use risetime_analysis::study::Reproduced;
use risetime_model::Study;
use risetime_report::text::{self, Style};
use risetime_study::{STUDY_PHASES, check_study, reproduce};
use std::sync::OnceLock;

fn steady() -> &'static Reproduced {
    static DONE: OnceLock<Reproduced> = OnceLock::new();
    DONE.get_or_init(|| {
        let mut study = Study::load("steady-tasks").expect("built in");
        check_study(&study).expect("runs");
        for setup in study.figures.iter_mut().filter_map(|f| f.setup.as_mut()) {
            assert!(setup.grid.is_empty() || setup.grid.len() == 30);
            setup.grid.retain(|(_, period)| [8000, 10_000].contains(period));
            setup.ms = setup.ms.map(|ms| ms.min(2000));
        }
        reproduce(&study, 3, |_| ()).expect("runs")
    })
}

fn measured(id: &str) -> Option<f64> {
    steady().rows().find(|r| r.id == id).unwrap_or_else(|| panic!("no row {id}")).measured
}

/// All of it takes minutes: of the figures on the page only those of the review, its last, are simulated
/// again, unless the page is to be written anew.
#[test]
fn the_page_of_the_study_shows_what_it_prints() {
    const REVIEW: &str = "Review of patch 8: a task of 2 ms in 10 ms ───────────\n";
    let mut study = Study::load("steady-tasks").expect("built in");
    if !page::blessing() {
        study.figures.retain(|f| f.id.starts_with("review-"));
    }
    let done = reproduce(&study, STUDY_PHASES, |_| ()).expect("runs");
    let printed = text::study(&done, &Style { width: 80, color: false, unicode: true });
    if page::blessing() {
        page::holds("studies/steady-tasks.md", "from it.\n\n```text\n", "```\n", &printed);
    } else {
        let (_, review) = printed.split_once(REVIEW).expect("the heading of the figure");
        page::holds("studies/steady-tasks.md", REVIEW, "```\n", review);
    }
}

/// Patch 9's own decision and a util_avg that stays: whatever the platform, within the bounds.
#[test]
fn what_is_steady_by_both_keeps_the_promise_over_16_dequeues() {
    for platform in ["m1", "pixel6", "laptop4", "full-speed"] {
        let of = |row: &str| measured(&format!("{platform}/{row}/rfc-v1-p09")).expect("came");
        assert!((5.0..80.0).contains(&of("steady_share/both")), "{platform}");
        assert!(of("steady_util_of_16/both") <= 10.0, "{platform}");
        assert!(of("steady_est_of_16/both") <= 9.0, "{platform}");
        assert!(of("steady_freq/both").abs() <= 0.1 && of("steady_energy/both").abs() <= 5.0);
    }
}

/// Neither patch 9's own decision nor a util_avg that stays is enough: each alone fails somewhere.
#[test]
fn its_own_words_are_not_enough() {
    for platform in ["m1", "laptop4"] {
        assert_eq!(measured(&format!("{platform}/steady_share/rfc-v1-p09")), Some(0.0));
        assert_eq!(measured(&format!("{platform}/steady_util/rfc-v1-p09")), None);
    }
    let pixel = |row: &str| measured(&format!("pixel6/{row}")).expect("came");
    assert!((10.0..30.0).contains(&pixel("steady_share/rfc-v1-p09")));
    assert!((8.0..=17.0).contains(&pixel("steady_util/rfc-v1-p09")));
    assert_eq!(pixel("steady_util/linux-6.11"), 0.0, "mainline against itself");
    assert!(pixel("steady_est/linux-6.11") <= 9.0);
    for platform in ["m1", "pixel6", "laptop4", "full-speed"] {
        let of = |policy: &str| measured(&format!("{platform}/steady_est/margin/{policy}"));
        assert!(of("rfc-v1-p09") > Some(50.0), "{platform}");
        assert!(of("linux-6.11") <= Some(12.0), "{platform}");
    }
}

/// A rise marks util_avg as sampled: 3 ms in 10 whose dequeues all fall between a tick and the end
/// of a PELT period stay at the upper end of the climb.
#[test]
fn a_rise_that_keeps_the_dequeue_from_sampling_goes_on_for_ever() {
    assert!(measured("full-speed/steady_est/rfc-v1-p09") > Some(500.0));
    assert_eq!(measured("full-speed/steady_util/rfc-v1-p09"), Some(0.0));
}

#[test]
fn slack_stands_beside_energy_for_each_patch_alone() {
    let wanted = ["linux-6.11", "rfc-v1", "rfc-v1-p05", "rfc-v1-p04", "rfc-v1-p13", "rfc-v1-p14"];
    for figure in steady().figures.iter().filter(|f| ["m1", "laptop4"].contains(&&*f.id)) {
        let policies: Vec<&str> = figure.trade_offs.iter().map(|t| &*t.policy).collect();
        assert_eq!(policies, wanted);
        let of =
            |policy: &str| figure.trade_offs.iter().find(|t| t.policy == policy).expect("there");
        let (base, headroom) = (of("linux-6.11"), of("rfc-v1-p05"));
        assert!(headroom.energy_mj < base.energy_mj && headroom.slack_ms < base.slack_ms);
        let same = of("rfc-v1-p13");
        assert_eq!((same.slack_ms, same.energy_mj), (base.slack_ms, base.energy_mj), "no waiting");
        assert!(base.slack_least_ms <= base.slack_ms && base.mean_ghz > Some(0.4));
    }
}

/// Patch 9 is there to take back what patch 8 does to periodic tasks, and takes back much.
#[test]
fn patch_9_takes_back_most_of_the_energy_and_part_of_the_estimate() {
    for platform in ["m1", "pixel6", "laptop4"] {
        let of = |row: &str, patch: &str| {
            measured(&format!("{platform}/{row}/rfc-v1-{patch}")).expect("measured")
        };
        assert!(of("rest_est/both", "p09") < of("rest_est/both", "p08"), "{platform}");
        assert!(of("grid_energy", "p08") > 10.0, "{platform}");
        assert!(of("grid_energy", "p09") < of("grid_energy", "p08") / 3.0, "{platform}");
    }
}

#[test]
fn what_misses_or_is_not_counted_says_why() {
    let rows = || steady().rows().filter(|r| r.holds != Some(true));
    assert!(rows().all(|r| !r.note.is_empty()), "{:?}", rows().find(|r| r.note.is_empty()));
}
