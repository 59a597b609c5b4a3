//! Small parts of the machine that are set once and used up: where a run starts, what an idle CPU is kicked for.

use risetime_kernel::units::{Instant, Span, Util};

/// The start settings, until they have taken effect.
#[derive(Clone, Copy, Default)]
pub(crate) struct Start {
    pub(crate) util: Option<Util>,
    pub(crate) period_contrib: Option<u32>,
    pub(crate) first_tick: Option<Span>,
    /// Into which phase of task 0; `None`: at its creation.
    pub(crate) phase: Option<usize>,
    /// Time at which the workload is to begin: the start phase.
    pub(crate) planned: Instant,
    /// The first task sleeps, and enters that phase when it wakes.
    pub(crate) upcoming: bool,
    /// The start has come, when, and everything has taken effect.
    pub(crate) begun: bool,
    pub(crate) at: Instant,
    pub(crate) done: bool,
}

/// Work that an idle CPU is kicked to do on behalf of all idle ones.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NohzKick {
    /// Age what sleeping tasks left behind (`NOHZ_STATS_KICK`).
    pub(crate) stats: bool,
    /// Look for work (`NOHZ_BALANCE_KICK`); since 4.17 only together with `stats`.
    pub(crate) balance: bool,
    /// Find out when to look next (`NOHZ_NEXT_KICK`).
    pub(crate) next: bool,
}
