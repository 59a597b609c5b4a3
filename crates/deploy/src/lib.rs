//! Real-time tasks: sets of them, what admits them, where they go.
//!
//! ```text
//! generate, graph, set: drawn by seed ──> model::TaskSet ──> rt-app JSON, or needs of a plan
//! generate ──> [Task]  ──  on a CPU: its work takes so long there  ──> [Load]
//!                                                                        │ admit: a test each, with its source
//!              [Place] <── partition: which CPU, by first, best or worst fit ┘
//! graphs ──> optimise ──> CPU, frequency and deadline of each node, at the least power
//! needs of a file ──> server ──> the least server of a real-time group under which all are in time
//! needs of a file ──> plan ──> CPU masks and attributes of each task, or who has no place, and why
//! ```
//!
//! Everything here is arithmetic: nothing is run. A verdict says which test it is, what it found, and for which task.

pub mod admit;
mod dice;
#[cfg(test)]
#[path = "../../../tests/draws.rs"]
mod draws;
mod generate;
pub mod graph;
pub mod machine;
pub mod optimise;
mod partition;
pub mod plan;
pub mod promise;
pub mod server;
mod set;
mod share;
pub mod written;

pub use generate::{Drawn, Periods, Utilisations, draw};
pub use partition::{Fit, Partition, Place, partition};
pub use set::{SetDrawn, draw_set, sliced};
pub use share::Share;

use risetime_kernel::units::{Capacity, Span};

/// A task that comes again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Name of the task.
    pub name: String,
    /// Work in each period at most: ns of a CPU of capacity 1024 at its highest frequency.
    pub work: Span,
    /// The shortest time between two of its jobs.
    pub period: Span,
    /// Relative deadline of a job, from when it came.
    pub deadline: Span,
}

/// A task as one CPU sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Running time of a job there, in ns.
    pub runtime: u64,
    /// Shortest time between two jobs, in ns; not 0.
    pub period: u64,
    /// Relative deadline of a job, in ns.
    pub deadline: u64,
}

impl Task {
    /// The load of this task on a CPU of that speed, of 1024. Rounding: its runtime up, so that
    /// what is admitted fits. A speed of 0 never ends.
    pub fn on(&self, speed: Capacity) -> Load {
        let runtime = (u128::from(self.work.0) * 1024).div_ceil(u128::from(speed.0.max(1)));
        let runtime = if speed.0 == 0 { u64::MAX } else { runtime.try_into().unwrap_or(u64::MAX) };
        Load { runtime, period: self.period.0.max(1), deadline: self.deadline.0 }
    }
}

impl Load {
    /// The share of the CPU that the load takes: runtime over period.
    pub fn share(&self) -> Share {
        Share::of(self.runtime, self.period)
    }

    /// The share of the CPU that the load takes up to its deadline, where that is before its period
    /// ends (`density`).
    pub fn density(&self) -> Share {
        Share::of(self.runtime, self.deadline.min(self.period).max(1))
    }
}
