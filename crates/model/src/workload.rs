//! What the tasks do: rt-app's model, parsed and checked.

use risetime_kernel::units::{CpuId, Span, Util};

/// A set of tasks, validated: every CPU exists on the platform it is bound to later (that
/// check needs the platform: [`Workload::check_on`]), every endless loop takes time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// File stem or built-in name.
    pub name: String,
    /// One line for a reader.
    pub about: String,
    /// The tasks, instances expanded, in file order.
    pub tasks: Vec<TaskSpec>,
    /// `global.duration`; `None`: until every task has exited or the run's own limit.
    pub duration: Option<Span>,
    /// `global.calibration: "CPUn"`: `run` means µs on that CPU at its top frequency.
    pub calibration: Option<CpuId>,
    /// Keys that were accepted and have no effect, with the reason, for the reader.
    pub without_effect: Vec<String>,
    /// Where `start_util`, `start_period_contrib` and `first_tick_ns` take effect.
    pub start_at: StartAt,
}

/// The moment at which the start settings take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// When the first task is created.
    Creation,
    /// When task 0 wakes into its phase of this index (`rampup`: the busy phase).
    Phase(usize),
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    /// Thread name; instances are `name-0`, `name-1`, … (15 bytes are not enforced).
    pub comm: String,
    /// Created this long after the workload starts.
    pub delay: Span,
    /// How often the list of phases is run.
    pub repeat: Repeat,
    /// The phases in order; at least one.
    pub phases: Vec<Phase>,
    /// Attributes at creation.
    pub attr: Attr,
}

/// What `phases` may change as well as the task: attributes a phase leaves out stay as they
/// were (rt-app's rule).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attr {
    /// CPU affinity, ascending; `None`: unchanged (at creation: all CPUs).
    pub cpus: Option<Vec<CpuId>>,
    /// Nice value −20..=19; `None`: unchanged (at creation: 0).
    pub nice: Option<i8>,
    /// `util_min`; `None`: unchanged (at creation: 0).
    pub uclamp_min: Option<Util>,
    /// `util_max`; `None`: unchanged (at creation: 1024).
    pub uclamp_max: Option<Util>,
}

/// A named run of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Its key in the file; the task's own body is a single phase with the task's name.
    pub name: String,
    /// How often its events are run.
    pub repeat: Repeat,
    /// The events in order; may be empty only if the repeat is finite.
    pub events: Vec<Event>,
    /// Attributes set when it begins.
    pub attr: Attr,
}

/// How often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// That many times; 0 is rejected by the parser.
    Times(u32),
    /// For ever (`"loop": -1`).
    Forever,
}

/// One thing a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Work: as much as capacity 1024 at top frequency does in this time (rt-app `run`,
    /// rescaled by `calibration` already).
    Run(Span),
    /// Run until this much wall-clock time has passed since the event began (`runtime`).
    Runtime(Span),
    /// Sleep this long (`sleep`).
    Sleep(Span),
    /// Sleep until the next multiple of `period` since the timer's first use (`timer`); if
    /// that is past already, go on at once and take the next one from there.
    Timer {
        /// Index of the timer within the task (each `ref` is one; the same `ref` in several
        /// events of a task is the same timer).
        timer: u32,
        /// The period.
        period: Span,
    },
}
pub(crate) fn about_in(_: &str) -> String { String::new() }
