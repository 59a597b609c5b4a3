//! Assembly: from an experiment to a run, and the simulators that differ from it.

pub(crate) mod both_ways;
pub mod bounds;
pub mod cause;
pub(crate) mod creator;
pub(crate) mod engine;
pub mod follow;
pub(crate) mod mechanisms;
pub mod mutant;
pub mod replay;
pub(crate) mod settings;
pub(crate) mod setup;
