//! The events of a recording, each as the numbers that have changed since the last one of its kind there.

use super::number::{FIELDS, Fields, Numbers};
use super::{Lines, after_key, escape, unescape};
use crate::{Event, Memory, TraceSink};
use risetime_kernel::units::Instant;
use risetime_model::{InputError, Name};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The last numbers of each kind of event and whom it is about.
type Last = BTreeMap<(char, u64), [u64; FIELDS]>;

/// Writes the events of `trace`, and when it ends.
///
/// Errors: those of `out`; an event that lies before the one that it follows.
pub(super) fn write(trace: &Memory, out: &mut dyn Write) -> io::Result<()> {
    let (mut before, mut last) = (Instant(0), Last::new());
    for (at, event) in trace.events() {
        let unknown = || io::Error::other(format!("an event before the last one: {event:?}"));
        let since = at.0.checked_sub(before.0).ok_or_else(unknown)?;
        before = *at;
        let mut numbers = Numbers::at(*at);
        let letter = event.write(&mut numbers);
        let values = numbers.values();
        let whose = values.first().copied().unwrap_or(0);
        write!(out, "{letter}{since} {whose}")?;
        let last = last.entry((letter, whose)).or_insert([0; FIELDS]);
        for (value, before) in values.iter().zip(last.iter_mut()).skip(1) {
            write!(out, " {}", value.wrapping_sub(*before) as i64)?;
            *before = *value;
        }
        match numbers.name {
            Some(name) => writeln!(out, " \"{}", escape(&name))?,
            None => writeln!(out)?,
        }
    }
    writeln!(out, "end {}", trace.end().0)
}

/// Reads the events that come next in `lines`, of a machine of so many CPUs, up to the end.
///
/// Errors: the first fault, at its line.
pub(super) fn read(
    lines: &mut Lines<'_>,
    cpus: u64,
    memory: &mut Memory,
) -> Result<(), InputError> {
    let (mut at, mut last) = (0u64, Last::new());
    loop {
        let line = lines.take()?;
        if let Some(end) = after_key(line, "end") {
            memory.end(Instant(lines.number(end)?));
            return Ok(());
        }
        let kind = line.chars().next().unwrap_or(' ');
        let (numbers, name) = match line.split_once(" \"") {
            Some((numbers, name)) => (numbers, Name::new(&unescape(name))),
            None => (line, Name::of("")),
        };
        let mut parts = numbers.get(kind.len_utf8()..).unwrap_or("").split(' ');
        let since: u64 = lines.number(parts.next().unwrap_or(""))?;
        at = at.checked_add(since).ok_or_else(|| lines.error("is later than time goes"))?;
        let whose: u64 = lines.number(parts.next().unwrap_or(""))?;
        let before = last.entry((kind, whose)).or_insert([0; FIELDS]);
        let mut fields = Fields { lines, cpus, at, values: [0; FIELDS], len: 1, next: 0, name };
        fields.values[0] = whose;
        for part in parts {
            let i = fields.len;
            if i == FIELDS {
                return Err(lines.error("has too many numbers"));
            }
            let change: i64 = lines.number(part)?;
            fields.values[i] = before[i].wrapping_add(change as u64);
            fields.len += 1;
        }
        *before = fields.values;
        let unknown = || lines.error(format!("found an event `{kind}`: no such kind"));
        let event = Event::read(kind, &mut fields)?.ok_or_else(unknown)?;
        if fields.next < fields.len {
            return Err(lines.error("has too many numbers"));
        }
        memory.event(Instant(at), &event);
    }
}
