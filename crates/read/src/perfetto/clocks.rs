//! Clocks of a trace: times of any of them on the trace's own.
//!
//! A snapshot tells what several clocks showed at once. A time is moved by the last snapshot before it in which its clock stood
//! beside the trace's; before the first of them by that one. Clocks of a sequence (64 to 127) belong to it alone.

use super::number::packet;
use super::wire::Message;
use risetime_trace::Clock;
use std::collections::BTreeMap;

/// `BUILTIN_CLOCK_MONOTONIC`.
pub(super) const MONOTONIC: u32 = 3;
/// `BUILTIN_CLOCK_MONOTONIC_RAW`.
pub(super) const MONOTONIC_RAW: u32 = 5;
/// `BUILTIN_CLOCK_BOOTTIME`.
pub(super) const BOOT: u32 = 6;
/// Clock of a ring buffer that no program can read, by the sequence that writes it.
pub(super) const RING: u32 = 64;
/// Snapshots kept of each clock; of more, every other one is dropped.
const KEPT: usize = 4096;

/// A clock: its number, and for one of a sequence which.
pub(super) type ClockId = (u32, u32);

/// Returns the clock of this number as packets of `sequence` name it.
pub(super) fn id(number: u32, sequence: u32) -> ClockId {
    match (64..128).contains(&number) {
        true => (number, sequence),
        false => (number, 0),
    }
}

/// Clocks of a trace, with what snapshots told.
#[derive(Debug)]
pub(super) struct Clocks {
    /// Number of the trace's clock.
    trace: u32,
    /// Readings of each clock, and of the trace's at once, in ns.
    beside: BTreeMap<ClockId, Vec<(u64, u64)>>,
    /// Clocks whose packets tell differences, or another unit than ns.
    odd: BTreeMap<ClockId, Odd>,
    /// Times that could not be moved, by their clock.
    unknown: BTreeMap<u32, u64>,
}

#[derive(Clone, Copy, Debug)]
struct Odd {
    unit: u64,
    /// The last time, of a clock whose packets tell differences.
    last: Option<u64>,
}

impl Default for Clocks {
    fn default() -> Clocks {
        Clocks {
            trace: BOOT,
            beside: BTreeMap::new(),
            odd: BTreeMap::new(),
            unknown: BTreeMap::new(),
        }
    }
}

impl Clocks {
    /// The trace's clock, as a header names it.
    pub(super) fn clock(&self) -> Clock {
        match self.trace {
            MONOTONIC | MONOTONIC_RAW => Clock::Mono,
            _ => Clock::Boot,
        }
    }

    /// The clocks of whose times some could not be moved, with how many.
    pub(super) fn unknown(&self) -> impl Iterator<Item = (u32, u64)> {
        self.unknown.iter().map(|(clock, n)| (*clock, *n))
    }

    /// Takes in a `ClockSnapshot` from a packet of `sequence`.
    pub(super) fn snapshot(&mut self, bytes: &[u8], sequence: u32) {
        let mut shown: Vec<(ClockId, u64)> = Vec::new();
        for (number, value) in Message::new(bytes) {
            match number {
                1 => {
                    let (mut clock, mut at, mut differs, mut unit) = (0, 0, false, 1);
                    for (number, value) in Message::new(value.bytes()) {
                        match number {
                            1 => clock = value.uint(),
                            2 => at = value.number(),
                            3 => differs = value.number() != 0,
                            4 => unit = value.number().max(1),
                            _ => {}
                        }
                    }
                    let at = at.saturating_mul(unit);
                    let clock = id(clock, sequence);
                    if differs || unit != 1 {
                        self.odd.insert(clock, Odd { unit, last: differs.then_some(at) });
                    }
                    shown.push((clock, at));
                }
                2 if value.uint() != 0 && self.beside.is_empty() => self.trace = value.uint(),
                _ => {}
            }
        }
        self.together(&shown);
    }

    /// Takes in what several clocks showed at once.
    pub(super) fn together(&mut self, shown: &[(ClockId, u64)]) {
        let own = shown.iter().find(|(clock, _)| *clock == (self.trace, 0)).map(|(_, at)| *at);
        let known = || shown.iter().find_map(|(clock, at)| self.moved(*clock, *at));
        let Some(own) = own.or_else(known) else { return };
        for (clock, at) in shown.iter().filter(|(clock, _)| *clock != (self.trace, 0)) {
            let pairs = self.beside.entry(*clock).or_default();
            let same = |last: &(u64, u64)| {
                last.1.wrapping_sub(last.0) == own.wrapping_sub(*at) || *at <= last.0
            };
            if pairs.last().is_none_or(|last| !same(last)) {
                pairs.push((*at, own));
            }
            if pairs.len() > KEPT {
                let mut place = 0;
                pairs.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
            }
        }
    }

    /// Returns the time that the trace's clock showed when `clock` showed `at`; `None`: no snapshot tells.
    fn moved(&self, clock: ClockId, at: u64) -> Option<u64> {
        if clock == (self.trace, 0) {
            return Some(at);
        }
        let pairs = self.beside.get(&clock)?;
        let after = pairs.partition_point(|(shown, _)| *shown <= at);
        let (shown, own) = *pairs.get(after.saturating_sub(1))?;
        Some(own.wrapping_add(at.wrapping_sub(shown)))
    }

    /// Returns a time of a kernel's or a packet's clock in ns on the trace's clock. Where no snapshot tells, the time stays as it
    /// is, and that is noted.
    pub(super) fn of(&mut self, clock: ClockId, at: u64) -> u64 {
        self.moved(clock, at).unwrap_or_else(|| {
            *self.unknown.entry(clock.0).or_default() += 1;
            at
        })
    }

    /// Returns the time of a packet, in ns on the trace's clock.
    pub(super) fn of_packet(&mut self, clock: ClockId, at: u64) -> u64 {
        let at = match self.odd.get_mut(&clock) {
            Some(odd) => {
                let at = at.saturating_mul(odd.unit);
                match &mut odd.last {
                    Some(last) => {
                        *last = last.wrapping_add(at);
                        *last
                    }
                    None => at,
                }
            }
            None => at,
        };
        self.of(clock, at)
    }
}

/// Returns the clock that the defaults of a sequence name, and the track of its events.
pub(super) fn defaults(bytes: &[u8]) -> (Option<u32>, Option<u64>) {
    let (mut clock, mut track) = (None, None);
    for (number, value) in Message::new(bytes) {
        match number {
            packet::CLOCK => clock = Some(value.uint()),
            packet::TRACK_EVENT => {
                let of = Message::new(value.bytes()).find(|(number, _)| *number == 11);
                track = of.map(|(_, value)| value.number());
            }
            _ => {}
        }
    }
    (clock, track)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_moved_by_the_last_snapshot_before_it() {
        let mut clocks = Clocks::default();
        clocks.together(&[((BOOT, 0), 1000), ((MONOTONIC, 0), 400)]);
        // Suspended for 50.
        clocks.together(&[((BOOT, 0), 2050), ((MONOTONIC, 0), 1400)]);
        let mono = [300, 500, 1399, 1400, 1500].map(|at| clocks.of((MONOTONIC, 0), at));
        assert_eq!(mono, [900, 1100, 1999, 2050, 2150]);
        assert_eq!(clocks.of((BOOT, 0), 77), 77);
        assert_eq!(clocks.unknown().count(), 0);
    }

    #[test]
    fn a_clock_that_no_snapshot_has_is_told() {
        let mut clocks = Clocks::default();
        assert_eq!(clocks.of((9, 0), 5), 5);
        assert_eq!(clocks.unknown().collect::<Vec<_>>(), [(9, 1)]);
    }

    #[test]
    fn a_snapshot_without_the_clock_of_the_trace_goes_by_one_that_is_known() {
        let mut clocks = Clocks::default();
        clocks.together(&[((BOOT, 0), 1000), ((MONOTONIC, 0), 400)]);
        clocks.together(&[((MONOTONIC, 0), 500), ((RING, 7), 20)]);
        assert_eq!(clocks.of((RING, 7), 30), 1110);
        assert_eq!(clocks.of((RING, 8), 30), 30, "another sequence's clock of this number");
    }
}
