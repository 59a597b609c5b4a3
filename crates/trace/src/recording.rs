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
mod number;

pub(crate) use number::{Fields, Number, Numbers};

use crate::{Memory, TraceSink};
use risetime_model::InputError;
use std::fmt::Display;
use std::io::{self, Write};
use std::str::FromStr;

/// The lines of a text, and where one is.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    place: &'a str,
    lines: std::iter::Peekable<std::str::Lines<'a>>,
    number: usize,
}

impl<'a> Lines<'a> {
    /// The lines of `text`, which errors call `place`.
    pub fn new(text: &'a str, place: &'a str) -> Lines<'a> {
        Lines { place, lines: text.lines().peekable(), number: 0 }
    }

    /// An error about the line that was read last.
    pub fn error(&self, what: impl Into<String>) -> InputError {
        InputError::new(format!("{}:{}", self.place, self.number.max(1)), what)
    }

    /// Reads what follows `key` on the next line.
    ///
    /// Errors: another line, or none.
    pub fn value(&mut self, key: &str) -> Result<&'a str, InputError> {
        let line = self.take()?;
        after_key(line, key).ok_or_else(|| {
            let start: String = line.chars().take(40).collect();
            self.error(format!("found `{start}`, wanted `{key} …`"))
        })
    }

    /// Reads what follows `key` on the next line, if that is its key.
    pub fn opt_value(&mut self, key: &str) -> Option<&'a str> {
        let found = after_key(self.lines.peek()?, key)?;
        self.number += 1;
        self.lines.next();
        Some(found)
    }

    /// The lines after a space that follow `key`.
    ///
    /// Errors: another key.
    pub fn block(&mut self, key: &str) -> Result<String, InputError> {
        self.value(key)?;
        let mut text = String::new();
        while let Some(line) = self.lines.next_if(|l| l.starts_with(' ')) {
            self.number += 1;
            text.push_str(&line[1..]);
            text.push('\n');
        }
        Ok(text)
    }

    /// Whether all has been read.
    pub fn is_done(&mut self) -> bool {
        self.lines.peek().is_none()
    }

    fn take(&mut self) -> Result<&'a str, InputError> {
        self.number += 1;
        self.lines.next().ok_or_else(|| self.error("ends too early"))
    }

    fn number<T: FromStr>(&self, text: &str) -> Result<T, InputError> {
        text.parse().map_err(|_| self.error(format!("found `{text}`, wanted a number")))
    }

    /// Returns the one of `known` whose word `text` is.
    fn choice<T: Copy>(
        &self,
        text: &str,
        known: &[T],
        word: fn(T) -> &'static str,
    ) -> Result<T, InputError> {
        let words = || known.iter().map(|k| word(*k)).collect::<Vec<_>>().join(", ");
        let wanted = || self.error(format!("found `{text}`, wanted one of {}", words()));
        known.iter().copied().find(|k| word(*k) == text).ok_or_else(wanted)
    }
}

fn after_key<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(key)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ') }
}

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
