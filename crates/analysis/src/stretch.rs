//! A stretch of a task's program, and how fast it was gone through.
//!
//! ```text
//! position   events begun, and how often it has fallen asleep in the last of them
//! stretch    from the wakeup at one position until the sleep at another
//! ```
//!
//! A burst is what lies between two sleeps of at least 4.5 ms, so that in another simulation of the
//! same program it may be a part of a longer one, or several: what slept there does not sleep here.
//! What a program does between two of its events is the same in all of them. So the burst of one run
//! is looked for in another by where in the program it begins and ends:
//!
//! ```text
//! begins   at the last wakeup up to the position, or where it goes on without having slept
//! ends     at the sleep at the position, or where it goes on without having slept
//! ```
//!
//! Where nothing else changed, that is the burst itself. Its debt is counted as a burst's is, until
//! full speed or the end, without the time asleep. Needs a trace with
//! [`Step`](risetime_trace::Event::Step)s.

use crate::figures::{Figures, Piece};
use crate::result::{Burst, EndedBy};

/// Position of a task in its program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Events begun.
    pub step: u64,
    /// Number of times that the task has fallen asleep in the last one.
    pub sleeps: u32,
}

impl Position {
    /// Returns this position with no sleep that could end the stretch: it goes to the end of the
    /// present event, or of the program.
    pub(crate) fn awake(self) -> Position {
        Position { sleeps: u32::MAX, ..self }
    }
}

/// Part of a program from one position to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// Position in which the task last slept before, or its creation.
    pub from: Position,
    /// Position in which it sleeps next.
    pub to: Position,
}

/// A stretch that is looked for.
pub(crate) struct Watch {
    of: Stretch,
    seen: Seen,
    figures: Figures,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// The task has not come there.
    No,
    Begun,
    Over,
}

impl Watch {
    /// Looks for the stretch `of`, from the creation of its task at `now` on.
    pub(crate) fn new(of: Stretch, now: u64) -> Watch {
        let mut watch = Watch { of, seen: Seen::No, figures: Figures::default() };
        if of.from == Position::default() {
            watch.begin(now);
        }
        watch
    }

    fn begin(&mut self, now: u64) {
        self.seen = Seen::Begun;
        self.figures.restart(now);
    }

    pub(crate) fn close(&mut self, now: u64, how: EndedBy) {
        if self.seen == Seen::Begun {
            self.seen = Seen::Over;
            self.figures.close(now, how);
        }
    }

    /// A piece of time in which the task was awake.
    pub(crate) fn add(&mut self, piece: &Piece) {
        if self.seen == Seen::Begun {
            self.figures.add_to_burst(piece);
        }
    }

    /// Counts `ns` at `speed` under `key` as run without getting on.
    pub(crate) fn stolen(&mut self, key: u32, ns: u64, speed: u64) {
        if self.seen == Seen::Begun {
            self.figures.stolen(key, ns, speed);
        }
    }

    /// Notes that the task woke up at position `at`.
    pub(crate) fn wakes(&mut self, now: u64, at: Position) {
        let from = self.of.from;
        if self.seen != Seen::Over && at.step == from.step && at.sleeps <= from.sleeps {
            self.begin(now);
        }
    }

    /// Notes that the task fell asleep, which makes the position `at`.
    pub(crate) fn sleeps(&mut self, now: u64, at: Position) {
        if at >= self.of.to {
            self.close(now, EndedBy::Sleep);
        }
    }

    /// Notes that the task begins its event of this number.
    pub(crate) fn steps(&mut self, now: u64, step: u64) {
        if self.seen == Seen::No && step > self.of.from.step {
            self.begin(now);
        }
        if step > self.of.to.step {
            self.close(now, EndedBy::Sleep);
        }
    }

    /// The burst of the stretch; `None`: the task never came there.
    pub(crate) fn finish(mut self, end: u64) -> Option<Burst> {
        self.close(end, EndedBy::RunEnd);
        (self.seen == Seen::Over).then(|| self.figures.burst())
    }
}
