//! What a trace.dat says before its pages.

use super::bytes::{Bytes, Cut};
use super::pack::Packing;
use super::{MAGIC, v6, v7};
use crate::{Fault, Source};
use risetime_ftrace::page::Order;
use risetime_model::Code;
use std::collections::BTreeMap;

/// Place of a CPU's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CpuData {
    pub(super) cpu: u32,
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// A buffer: the top one, or an instance's.
#[derive(Clone, Debug, Default)]
pub(super) struct Buffer {
    /// Name of the instance; empty: the top one.
    pub(super) name: String,
    pub(super) page_size: usize,
    pub(super) cpus: Vec<CpuData>,
    /// True if pages are packed in chunks.
    pub(super) packed: bool,
}

/// From a time in a page to one in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Time {
    /// Factor and shift of a clock that counts cycles; `None`: times are in ns.
    pub(super) cycles: Option<(u32, u32)>,
    /// Shift in ns.
    pub(super) shift: i64,
}

impl Time {
    /// The time in ns.
    #[inline]
    pub(super) fn of(self, at: u64) -> u64 {
        let at = match self.cycles {
            Some((factor, shift)) => (u128::from(at) * u128::from(factor) >> shift.min(127)) as u64,
            None => at,
        };
        at.saturating_add_signed(self.shift)
    }
}

/// What a trace.dat says before its pages.
#[derive(Clone, Debug, Default)]
pub(super) struct Meta {
    pub(super) order: Order,
    /// Size of the kernel's `long` in bytes.
    pub(super) long: u8,
    pub(super) page_size: u32,
    pub(super) header_page: String,
    /// Formats of events, each the text of its file `format`.
    pub(super) formats: Vec<String>,
    pub(super) comms: BTreeMap<i32, Vec<u8>>,
    pub(super) cpus: u32,
    pub(super) clock: Option<String>,
    pub(super) release: Option<String>,
    /// Events that were overwritten, by CPU.
    pub(super) overruns: Vec<(u32, u64)>,
    pub(super) time: Time,
    pub(super) buffers: Vec<Buffer>,
    pub(super) packing: Packing,
    pub(super) notes: Vec<String>,
    /// Offsets of parts that are not sound, and what is wrong with them.
    pub(super) damages: Vec<(u64, String)>,
}

/// CPUs of a buffer at most.
pub(super) const MAX_CPUS: u32 = risetime_model::platform::MAX_CPUS as u32;
/// Events of which a file has formats at most: their numbers have 16 bits.
pub(super) const MAX_FORMATS: usize = 1 << 16;

/// Reads all of a trace.dat but its pages.
///
/// Errors: a version or a packing that is not known, a file that is cut before its pages.
pub(super) fn read(source: &Source) -> Result<Meta, Fault> {
    let fault = |what: String| Fault::new(source.name(), what).code(Code::Syntax);
    let cut =
        |Cut(at): Cut| fault(format!("ends at byte {at}, before it says where its events are"));
    let mut file = Bytes::of(source, 0, Order::Little);
    file.skip(MAGIC.len() as u64).map_err(cut)?;
    let version = file.string().map_err(cut)?;
    let big = file.byte().map_err(cut)? != 0;
    let order = if big { Order::Big } else { Order::Little };
    file.set_order(order);
    let mut meta = Meta { order, ..Meta::default() };
    meta.long = file.byte().map_err(cut)?;
    meta.page_size = file.word().map_err(cut)?;
    match version.as_str() {
        "6" => v6::read(source, file, &mut meta).map_err(cut)?,
        "7" => {
            let packing = file.string().map_err(cut)?;
            let _version = file.string().map_err(cut)?;
            meta.packing = Packing::of(&packing)
                .ok_or_else(|| fault(format!("is packed by `{packing}`, which is not known")))?;
            let options = file.long().map_err(cut)?;
            v7::read(source, options, &mut meta).map_err(cut)?;
        }
        other => {
            let shown: String = other.chars().filter(|c| !c.is_control()).take(16).collect();
            let what = format!("is a trace.dat of version `{shown}`, wanted 6 or 7");
            return Err(fault(what));
        }
    }
    if meta.header_page.is_empty() || meta.buffers.is_empty() {
        let at = meta.damages.first().map(|(at, what)| format!(": byte {at}: {what}"));
        let what = format!("does not say where its events are{}", at.unwrap_or_default());
        return Err(fault(what));
    }
    Ok(meta)
}

impl Meta {
    /// Takes in the names of threads, a line each: `PID NAME`.
    pub(super) fn set_comms(&mut self, text: &[u8]) {
        for line in text.split(|b| *b == b'\n') {
            let Some(blank) = line.iter().position(|b| *b == b' ') else { continue };
            let pid = std::str::from_utf8(&line[..blank]).ok().and_then(|pid| pid.parse().ok());
            let comm = line[blank + 1..].split(|b| *b == 0).next().unwrap_or_default();
            if let Some(pid) = pid.filter(|pid: &i32| *pid > 0) {
                self.comms.insert(pid, comm[..comm.len().min(16)].to_vec());
            }
        }
    }

    /// Takes in a piece of information that both versions have as an option of this number.
    pub(super) fn option(&mut self, id: u16, data: &[u8]) {
        let text = || {
            let end = data.iter().position(|b| *b == 0).unwrap_or(data.len());
            String::from_utf8_lossy(&data[..end]).trim().to_string()
        };
        let number = |at: usize, n: usize| data.get(at..at + n).map(|b| self.order.number(b));
        match id {
            // A shift to the time of day, and one of whoever recorded.
            1 | 7 => self.time.shift = self.time.shift.saturating_add(strtoll(&text())),
            2 => self.overrun(&text()),
            4 => self.clock = clock(&text()),
            // `uname -a`: system, host, release, machine.
            5 => self.release = text().split(' ').nth(2).map(|r| r.chars().take(64).collect()),
            8 => self.cpus = number(0, 4).map_or(self.cpus, |n| n as u32),
            12 => {
                let note = "times of a guest, which are not shifted to its host's";
                self.notes.push(note.into());
            }
            14 => {
                let (factor, shift, offset) = (number(0, 4), number(4, 4), number(8, 8));
                if let (Some(factor), Some(shift), Some(offset)) = (factor, shift, offset) {
                    self.time.cycles = Some((factor as u32, shift as u32));
                    self.time.shift = self.time.shift.saturating_sub_unsigned(offset);
                }
            }
            _ => {}
        }
    }

    /// Takes in the statistics of a CPU's buffer.
    fn overrun(&mut self, text: &str) {
        let of = |key: &str| {
            text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok())
        };
        if let (Some(cpu), Some(n)) = (of("CPU:"), of("overrun:")) {
            self.overruns.push((cpu.min(u64::from(u32::MAX)) as u32, n));
        }
    }
}

/// The clock in brackets of tracefs' file `trace_clock`, or the only word.
fn clock(text: &str) -> Option<String> {
    let chosen = text.split(['[', ']']).nth(1).or(text.split_whitespace().next())?;
    Some(chosen.chars().filter(|c| c.is_ascii_graphic()).take(32).collect())
}

/// A number as C's `strtoll(text, 0, 0)` reads it.
fn strtoll(text: &str) -> i64 {
    let (minus, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let n = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    let n = n.unwrap_or(0);
    if minus { n.saturating_neg() } else { n }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_both_versions_are_understood() {
        let mut meta = Meta::default();
        meta.option(4, b"local global [mono] boot x86-tsc\n\0");
        assert_eq!(meta.clock.as_deref(), Some("mono"));
        meta.option(4, b"boot\0");
        assert_eq!(meta.clock.as_deref(), Some("boot"));
        meta.option(5, b"Linux board 6.12.30-v8+ aarch64\0");
        assert_eq!(meta.release.as_deref(), Some("6.12.30-v8+"));
        meta.option(2, b"CPU: 3\nentries: 5\noverrun: 17\n\0");
        assert_eq!(meta.overruns, [(3, 17)]);
        meta.option(7, b"-0x10\0");
        assert_eq!((meta.time.of(100), meta.time.of(5)), (84, 0));
        meta.option(8, &[6, 0, 0, 0]);
        assert_eq!(meta.cpus, 6);
        let cycles = [2_u64.to_le_bytes()[..4].to_vec(), 1_u64.to_le_bytes()[..4].to_vec()];
        meta.option(14, &[cycles.concat(), 4_u64.to_le_bytes().to_vec()].concat());
        assert_eq!(meta.time.of(100), 80);
        // Options that end too early say nothing.
        (0..20).for_each(|id| meta.option(id, &[1]));
    }
}
