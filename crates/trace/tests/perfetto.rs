//! The Perfetto writer, read back with nothing in common but the wire format: the field
//! numbers below are written down a second time, from Perfetto's .proto files.

use micropb::PbDecoder;
use risetime_kernel::units::*;
use risetime_model::platform::{Domain, Opp, Platform};
use risetime_trace::write::perfetto::Writer;
use risetime_trace::{Event, Header, SwitchOut, TraceSink, Why};
use std::io;

// ---- a reader ----

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

/// The fields of a message in order. Panics on anything malformed.
#[derive(Clone, Debug)]
struct Fields(Vec<(u32, Value)>);

impl Fields {
    fn read(bytes: &[u8]) -> Fields {
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
                other => panic!("wire type {other}"),
            };
            fields.push((tag.field_num(), value));
        }
        Fields(fields)
    }
    fn all(&self, field: u32) -> Vec<Fields> {
        let bytes = self.0.iter().filter(|f| f.0 == field);
        bytes
            .map(|f| match &f.1 {
                Value::Bytes(b) => Fields::read(b),
                n => panic!("field {field} is {n:?}"),
            })
            .collect()
    }
    fn one(&self, field: u32) -> Fields {
        self.maybe(field).unwrap_or_else(|| panic!("no field {field} in {self:?}"))
    }
    fn maybe(&self, field: u32) -> Option<Fields> {
        self.all(field).pop()
    }
    fn number(&self, field: u32) -> Option<u64> {
        self.0.iter().find(|f| f.0 == field).map(|f| match f.1 {
            Value::Number(n) => n,
            _ => panic!("field {field} is no number"),
        })
    }
    fn text(&self, field: u32) -> String {
        match self.0.iter().find(|f| f.0 == field) {
            Some((_, Value::Bytes(b))) => String::from_utf8(b.clone()).unwrap(),
            other => panic!("field {field} is {other:?}"),
        }
    }
}

/// One event of a CPU: (cpu, time, field of its kind, its fields).
type Ftrace = (u64, u64, u32, Fields);

struct Read {
    packets: Vec<Fields>,
}

impl Read {
    /// FtraceEventBundle = 1 { cpu = 1, event = 2 { timestamp = 1, pid = 2, kind } }
    fn ftrace(&self) -> Vec<Ftrace> {
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
    fn kind(&self, kind: u32) -> Vec<Ftrace> {
        self.ftrace().into_iter().filter(|e| e.2 == kind).collect()
    }
    /// TrackDescriptor = 60 { uuid = 1, name = 2, thread = 4, parent_uuid = 5, counter = 8 }
    fn track(&self, name: &str) -> Fields {
        let mut found =
            self.packets.iter().filter_map(|p| p.maybe(60)).filter(|t| t.text(2) == name);
        let track = found.next().unwrap_or_else(|| panic!("no track {name}"));
        assert!(found.next().is_none(), "{name} is described twice");
        track
    }
    /// TrackEvent = 11 { type = 9, track_uuid = 11, name = 23, counter_value = 30 } of a track
    fn on(&self, track: &Fields) -> Vec<(u64, Fields)> {
        let uuid = track.number(1);
        let with_time = self.packets.iter().filter_map(|p| Some((p.number(8)?, p.maybe(11)?)));
        with_time.filter(|(_, e)| e.number(11) == uuid).collect()
    }
    fn counter(&self, name: &str) -> Vec<(u64, u64)> {
        let track = self.track(name);
        assert!(track.maybe(8).is_some(), "{name} is no counter");
        let points = self.on(&track);
        assert!(points.iter().all(|(_, e)| e.number(9) == Some(4)), "TYPE_COUNTER");
        points.into_iter().map(|(at, e)| (at, e.number(30).unwrap())).collect()
    }
    fn instants(&self, track: &str) -> Vec<(u64, String)> {
        let events = self.on(&self.track(track)).into_iter();
        events.filter(|(_, e)| e.number(9) == Some(3)).map(|(at, e)| (at, e.text(23))).collect()
    }
}

// ---- a trace ----

const T: TaskId = TaskId(0);
const KTHREAD: TaskId = TaskId(7);

fn header() -> Header {
    let domain = |cpus: [u32; 2], mhz: u64| Domain {
        cpus: cpus.map(CpuId).to_vec(),
        cluster: 0,
        capacity: Capacity(1024),
        fast_switch: false,
        transition_delay_us: None,
        opps: vec![Opp { freq: KHz(mhz * 1000), power: MicroWatts(1), latency: Span(0) }],
        idle: Vec::new(),
    };
    let mut settings = risetime_model::Settings::default();
    settings.0.insert("rate_limit_us".to_owned(), risetime_model::Value::Int(70));
    Header {
        backend: "sim",
        platform: std::sync::Arc::new(Platform {
            name: "pair".to_owned(),
            about: String::new(),
            hz: 250,
            domains: vec![domain([0, 1], 600), domain([2, 3], 3000)],
            topology: Default::default(),
            sources: Default::default(),
            doubts: Vec::new(),
        }),
        workload: "ramp".to_owned(),
        policy: "plain".to_owned(),
        settings,
        kernel_release: "6.8".to_owned(),
        clock: "simulated",
        phase: Span(0),
        seed: 1,
        signals: Vec::new(),
        lost: vec!["three events".to_owned()],
        idle: Vec::new(),
        balance: Vec::new(),
        periods: Vec::new(),
        jobs: Vec::new(),
        task_groups: Vec::new(),
        groups: Vec::new(),
    }
}

fn events() -> Vec<(u64, Event<'static>)> {
    let pelt = |util| Event::PeltTask {
        task: T,
        cpu: CpuId(0),
        util_avg: Util(util),
        runnable_avg: Util(util + 1),
        util_sum: 9,
        period_contrib: 9,
        last_update_time: ClockPelt(9),
    };
    let new = |task, comm, user| Event::TaskNew {
        task,
        comm,
        user,
        cpu: CpuId(0),
        why: Why::FirstCpu,
        max_speed: Util(1024),
    };
    vec![
        (0, Event::Freq { cpu: CpuId(2), freq: KHz(3_000_000) }),
        (0, new(KTHREAD, "sugov:0", false)),
        (10, new(T, "ramp-0", true)),
        (10, pelt(0)),
        (20, Event::Idle { cpu: CpuId(0), state: None }),
        (20, Event::Switch { cpu: CpuId(0), prev: None, next: Some(T) }),
        (25, Event::Phase { task: T, index: 1, name: "busy" }),
        (30, pelt(5)),
        (30, pelt(5)),
        (
            31,
            Event::FreqRequest {
                cpu: CpuId(0),
                util: Util(6),
                freq: KHz(600_000),
                why: Why::RateLimited,
            },
        ),
        (40, Event::Misfit { cpu: CpuId(0), task: Some(T) }),
        (40, Event::Overutilized { on: true }),
        (
            50,
            Event::Switch {
                cpu: CpuId(0),
                prev: Some((T, SwitchOut::Preempted)),
                next: Some(KTHREAD),
            },
        ),
        (50, Event::Migrate { task: T, from: CpuId(0), to: CpuId(3), why: Why::Misfit }),
        (55, Event::Switch { cpu: CpuId(3), prev: None, next: Some(T) }),
        (
            60,
            Event::Switch { cpu: CpuId(0), prev: Some((KTHREAD, SwitchOut::Sleeping)), next: None },
        ),
        (60, Event::Idle { cpu: CpuId(0), state: Some(1) }),
        (
            61,
            Event::PeltCfs {
                cpu: CpuId(3),
                util_avg: Util(1),
                runnable_avg: Util(2),
                util_est: Util(3),
                util_sum: 5,
                period_contrib: 4,
                last_update_time: ClockPelt(6),
            },
        ),
        (
            62,
            Event::PeltPressure {
                cpu: CpuId(3),
                class: "irq",
                util_avg: Util(4),
                util_sum: 5,
                period_contrib: 6,
                last_update_time: ClockPelt(7),
            },
        ),
        (63, Event::CpuCapacity { cpu: CpuId(3), capacity: Capacity(1000) }),
        (64, Event::UtilEst { task: T, util_est: Util(44) }),
        (65, Event::MaxSpeed { task: T, max_speed: Util(500) }),
        (70, Event::Wakeup { task: KTHREAD, cpu: CpuId(1), why: Why::PrevCpu }),
        (80, Event::Switch { cpu: CpuId(3), prev: Some((T, SwitchOut::Exited)), next: None }),
    ]
}

fn write(events: &[(u64, Event<'_>)]) -> Read {
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes);
    w.header(&header());
    let mut last = 0;
    for (at, event) in events {
        w.event(Instant(*at), event);
        last = *at;
    }
    w.end(Instant(last));
    w.finish().unwrap();
    // Trace { packet = 1 }
    let trace = Fields::read(&bytes);
    assert!(trace.0.iter().all(|f| f.0 == 1));
    Read { packets: trace.all(1) }
}

// ---- what must be in it ----

/// Without these, Perfetto throws away every track event.
#[test]
fn the_sequence_begins_as_perfetto_wants() {
    let read = write(&events());
    assert!(read.packets.iter().all(|p| p.number(10) == Some(1)), "trusted_packet_sequence_id");
    assert_eq!(read.packets[0].number(13), Some(1), "SEQ_INCREMENTAL_STATE_CLEARED");
    assert_eq!(read.packets[0].number(87), Some(1), "first_packet_on_sequence");
    let system = read.packets[0].one(45);
    assert_eq!((system.one(1).text(3).as_str(), system.number(3)), ("6.8", Some(250)));
    let described = |uuid| {
        let is = |p: &Fields| p.maybe(60).is_some_and(|t| t.number(1) == uuid);
        read.packets.iter().position(is)
    };
    for (i, p) in read.packets.iter().enumerate() {
        if let Some(e) = p.maybe(11) {
            assert!(p.number(8).is_some(), "a track event has a timestamp");
            assert!(described(e.number(11)).is_some_and(|d| d < i), "described before it is used");
        }
        if let Some(parent) = p.maybe(60).and_then(|t| t.number(5)) {
            assert!(described(Some(parent)).is_some_and(|d| d < i), "parent before child");
        }
    }
}

#[test]
fn native_sched_lanes() {
    let read = write(&events());
    let switches: Vec<_> = read
        .kind(4)
        .into_iter()
        .map(|(cpu, at, _, s)| {
            let prev = (s.number(2).unwrap(), s.text(1), s.number(4).unwrap());
            (cpu, at, prev, (s.number(6).unwrap(), s.text(5)))
        })
        .collect();
    let s = str::to_owned;
    let wanted = [
        (0, 20, (0, s("swapper/0"), 0), (1000, s("ramp-0"))),
        (0, 50, (1000, s("ramp-0"), 0), (1007, s("sugov:0"))),
        (0, 60, (1007, s("sugov:0"), 1), (0, s("swapper/0"))),
        (3, 55, (0, s("swapper/3"), 0), (1000, s("ramp-0"))),
        (3, 80, (1000, s("ramp-0"), 16), (0, s("swapper/3"))),
    ];
    assert_eq!(switches, wanted);
    let wakeups = |kind| {
        let of = |(cpu, at, _, w): Ftrace| {
            (cpu, at, w.text(1), w.number(2).unwrap(), w.number(5).unwrap())
        };
        read.kind(kind).into_iter().map(of).collect::<Vec<_>>()
    };
    let (kthread, task) = ((0, 0, s("sugov:0"), 1007, 0), (0, 10, s("ramp-0"), 1000, 0));
    let woken = (1, 70, s("sugov:0"), 1007, 1);
    assert_eq!(wakeups(20), [kthread.clone(), task.clone(), woken.clone()]); // sched_waking
    assert_eq!(wakeups(17), [woken]); // sched_wakeup
    assert_eq!(wakeups(114), [kthread, task]); // sched_wakeup_new
    let exits = read.kind(238);
    assert_eq!(exits.len(), 1);
    assert_eq!(
        (exits[0].1, exits[0].3.number(2), exits[0].3.number(3)),
        (80, Some(1000), Some(999))
    );
    let moves = read.kind(491);
    assert_eq!((moves[0].3.number(4), moves[0].3.number(5)), (Some(0), Some(3)));
}

#[test]
fn native_frequency_and_idle_lanes() {
    let read = write(&events());
    let of = |(cpu, at, _, e): Ftrace| (cpu, at, e.number(1).unwrap(), e.number(2).unwrap());
    let freq: Vec<_> = read.kind(11).into_iter().map(of).collect();
    assert_eq!(freq, [(2, 0, 3_000_000, 2), (3, 0, 3_000_000, 3)]);
    let idle: Vec<_> = read.kind(13).into_iter().map(of).collect();
    assert_eq!(idle, [(0, 20, 0xffff_ffff, 0), (0, 60, 1, 0)]);
}

#[test]
fn processes_and_threads() {
    let read = write(&events());
    let trees: Vec<_> = read.packets.iter().filter_map(|p| p.maybe(2)).collect();
    let processes: Vec<_> = trees.iter().flat_map(|t| t.all(1)).collect();
    let of = |p: &Fields| (p.number(1).unwrap(), p.text(3));
    let names: Vec<_> = processes.iter().map(of).collect();
    assert_eq!(names, [(999, "ramp".to_owned()), (1007, "sugov:0".to_owned())]);
    let threads: Vec<_> = trees.iter().flat_map(|t| t.all(2)).collect();
    let of = |t: &Fields| (t.number(1).unwrap(), t.text(2), t.number(3).unwrap());
    let threads: Vec<_> = threads.iter().map(of).collect();
    assert_eq!(threads, [(1007, "sugov:0".to_owned(), 1007), (1000, "ramp-0".to_owned(), 999)]);
    let track = read.track("ramp-0").one(4);
    assert_eq!((track.number(1), track.number(2)), (Some(999), Some(1000)));
}

#[test]
fn a_counter_for_every_signal() {
    let read = write(&events());
    // The second 5 at 30 says nothing new.
    assert_eq!(read.counter("ramp-0 util_avg"), [(10, 0), (30, 5)]);
    assert_eq!(read.counter("ramp-0 runnable_avg"), [(10, 1), (30, 6)]);
    assert_eq!(read.counter("ramp-0 util_est"), [(64, 44)]);
    assert_eq!(read.counter("CPU3 cfs util_avg"), [(61, 1)]);
    assert_eq!(read.counter("CPU3 cfs runnable_avg"), [(61, 2)]);
    assert_eq!(read.counter("CPU3 cfs util_est"), [(61, 3)]);
    assert_eq!(read.counter("CPU3 irq util_avg"), [(62, 4)]);
    assert_eq!(read.counter("CPU3 cpu_capacity"), [(63, 1000)]);
    assert_eq!(read.counter("policy0 requested frequency"), [(31, 600_000)]);
    assert_eq!(read.counter("policy0 effective util"), [(31, 6)]);
    assert_eq!(read.counter("overutilized"), [(40, 1)]);
    let parent = read.track("ramp-0 util_avg").number(5);
    assert_eq!(parent, read.track("ramp-0").number(1));
}

#[test]
fn a_reason_for_every_decision() {
    let read = write(&events());
    let on_thread: Vec<_> = read.instants("ramp-0");
    let wanted = [
        (10, "created on CPU0: first_cpu"),
        (25, "busy"),
        (50, "CPU0 → CPU3: misfit"),
        (65, "at most 500 of 1024"),
    ];
    assert_eq!(on_thread, wanted.map(|(at, s)| (at, s.to_owned())));
    assert_eq!(read.instants("policy0 (CPU0-1)"), [(31, "rate_limited".to_owned())]);
    assert_eq!(read.instants("CPU0"), [(40, "misfit: ramp-0".to_owned())]);
    let run = read.on(&read.track("risetime"));
    assert_eq!((run[0].0, run[0].1.text(23).as_str()), (0, "ramp on pair, plain"));
    // DebugAnnotation = 4 { name = 10, uint_value = 3, string_value = 6 }
    let notes: Vec<_> = run[0].1.all(4).iter().map(|n| (n.text(10), n.text(6))).collect();
    assert!(notes.contains(&("set.rate_limit_us".to_owned(), "70".to_owned())), "{notes:?}");
    assert!(notes.contains(&("lost.0".to_owned(), "three events".to_owned())));
    let request = &read.on(&read.track("policy0 (CPU0-1)"))[0].1;
    assert_eq!(request.all(4)[1].number(3), Some(600_000));
}

/// A governor says "unchanged" at every tick; what it saw then is in the counters.
#[test]
fn unchanged_is_said_once() {
    let request = |at, util, khz, why| {
        let (util, freq) = (Util(util), KHz(khz));
        (at, Event::FreqRequest { cpu: CpuId(2), util, freq, why })
    };
    let read = write(&[
        request(1, 10, 600, Why::Util),
        request(2, 11, 600, Why::Unchanged),
        request(3, 12, 600, Why::Unchanged),
        request(4, 13, 600, Why::RateLimited),
        request(5, 13, 600, Why::RateLimited),
        request(6, 13, 600, Why::Unchanged),
        request(7, 14, 900, Why::Unchanged),
    ]);
    let times: Vec<_> = read.instants("policy2 (CPU2-3)").iter().map(|i| i.0).collect();
    assert_eq!(times, [1, 2, 4, 5, 6, 7]);
    let util = read.counter("policy2 effective util");
    assert_eq!(util, [(1, 10), (2, 11), (3, 12), (4, 13), (7, 14)]);
}

/// Nothing is lost, doubled or reordered within a CPU when bundles fill up and are written.
#[test]
fn many_events() {
    let mut events = Vec::new();
    for i in 0..20_000_u64 {
        let cpu = CpuId((i % 3) as u32);
        let next = (i % 2 == 0).then_some(T);
        let prev = (i % 2 == 1).then_some((T, SwitchOut::Sleeping));
        events.push((i, Event::Switch { cpu, prev, next }));
    }
    let read = write(&events);
    let switches = read.kind(4);
    assert_eq!(switches.len(), events.len());
    for cpu in 0..3 {
        let times: Vec<_> = switches.iter().filter(|s| s.0 == cpu).map(|s| s.1).collect();
        assert!(times.windows(2).all(|w| w[1] == w[0] + 3), "CPU{cpu}");
    }
    let bundles = read.packets.iter().filter(|p| p.maybe(1).is_some()).count();
    assert!((10..200).contains(&bundles), "{bundles} bundles");
}

/// Ids at the limits and CPUs that are not there neither panic nor take memory.
#[test]
fn odd_events() {
    let (task, cpu) = (TaskId(u32::MAX), CpuId(u32::MAX));
    let read = write(&[
        (1, Event::Wakeup { task, cpu, why: Why::PrevCpu }),
        (2, Event::Phase { task, index: u32::MAX, name: "" }),
        (3, Event::Freq { cpu, freq: KHz(u64::MAX) }),
        (4, Event::Misfit { cpu, task: Some(task) }),
        (5, Event::UtilEst { task, util_est: Util(u64::MAX) }),
        (5, Event::WaitingAvg { task, waiting_avg: Util(77) }),
        (6, Event::Switch { cpu: CpuId(0), prev: None, next: Some(task) }),
    ]);
    assert_eq!(read.ftrace().len(), 1);
    assert_eq!(read.counter("T4294967295 util_est"), [(5, i64::MAX as u64)]);
    assert_eq!(read.counter("T4294967295 waiting_avg"), [(5, 77)]);
    assert_eq!(read.ftrace()[0].3.number(6), Some(i32::MAX as u64));
}

/// A disk that is full after `room` bytes.
struct Full {
    room: usize,
}

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.room.checked_sub(bytes.len()) {
            Some(room) => self.room = room,
            None => return Err(io::ErrorKind::StorageFull.into()),
        }
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_error_on_the_way_is_reported_at_the_end() {
    for room in [0, 100, 1000] {
        let mut w = Writer::new(Full { room });
        w.header(&header());
        for (at, event) in events() {
            w.event(Instant(at), &event);
        }
        w.end(Instant(80));
        assert_eq!(w.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
