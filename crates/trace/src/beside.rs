//! A trace that is taken in on another core while it is made.

use crate::{Event, Header, Hears, Memory, TraceSink};
use risetime_kernel::units::Instant;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// Events that are handed over together: some 33 kB, so that all of them leave most of a second-level cache to both sides.
const BATCH: usize = 256;
/// Batches on their way: a maker that is faster waits.
const AHEAD: usize = 4;

enum Part {
    Header(Box<Header>),
    Events(Box<Memory>),
    End(Instant),
}

/// Lets `make` make a trace while a thread of its own hands it to `sink`, in the same order. Returns when both
/// are done.
pub fn beside<T>(
    sink: &mut (dyn TraceSink + Send),
    make: impl FnOnce(&mut dyn TraceSink) -> T,
) -> T {
    let listens = sink.listens();
    let (parts, taken) = sync_channel(AHEAD);
    let (back, empty) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || take(&taken, &back, sink));
        let events = Box::new(Memory::with_room(BATCH));
        let mut batches = Batches { listens, events, parts, empty };
        make(&mut batches)
    })
}

fn take(parts: &Receiver<Part>, back: &Sender<Box<Memory>>, sink: &mut dyn TraceSink) {
    for part in parts {
        match part {
            Part::Header(header) => sink.header(&header),
            Part::Events(mut events) => {
                events.replay_events(sink);
                events.clear();
                // The maker may be done.
                let _ = back.send(events);
            }
            Part::End(at) => sink.end(at),
        }
    }
}

/// The maker's end.
struct Batches {
    listens: Hears,
    events: Box<Memory>,
    parts: SyncSender<Part>,
    /// Batches to use again.
    empty: Receiver<Box<Memory>>,
}

impl Batches {
    fn hand_over(&mut self) {
        let next = self.empty.try_recv().unwrap_or_else(|_| Box::new(Memory::with_room(BATCH)));
        let events = std::mem::replace(&mut self.events, next);
        self.send(Part::Events(events));
    }

    fn send(&self, part: Part) {
        // Nobody is there any more: it panicked, which the end of the scope passes on.
        let _ = self.parts.send(part);
    }
}

impl TraceSink for Batches {
    fn header(&mut self, header: &Header) {
        self.send(Part::Header(Box::new(header.clone())));
    }
    fn event(&mut self, at: Instant, event: &Event) {
        self.events.event(at, event);
        if self.events.events().len() >= BATCH {
            self.hand_over();
        }
    }
    fn end(&mut self, at: Instant) {
        self.hand_over();
        self.send(Part::End(at));
    }
    fn listens(&self) -> Hears {
        self.listens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::Log;
    use crate::{Name, Why};
    use risetime_kernel::units::{CpuId, TaskId, Util};

    fn push(sink: &mut dyn TraceSink, n: u64) -> u64 {
        sink.header(&crate::header::tests::header());
        for i in 0..n {
            let (task, cpu, why) = (TaskId(i as u32), CpuId(1), Why::FirstCpu);
            let comm = Name::new(&format!("t{i}"));
            let new = Event::TaskNew { task, comm, user: true, cpu, why, max_speed: Util(i) };
            sink.event(Instant(i), &new);
            sink.event(Instant(i), &Event::Tick { cpu });
        }
        sink.end(Instant(n));
        n
    }

    #[test]
    fn what_another_thread_takes_in_is_what_was_pushed() {
        for n in [0, 1, BATCH as u64 / 2, 5 * BATCH as u64 + 1] {
            let (mut direct, mut aside) = (Log::default(), Log::default());
            push(&mut direct, n);
            assert_eq!(beside(&mut aside, |sink| push(sink, n)), n);
            assert!(direct.0 == aside.0, "{n}");
        }
        assert_eq!(beside(&mut (), |sink| sink.listens()), Hears::Nothing);
    }
}
