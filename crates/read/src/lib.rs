//! Readers of traces that somebody else took: one registry of formats, each told from a file's first bytes.
//!
//! ```text
//! Source ── format (told from its first bytes) ──> a Reader          walks the file, event by event, by time
//!                                                     │ named event + fields, facts (clock, losses, damage)
//!               events (one table for all formats) <──┘
//!                        │
//!                      Story   who is which task, what is known since when
//!         first pass     │     second pass
//!      Survey <──────────┴──────────> TraceSink, Beside
//! ```
//!
//! A trace is read twice. The first pass finds what its header has to say before the first event: CPUs, frequencies, clock, losses,
//! the time from which every CPU's buffer tells. The second one pushes the events. So nothing is kept but what a window of the
//! file holds.
//!
//! **What is unknown stays unknown.** Each CPU is unknown until its first event, and from the last event before a loss on
//! ([`Event::Unseen`](risetime_trace::Event)); figures begin where the last of the overwritten buffers begins. A task that was there
//! before its first event is told with [`Why::Earlier`](risetime_trace::Why). A frequency is unknown before its first event.
//!
//! A damaged file is read as far as it is sound; each damage is a note with its offset. Nothing here panics on any bytes.

mod beside;
mod dat;
pub mod events;
mod format;
mod source;
mod story;
mod survey;
mod take;
mod text;

pub use beside::{Beside, Mark};
pub use format::{FORMATS, Format, Options, ReadSummary, Reader, read, read_beside, told};
pub use risetime_model::InputError as Fault;
pub use source::{Source, Stream};
pub use take::{Began, Fact, Stamp, Take};
