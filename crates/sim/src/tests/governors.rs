//! The older governors, and machines without frequency invariance.

use super::experiment;
use super::sampling::{changes, freqs, one_cpu, run};
use crate::Simulator;
use crate::cause::Cause;
use crate::kernel::governor::{self, ondemand, sampling};
use risetime_kernel::KernelRev;
use risetime_kernel::units::{Instant, Span};
use risetime_model::settings::{Name, Value};
use risetime_model::{Experiment, Platform, Workload};
use risetime_trace::{Backend, Event, Memory, Why};

/// Task of S. Muckle's mail of 3 March 2016: 33 % at the highest frequency.
const STEADY: &str =
    r#"{"tasks": {"t": {"loop": -1, "run": 3000, "timer": {"ref": "a", "period": 9000}}}}"#;
/// Busy for ever.
const BUSY: &str = r#"{"tasks": {"t": {"loop": -1, "runtime": 10000000}}}"#;

fn named(name: &str) -> Value {
    Value::Name(name.into())
}

fn trace(e: &Experiment) -> Memory {
    let mut memory = Memory::new();
    Simulator.run(e, &mut memory).expect("a run");
    memory
}

/// A governor says itself what its frequency goes by; none is known by its name.
#[test]
fn the_step_to_an_opp_is_called_by_what_the_governor_goes_by() {
    let words = |governor: &str| {
        let workload = Workload::parse(BUSY, "busy").expect("a workload");
        let (platform, set) = (one_cpu(), [("governor", named(governor))]);
        let e = experiment(platform, workload, "linux-7.2", &set, Span::from_ms(1));
        (Cause::Opp.words_in(&e).0, Cause::Opp.acts_in(&e))
    };
    for governor in governor::NAMES.iter().copied() {
        let expected = match governor {
            "ondemand" | "conservative" | "interactive" => ("thresholds and steps", true),
            "powersave" | "userspace" => ("the governor's fixed choice", true),
            "performance" => ("OPP rounding and headroom", false),
            _ => ("OPP rounding and headroom", true),
        };
        assert_eq!(words(governor), expected, "{governor}");
    }
}

// ---------------------------------------------------------------------- schedutil-2016, invariance

/// The mail's observation: "the frequency that toggles without any good reason".
#[test]
fn a_steady_task_makes_schedutil_2016_toggle_without_invariance_and_not_with_it() {
    let policy = "linux-7.2+governor=schedutil-2016";
    let toggles = |invariance: &str| {
        let set = [("sampling_rate", Value::Int(10_000)), ("freq_invariance", named(invariance))];
        changes(&run(policy, &set, STEADY, 2000), Span::from_ms(1000))
    };
    assert_eq!(toggles("yes"), 0);
    // 66 % at 2 GHz wants 3, 44 % at 3 GHz wants 2.3.
    assert!(toggles("no") > 10, "{}", toggles("no"));
}

#[test]
fn schedutil_2016_decides_once_per_sampling_rate() {
    let set = [("sampling_rate", Value::Int(50_000)), ("freq_invariance", named("no"))];
    let all = freqs(&run("linux-7.2+governor=schedutil-2016", &set, STEADY, 2000));
    assert!(all.len() > 20, "{all:?}");
    assert!(all.windows(2).skip(1).all(|w| w[1].0 - w[0].0 >= 45), "{all:?}");
}

/// In proportion between the limits, to the closest OPP: 43 % of 1 to 4 GHz are 2.3, which is 2 GHz; 1.25 · 43 % of
/// 4 GHz are 2.15, which the merged form raises to 3.
#[test]
fn schedutil_2016_rounds_to_the_closest_opp_and_adds_no_headroom() {
    let workload =
        r#"{"tasks": {"t": {"loop": -1, "run": 430, "timer": {"ref": "a", "period": 1000}}}}"#;
    let last = |governor: &str, set: &[(&str, Value)]| {
        let policy = format!("linux-7.2+governor={governor}+pelt_half_life=512");
        freqs(&run(&policy, set, workload, 6000)).last().expect("a frequency").1
    };
    assert_eq!(last("schedutil-2016", &[("sampling_rate", Value::Int(10_000))]), 2);
    assert_eq!(last("schedutil", &[]), 3);
}

/// While a real-time task runs a CPU's need is everything, and the other CPUs' of a shared policy is forgotten unless
/// they were looked at since the last decision.
#[test]
fn real_time_tasks_get_the_highest_frequency_from_schedutil_2016() {
    let workload = r#"{"tasks": {"t": {"policy": "SCHED_FIFO", "priority": 10, "loop": -1, "run": 1000,
        "timer": {"ref": "a", "period": 100000}}}}"#;
    let trace = run("linux-7.2+governor=schedutil-2016", &[], workload, 500);
    let real_time = |e: &Event| matches!(e, Event::FreqRequest { freq, why: Why::RealTime, .. } if freq.0 == 4_000_000);
    assert!(trace.events().iter().any(|(_, e)| real_time(e)));
}

/// Counts how often a wakeup goes elsewhere for the energy.
fn moves_for_energy(kernel: KernelRev, invariance: &str) -> usize {
    let workload = r#"{"tasks": {"t": {"instance": 3, "loop": -1, "run": 2000,
        "timer": {"ref": "a", "period": 16000}}}}"#;
    let workload = Workload::parse(workload, "energy.json").expect("a workload");
    let platform = Platform::load("hikey960").expect("built in");
    let set = [("freq_invariance", named(invariance))];
    let mut e = experiment(platform, workload, "linux-6.1", &set, Span::from_ms(500));
    e.policy.kernel = kernel;
    let energy = |e: &Event| matches!(e, Event::Wakeup { why: Why::Energy, .. });
    trace(&e).events().iter().filter(|(_, e)| energy(e)).count()
}

#[test]
fn without_invariance_there_is_no_energy_aware_placement_from_5_11_on() {
    assert!(moves_for_energy(KernelRev::V6_1, "yes") > 0);
    assert_eq!(moves_for_energy(KernelRev::V6_1, "no"), 0);
    assert!(moves_for_energy(KernelRev::V5_10, "no") > 0);
}

/// 1.25 times the frequency in force where it is in full use, up to 6.7: at 2 GHz that is 2.5, and so 3 GHz.
#[test]
fn without_invariance_schedutil_climbs_from_the_frequency_in_force() {
    let set = [("freq_invariance", named("no")), ("rate_limit_us", Value::Int(40_000))];
    for policy in ["linux-6.1", "linux-7.2"] {
        let all = freqs(&run(policy, &set, BUSY, 1000));
        assert_eq!(all.iter().map(|f| f.1).collect::<Vec<_>>(), [1, 2, 3, 4], "{policy}: {all:?}");
        // util is full after some 150 ms, whatever the frequency; with invariance it takes 4 times as long at 1 GHz.
        assert!(all[3].0 < 300, "{policy}: {all:?}");
    }
}

// ---------------------------------------------------------------------- schedutil of 4.7

fn of_4_7(platform: Platform, workload: &str, set: &[(&str, Value)], ms: u64) -> Memory {
    let workload = Workload::parse(workload, "old.json").expect("a workload");
    let mut e = experiment(platform, workload, "linux-6.1", set, Span::from_ms(ms));
    e.policy.kernel = KernelRev::new(4, 7);
    trace(&e)
}

/// A CPU that has gone idle counts with its last need for a tick, not as long as its util takes to fall.
#[test]
fn up_to_4_16_a_cpu_that_sleeps_counts_no_longer_than_a_tick() {
    let mut platform = one_cpu();
    platform.domains[0].cpus.push(risetime_kernel::units::CpuId(1));
    // Busy on CPU 0 for 300 ms; a little work on CPU 1 all the time.
    let workload = r#"{"tasks": {
        "big": {"cpus": [0], "loop": -1, "runtime": 300000, "sleep": 900000},
        "small": {"cpus": [1], "loop": -1, "run": 100, "timer": {"ref": "a", "period": 4000}}}}"#;
    let set = [("rate_limit_us", Value::Int(1_000))];
    let falls = |trace: &Memory| {
        let all = freqs(trace);
        all.windows(2).find(|w| w[1].0 > 290 && w[1].1 < w[0].1).map(|w| w[1].0)
    };
    let old = falls(&of_4_7(platform.clone(), workload, &set, 500));
    assert!(old.is_some_and(|ms| (300..308).contains(&ms)), "{old:?} ms");
    let workload = Workload::parse(workload, "new.json").expect("a workload");
    let new = falls(&trace(&experiment(platform, workload, "linux-6.1", &set, Span::from_ms(500))));
    assert!(new.is_none_or(|ms| ms > 315), "{new:?} ms");
}

// ---------------------------------------------------------------------- timers that make governors look (up to 4.5)

/// Task of the mail of 2014: busy, and asleep for 100 ms at a time.
const BURSTS: &str =
    r#"{"tasks": {"t": {"loop": -1, "runtime": 60000, "timer": {"ref": "a", "period": 160000}}}}"#;

fn by_timer(after: &str, workload: &str, ms: u64) -> Memory {
    let set = [
        ("load_after_idle", named(after)),
        ("sampling", named("timer")),
        ("sampling_rate", Value::Int(10_000)),
    ];
    run("linux-7.2+governor=ondemand", &set, workload, ms)
}

#[test]
fn a_deferred_timer_costs_a_sampling_period_after_a_sleep_unless_the_load_is_copied() {
    let lowest = |after: &str| {
        super::sampling::at(&by_timer(after, BURSTS, 1600), 1, Span::from_ms(160), 10)
    };
    for us in &lowest("computed")[1..] {
        assert!((9_000..11_500).contains(us), "{us} µs at 1 GHz");
    }
    assert_eq!(lowest("copy")[1..], [0; 9]);
}

/// The drop comes at the first tick after the sleep, and a whole period later the rise: "416.502130 … runs, 416.505739
/// frequency falls, 416.515742 rises".
#[test]
fn a_deferred_timer_expires_at_the_first_tick_after_the_sleep() {
    let all = freqs(&by_timer("computed", BURSTS, 1600));
    for k in 1..10 {
        let woken = 160 * k;
        let then: Vec<_> = all.iter().filter(|(ms, _)| (woken..woken + 60).contains(ms)).collect();
        assert!(matches!(then[..], [(_, 1), (_, 4)]), "{then:?}");
        assert!(then[0].0 - woken <= 2 && then[1].0 - then[0].0 == 10, "{then:?}");
    }
}

/// Nothing happens on a CPU that sleeps: the frequency that it went to sleep with stays.
#[test]
fn a_deferrable_timer_wakes_no_idle_cpu() {
    let once = r#"{"tasks": {"t": {"loop": 1, "runtime": 60000}}}"#;
    let trace = by_timer("copy", once, 2000);
    // But the timer of the fair server, a second later.
    let wakes = |(at, e): &&(Instant, Event)| {
        at.0 > 200_000_000 && matches!(e, Event::Idle { state: None, .. })
    };
    let at: Vec<u64> =
        trace.events().iter().filter(wakes).map(|(at, _)| at.0 / 1_000_000).collect();
    assert!(at.iter().all(|ms| *ms == 1000), "{at:?}");
    assert_eq!(freqs(&trace).last().map(|f| f.1), Some(4));
}

#[test]
fn what_makes_ondemand_look_and_its_defaults_follow_the_kernel() {
    let defaults = |major, minor| {
        let mut policy =
            risetime_model::Policy::from_arg("linux-6.1+governor=ondemand").expect("a policy");
        policy.kernel = KernelRev::new(major, minor);
        let s = crate::resolve(&one_cpu(), &policy).expect("settings");
        let name = |of: &Name| s.get(of).expect("a name").to_string();
        let rate = s.get(&ondemand::SAMPLING_RATE).expect("a number");
        (name(&sampling::SAMPLING), name(&sampling::AFTER_IDLE), rate)
    };
    let of = |sampling: &str, after: &str, rate| (sampling.to_string(), after.to_string(), rate);
    assert_eq!(defaults(3, 15), of("timer", "computed", 10_000));
    assert_eq!(defaults(3, 16), of("timer", "copy", 10_000));
    assert_eq!(defaults(4, 6), of("scheduler", "copy", 10_000));
    assert_eq!(defaults(4, 14), of("scheduler", "copy", 2_000));
}

/// A CPU of a policy samples for all, and the others leave it at that.
#[test]
fn cpus_that_share_a_clock_are_sampled_once_a_period() {
    let mut platform = one_cpu();
    platform.domains[0].cpus.push(risetime_kernel::units::CpuId(1));
    let workload = r#"{"tasks": {"t": {"instance": 2, "loop": 1, "runtime": 500000}}}"#;
    let workload = Workload::parse(workload, "two.json").expect("a workload");
    let set = [("sampling", named("timer")), ("sampling_rate", Value::Int(10_000))];
    let e = experiment(platform, workload, "linux-7.2+governor=ondemand", &set, Span::from_ms(400));
    let trace = trace(&e);
    let asks = trace.events().iter().filter(|(_, e)| matches!(e, Event::FreqRequest { .. }));
    assert!((36..=42).contains(&asks.clone().count()), "{}", asks.count());
}

// ---------------------------------------------------------------------- interactive

fn interactive(set: &[(&str, Value)], workload: &str, ms: u64) -> Memory {
    run("linux-6.1+governor=interactive", set, workload, ms)
}

#[test]
fn interactive_jumps_when_a_cpu_is_full_and_falls_after_min_sample_time() {
    let all = freqs(&interactive(&[], BURSTS, 1600));
    // A look every 20 ms; at the first one the CPU had to leave its idle state, and was not full yet.
    assert_eq!(all[..3], [(0, 1), (20, 2), (40, 4)], "{all:?}");
    let sleepy = r#"{"tasks": {"t": {"loop": 1, "runtime": 60000}}}"#;
    let falls = |min_sample_time: i64| {
        let set = [("min_sample_time", Value::Int(min_sample_time))];
        freqs(&interactive(&set, sleepy, 1000)).last().copied().expect("a frequency")
    };
    let (soon, late) = (falls(0), falls(300_000));
    assert_eq!((soon.1, late.1), (1, 1));
    // At the first look that the slack timer makes of the sleep, and at the first one 300 ms after the rise.
    assert!(soon.0 < 200 && (320..460).contains(&late.0), "{soon:?} {late:?}");
}

/// With a hispeed_freq of its own it rises there first, and on after above_hispeed_delay.
#[test]
fn interactive_waits_above_hispeed_freq() {
    let rises = |delay: Value| {
        let set = [("hispeed_freq", Value::Int(2_000_000)), ("above_hispeed_delay", delay)];
        let all = freqs(&interactive(&set, BUSY, 1000));
        assert_eq!(all.iter().map(|f| f.1).collect::<Vec<_>>(), [1, 2, 3, 4], "{all:?}");
        [all[2].0 - all[1].0, all[3].0 - all[2].0]
    };
    assert_eq!(rises(Value::Int(20_000)).map(|ms| ms / 20), [1, 1]);
    assert_eq!(rises(Value::Int(90_000)).map(|ms| ms / 20), [5, 5]);
    // From 3 GHz on longer.
    assert_eq!(rises(named("20000 3000000:200000")).map(|ms| ms / 20), [1, 10]);
}

/// The steady task is busy for 33 % of the time at 4 GHz, 66 % at 2 and 44 % at 3.
#[test]
fn interactive_keeps_each_cpu_below_its_target_load() {
    let last = |targets: Value| {
        let set = [("target_loads", targets), ("go_hispeed_load", Value::Int(100))];
        freqs(&interactive(&set, STEADY, 3000)).last().expect("a frequency").1
    };
    assert_eq!(last(Value::Int(90)), 2);
    assert_eq!(last(Value::Int(60)), 3);
    assert_eq!(last(named("90 2000000:35")), 4);
}

/// Without slack nobody wakes the CPU to lower the frequency it sleeps at.
#[test]
fn the_slack_timer_wakes_an_idle_cpu_that_wants_more_than_the_lowest_frequency() {
    let once = r#"{"tasks": {"t": {"loop": 1, "runtime": 60000}}}"#;
    let last = |slack: i64| {
        let set = [("timer_slack", Value::Int(slack))];
        freqs(&interactive(&set, once, 900)).last().copied().expect("a frequency")
    };
    assert_eq!(last(-1).1, 4);
    assert_eq!(last(80_000).1, 1);
    assert!(last(300_000).0 > last(80_000).0);
}

#[test]
fn a_boost_keeps_interactive_at_hispeed_freq() {
    let idle = r#"{"tasks": {"t": {"loop": -1, "runtime": 500, "sleep": 9500}}}"#;
    let with = |set: &[(&str, Value)]| freqs(&interactive(set, idle, 1000));
    let hispeed = ("hispeed_freq", Value::Int(3_000_000));
    let boosted = with(&[hispeed.clone(), ("boost", Value::Int(1))]);
    assert_eq!(boosted.iter().map(|f| f.1).collect::<Vec<_>>(), [1, 3], "{boosted:?}");
    let pulse = with(&[hispeed, ("boostpulse", Value::Int(400_000))]);
    assert_eq!(pulse.iter().map(|f| f.1).collect::<Vec<_>>(), [1, 3, 1], "{pulse:?}");
    assert!((400..412).contains(&pulse[1].0) && (480..530).contains(&pulse[2].0), "{pulse:?}");
}

/// The policy gets what its most demanding CPU wants.
#[test]
fn a_shared_policy_follows_its_busiest_cpu() {
    let mut platform = one_cpu();
    platform.domains[0].cpus.push(risetime_kernel::units::CpuId(1));
    let workload = r#"{"tasks": {
        "full": {"cpus": [0], "loop": -1, "runtime": 10000000},
        "little": {"cpus": [1], "loop": -1, "run": 100, "timer": {"ref": "a", "period": 4000}}}}"#;
    let workload = Workload::parse(workload, "two.json").expect("a workload");
    let policy = "linux-6.1+governor=interactive";
    let all = freqs(&trace(&experiment(platform, workload, policy, &[], Span::from_ms(1000))));
    assert_eq!(all.iter().map(|f| f.1).collect::<Vec<_>>(), [1, 2, 4], "{all:?}");
}

// ---------------------------------------------------------------------- schedfreq

fn schedfreq(throttle_nsec: i64, workload: &str, ms: u64) -> Memory {
    let set = [("throttle_nsec", Value::Int(throttle_nsec))];
    run("linux-6.1+governor=schedfreq", &set, workload, ms)
}

/// A task whose util grows asks for more when it wakes, and at the first tick that finds the margin touched for all.
#[test]
fn the_tick_of_schedfreq_jumps_to_the_highest_frequency() {
    let all = freqs(&schedfreq(0, BUSY, 1000));
    assert_eq!(all.last().map(|f| f.1), Some(4));
    assert!(all.len() <= 3 && all.last().is_some_and(|f| f.0 < 60), "{all:?}");
}

#[test]
fn schedfreq_changes_no_more_often_than_it_may() {
    let changes = |throttle: i64| {
        let all = freqs(&schedfreq(throttle, BURSTS, 3000));
        let gaps: Vec<u64> = all.windows(2).skip(1).map(|w| w[1].0 - w[0].0).collect();
        (all.len(), gaps.into_iter().min().expect("changes"))
    };
    let (often, _) = changes(0);
    let (rarely, gap) = changes(100_000_000);
    assert!(often > rarely && rarely > 4, "{often} {rarely}");
    assert!(gap >= 99, "{gap} ms");
}

/// A CPU that has nothing to run asks for nothing, but changes no frequency by that; the other CPU's next request does.
#[test]
fn a_cpu_that_goes_idle_leaves_the_frequency_to_the_others() {
    let alone = freqs(&schedfreq(0, r#"{"tasks": {"t": {"loop": 1, "runtime": 60000}}}"#, 2000));
    assert_eq!(alone.last().map(|f| f.1), Some(4), "{alone:?}");
    let mut platform = one_cpu();
    platform.domains[0].cpus.push(risetime_kernel::units::CpuId(1));
    let workload = r#"{"tasks": {
        "once": {"cpus": [0], "loop": 1, "runtime": 60000},
        "later": {"cpus": [1], "loop": -1, "run": 100, "timer": {"ref": "a", "period": 100000}}}}"#;
    let workload = Workload::parse(workload, "two.json").expect("a workload");
    let set = [("throttle_nsec", Value::Int(0))];
    let policy = "linux-6.1+governor=schedfreq";
    let all = freqs(&trace(&experiment(platform, workload, policy, &set, Span::from_ms(1000))));
    assert_eq!(all.last().map(|f| f.1), Some(1), "{all:?}");
}

/// 33 % and a quarter of 4 GHz are 1.7: 2 GHz, and util does not grow with it.
#[test]
fn schedfreq_keeps_the_frequency_of_a_steady_task() {
    let trace = schedfreq(0, STEADY, 2000);
    assert_eq!(changes(&trace, Span::from_ms(1000)), 0);
    assert!((2..=3).contains(&freqs(&trace).last().expect("a frequency").1));
}

/// Once a second, longer than `rt_avg` lasts: the kthread's own time is what the CPU asks for when it wakes, and of little
/// work nothing is left; without it, it begins each burst at the frequency at which the last one ended.
#[test]
fn a_cpu_that_slept_asks_by_what_its_kthread_has_taken() {
    let task =
        r#"{"tasks": {"t": {"loop": -1, "run": 30000, "timer": {"ref": "a", "period": 1000000}}}}"#;
    let begins = |work_ns: i64| {
        let set = [("sugov_work_ns", Value::Int(work_ns)), ("throttle_nsec", Value::Int(0))];
        let all = freqs(&run("linux-4.7+governor=schedfreq", &set, task, 5000));
        all.iter().filter(|f| f.0 > 1500 && f.1 == 1).count()
    };
    assert_eq!([begins(5_000), begins(2_000_000)], [0, 3]);
}

// ---------------------------------------------------------------------- sched, Android's form

fn android(up_ms: i64, down_ms: i64, workload: &str, ms: u64) -> Memory {
    let ns = |ms: i64| Value::Int(ms * 1_000_000);
    let set = [("up_throttle_nsec", ns(up_ms)), ("down_throttle_nsec", ns(down_ms))];
    run("linux-6.1+governor=sched", &set, workload, ms)
}

/// Small for 0.8 s, then busy for ever.
const GROWN: &str = r#"{"tasks": {"t": {"loop": -1, "phases": {
    "small": {"loop": 40, "run": 1000, "timer": {"ref": "a", "period": 20000}},
    "busy": {"runtime": 10000000}}}}}"#;

/// The tick asks for the util and a quarter, level by level; schedfreq's of 2015 for all as soon as the level is full.
#[test]
fn the_tick_of_androids_governor_goes_up_by_steps() {
    let levels = |all: &[(u64, u64)]| {
        let busy = all.iter().filter(|f| f.0 > 800);
        busy.map(|f| f.1).collect::<Vec<_>>()
    };
    let (steps, jump) = (freqs(&android(0, 50, GROWN, 2000)), freqs(&schedfreq(0, GROWN, 2000)));
    assert_eq!(levels(&steps), [2, 3, 4], "{steps:?}");
    assert_eq!(levels(&jump), [4], "{jump:?}");
}

#[test]
fn up_and_down_wait_for_times_of_their_own() {
    let least = |all: &[(u64, u64)], up: bool| {
        let gaps = all.windows(2).skip(1).filter(|w| (w[1].1 > w[0].1) == up);
        gaps.map(|w| w[1].0 - w[0].0).min().expect("changes")
    };
    let all = freqs(&android(30, 0, BURSTS, 3000));
    assert!(least(&all, true) >= 29, "{all:?}");
    let all = freqs(&android(0, 120, BURSTS, 3000));
    assert!(least(&all, false) >= 119, "{all:?}");
}
