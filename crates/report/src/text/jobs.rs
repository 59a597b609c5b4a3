//! Jobs: what was due, what was missed, how long they took.
//!
//! ```text
//! of a run        a row for each name
//! over phases     its medians, and below them the spread
//! side by side    a table for each name, a row for each policy
//! ```
//!
//! Jobs that the workload declares are what it is about: they stand before the tasks.

use super::Style;
use super::run::{ALL, LIST, more};
use crate::page::{Doc, Ink, Page, Table};
use crate::words;
use risetime_analysis::{
    Jobs, JobsPhases, Latest, Missed, PhaseSummary, RunResult, Spread, WORST, group_name,
};

/// The value of a spread that a row shows.
type Pick = fn(&Spread) -> Option<f64>;

const MEDIAN: Pick = |s| s.median;

/// Kinds of jobs with all of their spread, or with a table of their own.
const SPREADS: usize = 8;

/// Writes the title of a table of jobs; `of`: more words for it.
fn title(page: &mut Page<'_>, of: &str) {
    let text = format!(" ({of}ms from release to done; slack: the least)");
    page.heading("Jobs", text);
}

fn table(first: &str) -> Table {
    Table::new([first, "due", "missed", "p50", "p90", "p95", "p99", "max", "slack", "mJ each"])
}

fn row(table: &mut Table, label: String, j: &JobsPhases, at: Pick) {
    let find = |all: &[(&str, Spread)], name: &str| {
        all.iter().find(|(known, _)| *known == name).map(|(_, s)| *s).unwrap_or_default()
    };
    let ms = |s: Spread| at(&s).map_or("–".into(), |ms| format!("{ms:.2}"));
    let count = |kind: &str| at(&j.count(kind)).map_or("–".into(), counted);
    let mut cells = vec![label, count("due"), count("missed")];
    let response = ["p50", "p90", "p95", "p99", "max"].map(|q| ms(find(&j.response, q)));
    cells.extend(response);
    let late = find(&j.lateness, "max");
    let less = |x: Option<f64>| x.map(|ms| -ms);
    // What is latest has the least slack.
    let slack = Spread {
        min: less(late.max),
        q1: less(late.q3),
        median: less(late.median),
        q3: less(late.q1),
        max: less(late.min),
        ..late
    };
    cells.push(ms(slack));
    cells.push(at(&j.mj_per_job).map_or("–".into(), words::digits3));
    let missed = at(&j.count("missed")).is_some_and(|n| n > 0.0);
    table.inked(missed.then_some(Ink::Bad), cells);
}

/// Formats a count, which as a median over an even number of runs may be half of one.
fn counted(n: f64) -> String {
    if n.fract() == 0.0 { format!("{n:.0}") } else { words::one(n) }
}

/// Lists in which ways jobs were missed: `4 late, 7 dropped in the chain`.
fn kinds(j: &JobsPhases) -> String {
    let kinds = [
        ("late", "late"),
        ("merged", "merged into a later one"),
        ("dropped", "dropped in the chain"),
        ("overdue", "overdue at the run's end"),
    ];
    let some = kinds.iter().filter_map(|(kind, words)| {
        let n = j.count(kind).median.filter(|n| *n > 0.0)?;
        Some(format!("{} {words}", counted(n)))
    });
    some.collect::<Vec<_>>().join(", ")
}

/// The sentence on a run whose workload declares jobs: how many were missed, and how long they
/// took.
pub(crate) fn sentence(r: &RunResult) -> Option<String> {
    r.jobs.iter().find(|j| j.declared).map(sentence_of)
}

/// The sentence on these jobs: how many were missed, and how long they took.
pub(super) fn sentence_of(j: &Jobs) -> String {
    let due = format!("{} job{} due", j.due, if j.due == 1 { "" } else { "s" });
    let missed = match (j.missed(), j.late) {
        (0, _) => "none missed".into(),
        (missed, 0) => format!("{missed} missed"),
        (missed, late) if missed == late => format!("{late} late"),
        (missed, late) => format!("{missed} missed, {late} of them late"),
    };
    let took = j.response.as_ref().map_or(String::new(), |p| {
        format!("; 95 % took up to {:.2} ms, 99 % up to {:.2} ms", p.p95, p.p99)
    });
    let longer = j
        .longer
        .as_ref()
        .filter(|p| p.p99 >= 0.005)
        .map_or(String::new(), |p| format!(" and {:.2} ms longer than at full speed", p.p99));
    format!("{}: {due}, {missed}{took}{longer}.", j.name)
}

/// `most` jobs of a run: declared ones, then those that were missed most often.
pub(super) fn table_of(page: &mut Page<'_>, r: &RunResult, most: usize) {
    title(page, "");
    let mut table = table("");
    let mut all: Vec<&Jobs> = r.jobs.iter().collect();
    // Late jobs come before those that are not.
    let late = |j: &Jobs| j.latest.as_ref().map_or(f64::MIN, |l| l.lateness_ms);
    all.sort_by(|a, b| {
        b.declared
            .cmp(&a.declared)
            .then(b.missed().cmp(&a.missed()))
            .then(late(b).total_cmp(&late(a)))
    });
    for j in all.iter().take(most) {
        row(&mut table, j.name.clone(), &JobsPhases::of(&[*j]), MEDIAN);
    }
    page.table(2, table);
    more(page, all.len(), most, "kinds of jobs", "--full");
    page.blank();
}

/// Writes the table of all jobs of a run.
pub(super) fn of_run(page: &mut Page<'_>, r: &RunResult) {
    if r.jobs.is_empty() {
        return;
    }
    title(page, "");
    let mut table = table("");
    let shown = || r.jobs.iter().take(LIST).map(|j| (j, JobsPhases::of(&[j])));
    shown().for_each(|(j, figures)| row(&mut table, j.name.clone(), &figures, MEDIAN));
    page.table(2, table);
    for (j, figures) in shown() {
        let latest = j.latest.as_ref().filter(|l| l.lateness_ms > 0.0).map(|l| {
            let Latest { number, due_ms, lateness_ms, .. } = l;
            format!(
                "the latest: job {number}{}, due at {due_ms:.2} ms, {lateness_ms:.2} ms late",
                whose_job(j)
            )
        });
        let said = [kinds(&figures)].into_iter().chain(latest).filter(|text| !text.is_empty());
        let said = said.collect::<Vec<_>>().join("; ");
        if !said.is_empty() {
            page.hanging("  ", Ink::Dim, &format!("{}: {said}", j.name));
        }
    }
    more(page, r.jobs.len(), LIST, "kinds of jobs", ALL);
    page.blank();
}

/// The words that tell which of several instances begins the latest job, and so tell its number
/// apart: ` of w-3`.
pub(super) fn whose_job(j: &Jobs) -> String {
    let comm = j.latest.as_ref().and_then(|latest| latest.comm.as_ref());
    let several = |comm: &&String| group_name(comm) != comm.as_str();
    comm.filter(several).map_or(String::new(), |comm| format!(" of {comm}"))
}

/// Writes the table of jobs over start phases: medians, and the spread of `most` of them.
pub(super) fn of_phases(page: &mut Page<'_>, s: &PhaseSummary, most: usize) {
    if s.jobs.is_empty() {
        return;
    }
    let most = most.clamp(1, SPREADS);
    title(page, &format!("medians of {} {}; ", s.phases.len(), super::phases::what(s)));
    let mut table = table("");
    const SPREAD: [(&str, Pick); 4] =
        [("  min", |s| s.min), ("  max", |s| s.max), ("  q1", |s| s.q1), ("  q3", |s| s.q3)];
    for j in s.jobs.iter().take(most) {
        row(&mut table, j.name.clone(), j, MEDIAN);
        SPREAD.iter().for_each(|(label, at)| row(&mut table, (*label).into(), j, *at));
    }
    page.table(2, table);
    for j in s.jobs.iter().take(most) {
        say_kinds(page, &j.name, j);
    }
    more(page, s.jobs.len(), most, "kinds of jobs", ALL);
    page.blank();
}

fn say_kinds(page: &mut Page<'_>, whose: &str, j: &JobsPhases) {
    let text = kinds(j);
    if !text.is_empty() {
        page.hanging("  ", Ink::Dim, &format!("{whose}: {text}"));
    }
}

/// Writes the jobs of several policies, `heads`: a table for each name, `most` of them. `of`: which
/// runs they are of.
pub(super) fn side_by_side(
    page: &mut Page<'_>,
    heads: &[String],
    columns: &[Vec<JobsPhases>],
    of: &str,
    most: usize,
) {
    let mut names: Vec<&str> = Vec::new();
    for j in columns.iter().flatten() {
        if !names.contains(&j.name.as_str()) {
            names.push(&j.name);
        }
    }
    if names.is_empty() {
        return;
    }
    title(page, of);
    let most = most.clamp(1, SPREADS);
    for name in names.iter().take(most) {
        let rows = heads.iter().zip(columns);
        let rows = rows.filter_map(|(h, c)| Some((h, c.iter().find(|j| j.name == *name)?)));
        let mut table = table(name);
        rows.clone().for_each(|(head, j)| row(&mut table, head.clone(), j, MEDIAN));
        page.table(2, table);
        rows.for_each(|(head, j)| say_kinds(page, head, j));
    }
    more(page, names.len(), most, "kinds of jobs", ALL);
    page.blank();
}

/// The late jobs of a run one by one, the latest first.
pub fn late_jobs(r: &RunResult, style: &Style) -> Doc {
    let mut page = Page::new(style);
    for (i, j) in r.jobs.iter().filter(|j| !j.worst.is_empty()).enumerate() {
        let (all, shown) = ((j.late + j.overdue) as usize, j.worst.len());
        let which = if all > shown { format!("the {WORST} latest of {all}") } else { "all".into() };
        if i > 0 {
            page.blank();
        }
        let aside = format!(" (ms; {which}, the latest first)");
        page.heading(format!("Late jobs of {}", j.name), aside);
        let heads = ["job", "released", "due", "done", "late", "longest with"];
        let mut table = Table::new(heads);
        let instances = j.worst.iter().any(|missed| missed.comm != j.worst[0].comm);
        j.worst.iter().for_each(|missed| table.row(late(missed, instances)));
        page.table(2, table);
        more(&mut page, all, shown, "late jobs", "--bursts --format json or csv");
    }
    page.finish()
}

/// `instances`: of several tasks, of which each counts its own.
fn late(m: &Missed, instances: bool) -> [String; 6] {
    let ms = |ms: f64| format!("{ms:.2}");
    let or = |x: Option<f64>| x.map_or("–".into(), ms);
    let longest = m.longest.as_ref();
    [
        if instances { format!("{} {}", m.comm, m.number) } else { m.number.to_string() },
        ms(m.release_ms),
        or(m.due_ms),
        if m.how == "overdue" { "not yet".into() } else { ms(m.over_ms) },
        or(m.lateness_ms),
        longest.map_or("–".into(), |(task, took)| format!("{task} {}", ms(*took))),
    ]
}
