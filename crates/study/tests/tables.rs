//! Studies that are tables: what their pages show is what they print, and what has to be true of them is.

use crate::page;
use risetime_analysis::study::Reproduced;
use risetime_model::Study;
use risetime_report::text::{self, Style};
use risetime_study::{STUDY_PHASES, reproduce};

/// So many start phases are enough to tell the columns apart.
const PHASES: u32 = 8;

fn reproduced(name: &str) -> Reproduced {
    let study = Study::load(name).unwrap_or_else(|e| panic!("{e}"));
    reproduce(&study, PHASES, |_| ()).unwrap_or_else(|e| panic!("{e}"))
}

/// Every check of a built-in table holds or is argued, and its page shows all of it.
fn holds_as_its_page_says(name: &str) -> Reproduced {
    let done = reproduced(name);
    let style = Style { width: 80, color: false, unicode: true };
    let page = format!("studies/{name}.md");
    page::holds(&page, "writes it anew.\n\n```text\n", "```\n", &text::study(&done, &style));
    done
}

#[test]
fn governors_of_march_2016() {
    let done = holds_as_its_page_says("muckle-2016");
    let of_checks = |r: &&risetime_analysis::study::JudgedRow| r.list.starts_with("checks of");
    let checks: Vec<_> = done.rows().filter(of_checks).collect();
    assert!(checks.len() == 12 && checks.iter().all(|r| r.holds == Some(true)), "{checks:?}");
    let cells = done.figures[0].cells.as_ref().expect("a table");
    // The cells to fit are no part of the errors that are judged, and nothing is fitted for one cell alone.
    assert_eq!(cells.cases.iter().filter(|(_, fit)| *fit).count(), 4);
    assert!(cells.free.iter().all(|f| f.values[f.chosen].1 <= f.values[0].1), "{:?}", cells.free);
    // Who only looks at the policy costs ondemand a sampling period behind each long sleep, as published.
    let looked_at = &done.figures[0].elsewhere[0];
    let row = |case: &str| format!("governors/overhead/ondemand/{case}");
    assert!(["400/1000", "500/900"].iter().all(|c| looked_at.mended.contains(&row(c))));
    assert!(looked_at.broken.iter().all(|id| !id.contains("/ondemand/")), "{looked_at:?}");
}

#[test]
fn talks_of_2023() {
    let done = holds_as_its_page_says("ospm-2023");
    let score = done.score();
    let of = |tally: risetime_analysis::study::Tally| (tally.held, tally.counted);
    assert_eq!((score.document.counted, score.ours.counted), (32, 16), "{score:?}");
    assert!(of(score.document).0 >= 19 && of(score.ours).0 >= 15, "{score:?}");
    assert!(done.holds(), "what misses is argued");
    // At a fixed frequency SCHED_HIGH is where the report has it, and MuQSS no longer ahead of its kernel's CFS.
    let fixed = |id: &str| {
        let figure = done.figures.iter().find(|f| f.id == id).expect("a figure");
        (figure.elsewhere[0].mended.join(" "), figure.elsewhere[0].broken.join(" "))
    };
    assert_eq!(fixed("keys"), ("keys/par-4".into(), "keys/muqss-4".into()));
    assert_eq!(fixed("mouse"), ("mouse/high".into(), "mouse/muqss-4".into()));
    // What is ours to keep: delays, shares, throttling, servers, timers; over as many phases as a user gets, too.
    let ours = |figure: &str| ["pressure", "overcommit", "rt-burst", "hrtimers"].contains(&figure);
    let mut study = Study::load("ospm-2023").expect("in order");
    study.figures.retain(|figure| ours(&figure.id));
    let whole = reproduce(&study, STUDY_PHASES, |_| ()).expect("runs");
    // The medians of instant and average pressure are one where the cap goes, over many phases; pair by pair they are not.
    let open = |row: &str| row == "pressure/goes";
    for figure in whole.figures.iter().chain(done.figures.iter().filter(|f| ours(&f.id))) {
        let missed = figure.rows.iter().find(|r| r.holds != Some(true) && !open(&r.id));
        assert!(missed.is_none(), "{}: {missed:?}", figure.id);
    }
}
