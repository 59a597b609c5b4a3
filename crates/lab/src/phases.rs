//! The same experiment from several start phases.
//!
//! Where a burst starts between two ticks, and between two PELT periods, decides which sample
//! first passes a threshold. Phase k starts k · 7.618 ticks later, which walks through tick and
//! period independently; medians over phases are what a figure should be judged by.

use crate::run::run;
use risetime_analysis::{Options, PhaseSummary, RunResult};
use risetime_kernel::units::Span;
use risetime_model::Experiment;
use risetime_trace::{Backend, RunError};

/// Start phases `0..n` for ticks of `tick`: k · 7.618 ticks, rounded down to ns.
pub fn phase_spans(tick: Span, n: u32) -> impl Iterator<Item = Span> {
    (0..u64::from(n)).map(move |k| Span(k * tick.0 * 7618 / 1000))
}

/// All start phases of one policy.
#[derive(Clone, Debug)]
pub struct PhaseRuns {
    /// One result a phase, in the order of the phases.
    pub runs: Vec<RunResult>,
    /// Medians and spread.
    pub summary: PhaseSummary,
}

/// Runs `experiment` from `n` start phases, counted from its own. `progress` hears of each.
///
/// Errors: the backend's.
pub fn run_phases(
    backend: &dyn Backend,
    experiment: &Experiment,
    n: u32,
    options: &Options,
    mut progress: impl FnMut(u32),
) -> Result<PhaseRuns, RunError> {
    let mut runs = Vec::with_capacity(n as usize);
    for (k, phase) in phase_spans(experiment.platform.tick(), n).enumerate() {
        let one = Experiment {
            phase: experiment.phase + phase,
            duration: experiment.duration + phase,
            ..experiment.clone()
        };
        runs.push(run(backend, &one, options.clone(), None)?.result);
        progress(k as u32 + 1);
    }
    let summary = risetime_analysis::phases(&runs);
    Ok(PhaseRuns { runs, summary })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_walk_through_the_tick() {
        let at: Vec<u64> = phase_spans(Span(1_000_000), 4).map(|s| s.0).collect();
        assert_eq!(at, [0, 7_618_000, 15_236_000, 22_854_000]);
    }
}
