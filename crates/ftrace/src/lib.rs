//! The kernel's tracing: what a kernel can be asked, how, and what is in the pages that it gives.
//!
//! ```text
//! asked ── events, probes ──> probe, btf ── lines of this kernel ──> tracefs ── formats, pages ──┐
//!                                                                                                │
//! decisions, event <── records ── page <────────────────── reader <──────────────────────────────┘
//! ```
//!
//! For whoever records (the agent in a virtual machine, this machine as a backend) and whoever reads (traces
//! from files): nothing here knows who asked. Times are in ns of the trace's clock, signals as the kernel has them.
//!
//! Errors are sentences without a place: whoever has the file, the CPU or the probe's name puts it before them.
//! Damaged bytes are an error or harmless, and never a panic.
//!
//! Without the feature `events` only what records is there; it takes nothing but the kernel's names.

pub mod asked;
pub mod btf;
#[cfg(feature = "events")]
pub mod decisions;
#[cfg(feature = "events")]
pub mod event;
pub mod page;
pub mod plug;
pub mod probe;
#[cfg(feature = "events")]
pub mod reader;
#[cfg(unix)]
pub mod tracefs;
