//! Surveys of short traces, event by event.

use super::*;
use risetime_kernel::units::Util;
use risetime_model::{Name, Platform, Settings};
use risetime_trace::{BackendKind, Clock, Image, MachineInfo, Run, Why};

const UI: TaskId = TaskId(0);
const RT: TaskId = TaskId(1);
const US: u64 = 1000;

fn header(whence: Whence) -> Header {
    Header {
        run: Run {
            backend: BackendKind::File,
            kernel_release: String::new(),
            clock: Clock::Local,
            signals: Vec::new(),
            lost: Vec::new(),
        },
        asked: None,
        machine: MachineInfo {
            platform: Arc::new(Platform::load("m1").expect("built in")),
            whence,
            settings: Settings::default(),
        },
        image: Image::default(),
    }
}

fn new(task: TaskId, name: &str) -> Event {
    let (comm, cpu, why) = (Name::new(name), CpuId(0), Why::Earlier);
    Event::TaskNew { task, comm, user: true, cpu, why, max_speed: Util(1024) }
}

fn wakes(task: TaskId) -> Event {
    Event::Wakeup { task, cpu: CpuId(0), why: Why::Unknown }
}

fn goes(cpu: u32, prev: Option<(TaskId, SwitchOut)>, next: Option<TaskId>) -> Event {
    Event::Switch { cpu: CpuId(cpu), prev, next }
}

fn survey(wanted: Wanted, whence: Whence, events: &[(u64, Event)]) -> Surveyed {
    let mut survey = Survey::new(wanted);
    survey.header(&header(whence));
    events.iter().for_each(|(us, event)| survey.event(Instant(us * US), event));
    survey.end(Instant(events.last().map_or(0, |(us, _)| us * US)));
    survey.finish()
}

fn walk(over: u64) -> Wanted {
    let walk = Some(Walk { over, most: 4 });
    Wanted { walked: Some("ui".into()), walk, ..Wanted::default() }
}

/// `ui` wakes while its CPU idles, runs at 600 MHz and at the top, is preempted by a real-time task, and is interrupted.
fn activation() -> Vec<(u64, Event)> {
    vec![
        (0, goes(0, None, None)),
        (0, Event::Freq { cpu: CpuId(0), freq: KHz(600_000) }),
        (100, new(UI, "ui")),
        (100, wakes(UI)),
        (150, goes(0, None, Some(UI))),
        (1150, Event::Freq { cpu: CpuId(0), freq: KHz(2_064_000) }),
        (2150, new(RT, "irq/7")),
        (2150, Event::Prio { task: RT, prio: 49 }),
        (2150, wakes(RT)),
        (2160, goes(0, Some((UI, SwitchOut::Preempted)), Some(RT))),
        (2560, goes(0, Some((RT, SwitchOut::Sleeping)), Some(UI))),
        (3000, Event::Irq { cpu: CpuId(0), enters: true }),
        (3040, Event::Irq { cpu: CpuId(0), enters: false }),
        (3160, goes(0, Some((UI, SwitchOut::Sleeping)), None)),
        (9000, goes(4, None, None)),
    ]
}

fn near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() < 1e-6
}

#[test]
fn an_activation_is_walked_and_its_parts_are_its_length() {
    let all = survey(walk(0), Whence::Described, &activation());
    assert_eq!((all.speeds, all.walked.len()), (Speeds::Described, 1));
    let one = &all.walked[0];
    assert!(one.whole && near(one.took_ms(), 3.06) && near(one.parts.took_ms(), 3.06), "{one:?}");
    let of = |part: Part| one.parts.ms(part);
    // A small CPU of the M1 has 459 of 1024 at its highest frequency, 2064 MHz.
    let (slow, fast) = (459.0 / 1024.0 * 600.0 / 2064.0, 459.0 / 1024.0);
    assert!(near(of(Part::IdleExit), 0.05) && near(of(Part::StrictTask), 0.4), "{one:?}");
    assert!(near(of(Part::Interrupted), 0.04), "{one:?}");
    let close = |found: f64, wanted: f64| (found - wanted).abs() < 2e-3;
    assert!(close(of(Part::Work), slow + (1.01 + 0.56) * fast), "{one:?}");
    assert!(close(of(Part::LowFrequency), fast - slow), "{one:?}");
    assert!(close(of(Part::SmallCpu), (1.0 - fast) * 2.57), "{one:?}");
    let did: Vec<(u64, Did)> = one.steps.iter().map(|s| ((s.to - s.from) / US, s.did)).collect();
    let (low, high) = (Did::Ran(Some(KHz(600_000))), Did::Ran(Some(KHz(2_064_000))));
    let wait = Did::Waited(Part::StrictTask, Some((RT, Name::of("irq/7"))));
    assert_eq!(
        did,
        [
            (50, Did::Waited(Part::IdleExit, None)),
            (1000, low),
            (1010, high),
            (400, wait),
            (600, high)
        ]
    );
}

#[test]
fn a_thread_is_counted_by_who_woke_it_ran_it_and_kept_it_waiting() {
    let all = survey(Wanted::default(), Whence::Described, &activation());
    let [ui, rt] = &all.threads[..] else { panic!("{:?}", all.threads) };
    assert_eq!((ui.task, ui.switches, ui.wakeups, ui.activations, ui.moves), (UI, 2, 1, 1, 0));
    assert!(near(ui.parts.running_ms(), 2.61) && near(ui.parts.waiting_ms(), 0.45), "{ui:?}");
    assert!(ui.waited.is_some_and(|w| w.max == 0.05 && w.min == 0.05), "after a preemption: none");
    assert_eq!(ui.waited_for, [(RT, Name::of("irq/7"), 0.4)]);
    assert_eq!((rt.task, rt.wakeups), (RT, 1));
    assert!(near(all.all.took_ms(), 3.06 + 0.41), "{:?}", all.all);
}

/// A loss in the midst of it: nobody knows what came then, and nothing is counted for it.
#[test]
fn what_is_lost_is_nobodys_time_and_an_activation_across_it_is_not_whole() {
    let mut events = activation();
    let at = events.iter().position(|(us, _)| *us == 2560).expect("there");
    events.insert(at, (2200, Event::Unseen { cpu: CpuId(0) }));
    let all = survey(walk(0), Whence::Described, &events);
    let ui = all.threads.iter().find(|t| t.task == UI).expect("seen");
    assert!(near(ui.parts.waiting_ms(), 0.05 + 0.04) && ui.activations == 0, "{ui:?}");
    assert!(all.walked.iter().all(|one| !one.whole) && all.walked.len() == 2, "{:?}", all.walked);
}

#[test]
fn a_trace_that_tells_no_frequency_has_no_speed() {
    let events: Vec<_> =
        activation().into_iter().filter(|(_, e)| !matches!(e, Event::Freq { .. })).collect();
    for whence in [Whence::Described, Whence::Seen] {
        let all = survey(walk(0), whence, &events);
        assert_eq!(all.speeds, Speeds::Unknown);
        assert!(near(all.walked[0].parts.ms(Part::Unrated), 2.57), "{:?}", all.walked);
        assert_eq!(all.walked[0].parts.ms(Part::Work), 0.0);
    }
    let seen = survey(Wanted::default(), Whence::Seen, &activation());
    assert_eq!(seen.speeds, Speeds::Frequencies, "how big CPUs are nobody says");
}

#[test]
fn activations_that_are_not_longer_than_asked_are_not_walked() {
    assert_eq!(survey(walk(4000 * US), Whence::Described, &activation()).walked.len(), 0);
    assert_eq!(survey(walk(3000 * US), Whence::Described, &activation()).walked.len(), 1);
}

/// First seen as it leaves its CPU, or as it comes to it: since when it was awake the trace does not tell.
#[test]
fn a_thread_that_was_there_before_has_no_activation_until_it_wakes() {
    let events = [
        (10, new(UI, "ui")),
        (10, goes(0, Some((UI, SwitchOut::Sleeping)), None)),
        (20, new(RT, "rt")),
        (20, goes(1, None, Some(RT))),
        (30, goes(1, Some((RT, SwitchOut::Sleeping)), None)),
    ];
    let all = survey(Wanted::default(), Whence::Seen, &events);
    for thread in &all.threads {
        assert_eq!((thread.activations, thread.waited), (0, None), "{thread:?}");
    }
    assert!(near(all.all.running_ms(), 0.01) && near(all.all.waiting_ms(), 0.0), "{:?}", all.all);
}

/// A trace of sched_switch alone: how long a task waited before it ran, and since when it is awake, nobody can say.
#[test]
fn without_wakeups_no_time_counts_from_one() {
    let events: Vec<_> =
        activation().into_iter().filter(|(_, e)| !matches!(e, Event::Wakeup { .. })).collect();
    let again = events.iter().filter(|(us, _)| *us > 0).map(|(us, e)| (us + 9000, *e));
    let events: Vec<_> = events.iter().copied().chain(again.skip(1)).collect();
    let all = survey(walk(0), Whence::Described, &events);
    for thread in &all.threads {
        assert_eq!((thread.waited, thread.activations, thread.wakeups), (None, 0, 0), "{thread:?}");
        assert!(thread.parts.running_ms() > 0.0);
    }
    assert!(!all.walked.is_empty() && all.walked.iter().all(|one| !one.whole));
}

#[test]
fn a_frequency_counts_from_when_it_is_told() {
    let mut events = activation();
    events.remove(1);
    let all = survey(Wanted::default(), Whence::Seen, &events);
    let little: Vec<_> = all.freqs[0].1.iter().map(|(freq, ms)| (freq.0, *ms)).collect();
    assert_eq!(little, [(2_064_000, 7.85)], "before 1.15 ms it is not known");
    assert_eq!(all.freqs[1].1, [], "nobody tells of the big ones");
}
