//! Logs of decisions in small scenarios: what the kernel would do, line by line.
//!
//! Each is compared with a file in `tests/snapshots/`; `BLESS=1 cargo test` writes them anew.
//! Before you bless, read the log as if it were a kernel's trace.

use super::experiment;
use crate::Simulator;
use risetime_kernel::units::{Instant, Span, TaskId};
use risetime_model::settings::Value;
use risetime_model::{Experiment, Platform, Workload};
use risetime_trace::{Backend, Event, Header, SwitchOut, TraceSink, Why};
use std::fmt::Write;
use std::ops::Range;

/// A readable log of one window of a run: µs from the window's zero, what, and why.
struct Log {
    /// Zero of the times, and what is shown, in µs from there.
    zero: Instant,
    window: Range<i64>,
    comms: Vec<String>,
    text: String,
}

impl Log {
    fn comm(&self, task: TaskId) -> &str {
        self.comms.get(task.index()).map_or("?", |c| c)
    }
    fn next(&self, task: Option<TaskId>) -> &str {
        task.map_or("idle", |t| self.comm(t))
    }
    fn line(&self, event: &Event) -> Option<String> {
        Some(match *event {
            Event::TaskNew { task, cpu, why, .. } => {
                format!("{} is new on {cpu} ({why})", self.comm(task))
            }
            Event::Wakeup { task, cpu, why } => {
                format!("{} wakes on {cpu} ({why})", self.comm(task))
            }
            Event::Switch { cpu, prev, next } => {
                let how = prev.map_or("", |(_, out)| match out {
                    SwitchOut::Preempted => " (preempted)",
                    SwitchOut::Sleeping => " (sleeps)",
                    SwitchOut::Exited => " (exits)",
                });
                format!("{cpu}: {} -> {}{how}", self.next(prev.map(|(t, _)| t)), self.next(next))
            }
            Event::Migrate { task, from, to, why } => {
                format!("{} moves {from} -> {to} ({why})", self.comm(task))
            }
            Event::Freq { cpu, freq } => format!("{cpu}: runs at {freq}"),
            Event::FreqRequest { why: Why::Unchanged, .. } => return None,
            Event::FreqRequest { cpu, util, freq, why } => {
                let verb =
                    if matches!(why, Why::RateLimited | Why::HoldBusy) { "keeps" } else { "wants" };
                format!("{cpu}: util {util} {verb} {freq} ({why})")
            }
            Event::Misfit { cpu, task: Some(task) } => {
                format!("{cpu}: {} does not fit", self.comm(task))
            }
            Event::Misfit { cpu, task: None } => format!("{cpu}: no misfit"),
            Event::Overutilized { on } => format!("overutilized: {on}"),
            Event::Idle { cpu, state: Some(state) } => format!("{cpu}: idle state {state}"),
            Event::Idle { cpu, state: None } => format!("{cpu}: leaves idle"),
            Event::UtilEst { task, util_est } => {
                format!("{}: util_est {util_est}", self.comm(task))
            }
            _ => return None,
        })
    }
}

impl TraceSink for Log {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        if let Event::TaskNew { task, comm, .. } = *event {
            self.comms.resize_with(self.comms.len().max(task.index() + 1), String::new);
            self.comms[task.index()] = comm.to_string();
        }
        let ns = at.0 as i64 - self.zero.0 as i64;
        if !self.window.contains(&ns.div_euclid(1000)) {
            return;
        }
        if let Some(line) = self.line(event) {
            let us = ns.div_euclid(1000);
            writeln!(self.text, "{us:>8}.{:03}  {line}", ns.rem_euclid(1000))
                .expect("a string takes all");
        }
    }
    fn end(&mut self, _: Instant) {}
}

/// Time at which task 0 enters phase `index` for the first time.
struct Entered(u32, Option<Instant>);

impl TraceSink for Entered {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        if matches!(event, Event::Phase { task: TaskId(0), index, .. } if *index == self.0) {
            self.1.get_or_insert(at);
        }
    }
    fn end(&mut self, _: Instant) {}
}

/// Compares the log of `e` between `window` µs (from where task 0 enters phase `phase`) with the
/// file of this name. `keep` decides line by line.
#[track_caller]
fn check(
    name: &str,
    about: &str,
    e: &Experiment,
    phase: u32,
    window: Range<i64>,
    keep: impl Fn(&str) -> bool,
) {
    let text = log(e, phase, window);
    let lines: Vec<&str> = text.lines().filter(|l| keep(l)).collect();
    assert!(!lines.is_empty() && lines.len() <= 60, "{name}: {} lines", lines.len());
    let found =
        format!("# {about}\n# {}, {}\n{}\n", e.policy.name, e.platform.name, lines.join("\n"));
    compare(name, &found);
}

/// The log of `e` between `window` µs from where task 0 enters phase `phase`.
fn log(e: &Experiment, phase: u32, window: Range<i64>) -> String {
    let mut entered = Entered(phase, None);
    Simulator.run(e, &mut entered).expect("runs");
    let zero = entered.1.expect("task 0 enters the phase");
    let mut log = Log { zero, window, comms: Vec::new(), text: String::new() };
    Simulator.run(e, &mut log).expect("runs");
    log.text
}

/// Compares what was `found` with the file of this name.
#[track_caller]
fn compare(name: &str, found: &str) {
    let path = format!("{}/tests/snapshots/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, found).expect("a file to write");
        return;
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    if let Some((i, (w, f))) =
        wanted.lines().zip(found.lines()).enumerate().find(|(_, (w, f))| w != f)
    {
        panic!("{path}:{}:\n  wanted {w}\n  found  {f}", i + 1);
    }
    assert_eq!(wanted.lines().count(), found.lines().count(), "{path}: another number of lines");
}

fn m1() -> Platform {
    Platform::load("m1").expect("built in")
}

fn tasks(json: &str) -> Workload {
    Workload::parse(&format!("{{ \"tasks\": {{ {json} }} }}"), "scenario").expect("a workload")
}

fn rampup() -> Workload {
    Workload::load("rampup").expect("built in")
}

fn everything(_: &str) -> bool {
    true
}

#[test]
fn misfit_is_pulled_by_an_idle_big_cpu() {
    let e = experiment(m1(), rampup(), "linux-6.8", &[], Span::from_ms(1200));
    let about =
        "a busy task outgrows the little CPU: marked at a tick, pulled when balancing is due";
    check("misfit_pull", about, &e, 1, 84_000..110_000, everything);
}

#[test]
fn two_spinners_share_a_cpu() {
    let workload = || {
        tasks(
            r#""a": { "cpus": [0], "run": 1000000 }, "b": { "cpus": [0], "delay": 1500, "run": 1000000 }"#,
        )
    };
    let only = |l: &str| l.contains("->") || l.contains("new");
    for (policy, name) in [
        ("linux-6.8", "spinners_6.8"),
        ("linux-6.12", "spinners_6.12"),
        ("linux-7.2", "spinners_7.2"),
    ] {
        let e = experiment(
            m1(),
            workload(),
            policy,
            &[("governor", Value::Name("performance".into()))],
            Span::from_ms(100),
        );
        check(
            name,
            "two spinners on one CPU, ticks of 1 ms, slices of 3 ms (2.8 ms in 7.2)",
            &e,
            0,
            -10..45_000,
            only,
        );
    }
}

#[test]
fn a_short_sleeper_beside_a_spinner() {
    let workload = || {
        tasks(
            r#""spin": { "cpus": [0], "run": 1000000 }, "nap": { "cpus": [0], "loop": -1, "run": 600, "sleep": 1500 }"#,
        )
    };
    let only = |l: &str| l.contains("->") || l.contains("wakes");
    for (policy, name) in
        [("linux-6.8", "sleeper_6.8"), ("linux-6.12", "sleeper_6.12"), ("linux-7.2", "sleeper_7.2")]
    {
        let set = [("governor", Value::Name("performance".into())), ("first_cpu", Value::Int(0))];
        let e = experiment(m1(), workload(), policy, &set, Span::from_ms(100));
        check(
            name,
            "a short sleeper beside a spinner: how soon after waking it runs",
            &e,
            0,
            20_000..40_000,
            only,
        );
    }
}

#[test]
fn the_rate_limit_holds_the_climb() {
    let e = experiment(m1(), rampup(), "linux-6.8", &[], Span::from_ms(1200));
    let about =
        "on the big CPU util rises every ms: what it asks for within 10 ms of a change waits";
    check("rate_limited", about, &e, 1, 97_000..130_000, |l| l.contains(" kHz"));
}

#[test]
fn the_slow_path_goes_through_the_kthread() {
    let mut platform = m1();
    platform.domains.iter_mut().for_each(|d| d.fast_switch = false);
    let set = [("sugov_work_ns", Value::Int(20_000)), ("rate_limit_us", Value::Int(2_000))];
    let e = experiment(platform, rampup(), "linux-6.8", &set, Span::from_ms(1200));
    let about = "frequency changes through sugov: it preempts the task, works, waits in the driver";
    check("slow_path", about, &e, 1, 41_000..76_000, everything);
}

#[test]
fn energy_aware_wakeups() {
    let workload = tasks(
        r#""small": { "loop": -1, "run": 500, "sleep": 15500 }, "heavy": { "loop": -1, "delay": 2000, "run": 9000, "sleep": 7000 }"#,
    );
    let e = experiment(
        m1(),
        workload,
        "linux-7.2",
        &[("first_cpu", Value::Int(5))],
        Span::from_ms(250),
    );
    let about = "a new task counts as half a CPU; once its estimate has come down, a little CPU is cheapest";
    let only = |l: &str| l.contains("moves") || l.contains("wakes") || l.contains("new");
    check("energy_aware", about, &e, 0, -1000..200_000, only);
}

#[test]
fn uclamp_max_holds_the_frequency() {
    let e = experiment(
        m1(),
        rampup(),
        "linux-7.2",
        &[("uclamp_max", Value::Int(145))],
        Span::from_ms(1200),
    );
    let about =
        "uclamp_max 145 asks for 652 MHz at most; the little CPU, of 459, counts as fitting";
    check("uclamp_max", about, &e, 1, 0..190_000, everything);
}

#[test]
fn a_newly_idle_cpu_pulls() {
    let spin = |name: &str| format!(r#""{name}": {{ "loop": 1, "run": 400000 }}"#);
    let short = r#""short": { "loop": 1, "run": 12000 }"#;
    let late = r#""late": { "loop": 1, "delay": 3000, "run": 200000 }"#;
    let workload = tasks(&[&spin("a"), short, &spin("b"), &spin("c"), late].join(","));
    let platform = Platform::load("laptop4").expect("built in");
    let e = experiment(platform, workload, "linux-7.2", &[], Span::from_ms(100));
    let only = |l: &str| l.contains("->") || l.contains("new");
    check(
        "newly_idle",
        "five tasks on four CPUs: who runs out of work looks for some",
        &e,
        0,
        -1000..60_000,
        only,
    );
}

#[test]
fn the_response_time_series_climbs_in_plain_time() {
    let e = experiment(m1(), rampup(), "rfc-v1", &[], Span::from_ms(1200));
    let about = "util_est rises a tick at a time from util's first rise on; frequencies follow at PELT's boundaries";
    check("rfc_v1", about, &e, 1, 0..33_000, everything);
}

#[test]
fn a_falling_util_gives_up_its_headroom() {
    let workload = tasks(r#""p": { "cpus": [0], "loop": -1, "run": 3000, "sleep": 30000 }"#);
    let e = experiment(m1(), workload, "rfc-v1", &[], Span::from_ms(200));
    let about = "a periodic task under the whole series: no headroom where util falls";
    check("rfc_v1_periodic", about, &e, 0, 60_000..135_000, |l| {
        l.contains(" kHz") || l.contains("util_est")
    });
}

/// What each generation of the kernel does with the same three workloads: a change of behaviour is
/// seen as a difference of two of these files.
#[test]
fn generations() {
    let competing = || {
        tasks(
            r#""a": { "cpus": [0], "run": 1000000 }, "b": { "cpus": [0], "run": 1000000 },
               "nap": { "cpus": [0], "priority": -5, "loop": -1, "run": 1000, "sleep": 5000 }"#,
        )
    };
    let frames = || {
        tasks(
            r#""ui": { "loop": -1, "run": 3000, "resume": "frame", "timer": { "ref": "vsync", "period": 16667 } },
               "render": { "loop": -1, "suspend": "frame", "run": 5000 },
               "audio": { "priority": -10, "loop": -1, "run": 500, "sleep": 4500 }"#,
        )
    };
    for kernel in ["6.1", "6.6", "6.8", "6.11", "6.12", "7.2", "7.3"] {
        let policy = format!("linux-{kernel}");
        let run = |workload, set: &[_], phase, window: Range<i64>, keep: fn(&str) -> bool| {
            let e = experiment(m1(), workload, &policy, set, Span::from_ms(1200));
            let text = log(&e, phase, window);
            text.lines().filter(|l| keep(l)).take(36).map(|l| format!("{l}\n")).collect::<String>()
        };
        let ramp = run(rampup(), &[], 1, 0..130_000, |l| {
            l.contains("moves") || l.contains("fit") || l.contains("wants")
        });
        let set = [("governor", Value::Name("performance".into()))];
        let shared =
            run(competing(), &set, 0, 20_000..45_000, |l| l.contains("->") || l.contains("wakes"));
        let piped = run(frames(), &[], 0, 500_000..540_000, |l| {
            l.contains("wakes") || l.contains("moves") || l.contains("wants")
        });
        let found = format!(
            "# {policy} on m1: a task becomes busy; two spinners and a sleeper of nice -5 on one CPU; frames in two tasks beside audio\n\n{ramp}\n{shared}\n{piped}"
        );
        compare(&format!("generation_{kernel}"), &found);
    }
}
