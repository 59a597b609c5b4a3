//! The settings this backend knows: a list of groups, each declared where its mechanism is.

use crate::kernel::balance::NI_RANDOM;
use crate::kernel::class::stop;
use crate::kernel::clock::FREQ_INVARIANCE;
use crate::kernel::cpufreq::SUGOV_WORK_NS;
use crate::kernel::cpuidle::{self, CPUIDLE_GOVERNOR};
use crate::kernel::governor::{self, GOVERNOR};
use crate::kernel::placement::{self, PLACEMENT};
use crate::kernel::tracker::{self, TRACKER};
use crate::kernel::tunables::{
    self, BASE_SLICE_NS, SCHED_LATENCY_NS, SCHED_MIN_GRANULARITY_NS, SCHED_WAKEUP_GRANULARITY_NS,
};
use crate::mech::perf_domain::SCHED_ENERGY_AWARE;
use crate::run::both_ways::SHORT_WAYS;
use crate::run::mechanisms;
use crate::state::class::{RT_UCLAMP_MIN, UCLAMP_MAX, UCLAMP_MIN, UCLAMP_TASK};
use crate::time::cost;
use crate::user::power_hal;
use risetime_model::settings::{
    Catalogue, Default, Group, Home, Int, Neutral, Param, Range, Settings, Value, keys,
};
use risetime_model::{InputError, Platform, Policy};

/// Settings of the kernel and cpufreq that every governor shares.
const KERNEL: &[Param] = &[
    GOVERNOR.0,
    PLACEMENT.0,
    TRACKER.0,
    SCHED_ENERGY_AWARE.0,
    FREQ_INVARIANCE.0,
    NI_RANDOM.0,
    BASE_SLICE_NS.0,
    SCHED_LATENCY_NS.0,
    SCHED_MIN_GRANULARITY_NS.0,
    SCHED_WAKEUP_GRANULARITY_NS.0,
    CPUIDLE_GOVERNOR.0,
    SUGOV_WORK_NS.0,
    RT_UCLAMP_MIN.0,
    UCLAMP_TASK.0,
    UCLAMP_MIN.0,
    UCLAMP_MAX.0,
];

pub(crate) const FIRST_CPU: Int = Int::new(Param {
    name: keys::FIRST_CPU.name(),
    doc: "CPU on which the workload's first task is created",
    unit: "",
    range: Range::Int(0, 1023),
    default: Default::Derived(
        "the lowest-numbered CPU of the smallest capacity in its mask",
        |_, _| None,
    ),
    home: Home::Affinity,
});

/// The first task's `util_avg` at its start.
pub const START_UTIL: Int = Int::new(Param {
    name: "start_util",
    doc: "the first task's util_avg at its start (rampup: when its busy phase starts)",
    unit: "of 1024",
    range: Range::Int(0, 1024),
    default: Default::Unset,
    home: Home::Simulator(Neutral::None),
});

pub(crate) const START_PERIOD_CONTRIB: Int = Int::new(Param {
    name: "start_period_contrib",
    doc: "part of the current PELT period that has passed at the task's start (se.avg.period_contrib)",
    unit: "µs·1.024",
    range: Range::Int(0, 1023),
    default: Default::Unset,
    home: Home::Simulator(Neutral::None),
});

pub(crate) const FIRST_TICK_NS: Int = Int::new(Param {
    name: "first_tick_ns",
    doc: "time from the task's start to the next tick",
    unit: "ns",
    range: Range::Int(0, 1_000_000_000),
    default: Default::Unset,
    home: Home::Simulator(Neutral::None),
});

pub(crate) const BACKGROUND_UTIL: Int = Int::new(Param {
    name: "background_util",
    doc: "util that other tasks, which take no time here, add on every CPU (background_util.policyN: on those of policy N)",
    unit: "of 1024",
    range: Range::Int(0, 1024),
    default: Default::Int(0),
    home: Home::Simulator(Neutral::Int(0)),
});

/// Settings of where the experiment starts.
const START: &[Param] = &[
    FIRST_CPU.0,
    START_UTIL.0,
    START_PERIOD_CONTRIB.0,
    FIRST_TICK_NS.0,
    BACKGROUND_UTIL.0,
    SHORT_WAYS.0,
];

/// Errors: a `first_cpu` that the platform does not have.
fn check_start(
    platform: &Platform,
    policy: &Policy,
    settings: &Settings,
) -> Result<(), InputError> {
    match settings.get(&FIRST_CPU).filter(|cpu| *cpu as usize >= platform.nr_cpus()) {
        None => Ok(()),
        Some(cpu) => {
            let last = platform.nr_cpus() - 1;
            Err(InputError::new(
                policy.place_of_value(FIRST_CPU.name, &Value::Int(cpu)),
                format!("there is no such CPU: {} has CPUs 0 to {last}", platform.name),
            ))
        }
    }
}

/// Lists every setting of this backend.
pub fn catalogue() -> Catalogue {
    let mut groups = vec![Group::of(KERNEL).titled("The system").checked(tunables::check)];
    groups.extend(governor::groups());
    groups.extend(placement::groups());
    groups.extend(tracker::groups());
    groups.push(cpuidle::GROUP);
    groups.extend(mechanisms::groups(false));
    groups.extend([cost::GROUP, stop::GROUP]);
    groups.extend(mechanisms::groups(true));
    groups.push(power_hal::GROUP);
    groups.extend(power_hal::groups());
    groups.push(
        Group::of(START).titled("The start").per_policy(&[BACKGROUND_UTIL.0]).checked(check_start),
    );
    Catalogue { groups }
}

/// The settings of `policy` on `platform`, all of them.
///
/// Errors: unknown names, values out of range, a tunable of a governor that is not in use, settings that
/// contradict each other, a `first_cpu` or policy that the platform does not have.
pub fn resolve(platform: &Platform, policy: &Policy) -> Result<Settings, InputError> {
    catalogue().resolve(platform, policy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::governor::schedutil::{RATE_LIMIT_US, RESPONSE_TIME_MS};
    use risetime_kernel::units::CpuId;

    fn resolved(arg: &str) -> Result<Settings, String> {
        let m1 = Platform::load("m1").expect("built in");
        resolve(&m1, &Policy::from_arg(arg).expect("a policy")).map_err(|e| e.to_string())
    }

    #[test]
    fn what_others_know_of_a_setting_is_what_is_declared_here() {
        let catalogue = catalogue();
        for (name, fits) in keys::OF_CATALOGUE {
            let mut declared = catalogue.params().filter(|(_, p)| p.name == *name).peekable();
            assert!(declared.peek().is_some(), "{name} is not in the catalogue");
            assert!(declared.all(|(_, p)| fits(p.range)), "{name} is of another kind");
        }
    }

    #[test]
    fn a_policy_may_have_its_own_tunable() {
        let s = resolved("linux-6.8+rate_limit_us=70+rate_limit_us.policy4=500").expect("fine");
        assert_eq!(s.get(&RATE_LIMIT_US), Some(70));
        let at = |s: &Settings, policy| s.own(&RATE_LIMIT_US, CpuId(policy));
        assert_eq!((at(&s, 4), at(&s, 0)), (Some(500), None));
        let s =
            resolved("linux-6.8+rate_limit_us.policy0=1+rate_limit_us.policy4=2").expect("fine");
        assert_eq!(at(&s, 0), Some(1), "several of them");
        let s = resolved("linux-6.8+background_util=18+background_util.policy4=0").expect("fine");
        assert_eq!(s.own(&BACKGROUND_UTIL, CpuId(4)), Some(0));
        assert!(resolved("linux-6.8+background_util.policy4=1025").is_err());
    }

    #[test]
    fn the_response_time_of_each_policy_is_its_own_unless_somebody_says_otherwise() {
        let of = |arg: &str| {
            let s = resolved(&format!("linux-6.8{arg}")).expect("fine");
            let own = |policy| s.own(&RESPONSE_TIME_MS, CpuId(policy));
            [s.get(&RESPONSE_TIME_MS), own(0), own(4)]
        };
        assert_eq!(of(""), [None; 3], "mainline has no such tunable");
        assert_eq!(of("+response_time_ms=0"), [Some(22), None, Some(182)]);
        assert_eq!(of("+response_time_ms=50"), [Some(50), None, None]);
        assert_eq!(of("+response_time_ms.policy4=90"), [Some(22), None, Some(90)]);
        assert_eq!(
            of("+response_time_ms=50+response_time_ms.policy4=0"),
            [Some(50), None, Some(182)]
        );
        let halved = "+response_time_ms=0+sched_pelt_multiplier=2";
        assert_eq!(of(halved), [Some(11), None, Some(92)]);
    }

    #[test]
    fn what_cannot_be_is_said_so() {
        for (arg, words) in [
            ("linux-6.8+rate_limit_us.policy1=70", "m1 has policy0, policy4"),
            ("linux-6.8+response_time_ms.policyx=70", "m1 has policy0, policy4"),
            ("linux-6.8+response_time_ms.policy4=-1", "wanted a whole number from 0"),
            ("linux-6.8+governor=performance+rate_limit_us.policy4=70", "is a setting of"),
            ("linux-6.8+first_cpu.policy4=1", "unknown setting `first_cpu.policy4`"),
            ("linux-6.8+sched_pelt_multiplier=3", "wanted 1, 2 or 4"),
            ("linux-6.8+sched_pelt_multiplier_to=2", "without `sched_pelt_multiplier_change_ms`"),
            ("linux-6.8+sched_pelt_multiplier_change_ms=2", "without `sched_pelt_multiplier_to`"),
            ("linux-6.8+fits_capacity=fifth", "rfc, or a whole number from 1 to 100 %"),
            ("linux-6.8+fits_capacity=101%", "is 101, wanted mainline, threshold, threshold-tick"),
            (
                "linux-6.8+dvfs_headroom=401",
                "mainline, update_delay, or a whole number from 0 to 400 %",
            ),
            ("linux-6.8+dvfs_headroom=-1%", "`dvfs_headroom` is -1"),
            ("linux-6.8+dvfs_headroom=2.5%", "`dvfs_headroom` is 2.5%"),
            ("linux-6.8+rate_limit_us=70%", "`rate_limit_us` is 70%"),
        ] {
            let error = resolved(arg).expect_err(arg);
            assert!(error.contains(words), "{arg}: {error}");
        }
    }
}
