//! Tests of what real-time, deadline and idle tasks get, and when: exact where the kernel is exact,
//! else to the tick at which it looks.

use super::experiment;
use crate::{Simulator, setup};
use risetime_kernel::units::{CpuId, Instant, KHz, Span, TaskId, Util};
use risetime_model::settings::Value;
use risetime_model::workload::Policy;
use risetime_model::{Experiment, Platform, Workload};
use risetime_trace::{Backend, Event, Header, SwitchOut, TraceSink, Why};

/// Turns of each task on a CPU, and all else that is asked for below.
#[derive(Default)]
pub(super) struct Runs {
    comms: Vec<String>,
    /// Task that runs on each CPU, and since when.
    now: Vec<Option<(TaskId, u64)>>,
    /// Task, CPU, from, to.
    turns: Vec<(TaskId, CpuId, u64, u64)>,
    slept: Vec<(TaskId, u64)>,
    woke: Vec<(TaskId, u64)>,
    pub(super) moves: Vec<(TaskId, CpuId, Why)>,
    freqs: Vec<(u64, CpuId, KHz)>,
    /// Deadline tasks whose runtime was used up.
    pub(super) throttled: Vec<TaskId>,
}

impl TraceSink for Runs {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        match *event {
            Event::TaskNew { task, comm, cpu, why, .. } => {
                self.comms.resize_with(self.comms.len().max(task.index() + 1), String::new);
                self.comms[task.index()] = comm.into();
                self.moves.push((task, cpu, why));
                self.woke.push((task, at.0));
            }
            Event::Wakeup { task, cpu, why } => {
                self.moves.push((task, cpu, why));
                self.woke.push((task, at.0));
            }
            Event::Migrate { task, to, why, .. } => self.moves.push((task, to, why)),
            Event::Throttled { task, on: true } => self.throttled.push(task),
            Event::Freq { cpu, freq } => self.freqs.push((at.0, cpu, freq)),
            Event::Switch { cpu, prev, next } => {
                self.now.resize(self.now.len().max(cpu.index() + 1), None);
                if let Some((task, since)) = self.now[cpu.index()].take() {
                    self.turns.push((task, cpu, since, at.0));
                }
                if let Some((task, SwitchOut::Sleeping)) = prev {
                    self.slept.push((task, at.0));
                }
                self.now[cpu.index()] = next.map(|t| (t, at.0));
            }
            _ => {}
        }
    }
    fn end(&mut self, at: Instant) {
        for (cpu, runs) in std::mem::take(&mut self.now).into_iter().enumerate() {
            if let Some((task, since)) = runs {
                self.turns.push((task, CpuId(cpu as u32), since, at.0));
            }
        }
    }
}

impl Runs {
    fn task(&self, comm: &str) -> TaskId {
        let index = self.comms.iter().position(|c| c == comm);
        TaskId(index.unwrap_or_else(|| panic!("no {comm} in {:?}", self.comms)) as u32)
    }
    /// The time that `comm` ran between two times, in ns.
    pub(super) fn ran(&self, comm: &str, from_ms: u64, to_ms: u64) -> u64 {
        let (task, from, to) = (self.task(comm), from_ms * 1_000_000, to_ms * 1_000_000);
        let of = self.turns.iter().filter(|t| t.0 == task);
        of.map(|t| t.3.min(to).saturating_sub(t.2.max(from))).sum()
    }
    /// The turns of `comm`: CPU, from, to, in µs; turns without a break are one.
    pub(super) fn turns(&self, comm: &str) -> Vec<(u32, u64, u64)> {
        let task = self.task(comm);
        let mut turns: Vec<(u32, u64, u64)> = Vec::new();
        for (_, cpu, from, to) in self.turns.iter().filter(|t| t.0 == task) {
            match turns.last_mut() {
                Some(last) if last.0 == cpu.0 && last.2 == from / 1000 => last.2 = to / 1000,
                _ => turns.push((cpu.0, from / 1000, to / 1000)),
            }
        }
        turns
    }
    /// Lists each change of frequency.
    pub(super) fn freqs(&self) -> &[(u64, CpuId, KHz)] {
        &self.freqs
    }
    /// The time at which `comm` was created, in ns.
    pub(super) fn created(&self, comm: &str) -> u64 {
        let task = self.task(comm);
        self.woke.iter().find(|w| w.0 == task).expect("it is created").1
    }
    /// Lists the times from each wakeup of `comm` to its next sleep, in ns.
    pub(super) fn responses(&self, comm: &str) -> Vec<u64> {
        let task = self.task(comm);
        let after =
            |at: u64| self.slept.iter().find(|s| s.0 == task && s.1 >= at).map(|s| s.1 - at);
        self.woke.iter().filter(|w| w.0 == task).filter_map(|w| after(w.1)).collect()
    }
}

/// `laptop4` with so many of its CPUs, all alike, at HZ=1000, which wake up at once.
pub(super) fn cpus(n: usize) -> Platform {
    let mut platform = Platform::load("laptop4").expect("built in");
    platform.domains.truncate(n);
    platform.domains.iter_mut().for_each(|d| d.idle.clear());
    platform.hz = 1000;
    platform
}

pub(super) fn experiment_of(platform: Platform, tasks: &str, policy: &str, ms: u64) -> Experiment {
    let workload = Workload::parse(&format!(r#"{{"tasks": {{{tasks}}}}}"#), "t").expect("tasks");
    let set = [("governor", Value::Name("performance".into()))];
    experiment(platform, workload, policy, &set, Span::from_ms(ms))
}

pub(super) fn run(platform: Platform, tasks: &str, policy: &str, ms: u64) -> Runs {
    let mut runs = Runs::default();
    let e = experiment_of(platform, tasks, policy, ms);
    Simulator.run(&e, &mut runs).unwrap_or_else(|e| panic!("{e}"));
    runs
}

const KERNELS: [&str; 4] = ["linux-6.1", "linux-6.8", "linux-6.12", "linux-7.2"];
pub(super) const SPIN: &str = r#""runtime": 100000000"#;

#[test]
fn fifo_runs_before_all_below_it_and_in_order_of_arrival() {
    let tasks = r#"
        "fair": {"loop": 1, "run": 200000},
        "low": {"policy": "SCHED_FIFO", "priority": 5, "delay": 20000, "loop": 1, "run": 30000},
        "same": {"policy": "SCHED_FIFO", "priority": 5, "delay": 21000, "loop": 1, "run": 100},
        "high": {"policy": "SCHED_FIFO", "priority": 6, "delay": 25000, "loop": 1, "run": 10000}"#;
    for kernel in KERNELS {
        let runs = run(cpus(1), tasks, kernel, 400);
        // Preempted by the higher one it stays first of its own; who came later comes after it.
        assert_eq!(runs.turns("low"), [(0, 20_000, 25_000), (0, 35_000, 60_000)], "{kernel}");
        assert_eq!(runs.turns("high"), [(0, 25_000, 35_000)], "{kernel}");
        assert_eq!(runs.turns("same"), [(0, 60_000, 60_100)], "{kernel}");
        assert_eq!(runs.turns("fair")[0], (0, 0, 20_000), "{kernel}");
    }
}

#[test]
fn rr_tasks_take_turns_of_100_ms() {
    let tasks = format!(
        r#""rr": {{"policy": "SCHED_RR", "priority": 5, "instance": 2, {SPIN}}},
           "other": {{"policy": "SCHED_RR", "priority": 4, {SPIN}}}"#
    );
    for kernel in KERNELS {
        let runs = run(cpus(1), &tasks, kernel, 650);
        let turns = |comm| runs.turns(comm).into_iter().map(|t| (t.1, t.2)).collect::<Vec<_>>();
        assert_eq!(turns("rr-0")[..3], [(0, 100_000), (200_000, 300_000), (400_000, 500_000)]);
        assert_eq!(turns("rr-1")[..2], [(100_000, 200_000), (300_000, 400_000)]);
        assert_eq!(runs.ran("other", 0, 650), 0, "{kernel}: a lower priority waits");
    }
}

#[test]
fn rt_tasks_leave_fair_ones_five_percent_each_generation_in_its_way() {
    let tasks =
        format!(r#""fair": {{{SPIN}}}, "rt": {{"policy": "SCHED_FIFO", "delay": 5000, {SPIN}}}"#);
    // Throttled: 950 ms of each second from its first moment on.
    let runs = run(cpus(1), &tasks, "linux-6.8", 4100);
    for second in 0..4 {
        let fair = runs.ran("fair", second * 1000 + 5, second * 1000 + 1005);
        assert!((48_000_000..=50_000_000).contains(&fair), "{second}: {fair}");
    }
    assert_eq!(runs.turns("rt")[0], (0, 5_000, 956_000), "noticed at the next tick");
    // The server: 50 ms in a second, and only once the fair task has starved for 950 ms.
    for kernel in ["linux-6.12", "linux-7.2"] {
        let runs = run(cpus(1), &tasks, kernel, 6000);
        let starved = runs.turns("fair")[1].1;
        assert!((900_000..=1_010_000).contains(&starved), "{kernel}: {starved}");
        for second in 1..5 {
            let from = starved / 1000 + (second - 1) * 1000;
            let fair = runs.ran("fair", from, from + 1000);
            assert!((49_000_000..=51_000_000).contains(&fair), "{kernel} {second}: {fair}");
        }
    }
}

#[test]
fn a_reservation_is_kept_and_not_exceeded() {
    let tasks = format!(
        r#""fair": {{{SPIN}}}, "rt": {{"policy": "SCHED_FIFO", {SPIN}}},
           "dl": {{"policy": "SCHED_DEADLINE", "dl-runtime": 3000, "dl-period": 10000, {SPIN}}}"#
    );
    // (It needs a CPU once to become a deadline task: from the fair server's first turn on.)
    for kernel in ["linux-6.12", "linux-7.2"] {
        let runs = run(cpus(2), &tasks, kernel, 3000);
        let dl = runs.ran("dl", 1500, 2500);
        assert!(dl.abs_diff(300_000_000) <= 2_000_000, "{kernel}: {dl}");
    }
}

#[test]
fn deadlines_are_met_as_long_as_they_fit() {
    // 0.9 of a CPU in all, under EDF.
    let tasks = r#"
        "a": {"policy": "SCHED_DEADLINE", "dl-runtime": 2000, "dl-period": 10000, "loop": -1,
              "run": 1900, "timer": {"ref": "unique", "period": 10000}},
        "b": {"policy": "SCHED_DEADLINE", "dl-runtime": 8000, "dl-period": 20000, "loop": -1,
              "run": 7900, "timer": {"ref": "unique", "period": 20000}},
        "c": {"policy": "SCHED_DEADLINE", "dl-runtime": 9000, "dl-period": 30000, "loop": -1,
              "run": 8900, "timer": {"ref": "unique", "period": 30000}},
        "hog": {"runtime": 100000000}"#;
    for kernel in ["linux-6.8", "linux-7.2"] {
        let runs = run(cpus(1), tasks, kernel, 3000);
        for (comm, period) in [("a", 10), ("b", 20), ("c", 30)] {
            let responses = runs.responses(comm);
            assert!(
                responses.len() as u64 >= 2900 / period,
                "{kernel} {comm}: {}",
                responses.len()
            );
            let worst = responses[1..].iter().max().copied().unwrap_or(0);
            assert!(worst <= period * 1_000_000, "{kernel} {comm}: {worst}");
        }
    }
}

#[test]
fn what_others_leave_can_be_reclaimed() {
    let tasks = |reclaim: bool| {
        format!(
            r#""dl": {{"policy": "SCHED_DEADLINE", "dl-runtime": 3000, "dl-period": 10000,
               "dl-reclaim": {reclaim}, {SPIN}}}"#
        )
    };
    let ran = |reclaim| run(cpus(1), &tasks(reclaim), "linux-6.8", 2000).ran("dl", 500, 1500);
    assert!(ran(false).abs_diff(300_000_000) <= 2_000_000, "{}", ran(false));
    // Alone it may have all that can be reserved: 95 %.
    assert!(ran(true).abs_diff(950_000_000) <= 10_000_000, "{}", ran(true));
    // Up to 6.4 it paid for what cannot be: 1 - (0.95 - 0.3) of what it ran, 3 ms of it in 10.
    let before = run(cpus(1), &tasks(true), "linux-6.1", 2000).ran("dl", 500, 1500);
    assert!(before.abs_diff(857_000_000) <= 10_000_000, "{before}");
}

#[test]
fn a_constrained_deadline_does_not_let_a_task_have_more_than_its_bandwidth() {
    // It sleeps past each deadline and comes back before the period is over.
    let tasks = r#"
        "dl": {"policy": "SCHED_DEADLINE", "dl-runtime": 1000, "dl-deadline": 2000,
               "dl-period": 10000, "loop": -1, "run": 900, "sleep": 2000}"#;
    let runs = run(cpus(1), tasks, "linux-7.2", 1000);
    let dl = runs.ran("dl", 100, 1000);
    assert!(dl <= 91_000_000, "{dl}");
    assert!(dl >= 70_000_000, "{dl}");
}

#[test]
fn what_cannot_be_promised_is_refused() {
    let tasks = |n| {
        format!(
            r#""dl": {{"policy": "SCHED_DEADLINE", "dl-runtime": 5000, "dl-period": 10000,
               "instance": {n}, "loop": -1, "run": 100, "sleep": 900}}"#
        )
    };
    let refused = |n, kernel| {
        let e = experiment_of(cpus(2), &tasks(n), kernel, 100);
        Simulator.run(&e, &mut ()).err().map(|e| e.to_string())
    };
    assert_eq!(refused(3, "linux-6.8"), None);
    let message = refused(4, "linux-6.8").unwrap_or_default();
    assert!(message.contains("dl-3") && message.contains("refused"), "{message}");
    // Two CPUs' fair servers take 10 % of one.
    assert_eq!(refused(3, "linux-7.2"), None);
    assert!(refused(4, "linux-7.2").is_some());
}

#[test]
fn shares_follow_weights_to_a_slice() {
    let spinners =
        |attrs: [&str; 2]| format!(r#""a": {{{} {SPIN}}}, "b": {{{} {SPIN}}}"#, attrs[0], attrs[1]);
    let idle = r#""policy": "SCHED_IDLE","#;
    for (attrs, weights) in [
        ([r#""priority": -20,"#, ""], (88_761, 1_024)),
        (["", idle], (1_024, 3)),
        ([r#""priority": 5,"#, r#""policy": "SCHED_BATCH", "priority": 3,"#], (335, 526)),
    ] {
        for kernel in KERNELS {
            let runs = run(cpus(1), &spinners(attrs), kernel, 20_000);
            let (a, b) = (runs.ran("a", 0, 20_000), runs.ran("b", 0, 20_000));
            let want = 20_000_000_000 * weights.0 / (weights.0 + weights.1);
            assert_eq!(a + b, 20_000_000_000);
            assert!(a.abs_diff(want) <= 4_000_000, "{kernel} {attrs:?}: {a}, wanted {want}");
        }
    }
}

/// One spinner of nice -20 beside n at nice 0 gets 88761 / (88761 + n · 1024) of the CPU, and each of
/// those its 1024 of it; beside one, 98.9 %.
#[test]
fn one_of_nice_minus_20_beside_many_gets_its_weight_of_all() {
    const MS: u64 = 20_000;
    for kernel in KERNELS.iter().chain(&["linux-6.6", "linux-7.3"]) {
        for n in [1, 2, 5, 12] {
            let tasks = format!(
                r#""first": {{"priority": -20, {SPIN}}}, "other": {{"instance": {n}, {SPIN}}}"#
            );
            let runs = run(cpus(1), &tasks, kernel, MS);
            let all = 88_761 + n * 1024;
            let of = |weight: u64| MS * 1_000_000 * weight / all;
            let first = runs.ran("first", 0, MS);
            // A slice of it may lie beyond the end, and so may each of the others'.
            assert!(
                first.abs_diff(of(88_761)) <= 4_000_000 + n * 750_000,
                "{kernel}, {n}: {first}"
            );
            let name = |i| if n == 1 { "other".to_string() } else { format!("other-{i}") };
            for i in 0..n {
                let ran = runs.ran(&name(i), 0, MS);
                assert!(
                    ran.abs_diff(of(1024)) <= 4_000_000,
                    "{kernel}, {n}: {ran} of {}",
                    of(1024)
                );
            }
        }
    }
}

#[test]
fn a_waking_task_preempts_idle_ones_at_once_and_batch_ones_wait_for_the_tick() {
    let tasks = |spinner: &str, waker: &str| {
        format!(
            r#""spin": {{{spinner} {SPIN}}},
               "waker": {{{waker} "loop": -1, "run": 100, "sleep": 7300}}"#
        )
    };
    let delays = |spinner, waker| {
        let runs = run(cpus(1), &tasks(spinner, waker), "linux-7.2", 1000);
        runs.responses("waker").into_iter().skip(1).max().unwrap_or(0)
    };
    let (idle, batch) = (r#""policy": "SCHED_IDLE","#, r#""policy": "SCHED_BATCH","#);
    assert!(delays(idle, "") <= 101_000, "{}", delays(idle, ""));
    assert!(delays("", batch) > 500_000, "{}", delays("", batch));
}

#[test]
fn rt_tasks_spread_and_take_the_lowest_ranks() {
    // Three on two CPUs: the lowest of them waits, and gets the CPU of the first that sleeps.
    let tasks = r#"
        "a": {"policy": "SCHED_FIFO", "priority": 10, "loop": 1, "run": 50000},
        "b": {"policy": "SCHED_FIFO", "priority": 20, "delay": 1000, "loop": 1, "run": 30000},
        "c": {"policy": "SCHED_FIFO", "priority": 30, "delay": 2000, "loop": 1, "run": 20000}"#;
    for kernel in KERNELS {
        let runs = run(cpus(2), tasks, kernel, 200);
        assert_eq!(runs.turns("b"), [(1, 1_000, 2_000), (0, 2_000, 31_000)], "{kernel}");
        assert_eq!(runs.turns("c"), [(1, 2_000, 22_000)], "{kernel}");
        let a = [(0, 0, 2_000), (1, 22_000, 70_000)];
        assert_eq!(runs.turns("a"), a, "{kernel}");
        assert_eq!(runs.moves.last(), Some(&(runs.task("a"), CpuId(1), Why::RtPush)));
    }
}

#[test]
fn rt_tasks_go_to_cpus_as_big_as_they_ask_for() {
    let task = |clamp: &str| {
        format!(
            r#""rt": {{"policy": "SCHED_FIFO", {clamp} "loop": -1, "run": 500, "sleep": 9500}}"#
        )
    };
    let cpus_used = |clamp| {
        let platform = Platform::load("m1").expect("built in");
        let runs = run(platform, &task(clamp), "linux-7.2", 200);
        let mut cpus: Vec<u32> = runs.turns("rt").iter().skip(2).map(|t| t.0).collect();
        cpus.dedup();
        cpus
    };
    assert!(cpus_used("").iter().all(|c| *c >= 4), "{:?}", cpus_used(""));
    assert!(cpus_used(r#""util_min": 100,"#).iter().all(|c| *c < 4));
}

#[test]
fn bandwidth_keeps_the_frequency_up_until_the_0_lag_time() {
    // 40 % of a CPU, almost always asleep: util asks for the lowest frequency.
    let tasks = r#""dl": {"policy": "SCHED_DEADLINE", "dl-runtime": 4000, "dl-period": 10000,
                          "loop": -1, "run": 50, "timer": {"ref": "unique", "period": 10000}}"#;
    let lowest = |policy: &str| {
        let text = tasks.replace("SCHED_DEADLINE", policy);
        let text = if policy == "SCHED_DEADLINE" {
            text
        } else {
            text.replace(r#""dl-runtime": 4000, "dl-period": 10000,"#, "")
        };
        let workload = Workload::parse(&format!(r#"{{"tasks": {{{text}}}}}"#), "t").expect("tasks");
        let e = experiment(cpus(1), workload, "linux-7.2", &[], Span::from_ms(1000));
        let max = e.platform.domains[0].freq_max();
        let mut runs = Runs::default();
        Simulator.run(&e, &mut runs).unwrap_or_else(|e| panic!("{e}"));
        // The last one may wake as the run ends, before its frequency has come.
        let ran = runs.turns.iter().skip(5).filter(|t| t.2 < t.3);
        let while_runs = ran.map(|t| {
            let last = runs.freqs.iter().rev().find(|f| f.0 <= t.3).expect("a frequency");
            last.2.0 * 100 / max.0
        });
        while_runs.min().unwrap_or(0)
    };
    assert!(lowest("SCHED_DEADLINE") >= 40, "{} %", lowest("SCHED_DEADLINE"));
    assert!(lowest("SCHED_OTHER") < 40, "{} %", lowest("SCHED_OTHER"));
}

#[test]
fn a_phase_may_change_the_class_and_back() {
    let tasks = format!(
        r#""t": {{"loop": -1, "phases": {{
              "fair": {{"policy": "SCHED_OTHER", "runtime": 10000}},
              "fifo": {{"policy": "SCHED_FIFO", "runtime": 10000}},
              "dl": {{"policy": "SCHED_DEADLINE", "dl-runtime": 5000, "dl-period": 10000, "runtime": 10000}}}}}},
           "spin": {{{SPIN}}}"#
    );
    for kernel in KERNELS {
        let e = experiment_of(cpus(1), &tasks, kernel, 2000);
        let mut runs = Runs::default();
        let mut engine =
            setup::simulation(&e, &mut runs, crate::Counterfactual::default()).expect("an engine");
        engine.run(Instant(e.duration.0)).expect("a run");
        runs.end(Instant(e.duration.0));
        let (t, spin) = (runs.ran("t", 0, 2000), runs.ran("spin", 0, 2000));
        assert_eq!(t + spin, 2_000_000_000, "{kernel}: somebody always runs");
        // Half of the fair phases, all of the FIFO ones, half of the deadline ones.
        assert!((1_000_000_000..1_600_000_000).contains(&t), "{kernel}: {t}");
    }
}

/// A task that is replenished is pushed to another CPU without deadline tasks before its own, which is
/// idle, has picked it; one that may not go runs where it is. So from 6.7 on: before, a CPU pushed where two tasks were.
#[test]
fn a_replenished_task_is_pushed_off_an_idle_cpu() {
    let on = |n: usize, kernel: &str| {
        let tasks = format!(
            r#""dl": {{"policy": "SCHED_DEADLINE", "dl-runtime": 3000, "dl-period": 10000, {SPIN}}}"#
        );
        let runs = run(cpus(n), &tasks, kernel, 60);
        let pushed = runs.moves.iter().filter(|m| m.2 == Why::DlPush).count();
        (runs.turns("dl").iter().map(|t| t.0).collect::<Vec<_>>(), pushed)
    };
    let (alone, pushed) = on(1, "linux-7.3");
    assert!(alone.iter().all(|cpu| *cpu == 0) && pushed == 0, "{alone:?} {pushed}");
    for kernel in ["linux-7.3", "linux-6.12", "linux-6.8"] {
        let (turns, pushed) = on(2, kernel);
        assert!(turns.windows(2).all(|w| w[0] != w[1]), "{kernel}: {turns:?}");
        assert!(turns.len() > 4 && pushed >= turns.len() - 1, "{kernel}: {turns:?} {pushed}");
    }
    for kernel in ["linux-6.6", "linux-6.1"] {
        let (turns, pushed) = on(2, kernel);
        assert!(turns.len() > 4 && turns.iter().all(|cpu| *cpu == turns[0]), "{kernel}: {turns:?}");
        assert_eq!(pushed, 0, "{kernel}");
    }
}

/// A task that is pushed has not woken: where it comes, it is not sent on in the same moment (and back, without end).
#[test]
fn a_pushed_task_stays_for_the_moment() {
    let tasks = r#"
        "control": {"policy": "SCHED_DEADLINE", "dl-runtime": 2000, "dl-deadline": 8000, "dl-period": 10000,
                    "loop": -1, "run": 1500, "timer": {"ref": "unique", "period": 10000}},
        "video": {"instance": 3, "policy": "SCHED_DEADLINE", "dl-runtime": 9000, "dl-period": 33000,
                  "loop": -1, "run": 7000, "timer": {"ref": "unique", "period": 33000}},
        "over": {"policy": "SCHED_DEADLINE", "dl-runtime": 4000, "dl-period": 20000,
                 "loop": -1, "run": 6000, "timer": {"ref": "unique", "period": 20000}}"#;
    let workload = format!(r#"{{"tasks": {{{tasks}}}}}"#);
    for (kernel, seed) in KERNELS.into_iter().flat_map(|kernel| (1..4).map(move |s| (kernel, s))) {
        let platform = Platform::load("rpi4").expect("built in");
        let workload = Workload::parse(&workload, "t").expect("tasks");
        let noise = [("noise", Value::Name("vm".into()))];
        let mut e = experiment(platform, workload, kernel, &noise, Span::from_ms(2000));
        e.seed = seed;
        let mut moves = Moves::default();
        Simulator.run(&e, &mut moves).unwrap_or_else(|e| panic!("{kernel}: {e}"));
        let most = moves.0.values().copied().max();
        // It wakes, is pushed, and may be pulled elsewhere.
        assert!(most.is_some_and(|most| most <= 3), "{kernel}, seed {seed}: {most:?}");
    }
}

/// Numbers of moves of each task at each moment.
#[derive(Default)]
struct Moves(std::collections::BTreeMap<(Instant, TaskId), u32>);

impl TraceSink for Moves {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        if let Event::Migrate { task, .. } = event {
            *self.0.entry((at, *task)).or_default() += 1;
        }
    }
    fn end(&mut self, _: Instant) {}
}

/// `rt_task`: until 6.11 a real-time task that wakes where a deadline task runs goes elsewhere at once; later it is queued
/// there first, and then pushed.
#[test]
fn a_real_time_task_wakes_where_a_deadline_task_runs() {
    let tasks = r#"
        "fifo": {"policy": "SCHED_FIFO", "priority": 10, "cpus": [0, 1], "loop": 2, "run": 1000, "sleep": 9000},
        "dl": {"policy": "SCHED_DEADLINE", "dl-runtime": 90000, "dl-period": 100000, "delay": 5000,
               "cpus": [0, 1], "loop": 1, "runtime": 80000},
        "pinned": {"policy": "SCHED_FIFO", "priority": 20, "cpus": [1], "delay": 4000, "loop": 1, "runtime": 3000}"#;
    let goes = [(CpuId(1), Why::LowestRq)];
    let is_pushed = [(CpuId(0), Why::PrevCpu), (CpuId(1), Why::RtPush)];
    for (kernel, moves) in [
        ("linux-6.1", &goes[..]),
        ("linux-6.8", &goes[..]),
        ("linux-6.12", &is_pushed[..]),
        ("linux-7.3", &is_pushed[..]),
    ] {
        let runs = run(cpus(2), tasks, kernel, 15);
        let fifo = runs.task("fifo");
        let of_fifo = runs.moves.iter().filter(|m| m.0 == fifo).map(|m| (m.1, m.2));
        let all: Vec<_> = of_fifo.skip(1).collect();
        assert!(all.starts_with(moves), "{kernel}: {all:?}");
        assert_eq!(runs.turns("fifo")[1], (1, 10_000, 11_000), "{kernel}");
    }
}

/// When a fair task becomes a deadline task, cpufreq hears of its bandwidth: until 6.18 while what it needed as a fair
/// one counts still (`switched_from` comes last), later without.
#[test]
fn the_frequency_at_which_a_task_becomes_a_deadline_task() {
    let tasks = r#""t": {"loop": 1, "phases": {
        "fair": {"policy": "SCHED_OTHER", "runtime": 60000},
        "dl": {"policy": "SCHED_DEADLINE", "dl-runtime": 3000, "dl-period": 10000, "runtime": 10000}}}"#;
    let asked = |kernel: &str| {
        let workload =
            Workload::parse(&format!(r#"{{"tasks": {{{tasks}}}}}"#), "t").expect("tasks");
        let e = experiment(cpus(1), workload, kernel, &[], Span::from_ms(75));
        let mut asked = Requests::default();
        Simulator.run(&e, &mut asked).unwrap_or_else(|e| panic!("{e}"));
        asked.0
    };
    for (kernel, counts) in [("linux-6.1", true), ("linux-6.12", true), ("linux-7.2", false)] {
        let all = asked(kernel);
        let first = all.first().copied().unwrap_or_else(|| panic!("{kernel}: nothing asked"));
        // 30 % and the headroom are below half; what it ran for 60 ms is above.
        assert_eq!(first > Util(512), counts, "{kernel}: {all:?}");
    }
}

/// Utils that cpufreq was asked for in the moment in which a task became a deadline task.
#[derive(Default)]
struct Requests(Vec<Util>, Vec<(Instant, Util)>);

impl TraceSink for Requests {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        match event {
            Event::FreqRequest { util, why, .. } if *why != Why::RateLimited => {
                self.1.push((at, *util))
            }
            Event::Policy { policy: Policy::Deadline { .. }, .. } => {
                self.0 =
                    self.1.iter().filter(|(when, _)| *when == at).map(|(_, util)| *util).collect();
            }
            _ => {}
        }
    }
    fn end(&mut self, _: Instant) {}
}

/// Debian's 6.1 and 6.12 for arm64 are such: real-time tasks ask for the highest frequency, as where nobody uses clamps, and
/// fit on every CPU; whoever asks for clamps is told.
#[test]
fn a_kernel_without_clamps() {
    let task =
        r#""t": {"policy": "SCHED_FIFO", "priority": 5, "loop": -1, "run": 2000, "sleep": 3000}"#;
    let workload = || Workload::parse(&format!(r#"{{"tasks": {{{task}}}}}"#), "t").expect("tasks");
    let m1 = || Platform::load("m1").expect("built in");
    let run = |platform: Platform, set: &str| {
        let e =
            experiment(platform, workload(), &format!("linux-6.1{set}"), &[], Span::from_ms(50));
        let mut memory = risetime_trace::Memory::default();
        Simulator.run(&e, &mut memory).map(|_| memory.events().to_vec())
    };
    let plain = run(cpus(2), "").expect("runs");
    assert!(plain == run(cpus(2), "+uclamp_task=0").expect("runs"), "equal CPUs");
    let told = run(m1(), "+uclamp_task=0+uclamp_min=100").expect_err("refused").to_string();
    assert!(told.contains("this kernel has none"), "{told}");
    let first = |events: &[(Instant, Event)]| {
        let wakes = events.iter().find_map(|(_, e)| match e {
            Event::Wakeup { task: TaskId(0), cpu, .. } => Some(*cpu),
            _ => None,
        });
        wakes.expect("it wakes")
    };
    // CPUs 0 to 3 are the small ones.
    let [small, big] =
        ["+uclamp_task=0+first_cpu=0", "+first_cpu=0"].map(|set| run(m1(), set).expect("runs"));
    assert!(
        first(&small) < CpuId(4) && first(&big) >= CpuId(4),
        "{:?} {:?}",
        first(&small),
        first(&big)
    );
}
