//! Results of following: what was asked and compared, and what the reference does not say of
//! itself.

use crate::state::hooks::{Answer, Point};
use risetime_kernel::units::{CpuId, Instant, KHz, Span, TaskId};

/// State of the reference that its events do not say.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Time from 0 to the first tick.
    pub first_tick: Span,
    /// Times at which each frequency change was wanted, by the domain's first CPU: then and from
    /// then on the governor there counted with it. Ascending.
    pub wanted: Vec<(Instant, CpuId, KHz)>,
    /// The thread that creates the workload's tasks, in the reference's numbers: the agent's binds itself to one CPU.
    pub creator: Option<TaskId>,
}

/// A decision that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Time of the decision.
    pub at: Instant,
    /// Decision that was asked about. Tasks have the reference's numbers.
    pub point: Point,
    /// The answer here.
    pub own: Answer,
    /// The reference's, where it was known when asked.
    pub given: Option<Answer>,
    /// Answer of a simple mind: the previous CPU, the task that waits longest.
    pub trivial: Option<Answer>,
    /// Among how many it was chosen: CPUs allowed, tasks runnable. 0: not counted.
    pub of: usize,
    /// Meaning of the reference's answer here: the branch that would have given it.
    pub theirs: &'static str,
}

/// A value of the state, before the reference's was taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Time of the comparison.
    pub at: Instant,
    /// Name of the value.
    pub what: &'static str,
    /// CPU that the value is of.
    pub cpu: Option<CpuId>,
    /// Task of the reference's that the value is of.
    pub task: Option<TaskId>,
    /// Value here.
    pub own: i64,
    /// Value in the reference.
    pub given: i64,
}

impl Compared {
    /// Whether the two values differ by more than a later or earlier update explains: utilisations
    /// by 2 of 1024, loads by 1 %, times by 100 µs.
    pub fn is_far_off(&self) -> bool {
        let far = match self.what {
            "vruntime" | "deadline" | "vprot" | "vlag" | "zero_vruntime" => 100_000,
            "dl runtime" | "dl deadline" => 100_000,
            "running_bw" => 1 << 10,
            "task load_avg" | "cfs_rq load_avg" | "weight" => self.given.unsigned_abs() / 100 + 2,
            _ => 2,
        };
        self.own.abs_diff(self.given) > far
    }
}

/// Counts of what the reference did that this machine's state had no room for; it was put right
/// each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Wakeups of tasks that were awake here.
    pub wakeups: u64,
    /// Switches from another task than had the CPU here.
    pub switches: u64,
    /// Picks where another class than the picked task's had a task to run.
    pub picks: u64,
}

/// Results of following.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    /// All decisions, in their order.
    pub asked: Vec<Asked>,
    /// All values of the state.
    pub compared: Vec<Compared>,
    /// Counts of where the two were not in step.
    pub lost: Lost,
}

impl Followed {
    /// Whether state of one of the CPUs or of the task was found far off within `span` before `at`.
    pub fn is_far_off(
        &self,
        at: Instant,
        span: Span,
        cpus: &[CpuId],
        task: Option<TaskId>,
    ) -> bool {
        self.compared.iter().any(|c| {
            let near = c.at <= at && at.since(c.at) < span && c.is_far_off();
            near && (c.cpu.is_some_and(|cpu| cpus.contains(&cpu))
                || task.is_some() && c.task == task)
        })
    }
}
