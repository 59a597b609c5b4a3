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

use crate::Counterfactual;
use crate::kernel::fork::new_task;
use crate::kernel::placement::Waker;
use crate::run::engine::Simulation;
use crate::run::mutant::Mutant;
use crate::run::setup;
use crate::state::class::Sched;
use crate::state::cpuset::CpuSet;
use crate::state::hooks::{Answer, Chain, Hooks, Placed, Point, Step};
use crate::state::machine::{Machine, Role, State, Todo, UPTIME};
use crate::time::queue::Ev;
use risetime_kernel::eevdf::DequeueKind;
use risetime_kernel::pelt::{Decay, SchedAvg, get_pelt_divider};
use risetime_kernel::units::{ClockPelt, CpuId, Instant, KHz, Span, TaskId};
use risetime_kernel::util_est::UtilEst;
use risetime_model::Experiment;
use risetime_model::workload::Policy;
use risetime_trace::{Event, Header, Memory, RunError, SwitchOut, TraceSink, Why};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

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

/// What the reference's tasks are called.
#[derive(Default)]
struct Names(BTreeMap<TaskId, String>);

impl TraceSink for Names {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, _: Instant, event: &Event<'_>) {
        if let Event::TaskNew { task, comm, .. } = event {
            self.0.insert(*task, (*comm).to_string());
        }
    }
    fn end(&mut self, _: Instant) {}
}

/// The events in an order in which what leads to a change of signals comes before it, each with the time at which
/// it comes: a task is queued, or leaves, before its runqueue's signals tell of that; the trace's event comes after.
fn causes_first(events: &[(Instant, Event<'static>)]) -> Vec<(Instant, usize)> {
    /// A wakeup, or a reschedule, takes less than that.
    const LASTS: Span = Span::from_us(60);
    let mut order: Vec<(usize, bool, usize)> = Vec::with_capacity(events.len());
    for (i, (at, event)) in events.iter().enumerate() {
        let (cpu, tasks) = match *event {
            Event::TaskNew { task, cpu, .. } | Event::Wakeup { task, cpu, .. } => {
                (cpu, [Some(task), None])
            }
            Event::Switch { cpu, prev, next } => (cpu, [prev.map(|(task, _)| task), next]),
            _ => {
                order.push((i, true, i));
                continue;
            }
        };
        let before = events[..i].iter().enumerate().rev();
        let mut first = i;
        for (j, (_, earlier)) in before.take_while(|(_, (when, _))| at.since(*when) < LASTS) {
            let part = match *earlier {
                Event::PeltTask { task, .. } | Event::UtilEst { task, .. } => {
                    tasks.contains(&Some(task))
                }
                Event::PeltCfs { cpu: c, .. } | Event::PeltPressure { cpu: c, .. } => c == cpu,
                Event::TaskNew { cpu: c, .. }
                | Event::Wakeup { cpu: c, .. }
                | Event::Switch { cpu: c, .. }
                    if c == cpu =>
                {
                    break;
                }
                _ => false,
            };
            if part {
                first = j;
            }
        }
        order.push((first, false, i));
    }
    order.sort();
    order.into_iter().map(|(place, _, i)| (events[place].0, i)).collect()
}

/// Of each event of the trace at which a task goes to sleep, by its index: when that task wakes.
fn next_wakeups(reference: &Memory) -> BTreeMap<usize, Instant> {
    let mut found = BTreeMap::new();
    let mut next: BTreeMap<TaskId, Instant> = BTreeMap::new();
    for (index, (at, event)) in reference.events().iter().enumerate().rev() {
        match *event {
            Event::Wakeup { task, .. } => {
                next.insert(task, *at);
            }
            Event::Switch { prev: Some((task, SwitchOut::Sleeping)), .. } => {
                if let Some(wakes) = next.get(&task) {
                    found.insert(index, *wakes);
                }
            }
            _ => {}
        }
    }
    found
}

// ---------------------------------------------------------------------- who is asked

/// Between the follower and its hooks.
#[derive(Default)]
struct Shared {
    asked: Vec<Asked>,
    /// By the task here, its number there, and whether it is the workload's.
    there: BTreeMap<TaskId, (TaskId, bool)>,
    /// Where the task goes that is being woken or created.
    cpu: Option<CpuId>,
    /// That is to put right what was lost: nobody decided it.
    unasked: bool,
    /// Who is next on the CPU that reschedules.
    pick: Option<Option<TaskId>>,
    /// Who waits there longest.
    longest: Option<TaskId>,
    /// A governor has been asked, and thinks that it got what it wanted.
    asked_governor: Vec<CpuId>,
    /// By CPU.
    idles: BTreeMap<CpuId, Idles>,
    /// What happens is this machine's own: a tick, a timer.
    own_time: bool,
    /// By CPU, when its policy's governor was asked last because of it.
    looked: BTreeMap<CpuId, Instant>,
}

/// The idle states that a CPU enters there, in order.
#[derive(Default)]
struct Idles {
    all: Vec<(Instant, usize)>,
    next: usize,
}

impl Idles {
    /// The state of the sleep that begins about now.
    fn next(&mut self, now: Instant) -> Option<usize> {
        let from = self.all.partition_point(|(at, _)| *at < now).max(self.next);
        self.next = from + 1;
        self.all.get(from).map(|(_, state)| *state)
    }

    /// Whether that of the sleep which begins there now has been told.
    fn has_passed(&self, now: Instant) -> bool {
        self.next
            .checked_sub(1)
            .and_then(|last| self.all.get(last))
            .is_some_and(|(at, _)| *at >= now)
    }
}

/// The state that costs nothing to leave.
const IDLE_AT_ONCE: Answer = Answer::Idle { state: 0, stop_tick: false };

struct Listens(Rc<RefCell<Shared>>);

impl Shared {
    fn there(&self, task: TaskId) -> (TaskId, bool) {
        self.there.get(&task).copied().unwrap_or((task, false))
    }

    fn note(&mut self, at: Instant, point: Point, own: Answer) -> &mut Asked {
        self.asked.push(Asked { at, point, own, given: None, trivial: None, of: 0, user: false });
        let last = self.asked.len() - 1;
        &mut self.asked[last]
    }

    fn of_task(&self, own: Answer) -> (Answer, bool) {
        match own {
            Answer::Task(Some(task)) => {
                let (task, user) = self.there(task);
                (Answer::Task(Some(task)), user)
            }
            other => (other, false),
        }
    }
}

/// Where the task goes there.
fn at(cpu: CpuId) -> Answer {
    Answer::Cpu(Placed { cpu, why: Why::Given })
}

impl Hooks for Listens {
    /// Governors look where those of the reference do.
    fn instead(&self, _: &Machine, point: Point) -> Option<Answer> {
        let own = self.0.borrow().own_time;
        (own && matches!(point, Point::Frequency { .. })).then_some(Answer::Freq(None))
    }
    fn decided(&self, m: &Machine, point: Point, own: Answer) -> Answer {
        let mut s = self.0.borrow_mut();
        let now = m.time();
        match point {
            Point::Wakeup { task, waker } => {
                let Some(cpu) = s.cpu else { return own };
                if s.unasked {
                    return at(cpu);
                }
                let (there, user) = s.there(task);
                let (prev, of) = (m.task_cpu(task), m.task(task).allowed.and(&m.root.online).len());
                let point = Point::Wakeup { task: there, waker };
                let asked = s.note(now, point, own);
                (asked.given, asked.trivial) = (Some(at(cpu)), Some(at(prev)));
                (asked.of, asked.user) = (of, user);
                at(cpu)
            }
            Point::Fork { task } => {
                let Some(cpu) = s.cpu else { return own };
                let (there, user) = s.there(task);
                let (parent, of) =
                    (m.task_cpu(task), m.task(task).allowed.and(&m.root.online).len());
                let asked = s.note(now, Point::Fork { task: there }, own);
                (asked.given, asked.trivial) = (Some(at(cpu)), Some(at(parent)));
                (asked.of, asked.user) = (of, user);
                at(cpu)
            }
            Point::Pick { cpu } => {
                let Some(pick) = s.pick else { return own };
                if pick.is_some_and(|task| !m.is_fair(task)) {
                    return own;
                }
                let of = m.fair_queued(cpu).filter(|(t, _)| m.task(*t).state == State::Runnable);
                let of = of.count();
                let given = s.of_task(Answer::Task(pick)).0;
                let trivial = s.of_task(Answer::Task(s.longest)).0;
                let (own, user) = s.of_task(own);
                let asked = s.note(now, point, own);
                (asked.given, asked.trivial) = (Some(given), Some(trivial));
                (asked.of, asked.user) = (of, user);
                Answer::Task(pick)
            }
            Point::WakeupPreempt { cpu, curr, woken } => {
                let of = usize::from(m.is_fair(curr) && m.is_fair(woken)) * 2;
                let ((curr, _), (woken, user)) = (s.there(curr), s.there(woken));
                let asked = s.note(now, Point::WakeupPreempt { cpu, curr, woken }, own);
                (asked.trivial, asked.of, asked.user) = (Some(Answer::Yes(true)), of, user);
                Answer::Yes(false)
            }
            Point::TickPreempt { cpu, .. } => {
                // It is noted for each tick; what is found over between two of them is not.
                let last = s.asked.iter_mut().rev().take_while(|a| a.at == now);
                let mut own = last
                    .filter(|a| matches!(a.point, Point::TickPreempt { cpu: c, .. } if c == cpu));
                if let Some(asked) = own.next() {
                    asked.own = Answer::Yes(true);
                }
                Answer::Yes(false)
            }
            Point::Frequency { cpu } => {
                s.note(now, point, own);
                s.asked_governor.push(cpu);
                s.looked.insert(cpu, now);
                Answer::Freq(None)
            }
            Point::Idle { cpu } => {
                let states = &m.domain_of(cpu).idle;
                let given = s.idles.get_mut(&cpu).and_then(|idles| idles.next(now));
                let asked = s.note(now, point, own);
                (asked.of, asked.trivial) = (states.len(), Some(IDLE_AT_ONCE));
                let (Some(state), Answer::Idle { state: here, stop_tick }) = (given, own) else {
                    return own;
                };
                // Whether the tick stops is not told: as here, unless that belongs to another state.
                let longer = states.get(state).is_some_and(|s| s.target_residency >= m.tick);
                let stop_tick = if state == here { stop_tick } else { longer };
                asked.given = Some(Answer::Idle { state, stop_tick });
                Answer::Idle { state, stop_tick }
            }
            Point::Pull { task, from, to } => {
                let (task, user) = s.there(task);
                let asked = s.note(now, Point::Pull { task, from, to }, own);
                asked.user = user;
                Answer::Yes(false)
            }
            Point::Step(Step::PushOrPull | Step::StopperTakesTime | Step::ThrottleCfsRq) => {
                Answer::Yes(false)
            }
            _ => own,
        }
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

    // ------------------------------------------------------------------ the state

    fn compare(&mut self, what: &'static str, own: u64, given: u64) {
        self.followed.compared.push(Compared { what, own: own as i64, given: given as i64 });
    }

    /// A signal there: what it is here is noted, and then it is as there.
    fn signal(&mut self, event: &Event<'_>) {
        /// Updates that are so far apart in time are not the same one.
        const SAME: u64 = 30_000;
        let clock = |at: ClockPelt| ClockPelt(at.0.wrapping_add(UPTIME.0));
        match *event {
            Event::PeltTask {
                task,
                cpu,
                util_avg,
                runnable_avg,
                util_sum,
                period_contrib,
                last_update_time,
            } => {
                let (task, at) = (self.task(task, cpu), clock(last_update_time));
                let m = &mut self.simulation.k.m;
                let (decay, t) = (m.decay, m.task_mut(task));
                let own = (t.avg.util_avg.0, t.avg.runnable_avg.0);
                let same = t.avg.last_update_time.0.abs_diff(at.0) < SAME;
                t.avg.util_avg = util_avg;
                t.avg.runnable_avg = runnable_avg;
                t.avg.util_sum = util_sum as u32;
                t.avg.period_contrib = period_contrib;
                t.avg.runnable_sum = runnable_sum(decay, &t.avg);
                if t.avg.last_update_time.0 != 0 {
                    t.avg.last_update_time = at;
                }
                if same {
                    self.compare("task util_avg", own.0, util_avg.0);
                    self.compare("task runnable_avg", own.1, runnable_avg.0);
                }
            }
            Event::PeltCfs {
                cpu,
                util_avg,
                runnable_avg,
                util_est,
                util_sum,
                period_contrib,
                last_update_time,
            } => {
                let at = clock(last_update_time);
                let m = &mut self.simulation.k.m;
                let (decay, c) = (m.decay, m.cpu_mut(cpu));
                let avg = &mut c.cfs_avg.avg;
                let own = (avg.util_avg.0, avg.runnable_avg.0, c.util_est.0);
                let same = avg.last_update_time.0.abs_diff(at.0) < SAME;
                avg.util_avg = util_avg;
                avg.runnable_avg = runnable_avg;
                avg.util_sum = util_sum as u32;
                avg.period_contrib = period_contrib;
                avg.runnable_sum = runnable_sum(decay, avg);
                avg.last_update_time = at;
                c.util_est = util_est;
                c.clock.clock_pelt = at.0.wrapping_add(c.clock.lost_idle_time);
                if same {
                    self.compare("cfs_rq util_avg", own.0, util_avg.0);
                    self.compare("cfs_rq runnable_avg", own.1, runnable_avg.0);
                    self.compare("cfs_rq util_est", own.2, util_est.0);
                }
                self.moved = Some(cpu);
            }
            Event::UtilEst { task, util_est } => {
                let task = self.task(task, CpuId(0));
                let t = self.simulation.k.m.task_mut(task);
                let own = t.util_est.value().0;
                t.util_est = UtilEst(util_est.0 as u32);
                self.compare("task util_est", own, util_est.0);
            }
            Event::PeltPressure {
                cpu,
                class,
                util_avg,
                util_sum,
                period_contrib,
                last_update_time,
            } => {
                let at = clock(last_update_time);
                let c = self.simulation.k.m.cpu_mut(cpu);
                let avg = match class {
                    "rt" => &mut c.rt_avg,
                    "dl" => &mut c.dl_avg,
                    _ => return,
                };
                let own = avg.util_avg;
                let same = avg.last_update_time.0.abs_diff(at.0) < SAME;
                // An idle CPU's are aged by who balances for it, and then the governor looks.
                let aged = c.curr.is_none();
                (avg.util_avg, avg.util_sum) = (util_avg, util_sum as u32);
                (avg.period_contrib, avg.last_update_time) = (period_contrib, at);
                let what = if class == "rt" { "rt util_avg" } else { "dl util_avg" };
                if same {
                    self.compare(what, own.0, util_avg.0);
                }
                if aged {
                    self.moved = Some(cpu);
                }
            }
            Event::CpuCapacity { cpu, capacity } => {
                let c = self.simulation.k.m.cpu_mut(cpu);
                let own = std::mem::replace(&mut c.cpu_capacity, capacity);
                self.compare("cpu_capacity", own.0, capacity.0);
            }
            _ => {}
        }
    }
}

/// What the sum is that the reference does not tell: in the middle of what gives its average.
fn runnable_sum(decay: &Decay, avg: &SchedAvg) -> u64 {
    avg.runnable_avg.0 * u64::from(get_pelt_divider(decay, avg))
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
