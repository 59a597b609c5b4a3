//! The built-in studies: which published numbers hold, and that those which do not are argued.

use crate::page;
use risetime_analysis::study::Reproduced;
use risetime_model::Study;
use risetime_report::text::{self, Style};
use risetime_study::{STUDY_PHASES, check_study, reproduce};
use std::sync::OnceLock;

fn rfc_2024() -> &'static Reproduced {
    static DONE: OnceLock<Reproduced> = OnceLock::new();
    DONE.get_or_init(|| {
        let study = Study::load("rfc-2024").expect("built in");
        reproduce(&study, STUDY_PHASES, |_| ()).expect("runs")
    })
}

fn measured(id: &str) -> f64 {
    let row = rfc_2024().rows().find(|r| r.id == id).unwrap_or_else(|| panic!("no row {id}"));
    row.measured.unwrap_or_else(|| panic!("{id} was never"))
}

#[test]
fn the_page_of_the_study_shows_what_it_prints() {
    let style = Style { width: 80, color: false, unicode: true };
    let wanted = text::study(rfc_2024(), &style);
    page::holds("studies/rfc-2024.md", "```text\n", "```\n", &wanted);
}

/// Misses of the series that no changed experiment mends: those that they have do so within a wider tolerance alone.
const UNARGUED: [&str; 4] = [
    "worst/reach_util/1000",
    "x1/freq_residency/cpu1/972000",
    "x1/freq_residency/cpu4/1728000",
    "x2/freq_residency/cpu4/2988000",
];

/// A row that comes to hold, or no longer does, is worth a look at why.
#[test]
fn what_holds_of_the_response_time_series() {
    let done = rfc_2024();
    let unargued = done.rows().filter(|r| r.misses() && !r.argued());
    assert_eq!(unargued.map(|r| r.id.as_str()).collect::<Vec<_>>(), UNARGUED);
    let missed: Vec<&str> = done.rows().filter(|r| r.misses()).map(|r| r.id.as_str()).collect();
    assert_eq!(
        missed,
        [
            "ideal/reach_util/1000",
            "ideal/reach_util/1015",
            "worst/reach_util/151",
            "worst/reach_util/172",
            "worst/reach_util/190",
            "worst/reach_util/207",
            "worst/reach_util/225",
            "worst/reach_util/242",
            "worst/reach_util/258",
            "worst/reach_util/274",
            "worst/reach_util/290",
            "worst/reach_util/306",
            "worst/reach_util/321",
            "worst/reach_util/336",
            "worst/reach_util/351",
            "worst/reach_util/365",
            "worst/reach_util/381",
            "worst/reach_util/394",
            "worst/reach_util/407",
            "worst/reach_util/420",
            "worst/reach_util/433",
            "worst/reach_util/446",
            "worst/reach_util/458",
            "worst/reach_util/1000",
            "default/reach_util/1000",
            "x1/freq_residency/cpu1/972000",
            "x1/freq_residency/cpu4/1728000",
            "x2/reach_util/26",
            "x2/reach_util/52",
            "x2/freq_residency/cpu0/600000",
            "x2/freq_residency/cpu0/972000",
            "x2/freq_residency/cpu0/1332000",
            "x2/freq_residency/cpu4/2988000",
            "speedometer/score/rfc-v1-x2",
            "speedometer/score/rfc-v1-x3",
            "speedometer/score/rfc-v1-x4",
        ]
    );
    let score = done.score();
    assert_eq!(score.document.counted - score.document.held, missed.len());
    assert_eq!(score.ours.counted, 0, "every number is printed there");
    assert!(score.document.counted >= 200, "{score:?}");
}

#[test]
fn every_miss_is_argued_and_every_changed_experiment_makes_its_row_hold() {
    for row in rfc_2024().rows().filter(|r| r.misses()) {
        assert!(!row.reason().is_empty(), "{} says nothing", row.id);
        let argued =
            row.instead.as_ref().is_none_or(|i| i.holds) || UNARGUED.contains(&row.id.as_str());
        assert!(argued, "{}: {}", row.id, row.reason());
    }
}

/// What the notes of three misses build on.
#[test]
fn the_notes_of_the_misses_say_what_is_measured() {
    let near = |id: &str, wanted: f64, by: f64| {
        let found = measured(id);
        assert!((found - wanted).abs() <= by, "{id}: {found}, the note says {wanted}");
    };
    near("ideal/util_after/167", 992.0, 1.0);
    near("ideal/util_after/233", 1016.0, 0.0);
    near("ideal/reach_util/998", 179.0, 2.1);
    near("worst/reach_util/1000", 1390.0, 10.0);
    near("default/util_after/248.6", 986.0, 2.0);
}

#[test]
fn what_is_not_counted_says_why() {
    for row in rfc_2024().rows().filter(|r| r.holds.is_none()) {
        assert!(!row.note.is_empty(), "{} is left out without a word", row.id);
    }
}

#[test]
fn the_speedometer_model_is_fitted_on_two_rows_and_predicts_three() {
    let done = rfc_2024();
    let figure = done.figures.iter().find(|f| f.id == "speedometer").expect("is there");
    let (fitted, predicted): (Vec<_>, Vec<_>) =
        figure.rows.iter().partition(|r| r.note.contains("fitted"));
    assert_eq!((fitted.len(), predicted.len()), (2, 3));
    for row in fitted {
        let m = row.measured.expect("fitted");
        assert!((m - row.published).abs() < 0.5 && row.holds.is_none(), "{m} {}", row.published);
    }
    assert!(predicted.iter().all(|r| r.holds.is_some()));
    let scores: Vec<f64> = figure.rows.iter().filter_map(|r| r.measured).collect();
    assert!(scores.is_sorted_by(|a, b| a < b), "{scores:?}");
}

/// On any number of threads, and again.
#[test]
fn the_same_study_gives_the_same_numbers() {
    let mut study = Study::load("rfc-2024").expect("built in");
    study.figures.retain(|f| ["x2", "speedometer"].contains(&f.id.as_str()));
    let one = || reproduce(&study, 8, |_| ()).expect("runs");
    assert_eq!(one(), one());
}

#[test]
fn what_a_figure_names_has_to_be_there() {
    let study = |policy: &str| {
        let text = format!(
            "schema = 1\nname = \"s\"\nsource = \"a\"\n[[figure]]\nid = \"f\"\nplace = \"p\"\n\
             platform = \"m1\"\nworkload = \"rampup\"\npolicy = \"{policy}\"\n[[figure.list]]\n\
             quantity = \"reach_util\"\nrows = [[450, 105]]\n"
        );
        Study::parse(&text, "my.toml").expect("in order")
    };
    let said = check_study(&study("nope")).expect_err("no such policy").to_string();
    assert!(said.starts_with("my.toml:5:1: figure f: nope: no built-in policy"), "{said}");
    assert!(reproduce(&study("nope"), 1, |_| ()).is_err());
    let unset = check_study(&study("linux-6.8+nope=1")).expect_err("no such setting");
    assert!(unset.to_string().contains("unknown setting `nope`"), "{unset}");
    check_study(&study("linux-6.8")).expect("in order");
}
