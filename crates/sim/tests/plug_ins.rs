//! Plug-ins that are in no registry, by the public interface alone: a placement with a setting and a reason of its own, a governor
//! with a timer of its own that goes by idle time, and a tracker of busy time in windows, which schedutil, EAS and misfit follow.

use risetime_kernel::cpuidle::{IdleState, Selected, Sleep};
use risetime_kernel::units::{CpuId, Instant, KHz, Span, TaskId, Util};
use risetime_model::settings::{Default, Group, Home, Int, Neutral, Param, Range, Value};
use risetime_model::{Experiment, Platform, Policy, Workload};
use risetime_sim::cpuidle::{self, IdleGovernor};
use risetime_sim::governor::{self, DomainView, Effects, FreqRequest, Governor, Timer, Works};
use risetime_sim::hooks::{Answer, Hooks, Placed, Point};
use risetime_sim::placement::{self, Placement, PlacementView, Waker};
use risetime_sim::tracker::{self, Heard, Tracker};
use risetime_sim::{Custom, Machine};
use risetime_trace::{Backend, Event, Memory, Why};
use std::sync::Arc;

fn run(custom: Custom, platform: &Platform, workload: &str, policy: &str, ms: u64) -> Memory {
    let policy = Policy::from_arg(policy).expect("a policy");
    let settings = custom.catalogue().resolve(platform, &policy).expect("settings");
    let workload = Workload::parse(workload, "plug_ins.json").expect("a workload");
    let e = Experiment {
        platform: Arc::new(platform.clone()),
        workload: Arc::new(workload),
        policy,
        settings,
        duration: Span::from_ms(ms),
        phase: Span(0),
        seed: 1,
    };
    let mut memory = Memory::new();
    custom.run(&e, &mut memory).expect("a run");
    memory
}

/// One CPU of four OPPs (1, 2, 3, 4 GHz) that changes at once and leaves idle at once.
fn one_cpu() -> Platform {
    let mut platform = Platform::load("hikey620").expect("built in");
    platform.domains[0].cpus.truncate(1);
    let d = &mut platform.domains[0];
    d.idle.clear();
    d.opps.truncate(4);
    for (opp, khz) in d.opps.iter_mut().zip([1_000_000, 2_000_000, 3_000_000, 4_000_000]) {
        (opp.freq, opp.latency) = (KHz(khz), Span(0));
    }
    d.fast_switch = true;
    platform
}

/// Returns when the frequency changed, and to how many GHz.
fn freqs(trace: &Memory) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = Vec::new();
    for (at, event) in trace.events() {
        if let Event::Freq { freq, .. } = event
            && all.last().is_none_or(|(_, last)| *last != freq.0 / 1_000_000)
        {
            all.push((at.0 / 1_000_000, freq.0 / 1_000_000));
        }
    }
    all
}

// ---------------------------------------------------------------------- a placement by room

/// Where most capacity is to spare, but for CPUs with less than `least_spare`, in turns among equals; with a reason of
/// its own.
struct Roomiest {
    least: u64,
    why: Why,
}

const LEAST_SPARE: Int = Int::new(Param {
    name: "least_spare",
    doc: "capacity that a CPU has to have to spare",
    unit: "of 1024",
    range: Range::Int(0, 1024),
    default: Default::Derived("a quarter of the biggest CPU", |platform, _| {
        platform.domains.iter().map(|d| (d.capacity.0 / 4) as i64).max().map(Value::Int)
    }),
    home: Home::Simulator(Neutral::None),
});

impl Roomiest {
    fn choose(&self, view: &PlacementView<'_>, task: TaskId) -> Placed {
        let spare = |cpu: &CpuId| view.spare(*cpu, task).0;
        let roomy = view.allowed(task).filter(|cpu| spare(cpu) >= self.least);
        let most = roomy.max_by_key(|cpu| (spare(cpu), std::cmp::Reverse(*cpu)));
        match most {
            Some(cpu) => Placed { cpu, why: self.why },
            None => Placed { cpu: view.prev_cpu(task), why: Why::PrevCpu },
        }
    }
}

impl Placement for Roomiest {
    fn wake(&mut self, v: &PlacementView<'_>, task: TaskId, _: Waker, _: &mut Effects) -> Placed {
        self.choose(v, task)
    }
    fn fork(&mut self, view: &PlacementView<'_>, task: TaskId) -> Placed {
        self.choose(view, task)
    }
}

static ROOMIEST: placement::Descriptor = placement::Descriptor {
    name: "roomiest",
    doc: "the CPU with most capacity to spare",
    settings: Group::of(&[LEAST_SPARE.0]),
    make: |_, settings| {
        let least = settings.get(&LEAST_SPARE).unwrap_or(0).max(0) as u64;
        Box::new(Roomiest { least, why: Why::other("roomiest_cpu") })
    },
};

/// Names CPU 0 whatever the affinity says.
struct Wrong;

impl Placement for Wrong {
    fn wake(&mut self, _: &PlacementView<'_>, _: TaskId, _: Waker, _: &mut Effects) -> Placed {
        Placed { cpu: CpuId(0), why: Why::other("wrong") }
    }
    fn fork(&mut self, _: &PlacementView<'_>, _: TaskId) -> Placed {
        Placed { cpu: CpuId(0), why: Why::other("wrong") }
    }
}

static WRONG: placement::Descriptor = placement::Descriptor {
    name: "wrong",
    doc: "CPU 0",
    settings: Group::of(&[]),
    make: |_, _| Box::new(Wrong),
};

/// Returns CPU and reason of each wakeup of the task called "t".
fn wakeups(trace: &Memory) -> Vec<(u32, &'static str)> {
    let of = |(_, event): &(Instant, Event)| match event {
        Event::Wakeup { task: TaskId(0), cpu, why } => Some((cpu.0, why.as_str())),
        _ => None,
    };
    trace.events().iter().filter_map(of).collect()
}

const SLEEPER: &str = r#"{"tasks": {"t": {"loop": 5, "runtime": 2000, "sleep": 10000}}}"#;

#[test]
fn a_placement_has_a_setting_and_a_reason_of_its_own() {
    let m1 = Platform::load("m1").expect("built in");
    let custom = Custom { placement: Some(&ROOMIEST), ..Custom::default() };
    let by_room = wakeups(&run(custom, &m1, SLEEPER, "linux-6.12", 100));
    assert!(by_room.len() >= 5 && by_room.iter().all(|w| *w == (4, "roomiest_cpu")), "{by_room:?}");
    // No CPU has so much with what others take of each.
    let full = "linux-6.12+least_spare=1024+background_util=10";
    let nowhere = wakeups(&run(custom, &m1, SLEEPER, full, 100));
    assert!(nowhere.iter().all(|(_, why)| *why == "prev_cpu"), "{nowhere:?}");
    let policy = Policy::from_arg("linux-6.12+least_spare=1025").expect("a policy");
    let refused = custom.catalogue().resolve(&m1, &policy).expect_err("out of range");
    assert!(refused.to_string().contains("from 0 to 1024"), "{refused}");
    assert!(risetime_sim::resolve(&m1, &policy).is_err(), "nobody else knows it");
}

#[test]
fn a_placement_cannot_break_affinity() {
    let m1 = Platform::load("m1").expect("built in");
    let custom = Custom { placement: Some(&WRONG), ..Custom::default() };
    let bound = SLEEPER.replace("\"loop\"", "\"cpus\": [2, 3], \"loop\"");
    let trace = wakeups(&run(custom, &m1, &bound, "linux-6.12", 100));
    assert!(trace.len() >= 5 && trace.iter().all(|(cpu, _)| [2, 3].contains(cpu)), "{trace:?}");
}

// ---------------------------------------------------------------------- a governor by idle time

/// Every 20 ms: above `up_threshold` percent of busy time the highest frequency, else the lowest that is at least
/// that share of it.
struct Sampling {
    deferrable: bool,
    by_kthread: bool,
    last: (Instant, Span),
}

const PERIOD: Span = Span::from_ms(20);
const UP_THRESHOLD: u64 = 80;

impl Sampling {
    fn again(&self, now: Instant, effects: &mut Effects) {
        effects.set_timer(Timer { at: now + PERIOD, deferrable: self.deferrable });
    }

    fn sample(&mut self, domain: &DomainView<'_>) -> FreqRequest {
        let (now, idle) = (domain.now(), domain.idle_time(domain.cpus()[0]));
        let (wall, slept) = (now.since(self.last.0).0, idle.0 - self.last.1.0);
        self.last = (now, idle);
        // Counted by whole ticks, more may be idle than has passed.
        let load = 100 * wall.saturating_sub(slept) / wall.max(1);
        let max = domain.freq_max();
        let wanted = if load > UP_THRESHOLD { max } else { KHz(max.0 * load / 100) };
        FreqRequest { util: Util(load), freq: domain.resolve_freq(wanted), why: Why::Util }
    }
}

impl Governor for Sampling {
    fn start(&mut self, domain: &DomainView<'_>, effects: &mut Effects) -> Option<FreqRequest> {
        self.again(domain.now(), effects);
        None
    }
    fn timer(
        &mut self,
        domain: &DomainView<'_>,
        _: CpuId,
        effects: &mut Effects,
    ) -> Option<FreqRequest> {
        self.again(domain.now(), effects);
        if self.by_kthread {
            effects.defer_work();
            return None;
        }
        Some(self.sample(domain))
    }
    fn work(&mut self, domain: &DomainView<'_>, _: &mut Effects) -> Option<FreqRequest> {
        Some(self.sample(domain))
    }
}

const fn sampling(
    works: Works,
    make: fn(&Platform, usize, &risetime_model::settings::Settings) -> Box<dyn Governor>,
) -> governor::Descriptor {
    governor::Descriptor {
        name: "sampling",
        doc: "by idle time",
        settings: Group::of(&[]),
        rate_limit: None,
        works,
        make,
    }
}

static EXACT: governor::Descriptor = sampling(Works::WhereSlow, |_, _, _| {
    Box::new(Sampling {
        deferrable: false,
        by_kthread: false,
        last: std::default::Default::default(),
    })
});
static DEFERRABLE: governor::Descriptor = sampling(Works::WhereSlow, |_, _, _| {
    Box::new(Sampling {
        deferrable: true,
        by_kthread: false,
        last: std::default::Default::default(),
    })
});
static BY_KTHREAD: governor::Descriptor = sampling(Works::Sugov, |_, _, _| {
    Box::new(Sampling {
        deferrable: false,
        by_kthread: true,
        last: std::default::Default::default(),
    })
});

/// Busy from 0 to 50, 80 to 90, 120 to 136, 160 to 177 ms, then never again.
const BUSY: &str = r#"{"tasks": {"t": {
    "loop": 1,
    "phases": {
        "a": {"runtime": 49900, "sleep": 30100},
        "b": {"runtime": 9950, "sleep": 30000},
        "c": {"runtime": 15900, "sleep": 24000},
        "d": {"runtime": 16900}}}}}"#;

#[test]
fn a_governor_samples_idle_time_by_a_timer_of_its_own() {
    let custom = Custom { governor: Some(&EXACT), ..Custom::default() };
    // Of a kernel that measures idle time; 7.2 counts it by ticks.
    let trace = run(custom, &one_cpu(), BUSY, "linux-6.12", 300);
    // at        20   40   60   80  100  120  140  160  180  200
    // busy, %  100  100   50    0   50    0   80    0   85    0
    // GHz        4    4    2    1    2    1    4    1    4    1      (80 % is 3.2 GHz: the next is 4)
    let wanted = [
        (0, 1),
        (20, 4),
        (60, 2),
        (80, 1),
        (100, 2),
        (120, 1),
        (140, 4),
        (160, 1),
        (180, 4),
        (200, 1),
    ];
    assert_eq!(freqs(&trace), wanted);
}

#[test]
fn a_deferrable_timer_wakes_no_idle_cpu() {
    let custom = Custom { governor: Some(&DEFERRABLE), ..Custom::default() };
    let trace = run(custom, &one_cpu(), BUSY, "mainline", 300);
    // Due at 20, 40, 60, 100, 140, 180, 200. Asleep from 50, 90, 136 and 177 ms on, each time without a tick from the
    // second one on: what is due at 60, 100 and 140 expires when the task wakes, at 80, 120 and just before 160; what
    // is due at 180 by the tick of that moment, the first since the task has gone; that of 200 never.
    //   at        20   40   80  120  160  180
    //   since     0   20   40   80  120  160
    //   busy     20   20   10   10   16   17 ms
    //   GHz       4    4    1    1    2    4
    let wanted = [(0, 1), (20, 4), (80, 1), (159, 2), (180, 4)];
    assert_eq!(freqs(&trace), wanted);
    // Nothing happens on the CPU once it sleeps for ever.
    let last = trace.events().last().expect("events").0;
    assert!(last < Instant(200_000_000), "{last}");
}

#[test]
fn a_governor_defers_its_work_to_a_kthread() {
    let custom = Custom { governor: Some(&BY_KTHREAD), ..Custom::default() };
    for fast_switch in [true, false] {
        let mut platform = one_cpu();
        platform.domains[0].fast_switch = fast_switch;
        let trace = run(custom, &platform, BUSY, "linux-6.12+sugov_work_ns=100000", 300);
        // A window ends with the kthread's own time (100 µs at full speed) and begins after the last one's: the
        // shares of a timer that samples itself, to the percent.
        let wanted = [
            (0, 1),
            (20, 4),
            (60, 2),
            (80, 1),
            (100, 2),
            (120, 1),
            (140, 4),
            (160, 1),
            (180, 4),
            (200, 1),
        ];
        assert_eq!(freqs(&trace), wanted, "fast_switch {fast_switch}");
        let kthread = |e: &Event| matches!(e, Event::Wakeup { task: TaskId(1), .. });
        assert!(trace.events().iter().filter(|(_, e)| kthread(e)).count() >= 10);
    }
}

// ---------------------------------------------------------------------- a tracker of windows

/// Busy time of the last whole window of 10 ms, of 1024; no invariance.
struct Windows {
    now: Instant,
    tasks: Vec<Busy>,
}

#[derive(Clone, Copy, Default)]
struct Busy {
    cpu: CpuId,
    queued: bool,
    running: bool,
    since: Instant,
    /// In the window under way, and in the one before.
    curr: u64,
    prev: u64,
}

const WINDOW: u64 = 10_000_000;

impl Windows {
    fn of(&mut self, task: TaskId) -> &mut Busy {
        if self.tasks.len() <= task.index() {
            self.tasks.resize(task.index() + 1, Busy::default());
        }
        &mut self.tasks[task.index()]
    }
    fn util(&self, task: TaskId) -> Util {
        Util(self.tasks.get(task.index()).map_or(0, |t| t.prev * 1024 / WINDOW))
    }
}

impl Busy {
    /// Books time up to `now`, a window at a time.
    fn roll(&mut self, now: Instant) {
        while self.since.0 / WINDOW < now.0 / WINDOW {
            let end = (self.since.0 / WINDOW + 1) * WINDOW;
            self.curr += if self.running { end - self.since.0 } else { 0 };
            (self.prev, self.curr, self.since) = (self.curr, 0, Instant(end));
        }
        self.curr += if self.running { now.0 - self.since.0 } else { 0 };
        self.since = now;
    }
}

impl Tracker for Windows {
    fn hears(&mut self, now: Instant, heard: Heard) {
        self.now = now;
        self.tasks.iter_mut().for_each(|t| t.roll(now));
        match heard {
            Heard::Enqueue { cpu, task, .. } => {
                let t = self.of(task);
                (t.cpu, t.queued, t.since) = (cpu, true, now);
            }
            Heard::Dequeue { task, .. } => self.of(task).queued = false,
            Heard::Switch { prev, next, .. } => {
                [(prev, false), (next, true)]
                    .into_iter()
                    .filter_map(|(task, on)| Some((task?, on)))
                    .for_each(|(task, on)| {
                        let t = self.of(task);
                        (t.running, t.since) = (on, now);
                    });
            }
            Heard::Migrate { task, to, .. } => self.of(task).cpu = to,
            Heard::Wakeup { .. } | Heard::Tick { .. } | Heard::Frequency { .. } => {}
        }
    }
    fn task_util(&self, task: TaskId) -> Util {
        self.util(task)
    }
    fn task_util_est(&self, task: TaskId) -> Util {
        self.util(task)
    }
    fn cpu_util(&self, cpu: CpuId) -> Util {
        let on = self.tasks.iter().filter(|t| t.cpu == cpu && t.queued);
        Util(on.map(|t| t.prev * 1024 / WINDOW).sum())
    }
    fn cpu_util_without(&self, cpu: CpuId, task: TaskId) -> Util {
        let here = self.tasks.get(task.index()).is_some_and(|t| t.cpu == cpu && t.queued);
        let own = if here { self.util(task) } else { Util(0) };
        Util(self.cpu_util(cpu).0 - own.0)
    }
}

/// Tracker that never sees any task do anything.
struct Blind;

impl Tracker for Blind {
    fn hears(&mut self, _: Instant, _: Heard) {}
    fn task_util(&self, _: TaskId) -> Util {
        Util(0)
    }
    fn task_util_est(&self, _: TaskId) -> Util {
        Util(0)
    }
    fn cpu_util(&self, _: CpuId) -> Util {
        Util(0)
    }
    fn cpu_util_without(&self, _: CpuId, _: TaskId) -> Util {
        Util(0)
    }
}

static WINDOWS: tracker::Descriptor = tracker::Descriptor {
    name: "windows",
    doc: "busy time of the last window",
    settings: Group::of(&[]),
    make: |_, _| Some(Box::new(Windows { now: Instant(0), tasks: Vec::new() })),
};
static BLIND: tracker::Descriptor = tracker::Descriptor {
    name: "blind",
    doc: "sees nobody do anything",
    settings: Group::of(&[]),
    make: |_, _| Some(Box::new(Blind)),
};

fn tracked(by: &'static tracker::Descriptor) -> Custom {
    Custom { tracker: Some(by), ..Custom::default() }
}

#[test]
fn schedutil_follows_a_tracker_of_windows() {
    // Of each 10 ms 4 are busy, at any speed: util 409, with headroom 511, of 4 GHz 1.996: 2 GHz, from
    // the first wakeup after a whole window on. Then 10 of 10: all of it.
    let workload = r#"{"tasks": {"t": {"phases": {
        "part": {"loop": 10, "runtime": 3900, "timer": {"ref": "unique", "period": 10000}},
        "all": {"loop": 1, "runtime": 60000}}}}}"#;
    let trace = run(tracked(&WINDOWS), &one_cpu(), workload, "mainline", 150);
    let found = freqs(&trace);
    // 12 ms: the tick (4 ms) after the window's end at 110, when the window from 100 on is whole.
    assert_eq!(found, [(0, 1), (10, 2), (112, 4)]);
    // PELT sees another util, and later.
    let pelt = run(Custom::default(), &one_cpu(), workload, "mainline", 150);
    assert_ne!(freqs(&pelt), found);
}

/// CPU and reason of each placement of the first task.
fn places(trace: &Memory) -> Vec<(u64, CpuId, Why)> {
    let of = |(at, event): &(Instant, Event)| match *event {
        Event::Wakeup { task: TaskId(0), cpu, why } => Some((at.0 / 1_000_000, cpu, why)),
        Event::Migrate { task: TaskId(0), to, why, .. } => Some((at.0 / 1_000_000, to, why)),
        _ => None,
    };
    trace.events().iter().filter_map(of).collect()
}

#[test]
fn misfit_follows_a_tracker() {
    let m1 = Platform::load("m1").expect("built in");
    let busy = r#"{"tasks": {"t": {"runtime": 300000}}}"#;
    let first = |by| places(&run(tracked(by), &m1, busy, "mainline", 200)).first().copied();
    // One window of all its time is enough; the pull then comes by the tick.
    let (at, cpu, why) = first(&WINDOWS).expect("it moves");
    assert!((10..=20).contains(&at) && cpu.0 >= 4 && why == Why::Misfit, "{at} ms: {cpu} {why:?}");
    assert_eq!(first(&BLIND), None, "nobody knows that it needs more");
}

#[test]
fn eas_follows_a_tracker() {
    let m1 = Platform::load("m1").expect("built in");
    // On the big CPU 4 for 50 ms, then free: it wakes every 10 ms, 9 of them busy.
    let workload = r#"{"tasks": {"t": {"phases": {
        "there": {"cpus": [4], "loop": 1, "runtime": 49000, "sleep": 1000},
        "free": {"cpus": [0, 1, 2, 3, 4, 5, 6, 7], "loop": 20, "runtime": 9000, "timer": {"ref": "unique", "period": 10000}}}}}}"#;
    let last = |by| places(&run(tracked(by), &m1, workload, "mainline", 200)).last().copied();
    let (_, cpu, _) = last(&WINDOWS).expect("it wakes");
    assert!(cpu.0 >= 4, "util 921 fits no little CPU: {cpu}");
    let (_, cpu, why) = last(&BLIND).expect("it wakes");
    assert!(cpu.0 == 4 && why == Why::PrevCpu, "of a task of util 0 nobody asks: {cpu} {why:?}");
}

// ---------------------------------------------------------------------- an idle governor

/// Never deeper than the first state, and the tick goes on.
struct Shallow;

impl IdleGovernor for Shallow {
    fn select(&mut self, _: &[IdleState], sleep: Sleep) -> Selected {
        Selected { state: 0, stop_tick: sleep.tick_stopped }
    }
    fn update(&mut self, _: &[IdleState], _: usize, _: Span, _: bool, _: Span) {}
}

static SHALLOW: cpuidle::Descriptor =
    cpuidle::Descriptor { name: "shallow", doc: "the first state", make: |_| Box::new(Shallow) };

#[test]
fn an_idle_governor_chooses_states() {
    let laptop = Platform::load("laptop4").expect("built in");
    let workload = r#"{"tasks": {"t": {"loop": -1, "runtime": 1000, "sleep": 30000}}}"#;
    let deepest = |custom| {
        let trace = run(custom, &laptop, workload, "mainline", 200);
        let state = |e: &Event| match e {
            Event::Idle { state, .. } => *state,
            _ => None,
        };
        trace.events().iter().filter_map(|(_, e)| state(e)).max()
    };
    let custom = Custom { idle_governor: Some(&SHALLOW), ..Custom::default() };
    assert_eq!(deepest(custom), Some(0));
    assert!(deepest(Custom::default()) > Some(0));
}

// ---------------------------------------------------------------------- hooks

/// Sees that all wakeups go to CPU 2.
struct ToCpu2;

impl Hooks for ToCpu2 {
    fn decided(&self, m: &Machine, point: Point, own: Answer) -> Answer {
        match point {
            Point::WakeupFair { task, .. } => {
                assert_eq!(m.comm(task), "t");
                Answer::Cpu(Placed { cpu: CpuId(2), why: Why::Given })
            }
            _ => own,
        }
    }
}

#[test]
fn a_hook_hears_a_decision_and_changes_it() {
    let m1 = Platform::load("m1").expect("built in");
    let workload = r#"{"tasks": {"t": {"loop": -1, "runtime": 1000, "sleep": 3000}}}"#;
    let custom = Custom { hooks: Some(|| Box::new(ToCpu2)), ..Custom::default() };
    let trace = run(custom, &m1, workload, "mainline", 100);
    let wakeups = places(&trace);
    assert!(wakeups.len() >= 20 && wakeups.iter().all(|(_, cpu, _)| *cpu == CpuId(2)));
}
