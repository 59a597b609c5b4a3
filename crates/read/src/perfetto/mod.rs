//! Perfetto: protobuf traces of Android and Linux, as `traced` writes them and as this project does.
//!
//! ```text
//! file (gzip, zstd or plain) ── packets ── packed ones unpacked ──┬── bundles of kernel events ──> lane of their CPU ─┐
//!                                                                 ├── track events, frames, rails ──> lane 0 ─────────┤ window
//!                                                                 └── clocks, threads, sequences: taken in at once    │
//!                                                                                 the common table  <── by time ──────┘
//! ```
//!
//! Times are brought to the trace's clock (that of boot, or the primary one that a snapshot names) by snapshots. Field numbers are in
//! `number.rs` and `table.rs`; the wire format is walked here without a decoder's structures.
//!
//! Left out, and counted: track events of an old form (Chrome's JSON phases), packets of another machine, polled values.

mod bundle;
mod clocks;
mod frames;
mod item;
mod kernel;
mod number;
mod out;
mod own;
mod packets;
mod table;
mod tracks;
mod wire;
mod words;

use crate::summary::Options;
use crate::take::{Began, Fact, Reader, Take};
use crate::window::Window;
use crate::{Fault, Source};
use bundle::Bundles;
use item::{Item, NOBODY, What};
use number::packet;
use out::Out;
use packets::{Next, Packets};
use std::collections::BTreeMap;
use std::io::{self, Read};
use tracks::{Count, Kind, Sequence, Told};
use wire::{Message, Value};

/// Most bytes that one packet is unpacked to.
const UNPACKED: u64 = 256 << 20;
/// Most sequences that are remembered.
const SEQUENCES: usize = 1 << 16;

/// Whether a file that begins with these bytes is a Perfetto trace, packed or not.
pub(crate) fn told(head: &[u8]) -> bool {
    match head {
        [0x1f, 0x8b, ..] => {
            let mut inside = Vec::new();
            // The head breaks off within the packed data: what could be unpacked is there all the same.
            let unpacked = flate2::read::MultiGzDecoder::new(head).take(1 << 16);
            _ = { unpacked }.read_to_end(&mut inside);
            is_trace(&inside)
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let mut inside = vec![0; 4096];
            let unpacked = ruzstd::decoding::StreamingDecoder::new(head).ok();
            let read = unpacked.and_then(|mut unpacked| unpacked.read(&mut inside).ok());
            is_trace(&inside[..read.unwrap_or(0)])
        }
        _ => is_trace(head),
    }
}

/// Whether plain bytes begin with a packet whose first fields are those of packets.
fn is_trace(head: &[u8]) -> bool {
    let mut at = 1;
    if head.first() != Some(&0x0a) {
        return false;
    }
    let Some(length) = wire::varint(head, &mut at).filter(|length| *length >= 2) else {
        return false;
    };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let cut = head.len() - at < length;
    let bytes = &head[at..at + length.min(head.len() - at)];
    let mut walk = Message::new(bytes);
    let known = walk.by_ref().take_while(|(number, _)| *number < 2000).count();
    match cut {
        // The first packet is longer than the head: its first field alone may be, too.
        true => known > 0 || bytes.first().is_some_and(|tag| tag & 7 == 2),
        false => known > 0 && walk.broken().is_none(),
    }
}

/// Opens a Perfetto trace.
pub(crate) fn open<'a>(source: &'a Source, _: &Options) -> Result<Box<dyn Reader + 'a>, Fault> {
    Ok(Box::new(Perfetto { source }))
}

struct Perfetto<'a> {
    source: &'a Source,
}

impl Reader for Perfetto<'_> {
    fn pass(&mut self, take: &mut dyn Take) -> Result<(), Fault> {
        let mut pass = Pass::new(take);
        let stream = || io::BufReader::with_capacity(1 << 16, self.source.stream(0));
        let read = match self.source.head(4)[..] {
            [0x1f, 0x8b, ..] => {
                pass.packed = true;
                pass.file(flate2::read::MultiGzDecoder::new(stream()))
            }
            [0x28, 0xb5, 0x2f, 0xfd] => {
                pass.packed = true;
                match ruzstd::decoding::StreamingDecoder::new(stream()) {
                    Ok(unpacked) => pass.file(unpacked),
                    Err(e) => Err(io::Error::other(e.to_string())),
                }
            }
            _ => pass.file(self.source.stream(0)),
        };
        if let Err(e) = read {
            if !pass.packed {
                return Err(Fault::new(self.source.name(), e.to_string()));
            }
            let what = format!("the packed file cannot be unpacked further: {e}");
            pass.damage(pass.offset, &what);
        }
        pass.finish();
        Ok(())
    }
}

/// Pass over a file.
struct Pass<'t> {
    /// Offset of the packet that is read.
    offset: u64,
    /// True if offsets are those of the unpacked file.
    packed: bool,
    window: Window<Item>,
    bundles: Bundles,
    sequences: BTreeMap<u32, Sequence>,
    /// Names of power rails by their index.
    rails: BTreeMap<u32, Box<[u8]>>,
    /// CPUs whose buffer's begin has been told.
    began: Vec<bool>,
    /// Packets and events that were left out, by reason.
    left_out: BTreeMap<&'static str, u64>,
    out: Out<'t>,
}

/// Fields of a packet.
#[derive(Default)]
struct Packet<'a> {
    at: Option<u64>,
    clock: Option<u32>,
    sequence: u32,
    flags: u32,
    cleared: bool,
    dropped: bool,
    machine: u32,
    interned: Option<&'a [u8]>,
    defaults: Option<&'a [u8]>,
    data: Option<(u32, &'a [u8])>,
}

impl<'a> Packet<'a> {
    fn of(bytes: &'a [u8]) -> Packet<'a> {
        let mut of = Packet::default();
        for (number, value) in Message::new(bytes) {
            match (number, value) {
                (packet::AT, _) => of.at = Some(value.number()),
                (packet::CLOCK, _) => of.clock = Some(value.uint()),
                (packet::SEQUENCE, _) => of.sequence = value.uint(),
                (packet::FLAGS, _) => of.flags = value.uint(),
                (packet::CLEARED, _) => of.cleared = value.number() != 0,
                (packet::DROPPED, _) => of.dropped = value.number() != 0,
                (packet::MACHINE, _) => of.machine = value.uint(),
                (packet::INTERNED, Value::Bytes(bytes)) => of.interned = Some(bytes),
                (packet::DEFAULTS, Value::Bytes(bytes)) => of.defaults = Some(bytes),
                (number, Value::Bytes(bytes)) => of.data = Some((number, bytes)),
                _ => {}
            }
        }
        of
    }
}

impl<'t> Pass<'t> {
    fn new(take: &'t mut dyn Take) -> Pass<'t> {
        Pass {
            offset: 0,
            packed: false,
            window: Window::default(),
            bundles: Bundles::default(),
            sequences: BTreeMap::new(),
            rails: BTreeMap::new(),
            began: Vec::new(),
            left_out: BTreeMap::new(),
            out: Out::new(take),
        }
    }

    /// Reads all packets of a file. Errors: the file cannot be read on.
    fn file(&mut self, from: impl Read) -> io::Result<()> {
        let mut packets = Packets::new(from);
        loop {
            match packets.next()? {
                Next::Packet(range, offset) => {
                    self.offset = offset;
                    self.packet(packets.bytes(range), 0);
                    let Pass { window, out, .. } = self;
                    window.pass(&mut |at, cpu, item| out.item(at, cpu, item));
                }
                Next::Damage(from, to) => {
                    self.damage(from, &format!("{} bytes are no packets", to - from));
                    self.lose_all();
                }
                Next::End(cut) => {
                    if let Some(offset) = cut {
                        self.damage(offset, "the file ends within a packet");
                    }
                    return Ok(());
                }
            }
        }
    }

    fn finish(&mut self) {
        let Pass { window, out, .. } = self;
        window.finish(&mut |at, cpu, item| out.item(at, cpu, item));
        self.out.finish();
        let (late, by) = self.window.late();
        if late > 0 {
            self.out.note(&format!(
                "{late} events came up to {}.{:03} ms too late to be put in order, and are told at a later time",
                by / 1_000_000,
                by / 1000 % 1000
            ));
        }
        for (what, n) in std::mem::take(&mut self.left_out) {
            self.out.note(&format!("left out: {n} {what}"));
        }
        let unknown: Vec<_> = self.out.known.clocks.unknown().collect();
        for (clock, n) in unknown {
            self.out.note(&format!(
                "no snapshot tells what the clock {clock} showed: {n} times of it were taken as they are"
            ));
        }
        self.out.clock();
    }

    fn damage(&mut self, offset: u64, what: &str) {
        match self.packed {
            true => self.out.damage(offset, &format!("{what} (counted in the unpacked file)")),
            false => self.out.damage(offset, what),
        }
    }

    fn lose_all(&mut self) {
        for (cpu, since) in self.bundles.lose_all() {
            self.out.take.fact(&Fact::Lost { cpu, since: Some(since), events: None });
            self.window.bundle(cpu, vec![bundle::lost_at(since)]);
        }
    }

    /// Reads a packet, which was in `depth` other ones.
    fn packet(&mut self, bytes: &[u8], depth: u32) {
        let packet = Packet::of(bytes);
        if packet.machine != 0 {
            *self.left_out.entry("packets of another machine").or_default() += 1;
            return;
        }
        if self.sequences.len() >= SEQUENCES && !self.sequences.contains_key(&packet.sequence) {
            self.sequences.clear();
        }
        let sequence = self.sequences.entry(packet.sequence).or_default();
        if packet.cleared || packet.flags & 1 != 0 {
            sequence.clear();
        }
        if let Some(bytes) = packet.defaults {
            sequence.defaults(bytes);
        }
        if let Some(bytes) = packet.interned {
            sequence.interned(bytes);
        }
        let Some((number, data)) = packet.data else { return };
        match number {
            packet::DEFLATED | packet::ZSTD if depth == 0 => self.unpack(number, data),
            packet::DEFLATED | packet::ZSTD => {
                self.damage(self.offset, "a packed packet is within another");
            }
            packet::FTRACE => {
                if packet.dropped {
                    self.lose_all();
                }
                self.bundle(data, packet.sequence);
            }
            packet::PROCESS_TREE => self.out.process_tree(data),
            packet::CLOCKS => self.out.known.clocks.snapshot(data, packet.sequence),
            packet::SYSTEM_INFO => self.out.system_info(data),
            packet::FTRACE_STATS => self.out.ftrace_stats(data),
            packet::TRACK => self.out.track(data),
            packet::TRACK_EVENT | packet::FRAME => self.event(&packet, number, data),
            packet::POWER_RAILS => self.power_rails(data),
            _ => {}
        }
    }

    /// Reads the packets that are packed in one.
    fn unpack(&mut self, number: u32, data: &[u8]) {
        let unpacked: Box<dyn Read + '_> = match (number, data) {
            (packet::DEFLATED, [0x1f, 0x8b, ..]) => {
                Box::new(flate2::read::MultiGzDecoder::new(data))
            }
            // A head of zlib, or the bare stream.
            (packet::DEFLATED, [a, b, ..])
                if a & 15 == 8 && (u32::from(*a) << 8 | u32::from(*b)) % 31 == 0 =>
            {
                Box::new(flate2::read::ZlibDecoder::new(data))
            }
            (packet::DEFLATED, _) => Box::new(flate2::read::DeflateDecoder::new(data)),
            _ => match ruzstd::decoding::StreamingDecoder::new(data) {
                Ok(unpacked) => Box::new(unpacked),
                Err(e) => {
                    self.damage(self.offset, &format!("packets cannot be unpacked: {e}"));
                    return self.lose_all();
                }
            },
        };
        let mut packets = Packets::new(unpacked.take(UNPACKED));
        loop {
            match packets.next() {
                Ok(Next::Packet(range, _)) => self.packet(packets.bytes(range), 1),
                Ok(Next::Damage(..)) => {
                    self.damage(self.offset, "unpacked bytes are no packets");
                    self.lose_all();
                }
                Ok(Next::End(None)) => return,
                Ok(Next::End(Some(_))) => {
                    self.damage(self.offset, "unpacked packets break off");
                    return self.lose_all();
                }
                Err(e) => {
                    self.damage(self.offset, &format!("packets cannot be unpacked further: {e}"));
                    return self.lose_all();
                }
            }
        }
    }

    fn bundle(&mut self, data: &[u8], sequence: u32) {
        match self.bundles.read(data, sequence, &mut self.out.known) {
            Err(fault) => self.damage(self.offset, fault),
            Ok(mut read) => {
                let cpu = read.cpu;
                if let Some(since) = read.lost {
                    let since = Some(since);
                    self.out.take.fact(&Fact::Lost { cpu, since, events: None });
                }
                if self.began.len() <= cpu as usize {
                    self.began.resize(cpu as usize + 1, false);
                }
                if !std::mem::replace(&mut self.began[cpu as usize], true) {
                    let began = read.began.map_or(Began::WithTrace, Began::At);
                    self.out.take.fact(&Fact::Began { cpu, began });
                }
                if let Some(fault) = read.fault {
                    self.damage(self.offset, fault);
                    let since = read.items.iter().map(|item| item.at).max();
                    self.out.take.fact(&Fact::Lost { cpu, since, events: None });
                    read.items.extend(since.map(bundle::lost_at));
                }
                self.window.bundle(cpu, read.items);
            }
        }
    }

    /// Puts a track event or a part of a frame, which has its packet's time, into the window.
    fn event(&mut self, packet: &Packet<'_>, number: u32, data: &[u8]) {
        let Some(sequence) = self.sequences.get(&packet.sequence) else { return };
        let clock = packet.clock.or(sequence.clock).unwrap_or(clocks::BOOT);
        let Some(at) = packet.at else {
            *self.left_out.entry("events without a time").or_default() += 1;
            return;
        };
        let at = self.out.known.clocks.of_packet(clocks::id(clock, packet.sequence), at);
        let what = if number == packet::FRAME {
            What::Frame(Box::new(data.into()))
        } else if packet.flags & 2 != 0 && !sequence.whole {
            *self.left_out.entry("track events whose names were lost").or_default() += 1;
            return;
        } else {
            match sequence.event(data) {
                Ok(told) => What::Track(Box::new(told)),
                Err(what) => {
                    *self.left_out.entry(what).or_default() += 1;
                    return;
                }
            }
        };
        self.window.add(Item { at, pid: NOBODY, what });
    }

    /// Reads names of power rails, and what they have taken.
    fn power_rails(&mut self, data: &[u8]) {
        for (number, value) in Message::new(data) {
            let (mut index, mut name, mut at_ms, mut energy) = (0, None, 0, None);
            for (number, value) in Message::new(value.bytes()) {
                match (number, value) {
                    (1, _) => index = value.uint(),
                    (2, Value::Bytes(bytes)) => name = Some(bytes),
                    (2, _) => at_ms = value.number(),
                    (3, Value::Number(n)) => energy = Some(n),
                    _ => {}
                }
            }
            match (number, name, energy) {
                (1, Some(name), _) if self.rails.len() < SEQUENCES => {
                    self.rails.insert(index, name.into());
                }
                (2, _, Some(energy)) => {
                    let name = match self.rails.get(&index) {
                        Some(name) => [b"power rail ", &**name, b" (\xc2\xb5Ws)"].concat(),
                        None => format!("power rail {index} (µWs)").into_bytes(),
                    };
                    let told = Told {
                        kind: Kind::Counter(Count::Whole(energy as i64)),
                        track: 0,
                        name: name.into(),
                        raw: Box::default(),
                    };
                    let at = at_ms.saturating_mul(1_000_000);
                    let at = self.out.known.clocks.of((clocks::BOOT, 0), at);
                    let what = What::Track(Box::new(told));
                    self.window.add(Item { at, pid: NOBODY, what });
                }
                _ => {}
            }
        }
    }
}
