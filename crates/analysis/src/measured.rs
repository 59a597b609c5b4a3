//! Metrics of one experiment over start phases, and how two experiments differ in them.

use crate::compare::Estimate;
use crate::metric::{Metric, Unit};
use risetime_kernel::units::Span;
use risetime_model::Settings;

/// One experiment, run from the same start phases as others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Workload name.
    pub workload: String,
    /// Platform name.
    pub platform: String,
    /// Policy name.
    pub policy: String,
    /// Its settings, resolved.
    pub settings: Settings,
    /// Seed.
    pub seed: u64,
    /// The start phases.
    pub phases: Vec<Span>,
    /// The metrics, each with what it counts and its value from each start phase; `None`: there is none there.
    pub metrics: Vec<(Metric, Unit, Vec<Option<f64>>)>,
    /// Which of these metrics are known to be weak.
    pub cautions: Vec<crate::caution::Caution>,
}

impl Measured {
    /// Median and interval of metric `m` over the start phases that have it.
    pub fn estimate(&self, m: usize) -> Option<Estimate> {
        Estimate::of(self.metrics.get(m)?.2.iter().flatten().copied())
    }

    /// From how many start phases there is no such figure.
    pub fn never(&self, m: usize) -> usize {
        self.metrics.get(m).map_or(0, |(.., values)| values.iter().filter(|v| v.is_none()).count())
    }

    /// The same of what it has more than `other`, phase by phase.
    pub fn difference(&self, other: &Measured, m: usize) -> Option<Estimate> {
        let (own, others) = (&self.metrics.get(m)?.2, &other.metrics.get(m)?.2);
        Estimate::of(own.iter().zip(others).filter_map(|(a, b)| Some((*a)? - (*b)?)))
    }
}

/// A switch of a preset, and what it changes in each metric: all of the preset less the preset without it, and the base
/// with it alone less the base.
#[derive(Clone, Debug, PartialEq)]
pub struct Switched {
    /// `key=value`.
    pub setting: String,
    /// As the last one that is added, metric by metric.
    pub last: Vec<Option<Estimate>>,
    /// Alone.
    pub alone: Vec<Option<Estimate>>,
    /// Whether any run has another figure with it than without it.
    pub acts: bool,
}

/// What the switches of an ablation change: `parts` are its base, its whole, then for each switch the whole without it and the
/// base with it alone.
pub fn switched(switches: &[String], parts: &[Measured]) -> Vec<Switched> {
    let [base, whole, pairs @ ..] = parts else { return Vec::new() };
    let all = |a: &Measured, b: &Measured| -> Vec<_> {
        (0..base.metrics.len()).map(|m| a.difference(b, m)).collect()
    };
    let switch = |(setting, pair): (&String, &[Measured])| Switched {
        setting: setting.clone(),
        last: all(whole, &pair[0]),
        alone: all(&pair[1], base),
        acts: whole.metrics != pair[0].metrics || pair[1].metrics != base.metrics,
    };
    switches.iter().zip(pairs.chunks_exact(2)).map(switch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_of_pairs() {
        let of = |values: &[Option<f64>]| Measured {
            metrics: vec![(Metric::new("energy"), Unit::Energy, values.to_vec())],
            ..Measured::default()
        };
        let a = of(&[Some(1.0), Some(10.0), None, Some(100.0)]);
        let b = of(&[Some(2.0), Some(12.0), Some(5.0), None]);
        assert_eq!(a.estimate(0).map(|e| (e.n, e.median)), Some((3, 10.0)));
        assert_eq!((a.never(0), b.never(0)), (1, 1));
        assert_eq!(b.difference(&a, 0).map(|e| (e.n, e.median)), Some((2, 1.5)));
        assert_eq!(a.difference(&b, 1), None);
    }
}
