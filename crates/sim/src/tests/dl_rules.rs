//! Tests of the placements of deadline tasks, and of the other rules for them: no bandwidth is lost
//! or counted twice, no task is where it may not be, and what EDF's test admits misses nothing.

use super::classes::{Runs, SPIN, cpus, run};
use super::generate::experiments;
use super::properties::run_checked;
use super::{Bytes, experiment};
use crate::{Simulator, draws};
use proptest::prelude::*;
use risetime_kernel::units::{CpuId, Span};
use risetime_model::settings::Value;
use risetime_model::workload::{Policy, TaskSpec};
use risetime_model::{Platform, Workload};
use risetime_trace::{Backend, Why};
use std::sync::Arc;

const PLACEMENTS: [&str; 7] =
    ["gedf", "partitioned-ff", "partitioned-wf", "clustered", "apedf-ff", "apedf-wf", "bl-cbs"];
/// Placements that promise each task a CPU on which it is in time.
const FOR_GOOD: [&str; 5] = ["partitioned-ff", "partitioned-wf", "apedf-ff", "apedf-wf", "bl-cbs"];
const FREQUENCIES: [&str; 3] = ["grub-pa", "admitted", "max"];
/// All of a CPU may be reserved, and the fair server takes nothing of it.
const WHOLE: &str = "linux-7.2+sched_rt_runtime_us=1000000+fair_server_runtime_ns=0+noise=off";

/// A task that works for `run` µs at full speed in each period of `period` µs, and has a reservation of `runtime`. Before it
/// begins it asks for that, and sleeps until all have.
fn periodic(comm: &str, run: u64, runtime: u64, period: u64) -> String {
    format!(
        r#""{comm}": {{"policy": "SCHED_DEADLINE", "dl-runtime": {runtime}, "dl-period": {period}, "phases": {{
            "asks": {{"loop": 1, "sleep": 50000}},
            "works": {{"loop": -1, "timer": {{"ref": "unique", "period": {period}}}, "run": {run}}}}}}}"#
    )
}

/// Delays a task's start by so many µs.
fn after(task: &str, us: u64) -> String {
    task.replacen('{', &format!(r#"{{"delay": {us}, "#), 1)
}

/// An XU4 without what EDF's test knows nothing of: leaving an idle state (up to 0.7 ms) and another frequency (0.14 ms) take no time.
fn prompt_xu4() -> Platform {
    let mut platform = Platform::load("odroid-xu4").expect("built in");
    for domain in &mut platform.domains {
        domain.idle.clear();
        domain.fast_switch = true;
        domain.opps.iter_mut().for_each(|opp| opp.latency = Span(0));
    }
    platform
}

/// Runs the tasks on that platform, under schedutil.
fn on(tasks: &str, policy: &str, ms: u64) -> Result<Runs, String> {
    let platform = prompt_xu4();
    let workload = Workload::parse(&format!(r#"{{"tasks": {{{tasks}}}}}"#), "t").expect("tasks");
    let e = experiment(platform, workload, policy, &[], Span::from_ms(ms));
    let mut runs = Runs::default();
    Simulator.run(&e, &mut runs).map(|_| runs).map_err(|e| e.to_string())
}

proptest! {
    #![proptest_config(draws::config(280))]

    /// Whatever tasks do (sleep, wake, exit, change their affinity and their reservation): after every event the sums of each CPU are those
    /// of its tasks, its highest class runs, and nobody is where its affinity does not allow it.
    #[test]
    fn each_placement_keeps_its_books(
        mut e in experiments(),
        place in 0..PLACEMENTS.len(),
        frequency in 0..4usize,
        order in any::<bool>(),
        seed in 1..20u64,
    ) {
        let unknown = e.platform.domains.iter().any(|d| d.opps.iter().any(|o| o.power.0 == 0));
        let workload = Arc::make_mut(&mut e.workload);
        let mut n = seed;
        workload.hotplug.clear();
        // (A machine with affinities has no deadline tasks.)
        for task in workload.tasks.iter_mut().chain(&mut workload.forked) {
            task.attr.cpus = None;
            task.phases.iter_mut().for_each(|phase| phase.attr.cpus = None);
        }
        for (i, task) in workload.tasks.iter_mut().enumerate() {
            let mut reservation = |share: u64| {
                n = n * 7 % 19 + 1;
                let period = Span::from_us(2000 + n * 1000);
                let (runtime, reclaim) = (Span(period.0 / share), n.is_multiple_of(5));
                Policy::Deadline { runtime, deadline: period, period, reclaim }
            };
            match i % 3 {
                0 | 1 => task.attr.policy = Some(reservation(60)),
                _ => task.attr.policy = Some(Policy::Fifo { priority: i as u8 + 1 }),
            }
            // Another reservation, later; or out of the class and back.
            if let [.., last] = &mut task.phases[..] && i % 2 == 0 {
                last.attr.policy = Some(if (seed + i as u64).is_multiple_of(3) {
                    Policy::Other { slice: None }
                } else {
                    reservation(70)
                });
            }
        }
        let mut set = |name: &str, value: &str| {
            e.settings.insert(name, Value::Name(value.into()));
        };
        let place = PLACEMENTS[place];
        if !(unknown && place == "bl-cbs") {
            set("dl_placement", place);
        }
        if let Some(frequency) = FREQUENCIES.get(frequency) && e.policy.kernel >= risetime_kernel::KernelRev::new(4, 17) {
            set("dl_frequency", frequency);
        }
        if order {
            set("class_order", "rt-dl");
        }
        // A drawn machine may have no partition: that is said.
        match Simulator.run(&e, &mut ()) {
            Err(e) if e.to_string().contains("is refused") => return Ok(()),
            other => prop_assert!(other.is_ok(), "{:?}", other.err().map(|e| e.to_string())),
        }
        let checker = run_checked(&e)?;
        prop_assert!(checker.wrong.is_empty(), "{:?}", checker.wrong);
    }
}

/// Draws a set whose sum is at most that share of an XU4, and each task of which fits a big CPU: work, runtime, period in µs.
fn set(seed: u64, percent: u64) -> Vec<(u64, u64, u64)> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut dice = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (all, mut left) = (4 * 1024 + 4 * 377, (4 * 1024 + 4 * 377) * percent / 100);
    let mut tasks = Vec::new();
    while left > 10 && tasks.len() < 40 {
        let u = (10 + dice(all / 12)).min(left);
        left -= u;
        let period = 1000 * [5, 8, 10, 16, 20, 25, 40, 50, 100][dice(9) as usize];
        let runtime = period * u / 1024;
        if runtime >= 100 {
            // A frequency that is on its way up takes its time: what is reserved is a little more than what is done.
            tasks.push((runtime * 95 / 100, runtime, period));
        }
    }
    tasks
}

fn tasks_of(set: &[(u64, u64, u64)]) -> String {
    let all: Vec<String> = set
        .iter()
        .enumerate()
        .map(|(i, (run, runtime, period))| periodic(&format!("t{i}"), *run, *runtime, *period))
        .collect();
    all.join(", ")
}

/// The time by which the jobs of a set were late at most, in ns, all but the first, which only ask.
fn outcome(runs: &Runs, set: &[(u64, u64, u64)]) -> u64 {
    let late = |i: usize| {
        let responses = runs.responses(&format!("t{i}"));
        // It asks first.
        responses.into_iter().skip(1).map(|r| r.saturating_sub(set[i].2 * 1000)).max().unwrap_or(0)
    };
    (0..set.len()).map(late).max().unwrap_or(0)
}

#[test]
fn what_is_admitted_to_a_cpu_misses_nothing() {
    let mut admitted = [0; 4];
    for seed in 1..=12 {
        let set = set(seed, 45 + 4 * (seed % 10));
        for (i, place) in
            ["partitioned-ff", "partitioned-wf", "apedf-ff", "apedf-wf"].into_iter().enumerate()
        {
            let frequency = FREQUENCIES[seed as usize % 3];
            let policy = format!("{WHOLE}+dl_placement={place}+dl_frequency={frequency}");
            let runs = match on(&tasks_of(&set), &policy, 1000) {
                Ok(runs) => runs,
                // No partition was found.
                Err(e) => {
                    assert!(e.contains("is refused"), "{e}");
                    continue;
                }
            };
            let mut own = runs.moves.iter().filter(|m| m.0.index() < set.len());
            let fallback = own.any(|m| matches!(m.2, Why::LaterRq | Why::DlPush | Why::DlPull));
            assert!(!fallback, "{policy}");
            admitted[i] += 1;
            // Under GRUB-PA frequencies change while a job runs. The kernel charges for all the time since it last looked (a
            // tick, at most) by the frequency in force when it looks: a budget may be used up early.
            let charged = frequency == "grub-pa" && !runs.throttled.is_empty();
            assert!(outcome(&runs, &set) == 0 || charged, "{seed} {policy}");
        }
    }
    assert!(admitted.iter().all(|n| *n >= 6), "{admitted:?}");
}

/// Writes the set with deadlines of so many per cent of the period; returns these, too.
fn constrained(set: &[(u64, u64, u64)], percent: impl Fn(usize) -> u64) -> (String, Vec<u64>) {
    let due: Vec<u64> = set
        .iter()
        .enumerate()
        .map(|(i, t)| (t.2 * percent(i) / 100).max(t.1 * 1024 / 377 + 1).min(t.2))
        .collect();
    let of = |(i, (run, runtime, period)): (usize, &(u64, u64, u64))| {
        let due = format!("\"dl-deadline\": {}, \"dl-period\"", due[i]);
        let task = periodic(&format!("t{i}"), *run, *runtime, *period);
        // Whoever wakes between a deadline and the next period has to wait for that one: it begins a period behind where it asks.
        task.replacen("\"dl-period\"", &due, 1).replacen("\"sleep\": 50000", "\"sleep\": 120000", 1)
    };
    (set.iter().enumerate().map(of).collect::<Vec<_>>().join(", "), due)
}

/// Counts the jobs that took longer than `due`, of all but the first, which only asks.
fn late(runs: &Runs, due: &[u64]) -> usize {
    let of = |(i, due): (usize, &u64)| {
        runs.responses(&format!("t{i}")).into_iter().skip(1).filter(|r| *r > due * 1000).count()
    };
    due.iter().enumerate().map(of).sum()
}

#[test]
fn early_deadlines_are_kept_by_what_is_due_within_any_time() {
    let (mut admitted, mut refused, mut by_gedf) = (0, 0, 0);
    for seed in 1..=40 {
        let set = set(seed, 55 + seed);
        let (tasks, due) = constrained(&set, |i| 20 + (seed * 13 + 29 * i as u64) % 80);
        let policy = |place: &str| format!("{WHOLE}+governor=performance+dl_placement={place}");
        let place = FOR_GOOD[seed as usize % 5];
        match on(&tasks, &policy(place), 1000) {
            Ok(runs) => {
                admitted += 1;
                assert_eq!(late(&runs, &due), 0, "{seed} {place}");
            }
            Err(e) => {
                refused += 1;
                assert!(e.contains("is refused"), "{e}");
            }
        }
        by_gedf +=
            usize::from(on(&tasks, &policy("gedf"), 1000).is_ok_and(|runs| late(&runs, &due) > 0));
    }
    assert!(admitted >= 10 && refused >= 5 && by_gedf >= 5, "{admitted} {refused} {by_gedf}");
    // Sums alone would take these: 80 % of one CPU, of which 8 ms are due within 3.
    let of = |deadline: u64| {
        let tasks: Vec<String> = (0..4)
            .map(|i| periodic(&format!("t{i}"), 1_900, 2_000, 10_000))
            .map(|t| {
                t.replacen(
                    "\"dl-period\"",
                    &format!("\"dl-deadline\": {deadline}, \"dl-period\""),
                    1,
                )
            })
            .collect();
        let policy = format!("{WHOLE}+dl_placement=partitioned-ff");
        let e = super::classes::experiment_of(cpus(1), &tasks.join(", "), &policy, 500);
        Simulator.run(&e, &mut ()).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!((of(8_000), of(10_000)), (Ok(()), Ok(())));
    assert!(of(7_999).is_err_and(|e| e.contains("partitioned-ff finds no CPU")));
}

#[test]
fn partitioned_priorities_keep_what_response_times_admit() {
    let (mut admitted, mut refused) = ([0; 3], 0);
    for seed in 1..=36 {
        let set = set(seed, 30 + seed);
        let by = ["rm", "dm", "fifo"][seed as usize % 3];
        let whole = by != "dm";
        let (tasks, due) =
            constrained(&set, |i| if whole { 100 } else { 40 + (29 * i as u64) % 60 });
        let place = ["partitioned-ff", "partitioned-wf"][seed as usize / 3 % 2];
        let policy = format!("{WHOLE}+governor=performance+dl_as={by}+dl_placement={place}");
        match on(&tasks, &policy, 1000) {
            Ok(runs) => {
                admitted[seed as usize % 3] += 1;
                assert_eq!(late(&runs, &due), 0, "{seed} {policy}");
                for i in 0..set.len() {
                    let turns = runs.turns(&format!("t{i}"));
                    assert!(turns.windows(2).all(|w| w[0].0 == w[1].0), "t{i} is bound: {turns:?}");
                }
            }
            Err(e) => {
                refused += 1;
                let wanted =
                    format!("dl_placement={place} finds no CPU that it may run on on which all");
                assert!(e.contains(&wanted) && e.contains("under a fixed priority"), "{e}");
            }
        }
    }
    assert!(admitted.iter().all(|n| *n >= 3) && refused >= 5, "{admitted:?} {refused}");
}

#[test]
fn a_bound_task_is_free_again_when_it_is_no_real_time_task() {
    let phases = |more: &str| {
        format!(
            r#""t": {{"policy": "SCHED_DEADLINE", "dl-runtime": 3000, "dl-period": 10000, "phases": {{
                "bound": {{"loop": 20, "run": 2000, "timer": {{"ref": "unique", "period": 10000}}}}{more}}}}}"#
        )
    };
    let free = r#", "free": {"policy": "SCHED_OTHER", "loop": 50, "run": 900, "sleep": 1100}"#;
    let spin =
        format!(r#""hog": {{"policy": "SCHED_FIFO", "cpus": [0], "delay": 300000, {SPIN}}}"#);
    let policy = format!("{WHOLE}+dl_as=rm+dl_placement=partitioned-ff");
    let runs = run(cpus(2), &[phases(free), spin.clone()].join(", "), &policy, 600);
    let turns = runs.turns("t");
    assert!(turns.iter().filter(|t| t.1 < 190_000).all(|t| t.0 == 0), "{turns:?}");
    assert!(turns.iter().any(|t| t.1 > 301_000 && t.0 == 1), "it goes elsewhere: {turns:?}");
}

#[test]
fn priorities_are_global_or_partitioned() {
    let of = |arg: &str| {
        let platform = Platform::load("odroid-xu4").expect("built in");
        let policy = risetime_model::Policy::from_arg(arg).expect("a policy");
        crate::resolve(&platform, &policy).err().map(|e| e.to_string())
    };
    for place in ["clustered", "apedf-ff", "bl-cbs"] {
        let error = of(&format!("linux-7.2+dl_as=rm+dl_placement={place}")).expect("no");
        assert!(
            error.contains(&format!("`dl_placement` is {place}, which is for deadlines")),
            "{error}"
        );
        assert_eq!(of(&format!("linux-7.2+dl_as=edf+dl_placement={place}")), None);
    }
    assert_eq!(of("linux-7.2+dl_as=rm+dl_placement=gedf"), None);
    assert_eq!(of("linux-7.2+dl_as=fifo+dl_placement=partitioned-wf"), None);
    // The fair class's server goes before all of them, for 50 ms at once.
    let tasks = periodic("t", 900, 1_000, 20_000);
    let with = |said: &str| {
        let policy = format!("linux-7.2+dl_as=rm+dl_placement=partitioned-ff{said}");
        on(&tasks, &policy, 200).err()
    };
    let error = with("").expect("20 ms are shorter");
    assert!(error.contains("fair_server_runtime_ns=0 takes it out"), "{error}");
    assert_eq!(with("+fair_server_runtime_ns=0"), None);
    assert_eq!(with("+class_order=rt-dl"), None, "nor where servers come behind");
}

#[test]
fn a_partitioned_task_stays_where_it_belongs() {
    let set = set(3, 50);
    for place in ["partitioned-ff", "partitioned-wf", "apedf-ff", "apedf-wf"] {
        let policy = format!("{WHOLE}+dl_placement={place}");
        let runs = on(&tasks_of(&set), &policy, 500).expect("admitted");
        for i in 0..set.len() {
            // Where it was created, and where it belongs.
            let turns = runs.turns(&format!("t{i}"));
            let moves = turns.windows(2).filter(|w| w[0].0 != w[1].0).count();
            assert!(moves <= 1, "{place}: t{i} moved {moves} times");
        }
    }
    let policy = format!("{WHOLE}+dl_placement=gedf");
    let runs = on(&tasks_of(&set), &policy, 500).expect("admitted");
    let moves: usize = (0..set.len())
        .map(|i| runs.turns(&format!("t{i}")).windows(2).filter(|w| w[0].0 != w[1].0).count())
        .sum();
    assert!(moves > set.len(), "global EDF moves them: {moves}");
}

#[test]
fn first_fit_fills_the_small_cpus_and_worst_fit_the_big_ones() {
    // 0.3 of a big CPU each: one fits a LITTLE one, of 0.368.
    let tasks: Vec<String> = (0..6)
        .map(|i| after(&periodic(&format!("t{i}"), 2_900, 3_000, 10_000), 5_000 * i))
        .collect();
    let cpus = |place: &str| {
        let policy = format!("{WHOLE}+dl_placement={place}");
        let runs = on(&tasks.join(", "), &policy, 300).expect("admitted");
        (0..6).map(|i| runs.turns(&format!("t{i}")).last().expect("it runs").0).collect::<Vec<_>>()
    };
    assert_eq!(cpus("partitioned-ff"), [0, 1, 2, 3, 4, 4]);
    assert_eq!(cpus("partitioned-wf"), [4, 5, 6, 7, 4, 5]);
}

#[test]
fn clusters_are_not_left() {
    // Six tasks of 0.3: the LITTLE island holds four of them.
    let tasks: Vec<String> =
        (0..6).map(|i| periodic(&format!("t{i}"), 2_900, 3_000, 9_000 + 1_000 * (i % 3))).collect();
    let policy = format!("{WHOLE}+dl_placement=clustered");
    let runs = on(&tasks.join(", "), &policy, 1000).expect("admitted");
    let mut islands = [0, 0];
    for i in 0..6 {
        let late: Vec<u32> =
            runs.turns(&format!("t{i}")).into_iter().skip(2).map(|t| t.0 / 4).collect();
        assert!(late.windows(2).all(|w| w[0] == w[1]), "t{i}: {late:?}");
        islands[late[0] as usize] += 1;
    }
    assert_eq!(islands[0] + islands[1], 6);
    assert!(islands[0] > 0 && islands[1] > 0, "{islands:?}");
}

#[test]
fn what_no_cpu_has_room_for_is_refused_or_late() {
    // Three of 0.66 on two CPUs: 1.98 of 2, and no partition.
    let periods = [10_000, 11_000, 13_000];
    let of_period =
        |(i, period)| periodic(&format!("t{i}"), period * 655 / 1000, period * 66 / 100, period);
    let tasks: Vec<String> = periods.into_iter().enumerate().map(of_period).collect();
    let of = |place: &str| {
        let e = super::classes::experiment_of(
            cpus(2),
            &tasks.join(", "),
            &format!("{WHOLE}+dl_placement={place}"),
            2000,
        );
        let mut runs = Runs::default();
        Simulator.run(&e, &mut runs).map(|_| runs).map_err(|e| e.to_string())
    };
    for place in FOR_GOOD {
        let error = of(place).err().expect("there is none");
        assert!(error.contains(place) && error.contains("is refused"), "{error}");
    }
    let runs = of("gedf").unwrap_or_else(|e| panic!("{e}"));
    let set = periods.map(|period| (0, 0, period));
    assert!(outcome(&runs, &set) > 0, "none can be in time always");
    let fallback = |m: &Why| matches!(m, Why::LaterRq | Why::DlPush | Why::DlPull);
    assert!(runs.moves.iter().any(|m| fallback(&m.2)), "as under global EDF");
}

/// Sets of any load on equal and unequal CPUs, beside fair servers or not, tasks that come together or one after the other: who is admitted is
/// in time, and hardly fewer sets are than a partition is found for.
#[test]
fn what_adapts_admits_what_it_keeps() {
    let (mut admitted, mut partitioned) = ([0; 3], 0);
    for seed in 1..=24 {
        let set = set(seed, 40 + 5 * (seed % 12));
        let tasks: Vec<String> = (set.iter().enumerate())
            .map(|(i, (run, runtime, period))| {
                let task = periodic(&format!("t{i}"), *run, *runtime, *period);
                if seed % 2 == 0 { after(&task, 3_000 * i as u64) } else { task }
            })
            .collect();
        let server = if seed % 3 == 0 { "" } else { "+fair_server_runtime_ns=0" };
        let of = |place: &str| {
            let policy =
                format!("linux-7.2+noise=off+governor=performance+dl_placement={place}{server}");
            on(&tasks.join(", "), &policy, 600)
        };
        for (admitted, place) in admitted.iter_mut().zip(["apedf-ff", "apedf-wf", "bl-cbs"]) {
            match of(place) {
                Ok(runs) => {
                    *admitted += 1;
                    assert_eq!(outcome(&runs, &set), 0, "{seed} {place}");
                }
                Err(e) => assert!(e.contains("is refused"), "{e}"),
            }
        }
        partitioned += i32::from(of("partitioned-ff").is_ok());
    }
    let [ff, wf, bl] = admitted;
    assert!(
        ff >= 12 && ff >= partitioned - 1 && bl >= 10 && wf >= 8,
        "{ff} {wf} {bl} of {partitioned}"
    );
}

/// Of 6 in 10 ms a CPU takes one, so that four take four: beside the fair class's servers, too.
#[test]
fn five_of_six_in_ten_have_no_four_cpus() {
    for place in FOR_GOOD {
        for (count, whole) in [(4, true), (5, false)] {
            let task = periodic("t", 5_900, 6_000, 10_000);
            let task = task.replacen('{', &format!(r#"{{"instance": {count}, "#), 1);
            let policy = format!("linux-7.2+noise=off+dl_placement={place}");
            let mut platform = cpus(4);
            platform
                .domains
                .iter_mut()
                .flat_map(|d| &mut d.opps)
                .for_each(|o| o.power.0 = o.freq.0);
            let workload =
                Workload::parse(&format!(r#"{{"tasks": {{{task}}}}}"#), "t").expect("tasks");
            let e = experiment(platform, workload, &policy, &[], Span::from_ms(500));
            let ran = Simulator.run(&e, &mut ()).map_err(|e| e.to_string());
            assert_eq!(ran.is_ok(), whole, "{place}: {:?}", ran.err());
            if let Err(e) = ran {
                assert!(e.contains(&format!("dl_placement={place} finds no CPU")), "{e}");
            }
        }
    }
}

/// Half of a CPU on each of two, and one of them is capped: whoever adapts goes where the test still holds, and nobody new is let in there.
#[test]
fn a_cap_limits_what_a_placement_counts_on() {
    let tasks = |runtime: u64| {
        let of = |i: u64| {
            let task = periodic(&format!("t{i}"), runtime - 100, runtime, 10_000);
            after(&task, 5_000 * i)
        };
        [of(0), of(1)].join(", ")
    };
    let of = |place: &str, runtime: u64| {
        let policy = format!(
            "{WHOLE}+governor=performance+dl_placement={place}+scaling_max_freq.policy0=300000+scaling_max_freq.policy4=1000000"
        );
        on(&tasks(runtime), &policy, 400)
    };
    for place in FOR_GOOD {
        // A big CPU at half its frequency has room for half of 10 ms, and no LITTLE one for more than a fourteenth.
        let runs = of(place, 4_900).unwrap_or_else(|e| panic!("{place}: {e}"));
        let last = |i: u64| runs.turns(&format!("t{i}")).last().expect("it runs").0;
        assert!(last(0) >= 4 && last(1) >= 4 && last(0) != last(1), "{place}");
        let error = of(place, 5_100).err().expect("no CPU is as fast");
        assert!(error.contains("finds no CPU"), "{place}: {error}");
    }
}

#[test]
fn a_server_goes_where_it_costs_least_and_fits() {
    let policy = format!("{WHOLE}+dl_placement=bl-cbs");
    let island = |tasks: &str, comm: &str| {
        let runs = on(tasks, &policy, 400).expect("admitted");
        let mut all: Vec<u32> = runs.turns(comm).into_iter().skip(2).map(|t| t.0 / 4).collect();
        all.dedup();
        all
    };
    assert_eq!(island(&periodic("light", 900, 1_000, 20_000), "light"), [0], "light: LITTLE");
    assert_eq!(island(&periodic("heavy", 8_000, 9_000, 20_000), "heavy"), [1], "it fits no LITTLE");
}

#[test]
fn frequencies_follow_what_is_promised() {
    // Half of a CPU is reserved, hardly any of it used.
    let tasks = periodic("dl", 100, 5_000, 10_000);
    let lowest = |frequency: &str| {
        let policy = format!(
            "{WHOLE}+dl_placement=partitioned-wf+rate_limit_us=500+dl_frequency={frequency}"
        );
        let runs = on(&tasks, &policy, 1000).expect("admitted");
        let of = runs.freqs().iter().filter(|(at, cpu, _)| *at > 200_000_000 && cpu.0 == 4);
        let mut all: Vec<u64> = of.map(|f| f.2.0).collect();
        all.sort();
        (all.len(), runs.freqs().iter().rev().find(|f| f.1 == CpuId(4)).map(|f| f.2.0))
    };
    // It is admitted for good: half the highest frequency stays.
    assert_eq!(lowest("admitted"), (0, Some(1_000_000)));
    // Active until its 0-lag time: up to half, and down again.
    let (changes, _) = lowest("grub-pa");
    assert!(changes > 50, "{changes}");
    let (_, last) = lowest("max");
    assert!(last.is_some());
    let policy = format!("{WHOLE}+dl_placement=partitioned-wf+dl_frequency=max");
    let runs = on(&tasks, &policy, 1000).expect("admitted");
    assert!(runs.freqs().iter().any(|f| f.1 == CpuId(4) && f.2.0 == 2_000_000));
}

#[test]
fn real_time_tasks_come_first_where_that_is_the_order() {
    let tasks = format!(
        r#""dl": {{"policy": "SCHED_DEADLINE", "dl-runtime": 8000, "dl-period": 10000, {SPIN}}},
           "rpc": {{"policy": "SCHED_FIFO", "priority": 1, "delay": 13500, "loop": -1, "run": 200, "timer": {{"ref": "unique", "period": 10000}}}}"#
    );
    for kernel in ["linux-6.1", "linux-7.2"] {
        let of = |order: &str| {
            run(cpus(1), &tasks, &format!("{kernel}+class_order={order}"), 1000).responses("rpc")
        };
        assert_eq!(of("rt-dl").into_iter().max(), Some(200_000), "{kernel}: it never waits");
        assert!(of("dl-rt").into_iter().max() > Some(4_000_000), "{kernel}");
    }
}

/// The fair server is a deadline: behind real-time tasks it cannot come in their way.
#[test]
fn the_fair_server_saves_nobody_from_real_time_tasks_that_come_first() {
    let tasks =
        format!(r#""fair": {{{SPIN}}}, "rt": {{"policy": "SCHED_FIFO", "delay": 5000, {SPIN}}}"#);
    let ran = |order: &str| {
        run(cpus(1), &tasks, &format!("linux-7.2+class_order={order}"), 5000)
            .ran("fair", 1000, 5000)
    };
    assert_eq!(ran("rt-dl"), 0);
    assert!(ran("dl-rt") > 150_000_000);
}

#[test]
fn priorities_in_place_of_deadlines() {
    let mut tasks = periodic("long", 30_000, 35_000, 100_000);
    // Due early, though its period is long.
    tasks += &(", ".to_string()
        + &periodic("early", 2_000, 2_500, 60_000).replacen(
            "\"dl-period\"",
            "\"dl-deadline\": 5000, \"dl-period\"",
            1,
        ));
    tasks += &(", ".to_string() + &periodic("short", 8_000, 8_500, 20_000));
    let of = |by: &str| {
        let runs = run(cpus(1), &tasks, &format!("linux-7.2+dl_as={by}"), 3000);
        ["short", "early", "long"]
            .map(|comm| runs.responses(comm).into_iter().max().unwrap_or(0) / 1_000)
    };
    let ([short, early, _], [_, dm_early, _]) = (of("rm"), of("dm"));
    assert_eq!(short, 8_000, "rm: the shortest period waits for nobody");
    assert!(early > 5_000, "rm: {early}");
    assert_eq!(dm_early, 2_000, "dm: the shortest deadline waits for nobody");
    let [short, ..] = of("fifo");
    assert!(short > 20_000, "fifo: {short}");
}

#[test]
fn unset_and_the_stock_values_are_the_same_bytes() {
    let set = set(5, 60);
    let bytes = |said: &str| {
        let platform = Platform::load("odroid-xu4").expect("built in");
        let tasks = format!(r#"{{"tasks": {{{}}}}}"#, tasks_of(&set));
        let workload = Workload::parse(&tasks, "t").expect("tasks");
        let policy = format!("{WHOLE}{said}");
        let e = experiment(platform, workload, &policy, &[], Span::from_ms(300));
        let mut bytes = Bytes::default();
        Simulator.run(&e, &mut bytes).expect("admitted");
        bytes.0
    };
    let stock = "+dl_placement=gedf+dl_frequency=grub-pa+class_order=dl-rt+dl_as=edf";
    assert!(bytes("") == bytes(stock));
    assert!(bytes("") != bytes("+dl_placement=apedf-ff"));
}

#[test]
fn what_goes_by_power_asks_for_power() {
    let mut platform = Platform::load("odroid-xu4").expect("built in");
    platform.domains[1].opps[3].power.0 = 0;
    let of = |arg: &str| {
        let policy = risetime_model::Policy::from_arg(arg).expect("a policy");
        crate::resolve(&platform, &policy).err().map(|e| e.to_string())
    };
    let error = of("linux-7.2+dl_placement=bl-cbs").expect("no power");
    assert!(error.contains("bl-cbs") && error.contains("CPU4"), "{error}");
    assert_eq!(of("linux-7.2+dl_placement=apedf-ff"), None);
    let error = of("linux-4.14+dl_frequency=admitted").expect("too old");
    assert!(error.contains("4.17"), "{error}");
}

/// Bounds of the names' order: [`TaskSpec`] attributes decide, not where a task stands.
#[test]
fn neighbours_share_a_priority_where_there_are_more_periods_than_priorities() {
    let tasks: Vec<String> =
        (0..150).map(|i| periodic(&format!("t{i}"), 100, 200, 20_000 + 100 * i)).collect();
    let workload =
        Workload::parse(&format!(r#"{{"tasks": {{{}}}}}"#, tasks.join(", ")), "t").expect("tasks");
    let policies: Vec<Policy> =
        workload.tasks.iter().filter_map(|t: &TaskSpec| t.attr.policy).collect();
    let e = experiment(cpus(1), workload, "linux-7.2+dl_as=rm", &[], Span::from_ms(1));
    let rules = crate::mech::dl_rules::of_experiment(&e);
    let fixed = rules.fixed.expect("by period");
    let given: Vec<u8> = policies
        .into_iter()
        .map(|p| match fixed.instead_of(p) {
            Policy::Fifo { priority } => priority,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(given.windows(2).all(|w| w[0] >= w[1]), "{given:?}");
    assert_eq!((given[0], given[149]), (98, 1));
}
