//! trace.dat, from files that a kernel's own tracing and `trace-cmd` made to events.
//!
//! `made/v6.dat` holds the pages of an instance of tracefs of its own, recorded while three threads ran, names of other programs
//! removed; `v7-zstd.dat` is what `trace-cmd convert` makes of it, `report*.txt` what `trace-cmd report` prints, `counts.txt` what a
//! script of 30 lines counts in the text of `report -R -t`. `overwritten.dat` is of the same programs with a small buffer.

mod support;

use risetime_kernel::units::{CpuId, Instant, TaskId};
use risetime_read::ReadSummary;
use risetime_trace::tracker::Tracker;
use risetime_trace::{Clock, Event, Memory, Why};
use std::collections::BTreeMap;
use support::parts::Parts;
use support::{made, trace, try_trace};

/// By number of the thread: ns of running, turns, wakeups, new ones.
fn counts((memory, summary): &(Memory, ReadSummary)) -> BTreeMap<i32, [u64; 4]> {
    let mut all: BTreeMap<i32, [u64; 4]> = BTreeMap::new();
    let mut runs: BTreeMap<CpuId, (Option<TaskId>, Instant)> = BTreeMap::new();
    let pid = |task: TaskId| summary.threads[task.index()].pid;
    for (at, event) in memory.events() {
        match *event {
            Event::Switch { cpu, next, .. } => {
                if let Some((Some(task), since)) = runs.insert(cpu, (next, *at)) {
                    all.entry(pid(task)).or_default()[0] += at.0 - since.0;
                }
                next.into_iter().for_each(|task| all.entry(pid(task)).or_default()[1] += 1);
            }
            Event::Wakeup { task, .. } => all.entry(pid(task)).or_default()[2] += 1,
            Event::TaskNew { task, why, .. } if why != Why::Earlier => {
                all.entry(pid(task)).or_default()[3] += 1;
            }
            _ => {}
        }
    }
    all
}

/// The counts of a script in the text of trace-cmd.
fn wanted() -> BTreeMap<i32, [u64; 4]> {
    let text = String::from_utf8(made("counts.txt")).expect("text");
    let line = |line: &str| {
        let mut words = line.split(' ');
        let pid = words.next()?.parse().ok()?;
        let n: Vec<u64> = words.map(|n| n.parse().expect("a number")).collect();
        Some((pid, n.try_into().expect("four numbers")))
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn running_time_turns_and_wakeups_of_each_thread_are_those_that_trace_cmd_prints() {
    let wanted = wanted();
    assert!(wanted.len() > 10);
    for name in ["v6.dat", "v7-zstd.dat", "report-t.txt"] {
        assert_eq!(counts(&trace(made(name))), wanted, "{name}");
    }
    // A text has µs: all but running times are the same.
    for name in ["report.txt", "report-R.txt", "report-l.txt"] {
        let read = counts(&trace(made(name)));
        assert_eq!(read.len(), wanted.len(), "{name}");
        for (pid, [ns, rest @ ..]) in &read {
            let [wanted_ns, wanted_rest @ ..] = wanted[pid];
            assert_eq!(*rest, wanted_rest, "{name}: {pid}");
            let turns = rest[0].max(1);
            assert!(ns.abs_diff(wanted_ns) <= 1000 * turns, "{name}: {pid}: {ns}, {wanted_ns}");
        }
    }
}

/// Otherwise the two tools would tell of different machines.
#[test]
fn every_shape_of_the_same_trace_gives_the_same_events() {
    let plain = trace(made("v6.dat"));
    let parts = Parts::of(&made("v6.dat"));
    let header = plain.0.header().expect("a header");
    assert_eq!((header.run.clock, &*header.run.kernel_release), (Clock::Mono, "6.18.44"));
    for (name, bytes) in [
        ("trace-cmd's version 7", made("v7-zstd.dat")),
        ("big-endian", parts.big_endian()),
        ("version 7, plain", parts.version_7("none", &[""], "mono")),
        ("version 7, zlib", parts.version_7("zlib", &[""], "mono")),
        ("version 7, zstd", parts.version_7("zstd", &[""], "mono")),
    ] {
        let (memory, summary) = trace(bytes);
        assert!(memory.events() == plain.0.events(), "{name}");
        assert_eq!((summary.base, &summary.notes), (plain.1.base, &plain.1.notes), "{name}");
    }
}

#[test]
fn a_buffer_is_chosen_by_its_name_and_its_option_names_no_clock() {
    let parts = Parts::of(&made("v6.dat"));
    let bytes = parts.version_7("zstd", &["", "one", "two"], "wrong");
    let top = trace(bytes.clone());
    assert_eq!(top.0.header().map(|h| h.run.clock), Some(Clock::Mono), "by TRACECLOCK");
    assert!(
        top.1.notes.iter().any(|n| n.ends_with("were not read: one, two")),
        "{:?}",
        top.1.notes
    );
    let two = try_trace(bytes.clone(), Some("two")).expect("there");
    assert!(two.0.events() == top.0.events());
    let wrong = try_trace(bytes, Some("three")).map(|_| ()).expect_err("there is none");
    assert!(wrong.contains("no such buffer; it has (top), one, two"), "{wrong}");
    // An empty top buffer beside one that was asked for.
    let only = parts.version_7("none", &["one"], "mono");
    let (_, summary) = trace(only);
    assert!(summary.notes.iter().any(|n| n.contains("read was the instance `one`")));
}

#[test]
fn threads_keep_the_names_that_they_have_in_the_end() {
    let (_, summary) = trace(made("v6.dat"));
    let mut names: Vec<&str> = summary.threads.iter().map(|t| &*t.comm).collect();
    names.sort_unstable();
    names.dedup();
    // Forked as `parent`, renamed by themselves; what else ran is called `other`.
    assert_eq!(names, ["child", "one", "other", "parent", "two words"]);
}

#[test]
fn a_flight_recorder_tells_from_where_all_of_its_buffers_tell() {
    let (memory, summary) = trace(made("overwritten.dat"));
    assert!(summary.notes[0].starts_with("figures begin 144.796 ms after"), "{:?}", summary.notes);
    assert!(memory.events().len() < 150 && summary.base == 73_249_159_727_073, "{}", summary.base);
    // trace-cmd's text of it says the same by its lines of dropped events.
    let (_, text) = trace(made("overwritten.txt"));
    assert_eq!(text.base / 1000, summary.base / 1000);
}

/// What each CPU does at each time at which something happens: the number of the thread, 0 idle; none: unknown.
type Doing = BTreeMap<(u64, u32), Option<i32>>;

fn doing((memory, summary): &(Memory, ReadSummary), times: &[u64]) -> Doing {
    let mut state = Tracker::of(memory.header().expect("a header"));
    let mut events = memory.events().iter().peekable();
    let mut all = BTreeMap::new();
    for time in times.iter().filter(|t| **t >= summary.base) {
        let now = time - summary.base;
        while let Some((at, event)) = events.next_if(|(at, _)| at.0 <= now) {
            state.event(*at, event);
        }
        if now > memory.end().0 {
            break;
        }
        for (cpu, c) in (0..).zip(state.cpus()) {
            let pid = c.current().map_or(0, |task| summary.threads[task.index()].pid);
            all.insert((*time, cpu), c.is_known().then_some(pid));
        }
    }
    all
}

#[test]
fn a_trace_that_is_cut_anywhere_tells_less_and_nothing_else() {
    let (mut told, mut refused) = (0, 0);
    for name in ["v6.dat", "v7-zstd.dat"] {
        let whole = made(name);
        let full = trace(whole.clone());
        let times: Vec<u64> = full.0.events().iter().map(|(at, _)| at.0 + full.1.base).collect();
        let wanted = doing(&full, &times);
        for cut in 1..=50 {
            let length = whole.len() * cut / 51;
            match try_trace(whole[..length].to_vec(), None) {
                Err(e) => {
                    assert!(e.contains("made: "), "{e}");
                    refused += 1;
                }
                Ok(read) => {
                    told += 1;
                    for (place, state) in doing(&read, &times) {
                        let whole = wanted.get(&place).copied().flatten();
                        assert!(state.is_none() || state == whole, "{name}, {length}: {place:?}");
                    }
                    let notes = &read.1.notes;
                    assert!(notes.iter().any(|n| n.starts_with("damaged at byte")), "{notes:?}");
                }
            }
        }
    }
    assert!(told >= 15 && refused >= 15, "{told} told, {refused} refused");
}

#[test]
fn a_damaged_page_is_named_and_the_rest_is_read() {
    let parts = Parts::of(&made("v6.dat"));
    let mut bytes = made("v6.dat");
    let first = bytes.len() - parts.pages.iter().map(Vec::len).sum::<usize>();
    // The second page of CPU 0 says that more of it is in use than there is.
    bytes[first + 4096 + 8..first + 4096 + 16].copy_from_slice(&0xf_0000_u64.to_le_bytes());
    let (memory, summary) = trace(bytes);
    let place = format!("damaged at byte {}: a page: 983040 bytes in use", first + 4096);
    assert_eq!(summary.notes, [place]);
    let unseen: Vec<_> =
        memory.events().iter().filter(|(_, e)| matches!(e, Event::Unseen { .. })).collect();
    assert!(matches!(unseen[..], [(_, Event::Unseen { cpu: CpuId(0) })]), "{unseen:?}");
    assert_eq!(memory.header().expect("a header").run.lost.len(), 1);
}
