//! What the slides of March 2017 call problems and cures, each with what the kernel's arithmetic comes to.

use crate::page;
use risetime_analysis::study::Reproduced;
use risetime_model::Study;
use risetime_model::study::Row;
use risetime_report::text::{self, Style};
use risetime_study::{check_study, reproduce};

fn study() -> Study {
    let study = Study::load("load-tracking-2017").expect("built in");
    check_study(&study).expect("runs");
    study
}

fn reproduced(study: &Study, phases: u32) -> Reproduced {
    reproduce(study, phases, |_| ()).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_problem_shows_and_is_cured() {
    let done = reproduced(&study(), 16);
    let missed: Vec<_> = done.rows().filter(|r| r.holds != Some(true)).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    let style = Style { width: 80, color: false, unicode: true };
    let page = text::study(&done, &style);
    page::holds("studies/load-tracking-2017.md", "writes it anew.\n\n```text\n", "```\n", &page);
}

/// The settings of the problem in the place of the cure: what tells the two apart has to miss.
#[test]
fn without_the_cure_every_row_of_it_misses() {
    let mut study = study();
    let mut swapped = 0;
    for figure in &mut study.figures {
        for list in figure.lists.iter_mut().filter(|l| l.quantity.by_policy()) {
            let first = list.rows[0].clone();
            let same = |r: &Row| r.published == first.published && r.relation == first.relation;
            list.rows.retain(|row| !same(row));
            for row in &mut list.rows {
                row.at = first.at.clone();
                swapped += 1;
            }
        }
        figure.lists.retain(|list| list.quantity.by_policy() && !list.rows.is_empty());
        if let Some(table) = &mut figure.table {
            let before = table.columns[0].vary.clone();
            table.columns.iter_mut().for_each(|column| column.vary.clone_from(&before));
            let across = table.cases.len() == 1 || table.columns.len() > 2;
            swapped += if across { table.checks.len() } else { 0 };
            if !across {
                table.checks.clear();
            }
        }
    }
    study
        .figures
        .retain(|f| !f.lists.is_empty() || f.table.as_ref().is_some_and(|t| !t.checks.is_empty()));
    let done = reproduced(&study, 4);
    assert_eq!(done.rows().count(), swapped);
    assert!(swapped >= 12, "{swapped}");
    let held: Vec<_> = done.rows().filter(|r| r.holds == Some(true)).collect();
    assert!(held.is_empty(), "{held:#?}");
}

/// Invariance and half-life are told by their closed forms: each holds under its own settings alone.
#[test]
fn closed_forms_tell_the_schemes_apart() {
    let mut study = study();
    study.figures.retain(|f| f.id == "invariance" || f.id == "half-life");
    for figure in &mut study.figures {
        let mut policies: Vec<_> = figure.lists.iter().map(|l| l.policy.clone()).collect();
        policies.rotate_left(1);
        for (list, policy) in figure.lists.iter_mut().zip(policies) {
            list.policy = policy;
        }
    }
    let done = reproduced(&study, 4);
    assert_eq!(done.rows().count(), 14);
    assert!(done.rows().all(|r| r.holds == Some(false)), "{:#?}", done.rows().collect::<Vec<_>>());
}

/// The page of the settings says of each preset what it was held to; a study that it names is there.
#[test]
fn every_preset_says_what_it_was_held_to() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
    let page = std::fs::read_to_string(path).expect("the page");
    let (_, table) = page.split_once("## Presets").expect("its heading");
    let (table, _) = table.split_once("<!-- from here on").expect("its end");
    let presets = || table.lines().filter_map(|line| line.strip_prefix("| ")?.split('|').next());
    let has = |name: &str| presets().any(|cell| cell.contains(&format!("`{name}`")));
    for policy in risetime_model::library::policies() {
        // The parts of the series share a row.
        let own = policy.name.split_once("-x").or(policy.name.split_once("-p"));
        let name = own.filter(|_| policy.name.starts_with("rfc-")).map_or(policy.name, |own| own.0);
        assert!(has(name), "{} stands in no row", policy.name);
    }
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    for row in rows {
        let name = row.split('`').nth(1).expect("a name");
        risetime_model::Policy::load(name).unwrap_or_else(|e| panic!("{e}"));
    }
    for study in table.split("`reproduce ").skip(1).filter_map(|rest| rest.split('`').next()) {
        Study::load(study).unwrap_or_else(|e| panic!("{e}"));
    }
}
