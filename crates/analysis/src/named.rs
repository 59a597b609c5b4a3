//! Every figure that has a name, and what it is: the page `docs/figures.md` is made of this.
//!
//! What computes them is [`Metric::of`](crate::metric::Metric::of); a test holds the two together.

use crate::metric::{Metric, Unit};

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

/// A figure, or several that differ in the percentile alone.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Owner of the figure.
    pub of: Owner,
    /// Name of the figure behind the owner's; where there are [`statistics`](Named::statistics),
    /// the part before theirs.
    pub name: &'static str,
    /// `p50` of `response_p50`; none: one figure.
    pub statistics: &'static [&'static str],
    /// Unit of the figure.
    pub unit: Unit,
    /// Meaning of the figure, in Markdown.
    pub about: &'static str,
}

impl Named {
    /// The names of its figures behind the owner's: `response_min`, `response_mean`, …
    pub fn names(&self) -> Vec<String> {
        match self.statistics {
            [] => vec![self.name.to_string()],
            all => all.iter().map(|x| format!("{}_{x}", self.name)).collect(),
        }
    }

    /// Whether less of it is better; `None`: neither.
    pub fn less_is_better(&self) -> Option<bool> {
        Metric::new(self.name).less_is_better()
    }
}

/// The statistics of a figure that each job, activation or wakeup has.
pub const ALL: &[&str] = &["min", "mean", "p50", "p90", "p95", "p99", "p99_9", "max"];
/// Statistics of how long activations take.
pub const FEWER: &[&str] = &["p50", "p90", "p99", "p99_9", "max"];

const fn one(of: Owner, name: &'static str, unit: Unit, about: &'static str) -> Named {
    Named { of, name, statistics: &[], unit, about }
}

const fn each(of: Owner, name: &'static str, unit: Unit, about: &'static str) -> Named {
    Named { of, name, statistics: ALL, unit, about }
}

use Owner::{Group, Job, Run, Task};
use Unit::{Count, Energy, Temperature, Time};

/// All figures, in the order of the page.
pub const NAMED: &[Named] = &[
    each(
        Job,
        "response",
        Time,
        "from release to done, of jobs that are done; of overdue ones, as long as they have taken",
    ),
    each(Job, "lateness", Time, "from due to done, of the same jobs; below 0: in time"),
    each(Job, "longer", Time, "how much longer a job took than the same work takes at full speed"),
    each(Job, "energy", Energy, "what one job took, of those that are done"),
    one(
        Job,
        "energy",
        Energy,
        "what a job took: the energy of the job's tasks over the whole run, by jobs done (`mJ each`)",
    ),
    one(Job, "released", Count, "jobs that began"),
    one(Job, "due", Count, "jobs whose due time is within the run"),
    one(Job, "done", Count, "jobs that were done"),
    one(Job, "missed", Count, "`late` + `merged` + `dropped` + `overdue`"),
    one(Job, "late", Count, "jobs that were done after they were due"),
    one(
        Job,
        "merged",
        Count,
        "jobs for which no work was done: a whole period passed before the program came back to its relative timer",
    ),
    one(
        Job,
        "dropped",
        Count,
        "jobs in whose place a task further on in the chain took a newer one",
    ),
    one(Job, "unfinished", Count, "jobs that were still being worked at when the run ended"),
    one(Job, "overdue", Count, "unfinished jobs that were due by then"),
    one(
        Job,
        "per_second",
        Count,
        "jobs done in a second, from the workload's start on: frames a second",
    ),
    Named {
        of: Task,
        name: "activation",
        statistics: FEWER,
        unit: Time,
        about: "how long an activation takes, from wakeup to sleep",
    },
    each(
        Task,
        "activation_longer",
        Time,
        "how much longer an activation took than the same work takes at full speed",
    ),
    each(Task, "wakeup", Time, "from a wakeup (or the creation) to first running"),
    each(
        Task,
        "wu_lat",
        Time,
        "*timer expiry to running*, as rt-app's `wu_lat` and cyclictest report it: from when the task's timer was due (or another task woke it, or it was created) to first running. It is timer slack, a late interrupt, the way out of an idle state, and then all of `wakeup`, which begins where the task is queued. A real kernel's trace (`--backend vm`, recordings) does not tell when a timer was due: there it is the same as `wakeup`",
    ),
    one(Task, "debt", Time, "of the reported burst: work lost, in ms of full speed"),
    one(Task, "full_speed", Time, "of the reported burst: time until full speed"),
    one(Task, "wait", Time, "time waited for a CPU"),
    one(Task, "running", Time, "time on a CPU"),
    one(Task, "work", Time, "work done, in ms of full speed"),
    one(
        Task,
        "longer",
        Time,
        "how much longer running and waiting took than that work at full speed",
    ),
    one(Task, "task_energy", Energy, "energy while the task ran"),
    one(Task, "migrations", Count, "changes of CPU"),
    one(
        Task,
        "throttled",
        Count,
        "of deadline tasks: how often one was throttled. Its runtime was used up before it slept; or it woke shortly before its next period, which may take a few µs of a task with all its runtime left. Simulated only",
    ),
    one(
        Task,
        "throttled_time",
        Time,
        "of deadline tasks: time waited for the next period's runtime. Simulated only",
    ),
    one(
        Task,
        "throttled_longest",
        Time,
        "of deadline tasks: the longest such wait. Simulated only",
    ),
    one(
        Task,
        "replenished",
        Count,
        "of deadline tasks: how often the next period's runtime came. Simulated only",
    ),
    one(Group, "periods", Count, "periods that ended, as in the group's `cpu.stat`"),
    one(
        Group,
        "throttled",
        Count,
        "periods at whose end the quota was used up on some CPU, as in `cpu.stat`",
    ),
    one(
        Group,
        "throttled_time",
        Time,
        "time until the quota was refilled, of all CPUs together, as in `cpu.stat` (up to 6.5 also while no task of the group waits, as there)",
    ),
    one(Group, "throttled_longest", Time, "the longest such time. Simulated only"),
    one(Run, "energy", Energy, "energy of all CPUs"),
    one(
        Run,
        "work",
        Time,
        "work that all tasks did, in ms of full speed: what the `run`s of their programs come to, whatever kept the CPUs from full speed",
    ),
    one(Run, "wait", Time, "time that all tasks waited for a CPU"),
    one(Run, "migrations", Count, "changes of CPU of all tasks"),
    one(Run, "exited", Count, "tasks that have exited"),
    one(
        Run,
        "makespan",
        Time,
        "from the first creation to the last exit, once all tasks have exited",
    ),
    one(Run, "wakeups", Count, "wake-ups of tasks, in a second of the run"),
    one(
        Run,
        "idle_wakeups",
        Count,
        "wake-ups of CPUs out of an idle state, in a second of the run",
    ),
    one(
        Run,
        "timer_interrupts",
        Count,
        "interrupts of the CPUs' timers, in a second of the run. Simulated only",
    ),
    one(Run, "deep_idle", Time, "time that the CPUs were in their deepest idle state, together"),
    one(
        Run,
        "temperature",
        Temperature,
        "on platforms with [thermal zones](thermal.md): of the hottest zone, at most",
    ),
    one(
        Run,
        "capped",
        Time,
        "on platforms with thermal zones: time that the highest frequency of a domain was lowered, of all domains together",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::all_names;

    /// A figure that is computed and not described here, or the other way round, or with another unit.
    #[test]
    fn what_is_computed_is_described() {
        let text = |of: Owner, name: &str, unit: Unit| format!("{of:?} {name} {unit:?}");
        let mut described: Vec<String> = NAMED
            .iter()
            .flat_map(|n| n.names().into_iter().map(move |name| text(n.of, &name, n.unit)))
            .collect();
        let mut computed: Vec<String> =
            all_names().into_iter().map(|(of, name, unit)| text(of, &name, unit)).collect();
        described.sort();
        computed.sort();
        assert_eq!(described, computed, "left: what is described, right: what is computed");
    }
}
