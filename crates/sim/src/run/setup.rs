//! From an experiment to a machine that is ready to run.

use crate::kernel::cpufreq::speed;
use crate::kernel::preempt;
use crate::kernel::pressure;
use crate::kernel::series;
use crate::kernel::topology::sched_domains;
use crate::run::cause::{Cause, Causes};
use crate::run::engine::{Engine, StartState};
use crate::state::class::{Classes, Sched};
use crate::state::cpuset::CpuSet;
use crate::state::dice::Dice;
use crate::state::group::Groups;
use crate::state::machine::{
    Cpu, FreqDomain, Idle, Machine, NohzKick, Role, RootDomain, State, Task, Todo, UPTIME,
};
use crate::state::plain;
use crate::state::series::CpuSeries;
use crate::state::tally::Tally;
use crate::state::timers::TaskTimers;
use crate::state::timers::Wakees;
use crate::state::topology::SchedDomains;
use crate::time::cost;
use crate::time::queue::{Ev, Queue};
use crate::user::program::Program;
use crate::user::together::Together;
use crate::{Counterfactual, governor, placement};
use risetime_kernel::KernelRev;
use risetime_kernel::cfs_rq::{CfsRq, Tunables};
use risetime_kernel::clock_pelt::{RqClock, freq_scale};
use risetime_kernel::cpuidle::{IdleGovernor, IdleState};
use risetime_kernel::deadline::DlRq;
use risetime_kernel::eevdf::{Entity, LoadWeight};
use risetime_kernel::energy_model::{EmPerfDomain, EmPerfState, em_compute_costs, em_cpu_energy};
use risetime_kernel::opp::FreqTableEntry;
use risetime_kernel::pelt::SchedAvg;
use risetime_kernel::pelt_cfs::{CfsRqAvg, init_entity_runnable_average};
use risetime_kernel::rt::{RT_PERIOD, RT_RUNTIME, RtQueue, RtThrottle};
use risetime_kernel::sched_qos::SchedQos;
use risetime_kernel::uclamp::{Uclamp, UclampLimits, UclampRq, UclampTask};
use risetime_kernel::units::{
    Capacity, ClockPelt, CpuId, GroupId, Instant, MicroWatts, Span, TaskId, Util,
};
use risetime_kernel::util_est::UtilEst;
use risetime_kernel::waiting_avg::WaitingAvg;
use risetime_model::platform::Domain;
use risetime_model::workload::{StartAt, TaskSpec};
use risetime_model::{Experiment, InputError, Platform};
use risetime_trace::{Header, Origin, RunError, Signal, TraceSink};
use std::cell::Cell;
use std::collections::BTreeSet;
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
    "dl_throttled",
];

/// The head of the trace.
pub(crate) fn header(e: &Experiment) -> Header {
    Header {
        backend: "sim",
        platform: Arc::clone(&e.platform),
        workload: e.workload.name.clone(),
        policy: e.policy.name.clone(),
        settings: e.settings.clone(),
        kernel_release: e.policy.kernel.to_string(),
        clock: "simulated",
        phase_us: e.phase.0 / 1000,
        seed: e.seed,
        signals: signals(e),
        lost: Vec::new(),
        idle: Vec::new(),
        balance: Vec::new(),
        periods: Vec::new(),
    }
}

fn signals(e: &Experiment) -> Vec<Signal> {
    let waiting =
        series::of_settings(e.policy.kernel, &e.settings).tracks_waiting().then_some("waiting_avg");
    let names = SIGNALS.iter().copied().chain(waiting);
    names.map(|name| Signal { name, origin: Origin::Simulated }).collect()
}

/// What a reader of the result should know.
pub(crate) fn notes(e: &Experiment) -> Vec<String> {
    let all = e.notes().into_iter();
    all.chain(series::notes(e)).collect()
}

/// The machine with its tasks, before time 0.
pub(crate) fn engine<'a>(
    e: &Experiment,
    sink: &'a mut dyn TraceSink,
    other: Counterfactual,
) -> Result<Engine<'a>, RunError> {
    let workload = e.workload.bind(&e.platform)?;
    let int = |name: &str| e.settings.int(name);
    let governor = governor::find(e.settings.name("governor").unwrap_or("schedutil"));
    let clamps =
        (int("uclamp_min").map(|v| Util(v as u64)), int("uclamp_max").map(|v| Util(v as u64)));
    if let (Some(min), Some(max)) = clamps
        && min > max
    {
        return Err(
            InputError::new("uclamp_min", format!("{min} is above uclamp_max, {max}")).into()
        );
    }
    let together = Together::new(&workload);
    let started = workload.tasks.len();
    crate::supported(&workload)?;
    let hotplug = workload.hotplug.clone();
    let explained = other.task.unwrap_or(TaskId(workload.first_created() as u32));
    let specs: Arc<[TaskSpec]> = workload.tasks.into_iter().chain(workload.forked).collect();
    let mut machine = machine(e, governor.name == "schedutil");
    (machine.without, machine.explained) = (other.without, explained);
    let governors = (0..e.platform.domains.len())
        .map(|d| (governor.make)(&e.platform, d, &e.settings))
        .collect();
    let mut engine = Engine {
        m: machine,
        q: Queue::default(),
        governors,
        placement: (placement::find(e.settings.name("placement").unwrap_or("fair")).make)(),
        start: StartState {
            util: int("start_util").map(|v| Util(v as u64)),
            period_contrib: int("start_period_contrib").map(|v| v as u32),
            first_tick: int("first_tick_ns").map(|v| Span(v as u64)),
            phase: match workload.start_at {
                StartAt::Creation => None,
                StartAt::Phase(index) => Some(index),
            },
            begun: false,
            done: false,
            told: false,
        },
        listens: sink.listens(),
        sink,
        events: 0,
        need_resched: CpuSet::EMPTY,
        preempt: preempt::of_settings(&e.settings),
        throttle_work: CpuSet::EMPTY,
        sugov_work: Span(int("sugov_work_ns").unwrap_or(0).max(0) as u64),
        first_cpu: int("first_cpu").map(|v| CpuId(v as u32)),
        created_any: false,
        listed: 0,
        parent_cpu: CpuId(0),
        forced_clamps: clamps,
        grid_first: None,
        together,
        image: None,
        started: Instant(0),
        given: None,
        kthread: None,
        free_idle_exit: other.without.has(Cause::Queueing),
        changes: Vec::new(),
        told_steps: other.task,
        refused: None,
        stuck: None,
    };
    add_tasks(&mut engine, &specs, started, e.phase);
    engine.plan_hotplug(&hotplug);
    engine.plan_pressure(e);
    add_kthreads(&mut engine);
    engine.add_stoppers(&e.settings);
    engine.init_dl_servers();
    Ok(engine)
}

fn machine(e: &Experiment, schedutil: bool) -> Machine {
    let platform = &e.platform;
    let rev = e.policy.kernel;
    let capacity: Vec<Capacity> =
        platform.cpus().map(|c| platform.domains[domain_index(platform, c)].capacity).collect();
    let tunables = crate::run::settings::fair_tunables(e);
    let online = CpuSet::first(platform.nr_cpus());
    let SchedDomains { of, places, shared, nr_groups, smt, cluster, asym_cpucap } =
        sched_domains(platform, &capacity, rev, &online);
    let of_cpu = of.into_iter().zip(places);
    let of_domain: Vec<CpuSeries> =
        platform.domains.iter().map(|d| series::of_cpu(platform, d, &e.settings)).collect();
    let idle_governor = e.settings.name("cpuidle_governor").unwrap_or("menu");
    let idle_governor = IdleGovernor::named(idle_governor, rev);
    let cpus: Vec<Cpu> = platform
        .cpus()
        .zip(of_cpu)
        .map(|(cpu, (sched_domains, place))| Cpu {
            domain: domain_index(platform, cpu),
            in_domain: platform.domains[domain_index(platform, cpu)]
                .cpus
                .iter()
                .position(|c| *c == cpu)
                .unwrap_or(0),
            series: of_domain[domain_index(platform, cpu)].clone(),
            capacity: capacity[cpu.index()],
            cpu_capacity: capacity[cpu.index()],
            actual: capacity[cpu.index()],
            pressure: pressure::cpu_pressure(
                &e.settings,
                &platform.domains[domain_index(platform, cpu)],
            ),
            clock: RqClock::new(Instant(0) + UPTIME),
            cfs: cfs_rq(rev, tunables),
            cfs_avg: CfsRqAvg {
                avg: SchedAvg { last_update_time: ClockPelt(UPTIME.0), ..SchedAvg::default() },
                ..CfsRqAvg::default()
            },
            h_nr: None,
            util_est: Util(0),
            background_util: background_util(e, cpu),
            rt_avg: SchedAvg::default(),
            dl_avg: SchedAvg::default(),
            uclamp: UclampRq::default(),
            rt: RtQueue::default(),
            rt_throttle: RtThrottle::default(),
            dl: DlRq::new(RT_PERIOD, RT_RUNTIME),
            stopper: None,
            fair_server: None,
            exec_start: 0,
            class_timers: BTreeSet::new(),
            curr: None,
            work_gen: 0,
            run_since: Instant(0),
            shares_core: false,
            tick_gen: 0,
            idle: Some(Idle { state: None, since: Instant(0) }),
            waking: false,
            irq_work_until: Instant(0),
            resched_held: false,
            idle_calls: 0,
            tick_stopped: true,
            // It has been idle for long.
            got_idle_tick: true,
            idle_governor: idle_governor.clone(),
            misfit_task_load: 0,
            sched_domains,
            place,
            idle_wakees: Wakees::default(),
            next_balance: 0,
            nohz_kick: NohzKick::default(),
            has_blocked_load: false,
            last_blocked_update: 0,
            timers: TaskTimers::default(),
        })
        .collect();
    let domains: Vec<FreqDomain> = platform.domains.iter().map(|d| freq_domain(e, d)).collect();
    let known_power = domains.iter().all(|d| !d.em.is_empty());
    let energy_model = schedutil && known_power && e.settings.int("sched_energy_aware") != Some(0);
    let mut machine = Machine {
        platform: Arc::clone(platform),
        rev,
        now: Instant(0),
        cpus,
        domains,
        tasks: Vec::new(),
        decay: series::decay(&e.settings),
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
        groups: Groups::new(&e.workload.groups, rev, platform.nr_cpus(), tunables),
        creator: None,
        base_slice: Span(tunables.base_slice_ns(rev)),
        costs: cost::of_settings(&e.settings),
        series: series::of_settings(e.policy.kernel, &e.settings),
        tally: None,
        ni_random: (e.settings.int("ni_random") == Some(1)).then(|| Dice::new(e.seed)),
        plain: false,
        glances: true,
        mutant: None,
        without: Causes::NONE,
        explained: TaskId(0),
    };
    machine.root.energy_aware = machine.sched_is_eas_possible();
    machine.plain = plain::is_plain(&machine);
    machine.tally = Tally::serves(&machine).then(|| Tally::new(&machine));
    machine
}

/// A fair runqueue whose clock shows what its CPU's does: a task may begin to run at time 0.
fn cfs_rq(rev: KernelRev, tunables: Tunables) -> CfsRq {
    let mut cfs = CfsRq::new(rev, tunables);
    cfs.update_clock(UPTIME.0);
    cfs
}

/// What others add on `cpu`: as said for its policy, else for all.
fn background_util(e: &Experiment, cpu: CpuId) -> Util {
    let of = |name: &str| e.settings.int(name).map(|util| Util(util.max(0) as u64));
    let domain = &e.platform.domains[domain_index(&e.platform, cpu)];
    let own = of(&format!("background_util.policy{}", domain.cpus[0].0));
    own.or(of("background_util")).unwrap_or_default()
}

fn domain_index(platform: &Platform, cpu: CpuId) -> usize {
    platform.domain_of(cpu).expect("validated: every CPU is in a domain")
}

/// [`FreqDomain::em_cost`]: the energy of one unit of util.
fn em_costs(rev: KernelRev, em: &[EmPerfState], capacity: Capacity) -> Vec<u64> {
    if rev < KernelRev::V6_9 || em.is_empty() {
        return Vec::new();
    }
    let pd = EmPerfDomain::new(em);
    let cost = |max| em_cpu_energy(rev, &pd, Util(max), Util(1), capacity, capacity);
    (0..=capacity.0).map(cost).collect()
}

/// A domain at its lowest frequency, with its energy model if all powers are known.
fn freq_domain(e: &Experiment, d: &Domain) -> FreqDomain {
    let state = |o: &risetime_model::platform::Opp| EmPerfState {
        frequency: o.freq,
        power: o.power,
        ..EmPerfState::default()
    };
    let mut em: Vec<EmPerfState> = d.opps.iter().map(state).collect();
    em_compute_costs(e.policy.kernel, &mut em, d.capacity);
    let inefficient: Vec<bool> = em.iter().map(|s| s.inefficient).collect();
    if d.opps.iter().any(|o| o.power == MicroWatts(0)) {
        em.clear();
    }
    let entry = |(i, o): (usize, &risetime_model::platform::Opp)| FreqTableEntry {
        freq: o.freq,
        inefficient: !em.is_empty() && inefficient[i],
    };
    let table: Vec<FreqTableEntry> = d.opps.iter().enumerate().map(entry).collect();
    let limits = pressure::limits(&e.settings, d, &table);
    let lowest = limits.0;
    let domain = FreqDomain {
        cpus: d.cpus.clone(),
        related: d.cpus.clone(),
        table,
        em_cost: em_costs(e.policy.kernel, &em, d.capacity),
        em_skips: em.iter().any(|s| s.inefficient),
        em,
        cur: lowest,
        hw: lowest,
        min: lowest,
        max: d.freq_max(),
        pressure: Capacity(0),
        hw_cap: None,
        wanted: lowest,
        target: lowest,
        freq_scale: freq_scale(lowest, d.freq_max()),
        speed: speed(d.capacity, lowest, d.freq_max()),
        fast_switch: d.fast_switch,
        change_gen: 0,
        idle: idle_states(d),
        kthread: None,
        work_in_progress: false,
        driver_due: false,
        in_driver: false,
    };
    domain.limited(d.capacity, limits)
}

fn idle_states(d: &Domain) -> Vec<IdleState> {
    let state = |s: &risetime_model::platform::IdleState| IdleState {
        target_residency: s.min_residency,
        exit_latency: s.exit_latency,
    };
    d.idle.iter().map(state).collect()
}

/// The workload's tasks, to be created `phase` plus their own delay after time 0.
fn add_tasks(engine: &mut Engine<'_>, specs: &Arc<[TaskSpec]>, started: usize, phase: Span) {
    // Instances of one task stand one behind the other.
    let mut like = 0;
    for (i, spec) in specs.iter().take(started).enumerate() {
        let task = TaskId(i as u32);
        let program = Program::of_instance(Arc::clone(specs), i, like);
        like = program.like();
        let role = Role::User(program);
        push_task(engine, spec.comm.as_str().into(), role);
        engine.set_attr(task, &spec.attr);
        engine.q.push(Instant(0) + phase + spec.delay, Ev::Create { task });
    }
}

/// A sugov kthread for each domain that cannot switch fast, to wake on the domain's first CPU.
fn add_kthreads(engine: &mut Engine<'_>) {
    for domain in 0..engine.m.domains.len() {
        let d = &engine.m.domains[domain];
        if d.fast_switch {
            continue;
        }
        let (cpu, cpus) = (d.cpus[0], d.cpus.iter().copied().collect());
        let task = TaskId(engine.m.tasks.len() as u32);
        push_task(engine, format!("sugov:{}", cpu.0).into(), Role::Sugov(domain));
        engine.m.set_allowed(task, cpus);
        engine.m.task_mut(task).sched = Sched::sugov();
        engine.m.task_mut(task).cpu = cpu;
        engine.m.domains[domain].kthread = Some(task);
    }
}

pub(crate) fn push_task(engine: &mut Engine<'_>, comm: Arc<str>, role: Role) -> TaskId {
    let load = LoadWeight::of_nice(0);
    let weight = load.weight();
    let id = TaskId(engine.m.tasks.len() as u32);
    engine.m.tasks.push(Task {
        comm,
        role,
        state: State::New,
        sched: Sched { rr_left: engine.m.classes.rr_timeslice, ..Sched::new() },
        todo: Todo::Nothing,
        cpu: CpuId(0),
        allowed: CpuSet::EMPTY,
        nr_cpus_allowed: 0,
        max_allowed_capacity: Capacity(0),
        nice: 0,
        weight,
        avg: init_entity_runnable_average(Some(weight)),
        util_est: UtilEst::default(),
        util_avg_dequeued: Util(0),
        waiting: WaitingAvg::default(),
        slept_at: 0,
        group: GroupId::ROOT,
        limits: UclampLimits::default(),
        moves_to: None,
        throttled: false,
        qos: SchedQos::fork(engine.m.series.rampup_multiplier.unwrap_or(1)),
        uclamp: UclampTask::default(),
        asked: Uclamp::default(),
        entity: Some(Entity::new(id, load)),
        timer_gen: 0,
        soft_expiry: Instant(0),
        ran_under: None,
        cold: Span(0),
        timer_cpu: None,
        listed: 0,
        recent_used_cpu: Cell::new(CpuId(0)),
        wakees: Wakees::default(),
        max_speed: Util(0),
    });
    engine.m.set_allowed(id, CpuSet::first(engine.m.cpus.len()));
    id
}
