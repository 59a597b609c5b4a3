//! ftrace's text in its dialects, which differ in what stands around the same lines.
//!
//! ```text
//! tracefs, trace      # tracer: nop … entries-in-buffer/entries-written: 5/7 #P:4; ##### CPU 2 buffer started ####
//! trace-cmd report    cpus=6; version = 6; CPU 1 is empty; CPU:3 [12 EVENTS DROPPED]; INSTANCE: before a line
//!   -R, -t, -l        raw numbers; ns; flags glued to the CPU's number
//! systrace            HTML with the text inside a script element, or in a string whose lines end in \n\
//! atrace              the text behind TRACE:, which may be compressed (zlib)
//! ```

mod fields;
mod input;
mod line;

use crate::events::{self, Row};
use crate::format::{Options, Reader};
use crate::take::{Began, Fact, Stamp, Take};
use crate::{Fault, Source};
use fields::TextFields;
use input::Lines;
use line::{Head, head};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes from which the buffer of a text is told.
const HEAD: usize = 64 << 10;
/// Lines of which a head of a file is looked at to tell the format.
const LOOKED_AT: usize = 4096;
/// Damaged lines in a row behind which the rest of a text is another thing (a dump of processes, say).
const MOST_IN_A_ROW: u64 = 1000;

/// Other buffers that are named.
const MOST_OTHERS: usize = 16;

/// Whether a file that begins like this is ftrace's text.
pub(crate) fn told(start: &[u8]) -> bool {
    if is_html(start) || input::compressed_at(start).is_some() {
        return true;
    }
    // What is no text has NULs.
    if start.contains(&0) {
        return false;
    }
    let first = |line: &[u8]| line.starts_with(b"# tracer: ") || head(trimmed(line)).is_some();
    start.split(|b| *b == b'\n').take(LOOKED_AT).any(first)
}

fn is_html(start: &[u8]) -> bool {
    let start = start.trim_ascii_start();
    let begins =
        |with: &[u8]| start.get(..with.len()).is_some_and(|s| s.eq_ignore_ascii_case(with));
    begins(b"<!doctype html") || begins(b"<html")
}

/// A line without what its dialect puts at its end.
fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii_end();
    // A string of a script: `…\n\`.
    line.strip_suffix(b"\\n\\").unwrap_or(line)
}

/// Opens a text.
///
/// Errors: an instance that the text cannot have.
pub(crate) fn open<'a>(
    source: &'a Source,
    options: &Options,
) -> Result<Box<dyn Reader + 'a>, Fault> {
    let start = source.head(HEAD);
    let html = is_html(&start);
    let buffer = options.buffer.clone().or_else(|| only_instance(&start));
    Ok(Box::new(Text { source, html, buffer, rows: Rows::default() }))
}

/// The instance to which all lines of a text that begins like this belong; `None`: there is none.
fn only_instance(start: &[u8]) -> Option<String> {
    let mut lines = start.split(|b| *b == b'\n').filter_map(|line| head(trimmed(line)));
    let first = lines.next()?.instance?;
    let same = lines.all(|head| head.instance == Some(first));
    same.then(|| String::from_utf8_lossy(first).into_owned())
}

/// Rows by the names of events that a text has.
#[derive(Default)]
struct Rows(BTreeMap<Vec<u8>, Option<&'static Row>>);

/// Names of events that are looked up once.
const KEPT_NAMES: usize = 4096;

impl Rows {
    fn get(&mut self, name: &[u8]) -> Option<&'static Row> {
        if let Some(known) = self.0.get(name) {
            return *known;
        }
        let row = std::str::from_utf8(name).ok().and_then(events::row);
        if self.0.len() < KEPT_NAMES {
            self.0.insert(name.to_vec(), row);
        }
        row
    }
}

/// A text, opened.
struct Text<'a> {
    source: &'a Source,
    html: bool,
    buffer: Option<String>,
    rows: Rows,
}

impl Reader for Text<'_> {
    fn pass(&mut self, take: &mut dyn Take) -> Result<(), Fault> {
        let unreadable = |e: std::io::Error| {
            Fault::new(self.source.name(), format!("cannot be read: {e}"))
                .code(risetime_model::Code::Unreadable)
        };
        let mut lines = Lines::new(self.source);
        let mut walk = Walk { html: self.html, ..Walk::default() };
        while let Some((offset, line)) = lines.next().map_err(unreadable)? {
            walk.line(offset, trimmed(line), self.buffer.as_deref(), &mut self.rows, take);
            if !walk.html && walk.in_a_row >= MOST_IN_A_ROW {
                break;
            }
        }
        if let Some((offset, what)) = lines.damage() {
            take.fact(&Fact::Damage { offset, what: &what });
        }
        Ok(())
    }
}

/// A walk over the lines.
#[derive(Default)]
struct Walk {
    html: bool,
    /// Instance of the next line, which does not say it: that of a loss.
    owed: Option<Option<Vec<u8>>>,
    /// Other buffers of which there was a line.
    others: BTreeSet<Vec<u8>>,
    /// CPUs of which there was a line.
    seen: BTreeSet<u32>,
    /// CPUs whose buffers begin with their next line.
    begins: Vec<u32>,
    in_a_row: u64,
}

impl Walk {
    fn line(
        &mut self,
        offset: u64,
        line: &[u8],
        buffer: Option<&str>,
        rows: &mut Rows,
        take: &mut dyn Take,
    ) {
        let Some(Head { instance, comm, pid, tgid, cpu, at, rest }) = head(line) else {
            if !self.said(line, buffer, take) {
                self.in_a_row += 1;
                // HTML is full of lines that are none.
                if !self.html && self.in_a_row < MOST_IN_A_ROW {
                    take.fact(&Fact::Damage { offset, what: "a line that is no event" });
                }
            }
            return;
        };
        self.in_a_row = 0;
        // The line behind a loss lacks its prefix, which the line of the loss has taken.
        let owed = self.owed.take();
        let instance = owed.as_ref().map_or(instance, |owed| owed.as_deref());
        if instance != buffer.map(str::as_bytes) {
            self.other(instance, take);
            return;
        }
        self.seen.insert(cpu);
        if !self.begins.is_empty() {
            self.begins.retain(|begins| {
                if *begins == cpu {
                    take.fact(&Fact::Began { cpu, began: Began::At(at) });
                }
                *begins != cpu
            });
        }
        let Some((name, rest)) = event(rest) else { return };
        // systrace ends with a line that nobody traced, of time 0.
        if at == 0 && name == b"0" {
            return;
        }
        let Some(row) = rows.get(name) else { return };
        let stamp = Stamp { at, cpu, pid, tgid, comm: Some(comm) };
        take.event(&stamp, row, &TextFields::new(row, name, rest));
    }

    /// Takes in that there is a line of another buffer than the one that is read.
    fn other(&mut self, instance: Option<&[u8]>, take: &mut dyn Take) {
        let name = instance.unwrap_or(b"(top)");
        if self.others.len() < MOST_OTHERS && !self.others.contains(name) {
            self.others.insert(name.to_vec());
            let name = String::from_utf8_lossy(name);
            take.fact(&Fact::Note(&format!(
                "the file has a further buffer, which was not read: {name}"
            )));
        }
    }

    /// Takes in a line that is no event; false: it says nothing that is known.
    fn said(&mut self, line: &[u8], buffer: Option<&str>, take: &mut dyn Take) -> bool {
        let text = String::from_utf8_lossy(line.get(..256).unwrap_or(line));
        let text = text.trim();
        if text.is_empty() {
            return true;
        }
        let numbers = || text.split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty());
        let number = |nth: usize| numbers().nth(nth).and_then(|n| n.parse::<u64>().ok());
        let cpu = |n: Option<u64>| n.and_then(|n| u32::try_from(n).ok());
        if let Some(n) = text.strip_prefix("cpus=").and_then(|n| n.parse().ok()) {
            take.fact(&Fact::Cpus(n));
        } else if text.starts_with("# entries-in-buffer") {
            if let Some(n) = text.split("#P:").nth(1).and_then(|n| n.trim().parse().ok()) {
                take.fact(&Fact::Cpus(n));
            }
        } else if text.starts_with("##### CPU ") {
            self.begins.extend(cpu(number(0)));
        } else if text.contains("CPU:") && text.ends_with("EVENTS DROPPED]")
            || text.starts_with("CPU:") && text.ends_with("EVENTS]")
        {
            let at = text.find("CPU:").unwrap_or(0);
            let mut numbers = text[at..].split(|c: char| !c.is_ascii_digit());
            let mut next = || numbers.find(|n| !n.is_empty()).and_then(|n| n.parse::<u64>().ok());
            let instance = text[..at].trim().strip_suffix(':');
            self.owed = Some(instance.map(|name| name.as_bytes().to_vec()));
            if instance != buffer {
                return true;
            }
            match cpu(next()) {
                // Before its first event they were overwritten.
                Some(cpu) if !self.seen.contains(&cpu) => self.begins.push(cpu),
                Some(cpu) => take.fact(&Fact::Lost { cpu, since: None, events: next() }),
                None => {}
            }
        } else {
            // Comments, the empty CPUs of a report, stacks, lines of atrace.
            let known = ["#", "version = ", "CPU ", "=> ", "TRACE:", "capturing trace"];
            return known.iter().any(|known| text.starts_with(known));
        }
        true
    }
}

/// The event's name and what follows it.
fn event(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = rest.iter().position(|b| *b == b':')?;
    let name = rest[..end].trim_ascii();
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' || *b == b'-';
    (!name.is_empty() && name.iter().all(word)).then(|| (name, rest[end + 1..].trim_ascii()))
}
