//! Explanations of why a burst was slow: the same experiment without each of its causes, and
//! without every set of them.
//!
//! ```text
//! k causes that can act in the experiment ── 2^k simulations, on all cores ──> debt(S)
//!                                         ── risetime_analysis::explain ────> shares
//! ```
//!
//! Where 2^k whole runs are more than the budget of simulated time, sets are drawn, and shares have an error.
//!
//! Which burst of another simulation is this one? That of the same stretch of the task's program
//! ([`risetime_analysis::Stretch`]), so that bursts may merge or split.

use crate::parallel::parallel;
use risetime_analysis::caution::{Figure, cautions};
use risetime_analysis::explain::{About, CauseShare, Debts, Explanation, Over, Subsets};
use risetime_analysis::{
    Burst, EndedBy, Options, Piece, Pieces, RunResult, Stretch, TaskResult, group_name,
};
use risetime_kernel::units::{Instant, Span, TaskId};
use risetime_model::workload::{JobSpec, Policy};
use risetime_model::{Experiment, InputError};
use risetime_sim::Counterfactual;
use risetime_sim::cause::{CAUSES, Cause, Causes, Known};
use risetime_trace::RunError;
use std::collections::BTreeMap;

/// A request for an explanation, and its budget.
#[derive(Clone, Copy, Debug)]
pub struct Why<'a> {
    /// The task, without its number the first of its instances, or of [`Why::over`] a job's name; `None`: the workload's
    /// first task.
    pub task: Option<&'a str>,
    /// Choice of activations or jobs; `None`: the reported burst.
    pub over: Option<Over>,
    /// Time that may be simulated; what each cause alone saves is looked at whatever it takes.
    pub budget: Span,
}

/// Explains the reported burst of a task in a simulation of `experiment`, or its activations or jobs. `progress` hears how many
/// of how many simulations are done.
///
/// Errors: no such task, a task that never ran, no such job; the simulator's.
pub fn explain(
    experiment: &Experiment,
    why: Why<'_>,
    mut progress: impl FnMut(usize, usize),
) -> Result<Explanation, RunError> {
    let mut question = Question::new(experiment, why)?;
    question.look_at_each(&mut progress)?;
    let n = question.causes.len() as u32;
    let most = why.budget.0 / question.length().0.max(1);
    let subsets = Subsets::new(n, usize::try_from(most).unwrap_or(usize::MAX), experiment.seed);
    let sets = subsets.sets().to_vec();
    let mut affinity_ms = 0.0;
    let (ms, notes): (Vec<f64>, Vec<String>) = match &question.pieces {
        None => {
            let without = |i: usize| question.burst_without(sets[i]);
            let found = parallel(sets.len(), |n| progress(n, sets.len()), without)?;
            // If it never comes to that burst, nothing is known to be saved.
            let debt = |burst: &Option<Burst>| burst.unwrap_or(question.burst).debt_ms;
            // The last set has all of them.
            let rest = found.last().copied().flatten();
            affinity_ms = rest.map_or(0.0, |burst| burst.debt_affinity_ms);
            (found.iter().map(debt).collect(), question.notes(&found))
        }
        Some(chosen) => {
            let without = |i: usize| question.pieces_without(sets[i], chosen);
            let found = parallel(sets.len(), |n| progress(n, sets.len()), without)?;
            (found.iter().map(|f| f.0).collect(), question.notes_of_pieces(chosen, &found))
        }
    };
    let about = question.about(why, &ms);
    let debts = Debts::new(subsets, ms).expect("one a set");
    let share = |known: Known| {
        let bit = question.causes.iter().position(|c| *c == known.cause).map(|bit| bit as u32);
        let of = |f: fn(&Debts, u32) -> f64| bit.map_or(0.0, |bit| f(&debts, bit));
        let (ms, error_ms) = bit.map_or((0.0, None), |bit| debts.share(bit));
        let (label, about) = known.cause.words_in(experiment);
        let helps = question.helps.iter().find(|(cause, _)| *cause == known.cause);
        CauseShare {
            cause: known.name,
            label,
            about,
            acts: bit.is_some() || helps.is_some(),
            ms,
            error_ms,
            gain_ms: helps.map_or_else(|| of(Debts::gain), |(_, saves)| *saves),
            alone_ms: of(Debts::alone),
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
        about,
        causes: CAUSES.into_iter().map(share).collect(),
        affinity_ms,
        unexplained_ms: debts.unexplained() - affinity_ms,
        runs: sets.len() as u32,
        notes: result.notes.iter().cloned().chain(question.instance()).chain(notes).collect(),
        cautions: cautions(experiment, &[Figure::Speed]),
    })
}

/// The burst in question, and what may be its causes.
struct Question<'a> {
    experiment: &'a Experiment,
    result: RunResult,
    task: TaskId,
    comm: String,
    burst: Burst,
    /// Stretch of the task's program in which the burst lies.
    stretch: Stretch,
    causes: Vec<Cause>,
    /// Causes that only save time (a lower clamp), with what the absence of each alone saves.
    helps: Vec<(Cause, f64)>,
    /// A job's name, if its jobs are asked about.
    job: Option<String>,
    /// The name that was asked for, if the task is the first of several with it.
    instances_of: Option<String>,
    /// Activations or jobs that are explained, ascending; `None`: the burst is.
    pieces: Option<Vec<Piece>>,
}

impl<'a> Question<'a> {
    fn new(experiment: &'a Experiment, why: Why<'_>) -> Result<Question<'a>, RunError> {
        let (jobs, tasks) = (&experiment.workload.jobs, &experiment.workload.tasks);
        let begins = |j: &&JobSpec, name: &str| {
            j.tasks.first().and_then(|i| tasks.get(*i as usize)).is_some_and(|t| t.comm == name)
        };
        let of_job = |name: &str| {
            let named = jobs.iter().find(|j| j.name == name);
            named.or_else(|| jobs.iter().find(|j| begins(j, name)))
        };
        let job = why.over.and(why.task).and_then(of_job);
        let known = |name: &str| {
            let of = |f: fn(&str) -> &str| tasks.iter().position(|t| f(&t.comm) == name);
            of(|comm| comm).or_else(|| of(group_name))
        };
        let id = match (job, why.task) {
            // Where nothing queues, its first task does not.
            (Some(job), _) => TaskId(job.tasks.first().copied().unwrap_or(0)),
            (None, None) => TaskId(experiment.workload.first_created() as u32),
            (None, Some(name)) => match known(name) {
                Some(number) => TaskId(number as u32),
                None => forked(experiment, name, why.over.is_some())?,
            },
        };
        let whose = job.map_or(0, |job| {
            jobs.iter().filter(|j| j.name == job.name).take_while(|j| j.tasks != job.tasks).count()
        }) as u32;
        let job = job.map(|job| job.name.clone());
        let group = why.task.filter(|_| job.is_none()).map(String::from);
        let backend = Counterfactual { task: Some(id), ..Counterfactual::default() };
        let options = Options { pieces: why.over.map(|_| pieces(&job, id)), ..Options::default() };
        let mut result = crate::run(&backend, experiment, options, None)?.result;
        let found = result.tasks.iter().find(|t| t.task == id);
        let Some((t, burst)) = found.and_then(|t| Some((t, t.burst?))) else {
            let at = Instant(experiment.duration.0).as_ms();
            let what = format!("the task has no burst to explain within {at} ms");
            return Err(RunError::Failed(what));
        };
        let (comm, stretch) = (t.comm.clone(), t.stretch);
        // By a number, or an instance's own name, it is about that instance alone.
        let by_number = matches!(why.over, Some(Over::One(_)));
        let several = jobs.iter().filter(|j| Some(&j.name) == job.as_ref()).count() > 1;
        let alone = several && (by_number || why.task == Some(comm.as_str()));
        if alone {
            result.pieces.retain(|(piece, _)| piece.instance == whose);
        }
        let comm = job.clone().filter(|_| !alone).unwrap_or(comm);
        let causes =
            CAUSES.iter().map(|c| c.cause).filter(|c| c.acts_in(experiment) && spoke(*c, &result));
        let causes = causes.collect();
        let jobs_of = job.as_ref().map(|_| whose);
        let pieces =
            why.over.map(|over| choose(&result.pieces, over, &comm, jobs_of)).transpose()?;
        let instances_of = group.filter(|name| *name != comm);
        let task = id;
        Ok(Question {
            experiment,
            task,
            comm,
            burst,
            stretch,
            causes,
            helps: Vec::new(),
            job,
            instances_of,
            pieces,
            result,
        })
    }

    /// Looks at each cause alone first. One that makes no difference worth telling is not looked at further, if it is the
    /// kernel's own time: every cause that is doubles the number of simulations. Nor is one that costs nothing and saves
    /// something (a lower clamp): it is no limit, and without it others would get shares of what it saves. `helps` has what
    /// its absence saves, which is less than nothing.
    fn look_at_each(&mut self, progress: &mut impl FnMut(usize, usize)) -> Result<(), RunError> {
        /// Share of what is shared out below which a cause is not worth telling: less than what may
        /// stay unexplained.
        const WORTH_TELLING: f64 = 0.004;
        /// Differences up to this, in ms, are none.
        const NONE: f64 = 0.001;
        let n = self.causes.len();
        let all = (1 << n) - 1;
        let each = (0..n).flat_map(|bit| [1 << bit, all & !(1 << bit)]);
        let sets: Vec<usize> = [0, all].into_iter().chain(each).collect();
        let found =
            parallel(sets.len(), |done| progress(done, sets.len()), |i| self.without(sets[i]))?;
        let (real, none) = (found[0], found[1]);
        let mut kept = Vec::new();
        for (cause, of) in self.causes.iter().zip(found[2..].chunks_exact(2)) {
            let (saves, costs) = (real - of[0], of[1] - none);
            let negligible = saves.abs().max(costs.abs()) < WORTH_TELLING * real;
            if *cause == Cause::Overhead && negligible {
                continue;
            }
            if saves < -NONE && costs <= NONE {
                self.helps.push((*cause, saves));
            } else {
                kept.push(*cause);
            }
        }
        // Each costs nothing where it is alone; if they do together, they are limits after all.
        if self.helps.len() > 1 {
            let helps = |c: &Cause| self.helps.iter().any(|(helping, _)| helping == c);
            let others = self.causes.iter().enumerate().filter(|(_, c)| !helps(c));
            let set = others.fold(0_usize, |set, (bit, _)| set | (1 << bit));
            if self.without(set)? - none > NONE {
                let all = self.causes.iter().copied();
                kept = all.filter(|c| kept.contains(c) || helps(c)).collect();
                self.helps.clear();
            }
        }
        self.causes = kept;
        Ok(())
    }

    /// The debt, or the time that the pieces take, without the causes whose bits are set.
    fn without(&self, set: usize) -> Result<f64, RunError> {
        Ok(match &self.pieces {
            None => self.burst_without(set)?.unwrap_or(self.burst).debt_ms,
            Some(chosen) => self.pieces_without(set, chosen)?.0,
        })
    }

    /// The note on which task is explained, where many have the name that was asked for.
    fn instance(&self) -> Option<String> {
        let name = self.instances_of.as_ref()?;
        let all = self.result.tasks.iter().filter(|t| group_name(&t.comm) == name);
        Some(format!(
            "this is {}, the first of the {} instances of {name}; --task asks about another",
            self.comm,
            all.count()
        ))
    }

    /// The length of a run without some causes, roughly.
    fn length(&self) -> Span {
        match self.pieces {
            None => (ns(2.0 * self.burst.t1_ms - self.burst.t0_ms) + SLACK)
                .min(self.experiment.duration),
            Some(_) => self.experiment.duration,
        }
    }

    fn about(&self, why: Why<'_>, ms: &[f64]) -> About {
        match (&self.pieces, why.over) {
            (Some(chosen), Some(over)) => About::Pieces {
                job: self.job.clone(),
                over,
                chosen: chosen.len() as u32,
                of: self.result.pieces.len() as u32,
                ms: ms[0],
            },
            _ => About::Burst(self.burst),
        }
    }

    /// The mean time of the chosen pieces without the causes whose bits are set, and the number of
    /// those that never come: they count as they are in the real run.
    fn pieces_without(&self, set: usize, chosen: &[Piece]) -> Result<(f64, usize), RunError> {
        let options = Options { pieces: Some(pieces(&self.job, self.task)), ..Options::default() };
        let backend = Counterfactual { without: self.absent(set), task: Some(self.task) };
        let result = crate::run(&backend, self.experiment, options, None)?.result;
        let own: BTreeMap<Piece, f64> = result.pieces.into_iter().collect();
        let real: BTreeMap<Piece, f64> = self.result.pieces.iter().copied().collect();
        let missing = chosen.iter().filter(|which| !own.contains_key(which)).count();
        let took = chosen.iter().filter_map(|which| own.get(which).or(real.get(which)));
        Ok((took.sum::<f64>() / chosen.len() as f64, missing))
    }

    fn notes_of_pieces(&self, chosen: &[Piece], found: &[(f64, usize)]) -> Vec<String> {
        let with = found.iter().filter(|(_, missing)| *missing > 0).count();
        let most = found.iter().map(|(_, missing)| *missing).max().unwrap_or(0);
        let note = format!(
            "in {with} of {} simulations some of them never come (at most {most} of {}): what is absent there is taken to \
             save nothing of these",
            found.len(),
            chosen.len()
        );
        let chain = self.job.as_ref().and_then(|name| {
            let job = self.experiment.workload.jobs.iter().find(|j| j.name == *name)?;
            let first = self.experiment.workload.tasks.get(*job.tasks.first()? as usize)?;
            let others = job.tasks.len() > 1;
            others
                .then(|| format!("without queueing, {} alone does not wait for a CPU", first.comm))
        });
        (most > 0).then_some(note).into_iter().chain(chain).collect()
    }

    fn absent(&self, set: usize) -> Causes {
        let absent = self.causes.iter().enumerate().filter(|(bit, _)| set & (1 << bit) != 0);
        absent.map(|(_, cause)| *cause).collect()
    }

    /// The burst without the causes whose bits are set; `None`: it never comes to it.
    fn burst_without(&self, set: usize) -> Result<Option<Burst>, RunError> {
        let without = self.absent(set);
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

    /// The notes on simulations in which the burst was not gone through.
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

/// False: a run that had it says that it did nothing, though it could have.
fn spoke(cause: Cause, run: &RunResult) -> bool {
    let throttled = |t: &TaskResult| {
        t.reservation.as_ref().and_then(|r| r.throttled.as_ref()).is_some_and(|t| t.n > 0)
    };
    let real_time = || {
        let is = |policy: &Policy| matches!(policy, Policy::Fifo { .. } | Policy::Rr { .. });
        run.tasks.iter().any(|t| t.policies.iter().any(is))
    };
    match cause {
        Cause::Throttling => {
            run.tasks.iter().any(throttled)
                || run.quotas.iter().any(|q| q.throttled > 0)
                || real_time()
        }
        _ => true,
    }
}

fn pieces(job: &Option<String>, task: TaskId) -> Pieces {
    job.clone().map_or(Pieces::Activations(task), Pieces::Jobs)
}

/// Chooses pieces, ascending. `jobs`: the pieces are jobs, and a number means that of this
/// instance.
fn choose(
    all: &[(Piece, f64)],
    over: Over,
    of: &str,
    jobs: Option<u32>,
) -> Result<Vec<Piece>, RunError> {
    if all.is_empty() {
        return Err(RunError::Failed(format!("{of}: nothing of it is done by the run's end")));
    }
    let mut chosen = match over {
        Over::All => all.iter().map(|(which, _)| *which).collect(),
        Over::Worst(share) => {
            let mut longest = all.to_vec();
            longest.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            let n = (share * all.len() as f64).ceil().max(1.0) as usize;
            longest.iter().take(n).map(|(which, _)| *which).collect()
        }
        // Activations have no numbers of their own: the n-th that was over.
        Over::One(number) => {
            let nth = || all.get(usize::try_from(number).unwrap_or(usize::MAX));
            let found = match jobs {
                Some(instance) => all.iter().find(|(p, _)| *p == Piece { instance, number }),
                None => nth(),
            };
            let found = found.ok_or_else(|| {
                let own = |p: &&(Piece, f64)| jobs.is_none_or(|instance| p.0.instance == instance);
                let last = match jobs {
                    Some(_) => all.iter().filter(own).map(|p| p.0.number).max().unwrap_or(0),
                    None => all.len() as u64 - 1,
                };
                let what = format!(
                    "number {number} of {of} is not there, or not done; there are 0 to {last}"
                );
                InputError::new("--over", what)
            })?;
            vec![found.0]
        }
    };
    chosen.sort_unstable();
    Ok(chosen)
}

/// A run without some cause first goes on for the burst's length and this after the real burst's end.
const SLACK: Span = Span::from_ms(20);

/// A result's time in ns, in which it was measured.
fn ns(ms: f64) -> Span {
    Span((ms * 1e6).round() as u64)
}

/// The number of a task that none but a run knows.
fn forked(experiment: &Experiment, name: &str, jobs: bool) -> Result<TaskId, RunError> {
    let backend = Counterfactual::default();
    let tasks = crate::run(&backend, experiment, Options::default(), None)?.result.tasks;
    let of = |f: fn(&str) -> &str| tasks.iter().find(|t| f(&t.comm) == name);
    let found = of(|comm| comm).or_else(|| of(group_name));
    found.map(|t| t.task).ok_or_else(|| no_such_task(experiment, name, jobs))
}

/// The error that there is no task of that name, nor a job (`jobs`: one could have been meant,
/// too).
fn no_such_task(experiment: &Experiment, name: &str, jobs: bool) -> RunError {
    let workload = &experiment.workload;
    let is_job = workload.jobs.iter().any(|job| job.name == name);
    let mut known = in_short(workload.tasks.iter().map(|t| t.comm.as_str()));
    for job in workload.jobs.iter().filter(|_| jobs) {
        if !known.contains(&job.name) {
            known.push(job.name.clone());
        }
    }
    let or_job = if jobs { " or job" } else { "" };
    let what = format!("there is no task{or_job} `{name}`, the workload has {}", known.join(", "));
    let error = InputError::new("--task", what);
    match is_job {
        true => error.hint(format!("{name} is a job: add --over all")).into(),
        false => error.into(),
    }
}

/// Names, the numbered ones of a group as `server-0 to server-63`.
fn in_short<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut ends: Vec<(&str, &str)> = Vec::new();
    for name in names {
        match ends.last_mut() {
            Some((first, last)) if group_name(first) == group_name(name) => *last = name,
            _ => ends.push((name, name)),
        }
    }
    let in_short = |(first, last): (&str, &str)| match first == last {
        true => first.to_string(),
        false => format!("{first} to {last}"),
    };
    ends.into_iter().map(in_short).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_are_named_in_short() {
        let names = ["ui", "client-0", "client-1", "client-2", "server-0", "io-a", "io-b"];
        let wanted = ["ui", "client-0 to client-2", "server-0", "io-a", "io-b"];
        assert_eq!(in_short(names.into_iter()), wanted);
    }
}
