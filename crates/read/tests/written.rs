//! What the writers write is what is read of it, as far as each format holds it.

use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::*;
use risetime_model::platform::{Domain, Opp, Platform};
use risetime_read::{Options, ReadSummary, Source, read};
use risetime_trace::write::{Numbers, ftrace, perfetto};
use risetime_trace::{
    Asked, BackendKind, Clock, Event, Header, Image, MachineInfo, Memory, PressureClass, Run,
    SwitchOut, TraceSink, Whence, Why,
};
use std::sync::Arc;

const UI: TaskId = TaskId(0);
const BG: TaskId = TaskId(1);

fn header() -> Header {
    let domain = |cpus: [u32; 2], mhz: u64| Domain {
        cpus: cpus.map(CpuId).to_vec(),
        cluster: 0,
        capacity: Capacity(1024),
        fast_switch: false,
        transition_delay_us: None,
        energy_model: true,
        opps: vec![Opp::new(KHz(mhz * 1000), MicroWatts(1), Span(0))],
        levels: None,
        idle: Vec::new(),
        work: Vec::new(),
    };
    Header {
        run: Run {
            backend: BackendKind::Sim,
            kernel_release: "6.8".to_owned(),
            clock: Clock::Simulated,
            signals: Vec::new(),
            lost: Vec::new(),
        },
        asked: Some(Asked { workload: "ramp".to_owned(), ..Asked::default() }),
        machine: MachineInfo {
            platform: Arc::new(Platform {
                name: "pair".to_owned(),
                about: String::new(),
                hz: 250,
                domains: vec![domain([0, 1], 600), domain([2, 3], 3000)],
                topology: Default::default(),
                thermal: Vec::new(),
                sources: Default::default(),
                doubts: Vec::new(),
            }),
            whence: Whence::Described,
            settings: Default::default(),
        },
        image: Image::default(),
    }
}

fn new(task: TaskId, comm: &str, cpu: u32) -> Event {
    let (comm, cpu) = (comm.into(), CpuId(cpu));
    Event::TaskNew { task, comm, user: true, cpu, why: Why::FirstCpu, max_speed: Util(1024) }
}

/// An event of each kind that either format holds, 10 µs apart.
fn events() -> Vec<Event> {
    let (cpu, update) = (CpuId(2), ClockPelt(12_345));
    let clamps = Uclamp { min: Util(100), max: Util(900) };
    vec![
        new(UI, "ui", 2),
        Event::Switch { cpu, prev: None, next: Some(UI) },
        Event::Freq { cpu: CpuId(0), freq: KHz(600_000) },
        Event::Freq { cpu, freq: KHz(3_000_000) },
        Event::CpuFrequencyLimits { cpu, min: KHz(600_000), max: KHz(2_000_000) },
        Event::FreqRequest { cpu, util: Util(321), freq: KHz(3_000_000), why: Why::Util },
        Event::Idle { cpu: CpuId(0), state: Some(1) },
        Event::Idle { cpu: CpuId(0), state: None },
        new(BG, "bg job", 1),
        Event::Migrate { task: BG, from: CpuId(1), to: CpuId(3), why: Why::Energy },
        Event::Switch { cpu: CpuId(3), prev: None, next: Some(BG) },
        Event::PeltTask {
            task: UI,
            cpu,
            util_avg: Util(123),
            runnable_avg: Util(130),
            util_sum: 5_000_000,
            period_contrib: 77,
            last_update_time: update,
        },
        Event::UtilEst { task: UI, util_est: Util(140) },
        Event::PeltCfs {
            cpu,
            util_avg: Util(200),
            runnable_avg: Util(210),
            util_est: Util(220),
            util_sum: 9_000_000,
            period_contrib: 78,
            last_update_time: update,
        },
        Event::PeltPressure {
            cpu,
            class: PressureClass::Rt,
            util_avg: Util(30),
            util_sum: 1000,
            period_contrib: 5,
            last_update_time: update,
        },
        Event::CpuCapacity { cpu, capacity: Capacity(1000) },
        Event::Overutilized { on: true },
        Event::Clamps { task: UI, clamps },
        Event::CpuClamps { cpu, clamps },
        Event::WaitingAvg { task: UI, waiting_avg: Util(7) },
        Event::Temperature { zone: 0, millicelsius: 45_123 },
        Event::Phase { task: UI, index: 1, name: "busy".into() },
        Event::MaxSpeed { task: UI, max_speed: Util(900) },
        Event::Misfit { cpu, task: Some(UI) },
        Event::Misfit { cpu, task: None },
        Event::Throttled { task: BG, on: true },
        Event::Hotplug { cpu: CpuId(1), online: false },
        Event::Switch { cpu, prev: Some((UI, SwitchOut::Sleeping)), next: None },
        Event::Wakeup { task: UI, cpu, why: Why::Energy },
        Event::Switch { cpu, prev: None, next: Some(UI) },
        Event::Switch { cpu: CpuId(3), prev: Some((BG, SwitchOut::Preempted)), next: None },
        Event::Switch { cpu, prev: Some((UI, SwitchOut::Exited)), next: None },
    ]
}

fn pour(sink: &mut dyn TraceSink) {
    sink.header(&header());
    let all = events();
    all.iter().zip(0..).for_each(|(event, n)| sink.event(Instant(n * 10_000), event));
    sink.end(Instant(all.len() as u64 * 10_000));
}

/// The events that a file gives back, without those that merely accompany others.
fn back(bytes: Vec<u8>) -> (Vec<(Instant, Event)>, Memory, ReadSummary) {
    let mut memory = Memory::new();
    let source = Source::bytes("written", bytes);
    let summary = read(&source, &mut memory, &Options::default()).expect("a trace");
    let beside = |e: &Event| matches!(e, Event::Prio { .. } | Event::Waking { .. });
    let events = memory.events().iter().filter(|(_, e)| !beside(e)).copied().collect();
    (events, memory, summary)
}

/// An event as a file keeps it whose reasons of wakeups and creations are lost.
fn without_reason(event: Event) -> Event {
    match event {
        Event::TaskNew { task, comm, user, cpu, max_speed, .. } => {
            Event::TaskNew { task, comm, user, cpu, max_speed, why: Why::Unknown }
        }
        Event::Wakeup { task, cpu, .. } => Event::Wakeup { task, cpu, why: Why::Unknown },
        other => other,
    }
}

#[test]
fn a_perfetto_file_gives_back_every_event_that_it_holds() {
    let mut file = Vec::new();
    let mut writer = perfetto::Writer::new(&mut file);
    pour(&mut writer);
    writer.finish().expect("to memory");
    let (found, memory, summary) = back(file);
    let held = |event: Event| {
        Some(match without_reason(event) {
            // A counter holds one bound of the two.
            Event::CpuFrequencyLimits { .. } => return None,
            Event::PeltTask { task, cpu, util_avg, runnable_avg, .. } => Event::PeltTask {
                task,
                cpu,
                util_avg,
                runnable_avg,
                util_sum: 0,
                period_contrib: 0,
                last_update_time: ClockPelt(0),
            },
            Event::PeltCfs { cpu, util_avg, runnable_avg, util_est, .. } => Event::PeltCfs {
                cpu,
                util_avg,
                runnable_avg,
                util_est,
                util_sum: 0,
                period_contrib: 0,
                last_update_time: ClockPelt(0),
            },
            Event::PeltPressure { cpu, class, util_avg, .. } => Event::PeltPressure {
                cpu,
                class,
                util_avg,
                util_sum: 0,
                period_contrib: 0,
                last_update_time: ClockPelt(0),
            },
            other => other,
        })
    };
    let kept = (0..).zip(events()).filter_map(|(n, e)| Some((Instant(n * 10_000), held(e)?)));
    for (found, wanted) in found.iter().zip(kept.clone()) {
        assert_eq!(*found, wanted);
    }
    assert_eq!(found.len(), kept.count());
    let header = memory.header().expect("a header");
    assert_eq!((header.run.clock, &*header.run.kernel_release), (Clock::Simulated, "6.8"));
    let threads: Vec<_> = summary.threads.iter().map(|t| (t.pid, &*t.comm)).collect();
    assert_eq!(threads, [(1000, "ui"), (1001, "bg job")]);
    assert_eq!(summary.processes, [999, 999]);
    assert!(summary.notes.is_empty(), "{:?}", summary.notes);
}

#[test]
fn ftrace_text_gives_back_every_event_that_it_holds() {
    let mut file = Vec::new();
    let mut writer = ftrace::Writer::new(&mut file);
    pour(&mut writer);
    writer.finish().expect("to memory");
    let text = String::from_utf8(file.clone()).expect("text");
    assert!(text.lines().all(|line| line.len() < 300), "{text}");
    let (found, _, summary) = back(file);
    let held = |event: Event| {
        Some(match without_reason(event) {
            Event::FreqRequest { .. }
            | Event::WaitingAvg { .. }
            | Event::Phase { .. }
            | Event::MaxSpeed { .. }
            | Event::Misfit { .. }
            | Event::Throttled { .. }
            | Event::Hotplug { .. } => return None,
            Event::Migrate { task, from, to, .. } => {
                Event::Migrate { task, from, to, why: Why::Unknown }
            }
            other => other,
        })
    };
    let kept = (0..).zip(events()).filter_map(|(n, e)| Some((Instant(n * 10_000), held(e)?)));
    for (found, wanted) in found.iter().zip(kept.clone()) {
        assert_eq!(*found, wanted, "{text}");
    }
    assert_eq!(found.len(), kept.count());
    assert_eq!(summary.processes, [999, 999]);
    assert!(summary.notes.is_empty(), "{:?}", summary.notes);
}

#[test]
fn lines_are_laid_out_as_the_kernel_prints_them() {
    let mut file = Vec::new();
    let mut writer = ftrace::Writer::new(&mut file);
    pour(&mut writer);
    writer.finish().expect("to memory");
    let text = String::from_utf8(file).expect("text");
    let lines: Vec<&str> = text.lines().skip_while(|line| line.starts_with('#')).collect();
    assert_eq!(
        lines[..3],
        [
            "          <idle>-0       (-------) [002] .....     0.000000: task_newtask: pid=1000 \
             comm=ui clone_flags=3d0f00 oom_score_adj=0",
            "          <idle>-0       (-------) [002] .....     0.000000: sched_wakeup_new: comm=ui \
             pid=1000 prio=120 target_cpu=002",
            "          <idle>-0       (-------) [002] .....     0.000010: sched_switch: \
             prev_comm=swapper/2 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=ui \
             next_pid=1000 next_prio=120",
        ]
    );
    let last = lines[lines.len() - 1];
    assert!(
        last.starts_with("              ui-1000    (    999) [002] .....     0.000310: "),
        "{last}"
    );
    assert!(last.contains("prev_state=X ==> next_comm=swapper/2"), "{last}");
}

#[test]
fn numbers_of_a_file_that_was_read_are_kept() {
    let numbers = || Numbers { threads: vec![(812, 800), (77, 0)], base: 5_000_000_000 };
    let mut text = Vec::new();
    let mut writer = ftrace::Writer::of(&mut text, numbers());
    pour(&mut writer);
    writer.finish().expect("to memory");
    let mut proto = Vec::new();
    let mut writer = perfetto::Writer::of(&mut proto, numbers());
    pour(&mut writer);
    writer.finish().expect("to memory");
    for (file, format) in [(text, "ftrace text"), (proto, "Perfetto trace")] {
        let (_, _, summary) = back(file);
        let threads: Vec<_> = summary.threads.iter().map(|t| t.pid).collect();
        assert_eq!((summary.format, threads), (format, vec![812, 77]));
        assert_eq!((summary.base, summary.processes[0]), (5_000_000_000, 800), "{format}");
    }
}
