//! trace.dat, versions 6 and 7: what `trace-cmd record` writes.
//!
//! ```text
//! meta      head, formats of events, options: version 6 in a row (v6), version 7 in sections (v7)
//! pack      sections and chunks of pages, packed by zlib or zstd
//! cursor    one CPU's pages, a window of them at a time
//! formats   the fields that a row needs, at the offsets that the file's formats say
//! merge     the CPUs' events by time, then CPU, then the CPU's own order
//! ```
//!
//! Memory: a window of 64 KiB for each CPU, where pages are packed a chunk of them. Traps of real files that are heeded: the clock
//! that a version-7 BUFFER option names is wrong where an instance was recorded, so that only the option TRACECLOCK counts; a page
//! tells of events that were lost *before* it, which is said of the CPU from its last event on; `overrun` of a CPU whose pages tell of
//! no loss was at the begin, where a flight recorder overwrites.
//!
//! Source: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5), Documentation/trace/ring-buffer-design.rst.

mod bytes;
mod cursor;
mod formats;
mod merge;
mod meta;
mod pack;
mod v6;
mod v7;

use crate::format::{Options, Reader};
use crate::take::{Began, Fact, Take};
use crate::{Fault, Source};
use formats::Formats;
use meta::{Buffer, Meta};
use risetime_ftrace::page::PageLayout;
use risetime_model::Code;

/// First bytes of every trace.dat.
const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Whether a file that begins like this is a trace.dat.
pub(crate) fn told(start: &[u8]) -> bool {
    start.starts_with(MAGIC)
}

/// Opens a trace.dat: reads all but the pages.
///
/// Errors: a version or a packing that is not known, a file that is cut before its pages, no such buffer.
pub(crate) fn open<'a>(
    source: &'a Source,
    options: &Options,
) -> Result<Box<dyn Reader + 'a>, Fault> {
    let mut meta = meta::read(source)?;
    let layout = PageLayout::parse(&meta.header_page)
        .map_err(|what| Fault::new(source.name(), what))?
        .in_order(meta.order);
    let buffer = choose(source, &mut meta, options.buffer.as_deref())?;
    let layout = layout.with_pages(buffer.page_size).ok_or_else(|| {
        Fault::new(source.name(), format!("has pages of {} bytes", buffer.page_size))
    })?;
    let formats = Formats::new(&meta.formats, meta.order);
    Ok(Box::new(Dat { source, meta, buffer, layout, formats }))
}

/// Takes the buffer of this name from those of the file; `None`: the top one, or the only one that holds anything.
///
/// Errors: there is none of this name.
fn choose(source: &Source, meta: &mut Meta, name: Option<&str>) -> Result<Buffer, Fault> {
    let holds = |buffer: &Buffer| buffer.cpus.iter().any(|data| data.size > 0);
    let names: Vec<String> = meta.buffers.iter().map(|b| b.name.clone()).collect();
    let full: Vec<usize> = (0..names.len()).filter(|i| holds(&meta.buffers[*i])).collect();
    let place = match name {
        Some(name) => names.iter().position(|n| n == name),
        None => {
            let top = names.iter().position(String::is_empty);
            top.filter(|top| full.contains(top)).or(full.first().copied()).or(top)
        }
    };
    let Some(place) = place else {
        let named: Vec<&str> =
            names.iter().map(|n| if n.is_empty() { "(top)" } else { n }).collect();
        let what = format!("has no such buffer; it has {}", named.join(", "));
        return Err(Fault::new(source.name(), what).code(Code::UnknownName));
    };
    let others: Vec<&str> =
        full.iter().filter(|i| **i != place).map(|i| names[*i].as_str()).collect();
    if !others.is_empty() {
        let others: Vec<&str> =
            others.into_iter().map(|n| if n.is_empty() { "(top)" } else { n }).collect();
        meta.notes.push(format!(
            "the file has further buffers, which were not read: {}",
            others.join(", ")
        ));
    }
    if name.is_none() && !names[place].is_empty() {
        meta.notes
            .push(format!("the top buffer is empty; read was the instance `{}`", names[place]));
    }
    Ok(meta.buffers.swap_remove(place))
}

/// A trace.dat, opened.
struct Dat<'a> {
    source: &'a Source,
    meta: Meta,
    buffer: Buffer,
    layout: PageLayout,
    formats: Formats,
}

impl Reader for Dat<'_> {
    fn pass(&mut self, take: &mut dyn Take) -> Result<(), Fault> {
        self.facts(take);
        let ends = merge::pass(
            &merge::File {
                source: self.source,
                buffer: &self.buffer,
                layout: self.layout,
                formats: &self.formats,
                time: self.meta.time,
                packing: self.meta.packing,
                order: self.meta.order,
            },
            take,
        );
        for end in ends {
            let overrun = self.meta.overruns.iter().find(|(cpu, n)| *cpu == end.cpu && *n > 0);
            if let Some(first) =
                end.first.filter(|_| end.lost_first || overrun.is_some() && !end.lost)
            {
                let began = Began::At(first);
                take.fact(&Fact::Began { cpu: end.cpu, began });
            }
        }
        Ok(())
    }
}

impl Dat<'_> {
    /// Hands over what the file says beside its events.
    fn facts(&self, take: &mut dyn Take) {
        let meta = &self.meta;
        take.fact(&Fact::Cpus(meta.cpus));
        if let Some(clock) = &meta.clock {
            match risetime_trace::Clock::ALL.into_iter().find(|c| c.as_str() == clock) {
                Some(clock) => take.fact(&Fact::Clock(clock)),
                None => take.fact(&Fact::OtherClock(clock)),
            }
        }
        if let Some(release) = &meta.release {
            take.fact(&Fact::Release(release));
        }
        for (pid, comm) in &meta.comms {
            take.fact(&Fact::Thread { pid: *pid, tgid: None, comm: Some(comm) });
        }
        if let Some(new) = self.formats.new_states() {
            take.fact(&Fact::States { new });
        }
        for note in &meta.notes {
            take.fact(&Fact::Note(note));
        }
        for (offset, what) in &meta.damages {
            take.fact(&Fact::Damage { offset: *offset, what });
        }
    }
}
