//! The simulator brought along by another trace: its state follows the reference, event by event; at each
//! decision it is asked what it would do, and the answer is noted, not carried out (`verify --mode step`).
//!
//! ```text
//! reference   Wakeup  Switch  Migrate  Freq  Idle   PELT, util_est, …
//!                │       │       │       │     │          │
//! here        queued  picked  moved   in force │   compared, then taken over
//!                │       │                     │
//! asked       which    who     (ticks are this machine's own: preempt? balance? a frequency?)
//!             CPU?     next?              which state?
//! ```
//!
//! Whatever the kernel here would do by itself is noted and refused; what the reference did is done to it. So each
//! decision is taken from nearly the state that the kernel there had, and one that differs does not lead to others.
//!
//! Every thread of the reference is a task here. Of those that are none of the workload's nothing but the name is
//! known, and that one such as `kworker/3:1` belongs to CPU 3: what is asked about them is marked (`Asked::user`).
//!
//! Where the reference tells from what it decides (`Waking`, `Prio`, `Entity`, `CfsQueue`, `BalanceDue`, `BalanceLook`,
//! `IdleSelect`), that is compared and taken over as well: a wakeup is asked for when it begins, and for whoever wakes;
//! balancing looks when it looks there. Where it does not, a wakeup counts as a timer's on the CPU on which the task
//! slept, and this machine's own ticks balance.
//!
//! Leaves out: hotplug, quotas that run out (a task whose group's has is taken off its queue, as there: `throttle_cfs_rq`
//! is not asked for; nor is `dl_throttled`), pushing and pulling of real-time and
//! deadline tasks (done as there, not asked), places of tasks in groups (only the CPU's own queue is told of).

mod asked;
mod follower;
mod listens;
mod own_time;
mod signals;
mod tasks;
mod timeline;
mod told;

use crate::Counterfactual;
use crate::kernel::governor::Resumed;
use crate::run::mutant::Mutant;
use crate::run::replay::was_visited;
use crate::run::setup;
use crate::state::hooks::{Chain, Hooks};
use crate::state::timers::Timers;
pub use asked::{Asked, Beside, Compared, Followed, Lost};
use follower::{Follower, Tells};
use listens::{Listens, Shared};
use risetime_kernel::units::{CpuId, GroupId, Instant, KHz, Span};
use risetime_model::Experiment;
use risetime_trace::{Clock, Event, Header, Hears, Memory, RunError, TraceSink};
use signals::Averages;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
pub use timeline::moves_of_sleepers;
use timeline::{Texts, What, causes_first, next_wakeups};
use told::{levels, sleeps};

/// Time at most from a look to the request that it leads to.
const LOOK_LASTS: Span = Span::from_us(40);

/// Follows `reference`, a run of `experiment`, from its time 0 to its end; with a `mutant`, as a simulator that has
/// that mechanism broken.
///
/// Errors: what a simulation of the experiment would refuse.
pub fn follow(
    experiment: &Experiment,
    reference: &Memory,
    beside: &Beside,
    mutant: Option<Mutant>,
) -> Result<Followed, RunError> {
    let mut deaf = Deaf;
    let mut experiment = experiment.clone();
    if let Some(mutant) = mutant {
        mutant.change(&mut experiment);
    }
    let experiment = &experiment;
    let mut simulation = setup::simulation(experiment, &mut deaf, Counterfactual::default())?;
    let mut texts = Texts::default();
    reference.replay(&mut texts);
    let events = reference.events();
    let tells = |what: fn(&Event) -> bool| events.iter().any(|(_, e)| what(e));
    let tells = Tells {
        looks: tells(|e| matches!(e, Event::BalanceLook { .. })),
        sleeps: !texts.selects.is_empty(),
        resched: tells(|e| matches!(e, Event::Resched { .. })),
        governs: tells(|e| matches!(e, Event::FreqLook { .. })),
        ticks: tells(|e| matches!(e, Event::Tick { .. })),
    };
    let shared = Shared {
        looks_told: tells.looks,
        sleeps_told: tells.sleeps,
        governs_told: tells.governs,
        ..Shared::default()
    };
    let shared = Rc::new(RefCell::new(shared));
    shared.borrow_mut().idles = sleeps(events, texts.selects);
    let m = &mut simulation.k.m;
    m.free_idle_exit = true;
    m.slots.hrtimers.given = true;
    if let Some(mutant) = mutant {
        mutant.prepare(m);
    }
    let broken = mutant.map(|mutant| Box::new(mutant) as Box<dyn Hooks>);
    let listens: Box<dyn Hooks> = Box::new(Listens(Rc::clone(&shared)));
    m.hooks = Some(Box::new(Chain(broken.into_iter().chain([listens]).collect())));
    m.ticks.set_offset(Span(beside.first_tick.0 % m.tick.0), m.now, m.tick);
    let domains = simulation.k.m.domains.len();
    let averages = vec![Averages::default(); simulation.k.m.cpus.len()];
    let mut f = Follower {
        events,
        next_wakeups: next_wakeups(reference),
        of_sleepers: moves_of_sleepers(events),
        levels: levels(events),
        simulation,
        shared,
        tells,
        names: texts.names,
        here: BTreeMap::new(),
        creator: beside.creator,
        first_act: BTreeMap::new(),
        experiment,
        wanted: vec![None; domains],
        same_origin: BTreeSet::new(),
        asked: None,
        cfs_told: None,
        other_clock: BTreeSet::new(),
        averages,
        waits_for_quota: BTreeMap::new(),
        clamped: BTreeSet::new(),
        aside: Timers::default(),
        moved: None,
        detached: Vec::new(),
        followed: Followed::default(),
    };
    for memory in reference.header().iter().flat_map(|header| &header.image.idle) {
        was_visited(&mut f.simulation.k.rq(memory.cpu), memory);
    }
    f.simulation.start();
    f.settle();
    let mut wanted = beside.wanted.iter().peekable();
    // Before 6.18 it is told whose run out: a group leaves its queue with all that it holds.
    let limited = experiment.workload.groups.iter().any(|group| group.quota.is_some());
    let quotas = limited && f.simulation.k.m.throttles_tasks();
    // The simulator tells that a wakeup is under way when it has chosen a CPU.
    let asks = reference.header().is_none_or(|h| h.run.clock != Clock::Simulated);
    for (at, what) in causes_first(events, (asks, quotas)) {
        // The look that leads to a request comes first, and is asked here without knowing of it.
        let known = |when: Instant| when + LOOK_LASTS;
        let due = |when: &Instant| !tells.governs && known(*when) <= at;
        while let Some((when, cpu, freq)) = wanted.next_if(|(when, ..)| due(when)) {
            f.advance(known(*when));
            f.wants(*cpu, *freq, *when);
        }
        f.looks_unless(what);
        f.advance(at);
        f.apply(what);
        f.settle();
    }
    f.looks();
    f.advance(reference.end());
    let mut followed = f.followed;
    followed.asked = std::mem::take(&mut f.shared.borrow_mut().asked);
    Ok(followed)
}

/// Sink of the simulation's own trace, which is not wanted.
struct Deaf;

impl TraceSink for Deaf {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, _: Instant, _: &Event) {}
    fn end(&mut self, _: Instant) {}
    fn listens(&self) -> Hears {
        Hears::Nothing
    }
}

impl Follower<'_, '_> {
    fn apply(&mut self, what: What) {
        let index = match what {
            What::Leaves(index) => return self.leaves(index),
            What::Throttled(index) => return self.quota_is_out(index),
            What::Asks(index, by) => return self.asks(index, by),
            What::Pends(index, by) => return self.pends(index, by),
            What::Wakes(index) => return self.woken(index),
            What::Event(index) => index,
        };
        let event = &self.events[index].1;
        if !matches!(
            event,
            Event::PeltCfs { .. }
                | Event::PeltTask { .. }
                | Event::CfsQueue { .. }
                | Event::CfsLoad { .. }
                | Event::TaskLoad { .. }
                | Event::GroupEntity { .. }
                | Event::GroupQueue { .. }
        ) {
            self.cfs_told = None;
        }
        match *event {
            Event::TaskNew { task, user, cpu, .. } => self.created(task, user, cpu),
            Event::Migrate { task, to, from, .. } => self.moved(index, task, from, to),
            Event::Switch { cpu, .. } => {
                self.shared.borrow_mut().due.remove(&cpu);
                self.switched(index);
            }
            Event::Phase { task, index, .. } => self.phase(task, index as usize),
            Event::Prio { task, prio } => self.prio(task, prio),
            Event::Entity { task, place } => {
                self.has_quota_again(task);
                self.place(task, &place);
            }
            Event::CfsQueue { cpu, min_vruntime, .. } => {
                self.queue(cpu, GroupId::ROOT, min_vruntime);
            }
            Event::GroupEntity { cpu, group, place } => self.group_place(cpu, group, &place),
            Event::GroupQueue { cpu, group, min_vruntime } => self.queue(cpu, group, min_vruntime),
            Event::GroupThrottled { cpu, group, on } => self.group_throttled(cpu, group, on),
            Event::BalanceDue { cpu, jiffies, next_balance, domains } => {
                self.balance_due(cpu, jiffies, next_balance, domains);
            }
            Event::BalanceLook { cpu, level, idle, failed } => {
                self.balances(cpu, level, idle, failed);
            }
            Event::Freq { cpu, freq } => {
                let k = &mut self.simulation.k;
                let domain = k.m.cpu(cpu).domain;
                k.policy(domain).impose_freq(freq);
                let since = self.wanted[domain].map_or(k.m.now, |(since, _)| since);
                self.wanted[domain] = Some((since, freq));
                if !self.tells.governs {
                    k.policy(domain).resume(&Resumed::at(freq, since));
                }
            }
            Event::Tick { cpu } => self.told_tick(cpu),
            Event::FreqLook { cpu, look } => self.governs(cpu, &look),
            Event::Deadline { task, runtime, left } => self.deadline(task, runtime, left),
            Event::IdleSelect { cpu, .. } => self.idles(cpu),
            Event::Idle { cpu, state: Some(_) } if !self.tells.sleeps => self.idles(cpu),
            Event::Idle { cpu, state: None } => self.leaves_idle(cpu),
            Event::Overutilized { on } => self.simulation.k.rq(CpuId(0)).set_overutilized(on),
            Event::Resched { cpu, lazy: false } => {
                self.shared.borrow_mut().due.insert(cpu, self.simulation.k.m.now);
            }
            _ => self.signal(event),
        }
    }

    /// Notes that the governor of `cpu`'s policy has asked for `freq` there.
    fn wants(&mut self, cpu: CpuId, freq: KHz, when: Instant) {
        let k = &mut self.simulation.k;
        let domain = k.m.cpu(cpu).domain;
        self.wanted[domain] = Some((when, freq));
        k.policy(domain).resume(&Resumed::at(freq, when));
    }

    /// Lets the governor look, as all signals that moved there at once have, unless the next event
    /// is another of them.
    fn looks_unless(&mut self, next: What) {
        let event = match next {
            What::Event(index) => Some(&self.events[index].1),
            _ => None,
        };
        match event {
            Some(Event::PeltCfs { cpu, .. } | Event::PeltPressure { cpu, .. })
                if self.moved == Some(*cpu) => {}
            Some(
                Event::CfsQueue { .. }
                | Event::CfsLoad { .. }
                | Event::Entity { .. }
                | Event::TaskLoad { .. }
                | Event::GroupEntity { .. }
                | Event::GroupQueue { .. },
            ) => {}
            _ => self.looks(),
        }
    }

    /// Signals of a CPU have moved there, so the governor looks; here as well, if it has not just done so.
    fn looks(&mut self) {
        const JUST: Span = Span::from_us(60);
        let Some(cpu) = self.moved.take().filter(|_| !self.tells.governs) else { return };
        let k = &mut self.simulation.k;
        let last = self.shared.borrow().looked.get(&cpu).copied();
        if last.is_none_or(|last| k.m.now.since(last) > JUST) {
            let domain = k.m.cpu(cpu).domain;
            k.policy(domain).update_util(cpu, false);
        }
    }
}
