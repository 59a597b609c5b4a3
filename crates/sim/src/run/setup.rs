//! Set-up of a machine that is ready to run, from an experiment.

use crate::Custom;
use crate::governor::Governor;
use crate::kernel::Kernel;
use crate::kernel::cpufreq::SUGOV_WORK_NS;
use crate::kernel::cpuidle;
use crate::kernel::fork::new_task;
use crate::kernel::governor::Works;
use crate::kernel::hotplug::plan_hotplug;
use crate::kernel::init;
use crate::kernel::placement::{self, Checked, PLACEMENT, Placement};
use crate::kernel::tracker;
use crate::kernel::tracker::TRACKER;
use crate::mech::pstate::governor_in_force;
use crate::run::cause::{Cause, Causes, Without};
use crate::run::engine::Simulation;
use crate::run::mechanisms;
use crate::run::settings::{
    BACKGROUND_UTIL, FIRST_CPU, FIRST_TICK_NS, START_PERIOD_CONTRIB, START_UTIL,
};
use crate::state::class::{Sched, check_clamps};
use crate::state::cpuset::CpuSet;
use crate::state::effects::Effects;
use crate::state::hooks::Hooks;
use crate::state::machine::{Cpu, Machine, Role, Task};
use crate::state::plain;
use crate::state::tally::Tally;
use crate::time::queue::{Ev, Queue};
use crate::user::User;
use crate::user::power_hal::Service;
use crate::user::program::Program;
use crate::user::together::Together;
use crate::{Counterfactual, governor};
use risetime_kernel::features;
use risetime_kernel::units::{CpuId, Instant, Span, TaskId, Util};
use risetime_model::settings::Int;
use risetime_model::workload::{Attr, StartAt, TaskSpec};
use risetime_model::{Experiment, Name};
use risetime_trace::{BackendKind, Clock, Header, Origin, Run, RunError, Signal, TraceSink};
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
    let all = all.chain(tracker::notes(&e.settings)).chain(cpuidle::notes(&e.platform));
    all.chain(mechanisms::notes(e)).collect()
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
    let governor = || governor_in_force(&e.platform, &e.settings);
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
    init::dl_servers(e, &mut k.m.cpus, &mut k.m.classes);
    add_tasks(&mut simulation, &specs, started, e.phase);
    add_service(&mut simulation, &specs[..started], e.phase);
    let k = &mut simulation.k;
    let start = Instant(0) + e.phase;
    plan_hotplug(&mut k.q, &hotplug, start);
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

/// The machine, with what mechanisms keep of it, and the state in which it starts.
fn machine(e: &Experiment, governor: &governor::Descriptor) -> Machine {
    let int = |of: &Int| e.settings.get(of);
    let mut machine = init::machine(e, governor, |domain| mechanisms::of_domain(e, domain));
    machine.start.util = int(&START_UTIL).map(|v| Util(v as u64));
    machine.start.period_contrib = int(&START_PERIOD_CONTRIB).map(|v| v as u32);
    machine.start.first_tick = int(&FIRST_TICK_NS).map(|v| Span(v as u64));
    machine.slots = mechanisms::of_machine(e, &machine);
    for cpu in e.platform.cpus() {
        machine.cpus[cpu.index()].background_util = background_util(e, cpu);
        machine.cpus[cpu.index()].slots = mechanisms::of_cpu(e, &machine, cpu);
    }
    machine.classes.between = machine.cpus.iter().any(Cpu::serves_between);
    machine.root.energy_aware = machine.sched_is_eas_possible();
    machine.plain = plain::is_plain(&machine) && !mechanisms::bend(&machine);
    machine.tally = Tally::serves(&machine).then(|| Tally::new(&machine));
    machine
}

/// The util that others add on `cpu`: as set for its policy, else for all.
fn background_util(e: &Experiment, cpu: CpuId) -> Util {
    let first = e.platform.domain_of(cpu).map_or(cpu, |d| e.platform.domains[d].cpus[0]);
    let util = e.settings.of_policy(&BACKGROUND_UTIL, first);
    util.map(|util| Util(util.max(0) as u64)).unwrap_or_default()
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
    k.m.service = Some(task);
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
