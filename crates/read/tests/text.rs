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

/// Events of two threads of a process, as systrace has them.
const SYSTRACE: &str = "\
  RenderThread-1143  (  611) [001] d..3 514769.000000: sched_switch: prev_comm=RenderThread prev_pid=1143 prev_prio=120 prev_state=S ==> next_comm=ui next_pid=611 next_prio=120
  ui-611  (  611) [001] ...1 514769.000100: tracing_mark_write: B|611|draw|frame 7
  ui-611  (  611) [001] ...1 514769.000200: tracing_mark_write: S|611|animator|3
  ui-611  (  611) [001] ...1 514769.000300: tracing_mark_write: C|611|queue|2
  ui-611  (  611) [001] ...1 514769.002100: tracing_mark_write: E|611
  ui-611  (  611) [001] d..3 514769.003000: sched_switch: prev_comm=ui prev_pid=611 prev_prio=120 prev_state=D|K ==> next_comm=swapper/1 next_pid=0 next_prio=120
";

/// Marks in words, with the name of the thread.
#[derive(Default)]
struct Marks(Vec<String>);

impl risetime_read::Beside for Marks {
    fn mark(
        &mut self,
        at: Instant,
        task: Option<TaskId>,
        process: i32,
        mark: &risetime_read::Mark<'_>,
    ) {
        self.0.push(format!("{} {task:?} {process} {mark:?}", at.0 / 1000));
    }
}

fn with_marks(bytes: Vec<u8>) -> (Memory, risetime_read::ReadSummary, Vec<String>) {
    let (mut memory, mut marks) = (Memory::new(), Marks::default());
    let source = Source::bytes("x", bytes);
    let summary = risetime_read::read_beside(&source, &mut memory, &mut marks, &Options::default());
    (memory, summary.expect("a trace"), marks.0)
}

#[test]
fn systrace_and_atrace_hold_the_same_text_however_it_is_packed() {
    let plain = with_marks(SYSTRACE.into());
    assert_eq!(
        plain.2,
        [
            "100 Some(TaskId(1)) 611 Begin { name: \"draw|frame 7\" }",
            "200 Some(TaskId(1)) 611 AsyncBegin { name: \"animator\", cookie: 3 }",
            "300 Some(TaskId(1)) 611 Counter { name: \"queue\", value: 2 }",
            "2100 Some(TaskId(1)) 611 End",
        ]
    );
    assert_eq!(plain.1.processes, [611, 611]);
    let html = format!(
        "<!DOCTYPE html>\n<html>\n<script>let a = [1];</script>\n\
         <script class=\"trace-data\" type=\"application/text\">\n# tracer: nop\n{SYSTRACE}</script>\n</html>\n"
    );
    let lines = SYSTRACE.replace('\n', "\\n\\\n");
    let legacy = format!(
        "<!DOCTYPE HTML>\n<html>\n<script>\n  var linuxPerfData = \"\\\n# tracer: nop\\n\\\n{lines}\
         \x20          dummy-0000  [000] 0.0: 0: trace_event_clock_sync: parent_ts=0.0\\n\";\n</script>\n"
    );
    let mut zlib = flate2::write::ZlibEncoder::new(
        b"capturing trace... done\nTRACE:\n".to_vec(),
        flate2::Compression::best(),
    );
    std::io::Write::write_all(&mut zlib, SYSTRACE.as_bytes()).expect("to memory");
    let zlib = zlib.finish().expect("to memory");
    let raw = [b"capturing trace... done\nTRACE:\n# tracer: nop\n", SYSTRACE.as_bytes()].concat();
    let windows = SYSTRACE.replace('\n', "\r\n");
    for (what, bytes) in [
        ("HTML", html.into_bytes()),
        ("HTML of old", legacy.into_bytes()),
        ("compressed", zlib),
        ("raw", raw),
        ("lines of Windows", windows.into_bytes()),
    ] {
        let read = with_marks(bytes);
        assert!(read.0.events() == plain.0.events(), "{what}");
        assert_eq!((&read.2, &read.1.notes), (&plain.2, &plain.1.notes), "{what}");
    }
}

#[test]
fn a_compressed_text_that_is_cut_is_read_as_far_as_it_goes() {
    let mut zlib =
        flate2::write::ZlibEncoder::new(b"TRACE:\n".to_vec(), flate2::Compression::none());
    std::io::Write::write_all(&mut zlib, SYSTRACE.as_bytes()).expect("to memory");
    let mut bytes = zlib.finish().expect("to memory");
    bytes.truncate(bytes.len() - 300);
    let (_, summary, marks) = with_marks(bytes);
    assert!(!marks.is_empty() && marks.len() < 4, "{marks:?}");
    assert!(
        summary.notes.iter().any(|n| n.contains("compressed text that ends")),
        "{:?}",
        summary.notes
    );
}

#[test]
fn lines_that_are_no_events_are_named_with_their_offsets() {
    let at = TRACEFS.find("          <idle>-0       [001]").expect("there");
    let (head, tail) = TRACEFS.split_at(at);
    let (trace, summary) = memory(&format!("{head}          <idle>-0   [00\n{tail}"));
    assert_eq!(summary.notes, [format!("damaged at byte {at}: a line that is no event")]);
    assert!(trace.events() == memory(TRACEFS).0.events());
}

/// A platform that is not that of the trace would give wrong figures without a word.
#[test]
fn a_platform_with_fewer_cpus_than_the_trace_is_refused() {
    let platform = risetime_model::Platform::load("m1").expect("built in");
    let many = TRACEFS.replace("#P:4", "#P:64");
    let source = Source::bytes("a.txt", many.into_bytes());
    let options = Options { platform: Some(std::sync::Arc::new(platform)), ..Options::default() };
    let wrong = read(&source, &mut (), &options).expect_err("it does not fit");
    assert!(wrong.to_string().contains("64 CPUs, the platform `m1` has 8"), "{wrong}");
}

/// Kernels write a task's name at each switch; the one at the end is that of the program which did the work.
#[test]
fn an_exit_ends_a_thread_and_its_number_is_used_again() {
    let switch = |at: u32, prev: &str, state: &str, next: &str| {
        format!(
            "  x-1 [000] d..2. 5.{at:06}: sched_switch: prev_comm={prev} prev_prio=120 prev_state={state} ==> next_comm={next} next_prio=120\n"
        )
    };
    let text = [
        "  x-1 [000] d..2. 5.000000: sched_wakeup_new: comm=sh pid=50 prio=120 target_cpu=000\n"
            .into(),
        switch(1, "swapper/0 prev_pid=0", "R", "sh next_pid=50"),
        switch(2, "make prev_pid=50", "X", "swapper/0 next_pid=0"),
        "  x-1 [000] d..2. 5.000003: sched_wakeup_new: comm=sh pid=50 prio=120 target_cpu=000\n"
            .into(),
        switch(4, "swapper/0 prev_pid=0", "R", "sh next_pid=50"),
    ]
    .concat();
    let (trace, summary) = memory(&text);
    let threads: Vec<(i32, &str)> = summary.threads.iter().map(|t| (t.pid, &*t.comm)).collect();
    assert_eq!(threads, [(50, "make"), (50, "sh")]);
    let made: Vec<(TaskId, Why)> = trace
        .events()
        .iter()
        .filter_map(|(_, event)| match *event {
            Event::TaskNew { task, why, .. } => Some((task, why)),
            _ => None,
        })
        .collect();
    assert_eq!(made, [(TaskId(0), Why::Unknown), (TaskId(1), Why::Unknown)]);
    let names: Vec<&str> = trace.tasks().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["make", "sh"], "told before the name is known");
}

/// What trace-cmd 3.1 prints of a file with an instance, in which events of both buffers were lost.
const INSTANCES: &str = "\
cpus=2
     CPU:0 [537 EVENTS DROPPED]
           <...>-20 [000] 73249.014931: sched_wakeup:         child:78 [120] CPU:000
one: CPU:0 [537 EVENTS DROPPED]
           <...>-20 [000] 73249.014931: sched_wakeup:         child:78 [120] CPU:000
one:            <...>-20 [000] 73249.014941: sched_switch:         other:20 [130] R ==> child:78 [120]
                <...>-20 [000] 73249.014945: sched_switch:         other:20 [130] R ==> child:78 [120]
one:            <...>-20 [000] 73249.014951: sched_switch:         child:78 [120] S ==> swapper/0:0 [120]
";

/// trace-cmd prints an instance's name before the line of a loss, and not before the event behind it.
#[test]
fn lines_of_an_instance_are_told_from_those_of_the_top_buffer() {
    let of = |buffer: Option<&str>, text: &str| {
        let options = Options { buffer: buffer.map(str::to_string), ..Options::default() };
        let mut memory = Memory::new();
        let source = Source::bytes("a.txt", text.as_bytes().to_vec());
        let summary = read(&source, &mut memory, &options).expect("a trace");
        (summary.records, summary.end, summary.notes)
    };
    let (records, end, notes) = of(None, INSTANCES);
    assert_eq!((records, end), (2, Instant(14_000)));
    assert_eq!(notes, ["the file has a further buffer, which was not read: one"]);
    let (records, end, notes) = of(Some("one"), INSTANCES);
    assert_eq!((records, end), (3, Instant(20_000)));
    assert_eq!(notes, ["the file has a further buffer, which was not read: (top)"]);
    // All lines of one instance: that is the trace.
    let only: Vec<&str> = INSTANCES.lines().filter(|line| line.contains("one:  ")).collect();
    assert_eq!(of(None, &only.join("\n")).0, 2);
}
