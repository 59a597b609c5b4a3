//! Bounds of the numbers of a platform file: whatever is beyond is a unit mistaken.

/// 100 GHz: anything above is a unit mistaken.
pub(super) const MAX_KHZ: u64 = 100_000_000;
/// 1 kW per CPU: anything above is a unit mistaken.
pub(super) const MAX_UW: u64 = 1_000_000_000;
/// Voltage up to 5 V.
pub(super) const MAX_UV: u64 = 5_000_000;
/// Largest C, in µW/MHz/V²; the biggest cores have about 1500.
pub(super) const MAX_C: u64 = 1_000_000;
/// Latencies in files are 32-bit numbers of ns, as cpufreq has them.
pub(super) const MAX_LATENCY_NS: u64 = u32::MAX as u64;
/// Idle latencies and residencies up to 1000 s.
pub(super) const MAX_IDLE_US: u64 = 1_000_000_000;
/// Temperatures up to 300 °C, and down to that below 0 for what a chip meets outside.
pub(super) const MAX_MILLICELSIUS: u64 = 300_000;
/// A resistance up to 10 000 K/W.
pub(super) const MAX_MK_PER_W: u64 = 10_000_000;
/// A capacitance up to 1 MJ/K.
pub(super) const MAX_MJ_PER_K: u64 = 1_000_000_000;
/// A polling delay up to 10 minutes.
pub(super) const MAX_DELAY_MS: u64 = 600_000;
/// A sustainable power up to 1 MW; constants of the controller.
pub(super) const MAX_MW: u64 = 1_000_000;
/// Constants of the power allocator's controller.
pub(super) const MAX_K: u64 = 1_000_000_000;
/// Speed of the machine's fastest CPU for the kind, at the OPP at which it is fastest.
pub(super) const MAX_PPM: u64 = 1_000_000;
/// The most CPUs that a machine may have.
pub const MAX_CPUS: u64 = 1024;
