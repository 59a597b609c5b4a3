//! What things take that are free in a simulation without noise: from these figures are the rows of
//! `sim`'s `time/noise.rs`.
//!
//! ```text
//! costs sim|RELEASE [POLICY]     a release as `risetime vm kernels` lists it; POLICY: NAME[+key=value…]
//! costs waits DIRECTORY RELEASE  what runs that `verify --references DIRECTORY` kept say of how long a CPU that
//!                                was idle takes from a task's wakeup to the switch to it, by how many others
//!                                are busy: what 0, 250, 500, 750, 900, 950, 980, 995, 999 of a thousand are below (ns);
//!                                and the same of tasks that another CPU wakes
//! costs late RELEASE             the same of how late a timer's task wakes (FIFO, which has no timer slack), where
//!                                0 to 3 other CPUs are busy
//!
//!        asked for          it wakes        it runs                 it sleeps
//! ──sleep────┤                 ├───────────────┼───────────────────────┤
//!            └── late ─────────┼── wait ───────┴── run asked for + over ┤       ns, by nearest rank
//!                              └── run asked for + beyond ──────────────┘
//! ```
//!
//! Each figure is of a task that is alone on its CPU, but for `pair`: there two share one, so that one's
//! timer may wake the other.

use risetime_kernel::KernelRev;
use risetime_kernel::units::{CpuId, Instant, Span, TaskId};
use risetime_model::workload::JobMark;
use risetime_model::{Experiment, Platform, Policy, Workload};
use risetime_trace::{Backend, Event, Header, SwitchOut, TraceSink};
use risetime_vm::Vm;
use risetime_vm::fetch::Cache;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// One after the other: each has a second or two to itself.
const WORKLOAD: &str = r#"{ "tasks": {
  "solo-200":   { "cpus": [0], "loop": 300, "run": 200, "sleep": 3700 },
  "solo-1000":  { "cpus": [0], "delay": 1500000, "loop": 200, "run": 1000, "sleep": 5300 },
  "solo-20000": { "cpus": [0], "delay": 3000000, "loop": 40, "run": 20000, "sleep": 9100 },
  "fifo-200":   { "cpus": [0], "delay": 4500000, "loop": 300, "run": 200, "sleep": 3700,
                  "policy": "SCHED_FIFO", "priority": 5 },
  "pair-300":   { "cpus": [1], "delay": 6000000, "loop": 300, "run": 300, "sleep": 2700 },
  "pair-200":   { "cpus": [1], "delay": 6000000, "loop": 450, "run": 200, "sleep": 1900 },
  "waker-700":  { "cpus": [2], "delay": 7500000, "loop": 250, "run": 700, "resume": "wakee-400", "sleep": 4300 },
  "wakee-400":  { "cpus": [3], "delay": 7400000, "loop": -1, "suspend": "wakee-400", "run": 400 } },
"global": { "duration": 9 } }"#;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [what, directory, release] = &args[..]
        && what == "waits"
    {
        return waits(directory, release);
    }
    if let [what, release] = &args[..]
        && what == "late"
    {
        return late(release);
    }
    let [who, policy @ ..] = &args[..] else {
        eprintln!(
            "usage: costs sim|RELEASE [POLICY], costs waits DIRECTORY RELEASE, costs late RELEASE"
        );
        std::process::exit(2);
    };
    let policy = policy.first().map_or("mainline", String::as_str);
    let mut policy = Policy::from_arg(policy).unwrap_or_else(|e| panic!("{e}"));
    policy = policy.with("governor", risetime_model::settings::Value::Name("performance".into()));
    let mut seen = Seen::default();
    let mut run = |backend: &dyn Backend, policy: Policy| {
        let e = experiment(policy, WORKLOAD, 9000);
        backend.run(&e, &mut seen).unwrap_or_else(|e| panic!("{e}"));
    };
    if who == "sim" {
        run(&risetime_sim::Simulator, policy);
    } else {
        let (vm, rev) = find(who);
        policy.kernel = rev;
        run(&vm, policy);
    }
    seen.print();
}

/// The virtual machine of a release.
fn find(release: &str) -> (Vm, KernelRev) {
    let cache = Cache::from_env().unwrap_or_else(|e| panic!("{e}"));
    let found = Vm::find(&cache, Some(release), risetime_sim::catalogue());
    let (mut vm, kernel) = found.unwrap_or_else(|e| panic!("{e}"));
    vm.limit = Some(Duration::from_secs(540));
    (vm, kernel.rev().expect("a stock kernel says what it is"))
}

fn experiment(policy: Policy, workload: &str, ms: u64) -> Experiment {
    let platform = Platform::load("rpi4").expect("built in");
    Experiment {
        settings: risetime_sim::resolve(&platform, &policy).unwrap_or_else(|e| panic!("{e}")),
        platform: Arc::new(platform),
        workload: Arc::new(Workload::parse(workload, "costs").expect("well-formed")),
        policy,
        duration: Span::from_ms(ms),
        phase: Span(0),
        seed: 1,
    }
}

/// The most other CPUs that are told apart.
const BUSY: usize = 3;

fn waits(directory: &str, release: &str) {
    let files = std::fs::read_dir(directory).unwrap_or_else(|e| panic!("{directory}: {e}"));
    let (mut own, mut remote) = (ByBusy::default(), ByBusy::default());
    for file in files.flatten() {
        let trace = risetime_lab::read_kept(&file.path()).unwrap_or_else(|e| panic!("{e}"));
        if trace.header().is_some_and(|h| h.run.kernel_release == release) {
            waits_of(&trace, &mut own, &mut remote);
        }
    }
    print_by(own);
    println!("woken by another CPU:");
    print_by(remote);
}

/// What was measured, by how many other CPUs are busy.
type ByBusy = [Vec<u64>; BUSY + 1];

fn print_by(by: ByBusy) {
    for (busy, mut all) in by.into_iter().enumerate() {
        all.sort_unstable();
        let Some(last) = all.len().checked_sub(1) else { continue };
        let at = |part: usize| all[last * part / 1000].to_string();
        let parts = [0, 250, 500, 750, 900, 950, 980, 995, 999].map(at);
        println!("{busy} busy, n {}: [{}]", all.len(), parts.join(", "));
    }
}

/// One by a timer, of periods that meet ticks, of 4 ms, at all phases; on its own CPU and on the others fair ones, each
/// about half of the time: so 0 to 3 others are busy, and run into timers and ticks themselves.
const BESIDE: &str = r#"{ "tasks": {
  "late": { "cpus": [0], "loop": -1, "run": 200, "timer": { "ref": "unique", "period": 3900 },
            "policy": "SCHED_FIFO", "priority": 5 },
  "own":    { "cpus": [0], "loop": -1, "run": 7000, "sleep": 6000 },
  "first":  { "cpus": [1], "loop": -1, "run": 3000, "sleep": 3300 },
  "second": { "cpus": [2], "loop": -1, "run": 9000, "sleep": 8100 },
  "third":  { "cpus": [3], "loop": -1, "run": 1700, "timer": { "ref": "unique", "period": 4700 } } },
"global": { "duration": 16 } }"#;

fn late(release: &str) {
    let (vm, rev) = find(release);
    let mut policy = Policy::from_arg("mainline").unwrap_or_else(|e| panic!("{e}"));
    policy.kernel = rev;
    policy = policy.with("governor", risetime_model::settings::Value::Name("performance".into()));
    let e = experiment(policy, BESIDE, 16_000);
    let trace = risetime_lab::record(&vm, &e).unwrap_or_else(|e| panic!("{e}"));
    let mut by = ByBusy::default();
    let (mut current, mut due) = (BTreeMap::<CpuId, TaskId>::new(), None);
    for (at, event) in trace.events() {
        match *event {
            Event::Job { task: TaskId(0), mark: JobMark::Timer { due: at, .. } } => due = Some(at),
            Event::Wakeup { task: TaskId(0), .. } => {
                let busy = current.keys().filter(|cpu| **cpu != CpuId(0)).count().min(BUSY);
                by[busy].extend(due.take().map(|due| at.0.saturating_sub(due.0)));
            }
            Event::Switch { cpu, next, .. } => {
                current.remove(&cpu);
                current.extend(next.map(|task| (cpu, task)));
            }
            _ => {}
        }
    }
    print_by(by);
}

/// `own`: from a task's wakeup on an idle CPU to the switch to it; `remote`: the same of one that its wakeup takes to another
/// CPU, from its leaving the old one: it is woken on the new one only when that CPU hears of it.
fn waits_of(trace: &risetime_trace::Memory, own: &mut ByBusy, remote: &mut ByBusy) {
    let mut current: BTreeMap<CpuId, TaskId> = BTreeMap::new();
    let mut sleeps: BTreeSet<TaskId> = BTreeSet::new();
    let mut woken: BTreeMap<TaskId, (CpuId, Instant, usize)> = BTreeMap::new();
    let mut sent = woken.clone();
    for (at, event) in trace.events() {
        match *event {
            Event::Migrate { task, to, .. } if sleeps.contains(&task) => {
                sent.remove(&task);
                if !current.contains_key(&to) {
                    sent.insert(task, (to, *at, current.len().min(BUSY)));
                }
            }
            Event::Wakeup { task, cpu, .. } => {
                sleeps.remove(&task);
                if !current.contains_key(&cpu) {
                    woken.insert(task, (cpu, *at, current.len().min(BUSY)));
                }
            }
            Event::Switch { cpu, prev, next } => {
                if let Some((task, SwitchOut::Sleeping)) = prev {
                    sleeps.insert(task);
                }
                current.remove(&cpu);
                let Some(task) = next else { continue };
                current.insert(cpu, task);
                for (all, by) in [(&mut woken, &mut *own), (&mut sent, &mut *remote)] {
                    if let Some((on, since, busy)) = all.remove(&task)
                        && on == cpu
                    {
                        by[busy].push(at.since(since).0);
                    }
                    // Who waits there for somebody else waits for him.
                    all.retain(|_, (on, ..)| *on != cpu);
                }
            }
            _ => {}
        }
    }
}

/// A task of the workload.
#[derive(Default)]
struct Task {
    comm: String,
    asleep: Option<Instant>,
    woken: Option<Instant>,
    began: Option<Instant>,
    on: Option<Instant>,
    ran: u64,
    late: Vec<i64>,
    wait: Vec<i64>,
    over: Vec<i64>,
    beyond: Vec<i64>,
}

impl Task {
    /// What its name says it runs, and what it sleeps then.
    fn asked(&self) -> (i64, i64) {
        let us: i64 = self.comm.rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(0);
        let sleep = match (self.comm.as_str(), us) {
            ("pair-200", _) => 1900,
            (_, 200) => 3700,
            (_, 300) => 2700,
            (_, 700) => 4300,
            (_, 1000) => 5300,
            _ => 9100,
        };
        (us * 1000, sleep * 1000)
    }
}

#[derive(Default)]
struct Seen(BTreeMap<TaskId, Task>);

impl TraceSink for Seen {
    fn header(&mut self, header: &Header) {
        let settings: Vec<String> =
            header.machine.settings.iter().map(|(name, v)| format!("{name}={v}")).collect();
        println!("Linux {}: {}", header.run.kernel_release, settings.join(" "));
    }

    fn event(&mut self, at: Instant, event: &Event) {
        match *event {
            Event::TaskNew { task, comm, user: true, .. } => {
                self.0.insert(task, Task { comm: comm.into(), ..Task::default() });
            }
            Event::Wakeup { task, .. } => {
                let Some(t) = self.0.get_mut(&task) else { return };
                let (_, sleep) = t.asked();
                (t.woken, t.began) = (Some(at), Some(at));
                if let Some(asleep) = t.asleep.take() {
                    t.late.push(at.0 as i64 - asleep.0 as i64 - sleep);
                }
            }
            Event::Switch { prev, next, .. } => {
                if let Some((task, out)) = prev
                    && let Some(t) = self.0.get_mut(&task)
                {
                    t.ran += t.on.take().map_or(0, |on| at.since(on).0);
                    if out == SwitchOut::Sleeping {
                        let (run, _) = t.asked();
                        t.over.push(t.ran as i64 - run);
                        t.beyond.extend(t.began.take().map(|b| at.since(b).0 as i64 - run));
                        (t.ran, t.asleep) = (0, Some(at));
                    }
                }
                if let Some(t) = next.and_then(|task| self.0.get_mut(&task)) {
                    t.on = Some(at);
                    t.wait.extend(t.woken.take().map(|w| at.since(w).0 as i64));
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, _: Instant) {}
}

impl Seen {
    /// Each figure's least and greatest, and the middles of eight parts of equal size.
    fn print(mut self) {
        // A row of the profile `vm`: of those that are alone. A wakee is not late, and a pair is not alone.
        let mut alone = Task { comm: "alone".into(), ..Task::default() };
        for t in
            self.0.values().filter(|t| t.comm.starts_with("solo") || t.comm.starts_with("fifo"))
        {
            alone.late.extend(t.late.iter().skip(2).map(|ns| (*ns).max(0)));
            alone.beyond.extend(t.beyond.iter().skip(2).map(|ns| (*ns).max(0)));
        }
        for t in self.0.values_mut().chain([&mut alone]) {
            let figure = |name: &str, all: &mut Vec<i64>| {
                // What a creation costs is no such figure.
                let mut rest: Vec<i64> = all.split_off(all.len().min(2));
                rest.sort_unstable();
                let Some(last) = rest.len().checked_sub(1) else { return };
                let mid = |i: usize| rest[last * (2 * i + 1) / 16].to_string();
                let mids: Vec<String> = (0..8).map(mid).collect();
                println!(
                    "{:<11} {name:<6} n {:<4} {:>7} [{}] {}",
                    t.comm,
                    rest.len(),
                    rest[0],
                    mids.join(", "),
                    rest[last]
                );
            };
            figure("late", &mut t.late);
            figure("wait", &mut t.wait);
            figure("over", &mut t.over);
            figure("beyond", &mut t.beyond);
        }
    }
}
