//! What could a user change? Many candidates at few start phases, then fewer at more: successive halving.
//!
//! ```text
//! round 1   every candidate      2 phases           half the length, if the metric is the same there
//! round 2   the best of them, and pairs of the best   half the phases
//! round 3   the best of those    all phases
//! ```
//!
//! Who goes on is decided by Pareto rank in (metric, energy): [`ranked`]. Rounds 1 and 2 start elsewhere and with other
//! seeds than round 3: what is reported was not what the candidates were chosen by, or the luckiest would be reported.

mod candidates;

use crate::phases::phase_span;
use crate::{Request, measure};
use candidates::candidates;
use risetime_analysis::advice::{Advice, Gain, Round, Step, Steps, judged, ranked};
use risetime_analysis::metric::Metric;
use risetime_analysis::{Measured, Options, RunResult};
use risetime_kernel::KernelRev;
use risetime_kernel::units::Span;
use risetime_model::{Experiment, InputError};
use risetime_sim::Simulator;
use risetime_trace::{Backend, RunError};

/// So many options at most are run from all phases.
const LAST: usize = 8;
/// The most candidates of the middle round.
const MIDDLE: usize = 24;
/// Of the best so many are combined, two at a time.
const PAIRED: usize = 5;
/// What a task's first activations say something about.
const ENOUGH: u64 = 20;
/// The least simulations that are of any use.
pub const MIN_BUDGET: u32 = 60;

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The experiment as it is, under one policy.
    pub request: Request,
    /// The figure that is to become better; `None`: see [`advise`].
    pub metric: Option<String>,
    /// Of this task or job, where `metric` does not say.
    pub task: Option<String>,
    /// Start phases of the last round.
    pub phases: u32,
    /// At most so many simulations.
    pub budget: u32,
}

/// What a user can change about `wanted`, and what it brings. `progress` hears how many simulations are done.
///
/// The metric, unless it is given: `response_p99` of the first job that the workload declares, else of the first task's;
/// if that has none, its `activation_p99` (20 activations or more), or its `debt` where one burst is most of what it does.
///
/// Errors: the request's; a metric that there is not; the simulator's.
pub fn advise(wanted: &Wanted, mut progress: impl FnMut(usize)) -> Result<Advice, RunError> {
    let base = experiment(&wanted.request, &Vec::new(), None)?;
    let probe = crate::run(&Simulator, &base, Options::default(), None)?.result;
    let metric = metric_of(wanted, &base, &probe)?;
    let (value, unit) = metric.of(&probe)?;
    if value.is_none() {
        let what = format!("`{}` has no value in this run", metric.name);
        return Err(InputError::new("--metric", what).hint("--seconds makes it longer").into());
    }
    let (mut all, left_out) = candidates(&base, &probe, &metric.name);
    // What the kernel would refuse, or the user has said already, is no choice.
    all.retain(|steps| experiment(&wanted.request, steps, None).is_ok());
    let metrics = [metric.clone(), Metric::new("energy")];
    let mut search = Search { wanted, metrics: &metrics, runs: 2, rounds: Vec::new(), done: 2 };

    let plan = Plan::of(wanted.budget, wanted.phases, all.len());
    let untried = all.len() - plan.first.0;
    all.truncate(plan.first.0);
    let length = short_length(&base, &metric, value)?;
    let (_, singles) = search.round(all, plan.first.1, (length, 1), &mut progress)?;
    let best: Vec<Steps> = singles.iter().take(PAIRED).map(|(steps, _)| steps.clone()).collect();
    let mut next = pairs(&best);
    next.retain(|steps| experiment(&wanted.request, steps, None).is_ok());
    next.truncate(plan.middle.0 / 2);
    let singly = singles.into_iter().map(|(steps, _)| steps);
    let mut middle: Vec<Steps> = singly.take(plan.middle.0 - next.len()).collect();
    middle.append(&mut next);
    let (_, ranked) = search.round(middle, plan.middle.1, (base.duration, 2), &mut progress)?;
    let last: Vec<Steps> = ranked.into_iter().take(plan.last).map(|(steps, _)| steps).collect();
    let (base, last) = search.round(last, wanted.phases, (base.duration, 0), &mut progress)?;
    let (tried, unsure) = judged(&metric, &base, last);
    Ok(Advice {
        seed: wanted.request.seed,
        rounds: search.rounds,
        runs: search.runs,
        metric,
        unit,
        base,
        tried,
        untried,
        unsure,
        left_out,
    })
}

/// The baseline and `steps` on another backend, from the same start phases; of a kernel of generation `rev`.
///
/// Errors: the backend's.
pub fn advised_on(
    backend: &dyn Backend,
    rev: Option<KernelRev>,
    (wanted, advice): (&Wanted, &Advice),
    steps: &Steps,
    progress: impl FnMut(usize),
) -> Result<(Measured, Measured), RunError> {
    let both = [
        experiment(&wanted.request, &Vec::new(), Some(rev))?,
        experiment(&wanted.request, steps, Some(rev))?,
    ];
    let metrics = [advice.metric.clone(), Metric::new("energy")];
    let mut both = measure(backend, &both, wanted.phases, &metrics, progress)?.into_iter();
    match (both.next(), both.next()) {
        (Some(base), Some(with)) => Ok((base, with)),
        _ => unreachable!("two experiments give two measurements"),
    }
}

/// The experiment with `steps` taken, for the simulator or (`kernel`) one that is booted.
fn experiment(
    request: &Request,
    steps: &Steps,
    kernel: Option<Option<KernelRev>>,
) -> Result<Experiment, InputError> {
    let mut request = request.clone();
    for step in steps {
        match step {
            Step::Workload(change) => request.vary.push(change.clone()),
            Step::Setting { name, value, .. } => request.set.push((name.clone(), value.clone())),
        }
    }
    let mut all = match kernel {
        None => request.experiments()?,
        Some(rev) => request.experiments_under(rev)?,
    };
    all.pop().ok_or_else(|| InputError::new(&request.workload, "there is nothing to run"))
}

fn metric_of(wanted: &Wanted, e: &Experiment, probe: &RunResult) -> Result<Metric, InputError> {
    let first = || e.workload.tasks[e.workload.first_created()].comm.clone();
    let declared = || {
        let own = |job: &&risetime_model::workload::JobSpec| {
            let comm = job.tasks.first().map(|i| &e.workload.tasks[*i as usize].comm);
            job.tasks.len() > 1 || job.deadline.is_some() || comm != Some(&job.name)
        };
        e.workload.jobs.iter().find(own).map(|job| job.name.clone())
    };
    let named = wanted.task.clone().or_else(|| wanted.metric.is_none().then(declared).flatten());
    let whose = named.unwrap_or_else(first);
    if let Some(name) = &wanted.metric {
        return Ok(Metric::of_task(name, Some(&whose)));
    }
    let job = probe.jobs.iter().find(|job| job.name == whose);
    if job.is_some_and(|job| job.response.is_some()) {
        return Ok(Metric::new(format!("{whose}.response_p99")));
    }
    let ramp =
        probe.tasks.iter().find(|t| t.comm == whose).is_some_and(|t| {
            t.burst.is_some_and(|burst| 2.0 * burst.running_ms > t.whole.running_ms)
        });
    let often = probe.latency.iter().find(|l| l.tasks == whose);
    let often = often.is_some_and(|l| l.activations >= ENOUGH) && !ramp;
    let what = if often { "activation_p99" } else { "debt" };
    Ok(Metric::new(format!("{whose}.{what}")))
}

/// Half the length, if the metric is the same there within a quarter.
fn short_length(base: &Experiment, metric: &Metric, value: Option<f64>) -> Result<Span, RunError> {
    let half = Experiment { duration: Span(base.duration.0 / 2), ..base.clone() };
    let probe = crate::run(&Simulator, &half, Options::default(), None)?.result;
    // A task that is not there yet has no figures.
    let there = metric.of(&probe).ok().and_then(|(value, _)| value);
    let same = there.zip(value).is_some_and(|(a, b)| (a - b).abs() <= 0.25 * b.abs());
    Ok(if same { half.duration } else { base.duration })
}

/// Every two of `best`, the best first, that do not change the same thing.
fn pairs(best: &[Steps]) -> Vec<Steps> {
    let key = |step: &Step| match step {
        Step::Workload(change) => (change.of.clone(), change.key.clone()),
        Step::Setting { name, .. } => (String::new(), name.clone()),
    };
    let places = (0..best.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
    let mut places: Vec<(usize, usize)> = places.collect();
    places.sort_by_key(|(a, b)| a + b);
    let apart = |(a, b): &(usize, usize)| {
        !best[*a].iter().any(|one| best[*b].iter().any(|other| key(one) == key(other)))
    };
    let pair = |(a, b): (usize, usize)| best[a].iter().chain(&best[b]).cloned().collect();
    places.into_iter().filter(apart).map(pair).collect()
}

/// How many candidates each round has: a third of the budget for the last one, a third for the one before, the rest for
/// the first. Each also runs the baseline.
#[derive(Debug, PartialEq)]
struct Plan {
    /// Candidates and phases.
    first: (usize, u32),
    /// Candidates and phases.
    middle: (usize, u32),
    /// Candidates.
    last: usize,
}

impl Plan {
    fn of(budget: u32, phases: u32, candidates: usize) -> Plan {
        let within = |runs: u32, phases: u32| (runs / phases).saturating_sub(1) as usize;
        let left = budget.saturating_sub(2);
        let last = within(left / 3, phases).clamp(1, LAST);
        let half = phases.div_ceil(2).max(2);
        let middle = within(left / 3, half).clamp(1, MIDDLE);
        let used = (last as u32 + 1) * phases + (middle as u32 + 1) * half;
        let first = within(left.saturating_sub(used), 2).clamp(1, candidates.max(1));
        Plan { first: (first.min(candidates), 2), middle: (middle, half), last }
    }
}

/// The rounds so far.
struct Search<'w> {
    wanted: &'w Wanted,
    metrics: &'w [Metric],
    runs: u32,
    done: usize,
    rounds: Vec<Round>,
}

impl Search<'_> {
    /// Runs `candidates` and the baseline from `phases` phases of round `number` (0: the last, which starts where
    /// everybody does): the baseline, and the candidates by rank.
    fn round(
        &mut self,
        candidates: Vec<Steps>,
        phases: u32,
        (length, number): (Span, u32),
        progress: &mut impl FnMut(usize),
    ) -> Result<(Measured, Vec<(Steps, Measured)>), RunError> {
        let request = &self.wanted.request;
        let mut experiments = Vec::with_capacity(candidates.len() + 1);
        for steps in std::iter::once(&Vec::new()).chain(&candidates) {
            let e = experiment(request, steps, None)?;
            let e = Experiment { duration: length, seed: e.seed + u64::from(number), ..e };
            experiments.push(e.later(phase_span(e.platform.tick(), number * self.wanted.phases)));
        }
        let before = self.done;
        let mut heard = |done| progress(before + done);
        let measured = measure(&Simulator, &experiments, phases, self.metrics, &mut heard)?;
        let n = experiments.len() * phases as usize;
        self.done += n;
        self.runs += n as u32;
        let seconds = length.0 as f64 / 1e9;
        self.rounds.push(Round { candidates: candidates.len(), phases, seconds });
        let mut measured = measured.into_iter();
        let Some(base) = measured.next() else { unreachable!("the baseline is run") };
        let all: Vec<(Steps, Measured)> = candidates.into_iter().zip(measured).collect();
        let gains: Vec<Option<Gain>> =
            all.iter().map(|(_, m)| Gain::of(&self.metrics[0], m, &base)).collect();
        let mut places: Vec<Option<(Steps, Measured)>> = all.into_iter().map(Some).collect();
        let order = ranked(&gains);
        let sorted = order.into_iter().filter_map(|i| places[i].take()).collect();
        Ok((base, sorted))
    }
}
