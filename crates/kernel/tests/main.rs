//! Everything that the arithmetic is held to: one module a subject.

// The crate's rule against reading files is for its arithmetic; some modules are an example's, which reads vectors.
#![allow(clippy::disallowed_methods, unreachable_pub)]

mod adpf;
mod amd_pstate;
#[path = "../../../tests/draws.rs"]
mod draws;
mod eevdf;
mod golden;
mod intel_pstate;
mod kernel_c;
mod pixel;
mod properties;
mod thermal;
