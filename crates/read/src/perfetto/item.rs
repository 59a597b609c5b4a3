//! Items of the window: what a bundle or a packet told, with its time.

use super::table::Row;
use crate::window::Timed;
use super::words::UNTOLD;

/// An event of a CPU, or what came with a packet's own time.
#[derive(Debug)]
pub(super) struct Item {
    /// Time in ns, by the trace's clock.
    pub(super) at: u64,
    /// The CPU; of what came with a packet 0.
    pub(super) cpu: u32,
    /// Thread that ran there; [`NOBODY`]: not told.
    pub(super) pid: i32,
    pub(super) what: What,
}

/// A thread that nobody named.
pub(super) const NOBODY: i32 = -1;

#[derive(Debug)]
pub(super) enum What {
    /// `sched_switch`; of the compact form without the thread that leaves ([`Who::NOBODY`]).
    Switch { prev: Who, state: u32, next: Who },
    /// `sched_waking`, `sched_wakeup` or `sched_wakeup_new`, by its row.
    Wakeup { row: &'static Row, who: Who, target: i32 },
    /// `cpu_frequency` or `cpu_idle`, by its row.
    Power { row: &'static Row, cpu: u32, state: u32 },
    /// Another event of the kernel: its number in `FtraceEvent`, and its own message.
    Kernel { number: u32, message: Box<[u8]> },
    /// A track event: its message, completed from its sequence.
    Track(Box<super::tracks::Told>),
    /// A frame of the display.
    Frame(Box<[u8]>),
}

/// A thread, as switches and wakeups tell of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Who {
    pub(super) pid: i32,
    pub(super) comm: u32,
    pub(super) prio: i32,
}

impl Who {
    /// A thread that nobody named.
    pub(super) const NOBODY: Who = Who { pid: NOBODY, comm: UNTOLD, prio: 0 };
}

impl Timed for Item {
    fn at(&self) -> u64 {
        self.at
    }

    #[inline]
    fn beside(&self) -> usize {
        // An allocation takes some bytes more than what was asked for.
        match &self.what {
            What::Kernel { message, .. } | What::Frame(message) => message.len() + 16,
            What::Track(told) => told.size() + 16,
            _ => 0,
        }
    }
}
