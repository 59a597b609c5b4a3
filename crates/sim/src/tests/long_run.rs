//! Tests of what holds over long runs: load is neither made nor lost.

use super::experiment;
use super::generate::experiments;
use super::properties::consistent_after;
use crate::draws;
use crate::state::machine::State;
use crate::{Counterfactual, Simulator, setup};
use proptest::prelude::*;
use risetime_kernel::units::{Instant, Span, TaskId, Util};
use risetime_model::{Experiment, Platform, Workload};
use risetime_trace::{Backend, Event, Header, TraceSink};

/// A PELT period, in ns.
const PERIOD: u64 = 1 << 20;

/// Follows each task's util: it never rises faster than it would if the task ran all the time on the
/// biggest CPU at its highest frequency, `1024 · (1 − y^n)` in n periods, also where it moves.
#[derive(Default)]
struct Rise {
    /// Util and when, by task; `None`: not attached yet.
    last: Vec<Option<(u64, Util)>>,
    migrations: u64,
    wrong: Vec<String>,
}

impl TraceSink for Rise {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        match *event {
            Event::PeltTask { task, util_avg, cpu, .. } => {
                let i = task.index();
                self.last.resize(self.last.len().max(i + 1), None);
                if let Some((since, before)) = self.last[i].replace((at.0, util_avg)) {
                    let most = highest(before, at.0 - since);
                    if util_avg > most {
                        self.wrong.push(format!(
                            "{at}: {task} on {cpu}: from {before} to {util_avg} in {} ns, at most {most}",
                            at.0 - since
                        ));
                    }
                }
            }
            Event::Migrate { .. } => self.migrations += 1,
            _ => {}
        }
    }
    fn end(&mut self, _: Instant) {}
}

/// The highest util after `ns` more: two periods are those that have begun before and end after.
fn highest(from: Util, ns: u64) -> Util {
    let mut util = from.0 << 10;
    for _ in 0..(ns / PERIOD + 2).min(400) {
        // y = 0.5^(1/32) = 1002.06 / 1024: rounded so that the rise is not below the kernel's.
        util = util * 1002 / 1024 + 22 * 1024 + 900;
    }
    Util((util >> 10).min(1024) + 2)
}

fn built_in(workload: &str, platform: &str, policy: &str, ms: u64) -> Experiment {
    let workload = Workload::load(workload).expect("built in");
    experiment(
        Platform::load(platform).expect("built in"),
        workload,
        policy,
        &[],
        Span::from_ms(ms),
    )
}

#[test]
fn no_migration_makes_util() {
    for (workload, platform, policy) in [
        ("phone", "pixel6", "linux-7.2"),
        ("phone", "m1", "linux-6.1"),
        ("phone", "server64", "linux-7.3"),
        ("phone", "hikey960", "linux-6.12"),
    ] {
        let mut rise = Rise::default();
        Simulator.run(&built_in(workload, platform, policy, 1000), &mut rise).expect("a run");
        assert_eq!(rise.wrong, Vec::<String>::new(), "{workload} on {platform}");
        assert!(rise.migrations > 20, "{workload} on {platform}: {} migrations", rise.migrations);
    }
}

/// The sums of each queue are those of its tasks, over seconds of a real workload.
#[test]
fn long_runs_stay_consistent() {
    for (workload, platform, policy) in [
        ("phone", "pixel6", "linux-7.3"),
        ("phone", "juno", "linux-6.8"),
        ("spinners", "laptop4", "linux-6.1"),
    ] {
        let e = built_in(workload, platform, policy, 2000);
        let looks = consistent_after(&e, 97)
            .unwrap_or_else(|wrong| panic!("{workload} on {platform}: {wrong}"));
        assert!(looks > 50, "{workload} on {platform}: {looks} looks");
    }
}

/// What sleeping and exited tasks leave behind fades to nothing on every CPU, in groups, too: the idle
/// ones do not wake for it, but are asked to look by those that are busy.
#[test]
fn blocked_load_decays_to_nothing() {
    let text = r#"{"tasks": {
        "keeps": {"cpus": [0], "loop": -1, "run": 2000, "sleep": 8000},
        "exits": {"instance": 6, "cpus": [1, 2, 3], "loop": 1, "runtime": 150000},
        "grouped": {"instance": 3, "taskgroup": "/a/b", "cpus": [1, 2, 3], "loop": 1, "runtime": 150000},
        "sleeps": {"instance": 3, "cpus": [1, 2, 3], "loop": 1, "runtime": 150000, "sleep": 1000000000}}}"#;
    for policy in ["linux-6.1", "linux-6.8", "linux-6.12", "linux-7.2", "linux-7.3"] {
        let workload = Workload::parse(text, "made").expect("a workload");
        let laptop = Platform::load("laptop4").expect("built in");
        let e = experiment(laptop, workload, policy, &[], Span::from_ms(5000));
        let mut sink = ();
        let mut engine =
            setup::simulation(&e, &mut sink, Counterfactual::default()).expect("an engine");
        let others = |engine: &crate::run::engine::Simulation<'_>| -> u64 {
            let m = &engine.k.m;
            m.cpus[1..].iter().map(|c| c.cfs_avg.avg.util_avg.0 + c.cfs_avg.avg.load_avg).sum()
        };
        engine.start();
        while engine.step(Instant(120_000_000)).expect("a run") {}
        assert!(others(&engine) > 1000, "{policy}: {} of busy CPUs", others(&engine));
        while engine.step(Instant(e.duration.0)).expect("a run") {}
        let m = &engine.k.m;
        let done = |t: u32| m.task(TaskId(t)).state != State::Runnable;
        assert!((1..13).all(done), "{policy}");
        for (i, c) in m.cpus.iter().enumerate().skip(1) {
            let avg = &c.cfs_avg.avg;
            let left = (avg.util_avg.0, avg.load_avg, avg.runnable_avg.0);
            assert_eq!(left, (0, 0, 0), "{policy}: CPU {i}");
            assert!(!c.has_blocked_load, "{policy}: CPU {i} still says that something is left");
            for g in &m.groups.list[1..] {
                let avg = &g.rq[i].avg.avg;
                assert_eq!((avg.util_avg.0, avg.load_avg), (0, 0), "{policy}: CPU {i}, a group");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 30, ..draws::config(256) })]

    #[test]
    fn util_never_rises_faster_than_pelt_lets_it(mut e in experiments()) {
        // What sets signals by hand, or makes them run faster.
        for set in ["start_util", "start_period_contrib", "sched_pelt_multiplier"] {
            e.settings.remove(set);
        }
        let mut rise = Rise::default();
        Simulator.run(&e, &mut rise).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(rise.wrong, Vec::<String>::new());
    }
}
