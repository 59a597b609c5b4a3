//! Activations of one task walked step by step: where it ran, at which frequency, and for whom it waited.

use super::parts::{Part, Parts};
use crate::machine::ms;
use risetime_kernel::units::{CpuId, KHz, TaskId};
use risetime_model::Name;

/// Steps that are kept of an activation.
const STEPS: usize = 512;

/// Choice of the activations that are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Walk {
    /// Length that an activation has to exceed, in ns.
    pub over: u64,
    /// Number of activations that are kept at most, the longest ones.
    pub most: usize,
}

/// One thing that a task did without a break.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Begin, in ns of the trace.
    pub from: u64,
    /// End, in ns of the trace.
    pub to: u64,
    /// CPU on which it ran, or for which it waited.
    pub cpu: CpuId,
    /// Activity of the task.
    pub did: Did,
}

/// Activity of a task in a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Did {
    /// Running at this frequency; `None`: not known.
    Ran(Option<KHz>),
    /// Waiting: the reason, and the task that had the CPU.
    Waited(Part, Option<(TaskId, Name)>),
}

/// An activation, from wakeup to sleep.
#[derive(Clone, Debug, PartialEq)]
pub struct Walked {
    /// The task.
    pub task: TaskId,
    /// The task's name.
    pub comm: Name,
    /// Begin, in ns of the trace.
    pub from: u64,
    /// End, in ns of the trace.
    pub to: u64,
    /// True if the trace has it from its wakeup to its sleep.
    pub whole: bool,
    /// Sums of its time; they are `to` − `from`.
    pub parts: Parts,
    /// Number of changes of CPU.
    pub moves: u32,
    /// Steps in their order.
    pub steps: Vec<Step>,
    /// Number of further steps that were not kept.
    pub more: u32,
}

impl Walked {
    /// Returns an activation that begins at `now`.
    pub(super) fn new(task: TaskId, comm: Name, now: u64, whole: bool) -> Walked {
        Walked {
            task,
            comm,
            from: now,
            to: now,
            whole,
            parts: Parts::default(),
            moves: 0,
            steps: Vec::new(),
            more: 0,
        }
    }

    /// Returns the time that it took, in ms.
    pub fn took_ms(&self) -> f64 {
        ms(self.to - self.from)
    }

    /// Adds what the task did last.
    pub(super) fn step(&mut self, step: Step) {
        self.to = step.to;
        if let Some(last) = self.steps.last_mut()
            && (last.cpu, last.did, last.to) == (step.cpu, step.did, step.from)
            && self.more == 0
        {
            last.to = step.to;
        } else if self.steps.len() < STEPS {
            self.steps.push(step);
        } else {
            self.more += 1;
        }
    }
}

/// Collection of the longest activations.
#[derive(Debug, Default)]
pub(super) struct Longest {
    pub(super) all: Vec<Walked>,
}

impl Longest {
    /// Takes in an activation that is over.
    pub(super) fn keep(&mut self, one: Walked, of: Walk) {
        if one.to - one.from <= of.over {
            return;
        }
        self.all.push(one);
        if self.all.len() >= 2 * of.most.max(1) {
            self.prune(of);
        }
    }

    /// Drops all but the longest, and puts these in the order of their length.
    pub(super) fn prune(&mut self, of: Walk) {
        self.all.sort_by_key(|one| (std::cmp::Reverse(one.to - one.from), one.from));
        self.all.truncate(of.most);
    }
}
