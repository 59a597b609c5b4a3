//! Tests of what is around the tasks: interrupts, limits on the frequency, hardware that slows
//! down.

use super::{Bytes, experiment};
use crate::{Counterfactual, setup};
use risetime_kernel::units::{CpuId, Instant, KHz, Span, TaskId};
use risetime_model::settings::Value;
use risetime_model::{Platform, Workload};

/// A machine after a run.
struct After {
    log: String,
    m: crate::Machine,
}

fn run(platform: &str, tasks: &str, policy: &str, set: &[(&str, i64)], ms: u64) -> After {
    let platform = Platform::load(platform).expect("built in");
    let workload = Workload::parse(&format!(r#"{{"tasks": {{{tasks}}}}}"#), "w").expect("valid");
    let set: Vec<_> = set.iter().map(|(name, v)| (*name, Value::Int(*v))).collect();
    let e = experiment(platform, workload, policy, &set, Span::from_ms(ms));
    let mut sink = Bytes::default();
    let mut engine =
        setup::simulation(&e, &mut sink, Counterfactual::default()).expect("an engine");
    engine.run(Instant(e.duration.0)).expect("a run");
    let m = engine.k.m;
    After { log: sink.0, m }
}

/// Lists the times (in ns) of the log's lines that hold `what`.
fn at(log: &str, what: &str) -> Vec<u64> {
    let time = |l: &str| l.split(' ').next().and_then(|ns| ns.parse().ok());
    log.lines().filter(|l| l.contains(what)).filter_map(time).collect()
}

const FULL: &str = "linux-7.2+governor=performance";
const BUSY: &str = r#""busy": {"cpus": [7], "loop": -1, "run": 1000000}"#;
const ONCE: &str = r#""once": {"cpus": [7], "loop": 1, "run": 100000}"#;

/// The time at which the task `ONCE` is done, in ns.
fn done(policy: &str, set: &[(&str, i64)]) -> u64 {
    at(&run("m1", ONCE, policy, set, 2000).log, "Exited")[0]
}

#[test]
fn interrupts_take_their_share_of_time_and_of_util() {
    // 100 ms of work on the biggest CPU, and 100 µs of each ms are another's.
    let (without, with) =
        (done(FULL, &[]), done(FULL, &[("irq_period_us", 1000), ("irq_us", 100)]));
    assert_eq!(without, 100_010_000, "after an exit latency of 10 µs");
    let handlers = (with - without) / 100_000;
    assert_eq!((with - without) % 100_000, 0, "whole handlers: {with}");
    assert!((110..=112).contains(&handlers), "one each ms of the {with} ns that it took");
    let after = run("m1", BUSY, FULL, &[("irq_period_us", 1000), ("irq_us", 100)], 1000);
    let c = after.m.cpu(CpuId(7));
    let irq = after.m.rq_util(CpuId(7)).irq.0;
    assert!((97..=113).contains(&irq), "a tenth of 1024: {irq}");
    // The task's clock stands still meanwhile, so its own util is that of a CPU without interrupts.
    assert!(after.m.task(TaskId(0)).avg.util_avg.0 > 1010);
    let task_clock = c.clock.clock.0 - c.clock.clock_task.0;
    assert!((99_000_000..=100_000_000).contains(&task_clock), "{task_clock}");
    assert!((905..=925).contains(&c.cpu_capacity.0), "{:?}", c.cpu_capacity);
    // schedutil makes room for them: effective util is more than the task's.
    assert!(after.m.effective(CpuId(7), risetime_kernel::units::Util(500)).util.0 > 540);
}

#[test]
fn interrupts_come_to_each_cpu_in_turn_and_wake_those_that_sleep() {
    let set = [("irq_period_us", 10_000), ("irq_us", 50)];
    let after = run("m1", BUSY, FULL, &set, 1000);
    let quiet = run("m1", BUSY, FULL, &[], 1000);
    let idles = |log: &str| at(log, "Idle { cpu: CpuId(3), state: None }");
    assert!(idles(&quiet.log).len() < 10, "{}", idles(&quiet.log).len());
    let woken = idles(&after.log);
    assert!((99..=105).contains(&woken.len()), "once every 10 ms: {}", woken.len());
    let back = at(&after.log, "Idle { cpu: CpuId(3), state: Some");
    // Its own turn among eight CPUs, after the exit latency of its state.
    let turn = 10_000_000 * 4 / 9;
    let awake = woken.iter().find(|t| **t >= turn).expect("woken");
    assert!((turn..turn + 2_000_000).contains(awake), "{awake}");
    assert!(back.contains(&(awake + 50_000)), "the handler takes 50 µs");
}

#[test]
fn one_policy_may_have_interrupts_of_its_own() {
    let set = [("irq_period_us.policy4", 1000), ("irq_us.policy4", 200)];
    let after = run("m1", BUSY, FULL, &set, 500);
    let irq = |cpu| after.m.rq_util(CpuId(cpu)).irq.0;
    assert_eq!((irq(0), irq(3)), (0, 0));
    assert!(irq(7) > 180, "{}", irq(7));
}

#[test]
fn limits_hold_for_every_governor() {
    for &governor in crate::kernel::governor::NAMES {
        let policy = format!("linux-7.2+governor={governor}");
        let set = [("scaling_max_freq.policy4", 1_300_000), ("scaling_min_freq.policy4", 700_000)];
        let after = run("m1", BUSY, &policy, &set, 500);
        for line in after.log.lines().filter(|l| l.contains(" Freq") && l.contains("CpuId(4)")) {
            let freq = line.split("KHz(").nth(1).and_then(|f| f.split(')').next()).expect("kHz");
            let freq: u64 = freq.parse().expect("a number");
            assert!((828_000..=1_284_000).contains(&freq), "{governor}: {line}");
        }
        let d = after.m.domain_of(CpuId(7));
        let expected = match governor {
            "powersave" | "userspace" => 828_000,
            _ => 1_284_000,
        };
        assert_eq!(d.hw, KHz(expected), "{governor}");
    }
}

#[test]
fn a_limit_halves_what_a_cpu_is_good_for() {
    // 1500 of 3204 MHz: 1024 - 545 of capacity, since 6.10.
    let set = [("scaling_max_freq.policy4", 1_500_000)];
    let after = run("m1", BUSY, "linux-7.2", &set, 500);
    let c = after.m.cpu(CpuId(7));
    assert_eq!((c.actual.0, c.cpu_capacity.0), (1024 * 1500 / 3204, 1024 * 1500 / 3204));
    assert_eq!(after.m.task(TaskId(0)).max_speed.0, 1024 * 1500 / 3204, "s_max");
    let before = run("m1", BUSY, "linux-6.8", &set, 500);
    assert_eq!(before.m.cpu(CpuId(7)).actual.0, 1024, "6.8 does not know");
    // With less than a little CPU's capacity left, the task is a misfit there: nowhere to go, but known.
    let tight = run("m1", BUSY, "linux-7.2", &[("scaling_max_freq.policy4", 828_000)], 500);
    assert!(tight.m.root.overutilized, "{:?}", tight.m.cpu(CpuId(7)).actual);
}

#[test]
fn capped_hardware_is_slow_whatever_it_is_asked_for() {
    // 1056 of 3204 MHz.
    let set = [("hw_capped_khz.policy4", 1_200_000)];
    let slow = 100_000_000 * 3_204_000 / 1_056_000;
    assert!(done(FULL, &set).abs_diff(10_000 + slow) < 100, "{}", done(FULL, &set));
    // The kernel goes on believing what it asked for, and its PELT clock with it.
    let after = run("m1", BUSY, FULL, &set, 500);
    let d = after.m.domain_of(CpuId(7));
    assert_eq!((d.cur, d.hw, d.freq_scale), (KHz(3_204_000), KHz(1_056_000), 1024));
    // From then on.
    let later = [set[0], ("hw_capped_from_ms", 50)];
    let slow = 50_000_000 * 3_204_000 / 1_056_000;
    let late = done(FULL, &later);
    assert!(late.abs_diff(50_000_000 + slow + 20_000) < 30_000, "{late}");
}

#[test]
fn pressure_is_an_average_with_the_half_life_of_pelt() {
    // The capped CPUs lose 1024 - 337 = 687.
    let set = [("hw_capped_khz.policy4", 1_056_000), ("hw_capped_from_ms", 100)];
    let after = run("m1", BUSY, FULL, &set, 600);
    let lost = 1024 - 1024 * 1056 / 3204;
    let line = |ms: u64| {
        let of = |l: &&str| {
            let at: u64 = l.split(' ').next().and_then(|t| t.parse().ok()).unwrap_or(0);
            l.contains("\"hw\"") && l.contains("CpuId(7)") && at <= ms * 1_000_000
        };
        let last = after.log.lines().rfind(of).expect("an update");
        let util = last.split("util_avg: Util(").nth(1).and_then(|u| u.split(')').next());
        util.and_then(|u| u.parse::<u64>().ok()).expect("a number")
    };
    // Half-lives of 32 · 1.024 · 1.024 ms, read at the tick before.
    for (half_lives, share) in [(1, 500), (2, 750), (3, 875), (6, 984)] {
        let (seen, wanted) = (line(100 + 34 * half_lives), lost * share / 1000);
        assert!(seen.abs_diff(wanted) < lost / 12, "{half_lives}: {seen}, not {wanted}");
    }
    let c = after.m.cpu(CpuId(7));
    assert!(c.actual.0.abs_diff(1024 - lost) < 5, "{:?}", c.actual);
    // Before 6.10 it counts like real-time tasks, and clamps see it at once.
    let old = run("m1", BUSY, "linux-6.8+governor=performance", &set, 600);
    let c = old.m.cpu(CpuId(7));
    assert_eq!(c.actual.0, 1024 - lost);
    assert!(c.cpu_capacity.0.abs_diff(1024 - lost) < 5, "{:?}", c.cpu_capacity);
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let m1 = Platform::load("m1").expect("built in");
    let error = |arg: &str| {
        let policy =
            risetime_model::Policy::from_arg(&format!("linux-7.2{arg}")).expect("a policy");
        crate::resolve(&m1, &policy).expect_err(arg).to_string()
    };
    for (arg, words) in [
        ("+irq_us=100", "how often is not said"),
        ("+irq_us=100+irq_period_us=100", "irq_us of policy0 is 100, wanted less than"),
        ("+irq_us=100+irq_period_us=200+irq_period_us.policy4=50", "irq_us of policy4"),
        ("+scaling_min_freq=900000+scaling_max_freq=800000", "above scaling_max_freq, 800000"),
        ("+hw_capped_khz.policy1=900000", "m1 has policy0, policy4"),
        ("+irq_period_us=0", "wanted a whole number from 1"),
    ] {
        let e = error(arg);
        assert!(e.contains(words), "{arg}: {e}");
    }
}

// ---------------------------------------------------------------------- costs

/// Two tasks that take turns on CPU 7, each 20 ms of work.
const TURNS: &str = r#""a": {"instance": 2, "cpus": [7], "loop": 1, "run": 20000}"#;

#[test]
fn every_switch_to_a_task_takes_its_time() {
    let ends = |set: &[(&str, i64)]| {
        let after = run("m1", TURNS, FULL, set, 300);
        let to_a_task = |l: &&str| {
            let on = l.contains("Switch { cpu: CpuId(7)") && !l.contains("next: None");
            on && l.contains("next: Some")
        };
        let switches = after.log.lines().filter(to_a_task).count() as u64;
        (*at(&after.log, "Exited").last().expect("done"), switches)
    };
    let (free, few) = ends(&[]);
    assert!(few >= 8, "they take turns: {few}");
    let (paid, switches) = ends(&[("switch_cost_ns", 50_000)]);
    assert_eq!(paid - free, switches * 50_000, "{switches} switches");
}

#[test]
fn a_cold_cache_costs_once_for_each_change_of_it() {
    // Its phases are bound to CPUs of the two clusters in turn, and within one.
    let tasks = r#""t": {"loop": 1, "phases": {
      "big": {"cpus": [7], "loop": 1, "run": 10000}, "same": {"cpus": [6], "loop": 1, "run": 10000},
      "little": {"cpus": [1], "loop": 1, "run": 10000}, "back": {"cpus": [7], "loop": 1, "run": 10000}}}"#;
    let end = |cold: i64| {
        let set = [("cold_cache_ns", cold), ("first_cpu", 7)];
        at(&run("m1", tasks, FULL, &set, 300).log, "Exited")[0]
    };
    assert_eq!(end(300_000) - end(0), 600_000);
}

#[test]
fn what_is_cold_stays_cold_when_another_task_comes_between() {
    // It comes back from the little cluster, and another task preempts it before its cache is warm:
    // it loses as much as without, and that one loses nothing.
    let tasks = |other: &str| {
        format!(
            r#""t": {{"priority": 0, "loop": 1, "phases": {{
      "little": {{"cpus": [1], "loop": 1, "run": 1000}}, "big": {{"cpus": [7], "loop": 1, "run": 10000}}}}}}{other}"#
        )
    };
    let fifo = r#", "f": {"cpus": [7], "policy": "SCHED_FIFO", "priority": 5, "delay": 3000, "loop": 1, "run": 2000}"#;
    let ends = |cold: i64| {
        let after = run("m1", &tasks(fifo), FULL, &[("cold_cache_ns", cold)], 100);
        at(&after.log, "Exited")
    };
    let (warm, cold) = (ends(0), ends(2_000_000));
    assert_eq!(warm[0], cold[0], "the one that came between");
    assert_eq!(cold[1] - warm[1], 2_000_000);
}

#[test]
fn slack_delays_a_timer_up_to_itself_and_lets_them_come_together() {
    let set = |slack| [("timer_slack_ns", slack), ("first_cpu", 7)];
    let one = r#""t": {"cpus": [7], "loop": 20, "run": 100, "sleep": 3300}"#;
    let waking =
        |tasks: &str, slack: i64| at(&run("m1", tasks, FULL, &set(slack), 120).log, " Wakeup {");
    let (exact, late) = (waking(one, 0), waking(one, 50_000));
    assert_eq!(late[0] - exact[0], 50_000, "alone it comes at the hard expiry");
    assert!(late.len() + 1 >= exact.len());
    // Two that expire 40 µs apart become one interrupt: the later one's soft expiry is past by then.
    let two = r#""a": {"cpus": [7], "loop": 1, "run": 10, "sleep": 3000, "run1": 10},
      "b": {"cpus": [7], "delay": 0, "loop": 1, "run": 10, "sleep": 3020, "run1": 10}"#;
    let (apart, together) = (waking(two, 0), waking(two, 50_000));
    assert!(apart[1] > apart[0], "{apart:?}");
    assert_eq!(together[0], together[1], "{together:?}");
    // A real-time task has none.
    let fifo = r#""t": {"cpus": [7], "policy": "SCHED_FIFO", "priority": 5, "loop": 20, "run": 100, "sleep": 3300}"#;
    assert_eq!(waking(fifo, 0), waking(fifo, 50_000));
}

#[test]
fn a_tick_wakes_whoever_may_be_woken() {
    // The busy one keeps the tick on; the sleeper's soft expiry is 100 µs before one.
    let tasks = r#""busy": {"cpus": [7], "loop": -1, "run": 1000000},
      "t": {"cpus": [7], "priority": -10, "delay": 1000, "loop": 1, "phases": {
        "run": {"loop": 1, "run": 10, "sleep": 13850}, "end": {"loop": 1, "run": 10}}}"#;
    let wakeups = |tasks: &str, slack: i64| {
        let set = [("timer_slack_ns", slack)];
        at(&run("m1", tasks, FULL, &set, 60).log, " Wakeup {")
    };
    let woken = |slack| *wakeups(tasks, slack).last().expect("it wakes");
    let (exact, late) = (woken(0), woken(500_000));
    let tick = 1_000_000;
    assert!(exact % tick > tick - 250_000, "just before a tick: {exact}");
    assert_eq!(late, exact.next_multiple_of(tick), "at the tick, not at {}", exact + 500_000);
    assert_eq!(
        woken(2_000_000),
        late + tick,
        "not while another tick stands before its hard expiry"
    );
    // Nor by a timer without slack between its soft expiry and the tick.
    let other = r#", "f": {"cpus": [7], "policy": "SCHED_FIFO", "priority": 5, "delay": 1000, "loop": 1,
      "phases": {"run": {"loop": 1, "run": 10, "sleep": 13900}, "end": {"loop": 1, "run": 10}}}"#;
    let both = wakeups(&format!("{tasks}{other}"), 500_000);
    let [.., f, t] = both[..] else { panic!("{both:?}") };
    assert!(f % tick > tick - 100_000, "50 µs after the soft expiry: {both:?}");
    assert_eq!(t, f.next_multiple_of(tick));
}

#[test]
fn memory_bound_work_takes_as_long_at_any_frequency() {
    let end = |bound: i64, khz: i64| {
        let policy = "linux-7.2+governor=userspace";
        done(policy, &[("memory_bound", bound), ("scaling_setspeed", khz)]) - 10_000
    };
    let (slow, fast) = (1_500_000, 3_204_000);
    assert_eq!(end(1024, slow), end(0, fast), "all of it");
    assert_eq!(end(1024, fast), end(0, fast));
    let (at_speed, at_highest) = (end(0, slow), end(0, fast));
    let mean = (at_speed + at_highest) / 2;
    assert!(end(512, slow).abs_diff(mean) < 100, "half of it: {}, not {mean}", end(512, slow));
}

#[test]
fn threads_that_share_a_core_slow_each_other_down() {
    let text = r#"
schema = 1
name = "made"
about = "one core of two threads, and another"
hz = 250
[[domain]]
cpus = "0-3"
cpus_per_policy = 1
capacity = 1024
fast_switch = true
opp = [ { freq_khz = 1000000 } ]
[topology]
core = { cpus = "0-3", each = 2 }
llc = { cpus = "0-3", each = 4 }
[sources]
capacity = "made up"
opp = "made up"
"#;
    let ends = |tasks: &str, smt: i64| {
        let platform = Platform::parse(text, "made").expect("a platform");
        let workload =
            Workload::parse(&format!(r#"{{"tasks": {{{tasks}}}}}"#), "w").expect("valid");
        let set = [("smt_speed", Value::Int(smt))];
        let e = experiment(platform, workload, FULL, &set, Span::from_ms(1000));
        let mut sink = Bytes::default();
        let mut engine = setup::simulation(&e, &mut sink, Counterfactual::default()).expect("fine");
        engine.run(Instant(e.duration.0)).expect("a run");
        at(&sink.0, "Exited")
    };
    let task = |name: &str, cpu: u32, ms: u32| {
        format!(r#""{name}": {{"cpus": [{cpu}], "loop": 1, "run": {}}}"#, ms * 1000)
    };
    let both = format!("{}, {}", task("a", 0, 60), task("b", 1, 60));
    assert_eq!(ends(&both, 1024), [60_000_000; 2]);
    assert_eq!(ends(&both, 600), [102_400_000; 2], "1024/600 as long");
    let apart = format!("{}, {}", task("a", 0, 60), task("b", 2, 60));
    assert_eq!(ends(&apart, 600), [60_000_000; 2], "cores of their own");
    // The shorter one ends after 30 · 1024/600 = 51.2 ms; the other has 30 ms left, alone.
    let short = format!("{}, {}", task("a", 0, 30), task("b", 1, 60));
    assert_eq!(ends(&short, 600), [51_200_000, 81_200_000]);
}
