//! `risetime verify --mode step`: how often does the simulator decide as the kernel did?
//!
//! ```text
//! decisions   by kind: how many were comparable, how many a real choice, how many of these alike
//! state       by value: how often it was the same when the decision was asked for
//! differs     decisions that differ alike, the most frequent of a kind first, each with an example
//! ```

use super::Style;
use crate::page::{Doc, Ink, Page, Table};
use crate::words::one;
use risetime_analysis::verify::step::{Decision, Difference, MOVES_WANTED, Stepped, bounds};
use risetime_kernel::units::Instant;

/// The page of all decisions of one experiment, or of several.
pub fn verify_step(name: &str, reference: &str, found: &Stepped, style: &Style) -> Doc {
    let mut page = Page::new(style);
    page.title(format!("{name} · {reference} · step"), "");
    page.blank();
    let heads =
        ["decision", "asked", "comparable", "real choice", "alike", "wanted", "(95 %)", "trivial"];
    let mut table = Table::new(heads);
    let share = |n: u64, of: u64| match of {
        0 => "-".to_string(),
        _ => format!("{} %", one(100.0 * n as f64 / of as f64)),
    };
    let ink = |holds: bool| Some(if holds { Ink::Good } else { Ink::Bad });
    for (decision, row) in &found.rows {
        let wanted = decision.wanted();
        table.inked(
            ink(row.holds(wanted)),
            [
                decision.as_str().to_string(),
                row.asked.to_string(),
                share(row.comparable, row.asked),
                row.real.to_string(),
                share(row.agree, row.real),
                format!("{wanted} %"),
                confidence(row.agree, row.real),
                share(row.trivial, row.real),
            ],
        );
    }
    let moves = &found.moves;
    let pairs = [
        ("balancing recall", moves.given, moves.recalled),
        ("balancing precision", moves.own, moves.precise),
    ];
    for (what, of, n) in pairs {
        let holds = 100 * n >= MOVES_WANTED * of;
        let (all, part) = (of.to_string(), share(n, of));
        let wanted = format!("{MOVES_WANTED} %");
        let sure = confidence(n, of);
        let row = [what.into(), all.clone(), String::new(), all, part, wanted, sure, String::new()];
        table.inked(ink(holds), row);
    }
    page.table(0, table);
    page.blank();
    let heads =
        ["state", "compared", "the same", "near", "wanted", "9 of 10 off by at most", "at most"];
    let mut table = Table::new(heads);
    for state in &found.states {
        let wanted = state.wanted();
        table.inked(
            wanted.and_then(|_| ink(state.holds())),
            [
                state.what.to_string(),
                state.compared.to_string(),
                share(state.equal, state.compared),
                share(state.near, state.compared),
                wanted.map_or("-".into(), |wanted| format!("{wanted} %")),
                state.p90.to_string(),
                state.most.to_string(),
            ],
        );
    }
    page.table(0, table);
    page.blank();
    differences(&mut page, found);
    page.paragraph(
        0,
        Ink::Dim,
        "A real choice: at least two CPUs allowed, two tasks runnable, or a request that changes the OPP on either \
         side. In brackets: the bounds of the share with 95 % confidence (Wilson). Balancing: of the moves made there those wanted here (recall), and the reverse. Trivial: the previous CPU, whoever waits longest, the shallowest idle state, always preempting. Cause: \
         time, alike a tick earlier or later; state, something that belongs to it was found off just before; reason, neither. Near: no further off than an update a \
         moment earlier or later explains; a signal that is near less often than wanted is a failure of its own, since each \
         decision is asked for from the kernel's state.",
    );
    page.blank();
    page.paragraph(0, Ink::Dim, super::verify::OFF_HERE);
    page.finish()
}

/// The bounds of a share, in words.
fn confidence(n: u64, of: u64) -> String {
    bounds(n, of).map_or("-".into(), |(low, high)| format!("{}–{}", one(low), one(high)))
}

/// Number of groups of alike differences that are shown of each kind.
const GROUPS: usize = 6;

fn differences(page: &mut Page<'_>, found: &Stepped) {
    let grouped = found.grouped();
    for kind in found.rows.keys().chain([&Decision::Move]) {
        let of_kind = grouped.iter().filter(|(alike, _)| alike.decision == *kind);
        for (alike, n) in of_kind.take(GROUPS) {
            let what = format!(
                "{}: here by {}, there {} (cause: {})",
                kind.as_str(),
                alike.reason,
                alike.theirs,
                alike.cause.as_str()
            );
            page.hanging(&format!("{n:>6} × "), Ink::Plain, &what);
            let same = |d: &&Difference| {
                (d.decision, d.cause) == (alike.decision, alike.cause)
                    && (d.reason.as_str(), d.theirs.as_str()) == (alike.reason, alike.theirs)
            };
            if let Some(d) = found.differences.iter().find(same) {
                let ms = one(d.at.0 as f64 / 1e6);
                let example = format!(
                    "{} at {ms} ms, {}: {} here, {} there",
                    d.experiment, d.about, d.own, d.given
                );
                page.paragraph(9, Ink::Dim, &example);
            }
        }
    }
    if !grouped.is_empty() {
        page.blank();
    }
}

/// The first decision that differs, with everything around it.
pub fn verify_first(reference: &str, found: &Stepped, style: &Style) -> Doc {
    let mut page = Page::new(style);
    let Some(first) = found.differences.first() else {
        page.paragraph(0, Ink::Good, "No decision differs.");
        return page.finish();
    };
    let title = format!("{} · {reference} · the first decision that differs", first.experiment);
    page.title(&title, "");
    page.blank();
    let ms = |at: Instant| format!("{:.3}", at.0 as f64 / 1e6);
    for (what, value) in [
        ("decision    ", first.decision.as_str().to_string()),
        ("at          ", format!("{} ms", ms(first.at))),
        ("about       ", first.about.clone()),
        ("here        ", format!("{} ({})", first.own, first.reason)),
        ("there       ", first.given.clone()),
        ("theirs here ", first.theirs.clone()),
        ("cause       ", first.cause.as_str().into()),
    ] {
        page.hanging(what, Ink::Plain, &value);
    }
    page.blank();
    for around in &found.around {
        page.hanging(&format!("{:>12} ms  ", ms(around.at)), Ink::Dim, &around.what);
    }
    page.finish()
}
