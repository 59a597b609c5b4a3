//! Set-up of a machine that is ready to run, from an experiment.

use crate::Custom;
use crate::governor::Governor;
use crate::kernel::Kernel;
use crate::kernel::balance::NI_RANDOM;
use crate::kernel::class::dl_server::init_dl_servers;
use crate::kernel::clock;
use crate::kernel::cpufreq::SUGOV_WORK_NS;
use crate::kernel::cpuidle;
use crate::kernel::cpuidle::CPUIDLE_GOVERNOR;
use crate::kernel::fork::new_task;
use crate::kernel::governor::GOVERNOR;
use crate::kernel::governor::Works;
use crate::kernel::hotplug::plan_hotplug;
use crate::kernel::placement::{self, Checked, PLACEMENT, Placement};
use crate::kernel::topology::sched_domains;
use crate::kernel::tracker;
use crate::kernel::tracker::TRACKER;
use crate::kernel::tunables;
use crate::mech::dl_rules;
use crate::mech::perf_domain;
use crate::mech::pressure;
use crate::mech::rt_groups::state::RT_GROUP_SCHED;
use crate::mech::series;
use crate::mech::slots::{CpuSlots, Slots};
use crate::mech::sysctls;
use crate::run::cause::{Cause, Causes, Without};
use crate::run::engine::Simulation;
use crate::run::mechanisms;
use crate::run::settings::{
    BACKGROUND_UTIL, FIRST_CPU, FIRST_TICK_NS, START_PERIOD_CONTRIB, START_UTIL,
};
use crate::state::class::{Classes, Sched, check_clamps};
use crate::state::costs::{Drawn, Names};
use crate::state::cpuset::CpuSet;
use crate::state::dice::Dice;
use crate::state::effects::Effects;
use crate::state::group::Groups;
use crate::state::hooks::Hooks;
use crate::state::idle_time::IdleTime;
use crate::state::machine::Start;
use crate::state::machine::{
    Cpu, FreqDomain, GovernorTimer, Idle, Machine, NohzKick, Role, Task, UPTIME,
};
use crate::state::plain;
use crate::state::tally::Tally;
use crate::state::timers::Timers;
use crate::state::timers::Wakees;
use crate::state::topology::{Place, RootDomain, SchedDomain, SchedDomains};
use crate::time::cost;
use crate::time::queue::{Ev, Queue};
use crate::time::work::{of_kind, speed};
use crate::user::User;
use crate::user::power_hal::Service;
use crate::user::program::Program;
use crate::user::together::Together;
use crate::{Counterfactual, governor};
use risetime_kernel::cfs_rq::{CfsRq, Tunables};
use risetime_kernel::clock_pelt::RqClock;
use risetime_kernel::cpuidle::IdleState;
use risetime_kernel::deadline::DlRq;
use risetime_kernel::opp::FreqTableEntry;
use risetime_kernel::pelt::SchedAvg;
use risetime_kernel::pelt_cfs::CfsRqAvg;
use risetime_kernel::rt::{RtQueue, RtThrottle};
use risetime_kernel::uclamp::UclampRq;
use risetime_kernel::units::{Capacity, ClockPelt, CpuId, Instant, KHz, Span, TaskId, Util};
use risetime_kernel::{KernelRev, features};
use risetime_model::platform::Domain;
use risetime_model::settings::Int;
use risetime_model::settings::Settings;
use risetime_model::workload::{Attr, StartAt, TaskSpec};
use risetime_model::{Experiment, Name, Platform};
use risetime_trace::{BackendKind, Clock, Header, Origin, Run, RunError, Signal, TraceSink};
use std::cell::Cell;
use std::sync::Arc;

/// The signals that a simulation records.
const SIGNALS: &[&str] = &[
    "util_avg",
    "runnable_avg",
    "util_est",
    "cfs_rq",
    "cpu_frequency",
    "cpu_idle",
    "sched_switch",
    "overutilized",
    "misfit",
    "freq_request",
    "dl_throttled",
    "due",
];

/// The head of the trace.
pub(crate) fn header(e: &Experiment) -> Header {
    let run = Run {
        backend: BackendKind::Sim,
        kernel_release: e.policy.kernel.to_string(),
        clock: Clock::Simulated,
        signals: signals(e),
        lost: Vec::new(),
    };
    Header::of(e, run)
}

fn signals(e: &Experiment) -> Vec<Signal> {
    let names = SIGNALS.iter().copied().chain(mechanisms::signals(e));
    names.map(|name| Signal { name, origin: Origin::Simulated }).collect()
}

/// The notes for the reader of a result.
pub(crate) fn notes(e: &Experiment) -> Vec<String> {
    let all = e.notes().into_iter();
    all.chain(tracker::notes(&e.settings)).chain(mechanisms::notes(e)).collect()
}

/// The machine with its tasks, before time 0.
///
/// Errors: what the workload asks for and this machine, or this simulator, has not.
pub(crate) fn simulation<'a>(
    e: &Experiment,
    sink: &'a mut dyn TraceSink,
    other: Counterfactual,
) -> Result<Simulation<'a>, RunError> {
    simulation_with(e, sink, other, Custom::default())
}

/// The machine with its tasks, and with plug-ins in place of those that the settings name.
///
/// Errors: likewise.
pub(crate) fn simulation_with<'a>(
    e: &Experiment,
    sink: &'a mut dyn TraceSink,
    other: Counterfactual,
    custom: Custom,
) -> Result<Simulation<'a>, RunError> {
    let workload = e.workload.bind(&e.platform)?;
    let int = |of: &Int| e.settings.get(of);
    let governor = || governor::find(e.settings.get(&GOVERNOR).unwrap_or(governor::SCHEDUTIL));
    let governor = custom.governor.unwrap_or_else(governor);
    let tracker = || tracker::find(e.settings.get(&TRACKER).unwrap_or("pelt"));
    let tracker = custom.tracker.unwrap_or_else(tracker);
    let clamps = e.uclamp()?;
    check_clamps(e)?;
    crate::supported(&workload)?;
    let mut user = User::new(Together::new(&workload), other.task);
    let started = workload.tasks.len();
    user.power_hal = Service::new(&e.settings, &workload, TaskId(started as u32));
    let hotplug = workload.hotplug.clone();
    let explained = other.task.unwrap_or(TaskId(workload.first_created() as u32));
    let without = Without { causes: other.without, explained };
    let mut m = machine(e, governor);
    m.hooks = (other.without != Causes::NONE).then(|| Box::new(without) as Box<dyn Hooks>);
    m.tracker = (tracker.make)(&e.platform, &e.settings);
    if m.tracker.is_some() {
        // The short ways know PELT's signals alone.
        (m.plain, m.tally) = (false, None);
    }
    m.free_idle_exit = other.without.has(Cause::IdleExit);
    other.without.change_machine(&mut m.costs, &mut m.domains);
    if let Some(custom) = custom.idle_governor {
        m.cpus.iter_mut().for_each(|c| c.idle_governor = (custom.make)(e.policy.kernel));
    }
    m.start.phase = match workload.start_at {
        StartAt::Creation => None,
        StartAt::Phase(index) => Some(index),
    };
    let specs: Arc<[TaskSpec]> = workload.tasks.into_iter().chain(workload.forked).collect();
    let governors: Vec<Box<dyn Governor>> = (0..e.platform.domains.len())
        .map(|d| (governor.make)(&e.platform, d, &e.settings))
        .collect();
    for (domain, governor) in m.domains.iter_mut().zip(&governors) {
        domain.attends = governor.attends();
    }
    let k = Kernel {
        m,
        q: Queue::default(),
        governors,
        placement: placement(e, custom),
        effects: Effects::default(),
        driver: None,
        listens: sink.listens(),
        sink,
        events: 0,
        sugov_work: Span(int(&SUGOV_WORK_NS).unwrap_or(0).max(0) as u64),
        kthread: None,
        first_cpu: int(&FIRST_CPU).map(|v| CpuId(v as u32)),
        created_any: false,
        listed: 0,
        parent_cpu: CpuId(0),
        forced_clamps: clamps,
        refused: None,
    };
    let mut simulation = Simulation { k, user, steers: None, without };
    let k = &mut simulation.k;
    if let Some(server) = sysctls::fair_server(e) {
        init_dl_servers(server, &mut k.m.cpus, &mut k.m.classes);
    }
    add_tasks(&mut simulation, &specs, started, e.phase);
    add_service(&mut simulation, &specs[..started], e.phase);
    let k = &mut simulation.k;
    let start = Instant(0) + e.phase;
    plan_hotplug(&mut k.q, &hotplug, start);
    let change = series::decay_change(e.policy.kernel, &e.settings);
    k.m.decay_later = change.map(|(_, decay)| decay);
    if mechanisms::begin(k, e)? {
        k.rebuild_sched_domains();
    }
    mechanisms::plans(e, &k.m).into_iter().for_each(|(at, ev)| k.q.push(at, ev));
    add_kthreads(&mut k.m, governor.works.in_rev(e.policy.kernel));
    // schedutil asks for it when it starts, the capacities of the CPUs before that.
    k.m.classes.rebuild_root_domains(k.m.rev, &mut k.m.cpus, &k.m.tasks);
    k.add_stoppers(&e.settings);
    Ok(simulation)
}

/// The placement: a plug-in, else that of the settings.
fn placement(e: &Experiment, custom: Custom) -> Box<dyn Placement> {
    let named = || placement::find(e.settings.get(&PLACEMENT).unwrap_or("fair"));
    match custom.placement {
        Some(own) => Box::new(Checked((own.make)(&e.platform, &e.settings))),
        None => (named().make)(&e.platform, &e.settings),
    }
}

fn machine(e: &Experiment, governor: &governor::Descriptor) -> Machine {
    let platform = &e.platform;
    let int = |of: &Int| e.settings.get(of);
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
    let domains: Vec<FreqDomain> =
        (0..platform.domains.len()).map(|d| freq_domain(e, d, governor)).collect();
    let energy_model = perf_domain::is_possible(e, &domains, governor.name);
    let mut machine = Machine {
        platform: Arc::clone(platform),
        rev,
        now: Instant(0),
        cpus,
        domains,
        tasks: Vec::new(),
        names: Names::default(),
        decay: series::decay(e.policy.kernel, &e.settings),
        decay_later: None,
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
        tick_offset: Span(0),
        jiffy: Cell::new(Machine::no_jiffy(Instant(0), platform.tick())),
        groups: Groups::new(
            &e.workload.groups,
            rev,
            platform.nr_cpus(),
            tunables,
            e.settings.get(&RT_GROUP_SCHED) != Some("off"),
        ),
        creator: None,
        base_slice: Span(tunables.base_slice_ns(rev)),
        costs: cost::of_experiment(e),
        rules: dl_rules::of_experiment(e),
        tally: None,
        ni_random: (e.settings.get(&NI_RANDOM) == Some(1)).then(|| Dice::new(e.seed)),
        plain: false,
        glances: true,
        keeps_jiffy: true,
        unheard: true,
        keeps_opp: true,
        need_resched: CpuSet::EMPTY,
        throttle_work: CpuSet::EMPTY,
        start: Start {
            util: int(&START_UTIL).map(|v| Util(v as u64)),
            period_contrib: int(&START_PERIOD_CONTRIB).map(|v| v as u32),
            first_tick: int(&FIRST_TICK_NS).map(|v| Span(v as u64)),
            planned: Instant(0) + e.phase,
            ..Start::default()
        },
        first_fork: None,
        grid_first: None,
        free_idle_exit: false,
        hooks: None,
        tracker: None,
        slots: Slots::default(),
    };
    machine.slots = mechanisms::of_machine(e, &machine);
    for cpu in platform.cpus() {
        machine.cpus[cpu.index()].slots = mechanisms::of_cpu(e, &machine, cpu);
    }
    let between = |c: &Cpu| c.slots.high.is_some() || c.slots.overcommit.is_some();
    machine.classes.between = machine.cpus.iter().any(between);
    machine.root.energy_aware = machine.sched_is_eas_possible();
    machine.plain = plain::is_plain(&machine) && !mechanisms::bend(&machine);
    machine.tally = Tally::serves(&machine).then(|| Tally::new(&machine));
    machine
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
        h_nr: None,
        util_est: Util(0),
        background_util: background_util(e, cpu),
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

/// The util that others add on `cpu`: as set for its policy, else for all.
fn background_util(e: &Experiment, cpu: CpuId) -> Util {
    let domain = &e.platform.domains[domain_index(&e.platform, cpu)];
    let util = e.settings.of_policy(&BACKGROUND_UTIL, domain.cpus[0]);
    util.map(|util| Util(util.max(0) as u64)).unwrap_or_default()
}

fn domain_index(platform: &Platform, cpu: CpuId) -> usize {
    platform.domain_of(cpu).expect("validated: every CPU is in a domain")
}

/// Creates domain `index` of the platform at its lowest frequency, with its energy model if all
/// powers are known.
fn freq_domain(e: &Experiment, index: usize, governor: &governor::Descriptor) -> FreqDomain {
    let d = &e.platform.domains[index];
    let scale = perf_domain::scale(e, d, pressure::has_boost(&e.settings));
    let (pd, inefficient) = perf_domain::perf_domain(e, index, &scale);
    let entries = d.opps.iter().zip(inefficient);
    let table: Vec<FreqTableEntry> =
        entries.map(|(o, inefficient)| FreqTableEntry { freq: o.freq, inefficient }).collect();
    let caps = pressure::caps(e, index);
    let lowest = pressure::limits_of(&table, &caps, scale.cpuinfo_max).0;
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
        pd,
        speeds: d.opps.iter().map(|o| (o.freq, speed_at(o.freq))).collect(),
        caps,
        cur: lowest,
        hw: lowest,
        min: lowest,
        max: scale.cpuinfo_max,
        pressure: Capacity(0),
        max_speed: Util(0),
        limit_at_start: scale.cpuinfo_max,
        hw_cap: None,
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
    };
    let freq_scale = domain.freq_scale(lowest);
    FreqDomain { freq_scale, ..domain }.limited()
}

/// The states that the driver has, as far as it is told how many.
fn idle_states(d: &Domain, settings: &Settings) -> Vec<IdleState> {
    let state = |s: &risetime_model::platform::IdleState| IdleState {
        target_residency: s.min_residency,
        exit_latency: s.exit_latency,
    };
    d.idle.iter().take(cpuidle::most_states(d, settings)).map(state).collect()
}

/// The workload's tasks, to be created `phase` plus their own delay after time 0.
fn add_tasks(
    simulation: &mut Simulation<'_>,
    specs: &Arc<[TaskSpec]>,
    started: usize,
    phase: Span,
) {
    // Instances of one task stand one behind the other.
    let mut like = 0;
    for (i, spec) in specs.iter().take(started).enumerate() {
        let program = Program::of_instance(Arc::clone(specs), i, like);
        like = program.like();
        let k = &mut simulation.k;
        let comm = Name::new(&spec.comm);
        let nth = k.m.names.next(comm);
        let (task, t) = new_task(&k.m, comm, nth, Role::User);
        let cpu = t.cpu;
        k.m.tasks.push(t);
        simulation.user.follows(task, program);
        k.rq(cpu).set_attr(task, &spec.attr);
        k.q.push(Instant(0) + phase + spec.delay, Ev::Create { task });
    }
}

/// The power HAL's task, created behind the first of the workload's: a service of user space, of nice -20
/// (`android.hardware.power-service.pixel-libperfmgr.rc`).
fn add_service(simulation: &mut Simulation<'_>, started: &[TaskSpec], phase: Span) {
    let Some(task) = simulation.user.power_hal.as_ref().map(|service| service.task) else { return };
    let k = &mut simulation.k;
    let comm = Name::of("power-hal");
    let nth = k.m.names.next(comm);
    let (id, t) = new_task(&k.m, comm, nth, Role::User);
    debug_assert_eq!(id, task);
    let cpu = t.cpu;
    k.m.tasks.push(t);
    if let Some(cache) = &mut k.m.slots.cache {
        cache.outside = Some(task);
    }
    k.rq(cpu).set_attr(task, &Attr { nice: Some(-20), ..Attr::default() });
    let first = started.iter().map(|spec| spec.delay).min().unwrap_or_default();
    k.q.push(Instant(0) + phase + first, Ev::Create { task });
}

/// Adds the threads that do the governor's work, and change frequencies where that is not done at
/// once: a sugov kthread for each domain, to wake on the domain's first CPU, or a worker for each
/// CPU.
///
/// Where any CPU may change the frequency (`dvfs_possible_from_any_cpu`: cpufreq-dt, scpi), sugov allows its thread the
/// domain's CPUs, not binding it, since 6.13. Since 7.0 a thread that is not bound is then allowed every CPU as it first
/// runs (kthread.c:kthread_affine_node, read in 7.2 and 7.3; merged with the tag `kthread-for-7.0`).
///
/// `DEVIATES(any-cpu)`: each driver that cannot switch fast is taken for one with `dvfs_possible_from_any_cpu`. Where it is
/// not, the governor's thread stays on the policy's CPUs in 7.0 and later, too, as it does here up to 6.19.
fn add_kthreads(m: &mut Machine, works: Works) {
    for domain in 0..m.domains.len() {
        let d = &m.domains[domain];
        if !works.needs_thread(d.fast_switch) {
            continue;
        }
        let cpus = d.cpus.clone();
        if works.on_worker() {
            for &cpu in &cpus {
                let name = format!("kworker/{}:0", cpu.0);
                let name = Name::new(&name);
                let nth = m.names.next(name);
                let only = std::iter::once(cpu).collect();
                let (task, t) = kthread(m, domain, (name, nth), cpu, only);
                m.tasks.push(t);
                m.domains[domain].workers.push(task);
            }
            m.domains[domain].kthread = m.domains[domain].workers.first().copied();
        } else {
            let (name, sched) = match works {
                Works::Fifo { name, priority, .. } => (name, Sched::fifo(priority)),
                _ => ("sugov", Sched::sugov()),
            };
            let name = format!("{name}:{}", cpus[0].0);
            let bound = matches!(works, Works::Fifo { .. }) || !m.rev.has(features::SUGOV_ANY_CPU);
            let own = || cpus.iter().copied().collect();
            let allowed = if bound { own() } else { CpuSet::first(m.cpus.len()) };
            let name = Name::new(&name);
            let nth = m.names.next(name);
            let (task, t) = kthread(m, domain, (name, nth), cpus[0], allowed);
            m.tasks.push(Task { sched, ..t });
            m.domains[domain].kthread = Some(task);
        }
    }
}

fn kthread(
    m: &Machine,
    domain: usize,
    (name, nth): (Name, u64),
    cpu: CpuId,
    allowed: CpuSet,
) -> (TaskId, Task) {
    let (task, mut t) = new_task(m, name, nth, Role::Sugov(domain));
    t.set_allowed(&m.cpus, allowed);
    (task, Task { cpu, ..t })
}
