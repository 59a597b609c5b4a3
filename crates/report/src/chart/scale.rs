//! Scales: from values to places on an axis, and where its ticks are.

use super::{Axis, AxisKind};

/// An axis with its ends.
pub(super) struct Scale {
    from: f64,
    to: f64,
    log: bool,
    /// (value, what stands there).
    pub(super) ticks: Vec<(f64, String)>,
}

impl Scale {
    /// The axis over `values`, with about `wanted` ticks.
    pub(super) fn of(axis: &Axis, values: impl Iterator<Item = f64>, wanted: usize) -> Scale {
        if let AxisKind::Names(names) = &axis.kind {
            let ticks = names.iter().enumerate().map(|(i, name)| (i as f64, name.clone()));
            let to = names.len().max(1) as f64 - 0.5;
            return Scale { from: -0.5, to, log: false, ticks: ticks.collect() };
        }
        let log = axis.kind == AxisKind::Log;
        let counts = values.filter(|v| v.is_finite() && (!log || *v > 0.0));
        let (low, high) = counts
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = if low <= high { (low, high) } else { (1.0, 1.0) };
        match (log, axis.range) {
            (true, range) => Scale::log(range.unwrap_or((low, high)), wanted),
            (false, Some((from, to))) => {
                Scale::even(from, to.max(from + f64::MIN_POSITIVE), wanted, false)
            }
            (false, None) if axis.kind == AxisKind::FromZero => {
                // Nothing but 0 is shown on an axis to 1.
                let high = if low == 0.0 && high == 0.0 { 1.0 } else { high.max(0.0) };
                Scale::even(low.min(0.0), high, wanted, true)
            }
            // A single value has some room on both sides.
            (false, None) if low == high => {
                let margin = if low == 0.0 { 1.0 } else { low.abs() * 0.05 };
                Scale::even(low - margin, high + margin, wanted, true)
            }
            (false, None) => {
                let margin = (high - low) * 0.06;
                Scale::even(low - margin, high + margin, wanted, true)
            }
        }
    }

    fn even(low: f64, high: f64, wanted: usize, round: bool) -> Scale {
        let least = (low.abs().max(high.abs()) * 1e-3).max(1e-6);
        let step = step((high - low).max(least) / wanted.max(1) as f64);
        let (mut from, mut to) = (low, high.max(low + least));
        if round {
            // A quarter of a step: to the next tick there may be much room for nothing.
            let end = step / 4.0;
            (from, to) = ((low / end).floor() * end, (high / end).ceil() * end);
            to = if to > from { to } else { from + step };
        }
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let (first, last) = ((from / step - 1e-6).ceil() as i64, (to / step + 1e-6).floor() as i64);
        let tick = |i: i64| (i as f64 * step, format!("{:.decimals$}", i as f64 * step + 0.0));
        Scale { from, to, log: false, ticks: (first..=last).map(tick).collect() }
    }

    fn log((low, high): (f64, f64), wanted: usize) -> Scale {
        let (low, high) = (low.max(1e-9), high.max(1e-9));
        let decade = |v: f64| v.log10().floor() as i32;
        let at = |d: i32, m: i32| 10f64.powi(d) * f64::from(m);
        let all =
            (decade(low)..=decade(high) + 1).flat_map(|d| [1, 2, 5].map(|m| (at(d, m), d, m)));
        let all: Vec<(f64, i32, i32)> = all.collect();
        let from = all.iter().rev().find(|t| t.0 <= low * 1.0001).map_or(low, |t| t.0);
        let to = all.iter().find(|t| t.0 >= high * 0.9999 && t.0 > from).map_or(high, |t| t.0);
        let inside = |every: i32, all_of: bool| -> Vec<(f64, String)> {
            let here = all.iter().filter(|t| t.0 >= from * 0.9999 && t.0 <= to * 1.0001);
            let kept = here.filter(|t| if all_of { true } else { t.2 == 1 && t.1 % every == 0 });
            kept.map(|t| (t.0, format!("{:.*}", (-t.1).max(0) as usize, t.0))).collect()
        };
        let sparse = (1..).map(|every| inside(every, false)).find(|t| t.len() <= wanted + 2);
        let dense = Some(inside(1, true)).filter(|t| t.len() <= wanted + 2);
        Scale { from, to, log: true, ticks: dense.or(sparse).unwrap_or_default() }
    }

    /// The place of a value on the scale: 0 at its beginning, 1 at its end.
    pub(super) fn share(&self, value: f64) -> f64 {
        if self.log {
            let log = |v: f64| v.max(self.from).log10();
            return (log(value) - log(self.from)) / (log(self.to) - log(self.from));
        }
        (value - self.from) / (self.to - self.from)
    }
}

/// The least of 1, 2, 5 times a power of ten that is not below `x`.
fn step(x: f64) -> f64 {
    let power = 10f64.powf(x.log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|s| s * power);
    steps.into_iter().find(|s| *s >= x * 0.9999).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(axis: Axis, values: &[f64]) -> Vec<String> {
        let scale = Scale::of(&axis, values.iter().copied(), 5);
        scale.ticks.into_iter().map(|t| t.1).collect()
    }

    #[test]
    fn ticks_are_at_round_values_and_few() {
        let axis = || Axis::new("", "");
        assert_eq!(ticks(axis(), &[0.0, 1017.0]), ["0", "500", "1000"]);
        assert_eq!(ticks(axis(), &[-3.0, 9.0]), ["0", "5", "10"]);
        assert_eq!(ticks(axis().range(0.0, 173.4), &[]), ["0", "50", "100", "150"]);
        assert_eq!(
            ticks(axis().kind(AxisKind::Near), &[0.31, 0.33]),
            ["0.310", "0.315", "0.320", "0.325", "0.330"]
        );
        let same = |value| ticks(axis().kind(AxisKind::Near), &[value, value]);
        assert_eq!(same(0.0), ["-1.0", "-0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(same(20.0), ["19.0", "19.5", "20.0", "20.5", "21.0"]);
        assert_eq!(
            ticks(axis().kind(AxisKind::Log), &[0.002, 0.0, 30.0]),
            ["0.01", "0.1", "1", "10"]
        );
        assert_eq!(ticks(axis().kind(AxisKind::Log), &[3.0, 15.0]), ["2", "5", "10", "20"]);
        assert_eq!(ticks(axis(), &[]), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(ticks(axis(), &[f64::NAN, f64::INFINITY, 0.0]), ticks(axis(), &[]));
    }

    #[test]
    fn every_value_has_a_place_on_the_axis() {
        for kind in [AxisKind::FromZero, AxisKind::Near, AxisKind::Log] {
            for values in [&[1.0][..], &[0.0], &[1e-7, 1e7], &[5.0, 5.0, 5.000_001], &[0.004, 3.0]]
            {
                let scale =
                    Scale::of(&Axis::default().kind(kind.clone()), values.iter().copied(), 6);
                for v in values {
                    let share = scale.share(*v);
                    assert!((-1e-9..=1.0 + 1e-9).contains(&share), "{kind:?} {values:?}: {share}");
                }
                assert!(scale.ticks.len() <= 12, "{kind:?} {values:?}: {:?}", scale.ticks);
            }
        }
    }
}
