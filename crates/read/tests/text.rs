//! ftrace's text, from a file to events.

use risetime_kernel::units::{CpuId, Instant, KHz, TaskId};
use risetime_read::{Options, Source, read};
use risetime_trace::{Event, Memory, SwitchOut, Whence, Why};

/// Two CPUs: `ui` is woken and runs, `sh` was there; the frequency of CPU 1 is told once.
const TRACEFS: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 8/8   #P:4
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
          <idle>-0       [000] d..2.   100.000000: sched_wakeup: comm=ui pid=812 prio=120 target_cpu=001
          <idle>-0       [001] d..2.   100.000050: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=ui next_pid=812 next_prio=120
              ui-812     [001] d..2.   100.001000: cpu_frequency: state=1800000 cpu_id=1
              sh-77      [000] d..2.   100.002000: sched_switch: prev_comm=sh prev_pid=77 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
          <idle>-0       [000] d..2.   100.002500: cpu_idle: state=1 cpu_id=0
              ui-812     [001] d..2.   100.003050: sched_switch: prev_comm=ui prev_pid=812 prev_prio=120 prev_state=R+ ==> next_comm=swapper/1 next_pid=0 next_prio=120
          <idle>-0       [000] d..2.   100.004000: cpu_idle: state=4294967295 cpu_id=0
";

fn memory(text: &str) -> (Memory, risetime_read::ReadSummary) {
    let source = Source::bytes("a.txt", text.as_bytes().to_vec());
    let mut memory = Memory::new();
    let summary = read(&source, &mut memory, &Options::default()).expect("a trace");
    (memory, summary)
}

#[test]
fn the_file_trace_of_tracefs_becomes_events_with_tasks() {
    let (trace, summary) = memory(TRACEFS);
    let header = trace.header().expect("a header");
    assert_eq!((header.machine.platform.nr_cpus(), header.machine.whence), (4, Whence::Seen));
    let signals: Vec<&str> = header.run.signals.iter().map(|s| s.name).collect();
    assert_eq!(signals, ["sched_wakeup", "sched_switch", "cpu_frequency", "cpu_idle"]);
    let (ui, sh, cpu) = (TaskId(0), TaskId(1), CpuId);
    let us = |us: u64| Instant(us * 1000);
    let events: Vec<(Instant, Event)> = trace
        .events()
        .iter()
        .filter(|(_, event)| !matches!(event, Event::TaskNew { .. } | Event::Prio { .. }))
        .copied()
        .collect();
    let goes = |at, cpu, prev, next| (us(at), Event::Switch { cpu, prev, next });
    assert_eq!(
        events,
        [
            (us(0), Event::Wakeup { task: ui, cpu: cpu(1), why: Why::Unknown }),
            goes(50, cpu(1), None, Some(ui)),
            (us(1000), Event::Freq { cpu: cpu(1), freq: KHz(1_800_000) }),
            goes(2000, cpu(0), Some((sh, SwitchOut::Sleeping)), None),
            (us(2500), Event::Idle { cpu: cpu(0), state: Some(1) }),
            goes(3050, cpu(1), Some((ui, SwitchOut::Preempted)), None),
            (us(4000), Event::Idle { cpu: cpu(0), state: None }),
        ]
    );
    assert_eq!(trace.end(), us(4000));
    assert_eq!((summary.base, summary.records), (100_000_000_000, 7));
    let threads: Vec<(i32, &str)> = summary.threads.iter().map(|t| (t.pid, &*t.comm)).collect();
    assert_eq!(threads, [(812, "ui"), (77, "sh")]);
    assert!(summary.notes.is_empty(), "{:?}", summary.notes);
}

#[test]
fn what_is_no_trace_is_refused_with_the_formats_that_are_known() {
    for bytes in [&b""[..], b"{}", b"hello\nworld\n", b"\x00\x01\x02"] {
        let source = Source::bytes("x", bytes.to_vec());
        let wrong = read(&source, &mut (), &Options::default()).expect_err("no trace");
        assert!(wrong.to_string().contains("ftrace text"), "{wrong}");
    }
}

#[test]
fn a_loss_makes_its_cpu_unknown_from_the_last_event_before_it_on() {
    let (head, tail) = TRACEFS.split_at(
        TRACEFS.find("              ui-812     [001] d..2.   100.003050").expect("there"),
    );
    let (trace, _) = memory(&format!("{head}CPU:1 [LOST 34 EVENTS]\n{tail}"));
    let unseen = trace.events().iter().find(|(_, e)| matches!(e, Event::Unseen { .. }));
    assert_eq!(unseen, Some(&(Instant(1_000_000), Event::Unseen { cpu: CpuId(1) })));
    let lost = &trace.header().expect("a header").run.lost;
    assert_eq!(lost, &["CPU 1: 34 events were lost, at 1 places"]);
}

#[test]
fn figures_begin_where_the_last_overwritten_buffer_begins() {
    let (head, tail) = TRACEFS.split_at(TRACEFS.find("              sh-77").expect("there"));
    let (trace, summary) = memory(&format!("{head}##### CPU 0 buffer started ####\n{tail}"));
    // The frequency that was told before is known at the begin.
    assert_eq!(
        trace.events().first(),
        Some(&(Instant(0), Event::Freq { cpu: CpuId(1), freq: KHz(1_800_000) }))
    );
    assert_eq!((summary.base, trace.end()), (100_002_000_000, Instant(2_000_000)));
    assert!(summary.notes[0].starts_with("figures begin 2.000 ms after"), "{:?}", summary.notes);
}
