//! One frequency domain (`struct cpufreq_policy`).
//!
//! ```text
//! Kernel ── policy(domain) ──> Policy    changes   its frequency domain, its governor, its kthread
//!                                        reads     all of the machine
//!                                        tells     the trace, the event queue, the tracker
//!                                        locks     the runqueues of its CPUs, and of the one its kthread is on
//! ```
//!
//! A change of frequency is a method of this and cannot reach another domain: the field is private to this file.

use crate::kernel::governor::{DomainView, Effects, Governor, Resumed};
use crate::kernel::rq::Rq;
use crate::kernel::{Kernel, Kthread};
use crate::state::hooks::FreqRequest;
use crate::state::machine::{Cpu, FreqDomain, Machine};
use crate::state::tracker::Heard;
use crate::time::queue::Ev;
use risetime_kernel::units::{CpuId, Instant, Span};
use risetime_trace::{Event, Hears};

/// A frequency domain, and what may be changed with it.
pub(crate) struct Policy<'k, 'a> {
    k: &'k mut Kernel<'a>,
    pub(crate) domain: usize,
}

impl<'a> Kernel<'a> {
    /// Takes hold of a frequency domain.
    #[inline]
    pub(crate) fn policy(&mut self, domain: usize) -> Policy<'_, 'a> {
        Policy { k: self, domain }
    }
}

impl<'a> Policy<'_, 'a> {
    /// The machine, to read.
    #[inline]
    pub(crate) fn m(&self) -> &Machine {
        &self.k.m
    }
    /// The domain.
    #[inline]
    pub(crate) fn d(&mut self) -> &mut FreqDomain {
        &mut self.k.m.domains[self.domain]
    }
    /// Locks the runqueue of one of its CPUs, or of the CPU that its kthread is on.
    #[inline]
    pub(crate) fn rq(&mut self, cpu: CpuId) -> Rq<'_, 'a> {
        debug_assert!({
            let d = &self.m().domains[self.domain];
            let on = d.kthread.map(|t| self.m().task(t).cpu);
            d.related.contains(&cpu) || on == Some(cpu)
        });
        self.k.rq(cpu)
    }
    /// Asks the governor.
    #[inline]
    pub(crate) fn ask<R>(
        &mut self,
        ask: impl FnOnce(&mut dyn Governor, &DomainView<'_>, &mut Effects) -> R,
    ) -> R {
        let k = &mut *self.k;
        let view =
            DomainView { machine: &k.m, index: self.domain, told: k.listens > Hears::Nothing };
        ask(k.governors[self.domain].as_mut(), &view, &mut k.effects)
    }
    /// The governor finds itself in a run under way.
    pub(crate) fn resume(&mut self, at: &Resumed) {
        self.k.governors[self.domain].resume(at);
    }
    /// The effects that the governor wishes for beside a frequency.
    #[inline]
    pub(crate) fn effects(&mut self) -> &mut Effects {
        &mut self.k.effects
    }
    /// The utils that later looks are compared with.
    pub(crate) fn take_looks(&mut self) {
        take_looks(&mut self.k.effects, &mut self.k.m.cpus);
    }
    /// The CPU time that a change costs the kthread, at full speed.
    pub(crate) fn sugov_work(&self) -> Span {
        self.k.sugov_work
    }
    /// The costs of a change that another trace tells instead.
    #[inline]
    pub(crate) fn kthread(&self) -> Option<Kthread> {
        self.k.kthread
    }

    // ------------------------------------------------------------------ upcalls

    /// The CPU whose wakeup or tick wants a change runs an irq work, and reschedules behind it, also where that takes no time.
    pub(crate) fn irq_work_on(&mut self, cpu: CpuId, until: Instant) {
        let mut rq = self.k.rq(cpu);
        rq.ends_later(until);
        rq.c().irq_work_at = Some(until);
    }
    /// Whether there is nothing to do for a request that nobody hears, but count it.
    #[inline]
    pub(crate) fn stays_unheard(&mut self, request: &FreqRequest) -> bool {
        let unheard = request.freq == self.d().wanted && self.m().unheard && !self.k.is_heard();
        self.k.events += u64::from(unheard);
        unheard
    }
    /// Emits an event into the trace.
    #[inline]
    pub(crate) fn emit(&mut self, event: Event) {
        self.k.emit(event);
    }
    /// Puts an event into the event queue.
    #[inline]
    pub(crate) fn push(&mut self, at: Instant, ev: Ev) {
        self.k.q.push(at, ev);
    }
    /// Passes what has happened on to the tracker.
    #[inline]
    pub(crate) fn track(&mut self, heard: Heard) {
        if let Some(tracker) = &mut self.k.m.tracker {
            tracker.hears(self.k.m.now, heard);
        }
    }
}

/// The utils that later looks are compared with, from a policy's answer to the CPUs.
#[inline]
pub(crate) fn take_looks(effects: &mut Effects, cpus: &mut [Cpu]) {
    for (cpu, util) in effects.looked.drain(..) {
        cpus[cpu.index()].slots.series.last_update_util = util;
    }
}
