//! Trip points of a thermal zone: which are crossed, and whether the zone is looked at more often.
//!
//! ```text
//!   °C  trip ──────────── ╭──╮ ─────        crossed upward at the trip's temperature,
//!   low ─ ─ ─ ─ ─ ─ ─ ─ ─ │ ─ ╲ ─ ─ ─       downward at that less its hysteresis; meanwhile
//!        ────────────────╯     ╲────        the threshold that governors go by is the lower one
//! ```
//!
//! Up to 6.1 governors go by the trip's temperature alone, and its hysteresis is only told to user space. Read in
//! 6.1 and 6.12; what lies between them is taken as 6.1, what comes after as 6.12.
//!
//! Source: drivers/thermal/thermal_core.c:handle_thermal_trip, thermal_helpers.c:get_tz_trend.

use crate::{KernelRev, features};

/// Direction of a zone's temperature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// The temperature rises.
    Raising,
    /// Down.
    Dropping,
    /// The temperature neither rises nor falls.
    Stable,
}

/// `get_tz_trend`; `last`: the reading before, `None` at the first, which counts as raising.
pub fn get_tz_trend(millicelsius: i64, last: Option<i64>) -> Trend {
    match last {
        Some(last) if millicelsius < last => Trend::Dropping,
        Some(last) if millicelsius == last => Trend::Stable,
        _ => Trend::Raising,
    }
}

/// A trip point, in m°C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trip {
    temperature: i64,
    hysteresis: i64,
    /// `td->threshold`.
    threshold: i64,
}

/// Finding of a look at a trip point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossed {
    /// The trip is crossed upwards by this reading.
    Up,
    /// The trip is left downwards by this reading.
    Down,
    /// The reading does not cross the trip.
    No,
}

impl Trip {
    /// A trip that is not crossed.
    pub fn new(temperature: i64, hysteresis: i64) -> Trip {
        Trip { temperature, hysteresis, threshold: temperature }
    }
    /// The temperature at which the trip begins.
    pub fn temperature(&self) -> i64 {
        self.temperature
    }
    /// `handle_thermal_trip`, with the reading of now and the one before.
    pub fn handle_thermal_trip(&mut self, millicelsius: i64, last: Option<i64>) -> Crossed {
        let low = self.temperature - self.hysteresis;
        let was = last.is_some_and(|last| last >= self.threshold);
        let crossed = match was {
            true if millicelsius < low => Crossed::Down,
            false if millicelsius >= self.temperature => Crossed::Up,
            _ => Crossed::No,
        };
        let under_way = crossed == Crossed::Up || (was && crossed == Crossed::No);
        self.threshold = if under_way { low } else { self.temperature };
        crossed
    }
    /// Whether a governor has to do something about it.
    pub fn throttles(&self, rev: KernelRev, millicelsius: i64) -> bool {
        let follows = rev.has(features::THERMAL_THRESHOLDS);
        millicelsius >= if follows { self.threshold } else { self.temperature }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trip_is_left_at_its_lower_temperature() {
        let mut trip = Trip::new(70_000, 2_000);
        let mut last = None;
        let mut told = |now| {
            let crossed = trip.handle_thermal_trip(now, last);
            last = Some(now);
            (crossed, trip.throttles(KernelRev::V6_12, now), trip.throttles(KernelRev::V6_1, now))
        };
        assert_eq!(told(69_999), (Crossed::No, false, false));
        assert_eq!(told(70_000), (Crossed::Up, true, true));
        assert_eq!(told(68_000), (Crossed::No, true, false));
        assert_eq!(told(69_000), (Crossed::No, true, false));
        assert_eq!(told(67_999), (Crossed::Down, false, false));
        assert_eq!(told(69_500), (Crossed::No, false, false));
        assert_eq!(told(75_000), (Crossed::Up, true, true));
    }

    #[test]
    fn the_first_reading_raises() {
        assert_eq!(get_tz_trend(20_000, None), Trend::Raising);
        assert_eq!(get_tz_trend(20_000, Some(20_000)), Trend::Stable);
        assert_eq!(get_tz_trend(19_999, Some(20_000)), Trend::Dropping);
    }
}
