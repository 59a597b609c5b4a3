//! `risetime compare`: experiments side by side, by figures of their whole runs.
//!
//! ```text
//! title            what ran, from which start states, and what is compared
//! a table a metric an experiment a row: median, interval, and what it has more than the first policy on the same
//!                  platform with the same workload, start state by start state
//! picture          the first metric against energy, a mark a policy, where nobody said by which figures
//! mail             the same without the picture, 72 columns of ASCII, with the command that repeats it
//! ```

use super::Style;
use super::compare::legend as names_of;
use crate::page::{Doc, Ink, Line, Page, Table, pad, width};
use crate::words::{self, digits3, signed3};
use risetime_analysis::compare::{Difference, Estimate};
use risetime_analysis::metric::{Metric, Unit};
use risetime_analysis::{Compared, Measured, StartState, Switched, efficient};

/// Columns that median, interval and difference take at most.
const FIGURES: usize = 58;

/// The page of compared experiments, and of the differences that are sure.
pub fn compared(c: &Compared, style: &Style) -> Doc {
    let mut page = Page::new(style);
    body(&mut page, c);
    if let (Some(group), [_]) = (c.groups.first(), c.subjects.as_slice())
        && let Some(points) = points(group, &marks(c, group))
    {
        page.blank();
        picture(&mut page, group, &points);
    }
    page.blank();
    legend(&mut page, c);
    let all = || c.groups.iter().flatten();
    page.cautions(all().map(|one| &one.cautions[..]).find(|c| !c.is_empty()).unwrap_or_default());
    page.finish()
}

/// Columns of a mail.
const MAIL: usize = 72;

/// The page of compared experiments for a mailing list: at most 72 columns, plain, with the command
/// that repeats it.
pub fn mail(c: &Compared) -> String {
    let style = Style { width: MAIL, color: false, unicode: false };
    let mut page = Page::new(&style);
    body(&mut page, c);
    page.blank();
    legend(&mut page, c);
    page.blank();
    String::from(page.finish()) + &repeated(&c.command, env!("CARGO_PKG_VERSION"))
}

/// The command on lines that a shell takes as one, in at most 72 columns: a word that is longer goes on at the start of the next.
fn repeated(words: &[String], version: &str) -> String {
    let mut lines = vec![format!("Repeated by (risetime {version})"), "   ".to_string()];
    for word in words {
        let line = lines.last_mut().map_or(0, |line| width(line));
        if line > 3 && line + 1 + width(word) + 2 > MAIL {
            lines.last_mut().into_iter().for_each(|line| line.push_str(" \\"));
            lines.push("     ".into());
        }
        for (i, c) in word.chars().enumerate() {
            let Some(line) = lines.last_mut() else { continue };
            if i == 0 {
                line.push(' ');
            }
            if width(line) + 1 >= MAIL {
                line.push('\\');
                lines.push(c.to_string());
            } else {
                line.push(c);
            }
        }
    }
    lines.join("\n") + "\n"
}

fn body(page: &mut Page<'_>, c: &Compared) {
    let Some(first) = c.groups.first().and_then(|g| g.first()) else { return };
    let all = || c.groups.iter().flatten();
    let same = |of: fn(&Measured) -> &str| {
        let own = of(first);
        all().all(|m| of(m) == own).then(|| own.to_string())
    };
    let parts: [fn(&Measured) -> &str; 3] = [|m| &m.workload, |m| &m.platform, |m| &m.policy];
    let title = parts.iter().filter_map(|of| same(*of));
    let from = format!("simulated · {}", starts(&first.starts));
    let skipped = words::skipped(&first.settings);
    let title = title.chain([from]).chain(skipped).collect::<Vec<_>>();
    page.title(title.join(" · "), "");
    if let Some(noise) = words::noise(&first.settings, first.seed) {
        page.line(Line::new().ink(Ink::Dim, noise));
    }
    for (group, subject) in c.groups.iter().zip(&c.subjects) {
        let of = match (c.groups.len(), group.first()) {
            (1, _) | (_, None) => String::new(),
            (_, Some(one)) => format!(" ({} on {})", one.workload, one.platform),
        };
        page.hanging("compared: ", Ink::Plain, &format!("{subject}{of}"));
    }
    let varies: Vec<fn(&Measured) -> &str> =
        parts.into_iter().filter(|of| same(*of).is_none()).collect();
    let name = |m: &Measured| match varies.as_slice() {
        // A policy beside itself.
        [] => m.policy.clone(),
        some => some.iter().map(|of| of(m)).collect::<Vec<_>>().join(" · "),
    };
    let names: Vec<String> = c.groups.iter().flat_map(|g| c.shown(g)).map(name).collect();
    page.blank();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let rows = Rows { c, marks: names_of(page, &names, page.width().saturating_sub(FIGURES)) };
    let same_figures =
        c.groups.iter().all(|g| g.first().is_some_and(|one| figures(one) == figures(first)));
    match same_figures {
        true => rows.tables(page, &c.groups, 0),
        false => c.groups.iter().enumerate().for_each(|(g, group)| {
            rows.tables(page, std::slice::from_ref(group), g);
        }),
    }
    by_start_util(page, c, &rows.marks);
    if !c.switches.is_empty() {
        page.blank();
        taken_apart(page, first, &c.switches);
    }
}

fn figures(one: &Measured) -> Vec<&Metric> {
    one.metrics.iter().map(|(metric, ..)| metric).collect()
}

/// `16 start phases × start util 0, 50`.
fn starts(all: &[StartState]) -> String {
    let mut phases: Vec<_> = all.iter().map(|s| s.phase).collect();
    phases.dedup();
    let utils: Vec<String> = utils(all).iter().map(u64::to_string).collect();
    let from = match utils.as_slice() {
        [] => String::new(),
        some => format!(" × start util {}", some.join(", ")),
    };
    let ends = if phases.len() == 1 { "" } else { "s" };
    format!("medians of {} start phase{ends}{from}", phases.len())
}

fn utils(all: &[StartState]) -> Vec<u64> {
    let mut utils: Vec<u64> = all.iter().filter_map(|s| s.util).collect();
    utils.sort_unstable();
    utils.dedup();
    utils
}

/// `12.3…13.0`, or nothing where there is no interval, or no width.
fn interval(e: Option<&Estimate>) -> String {
    let ends = e.and_then(|e| e.interval).map(|(low, high)| (digits3(low), digits3(high)));
    ends.filter(|(low, high)| low != high)
        .map_or_else(String::new, |(low, high)| format!("{low}…{high}"))
}

fn between(d: Option<&Difference>) -> String {
    d.map_or(String::new(), |d| format!("{}…{}", signed3(d.interval.0), signed3(d.interval.1)))
}

fn sure(d: Option<&Difference>) -> &'static str {
    if d.is_some_and(Difference::is_sure) { "sure" } else { "" }
}

/// The rows of all tables.
struct Rows<'c> {
    c: &'c Compared,
    /// Mark of each in the tables.
    marks: Vec<String>,
}

impl Rows<'_> {
    /// A table a metric of these groups, the first of which is group `at`.
    fn tables(&self, page: &mut Page<'_>, groups: &[Vec<Measured>], at: usize) {
        let before: usize = self.c.groups[..at].iter().map(|g| self.c.shown(g).len()).sum();
        let Some(first) = groups.first().and_then(|g| g.first()) else { return };
        let several = groups.iter().any(|g| self.c.shown(g).len() > 1);
        for (m, (metric, unit, _)) in first.metrics.iter().enumerate() {
            page.blank();
            let unit = unit.word();
            let of = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
            page.heading(metric.name.as_str(), of);
            let heads = ["", "median", "95 %", "vs first", "%", "95 % together", ""];
            let mut table = Table::new(heads.into_iter().take(if several { 7 } else { 3 }));
            let rows = groups
                .iter()
                .flat_map(|g| self.c.shown(g).iter().enumerate().map(move |one| (g, one)));
            for ((group, (i, one)), mark) in rows.zip(&self.marks[before..]) {
                let against = (i > 0).then(|| one.difference_in(&group[0], m, self.c.family()));
                let ink = against.flatten().and_then(|d| ink(metric, &d));
                table.inked(ink, row(mark.clone(), (&group[0], one), m, against));
            }
            page.table(2, table);
            let any = |of: fn(&Measured, usize) -> usize| {
                groups.iter().flatten().any(|one| of(one, m) > 0)
            };
            if any(Measured::never) {
                let text =
                    "–: from some start phases there is no such figure, and they are left out.";
                page.paragraph(2, Ink::Dim, text);
            }
            if any(Measured::bounds) {
                let text = "≥: the run's end cut it off in most runs; pairs of which one is a lower bound are left out.";
                page.paragraph(2, Ink::Dim, text);
            }
        }
    }
}

/// The ink of a difference: good or bad where it is sure, `None` elsewhere.
fn ink(metric: &Metric, difference: &Difference) -> Option<Ink> {
    let less = metric.less_is_better().filter(|_| difference.is_sure())?;
    Some(if (difference.median < 0.0) == less { Ink::Good } else { Ink::Bad })
}

/// `against`: its difference to the first, unless it is that.
fn row(
    name: String,
    (first, one): (&Measured, &Measured),
    m: usize,
    against: Option<Option<Difference>>,
) -> Vec<String> {
    let own = one.estimate(m);
    let never = if one.never(m) > 0 { " –" } else { "" };
    let bound = if 2 * one.bounds(m) > one.starts.len() { "≥ " } else { "" };
    let median = |e: Option<f64>, word: fn(f64) -> String| e.map_or_else(|| "–".into(), word);
    let value = median(own.map(|e| e.median), digits3);
    let mut cells = vec![name, format!("{bound}{value}{never}"), interval(own.as_ref())];
    if let Some(difference) = against {
        let base = first.estimate(m).filter(|b| b.median != 0.0);
        let share = difference.zip(base).map(|(d, b)| 100.0 * d.median / b.median.abs());
        cells.push(median(difference.map(|d| d.median), signed3));
        cells.push(share.map_or(String::new(), words::signed));
        cells.push(between(difference.as_ref()));
        cells.push(sure(difference.as_ref()).into());
    }
    cells
}

/// The first metric from each start util, over the start phases.
fn by_start_util(page: &mut Page<'_>, c: &Compared, marks: &[String]) {
    let Some(first) = c.groups.first().and_then(|g| g.first()) else { return };
    let utils = utils(&first.starts);
    if utils.len() < 2 || c.groups.len() > 1 || first.metrics.is_empty() {
        return;
    }
    page.blank();
    let heads = utils.iter().map(|u| format!("util {u}"));
    let mut table =
        Table::new([format!("{} from", first.metrics[0].0.name)].into_iter().chain(heads));
    for (one, mark) in c.shown(&c.groups[0]).iter().zip(marks) {
        let from = |util: &u64| {
            let here =
                one.starts.iter().zip(&one.metrics[0].2).filter(|(s, _)| s.util == Some(*util));
            let e = Estimate::of(here.filter_map(|(_, value)| *value));
            e.map_or_else(|| "–".into(), |e| digits3(e.median))
        };
        table.row([mark.clone()].into_iter().chain(utils.iter().map(from)));
    }
    page.table(0, table);
}

fn taken_apart(page: &mut Page<'_>, base: &Measured, switches: &[Switched]) {
    let text = "What each switch changes: as the last one that is added, and alone.";
    page.paragraph(0, Ink::Strong, text);
    for (m, (metric, unit, _)) in base.metrics.iter().enumerate() {
        page.blank();
        let head = format!("{}{}", metric.name, unit_words(*unit));
        let mut table = Table::new([head.as_str(), "last", "95 %", "", "alone", "95 %", ""]);
        for s in switches.iter().filter(|s| s.acts) {
            let mut cells = vec![s.setting.clone()];
            for d in [&s.last, &s.alone].map(|all| all.get(m).copied().flatten()) {
                cells.push(d.map_or_else(|| "–".into(), |d| signed3(d.median)));
                cells.push(between(d.as_ref()));
                cells.push(sure(d.as_ref()).into());
            }
            table.row(cells);
        }
        page.table(0, table);
    }
    let none: Vec<&str> = switches.iter().filter(|s| !s.acts).map(|s| s.setting.as_str()).collect();
    if !none.is_empty() {
        page.blank();
        page.paragraph(0, Ink::Dim, &format!("Without effect here: {}.", none.join(", ")));
    }
}

fn unit_words(unit: Unit) -> String {
    match unit.word() {
        "" => String::new(),
        unit => format!(", {unit}"),
    }
}

/// Writes how to read the differences, and which policies no other beats.
fn legend(page: &mut Page<'_>, c: &Compared) {
    let (family, n) = (c.family(), c.starts());
    if family.0 == 0 {
        return;
    }
    let pairs = family.pairs();
    let text = match (n as u32 >= pairs, family.0) {
        (true, m) => {
            let hold = match m {
                1 => "It misses on".to_string(),
                m => format!("All {m} hold together: one of them misses on"),
            };
            format!(
                "sure: the interval of the difference, at the same start states, lies on one side of 0. {hold} at most \
                 one such page in 20."
            )
        }
        (false, m) => format!(
            "{n} start states are too few to be sure of {m} differences together: it takes {pairs}. What stands for \
             their intervals is the least and the largest."
        ),
    };
    page.paragraph(0, Ink::Dim, &text);
    let [group] = c.groups.as_slice() else { return };
    if c.subjects.is_empty() || (n as u32) < pairs {
        return;
    }
    let marks = marks(c, group);
    let beaten: Vec<String> = (efficient(group).iter().zip(marks))
        .filter_map(|(efficient, mark)| mark.filter(|_| !efficient))
        .collect();
    let text = match beaten.as_slice() {
        [] => {
            "Nobody is beaten: nobody is surely better in one figure and in none worse.".to_string()
        }
        some => format!(
            "Beaten (somebody is surely better in one figure, and in none worse): {}.",
            some.join(" ")
        ),
    };
    page.paragraph(0, Ink::Dim, &text);
}

/// A mark for each policy: letters; of an ablation 0 for the base, 1 for the whole, and for each
/// switch that has an effect a capital (without it) and a small letter (it alone). The others have
/// none.
pub(crate) fn marks(c: &Compared, group: &[Measured]) -> Vec<Option<String>> {
    let letter = |i: usize, first: u8| match u8::try_from(i) {
        Ok(i) if i < 26 => char::from(first + i).to_string(),
        _ => format!("{}", i + 1),
    };
    if c.switches.is_empty() {
        return (0..group.len()).map(|i| Some(letter(i, b'A'))).collect();
    }
    let mut marks = vec![Some("0".into()), Some("1".into())];
    let mut next = 0;
    for switch in &c.switches {
        marks.extend([b'A', b'a'].map(|first| switch.acts.then(|| letter(next, first))));
        next += usize::from(switch.acts);
    }
    marks
}

/// A mark, energy and first metric.
type Point = (String, f64, f64);

/// The places of a group's marked policies in the picture; `None`: there is no energy, or fewer
/// than two places.
fn points(group: &[Measured], marks: &[Option<String>]) -> Option<Vec<Point>> {
    let energy = energy_of(group)?;
    let point = |(one, mark): (&Measured, &Option<String>)| {
        let at = |m| one.estimate(m).map(|e| e.median);
        Some((mark.clone()?, at(energy)?, at(0)?))
    };
    let all: Vec<Point> = group.iter().zip(marks).filter_map(point).collect();
    (all.len() > 1).then_some(all)
}

/// The index of the energy among the metrics of a group; `None`: there is none, or it is the first.
pub(crate) fn energy_of(group: &[Measured]) -> Option<usize> {
    let metrics = &group.first()?.metrics;
    metrics.iter().position(|(metric, ..)| metric.name == "energy").filter(|m| *m > 0)
}

/// Rows of the picture.
const ROWS: usize = 12;

/// The first metric against energy. Where two fall on one place, the later one is beside it.
fn picture(page: &mut Page<'_>, group: &[Measured], points: &[Point]) {
    let efficient = efficient(group);
    let range = |f: fn(&Point) -> f64| {
        let (low, high) = (
            points.iter().map(f).fold(f64::INFINITY, f64::min),
            points.iter().map(f).fold(f64::NEG_INFINITY, f64::max),
        );
        if high - low < 1e-9 { (low - 1.0, high + 1.0) } else { (low, high) }
    };
    let (x, y) = (range(|p| p.1), range(|p| p.2));
    let margin = width(&digits3(x.1)).max(width(&digits3(y.1))).max(7);
    let columns = page.width().saturating_sub(margin + 2).max(8);
    let mut cells: Vec<Vec<Option<(char, Ink)>>> = vec![vec![None; columns]; ROWS];
    let share = |v: f64, r: (f64, f64)| (v - r.0) / (r.1 - r.0);
    for ((mark, energy, metric), efficient) in points.iter().zip(efficient) {
        let row = ((1.0 - share(*metric, y)) * (ROWS - 1) as f64).round() as usize;
        let at = (share(*energy, x) * (columns - 2) as f64).round() as usize;
        let ink = if efficient { Ink::Good } else { Ink::Bad };
        let row = &mut cells[row.min(ROWS - 1)];
        let free = (at..columns).find(|i| row[*i].is_none());
        if let (Some(i), Some(mark)) = (free, mark.chars().next()) {
            row[i] = Some((mark, ink));
        }
    }
    let (metric, unit, _) = &group[0].metrics[0];
    page.line(Line::new().ink(Ink::Dim, format!("{}{}", metric.name, unit.as_str())));
    for (i, row) in cells.iter().enumerate() {
        let value = y.1 - (y.1 - y.0) * i as f64 / (ROWS - 1) as f64;
        let mark = if i % 4 == 0 || i + 1 == ROWS { digits3(value) } else { String::new() };
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
    let (low, high) = (digits3(x.0), format!("{} mJ", digits3(x.1)));
    let gap = columns.saturating_sub(width(&low) + width(&high));
    let text = format!("{}{low}{}{high}", " ".repeat(margin + 2), " ".repeat(gap));
    page.line(Line::new().ink(Ink::Dim, text));
}
