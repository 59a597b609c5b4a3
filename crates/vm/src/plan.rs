//! Plans: from an experiment to the agent's job.
//!
//! ```text
//! settings     where each has its home (`Home`, in the catalogue): the files of sysctl, sysfs, debugfs
//!              and of the governor in use, whose tunables hold for all policies at once (cpufreq-dt's
//!              way); clamps and first CPU go to the tasks
//! written      the governor, and what the policy says; defaults are the kernel's own to choose,
//!              and are read back into the trace's header
//! limits       scaling_max_freq and scaling_min_freq, of all policies or of one: as OPPs, which is
//!              what the kernel makes of them
//! boot         `highres=` goes to the kernel's command line; a guest held for further runs is one of the same line
//! ```
//!
//! A setting that no stock kernel has (a start state, a switch of the response-time series), or that
//! nobody tells the guest (another boot parameter), is an error unless its value is the neutral one.

use crate::{dtb, partitions};
use risetime_ftrace::asked::{self, Wanted};
use risetime_job::job::{Attr, Cpu, Job, Objects, Phase, Task};
use risetime_kernel::dl_server::SERVER_PERIOD;
use risetime_kernel::features;
use risetime_kernel::opp::{FreqTableEntry, cpufreq_set_policy};
use risetime_kernel::units::{CpuId, KHz, Util};
use risetime_model::platform::{self, Domain, Opp};
use risetime_model::settings::keys::{
    AMD_PSTATE, FIRST_CPU, GOVERNOR, INTEL_PSTATE, NI_RANDOM, SCALING_MAX_FREQ, SCALING_MIN_FREQ,
    TIMER_SLACK_NS, governor,
};
use risetime_model::settings::{
    Catalogue, Default, Home, Int, Key, Neutral, Param, Value, own_name,
};
use risetime_model::workload::{self, Hotplug, TaskGroup, TaskSpec, Workload};
use risetime_model::{Experiment, InputError, Platform};

/// Trace buffer of each CPU. Busy for 3 s: about 1 MB.
const BUFFER_KB: u32 = 16 << 10;
/// Time that the boot's utilisation estimates are given to decay (of the guest's time).
pub(crate) const SETTLE_NS: u64 = 30_000_000_000;

pub(crate) const CPUFREQ: &str = "/sys/devices/system/cpu/cpufreq";
pub(crate) const FEATURES: &str = "/sys/kernel/debug/sched/features";
/// Whether tasks of a process are gathered under one last-level cache (SCHED_CACHE, since 7.2).
pub(crate) const LLC_BALANCING: &str = "/sys/kernel/debug/sched/llc_balancing/enabled";
pub(crate) const ENERGY_AWARE: &str = "/proc/sys/kernel/sched_energy_aware";
pub(crate) const ENERGY_MODEL: &str = "/sys/kernel/debug/energy_model";

/// Parameters of its command line that a guest is told.
const TOLD: [&str; 1] = ["highres="];
/// Mode of x86 drivers in which a governor says the frequency.
const PASSIVE: &str = "passive";
/// Limits of the frequency, the highest first: written as OPPs of each policy, as the governor is in a way of its own.
const LIMITS: [Key<Int>; 2] = [SCALING_MAX_FREQ, SCALING_MIN_FREQ];

/// A job with the settings that its answer must confirm.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) job: Job,
    /// Paths that stand for settings: name, path. What is there afterwards is the setting.
    pub(crate) settings: Vec<(String, String)>,
}

/// Demands on the guest besides the experiment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    /// The trace tells from what the kernel decides.
    pub(crate) decisions: bool,
    /// Idle states take the time that the platform says.
    pub(crate) idle_times: bool,
    /// Probes tell of the scheduler's signals.
    pub(crate) probes: bool,
}

/// The job of `experiment`. `modules`: the names of the kernel modules there are.
///
/// Errors: settings that cannot be set in the guest (see the head of this file), a mask without CPUs.
pub(crate) fn plan(
    experiment: &Experiment,
    catalogue: &Catalogue,
    modules: &[String],
    how: How,
) -> Result<Plan, InputError> {
    let e = experiment;
    check(e, catalogue)?;
    let workload = e.workload.bind(&e.platform)?;
    no_stock_kernel(&workload)?;
    let uclamp = e.uclamp()?;
    let governor = e.settings.get(&GOVERNOR).unwrap_or(governor::SCHEDUTIL).to_string();
    let first_cpu = first_cpu(e, &workload.tasks[workload.first_created()]);
    let (partitions, groups) = partitions::in_guest(&workload, first_cpu, &e.platform)?;
    let wanted = wanted(&workload, how.decisions);
    let mut settings = Vec::new();
    let mut job = Job {
        duration_ns: e.duration.0,
        phase_ns: e.phase.0,
        tick_ns: 0,
        first_cpu: first_cpu.0,
        settle_ns: SETTLE_NS,
        buffer_kb: BUFFER_KB,
        linger_ns: 0,
        timer_slack_ns: e.settings.get(&TIMER_SLACK_NS).map_or(0, |ns| ns.max(0) as u64),
        cpus: e.platform.cpus().map(|c| cpu(&e.platform, c)).collect(),
        idle: if how.idle_times { dtb::idle_ways(&e.platform) } else { Vec::new() },
        modules: modules_for(&governor, modules),
        set: Vec::new(),
        read: [reads(&e.platform), groups.iter().filter_map(quota_stat).collect()].concat(),
        probes: if how.probes { asked::probes(wanted, e.policy.kernel) } else { Vec::new() },
        kprobes: how.decisions,
        events: asked::events(wanted),
        hotplug: workload.hotplug.iter().map(|h| Hotplug { place: (0, 0), ..*h }).collect(),
        groups,
        partitions,
        tasks: workload.tasks.iter().map(|t| task(t, e, uclamp)).collect(),
        forked: workload.forked.iter().map(|t| task(t, e, uclamp)).collect(),
        objects: Objects {
            mutexes: workload.objects.mutexes.len() as u32,
            conds: workload.objects.conds.len() as u32,
            semaphores: workload.objects.semaphores.len() as u32,
            timers: workload.objects.timers.len() as u32,
            pi: workload.objects.pi,
            barriers: workload.objects.barriers.iter().map(|b| b.users).collect(),
        },
    };
    for d in &e.platform.domains {
        let path = format!("{CPUFREQ}/policy{}/scaling_governor", d.cpus[0].0);
        job.set.push((path.clone(), governor.clone()));
        settings.push((GOVERNOR.name().to_string(), path));
    }
    for (name, path) in files(e, catalogue) {
        // As it was understood: `80%` is 80.
        let said = e.policy.set.get(&name).map(|said| e.settings.by_name(&name).unwrap_or(said));
        match said {
            Some(value) => job.set.push((path.clone(), value.to_string())),
            None => job.read.push(path.clone()),
        }
        settings.push((name, path));
    }
    runtime_before_period(&mut job.set);
    threshold_down_first(&mut job.set);
    let feature = |name: &str, on: i64| {
        let no = if on == 1 { "" } else { "NO_" };
        (FEATURES.to_string(), format!("{no}{name}"))
    };
    if e.policy.kernel.has(features::NI_RANDOM) {
        job.set.push(feature("NI_RANDOM", e.settings.get(&NI_RANDOM).unwrap_or(0)));
    }
    for (_, p) in catalogue.params().filter(|(_, p)| p.name != NI_RANDOM.name()) {
        if let (Home::Feature(name), Some(Value::Int(on))) = (p.home, e.policy.said(p)) {
            job.set.push(feature(name, *on));
        }
    }
    for d in &e.platform.domains {
        let (set, read) = limits(e, d);
        job.set.extend(set);
        settings.extend(read);
    }
    Ok(Plan { job, settings })
}

/// Facts that a run of `workload` wants to be told by the guest.
pub(crate) fn wanted(workload: &Workload, decisions: bool) -> Wanted {
    Wanted {
        decisions,
        hotplug: !workload.hotplug.is_empty(),
        groups: !workload.groups.is_empty(),
        quotas: workload.groups.iter().any(|g| g.quota.is_some()),
    }
}

/// The part of the guest's command line that says the experiment's settings, a blank before each.
pub(crate) fn command_line(e: &Experiment, catalogue: &Catalogue) -> String {
    let told = |p: &Param| match p.home {
        Home::Boot(parameter) if TOLD.contains(&parameter) => {
            e.settings.get(p).map(|value| format!(" {parameter}{value}"))
        }
        _ => None,
    };
    catalogue.params().filter_map(|(_, p)| told(p)).collect()
}

/// Orders runtimes and periods so that no write is refused. The kernel refuses a runtime of
/// real-time tasks above their period: where the period gets shorter than it is at boot, 1 s, the
/// runtime goes first.
fn runtime_before_period(set: &mut [(String, String)]) {
    let at = |name: &str| set.iter().position(|(path, _)| path.ends_with(name));
    let (period, runtime) = (at("/sched_rt_period_us"), at("/sched_rt_runtime_us"));
    if let (Some(period), Some(runtime)) = (period, runtime)
        && set[period].1.parse().is_ok_and(|us: u64| us < 1_000_000)
    {
        set.swap(period, runtime);
    }
    // Of the fair servers the runtime comes first, unless it is more than the period that they have at boot.
    let server = |(path, _): &&mut (String, String), file| {
        path.contains("/fair_server/") && path.ends_with(file)
    };
    let (mut runtimes, mut periods) = (Vec::new(), Vec::new());
    for entry in set.iter_mut() {
        if server(&entry, "/runtime") && entry.1.parse().is_ok_and(|ns: u64| ns > SERVER_PERIOD.0) {
            runtimes.push(entry);
        } else if server(&entry, "/period") {
            periods.push(entry);
        }
    }
    for (runtime, period) in runtimes.into_iter().zip(periods) {
        std::mem::swap(runtime, period);
    }
}

/// Orders conservative's thresholds so that no write is refused: each write must leave the lower
/// threshold below the upper one, which is 80 at boot.
fn threshold_down_first(set: &mut [(String, String)]) {
    let at = |name: &str| {
        set.iter().position(|(path, _)| path.ends_with(&format!("/conservative/{name}_threshold")))
    };
    if let (Some(up), Some(down)) = (at("up"), at("down"))
        && up < down
        && set[down].1.parse().is_ok_and(|percent: u32| percent < 80)
    {
        set.swap(up, down);
    }
}

/// A job without a workload: modules and the default governor.
pub(crate) fn bare(platform: &Platform, modules: &[String]) -> Job {
    Job {
        cpus: platform.cpus().map(|c| cpu(platform, c)).collect(),
        modules: modules_for(governor::SCHEDUTIL, modules),
        ..Job::default()
    }
}

/// The frequency limits of a policy that are set: path and OPP, and which settings that are.
#[expect(clippy::type_complexity, reason = "two lists of pairs, as in a job and in a plan")]
fn limits(e: &Experiment, d: &Domain) -> (Vec<(String, String)>, Vec<(String, String)>) {
    let policy = d.cpus[0].0;
    let asked = |of: Key<Int>| {
        let own = e.policy.set.get(&own_name(of.name(), d.cpus[0]));
        match own.or(e.policy.said(&of)) {
            Some(Value::Int(khz)) => Some(KHz((*khz).max(0) as u64)),
            _ => None,
        }
    };
    let entry = |o: &Opp| FreqTableEntry { freq: o.freq, inefficient: false };
    let table: Vec<FreqTableEntry> = d.opps.iter().map(entry).collect();
    let [max, min] = LIMITS.map(asked);
    let both = cpufreq_set_policy(&table, min.unwrap_or(KHz(0)), max.unwrap_or(KHz(u64::MAX)));
    let Some((lowest, highest)) = both else { return (Vec::new(), Vec::new()) };
    let path = |of: Key<Int>| format!("{CPUFREQ}/policy{policy}/{of}");
    let set = [(LIMITS[0], max, highest), (LIMITS[1], min, lowest)];
    let set = set.into_iter().filter(|(_, asked, _)| asked.is_some());
    set.map(|(of, _, opp)| {
        ((path(of), opp.0.to_string()), (own_name(of.name(), d.cpus[0]), path(of)))
    })
    .unzip()
}

/// Whether the guest can be given every setting of the experiment.
///
/// Errors: one that it cannot be given, and that would change something; one of a single policy where
/// the guest's driver has one for all.
fn check(e: &Experiment, catalogue: &Catalogue) -> Result<(), InputError> {
    // Governors have settings of one name (`sampling_rate`): those of the one in use are meant.
    let used = || catalogue.params().filter(|(group, _)| group.in_use(&e.settings));
    let home = |name: &str| used().find(|(_, p)| p.name == name).map(|(_, p)| p.home);
    let own = e.policy.set.iter().filter_map(|(name, v)| Some((name.split_once('.')?.0, name, v)));
    for (base, name, value) in own {
        match home(base) {
            None | Some(Home::Policy(_)) => {}
            Some(home) => match refusal(home) {
                Some((why, _)) => return Err(refused(e, name, value, why)),
                None => {
                    let why = "cpufreq-dt has one tunable for all policies";
                    return Err(InputError::new(setting(e, name, value), why)
                        .hint("set it for all, or run it with --backend sim"));
                }
            },
        }
    }
    for (_, param) in used() {
        // As it was understood: `80%` is 80.
        let set = e.policy.said(param).and(e.settings.get(param));
        if let (Some(value), Some((why, neutral))) = (set, refusal(param.home))
            && !neutral.is(value)
        {
            return Err(refused(e, param.name, value, why));
        }
    }
    if let Some(governor) =
        e.settings.get(&GOVERNOR).filter(|name| !governor::MAINLINE.contains(name))
    {
        let why = "no stock kernel has this governor".to_string();
        return Err(refused(e, GOVERNOR.name(), &Value::Name(governor.to_string()), why));
    }
    for mode in [INTEL_PSTATE, AMD_PSTATE] {
        if let Some(own) = e.settings.get(&mode).filter(|own| *own != PASSIVE) {
            let why = format!(
                "a virtual machine has no such hardware: at most its governors can be had, by {mode}={PASSIVE}"
            );
            return Err(refused(e, mode.name(), &Value::Name(own.to_string()), why));
        }
    }
    Ok(())
}

/// The reason for which the guest cannot be given a setting with this home, and the value with
/// which that is no matter; `None`: it can be given.
fn refusal(home: Home) -> Option<(String, Neutral)> {
    match home {
        Home::Sysctl(_)
        | Home::Debugfs(_)
        | Home::DebugfsCpu(_)
        | Home::Feature(_)
        | Home::CpuSysfs(_)
        | Home::Cpu(_)
        | Home::Tunable(_)
        | Home::Policy(_)
        | Home::SchedAttr(_)
        | Home::Prctl(_)
        | Home::Affinity => None,
        Home::Device(file) => Some((
            format!("it holds as long as somebody keeps /dev/{file} open, and the guest does not"),
            Neutral::None,
        )),
        Home::Boot(parameter) if TOLD.contains(&parameter) => None,
        // The guest's driver does what a governor says, as theirs do then.
        Home::Boot(parameter @ ("intel_pstate=" | "amd_pstate=")) => {
            Some((format!("{parameter} is of x86"), Neutral::Name(PASSIVE)))
        }
        Home::Boot(parameter) => Some((
            format!("a kernel is told this when it boots ({parameter}), and the guest is not"),
            Neutral::None,
        )),
        Home::Patched(name, neutral) => {
            let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
            Some((format!("no stock kernel has this setting, only a patched one{name}"), neutral))
        }
        Home::Simulator(neutral) => {
            Some(("only the simulator has this setting, a real kernel has not".into(), neutral))
        }
    }
}

fn refused(e: &Experiment, name: &str, value: &Value, why: String) -> InputError {
    InputError::new(setting(e, name, value), why).hint("leave it out, or run it with --backend sim")
}

/// The place of an error about a setting.
fn setting(e: &Experiment, name: &str, value: &Value) -> String {
    let said = || format!("setting {name}={value}");
    e.policy.places.get(name).cloned().unwrap_or_else(said)
}

/// The settings that are files in the guest, one entry for each file, in the order in which they are
/// written: the system's, the fair class's, the governor's.
fn files(e: &Experiment, catalogue: &Catalogue) -> Vec<(String, String)> {
    // A default that is derived and then not there: this kernel has no such setting.
    let has = |p: &Param| !matches!(p.default, Default::Derived(..)) || e.settings.is_set(p);
    let [mut system, mut fair, mut governor] = [const { Vec::new() }; 3];
    for (_, p) in catalogue.params().filter(|(g, p)| g.in_use(&e.settings) && has(p)) {
        let of = |policy: CpuId| p.home.file(policy).map(|path| (p.name.to_string(), path));
        match p.home {
            Home::Sysctl(_) | Home::CpuSysfs(_) => system.extend(of(CpuId(0))),
            // A guest has no such file for states that it does not have.
            Home::Cpu(_) if e.policy.said(p).is_some() => {
                system.extend(e.platform.cpus().filter_map(of));
            }
            Home::Debugfs(_) => fair.extend(of(CpuId(0))),
            Home::DebugfsCpu(_) => fair.extend(e.platform.cpus().filter_map(of)),
            Home::Tunable(_) => governor.extend(of(CpuId(0))),
            Home::Policy(_)
                if p.name != GOVERNOR.name() && !LIMITS.iter().any(|of| of.name() == p.name) =>
            {
                governor.extend(e.platform.domains.iter().filter_map(|d| of(d.cpus[0])));
            }
            // Written elsewhere, part of the tasks, or nothing that the guest is told.
            _ => {}
        }
    }
    [system, fair, governor].concat()
}

/// Lists the modules to load: cpufreq-dt, after the governor it is to start with.
fn modules_for(governor: &str, present: &[String]) -> Vec<String> {
    let wanted = [format!("cpufreq_{governor}.ko"), "cpufreq-dt.ko".to_string()];
    wanted.iter().filter(|m| present.contains(m)).map(|m| format!("/modules/{m}")).collect()
}

/// The file from which a group's use of its quota is read back.
pub(crate) fn quota_stat(group: &TaskGroup) -> Option<String> {
    group.quota.map(|_| format!("/sys/fs/cgroup{}/cpu.stat", group.path))
}

/// Lists the files that are read back of any machine.
fn reads(platform: &Platform) -> Vec<String> {
    let mut paths = vec![ENERGY_MODEL.to_string(), FEATURES.to_string()];
    for d in &platform.domains {
        for name in [
            "scaling_available_frequencies",
            "scaling_available_governors",
            "scaling_driver",
            "related_cpus",
            "cpuinfo_transition_latency",
        ] {
            paths.push(format!("{CPUFREQ}/policy{}/{name}", d.cpus[0].0));
        }
    }
    paths.extend(
        platform.cpus().map(|c| format!("/sys/devices/system/cpu/cpu{}/cpu_capacity", c.0)),
    );
    paths
}

fn cpu(platform: &Platform, cpu: CpuId) -> Cpu {
    let d =
        &platform.domains[platform.domain_of(cpu).expect("validated: every CPU is in a domain")];
    Cpu { capacity: d.capacity.0, freq_max_khz: d.freq_max().0, policy: d.cpus[0].0 }
}

/// The CPU that the setting names, else the lowest-numbered of the smallest capacity in the
/// first task's mask.
fn first_cpu(e: &Experiment, task: &TaskSpec) -> CpuId {
    if let Some(cpu) = e.settings.get(&FIRST_CPU) {
        return CpuId(cpu as u32);
    }
    let all: Vec<CpuId> = e.platform.cpus().collect();
    let mask = task.attr.cpus.as_ref().unwrap_or(&all);
    let capacity =
        |c: &CpuId| e.platform.domain_of(*c).map_or(u64::MAX, |d| e.platform.domains[d].capacity.0);
    mask.iter().copied().min_by_key(|c| (capacity(c), c.0)).unwrap_or(CpuId(0))
}

/// Errors: a task asks for what only the simulator has.
fn no_stock_kernel(workload: &Workload) -> Result<(), InputError> {
    if let Some(group) = workload.groups.iter().find(|g| g.rt_runtime.is_some()) {
        let what =
            "`rt_runtime_us` is of the series on real-time groups (HCBS), no stock kernel has it";
        let place = format!("{}: task group `{}`", workload.name, group.path);
        return Err(InputError::new(place, what).hint("leave it out, or run it with --backend sim"));
    }
    type Asks = fn(&workload::Attr) -> bool;
    let unknown: [(Asks, &str); 4] = [
        (
            |a| !a.qos.is_empty(),
            "`sched_qos` is the response-time series', no stock kernel takes it",
        ),
        (|a| a.latency_nice.is_some(), "`latency_nice` was never merged, no stock kernel takes it"),
        (
            |a| matches!(a.policy, Some(workload::Policy::High { .. })),
            "SCHED_HIGH is a proof of concept, no stock kernel has it",
        ),
        (
            |a| matches!(a.policy, Some(workload::Policy::Overcommit { .. })),
            "SCHED_OVERCOMMIT is an idea of which there is no code, no stock kernel has it",
        ),
    ];
    for (asks, what) in unknown {
        let is = |t: &&TaskSpec| asks(&t.attr) || t.phases.iter().any(|phase| asks(&phase.attr));
        if let Some(task) = workload.tasks.iter().chain(&workload.forked).find(is) {
            let place = workload.place_of(&task.comm, &format!("task `{}`", task.comm));
            let hint = "leave it out, or run it with --backend sim";
            return Err(InputError::new(place, what).hint(hint));
        }
    }
    // Of the agent's work only its plain loop is known.
    if !workload.objects.kinds.is_empty() {
        let what = "`kind`: the agent does plain work alone, as tables of other kinds are of the machine they were measured on";
        let hint = "leave it out, or run it with --backend sim";
        return Err(InputError::new(&workload.name, what).hint(hint));
    }
    Ok(())
}

fn task(t: &TaskSpec, e: &Experiment, uclamp: (Option<Util>, Option<Util>)) -> Task {
    let clamp = |of_run: Option<Util>, own: Option<Util>, first: bool| match of_run {
        Some(util) => first.then_some(util.0 as u32),
        None => own.map(|util| util.0 as u32),
    };
    let attr = |a: &workload::Attr, first: bool| Attr {
        cpus: a.cpus.as_ref().map(|c| c.iter().map(|c| c.0).collect()),
        policy: a.policy,
        nice: a.nice.map(i32::from),
        // The run's own clamps replace the workload's, for good.
        uclamp_min: clamp(uclamp.0, a.uclamp_min, first),
        uclamp_max: clamp(uclamp.1, a.uclamp_max, first),
        group: a.taskgroup.as_deref().map(|path| group_number(e, path)),
    };
    let phase = |p: &workload::Phase| Phase {
        name: p.name,
        repeat: p.repeat,
        attr: attr(&p.attr, false),
        events: p.events.clone(),
    };
    Task {
        comm: t.comm.clone(),
        delay: t.delay,
        repeat: t.repeat,
        attr: attr(&t.attr, true),
        phases: t.phases.iter().map(phase).collect(),
        stage: t.stage,
        logs: t.logs,
    }
}

/// The number of the task group `path`; 0: the root. The workload was checked: it has every group
/// that a task names.
fn group_number(e: &Experiment, path: &str) -> u32 {
    e.workload.groups.iter().position(|g| g.path == path).map_or(0, |i| i as u32 + 1)
}

/// The lowest and the highest frequency that a domain may have under this job.
pub(crate) fn frequency_limits(job: &Job, d: &Domain) -> (KHz, KHz) {
    let limit = |of: Key<Int>| {
        let path = format!("{CPUFREQ}/policy{}/{of}", d.cpus[0].0);
        let set = job.set.iter().find(|(p, _)| *p == path);
        set.and_then(|(_, khz)| khz.parse().ok().map(KHz))
    };
    let [max, min] = LIMITS.map(limit);
    (min.unwrap_or(d.opps[0].freq), max.unwrap_or(d.freq_max()))
}

/// Limits of a task's speed (s_max, of 1024) at each point of its life.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    cpus: Vec<u32>,
    uclamp_max: Util,
    /// Highest frequency of each domain under this job.
    max_freq: Vec<KHz>,
    /// Boost OPPs may be used.
    boosts: bool,
}

impl Limits {
    /// The limits of a task at its creation.
    pub(crate) fn new(platform: &Platform, job: &Job, attr: &Attr) -> Limits {
        let boosts =
            job.set.iter().any(|(path, on)| *path == format!("{CPUFREQ}/boost") && on == "1");
        let max_freq = |d: &Domain| match frequency_limits(job, d).1 {
            max if boosts && max == d.freq_max() => d.freq_boost(),
            max => max,
        };
        let mut l = Limits {
            cpus: platform.cpus().map(|c| c.0).collect(),
            uclamp_max: Util(1024),
            max_freq: platform.domains.iter().map(max_freq).collect(),
            boosts,
        };
        l.take(attr);
        l
    }
    /// Takes in `attr`, which has been set.
    pub(crate) fn take(&mut self, attr: &Attr) {
        if let Some(cpus) = &attr.cpus {
            self.cpus.clone_from(cpus);
        }
        self.uclamp_max = attr.uclamp_max.map_or(self.uclamp_max, |u| Util(u.into()));
    }
    /// The largest speed: of the CPUs allowed, at the first OPP that gives the clamp.
    pub(crate) fn max_speed(&self, platform: &Platform) -> Util {
        self.best(platform, self.uclamp_max, |domain, _| self.max_freq[domain])
    }
    /// The highest speed that the task's affinity leaves, and its affinity and `uclamp_max`
    /// together.
    pub(crate) fn speed_limits(&self, platform: &Platform) -> (Util, Util) {
        let highest = |_, d: &Domain| if self.boosts { d.freq_boost() } else { d.freq_max() };
        (
            self.best(platform, Util(u64::MAX), highest),
            self.best(platform, self.uclamp_max, highest),
        )
    }
    fn best(
        &self,
        platform: &Platform,
        clamp: Util,
        limit: impl Fn(usize, &Domain) -> KHz,
    ) -> Util {
        // A clamp of 1024 is none: it forbids no boost OPP.
        let clamp = if clamp >= Util(1024) { Util(u64::MAX) } else { clamp };
        let best = |cpu: &u32| {
            let domain = platform.domain_of(CpuId(*cpu))?;
            let d = &platform.domains[domain];
            let freqs = d.opps.iter().map(|o| o.freq);
            Some(platform::max_speed(d.capacity, d.freq_max(), freqs, limit(domain, d), clamp))
        };
        self.cpus.iter().filter_map(best).max().unwrap_or(Util(0))
    }
}

/// The value of a setting as it was read back.
pub(crate) fn value(text: &str) -> Value {
    text.trim().parse().map_or_else(|_| Value::Name(text.trim().to_string()), Value::Int)
}
