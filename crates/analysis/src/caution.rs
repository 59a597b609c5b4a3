//! Doubts about figures known to be weak: what was measured beside real kernels, as a table.
//!
//! A row of [`WEAK`] is a class of experiments, the figures that are weak there, how far off they typically are, and
//! why. A figure that is not in it is as good as docs/accuracy.md says; what was never measured is in it only where nothing
//! like it was. docs/accuracy.md shows where each number comes from, and a test holds the two together.

use crate::metric::Metric;
use crate::named::weakness;
use crate::result::RunResult;
pub use crate::weak::{Caution, Weak as Figure};
use risetime_kernel::features;
use risetime_model::platform::SMT_SPEED;
use risetime_model::workload::{Attr, Event, Policy, TaskSpec};
use risetime_model::{Experiment, Workload};

use Figure::{Activations, Energy, Migrations, Responses, Speed, Wakeups};

/// A class of experiments with the figures that are weak there.
pub struct Weak {
    /// Whether an experiment is of it.
    of: fn(&Experiment) -> bool,
    /// The caution to give.
    pub says: Caution,
}

const fn weak(
    of: fn(&Experiment) -> bool,
    figures: &'static [Figure],
    [figure, typical, why]: [&'static str; 3],
) -> Weak {
    Weak { of, says: Caution { of: figures, figure, typical, why } }
}

/// The weakest first.
pub const WEAK: &[Weak] = &[
    weak(
        |e| e.platform.nr_cpus() > 8,
        &[Speed, Activations, Wakeups, Responses, Migrations, Energy],
        [
            "every figure",
            "size of the error unknown",
            "no machine of more than 8 CPUs was held against a real kernel",
        ],
    ),
    weak(
        |e| {
            e.platform.topology.smt() && tasks(e).count() > 1 && e.policy.said(&SMT_SPEED).is_none()
        },
        &[Speed, Activations, Responses, Energy],
        [
            "beside a busy thread of the core",
            "as far off as the estimate",
            "a thread's speed is then taken to be 640 of 1024",
        ],
    ),
    weak(
        |e| {
            e.policy.kernel.has(features::PREEMPT_LAZY)
                && tasks(e).count() > 1
                && any(e, |p| *p == Policy::Idle)
        },
        &[Activations, Responses],
        [
            "p99 beside SCHED_IDLE tasks",
            "3 to 30 % off",
            "they are charged 341 times the µs from a wakeup to the switch",
        ],
    ),
    weak(
        |e| {
            tasks(e).filter(|t| never_sleeps(t)).count() > e.platform.nr_cpus()
                && tasks(e).any(|t| !never_sleeps(t))
        },
        &[Activations, Wakeups, Responses],
        [
            "p99 beside more busy tasks than CPUs",
            "about 18 % off",
            "whom a tick finds on which CPU differs from run to run",
        ],
    ),
    weak(
        |e| e.policy.kernel.has(features::RT_NAPS_LOCK_IN) && real_time(e) > 1,
        &[Activations, Wakeups, Responses],
        [
            "p99 of real-time tasks that share a CPU",
            "about 18 % off in 2 cases of 6",
            "their naps lock into the tick",
        ],
    ),
    weak(
        spread,
        &[Wakeups],
        [
            "p99 of wakeups",
            "21 of 46 more than 5 % off",
            "among tasks that may use several CPUs a microsecond decides who goes where",
        ],
    ),
    weak(
        spread,
        &[Activations, Responses],
        [
            "p99",
            "every third more than 5 % off, up to 21 %",
            "among tasks that may use several CPUs a microsecond decides who goes where",
        ],
    ),
    weak(
        |e| {
            let nested = !e.policy.kernel.has(features::FLAT_QUEUE);
            spread(e) && !e.workload.groups.is_empty() && nested
        },
        &[Migrations],
        [
            "migrations",
            "a quarter of the moves differ",
            "before 7.3 nobody tells the loads of task groups",
        ],
    ),
    weak(
        estimated_power,
        &[Energy],
        [
            "energy",
            "as far off as the estimate",
            "this platform's power is estimated, not measured",
        ],
    ),
];

/// Finds the cautions about these figures of `e`, the weakest figure first.
pub fn cautions(e: &Experiment, shown: &[Figure]) -> Vec<Caution> {
    let of = |w: &&Weak| w.says.of.iter().any(|f| shown.contains(f)) && (w.of)(e);
    WEAK.iter().filter(of).map(|w| w.says).collect()
}

/// Lists the figures that a report of a run shows.
pub fn shown(run: &RunResult) -> Vec<Figure> {
    // Fewer kinds of tasks than three have no tables of their own.
    let tables = [Activations, Wakeups].into_iter().filter(|_| run.latency.len() > 2);
    let jobs = (!run.jobs.is_empty()).then_some(Responses);
    [Speed].into_iter().chain(tables).chain(jobs).collect()
}

/// Classifies a metric as a figure that may be weak; [`Speed`] for all that are not weak anywhere
/// by themselves.
pub fn of_metric(metric: &Metric) -> Figure {
    weakness(metric.name.rsplit('.').next().unwrap_or(&metric.name))
}

fn tasks(e: &Experiment) -> impl Iterator<Item = &TaskSpec> {
    let w: &Workload = &e.workload;
    w.tasks.iter().chain(&w.forked)
}

fn attrs(task: &TaskSpec) -> impl Iterator<Item = &Attr> {
    std::iter::once(&task.attr).chain(task.phases.iter().map(|p| &p.attr))
}

fn any(e: &Experiment, of: impl Fn(&Policy) -> bool) -> bool {
    tasks(e).flat_map(attrs).any(|a| a.policy.as_ref().is_some_and(&of))
}

fn is_real_time(task: &TaskSpec) -> bool {
    attrs(task).any(|a| matches!(a.policy, Some(Policy::Fifo { .. } | Policy::Rr { .. })))
}

/// The CPUs that a task is bound to at its creation; `None`: to none.
fn bound(task: &TaskSpec) -> Option<usize> {
    task.attr.cpus.as_ref().map(Vec::len)
}

/// The most real-time tasks that are bound to one CPU.
fn real_time(e: &Experiment) -> usize {
    let on = |cpu| {
        tasks(e).filter(|t| is_real_time(t) && t.attr.cpus.as_deref() == Some(&[cpu])).count()
    };
    e.platform.cpus().map(on).max().unwrap_or(0)
}

/// Whether there are several tasks on several CPUs, two of them at least not bound to one CPU.
fn spread(e: &Experiment) -> bool {
    e.platform.nr_cpus() > 1 && tasks(e).filter(|t| bound(t) != Some(1)).count() > 1
}

/// Whether the platform's power is an estimate, by the words of its file: `opp = "…; power:
/// estimate"`.
fn estimated_power(e: &Experiment) -> bool {
    let opp = e.platform.sources.get("opp").map_or("", String::as_str);
    opp.starts_with("estimate") || opp.contains("power: estimate")
}

fn never_sleeps(task: &TaskSpec) -> bool {
    let busy = |e: &Event| {
        use Event::{Busy, Run, RunOf, Runtime};
        matches!(e, Run(_) | RunOf { .. } | Runtime { .. } | Busy(_))
    };
    let mut events = task.phases.iter().flat_map(|p| &p.events).peekable();
    events.peek().is_some() && events.all(busy)
}
