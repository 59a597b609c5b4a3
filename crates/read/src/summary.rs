//! Choices for a file that is read, and the summary of it.

use risetime_kernel::units::Instant;
use risetime_model::Platform;
use risetime_trace::Thread;
use std::sync::Arc;

/// Choices of whoever reads a trace.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Machine that the trace is of; `None`: it is known from the trace alone.
    pub platform: Option<Arc<Platform>>,
    /// Buffer to read, by its instance's name, where a file has several; `None`: the top one.
    pub buffer: Option<String>,
}

/// Facts about a trace that was read.
#[derive(Clone, Debug)]
pub struct ReadSummary {
    /// Name of the format.
    pub format: &'static str,
    /// Time 0 of the trace that was pushed, in ns by the file's own clock.
    pub base: u64,
    /// End of the trace, from time 0 on.
    pub end: Instant,
    /// Number of events that were pushed.
    pub events: u64,
    /// Number of events of the file that the table knows.
    pub records: u64,
    /// Threads by their task's id.
    pub threads: Vec<Thread>,
    /// Processes of these; 0: unknown.
    pub processes: Vec<i32>,
    /// Notes for the reader: damages with their offsets, what was cut off, what is not known.
    pub notes: Vec<String>,
}
