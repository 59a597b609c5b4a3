//! `risetime verify`: does the simulator do what the real kernel did?
//!
//! ```text
//! verdict    how many of the six checks hold
//! picture    util of both over each other, CPU and GHz of both as lanes below
//! checks     measured against band, and why
//! not read   what of the start could not be aligned
//! set        every experiment of the set: how many checks hold, and which do not
//! mutants    wrong simulators, and what exposes each
//! ```

use super::Style;
use crate::page::{Block, Curve as Drawn, Doc, Ink, Line, Page, Plot, Table};
use crate::words::one;
use risetime_analysis::verify::{
    Caught, Check, Comparison, Curve, Judged, Mode, Phased, median_held,
};
use risetime_kernel::units::Span;

/// Rows of the picture.
const ROWS: usize = 14;

/// One experiment on simulator and reference.
#[derive(Clone, Copy, Debug)]
pub struct Verified<'a> {
    /// `rampup on m1 under mainline`.
    pub experiment: &'a str,
    /// Kind of the reference: `Linux 7.2.13 in a virtual machine`.
    pub reference: &'a str,
    /// The checks.
    pub comparison: &'a Comparison,
    /// Number of checks that must hold.
    pub wanted: usize,
    /// Curve of the reference.
    pub was: &'a Curve,
    /// Curve of the simulator.
    pub simulated: &'a Curve,
    /// Parts of the start state that could not be read.
    pub unread: &'a [String],
}

/// The page of a verification: whether the simulator does what the reference did.
pub fn verify(v: &Verified<'_>, style: &Style) -> Doc {
    let mut page = Page::new(style);
    let held = v.comparison.held();
    page.title(format!("{} · {} · {}", v.experiment, v.reference, v.comparison.mode.as_str()), "");
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
    one_course(&mut page, v.comparison.mode);
    page.blank();
    page.paragraph(0, Ink::Dim, OFF_HERE);
    page.finish()
}

/// The defaults of `run` that are off where something is held to the virtual machine.
pub(super) const OFF_HERE: &str = "By default `run` has what this has not: the noise of a real machine (`machine`: here `vm`'s, with --mode step \
     none); with --mode step, --record, --mutants and --idle-times off also the time to leave an idle state (exit_latency_us).";

/// Writes what the checks of a free simulator cannot say, and which mode can.
fn one_course(page: &mut Page<'_>, mode: Mode) {
    if mode == Mode::Free {
        page.blank();
        page.paragraph(0, Ink::Dim, ONE_COURSE);
    }
}

/// The note that checks follow one course of events.
const ONE_COURSE: &str = "Free checks follow one course of events, which a microsecond changes on a kernel, too. Are the \
                          figures that you read right? `--mode spread` judges those, over start phases.";

/// The page of one experiment from several start phases: how long until full speed, on both sides.
pub fn verify_phases(
    experiment: &str,
    reference: &str,
    mode: Mode,
    phased: &Phased,
    style: &Style,
) -> Doc {
    let mut page = Page::new(style);
    let title = format!(
        "{experiment} · {reference} · {} · {} start phases",
        mode.as_str(),
        phased.phases.len()
    );
    page.title(&title, "");
    page.blank();
    let ms = |x: Option<f64>| x.map_or("never".to_string(), one);
    let mut table = Table::new(["start phase µs", "top OPP after ms", "simulated", "checks"]);
    for p in &phased.phases {
        let span = |s: Option<Span>| ms(s.map(Span::as_ms));
        let held = format!("{}/{}", p.comparison.held(), p.comparison.checks.len());
        let phase = format!("{}", p.phase.0 / 1000);
        table.row([phase, span(p.reference), span(p.candidate), held]);
    }
    let (was, is) = phased.medians_ms();
    table.row(["median".to_string(), ms(was), ms(is), String::new()]);
    page.table(0, table);
    page.blank();
    let apart = phased.deviation_pct();
    let apart =
        apart.map_or("only one of them comes to the top".into(), |d| format!("{} % apart", one(d)));
    let ink = if phased.holds() { Ink::Good } else { Ink::Bad };
    let fewest = phased.phases.iter().map(|p| p.comparison.held()).min().unwrap_or(0);
    page.hanging(
        "",
        ink,
        &format!(
            "The medians are {apart}, {} % may be; at least {fewest} checks hold in each phase, {} \
             wanted.",
            one(phased.band_pct()),
            phased.wanted
        ),
    );
    one_course(&mut page, mode);
    page.finish()
}

/// The set of experiments: who holds how many checks, and what fails.
pub fn verify_set(
    reference: &str,
    set: &[Judged],
    outside: &[(&str, &str)],
    holds: bool,
    style: &Style,
) -> Doc {
    let mut page = Page::new(style);
    let phases = set.first().map_or(1, |j| j.given.len());
    let each = if phases == 1 { String::new() } else { format!(" · {phases} start phases each") };
    page.title(format!("{} experiments · {reference}{each}", set.len()), "");
    page.blank();
    let mut table = Table::new(["experiment", "given", "free", "wanted", ""]);
    for j in set {
        let of = |c: &[Comparison]| {
            let held = || c.iter().map(Comparison::held);
            let (low, high) = (held().min().unwrap_or(0), held().max().unwrap_or(0));
            let checks = c.first().map_or(0, |c| c.checks.len());
            let range = if low == high { String::new() } else { format!(" ({low} to {high})") };
            format!("{}/{checks}{range}", median_held(c))
        };
        let verdict = if j.holds() { "holds" } else { "FAILS" };
        let wanted = format!("{}", j.wanted);
        table.row([j.name.clone(), of(&j.given), of(&j.free), wanted, verdict.to_string()]);
    }
    page.table(0, table);
    page.blank();
    for j in set {
        for (k, c) in j.given.iter().enumerate().chain(j.free.iter().enumerate()) {
            for check in c.checks.iter().filter(|c| !c.holds) {
                let phase = if phases == 1 { String::new() } else { format!(", phase {k}") };
                let label = format!("{}, {}{phase}, {}: ", j.name, c.mode.as_str(), check.name);
                page.hanging(&label, Ink::Dim, &check.why);
            }
        }
    }
    page.blank();
    let both = || set.iter().flat_map(Judged::all);
    let held: usize = both().map(Comparison::held).sum();
    let all: usize = both().map(|c| c.checks.len()).sum();
    let share = 100.0 * held as f64 / all.max(1) as f64;
    let good = set.iter().filter(|j| j.holds()).count();
    page.hanging(
        "",
        if holds { Ink::Good } else { Ink::Bad },
        &format!(
            "{held} of {all} checks hold ({} %, 90 wanted); {good} of {} experiments hold as many \
             as they must.",
            one(share),
            set.len()
        ),
    );
    if !outside.is_empty() {
        page.blank();
        page.line(Line::new().plain("Outside the set (--experiment NAME runs them):"));
        for (name, cause) in outside {
            page.hanging(&format!("  {name}: "), Ink::Dim, cause);
        }
    }
    one_course(&mut page, Mode::Free);
    page.finish()
}

/// The wrong simulators, and what exposes each.
pub fn mutants(reference: &str, caught: &[Caught], style: &Style) -> Doc {
    let mut page = Page::new(style);
    page.title(format!("{} wrong simulators · {reference}", caught.len()), "");
    page.blank();
    let mut table = Table::new(["mutant", "checks failed", "exposed by", "mode", "check"]);
    for c in caught {
        let (by, mode, check) = match &c.by {
            Some((by, mode, check)) => (by.as_str(), mode.as_str(), check.name),
            None => ("nothing: equivalent", "", ""),
        };
        table.row([c.name, &c.failed.to_string(), by, mode, check].map(str::to_string));
    }
    page.table(0, table);
    page.blank();
    for c in caught {
        let why = c.by.as_ref().map_or("", |(_, _, check)| check.why.as_str());
        page.hanging(&format!("{}: ", c.name), Ink::Dim, &format!("{}. {why}", c.about));
    }
    page.blank();
    let found = caught.iter().filter(|c| c.by.is_some()).count();
    let ink = if found == caught.len() { Ink::Good } else { Ink::Bad };
    page.hanging("", ink, &format!("{found} of {} caught.", caught.len()));
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
    page.table(0, table);
    page.blank();
    for c in checks {
        page.hanging(&format!("{}: ", c.name), if c.holds { Ink::Dim } else { Ink::Bad }, &c.why);
    }
}

/// Draws both utils over each other, until both are near the top.
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
    page.put(Block::Plot(Plot {
        title: "util_avg: reference and simulation".to_string(),
        x: (0.0, end),
        y: (0.0, top),
        rows: ROWS,
        y_marks: [1.0, 0.5, 0.0].map(|f| (f * top, format!("{:.0}", f * top))).to_vec(),
        x_unit: "ms".into(),
        curves: vec![
            Drawn { parts: vec![was], ink: Ink::Dim },
            Drawn { parts: vec![is], ink: Ink::Curve },
        ],
        shade: None,
        lanes: vec![],
    }));
}
