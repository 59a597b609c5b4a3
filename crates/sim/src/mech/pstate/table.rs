//! Table of what hardware that decides alone was seen to do: both ends of what is known, by energy-performance preference.
//!
//! | measured | of | by |
//! |---|---|---|
//! | idle to full speed in just over 5 ms, ½ ms at a fixed voltage | Alder Lake, Skylake desktop, Speed Shift | chipsandcheese.com, 26 Oct. 2022 |
//! | … in 30 ms (Skylake), 10 to 15 ms (Kaby Lake) | laptops, Speed Shift; about 100 ms without | anandtech.com, 10959 |
//! | … 3.7 GHz in a couple of ms | Zen 3 mobile | chipsandcheese.com, 15 Sept. 2022 |
//! | … in 9 ms (mobile), 16 to 17.5 ms (desktop) | Zen 2 | the same |
//! | CPPC firmware decides every 1 ms | AMD | Linux commit ca08e46d4215 |
//!
//! All of them at the preference that a machine came with, taken for 128 here. Nobody says how a ramp goes with the
//! preference, how long a speed is held, or which share of time asks for which speed: the rows for 0 and 255, `hold` and
//! `gain` are assumptions, chosen so that the two ends hold what is told of `performance` and `power` between them.

use crate::mech::pstate::state::Manner;
use risetime_kernel::units::Span;
use risetime_model::platform::Driver;

/// End of what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The quickest to full speed.
    Fast,
    /// The slowest.
    Slow,
}

/// Manner at one preference: times in µs, gain of 1024.
struct Row {
    epp: u64,
    ramp: (u64, u64),
    hold: (u64, u64),
    gain: (u64, u64),
}

const fn row(epp: u64, ramp: (u64, u64), hold: (u64, u64), gain: (u64, u64)) -> Row {
    Row { epp, ramp, hold, gain }
}

/// Rows of HWP: (fast, slow).
const INTEL: [Row; 3] = [
    row(0, (500, 5_000), (10_000, 1_000), (4096, 2048)),
    row(128, (5_000, 30_000), (5_000, 0), (2048, 1280)),
    row(255, (10_000, 100_000), (1_000, 0), (1280, 1024)),
];

/// Rows of CPPC: (fast, slow).
const AMD: [Row; 3] = [
    row(0, (1_000, 9_000), (10_000, 1_000), (4096, 2048)),
    row(128, (2_000, 17_500), (5_000, 0), (2048, 1280)),
    row(255, (9_000, 35_000), (1_000, 0), (1280, 1024)),
];

/// Time between two looks of the hardware, in µs: (fast, slow).
const INTERVAL: [(u64, u64); 2] = [(500, 1_000), (1_000, 1_000)];

/// Returns the manner of a driver's hardware at a preference, 0 to 255, at one end. Between rows: in proportion.
pub(crate) fn manner(driver: Driver, epp: u64, end: End) -> Manner {
    let (rows, interval) = match driver {
        Driver::IntelPstate => (&INTEL, INTERVAL[0]),
        Driver::AmdPstate => (&AMD, INTERVAL[1]),
    };
    let of = |(fast, slow): (u64, u64)| if end == End::Fast { fast } else { slow };
    let at = rows.windows(2).find(|w| epp <= w[1].epp).unwrap_or(&rows[1..]);
    let (low, high) = (&at[0], &at[1]);
    let between = |from: u64, to: u64| {
        let (way, gone) = (high.epp - low.epp, epp.min(high.epp) - low.epp);
        (from * (way - gone) + to * gone) / way
    };
    Manner {
        interval: Span::from_us(of(interval)),
        ramp: Span::from_us(between(of(low.ramp), of(high.ramp))),
        hold: Span::from_us(between(of(low.hold), of(high.hold))),
        gain: between(of(low.gain), of(high.gain)),
    }
}

/// Returns the distance between the times at which hardware that is told a speed takes it up; at the fast end at once.
///
/// Source: AMD as above. Of Intel's, Hackenberg et al., "An Energy Efficiency Feature Survey of the Intel Haswell Processor"
/// (2015): about every 500 µs.
pub(crate) fn grid(driver: Driver, end: End) -> Span {
    match (driver, end) {
        (_, End::Fast) => Span(0),
        (Driver::IntelPstate, End::Slow) => Span::from_us(500),
        (Driver::AmdPstate, End::Slow) => Span::from_us(1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greater_preference_for_energy_is_never_quicker() {
        for driver in [Driver::IntelPstate, Driver::AmdPstate] {
            for epp in 0..255 {
                for end in [End::Fast, End::Slow] {
                    let (a, b) = (manner(driver, epp, end), manner(driver, epp + 1, end));
                    assert!(a.ramp <= b.ramp && a.hold >= b.hold && a.gain >= b.gain, "{epp}");
                }
                let (fast, slow) = (manner(driver, epp, End::Fast), manner(driver, epp, End::Slow));
                assert!(fast.ramp <= slow.ramp && fast.interval <= slow.interval, "{epp}");
            }
        }
        let at = |epp| manner(Driver::IntelPstate, epp, End::Slow).ramp;
        assert_eq!(at(64), Span::from_us(17_500), "half way between rows");
        assert_eq!(at(128), Span::from_us(30_000));
    }
}
