//! Figures of a run by name: `ui.response_p99`, `energy`. What `--expect` judges, and what comparisons, sweeps and advice
//! are about. Which names there are: [`named`](crate::named), `docs/figures.md`.

use crate::jobs::{Jobs, Percentiles};
use crate::latency::{Latency, group_name};
#[cfg(test)]
use crate::named::Owner;
use crate::result::{EndedBy, Quota, RunResult, Spent, TaskResult, Throttled};
use risetime_model::{InputError, Workload, nearest};

/// Unit that a figure counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// ms.
    Time,
    /// mJ.
    Energy,
    /// °C.
    Temperature,
    /// A number of things.
    Count,
}

impl Unit {
    /// The unit as it stands behind a number.
    pub const fn as_str(self) -> &'static str {
        match self {
            Unit::Time => " ms",
            Unit::Energy => " mJ",
            Unit::Temperature => " °C",
            Unit::Count => "",
        }
    }

    /// The unit with this word, without spaces; `None`: there is none.
    pub fn of_word(word: &str) -> Option<Unit> {
        let all = [Unit::Time, Unit::Energy, Unit::Temperature, Unit::Count];
        all.into_iter().find(|unit| unit.as_str().trim() == word)
    }
}

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
        let whole = name.contains('.') || OF_THE_RUN_ALONE.contains(&&*name);
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

    /// Whether its value in `run` is a lower bound: of work lost that the end of the run cut off.
    pub fn is_bound(&self, run: &RunResult) -> bool {
        let Some((whose, "debt")) = self.name.rsplit_once('.') else { return false };
        let first = named(run, whose).first().and_then(|t| t.burst.as_ref());
        first.is_some_and(|burst| burst.ended_by == EndedBy::RunEnd)
    }

    /// Whether some run of `w` may have it: all that can be said before one is made.
    ///
    /// Errors: as [`Metric::of`]'s.
    pub fn check(&self, w: &Workload) -> Result<(), InputError> {
        let Some((whose, what)) = self.name.rsplit_once('.') else {
            return match OF_THE_RUN.iter().any(|(name, _)| *name == self.name) {
                true => Ok(()),
                false => Err(self.unknown(&owners(names_in(w)))),
            };
        };
        let tasks = || w.tasks.iter().chain(&w.forked).map(|task| task.comm.as_str());
        let is_task = tasks().any(|comm| comm == whose || group_name(comm) == whose);
        let all = [
            w.jobs.iter().any(|job| job.name == whose).then(|| of_jobs(&Jobs::default())),
            is_task.then(|| of_latency(None)),
            w.groups.iter().any(|g| g.path == whose).then(|| of_quota(&Quota::default())),
            is_task.then(|| [of_tasks(&[]), of_reservations(&[])].concat()),
        ];
        let known: Vec<String> =
            all.into_iter().flatten().flatten().map(|(name, _)| name).collect();
        match known.is_empty() {
            true => Err(self.unknown(&owners(names_in(w)))),
            false if known.iter().any(|name| name == what) => Ok(()),
            false => Err(self.unknown(&of(whose, known))),
        }
    }

    fn unknown(&self, known: &[String]) -> InputError {
        let e = InputError::new("--metric", format!("there is no figure `{}`", self.name));
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
        match self.name.rsplit('.').next().unwrap_or(&self.name) {
            "work" | "exited" | "done" | "per_second" | "deep_idle" => Some(false),
            "released" | "due" | "running" | "migrations" | "periods" => None,
            _ => Some(true),
        }
    }
}

type Figure = (Option<f64>, Unit);

/// The figure of that name; names that there are, if there is none.
fn figure(run: &RunResult, name: &str) -> Result<Figure, Vec<String>> {
    if let Some((_, unit)) = OF_THE_RUN.iter().find(|(known, _)| *known == name) {
        return Ok((of_run(run, name), *unit));
    }
    let known = || {
        let whose = run.jobs.iter().map(|j| j.name.as_str());
        let tasks = run.latency.iter().map(|l| l.tasks.as_str());
        owners(whose.chain(tasks).chain(run.quotas.iter().map(|q| q.group.as_str())).collect())
    };
    let Some((whose, what)) = name.rsplit_once('.') else { return Err(known()) };
    let job = run.jobs.iter().find(|j| j.name == whose);
    let latency = run.latency.iter().find(|l| l.tasks == whose);
    let quota = run.quotas.iter().find(|q| q.group == whose);
    let tasks = named(run, whose);
    let all = [
        job.map(of_jobs),
        Some(of_latency(latency)).filter(|_| latency.is_some() || !tasks.is_empty()),
        quota.map(of_quota),
        Some(of_tasks(&tasks)).filter(|_| !tasks.is_empty()),
        Some(of_reservations(&tasks)).filter(|_| tasks.iter().any(|t| t.reservation.is_some())),
    ];
    let all: Vec<(String, Figure)> = all.into_iter().flatten().flatten().collect();
    if all.is_empty() {
        return Err(known());
    }
    let found = all.iter().find(|(name, _)| name == what).map(|(_, figure)| *figure);
    found.ok_or_else(|| of(whose, all.into_iter().map(|(name, _)| name).collect()))
}

/// The value of one of [`OF_THE_RUN`].
fn of_run(run: &RunResult, name: &str) -> Option<f64> {
    let sum = |of: fn(&TaskResult) -> f64| Some(run.tasks.iter().map(of).sum());
    match name {
        "energy" => run.energy_mj,
        "work" => Some(run.work_ms),
        "makespan" => run.makespan_ms,
        "exited" => Some(run.exited.0 as f64),
        "temperature" => run.heat.iter().map(|zone| zone.max_celsius).reduce(f64::max),
        "capped" => {
            let all = run.cooling.iter().map(|c| c.capped_ms).sum();
            Some(all).filter(|_| !run.heat.is_empty())
        }
        "wakeups" => Some(run.wakes.tasks),
        "idle_wakeups" => Some(run.wakes.cpus),
        "timer_interrupts" => run.wakes.timer_interrupts,
        "deep_idle" => Some(run.deep_idle_ms()),
        "wait" => sum(|t| t.whole.wait_ms),
        "migrations" => sum(|t| t.whole.moves() as f64),
        _ => None,
    }
}

/// The task `whose`, else all of that name.
fn named<'r>(run: &'r RunResult, whose: &str) -> Vec<&'r TaskResult> {
    let of = |of: fn(&str) -> &str| -> Vec<&TaskResult> {
        run.tasks.iter().filter(|t| of(&t.comm) == whose).collect()
    };
    let one = Some(of(|comm| comm)).filter(|all| !all.is_empty());
    one.unwrap_or_else(|| of(group_name))
}

/// Figures that belong to no task, job or group, and what they count.
const OF_THE_RUN: [(&str, Unit); 12] = [
    ("energy", Unit::Energy),
    ("work", Unit::Time),
    ("makespan", Unit::Time),
    ("exited", Unit::Count),
    ("wait", Unit::Time),
    ("migrations", Unit::Count),
    ("wakeups", Unit::Count),
    ("idle_wakeups", Unit::Count),
    ("timer_interrupts", Unit::Count),
    ("deep_idle", Unit::Time),
    ("temperature", Unit::Temperature),
    ("capped", Unit::Time),
];
/// Figures among them that no task has.
const OF_THE_RUN_ALONE: [&str; 9] = [
    "energy",
    "makespan",
    "exited",
    "wakeups",
    "idle_wakeups",
    "timer_interrupts",
    "deep_idle",
    "temperature",
    "capped",
];

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
    shown.chain(OF_THE_RUN.map(|(name, _)| name.to_string())).collect()
}

/// Lists all names that [`figure`] knows, behind their owners'.
#[cfg(test)]
pub(crate) fn all_names() -> Vec<(Owner, String, Unit)> {
    let run = OF_THE_RUN.map(|(name, unit)| (name.to_string(), (None, unit)));
    let owners = [
        (Owner::Job, of_jobs(&Jobs::default())),
        (Owner::Task, [of_latency(None), of_tasks(&[]), of_reservations(&[])].concat()),
        (Owner::Group, of_quota(&Quota::default())),
        (Owner::Run, run.into()),
    ];
    let all = owners.into_iter().flat_map(|(of, figures)| {
        figures.into_iter().map(move |(name, (_, unit))| (of, name, unit))
    });
    all.collect()
}

/// The names of figures of `whose`.
fn of(whose: &str, figures: Vec<String>) -> Vec<String> {
    figures.into_iter().map(|name| format!("{whose}.{name}")).collect()
}

fn of_jobs(j: &Jobs) -> Vec<(String, Figure)> {
    let mut all = percentiles("response", j.response.as_ref(), Unit::Time);
    all.extend(percentiles("lateness", j.lateness.as_ref(), Unit::Time));
    all.extend(percentiles("longer", j.longer.as_ref(), Unit::Time));
    all.extend(percentiles("energy", j.energy.as_ref(), Unit::Energy));
    all.extend(j.counts().map(|(name, n)| (name.into(), (Some(n as f64), Unit::Count))));
    all.push(("per_second".into(), (j.per_second, Unit::Count)));
    all.push(("energy".into(), (j.mj_per_job, Unit::Energy)));
    all
}

/// The percentiles by name, also where there are none in this run.
fn percentiles(of: &str, p: Option<&Percentiles>, unit: Unit) -> Vec<(String, Figure)> {
    let figure = |(name, x)| (format!("{of}_{name}"), (p.map(|_| x), unit));
    p.copied().unwrap_or_default().named().map(figure).into()
}

/// The latency figures by name, also where no activation was over by the run's end.
fn of_latency(l: Option<&Latency>) -> Vec<(String, Figure)> {
    type Of = fn(&Latency) -> f64;
    let figures: [(&str, Of); 5] = [
        ("p50", |l| l.p50_ms),
        ("p90", |l| l.p90_ms),
        ("p99", |l| l.p99_ms),
        ("p99_9", |l| l.p99_9_ms),
        ("max", |l| l.max_ms),
    ];
    let figures = figures.map(|(name, of)| (format!("activation_{name}"), (l.map(of), Unit::Time)));
    let longer = percentiles("activation_longer", l.and_then(|l| l.longer.as_ref()), Unit::Time);
    let waits = [("wakeup", l.map(|l| &l.wakeup)), ("wu_lat", l.map(|l| &l.wu_lat))];
    let waits = waits
        .into_iter()
        .flat_map(|(name, w)| percentiles(name, w.and_then(|w| w.took.as_ref()), Unit::Time));
    figures.into_iter().chain(longer).chain(waits).collect()
}

fn of_quota(q: &Quota) -> Vec<(String, Figure)> {
    let figures = [
        ("periods", Some(q.periods as f64), Unit::Count),
        ("throttled", Some(q.throttled as f64), Unit::Count),
        ("throttled_time", Some(q.throttled_ms), Unit::Time),
        ("throttled_longest", q.longest_ms, Unit::Time),
    ];
    figures.map(|(name, value, unit)| (name.into(), (value, unit))).into()
}

/// The figures of all tasks of a name together; the burst is the first one's.
fn of_tasks(all: &[&TaskResult]) -> Vec<(String, Figure)> {
    let burst = all.first().and_then(|t| t.burst.as_ref());
    let full = burst.filter(|b| b.ended_by == EndedBy::FullSpeed).map(|b| b.t1_ms - b.t0_ms);
    let sum = |of: fn(&Spent) -> f64| Some(all.iter().map(|t| of(&t.whole)).sum());
    let energy = all.iter().map(|t| t.whole.energy_mj).sum();
    let figures = [
        ("debt", burst.map(|b| b.debt_ms), Unit::Time),
        ("full_speed", full, Unit::Time),
        ("wait", sum(|s| s.wait_ms), Unit::Time),
        ("running", sum(|s| s.running_ms), Unit::Time),
        ("work", sum(|s| s.work_ms), Unit::Time),
        ("longer", sum(|s| s.longer_ms), Unit::Time),
        ("migrations", sum(|s| s.moves() as f64), Unit::Count),
        ("task_energy", energy, Unit::Energy),
    ];
    figures.map(|(name, value, unit)| (name.into(), (value, unit))).into()
}

/// The reservation figures of all deadline tasks of a name together.
fn of_reservations(all: &[&TaskResult]) -> Vec<(String, Figure)> {
    // None: nobody tells of it.
    let throttled: Vec<Throttled> =
        all.iter().filter_map(|t| t.reservation.as_ref()?.throttled).collect();
    let some = |value: f64| Some(value).filter(|_| !throttled.is_empty());
    let longest = throttled.iter().map(|t| t.longest_ms).fold(0.0, f64::max);
    let figures = [
        ("throttled", some(throttled.iter().map(|t| f64::from(t.n)).sum()), Unit::Count),
        ("throttled_time", some(throttled.iter().map(|t| t.ms).sum()), Unit::Time),
        ("throttled_longest", some(longest), Unit::Time),
        (
            "replenished",
            some(throttled.iter().map(|t| f64::from(t.replenished)).sum()),
            Unit::Count,
        ),
    ];
    figures.map(|(name, value, unit)| (name.into(), (value, unit))).into()
}
