//! Results to what a person or a program reads. Pure: nothing is printed, nothing is read.
//!
//! [`json`] and [`csv`] hold every figure for programs; [`text`] says the same to a person
//! at a terminal, the answer first and the evidence below it.

pub mod csv;
pub mod json;
pub mod svg;
pub mod text;
mod words;
