//! The kernel's scheduler arithmetic, bit-exact and under its kernel names.
//!
//! Integers only, no I/O, cannot fail. Every function answers one question and names the
//! kernel symbol it corresponds to. Where kernels differ, a [`KernelRev`] selects.
#![no_std]
#![warn(missing_docs)]

extern crate alloc;

pub mod eevdf;
mod rev;
pub mod units;

pub use rev::KernelRev;
