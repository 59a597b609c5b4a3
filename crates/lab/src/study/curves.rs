//! The curves of a figure: what its lists print, what its plot draws, and ours over the phases.
//!
//! A list of residencies is a curve: each value holds for its time, one after the other.

use super::climb::Climb;
use super::measure::{Phases, t0, util_after};
use crate::run::Run;
use risetime_analysis::study::{CurvePair, JudgedRow, median};
use risetime_model::study::{At, Figure, List, Quantity, Row};

/// Points of a measured curve.
const POINTS: u32 = 300;

/// Util, and frequency if the document prints it; util_est where it is about its climb.
pub(super) fn pairs(figure: &Figure, runs: &Phases, rows: &[JudgedRow]) -> Vec<CurvePair> {
    let listed = |quantity, scale: f64| -> Vec<(f64, f64)> {
        let of = |l: &&List| l.quantity == quantity;
        steps(figure.lists.iter().filter(of).flat_map(|l| &l.rows), scale)
    };
    let util = listed(Quantity::UtilResidency, 1.0);
    let freq = listed(Quantity::FreqResidency, 1e-6);
    let ends = [util.last(), freq.last(), figure.drawn.last()];
    let end = ends.into_iter().flatten().map(|p| p.0).fold(0.0, f64::max);
    let mut pairs = Vec::new();
    pairs.extend(climb(figure, runs, rows));
    if !util.is_empty() || !figure.drawn.is_empty() {
        let drawn = figure.drawn.clone();
        let measured = band(runs, end, &util_after);
        pairs.push(CurvePair { what: "util_avg", listed: util, drawn, measured });
    }
    // A list of the big CPU alone starts at a time that the document does not print.
    let both = figure.lists.iter().filter(|l| l.quantity == Quantity::FreqResidency).count() > 1;
    if both {
        let measured = band(runs, end, &ghz_after);
        pairs.push(CurvePair { what: "GHz", listed: freq, drawn: Vec::new(), measured });
    }
    pairs
}

/// Wanted and ours by the time from the onset, and mainline's util_avg as the points beside them.
fn climb(figure: &Figure, runs: &Phases, rows: &[JudgedRow]) -> Option<CurvePair> {
    let ms = |ticks: f64| (ticks - 1.0) * runs.tick_ms;
    let of = |l: &&List| l.quantity == Quantity::EstTicks;
    let wanted = figure.lists.iter().filter(of).flat_map(|l| &l.rows);
    let point = |r: &Row| match &r.at {
        At::Number(util) => Some((ms(r.published.value), util.value)),
        At::Name(_) => None,
    };
    let listed: Vec<(f64, f64)> = wanted.filter_map(point).collect();
    let beside = rows.iter().filter(|r| r.list.starts_with(Quantity::AvgTicks.as_str()));
    let point = |r: &JudgedRow| Some((ms(r.measured?), r.at.parse().ok()?));
    let drawn: Vec<(f64, f64)> = beside.filter_map(point).collect();
    let end = listed.iter().chain(&drawn).map(|p| p.0).fold(0.0, f64::max);
    let at = |i: u32| {
        let after = end * f64::from(i) / f64::from(POINTS);
        let value = |(run, climb): (&Run, &Climb)| {
            Some(climb.est_at(climb.onset(t0(run)?)? + after)? as f64)
        };
        let all = runs.runs.iter().zip(&runs.climbs).filter_map(value).collect();
        spread(after, all)
    };
    let measured = (0..=POINTS).filter_map(at).collect();
    (!listed.is_empty()).then_some(CurvePair { what: "util_est", listed, drawn, measured })
}

fn steps<'a>(rows: impl Iterator<Item = &'a Row>, scale: f64) -> Vec<(f64, f64)> {
    let mut at = 0.0;
    let mut points = Vec::new();
    for row in rows {
        let At::Number(value) = &row.at else { continue };
        points.push((at, value.value * scale));
        at += row.published.value;
        points.push((at, value.value * scale));
    }
    points
}

/// Smallest, median and largest of the phases at each moment up to `end`.
fn band(
    runs: &Phases,
    end: f64,
    value: &dyn Fn(&Run, f64) -> Option<f64>,
) -> Vec<(f64, f64, f64, f64)> {
    let at = |i: u32| {
        let ms = end * f64::from(i) / f64::from(POINTS);
        spread(ms, runs.runs.iter().filter_map(|r| value(r, ms)).collect())
    };
    (0..=POINTS).filter_map(at).collect()
}

/// At `ms`: smallest, median, largest.
fn spread(ms: f64, mut all: Vec<f64>) -> Option<(f64, f64, f64, f64)> {
    all.sort_by(f64::total_cmp);
    Some((ms, *all.first()?, median(&all)?, *all.last()?))
}

/// The frequency that the task has `ms` after t0.
fn ghz_after(run: &Run, ms: f64) -> Option<f64> {
    let at = t0(run)? + ms;
    let timeline = run.timeline.as_ref()?;
    let n = timeline.cpu.partition_point(|(t, _)| *t <= at);
    let cpu = timeline.cpu.get(n.checked_sub(1)?)?.1?;
    let freq = &timeline.freq.iter().find(|(c, _)| *c == cpu)?.1;
    let n = freq.partition_point(|(t, _)| *t <= at);
    Some(freq.get(n.checked_sub(1)?)?.1.0 as f64 / 1e6)
}
