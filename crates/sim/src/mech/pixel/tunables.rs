//! Tunables of `sched_pixel`, and what follows from them for a domain's CPUs.

use crate::kernel::governor::schedutil;
use risetime_kernel::pelt::Decay;
use risetime_kernel::pixel::{DEF_UTIL_THRESHOLD, PixelOpp, Room, pixel_em, response_time_ms_nom};
use risetime_kernel::response_time;
use risetime_kernel::units::Capacity;
use risetime_model::platform::{Domain, Opp};
use risetime_model::settings::{Default, Home, Int, Neutral, Param, Range, Settings, Value, keys};

macro_rules! tunable {
    ($vis:vis $const:ident, $name:literal, $doc:literal, $unit:literal, $range:expr, $default:expr) => {
        $vis const $const: Int = Int::new(Param {
            name: $name,
            doc: $doc,
            unit: $unit,
            range: Range::Int($range.0, $range.1),
            default: $default,
            home: Home::Patched(Some(concat!("cpufreq/policyN/sched_pixel/", $name)), Neutral::None),
        });
    };
}

macro_rules! vendor {
    ($const:ident, $name:literal, $doc:literal, $unit:literal, $range:expr, $neutral:expr) => {
        pub(crate) const $const: Int = Int::new(Param {
            name: $name,
            doc: $doc,
            unit: $unit,
            range: Range::Int($range.0, $range.1),
            default: Default::Unset,
            home: Home::Patched(
                Some(concat!("/proc/vendor_sched/", $name)),
                Neutral::Int($neutral),
            ),
        });
    };
}

/// Range of an unsigned int of the kernel.
const UINT: (i64, i64) = (0, 4_294_967_295);

const DELAY: Default = Default::Derived(
    "as schedutil's rate_limit_us, from the domains' transition latency",
    |platform, policy| {
        let domain = platform.domains.first()?;
        Some(Value::Int(schedutil::rate_limit_us(policy.kernel, domain)))
    },
);

tunable!(
    pub(crate) UP_RATE_LIMIT_US,
    "up_rate_limit_us",
    "shortest time from a change of frequency to one to a higher frequency; automatic headroom is what util grows in it; of one policy: up_rate_limit_us.policyN",
    "µs",
    UINT,
    DELAY
);
tunable!(
    pub(crate) DOWN_RATE_LIMIT_US,
    "down_rate_limit_us",
    "shortest time from a change of frequency to a lower frequency, times the ratio of the two; of one policy: down_rate_limit_us.policyN",
    "µs",
    UINT,
    DELAY
);
tunable!(
    pub(crate) DOWN_RATE_LIMIT_SCALE_POW,
    "down_rate_limit_scale_pow",
    "number of times that the ratio of frequencies scales down_rate_limit_us; of one policy: down_rate_limit_scale_pow.policyN",
    "times",
    (1, 64),
    Default::Int(1)
);
tunable!(
    pub(crate) RESPONSE_TIME_MS,
    "response_time_ms",
    "time to the highest frequency of a task that never sleeps, 0 = nominal, response_time_ms_nom; acts with automatic headroom; of one policy: response_time_ms.policyN",
    "ms",
    UINT,
    Default::Unset
);
vendor!(
    AUTO_HEADROOM,
    "auto_dvfs_headroom_enable",
    "1: headroom is what util grows until the next change, response times and rampup multipliers act, new tasks begin at util 0 (unset: 0)",
    "",
    (0, 1),
    0
);
vendor!(
    TAPERED_HEADROOM,
    "tapered_dvfs_headroom_enable",
    "1: without automatic headroom, it is a share of what is left of the capacity (unset: 0)",
    "",
    (0, 1),
    0
);
vendor!(
    HEADROOM,
    "dvfs_headroom",
    "util is multiplied by so much, or with tapered headroom what is left by what is above 1024 of it (unset: 1280); of one policy: dvfs_headroom.policyN",
    "of 1024",
    (1024, 1280),
    1280
);
vendor!(
    IOWAIT_MOST,
    "per_cpu_iowait_boost_max_value",
    "most that the iowait boost of a CPU doubles to (unset: 1024); of one policy: per_cpu_iowait_boost_max_value.policyN",
    "of 1024",
    (0, 1024),
    1024
);
vendor!(
    SKIP_INEFFICIENT,
    "skip_inefficient_opps",
    "1: OPPs whose faster neighbour costs no more for the same work are skipped (unset: 0)",
    "",
    (0, 1),
    0
);

/// The governor's name.
pub(crate) const NAME: &str = "sched_pixel";

/// Whether the governor is `sched_pixel`.
pub(crate) fn in_force(settings: &Settings) -> bool {
    settings.get(&keys::GOVERNOR) == Some(NAME)
}

pub(crate) fn of(settings: &Settings, item: &Int, domain: &Domain, unset: u64) -> u64 {
    settings.of_policy(item, domain.cpus[0]).map_or(unset, |value| value.max(0) as u64)
}

/// Whether headroom is automatic.
pub(crate) fn auto_headroom(settings: &Settings) -> bool {
    settings.get(&AUTO_HEADROOM) == Some(1)
}

/// The headroom of a domain's CPUs.
pub(crate) fn room(settings: &Settings, domain: &Domain) -> Room {
    let share = of(settings, &HEADROOM, domain, DEF_UTIL_THRESHOLD);
    match settings.get(&TAPERED_HEADROOM) {
        _ if auto_headroom(settings) => Room::Auto(of(settings, &UP_RATE_LIMIT_US, domain, 0)),
        Some(1) => Room::Tapered(share),
        _ => Room::Constant(share),
    }
}

/// The nominal response time of a domain's policy, in ms.
pub(crate) fn nominal_ms(decay: &Decay, domain: &Domain) -> u64 {
    let capacities: Vec<Capacity> = em_of(domain).iter().map(|opp| opp.capacity).collect();
    response_time_ms_nom(decay, &capacities)
}

/// The factor on util of a domain's CPUs, of 1024, by their response time.
pub(crate) fn response_time_mult(settings: &Settings, domain: &Domain, nominal: u64) -> u64 {
    match auto_headroom(settings) {
        true => {
            let ms = of(settings, &RESPONSE_TIME_MS, domain, 0);
            response_time::response_time_mult(nominal, ms)
        }
        false => 1024,
    }
}

/// The energy model of a cluster: capacities as the platform says them of OPPs, else in proportion
/// to the frequency.
pub(crate) fn em_of(d: &Domain) -> Vec<PixelOpp> {
    let max = d.freq_max().0.max(1);
    let capacity = |o: &Opp| o.capacity.unwrap_or(Capacity(o.freq.0 * d.capacity.0 / max));
    let kept = d.opps.iter().filter(|o| !o.turbo);
    pixel_em(kept.map(|o| (o.freq, capacity(o), o.power.0)))
}
