//! Cache-aware scheduling: who gathers, who does not, and where that is no question.

use super::spread::platform;
use super::{Bytes, experiment};
use crate::mech::cache;
use crate::run::engine::Simulation;
use crate::{Counterfactual, setup};
use risetime_kernel::units::{CpuId, Instant, Span, TaskId};
use risetime_model::{Platform, Policy, Workload};
use risetime_trace::{Event, Header, TraceSink, Why};

const OFF: &str = "sched_cache=0";

/// Log of how long CPUs of each cache, of four CPUs, had a task in the second half of the run, and
/// who was moved why.
#[derive(Default)]
struct Log {
    half: u64,
    since: [Option<u64>; 8],
    busy: [u64; 2],
    whys: Vec<Why>,
}

impl TraceSink for Log {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        match event {
            Event::Switch { cpu, next, .. } => {
                let since = std::mem::replace(
                    &mut self.since[cpu.index()],
                    next.map(|_| at.0.max(self.half)),
                );
                self.busy[cpu.index() / 4] +=
                    since.map_or(0, |since| at.0.saturating_sub(since.max(self.half)));
            }
            Event::Migrate { why, .. } => self.whys.push(*why),
            _ => {}
        }
    }
    fn end(&mut self, at: Instant) {
        for cpu in 0..8 {
            self.event(at, &Event::Switch { cpu: CpuId(cpu), prev: None, next: None });
        }
    }
}

/// A platform of two caches of four CPUs alike.
fn two_caches() -> Platform {
    platform("0-7", r#"llc = { cpus = "0-7", each = 4 }"#)
}

fn after<R>(
    policy: &str,
    tasks: &str,
    ms: u64,
    test: impl FnOnce(&Simulation<'_>) -> R,
) -> (R, Log) {
    let workload = Workload::parse(&format!(r#"{{"tasks": {{{tasks}}}}}"#), "made");
    let workload = workload.expect("a workload");
    let e = experiment(two_caches(), workload, policy, &[], Span::from_ms(ms));
    let mut log = Log { half: e.duration.0 / 2, ..Log::default() };
    let mut engine = setup::simulation(&e, &mut log, Counterfactual::default()).expect("an engine");
    engine.run(Instant(e.duration.0)).expect("a run");
    let found = test(&engine);
    drop(engine);
    log.end(Instant(e.duration.0));
    (found, log)
}

fn preferred(e: &Simulation<'_>) -> Option<u32> {
    e.k.m.sched_cache().and_then(|cache| cache.pref_llc())
}

/// Three threads that are busy six ms of ten: 45 % of a cache.
const THREE: &str = r#""t": {"instance": 3, "loop": -1, "run": 6000, "sleep": 4000}"#;

#[test]
fn threads_of_a_process_gather_under_one_cache() {
    for kernel in ["linux-7.2", "linux-7.3"] {
        let (llc, log) = after(kernel, THREE, 2000, preferred);
        let llc = llc.expect("one is preferred") as usize;
        let (own, other) = (log.busy[llc], log.busy[1 - llc]);
        assert!(own > 1_500_000_000 && other == 0, "{kernel}: {own}, {other}");
        assert!(log.whys.contains(&Why::Llc), "{kernel}: {:?}", log.whys);
        let (llc, log) = after(&format!("{kernel}+{OFF}"), THREE, 2000, preferred);
        let [a, b] = log.busy;
        assert!(llc.is_none() && a > 500_000_000 && b > 500_000_000, "{kernel}, off: {a}, {b}");
        assert!(!log.whys.contains(&Why::Llc));
        let (llc, _) = after(&format!("{kernel}+llc_aggr_tolerance=0"), THREE, 500, preferred);
        assert_eq!(llc, None, "{kernel}: nobody may");
    }
}

/// Six threads that never sleep. Two scans count them, 6 / 2 and then half of what is left; 4 is more than 80 % of a
/// cache's four CPUs, so that there is no third, and they are spread over all of them.
#[test]
fn a_process_that_is_too_big_does_not_gather() {
    let tasks = r#""t": {"instance": 6, "loop": -1, "run": 1000000}"#;
    for kernel in ["linux-7.2", "linux-7.3"] {
        let (found, log) = after(kernel, tasks, 1000, |e| {
            let cache = e.k.m.sched_cache().expect("it is active");
            let prefers = (0..6).any(|t| cache.preferred_llc(TaskId(t)).is_some());
            (cache.pref_llc(), prefers, cache.process.nr_running_avg)
        });
        assert_eq!(found, (None, false, 4), "{kernel}");
        assert_eq!(log.busy[0] + log.busy[1], 3_000_000_000, "{kernel}: {:?}", log.busy);
        assert!(log.busy.iter().all(|busy| *busy >= 1_000_000_000), "{kernel}: {:?}", log.busy);
        // A tolerance of two caches' CPUs lets it.
        let policy = format!("{kernel}+llc_aggr_tolerance=2");
        let (llc, _) = after(&policy, tasks, 1000, preferred);
        assert!(llc.is_some(), "{policy}");
    }
}

#[test]
fn it_is_a_setting_of_7_2_and_where_there_are_several_caches() {
    let of = |platform: &Platform, policy: &str| {
        let policy = Policy::from_arg(policy).expect("a policy");
        crate::resolve(platform, &policy).map_err(|e| e.to_string())
    };
    let names = [cache::ENABLED, cache::PERIOD, cache::TOLERANCE];
    let three = |platform: &Platform, policy: &str| {
        let settings = of(platform, policy).expect("fine");
        names.map(|of| settings.get(&of))
    };
    let m1 = Platform::load("m1").expect("built in");
    let laptop4 = Platform::load("laptop4").expect("built in");
    assert_eq!(three(&m1, "linux-7.2"), [Some(1), Some(10), Some(1)]);
    assert_eq!(three(&two_caches(), "linux-7.3"), [Some(1), Some(2), Some(1)]);
    assert_eq!(three(&laptop4, "linux-7.3"), [None; 3]);
    assert_eq!(three(&m1, "linux-6.12"), [None; 3]);
    let e = of(&m1, "linux-6.12+sched_cache=1").expect_err("there is none");
    assert!(e.contains("which kernels from 7.2 on have, and this is 6.12"), "{e}");
    let e = of(&m1, "linux-7.2+sched_cache=2").expect_err("out of range");
    assert!(e.contains("wanted a whole number from 0 to 1"), "{e}");
}

/// Where all CPUs share a cache nothing of it is kept, whatever is asked for.
#[test]
fn one_cache_leaves_nothing_to_choose() {
    let bytes = |policy: &str| {
        let laptop4 = Platform::load("laptop4").expect("built in");
        let workload = Workload::parse(&format!(r#"{{"tasks": {{{THREE}}}}}"#), "made");
        let e = experiment(laptop4, workload.expect("fine"), policy, &[], Span::from_ms(300));
        let mut sink = Bytes::default();
        let mut engine =
            setup::simulation(&e, &mut sink, Counterfactual::default()).expect("an engine");
        assert!(engine.k.m.slots.cache.is_none(), "{policy}");
        engine.run(Instant(e.duration.0)).expect("a run");
        drop(engine);
        sink.0
    };
    let own = bytes("linux-7.2");
    assert!(own == bytes("linux-7.2+sched_cache=1") && own == bytes("linux-7.2+sched_cache=0"));
}

/// The big cache of a `juno` goes offline: nothing is left to choose, until a CPU of it is back.
#[test]
fn it_is_active_while_there_are_several_caches() {
    let text = r#"{"global": {"hotplug": [
        {"at_us": 100000, "cpu": 1, "online": 0}, {"at_us": 200000, "cpu": 2, "online": 0},
        {"at_us": 300000, "cpu": 1, "online": 1}]},
        "tasks": {"t": {"instance": 2, "loop": -1, "run": 3000, "sleep": 2000}}}"#;
    let e = experiment(
        Platform::load("juno").expect("built in"),
        Workload::parse(text, "made").expect("a workload"),
        "linux-7.3",
        &[],
        Span::from_ms(400),
    );
    let mut nobody = ();
    let mut engine = setup::simulation(&e, &mut nobody, Counterfactual::default()).expect("fine");
    engine.start();
    let mut active = |ms: u64| {
        while engine.step(Instant(ms * 1_000_000)).expect("a step") {}
        engine.k.m.sched_cache().is_some()
    };
    assert_eq!([50, 150, 250, 350].map(&mut active), [true, true, false, true]);
}
