//! Backends, which make traces.

use crate::{Outcome, RunError, TraceSink};
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

/// A kind of backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// The simulator.
    Sim,
    /// A real kernel in a virtual machine.
    Vm,
    /// This machine.
    Host,
    /// A trace that somebody else took.
    File,
}

impl BackendKind {
    /// All of them.
    pub const ALL: [BackendKind; 4] =
        [BackendKind::Sim, BackendKind::Vm, BackendKind::Host, BackendKind::File];

    /// Returns its word on the command line and in results.
    pub const fn as_str(self) -> &'static str {
        match self {
            BackendKind::Sim => "sim",
            BackendKind::Vm => "vm",
            BackendKind::Host => "host",
            BackendKind::File => "file",
        }
    }

    /// Returns the kind with this word; `None`: there is none.
    pub fn of_word(word: &str) -> Option<BackendKind> {
        BackendKind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Whether each trace tells every frequency and idle state of all CPUs, from its begin on.
    pub const fn tells_cpus(self) -> bool {
        matches!(self, BackendKind::Sim | BackendKind::Vm)
    }

    /// Whether runs are models of a kernel and not one: they repeat themselves, draw chance from the experiment's seed, do not
    /// disturb each other on other cores, and their figures can be off where the model is.
    pub const fn is_simulated(self) -> bool {
        matches!(self, BackendKind::Sim)
    }
}

impl std::fmt::Display for BackendKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
