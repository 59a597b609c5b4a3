//! The grid of ticks, and the jiffy of the moment.

use crate::state::short_ways::{self, ShortWay};
use risetime_kernel::units::{Instant, Span};
use std::cell::Cell;

/// Ticks of a machine: where they are, and in which jiffy it is.
pub(crate) struct Ticks {
    /// Ticks are at this time plus whole ticks.
    offset: Span,
    /// The jiffy last asked for: the time at which it began, and its number.
    jiffy: Cell<(u64, u64)>,
    /// The jiffy is kept until the next one: always, but for a test.
    pub(crate) keeps_jiffy: bool,
}

impl Ticks {
    /// Ticks at whole multiples of `tick`.
    pub(crate) fn new(tick: Span) -> Ticks {
        let jiffy = Cell::new(over(Instant(0), tick));
        Ticks { offset: Span(0), jiffy, keeps_jiffy: true }
    }

    /// The time since the last tick of the grid, or 0 at one.
    pub(crate) fn since(&self, now: Instant, tick: Span) -> Span {
        Span((now.0 + tick.0 - self.offset.0) % tick.0)
    }

    /// The time at which the current jiffy began (wraps before time 0), and its number. Kept until
    /// the next one.
    #[inline]
    pub(crate) fn jiffy(&self, now: Instant, tick: Span) -> (u64, u64) {
        // One grid period ahead, so that a grid that starts later never counts below zero.
        let count = || {
            let ahead = now.0 + tick.0 - self.offset.0;
            (now.0.wrapping_sub(ahead % tick.0), ahead / tick.0)
        };
        let (since, number) = self.jiffy.get();
        if now.0.wrapping_sub(since) < tick.0 && self.keeps_jiffy {
            debug_assert_eq!((since, number), count());
            short_ways::take(ShortWay::Jiffy);
            return (since, number);
        }
        let jiffy = count();
        self.jiffy.set(jiffy);
        jiffy
    }

    /// Moves the grid.
    pub(crate) fn set_offset(&mut self, offset: Span, now: Instant, tick: Span) {
        self.offset = offset;
        self.jiffy.set(over(now, tick));
    }
}

/// A jiffy that is over, so that the next question finds out ([`Ticks::jiffy`]).
fn over(now: Instant, tick: Span) -> (u64, u64) {
    (now.0.wrapping_sub(tick.0), 0)
}
