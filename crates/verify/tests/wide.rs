//! The wide draw: everything comes often enough, all of it runs, and docs/wide-draw.md says how often.

use crate::page;
use risetime_kernel::KernelRev;
use risetime_lab::run;
use risetime_model::workload::{Event, Policy, TaskSpec};
use risetime_model::{Experiment, Platform, Workload};
use risetime_sim::Simulator;
use risetime_verify::{Can, Case, WIDE_ON, wide, wide_named};
use risetime_vm::dtb;
use std::collections::BTreeMap;

/// So many seeds, one case of each.
const SEEDS: u64 = 500;
/// A feature has to be in so many of them.
const OFTEN: usize = 15;

fn cases() -> impl Iterator<Item = Case> {
    (1..=SEEDS).map(|seed| wide(seed, 1, Can::ALL))
}

fn workload(case: &Case) -> Workload {
    Workload::parse(&case.workload, &case.name)
        .unwrap_or_else(|e| panic!("{e}\n{}", case.to_file()))
}

/// What a case has, in words.
fn features(case: &Case) -> Vec<String> {
    let w = workload(case);
    let mut all = Vec::new();
    let mut has = |what: &str, there: bool| {
        if there {
            all.push(what.to_string());
        }
    };
    has(&format!("platform {}", case.platform), true);
    let n = w.tasks.len();
    let crowd = match n {
        1 => "1 task",
        2 | 3 => "2 or 3 tasks",
        4..=6 => "4 to 6 tasks",
        _ => "7 to 12 tasks",
    };
    has(crowd, true);
    let tasks: Vec<&TaskSpec> = w.tasks.iter().chain(&w.forked).collect();
    let any = |like: &dyn Fn(&TaskSpec) -> bool| tasks.iter().any(|t| like(t));
    let event = |like: &dyn Fn(&Event) -> bool| {
        any(&|t| t.phases.iter().any(|p| p.events.iter().any(like)))
    };
    let pins: Vec<_> = tasks.iter().filter_map(|t| t.attr.cpus.as_ref()).collect();
    let alike = pins.windows(2).all(|two| two[0] == two[1]) && pins.len() == tasks.len() && n > 1;
    has("several tasks pinned together", alike);
    has("a pinned task beside others that are not", !pins.is_empty() && pins.len() < tasks.len());
    has("run and sleep", event(&|e| matches!(e, Event::Sleep(_))));
    has("a timer", event(&|e| matches!(e, Event::Timer { .. })));
    has("a task that never sleeps", any(&|t| never_sleeps(t)));
    for (what, kind) in [
        ("a pipeline (resume, suspend)", "stage"),
        ("a lock", "lock"),
        ("a condition (wait, signal)", "frame"),
        ("bursts", "burst"),
        ("waves", "wave"),
        ("forks", "fork"),
        ("a pool (semaphores)", "pool"),
        ("a barrier", "meet"),
        ("yield, mem", "yield"),
    ] {
        let is = |t: &TaskSpec| {
            t.comm.strip_prefix(kind).is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()))
        };
        has(what, any(&is));
    }
    has("a nice value", any(&|t| t.attr.nice.is_some_and(|n| n != 0)));
    let class = |like: &dyn Fn(&Policy) -> bool| any(&|t| t.attr.policy.as_ref().is_some_and(like));
    let sliced = |p: &Policy| {
        matches!(p, Policy::Other { slice: Some(_) } | Policy::Batch { slice: Some(_) })
    };
    has("a slice of its own", class(&sliced));
    has("SCHED_BATCH", class(&|p| matches!(p, Policy::Batch { .. })));
    has("SCHED_IDLE", class(&|p| matches!(p, Policy::Idle)));
    has("SCHED_FIFO", class(&|p| matches!(p, Policy::Fifo { .. })));
    has("SCHED_RR", class(&|p| matches!(p, Policy::Rr { .. })));
    has("SCHED_DEADLINE", class(&|p| matches!(p, Policy::Deadline { .. })));
    has("a task that comes later", any(&|t| t.delay.0 > 0));
    has("a task's clamp", any(&|t| t.attr.uclamp_min.is_some() || t.attr.uclamp_max.is_some()));
    has("groups", !w.groups.is_empty());
    has("a group within another", w.groups.iter().any(|g| g.path.matches('/').count() > 1));
    has("a group's weight", case.workload.contains("\"weight\""));
    has("a group's quota", case.workload.contains("\"quota_us\""));
    has("an idle group", case.workload.contains("\"idle\""));
    has("a group's clamp", case.workload.contains("\"uclamp_m"));
    for (what, setting) in [
        ("another governor", "+governor="),
        ("a rate limit", "+rate_limit_us="),
        ("a limited frequency", "+scaling_max_freq."),
        ("a base slice", "+base_slice_ns="),
        ("a clamp for all", "+uclamp_m"),
    ] {
        has(what, case.settings.contains(setting));
    }
    has("no setting", case.settings.is_empty());
    all
}

fn never_sleeps(task: &TaskSpec) -> bool {
    task.phases.iter().flat_map(|p| &p.events).all(|e| matches!(e, Event::Run(_)))
}

#[test]
fn everything_is_drawn_often_and_the_page_says_how_often() {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    let mut tasks: BTreeMap<usize, usize> = BTreeMap::new();
    for case in cases() {
        *tasks.entry(workload(&case).tasks.len()).or_default() += 1;
        assert!((800..=2_000).contains(&case.ms), "{}", case.ms);
        for feature in features(&case) {
            if !order.contains(&feature) {
                order.push(feature.clone());
            }
            *found.entry(feature).or_default() += 1;
        }
    }
    let rare: Vec<_> = found.iter().filter(|(_, n)| **n < OFTEN).collect();
    assert!(rare.is_empty(), "{rare:?}");
    assert_eq!(found.len(), 14 + 4 + 35, "a feature never came: {:?}", found.keys());
    assert_eq!(tasks.keys().copied().collect::<Vec<_>>(), (1..=12).collect::<Vec<_>>());
    order.sort_by_key(|what| {
        (what.starts_with("platform"), std::cmp::Reverse(found[what]), what.clone())
    });
    let row = |what: &String| format!("| {what} | {}.{} |\n", found[what] / 5, found[what] % 5 * 2);
    let rows: String = order.iter().map(row).collect();
    page::holds(
        "wide-draw.md",
        "<!-- from here on generated: BLESS=1 cargo test -p risetime-verify wide -->\n",
        "",
        &format!("\n| a case has | % |\n|---|---|\n{rows}"),
    );
}

/// What `check --platform` asks, and the device tree; then it is run.
#[test]
fn every_case_runs() {
    for case in cases() {
        let fail = |e: &dyn std::fmt::Display| -> ! { panic!("{e}\n{}", case.to_file()) };
        let e: Experiment = case.experiment(None).unwrap_or_else(|e| fail(&e));
        e.workload.bind(&e.platform).unwrap_or_else(|e| fail(&e));
        risetime_sim::supported(&e.workload).unwrap_or_else(|e| fail(&e));
        dtb::check(&e.platform).unwrap_or_else(|e| fail(&e));
        let done = run(&Simulator, &e, Default::default(), None).unwrap_or_else(|e| fail(&e));
        assert_eq!(done.result.end_ms, case.ms as f64);
        assert!(done.result.cpus.iter().any(|c| c.busy_ms > 0.0), "{}", case.to_file());
        assert!(workload(&case).without_effect.is_empty(), "{}", case.to_file());
    }
}

#[test]
fn every_generation_can_run_what_is_drawn_for_it() {
    for rev in [KernelRev::V6_1, KernelRev::V6_8, KernelRev::V6_12, KernelRev::V7_3] {
        for seed in 1..=40 {
            let case = wide(seed, 2, Can::of(rev, false));
            let e =
                case.experiment(Some(rev)).unwrap_or_else(|e| panic!("{e}\n{}", case.to_file()));
            run(&Simulator, &e, Default::default(), None)
                .unwrap_or_else(|e| panic!("{rev}: {e}\n{}", case.to_file()));
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let all: Vec<Case> = (1..=40).map(|n| wide(9, n, Can::ALL)).collect();
    for (n, case) in (1..).zip(&all) {
        assert_eq!(wide(9, n, Can::ALL), *case);
        assert_eq!(wide_named(&case.name, Can::ALL).as_ref(), Some(case));
        let others = all.iter().filter(|c| c.workload == case.workload).count();
        assert_eq!(others, 1, "{}", case.name);
        assert_ne!(wide(10, n, Can::ALL).workload, case.workload);
    }
    // Whatever draws in between: a case hangs on its seed and number alone.
    let hash = |text: &str| {
        text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        })
    };
    let bytes: String = all.iter().map(Case::to_file).collect();
    assert_eq!(
        format!("{:016x}", hash(&bytes)),
        "53df0f3229fadaed",
        "the draw has changed: so has every verdict by seed"
    );
    for wrong in [
        "wide-1",
        "wide-01-2",
        "wide-1-0",
        "wide-1-2-3",
        "wide--1",
        "wide-1-x",
        "narrow-1-2",
        "wide-1-+2",
    ] {
        assert_eq!(wide_named(wrong, Can::ALL), None, "{wrong}");
    }
}

/// What a kernel cannot do is not there, and nothing else is different.
#[test]
fn what_a_kernel_cannot_do_is_left_out() {
    let (mut clamps, mut slices, mut untouched) = (0, 0, 0);
    for seed in 1..=200 {
        let (all, old) = (wide(seed, 1, Can::ALL), wide(seed, 1, Can::of(KernelRev::V6_1, false)));
        let has = |case: &Case, what: &str| features(case).iter().any(|f| f == what);
        for never in [
            "a task's clamp",
            "a group's clamp",
            "a clamp for all",
            "a slice of its own",
            "a base slice",
        ] {
            assert!(!has(&old, never), "{never}\n{}", old.to_file());
        }
        clamps += usize::from(has(&all, "a task's clamp"));
        slices += usize::from(has(&all, "a slice of its own"));
        let without = |case: &Case| -> Vec<String> {
            let all = features(case);
            let own = |f: &String| f.contains("clamp") || f.contains("slice") || f == "no setting";
            all.into_iter().filter(|f| !own(f)).collect()
        };
        assert_eq!(without(&all), without(&old));
        untouched += usize::from(all == old);
        let modern = wide(seed, 1, Can::of(KernelRev::V7_3, true));
        assert_eq!(modern, all);
    }
    assert!(clamps > 20 && slices > 10 && untouched > 20, "{clamps} {slices} {untouched}");
}

#[test]
fn it_is_drawn_for_machines_of_every_kind() {
    let all: Vec<Platform> = WIDE_ON.iter().map(|name| Platform::load(name).unwrap()).collect();
    let kinds = |p: &Platform| {
        let mut capacities: Vec<u64> = p.domains.iter().map(|d| d.capacity.0).collect();
        capacities.sort_unstable();
        capacities.dedup();
        capacities.len()
    };
    for n in 1..=3 {
        assert!(all.iter().any(|p| kinds(p) == n), "{n} kinds of CPU");
    }
    assert!(all.iter().all(|p| (2..=8).contains(&p.nr_cpus())));
    assert!(all.iter().any(|p| p.domains.iter().all(|d| d.cpus.len() == 1)));
}

/// A file of its own says how it is run, and is the same workload.
#[test]
fn a_case_is_a_file() {
    let case = (1..).map(|n| wide(2, n, Can::ALL)).find(|c| !c.settings.is_empty()).unwrap();
    let file = case.to_file();
    assert!(file.starts_with(&format!("// {}, drawn for {}", case.name, case.platform)), "{file}");
    assert!(
        file.contains(&format!("--platform {} --seconds ", case.platform))
            && file.contains(" --set ")
    );
    assert_eq!(Workload::parse(&file, "x").unwrap().tasks, workload(&case).tasks);
}
