//! The modules of Pixel phones: when `sched_pixel` changes a frequency, how estimates climb, what
//! vendor groups may have, and where tasks go.

use super::experiment;
use crate::state::machine::Machine;
use crate::{Simulator, setup};
use risetime_kernel::approximate::approximate_util_avg;
use risetime_kernel::pelt::Decay;
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::{Capacity, CpuId, Instant, KHz, Span, TaskId, Util};
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Workload};
use risetime_trace::{Backend, Event, Header, Hears, Memory, TraceSink, Why};

/// A task that is busy from 50 ms on, after short turns.
const RAMP: &str = r#"{"tasks": {"ramp": {"phases": {
    "naps": {"loop": 10, "run": 200, "sleep": 4800},
    "busy": {"loop": -1, "run": 10000}}}}}"#;

/// A task that is busy from 50 ms on.
const BUSY: &str = r#"{"tasks": {"busy": {"phases": {
    "waits": {"loop": 1, "sleep": 50000},
    "busy": {"loop": -1, "run": 10000}}}}}"#;

fn made(platform: &str, policy: &str, workload: &str, ms: u64) -> Experiment {
    let workload = Workload::parse(workload, "pixel.json").expect("a workload");
    let platform = Platform::load(platform).expect("built in");
    experiment(platform, workload, policy, &[], Span::from_ms(ms))
}

fn run(e: &Experiment) -> Memory {
    let mut memory = Memory::new();
    Simulator.run(e, &mut memory).expect("a run");
    memory
}

fn notes(platform: &str) -> Vec<String> {
    let e = made(platform, "pixel-6.1", RAMP, 10);
    Simulator.run(&e, &mut ()).expect("a run").notes
}

/// What a Pixel 9 Pro says of its clusters (response_time_ms_nom, read on a device in June 2026).
#[test]
fn a_run_names_the_nominal_response_times_of_a_pixel_9_and_that_nobody_held_it_to_a_kernel() {
    let all = notes("pixel9");
    assert!(all.iter().any(|n| n.contains("9 ms (cpu0), 52 ms (cpu4), 165 ms (cpu7)")), "{all:?}");
    assert!(all.iter().any(|n| n.contains("none of this policy could be held")), "{all:?}");
    let predicted = notes("pixel6");
    let found = predicted.iter().any(|n| n.contains("8 ms (cpu0), 29 ms (cpu4), 155 ms (cpu6)"));
    assert!(found, "{predicted:?}");
}

/// Requests of a domain's first CPU that changed its frequency: when, and to what.
fn changes(trace: &Memory, cpu: CpuId) -> Vec<(Instant, KHz)> {
    let mut last = KHz(0);
    let mut all = Vec::new();
    for (at, event) in trace.events() {
        if let Event::FreqRequest { cpu: of, freq, .. } = event
            && *of == cpu
            && *freq != std::mem::replace(&mut last, *freq)
        {
            all.push((*at, *freq));
        }
    }
    all
}

#[test]
fn a_lower_frequency_waits_for_its_part_of_the_down_limit_and_a_higher_one_for_the_up_limit() {
    let workload = r#"{"tasks": {"a": {"loop": -1, "run": 1500, "sleep": 2500},
        "b": {"loop": -1, "run": 300, "sleep": 1700}}}"#;
    for (up, down, pow) in [(500u64, 20_000u64, 1u32), (500, 20_000, 2), (3000, 1000, 1)] {
        let policy = format!(
            "pixel-6.1+up_rate_limit_us={up}+down_rate_limit_us={down}+down_rate_limit_scale_pow={pow}"
        );
        let trace = run(&made("pixel9", &policy, workload, 400));
        let mut downs = 0;
        for cpu in [0, 4, 7].map(CpuId) {
            for pair in changes(&trace, cpu).windows(2) {
                let ((since, now), (at, next)) = (pair[0], pair[1]);
                let ran = u128::from(at.since(since).0);
                if next > now {
                    assert!(ran >= u128::from(up * 1000), "{policy}: {pair:?}");
                    continue;
                }
                downs += 1;
                // The kernel rounds each power down, by less than a part in a thousand.
                let [to, from] = [next, now].map(|freq| u128::from(freq.0).pow(pow));
                let limit = u128::from(down * 1000) * to / from * 999 / 1000;
                assert!(ran >= limit, "{policy}: {pair:?}");
            }
        }
        assert!(downs > 3 || up == 3000, "{policy}: {downs}");
    }
}

/// Lists a task's estimates with their times.
fn estimates(trace: &Memory) -> Vec<(Instant, Util)> {
    let estimate = |(at, e): &(Instant, Event)| match e {
        Event::UtilEst { task: TaskId(0), util_est } => Some((*at, *util_est)),
        _ => None,
    };
    trace.events().iter().filter_map(estimate).collect()
}

#[test]
fn an_estimate_climbs_with_the_time_run_whatever_the_cpu_and_twice_as_fast_with_a_multiplier_of_2()
{
    let reaches = |policy: &str, util: u64| {
        let trace = run(&made("pixel6", policy, BUSY, 400));
        let at = estimates(&trace).into_iter().find(|(_, est)| *est >= Util(util));
        at.map(|(at, _)| at.0 / 1_000_000)
    };
    // 800 takes some 70 ms of running at full speed.
    let ideal =
        (0..).find(|ms| approximate_util_avg(&Decay::MS32, Util(0), ms * 1000) >= Util(800));
    let with = |m: u32| reaches(&format!("pixel-6.1+sys_rampup_multiplier={m}"), 800);
    let (once, twice) = (with(1).expect("so far"), with(2).expect("so far"));
    let ideal = ideal.expect("some time");
    assert!(once <= 50 + ideal + 4 && once + 16 >= 50 + ideal, "{once} beside {ideal}");
    assert!(twice + ideal / 2 <= once + 8, "{twice} {once}");
    assert_eq!(with(0), None, "who never sleeps has no sample either");
}

#[test]
fn a_new_task_begins_at_util_0_where_headroom_is_automatic() {
    let first = |policy: &str| {
        let trace = run(&made("pixel9", policy, RAMP, 5));
        trace.events().iter().find_map(|(_, e)| match e {
            Event::PeltTask { task: TaskId(0), util_avg, .. } => Some(util_avg.0),
            _ => None,
        })
    };
    let (auto, fixed) = (first("pixel-6.1"), first("pixel-6.1-fixed"));
    assert!(auto.is_some_and(|util| util < 30) && fixed > auto, "{auto:?} {fixed:?}");
}

fn machine(e: &Experiment, see: impl FnOnce(&Machine)) {
    let mut sink = ();
    let engine =
        setup::simulation(e, &mut sink, crate::Counterfactual::default()).expect("a machine");
    see(&engine.k.m);
}

#[test]
fn margins_are_times_or_shares_and_a_boost_out_of_reach_does_not_fit() {
    let fits = |policy: &str, cpu: u32, util: u64, min: u64| {
        let mut fits = false;
        machine(&made("pixel9", policy, RAMP, 1), |m| {
            let (c, clamps) = (m.cpu(CpuId(cpu)), Uclamp { min: Util(min), max: Util(1024) });
            fits = c.slots.pixel.fits(Util(util), clamps, c.capacities()).expect("modules");
        });
        fits
    };
    // rt(188) is 10 ms; less a tick of 4 ms that is A(0, 6000), without automatic headroom A(0,
    // 6000 · 188/1024).
    let (long, short) = (approximate_util_avg(&Decay::MS32, Util(0), 6000).0, {
        approximate_util_avg(&Decay::MS32, Util(0), 6000 * 188 / 1024).0
    });
    assert!(fits("pixel-6.1", 0, long - 1, 0) && !fits("pixel-6.1", 0, long, 0));
    let by_share = "pixel-6.1-fixed+auto_migration_margins_enable=1";
    assert!(fits(by_share, 0, short - 1, 0) && !fits(by_share, 0, short, 0));
    assert!(fits("pixel-6.1-fixed", 0, 150, 0) && !fits("pixel-6.1-fixed", 0, 151, 0));
    assert!(!fits("pixel-6.1", 0, 10, 189) && fits("pixel-6.1", 0, 10, 188));
}

#[test]
fn background_tasks_have_no_more_than_their_groups_most_and_throttle() {
    let workload = r#"{"tasks": {"bg": {"taskgroup": "/background", "loop": -1, "run": 10000}},
        "taskgroups": {"/background": {}}}"#;
    let top = |policy: &str| {
        let trace = run(&made("pixel9", policy, workload, 300));
        let at =
            |cpu| changes(&trace, CpuId(cpu)).iter().map(|(_, freq)| freq.0).max().unwrap_or(0);
        [at(0), at(4), at(7)]
    };
    let open = top("pixel-6.1");
    assert_eq!(open[2], 3_105_000, "{open:?}");
    let capped = top("pixel-6.1+bg_uclamp_max=130");
    assert!(capped[2] <= 700_000 && capped[0] < 1_950_000, "{capped:?}");
    let throttled = top("pixel-6.1+bg_ug=0+ug_bg_group_throttle=308");
    assert!(throttled[2] < open[2], "{throttled:?} {open:?}");
}

/// Lists where the second task was placed at its wakeups, and why.
fn places(trace: &Memory) -> Vec<(CpuId, Why)> {
    let place = |(_, e): &(Instant, Event)| match e {
        Event::Wakeup { task: TaskId(1), cpu, why, .. } => Some((*cpu, *why)),
        _ => None,
    };
    trace.events().iter().filter_map(place).collect()
}

#[test]
fn who_prefers_idle_leaves_a_busy_cpu_and_others_are_packed() {
    let workload = |group: &str| {
        format!(
            r#"{{"tasks": {{"long": {{"cpus": [5], "loop": -1, "run": 900, "sleep": 100}},
            "short": {{"taskgroup": "/{group}", "loop": -1, "run": 100, "sleep": 2100}}}},
            "taskgroups": {{"/{group}": {{}}}}}}"#
        )
    };
    let of = |group: &str| {
        let policy = "pixel-6.1+ta_prefer_idle=1+npi_packing=1";
        places(&run(&made("pixel9", policy, &workload(group), 400)))
    };
    let (prefers, packed) = (of("top-app"), of("foreground"));
    assert!(prefers.len() > 50 && packed.len() > 50);
    assert!(prefers.iter().all(|(cpu, _)| *cpu != CpuId(5)), "{prefers:?}");
    let beside = packed.iter().filter(|(cpu, _)| *cpu == CpuId(5)).count();
    assert!(beside > 0, "{packed:?}");
}

#[test]
fn capacities_of_opps_scale_time_and_inefficient_ones_are_skipped() {
    let mut platform = Platform::load("pixel9").expect("built in");
    let d = &mut platform.domains[0];
    // The first OPP costs more for the same work than the second.
    d.opps[0].power.0 = 54_000;
    let e = experiment(
        platform,
        Workload::parse(RAMP, "pixel.json").expect("a workload"),
        "pixel-6.1",
        &[("skip_inefficient_opps", Value::Int(1))],
        Span::from_ms(400),
    );
    machine(&e, |m| {
        assert_eq!(m.cpu(CpuId(7)).capacity, Capacity(1024));
        assert_eq!(m.domains[2].freq_scale(KHz(700_000)), 216);
        assert_eq!(m.vendor_freq(CpuId(0), Util(10), KHz(1_950_000)), KHz(955_000));
    });
    let used = changes(&run(&e), CpuId(0));
    assert!(used.iter().all(|(_, freq)| *freq != KHz(820_000)), "{used:?}");
}

#[test]
fn settings_of_the_modules_are_refused_without_them() {
    for set in ["auto_migration_margins_enable=1", "bg_uclamp_max=100", "vendor_group=ta"] {
        let policy = risetime_model::Policy::from_arg_with(&format!("linux-6.1+{set}"), &[]);
        let platform = Platform::load("pixel6").expect("built in");
        let error = crate::resolve(&platform, &policy.expect("a policy")).expect_err(set);
        let error = error.to_string();
        assert!(error.contains("modules that Pixel phones run"), "{error}");
    }
}

#[test]
fn a_real_time_task_goes_to_the_least_important_cpu_and_of_like_ones_to_an_idle_small_one() {
    let workload = |min: u32| {
        format!(
            r#"{{"tasks": {{"fair": {{"cpus": [0], "util_min": {min}, "loop": -1, "run": 900, "sleep": 100}},
            "rt": {{"policy": "SCHED_FIFO", "priority": 10, "util_min": 0, "loop": -1, "run": 50, "sleep": 3950}}}}}}"#
        )
    };
    let of = |min| places(&run(&made("pixel9", "pixel-6.1", &workload(min), 200)));
    for min in [0, 100] {
        let all = of(min);
        assert!(all.len() > 30, "{all:?}");
        // CPU 0 is busy, and with a clamp more important; idle ones are like each other but in size.
        assert!(all.iter().skip(2).all(|(cpu, _)| (1..4).contains(&cpu.0)), "{all:?}");
    }
}

/// The priority of the first task, as it was told last.
struct Priority(Option<i32>);

impl TraceSink for Priority {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, _: Instant, event: &Event) {
        if let Event::Prio { task: TaskId(0), prio } = event {
            self.0 = Some(*prio);
        }
    }
    fn end(&mut self, _: Instant) {}
    fn listens(&self) -> Hears {
        Hears::Attributes
    }
}

#[test]
fn threads_of_a_hint_session_have_the_highest_nice_value() {
    let workload = r#"{"tasks": {
        "ui": {"job": {"name": "frame", "tasks": ["render"], "hint_session": {"target": 10000}},
            "loop": -1, "run": 3000, "resume": "render", "timer": {"ref": "unique", "period": 16667}},
        "render": {"loop": -1, "suspend": "render", "run": 3000}}}"#;
    let nice = |policy: &str| {
        let mut seen = Priority(None);
        Simulator.run(&made("pixel9", policy, workload, 200), &mut seen).expect("a run");
        seen.0
    };
    assert_eq!(nice("pixel-6.1+power_hal=pixel"), Some(100));
    assert_eq!(nice("pixel-6.1+power_hal=pixel+boost_adpf_prio=0"), Some(120));
    assert_eq!(nice("pixel-6.1"), Some(120), "no power HAL hears of the session");
}
