//! Heat: the temperatures of a machine, and what the kernel does about them.
//!
//! ```text
//! rc                    power -> temperature             the hardware, not the kernel
//! thermal_core          temperature -> which trip points are crossed, when to look next
//! gov_step_wise         one cooling state at a time
//! gov_power_allocator   a budget of power, shared out
//! cpufreq_cooling       cooling state -> the highest OPP
//! ```

pub mod cpufreq_cooling;
pub mod gov_power_allocator;
pub mod gov_step_wise;
pub mod rc;
pub mod thermal_core;
