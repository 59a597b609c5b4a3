//! The power of each frequency domain, as the energy account of a run takes it.
//!
//! ```text
//!   power = Σ over its CPUs: busy P(freq), idle P(idle state)      in µW, from the platform
//! ```
//!
//! Of what changes at the same time only the outcome is told.

use crate::{CpuUse, Event};
use risetime_kernel::units::{CpuId, Instant, KHz, MicroWatts};
use risetime_model::Platform;
use std::sync::Arc;

/// What the CPUs of a platform take.
pub(super) struct Power {
    platform: Arc<Platform>,
    cpus: Vec<Cpu>,
    domains: Vec<Domain>,
    /// When the domains that are not told of yet changed.
    at: Instant,
    /// Some domain is not told of yet.
    untold: bool,
}

struct Cpu {
    domain: usize,
    does: CpuUse,
    uw: u64,
}

struct Domain {
    freq: KHz,
    uw: u64,
    told: Option<u64>,
}

impl Power {
    /// As long as nothing is told every CPU idles, and every domain is at its lowest OPP.
    pub(super) fn new(platform: Arc<Platform>) -> Power {
        let domain = |cpu| platform.domain_of(cpu).unwrap_or(0);
        let does = CpuUse::default();
        let cpu = |cpu| Cpu { domain: domain(cpu), does, uw: 0 };
        let cpus: Vec<Cpu> = platform.cpus().map(cpu).collect();
        let lowest = platform.domains.iter().map(|d| d.opps[0].freq);
        let domains = lowest.map(|freq| Domain { freq, uw: 0, told: None }).collect();
        let mut power = Power { platform, cpus, domains, at: Instant(0), untold: true };
        (0..power.cpus.len()).for_each(|i| power.renew(i));
        power
    }

    /// Takes in an event.
    pub(super) fn event(&mut self, at: Instant, event: &Event<'_>) {
        match *event {
            Event::Switch { cpu, next, .. } => self.changes(at, cpu, |does| does.switch(next)),
            Event::Idle { cpu, state } => self.changes(at, cpu, |does| does.idle(state)),
            Event::Irq { cpu, enters } => self.changes(at, cpu, |does| does.irq(enters)),
            Event::Freq { cpu, freq } => {
                let Some(domain) = self.cpus.get(cpu.index()).map(|c| c.domain) else { return };
                (self.domains[domain].freq, self.at, self.untold) = (freq, at, true);
                for i in 0..self.platform.domains[domain].cpus.len() {
                    self.renew(self.platform.domains[domain].cpus[i].index());
                }
            }
            _ => {}
        }
    }

    fn changes(&mut self, at: Instant, cpu: CpuId, change: impl FnOnce(&mut CpuUse)) {
        let Some(c) = self.cpus.get_mut(cpu.index()) else { return };
        change(&mut c.does);
        (self.at, self.untold) = (at, true);
        self.renew(cpu.index());
    }

    fn renew(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let domain = &mut self.domains[c.domain];
        let of = &self.platform.domains[c.domain];
        // Of a domain whose power is unknown nothing is told.
        let uw = c.does.power(of, domain.freq).unwrap_or(MicroWatts(0)).0;
        domain.uw = domain.uw + uw - c.uw;
        c.uw = uw;
    }

    /// Whether there is something to tell that was so before `at`.
    #[inline]
    pub(super) fn is_past(&self, at: Instant) -> bool {
        self.untold && self.at < at
    }

    /// What has changed: when, and for each such domain its first CPU and its power in µW.
    pub(super) fn take(&mut self) -> (Instant, Vec<(CpuId, u64)>) {
        self.untold = false;
        let of = self.platform.domains.iter().zip(&mut self.domains);
        let known = of.filter(|(of, _)| of.busy_power(of.opps[0].freq).is_some());
        let changed = known.filter_map(|(of, domain)| {
            let new = domain.told.replace(domain.uw) != Some(domain.uw);
            new.then_some((of.cpus[0], domain.uw))
        });
        (self.at, changed.collect())
    }
}
