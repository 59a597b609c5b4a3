//! Tests that a short way gets where the long one leads: every event is the same.

use super::Bytes;
use super::generate::{experiments, mostly_plain};
use crate::run::both_ways::{both_ways, close};
use crate::state::short_ways::counted::{FAULT, Fault, TAKEN};
use crate::state::short_ways::{SHORT_WAYS, ShortWay};
use crate::{Counterfactual, Simulator, draws, setup};
use proptest::prelude::*;
use risetime_kernel::units::{Instant, Span, TaskId};
use risetime_model::settings::Value;
use risetime_model::workload::{self, Attr};
use risetime_model::{Experiment, Platform, Workload};
use risetime_trace::{Backend, Event, RunError, TraceSink};
use std::cell::Cell;

/// Runs `e` with these ways closed: what every task had in the end, to the ns, in how many events.
fn end(e: &Experiment, closed: &[ShortWay], sink: &mut dyn TraceSink) -> Result<String, String> {
    let mut engine =
        setup::simulation(e, sink, Counterfactual::default()).map_err(|e| e.to_string())?;
    closed.iter().for_each(|way| close(&mut engine.k.m, *way));
    engine.run(Instant(e.duration.0)).map_err(|e| e.to_string())?;
    let tasks = engine.k.m.tasks.iter().map(|t| (t.state, t.cpu, t.avg));
    Ok(format!("{} events; {:?}", engine.k.events, tasks.collect::<Vec<_>>()))
}

/// Logs what happens with these ways closed, and how it ends.
fn log(e: &Experiment, closed: &[ShortWay]) -> (String, Result<String, String>) {
    let mut bytes = Bytes::default();
    let end = end(e, closed, &mut bytes);
    (bytes.0, end)
}

/// Describes where the long ways lead elsewhere, and the first event that does; and where it
/// matters that the events are heard. `None`: nowhere.
fn differs(e: &Experiment) -> Option<String> {
    let (short, short_end) = log(e, &[]);
    let (long, long_end) = log(e, &SHORT_WAYS);
    if (&short, &short_end) == (&long, &long_end) {
        let unheard = end(e, &[], &mut ());
        return (unheard != short_end)
            .then(|| format!("unheard: {unheard:?}, heard: {short_end:?}"));
    }
    let guilty: Vec<ShortWay> =
        SHORT_WAYS.into_iter().filter(|way| log(e, &[*way]).0 != short).collect();
    let mut pairs = short.lines().zip(long.lines()).enumerate();
    let first = pairs.find(|(_, (a, b))| a != b);
    Some(format!("short and long, {first:?}; alone: {guilty:?}"))
}

fn on(platform: &str, workload: Workload, set: &[(&str, i64)], ms: u64) -> Experiment {
    let platform = Platform::load(platform).expect("built in");
    let set: Vec<(&str, Value)> = set.iter().map(|(k, v)| (*k, Value::Int(*v))).collect();
    super::experiment(platform, workload, "linux-7.2", &set, Span::from_ms(ms))
}

/// A CPU whose stopper is at work is not idle, and has one task more.
#[test]
fn stoppers_are_counted_in_the_sums_of_groups() {
    let tasks = r#"
        "s": {"instance": 3, "loop": -1, "run": 5000, "sleep": 3000},
        "x": {"loop": -1, "phases": {"p": {"cpus": [0], "run": 2000}, "q": {"cpus": [1], "run": 2000}}}"#;
    let run = |tasks: &str| {
        let workload = Workload::parse(&format!(r#"{{"tasks": {{{tasks}}}}}"#), "stop.json");
        on("laptop4", workload.expect("a workload"), &[("stop_work_ns", 10_000_000)], 1000)
    };
    assert_eq!(differs(&run(tasks)), None);
    // A real-time task that never starts only sees to it that no sums are kept.
    let inert =
        format!(r#"{tasks}, "z": {{"policy": "SCHED_FIFO", "delay": 50000000, "run": 10}}"#);
    let moves = |e: &Experiment| log(e, &[]).0.lines().filter(|l| l.contains(" Migrate")).count();
    assert_eq!(moves(&run(tasks)), moves(&run(&inert)));
}

/// A limit of the frequency takes capacity, and a task alone on such a CPU counts as a misfit one.
#[test]
fn a_limit_of_the_frequency_counts_in_the_sums_of_groups() {
    let phone = Workload::load("phone").expect("built in");
    for (platform, khz) in [("laptop4", 1_500_000), ("pixel6", 1_500_000)] {
        let e = on(platform, phone.clone(), &[("scaling_max_freq", khz)], 500);
        assert_eq!(differs(&e), None, "{platform}");
    }
}

/// The jiffy is kept until the next one: not the one of a grid that has moved, nor one before the first.
#[test]
fn a_jiffy_is_not_kept_where_the_grid_moves() {
    let e = on("m1", Workload::load("idle").expect("built in"), &[], 10);
    let mut sink = ();
    let mut engine =
        setup::simulation(&e, &mut sink, Counterfactual::default()).expect("an engine");
    let m = &mut engine.k.m;
    m.now = Instant(1);
    assert_eq!((m.jiffies(), m.next_tick()), (1, Instant(1_000_000)));
    m.now = Instant(648_538);
    m.ticks.set_offset(Span(300_000), m.now, m.tick);
    m.now = Instant(648_539);
    assert_eq!((m.jiffies(), m.next_tick()), (1, Instant(1_300_000)));
}

/// A setting has every run made both ways, and gives the long way's events and outcome.
#[test]
fn whoever_asks_has_both_ways_run() {
    let phone = Workload::load("phone").expect("built in");
    let e = |set: &[(&str, i64)]| on("pixel6", phone.clone(), set, 200);
    let (mut once, mut twice) = (Bytes::default(), Bytes::default());
    let short = Simulator.run(&e(&[]), &mut once).expect("it runs");
    let long = Simulator.run(&e(&[("short_ways", 0)]), &mut twice).expect("it runs");
    assert_eq!((short, once.0), (long, twice.0));
}

/// Where one way leads elsewhere, that is where it ends, and what was there on both.
#[test]
fn where_the_ways_part_is_told() {
    let e = on("m1", Workload::load("rampup").expect("built in"), &[], 100);
    let events = Cell::new(0);
    Simulator
        .run(&e, &mut Bent { sink: &mut Bytes::default(), from: None, events: &events })
        .expect("it runs");
    // In the middle of the run.
    let at = events.get() / 2;
    assert!(at > 0, "something happens");
    let run = |sink: &mut dyn TraceSink, closed: bool| {
        let mut bent = Bent { sink, from: closed.then_some(at), events: &events };
        events.set(0);
        Simulator.run(&e, &mut bent)
    };
    let said = both_ways(&mut Bytes::default(), run).expect_err("they differ");
    let RunError::Failed(said) = said else { panic!("{said:?}") };
    assert!(said.contains(&format!("event {at} is Phase")) && said.contains("with them"), "{said}");
}

/// Sink between a run and who listens to it, which changes one event.
struct Bent<'a> {
    sink: &'a mut dyn TraceSink,
    from: Option<u32>,
    events: &'a Cell<u32>,
}

impl TraceSink for Bent<'_> {
    fn header(&mut self, header: &risetime_trace::Header) {
        self.sink.header(header);
    }
    fn event(&mut self, at: Instant, event: &Event) {
        match self.from == Some(self.events.replace(self.events.get() + 1)) {
            true => {
                self.sink.event(at, &Event::Phase { task: TaskId(0), index: 0, name: "x".into() })
            }
            false => self.sink.event(at, event),
        }
    }
    fn end(&mut self, at: Instant) {
        self.sink.end(at);
    }
}

#[test]
fn shipped_experiments_go_the_same_either_way() {
    for (platform, workload, ms) in
        [("pixel6", "phone", 500), ("laptop4", "phone", 500), ("server256", "server", 30)]
    {
        let e = on(platform, Workload::load(workload).expect("built in"), &[], ms);
        assert_eq!(differs(&e), None, "{workload} on {platform}");
    }
}

/// What the sums of groups once got wrong makes a difference here, so that it would be noticed.
#[test]
fn what_was_once_wrong_is_noticed() {
    let stop = r#"{"tasks": {
        "s": {"instance": 3, "loop": -1, "run": 5000, "sleep": 3000},
        "x": {"loop": -1, "phases": {"p": {"cpus": [0], "run": 2000}, "q": {"cpus": [1], "run": 2000}}}}}"#;
    let stop = Workload::parse(stop, "stop.json").expect("a workload");
    let phone = Workload::load("phone").expect("built in");
    for (fault, e) in [
        (Fault::StoppersUncounted, on("laptop4", stop, &[("stop_work_ns", 10_000_000)], 1000)),
        (
            Fault::CapacityTakenForGranted,
            on("laptop4", phone, &[("scaling_max_freq", 1_500_000)], 500),
        ),
    ] {
        assert_eq!(differs(&e), None, "{fault:?}");
        let right = log(&e, &[]);
        FAULT.set(Some(fault));
        // In a debug build each kept sum is held against the long way's, and that is where it ends.
        let wrong = std::panic::catch_unwind(|| log(&e, &[]));
        FAULT.set(None);
        assert!(
            wrong.is_err() || wrong.is_ok_and(|wrong| wrong != right),
            "{fault:?} makes no difference"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 60, ..draws::config(256) })]

    // All in one test, so that what is counted is counted in one thread.
    #[test]
    fn short_ways_lead_where_long_ones_lead(
        e in prop_oneof![2 => experiments().boxed(), 2 => mostly_plain().boxed(), 1 => placed_by_eas().boxed()]
    ) {
        prop_assert_eq!(differs(&e), None);
        SEEN.with_borrow_mut(|seen| {
            seen.0 += 1;
            let taken = TAKEN.take();
            seen.1.iter_mut().zip(taken).for_each(|(all, n)| *all += n);
            if seen.0 == 256 {
                for way in SHORT_WAYS {
                    assert!(seen.1[way as usize] >= 1000, "{way:?} is taken {} times", seen.1[way as usize]);
                }
            }
        });
    }
}

/// Draws light tasks that may run everywhere, on a phone where EAS places them.
fn placed_by_eas() -> impl Strategy<Value = Experiment> {
    (mostly_plain(), prop::sample::select(&["pixel6", "m1"][..])).prop_map(|(e, platform)| {
        let mut workload = (*e.workload).clone();
        (workload.groups, workload.hotplug) = (Vec::new(), Vec::new());
        for task in &mut workload.tasks {
            let attrs = task.phases.iter_mut().map(|p| &mut p.attr).chain([&mut task.attr]);
            attrs.for_each(|attr| *attr = Attr { nice: attr.nice, ..Attr::default() });
            for event in task.phases.iter_mut().flat_map(|p| &mut p.events) {
                if let workload::Event::Run(span) | workload::Event::Runtime { time: span, .. } =
                    event
                {
                    span.0 /= 16;
                }
            }
        }
        let e = on(platform, workload, &[], 300);
        Experiment { phase: Span(e.phase.0 % 4_000_000), ..e }
    })
}

thread_local! {
    /// Cases of the property, and how often each way was taken in them.
    static SEEN: std::cell::RefCell<(u32, [u64; SHORT_WAYS.len()])> =
        const { std::cell::RefCell::new((0, [0; SHORT_WAYS.len()])) };
}
