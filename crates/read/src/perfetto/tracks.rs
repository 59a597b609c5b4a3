//! Track events: slices, moments and counters of programs, with the tracks that they are on, and what their sequences remember.
//!
//! A sequence of packets interns names and has defaults, both until it says that it begins anew. So each event is completed when its
//! packet is read; tracks, which may be described later than their first events, are looked up when the event goes out.

use super::clocks::defaults;
use super::wire::{Message, Value};
use std::collections::BTreeMap;

/// Most tracks, sequences and names of a sequence that are remembered.
const MOST: usize = 1 << 18;
/// Most slices within each other on a track that no thread has.
const DEPTH: usize = 256;
/// Most tracks that are looked through for the thread of one.
const PARENTS: usize = 16;

/// Kinds of track events (`TrackEvent.Type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Begin,
    End,
    Instant,
    Counter(Count),
}

/// Value of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    Whole(i64),
    /// The bits of a number with a fraction.
    Fraction(u64),
}

/// A track event, or a reading of a power rail.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) kind: Kind,
    /// Track of the event; 0: none.
    pub(super) track: u64,
    /// Name of the event; of a power rail its own.
    pub(super) name: Box<[u8]>,
    /// The message of the event.
    pub(super) raw: Box<[u8]>,
}

impl Told {
    /// Bytes that it takes.
    pub(super) fn size(&self) -> usize {
        size_of::<Told>() + self.name.len() + self.raw.len()
    }
}

/// Memory of a sequence.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    pub(super) clock: Option<u32>,
    track: Option<u64>,
    names: BTreeMap<u64, Box<[u8]>>,
    /// True from the packet on that begins it anew: what is interned can be known.
    pub(super) whole: bool,
}

impl Sequence {
    /// Forgets what was interned.
    pub(super) fn clear(&mut self) {
        *self = Sequence { whole: true, ..Sequence::default() };
    }

    /// Takes in defaults.
    pub(super) fn defaults(&mut self, bytes: &[u8]) {
        let (clock, track) = defaults(bytes);
        (self.clock, self.track) = (clock.or(self.clock), track.or(self.track));
    }

    /// Takes in names (`InternedData`).
    pub(super) fn interned(&mut self, bytes: &[u8]) {
        const EVENT_NAMES: u32 = 2;
        for (_, value) in Message::new(bytes).filter(|(number, _)| *number == EVENT_NAMES) {
            let (mut iid, mut name) = (0, &b""[..]);
            for (number, value) in Message::new(value.bytes()) {
                match number {
                    1 => iid = value.number(),
                    2 => name = value.bytes(),
                    _ => {}
                }
            }
            if self.names.len() < MOST {
                self.names.insert(iid, name.into());
            }
        }
    }

    /// Returns a track event, completed. Errors: why it cannot be told.
    pub(super) fn event(&self, bytes: &[u8]) -> Result<Told, &'static str> {
        let (mut kind, mut track, mut name, mut count) = (0, self.track, None, None);
        let mut walk = Message::new(bytes);
        for (number, value) in walk.by_ref() {
            match number {
                9 => kind = value.uint(),
                10 => name = self.names.get(&value.number()).map(|name| &**name),
                11 => track = Some(value.number()),
                23 => name = Some(value.bytes()),
                30 => count = Some(Count::Whole(value.signed())),
                44 => count = Some(Count::Fraction(value.float().to_bits())),
                1 | 16 | 6 => return Err("track events of an old form"),
                _ => {}
            }
        }
        if walk.broken().is_some() {
            return Err("track events that break off");
        }
        let kind = match kind {
            1 => Kind::Begin,
            2 => Kind::End,
            3 => Kind::Instant,
            4 => Kind::Counter(count.ok_or("counters without a value")?),
            _ => return Err("track events of a kind that is not known"),
        };
        let name = name.unwrap_or_default().into();
        Ok(Told { kind, track: track.unwrap_or(0), name, raw: bytes.into() })
    }
}

/// A track.
#[derive(Debug, Default)]
pub(super) struct Track {
    pub(super) name: Box<[u8]>,
    parent: Option<u64>,
    tid: Option<i32>,
    process: Option<i32>,
    /// Number by which a counter's values are multiplied.
    multiplier: i64,
    /// True if a counter's values are differences.
    differs: bool,
    value: f64,
    open: Vec<Box<[u8]>>,
}

/// The tracks of a trace.
#[derive(Debug, Default)]
pub(super) struct Tracks(BTreeMap<u64, Track>);

/// A thread that the description of a track names: its number, its process, its name.
pub(super) type Named<'a> = (i32, Option<i32>, Option<&'a [u8]>);

impl Tracks {
    /// Takes in a `TrackDescriptor`; returns the thread that it names.
    pub(super) fn describe<'a>(&mut self, bytes: &'a [u8]) -> Option<Named<'a>> {
        let (mut uuid, mut named) = (0, None);
        let mut new = Track { multiplier: 1, ..Track::default() };
        for (number, value) in Message::new(bytes) {
            match number {
                1 => uuid = value.number(),
                2 | 10 | 13 => new.name = value.bytes().into(),
                3 => {
                    let pid = Message::new(value.bytes()).find(|(number, _)| *number == 1);
                    new.process = pid.map(|(_, value)| value.int());
                }
                4 => {
                    let (tid, process, name) = thread(value);
                    (new.tid, new.process) = (Some(tid), process);
                    named = Some((tid, process, name));
                }
                5 => new.parent = Some(value.number()),
                8 => new.counter(value.bytes()),
                _ => {}
            }
        }
        if self.0.len() < MOST || self.0.contains_key(&uuid) {
            let old = self.0.entry(uuid).or_default();
            new.open = std::mem::take(&mut old.open);
            new.value = old.value;
            if new.name.is_empty() {
                new.name = std::mem::take(&mut old.name);
            }
            *old = new;
        }
        named
    }

    /// Returns the track of this number.
    pub(super) fn get(&self, uuid: u64) -> Option<&Track> {
        self.0.get(&uuid)
    }

    /// Returns the thread of a track, and its process, by its own description or its parents'.
    pub(super) fn owner(&self, uuid: u64) -> (Option<i32>, Option<i32>) {
        let (mut uuid, mut process) = (uuid, None);
        for step in 0..PARENTS {
            let Some(track) = self.0.get(&uuid) else { break };
            process = process.or(track.process);
            // A track below a thread's is not its stack of slices: another may overlap there.
            if track.tid.is_some() {
                return (track.tid.filter(|_| step == 0), process);
            }
            let Some(parent) = track.parent else { break };
            uuid = parent;
        }
        (None, process)
    }

    /// Returns the thread of a track, or the one below which it is.
    pub(super) fn thread_of(&self, uuid: u64) -> Option<i32> {
        let mut uuid = uuid;
        for _ in 0..PARENTS {
            let track = self.0.get(&uuid)?;
            if track.tid.is_some() {
                return track.tid;
            }
            uuid = track.parent?;
        }
        None
    }

    /// Returns the value of a counter that this event brings.
    pub(super) fn count(&mut self, uuid: u64, count: Count) -> f64 {
        let value = match count {
            Count::Whole(n) => n as f64,
            Count::Fraction(bits) => f64::from_bits(bits),
        };
        let Some(track) = self.0.get_mut(&uuid) else { return value };
        let value = value * track.multiplier as f64;
        track.value = if track.differs { track.value + value } else { value };
        track.value
    }

    /// Opens a slice of a track that no thread has.
    pub(super) fn opens(&mut self, uuid: u64, name: &[u8]) {
        if self.0.len() >= MOST && !self.0.contains_key(&uuid) {
            return;
        }
        let track =
            self.0.entry(uuid).or_insert_with(|| Track { multiplier: 1, ..Track::default() });
        if track.open.len() < DEPTH {
            track.open.push(name.into());
        }
    }

    /// Closes the innermost slice of such a track, and returns its name.
    pub(super) fn closes(&mut self, uuid: u64) -> Option<Box<[u8]>> {
        self.0.get_mut(&uuid)?.open.pop()
    }
}

impl Track {
    fn counter(&mut self, bytes: &[u8]) {
        for (number, value) in Message::new(bytes) {
            match number {
                4 => self.multiplier = value.signed(),
                5 => self.differs = value.number() != 0,
                _ => {}
            }
        }
    }
}

/// Reads a `ThreadDescriptor`.
fn thread(value: Value<'_>) -> Named<'_> {
    let (mut tid, mut process, mut name) = (0, None, None);
    for (number, value) in Message::new(value.bytes()) {
        match number {
            1 => process = Some(value.int()),
            2 => tid = value.int(),
            5 => name = Some(value.bytes()),
            _ => {}
        }
    }
    (tid, process, name)
}
