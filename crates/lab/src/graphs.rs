//! Graphs on CPUs and devices, tried as their user will run them, in a bounded time.
//!
//! ```text
//! graphs, platform ──> programs, one for each CPU that may ask devices ──> solver ──> deployment ──> runs: none late? ── yes ─> it
//!                        ^  real-time tasks first, where none is found else                              │ no
//!                        └────────────── budgets of 5 % more, unless they were asked for ────────────────┘
//! ```
//!
//! Runs: the kernel named, at the deployment's frequencies, with the noise of a real machine; alone and beside an ordinary task on each
//! CPU; from five start phases; two hyperperiods each, 1 to 10 s.

use crate::parallel::parallel;
use crate::phases::phase_span;
use crate::run::run;
use risetime_analysis::Options as Analysis;
use risetime_deploy::optimise::{
    Effort, Ended, Found, Objective, Options, Problem, Ran, Rounds, Runs, beside,
};
use risetime_kernel::units::Span;
use risetime_model::settings::Value;
use risetime_model::settings::keys::governor::PERFORMANCE;
use risetime_model::{Dags, Experiment, Platform, Workload};
use risetime_sim::settings::GOVERNOR;
use risetime_sim::{NOISE, Simulator};
use risetime_trace::RunError;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Solves one of several problems within an effort.
type Solver<'a, E> = &'a mut dyn FnMut(&[Problem], Objective, Effort<'_>) -> Result<Answer, E>;

/// A request to optimise graphs.
#[derive(Clone, Debug)]
pub struct Graphs {
    /// The objective.
    pub objective: Objective,
    /// Budgets are so many % of what nodes take at most; `None`: 105, or the first of more with which none is late.
    pub factor_percent: Option<u64>,
    /// Whether real-time tasks come before deadlines; `None`: where nothing is found else.
    pub real_time_first: Option<bool>,
    /// The kernel: `NAME[+key=value…]`.
    pub policy: String,
    /// Time that it may take in all.
    pub within: Duration,
}

/// Answer of a solver on some programs.
pub struct Answer {
    /// The best deployment, and of which program it is.
    pub found: Option<(usize, Found)>,
    /// Ending of the search.
    pub ended: Ended,
    /// Linear programs that it took.
    pub programs: Option<Rounds>,
}

/// A deployment, or none, and what is known of it.
pub struct Optimised {
    /// The program whose answer it is; one of them, where there is none.
    pub problem: Problem,
    /// The deployment found.
    pub found: Option<Found>,
    /// Ending of the search for it.
    pub ended: Ended,
    /// Linear programs that it took.
    pub programs: Option<Rounds>,
    /// Outcome of the deployment as it runs.
    pub ran: Option<Ran>,
    /// Outcomes of those with smaller budgets, by their factor in %.
    pub before: Vec<(u64, Ran)>,
}

/// Factors that are tried one after the other unless one is asked for.
const FACTORS: [u64; 7] = [105, 110, 115, 120, 130, 140, 150];
/// Part of the time, in %, that is for the search; the rest is for the runs.
const SEARCH: u32 = 50;
/// A search takes a core of an ordinary machine about so many of its steps in each second.
const STEPS_A_SECOND: u64 = 500_000_000;
/// The shortest run.
const SHORTEST: Span = Span::from_ms(1_000);
/// The longest run, from the first activations on.
const LONGEST: Span = Span::from_ms(10_000);
/// Start phases.
const PHASES: usize = 5;

/// The best deployment that `solver` finds and that keeps its deadlines as it runs. `stop`: somebody waits for it no longer; `progress` hears what is
/// done.
///
/// Errors: the platform lacks a CPU or its power; a policy that does not exist; the solver's.
pub fn optimised<E: From<RunError>>(
    dags: &Dags,
    platform: &Arc<Platform>,
    asked: &Graphs,
    solver: Solver<'_, E>,
    stop: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(&str),
) -> Result<Optimised, E> {
    let begun = Instant::now();
    let factors = match asked.factor_percent {
        Some(factor) => vec![factor],
        None => FACTORS.to_vec(),
    };
    let mut before = Vec::new();
    let mut last: Option<Optimised> = None;
    for (tries, factor) in factors.into_iter().enumerate() {
        let options = Options { factor_permille: 10 * factor };
        let problem = Problem::new(dags, platform, options).map_err(RunError::Input)?;
        // Later tries share what is left.
        let part = if tries == 0 { SEARCH } else { SEARCH / 2 };
        let until = begun.elapsed() + asked.within.saturating_sub(begun.elapsed()) * part / 100;
        let over = || stop() || begun.elapsed() >= until;
        let whole = asked.within * part / 100;
        let steps = (STEPS_A_SECOND as f64 * whole.as_secs_f64()) as u64;
        progress(&format!("budgets of {factor} %"));
        let (problem, answer) = searched(&problem, asked, solver, Effort { steps, stop: &over })?;
        let Answer { found, ended, programs } = answer;
        let Some((_, found)) = found else {
            // More is not found with larger budgets.
            return Ok(last.unwrap_or(Optimised {
                problem,
                found: None,
                ended,
                programs,
                ran: None,
                before,
            }));
        };
        let ran = ran(&problem, &found, platform, &asked.policy, progress)?;
        let kept = ran.kept();
        let now = Optimised {
            problem,
            found: Some(found),
            ended,
            programs,
            ran: Some(ran.clone()),
            before: before.clone(),
        };
        if kept || stop() || begun.elapsed() >= asked.within {
            return Ok(now);
        }
        before.push((factor, ran));
        last = Some(now);
    }
    let none = || E::from(RunError::Failed("no factor was tried".into()));
    last.ok_or_else(none)
}

/// Solves the programs that there are for `problem`, that of a stock kernel first, until one has an
/// answer.
fn searched<E>(
    problem: &Problem,
    asked: &Graphs,
    solver: Solver<'_, E>,
    effort: Effort<'_>,
) -> Result<(Problem, Answer), E> {
    let orders: &[bool] = match asked.real_time_first {
        Some(true) => &[true],
        Some(false) => &[false],
        None => &[false, true],
    };
    let mut none = None;
    for first in orders {
        let ways = problem.with_helpers(*first);
        let answer = solver(&ways, asked.objective, effort)?;
        if let Some((way, _)) = &answer.found {
            return Ok((ways[*way].clone(), answer));
        }
        let ended = none.map_or(answer.ended, |was: Ended| was.max(answer.ended));
        none = Some(ended);
        if ways.len() == 1 {
            break;
        }
    }
    let ended = none.unwrap_or(Ended::Whole);
    Ok((problem.clone(), Answer { found: None, ended, programs: None }))
}

/// `found` as its user will run it.
fn ran(
    p: &Problem,
    found: &Found,
    platform: &Arc<Platform>,
    policy: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<Ran, RunError> {
    let d = &found.deployment;
    let mut set = vec![(GOVERNOR.name.to_string(), PERFORMANCE.into())];
    for (domain, opp) in platform.domains.iter().zip(&d.config.opp) {
        let khz = domain.opps[*opp].freq.0 as i64;
        set.push((format!("scaling_max_freq.policy{}", domain.cpus[0].0), Value::Int(khz)));
    }
    if p.real_time_first(d) {
        set.push(("class_order".into(), Value::Name("rt-dl".into())));
    }
    let policy = crate::names::policy(policy, &set)?;
    let policy = match policy.said(&NOISE).is_some() {
        true => policy,
        false => policy.set_for_all(NOISE.name, Value::Name("machine".into())),
    };
    let settings = risetime_sim::resolve(platform, &policy)?;
    let length = length(p);
    let experiment = |busy: bool| -> Result<Experiment, RunError> {
        let text = beside(p, d, Runs::Longest, busy);
        let workload = Arc::new(Workload::parse(&text, &p.name)?.bind(platform)?);
        Ok(Experiment {
            platform: Arc::clone(platform),
            workload,
            policy: policy.clone(),
            settings: settings.clone(),
            duration: length,
            phase: Span(0),
            seed: 1,
        })
    };
    let both = [experiment(true)?, experiment(false)?];
    let runs = both.len() * PHASES;
    let one = |i: usize| {
        let e = both[i / PHASES].later(phase_span(platform.tick(), (i % PHASES) as u32));
        match run(&Simulator, &e, Analysis::default(), None) {
            Ok(run) => Ok(Ok(run.result.jobs)),
            Err(RunError::Input(e)) => Ok(Err(e.what)),
            Err(e) => Err(e),
        }
    };
    let done = parallel(runs, |done| progress(&format!("{done} of {runs} runs")), one)?;
    let name = policy.name.split('+').next().unwrap_or_default().to_string();
    let mut all = Ran {
        policy: name,
        length,
        runs: runs as u32,
        due: 0,
        missed: 0,
        late: None,
        least: None,
        refused: None,
    };
    for jobs in done {
        match jobs {
            Err(what) => all.refused = all.refused.or(Some(what)),
            Ok(jobs) => jobs.iter().for_each(|job| count(&mut all, p, job)),
        }
    }
    Ok(all)
}

fn count(all: &mut Ran, p: &Problem, job: &risetime_analysis::Jobs) {
    if !p.graphs.iter().any(|g| g.name == job.name) {
        return;
    }
    all.due += job.due;
    all.missed += job.missed();
    let Some(lateness) = job.latest.as_ref().map(|l| l.lateness_ms) else { return };
    let latest = all.late.as_ref().map_or(0.0, |(_, ms)| *ms);
    if lateness > latest {
        all.late = Some((job.name.clone(), lateness));
    }
    let least = all.least.as_ref().map_or(f64::INFINITY, |(_, ms)| *ms);
    if -lateness < least {
        all.least = Some((job.name.clone(), -lateness));
    }
}

/// The length of a trial: two hyperperiods, a second at least, at most [`LONGEST`].
fn length(p: &Problem) -> Span {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let longest_us = LONGEST.0 / 1000;
    let all = p.graphs.iter().fold(1u64, |all, g| {
        let whole = (all / gcd(all, g.period_us).max(1)).saturating_mul(g.period_us);
        whole.min(longest_us)
    });
    Span::from_us(all.saturating_mul(2).clamp(SHORTEST.0 / 1000, longest_us))
}
