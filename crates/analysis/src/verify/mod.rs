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

pub use checks::{Check, Comparison, Mode, compare};
pub use curve::{Curve, Stretch};
