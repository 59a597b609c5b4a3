//! A reader of Perfetto files, as far as the tests want one.

#![allow(dead_code, reason = "each test uses some of it")]

use micropb::PbDecoder;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(u64),
    Double(f64),
    Bytes(Vec<u8>),
}

/// The fields of a message in order. Panics on anything malformed.
#[derive(Clone, Debug)]
pub(crate) struct Fields(pub(crate) Vec<(u32, Value)>);

impl Fields {
    pub(crate) fn read(bytes: &[u8]) -> Fields {
        let mut d = PbDecoder::new(bytes);
        let mut fields = Vec::new();
        while d.bytes_read() < bytes.len() {
            let tag = d.decode_tag().expect("a tag");
            let value = match tag.wire_type() {
                0 => Value::Number(d.decode_varint64().expect("a number")),
                2 => {
                    let len = d.decode_varint32().expect("a length") as usize;
                    let at = d.bytes_read();
                    d.skip_bytes(len).expect("as many bytes as the length says");
                    Value::Bytes(bytes[at..at + len].to_vec())
                }
                1 => {
                    let at = d.bytes_read();
                    d.skip_bytes(8).expect("eight bytes");
                    Value::Double(f64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()))
                }
                other => panic!("wire type {other}"),
            };
            fields.push((tag.field_num(), value));
        }
        Fields(fields)
    }
    pub(crate) fn all(&self, field: u32) -> Vec<Fields> {
        let bytes = self.0.iter().filter(|f| f.0 == field);
        bytes
            .map(|f| match &f.1 {
                Value::Bytes(b) => Fields::read(b),
                n => panic!("field {field} is {n:?}"),
            })
            .collect()
    }
    pub(crate) fn one(&self, field: u32) -> Fields {
        self.maybe(field).unwrap_or_else(|| panic!("no field {field} in {self:?}"))
    }
    pub(crate) fn maybe(&self, field: u32) -> Option<Fields> {
        self.all(field).pop()
    }
    pub(crate) fn number(&self, field: u32) -> Option<u64> {
        self.0.iter().find(|f| f.0 == field).map(|f| match f.1 {
            Value::Number(n) => n,
            _ => panic!("field {field} is no number"),
        })
    }
    pub(crate) fn double(&self, field: u32) -> Option<f64> {
        self.0.iter().find(|f| f.0 == field).map(|f| match f.1 {
            Value::Double(n) => n,
            _ => panic!("field {field} is no double"),
        })
    }
    pub(crate) fn text(&self, field: u32) -> String {
        match self.0.iter().find(|f| f.0 == field) {
            Some((_, Value::Bytes(b))) => String::from_utf8(b.clone()).unwrap(),
            other => panic!("field {field} is {other:?}"),
        }
    }
}

/// One event of a CPU: (cpu, time, field of its kind, its fields).
pub(crate) type Ftrace = (u64, u64, u32, Fields);

/// A stretch of time on a track.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) track: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) name: String,
    notes: Vec<Fields>,
}

impl Slice {
    fn note(&self, name: &str) -> Option<&Fields> {
        self.notes.iter().find(|n| n.text(10) == name)
    }
    /// DebugAnnotation = 4 { name = 10, uint_value = 3, double_value = 5, string_value = 6 }
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.note(name)?.number(3)
    }
    pub(crate) fn ms(&self, name: &str) -> Option<f64> {
        self.note(name)?.double(5)
    }
    pub(crate) fn outcome(&self) -> String {
        self.note("outcome").expect("an outcome").text(6)
    }
}

pub(crate) struct Read {
    pub(crate) packets: Vec<Fields>,
}

impl Read {
    /// Trace { packet = 1 }
    pub(crate) fn of(bytes: &[u8]) -> Read {
        let trace = Fields::read(bytes);
        assert!(trace.0.iter().all(|f| f.0 == 1));
        Read { packets: trace.all(1) }
    }
    /// FtraceEventBundle = 1 { cpu = 1, event = 2 { timestamp = 1, pid = 2, kind } }
    pub(crate) fn ftrace(&self) -> Vec<Ftrace> {
        let mut events = Vec::new();
        for bundle in self.packets.iter().filter_map(|p| p.maybe(1)) {
            for e in bundle.all(2) {
                let (kind, _) = e.0[2].clone();
                assert_eq!(e.0.len(), 3);
                events.push((bundle.number(1).unwrap(), e.number(1).unwrap(), kind, e.one(kind)));
            }
        }
        events
    }
    pub(crate) fn kind(&self, kind: u32) -> Vec<Ftrace> {
        self.ftrace().into_iter().filter(|e| e.2 == kind).collect()
    }
    /// TrackDescriptor = 60 { uuid = 1, name = 2, thread = 4, parent_uuid = 5, counter = 8 }
    pub(crate) fn track(&self, name: &str) -> Fields {
        let mut found =
            self.packets.iter().filter_map(|p| p.maybe(60)).filter(|t| t.text(2) == name);
        let track = found.next().unwrap_or_else(|| panic!("no track {name}"));
        assert!(found.next().is_none(), "{name} is described twice");
        track
    }
    pub(crate) fn has(&self, name: &str) -> bool {
        self.packets.iter().filter_map(|p| p.maybe(60)).any(|t| t.text(2) == name)
    }
    /// TrackEvent = 11 { type = 9, track_uuid = 11, name = 23, counter_value = 30 } of a track
    pub(crate) fn on(&self, track: &Fields) -> Vec<(u64, Fields)> {
        let uuid = track.number(1);
        let with_time = self.packets.iter().filter_map(|p| Some((p.number(8)?, p.maybe(11)?)));
        with_time.filter(|(_, e)| e.number(11) == uuid).collect()
    }
    pub(crate) fn counter(&self, name: &str) -> Vec<(u64, u64)> {
        let track = self.track(name);
        assert!(track.maybe(8).is_some(), "{name} is no counter");
        let points = self.on(&track);
        assert!(points.iter().all(|(_, e)| e.number(9) == Some(4)), "TYPE_COUNTER");
        points.into_iter().map(|(at, e)| (at, e.number(30).unwrap())).collect()
    }
    /// The values of a counter with decimals.
    pub(crate) fn doubles(&self, name: &str) -> Vec<(u64, f64)> {
        let points = self.on(&self.track(name)).into_iter();
        points.map(|(at, e)| (at, e.double(44).expect("double_counter_value"))).collect()
    }
    /// The slices of all tracks of this name that are no thread's, each with its track and its notes, which are in `debug_annotations`:
    /// TYPE_SLICE_BEGIN = 1, TYPE_SLICE_END = 2. They are in the order of their ends, and those of a track nest.
    pub(crate) fn slices(&self, track: &str) -> Vec<Slice> {
        let tracks = self.packets.iter().filter_map(|p| p.maybe(60));
        let named = tracks.filter(|t| t.text(2) == track && t.maybe(4).is_none());
        let mut all = Vec::new();
        for t in named {
            let events = self.on(&t);
            for pair in events.chunks(2) {
                let [(from, begin), (to, end)] = pair else { panic!("a slice without end") };
                assert_eq!((begin.number(9), end.number(9)), (Some(1), Some(2)));
                let name = begin.text(23);
                let notes = begin.all(4);
                all.push(Slice { track: t.number(1).unwrap(), from: *from, to: *to, name, notes });
            }
        }
        all.sort_by_key(|s| (s.to, s.from));
        for a in &all {
            let beside = all.iter().filter(|b| b.track == a.track && b.name != a.name);
            assert!(beside.into_iter().all(|b| b.to <= a.from || a.to <= b.from), "{a:?}");
        }
        all
    }
    pub(crate) fn instants(&self, track: &str) -> Vec<(u64, String)> {
        let events = self.on(&self.track(track)).into_iter();
        events.filter(|(_, e)| e.number(9) == Some(3)).map(|(at, e)| (at, e.text(23))).collect()
    }
}
