//! Sinks: where events go.

use crate::{Event, Header, Hears};
use risetime_kernel::units::Instant;

/// A receiver of a trace: header once, then events in time order, then the end once.
pub trait TraceSink {
    /// The head of the trace, before any event.
    fn header(&mut self, header: &Header);
    /// Takes in one event. Times never go back.
    fn event(&mut self, at: Instant, event: &Event);
    /// Receives the end of the run.
    fn end(&mut self, at: Instant);
    /// The events that are worth making: others may come or not. The same from header to end.
    fn listens(&self) -> Hears {
        Hears::All
    }
}

/// Two sinks fed with the same trace.
pub struct Tee<'a, A: ?Sized, B: ?Sized>(pub &'a mut A, pub &'a mut B);

impl<A: TraceSink + ?Sized, B: TraceSink + ?Sized> TraceSink for Tee<'_, A, B> {
    fn header(&mut self, header: &Header) {
        self.0.header(header);
        self.1.header(header);
    }
    fn event(&mut self, at: Instant, event: &Event) {
        self.0.event(at, event);
        self.1.event(at, event);
    }
    fn end(&mut self, at: Instant) {
        self.0.end(at);
        self.1.end(at);
    }
    fn listens(&self) -> Hears {
        self.0.listens().max(self.1.listens())
    }
}

/// Nowhere: to measure what tracing costs.
impl TraceSink for () {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, _: Instant, _: &Event) {}
    fn end(&mut self, _: Instant) {}
    fn listens(&self) -> Hears {
        Hears::Nothing
    }
}
