//! Lines of a text, read one after the other.

use risetime_model::InputError;
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

    /// `place:number` of the line that is read next.
    pub(super) fn next_place(&self) -> String {
        format!("{}:{}", self.place, self.number + 1)
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

    pub(super) fn take(&mut self) -> Result<&'a str, InputError> {
        self.number += 1;
        self.lines.next().ok_or_else(|| self.error("ends too early"))
    }

    pub(super) fn number<T: FromStr>(&self, text: &str) -> Result<T, InputError> {
        text.parse().map_err(|_| self.error(format!("found `{text}`, wanted a number")))
    }

    /// Returns the one of `known` whose word `text` is.
    pub(super) fn choice<T: Copy>(
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

pub(super) fn after_key<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(key)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ') }
}
