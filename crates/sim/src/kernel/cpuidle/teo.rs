//! `teo`: timers first; what cut sleeps short is counted.
//!
//! Arithmetic: [`risetime_kernel::cpuidle::teo`]. Source: drivers/cpuidle/governors/teo.c.

use super::{Descriptor, IdleGovernor};
use risetime_kernel::cpuidle::{self, IdleState, Selected, Sleep};
use risetime_kernel::units::Span;

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "teo",
    doc: "timers first, and how often sleeps were cut short",
    make: |rev| Box::new(Teo(cpuidle::IdleGovernor::named("teo", rev))),
};

/// The kernel's own, in the form of its release.
struct Teo(cpuidle::IdleGovernor);

impl IdleGovernor for Teo {
    fn select(&mut self, states: &[IdleState], sleep: Sleep) -> Selected {
        self.0.select(states, sleep)
    }
    fn update(
        &mut self,
        states: &[IdleState],
        state: usize,
        idle: Span,
        by_tick: bool,
        tick: Span,
    ) {
        self.0.update(states, state, idle, by_tick, tick);
    }
    fn asks_for_util(&self) -> bool {
        self.0.asks_for_util()
    }
}
