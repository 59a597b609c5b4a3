//! From trace events to numbers: response, residency, waiting, energy, response debt.
//!
//! Sees only the trace, so it cannot know who made it. Everything here is a sink: a run of
//! any length is analysed in bounded memory (the plots' [`Timeline`] keeps a bounded number
//! of points too).

mod phases;
mod result;

pub use phases::phases;
pub use result::*;
