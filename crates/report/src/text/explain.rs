//! `risetime explain`: a burst's loss, split among its causes.
//!
//! ```text
//! title      what ran
//! answer     how much was lost, until when
//! table      a cause a row, the largest share first: share, bar, what its absence saves
//! legend     what the causes are, and what the columns mean
//! ```
//!
//! Of several start phases the table shows medians, which need not add up.

use super::Style;
use crate::page::{Block, Doc, Ink, Line, Page, Share, Shares, pad, width};
use crate::words::{self, digits3, one};
use risetime_analysis::explain::{About, CauseShare, Explanation, Over};
use risetime_analysis::{EndedBy, Spread};

/// The page that explains a burst: where its time was lost. Of several start phases, their medians.
pub fn explain(explanations: &[Explanation], style: &Style) -> Doc {
    let mut page = Page::new(style);
    let Some(first) = explanations.first() else {
        page.line(Line::new().plain("Nothing to explain."));
        return page.finish();
    };
    let simulated = words::simulated(&first.settings, first.seed);
    let mut title =
        format!("{} · {} · {} · {simulated}", first.workload, first.platform, first.policy);
    if explanations.len() > 1 {
        title += &format!(" · medians of {} start phases", explanations.len());
    }
    page.title(&title, "");
    page.blank();
    answer(&mut page, explanations);
    page.blank();
    let (rows, idle): (Vec<Row>, Vec<Row>) =
        rows(explanations).into_iter().partition(|r| r.cause.is_none() || r.counts());
    if rows.iter().all(|r| !r.counts()) {
        page.line(Line::new().plain("There is nothing to split."));
        return page.finish();
    }
    let alone = table(&mut page, &rows, explanations.len() > 1);
    page.blank();
    legend(&mut page, explanations, (&rows, &idle), alone);
    page.cautions(&first.cautions);
    first.notes.iter().for_each(|note| page.note(note));
    page.finish()
}

/// Writes how much was lost and until when; or how long the pieces take.
fn answer(page: &mut Page<'_>, all: &[Explanation]) {
    let ms = over(all, &|e| e.about.ms()).median.unwrap_or(0.0);
    let text = match &all[0].about {
        About::Burst(first) => lost(all, first.ended_by, ms),
        About::Pieces { job, over, chosen, of, .. } => {
            let (what, from) = match job {
                Some(_) => ("jobs", "from release to done"),
                None => ("activations", "from wakeup to sleep"),
            };
            let name = &all[0].comm;
            let which = match over {
                Over::All => format!("The {of} {what} of {name}"),
                Over::Worst(_) => format!("The slowest {chosen} of {of} {what} of {name}"),
                Over::One(n) => format!("Number {n} of {of} {what} of {name}"),
            };
            let (verb, each) = if *chosen == 1 { ("takes", "") } else { ("take", " each") };
            format!("{which} {verb} {} ms{each}, {from}:", digits3(ms))
        }
    };
    page.paragraph(0, Ink::Strong, &text);
}

fn lost(all: &[Explanation], ended_by: EndedBy, ms: f64) -> String {
    let bursts = || {
        all.iter().filter_map(|e| match &e.about {
            About::Burst(burst) => Some(burst),
            About::Pieces { .. } => None,
        })
    };
    let took = Spread::of(bursts().map(|b| Some(b.t1_ms - b.t0_ms))).median.unwrap_or(0.0);
    let at_end = bursts().filter(|b| b.ended_by == EndedBy::RunEnd).count();
    let bound = if 2 * at_end > all.len() { "≥ " } else { "" };
    let until = match ended_by {
        EndedBy::FullSpeed => "until it had full speed",
        EndedBy::Sleep => "until it slept",
        EndedBy::Exit => "until it exited",
        EndedBy::RunEnd => "until the run ended",
    };
    format!(
        "{} lost {bound}{} ms of full-speed work in the {} ms {until}:",
        all[0].comm,
        one(ms),
        one(took)
    )
}

/// A row of the table.
struct Row {
    label: &'static str,
    /// `None`: what is unexplained.
    cause: Option<CauseShare>,
    share: Spread,
    saves: Option<f64>,
    alone: Option<f64>,
    /// Standard error of the share, if it is drawn.
    error: Option<f64>,
    /// Part of the debt, 0 to 1.
    part: f64,
}

impl Row {
    /// Whether any figure of it is shown as more than 0.
    fn counts(&self) -> bool {
        let figures = [self.share.min, self.share.max, self.saves, self.alone];
        figures.into_iter().flatten().any(|ms| ms.abs() >= 0.05)
    }
}

fn over(all: &[Explanation], f: &dyn Fn(&Explanation) -> f64) -> Spread {
    Spread::of(all.iter().map(|e| Some(f(e))))
}

/// The causes that can act, the largest first, then the unexplained.
fn rows(all: &[Explanation]) -> Vec<Row> {
    let debt = over(all, &|e| e.about.ms()).median.unwrap_or(0.0);
    let part = |share: &Spread| match share.median {
        Some(ms) if debt > 0.0 => ms / debt,
        _ => 0.0,
    };
    let causes = all[0].causes.iter().enumerate().filter(|(_, c)| c.acts);
    let row = |(i, c): (usize, &CauseShare)| {
        let share = over(all, &|e| e.causes[i].ms);
        Row {
            label: c.label,
            cause: Some(*c),
            part: part(&share),
            share,
            saves: over(all, &|e| e.causes[i].gain_ms).median,
            error: Spread::of(all.iter().map(|e| e.causes[i].error_ms)).median,
            alone: over(all, &|e| e.causes[i].alone_ms).median,
        }
    };
    let mut rows: Vec<Row> = causes.map(row).collect();
    rows.sort_by(|a, b| b.part.total_cmp(&a.part));
    let affinity = (AFFINITY, over(all, &|e| e.affinity_ms));
    let affinity = Some(affinity).filter(|(_, s)| s.max.is_some_and(|ms| ms >= 0.05));
    let rest = (rest(&all[0].about), over(all, &|e| e.unexplained_ms));
    for (label, share) in affinity.into_iter().chain([rest]) {
        let part = part(&share);
        rows.push(Row { label, cause: None, share, saves: None, alone: None, error: None, part });
    }
    rows
}

/// Name of what no cause's absence gives back.
pub(crate) const AFFINITY: &str = "what affinity forbids";

/// The name of what is left without any of the causes.
pub(crate) fn rest(about: &About) -> &'static str {
    match about {
        About::Burst(_) => "unexplained",
        About::Pieces { .. } => "the work itself",
    }
}

/// Says whether there is a column for what a cause does alone.
fn table(page: &mut Page<'_>, rows: &[Row], phases: bool) -> bool {
    type Cell = fn(&Row) -> String;
    let dash = |x: Option<f64>| x.map_or_else(String::new, one);
    let mut right: Vec<(&str, Cell)> = vec![("saves", |r| r.saves.map_or_else(String::new, one))];
    if phases {
        right.push(("min", |r| r.share.min.map_or_else(String::new, one)));
        right.push(("max", |r| r.share.max.map_or_else(String::new, one)));
    }
    if rows.iter().any(|r| r.error.is_some()) {
        right.push(("±", |r| r.error.map_or_else(String::new, one)));
    }
    if rows.iter().any(|r| r.alone.is_some_and(|ms| ms.abs() >= 0.05)) {
        right.push(("alone", |r| r.alone.map_or_else(String::new, one)));
    }
    let label = rows.iter().map(|r| width(r.label)).max().unwrap_or(0);
    let left = label + 1 + Shares::FIGURE + 6 + 2;
    let taken = |columns: usize| left + Shares::BAR.0 + columns * (Shares::FIGURE + 1);
    while right.len() > 1 && taken(right.len()) > page.width() {
        right.pop();
    }
    let share = |row: &Row| Share {
        label: row.label.into(),
        ink: if row.cause.is_some() { Ink::Bad } else { Ink::Warn },
        value: dash(row.share.median),
        part: row.part,
        percent: one(100.0 * row.part),
        more: right.iter().map(|c| (c.1)(row)).collect(),
    };
    page.put(Block::Shares(Shares {
        heads: ("ms", "%", right.iter().map(|c| c.0).collect()),
        rows: rows.iter().map(share).collect(),
    }));
    right.iter().any(|(head, _)| *head == "alone")
}

fn legend(page: &mut Page<'_>, all: &[Explanation], (rows, idle): (&[Row], &[Row]), alone: bool) {
    let causes: Vec<&CauseShare> = rows.iter().filter_map(|r| r.cause.as_ref()).collect();
    let name = causes.iter().map(|c| width(c.cause)).max().unwrap_or(0);
    for c in causes {
        page.hanging(&format!("{}  ", pad(c.cause, name, false)), Ink::Dim, c.about);
    }
    let absent: Vec<&str> = all[0].causes.iter().filter(|c| !c.acts).map(|c| c.label).collect();
    page.blank();
    if !idle.is_empty() {
        let labels: Vec<&str> = idle.iter().map(|r| r.label).collect();
        page.paragraph(0, Ink::Dim, &format!("No part in it (0.0): {}.", labels.join(", ")));
    }
    if !absent.is_empty() {
        page.paragraph(0, Ink::Dim, &format!("Cannot act here, or do not: {}.", absent.join(", ")));
    }
    let n: u64 = all.iter().map(|e| u64::from(e.runs)).sum();
    let drawn = rows.iter().any(|r| r.error.is_some());
    let orders = match drawn {
        false => "every order in which all of them can go",
        true => "orders that were drawn, ± their standard error (--budget: more of them)",
    };
    let (less, left) = match all[0].about {
        About::Burst(_) => ("is lost less", "what is lost"),
        About::Pieces { .. } => ("they take less", "what they take, the work itself counted in,"),
    };
    let alone = match alone {
        true => format!(" alone: {left} in a run with it and none of the others."),
        false => String::new(),
    };
    let text = format!(
        "Shares are Shapley values over {n} simulations: what {less} when a cause goes, \
         averaged over {orders}; below 0: it saves time. saves: \
         what {less} in a run without it (risetime run … --without NAME).{alone}"
    );
    page.paragraph(0, Ink::Dim, &text);
    if all.len() > 1 {
        page.paragraph(0, Ink::Dim, "Each start phase's shares add up; medians need not.");
    }
}
