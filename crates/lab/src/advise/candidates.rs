//! Candidates to try: small grids of what a user can change, the likeliest first.
//!
//! ```text
//! those whom the metric is about   util_min, nice, cpuset (big CPUs), slice: all of a chain together
//! those that run most besides      util_max, nice, cpuset (small CPUs, or all but one): together
//! task groups of either            uclamp, weight
//! all                              rate limit, governor, what the governor and tracker at hand can be told, energy-aware
//!                                  placement, base slice, rampup multiplier, idle states
//! then                             the same of those whom the metric is about, and of the heaviest two others, one at a time
//! ```
//!
//! Left out: what the kernel's generation cannot do, keys that a task's phases set for themselves, CPUs of tasks that
//! have some of their own.

use risetime_analysis::advice::{Step, Steps};
use risetime_analysis::{RunResult, group_name};
use risetime_kernel::features;
use risetime_model::settings::keys::governor;
use risetime_model::settings::{Group, Int, Param, Value};
use risetime_model::workload::{Attr, KeyOf, Policy, TaskSpec};
use risetime_model::{Experiment, Platform};
use risetime_sim::settings::{
    BASE_SLICE_NS, CPU_DMA_LATENCY, EPP, GOVERNOR, MAX_CSTATE, RAMPUP_MULTIPLIER, RATE_LIMIT_US,
    SCHED_ENERGY_AWARE, SCHEDUTIL, TRACKER, conservative, hardware_decides, interactive, is_active,
    ondemand, schedfreq, schedutil_2016, walt,
};

/// Number of others that are changed together, and of those changed one at a time.
const OTHERS: (usize, usize) = (8, 2);
/// Share of all running time below which a task is not worth a change.
const RUNS: f64 = 0.01;
/// Number of CPUs beyond which a list of nearly all of them is no small change.
const FEW_CPUS: usize = 32;

/// A task with its name in the file.
type Named<'e> = (String, &'e TaskSpec);

/// The tasks of a workload by their names in its file.
struct Who<'e> {
    /// Tasks that the metric is about.
    own: Vec<Named<'e>>,
    /// Tasks that run most besides, the heaviest first.
    others: Vec<Named<'e>>,
}

/// Lists all candidates for the figure called `metric`, and what is not tried since this kernel
/// lacks it.
pub(super) fn candidates(
    e: &Experiment,
    result: &RunResult,
    metric: &str,
) -> (Vec<Steps>, Vec<&'static str>) {
    let who = Who::of(e, result, metric);
    let heaviest = &who.others[..who.others.len().min(OTHERS.1)];
    let mut all = of_own(e, &who.own);
    all.extend(of_others(e, &who.others));
    all.extend(of_groups(e, &who));
    all.extend(of_all(e));
    let alone = |n: usize| move |_: &&[Named<'_>]| n > 1;
    let singly = who.own.chunks(1).filter(alone(who.own.len()));
    all.extend(singly.flat_map(|task| of_own(e, task)));
    let singly = heaviest.chunks(1).filter(alone(who.others.len()));
    all.extend(singly.flat_map(|task| of_others(e, task)));
    all.retain(|steps| !steps.is_empty());
    let mut left_out = Vec::new();
    if !e.policy.kernel.has(features::UCLAMP) {
        left_out.push("clamps (util_min, util_max): since 5.3");
    }
    if !has_slices(e) {
        left_out.push("slices of a task's own: since 6.12");
    }
    if !e.settings.is_set(&RAMPUP_MULTIPLIER) {
        left_out.push("rampup multipliers: a patched kernel's (--policy rfc-v1)");
    }
    (all, left_out)
}

fn governor(e: &Experiment) -> &str {
    e.settings.get(&GOVERNOR).unwrap_or(SCHEDUTIL)
}

/// Whether a clamp can make a difference: only schedutil follows it, and placement where CPUs differ.
fn clamps_act(e: &Experiment) -> bool {
    let (small, big) = capacities(&e.platform);
    e.policy.kernel.has(features::UCLAMP) && (governor(e) == SCHEDUTIL || small < big)
}

fn has_slices(e: &Experiment) -> bool {
    e.policy.kernel.has(features::CUSTOM_SLICE)
}

impl<'e> Who<'e> {
    fn of(e: &'e Experiment, result: &RunResult, metric: &str) -> Who<'e> {
        let mut names: Vec<(String, &TaskSpec, f64)> = Vec::new();
        for task in e.workload.tasks.iter().chain(&e.workload.forked) {
            let name = in_file(&task.comm);
            let runs = result.tasks.iter().filter(|t| in_file(&t.comm) == name);
            if names.iter().all(|(other, ..)| other != name) {
                names.push((name.into(), task, runs.map(|t| t.whole.running_ms).sum()));
            }
        }
        let whose = metric.rsplit_once('.').map(|(whose, _)| whose);
        let job = e.workload.jobs.iter().find(|job| Some(job.name.as_str()) == whose);
        let of_job = job.map(|job| {
            let comm = |i: &u32| Some(in_file(&e.workload.tasks.get(*i as usize)?.comm));
            job.tasks.iter().filter_map(comm).collect::<Vec<_>>()
        });
        let own = of_job.unwrap_or_else(|| whose.map(in_file).into_iter().collect());
        let all: f64 = names.iter().map(|(.., ran)| ran).sum();
        let is_own = |name: &str| own.contains(&name);
        let mut others: Vec<_> = (names.iter())
            .filter(|(name, task, ran)| !is_own(name) && is_fair(task) && *ran >= RUNS * all)
            .collect();
        others.sort_by(|a, b| b.2.total_cmp(&a.2));
        let mut others: Vec<Named<'_>> =
            others.into_iter().map(|(name, task, _)| (name.clone(), *task)).collect();
        let mut own: Vec<Named<'_>> = (own.iter())
            .filter_map(|own| names.iter().find(|(name, ..)| name == own))
            .map(|(name, task, _)| (name.clone(), *task))
            .collect();
        if own.is_empty() {
            // A figure of the whole run is about those that run most.
            own = others.drain(..others.len().min(OTHERS.1)).collect();
        }
        others.truncate(OTHERS.0);
        Who { own, others }
    }
}

/// A task's name in the file, without the number of its instance.
fn in_file(comm: &str) -> &str {
    group_name(comm.split('#').next().unwrap_or(comm))
}

fn is_fair(task: &TaskSpec) -> bool {
    let fair = |attr: &Attr| {
        attr.policy.is_none_or(|p| matches!(p, Policy::Other { .. } | Policy::Batch { .. }))
    };
    fair(&task.attr) && task.phases.iter().all(|phase| fair(&phase.attr))
}

/// Whether no phase of the task says for itself what `says` looks at.
fn leaves(task: &TaskSpec, says: fn(&Attr) -> bool) -> bool {
    task.phases.iter().all(|phase| !says(&phase.attr))
}

/// The same key of each task for which there is a value.
fn each(tasks: &[Named<'_>], key: &str, value: impl Fn(&TaskSpec) -> Option<String>) -> Steps {
    let change = |(name, task): &Named<'_>| Some(KeyOf::new(name, key, value(task)?));
    tasks.iter().filter_map(change).map(Step::Workload).collect()
}

fn util_min(to: u64) -> impl Fn(&TaskSpec) -> Option<String> {
    move |task| {
        let has = task.attr.uclamp_min.map_or(0, |u| u.0);
        let room = task.attr.uclamp_max.map_or(1024, |u| u.0);
        let free = leaves(task, |attr| attr.uclamp_min.is_some() || attr.uclamp_max.is_some());
        (has < to && to <= room && free).then(|| to.to_string())
    }
}

fn util_max(to: u64) -> impl Fn(&TaskSpec) -> Option<String> {
    move |task| {
        let has = task.attr.uclamp_max.map_or(1024, |u| u.0);
        let least = task.attr.uclamp_min.map_or(0, |u| u.0);
        let free = leaves(task, |attr| attr.uclamp_min.is_some() || attr.uclamp_max.is_some());
        (least <= to && to < has && free).then(|| to.to_string())
    }
}

/// `by` steps nicer than it is.
fn nice(by: i64) -> impl Fn(&TaskSpec) -> Option<String> {
    move |task| {
        let has = i64::from(task.attr.nice.unwrap_or(0));
        let to = (has + by).clamp(-20, 19);
        let free = leaves(task, |attr| attr.nice.is_some() || attr.policy.is_some());
        (is_fair(task) && to != has && free).then(|| to.to_string())
    }
}

fn cpus(list: &[u32]) -> impl Fn(&TaskSpec) -> Option<String> {
    move |task| {
        let free = task.attr.cpus.is_none() && leaves(task, |attr| attr.cpus.is_some());
        free.then(|| format!("{list:?}").replace(' ', ""))
    }
}

/// The CPUs of the capacity for which `fits` holds; none where that is all of them.
fn of_capacity(p: &Platform, fits: impl Fn(u64) -> bool) -> Vec<u32> {
    let domains = p.domains.iter().filter(|d| fits(d.capacity.0));
    let mut list: Vec<u32> = domains.flat_map(|d| d.cpus.iter().map(|cpu| cpu.0)).collect();
    list.sort_unstable();
    if list.len() == p.nr_cpus() { Vec::new() } else { list }
}

fn capacities(p: &Platform) -> (u64, u64) {
    let all = || p.domains.iter().map(|d| d.capacity.0);
    (all().min().unwrap_or(0), all().max().unwrap_or(0))
}

fn of_own(e: &Experiment, tasks: &[Named<'_>]) -> Vec<Steps> {
    let (small, big) = capacities(&e.platform);
    let mut all: Vec<Steps> = Vec::new();
    if clamps_act(e) {
        all.extend([256, 512, 768, 1024].map(|to| each(tasks, "util_min", util_min(to))));
    }
    all.extend([-5, -10].map(|by| each(tasks, "priority", nice(by))));
    let mut lists =
        vec![of_capacity(&e.platform, |c| c == big), of_capacity(&e.platform, |c| c > small)];
    lists.dedup();
    lists.retain(|list| !list.is_empty() && list.len() <= FEW_CPUS);
    all.extend(lists.iter().map(|list| each(tasks, "cpus", cpus(list))));
    if has_slices(e) {
        all.extend(slices(tasks));
    }
    all
}

/// Changes to shorter slices, in µs: earlier deadlines.
fn slices(tasks: &[Named<'_>]) -> Vec<Steps> {
    let slice = |us: u64| {
        move |task: &TaskSpec| {
            let has = match task.attr.policy.unwrap_or_default() {
                Policy::Other { slice } | Policy::Batch { slice } => slice.map(|s| s.0 / 1000),
                _ => return None,
            };
            let free = leaves(task, |attr| attr.policy.is_some());
            (has != Some(us) && free).then(|| us.to_string())
        }
    };
    [300, 1000].map(|us| each(tasks, "dl-runtime", slice(us))).into()
}

fn of_others(e: &Experiment, tasks: &[Named<'_>]) -> Vec<Steps> {
    let (small, big) = capacities(&e.platform);
    let mut all: Vec<Steps> = Vec::new();
    if clamps_act(e) {
        all.extend([256, 512].map(|to| each(tasks, "util_max", util_max(to))));
    }
    all.extend([5, 10].map(|by| each(tasks, "priority", nice(by))));
    let n = e.platform.nr_cpus();
    let list = match small < big {
        true => of_capacity(&e.platform, |c| c == small),
        false => (0..n.saturating_sub(1) as u32).collect(),
    };
    if !list.is_empty() && n <= FEW_CPUS {
        all.push(each(tasks, "cpus", cpus(&list)));
    }
    all
}

/// The task groups of those whom the metric is about, and of the others.
fn of_groups(e: &Experiment, who: &Who<'_>) -> Vec<Steps> {
    let paths = |tasks: &[Named<'_>]| {
        let paths = tasks.iter().filter_map(|(_, task)| task.attr.taskgroup.clone());
        let mut paths: Vec<String> = paths.filter(|path| !path.is_empty()).collect();
        paths.dedup();
        paths
    };
    let own = paths(&who.own);
    let mut others = paths(&who.others);
    others.retain(|path| !own.contains(path));
    let step =
        |path: &str, key: &str, value: u64| vec![Step::Workload(KeyOf::new(path, key, value))];
    let mut all = Vec::new();
    for path in own {
        all.extend([300, 1000].map(|weight| step(&path, "weight", weight)));
        if clamps_act(e) {
            all.extend([512, 1024].map(|util| step(&path, "uclamp_min", util)));
        }
    }
    for path in others {
        all.extend([30, 10].map(|weight| step(&path, "weight", weight)));
        if clamps_act(e) {
            all.push(step(&path, "uclamp_max", 512));
        }
    }
    // What the file does not name in `taskgroups` cannot be changed there.
    let named = |steps: &Steps| match &steps[0] {
        Step::Workload(change) => e.workload.groups.iter().any(|g| g.path == change.of),
        Step::Setting { .. } => true,
    };
    all.retain(named);
    all
}

/// Settings of the whole system.
fn of_all(e: &Experiment) -> Vec<Steps> {
    let catalogue = risetime_sim::catalogue();
    let setting = |of: &Param, value: Value| {
        let of_it =
            |(group, p): &(&Group, &'static Param)| p.name == of.name && group.in_use(&e.settings);
        let (_, param) = catalogue.params().find(of_it)?;
        (e.settings.get(of) != Some(&value))
            .then(|| vec![Step::Setting { name: of.name.into(), value, home: param.home }])
    };
    let mut all = Vec::new();
    let mut numbers = |of: &Param, values: &[i64]| {
        let there = e.settings.is_set(of);
        let tried = values.iter().filter(|_| there);
        all.extend(tried.filter_map(|n| setting(of, Value::Int(*n))));
    };
    numbers(&RATE_LIMIT_US, &[500, 2000]);
    numbers(&RAMPUP_MULTIPLIER, &[2, 3, 4]);
    if let Some(ns) = e.settings.get(&BASE_SLICE_NS) {
        numbers(&BASE_SLICE_NS, &[(ns / 3).max(100_000)]);
    }
    let (small, big) = capacities(&e.platform);
    if small < big {
        numbers(&SCHED_ENERGY_AWARE, &[0]);
    }
    all.extend(idle_states(e).into_iter().filter_map(|(of, n)| setting(&of, Value::Int(n))));
    for (of, values) in tunables(e) {
        all.extend(values.into_iter().filter_map(|value| setting(&of, value)));
    }
    let decides = hardware_decides(&e.platform, &e.settings) && is_active(&e.platform, &e.settings);
    if decides && governor(e) != governor::PERFORMANCE {
        all.extend(setting(&EPP, Value::Name(governor::PERFORMANCE.into())));
    }
    for name in governors(e) {
        all.extend(setting(&GOVERNOR, Value::Name(name.into())));
    }
    all
}

/// Changes that keep CPUs from idle states that take long to leave: down to the shallowest, by the
/// limit that a program asks for and by the driver's, and with half of what the deepest takes.
fn idle_states(e: &Experiment) -> Vec<(Int, i64)> {
    let states = || e.platform.domains.iter().flat_map(|d| &d.idle);
    let us = |s: &risetime_model::platform::IdleState| (s.longest_wakeup().0 / 1000) as i64;
    let deepest = states().map(us).max().unwrap_or(0);
    let shallowest = e.platform.domains.iter().filter_map(|d| d.idle.first()).map(us).max();
    let free = ![CPU_DMA_LATENCY, MAX_CSTATE].iter().any(|of| e.settings.is_set(of));
    match shallowest {
        Some(us) if us < deepest && free => {
            vec![(CPU_DMA_LATENCY, us), (CPU_DMA_LATENCY, (deepest / 2).max(us)), (MAX_CSTATE, 1)]
        }
        _ => Vec::new(),
    }
}

/// The governors that a stock kernel has, and that are no older form of another.
fn governors(e: &Experiment) -> Vec<&'static str> {
    let mut all = vec![governor::PERFORMANCE, governor::POWERSAVE];
    // A driver in active mode has these two alone.
    if is_active(&e.platform, &e.settings) {
        return all;
    }
    if governor(e) != SCHEDUTIL {
        all.extend([governor::ONDEMAND, governor::CONSERVATIVE]);
        all.extend(e.policy.kernel.has(features::SCHEDUTIL).then_some(SCHEDUTIL));
    }
    all
}

/// Changes of the tunables of the governor and the tracker in use, the likeliest to help first:
/// sooner, then higher. For a time, shares of its value are tried.
fn tunables(e: &Experiment) -> Vec<(Param, Vec<Value>)> {
    let parts = |of: Int, by: &[i64]| {
        let now = e.settings.get(&of).unwrap_or(0);
        let values = by.iter().map(|by| Value::Int(now / by)).filter(|v| *v != Value::Int(0));
        (of.0, values.collect::<Vec<_>>())
    };
    let numbers = |of: &Param, all: &[i64]| (*of, all.iter().copied().map(Value::Int).collect());
    let mut all = match governor(e) {
        governor::ONDEMAND => vec![
            parts(ondemand::SAMPLING_RATE, &[2, 4]),
            numbers(&ondemand::UP_THRESHOLD, &[80, 60]),
            numbers(&ondemand::SAMPLING_DOWN_FACTOR, &[10]),
        ],
        governor::CONSERVATIVE => vec![
            numbers(&conservative::FREQ_STEP, &[20, 100]),
            numbers(&conservative::UP_THRESHOLD, &[60]),
            parts(conservative::SAMPLING_RATE, &[2]),
        ],
        "interactive" => vec![
            parts(interactive::TIMER_RATE, &[2, 4]),
            numbers(&interactive::TARGET_LOADS, &[70]),
            numbers(&interactive::GO_HISPEED_LOAD, &[80]),
            parts(interactive::MIN_SAMPLE_TIME, &[4]),
        ],
        "schedutil-2016" => vec![parts(schedutil_2016::SAMPLING_RATE, &[4, 16])],
        "schedfreq" => vec![parts(schedfreq::THROTTLE_NSEC, &[4])],
        "sched" => vec![
            parts(schedfreq::UP_THROTTLE_NSEC, &[4]),
            parts(schedfreq::DOWN_THROTTLE_NSEC, &[4]),
        ],
        _ => Vec::new(),
    };
    if e.settings.get(&TRACKER) == Some("walt") {
        all.push(parts(walt::WINDOW, &[2]));
        all.push((walt::STATS.0, vec!["max".into()]));
    }
    all
}
