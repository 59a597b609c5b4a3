//! One experiment on one backend, analysed.

use risetime_analysis::{Analyzer, Options, RunResult, Timeline};
use risetime_model::Experiment;
use risetime_trace::{Backend, Memory, RunError, Tee, TraceSink};

/// A run with its analysis.
#[derive(Clone, Debug)]
pub struct Run {
    /// The numbers.
    pub result: RunResult,
    /// The curves, if asked for.
    pub timeline: Option<Timeline>,
}

/// Runs `experiment` on `backend` and analyses its trace, which also goes into `also`.
///
/// Errors: the backend's.
pub fn run(
    backend: &dyn Backend,
    experiment: &Experiment,
    options: Options,
    also: Option<&mut dyn TraceSink>,
) -> Result<Run, RunError> {
    let mut analyzer = Analyzer::new(options);
    let outcome = match also {
        Some(sink) => backend.run(experiment, &mut Tee(&mut analyzer, sink))?,
        None => backend.run(experiment, &mut analyzer)?,
    };
    let (mut result, timeline) = analyzer.finish();
    result.notes.extend(outcome.notes);
    Ok(Run { result, timeline })
}

/// Runs `experiment` on `backend` and keeps its trace.
///
/// Errors: the backend's.
pub fn record(backend: &dyn Backend, experiment: &Experiment) -> Result<Memory, RunError> {
    let mut memory = Memory::new();
    backend.run(experiment, &mut memory)?;
    Ok(memory)
}
