//! `risetime compare`: policies over start states, and a patch series taken apart.
//!
//! ```text
//! title      what ran, from which start states
//! table      a policy a row: work lost, energy, each with its difference to the first
//! patches    what each buys as the last one and alone, and what it costs
//! picture    work lost against energy, a mark a policy; the efficient ones stand out
//! ```

use super::Style;
use super::page::{Ink, Line, Page, Table, pad, width};
use crate::words::{self, one, signed};
use risetime_analysis::compare::{Compared, Comparison, Difference, Estimate};

/// What do these policies lose, and what do they take for it?
pub fn tradeoff(c: &Comparison, style: &Style) -> String {
    let mut page = Page::new(style);
    page.hanging("", Ink::Title, &title(c));
    if let Some(noise) = c.policies.first().and_then(|p| words::noise(&p.settings, c.seed)) {
        page.line(Line::new().ink(Ink::Dim, noise));
    }
    page.blank();
    let marks = marks(c);
    let shown = if c.patches.is_empty() { c.policies.len() } else { 2 };
    policies(&mut page, c, &marks, shown);
    if !c.patches.is_empty() {
        page.blank();
        patches(&mut page, c, &marks);
    }
    if c.power_known {
        page.blank();
        picture(&mut page, c, &marks);
    }
    page.blank();
    legend(&mut page, c);
    page.cautions(&c.cautions);
    page.finish()
}

fn title(c: &Comparison) -> String {
    let mut phases: Vec<_> = c.states.iter().map(|s| s.phase).collect();
    phases.dedup();
    let mut utils: Vec<u64> = c.states.iter().filter_map(|s| s.util).collect();
    utils.sort_unstable();
    utils.dedup();
    let utils: Vec<String> = utils.iter().map(u64::to_string).collect();
    let from = match utils.as_slice() {
        [] => String::new(),
        some => format!(" × start util {}", some.join(", ")),
    };
    format!("{} · {} · simulated · {} start phases{from}", c.workload, c.platform, phases.len())
}

/// A mark for each policy: letters; of an ablation 0 for the base, 1 for the whole, and for each
/// switch that has an effect a capital (without it) and a small letter (it alone). The others have
/// none.
pub(crate) fn marks(c: &Comparison) -> Vec<Option<String>> {
    let letter = |i: usize, first: u8| match u8::try_from(i) {
        Ok(i) if i < 26 => char::from(first + i).to_string(),
        _ => format!("{}", i + 1),
    };
    if c.patches.is_empty() {
        return (0..c.policies.len()).map(|i| Some(letter(i, b'A'))).collect();
    }
    let mut marks = vec![Some("0".into()), Some("1".into())];
    let mut next = 0;
    for patch in &c.patches {
        marks.extend([b'A', b'a'].map(|first| patch.acts.then(|| letter(next, first))));
        next += usize::from(patch.acts);
    }
    marks
}

/// `12.3…13.0`, or nothing where there is no interval, or no width.
pub(super) fn interval(e: Option<&Estimate>, word: fn(f64) -> String) -> String {
    let ends = e.and_then(|e| e.interval).map(|(low, high)| (word(low), word(high)));
    ends.filter(|(low, high)| low != high)
        .map_or_else(String::new, |(low, high)| format!("{low}…{high}"))
}

pub(super) fn median(e: Option<&Estimate>, word: fn(f64) -> String) -> String {
    e.map_or_else(|| "–".into(), |e| word(e.median))
}

/// Columns that the figures of a policy take; where a name does not fit beside them, it stands above.
const FIGURES: usize = 76;
/// Columns from which on there is room for what is bought, cost, and both intervals.
const WIDE: usize = 96;

fn policies(page: &mut Page<'_>, c: &Comparison, marks: &[Option<String>], shown: usize) {
    let marked = || {
        let all = c.policies.iter().zip(marks).take(shown);
        all.filter_map(|(p, mark)| Some((p, mark.as_deref()?)))
    };
    let room = page.width().saturating_sub(FIGURES);
    let long = marked().any(|(p, _)| width(&p.policy) > room);
    if long {
        marked().for_each(|(p, mark)| page.hanging(&format!("{mark}  "), Ink::Plain, &p.policy));
        page.blank();
    }
    let first = marks.first().cloned().flatten().unwrap_or_default();
    let versus = format!("vs {first}");
    let mut head = vec!["", "lost ms", "95 %", &versus, "95 %"];
    if c.power_known {
        head.extend(["mJ", &versus, "95 %"]);
    }
    let mut table = Table::new(head);
    for (p, mark) in marked() {
        let against = p.against_first.as_ref();
        let debt = against.and_then(|d| d.debt_ms.as_ref());
        let energy = against.and_then(|d| d.same_work_mj.as_ref());
        let bound = if 2 * p.bounds as usize > p.samples.len() { "≥ " } else { "" };
        let difference =
            |e: Option<&Estimate>| against.map_or(String::new(), |_| median(e, signed));
        let mut cells = vec![
            if long { mark.to_string() } else { format!("{mark}  {}", p.policy) },
            format!("{bound}{}", one(p.debt_ms.median)),
            interval(Some(&p.debt_ms), one),
            difference(debt),
            interval(debt, signed),
        ];
        if c.power_known {
            let mj = median(p.same_work_mj.as_ref(), one);
            cells.extend([mj, difference(energy), interval(energy, signed)]);
        }
        table.row(cells);
    }
    page.table(0, &table);
    by_start_util(page, c, marked());
}

/// What is lost from each start util, over the start phases.
fn by_start_util<'a>(
    page: &mut Page<'_>,
    c: &Comparison,
    policies: impl Iterator<Item = (&'a Compared, &'a str)>,
) {
    let mut utils: Vec<u64> = c.states.iter().filter_map(|s| s.util).collect();
    utils.sort_unstable();
    utils.dedup();
    if utils.len() < 2 {
        return;
    }
    page.blank();
    let heads = utils.iter().map(|u| format!("util {u}"));
    let mut table = Table::new(std::iter::once("lost ms from".to_string()).chain(heads));
    for (p, mark) in policies {
        let from = |util: &u64| {
            let here = c.states.iter().zip(&p.samples).filter(|(s, _)| s.util == Some(*util));
            median(Estimate::of(here.map(|(_, sample)| sample.debt_ms)).as_ref(), one)
        };
        table.row(std::iter::once(mark.to_string()).chain(utils.iter().map(from)));
    }
    page.table(0, &table);
}

fn patches(page: &mut Page<'_>, c: &Comparison, marks: &[Option<String>]) {
    let (base, whole) = (&c.policies[0].policy, &c.policies[1].policy);
    let text = format!(
        "What each switch of {whole} buys (ms less lost) and costs (mJ more): as the last one that is \
         added, and alone on {base}."
    );
    page.paragraph(0, Ink::Strong, &text);
    page.blank();
    let wide = page.width() >= WIDE;
    let mut head = vec!["", "last: ms", "95 %", "mJ", "alone: ms", "95 %", "mJ"];
    head.retain(|h| (c.power_known || *h != "mJ") && (wide || *h != "95 %"));
    let mut table = Table::new(head);
    let bought = |e: Option<&Estimate>| {
        let turn = |e: &Estimate| Estimate {
            median: -e.median,
            interval: e.interval.map(|(low, high)| (-high, -low)),
            ..*e
        };
        e.map(turn)
    };
    let cells = |d: &Difference| {
        let debt = bought(d.debt_ms.as_ref());
        let mut cells = vec![median(debt.as_ref(), one)];
        if wide {
            cells.push(interval(debt.as_ref(), one));
        }
        if c.power_known {
            cells.push(median(d.same_work_mj.as_ref(), signed));
        }
        cells
    };
    for (patch, mark) in c.patches.iter().zip(marks[2..].iter().step_by(2)) {
        let Some(mark) = mark else { continue };
        let mut row = vec![format!("{mark}  {}", patch.setting)];
        row.extend(cells(&patch.last));
        row.extend(cells(&patch.alone));
        table.row(row);
    }
    page.table(0, &table);
    let none: Vec<&str> =
        c.patches.iter().filter(|p| !p.acts).map(|p| p.setting.as_str()).collect();
    if !none.is_empty() {
        page.blank();
        page.paragraph(0, Ink::Dim, &format!("Without effect here: {}.", none.join(", ")));
    }
}

/// Where a policy stands; it is drawn only where energies are known.
fn energy(p: &Compared) -> f64 {
    p.same_work_mj.map_or(0.0, |mj| mj.median)
}

/// Rows of the picture.
const ROWS: usize = 12;

/// Work lost against energy, a mark a policy. Where two fall on one place, the later one is beside it.
fn picture(page: &mut Page<'_>, c: &Comparison, marks: &[Option<String>]) {
    let range = |f: fn(&Compared) -> f64| {
        let all = || c.policies.iter().map(f);
        let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        if high - low < 1e-9 { (low - 1.0, high + 1.0) } else { (low, high) }
    };
    let (x, y) = (range(energy), range(|p| p.debt_ms.median));
    let margin = width(&one(x.1)).max(width(&one(y.1))).max(7);
    let columns = page.width().saturating_sub(margin + 2).max(8);
    let mut cells: Vec<Vec<Option<(char, Ink)>>> = vec![vec![None; columns]; ROWS];
    for (p, mark) in c.policies.iter().zip(marks) {
        let share = |v: f64, r: (f64, f64)| (v - r.0) / (r.1 - r.0);
        let row = ((1.0 - share(p.debt_ms.median, y)) * (ROWS - 1) as f64).round() as usize;
        let at = (share(energy(p), x) * (columns - 2) as f64).round() as usize;
        let ink = if p.efficient { Ink::Good } else { Ink::Bad };
        let row = &mut cells[row.min(ROWS - 1)];
        let Some(mark) = mark.as_ref().and_then(|m| m.chars().next()) else { continue };
        let free = (at..columns).find(|i| row[*i].is_none());
        if let Some(i) = free {
            row[i] = Some((mark, ink));
        }
    }
    page.line(Line::new().ink(Ink::Dim, "lost ms"));
    for (i, row) in cells.iter().enumerate() {
        let value = y.1 - (y.1 - y.0) * i as f64 / (ROWS - 1) as f64;
        let mark = if i % 4 == 0 || i + 1 == ROWS { one(value) } else { String::new() };
        let mut line = Line::new().ink(Ink::Dim, pad(&mark, margin, true)).ink(Ink::Dim, " │");
        for cell in row {
            line = match cell {
                Some((mark, ink)) => line.ink(*ink, mark.to_string()),
                None => line.plain(" "),
            };
        }
        page.line(line);
    }
    let axis = format!("{} └{}", " ".repeat(margin), "─".repeat(columns));
    page.line(Line::new().ink(Ink::Dim, axis));
    let (low, high) = (one(x.0), format!("{} mJ", one(x.1)));
    let gap = columns.saturating_sub(width(&low) + width(&high));
    let text = format!("{}{low}{}{high}", " ".repeat(margin + 2), " ".repeat(gap));
    page.line(Line::new().ink(Ink::Dim, text));
}

fn legend(page: &mut Page<'_>, c: &Comparison) {
    let n = c.states.len();
    let runs = n * c.policies.len();
    page.paragraph(
        0,
        Ink::Dim,
        &format!(
            "Medians of {n} start states ({runs} simulations) with order-statistics intervals of 95 %; \
             differences are those of the same start state. An interval on one side of 0 is a sign \
             test at 5 %."
        ),
    );
    if !c.power_known {
        page.paragraph(0, Ink::Dim, "The platform does not say what power its CPUs take.");
    } else {
        let efficient: Vec<String> = c
            .policies
            .iter()
            .zip(marks(c))
            .filter(|(p, _)| p.efficient)
            .filter_map(|(_, mark)| mark)
            .collect();
        let parts = if c.patches.is_empty() {
            ""
        } else {
            " Capitals: all but that switch; small letters: it alone."
        };
        let text = format!(
            "mJ: all CPUs over the run, and for a task still busy at its end what the work it lost \
             would take.{parts} Efficient, nobody loses less for less: {}.",
            efficient.join(" ")
        );
        page.paragraph(0, Ink::Dim, &text);
    }
    let left_out: u32 = c.policies.iter().filter_map(|p| p.against_first).map(|d| d.left_out).sum();
    if left_out > 0 {
        let text =
            format!("{left_out} pairs left out: lost ms of only one of the two is a lower bound.");
        page.paragraph(0, Ink::Dim, &text);
    }
}
