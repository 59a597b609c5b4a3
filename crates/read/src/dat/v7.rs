//! trace.dat of version 7: sections, found through options.
//!
//! ```text
//! section    u16 id, u16 flags (bit 0: packed), u32 name, u64 size; packed: u32 packed size, u32 size, data
//! options    (section 0) u16 id, u32 size, data each; id 0: u64 offset of the next options, 0: there are none
//! BUFFER     u64 offset of its section, name\0, clock\0, u32 page size, u32 CPUs; each: u32 CPU, u64 offset, u64 size
//! pages      as they are; packed: u32 chunks; each: u32 packed size, u32 size, data
//! ```
//!
//! A file that was cut may have lost its options: what its sections say is then found by walking over them, but where pages of
//! which CPU lie only an option says.

use super::bytes::{Bytes, Cut, MAX_PART};
use super::meta::{Buffer, CpuData, MAX_CPUS, MAX_FORMATS, Meta};
use super::pack::Packing;
use crate::Source;

/// Options that lead to sections.
const BUFFER: u16 = 3;
const HEADERS: u16 = 16;
const FTRACE_FORMATS: u16 = 17;
const FORMATS: u16 = 18;
const COMMS: u16 = 21;
/// Sections of options of a file at most: a circle of them is no file.
const MAX_OPTIONS: usize = 1024;

/// Reads what the options at `offset` and those that they lead to say.
///
/// Errors: the file is cut before its options.
pub(super) fn read(source: &Source, offset: u64, meta: &mut Meta) -> Result<(), Cut> {
    let mut next = offset;
    let mut seen = 0;
    while next != 0 && seen < MAX_OPTIONS {
        seen += 1;
        next = match section(source, next, meta)
            .and_then(|(mut part, _)| options(source, &mut part, meta))
        {
            Ok(next) => next,
            Err(Cut(at)) => {
                meta.damages.push((at, "the options end there".into()));
                0
            }
        };
    }
    if seen == 0 {
        return Err(Cut(offset));
    }
    Ok(())
}

/// The inside of the section at `offset`, unpacked, and whether it was packed.
fn section<'a>(source: &'a Source, offset: u64, meta: &Meta) -> Result<(Bytes<'a>, bool), Cut> {
    let mut file = Bytes::of(source, offset, meta.order);
    let _id = file.half()?;
    let packed = file.half()? & 1 != 0;
    let _name = file.word()?;
    let size = file.long()?;
    if !packed {
        return Ok((file, false));
    }
    let at = file.offset();
    let (small, whole) = (u64::from(file.word()?), u64::from(file.word()?));
    if small > size || whole > MAX_PART {
        return Err(Cut(at));
    }
    let inside = file.take(small)?;
    let inside = meta.packing.unpack(&inside, whole as usize).map_err(|_| Cut(at))?;
    Ok((Bytes::unpacked(inside, at, meta.order), true))
}

/// Reads a section of options; returns the offset of the next one, 0: there is none.
fn options(source: &Source, part: &mut Bytes<'_>, meta: &mut Meta) -> Result<u64, Cut> {
    loop {
        let id = part.half()?;
        let size = part.word()?;
        let at = part.offset();
        let data = part.take(size.into())?;
        let leads = data.get(..8).map(|b| part.order().number(b));
        match (id, leads) {
            (0, leads) => return Ok(leads.unwrap_or(0)),
            (BUFFER, _) => match buffer(source, data, meta, at) {
                Ok(buffer) if meta.buffers.len() < 256 => meta.buffers.push(buffer),
                Ok(_) => {}
                Err(Cut(at)) => meta.damages.push((at, "a buffer's option ends there".into())),
            },
            (HEADERS | FTRACE_FORMATS | FORMATS | COMMS, Some(leads)) => {
                let found = section(source, leads, meta)
                    .and_then(|(mut part, _)| inside(id, &mut part, meta));
                if let Err(Cut(at)) = found {
                    meta.damages.push((at, format!("the section of option {id} ends there")));
                }
            }
            _ => meta.option(id, &data),
        }
    }
}

/// Reads the section that an option of this number leads to.
fn inside(id: u16, part: &mut Bytes<'_>, meta: &mut Meta) -> Result<(), Cut> {
    let formats = |part: &mut Bytes<'_>, meta: &mut Meta| {
        for _ in 0..part.word()? {
            if meta.formats.len() >= MAX_FORMATS {
                return Err(Cut(part.offset()));
            }
            let text = part.text()?;
            meta.formats.push(text);
        }
        Ok(())
    };
    match id {
        HEADERS => {
            part.string()?;
            meta.header_page = part.text()?;
        }
        FTRACE_FORMATS => formats(part, meta)?,
        FORMATS => {
            for _ in 0..part.word()? {
                part.string()?;
                formats(part, meta)?;
            }
        }
        _ => {
            let size = part.long()?;
            let comms = part.take(size)?;
            meta.set_comms(&comms);
        }
    }
    Ok(())
}

/// Reads the option of a buffer, which stands at `at`.
fn buffer(source: &Source, data: Vec<u8>, meta: &Meta, at: u64) -> Result<Buffer, Cut> {
    let mut data = Bytes::unpacked(data, at, meta.order);
    let section = data.long()?;
    let name = data.string()?;
    // The clock that stands here is wrong where an instance was recorded.
    let _clock = data.string()?;
    let page_size = data.word()? as usize;
    let mut cpus = Vec::new();
    for _ in 0..data.word()?.min(MAX_CPUS) {
        cpus.push(CpuData { cpu: data.word()?, offset: data.long()?, size: data.long()? });
    }
    let mut head = Bytes::of(source, section, meta.order);
    head.half()?;
    let packed = head.half()? & 1 != 0 && meta.packing != Packing::None;
    Ok(Buffer { name, page_size, cpus, packed })
}
