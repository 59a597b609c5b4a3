//! Lines of a text, whatever it is packed in.

use crate::Source;
use flate2::read::ZlibDecoder;
use std::io::{self, BufRead, BufReader, Read};

/// Length of a line that is taken in; what is longer is cut.
const MAX_LINE: usize = 64 << 10;
/// Bytes in which atrace's own words stand before what it wrote.
const BEFORE: usize = 4096;
/// Bytes that are read at once.
const CHUNK: usize = 256 << 10;

/// The offset of atrace's compressed trace in a file that begins like this; `None`: it has none.
pub(super) fn compressed_at(start: &[u8]) -> Option<usize> {
    const WORD: &[u8] = b"TRACE:";
    let start = &start[..start.len().min(BEFORE)];
    let at = start.windows(WORD.len()).position(|w| w == WORD)? + WORD.len();
    let line_end = start[at..].iter().take_while(|b| matches!(**b, b'\r' | b'\n')).count();
    let at = at + line_end;
    let [cmf, flg, ..] = *start.get(at..)? else { return None };
    // RFC 1950: deflate with a window of 32 KiB, and a header that is divisible by 31.
    (cmf == 0x78 && (u16::from(cmf) << 8 | u16::from(flg)).is_multiple_of(31)).then_some(at)
}

/// Lines of a text.
pub(super) struct Lines<'a> {
    input: BufReader<Box<dyn Read + 'a>>,
    line: Vec<u8>,
    offset: u64,
    packed: bool,
    damage: Option<(u64, String)>,
}

impl<'a> Lines<'a> {
    /// The lines of `source`.
    pub(super) fn new(source: &'a Source) -> Lines<'a> {
        let packed = compressed_at(&source.head(BEFORE));
        let (input, offset): (Box<dyn Read>, u64) = match packed {
            Some(at) => (Box::new(ZlibDecoder::new(source.stream(at as u64))), at as u64),
            None => (Box::new(source.stream(0)), 0),
        };
        Lines {
            input: BufReader::with_capacity(CHUNK, input),
            line: Vec::new(),
            offset,
            packed: packed.is_some(),
            damage: None,
        }
    }

    /// The next line, without its end, and its offset; `None`: there is none.
    ///
    /// Errors: those of the system.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        self.line.clear();
        let at = self.offset;
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) if self.packed => {
                    self.damage = Some((self.offset, format!("compressed text that ends: {e}")));
                    break;
                }
                Err(e) => return Err(e),
            };
            if chunk.is_empty() {
                break;
            }
            let end = memchr(chunk);
            let taken = end.unwrap_or(chunk.len());
            let room = MAX_LINE - self.line.len();
            self.line.extend_from_slice(&chunk[..taken.min(room)]);
            let used = taken + usize::from(end.is_some());
            self.input.consume(used);
            self.offset += used as u64;
            if end.is_some() {
                return Ok(Some((at, &self.line)));
            }
        }
        Ok((!self.line.is_empty()).then_some((at, &self.line)))
    }

    /// The damage at which a compressed text ended, and its offset in what it holds.
    pub(super) fn damage(self) -> Option<(u64, String)> {
        self.damage
    }
}

fn memchr(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|b| *b == b'\n')
}
