//! The sink that turns a trace into a [`RunResult`].
//!
//! Follows the trace with a [`Tracker`]; keeps, per CPU and domain, what its time went to ([`machine`](crate::machine)); per task
//! of the workload, the figures of at most two bursts ([`task`](crate::task)). A
//! piece of time is accounted when something that it depends on changes, so an event costs a
//! few table look-ups and allocates nothing, and a run of any length takes the same memory
//! (what would grow with the run is handed on as it happens: [`Lists`]).
//!
//! Util at a moment is that of the last `PeltTask`; of several at the same time the last
//! counts. The reading of each definition stands in the file that computes it.
//!
//! A trace that lost events and does not say where is taken as it comes ([`Tracker`]); an event of an unknown CPU is counted and
//! left out, time never goes back. Where it says so, what is unknown is no figure's: neither idle nor asleep, and a burst ends
//! there as at the run's end.

mod finish;

use crate::absent::forget_burst;
use crate::figures::Levels;
use crate::jobs::{Missed, Streams, is_declared};
use crate::known::{SEEN, UNASKED};
use crate::latency::{Groups, group_name};
use crate::lead::{is_called, of_most_work};
use crate::lost::{Most, ONE, State};
use crate::machine::{Machine, kinds, ms};
use crate::result::Wakes;
use crate::result::{
    Burst, Migration, Piece, Quota, Reservation, RunResult, TaskResult, Throttled, Timeline,
};
use crate::stretch::{Stretch, Watch};
use crate::task::{News, Task};
use crate::thermal::Thermal;
use risetime_kernel::units::{CpuId, GroupId, Instant, KHz, Span, TaskId, Util};
use risetime_model::Name;
use risetime_model::platform::Domain;
use risetime_model::settings::SKIP_MS;
use risetime_model::workload::{JobSpec, Policy};
use risetime_trace::tracker::{Begins, Doing, Placed, Task as Followed, Tracker};
use risetime_trace::{Asked, Event, Header, Hears, QuotaStat, SwitchOut, TraceSink, Whence, Why};
use std::collections::HashMap;

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
    /// State of machine and tasks; beside each task of the workload its place among `tasks`.
    state: Tracker,
    machine: Machine,
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
    /// Number of times that a domain's frequency became another.
    freq_changes: u64,
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
            state: Tracker::of(header),
            machine: Machine::new(platform, &header.run.signals, &header.machine.settings),
            levels: Levels { util, capacity, freq, kind: kinds(platform) },
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
            freq_changes: 0,
            told: Tells::default(),
            activations,
        }
    }

    #[inline]
    fn advance(&mut self, at: Instant) {
        if !self.counts && at.0 >= self.from {
            self.begin_to_count();
        }
        self.state.advance(at.0);
    }

    /// Begins to count: the start that is left out is over.
    #[cold]
    fn begin_to_count(&mut self) {
        self.counts = true;
        self.state.advance(self.from);
        (0..self.tasks.len()).for_each(|index| self.spent(self.tasks[index].id));
        self.jobs.begin();
    }

    fn event(&mut self, at: Instant, event: &Event) {
        self.advance(at);
        if let Some(cpu) = event.cpu()
            && !self.state.has(cpu)
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
                if let Some(index) = self.runs_on(cpu) {
                    self.account(index);
                    let t = &mut self.tasks[index];
                    let (key, speed) = self.machine.runs_at(cpu);
                    t.stolen(key, span.0, speed);
                }
            }
            Event::Due { task, ago } => self.state.due(task, ago),
            Event::TaskNew { task, comm, user, cpu, max_speed, why } => {
                self.task_new(task, comm, user, cpu, max_speed);
                if why == Why::Earlier {
                    self.was_there(task);
                }
            }
            Event::Freq { cpu, freq } => {
                self.told.freq = true;
                self.freq(cpu, freq, event);
            }
            Event::FreqRequest { cpu, util, freq, why } => {
                self.state.requested(cpu, (freq, util, why));
                let d = self.machine.domain_of(cpu);
                let state = self.machine.requested(&self.state, d, why);
                self.loses_in(d, state);
            }
            Event::Idle { cpu, state } => {
                self.told.idle = true;
                self.wakes.1 += u64::from(state.is_none());
                self.machine.before(&self.state, cpu);
                self.state.idles(cpu, state);
                self.machine.sleeps(&self.state, cpu);
            }
            _ => self.rarely(event),
        }
    }

    /// Takes in an event of a kind that is rare.
    fn rarely(&mut self, event: &Event) {
        match *event {
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
            Event::Work { cpu, .. } => {
                self.account_cpu(cpu);
                self.machine.before(&self.state, cpu);
                self.state.takes(event);
                self.machine.works(&self.state, cpu);
            }
            Event::Misfit { cpu, .. } => {
                self.account_cpu(cpu);
                self.state.takes(event);
            }
            Event::Policy { task, policy } => self.policy(task, policy, event),
            Event::Irq { cpu, .. } => {
                self.account_core(cpu);
                self.machine.before(&self.state, cpu);
                self.state.takes(event);
                self.machine.after(&self.state, cpu);
            }
            Event::Step { task, number } => {
                let now = self.state.now();
                if let Some(t) = self.accounted(task) {
                    t.step(now, number);
                }
            }
            Event::Job { task, mark } => {
                self.spent(task);
                self.state.takes(event);
                self.jobs.mark(task, self.state.now(), mark);
                self.tell_missed();
            }
            Event::Throttled { task, on } => {
                if let Some(t) = self.accounted(task) {
                    t.throttle(on);
                }
                self.state.takes(event);
            }
            Event::Quota { group, stat } => self.quota(group, stat),
            Event::Temperature { zone, millicelsius } => {
                self.thermal.temperature(self.state.now(), zone, millicelsius);
            }
            Event::Cooling { cpu, max, .. } => self.thermal.cooling(self.state.now(), cpu, max),
            Event::Capped { cpu, .. } => {
                self.state.takes(event);
                let d = self.machine.domain_of(cpu);
                let state = self.machine.capped(&self.state, d);
                self.loses_in(d, state);
            }
            Event::Unseen { cpu } => self.unseen(cpu),
            _ => self.state.takes(event),
        }
    }

    /// Takes in the policy of a task.
    fn policy(&mut self, task: TaskId, policy: Policy, event: &Event) {
        let Some(index) = self.index(task) else { return self.state.takes(event) };
        self.account(index);
        let t = &mut self.tasks[index];
        t.set_policy(self.state.now(), self.state.at(t.place).first_ran, policy);
        t.group = self.latency.policy(t.group, policy);
        self.state.takes(event);
    }

    /// Takes in that nothing is known of `cpu` from now on, nor of the tasks that may be there.
    fn unseen(&mut self, cpu: CpuId) {
        let now = self.state.now();
        self.account_core(cpu);
        self.machine.before(&self.state, cpu);
        let of = |t: &Task| (self.state.at(t.place).doing, self.state.at(t.place).since);
        let before: Vec<(Doing, u64)> = self.tasks.iter().map(of).collect();
        (0..self.tasks.len()).for_each(|index| self.account(index));
        self.state.unseen(cpu);
        for (index, before) in before.into_iter().enumerate() {
            let t = &mut self.tasks[index];
            let lost = self.state.at(t.place).doing == Doing::Unknown;
            if lost && before.0 != Doing::Unknown {
                t.lose(now, before);
                self.tell(index);
            }
        }
        self.machine.set_awaited(cpu, None);
        self.machine.after(&self.state, cpu);
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

    fn task_new(&mut self, id: TaskId, comm: Name, user: bool, cpu: CpuId, max_speed: Util) {
        // An id that is used again: whoever had it is gone, seen or not.
        if let Some(index) = self.index(id) {
            self.account(index);
            if self.state.at(self.tasks[index].place).doing != Doing::Gone {
                self.tasks[index].exit(self.state.now());
                self.tell(index);
            }
        }
        let place = self.state.created(id, comm, user, cpu);
        if !user {
            return;
        }
        let leads = self.may_lead(id, &comm);
        let curves = self.timeline && leads;
        let most = Most::of(self.machine.snap(max_speed));
        let mut task = Task::new(place, self.state.at(place), most, curves);
        task.listed = self.lists.is_some();
        let taskgroup = self.asked.task_groups.get(id.index()).map_or("", String::as_str);
        task.group = self.latency.of(&comm, taskgroup);
        let wanted = self.stretch.filter(|(of, _)| *of == id);
        let now = self.state.now();
        task.watch = wanted.map(|(_, stretch)| Box::new(Watch::new(stretch, now)));
        let index = self.tasks.len();
        self.state.note(place, index as u32);
        self.tasks.push(task);
        self.waits_on(index, cpu);
        if curves {
            self.drawn.push(index);
            self.begin_freq_curves(index);
        }
    }

    /// Notes that a task that was told of as a new one was there before: what it did until now is unknown.
    fn was_there(&mut self, id: TaskId) {
        if let Some(place) = self.state.place(id) {
            self.state.was_there(place);
            if let Some(task) = self.tasks.get_mut(self.state.at(place).note as usize) {
                task.was_there();
            }
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
        let Some((index, placed)) = self.placed(id, cpu, Tracker::woken) else { return };
        let new_burst = self.woken(index, &placed);
        self.waits_on(index, cpu);
        self.moves(index, (placed.from, cpu), why.as_str());
        if new_burst && self.drawn.contains(&index) {
            self.begin_freq_curves(index);
        }
    }

    /// Accounts a task of the workload, and has the tracker take in by `take` that it comes to `cpu`. Returns its index.
    #[inline]
    fn placed(
        &mut self,
        id: TaskId,
        cpu: CpuId,
        take: impl FnOnce(&mut Tracker, usize, CpuId) -> Placed,
    ) -> Option<(usize, Placed)> {
        let place = self.state.place(id)?;
        let index = self.of(place);
        if let Some(index) = index {
            self.account(index);
        }
        let placed = take(&mut self.state, place, cpu);
        Some((index?, placed))
    }

    /// Tells the figures of the task of this index, accounted until now, that it was woken, if it was. True: a new burst begins.
    #[inline]
    fn woken(&mut self, index: usize, placed: &Placed) -> bool {
        let (now, levels) = (self.state.now(), &self.levels);
        placed.woken_from.is_some_and(|from| self.tasks[index].wake(now, from, levels))
    }

    /// The task of this index, accounted until now, waits for `cpu`.
    fn waits_on(&mut self, index: usize, cpu: CpuId) {
        let idles = self.state.has(cpu) && self.state.cpu(cpu).is_idle();
        self.tasks[index].waits = if idles { State::IdleExit } else { State::WaitingForCpu };
        if idles {
            self.machine.set_awaited(cpu, Some(index));
        }
    }

    fn migrate(&mut self, id: TaskId, to: CpuId, why: Why) {
        if let Some((index, placed)) = self.placed(id, to, Tracker::moved) {
            self.waits_on(index, to);
            self.moves(index, (placed.from, to), why.as_str());
        }
    }

    /// Tells the figures of the task of this index, accounted until now, that it went from one CPU to another.
    #[inline]
    fn moves(&mut self, index: usize, (from, to): (CpuId, CpuId), why: &'static str) {
        if from != to {
            let t = &mut self.tasks[index];
            let asleep = matches!(self.state.at(t.place).doing, Doing::Sleeps | Doing::Unknown);
            t.migrate(self.state.now(), (from, to), asleep, why, &self.machine);
        }
        self.tell(index);
    }

    /// Hands on what has become known of the task of this index.
    #[inline]
    fn tell(&mut self, index: usize) {
        if self.lists.is_some() {
            self.tell_news(index);
        }
    }

    fn tell_news(&mut self, index: usize) {
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
        let state = &self.state;
        let comm = |id| Some(state.task(id).filter(|t| t.user)?.comm.into());
        let missed = self.jobs.missed(comm);
        missed.iter().for_each(|(job, missed)| lists.missed(job, missed));
    }

    fn switch(&mut self, cpu: CpuId, prev: Option<(TaskId, SwitchOut)>, next: Option<TaskId>) {
        let seen = self.state.cpu(cpu).current();
        // Differs from `prev` only where events were lost.
        if seen != prev.map(|p| p.0) {
            self.account_cpu(cpu);
        }
        let places = self.state.of_switch(cpu, prev, next);
        let [leaves, comes] = places.map(|place| place.and_then(|place| self.of(place)));
        if let Some((_, how)) = prev
            && let Some(index) = leaves
        {
            self.leaves(index, how);
        }
        self.account_beside(cpu);
        if let Some(index) = self.machine.set_awaited(cpu, None) {
            // Whoever has the CPU now, it no longer waits for an idle one.
            self.account(index);
            let t = &mut self.tasks[index];
            if self.state.at(t.place).cpu == cpu {
                t.waits = State::WaitingForCpu;
            }
        }
        if let Some(index) = comes {
            self.account(index);
        }
        self.machine.before(&self.state, cpu);
        let begins = self.state.switched(cpu, prev, next, places);
        self.machine.switched(&self.state, cpu, seen.is_some());
        if let Some(begins) = begins
            && let Some(index) = comes
        {
            self.begins(index, cpu, &begins);
        }
    }

    /// Tells the figures of the task of this index that it is about to leave its CPU, if it is not gone already.
    fn leaves(&mut self, index: usize, how: SwitchOut) {
        let now = self.state.now();
        if self.state.at(self.tasks[index].place).doing == Doing::Gone {
            return;
        }
        self.account(index);
        let t = &mut self.tasks[index];
        let of = self.state.at(t.place);
        let over = of.awake_for(now).filter(|_| how != SwitchOut::Preempted);
        let counted = over.filter(|ns| now - ns >= self.from);
        if let (Some((task, all)), Some(ns)) = (&mut self.activations, over)
            && *task == of.id
        {
            all.push((Piece { instance: 0, number: t.woke_at() }, ns));
        }
        match how {
            SwitchOut::Preempted => {
                t.waits = State::WaitingForCpu;
                if of.doing == Doing::Unknown {
                    t.wake(now, (of.doing, of.since), &self.levels);
                }
            }
            SwitchOut::Sleeping => t.sleep(now),
            SwitchOut::Exited => t.exit(now),
        }
        if let Some(ns) = counted {
            let t = &self.tasks[index];
            self.latency.took(t.group, ns, t.longer_awake());
        }
        self.tell(index);
    }

    /// Tells the figures of the task of this index that it has come to run on `cpu`.
    fn begins(&mut self, index: usize, cpu: CpuId, begins: &Begins) {
        let new_burst = self.woken(index, &begins.placed);
        self.moves(index, (begins.placed.from, cpu), "unrecorded");
        // Where a trace lacks wakeups, since when a task that runs has waited is not known.
        let told = self.header.run.backend.tells_cpus() || begins.placed.woken_from.is_none();
        if let Some((woken, due)) = begins.waited.filter(|(woken, _)| told && *woken >= self.from) {
            let (now, group) = (self.state.now(), self.tasks[index].group);
            self.latency.waited(group, cpu, now - woken);
            self.latency.late(group, now - due);
        }
        if new_burst && self.drawn.contains(&index) {
            self.begin_freq_curves(index);
        }
    }

    fn util(&mut self, id: TaskId, util: Util) {
        let Some(index) = self.index(id) else {
            return;
        };
        if !self.tasks[index].has_util(util.0) {
            self.account(index);
            self.tasks[index].set_util(self.state.now(), util.0, &self.levels);
        }
    }

    fn freq(&mut self, cpu: CpuId, freq: KHz, event: &Event) {
        let now = self.state.now();
        let d = self.machine.domain_of(cpu);
        self.account_domain(d);
        self.machine.account_domain(&self.state, d, now);
        self.state.takes(event);
        let domain = &self.machine.domains[d];
        self.freq_changes += u64::from(domain.slots[domain.now].freq != freq);
        self.machine.freq_changed(&self.state, d, freq);
        for index in &self.drawn {
            for f in self.tasks[*index].figures() {
                if let Some(curve) = f.curves.as_mut().and_then(|c| c.freq.get_mut(d)) {
                    curve.step(now, freq.0);
                }
            }
        }
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
        let now = self.state.now();
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
        if let Some(index) = self.runs_on(cpu) {
            self.account(index);
        }
    }

    /// The index of the task of this id, if it is the workload's.
    #[inline]
    fn index(&self, id: TaskId) -> Option<usize> {
        self.state.place(id).and_then(|place| self.of(place))
    }

    /// The index of the task of this place among the tracker's, if it is the workload's.
    #[inline]
    fn of(&self, place: usize) -> Option<usize> {
        let note = self.state.at(place).note;
        (note != Followed::UNNOTED).then_some(note as usize)
    }

    /// The index of the task that runs on `cpu`, if it is the workload's.
    #[inline]
    fn runs_on(&self, cpu: CpuId) -> Option<usize> {
        self.state.cpu(cpu).running().and_then(|place| self.of(place))
    }

    /// Accounts the task of this index until now.
    #[inline]
    fn account(&mut self, index: usize) {
        let (t, now) = (&mut self.tasks[index], self.state.now());
        if t.is_accounted(now) {
            return;
        }
        let of = self.state.at(t.place);
        let place = match of.doing {
            Doing::Runs(cpu) => Some(self.machine.place(&self.state, cpu, t.id)),
            _ => None,
        };
        t.account((now, self.tick), of, place, &self.levels);
    }

    /// The task, if the workload's, accounted until now.
    fn accounted(&mut self, id: TaskId) -> Option<&mut Task> {
        let index = self.index(id)?;
        self.account(index);
        self.tasks.get_mut(index)
    }

    /// Attributes what the task has taken so far to its jobs.
    fn spent(&mut self, id: TaskId) {
        if let Some(index) = self.index(id) {
            self.account(index);
            let task = &self.tasks[index];
            self.jobs.spent(id, task.energy, task.longer());
        }
    }
}

/// Curves of at most so many tasks are kept until it is known which of them leads.
const DRAWN: usize = 64;

/// The length of the start that is left out.
fn skipped(header: &Header) -> Span {
    let ms = header.machine.settings.get(&SKIP_MS).and_then(|ms| u64::try_from(ms).ok());
    Span(ms.unwrap_or(0).saturating_mul(1_000_000))
}
