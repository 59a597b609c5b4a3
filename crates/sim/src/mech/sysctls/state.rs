//! Values of the scheduler's sysctls and debugfs files that hold for the whole machine
//! ([`super`] has the settings).

use crate::mech::slots::Slot;
use risetime_kernel::rt::RtBandwidth;
use risetime_kernel::units::Span;

/// The mechanism.
pub(crate) struct Own;

impl Slot for Own {
    type OfMachine = Sysctls;
    type OfDomain = ();
    type OfCpu = ();
    type OfTask = ();
}

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
    /// ([`crate::mech::demotion`]).
    pub(crate) demotion: bool,
    /// `sysctl_sched_nr_migrate`: tasks looked at in one go.
    pub(crate) nr_migrate: usize,
}

/// Nothing is limited, and nothing is moved: until the settings are known.
impl Default for Sysctls {
    fn default() -> Sysctls {
        let rt = RtBandwidth { period: Span(0), runtime: None };
        let (rr_timeslice, cfs_slice, migration_cost) = (0, Span(0), None);
        Sysctls { rt, rr_timeslice, cfs_slice, migration_cost, demotion: false, nr_migrate: 0 }
    }
}

impl Sysctls {
    /// `task_hot`, as far as time decides.
    pub(crate) fn is_hot(&self, ran_ago: u64) -> bool {
        self.migration_cost.is_none_or(|cost| ran_ago < cost.0)
    }
}
