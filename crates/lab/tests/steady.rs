//! "The promise to steady tasks": what of it a simulation shows.

use risetime_analysis::study::Reproduced;
use risetime_lab::{check_study, reproduce};
use risetime_model::Study;
use std::sync::OnceLock;

fn steady() -> &'static Reproduced {
    static DONE: OnceLock<Reproduced> = OnceLock::new();
    DONE.get_or_init(|| {
        let mut study = Study::load("steady-tasks").expect("built in");
        check_study(&study).expect("runs");
        for figure in &mut study.figures {
            let setup = figure.setup.as_mut().expect("a grid");
            assert_eq!(setup.grid.len(), 30);
            setup.grid.retain(|(_, period)| [8000, 10_000].contains(period));
        }
        reproduce(&study, 2, |_| ()).expect("runs")
    })
}

fn measured(id: &str) -> Option<f64> {
    steady().rows().find(|r| r.id == id).unwrap_or_else(|| panic!("no row {id}")).measured
}

#[test]
fn the_condition_holds_on_slow_cpus_only_and_there_the_bounds_are_missed_by_little() {
    for platform in ["m1", "laptop4"] {
        assert_eq!(measured(&format!("{platform}/steady_share/rfc-v1-p09")), Some(0.0));
        assert_eq!(measured(&format!("{platform}/steady_util/rfc-v1-p09")), None);
    }
    let pixel = |row: &str| measured(&format!("pixel6/{row}")).expect("came");
    assert!((10.0..30.0).contains(&pixel("steady_share/rfc-v1-p09")));
    assert!((8.0..=17.0).contains(&pixel("steady_util/rfc-v1-p09")));
    assert!((8.0..=13.0).contains(&pixel("steady_est/rfc-v1-p09")));
    assert_eq!(pixel("steady_util/linux-6.11"), 0.0, "mainline against itself");
    assert!(pixel("steady_est/linux-6.11") <= 9.0);
}

/// Patch 9 is there to take back what patch 8 does to periodic tasks, and takes back much.
#[test]
fn patch_9_takes_back_most_of_the_energy_and_part_of_the_estimate() {
    for platform in ["m1", "pixel6", "laptop4"] {
        let of = |row: &str, patch: &str| {
            measured(&format!("{platform}/{row}/rfc-v1-{patch}")).expect("measured")
        };
        assert!(of("rest_est", "p09") < of("rest_est", "p08"), "{platform}");
        assert!(of("grid_energy", "p08") > 10.0, "{platform}");
        assert!(of("grid_energy", "p09") < of("grid_energy", "p08") / 3.0, "{platform}");
    }
}

#[test]
fn what_misses_or_is_not_counted_says_why() {
    let rows = || steady().rows().filter(|r| r.holds != Some(true));
    assert!(rows().all(|r| !r.note.is_empty()), "{:?}", rows().find(|r| r.note.is_empty()));
}
