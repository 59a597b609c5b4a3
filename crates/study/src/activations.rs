//! The activations of a run's first task: what it needed, what was known of it, how fast it ran.
//!
//! ```text
//! woken ──── runs at f0 ──── f1 ──── ended      one activation: from a wakeup to the dequeue to sleep
//!   │          │  tick: util_est rises?  │
//!   └──────────┴── slack = period − (ended − woken), below 0 where it came too late ──┘
//! ```
//!
//! A dequeue's own sample of util_est comes at its very instant and is no rise while running.
//! Frequencies are weighted with the time that the task runs at them.
//!
//! Left out: an activation that the run cuts off.

use risetime_kernel::units::{Instant, TaskId};
use risetime_model::platform::Domain;
use risetime_trace::tracker::{Doing, Tracker};
use risetime_trace::{Event, Header, SwitchOut, TraceSink};

/// Time until which a task is as it was forked, and its util_est falls after its util, in mainline,
/// too.
pub(super) const SETTLED: Instant = Instant(1_000_000_000);

/// An activation of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Activation {
    pub(super) woken: Instant,
    pub(super) ended: Instant,
    /// util_avg and util_est when it ended.
    pub(super) util: u64,
    pub(super) est: u64,
    /// util_est rose while the task ran: what patch 9 takes for a transition.
    pub(super) rose: bool,
    /// kHz · ns that it ran for, and the ns.
    pub(super) cycles: u64,
    pub(super) ran: u64,
}

/// All of the first task, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Activations {
    pub(super) all: Vec<Activation>,
    /// Cycles of the activation so far.
    cycles: u64,
    ran: u64,
    first: Option<TaskId>,
    util: u64,
    est: u64,
    /// The first rise of util_est in the activation; 0: one that no dequeue can have made.
    rise: Option<Instant>,
    /// Time since which what the task runs is not accounted yet.
    since: Instant,
    /// State of machine and tasks.
    state: Tracker,
    /// kHz of each domain before any was told.
    lowest: Vec<u64>,
}

/// The frequency that it ran at in these, on average, in kHz; `None`: it did not run.
pub(super) fn mean_khz<'a>(all: impl Iterator<Item = &'a Activation>) -> Option<f64> {
    let (cycles, ran) = all.fold((0, 0), |(c, r), a| (c + u128::from(a.cycles), r + a.ran));
    (ran > 0).then(|| cycles as f64 / ran as f64)
}

impl Activations {
    fn account(&mut self, at: Instant) {
        let first = self.first.and_then(|first| self.state.task(first));
        if let Some(Doing::Runs(cpu)) = first.map(|t| t.doing) {
            let ns = at.0.saturating_sub(self.since.0);
            let of = self.state.cpu(cpu).domain();
            let freq = self.state.domain(of).freq().map_or(self.lowest[of], |freq| freq.0);
            self.ran += ns;
            self.cycles += ns * freq;
        }
        self.since = at;
    }

    fn ended(&mut self, at: Instant) {
        let rose = self.rise.take().is_some_and(|rise| rise < at);
        let first = self.first.and_then(|first| self.state.task(first));
        let Some(woken) = first.and_then(|t| t.woke).map(Instant) else { return };
        let (util, est) = (self.util, self.est);
        let (cycles, ran) = (std::mem::take(&mut self.cycles), std::mem::take(&mut self.ran));
        self.all.push(Activation { woken, ended: at, util, est, rose, cycles, ran });
    }
}

impl TraceSink for Activations {
    fn header(&mut self, header: &Header) {
        let lowest = |d: &Domain| d.opps.first().map_or(0, |opp| opp.freq.0);
        self.lowest = header.machine.platform.domains.iter().map(lowest).collect();
        self.state = Tracker::of(header);
    }

    fn event(&mut self, at: Instant, event: &Event) {
        let ours = |task: &TaskId| self.first == Some(*task);
        match event {
            Event::TaskNew { task, user: true, .. } if self.first.is_none() => {
                self.first = Some(*task);
            }
            Event::PeltTask { task, util_avg, .. } if ours(task) => self.util = util_avg.0,
            Event::UtilEst { task, util_est } if ours(task) => {
                // A tick may come at the instant of the dequeue, whose own sample is util_avg itself.
                if util_est.0 > self.est {
                    let maybe_sample = util_est.0 == self.util;
                    let rise = if maybe_sample { at } else { Instant(0) };
                    self.rise = Some(self.rise.map_or(rise, |earlier| earlier.min(rise)));
                }
                self.est = util_est.0;
            }
            Event::Freq { .. } => self.account(at),
            Event::Switch { prev, next, .. } => {
                let prev = prev.filter(|(task, _)| ours(task));
                if prev.is_some() || (next.is_some() && *next == self.first) {
                    self.account(at);
                }
                if let Some((_, SwitchOut::Sleeping)) = prev {
                    self.ended(at);
                }
            }
            _ => {}
        }
        self.state.event(at, event);
    }

    fn end(&mut self, _: Instant) {}
}
