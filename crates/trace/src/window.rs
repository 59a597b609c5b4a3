//! A stretch of a trace.

use crate::tracker::{Doing, Tracker};
use crate::{Event, Header, Hears, SwitchOut, TraceSink, Why};
use risetime_kernel::units::{Instant, TaskId, Util};

/// A sink that hands on a stretch of a trace as a trace of its own, which begins at 0.
///
/// What was known before the stretch is told at its begin: frequencies, idle states, who runs where, who waits. A task that sleeps
/// then is told of with its first event in the stretch, as in any trace that somebody cut.
pub struct Window<'a> {
    from: u64,
    to: u64,
    sink: &'a mut dyn TraceSink,
    header: Option<Header>,
    state: Tracker,
    begun: bool,
    /// Tasks that the sink has been told of, by their places in the tracker.
    told: Vec<bool>,
}

impl<'a> Window<'a> {
    /// Returns a sink that hands on what happens from `from` on and before `to`, in ns of the trace.
    pub fn new(from: u64, to: u64, sink: &'a mut dyn TraceSink) -> Window<'a> {
        let (header, state, told) = Default::default();
        Window { from, to, sink, header, state, begun: false, told }
    }

    /// Begins the stretch: tells of what is so at its begin.
    fn begin(&mut self) {
        self.begun = true;
        let Some(header) = self.header.take() else { return };
        self.sink.header(&header);
        let at = Instant(0);
        for domain in &header.machine.platform.domains {
            let cpu = domain.cpus[0];
            let state = self.state.domain_of(cpu);
            if let Some((min, max)) = state.limits() {
                self.sink.event(at, &Event::CpuFrequencyLimits { cpu, min, max });
            }
            if let Some(freq) = state.freq() {
                self.sink.event(at, &Event::Freq { cpu, freq });
            }
        }
        for place in 0..self.state.tasks().len() {
            let of = self.state.at(place);
            let (task, cpu, waits) = (of.id, of.cpu, of.doing == Doing::Waits);
            let known = self.state.has(cpu) && self.state.cpu(cpu).is_known();
            if waits && known && self.state.place(task) == Some(place) {
                self.tell(at, task);
                let prev = Some((task, SwitchOut::Preempted));
                self.sink.event(at, &Event::Switch { cpu, prev, next: None });
            }
        }
        for cpu in header.machine.platform.cpus() {
            let of = self.state.cpu(cpu);
            if !of.is_known() {
                continue;
            }
            let (next, idle, irq) = (of.current(), of.asleep(), of.in_irq());
            if let Some(task) = next {
                self.tell(at, task);
            }
            self.sink.event(at, &Event::Switch { cpu, prev: None, next });
            if let Some(state) = idle {
                self.sink.event(at, &Event::Idle { cpu, state: Some(state as u32) });
            }
            if irq {
                self.sink.event(at, &Event::Irq { cpu, enters: true });
            }
        }
    }

    /// Tells of a task, if the sink does not know it.
    fn tell(&mut self, at: Instant, task: TaskId) {
        let Some(place) = self.state.place(task) else { return };
        self.told.resize(self.told.len().max(place + 1), false);
        if std::mem::replace(&mut self.told[place], true) {
            return;
        }
        let of = self.state.at(place);
        let (comm, user, cpu, why) = (of.comm, of.user, of.cpu, Why::Earlier);
        let (prio, max_speed) = (of.prio, Util(1024));
        self.sink.event(at, &Event::TaskNew { task, comm, user, cpu, why, max_speed });
        if prio != 120 {
            self.sink.event(at, &Event::Prio { task, prio });
        }
    }
}

/// The tasks that an event is about, which must be known before it.
fn tasks(event: &Event) -> [Option<TaskId>; 2] {
    match *event {
        Event::Wakeup { task, .. } | Event::Migrate { task, .. } => [Some(task), None],
        Event::Switch { prev, next, .. } => [prev.map(|p| p.0), next],
        _ => [None, None],
    }
}

impl TraceSink for Window<'_> {
    fn header(&mut self, header: &Header) {
        self.state = Tracker::of(header);
        self.header = Some(header.clone());
        if self.from == 0 {
            self.begin();
        }
    }

    fn event(&mut self, at: Instant, event: &Event) {
        if at.0 >= self.from && !self.begun {
            self.state.advance(self.from);
            self.begin();
        }
        if at.0 >= self.from && at.0 < self.to {
            let now = Instant(at.0 - self.from);
            for task in tasks(event).into_iter().flatten() {
                self.tell(now, task);
            }
            self.sink.event(now, event);
        }
        self.state.event(at, event);
        if let Event::TaskNew { task, .. } = *event
            && at.0 >= self.from
            && let Some(place) = self.state.place(task)
        {
            self.told.resize(self.told.len().max(place + 1), false);
            self.told[place] = true;
        }
    }

    fn end(&mut self, at: Instant) {
        if !self.begun {
            self.begin();
        }
        self.sink.end(Instant(at.0.clamp(self.from, self.to.max(self.from)) - self.from));
    }

    fn listens(&self) -> Hears {
        Hears::Attributes
    }
}
