//! Inputs: what is read, and what is refused with its place.

mod bad_dags;
mod bad_needs;
mod bad_platforms;
mod bad_studies;
mod bad_workloads;
mod common;
mod library;
mod properties;
mod rt_app;
mod settings;
mod tasksets;
mod workloads;

#[path = "../../../tests/draws.rs"]
mod draws;
