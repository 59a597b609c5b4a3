//! Figures of a run by name: `ui.response_p99`, `energy`. What `--expect` judges, and what comparisons, sweeps and advice
//! are about. Which names there are: [`named`](crate::named), `docs/figures.md`.

use crate::histogram::Percentiles;
use crate::jobs::Jobs;
use crate::latency::group_name;
pub use crate::named::Unit;
use crate::named::{FIGURES, Figure, Owner, Tasks, Value, less_is_better, tasks_called};
use crate::result::{EndedBy, Quota, RunResult};
use risetime_model::{Code, InputError, Workload, nearest};

/// A figure by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// `ui.response_p99`.
    pub name: String,
}

impl Metric {
    /// The figure of that name, which a run has or has not; `p99.9`, as heads of tables spell it, is `p99_9`.
    pub fn new(name: impl Into<String>) -> Metric {
        let name = name.into();
        match name.strip_suffix("p99.9") {
            Some(of) => Metric { name: format!("{of}p99_9") },
            None => Metric { name },
        }
    }

    /// The figure of a task or job, if `name` does not say of which: `response_p99` of `ui`.
    pub fn of_task(name: &str, task: Option<&str>) -> Metric {
        let name = Metric::new(name).name;
        let is = |of: Owner| FIGURES.iter().any(|f| f.of() == of && f.asked(&name).is_some());
        let whole = name.contains('.') || is(Owner::Run) && !is(Owner::Task);
        match task {
            Some(task) if !whole => Metric { name: format!("{task}.{name}") },
            _ => Metric { name },
        }
    }

    /// The value of the metric in `run`, and its unit. No value: there is none in this run (no job
    /// was done, a power is unknown).
    ///
    /// Errors: no such run has it.
    pub fn of(&self, run: &RunResult) -> Result<(Option<f64>, Unit), InputError> {
        figure(run, &self.name).map_err(|known| self.unknown(&known))
    }

    /// Returns the reason for which it has no value in `run`; `None`: it has one, or nothing of the kind happened.
    pub fn absent(&self, run: &RunResult) -> Option<&'static str> {
        let what = self.name.rsplit('.').next().unwrap_or(&self.name);
        let is_of_run = !self.name.contains('.');
        let meant = |f: &&Figure| f.asked(what).is_some() && (f.of() == Owner::Run) == is_of_run;
        let none = matches!(self.of(run), Ok((None, _)));
        FIGURES.iter().filter(meant).find_map(|f| run.absent(f)).filter(|_| none)
    }

    /// Whether its value in `run` is a lower bound: of work lost that the end of the run cut off.
    pub fn is_bound(&self, run: &RunResult) -> bool {
        let Some((whose, "debt")) = self.name.rsplit_once('.') else { return false };
        let first = tasks_called(run, whose).first().and_then(|t| t.burst.as_ref());
        first.is_some_and(|burst| burst.ended() == Some(EndedBy::RunEnd))
    }

    /// Whether some run of `w` may have it: all that can be said before one is made.
    ///
    /// Errors: as [`Metric::of`]'s.
    pub fn check(&self, w: &Workload) -> Result<(), InputError> {
        let Some((whose, what)) = self.name.rsplit_once('.') else {
            return match of_the_run().any(|f| f.name == self.name) {
                true => Ok(()),
                false => Err(self.unknown(&owners(names_in(w)))),
            };
        };
        let tasks = || w.tasks.iter().chain(&w.forked).map(|task| task.comm.as_str());
        let is_task = tasks().any(|comm| comm == whose || group_name(comm) == whose);
        let has = |f: &&Figure| match f.of() {
            Owner::Job => w.jobs.iter().any(|job| job.name == whose),
            Owner::Task => is_task,
            Owner::Group => w.groups.iter().any(|g| g.path == whose),
            Owner::Run => false,
        };
        let known: Vec<String> = FIGURES.iter().filter(has).flat_map(Figure::names).collect();
        match known.is_empty() {
            true => Err(self.unknown(&owners(names_in(w)))),
            false if known.iter().any(|name| name == what) => Ok(()),
            false => Err(self.unknown(&of(whose, known))),
        }
    }

    fn unknown(&self, known: &[String]) -> InputError {
        let e = InputError::new("--metric", format!("there is no figure `{}`", self.name))
            .code(Code::UnknownName);
        let all = format!("known: {}", known.join(", "));
        let (whose, what) = self.name.rsplit_once('.').unwrap_or(("", &self.name));
        if what.starts_with("throttled") || what == "replenished" {
            return e.hint(format!(
                "of deadline tasks, and of groups with a quota (`/bg.throttled`); {all}"
            ));
        }
        // `p99` is likely that of the first that has one.
        let part = known.iter().find(|name| {
            name.strip_prefix(whose).is_some_and(|own| own.ends_with(&format!("_{what}")))
        });
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        match part.map(String::as_str).or_else(|| nearest(&self.name, &names)) {
            Some(name) => e.hint(format!("did you mean `{name}`? {all}")),
            None => e.hint(all),
        }
    }

    /// Whether less of it is better; `None`: neither.
    pub fn less_is_better(&self) -> Option<bool> {
        less_is_better(self.name.rsplit('.').next().unwrap_or(&self.name))
    }
}

/// Owners in a run that a name stands for.
struct Owners<'r> {
    job: Option<&'r Jobs>,
    quota: Option<&'r Quota>,
    tasks: Tasks<'r>,
}

impl Owners<'_> {
    /// The value of a figure; outer `None`: none of these owners has it.
    fn value(&self, figure: &Figure, statistic: &str) -> Option<Option<f64>> {
        let of = |p: Option<Percentiles>| {
            p.and_then(|p| p.named().into_iter().find(|(name, _)| *name == statistic)).map(|x| x.1)
        };
        let (any, tasks) = (!self.tasks.tasks.is_empty(), &self.tasks);
        match figure.value {
            Value::Run(_) => None,
            Value::Job(value) => self.job.map(value),
            Value::EachJob(each) => self.job.map(|j| of(each(j))),
            Value::Task(value) => any.then(|| value(tasks)),
            Value::Each(each) => (any || tasks.latency.is_some()).then(|| of(each(tasks))),
            Value::Reserved(value) => tasks.is_reserved().then(|| {
                let all = tasks.throttled();
                Some(value(&all)).filter(|_| !all.is_empty())
            }),
            Value::Group(value) => self.quota.map(value),
        }
    }
}

/// The figure of that name; names that there are, if there is none.
fn figure(run: &RunResult, name: &str) -> Result<(Option<f64>, Unit), Vec<String>> {
    let of_run = of_the_run().find(|f| f.name == name);
    if let Some(f) = of_run
        && let Value::Run(value) = f.value
    {
        return Ok((run.known(f, value(run)), f.unit));
    }
    let known = || {
        let whose = run.jobs.iter().map(|j| j.name.as_str());
        let tasks = run.latency.iter().map(|l| l.tasks.as_str());
        owners(whose.chain(tasks).chain(run.quotas.iter().map(|q| q.group.as_str())).collect())
    };
    let Some((whose, what)) = name.rsplit_once('.') else { return Err(known()) };
    let tasks = tasks_called(run, whose);
    let latency = run.latency.iter().find(|l| l.tasks == whose);
    let all = Owners {
        job: run.jobs.iter().find(|j| j.name == whose),
        quota: run.quotas.iter().find(|q| q.group == whose),
        tasks: Tasks { tasks: &tasks, latency },
    };
    let asked = |f: &Figure| Some((run.known(f, all.value(f, f.asked(what)?)?), f.unit));
    if let Some(found) = FIGURES.iter().find_map(asked) {
        return Ok(found);
    }
    // Of what it is nobody says: no name is wrong.
    if let Some(f) = FIGURES.iter().find(|f| f.asked(what).is_some() && run.hides(f)) {
        return Ok((None, f.unit));
    }
    let has = |f: &&Figure| all.value(f, "").is_some();
    let names: Vec<String> = FIGURES.iter().filter(has).flat_map(Figure::names).collect();
    Err(if names.is_empty() { known() } else { of(whose, names) })
}

/// Iterates over the figures that belong to no task, job or group.
fn of_the_run() -> impl Iterator<Item = &'static Figure> {
    FIGURES.iter().filter(|f| f.of() == Owner::Run)
}

/// Lists the names that have figures in a run of `w`: jobs, tasks and groups.
fn names_in(w: &Workload) -> Vec<&str> {
    let tasks = w.tasks.iter().chain(&w.forked).map(|task| group_name(&task.comm));
    let jobs = w.jobs.iter().map(|job| job.name.as_str());
    jobs.chain(tasks).chain(w.groups.iter().map(|g| g.path.as_str())).collect()
}

/// Lists what may be asked for where nothing of that name is: some of these names, and the run's
/// own figures.
fn owners(mut all: Vec<&str>) -> Vec<String> {
    all.sort_unstable();
    all.dedup();
    let shown = all.iter().take(8).map(|name| format!("{name}.…"));
    shown.chain(of_the_run().map(|f| f.name.to_string())).collect()
}

/// The names of figures of `whose`.
fn of(whose: &str, figures: Vec<String>) -> Vec<String> {
    figures.into_iter().map(|name| format!("{whose}.{name}")).collect()
}
