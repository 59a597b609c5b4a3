//! The kernel: mechanisms, one file each, and policies, one file and one registry line each.

pub(crate) mod balance;
pub(crate) mod bandwidth;
pub(crate) mod cfs;
pub(crate) mod class;
pub(crate) mod core;
pub(crate) mod cpufreq;
pub(crate) mod fair;
pub mod governor;
pub(crate) mod hierarchy;
pub(crate) mod hotplug;
pub(crate) mod idle;
pub mod placement;
pub(crate) mod pre_6_8;
pub(crate) mod preempt;
pub(crate) mod pressure;
pub(crate) mod series;
pub(crate) mod topology;
pub(crate) mod util_est;
