//! Parts of a trace.dat, written in the shapes that its versions and machines have.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use risetime_ftrace::page::{Format, Order};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::collections::BTreeMap;
use std::io::Write;

/// Parts of a trace.dat of version 6 of a 64-bit machine whose lowest byte comes first.
#[derive(Clone, Default)]
pub(crate) struct Parts {
    pub(crate) header_page: String,
    pub(crate) systems: Vec<(String, Vec<String>)>,
    pub(crate) options: Vec<(u16, Vec<u8>)>,
    pub(crate) pages: Vec<Vec<u8>>,
}

struct At<'a>(&'a [u8], usize);

impl<'a> At<'a> {
    fn take(&mut self, n: usize) -> &'a [u8] {
        self.1 += n;
        &self.0[self.1 - n..self.1]
    }
    fn number(&mut self, n: usize) -> usize {
        Order::Little.number(self.take(n)) as usize
    }
    fn string(&mut self) -> String {
        let n = self.0[self.1..].iter().position(|b| *b == 0).expect("a NUL");
        let text = self.take(n).to_vec();
        self.take(1);
        String::from_utf8(text).expect("text")
    }
    fn text(&mut self) -> String {
        let n = self.number(8);
        String::from_utf8(self.take(n).to_vec()).expect("text")
    }
}

impl Parts {
    /// Takes a file apart.
    pub(crate) fn of(bytes: &[u8]) -> Parts {
        let mut at = At(bytes, 10);
        assert_eq!((at.string().as_str(), at.number(1), at.number(1)), ("6", 0, 8));
        assert_eq!((at.number(4), at.string().as_str()), (4096, "header_page"));
        let mut parts = Parts { header_page: at.text(), ..Parts::default() };
        at.string();
        at.text();
        assert_eq!(at.number(4), 0, "formats of ftrace's own");
        for _ in 0..at.number(4) {
            let name = at.string();
            let formats = (0..at.number(4)).map(|_| at.text()).collect();
            parts.systems.push((name, formats));
        }
        for _ in 0..2 {
            let n = at.number(4);
            at.take(n);
        }
        at.text();
        let cpus = at.number(4);
        assert_eq!(at.take(10), b"options  \0");
        loop {
            let id = at.number(2) as u16;
            if id == 0 {
                break;
            }
            let n = at.number(4);
            parts.options.push((id, at.take(n).to_vec()));
        }
        assert_eq!(at.take(10), b"flyrecord\0");
        for _ in 0..cpus {
            let (offset, size) = (at.number(8), at.number(8));
            parts.pages.push(bytes[offset..offset + size].to_vec());
        }
        parts
    }

    /// The file as a machine writes it whose highest byte comes first.
    pub(crate) fn big_endian(&self) -> Vec<u8> {
        let mut out = b"\x17\x08\x44tracing6\0\x01\x08".to_vec();
        let number = |out: &mut Vec<u8>, n: usize, size: usize| {
            out.extend(&(n as u64).to_be_bytes()[8 - size..]);
        };
        let text = |out: &mut Vec<u8>, text: &str| {
            number(out, text.len(), 8);
            out.extend(text.as_bytes());
        };
        number(&mut out, 4096, 4);
        out.extend(b"header_page\0");
        text(&mut out, &self.header_page);
        out.extend(b"header_event\0");
        text(&mut out, "");
        number(&mut out, 0, 4);
        number(&mut out, self.systems.len(), 4);
        for (name, formats) in &self.systems {
            out.extend(name.as_bytes());
            out.push(0);
            number(&mut out, formats.len(), 4);
            formats.iter().for_each(|format| text(&mut out, format));
        }
        number(&mut out, 0, 4);
        number(&mut out, 0, 4);
        text(&mut out, "");
        number(&mut out, self.pages.len(), 4);
        out.extend(b"options  \0");
        for (id, data) in self.options.iter().filter(|(id, _)| *id != 8) {
            number(&mut out, (*id).into(), 2);
            number(&mut out, data.len(), 4);
            out.extend(data);
        }
        number(&mut out, 0, 2);
        out.extend(b"flyrecord\0");
        let pages = (out.len() + 16 * self.pages.len()).next_multiple_of(4096);
        let mut at = pages;
        for data in &self.pages {
            number(&mut out, at, 8);
            number(&mut out, data.len(), 8);
            at += data.len();
        }
        out.resize(pages, 0);
        let formats: BTreeMap<u16, Format> = self
            .systems
            .iter()
            .flat_map(|(_, formats)| formats)
            .map(|text| Format::parse(text).expect("a format"))
            .map(|format| (format.id, format))
            .collect();
        for page in self.pages.iter().flat_map(|data| data.chunks_exact(4096)) {
            out.extend(turned(page, &formats));
        }
        out
    }

    /// The file in version 7 with this packing, each buffer with the same pages under another name.
    pub(crate) fn version_7(&self, packing: &str, buffers: &[&str], clock: &str) -> Vec<u8> {
        let mut out = b"\x17\x08\x44tracing7\0\0\x08".to_vec();
        out.extend(4096_u32.to_le_bytes());
        out.extend(packing.as_bytes());
        out.extend(b"\x001\0");
        let first = out.len();
        out.extend([0; 8]);
        let packed = packing != "none";
        let mut header = b"header_page\0".to_vec();
        long_text(&mut header, self.header_page.as_bytes());
        let mut formats = (self.systems.len() as u32).to_le_bytes().to_vec();
        for (name, texts) in &self.systems {
            formats.extend(name.as_bytes());
            formats.push(0);
            formats.extend((texts.len() as u32).to_le_bytes());
            texts.iter().for_each(|text| long_text(&mut formats, text.as_bytes()));
        }
        let mut options: Vec<(u16, Vec<u8>)> = self.options.clone();
        for (id, inside) in [(16, header), (18, formats)] {
            options.push((id, (out.len() as u64).to_le_bytes().to_vec()));
            section(&mut out, id, packing, &inside);
        }
        for name in buffers {
            let at = out.len() as u64;
            out.extend([3, 0, packed.into(), 0, 0, 0, 0, 0]);
            let size = out.len();
            out.extend([0; 8]);
            let mut option = at.to_le_bytes().to_vec();
            option.extend(name.as_bytes());
            option.push(0);
            option.extend(clock.as_bytes());
            option.push(0);
            option.extend(4096_u32.to_le_bytes());
            option.extend((self.pages.len() as u32).to_le_bytes());
            for (cpu, data) in (0_u32..).zip(&self.pages) {
                let from = out.len();
                let chunks: Vec<&[u8]> = data.chunks(2 * 4096).collect();
                let counted = if packed { 4 } else { 0 };
                if packed {
                    out.extend((chunks.len() as u32).to_le_bytes());
                }
                for chunk in chunks {
                    out.extend(if packed { in_packing(packing, chunk) } else { chunk.to_vec() });
                }
                option.extend(cpu.to_le_bytes());
                option.extend((from as u64).to_le_bytes());
                option.extend(((out.len() - from - counted) as u64).to_le_bytes());
            }
            let length = (out.len() - size - 8) as u64;
            out[size..size + 8].copy_from_slice(&length.to_le_bytes());
            options.push((3, option));
        }
        options.push((0, vec![0; 8]));
        let mut inside = Vec::new();
        for (id, data) in options {
            inside.extend(id.to_le_bytes());
            inside.extend((data.len() as u32).to_le_bytes());
            inside.extend(data);
        }
        let at = (out.len() as u64).to_le_bytes();
        out[first..first + 8].copy_from_slice(&at);
        section(&mut out, 0, "none", &inside);
        out
    }
}

fn long_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text);
}

fn section(out: &mut Vec<u8>, id: u16, packing: &str, inside: &[u8]) {
    let packed = packing != "none";
    let inside = if packed { in_packing(packing, inside) } else { inside.to_vec() };
    out.extend(id.to_le_bytes());
    out.extend([packed.into(), 0, 0, 0, 0, 0]);
    long_text(out, &inside);
}

/// Packed size, size, packed bytes.
fn in_packing(packing: &str, bytes: &[u8]) -> Vec<u8> {
    let packed = match packing {
        "zlib" => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(bytes).expect("to memory");
            encoder.finish().expect("to memory")
        }
        _ => compress_to_vec(bytes, CompressionLevel::Fastest),
    };
    let mut out = (packed.len() as u32).to_le_bytes().to_vec();
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(packed);
    out
}

/// A page with all of its numbers turned round.
fn turned(page: &[u8], formats: &BTreeMap<u16, Format>) -> Vec<u8> {
    let mut out = page.to_vec();
    let used = Order::Little.number(&page[8..16]) as usize & 0xf_ffff;
    out[..8].reverse();
    out[8..16].reverse();
    let word = |at: usize| Order::Little.number(&page[at..at + 4]) as u32;
    let mut at = 16;
    while at < 16 + used {
        let head = word(at);
        let (kind, delta) = (head & 0x1f, head >> 5);
        out[at..at + 4].copy_from_slice(&(kind << 27 | delta).to_be_bytes());
        at += 4;
        let (from, length) = match kind {
            29 if delta == 0 => break,
            29..=31 => {
                out[at..at + 4].reverse();
                at += if kind == 29 { word(at) as usize } else { 4 };
                continue;
            }
            0 => {
                out[at..at + 4].reverse();
                (at + 4, word(at) as usize - 4)
            }
            n => (at, n as usize * 4),
        };
        at = from + length;
        let id = u16::from_le_bytes([page[from], page[from + 1]]);
        for field in formats[&id].fields.values().filter(|f| matches!(f.size, 2 | 4 | 8)) {
            out[from + field.offset..from + field.offset + field.size].reverse();
        }
    }
    out
}
