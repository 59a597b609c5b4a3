//! One experiment, simulated with all short ways and with none: what happens has to be the same.
//!
//! ```text
//! short ways   ─> a number for each event           (nobody else hears)
//! long ways    ─> the same, held against these, and on to whoever listens
//! ```
//!
//! Who listens to little makes the simulator make few events: both hear what the caller's sink does, and at least what figures
//! are made of, so that the short ways which go by that are looked at, too.

use crate::state::machine::Machine;
use crate::state::short_ways::ShortWay;
use risetime_kernel::units::Instant;
use risetime_model::settings::{Default, Home, Int, Neutral, Param, Range};
use risetime_trace::{Event, Header, Hears, Outcome, RunError, TraceSink};
use std::fmt::{self, Write};

/// The setting: 0 asks for it.
pub const SHORT_WAYS: Int = Int::new(Param {
    name: "short_ways",
    doc: "0 = simulated twice, with the simulator's short ways and without: the run fails unless both are the same in every event (--slow; unset: once, with them)",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Unset,
    // A real kernel beside it has none.
    home: Home::Simulator(Neutral::Any),
});

/// Closes a short way: from the start on, the long way is taken.
pub(crate) fn close(m: &mut Machine, way: ShortWay) {
    match way {
        ShortWay::Plain => m.plain = false,
        ShortWay::Glance => m.glances = false,
        ShortWay::Tally => m.tally = None,
        ShortWay::EmCost => {
            m.domains.iter_mut().for_each(|d| d.slots.perf_domain.cost = Vec::new())
        }
        ShortWay::Jiffy => m.ticks.keeps_jiffy = false,
        ShortWay::SameOpp => m.keeps_opp = false,
        ShortWay::Unheard => m.unheard = false,
    }
}

/// Runs both ways; `run`: simulates into a sink, with the short ways closed or not.
///
/// Errors: the simulator's; what goes another way, and when.
pub(crate) fn both_ways(
    sink: &mut dyn TraceSink,
    run: impl Fn(&mut dyn TraceSink, bool) -> Result<Outcome, RunError>,
) -> Result<Outcome, RunError> {
    let hears = sink.listens().max(Hears::Figures);
    let mut short = Seen::new(hears);
    let of_short = run(&mut short, false);
    let mut long = Held { short: &short.events, at: 0, differs: None, hears, sink };
    let of_long = run(&mut long, true);
    let (at, differs) = (long.at, long.differs.take());
    if let Some((index, when, event)) = differs {
        let mut again = Seen { shown: Some(index), ..Seen::new(hears) };
        run(&mut again, false)?;
        return Err(differ(
            when,
            &format!("event {index} is {event} without them, {} with them", again.text),
        ));
    }
    let end = of_long.as_ref().map_or(Instant(0), |outcome| outcome.end);
    if at != short.events.len() {
        let what = format!("{} events with them, {at} without", short.events.len());
        return Err(differ(end, &what));
    }
    if of_short != of_long {
        return Err(differ(
            end,
            &format!("it ends in {of_short:?} with them, in {of_long:?} without"),
        ));
    }
    of_long
}

fn differ(when: Instant, what: &str) -> RunError {
    RunError::Failed(format!(
        "the simulator's short ways lead elsewhere at {:.6} ms: {what}",
        when.as_ms()
    ))
}

/// A number for each event, and the text of one of them.
struct Seen {
    events: Vec<u64>,
    shown: Option<usize>,
    text: String,
    hears: Hears,
}

impl Seen {
    fn new(hears: Hears) -> Seen {
        Seen { events: Vec::new(), shown: None, text: String::new(), hears }
    }
}

impl TraceSink for Seen {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        if self.shown == Some(self.events.len()) {
            self.text = format!("{event:?} at {:.6} ms", at.as_ms());
        }
        self.events.push(number(at, event));
    }
    fn end(&mut self, _: Instant) {}
    fn listens(&self) -> Hears {
        self.hears
    }
}

/// Hands everything on, as long as it is the same.
struct Held<'a> {
    short: &'a [u64],
    at: usize,
    differs: Option<(usize, Instant, String)>,
    hears: Hears,
    sink: &'a mut dyn TraceSink,
}

impl TraceSink for Held<'_> {
    fn header(&mut self, header: &Header) {
        self.sink.header(header);
    }
    fn event(&mut self, at: Instant, event: &Event) {
        if self.differs.is_none() && self.short.get(self.at) != Some(&number(at, event)) {
            self.differs = Some((self.at, at, format!("{event:?}")));
        }
        self.at += 1;
        self.sink.event(at, event);
    }
    fn end(&mut self, at: Instant) {
        self.sink.end(at);
    }
    fn listens(&self) -> Hears {
        self.hears
    }
}

/// FNV-1a of an event's text and time.
struct Fnv(u64);

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}

fn number(at: Instant, event: &Event) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325 ^ at.0);
    // Nothing that is written here fails.
    let _ = write!(hash, "{event:?}");
    hash.0
}
