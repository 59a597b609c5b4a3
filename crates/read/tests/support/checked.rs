//! Rules that hold for every trace that a reader pushes, whatever the bytes were.

use risetime_kernel::units::{Instant, TaskId};
use risetime_trace::tracker::Tracker;
use risetime_trace::{Event, Header, TraceSink};
use std::collections::BTreeSet;

/// A sink that panics where a rule of traces is broken.
#[derive(Default)]
pub(crate) struct Checked {
    cpus: usize,
    last: u64,
    ended: bool,
    known: BTreeSet<TaskId>,
    state: Tracker,
    /// Number of the events.
    pub(crate) events: u64,
}

impl TraceSink for Checked {
    fn header(&mut self, header: &Header) {
        assert_eq!((self.cpus, self.events), (0, 0), "the header comes once, and first");
        self.cpus = header.machine.platform.nr_cpus();
        assert!((1..=1024).contains(&self.cpus), "{} CPUs", self.cpus);
        self.state = Tracker::of(header);
    }

    fn event(&mut self, at: Instant, event: &Event) {
        assert!(self.cpus > 0 && !self.ended, "an event between header and end");
        assert!(at.0 >= self.last, "{event:?} at {at:?}, after {}", self.last);
        self.last = at.0;
        self.events += 1;
        if let Some(cpu) = event.cpu() {
            assert!(cpu.index() < self.cpus, "{event:?}: {} CPUs", self.cpus);
        }
        let is_known =
            |task: TaskId| assert!(self.known.contains(&task), "{event:?}: who is that?");
        match *event {
            Event::TaskNew { task, .. } => {
                assert!(self.known.insert(task), "{event:?}: a second time");
            }
            Event::Switch { prev, next, .. } => {
                prev.map(|prev| prev.0).into_iter().chain(next).for_each(is_known);
            }
            Event::Wakeup { task, .. }
            | Event::Migrate { task, .. }
            | Event::Waking { task, .. }
            | Event::Prio { task, .. }
            | Event::PeltTask { task, .. }
            | Event::UtilEst { task, .. } => is_known(task),
            _ => {}
        }
        self.state.event(at, event);
    }

    fn end(&mut self, at: Instant) {
        assert!(!self.ended && at.0 >= self.last, "the end is {at:?}, after {}", self.last);
        self.ended = true;
    }
}
