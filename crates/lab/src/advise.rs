//! Search for changes that help: many candidates at few start phases, then fewer at more:
//! successive halving.
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
mod goal;

pub use goal::{Goal, advise_goal};

use crate::phases::phase_span;
use crate::{Request, measure};
use candidates::candidates;
use risetime_analysis::advice::{
    Advice, ENERGY, Gain, Judged, PER_JOB, Round, Step, Steps, judged, ranked,
};
use risetime_analysis::metric::{Metric, Unit};
use risetime_analysis::{Measured, Options, RunResult, Subject};
use risetime_kernel::KernelRev;
use risetime_kernel::units::Span;
use risetime_model::{Experiment, InputError};
use risetime_sim::Simulator;
use risetime_sim::settings::GOVERNOR;
use risetime_trace::{Backend, RunError};

/// Number of options at most that are run from all phases.
const LAST: usize = 8;
/// The most candidates of the middle round.
const MIDDLE: usize = 24;
/// Number of the best that are combined, two at a time.
const PAIRED: usize = 5;
/// The least simulations that are of any use.
pub const MIN_BUDGET: u32 = 60;

/// A request for advice.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The experiment as it is, under one policy.
    pub request: Request,
    /// The figure that is to become better; `None`: see [`advise`].
    pub metric: Option<String>,
    /// Task or job that the figure is of, where `metric` does not say.
    pub task: Option<String>,
    /// Start phases of the last round.
    pub phases: u32,
    /// Number of simulations at most.
    pub budget: u32,
}

/// Searches for what a user can change about `wanted`, and what it brings. `progress` is told how
/// many simulations are done.
///
/// The metric, unless it is given: the figure of what the experiment is about ([`Subject`]).
///
/// Where the metric is 0 as it is, nothing is tried.
///
/// Errors: the request's; a metric that there is not; the simulator's.
pub fn advise(wanted: &Wanted, mut progress: impl FnMut(usize)) -> Result<Advice, RunError> {
    let least = Plan::least(wanted.phases);
    if wanted.budget < least {
        let what = format!("found {}, wanted at least {least} for so many phases", wanted.budget);
        return Err(InputError::new("--budget", what).into());
    }
    let base = experiment(&wanted.request, &Vec::new(), None)?;
    let probe = crate::run(&Simulator, &base, Options::default(), None)?.result;
    let metric = metric_of(wanted, &base);
    let (value, unit) = metric.of(&probe)?;
    if value.is_none() {
        let what = format!("`{}` has no value in this run", metric.name);
        return Err(InputError::new("--metric", what).hint("--seconds makes it longer").into());
    }
    let (mut all, left_out) = candidates(&base, &probe, &metric.name);
    // What the kernel would refuse, or the user has said already, is no choice.
    all.retain(|steps| experiment(&wanted.request, steps, None).is_ok());
    let metrics = metrics(&metric, &probe);
    let mut search = Search { wanted, metrics: &metrics, runs: 1, rounds: Vec::new(), done: 1 };
    if value == Some(0.0) {
        // Changes are shares of what it is.
        let (base, _) =
            search.round(Vec::new(), wanted.phases, (base.duration, 0), &mut progress)?;
        if base.estimate(0).is_some_and(|e| e.median == 0.0) {
            let none = Judged { tried: Vec::new(), unsure: 0, nearest: Vec::new() };
            return Ok(search.found(metric, unit, base, none, (0, left_out)));
        }
        search.rounds.clear();
    }
    search.ran(1);

    let budget = wanted.budget.saturating_sub(search.runs - 2).max(least);
    let plan = Plan::of(budget, wanted.phases, all.len());
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
    let judged = judged(&metric, &base, last);
    Ok(search.found(metric, unit, base, judged, (untried, left_out)))
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
    let metrics: Vec<Metric> = advice.base.metrics.iter().map(|m| m.0.clone()).collect();
    let both = measure(backend, &both, wanted.phases, &metrics, progress)?;
    let mut both = both.into_iter().map(per_job);
    match (both.next(), both.next()) {
        (Some(base), Some(with)) => Ok((base, with)),
        _ => unreachable!("two experiments give two measurements"),
    }
}

/// The metrics that an [`Advice`] measures. Beside a job's figure also the energy of a job: where
/// others are slowed, all CPUs together may take no more although each job does.
fn metrics(metric: &Metric, probe: &RunResult) -> Vec<Metric> {
    let whose = metric.name.rsplit_once('.').map(|(whose, _)| whose);
    let job = probe.jobs.iter().find(|job| Some(job.name.as_str()) == whose);
    let job = job.filter(|job| job.mj_per_job.is_some());
    let of_job = |figure: &str| job.map(|job| Metric::new(format!("{}.{figure}", job.name)));
    let all = [metric.clone(), Metric::new("energy"), Metric::new("work")];
    all.into_iter().chain(of_job("energy")).chain(of_job("done")).collect()
}

/// `measured` with the energy of all CPUs by jobs done, in place of how many are done.
fn per_job(mut measured: Measured) -> Measured {
    let energy = measured.metrics[ENERGY].2.clone();
    if let Some((_, unit, done)) = measured.metrics.get_mut(PER_JOB) {
        *unit = Unit::Energy;
        for (done, mj) in done.iter_mut().zip(energy) {
            *done = done.filter(|n| *n > 0.0).zip(mj).map(|(n, mj)| mj / n);
        }
    }
    measured
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
            Step::Workload(change) => request.changes.push(change.change()),
            Step::Setting { name, value, .. } => {
                // The governor that was named is the one that is there; what else was said stays.
                if *name == GOVERNOR.name {
                    request.unset(name);
                }
                request.set.push((name.clone(), value.clone()));
            }
        }
    }
    let mut all = match kernel {
        None => request.experiments()?,
        Some(rev) => request.experiments_under(rev)?,
    };
    all.pop().ok_or_else(|| InputError::new(&request.workload, "there is nothing to run"))
}

fn metric_of(wanted: &Wanted, e: &Experiment) -> Metric {
    let whose = wanted.task.as_deref();
    let subject = Subject::of(e, whose);
    let Some(name) = &wanted.metric else { return subject.figure() };
    let first = e.workload.tasks.get(e.workload.first_created()).map(|task| task.comm.as_str());
    let of = |whose: Option<&str>| Metric::of_task(name, whose);
    // A job has no bursts, its tasks have.
    let own = Some(of(Some(subject.whose()))).filter(|m| m.check(&e.workload).is_ok());
    own.unwrap_or_else(|| of(whose.or(first)))
}

/// The length of the first rounds' runs: half of the request's, if the metric is the same there
/// within a quarter.
fn short_length(base: &Experiment, metric: &Metric, value: Option<f64>) -> Result<Span, RunError> {
    let half = Experiment { duration: Span(base.duration.0 / 2), ..base.clone() };
    let probe = crate::run(&Simulator, &half, Options::default(), None)?.result;
    // A task that is not there yet has no figures.
    let there = metric.of(&probe).ok().and_then(|(value, _)| value);
    let same = there.zip(value).is_some_and(|(a, b)| (a - b).abs() <= 0.25 * b.abs());
    Ok(if same { half.duration } else { base.duration })
}

/// Lists every two of `best`, the best first, that do not change the same thing.
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

/// Number of candidates of each round: a third of the budget for the last one, a third for the one
/// before, the rest for the first. Each also runs the baseline.
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
    /// The least budget: two looks at the experiment, then a candidate and the baseline in each
    /// round.
    fn least(phases: u32) -> u32 {
        2 + 2 * (2 + phases.div_ceil(2).max(2) + phases)
    }

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
    fn ran(&mut self, n: usize) {
        self.done += n;
        self.runs += n as u32;
    }

    fn found(
        self,
        metric: Metric,
        unit: Unit,
        base: Measured,
        Judged { tried, unsure, nearest }: Judged,
        (untried, left_out): (usize, Vec<&'static str>),
    ) -> Advice {
        Advice {
            seed: self.wanted.request.seed,
            rounds: self.rounds,
            runs: self.runs,
            metric,
            unit,
            base,
            tried,
            untried,
            unsure,
            nearest,
            left_out,
        }
    }

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
        self.ran(n);
        let seconds = length.0 as f64 / 1e9;
        self.rounds.push(Round { candidates: candidates.len(), phases, seconds });
        let mut measured = measured.into_iter().map(per_job);
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

#[cfg(test)]
mod tests {
    use super::*;
    use risetime_analysis::advice::EACH;

    fn wanted(workload: &str, platform: &str) -> Wanted {
        let request = Request { seconds: Some(0.6), ..Request::new(workload, platform) };
        Wanted { request, metric: None, task: None, phases: 6, budget: MIN_BUDGET }
    }

    #[test]
    fn a_plan_keeps_its_budget_and_leaves_something_for_each_round() {
        for phases in [6, 8, 9, 64] {
            for budget in (MIN_BUDGET..1000).step_by(7) {
                for candidates in [0, 1, 30, 200] {
                    let budget = budget.max(Plan::least(phases));
                    let p = Plan::of(budget, phases, candidates);
                    let runs = |n: usize, phases: u32| (n as u32 + 1) * phases;
                    let all = runs(p.first.0, p.first.1) + runs(p.middle.0, p.middle.1);
                    let all = 2 + all + runs(p.last, phases);
                    assert!(all <= budget, "{phases} {budget} {candidates}: {p:?}");
                    assert!(p.first.0 <= candidates && p.middle.0 > 0 && p.last > 0);
                }
            }
        }
        assert_eq!(Plan::of(300, 8, 40), Plan { first: (40, 2), middle: (23, 4), last: LAST });
    }

    #[test]
    fn the_same_question_has_the_same_answer_within_its_budget() {
        let wanted = wanted("periodic", "rpi4");
        let mut heard = Vec::new();
        let first = advise(&wanted, |done| heard.push(done)).expect("it runs");
        let again = advise(&wanted, |_| ()).expect("it runs");
        assert!(first == again);
        assert!(first.runs <= wanted.budget, "{}", first.runs);
        assert_eq!(heard.last(), Some(&(first.runs as usize)));
        assert_eq!(first.metric.name, "frame.response_p99");
        let rounds: Vec<u32> = first.rounds.iter().map(|round| round.phases).collect();
        assert_eq!(rounds, [2, 3, 6]);
        assert!(first.untried > 0, "so small a budget does not suffice for all");
        let best = first.tried.first().expect("a faster CPU is faster");
        assert!(best.metric.median < 0.0 && best.metric.is_sure());
    }

    #[test]
    fn nothing_is_tried_where_the_metric_is_0_and_a_job_has_its_own_energy() {
        let of = |metric: &str| {
            let metric = Some(metric.into());
            advise(&Wanted { metric, ..wanted("periodic", "pixel6") }, |_| ()).expect("it runs")
        };
        let nothing = of("frame.dropped");
        assert_eq!((nothing.runs, nothing.tried.len(), nothing.rounds.len()), (7, 0, 1));
        assert_eq!(nothing.base.estimate(0).map(|e| e.median), Some(0.0));
        let some = of("frame.response_p99");
        let each = some.tried[0].measured.difference(&some.base, EACH).expect("each frame's");
        assert!(each.median != 0.0 && some.base.metrics[EACH].0.name == "frame.energy");
        assert_eq!(of("frame.work").base.metrics.len(), PER_JOB + 1);
        assert_eq!(of("energy").base.metrics.len(), EACH);
    }

    #[test]
    fn what_is_tried_is_what_the_machine_and_its_kernel_have() {
        let asked = |workload: &str, platform: &str, policy: &str, metric: &str| {
            let request = Request {
                policies: vec![policy.into()],
                seconds: Some(0.6),
                ..Request::new(workload, platform)
            };
            let e = experiment(&request, &Vec::new(), None).expect("built in");
            let result = crate::run(&Simulator, &e, Options::default(), None).expect("it runs");
            let (all, left_out) = candidates(&e, &result.result, metric);
            let steps: Vec<String> = all
                .iter()
                .flatten()
                .map(|step| match step {
                    Step::Workload(change) => change.to_string(),
                    Step::Setting { name, value, .. } => format!("{name}={value}"),
                })
                .collect();
            (steps, left_out.len())
        };
        let (steps, _) = asked("phone", "pixel6", "linux-7.2", "ui.activation_p99");
        for step in [
            "ui.util_min=512",
            "ui.priority=-15",
            "ui.cpus=[6,7]",
            "ui.dl-runtime=300",
            "render.util_max=512",
            "render.cpus=[0,1,2,3]",
            "rate_limit_us=500",
            "governor=performance",
            "sched_energy_aware=0",
        ] {
            assert!(steps.iter().any(|s| s == step), "{step} of {steps:?}");
        }
        let (steps, left_out) = asked("phone", "rpi4", "linux-6.1", "ui.activation_p99");
        let has = |part: &str| steps.iter().any(|s| s.contains(part));
        assert!(
            !has("dl-runtime")
                && !has("energy_aware")
                && !has("ui.cpus")
                && has("render.cpus=[0,1,2]")
        );
        assert_eq!(left_out, 2);
        // Of a governor and a tracker what they can be told; no clamps where nobody follows them.
        let all = |policy: &str| asked("periodic", "rpi4", policy, "frame.response_p99").0;
        for (policy, has, has_not) in [
            ("linux-6.12+governor=ondemand", "up_threshold=80", "governor=ondemand"),
            ("linux-6.12+governor=ondemand", "governor=schedutil", "rate_limit_us"),
            ("linux-6.12+governor=conservative", "freq_step=20", "util_min"),
            ("linux-4.4+governor=interactive", "timer_rate=10000", "governor=schedutil"),
            ("linux-4.4-walt", "walt_ravg_window=10000000", "util_min"),
            ("linux-4.4+up_throttle_nsec=8000000", "throttle_nsec=2000000", "walt"),
            ("linux-4.5-schedutil-rfc", "sampling_rate", "governor=schedutil"),
            ("linux-3.15", "sampling_rate=5000", "governor=schedutil"),
            ("linux-4.14", "rate_limit_us=500", "governor=ondemand"),
        ] {
            let steps = all(policy);
            assert!(steps.iter().any(|s| s.contains(has)), "{policy}: {has} of {steps:?}");
            assert!(!steps.iter().any(|s| s.contains(has_not)), "{policy}: {has_not} of {steps:?}");
        }
        let (steps, left_out) = asked("rampup", "m1", "rfc-v1", "rampup.debt");
        assert!(steps.iter().any(|s| s == "rampup_multiplier=4"));
        assert_eq!(left_out, 1);
    }

    /// A governor that was named is the one that is there, not the one that has to stay.
    #[test]
    fn older_governors_are_advised() {
        for policy in
            ["linux-6.12+governor=conservative", "linux-3.15", "linux-4.4+governor=interactive"]
        {
            let mut wanted = wanted("periodic", "rpi4");
            wanted.request.policies = vec![policy.into()];
            wanted.budget = 200;
            let advice = advise(&wanted, |_| ()).expect("it runs");
            let best = advice.tried.first().expect("the highest frequency is faster");
            assert!(best.metric.median < 0.0, "{policy}");
            let homes = advice.tried.iter().flat_map(|t| &t.steps).filter_map(|step| match step {
                Step::Setting { name, home, .. } if *name != GOVERNOR.name => {
                    Some(home.to_string())
                }
                _ => None,
            });
            let governor = advice.base.policy.split('=').nth(1).unwrap_or("ondemand");
            for home in homes {
                assert!(home.contains(governor), "{policy}: {home}");
            }
        }
    }

    #[test]
    fn the_metric_is_a_job_or_what_the_first_task_does() {
        let name = |workload: &str, platform: &str| {
            let wanted = wanted(workload, platform);
            let e = experiment(&wanted.request, &Vec::new(), None).expect("built in");
            let e = Experiment { duration: Span::from_ms(1500), ..e };
            metric_of(&wanted, &e).name
        };
        assert_eq!(name("rampup", "m1"), "rampup.debt");
        assert_eq!(name("phone", "pixel6"), "ui.activation_p99");
        assert_eq!(name("periodic", "rpi4"), "frame.response_p99");
        assert_eq!(name("audio", "chromebook4"), "mixer.activation_p99");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let said = |wanted: Wanted| advise(&wanted, |_| ()).unwrap_err().to_string();
        let of =
            |metric: &str| Wanted { metric: Some(metric.into()), ..wanted("periodic", "rpi4") };
        assert!(said(of("frame.fun")).contains("frame.response_p99"));
        assert!(said(of("makespan")).contains("no value"));
        let many = Wanted { phases: 64, ..wanted("periodic", "rpi4") };
        assert!(said(many).contains("--budget: found 60, wanted at least 198"));
    }
}
