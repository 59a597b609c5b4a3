//! Tunables of the fair class in either form: EEVDF's (from 6.6 on), CFS's (up to 6.5).

use crate::mech::series::LATENCY_NICE;
use crate::mech::switches;
use risetime_kernel::cfs_rq::{Tunables, is_cfs};
use risetime_model::settings::{Default, Home, Int, Param, Range, Settings, Value};
use risetime_model::{Experiment, InputError, Platform, Policy};

/// Slice of a task that did not ask for another, in ns.
pub const BASE_SLICE_NS: Int = Int::new(Param {
    name: "base_slice_ns",
    doc: "slice of a task that did not ask for another",
    unit: "ns",
    range: Range::Int(100_000, 100_000_000),
    default: Default::Derived(
        "0.7 ms · (1 + log2(CPUs, at most 8)); 0.75 ms in 6.7 to 6.11 and 6.13",
        |platform, policy| of_eevdf(platform, policy, |t| t.eevdf.base_slice_ns),
    ),
    home: Home::Debugfs("sched/base_slice_ns"),
});

pub(crate) const SCHED_LATENCY_NS: Int = Int::new(Param {
    name: "sched_latency_ns",
    doc: "the period in which up to 8 tasks of a CPU each run once (CFS, up to 6.5)",
    unit: "ns",
    range: Range::Int(100_000, 1_000_000_000),
    default: Default::Derived("6 ms · (1 + log2(CPUs, at most 8))", |platform, policy| {
        of_cfs(platform, policy, |t| t.cfs.latency_ns)
    }),
    home: Home::Debugfs("sched/latency_ns"),
});

pub(crate) const SCHED_MIN_GRANULARITY_NS: Int = Int::new(Param {
    name: "sched_min_granularity_ns",
    doc: "the least a task runs before a tick takes its CPU away (CFS, up to 6.5)",
    unit: "ns",
    range: Range::Int(100_000, 1_000_000_000),
    default: Default::Derived("0.75 ms · (1 + log2(CPUs, at most 8))", |platform, policy| {
        of_cfs(platform, policy, |t| t.cfs.min_granularity_ns)
    }),
    home: Home::Debugfs("sched/min_granularity_ns"),
});

pub(crate) const SCHED_WAKEUP_GRANULARITY_NS: Int = Int::new(Param {
    name: "sched_wakeup_granularity_ns",
    doc: "lag that a woken task has to have to preempt (CFS, up to 6.5)",
    unit: "ns",
    range: Range::Int(0, 1_000_000_000),
    default: Default::Derived("1 ms · (1 + log2(CPUs, at most 8))", |platform, policy| {
        of_cfs(platform, policy, |t| t.cfs.wakeup_granularity_ns)
    }),
    home: Home::Debugfs("sched/wakeup_granularity_ns"),
});

/// Settings of the fair class in either form.
const OF_EEVDF: [Int; 1] = [BASE_SLICE_NS];
const OF_CFS: [Int; 3] = [SCHED_LATENCY_NS, SCHED_MIN_GRANULARITY_NS, SCHED_WAKEUP_GRANULARITY_NS];

fn of(platform: &Platform, policy: &Policy) -> Tunables {
    Tunables::of(policy.kernel, platform.nr_cpus() as u32, platform.hz)
}

/// The default of a tunable of EEVDF; `None`: this kernel has none.
fn of_eevdf(platform: &Platform, policy: &Policy, ns: fn(&Tunables) -> u64) -> Option<Value> {
    (!is_cfs(policy.kernel)).then(|| Value::Int(ns(&of(platform, policy)) as i64))
}

/// The default of a tunable of CFS; `None`: this kernel has none.
fn of_cfs(platform: &Platform, policy: &Policy, ns: fn(&Tunables) -> u64) -> Option<Value> {
    is_cfs(policy.kernel).then(|| Value::Int(ns(&of(platform, policy)) as i64))
}

/// Errors: a tunable of the form that this kernel does not have.
pub(crate) fn check(_: &Platform, policy: &Policy, settings: &Settings) -> Result<(), InputError> {
    let (known, others, of) = match is_cfs(policy.kernel) {
        true => (&OF_CFS[..], &OF_EEVDF[..], "from 6.6 on (EEVDF)"),
        false => (&OF_EEVDF[..], &OF_CFS[..], "up to 6.5 (CFS)"),
    };
    let Some(other) = others.iter().find(|other| settings.is_set(*other)) else { return Ok(()) };
    let what = format!("`{other}` is a setting of kernels {of}, and this is {}", policy.kernel);
    let known: Vec<&str> = known.iter().map(|of| of.name).collect();
    Err(InputError::new(policy.place_of(other.name), what)
        .hint(format!("that kernel has {}", known.join(", "))))
}

/// The fair class's tunables as this experiment sets them.
pub(crate) fn of_experiment(e: &Experiment) -> Tunables {
    let mut tunables = of(&e.platform, &e.policy);
    let ns = |of: &Int, default: &mut u64| {
        if let Some(ns) = e.settings.get(of) {
            *default = ns.max(1) as u64;
        }
    };
    ns(&BASE_SLICE_NS, &mut tunables.eevdf.base_slice_ns);
    ns(&SCHED_LATENCY_NS, &mut tunables.cfs.latency_ns);
    ns(&SCHED_MIN_GRANULARITY_NS, &mut tunables.cfs.min_granularity_ns);
    ns(&SCHED_WAKEUP_GRANULARITY_NS, &mut tunables.cfs.wakeup_granularity_ns);
    tunables.switches = switches::of_settings(e.policy.kernel, &e.settings);
    tunables.cfs.latency_nice = e.settings.get(&LATENCY_NICE) == Some(1);
    tunables
}
