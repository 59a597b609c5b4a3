//! Idle governors: what a CPU asks before it sleeps, and tells afterwards.

use risetime_kernel::cpuidle::menu::MenuDevice;
use risetime_kernel::cpuidle::{IdleState, Selected, Sleep};
use risetime_kernel::units::Span;

/// A governor of cpuidle on one CPU, with what it remembers.
pub trait IdleGovernor {
    /// Chooses which of `states` (shallowest first) to enter now, and whether to stop the tick.
    /// Asked, too, where there are less than two.
    fn select(&mut self, states: &[IdleState], sleep: Sleep) -> Selected;
    /// Learns that the CPU has been idle for `idle` in the state of that index; `by_tick`: the tick
    /// woke it.
    fn update(&mut self, states: &[IdleState], state: usize, idle: Span, by_tick: bool, tick: Span);
    /// Whether it looks at [`Sleep::utilized`].
    fn asks_for_util(&self) -> bool {
        false
    }
    /// The memory of the governor, if it is `menu`.
    fn memory(&self) -> Option<&MenuDevice> {
        None
    }
    /// Takes over a run under way, in which `menu` remembered that. False: the governor has
    /// memories of another kind.
    fn resume(&mut self, _: &MenuDevice) -> bool {
        false
    }
}
