//! trace.dat of version 6: all in a row, the pages at the end.
//!
//! ```text
//! "header_page\0"   u64 size, text        "header_event\0"   u64 size, text
//! u32 formats       u64 size, text each                      (ftrace's own)
//! u32 systems       name\0, u32 formats   u64 size, text each
//! u32 size, kallsyms      u32 size, printk      u64 size, names of threads
//! u32 CPUs
//! "options  \0"     u16 id, u32 size, data each, id 0 ends them
//! "flyrecord\0"     u64 offset, u64 size of each CPU's pages
//! ```
//!
//! An instance is an option: u64 offset, name\0; there stands a "flyrecord\0" of its own.

use super::bytes::{Bytes, Cut};
use super::meta::{Buffer, CpuData, MAX_CPUS, MAX_FORMATS, Meta};
use crate::Source;

/// Number of the option of an instance.
const BUFFER: u16 = 3;

/// Reads the rest of a file whose head has been read.
///
/// Errors: the file is cut.
pub(super) fn read(source: &Source, mut file: Bytes<'_>, meta: &mut Meta) -> Result<(), Cut> {
    let named = |file: &mut Bytes<'_>, name: &str| {
        let at = file.offset();
        (file.string()? == name).then_some(()).ok_or(Cut(at))
    };
    named(&mut file, "header_page")?;
    meta.header_page = file.text()?;
    named(&mut file, "header_event")?;
    file.text()?;
    let own = file.word()?;
    formats(&mut file, own, meta)?;
    for _ in 0..file.word()? {
        file.string()?;
        let n = file.word()?;
        formats(&mut file, n, meta)?;
    }
    let symbols = file.word()?;
    file.skip(symbols.into())?;
    let printk = file.word()?;
    file.skip(printk.into())?;
    let comms = file.long()?;
    let comms = file.take(comms)?;
    meta.set_comms(&comms);
    meta.cpus = file.word()?.min(MAX_CPUS);
    let mut instances = Vec::new();
    loop {
        let at = file.offset();
        match file.take(10)?.as_slice() {
            b"options  \0" => options(&mut file, meta, &mut instances)?,
            b"flyrecord\0" => break,
            _ => {
                let what = "no pages follow: a latency trace, which is text, is not read from here";
                meta.damages.push((at, what.into()));
                return Ok(());
            }
        }
    }
    let top = table(&mut file, meta, String::new())?;
    meta.buffers.push(top);
    for (offset, name) in instances {
        let mut there = Bytes::of(source, offset, meta.order);
        let found = there.take(10).and_then(|word| {
            if word == b"flyrecord\0" {
                table(&mut there, meta, name.clone())
            } else {
                Err(Cut(offset))
            }
        });
        match found {
            Ok(buffer) => meta.buffers.push(buffer),
            Err(Cut(at)) => {
                meta.damages.push((at, format!("the instance `{name}` has no pages there")));
            }
        }
    }
    Ok(())
}

fn formats(file: &mut Bytes<'_>, n: u32, meta: &mut Meta) -> Result<(), Cut> {
    for _ in 0..n {
        if meta.formats.len() >= MAX_FORMATS {
            return Err(Cut(file.offset()));
        }
        let text = file.text()?;
        meta.formats.push(text);
    }
    Ok(())
}

fn options(
    file: &mut Bytes<'_>,
    meta: &mut Meta,
    instances: &mut Vec<(u64, String)>,
) -> Result<(), Cut> {
    loop {
        let id = file.half()?;
        if id == 0 {
            return Ok(());
        }
        let size = file.word()?;
        let data = file.take(size.into())?;
        if id == BUFFER && data.len() > 8 {
            let name = data[8..].split(|b| *b == 0).next().unwrap_or_default();
            let name = String::from_utf8_lossy(name).into_owned();
            if !name.is_empty() && instances.len() < 256 {
                instances.push((meta.order.number(&data[..8]), name));
            }
        }
        let before = meta.cpus;
        meta.option(id, &data);
        // The count in the file's row is what its tables go by.
        meta.cpus = before;
    }
}

fn table(file: &mut Bytes<'_>, meta: &Meta, name: String) -> Result<Buffer, Cut> {
    let mut cpus = Vec::new();
    for cpu in 0..meta.cpus {
        cpus.push(CpuData { cpu, offset: file.long()?, size: file.long()? });
    }
    Ok(Buffer { name, page_size: meta.page_size as usize, cpus, packed: false })
}
