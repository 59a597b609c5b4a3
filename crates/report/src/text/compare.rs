//! Several policies side by side, each with its difference to the first.
//!
//! ```text
//! rows     the main figures of a task (`figures`), those of the first policy first
//! columns  value, and value − first policy's value
//! ```
//!
//! There is no difference where one side is "never", nor between debts that were counted
//! until different endings, nor between figures of different bursts: which burst is the longest
//! may be another under each policy. Where the columns do not fit, they continue below, with the first
//! policy again.

use super::figures::{self, Basis, Figure, Time};
use super::screen::{self, View, fitting};
use super::{Style, jobs};
use crate::page::{Beside, Block, Cell, Doc, Ink, Line, Page, width};
use crate::words;
use risetime_analysis::{JobsPhases, PhaseSummary, RunResult, Spread};

/// A part below that is shown as 0.
const SHOWN_MS: f64 = 0.05;
/// Columns of a head that does not stand above.
const HEAD: usize = 14;
/// Tasks that get a table where all is shown.
const TASKS: usize = 4;

/// The page that compares runs of the same workload: one column a run, differences to the first.
pub fn compare(runs: &[RunResult], view: &View<'_>, style: &Style) -> Doc {
    let names: Vec<&str> = runs.iter().map(|r| r.policy.as_str()).collect();
    let tasks = runs.iter().map(|r| r.tasks.len()).max().unwrap_or(0);
    let column = |run: &RunResult, task: usize| match run.tasks.get(task) {
        Some(t) => figures::of_run(run, t),
        None => Vec::new(),
    };
    let jobs = runs.iter().map(|r| r.jobs.iter().map(|j| JobsPhases::of(&[j])).collect());
    let all = All {
        first: runs.first(),
        names: &names,
        tasks,
        what: "",
        jobs: jobs.collect(),
        runs: runs.chunks(1).collect(),
    };
    fitted(&all, view, style, |c, task| column(&runs[c], task))
}

/// Policies side by side, each run from several start phases: medians. A column is the runs of one policy
/// and their summary.
pub fn compare_phases(
    columns: &[(&[RunResult], &PhaseSummary)],
    view: &View<'_>,
    style: &Style,
) -> Doc {
    let name = |runs: &[RunResult]| runs.first().map_or(String::new(), |r| r.policy.clone());
    let names: Vec<String> = columns.iter().map(|c| name(c.0)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let tasks = columns.iter().map(|c| c.1.tasks.len()).max().unwrap_or(0);
    let phases = columns.iter().map(|c| c.1.phases.len()).max().unwrap_or(0);
    let what = columns.first().map_or("runs", |c| super::phases::what(c.1));
    let what = format!("medians of {phases} {what}");
    let all = All {
        first: columns.first().and_then(|c| c.0.first()),
        names: &names,
        tasks,
        what: &what,
        jobs: columns.iter().map(|c| c.1.jobs.clone()).collect(),
        runs: columns.iter().map(|c| c.0).collect(),
    };
    fitted(&all, view, style, |c, task| figures::of_phases(columns[c].0, columns[c].1, task))
}

/// The runs that are compared.
struct All<'a> {
    first: Option<&'a RunResult>,
    /// The columns.
    names: &'a [&'a str],
    /// Largest number of tasks.
    tasks: usize,
    /// Runs that the figures are of, if not of one each.
    what: &'a str,
    /// Jobs by column.
    jobs: Vec<Vec<JobsPhases>>,
    runs: Vec<&'a [RunResult]>,
}

/// The table as a whole, or of as many rows of the leading task as fit on a screen, if the columns
/// stand side by side there.
fn fitted(
    all: &All<'_>,
    view: &View<'_>,
    style: &Style,
    column: impl Fn(usize, usize) -> Vec<Figure>,
) -> Doc {
    match view.full {
        true => table(all, view, style, usize::MAX, &column),
        false => fitting(|rows| table(all, view, style, rows, &column)),
    }
}

/// `rows`: how much room there is, as on the [screen] of a run.
fn table(
    all: &All<'_>,
    view: &View<'_>,
    style: &Style,
    rows: usize,
    column: &impl Fn(usize, usize) -> Vec<Figure>,
) -> Doc {
    let All { first, names, tasks, what, .. } = *all;
    let mut page = Page::new(style);
    let Some(first) = first else {
        page.line(Line::new().plain("Nothing to compare."));
        return page.finish();
    };
    let what = if what.is_empty() { String::new() } else { format!(" · {what}") };
    let title =
        format!("{} · {} · {}{what}", first.workload, first.platform, words::backend(first));
    page.title(&title, "");
    screen::about(&mut page, view);
    let heads = legend(&mut page, names, HEAD);
    let of = if all.what.is_empty() { String::new() } else { format!("{}; ", all.what) };
    let declared = all.jobs.iter().flatten().any(|j| j.declared);
    if declared {
        jobs::side_by_side(&mut page, &heads, &all.jobs, &of, rows / 2);
    }
    let shown = match view.full {
        true => 0..tasks.min(TASKS),
        false => first.lead..(first.lead + 1).min(tasks),
    };
    let left_out = tasks - shown.len();
    for task in shown {
        if tasks > 1 {
            let comm = first.tasks.get(task).map_or("task", |t| t.comm.as_str());
            page.heading(comm, "");
        }
        let columns: Vec<Vec<Figure>> = (0..names.len()).map(|c| column(c, task)).collect();
        blocks(&mut page, &heads, &columns, rows.saturating_mul(4));
        other_times(&mut page, &heads, &columns);
        page.blank();
    }
    if left_out > 0 {
        let more = if view.full { "all: --format json or csv" } else { "--full, or --task NAME" };
        page.paragraph(0, Ink::Dim, &format!("… {left_out} of {tasks} tasks more; {more}"));
    }
    if tasks > 0 && names.len() > 1 {
        let text = "Beside each value: its difference to the first column's. \
                    Rows with · are parts of what was lost.";
        page.paragraph(0, Ink::Dim, text);
    }
    if tasks == 0 {
        page.line(Line::new().plain("No task of the workload ever ran."));
    }
    if !declared {
        jobs::side_by_side(&mut page, &heads, &all.jobs, &of, rows / 2);
    }
    page.cautions_of_speed(Some(first));
    let columns = heads.iter().map(String::as_str).zip(all.runs.iter().copied());
    super::phases::notes(&mut page, &columns.collect::<Vec<_>>(), rows / 2);
    if !view.full {
        screen::read_on(&mut page, first, view);
    }
    page.finish()
}

/// Says of which figures there is no difference because the columns are about another time than the
/// first one.
fn other_times(page: &mut Page<'_>, heads: &[String], columns: &[Vec<Figure>]) {
    // The first figure of a column is about its burst.
    let Some(first) = columns.first().and_then(|c| c.first()) else { return };
    for (column, head) in columns.iter().zip(heads).skip(1) {
        let Some(own) = column.first() else { continue };
        let begins = match (own.begins(), first.begins()) {
            (Some(own), Some(first)) => {
                format!("begins at {} and not at {} ms", words::one(own), words::one(first))
            }
            _ => "begins at other times".into(),
        };
        let whole = |f: &&Figure| f.time == Time::Run;
        let ends = column.iter().find(whole).zip(columns[0].iter().find(whole));
        let text = if ends.is_some_and(|(own, first)| !own.same_time(first)) {
            format!("{head}: the run ends at another time: no differences.")
        } else if !own.same_time(first) {
            format!(
                "{head}: another burst is the longest, it {begins}: no differences but of whole runs."
            )
        } else {
            continue;
        };
        page.paragraph(0, Ink::Dim, &text);
    }
}

/// The heads that stand for the names in a table: the names, or letters that are explained if one
/// is wider than `room`. Cut off, those that differ at their ends would be the same.
pub(super) fn legend(page: &mut Page<'_>, names: &[&str], room: usize) -> Vec<String> {
    let wide = names.iter().map(|n| width(n)).max().unwrap_or(0);
    if wide <= room {
        return names.iter().map(ToString::to_string).collect();
    }
    let letter = |i: usize| match u8::try_from(i) {
        Ok(i) if i < 26 => char::from(b'A' + i).to_string(),
        _ => format!("#{}", i + 1),
    };
    for (i, name) in names.iter().enumerate() {
        page.hanging(&format!("{}  ", letter(i)), Ink::Plain, name);
    }
    page.blank();
    (0..names.len()).map(letter).collect()
}

/// `most`: so many figures at most.
fn blocks(page: &mut Page<'_>, heads: &[String], columns: &[Vec<Figure>], most: usize) {
    if columns.is_empty() {
        return;
    }
    let mut labels: Vec<&str> = Vec::new();
    for figure in columns.iter().flatten() {
        if !labels.contains(&figure.label.as_str()) {
            labels.push(&figure.label);
        }
    }
    // What never happened under any policy is not worth a row.
    labels.retain(|label| {
        let mut all = columns.iter().flatten().filter(|f| f.label == *label);
        let shown = |f: &Figure| f.is_there() && !(f.part && f.spread.max < Some(SHOWN_MS));
        *label == figures::FIRST || all.any(shown)
    });
    // The parts of the debt last, even where only a later policy has a part.
    labels.sort_by_key(|l| l.starts_with('·'));
    let left_out = labels.len().saturating_sub(most);
    labels.truncate(most);
    let full: Vec<Vec<Option<Figure>>> =
        columns.iter().map(|c| labels.iter().map(|l| figure(c, columns, l)).collect()).collect();
    let cells: Vec<Vec<Cell>> = full
        .iter()
        .enumerate()
        .map(|(c, column)| {
            let first = |row: usize| full[0][row].as_ref().filter(|_| c > 0);
            column.iter().enumerate().map(|(row, f)| cell(f.as_ref(), first(row))).collect()
        })
        .collect();
    page.put(Block::Beside(Beside {
        heads: heads.to_vec(),
        labels: labels.iter().map(ToString::to_string).collect(),
        cells,
    }));
    if left_out > 0 {
        page.paragraph(0, Ink::Dim, &format!("… {left_out} figures more: --full"));
    }
}

/// The figure of that label in `column`; a part that only other columns list is 0 there.
fn figure(column: &[Figure], all: &[Vec<Figure>], label: &str) -> Option<Figure> {
    let find = |c: &[Figure]| c.iter().find(|f| f.label == label).cloned();
    find(column).or_else(|| {
        let part = all.iter().find_map(|c| find(c)).filter(|f| f.part)?;
        let spread = Spread::of([Some(0.0)]);
        // What a debt's parts count until is what the debt counts until.
        let basis = match part.basis {
            Basis::Any => Basis::Any,
            _ => column.iter().map(|f| f.basis).find(|b| *b != Basis::Any)?,
        };
        let times = column.first().map_or_else(Vec::new, |f| f.times.clone());
        Some(Figure { spread, basis, times, ..part })
    })
}

fn cell(figure: Option<&Figure>, first: Option<&Figure>) -> Cell {
    let Some(figure) = figure else {
        return Cell { value: "–".into(), difference: String::new(), ink: Ink::Plain };
    };
    let difference = first.and_then(|f| figure.less(f)).filter(|d| d.is_finite());
    let ink = match (figure.less_is_better, difference) {
        (Some(less), Some(d)) if d.abs() >= 0.05 => {
            if (d < 0.0) == less {
                Ink::Good
            } else {
                Ink::Bad
            }
        }
        _ => Ink::Dim,
    };
    let word = if figure.fine { words::signed3 } else { words::signed };
    let difference = difference.map(word).unwrap_or_default();
    Cell { value: figure.text(|s| s.median), difference, ink }
}
