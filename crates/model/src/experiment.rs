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

impl Experiment {
    /// From a start phase later by `by`, and as long from there on.
    pub fn later(&self, by: Span) -> Experiment {
        Experiment { phase: self.phase + by, duration: self.duration + by, ..self.clone() }
    }

    /// What a reader of the results should know, whoever runs it.
    pub fn notes(&self) -> Vec<String> {
        let ignored = &self.workload.without_effect;
        let ignored = ignored.iter().map(|key| format!("without effect: {key}"));
        let rev = self.policy.kernel;
        // Simulator and virtual machine leave the dice out, so that runs can be compared.
        let dice = self.settings.int("ni_random") == Some(1);
        let dice = (rev.has_ni_random() && !dice).then(|| {
            format!(
                "ni_random=0: a CPU that goes idle always looks for work, where Linux {rev} as it comes throws dice about it (NI_RANDOM)"
            )
        });
        ignored.chain(dice).collect()
    }
}
