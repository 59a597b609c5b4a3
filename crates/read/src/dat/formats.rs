//! Events of a file: the fields that a row needs, at the offsets that the file's formats say.

use crate::events::{self, Fields, Row};
use risetime_ftrace::page::{Field, Format, Order, Record};

/// Fields that a row has at most.
const PLACES: usize = 12;

/// A kind of event of the file, ready to be read.
pub(super) struct Compiled {
    pub(super) row: &'static Row,
    fields: [Option<Field>; PLACES],
}

/// The kinds of events of a file, by their numbers.
pub(super) struct Formats {
    by_id: Vec<Option<Box<Compiled>>>,
    pid: Option<Field>,
    new_states: Option<bool>,
}

impl Formats {
    /// Reads the texts of the events' formats.
    pub(super) fn new(texts: &[String], _order: Order) -> Formats {
        let mut all = Formats { by_id: Vec::new(), pid: None, new_states: None };
        for text in texts {
            let Some(format) = Format::parse(text) else { continue };
            all.pid = all.pid.or(format.fields.get("common_pid").copied());
            if format.name == "sched_switch" {
                all.new_states = states(text);
            }
            let Some(row) = events::row(&format.name) else { continue };
            let mut fields = [None; PLACES];
            for (slot, spellings) in fields.iter_mut().zip(row.fields) {
                *slot = spellings.iter().find_map(|name| format.fields.get(*name).copied());
            }
            let id = usize::from(format.id);
            if all.by_id.len() <= id {
                all.by_id.resize_with(id + 1, || None);
            }
            all.by_id[id] = Some(Box::new(Compiled { row, fields }));
        }
        all
    }

    /// The kind of an event; `None`: nothing is made of it.
    #[inline]
    pub(super) fn of(&self, record: &Record<'_>) -> Option<&Compiled> {
        self.by_id.get(usize::from(record.id()?))?.as_deref()
    }

    /// The thread that ran when an event was written; 0: unknown.
    #[inline]
    pub(super) fn pid(&self, record: &Record<'_>) -> i32 {
        self.pid.and_then(|field| record.number(field)).unwrap_or(0) as i32
    }

    /// Whether task states have the numbers of 4.14 and later; `None`: the file does not say.
    pub(super) fn new_states(&self) -> Option<bool> {
        self.new_states
    }
}

/// Tells by the letter that `sched_switch` prints for 64 whether the kernel is 4.14 or later.
fn states(text: &str) -> Option<bool> {
    let print = text.split("print fmt:").nth(1)?;
    for part in print.split('{').skip(1) {
        let mut pair = part.split(['}', ',']);
        let number = pair.next()?.trim();
        let number = match number.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => number.parse().ok(),
        };
        let letter = pair.next().unwrap_or_default().trim().trim_matches('"');
        match (number, letter) {
            (Some(64), "P") => return Some(true),
            (Some(64), "x") => return Some(false),
            _ => {}
        }
    }
    None
}

/// The fields of an event.
pub(super) struct RecordFields<'a> {
    pub(super) record: &'a Record<'a>,
    pub(super) compiled: &'a Compiled,
}

impl Fields for RecordFields<'_> {
    #[inline]
    fn number(&self, place: usize) -> Option<i64> {
        self.record.number((*self.compiled.fields.get(place)?)?)
    }
    #[inline]
    fn text(&self, place: usize) -> Option<&[u8]> {
        self.record.bytes((*self.compiled.fields.get(place)?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_told_by_the_letter_of_a_parked_or_dead_task() {
        let old = "name: sched_switch\nprint fmt: \"%s\", __print_flags(REC->prev_state, \"|\", \
                   { 1, \"S\"} , { 64, \"x\" }, { 128, \"K\" }";
        let new = "print fmt: \"%s\", __print_flags(REC->prev_state, \"|\", { 0x00000001, \"S\" }, \
                   { 0x00000040, \"P\" }";
        assert_eq!(
            [old, new, "print fmt: \"\"", ""].map(states),
            [Some(false), Some(true), None, None]
        );
    }
}
