//! `risetime advise`: what a user can change, and what it brings.
//!
//! ```text
//! title      what ran, and the metric as it is
//! first      what to do, and what it brings
//! table      an option a row: metric and energy, each with its change and interval
//! picture    metric against energy, a mark an option
//! lines      by which each is applied, and the commands that repeat the first
//! ```

use super::Style;
use crate::apply;
use crate::page::{Doc, Ink, Line, Page, Table, pad, width};
use crate::words::{digits3, round3, simulated};
use risetime_analysis::Measured;
use risetime_analysis::advice::{Advice, EACH, Gain, PER_JOB, Step, Tried, comparable_energy};
use risetime_analysis::compare::{Difference, Estimate};
use risetime_analysis::metric::Unit;

/// Largest number of options that are shown.
const SHOWN: usize = 8;

/// The page of advice. `command` is the line that runs the experiment as it is; `real`: the first
/// line, on a real kernel.
pub fn advice(
    a: &Advice,
    command: &str,
    real: Option<&(Measured, Measured)>,
    style: &Style,
) -> Doc {
    let mut page = Page::new(style);
    page.title(title(a), "");
    page.blank();
    page.paragraph(0, Ink::Strong, &first(a));
    if let Some(real) = real {
        page.paragraph(0, Ink::Strong, &on_the_kernel(a, real));
    }
    page.blank();
    table(&mut page, a, if a.tried.is_empty() { &a.nearest } else { shown(a) });
    if !a.tried.is_empty() {
        page.blank();
        picture(&mut page, a);
        page.blank();
        lines(&mut page, a);
        page.blank();
        commands(&mut page, a, command);
    }
    page.blank();
    legend(&mut page, a);
    page.cautions(&a.base.cautions);
    page.finish()
}

fn title(a: &Advice) -> String {
    let b = &a.base;
    let from = simulated(&b.settings, a.seed);
    let phases = a.rounds.last().map_or(0, |round| round.phases);
    format!("{} · {} · {} · {from} · {phases} start phases", b.workload, b.platform, b.policy)
}

/// The letter that stands for the option of this number.
pub(crate) fn letter(i: usize) -> char {
    char::from(b'A' + (i % 26) as u8)
}

/// `-48`, of a share in %; `0` has no sign.
fn whole(share: f64) -> String {
    let percent = (share * 100.0).round();
    if percent == 0.0 { "0".into() } else { format!("{percent:+}") }
}

/// `-48 %`.
pub(super) fn percent(share: f64) -> String {
    whole(share) + " %"
}

/// A figure; a count has no decimals unless it is a median between two, and 0 none at all.
pub(super) fn figure(x: f64, unit: Unit) -> String {
    if unit == Unit::Count || x == 0.0 { (round3(x) + 0.0).to_string() } else { digits3(x) }
}

/// The median of measure `m`.
fn median(measured: &Measured, m: usize) -> String {
    let unit = measured.metrics.get(m).map_or(Unit::Count, |metric| metric.1);
    measured.estimate(m).map_or("–".into(), |e| figure(e.median, unit))
}

/// The share that a difference is of `base`; `None`: `base` is 0 or unknown.
pub(super) fn share(difference: f64, base: Option<Estimate>) -> Option<f64> {
    let base = base?.median.abs();
    (base > 0.0).then(|| difference / base)
}

fn first(a: &Advice) -> String {
    let unit = a.unit.as_str();
    let now = median(&a.base, 0);
    let name = &a.metric.name;
    let Some(best) = a.tried.first() else {
        return match a.base.estimate(0) {
            Some(e) if e.median == 0.0 => format!(
                "{name} is 0 as it is: nothing was tried, there is nothing to take a share of."
            ),
            _ => format!(
                "{name}: {now}{unit}. Nothing that was tried makes it better for sure: longer --seconds or more \
                 --phases may tell."
            ),
        };
    };
    let gain = Gain::of(&a.metric, &best.measured, &a.base);
    let then = median(&best.measured, 0);
    let energy =
        best.energy.and_then(|d| share(d.median, a.base.estimate(comparable_energy(&a.base))));
    let each = each(a, best);
    let of = each.as_ref().map_or(String::new(), |(job, _)| format!(" per {job}"));
    let energy = energy.map_or(String::new(), |e| format!(", energy{of} {}", percent(e)));
    let each = each.map_or(String::new(), |(_, e)| format!(", of its own tasks {e}"));
    let change = share(best.metric.median, a.base.estimate(0)).map_or(String::new(), percent);
    let only = match gain {
        Some(gain) if !gain.is_worth() => " Nothing gains 10 % and leaves 90 % of the work done.",
        _ => "",
    };
    format!(
        "{name}: {now}{unit} as it is, {then}{unit} with {} ({change}{energy}{each}).{only}",
        apply::words(&best.steps)
    )
}

/// The job's name, and by how much more energy one of its jobs takes.
fn each<'a>(a: &'a Advice, t: &Tried) -> Option<(&'a str, String)> {
    let (metric, ..) = a.base.metrics.get(EACH)?;
    let d = t.measured.difference(&a.base, EACH)?;
    let job = metric.name.rsplit_once('.')?.0;
    Some((job, percent(share(d.median, a.base.estimate(EACH))?)))
}

/// The sentence on what a real kernel did with the first line.
fn on_the_kernel(a: &Advice, (base, with): &(Measured, Measured)) -> String {
    let change = with.difference(base, 0);
    let found = change.and_then(|d| share(d.median, base.estimate(0))).map_or("–".into(), percent);
    let unit = a.unit.as_str();
    format!(
        "On the real kernel: {}{unit}, then {}{unit} ({found}).",
        median(base, 0),
        median(with, 0)
    )
}

/// `-12…-3 %` of `base`; nothing where there is no interval.
pub(super) fn interval(d: Option<&Difference>, base: Option<Estimate>) -> String {
    let ends =
        d.map(|d| d.interval).and_then(|(low, high)| Some((share(low, base)?, share(high, base)?)));
    ends.map_or(String::new(), |(low, high)| format!("{}…{}", whole(low), whole(high)))
}

/// The options that are shown.
pub(crate) fn shown(a: &Advice) -> &[Tried] {
    &a.tried[..a.tried.len().min(SHOWN)]
}

fn table(page: &mut Page<'_>, a: &Advice, rows: &[Tried]) {
    rows.iter().enumerate().for_each(|(i, t)| {
        page.hanging(&format!("{}  ", letter(i)), Ink::Plain, &apply::words(&t.steps));
    });
    if !rows.is_empty() {
        page.blank();
    }
    let per_job = a.base.metrics.len() > PER_JOB;
    let own = |cells: [String; 2]| cells.into_iter().filter(move |_| per_job);
    let (unit, mj) = (a.unit.as_str().trim(), if per_job { "mJ/job" } else { "mJ" });
    let heads = ["", unit, "change", "95 %", mj, "change", "95 %"].map(String::from);
    let last = ["work", "eff."].map(String::from);
    let own_heads = own(["own mJ".into(), "change".into()]);
    let mut table = Table::new(heads.into_iter().chain(own_heads).chain(last));
    let compared = comparable_energy(&a.base);
    let (metric, energy) = (a.base.estimate(0), a.base.estimate(compared));
    let none = String::new;
    let mj = |m: &Measured| median(m, compared);
    let now = ["0".into(), median(&a.base, 0), none(), none(), mj(&a.base), none(), none()];
    table.row(now.into_iter().chain(own([median(&a.base, EACH), none()])));
    for (i, t) in rows.iter().enumerate() {
        let changed = |d: Option<&Difference>, base| {
            d.and_then(|d| share(d.median, base)).map_or(String::new(), percent)
        };
        let cells = [
            letter(i).to_string(),
            median(&t.measured, 0),
            changed(Some(&t.metric), metric),
            interval(Some(&t.metric), metric),
            mj(&t.measured),
            changed(t.energy.as_ref(), energy),
            interval(t.energy.as_ref(), energy),
        ];
        let each = each(a, t).map_or_else(none, |(_, percent)| percent);
        let last = [
            changed(t.work.as_ref(), a.base.estimate(2)),
            if t.efficient { "yes".into() } else { String::new() },
        ];
        table.row(cells.into_iter().chain(own([median(&t.measured, EACH), each])).chain(last));
    }
    page.table(0, table);
}

/// Rows of the picture.
const ROWS: usize = 8;

/// The metric against energy; where two fall on one place, the later one is beside it.
fn picture(page: &mut Page<'_>, a: &Advice) {
    let compared = comparable_energy(&a.base);
    let of = |m: &Measured| Some((m.estimate(compared)?.median, m.estimate(0)?.median));
    let marks = std::iter::once('0').chain((0..).map(letter));
    let all = std::iter::once(&a.base).chain(shown(a).iter().map(|t| &t.measured));
    let points: Vec<(char, f64, f64)> =
        marks.zip(all).filter_map(|(c, m)| of(m).map(|(x, y)| (c, x, y))).collect();
    if points.len() < 2 {
        return;
    }
    let range = |f: fn(&(char, f64, f64)) -> f64| {
        let (low, high) = (
            points.iter().map(f).fold(f64::INFINITY, f64::min),
            points.iter().map(f).fold(f64::NEG_INFINITY, f64::max),
        );
        if high - low < 1e-9 { (low - 1.0, high + 1.0) } else { (low, high) }
    };
    let (x, y) = (range(|p| p.1), range(|p| p.2));
    let tick = |value| figure(value, a.unit);
    let margin = width(&tick(y.1)).max(width(&tick(y.0))).max(5);
    let columns = page.width().saturating_sub(margin + 2).max(8);
    let mut cells = vec![vec![' '; columns]; ROWS];
    for (mark, energy, metric) in &points {
        let row = ((y.1 - metric) / (y.1 - y.0) * (ROWS - 1) as f64).round() as usize;
        let at = ((energy - x.0) / (x.1 - x.0) * (columns - 2) as f64).round() as usize;
        let row = &mut cells[row.min(ROWS - 1)];
        if let Some(free) = (at..columns).find(|i| row[*i] == ' ') {
            row[free] = *mark;
        }
    }
    let (workload, platform) = (&a.base.workload, &a.base.platform);
    let what = format!("{}{} of {workload} on {platform}", a.metric.name, a.unit.as_str());
    page.line(Line::new().ink(Ink::Dim, what));
    for (i, row) in cells.iter().enumerate() {
        let value = y.1 - (y.1 - y.0) * i as f64 / (ROWS - 1) as f64;
        let label = if i == 0 || i + 1 == ROWS { tick(value) } else { String::new() };
        let text: String = row.iter().collect();
        page.line(Line::new().ink(Ink::Dim, pad(&label, margin, true) + " │").plain(text));
    }
    let axis = format!("{} └{}", " ".repeat(margin), "─".repeat(columns));
    page.line(Line::new().ink(Ink::Dim, axis));
    let mj = if compared == PER_JOB { "mJ/job" } else { "mJ" };
    let (low, high) = (digits3(x.0), format!("{} {mj}", digits3(x.1)));
    let gap = columns.saturating_sub(width(&low) + width(&high));
    let text = format!("{}{low}{}{high}", " ".repeat(margin + 2), " ".repeat(gap));
    page.line(Line::new().ink(Ink::Dim, text));
}

fn lines(page: &mut Page<'_>, a: &Advice) {
    page.line(Line::new().ink(Ink::Strong, "On your system, as root"));
    let lines: Vec<Vec<String>> = shown(a).iter().map(|t| apply::lines(&t.steps)).collect();
    if apply::needs_tids(&lines.concat()) {
        page.line(Line::new().plain(format!("   {}", apply::TIDS)));
    }
    for (i, lines) in lines.iter().enumerate() {
        for (n, line) in lines.iter().enumerate() {
            let head = if n == 0 { format!("{}  ", letter(i)) } else { "   ".into() };
            let words = line.split(' ').map(String::from);
            page.command(&head, Ink::Plain, words);
        }
    }
}

fn commands(page: &mut Page<'_>, a: &Advice, as_it_is: &str) {
    let Some(first) = a.tried.first() else { return };
    let phases = a.rounds.last().map_or(0, |round| round.phases);
    page.line(Line::new().ink(Ink::Strong, "A again, and on a real kernel (beside it as it is)"));
    let mut repeat = apply::again(as_it_is, &first.steps);
    repeat.insert(1, format!("--phases {phases}"));
    page.command("   ", Ink::Plain, repeat.clone());
    repeat.push("--backend vm".into());
    page.command("   ", Ink::Plain, repeat);
}

fn legend(page: &mut Page<'_>, a: &Advice) {
    let rounds: Vec<String> = (a.rounds.iter())
        .map(|r| format!("{} candidates from {} phases of {} s", r.candidates, r.phases, r.seconds))
        .collect();
    let untried = match a.untried {
        0 => String::new(),
        n => format!(" {n} more were not tried: --budget."),
    };
    if a.tried.is_empty() && a.nearest.is_empty() {
        return page.paragraph(
            0,
            Ink::Dim,
            &format!("{} simulations of it as it is; medians.", a.runs),
        );
    }
    let sign = match a.tried.is_empty() {
        true => "the best of the last are shown",
        false => "those of what is shown have one sign",
    };
    let each = match a.base.metrics.len() > PER_JOB {
        true => {
            " mJ/job: all CPUs over the run, by jobs done; own: the CPUs while its tasks ran, by jobs done."
        }
        false => " mJ: all CPUs, the whole run.",
    };
    let text = format!(
        "{} simulations: {}.{untried} {} of the last make no sure difference, or a worse one. Medians; differences are \
         those of the same start phase, their 95 % intervals in % of 0, as it is; {sign}. Work: what all tasks get \
         done.{each}",
        a.runs,
        rounds.join(", "),
        a.unsure
    );
    page.paragraph(0, Ink::Dim, &text);
    if !a.tried.is_empty() {
        page.paragraph(
        0,
        Ink::Dim,
        "A gains at least 10 %, leaves at least 90 % of the work done, and has the least product of time and energy \
         (the gain: the smaller end of its interval); the others follow by what they gain. Eff. (efficient): nobody gains \
         more for less energy with as much work.",
    );
    }
    let clamps = |t: &Tried| {
        let clamp = |step: &Step| match step {
            Step::Workload(change) => {
                change.key.starts_with("util_") || change.key.starts_with("uclamp")
            }
            Step::Setting { .. } => false,
        };
        t.steps.iter().any(clamp)
    };
    if shown(a).iter().any(clamps) {
        let text = "util_min, util_max: a kernel with CONFIG_UCLAMP_TASK (Debian's 6.1 and 6.12 are built without).";
        page.paragraph(0, Ink::Dim, text);
    }
    if !a.left_out.is_empty() {
        page.paragraph(0, Ink::Dim, &format!("Not tried: {}.", a.left_out.join("; ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_sign_of_nothing_and_counts_no_decimals() {
        assert_eq!([-0.003, 0.004, -0.12, 0.018].map(whole), ["0", "0", "-12", "+2"]);
        assert_eq!(percent(-0.004), "0 %");
        let counts = [0.0, 12.0, 2.5].map(|n| figure(n, Unit::Count));
        assert_eq!(counts, ["0", "12", "2.5"]);
        assert_eq!([0.0, 3.0].map(|ms| figure(ms, Unit::Time)), ["0", "3.00"]);
    }
}
