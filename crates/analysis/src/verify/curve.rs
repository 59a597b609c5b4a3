//! What one task lived through from a moment on, as steps.

use risetime_kernel::units::{CpuId, Instant, KHz, Span, TaskId};
use risetime_trace::{Event, Memory};

/// The life of a task from `t0` on. Times count from there, in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Curve {
    /// (time, util_avg) at each update; the first is the value at t0.
    pub util: Vec<(Span, u64)>,
    /// Where and how fast it ran, without gaps in the list for waiting or sleep.
    pub ran: Vec<Stretch>,
    /// Each change of frequency domain while it was runnable or asleep: (time, first CPU of the
    /// domain it came from, of the one it went to).
    pub moves: Vec<(Span, CpuId, CpuId)>,
    /// Runnable, not running.
    pub waited: Span,
    /// How long the curve is.
    pub length: Span,
}

/// A stretch of running in one domain at one frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Its start.
    pub from: Span,
    /// Its end.
    pub to: Span,
    /// First CPU of the frequency domain.
    pub domain: CpuId,
    /// The frequency there.
    pub freq: KHz,
}

impl Curve {
    /// The curve of `task` from `t0` to the end of the trace.
    pub fn of(trace: &Memory, task: TaskId, t0: Instant) -> Curve {
        let Some(header) = trace.header() else { return Curve::default() };
        let domain_of = |cpu: CpuId| {
            let index = header.platform.domain_of(cpu).unwrap_or(0);
            header.platform.domains[index].cpus[0]
        };
        let mut walk = Walk {
            curve: Curve::default(),
            t0,
            since: t0,
            on: None,
            runnable: true,
            freqs: Vec::new(),
        };
        let mut util_at_start = 0;
        for &(at, event) in trace.events() {
            match event {
                Event::PeltTask { task: t, util_avg, .. } if t == task && at < t0 => {
                    util_at_start = util_avg.0
                }
                Event::PeltTask { task: t, util_avg, .. } if t == task => {
                    // Several updates at one moment: the last one stands.
                    let when = at.since(t0);
                    walk.curve.util.retain(|(w, _)| *w != when);
                    walk.curve.util.push((when, util_avg.0));
                }
                Event::Freq { cpu, freq } => walk.frequency(at, domain_of(cpu), freq),
                Event::Switch { prev: Some((t, _)), .. } if t == task => walk.stop(at, &event),
                Event::Switch { cpu, next: Some(t), .. } if t == task => {
                    walk.start(at, domain_of(cpu))
                }
                Event::Migrate { task: t, from, to, .. } if t == task && at >= t0 => {
                    let (from, to) = (domain_of(from), domain_of(to));
                    if from != to {
                        walk.curve.moves.push((at.since(t0), from, to));
                    }
                }
                Event::Wakeup { task: t, .. } if t == task => walk.woke(at),
                _ => {}
            }
        }
        walk.finish(trace.end(), util_at_start)
    }

    /// Ends the curve at `length`; what was waited later stays counted.
    pub fn cut(&mut self, length: Span) {
        self.length = self.length.min(length);
        self.util.retain(|(at, _)| *at < length);
        self.moves.retain(|(at, ..)| *at < length);
        self.ran.retain(|s| s.from < length);
        if let Some(last) = self.ran.last_mut() {
            last.to = last.to.min(length);
        }
    }

    /// The util in force `after` t0.
    pub fn util_at(&self, after: Span) -> u64 {
        let i = self.util.partition_point(|(at, _)| *at <= after);
        i.checked_sub(1).map_or(0, |i| self.util[i].1)
    }
}

/// The walk through the events.
struct Walk {
    curve: Curve,
    t0: Instant,
    /// Since when the present state (running on `on`, or waiting) holds.
    since: Instant,
    on: Option<CpuId>,
    runnable: bool,
    /// Each domain's frequency, by its first CPU.
    freqs: Vec<(CpuId, KHz)>,
}

impl Walk {
    fn freq_of(&self, domain: CpuId) -> KHz {
        self.freqs.iter().find(|(d, _)| *d == domain).map_or(KHz(0), |(_, f)| *f)
    }

    /// Books the time since the last change.
    fn book(&mut self, at: Instant) {
        let from = self.since.max(self.t0);
        self.since = at;
        if at <= from {
            return;
        }
        match self.on {
            Some(domain) => {
                let (from, to, freq) =
                    (from.since(self.t0), at.since(self.t0), self.freq_of(domain));
                match self.curve.ran.last_mut() {
                    Some(last) if last.domain == domain && last.freq == freq => last.to = to,
                    _ => self.curve.ran.push(Stretch { from, to, domain, freq }),
                }
            }
            None if self.runnable => self.curve.waited += at.since(from),
            None => {}
        }
    }
    fn frequency(&mut self, at: Instant, domain: CpuId, freq: KHz) {
        if self.on == Some(domain) {
            self.book(at);
        }
        self.freqs.retain(|(d, _)| *d != domain);
        self.freqs.push((domain, freq));
    }
    fn start(&mut self, at: Instant, domain: CpuId) {
        self.book(at);
        (self.on, self.runnable) = (Some(domain), true);
    }
    fn stop(&mut self, at: Instant, event: &Event<'_>) {
        use risetime_trace::SwitchOut::Preempted;
        self.book(at);
        self.on = None;
        self.runnable = matches!(event, Event::Switch { prev: Some((_, Preempted)), .. });
    }
    fn woke(&mut self, at: Instant) {
        self.book(at);
        self.runnable = true;
    }
    fn finish(mut self, end: Instant, util_at_start: u64) -> Curve {
        self.book(end);
        if self.curve.util.first().is_none_or(|(at, _)| *at != Span(0)) {
            self.curve.util.insert(0, (Span(0), util_at_start));
        }
        self.curve.length = end.since(self.t0);
        self.curve
    }
}
