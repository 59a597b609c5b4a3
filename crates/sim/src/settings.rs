//! Settings of this backend that others look at: the items, to ask [`Settings`](risetime_model::Settings) for.

pub use crate::kernel::cpuidle::{CPU_DMA_LATENCY, MAX_CSTATE};
pub use crate::kernel::governor::schedutil::RATE_LIMIT_US;
pub use crate::kernel::governor::{GOVERNOR, SCHEDUTIL};
pub use crate::kernel::placement::PLACEMENT;
pub use crate::kernel::tracker::TRACKER;
pub use crate::kernel::tunables::BASE_SLICE_NS;
pub use crate::mech::perf_domain::SCHED_ENERGY_AWARE;
pub use crate::mech::preempt::PREEMPT;
pub use crate::mech::pstate::{EPP, HARDWARE_RAMP, hardware_decides, is_active};
pub use crate::mech::series::RAMPUP_MULTIPLIER;
pub use crate::run::both_ways::SHORT_WAYS;
pub use crate::run::settings::START_UTIL;
pub use crate::state::class::{RT_UCLAMP_MIN, UCLAMP_TASK};

/// Tunables of the governor `conservative`.
pub mod conservative {
    pub use crate::kernel::governor::conservative::{FREQ_STEP, SAMPLING_RATE, UP_THRESHOLD};
}
/// Tunables of the governor `interactive`.
pub mod interactive {
    pub use crate::kernel::governor::interactive::{
        GO_HISPEED_LOAD, MIN_SAMPLE_TIME, TARGET_LOADS, TIMER_RATE,
    };
}
/// Tunables of the governor `ondemand`.
pub mod ondemand {
    pub use crate::kernel::governor::ondemand::{
        SAMPLING_DOWN_FACTOR, SAMPLING_RATE, UP_THRESHOLD,
    };
}
/// Tunables of the governors `schedfreq` and `sched`.
pub mod schedfreq {
    pub use crate::kernel::governor::schedfreq::{
        DOWN_THROTTLE_NSEC, THROTTLE_NSEC, UP_THROTTLE_NSEC,
    };
}
/// Tunables of the governor `schedutil-2016`.
pub mod schedutil_2016 {
    pub use crate::kernel::governor::schedutil_2016::SAMPLING_RATE;
}
/// Tunables of the tracker `walt`.
pub mod walt {
    pub use crate::kernel::tracker::walt::{STATS, WINDOW};
}
