//! Check of a plan by a run as its user will run it: beside its proof, the other half of a
//! guarantee.

use crate::plan::{NoRoom, Plan, Rules};
use risetime_kernel::units::{CpuId, Span};

/// A plan and what became of it.
#[derive(Clone, Debug)]
pub struct Tried {
    /// Rules of the plan.
    pub rules: Rules,
    /// The plan, or the tasks that have no place.
    pub plan: Result<Plan, Vec<NoRoom>>,
    /// Trials of the plan; `None`: there is nothing to try.
    pub promise: Option<Promise>,
    /// Changes that would make it guaranteed where it is not: found by trying.
    pub instead: Vec<String>,
    /// Suppositions of a proof about the machine.
    pub assumes: Vec<String>,
}

impl Tried {
    /// Whether every task that says how long it takes is guaranteed.
    pub fn guaranteed(&self) -> bool {
        self.plan.as_ref().is_ok_and(Plan::proven)
            && self.promise.as_ref().is_none_or(Promise::kept)
    }

    /// Whether this task of a plan is: the tests admit all of its CPU, and it missed nothing.
    pub fn guarantees(&self, task: &str) -> bool {
        let Ok(plan) = &self.plan else { return false };
        let Some(own) = plan.tasks.iter().find(|t| t.name == task && t.wanted) else {
            return false;
        };
        let proven = plan.used.iter().any(|u| u.cpu == own.cpu && u.proof.is_ok());
        proven && self.promise.as_ref().is_some_and(|p| p.keeps(task))
    }

    /// The distance from a guarantee: the lower, the nearer.
    pub fn rank(&self) -> u32 {
        let kept = self.promise.as_ref().is_some_and(Promise::kept);
        match &self.plan {
            _ if self.guaranteed() => 0,
            Ok(_) if kept => 1,
            Ok(_) => 2,
            Err(_) => 3,
        }
    }
}

/// A plan, tried.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Promise {
    /// The kernel, as a policy's name.
    pub policy: String,
    /// Governor that it was tried under.
    pub governor: String,
    /// Settings that somebody asked for, `name=value`.
    pub set: Vec<String>,
    /// Each run is so long from the first job on.
    pub length: Span,
    /// Trials that were run.
    pub trials: Vec<Trial>,
}

/// Some runs of the same company.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Beside whom.
    pub company: Company,
    /// Number of runs.
    pub runs: u32,
    /// Jobs of tasks that are to be guaranteed, due within them.
    pub due: u64,
    /// Number of due jobs that were not done by then.
    pub missed: u64,
    /// The miss that comes first in its run.
    pub first: Option<Miss>,
    /// The least that was left of a deadline, in ms, and of which task; of none that is missed.
    pub least: Option<(String, f64)>,
    /// The kernel refuses what the plan asks for.
    pub refused: Option<String>,
    /// Tasks that missed something.
    pub late: Vec<String>,
}

/// A missed deadline.
#[derive(Clone, Debug, PartialEq)]
pub struct Miss {
    /// The task that was late.
    pub task: String,
    /// Time at which the job was due, in ms from the start.
    pub due_ms: f64,
    /// Delay after which the job was done, in ms; `None`: it had not begun, or was not done by the
    /// end.
    pub late_ms: Option<f64>,
}

/// The tasks that run beside those that are to be guaranteed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    /// An ordinary task that never sleeps on each CPU with such tasks; those of unknown length take a tenth of their time.
    Busy,
    /// Only the tasks of unknown length, which take a tenth of their time.
    Alone,
    /// Company as [`Company::Busy`], and tasks of unknown length never sleep, but for those that
    /// are trusted.
    Crowded,
}

impl Promise {
    /// Whether no job was missed in any run, and there were some.
    pub fn kept(&self) -> bool {
        !self.trials.is_empty() && self.trials.iter().all(|t| t.missed == 0 && t.refused.is_none())
    }

    /// Whether this task missed none.
    pub fn keeps(&self, task: &str) -> bool {
        self.trials.iter().all(|t| t.refused.is_none() && !t.late.iter().any(|late| late == task))
    }

    /// The first miss of the first trial that has one, and beside whom.
    pub fn first(&self) -> Option<(&Miss, Company)> {
        self.trials.iter().find_map(|t| Some((t.first.as_ref()?, t.company)))
    }
}

/// A measurement of interference.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The file.
    pub file: String,
    /// `osnoise` or `timerlat`.
    pub tool: String,
    /// CPUs that it is of; of several the worst counts.
    pub cpus: Vec<CpuId>,
    /// The longest at once.
    pub longest: Span,
    /// Interference in a second, on the average; of timers: none.
    pub each_second: Span,
}
