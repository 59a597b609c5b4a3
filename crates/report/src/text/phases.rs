//! One experiment over many start phases: medians and spread of every figure.
//!
//! A burst may begin anywhere in a tick and in a PELT period, and single figures depend on
//! it; only the median says what a policy does. "never" is larger than any number here.

use super::figures::{self, Figure};
use super::run::more;
use super::screen::{self, View, fitting};
use super::{Style, jobs};
use crate::page::{Doc, Ink, Line, Page, Table};
use crate::words;
use risetime_analysis::{EndedBy, Level, PhaseSummary, RunResult, Spread, TaskResult};
use risetime_model::micros;

/// Tasks that get a table where all is shown.
const TASKS: usize = 4;

/// The page of runs that differ in their start phase only: medians and spreads. With `every`, each
/// phase's main figures follow.
pub fn phases(
    runs: &[RunResult],
    summary: &PhaseSummary,
    every: bool,
    view: &View<'_>,
    style: &Style,
) -> Doc {
    match view.full || every {
        true => medians(runs, summary, every, view, style, usize::MAX),
        false => fitting(|rows| medians(runs, summary, every, view, style, rows)),
    }
}

fn medians(
    runs: &[RunResult],
    summary: &PhaseSummary,
    every: bool,
    view: &View<'_>,
    style: &Style,
    rows: usize,
) -> Doc {
    let mut page = Page::new(style);
    let n = summary.phases.len();
    if let Some(r) = runs.first() {
        let backend = words::backend(r);
        let title = format!(
            "{} · {} · {} · {backend} · {n} {}",
            r.workload,
            r.platform,
            r.policy,
            what(summary)
        );
        page.title(&title, "");
        screen::about(&mut page, view);
    }
    if summary.tasks.is_empty() {
        page.line(Line::new().plain("No task of the workload ever ran."));
    }
    let declared = summary.jobs.iter().any(|j| j.declared);
    if declared {
        jobs::of_phases(&mut page, summary, rows / 3);
    }
    let lead = runs.first().map_or(0, |run| run.lead);
    let shown = match view.full {
        true => 0..summary.tasks.len().min(TASKS),
        false => lead..(lead + 1).min(summary.tasks.len()),
    };
    let left_out = summary.tasks.len() - shown.len();
    for index in shown {
        let task = &summary.tasks[index];
        if summary.tasks.len() > 1 {
            page.heading(task.comm.as_str(), "");
        }
        endings(&mut page, summary, index);
        spreads(&mut page, &figures::of_phases(runs, summary, index), rows.saturating_mul(4));
        if view.full {
            residency(&mut page, runs, summary, index);
        }
        if every {
            each(&mut page, runs, index);
        }
    }
    if left_out > 0 {
        let more = if view.full { "all: --format json or csv" } else { "--full, or --task NAME" };
        page.paragraph(0, Ink::Dim, &format!("… {left_out} tasks more; {more}"));
    }
    if !declared {
        jobs::of_phases(&mut page, summary, rows / 3);
    }
    page.cautions_of_speed(runs.first());
    notes(&mut page, &[("", runs)], rows / 2);
    if let Some(first) = runs.first().filter(|_| !view.full) {
        screen::read_on(&mut page, first, view);
    }
    page.finish()
}

/// Start phases that are named with a note.
const NAMED: usize = 4;

/// Writes the notes of these runs, each once, with the policies and start phases that it is about
/// if it is not about all. `columns`: the runs of each policy.
pub(super) fn notes(page: &mut Page<'_>, columns: &[(&str, &[RunResult])], most: usize) {
    let mut notes: Vec<&String> = Vec::new();
    for note in columns.iter().flat_map(|(_, runs)| *runs).flat_map(|run| &run.notes) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    let all = notes.len();
    let most = most.max(1);
    for note in notes.into_iter().take(most) {
        let has = |run: &&RunResult| run.notes.contains(note);
        let whose: Vec<String> =
            columns.iter().filter_map(|(policy, runs)| whose(policy, runs, has)).collect();
        let of_all = columns.iter().flat_map(|(_, runs)| *runs).all(|run| has(&run));
        let head = if of_all { String::new() } else { format!("{}: ", whose.join("; ")) };
        page.note(&format!("{head}{note}"));
    }
    more(page, all, most, "notes", "--full");
}

/// The words that tell which of a policy's runs have a note: the policy, if it has a name, and the
/// start phases unless it is all of them.
fn whose(policy: &str, runs: &[RunResult], has: impl Fn(&&RunResult) -> bool) -> Option<String> {
    let found: Vec<&RunResult> = runs.iter().filter(has).collect();
    if found.is_empty() {
        return None;
    }
    let mut phases: Vec<String> = found.iter().take(NAMED).map(|run| micros(run.phase)).collect();
    phases.dedup();
    let more = if found.len() > NAMED { ", …" } else { "" };
    let phases = Some(format!("phase {} µs{more}", phases.join(", ")));
    let policy = Some(policy.to_string()).filter(|policy| !policy.is_empty());
    let parts = [policy, phases.filter(|_| found.len() < runs.len())];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// The word for the runs: "start phases", or "runs" of the same one again and again.
pub(super) fn what(summary: &PhaseSummary) -> &'static str {
    let first = summary.phases.first();
    let same = summary.phases.len() > 1 && summary.phases.iter().all(|p| Some(p) == first);
    if same { "runs" } else { "start phases" }
}

/// Writes how the bursts ended, if not all alike or not at full speed.
fn endings(page: &mut Page<'_>, summary: &PhaseSummary, index: usize) {
    let ended = &summary.tasks[index].ended_by;
    let cut_off = ended.iter().any(|(how, _)| *how == EndedBy::RunEnd);
    if !summary.tasks[index].endless && !cut_off {
        return;
    }
    if let [(only, _)] = ended.as_slice()
        && only.as_str() == "full_speed"
    {
        return;
    }
    let list: Vec<String> =
        ended.iter().map(|(e, n)| format!("{} {n}", e.as_str().replace('_', " "))).collect();
    if !list.is_empty() {
        let text = format!("How the bursts ended: {}.", list.join(", "));
        page.paragraph(0, Ink::Warn, &text);
        page.blank();
    }
}

/// Head of a column, and what it shows of a spread.
type Column = (&'static str, fn(&Spread) -> Option<f64>);

/// Columns of the spread, the dispensable ones last.
fn columns(width: usize) -> &'static [Column] {
    const ALL: [Column; 5] = [
        ("median", |s| s.median),
        ("min", |s| s.min),
        ("max", |s| s.max),
        ("q1", |s| s.q1),
        ("q3", |s| s.q3),
    ];
    &ALL[..if width >= 64 { 5 } else { 3 }]
}

fn spreads(page: &mut Page<'_>, rows: &[Figure], most: usize) {
    let columns = columns(page.width());
    let mut table = Table::new(std::iter::once("").chain(columns.iter().map(|c| c.0)));
    let there = || rows.iter().filter(|f| f.label == figures::FIRST || f.is_there());
    for f in there().take(most) {
        let cells = columns.iter().map(|c| f.text(c.1));
        table.row(std::iter::once(f.label.clone()).chain(cells));
    }
    page.table(0, table);
    more(page, there().count(), most, "figures", "--full");
    page.blank();
}

/// Writes the running time at each frequency of each domain.
fn residency(page: &mut Page<'_>, runs: &[RunResult], summary: &PhaseSummary, index: usize) {
    let rows = &summary.tasks[index].domain_running;
    if rows.is_empty() {
        return;
    }
    page.heading("Frequency residency (ms at MHz)", "");
    let columns = columns(page.width());
    let mut table = Table::new(std::iter::once("").chain(columns.iter().map(|c| c.0)));
    for r in rows {
        let cpus = runs.first().map_or(r.cpu.to_string(), |run| figures::cpus_of(run, r.cpu));
        let cells = columns.iter().map(|c| words::one_or((c.1)(&r.ms), "never"));
        let label = format!("{cpus} {:>6}", words::mhz(r.freq));
        table.row(std::iter::once(label).chain(cells));
    }
    page.table(0, table);
    page.blank();
}

/// A row for each phase.
fn each(page: &mut Page<'_>, runs: &[RunResult], index: usize) {
    page.heading("Every start phase", "");
    type Cell = fn(&TaskResult) -> String;
    let all: [(&str, Cell); 5] = [
        ("full speed", |t| words::one_or(t.burst.as_ref().and_then(words::to_full_speed), "never")),
        ("lost", |t| {
            let text = |b| words::bound(b).to_string() + &words::one(b.debt_ms);
            t.burst.as_ref().map_or("–".into(), text)
        }),
        ("util 450", |t| words::one_or(words::after(t, Level::Util(450)), "never")),
        ("util 1000", |t| words::one_or(words::after(t, Level::Util(1000)), "never")),
        ("mJ", |t| words::energy(t.whole.energy_mj)),
    ];
    let shown = if page.width() >= 60 { &all[..] } else { &all[..2] };
    let mut table = Table::new(std::iter::once("phase µs").chain(shown.iter().map(|c| c.0)));
    for run in runs {
        let phase = micros(run.phase);
        let cells = shown.iter().map(|c| run.tasks.get(index).map_or("–".into(), c.1));
        table.row(std::iter::once(phase).chain(cells));
    }
    page.table(0, table);
    page.blank();
}
