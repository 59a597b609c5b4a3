//! MuQSS: who gets how much, who preempts whom, and that no CPU idles while somebody may run there.

use super::Bytes;
use super::classes::{Runs, SPIN, cpus, experiment_of, run};
use super::experiment;
use super::generate::experiments;
use crate::state::machine::Cpu;
use crate::{Counterfactual, Simulator, draws, setup};
use proptest::prelude::*;
use risetime_kernel::muqss::{Entity, Tunables};
use risetime_kernel::units::{CpuId, Instant, Span, TaskId};
use risetime_model::Experiment;
use risetime_model::settings::Value;
use risetime_trace::{Backend, Why};

const MUQSS: &str = "muqss-4.14";
/// A slice, in ms.
const SLICE_MS: f64 = 6.291_456;

fn spin(nice: i32) -> String {
    format!(r#"{{"priority": {nice}, {SPIN}}}"#)
}

/// The share of a CPU that the first of busy tasks of these nice values gets, by the rule itself:
/// equal slices, the earliest deadline next.
fn share_by_rule(nices: &[i8]) -> f64 {
    let tunables = Tunables::default();
    let mut tasks: Vec<(Entity, i8, u64)> = nices
        .iter()
        .map(|nice| {
            let mut e = Entity::default();
            e.time_slice_expired(&tunables, 0, *nice);
            (e, *nice, 0)
        })
        .collect();
    let (mut now, slice) = (0, tasks[0].0.left_ns());
    for _ in 0..20_000 {
        let next = (0..tasks.len()).min_by_key(|i| tasks[*i].0.deadline).expect("some");
        now += slice;
        let (entity, nice, slices) = &mut tasks[next];
        entity.time_slice_expired(&tunables, now, *nice);
        *slices += 1;
    }
    tasks[0].2 as f64 / 20_000.0
}

#[test]
fn shares_follow_the_ratios_of_nice_values() {
    for (high, low, others) in [(-20, 0, 1), (-10, 0, 1), (0, 5, 1), (0, 19, 1), (-20, 0, 10)] {
        let tasks = format!(
            r#""high": {}, "low": {{"instance": {others}, "priority": {low}, {SPIN}}}"#,
            spin(high.into())
        );
        let got = run(cpus(1), &tasks, MUQSS, 20_000).ran("high", 0, 20_000) as f64 / 20e9;
        let nices: Vec<i8> =
            std::iter::once(high).chain(std::iter::repeat_n(low, others)).collect();
        let wanted = share_by_rule(&nices);
        assert!(
            (got - wanted).abs() < 0.015,
            "{high} beside {others} of {low}: {got}, by rule {wanted}"
        );
    }
    // MuQSS.c says of nice 19 beside nice 0: 3 %.
    let low = 1.0 - share_by_rule(&[0, 19]);
    assert!((0.025..0.035).contains(&low), "{low}");
}

#[test]
fn equals_take_turns_of_a_slice() {
    let tasks = format!(r#""a": {}, "b": {}"#, spin(0), spin(0));
    let runs = run(cpus(1), &tasks, MUQSS, 100);
    let (a, b) = (runs.turns("a"), runs.turns("b"));
    for (i, turn) in a.iter().chain(&b).filter(|t| t.2 < 95_000).enumerate() {
        let ms = (turn.2 - turn.1) as f64 / 1000.0;
        assert!((ms - SLICE_MS).abs() < 0.2, "turn {i}: {ms}");
    }
    assert!(a.len() > 6 && b.len() > 6);
}

/// With `rr_interval` twice as long turns are, too; shares are not.
#[test]
fn rr_interval_is_the_length_of_turns() {
    let tasks = format!(r#""a": {}, "b": {}"#, spin(0), spin(5));
    let runs = run(cpus(1), &tasks, "muqss-4.14+rr_interval=30", 10_000);
    let shortest = runs.turns("b").iter().map(|t| t.2 - t.1).min().expect("turns");
    assert!((31_000..33_000).contains(&shortest), "{shortest}");
    let short = run(cpus(1), &tasks, MUQSS, 10_000).ran("a", 0, 10_000) as f64;
    let ratio = runs.ran("a", 0, 10_000) as f64 / short;
    assert!((0.98..1.02).contains(&ratio), "{ratio}");
}

/// A task that slept long has an old deadline, and comes at once; one of SCHED_BATCH does not, and
/// an idle one gives way to all.
#[test]
fn a_woken_task_preempts_by_its_deadline() {
    let tasks = |policy: &str| {
        format!(
            r#""busy": {}, "late": {{"policy": "{policy}", "delay": 51000, "loop": -1, "runtime": 100, "sleep": 20000}}"#,
            spin(0)
        )
    };
    let longest = |policy: &str| {
        let runs = run(cpus(1), &tasks(policy), MUQSS, 2000);
        runs.responses("late").into_iter().skip(1).max().expect("it wakes")
    };
    assert!(longest("SCHED_OTHER") < 200_000, "{}", longest("SCHED_OTHER"));
    assert!(longest("SCHED_BATCH") > 1_000_000, "{}", longest("SCHED_BATCH"));
    let tasks = format!(
        r#""idle": {{"policy": "SCHED_IDLE", {SPIN}}}, "t": {{"delay": 50000, "loop": -1, "runtime": 3000, "sleep": 3000}},
           "batch": {{"policy": "SCHED_BATCH", "delay": 50000, "loop": -1, "runtime": 3000, "sleep": 3000}}"#
    );
    let runs = run(cpus(1), &tasks, MUQSS, 1050);
    let all = ["t", "batch", "idle"].map(|t| runs.ran(t, 50, 1050));
    assert!(all.iter().sum::<u64>() > 999_000_000, "{all:?}");
    let alone = runs.responses("t").into_iter().max().expect("it wakes");
    assert!(alone < 10_000_000, "an idle task delays nobody: {alone}");
}

/// Real-time and deadline tasks come before it, SCHED_RR's slice and throttling are their own class's.
#[test]
fn higher_classes_come_first() {
    let tasks = r#"
        "fair": {"loop": 1, "run": 200000},
        "low": {"policy": "SCHED_FIFO", "priority": 5, "delay": 20000, "loop": 1, "run": 30000},
        "dl": {"policy": "SCHED_DEADLINE", "dl-runtime": 2000, "dl-period": 10000, "delay": 25000, "loop": 1, "run": 1000}"#;
    let runs = run(cpus(1), tasks, MUQSS, 400);
    assert_eq!(runs.turns("low")[0].1, 20_000);
    assert_eq!(runs.turns("fair")[0], (0, 0, 20_000));
    assert_eq!(runs.ran("low", 20, 51), 30_000_000);
    let tasks =
        format!(r#""fair": {{{SPIN}}}, "rt": {{"policy": "SCHED_FIFO", "delay": 5000, {SPIN}}}"#);
    let fair = run(cpus(1), &tasks, MUQSS, 2100).ran("fair", 1005, 2005);
    assert!((48_000_000..=50_000_000).contains(&fair), "{fair}");
}

/// A task goes from one class to the other and back, and its nice value changes as it waits and runs.
#[test]
fn attributes_change_as_it_goes() {
    let tasks = format!(
        r#""busy": {}, "t": {{"loop": -1, "phases": {{
            "a": {{"priority": 5, "runtime": 20000}},
            "b": {{"policy": "SCHED_FIFO", "priority": 3, "runtime": 10000}},
            "c": {{"policy": "SCHED_BATCH", "runtime": 5000}},
            "d": {{"policy": "SCHED_OTHER", "priority": -5, "runtime": 20000, "sleep": 1000}}}}}}"#,
        spin(0)
    );
    let runs = run(cpus(1), &tasks, MUQSS, 3000);
    let (busy, t) = (runs.ran("busy", 0, 3000), runs.ran("t", 0, 3000));
    assert_eq!(busy + t, 3_000_000_000, "one of them always runs");
    assert!(t > 300_000_000, "{t}");
}

fn moves(runs: &Runs, of: Why) -> usize {
    runs.moves.iter().filter(|m| m.2 == of).count()
}

/// Three busy tasks on two CPUs, none of which begins with another: each gets two thirds, as every look is at
/// both queues. Where the other CPU's lock is held, a look gives it up.
#[test]
fn looks_take_the_earliest_deadline_of_all_cpus_unless_its_lock_is_held() {
    let tasks = format!(
        r#""t-0": {{{SPIN}}}, "t-1": {{"delay": 1700, {SPIN}}}, "t-2": {{"delay": 3100, {SPIN}}}"#
    );
    let with = |set: &str| run(cpus(2), &tasks, &format!("{MUQSS}{set}"), 3000);
    let free = with("");
    for t in ["t-0", "t-1", "t-2"] {
        let ms = free.ran(t, 0, 3000) / 1_000_000;
        assert!((1900..2100).contains(&ms), "{t}: {ms} ms");
    }
    assert!(moves(&free, Why::EarliestDeadline) > 100);
    let many = r#""t": {"instance": 6, "loop": -1, "runtime": 700, "sleep": 300}"#;
    let taken = |set: &str| {
        moves(&run(cpus(2), many, &format!("{MUQSS}{set}"), 1000), Why::EarliestDeadline)
    };
    let all = taken("");
    let (held, lazy) = (taken("+rq_lock_ns=1000000"), taken("+sched_interactive=0"));
    assert!(held * 2 < all, "{held} of {all}");
    assert!(lazy < all, "only from longer queues: {lazy} of {all}");
}

#[test]
fn yield_does_what_its_type_says() {
    let tasks =
        format!(r#""polite": {{"loop": -1, "runtime": 1000, "yield": ""}}, "busy": {}"#, spin(0));
    let got = [0, 1, 2].map(|n| {
        let runs = run(cpus(1), &tasks, &format!("{MUQSS}+sched_yield_type={n}"), 2000);
        (runs.turns("polite").len(), runs.ran("polite", 0, 2000) / 1_000_000)
    });
    let [no, better, expire] = got;
    assert!(no.1.abs_diff(better.1) < 10, "nobody has an earlier deadline than who runs: {got:?}");
    assert!((900..1100).contains(&no.1), "{got:?}");
    assert!(expire.1 < 400, "each 1 ms costs it a turn: {got:?}");
}

#[test]
fn settings_of_muqss_need_it_and_it_needs_a_kernel_without_the_fair_server() {
    for (policy, words) in [
        ("linux-4.14+rr_interval=6", "is a setting of sched_fair_class=muqss"),
        ("linux-7.2+sched_fair_class=muqss", "fair server"),
        ("muqss-4.14+tracker=walt", "no tracker but its own"),
    ] {
        let policy = risetime_model::Policy::from_arg(policy).expect("a policy");
        let e = crate::resolve(&cpus(1), &policy).expect_err("refused").to_string();
        assert!(e.contains(words), "{e}");
    }
}

/// The governor follows the queue's load, not PELT: a CPU that has been busy for long is at its top.
#[test]
fn schedutil_follows_the_load_of_the_queue() {
    let platform = cpus(1);
    let top = platform.domains[0].freq_max();
    let tasks = format!(r#""t": {{"delay": 10000, {SPIN}}}"#);
    let mut e = experiment_of(platform, &tasks, MUQSS, 500);
    e.settings.insert("governor", Value::Name("schedutil".into()));
    let mut runs = Runs::default();
    Simulator.run(&e, &mut runs).expect("a run");
    assert_eq!(runs.freqs().last().map(|f| f.2), Some(top));
}

/// A generated workload under MuQSS.
fn under_muqss(e: &Experiment) -> Experiment {
    let (platform, workload) = ((*e.platform).clone(), (*e.workload).clone());
    experiment(platform, workload, MUQSS, &[], Span::from_ms(100))
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 300, ..draws::config(48) })]

    #[test]
    fn it_is_deterministic_and_no_cpu_idles_for_long_beside_waiting_tasks(e in experiments()) {
        let e = under_muqss(&e);
        let bytes = || {
            let mut sink = Bytes::default();
            Simulator.run(&e, &mut sink).map(|_| sink.0).map_err(|e| e.to_string())
        };
        prop_assert_eq!(bytes(), bytes());
        let mut nobody = ();
        let Ok(mut engine) = setup::simulation(&e, &mut nobody, Counterfactual::default()) else {
            return Ok(());
        };
        engine.start();
        let mut since: Vec<(TaskId, Instant)> = Vec::new();
        while let Ok(true) = engine.step(Instant(e.duration.0)) {
            let m = &engine.k.m;
            for task in (0..m.tasks.len() as u32).map(TaskId) {
                prop_assert!(m.fair_entity(m.task(task).cpu, task).is_none(), "the fair class has nobody");
            }
            for cpu in (0..m.cpus.len() as u32).map(CpuId) {
                let Some(rq) = &m.cpu(cpu).slots.muqss else { continue };
                if let Some(curr) = rq.curr {
                    prop_assert_eq!(m.cpu(cpu).curr, Some(curr));
                }
                let keys: Vec<u64> = rq.queue.iter().map(|(key, _)| key).collect();
                prop_assert!(keys.is_sorted());
            }
            // Somebody waits, though a CPU idles that may run it: two were woken for it at once, or a
            // real-time task came before it ran. Once its deadline is past it is the first at the next look there.
            let idle = m.cpu_idle_map();
            let fair = |c: &&Cpu| c.curr.is_some_and(|curr| !m.class_of(curr).is_above_fair());
            let waiting: Vec<TaskId> = m
                .cpus
                .iter()
                .filter(fair)
                .flat_map(|c| c.slots.muqss.as_ref().expect("on").queue.iter())
                .map(|(_, task)| task)
                .filter(|task| m.task(*task).allowed.intersects(&idle))
                .collect();
            since.retain(|(task, _)| waiting.contains(task));
            for task in waiting {
                match since.iter().find(|(t, _)| *t == task) {
                    None => since.push((task, m.now)),
                    Some((_, from)) => {
                        let waits = m.now.since(*from);
                        let least = Tunables::default().prio_deadline_diff(m.task(task).nice);
                        let most = Span(least) + Span::from_ms(7);
                        prop_assert!(waits < most, "{}: {task} has waited {waits:?}", m.now);
                    }
                }
            }
        }
    }
}
