//! A file as packets: one after the other out of a window, never the whole file.
//!
//! ```text
//! file, gzip around it or not ──> window ──> packet, packet, …      the field 1 of each is a `TracePacket`
//! ```
//!
//! Where no packet begins, or what begins there is none, the next place is sought at which one does whose fields can be read, and behind
//! which the next one begins or the file ends. What was passed over is told with its offset.

use super::wire::{Message, varint};
use std::io::{self, Read};

/// Largest packet that is taken, in bytes: the largest that a recorder writes are far smaller.
const PACKET: usize = 16 << 20;
/// Bytes by which the window grows.
const READ: usize = 1 << 18;
/// Tag of a packet: the field 1, with a length.
const TAG: u8 = 0x0a;
/// The highest number of a field that packets have, extensions included.
const FIELDS: u32 = 10_000;

/// Packets of a file or of what was unpacked from a packet.
pub(super) struct Packets<R> {
    from: R,
    window: Vec<u8>,
    at: usize,
    /// Offset of the window's begin in the file.
    offset: u64,
    ended: bool,
}

/// Next part of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A packet: its place in the window, and its offset in the file.
    Packet(std::ops::Range<usize>, u64),
    /// Bytes that are no packet, from this offset to that one.
    Damage(u64, u64),
    /// The file ends, within a packet that began at this offset, or behind the last one.
    End(Option<u64>),
}

impl<R: Read> Packets<R> {
    /// The packets of `from`.
    pub(super) fn new(from: R) -> Packets<R> {
        Packets { from, window: Vec::new(), at: 0, offset: 0, ended: false }
    }

    /// The bytes of a packet that was found last.
    pub(super) fn bytes(&self, range: std::ops::Range<usize>) -> &[u8] {
        &self.window[range]
    }

    /// Finds the next packet. Errors: the file cannot be read.
    pub(super) fn next(&mut self) -> io::Result<Next> {
        loop {
            match self.packet(self.at)? {
                Found::Packet { begin, end } => {
                    let offset = self.offset + self.at as u64;
                    let sound = is_sound(&self.window[begin..end]);
                    if !sound && !self.begins(end)? {
                        return self.seek();
                    }
                    // Finding out what follows may have moved nothing: the window only grows until the next call.
                    self.at = end;
                    return Ok(match sound {
                        true => Next::Packet(begin..end, offset),
                        false => Next::Damage(offset, self.offset + end as u64),
                    });
                }
                Found::Other { end } => self.at = end,
                Found::None => return self.seek(),
                Found::Cut => {
                    let offset = self.offset + self.at as u64;
                    self.at = self.window.len();
                    return Ok(Next::End(Some(offset)));
                }
                Found::End => return Ok(Next::End(None)),
            }
        }
    }

    /// Looks at what begins at a place of the window.
    fn packet(&mut self, from: usize) -> io::Result<Found> {
        let from = self.hold(from, 20)?;
        if from >= self.window.len() {
            return Ok(Found::End);
        }
        let mut at = from;
        let Some(tag) = varint(&self.window, &mut at) else { return self.unless_cut(from) };
        if tag & 7 == 0 && tag >> 3 >= 1 {
            return match varint(&self.window, &mut at) {
                Some(_) => Ok(Found::Other { end: at }),
                None => self.unless_cut(from),
            };
        }
        if tag & 7 != 2 || tag >> 3 == 0 {
            return Ok(Found::None);
        }
        let Some(length) = varint(&self.window, &mut at) else { return self.unless_cut(from) };
        let Some(length) = usize::try_from(length).ok().filter(|l| *l <= PACKET) else {
            return Ok(Found::None);
        };
        let head = at - from;
        let from = self.hold(from, head + length)?;
        let (begin, end) = (from + head, from + head + length);
        Ok(match end > self.window.len() {
            true => Found::Cut,
            false if tag == u64::from(TAG) => Found::Packet { begin, end },
            false => Found::Other { end },
        })
    }

    /// A head that cannot be read: cut off by the end, or none.
    fn unless_cut(&self, from: usize) -> io::Result<Found> {
        Ok(match self.window.len() - from < 10 {
            true => Found::Cut,
            false => Found::None,
        })
    }

    /// Whether at this place of the window a packet begins, or the file ends.
    fn begins(&mut self, from: usize) -> io::Result<bool> {
        // The window must stay where it is: `from` is beyond `at`.
        self.fill(from + 20)?;
        let Some(rest) = self.window.get(from..).filter(|rest| !rest.is_empty()) else {
            return Ok(true);
        };
        let mut at = 1;
        let length = varint(rest, &mut at);
        Ok(rest[0] == TAG && length.is_some_and(|l| (1..=PACKET as u64).contains(&l)))
    }

    /// Seeks the next sound packet behind the place of the window, and tells what was passed over.
    fn seek(&mut self) -> io::Result<Next> {
        let from = self.offset + self.at as u64;
        let mut tried = 0u64;
        loop {
            self.at += 1;
            self.at = self.hold(self.at, 20)?;
            let Some(ahead) = self.window[self.at..].iter().position(|b| *b == TAG) else {
                let end = self.window.len();
                if self.ended {
                    self.at = end;
                    return Ok(Next::Damage(from, self.offset + end as u64));
                }
                self.at = end.saturating_sub(1);
                continue;
            };
            self.at += ahead;
            tried += 1;
            let mut at = self.at + 1;
            self.fill(self.at + 20)?;
            let length = varint(&self.window, &mut at).unwrap_or(0);
            // Each try may walk a whole packet: the more of them, the smaller the ones that are tried.
            if length < 2 || length > (PACKET as u64).min((1 << 28) / tried) {
                continue;
            }
            let end = at + length as usize;
            if end > self.window.len() && !might_be_sound(&self.window[at..]) {
                continue;
            }
            self.fill(end)?;
            let whole = self.window.get(at..end).is_some_and(is_sound);
            if whole && self.begins(end)? {
                return Ok(Next::Damage(from, self.offset + self.at as u64));
            }
        }
    }

    /// Reads on until `length` bytes from `from` on are in the window, or the file has ended; what lies before `from` may
    /// go. Returns where `from` is then.
    fn hold(&mut self, from: usize, length: usize) -> io::Result<usize> {
        if from + length <= self.window.len() || self.ended {
            return Ok(from);
        }
        self.window.drain(..from);
        self.offset += from as u64;
        self.at = self.at.saturating_sub(from);
        self.fill(length)?;
        Ok(0)
    }

    /// Reads on until the window has this length, or the file has ended.
    fn fill(&mut self, length: usize) -> io::Result<()> {
        while self.window.len() < length && !self.ended {
            let old = self.window.len();
            self.window.resize(old + READ, 0);
            match self.from.read(&mut self.window[old..]) {
                Ok(n) => {
                    self.window.truncate(old + n);
                    self.ended = n == 0;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => self.window.truncate(old),
                Err(e) => {
                    self.window.truncate(old);
                    self.ended = true;
                    return Err(e);
                }
            }
        }
        Ok(())
    }
}

/// Find at a place of the window.
enum Found {
    /// A packet, between these places.
    Packet { begin: usize, end: usize },
    /// Another field of the file, which ends here.
    Other { end: usize },
    /// No field.
    None,
    /// A field that the end of the file cuts off.
    Cut,
    /// The end of the file.
    End,
}

/// Whether all fields of a packet can be read, and have numbers that packets have.
fn is_sound(packet: &[u8]) -> bool {
    let mut walk = Message::new(packet);
    walk.by_ref().all(|(number, _)| number < FIELDS) && walk.broken().is_none()
}

/// Whether these bytes may be the begin of a packet whose end is not there yet: its first field has a number that packets have.
fn might_be_sound(begin: &[u8]) -> bool {
    let mut at = 0;
    varint(begin, &mut at).is_some_and(|tag| (1..u64::from(FIELDS)).contains(&(tag >> 3)))
}
