//! Hardware and time: the event queue, what things cost.

pub(crate) mod cost;
pub(crate) mod queue;
