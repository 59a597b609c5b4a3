//! The figures of a part of a run that a user reads: a sink for `[from, from + length)`.
//!
//! ```text
//! activation   from a wakeup (or the creation) to the next sleep (or the exit); of those that begin and end in the part
//! wakeup       from becoming runnable by a wakeup or the creation to first running. What a task waits after it
//!              was preempted, or after it was moved while it waited, is part of the activation and no wakeup of its own
//! running      ms that the tasks of one name run, a second; more than 1000 where several do
//! cluster      ms that the workload's tasks run on CPUs of one capacity, a second
//! frequency    of the frequency domains of one capacity (and highest frequency) while tasks of the workload run
//!              there: Σ ns · MHz / Σ ns; none where that is less than 10 ms a second
//! energy       of all CPUs, whoever runs there, mJ a second
//! migrations   how often a task begins to run on another CPU than it last ran on, a second
//! jobs_due     how many jobs of a name fell due in the part: those that it begins with do not count
//! jobs_…       how many of them were released, done, …, a second
//! response     of jobs from release to done, lateness from due to done
//! ```
//!
//! Tasks of one name are one (`worker-0`, `worker-1`: "worker"), as in a report's activations. What was before the part
//! tells where everything stands when it begins, and takes no time.
//! Left out: activations and wakeups that the end cuts off; how long they would have taken is not known.

use crate::histogram::Histogram;
use crate::jobs::{Jobs, Streams};
use crate::latency::group_name;
use crate::machine::{Machine, ms};
use crate::verify::MARGIN;
use risetime_kernel::units::{CpuId, Instant, KHz, Span, TaskId};
use risetime_model::{Name, Platform};
use risetime_trace::tracker::{Doing, Tracker};
use risetime_trace::{Event, Header, Hears, SwitchOut, TraceSink, Why};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Kind of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Half of the activations take at most so long.
    ActivationP50,
    /// 95 % of them.
    ActivationP95,
    /// Half of the wakeups have a CPU after at most so long.
    WakeupP50,
    /// 99 % of them.
    WakeupP99,
    /// Running time of a task.
    Running,
    /// Running time on CPUs of one capacity.
    Cluster,
    /// Mean frequency of the domains of one kind while they are used.
    Frequency,
    /// Energy of all CPUs.
    Energy,
    /// Changes of CPU.
    Migrations,
    /// Jobs that fell due; where timers alone say when they do, the same number on both sides.
    JobsDue,
    /// Jobs released.
    JobsReleased,
    /// Done.
    JobsDone,
    /// Jobs that were not done in time, or not at all.
    JobsMissed,
    /// Done after they were due.
    JobsLate,
    /// Jobs that were merged into a later one, without work of their own.
    JobsMerged,
    /// Superseded in the chain.
    JobsDropped,
    /// Half of the jobs take at most so long from release to done.
    ResponseP50,
    /// 95 % of them.
    ResponseP95,
    /// 99 % of them.
    ResponseP99,
    /// Half of the jobs are done at most so long after they were due.
    LatenessP50,
    /// 99 % of them.
    LatenessP99,
}

impl Kind {
    /// All of them, in the order in which they are told.
    pub const ALL: [Kind; 21] = [
        Kind::ActivationP50,
        Kind::ActivationP95,
        Kind::WakeupP50,
        Kind::WakeupP99,
        Kind::Running,
        Kind::Cluster,
        Kind::Frequency,
        Kind::Energy,
        Kind::Migrations,
        Kind::JobsDue,
        Kind::JobsReleased,
        Kind::JobsDone,
        Kind::JobsMissed,
        Kind::JobsLate,
        Kind::JobsMerged,
        Kind::JobsDropped,
        Kind::ResponseP50,
        Kind::ResponseP95,
        Kind::ResponseP99,
        Kind::LatenessP50,
        Kind::LatenessP99,
    ];

    /// The word that JSON uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::ActivationP50 => "activation_p50",
            Kind::ActivationP95 => "activation_p95",
            Kind::WakeupP50 => "wakeup_p50",
            Kind::WakeupP99 => "wakeup_p99",
            Kind::Running => "running",
            Kind::Cluster => "cluster",
            Kind::Frequency => "frequency",
            Kind::Energy => "energy",
            Kind::Migrations => "migrations",
            Kind::JobsDue => "jobs_due",
            Kind::JobsReleased => "jobs_released",
            Kind::JobsDone => "jobs_done",
            Kind::JobsMissed => "jobs_missed",
            Kind::JobsLate => "jobs_late",
            Kind::JobsMerged => "jobs_merged",
            Kind::JobsDropped => "jobs_dropped",
            Kind::ResponseP50 => "response_p50",
            Kind::ResponseP95 => "response_p95",
            Kind::ResponseP99 => "response_p99",
            Kind::LatenessP50 => "lateness_p50",
            Kind::LatenessP99 => "lateness_p99",
        }
    }

    /// The unit of its values.
    pub const fn unit(self) -> &'static str {
        match self {
            Kind::ActivationP50 | Kind::ActivationP95 | Kind::WakeupP50 | Kind::WakeupP99 => "ms",
            Kind::ResponseP50 | Kind::ResponseP95 | Kind::ResponseP99 => "ms",
            Kind::LatenessP50 | Kind::LatenessP99 => "ms",
            Kind::Running | Kind::Cluster => "ms/s",
            Kind::Frequency => "MHz",
            Kind::Energy => "mJ/s",
            Kind::JobsDue => "",
            Kind::Migrations | Kind::JobsReleased | Kind::JobsDone | Kind::JobsMissed => "1/s",
            Kind::JobsLate | Kind::JobsMerged | Kind::JobsDropped => "1/s",
        }
    }

    /// Whether a figure that is 0 on both sides tells nothing: what did not happen.
    pub fn happens(self) -> bool {
        matches!(self, Kind::JobsMissed | Kind::JobsLate | Kind::JobsMerged | Kind::JobsDropped)
    }

    /// The smallest difference that matters, in the reading's unit; `of`: the highest frequency of
    /// its domain, how many jobs are due a second, the response in ms.
    ///
    /// 0.05 ms is the default timer slack, by which every sleep of a user's task may be late anyway. 1 % of a CPU's
    /// time, of a frequency or of jobs is below what runs of one machine differ by, 1 mW below what its meter shows. A
    /// migration costs some 50 µs of cold caches, so that two a second cost a ten-thousandth of the time. A lateness is the
    /// response less what the file says, and so as exact.
    fn floor(self, of: f64) -> f64 {
        const SLACK: f64 = 0.05;
        match self {
            Kind::ActivationP50 | Kind::ActivationP95 | Kind::WakeupP50 | Kind::WakeupP99 => SLACK,
            Kind::ResponseP50 | Kind::ResponseP95 | Kind::ResponseP99 => SLACK,
            Kind::LatenessP50 | Kind::LatenessP99 => SLACK.max(MARGIN * of),
            Kind::Running | Kind::Cluster => 10.0,
            Kind::Frequency | Kind::JobsReleased | Kind::JobsDone | Kind::JobsMissed => 0.01 * of,
            Kind::JobsDue | Kind::JobsLate | Kind::JobsMerged | Kind::JobsDropped => 0.01 * of,
            Kind::Energy => 1.0,
            Kind::Migrations => 2.0,
        }
    }
}

/// A figure of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Kind of the reading.
    pub kind: Kind,
    /// Tasks, CPUs or domain that the reading is of; empty: all.
    pub of: String,
    /// Value in [`Kind::unit`].
    pub value: f64,
    /// A difference of at most so much is none to a user; 0: both sides must have the same number in each phase.
    pub floor: f64,
}

/// See the head of the file.
pub struct Readings {
    from: Instant,
    length: Span,
    run: Option<Run>,
}

/// A task of the workload, beside its state.
struct Task {
    group: usize,
    /// True if its present activation began in the part.
    counts: bool,
    last_on: Option<CpuId>,
}

/// The tasks of one name.
#[derive(Default)]
struct Group {
    activations: Histogram,
    wakeups: Histogram,
    ran: u64,
}

/// Time of the workload in a domain.
#[derive(Clone, Copy, Default)]
struct Domain {
    ns: u64,
    khz_ns: u128,
}

struct Run {
    platform: Arc<Platform>,
    machine: Machine,
    from: u64,
    to: u64,
    /// Events of the part have come.
    begun: bool,
    /// State by the time of the part; beside each task of the workload its place among `tasks`.
    state: Tracker,
    /// Time until which what the workload runs is accounted, by CPU.
    accounted: Vec<u64>,
    domains: Vec<Domain>,
    tasks: Vec<Task>,
    groups: Vec<(String, Group)>,
    migrations: u64,
    jobs: Streams,
}

impl Readings {
    /// The readings of the part of a run that begins at `from` and lasts `length`, or to the run's
    /// end if that is earlier.
    pub fn new(from: Instant, length: Span) -> Readings {
        Readings { from, length, run: None }
    }

    /// The figures, by kind, then tasks in the order of their creation, CPUs ascending. Empty without a trace.
    pub fn finish(self) -> Vec<Reading> {
        self.run.map_or(Vec::new(), Run::finish)
    }
}

impl TraceSink for Readings {
    fn header(&mut self, header: &Header) {
        let to = self.from.0.saturating_add(self.length.0);
        self.run = Some(Run::new(header, self.from.0, to));
    }

    fn event(&mut self, at: Instant, event: &Event) {
        if let Some(run) = &mut self.run
            && at.0 < run.to
        {
            run.event(at.0, event);
        }
    }

    fn end(&mut self, at: Instant) {
        if let Some(run) = &mut self.run {
            run.to = run.to.min(at.0).max(run.from);
        }
    }

    fn listens(&self) -> Hears {
        Hears::Figures
    }
}

impl Run {
    fn new(header: &Header, from: u64, to: u64) -> Run {
        let platform = Arc::clone(&header.machine.platform);
        let machine = Machine::new(&platform, &[], &header.machine.settings);
        Run {
            machine,
            from,
            to,
            begun: false,
            state: Tracker::of(header),
            accounted: vec![0; platform.nr_cpus()],
            domains: vec![Domain::default(); platform.domains.len()],
            tasks: Vec::new(),
            groups: Vec::new(),
            migrations: 0,
            jobs: Streams::new(header.asked.as_ref().map_or(&[], |asked| &asked.jobs)),
            platform,
        }
    }

    /// Takes in an event at `at` ns, by the time of the part; all that was before it happens when
    /// it begins.
    fn event(&mut self, at: u64, event: &Event) {
        self.begun = at >= self.from;
        let now = at.saturating_sub(self.from);
        self.state.advance(now);
        if let Some(cpu) = event.cpu()
            && !self.state.has(cpu)
            && !matches!(event, Event::TaskNew { .. } | Event::Wakeup { .. })
        {
            return;
        }
        match *event {
            Event::TaskNew { task, comm, user, cpu, why, .. } => {
                self.created(task, comm, user, cpu);
                if let Some(place) = self.state.place(task).filter(|_| why == Why::Earlier) {
                    self.state.was_there(place);
                }
            }
            Event::Wakeup { task, cpu, .. } => {
                let Some(place) = self.state.place(task) else { return };
                let (woken, begun) = (self.state.woken(place, cpu), self.begun);
                if let Some(t) = self.of(place).filter(|_| woken.woken_from.is_some()) {
                    t.counts = begun;
                }
            }
            Event::Switch { cpu, prev, next } => self.switch(cpu, prev, next),
            Event::Freq { cpu, freq } => {
                let d = self.state.cpu(cpu).domain();
                for i in 0..self.accounted.len() {
                    if self.state.cpus()[i].domain() == d {
                        self.account(i, now);
                    }
                }
                self.machine.account_domain(&self.state, d, now);
                self.state.takes(event);
                self.machine.freq_changed(&self.state, d, freq);
            }
            Event::Idle { cpu, .. } => {
                self.machine.before(&self.state, cpu);
                self.state.takes(event);
                self.machine.sleeps(&self.state, cpu);
            }
            Event::Work { cpu, .. } => {
                self.account(cpu.index(), now);
                self.machine.before(&self.state, cpu);
                self.state.takes(event);
                self.machine.works(&self.state, cpu);
            }
            Event::Irq { cpu, .. } => {
                self.machine.before(&self.state, cpu);
                self.state.takes(event);
                self.machine.after(&self.state, cpu);
            }
            Event::Unseen { cpu } => {
                (0..self.accounted.len()).for_each(|i| self.account(i, now));
                self.machine.before(&self.state, cpu);
                self.state.takes(event);
                self.machine.after(&self.state, cpu);
            }
            Event::Job { task, mark } if self.begun => {
                let since = |t: Instant| Instant(t.0.saturating_sub(self.from));
                self.jobs.mark(task, now, mark.with_times(since));
            }
            _ => self.state.takes(event),
        }
    }

    /// The task of the workload of this place among the tracker's.
    fn of(&mut self, place: usize) -> Option<&mut Task> {
        self.tasks.get_mut(self.state.at(place).note as usize)
    }

    fn created(&mut self, id: TaskId, comm: Name, user: bool, cpu: CpuId) {
        let place = self.state.created(id, comm, user, cpu);
        if !user {
            return;
        }
        let name = group_name(&comm);
        let known = self.groups.iter().position(|(n, _)| n == name);
        let group = known.unwrap_or(self.groups.len());
        if known.is_none() {
            self.groups.push((name.to_string(), Group::default()));
        }
        self.state.note(place, self.tasks.len() as u32);
        self.tasks.push(Task { group, counts: self.begun, last_on: None });
    }

    fn switch(&mut self, cpu: CpuId, prev: Option<(TaskId, SwitchOut)>, next: Option<TaskId>) {
        let (now, ran) = (self.state.now(), self.state.cpu(cpu).current().is_some());
        self.account(cpu.index(), now);
        let leaves = prev.filter(|(_, how)| *how != SwitchOut::Preempted);
        if let Some(of) = leaves.and_then(|(id, _)| self.state.task(id))
            && let Some(t) = self.tasks.get(of.note as usize).filter(|t| t.counts)
            && let Some(woke) = of.woke.filter(|_| of.doing != Doing::Gone)
        {
            self.groups[t.group].1.activations.add(now - woke);
        }
        self.machine.before(&self.state, cpu);
        let places = self.state.of_switch(cpu, prev, next);
        let begins = self.state.switched(cpu, prev, next, places);
        self.machine.switched(&self.state, cpu, ran);
        let Some(begins) = begins else { return };
        let note = self.state.at(begins.placed.task).note as usize;
        let Some(t) = self.tasks.get_mut(note) else { return };
        // The task's wakeup was lost.
        t.counts &= begins.placed.woken_from.is_none();
        if let Some((woken, _)) = begins.waited.filter(|_| t.counts) {
            self.groups[t.group].1.wakeups.add(now - woken);
        }
        let from = t.last_on.replace(cpu);
        self.migrations += u64::from(self.begun && from.is_some_and(|from| from != cpu));
    }

    /// Accounts what a task of the workload has run on the CPU of this index until now.
    fn account(&mut self, i: usize, now: u64) {
        let ns = now - std::mem::replace(&mut self.accounted[i], now);
        let cpu = &self.state.cpus()[i];
        let task = cpu.running().map(|place| self.state.at(place).note as usize);
        let Some(task) = task.and_then(|note| self.tasks.get(note)) else { return };
        self.groups[task.group].1.ran += ns;
        let d = cpu.domain();
        let lowest = || self.platform.domains[d].opps.first().map_or(KHz(0), |o| o.freq);
        let freq = self.state.domain(d).freq().unwrap_or_else(lowest);
        self.domains[d].ns += ns;
        self.domains[d].khz_ns += u128::from(ns) * u128::from(freq.0);
    }

    fn finish(mut self) -> Vec<Reading> {
        let length = self.to - self.from;
        if length == 0 {
            return Vec::new();
        }
        for i in 0..self.accounted.len() {
            self.account(i, length);
        }
        let second = length as f64 / 1e9;
        let mut all = Vec::new();
        let mut say = |kind: Kind, of: &str, value: f64, max_mhz: f64| {
            let floor = kind.floor(max_mhz);
            all.push(Reading { kind, of: of.to_string(), value, floor });
        };
        for (name, group) in &self.groups {
            if group.activations.total() > 0 {
                let [p50, p95] = group.activations.quantiles([500, 950]).map(ms);
                say(Kind::ActivationP50, name, p50, 0.0);
                say(Kind::ActivationP95, name, p95, 0.0);
            }
            if group.wakeups.total() > 0 {
                let [p50, p99] = group.wakeups.quantiles([500, 990]).map(ms);
                say(Kind::WakeupP50, name, p50, 0.0);
                say(Kind::WakeupP99, name, p99, 0.0);
            }
            say(Kind::Running, name, ms(group.ran) / second, 0.0);
        }
        let mut clusters: BTreeMap<u64, u64> = BTreeMap::new();
        for (d, spec) in self.domains.iter().zip(&self.platform.domains) {
            *clusters.entry(spec.capacity.0).or_default() += d.ns;
        }
        for (capacity, ns) in clusters {
            say(Kind::Cluster, &format!("capacity {capacity}"), ms(ns) / second, 0.0);
        }
        // Which one of several like domains a task is on is chance.
        let mut kinds: BTreeMap<(u64, u64), (u64, u128)> = BTreeMap::new();
        for (d, spec) in self.domains.iter().zip(&self.platform.domains) {
            let used = kinds.entry((spec.capacity.0, spec.freq_max().0)).or_default();
            *used = (used.0 + d.ns, used.1 + d.khz_ns);
        }
        for ((capacity, max_khz), (ns, khz_ns)) in kinds {
            if ms(ns) / second >= Kind::Cluster.floor(0.0) {
                let mhz = khz_ns as f64 / ns as f64 / 1e3;
                let other = self
                    .platform
                    .domains
                    .iter()
                    .any(|d| d.capacity.0 == capacity && d.freq_max().0 != max_khz);
                let to = if other { format!(" to {} MHz", max_khz / 1000) } else { String::new() };
                let of = format!("capacity {capacity}{to}");
                say(Kind::Frequency, &of, mhz, max_khz as f64 / 1e3);
            }
        }
        let platform = Arc::clone(&self.platform);
        if let (_, Some(mj), _) = self.machine.finish(&self.state, &platform, length) {
            say(Kind::Energy, "", mj / second, 0.0);
        }
        say(Kind::Migrations, "", self.migrations as f64 / second, 0.0);
        let state = self.state;
        self.jobs.cut_off(length);
        let ours = |id| state.task(id).filter(|t| t.user).map(|_| String::new());
        for j in self.jobs.finish(length, ours) {
            of_jobs(&j, second, |kind, value, of| say(kind, &j.name, value, of));
        }
        all.sort_by_key(|r| r.kind);
        all
    }
}

/// The figures of the jobs of one name.
fn of_jobs(j: &Jobs, second: f64, mut say: impl FnMut(Kind, f64, f64)) {
    let (n, due) = (j.due as f64, j.due as f64 / second);
    say(Kind::JobsDue, n, if j.by_timer { 0.0 } else { n });
    for (kind, n) in [
        (Kind::JobsReleased, j.released),
        (Kind::JobsDone, j.done),
        (Kind::JobsMissed, j.missed()),
        (Kind::JobsLate, j.late),
        (Kind::JobsMerged, j.merged),
        (Kind::JobsDropped, j.dropped),
    ] {
        say(kind, n as f64 / second, due);
    }
    let Some(response) = j.response else { return };
    say(Kind::ResponseP50, response.p50, 0.0);
    say(Kind::ResponseP95, response.p95, 0.0);
    say(Kind::ResponseP99, response.p99, 0.0);
    if let Some(lateness) = j.lateness {
        say(Kind::LatenessP50, lateness.p50, response.p50);
        say(Kind::LatenessP99, lateness.p99, response.p99);
    }
}
