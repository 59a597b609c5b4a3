//! What a real kernel tells of its decisions, counted, and held against itself.
//!
//! ```text
//! decisions PLATFORM WORKLOAD RELEASE [SECONDS]   boots it (RELEASE as `risetime vm kernels` lists them)
//!
//! vruntime   of each task that runs, from one tick to the next: Δt · 1024 / weight, to 20 µs and 2 %
//!            (elsewhere it is told some time after it was brought up to date)
//! menu       each choice made again from what is told of it: state, and whether the tick stops
//! waking     each wakeup that is told has begun with one
//! resched    each switch away from a task that is runnable has been asked for
//! ```

use risetime_kernel::KernelRev;
use risetime_kernel::cpuidle::menu::MenuDevice;
use risetime_kernel::cpuidle::{IdleGovernor, IdleState, Limits, Sleep};
use risetime_kernel::units::{CpuId, Instant, Span, TaskId};
use risetime_kernel::weight::LoadWeight;
use risetime_model::{Experiment, Platform, Policy, Workload};
use risetime_trace::{Backend, Event, Header, MenuSelect, SwitchOut, TraceSink};
use risetime_vm::Vm;
use risetime_vm::fetch::Cache;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [platform, workload, release, seconds @ ..] = &args[..] else {
        eprintln!("usage: decisions PLATFORM WORKLOAD RELEASE [SECONDS]");
        std::process::exit(2);
    };
    let seconds = seconds.first().map_or(2, |s| s.parse().expect("seconds"));
    let cache = Cache::from_env().unwrap_or_else(|e| panic!("{e}"));
    let found = Vm::find(&cache, Some(release), risetime_sim::catalogue());
    let (vm, kernel) = found.unwrap_or_else(|e| panic!("{e}"));
    let mut vm = vm.with_decisions();
    vm.limit = Some(Duration::from_secs(580));
    let rev = kernel.rev().expect("a stock kernel says what it is");
    let policy = Policy { kernel: rev, ..Policy::from_arg("mainline").expect("built in") };
    let platform = Platform::load(platform).unwrap_or_else(|e| panic!("{e}"));
    let e = Experiment {
        settings: risetime_sim::resolve(&platform, &policy).unwrap_or_else(|e| panic!("{e}")),
        platform: Arc::new(platform),
        workload: Arc::new(Workload::load(workload).unwrap_or_else(|e| panic!("{e}"))),
        policy,
        duration: Span::from_ms(seconds * 1000),
        phase: Span(0),
        seed: 1,
    };
    let mut told = Told { rev: Some(rev), ..Told::default() };
    let outcome = vm.run(&e, &mut told).unwrap_or_else(|e| panic!("{e}"));
    told.print();
    outcome.notes.iter().for_each(|note| println!("note: {note}"));
}

/// Held of all.
#[derive(Default)]
struct Share(u64, u64);

impl Share {
    fn count(&mut self, holds: bool) {
        self.0 += u64::from(holds);
        self.1 += 1;
    }
}

#[derive(Default)]
struct Told {
    rev: Option<KernelRev>,
    platform: Option<Arc<Platform>>,
    kinds: BTreeMap<String, u64>,
    prios: BTreeMap<TaskId, i32>,
    /// The last place of each task, and when; whether with its signals.
    places: BTreeMap<TaskId, (Instant, u64, bool)>,
    signals: Option<(TaskId, Instant)>,
    running: BTreeMap<CpuId, TaskId>,
    asked: BTreeSet<CpuId>,
    waking: BTreeSet<TaskId>,
    vruntime: Share,
    worst: u64,
    state: Share,
    stop: Share,
    woken: Share,
    resched: Share,
    lazy: u64,
    shown: u32,
}

impl TraceSink for Told {
    fn header(&mut self, header: &Header) {
        self.platform = Some(Arc::clone(&header.machine.platform));
        header.run.lost.iter().for_each(|lost| println!("lost: {lost}"));
    }

    fn event(&mut self, at: Instant, event: &Event) {
        let kind = format!("{event:?}");
        let kind = kind.split([' ', '{']).next().unwrap_or_default();
        *self.kinds.entry(kind.into()).or_default() += 1;
        match *event {
            Event::PeltTask { task, .. } => self.signals = Some((task, at)),
            Event::Prio { task, prio } => drop(self.prios.insert(task, prio)),
            Event::Waking { task, .. } => drop(self.waking.insert(task)),
            Event::Wakeup { task, .. } => {
                let begun = self.waking.remove(&task);
                self.woken.count(begun);
            }
            Event::Resched { cpu, lazy } => {
                self.asked.insert(cpu);
                self.lazy += u64::from(lazy);
            }
            Event::Switch { cpu, prev, next } => {
                let asked = self.asked.remove(&cpu);
                if let Some((_, SwitchOut::Preempted)) = prev {
                    self.resched.count(asked);
                }
                self.running.remove(&cpu);
                self.running.extend(next.map(|next| (cpu, next)));
            }
            Event::Entity { task, place } => self.entity(at, task, place.vruntime),
            Event::IdleSelect { cpu, select } => self.select(cpu, &select),
            _ => {}
        }
    }

    fn end(&mut self, _: Instant) {}
}

impl Told {
    fn entity(&mut self, at: Instant, task: TaskId, vruntime: u64) {
        let ticks = self.signals == Some((task, at));
        let before = self.places.insert(task, (at, vruntime, ticks));
        let runs = ticks && self.running.values().any(|t| *t == task);
        let Some((since, from, true)) = before.filter(|_| runs) else { return };
        let prio = self.prios.get(&task).copied().unwrap_or(0);
        // The fair class.
        if (100..140).contains(&prio) {
            let weight = LoadWeight::of_nice(prio - 120);
            let rev = self.rev.expect("told");
            let wanted = weight.calc_delta_fair(rev, at.since(since).0);
            let off = vruntime.wrapping_sub(from).wrapping_sub(wanted) as i64;
            let holds = off.unsigned_abs() <= 20_000 + wanted / 50;
            self.vruntime.count(holds);
            if !holds && self.shown < 12 {
                self.shown += 1;
                let ran = at.since(since);
                println!("vruntime: {task} prio {prio} at {at}: {ran} later off by {off} ns");
            }
            self.worst = self.worst.max(off.unsigned_abs());
        }
    }

    fn select(&mut self, cpu: CpuId, s: &MenuSelect) {
        let (Some(platform), Some(rev)) = (&self.platform, self.rev) else { return };
        let Some(domain) = platform.domain_of(cpu) else { return };
        let states = platform.domains[domain].idle.iter();
        let states: Vec<IdleState> = states
            .map(|s| IdleState {
                target_residency: s.min_residency,
                exit_latency: s.longest_wakeup(),
            })
            .collect();
        let tick = platform.tick();
        let menu = MenuDevice::from_parts(
            rev,
            s.next_timer_ns,
            s.bucket as usize,
            s.correction_factor,
            s.intervals_us,
            s.interval_ptr as usize,
        );
        let mut governor = IdleGovernor::Menu(menu);
        if let Some(last) = s.last {
            let idle = Span(last.slept_ns);
            governor.update(&states, last.state as usize, idle, last.by_tick, tick);
        }
        let sleep = Sleep {
            next_timer: s.sleep_length_ns.map(Span),
            next_tick: Span(s.delta_next_ns.max(0) as u64),
            tick_stopped: s.tick_stopped,
            tick,
            utilized: false,
            limits: Limits::NONE,
        };
        let mine = governor.select(&states, sleep);
        let state = s.state.map(|state| (state as usize).min(states.len().saturating_sub(1)));
        if let Some(state) = state {
            self.state.count(mine.state == state);
        }
        if let Some(stop) = s.stop_tick {
            self.stop.count(mine.stop_tick == stop);
        }
        if (state.is_some_and(|state| mine.state != state)
            || s.stop_tick.is_some_and(|stop| mine.stop_tick != stop))
            && self.shown < 5
        {
            self.shown += 1;
            println!("menu: {cpu} {s:?}\n      again: {mine:?}");
        }
    }

    fn print(&self) {
        for (kind, count) in &self.kinds {
            println!("{kind:<14} {count:>8}");
        }
        let shares = [
            ("vruntime", &self.vruntime),
            ("menu's state", &self.state),
            ("menu stops the tick", &self.stop),
            ("wakeups that began", &self.woken),
            ("preemptions asked for", &self.resched),
        ];
        for (what, Share(holds, all)) in shares {
            println!("{what:<22} {holds:>8} of {all}");
        }
        println!("vruntime off by {} ns at most; {} lazy", self.worst, self.lazy);
    }
}
