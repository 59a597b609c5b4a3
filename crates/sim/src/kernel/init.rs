//! The machine as it has booted: CPUs that have been idle for long, frequency domains at their
//! lowest frequency, no task.
//!
//! Source: kernel/sched/core.c:sched_init; kernel/sched/topology.c:init_rootdomain;
//! drivers/cpufreq/cpufreq.c:cpufreq_online.

use crate::kernel::balance::NI_RANDOM;
use crate::kernel::class::dl_server::init_dl_servers;
use crate::kernel::clock;
use crate::kernel::cpuidle;
use crate::kernel::cpuidle::CPUIDLE_GOVERNOR;
use crate::kernel::governor;
use crate::kernel::topology::sched_domains;
use crate::kernel::tunables;
use crate::mech::dl_rules;
use crate::mech::perf_domain;
use crate::mech::pressure;
use crate::mech::rt_groups::state::RT_GROUP_SCHED;
use crate::mech::series;
use crate::mech::slots::DomainSlots;
use crate::mech::slots::{CpuSlots, Slots};
use crate::mech::sysctls;
use crate::state::class::Classes;
use crate::state::costs::{Drawn, Names};
use crate::state::cpuset::CpuSet;
use crate::state::dice::Dice;
use crate::state::group::Groups;
use crate::state::idle_time::IdleTime;
use crate::state::machine::Start;
use crate::state::machine::{Cpu, FreqDomain, GovernorTimer, Idle, Machine, NohzKick, UPTIME};
use crate::state::ticks::Ticks;
use crate::state::timers::Timers;
use crate::state::timers::Wakees;
use crate::state::topology::{Place, RootDomain, SchedDomain, SchedDomains};
use crate::time::cost;
use crate::time::work::{of_kind, speed};
use risetime_kernel::KernelRev;
use risetime_kernel::cfs_rq::{CfsRq, Tunables};
use risetime_kernel::clock_pelt::RqClock;
use risetime_kernel::cpuidle::IdleState;
use risetime_kernel::deadline::DlRq;
use risetime_kernel::opp::FreqTableEntry;
use risetime_kernel::pelt::SchedAvg;
use risetime_kernel::pelt_cfs::CfsRqAvg;
use risetime_kernel::rt::{RtQueue, RtThrottle};
use risetime_kernel::uclamp::UclampRq;
use risetime_kernel::units::{Capacity, ClockPelt, CpuId, Instant, KHz, Span, Util};
use risetime_model::platform::{self, Domain};
use risetime_model::settings::Settings;
use risetime_model::{Experiment, Platform};
use std::cell::Cell;
use std::sync::Arc;
/// `sched_init`: the machine without tasks, and without what mechanisms keep of it and of its CPUs.
pub(crate) fn machine(
    e: &Experiment,
    governor: &governor::Descriptor,
    of_domain: impl Fn(usize) -> DomainSlots,
) -> Machine {
    let platform = &e.platform;
    let rev = e.policy.kernel;
    let capacity: Vec<Capacity> =
        platform.cpus().map(|c| platform.domains[domain_index(platform, c)].capacity).collect();
    let tunables = tunables::of_experiment(e);
    let online = CpuSet::first(platform.nr_cpus());
    let SchedDomains { of, places, shared, nr_groups, smt, cluster, asym_cpucap } =
        sched_domains(platform, &capacity, rev, &online);
    let of_cpu = of.into_iter().zip(places);
    let idle_governor = cpuidle::find(e.settings.get(&CPUIDLE_GOVERNOR).unwrap_or("menu"));
    let cpus: Vec<Cpu> = platform
        .cpus()
        .zip(of_cpu)
        .map(|(id, topology)| cpu(e, id, topology, (tunables, idle_governor)))
        .collect();
    let domain = |d| freq_domain(e, d, governor, of_domain(d));
    let domains: Vec<FreqDomain> = (0..platform.domains.len()).map(domain).collect();
    let energy_model = perf_domain::is_possible(e, &domains, governor.name);
    Machine {
        platform: Arc::clone(platform),
        rev,
        now: Instant(0),
        cpus,
        domains,
        tasks: Vec::new(),
        names: Names::default(),
        decay: series::decay(e.policy.kernel, &e.settings),
        root: RootDomain {
            overutilized: false,
            overloaded: false,
            energy_aware: false,
            energy_model,
            online,
            asym_cpucap,
            smt,
            cluster,
            shared,
            group_imbalance: vec![false; nr_groups],
            idle_cpus: online,
            has_blocked: false,
            needs_update: false,
            next_balance: 0,
            next_blocked: 0,
        },
        classes: Classes::of(e),
        tick: platform.tick(),
        ticks: Ticks::new(platform.tick()),
        groups: Groups::new(
            &e.workload.groups,
            rev,
            platform.nr_cpus(),
            tunables,
            e.settings.get(&RT_GROUP_SCHED) != Some("off"),
        ),
        creator: None,
        service: None,
        base_slice: Span(tunables.base_slice_ns(rev)),
        costs: cost::of_experiment(e),
        rules: dl_rules::of_experiment(e),
        tally: None,
        ni_random: (e.settings.get(&NI_RANDOM) == Some(1)).then(|| Dice::new(e.seed)),
        plain: false,
        glances: true,
        unheard: true,
        keeps_opp: true,
        need_resched: CpuSet::EMPTY,
        throttle_work: CpuSet::EMPTY,
        start: Start { planned: Instant(0) + e.phase, ..Start::default() },
        first_fork: None,
        grid_first: None,
        free_idle_exit: false,
        hooks: None,
        tracker: None,
        slots: Slots { switches: tunables.switches, ..Slots::default() },
    }
}

/// Gives each CPU its deadline server of the fair class, if this kernel has one.
pub(crate) fn dl_servers(e: &Experiment, cpus: &mut [Cpu], classes: &mut Classes) {
    if let Some(server) = sysctls::fair_server(e) {
        init_dl_servers(server, cpus, classes);
    }
}

/// Creates a CPU that has been idle for long, where the topology has put it.
fn cpu(
    e: &Experiment,
    cpu: CpuId,
    (sched_domains, place): (Vec<SchedDomain>, Place),
    (tunables, idle_governor): (Tunables, &cpuidle::Descriptor),
) -> Cpu {
    let (platform, rev) = (&e.platform, e.policy.kernel);
    let domain = domain_index(platform, cpu);
    let Domain { cpus, capacity, .. } = &platform.domains[domain];
    let capacity = *capacity;
    Cpu {
        domain,
        in_domain: cpus.iter().position(|c| *c == cpu).unwrap_or(0),
        capacity,
        cpu_capacity: capacity,
        actual: capacity,
        clock: RqClock::new(Instant(0) + UPTIME),
        cfs: cfs_rq(rev, tunables),
        cfs_avg: CfsRqAvg {
            avg: SchedAvg { last_update_time: ClockPelt(UPTIME.0), ..SchedAvg::default() },
            ..CfsRqAvg::default()
        },
        needs_gen: 1,
        kept: Cell::default(),
        h_nr: None,
        util_est: Util(0),
        background_util: Util(0),
        rt_avg: SchedAvg::default(),
        dl_avg: SchedAvg::default(),
        uclamp: UclampRq::default(),
        rt: RtQueue::default(),
        rt_throttle: RtThrottle::default(),
        dl: DlRq::new(sysctls::of_experiment(e).rt),
        stopper: None,
        fair_server: None,
        slots: CpuSlots::default(),
        exec_start: 0,
        class_timers: Timers::default(),
        curr: None,
        work_gen: 0,
        run_since: Instant(0),
        told: Instant(0),
        worked: Span(0),
        core_threads: 0,
        tick_gen: 0,
        idle: Some(Idle { state: None, since: Instant(0) }),
        idle_stamp: Instant(0),
        waking: false,
        irq_work_until: Instant(0),
        irq_work_at: None,
        wake_list: Vec::new(),
        resched_held: false,
        idle_calls: 0,
        tick_stopped: true,
        // The CPU has been idle for long.
        got_idle_tick: true,
        idle_governor: (idle_governor.make)(rev),
        misfit_task_load: 0,
        sched_domains,
        place,
        idle_wakees: Wakees::default(),
        next_balance: 0,
        nohz_kick: NohzKick::default(),
        has_blocked_load: false,
        last_blocked_update: 0,
        timers: Timers::default(),
        idle_time: IdleTime::new(rev),
        nice_time: Span(0),
        drawn: Drawn::of_cpu(e.seed, cpu),
    }
}

/// A fair runqueue whose clock shows what its CPU's does: a task may begin to run at time 0.
fn cfs_rq(rev: KernelRev, tunables: Tunables) -> CfsRq {
    let mut cfs = CfsRq::new(rev, tunables);
    cfs.update_clock(UPTIME.0);
    cfs
}

fn domain_index(platform: &Platform, cpu: CpuId) -> usize {
    platform.domain_of(cpu).expect("validated: every CPU is in a domain")
}

/// Creates domain `index` of the platform at its lowest frequency.
fn freq_domain(
    e: &Experiment,
    index: usize,
    governor: &governor::Descriptor,
    slots: DomainSlots,
) -> FreqDomain {
    let d = &e.platform.domains[index];
    let scale = perf_domain::scale(e, d, pressure::has_boost(&e.settings));
    let entries = d.opps.iter().zip(&slots.perf_domain.inefficient);
    let table: Vec<FreqTableEntry> = entries
        .map(|(o, inefficient)| FreqTableEntry { freq: o.freq, inefficient: *inefficient })
        .collect();
    let lowest = pressure::limits_of(&table, &slots.pressure.caps, scale.cpuinfo_max).0;
    let speed_at = |freq: KHz| {
        let (capacity, freq, max) = d.capacity_at(freq);
        speed(capacity, freq, max)
    };
    // Only where the workload names kinds: nothing else has to look at them.
    let known = d.work.iter().filter(|_| !e.workload.objects.kinds.is_empty());
    let kinds: Vec<Vec<u64>> =
        known.map(|w| w.speed_ppm.iter().map(|ppm| of_kind(*ppm)).collect()).collect();
    let domain = FreqDomain {
        cpus: d.cpus.clone(),
        related: d.cpus.clone(),
        kind_speed: kinds.iter().map(|by_opp| by_opp[0]).collect(),
        kinds,
        table,
        speeds: d.opps.iter().map(|o| (o.freq, speed_at(o.freq))).collect(),
        cur: lowest,
        hw: lowest,
        min: lowest,
        max: scale.cpuinfo_max,
        max_speed: Util(0),
        limit_at_start: scale.cpuinfo_max,
        hw_asked: lowest,
        wanted: lowest,
        target: lowest,
        freq_invariant: clock::is_freq_invariant(e),
        freq_scale: 0,
        speed: speed_at(lowest),
        scale,
        fast_switch: d.fast_switch && governor.works.in_rev(e.policy.kernel).switches_fast(),
        change_gen: 0,
        idle: idle_states(d, &e.settings),
        idle_limits: cpuidle::limits(&e.settings),
        kthread: None,
        workers: Vec::new(),
        work_in_progress: false,
        driver_due: false,
        in_driver: false,
        kthread_due: Instant(0),
        timers: vec![GovernorTimer::default(); d.cpus.len()],
        attends: false,
        work_asked: false,
        works: false,
        slots,
    };
    let freq_scale = domain.freq_scale(lowest);
    FreqDomain { freq_scale, ..domain }.limited()
}

/// The states that the driver has, as far as it is told how many.
fn idle_states(d: &Domain, settings: &Settings) -> Vec<IdleState> {
    let state = |s: &platform::IdleState| IdleState {
        target_residency: s.min_residency,
        exit_latency: s.longest_wakeup(),
    };
    d.idle.iter().take(cpuidle::most_states(d, settings)).map(state).collect()
}
