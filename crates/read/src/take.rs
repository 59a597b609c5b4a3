//! The interface between readers of a format and what is made of a trace.

use crate::Mark;
use crate::events::{Fields, Row};
use risetime_kernel::units::TaskId;
use risetime_trace::{Clock, Event};

/// Place and time of an event, as each record of the kernel's tracing has them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamp<'a> {
    /// Time in ns, by the trace's clock.
    pub at: u64,
    /// CPU that wrote it.
    pub cpu: u32,
    /// Thread that ran there; 0: the idle task, or unknown.
    pub pid: i32,
    /// Process of the thread; `None`: the trace does not say.
    pub tgid: Option<i32>,
    /// Name of the thread; `None`: the trace does not say here.
    pub comm: Option<&'a [u8]>,
}

/// Begin of what a CPU's buffer tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Began {
    /// With the trace: nothing was overwritten before it.
    WithTrace,
    /// Then, in ns by the trace's clock: events before were overwritten.
    At(u64),
}

/// Something that a file tells beside its events.
#[derive(Clone, Copy, Debug)]
pub enum Fact<'a> {
    /// The machine has so many CPUs.
    Cpus(u32),
    /// The clock of the times.
    Clock(Clock),
    /// The kernel's release, as `uname -r` says it.
    Release(&'a str),
    /// Begin of a CPU's buffer.
    Began {
        /// The CPU.
        cpu: u32,
        /// Begin of what it tells.
        began: Began,
    },
    /// Events of a CPU are missing: lost, or in a damaged part of the file.
    Lost {
        /// The CPU.
        cpu: u32,
        /// Time of its last event before, in ns; `None`: that of the last one that was taken in.
        since: Option<u64>,
        /// Number of the events; `None`: unknown.
        events: Option<u64>,
    },
    /// A part of the file is not sound.
    Damage {
        /// Offset in the file, in bytes.
        offset: u64,
        /// The fault, in lower case: found and wanted.
        what: &'a str,
    },
    /// A thread's name and process, told apart from events. It holds for the whole trace unless an event says otherwise.
    Thread {
        /// The thread.
        pid: i32,
        /// Its process; `None`: not told.
        tgid: Option<i32>,
        /// Its name; `None`: not told.
        comm: Option<&'a [u8]>,
    },
    /// Numbers of task states: those from 4.14 on (`new`), or those before.
    States {
        /// True from 4.14 on.
        new: bool,
    },
    /// A note for whoever reads the report.
    Note(&'a str),
    /// A sentence of what the clock is, if it is none of [`Clock`].
    OtherClock(&'a str),
}

/// A receiver of what a reader finds. Both passes over a file make the same calls in the same order.
pub trait Take {
    /// Takes in an event of the table. Times should not go back; an event that does is taken to be of the latest time.
    fn event(&mut self, stamp: &Stamp<'_>, row: &'static Row, fields: &dyn Fields);
    /// Takes in what a file tells beside its events.
    fn fact(&mut self, fact: &Fact<'_>);
    /// Returns the task that a thread is now, told of as a new one at first sight; `None`: the idle task.
    fn task(&mut self, stamp: &Stamp<'_>, pid: i32, comm: Option<&[u8]>) -> Option<TaskId>;
    /// Takes in a typed event that no row of the table makes.
    fn typed(&mut self, at: u64, event: &Event);
    /// Takes in a mark. Times in it are ns by the trace's clock.
    fn mark(&mut self, stamp: &Stamp<'_>, process: i32, mark: &Mark<'_>);
}
