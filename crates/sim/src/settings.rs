//! The settings this backend knows, and their defaults on a platform.

use crate::governor::{self, schedutil};
use risetime_kernel::eevdf::Tunables;
use risetime_model::settings::{Catalogue, Default, Group, Param, Range, Settings, Value};
use risetime_model::{InputError, Platform, Policy};

/// How the system decides: kernel and cpufreq settings that every governor shares.
const KERNEL: &[Param] = &[
    Param {
        name: "governor",
        doc: "the cpufreq governor of every domain",
        unit: "",
        range: Range::OneOf(governor::NAMES),
        default: Default::Name("schedutil"),
        kernel_name: "cpufreq/policyN/scaling_governor",
    },
    Param {
        name: "placement",
        doc: "how wakeups choose a CPU: fair = EAS, else select_idle_sibling; prev = stay where it was",
        unit: "",
        range: Range::OneOf(crate::placement::NAMES),
        default: Default::Name("fair"),
        kernel_name: "",
    },
    Param {
        name: "sched_energy_aware",
        doc: "energy-aware wakeup placement (only with schedutil everywhere, unequal capacities and known power)",
        unit: "",
        range: Range::Int(0, 1),
        default: Default::Int(1),
        kernel_name: "kernel.sched_energy_aware",
    },
    Param {
        name: "base_slice_ns",
        doc: "slice of a task that did not ask for another",
        unit: "ns",
        range: Range::Int(100_000, 100_000_000),
        default: Default::Derived("0.7 ms · (1 + log2(CPUs, at most 8)); 0.75 ms before 6.15"),
        kernel_name: "debug/sched/base_slice_ns",
    },
    Param {
        name: "sugov_work_ns",
        doc: "CPU time (at capacity 1024, top frequency) that the sugov kthread needs for a change",
        unit: "ns",
        range: Range::Int(0, 10_000_000),
        default: Default::Int(5_000),
        kernel_name: "",
    },
    Param {
        name: "uclamp_min",
        doc: "util_min of every task of the workload",
        unit: "of 1024",
        range: Range::Int(0, 1024),
        default: Default::Unset,
        kernel_name: "sched_setattr: sched_util_min",
    },
    Param {
        name: "uclamp_max",
        doc: "util_max of every task of the workload",
        unit: "of 1024",
        range: Range::Int(0, 1024),
        default: Default::Unset,
        kernel_name: "sched_setattr: sched_util_max",
    },
];

/// Where the experiment starts.
const START: &[Param] = &[
    Param {
        name: "first_cpu",
        doc: "CPU on which the workload's first task is created",
        unit: "",
        range: Range::Int(0, 1023),
        default: Default::Derived("the lowest-numbered CPU of the smallest capacity in its mask"),
        kernel_name: "",
    },
    Param {
        name: "start_util",
        doc: "the first task's util_avg at its start (rampup: when its busy phase starts)",
        unit: "of 1024",
        range: Range::Int(0, 1024),
        default: Default::Unset,
        kernel_name: "se.avg.util_avg",
    },
    Param {
        name: "start_period_contrib",
        doc: "how much of the current PELT period has passed then",
        unit: "µs·1.024",
        range: Range::Int(0, 1023),
        default: Default::Unset,
        kernel_name: "se.avg.period_contrib",
    },
    Param {
        name: "first_tick_ns",
        doc: "time from then to the next tick",
        unit: "ns",
        range: Range::Int(0, 1_000_000_000),
        default: Default::Unset,
        kernel_name: "",
    },
    Param {
        name: "background_util",
        doc: "util that other tasks, which take no time here, add on every CPU",
        unit: "of 1024",
        range: Range::Int(0, 1024),
        default: Default::Int(0),
        kernel_name: "",
    },
];

/// Every setting of this backend.
pub fn catalogue() -> Catalogue {
    let mut groups = vec![Group { owner: None, params: KERNEL }];
    groups.extend(governor::groups());
    groups.push(Group { owner: None, params: START });
    Catalogue { groups }
}

/// The settings of `policy` on `platform`, all of them.
///
/// Errors: unknown names, values out of range, a tunable of a governor that is not in use, a
/// `first_cpu` that the platform does not have.
pub fn resolve(platform: &Platform, policy: &Policy) -> Result<Settings, InputError> {
    let mut settings = catalogue().resolve(policy, &|param| match param.name {
        "rate_limit_us" => {
            platform.domains.first().map(|d| Value::Int(schedutil::rate_limit_us(policy.kernel, d)))
        }
        "base_slice_ns" => Some(Value::Int(
            Tunables::of(policy.kernel, platform.nr_cpus() as u32, platform.hz).base_slice_ns
                as i64,
        )),
        _ => None,
    })?;
    if settings.int("rate_limit_us").is_some() && !policy.set.contains_key("rate_limit_us") {
        schedutil::add_rate_limits(policy.kernel, platform, &mut settings);
    }
    if let Some(cpu) = settings.int("first_cpu").filter(|c| *c as usize >= platform.nr_cpus()) {
        let last = platform.nr_cpus() - 1;
        return Err(InputError::new(
            format!("setting first_cpu={cpu}"),
            format!("there is no such CPU: {} has CPUs 0 to {last}", platform.name),
        ));
    }
    Ok(settings)
}
