//! A trace kept in memory: recorded once, read as often as needed.

use crate::{Event, Header, TraceSink};
use risetime_kernel::units::{Instant, TaskId};
use risetime_model::Name;

/// A recorded trace.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    header: Option<Header>,
    events: Vec<(Instant, Event)>,
    end: Instant,
}

impl Memory {
    /// Returns a trace in which nothing is recorded yet.
    pub fn new() -> Memory {
        Memory::default()
    }
    /// Returns a trace in which nothing is recorded yet, with room for so many events.
    pub(crate) fn with_room(events: usize) -> Memory {
        Memory { events: Vec::with_capacity(events), ..Memory::default() }
    }
    /// Returns the head, once there is one.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }
    /// Returns the events in time order.
    pub fn events(&self) -> &[(Instant, Event)] {
        &self.events
    }
    /// Returns the tasks with their names, in the order in which they became known.
    pub fn tasks(&self) -> impl Iterator<Item = (TaskId, Name)> {
        self.events.iter().filter_map(|(_, event)| match *event {
            Event::TaskNew { task, comm, .. } => Some((task, comm)),
            _ => None,
        })
    }
    /// Returns when the run was over.
    pub fn end(&self) -> Instant {
        self.end
    }
    /// Pushes everything into `sink` again, as it came.
    pub fn replay(&self, sink: &mut dyn TraceSink) {
        let Some(header) = &self.header else { return };
        sink.header(header);
        self.replay_events(sink);
        sink.end(self.end);
    }

    /// Pushes the events, and neither head nor end.
    pub(crate) fn replay_events(&self, sink: &mut dyn TraceSink) {
        for (at, event) in &self.events {
            sink.event(*at, event);
        }
    }

    /// Forgets the events, keeping their memory.
    pub(crate) fn clear(&mut self) {
        self.events.clear();
    }
}

impl TraceSink for Memory {
    fn header(&mut self, header: &Header) {
        self.header = Some(header.clone());
    }
    fn event(&mut self, at: Instant, event: &Event) {
        self.events.push((at, *event));
    }
    fn end(&mut self, at: Instant) {
        self.end = at;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{MenuSelect, SwitchOut, Why};
    use risetime_kernel::units::{CpuId, Util};

    /// Everything that was pushed, as text.
    #[derive(Default)]
    pub(crate) struct Log(pub(crate) Vec<String>);
    impl TraceSink for Log {
        fn header(&mut self, h: &Header) {
            self.0.push(format!("{h:?}"));
        }
        fn event(&mut self, at: Instant, e: &Event) {
            self.0.push(format!("{at:?} {e:?}"));
        }
        fn end(&mut self, at: Instant) {
            self.0.push(format!("end {at:?}"));
        }
    }

    fn push(sink: &mut dyn TraceSink) {
        let task = TaskId(0);
        sink.header(&crate::header::tests::header());
        let (cpu, why) = (CpuId(1), Why::FirstCpu);
        sink.event(
            Instant(1),
            &Event::TaskNew { task, comm: "a b".into(), user: true, cpu, why, max_speed: Util(9) },
        );
        sink.event(Instant(1), &Event::Phase { task, index: 2, name: "busy".into() });
        for bucket in [3, 4] {
            let select = MenuSelect { bucket, state: Some(1), ..MenuSelect::default() };
            sink.event(Instant(2), &Event::IdleSelect { cpu, select });
        }
        sink.event(
            Instant(3),
            &Event::Switch { cpu, prev: Some((task, SwitchOut::Exited)), next: None },
        );
        sink.end(Instant(4));
    }

    #[test]
    fn a_replay_is_what_was_pushed() {
        let (mut direct, mut memory, mut replayed) =
            (Log::default(), Memory::new(), Log::default());
        push(&mut direct);
        push(&mut memory);
        memory.replay(&mut replayed);
        assert_eq!(direct.0, replayed.0);
        assert!(replayed.0[4].contains("bucket: 4"), "{}", replayed.0[4]);
        assert_eq!(direct.0.len(), 7);
        memory.replay(&mut replayed);
        assert_eq!(replayed.0.len(), 14, "it can be read again");
    }
}
