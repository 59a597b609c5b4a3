//! Results as a [`Chart`](crate::chart::Chart): one file a command.

mod advice;
mod causes;
mod compared;
mod history;
mod pareto;
mod run;
mod study;
mod sweep;
mod verified;

pub use advice::advice;
pub use causes::causes;
pub use compared::compared;
pub use history::history;
pub use run::{Followed, runs};
pub use study::study;
pub use sweep::sweep;
pub use verified::{spread, verified};

use crate::chart::Mark;
use risetime_analysis::compare::Estimate;

/// A place from two estimates.
fn mark(x: &Estimate, y: &Estimate, label: String) -> Mark {
    Mark { x: x.median, y: y.median, x_range: x.interval, y_range: y.interval, label }
}
