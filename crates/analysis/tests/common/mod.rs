//! A machine with round figures, and a trace written by hand.
//!
//! | CPU  | capacity | OPP (MHz) | speed | power (mW) |
//! |------|----------|-----------|-------|------------|
//! | 0, 1 | 512      | 500       | 0.25  | 10         |
//! |      |          | 1000      | 0.5   | 40         |
//! | 2, 3 | 1024     | 1000      | 0.5   | 100        |
//! |      |          | 2000      | 1     | 500        |
//!
//! Idle: `wfi` 2 mW, `off` 0 mW. A tick is 1 ms.
#![allow(dead_code)] // each test file uses its own part

use risetime_analysis::*;
use risetime_kernel::units::*;
use risetime_model::platform::{Domain, IdleState, Opp, Platform};
use risetime_trace::{
    Asked, BackendKind, Clock, Event, Header, Image, Limit, MachineInfo, Origin, Run, Signal,
    SwitchOut, TraceSink, Whence, Why,
};
use std::sync::{Arc, Mutex};

pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000_000;
pub(crate) const T: TaskId = TaskId(0);
pub(crate) const U: TaskId = TaskId(1);

fn domain(first: u32, capacity: u64, opps: [(u64, u64); 2]) -> Domain {
    let idle = |name: &str, uw| IdleState::new(name, Span(1000), Span(1000), MicroWatts(uw));
    Domain {
        cpus: vec![CpuId(first), CpuId(first + 1)],
        cluster: first / 2,
        capacity: Capacity(capacity),
        fast_switch: true,
        energy_model: true,
        transition_delay_us: None,
        opps: opps
            .map(|(mhz, mw)| Opp::new(KHz(mhz * 1000), MicroWatts(mw * 1000), Span(10_000)))
            .to_vec(),
        levels: None,
        idle: vec![idle("wfi", 2000), idle("off", 0)],
        work: Vec::new(),
    }
}

pub(crate) fn platform() -> Arc<Platform> {
    Arc::new(Platform {
        name: "round".to_owned(),
        about: String::new(),
        hz: 1000,
        domains: vec![
            domain(0, 512, [(500, 10), (1000, 40)]),
            domain(2, 1024, [(1000, 100), (2000, 500)]),
        ],
        topology: Default::default(),
        sources: Default::default(),
        thermal: Vec::new(),
        doubts: Vec::new(),
    })
}

pub(crate) fn header() -> Header {
    Header {
        run: Run {
            backend: BackendKind::Sim,
            kernel_release: "0".to_owned(),
            clock: Clock::Simulated,
            signals: ["misfit", "freq_request"]
                .map(|name| Signal { name, origin: Origin::Simulated })
                .to_vec(),
            lost: Vec::new(),
        },
        asked: Some(Asked {
            workload: "by hand".to_owned(),
            policy: "none".to_owned(),
            seed: 1,
            ..Asked::default()
        }),
        machine: MachineInfo {
            platform: platform(),
            whence: Whence::Described,
            settings: Default::default(),
        },
        image: Image::default(),
    }
}

/// That head, with these signals in the trace.
pub(crate) fn with_signals(signals: Vec<Signal>) -> Header {
    let mut header = header();
    header.run.signals = signals;
    header
}

/// That head, on this machine.
pub(crate) fn on(platform: Platform) -> Header {
    let mut header = header();
    header.machine.platform = Arc::new(platform);
    header
}

/// What an analysis lists, of all tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listed(pub(crate) Arc<Mutex<AllListed>>);

/// Bursts and migrations, each with its task.
pub(crate) type AllListed = (Vec<(TaskId, Burst)>, Vec<(TaskId, Migration)>);

impl Listed {
    pub(crate) fn bursts(&self, of: TaskId) -> Vec<Burst> {
        self.0.lock().unwrap().0.iter().filter(|(task, _)| *task == of).map(|(_, b)| *b).collect()
    }
    pub(crate) fn migrations(&self, of: TaskId) -> Vec<Migration> {
        self.0.lock().unwrap().1.iter().filter(|(task, _)| *task == of).map(|(_, m)| *m).collect()
    }
}

impl Lists for Listed {
    fn burst(&mut self, task: TaskId, _: &str, burst: &Burst) {
        self.0.lock().unwrap().0.push((task, *burst));
    }
    fn migration(&mut self, task: TaskId, _: &str, migration: &Migration) {
        self.0.lock().unwrap().1.push((task, *migration));
    }
    fn missed(&mut self, _: &str, _: &Missed) {}
}

/// A trace as it is written down: each call is one event at the present time.
pub(crate) struct Trace {
    pub(crate) to: Analyzer<'static>,
    pub(crate) at: u64,
    pub(crate) listed: Listed,
}

impl Trace {
    pub(crate) fn new() -> Trace {
        Trace::with(Options::default())
    }
    pub(crate) fn with(options: Options) -> Trace {
        let listed = Listed::default();
        // For as long as the test: a trace is handed from function to function.
        let lists = Box::leak(Box::new(listed.clone()));
        let mut to = Analyzer::listing(options, Some(lists));
        to.header(&header());
        Trace { to, at: 0, listed }
    }
    pub(crate) fn event(mut self, event: Event) -> Trace {
        self.to.event(Instant(self.at), &event);
        self
    }
    /// From `ns` on.
    pub(crate) fn at(mut self, ns: u64) -> Trace {
        assert!(ns >= self.at, "the test's own times go back");
        self.at = ns;
        self
    }
    pub(crate) fn new_task(self, task: TaskId, cpu: u32, max_speed: u64) -> Trace {
        self.event(Event::TaskNew {
            task,
            comm: "t".into(),
            user: true,
            cpu: CpuId(cpu),
            why: Why::FirstCpu,
            max_speed: Util(max_speed),
        })
    }
    pub(crate) fn wake(self, task: TaskId, cpu: u32) -> Trace {
        self.event(Event::Wakeup { task, cpu: CpuId(cpu), why: Why::PrevCpu })
    }
    /// `cpu` goes from idle to `task`.
    pub(crate) fn run(self, cpu: u32, task: TaskId) -> Trace {
        self.event(Event::Switch { cpu: CpuId(cpu), prev: None, next: Some(task) })
    }
    /// `cpu` goes from `task` to idle.
    pub(crate) fn leave(self, cpu: u32, task: TaskId, how: SwitchOut) -> Trace {
        self.event(Event::Switch { cpu: CpuId(cpu), prev: Some((task, how)), next: None })
    }
    pub(crate) fn sleep(self, cpu: u32, task: TaskId) -> Trace {
        self.leave(cpu, task, SwitchOut::Sleeping)
    }
    pub(crate) fn preempt(self, cpu: u32, task: TaskId) -> Trace {
        self.leave(cpu, task, SwitchOut::Preempted)
    }
    pub(crate) fn freq(self, cpu: u32, mhz: u64) -> Trace {
        self.event(Event::Freq { cpu: CpuId(cpu), freq: KHz(mhz * 1000) })
    }
    pub(crate) fn request(self, cpu: u32, mhz: u64, why: Why) -> Trace {
        self.event(Event::FreqRequest {
            cpu: CpuId(cpu),
            util: Util(1),
            freq: KHz(mhz * 1000),
            why,
        })
    }
    /// The rate limit refuses `util`, and `mhz` stays wanted.
    pub(crate) fn refused(self, cpu: u32, util: u64, mhz: u64) -> Trace {
        self.event(Event::FreqRequest {
            cpu: CpuId(cpu),
            util: Util(util),
            freq: KHz(mhz * 1000),
            why: Why::RateLimited,
        })
    }
    /// Cooling leaves `mhz` to `cpu`'s domain.
    pub(crate) fn cooling(self, cpu: u32, mhz: u64) -> Trace {
        let (cpu, max) = (CpuId(cpu), KHz(mhz * 1000));
        let limits = Event::CpuFrequencyLimits { cpu, min: KHz(0), max };
        let capped = self.capped(cpu.0, Limit::Heat, mhz);
        capped.event(limits).event(Event::Cooling { cpu, max, zone: 0 })
    }
    pub(crate) fn capped(self, cpu: u32, by: Limit, mhz: u64) -> Trace {
        self.event(Event::Capped { cpu: CpuId(cpu), by, max: Some(KHz(mhz * 1000)) })
    }
    pub(crate) fn misfit(self, cpu: u32, task: Option<TaskId>) -> Trace {
        self.event(Event::Misfit { cpu: CpuId(cpu), task })
    }
    pub(crate) fn migrate(self, task: TaskId, from: u32, to: u32, why: Why) -> Trace {
        self.event(Event::Migrate { task, from: CpuId(from), to: CpuId(to), why })
    }
    pub(crate) fn util(self, task: TaskId, util: u64) -> Trace {
        self.event(Event::PeltTask {
            task,
            cpu: CpuId(0),
            util_avg: Util(util),
            runnable_avg: Util(util),
            util_sum: 0,
            period_contrib: 0,
            last_update_time: ClockPelt(0),
        })
    }
    pub(crate) fn idle(self, cpu: u32, state: Option<u32>) -> Trace {
        self.event(Event::Idle { cpu: CpuId(cpu), state })
    }
    pub(crate) fn end(mut self) -> RunResult {
        self.to.end(Instant(self.at));
        self.to.finish().0
    }
    pub(crate) fn end_with_timeline(mut self) -> (RunResult, Option<Timeline>) {
        self.to.end(Instant(self.at));
        self.to.finish()
    }
}

/// Equal to a nanosecond.
#[track_caller]
pub(crate) fn close(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-6, "found {found}, wanted {wanted}");
}

/// The first task and its burst.
#[track_caller]
pub(crate) fn first(r: &RunResult) -> (&TaskResult, Burst) {
    (&r.tasks[0], r.tasks[0].burst.expect("a task always has a burst"))
}

pub(crate) fn lost(t: &TaskResult) -> Vec<(&str, f64)> {
    t.lost.iter().map(|l| (l.state, (l.ms * 1e6).round() / 1e6)).collect()
}

pub(crate) fn running(t: &TaskResult) -> Vec<(u32, u64, f64)> {
    t.spent.running.iter().map(|r| (r.cpu.0, r.freq.0 / 1000, r.ms)).collect()
}

#[track_caller]
pub(crate) fn after(t: &TaskResult, what: Level) -> Option<f64> {
    t.reach
        .iter()
        .find(|r| r.what == what)
        .unwrap_or_else(|| panic!("{what:?} not listed"))
        .after_ms
}

pub(crate) fn freq_level(cpu: u32, mhz: u64) -> Level {
    Level::Freq { cpu: CpuId(cpu), freq: KHz(mhz * 1000) }
}
