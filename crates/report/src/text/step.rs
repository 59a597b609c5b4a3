//! `risetime verify --mode step`: how often does the simulator decide as the kernel did?
//!
//! ```text
//! decisions   by kind: how many were comparable, how many a real choice, how many of these alike
//! state       by value: how often it was the same when the decision was asked for
//! ```

use super::Style;
use super::page::{Ink, Page, Table};
use crate::words::one;
use risetime_analysis::verify::step::{MOVES_WANTED, Stepped};

/// All decisions of one experiment, or of several.
pub fn verify_step(name: &str, reference: &str, found: &Stepped, style: &Style) -> String {
    let mut page = Page::new(style);
    page.hanging("", Ink::Title, &format!("{name} · {reference} · step"));
    page.blank();
    let heads = ["decision", "asked", "comparable", "real choice", "alike", "wanted", "trivial"];
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
                share(row.trivial, row.real),
            ],
        );
    }
    let moves = &found.moves;
    let pairs = [
        ("moves made there, wanted here", moves.given, moves.recalled),
        ("moves wanted here, made there", moves.own, moves.precise),
    ];
    for (what, of, n) in pairs {
        let holds = 100 * n >= MOVES_WANTED * of;
        let (all, part) = (of.to_string(), share(n, of));
        let wanted = format!("{MOVES_WANTED} %");
        let row = [what.into(), all.clone(), String::new(), all, part, wanted, String::new()];
        table.inked(ink(holds), row);
    }
    page.table(0, &table);
    page.blank();
    let mut table =
        Table::new(["state", "compared", "the same", "9 of 10 off by at most", "at most"]);
    for state in &found.states {
        table.row([
            state.what.to_string(),
            state.compared.to_string(),
            share(state.equal, state.compared),
            state.p90.to_string(),
            state.most.to_string(),
        ]);
    }
    page.table(0, &table);
    page.blank();
    page.paragraph(
        0,
        Ink::Dim,
        "A real choice: at least two CPUs allowed, two tasks runnable, or a request that changes the OPP on either \
         side. Trivial: the previous CPU, whoever waits longest, the shallowest idle state, always preempting.",
    );
    page.finish()
}
