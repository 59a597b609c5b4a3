//! Activations of a task in a trace, explained: what their time went to, and how each went on.
//!
//! ```text
//! whence      as on every page of a trace
//! answer      which activations, how long
//! table       a cause a row, the largest first; the work itself last; shares are the whole
//! remedies    the setting that would shorten each
//! timeline    the longest one, step by step
//! ```

use super::Style;
use super::run::more;
use super::trace::head;
use crate::Taken;
use crate::page::{Block, Doc, Ink, Line, Page, Share, Shares, pad, width};
use crate::words::{self, digits3, one};
use risetime_analysis::survey::{Did, Part, Parts, Speeds, Step, Walked};
use std::collections::BTreeMap;

/// Steps that are shown of an activation, but with `--full`.
const STEPS: usize = 14;
/// Remedies that are told.
const REMEDIES: usize = 4;
/// Share of the time from which on a cause has its remedy told.
const NOTICED: f64 = 0.02;

/// Choices of what is explained.
#[derive(Clone, Copy, Debug)]
pub struct WalkView<'a> {
    /// The task as the person called it.
    pub task: &'a str,
    /// Words on which activations: `the longest`, `those of more than 16.6 ms`.
    pub which: &'a str,
    /// Number of whole activations of the task.
    pub of: u64,
    /// All there is.
    pub full: bool,
}

/// The page that explains activations of a trace.
pub fn walk(taken: &Taken<'_>, view: &WalkView<'_>, style: &Style) -> Doc {
    let mut page = Page::new(style);
    head(&mut page, taken, if view.full { 200 } else { 2 });
    let all = &taken.surveyed.walked;
    let Some(longest) = all.first() else {
        let text = format!("No activation of {} is to be explained: {}.", view.task, view.which);
        page.line(Line::new().plain(text));
        return page.finish();
    };
    let mut parts = Parts::default();
    all.iter().for_each(|one| parts.absorb(&one.parts));
    answer(&mut page, taken, view, longest);
    page.blank();
    table(&mut page, taken, &parts);
    page.blank();
    blockers(&mut page, taken, all);
    remedies(&mut page, &parts);
    page.blank();
    let shown = if view.full { all.len() } else { 1 };
    for one in &all[..shown] {
        timeline(&mut page, taken, one, if view.full { usize::MAX } else { STEPS });
    }
    more(&mut page, all.len(), shown, "activations", "--full");
    page.finish()
}

fn answer(page: &mut Page<'_>, taken: &Taken<'_>, view: &WalkView<'_>, longest: &Walked) {
    let all = &taken.surveyed.walked;
    let name = taken.name(longest.task, &longest.comm);
    let ms: f64 = all.iter().map(Walked::took_ms).sum();
    let bound = if longest.whole { "" } else { "at least " };
    let text = match all.len() {
        1 => format!(
            "{} of {} activations of {name}, from wakeup to sleep: {bound}{} ms, from {:.6} s on:",
            view.which,
            view.of,
            digits3(longest.took_ms()),
            taken.clock_s(longest.from)
        ),
        n => format!(
            "{}, {n} of {} activations of {name}: {} ms together, the longest {bound}{} ms:",
            view.which,
            view.of,
            digits3(ms),
            digits3(longest.took_ms())
        ),
    };
    page.paragraph(0, Ink::Strong, &text);
}

/// Writes what the time went to; the rows sum up to all of it.
fn table(page: &mut Page<'_>, taken: &Taken<'_>, parts: &Parts) {
    let took = parts.took_ms();
    let part = |ms: f64| if took > 0.0 { ms / took } else { 0.0 };
    let row = |label: &str, ink: Ink, ms: f64| Share {
        label: label.into(),
        ink,
        value: one(ms),
        part: part(ms),
        percent: one(100.0 * part(ms)),
        more: Vec::new(),
    };
    let causes = parts.causes().into_iter();
    let mut rows: Vec<Share> =
        causes.map(|(cause, ms)| row(cause.about().label, Ink::Bad, ms)).collect();
    let work = parts.ms(Part::Work);
    if work > 0.0 {
        let label = match taken.surveyed.speeds {
            Speeds::Frequencies => "the work itself, at that CPU's highest frequency",
            _ => Part::Work.about().label,
        };
        rows.push(row(label, Ink::Plain, work));
    }
    page.put(Block::Shares(Shares { heads: ("ms", "%", Vec::new()), rows }));
}

/// Writes who had the CPU while they waited.
fn blockers(page: &mut Page<'_>, taken: &Taken<'_>, all: &[Walked]) {
    let mut sums: BTreeMap<_, (String, u64)> = BTreeMap::new();
    for step in all.iter().flat_map(|one| &one.steps) {
        if let Did::Waited(_, Some((task, comm))) = step.did {
            let named = || (taken.name(task, &comm), 0);
            sums.entry(task).or_insert_with(named).1 += step.to - step.from;
        }
    }
    let mut all: Vec<_> = sums.into_values().collect();
    all.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let one = |(name, ns): &(String, u64)| format!("{name} ({} ms)", digits3(*ns as f64 / 1e6));
    let first: Vec<String> = all.iter().take(5).map(one).collect();
    if !first.is_empty() {
        let others = match all.len().saturating_sub(5) {
            0 => String::new(),
            n => format!(", and {n} others"),
        };
        let text = format!("Waited for: {}{others}.", first.join(", "));
        page.paragraph(0, Ink::Plain, &text);
    }
}

/// Writes the setting that would shorten each of the largest causes.
fn remedies(page: &mut Page<'_>, parts: &Parts) {
    let took = parts.took_ms();
    let told = parts.causes().into_iter().filter(|(_, ms)| *ms >= NOTICED * took);
    let told: Vec<Part> = told.take(REMEDIES).map(|(part, _)| part).collect();
    if told.is_empty() {
        return;
    }
    page.blank();
    page.heading("What would shorten it", "");
    for part in told {
        let about = part.about();
        page.hanging(&format!("  {}: ", about.label), Ink::Plain, about.remedy);
    }
}

/// Writes the steps of an activation.
fn timeline(page: &mut Page<'_>, taken: &Taken<'_>, of: &Walked, most: usize) {
    let moves = match of.moves {
        0 => String::new(),
        1 => ", moved once".into(),
        n => format!(", moved {n} times"),
    };
    let title = format!("From {:.6} s on", taken.clock_s(of.from));
    page.heading(title, format!(" ({} ms{moves})", digits3(of.took_ms())));
    let steps = chosen(&of.steps, most);
    let names: Vec<String> = steps.iter().map(|step| step.cpu.to_string()).collect();
    let wide = names.iter().map(|name| width(name)).max().unwrap_or(0);
    for (step, name) in steps.iter().zip(&names) {
        let ms = |ns: u64| format!("{:.3}", ns as f64 / 1e6);
        let text = format!(
            "  {:>9} ms  {:>8} ms  {}  {}",
            ms(step.from - of.from),
            ms(step.to - step.from),
            pad(name, wide, false),
            did(taken, step)
        );
        page.line(Line::new().plain(text));
    }
    let all = of.steps.len() + of.more as usize;
    if all > steps.len() {
        let text = format!("… the {} shorter ones of {all} steps: --full", all - steps.len());
        page.paragraph(2, Ink::Dim, &text);
    }
    page.blank();
}

/// The longest steps, in their order.
fn chosen(steps: &[Step], most: usize) -> Vec<Step> {
    let mut places: Vec<usize> = (0..steps.len()).collect();
    places.sort_by_key(|place| std::cmp::Reverse(steps[*place].to - steps[*place].from));
    places.truncate(most);
    places.sort_unstable();
    places.into_iter().map(|place| steps[place]).collect()
}

fn did(taken: &Taken<'_>, step: &Step) -> String {
    match step.did {
        Did::Ran(Some(freq)) => format!("ran at {} MHz", words::mhz(freq)),
        Did::Ran(None) => "ran, at which frequency is not known".into(),
        Did::Waited(_, Some((task, comm))) => {
            format!("waited: {} had the CPU", taken.name(task, &comm))
        }
        Did::Waited(part, None) => format!("waited: {}", part.about().label),
    }
}
