//! The scheduler's sysctls and debugfs files that hold for the whole machine, and that no other file has.
//!
//! `sched_rt_runtime_us` limits real-time tasks up to 6.11 (`class/rt.rs`); from 6.12 on the fair
//! class has a deadline server instead, whose runtime and period are files of each CPU in debugfs (here the same of all), and only the admission of
//! deadline tasks is left of it. `sched_nr_migrate` is 8 in kernels with PREEMPT_RT.
//!
//! Source: kernel/sched/rt.c, deadline.c, fair.c, debug.c.

pub(crate) mod state;

use crate::mech::demotion::DEMOTION;
use crate::mech::mechanism::Mechanism;
use crate::mech::sysctls::state::Sysctls;
use crate::state::machine::Machine;
use risetime_kernel::dl_server;
use risetime_kernel::rt::{RtBandwidth, rr_timeslice, rr_timeslice_ms, rr_timeslice_of_ms};
use risetime_kernel::units::Span;
use risetime_kernel::{KernelRev, features};
use risetime_model::settings::{Default, Group, Home, Int, Param, Range, Settings, Value};
use risetime_model::{Experiment, InputError, Platform, Policy};

impl Mechanism for state::Own {
    fn groups() -> Vec<Group> {
        vec![GROUP]
    }
    fn of_machine(e: &Experiment, _: &Machine) -> Sysctls {
        of_experiment(e)
    }
}

const GROUP: Group = Group::of(&[
    RT_PERIOD.0,
    RT_RUNTIME.0,
    RR_TIMESLICE.0,
    CFS_SLICE.0,
    MIGRATION_COST.0,
    NR_MIGRATE.0,
    SERVER_RUNTIME.0,
    SERVER_PERIOD.0,
])
.titled("Sysctls")
.checked(check);

const RT_PERIOD: Int = Int::new(Param {
    name: "sched_rt_period_us",
    doc: "period in which real-time tasks (up to 6.11) and deadline tasks may have sched_rt_runtime_us of each CPU",
    unit: "µs",
    range: Range::Int(1, INT_MAX),
    default: Default::Int(RT_PERIOD_US),
    home: Home::Sysctl("kernel.sched_rt_period_us"),
});
const RT_RUNTIME: Int = Int::new(Param {
    name: "sched_rt_runtime_us",
    doc: "share of sched_rt_period_us: up to 6.11 real-time tasks that ran longer wait for the next period, in all kernels deadline tasks may reserve as much; -1 = no limit",
    unit: "µs",
    range: Range::Int(-1, INT_MAX),
    default: Default::Derived(
        "950000; from 7.2 on 1000000, of which the fair servers have their 5 %",
        |_, policy| Some(Value::Int(rt_runtime_us(policy.kernel))),
    ),
    home: Home::Sysctl("kernel.sched_rt_runtime_us"),
});
pub(crate) const RR_TIMESLICE: Int = Int::new(Param {
    name: "sched_rr_timeslice_ms",
    doc: "slice of a SCHED_RR task, rounded up to whole ticks",
    unit: "ms",
    range: Range::Int(1, 1_000_000),
    default: Default::Derived("100 ms, rounded down to whole ticks", |platform, _| {
        Some(Value::Int(rr_timeslice_ms(platform.hz).into()))
    }),
    home: Home::Sysctl("kernel.sched_rr_timeslice_ms"),
});
const CFS_SLICE: Int = Int::new(Param {
    name: "sched_cfs_bandwidth_slice_us",
    doc: "part of a group's quota that a CPU takes at a time",
    unit: "µs",
    range: Range::Int(1, 10_000_000),
    default: Default::Int(CFS_SLICE_US),
    home: Home::Sysctl("kernel.sched_cfs_bandwidth_slice_us"),
});
const MIGRATION_COST: Int = Int::new(Param {
    name: "migration_cost_ns",
    doc: "a task that ran so recently is cache-hot, and load balancing leaves it where it is at first; 0 = none is, 4294967295 = all are",
    unit: "ns",
    range: Range::Int(0, ALWAYS_HOT),
    default: Default::Int(MIGRATION_COST_NS),
    home: Home::Debugfs("sched/migration_cost_ns"),
});
const NR_MIGRATE: Int = Int::new(Param {
    name: "nr_migrate",
    doc: "tasks of a CPU that load balancing looks at in one go (a kernel with PREEMPT_RT has 8)",
    unit: "tasks",
    range: Range::Int(0, 4_294_967_295),
    default: Default::Int(NR_MIGRATE_BREAK),
    home: Home::Debugfs("sched/nr_migrate"),
});
const SERVER_RUNTIME: Int = Int::new(Param {
    name: "fair_server_runtime_ns",
    doc: "part of its period that each CPU's fair server gives to fair tasks that starve (since 6.12); 0 = the server never runs",
    unit: "ns",
    range: Range::Int(0, SERVER_PERIOD_NS.1),
    default: Default::Derived("50 ms; before 6.12 there is no such server", |_, policy| {
        of_server(policy, dl_server::SERVER_RUNTIME)
    }),
    home: Home::DebugfsCpu("sched/fair_server/cpuN/runtime"),
});
const SERVER_PERIOD: Int = Int::new(Param {
    name: "fair_server_period_ns",
    doc: "period of the fair server (since 6.12), which waits until its runtime just fits in the rest of it",
    unit: "ns",
    range: Range::Int(SERVER_PERIOD_NS.0, SERVER_PERIOD_NS.1),
    default: Default::Derived("1 s; before 6.12 there is no such server", |_, policy| {
        of_server(policy, dl_server::SERVER_PERIOD)
    }),
    home: Home::DebugfsCpu("sched/fair_server/cpuN/period"),
});

const RT_PERIOD_US: i64 = 1_000_000;
const CFS_SLICE_US: i64 = 5_000;
const MIGRATION_COST_NS: i64 = 500_000;
/// `fair_server_period_min`, `fair_server_period_max`.
const SERVER_PERIOD_NS: (i64, i64) = (100_000, (1 << 22) * 1000);
/// `SCHED_NR_MIGRATE_BREAK`.
const NR_MIGRATE_BREAK: i64 = 32;

const INT_MAX: i64 = i32::MAX as i64;
/// -1 of 32 bits.
const ALWAYS_HOT: i64 = u32::MAX as i64;

/// `sysctl_sched_rt_runtime`: from 7.2 on the servers of other classes keep their part of a CPU, and deadline tasks may reserve the
/// rest. Asked of Debian's kernels with one CPU: 6.12.117 refuses 94 of 100 ms, 7.2.13 and 7.3.4 take 94 and refuse 96.
fn rt_runtime_us(kernel: KernelRev) -> i64 {
    if kernel.has(features::RT_RUNTIME_WHOLE) { 1_000_000 } else { 950_000 }
}

/// The default of a time of the fair server; `None`: this kernel has none.
fn of_server(policy: &Policy, own: Span) -> Option<Value> {
    policy.kernel.has(features::FAIR_SERVER).then_some(Value::Int(own.0 as i64))
}

/// The runtime and period of the fair class's deadline servers; `None`: this kernel has none.
pub(crate) fn fair_server(e: &Experiment) -> Option<(Span, Span)> {
    let ns =
        |of: &Int, default: Span| e.settings.get(of).map_or(default, |ns| Span(ns.max(0) as u64));
    e.policy.kernel.has(features::FAIR_SERVER).then(|| {
        let runtime = ns(&SERVER_RUNTIME, dl_server::SERVER_RUNTIME);
        (runtime, ns(&SERVER_PERIOD, dl_server::SERVER_PERIOD))
    })
}

/// Errors: what the kernel refuses when it is written.
fn check(_: &Platform, policy: &Policy, settings: &Settings) -> Result<(), InputError> {
    let server = [SERVER_RUNTIME, SERVER_PERIOD];
    if !policy.kernel.has(features::FAIR_SERVER)
        && let Some(name) = server.into_iter().find(|of| settings.is_set(of))
    {
        let what = format!(
            "`{name}` is a setting of the fair server, which kernels from 6.12 on have, and this is {}",
            policy.kernel
        );
        return Err(InputError::new(policy.place_of(name.name), what)
            .hint("older ones have sched_rt_runtime_us and sched_rt_period_us"));
    }
    for [runtime, period] in [[RT_RUNTIME, RT_PERIOD], server] {
        let (least, most) = (settings.get(&runtime), settings.get(&period));
        if least > most {
            let set = [runtime, period].into_iter().find(|of| policy.said(of).is_some());
            let [least, most] = [least, most].map(Option::unwrap_or_default);
            let what = format!("`{runtime}` is {least}, more than `{period}`, {most}");
            return Err(InputError::new(policy.place_of(set.unwrap_or(runtime).name), what));
        }
    }
    Ok(())
}

/// The sysctls that settings ask for.
pub(crate) fn of_experiment(e: &Experiment) -> Sysctls {
    let int = |of: &Int, default: i64| e.settings.get(of).unwrap_or(default);
    let us = |of: &Int, default: i64| Span::from_us(int(of, default).max(0) as u64);
    let rt_runtime = int(&RT_RUNTIME, rt_runtime_us(e.policy.kernel));
    let cost = int(&MIGRATION_COST, MIGRATION_COST_NS);
    let hz = e.platform.hz;
    let own_ms = i64::from(rr_timeslice_ms(hz));
    let rr_timeslice = match int(&RR_TIMESLICE, own_ms) {
        ms if ms == own_ms => rr_timeslice(hz),
        ms => rr_timeslice_of_ms(ms.max(0) as u64, hz),
    };
    Sysctls {
        rt: RtBandwidth {
            period: us(&RT_PERIOD, RT_PERIOD_US),
            runtime: (rt_runtime >= 0).then(|| Span::from_us(rt_runtime as u64)),
        },
        rr_timeslice,
        cfs_slice: us(&CFS_SLICE, CFS_SLICE_US),
        migration_cost: (cost != ALWAYS_HOT).then_some(Span(cost.max(0) as u64)),
        demotion: e.settings.get(&DEMOTION) == Some("on"),
        nr_migrate: int(&NR_MIGRATE, NR_MIGRATE_BREAK).max(0) as usize,
    }
}
