//! Why a burst was slow: the same experiment without each of its causes, and without every set
//! of them.
//!
//! ```text
//! k causes that can act in the experiment ── 2^k simulations, on all cores ──> debt(S)
//!                                         ── risetime_analysis::explain ────> shares
//! ```
//!
//! Which burst of another simulation is this one? That of the same stretch of the task's program
//! ([`risetime_analysis::Stretch`]), so that bursts may merge or split.

use crate::parallel::parallel;
use risetime_analysis::explain::{CauseShare, Explanation, Subsets};
use risetime_analysis::{Burst, EndedBy, Options, RunResult, Stretch, TaskResult};
use risetime_kernel::units::{Instant, Span, TaskId};
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
    let found = parallel(sets, |n| progress(n, sets), |set| question.burst_without(set))?;
    // If it never comes to that burst, nothing is known to be saved.
    let debt = |burst: &Option<Burst>| burst.unwrap_or(question.burst).debt_ms;
    let subsets = Subsets::new(found.iter().map(debt).collect()).expect("2^k of them");
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
        phase: result.phase,
        seed: result.seed,
        comm: question.comm.clone(),
        burst: question.burst,
        causes: CAUSES.into_iter().map(share).collect(),
        unexplained_ms: subsets.unexplained(),
        runs: sets as u32,
        notes: result.notes.iter().cloned().chain(question.notes(&found)).collect(),
    })
}

/// The burst in question, and what may be its causes.
struct Question<'a> {
    experiment: &'a Experiment,
    result: RunResult,
    task: TaskId,
    comm: String,
    burst: Burst,
    /// Where it lies in the task's program.
    stretch: Stretch,
    causes: Vec<Cause>,
}

impl<'a> Question<'a> {
    fn new(experiment: &'a Experiment, task: Option<&str>) -> Result<Question<'a>, RunError> {
        let known = || experiment.workload.tasks.iter().position(|t| Some(&*t.comm) == task);
        let id = match task {
            None => TaskId(experiment.workload.first_created() as u32),
            Some(name) => match known() {
                Some(number) => TaskId(number as u32),
                None => forked(experiment, name)?,
            },
        };
        let backend = Counterfactual { task: Some(id), ..Counterfactual::default() };
        let result = crate::run(&backend, experiment, Options::default(), None)?.result;
        let found = result.tasks.iter().find(|t| t.task == id);
        let Some((t, burst)) = found.and_then(|t| Some((t, t.burst?))) else {
            return Err(no_such_task(experiment, task));
        };
        let (comm, stretch) = (t.comm.clone(), t.stretch);
        let causes = CAUSES.iter().map(|c| c.cause).filter(|c| c.acts_in(experiment)).collect();
        Ok(Question { experiment, task: id, comm, burst, stretch, causes, result })
    }

    /// The burst without the causes whose bits are set; `None`: it never comes to it.
    fn burst_without(&self, set: usize) -> Result<Option<Burst>, RunError> {
        let absent = self.causes.iter().enumerate().filter(|(bit, _)| set & (1 << bit) != 0);
        let without: Causes = absent.map(|(_, cause)| *cause).collect();
        // What comes after the burst need not be simulated, if it is over by then.
        let took = Span(ns(self.burst.t1_ms).0 - ns(self.burst.t0_ms).0);
        let enough = ns(self.burst.t1_ms) + took + SLACK;
        if enough < self.experiment.duration
            && let Some(burst) = self.run(without, enough)?
            && burst.ended_by != EndedBy::RunEnd
        {
            return Ok(Some(burst));
        }
        self.run(without, self.experiment.duration)
    }

    fn run(&self, without: Causes, duration: Span) -> Result<Option<Burst>, RunError> {
        let options = Options { stretch: Some((self.task, self.stretch)), ..Options::default() };
        let experiment = Experiment { duration, ..self.experiment.clone() };
        let backend = Counterfactual { without, task: Some(self.task) };
        let tasks = crate::run(&backend, &experiment, options, None)?.result.tasks;
        // The number of a forked task may be another's, where tasks fork at other times.
        let same = |t: &&TaskResult| t.task == self.task && t.comm == self.comm;
        Ok(tasks.iter().find(same).and_then(|t| t.looked_for))
    }

    /// What a reader should know of simulations in which the burst was not gone through.
    fn notes(&self, found: &[Option<Burst>]) -> Vec<String> {
        let (all, whole) = (found.len(), self.burst.ended_by != EndedBy::RunEnd);
        let missing = found.iter().filter(|b| b.is_none()).count();
        let cut = |b: &&Burst| whole && b.ended_by == EndedBy::RunEnd;
        let cut = found.iter().flatten().filter(cut).count();
        let missing = (missing > 0).then(|| {
            format!(
                "in {missing} of {all} simulations {} never comes to this burst: what is absent there \
                 is taken to save nothing",
                self.comm
            )
        });
        let cut = (cut > 0).then(|| {
            format!(
                "in {cut} of {all} simulations the run ends within this burst: what it loses there is a \
                 lower bound"
            )
        });
        missing.into_iter().chain(cut).collect()
    }
}

/// A run without some cause first goes on for the burst's length and this after the real burst's end.
const SLACK: Span = Span::from_ms(20);

/// A result's time in ns, in which it was measured.
fn ns(ms: f64) -> Span {
    Span((ms * 1e6).round() as u64)
}

/// The number of a task that none but a run knows.
fn forked(experiment: &Experiment, name: &str) -> Result<TaskId, RunError> {
    let backend = Counterfactual::default();
    let tasks = crate::run(&backend, experiment, Options::default(), None)?.result.tasks;
    let found = tasks.iter().find(|t| t.comm == name);
    found.map(|t| t.task).ok_or_else(|| no_such_task(experiment, Some(name)))
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
