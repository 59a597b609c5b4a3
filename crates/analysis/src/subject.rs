//! The question asked of a workload where the user names none: chosen from its program, before
//! anything runs.
//!
//! ```text
//! jobs         it declares some: all of the first of them; the leading task has a timer: all of its own
//! burst        the leading task's program ends in work without a sleep, behind a rest or from its creation
//! activations  else: all of the leading task
//! ```
//!
//! The leading task is the one that is created first. Nothing of this looks at a run: what is chosen by the figures of one
//! policy (its longest burst, its slowest job) is extreme there by choice, and less so under any other.

use crate::jobs::is_declared;
use crate::latency::group_name;
use crate::metric::Metric;
use crate::task::SLEEP_NS;
use risetime_kernel::units::Span;
use risetime_model::workload::{Event, JobSpec, Phase, Repeat, TaskSpec};
use risetime_model::{Experiment, Workload};

/// The part of a run that is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// All jobs of this name.
    Jobs(String),
    /// The one burst from rest of this task.
    Burst(String),
    /// All activations of tasks of this name.
    Activations(String),
}

impl Subject {
    /// The subject of `e`: of the task or job `whose`, else of the workload's own.
    pub fn of(e: &Experiment, whose: Option<&str>) -> Subject {
        let w = &*e.workload;
        let leading = w.tasks.get(w.first_created()).map_or("", |task| group_name(&task.comm));
        let declares = |job: &&JobSpec| {
            let first = job.tasks.first().and_then(|i| w.tasks.get(*i as usize));
            first.is_some_and(|task| is_declared(job, &task.comm))
        };
        let declared = || w.jobs.iter().find(declares).map(|job| job.name.as_str());
        let whose = whose.or_else(declared).unwrap_or(leading);
        if w.jobs.iter().any(|job| job.name == whose) {
            return Subject::Jobs(whose.into());
        }
        let length = Span(e.duration.0.saturating_sub(e.phase.0));
        match named(w, whose).is_some_and(|task| has_burst(task, length)) {
            true => Subject::Burst(whose.into()),
            false => Subject::Activations(whose.into()),
        }
    }

    /// The name of the job or task that it is about.
    pub fn whose(&self) -> &str {
        match self {
            Subject::Jobs(name) | Subject::Burst(name) | Subject::Activations(name) => name,
        }
    }

    /// The figure that says most of it, for whoever asks for one.
    pub fn figure(&self) -> Metric {
        Metric::new(match self {
            Subject::Jobs(name) => format!("{name}.response_p99"),
            Subject::Burst(name) => format!("{name}.debt"),
            Subject::Activations(name) => format!("{name}.activation_p99"),
        })
    }

    /// Lists the metrics by which two policies are compared: the subject's figures, then the energy
    /// of all CPUs and the work of all tasks in the whole run.
    pub fn figures(&self) -> Vec<Metric> {
        let missed = match self {
            Subject::Jobs(name) => Some(Metric::new(format!("{name}.missed"))),
            _ => None,
        };
        let of_run = [Metric::new("energy"), Metric::new("work")];
        [self.figure()].into_iter().chain(missed).chain(of_run).collect()
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Subject::Jobs(name) => write!(f, "all jobs of {name}, from release to done"),
            Subject::Burst(name) => {
                write!(f, "the burst of {name} from rest, until full speed or its end")
            }
            Subject::Activations(name) => {
                write!(f, "all activations of {name}, from wakeup to sleep")
            }
        }
    }
}

fn named<'w>(w: &'w Workload, whose: &str) -> Option<&'w TaskSpec> {
    let is = |of: fn(&str) -> &str| w.tasks.iter().find(|task| of(&task.comm) == whose);
    is(|comm| comm).or_else(|| is(group_name))
}

/// Whether a run of this length has one burst of `task` from rest: where it begins and that it takes the better part of what is
/// left are in the program, and what was done before is next to nothing (1 %), however slowly it went.
fn has_burst(task: &TaskSpec, length: Span) -> bool {
    let phases = &task.phases;
    let Some(last) = phases.iter().rposition(sleeps) else {
        // Busy from its creation on.
        let endless = task.repeat == Repeat::Forever || lasts(phases, length.0 / 2);
        return task.delay < length && endless;
    };
    let (before, after) = phases.split_at(last + 1);
    // What others wake it by may come at any time.
    let knows = |event: &Event| !may_sleep(event) || matches!(event, Event::Sleep(_));
    let known = before.iter().flat_map(|phase| &phase.events).all(knows);
    let rest = before[last].events.iter().rfind(|event| may_sleep(event));
    let rests = matches!(rest, Some(Event::Sleep(rest)) if rest.0 >= SLEEP_NS);
    let (Some(slept), Some(worked)) = (total(before, asleep), total(before, work)) else {
        return false;
    };
    let begins = task.delay.0.saturating_add(slept).saturating_add(worked);
    let left = length.0.saturating_sub(begins);
    task.repeat == Repeat::Times(1)
        && known
        && rests
        && worked.saturating_mul(100) <= left
        && lasts(after, left / 2)
}

/// Whether the work of these phases takes as long, in ns, at full speed.
fn lasts(phases: &[Phase], ns: u64) -> bool {
    let endless = |p: &Phase| p.repeat == Repeat::Forever && p.events.iter().any(|e| work(e) > 0);
    phases.iter().any(endless) || total(phases, work).is_some_and(|all| all > ns)
}

fn sleeps(phase: &Phase) -> bool {
    phase.events.iter().any(may_sleep)
}

fn may_sleep(event: &Event) -> bool {
    use Event::{Barrier, Duty, Lock, SemWait, Sleep, Timer, Wait};
    matches!(
        event,
        Sleep(_) | Timer { .. } | Duty(_) | Lock(_) | Wait { .. } | Barrier(_) | SemWait(_)
    )
}

fn asleep(event: &Event) -> u64 {
    if let Event::Sleep(time) = event { time.0 } else { 0 }
}

fn work(event: &Event) -> u64 {
    use Event::{Busy, Run, RunOf, Runtime};
    match event {
        Run(time) | RunOf { work: time, .. } | Runtime { time, .. } | Busy(time) => time.0,
        _ => 0,
    }
}

/// The sum over all events, in ns; `None`: a phase is repeated for ever.
fn total(phases: &[Phase], of: fn(&Event) -> u64) -> Option<u64> {
    let phase = |p: &Phase| match p.repeat {
        Repeat::Forever => None,
        Repeat::Times(n) => {
            let once = p.events.iter().fold(0u64, |sum, event| sum.saturating_add(of(event)));
            Some(once.saturating_mul(n.into()))
        }
    };
    phases.iter().try_fold(0u64, |sum, p| Some(sum.saturating_add(phase(p)?)))
}
