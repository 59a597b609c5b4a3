//! The files that pass between a host and the agent on a real kernel: [`job`] in, [`answer`]
//! out. Only `std`: the agent is a small static binary.

pub mod answer;
pub mod job;
