//! Hint sessions in the simulator: who has none sees nothing of a power HAL, and what the service does to whom.

use super::{Bytes, experiment};
use crate::Simulator;
use risetime_kernel::units::{Instant, Span, TaskId, Util};
use risetime_model::settings::Value;
use risetime_model::{Platform, Workload};
use risetime_trace::{Backend, Event, Header, Hears, TraceSink};

const PIXEL: (&str, &str) = ("power_hal", "pixel");

/// Logs all that happens on pixel6 under Linux 6.12 with these settings.
fn bytes(workload: &str, set: &[(&str, &str)], ms: u64) -> String {
    let mut sink = Bytes::default();
    run(Workload::load(workload).expect("built in"), set, ms, &mut sink);
    sink.0
}

fn run(workload: Workload, set: &[(&str, &str)], ms: u64, sink: &mut dyn TraceSink) {
    let value = |v: &str| v.parse().map_or_else(|_| Value::Name(v.into()), Value::Int);
    let set: Vec<(&str, Value)> = set.iter().map(|(name, v)| (*name, value(v))).collect();
    let platform = Platform::load("pixel6").expect("built in");
    let e = experiment(platform, workload, "linux-6.12", &set, Span::from_ms(ms));
    Simulator.run(&e, sink).expect("it runs");
}

#[test]
fn without_a_hint_session_nothing_changes() {
    for workload in ["phone", "ui-hwuitest", "rampup"] {
        assert_eq!(bytes(workload, &[PIXEL], 400), bytes(workload, &[], 400), "{workload}");
    }
    for workload in ["game", "ui-jank-bench"] {
        let none = bytes(workload, &[("power_hal", "none")], 400);
        assert_eq!(none, bytes(workload, &[], 400), "{workload}: told to nobody");
        let told = bytes(workload, &[PIXEL], 400);
        assert_ne!(none, told, "{workload}");
        assert_eq!(told, bytes(workload, &[PIXEL], 400), "{workload}: the same bytes again");
    }
}

/// The tasks' names, and what is told of their clamps.
#[derive(Default)]
struct Seen {
    tasks: Vec<(TaskId, String)>,
    /// `uclamp_min` of `ui`, as it is told.
    clamps: Vec<(Instant, Util)>,
    /// Times at which each task was woken.
    wakes: Vec<(Instant, TaskId)>,
}

impl TraceSink for Seen {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        match event {
            Event::TaskNew { task, comm, .. } => self.tasks.push((*task, comm.to_string())),
            Event::Clamps { task: TaskId(0), clamps } => self.clamps.push((at, clamps.min)),
            Event::Wakeup { task, .. } => self.wakes.push((at, *task)),
            _ => {}
        }
    }
    fn end(&mut self, _: Instant) {}
    fn listens(&self) -> Hears {
        Hears::Attributes
    }
}

impl Seen {
    fn task(&self, name: &str) -> TaskId {
        self.tasks.iter().find(|(_, comm)| comm == name).expect("it is there").0
    }
    /// The largest that was in force within these ms.
    fn largest(&self, from: u64, to: u64) -> Util {
        let ms = |at: &Instant| at.0 / 1_000_000;
        let before = self.clamps.iter().rfind(|(at, _)| ms(at) < from);
        let within = self.clamps.iter().filter(|(at, _)| (from..to).contains(&ms(at)));
        before.into_iter().chain(within).map(|(_, min)| *min).max().unwrap_or(Util(0))
    }
}

/// A workload of 20 frames of so much work, a pause, and 20 more.
fn paused(run_us: u32) -> Workload {
    let text = format!(
        r#"{{"tasks": {{"ui": {{"job": {{"name": "frame", "deadline": 16667, "hint_session": {{"target": 10000}}}},
            "loop": -1, "phases": {{
              "busy": {{"loop": 20, "run": {run_us}, "timer": {{"ref": "unique", "period": 16667}}}},
              "pause": {{"run": 100, "timer": {{"ref": "unique", "period": 1000000}}}}}}}}}}}}"#
    );
    Workload::parse(&text, "paused").expect("a workload")
}

#[test]
fn late_frames_raise_the_clamp_and_a_session_that_says_nothing_loses_it() {
    let mut seen = Seen::default();
    run(paused(6000), &[PIXEL], 2000, &mut seen);
    // Created: load_reset. Then by the controller: 6 ms of work take longer than 10 ms on most CPUs.
    assert_eq!(seen.largest(0, 100), Util(480));
    assert!(seen.largest(100, 340) > Util(162), "{}", seen.largest(100, 340));
    // The pause: stale after twice the rate limit. Whoever wakes in it has no clamp; the first frame behind it says
    // CPU_LOAD_RESET.
    assert_eq!(seen.largest(700, 1333), Util(0));
    assert_eq!(seen.largest(1333, 1500), Util(480));
    let hal = seen.task("power-hal");
    assert!(seen.wakes.iter().filter(|(_, task)| *task == hal).count() >= 20, "a report a frame");
}

#[test]
fn frames_in_time_let_the_clamp_fall_and_are_told_less_often() {
    let mut seen = Seen::default();
    run(paused(300), &[PIXEL], 330, &mut seen);
    assert!(seen.largest(250, 330) <= Util(2), "{}", seen.largest(250, 330));
    let hal = seen.task("power-hal");
    let wakes = seen.wakes.iter().filter(|(_, task)| *task == hal).count();
    assert!((8..18).contains(&wakes), "{wakes} wakeups for 20 frames");
}

#[test]
fn the_service_takes_its_time() {
    // A controller that is slow to answer changes clamps later.
    let first = |work: &str| {
        let mut seen = Seen::default();
        run(paused(6000), &[PIXEL, ("adpf_work_ns", work)], 300, &mut seen);
        seen.clamps.iter().find(|(_, min)| min.0 > 0).expect("a clamp").0
    };
    assert!(first("0") < first("50000") && first("50000") < first("5000000"));
}
