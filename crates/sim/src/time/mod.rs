//! Hardware and time: the event queue, how work takes time, what switches cost, and what a real machine adds.

pub(crate) mod cost;
pub(crate) mod noise;
pub(crate) mod queue;
pub(crate) mod work;
