//! Tests of what the scheduler's sysctls and debugfs files change, in which kernels.

use super::classes::{Runs, SPIN, cpus, experiment_of, run};
use super::experiment;
use crate::Simulator;
use crate::mech::sysctls::RR_TIMESLICE;
use risetime_kernel::units::Span;
use risetime_model::settings::Value;
use risetime_model::{Platform, Policy, Workload};
use risetime_trace::{Backend, Why};

fn fifo_and_fair() -> String {
    format!(r#""rt": {{"policy": "SCHED_FIFO", "priority": 5, {SPIN}}}, "fair": {{{SPIN}}}"#)
}

#[test]
fn rt_tasks_have_their_runtime_of_each_period_up_to_6_11() {
    let ran = |kernel: &str, set: &str| {
        let runs = run(cpus(1), &fifo_and_fair(), &format!("{kernel}{set}"), 3000);
        ["rt", "fair"].map(|comm| runs.ran(comm, 0, 3000) / 1_000_000)
    };
    let half = "+sched_rt_period_us=500000+sched_rt_runtime_us=300000";
    for kernel in ["linux-6.1", "linux-6.8"] {
        let [rt, fair] = ran(kernel, half);
        assert!(rt.abs_diff(1800) <= 6 && fair.abs_diff(1200) <= 6, "{kernel}: {rt}, {fair}");
        for unlimited in ["-1", "0", "1000000"] {
            let all = ran(kernel, &format!("+sched_rt_runtime_us={unlimited}"));
            assert_eq!(all, [3000, 0], "{kernel}, {unlimited}");
        }
    }
    // A server for the fair class since then, whose share stands elsewhere.
    assert_eq!(ran("linux-6.12", half), ran("linux-6.12", ""));
}

/// The runtime is over between two ticks, and that is seen when another one wakes.
#[test]
fn nobody_is_picked_once_the_runtime_is_used_up() {
    let tasks = format!(
        r#""low": {{"policy": "SCHED_FIFO", "priority": 5, {SPIN}}}, "high": {{"policy": "SCHED_FIFO",
           "priority": 9, "delay": 950500, "loop": 1, "run": 10000}}, "fair": {{{SPIN}}}"#
    );
    for kernel in ["linux-6.1", "linux-6.8"] {
        let runs = run(cpus(1), &tasks, kernel, 1100);
        assert_eq!(runs.turns("high"), [(0, 1_000_000, 1_010_000)], "{kernel}");
        assert_eq!(runs.ran("fair", 0, 1100), 49_500_000, "{kernel}");
    }
}

#[test]
fn rr_tasks_take_turns_as_long_as_they_are_told() {
    let rr = format!(r#""rr": {{"policy": "SCHED_RR", "priority": 5, "instance": 2, {SPIN}}}"#);
    for kernel in ["linux-6.1", "linux-7.2"] {
        let runs = run(cpus(1), &rr, &format!("{kernel}+sched_rr_timeslice_ms=20"), 100);
        assert_eq!(runs.turns("rr-0")[..2], [(0, 0, 20_000), (0, 40_000, 60_000)], "{kernel}");
    }
}

#[test]
fn deadline_tasks_may_reserve_the_runtime_in_every_kernel() {
    let dl = |n: u32| {
        let one = r#""policy": "SCHED_DEADLINE", "dl-runtime": 60000, "dl-period": 100000"#;
        format!(r#""dl": {{{one}, "instance": {n}, {SPIN}}}"#)
    };
    let goes = |n, policy: &str| {
        let e = experiment_of(cpus(1), &dl(n), policy, 300);
        Simulator.run(&e, &mut ()).map_err(|e| e.to_string())
    };
    // From 6.12 on the fair server has its 5 %.
    for (kernel, left) in [("linux-6.1", 50), ("linux-7.3", 45)] {
        let with = |us: i64| format!("{kernel}+sched_rt_runtime_us={us}");
        goes(1, kernel).expect("60 of 95 %");
        let e = goes(1, &with(500_000)).expect_err("60 of 50 %");
        assert!(e.contains(&format!("and {left} % of one is left to reserve")), "{e}");
        goes(2, kernel).expect_err("120 of 95 %");
        goes(2, &with(-1)).expect("nobody counts");
    }
}

/// As asked of Debian's 6.12.117, 7.2.13 and 7.3.4. 6.12 forgets the fair servers when it makes its root
/// domains anew, as it does when schedutil starts or ends; later kernels count them, and up to 7.1
/// keep 5 % of each CPU beside.
#[test]
fn four_cpus_take_eleven_tasks_of_a_third_except_from_6_13_to_7_1() {
    let goes = |n: u32, us: (u32, u32), policy: &str| {
        let one =
            format!(r#""policy": "SCHED_DEADLINE", "dl-runtime": {}, "dl-period": {}"#, us.0, us.1);
        let tasks =
            format!(r#""dl": {{{one}, "instance": {n}, "loop": -1, "run": 10, "sleep": 100000}}"#);
        let e = experiment_of(cpus(4), &tasks, policy, 300);
        Simulator.run(&e, &mut ()).is_ok()
    };
    let third = (10_000, 30_000);
    for kernel in ["linux-6.1", "linux-6.12", "linux-7.2", "linux-7.3"] {
        assert!(goes(11, third, kernel), "{kernel}");
        // 12 thirds are four CPUs.
        assert!(!goes(12, third, kernel), "{kernel}");
    }
    for kernel in ["linux-6.18", "linux-7.0"] {
        assert!(goes(10, third, kernel) && !goes(11, third, kernel), "{kernel}");
    }
    let most = |kernel: &str| (70..80).take_while(|n| goes(*n, (1_000, 20_000), kernel)).last();
    for (kernel, n) in [("linux-6.12", 76), ("linux-6.18", 72), ("linux-7.2", 76)] {
        assert_eq!(most(kernel), Some(n), "{kernel}: tasks of 1 in 20 ms");
    }
}

/// Of 6 ms for two CPUs the first to ask takes 5, or each what it needs.
#[test]
fn a_quota_is_handed_out_in_slices() {
    let text = format!(
        r#"{{"taskgroups": {{"/a": {{"quota_us": 6000, "period_us": 100000}}}},
             "tasks": {{"a": {{"taskgroup": "/a", "cpus": [0], {SPIN}}},
                        "b": {{"taskgroup": "/a", "cpus": [1], {SPIN}}}}}}}"#
    );
    let first = |policy: &str| {
        let workload = Workload::parse(&text, "t").expect("a workload");
        let e = experiment(cpus(2), workload, policy, &[], Span::from_ms(100));
        let mut runs = Runs::default();
        Simulator.run(&e, &mut runs).expect("a run");
        ["a", "b"].map(|comm| runs.ran(comm, 0, 50) / 1_000_000)
    };
    for kernel in ["linux-6.1", "linux-7.3"] {
        let ([a, b], [c, d]) =
            (first(kernel), first(&format!("{kernel}+sched_cfs_bandwidth_slice_us=1000")));
        assert!(a.abs_diff(b) >= 3, "{kernel}: {a}, {b}");
        assert!(c.abs_diff(d) <= 1, "{kernel}: {c}, {d}");
    }
}

/// Counts how often load balancing moved a task.
fn pulled(policy: &str) -> usize {
    let tasks = format!(
        r#""pinned": {{"cpus": [0], "instance": 3, {SPIN}}}, "free": {{"instance": 4, "run": 3000, "sleep": 1000, "loop": -1}}"#
    );
    let runs = run(cpus(4), &tasks, policy, 2000);
    let by_balancing = |why: Why| matches!(why, Why::Balance | Why::NewIdle);
    runs.moves.iter().filter(|(_, _, why)| by_balancing(*why)).count()
}

#[test]
fn load_balancing_moves_what_is_not_hot_and_as_many_as_it_may_look_at() {
    for kernel in ["linux-6.1", "linux-7.3"] {
        let with = |set: &str| pulled(&format!("{kernel}+{set}"));
        let own = pulled(kernel);
        assert_eq!(with("migration_cost_ns=500000+nr_migrate=32"), own, "{kernel}: the defaults");
        assert_eq!(with("nr_migrate=0"), 0, "{kernel}: nobody is looked at");
        let (never, always) = (with("migration_cost_ns=0"), with("migration_cost_ns=4294967295"));
        assert!(never > always, "{kernel}: {never} where nobody is hot, {always} where all are");
    }
}

#[test]
fn what_the_kernel_refuses_is_refused() {
    let m1 = Platform::load("m1").expect("built in");
    let of = |set: &str| {
        let policy = Policy::from_arg(&format!("linux-7.2+{set}")).expect("a policy");
        crate::resolve(&m1, &policy).map_err(|e| e.to_string())
    };
    let e = of("sched_rt_runtime_us=1000001").expect_err("more than the period");
    assert!(
        e.ends_with("`sched_rt_runtime_us` is 1000001, more than `sched_rt_period_us`, 1000000"),
        "{e}"
    );
    let e = of("sched_rt_period_us=900000").expect_err("less than the default runtime");
    // That of 7.2 and later; 950000 before.
    assert!(
        e.ends_with("`sched_rt_runtime_us` is 1000000, more than `sched_rt_period_us`, 900000"),
        "{e}"
    );
    of("sched_rt_period_us=900000+sched_rt_runtime_us=-1").expect("no limit");
    let e = of("sched_rt_runtime_us=-2").expect_err("out of range");
    assert!(e.contains("wanted a whole number from -1 to 2147483647 µs"), "{e}");
    assert_eq!(of("nr_migrate=8").expect("fine").get(&RR_TIMESLICE), Some(100));
}

/// sampling_rate_store and its like: EINVAL, or as much as the file can hold.
#[test]
fn a_governor_takes_the_numbers_that_the_kernels_file_takes() {
    let m1 = Platform::load("m1").expect("built in");
    let at = |hz: u32, set: &str| {
        let policy = Policy::from_arg(set).expect("a policy");
        let platform = Platform { hz, ..m1.clone() };
        crate::resolve(&platform, &policy).map_err(|e| e.to_string())
    };
    let of = |said: &str, name: &str| match at(250, said).expect(said).by_name(name) {
        Some(Value::Int(n)) => *n,
        other => panic!("{said}: {name} is {other:?}"),
    };
    for governor in ["ondemand", "conservative"] {
        for (hz, least) in [(100, 20_000), (250, 8_000), (300, 6_666), (1000, 2_000)] {
            let said = |us: i64| format!("linux-6.1+governor={governor}+sampling_rate={us}");
            at(hz, &said(least)).expect("two ticks");
            let e = at(hz, &said(least - 1)).expect_err("less than two ticks");
            let wanted = format!(
                "`sampling_rate` is {} µs, less than two ticks, {least} µs ({hz} Hz): kernels refuse it (from 4.14 on)",
                least - 1
            );
            assert!(e.contains(&wanted) && e.starts_with("linux-6.1"), "{e}");
        }
        // Older ones take it as what they sample at.
        let old = of(&format!("linux-4.7+governor={governor}+sampling_rate=1000"), "sampling_rate");
        let latency = m1.domains[0].transition_latency().0 / 1000;
        let own = if governor == "ondemand" { 10_000 } else { 80_000 };
        assert_eq!(old, own.max(20 * latency as i64), "{governor}");
        let nice = format!("linux-7.3+governor={governor}+ignore_nice_load=4000000000");
        assert_eq!(of(&nice, "ignore_nice_load"), 1);
    }
    let ondemand = "linux-7.3+governor=ondemand+io_is_busy=9+powersave_bias=5000";
    assert_eq!((of(ondemand, "io_is_busy"), of(ondemand, "powersave_bias")), (1, 1000));
    assert_eq!(of("linux-7.3+governor=conservative+freq_step=400", "freq_step"), 100);
    for (bad, wanted) in [
        ("ondemand+up_threshold=0", "wanted a whole number from 1 to 100 %"),
        ("ondemand+sampling_down_factor=100001", "wanted a whole number from 1 to 100000"),
        ("conservative+sampling_down_factor=11", "wanted a whole number from 1 to 10"),
        ("conservative+down_threshold=80", "`down_threshold` is 80 %, not less than"),
        ("ondemand+ignore_nice_load=4294967296", "from 0 to 4294967295"),
    ] {
        let e = at(250, &format!("linux-7.3+governor={bad}")).expect_err(bad);
        assert!(e.contains(wanted), "{e}");
    }
    let low = "+governor=conservative+down_threshold=10";
    at(250, &format!("linux-4.14{low}")).expect("from 1 on");
    let e = at(250, &format!("linux-4.7{low}")).expect_err("from 11 on");
    assert!(e.contains("`down_threshold` is 10 %, less than 11 %"), "{e}");
}
