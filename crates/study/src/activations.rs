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

use risetime_kernel::units::{CpuId, Instant, TaskId};
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
    woken: Instant,
    util: u64,
    est: u64,
    /// The first rise of util_est in the activation; 0: one that no dequeue can have made.
    rise: Option<Instant>,
    /// CPU where the task runs, and the time since which that is not accounted yet.
    on: Option<CpuId>,
    since: Instant,
    /// kHz of each domain, by its first CPU; and each CPU's domain.
    freqs: Vec<u64>,
    domains: Vec<usize>,
}

/// The frequency that it ran at in these, on average, in kHz; `None`: it did not run.
pub(super) fn mean_khz<'a>(all: impl Iterator<Item = &'a Activation>) -> Option<f64> {
    let (cycles, ran) = all.fold((0, 0), |(c, r), a| (c + u128::from(a.cycles), r + a.ran));
    (ran > 0).then(|| cycles as f64 / ran as f64)
}

impl Activations {
    fn account(&mut self, at: Instant) {
        if let Some(cpu) = self.on {
            let ns = at.0.saturating_sub(self.since.0);
            self.ran += ns;
            self.cycles += ns * self.freqs[self.domains[cpu.index()]];
        }
        self.since = at;
    }

    fn ended(&mut self, at: Instant) {
        let rose = self.rise.take().is_some_and(|rise| rise < at);
        let (woken, util, est) = (self.woken, self.util, self.est);
        let (cycles, ran) = (std::mem::take(&mut self.cycles), std::mem::take(&mut self.ran));
        self.all.push(Activation { woken, ended: at, util, est, rose, cycles, ran });
    }
}

impl TraceSink for Activations {
    fn header(&mut self, header: &Header) {
        for (d, domain) in header.machine.platform.domains.iter().enumerate() {
            self.freqs.push(domain.opps.first().map_or(0, |opp| opp.freq.0));
            for cpu in &domain.cpus {
                if self.domains.len() <= cpu.index() {
                    self.domains.resize(cpu.index() + 1, 0);
                }
                self.domains[cpu.index()] = d;
            }
        }
    }

    fn event(&mut self, at: Instant, event: &Event) {
        let ours = |task: &TaskId| self.first == Some(*task);
        match event {
            Event::TaskNew { task, user: true, .. } if self.first.is_none() => {
                self.first = Some(*task);
                self.woken = at;
            }
            Event::Wakeup { task, .. } if ours(task) => self.woken = at,
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
            Event::Freq { cpu, freq } => {
                self.account(at);
                self.freqs[self.domains[cpu.index()]] = freq.0;
            }
            Event::Switch { cpu, prev, next } => {
                if let Some((task, how)) = prev
                    && ours(task)
                {
                    self.account(at);
                    self.on = None;
                    if *how == SwitchOut::Sleeping {
                        self.ended(at);
                    }
                }
                if next.is_some() && *next == self.first {
                    self.account(at);
                    self.on = Some(*cpu);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, _: Instant) {}
}
