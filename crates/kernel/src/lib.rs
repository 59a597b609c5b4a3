//! The kernel's scheduler arithmetic, bit-exact and under its kernel names.
//!
//! Integers only, no I/O, cannot fail. Every function answers one question and names the
//! kernel symbol it corresponds to. Where kernels differ, a [`KernelRev`] selects.
#![no_std]
#![warn(missing_docs)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

pub mod adpf;
pub mod amd_pstate;
pub mod aperfmperf;
pub mod approximate;
pub mod bandwidth;
pub mod cfs;
pub mod cfs_rq;
pub mod clock_pelt;
pub mod cpu_util;
pub mod cpuidle;
pub mod dbs;
pub mod deadline;
pub mod demand;
pub mod dl_server;
pub mod eevdf;
pub mod energy_model;
pub mod features;
pub mod fits;
pub mod group;
pub mod headroom;
pub mod intel_pstate;
pub mod interactive;
pub mod latency_nice;
pub mod muqss;
pub mod neighbours;
pub mod opp;
pub mod overcommit;
pub mod pelt;
pub mod pelt_before;
pub mod pelt_cfs;
pub mod pixel;
pub mod response_time;
mod rev;
pub mod rt;
pub mod rt_avg;
pub mod rt_group;
pub mod sched_cache;
pub mod sched_high;
pub mod sched_qos;
pub mod schedfreq;
pub mod schedutil;
pub mod supply;
pub mod switches;
pub mod thermal;
pub mod uclamp;
pub mod units;
pub mod util_est;
pub mod waiting_avg;
pub mod walt;
pub mod weight;

pub use rev::KernelRev;
