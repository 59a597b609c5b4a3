//! The experiments on which the simulator is held against a real kernel.
//!
//! What they run stands in `cases.rs`: a fixed half and one drawn from a seed.
//!
//! Each states how many of the six checks must hold. The workloads are rt-app's JSON, so that any
//! of them can be copied into a file and run by itself.

use super::verify;
use risetime_analysis::verify::{Comparison, Judged, Mode};
use risetime_kernel::KernelRev;
use risetime_lab::Request;
use risetime_lab::parallel;
use risetime_lab::phase_span;
use risetime_lab::record;
use risetime_model::{Experiment, InputError, Workload};
use risetime_trace::{Backend, Memory, RunError};
use std::sync::Arc;

/// Seed from which the second half is drawn, unless another is asked for. Seeds 1 to 4 were looked
/// at while the simulator was mended, this one not.
pub const SET_SEED: u64 = 5;

/// Number of start phases from which each experiment is run, unless asked for otherwise.
pub const SET_PHASES: u32 = 3;

/// Whether the set holds: every experiment as many checks as it must in the median start phase, and
/// nine tenths of all.
pub fn set_holds(set: &[Judged]) -> bool {
    let both = || set.iter().flat_map(Judged::all);
    let held: usize = both().map(Comparison::held).sum();
    let all: usize = both().map(|c| c.checks.len()).sum();
    set.iter().all(Judged::holds) && 10 * held >= 9 * all
}

/// One experiment of the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// `m1/ramp-cold`: platform and what is done.
    pub name: String,
    /// The platform.
    pub platform: String,
    /// Settings on top of the booted kernel's own policy, `+key=value…`.
    pub settings: String,
    /// rt-app JSON.
    pub workload: String,
    /// Length of the run in ms.
    pub ms: u64,
    /// Number of the six checks that must hold, in each mode.
    pub wanted: usize,
}

impl Case {
    /// Whether the case is drawn: of the half of the set that is, or of the wide draw (`wide`).
    pub fn is_drawn(&self) -> bool {
        self.name.contains("/drawn-") || self.name.starts_with("wide-")
    }

    /// Writes the case as an rt-app JSON file; the command that runs it is in the leading comment.
    pub fn to_file(&self) -> String {
        let mut set: Vec<String> = self
            .settings
            .split('+')
            .filter(|s| !s.is_empty())
            .map(|s| format!(" --set {s}"))
            .collect();
        if !self.settings.contains("+noise=") {
            set.push(" --noise off".into());
        }
        let (s, ms) = (self.ms / 1000, self.ms % 1000);
        format!(
            "// {}, drawn for {}, {} ms\n//\n//   risetime run FILE --platform {} --seconds {s}.{ms:03}{}\n{}\n",
            self.name,
            self.platform,
            self.ms,
            self.platform,
            set.concat(),
            self.workload
        )
    }

    /// The experiment under a kernel of generation `rev`.
    ///
    /// Errors: none for the set's own cases (tested).
    pub fn experiment(&self, rev: Option<KernelRev>) -> Result<Experiment, InputError> {
        let request = Request {
            policies: vec![format!("mainline{}", self.settings)],
            seconds: Some(self.ms as f64 / 1e3),
            ..Request::new("idle", self.platform.clone())
        };
        let workload = Workload::parse(&self.workload, &self.name)?;
        let mut experiments = request.experiments_under(rev)?;
        let experiment = experiments.remove(0);
        Ok(Experiment { workload: Arc::new(workload), ..experiment })
    }
}

/// One experiment of the set with its references.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The recorded case.
    pub case: Case,
    /// Experiments as they were run from each start phase, and what the kernel did.
    pub phases: Vec<(Experiment, Memory)>,
}

impl Recorded {
    /// The simulator held against the reference in both modes.
    ///
    /// Errors: the simulator's.
    pub fn judge(&self) -> Result<Judged, RunError> {
        let held = |mode| -> Result<Vec<Comparison>, RunError> {
            self.phases.iter().map(|(e, was)| Ok(verify(e, was, mode)?.comparison)).collect()
        };
        Ok(Judged {
            name: self.case.name.clone(),
            settings: self.case.settings.clone(),
            wanted: self.case.wanted,
            given: held(Mode::Given)?,
            free: held(Mode::Free)?,
        })
    }
}

/// Runs every case on `reference`, a kernel of generation `rev`, from `phases` start phases, on all
/// cores. `progress` hears how many runs are done.
///
/// Errors: the reference's.
pub fn record_set(
    reference: &(dyn Backend + Sync),
    rev: Option<KernelRev>,
    cases: Vec<Case>,
    phases: u32,
    progress: impl FnMut(usize),
) -> Result<Vec<Recorded>, RunError> {
    let each = phases.max(1) as usize;
    let runs = parallel(cases.len() * each, progress, |i| -> Result<_, RunError> {
        let experiment = cases[i / each].experiment(rev)?;
        let phase = phase_span(experiment.platform.tick(), (i % each) as u32);
        let experiment = experiment.later(phase);
        let trace = record(reference, &experiment)?;
        Ok((experiment, trace))
    })?;
    let mut runs = runs.into_iter();
    let of = |case| Recorded { case, phases: runs.by_ref().take(each).collect() };
    Ok(cases.into_iter().map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::set;

    #[test]
    fn every_case_is_an_experiment_of_its_own() {
        let all = set(SET_SEED);
        for case in &all {
            let e = case.experiment(None).unwrap_or_else(|e| panic!("{}: {e}", case.name));
            assert_eq!(e.platform.name, case.platform);
        }
        let mut names: Vec<_> = all.iter().map(|c| &c.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
        assert_eq!(set(SET_SEED), all, "the same seed, the same set");
        assert_ne!(set(SET_SEED + 1), all);
    }
}
