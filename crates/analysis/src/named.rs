//! Every figure that has a name: what it is, how it is computed from a run, and as what it is written.
//!
//! [`FIGURES`] is the one table. `--metric`, `--expect` and `--goal` ([`crate::metric`]), the keys of JSON and the rows of
//! CSV, which caution is about it, and the page `docs/figures.md` follow from it: a new figure is a field of a result that
//! the analysis fills, and a row here.

use crate::histogram::Percentiles;
use crate::jobs::Jobs;
use crate::known::Need;
use crate::latency::{Latency, group_name};
use crate::result::{Burst, EndedBy, Quota, RunResult, Spent, TaskResult, Throttled};
pub use crate::weak::Weak;

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
    /// A number of things in a second.
    PerSecond,
}

impl Unit {
    /// The unit as it stands behind a number.
    pub const fn as_str(self) -> &'static str {
        match self {
            Unit::Time => " ms",
            Unit::Energy => " mJ",
            Unit::Temperature => " °C",
            Unit::Count => "",
            Unit::PerSecond => " /s",
        }
    }

    /// The unit as it stands in a column of its own, of JSON and CSV.
    pub fn word(self) -> &'static str {
        match self {
            Unit::PerSecond => "1/s",
            unit => unit.as_str().trim(),
        }
    }

    /// The unit with this [word](Unit::word); `None`: there is none.
    pub fn of_word(word: &str) -> Option<Unit> {
        let all = [Unit::Time, Unit::Energy, Unit::Temperature, Unit::Count, Unit::PerSecond];
        all.into_iter().find(|unit| unit.word() == word)
    }
}

/// The owner of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// `frame.missed`: all jobs of a name.
    Job,
    /// `ui.debt`: all tasks of a name.
    Task,
    /// `/bg.throttled`: a task group with a quota.
    Group,
    /// `energy`: the whole run.
    Run,
}

impl Owner {
    /// Returns the word of an owner that has a name; `None`: it is the whole run.
    pub const fn word(self) -> Option<&'static str> {
        match self {
            Owner::Job => Some("job"),
            Owner::Task => Some("task"),
            Owner::Group => Some("group"),
            Owner::Run => None,
        }
    }
}

/// Results that a figure of tasks is computed from.
#[derive(Clone, Copy)]
pub struct Tasks<'r> {
    /// The task of that name, else all whose name without its number it is.
    pub tasks: &'r [&'r TaskResult],
    /// Times of their activations; `None`: the run has none of that name.
    pub latency: Option<&'r Latency>,
}

/// Value of a figure in a run. `None`: nothing of the kind happened, or nobody knows.
#[derive(Clone, Copy)]
pub enum Value {
    /// A figure of the whole run.
    Run(fn(&RunResult) -> Option<f64>),
    /// A figure of all jobs of a name.
    Job(fn(&Jobs) -> Option<f64>),
    /// A figure that each of the jobs has.
    EachJob(fn(&Jobs) -> Option<Percentiles>),
    /// A figure of all tasks of a name.
    Task(fn(&Tasks<'_>) -> Option<f64>),
    /// A figure that each activation, or wakeup, of the tasks has.
    Each(fn(&Tasks<'_>) -> Option<Percentiles>),
    /// A figure of the tasks among them that have a reservation.
    Reserved(fn(&[Throttled]) -> f64),
    /// A figure of a task group with a quota.
    Group(fn(&Quota) -> Option<f64>),
}

/// A figure, or several that differ in the percentile alone.
#[derive(Clone, Copy)]
pub struct Figure {
    /// Name of the figure behind the owner's; where there are [`statistics`](Figure::statistics),
    /// the part before theirs.
    pub name: &'static str,
    /// Value of the figure, and with it the owner.
    pub value: Value,
    /// `p50` of `response_p50`; none: one figure.
    pub statistics: &'static [&'static str],
    /// Unit of the figure.
    pub unit: Unit,
    /// Whether less of it is better; `None`: neither.
    pub less_is_better: Option<bool>,
    /// Kind of the figure for cautions; of [`statistics`](Figure::statistics), of the upper ones.
    pub weak: Weak,
    /// Things that the figure needs, beside the tasks' states: where one is not known there is no value, but the reason.
    pub needs: &'static [Need],
    /// Key of the figure in the JSON of a run, in its owner's record; `None`: written by hand in
    /// `report`, or not at all.
    pub json: Option<&'static str>,
    /// Name of the figure in the CSV of a run; `None`: likewise.
    pub csv: Option<&'static str>,
    /// Meaning of the figure, in Markdown.
    pub about: &'static str,
}

impl Figure {
    /// The owner of the figure.
    pub fn of(&self) -> Owner {
        match self.value {
            Value::Run(_) => Owner::Run,
            Value::Job(_) | Value::EachJob(_) => Owner::Job,
            Value::Task(_) | Value::Each(_) | Value::Reserved(_) => Owner::Task,
            Value::Group(_) => Owner::Group,
        }
    }

    /// Lists the names of its figures behind the owner's: `response_min`, `response_mean`, …
    pub fn names(&self) -> impl Iterator<Item = String> {
        let one = self.statistics.is_empty().then(|| self.name.to_string());
        one.into_iter().chain(self.statistics.iter().map(|x| format!("{}_{x}", self.name)))
    }

    /// The statistic that `name` asks for of this figure, `""` where it has none; `None`: `name` is another figure's.
    pub(crate) fn asked<'n>(&self, name: &'n str) -> Option<&'n str> {
        let rest = name.strip_prefix(self.name)?;
        match self.statistics {
            [] => rest.is_empty().then_some(""),
            all => rest.strip_prefix('_').filter(|x| all.contains(x)),
        }
    }

    const fn more_is_better(self) -> Figure {
        Figure { less_is_better: Some(false), ..self }
    }
    const fn is_neutral(self) -> Figure {
        Figure { less_is_better: None, ..self }
    }
    const fn weak(self, weak: Weak) -> Figure {
        Figure { weak, ..self }
    }
    const fn needs(self, needs: &'static [Need]) -> Figure {
        Figure { needs, ..self }
    }
    const fn json(self, key: &'static str) -> Figure {
        Figure { json: Some(key), ..self }
    }
    const fn csv(self, name: &'static str) -> Figure {
        Figure { csv: Some(name), ..self }
    }
}

/// The statistics of a figure that each job, activation or wakeup has.
pub const ALL: &[&str] = &["min", "mean", "p50", "p90", "p95", "p99", "p99_9", "max"];
/// Statistics of how long activations take.
pub const FEWER: &[&str] = &["p50", "p90", "p99", "p99_9", "max"];
/// Statistics that a caution about an upper tail is about.
const TAIL: &[&str] = &["p90", "p95", "p99", "p99_9", "max"];

/// A figure of which less is better.
const fn one(name: &'static str, unit: Unit, value: Value, about: &'static str) -> Figure {
    Figure {
        name,
        value,
        statistics: &[],
        unit,
        less_is_better: Some(true),
        weak: Weak::Speed,
        needs: &[],
        json: None,
        csv: None,
        about,
    }
}

const fn each(name: &'static str, unit: Unit, value: Value, about: &'static str) -> Figure {
    Figure { statistics: ALL, ..one(name, unit, value, about) }
}

/// The task `name`, else all of that name.
pub(crate) fn tasks_called<'r>(run: &'r RunResult, name: &str) -> Vec<&'r TaskResult> {
    let of = |of: fn(&str) -> &str| -> Vec<&TaskResult> {
        run.tasks.iter().filter(|t| of(&t.comm) == name).collect()
    };
    let one = Some(of(|comm| comm)).filter(|all| !all.is_empty());
    one.unwrap_or_else(|| of(group_name))
}

/// The caution's kind of the figure `name` behind its owner's; [`Weak::Speed`] for all that are not weak anywhere by themselves.
pub(crate) fn weakness(name: &str) -> Weak {
    let kind = |f: &Figure| {
        let x = f.asked(name)?;
        let is_tail = f.statistics.is_empty() || TAIL.contains(&x) || f.weak == Weak::Energy;
        is_tail.then_some(f.weak)
    };
    FIGURES.iter().find_map(kind).unwrap_or(Weak::Speed)
}

/// Whether less of the figure `name`, behind its owner's, is better; `None`: neither.
pub(crate) fn less_is_better(name: &str) -> Option<bool> {
    FIGURES.iter().find(|f| f.asked(name).is_some()).map_or(Some(true), |f| f.less_is_better)
}

impl Tasks<'_> {
    /// The reported burst of the first of them.
    fn burst(&self) -> Option<&Burst> {
        self.tasks.first()?.burst.as_ref()
    }
    /// The sum of what the whole run took.
    fn sum(&self, of: fn(&Spent) -> f64) -> Option<f64> {
        Some(self.tasks.iter().map(|t| of(&t.whole)).sum())
    }
    /// Whether one of them has a reservation.
    pub(crate) fn is_reserved(&self) -> bool {
        self.tasks.iter().any(|t| t.reservation.is_some())
    }
    /// Lists how often and how long those with a reservation were throttled, of whom that is told.
    pub(crate) fn throttled(&self) -> Vec<Throttled> {
        self.tasks.iter().filter_map(|t| t.reservation.as_ref()?.throttled).collect()
    }
}

/// Times of activations, of which no other statistics than [`FEWER`] are known.
fn activations(l: &Latency) -> Percentiles {
    Percentiles {
        p50: l.p50_ms,
        p90: l.p90_ms,
        p99: l.p99_ms,
        p99_9: l.p99_9_ms,
        max: l.max_ms,
        ..Percentiles::default()
    }
}

/// The sum over all tasks of the run.
fn sum(run: &RunResult, of: fn(&Spent) -> f64) -> Option<f64> {
    Some(run.tasks.iter().map(|t| of(&t.whole)).sum())
}

use Need::{
    Experiment, Idle, IdleStates, Powers, Speeds, Temperatures, Throttling, TimerInterrupts,
};
use Unit::{Count, Energy, PerSecond, Temperature, Time};
use Value::{Each, EachJob, Group, Job, Reserved, Run, Task};

/// All figures, in the order of the page; of one owner, in that of JSON and CSV.
pub const FIGURES: &[Figure] = &[
    one("released", Count, Job(|j| Some(j.released as f64)), "jobs that began").is_neutral().needs(&[Experiment]).json("released").csv("jobs_released"),
    one("due", Count, Job(|j| Some(j.due as f64)), "jobs whose due time is within the run").is_neutral().needs(&[Experiment]).json("due").csv("jobs_due"),
    one("done", Count, Job(|j| Some(j.done as f64)), "jobs that were done").more_is_better().needs(&[Experiment]).json("done").csv("jobs_done"),
    one("missed", Count, Job(|j| Some(j.missed() as f64)), "`late` + `merged` + `dropped` + `overdue`").needs(&[Experiment]).json("missed").csv("jobs_missed"),
    one("late", Count, Job(|j| Some(j.late as f64)), "jobs that were done after they were due").needs(&[Experiment]).json("late").csv("jobs_late"),
    one("merged", Count, Job(|j| Some(j.merged as f64)), "jobs for which no work was done: a whole period passed before the program came back to its relative timer").needs(&[Experiment]).json("merged").csv("jobs_merged"),
    one("dropped", Count, Job(|j| Some(j.dropped as f64)), "jobs in whose place a task further on in the chain took a newer one").needs(&[Experiment]).json("dropped").csv("jobs_dropped"),
    one("unfinished", Count, Job(|j| Some(j.unfinished as f64)), "jobs that were still being worked at when the run ended").needs(&[Experiment]).json("unfinished").csv("jobs_unfinished"),
    one("overdue", Count, Job(|j| Some(j.overdue as f64)), "unfinished jobs that were due by then").needs(&[Experiment]).json("overdue").csv("jobs_overdue"),
    each("response", Time, EachJob(|j| j.response), "from release to done, of jobs that are done; of overdue ones, as long as they have taken").weak(Weak::Responses).needs(&[Experiment]).json("response").csv("job_response"),
    each("lateness", Time, EachJob(|j| j.lateness), "from due to done, of the same jobs; below 0: in time").weak(Weak::Responses).needs(&[Experiment]).json("lateness").csv("job_lateness"),
    each("longer", Time, EachJob(|j| j.longer), "how much longer a job took than the same work takes at full speed").weak(Weak::Responses).needs(&[Experiment, Speeds]).json("longer").csv("job_longer"),
    one("energy", Energy, Job(|j| j.mj_per_job), "what a job took: the energy of the job's tasks over the whole run, by jobs done (`mJ each`)").weak(Weak::Energy).needs(&[Experiment, Powers]).json("mj_per_job").csv("job_energy"),
    each("energy", Energy, EachJob(|j| j.energy), "what one job took, of those that are done").weak(Weak::Energy).needs(&[Experiment, Powers]).json("energy").csv("job_energy"),
    one("per_second", PerSecond, Job(|j| j.per_second), "jobs done in a second, from the workload's start on: frames a second").more_is_better().needs(&[Experiment]),
    Figure { statistics: FEWER, ..each("activation", Time, Each(|t| t.latency.map(activations)), "how long an activation takes, from wakeup to sleep") }.weak(Weak::Activations).csv("activation"),
    each("activation_longer", Time, Each(|t| t.latency?.longer), "how much longer an activation took than the same work takes at full speed").weak(Weak::Activations).needs(&[Speeds]).json("longer").csv("activation_longer"),
    each("wakeup", Time, Each(|t| t.latency?.wakeup.took), "from a wakeup (or the creation) to first running").weak(Weak::Wakeups).json("wakeup").csv("wakeup"),
    each("wu_lat", Time, Each(|t| t.latency?.wu_lat.took), "*timer expiry to running*, as rt-app's `wu_lat` and cyclictest report it: from when the task's timer was due (or another task woke it, or it was created) to first running. It is timer slack, a late interrupt, the way out of an idle state, and then all of `wakeup`, which begins where the task is queued. A real kernel's trace (`--backend vm`, recordings) does not tell when a timer was due: there it is the same as `wakeup`").weak(Weak::Wakeups).json("wu_lat").csv("wu_lat"),
    one("debt", Time, Task(|t| t.burst().map(|b| b.debt_ms)), "of the reported burst: work lost, in ms of full speed").needs(&[Speeds]),
    one("full_speed", Time, Task(|t| { t.burst().filter(|b| b.ended_by == EndedBy::FullSpeed).map(|b| b.t1_ms - b.t0_ms) }), "of the reported burst: time until full speed").needs(&[Speeds]),
    one("wait", Time, Task(|t| t.sum(|s| s.wait_ms)), "time waited for a CPU"),
    one("running", Time, Task(|t| t.sum(|s| s.running_ms)), "time on a CPU").is_neutral(),
    one("work", Time, Task(|t| t.sum(|s| s.work_ms)), "work done, in ms of full speed").more_is_better().needs(&[Speeds]),
    one("longer", Time, Task(|t| t.sum(|s| s.longer_ms)), "how much longer running and waiting took than that work at full speed").needs(&[Speeds]),
    one("task_energy", Energy, Task(|t| t.tasks.iter().map(|t| t.whole.energy_mj).sum()), "energy while the task ran").weak(Weak::Energy).needs(&[Powers]),
    one("migrations", Count, Task(|t| t.sum(|s| s.moves() as f64)), "changes of CPU").is_neutral().weak(Weak::Migrations),
    one("throttled", Count, Reserved(|all| all.iter().map(|t| f64::from(t.n)).sum()), "of deadline tasks: how often one was throttled. Its runtime was used up before it slept; or it woke shortly before its next period, which may take a few µs of a task with all its runtime left. Simulated only").needs(&[Throttling]),
    one("throttled_time", Time, Reserved(|all| all.iter().map(|t| t.ms).sum()), "of deadline tasks: time waited for the next period's runtime. Simulated only").needs(&[Throttling]),
    one("throttled_longest", Time, Reserved(|all| all.iter().map(|t| t.longest_ms).fold(0.0, f64::max)), "of deadline tasks: the longest such wait. Simulated only").needs(&[Throttling]),
    one("replenished", Count, Reserved(|all| all.iter().map(|t| f64::from(t.replenished)).sum()), "of deadline tasks: how often the next period's runtime came. Simulated only").needs(&[Throttling]),
    one("periods", Count, Group(|q| Some(q.periods as f64)), "periods that ended, as in the group's `cpu.stat`").is_neutral().needs(&[Experiment]).json("periods").csv("quota_periods"),
    one("throttled", Count, Group(|q| Some(q.throttled as f64)), "periods at whose end the quota was used up on some CPU, as in `cpu.stat`").needs(&[Experiment]).json("throttled").csv("quota_throttled"),
    one("throttled_time", Time, Group(|q| Some(q.throttled_ms)), "time until the quota was refilled, of all CPUs together, as in `cpu.stat` (up to 6.5 also while no task of the group waits, as there)").needs(&[Experiment]).json("throttled_ms").csv("quota_throttled_time"),
    one("throttled_longest", Time, Group(|q| q.longest_ms), "the longest such time. Simulated only").needs(&[Experiment]).json("throttled_longest_ms").csv("quota_throttled_longest"),
    one("wakeups", PerSecond, Run(|r| Some(r.wakes.tasks)), "wake-ups of tasks, in a second of the run").json("wakeups_per_s").csv("wakeups"),
    one("idle_wakeups", PerSecond, Run(|r| Some(r.wakes.cpus)), "wake-ups of CPUs out of an idle state, in a second of the run").needs(&[Idle]).json("idle_wakeups_per_s").csv("idle_wakeups"),
    one("timer_interrupts", PerSecond, Run(|r| r.wakes.timer_interrupts), "interrupts of the CPUs' timers, in a second of the run. Simulated only").needs(&[TimerInterrupts]).json("timer_interrupts_per_s").csv("timer_interrupts"),
    one("freq_changes", Count, Run(|r| Some(r.freq_changes as f64)), "changes of frequency, of all domains together").is_neutral().needs(&[Speeds]),
    one("work", Time, Run(|r| Some(r.work_ms)), "work that all tasks did, in ms of full speed: what the `run`s of their programs come to, whatever kept the CPUs from full speed").more_is_better().needs(&[Speeds]).json("work_ms").csv("work"),
    one("exited", Count, Run(|r| Some(r.exited.0 as f64)), "tasks that have exited").more_is_better().json("exited").csv("exited"),
    one("makespan", Time, Run(|r| r.makespan_ms), "from the first creation to the last exit, once all tasks have exited").json("makespan_ms").csv("makespan"),
    one("energy", Energy, Run(|r| r.energy_mj), "energy of all CPUs").weak(Weak::Energy).needs(&[Powers]).json("energy_mj").csv("energy"),
    one("wait", Time, Run(|r| sum(r, |s| s.wait_ms)), "time that all tasks waited for a CPU"),
    one("migrations", Count, Run(|r| sum(r, |s| s.moves() as f64)), "changes of CPU of all tasks").is_neutral().weak(Weak::Migrations),
    one("deep_idle", Time, Run(|r| Some(r.deep_idle_ms())), "time that the CPUs were in their deepest idle state, together").more_is_better().needs(&[IdleStates]),
    one("temperature", Temperature, Run(|r| r.heat.iter().map(|zone| zone.max_celsius).reduce(f64::max)), "on platforms with [thermal zones](thermal.md): of the hottest zone, at most").needs(&[Temperatures]),
    one("capped", Time, Run(|r| { let all = r.cooling.iter().map(|c| c.capped_ms).sum(); Some(all).filter(|_| !r.heat.is_empty()) }), "on platforms with thermal zones: time that the highest frequency of a domain was lowered, of all domains together").needs(&[Temperatures]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_name_a_key_and_a_row_are_one_figures() {
        let mut seen = BTreeSet::new();
        for f in FIGURES {
            let of = format!("{:?}", f.of());
            f.names().for_each(|name| {
                assert!(seen.insert(("name", of.clone(), name.clone())), "{of} {name}")
            });
            if let Some(key) = f.json {
                assert!(seen.insert(("key", of.clone(), key.to_string())), "{of} {key}");
            }
            for row in
                f.csv.iter().flat_map(|name| Figure { name, ..*f }.names().collect::<Vec<_>>())
            {
                assert!(seen.insert(("row", of.clone(), row.clone())), "{of} {row}");
            }
        }
    }

    #[test]
    fn a_figure_is_known_by_its_whole_name() {
        let known = |name: &str| -> Vec<&str> {
            FIGURES.iter().filter(|f| f.asked(name).is_some()).map(|f| f.name).collect()
        };
        assert_eq!(known("response_p99_9"), ["response"]);
        assert_eq!(known("activation_longer_p50"), ["activation_longer"]);
        assert_eq!(known("longer_p50"), ["longer"]);
        assert_eq!(known("longer"), ["longer"], "of a task, which has no percentiles");
        for none in ["response", "activation_mean", "p99", "response_p98", "energy_", ""] {
            assert_eq!(known(none), [""; 0], "{none}");
        }
    }

    #[test]
    fn what_is_better_and_what_is_weak_are_the_figures_own() {
        assert_eq!(less_is_better("work"), Some(false));
        assert_eq!(less_is_better("migrations"), None);
        assert_eq!(less_is_better("response_p99"), Some(true));
        assert_eq!(weakness("task_energy"), Weak::Energy);
        assert_eq!(weakness("wu_lat_p99"), Weak::Wakeups);
        assert_eq!(weakness("wakeup_p50"), Weak::Speed, "no caution is about the middle");
        assert_eq!(weakness("energy_p50"), Weak::Energy, "a power is off everywhere");
    }
}
