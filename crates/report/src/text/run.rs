//! One run: what happened in five seconds of reading, then the plots of the series.
//!
//! ```text
//! jobs         of a workload that declares some: how many were missed, how long they took
//! headline     174 ms to full speed; 96 ms of full-speed work lost
//! where        what was lost, by the state in which it was lost
//! reached      util levels, bigger CPUs, operating points, migrations, energy, waiting
//! plots        util_avg running · util_avg running residency · Sum Time Running on CPU ·
//!              Frequency of each CPU it ran on · Frequency residency
//! ```
//!
//! The x axis counts ms from t0, as all figures do. Lists that have no end in sight are cut,
//! and the text says how many rows there are and where all of them can be had.

use super::figures::told_as;
use super::screen::{self, View};
use super::{Style, jobs};
use crate::page::{Block, Curve, Doc, Ink, Line, Page, Plot, Table, pad};
use crate::words;
use risetime_analysis::{
    Burst, By, EndedBy, Level, Lost, Migration, Percentiles, RunResult, Spent, TaskResult,
    Timeline, Waits,
};
use risetime_kernel::units::{CpuId, Span};
use risetime_model::micros;
use std::collections::BTreeMap;

/// Rows of a list before it is cut.
pub(super) const LIST: usize = 24;
/// Rows of the list of other tasks, and of migrations.
const SHORT_LIST: usize = 10;
/// A curve of util that moves less is no picture.
const FLAT_UTIL: f64 = 8.0;
/// Rows of a plot.
const PLOT: usize = 16;
/// Plots of frequencies; a task may visit hundreds of CPUs.
const FREQ_PLOTS: usize = 8;

/// The page of a run: its first screen; or all: headline, figures and plots of the task that
/// `timeline` follows, the one that leads, and a row for each other task.
pub fn run(result: &RunResult, timeline: &Timeline, view: &View<'_>, style: &Style) -> Doc {
    if !view.full {
        return screen::screen(result, view, style);
    }
    let mut page = Page::new(style);
    title(&mut page, result);
    screen::about(&mut page, view);
    let about = jobs::sentence(result);
    if let Some(about) = &about {
        page.hanging("", Ink::Strong, about);
        page.blank();
        jobs::of_run(&mut page, result);
    }
    match result.leading() {
        None => page.line(Line::new().plain("No task of the workload ever ran.")),
        Some(task) => {
            let names = words::task_names(result);
            headline(&mut page, &names[result.lead], task, true);
            page.blank();
            where_it_went(&mut page, task);
            reached(&mut page, result, task);
            moved(&mut page, task);
            spent(&mut page, result, task);
            heat(&mut page, result);
            other_tasks(&mut page, result, &names);
            if about.is_none() {
                jobs::of_run(&mut page, result);
            }
            latency(&mut page, result);
            waits(&mut page, result);
            late(&mut page, result);
            work(&mut page, result);
            plots(&mut page, result, task, timeline);
        }
    }
    page.cautions(&result.cautions);
    notes(&mut page, &result.notes);
    page.finish()
}

/// A burst in the list of all of them.
pub fn burst_line(comm: &str, b: &Burst) -> String {
    let t0 = words::one(b.t0_ms);
    let full = words::to_full_speed(b);
    let full = full.map_or(String::new(), |ms| format!("; full speed after {}", words::one(ms)));
    let took = took(b);
    let line = format!("{t0:>10} ms  {comm}: {}", took.trim_end_matches('.'));
    match line.chars().count() + full.chars().count() {
        ..=80 => line + &full,
        _ => format!("{line}\n{:15}{}", "", full.trim_start_matches("; ")),
    }
}

/// A change of CPU there.
pub fn migration_line(comm: &str, m: &Migration) -> String {
    let (at, why) = (words::one(m.at_ms), words::migration_reason(m.why));
    format!("{at:>10} ms  {comm}: {} → {}  {why}", m.from, m.to)
}

pub(super) fn title(page: &mut Page<'_>, r: &RunResult) {
    // A trace of no experiment has no policy, and is called by its machine.
    let (name, parts) = match r.workload.is_empty() {
        true => (&r.platform, [r.policy.as_str(), ""]),
        false => (&r.workload, [r.platform.as_str(), r.policy.as_str()]),
    };
    let parts = parts.into_iter().filter(|part| r.known.experiment || !part.is_empty());
    let parts: String = parts.map(|part| format!(" · {part}")).collect();
    let rest = format!("{parts} · {} · {} ms", words::backend(r), words::one(r.end_ms));
    page.title(name.as_str(), rest);
    if r.phase > Span(0) {
        page.line(Line::new().ink(Ink::Dim, format!("start phase {} µs", micros(r.phase))));
    }
}

/// The first sentence. Of work without end: when the burst had full speed, and what it lost until then; of finite work: how
/// long the burst took, and how long the same work takes at full speed.
pub(crate) fn sentence(t: &TaskResult) -> String {
    match &t.burst {
        None => format!("{} never became runnable.", t.comm),
        Some(b) if t.endless && b.debt_ms.is_finite() => climbed(b),
        Some(b) => took(b),
    }
}

/// The sentence on how a burst of work without end came to full speed.
fn climbed(b: &Burst) -> String {
    let (lost, span) = (words::one(b.debt_ms), words::one(b.t1_ms - b.t0_ms));
    let without = |end: &str| {
        let (took, work) = (words::one(b.took_ms), words::one(b.took_ms - b.longer_ms));
        format!("Never at full speed: in {took} ms, {end}, it did what takes {work} ms there.")
    };
    match b.ended_by {
        EndedBy::FullSpeed => {
            format!("{span} ms to full speed; {lost} ms of full-speed work lost on the way.")
        }
        EndedBy::Sleep => without("until it slept"),
        EndedBy::Exit => without("until it was gone"),
        EndedBy::RunEnd => without("to the run's end"),
    }
}

/// The sentence on how long a burst of finite work took.
fn took(b: &Burst) -> String {
    let in_us = |ms: f64| format!("{:.0}", 1000.0 * ms);
    let (own, unit): (fn(f64) -> String, _) = match b.took_ms < 1.0 {
        true => (in_us, "µs"),
        false => (words::one, "ms"),
    };
    let [took, work, longer] = [b.took_ms, b.took_ms - b.longer_ms, b.longer_ms].map(own);
    if !b.longer_ms.is_finite() {
        return match b.ended_by {
            EndedBy::RunEnd => format!("cut off by the run's end after {took} {unit}."),
            _ => format!("took {took} {unit}."),
        };
    }
    // A burst that has had full speed ended with the run, too, if it did not end before.
    match b.ended_by {
        EndedBy::RunEnd => {
            format!(
                "cut off by the run's end after {took} {unit}, {work} at full speed: {longer} {unit} longer so far."
            )
        }
        _ => format!("took {took} {unit}, {work} at full speed: {longer} {unit} longer."),
    }
}

/// Writes the headline of the task's burst; `first`: nothing that matters more stands before it.
pub(super) fn headline(page: &mut Page<'_>, name: &str, t: &TaskResult, first: bool) {
    let ink = if first { Ink::Strong } else { Ink::Plain };
    let which = t
        .burst
        .filter(|_| t.bursts > 1)
        .map(|b| format!("longest of {} bursts, from {} ms on", t.bursts, words::one(b.t0_ms)));
    match &which {
        Some(which) if !t.endless => {
            page.hanging("", ink, &format!("{name}: the {which}, {}", sentence(t)));
        }
        _ => page.hanging("", ink, &format!("{name}: {}", sentence(t))),
    }
    if !t.policies.is_empty() {
        page.paragraph(0, Ink::Dim, &format!("Under {}.", policies(t)));
    }
    let Some(b) = t.burst.filter(|_| t.endless) else { return };
    if (b.debt_ms - b.debt_capped_ms).abs() >= 0.05 {
        let text = format!(
            "Against the fastest speed that it may have {}{} ms of work are lost.",
            words::bound(&b),
            words::one(b.debt_capped_ms)
        );
        page.paragraph(0, Ink::Plain, &text);
    }
    if let Some(which) = which {
        page.paragraph(0, Ink::Dim, &format!("The {which}."));
    }
}

/// Draws what was lost by state, as bars; nothing if nothing was lost.
pub(super) fn where_it_went(page: &mut Page<'_>, t: &TaskResult) {
    states(page, "Where it went", if t.endless { &t.lost } else { &t.spent.longer }, LIST);
}

/// Times by state, as bars: the first `most`, and the rest of them together.
pub(super) fn states(page: &mut Page<'_>, title: &str, all: &[Lost], most: usize) {
    let total: f64 = all.iter().map(|l| l.ms).sum();
    let shown: Vec<&Lost> = all.iter().filter(|l| l.ms >= 0.05).collect();
    let (first, rest) = shown.split_at(if shown.len() > most { most - 1 } else { shown.len() });
    let others = (rest.len() > 1).then(|| {
        let ms: f64 = rest.iter().map(|l| l.ms).sum();
        (format!("{} others", rest.len()), ms)
    });
    let rows: Vec<(String, f64, String)> = first
        .iter()
        .map(|l| (words::lost_state(l.state), l.ms))
        .chain(others)
        .map(|(name, ms)| {
            let share = 100.0 * ms / total;
            (name, ms, format!("{} ms {share:>3.0} %", words::one(ms)))
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    let wide = rows.iter().map(|r| r.2.chars().count()).max().unwrap_or(0);
    let rows: Vec<_> = rows.into_iter().map(|(l, v, t)| (l, v, format!("{t:>wide$}"))).collect();
    page.heading(title, "");
    page.bars(2, Ink::Bad, &rows);
    page.blank();
}
fn reached(page: &mut Page<'_>, r: &RunResult, t: &TaskResult) {
    if t.reach.is_empty() {
        return;
    }
    page.heading("Reached", " (ms after it became busy)");
    let mut groups: BTreeMap<(u8, CpuId), Vec<(String, String)>> = BTreeMap::new();
    for reach in &t.reach {
        let (group, level) = match reach.what {
            Level::Util(u) => ((0, CpuId(0)), u.to_string()),
            Level::Capacity(c) => ((1, CpuId(0)), c.to_string()),
            Level::Freq { cpu, freq } => ((2, cpu), words::mhz(freq)),
        };
        let after = words::one_or(reach.after_ms, "never");
        groups.entry(group).or_default().push((level, after));
    }
    // What was never reached at all is not worth a row, unless nothing was.
    let never = |levels: &[(String, String)]| levels.iter().all(|(_, after)| after == "never");
    if !groups.values().all(|levels| never(levels)) {
        groups.retain(|_, levels| !never(levels));
    }
    let wide = groups.keys().map(|(_, cpu)| told_as(r, *cpu).len()).fold(5, usize::max);
    for ((kind, cpu), levels) in groups {
        let head = match kind {
            0 => "  util      ".to_string(),
            1 => "  capacity  ".to_string(),
            _ => format!("  {} MHz ", pad(&told_as(r, cpu), wide, false)),
        };
        page.hanging(&head, Ink::Plain, &stretches(&levels).join(", "));
    }
    page.blank();
}

/// `600: 0.0, 972–1332: 46.0, 1704–2064: never`: levels reached together stand together.
fn stretches(levels: &[(String, String)]) -> Vec<String> {
    let together = levels.chunk_by(|a, b| a.1 == b.1);
    let text = |group: &[(String, String)]| match group {
        [] => String::new(),
        [(level, after)] => format!("{level}:\u{a0}{after}"),
        [(first, after), .., (last, _)] => format!("{first}–{last}:\u{a0}{after}"),
    };
    together.map(text).collect()
}

fn moved(page: &mut Page<'_>, t: &TaskResult) {
    if t.migrations.is_empty() {
        return;
    }
    page.heading("Moved", "");
    for m in t.migrations.iter().take(SHORT_LIST) {
        page.line(Line::new().plain(format!(
            "  {:>8} ms  {} → {}  {}",
            words::one(m.at_ms),
            m.from,
            m.to,
            words::migration_reason(m.why)
        )));
    }
    more(
        page,
        t.spent.moves() as usize,
        SHORT_LIST.min(t.migrations.len()),
        "migrations",
        "--bursts --full",
    );
    page.blank();
}

fn spent(page: &mut Page<'_>, r: &RunResult, t: &TaskResult) {
    page.heading("Spent", "");
    let mut rows = Vec::new();
    if let Some(ms) = t.perf_10_90_ms {
        rows.push(format!("{} ms from 10 to 90 % of its speed", words::one(ms)));
    }
    let known = t.whole.energy_mj.or(r.energy_mj).is_some();
    let mj = |mj: Option<f64>| match (mj, known) {
        (Some(mj), _) => format!(", {} mJ", words::one(mj)),
        (None, true) => ", unknown energy".into(),
        (None, false) => String::new(),
    };
    let spent = |when: &str, s: &Spent| {
        let (running, waiting) = (words::one(s.running_ms), words::one(s.wait_ms));
        format!("{when}: {running} ms running, {waiting} ms waiting for a CPU{}", mj(s.energy_mj))
    };
    if t.bursts > 1 {
        rows.push(spent("this burst", &t.spent));
    }
    rows.push(spent("the whole run", &t.whole));
    rows.push(match known {
        true => format!("all CPUs, the whole run{}", mj(r.energy_mj).replacen(',', ":", 1)),
        false => format!("unknown energy: {}", words::no_power(r)),
    });
    for row in rows {
        page.hanging("  ", Ink::Plain, &row);
    }
    page.blank();
}

fn other_tasks(page: &mut Page<'_>, r: &RunResult, names: &[String]) {
    if r.tasks.len() < 2 {
        return;
    }
    page.heading("Other tasks", "");
    let others = || r.tasks.iter().zip(names).enumerate().filter(|(i, _)| *i != r.lead);
    let shown = || others().map(|(_, other)| other).take(SHORT_LIST);
    let mut table = Table::new(["task", "full speed", "lost ms", "longer ms", "wait ms", "mJ"]);
    for (t, name) in shown() {
        let burst = t.burst.as_ref();
        table.row([
            name.clone(),
            words::one_or(burst.filter(|_| t.endless).and_then(words::to_full_speed), "–"),
            burst
                .filter(|_| t.endless)
                .map_or("–".into(), |b| words::bound(b).to_string() + &words::one(b.debt_ms)),
            words::one(t.whole.longer_ms),
            words::one(t.whole.wait_ms),
            words::energy(t.whole.energy_mj),
        ]);
    }
    page.table(2, table);
    for (t, name) in shown().filter(|(t, _)| !t.policies.is_empty()) {
        page.hanging("  ", Ink::Dim, &format!("{name}: {}", policies(t)));
    }
    more(page, r.tasks.len() - 1, SHORT_LIST, "tasks", ALL);
    page.blank();
}

/// Names the task's policies.
fn policies(t: &TaskResult) -> String {
    t.policies.iter().map(|p| p.to_string()).collect::<Vec<_>>().join(", ")
}

/// Number of kinds of tasks from which on there is a table; with fewer, the figures above say how
/// long things take.
const KINDS: usize = 3;

/// Writes how long activations took, where there are several kinds of tasks.
fn latency(page: &mut Page<'_>, r: &RunResult) {
    if r.latency.len() < KINDS {
        return;
    }
    page.heading("From wakeup to sleep", " (ms, running and waiting for a CPU)");
    let mut table = Table::new(["tasks", "times", "p50", "p90", "p99", "p99.9", "max"]);
    for l in r.latency.iter().take(LIST) {
        let ms = |ms: f64| format!("{ms:.2}");
        // The class says what these times are to be measured by.
        let policy = l.policy.map_or(String::new(), |p| format!(" ({p})"));
        table.row([
            format!("{}{policy}", l.tasks),
            l.activations.to_string(),
            ms(l.p50_ms),
            ms(l.p90_ms),
            ms(l.p99_ms),
            ms(l.p99_9_ms),
            ms(l.max_ms),
        ]);
    }
    page.table(2, table);
    more(page, r.latency.len(), LIST, "kinds of tasks", ALL);
    page.blank();
}

/// Writes how hot each zone became, and what cooling took; nothing where no temperature was told.
fn heat(page: &mut Page<'_>, r: &RunResult) {
    if r.heat.is_empty() {
        return;
    }
    page.heading("Heat", "");
    for h in &r.heat {
        let [start, max, end] = [h.start_celsius, h.max_celsius, h.end_celsius].map(words::one);
        let at = words::one(h.max_at_ms);
        let row = format!("{}: from {start} to {end} °C, at most {max} °C, at {at} ms", h.zone);
        page.hanging("  ", Ink::Plain, &row);
    }
    for c in &r.cooling {
        let row = match c.lowest_max {
            None => format!("policy{}: never capped", c.policy.0),
            Some(lowest) => format!(
                "policy{}: capped for {} ms, at {} MHz at the lowest, {} changes",
                c.policy.0,
                words::one(c.capped_ms),
                words::mhz(lowest),
                c.changes
            ),
        };
        page.hanging("  ", Ink::Plain, &row);
    }
    page.blank();
}

/// Writes how long wakeups waited for a CPU, where there are several kinds of tasks.
fn waits(page: &mut Page<'_>, r: &RunResult) {
    let named = r.latency.iter().map(|l| (l.tasks.clone(), &l.wakeup)).take(LIST);
    let by = r.waits.iter().map(|w| {
        let name = match (w.by, w.name.as_str()) {
            (By::Group, "") => "in no group".into(),
            (By::Group, path) => format!("in {path}"),
            (By::Capacity, capacity) => format!("on CPUs of {capacity}"),
            (By::Policy, name) => name.to_string(),
        };
        (name, &w.wakeup)
    });
    let rows: Vec<_> = named.chain(by).filter(|(_, w)| w.took.is_some()).collect();
    if r.latency.len() < KINDS && r.waits.is_empty() {
        return;
    }
    table_of_waits(page, ["From wakeup to running", " (waiting for a CPU)"], rows);
}

/// Writes how long real-time and deadline tasks waited from when they were due, where that is
/// longer than from their wakeup.
fn late(page: &mut Page<'_>, r: &RunResult) {
    let max = |w: &Waits| w.took.map_or(0.0, |p| p.max);
    let strict = r.latency.iter().filter(|l| l.policy.is_some_and(|p| !p.is_fair()));
    let rows: Vec<_> = strict
        .filter(|l| max(&l.wu_lat) > max(&l.wakeup))
        .map(|l| (l.tasks.clone(), &l.wu_lat))
        .take(LIST)
        .collect();
    if !rows.is_empty() {
        let title =
            ["From timer to running", " (wu_lat: the way out of idle and timer slack, too)"];
        table_of_waits(page, title, rows);
    }
}

fn table_of_waits(page: &mut Page<'_>, [title, more]: [&str; 2], rows: Vec<(String, &Waits)>) {
    page.heading(title, more);
    let mut table = Table::new(["", "times", "p50", "p90", "p99", "p99.9", "max"]);
    for (name, waits) in rows {
        let of = |figure: fn(&Percentiles) -> f64| {
            waits.took.as_ref().map_or(String::new(), |p| time(figure(p)))
        };
        table.row([
            name,
            waits.n.to_string(),
            of(|p| p.p50),
            of(|p| p.p90),
            of(|p| p.p99),
            of(|p| p.p99_9),
            of(|p| p.max),
        ]);
    }
    page.table(2, table);
    page.blank();
}

/// A short time in the unit that suits it.
pub(super) fn time(ms: f64) -> String {
    match ms < 0.9995 {
        true => format!("{:.0} µs", 1000.0 * ms),
        false => format!("{ms:.2} ms"),
    }
}

/// Writes how far tasks that end have come, and what work was done.
pub(super) fn work(page: &mut Page<'_>, r: &RunResult) {
    let (gone, all) = r.exited;
    if gone == 0 {
        return;
    }
    let done = match r.work_ms.is_finite() {
        true => format!(", {} ms of full-speed work done", words::one(r.work_ms)),
        false => String::new(),
    };
    let text = match r.makespan_ms {
        Some(ms) if all == 1 => format!("Its task has exited after {} ms{done}.", words::one(ms)),
        Some(ms) => format!("All {all} tasks have exited after {} ms{done}.", words::one(ms)),
        None => format!("{gone} of {all} tasks have exited by the run's end{done}."),
    };
    page.paragraph(0, Ink::Plain, &text);
    page.blank();
}

/// Options that show a list that a page has not room for.
pub(super) const ALL: &str = "--format json or csv";

/// Says what a cut list left out, and with what option it is all there.
pub(super) fn more(page: &mut Page<'_>, all: usize, shown: usize, what: &str, with: &str) {
    if all > shown {
        let text = format!("… {} of {all} {what} more; all of them: {with}", all - shown);
        page.paragraph(2, Ink::Dim, &text);
    }
}

fn notes(page: &mut Page<'_>, notes: &[String]) {
    if notes.is_empty() {
        return;
    }
    page.blank();
    for note in notes {
        page.note(note);
    }
}

fn plots(page: &mut Page<'_>, r: &RunResult, t: &TaskResult, timeline: &Timeline) {
    let Some(b) = &t.burst else { return };
    let window = window(t);
    let runs = running_intervals(timeline, b.t0_ms);
    util_plot(page, t, timeline, &runs, window, b.t0_ms);
    util_bars(page, t);
    cpu_bars(page, r, t);
    let plots: Vec<Plot> = timeline
        .freq
        .iter()
        .filter(|(cpu, _)| {
            let told = r.cpus.iter().find(|c| c.cpu == *cpu).map_or(*cpu, |c| c.told);
            t.spent.running.iter().any(|r| r.cpu == told && r.ms > 0.0)
        })
        .filter_map(|(cpu, curve)| {
            let on: Vec<_> = runs.iter().filter(|r| r.2 == *cpu).map(|r| (r.0, r.1)).collect();
            let points: Vec<(f64, f64)> =
                curve.iter().map(|(at, f)| (at - b.t0_ms, f.0 as f64 / 1000.0)).collect();
            freq_plot(t, *cpu, held(&points, &on), window)
        })
        .collect();
    let all = plots.len();
    for plot in plots.into_iter().take(FREQ_PLOTS) {
        page.blank();
        page.put(Block::Plot(plot));
    }
    more(page, all, FREQ_PLOTS, "plots of a CPU's frequency", "--perfetto FILE");
    freq_bars(page, r, t);
}

/// The time that the plots show, in ms from t0: until a little after everything that is reported
/// has happened.
pub(crate) fn window(t: &TaskResult) -> (f64, f64) {
    let Some(b) = &t.burst else { return (0.0, 1.0) };
    let end = (b.end_ms - b.t0_ms).max(1.0);
    let reached = t.reach.iter().filter_map(|r| r.after_ms).filter(|x| x.is_finite());
    let last = reached.fold(b.t1_ms - b.t0_ms, f64::max);
    let right = (last * 1.2 + 1.0).min(end);
    (0.0, right)
}

/// The stretches in which the task ran: (start, end, CPU) in ms from t0.
pub(crate) fn running_intervals(timeline: &Timeline, t0: f64) -> Vec<(f64, f64, CpuId)> {
    let cpu = &timeline.cpu;
    let last = [timeline.util.last().map(|p| p.0), timeline.speed.last().map(|p| p.0)];
    let end = last.into_iter().flatten().fold(f64::MIN, f64::max);
    cpu.iter()
        .enumerate()
        .filter_map(|(i, &(from, on))| {
            let to = cpu.get(i + 1).map_or(end.max(from), |next| next.0);
            Some((from - t0, to - t0, on?))
        })
        .collect()
}

/// A curve that holds each value until the next, cut to the given stretches; stretches less
/// than 0.1 ms apart are joined.
pub(super) fn held(points: &[(f64, f64)], stretches: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
    let mut joined: Vec<(f64, f64)> = Vec::new();
    for &(from, to) in stretches {
        match joined.last_mut() {
            Some(last) if from - last.1 < 0.1 => last.1 = to,
            _ => joined.push((from, to)),
        }
    }
    let mut parts = Vec::new();
    for (from, to) in joined {
        let first = points.partition_point(|p| p.0 <= from);
        let Some(mut value) = first.checked_sub(1).map(|i| points[i].1) else {
            continue;
        };
        let mut part = vec![(from, value)];
        for &(at, next) in points[first..].iter().take_while(|p| p.0 < to) {
            part.extend([(at, value), (at, next)]);
            value = next;
        }
        part.push((to, value));
        parts.push(part);
    }
    parts
}

fn util_plot(
    page: &mut Page<'_>,
    t: &TaskResult,
    timeline: &Timeline,
    runs: &[(f64, f64, CpuId)],
    x: (f64, f64),
    t0: f64,
) {
    let points: Vec<(f64, f64)> =
        timeline.util.iter().map(|&(at, u)| (at - t0, u as f64)).collect();
    let parts: Vec<Vec<(f64, f64)>> = runs
        .iter()
        .map(|&(from, to, _)| {
            let first = points.partition_point(|p| p.0 < from);
            let end = points.partition_point(|p| p.0 <= to);
            let before = first.checked_sub(1).map(|i| (from, points[i].1));
            before.into_iter().chain(points[first..end.max(first)].iter().copied()).collect()
        })
        .collect();
    if parts.iter().all(Vec::is_empty) {
        return;
    }
    let seen = parts.iter().flatten().filter(|p| x.0 <= p.0 && p.0 <= x.1).map(|p| p.1);
    let (least, top) = seen.fold((f64::MAX, 1.0), |(a, b), u| (u.min(a), u.max(b)));
    if top - least < FLAT_UTIL {
        return;
    }
    let marks = [1.0, 0.75, 0.5, 0.25, 0.0].map(|f| (f * top, format!("{:.0}", f * top)));
    page.blank();
    page.put(Block::Plot(Plot {
        title: format!("{} util_avg running", t.comm),
        x,
        y: (0.0, top),
        rows: PLOT,
        y_marks: marks.to_vec(),
        x_unit: "ms".into(),
        curves: vec![Curve { parts, ink: Ink::Curve }],
        shade: None,
        lanes: vec![],
    }));
}

fn util_bars(page: &mut Page<'_>, t: &TaskResult) {
    if t.util_residency.is_empty() {
        return;
    }
    page.rule(&format!("{} util_avg running residency (ms)", t.comm));
    let rows: Vec<_> = t
        .util_residency
        .iter()
        .take(LIST)
        .map(|u| (u.util.to_string(), u.ms, words::one(u.ms)))
        .collect();
    page.bars(0, Ink::Curve, &rows);
    more(page, t.util_residency.len(), LIST, "util values", ALL);
}

fn cpu_bars(page: &mut Page<'_>, result: &RunResult, t: &TaskResult) {
    let mut sums: BTreeMap<CpuId, f64> = BTreeMap::new();
    for r in &t.spent.running {
        *sums.entry(r.cpu).or_default() += r.ms;
    }
    if sums.is_empty() {
        return;
    }
    page.rule(&format!("{} Sum Time Running on CPU (ms)", t.comm));
    let rows: Vec<_> =
        sums.iter().map(|(cpu, ms)| (told_as(result, *cpu), *ms, words::one(*ms))).collect();
    page.bars(0, Ink::Curve, &rows);
}

/// `None`: at one frequency all the time, which the bars below say.
fn freq_plot(
    t: &TaskResult,
    cpu: CpuId,
    parts: Vec<Vec<(f64, f64)>>,
    x: (f64, f64),
) -> Option<Plot> {
    let inside: Vec<f64> = parts
        .iter()
        .filter(|p| p.last().is_some_and(|l| l.0 >= x.0) && p.first().is_some_and(|f| f.0 <= x.1))
        .flatten()
        .filter(|p| x.0 <= p.0 && p.0 <= x.1)
        .map(|p| p.1)
        .collect();
    let high = inside.iter().copied().reduce(f64::max)?;
    let low = inside.iter().copied().fold(high, f64::min);
    if high - low < 1.0 {
        return None;
    }
    let mut used = inside;
    used.sort_by(|a, b| b.total_cmp(a));
    used.dedup();
    Some(Plot {
        title: format!("{} {cpu} Frequency (MHz)", t.comm),
        x,
        y: (low, high),
        rows: PLOT,
        y_marks: used.iter().map(|m| (*m, format!("{m:.0}"))).collect(),
        x_unit: "ms".into(),
        curves: vec![Curve { parts, ink: Ink::Curve }],
        shade: None,
        lanes: vec![],
    })
}

fn freq_bars(page: &mut Page<'_>, result: &RunResult, t: &TaskResult) {
    let mut cpus: Vec<CpuId> = t.spent.running.iter().map(|r| r.cpu).collect();
    cpus.dedup();
    for cpu in cpus.into_iter().filter(|_| result.known.frequencies) {
        page.rule(&format!("{} {} Frequency residency (ms)", t.comm, told_as(result, cpu)));
        let at: Vec<_> = t.spent.running.iter().filter(|r| r.cpu == cpu).collect();
        let rows: Vec<_> =
            at.iter().take(LIST).map(|r| (words::mhz(r.freq), r.ms, words::one(r.ms))).collect();
        page.bars(0, Ink::Curve, &rows);
        more(page, at.len(), LIST, "frequencies", ALL);
    }
}
