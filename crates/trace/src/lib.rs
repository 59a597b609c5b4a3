//! Traces: the one language between backends and analyses.
//!
//! A backend pushes a [`Header`] and then timed [`Event`]s into a [`TraceSink`]; analyses,
//! writers and the in-memory trace are all sinks, so a long run streams in bounded memory.
//! A sink cannot know who made the events.

mod backend;
mod beside;
mod event;
mod header;
mod hears;
pub mod jobs;
mod memory;
mod parts;
pub mod recording;
mod sink;
mod threads;
pub mod tracker;
mod why;
mod window;
pub mod write;

pub use backend::Backend;
pub use beside::beside;
pub use event::{Event, Kind};
pub use header::{
    Asked, BackendKind, BalanceMemory, Clock, Header, IdleMemory, Image, MachineInfo, Origin,
    PeriodMemory, RqMemory, Run, Signal, Whence,
};
pub use hears::Hears;
pub use memory::Memory;
pub use parts::{
    FreqLook, IdleType, LastSleep, Limit, MenuSelect, PressureClass, QuotaStat, SwitchOut,
};
pub use risetime_model::Name;
pub use sink::{Tee, TraceSink};
pub use threads::{Role, Thread, Threads};
pub use why::Why;
pub use window::Window;

use risetime_kernel::units::Instant;

/// Outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Time at which the run ended.
    pub end: Instant,
    /// Number of events that were pushed.
    pub events: u64,
    /// Notes for the reader of this run: settings without effect, approximations.
    pub notes: Vec<String>,
    /// Interrupts of the CPUs' timers, ticks among them; `None`: nobody counted them.
    pub timer_interrupts: Option<u64>,
}

/// Reason for which a run could not be carried out or finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The experiment cannot be run as asked: bad input (exit code 2).
    Input(risetime_model::InputError),
    /// This backend cannot run here, and what is missing (exit code 3).
    Unavailable(String),
    /// The run went wrong on the way: reason, with seed and time (exit code 1).
    Failed(String),
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RunError::Input(e) => e.fmt(f),
            RunError::Unavailable(s) | RunError::Failed(s) => f.write_str(s),
        }
    }
}

impl std::error::Error for RunError {}

impl RunError {
    /// Returns the kind of the fault, from which the exit status of a command follows.
    pub fn code(&self) -> risetime_model::Code {
        match self {
            RunError::Input(e) => e.code,
            RunError::Unavailable(_) => risetime_model::Code::Unavailable,
            RunError::Failed(_) => risetime_model::Code::Failed,
        }
    }
}

impl From<risetime_model::InputError> for RunError {
    fn from(e: risetime_model::InputError) -> RunError {
        RunError::Input(e)
    }
}
