//! Sets of real-time tasks: what the literature on schedulability draws and compares, and what its simulators read.
//!
//! ```text
//!  rt-app JSON ──> Workload ──┐                      ┌──> rt-app JSON (a policy chosen): risetime run, a real kernel
//!  PARTSim YAML ──────────────┼──> TaskSet ──────────┤
//!  drawn by seed (deploy) ────┤                      └──> Needs: risetime deploy plan
//!  needs (TOML) ──────────────┘
//! ```
//!
//! A task comes at least a period apart, does the steps of its code, and is due. Tasks wait for each other in semaphores: a
//! *graph* of tasks has one for each of its edges, which the task before gives and the task behind takes. Mutexes are shared
//! resources. A *server* is a constant-bandwidth server (Abeni and Buttazzo 1998) of one task, which is what SCHED_DEADLINE
//! gives each of its tasks.

mod partsim;
mod rtapp;

pub use rtapp::Scheduling;

use crate::InputError;
use crate::needs::{Need, Needs, What};
use risetime_kernel::units::{CpuId, Span};

/// Tasks that share resources. Validated: names differ, steps name resources that there are, a mutex is held by one task and
/// given back by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskSet {
    /// Name of the set.
    pub name: String,
    /// The tasks, in the order of the file.
    pub tasks: Vec<RtTask>,
    /// Resources, which steps name by number.
    pub resources: Vec<Resource>,
    /// Notes for the reader on what of the file has no effect here.
    pub notes: Vec<String>,
}

/// A task that comes again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RtTask {
    /// Name of the task.
    pub name: String,
    /// Place in the file; empty: the task was drawn.
    pub at: String,
    /// The shortest time between two of its jobs.
    pub period: Span,
    /// Relative deadline of a job, from when it came; may be longer than the period.
    pub deadline: Span,
    /// Time at which the first job comes.
    pub offset: Span,
    /// Code of each job.
    pub code: Vec<Step>,
    /// The task's server; `None`: one of what the task needs, in each period.
    pub server: Option<Server>,
    /// CPUs that the task may run on; `None`: all.
    pub cpus: Option<Vec<CpuId>>,
}

/// A constant-bandwidth server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// Runtime in each period.
    pub runtime: Span,
    /// Relative deadline, from an activation.
    pub deadline: Span,
    /// Period.
    pub period: Span,
}

/// A step of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Work: ns of a CPU of capacity 1024 at its highest frequency; which kind, where it is none of the plain.
    Run(Span, Option<String>),
    /// Time by the clock, with the CPU or without, however fast that is (rt-app's `runtime`).
    Time(Span),
    /// Lock a mutex.
    Lock(usize),
    /// Unlock it.
    Unlock(usize),
    /// Take one of a semaphore, or wait for it.
    Take(usize),
    /// Give one.
    Give(usize),
}

/// Object that tasks share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Name of the resource.
    pub name: String,
    /// Kind of the resource.
    pub kind: ResourceKind,
}

/// Kind of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    /// One task has it at a time.
    Mutex,
    /// Counts; so many are there at first.
    Semaphore(u32),
}

/// The shortest runtime that SCHED_DEADLINE takes (`1 << DL_SCALE` ns), in whole µs.
const LEAST: Span = Span::from_us(2);

impl RtTask {
    /// The most that a job does: its work of every kind, and the time that passes by the clock.
    pub fn work(&self) -> Span {
        self.code.iter().fold(Span(0), |sum, step| match step {
            Step::Run(work, _) | Step::Time(work) => Span(sum.0.saturating_add(work.0)),
            _ => sum,
        })
    }

    /// The part of [`RtTask::work`] that passes by the clock, whatever the CPU's speed.
    pub fn clock(&self) -> Span {
        self.code.iter().fold(Span(0), |sum, step| match step {
            Step::Time(time) => Span(sum.0.saturating_add(time.0)),
            _ => sum,
        })
    }

    /// Sums up the work of a job by kind, in the order in which kinds are first named; the plain
    /// kind has no name.
    pub fn work_by_kind(&self) -> Vec<(Option<String>, Span)> {
        let mut all: Vec<(Option<String>, Span)> = Vec::new();
        for step in &self.code {
            let Step::Run(work, kind) = step else { continue };
            match all.iter_mut().find(|(known, _)| known == kind) {
                Some((_, sum)) => sum.0 = sum.0.saturating_add(work.0),
                None => all.push((kind.clone(), *work)),
            }
        }
        all
    }
}

impl TaskSet {
    /// The set in the file `path`: rt-app JSON (a built-in workload, too), or PARTSim's YAML where the name ends so.
    /// `tick`: what PARTSim's numbers count.
    ///
    /// Errors: what is wrong in it, with its place; a workload that is no set of periodic tasks.
    pub fn load(path: &str, tick: Span) -> Result<TaskSet, InputError> {
        match is_yaml(path) {
            true => partsim::load(path, tick),
            false => TaskSet::of_workload(&crate::Workload::load(path)?),
        }
    }

    /// The set in `text`, a task file of PARTSim; `file` is what errors call it.
    ///
    /// Errors: as [`TaskSet::load`]'s.
    pub fn parse_partsim(text: &str, file: &str, tick: Span) -> Result<TaskSet, InputError> {
        partsim::parse(text, file, tick)
    }

    /// The order between tasks, as (before, after): the one that gives a semaphore, and those that
    /// take it.
    pub fn edges(&self) -> Vec<(usize, usize)> {
        let mut edges = Vec::new();
        for (from, task) in self.tasks.iter().enumerate() {
            for give in &task.code {
                let Step::Give(resource) = give else { continue };
                // What is there from the start is a bound on how far one is ahead, not an order within a period.
                if self.resources[*resource].kind != ResourceKind::Semaphore(0) {
                    continue;
                }
                let takes = |t: &RtTask| t.code.contains(&Step::Take(*resource));
                let to = (0..self.tasks.len()).filter(|to| *to != from && takes(&self.tasks[*to]));
                edges.extend(to.map(|to| (from, to)));
            }
        }
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    /// The needs of the set, with each task guaranteed. A deadline behind the end of the period
    /// counts as the end: the tests of a plan know no others.
    pub fn needs(&self) -> Needs {
        let need = |t: &RtTask| Need {
            name: t.name.clone(),
            at: if t.at.is_empty() {
                format!("{}: task `{}`", self.name, t.name)
            } else {
                t.at.clone()
            },
            what: What::Job {
                // A task that only waits and gives takes a little time, too.
                runtime: t.work().max(LEAST),
                period: t.period,
                deadline: t.deadline.min(t.period),
            },
            kinds: t.work_by_kind().into_iter().filter_map(|(k, w)| Some((k?, w))).collect(),
            clock: t.clock(),
            cpus: t.cpus.clone(),
        };
        Needs { name: self.name.clone(), tasks: self.tasks.iter().map(need).collect() }
    }

    /// The tasks of a file of needs whose time is known; those of which a period or a priority alone is known are left out, and a
    /// note says so.
    pub fn of_needs(needs: &Needs) -> TaskSet {
        let mut set = TaskSet { name: needs.name.clone(), ..TaskSet::default() };
        for need in &needs.tasks {
            let (runtime, period, deadline) = match need.what {
                What::Job { runtime, period, deadline } => (runtime, period, deadline),
                What::Share { runtime, period } => (runtime, period, period),
                What::Period(_) | What::Priority(_) => {
                    set.notes.push(format!(
                        "{} is left out: it does not say how long it takes",
                        need.name
                    ));
                    continue;
                }
            };
            let of_kinds: u64 = need.kinds.iter().map(|(_, work)| work.0).sum();
            let plain = Span(runtime.0.saturating_sub(of_kinds.saturating_add(need.clock.0)));
            let mut code: Vec<Step> = need
                .kinds
                .iter()
                .map(|(kind, work)| Step::Run(*work, Some(kind.clone())))
                .collect();
            if plain > Span(0) {
                code.push(Step::Run(plain, None));
            }
            if need.clock > Span(0) {
                code.push(Step::Time(need.clock));
            }
            set.tasks.push(RtTask {
                name: need.name.clone(),
                at: need.at.clone(),
                period,
                deadline,
                code,
                cpus: need.cpus.clone(),
                ..RtTask::default()
            });
        }
        set
    }
}

/// Whether a file of this name is YAML.
pub fn is_yaml(path: &str) -> bool {
    path.ends_with(".yml") || path.ends_with(".yaml")
}
