//! The stoppers: what they delay, by how much, and what they leave alone.

use crate::run::engine::Simulation;
use crate::state::class::Class;
use crate::state::class::StopWork;
use crate::state::machine::State;
use crate::{Counterfactual, setup};
use risetime_kernel::units::{CpuId, Instant, Span, TaskId, Util};
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Workload};
use risetime_trace::{Event, Header, SwitchOut, TraceSink, Why};

const WORK: u64 = 50_000;

/// The task that left a CPU, and how.
type Left = Option<(TaskId, SwitchOut)>;

/// Moves and switches of tasks, and new ones.
#[derive(Default)]
struct Log {
    moves: Vec<(u64, TaskId, CpuId, CpuId, Why)>,
    switches: Vec<(u64, CpuId, Left, Option<TaskId>)>,
    new: Vec<(u64, TaskId, String, bool)>,
}

impl TraceSink for Log {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        match *event {
            Event::Migrate { task, from, to, why } => self.moves.push((at.0, task, from, to, why)),
            Event::Switch { cpu, prev, next } => self.switches.push((at.0, cpu, prev, next)),
            Event::TaskNew { task, comm, user, .. } => {
                self.new.push((at.0, task, comm.into(), user));
            }
            _ => {}
        }
    }
    fn end(&mut self, _: Instant) {}
}

fn m1(tasks: &str, stop_work: u64, ms: u64) -> Experiment {
    let workload = Workload::parse(&format!(r#"{{"tasks": {{{tasks}}}}}"#), "made");
    let m1 = Platform::load("m1").expect("built in");
    let set = [("stop_work_ns", Value::Int(stop_work as i64))];
    super::experiment(m1, workload.expect("a workload"), "linux-7.2", &set, Span::from_ms(ms))
}

fn run(e: &Experiment) -> Log {
    let mut log = Log::default();
    with(e, &mut log, |engine| engine.run(Instant(e.duration.0)).map(|_| ()).expect("a run"));
    log
}

fn with(e: &Experiment, log: &mut Log, test: impl FnOnce(&mut Simulation<'_>)) {
    test(&mut setup::simulation(e, log, Counterfactual::default()).expect("an engine"));
}

/// Goes on to this time, in ns.
fn go(e: &mut Simulation<'_>, to: u64) {
    while e.step(Instant(to)).expect("a run") {}
    e.k.m.now = Instant(to);
}

/// Runs from the start to time `at`, in ns, when the stopper of `cpu` is asked to move its task to
/// `to`.
fn asked_for_balance(e: &mut Simulation<'_>, at: u64, cpu: u32, to: u32) {
    e.start();
    go(e, at);
    let balance = StopWork::ActiveBalance { to: CpuId(to), why: Why::Balance };
    e.k.rq(CpuId(cpu)).stop_one_cpu_nowait(balance);
    e.drain_resched();
}

/// The stopper of this CPU as the trace knows it.
fn stopper(log: &Log, cpu: u32) -> TaskId {
    let comm = format!("migration/{cpu}");
    let found = log.new.iter().find(|(_, _, c, user)| *c == comm && !user);
    found.unwrap_or_else(|| panic!("no {comm} in {:?}", log.new)).1
}

const SPIN: &str = r#""t": {"cpus": [0, 5], "loop": -1, "run": 1000000}"#;

const RAMP: &str = r#""t": {"cpus": [0, 1, 2, 3, 4, 5, 6, 7], "loop": -1, "run": 1000000}"#;

#[test]
fn a_misfit_task_waits_for_the_stopper_before_it_is_pulled() {
    let (at_once, later) = (run(&m1(RAMP, 0, 400)), run(&m1(RAMP, WORK, 400)));
    let pull = |log: &Log| *log.moves.iter().find(|m| m.4 == Why::Misfit).expect("a misfit pull");
    let ((t0, task, from, _, _), (t1, ..)) = (pull(&at_once), pull(&later));
    assert_eq!(t1, t0 + WORK);
    let stopper = stopper(&later, from.0);
    let at = |at: u64| -> Vec<_> {
        let all = later.switches.iter().filter(|s| s.0 == at && s.1 == from);
        all.map(|s| (s.2, s.3)).collect()
    };
    assert_eq!(at(t0), [(Some((task, SwitchOut::Preempted)), Some(stopper))]);
    assert_eq!(at(t1), [(Some((stopper, SwitchOut::Sleeping)), None)]);
    assert!(at_once.new.iter().all(|(_, _, comm, _)| !comm.starts_with("migration/")));
}

#[test]
fn a_task_that_forbids_itself_its_cpu_waits_for_the_stopper_and_goes_on_elsewhere() {
    // It sleeps first thing there: after it has moved, not before.
    let tasks = r#""t": {"loop": 1, "phases": {
        "here": {"cpus": [0], "runtime": 5000},
        "there": {"cpus": [5], "loop": -1, "sleep": 3000, "run": 100}}}"#;
    let moved = [0, WORK].map(|stop_work| {
        let log = run(&m1(tasks, stop_work, 20));
        let t = log.new[0].1;
        let moved = *log.moves.iter().find(|m| m.1 == t).expect("it moves");
        assert_eq!((moved.3, moved.4), (CpuId(5), Why::Affinity));
        let slept = log.switches.iter().find(|s| s.2 == Some((t, SwitchOut::Sleeping)));
        let slept = slept.expect("it sleeps there");
        assert!(slept.1 == CpuId(5) && slept.0 >= moved.0, "{slept:?}");
        moved.0
    });
    assert_eq!(moved[1], moved[0] + WORK);
}

#[test]
fn works_are_done_one_after_the_other_and_balancing_is_asked_for_once() {
    let e = m1(SPIN, WORK, 100);
    let mut log = Log::default();
    with(&e, &mut log, |e| {
        e.start();
        go(e, 6_000_000);
        let t = TaskId(0);
        assert_eq!(e.k.m.cpu(CpuId(0)).curr, Some(t));
        e.k.rq(CpuId(0)).set_allowed(t, [CpuId(5)].into_iter().collect());
        let balance = StopWork::ActiveBalance { to: CpuId(7), why: Why::Balance };
        e.k.rq(CpuId(0)).stop_one_cpu_nowait(balance);
        e.k.rq(CpuId(0)).stop_one_cpu_nowait(balance);
        e.k.rq(CpuId(0)).stop_one_cpu_nowait(StopWork::Migrate { task: t, to: CpuId(5) });
        e.drain_resched();
        assert_eq!(e.k.m.cpu(CpuId(0)).nr_running(), 2, "it counts as running");
        go(e, 9_000_000);
    });
    // CPU 7 is none that the task may use, so that the first work finds nothing.
    let moved: Vec<_> = log.moves.iter().map(|m| (m.0, m.3, m.4)).collect();
    assert_eq!(moved, [(6_000_000 + 2 * WORK, CpuId(5), Why::Affinity)]);
    let stopper = stopper(&log, 0);
    let turns = log.switches.iter().filter(|s| s.3 == Some(stopper)).count();
    assert_eq!(turns, 1, "between two works it keeps the CPU");
}

#[test]
fn what_the_work_finds_counts_when_it_is_done() {
    let e = m1(SPIN, WORK, 100);
    let mut log = Log::default();
    with(&e, &mut log, |e| {
        asked_for_balance(e, 6_000_000, 0, 5);
        // Meanwhile somebody else takes the waiting task.
        e.k.move_queued(TaskId(0), CpuId(0), CpuId(5), Why::NewIdle);
        e.drain_resched();
        go(e, 9_000_000);
        assert_eq!(e.k.m.task(TaskId(0)).cpu, CpuId(5));
        assert!(!e.k.m.stop_pending(CpuId(0)));
    });
    assert_eq!(log.moves.len(), 1);
}

#[test]
fn its_time_is_in_no_average() {
    let e = m1(r#""t": {"cpus": [4], "loop": -1, "run": 1000000}"#, 8 * 1_048_576, 600);
    with(&e, &mut Log::default(), |e| {
        asked_for_balance(e, 500_000_000, 4, 5);
        let c = e.k.m.cpu(CpuId(4));
        let (clock, util) = (c.clock.clock_task, c.cfs_avg.avg.util_avg);
        assert!(util > Util(1010), "{util}");
        let curr = e.k.m.cpu(CpuId(4)).curr.expect("the stopper");
        assert_eq!(e.k.m.class_of(curr), Class::Stop);
        go(e, 500_000_000 + 8 * 1_048_576);
        let c = e.k.m.cpu(CpuId(4));
        // Eight periods without a fair task: util · y^8, y^32 = 1/2. What is runnable stays so.
        let faded = c.cfs_avg.avg.util_avg.0;
        assert!(faded.abs_diff(util.0 * 841 / 1000) <= 24, "{util} faded to {faded}");
        assert!(c.cfs_avg.avg.runnable_avg > Util(1000), "{}", c.cfs_avg.avg.runnable_avg);
        assert_eq!((c.rt_avg.util_avg, c.dl_avg.util_avg), (Util(0), Util(0)));
        assert_eq!(c.clock.clock_task.0 - clock.0, 8 * 1_048_576, "the clock goes on");
    });
}

/// The CPU goes offline while its stopper works: the work is done, and nothing is left there.
#[test]
fn a_cpu_that_goes_offline_finishes_what_its_stopper_was_asked_for() {
    let e = m1(SPIN, WORK, 100);
    let mut log = Log::default();
    with(&e, &mut log, |e| {
        asked_for_balance(e, 6_000_000, 0, 5);
        go(e, 6_010_000);
        e.k.hotplug(CpuId(0), false);
        e.drain_resched();
        assert_eq!((e.k.m.task(TaskId(0)).cpu, e.k.m.cpu(CpuId(0)).curr), (CpuId(5), None));
        assert_eq!(e.k.m.cpu(CpuId(0)).nr_running(), 0);
        go(e, 9_000_000);
        e.k.hotplug(CpuId(0), true);
        go(e, 12_000_000);
        let stoppers = e.k.m.tasks.iter().filter(|t| t.sched.stop && t.state == State::Runnable);
        assert_eq!(stoppers.count(), 0);
    });
}
