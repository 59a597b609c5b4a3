//! The curves of a figure: what its lists print, what its plot draws, and ours over the phases.
//!
//! A list of residencies is a curve: each value holds for its time, one after the other.

use super::climb::Climb;
use super::measure::{Phases, t0, util_after};
use risetime_analysis::study::{Climbed, CurvePair, JudgedRow, median};
use risetime_lab::Run;
use risetime_model::study::{At, Figure, List, Quantity, Row};

/// Points of a measured curve.
const POINTS: u32 = 300;

/// The curves of util, and of frequency if the document prints it.
pub(super) fn pairs(figure: &Figure, runs: &Phases) -> Vec<CurvePair> {
    let listed = |quantity, scale: f64| -> Vec<(f64, f64)> {
        let of = |l: &&List| l.quantity == quantity;
        steps(figure.lists.iter().filter(of).flat_map(|l| &l.rows), scale)
    };
    let util = listed(Quantity::UtilResidency, 1.0);
    let freq = listed(Quantity::FreqResidency, 1e-6);
    let ends = [util.last(), freq.last(), figure.drawn.last()];
    let end = ends.into_iter().flatten().map(|p| p.0).fold(0.0, f64::max);
    let mut pairs = Vec::new();
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

/// The climb of util_est, if the figure is about it; mainline's beside it.
pub(super) fn climbed(figure: &Figure, runs: &Phases, rows: &[JudgedRow]) -> Option<Climbed> {
    let of = |l: &&List| l.quantity == Quantity::EstTicks;
    let point = |r: &Row| match &r.at {
        At::Number(util) => Some((r.published.value, util.value)),
        At::Name(_) => None,
    };
    let rows_of = |l: &&List| l.rows.iter().filter_map(point).collect::<Vec<_>>();
    let wanted = figure.lists.iter().find(of).map(|l| rows_of(&l))?;
    let measured = |quantity: Quantity| -> Vec<(f64, f64)> {
        let of = |r: &&JudgedRow| r.list.split(' ').next() == Some(quantity.as_str());
        let point = |r: &JudgedRow| Some((r.measured?, r.at.parse().ok()?));
        rows.iter().filter(of).filter_map(point).collect()
    };
    let (speed, mainline) = (measured(Quantity::SpeedTicks), measured(Quantity::AvgTicks));
    let end = wanted.iter().chain(&mainline).map(|p| p.0).fold(1.0, f64::max);
    let after = |tick: u32| {
        let ms = f64::from(tick - 1) * runs.tick_ms;
        let value =
            |(run, climb): (&Run, &Climb)| Some(climb.est_at(climb.onset(t0(run)?)? + ms)? as f64);
        spread(f64::from(tick), runs.runs.iter().zip(&runs.climbs).filter_map(value).collect())
    };
    let util_est = (1..=end.ceil() as u32).filter_map(after).collect();
    Some(Climbed { wanted, util_est, speed, mainline })
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

/// The smallest, median and largest of the phases at each moment up to `end`.
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

/// The point (`x`, smallest, median, largest).
fn spread(x: f64, mut all: Vec<f64>) -> Option<(f64, f64, f64, f64)> {
    all.sort_by(f64::total_cmp);
    Some((x, *all.first()?, median(&all)?, *all.last()?))
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
