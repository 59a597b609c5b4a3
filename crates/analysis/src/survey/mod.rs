//! A survey of a trace that nobody planned: every thread, what its time went to, and for whom it waited.
//!
//! ```text
//! events ──> Tracker ──> Survey     per thread   running by CPU and frequency, waits by cause and by who had the CPU,
//!                                                wakeup to running, activations, changes of CPU, period
//!                                   walked       the longest activations of the threads that were asked for, step by step
//! ```
//!
//! What a thread's time goes to is in [`Part`]; the parts of an activation are its length, exactly. Whatever is unknown is
//! nobody's time: a thread's before its first event, and from lost events to its next one.
//! Figures that runs have, too (bursts, time to full speed, residencies of CPUs, energy), are the [`Analyzer`](crate::Analyzer)'s,
//! which is fed with the same events.

mod frames;
mod parts;
mod period;
#[cfg(test)]
mod tests;
mod thread;
mod walk;

pub use frames::{Frame, Marked, MarkedJobs, Marks};
pub use parts::{About, PARTS, Part, Parts};
pub use period::{Jobs, SURE, Whose};
pub use thread::Thread;
pub use walk::{Did, Step, Walk, Walked};

use crate::lead::is_called;
use crate::lost::ONE;
use crate::machine::{ms, speed};
use risetime_kernel::units::{CpuId, Instant, KHz, TaskId};
use risetime_model::platform::Domain;
use risetime_trace::tracker::{Doing, Tracker};
use risetime_trace::{Event, Header, Hears, SwitchOut, TraceSink, Whence, Why};
use std::collections::BTreeMap;
use std::sync::Arc;
use thread::Kept;
use walk::Longest;

/// Priority below which a task is none of the fair class.
const MAX_RT_PRIO: i32 = 100;

/// Meaning of a speed in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speeds {
    /// Shares of the biggest CPU's highest frequency, as a platform file says.
    Described,
    /// Shares of the same, by the capacities that the trace tells and the highest frequency that it shows of each CPU.
    Capacities,
    /// Shares of the highest frequency that the trace shows of each CPU: how big the CPUs are nobody says.
    Frequencies,
    /// Speeds of which nothing is known.
    #[default]
    Unknown,
}

impl Speeds {
    /// Returns the word of the meaning in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Speeds::Described => "described",
            Speeds::Capacities => "capacities",
            Speeds::Frequencies => "frequencies",
            Speeds::Unknown => "unknown",
        }
    }
}

/// Wishes of who asks for a survey.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Threads whose activations are walked: by name, that of their instances, or a pattern with `*` and `?`.
    pub walked: Option<String>,
    /// Threads that are meant by their numbers rather than their names.
    pub tasks: Vec<TaskId>,
    /// Activations that are kept.
    pub walk: Option<Walk>,
    /// Threads whose activations are jobs of a given period, in ns.
    pub jobs: Option<(String, u64)>,
}

/// A survey, once the trace has ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surveyed {
    /// Length of the trace, in ms.
    pub length_ms: f64,
    /// Meaning of speeds.
    pub speeds: Speeds,
    /// True if the platform says that cores have several threads: how much they take from each other no trace tells.
    pub shared_cores: bool,
    /// Threads, the one that ran longest first.
    pub threads: Vec<Thread>,
    /// Sums over all threads.
    pub all: Parts,
    /// Activations that were walked, the longest first.
    pub walked: Vec<Walked>,
    /// Time at each frequency that was told, by the first CPU of each domain, in ms.
    pub freqs: Vec<(CpuId, Vec<(KHz, f64)>)>,
    /// Number of events.
    pub events: u64,
    /// Number of events that name a CPU which the machine does not have.
    pub unknown_cpus: u64,
}

/// Sink that makes a survey.
#[derive(Default)]
pub struct Survey {
    wanted: Wanted,
    header: Option<Arc<Header>>,
    state: Tracker,
    /// Threads by their places among the tracker's tasks.
    threads: Vec<Kept>,
    /// Places of the threads that wait, by CPU.
    waiting: Vec<Vec<u32>>,
    longest: Longest,
    /// Time since which each frequency domain is accounted, and its time at each frequency, in ns.
    freqs: Vec<(u64, BTreeMap<KHz, u64>)>,
    freq_told: bool,
    events: u64,
    unknown_cpus: u64,
}

impl Survey {
    /// Returns a survey of a trace that has not begun.
    pub fn new(wanted: Wanted) -> Survey {
        Survey { wanted, ..Survey::default() }
    }

    /// Returns the survey of all that was seen.
    pub fn finish(mut self) -> Surveyed {
        let end = self.state.now();
        (0..self.threads.len()).for_each(|place| self.settle(place));
        let Some(header) = self.header.clone() else { return Surveyed::default() };
        for place in 0..self.threads.len() {
            self.close_walk(place, end, false);
        }
        if let Some(walk) = self.wanted.walk {
            self.longest.prune(walk);
        }
        let freqs = self.frequencies(&header);
        let mut all = Parts::default();
        self.threads.iter().for_each(|kept| all.absorb(&kept.parts));
        let kept = std::mem::take(&mut self.threads);
        let mut threads: Vec<Thread> =
            kept.into_iter().enumerate().map(|(place, kept)| self.thread(place, kept)).collect();
        threads.sort_by(|a, b| {
            b.parts.running_ms().total_cmp(&a.parts.running_ms()).then(a.task.0.cmp(&b.task.0))
        });
        Surveyed {
            length_ms: ms(end),
            speeds: self.speeds(&header),
            shared_cores: header
                .machine
                .platform
                .cpus()
                .any(|cpu| header.machine.platform.smt_mask(cpu).len() > 1),
            threads,
            all,
            walked: self.longest.all,
            freqs,
            events: self.events,
            unknown_cpus: self.unknown_cpus,
        }
    }

    /// Accounts the frequency of the domain of `cpu` until now.
    fn settle_freq(&mut self, cpu: CpuId) {
        let (now, of) = (self.state.now(), self.state.cpu(cpu).domain());
        let freq = self.state.domain(of).freq();
        if self.freqs.len() <= of {
            self.freqs.resize_with(of + 1, Default::default);
        }
        let (since, times) = &mut self.freqs[of];
        let dt = now - std::mem::replace(since, now);
        if let Some(freq) = freq {
            *times.entry(freq).or_default() += dt;
        }
    }

    /// The time at each frequency by domain, until now.
    fn frequencies(&mut self, header: &Header) -> Vec<(CpuId, Vec<(KHz, f64)>)> {
        let domains = &header.machine.platform.domains;
        let firsts: Vec<CpuId> = domains.iter().filter_map(|d| d.cpus.first().copied()).collect();
        firsts.iter().for_each(|cpu| self.settle_freq(*cpu));
        let times = |cpu: CpuId| {
            let (_, times) = &self.freqs[self.state.cpu(cpu).domain()];
            times.iter().map(|(freq, ns)| (*freq, ms(*ns))).filter(|(_, ms)| *ms > 0.0).collect()
        };
        firsts.into_iter().map(|cpu| (cpu, times(cpu))).collect()
    }

    fn speeds(&self, header: &Header) -> Speeds {
        let described = header.machine.whence == Whence::Described;
        let one = header.machine.platform.domains.iter().all(|d| d.opps.len() == 1);
        let told = header.run.signals.iter().any(|s| s.name == "cpu_capacity");
        match (self.freq_told, described, told) {
            (_, true, _) if self.freq_told || one => Speeds::Described,
            (false, ..) => Speeds::Unknown,
            (_, _, true) => Speeds::Capacities,
            _ => Speeds::Frequencies,
        }
    }

    fn thread(&self, place: usize, kept: Kept) -> Thread {
        let of = self.state.at(place);
        let given = self.wanted.jobs.as_ref().filter(|(name, _)| is_called(&of.comm, name));
        let jobs = match given {
            Some((_, period)) => Some(period::given(&kept.kept, *period)),
            None => period::found(&kept.kept),
        };
        let mut waited_for: Vec<_> = kept
            .waited_for
            .iter()
            .map(|(other, ns)| (self.state.at(*other as usize), ms(*ns)))
            .map(|(other, ms)| (other.id, other.comm, ms))
            .collect();
        waited_for.sort_by(|a, b| b.2.total_cmp(&a.2));
        let running = kept.running.iter();
        Thread {
            task: of.id,
            comm: of.comm,
            parts: kept.parts,
            switches: kept.switches,
            wakeups: kept.wakeups,
            activations: kept.activations,
            took: kept.took.percentiles(),
            waited: kept.waited.percentiles(),
            moves: kept.moves,
            running: running
                .map(|((cpu, freq), ns)| (*cpu, Some(*freq).filter(|f| f.0 > 0), ms(*ns)))
                .collect(),
            waited_for,
            jobs,
        }
    }

    /// Whether the activations of the task of this place are walked.
    fn is_walked(&self, place: usize) -> bool {
        let of = self.state.at(place);
        self.wanted.walk.is_some()
            && (self.wanted.tasks.contains(&of.id)
                || self.wanted.walked.as_ref().is_some_and(|name| is_called(&of.comm, name)))
    }

    /// Accounts the thread of this place until now.
    fn settle(&mut self, place: usize) {
        let now = self.state.now();
        let from = std::mem::replace(&mut self.threads[place].at, now);
        let dt = now - from;
        if dt == 0 {
            return;
        }
        let of = self.state.at(place);
        let (cpu, did) = match of.doing {
            Doing::Runs(cpu) => {
                let freq = self.state.domain_of(cpu).freq();
                let parts = self.running(cpu, freq);
                let kept = &mut self.threads[place];
                kept.adds(&parts, dt);
                *kept.running.entry((cpu, freq.unwrap_or(KHz(0)))).or_default() += dt;
                (cpu, Did::Ran(freq))
            }
            Doing::Waits => {
                let (part, who) = self.waits(of.cpu);
                let cpu = of.cpu;
                let kept = &mut self.threads[place];
                kept.adds(&[(part, ONE)], dt);
                if let Some(who) = who {
                    kept.waits_for(who as u32, dt);
                }
                let who = who.map(|who| (self.state.at(who).id, self.state.at(who).comm));
                (cpu, Did::Waited(part, who))
            }
            _ => return,
        };
        if let Some(walked) = &mut self.threads[place].walked {
            walked.step(Step { from, to: now, cpu, did });
        }
    }

    /// Shares of time that running on `cpu` at this frequency goes to.
    fn running(&self, cpu: CpuId, freq: Option<KHz>) -> Shares {
        if self.state.cpu(cpu).in_irq() {
            return all(Part::Interrupted);
        }
        let Some(header) = &self.header else { return all(Part::Unrated) };
        let platform = &header.machine.platform;
        let Some(domain) = platform.domain_of(cpu).map(|d| &platform.domains[d]) else {
            return all(Part::Unrated);
        };
        let only = domain
            .opps
            .first()
            .map(|opp| opp.freq)
            .filter(|_| domain.opps.len() == 1 && header.machine.whence == Whence::Described);
        let Some(freq) = freq.or(only) else { return all(Part::Unrated) };
        let limit = self.state.domain_of(cpu).limits().map(|(_, max)| max);
        rated(domain, freq, limit)
    }

    /// The reason for which a thread waits for `cpu`, and the place of the task that has it.
    fn waits(&self, cpu: CpuId) -> (Part, Option<usize>) {
        if !self.state.has(cpu) {
            return (Part::Unwatched, None);
        }
        let c = self.state.cpu(cpu);
        match c.running() {
            _ if c.in_irq() => (Part::Handler, None),
            Some(who) if self.state.at(who).prio < MAX_RT_PRIO => (Part::StrictTask, Some(who)),
            Some(who) => (Part::FairTask, Some(who)),
            None if c.current().is_some() => (Part::FairTask, None),
            None if c.is_known() => (Part::IdleExit, None),
            None => (Part::Unwatched, None),
        }
    }

    /// Accounts all threads that run on `cpu` or wait for it.
    fn settle_cpu(&mut self, cpu: CpuId) {
        if let Some(place) = self.state.cpu(cpu).running() {
            self.settle(place);
        }
        for i in 0..self.waiting[cpu.index()].len() {
            self.settle(self.waiting[cpu.index()][i] as usize);
        }
    }

    /// Puts the thread of this place, accounted until now, among the waiters of the CPU for which it waits, if any.
    fn refile(&mut self, place: usize) {
        let of = self.state.at(place);
        let waits = of.doing == Doing::Waits && self.state.has(of.cpu);
        let wanted = waits.then_some(of.cpu);
        let filed = std::mem::replace(&mut self.threads[place].waits_on, wanted);
        if filed == wanted {
            return;
        }
        if let Some(cpu) = filed {
            self.waiting[cpu.index()].retain(|other| *other as usize != place);
        }
        if let Some(cpu) = wanted {
            self.waiting[cpu.index()].push(place as u32);
        }
    }

    /// Ends the activation of this place that is walked.
    fn close_walk(&mut self, place: usize, now: u64, whole: bool) {
        if let Some(mut walked) = self.threads[place].walked.take()
            && let Some(walk) = self.wanted.walk
        {
            walked.to = now.max(walked.to);
            walked.whole &= whole;
            self.longest.keep(*walked, walk);
        }
    }

    /// Begins an activation of this place, if such are walked. `whole`: the trace has its wakeup.
    fn begin_walk(&mut self, place: usize, whole: bool) {
        if self.is_walked(place) {
            let (of, now) = (self.state.at(place), self.state.now());
            let walked = Walked::new(of.id, of.comm, now, whole);
            self.threads[place].walked = Some(Box::new(walked));
        }
    }

    fn switch(&mut self, cpu: CpuId, event: &Event) {
        let Event::Switch { prev, next, .. } = *event else { return };
        self.settle_cpu(cpu);
        let seen = self.state.cpu(cpu).running();
        let places = self.state.of_switch(cpu, prev, next);
        let [leaves, comes] = places;
        let now = self.state.now();
        if let (Some(place), Some((_, how))) = (leaves, prev) {
            self.settle(place);
            if how != SwitchOut::Preempted {
                let told = std::mem::take(&mut self.threads[place].wakeup_told);
                let awake = self.state.at(place).awake_for(now).filter(|_| told);
                if let Some(ns) = awake {
                    self.threads[place].activation(now - ns, now);
                }
                self.close_walk(place, now, awake.is_some());
            }
        }
        if let Some(place) = comes {
            self.settle(place);
        }
        let begins = self.state.switched(cpu, prev, next, places);
        if let (Some(begins), Some(place)) = (begins, comes) {
            let kept = &mut self.threads[place];
            kept.switches += 1;
            kept.moves += u64::from(begins.placed.from != cpu);
            // Where nobody told of the wakeup, since when it waits is not known.
            if let Some((woken, _)) = begins.waited.filter(|_| kept.wakeup_told) {
                kept.waited.add(now - woken);
            }
            if begins.placed.woken_from.is_some() {
                self.begin_walk(place, false);
            }
            self.moved(place, begins.placed.from, cpu);
        }
        [leaves, comes, seen].into_iter().flatten().for_each(|place| self.refile(place));
    }

    fn moved(&mut self, place: usize, from: CpuId, to: CpuId) {
        if from != to
            && let Some(walked) = &mut self.threads[place].walked
        {
            walked.moves += 1;
        }
    }

    fn wakeup(&mut self, place: usize, cpu: CpuId) {
        self.settle(place);
        let placed = self.state.woken(place, cpu);
        let kept = &mut self.threads[place];
        kept.wakeups += 1;
        kept.wakeup_told |= placed.woken_from.is_some();
        kept.moves += u64::from(placed.from != cpu);
        if placed.woken_from.is_some() {
            self.begin_walk(place, true);
        }
        self.moved(place, placed.from, cpu);
        self.refile(place);
    }

    fn migrate(&mut self, place: usize, to: CpuId) {
        self.settle(place);
        let placed = self.state.moved(place, to);
        self.threads[place].moves += u64::from(placed.from != to);
        self.moved(place, placed.from, to);
        self.refile(place);
    }

    fn settle_domain(&mut self, cpu: CpuId) {
        for i in 0..self.state.domain_of(cpu).cpus().len() {
            let cpu = self.state.domain_of(cpu).cpus()[i];
            if let Some(place) = self.state.cpu(cpu).running() {
                self.settle(place);
            }
        }
    }

    fn unseen(&mut self, event: &Event) {
        (0..self.threads.len()).for_each(|place| self.settle(place));
        self.state.takes(event);
        let now = self.state.now();
        for place in 0..self.threads.len() {
            if self.state.at(place).doing == Doing::Unknown {
                self.close_walk(place, now, false);
                self.threads[place].wakeup_told = false;
            }
            self.refile(place);
        }
    }
}

/// Shares of a piece of time, on the scale of [`ONE`]; they add up to that.
type Shares = [(Part, u64); 4];

/// Shares of a piece of time that goes to one thing alone.
fn all(part: Part) -> Shares {
    [(part, ONE), (Part::Work, 0), (Part::Work, 0), (Part::Work, 0)]
}

/// Shares of time that running in `domain` at `freq` goes to; `limit`: the highest frequency that its policy allows.
fn rated(domain: &Domain, freq: KHz, limit: Option<KHz>) -> Shares {
    let highest = speed(domain, domain.freq_max()).min(ONE);
    let now = speed(domain, freq).min(highest);
    let allowed = limit.map_or(highest, |max| speed(domain, max).min(highest)).max(now);
    [
        (Part::Work, now),
        (Part::LowFrequency, allowed - now),
        (Part::Capped, highest - allowed),
        (Part::SmallCpu, ONE - highest),
    ]
}

impl TraceSink for Survey {
    fn header(&mut self, header: &Header) {
        self.state = Tracker::of(header);
        self.waiting = vec![Vec::new(); self.state.cpus().len()];
        self.header = Some(Arc::new(header.clone()));
    }

    fn event(&mut self, at: Instant, event: &Event) {
        self.events += 1;
        self.state.advance(at.0);
        let created = matches!(event, Event::TaskNew { .. });
        if !created && event.cpu().is_some_and(|cpu| !self.state.has(cpu)) {
            self.unknown_cpus += 1;
            return;
        }
        match *event {
            Event::TaskNew { task, comm, user, cpu, why, .. } => {
                if let Some(before) = self.state.place(task) {
                    self.settle(before);
                    self.close_walk(before, at.0, false);
                }
                let earlier = why == Why::Earlier;
                let place = self.state.created(task, comm, user, cpu);
                if earlier {
                    self.state.was_there(place);
                }
                let (at, wakeups) = (self.state.now(), u64::from(!earlier));
                self.threads.push(Kept { at, wakeups, wakeup_told: !earlier, ..Kept::default() });
                if !earlier {
                    self.begin_walk(place, true);
                }
                self.refile(place);
            }
            Event::Wakeup { task, cpu, .. } => {
                self.state.place(task).into_iter().for_each(|place| self.wakeup(place, cpu));
            }
            Event::Migrate { task, to, .. } => {
                self.state.place(task).into_iter().for_each(|place| self.migrate(place, to));
            }
            Event::Switch { cpu, .. } => self.switch(cpu, event),
            Event::Irq { cpu, .. } => {
                self.settle_cpu(cpu);
                self.state.takes(event);
            }
            Event::Freq { cpu, .. } => {
                self.freq_told = true;
                self.settle_freq(cpu);
                self.settle_domain(cpu);
                self.state.takes(event);
            }
            Event::CpuFrequencyLimits { cpu, .. } => {
                self.settle_domain(cpu);
                self.state.takes(event);
            }
            Event::Prio { task, .. } | Event::Policy { task, .. } => {
                let runs = self.state.task(task).map(|t| t.doing);
                if let Some(Doing::Runs(cpu)) = runs {
                    self.settle_cpu(cpu);
                }
                self.state.takes(event);
            }
            Event::Unseen { .. } => self.unseen(event),
            _ => self.state.takes(event),
        }
    }

    fn end(&mut self, at: Instant) {
        self.state.advance(at.0);
    }

    fn listens(&self) -> Hears {
        Hears::Attributes
    }
}
