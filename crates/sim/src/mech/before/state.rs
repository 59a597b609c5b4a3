//! Switches of the faults of older kernels in load tracking ([`super`] has the settings).

use crate::mech::slots::Slot;
use risetime_kernel::rt_avg::RtAvg;
use risetime_kernel::units::{Instant, Span};

/// The mechanism.
pub(crate) struct Own;

impl Slot for Own {
    type OfMachine = Before;
    type OfDomain = ();
    type OfCpu = RtTracking;
    type OfTask = ();
}

/// Switches of former load tracking, as the settings say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before {
    /// True before 5.1: contributions are scaled, not time.
    pub(crate) contribution: bool,
    /// True since 4.10: joining and leaving is propagated through groups.
    pub(crate) propagates: bool,
    /// True since 4.17 (`UTIL_EST`).
    pub(crate) util_est: bool,
    /// True since 4.17: idle CPUs' blocked load is aged by others (`NOHZ_STATS_KICK`).
    pub(crate) nohz_stats: bool,
    /// Half of `sched_time_avg_ms` (`sched_avg_period()`), before 4.19.
    pub(crate) sched_avg_period: Option<Span>,
}

/// Averages that a CPU keeps for RT tracking.
#[derive(Clone, Copy)]
pub(crate) struct RtTracking {
    pub(crate) avg: RtAvg,
    /// Time up to which RT's and deadline's running time is in it.
    pub(crate) since: [Instant; 2],
}

impl Default for RtTracking {
    fn default() -> RtTracking {
        RtTracking::new(Instant(0))
    }
}

impl RtTracking {
    pub(crate) fn new(clock: Instant) -> RtTracking {
        RtTracking { avg: RtAvg::new(clock), since: [clock; 2] }
    }
}
