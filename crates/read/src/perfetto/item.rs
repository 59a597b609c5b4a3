//! Items of the window: what a bundle or a packet told, with its time. Kept small: a window holds a million of them.

use crate::window::Timed;

/// An event of a CPU, or what came with a packet's own time.
#[derive(Debug)]
pub(super) struct Item {
    /// Time in ns, by the trace's clock.
    pub(super) at: u64,
    /// Thread that ran there; [`NOBODY`]: whoever the last switch brought.
    pub(super) pid: i32,
    pub(super) what: What,
}

/// A thread that is not told.
pub(super) const NOBODY: i32 = -1;

#[derive(Debug)]
pub(super) enum What {
    /// A compact `sched_switch`: state in which a thread leaves, and who comes.
    Comes { state: u16, next: Who },
    /// An ordinary `sched_switch`.
    Switch(Box<Switch>),
    /// `sched_waking`, `sched_wakeup` or `sched_wakeup_new`, by the place of its row.
    Wakeup { row: u8, target: u16, who: Who },
    /// `cpu_frequency` or `cpu_idle`, by the place of its row.
    Power { row: u8, cpu: u16, state: u32 },
    /// Another event of the kernel.
    Kernel(Box<Kernel>),
    /// Events of the CPU are missing from here on.
    Lost,
    /// A track event: its message, completed from its sequence.
    Track(Box<super::tracks::Told>),
    /// A frame of the display.
    Frame(Box<Box<[u8]>>),
}

/// A thread, as switches and wakeups tell of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Who {
    pub(super) pid: i32,
    pub(super) comm: u32,
    pub(super) prio: i16,
}

/// An ordinary switch.
#[derive(Debug)]
pub(super) struct Switch {
    pub(super) prev: Who,
    pub(super) state: u32,
    pub(super) next: Who,
}

/// Another event of the kernel: its number in `FtraceEvent`, and its own message.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) number: u32,
    pub(super) message: Box<[u8]>,
}

const _: () = assert!(size_of::<Item>() == 32);

/// Bytes that an allocation takes beside what was asked for.
const BESIDE: usize = 16;

impl Timed for Item {
    #[inline]
    fn at(&self) -> u64 {
        self.at
    }

    #[inline]
    fn beside(&self) -> usize {
        match &self.what {
            What::Comes { .. } | What::Wakeup { .. } | What::Power { .. } | What::Lost => 0,
            What::Switch(_) => size_of::<Switch>() + BESIDE,
            What::Kernel(kernel) => kernel.message.len() + size_of::<Kernel>() + 2 * BESIDE,
            What::Frame(message) => message.len() + 2 * BESIDE,
            What::Track(told) => told.size() + BESIDE,
        }
    }
}
