//! Files for tests: parts of a trace.dat, and what writes them in other shapes. Checks that hold for whatever is read.
#![allow(dead_code, reason = "each test file, and the example that fuzzes, uses a part of it")]

pub(crate) mod checked;
pub(crate) mod parts;

use risetime_read::{Options, ReadSummary, Source, read};
use risetime_trace::Memory;

/// The bytes of a file that was made for tests.
pub(crate) fn made(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/made/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The trace in these bytes.
pub(crate) fn trace(bytes: Vec<u8>) -> (Memory, ReadSummary) {
    try_trace(bytes, None).unwrap_or_else(|e| panic!("{e}"))
}

/// The trace in these bytes, of a buffer of this name; the fault in words where there is none.
pub(crate) fn try_trace(
    bytes: Vec<u8>,
    buffer: Option<&str>,
) -> Result<(Memory, ReadSummary), String> {
    let options = Options { buffer: buffer.map(str::to_string), ..Options::default() };
    let mut memory = Memory::new();
    let source = Source::bytes("made", bytes);
    let summary = read(&source, &mut memory, &options).map_err(|e| e.to_string())?;
    Ok((memory, summary))
}

/// A sequence of numbers by a seed.
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// A number below `n`, which is not 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Changes some bytes: bits, bytes and numbers anew, parts cut out, doubled or taken from elsewhere.
pub(crate) fn mutate(draws: &mut Draws, bytes: &mut Vec<u8>) {
    for _ in 0..1 + draws.below(8) {
        if bytes.is_empty() {
            return;
        }
        let at = draws.below(bytes.len());
        let length = (1 + draws.below(64)).min(bytes.len() - at);
        match draws.below(8) {
            0 => bytes[at] ^= 1 << draws.below(8),
            1 => bytes[at] = draws.next() as u8,
            2 => {
                let extreme = [0, 1, u64::MAX, 1 << 31, 1 << 63][draws.below(5)];
                let n = extreme.to_le_bytes();
                let length = length.min(8);
                bytes[at..at + length].copy_from_slice(&n[..length]);
            }
            3 => drop(bytes.drain(at..at + length)),
            4 => {
                let part = bytes[at..at + length].to_vec();
                let to = draws.below(bytes.len());
                bytes.splice(to..to, part);
            }
            5 => {
                let from = draws.below(bytes.len() - length + 1);
                bytes.copy_within(from..from + length, at);
            }
            6 => bytes[at..at + length].fill(draws.next() as u8),
            _ if draws.below(8) == 0 => bytes.truncate(at),
            _ => bytes[at] = bytes[at].wrapping_add(1),
        }
    }
}
