//! Perfetto's traces, from a file to events.

mod proto;

use proto::{Proto, bundle, compact, event, m, packet};
use risetime_kernel::units::{CpuId, Instant, KHz, TaskId};
use risetime_read::{Beside, Mark, Options, ReadSummary, Source, read, read_beside};
use risetime_trace::{Clock, Event, Memory, SwitchOut, TraceSink, Why};
use std::io::Write;

const T0: i64 = 50_000_000_000;

fn memory(bytes: &[u8]) -> (Memory, ReadSummary) {
    let source = Source::bytes("a.pftrace", bytes.to_vec());
    let mut memory = Memory::new();
    let summary = read(&source, &mut memory, &Options::default()).expect("a trace");
    (memory, summary)
}

/// Events but for new tasks and priorities.
fn happenings(trace: &Memory) -> Vec<(u64, Event)> {
    let told =
        |e: &Event| !matches!(e, Event::TaskNew { .. } | Event::Prio { .. } | Event::Waking { .. });
    trace.events().iter().filter(|(_, e)| told(e)).map(|(at, e)| (at.0, *e)).collect()
}

/// Two CPUs drained twice: `ui` (812) is woken by CPU 0 and runs on CPU 1, `sh` (77) sleeps on CPU 0.
fn two_cpus() -> Vec<u8> {
    let comms = ["swapper/0", "sh", "swapper/1", "ui"];
    let of_0 = compact(
        &comms,
        &[(T0 + 10, 1, 77, 120, 1), (T0 + 2000, 1, 0, 120, 0)],
        &[(T0 + 1000, 812, 1, 110, 3)],
    );
    let freq = event(T0 + 1200, 0, 11, m().n(1, 1_800_000).n(2, 1));
    let of_1 = compact(&comms, &[(T0 + 20, 1, 0, 120, 2), (T0 + 1050, 0, 812, 110, 3)], &[]);
    let later = compact(&comms[2..], &[(T0 + 3000, 0, 0, 120, 0)], &[]);
    let idle = event(T0 + 2500, 0, 13, m().n(1, 1).n(2, 0));
    [
        packet(m().n(10, 1).b(45, m().b(1, m().b(3, "6.1.99-android14")))),
        bundle(0, |b| b.b(4, &of_0)),
        bundle(1, |b| b.b(2, &freq).b(4, &of_1)),
        bundle(0, |b| b.b(2, &idle)),
        bundle(1, |b| b.b(4, &later)),
    ]
    .concat()
}

#[test]
fn compact_switches_and_wakeups_become_events_by_time() {
    let (trace, summary) = memory(&two_cpus());
    let (sh, ui) = (TaskId(0), TaskId(1));
    let goes = |at, cpu, prev, next| (at, Event::Switch { cpu: CpuId(cpu), prev, next });
    assert_eq!(
        happenings(&trace),
        [
            // Who left, nobody knows; the state of a CPU is known from here on.
            goes(0, 0, None, Some(sh)),
            goes(10, 1, None, None),
            (990, Event::Wakeup { task: ui, cpu: CpuId(1), why: Why::Unknown }),
            goes(1040, 1, None, Some(ui)),
            (1190, Event::Freq { cpu: CpuId(1), freq: KHz(1_800_000) }),
            goes(1990, 0, Some((sh, SwitchOut::Sleeping)), None),
            (2490, Event::Idle { cpu: CpuId(0), state: Some(1) }),
            goes(2990, 1, Some((ui, SwitchOut::Preempted)), None),
        ]
    );
    let header = trace.header().expect("a header");
    assert_eq!((&*header.run.kernel_release, header.run.clock), ("6.1.99-android14", Clock::Boot));
    let threads: Vec<(i32, &str)> = summary.threads.iter().map(|t| (t.pid, &*t.comm)).collect();
    assert_eq!(threads, [(77, "sh"), (812, "ui")]);
    assert_eq!((summary.format, summary.base), ("Perfetto trace", T0 as u64 + 10));
    assert!(summary.notes.is_empty(), "{:?}", summary.notes);
}

#[test]
fn a_wakeup_that_only_its_begin_tells_of_is_one() {
    let woken = |trace: &Memory| {
        trace.events().iter().filter(|(_, e)| matches!(e, Event::Wakeup { .. })).count()
    };
    let (trace, _) = memory(&two_cpus());
    assert_eq!(woken(&trace), 1);
    // Where `sched_wakeup` is there too, it alone tells.
    let wakeup = m().b(1, "ui").n(2, 812).n(3, 110).n(4, 1).n(5, 1);
    let also = bundle(0, |b| b.b(2, event(T0 + 1010, 77, 17, wakeup.clone())));
    let (trace, _) = memory(&[two_cpus(), also].concat());
    assert_eq!(woken(&trace), 1);
    let at = trace.events().iter().find(|(_, e)| matches!(e, Event::Wakeup { .. }));
    assert_eq!(at.expect("there").0, Instant(1000));
}

#[test]
fn ordinary_events_say_the_same_as_compact_ones() {
    let switch = |at, prev: (&str, i64), state, next: (&str, i64)| {
        let fields = m().b(1, prev.0).n(2, prev.1).n(3, 120).n(4, state);
        event(T0 + at, prev.1, 4, fields.b(5, next.0).n(6, next.1).n(7, 120))
    };
    let ordinary = bundle(3, |b| {
        b.b(2, switch(0, ("swapper/3", 0), 0, ("a", 5)))
            .b(2, switch(10, ("a", 5), 1, ("b", 6)))
            .b(2, switch(30, ("b", 6), 16, ("swapper/3", 0)))
    });
    let small = compact(
        &["a", "b", "swapper/3"],
        &[(T0, 0, 5, 120, 0), (T0 + 10, 1, 6, 120, 1), (T0 + 30, 16, 0, 120, 2)],
        &[],
    );
    let small = bundle(3, |b| b.b(4, &small));
    let (one, other) = (memory(&ordinary).0, memory(&small).0);
    assert_eq!(one.events(), other.events());
    assert_eq!(happenings(&one).len(), 3);
}

#[test]
fn a_loss_makes_its_cpu_unknown_from_its_last_event_on() {
    let after = compact(&["a"], &[(T0 + 9000, 1, 4, 120, 0)], &[]);
    let lost = bundle(1, |b| b.n(3, 1).b(4, &after));
    let (trace, _) = memory(&[two_cpus(), lost].concat());
    let seen = happenings(&trace);
    let of_1 = &seen[seen.len() - 2..];
    assert_eq!(of_1[0], (2990, Event::Unseen { cpu: CpuId(1) }));
    let next = trace.events().iter().rev().find_map(|(_, e)| match e {
        Event::Switch { prev, next, .. } => Some((*prev, *next)),
        _ => None,
    });
    // Not that 0 left, which ran before the loss.
    assert_eq!(next, Some((None, Some(TaskId(2)))));
    assert_eq!(trace.header().expect("a header").run.lost.len(), 1);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    to.write_all(bytes).expect("to memory");
    to.finish().expect("to memory")
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut to = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    to.write_all(bytes).expect("to memory");
    to.finish().expect("to memory")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn packed_packets_and_packed_files_say_the_same() {
    let plain = two_cpus();
    let events = memory(&plain).0.events().to_vec();
    for (what, file) in [
        ("gzip around it", gzip(&plain)),
        ("zstd around it", zstd(&plain)),
        ("deflated packets", packet(m().b(50, zlib(&plain)))),
        ("zstd packets", packet(m().b(133, zstd(&plain)))),
        ("gzip around deflated packets", gzip(&packet(m().b(50, zlib(&plain))))),
    ] {
        let (trace, summary) = memory(&file);
        assert_eq!(trace.events(), events, "{what}");
        assert!(summary.notes.is_empty(), "{what}: {:?}", summary.notes);
    }
    // Packets within packets are no end.
    let deep = packet(m().b(50, zlib(&packet(m().b(50, zlib(&plain))))));
    let (_, summary) = memory(&[plain, deep].concat());
    assert!(summary.notes[0].contains("a packed packet is within another"), "{:?}", summary.notes);
}

/// Takes marks down as text.
#[derive(Default)]
struct Marks(Vec<String>);

impl Beside for Marks {
    fn mark(&mut self, at: Instant, task: Option<TaskId>, process: i32, mark: &Mark<'_>) {
        let task = task.map_or("-".to_string(), |task| task.to_string());
        self.0.push(format!("{} {task} {process} {mark:?}", at.0));
    }
}

fn marks(bytes: &[u8]) -> (Marks, ReadSummary) {
    let source = Source::bytes("a.pftrace", bytes.to_vec());
    let mut marks = Marks::default();
    let summary = read_beside(&source, &mut (), &mut marks, &Options::default()).expect("a trace");
    (marks, summary)
}

/// A packet with a track event of the sequence 9.
fn track_event(at: i64, flags: i64, also: Proto, fields: Proto) -> Vec<u8> {
    packet(Proto([m().n(8, at).n(10, 9).n(13, flags).0, also.0].concat()).b(11, fields))
}

#[test]
fn names_are_those_that_their_sequence_has_interned() {
    let name = |iid, name: &str| m().b(12, m().b(2, m().n(1, iid).b(2, name)));
    let ui = m().n(1, 77).b(4, m().n(1, 800).n(2, 812));
    let counter = m().n(1, 78).b(2, "battery").b(8, m().n(4, 1000).n(5, 1));
    let file = [
        two_cpus(),
        packet(m().n(10, 9).b(60, ui)),
        packet(m().n(10, 9).b(60, counter)),
        // Before the sequence begins nothing interned is known.
        track_event(T0 + 100, 2, m(), m().n(9, 1).n(10, 1).n(11, 77)),
        track_event(T0 + 1100, 3, name(1, "draw"), m().n(9, 1).n(10, 1).n(11, 77)),
        track_event(T0 + 1200, 2, m(), m().n(9, 2).n(11, 77)),
        // Cleared: the number means another name.
        track_event(T0 + 1300, 3, name(1, "layout"), m().n(9, 3).n(10, 1).n(11, 77)),
        track_event(T0 + 1400, 2, m(), m().n(9, 4).n(11, 78).n(30, 2)),
        track_event(T0 + 1500, 2, m(), m().n(9, 4).n(11, 78).n(30, 3)),
        // A track that no thread has.
        track_event(T0 + 1600, 2, m(), m().n(9, 1).b(23, "load").n(11, 79)),
        track_event(T0 + 1700, 2, m(), m().n(9, 2).n(11, 79)),
    ]
    .concat();
    let (marks, summary) = marks(&file);
    assert_eq!(
        marks.0,
        [
            "1090 T1 800 Begin { name: \"draw\" }",
            "1190 T1 800 End",
            "1290 T1 800 Text(\"layout\")",
            "1390 - 0 Counter { name: \"battery\", value: 2000 }",
            "1490 - 0 Counter { name: \"battery\", value: 5000 }",
            "1590 - 0 AsyncBegin { name: \"load\", cookie: 79 }",
            "1690 - 0 AsyncEnd { name: \"load\", cookie: 79 }",
        ]
    );
    assert_eq!(summary.notes, ["left out: 1 track events whose names were lost"]);
}

#[test]
fn a_frame_is_told_with_what_was_expected_and_its_jank() {
    let frame = |at: i64, fields: Proto| packet(m().n(8, at).n(10, 5).b(76, fields));
    let expected = m().n(1, 1).n(2, 40).n(3, 39).n(4, 800).b(5, "app");
    let actual = m().n(1, 2).n(2, 40).n(3, 39).n(4, 800).b(5, "app").n(9, 64);
    let file = [
        two_cpus(),
        frame(T0 + 1000, m().b(3, expected)),
        frame(T0 + 1100, m().b(4, actual)),
        frame(T0 + 2400, m().b(5, m().n(1, 2))),
        // The frame's expected end is later than its actual one.
        frame(T0 + 2600, m().b(5, m().n(1, 1))),
    ]
    .concat();
    let (marks, _) = marks(&file);
    let actual = "actual: (Instant(1090), Instant(2390)), jank: 64";
    assert_eq!(
        marks.0,
        [format!(
            "2590 - 800 Frame {{ layer: \"app\", token: 40, expected: Some((Instant(990), \
             Instant(2590))), {actual} }}"
        )]
    );
}

#[test]
fn times_of_other_clocks_are_brought_to_the_one_of_boot() {
    let clocks = m().b(1, m().n(1, 6).n(2, T0)).b(1, m().n(1, 3).n(2, T0 - 7_000_000));
    let file = [
        packet(m().n(10, 9).b(6, clocks)),
        two_cpus(),
        packet(m().n(8, T0 - 7_000_000 + 1500).n(58, 3).n(10, 9).b(11, m().n(9, 3).b(23, "now"))),
        packet(m().n(8, 5).n(58, 9).n(10, 9).b(11, m().n(9, 3).b(23, "when"))),
    ]
    .concat();
    let (marks, summary) = marks(&file);
    assert_eq!(marks.0, ["1490 - 0 Text(\"now\")"]);
    assert_eq!(
        summary.notes,
        ["no snapshot tells what the clock 9 showed: 1 times of it were taken as they are"]
    );
}

#[test]
fn events_that_no_table_has_are_read_by_their_descriptors() {
    let field = |name: &str, number| m().b(1, name).n(3, number).n(5, 3);
    let described = m().b(1, "sched_cpu_capacity").b(2, field("cpu", 1));
    let described = described.b(2, field("capacity", 2));
    let generic = |name: &str, n| m().b(1, name).n(5, n);
    let old = m().b(1, "sched_cpu_capacity").b(2, generic("cpu", 1)).b(2, generic("capacity", 77));
    let file = [
        two_cpus(),
        bundle(1, |b| {
            b.b(2, event(T0 + 3100, 0, 9000, m().n(1, 1).n(2, 500)))
                .b(2, event(T0 + 3200, 0, 327, old.clone()))
                .b(11, m().n(1, 9000).b(2, &described))
        }),
    ]
    .concat();
    let (trace, _) = memory(&file);
    let of = |e: &Event| match *e {
        Event::CpuCapacity { cpu, capacity } => Some((cpu.0, capacity.0)),
        _ => None,
    };
    let told: Vec<_> = trace.events().iter().filter_map(|(_, e)| of(e)).collect();
    assert_eq!(told, [(1, 500), (1, 77)]);
}

#[test]
fn a_file_cut_anywhere_is_read_up_to_there() {
    let whole = two_cpus();
    // Where packets begin: each has a byte of tag and one or two of length.
    let mut begins = vec![0];
    while let Some(rest) = whole.get(*begins.last().expect("one")..).filter(|r| !r.is_empty()) {
        let long = rest[1] >= 0x80;
        let high = if long { usize::from(rest[2]) << 7 } else { 0 };
        let length = usize::from(rest[1] & 0x7f) | high;
        begins.push(begins.last().expect("one") + 2 + usize::from(long) + length);
    }
    assert_eq!((begins.len(), begins.last()), (6, Some(&whole.len())));
    let (mut most, mut last) = (0, 0);
    for length in begins[2]..whole.len() {
        let (trace, summary) = memory(&whole[..length]);
        let begun = begins.iter().rev().find(|begin| **begin <= length).expect("the first one");
        let note = format!("damaged at byte {begun}: the file ends within a packet");
        let notes: &[String] = if *begun == length { &[] } else { &[note] };
        assert_eq!(summary.notes, notes, "{length}");
        // Each whole packet is in it, and nothing is lost that was there before.
        most = most.max(trace.events().len());
        assert!(trace.events().len() >= last, "{length}");
        last = trace.events().len();
    }
    assert!(most > 5, "{most}");
}

#[test]
fn bytes_that_are_no_packets_are_passed_over_and_told_with_their_place() {
    let (whole, junk) = (two_cpus(), [0xff; 300]);
    let next = compact(&["x"], &[(T0 + 5000, 1, 9, 120, 0)], &[]);
    let next = [bundle(0, |b| b.b(4, &next)), bundle(1, |b| b.b(4, &next))].concat();
    let (trace, summary) = memory(&[&whole[..], &junk, &next].concat());
    let note = &summary.notes[0];
    let at = whole.len();
    assert_eq!(note, &format!("damaged at byte {at}: 300 bytes are no packets"));
    // What lay between may have been of any CPU.
    let unseen = happenings(&trace).iter().filter(|e| matches!(e.1, Event::Unseen { .. })).count();
    assert_eq!(unseen, 2);
    let switches =
        |t: &Memory| t.events().iter().filter(|(_, e)| matches!(e, Event::Switch { .. })).count();
    assert_eq!(switches(&trace), switches(&memory(&whole).0) + 2);
}

/// Sees that times do not go back.
#[derive(Default)]
struct Order(Instant);

impl TraceSink for Order {
    fn header(&mut self, _: &risetime_trace::Header) {}
    fn event(&mut self, at: Instant, _: &Event) {
        assert!(at >= self.0);
        self.0 = at;
    }
    fn end(&mut self, at: Instant) {
        assert!(at >= self.0);
    }
}

#[test]
fn no_damage_makes_a_panic_or_times_that_go_back() {
    let plain = two_cpus();
    let name = |iid, name: &str| m().b(12, m().b(2, m().n(1, iid).b(2, name)));
    let rich = [
        plain.clone(),
        packet(m().n(10, 9).b(60, m().n(1, 77).b(4, m().n(1, 800).n(2, 812)))),
        track_event(T0 + 1100, 3, name(1, "draw"), m().n(9, 1).n(10, 1).n(11, 77)),
        packet(m().b(50, zlib(&plain))),
        packet(m().b(133, zstd(&plain))),
        packet(m().b(40, m().b(1, m().n(1, 1).b(2, "cpu")).b(2, m().n(1, 1).n(2, 50_000).n(3, 7)))),
    ]
    .concat();
    let mut dice = 1u64;
    let mut below = |n: usize| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (dice >> 33) as usize % n
    };
    let mut read_some = 0;
    for round in 0..3000 {
        let mut bytes = if round % 3 == 0 { gzip(&rich) } else { rich.clone() };
        for _ in 0..1 + below(4) {
            let (at, length) = (below(bytes.len()), below(20));
            match below(4) {
                0 => bytes[at] = below(256) as u8,
                1 => bytes[at] ^= 1 << below(8),
                2 => _ = bytes.drain(at..(at + length).min(bytes.len())),
                _ => bytes.truncate(bytes.len() - below(bytes.len() / 4)),
            }
            if bytes.is_empty() {
                break;
            }
        }
        let source = Source::bytes("damaged", bytes);
        let mut marks = Marks::default();
        let mut order = Order::default();
        read_some +=
            u32::from(read_beside(&source, &mut order, &mut marks, &Options::default()).is_ok());
    }
    assert!(read_some > 2000, "{read_some}");
}
