//! Tasks that sleep with their dequeue delayed, and balancing.

use super::experiment;
use crate::Simulator;
use risetime_kernel::units::{Instant, Span, TaskId};
use risetime_model::settings::Value;
use risetime_model::{Platform, Workload};
use risetime_trace::{Backend, Event, Header, SwitchOut, TraceSink, Why};
use std::collections::BTreeSet;

/// Moves by balancing: of tasks that sleep, and of others.
#[derive(Default)]
struct Moved {
    asleep: BTreeSet<TaskId>,
    sleepers: usize,
    others: usize,
}

impl TraceSink for Moved {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, _: Instant, event: &Event) {
        match *event {
            Event::Switch { prev: Some((task, SwitchOut::Sleeping)), .. } => {
                self.asleep.insert(task);
            }
            Event::Wakeup { task, .. } => drop(self.asleep.remove(&task)),
            Event::Migrate { task, why: Why::Balance | Why::NewIdle, .. } => {
                match self.asleep.contains(&task) {
                    true => self.sleepers += 1,
                    false => self.others += 1,
                }
            }
            _ => {}
        }
    }
    fn end(&mut self, _: Instant) {}
}

fn moved(kernel: &str, tasks: &str) -> Moved {
    let rpi4 = Platform::load("rpi4").expect("built in");
    let workload = Workload::parse(&format!("{{\"tasks\": {{{tasks}}}}}"), "made").expect("tasks");
    let set = [("governor", Value::Name("performance".into()))];
    let e = experiment(rpi4, workload, kernel, &set, Span::from_ms(2000));
    let mut moved = Moved::default();
    Simulator.run(&e, &mut moved).expect("it runs");
    moved
}

/// Whether a task beside one that runs waits or sleeps makes no difference to `h_nr_running` up to 6.13, and to
/// `can_migrate_task` neither.
#[test]
fn a_task_that_sleeps_with_its_dequeue_delayed_is_pulled_by_who_becomes_idle_up_to_6_13() {
    let nap = r#""spin": {"cpus": [0], "loop": -1, "run": 1000000},
        "beside": {"cpus": [1], "loop": -1, "run": 1500, "sleep": 900},
        "nap": {"cpus": [0, 1], "loop": -1, "run": 700, "sleep": 1100}"#;
    let [old, delays, new] = ["linux-6.1", "linux-6.12", "linux-7.3"].map(|k| moved(k, nap));
    assert_eq!(old.sleepers, 0, "nothing is delayed before 6.12");
    assert!(delays.sleepers > 20, "{} of sleepers, {} others", delays.sleepers, delays.others);
    assert_eq!(new.sleepers, 0, "one task waits there: it runs");
}

/// An overloaded group gives load, whosesoever it is.
#[test]
fn a_sleeping_task_is_moved_as_load_in_every_release() {
    let crowd = r#""nap": {"instance": 16, "loop": -1, "run": 2300, "sleep": 3100},
        "spin": {"instance": 6, "loop": -1, "run": 1000000}"#;
    for kernel in ["linux-6.12", "linux-7.2", "linux-7.3"] {
        let found = moved(kernel, crowd);
        assert!(found.sleepers > 0 && found.others > found.sleepers, "{kernel}");
    }
}
