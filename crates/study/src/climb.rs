//! Climb of util_est while a task runs, counted from its first reason to.
//!
//! ```text
//! onset     the first update after t0 (the burst's start) at which util_avg > util_avg at the last
//!           dequeue: from here on patch 9 of RFC 00/16 lets util_est rise
//! wait      onset − t0
//! ticks(x)  ⌈(t(x) − onset) / tick⌉ + 1, t(x) the first time that x is reached: the tick of the
//!           onset is the first one, and what it adds is there after 1
//! ```
//!
//! Left out: a burst that begins inside another one's signals (`start_util`): there is no dequeue
//! that its util could be compared with.

use super::measure::t0;
use risetime_kernel::units::{Instant, TaskId};
use risetime_lab::Run;
use risetime_model::study::Quantity;
use risetime_trace::{Event, Header, SwitchOut, TraceSink};

/// Error that a time may have, in ticks: t0 is in ms, as a double.
const EPSILON: f64 = 1e-6;

/// util_avg and util_est of the first task, and when it slept.
#[derive(Clone, Debug, Default)]
pub(super) struct Climb {
    first: Option<TaskId>,
    /// (ms, util_avg) at each update.
    util: Vec<(f64, u64)>,
    /// (ms, util_est) at each change.
    est: Vec<(f64, u64)>,
    /// (ms, util_avg then) of each sleep.
    dequeued: Vec<(f64, u64)>,
}

impl TraceSink for Climb {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        let ours = |task: &TaskId| self.first == Some(*task);
        match event {
            Event::TaskNew { task, user: true, .. } => self.first = self.first.or(Some(*task)),
            Event::PeltTask { task, util_avg, .. } if ours(task) => {
                self.util.push((at.as_ms(), util_avg.0));
            }
            Event::UtilEst { task, util_est } if ours(task) => {
                self.est.push((at.as_ms(), util_est.0));
            }
            Event::Switch { prev: Some((task, SwitchOut::Sleeping)), .. } if ours(task) => {
                let util = self.util.last().map_or(0, |(_, util)| *util);
                self.dequeued.push((at.as_ms(), util));
            }
            _ => {}
        }
    }
    fn end(&mut self, _: Instant) {}
}

impl Climb {
    /// The time at which util_avg first exceeds its value at the last dequeue before `t0`; `None`:
    /// never.
    pub(super) fn onset(&self, t0: f64) -> Option<f64> {
        let before = self.dequeued.partition_point(|(t, _)| *t <= t0 + EPSILON);
        let dequeued = before.checked_sub(1).map_or(0, |i| self.dequeued[i].1);
        first_above(&self.util, t0, dequeued + 1)
    }

    /// util_est at that time.
    pub(super) fn est_at(&self, ms: f64) -> Option<u64> {
        let n = self.est.partition_point(|(t, _)| *t <= ms + EPSILON);
        Some(self.est.get(n.checked_sub(1)?)?.1)
    }

    /// The number of a row in this run.
    pub(super) fn number(
        &self,
        quantity: Quantity,
        at: f64,
        run: &Run,
        tick_ms: f64,
    ) -> Option<f64> {
        let t0 = t0(run)?;
        let onset = self.onset(t0)?;
        let ticks = |t: f64| ((t - onset) / tick_ms - EPSILON).ceil().max(0.0) + 1.0;
        let speed = || {
            let speeds = &run.timeline.as_ref()?.speed;
            Some(speeds.iter().find(|(t, s)| *t >= t0 && *s >= at)?.0)
        };
        match quantity {
            Quantity::EstWait => Some(onset - t0),
            Quantity::EstAfter => Some(self.est_at(onset + at)? as f64),
            Quantity::EstTicks => first_above(&self.est, onset, at as u64).map(ticks),
            Quantity::AvgTicks => first_above(&self.util, onset, at as u64).map(ticks),
            Quantity::SpeedTicks => speed().map(ticks),
            _ => None,
        }
    }
}

fn first_above(all: &[(f64, u64)], from: f64, level: u64) -> Option<f64> {
    let start = all.partition_point(|(t, _)| *t < from - EPSILON);
    all[start..].iter().find(|(_, value)| *value >= level).map(|(t, _)| *t)
}
