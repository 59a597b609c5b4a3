//! The nouns of an experiment: platform × workload × policy.
//!
//! These are the files a person reads and writes, parsed and validated. What a setting
//! *does* is known only to the backend that carries it out; here it has a name, a unit, a
//! range and a document ([`settings`]).

pub mod dags;
mod decimal;
#[cfg(test)]
#[path = "../../../tests/draws.rs"]
mod draws;
pub mod experiment;
mod fault;
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
pub mod yaml_tree;

pub use dags::Dags;
pub use experiment::{Experiment, micros, parse_micros, sha256};
pub use fault::{Code, InputError, Subject};
pub use input::{meant, nearest, read_file};
pub use needs::Needs;
pub use platform::Platform;
pub use policy::Policy;
pub use risetime_job::Name;
pub use settings::{Catalogue, Param, Settings, Value};
pub use study::Study;
pub use taskset::TaskSet;
pub use workload::Workload;
