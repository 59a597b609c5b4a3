//! `risetime advise --goal`: the least of one figure with which another reaches a goal.
//!
//! ```text
//! title      what ran
//! first      what to do, what it costs, and from how many start phases the goal holds
//! table      what was looked at from all start phases, the cheapest that reaches it first; then what does not reach it
//! lines      by which the first is applied, and the command that checks it
//! ```

use super::Style;
use super::advice::{figure, interval, letter, percent, share};
use crate::apply;
use crate::page::{Doc, Ink, Line, Page, Table};
use crate::words::{digits3, simulated};
use risetime_analysis::compare::Difference;
use risetime_analysis::goal::{Reaching, Sought, cost};
use risetime_analysis::metric::Unit;

/// Number of options that are shown, of those that reach the goal and of those that do not.
const SHOWN: (usize, usize) = (6, 3);

/// The page of what reaches a goal at the least cost. `command` is the line that runs the
/// experiment as it is.
pub fn goal(s: &Sought, command: &str, style: &Style) -> Doc {
    let mut page = Page::new(style);
    let b = &s.base.measured;
    let from = simulated(&b.settings, s.seed);
    let n = b.starts.len();
    let title =
        format!("{} · {} · {} · {from} · {n} start phases", b.workload, b.platform, b.policy);
    page.title(&title, "");
    page.blank();
    page.paragraph(0, Ink::Strong, &first(s));
    page.blank();
    table(&mut page, s);
    page.blank();
    lines(&mut page, s, command);
    legend(&mut page, s);
    page.cautions(&b.cautions);
    page.finish()
}

/// Names the changes in words.
fn words(one: &Reaching) -> String {
    if one.steps.is_empty() { "as it is".into() } else { apply::words(&one.steps) }
}

/// The additional cost to the experiment as it is: median and interval, in %.
fn change(s: &Sought, one: &Reaching) -> (String, String) {
    let (d, base) = (one.dearer(&s.base), s.base.measured.estimate(1));
    let median = d.and_then(|d| share(d.median, base)).map_or(String::new(), percent);
    (median, interval(d.as_ref(), base))
}

fn first(s: &Sought) -> String {
    let (goal, least, n) = (&s.goal.text, &s.least.name, s.base.measured.starts.len());
    let now = format!("as it is it holds from {} of {n} start phases", s.base.holds);
    let Some(best) = s.reaching.first() else {
        let near = s.short.first().map_or(String::new(), |one| {
            format!(" The nearest, {}: from {} of {n}.", words(one), one.holds)
        });
        return format!(
            "{goal}: nothing that was tried reaches it from every start phase ({now}).{near}"
        );
    };
    if best.steps.is_empty() {
        return format!(
            "{goal} holds as it is, from all {n} start phases, and nothing that was tried keeps it for less {least}."
        );
    }
    let (change, interval) = change(s, best);
    format!(
        "{goal} with the least {least}: {}. It holds from all {n} start phases, {least} {change} ({interval}); {now}.",
        words(best)
    )
}

/// The options that are shown, those that reach the goal first.
fn shown(s: &Sought) -> impl Iterator<Item = &Reaching> {
    let reaching = s.reaching.iter().filter(|one| !one.steps.is_empty()).take(SHOWN.0);
    reaching.chain(s.short.iter().take(SHOWN.1))
}

fn table(page: &mut Page<'_>, s: &Sought) {
    for (i, one) in shown(s).enumerate() {
        page.hanging(&format!("{}  ", letter(i)), Ink::Plain, &words(one));
    }
    page.blank();
    let unit = |m: usize| s.base.measured.metrics.get(m).map_or(Unit::Count, |metric| metric.1);
    let head = |name: &str, m: usize| format!("{name}{}", unit(m).as_str());
    let heads = ["".into(), "goal holds".into(), head("worst", 0), head(&s.least.name, 1)];
    let heads = heads.into_iter().chain(["change", "95 %", "vs A", "work"].map(String::from));
    let mut table = Table::new(heads);
    let n = s.base.measured.starts.len();
    let best = s.reaching.iter().find(|one| !one.steps.is_empty());
    let rows = std::iter::once(("0".to_string(), &s.base));
    for (mark, one) in rows.chain(shown(s).enumerate().map(|(i, one)| (letter(i).into(), one))) {
        let (change, interval) = match one.steps.is_empty() {
            true => Default::default(),
            false => change(s, one),
        };
        let against = best.filter(|best| *best != one && !one.steps.is_empty());
        let against = against.and_then(|best| one.dearer(best)).map_or(String::new(), against_best);
        let work = one.measured.difference(&s.base.measured, 2);
        let work = work.and_then(|d| share(d.median, s.base.measured.estimate(2)));
        let work = work.filter(|_| !one.steps.is_empty()).map_or(String::new(), percent);
        let mj = one.measured.estimate(1).map_or("–".into(), |e| digits3(e.median));
        let holds = format!("{} of {n}", one.holds);
        table.row([mark, holds, worst(s, one), mj, change, interval, against, work]);
    }
    page.table(0, table);
}

/// `+12.3 sure`: what is dearer than the first.
fn against_best(d: Difference) -> String {
    let sure = if d.is_sure() { " sure" } else { "" };
    crate::words::signed3(d.median) + sure
}

/// The goal's figure from the start phase from which it is furthest from it.
fn worst(s: &Sought, one: &Reaching) -> String {
    let Some((_, unit, values)) = one.measured.metrics.first() else { return String::new() };
    let miss = values.iter().find(|v| !s.goal.holds(**v));
    let all = values.iter().flatten().copied();
    let value = match (s.goal.figure.less_is_better(), miss) {
        (_, Some(None)) => None,
        (Some(false), _) => all.reduce(f64::min),
        _ => all.reduce(f64::max),
    };
    value.map_or("–".into(), |x| figure(x, *unit))
}

fn lines(page: &mut Page<'_>, s: &Sought, command: &str) {
    let Some(first) = s.reaching.iter().find(|one| !one.steps.is_empty()) else { return };
    page.line(Line::new().ink(Ink::Strong, "On your system, as root"));
    let lines = apply::lines(&first.steps);
    if apply::needs_tids(&lines) {
        page.line(Line::new().plain(format!("   {}", apply::TIDS)));
    }
    for (i, line) in lines.iter().enumerate() {
        let head = if i == 0 { "A  " } else { "   " };
        page.command(head, Ink::Plain, line.split(' ').map(String::from));
    }
    page.blank();
    page.line(Line::new().ink(Ink::Strong, "A again, checked"));
    page.command("   ", Ink::Plain, again(s, first, command));
    page.blank();
}

/// The command that runs it from all start phases and expects the goal.
pub(crate) fn again(s: &Sought, one: &Reaching, command: &str) -> Vec<String> {
    let mut words = apply::again(command, &one.steps);
    words.insert(1, format!("--phases {}", s.base.measured.starts.len()));
    let goal = &s.goal.text;
    let goal = goal
        .strip_prefix(whose_not(goal, &s.goal.figure.name))
        .map_or_else(|| goal.clone(), |rest| format!("{}{rest}", s.goal.figure.name));
    words.push(format!("--expect '{goal}'"));
    words
}

/// The figure as `goal` writes it, where that does not say of whom it is.
fn whose_not<'g>(goal: &'g str, figure: &str) -> &'g str {
    let written = goal.split(['<', '>', '=']).next().unwrap_or_default().trim_end();
    if figure.ends_with(&format!(".{written}")) { written } else { "\0" }
}

fn legend(page: &mut Page<'_>, s: &Sought) {
    let (tried, reached) = s.tried;
    let left = match s.untried {
        0 => String::new(),
        n => format!(" {n} more were not tried: --budget."),
    };
    let best = s.reaching.first().map(|one| cost(&one.measured)).filter(|_| !s.cut);
    let least = match (best, s.cut) {
        (_, true) => {
            " The budget ended before all that may cost less had been looked at: --budget."
                .to_string()
        }
        (Some(_), _) => {
            format!(" None of them that reaches it costs less {} than the first.", s.least.name)
        }
        (None, _) => String::new(),
    };
    let text = format!(
        "{tried} changes were tried, {} simulations; {reached} reach the goal where they were tried. Those that cost least were \
         run from all start phases, others than they were chosen by.{least}{left} Changes are medians of the differences at the \
         same start phase, each with its own interval of 95 %; the goal has to hold from every one of them.",
        s.runs
    );
    page.paragraph(0, Ink::Dim, &text);
}
