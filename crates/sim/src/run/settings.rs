//! The settings this backend knows, and their defaults on a platform.

use crate::kernel::before;
use crate::kernel::cache;
use crate::kernel::class::dl_placement;
use crate::kernel::class::muqss;
use crate::kernel::class::rt_group;
use crate::kernel::cpuidle;
use crate::kernel::governor::{self, schedutil};
use crate::kernel::perf_domain;
use crate::kernel::pressure;
use crate::kernel::series;
use crate::kernel::sysctls;
use crate::kernel::tracker;
use crate::run::both_ways;
use crate::time::{cost, noise};
use risetime_kernel::cfs_rq::{Tunables, is_cfs};
use risetime_kernel::{KernelRev, features};
use risetime_model::settings::{
    Catalogue, Default, Group, Home, Neutral, Param, Range, Settings, Value,
};
use risetime_model::{Experiment, InputError, Platform, Policy};
use std::collections::BTreeMap;

/// Settings of the kernel and cpufreq that every governor shares.
const KERNEL: &[Param] = &[
    Param {
        name: "governor",
        doc: "the cpufreq governor of every domain",
        unit: "",
        range: Range::OneOf(governor::NAMES),
        default: Default::Name("schedutil"),
        home: Home::Policy("scaling_governor"),
    },
    Param {
        name: "placement",
        doc: "choice of a CPU at wakeups: fair = EAS, else select_idle_sibling; prev = stay where it was",
        unit: "",
        range: Range::OneOf(crate::kernel::placement::NAMES),
        default: Default::Name("fair"),
        home: Home::Simulator(Neutral::Name("fair")),
    },
    Param {
        name: "tracker",
        doc: "tracker of the util that schedutil, EAS and misfit follow (unset: pelt)",
        unit: "",
        range: Range::OneOf(tracker::NAMES),
        default: Default::Unset,
        home: Home::Simulator(Neutral::Name("pelt")),
    },
    Param {
        name: "sched_energy_aware",
        doc: "energy-aware wakeup placement (only with schedutil everywhere, unequal capacities and known power)",
        unit: "",
        range: Range::Int(0, 1),
        default: Default::Derived("1 from 5.0 on; before, only Android's kernels had it"),
        home: Home::Sysctl("kernel.sched_energy_aware"),
    },
    Param {
        name: "freq_invariance",
        doc: "whether PELT's clock, and deadline tasks' time, follow the frequency; no = they know of the CPUs' capacities alone, schedutil goes by the frequency in force, and from 5.11 on there is no energy-aware placement (unset: yes)",
        unit: "",
        range: Range::OneOf(&["yes", "no"]),
        default: Default::Unset,
        home: Home::Simulator(Neutral::Name("yes")),
    },
    Param {
        name: "ni_random",
        doc: "newly idle CPUs look for work as often as it pays off, by dice (on in kernels from 6.19 on and in long-term ones; here off, and in the vm, so that runs can be compared; the dice follow the seed)",
        unit: "",
        range: Range::Int(0, 1),
        default: Default::Int(0),
        home: Home::Feature("NI_RANDOM"),
    },
    Param {
        name: "base_slice_ns",
        doc: "slice of a task that did not ask for another",
        unit: "ns",
        range: Range::Int(100_000, 100_000_000),
        default: Default::Derived(
            "0.7 ms · (1 + log2(CPUs, at most 8)); 0.75 ms in 6.7 to 6.11 and 6.13",
        ),
        home: Home::Debugfs("sched/base_slice_ns"),
    },
    Param {
        name: "sched_latency_ns",
        doc: "the period in which up to 8 tasks of a CPU each run once (CFS, up to 6.5)",
        unit: "ns",
        range: Range::Int(100_000, 1_000_000_000),
        default: Default::Derived("6 ms · (1 + log2(CPUs, at most 8))"),
        home: Home::Debugfs("sched/latency_ns"),
    },
    Param {
        name: "sched_min_granularity_ns",
        doc: "the least a task runs before a tick takes its CPU away (CFS, up to 6.5)",
        unit: "ns",
        range: Range::Int(100_000, 1_000_000_000),
        default: Default::Derived("0.75 ms · (1 + log2(CPUs, at most 8))"),
        home: Home::Debugfs("sched/min_granularity_ns"),
    },
    Param {
        name: "sched_wakeup_granularity_ns",
        doc: "lag that a woken task has to have to preempt (CFS, up to 6.5)",
        unit: "ns",
        range: Range::Int(0, 1_000_000_000),
        default: Default::Derived("1 ms · (1 + log2(CPUs, at most 8))"),
        home: Home::Debugfs("sched/wakeup_granularity_ns"),
    },
    Param {
        name: "cpuidle_governor",
        doc: "governor that chooses idle states, and whether the tick stops",
        unit: "",
        range: Range::OneOf(cpuidle::NAMES),
        default: Default::Name("menu"),
        home: Home::CpuSysfs("cpuidle/current_governor"),
    },
    Param {
        name: "sugov_work_ns",
        doc: "CPU time (at capacity 1024, top frequency) that the sugov kthread needs for a change",
        unit: "ns",
        range: Range::Int(0, 10_000_000),
        default: Default::Int(5_000),
        home: Home::Simulator(Neutral::None),
    },
    Param {
        name: crate::state::class::RT_UCLAMP_MIN,
        doc: "util_min of RT tasks that ask for none: how big a CPU they are given",
        unit: "of 1024",
        range: Range::Int(0, 1024),
        default: Default::Unset,
        home: Home::Sysctl("kernel.sched_util_clamp_min_rt_default"),
    },
    Param {
        name: crate::state::class::UCLAMP_TASK,
        doc: "0: a kernel without CONFIG_UCLAMP_TASK, as Debian's up to 6.12 on arm64. Real-time tasks ask for the highest frequency, and fit on any CPU",
        unit: "",
        range: Range::Int(0, 1),
        default: Default::Unset,
        home: Home::Simulator(Neutral::Int(1)),
    },
    Param {
        name: "uclamp_min",
        doc: "util_min of every task of the workload",
        unit: "of 1024",
        range: Range::Int(0, 1024),
        default: Default::Unset,
        home: Home::SchedAttr("sched_util_min"),
    },
    Param {
        name: "uclamp_max",
        doc: "util_max of every task of the workload",
        unit: "of 1024",
        range: Range::Int(0, 1024),
        default: Default::Unset,
        home: Home::SchedAttr("sched_util_max"),
    },
];

/// Settings of where the experiment starts.
const START: &[Param] = &[
    Param {
        name: "first_cpu",
        doc: "CPU on which the workload's first task is created",
        unit: "",
        range: Range::Int(0, 1023),
        default: Default::Derived("the lowest-numbered CPU of the smallest capacity in its mask"),
        home: Home::Affinity,
    },
    Param {
        name: "start_util",
        doc: "the first task's util_avg at its start (rampup: when its busy phase starts)",
        unit: "of 1024",
        range: Range::Int(0, 1024),
        default: Default::Unset,
        home: Home::Simulator(Neutral::None),
    },
    Param {
        name: "start_period_contrib",
        doc: "part of the current PELT period that has passed at the task's start (se.avg.period_contrib)",
        unit: "µs·1.024",
        range: Range::Int(0, 1023),
        default: Default::Unset,
        home: Home::Simulator(Neutral::None),
    },
    Param {
        name: "first_tick_ns",
        doc: "time from the task's start to the next tick",
        unit: "ns",
        range: Range::Int(0, 1_000_000_000),
        default: Default::Unset,
        home: Home::Simulator(Neutral::None),
    },
    Param {
        name: "background_util",
        doc: "util that other tasks, which take no time here, add on every CPU (background_util.policyN: on those of policy N)",
        unit: "of 1024",
        range: Range::Int(0, 1024),
        default: Default::Int(0),
        home: Home::Simulator(Neutral::Int(0)),
    },
    Param {
        name: both_ways::SHORT_WAYS,
        doc: "0 = simulated twice, with the simulator's short ways and without: the run fails unless both are the same in every event (--slow; unset: once, with them)",
        unit: "",
        range: Range::Int(0, 1),
        default: Default::Unset,
        // A real kernel beside it has none.
        home: Home::Simulator(Neutral::Any),
    },
];

/// Lists every setting of this backend.
pub fn catalogue() -> Catalogue {
    let mut groups = vec![Group { owner: None, params: KERNEL }];
    groups.extend(governor::groups());
    groups.extend(tracker::groups());
    groups.push(Group { owner: None, params: cpuidle::PARAMS });
    groups.push(Group { owner: None, params: crate::kernel::perf_domain::PARAMS });
    groups.push(Group { owner: None, params: crate::kernel::preempt::PARAMS });
    groups.push(Group { owner: None, params: crate::kernel::hrtimer::PARAMS });
    groups.push(Group { owner: None, params: sysctls::PARAMS });
    groups.push(Group { owner: None, params: cache::PARAMS });
    groups.push(Group { owner: None, params: crate::kernel::class::demotion::PARAMS });
    groups.push(Group { owner: None, params: dl_placement::PARAMS });
    groups.push(Group { owner: None, params: crate::state::rt_group::PARAMS });
    groups.push(Group { owner: None, params: crate::state::high::PARAMS });
    groups.push(Group { owner: None, params: crate::state::overcommit::PARAMS });
    groups.push(Group { owner: None, params: series::PARAMS });
    groups.push(Group { owner: None, params: before::PARAMS });
    groups.extend(pressure::groups());
    groups.push(Group { owner: None, params: cost::PARAMS });
    groups.push(Group { owner: None, params: crate::kernel::class::stop::PARAMS });
    groups.push(Group { owner: None, params: muqss::PARAMS });
    groups.push(Group { owner: None, params: crate::user::power_hal::PARAMS });
    groups.extend(crate::user::power_hal::groups());
    groups.push(Group { owner: None, params: START });
    Catalogue { groups }
}

/// Settings of the fair class in either form.
const BASE_SLICE: &[&str] = &["base_slice_ns"];
const CFS_TUNABLES: &[&str] =
    &["sched_latency_ns", "sched_min_granularity_ns", "sched_wakeup_granularity_ns"];

/// The default of a tunable of the fair class; `None`: this kernel has no such tunable.
fn fair_default(platform: &Platform, kernel: KernelRev, name: &str) -> Option<u64> {
    let tunables = Tunables::of(kernel, platform.nr_cpus() as u32, platform.hz);
    match (name, is_cfs(kernel)) {
        ("base_slice_ns", false) => Some(tunables.eevdf.base_slice_ns),
        ("sched_latency_ns", true) => Some(tunables.cfs.latency_ns),
        ("sched_min_granularity_ns", true) => Some(tunables.cfs.min_granularity_ns),
        ("sched_wakeup_granularity_ns", true) => Some(tunables.cfs.wakeup_granularity_ns),
        _ => None,
    }
}

/// The fair class's tunables as this experiment sets them.
pub(crate) fn fair_tunables(e: &Experiment) -> Tunables {
    let p = &e.platform;
    let mut tunables = Tunables::of(e.policy.kernel, p.nr_cpus() as u32, p.hz);
    let ns = |name: &str, default: &mut u64| {
        if let Some(ns) = e.settings.int(name) {
            *default = ns.max(1) as u64;
        }
    };
    ns("base_slice_ns", &mut tunables.eevdf.base_slice_ns);
    ns("sched_latency_ns", &mut tunables.cfs.latency_ns);
    ns("sched_min_granularity_ns", &mut tunables.cfs.min_granularity_ns);
    ns("sched_wakeup_granularity_ns", &mut tunables.cfs.wakeup_granularity_ns);
    tunables.cfs.latency_nice = e.settings.int(series::LATENCY_NICE) == Some(1);
    tunables
}

/// Iterates over the settings that a policy may have of its own, as `NAME.policyN`.
fn per_policy() -> impl Iterator<Item = &'static str> {
    ["rate_limit_us", series::RESPONSE_TIME, "background_util"]
        .into_iter()
        .chain(pressure::per_policy())
}

/// The settings of `policy` on `platform`, all of them.
///
/// Errors: unknown names, values out of range, a tunable of a governor that is not in use, a
/// `first_cpu` or policy that the platform does not have.
pub fn resolve(platform: &Platform, policy: &Policy) -> Result<Settings, InputError> {
    let mut policy = policy.clone();
    let own = take_own(platform, &mut policy)?;
    let policy = &policy;
    let mut settings = catalogue().resolve(policy, &|param| match param.name {
        "sched_energy_aware" => Some(Value::Int(policy.kernel.has(features::EAS).into())),
        "preempt" => Some(crate::kernel::preempt::preempt_of(policy.kernel)),
        name => {
            let of_fair = || fair_default(platform, policy.kernel, name);
            let of_cache = || cache::default(platform, policy.kernel, name);
            let default = sysctls::default(platform, policy.kernel, name).or_else(of_fair);
            let default = default.or_else(of_cache);
            let default = default.or_else(|| noise::default(policy, name));
            let default = default.or_else(|| cost::default(platform, name));
            let default = default.map(|n| Value::Int(n as i64));
            default.or_else(|| governor::default(platform, policy, name))
        }
    })?;
    let fair = BASE_SLICE.iter().chain(CFS_TUNABLES).find(|name| {
        settings.int(name).is_some() && fair_default(platform, policy.kernel, name).is_none()
    });
    if let Some(name) = fair {
        let of = if is_cfs(policy.kernel) { "from 6.6 on (EEVDF)" } else { "up to 6.5 (CFS)" };
        let what = format!("`{name}` is a setting of kernels {of}, and this is {}", policy.kernel);
        let known = if is_cfs(policy.kernel) { CFS_TUNABLES } else { BASE_SLICE };
        return Err(InputError::new(policy.place_of(name), what)
            .hint(format!("that kernel has {}", known.join(", "))));
    }
    if settings.int("rate_limit_us").is_some() && !policy.set.contains_key("rate_limit_us") {
        schedutil::add_rate_limits(policy.kernel, platform, &mut settings);
    }
    series::check(policy, &settings)?;
    sysctls::check(policy, &settings)?;
    cache::check(policy, &settings)?;
    before::check(policy, &settings)?;
    dl_placement::check(platform, policy, &settings)?;
    rt_group::check(policy, &settings)?;
    muqss::check(policy, &settings)?;
    governor::check(policy, &settings)?;
    settings.0.extend(own);
    series::add_response_times(policy.kernel, platform, &mut settings);
    pressure::check(platform, &settings).map_err(|e| at_setting(policy, e))?;
    perf_domain::check(platform, policy, &settings).map_err(|e| at_setting(policy, e))?;
    if let Some(cpu) = settings.int("first_cpu").filter(|c| *c as usize >= platform.nr_cpus()) {
        let last = platform.nr_cpus() - 1;
        return Err(InputError::new(
            setting(policy, "first_cpu", &Value::Int(cpu)),
            format!("there is no such CPU: {} has CPUs 0 to {last}", platform.name),
        ));
    }
    Ok(settings)
}

/// An error about settings that do not go together, where the policy's file says the first of them.
fn at_setting(policy: &Policy, e: InputError) -> InputError {
    let is_of = |key: &str| e.place.contains(key) || e.what.contains(key);
    let name = |key: &str| key.split(".policy").next().is_some_and(is_of);
    match policy.places.iter().find(|(key, _)| name(key)) {
        Some((_, place)) => InputError { place: place.clone(), ..e },
        None => e,
    }
}

/// The place of an error about `key=value`, where it is not the policy's fault.
fn setting(policy: &Policy, key: &str, value: &Value) -> String {
    let said = || format!("setting {key}={value}");
    policy.places.get(key).cloned().unwrap_or_else(said)
}

/// Takes what is meant for single policies out of `policy`, checked like the tunable it belongs to.
fn take_own(platform: &Platform, policy: &mut Policy) -> Result<Vec<(String, Value)>, InputError> {
    let tunable = |key: &str| {
        let (name, of) = key.split_once(".policy")?;
        per_policy().find(|n| *n == name).map(|name| (name, of.to_string()))
    };
    let mut all = Vec::new();
    let (own, shared): (BTreeMap<_, _>, BTreeMap<_, _>) =
        std::mem::take(&mut policy.set).into_iter().partition(|(key, _)| tunable(key).is_some());
    policy.set = shared;
    for (key, value) in own {
        let Some((name, of)) = tunable(&key) else { continue };
        let known: Vec<String> = platform.domains.iter().map(|d| d.cpus[0].0.to_string()).collect();
        if !known.contains(&of) {
            let known = known.join(", policy");
            let what = format!("there is no such policy: {} has policy{known}", platform.name);
            return Err(InputError::new(setting(policy, &key, &value), what));
        }
        let mut as_one = policy.clone().set_for_all(name, value.clone());
        as_one.places.extend(policy.places.get(&key).map(|at| (name.to_string(), at.clone())));
        catalogue().resolve(&as_one, &|_| None)?;
        all.push((key, value));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(arg: &str) -> Result<Settings, String> {
        let m1 = Platform::load("m1").expect("built in");
        resolve(&m1, &Policy::from_arg(arg).expect("a policy")).map_err(|e| e.to_string())
    }

    #[test]
    fn a_policy_may_have_its_own_tunable() {
        let s = resolved("linux-6.8+rate_limit_us=70+rate_limit_us.policy4=500").expect("fine");
        let at = |name| s.int(name);
        assert_eq!((at("rate_limit_us"), at("rate_limit_us.policy4")), (Some(70), Some(500)));
        assert_eq!(at("rate_limit_us.policy0"), None);
        let s =
            resolved("linux-6.8+rate_limit_us.policy0=1+rate_limit_us.policy4=2").expect("fine");
        assert_eq!(s.int("rate_limit_us.policy0"), Some(1), "several of them");
        let s = resolved("linux-6.8+background_util=18+background_util.policy4=0").expect("fine");
        assert_eq!(s.int("background_util.policy4"), Some(0));
        assert!(resolved("linux-6.8+background_util.policy4=1025").is_err());
    }

    #[test]
    fn the_response_time_of_each_policy_is_its_own_unless_somebody_says_otherwise() {
        let of = |arg: &str| {
            let s = resolved(&format!("linux-6.8{arg}")).expect("fine");
            ["", ".policy0", ".policy4"].map(|p| s.int(&format!("response_time_ms{p}")))
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
