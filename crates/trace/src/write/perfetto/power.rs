//! The power of each frequency domain, as the energy account of a run takes it.
//!
//! ```text
//!   power = Σ over its CPUs: busy P(freq), idle P(idle state)      in µW, from the platform
//! ```
//!
//! Of what changes at the same time only the outcome is told.

use crate::Event;
use crate::tracker::{CpuPowers, Tracker};
use risetime_kernel::units::{CpuId, Instant};
use risetime_model::Platform;
use std::sync::Arc;

/// Power that the CPUs of a platform take.
pub(super) struct Power {
    platform: Arc<Platform>,
    cpus: CpuPowers,
    domains: Vec<Domain>,
    /// Time at which the domains that are not told of yet changed.
    at: Instant,
    /// Some domain is not told of yet.
    untold: bool,
}

#[derive(Clone, Copy, Default)]
struct Domain {
    uw: u64,
    told: Option<u64>,
}

impl Power {
    /// The power in this state.
    pub(super) fn new(platform: Arc<Platform>, state: &Tracker) -> Power {
        let cpus = CpuPowers::new(Arc::clone(&platform), state);
        let of = |d: &risetime_model::platform::Domain| d.cpus.iter().map(|c| cpus.uw(*c)).sum();
        let domains = platform.domains.iter().map(|d| Domain { uw: of(d), told: None }).collect();
        Power { platform, cpus, domains, at: Instant(0), untold: true }
    }

    /// Feeds `state` with an event, and takes in what changes by it.
    pub(super) fn event(&mut self, state: &mut Tracker, at: Instant, event: &Event) {
        self.cpus.event(state, at, event, |change| {
            let domain = &mut self.domains[change.domain];
            domain.uw = domain.uw + change.now - change.before;
            (self.at, self.untold) = (at, true);
        });
    }

    /// Whether there is something to tell that was so before `at`.
    #[inline]
    pub(super) fn is_past(&self, at: Instant) -> bool {
        self.untold && self.at < at
    }

    /// Takes what has changed: when, and for each such domain its first CPU and its power in µW.
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
