//! Metrics of one experiment over start states, and how two experiments differ in them.
//!
//! ```text
//! pairs       the same start state on both sides
//! together    all differences that a page tells: one false among them in at most 5 % of pages
//! beaten      somebody is surely better in one figure, and in no other worse by its median
//! ```

use crate::compare::{Difference, Estimate, Family};
use crate::metric::{Metric, Unit};
use crate::subject::Subject;
use risetime_kernel::units::Span;
use risetime_model::Settings;

/// Start state of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartState {
    /// The workload starts this much later.
    pub phase: Span,
    /// The first task's util when it begins; `None`: what it is.
    pub util: Option<u64>,
    /// Seed of everything that is drawn by chance.
    pub seed: u64,
}

/// One experiment, run from the same start states as others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Workload name.
    pub workload: String,
    /// Platform name.
    pub platform: String,
    /// Policy name.
    pub policy: String,
    /// The experiment's settings, resolved, without the start states'.
    pub settings: Settings,
    /// Seed of the first start state; those of the others follow from it.
    pub seed: u64,
    /// The start states.
    pub starts: Vec<StartState>,
    /// The metrics, each with what it counts and its value from each start state; `None`: there is none there.
    pub metrics: Vec<(Metric, Unit, Vec<Option<f64>>)>,
    /// True for each metric and start state whose value is a lower bound. Empty: none is.
    pub bounds: Vec<Vec<bool>>,
    /// Cautions about these metrics.
    pub cautions: Vec<crate::caution::Caution>,
}

impl Measured {
    /// The median and interval of metric `m` over the start states that have it.
    pub fn estimate(&self, m: usize) -> Option<Estimate> {
        Estimate::of(self.metrics.get(m)?.2.iter().flatten().copied())
    }

    /// Counts the start states for which there is no such figure.
    pub fn never(&self, m: usize) -> usize {
        self.metrics.get(m).map_or(0, |(.., values)| values.iter().filter(|v| v.is_none()).count())
    }

    /// Counts the start states for which the figure is a lower bound.
    pub fn bounds(&self, m: usize) -> usize {
        self.bounds.get(m).map_or(0, |all| all.iter().filter(|bound| **bound).count())
    }

    fn is_bound(&self, m: usize, at: usize) -> bool {
        self.bounds.get(m).and_then(|all| all.get(at)).copied().unwrap_or(false)
    }

    /// The difference to `other` in metric `m`, start state by start state, told by itself.
    pub fn difference(&self, other: &Measured, m: usize) -> Option<Difference> {
        self.difference_in(other, m, Family::ONE)
    }

    /// Computes the difference as [`difference`](Self::difference) does, and takes in the pairs in which `other` alone is a
    /// lower bound if it is no less in any of them: what it has more is at least that, however long it would have gone on.
    /// Where it is less in one of them nobody knows which way that pair goes, and to take in the others alone would choose by
    /// the result.
    pub fn difference_to_bounds(&self, other: &Measured, m: usize) -> Option<Difference> {
        let (own, others) = (&self.metrics.get(m)?.2, &other.metrics.get(m)?.2);
        let pairs = || (0..own.len().min(others.len())).map(|at| (at, own[at], others[at]));
        let alone = |at: usize| other.is_bound(m, at) && !self.is_bound(m, at);
        let more = |(at, a, b): (usize, Option<f64>, Option<f64>)| alone(at) && a > b;
        if pairs().any(more) {
            return self.difference(other, m);
        }
        let known = |at: usize| self.is_bound(m, at) == other.is_bound(m, at) || alone(at);
        let all: Vec<Option<f64>> =
            pairs().map(|(at, a, b)| Some(a? - b?).filter(|_| known(at))).collect();
        let left_out = all.iter().filter(|pair| pair.is_none()).count() as u32;
        Difference::of(all.into_iter().flatten(), left_out, Family::ONE)
    }

    /// The difference to `other` in metric `m`, told together with the others of `family`.
    pub fn difference_in(&self, other: &Measured, m: usize, family: Family) -> Option<Difference> {
        let (own, others) = (&self.metrics.get(m)?.2, &other.metrics.get(m)?.2);
        let pair = |(at, (a, b)): (usize, (&Option<f64>, &Option<f64>))| {
            let alike = self.is_bound(m, at) == other.is_bound(m, at);
            Some((*a)? - (*b)?).filter(|_| alike)
        };
        let all: Vec<Option<f64>> = own.iter().zip(others).enumerate().map(pair).collect();
        let left_out = all.iter().filter(|pair| pair.is_none()).count() as u32;
        Difference::of(all.into_iter().flatten(), left_out, family)
    }
}

/// Experiments side by side, and what they are compared by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compared {
    /// Measurements of one workload on one platform in a group each, the first policy first; of an
    /// ablation its parts ([`switched`]).
    pub groups: Vec<Vec<Measured>>,
    /// Subject of the comparison, for each group; empty: the figures were named.
    pub subjects: Vec<Subject>,
    /// The switches of an ablation.
    pub switches: Vec<Switched>,
    /// The command that repeats it, word by word as a shell reads it.
    pub command: Vec<String>,
}

impl Compared {
    /// The measurements of a group that are shown one by one: of an ablation its base and its
    /// whole.
    pub fn shown<'a>(&self, group: &'a [Measured]) -> &'a [Measured] {
        &group[..if self.switches.is_empty() { group.len() } else { group.len().min(2) }]
    }

    /// The family of all differences that are told, which hold together.
    pub fn family(&self) -> Family {
        let of = |group: &Vec<Measured>| told(group, self.switches.len());
        Family(self.groups.iter().map(of).sum())
    }

    /// The number of start states from which each experiment was run.
    pub fn starts(&self) -> usize {
        self.groups.iter().flatten().next().map_or(0, |one| one.starts.len())
    }
}

/// Counts the differences to its first that a group has, or an ablation of so many switches.
fn told(group: &[Measured], switches: usize) -> usize {
    let rows = if switches > 0 { 1 + 2 * switches } else { group.len().saturating_sub(1) };
    rows * group.first().map_or(0, |one| one.metrics.len())
}

/// Whether nobody of the group beats each: by the differences of every two of them, which hold together.
pub fn efficient(group: &[Measured]) -> Vec<bool> {
    let figures = group.first().map_or(0, |one| one.metrics.len());
    let family = Family(figures * group.len() * group.len().saturating_sub(1) / 2);
    let beats = |one: &Measured, other: &Measured| {
        let worse = |m: usize| {
            let less = one.metrics[m].0.less_is_better()?;
            let d = one.difference_in(other, m, family)?;
            Some((if less { d.median } else { -d.median }, d.is_sure()))
        };
        let all: Vec<(f64, bool)> = (0..figures).filter_map(worse).collect();
        all.iter().all(|(worse, _)| *worse <= 0.0)
            && all.iter().any(|(worse, sure)| *worse < 0.0 && *sure)
    };
    group.iter().map(|one| !group.iter().any(|other| beats(other, one))).collect()
}

/// A switch of a preset, and what it changes in each metric: all of the preset less the preset without it, and the base
/// with it alone less the base.
#[derive(Clone, Debug, PartialEq)]
pub struct Switched {
    /// `key=value`.
    pub setting: String,
    /// Differences that the setting makes as the last one that is added, metric by metric.
    pub last: Vec<Option<Difference>>,
    /// Alone.
    pub alone: Vec<Option<Difference>>,
    /// Whether any run has another figure with it than without it.
    pub acts: bool,
}

/// The effects of the switches of an ablation: `parts` are its base, its whole, then for each
/// switch the whole without it and the base with it alone.
pub fn switched(switches: &[String], parts: &[Measured]) -> Vec<Switched> {
    let [base, whole, pairs @ ..] = parts else { return Vec::new() };
    let family = Family(told(parts, switches.len()));
    let all = |a: &Measured, b: &Measured| -> Vec<_> {
        (0..base.metrics.len()).map(|m| a.difference_in(b, m, family)).collect()
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

    fn of(values: &[Option<f64>]) -> Measured {
        Measured {
            metrics: vec![(Metric::new("energy"), Unit::Energy, values.to_vec())],
            ..Measured::default()
        }
    }

    #[test]
    fn differences_are_of_pairs() {
        let a = of(&[Some(1.0), Some(10.0), None, Some(100.0)]);
        let b = of(&[Some(2.0), Some(12.0), Some(5.0), None]);
        assert_eq!(a.estimate(0).map(|e| (e.n, e.median)), Some((3, 10.0)));
        assert_eq!((a.never(0), b.never(0)), (1, 1));
        let found = b.difference(&a, 0).map(|e| (e.n, e.median, e.left_out));
        assert_eq!(found, Some((2, 1.5, 2)));
        assert_eq!(a.difference(&b, 1), None);
    }

    #[test]
    fn a_lower_bound_is_compared_with_lower_bounds_only() {
        let bound = |values: [f64; 3], bounds: [bool; 3]| Measured {
            bounds: vec![bounds.to_vec()],
            ..of(&values.map(Some))
        };
        let a = bound([10.0, 90.0, 80.0], [false, true, true]);
        let b = bound([14.0, 20.0, 90.0], [false, false, true]);
        let (there, back) = (a.difference(&b, 0).unwrap(), b.difference(&a, 0).unwrap());
        assert_eq!((there.left_out, there.n, there.median), (1, 2, -7.0));
        assert_eq!((back.left_out, back.n, back.median), (1, 2, 7.0));
        assert_eq!((a.bounds(0), b.bounds(0)), (2, 1));
        // What is done is less than what was cut off at more, however long that would have taken.
        let to_bounds = b.difference_to_bounds(&a, 0).expect("three pairs");
        assert_eq!((to_bounds.left_out, to_bounds.n, to_bounds.median), (0, 3, 4.0));
        let from_bounds = a.difference_to_bounds(&b, 0).expect("two pairs");
        assert_eq!((from_bounds.left_out, from_bounds.n), (1, 2));
    }

    #[test]
    fn efficient_is_whom_nobody_surely_beats() {
        let policy = |ms: f64, mj: f64, work: f64| {
            let all = |x: f64| (0..10).map(|i| Some(x + f64::from(i % 3))).collect::<Vec<_>>();
            Measured {
                metrics: vec![
                    (Metric::new("ui.debt"), Unit::Time, all(ms)),
                    (Metric::new("energy"), Unit::Energy, all(mj)),
                    (Metric::new("work"), Unit::Time, all(work)),
                ],
                ..Measured::default()
            }
        };
        let group = [
            policy(90.0, 10.0, 50.0),
            policy(50.0, 20.0, 50.0),
            policy(60.0, 20.0, 50.0),
            policy(5.0, 90.0, 50.0),
        ];
        assert_eq!(efficient(&group), [true, true, false, true]);
        // More work done is worth its energy; the same is no better than itself.
        let group = [policy(50.0, 20.0, 50.0), policy(50.0, 24.0, 60.0), policy(50.0, 20.0, 50.0)];
        assert_eq!(efficient(&group), [true; 3]);
        let unsure: Vec<Measured> = [policy(90.0, 10.0, 50.0), policy(50.0, 9.0, 50.0)]
            .into_iter()
            .map(|mut m| {
                m.metrics.iter_mut().for_each(|(.., values)| values.truncate(5));
                m
            })
            .collect();
        assert_eq!(efficient(&unsure), [true, true], "five pairs prove nothing");
    }
}
