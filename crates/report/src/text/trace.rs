//! A trace that somebody took: what happened in it, on a screen of at most 40 lines.
//!
//! ```text
//! whence       file, format, length; clock, what was lost, what speeds mean, what cannot be said
//! tasks        threads by CPU time, with their waits; the rest summed up
//! limits       what all threads' time went to while they were awake
//! jobs         frames and slices that the trace marks; wakeups with a period
//! CPUs         busy, frequency, idle
//! ```
//!
//! With a task: its own waits, by cause and by who had the CPU, its jobs, its burst, where it ran.

use super::Style;
use super::run::{more, time};
use super::screen::fitting;
use crate::Taken;
use crate::page::{Doc, Ink, Line, Page, Table};
use crate::words;
use risetime_analysis::absent::unknown;
use risetime_analysis::known::Need;
use risetime_analysis::survey::{Jobs, Parts, SURE, Speeds, Thread, Whose};
use risetime_analysis::{CpuResult, Percentiles, TaskResult};
use risetime_kernel::units::{CpuId, KHz};
use risetime_trace::Clock;
use std::collections::BTreeMap;

/// Choices by which a trace is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceView<'a> {
    /// Threads that were asked for, by their places in the survey; `None`: nobody asked for any.
    pub threads: Option<&'a [usize]>,
    /// All there is, not one screen.
    pub full: bool,
    /// The command that says why it is so, word by word; empty: there is none.
    pub why: &'a [String],
}

/// Rows of a list of `--full`.
const ALL: usize = 200;

/// The page of a trace.
pub fn trace(taken: &Taken<'_>, view: &TraceView<'_>, style: &Style) -> Doc {
    match view.full {
        true => compose(taken, view, style, ALL),
        false => fitting(|rows| compose(taken, view, style, rows)),
    }
}

fn compose(taken: &Taken<'_>, view: &TraceView<'_>, style: &Style, rows: usize) -> Doc {
    let mut page = Page::new(style);
    head(&mut page, taken, rows);
    let all = &taken.surveyed.threads;
    match view.threads {
        Some([one]) if *one < all.len() => alone(&mut page, taken, &all[*one], rows),
        Some(several) => {
            let chosen: Vec<&Thread> = several.iter().filter_map(|place| all.get(*place)).collect();
            threads(&mut page, taken, &chosen, rows);
            limits(&mut page, "What these lost their time to", &sum(&chosen), rows);
        }
        None => {
            threads(&mut page, taken, &all.iter().collect::<Vec<_>>(), rows);
            let title = "What all of them lost their time to";
            limits(&mut page, title, &taken.surveyed.all, rows);
            jobs(&mut page, taken, rows);
            cpus(&mut page, taken, rows);
        }
    }
    energy(&mut page, taken);
    read_on(&mut page, taken, view);
    page.finish()
}

/// Writes where the trace is from, and what cannot be said of it.
pub(super) fn head(page: &mut Page<'_>, taken: &Taken<'_>, rows: usize) {
    let run = taken.run;
    let machine = match run.known.machine {
        true => format!(" · {}", run.platform),
        false => format!(" · {} CPUs", run.cpus.len()),
    };
    let seconds = words::digits3(taken.surveyed.length_ms / 1000.0);
    page.title(taken.file, format!(" · {}{machine} · {seconds} s", taken.format));
    let clock = match taken.clock {
        Clock::Local => "the clock `local`".into(),
        other => format!("the clock `{}`", other.as_str()),
    };
    let release = match taken.release {
        "" => String::new(),
        release => format!("Linux {release}; "),
    };
    let begin = format!("{:.6}", taken.clock_s(0));
    let events = taken.surveyed.events;
    let text = format!("{release}{clock}; time 0 is {begin} s of it; {events} events.");
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    page.paragraph(0, Ink::Dim, &(first + letters.as_str()));
    for note in taken.notes.iter().take(rows.clamp(1, 3)) {
        page.hanging("", Ink::Warn, &sentence(note));
    }
    more(page, taken.notes.len(), rows.clamp(1, 3), "notes", "--full");
    if taken.notes.is_empty() {
        page.paragraph(0, Ink::Dim, "The trace tells of nothing that was lost.");
    }
    page.paragraph(0, Ink::Plain, speeds(taken.surveyed.speeds));
    if taken.surveyed.shared_cores {
        let text = "Its cores have several threads, which are counted as if they took nothing from each other: no trace \
                    tells what they take.";
        page.paragraph(0, Ink::Plain, text);
    }
    unsaid(page, taken);
    page.blank();
}

/// A note as a sentence.
fn sentence(note: &str) -> String {
    let mut letters = note.trim_end_matches('.').chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

fn speeds(speeds: Speeds) -> &'static str {
    match speeds {
        Speeds::Described => "Speeds are shares of the biggest CPU's highest frequency.",
        Speeds::Capacities => {
            "Speeds are relative: by the capacities that the trace tells, and each CPU's highest frequency in it."
        }
        Speeds::Frequencies => {
            "Speeds are relative: shares of each CPU's highest frequency in the trace. How big the CPUs are it does \
             not tell; --platform does."
        }
        Speeds::Unknown => {
            "How fast CPUs were is not known: the trace has no cpu_frequency events; record power:cpu_frequency."
        }
    }
}

/// Writes which figures there are not, and why.
fn unsaid(page: &mut Page<'_>, taken: &Taken<'_>) {
    let run = taken.run;
    let mut all: Vec<String> = Vec::new();
    if let Some(why) = run.lacks(Need::Powers) {
        all.push(format!("energy ({why})"));
    }
    if let Some(why) = run.lacks(Need::Idle) {
        all.push(format!("idle states ({why})"));
    }
    if run.lacks(Need::Speeds).is_some() && run.known.frequencies {
        all.push("time to full speed (without --platform)".into());
    }
    if !taken.surveyed.threads.is_empty() && taken.surveyed.threads.iter().all(|t| t.wakeups == 0) {
        all.push("times from wakeups (the trace has no sched_wakeup events)".into());
    }
    if !all.is_empty() {
        page.paragraph(0, Ink::Dim, &format!("Not said: {}.", all.join("; ")));
    }
}

/// Sums over threads.
fn sum(threads: &[&Thread]) -> Parts {
    let mut all = Parts::default();
    threads.iter().for_each(|thread| all.absorb(&thread.parts));
    all
}

fn wait(took: Option<&Percentiles>, of: fn(&Percentiles) -> f64) -> String {
    took.map_or("–".into(), |took| time(of(took)))
}

/// A time in ms, where the heading says so.
fn short(took: Option<&Percentiles>, of: fn(&Percentiles) -> f64) -> String {
    took.map_or(NOTHING.into(), |took| words::digits3(of(took)))
}

/// Writes a row for each thread, the rest summed up.
fn threads(page: &mut Page<'_>, taken: &Taken<'_>, all: &[&Thread], rows: usize) {
    if all.is_empty() {
        page.line(Line::new().plain("No task was seen to run."));
        return page.blank();
    }
    let cut = if all.len() > rows + 1 { rows } else { all.len() };
    let (shown, rest) = all.split_at(cut);
    let about = " (ms; p50, p95, p99: from wakeup to running)";
    page.heading("Tasks by CPU time", about);
    let mut table = Table::new(["", "running", "% CPU", "waiting", "wakeups", "p50", "p95", "p99"]);
    let length = taken.surveyed.length_ms;
    let percent = |ms: f64| words::one(if length > 0.0 { 100.0 * ms / length } else { 0.0 });
    for thread in shown {
        let (running, waited) = (thread.parts.running_ms(), thread.waited.as_ref());
        table.row([
            taken.name(thread.task, &thread.comm),
            words::one(running),
            percent(running),
            words::one(thread.parts.waiting_ms()),
            thread.wakeups.to_string(),
            short(waited, |w| w.p50),
            short(waited, |w| w.p95),
            short(waited, |w| w.p99),
        ]);
    }
    if !rest.is_empty() {
        let parts = sum(rest);
        let count = |of: fn(&Thread) -> u64| rest.iter().map(|t| of(t)).sum::<u64>().to_string();
        table.row([
            format!("{} others", rest.len()),
            words::one(parts.running_ms()),
            percent(parts.running_ms()),
            words::one(parts.waiting_ms()),
            count(|t| t.wakeups),
            String::new(),
            String::new(),
            String::new(),
        ]);
    }
    page.table(2, table);
    page.blank();
}

/// Writes what time went to while tasks were awake, as bars.
pub(super) fn limits(page: &mut Page<'_>, title: &str, parts: &Parts, rows: usize) {
    let took = parts.took_ms();
    let causes: Vec<_> = parts.causes().into_iter().filter(|(_, ms)| *ms >= 0.05).collect();
    if causes.is_empty() {
        return;
    }
    let row = |(label, ms): (&str, f64)| {
        let share = 100.0 * ms / took;
        (label.to_string(), ms, format!("{} ms {share:>3.0} %", words::one(ms)))
    };
    let shown = causes.iter().take(rows.max(3)).map(|(part, ms)| (part.about().label, *ms));
    let rows: Vec<_> = shown.map(row).collect();
    let wide = rows.iter().map(|row| row.2.chars().count()).max().unwrap_or(0);
    let rows: Vec<_> = rows.into_iter().map(|(l, v, t)| (l, v, format!("{t:>wide$}"))).collect();
    page.heading(format!("{title}: {} ms awake", words::one(took)), "");
    page.bars(2, Ink::Bad, &rows);
    page.blank();
}

/// Words on how a period was found, and how sure it is.
fn sure(jobs: &Jobs) -> String {
    let near = format!("{:.0} %", jobs.near);
    match (jobs.whose, jobs.near >= SURE) {
        (Whose::Given, _) => format!("given; {near} fit"),
        (Whose::Found, true) => format!("sure, {near}"),
        (Whose::Found, false) => format!("likely, {near}"),
    }
}

/// Writes the jobs that the trace marks, and those that have a period.
fn jobs(page: &mut Page<'_>, taken: &Taken<'_>, rows: usize) {
    let mut table = Table::new(["", "jobs", "late", "p50", "p95", "p99", "period", "sure"]);
    let many = rows.clamp(2, 4);
    for marked in taken.marked.iter().take(if rows == ALL { ALL } else { many }) {
        let janky = marked.janky.filter(|n| *n > 0).map(|n| format!(" ({n} janky)"));
        table.row([
            format!("{}{}", marked.name, janky.unwrap_or_default()),
            marked.n.to_string(),
            marked.late.map_or("–".into(), |late| late.to_string()),
            short(marked.took.as_ref(), |t| t.p50),
            short(marked.took.as_ref(), |t| t.p95),
            short(marked.took.as_ref(), |t| t.p99),
            "–".into(),
            marked.marked.as_str().into(),
        ]);
    }
    let periodic = taken.surveyed.threads.iter().filter_map(|t| Some((t, t.jobs.as_ref()?)));
    let periodic: Vec<_> = periodic.collect();
    for (thread, jobs) in periodic.iter().take(many) {
        table.row(job_row(taken.name(thread.task, &thread.comm), jobs));
    }
    if table.rows.is_empty() {
        return;
    }
    page.heading("Jobs", " (ms; marked, or wakeups with a period; late: took longer than it)");
    page.table(2, table);
    more(page, periodic.len(), many.min(periodic.len()), "tasks with a period", "--format json");
    page.blank();
}

fn job_row(name: String, jobs: &Jobs) -> [String; 8] {
    [
        name,
        jobs.n.to_string(),
        jobs.late.to_string(),
        short(jobs.took.as_ref(), |t| t.p50),
        short(jobs.took.as_ref(), |t| t.p95),
        short(jobs.took.as_ref(), |t| t.p99),
        format!("{:.2}", jobs.period_ms),
        sure(jobs),
    ]
}

/// Writes a row for each frequency domain, or CPU where there is one domain.
fn cpus(page: &mut Page<'_>, taken: &Taken<'_>, rows: usize) {
    let run = taken.run;
    let mut domains: BTreeMap<CpuId, Vec<&CpuResult>> = BTreeMap::new();
    for cpu in &run.cpus {
        let key = if run.known.machine { cpu.domain } else { cpu.cpu };
        domains.entry(key).or_default().push(cpu);
    }
    let many = if rows == ALL { ALL } else { rows.max(4) };
    page.heading("CPUs", " (% of the time; MHz)");
    let heads = ["", "capacity", "busy", "idle", "unseen", "mean MHz", "from", "to", "mJ"];
    let shown: Vec<_> = domains.values().take(many).map(|all| cpu_row(taken, all)).collect();
    // A column of which nothing is known has no figures.
    let there = |column: &usize| shown.iter().any(|row| row[*column] != NOTHING);
    let columns: Vec<usize> = (0..heads.len()).filter(there).collect();
    let mut table = Table::new(columns.iter().map(|column| heads[*column]));
    for row in &shown {
        table.row(columns.iter().map(|column| row[*column].clone()));
    }
    page.table(2, table);
    more(page, domains.len(), many.min(domains.len()), "CPUs", "--full");
    page.blank();
}

/// Text in the place of a figure that is not known.
const NOTHING: &str = "–";

fn cpu_row(taken: &Taken<'_>, all: &[&CpuResult]) -> [String; 9] {
    let run = taken.run;
    let (first, last) = (all[0].cpu, all[all.len() - 1].cpu);
    let name = if all.len() > 1 { format!("{first}–{}", last.0) } else { first.to_string() };
    let whole = taken.surveyed.length_ms * all.len() as f64;
    let share = |ms: f64| match whole > 0.0 {
        true => words::one(100.0 * ms / whole),
        false => NOTHING.into(),
    };
    let told = taken.surveyed.freqs.iter().find(|(cpu, _)| *cpu == all[0].domain);
    let freq = told.map_or(&[][..], |(_, freqs)| freqs);
    let mhz = |freq: Option<&(KHz, f64)>| {
        freq.map_or(NOTHING.into(), |f| format!("{:.0}", f.0.0 as f64 / 1000.0))
    };
    let ms: f64 = freq.iter().map(|(_, ms)| ms).sum();
    let mean: f64 = freq.iter().map(|(f, ms)| f.0 as f64 / 1000.0 * ms).sum::<f64>() / ms;
    let busy: f64 = all.iter().map(|cpu| cpu.busy_ms).sum();
    let idle: f64 = all.iter().flat_map(|cpu| &cpu.idle).map(|(_, ms)| ms).sum();
    let unseen = whole - busy - idle;
    let mj: Option<f64> = all.iter().map(|cpu| cpu.energy_mj).sum();
    [
        name,
        if run.known.machine { all[0].capacity.to_string() } else { NOTHING.into() },
        share(busy),
        share(idle),
        if unseen >= 0.0005 * whole { share(unseen) } else { NOTHING.into() },
        if freq.is_empty() { NOTHING.into() } else { format!("{mean:.0}") },
        mhz(freq.first()),
        mhz(freq.last()),
        mj.filter(|_| run.known.powers()).map_or(NOTHING.into(), words::one),
    ]
}

/// Writes what there is to say of one thread.
fn alone(page: &mut Page<'_>, taken: &Taken<'_>, thread: &Thread, rows: usize) {
    let name = taken.name(thread.task, &thread.comm);
    let (running, waiting) = (thread.parts.running_ms(), thread.parts.waiting_ms());
    let share = 100.0 * running / taken.surveyed.length_ms.max(1e-9);
    let often = |n: u64| if n == 1 { "once".to_string() } else { format!("{n} times") };
    let text = format!(
        "{name}: ran {} ms ({} % of a CPU), waited {} ms for one; woken {}, moved to another CPU {}.",
        words::one(running),
        words::one(share),
        words::one(waiting),
        often(thread.wakeups),
        often(thread.moves)
    );
    page.paragraph(0, Ink::Strong, &text);
    let result = taken.run.tasks.iter().find(|t| t.task == thread.task);
    if let Some(result) = result {
        burst(page, taken, result);
    }
    page.blank();
    times(page, thread);
    limits(page, "What it lost its time to", &thread.parts, rows);
    waited_for(page, taken, thread, rows);
    ran_on(page, thread, rows);
}

/// Writes the thread's longest burst, and when it was at full speed.
fn burst(page: &mut Page<'_>, taken: &Taken<'_>, result: &TaskResult) {
    let Some(burst) = &result.burst else { return };
    let which = match result.bursts {
        1 => "One burst".to_string(),
        n => format!("The longest of {n} bursts"),
    };
    let (from, took) = (words::one(burst.t0_ms), super::run::sentence(result));
    page.paragraph(0, Ink::Plain, &format!("{which}, from {from} ms on, {took}"));
    let full = result.burst.as_ref().and_then(words::to_full_speed);
    let text = match full {
        Some(ms) => format!("That burst was at full speed after {} ms.", words::one(ms)),
        None if taken.run.known.speeds() => "That burst never came to full speed.".into(),
        None => return,
    };
    page.paragraph(0, Ink::Plain, &text);
}

/// Writes how long the thread's wakeups, activations and jobs took.
fn times(page: &mut Page<'_>, thread: &Thread) {
    let mut table = Table::new(["", "times", "p50", "p90", "p95", "p99", "max"]);
    let jobs = thread.jobs.as_ref();
    let rows = [
        ("wakeup to running", None, thread.waited.as_ref()),
        ("wakeup to sleep", Some(thread.activations), thread.took.as_ref()),
        ("jobs", jobs.map(|jobs| jobs.n), jobs.and_then(|jobs| jobs.took.as_ref())),
    ];
    for (what, n, took) in rows.into_iter().filter(|row| row.2.is_some()) {
        table.row([
            what.to_string(),
            n.unwrap_or(thread.wakeups).to_string(),
            wait(took, |t| t.p50),
            wait(took, |t| t.p90),
            wait(took, |t| t.p95),
            wait(took, |t| t.p99),
            wait(took, |t| t.max),
        ]);
    }
    if !table.rows.is_empty() {
        page.table(2, table);
    }
    if let Some(jobs) = jobs {
        let each = match jobs.activations {
            1 => "each wakeup".into(),
            n => format!("{n} wakeups in a row"),
        };
        let text = format!(
            "Its jobs are {each}: a period of {:.2} ms ({}); {} of {} took longer than it.",
            jobs.period_ms,
            sure(jobs),
            jobs.late,
            jobs.n
        );
        page.paragraph(0, Ink::Plain, &text);
    }
    page.blank();
}

/// Writes who had the CPU while the thread waited for it.
pub(super) fn waited_for(page: &mut Page<'_>, taken: &Taken<'_>, thread: &Thread, rows: usize) {
    let noticed: Vec<_> = thread.waited_for.iter().filter(|w| w.2 >= 0.05).collect();
    if noticed.is_empty() {
        return;
    }
    page.heading("Who had its CPU while it waited", "");
    let row = |(task, comm, ms): &(_, risetime_trace::Name, f64)| {
        (taken.name(*task, comm), *ms, format!("{:>8} ms", words::one(*ms)))
    };
    let shown: Vec<_> = noticed.iter().take(rows.max(3)).map(|w| row(w)).collect();
    page.bars(2, Ink::Warn, &shown);
    more(page, noticed.len(), rows.max(3).min(noticed.len()), "tasks", "--full");
    page.blank();
}

/// Writes on which CPUs the thread ran, at which frequencies.
fn ran_on(page: &mut Page<'_>, thread: &Thread, rows: usize) {
    let mut cpus: BTreeMap<CpuId, (f64, f64, f64)> = BTreeMap::new();
    for (cpu, freq, ms) in &thread.running {
        let sums = cpus.entry(*cpu).or_default();
        sums.0 += ms;
        if let Some(freq) = freq {
            sums.1 += freq.0 as f64 / 1000.0 * ms;
            sums.2 += ms;
        }
    }
    if cpus.is_empty() {
        return;
    }
    let mut all: Vec<_> = cpus.into_iter().collect();
    all.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    page.heading("Where it ran", " (with the mean frequency)");
    let row = |(cpu, (ms, sum, known)): &(CpuId, (f64, f64, f64))| {
        let mhz = match *known > 0.0 {
            true => format!(" at {:.0} MHz", sum / known),
            false => String::new(),
        };
        (cpu.to_string(), *ms, format!("{} ms{mhz}", words::one(*ms)))
    };
    let shown: Vec<_> = all.iter().take(rows.max(4)).map(row).collect();
    page.bars(2, Ink::Curve, &shown);
    more(page, all.len(), rows.max(4).min(all.len()), "CPUs", "--full");
    page.blank();
}

/// Writes the energy, where it is known.
fn energy(page: &mut Page<'_>, taken: &Taken<'_>) {
    if let Some(mj) = taken.run.energy_mj {
        page.paragraph(0, Ink::Plain, &format!("Energy: {} mJ of all CPUs.", words::one(mj)));
    }
    let others = unknown(taken.run).len();
    if taken.surveyed.unknown_cpus > 0 && others > 0 {
        let n = taken.surveyed.unknown_cpus;
        page.note(&format!("{n} events left out: they name a CPU that the platform does not have"));
    }
}

fn read_on(page: &mut Page<'_>, taken: &Taken<'_>, view: &TraceView<'_>) {
    let task = match view.threads {
        None if !taken.surveyed.threads.is_empty() => "; one task: --task NAME or PID",
        _ => "",
    };
    let text = format!("All of it: --full{task}; as data: --format json or csv.");
    page.paragraph(0, Ink::Dim, &text);
    if !view.why.is_empty() {
        page.command("Why: ", Ink::Dim, view.why.iter().cloned());
    }
}
