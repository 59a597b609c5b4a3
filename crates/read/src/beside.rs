//! What a trace tells beside the scheduler: marks of programs, frames, counters.

use risetime_kernel::units::{Instant, TaskId};

/// Something that a program, or a system service for it, wrote into the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark<'a> {
    /// A slice begins on its thread (`B|pid|name`).
    Begin {
        /// Name of the slice.
        name: &'a str,
    },
    /// The innermost slice of its thread ends (`E`).
    End,
    /// A slice of a process begins that no thread owns (`S|pid|name|cookie`).
    AsyncBegin {
        /// Name of the slice.
        name: &'a str,
        /// Number that tells it from others of this name.
        cookie: i64,
    },
    /// Such a slice ends (`F|pid|name|cookie`).
    AsyncEnd {
        /// Name of the slice.
        name: &'a str,
        /// Number that tells it from others of this name.
        cookie: i64,
    },
    /// A counter has this value from now on (`C|pid|name|value`).
    Counter {
        /// Name of the counter.
        name: &'a str,
        /// Value of the counter.
        value: i64,
    },
    /// A line of text that is none of these.
    Text(&'a str),
    /// A frame of the display, as FrameTimeline tells of it, at its end.
    Frame {
        /// Name of its layer; empty: the display's own frame.
        layer: &'a str,
        /// Number that the application knows it by.
        token: i64,
        /// Begin and end that were expected, in ns of this trace; `None`: not told.
        expected: Option<(Instant, Instant)>,
        /// Begin and end that it had.
        actual: (Instant, Instant),
        /// Kinds of jank, as the bits of Perfetto's `JankType`; 0: none.
        jank: u32,
    },
}

impl<'a> Mark<'a> {
    /// Returns the mark with every time in it put through `since`.
    pub(crate) fn with_times(self, since: impl Fn(Instant) -> Instant) -> Mark<'a> {
        match self {
            Mark::Frame { layer, token, expected, actual, jank } => Mark::Frame {
                layer,
                token,
                expected: expected.map(|(from, to)| (since(from), since(to))),
                actual: (since(actual.0), since(actual.1)),
                jank,
            },
            other => other,
        }
    }
}

/// Receiver of what a trace tells beside the scheduler's events.
pub trait Beside {
    /// Takes in a mark, in time order with the events of the trace. `task`: the thread that wrote it; `None`: the trace does not
    /// say. `process`: number of the process that it is about, as far as it says; 0: not.
    fn mark(&mut self, at: Instant, task: Option<TaskId>, process: i32, mark: &Mark<'_>);
}

/// Nowhere.
impl Beside for () {
    fn mark(&mut self, _: Instant, _: Option<TaskId>, _: i32, _: &Mark<'_>) {}
}
