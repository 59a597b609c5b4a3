//! Analyses: from trace events to numbers on response, residency, waiting, energy and work lost.
//!
//! Sees only the trace, so it cannot know who made it. Everything here is a sink: a run of
//! any length is analysed in bounded memory (the plots' [`Timeline`] keeps a bounded number
//! of points too).

pub mod absent;
pub mod advice;
mod analyzer;
pub mod caution;
pub mod compare;
mod curve;
#[cfg(test)]
#[path = "../../../tests/draws.rs"]
mod draws;
pub mod expect;
pub mod explain;
mod figures;
pub mod goal;
mod histogram;
pub mod history;
mod jobs;
pub mod known;
mod latency;
mod lead;
mod lost;
mod machine;
mod measured;
pub mod metric;
pub mod named;
mod phases;
mod readings;
mod result;
mod rise;
mod stretch;
pub mod study;
mod subject;
pub mod survey;
pub mod sweep;
mod task;
mod thermal;
pub mod verify;
mod weak;

pub use analyzer::{Analyzer, Lists, Options, Pieces};
pub use jobs::{Jobs, Latest, Missed, Percentiles, WORST};
pub use latency::{By, Distributions, Latency, Waits, WaitsBy, group_name};
pub use lead::is_called;
pub use lost::LOST_STATES;
pub use machine::TOLD_APART;
pub use measured::{Compared, Measured, StartState, Switched, efficient, switched};
pub use phases::phases;
pub use readings::{Kind, Reading, Readings};
pub use result::*;
pub use stretch::{Position, Stretch};
pub use subject::Subject;
