//! `risetime compare --metric`: experiments side by side, by figures of their whole runs.
//!
//! ```text
//! a table a metric    a row an experiment: median, interval, and what it has more than the first policy on the same
//!                     platform with the same workload, phase by phase
//! ```

use super::Style;
use super::compare::legend;
use super::page::{Ink, Line, Page, Table};
use super::tradeoff::{interval, median};
use crate::words::{self, digits3, signed3};
use risetime_analysis::compare::Estimate;
use risetime_analysis::metric::{Metric, Unit};
use risetime_analysis::{Measured, Switched};

/// Columns that median, interval and difference take at most.
const FIGURES: usize = 52;

/// What do these experiments measure? `groups`: those of one workload on one platform, the first policy first.
pub fn metrics(groups: &[&[Measured]], switches: &[Switched], style: &Style) -> String {
    let mut page = Page::new(style);
    let Some(first) = groups.first().and_then(|g| g.first()) else { return page.finish() };
    let all = || groups.iter().flat_map(|group| group.iter());
    let same = |of: fn(&Measured) -> &str| {
        let own = of(first);
        all().all(|m| of(m) == own).then(|| own.to_string())
    };
    let parts: [fn(&Measured) -> &str; 3] = [|m| &m.workload, |m| &m.platform, |m| &m.policy];
    let title: Vec<String> = parts.iter().filter_map(|of| same(*of)).collect();
    let phases = first.phases.len();
    let phases = format!("simulated · medians of {phases} start phases");
    let skipped = words::skipped(&first.settings);
    let title = title.into_iter().chain([phases]).chain(skipped).collect::<Vec<_>>();
    page.hanging("", Ink::Title, &title.join(" · "));
    if let Some(noise) = words::noise(&first.settings, first.seed) {
        page.line(Line::new().ink(Ink::Dim, noise));
    }
    // An ablation's parts beyond base and whole are told as switches.
    let shown = if switches.is_empty() { usize::MAX } else { 2 };
    let varies: Vec<fn(&Measured) -> &str> =
        parts.into_iter().filter(|of| same(*of).is_none()).collect();
    let name =
        |m: &Measured| -> String { varies.iter().map(|of| of(m)).collect::<Vec<_>>().join(" · ") };
    let names: Vec<String> = groups.iter().flat_map(|g| g.iter().take(shown)).map(name).collect();
    page.blank();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let room = page.width().saturating_sub(FIGURES);
    let marks = legend(&mut page, &names, room);
    for (m, (metric, unit, _)) in first.metrics.iter().enumerate() {
        if m > 0 {
            page.blank();
        }
        let unit = unit.as_str().trim();
        let of = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
        page.line(Line::new().ink(Ink::Title, metric.name.as_str()).ink(Ink::Dim, of));
        let several = groups.iter().any(|g| g.len() > 1);
        let heads = ["", "median", "95 %", "vs first", "%", "95 %"];
        let mut table = Table::new(heads.into_iter().take(if several { 6 } else { 3 }));
        let rows = groups.iter().flat_map(|g| g.iter().take(shown).map(|one| (&g[0], one)));
        for ((i, one), mark) in rows.zip(&marks) {
            table.inked(ink(metric, one.difference(i, m), i == one), row(mark.clone(), i, one, m));
        }
        page.table(2, &table);
        if metric_counts_never(groups, m) {
            let text = "–: from some start phases there is no such figure, and they are left out.";
            page.paragraph(2, Ink::Dim, text);
        }
    }
    if !switches.is_empty() {
        page.blank();
        taken_apart(&mut page, first, switches);
    }
    page.cautions(all().map(|one| &one.cautions[..]).find(|c| !c.is_empty()).unwrap_or_default());
    page.finish()
}

fn metric_counts_never(groups: &[&[Measured]], m: usize) -> bool {
    groups.iter().flat_map(|g| g.iter()).any(|one| one.never(m) > 0)
}

/// Good or bad where it surely differs.
fn ink(metric: &Metric, difference: Option<Estimate>, first: bool) -> Option<Ink> {
    let less = metric.less_is_better()?;
    let difference = difference.filter(|d| !first && d.differs())?;
    Some(if (difference.median < 0.0) == less { Ink::Good } else { Ink::Bad })
}

fn row(name: String, first: &Measured, one: &Measured, m: usize) -> Vec<String> {
    let own = one.estimate(m);
    let never = if one.never(m) > 0 { " –" } else { "" };
    let mut cells =
        vec![name, median(own.as_ref(), digits3) + never, interval(own.as_ref(), digits3)];
    if first != one {
        let difference = one.difference(first, m);
        let base = first.estimate(m).filter(|b| b.median != 0.0);
        let share = difference.zip(base).map(|(d, b)| 100.0 * d.median / b.median.abs());
        cells.push(median(difference.as_ref(), signed3));
        cells.push(share.map_or(String::new(), words::signed));
        cells.push(interval(difference.as_ref(), signed3));
    }
    cells
}

fn taken_apart(page: &mut Page<'_>, base: &Measured, switches: &[Switched]) {
    let text = "What each switch changes: as the last one that is added, and alone.";
    page.paragraph(0, Ink::Strong, text);
    for (m, (metric, unit, _)) in base.metrics.iter().enumerate() {
        page.blank();
        let head = format!("{}{}", metric.name, unit_words(*unit));
        let mut table = Table::new([head.as_str(), "last", "95 %", "alone", "95 %"]);
        for s in switches.iter().filter(|s| s.acts) {
            let [last, alone] = [&s.last, &s.alone].map(|all| all.get(m).copied().flatten());
            table.row([
                s.setting.clone(),
                median(last.as_ref(), signed3),
                interval(last.as_ref(), signed3),
                median(alone.as_ref(), signed3),
                interval(alone.as_ref(), signed3),
            ]);
        }
        page.table(0, &table);
    }
    let none: Vec<&str> = switches.iter().filter(|s| !s.acts).map(|s| s.setting.as_str()).collect();
    if !none.is_empty() {
        page.blank();
        page.paragraph(0, Ink::Dim, &format!("Without effect here: {}.", none.join(", ")));
    }
}

fn unit_words(unit: Unit) -> String {
    match unit.as_str().trim() {
        "" => String::new(),
        unit => format!(", {unit}"),
    }
}
