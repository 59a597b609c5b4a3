//! What people see of a study: page, JSON and picture.

use risetime_analysis::study::{
    Climbed, Counterfactual, CurvePair, JudgedRow, Reproduced, ReproducedFigure, Tolerance,
    TradeOff,
};
use risetime_report::json;
use risetime_report::text::{self, Style};
use unicode_width::UnicodeWidthStr;

fn row(id: &str, published: f64, measured: Option<f64>, holds: Option<bool>) -> JudgedRow {
    let at = id.rsplit('/').next().unwrap_or_default().to_string();
    JudgedRow {
        id: id.into(),
        at,
        list: id.split('/').nth(1).unwrap_or_default().into(),
        published,
        digits: 1,
        measured,
        unit: "ms",
        tolerance: Tolerance { last_digit: 0.1, tick: 1.0, spread: 0.4, open: 0.0 },
        holds,
        ..JudgedRow::default()
    }
}

fn sample() -> Reproduced {
    let mut missed = row("default/reach_util/1000", 284.0, Some(271.6), Some(false));
    missed.note = "Its own plot is there after 271 ms.".into();
    missed.instead = Some(Counterfactual {
        about: "a task beside it".into(),
        measured: Some(280.04),
        tolerance: 4.25,
        holds: true,
    });
    let mut cut = row("default/util_residency/456", 1.0, None, None);
    cut.note = "the list ends here".into();
    let mut bound = row("x<y/reach_capacity/498", 100.0, Some(127.2), Some(true));
    bound.relation = "≥";
    let never = row("x<y/reach_util/1000", 9.0, None, Some(false));
    Reproduced {
        study: "rfc-2024".into(),
        about: "Every figure".into(),
        source: "RFC 00/16".into(),
        phases: 64,
        figures: vec![
            ReproducedFigure {
                id: "default".into(),
                place: "Default response time".into(),
                about: "Mainline 6.8.".into(),
                command: "risetime run rampup --platform m1".into(),
                rows: vec![
                    row("default/util_residency/0", 5.5, Some(5.46), Some(true)),
                    cut,
                    missed,
                ],
                curves: vec![CurvePair {
                    what: "util_avg",
                    listed: vec![(0.0, 0.0), (5.5, 0.0), (5.5, 15.0)],
                    drawn: vec![(100.0, 400.0)],
                    measured: vec![(0.0, 0.0, 0.0, 0.0), (200.0, 900.0, 910.0, 920.0)],
                }],
                ..ReproducedFigure::default()
            },
            ReproducedFigure {
                id: "x<y".into(),
                place: "Small & smaller".into(),
                rows: vec![bound, never],
                ..ReproducedFigure::default()
            },
        ],
    }
}

#[test]
fn the_page_says_verdict_then_misses_then_rows() {
    for (width, color) in [(100, false), (60, false), (80, true)] {
        let page = text::study(&sample(), &Style { width, color, unicode: true });
        if !color {
            assert!(page.lines().all(|l| l.width() <= width), "{page}");
            insta::assert_snapshot!(format!("study_{width}"), page);
        }
    }
    let ascii = text::study(&sample(), &Style { width: 80, color: false, unicode: false });
    assert!(ascii.is_ascii(), "{ascii}");
}

#[test]
fn the_json_keeps_the_layout_that_is_promised() {
    insta::assert_snapshot!("study_json", json::study(&sample()));
}

fn drawn(study: &Reproduced) -> String {
    risetime_report::picture::study(study).svg(risetime_report::chart::Theme::Light)
}

#[test]
fn the_picture_is_well_formed_whatever_the_names_are() {
    let picture = drawn(&sample());
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    assert!(!picture.contains("x<y") && !picture.contains("NaN") && !picture.contains("inf"));
    let curves = |colour: &str| picture.matches(&format!("stroke=\"{colour}\"")).count();
    // Each with its sample in the legend.
    assert_eq!((curves("#1b1f24"), curves("#0072b2")), (2, 2), "published and measured");
    // Two read off the plot or of its legend; two of x<y are published, one of them measured, each of both in the legend.
    assert_eq!(picture.matches("<circle").count(), 7);
    // Nothing to draw is still a picture.
    assert!(drawn(&Reproduced::default()).ends_with("</svg>\n"));
}

fn climb(id: &str, published: f64) -> ReproducedFigure {
    let climb = Climbed {
        wanted: vec![(5.0, 100.0), (published, 900.0)],
        util_est: vec![(1.0, 20.0, 21.0, 22.0), (110.0, 900.0, 900.0, 900.0)],
        speed: vec![(4.0, 100.0)],
        mainline: vec![(76.0, 100.0), (228.0, 900.0)],
    };
    ReproducedFigure { id: id.into(), climb: Some(climb), ..ReproducedFigure::default() }
}

#[test]
fn climbs_by_the_same_arithmetic_are_drawn_over_each_other() {
    let figures = vec![climb("little100", 110.0), climb("tick", 26.0), climb("little160", 110.0)];
    let picture = drawn(&Reproduced { figures, ..Reproduced::default() });
    assert_eq!(picture.matches("over each other").count(), 1, "two panels, one of them of two");
    // Each panel has a legend of its own, since they are not the same.
    let dots = |colour: &str| picture.matches(&format!("\" fill=\"{colour}\"/>")).count();
    assert_eq!(dots("#1b1f24"), 2 * (2 + 1), "wanted, twice a panel");
    // The speed here has one point, which is no line.
    for (colour, curves) in [("#0072b2", 3), ("#d55e00", 3), ("#009e73", 0)] {
        let lines = picture.matches(&format!("stroke=\"{colour}\"")).count();
        assert_eq!(lines, curves + 2, "{colour}, with its sample in both legends");
    }
    for said in ["little160: 900 at 228", "tick · util against ticks"] {
        assert!(picture.contains(said), "{said}");
    }
}

#[test]
fn slack_against_energy_is_a_table_and_a_point_a_policy() {
    let one = |policy: &str, slack: f64, mj: f64| TradeOff {
        policy: policy.into(),
        slack_ms: Some(slack),
        slack_least_ms: Some(-slack),
        mean_ghz: Some(1.0714),
        energy_mj: Some(mj),
    };
    let trade_offs = vec![
        one("linux-6.11", 2.0, 400.0),
        one("rfc-v1", 2.5, 360.0),
        TradeOff { policy: "never".into(), ..TradeOff::default() },
    ];
    let figure = ReproducedFigure { id: "m1".into(), trade_offs, ..ReproducedFigure::default() };
    let study = Reproduced { figures: vec![figure], ..Reproduced::default() };
    let picture = drawn(&study);
    assert_eq!(picture.matches("<circle").count(), 2);
    assert!(picture.contains(">rfc-v1</text>") && !picture.contains("NaN"));
    let page = text::study(&study, &Style { width: 80, color: false, unicode: true });
    let rows: Vec<&str> = page.lines().skip_while(|l| !l.contains("slack against")).collect();
    assert!(rows[1].contains("rfc-v1") && rows[1].contains("2.50") && rows[1].contains("-2.50"));
    assert!(rows[3].contains('–'), "{page}");
    let json = json::study(&study);
    assert!(json.contains("\"slack_least_ms\":-2.5"), "{json}");
}
