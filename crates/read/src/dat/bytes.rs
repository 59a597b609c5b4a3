//! A file's bytes, read one after the other.

use crate::Source;
use risetime_ftrace::page::Order;
use std::io::Read;

/// Bytes that are held at once.
const WINDOW: usize = 64 << 10;
/// Bytes of one part (formats, symbols) at most; what is longer is no such part.
pub(super) const MAX_PART: u64 = 256 << 20;

/// A place in a file, or in a part that was unpacked.
pub(super) struct Bytes<'a> {
    input: Box<dyn Read + 'a>,
    window: Vec<u8>,
    used: usize,
    offset: u64,
    order: Order,
}

/// An end that comes too early: its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut(pub(super) u64);

impl<'a> Bytes<'a> {
    /// The bytes of a file from `offset` on.
    pub(super) fn of(source: &'a Source, offset: u64, order: Order) -> Bytes<'a> {
        Bytes::new(Box::new(source.stream(offset)), offset, order)
    }

    /// The bytes of `part`, which was unpacked from `offset`.
    pub(super) fn unpacked(part: Vec<u8>, offset: u64, order: Order) -> Bytes<'a> {
        Bytes::new(Box::new(std::io::Cursor::new(part)), offset, order)
    }

    fn new(input: Box<dyn Read + 'a>, offset: u64, order: Order) -> Bytes<'a> {
        Bytes { input, window: Vec::new(), used: 0, offset, order }
    }

    /// Offset of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The order in which numbers are read.
    pub(super) fn order(&self) -> Order {
        self.order
    }

    /// Reads numbers in another order from here on.
    pub(super) fn set_order(&mut self, order: Order) {
        self.order = order;
    }

    fn fill(&mut self) -> Result<(), Cut> {
        self.window.resize(WINDOW, 0);
        self.used = 0;
        let got = loop {
            match self.input.read(&mut self.window) {
                Ok(got) => break got,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break 0,
            }
        };
        self.window.truncate(got);
        if got == 0 { Err(Cut(self.offset)) } else { Ok(()) }
    }

    /// The next `n` bytes.
    pub(super) fn take(&mut self, n: u64) -> Result<Vec<u8>, Cut> {
        if n > MAX_PART {
            return Err(Cut(self.offset));
        }
        let mut all = Vec::new();
        while (all.len() as u64) < n {
            if self.used >= self.window.len() {
                self.fill()?;
            }
            let rest = &self.window[self.used..];
            let more = rest.len().min((n - all.len() as u64) as usize);
            all.extend_from_slice(&rest[..more]);
            self.used += more;
            self.offset += more as u64;
        }
        Ok(all)
    }

    /// Passes over `n` bytes.
    pub(super) fn skip(&mut self, mut n: u64) -> Result<(), Cut> {
        while n > 0 {
            if self.used >= self.window.len() {
                self.fill()?;
            }
            let more = ((self.window.len() - self.used) as u64).min(n);
            self.used += more as usize;
            self.offset += more;
            n -= more;
        }
        Ok(())
    }

    /// A string up to its NUL, of at most 4 KiB.
    pub(super) fn string(&mut self) -> Result<String, Cut> {
        let mut text = Vec::new();
        loop {
            match self.byte()? {
                0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
                b if text.len() < 4096 => text.push(b),
                _ => return Err(Cut(self.offset)),
            }
        }
    }

    /// One byte.
    pub(super) fn byte(&mut self) -> Result<u8, Cut> {
        Ok(self.take(1)?[0])
    }
    /// A number of two bytes.
    pub(super) fn half(&mut self) -> Result<u16, Cut> {
        Ok(self.order.number(&self.take(2)?) as u16)
    }
    /// A number of four bytes.
    pub(super) fn word(&mut self) -> Result<u32, Cut> {
        Ok(self.order.number(&self.take(4)?) as u32)
    }
    /// A number of eight bytes.
    pub(super) fn long(&mut self) -> Result<u64, Cut> {
        Ok(self.order.number(&self.take(8)?))
    }
    /// A text behind its length of eight bytes.
    pub(super) fn text(&mut self) -> Result<String, Cut> {
        let n = self.long()?;
        Ok(String::from_utf8_lossy(&self.take(n)?).into_owned())
    }
}
