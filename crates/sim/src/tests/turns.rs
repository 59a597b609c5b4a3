//! Turns and when they end: small cases in which one trigger of the kernel decides, with what real
//! kernels gave (rpi4's four equal CPUs, the highest frequency).

use super::experiment;
use crate::Replay;
use crate::run::mutant::Mutant;
use risetime_kernel::units::{CpuId, Instant, Span, TaskId};
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Workload};
use risetime_trace::{Backend, Event, Header, SwitchOut, TraceSink};

/// Turns: how long each activation took, and which task had which CPU.
#[derive(Default)]
struct Turns {
    /// Activations of each task: runnable since, and those that are over, in ns.
    tasks: Vec<(Option<Instant>, Vec<u64>)>,
    /// Times from which on a task had a CPU, or none had.
    on: Vec<(Instant, CpuId, Option<TaskId>)>,
    end: Instant,
}

impl TraceSink for Turns {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        match *event {
            Event::TaskNew { task, .. } | Event::Wakeup { task, .. } => {
                self.tasks.resize(self.tasks.len().max(task.index() + 1), (None, Vec::new()));
                self.tasks[task.index()].0.get_or_insert(at);
            }
            Event::Switch { cpu, prev, next } => {
                self.on.push((at, cpu, next));
                if let Some((task, SwitchOut::Sleeping)) = prev {
                    let (since, took) = &mut self.tasks[task.index()];
                    took.extend(since.take().map(|since| at.since(since).0));
                }
            }
            _ => {}
        }
    }
    fn end(&mut self, at: Instant) {
        self.end = at;
    }
}

impl Turns {
    /// The p-th percentile of a task's activations, in µs (nearest rank).
    fn percentile(&self, task: usize, p: usize) -> u64 {
        let mut took = self.tasks[task].1.clone();
        took.sort_unstable();
        took[(took.len() * p).div_ceil(100) - 1] / 1000
    }
}

fn run(e: &Experiment, mutant: Option<Mutant>) -> Turns {
    let mut turns = Turns::default();
    Replay { mutant, ..Replay::default() }.run(e, &mut turns).expect("a run");
    turns
}

/// `tasks` (rt-app's JSON, without the outer braces) on `rpi4` under `kernel`.
fn on_rpi4(kernel: &str, tasks: &str) -> Experiment {
    let platform = Platform::load("rpi4").expect("built in");
    let workload = Workload::parse(&format!("{{{tasks}}}"), "made").expect("a workload");
    let set = [("governor", Value::Name("performance".into()))];
    experiment(platform, workload, kernel, &set, Span::from_ms(4000))
}

/// `found` is within `percent` of `real`.
#[track_caller]
fn near(found: u64, real: u64, percent: u64, what: &str) {
    let by = found.abs_diff(real) * 100;
    assert!(by <= real * percent, "{what}: {found}, a real kernel has {real}");
}

/// Two busy loops and a short sleeper between them: most of its wakeups come after the running loop's
/// slice, which ends in the accounting of the wakeup. Linux 7.2.13: 1764 activations in 3 s.
#[test]
fn a_turn_that_a_wakeup_finds_over_ends_there() {
    let tasks = r#""tasks": {
        "hogA": {"loop": -1, "runtime": 3000000, "cpus": [2]},
        "perA": {"loop": -1, "run": 200, "sleep": 1100, "cpus": [2]},
        "hogB": {"loop": -1, "runtime": 3000000, "cpus": [2]}}"#;
    for kernel in ["linux-6.6", "linux-6.12", "linux-7.2", "linux-7.3"] {
        let e = Experiment { duration: Span::from_ms(3000), ..on_rpi4(kernel, tasks) };
        near(run(&e, None).tasks[1].1.len() as u64, 1764, 10, kernel);
        // From 7.3 on a wakeup's preemption is looked at all the same.
        let forgotten = run(&e, Some(Mutant::TurnForgotten)).tasks[1].1.len();
        assert!(forgotten < 1500 || kernel == "linux-7.3", "{kernel}: {forgotten}");
    }
}

/// A group's entity is none of SCHED_BATCH or SCHED_IDLE: the tasks' own policies are asked. Linux 6.1,
/// 6.12 and 7.2: 2.29 to 2.30 ms, 2.5 ms.
#[test]
fn batch_and_idle_tasks_are_that_in_groups_too() {
    let groups = r#""taskgroups": {"/a": {"weight": 100}, "/b": {"weight": 100}}"#;
    let tasks = |a: &str, b: &str| {
        format!(
            r#"{groups}, "tasks": {{
                "perA": {{"loop": -1, "cpus": [2], "taskgroup": "/a", {a}}},
                "hogB": {{"loop": -1, "runtime": 6000000, "cpus": [2], "taskgroup": "/b" {b}}}}}"#
        )
    };
    let batch = tasks(r#""run": 300, "sleep": 5700, "policy": "SCHED_BATCH""#, "");
    for kernel in ["linux-6.1", "linux-6.12", "linux-7.2", "linux-7.3"] {
        let e = on_rpi4(kernel, &batch);
        near(run(&e, None).percentile(0, 50), 2295, 5, kernel);
        let preempts = run(&e, Some(Mutant::GroupPolicyDecides)).percentile(0, 50);
        assert!(preempts < 400, "{kernel}: {preempts}");
    }
    let idle = tasks(r#""run": 2500, "sleep": 1700"#, r#", "policy": "SCHED_IDLE""#);
    let e = on_rpi4("linux-6.1", &idle);
    near(run(&e, None).percentile(0, 90), 2500, 5, "linux-6.1");
}

/// Two tasks that nap on one CPU: nobody looks at their util when they wake, so that it is not aged
/// before they are queued. Linux 7.2.13 at HZ=1000: once busy, and free to go where they like, they
/// share that CPU for 39.9 ms.
#[test]
fn signals_of_a_pinned_task_are_not_aged_before_it_is_queued() {
    let nap = r#""nap": {"loop": 100, "run": 1, "sleep": 10000, "cpus": [0]}"#;
    let busy = r#""busy": {"loop": 1, "runtime": 400000, "cpus": [0, 1, 2, 3, 4, 5, 6, 7]}"#;
    let task = |name: &str| format!(r#""{name}": {{"loop": 1, "phases": {{{nap}, {busy}}}}}"#);
    let text = format!(r#"{{"tasks": {{{}, {}}}}}"#, task("c"), task("d"));
    let platform = Platform::load("m1").expect("built in");
    let set = [("rate_limit_us", Value::Int(10_000))];
    let workload = Workload::parse(&text, "made").expect("a workload");
    let e = experiment(platform, workload, "linux-7.2", &set, Span::from_ms(1400));
    // The lesser share of CPU 0, from the naps' end on.
    let shared = |mutant| {
        let turns = run(&e, mutant);
        let mut ran = [0; 2];
        let mut has: Option<(Instant, usize)> = None;
        for (at, cpu, next) in turns.on.iter().filter(|(at, ..)| at.0 >= 1_000_000_000) {
            if *cpu == CpuId(0) {
                if let Some((since, task)) = has {
                    ran[task] += at.since(since).0 / 1000;
                }
                has = next.map(|task| (*at, task.index())).filter(|(_, task)| *task < 2);
            }
        }
        ran[0].min(ran[1])
    };
    near(shared(None), 39_900, 5, "linux-7.2");
    assert!(shared(Some(Mutant::SyncedAlways)) < 10_000);
}

/// Five of 3 ms in 10 on m1, as 7.3.4 ran them: that on a small CPU woke 0.2 ms after the last of the
/// others, which had the four big CPUs by then, and all stayed where they were. Starts are those of
/// the kernel, where the first task kept the others' from starting for 8 ms.
#[test]
fn a_real_time_task_stays_on_a_small_cpu_while_others_have_all_big_ones() {
    #[derive(Default)]
    struct Moves(Vec<(Instant, TaskId)>);
    impl TraceSink for Moves {
        fn header(&mut self, _: &Header) {}
        fn event(&mut self, at: Instant, event: &Event) {
            if let Event::Migrate { task, .. } = event {
                self.0.push((at, *task));
            }
        }
        fn end(&mut self, _: Instant) {}
    }
    let one = |name: &str, delay: u32| {
        format!(
            r#""{name}": {{"policy": "SCHED_FIFO", "priority": 50, "delay": {delay}, "loop": -1, "run": 3000, "timer": {{"ref": "unique", "period": 10000}}}}"#
        )
    };
    let starts = [("a", 340), ("b", 8765), ("c", 9035), ("d", 9505), ("e", 10_155)];
    let tasks: Vec<String> = starts.iter().map(|(name, us)| one(name, *us)).collect();
    let text = format!(r#"{{"tasks": {{{}}}}}"#, tasks.join(", "));
    for noise in ["off", "vm"] {
        let workload = Workload::parse(&text, "five.json").expect("tasks");
        let m1 = Platform::load("m1").expect("built in");
        let set = [("noise", Value::Name(noise.into()))];
        let e = experiment(m1, workload, "linux-7.3", &set, Span::from_ms(1000));
        let mut moves = Moves::default();
        crate::Simulator.run(&e, &mut moves).expect("it runs");
        moves.0.retain(|(at, task)| at.0 > 20_000_000 && task.index() < 5);
        assert!(
            moves.0.is_empty(),
            "noise {noise}: {} moves, {:?}",
            moves.0.len(),
            moves.0.first()
        );
    }
}
