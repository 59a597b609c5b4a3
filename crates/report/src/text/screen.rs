//! The first screen of a run: at most [`LINES`] lines where there are 80 columns, whatever ran.
//!
//! ```text
//! what         the experiment, and what the workload is
//! jobs         how many were missed and how long they took; else the burst of the task that leads
//! worst        which job was latest, or whose activation took longest
//! limits       in which states time was lost, by their names
//! tasks        what each name ran, waited and took longer than at full speed
//! energy       of all CPUs; heat, if there is some
//! read on      options and commands
//! ```
//!
//! A list has as many rows as leave room for all of it: [`ROWS`] or fewer. Everything else: `--full`.

use super::run::{headline, more, states, time, title};
use super::{Style, jobs};
use crate::page::{Doc, Ink, Line, Page, Table};
use crate::words;
use risetime_analysis::{Jobs, Latency, Level, Lost, Missed, RunResult, TaskResult, group_name};
use std::collections::BTreeMap;

/// Lines of a screen.
const LINES: usize = 40;
/// Time longer than at full speed that is worth a line, in ms.
const NOTICED_MS: f64 = 0.1;
/// Rows of a list, at most.
const ROWS: usize = 7;

/// View of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct View<'a> {
    /// Description of the workload, in a line.
    pub about: &'a str,
    /// The task that was asked for, by its name or a pattern.
    pub task: Option<&'a str>,
    /// All there is, not the first screen alone.
    pub full: bool,
    /// The command that says why it is so, word by word; empty: there is none.
    pub why: &'a [String],
}

/// The first screen.
pub(super) fn screen(r: &RunResult, view: &View<'_>, style: &Style) -> Doc {
    fitting(|rows| compose(r, view, style, rows))
}

/// The page with the most rows in its lists that is a screen.
pub(super) fn fitting(page: impl Fn(usize) -> Doc) -> Doc {
    let fits = |page: &Doc| page.as_str().lines().count() <= LINES;
    (2..=ROWS).rev().map(&page).find(fits).unwrap_or_else(|| page(1))
}

fn compose(r: &RunResult, view: &View<'_>, style: &Style, rows: usize) -> Doc {
    let mut page = Page::new(style);
    title(&mut page, r);
    about(&mut page, view);
    let Some(task) = r.leading() else {
        page.line(Line::new().plain("No task of the workload ever ran."));
        notes(&mut page, &r.notes, rows);
        return page.finish();
    };
    let job = job_of(r, task);
    if let Some(job) = job {
        page.hanging("", Ink::Strong, &jobs::sentence_of(job));
    }
    let whose = Whose::of(r, task, job, view);
    if job.is_none_or(|job| !job.declared) {
        headline(&mut page, &words::task_name(r, task), task, job.is_none());
    }
    worst(&mut page, r, task);
    waking(&mut page, r, task);
    page.blank();
    if !r.jobs.is_empty() {
        jobs::table_of(&mut page, r, rows.min(4));
    }
    limits(&mut page, r, task, &whose, rows + 1);
    if task.endless {
        climb(&mut page, task);
    }
    tasks(&mut page, r, &whose, rows);
    energy(&mut page, r, &whose);
    page.cautions(&r.cautions);
    notes(&mut page, &r.notes, rows);
    read_on(&mut page, r, view);
    page.finish()
}

/// Writes what the workload is.
pub(super) fn about(page: &mut Page<'_>, view: &View<'_>) {
    page.paragraph(0, Ink::Dim, view.about);
    page.blank();
}

/// The jobs that a task begins or works at, declared ones first.
fn job_of<'a>(r: &'a RunResult, task: &TaskResult) -> Option<&'a Jobs> {
    let names = [task.comm.as_str(), group_name(&task.comm)];
    let own = |j: &&Jobs| {
        j.tasks.iter().any(|t| names.contains(&t.as_str()) || names.contains(&group_name(t)))
    };
    let declared = r.jobs.iter().filter(|j| j.declared).find(own);
    declared.or_else(|| r.jobs.iter().find(own))
}

/// Writes which job was latest, or nearest to it, of those declared if there are some; without
/// jobs, whose activation took most longer than at full speed.
fn worst(page: &mut Page<'_>, r: &RunResult, task: &TaskResult) {
    let declared = r.jobs.iter().any(|j| j.declared);
    let meant = r.jobs.iter().filter(|j| j.declared || !declared);
    let latest = meant.filter_map(|j| Some((j, j.latest.as_ref()?)));
    let latest = latest.reduce(|a, b| if b.1.lateness_ms > a.1.lateness_ms { b } else { a });
    if let Some((j, l)) = latest {
        let of = jobs::whose_job(j);
        let of = if of.is_empty() { format!(" of {}", j.name) } else { of };
        let due = format!("job {}{of}, due at {:.2} ms", l.number, l.due_ms);
        let with = j.worst.first().filter(|m| m.number == l.number).and_then(with);
        let text = match l.lateness_ms > 0.0 {
            true => format!(
                "The latest: {due}, {:.2} ms late{}.",
                l.lateness_ms,
                with.unwrap_or_default()
            ),
            false => {
                format!("The nearest to being late: {due}, done {:.2} ms before.", -l.lateness_ms)
            }
        };
        page.paragraph(0, Ink::Plain, &text);
        return;
    }
    let longest = r.latency.iter().filter_map(|l| Some((l, l.longer.as_ref()?.max)));
    let longest = longest.reduce(|a, b| if b.1 > a.1 { b } else { a });
    // Beside work without end naps are of no interest.
    let alone = task.endless && r.latency.len() < 2;
    let noticed =
        |(l, longer): &(&Latency, f64)| !alone && l.activations > 1 && *longer >= NOTICED_MS;
    if let Some((l, longer)) = longest.filter(noticed) {
        let text = format!(
            "The slowest: an activation of {} took {} longer than at full speed ({} activations, half of \
             them took up to {}).",
            l.tasks,
            time(longer),
            l.activations,
            time(l.p50_ms)
        );
        page.paragraph(0, Ink::Plain, &text);
    }
}

/// Writes how long it took from where the task's timer was due to its running, where that is
/// noticed: what comes before its wakeup is no part of what limited it.
fn waking(page: &mut Page<'_>, r: &RunResult, task: &TaskResult) {
    let own = r.latency.iter().find(|l| l.tasks == group_name(&task.comm));
    let Some(l) = own else { return };
    let (Some(late), Some(wakeup)) = (&l.wu_lat.took, &l.wakeup.took) else { return };
    if late.p99 - wakeup.p99 >= NOTICED_MS {
        let text = format!(
            "From where its timer was due to running: {} at 99 %, {} of that from its wakeup (wu_lat, wakeup).",
            time(late.p99),
            time(wakeup.p99)
        );
        page.paragraph(0, Ink::Plain, &text);
    }
}

/// Names the task of its chain with which the job was longest.
fn with(m: &Missed) -> Option<String> {
    m.longest.as_ref().map(|(task, ms)| format!(", longest with {task} ({ms:.2} ms)"))
}

/// The tasks that a page is about.
struct Whose<'a> {
    /// `frame's tasks`, `render`.
    name: String,
    tasks: Vec<&'a TaskResult>,
    /// The tasks' names, in the order of a chain.
    names: Vec<&'a str>,
}

impl<'a> Whose<'a> {
    /// The tasks to show: of a chain of jobs all its tasks, else all of the name of `task`, unless
    /// that was asked for by its own.
    fn of(
        r: &'a RunResult,
        task: &'a TaskResult,
        job: Option<&'a Jobs>,
        view: &View<'_>,
    ) -> Whose<'a> {
        let all = |names: &[&str]| {
            r.tasks.iter().filter(|t| names.contains(&group_name(&t.comm))).collect()
        };
        let own = vec![group_name(&task.comm)];
        match job.filter(|job| job.declared && job.tasks.len() > 1) {
            Some(job) => {
                let names: Vec<&str> = job.tasks.iter().map(|name| group_name(name)).collect();
                Whose { name: format!("{}'s tasks", job.name), tasks: all(&names), names }
            }
            None if view.task == Some(task.comm.as_str()) || task.endless => {
                Whose { name: task.comm.clone(), tasks: vec![task], names: own }
            }
            None => Whose { name: own[0].to_string(), tasks: all(&own), names: own },
        }
    }
}

/// Writes in which states time was lost: of work without end until it had full speed, of all other
/// in the whole run.
fn limits(page: &mut Page<'_>, r: &RunResult, task: &TaskResult, whose: &Whose<'_>, rows: usize) {
    if !r.known.speeds() {
        return;
    }
    if task.endless {
        states(page, "What limited it", &task.lost, rows.min(6));
        return;
    }
    let mut sums: BTreeMap<&'static str, f64> = BTreeMap::new();
    for l in whose.tasks.iter().flat_map(|t| &t.whole.longer) {
        *sums.entry(l.state).or_default() += l.ms;
    }
    let mut all: Vec<Lost> = sums.into_iter().map(|(state, ms)| Lost { state, ms }).collect();
    all.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    let sum = |of: fn(&TaskResult) -> f64| words::one(whose.tasks.iter().map(|t| of(t)).sum());
    let title = format!(
        "What limited {}: {} ms, {} at full speed",
        whose.name,
        sum(|t| t.whole.took_ms()),
        sum(|t| t.whole.took_ms() - t.whole.longer_ms)
    );
    states(page, &title, &all, rows.min(6));
}

/// Writes when the task came to which util and which CPUs, and how often it moved.
fn climb(page: &mut Page<'_>, t: &TaskResult) {
    let said = t.reach.iter().filter_map(|r| {
        let after = words::one(r.after_ms?);
        match r.what {
            Level::Util(u) => Some(format!("util {u} after {after} ms")),
            Level::Capacity(c) if r.after_ms > Some(0.05) => {
                Some(format!("a CPU of capacity {c} after {after} ms"))
            }
            _ => None,
        }
    });
    let said: Vec<String> = said.collect();
    if !said.is_empty() {
        page.paragraph(0, Ink::Plain, &format!("It had {}.", said.join(", ")));
    }
    if let Some(m) = t.migrations.first() {
        let n = t.spent.moves();
        let times = if n == 1 { "once".into() } else { format!("{n} times, first") };
        let text = format!(
            "It moved {times} from {} to {} after {} ms ({}).",
            m.from,
            m.to,
            words::one(m.at_ms),
            words::migration_reason(m.why)
        );
        page.paragraph(0, Ink::Plain, &text);
    }
    page.blank();
}

/// Sums over tasks of one name.
#[derive(Default)]
struct Together {
    n: usize,
    ran: f64,
    waited: f64,
    longer: f64,
    /// `None`: unknown.
    mj: Option<f64>,
}

/// A row for each name of tasks: those that the page is about, then those that took most longer.
fn tasks(page: &mut Page<'_>, r: &RunResult, whose: &Whose<'_>, rows: usize) {
    let mut names: Vec<&str> = Vec::new();
    let mut sums: BTreeMap<&str, Together> = BTreeMap::new();
    for t in &r.tasks {
        let name = group_name(&t.comm);
        let sum = sums.entry(name).or_insert_with(|| {
            names.push(name);
            Together { mj: Some(0.0), ..Together::default() }
        });
        sum.n += 1;
        sum.ran += t.whole.running_ms;
        sum.waited += t.whole.wait_ms;
        sum.longer += t.whole.longer_ms;
        sum.mj = sum.mj.zip(t.whole.energy_mj).map(|(a, b)| a + b);
    }
    if names.len() < 2 {
        return;
    }
    names.sort_by(|a, b| {
        let place =
            |name: &&str| whose.names.iter().position(|own| own == name).unwrap_or(usize::MAX);
        place(a).cmp(&place(b)).then(sums[b].longer.total_cmp(&sums[a].longer))
    });
    let about = " (whole run, ms; took: from wakeup to sleep; longer: than at full speed)";
    page.heading("Tasks", about);
    let mut table =
        Table::new(["", "times", "took p50", "p99", "running", "waiting", "longer", "mJ"]);
    for name in names.iter().take(rows) {
        let t = &sums[name];
        let l = r.latency.iter().find(|l| l.tasks == *name);
        let of = |x: Option<f64>| x.map_or("–".into(), |ms| format!("{ms:.2}"));
        table.row([
            if t.n > 1 { format!("{name} (×{})", t.n) } else { name.to_string() },
            l.map_or("0".into(), |l| l.activations.to_string()),
            of(l.map(|l| l.p50_ms)),
            of(l.map(|l| l.p99_ms)),
            words::one(t.ran),
            words::one(t.waited),
            words::one(t.longer),
            words::energy(t.mj),
        ]);
    }
    page.table(2, table);
    more(page, names.len(), rows, "names", "--full");
    page.blank();
}

fn energy(page: &mut Page<'_>, r: &RunResult, whose: &Whose<'_>) {
    let text = match (r.energy_mj, whose.tasks.iter().map(|t| t.whole.energy_mj).sum()) {
        (None, None) => format!("Energy: unknown, {}.", words::no_power(r)),
        (all, own) => format!(
            "Energy: {} mJ of all CPUs, {} of them while {} ran.",
            words::energy(all),
            words::energy(own),
            whose.name
        ),
    };
    page.paragraph(0, Ink::Plain, &text);
    if let Some(h) = r.heat.iter().max_by(|a, b| a.max_celsius.total_cmp(&b.max_celsius)) {
        let capped: f64 = r.cooling.iter().map(|c| c.capped_ms).sum();
        let capped = match capped > 0.0 {
            true => format!("; frequencies were capped for {} ms", words::one(capped)),
            false => "; nothing was capped".into(),
        };
        let max = words::one(h.max_celsius);
        page.paragraph(0, Ink::Plain, &format!("Heat: {} had up to {max} °C{capped}.", h.zone));
    }
    super::run::work(page, r);
    page.blank();
}

/// The first notes, and how many more there are.
fn notes(page: &mut Page<'_>, notes: &[String], rows: usize) {
    let shown = (rows / 2).clamp(1, 3);
    notes.iter().take(shown).for_each(|note| page.note(note));
    more(page, notes.len(), shown, "notes", "--full");
    page.blank();
}

/// Writes where there is more to read.
pub(super) fn read_on(page: &mut Page<'_>, r: &RunResult, view: &View<'_>) {
    let other = if r.tasks.len() > 1 { "; --task NAME: another task" } else { "" };
    let text = format!("All of it, with plots: --full{other}; as data: --format json or csv.");
    page.paragraph(0, Ink::Dim, &text);
    if !view.why.is_empty() {
        page.command("Why: ", Ink::Dim, view.why.iter().cloned());
    }
}
