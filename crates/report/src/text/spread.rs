//! `risetime verify --mode spread`: which figures are the same on both sides?
//!
//! ```text
//! one   every figure: means over the start phases, the interval of their difference, the margin, the verdict
//! set   how many of each experiment are what; the same by kind of figure; those that are furthest apart
//! ```

use super::Style;
use super::verify::OFF_HERE;
use crate::page::{Doc, Ink, Page, Table};
use crate::words::{digits3, one};
use risetime_analysis::Kind;
use risetime_analysis::verify::{Equivalence, Figure, MARGIN, Tally, Verdict, all_equivalent};

/// Number of figures that are named, of those that are furthest apart.
const FURTHEST: usize = 20;

/// The page of one experiment: every figure of both sides.
pub fn verify_spread(reference: &str, found: &Equivalence, style: &Style) -> Doc {
    let mut page = Page::new(style);
    let title = format!("{} · {reference} · {} start phases", found.name, found.phases);
    page.title(&title, "");
    page.blank();
    let mut table = Table::new(["", "kernel", "simulated", "difference, 90 %", "margin", ""]);
    for figure in &found.figures {
        table.inked(ink(figure.verdict), row(figure));
    }
    page.table(0, table);
    page.blank();
    alone(&mut page, found);
    let tally = Tally::of(&found.figures);
    let ink = if found.holds() { Ink::Good } else { Ink::Bad };
    page.hanging("", ink, &format!("{}.", counts(&tally)));
    page.paragraph(0, Ink::Dim, &legend());
    page.finish()
}

/// The page of many experiments: verdicts by experiment, and all together.
pub fn verify_spread_set(reference: &str, set: &[Equivalence], style: &Style) -> Doc {
    let mut page = Page::new(style);
    let phases = set.first().map_or(0, |e| e.phases);
    let title = format!("{} experiments · {reference} · {phases} start phases each", set.len());
    page.title(&title, "");
    page.blank();
    let heads = Verdict::ALL.map(Verdict::as_str);
    let cells = |name: &str, tally: &Tally| {
        let each = [tally.equivalent, tally.different, tally.undecided];
        let mut row = vec![name.to_string()];
        row.extend(each.map(|n| n.to_string()));
        row
    };
    let mut table = Table::new([&["experiment"], &heads[..]].concat());
    for e in set {
        table.row(cells(&e.name, &Tally::of(&e.figures)));
    }
    page.table(0, table);
    page.blank();
    let mut table = Table::new([&["figure"], &heads[..]].concat());
    let figures = || set.iter().flat_map(|e| e.figures.iter().map(move |f| (e.name.as_str(), f)));
    for kind in Kind::ALL {
        let of = figures().map(|(_, f)| f).filter(|f| f.kind == kind);
        let tally = Tally::of(of);
        if tally.all() > 0 {
            table.row(cells(kind.as_str(), &tally));
        }
    }
    page.table(0, table);
    let mut far: Vec<(&str, &Figure)> =
        figures().filter(|(_, f)| f.verdict == Verdict::Different).collect();
    far.sort_by(|a, b| a.1.kind.cmp(&b.1.kind).then(b.1.margins().total_cmp(&a.1.margins())));
    let mut limits: Vec<f64> = far.iter().map(|(_, f)| f.margins()).collect();
    limits.sort_by(|a, b| b.total_cmp(a));
    let limit = limits.get(FURTHEST - 1).copied().unwrap_or(0.0);
    far.retain(|(_, f)| f.margins() >= limit);
    if !far.is_empty() {
        page.blank();
        page.rule("different, the furthest of them, by kind");
        let mut table = Table::new(["", "", "kernel", "simulated", "difference, 90 %", "margin"]);
        for (name, figure) in far {
            let mut cells = row(figure);
            cells.pop();
            cells.insert(0, name.to_string());
            table.row(cells);
        }
        page.table(0, table);
    }
    page.blank();
    let tally = Tally::of(figures().map(|(_, f)| f));
    let decided = tally.equivalent + tally.different;
    let share = |n: usize, of: usize| one(100.0 * n as f64 / of.max(1) as f64);
    let ink = if all_equivalent(set) { Ink::Good } else { Ink::Bad };
    page.hanging(
        "",
        ink,
        &format!(
            "{}. Of {decided} decided figures {} % are equivalent (90 wanted), of all {} % are undecided (10 may be).",
            counts(&tally),
            share(tally.equivalent, decided),
            share(tally.undecided, tally.all()),
        ),
    );
    page.paragraph(0, Ink::Dim, &legend());
    page.finish()
}

/// The cells of a figure: name, both means, interval, margin, verdict.
fn row(f: &Figure) -> Vec<String> {
    let interval = f
        .interval
        .map_or("–".to_string(), |(low, high)| format!("{}…{}", with_sign(low), with_sign(high)));
    let both = f.pairs > 0;
    let mean = |x: f64| if both { digits3(x) } else { "–".to_string() };
    vec![
        label(f),
        mean(f.reference.mean),
        mean(f.candidate.mean),
        interval,
        digits3(f.margin),
        f.verdict.as_str().to_string(),
    ]
}

fn label(f: &Figure) -> String {
    let (of, unit) = (&f.of, f.kind.unit());
    match f.kind {
        Kind::Cluster => format!("on {of} {unit}"),
        Kind::Frequency => format!("{unit} on {of}"),
        Kind::Running => format!("{of} runs {unit}"),
        _ if of.is_empty() => format!("{} {unit}", f.kind.as_str()),
        _ => {
            let (what, quantile) = f.kind.as_str().split_once('_').unwrap_or(("", ""));
            format!("{of} {what} {quantile} {unit}").trim_end().to_string()
        }
    }
}

fn with_sign(x: f64) -> String {
    let text = digits3(x);
    if x > 0.0 { format!("+{text}") } else { text }
}

fn ink(verdict: Verdict) -> Option<Ink> {
    match verdict {
        Verdict::Equivalent => None,
        Verdict::Different => Some(Ink::Bad),
        Verdict::Undecided => Some(Ink::Dim),
    }
}

fn alone(page: &mut Page<'_>, found: &Equivalence) {
    for f in found.figures.iter().filter(|f| f.alone > 0) {
        let head = format!("{}: ", label(f));
        let what = format!("in {} of {} start phases only one side has it.", f.alone, found.phases);
        page.hanging(&head, Ink::Dim, &what);
    }
}

fn counts(tally: &Tally) -> String {
    format!(
        "{} figures equivalent, {} different, {} undecided",
        tally.equivalent, tally.different, tally.undecided
    )
}

fn legend() -> String {
    format!(
        "Equivalent: the 90 % interval of the difference lies within the margin, {} % of the kernel's figure or what \
         nobody notices. Different: it lies outside. {OFF_HERE}",
        100.0 * MARGIN
    )
}
