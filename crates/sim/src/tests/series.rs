//! Each mechanism of the response-time series acts, and by its own formula: the trace of a ramp on
//! the M1 held against the arithmetic.

use super::{Bytes, experiment};
use crate::Simulator;
use risetime_kernel::approximate::approximate_util_avg;
use risetime_kernel::neighbours::util_est_faster;
use risetime_kernel::pelt::Decay;
use risetime_kernel::response_time::sugov_apply_response_time;
use risetime_kernel::units::{CpuId, Instant, Span, TaskId, Util};
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Policy, Workload};
use risetime_trace::{Backend, Event, Header, Memory, TraceSink, Why};
use std::sync::Arc;

/// One look of schedutil at the little CPUs, with the signals of CPU0 at that moment.
#[derive(Clone, Copy, Debug)]
struct Look {
    at: Instant,
    util: Util,
    why: Why,
    cfs_util: Util,
    runnable: Util,
    util_est: Util,
}

/// Facts that a test wants to know of a run.
#[derive(Default)]
struct Seen {
    looks: Vec<Look>,
    /// Time, util and estimate when a task counted as misfit for the first time.
    misfit: Option<(Instant, Util, Util)>,
    util: Util,
    util_est: Util,
    cfs: (Util, Util, Util),
    /// Every value of task 0's estimate.
    estimates: Vec<(Instant, u64)>,
    /// Every value of task 0's util.
    utils: Vec<(Instant, u64)>,
}

impl TraceSink for Seen {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        match *event {
            Event::PeltTask { task: TaskId(0), util_avg, .. } => {
                self.util = util_avg;
                self.utils.push((at, util_avg.0));
            }
            Event::UtilEst { task: TaskId(0), util_est } => {
                self.util_est = util_est;
                self.estimates.push((at, util_est.0));
            }
            Event::PeltCfs { cpu: CpuId(0), util_avg, runnable_avg, util_est, .. } => {
                self.cfs = (util_avg, runnable_avg, util_est);
            }
            Event::Misfit { task: Some(_), .. } => {
                self.misfit.get_or_insert((at, self.util, self.util_est));
            }
            Event::FreqRequest { cpu: CpuId(0), util, why, .. } => {
                let (cfs_util, runnable, util_est) = self.cfs;
                self.looks.push(Look { at, util, why, cfs_util, runnable, util_est });
            }
            _ => {}
        }
    }
    fn end(&mut self, _: Instant) {}
}

fn run(workload: Workload, policy: &str, ms: u64) -> Seen {
    let m1 = Platform::load("m1").expect("built in");
    let e = experiment(m1, workload, policy, &[], Span::from_ms(ms));
    let mut seen = Seen::default();
    Simulator.run(&e, &mut seen).expect("runs");
    seen
}

fn rampup(policy: &str) -> Seen {
    run(Workload::load("rampup").expect("built in"), policy, 1300)
}

/// The looks at which util, and nothing else, decided, each with the util schedutil started from.
fn decided(seen: &Seen) -> Vec<(Look, Util)> {
    let busy = seen.looks.iter().filter(|l| l.at > Instant(1_002_000_000) && l.cfs_util.0 > 0);
    let from = |l: &Look| (*l, l.cfs_util.max(l.runnable).max(l.util_est).min(Util(459)));
    let all: Vec<_> =
        busy.filter(|l| !matches!(l.why, Why::UclampMin | Why::UclampMax)).map(from).collect();
    assert!(all.len() > 10, "{}", all.len());
    all
}

#[test]
fn the_margin_is_where_the_formula_has_it() {
    let margins =
        [("mainline", 368), ("rfc", 445), ("threshold-tick", 238), ("60", 276), ("95%", 437)];
    for (fits_capacity, threshold) in margins {
        let policy = format!("linux-6.8+rate_limit_us=2000+fits_capacity={fits_capacity}");
        let seen = rampup(&policy);
        let (_, at, _) = seen.misfit.expect("a misfit task");
        let before = seen.utils.iter().map(|(_, u)| *u).rfind(|u| *u < at.0).expect("it rose");
        assert!(before < threshold && threshold <= at.0, "{policy}: {before}, then {at}");
    }
}

#[test]
fn headroom_is_growth_until_the_frequency_can_change_again() {
    for limit in [0, 2000, 10_000] {
        let policy = format!("linux-6.8+rate_limit_us={limit}+dvfs_headroom=update_delay");
        for (look, util) in decided(&rampup(&policy)) {
            let wanted = approximate_util_avg(&Decay::MS32, util, limit.max(1000));
            assert_eq!(look.util, wanted.min(Util(459)), "{limit} {look:?}");
        }
    }
    for (look, util) in decided(&rampup("linux-6.8")) {
        assert_eq!(look.util, Util(util.0 * 5 / 4).min(Util(459)), "mainline {look:?}");
    }
}

#[test]
fn headroom_may_be_any_share_of_util() {
    for percent in [0, 10, 60] {
        let policy = format!("linux-6.8+dvfs_headroom={percent}%");
        for (look, util) in decided(&rampup(&policy)) {
            let wanted = Util(util.0 + util.0 * percent / 100);
            assert_eq!(look.util, wanted.min(Util(459)), "{percent} {look:?}");
        }
    }
}

/// Of every form of the arithmetic: before 6.8 schedutil and the energy estimate each add the headroom
/// after the clamps, since then it is in util, and since 6.12 there is a short way without it.
#[test]
fn mainlines_margins_as_numbers_are_mainline() {
    for kernel in ["linux-6.1+uclamp_max=800", "linux-6.8", "linux-7.3+uclamp_max=800", "linux-7.3"]
    {
        let bytes = |set: &str| {
            let policy = format!("{kernel}{set}");
            let pixel6 = Platform::load("pixel6").expect("built in");
            let phone = Workload::load("phone").expect("built in");
            let e = experiment(pixel6, phone, &policy, &[], Span::from_ms(300));
            let mut bytes = Bytes::default();
            Simulator.run(&e, &mut bytes).expect("runs");
            bytes.0
        };
        let mainline = bytes("");
        assert!(mainline.lines().count() > 1000);
        assert!(mainline == bytes("+dvfs_headroom=25"), "{kernel}: headroom");
        assert!(mainline == bytes("+fits_capacity=80%"), "{kernel}: margin");
        assert!(mainline == bytes("+pelt_half_life=32"), "{kernel}: half-life");
        assert!(mainline == bytes("+eas_margin=0"), "{kernel}: what a move saves");
        assert!(mainline != bytes("+dvfs_headroom=26"), "{kernel}: another headroom");
        assert!(mainline != bytes("+fits_capacity=70"), "{kernel}: another margin");
    }
}

/// Of the phone's wakeups in four seconds, how many go elsewhere for the energy.
#[test]
fn the_larger_the_margin_the_fewer_move_for_the_energy() {
    let moved = |policy: Policy| {
        let pixel6 = Arc::new(Platform::load("pixel6").expect("built in"));
        let workload = Arc::new(Workload::load("phone").expect("built in"));
        let settings = crate::resolve(&pixel6, &policy).expect("settings");
        let (duration, phase, seed) = (Span::from_ms(4000), Span(0), 1);
        let e = Experiment { platform: pixel6, workload, policy, settings, duration, phase, seed };
        let mut memory = Memory::default();
        Simulator.run(&e, &mut memory).expect("runs");
        let for_energy = |e: &Event| matches!(e, Event::Wakeup { why: Why::Energy, .. });
        memory.events().iter().filter(|(_, e)| for_energy(e)).count()
    };
    let of = |arg: &str| moved(Policy::from_arg(arg).expect("a policy"));
    let margins = [0, 64, 256].map(|m| of(&format!("linux-7.3+eas_margin={m}")));
    assert!(margins.is_sorted_by(|a, b| a > b), "{margins:?}");
    assert_eq!(of("linux-7.3"), margins[0], "none since 6.0");
    let old = Policy::parse("schema = 1\nname = \"old\"\nkernel = \"5.15\"", "old").expect("fine");
    assert_eq!(moved(old.clone()), moved(old.clone().with("eas_margin", Value::Int(64))));
    assert_ne!(moved(old.clone()), moved(old.with("eas_margin", Value::Int(0))));
}

/// A half-life of 16 is half of 32's time to any util, and the other way round; a multiplier counts on top.
#[test]
fn util_rises_with_the_half_life() {
    let to_450 = |set: &str| {
        let seen = rampup(&format!("linux-6.8+governor=performance+first_cpu=4{set}"));
        let busy = |(at, u): &&(Instant, u64)| at.0 > 1_000_000_000 && *u >= 450;
        let (at, _) = seen.utils.iter().find(busy).expect("gets there");
        (at.0 - 1_001_000_000) as f64 / 1e6
    };
    let own = to_450("");
    for (periods, times) in [(1, 1. / 32.), (8, 0.25), (16, 0.5), (64, 2.), (100, 100. / 32.)] {
        let took = to_450(&format!("+pelt_half_life={periods}"));
        assert!((took - own * times).abs() <= 2.2 + own * times * 0.01, "{periods}: {took}, {own}");
    }
    let (both, quarter) =
        (to_450("+pelt_half_life=16+sched_pelt_multiplier=2"), to_450("+pelt_half_life=8"));
    assert!((both - quarter).abs() <= 1.0, "{both}, {quarter}");
}

/// Load goes on from where it is, that much faster or slower.
#[test]
fn a_multiplier_that_is_written_while_a_task_runs_counts_from_then_on() {
    let to_450 = |set: &str| {
        let seen = rampup(&format!("linux-6.8+governor=performance+first_cpu=4{set}"));
        let busy = |(at, u): &&(Instant, u64)| at.0 > 1_000_000_000 && *u >= 450;
        let (at, _) = seen.utils.iter().find(busy).expect("gets there");
        (at.0 - 1_001_000_000) as f64 / 1e6
    };
    let ms = |from: u32, to: u32, at: u32| {
        to_450(&format!(
            "+sched_pelt_multiplier={from}+sched_pelt_multiplier_to={to}+sched_pelt_multiplier_change_ms={at}"
        ))
    };
    let own = to_450("");
    for (to, at) in [(2, 1011), (4, 1011), (4, 1021)] {
        let before = f64::from(at) - 1001.0;
        let wanted = before + (own - before) / f64::from(to);
        let took = ms(1, to, at);
        assert!((took - wanted).abs() <= 2.2, "{to} from {at} on: {took}, wanted {wanted}");
    }
    let slower = ms(4, 1, 1004);
    let wanted = 3.0 + own - 12.0;
    assert!((slower - wanted).abs() <= 3.2, "{slower}, wanted {wanted}");
    assert_eq!(ms(1, 4, 5000), own, "not before");
}

#[test]
fn a_shorter_response_time_raises_util_before_the_headroom() {
    // The little CPUs' own is 22 ms.
    for (ms, mult) in [(11, 2048), (22, 1024), (44, 512)] {
        for (look, util) in decided(&rampup(&format!("linux-6.8+response_time_ms={ms}"))) {
            let scaled = sugov_apply_response_time(util, mult);
            assert_eq!(look.util, Util(scaled.0 * 5 / 4).min(Util(459)), "{ms} {look:?}");
        }
    }
}

#[test]
fn a_multiplied_time_halves_the_time_to_any_util() {
    let to_450 = |multiplier| {
        let policy = format!(
            "linux-6.8+governor=performance+first_cpu=4+sched_pelt_multiplier={multiplier}"
        );
        let seen = rampup(&policy);
        let (at, _) = seen
            .utils
            .iter()
            .find(|(at, u)| at.0 > 1_000_000_000 && *u >= 450)
            .expect("gets there");
        (at.0 - 1_001_000_000) as f64 / 1e6
    };
    let [one, two, four] = [1, 2, 4].map(to_450);
    assert!((28.0..31.0).contains(&one), "{one}");
    assert!((one - two - one / 2.0).abs() < 1.2, "{one} {two}");
    assert!((one - four - one * 0.75).abs() < 1.5, "{one} {four}");
}

/// The estimate while task 0 is busy, at every tick of the first burst.
fn climb(policy: &str) -> Vec<u64> {
    let seen = rampup(policy);
    let busy = seen.estimates.iter().filter(|(at, _)| *at > Instant(1_001_700_000));
    busy.map(|(_, est)| *est).collect()
}

#[test]
fn the_estimate_rises_in_plain_time_at_every_tick() {
    for multiplier in [1, 2, 3] {
        let policy = format!(
            "linux-6.8+util_est_running=1+util_est_periodic=1+rampup_multiplier={multiplier}"
        );
        let found = climb(&policy);
        let mut est = found[0];
        // Up to where it moves to a big CPU, in the middle of a tick.
        let little = found.iter().enumerate().skip(1).take_while(|(_, est)| **est < 368);
        for (n, next) in little {
            let wanted = approximate_util_avg(&Decay::MS32, Util(est), 1000 * multiplier).0;
            if n == 1 && *next != wanted {
                // What the task had run in its tick when it became busy.
                assert!(*next < wanted && *next > est, "{next} {wanted}");
                est = *next;
                continue;
            }
            assert_eq!(*next, wanted, "multiplier {multiplier}, value {n}");
            est = *next;
        }
    }
}

#[test]
fn the_climb_begins_with_the_first_rise_of_util() {
    // A PELT period lasts 8 ms at the lowest frequency: one begins with the climb.
    let policy = "linux-6.8+util_est_running=1+start_period_contrib=0";
    let onset = |periodic: &str| {
        let seen = rampup(&format!("{policy}{periodic}"));
        let start = Instant(1_001_700_000);
        let first = |all: &[(Instant, u64)]| {
            all.iter().find(|(at, u)| *at > start && *u > 0).expect("it rises").0
        };
        (first(&seen.estimates), first(&seen.utils))
    };
    let (est, util) = onset("+util_est_periodic=1");
    assert_eq!(est, util, "not before util_avg rose");
    let (est, util) = onset("");
    assert!(est.0 + 5_000_000 < util.0, "at the first tick: {est} before {util}");
}

#[test]
fn a_multiplier_of_0_switches_the_estimate_off_only_with_patch_15() {
    let base = "linux-6.8+util_est_running=1+util_est_periodic=1";
    let off = rampup(&format!("{base}+rampup_multiplier=0+util_est_off_at_0=1"));
    assert_eq!(off.estimates, [], "never anything but 0");
    let slow = rampup(&format!("{base}+rampup_multiplier=0"));
    assert!(slow.estimates.iter().any(|(_, est)| *est > 0), "sampled at sleep, never raised");
    let on = rampup(&format!("{base}+rampup_multiplier=1+util_est_off_at_0=1"));
    assert!(on.estimates.iter().any(|(_, est)| *est > 500));
}

fn tasks(json: &str) -> Workload {
    Workload::parse(&format!("{{ \"tasks\": {{ {json} }} }}"), "scenario").expect("a workload")
}

#[test]
fn a_hint_is_the_tasks_own_and_counts_only_with_sched_qos() {
    let first_500 = |policy: &str, hint: &str| {
        let task = format!(r#""busy": {{ "run": 1000000{hint} }}"#);
        let seen = run(tasks(&task), policy, 300);
        let at = seen.estimates.iter().find(|(_, est)| *est >= 500);
        at.map(|(at, _)| at.0 / 1_000_000)
    };
    let four = r#", "sched_qos": { "type": "rampup_multiplier", "value": 4 }"#;
    let base = "linux-6.8+util_est_running=1";
    let with = format!("{base}+rampup_multiplier=1");
    let (one, hinted) = (first_500(&with, ""), first_500(&with, four));
    assert_eq!((one, hinted), (Some(33), Some(8)));
    assert_eq!(first_500(base, four), one, "no sched-qos: the hint is not heard");
    assert_eq!(first_500(&format!("{base}+rampup_multiplier=4"), ""), hinted, "as the default");
    // Whoever says something is not moved by the default.
    assert_eq!(first_500(&format!("{base}+rampup_multiplier=1024"), four), hinted);
    let e = experiment(
        Platform::load("m1").expect("built in"),
        tasks(&format!(r#""busy": {{ "run": 1000{four} }}"#)),
        base,
        &[],
        Span::from_ms(5),
    );
    let notes = Simulator.run(&e, &mut ()).expect("runs").notes;
    assert!(notes.iter().any(|n| n.contains("`sched_qos` of task `busy`")), "{notes:?}");
}

/// As posted: `delta_exec` is that of the last accounting, so that what ran before another task
/// woke beside it is lost, and the estimate stays behind the running time.
#[test]
fn time_before_a_neighbours_wakeup_is_lost_as_posted() {
    let beside = |neighbour: &str| {
        let json = format!(r#""busy": {{ "cpus": [0], "run": 1000000 }}{neighbour}"#);
        let seen = run(tasks(&json), "linux-6.8+util_est_running=1+governor=performance", 60);
        seen.estimates.last().expect("it ran").1
    };
    let alone = beside("");
    let short = r#", "short": { "cpus": [0], "delay": 400, "loop": -1, "run": 10, "timer": { "ref": "unique", "period": 1000 } }"#;
    let with = beside(short);
    assert!(with + 200 < alone, "{with} of {alone}");
}

/// Every look with its reason, and every value of each task's waiting.
#[derive(Default)]
struct Reasons {
    looks: Vec<(Util, Why)>,
    waiting: [Vec<u64>; 2],
    first_util: Vec<Option<Util>>,
}

impl TraceSink for Reasons {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, _: Instant, event: &Event) {
        match *event {
            Event::FreqRequest { util, why, .. } => self.looks.push((util, why)),
            Event::WaitingAvg { task, waiting_avg } => {
                self.waiting[task.index()].push(waiting_avg.0);
            }
            Event::TaskNew { .. } => self.first_util.push(None),
            Event::PeltTask { task, util_avg, .. } => {
                self.first_util[task.index()].get_or_insert(util_avg);
            }
            _ => {}
        }
    }
    fn end(&mut self, _: Instant) {}
}

fn reasons(json: &str, policy: &str, ms: u64) -> Reasons {
    let m1 = Platform::load("m1").expect("built in");
    let e = experiment(m1, tasks(json), policy, &[], Span::from_ms(ms));
    let mut seen = Reasons::default();
    Simulator.run(&e, &mut seen).expect("runs");
    seen
}

const SHARED: &str =
    r#""a": { "cpus": [0], "run": 1000000 }, "b": { "cpus": [0], "run": 1000000 }"#;

#[test]
fn two_on_a_cpu_wait_half_the_time() {
    let seen = reasons(SHARED, "linux-6.8+governor=performance+waiting_avg=1", 1000);
    for all in &seen.waiting {
        let last = &all[all.len() - 40..];
        let mean = last.iter().sum::<u64>() / last.len() as u64;
        assert!((480..545).contains(&mean), "{mean}");
    }
    let untold = reasons(SHARED, "linux-6.8", 100);
    assert!(untold.waiting.iter().all(Vec::is_empty), "only where it is switched on");
}

#[test]
fn waiting_alone_decides_nothing_and_its_headroom_does() {
    let three = |policy: &str| {
        let one = |name: &str| {
            format!(
                r#""{name}": {{ "cpus": [0], "loop": -1, "run": 1000,
                    "timer": {{ "ref": "unique", "period": 20000 }} }}"#
            )
        };
        let json = format!("{}, {}", one("a"), one("b"));
        reasons(&json, policy, 1000).looks
    };
    let plain = three("linux-6.8+rate_limit_us=0+runnable_boost=0");
    assert_eq!(three("linux-6.8+rate_limit_us=0+runnable_boost=0+waiting_avg=1"), plain);
    let counted = three("linux-6.8+rate_limit_us=0+runnable_boost=0+waiting_headroom=1");
    assert!(counted.iter().any(|(_, why)| *why == Why::Waiting), "{counted:?}");
    assert!(!plain.iter().any(|(_, why)| *why == Why::Waiting));
    let sum = |looks: &[(Util, Why)]| {
        looks.iter().map(|(util, _)| util.0).sum::<u64>() / looks.len() as u64
    };
    assert!(sum(&counted) > sum(&plain), "{} {}", sum(&counted), sum(&plain));
}

/// With `placement=prev`, since the energy estimate of a wakeup counts as a look, as posted.
#[test]
fn a_decaying_util_gets_no_headroom() {
    let periodic = r#""p": { "cpus": [0], "loop": -1, "run": 3000, "sleep": 30000 }"#;
    let policy = "linux-6.8+rate_limit_us=0+placement=prev+no_decaying_headroom=1";
    let looks = run(tasks(periodic), policy, 1000).looks;
    let (mut last, mut decaying) = (Util(0), 0);
    for look in looks {
        let util = look.cfs_util.max(look.runnable).max(look.util_est).min(Util(459));
        let wanted = if util < last { util } else { Util(util.0 * 5 / 4) };
        assert_eq!(look.util, wanted.min(Util(459)), "{look:?} after {last}");
        decaying += usize::from(util < last);
        last = util;
    }
    assert!(decaying > 10, "{decaying}");
    let estimated = run(tasks(periodic), "linux-6.8+rate_limit_us=0+no_decaying_headroom=1", 1000);
    assert!(estimated.looks.iter().any(|l| l.why == Why::Decaying), "at its falls asleep");
}

#[test]
fn a_new_task_starts_with_nothing_on_request() {
    let first = |policy: &str| reasons(SHARED, policy, 20).first_util;
    let mainline = first("linux-6.8");
    assert!(mainline[0].is_some_and(|u| u >= Util(229)), "half the CPU: {mainline:?}");
    let series = first("linux-6.8+util_avg_0_on_fork=1");
    assert!(series.iter().all(|u| *u == Some(Util(0))), "{series:?}");
}

#[test]
fn contention_counts_unless_it_is_switched_off() {
    let most = |policy: &str| {
        let light = r#""a": { "cpus": [0], "loop": -1, "run": 2000, "sleep": 20000 },
                       "b": { "cpus": [0], "loop": -1, "run": 2000, "sleep": 20000 }"#;
        let looks = reasons(light, policy, 2000).looks;
        looks.iter().map(|(util, _)| util.0).sum::<u64>() / looks.len() as u64
    };
    let (with, without) = (most("linux-6.8"), most("linux-6.8+runnable_boost=0"));
    assert!(with > without, "{with:?} {without:?}");
    assert_eq!(most("linux-6.8+runnable_boost=1"), with);
}

/// With UTIL_EST_FASTER: what schedutil starts from is at least twice the running time's util.
#[test]
fn util_est_faster_is_twice_the_running_time() {
    let seen = rampup("linux-6.8+util_est_faster=1+rate_limit_us=0");
    let last = seen.looks.iter().rfind(|l| l.at < Instant(1_020_000_000)).expect("a look");
    let plain = rampup("linux-6.8+rate_limit_us=0");
    let without = plain.looks.iter().rfind(|l| l.at < Instant(1_020_000_000)).expect("a look");
    assert!(last.util.0 > without.util.0 + 150, "{last:?} {without:?}");
    for look in seen.looks.iter().filter(|l| l.at > Instant(1_004_000_000) && l.at <= last.at) {
        // It became busy 1.7 ms into its second.
        let ran = look.at.0 - 1_001_748_000;
        let at_least = util_est_faster(&Decay::MS32, ran).0 * 5 / 4;
        assert!(look.util.0 + 3 >= at_least.min(459), "{look:?}: {at_least}");
    }
}

#[test]
fn util_est_boost_makes_a_growing_task_misfit_earlier() {
    // A util_est of some 170, then busy.
    let grows = || {
        tasks(
            r#""t": { "loop": 1, "phases": {
                "light": { "loop": 30, "run": 3000, "sleep": 17000 },
                "busy": { "loop": -1, "run": 1000000 } } }"#,
        )
    };
    let at = |policy: &str| {
        let seen = run(grows(), policy, 1500);
        seen.misfit.map(|(at, util, est)| (at.0 / 1_000_000, util.0, est.0)).expect("misfit")
    };
    let (plain, boosted) = (at("linux-6.8"), at("linux-6.8+util_est_boost=1"));
    assert!(boosted.1 < plain.1 && boosted.0 <= plain.0, "{plain:?} {boosted:?}");
    let (_, util, est) = boosted;
    assert!(est > 0 && util + (util - est) / 2 >= 368, "{boosted:?}");
}

/// Every built-in policy runs on every built-in platform, and one with a name of the series
/// differs from the kernel below it where it says it does.
#[test]
fn every_preset_runs_on_every_platform() {
    for policy in risetime_model::library::policies() {
        for platform in risetime_model::library::platforms() {
            for workload in ["rampup", "periodic"] {
                let e = experiment(
                    Platform::load(platform.name).expect("built in"),
                    Workload::load(workload).expect("built in"),
                    policy.name,
                    &[],
                    Span::from_ms(1200),
                );
                let outcome = Simulator.run(&e, &mut ()).unwrap_or_else(|error| {
                    panic!("{} on {}: {error}", policy.name, platform.name)
                });
                assert!(outcome.events > 100, "{} on {}", policy.name, platform.name);
                let known = |note: &String| {
                    let about = [
                        "ni_random=0",
                        "tracker=walt",
                        "amd-pstate in",
                        "intel_pstate in",
                        "The Pixel modules",
                        "Nominal response times",
                    ];
                    about.iter().any(|about| note.starts_with(about))
                };
                assert!(outcome.notes.iter().all(known), "{:?}", outcome.notes);
            }
        }
    }
}

#[test]
fn a_margin_that_wraps_is_said_so() {
    let mut platform = Platform::load("m1").expect("built in");
    platform.hz = 250;
    platform.domains[0].capacity = risetime_kernel::units::Capacity(60);
    let notes = |policy: &str| {
        let workload = Workload::load("idle").expect("built in");
        let e = experiment(platform.clone(), workload, policy, &[], Span::from_ms(1));
        Simulator.run(&e, &mut ()).expect("runs").notes
    };
    let said = notes("rfc-v1");
    assert!(said.len() == 1 && said[0].contains("capacity 60 (CPU0)"), "{said:?}");
    assert_eq!(notes("linux-6.11"), Vec::<String>::new());
}

/// util_est and first util of a forked task, by the time since it was created.
#[derive(Default)]
struct Child {
    id: Option<(TaskId, Instant)>,
    first_util: Option<Util>,
    estimates: Vec<(u64, u64)>,
}

impl TraceSink for Child {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        let ours = |id: TaskId| self.id.filter(|(child, _)| *child == id).map(|(_, born)| born);
        match *event {
            Event::TaskNew { task, comm, .. } if comm == "child-0000" => self.id = Some((task, at)),
            Event::PeltTask { task, util_avg, .. } if ours(task).is_some() => {
                self.first_util.get_or_insert(util_avg);
            }
            Event::UtilEst { task, util_est } => {
                if let Some(born) = ours(task) {
                    self.estimates.push(((at.0 - born.0) / 1_000_000, util_est.0));
                }
            }
            _ => {}
        }
    }
    fn end(&mut self, _: Instant) {}
}

/// A parent that runs for 20 ms and forks a child that stays busy, each with its keys.
fn forked(policy: &str, parent: &str, child: &str) -> Child {
    let json = format!(
        r#""parent": {{ "run": 20000, "fork": "child", "sleep": 1000000{parent} }},
           "child": {{ "instance": 0, "run": 1000000{child} }}"#
    );
    let m1 = Platform::load("m1").expect("built in");
    let e = experiment(m1, tasks(&json), policy, &[], Span::from_ms(400));
    let mut seen = Child::default();
    Simulator.run(&e, &mut seen).expect("runs");
    assert!(seen.id.is_some(), "it was forked");
    seen
}

/// As posted: the parent's multiplier of 8 is its own, and the child begins with the system's.
#[test]
fn a_fork_inherits_no_hint() {
    let policy = "linux-6.11+util_est_running=1+rampup_multiplier=1";
    let eight = r#", "sched_qos": { "type": "rampup_multiplier", "value": 8 }"#;
    let first_500 = |policy: &str, parent: &str, child: &str| {
        let seen = forked(policy, parent, child);
        seen.estimates.iter().find(|(_, est)| *est >= 500).map(|(ms, _)| *ms).expect("it rises")
    };
    let alone = first_500(policy, "", "");
    // The parent's hint changes when it forks, and so where in a tick the child begins.
    let same = |ms: u64, as_: u64| ms.abs_diff(as_) <= 1;
    assert!(same(first_500(policy, eight, ""), alone), "the parent's hint stays with it");
    let own = first_500(policy, "", eight);
    assert!(own * 4 < alone, "its own counts: {own} of {alone} ms");
    // What is reset is reset to the system's default, which the child follows.
    let four = policy.replace("multiplier=1", "multiplier=4");
    let by_default = first_500(&four, eight, "");
    assert!(same(by_default, first_500(&four, "", "")));
    assert!(by_default > own && by_default * 2 < alone, "{by_default} of {alone} ms");
    // A multiplier of 0 would switch the child's util_est off, had it been inherited.
    let off = format!("{policy}+util_est_off_at_0=1");
    let zero = eight.replace("8", "0");
    assert!(same(first_500(&off, &zero, ""), alone));
}

#[test]
fn a_forked_task_starts_from_nothing_with_patch_16() {
    let first = |policy: &str| forked(policy, "", "").first_util.expect("it was queued");
    assert!(first("linux-6.11") > Util(50), "{}", first("linux-6.11"));
    assert_eq!(first("linux-6.11+util_avg_0_on_fork=1"), Util(0));
}
