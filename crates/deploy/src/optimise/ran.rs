//! Check of a deployment by a run as its user will run it: beside its proof, the other half of a
//! promise.

use risetime_kernel::units::Span;

/// Runs of a deployment: from several start phases, alone and beside ordinary tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// The kernel, as a policy's name.
    pub policy: String,
    /// Each run is so long from the first activations on.
    pub length: Span,
    /// Number of runs.
    pub runs: u32,
    /// Jobs of graphs that were due within them.
    pub due: u64,
    /// Number of due activations that were not done by then.
    pub missed: u64,
    /// Lateness of the latest of these, in ms, with its graph.
    pub late: Option<(String, f64)>,
    /// The least that was left of a deadline, in ms, and of which graph.
    pub least: Option<(String, f64)>,
    /// The kernel refuses what it asks for.
    pub refused: Option<String>,
}

impl Ran {
    /// Whether jobs were due, and none was missed.
    pub fn kept(&self) -> bool {
        self.due > 0 && self.missed == 0 && self.refused.is_none()
    }
}
