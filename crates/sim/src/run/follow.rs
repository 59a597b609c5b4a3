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
//! known, and that one such as `kworker/3:1` belongs to CPU 3: what is asked about them is marked ([`Asked::user`]).
//!
//! Leaves out: hotplug, what forked tasks are, quotas that run out (a group is never throttled here), pushing and
//! pulling of real-time and deadline tasks (done as there, not asked). Not read yet: events from which a kernel
//! decides (`Waking`, `Prio`, `Entity`, …), so a wakeup counts as a timer's on the CPU on which the task slept.

mod listens;
mod signals;
mod timeline;

use crate::Counterfactual;
use crate::kernel::fork::new_task;
use crate::kernel::placement::Waker;
use crate::run::engine::Simulation;
use crate::run::mutant::Mutant;
use crate::run::setup;
use crate::state::class::Sched;
use crate::state::cpuset::CpuSet;
use crate::state::hooks::{Answer, Chain, Hooks, Point};
use crate::state::machine::{Machine, Role, State, Todo};
use crate::time::queue::Ev;
use risetime_kernel::eevdf::DequeueKind;

use risetime_kernel::units::{CpuId, Instant, KHz, Span, TaskId};

use listens::{Listens, Shared};
use risetime_model::Experiment;
use risetime_model::workload::Policy;
use risetime_trace::{Event, Header, Memory, RunError, SwitchOut, TraceSink, Why};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use timeline::{Names, causes_first, next_wakeups};

/// What the reference does not say by events.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// From time 0 to the first tick.
    pub first_tick: Span,
    /// When each frequency change was wanted, by the domain's first CPU: then and from then on the governor there
    /// counted with it. Ascending.
    pub wanted: Vec<(Instant, CpuId, KHz)>,
}

/// A decision that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When.
    pub at: Instant,
    /// What. Tasks have the reference's numbers.
    pub point: Point,
    /// The answer here.
    pub own: Answer,
    /// The reference's, where it was known when asked.
    pub given: Option<Answer>,
    /// What a simple mind would answer: the previous CPU, whoever waits longest.
    pub trivial: Option<Answer>,
    /// Among how many it was chosen: CPUs allowed, tasks runnable. 0: not counted.
    pub of: usize,
    /// It is about a task of the workload.
    pub user: bool,
}

/// A value of the state, before the reference's was taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Which.
    pub what: &'static str,
    /// Here.
    pub own: i64,
    /// In the reference.
    pub given: i64,
}

/// How often the reference did what this machine's state had no room for; it was put right each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Somebody woke who was awake here.
    pub wakeups: u64,
    /// Another task left a CPU than had it here.
    pub switches: u64,
    /// Another class than the picked task's had one to run.
    pub picks: u64,
}

/// What following came to.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    /// All decisions, in their order.
    pub asked: Vec<Asked>,
    /// All values of the state.
    pub compared: Vec<Compared>,
    /// Where the two were not in step.
    pub lost: Lost,
}

/// From a look to the request that it leads to, at most.
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
    let shared = Rc::new(RefCell::new(Shared::default()));
    for (at, event) in reference.events() {
        if let Event::Idle { cpu, state: Some(state) } = *event {
            let of_cpu = &mut shared.borrow_mut().idles;
            of_cpu.entry(cpu).or_default().all.push((*at, state as usize));
        }
    }
    let m = &mut simulation.k.m;
    m.free_idle_exit = true;
    if let Some(mutant) = mutant {
        mutant.prepare(m);
    }
    let broken = mutant.map(|mutant| Box::new(mutant) as Box<dyn Hooks>);
    let listens: Box<dyn Hooks> = Box::new(Listens(Rc::clone(&shared)));
    m.hooks = Some(Box::new(Chain(broken.into_iter().chain([listens]).collect())));
    m.set_tick_offset(Span(beside.first_tick.0 % m.tick.0));
    let mut names = Names::default();
    reference.replay(&mut names);
    let domains = simulation.k.m.domains.len();
    let mut f = Follower {
        next_wakeups: next_wakeups(reference),
        simulation,
        shared,
        names: names.0,
        here: BTreeMap::new(),
        experiment,
        wanted: vec![None; domains],
        moved: None,
        followed: Followed::default(),
    };
    f.simulation.start();
    f.settle();
    let mut wanted = beside.wanted.iter().peekable();
    for (at, index) in causes_first(reference.events()) {
        let event = &reference.events()[index].1;
        let at = &at;
        // The look that leads to a request comes first, and is asked here without knowing of it.
        let known = |when: Instant| when + LOOK_LASTS;
        while let Some((when, cpu, freq)) = wanted.next_if(|(when, ..)| known(*when) <= *at) {
            f.advance(known(*when));
            f.wants(*cpu, *freq, *when);
        }
        f.looks_unless(event);
        f.advance(*at);
        f.apply(index, event);
        f.settle();
    }
    f.looks();
    f.advance(reference.end());
    let mut followed = f.followed;
    followed.asked = std::mem::take(&mut f.shared.borrow_mut().asked);
    Ok(followed)
}

/// Nobody wants the simulation's own trace.
struct Deaf;

impl TraceSink for Deaf {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, _: Instant, _: &Event<'_>) {}
    fn end(&mut self, _: Instant) {}
    fn listens(&self) -> bool {
        false
    }
}

// ---------------------------------------------------------------------- who follows

struct Follower<'a, 'e> {
    simulation: Simulation<'a>,
    shared: Rc<RefCell<Shared>>,
    names: BTreeMap<TaskId, String>,
    /// By the number there, the task here.
    here: BTreeMap<TaskId, TaskId>,
    experiment: &'e Experiment,
    next_wakeups: BTreeMap<usize, Instant>,
    /// By domain, what the governor there asked for last, and when.
    wanted: Vec<Option<(Instant, KHz)>>,
    /// Whose signals have just moved there.
    moved: Option<CpuId>,
    followed: Followed,
}

impl Follower<'_, '_> {
    /// This machine's own ticks and timers up to `until`. What tasks do, and when they wake, is the
    /// reference's to say.
    fn advance(&mut self, until: Instant) {
        self.shared.borrow_mut().own_time = true;
        while let Some((at, ev)) = self.simulation.k.q.pop_until(until) {
            self.simulation.k.m.now = at;
            if let Ev::Tick { cpu, generation } = ev {
                self.ticks(cpu, generation);
            }
            match ev {
                Ev::Tick { cpu, generation } if self.simulation.k.m.cpu(cpu).curr.is_none() => {
                    self.idle_tick(cpu, generation);
                }
                Ev::Tick { .. }
                | Ev::ClassTimer { .. }
                | Ev::GovernorTimer { .. }
                | Ev::NohzBalance { .. }
                | Ev::CfsPeriod { .. }
                | Ev::CfsSlack { .. }
                | Ev::Irq { .. }
                | Ev::Pressure { .. } => self.simulation.dispatch(ev),
                _ => {}
            }
            if let Ev::Tick { cpu, .. } = ev {
                self.picks_anew(cpu);
            }
            self.settle();
        }
        self.simulation.k.m.now = until;
        self.shared.borrow_mut().own_time = false;
    }

    /// A tick: does the turn of whoever runs end? No, unless the hook hears otherwise.
    fn ticks(&mut self, cpu: CpuId, generation: u32) {
        let m = &self.simulation.k.m;
        let Some(curr) = m.cpu(cpu).curr.filter(|t| m.is_fair(*t)) else { return };
        if m.cpu(cpu).tick_gen == generation {
            let of = m.fair_queued(cpu).filter(|(t, _)| m.task(*t).state == State::Runnable);
            let of = of.count();
            let mut s = self.shared.borrow_mut();
            let (there, user) = s.there(curr);
            let point = Point::TickPreempt { cpu, curr: there };
            let asked = s.note(m.now, point, Answer::Yes(false));
            (asked.of, asked.user) = (of, user);
        }
    }

    /// The tick of an idle CPU. That it leaves its idle state for it is the reference's to say.
    fn idle_tick(&mut self, cpu: CpuId, generation: u32) {
        let k = &mut self.simulation.k;
        if k.m.cpu(cpu).tick_gen != generation {
            return;
        }
        k.q.push(k.m.now + k.m.tick, Ev::Tick { cpu, generation });
        let mut rq = k.rq(cpu);
        rq.update_rq_clock();
        rq.pressure_tick();
        rq.balance_on_own_tick();
    }

    /// A CPU leaves its idle state there: for its tick, or for something else.
    fn leaves_idle(&mut self, cpu: CpuId) {
        /// A tick has begun so long ago at most.
        const AT_TICK: u64 = 100_000;
        let k = &mut self.simulation.k;
        let c = k.m.cpu(cpu);
        if c.idle.is_none() {
            return;
        }
        let since_tick = (k.m.now.0 + k.m.tick.0 - k.m.tick_offset.0) % k.m.tick.0;
        let by_tick = !c.tick_stopped && since_tick < AT_TICK;
        let mut rq = k.rq(cpu);
        rq.c().waking = false;
        rq.end_idle(by_tick);
    }

    /// A turn that is over may be followed by the same task's next one, which nobody sees there.
    fn picks_anew(&mut self, cpu: CpuId) {
        let k = &mut self.simulation.k;
        let over = |a: &&mut Asked| {
            a.own == Answer::Yes(true)
                && matches!(a.point, Point::TickPreempt { cpu: c, .. } if c == cpu)
        };
        let now = k.m.now;
        let ends = |s: &mut Shared| {
            s.asked.iter_mut().rev().take_while(|a| a.at == now).find(over).is_some()
        };
        if ends(&mut self.shared.borrow_mut()) && k.rq(cpu).pick_next_task() == k.m.cpu(cpu).curr {
            let mut shared = self.shared.borrow_mut();
            let mut asked = shared.asked.iter_mut().rev().take_while(|a| a.at == now);
            if let Some(asked) = asked.find(over) {
                asked.own = Answer::Yes(false);
            }
        }
    }

    /// What this machine would do next of its own is forgotten.
    fn settle(&mut self) {
        let k = &mut self.simulation.k;
        k.m.need_resched = CpuSet::EMPTY;
        k.m.throttle_work = CpuSet::EMPTY;
        k.m.preempt.flagged = CpuSet::EMPTY;
        let asked = std::mem::take(&mut self.shared.borrow_mut().asked_governor);
        for cpu in asked {
            let domain = k.m.cpu(cpu).domain;
            if let Some((since, freq)) = self.wanted[domain] {
                k.policy(domain).resume(freq, since);
            }
        }
    }

    /// The governor of `cpu`'s policy there has asked for `freq`.
    fn wants(&mut self, cpu: CpuId, freq: KHz, when: Instant) {
        let k = &mut self.simulation.k;
        let domain = k.m.cpu(cpu).domain;
        self.wanted[domain] = Some((when, freq));
        k.policy(domain).resume(freq, when);
    }

    /// The task here; it joins the machine, asleep on `cpu`, where it was not seen before.
    fn task(&mut self, there: TaskId, cpu: CpuId) -> TaskId {
        if let Some(task) = self.here.get(&there) {
            return *task;
        }
        let name = self.names.get(&there).map_or("", String::as_str);
        let workload = self.experiment.workload.tasks.len();
        let m = &mut self.simulation.k.m;
        let known = |m: &Machine| {
            let named = |t: &&crate::state::machine::Task| {
                &*t.comm == name && !matches!(t.role, Role::User)
            };
            m.tasks.iter().position(|t| named(&t)).map(|i| TaskId(i as u32))
        };
        let user = there.index() < workload;
        let task = if user {
            there
        } else if let Some(kthread) = known(m) {
            m.task_mut(kthread).state = State::Sleeping;
            kthread
        } else {
            let (task, mut t) = new_task(m, name.into(), Role::Creator);
            if let Some(own) = own_cpu(name) {
                t.set_allowed(&m.cpus, [own].into_iter().collect());
            }
            if name.starts_with("migration/") {
                t.sched = Sched { policy: Policy::Fifo { priority: 99 }, ..Sched::new() };
            }
            (t.cpu, t.state) = (cpu, State::Sleeping);
            m.tasks.push(t);
            task
        };
        self.here.insert(there, task);
        self.shared.borrow_mut().there.insert(task, (there, user));
        task
    }

    fn apply(&mut self, index: usize, event: &Event<'_>) {
        match *event {
            Event::TaskNew { task, user, cpu, .. } => {
                let own = self.task(task, cpu);
                if user && task.index() < self.experiment.workload.tasks.len() {
                    self.created(own, cpu);
                }
            }
            Event::Wakeup { task, cpu, .. } => self.woken(task, cpu),
            Event::Migrate { task, to, from, .. } => self.moved(task, from, to),
            Event::Switch { cpu, prev, next } => self.switched(index, cpu, prev, next),
            Event::Phase { task, index, .. } => {
                let phases = self.experiment.workload.tasks.get(task.index()).map(|t| &t.phases);
                if let Some(phase) = phases.and_then(|p| p.get(index as usize)) {
                    let (own, k) = (self.task(task, CpuId(0)), &mut self.simulation.k);
                    let cpu = k.m.task(own).cpu;
                    k.rq(cpu).set_attr(own, &phase.attr);
                }
            }
            Event::Freq { cpu, freq } => {
                let k = &mut self.simulation.k;
                let domain = k.m.cpu(cpu).domain;
                k.policy(domain).impose_freq(freq);
                let since = self.wanted[domain].map_or(k.m.now, |(since, _)| since);
                self.wanted[domain] = Some((since, freq));
                k.policy(domain).resume(freq, since);
            }
            Event::Idle { cpu, state: Some(_) } => self.idles(cpu),
            Event::Idle { cpu, state: None } => self.leaves_idle(cpu),
            Event::Overutilized { on } => self.simulation.k.rq(CpuId(0)).set_overutilized(on),
            _ => self.signal(event),
        }
    }

    fn created(&mut self, task: TaskId, cpu: CpuId) {
        self.shared.borrow_mut().cpu = Some(cpu);
        self.simulation.k.create(task);
        self.is_on(task, cpu);
    }

    fn woken(&mut self, there: TaskId, cpu: CpuId) {
        let task = self.task(there, cpu);
        let k = &mut self.simulation.k;
        let prev = k.m.task(task).cpu;
        k.m.cpu_mut(prev).timers.remove(task);
        if k.m.task(task).state != State::Sleeping {
            self.followed.lost.wakeups += 1;
            return;
        }
        if prev != cpu && k.m.fair_entity(prev, task).is_some() {
            // There its delayed dequeue has been completed, or it would wake where it is.
            k.rq(prev).update_rq_clock();
            k.rq(prev).dequeue_task_fair(task, DequeueKind::SleepSpecial);
        }
        self.wakes_on(task, prev, cpu);
    }

    /// A timer on `by` wakes `task`, which goes to `cpu` whatever is decided here.
    fn wakes_on(&mut self, task: TaskId, by: CpuId, cpu: CpuId) {
        self.shared.borrow_mut().cpu = Some(cpu);
        self.simulation.k.wake_up(task, Waker::timer(by));
        self.is_on(task, cpu);
    }

    /// A task that has been queued is on `cpu`, and nobody else is placed.
    fn is_on(&mut self, task: TaskId, cpu: CpuId) {
        self.shared.borrow_mut().cpu = None;
        let k = &mut self.simulation.k;
        let on = k.m.task(task).cpu;
        if on != cpu {
            k.move_queued(task, on, cpu, Why::Given);
        }
    }

    fn moved(&mut self, there: TaskId, from: CpuId, to: CpuId) {
        let task = self.task(there, from);
        let k = &mut self.simulation.k;
        let (state, on) = (k.m.task(task).state, k.m.task(task).cpu);
        if state == State::Runnable && on != to {
            k.move_queued(task, on, to, Why::Given);
        }
    }

    fn switched(
        &mut self,
        index: usize,
        cpu: CpuId,
        prev: Option<(TaskId, SwitchOut)>,
        next: Option<TaskId>,
    ) {
        let prev = prev.map(|(task, out)| (self.task(task, cpu), out));
        let next = next.map(|task| self.task(task, cpu));
        if let Some(next) = next {
            self.is_queued(next, cpu);
        }
        let k = &mut self.simulation.k;
        if k.m.cpu(cpu).curr != prev.map(|(task, _)| task) {
            self.followed.lost.switches += 1;
        }
        if k.m.cpu(cpu).idle.is_some() {
            k.rq(cpu).leave_idle();
        }
        if let Some((task, out)) = prev
            && out != SwitchOut::Preempted
            && k.m.task(task).state == State::Runnable
            && k.m.task(task).cpu == cpu
        {
            let (state, kind) = match out {
                SwitchOut::Exited => (State::Exited, DequeueKind::SleepSpecial),
                _ => (State::Sleeping, DequeueKind::Sleep),
            };
            if let Some(wakes) = self.next_wakeups.get(&index) {
                k.m.cpu_mut(cpu).timers.insert((*wakes, task));
            }
            k.rq(cpu).leave_queue(task, state, kind);
        }
        let longest = k.m.fair_queued(cpu).map(|(task, _)| task);
        let longest = longest
            .filter(|t| Some(*t) != k.m.cpu(cpu).curr && k.m.task(*t).state == State::Runnable)
            .min_by_key(|t| k.m.task(*t).listed);
        {
            let mut shared = self.shared.borrow_mut();
            (shared.pick, shared.longest) = (Some(next), longest);
        }
        k.rq(cpu).schedule();
        self.shared.borrow_mut().pick = None;
        if k.m.cpu(cpu).curr != next {
            self.followed.lost.picks += 1;
        }
        if let Some(next) = next {
            k.m.task_mut(next).todo = Todo::Time(Span(u64::MAX >> 1));
            k.rq(cpu).enters_group(next);
            k.rq(cpu).take_policy(next);
        }
    }

    /// Whoever gets the CPU there can get it here.
    fn is_queued(&mut self, task: TaskId, cpu: CpuId) {
        let k = &mut self.simulation.k;
        match k.m.task(task).state {
            State::Runnable if k.m.task(task).cpu == cpu => {}
            State::Runnable => {
                self.followed.lost.wakeups += 1;
                let on = k.m.task(task).cpu;
                k.move_queued(task, on, cpu, Why::Given);
            }
            State::New => {}
            State::Sleeping | State::Exited => {
                self.followed.lost.wakeups += 1;
                k.m.task_mut(task).state = State::Sleeping;
                self.shared.borrow_mut().unasked = true;
                self.wakes_on(task, cpu, cpu);
                self.shared.borrow_mut().unasked = false;
            }
        }
    }

    /// A CPU enters an idle state there: the first of a sleep has been asked for already.
    fn idles(&mut self, cpu: CpuId) {
        let k = &mut self.simulation.k;
        let asked = |s: &Shared| s.idles.get(&cpu).is_none_or(|i| i.has_passed(k.m.now));
        if k.m.cpu(cpu).curr.is_some() || asked(&self.shared.borrow()) {
            return;
        }
        k.rq(cpu).leave_idle();
        k.rq(cpu).enter_idle();
    }

    /// All signals that moved there at once have, unless this one is another of them.
    fn looks_unless(&mut self, next: &Event<'_>) {
        match *next {
            Event::PeltCfs { cpu, .. } | Event::PeltPressure { cpu, .. }
                if self.moved == Some(cpu) => {}
            _ => self.looks(),
        }
    }

    /// Signals of a CPU have moved there, so the governor looks; here as well, if it has not just done so.
    fn looks(&mut self) {
        const JUST: Span = Span::from_us(60);
        let Some(cpu) = self.moved.take() else { return };
        let k = &mut self.simulation.k;
        let last = self.shared.borrow().looked.get(&cpu).copied();
        if last.is_none_or(|last| k.m.now.since(last) > JUST) {
            let domain = k.m.cpu(cpu).domain;
            k.policy(domain).update_util(cpu, false);
        }
    }
}

/// The CPU of a thread that each CPU has one of: `kworker/3:1H`, `ksoftirqd/3`, `migration/3`.
fn own_cpu(name: &str) -> Option<CpuId> {
    let (kind, rest) = name.split_once('/')?;
    if kind == "kworker" && rest.starts_with('u') {
        return None;
    }
    let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
    number.parse().ok().map(CpuId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_of_each_cpu_is_told_by_its_name() {
        assert_eq!(own_cpu("kworker/3:1H"), Some(CpuId(3)));
        assert_eq!(own_cpu("migration/12"), Some(CpuId(12)));
        assert_eq!(own_cpu("kworker/u8:2"), None);
        assert_eq!(own_cpu("sugov:0"), None);
    }
}
