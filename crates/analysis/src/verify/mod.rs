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

mod checks;
mod curve;
mod phased;

pub use checks::{Check, Comparison, Mode, compare};
pub use curve::{Curve, Stretch};
pub use phased::{Phase, Phased};

/// One experiment of a set, judged in both modes.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The experiment's name.
    pub name: String,
    /// What its policy sets, `+key=value…`.
    pub settings: String,
    /// How many checks must hold in each mode.
    pub wanted: usize,
    /// Decisions fed in.
    pub given: Comparison,
    /// Everything decided by the candidate.
    pub free: Comparison,
}

impl Judged {
    /// Whether both modes hold as many checks as are wanted.
    pub fn holds(&self) -> bool {
        self.given.held().min(self.free.held()) >= self.wanted
    }
}

/// A deliberately wrong simulator, and what has exposed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Caught {
    /// Its name.
    pub name: &'static str,
    /// What is wrong with it.
    pub about: &'static str,
    /// Where: experiment, mode, the check as it fails it. `None`: nothing tells it from the true
    /// simulator.
    pub by: Option<(String, Mode, Check)>,
    /// How many checks of the whole set it fails that the true simulator passes.
    pub failed: usize,
}
