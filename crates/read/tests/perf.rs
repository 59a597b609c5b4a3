//! perf's files, from bytes to events.

use risetime_kernel::units::{CpuId, TaskId};
use risetime_read::{Options, ReadSummary, Source, read};
use risetime_trace::{Clock, Event, Memory, SwitchOut};

/// The format of `sched_switch`, cut to the fields that are read.
const SWITCH: &str = "name: sched_switch\nID: 314\nformat:\n\
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n\
\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\
\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n";

fn comm(name: &str) -> [u8; 16] {
    let mut comm = [0; 16];
    comm[..name.len()].copy_from_slice(name.as_bytes());
    comm
}

/// A record: kind, and what is in it.
fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    let size = (8 + body.len()) as u16;
    [&kind.to_le_bytes()[..], &[0, 0], &size.to_le_bytes(), body].concat()
}

/// A sample of `sched_switch`: identifier, thread, time, CPU, the tracepoint's own record.
fn switch(at: u64, cpu: u32, prev: (&str, i32), state: i64, next: (&str, i32)) -> Vec<u8> {
    let raw = [
        &314_u16.to_le_bytes()[..],
        &[0; 2],
        &prev.1.to_le_bytes(),
        &comm(prev.0),
        &prev.1.to_le_bytes(),
        &120_i32.to_le_bytes(),
        &state.to_le_bytes(),
        &comm(next.0),
        &next.1.to_le_bytes(),
        &120_i32.to_le_bytes(),
    ]
    .concat();
    let body = [
        &1_u64.to_le_bytes()[..],
        &prev.1.to_le_bytes(),
        &prev.1.to_le_bytes(),
        &at.to_le_bytes(),
        &cpu.to_le_bytes(),
        &[0; 4],
        &(raw.len() as u32).to_le_bytes(),
        &raw,
    ];
    record(9, &body.concat())
}

/// A file of these records, with the features that are read.
fn file(records: &[Vec<u8>]) -> Vec<u8> {
    const IDENTIFIER_TID_TIME_CPU_RAW: u64 = 1 << 16 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 10;
    let long = |n: u64| n.to_le_bytes().to_vec();
    let sized = |text: &str| [long(text.len() as u64), text.as_bytes().to_vec()].concat();
    let attr = {
        let mut attr = [&2_u32.to_le_bytes()[..], &136_u32.to_le_bytes()].concat();
        attr.extend([314, 1, IDENTIFIER_TID_TIME_CPU_RAW, 0].into_iter().flat_map(long));
        // Identifiers at the end of all records; a clock of its own: CLOCK_MONOTONIC.
        attr.extend(long(1 << 18 | 1 << 25));
        attr.resize(92, 0);
        attr.extend(1_u32.to_le_bytes());
        attr.resize(136 + 16, 0);
        attr
    };
    let data = records.concat();
    let formats = [
        &b"\x17\x08\x44tracing0.6\0\0\x08"[..],
        &4096_u32.to_le_bytes(),
        b"header_page\0",
        &sized(""),
        b"header_event\0",
        &sized(""),
        &0_u32.to_le_bytes(),
        &1_u32.to_le_bytes(),
        b"sched\0",
        &1_u32.to_le_bytes(),
        &sized(SWITCH),
        &0_u32.to_le_bytes(),
        &0_u32.to_le_bytes(),
        &sized("77 sh\n"),
    ]
    .concat();
    let release = [&16_u32.to_le_bytes()[..], &comm("6.12.5")].concat();
    let cpus = [&4_u32.to_le_bytes()[..], &4_u32.to_le_bytes()].concat();
    let attrs_at = 104;
    let data_at = attrs_at + attr.len() as u64;
    let table_at = data_at + data.len() as u64;
    let (mut table, mut parts) = (Vec::new(), Vec::new());
    for part in [formats, release, cpus] {
        table.extend(long(table_at + 48 + parts.len() as u64));
        table.extend(long(part.len() as u64));
        parts.extend(part);
    }
    let mut head = b"PERFILE2".to_vec();
    let of_attrs = [104, attr.len() as u64, attrs_at, attr.len() as u64];
    head.extend(of_attrs.into_iter().flat_map(long));
    head.extend([data_at, data.len() as u64, 0, 0].into_iter().flat_map(long));
    // Formats of tracepoints, release, number of CPUs.
    head.extend([1 << 1 | 1 << 4 | 1 << 7, 0, 0, 0].into_iter().flat_map(long));
    [head, attr, data, table, parts].concat()
}

fn records() -> Vec<Vec<u8>> {
    // The buffers of two CPUs, one after the other; then the next round.
    let lost = [
        &1_u64.to_le_bytes()[..],
        &7_u64.to_le_bytes(),
        &[0; 8],
        &2500_u64.to_le_bytes(),
        &1_u64.to_le_bytes(),
        &1_u64.to_le_bytes(),
    ];
    vec![
        record(3, &[&812_i32.to_le_bytes()[..], &813_i32.to_le_bytes(), &comm("worker")].concat()),
        switch(1000, 0, ("swapper/0", 0), 0, ("sh", 77)),
        switch(2000, 0, ("sh", 77), 1, ("swapper/0", 0)),
        switch(1500, 1, ("swapper/1", 0), 0, ("ui", 812)),
        record(68, &[]),
        record(2, &lost.concat()),
        switch(4000, 1, ("ui", 812), 0, ("worker", 813)),
        switch(3000, 0, ("swapper/0", 0), 0, ("sh", 77)),
    ]
}

fn memory(bytes: Vec<u8>) -> (Memory, ReadSummary) {
    let mut memory = Memory::new();
    let source = Source::bytes("perf.data", bytes);
    let summary = read(&source, &mut memory, &Options::default()).expect("a trace");
    (memory, summary)
}

#[test]
fn samples_of_tracepoints_become_events_by_time() {
    let (trace, summary) = memory(file(&records()));
    let told = |e: &Event| matches!(e, Event::Switch { .. } | Event::Unseen { .. });
    let events: Vec<(u64, Event)> =
        trace.events().iter().filter(|(_, e)| told(e)).map(|(at, e)| (at.0, *e)).collect();
    let (sh, ui, worker) = (TaskId(0), TaskId(1), TaskId(2));
    let goes = |at, cpu, prev, next| (at, Event::Switch { cpu: CpuId(cpu), prev, next });
    assert_eq!(
        events,
        [
            goes(0, 0, None, Some(sh)),
            goes(500, 1, None, Some(ui)),
            // Of CPU 1 seven events are lost after this one.
            (500, Event::Unseen { cpu: CpuId(1) }),
            goes(1000, 0, Some((sh, SwitchOut::Sleeping)), None),
            goes(2000, 0, None, Some(sh)),
            goes(3000, 1, Some((ui, SwitchOut::Preempted)), Some(worker)),
        ]
    );
    let header = trace.header().expect("a header");
    assert_eq!(header.machine.platform.nr_cpus(), 4);
    assert_eq!((header.run.clock, &*header.run.kernel_release), (Clock::Mono, "6.12.5"));
    assert_eq!(header.run.lost, ["CPU 1: 7 events were lost, at 1 places"]);
    let threads: Vec<_> = summary.threads.iter().map(|t| (t.pid, &*t.comm)).collect();
    assert_eq!(threads, [(77, "sh"), (812, "ui"), (813, "worker")]);
    assert_eq!((summary.format, summary.processes[2]), ("perf.data", 812));
    assert!(summary.notes.is_empty(), "{:?}", summary.notes);
}

#[test]
fn files_that_hold_no_tracepoints_are_refused_with_what_to_do() {
    let refused = |bytes: Vec<u8>| {
        let source = Source::bytes("perf.data", bytes);
        read(&source, &mut (), &Options::default()).expect_err("no trace").to_string()
    };
    let mut pipe = file(&records());
    pipe[8] = 16;
    assert!(refused(pipe).contains("as a pipe of perf's"));
    let mut cycles = file(&records());
    // Without the tracepoint's record.
    cycles[104 + 25] &= !4;
    let said = refused(cycles);
    assert!(said.contains("perf sched record"), "{said}");
}

#[test]
fn no_damage_of_a_file_of_perf_makes_a_panic() {
    let whole = file(&records());
    let mut dice = 1u64;
    let mut below = |n: usize| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (dice >> 33) as usize % n
    };
    let mut read_some = 0;
    for _ in 0..5000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + below(3) {
            let (at, length) = (below(bytes.len()), below(20));
            match below(4) {
                0 => bytes[at] = below(256) as u8,
                1 => bytes[at] ^= 1 << below(8),
                2 => _ = bytes.drain(at..(at + length).min(bytes.len())),
                _ => bytes.truncate(bytes.len() - below(bytes.len() / 4)),
            }
        }
        let source = Source::bytes("damaged", bytes);
        read_some += u32::from(read(&source, &mut Memory::new(), &Options::default()).is_ok());
    }
    assert!(read_some > 1000, "{read_some}");
}
