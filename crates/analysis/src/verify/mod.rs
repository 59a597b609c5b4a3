//! Two traces of one experiment held against each other: does the simulator do what the real
//! kernel did?
//!
//! ```text
//! reference trace ─> curve ─┐            util at each tick      time at each OPP
//!                           ├─> checks:  sequence of OPPs       time on each cluster
//! candidate trace ─> curve ─┘            migrations             waiting
//! ```
//!
//! A [`Curve`] is what one task lived through from the start of its burst: its util, the CPU it
//! ran on and that CPU's frequency, as steps in ns. Both curves count from their own t0, so
//! nothing but the start is aligned here.
//!
//! One run is one draw. [`Equivalence`] holds figures over start phases together instead, and says which are the same
//! to a user.

mod checks;
mod curve;
mod phased;
mod spread;
pub mod step;

pub use checks::{CHECKS, Check, Comparison, Mode, compare};
pub use curve::{Curve, Stretch};
pub use phased::{Phase, Phased};
pub use spread::{Equivalence, Figure, MARGIN, Side, Tally, Verdict, all_equivalent};

/// One experiment of a set, judged in both modes from several start phases.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The experiment's name.
    pub name: String,
    /// Settings of the policy, `+key=value…`.
    pub settings: String,
    /// Number of checks that must hold in each mode, in the median start phase.
    pub wanted: usize,
    /// Decisions fed in: one comparison a start phase.
    pub given: Vec<Comparison>,
    /// Everything decided by the candidate.
    pub free: Vec<Comparison>,
}

impl Judged {
    /// Whether both modes hold as many checks as are wanted.
    pub fn holds(&self) -> bool {
        median_held(&self.given).min(median_held(&self.free)) >= self.wanted
    }

    /// Iterates over every comparison.
    pub fn all(&self) -> impl Iterator<Item = &Comparison> {
        self.given.iter().chain(&self.free)
    }
}

/// The number of checks that hold in the median start phase (of an even number the lower one); of
/// none, 0.
///
/// One run is decided by where its ticks and periods fall: a few µs tell which side of a threshold
/// it ends up on.
pub fn median_held(phases: &[Comparison]) -> usize {
    let mut held: Vec<usize> = phases.iter().map(Comparison::held).collect();
    held.sort_unstable();
    held.get(held.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

/// A deliberately wrong simulator, and what has exposed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Caught {
    /// Name of the mutant.
    pub name: &'static str,
    /// Fault of the mutant, in words.
    pub about: &'static str,
    /// Place where it was caught: experiment, mode, the check as it fails it. `None`: nothing tells
    /// it from the true simulator.
    pub by: Option<(String, Mode, Check)>,
    /// Number of checks of the whole set that the mutant fails and the true simulator passes.
    pub failed: usize,
}
