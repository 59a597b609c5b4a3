//! The tests of this crate from outside, in one binary.

mod adpf;
mod eevdf;
mod golden;
mod kernel_c;
mod properties;
mod thermal;
