//! `step_wise`: while it gets hotter above a trip point, one cooling state more at each look.
//!
//! ```text
//!                 raising       dropping                                stable
//!  at the trip    state + 1     6.12: state - 1, not below lower + 1    as it is
//!                               6.1:  as it is
//!  below it       as it is      6.12: no target                         as it is
//!                               6.1:  state - 1, at `lower` no target
//! ```
//!
//! A first look sets `state + 1` at the trip, whatever the trend, and no target below it.
//! Source: drivers/thermal/gov_step_wise.c:get_target_state, in 6.1 and 6.12 (see
//! [`thermal_core`](super::thermal_core) for what lies around them).

use super::thermal_core::Trend;
use crate::{KernelRev, features};

/// A cooling device at a trip point, which may use the states from `lower` to `upper`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The least state.
    pub lower: u32,
    /// The greatest.
    pub upper: u32,
    /// The state that it asks for; `None`: `THERMAL_NO_TARGET`.
    pub target: Option<u32>,
    /// True once the governor has looked at the instance.
    pub initialized: bool,
}

impl Instance {
    /// An instance of a device with `states` beyond 0.
    pub fn new(states: u32) -> Instance {
        Instance { lower: 0, upper: states, target: None, initialized: false }
    }

    /// `get_target_state`; `state`: that of the device now.
    pub fn get_target_state(
        &self,
        rev: KernelRev,
        state: u32,
        trend: Trend,
        throttle: bool,
    ) -> Option<u32> {
        let (lower, upper) = (self.lower, self.upper);
        let more = (state + 1).clamp(lower, upper);
        let less = state.saturating_sub(1);
        let old = !rev.has(features::THERMAL_THRESHOLDS);
        match (throttle, trend) {
            (false, _) if !self.initialized => None,
            (true, _) if !self.initialized => Some(more),
            (true, Trend::Raising) => Some(more),
            (true, Trend::Dropping) if !old => Some(less.clamp((lower + 1).min(upper), upper)),
            (false, Trend::Dropping) if old && state > lower => Some(less.clamp(lower, upper)),
            (false, Trend::Dropping) => None,
            _ => self.target,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Trend::{Dropping, Raising, Stable};

    /// The states that a device takes at these looks.
    fn states(rev: KernelRev, looks: &[(Trend, bool)]) -> Vec<Option<u32>> {
        let mut instance = Instance::new(3);
        let mut each = Vec::new();
        for (trend, throttle) in looks {
            let state = instance.target.unwrap_or(0);
            instance.target = instance.get_target_state(rev, state, *trend, *throttle);
            instance.initialized = true;
            each.push(instance.target);
        }
        each
    }
    extern crate alloc;
    use alloc::vec::Vec;

    const LOOKS: [(Trend, bool); 12] = [
        (Raising, false),
        (Raising, true),
        (Raising, true),
        (Stable, true),
        (Raising, true),
        (Raising, true),
        (Dropping, true),
        (Dropping, true),
        (Dropping, true),
        (Raising, false),
        (Dropping, false),
        (Dropping, false),
    ];

    #[test]
    fn since_6_12_it_goes_down_while_still_above_the_trip() {
        let s = Some;
        assert_eq!(
            states(KernelRev::V6_12, &LOOKS),
            [None, s(1), s(2), s(2), s(3), s(3), s(2), s(1), s(1), s(1), None, None]
        );
    }

    #[test]
    fn before_it_goes_down_only_below_the_trip() {
        let s = Some;
        assert_eq!(
            states(KernelRev::V6_1, &LOOKS),
            [None, s(1), s(2), s(2), s(3), s(3), s(3), s(3), s(3), s(3), s(2), s(1)]
        );
        let left = Instance { target: s(0), initialized: true, ..Instance::new(3) };
        assert_eq!(left.get_target_state(KernelRev::V6_1, 0, Dropping, false), None);
    }

    #[test]
    fn a_first_look_above_the_trip_throttles_whatever_the_trend() {
        assert_eq!(states(KernelRev::V6_12, &[(Dropping, true)]), [Some(1)]);
    }
}
