//! The tests of this crate from outside, in one binary.

mod chart;
mod common;
mod data;
mod page;
mod study;
mod text;
mod verify;
