//! Kinds of events that a sink takes in.

use crate::Event;

/// Kinds of events that a sink takes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hears {
    /// No events.
    Nothing,
    /// The events that figures are made of: not the signals of runqueues, nor what is told for a
    /// person who looks at the trace. A third of a phone's events are those.
    Figures,
    /// Every event that tells what happened.
    All,
    /// The attributes of tasks at the time, too ([`Event::Prio`], [`Event::Clamps`],
    /// [`Event::CpuClamps`]). Nothing but a file for a person wants it: for a simulator it follows
    /// from the workload.
    Attributes,
}

impl Hears {
    /// Whether `event` is taken in.
    #[inline(always)]
    pub fn to(self, event: &Event) -> bool {
        self >= event.hears()
    }
}
