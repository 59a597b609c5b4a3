//! The screen of `make demo`: a task becomes busy, and what that costs, on one page.
//!
//! ```text
//! picture     delivered speed over time, of this machine and of one that was fast from the
//!             start; the area between them is the work lost: "N ms lost"
//! lanes       CPU, GHz and util at the same moments
//! below       where it went · the mailing list's figures beside ours · this machine · try next
//! ```
//!
//! 80 columns by less than 50 lines; narrower and wider terminals are filled too.

use super::Style;
use super::lists::Finding;
use super::run::{held, running_intervals, where_it_went};
use crate::page::{
    Block, Curve, Doc, Ink, Lane, Line, Page, Plot, Shade, Table, cut, pad, width, wrap,
};
use crate::words;
use risetime_analysis::{RunResult, TaskResult, Timeline};

/// Rows of the picture.
const PICTURE: usize = 12;
/// Findings that are shown, and lines of what each means.
const FINDINGS: usize = 3;
const MEANING: usize = 2;

/// A published figure beside ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The quantity, in words.
    pub label: String,
    /// The published number as it stands there (`~284`).
    pub published: String,
    /// Ours; `None`: never.
    pub ours: Option<f64>,
    /// Unit of both.
    pub unit: String,
}

/// A command to try, and what it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    /// The command line.
    pub command: String,
    /// Effect of the command, in words.
    pub shows: String,
}

/// Everything on the screen.
#[derive(Clone, Copy, Debug)]
pub struct Demo<'a> {
    /// The machine for a reader: `Mac mini M1`.
    pub machine: &'a str,
    /// The run that is shown, with the curves of its first task.
    pub run: (&'a RunResult, &'a Timeline),
    /// A run that was fast from the start; `None`: the ideal, full speed at once.
    pub fast: Option<(&'a RunResult, &'a Timeline)>,
    /// Source of the published figures.
    pub source: &'a str,
    /// Published figures beside ours.
    pub figures: &'a [Published],
    /// Findings on the reader's machine; the first three are shown.
    pub findings: &'a [Finding],
    /// Commands to try next.
    pub next: &'a [Next],
}

/// The page of the demo: what it costs that a machine must first find out that a task is busy.
pub fn demo(d: &Demo<'_>, style: &Style) -> Doc {
    let mut page = Page::new(style);
    let (run, line) = d.run;
    match run.tasks.first() {
        Some(task) if task.burst.is_some() => {
            opening(&mut page, d, task);
            picture(&mut page, d, task, line);
            page.blank();
            where_it_went(&mut page, task);
        }
        _ => page.line(Line::new().plain("The workload never became busy.")),
    }
    figures(&mut page, d);
    machine(&mut page, d.findings);
    next(&mut page, d.next);
    page.finish()
}

fn opening(page: &mut Page<'_>, d: &Demo<'_>, t: &TaskResult) {
    let Some(b) = &t.burst else { return };
    let title = format!("A task becomes busy: {}, {}", d.machine, d.run.0.policy);
    page.title(&title, "");
    let lost = format!("{}{} ms", words::bound(b), words::one(b.debt_ms));
    let text = match words::to_full_speed(b) {
        Some(ms) => format!(
            "It has full speed after {} ms, and has lost {lost} of work by then.",
            words::one(ms)
        ),
        None => format!("It never gets full speed, and loses {lost} of work."),
    };
    page.hanging("", Ink::Plain, &text);
}

fn picture(page: &mut Page<'_>, d: &Demo<'_>, t: &TaskResult, line: &Timeline) {
    let Some(b) = &t.burst else { return };
    let x = (0.0, ((b.t1_ms - b.t0_ms) * 1.15).max(1.0).min((b.end_ms - b.t0_ms).max(1.0)));
    let ours = speed(line, b.t0_ms);
    let theirs = match d.fast {
        Some((run, line)) if !line.speed.is_empty() => {
            let t0 = run.tasks.first().and_then(|t| t.burst).map_or(0.0, |b| b.t0_ms);
            speed(line, t0)
        }
        _ => vec![(0.0, 100.0)],
    };
    let t1 = b.t1_ms - b.t0_ms;
    let whole = [x];
    let curves = vec![
        Curve { parts: held(&theirs, &whole), ink: Ink::Good },
        Curve { parts: held(&ours, &whole), ink: Ink::Curve },
    ];
    let edges = move |x: f64| (x < t1).then(|| Some((at(&ours, x)?, at(&theirs, x)?))).flatten();
    legend(page);
    page.put(Block::Plot(Plot {
        title: String::new(),
        x,
        y: (0.0, 100.0),
        rows: PICTURE,
        y_marks: [100.0, 75.0, 50.0, 25.0, 0.0].map(|y| (y, format!("{y:.0}"))).to_vec(),
        x_unit: "ms".into(),
        curves,
        shade: Some(Shade {
            edges: Box::new(edges),
            label: format!("{}{} ms lost", words::bound(b), words::one(b.debt_ms)),
        }),
        lanes: lanes(line, b.t0_ms),
    }));
}

fn legend(page: &mut Page<'_>) {
    let title = Line::new().ink(Ink::Title, "Speed, % of the fastest  ");
    let keys = |line: Line| {
        line.ink(Ink::Good, "▀▀ fast from the start  ")
            .ink(Ink::Curve, "▄▟▀ this run  ")
            .ink(Ink::Bad, "░░ lost")
    };
    if keys(title.clone()).width() <= page.width() {
        return page.line(keys(title));
    }
    page.line(title);
    page.line(keys(Line::new()));
}

/// The curve of speed in %, over ms from t0.
fn speed(line: &Timeline, t0: f64) -> Vec<(f64, f64)> {
    let percent = |&(at, s): &(f64, f64)| (at - t0, s / SPEED_SCALE * 100.0);
    line.speed.iter().map(percent).collect()
}

/// Speed of the biggest CPU at its highest frequency in a [`Timeline`].
const SPEED_SCALE: f64 = 1024.0;

/// The value that a curve holds at x; `None` before its first point.
fn at(points: &[(f64, f64)], x: f64) -> Option<f64> {
    let after = points.partition_point(|p| p.0 <= x);
    after.checked_sub(1).map(|i| points[i].1)
}

/// The lanes below the time axis: where the task ran, how fast that CPU was, and its util.
fn lanes(line: &Timeline, t0: f64) -> Vec<Lane> {
    let runs = running_intervals(line, t0);
    let mut cpu: Vec<(f64, String)> = Vec::new();
    let mut freq: Vec<(f64, String)> = Vec::new();
    for &(from, to, on) in &runs {
        let name = on.to_string();
        if cpu.last().is_none_or(|c| c.1 != name) {
            cpu.push((from, name));
        }
        let Some((_, curve)) = line.freq.iter().find(|f| f.0 == on) else {
            continue;
        };
        let curve: Vec<(f64, f64)> =
            curve.iter().map(|(at, f)| (at - t0, f.0 as f64 / 1e6)).collect();
        for (start, value) in held(&curve, &[(from, to)]).into_iter().flatten() {
            let text = format!("{value:.1}");
            if start < to && freq.last().is_none_or(|f| f.1 != text) {
                freq.push((start, text));
            }
        }
    }
    let util: Vec<(f64, f64)> = line.util.iter().map(|&(at, u)| (at - t0, u as f64)).collect();
    let sample = move |x: f64| at(&util, x).map_or(String::new(), |u| format!("{u:.0}"));
    vec![
        Lane::marks("on", Ink::Strong, cpu, '─'),
        Lane::marks("GHz", Ink::Curve, freq, ' '),
        Lane::at_ticks("util", Ink::Plain, sample),
    ]
}

fn figures(page: &mut Page<'_>, d: &Demo<'_>) {
    if d.figures.is_empty() {
        return;
    }
    let mut table = Table::new(["", "published", "here", ""]);
    for f in d.figures {
        let ours = words::one_or(f.ours, "never");
        table.row([f.label.clone(), f.published.clone(), ours, f.unit.clone()]);
    }
    let title = format!("Beside {}", d.source);
    page.heading(cut(&title, page.width()), "");
    page.table(2, table);
    page.blank();
}

fn machine(page: &mut Page<'_>, findings: &[Finding]) {
    if findings.is_empty() {
        return;
    }
    page.heading("This machine", "");
    for f in findings.iter().take(FINDINGS) {
        let (ink, mark) = f.mark();
        let line = Line::new().plain("  ").ink(ink, mark).plain(" ");
        let indent = line.width();
        page.line(line.ink(Ink::Strong, f.title.as_str()));
        // One look is one screen: `doctor` has the rest of the meaning, and the evidence.
        let mut meaning = wrap(&f.meaning, page.width() - indent - 1);
        if meaning.len() > MEANING {
            meaning.truncate(MEANING);
            meaning[MEANING - 1].push('…');
        }
        for part in meaning {
            page.line(Line::new().plain(" ".repeat(indent)).plain(part));
        }
    }
    page.blank();
}

fn next(page: &mut Page<'_>, next: &[Next]) {
    if next.is_empty() {
        return;
    }
    page.heading("Try next", "");
    let wide = next.iter().map(|n| width(&n.command)).max().unwrap_or(0);
    let shows = next.iter().map(|n| width(&n.shows)).max().unwrap_or(0);
    for n in next {
        if wide + shows + 4 <= page.width() {
            let command = pad(&n.command, wide, false);
            let line = Line::new().plain("  ").ink(Ink::Curve, command);
            page.line(line.ink(Ink::Dim, format!("  {}", n.shows)));
        } else {
            page.line(Line::new().plain("  ").ink(Ink::Curve, n.command.as_str()));
            page.paragraph(4, Ink::Dim, &n.shows);
        }
    }
}
