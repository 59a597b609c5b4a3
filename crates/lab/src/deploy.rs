//! A deployment plan tried as its user will run it: the kernel, its admission, its governor, what a real machine adds.
//!
//! ```text
//! policy, settings ──> bounds of the machine ──> plan ──> workload ──┬── beside an ordinary task on each CPU   together, and 4 phases
//!                      (sim::bounds)           (deploy)              ├── alone                                 likewise
//!                                                                    └── those of unknown length without end   where there are some
//! ```
//!
//! Each run is two hyperperiods long (of the tasks and of the kernel's second), at most 10 s. A plan is guaranteed where its proof and all runs say so.

use crate::parallel::parallel;
use crate::phases::phase_span;
use crate::run::run_listing;
use risetime_analysis::{Burst, Lists, Migration, Missed, Options, RunResult};
use risetime_deploy::admit::Scheduler;
use risetime_deploy::machine::{Cpu, Machine};
use risetime_deploy::plan::{Plan, Rules, plan};
use risetime_deploy::promise::{Company, Measured, Miss, Promise, Trial, Tried};
use risetime_deploy::written::workload;
use risetime_deploy::{Fit, written};
use risetime_kernel::features;
use risetime_kernel::units::{CpuId, KHz, Span, TaskId};
use risetime_model::needs::{Needs, What};
use risetime_model::settings::Value;
use risetime_model::settings::keys::governor::PERFORMANCE;
use risetime_model::{Experiment, InputError, Platform, Workload};
use risetime_sim::settings::GOVERNOR;
use risetime_sim::{NOISE, Simulator, bounds};
use risetime_trace::{Backend, RunError};
use std::sync::Arc;

/// Request for a plan.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The kernel: `NAME[+key=value…]`.
    pub policy: String,
    /// Settings beside it.
    pub set: Vec<(String, Value)>,
    /// Schedulers that may run the tasks to be guaranteed, the preferred one first.
    pub schedulers: Vec<Scheduler>,
    /// Choice among the CPUs on which a task fits.
    pub fit: Fit,
    /// Tasks are taken to need so much more than they declare, in %.
    pub margin_percent: u64,
    /// CPUs for the tasks of the file; `None`: all.
    pub cpus: Option<Vec<CpuId>>,
    /// CPUs that they are kept from.
    pub housekeeping: Vec<CpuId>,
    /// Measurements of interference.
    pub interference: Vec<Measured>,
    /// Seed of what is drawn.
    pub seed: u64,
}

impl Asked {
    /// A request for the default policy, EDF or else DM, on all CPUs, without a margin beside the
    /// plan's own.
    pub fn new() -> Asked {
        Asked {
            policy: "mainline".into(),
            set: Vec::new(),
            schedulers: vec![Scheduler::Edf, Scheduler::Dm],
            fit: Fit::Worst,
            margin_percent: 0,
            cpus: None,
            housekeeping: Vec::new(),
            interference: Vec::new(),
            seed: 1,
        }
    }
}

impl Default for Asked {
    fn default() -> Asked {
        Asked::new()
    }
}

/// The longest run, from the first jobs on.
const LONGEST: Span = Span::from_ms(10_000);
/// `sched_rt_period_us`, the fair servers' period.
const KERNEL: Span = Span::from_ms(1000);
/// Start phases behind the one in which first jobs come together.
const PHASES: u64 = 4;

/// The best of the plans for `needs` on `platform` that there are with the schedulers that are asked for. `progress` hears how many runs of how many are done.
///
/// Errors: a policy, a setting or a CPU that does not exist.
pub fn plan_tried(
    needs: &Needs,
    platform: &Arc<Platform>,
    asked: &Asked,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Tried, RunError> {
    let mut best: Option<Tried> = None;
    for scheduler in &asked.schedulers {
        let tried = one(needs, platform, asked, *scheduler, progress)?;
        if best.as_ref().is_none_or(|b| tried.rank() < b.rank()) {
            best = Some(tried);
        }
        if best.as_ref().is_some_and(Tried::guaranteed) {
            break;
        }
    }
    Ok(best.unwrap_or_else(|| Tried {
        rules: Rules { scheduler: Scheduler::Edf, fit: asked.fit, margin_percent: 0 },
        plan: Err(Vec::new()),
        promise: None,
        instead: Vec::new(),
        assumes: Vec::new(),
    }))
}

/// Tries what would make a plan that is not guaranteed one that is: other governors, kernels,
/// schedulers, as far as trying them tells.
///
/// Errors: as [`plan_tried`]'s.
pub fn instead(
    needs: &Needs,
    platform: &Arc<Platform>,
    asked: &Asked,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<String>, RunError> {
    let mut found = Vec::new();
    let own = crate::names::policy(&asked.policy, &asked.set)?;
    let mut attempt =
        |what: String, other: Asked, found: &mut Vec<String>| -> Result<(), RunError> {
            if plan_tried(needs, platform, &other, progress)?.guaranteed() {
                found.push(what);
            }
            Ok(())
        };
    let fast = |asked: &Asked| {
        let mut set = asked.set.clone();
        set.retain(|(key, _)| key != GOVERNOR.name);
        set.push((GOVERNOR.name.into(), PERFORMANCE.into()));
        Asked { set, ..asked.clone() }
    };
    let settled = own.said(&GOVERNOR) == Some(&PERFORMANCE.into());
    if !settled {
        attempt("--set governor=performance".into(), fast(asked), &mut found)?;
    }
    if found.is_empty() && asked.schedulers.len() == 1 {
        let all = Asked { schedulers: Asked::new().schedulers, ..asked.clone() };
        attempt("--scheduler auto".into(), all.clone(), &mut found)?;
        if found.is_empty() && !settled {
            attempt("--scheduler auto --set governor=performance".into(), fast(&all), &mut found)?;
        }
    }
    let newest = risetime_kernel::KernelRev::NEWEST;
    if found.is_empty() && !own.kernel.has(features::RT_RUNTIME_WHOLE) && asked.policy != "mainline"
    {
        let newer = Asked { policy: format!("linux-{newest}"), ..fast(asked) };
        attempt(format!("--policy linux-{newest} --set governor=performance"), newer, &mut found)?;
    }
    Ok(found)
}

/// `needs` on `platform` under one scheduler.
fn one(
    needs: &Needs,
    platform: &Arc<Platform>,
    asked: &Asked,
    scheduler: Scheduler,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Tried, RunError> {
    let of_nothing = Arc::new(Workload::parse("{\"tasks\": {\"none\": {\"run\": 1}}}", "plan")?);
    let e = experiment(platform, of_nothing, asked)?;
    let machine = machine(&e, asked)?;
    let rules = Rules { scheduler, fit: asked.fit, margin_percent: asked.margin_percent };
    let plan = plan(needs, platform, &machine, rules);
    let wanted = |p: &&Plan| p.tasks.iter().any(|t| t.wanted);
    let promise = match plan.as_ref().ok().filter(wanted) {
        Some(plan) => Some(promise(needs, platform, plan, asked, &e, progress)?),
        None => None,
    };
    let mut assumes = assumes(&machine, asked);
    if let Ok(plan) = &plan {
        assumes.extend(assumed_of(plan));
    }
    Ok(Tried { rules, plan, promise, instead: Vec::new(), assumes })
}

/// The assumptions about tasks of unknown length that a plan trusts.
fn assumed_of(plan: &Plan) -> Vec<String> {
    let names = |cpu: CpuId| {
        let own = plan.tasks.iter().filter(|t| t.cpu == cpu && !t.wanted);
        own.map(|t| t.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let trusted = plan.trusting.iter().map(|cpu| {
        format!(
            "{} on {cpu} leaves ordinary tasks 5 % of each second: how long it runs is not known (a CPU of its own, by --cpus or a larger machine, needs no such thing)",
            names(*cpu)
        )
    });
    trusted.collect()
}

/// The assumptions of a proof about the machine.
fn assumes(m: &Machine, asked: &Asked) -> Vec<String> {
    let us = |span: Span| format!("{:.1}", span.0 as f64 / 1000.0);
    let mut all = vec![
        "no task runs longer than it declares, and they share nothing but the CPU; no caps by heat, no firmware that takes the CPU".into(),
        format!(
            "at most: timers {} µs late, a switch {} µs, an interrupt {} µs, one each {} µs and at each release",
            us(m.timer),
            us(m.switch),
            us(m.interrupt),
            us(m.tick)
        ),
    ];
    for i in &asked.interference {
        all.push(match i.tool.as_str() {
            "timerlat" => format!("{}: timers up to {} µs late (timerlat)", i.file, us(i.longest)),
            _ => format!(
                "{}: up to {} µs at once, {} µs in each second (osnoise)",
                i.file,
                us(i.longest),
                us(i.each_second)
            ),
        });
    }
    let varies = || m.cpus.iter().filter(|c| c.usable && c.speeds.len() > 1);
    if varies().any(|c| !c.follows_deadlines) {
        all.push("of frequencies that may change no more than the lowest of each policy".into());
    }
    if let Some(change) = varies().filter(|c| c.follows_deadlines).map(|c| c.change).max() {
        all.push(format!(
            "a frequency is there {} µs after the governor wants it, at most",
            us(change)
        ));
    }
    if let Some((runtime, period)) = m.fair_server {
        all.push(format!(
            "ordinary tasks that starve get {} of {} ms of each CPU (fair server)",
            runtime.0 / 1_000_000,
            period.0 / 1_000_000
        ));
    }
    all
}

/// The experiment that tries a plan: `workload` as the simulator runs it.
fn experiment(
    platform: &Arc<Platform>,
    workload: Arc<Workload>,
    asked: &Asked,
) -> Result<Experiment, InputError> {
    let policy = crate::names::policy(&asked.policy, &asked.set)?;
    let policy = match policy.said(&NOISE).is_some() {
        true => policy,
        false => policy.set_for_all(NOISE.name, Value::Name("machine".into())),
    };
    let settings = risetime_sim::resolve(platform, &policy)?;
    Ok(Experiment {
        platform: Arc::clone(platform),
        workload,
        policy,
        settings,
        duration: LONGEST,
        phase: Span(0),
        seed: asked.seed,
    })
}

/// The machine of an experiment as the analysis has it.
///
/// Errors: a CPU that the platform has not; none left.
fn machine(e: &Experiment, asked: &Asked) -> Result<Machine, InputError> {
    let p = &e.platform;
    let known =
        |option: &str, cpus: &[CpuId]| match cpus.iter().find(|c| p.domain_of(**c).is_none()) {
            Some(cpu) => Err(InputError::new(option, format!("there is no {cpu} on {}", p.name))),
            None => Ok(()),
        };
    known("--cpus", asked.cpus.as_deref().unwrap_or_default())?;
    known("--housekeeping", &asked.housekeeping)?;
    let usable = |cpu: &CpuId| {
        asked.cpus.as_ref().is_none_or(|c| c.contains(cpu)) && !asked.housekeeping.contains(cpu)
    };
    if !p.cpus().any(|cpu| usable(&cpu)) {
        return Err(InputError::new("--housekeeping", "no CPU is left to the tasks of the file"));
    }
    let b = bounds::bounds(e);
    let cpu = |id: CpuId| {
        let domain = p.domain_of(id)?;
        let (d, s) = (&p.domains[domain], &b.domains[domain]);
        Some(Cpu {
            id,
            domain,
            capacity: d.capacity,
            speeds: s.speeds.clone(),
            change: s.change,
            follows_deadlines: s.follows_deadlines,
            invariant: s.invariant,
            kthread: s.kthread,
            idle: d.idle.iter().map(|i| (i.min_residency, i.longest_wakeup())).collect(),
            usable: usable(&id),
        })
    };
    let of = |tool: &'static str| asked.interference.iter().filter(move |i| i.tool == tool);
    let late = of("timerlat").map(|i| i.longest).max().unwrap_or_default();
    let noise = |of_one: fn(&Measured) -> Span| of("osnoise").map(of_one).max().unwrap_or_default();
    Ok(Machine {
        max_bw: b.max_bw,
        fair_server: b.fair_server,
        rt_limit: b.rt_limit,
        timer: b.timer.max(late),
        switch: b.switch,
        interrupt: b.interrupt,
        tick: b.tick,
        noise: (noise(|i| i.longest), noise(|i| i.each_second)),
        cpus: p.cpus().filter_map(cpu).collect(),
    })
}

/// The length of a trial: two hyperperiods of what is to be guaranteed and of the kernel's own
/// second, in which it throttles and serves; at most [`LONGEST`].
fn length(needs: &Needs) -> Span {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let mut all = KERNEL.0;
    for task in &needs.tasks {
        let (What::Job { period, .. } | What::Share { period, .. }) = task.what else { continue };
        let whole = (all / gcd(all, period.0).max(1)).checked_mul(period.0);
        all = whole.unwrap_or(u64::MAX).min(LONGEST.0);
    }
    Span(all.saturating_mul(2).min(LONGEST.0))
}

fn promise(
    needs: &Needs,
    platform: &Arc<Platform>,
    plan: &Plan,
    asked: &Asked,
    e: &Experiment,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Promise, RunError> {
    let length = length(needs);
    let unknown = plan.tasks.iter().any(|t| !t.wanted && !plan.trusting.contains(&t.cpu));
    let mut runs: Vec<(Company, u64)> = Vec::new();
    for company in [Company::Busy, Company::Alone] {
        runs.extend((0..=PHASES).map(|k| (company, k)));
    }
    if unknown {
        runs.extend((0..2).map(|k| (Company::Crowded, k)));
    }
    let one = |i: usize| {
        let (company, phase) = runs[i];
        trial(&Simulator, needs, platform, plan, asked, Attempt { company, phase, length })
    };
    let n = runs.len();
    let done = parallel(n, |done| progress(done, n), one)?;
    let mut trials: Vec<Trial> = Vec::new();
    for trial in done {
        match trials.iter_mut().find(|t| t.company == trial.company) {
            Some(all) => add(all, trial),
            None => trials.push(trial),
        }
    }
    Ok(Promise {
        policy: e.policy.name.split('+').next().unwrap_or_default().to_string(),
        governor: e.settings.get(&GOVERNOR).unwrap_or_default().to_string(),
        set: asked.set.iter().map(|(key, value)| format!("{key}={value}")).collect(),
        length,
        trials,
    })
}

/// The runs of one company together.
fn add(all: &mut Trial, one: Trial) {
    all.runs += one.runs;
    (all.due, all.missed) = (all.due + one.due, all.missed + one.missed);
    all.first = all.first.take().or(one.first);
    all.refused = all.refused.take().or(one.refused);
    all.least = match (all.least.take(), one.least) {
        (Some(a), Some(b)) => Some(if b.1 < a.1 { b } else { a }),
        (a, b) => a.or(b),
    };
    let new: Vec<String> = one.late.into_iter().filter(|t| !all.late.contains(t)).collect();
    all.late.extend(new);
}

/// Setup of one trial of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// Beside whom.
    pub company: Company,
    /// Start phase; 0: first jobs come together.
    pub phase: u64,
    /// Length from the first jobs on.
    pub length: Span,
}

/// Runs a plan once.
///
/// Errors: the backend's, but for a reservation that it refuses.
pub fn trial(
    backend: &dyn Backend,
    needs: &Needs,
    platform: &Arc<Platform>,
    plan: &Plan,
    asked: &Asked,
    attempt: Attempt,
) -> Result<Trial, RunError> {
    let Attempt { company, phase: k, length } = attempt;
    let spread = (k > 0).then_some(k);
    let text = workload(needs, plan, company, spread, &needs.name);
    let parsed = Arc::new(Workload::parse(&text, "plan")?.bind(platform)?);
    let asked = Asked { set: set_of(plan, asked), ..asked.clone() };
    let mut e = experiment(platform, parsed, &asked)?;
    e.duration = written::begun(needs) + length;
    let e = e.later(phase_span(platform.tick(), k as u32));
    let mut lists = FirstMiss { wanted: wanted(plan), first: None };
    let mut trial = Trial {
        company,
        runs: 1,
        due: 0,
        missed: 0,
        first: None,
        least: None,
        refused: None,
        late: Vec::new(),
    };
    match run_listing(backend, &e, Options::default(), Some(&mut lists)) {
        Ok(run) => count(&mut trial, plan, &run.result),
        Err(RunError::Input(e)) => trial.refused = Some(e.what.clone()),
        Err(e) => return Err(e),
    }
    trial.first = lists.first;
    Ok(trial)
}

/// The settings that a plan is run with: those asked for, and the floors of frequency that it
/// needs.
pub fn set_of(plan: &Plan, asked: &Asked) -> Vec<(String, Value)> {
    let floor = |(cpu, freq): &(CpuId, KHz)| {
        (format!("scaling_min_freq.policy{}", cpu.0), Value::Int(freq.0 as i64))
    };
    let floors: Vec<(String, Value)> = plan.floors.iter().map(floor).collect();
    let others = asked.set.iter().filter(|(key, _)| floors.iter().all(|(own, _)| own != key));
    others.cloned().chain(floors.clone()).collect()
}

fn wanted(plan: &Plan) -> Vec<String> {
    plan.tasks.iter().filter(|t| t.wanted).map(|t| t.name.clone()).collect()
}

fn count(trial: &mut Trial, plan: &Plan, result: &RunResult) {
    for task in plan.tasks.iter().filter(|t| t.wanted) {
        let Some(job) = result.jobs.iter().find(|j| j.name == task.name) else { continue };
        let missed = job.late + job.merged + job.dropped + job.overdue;
        (trial.due, trial.missed) = (trial.due + job.due, trial.missed + missed);
        if missed > 0 {
            trial.late.push(task.name.clone());
            continue;
        }
        let slack = job.latest.as_ref().map(|l| -l.lateness_ms);
        if let Some(slack) =
            slack.filter(|s| trial.least.as_ref().is_none_or(|(_, least)| s < least))
        {
            trial.least = Some((task.name.clone(), slack));
        }
    }
}

/// Hears of the first missed job of a run.
struct FirstMiss {
    wanted: Vec<String>,
    first: Option<Miss>,
}

impl Lists for FirstMiss {
    fn burst(&mut self, _: TaskId, _: &str, _: &Burst) {}
    fn migration(&mut self, _: TaskId, _: &str, _: &Migration) {}
    fn missed(&mut self, job: &str, missed: &Missed) {
        let due_ms = missed.due_ms.unwrap_or(missed.over_ms);
        let earlier = self.first.as_ref().is_none_or(|first| due_ms < first.due_ms);
        if earlier && self.wanted.iter().any(|w| w == job) {
            self.first = Some(Miss { task: job.to_string(), due_ms, late_ms: missed.lateness_ms });
        }
    }
}
