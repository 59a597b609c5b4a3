//! Sinks that write a trace in a format other tools read.

pub mod ftrace;
pub mod perfetto;
