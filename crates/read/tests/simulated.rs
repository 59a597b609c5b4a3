//! The report of a trace says what the run said of which it is the trace: simulated runs, written as ftrace's text and read again.
//!
//! Text has whole µs, so that a time that is made of n stretches is off by n µs at most; all else is equal.

use risetime_analysis::metric::Metric;
use risetime_analysis::survey::{Did, Part, Speeds, Survey, Surveyed, Thread, Walk, Wanted};
use risetime_analysis::{Analyzer, Options, RunResult};
use risetime_kernel::units::{CpuId, Instant, TaskId};
use risetime_lab::{Request, run};
use risetime_model::Platform;
use risetime_read::{Source, read};
use risetime_sim::Simulator;
use risetime_trace::{Event, Header, Hears, SwitchOut, Tee, TraceSink, Window};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// Number of the thread that a task is in the text.
fn pid(task: TaskId) -> u32 {
    1000 + task.0
}

/// A sink that writes the kernel's own events as tracefs' file `trace` shows them.
#[derive(Default)]
struct Text {
    text: String,
    platform: Option<Arc<Platform>>,
    tasks: BTreeMap<TaskId, (String, i32)>,
}

impl Text {
    fn line(&mut self, at: Instant, cpu: CpuId, what: std::fmt::Arguments<'_>) {
        let us = 100_000_000 + at.0 / 1000;
        let (s, us) = (us / 1_000_000, us % 1_000_000);
        writeln!(self.text, "          <idle>-0       [{:03}] d..2. {s:>5}.{us:06}: {what}", cpu.0)
            .expect("to memory");
    }

    /// Name, number and priority; those of the idle task for none.
    fn who(&self, task: Option<TaskId>, cpu: CpuId) -> (String, u32, i32) {
        match task.and_then(|task| Some((task, self.tasks.get(&task)?))) {
            Some((task, (comm, prio))) => (comm.clone(), pid(task), *prio),
            None => (format!("swapper/{}", cpu.0), 0, 120),
        }
    }

    fn wakes(&mut self, at: Instant, name: &str, task: TaskId, cpu: CpuId) {
        let (comm, pid, prio) = self.who(Some(task), cpu);
        let (name, to) = (name, cpu.0);
        self.line(
            at,
            cpu,
            format_args!("{name}: comm={comm} pid={pid} prio={prio} target_cpu={to:03}"),
        );
    }
}

impl TraceSink for Text {
    fn header(&mut self, header: &Header) {
        self.platform = Some(Arc::clone(&header.machine.platform));
        let cpus = header.machine.platform.nr_cpus();
        self.text = format!(
            "# tracer: nop\n#\n# entries-in-buffer/entries-written: 9/9   #P:{cpus}\n#\n\
             #           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"
        );
    }

    fn event(&mut self, at: Instant, event: &Event) {
        match *event {
            Event::TaskNew { task, comm, cpu, user, .. } => {
                self.tasks.insert(task, (comm.to_string(), 120));
                if user {
                    self.wakes(at, "sched_wakeup_new", task, cpu);
                }
            }
            Event::Prio { task, prio } => {
                self.tasks.entry(task).and_modify(|known| known.1 = prio);
            }
            Event::Wakeup { task, cpu, .. } => self.wakes(at, "sched_wakeup", task, cpu),
            Event::Migrate { task, from, to, .. } => {
                let (comm, pid, prio) = self.who(Some(task), from);
                let (from, to) = (from.0, to.0);
                self.line(at, CpuId(from), format_args!("sched_migrate_task: comm={comm} pid={pid} prio={prio} orig_cpu={from} dest_cpu={to}"));
            }
            Event::Switch { cpu, prev, next } => {
                let state = match prev {
                    None | Some((_, SwitchOut::Preempted)) => "R",
                    Some((_, SwitchOut::Sleeping)) => "S",
                    Some((_, SwitchOut::Exited)) => "X",
                };
                let (a, m, p) = self.who(prev.map(|prev| prev.0), cpu);
                let (b, n, q) = self.who(next, cpu);
                self.line(at, cpu, format_args!("sched_switch: prev_comm={a} prev_pid={m} prev_prio={p} prev_state={state} ==> next_comm={b} next_pid={n} next_prio={q}"));
            }
            Event::Freq { cpu, freq } => {
                let platform = Arc::clone(self.platform.as_ref().expect("a head"));
                let domain = platform.domain_of(cpu).expect("of the platform");
                for of in &platform.domains[domain].cpus {
                    let (khz, of) = (freq.0, of.0);
                    self.line(at, cpu, format_args!("cpu_frequency: state={khz} cpu_id={of}"));
                }
            }
            Event::Idle { cpu, state } => {
                let (state, of) = (state.unwrap_or(u32::MAX), cpu.0);
                self.line(at, cpu, format_args!("cpu_idle: state={state} cpu_id={of}"));
            }
            _ => {}
        }
    }

    fn end(&mut self, at: Instant) {
        // The last line is the trace's end.
        self.line(at, CpuId(0), format_args!("cpu_idle: state=0 cpu_id=0"));
    }

    fn listens(&self) -> Hears {
        Hears::Attributes
    }
}

/// A run of half a second, and its trace as text.
fn traced(workload: &str, platform: &str) -> (RunResult, String) {
    let request =
        Request { seconds: Some(0.5), noise: Some("off"), ..Request::new(workload, platform) };
    let e = request.experiments().expect("built in").remove(0);
    let mut text = Text::default();
    let done = run(&Simulator, &e, Options::default(), Some(&mut text)).expect("runs");
    (done.result, text.text)
}

/// The figures of a text.
fn reported(text: &str, platform: Option<&str>, wanted: Wanted) -> (RunResult, Surveyed) {
    let source = Source::bytes("trace.txt", text.as_bytes().to_vec());
    let platform = platform.map(|name| Arc::new(Platform::load(name).expect("built in")));
    let options = risetime_read::Options { platform, ..Default::default() };
    let (mut analyzer, mut survey) = (Analyzer::new(Options::default()), Survey::new(wanted));
    read(&source, &mut Tee(&mut analyzer, &mut survey), &options).expect("it reads");
    (analyzer.finish().0, survey.finish())
}

fn thread<'a>(all: &'a Surveyed, comm: &str) -> &'a Thread {
    let found = all.threads.iter().find(|thread| &*thread.comm == comm);
    found.unwrap_or_else(|| panic!("{comm} is none of the trace's tasks"))
}

const CASES: [(&str, &str); 4] =
    [("phone", "pixel6"), ("rampup", "m1"), ("game", "sm8550"), ("compile", "rk3588")];

/// Cases whose workload and platform are built in.
fn cases() -> impl Iterator<Item = (&'static str, &'static str)> {
    let known =
        |of: &[risetime_model::library::Entry], name: &str| of.iter().any(|e| e.name == name);
    let workloads = risetime_model::library::workloads();
    let platforms = risetime_model::library::platforms();
    let there: Vec<_> =
        CASES.into_iter().filter(|(w, p)| known(&workloads, w) && known(&platforms, p)).collect();
    assert!(there.len() >= 2, "{there:?}");
    there.into_iter()
}

#[test]
fn the_report_of_a_trace_has_the_figures_of_the_run() {
    for (workload, platform) in cases() {
        let (was, text) = traced(workload, platform);
        let (is, all) = reported(&text, Some(platform), Wanted::default());
        assert_eq!(all.speeds, Speeds::Described);
        for task in &was.tasks {
            let own = thread(&all, &task.comm);
            let found = is.tasks.iter().find(|t| t.task == own.task).expect("the same threads");
            let at_most = 2e-3 * (own.switches + own.wakeups + 2) as f64;
            let what = format!("{} of {workload}", task.comm);
            let near = |of: &str, was: f64, is: f64, within: f64| {
                assert!((was - is).abs() <= within, "{what}: {of} is {is}, was {was}");
            };
            near("running", task.whole.running_ms, found.whole.running_ms, at_most);
            near("waiting", task.whole.wait_ms, found.whole.wait_ms, at_most);
            near("work", task.whole.work_ms, found.whole.work_ms, at_most);
            near("longer", task.whole.longer_ms, found.whole.longer_ms, at_most);
            let near_survey = |part: f64, of: f64| near("survey", of, part, 1e-6);
            near_survey(own.parts.running_ms(), found.whole.running_ms);
            near_survey(own.parts.waiting_ms(), found.whole.wait_ms);
            near("bursts", task.bursts.into(), found.bursts.into(), 0.0);
            let moves = |t: &risetime_analysis::TaskResult| t.whole.moves() as f64;
            near("moves", moves(task), moves(found), 0.0);
            if let (Some(was), Some(is)) = (&task.burst, &found.burst) {
                // Of several that are as long to the µs, either may be the longest.
                near("longest burst", was.running_ms, is.running_ms, at_most);
                if task.bursts == 1 {
                    near("its begin", was.t0_ms, is.t0_ms, 2e-3);
                    near("its full speed", was.t1_ms, is.t1_ms, 3e-3);
                    near("work lost until then", was.debt_ms, is.debt_ms, at_most);
                }
            }
        }
        for latency in &was.latency {
            let is = is.latency.iter().find(|l| l.tasks == latency.tasks).expect("the same names");
            assert_eq!(latency.activations, is.activations, "{}", latency.tasks);
            let (was, is) = (&latency.wakeup, &is.wakeup);
            assert_eq!(was.n, is.n, "{}", latency.tasks);
            let max = was.took.zip(is.took).map(|(was, is)| (was.p50 - is.p50, was.max - is.max));
            assert!(max.is_none_or(|(a, b)| a.abs() < 3e-3 && b.abs() < 3e-3), "{max:?}");
        }
        let energy = Metric::new("energy");
        let mj = [&was, &is].map(|run| energy.of(run).expect("known").0);
        if let [Some(was), Some(is)] = mj {
            assert!((was - is).abs() < 0.01 * was, "{workload}: {is} mJ, was {was}");
        }
    }
}

#[test]
fn stretches_of_a_trace_add_up_to_the_whole() {
    let (_, text) = traced("phone", "pixel6");
    let source = Source::bytes("trace.txt", text.into_bytes());
    let options = risetime_read::Options::default();
    let of = |from_ms: u64, to_ms: u64| {
        let mut survey = Survey::new(Wanted::default());
        let mut window = Window::new(from_ms * 1_000_000, to_ms * 1_000_000, &mut survey);
        read(&source, &mut window, &options).expect("it reads");
        survey.finish()
    };
    let whole = of(0, 1_000_000);
    for cut in [1, 37, 100, 251, 499] {
        let halves = [of(0, cut), of(cut, 1_000_000)];
        let length: f64 = halves.iter().map(|half| half.length_ms).sum();
        assert!((length - whole.length_ms).abs() < 1e-6, "cut at {cut}: {length}");
        for thread in &whole.threads {
            let own =
                |half: &Surveyed| half.threads.iter().find(|t| t.task == thread.task).cloned();
            let parts: Vec<Thread> = halves.iter().filter_map(own).collect();
            let sum = |of: fn(&Thread) -> f64| parts.iter().map(of).sum::<f64>();
            let running = sum(|t| t.parts.running_ms());
            let comm = &thread.comm;
            assert!(
                (running - thread.parts.running_ms()).abs() < 1e-6,
                "{comm} cut at {cut}: {running}"
            );
            let wakeups: u64 = parts.iter().map(|t| t.wakeups).sum();
            assert_eq!(wakeups, thread.wakeups, "{comm} cut at {cut}");
        }
    }
}

#[test]
fn a_period_of_the_workload_is_found_in_its_trace() {
    let (_, text) = traced("phone", "pixel6");
    let all = reported(&text, None, Wanted::default()).1;
    let found: Vec<_> = all.threads.iter().filter_map(|t| t.jobs.as_ref()).collect();
    assert!(!found.is_empty(), "a phone draws frames");
    let frame =
        found.iter().any(|jobs| (16.0..17.0).contains(&jobs.period_ms) && jobs.near >= 90.0);
    assert!(frame, "{found:?}");
}

/// Of each activation, whatever it waited for and however fast it ran.
#[test]
fn the_parts_of_every_activation_are_its_length() {
    let (_, text) = traced("phone", "pixel6");
    let walk = Some(Walk { over: 0, most: 100_000 });
    for platform in [Some("pixel6"), None] {
        let wanted = Wanted { walked: Some("*".into()), walk, ..Wanted::default() };
        let all = reported(&text, platform, wanted).1;
        assert!(all.walked.len() > 50, "{}", all.walked.len());
        for one in &all.walked {
            let steps: u64 = one.steps.iter().map(|step| step.to - step.from).sum();
            let length = one.to - one.from;
            assert!(one.more > 0 || steps == length, "{one:?}");
            let parts = one.parts.took_ms();
            assert!((parts - length as f64 / 1e6).abs() < 1e-6, "{one:?}");
            let waited = |did: Did| matches!(did, Did::Waited(part, _) if part.is_wait());
            let ran = |did: Did| matches!(did, Did::Ran(_));
            assert!(one.steps.iter().all(|step| waited(step.did) || ran(step.did)));
        }
        let unrated = all.all.ms(Part::Unrated);
        assert!(unrated <= 0.01 * all.all.running_ms(), "frequencies are told: {unrated}");
    }
}

/// How much a busy thread of the same core takes no trace tells; whoever reads figures has to know that.
#[test]
fn threads_that_share_a_core_are_said_to() {
    let (_, text) = traced("game", "steam-deck");
    let shared = |name: Option<&str>| reported(&text, name, Wanted::default()).1.shared_cores;
    assert_eq!([Some("steam-deck"), None].map(shared), [true, false]);
}
