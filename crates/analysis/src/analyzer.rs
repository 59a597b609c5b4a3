//! The sink that turns a trace into a [`RunResult`].
//!
//! Keeps, per CPU and domain, what it does ([`machine`](crate::machine)); per task of the
//! workload, what it does and the figures of at most two bursts ([`task`](crate::task)). A
//! piece of time is accounted when something that it depends on changes, so an event costs a
//! few table look-ups and allocates nothing, and a run of any length takes the same memory
//! (what would grow with the run is handed on as it happens: [`Lists`]).
//!
//! Util at a moment is that of the last `PeltTask`; of several at the same time the last
//! counts. The reading of each definition stands in the file that computes it.
//!
//! A trace that lost events is taken as it comes: a task that runs without having been woken
//! is woken there, an event of an unknown CPU is counted and left out, time never goes back.

mod finish;

use crate::absent::forget_burst;
use crate::figures::Levels;
use crate::jobs::{Missed, Streams, is_declared};
use crate::latency::{Groups, group_name};
use crate::lead::{is_called, of_most_work};
use crate::lost::{Most, ONE, State};
use crate::machine::{Machine, kinds, ms};
use crate::result::Wakes;
use crate::result::{
    Burst, Migration, Piece, Quota, Reservation, RunResult, TaskResult, Throttled, Timeline,
};
use crate::stretch::{Stretch, Watch};
use crate::task::{Doing, News, Task};
use crate::thermal::Thermal;
use risetime_kernel::units::{CpuId, GroupId, Instant, KHz, Span, TaskId, Util};
use risetime_model::platform::Domain;
use risetime_model::settings::SKIP_MS;
use risetime_model::workload::JobSpec;
use risetime_trace::{Asked, Event, Header, Hears, QuotaStat, SwitchOut, TraceSink, Whence, Why};
use std::collections::{BTreeMap, HashMap};

/// Results that an analysis is to keep besides the usual ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Keep the curves of the task that leads ([`RunResult::lead`]).
    pub timeline: bool,
    /// Further levels of util_avg to watch, besides 450 and 1000.
    pub levels: Vec<u64>,
    /// The task that is to lead, or tasks: by name, that of its instances, or a pattern with `*` and `?`.
    pub about: Option<String>,
    /// A stretch of a task's program to look for.
    pub stretch: Option<(TaskId, Stretch)>,
    /// Pieces to be listed one by one ([`RunResult::pieces`]).
    pub pieces: Option<Pieces>,
}

/// Work that a task does again and again, told apart so that the same piece is found in another run
/// of the same program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pieces {
    /// A task's activations, by where in its program they begin; needs [`Step`](Event::Step)s.
    Activations(TaskId),
    /// Jobs of this name, by their number.
    Jobs(String),
}

/// Util levels that are always watched.
const UTIL_LEVELS: [u64; 2] = [450, 1000];

/// Receives the results whose number grows with the run: bursts, migrations, missed jobs.
pub trait Lists: Send {
    /// Receives a burst of this task that is over.
    fn burst(&mut self, task: TaskId, comm: &str, burst: &Burst);
    /// Receives a migration of the task; its time counts from the start of the run.
    fn migration(&mut self, task: TaskId, comm: &str, migration: &Migration);
    /// Receives one missed job of this name, or several in a row.
    fn missed(&mut self, job: &str, missed: &Missed);
}

/// The analysis of one run, fed as a [`TraceSink`].
pub struct Analyzer<'a> {
    options: Options,
    lists: Option<&'a mut dyn Lists>,
    run: Option<Run<'a>>,
}

impl<'a> Analyzer<'a> {
    /// An analysis that has seen nothing yet.
    pub fn new(options: Options) -> Analyzer<'a> {
        Analyzer { options, lists: None, run: None }
    }

    /// An analyzer that also reports to `lists`.
    pub fn listing(options: Options, lists: Option<&'a mut dyn Lists>) -> Analyzer<'a> {
        Analyzer { lists, ..Analyzer::new(options) }
    }

    /// The results. `None` instead of a timeline if none was asked for or no task of the
    /// workload was created; a result without CPUs and tasks if there was no header.
    pub fn finish(self) -> (RunResult, Option<Timeline>) {
        match self.run {
            Some(run) => run.finish(),
            None => (RunResult::empty(), None),
        }
    }
}

impl TraceSink for Analyzer<'_> {
    fn header(&mut self, header: &Header) {
        self.run = Some(Run::new(header, &self.options, self.lists.take()));
    }
    fn event(&mut self, at: Instant, event: &Event) {
        if let Some(run) = &mut self.run {
            run.event(at, event);
        }
    }
    fn end(&mut self, at: Instant) {
        if let Some(run) = &mut self.run {
            run.advance(at);
        }
    }
    fn listens(&self) -> Hears {
        Hears::Figures
    }
}

/// Note on a machine that is known from its trace alone.
const SEEN: &str = "the machine is known from this trace alone: how fast its CPUs are, and what they take, nobody says, so that there is no time longer than at full speed, no work lost and no energy; a platform file says it";
/// Note on a trace that is of no experiment.
const UNASKED: &str =
    "the trace is of no experiment: what was due, and which quotas there are, nobody says";

/// Things that a trace may tell of CPUs or not: true once it did.
#[derive(Default)]
struct Tells {
    idle: bool,
    freq: bool,
}

/// Everything known about the run so far.
struct Run<'a> {
    header: Header,
    /// Experiment that was asked for; empty where the trace is of no experiment.
    asked: Asked,
    lists: Option<&'a mut dyn Lists>,
    timeline: bool,
    levels: Levels,
    stretch: Option<(TaskId, Stretch)>,
    tick: u64,
    now: u64,
    machine: Machine,
    ids: Ids,
    /// The workload's tasks, in order of creation.
    tasks: Vec<Task>,
    /// Stream that leads of those that begin a declared job, and the place of its jobs among the
    /// header's.
    lead: Option<(usize, usize)>,
    /// Task that is to lead, if one is named.
    about: Option<String>,
    /// The tasks whose curves are kept, as one of them may be the one to lead.
    drawn: Vec<usize>,
    unknown_cpus: u64,
    /// Time before which jobs, activations and wakeups that begin are not counted, in ns; and
    /// whether it is past.
    from: u64,
    counts: bool,
    latency: Groups,
    jobs: Streams,
    quotas: Vec<Quota>,
    thermal: Thermal,
    /// Number of times that tasks, and CPUs, were woken.
    wakes: (u64, u64),
    /// Things that the trace tells of CPUs.
    told: Tells,
    /// The task whose activations are listed, and these: where each began, and its ns.
    activations: Option<(TaskId, Vec<(Piece, u64)>)>,
}

impl<'a> Run<'a> {
    fn new(header: &Header, options: &Options, lists: Option<&'a mut dyn Lists>) -> Run<'a> {
        let platform = &header.machine.platform;
        let asked = header.asked.clone().unwrap_or_default();
        let mut util: Vec<u64> = UTIL_LEVELS.iter().chain(&options.levels).copied().collect();
        let mut capacity: Vec<u64> = platform.domains.iter().map(|d| d.capacity.0).collect();
        capacity.push(1024);
        for levels in [&mut util, &mut capacity] {
            levels.sort_unstable();
            levels.dedup();
        }
        let opps = |d: &Domain| (d.cpus[0], d.opps.iter().map(|o| o.freq).collect());
        let freq: Vec<(CpuId, Vec<KHz>)> = platform.domains.iter().map(opps).collect();
        let skipped = skipped(header);
        let from = if skipped > Span(0) { asked.phase.0.saturating_add(skipped.0) } else { 0 };
        let mut jobs = Streams::new(&asked.jobs)
            .starts(Instant(asked.phase.0))
            .since(Instant(from), lists.is_some());
        let mut activations = None;
        match &options.pieces {
            Some(Pieces::Jobs(name)) => jobs.list(name),
            Some(Pieces::Activations(task)) => activations = Some((*task, Vec::new())),
            None => {}
        }
        Run {
            header: header.clone(),
            asked,
            lists,
            timeline: options.timeline,
            stretch: options.stretch,
            tick: platform.tick().0,
            now: 0,
            machine: Machine::new(platform, &header.run.signals, &header.machine.settings),
            levels: Levels { util, capacity, freq, kind: kinds(platform) },
            ids: Ids::default(),
            tasks: Vec::new(),
            lead: None,
            about: options.about.clone(),
            drawn: Vec::new(),
            unknown_cpus: 0,
            from,
            counts: from == 0,
            latency: Groups::new(platform),
            jobs,
            quotas: Vec::new(),
            thermal: Thermal::new(&header.machine.platform),
            wakes: (0, 0),
            told: Tells::default(),
            activations,
        }
    }

    #[inline]
    fn advance(&mut self, at: Instant) {
        if !self.counts && at.0 >= self.from {
            self.begin_to_count();
        }
        self.now = self.now.max(at.0);
    }

    /// Begins to count: the start that is left out is over.
    #[cold]
    fn begin_to_count(&mut self) {
        self.counts = true;
        self.now = self.now.max(self.from);
        (0..self.tasks.len()).for_each(|index| self.spent(self.tasks[index].id));
        self.jobs.begin();
    }

    fn event(&mut self, at: Instant, event: &Event) {
        self.advance(at);
        if let Some(cpu) = event.cpu()
            && !self.machine.has(cpu)
        {
            self.unknown_cpus += 1;
            return;
        }
        match *event {
            Event::PeltTask { task, util_avg, .. } => self.util(task, util_avg),
            Event::Switch { cpu, prev, next } => self.switch(cpu, prev, next),
            Event::Wakeup { task, cpu, why } => {
                self.wakes.0 += 1;
                self.wakeup(task, cpu, why);
            }
            Event::Migrate { task, to, why, .. } => self.migrate(task, to, why),
            Event::Stolen { cpu, span } => {
                if let Some(index) = self.machine.current(cpu).and_then(|id| self.ids.get(id)) {
                    self.account(index);
                    let t = &mut self.tasks[index];
                    let (key, speed) = self.machine.runs_at(cpu);
                    t.stolen(key, span.0, speed);
                }
            }
            Event::Due { task, ago } => self.due(task, ago),
            Event::TaskNew { task, comm, user, cpu, max_speed, .. } => {
                self.task_new(task, &comm, user, cpu, max_speed);
            }
            Event::MaxSpeed { task, max_speed } => {
                let s_max = self.machine.snap(max_speed);
                if let Some(t) = self.accounted(task) {
                    t.most.speed = s_max;
                }
            }
            Event::SpeedLimits { task, affinity, clamped } => {
                let (affinity, clamped) = (self.machine.snap(affinity), self.machine.snap(clamped));
                if let Some(t) = self.accounted(task) {
                    (t.most.affinity, t.most.clamped) = (affinity, clamped);
                }
            }
            Event::Freq { cpu, freq } => {
                self.told.freq = true;
                self.freq(cpu, freq);
            }
            Event::FreqRequest { cpu, util, freq, why } => self.request(cpu, util, freq, why),
            Event::Idle { cpu, state } => {
                self.told.idle = true;
                self.wakes.1 += u64::from(state.is_none());
                self.machine.set_idle(cpu, state, self.now);
            }
            Event::Work { cpu, kind } => {
                self.account_cpu(cpu);
                self.machine.set_work(cpu, kind, self.now);
            }
            Event::Misfit { cpu, task } => {
                self.account_cpu(cpu);
                self.machine.set_misfit(cpu, task);
            }
            Event::Policy { task, policy } => {
                let now = self.now;
                if let Some(t) = self.accounted(task) {
                    t.set_policy(now, policy);
                    let group = t.group;
                    let group = self.latency.policy(group, policy);
                    self.accounted(task).into_iter().for_each(|t| t.group = group);
                }
            }
            Event::Irq { cpu, enters } => {
                self.account_core(cpu);
                self.machine.set_irq(cpu, enters, self.now);
            }
            Event::Step { task, number } => {
                let now = self.now;
                if let Some(t) = self.accounted(task) {
                    t.step(now, number);
                }
            }
            Event::Job { task, mark } => {
                self.spent(task);
                self.jobs.mark(task, self.now, mark);
                self.tell_missed();
            }
            Event::Throttled { task, on } => {
                if let Some(t) = self.accounted(task) {
                    t.throttle(on);
                }
            }
            Event::Quota { group, stat } => self.quota(group, stat),
            Event::Temperature { zone, millicelsius } => {
                self.thermal.temperature(self.now, zone, millicelsius);
            }
            Event::Cooling { cpu, max, .. } => self.thermal.cooling(self.now, cpu, max),
            Event::Capped { cpu, by, max } => {
                let d = self.machine.domain_of(cpu);
                let state = self.machine.capped(d, by, max);
                self.loses_in(d, state);
            }
            _ => {}
        }
    }

    /// Notes when the next wakeup of a task was due, `ago` before now.
    fn due(&mut self, task: TaskId, ago: Span) {
        if let Some(index) = self.ids.get(task) {
            self.tasks[index].due = Some(self.now.saturating_sub(ago.0));
        }
    }

    fn quota(&mut self, group: GroupId, stat: QuotaStat) {
        let path = self.asked.groups.get(group.index()).cloned();
        self.quotas.push(Quota {
            group: path.unwrap_or_else(|| format!("group {}", group.0)),
            periods: stat.periods,
            throttled: stat.throttled,
            throttled_ms: ms(stat.time.0),
            longest_ms: stat.longest.map(|longest| ms(longest.0)),
        });
    }

    fn task_new(&mut self, id: TaskId, comm: &str, user: bool, cpu: CpuId, max_speed: Util) {
        // An id that is used again: whoever had it is gone, seen or not.
        let now = self.now;
        if let Some(index) = self.ids.get(id) {
            self.account(index);
            self.tasks[index].exit(now);
            self.tell(index);
        }
        if !user {
            self.ids.set(id, NOBODY);
            return;
        }
        let leads = self.may_lead(id, comm);
        let curves = self.timeline && leads;
        let most = Most::of(self.machine.snap(max_speed));
        let mut task = Task::new(id, comm, cpu, now, most, curves);
        task.listed = self.lists.is_some();
        let taskgroup = self.asked.task_groups.get(id.index()).map_or("", String::as_str);
        task.group = self.latency.of(comm, taskgroup);
        let wanted = self.stretch.filter(|(of, _)| *of == id);
        task.watch = wanted.map(|(_, stretch)| Box::new(Watch::new(stretch, now)));
        let index = self.tasks.len();
        self.ids.set(id, index as u32);
        self.tasks.push(task);
        self.waits_on(self.tasks.len() - 1, cpu);
        if curves {
            self.drawn.push(index);
            self.begin_freq_curves(index);
        }
    }

    /// Whether the next task, of this id and name, may be the one that leads.
    fn may_lead(&mut self, id: TaskId, comm: &str) -> bool {
        let own = |spec: &JobSpec| spec.tasks.first() == Some(&id.0) && is_declared(spec, comm);
        let declared = self.asked.jobs.iter().position(own);
        if let Some(own) = declared.filter(|own| self.lead.is_none_or(|(_, lead)| *own < lead)) {
            self.lead = Some((self.tasks.len(), own));
        }
        if let Some(about) = &self.about {
            return is_called(comm, about) && self.drawn.len() < DRAWN;
        }
        // Of a name only the first may: those of one name are in one group. While there is room each first one is drawn.
        let is_first = |index: &usize| group_name(&self.tasks[*index].comm) != group_name(comm);
        let first = || self.drawn.iter().all(is_first);
        match self.lead {
            Some((lead, _)) => lead == self.tasks.len(),
            None => self.drawn.len() < DRAWN && first(),
        }
    }

    /// The task that leads.
    fn leading(&self) -> usize {
        if let (None, Some((lead, _))) = (&self.about, self.lead) {
            return lead;
        }
        let work = |t: &Task| t.whole.work(&self.machine);
        let tasks = self.tasks.iter().map(|t| (t.comm.as_str(), work(t)));
        of_most_work(tasks, self.about.as_deref())
    }

    fn wakeup(&mut self, id: TaskId, cpu: CpuId, why: Why) {
        let now = self.now;
        let Some(index) = self.ids.get(id) else {
            return;
        };
        self.account(index);
        let new_burst = self.tasks[index].wake(now, &self.levels);
        self.waits_on(index, cpu);
        self.moves(index, cpu, why.as_str());
        if new_burst && self.drawn.contains(&index) {
            self.begin_freq_curves(index);
        }
    }

    /// The task of this index, accounted until now, waits for `cpu`.
    fn waits_on(&mut self, index: usize, cpu: CpuId) {
        let idles = self.machine.idles(cpu);
        self.tasks[index].waits = if idles { State::IdleExit } else { State::WaitingForCpu };
        if idles {
            self.machine.set_awaited(cpu, Some(index));
        }
    }

    fn migrate(&mut self, id: TaskId, to: CpuId, why: Why) {
        if let Some(index) = self.ids.get(id) {
            self.account(index);
            self.waits_on(index, to);
            self.moves(index, to, why.as_str());
        }
    }

    /// The task of this index, accounted until now, is now on `to`.
    fn moves(&mut self, index: usize, to: CpuId, why: &'static str) {
        self.tasks[index].migrate(self.now, to, why, &self.machine);
        self.tell(index);
    }

    /// Hands on what has become known of the task of this index.
    fn tell(&mut self, index: usize) {
        if self.lists.is_none() {
            return;
        }
        let known = self.known();
        let task = &mut self.tasks[index];
        if let Some(lists) = self.lists.as_deref_mut() {
            for news in task.news.drain(..) {
                match news {
                    News::Burst(mut burst) => {
                        if !known.speeds() {
                            forget_burst(&mut burst);
                        }
                        lists.burst(task.id, &task.comm, &burst);
                    }
                    News::Migration(moved) => lists.migration(task.id, &task.comm, &moved),
                }
            }
        }
    }

    /// Hands on what has become known of jobs.
    fn tell_missed(&mut self) {
        let Some(lists) = self.lists.as_deref_mut() else { return };
        let (ids, tasks) = (&self.ids, &self.tasks);
        let missed = self.jobs.missed(|id| Some(tasks[ids.get(id)?].comm.clone()));
        missed.iter().for_each(|(job, missed)| lists.missed(job, missed));
    }

    fn switch(&mut self, cpu: CpuId, prev: Option<(TaskId, SwitchOut)>, next: Option<TaskId>) {
        let now = self.now;
        // The task that ran here by what was seen; differs from `prev` only where events were lost.
        let seen = self.machine.current(cpu);
        if seen != prev.map(|p| p.0)
            && let Some(t) = seen.and_then(|id| self.accounted(id))
            && t.doing == Doing::Runs(cpu)
        {
            t.doing = Doing::Waits;
        }
        if let Some((id, how)) = prev
            && let Some(index) = self.ids.get(id)
            && self.tasks[index].doing != Doing::Gone
        {
            self.account(index);
            let t = &mut self.tasks[index];
            let over = t.awake_for(now).filter(|_| how != SwitchOut::Preempted);
            let counted = over.filter(|ns| now - ns >= self.from);
            let (group, longer) = (t.group, t.longer_awake());
            if let (Some((task, all)), Some(ns)) = (&mut self.activations, over)
                && *task == id
            {
                all.push((Piece { instance: 0, number: t.woke_at() }, ns));
            }
            match how {
                SwitchOut::Preempted => (t.doing, t.waits) = (Doing::Waits, State::WaitingForCpu),
                SwitchOut::Sleeping => t.sleep(now),
                SwitchOut::Exited => t.exit(now),
            }
            if let Some(ns) = counted {
                self.latency.took(group, ns, longer);
            }
            self.tell(index);
        }
        self.account_beside(cpu);
        if let Some(index) = self.machine.set_awaited(cpu, None) {
            // Whoever has the CPU now, it no longer waits for an idle one.
            self.account(index);
            if self.tasks[index].cpu == cpu {
                self.tasks[index].waits = State::WaitingForCpu;
            }
        }
        self.machine.switch(cpu, next, now);
        if let Some(index) = next.and_then(|id| self.ids.get(id)) {
            self.account(index);
            let new_burst = self.tasks[index].wake(now, &self.levels);
            self.moves(index, cpu, "unrecorded");
            let t = &mut self.tasks[index];
            if t.doing != Doing::Gone {
                let due = t.due.take();
                if let Some(woken) = t.woken.take().filter(|woken| *woken >= self.from) {
                    self.latency.waited(t.group, cpu, now - woken);
                    self.latency.late(t.group, now - due.unwrap_or(woken));
                }
                t.doing = Doing::Runs(cpu);
                t.first_ran.get_or_insert(now);
            }
            if new_burst && self.drawn.contains(&index) {
                self.begin_freq_curves(index);
            }
        }
    }

    fn util(&mut self, id: TaskId, util: Util) {
        let now = self.now;
        let Some(index) = self.ids.get(id) else {
            return;
        };
        if !self.tasks[index].has_util(util.0) {
            self.account(index);
            self.tasks[index].set_util(now, util.0, &self.levels);
        }
    }

    fn freq(&mut self, cpu: CpuId, freq: KHz) {
        let now = self.now;
        let d = self.machine.domain_of(cpu);
        self.account_domain(d);
        self.machine.set_freq(d, freq, now);
        for index in &self.drawn {
            for f in self.tasks[*index].figures() {
                if let Some(curve) = f.curves.as_mut().and_then(|c| c.freq.get_mut(d)) {
                    curve.step(now, freq.0);
                }
            }
        }
    }

    fn request(&mut self, cpu: CpuId, util: Util, freq: KHz, why: Why) {
        let d = self.machine.domain_of(cpu);
        let state = self.machine.request_changes(d, (freq, util, why), self.now);
        self.loses_in(d, state);
    }

    /// Sets the state in which running at domain `d`'s frequency is lost from now on, if that has
    /// changed.
    fn loses_in(&mut self, d: usize, state: Option<State>) {
        if let Some(state) = state {
            self.account_domain(d);
            self.machine.set_freq_state(d, state);
        }
    }

    /// Starts the frequency curves of this task's present burst.
    fn begin_freq_curves(&mut self, index: usize) {
        let now = self.now;
        for f in self.tasks[index].figures().filter(|f| f.t0 == now) {
            let Some(curves) = &mut f.curves else {
                continue;
            };
            curves.freq.resize_with(self.machine.domains.len(), Default::default);
            for (curve, d) in curves.freq.iter_mut().zip(&self.machine.domains) {
                curve.step(now, d.slots[d.now].freq.0);
            }
        }
    }

    fn account_domain(&mut self, d: usize) {
        for i in 0..self.machine.domains[d].cpus.len() {
            let cpu = self.machine.domains[d].cpus[i];
            self.account_cpu(cpu);
        }
    }

    /// Accounts the tasks on the threads of a core.
    fn account_core(&mut self, cpu: CpuId) {
        self.account_cpu(cpu);
        self.account_beside(cpu);
    }

    /// Accounts the tasks on the other threads of a core.
    #[inline]
    fn account_beside(&mut self, cpu: CpuId) {
        let mut from = 0;
        while let Some((thread, next)) = self.machine.beside(cpu, from) {
            self.account_cpu(thread);
            from = next;
        }
    }

    fn account_cpu(&mut self, cpu: CpuId) {
        if let Some(index) = self.machine.current(cpu).and_then(|id| self.ids.get(id)) {
            self.account(index);
        }
    }

    /// Accounts the task of this index until now.
    #[inline]
    fn account(&mut self, index: usize) {
        let t = &mut self.tasks[index];
        if t.is_accounted(self.now) {
            return;
        }
        let place = match t.doing {
            Doing::Runs(cpu) => Some(self.machine.place(cpu, t.id)),
            _ => None,
        };
        t.account(self.now, place, self.tick, &self.levels);
    }

    /// The task, if the workload's, accounted until now.
    fn accounted(&mut self, id: TaskId) -> Option<&mut Task> {
        let index = self.ids.get(id)?;
        self.account(index);
        self.tasks.get_mut(index)
    }

    /// Attributes what the task has taken so far to its jobs.
    fn spent(&mut self, id: TaskId) {
        if let Some(index) = self.ids.get(id) {
            self.account(index);
            let task = &self.tasks[index];
            self.jobs.spent(id, task.energy, task.longer());
        }
    }
}

/// Task ids to indices of the workload's tasks: a table for small ids, a tree for the rest
/// (a host's thread ids go up to millions).
#[derive(Default)]
struct Ids {
    table: Vec<u32>,
    tree: BTreeMap<u32, u32>,
}

/// Index of a task that is none of the workload's.
const NOBODY: u32 = u32::MAX;
/// Ids below this are in the table.
const TABLE: usize = 1 << 16;

impl Ids {
    #[inline]
    fn get(&self, id: TaskId) -> Option<usize> {
        let index = match self.table.get(id.index()) {
            Some(i) => *i,
            None => *self.tree.get(&id.0)?,
        };
        (index != NOBODY).then_some(index as usize)
    }
    fn set(&mut self, id: TaskId, index: u32) {
        if id.index() >= TABLE {
            self.tree.insert(id.0, index);
            return;
        }
        if self.table.len() <= id.index() {
            self.table.resize(id.index() + 1, NOBODY);
        }
        self.table[id.index()] = index;
    }
}

/// Curves of at most so many tasks are kept until it is known which of them leads.
const DRAWN: usize = 64;

/// The length of the start that is left out.
fn skipped(header: &Header) -> Span {
    let ms = header.machine.settings.get(&SKIP_MS).and_then(|ms| u64::try_from(ms).ok());
    Span(ms.unwrap_or(0).saturating_mul(1_000_000))
}
