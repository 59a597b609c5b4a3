//! One experiment: what a backend is given.

use crate::{Platform, Policy, Settings, Workload};
use risetime_kernel::units::Span;
use std::sync::Arc;

/// One run: platform × workload × policy, everything resolved. The same experiment gives the
/// same bytes on a deterministic backend.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The machine.
    pub platform: Arc<Platform>,
    /// What runs on it.
    pub workload: Arc<Workload>,
    /// How it decides.
    pub policy: Policy,
    /// Every setting with its value, resolved for this platform and policy.
    pub settings: Settings,
    /// Length of the run.
    pub duration: Span,
    /// The workload starts this much later.
    pub phase: Span,
    /// Seed of everything drawn by chance.
    pub seed: u64,
}
