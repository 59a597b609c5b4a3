//! Checks of what a trace must not say, whatever happened: a sink that follows every task and CPU.
//!
//! ```text
//! task   new → runnable ⇄ running → asleep → runnable …           one CPU at a time
//! work   ∫ capacity · freq / freq_max / 1024 dt while it runs = what its program asked for
//! ```
//!
//! The program is followed by an interpreter of its own, from the switches and frequencies of
//! the trace alone: it knows when each step must be over and when the task must fall asleep.

use risetime_kernel::units::{CpuId, Instant, KHz, TaskId};
use risetime_model::settings::Value;
use risetime_model::workload::{self, Repeat, TaskSpec};
use risetime_model::{Experiment, Platform};
use risetime_trace::{Event, Header, SwitchOut, TraceSink};

/// Error, in ns, by which the end of a step may be off because speeds are whole numbers; instants
/// are too, which is up to 1 ns more, of the slowest CPU's time, for each step since the task
/// slept.
const ROUNDING_NS: f64 = 20.0;
/// Settings under which tasks get less done than their time on a CPU and its frequency say, or wake late.
const STEALS: [&str; 9] = [
    "irq_us",
    "timer_irq_ns",
    "switch_cost_ns",
    "wakeup_cost_ns",
    "tick_cost_ns",
    "cold_cache_ns",
    "timer_slack_ns",
    "memory_bound",
    "smt_speed",
];
/// A stopper that has been woken has its CPU within this, whatever the wakeup costs.
const STOPPED_NS: u64 = 1_000_000;
/// No task waits longer than this while a CPU that it may use is idle all the time.
const STARVED_NS: u64 = 400_000_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doing {
    New,
    Waits,
    Runs,
    Sleeps,
    Exited,
}

struct Task {
    user: bool,
    stopper: bool,
    doing: Doing,
    cpu: CpuId,
    waits_since: u64,
    allowed: Vec<CpuId>,
    program: Option<Follower>,
    /// Time until which the task's running time is booked.
    since: u64,
}

struct Cpu {
    runs: Option<TaskId>,
    idle: Option<u32>,
    idle_since: u64,
}

/// Follows a trace and keeps what is wrong with it.
pub(super) struct Checker {
    platform: Platform,
    specs: Vec<TaskSpec>,
    /// Groups may have to wait for their quota, which a trace does not say: a task that gets the CPU
    /// may have to leave before it has come as far as its program. Then no program is followed.
    limited: bool,
    /// Something takes time from tasks that no event tells of: no program is followed, and a CPU that
    /// handles an interrupt neither runs a task nor idles.
    stolen: bool,
    now: u64,
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
    freq: Vec<u64>,
    /// CPUs that are offline, and that ever were.
    gone: Vec<CpuId>,
    went: Vec<CpuId>,
    pub(super) wrong: Vec<String>,
    /// Number of switches, so that a test can see that something happened at all.
    pub(super) switches: u64,
}

impl Checker {
    pub(super) fn new(e: &Experiment) -> Checker {
        let platform = (*e.platform).clone();
        let cpus = platform.cpus().map(|_| Cpu { runs: None, idle: None, idle_since: 0 }).collect();
        Checker {
            freq: vec![0; platform.domains.len()],
            specs: e.workload.bind(&platform).expect("valid").tasks,
            limited: e.workload.groups.iter().any(|g| g.quota.is_some()),
            stolen: e.settings.iter().any(|(set, value)| {
                STEALS.iter().any(|name| set.starts_with(name)) && *value != Value::Int(0)
            }),
            platform,
            gone: Vec::new(),
            went: Vec::new(),
            now: 0,
            tasks: Vec::new(),
            cpus,
            wrong: Vec::new(),
            switches: 0,
        }
    }

    fn fail(&mut self, what: String) {
        if self.wrong.len() < 10 {
            self.wrong.push(format!("{} ns: {what}", self.now));
        }
    }

    fn expect(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.fail(what());
        }
    }

    fn task(&mut self, task: TaskId) -> &mut Task {
        while self.tasks.len() <= task.index() {
            let user = self.tasks.len() < self.specs.len();
            let spec = self.specs.get(self.tasks.len());
            let all: Vec<CpuId> = self.platform.cpus().collect();
            self.tasks.push(Task {
                user,
                stopper: false,
                doing: Doing::New,
                cpu: CpuId(0),
                waits_since: 0,
                allowed: spec.and_then(|s| s.attr.cpus.clone()).unwrap_or(all),
                program: spec
                    .filter(|_| !self.limited && !self.stolen)
                    .map(|s| Follower::new(s.clone())),
                since: 0,
            });
        }
        &mut self.tasks[task.index()]
    }

    fn speed(&self, cpu: CpuId) -> f64 {
        let d = self.platform.domain_of(cpu).expect("a CPU");
        let (capacity, freq, max) = self.platform.domains[d].capacity_at(KHz(self.freq[d]));
        capacity.0 as f64 / 1024.0 * freq.0 as f64 / max.0 as f64
    }

    /// Books the time until now to the task that runs on `cpu`.
    fn book(&mut self, cpu: CpuId) {
        let Some(task) = self.cpus[cpu.index()].runs else { return };
        let (now, speed) = (self.now, self.speed(cpu));
        let t = self.task(task);
        let since = std::mem::replace(&mut t.since, now);
        if let Some(p) = &mut t.program {
            p.ran(since as f64, now as f64, speed);
        }
    }

    /// Checks what must hold between two instants.
    fn settled(&mut self) {
        for i in 0..self.cpus.len() {
            let (cpu, c) = (CpuId(i as u32), &self.cpus[i]);
            let has_states = !self.platform.domains[self.platform.domain_of(cpu).expect("a CPU")]
                .idle
                .is_empty();
            let (runs, idle) = (c.runs, c.idle);
            self.expect(runs.is_none() || idle.is_none(), || {
                format!("{cpu} runs {runs:?} in idle state {idle:?}")
            });
            let busy = runs.is_some() || self.stolen;
            self.expect(busy || idle.is_some() || !has_states, || {
                format!("{cpu} neither runs nor idles")
            });
            if let Some(task) = runs {
                let t = self.task(task);
                let (on, doing) = (t.cpu, t.doing);
                let allowed = self.may_run(task, cpu) || self.is_being_moved(cpu);
                self.expect(on == cpu && doing == Doing::Runs, || {
                    format!("{cpu} runs {task}, which is {doing:?} on {on}")
                });
                self.expect(allowed, || format!("{task} runs on {cpu}, where it may not"));
            }
        }
        for i in 0..self.tasks.len() {
            let t = &self.tasks[i];
            if t.doing != Doing::Waits || !t.user {
                continue;
            }
            let idle = |c: &CpuId| {
                self.cpus[c.index()]
                    .runs
                    .is_none()
                    .then(|| self.cpus[c.index()].idle_since.max(t.waits_since))
            };
            let online = t.allowed.iter().filter(|c| !self.gone.contains(c));
            let since = online.filter_map(idle).min();
            if let Some(waited) =
                since.map(|s| self.now - s).filter(|w| *w > STARVED_NS && !self.limited)
            {
                self.fail(format!("T{i} has waited {waited} ns beside an idle CPU"));
            }
        }
    }

    /// Whether the affinity names the CPU, or has been given up because every CPU that it names
    /// went offline; and the CPU is online.
    fn may_run(&mut self, task: TaskId, cpu: CpuId) -> bool {
        let t = &self.tasks[task.index()];
        let named = t.allowed.contains(&cpu) || t.allowed.iter().all(|c| self.went.contains(c));
        named && !self.gone.contains(&cpu)
    }

    /// Whether the stopper has been woken, and what that takes is not over: until then the task
    /// that gave up the CPU is still there.
    fn is_being_moved(&self, cpu: CpuId) -> bool {
        self.stolen
            && self.tasks.iter().any(|t| {
                let waits = t.stopper && t.doing == Doing::Waits && t.cpu == cpu;
                waits && self.now - t.waits_since <= STOPPED_NS
            })
    }

    fn runnable(&mut self, task: TaskId, cpu: CpuId, from: Doing) {
        let now = self.now;
        let t = self.task(task);
        let doing = std::mem::replace(&mut t.doing, Doing::Waits);
        let was_on = std::mem::replace(&mut t.cpu, cpu);
        t.waits_since = now;
        if let Some(p) = &mut t.program {
            p.woke();
        }
        let allowed = self.may_run(task, cpu);
        self.expect(doing == from, || format!("{task} wakes on {cpu}, but it was {doing:?}"));
        self.expect(from == Doing::New || was_on == cpu, || {
            format!("{task} wakes on {cpu} without a migration from {was_on}")
        });
        self.expect(allowed, || format!("{task} wakes on {cpu}, where it may not"));
    }

    fn switch(&mut self, cpu: CpuId, prev: Option<(TaskId, SwitchOut)>, next: Option<TaskId>) {
        self.switches += 1;
        self.book(cpu);
        let now = self.now;
        let ran = std::mem::replace(&mut self.cpus[cpu.index()].runs, next);
        if ran.is_some() && next.is_none() {
            self.cpus[cpu.index()].idle_since = now;
        }
        self.expect(ran == prev.map(|(t, _)| t), || {
            format!("{cpu} leaves {prev:?}, but {ran:?} ran")
        });
        self.expect(prev.map(|(t, _)| t) != next || next.is_none(), || {
            format!("{cpu} switches from {next:?} to itself")
        });
        if let Some((task, out)) = prev {
            self.left(task, out);
        }
        if let Some(task) = next {
            let t = self.task(task);
            let doing = std::mem::replace(&mut t.doing, Doing::Runs);
            t.since = now;
            let on = t.cpu;
            if let Some(p) = &mut t.program {
                p.began(now as f64);
            }
            self.expect(doing == Doing::Waits && on == cpu, || {
                format!("{cpu} runs {task}, which is {doing:?} on {on}")
            });
        }
    }

    fn left(&mut self, task: TaskId, out: SwitchOut) {
        let now = self.now;
        let t = self.task(task);
        t.doing = match out {
            SwitchOut::Preempted => Doing::Waits,
            SwitchOut::Sleeping => Doing::Sleeps,
            SwitchOut::Exited => Doing::Exited,
        };
        t.waits_since = now;
        let Some(p) = &mut t.program else { return };
        let overdue = std::mem::take(&mut p.overdue);
        let late = (out != SwitchOut::Preempted).then(|| p.late(now as f64));
        if out == SwitchOut::Preempted {
            p.preempted(now as f64);
        }
        let rounding = p.rounding();
        self.expect(overdue <= rounding, || {
            format!("{task} ran {overdue} ns past the end of its program's step")
        });
        if let Some(late) = late {
            self.expect(late.is_some_and(|l| l.abs() <= rounding), || {
                format!("{task} is {out:?}, off by {late:?} ns")
            });
        }
    }

    fn freq_is_opp(&mut self, cpu: CpuId, khz: u64) {
        let d = self.platform.domain_of(cpu).expect("a CPU");
        let domain = &self.platform.domains[d];
        let (known, first) = (domain.opps.iter().any(|o| o.freq.0 == khz), domain.cpus[0] == cpu);
        self.expect(known && first, || format!("{cpu}: {khz} kHz is not an OPP of its domain"));
    }
}

impl TraceSink for Checker {
    fn header(&mut self, _: &Header) {}

    fn event(&mut self, at: Instant, event: &Event) {
        if at.0 != self.now {
            self.expect(at.0 > self.now, || format!("time goes back to {}", at.0));
            self.settled();
            self.now = at.0;
        }
        match *event {
            Event::TaskNew { task, comm, user, cpu, .. } => {
                let known = self.task(task).user;
                self.task(task).stopper = !user && comm.starts_with("migration/");
                self.expect(known == user, || format!("{task}: user is {user}"));
                self.runnable(task, cpu, Doing::New);
            }
            Event::Wakeup { task, cpu, .. } => self.runnable(task, cpu, Doing::Sleeps),
            Event::Switch { cpu, prev, next } => self.switch(cpu, prev, next),
            Event::Migrate { task, from, to, .. } => {
                let t = self.task(task);
                let (was, doing) = (std::mem::replace(&mut t.cpu, to), t.doing);
                self.expect(was == from && from != to, || {
                    format!("{task} migrates from {from} to {to}, but was on {was}")
                });
                self.expect(matches!(doing, Doing::Waits | Doing::Sleeps), || {
                    format!("{task} migrates while it is {doing:?}")
                });
            }
            Event::Phase { task, index, .. } => {
                if let Some(cpus) =
                    self.specs[task.index()].phases[index as usize].attr.cpus.clone()
                {
                    self.task(task).allowed = cpus;
                }
            }
            Event::Hotplug { cpu, online } => {
                let was = self.gone.contains(&cpu);
                self.expect(was == online, || format!("{cpu}: online is {online} already"));
                self.gone.retain(|c| *c != cpu);
                if !online {
                    self.gone.push(cpu);
                    self.went.push(cpu);
                }
            }
            Event::Freq { cpu, freq } => {
                self.freq_is_opp(cpu, freq.0);
                let d = self.platform.domain_of(cpu).expect("a CPU");
                for cpu in self.platform.domains[d].cpus.clone() {
                    self.book(cpu);
                }
                self.freq[d] = freq.0;
            }
            Event::FreqRequest { cpu, freq, .. } => self.freq_is_opp(cpu, freq.0),
            Event::Idle { cpu, state } => {
                let was = std::mem::replace(&mut self.cpus[cpu.index()].idle, state);
                self.expect(was.is_some() != state.is_some(), || {
                    format!("{cpu} goes from idle state {was:?} to {state:?}")
                });
            }
            _ => {}
        }
    }

    fn end(&mut self, at: Instant) {
        self.now = at.0;
        for cpu in 0..self.cpus.len() {
            self.book(CpuId(cpu as u32));
        }
        for i in 0..self.tasks.len() {
            let (overdue, rounding) =
                self.tasks[i].program.as_ref().map_or((0.0, 0.0), |p| (p.overdue, p.rounding()));
            self.expect(overdue <= rounding, || {
                format!("T{i} ran {overdue} ns past the end of its program")
            });
        }
        self.settled();
    }
}

/// Next work of a program.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Todo {
    /// Ask the program, at the time at which the task runs.
    Ask,
    Work(f64),
    Pieces {
        until: f64,
        piece: f64,
        /// Work that is left of the piece under way.
        left: f64,
    },
    SleepUntil(f64),
    Exit,
    /// A timer expired within rounding of the moment it was asked for: either way is right, and
    /// the program is followed no further.
    Unknown,
}

/// A task's program, run along with its trace.
struct Follower {
    spec: TaskSpec,
    phase: usize,
    round: u32,
    event: usize,
    task_round: u32,
    began: Option<f64>,
    timers: Vec<Option<f64>>,
    todo: Todo,
    /// Time at which the present step began.
    at: f64,
    /// Time that the task has run although its program says that it sleeps.
    overdue: f64,
    /// Steps begun since it last woke.
    steps: u32,
    /// The lowest speed since.
    slowest: f64,
}

impl Follower {
    fn new(spec: TaskSpec) -> Follower {
        Follower {
            spec,
            phase: 0,
            round: 0,
            event: 0,
            task_round: 0,
            began: None,
            timers: vec![None; 8],
            todo: Todo::Ask,
            at: 0.0,
            overdue: 0.0,
            steps: 0,
            slowest: 1.0,
        }
    }

    fn began(&mut self, now: f64) {
        self.began.get_or_insert(now);
    }

    fn woke(&mut self) {
        if matches!(self.todo, Todo::SleepUntil(_)) {
            self.todo = Todo::Ask;
        }
        (self.overdue, self.steps, self.slowest) = (0.0, 0, 1.0);
    }

    fn rounding(&self) -> f64 {
        ROUNDING_NS + f64::from(self.steps) / self.slowest
    }

    /// The time by which the task is late to fall asleep or exit at `now`; `None`: it has something
    /// to do.
    fn late(&mut self, now: f64) -> Option<f64> {
        // The end of a step and the sleep after it are the same instant.
        self.ran(now, now + 1e-6, 1.0);
        self.overdue = 0.0;
        match self.todo {
            Todo::Work(left) if left < self.rounding() => {
                self.ask(now);
                self.late(now)
            }
            Todo::Pieces { until, piece, left }
                if until <= now + self.rounding()
                    && (left < self.rounding() || piece - left < self.rounding()) =>
            {
                self.ask(now);
                self.late(now)
            }
            Todo::Unknown => Some(0.0),
            Todo::SleepUntil(_) | Todo::Exit => Some(now - self.at),
            _ => None,
        }
    }

    /// Notes that the task was preempted. At the very instant at which a step was over, whether it
    /// has begun the next one is open, and when that counts from.
    fn preempted(&mut self, now: f64) {
        if (now - self.at).abs() < self.rounding() {
            self.todo = Todo::Unknown;
        }
    }

    /// Notes that the task ran from `from` to `to` at this speed.
    fn ran(&mut self, from: f64, to: f64, speed: f64) {
        let mut now = from;
        self.slowest = self.slowest.min(speed);
        loop {
            match self.todo {
                Todo::Ask => self.ask(now),
                Todo::Unknown => return,
                Todo::Work(left) => {
                    let done = (to - now) * speed;
                    if done < left {
                        self.todo = Todo::Work(left - done);
                        return;
                    }
                    now += left / speed;
                    self.ask(now);
                }
                Todo::Pieces { until, piece, left } => {
                    let ahead = (until - now) * speed - left;
                    let rest = ahead.rem_euclid(piece);
                    if rest.min(piece - rest) < self.rounding() {
                        // A piece ends when the time comes: whether there is another one is open.
                        self.todo = Todo::Unknown;
                        return;
                    }
                    let more = (ahead / piece).ceil().max(0.0);
                    let done = (to - now) * speed;
                    if done < left + more * piece {
                        let into = (piece - left + done) % piece;
                        self.todo = Todo::Pieces { until, piece, left: piece - into };
                        return;
                    }
                    now += (left + more * piece) / speed;
                    self.ask(now);
                }
                Todo::SleepUntil(_) | Todo::Exit => {
                    self.overdue += to - now;
                    return;
                }
            }
        }
    }

    /// The next step, which begins at `now`.
    fn ask(&mut self, now: f64) {
        self.at = now;
        self.steps += 1;
        self.todo = loop {
            let Some(event) = self.next_event() else { break Todo::Exit };
            match event {
                workload::Event::Run(work) => break Todo::Work(work.0 as f64),
                workload::Event::Runtime { time, piece } => {
                    let (until, piece) = (now + time.0 as f64, piece.0 as f64);
                    break Todo::Pieces { until, piece, left: piece };
                }
                workload::Event::Sleep(span) => break Todo::SleepUntil(now + span.0 as f64),
                workload::Event::Timer { timer, period } => {
                    let began = self.began.unwrap_or(now);
                    let reference = &mut self.timers[timer.index as usize];
                    let expiry = reference.unwrap_or(began) + period.0 as f64;
                    *reference = Some(expiry.max(now));
                    if (expiry - now).abs() < ROUNDING_NS + f64::from(self.steps) / self.slowest {
                        break Todo::Unknown;
                    }
                    if expiry > now {
                        break Todo::SleepUntil(expiry);
                    }
                }
                other => unreachable!("not drawn: {other:?}"),
            }
        };
    }

    fn next_event(&mut self) -> Option<workload::Event> {
        loop {
            let Some(phase) = self.spec.phases.get(self.phase) else {
                self.task_round += 1;
                if !again(self.spec.repeat, self.task_round) {
                    return None;
                }
                self.phase = 0;
                continue;
            };
            if let Some(event) = phase.events.get(self.event) {
                self.event += 1;
                return Some(*event);
            }
            self.event = 0;
            self.round += 1;
            if !again(phase.repeat, self.round) {
                (self.round, self.phase) = (0, self.phase + 1);
            }
        }
    }
}

fn again(repeat: Repeat, rounds: u32) -> bool {
    match repeat {
        Repeat::Forever => true,
        Repeat::Times(n) => rounds < n,
    }
}
