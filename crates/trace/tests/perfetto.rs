//! The Perfetto writer, read back with nothing in common but the wire format: the field
//! numbers here and in `reader` are written down a second time, from Perfetto's .proto files.

mod reader;

use reader::{Fields, Ftrace, Read};
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::*;
use risetime_model::platform::{Domain, Opp, Platform};
use risetime_trace::write::perfetto::Writer;
use risetime_trace::{
    Asked, BackendKind, Clock, Event, Header, Image, MachineInfo, PressureClass, Run, SwitchOut,
    TraceSink, Whence, Why,
};
use std::io;

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
        energy_model: true,
        opps: vec![Opp::new(KHz(mhz * 1000), MicroWatts(1), Span(0))],
        levels: None,
        idle: Vec::new(),
        work: Vec::new(),
    };
    let mut settings = risetime_model::Settings::default();
    settings.insert("rate_limit_us", risetime_model::Value::Int(70));
    Header {
        run: Run {
            backend: BackendKind::Sim,
            kernel_release: "6.8".to_owned(),
            clock: Clock::Simulated,
            signals: Vec::new(),
            lost: vec!["three events".to_owned()],
        },
        asked: Some(Asked {
            workload: "ramp".to_owned(),
            policy: "plain".to_owned(),
            seed: 1,
            ..Asked::default()
        }),
        machine: MachineInfo {
            platform: std::sync::Arc::new(Platform {
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
            settings,
        },
        image: Image::default(),
    }
}

fn events() -> Vec<(u64, Event)> {
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
        (0, new(KTHREAD, "sugov:0".into(), false)),
        (10, new(T, "ramp-0".into(), true)),
        (10, pelt(0)),
        (20, Event::Idle { cpu: CpuId(0), state: None }),
        (20, Event::Switch { cpu: CpuId(0), prev: None, next: Some(T) }),
        (25, Event::Phase { task: T, index: 1, name: "busy".into() }),
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
                class: PressureClass::Irq,
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

fn write(events: &[(u64, Event)]) -> Read {
    write_of(&header(), events)
}

fn write_of(header: &Header, events: &[(u64, Event)]) -> Read {
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes);
    w.header(header);
    let mut last = 0;
    for (at, event) in events {
        w.event(Instant(*at), event);
        last = *at;
    }
    w.end(Instant(last));
    w.finish().unwrap();
    Read::of(&bytes)
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
        (2, Event::Phase { task, index: u32::MAX, name: "".into() }),
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

// ---- priorities, clamps, jobs, power ----

fn new(task: TaskId, comm: &'static str) -> Event {
    let (cpu, why, max_speed) = (CpuId(0), Why::FirstCpu, Util(1024));
    Event::TaskNew { task, comm: comm.into(), user: true, cpu, why, max_speed }
}

/// (time, prio) of wakeups, and (time, prev_prio, next_prio) of switches.
type Prios = (Vec<(u64, u64)>, Vec<(u64, u64, u64)>);

fn prios(read: &Read) -> Prios {
    let woken = read.ftrace().into_iter().filter(|e| [20, 17, 114].contains(&e.2));
    let woken = woken.map(|(_, at, _, w)| (at, w.number(3).unwrap()));
    let switches = read.kind(4).into_iter();
    let of = |(_, at, _, s): Ftrace| (at, s.number(3).unwrap(), s.number(7).unwrap());
    (woken.collect(), switches.map(of).collect())
}

#[test]
fn priorities_as_they_are_at_the_time() {
    use risetime_model::workload::Policy;
    let run = |next| Event::Switch { cpu: CpuId(0), prev: None, next: Some(next) };
    let out = Event::Switch { cpu: CpuId(0), prev: Some((T, SwitchOut::Sleeping)), next: None };
    let read = write(&[
        (1, new(T, "a")),
        (1, Event::Prio { task: T, prio: 110 }),
        (2, run(T)),
        (3, out),
        (4, Event::Policy { task: T, policy: Policy::Fifo { priority: 10 } }),
        (5, Event::Wakeup { task: T, cpu: CpuId(0), why: Why::PrevCpu }),
        (6, Event::Policy { task: T, policy: Policy::Other { slice: None } }),
        (7, run(T)),
        (8, Event::Prio { task: T, prio: 139 }),
        (9, out),
        // Of this one nothing is told.
        (10, new(KTHREAD, "b")),
        (11, run(KTHREAD)),
    ]);
    let (woken, switches) = prios(&read);
    let wanted = [(1, 110), (1, 110), (5, 89), (5, 89), (10, 120), (10, 120)];
    assert_eq!(woken, wanted);
    let wanted = [(2, 120, 110), (3, 110, 120), (7, 120, 110), (9, 139, 120), (11, 120, 120)];
    assert_eq!(switches, wanted);
}

#[test]
fn a_new_task_at_the_end_is_not_forgotten() {
    assert_eq!(prios(&write(&[(1, new(T, "a"))])).0, [(1, 120), (1, 120)]);
}

#[test]
fn clamps_are_counters_where_there_are_any() {
    let clamps = |min, max| Uclamp { min: Util(min), max: Util(max) };
    let read = write(&[
        (1, new(T, "a")),
        (1, Event::Clamps { task: T, clamps: clamps(0, 1024) }),
        (2, Event::Clamps { task: T, clamps: clamps(300, 1024) }),
        (3, Event::Clamps { task: T, clamps: clamps(0, 1024) }),
        (4, Event::CpuClamps { cpu: CpuId(1), clamps: clamps(0, 512) }),
        (5, Event::CpuClamps { cpu: CpuId(2), clamps: clamps(0, 1024) }),
    ]);
    assert_eq!(read.counter("a uclamp_min"), [(2, 300), (3, 0)]);
    assert_eq!(read.counter("a uclamp_max"), [(2, 1024)]);
    assert_eq!(read.counter("CPU1 uclamp_max"), [(4, 512)]);
    assert!(!read.packets.iter().filter_map(|p| p.maybe(60)).any(|t| t.text(2).contains("CPU2")));
}

#[test]
fn power_of_a_domain_is_what_its_cpus_take() {
    let cpu = CpuId(0);
    let mut header = header();
    let platform = std::sync::Arc::make_mut(&mut header.machine.platform);
    let opp = |mhz: u64, mw: u64| Opp::new(KHz(mhz * 1000), MicroWatts(mw * 1000), Span(0));
    platform.domains[0].opps = vec![opp(600, 10), opp(1200, 30)];
    let state = |uw| risetime_model::platform::IdleState::new("", Span(0), Span(0), MicroWatts(uw));
    platform.domains[0].idle = vec![state(2500), state(0)];
    // Of the other one it is unknown.
    platform.domains[1].opps[0].power = MicroWatts(0);
    let events = [
        (5, Event::Idle { cpu, state: Some(1) }),
        (10, Event::Idle { cpu, state: None }),
        (10, Event::Switch { cpu, prev: None, next: Some(T) }),
        (20, Event::Freq { cpu, freq: KHz(1_000_000) }),
        (30, Event::Irq { cpu: CpuId(1), enters: true }),
        (31, Event::Irq { cpu: CpuId(1), enters: false }),
        (40, Event::Switch { cpu, prev: Some((T, SwitchOut::Sleeping)), next: None }),
        (40, Event::Idle { cpu, state: Some(1) }),
    ];
    let read = write_of(&header, &events);
    let wanted = [(0, 5.0), (5, 2.5), (10, 12.5), (20, 32.5), (30, 60.0), (31, 32.5), (40, 2.5)];
    assert_eq!(read.doubles("policy0 power"), wanted);
    let unit = read.track("policy0 power").one(8).text(6);
    assert_eq!(unit, "mW");
    assert!(!read.packets.iter().filter_map(|p| p.maybe(60)).any(|t| t.text(2) == "policy2 power"));
}

/// A state for which both CPUs have to be asleep takes its power while both are.
#[test]
fn power_of_a_cluster_falls_with_its_last_cpu() {
    let mut header = header();
    let platform = std::sync::Arc::make_mut(&mut header.machine.platform);
    let opp = Opp::new(KHz(600_000), MicroWatts(10_000), Span(0));
    platform.domains[0].opps = vec![opp];
    let state = |name: &str, uw| {
        risetime_model::platform::IdleState::new(name, Span(0), Span(0), MicroWatts(uw))
    };
    let (wfi, mut cluster) = (state("wfi", 2500), state("cluster", 500));
    cluster.together = Some(risetime_model::platform::Together::Domain);
    platform.domains[0].idle = vec![wfi, cluster];
    assert_eq!(platform.domains[0].cpus.len(), 2);
    let idle = |cpu: u32, state| Event::Idle { cpu: CpuId(cpu), state };
    let events = [
        (5, idle(0, Some(1))),
        (8, idle(1, Some(1))),
        (10, idle(0, None)),
        (20, idle(0, Some(1))),
        (30, Event::Irq { cpu: CpuId(1), enters: true }),
        (31, Event::Irq { cpu: CpuId(1), enters: false }),
    ];
    let read = write_of(&header, &events);
    let wanted = [(0, 5.0), (8, 1.0), (10, 5.0), (20, 1.0), (30, 12.5), (31, 1.0)];
    assert_eq!(read.doubles("policy0 power"), wanted);
}

#[test]
fn jobs_are_slices_that_do_not_overlap_on_a_track() {
    use risetime_model::workload::{JobMark, JobSpec};
    const MS: u64 = 1_000_000;
    let mut header = header();
    let spec = |name: &str, tasks: &[u32]| JobSpec {
        name: name.to_owned(),
        tasks: tasks.to_vec(),
        deadline: None,
        period: None,
    };
    header.asked.as_mut().expect("a run of something").jobs =
        vec![spec("frame", &[0, 1]), spec("tick", &[2])];
    let period = Span(10 * MS);
    let begins = |at: u64, release| {
        let release = Some(Instant(release * MS));
        let mark = JobMark::Begins { release, period: Some(period), counted: false };
        (at * MS, Event::Job { task: TaskId(0), mark })
    };
    let takes = |at: u64| {
        let mark = JobMark::Begins { release: None, period: None, counted: false };
        (at * MS, Event::Job { task: TaskId(1), mark })
    };
    let gives = |at: u64| (at * MS, Event::Job { task: TaskId(0), mark: JobMark::Gives });
    let waits = |at: u64| (at * MS, Event::Job { task: TaskId(1), mark: JobMark::Waits });
    let timer = |at: u64, task: u32, due: u64, release: u64| {
        let (due, release) = (Instant(due * MS), Instant(release * MS));
        let mark = JobMark::Timer { due, release, period, absolute: false, worked: true };
        (at * MS, Event::Job { task: TaskId(task), mark })
    };
    let tick = |at: u64, task: u32| {
        let mark = JobMark::Begins { release: None, period: Some(period), counted: false };
        (at * MS, Event::Job { task: TaskId(task), mark })
    };
    let events = [
        (0, new(TaskId(0), "ui")),
        (0, new(TaskId(1), "render")),
        (0, new(TaskId(2), "timer")),
        begins(0, 0),
        tick(0, 2),
        gives(2),
        takes(3),
        timer(4, 0, 10, 10),
        begins(10, 10),
        gives(12),
        timer(14, 0, 20, 20),
        begins(20, 20),
        gives(22),
        timer(24, 0, 30, 30),
        // Its first took until 25, and it goes on with what there is.
        waits(25),
        takes(25),
        waits(27),
        begins(30, 30),
        // Two periods late, and 20 and 30 are merged.
        timer(45, 2, 10, 45),
        (50 * MS, Event::Job { task: TaskId(2), mark: JobMark::Over { worked: false } }),
    ];
    let read = write_of(&header, &events);
    let told = |s: &reader::Slice| {
        let lateness = s.ms("lateness_ms");
        (s.from / MS, s.to / MS, s.name.clone(), s.outcome(), s.ms("due_ms").unwrap(), lateness)
    };
    let frames: Vec<_> = read.slices("frame").iter().map(told).collect();
    let s = str::to_owned;
    let wanted = [
        (0, 25, s("frame 0"), s("late"), 10.0, Some(15.0)),
        (10, 25, s("frame 1"), s("dropped"), 20.0, None),
        (20, 27, s("frame 2"), s("done"), 30.0, Some(-3.0)),
        (30, 50, s("frame 3"), s("overdue"), 40.0, None),
        // Its period has passed by the end of the run.
        (40, 50, s("frame 4"), s("merged"), 50.0, None),
    ];
    assert_eq!(frames, wanted);
    let ticks: Vec<_> = read.slices("tick").iter().map(told).collect();
    let wanted = [
        (0, 45, s("tick 0"), s("late"), 10.0, Some(35.0)),
        (10, 45, s("tick 1…3"), s("merged"), 20.0, None),
    ];
    assert_eq!(ticks, wanted);
    let tracks = |name| {
        let mut tracks: Vec<_> = read.slices(name).iter().map(|s| s.track).collect();
        tracks.sort_unstable();
        tracks.dedup();
        tracks.len()
    };
    assert_eq!((tracks("frame"), tracks("tick")), (3, 2), "as many as overlap");
    let under = read.packets.iter().filter_map(|p| p.maybe(60)).find(|t| t.text(2) == "frame");
    assert_eq!(under.unwrap().number(5), read.track("ui").number(1));
}
