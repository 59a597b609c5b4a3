//! Tasks that sleep with their dequeue delayed, and balancing.

use super::experiment;
use crate::Simulator;
use risetime_kernel::units::{Instant, Span, TaskId};
use risetime_model::settings::Value;
use risetime_model::{Platform, Workload};
use risetime_trace::{Backend, Event, Header, SwitchOut, TraceSink, Why};
use std::collections::BTreeSet;

/// Moves by balancing of tasks that sleep.
#[derive(Default)]
struct Moved {
    asleep: BTreeSet<TaskId>,
    sleepers: usize,
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
                self.sleepers += usize::from(self.asleep.contains(&task));
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
/// `can_migrate_task` neither: who becomes idle pulls it.
#[test]
fn balancing_takes_tasks_along_that_sleep_with_their_dequeue_delayed() {
    let sleepers = |kernel: &str| -> usize {
        let crowds = [(700, 1_100), (1_900, 2_300), (2_600, 3_100), (4_300, 2_900)];
        let all = crowds.map(|(run, sleep)| {
            let tasks = format!(
                r#""nap": {{"instance": 9, "loop": -1, "run": {run}, "sleep": {sleep}}},
                "long": {{"instance": 3, "loop": -1, "run": 17000, "sleep": 5000}},
                "spin": {{"instance": 2, "loop": -1, "run": 1000000}}"#
            );
            moved(kernel, &tasks).sleepers
        });
        all.into_iter().sum()
    };
    assert_eq!(sleepers("linux-6.1"), 0, "nothing is delayed before 6.12");
    let found = sleepers("linux-6.12");
    assert!(found > 5, "{found}");
}
