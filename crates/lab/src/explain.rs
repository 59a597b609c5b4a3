//! Why a burst was slow: the same experiment without each of its causes, and without every set
//! of them.
//!
//! ```text
//! k causes that can act in the experiment ── 2^k simulations, on all cores ──> debt(S)
//!                                         ── risetime_analysis::explain ────> shares
//! ```
//!
//! The same burst in another simulation: of a workload that waits for timers, the one whose t0
//! is nearest; of others, which drift, the one with the same number.

use crate::parallel::parallel;
use risetime_analysis::explain::{CauseShare, Explanation, Subsets};
use risetime_analysis::{Burst, EndedBy, Options, RunResult, TaskResult};
use risetime_kernel::units::{Instant, Span, TaskId};
use risetime_model::workload::Event;
use risetime_model::{Experiment, InputError};
use risetime_sim::Counterfactual;
use risetime_sim::cause::{CAUSES, Cause, Causes, Known};
use risetime_trace::RunError;

/// Explains the reported burst of `task` (`None`: of the workload's first) in a simulation of
/// `experiment`. `progress` hears how many of how many simulations are done.
///
/// Errors: no such task, a task that never ran; the simulator's.
pub fn explain(
    experiment: &Experiment,
    task: Option<&str>,
    mut progress: impl FnMut(usize, usize),
) -> Result<Explanation, RunError> {
    let question = Question::new(experiment, task)?;
    let sets = 1 << question.causes.len();
    let debt_ms = parallel(sets, |n| progress(n, sets), |set| question.debt_without(set))?;
    let subsets = Subsets::new(debt_ms).expect("2^k of them");
    let share = |known: Known| {
        let bit = question.causes.iter().position(|c| *c == known.cause).map(|bit| bit as u32);
        let of = |f: fn(&Subsets, u32) -> f64| bit.map_or(0.0, |bit| f(&subsets, bit));
        CauseShare {
            cause: known.name,
            label: known.label,
            about: known.about,
            acts: bit.is_some(),
            ms: of(Subsets::share),
            gain_ms: of(Subsets::gain),
            alone_ms: of(Subsets::alone),
        }
    };
    let result = &question.result;
    Ok(Explanation {
        policy: result.policy.clone(),
        platform: result.platform.clone(),
        workload: result.workload.clone(),
        settings: result.settings.clone(),
        phase_us: result.phase_us,
        seed: result.seed,
        comm: question.comm.clone(),
        burst: question.burst,
        causes: CAUSES.into_iter().map(share).collect(),
        unexplained_ms: subsets.unexplained(),
        runs: sets as u32,
        notes: result.notes.clone(),
    })
}

/// The burst in question, and what may be its causes.
struct Question<'a> {
    experiment: &'a Experiment,
    result: RunResult,
    task: TaskId,
    comm: String,
    burst: Burst,
    /// Its number.
    index: usize,
    /// The workload waits for timers, so that bursts begin when they begin.
    timed: bool,
    causes: Vec<Cause>,
}

impl<'a> Question<'a> {
    fn new(experiment: &'a Experiment, task: Option<&str>) -> Result<Question<'a>, RunError> {
        let options = Options { all_bursts: true, ..Options::default() };
        let result = crate::run(&Counterfactual::default(), experiment, options, None)?.result;
        let found = match task {
            Some(name) => result.tasks.iter().find(|t| t.comm == name),
            None => result.tasks.first(),
        };
        let Some((t, burst)) = found.and_then(|t| Some((t, t.burst?))) else {
            return Err(no_such_task(experiment, task));
        };
        let index = t.all_bursts.iter().position(|b| b.t0_ms == burst.t0_ms).unwrap_or(0);
        let events = experiment.workload.tasks.iter().flat_map(|t| &t.phases);
        let timed =
            events.flat_map(|p| &p.events).any(|event| matches!(event, Event::Timer { .. }));
        let causes = CAUSES.iter().map(|c| c.cause).filter(|c| c.acts_in(experiment)).collect();
        let (task, comm) = (t.task, t.comm.clone());
        Ok(Question { experiment, task, comm, burst, index, timed, causes, result })
    }

    /// The debt without the causes whose bits are set.
    fn debt_without(&self, set: usize) -> Result<f64, RunError> {
        let absent = self.causes.iter().enumerate().filter(|(bit, _)| set & (1 << bit) != 0);
        let without: Causes = absent.map(|(_, cause)| *cause).collect();
        // What comes after the burst need not be simulated, if it is over by then.
        let took = Span(ns(self.burst.t1_ms).0 - ns(self.burst.t0_ms).0);
        let enough = ns(self.burst.t1_ms) + took + SLACK;
        if enough < self.experiment.duration
            && let Some(burst) = self.same_burst(&self.run(without, enough)?)
            && burst.ended_by != EndedBy::RunEnd
        {
            return Ok(burst.debt_ms);
        }
        let burst = self.same_burst(&self.run(without, self.experiment.duration)?);
        // If it never comes to that burst, nothing is known to be saved.
        Ok(burst.map_or(self.burst.debt_ms, |b| b.debt_ms))
    }

    fn run(&self, without: Causes, duration: Span) -> Result<TaskResult, RunError> {
        let options = Options { all_bursts: true, ..Options::default() };
        let experiment = Experiment { duration, ..self.experiment.clone() };
        let backend = Counterfactual { without, task: self.task };
        let result = crate::run(&backend, &experiment, options, None)?.result;
        let found = result.tasks.into_iter().find(|t| t.task == self.task);
        found.ok_or_else(|| no_such_task(self.experiment, Some(&self.comm)))
    }

    fn same_burst(&self, t: &TaskResult) -> Option<Burst> {
        if !self.timed {
            return t.all_bursts.get(self.index).copied();
        }
        let far = |b: &&Burst| (b.t0_ms - self.burst.t0_ms).abs();
        t.all_bursts.iter().min_by(|a, b| far(a).total_cmp(&far(b))).copied()
    }
}

/// So much longer than the real burst took, a run without some cause may go on at first.
const SLACK: Span = Span::from_ms(20);

/// A result's time in ns, in which it was measured.
fn ns(ms: f64) -> Span {
    Span((ms * 1e6).round() as u64)
}

fn no_such_task(experiment: &Experiment, task: Option<&str>) -> RunError {
    let known: Vec<&str> = experiment.workload.tasks.iter().map(|t| t.comm.as_str()).collect();
    match task {
        Some(name) if !known.contains(&name) => {
            let what = format!("there is no task `{name}`, the workload has {}", known.join(", "));
            InputError::new("--task", what).into()
        }
        _ => {
            let at = Instant(experiment.duration.0).as_ms();
            RunError::Failed(format!("the task has no burst to explain within {at} ms"))
        }
    }
}
