//! The state of a machine and its tasks at each moment, as far as a trace has told: kept here, and nowhere else.
//!
//! ```text
//! events ──> Tracker ──> per CPU      runs which task since when, idle state, handler, kind of work, online
//!                        per domain   frequency, last request, caps, how many of its CPUs run
//!                        per task     runs, waits, sleeps, is gone, or unknown; since when; CPU, wakeup, policy, job mark
//! ```
//!
//! Each event is fed once: by [`Tracker::event`], or by the method of its kind, which returns what has changed. What is derived
//! (waits, bursts, residencies, energy, jobs) is computed by observers that look at the state before and after an event.
//!
//! **Unknown** is a state: a CPU's before its first switch or idle state, unless the trace says that it tells all from its begin
//! on, and from an [`Unseen`](crate::Event::Unseen) to the next of them. A loss makes all tasks unknown but those that
//! run on other CPUs: any of the rest may have been woken, moved, run or put to sleep there. A task is known again with its next
//! event.
//!
//! A trace that lost events and does not say so is taken as it comes: a task that runs without having been woken is woken
//! there, one whose CPU goes over to another without it waits. Events of an unknown CPU must not come here ([`Tracker::has`]).

mod cpu;
mod ids;
mod powers;
mod task;
#[cfg(test)]
mod tests;

use crate::{Event, Header, SwitchOut, Why};
pub use cpu::{Cpu, Domain};
use ids::{Ids, NOBODY};
pub use powers::{CpuPowers, PowerChange};
use risetime_kernel::units::{CpuId, Instant, KHz, Span, TaskId, Util};
use risetime_model::{Name, Platform};
pub use task::{Doing, Task};

/// See the head of the file.
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    now: u64,
    cpus: Vec<Cpu>,
    domains: Vec<Domain>,
    ids: Ids,
    tasks: Vec<Task>,
}

/// A task that has come to a CPU: to run there, or to wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The task, by its place.
    pub task: usize,
    /// CPU on which it was before.
    pub from: CpuId,
    /// Activity that it was woken from, and since when, in ns; `None`: it was not woken by this.
    pub woken_from: Option<(Doing, u64)>,
}

/// A task that begins to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begins {
    /// The task, and whether it was woken without an event of that.
    pub placed: Placed,
    /// Time of the wakeup that led to this turn, and the time at which it was due, in ns; `None`: it has had a turn since.
    pub waited: Option<(u64, u64)>,
}

impl Tracker {
    /// Returns the state before the first event on `platform`. `told`: the trace tells everything from its begin on, so that
    /// each CPU idles until it says otherwise.
    pub fn new(platform: &Platform, told: bool) -> Tracker {
        let cpu = |id| Cpu::new(platform.domain_of(id).unwrap_or(0), told);
        let domain = |d: &risetime_model::platform::Domain| Domain {
            cpus: d.cpus.clone(),
            freq: None,
            request: None,
            caps: Default::default(),
            limits: None,
            running: 0,
            idle_since: 0,
            most: d.freq_boost(),
        };
        Tracker {
            now: 0,
            cpus: platform.cpus().map(cpu).collect(),
            domains: platform.domains.iter().map(domain).collect(),
            ids: Ids::default(),
            tasks: Vec::new(),
        }
    }

    /// Returns the state before the first event of a trace with this header.
    pub fn of(header: &Header) -> Tracker {
        Tracker::new(&header.machine.platform, header.run.backend.tells_cpus())
    }

    /// The time of the last event, in ns.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now
    }
    /// Moves the time on to `at`; it never goes back.
    #[inline]
    pub fn advance(&mut self, at: u64) {
        self.now = self.now.max(at);
    }
    /// Whether the machine has that CPU.
    #[inline]
    pub fn has(&self, cpu: CpuId) -> bool {
        cpu.index() < self.cpus.len()
    }
    /// The state of `cpu`, which exists.
    #[inline]
    pub fn cpu(&self, cpu: CpuId) -> &Cpu {
        &self.cpus[cpu.index()]
    }
    /// The states of all CPUs.
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }
    /// The state of the frequency domain of this place.
    #[inline]
    pub fn domain(&self, domain: usize) -> &Domain {
        &self.domains[domain]
    }
    /// The state of the frequency domain of `cpu`.
    #[inline]
    pub fn domain_of(&self, cpu: CpuId) -> &Domain {
        &self.domains[self.cpus[cpu.index()].domain]
    }
    /// The place of the task that has this id now; `None`: no such task was created.
    #[inline]
    pub fn place(&self, task: TaskId) -> Option<usize> {
        self.ids.get(task)
    }
    /// The state of the task of this place.
    #[inline]
    pub fn at(&self, place: usize) -> &Task {
        &self.tasks[place]
    }
    /// The state of the task that has this id now.
    #[inline]
    pub fn task(&self, task: TaskId) -> Option<&Task> {
        self.ids.get(task).map(|place| &self.tasks[place])
    }
    /// Returns all tasks in the order of their creation, also the ones that are gone.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }
    /// Notes a number beside the task of this place.
    pub fn note(&mut self, place: usize, note: u32) {
        self.tasks[place].note = note;
    }

    /// Takes in an event; one that names a CPU which the machine does not have changes nothing, unless a task is created there.
    pub fn event(&mut self, at: Instant, event: &Event) {
        self.advance(at.0);
        let created = matches!(event, Event::TaskNew { .. });
        if created || event.cpu().is_none_or(|cpu| self.has(cpu)) {
            self.takes(event);
        }
    }

    /// Takes in an event of now, whose CPU exists.
    pub fn takes(&mut self, event: &Event) {
        match *event {
            Event::TaskNew { task, comm, user, cpu, why, .. } => {
                let place = self.created(task, comm, user, cpu);
                if why == Why::Earlier {
                    self.was_there(place);
                }
            }
            Event::Wakeup { task, cpu, .. } => {
                self.ids.get(task).into_iter().for_each(|place| _ = self.woken(place, cpu));
            }
            Event::Migrate { task, to, .. } => {
                self.ids.get(task).into_iter().for_each(|place| _ = self.moved(place, to));
            }
            Event::Switch { cpu, prev, next } => {
                let places = self.of_switch(cpu, prev, next);
                self.switched(cpu, prev, next, places);
            }
            Event::Due { task, ago } => self.due(task, ago),
            Event::Policy { task, policy } => {
                self.own(task).into_iter().for_each(|t| t.set_policy(policy));
            }
            Event::Prio { task, prio } => {
                self.own(task).into_iter().for_each(|t| t.set_prio(prio));
            }
            Event::Throttled { task, on } => {
                self.own(task).into_iter().for_each(|t| t.throttled = on);
            }
            Event::Job { task, mark } => {
                let now = Instant(self.now);
                self.own(task).into_iter().for_each(|t| t.mark = Some((now, mark)));
            }
            Event::Idle { cpu, state } => self.idles(cpu, state),
            Event::Irq { cpu, enters } => self.cpus[cpu.index()].in_irq = enters,
            Event::Work { cpu, kind } => self.cpus[cpu.index()].kind = kind,
            Event::Misfit { cpu, task } => self.cpus[cpu.index()].misfit = task,
            Event::Hotplug { cpu, online } => self.cpus[cpu.index()].online = online,
            Event::Freq { cpu, freq } => self.changed(cpu).freq = Some(freq),
            Event::FreqRequest { cpu, util, freq, why } => self.requested(cpu, (freq, util, why)),
            Event::Capped { cpu, by, max } => {
                let domain = self.changed(cpu);
                domain.caps[by as usize] = max.filter(|max| *max < domain.most);
            }
            Event::CpuFrequencyLimits { cpu, min, max } => {
                self.changed(cpu).limits = Some((min, max));
            }
            Event::Unseen { cpu } => self.unseen(cpu),
            // Signals, decisions, and what hangs on no state that is kept here.
            _ => {}
        }
    }

    #[inline]
    fn own(&mut self, task: TaskId) -> Option<&mut Task> {
        let place = self.ids.get(task)?;
        self.tasks.get_mut(place)
    }

    #[inline]
    fn changed(&mut self, cpu: CpuId) -> &mut Domain {
        &mut self.domains[self.cpus[cpu.index()].domain]
    }

    /// Takes in that a task was created; whoever had its id is gone, seen or not. Returns its place.
    pub fn created(&mut self, id: TaskId, comm: Name, user: bool, cpu: CpuId) -> usize {
        let now = self.now;
        if let Some(before) = self.own(id) {
            exits(before, now);
        }
        let place = self.tasks.len();
        self.ids.set(id, place as u32);
        self.tasks.push(Task::new(id, comm, user, cpu, now));
        place
    }

    /// Takes in that the task of this place, told of as a new one, was there before the trace tells of it: what it does until its
    /// next event is unknown.
    pub fn was_there(&mut self, place: usize) {
        let now = self.now;
        let task = &mut self.tasks[place];
        task.does(now, Doing::Unknown);
        (task.woke, task.woken) = (None, None);
    }

    /// Takes in what the governor of the domain of `cpu` wants, by which util, and why.
    #[inline]
    pub fn requested(&mut self, cpu: CpuId, request: (KHz, Util, Why)) {
        self.changed(cpu).request = Some(request);
    }

    /// Takes in that the next wakeup of a task was due `ago` before now.
    #[inline]
    pub fn due(&mut self, task: TaskId, ago: Span) {
        let due = self.now.saturating_sub(ago.0);
        if let Some(t) = self.own(task) {
            t.due = Some(due);
        }
    }

    /// Takes in that the task of this place was woken on `cpu`.
    #[inline]
    pub fn woken(&mut self, place: usize, cpu: CpuId) -> Placed {
        let t = &mut self.tasks[place];
        let woken_from = t.wake(self.now);
        Placed { task: place, from: std::mem::replace(&mut t.cpu, cpu), woken_from }
    }

    /// Takes in that the task of this place, asleep or not, is now on `to`.
    #[inline]
    pub fn moved(&mut self, place: usize, to: CpuId) -> Placed {
        let from = std::mem::replace(&mut self.tasks[place].cpu, to);
        Placed { task: place, from, woken_from: None }
    }

    /// The places of the tasks that leave `cpu` and come to it in a switch, as far as they have some.
    #[inline]
    pub fn of_switch(
        &self,
        cpu: CpuId,
        prev: Option<(TaskId, SwitchOut)>,
        next: Option<TaskId>,
    ) -> [Option<usize>; 2] {
        let c = &self.cpus[cpu.index()];
        let leaves = match prev {
            Some((id, _)) if c.current == Some(id) => c.running(),
            Some((id, _)) => self.ids.get(id),
            None => None,
        };
        [leaves, next.and_then(|next| self.ids.get(next))]
    }

    /// Takes in that `cpu` went from `prev` to `next`, which have these [places](Tracker::of_switch). Returns the task that
    /// begins to run, if that is one that was created.
    #[inline]
    pub fn switched(
        &mut self,
        cpu: CpuId,
        prev: Option<(TaskId, SwitchOut)>,
        next: Option<TaskId>,
        [leaves, comes]: [Option<usize>; 2],
    ) -> Option<Begins> {
        let now = self.now;
        let c = &mut self.cpus[cpu.index()];
        let (was, seen) = (c.current, c.running());
        (c.current, c.kind, c.known, c.since) = (next, 0, true, Instant(now));
        if next.is_some() {
            c.state = None;
        }
        let of = c.domain;
        if was != prev.map(|p| p.0)
            && let Some(seen) = seen
            && self.tasks[seen].doing == Doing::Runs(cpu)
        {
            self.tasks[seen].does(now, Doing::Waits);
        }
        if let Some((_, how)) = prev
            && let Some(place) = leaves
        {
            let task = &mut self.tasks[place];
            match how {
                _ if task.doing == Doing::Gone => {}
                SwitchOut::Preempted => task.does(now, Doing::Waits),
                SwitchOut::Sleeping => task.does(now, Doing::Sleeps),
                SwitchOut::Exited => exits(task, now),
            }
        }
        if was.is_some() != next.is_some() {
            let domain = &mut self.domains[of];
            match was.is_some() {
                true => domain.running = domain.running.saturating_sub(1),
                false => domain.running += 1,
            }
            if domain.running == 0 {
                domain.idle_since = now;
            }
        }
        self.begins(cpu, comes)
    }

    /// Puts the task of this place on `cpu`.
    #[inline]
    fn begins(&mut self, cpu: CpuId, place: Option<usize>) -> Option<Begins> {
        let now = self.now;
        self.cpus[cpu.index()].running = place.map_or(NOBODY, |place| place as u32);
        let t = &mut self.tasks[place?];
        let woken_from = t.wake(now);
        if let Some((Doing::Unknown, _)) = woken_from {
            // When it woke, nobody has seen.
            (t.woke, t.woken) = (None, None);
        }
        let from = std::mem::replace(&mut t.cpu, cpu);
        let placed = Placed { task: place?, from, woken_from };
        if t.doing == Doing::Gone {
            return Some(Begins { placed, waited: None });
        }
        let (woken, due) = (t.woken.take(), t.due.take());
        t.does(now, Doing::Runs(cpu));
        t.first_ran.get_or_insert(now);
        let waited = woken.map(|woken| (woken, due.unwrap_or(woken)));
        Some(Begins { placed, waited })
    }

    /// Takes in that `cpu` is in this idle state, or awake.
    #[inline]
    pub fn idles(&mut self, cpu: CpuId, state: Option<u32>) {
        let c = &mut self.cpus[cpu.index()];
        c.state = state;
        if !c.known {
            (c.known, c.since) = (true, Instant(self.now));
        }
    }

    /// Takes in that nothing is known of `cpu` from now on, until its events tell again; nor of the tasks that may have been
    /// there.
    pub fn unseen(&mut self, cpu: CpuId) {
        let now = self.now;
        let c = &mut self.cpus[cpu.index()];
        let ran = c.current.is_some();
        *c = Cpu {
            known: false,
            since: Instant(now),
            current: None,
            running: NOBODY,
            in_irq: false,
            state: None,
            kind: 0,
            ..c.clone()
        };
        let domain = &mut self.domains[c.domain];
        if ran {
            domain.running = domain.running.saturating_sub(1);
            domain.idle_since = now;
        }
        for task in &mut self.tasks {
            let elsewhere = matches!(task.doing, Doing::Runs(on) if on != cpu);
            if !elsewhere && !matches!(task.doing, Doing::Gone | Doing::Unknown) {
                task.does(now, Doing::Unknown);
                (task.woke, task.woken, task.due) = (None, None, None);
            }
        }
    }

    /// The idle state in which `cpu` is, by what the CPUs that sleep together with it have asked for; `None`: it asked for none.
    pub fn idle_in(&self, platform: &Platform, cpu: CpuId) -> Option<usize> {
        let c = self.cpu(cpu);
        let of = |cpu: CpuId| self.cpus.get(cpu.index()).and_then(Cpu::asleep);
        c.idle_state().map(|asked| platform.idle_in(c.domain, asked, of))
    }
}

/// Ends a task.
fn exits(task: &mut Task, now: u64) {
    if task.doing != Doing::Gone {
        task.does(now, Doing::Gone);
        task.gone = Some(now);
    }
}
