//! Task groups: shares, quota, load and clamps, in every generation of the kernel.

use super::experiment;
use crate::run::replay::Image;
use crate::{Counterfactual, Replay, Simulator, setup};
use risetime_kernel::units::{CpuId, GroupId, Instant, Span, TaskId, Util};
use risetime_model::{Experiment, Platform, Workload};
use risetime_trace::{Backend, Event, Header, Memory, SwitchOut, TraceSink};
use std::fmt::Write as _;

const POLICIES: [&str; 5] = ["linux-6.1", "linux-6.8", "linux-6.12", "linux-7.2", "linux-7.3"];

/// Time that each task ran from `since` on, and all of them in each 100 ms.
#[derive(Default)]
struct Ran {
    since: u64,
    now: u64,
    by_task: Vec<u64>,
    by_cpu: Vec<Option<(TaskId, u64)>>,
    periods: Vec<u64>,
}

impl Ran {
    fn leaves(&mut self, cpu: usize) {
        let Some((task, at)) = self.by_cpu.get_mut(cpu).and_then(Option::take) else { return };
        let mut at = at.max(self.since);
        self.by_task.resize(self.by_task.len().max(task.index() + 1), 0);
        while at < self.now {
            let period = (at / 100_000_000) as usize;
            let until = self.now.min((period as u64 + 1) * 100_000_000);
            self.by_task[task.index()] += until - at;
            self.periods.resize(self.periods.len().max(period + 1), 0);
            self.periods[period] += until - at;
            at = until;
        }
    }
}

impl TraceSink for Ran {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        self.now = at.0;
        if let Event::Switch { cpu, next, .. } = *event {
            self.leaves(cpu.index());
            self.by_cpu.resize(self.by_cpu.len().max(cpu.index() + 1), None);
            self.by_cpu[cpu.index()] = next.map(|task| (task, at.0));
        }
    }
    fn end(&mut self, at: Instant) {
        self.now = at.0;
        (0..self.by_cpu.len()).for_each(|cpu| self.leaves(cpu));
    }
}

/// Endless tasks, each with its group and more attributes.
fn spinners(groups: &str, tasks: &[(&str, &str)]) -> Workload {
    let mut text = format!(r#"{{ "taskgroups": {{ {groups} }}, "tasks": {{"#);
    for (i, (group, more)) in tasks.iter().enumerate() {
        let _ = write!(text, r#""t{i}": {{ "taskgroup": "{group}", {more} "run": 1000 }},"#);
    }
    Workload::parse(&(text + "} }"), "groups.json").expect("a workload")
}

fn on(platform: &str, workload: Workload, policy: &str, ms: u64) -> Experiment {
    let platform = Platform::load(platform).expect("built in");
    experiment(platform, workload, policy, &[], Span::from_ms(ms))
}

/// ms that each task ran in the last 2 s of 3.
fn ran(platform: &str, workload: Workload, policy: &str) -> Vec<u64> {
    let mut ran = Ran { since: 1_000_000_000, ..Ran::default() };
    Simulator.run(&on(platform, workload, policy, 3000), &mut ran).expect("a run");
    ran.by_task.iter().map(|ns| (ns + 500_000) / 1_000_000).collect()
}

const ON_0: &str = r#""cpus": [0],"#;

fn close(found: &[u64], wanted: &[u64], by: u64, what: &str) {
    let ok =
        found.len() == wanted.len() && found.iter().zip(wanted).all(|(f, w)| f.abs_diff(*w) <= by);
    assert!(ok, "{what}: {found:?}, wanted {wanted:?}");
}

#[test]
fn groups_share_a_cpu_by_weight_however_many_tasks_they_have() {
    for policy in POLICIES {
        let w = |a: &str, b: &str| {
            spinners(
                &format!(r#""/a": {{ "weight": {a} }}, "/b": {{ "weight": {b} }}"#),
                &[("/a", ON_0), ("/b", ON_0), ("/b", ON_0), ("/b", ON_0)],
            )
        };
        // From 7.3 a group weighs as much for each task of it that could have a CPU of its own, by its
        // runnable average, which stays a little below three tasks: two.
        // One base slice of slack.
        if policy == "linux-7.3" {
            close(&ran("m1", w("100", "100"), policy), &[667, 444, 444, 444], 6, policy);
        } else {
            close(&ran("m1", w("100", "100"), policy), &[1000, 333, 333, 333], 6, policy);
            close(&ran("m1", w("300", "100"), policy), &[1500, 167, 167, 167], 6, policy);
        }
    }
}

#[test]
fn inner_groups_share_what_their_group_has_and_nice_counts_inside() {
    for policy in POLICIES {
        let nice = r#""cpus": [0], "priority": 5,"#;
        let w = spinners(
            r#""/a": { "weight": 200 }, "/a/x": { "weight": 100 }, "/a/y": { "weight": 300 }"#,
            &[("/a/x", ON_0), ("/a/y", ON_0), ("/", ON_0), ("/a/y", nice)],
        );
        // /a: 2/3 of the CPU, from 7.3 4/5 (its three tasks weigh as two); of that x 1/4, y 3/4;
        // within y 1024 to 335.
        let a = if policy == "linux-7.3" { 1600 } else { 1333 };
        let y = a * 3 / 4;
        let wanted = [a / 4, y * 1024 / 1359, 2000 - a, y * 335 / 1359];
        close(&ran("m1", w, policy), &wanted, 8, policy);
    }
}

#[test]
fn an_idle_group_gets_next_to_nothing_beside_others_and_all_alone() {
    for policy in POLICIES {
        let groups = r#""/low": { "idle": 1 }"#;
        let beside = ran("m1", spinners(groups, &[("/low", ON_0), ("/", ON_0)]), policy);
        assert!(beside[0] <= 20 && beside[0] + beside[1] == 2000, "{policy}: {beside:?}");
        assert_eq!(ran("m1", spinners(groups, &[("/low", ON_0)]), policy), [2000], "{policy}");
    }
}

/// Over CPUs a group's weight is divided by load; a spinner of each group on both little CPUs.
#[test]
fn over_cpus_a_group_s_weight_goes_where_its_load_is() {
    for policy in POLICIES {
        let (on_0, on_1) = (ON_0, r#""cpus": [1],"#);
        let w = spinners(
            r#""/a": { "weight": 100 }, "/b": { "weight": 300 }"#,
            &[("/a", on_0), ("/b", on_0), ("/a", on_1), ("/b", on_1)],
        );
        close(&ran("m1", w, policy), &[500, 1500, 500, 1500], 12, policy);
    }
}

#[test]
fn quota_is_exact_over_many_periods_and_kept_to_a_tick_in_each() {
    for policy in POLICIES {
        let groups = r#""/q": { "quota_us": 30000, "period_us": 100000 }"#;
        for tasks in [&[("/q", ON_0)][..], &[("/q", ON_0), ("/q", r#""cpus": [1],"#)]] {
            let mut ran = Ran::default();
            let e = on("m1", spinners(groups, tasks), policy, 3000);
            Simulator.run(&e, &mut ran).expect("a run");
            let total: u64 = ran.by_task.iter().sum();
            // A tick of 1 ms on each CPU may be owed, and what a CPU keeps is not used yet.
            let slack = 6_000_000 * tasks.len() as u64;
            assert!(total.abs_diff(900_000_000) <= slack, "{policy}: {total}");
            let most = 30_000_000 + 2_000_000 * tasks.len() as u64;
            let over = ran.periods.iter().filter(|ns| **ns > most).count();
            assert_eq!(over, 0, "{policy}: {:?}", ran.periods);
        }
    }
}

/// A task that would always run is throttled in each period, for what its quota leaves.
#[test]
fn what_came_of_a_quota_is_told_at_the_end() {
    for policy in POLICIES {
        let groups = r#""/q": { "quota_us": 30000, "period_us": 100000 }, "/free": {}"#;
        let mut trace = Memory::new();
        let e = on("m1", spinners(groups, &[("/q", ON_0), ("/free", ON_0)]), policy, 1990);
        Simulator.run(&e, &mut trace).expect("a run");
        let told = trace.events().iter().filter_map(|(_, event)| match event {
            Event::Quota { group, stat } => Some((*group, *stat)),
            _ => None,
        });
        let told: Vec<_> = told.collect();
        // Groups are numbered by their paths.
        let [(GroupId(2), stat)] = told[..] else { panic!("{policy}: {told:?}") };
        // 19 ends of periods, or 20.
        assert!((18..=20).contains(&stat.throttled), "{policy}: {stat:?}");
        assert!(stat.periods >= stat.throttled, "{policy}: {stat:?}");
        let longest = stat.longest.expect("told by a simulation");
        assert!(longest <= Span::from_ms(100), "{policy}: {stat:?}");
        assert!(stat.time >= longest && stat.time.0 <= stat.throttled * longest.0, "{policy}");
        // It shares the CPU with another one: 60 ms to get 30, at most 70 throttled.
        let mean = stat.time.0 / stat.throttled / 1_000_000;
        assert!((30..=72).contains(&mean), "{policy}: {stat:?}");
    }
}

#[test]
fn the_quota_of_a_group_holds_for_those_in_it_and_leaves_the_rest_to_others() {
    for policy in POLICIES {
        let w = spinners(
            r#""/a": { "quota_us": 20000, "period_us": 50000 }, "/a/b": { "weight": 300 }"#,
            &[("/a", ON_0), ("/a/b", ON_0), ("/", ON_0)],
        );
        // 40 % of the CPU for /a, a quarter of it for its own task, roughly: who is first after a
        // distribution has more of the 20 ms.
        let ran = ran("m1", w, policy);
        close(&ran, &[200, 600, 1200], 60, policy);
        close(&[ran[0] + ran[1], ran[2]], &[800, 1200], 8, policy);
    }
}

#[test]
fn unused_quota_is_kept_up_to_the_burst() {
    for policy in POLICIES {
        let of = |burst: u64| {
            let text = format!(
                r#"{{ "taskgroups": {{ "/q": {{ "quota_us": 10000, "period_us": 50000, "burst_us": {burst} }} }},
                    "tasks": {{ "t": {{ "taskgroup": "/q", "cpus": [4], "phases": {{
                        "busy": {{ "runtime": 18000 }}, "rest": {{ "sleep": 182000 }} }} }} }} }}"#
            );
            let workload = Workload::parse(&text, "burst.json").expect("a workload");
            let mut ran = Ran::default();
            Simulator.run(&on("m1", workload, policy, 1000), &mut ran).expect("a run");
            ran.by_task[0] / 1_000_000
        };
        let (plain, burst) = (of(0), of(10_000));
        // The pool is full at first, and saves a second quota while the timer goes on once more.
        assert!(
            (80..=84).contains(&burst) && (50..=60).contains(&plain),
            "{policy}: {plain} {burst}"
        );
    }
}

/// What a group's clamps do to its tasks' own: the frequency of a light task is that of the clamp.
#[test]
fn a_group_s_clamps_restrict_its_tasks_requests() {
    let workload = |groups: &str, own: &str| {
        let text = format!(
            r#"{{ "taskgroups": {{ {groups} }}, "tasks": {{ "t": {{ "taskgroup": "/a/b", {own}
                "run": 100, "sleep": 15000 }} }} }}"#
        );
        Workload::parse(&text, "clamps.json").expect("a workload")
    };
    let clamps = |groups: &str, own: &str| {
        let e = on("m1", workload(groups, own), "linux-7.2", 100);
        let mut ran = Ran::default();
        let mut engine =
            setup::simulation(&e, &mut ran, Counterfactual::default()).expect("an engine");
        engine.run(Instant(e.duration.0)).expect("a run");
        let clamps = engine.k.m.task(TaskId(0)).clamps();
        (clamps.min.0, clamps.max.0)
    };
    assert_eq!(
        clamps(r#""/a/b": { "uclamp_min": 300 }"#, ""),
        (0, 1024),
        "its parent has none to give"
    );
    let both = r#""/a": { "uclamp_min": 200 }, "/a/b": { "uclamp_min": 300 }"#;
    assert_eq!(clamps(both, ""), (200, 1024));
    assert_eq!(clamps(both, r#""util_min": 250,"#), (250, 1024));
    let capped = r#""/a": { "uclamp_max": 400 }"#;
    assert_eq!(clamps(capped, r#""util_min": 500, "util_max": 600,"#), (400, 400));
}

/// A group's clamps where no task has any of its own: they reach the frequency as the task's would.
#[test]
fn clamps_of_a_group_alone_reach_the_frequency() {
    let in_the_end = |policy, group: &str, own: &str| {
        let text = format!(
            r#"{{ "taskgroups": {{ "/g": {{ {group} }} }}, "tasks": {{ "t": {{ "taskgroup": "/g", {own}
                "cpus": [4], "run": 6000, "sleep": 10000 }} }} }}"#
        );
        let workload = Workload::parse(&text, "clamps.json").expect("a workload");
        let mut trace = Memory::new();
        Simulator.run(&on("m1", workload, policy, 400), &mut trace).expect("a run");
        let (mut freq, mut at_its_end) = (0, 0);
        for (_, event) in trace.events() {
            match *event {
                Event::Freq { cpu: CpuId(4), freq: now } => freq = now.0,
                Event::Switch { prev: Some((TaskId(0), SwitchOut::Sleeping)), .. } => {
                    at_its_end = freq
                }
                _ => {}
            }
        }
        at_its_end
    };
    for policy in POLICIES {
        let free = in_the_end(policy, "", "");
        for (key, limit) in [("min", 700), ("max", 100)] {
            let group = in_the_end(policy, &format!(r#""uclamp_{key}": {limit}"#), "");
            let own = in_the_end(policy, "", &format!(r#""util_{key}": {limit},"#));
            assert_eq!(group, own, "{policy}, {key}");
            assert_ne!(group, free, "{policy}, {key}");
        }
    }
}

/// A lone task's load reaches the CPU whole; what it leaves behind decays with it.
#[test]
fn util_goes_up_the_hierarchy_and_moves_with_its_task() {
    for policy in POLICIES {
        let text = r#"{ "tasks": { "t": { "taskgroup": "/a/b/c", "loop": 1, "phases": {
            "here": { "cpus": [4], "runtime": 300000 }, "there": { "cpus": [5], "runtime": 5000 },
            "root": { "taskgroup": "/", "runtime": 2000 }, "rest": { "sleep": 100000 } } } } }"#;
        let workload = Workload::parse(text, "moves.json").expect("a workload");
        let e = on("m1", workload, policy, 400);
        let mut sink = Ran::default();
        let mut engine =
            setup::simulation(&e, &mut sink, Counterfactual::default()).expect("an engine");
        engine.start();
        let util = |engine: &crate::run::engine::Simulation<'_>, cpu| {
            let all = (0..4).map(GroupId).map(|g| engine.k.m.cfs_avg_of(cpu, g).avg.util_avg.0);
            all.collect::<Vec<_>>()
        };
        let mut seen = Vec::new();
        for ms in [300, 304, 306, 399] {
            while engine.step(Instant(ms * 1_000_000)).expect("a step") {}
            seen.push((util(&engine, CpuId(4)), util(&engine, CpuId(5))));
        }
        let (on_4, on_5) = (&seen[0].0, &seen[1].1);
        assert!(on_4.iter().all(|u| *u > 1000 && u.abs_diff(on_4[0]) <= 2), "{policy}: {on_4:?}");
        assert!(on_5.iter().all(|u| u.abs_diff(on_4[0]) <= 6), "{policy}: {on_5:?}");
        // What it was is taken off CPU 4 at once or at the next update, on all levels.
        assert!(seen[1].0.iter().all(|u| *u <= 4), "{policy}: left behind {:?}", seen[1].0);
        // In the root group its util is the CPU's only.
        let moved = &seen[2].1;
        assert!(moved[0] > 1000 && moved[1..].iter().all(|u| *u <= 4), "{policy}: {moved:?}");
        engine.k.m.now = Instant(399_000_000);
        engine.k.rq(CpuId(5)).update_rq_clock();
        engine.k.rq(CpuId(5)).update_blocked_groups();
        engine.k.rq(CpuId(5)).update_cfs_rq();
        seen.push((Vec::new(), util(&engine, CpuId(5))));
        assert!(seen[4].1[0] < 180, "{policy}: blocked load decays: {:?}", seen[3].1);
        assert_eq!(Util(0), engine.k.m.cfs_avg_of(CpuId(0), GroupId(1)).avg.util_avg);
    }
}

/// Times at which CPU 0 leaves its idle state, and at which a task gets it.
#[derive(Default)]
struct Wakes(Vec<u64>, Vec<u64>);

impl TraceSink for Wakes {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        match *event {
            Event::Idle { cpu: CpuId(0), state: None } => self.0.push(at.0),
            Event::Switch { cpu: CpuId(0), next: Some(TaskId(0)), .. } => self.1.push(at.0),
            _ => {}
        }
    }
    fn end(&mut self, _: Instant) {}
}

/// The timer of a period runs on the CPU where it was started, and wakes it; it goes on until nobody
/// has asked for time in a whole period.
#[test]
fn a_period_s_timer_wakes_an_idle_cpu_until_nobody_needs_it() {
    let text = r#"{ "taskgroups": { "/q": { "quota_us": 30000, "period_us": 100000 } }, "tasks": { "t": {
        "taskgroup": "/q", "cpus": [0], "loop": 1, "run": 1000, "sleep": 900000, "run": 1 } } }"#;
    for policy in POLICIES {
        let workload = Workload::parse(text, "rest.json").expect("a workload");
        let mut wakes = Wakes::default();
        let e = on("m1", workload, policy, 500);
        Simulator.run(&e, &mut wakes).expect("a run");
        let latency = e.platform.domains[0].idle.iter().map(|s| s.exit_latency.0).max();
        for period in 1..5 {
            let end = period * 100_000_000;
            let within = end..=end + latency.unwrap_or(0);
            let woken = wakes.0.iter().any(|at| within.contains(at));
            assert_eq!(woken, period <= 2, "{policy}: end of period {period}: {:?}", wakes.0);
        }
    }
}

/// Quotas begin anew where another trace had it.
#[test]
fn periods_end_where_the_image_says() {
    for policy in POLICIES {
        let groups = r#""/q": { "quota_us": 30000, "period_us": 100000 }"#;
        let image = Image { periods: vec![(GroupId(1), Span::from_ms(37))], ..Image::default() };
        let replay = Replay { image: Some(image), free_idle_exit: true, ..Replay::default() };
        let mut wakes = Wakes::default();
        let e = on("m1", spinners(groups, &[("/q", ON_0)]), policy, 500);
        replay.run(&e, &mut wakes).expect("a run");
        for end in [37_000_000, 137_000_000, 237_000_000] {
            assert!(wakes.1.contains(&end), "{policy}: {end}: {:?}", wakes.1);
        }
    }
}

/// A task that is to leave does so behind the interrupt in which its quota was found used up, not in the middle of it.
#[test]
fn what_a_quota_takes_from_it_finds_no_task_half_gone() {
    let workload = r#"{"tasks": {
        "a": {"loop": -1, "runtime": 1000, "taskgroup": "/a/b"},
        "b": {"loop": -1, "run": 2641, "timer": {"ref": "unique", "period": 4357}, "taskgroup": "/a/b/c"}},
        "taskgroups": {
            "/a": {"quota_us": 35000, "period_us": 31000}, "/a/b": {"quota_us": 3000, "period_us": 3000}, "/a/b/c": {}}}"#;
    let workload = Workload::parse(workload, "quota.json").expect("a workload");
    let mut platform = Platform::load("hikey620").expect("built in");
    platform.domains[0].cpus.truncate(1);
    platform.hz = 100;
    for (policy, profile) in
        POLICIES.iter().flat_map(|p| crate::NOISE_PROFILES.iter().map(move |n| (*p, *n)))
    {
        let noise = [("noise", risetime_model::settings::Value::Name(profile.into()))];
        let e = experiment(platform.clone(), workload.clone(), policy, &noise, Span::from_ms(300));
        for seed in 0..20 {
            super::properties::run_checked(&Experiment { seed, ..e.clone() }).expect(policy);
        }
    }
}
