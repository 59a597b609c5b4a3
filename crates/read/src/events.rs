//! The one table from the kernel's events, by name and fields, to the events of a trace. All formats feed it.
//!
//! A row lists the fields that it needs, each with its spellings; a reader resolves them once for each event format (offsets in a
//! record, numbers of a message, keys of a line), and hands over a view that gives them by their places in the row.

mod marks;
mod power;
mod sched;
mod signals;
mod states;

use crate::story::Story;
use crate::take::Stamp;
pub(crate) use states::States;

/// Fields of an event, by their places in the [`Row`].
pub trait Fields {
    /// The number in a field; `None`: the event has no such field, or there is no number in it.
    fn number(&self, place: usize) -> Option<i64>;
    /// The text in a field; `None`: the event has no such field, or there is no text in it.
    fn text(&self, place: usize) -> Option<&[u8]>;
}

/// A kind of event of the kernel.
pub struct Row {
    /// Names by which kernels, modules and probes call it.
    pub names: &'static [&'static str],
    /// Fields that it needs, each with its spellings.
    pub fields: &'static [&'static [&'static str]],
    /// Signals that are in a trace which has it, as the header calls them.
    pub signals: &'static [&'static str],
    /// True if the first pass learns from its fields: threads, CPUs, frequencies.
    pub(crate) surveyed: bool,
    /// Makes the trace's events of it.
    pub(crate) take: fn(&mut Story<'_>, &Stamp<'_>, &dyn Fields),
}

/// The row's first name.
impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.names.first().fmt(f)
    }
}

impl Row {
    /// The place of the field that a format calls `name`; `None`: the row does not need it.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|spellings| spellings.contains(&name))
    }
}

/// Returns the row of the event that the kernel, a module or a probe calls `name`; `None`: nothing is made of it.
pub fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().copied().flatten().find(|row| row.names.contains(&name))
}

/// All rows.
pub const ROWS: &[&[Row]] = &[sched::ROWS, power::ROWS, signals::ROWS, marks::ROWS];

/// The text of a field, as a person reads it: up to a NUL, what is no UTF-8 replaced.
pub(crate) fn readable(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_name_is_in_one_row_and_each_spelling_once_in_it() {
        let mut names = BTreeSet::new();
        for row in ROWS.iter().copied().flatten() {
            row.names.iter().for_each(|name| assert!(names.insert(*name), "{name} twice"));
            let mut spellings = BTreeSet::new();
            row.fields.iter().copied().flatten().for_each(|field| {
                assert!(spellings.insert(*field), "{field} twice in {}", row.names[0]);
            });
        }
        assert!(names.len() > 30, "{}", names.len());
    }
}
