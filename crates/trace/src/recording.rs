//! A trace as text that reads back as the same trace: what a reference is kept in.
//!
//! ```text
//! backend vm                     the header, one key a line; what a person wrote is escaped (\\, \n)
//! set rate_limit_us 10000
//! platform                       and its TOML, each line after a space
//! events
//! s1520 0 1 -3 …                 kind, ns since the event before, whose (CPU or task); then what has
//!                                changed since the last event of this kind there
//! end 1500000000                 when the run was over
//! ```
//!
//! Differences, because most of a trace is signals that move a little: the text then packs to a
//! quarter. A line a thing, because whoever is told "line 5120" can look.
//!
//! The header is in `header`, the events in `event`; `number` has what each type of field becomes.
//!
//! Left out: [`Run::signals`](crate::Run::signals), which tell a reader whence figures come and decide nothing.

mod event;
mod header;
mod lines;
mod number;

pub use lines::Lines;
use lines::after_key;
pub(crate) use number::{Fields, Number, Numbers};

use crate::{Memory, TraceSink};
use risetime_model::InputError;
use std::fmt::Display;
use std::io::{self, Write};

/// `text` as lines after a space.
pub fn write_block(out: &mut dyn Write, key: &str, text: &str) -> io::Result<()> {
    writeln!(out, "{key}")?;
    text.lines().try_for_each(|line| writeln!(out, " {line}"))
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => out.push(if chars.next() == Some('n') { '\n' } else { '\\' }),
            (c, false) => out.push(c),
        }
    }
    out
}

fn list<T: Display>(numbers: impl IntoIterator<Item = T>) -> String {
    numbers.into_iter().map(|n| n.to_string()).collect::<Vec<_>>().join(" ")
}

/// Writes `trace`, which has a header.
///
/// Errors: those of `out`; a trace that has none, or words of which [`read`] would know nothing.
pub fn write(trace: &Memory, out: &mut dyn Write) -> io::Result<()> {
    let header = trace.header().ok_or_else(|| io::Error::other("a trace without a header"))?;
    header::write(header, out)?;
    writeln!(out, "events")?;
    event::write(trace, out)
}

/// The trace that comes next in `lines`.
///
/// Errors: the first fault, at its line.
pub fn read(lines: &mut Lines<'_>) -> Result<Memory, InputError> {
    let header = header::read(lines)?;
    lines.value("events")?;
    let mut memory = Memory::new();
    TraceSink::header(&mut memory, &header);
    event::read(lines, header.machine.platform.nr_cpus() as u64, &mut memory)?;
    Ok(memory)
}

#[cfg(test)]
mod tests;
