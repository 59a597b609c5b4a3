//! Scores of the built-in studies: recorded, judged here, and a figure of each run anew.

#[path = "scores/record.rs"]
mod record;

use crate::page;
use record::{HEAD, Line, PHASES, hash};
use risetime_model::{Study, library};

const RECORD: &str = include_str!("scores/record.csv");

/// A figure of each study that is quickly run.
const DRAWN: [(&str, &str); 8] = [
    ("bud-2017", "vellamo"),
    ("coherent-response", "little100"),
    ("load-tracking-2017", "group"),
    ("muckle-2016", "governors"),
    ("ondemand-2014", "ebizzy"),
    ("ospm-2023", "hrtimers"),
    ("rfc-2024", "x2"),
    ("steady-tasks", "full-speed"),
];

fn lines() -> Vec<Line> {
    let lines = RECORD.lines().filter(|l| !l.starts_with('#') && *l != HEAD);
    lines.map(Line::parse).collect()
}

fn of(study: &str) -> Vec<Line> {
    lines().into_iter().filter(|l| l.study == study).collect()
}

#[test]
fn the_record_is_of_the_studies_as_they_are() {
    for built_in in library::studies() {
        let study = Study::load(built_in.name).expect("built in");
        let lines = of(built_in.name);
        let recorded: Vec<&str> = lines.iter().map(|l| l.figure.as_str()).collect();
        let there: Vec<&str> = study.figures.iter().map(|f| f.id.as_str()).collect();
        assert_eq!(recorded, there, "{}: `make evidence-scores`", built_in.name);
        for (line, figure) in lines.iter().zip(&study.figures) {
            let known = (line.hash == hash(built_in.text), line.phases);
            assert_eq!(known, (true, PHASES), "{}: `make evidence-scores`", built_in.name);
            let wrong: Vec<&String> = line.wrong.iter().map(|(policy, _)| policy).collect();
            assert_eq!(wrong, figure.wrong.iter().collect::<Vec<_>>(), "{}", figure.id);
        }
    }
}

/// Judges whether the rows tell a right policy from a wrong one.
#[test]
fn a_wrong_policy_loses_half_of_the_rows_of_each_figure_or_it_is_marked_weak() {
    let (mut weak, mut all) = (0, 0);
    for built_in in library::studies() {
        let study = Study::load(built_in.name).expect("built in");
        for (line, figure) in of(built_in.name).iter().zip(&study.figures) {
            if line.total().0 == 0 {
                continue;
            }
            all += 1;
            weak += usize::from(!line.told_apart());
            let id =
                format!("{}/{}: {:?} of {:?}", study.name, figure.id, line.wrong, line.total());
            assert_eq!(line.told_apart(), figure.weak.is_empty(), "{id}");
        }
    }
    assert!(4 * weak <= all, "{weak} of {all} figures are weak");
}

#[test]
fn a_figure_of_each_study_run_anew_is_as_recorded() {
    for (study, figure) in DRAWN {
        let built_in = library::studies().into_iter().find(|s| s.name == study).expect("built in");
        let recorded = of(study).into_iter().find(|l| l.figure == figure).expect("recorded");
        let anew = Line::run(&Study::load(study).expect("built in"), built_in.text, figure);
        assert_eq!(anew.text(), recorded.text());
    }
}

#[test]
fn the_table_of_scores_is_what_is_recorded() {
    let mut table = String::from(
        "| study | of the document | hold | of ours | hold | cannot fail | under the best wrong policy | under the worst |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for built_in in library::studies() {
        let lines = of(built_in.name);
        let sum = |i: usize| lines.iter().map(|l| l.counts[i]).sum::<usize>();
        let wrong = |pick: fn(&Line) -> Option<usize>| {
            let figures = lines.iter().filter_map(|l| Some((pick(l)?, l.total().0)));
            let (holds, counted) = figures.fold((0, 0), |(a, b), (h, c)| (a + h, b + c));
            format!("{holds} of {counted}")
        };
        let best = |l: &Line| l.wrong.iter().map(|(_, holds)| *holds).max();
        let worst = |l: &Line| l.wrong.iter().map(|(_, holds)| *holds).min();
        let share = |held: usize, counted: usize| match counted {
            0 => "–".to_string(),
            n => format!("{held} ({} %)", (100 * held + n / 2) / n),
        };
        table += &format!(
            "| `{}` | {} | {} | {} | {} | {} | {} | {} |\n",
            built_in.name,
            sum(0),
            share(sum(1), sum(0)),
            sum(2),
            share(sum(3), sum(2)),
            sum(4),
            wrong(best),
            wrong(worst),
        );
    }
    page::holds("evidence/scores.md", "<!-- scores -->\n\n", "\n<!-- end -->", &table);
}
