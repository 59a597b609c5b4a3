//! A trace that somebody else took: its source, who is who in it, and what was found.

use risetime_analysis::RunResult;
use risetime_analysis::survey::{MarkedJobs, Surveyed};
use risetime_kernel::units::TaskId;
use risetime_trace::Clock;

/// A trace that was read, and what was found in it.
pub struct Taken<'a> {
    /// The file's name.
    pub file: &'a str,
    /// Name of its format.
    pub format: &'a str,
    /// Clock of its times.
    pub clock: Clock,
    /// Release of its kernel; empty: not told.
    pub release: &'a str,
    /// Time 0 of the figures by the trace's own clock, in ns.
    pub base_ns: u64,
    /// Notes of who read it: what was lost, what is damaged.
    pub notes: &'a [String],
    /// Numbers of threads by their task ids; 0: not told.
    pub pids: &'a [i32],
    /// The survey.
    pub surveyed: &'a Surveyed,
    /// Jobs that the trace marks.
    pub marked: &'a [MarkedJobs],
    /// Figures as of a run.
    pub run: &'a RunResult,
}

impl Taken<'_> {
    /// The number of a thread; `None`: not told.
    pub(crate) fn pid(&self, task: TaskId) -> Option<i32> {
        self.pids.get(task.index()).copied().filter(|pid| *pid != 0)
    }

    /// The name of a thread with its number, by which readers tell it from others.
    pub(crate) fn name(&self, task: TaskId, comm: &str) -> String {
        match self.pid(task) {
            Some(pid) => format!("{comm} {pid}"),
            None => comm.to_string(),
        }
    }

    /// A time of the figures by the trace's own clock, in seconds.
    pub(crate) fn clock_s(&self, ns: u64) -> f64 {
        self.base_ns.saturating_add(ns) as f64 / 1e9
    }
}
