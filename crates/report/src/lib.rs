//! Results to what a person or a program reads. Pure: nothing is printed, nothing is read.
//!
//! [`json`] and [`csv`] hold every figure for programs; [`text`] says the same to a person
//! at a terminal, the answer first and the evidence below it, as [`page`]s that are Markdown and HTML, too; [`picture`] draws it.

mod apply;
pub mod chart;
pub mod csv;
pub mod json;
pub mod page;
pub mod picture;
mod taken;
pub mod text;
mod words;

pub use taken::Taken;

/// A run, and what was listed while it went on, a line each in the format that is asked for.
pub struct Told<'a> {
    /// Figures of the run.
    pub run: &'a risetime_analysis::RunResult,
    /// Bursts and changes of CPU; `None`: nobody asked for them.
    pub listed: Option<Box<dyn Iterator<Item = std::io::Result<String>> + 'a>>,
}
