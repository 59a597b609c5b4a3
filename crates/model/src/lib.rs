//! The nouns of an experiment: platform × workload × policy.
//!
//! These are the files a person reads and writes, parsed and validated. What a setting
//! *does* is known only to the backend that carries it out; here it has a name, a unit, a
//! range and a document ([`settings`]).

pub mod dags;
#[cfg(test)]
#[path = "../../../tests/draws.rs"]
mod draws;
pub mod experiment;
mod input;
pub mod library;
pub mod needs;
#[cfg(unix)]
pub mod output;
pub mod platform;
pub mod policy;
pub mod settings;
pub mod study;
pub mod taskset;
mod toml_in;
pub mod workload;
mod yaml_in;

pub use dags::Dags;
pub use experiment::{Experiment, micros, parse_micros};
pub use input::{meant, nearest, read_file};
pub use needs::Needs;
pub use platform::Platform;
pub use policy::Policy;
pub use risetime_job::Name;
pub use settings::{Catalogue, Param, Settings, Value};
pub use study::Study;
pub use taskset::TaskSet;
pub use workload::Workload;

/// A fault in what a person wrote: where it is, what is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// File (or built-in) and place in it: `my.json:12:7`, `my.toml: domain 2: opp 3`.
    pub place: String,
    /// The fault: lower case, found and wanted.
    pub what: String,
    /// Advice on what to do about the fault, if more can be said than `what` says.
    pub hint: Option<String>,
}

impl InputError {
    /// An error at `place`.
    pub fn new(place: impl Into<String>, what: impl Into<String>) -> InputError {
        InputError { place: place.into(), what: what.into(), hint: None }
    }
    /// Adds a hint to the error.
    pub fn hint(mut self, hint: impl Into<String>) -> InputError {
        self.hint = Some(hint.into());
        self
    }
}

impl std::fmt::Display for InputError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.what)?;
        match &self.hint {
            Some(h) => write!(f, "\n  hint: {h}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for InputError {}
