//! Metrics over a grid of experiments: what changes with a setting, a platform, a kernel, a key of the workload.

use crate::Measured;
use crate::metric::{Metric, Unit};
use risetime_model::Value;
use risetime_trace::BackendKind;

/// Something that is varied, and the values that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// `rate_limit_us`, `policy`, `ui.run`.
    pub name: String,
    /// Unit of the values, unless the axis' name says it: `%`.
    pub unit: &'static str,
    /// Values as they were asked for, or counted out.
    pub values: Vec<String>,
}

impl Axis {
    /// `dvfs_headroom (%)`.
    pub fn label(&self) -> String {
        match self.unit {
            "" => self.name.clone(),
            unit => format!("{} ({unit})", self.name),
        }
    }

    /// The values as numbers; `None`: not all of them are, or they only name something (6.12 is no
    /// less than 6.8).
    pub fn numbers(&self) -> Option<Vec<f64>> {
        if ["kernel", "seed"].contains(&self.name.as_str()) {
            return None;
        }
        let number = |v: &String| v.parse().ok().filter(|n: &f64| n.is_finite());
        self.values.iter().map(number).collect()
    }
}

/// All that it takes to build an experiment again, as it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// A built-in workload's name, or a file.
    pub workload: String,
    /// Keys of it that are changed, and to what.
    pub changes: Vec<(String, String)>,
    /// A built-in platform's name, or a file.
    pub platform: String,
    /// Ticks a second; `None`: the platform's.
    pub hz: Option<u32>,
    /// `NAME[+key=value…]`.
    pub policy: String,
    /// Settings beside the policy's.
    pub set: Vec<(String, Value)>,
    /// Length of the run; `None`: the workload's own, else what runs last by default.
    pub seconds: Option<f64>,
    /// Seed.
    pub seed: u64,
    /// Number of start phases, the first of which is 0.
    pub phases: u32,
}

/// A point of the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// A value of each axis.
    pub at: Vec<String>,
    /// The experiment that was measured there.
    pub recipe: Recipe,
    /// The command that repeats it.
    pub command: String,
    /// The metrics.
    pub measured: Measured,
}

impl Point {
    /// The workload's own name, whatever of it is varied.
    pub fn workload(&self) -> &str {
        let strip = |name: &'_ str, (key, value): &(String, String)| {
            name.strip_suffix(&format!("+{key}={value}")).unwrap_or(name).len()
        };
        let name = &self.measured.workload;
        let own = |len, change| strip(&name[..len], change);
        &name[..self.recipe.changes.iter().rev().fold(name.len(), own)]
    }
}

/// All points of a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// Settings and keys that were varied.
    pub axes: Vec<Axis>,
    /// Name of the backend that ran it.
    pub backend: BackendKind,
    /// Points in the order of the axes' values, the last axis fastest.
    pub points: Vec<Point>,
}

impl Sweep {
    /// The metrics, which every point has, and what each counts.
    pub fn metrics(&self) -> impl Iterator<Item = (&Metric, Unit)> {
        let first = self.points.first();
        first.into_iter().flat_map(|p| &p.measured.metrics).map(|(m, unit, _)| (m, *unit))
    }

    /// The median of metric `m` at each point; `None`: from no start phase there is one.
    pub fn medians(&self, m: usize) -> Vec<Option<f64>> {
        self.points.iter().map(|p| p.measured.estimate(m).map(|e| e.median)).collect()
    }

    /// The points at which the medians of metric `m` are least and largest, the first on ties, and these medians;
    /// `None`: no point has it.
    pub fn extremes(&self, m: usize) -> Option<[(&Point, f64); 2]> {
        let medians = self.points.iter().zip(self.medians(m));
        let medians: Vec<_> = medians.filter_map(|(p, median)| Some((p, median?))).collect();
        let least = medians.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let largest = medians.iter().rev().max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some([*least, *largest])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_are_of_medians_and_the_first_on_ties() {
        let point = |at: &str, values: &[Option<f64>]| Point {
            at: vec![at.into()],
            recipe: Recipe {
                workload: "w".into(),
                changes: vec![],
                platform: "p".into(),
                hz: None,
                policy: "q".into(),
                set: vec![],
                seconds: None,
                seed: 1,
                phases: 2,
            },
            command: String::new(),
            measured: Measured {
                policy: "q".into(),
                metrics: vec![(Metric::new("energy"), Unit::Energy, values.to_vec())],
                ..Measured::default()
            },
        };
        let axis = |values: &[&str]| Axis {
            name: "a".into(),
            unit: "",
            values: values.iter().map(ToString::to_string).collect(),
        };
        let sweep = Sweep {
            axes: vec![axis(&["1", "2", "3", "4"])],
            backend: BackendKind::Sim,
            points: vec![
                point("1", &[None, None]),
                point("2", &[Some(5.0), Some(7.0)]),
                point("3", &[Some(1.0), None]),
                point("4", &[Some(6.0), Some(6.0)]),
            ],
        };
        let found =
            sweep.extremes(0).map(|both| both.map(|(p, median)| (p.at[0].as_str(), median)));
        assert_eq!(found, Some([("3", 1.0), ("2", 6.0)]));
        assert_eq!((sweep.extremes(1), sweep.medians(0)[0]), (None, None));
        assert_eq!(axis(&["1", "2.5"]).numbers(), Some(vec![1.0, 2.5]));
        assert_eq!(axis(&["1", "inf"]).numbers(), None);
        assert_eq!(Axis { name: "kernel".into(), ..axis(&["6.8"]) }.numbers(), None);
    }
}
