//! The least of one figure with which another reaches a goal.
//!
//! ```text
//! reaches    the goal holds from every start phase, and the tasks do at least 90 % of the work that they do now
//! cost       the median of the figure that is to be least
//! first      of all that reach it, the one of least cost
//! ```

use crate::advice::Steps;
use crate::compare::Difference;
use crate::expect::Expectation;
use crate::measured::Measured;
use crate::metric::Metric;

/// Share of all work that is to be done still.
const WORK: f64 = 0.9;

/// Steps that were looked at, from all start phases.
#[derive(Clone, Debug, PartialEq)]
pub struct Reaching {
    /// Changes; empty: none.
    pub steps: Steps,
    /// The goal's figure (0), the one that is to be least (1), work (2).
    pub measured: Measured,
    /// Number of start phases from which the goal holds.
    pub holds: usize,
}

/// The outcome of a search for a goal.
#[derive(Clone, Debug, PartialEq)]
pub struct Sought {
    /// The goal that is to hold.
    pub goal: Expectation,
    /// The metric that is to be least.
    pub least: Metric,
    /// Seed.
    pub seed: u64,
    /// The experiment as it is.
    pub base: Reaching,
    /// Changes that reach the goal, the least cost first.
    pub reaching: Vec<Reaching>,
    /// Changes that were looked at from all start phases and do not reach the goal, the nearest
    /// first.
    pub short: Vec<Reaching>,
    /// Number of changes that were tried, and of those that reach the goal where they were tried.
    pub tried: (usize, usize),
    /// Number of simulations.
    pub runs: u32,
    /// Candidates for which the budget did not suffice.
    pub untried: usize,
    /// Whether the budget ended before everything that may cost less had been looked at.
    pub cut: bool,
    /// Options that were not tried because this kernel lacks them.
    pub left_out: Vec<&'static str>,
}

/// The cost of what was measured; infinite where there is none.
pub fn cost(measured: &Measured) -> f64 {
    measured.estimate(1).map_or(f64::INFINITY, |e| e.median)
}

/// Counts the start phases in which `goal` holds of the measured metric.
pub fn holds(goal: &Expectation, measured: &Measured) -> usize {
    let values = measured.metrics.first().map_or(&[][..], |(.., values)| values);
    values.iter().filter(|value| goal.holds(**value)).count()
}

/// Whether the tasks do as much as under `base`, but for a tenth.
pub fn works(measured: &Measured, base: &Measured) -> bool {
    let work = |m: &Measured| m.estimate(2).map_or(0.0, |e| e.median);
    work(measured) >= WORK * work(base)
}

impl Reaching {
    /// Whether it reaches the goal.
    pub fn reaches(&self, base: &Measured) -> bool {
        self.holds == self.measured.starts.len() && works(&self.measured, base)
    }

    /// The additional cost of this against `other`.
    pub fn dearer(&self, other: &Reaching) -> Option<Difference> {
        self.measured.difference(&other.measured, 1)
    }
}
