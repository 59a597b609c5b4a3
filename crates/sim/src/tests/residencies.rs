//! Tests that the busy times, frequencies and idle states of a trace are those of the machine: the
//! time that each CPU spent in each of them, by the events alone, against a look at the machine
//! between all of its steps. Energy is made of these times ("energy from residencies",
//! crates/lab/tests/energy.rs).

use super::experiment;
use crate::state::machine::Machine;
use crate::{Counterfactual, setup};
use risetime_kernel::units::{CpuId, Instant, KHz, Span};
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Workload};
use risetime_trace::{Event, Header, TraceSink};
use std::collections::BTreeMap;

/// State of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Busy(KHz),
    Idle(Option<u32>),
}

/// Times by CPU and state, in ns.
type Times = BTreeMap<(CpuId, State), u64>;

fn spent(times: &mut Times, cpu: CpuId, state: State, ns: u64) {
    if ns > 0 {
        *times.entry((cpu, state)).or_default() += ns;
    }
}

/// Facts that the trace tells.
struct Told<'a> {
    platform: &'a Platform,
    busy: Vec<bool>,
    idle: Vec<Option<u32>>,
    freq: Vec<KHz>,
    since: Vec<u64>,
    times: Times,
}

impl Told<'_> {
    /// Accounts what `cpu` has been in up to `at`.
    fn until(&mut self, cpu: CpuId, at: u64) {
        let i = cpu.index();
        let d = self.platform.domain_of(cpu).expect("a CPU");
        let state =
            if self.busy[i] { State::Busy(self.freq[d]) } else { State::Idle(self.idle[i]) };
        spent(&mut self.times, cpu, state, at - self.since[i]);
        self.since[i] = at;
    }
}

impl TraceSink for Told<'_> {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        match *event {
            Event::Switch { cpu, next, .. } => {
                self.until(cpu, at.0);
                self.busy[cpu.index()] = next.is_some();
            }
            Event::Idle { cpu, state } => {
                self.until(cpu, at.0);
                self.idle[cpu.index()] = state;
            }
            Event::Freq { cpu, freq } => {
                let d = self.platform.domain_of(cpu).expect("a CPU");
                self.platform.domains[d].cpus.iter().for_each(|c| self.until(*c, at.0));
                self.freq[d] = freq;
            }
            _ => {}
        }
    }
    fn end(&mut self, at: Instant) {
        self.platform.cpus().for_each(|c| self.until(c, at.0));
    }
}

fn state(m: &Machine, cpu: CpuId) -> State {
    let c = m.cpu(cpu);
    match c.curr {
        Some(_) => State::Busy(m.domains[c.domain].hw),
        None => State::Idle(c.idle.as_ref().and_then(|idle| idle.state)),
    }
}

/// The times of `e` by its trace and by its machine.
fn both(e: &Experiment) -> (Times, Times) {
    let p = &*e.platform;
    let n = p.nr_cpus();
    let mut told = Told {
        platform: p,
        busy: vec![false; n],
        idle: vec![None; n],
        freq: vec![KHz(0); p.domains.len()],
        since: vec![0; n],
        times: Times::new(),
    };
    let mut seen = Times::new();
    let end = Instant(e.duration.0);
    let mut engine = setup::simulation(e, &mut told, Counterfactual::default()).expect("an engine");
    engine.start();
    loop {
        let before: Vec<State> = p.cpus().map(|c| state(&engine.k.m, c)).collect();
        let from = engine.k.m.now;
        let goes_on = engine.step(end).expect("a run");
        let to = if goes_on { engine.k.m.now } else { end };
        p.cpus().zip(before).for_each(|(c, s)| spent(&mut seen, c, s, to.0 - from.0));
        if !goes_on {
            break;
        }
    }
    drop(engine);
    told.end(end);
    (told.times, seen)
}

#[test]
fn the_trace_tells_what_the_machine_was_in() {
    let tasks = r#"{"global": {"hotplug": [
            {"at_us": 40000, "cpu": 1, "online": 0}, {"at_us": 70000, "cpu": 3, "online": 0},
            {"at_us": 120000, "cpu": 1, "online": 1}]},
        "tasks": {"spin": {"instance": 2, "loop": -1, "run": 9000, "sleep": 1000},
            "short": {"loop": -1, "run": 300, "sleep": 1700},
            "frames": {"instance": 2, "loop": -1, "run": 2000, "timer": {"ref": "unique", "period": 8000}}}}"#;
    for (platform, set) in [
        ("m1", &[][..]),
        // Through a kthread, 1.5 ms a change.
        ("hikey620", &[]),
        ("hikey960", &[]),
        ("intel-hybrid", &[("irq_period_us", 700), ("irq_us", 60)]),
        ("m1", &[("stop_work_ns", 50_000), ("timer_slack_ns", 50_000)]),
        ("pixel6", &[("hw_capped_khz.policy4", 1_000_000), ("hw_capped_from_ms", 30)]),
    ] {
        let set: Vec<(&str, Value)> = set.iter().map(|(k, v)| (*k, Value::Int(*v))).collect();
        let e = experiment(
            Platform::load(platform).expect("built in"),
            Workload::parse(tasks, "made").expect("a workload"),
            "linux-7.2",
            &set,
            Span::from_ms(200),
        );
        let (told, seen) = both(&e);
        assert_eq!(told, seen, "{platform} {set:?}");
        let busy = seen.keys().filter(|(_, s)| matches!(s, State::Busy(_))).count();
        assert!(busy > 8, "{platform}: busy at {busy} OPPs of CPUs");
    }
}
