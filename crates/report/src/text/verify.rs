//! `risetime verify`: does the simulator do what the real kernel did?
//!
//! ```text
//! verdict    how many of the six checks hold
//! picture    util of both over each other, CPU and GHz of both as lanes below
//! checks     measured against band, and why
//! not read   what of the start could not be aligned
//! ```

use super::Style;
use super::page::{Ink, Page, Table};
use super::plot::{Curve as Drawn, Plot};
use crate::words::one;
use risetime_analysis::verify::{Check, Comparison, Curve};

/// Rows of the picture.
const ROWS: usize = 14;

/// One experiment on simulator and reference.
#[derive(Clone, Copy, Debug)]
pub struct Verified<'a> {
    /// `rampup on m1 under mainline`.
    pub experiment: &'a str,
    /// What the reference was: `Linux 7.2.13 in a virtual machine`.
    pub reference: &'a str,
    /// The checks.
    pub comparison: &'a Comparison,
    /// How many must hold.
    pub wanted: usize,
    /// What the reference lived through.
    pub was: &'a Curve,
    /// What the simulator did.
    pub simulated: &'a Curve,
    /// What of the start could not be read.
    pub unread: &'a [String],
}

/// Does the simulator do what the reference did?
pub fn verify(v: &Verified<'_>, style: &Style) -> String {
    let mut page = Page::new(style);
    let held = v.comparison.held();
    page.hanging(
        "",
        Ink::Title,
        &format!("{} · {} · {}", v.experiment, v.reference, v.comparison.mode.as_str()),
    );
    page.blank();
    let ink = if held >= v.wanted { Ink::Good } else { Ink::Bad };
    let verdict =
        format!("{held} of {} checks hold, {} wanted.", v.comparison.checks.len(), v.wanted);
    page.hanging("", ink, &verdict);
    page.blank();
    picture(&mut page, v);
    page.blank();
    checks(&mut page, &v.comparison.checks);
    if !v.unread.is_empty() {
        page.blank();
        page.paragraph(
            0,
            Ink::Dim,
            &format!("Not read at the start, so not aligned: {}.", v.unread.join("; ")),
        );
    }
    page.finish()
}

fn checks(page: &mut Page<'_>, checks: &[Check]) {
    let mut table = Table::new(["check", "measured", "band", ""]);
    for c in checks {
        let bound = if c.unit == "%" { "≥" } else { "≤" };
        let measured = if c.measured.is_finite() {
            format!("{} {}", one(c.measured), c.unit)
        } else {
            "–".to_string()
        };
        let band = format!("{bound} {} {}", one(c.band), c.unit);
        table.row([
            c.name.to_string(),
            measured,
            band,
            if c.holds { "holds" } else { "FAILS" }.to_string(),
        ]);
    }
    page.table(0, &table);
    page.blank();
    for c in checks {
        page.hanging(&format!("{}: ", c.name), if c.holds { Ink::Dim } else { Ink::Bad }, &c.why);
    }
}

/// Both utils over each other, until both are near the top.
fn picture(page: &mut Page<'_>, v: &Verified<'_>) {
    let points = |c: &Curve| -> Vec<(f64, f64)> {
        c.util.iter().map(|(at, u)| (at.as_ms(), *u as f64)).collect()
    };
    let (was, is) = (points(v.was), points(v.simulated));
    let settled = |p: &[(f64, f64)]| {
        p.iter().find(|(_, u)| *u >= 1000.0).map_or(v.was.length.as_ms(), |(at, _)| *at)
    };
    let end = (settled(&was).max(settled(&is)) * 1.1).clamp(1.0, v.was.length.as_ms().max(1.0));
    let top = was.iter().chain(&is).filter(|p| p.0 <= end).map(|p| p.1).fold(1.0, f64::max);
    Plot {
        title: "util_avg: reference and simulation".to_string(),
        x: (0.0, end),
        y: (0.0, top),
        rows: ROWS,
        y_marks: [1.0, 0.5, 0.0].map(|f| (f * top, format!("{:.0}", f * top))).to_vec(),
        x_unit: "ms",
        curves: vec![
            Drawn { parts: vec![was], ink: Ink::Dim },
            Drawn { parts: vec![is], ink: Ink::Curve },
        ],
        shade: None,
        lanes: vec![],
    }
    .draw(page);
}
