//! perf.data: samples of the kernel's tracepoints, as `perf sched record` and `perf record -e sched:*` write them.
//!
//! ```text
//! "PERFILE2", sizes, places of attributes and of the data, which features there are
//! attributes     how samples are laid out
//! data           records: samples (with the tracepoint's own record inside), names of threads, losses
//! features       behind the data: the formats of the tracepoints, as in trace.dat; the kernel's release; the number of CPUs
//! ```
//!
//! Not read: files without places (`perf record -o -`) and packed ones (`perf record -z`): said.
//! Source: tools/perf/Documentation/perf.data-file-format.txt, include/uapi/linux/perf_event.h.

use super::bytes::{Bytes, Cut};
use super::formats::{Formats, RecordFields};
use super::meta::Meta;
use super::{MAGIC, v6};
use crate::summary::Options;
use crate::take::{Fact, Reader, Stamp, Take};
use crate::window::{Timed, Window};
use crate::{Fault, Source};
use risetime_ftrace::page::{Found, Order, Record};
use risetime_model::Code;
use risetime_trace::Clock;

/// First bytes of a file, by the order of its numbers.
const LITTLE: &[u8] = b"PERFILE2";
const BIG: &[u8] = b"2ELIFREP";
/// Most attributes: more are no file of perf's.
const ATTRIBUTES: u64 = 1 << 16;
/// Bytes that are read at once.
const READ: usize = 1 << 20;
/// CPUs that a machine may have.
const MAX_CPUS: u32 = super::meta::MAX_CPUS;

/// Whether a file that begins like this is one of perf's.
pub(crate) fn told(start: &[u8]) -> bool {
    start.starts_with(LITTLE) || start.starts_with(BIG)
}

/// Bits of `sample_type`.
mod sample {
    pub(super) const IP: u64 = 1;
    pub(super) const TID: u64 = 1 << 1;
    pub(super) const TIME: u64 = 1 << 2;
    pub(super) const ADDR: u64 = 1 << 3;
    pub(super) const READ: u64 = 1 << 4;
    pub(super) const CALLCHAIN: u64 = 1 << 5;
    pub(super) const ID: u64 = 1 << 6;
    pub(super) const CPU: u64 = 1 << 7;
    pub(super) const PERIOD: u64 = 1 << 8;
    pub(super) const STREAM_ID: u64 = 1 << 9;
    pub(super) const RAW: u64 = 1 << 10;
    pub(super) const IDENTIFIER: u64 = 1 << 16;
}

/// Layout of the records of a file.
#[derive(Clone, Copy, Debug, Default)]
struct Layout {
    order: Order,
    /// `sample_type`.
    has: u64,
    /// `read_format`.
    read: u64,
    /// Whether records that are no samples end in time and CPU, too.
    id_all: bool,
}

/// A file of perf's, opened.
struct Perf<'a> {
    source: &'a Source,
    meta: Meta,
    formats: Formats,
    layout: Layout,
    data: (u64, u64),
    clock: Clock,
}

/// Opens a file of perf's: reads all but the records.
///
/// Errors: a file without places, samples without time, CPU or tracepoints.
pub(crate) fn open<'a>(source: &'a Source, _: &Options) -> Result<Box<dyn Reader + 'a>, Fault> {
    let fault = |what: &str| Fault::new(source.name(), what).code(Code::Syntax);
    let cut =
        |Cut(at): Cut| fault(&format!("ends at byte {at}, before it says where its events are"));
    let order = match source.head(8).starts_with(LITTLE) {
        true => Order::Little,
        false => Order::Big,
    };
    let mut file = Bytes::of(source, 8, order);
    let size = file.long().map_err(cut)?;
    if size < 104 {
        return Err(fault("has no places of its parts, as a pipe of perf's has none")
            .hint("record with `perf sched record -o FILE`"));
    }
    let attr_size = file.long().map_err(cut)?;
    let attrs = (file.long().map_err(cut)?, file.long().map_err(cut)?);
    let data = (file.long().map_err(cut)?, file.long().map_err(cut)?);
    file.skip(16).map_err(cut)?;
    let mut features = Vec::new();
    for word in 0..4 {
        let bits = file.long().map_err(cut)?;
        features.extend((0..64).filter(|bit| bits >> bit & 1 == 1).map(|bit| word * 64 + bit));
    }
    let (layout, clock) = layout(source, order, attr_size, attrs).map_err(cut)?;
    let wanted = sample::TIME | sample::CPU | sample::RAW;
    if layout.has & wanted != wanted {
        return Err(fault("has samples without time, CPU or the tracepoint's record")
            .hint("record with `perf sched record`"));
    }
    let mut meta = Meta { order, ..Meta::default() };
    if let Err(Cut(at)) = read_features(source, &features, data, &mut meta) {
        meta.damages.push((at, "what the file says of its recording breaks off".into()));
    }
    if meta.formats.is_empty() {
        return Err(fault("has no formats of tracepoints").hint("record with `perf sched record`"));
    }
    let formats = Formats::new(&meta.formats, order);
    Ok(Box::new(Perf { source, meta, formats, layout, data, clock }))
}

/// Reads how samples are laid out, by the first attribute of a tracepoint, and the clock of their times.
fn layout(
    source: &Source,
    order: Order,
    size: u64,
    (at, length): (u64, u64),
) -> Result<(Layout, Clock), Cut> {
    const TRACEPOINT: u32 = 2;
    let mut found = Layout { order, ..Layout::default() };
    let mut clock = Clock::Local;
    let n = length.checked_div(size).unwrap_or(0).min(ATTRIBUTES);
    for place in 0..n {
        let mut attr = Bytes::of(source, at.saturating_add(place * size), order);
        let kind = attr.word()?;
        let own_size = attr.word()?;
        attr.skip(16)?;
        let (has, read, flags) = (attr.long()?, attr.long()?, attr.long()?);
        if kind != TRACEPOINT || found.has != 0 {
            continue;
        }
        found = Layout { order, has, read, id_all: flags >> 18 & 1 == 1 };
        if flags >> 25 & 1 == 1 && own_size >= 96 {
            attr.skip(44)?;
            clock = match attr.word()? {
                1 => Clock::Mono,
                7 => Clock::Boot,
                _ => Clock::Local,
            };
        }
    }
    Ok((found, clock))
}

/// Reads the features behind the data: formats, release, number of CPUs.
fn read_features(
    source: &Source,
    features: &[u32],
    data: (u64, u64),
    meta: &mut Meta,
) -> Result<(), Cut> {
    const TRACING_DATA: u32 = 1;
    const OS_RELEASE: u32 = 4;
    const NR_CPUS: u32 = 7;
    const COMPRESSED: u32 = 27;
    let order = meta.order;
    let mut table = Bytes::of(source, data.0.saturating_add(data.1), order);
    for feature in features {
        let (at, _size) = (table.long()?, table.long()?);
        let mut part = Bytes::of(source, at, order);
        match *feature {
            TRACING_DATA => {
                let head = part.take(MAGIC.len() as u64)?;
                if head != MAGIC {
                    return Err(Cut(at));
                }
                let version = part.string()?;
                let big = part.byte()? != 0;
                part.set_order(if big { Order::Big } else { Order::Little });
                (meta.long, meta.page_size) = (part.byte()?, part.word()?);
                v6::kernel(&mut part, meta, version != "0.5")?;
            }
            OS_RELEASE => {
                let length = part.word()?.min(256);
                let text = part.take(length.into())?;
                let text = text.split(|b| *b == 0).next().unwrap_or_default();
                meta.release = Some(String::from_utf8_lossy(text).chars().take(64).collect());
            }
            NR_CPUS => meta.cpus = part.word()?.min(MAX_CPUS),
            COMPRESSED => {
                meta.notes.push("the file is packed, and packed records are left out".into())
            }
            _ => {}
        }
    }
    Ok(())
}

/// A sample of a tracepoint.
struct Item {
    at: u64,
    cpu: u32,
    tid: i32,
    pid: i32,
    raw: Box<[u8]>,
}

impl Timed for Item {
    fn at(&self) -> u64 {
        self.at
    }
    fn beside(&self) -> usize {
        self.raw.len() + 16
    }
}

impl Reader for Perf<'_> {
    fn pass(&mut self, take: &mut dyn Take) -> Result<(), Fault> {
        self.facts(take);
        let mut walk = Walk {
            perf: self,
            take,
            window: Window::default(),
            lane: (0, Vec::new()),
            last: Vec::new(),
            packed: 0,
        };
        walk.records();
        walk.close();
        let Walk { perf, take, mut window, packed, .. } = walk;
        window.finish(&mut |at, _, item| perf.tell(at, &item, take));
        let (late, by) = window.late();
        if late > 0 {
            let by = format!("{}.{:03} ms", by / 1_000_000, by / 1000 % 1000);
            let note = format!("{late} events came up to {by} too late to be put in order");
            take.fact(&Fact::Note(&note));
        }
        if packed > 0 {
            let note = format!("left out: {packed} packed records; record without `-z`");
            take.fact(&Fact::Note(&note));
        }
        Ok(())
    }
}

impl Perf<'_> {
    /// Hands over what the file says beside its records.
    fn facts(&self, take: &mut dyn Take) {
        let meta = &self.meta;
        if meta.cpus > 0 {
            take.fact(&Fact::Cpus(meta.cpus));
        }
        take.fact(&Fact::Clock(self.clock));
        if let Some(release) = &meta.release {
            take.fact(&Fact::Release(release));
        }
        for (pid, comm) in &meta.comms {
            take.fact(&Fact::Thread { pid: *pid, tgid: None, comm: Some(comm) });
        }
        if let Some(new) = self.formats.new_states() {
            take.fact(&Fact::States { new });
        }
        meta.notes.iter().for_each(|note| take.fact(&Fact::Note(note)));
        for (offset, what) in &meta.damages {
            take.fact(&Fact::Damage { offset: *offset, what });
        }
    }

    /// Hands a sample to the table.
    fn tell(&self, at: u64, item: &Item, take: &mut dyn Take) {
        let record = self.record(&item.raw, at);
        let Some(compiled) = self.formats.of(&record) else { return };
        let tgid = Some(item.pid).filter(|pid| *pid > 0 && item.tid > 0);
        let stamp = Stamp { at, cpu: item.cpu, pid: item.tid.max(0), tgid, comm: None };
        take.event(&stamp, compiled.row, &RecordFields { record: &record, compiled });
    }

    fn record<'a>(&self, raw: &'a [u8], at: u64) -> Record<'a> {
        Record::of(Found { at, offset: 0, length: raw.len() }, raw, self.layout.order)
    }
}

/// A walk over the records of a file.
struct Walk<'p, 'f, 't> {
    perf: &'p Perf<'f>,
    take: &'t mut dyn Take,
    window: Window<Item>,
    /// Samples behind each other of the same CPU.
    lane: (u32, Vec<Item>),
    /// Time of the last sample of each CPU.
    last: Vec<u64>,
    packed: u64,
}

impl Walk<'_, '_, '_> {
    fn records(&mut self) {
        let (from, length) = self.perf.data;
        let end = from.saturating_add(length).min(self.perf.source.len());
        let (mut at, mut bytes, mut used) = (from, Vec::new(), 0);
        let order = self.perf.layout.order;
        loop {
            if bytes.len() - used < 1 << 16 && at + ((bytes.len() - used) as u64) < end {
                bytes.drain(..used);
                used = 0;
                let old = bytes.len();
                let want = (end - at - old as u64).min(READ as u64) as usize;
                bytes.resize(old + want, 0);
                let got = self.perf.source.read_at(at + old as u64, &mut bytes[old..]);
                bytes.truncate(old + got.unwrap_or(0));
            }
            let rest = &bytes[used..];
            let Some(head) = rest.get(..8) else {
                if !rest.is_empty() {
                    self.damage(at, "the file ends within a record");
                }
                break;
            };
            let kind = order.number(&head[..4]) as u32;
            let size = order.number(&head[6..8]) as usize;
            let Some(body) = rest.get(8..size) else {
                match size < 8 {
                    true => {
                        self.damage(at, "a record of less than its head; what follows is left out")
                    }
                    false => self.damage(at, "the file ends within a record"),
                }
                break;
            };
            self.one(kind, body);
            (used, at) = (used + size, at + size as u64);
        }
        if from.saturating_add(length) > end {
            self.damage(end, "the file ends before its records do");
        }
    }

    fn damage(&mut self, offset: u64, what: &str) {
        self.take.fact(&Fact::Damage { offset, what });
    }

    /// Takes in a record.
    fn one(&mut self, kind: u32, body: &[u8]) {
        const LOST: u32 = 2;
        const COMM: u32 = 3;
        const SAMPLE: u32 = 9;
        const LOST_SAMPLES: u32 = 13;
        const COMPRESSED: [u32; 2] = [81, 83];
        let layout = self.perf.layout;
        let number = |at: usize, n: usize| body.get(at..at + n).map(|b| layout.order.number(b));
        match kind {
            SAMPLE => {
                let item = layout.sample(body).filter(|item| item.cpu < MAX_CPUS);
                let perf = self.perf;
                let known = |item: &Item| perf.formats.of(&perf.record(&item.raw, 0)).is_some();
                item.filter(known).into_iter().for_each(|item| self.add(item));
            }
            COMM => {
                let (pid, tid) = (number(0, 4), number(4, 4));
                let comm = body.get(8..).and_then(|comm| comm.split(|b| *b == 0).next());
                if let (Some(pid), Some(tid), Some(_)) = (pid, tid, comm) {
                    let (pid, tgid) = (tid as i32, Some(pid as i32));
                    self.take.fact(&Fact::Thread { pid, tgid, comm });
                }
            }
            LOST | LOST_SAMPLES => {
                let n = if kind == LOST { number(8, 8) } else { number(0, 8) };
                if let Some(cpu) = layout.trailing_cpu(body).filter(|cpu| *cpu < MAX_CPUS) {
                    let since = self.last.get(cpu as usize).copied().filter(|at| *at > 0);
                    self.take.fact(&Fact::Lost { cpu, since, events: n });
                }
            }
            _ if COMPRESSED.contains(&kind) => self.packed += 1,
            _ => {}
        }
    }

    fn add(&mut self, item: Item) {
        if item.cpu != self.lane.0 {
            self.close();
            self.lane.0 = item.cpu;
        }
        let cpu = item.cpu as usize;
        if self.last.len() <= cpu {
            self.last.resize(cpu + 1, 0);
        }
        self.last[cpu] = self.last[cpu].max(item.at);
        self.lane.1.push(item);
        if self.lane.1.len() >= 4096 {
            self.close();
        }
    }

    fn close(&mut self) {
        let (cpu, items) = (self.lane.0, std::mem::take(&mut self.lane.1));
        if !items.is_empty() {
            self.window.bundle(cpu, items);
            let Walk { perf, take, window, .. } = self;
            window.pass(&mut |at, _, item| perf.tell(at, &item, *take));
        }
    }
}

impl Layout {
    /// Reads a sample; `None`: it is cut off.
    fn sample(self, body: &[u8]) -> Option<Item> {
        let mut rest = Rest { bytes: body, order: self.order };
        let words = |bits: u64| (self.has & bits).count_ones() as usize;
        rest.pass(words(sample::IDENTIFIER | sample::IP))?;
        let (mut pid, mut tid) = (0, 0);
        if self.has & sample::TID != 0 {
            (pid, tid) = (rest.number(4)? as i32, rest.number(4)? as i32);
        }
        let at = rest.number(8)?;
        rest.pass(words(sample::ADDR | sample::ID | sample::STREAM_ID))?;
        let cpu = rest.number(4)? as u32;
        rest.take(4)?;
        rest.pass(words(sample::PERIOD))?;
        if self.has & sample::READ != 0 {
            const GROUP: u64 = 1 << 3;
            let words = |bits: u64| (self.read & bits).count_ones() as usize;
            let n = match self.read & GROUP {
                // Enabled and running time, a value, its id and its losses.
                0 => 1 + words(0b10111),
                _ => {
                    let members = usize::try_from(rest.number(8)?).ok()?;
                    members.checked_mul(1 + words(0b10100))?.checked_add(words(0b11))?
                }
            };
            rest.pass(n)?;
        }
        if self.has & sample::CALLCHAIN != 0 {
            let n = usize::try_from(rest.number(8)?).ok()?;
            rest.pass(n)?;
        }
        let length = usize::try_from(rest.number(4)?).ok()?;
        let raw = rest.take(length)?.into();
        // What has the time of an empty lane has no time.
        Some(Item { at, cpu, tid, pid, raw }).filter(|item| item.at != crate::window::NEVER)
    }

    /// Reads the CPU at the end of a record that is no sample; `None`: it has none.
    fn trailing_cpu(self, body: &[u8]) -> Option<u32> {
        if !self.id_all || self.has & sample::CPU == 0 {
            return None;
        }
        let behind = 8 * usize::from(self.has & sample::IDENTIFIER != 0);
        let at = body.len().checked_sub(8 + behind)?;
        Some(self.order.number(body.get(at..at + 4)?) as u32)
    }
}

/// Rest of a record.
struct Rest<'a> {
    bytes: &'a [u8],
    order: Order,
}

impl<'a> Rest<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(n)?;
        self.bytes = rest;
        Some(taken)
    }

    fn number(&mut self, n: usize) -> Option<u64> {
        self.take(n).map(|bytes| self.order.number(bytes))
    }

    /// Passes over words of eight bytes.
    fn pass(&mut self, words: usize) -> Option<()> {
        self.take(words.checked_mul(8)?).map(|_| ())
    }
}
