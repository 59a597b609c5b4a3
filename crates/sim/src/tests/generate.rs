//! Generated platforms, workloads and settings.

use proptest::collection::vec;
use proptest::prelude::*;
use risetime_kernel::sched_qos::{SchedQosHint, SchedQosType};
use risetime_kernel::units::{Capacity, CpuId, KHz, MicroWatts, Span, Util};
use risetime_model::Experiment;
use risetime_model::platform::{Domain, IdleState, Opp, Platform, Together, Topology};
use risetime_model::settings::Value;
use risetime_model::workload::{
    Attr, Event, Hotplug, Objects, PIECE, Phase, Policy, Repeat, StartAt, TaskGroup, TaskSpec,
    Timer, Workload,
};
use std::sync::Arc;

/// An experiment of a few hundred ms.
pub(crate) fn experiments() -> impl Strategy<Value = Experiment> {
    platforms()
        .prop_flat_map(|p| {
            let n = p.nr_cpus() as u32;
            (Just(p), workloads(n), policies(), settings(n), 100..300u64, 0..5_000_000u64)
        })
        .prop_map(|(platform, workload, (policy, governor), set, ms, phase)| {
            let mut set = set;
            set.push(("governor", Value::Name(governor.into())));
            let allowed = |k: &str| match k {
                "rate_limit_us"
                | "response_time_ms"
                | "dvfs_headroom"
                | "waiting_headroom"
                | "no_decaying_headroom" => governor == "schedutil",
                "scaling_setspeed" => governor == "userspace",
                "base_slice_ns" => policy != "linux-6.1",
                "sched_latency_ns" | "sched_wakeup_granularity_ns" => policy == "linux-6.1",
                _ => true,
            };
            set.retain(|(k, _)| allowed(k));
            let e = super::experiment(platform, workload, policy, &set, Span::from_ms(ms));
            Experiment { phase: Span(phase), ..e }
        })
}

/// Experiments with less of what keeps a run from the short ways: most have CPUs alike, fair tasks only, no
/// clamps, no groups, no switch of the response-time series. Limits, stoppers and hotplug stay.
pub(crate) fn mostly_plain() -> impl Strategy<Value = Experiment> {
    let mostly = || prop::bool::weighted(0.8);
    let stop = prop::option::weighted(0.5, 0..10_000_000i64);
    let limit = prop::option::weighted(0.3, 0..3_000_000i64);
    let changes = vec((0..300_000_000u64, any::<u32>()), 0..5);
    let keep = (mostly(), mostly(), mostly(), mostly(), mostly());
    (experiments(), keep, stop, limit, changes).prop_map(
        |(mut e, (alike, fair, unclamped, flat, mainline), stop, limit, changes)| {
            let platform = Arc::make_mut(&mut e.platform);
            let n = platform.nr_cpus() as u32;
            for d in platform.domains.iter_mut().filter(|_| alike) {
                (d.capacity, d.fast_switch) = (Capacity(1024), true);
            }
            let workload = Arc::make_mut(&mut e.workload);
            if flat {
                workload.groups.clear();
            }
            for task in &mut workload.tasks {
                let attrs = task.phases.iter_mut().map(|p| &mut p.attr).chain([&mut task.attr]);
                attrs.for_each(|attr| simpler(attr, fair, unclamped, flat));
            }
            if fair && flat {
                workload.hotplug = hotplug(n, changes);
            }
            if mainline {
                SERIES.iter().for_each(|name| e.settings.remove(name));
            }
            let set = [("stop_work_ns", stop), ("scaling_max_freq", limit)];
            for (name, value) in set.into_iter().filter_map(|(name, v)| Some((name, v?))) {
                e.settings.remove("scaling_min_freq");
                e.settings.insert(name, Value::Int(value));
            }
            e
        },
    )
}

fn simpler(attr: &mut Attr, fair: bool, unclamped: bool, flat: bool) {
    if fair {
        attr.policy = None;
    }
    if unclamped {
        (attr.uclamp_min, attr.uclamp_max) = (None, None);
        attr.qos.clear();
    }
    if flat {
        attr.taskgroup = None;
    }
}

/// The settings of [`series`].
const SERIES: [&str; 15] = [
    "fits_capacity",
    "dvfs_headroom",
    "sched_pelt_multiplier",
    "response_time_ms",
    "util_est_running",
    "util_est_periodic",
    "rampup_multiplier",
    "util_est_off_at_0",
    "waiting_avg",
    "waiting_headroom",
    "no_decaying_headroom",
    "util_avg_0_on_fork",
    "runnable_boost",
    "util_est_faster",
    "util_est_boost",
];

/// Kernels, one of each generation of the fair class.
const KERNELS: [&str; 5] = ["linux-6.1", "linux-6.8", "linux-6.12", "linux-7.2", "linux-7.3"];

fn policies() -> impl Strategy<Value = (&'static str, &'static str)> {
    let policy = prop::sample::select(&KERNELS[..]);
    let governor = prop_oneof![4 => Just("schedutil"), 1 => Just("performance"), 1 => Just("powersave"), 1 => Just("userspace")];
    (policy, governor)
}

fn settings(nr_cpus: u32) -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    (general(nr_cpus), series(), around())
        .prop_map(|(general, series, around)| [general, series, around].concat())
}

/// Draws what takes time and capacity from outside: any of it, or (two thirds of the time) nothing.
fn around() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    let irq = prop::option::weighted(0.5, (201..5_000i64, 0..200i64)).prop_map(|irq| {
        irq.map_or(Vec::new(), |(period, us)| vec![("irq_period_us", period), ("irq_us", us)])
    });
    let limits = prop::option::weighted(0.5, (0..3_000_000i64, 0..3_000_000i64)).prop_map(|l| {
        l.map_or(Vec::new(), |(a, b)| {
            vec![("scaling_min_freq", a.min(b)), ("scaling_max_freq", a.max(b))]
        })
    });
    let hw = prop::option::weighted(0.5, (0..3_000_000i64, 0..200i64)).prop_map(|hw| {
        hw.map_or(Vec::new(), |(khz, ms)| vec![("hw_capped_khz", khz), ("hw_capped_from_ms", ms)])
    });
    let costs = (
        int("switch_cost_ns", 0..20_000),
        int("cold_cache_ns", 0..300_000),
        int("timer_slack_ns", 0..2_000_000),
        int("memory_bound", 0..1025),
        int("smt_speed", 1..1025),
    );
    let noise = prop::option::weighted(0.5, prop::sample::select(&["vm", "machine"][..]));
    let all = (irq, limits, hw, costs, noise).prop_map(|(irq, limits, hw, (a, b, c, d, e), n)| {
        let all = [irq, limits, hw].concat().into_iter();
        let costs = [a, b, c, d, e].into_iter().flatten();
        let noise = n.map(|n| ("noise", Value::Name(n.into())));
        all.map(|(name, v)| (name, Value::Int(v))).chain(costs).chain(noise).collect()
    });
    prop_oneof![2 => Just(Vec::new()), 1 => all]
}

fn int(
    name: &'static str,
    range: std::ops::Range<i64>,
) -> impl Strategy<Value = Option<(&'static str, Value)>> {
    prop::option::weighted(0.3, range).prop_map(move |v| v.map(|v| (name, Value::Int(v))))
}

/// The switches of the response-time series: any of them, or (half the time) none.
fn series() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    let name = |name: &'static str, values: &'static [&'static str]| {
        let value = prop::sample::select(values);
        prop::option::weighted(0.3, value)
            .prop_map(move |v| v.map(|v| (name, Value::Name(v.into()))))
    };
    let margins = name("fits_capacity", &["threshold", "threshold-tick", "rfc"]);
    let headroom = name("dvfs_headroom", &["update_delay"]);
    let multiplier = prop::option::weighted(0.3, prop::sample::select(&[1, 2, 4][..]))
        .prop_map(|m| m.map(|m| ("sched_pelt_multiplier", Value::Int(m))));
    let all = (
        (margins, headroom, multiplier, int("response_time_ms", 0..500)),
        (int("util_est_running", 0..2), int("util_est_periodic", 0..2)),
        (int("rampup_multiplier", 0..20), int("util_est_off_at_0", 0..2)),
        (
            int("waiting_avg", 0..2),
            int("waiting_headroom", 0..2),
            int("no_decaying_headroom", 0..2),
        ),
        (int("util_avg_0_on_fork", 0..2), int("runnable_boost", 0..2)),
        (int("util_est_faster", 0..2), int("util_est_boost", 0..2)),
    )
        .prop_map(|((a, b, c, d), (e, f), (g, h), (i, j, k), (l, m), (n, o))| {
            [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o].into_iter().flatten().collect()
        });
    prop_oneof![Just(Vec::new()), all]
}

fn general(nr_cpus: u32) -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    let placement =
        prop_oneof![3 => Just(None), 1 => Just(Some(("placement", Value::Name("prev".into()))))];
    (
        (
            int("rate_limit_us", 0..20_000),
            int("scaling_setspeed", 0..4_000_000),
            int("sugov_work_ns", 0..200_000),
        ),
        (
            int("background_util", 0..300),
            int("start_util", 0..1025),
            int("start_period_contrib", 0..1024),
        ),
        (
            int("first_tick_ns", 0..20_000_000),
            int("first_cpu", 0..i64::from(nr_cpus)),
            int("sched_energy_aware", 0..2),
            int("stop_work_ns", 0..300_000),
        ),
        (
            int("base_slice_ns", 100_000..8_000_000),
            int("sched_latency_ns", 1_000_000..60_000_000),
            int("sched_wakeup_granularity_ns", 0..8_000_000),
            placement,
        ),
    )
        .prop_map(|((a, b, c), (d, e, f), (g, h, i, s), (j, k, l, m))| {
            [a, b, c, d, e, f, g, h, i, j, k, l, m, s].into_iter().flatten().collect()
        })
}

pub(crate) fn platforms() -> impl Strategy<Value = Platform> {
    let hz = prop_oneof![Just(100), Just(250), Just(300), Just(1000)];
    let shared = (any::<bool>(), prop::bool::weighted(0.3), 11..60u32);
    let all = (vec(domains(), 1..=4), hz, any::<bool>(), shared);
    all.prop_map(|(mut domains, hz, one_cluster, shared)| {
        let mut first = 0;
        for (i, d) in domains.iter_mut().enumerate() {
            let n = d.cpus.len() as u32;
            d.cpus = (first..first + n).map(CpuId).collect();
            d.cluster = if one_cluster { 0 } else { i as u32 };
            first += n;
        }
        // The biggest CPU has 1024.
        let biggest = domains.iter().map(|d| d.capacity).max().expect("a domain");
        domains
            .iter_mut()
            .filter(|d| d.capacity == biggest)
            .for_each(|d| d.capacity = Capacity(1024));
        let sources =
            [("capacity", "generated"), ("opp", "generated")].map(|(k, v)| (k.into(), v.into()));
        let topology = topology(&domains, shared);
        Platform {
            name: "generated".into(),
            about: String::new(),
            hz,
            domains,
            topology,
            sources: sources.into(),
            thermal: Vec::new(),
            doubts: Vec::new(),
        }
    })
}

/// Pairs of threads, and a node for each cache, as drawn.
fn topology(domains: &[Domain], (smt, numa, far): (bool, bool, u32)) -> Topology {
    let mut topology = Topology::default();
    if smt {
        let pairs = domains.iter().flat_map(|d| d.cpus.chunks_exact(2));
        topology.cores = pairs.map(<[CpuId]>::to_vec).collect();
    }
    if numa && domains.windows(2).all(|d| d[0].cluster != d[1].cluster) && domains.len() > 1 {
        topology.nodes = domains.iter().map(|d| d.cpus.clone()).collect();
        let n = domains.len();
        let distance =
            |a: usize, b: usize| if a == b { 10 } else { 10 + far * a.abs_diff(b) as u32 };
        topology.distance = (0..n).map(|a| (0..n).map(|b| distance(a, b)).collect()).collect();
    }
    topology
}

fn domains() -> impl Strategy<Value = Domain> {
    let opp = (50_000..800_000u64, 1_000..500_000u64, 0..400_000u64);
    let idle = (0..300_000u64, 0..5_000_000u64);
    let capacity = prop_oneof![Just(1024), Just(512), 100..1024u64];
    (
        1..=4u32,
        capacity,
        any::<bool>(),
        vec(opp, 1..=6),
        vec(idle, 0..=2),
        prop::bool::weighted(0.8),
    )
        .prop_map(|(cpus, capacity, fast_switch, opps, idle, powered)| {
            let (mut freq, mut power) = (0, 0);
            let opps = opps.into_iter().map(|(f, p, latency)| {
                (freq, power) = (freq + f, power + p);
                let power = MicroWatts(if powered { power } else { 0 });
                Opp::new(KHz(freq), power, Span(latency))
            });
            let (mut exit, mut residency) = (0, 0);
            let idle = idle.into_iter().enumerate().map(|(i, (e, r))| {
                (exit, residency) = (exit + e, residency + r);
                let power = MicroWatts(1000 - 100 * i as u64);
                let state = IdleState::new(&format!("c{i}"), Span(exit), Span(residency), power);
                // The second one is the cluster's, and takes time to enter.
                let together = (i > 0).then_some(Together::Domain);
                IdleState { entry_latency: Span(e * i as u64), together, ..state }
            });
            Domain {
                cpus: (0..cpus).map(CpuId).collect(),
                cluster: 0,
                capacity: Capacity(capacity),
                energy_model: true,
                fast_switch,
                transition_delay_us: None,
                opps: opps.collect(),
                levels: None,
                idle: idle.collect(),
                work: Vec::new(),
            }
        })
}

fn workloads(nr_cpus: u32) -> impl Strategy<Value = Workload> {
    let start = prop::option::weighted(0.2, 0..2usize);
    let changes = vec((0..300_000_000u64, any::<u32>()), 0..5);
    (vec(tasks(nr_cpus), 1..=6), prop::option::of(groups()), start, changes).prop_map(
        move |(mut tasks, groups, start, changes)| {
            // Together with other classes and with groups it is refused.
            let attrs = |t: &TaskSpec| {
                t.attr.policy.is_some() || t.phases.iter().any(|p| p.attr.policy.is_some())
            };
            let plain = groups.is_none() && !tasks.iter().any(attrs);
            let changes = if plain { changes } else { Vec::new() };
            let hotplug = hotplug(nr_cpus, changes);
            if groups.is_none() {
                let phases = tasks.iter_mut().flat_map(|t| &mut t.phases).map(|p| &mut p.attr);
                phases.for_each(|attr| attr.taskgroup = None);
                tasks.iter_mut().for_each(|t| t.attr.taskgroup = None);
            }
            for (i, task) in tasks.iter_mut().enumerate() {
                task.comm = format!("t{i}");
            }
            Workload {
                name: "generated".into(),
                about: String::new(),
                tasks,
                groups: groups.unwrap_or_default(),
                forked: Vec::new(),
                objects: Objects::default(),
                duration: None,
                calibration: None,
                jobs: Vec::new(),
                sessions: Vec::new(),
                hotplug,
                partitions: Vec::new(),
                without_effect: Vec::new(),
                doubts: Vec::new(),
                places: Default::default(),
                start_at: start.map_or(StartAt::Creation, StartAt::Phase),
                source: Default::default(),
            }
        },
    )
}

/// Parents before their children.
const GROUPS: [&str; 4] = ["/a", "/a/b", "/a/b/c", "/d"];

fn groups() -> impl Strategy<Value = Vec<TaskGroup>> {
    let quota = prop::option::weighted(0.4, (1..60u64, 2..40u64, 0..10u64));
    let group = (1..1000u64, quota, (0..1025u64, 0..1025u64), prop::bool::weighted(0.2));
    vec(group, GROUPS.len()).prop_map(|groups| {
        let group =
            |(path, (weight, quota, (a, b), idle)): (&&str, (_, Option<_>, (u64, u64), _))| {
                let ms = |ms: u64| Span::from_ms(ms);
                TaskGroup {
                    weight,
                    quota: quota.map(|(quota, _, _)| ms(quota)),
                    period: ms(quota.map_or(100, |(_, period, _)| period)),
                    burst: ms(
                        quota.map_or(0, |(quota, _, burst): (u64, u64, u64)| burst.min(quota))
                    ),
                    uclamp_min: Util(a.min(b)),
                    uclamp_max: Util(a.max(b)),
                    idle,
                    ..TaskGroup::new((*path).to_string())
                }
            };
        GROUPS.iter().zip(groups).map(group).collect()
    })
}

/// CPUs other than 0 go and come.
fn hotplug(nr_cpus: u32, mut changes: Vec<(u64, u32)>) -> Vec<Hotplug> {
    changes.retain(|_| nr_cpus > 1);
    changes.sort_unstable();
    let mut gone = std::collections::BTreeSet::new();
    let change = |(at, cpu): (u64, u32)| {
        let cpu = 1 + cpu % (nr_cpus - 1);
        let online = gone.remove(&cpu) || !gone.insert(cpu);
        Hotplug { at: Span(at), cpu: CpuId(cpu), online, place: (1, 1) }
    };
    changes.into_iter().map(change).collect()
}

fn tasks(nr_cpus: u32) -> impl Strategy<Value = TaskSpec> {
    let delay = prop_oneof![Just(0), 0..30_000_000u64];
    let repeat = prop_oneof![3 => Just(Repeat::Forever), 1 => (1..6u32).prop_map(Repeat::Times)];
    (delay, repeat, vec(phases(nr_cpus), 1..=3), attrs(nr_cpus)).prop_map(
        |(delay, repeat, mut phases, mut attr)| {
            may_have_deadlines(&mut attr, &mut phases);
            TaskSpec { delay: Span(delay), repeat, phases, attr, ..TaskSpec::default() }
        },
    )
}

/// The kernel refuses deadlines to tasks that may not run everywhere.
fn may_have_deadlines(attr: &mut Attr, phases: &mut [Phase]) {
    let mut attrs: Vec<&mut Attr> =
        std::iter::once(attr).chain(phases.iter_mut().map(|p| &mut p.attr)).collect();
    if attrs.iter().any(|a| a.cpus.is_some()) {
        for a in &mut attrs {
            a.policy = a.policy.filter(|p| !matches!(p, Policy::Deadline { .. }));
        }
    }
}

fn policy() -> impl Strategy<Value = Option<Policy>> {
    let slice = prop::option::of((100..20_000u64).prop_map(Span::from_us));
    let deadline =
        (20..5000u64, 20..60u64, 0..3u64, any::<bool>()).prop_map(|(us, n, short, reclaim)| {
            let (runtime, period) = (Span::from_us(us), Span::from_us(us * n));
            let deadline = Span::from_us(us * n / (1 + short));
            Policy::Deadline { runtime, deadline, period, reclaim }
        });
    let policy = prop_oneof![
        2 => slice.clone().prop_map(|slice| Policy::Other { slice }),
        1 => slice.prop_map(|slice| Policy::Batch { slice }),
        1 => Just(Policy::Idle),
        3 => (1..4u8).prop_map(|priority| Policy::Fifo { priority }),
        3 => (1..4u8).prop_map(|priority| Policy::Rr { priority }),
        3 => deadline,
    ];
    prop::option::weighted(0.3, policy)
}

fn phases(nr_cpus: u32) -> impl Strategy<Value = Phase> {
    (1..4u32, 1_000..5_000_000u64, vec(events(), 0..4), attrs(nr_cpus)).prop_map(
        |(n, work, mut events, attr)| {
            // Every loop takes time.
            events.insert(0, Event::Run(Span(work)));
            Phase { name: "p".into(), repeat: Repeat::Times(n), events, attr }
        },
    )
}

fn events() -> impl Strategy<Value = Event> {
    // Round times, so that several things happen at one instant.
    let time = prop_oneof![(1..10u64).prop_map(|ms| ms * 1_000_000), 1..20_000_000u64];
    (0..5, time, 0..2u32).prop_map(|(kind, ns, timer)| match kind {
        0 => Event::Run(Span(ns)),
        1 => Event::Runtime { time: Span(ns), piece: PIECE },
        2 => Event::Timer { timer: Timer::own(timer), period: Span(ns) },
        _ => Event::Sleep(Span(ns)),
    })
}

fn attrs(nr_cpus: u32) -> impl Strategy<Value = Attr> {
    let cpus = prop::option::weighted(0.3, vec(0..nr_cpus, 1..=4)).prop_map(|cpus| {
        cpus.map(|mut c| {
            c.sort_unstable();
            c.dedup();
            c.into_iter().map(CpuId).collect::<Vec<_>>()
        })
    });
    let nice = prop::option::weighted(0.3, -20..20i8);
    let clamps = prop::option::weighted(0.3, (0..1025u64, 0..1025u64));
    let hint = |value| SchedQosHint { kind: SchedQosType::RampupMultiplier, value, cookie: 0 };
    let qos = prop::option::weighted(0.3, 0..20i64).prop_map(move |v| v.map(hint));
    let named = prop::sample::select(["", "/a", "/a/b", "/a/b/c", "/d"].to_vec());
    let group = prop::option::weighted(0.4, named);
    (cpus, nice, clamps, qos, group, policy()).prop_map(
        |(cpus, nice, clamps, qos, group, policy)| Attr {
            cpus,
            policy,
            nice,
            uclamp_min: clamps.map(|(a, b)| Util(a.min(b))),
            uclamp_max: clamps.map(|(a, b)| Util(a.max(b))),
            latency_nice: None,
            qos: qos.into_iter().collect(),
            taskgroup: group.map(str::to_string),
        },
    )
}
