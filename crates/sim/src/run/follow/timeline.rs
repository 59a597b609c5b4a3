//! The reference's events in the order in which they are followed, and what is known of a later one before.

use risetime_kernel::units::{Instant, Span, TaskId};
use risetime_trace::{Event, Header, Memory, SwitchOut, TraceSink};
use std::collections::BTreeMap;

/// What the reference's tasks are called.
#[derive(Default)]
pub(super) struct Names(pub(super) BTreeMap<TaskId, String>);

impl TraceSink for Names {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, _: Instant, event: &Event<'_>) {
        if let Event::TaskNew { task, comm, .. } = event {
            self.0.insert(*task, (*comm).to_string());
        }
    }
    fn end(&mut self, _: Instant) {}
}

/// The events in an order in which what leads to a change of signals comes before it, each with the time at which
/// it comes: a task is queued, or leaves, before its runqueue's signals tell of that; the trace's event comes after.
pub(super) fn causes_first(events: &[(Instant, Event<'static>)]) -> Vec<(Instant, usize)> {
    /// A wakeup, or a reschedule, takes less than that.
    const LASTS: Span = Span::from_us(60);
    let mut order: Vec<(usize, bool, usize)> = Vec::with_capacity(events.len());
    for (i, (at, event)) in events.iter().enumerate() {
        let (cpu, tasks) = match *event {
            Event::TaskNew { task, cpu, .. } | Event::Wakeup { task, cpu, .. } => {
                (cpu, [Some(task), None])
            }
            Event::Switch { cpu, prev, next } => (cpu, [prev.map(|(task, _)| task), next]),
            _ => {
                order.push((i, true, i));
                continue;
            }
        };
        let before = events[..i].iter().enumerate().rev();
        let mut first = i;
        for (j, (_, earlier)) in before.take_while(|(_, (when, _))| at.since(*when) < LASTS) {
            let part = match *earlier {
                Event::PeltTask { task, .. } | Event::UtilEst { task, .. } => {
                    tasks.contains(&Some(task))
                }
                Event::PeltCfs { cpu: c, .. } | Event::PeltPressure { cpu: c, .. } => c == cpu,
                Event::TaskNew { cpu: c, .. }
                | Event::Wakeup { cpu: c, .. }
                | Event::Switch { cpu: c, .. }
                    if c == cpu =>
                {
                    break;
                }
                _ => false,
            };
            if part {
                first = j;
            }
        }
        order.push((first, false, i));
    }
    order.sort();
    order.into_iter().map(|(place, _, i)| (events[place].0, i)).collect()
}

/// Of each event of the trace at which a task goes to sleep, by its index: when that task wakes.
pub(super) fn next_wakeups(reference: &Memory) -> BTreeMap<usize, Instant> {
    let mut found = BTreeMap::new();
    let mut next: BTreeMap<TaskId, Instant> = BTreeMap::new();
    for (index, (at, event)) in reference.events().iter().enumerate().rev() {
        match *event {
            Event::Wakeup { task, .. } => {
                next.insert(task, *at);
            }
            Event::Switch { prev: Some((task, SwitchOut::Sleeping)), .. } => {
                if let Some(wakes) = next.get(&task) {
                    found.insert(index, *wakes);
                }
            }
            _ => {}
        }
    }
    found
}
