//! Values of the scheduler's sysctls and debugfs files that hold for the whole machine
//! (`kernel/sysctls.rs` has the settings).

use risetime_kernel::rt::RtBandwidth;
use risetime_kernel::units::Span;

/// Sysctls as they were resolved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sysctls {
    pub(crate) rt: RtBandwidth,
    /// `sched_rr_timeslice`, in ticks.
    pub(crate) rr_timeslice: u32,
    /// `sched_cfs_bandwidth_slice()`: what a running CPU takes from its group's quota at a time.
    pub(crate) cfs_slice: Span,
    /// `sysctl_sched_migration_cost`: a task that ran so recently is cache-hot; `None`: every one is.
    pub(crate) migration_cost: Option<Span>,
    /// True if a task that has used up its runtime becomes a normal task
    /// ([`crate::kernel::class::demotion`]).
    pub(crate) demotion: bool,
    /// `sysctl_sched_nr_migrate`: tasks looked at in one go.
    pub(crate) nr_migrate: usize,
}

impl Sysctls {
    /// `task_hot`, as far as time decides.
    pub(crate) fn is_hot(&self, ran_ago: u64) -> bool {
        self.migration_cost.is_none_or(|cost| ran_ago < cost.0)
    }
}
