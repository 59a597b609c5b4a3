//! What a CPU does, as its events tell: runs something, or idles.

use risetime_kernel::units::{KHz, MicroWatts, TaskId};
use risetime_model::platform::Domain;

/// What a CPU does. One that idles in no state that was told is in the shallowest; one that handles an interrupt is busy.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuUse {
    current: Option<TaskId>,
    /// An interrupt's handler keeps it from idling, or its task from running.
    in_irq: bool,
    state: Option<u32>,
}

impl CpuUse {
    /// It runs `next` ([`Event::Switch`](crate::Event)).
    pub fn switch(&mut self, next: Option<TaskId>) {
        self.current = next;
        if next.is_some() {
            self.state = None;
        }
    }
    /// It is in that idle state ([`Event::Idle`](crate::Event)).
    pub fn idle(&mut self, state: Option<u32>) {
        self.state = state;
    }
    /// A handler begins or is done ([`Event::Irq`](crate::Event)).
    pub fn irq(&mut self, enters: bool) {
        self.in_irq = enters;
    }
    /// Whom it runs.
    pub fn current(&self) -> Option<TaskId> {
        self.current
    }
    /// Whether it runs anything.
    pub fn is_busy(&self) -> bool {
        self.current.is_some() || self.in_irq
    }
    /// The idle state that was told of last.
    pub fn idle_state(&self) -> Option<usize> {
        self.state.map(|s| s as usize)
    }
    /// What it takes, in `domain` at `freq`. `None`: unknown.
    pub fn power(&self, domain: &Domain, freq: KHz) -> Option<MicroWatts> {
        if self.is_busy() { domain.busy_power(freq) } else { domain.idle_power(self.idle_state()) }
    }
}
