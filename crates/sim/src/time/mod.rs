//! Hardware and time: the event queue, how work takes time, what switches cost.

pub(crate) mod cost;
pub(crate) mod queue;
pub(crate) mod work;
