//! The states that one task lived through from a moment on, as steps.

use risetime_kernel::units::{CpuId, Instant, KHz, Span, TaskId};
use risetime_trace::tracker::{Doing, Tracker};
use risetime_trace::{Event, Memory};

/// The life of a task from `t0` on. Times count from there, in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Curve {
    /// (time, util_avg) at each update; before the first nothing is known.
    pub util: Vec<(Span, u64)>,
    /// Times at which the task ran: (from, to), in order.
    pub on: Vec<(Span, Span)>,
    /// Stretches of running by place and speed; waiting and sleep in between do not end a stretch.
    pub ran: Vec<Stretch>,
    /// Each change of frequency domain while it was runnable or asleep: (time, first CPU of the
    /// domain it came from, of the one it went to).
    pub moves: Vec<(Span, CpuId, CpuId)>,
    /// Runnable, not running.
    pub waited: Span,
    /// Length of the curve.
    pub length: Span,
}

/// A stretch of running in one domain at one frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Start of the stretch.
    pub from: Span,
    /// End of the stretch.
    pub to: Span,
    /// Time running in it.
    pub ran: Span,
    /// First CPU of the frequency domain.
    pub domain: CpuId,
    /// The frequency there.
    pub freq: KHz,
}

impl Curve {
    /// The curve of `task` from `t0` on, for `length` at most.
    pub fn of(trace: &Memory, task: TaskId, t0: Instant, length: Span) -> Curve {
        let Some(header) = trace.header() else { return Curve::default() };
        let domain_of = |cpu: CpuId| {
            let index = header.machine.platform.domain_of(cpu).unwrap_or(0);
            header.machine.platform.domains[index].cpus[0]
        };
        let end = trace.end().min(t0 + length);
        let (curve, state) = (Curve::default(), Tracker::of(header));
        let mut walk = Walk { curve, t0, since: t0, task, state };
        for (at, event) in trace.events().iter().take_while(|(at, _)| *at < end) {
            match *event {
                Event::PeltTask { task: t, util_avg, .. } if t == task => {
                    walk.util(*at, util_avg.0);
                }
                Event::Migrate { task: t, from, to, .. } if t == task => {
                    walk.moved(*at, domain_of(from), domain_of(to));
                }
                Event::Switch { .. } | Event::Freq { .. } => walk.book(*at),
                Event::TaskNew { task: t, .. } | Event::Wakeup { task: t, .. } if t == task => {
                    walk.book(*at);
                }
                _ => {}
            }
            walk.state.event(*at, event);
        }
        walk.finish(end)
    }

    /// The utils in force at some time within `near` of `after` t0, in their order; empty before
    /// the first is known.
    pub fn utils_near(&self, after: Span, near: Span) -> &[(Span, u64)] {
        let from = self.util.partition_point(|(at, _)| at.0 <= after.0.saturating_sub(near.0));
        let to = self.util.partition_point(|(at, _)| at.0 <= after.0 + near.0);
        &self.util[from.saturating_sub(1)..to]
    }

    /// Whether the task was running `after` t0.
    pub fn runs_at(&self, after: Span) -> bool {
        let i = self.on.partition_point(|(from, _)| *from <= after);
        i.checked_sub(1).is_some_and(|i| after < self.on[i].1)
    }

    /// The util in force `after` t0, if it is known by then.
    pub fn util_at(&self, after: Span) -> Option<u64> {
        self.utils_near(after, Span(0)).last().map(|(_, u)| *u)
    }
}

/// The walk through the events.
struct Walk {
    curve: Curve,
    t0: Instant,
    /// Time since which what the task does is not booked yet.
    since: Instant,
    task: TaskId,
    state: Tracker,
}

impl Walk {
    /// Adds an update of util; one before t0 is the value there, and of several at one moment the
    /// last stands.
    fn util(&mut self, at: Instant, util: u64) {
        let when = at.since(self.t0);
        match self.curve.util.last_mut() {
            Some(last) if last.0 == when => last.1 = util,
            _ => self.curve.util.push((when, util)),
        }
    }

    fn moved(&mut self, at: Instant, from: CpuId, to: CpuId) {
        if at >= self.t0 && from != to {
            self.curve.moves.push((at.since(self.t0), from, to));
        }
    }

    /// Books the time since the last change.
    fn book(&mut self, at: Instant) {
        let from = self.since.max(self.t0);
        self.since = at;
        if at <= from {
            return;
        }
        match self.state.task(self.task).map(|t| t.doing) {
            Some(Doing::Runs(cpu)) => {
                let of = self.state.domain_of(cpu);
                let (domain, freq) = (of.cpus()[0], of.freq().unwrap_or(KHz(0)));
                let ran = at.since(from);
                let (from, to) = (from.since(self.t0), at.since(self.t0));
                match self.curve.on.last_mut() {
                    Some(last) if last.1 == from => last.1 = to,
                    _ => self.curve.on.push((from, to)),
                }
                match self.curve.ran.last_mut() {
                    Some(last) if last.domain == domain && last.freq == freq => {
                        last.to = to;
                        last.ran += ran;
                    }
                    _ => self.curve.ran.push(Stretch { from, to, ran, domain, freq }),
                }
            }
            Some(Doing::Waits) => self.curve.waited += at.since(from),
            _ => {}
        }
    }

    fn finish(mut self, end: Instant) -> Curve {
        self.book(end);
        self.curve.length = end.since(self.t0);
        self.curve
    }
}
