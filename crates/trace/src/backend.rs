//! Backends, which make traces.

use crate::{BackendKind, Outcome, RunError, TraceSink};
use risetime_model::Experiment;

/// Backend, which can carry out an experiment: simulator, virtual machine, this host.
pub trait Backend: Sync {
    /// Returns the kind of the backend.
    fn kind(&self) -> BackendKind;
    /// Runs `experiment` and pushes its trace into `sink`.
    ///
    /// Errors: input that this backend cannot carry out, what is missing here, what went wrong.
    fn run(&self, experiment: &Experiment, sink: &mut dyn TraceSink) -> Result<Outcome, RunError>;
    /// Returns a word for all that the trace of `experiment` depends on: the same word, the same trace. `None`: it is not
    /// known, or the trace costs nothing.
    ///
    /// Errors: those that [`run`](Backend::run) would have before it begins.
    fn identity(&self, _experiment: &Experiment) -> Result<Option<String>, RunError> {
        Ok(None)
    }
}
