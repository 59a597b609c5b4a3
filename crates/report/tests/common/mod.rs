//! Made-up but plausible results, so that reports can be looked at without a simulator: a
//! task that becomes busy on a machine with the M1's operating points, util by the
//! half-life of 32 ms, one decision a millisecond. Not a reference for any figure.
#![allow(dead_code)]

use risetime_analysis::metric::{Metric, Unit};
use risetime_analysis::*;
use risetime_kernel::sched_qos::{SchedQosHint, SchedQosType};
use risetime_kernel::units::*;
use risetime_model::platform::{Domain, IdleState, Opp};
use risetime_model::workload::{
    Attr, Event, Objects, Phase, Policy as SchedPolicy, Repeat, Stage, StartAt, TaskGroup,
    TaskSpec, Timer,
};
use risetime_model::{Platform, Settings, Value, Workload};
use risetime_report::Told;
use risetime_report::text::{Finding, Next, Published, Severity};
use risetime_trace::BackendKind;

/// (MHz, µW) of the little CPUs.
pub(crate) const LITTLE: [(u64, u64); 5] =
    [(600, 47296), (972, 99715), (1332, 188860), (1704, 288891), (2064, 412979)];
/// (MHz, µW) of the big CPUs.
pub(crate) const BIG: [(u64, u64); 9] = [
    (600, 290230),
    (1056, 647097),
    (1500, 1112838),
    (1956, 1776667),
    (2184, 2366690),
    (2388, 2892193),
    (2592, 3475417),
    (2988, 4540620),
    (3204, 4951324),
];
const T0: f64 = 1000.2;

/// How the made-up machine decides.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) policy: &'static str,
    pub(crate) rate_limit_ms: f64,
    /// Full speed on a big CPU from the start.
    pub(crate) fast: bool,
    pub(crate) phase: Span,
    /// Length of the busy phase in ms.
    pub(crate) busy_ms: usize,
}

/// The mailing list's default.
pub(crate) const DEFAULT: Kind =
    Kind { policy: "linux-6.8", rate_limit_ms: 10.0, fast: false, phase: Span(0), busy_ms: 1999 };
/// Fast from the start.
pub(crate) const FAST: Kind = Kind { policy: "performance", fast: true, ..DEFAULT };

/// A run of `rampup`.
pub(crate) fn rampup(kind: Kind) -> (RunResult, Timeline) {
    let mut line = Timeline::default();
    let mut m = Machine::new(kind);
    for ms in 0..kind.busy_ms {
        m.step(ms as f64, &mut line);
    }
    line.util.push((T0 + kind.busy_ms as f64, m.util as u64));
    line.cpu.push((T0 + kind.busy_ms as f64, line.cpu.last().and_then(|c| c.1)));
    line.freq = [(CpuId(0), m.freq_log[0].clone()), (CpuId(4), m.freq_log[1].clone())].to_vec();
    (m.result(), line)
}

struct Machine {
    kind: Kind,
    util: f64,
    big: bool,
    opp: usize,
    changed: f64,
    lost: Vec<(&'static str, f64)>,
    t1: Option<f64>,
    debt: f64,
    energy: f64,
    reach: Vec<Reach>,
    running: Vec<RunningAt>,
    residency: Vec<UtilResidency>,
    migrations: Vec<Migration>,
    freq_log: [Vec<(f64, KHz)>; 2],
    shown: u64,
    pelt: f64,
}

impl Machine {
    fn new(kind: Kind) -> Machine {
        let mut reach: Vec<Reach> =
            [450, 1000].map(|u| Reach { what: Level::Util(u), after_ms: None }).to_vec();
        for (cpu, opps) in [(0, &LITTLE[..]), (4, &BIG[..])] {
            reach.extend(opps.iter().map(|o| Reach {
                what: Level::Freq { cpu: CpuId(cpu), freq: KHz(o.0 * 1000) },
                after_ms: None,
            }));
        }
        reach.push(Reach { what: Level::Capacity(1024), after_ms: None });
        let first = |opps: &[(u64, u64)]| vec![(T0, KHz(opps[0].0 * 1000))];
        Machine {
            kind,
            util: 0.0,
            big: kind.fast,
            opp: if kind.fast { BIG.len() - 1 } else { 0 },
            changed: -100.0,
            lost: vec![],
            t1: None,
            debt: 0.0,
            energy: 0.0,
            reach,
            running: vec![],
            residency: vec![],
            migrations: vec![],
            freq_log: [first(&LITTLE), first(&BIG)],
            shown: 0,
            pelt: 0.0,
        }
    }

    fn opps(&self) -> &'static [(u64, u64)] {
        if self.big { &BIG } else { &LITTLE }
    }

    fn speed(&self) -> f64 {
        let top = self.opps().last().unwrap().0 as f64;
        let capacity = if self.big { 1024.0 } else { 459.0 };
        capacity / 1024.0 * self.opps()[self.opp].0 as f64 / top
    }

    fn step(&mut self, now: f64, line: &mut Timeline) {
        let state = self.decide(now);
        let (cpu, s) = (CpuId(if self.big { 4 } else { 0 }), self.speed());
        let freq = KHz(self.opps()[self.opp].0 * 1000);
        let log = &mut self.freq_log[usize::from(self.big)];
        if log.last().map(|l| l.1) != Some(freq) {
            log.push((T0 + now, freq));
        }
        if line.cpu.last().map(|c| c.1) != Some(Some(cpu)) {
            line.cpu.push((T0 + now, Some(cpu)));
        }
        if line.speed.last().map(|p| p.1) != Some(s * 1024.0) {
            line.speed.push((T0 + now, s * 1024.0));
        }
        if self.t1.is_none() && s >= 0.99 {
            self.t1 = Some(now);
        }
        if self.t1.is_none() {
            self.debt += 1.0 - s;
            match self.lost.iter_mut().find(|l| l.0 == state) {
                Some(l) => l.1 += 1.0 - s,
                None => self.lost.push((state, 1.0 - s)),
            }
        }
        self.account(now, cpu, freq);
        self.pelt += s;
        if self.pelt >= 1.0 || now == 0.0 {
            let y = 0.5f64.powf(self.pelt / 32.0);
            self.util = self.util * y + 1023.5 * (1.0 - y);
            self.pelt = 0.0;
            self.shown = self.util as u64;
        }
        line.util.push((T0 + now, self.shown));
    }

    fn decide(&mut self, now: f64) -> &'static str {
        if self.kind.fast {
            return "opp_climb";
        }
        let capacity = if self.big { 1024.0 } else { 459.0 };
        let want = 1.25 * self.util / capacity * self.opps().last().unwrap().0 as f64;
        let wanted =
            self.opps().iter().position(|o| o.0 as f64 >= want).unwrap_or(self.opps().len() - 1);
        let limited = wanted != self.opp && now - self.changed < self.kind.rate_limit_ms;
        if wanted > self.opp && !limited {
            self.opp = wanted;
            self.changed = now;
        }
        if !self.big && self.util > 0.8 * 459.0 + 13.0 {
            self.big = true;
            self.opp = 2;
            let (from, to) = (CpuId(0), CpuId(4));
            self.migrations.push(Migration { at_ms: now, from, to, why: "misfit" });
        }
        match () {
            _ if limited => "rate_limited",
            _ if !self.big && self.opp == 0 => "lowest_opp",
            _ if !self.big && self.util > 0.8 * 459.0 => "waiting_for_misfit",
            _ => "opp_climb",
        }
    }

    fn account(&mut self, now: f64, cpu: CpuId, freq: KHz) {
        self.energy += self.opps()[self.opp].1 as f64 / 1e6;
        match self.running.iter_mut().find(|r| (r.cpu, r.freq) == (cpu, freq)) {
            Some(r) => r.ms += 1.0,
            None => self.running.push(RunningAt { cpu, freq, ms: 1.0 }),
        }
        match self.residency.iter_mut().find(|u| u.util == self.shown) {
            Some(u) => u.ms += 1.0,
            None => self.residency.push(UtilResidency { util: self.shown, ms: 1.0 }),
        }
        let (big, shown) = (self.big, self.shown);
        for r in self.reach.iter_mut().filter(|r| r.after_ms.is_none()) {
            let there = match r.what {
                Level::Util(u) => shown >= u,
                Level::Capacity(c) => c <= 459 || big,
                Level::Freq { cpu: c, freq: f } => c == cpu && f <= freq,
            };
            if there {
                r.after_ms = Some(now);
            }
        }
    }

    fn result(mut self) -> RunResult {
        let end = T0 + self.kind.busy_ms as f64;
        self.lost.sort_by(|a, b| b.1.total_cmp(&a.1));
        let burst = Burst {
            t0_ms: T0,
            t1_ms: self.t1.map_or(end, |t| T0 + t),
            end_ms: end,
            ended_by: if self.t1.is_some() { EndedBy::FullSpeed } else { EndedBy::RunEnd },
            running_ms: self.kind.busy_ms as f64,
            took_ms: self.kind.busy_ms as f64,
            longer_ms: self.debt + 1.5,
            debt_ms: self.debt,
            debt_capped_ms: self.debt,
            debt_affinity_ms: 0.0,
        };
        let mut settings = Settings::default();
        settings.insert("governor", Value::Name("schedutil".into()));
        let limit = (self.kind.rate_limit_ms * 1000.0) as i64;
        settings.insert("rate_limit_us", Value::Int(limit));
        let cpus = (0..8).map(|c| self.cpu(c)).collect();
        let n = self.migrations.len() as u64;
        let moved = Moves { from: 459, to: 1024, why: "misfit", n };
        let moved: Vec<Moves> = (n > 0).then_some(moved).into_iter().collect();
        RunResult {
            known: Default::default(),
            cautions: Vec::new(),
            policy: self.kind.policy.into(),
            backend: BackendKind::Sim,
            platform: "m1".into(),
            workload: "rampup".into(),
            kernel_release: "6.8".into(),
            seed: 1,
            phase: self.kind.phase,
            settings,
            end_ms: end,
            lead: 0,
            tasks: vec![TaskResult {
                task: TaskId(0),
                comm: "rampup".into(),
                endless: true,
                policies: vec![],
                bursts: 101,
                burst: Some(burst),
                reach: self.reach,
                perf_10_90_ms: self.t1.map(|t| t * 0.69),
                spent: Spent {
                    running_ms: self.kind.busy_ms as f64,
                    energy_mj: Some(self.energy),
                    running: self.running.clone(),
                    migrations: moved.clone(),
                    ..Spent::default()
                },
                whole: Spent {
                    running_ms: self.kind.busy_ms as f64 + 100.0,
                    wait_ms: 0.0,
                    work_ms: 1900.5,
                    longer_ms: self.debt + 2.5,
                    longer: vec![Lost { state: "opp_climb", ms: self.debt + 2.5 }],
                    energy_mj: Some(self.energy + 1.0),
                    running: self.running,
                    migrations: moved,
                },
                util_residency: self.residency,
                migrations: self.migrations,
                lost: self.lost.iter().map(|&(state, ms)| Lost { state, ms }).collect(),
                reservation: None,
                stretch: Stretch::default(),
                looked_for: None,
            }],
            cpus,
            jobs: Vec::new(),
            quotas: Vec::new(),
            heat: Vec::new(),
            cooling: Vec::new(),
            pieces: Vec::new(),
            waits: Vec::new(),
            wakes: Default::default(),
            freq_changes: 0,
            work_ms: 1900.5,
            exited: (0, 1),
            makespan_ms: None,
            latency: vec![Latency {
                tasks: "rampup".into(),
                policy: None,
                activations: 101,
                p50_ms: 0.1234,
                p90_ms: 0.2,
                p99_ms: 0.3,
                p99_9_ms: 1234.5678,
                max_ms: 1234.5678,
                unfinished: 1,
                unfinished_ms: 2345.6789,
                longer: None,
                wakeup: Waits::default(),
                wu_lat: Waits::default(),
            }],
            energy_mj: Some(self.energy + 91.7),
            notes: vec![],
        }
    }

    fn cpu(&self, cpu: u32) -> CpuResult {
        let at = self.running.iter().filter(|r| r.cpu.0 == cpu);
        let freq: Vec<(KHz, f64)> = at.map(|r| (r.freq, r.ms)).collect();
        let busy: f64 = freq.iter().map(|f| f.1).sum();
        CpuResult {
            cpu: CpuId(cpu),
            domain: CpuId(cpu / 4 * 4),
            told: CpuId(cpu),
            capacity: if cpu < 4 { 459 } else { 1024 },
            energy_mj: Some(11.5),
            freq,
            idle: vec![("wfi".into(), T0 + self.kind.busy_ms as f64 - busy)],
            busy_ms: busy,
        }
    }
}

/// Everything that the first screen shows, with findings of some machine.
pub(crate) fn demo_parts() -> (Vec<Published>, Vec<Finding>, Vec<Next>) {
    let figure = |label: &str, published: &str, ours: f64, unit: &str| Published {
        label: label.into(),
        published: published.into(),
        ours: Some(ours),
        unit: unit.into(),
    };
    let finding = |severity, title: &str, evidence: &str, meaning: &str| Finding {
        severity,
        title: title.into(),
        evidence: vec![evidence.into()],
        meaning: meaning.into(),
        hint: None,
    };
    let next = |command: &str, shows: &str| Next { command: command.into(), shows: shows.into() };
    (
        vec![
            figure("on the little CPU", "90", 94.0, "ms"),
            figure("of which at 600 MHz", "37", 41.0, "ms"),
            figure("util 450 after", "~105", 105.0, "ms"),
            figure("util 1000 after", "~284", 263.0, "ms"),
            figure("util 450, fast from the start", "~29.5", 28.0, "ms"),
        ],
        vec![
            finding(
                Severity::Costly,
                "schedutil waits 10 ms between changes",
                "rate_limit_us = 10000",
                "Each step up the frequencies takes 10 ms or more.",
            ),
            finding(
                Severity::Notable,
                "all CPUs have the same capacity",
                "cpu_capacity = 1024",
                "No time is lost on a CPU that is too small.",
            ),
            finding(
                Severity::Fine,
                "the tick is 1 ms",
                "CONFIG_HZ = 1000 in /boot/config-6.8.0-45-generic-with-a-long-name",
                "A busy task is looked at 1000 times a second.",
            ),
        ],
        vec![
            next("risetime run rampup --uclamp-min 1024", "the same with a hint"),
            next("risetime run my.json --platform m1", "your own rt-app workload"),
            next("risetime doctor", "all about this machine"),
        ],
    )
}

/// A machine with everything that a description can hold, and power unknown in one domain.
pub(crate) fn platform() -> Platform {
    let opp = |mhz: u64, uw: u64| Opp::new(KHz(mhz * 1000), MicroWatts(uw), Span(7500));
    let wfi = IdleState::new("wfi", Span::from_us(1), Span::from_us(10), MicroWatts(6000));
    let little = Domain {
        cpus: (0..4).map(CpuId).collect(),
        cluster: 0,
        capacity: Capacity(459),
        fast_switch: true,
        transition_delay_us: None,
        energy_model: true,
        opps: LITTLE.iter().map(|&(f, p)| opp(f, p)).collect(),
        levels: None,
        idle: vec![wfi],
        work: Vec::new(),
    };
    let big = Domain {
        cpus: [4, 6].map(CpuId).to_vec(),
        cluster: 1,
        capacity: Capacity(1024),
        fast_switch: false,
        transition_delay_us: Some(1500),
        energy_model: true,
        opps: BIG.iter().map(|&(f, _)| opp(f, 0)).collect(),
        levels: None,
        idle: vec![],
        work: Vec::new(),
    };
    Platform {
        name: "board".into(),
        about: "A made-up board".into(),
        hz: 250,
        domains: vec![little, big],
        topology: Default::default(),
        thermal: Vec::new(),
        doubts: Vec::new(),
        sources: [("opp".to_string(), "estimate".to_string())].into(),
    }
}

/// A workload with every kind of event and attribute.
pub(crate) fn workload() -> Workload {
    let attr = Attr {
        cpus: Some([0, 1, 5].map(CpuId).to_vec()),
        policy: Some(SchedPolicy::Fifo { priority: 39 }),
        nice: Some(-5),
        uclamp_min: Some(Util(300)),
        uclamp_max: Some(Util(800)),
        latency_nice: None,
        qos: vec![SchedQosHint { kind: SchedQosType::RampupMultiplier, value: 3, cookie: 0 }],
        taskgroup: Some("/ui/a".into()),
    };
    let frame = Phase {
        name: "frame".into(),
        repeat: Repeat::Times(100),
        events: vec![
            Event::Run(Span::from_us(2500)),
            Event::Runtime { time: Span::from_ms(3), piece: Span::from_us(32) },
            Event::Sleep(Span(1_234_567)),
            Event::Timer { timer: Timer::own(0), period: Span::from_us(16_667) },
        ],
        attr: Attr { uclamp_max: Some(Util(512)), ..Attr::default() },
    };
    let rest = Phase {
        name: "a phase with a very long name".into(),
        repeat: Repeat::Forever,
        events: vec![Event::Run(Span(500)); 30],
        attr: Attr::default(),
    };
    let task = TaskSpec {
        logs: false,
        comm: "render".into(),
        delay: Span::from_ms(20),
        repeat: Repeat::Forever,
        phases: vec![frame, rest],
        attr,
        stage: Stage::default(),
    };
    Workload {
        name: "game".into(),
        about: "".into(),
        tasks: vec![task; 26],
        forked: Vec::new(),
        objects: Objects::default(),
        duration: Some(Span::from_ms(3000)),
        calibration: Some(CpuId(4)),
        groups: vec![
            TaskGroup {
                uclamp_min: Util(100),
                uclamp_max: Util(700),
                ..TaskGroup::new("/ui".into())
            },
            TaskGroup {
                quota: Some(Span::from_ms(20)),
                burst: Span::from_ms(5),
                ..TaskGroup::new("/ui/a".into())
            },
            TaskGroup { idle: true, ..TaskGroup::new("/rest".into()) },
        ],
        doubts: Vec::new(),
        places: Default::default(),
        without_effect: vec!["global.logdir: nothing is logged".into()],
        hotplug: Vec::new(),
        sessions: Vec::new(),
        partitions: Vec::new(),
        jobs: Vec::new(),
        start_at: StartAt::Creation,
        source: Default::default(),
    }
}

/// Why a burst of [`rampup`] was slow, made up so that it adds up; `phase` moves it a little.
pub(crate) fn explanation(phase: u64) -> explain::Explanation {
    let run = rampup(DEFAULT).0;
    let mut burst = run.tasks[0].burst.unwrap();
    burst.debt_ms += phase as f64;
    let cause = |cause, label, about, part: f64, gain_ms| explain::CauseShare {
        cause,
        label,
        about,
        acts: true,
        ms: burst.debt_ms * part,
        error_ms: None,
        gain_ms,
        alone_ms: 0.0,
    };
    let causes = vec![
        cause("pelt_ramp", "PELT's own ramp", "util has to climb before anybody knows", 0.7, 95.0),
        cause("margin", "migration margin", "util has to reach the margin first", 0.32, 12.0),
        cause("transition", "transition and kthread", "the hardware takes its time", 0.0, 0.0),
        explain::CauseShare {
            acts: false,
            ..cause("pull", "waiting for the pull", "a bigger CPU has to pull it", 0.0, 0.0)
        },
        cause("clamps", "clamps", "uclamp_min and uclamp_max", -0.03, -40.0),
    ];
    explain::Explanation {
        cautions: Vec::new(),
        policy: run.policy,
        platform: run.platform,
        workload: run.workload,
        settings: run.settings,
        phase: Span::from_us(phase * 7618),
        seed: 1,
        comm: run.tasks[0].comm.clone(),
        about: explain::About::Burst(burst),
        causes,
        affinity_ms: 0.0,
        unexplained_ms: burst.debt_ms * 0.01,
        runs: 16,
        notes: Vec::new(),
    }
}

/// A policy that loses `debt_ms` and takes `mj`, more or less, from 8 phases × 2 utils.
fn measured(policy: &str, debt_ms: f64, mj: f64) -> Measured {
    let state = |i: u64| StartState {
        phase: Span::from_us(i / 2 * 7618),
        util: Some(i % 2 * 100),
        seed: 1 + i,
    };
    let all = |of: &dyn Fn(u32) -> f64| (0..16).map(|i| Some(of(i))).collect();
    let debt = |i: u32| debt_ms * (1.0 + 0.02 * f64::from(i % 8)) / f64::from(1 + i % 2);
    Measured {
        workload: "rampup".into(),
        platform: "m1".into(),
        policy: policy.into(),
        seed: 1,
        starts: (0..16).map(state).collect(),
        metrics: vec![
            (Metric::new("rampup.debt"), Unit::Time, all(&debt)),
            (Metric::new("energy"), Unit::Energy, all(&|i| mj + f64::from(i))),
            (Metric::new("work"), Unit::Time, all(&|i| 2000.0 - debt(i))),
        ],
        ..Measured::default()
    }
}

fn of_group(group: Vec<Measured>, switches: Vec<Switched>) -> Compared {
    Compared {
        groups: vec![group],
        subjects: vec![Subject::Burst("rampup".into())],
        switches,
        command: ["risetime", "compare", "rampup", "--platform", "m1"].map(String::from).into(),
    }
}

/// Policies side by side, one with a long name.
pub(crate) fn comparison() -> Compared {
    let group = vec![
        measured("linux-6.11", 90.0, 1000.0),
        measured("rfc-v1", 50.0, 1030.0),
        measured("linux-6.11+governor=performance", 20.0, 1100.0),
        measured("slow", 95.0, 1100.0),
    ];
    of_group(group, Vec::new())
}

/// A series taken apart: one switch buys, one does nothing.
pub(crate) fn ablation() -> Compared {
    let group = vec![
        measured("linux-6.11", 90.0, 1000.0),
        measured("series", 50.0, 1030.0),
        measured("series without fast", 88.0, 1002.0),
        measured("linux-6.11+fast=1", 49.0, 1033.0),
        measured("series without idle", 50.0, 1030.0),
        measured("linux-6.11+idle=1", 90.0, 1000.0),
    ];
    let switches = switched(&["fast=1".into(), "idle=1".into()], &group);
    of_group(group, switches)
}

/// Zones of which one was too hot for the faster CPUs.
pub(crate) fn heated(run: &mut RunResult) {
    run.heat = vec![Heat {
        zone: "big".into(),
        start_celsius: 25.0,
        max_celsius: 71.987,
        max_at_ms: 812.5,
        end_celsius: 69.5,
        critical_at_ms: None,
    }];
    let cooling = |policy, lowest_max: Option<KHz>| Cooling {
        policy: CpuId(policy),
        capped_ms: lowest_max.map_or(0.0, |_| 400.25),
        lowest_max,
        changes: lowest_max.map_or(0, |_| 3),
    };
    run.cooling = vec![cooling(0, None), cooling(4, Some(KHz(1_328_000)))];
}

/// [`rampup`] with jobs of a chain, some of them missed, and several kinds of tasks.
pub(crate) fn frames() -> RunResult {
    let times = |ms: f64| Percentiles {
        p50: ms,
        p90: 2.0 * ms,
        p95: 3.0 * ms,
        p99: 4.0 * ms,
        p99_9: 5.0 * ms,
        max: 6.0 * ms,
        min: -ms,
        mean: 1.5 * ms,
    };
    let waits = |ms: f64| Waits { n: 120, took: Some(times(ms)) };
    let (mut run, _) = rampup(DEFAULT);
    run.quotas = vec![Quota {
        group: "/background".into(),
        periods: 50,
        throttled: 20,
        throttled_ms: 812.3456,
        longest_ms: Some(61.5),
    }];
    heated(&mut run);
    run.jobs = vec![
        Jobs {
            name: "frame".into(),
            tasks: vec!["ui".into(), "a renderer with a long name".into()],
            declared: true,
            released: 121,
            due: 119,
            by_timer: true,
            done: 110,
            late: 10,
            merged: 3,
            dropped: 7,
            unfinished: 1,
            overdue: 1,
            response: Some(times(7.1234)),
            lateness: Some(times(4.5678)),
            longer: Some(times(2.3456)),
            latest: Some(Latest {
                comm: Some("ui".into()),
                number: 79,
                due_ms: 1333.36,
                lateness_ms: 31.2249,
            }),
            worst: Vec::new(),
            per_second: Some(60.0),
            mj_per_job: Some(7.0612),
            energy: Some(times(6.9876)),
        },
        Jobs {
            name: "never".into(),
            tasks: vec!["late".into()],
            declared: false,
            released: 1,
            due: 0,
            by_timer: true,
            done: 0,
            late: 0,
            merged: 0,
            dropped: 0,
            unfinished: 1,
            overdue: 0,
            response: None,
            lateness: None,
            longer: None,
            latest: None,
            worst: Vec::new(),
            per_second: None,
            mj_per_job: None,
            energy: None,
        },
    ];
    let of = |name: &str, ms| Latency {
        tasks: name.into(),
        wakeup: waits(ms),
        wu_lat: waits(ms),
        ..run.latency[0].clone()
    };
    run.latency = vec![of("ui", 0.001), of("render", 0.19), of("background", 3.3)];
    let by = |by, name: &str, ms| WaitsBy { by, name: name.into(), wakeup: waits(ms) };
    run.waits = vec![
        by(By::Policy, "SCHED_FIFO", 0.002),
        by(By::Group, "", 0.3),
        by(By::Group, "/ui", 0.4),
        by(By::Capacity, "1024", 0.5),
    ];
    (run.exited, run.makespan_ms) = ((3, 3), Some(2811.34));
    run
}

/// What is printed of these runs.
pub(crate) fn printed(
    runs: &[RunResult],
    print: impl Fn(&mut dyn std::io::Write, &mut [Told<'_>]) -> std::io::Result<()>,
) -> String {
    let mut out = Vec::new();
    let mut told: Vec<Told<'_>> = runs.iter().map(|run| Told { run, listed: None }).collect();
    print(&mut out, &mut told).expect("to memory");
    String::from_utf8(out).expect("text")
}
