//! Figures of one thread of a trace, and what its time went to.

use super::parts::{Part, Parts};
use super::period::Jobs;
use super::walk::Walked;
use crate::histogram::{Histogram, Percentiles};
use risetime_kernel::units::{CpuId, KHz, TaskId};
use risetime_model::Name;
use std::collections::BTreeMap;

/// Activations of a thread whose begin and end are kept for its period.
const KEPT: usize = 1 << 16;
/// Times that are kept one by one before there is a histogram.
const FEW: usize = 256;
/// Tasks that are told apart of those for which a thread waited.
const OTHERS: usize = 64;

/// A thread, over the whole trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// The task.
    pub task: TaskId,
    /// Name of the thread when it was first seen.
    pub comm: Name,
    /// Time by what it went to.
    pub parts: Parts,
    /// Number of times that it came to run.
    pub switches: u64,
    /// Number of wakeups that were told, also of a thread that was awake.
    pub wakeups: u64,
    /// Number of activations that are whole: the trace has their wakeup and their sleep.
    pub activations: u64,
    /// Times of these, from wakeup to sleep; `None`: there are none.
    pub took: Option<Percentiles>,
    /// Waits from a wakeup to running; `None`: none was seen.
    pub waited: Option<Percentiles>,
    /// Number of changes of CPU.
    pub moves: u64,
    /// Running time by CPU and frequency, in ms; `None`: not known.
    pub running: Vec<(CpuId, Option<KHz>, f64)>,
    /// Tasks for which it waited, with the ms, the longest first.
    pub waited_for: Vec<(TaskId, Name, f64)>,
    /// Jobs, where its wakeups have a period.
    pub jobs: Option<Jobs>,
}

/// Times of which only the distribution is wanted.
#[derive(Default)]
pub(super) struct Times {
    few: Vec<u64>,
    many: Option<Box<Histogram>>,
}

impl Times {
    pub(super) fn add(&mut self, ns: u64) {
        match &mut self.many {
            Some(many) => many.add(ns),
            None => self.few.push(ns),
        }
        if self.many.is_none() && self.few.len() == FEW {
            self.many = Some(Box::new(self.counted()));
            self.few = Vec::new();
        }
    }

    fn counted(&self) -> Histogram {
        let mut all = Histogram::default();
        self.few.iter().for_each(|ns| all.add(*ns));
        all
    }

    pub(super) fn percentiles(&self) -> Option<Percentiles> {
        self.many.as_ref().map_or_else(|| self.counted().percentiles(), |many| many.percentiles())
    }
}

/// State of a thread while the trace is read.
#[derive(Default)]
pub(super) struct Kept {
    /// Time until which the thread is accounted, in ns.
    pub(super) at: u64,
    pub(super) parts: Parts,
    pub(super) switches: u64,
    pub(super) wakeups: u64,
    /// True if the trace told of the wakeup, or creation, with which its present activation began.
    pub(super) wakeup_told: bool,
    pub(super) moves: u64,
    /// CPU among whose waiters it is.
    pub(super) waits_on: Option<CpuId>,
    pub(super) activations: u64,
    pub(super) took: Times,
    pub(super) waited: Times,
    /// Begins and ends of whole activations.
    pub(super) kept: Vec<(u64, u64)>,
    pub(super) running: BTreeMap<(CpuId, KHz), u64>,
    /// Tasks, by their places, for which it waited.
    pub(super) waited_for: BTreeMap<u32, u64>,
    /// Present activation, where those of the thread are walked.
    pub(super) walked: Option<Box<Walked>>,
}

impl Kept {
    /// Notes an activation that is whole.
    pub(super) fn activation(&mut self, from: u64, to: u64) {
        self.activations += 1;
        self.took.add(to - from);
        if self.kept.len() < KEPT {
            self.kept.push((from, to));
        }
    }

    /// Notes that it waited `dt` ns while the task of this place had the CPU.
    pub(super) fn waits_for(&mut self, place: u32, dt: u64) {
        if self.waited_for.len() < OTHERS || self.waited_for.contains_key(&place) {
            *self.waited_for.entry(place).or_default() += dt;
        }
    }

    /// Notes a piece of time, and the step of the activation that is walked.
    pub(super) fn adds(&mut self, parts: &[(Part, u64)], dt: u64) {
        let mut own = Parts::default();
        parts.iter().for_each(|(part, share)| own.add(*part, dt, *share));
        self.parts.absorb(&own);
        if let Some(walked) = &mut self.walked {
            walked.parts.absorb(&own);
        }
    }
}
