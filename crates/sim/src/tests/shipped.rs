//! Every entry of every registry on every shipped platform: what is built in works together.

use super::Bytes;
use super::experiment;
use super::properties::step_through;
use crate::kernel::cpuidle;
use crate::{Counterfactual, Simulator, governor, placement, tracker};
use risetime_kernel::units::{CpuId, Instant, KHz, Span, TaskId};
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Workload, library};
use risetime_trace::{Backend, Event, Header, TraceSink};

/// Above so many CPUs (or 100 tasks) a trace is followed, but not every event's machine looked through.
const FEW: usize = 32;

fn platforms() -> Vec<Platform> {
    let load = |e: library::Entry| Platform::load(e.name).expect("built in");
    library::platforms().into_iter().map(load).collect()
}

/// A workload of fair tasks of several weights and clamps in and out of groups, some bound, one
/// that moves, and real-time and deadline ones beside them.
fn mixed(nr_cpus: usize) -> Workload {
    let last = nr_cpus - 1;
    let text = format!(
        r#"{{
        "taskgroups": {{"/few": {{"weight": 50, "uclamp_max": 400}}, "/limited": {{"quota_us": 3000, "period_us": 10000}}}},
        "tasks": {{
            "spin": {{"instance": 3, "loop": -1, "run": 1000000}},
            "nice": {{"priority": 10, "util_max": 300, "loop": -1, "run": 3000, "sleep": 2000}},
            "frames": {{"util_min": 500, "loop": -1, "run": 2000, "timer": {{"ref": "unique", "period": 8000}}}},
            "bound": {{"cpus": [{last}], "loop": -1, "run": 700, "sleep": 1300}},
            "moves": {{"loop": -1, "phases": {{
                "first": {{"cpus": [0], "run": 900, "sleep": 500}},
                "last": {{"cpus": [{last}], "run": 900, "sleep": 500}}}}}},
            "few": {{"taskgroup": "/few", "loop": -1, "run": 5000, "sleep": 500}},
            "limited": {{"taskgroup": "/limited", "loop": -1, "run": 1000000}},
            "idle": {{"policy": "SCHED_IDLE", "loop": -1, "run": 1000000}},
            "rt": {{"policy": "SCHED_FIFO", "priority": 5, "loop": -1, "run": 300, "sleep": 2700}},
            "dl": {{"policy": "SCHED_DEADLINE", "dl-runtime": 500, "dl-period": 5000, "loop": -1,
                    "run": 100, "timer": {{"ref": "unique", "period": 5000}}}}}}}}"#
    );
    Workload::parse(&text, "mixed").expect("a workload")
}

/// Check of what no trace may say, whoever decides: a task on two CPUs or where it may not run, a
/// frequency that is no OPP, an idle state that there is not.
struct Sane<'a> {
    platform: &'a Platform,
    now: u64,
    runs: Vec<Option<TaskId>>,
    switches: u64,
}

impl TraceSink for Sane<'_> {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        assert!(at.0 >= self.now, "time goes back");
        self.now = at.0;
        let domain =
            |cpu: CpuId| &self.platform.domains[self.platform.domain_of(cpu).expect("a CPU")];
        match *event {
            Event::Switch { cpu, prev, next } => {
                assert_eq!(self.runs[cpu.index()], prev.map(|p| p.0), "who leaves {cpu} at {at}");
                self.runs[cpu.index()] = None;
                assert!(
                    next.is_none() || !self.runs.contains(&next),
                    "{next:?} runs twice at {at}"
                );
                self.runs[cpu.index()] = next;
                self.switches += 1;
            }
            Event::Freq { cpu, freq } => {
                assert!(domain(cpu).opps.iter().any(|o| o.freq == freq), "{cpu}: {freq}");
            }
            Event::FreqRequest { cpu, freq, .. } => {
                let d = domain(cpu);
                assert!(freq >= KHz(0) && freq <= d.freq_max(), "{cpu} wants {freq}");
            }
            Event::Idle { cpu, state: Some(state) } => {
                assert!(domain(cpu).idle.len() > state as usize, "{cpu} in state {state}");
            }
            _ => {}
        }
    }
    fn end(&mut self, _: Instant) {}
}

/// Runs it to its end; on few CPUs with a look at the whole machine after every event.
fn holds(e: &Experiment) {
    let what = || {
        format!(
            "{} on {} under {}: {:?}",
            e.workload.name, e.platform.name, e.policy.name, e.settings
        )
    };
    let mut sane =
        Sane { platform: &e.platform, now: 0, runs: vec![None; e.platform.nr_cpus()], switches: 0 };
    if e.platform.nr_cpus() <= FEW && e.workload.tasks.len() <= 100 {
        step_through(e, Counterfactual::default(), &mut sane)
            .unwrap_or_else(|wrong| panic!("{}: {wrong}", what()));
    } else {
        Simulator.run(e, &mut sane).unwrap_or_else(|wrong| panic!("{}: {wrong}", what()));
    }
    assert!(sane.switches > 0 || e.workload.name == "idle", "{}", what());
}

fn name(setting: &'static str, value: &str) -> (&'static str, Value) {
    (setting, Value::Name(value.into()))
}

#[test]
fn every_governor_placement_and_idle_governor_works_on_every_platform() {
    for platform in platforms() {
        let workload = mixed(platform.nr_cpus());
        for g in governor::REGISTRY {
            for p in placement::REGISTRY {
                for idle in cpuidle::NAMES {
                    let set = [
                        name("governor", g.name),
                        name("placement", p.name),
                        name("cpuidle_governor", idle),
                    ];
                    let e = experiment(
                        platform.clone(),
                        workload.clone(),
                        "linux-7.2",
                        &set,
                        Span::from_ms(25),
                    );
                    holds(&e);
                }
            }
        }
    }
}

#[test]
fn every_tracker_works_with_every_governor_on_every_platform() {
    for platform in platforms() {
        let workload = mixed(platform.nr_cpus());
        for g in governor::REGISTRY {
            for t in tracker::REGISTRY {
                let set = [name("governor", g.name), name("tracker", t.name)];
                let (platform, workload) = (platform.clone(), workload.clone());
                holds(&experiment(platform, workload, "linux-7.2", &set, Span::from_ms(45)));
            }
        }
    }
}

#[test]
fn every_policy_works_on_every_platform() {
    for platform in platforms() {
        let workload = mixed(platform.nr_cpus());
        for policy in library::policies() {
            let e =
                experiment(platform.clone(), workload.clone(), policy.name, &[], Span::from_ms(20));
            holds(&e);
        }
    }
}

#[test]
fn every_workload_works_on_every_platform() {
    for platform in platforms() {
        for w in library::workloads() {
            let workload = Workload::load(w.name).expect("built in");
            let e = experiment(platform.clone(), workload, "linux-7.3", &[], Span::from_ms(15));
            holds(&e);
        }
    }
}

/// A machine of each kind twice: the same bytes.
#[test]
fn every_platform_gives_the_same_bytes_twice() {
    for platform in platforms() {
        let e = experiment(
            platform.clone(),
            mixed(platform.nr_cpus()),
            "linux-7.2",
            &[],
            Span::from_ms(15),
        );
        let bytes = || {
            let mut bytes = Bytes::default();
            Simulator.run(&e, &mut bytes).expect("a run");
            bytes.0
        };
        assert!(bytes() == bytes(), "{}", platform.name);
    }
}
