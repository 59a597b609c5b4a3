//! The kernel's trace pages: events with times and fields.
//!
//! ```text
//! page     u64 time, word commit (bytes used in the low 20 bits; bit 31: events were lost)
//! event    u32 = type:5 | delta:27, then
//!   0      u32 length L (itself counted), L − 4 bytes of data
//!   1–28   type · 4 bytes of data
//!   29     padding: delta 0 = rest of the page, else u32 length
//!   30     time += delta + (u32 << 27)
//!   31     time  = delta + (u32 << 27), its five top bits as before
//! ```
//!
//! Times are in ns of the trace's clock. Where fields lie, the kernel says itself (`format`, `header_page`).
//! On a big-endian machine type is the upper part of its word. Source:
//! kernel/trace/ring_buffer.c, Documentation/trace/ring-buffer-map.rst, trace-cmd's manual.

use std::collections::BTreeMap;

/// A page's size in use: the low bits of `commit`.
const COMMIT_SIZE: u64 = 0xf_ffff;
/// Events are missing before this page.
const MISSED: u64 = 1 << 31;
/// The number of missing events is stored behind the data.
const MISSED_STORED: u64 = 1 << 30;
/// Size of a page at most: a kernel's sub-buffers have up to 64 KiB and more.
const MAX_PAGE: usize = 16 << 20;

/// The order of a machine's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The lowest byte first.
    #[default]
    Little,
    /// The highest byte first.
    Big,
}

impl Order {
    /// The number that up to eight bytes are; beyond eight: that of the first eight.
    #[inline]
    pub fn number(self, bytes: &[u8]) -> u64 {
        let n = match *bytes {
            [a, b, c, d] => return u64::from(self.word([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => return self.odd(bytes),
        };
        if self == Order::Big { n.swap_bytes() } else { n }
    }

    /// The number that four bytes are.
    #[inline]
    pub fn word(self, bytes: [u8; 4]) -> u32 {
        let n = u32::from_le_bytes(bytes);
        if self == Order::Big { n.swap_bytes() } else { n }
    }

    fn odd(self, bytes: &[u8]) -> u64 {
        let bytes = &bytes[..bytes.len().min(8)];
        let add = |n: u64, byte: &u8| n << 8 | u64::from(*byte);
        match self {
            Order::Little => bytes.iter().rev().fold(0, add),
            Order::Big => bytes.iter().fold(0, add),
        }
    }
}

/// The layout of a page, from `events/header_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    commit: Field,
    data: usize,
    size: usize,
    order: Order,
}

/// Place of a field in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Offset in the event's data, in bytes.
    pub offset: usize,
    /// Size in bytes; 0: the rest of the event.
    pub size: usize,
    /// True if a number in it has a sign.
    pub signed: bool,
    /// True if the field (`__data_loc`) says where the data is, and is not the data.
    pub dynamic: bool,
}

/// An event's format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// Name of the event.
    pub name: String,
    /// Number by which records name the event (`common_type`).
    pub id: u16,
    /// Fields by name.
    pub fields: BTreeMap<String, Field>,
}

impl PageLayout {
    /// Parses the text of `header_page`.
    ///
    /// Errors: a field is missing, or lies where no known kernel has it.
    pub fn parse(text: &str) -> Result<PageLayout, String> {
        let fields: BTreeMap<String, Field> = text.lines().filter_map(field).collect();
        let get = |name: &str| {
            fields.get(name).copied().ok_or_else(|| format!("header_page has no field `{name}`"))
        };
        let (commit, data) = (get("commit")?, get("data")?);
        if get("timestamp")?.offset != 0 || data.size == 0 {
            return Err("header_page: this layout is not known".into());
        }
        let (offset, size) = (data.offset, data.offset.saturating_add(data.size));
        let apart = commit.offset >= 8
            && matches!(commit.size, 4 | 8)
            && commit.offset.checked_add(commit.size).is_some_and(|end| end <= offset);
        if !apart || size > MAX_PAGE {
            return Err("header_page: this layout is not known".into());
        }
        Ok(PageLayout { commit, data: offset, size, order: Order::Little })
    }

    /// Returns the layout for a machine that has its bytes in `order`.
    #[must_use]
    pub fn in_order(self, order: Order) -> PageLayout {
        PageLayout { order, ..self }
    }

    /// Returns the layout with pages of `size` bytes; `None`: such a page has no room for data.
    #[must_use]
    pub fn with_pages(self, size: usize) -> Option<PageLayout> {
        (size > self.data && size <= MAX_PAGE).then_some(PageLayout { size, ..self })
    }

    /// Returns the size of a page in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the length of a page's head, behind which its events begin.
    pub fn head(&self) -> usize {
        self.data
    }

    /// Reads what the head of a page says.
    ///
    /// Errors: bytes that are no such page.
    pub fn page<'a>(&self, page: &'a [u8]) -> Result<Page<'a>, String> {
        let head = page.get(..self.data).ok_or_else(|| format!("{} bytes in all", page.len()))?;
        let start = self.order.number(&head[..8]);
        let commit = &head[self.commit.offset..self.commit.offset + self.commit.size];
        let commit = self.order.number(commit);
        let used = (commit & COMMIT_SIZE) as usize;
        let data =
            page.get(self.data..self.data + used).ok_or_else(|| format!("{used} bytes in use"))?;
        let lost = (commit & MISSED != 0).then(|| {
            let count = page.get(self.data + used..self.data + used + self.commit.size);
            count.filter(|_| commit & MISSED_STORED != 0).map(|count| self.order.number(count))
        });
        Ok(Page { start, data, order: self.order, lost })
    }
}

/// A page, its head read.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Time from which those of its events count, in ns.
    pub start: u64,
    /// Bytes of its events.
    pub data: &'a [u8],
    /// Losses before its first event, with their number where it is stored; `None`: there are none.
    pub lost: Option<Option<u64>>,
    order: Order,
}

impl<'a> Page<'a> {
    /// Returns the walk over the page's events.
    pub fn walk(&self) -> Walk {
        Walk { time: self.start, at: 0, order: self.order }
    }
}

/// A walk over the events of a page; holds no bytes, so that whoever keeps the page can keep it, too.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk {
    time: u64,
    at: usize,
    order: Order,
}

/// An event in a page: its time and its place in the page's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Time in ns, by the trace's clock.
    pub at: u64,
    /// Offset of its data in the page's.
    pub offset: usize,
    /// Length of its data.
    pub length: usize,
}

impl Walk {
    /// Finds the next event in `data`, that of the page; `None`: there is no other.
    ///
    /// Errors: an event that ends outside the page.
    #[inline]
    pub fn next(&mut self, data: &[u8]) -> Option<Result<Found, ()>> {
        while self.at < data.len() {
            match self.step(data) {
                Some(Step::Found(found)) => return Some(Ok(found)),
                Some(Step::Passed) => {}
                Some(Step::End) => self.at = data.len(),
                None => {
                    self.at = data.len();
                    return Some(Err(()));
                }
            }
        }
        None
    }

    #[inline]
    fn step(&mut self, data: &[u8]) -> Option<Step> {
        let order = self.order;
        let word = |at: usize| {
            Some(order.word(data.get(at..at.checked_add(4)?)?.try_into().expect("four bytes")))
        };
        let head = word(self.at)?;
        let (kind, delta) = match order {
            Order::Little => (head & 0x1f, u64::from(head >> 5)),
            Order::Big => (head >> 27, u64::from(head & 0x7ff_ffff)),
        };
        let from = self.at + 4;
        match kind {
            29 if delta == 0 => return Some(Step::End),
            29 => {
                self.time = self.time.wrapping_add(delta);
                self.at = from.checked_add(word(from)? as usize)?;
            }
            30 | 31 => {
                let long = delta + (u64::from(word(from)?) << 27);
                self.time = match kind {
                    30 => self.time.wrapping_add(long),
                    _ => self.time & (0x1f << 59) | long,
                };
                self.at = from + 4;
            }
            _ => {
                self.time = self.time.wrapping_add(delta);
                let (offset, length) = match kind {
                    0 => (from + 4, (word(from)? as usize).checked_sub(4)?),
                    n => (from, n as usize * 4),
                };
                self.at = offset.checked_add(length)?;
                if self.at > data.len() {
                    return None;
                }
                return Some(Step::Found(Found { at: self.time, offset, length }));
            }
        }
        Some(Step::Passed)
    }
}

/// Something that was found on a walk.
enum Step {
    Found(Found),
    /// A time, or an event that was discarded.
    Passed,
    /// The rest of the page is empty.
    End,
}

impl Format {
    /// Parses the text of an event's `format`; `None`: it has no `ID:`.
    pub fn parse(text: &str) -> Option<Format> {
        let id = text.lines().find_map(|l| l.strip_prefix("ID:")?.trim().parse().ok())?;
        let name = text.lines().find_map(|l| l.strip_prefix("name:")).unwrap_or_default();
        let name = name.trim().to_string();
        Some(Format { name, id, fields: text.lines().filter_map(field).collect() })
    }
}

/// `field:unsigned int prev_state;  offset:32;  size:4;  signed:0;`
fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?;
    let value =
        |part: Option<&str>, key: &str| part?.strip_prefix(key)?.trim().parse::<usize>().ok();
    let (offset, size) = (value(parts.next(), "offset:")?, value(parts.next(), "size:")?);
    let signed = value(parts.next(), "signed:").unwrap_or(0) != 0;
    let name = declaration.split_whitespace().last()?.trim_start_matches('*');
    let name = name.split('[').next().unwrap_or(name);
    Some((name.into(), Field { offset, size, signed, dynamic: declaration.contains("__data_loc") }))
}

/// The bytes of one event, with its time.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Time in ns, by the trace's clock.
    pub at: u64,
    data: &'a [u8],
    order: Order,
}

impl<'a> Record<'a> {
    /// Returns the event that was found in a page's `data`; of other data an empty one.
    #[inline]
    pub fn of(found: Found, data: &'a [u8], order: Order) -> Record<'a> {
        let data = data.get(found.offset..found.offset + found.length).unwrap_or_default();
        Record { at: found.at, data, order }
    }
    /// `common_type`: the format's id. `None`: the record is shorter.
    #[inline]
    pub fn id(&self) -> Option<u16> {
        let n = u16::from_le_bytes(self.data.get(..2)?.try_into().ok()?);
        Some(if self.order == Order::Big { n.swap_bytes() } else { n })
    }
    /// The number in a field, sign extended if it is signed; `None`: the record ends before it, or it is no number of up to
    /// eight bytes.
    #[inline]
    pub fn number(&self, f: Field) -> Option<i64> {
        let rest = self.data.get(f.offset..)?;
        let n = match f.size {
            4 => self.order.word(*rest.first_chunk()?).into(),
            8 => self.order.number(rest.first_chunk::<8>()?),
            1..=7 => self.order.number(rest.get(..f.size)?),
            _ => return None,
        };
        let unused = 64 - 8 * f.size as u32;
        Some(if f.signed { (n << unused) as i64 >> unused } else { n as i64 })
    }
    /// The bytes of a string in a field, up to its NUL; `None`: the record ends before it.
    #[inline]
    pub fn bytes(&self, f: Field) -> Option<&'a [u8]> {
        let bytes = match (f.dynamic, f.size) {
            (true, _) => {
                let place = self.number(Field { size: 4, signed: false, ..f })? as usize;
                self.data.get(place & 0xffff..(place & 0xffff) + (place >> 16))?
            }
            // A flexible array: the rest of the event.
            (false, 0) => self.data.get(f.offset..)?,
            (false, size) => self.data.get(f.offset..f.offset.checked_add(size)?)?,
        };
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        Some(&bytes[..end])
    }
    /// The string in a field, up to its NUL; `None`: the record ends before it, or it is no UTF-8.
    pub fn text(&self, f: Field) -> Option<&'a str> {
        std::str::from_utf8(self.bytes(f)?).ok()
    }
}

/// The events in `pages` of one CPU, in order, and whether any were lost among them.
///
/// Errors: bytes that are no such pages.
pub fn records<'a>(layout: PageLayout, pages: &'a [u8]) -> Result<(Vec<Record<'a>>, bool), String> {
    let mut all = Vec::new();
    let mut lost = false;
    if !pages.len().is_multiple_of(layout.size) {
        return Err(format!("{} bytes are no whole pages of {}", pages.len(), layout.size));
    }
    for (n, page) in pages.chunks_exact(layout.size).enumerate() {
        let page = layout.page(page).map_err(|e| format!("page {n}: {e}"))?;
        lost |= page.lost.is_some();
        let mut walk = page.walk();
        while let Some(found) = walk.next(page.data) {
            let found = found.map_err(|()| format!("page {n}: an event ends outside it"))?;
            all.push(Record::of(found, page.data, layout.order));
        }
    }
    Ok((all, lost))
}

/// The text of `header_page` of a 64-bit kernel with pages of 4 KiB, to which [`page`] keeps.
pub const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

/// Builds one page that begins at `start` with these events, each with the time since the one before, in ns, and its
/// data: what a test, or a writer of traces, needs. The events must fit into the page.
pub fn page(start: u64, events: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut data = Vec::new();
    for (delta, bytes) in events {
        if *delta >= 1 << 27 {
            data.extend((30 | ((*delta as u32 & 0x7ff_ffff) << 5)).to_le_bytes());
            data.extend(((delta >> 27) as u32).to_le_bytes());
        }
        let short = if *delta >= 1 << 27 { 0 } else { *delta as u32 };
        let length = bytes.len().next_multiple_of(4);
        if (1..=28).contains(&(length / 4)) {
            data.extend(((length as u32 / 4) | short << 5).to_le_bytes());
        } else {
            data.extend((short << 5).to_le_bytes());
            data.extend((length as u32 + 4).to_le_bytes());
        }
        data.extend(bytes);
        data.resize(data.len().next_multiple_of(4), 0);
    }
    let mut page = start.to_le_bytes().to_vec();
    page.extend((data.len() as u64).to_le_bytes());
    page.extend(data);
    page.resize(4096, 0);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up_over_short_long_and_big_events() {
        let layout = PageLayout::parse(HEADER_PAGE).unwrap();
        let pages = [
            page(1000, &[(0, vec![1; 8]), (5, vec![2; 300]), (1 << 40, vec![3; 12])]),
            page(7, &[(1, vec![4; 4])]),
        ]
        .concat();
        let (found, lost) = records(layout, &pages).unwrap();
        let seen: Vec<(u64, usize, u8)> =
            found.iter().map(|r| (r.at, r.data.len(), r.data[0])).collect();
        assert_eq!(seen, [(1000, 8, 1), (1005, 300, 2), (1005 + (1 << 40), 12, 3), (8, 4, 4)]);
        assert!(!lost);
    }

    #[test]
    fn padding_and_absolute_times() {
        let mut data = Vec::new();
        for word in [31 | 5 << 5, 2, 29 | 3 << 5, 8, 0xdead, 1 | 1 << 5, 0xbeef, 29] {
            data.extend(u32::to_le_bytes(word));
        }
        data.extend([0xff; 8]);
        let mut walk = Walk { time: 1 << 60, ..Walk::default() };
        let all: Vec<_> = std::iter::from_fn(|| walk.next(&data)).collect();
        let expected = (1 << 60) + (2 << 27) + 5 + 3 + 1;
        assert_eq!(all, [Ok(Found { at: expected, offset: 24, length: 4 })]);
    }

    /// A page of a big-endian machine has its words turned round, and an event's type in their upper part.
    #[test]
    fn pages_of_a_big_endian_machine_are_read_as_it_writes_them() {
        let layout = PageLayout::parse(HEADER_PAGE).unwrap().in_order(Order::Big);
        let mut bytes = 1000_u64.to_be_bytes().to_vec();
        bytes.extend(20_u64.to_be_bytes());
        for word in [2 << 27 | 5, 0x0007_0000, 0xffff_fffe, 30 << 27 | 1, 1_u32] {
            bytes.extend(word.to_be_bytes());
        }
        bytes.resize(4096, 0);
        let (found, lost) = records(layout, &bytes).unwrap();
        assert!(!lost && found.len() == 1);
        let field = |offset, size, signed| Field { offset, size, signed, dynamic: false };
        assert_eq!((found[0].at, found[0].id()), (1005, Some(7)));
        assert_eq!(found[0].number(field(4, 4, true)), Some(-2));
        assert_eq!(found[0].number(field(4, 0, true)), None);
    }

    #[test]
    fn a_damaged_page_is_an_error_and_never_a_panic() {
        let layout = PageLayout::parse(HEADER_PAGE).unwrap();
        let good = page(9, &[(0, vec![1; 8]), (5, vec![2; 300])]);
        assert!(records(layout, &good[..4095]).is_err());
        for at in 8..340 {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                // Only that it comes back: many such pages are still pages.
                let _ = records(layout, &bad);
            }
        }
        let mut long = good.clone();
        long[8..10].copy_from_slice(&4081_u16.to_le_bytes());
        assert_eq!(records(layout, &long).unwrap_err(), "page 0: 4081 bytes in use");
        let mut missed = good;
        missed[11] = 0x80;
        assert!(records(layout, &missed).unwrap().1);
    }

    #[test]
    fn formats_are_read_as_the_kernel_writes_them() {
        let text = "name: sched_switch\nID: 316\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
            \n\
            \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
            \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
            \tfield:__data_loc char[] name;\toffset:40;\tsize:4;\tsigned:1;\n\
            \nprint fmt: \"x\"\n";
        let f = Format::parse(text).unwrap();
        assert_eq!((f.id, &*f.name), (316, "sched_switch"));
        assert_eq!(
            f.fields["prev_comm"],
            Field { offset: 8, size: 16, signed: false, dynamic: false }
        );
        assert!(f.fields["prev_state"].signed && f.fields["name"].dynamic);
        let mut data = vec![0; 48];
        data[8..12].copy_from_slice(b"ab\0c");
        data[32..40].copy_from_slice(&(-2_i64).to_le_bytes());
        data[40..44].copy_from_slice(&(44 | 3_u32 << 16).to_le_bytes());
        data[44..47].copy_from_slice(b"xyz");
        let r = Record { at: 0, data: &data, order: Order::Little };
        assert_eq!(r.text(f.fields["prev_comm"]), Some("ab"));
        assert_eq!(r.number(f.fields["prev_state"]), Some(-2));
        assert_eq!(r.text(f.fields["name"]), Some("xyz"));
        assert_eq!(r.number(Field { offset: 47, size: 4, signed: false, dynamic: false }), None);
    }
}
