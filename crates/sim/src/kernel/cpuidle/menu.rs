//! `menu`: what typical sleeps and the next timer say.
//!
//! Arithmetic: [`risetime_kernel::cpuidle::menu`]. Source: drivers/cpuidle/governors/menu.c.

use super::{Descriptor, IdleGovernor};
use risetime_kernel::cpuidle::menu::MenuDevice;
use risetime_kernel::cpuidle::{self, IdleState, Selected, Sleep};
use risetime_kernel::units::Span;

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "menu",
    doc: "idle states by the length of typical sleeps and the next timer",
    make: |rev| Box::new(Menu(cpuidle::IdleGovernor::named("menu", rev))),
};

/// The kernel's own, in the form of its release.
struct Menu(cpuidle::IdleGovernor);

impl IdleGovernor for Menu {
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
    fn memory(&self) -> Option<&MenuDevice> {
        match &self.0 {
            cpuidle::IdleGovernor::Menu(memory) => Some(memory),
            _ => None,
        }
    }
    fn resume(&mut self, memory: &MenuDevice) -> bool {
        self.0 = cpuidle::IdleGovernor::Menu(memory.clone());
        true
    }
}
