//! Admission tests: do tasks meet their deadlines, whatever they do within what they declare?
//!
//! ```text
//!                    one CPU                                     several, and any task on each of them
//! any scheduler      share ≤ 1                                   (the same of all, and of the fastest)
//! EDF                edf_share, edf_demand (exact)               edf_speeds, edf_density, edf_interference
//! fixed priorities   rm_share, rm_product, response_time (exact)
//! ```
//!
//! A test is one file and one line in [`TESTS`]. Jobs of a task come at least a period apart, at any time; they need no
//! more than they declare, share nothing but the CPU, and are preempted at once and for nothing.

mod demand;
mod fixed;
mod global;
mod share;

pub use demand::demand;
pub(crate) use fixed::response_among;
pub use fixed::{Order, response_time};

use crate::{Load, Share};
use risetime_kernel::units::Capacity;

/// Answer of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// No deadline is missed.
    Admitted,
    /// Some jobs that come as declared miss one.
    Refused,
    /// The test cannot tell: it is sufficient alone.
    Unknown,
}

/// Answer of a test, and the reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The answer.
    pub answer: Answer,
    /// Task that the verdict is about, by place.
    pub task: Option<usize>,
    /// The reason, in a line.
    pub reason: String,
}

impl Verdict {
    fn admitted(reason: impl Into<String>) -> Verdict {
        Verdict { answer: Answer::Admitted, task: None, reason: reason.into() }
    }
    fn refused(task: Option<usize>, reason: impl Into<String>) -> Verdict {
        Verdict { answer: Answer::Refused, task, reason: reason.into() }
    }
    fn unknown(task: Option<usize>, reason: impl Into<String>) -> Verdict {
        Verdict { answer: Answer::Unknown, task, reason: reason.into() }
    }
}

/// Scheduler that a test is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Earliest deadline first, on one CPU.
    Edf,
    /// Earliest deadlines first, on as many CPUs as there are.
    GlobalEdf,
    /// The shortest period first, on one CPU.
    Rm,
    /// The shortest deadline first, on one CPU.
    Dm,
}

/// One test.
#[derive(Debug)]
pub struct Test {
    /// Name of the test.
    pub name: &'static str,
    /// The condition that it checks, in a sentence.
    pub doc: &'static str,
    /// Publication of the test.
    pub source: &'static str,
    /// Schedulers that the test is for.
    pub of: &'static [Scheduler],
    /// `Answer::Unknown` never comes of it.
    pub exact: bool,
    /// The test itself: a verdict on `tasks`, each as a CPU of capacity 1024 sees it, on CPUs of
    /// these speeds, the fastest first.
    pub ask: fn(&[Load], &[Capacity], Scheduler) -> Verdict,
}

/// All tests.
pub const TESTS: &[Test] = &[
    share::EDF_SHARE,
    demand::EDF_DEMAND,
    fixed::RM_SHARE,
    fixed::RM_PRODUCT,
    fixed::RESPONSE_TIME,
    global::EDF_SPEEDS,
    global::EDF_DENSITY,
    global::EDF_INTERFERENCE,
];

/// The exact test for fixed priorities.
pub(crate) fn response_time_test() -> &'static Test {
    &fixed::RESPONSE_TIME
}

/// The tests for a scheduler.
pub fn tests(of: Scheduler) -> impl Iterator<Item = &'static Test> {
    TESTS.iter().filter(move |test| test.of.contains(&of))
}

/// Asks the tests for a scheduler in turn, up to the first that knows an answer.
///
/// `tasks`: as a CPU of capacity 1024 sees them; `speeds`: those of the CPUs, for one CPU a single one.
pub fn admit(
    tasks: &[Load],
    speeds: &[Capacity],
    of: Scheduler,
) -> (Option<&'static Test>, Verdict) {
    let mut last = (None, Verdict::unknown(None, "no test is about it"));
    for test in tests(of) {
        let verdict = (test.ask)(tasks, speeds, of);
        let known = verdict.answer != Answer::Unknown;
        last = (Some(test), verdict);
        if known {
            break;
        }
    }
    last
}

/// The loads on a CPU of that speed. Rounding: up.
fn on(tasks: &[Load], speed: Capacity) -> Vec<Load> {
    let slower = |t: &Load| {
        let runtime = (u128::from(t.runtime) * 1024).div_ceil(u128::from(speed.0.max(1)));
        Load { runtime: runtime.try_into().unwrap_or(u64::MAX), ..*t }
    };
    tasks.iter().map(slower).collect()
}

/// Scales the loads to the only CPU's speed.
fn on_one(tasks: &[Load], speeds: &[Capacity]) -> Vec<Load> {
    on(tasks, speeds.first().copied().unwrap_or(Capacity(0)))
}

/// A share, in % of a CPU.
fn percent(share: Share) -> String {
    format!("{:.2} %", 100.0 * share.as_f64())
}
