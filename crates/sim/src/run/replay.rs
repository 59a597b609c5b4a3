//! Orders of `verify` to a simulation: a start state read off another trace, and, in the mode
//! *given*, that trace's frequencies, placements and turns.
//!
//! ```text
//! Image   once, at the start of the burst (or at the first task's creation): util and phase of
//!         the task, util of every CPU, frequencies, what the governors know, tick phase
//! Given   at the recorded moments after that: frequency changes and moves of running tasks;
//!         at each wakeup: the recorded CPU; when each task is awake, and for how long it runs.
//!         Governors, placement and balancing then only look
//! costs   in both modes: the thread that creates the tasks, and the sugov kthread's time
//! ```
//!
//! Nothing is copied after the start in the mode *free*. A replay drives the simulation from above: by hooks
//! (`GivenHooks`), as the kernel's driver (`Start`), in place of programs (`GivenTurns`), by changes queued for their
//! time (`Steers::change`), and by the thread that creates tasks (`run/creator.rs`).

pub use crate::kernel::Kthread;

use crate::kernel::bandwidth::period_ends;
use crate::kernel::governor::Resumed;
use crate::kernel::rq::{Parts, Rq};
use crate::kernel::syscalls::Current;
use crate::kernel::{Driver, Kernel};
use crate::run::creator::Creating;
use crate::run::engine::Simulation;
use crate::state::hooks::{Answer, Hooks, Placed, Point, Step};
use crate::state::machine::{Machine, State, Task, Todo};
use crate::time::queue::Ev;
use crate::user::Turns;
use risetime_kernel::pelt::{Decay, SchedAvg, get_pelt_divider, update_load_avg_cfs_rq};
use risetime_kernel::units::{ClockPelt, CpuId, GroupId, Instant, KHz, Span, TaskId, Util, Weight};
use risetime_kernel::util_est::UtilEst;
use risetime_model::workload::Hotplug;
use risetime_trace::{BalanceMemory, IdleMemory, RqMemory, Why};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// A state to start from. `None`: not known, so the simulation's own stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// The first task.
    pub task: TaskImage,
    /// CPUs by number; missing ones keep their own state.
    pub cpus: Vec<CpuImage>,
    /// Frequency domains by their first CPU.
    pub domains: Vec<DomainImage>,
    /// The root domain's flag.
    pub overutilized: Option<bool>,
    /// Time from the start to the next tick.
    pub first_tick: Option<Span>,
    /// Time, by task, that it runs after its creation before its first phase begins (whoever made
    /// the other trace had to create a thread). Missing: no time.
    pub begins: Vec<Span>,
    /// Time, by task, that the idle CPU that it was created on took to look for the next task.
    /// Missing: no time.
    pub waits: Vec<Span>,
    /// Time after the start, by task, at which its first phase began there, which is where its
    /// timers start to count.
    pub timers_from: Vec<Span>,
    /// Memory of the idle governors.
    pub idle: Vec<IdleMemory>,
    /// Times at which the CPUs balance next, with how many ticks there are from the start to the
    /// look that told of it.
    pub balance: Vec<(BalanceMemory, u64)>,
    /// Times at which the next period of each group with a quota ends, from the start.
    pub periods: Vec<(GroupId, Span)>,
    /// Times at which CPUs go offline and come back, in place of the workload's own times: how long
    /// a kernel takes to do it is nothing that is simulated.
    pub hotplug: Vec<Hotplug>,
    /// The thread that created the tasks, if they are created from the start on.
    pub creator: Option<Creator>,
}

/// The thread that created the other trace's tasks. It takes CPU time from them there, and parts
/// one from its slice; here it only does that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creator {
    /// CPU on which the creator stays.
    pub cpu: CpuId,
    /// `sched_attr::sched_runtime` of the creator.
    pub slice: Span,
    /// Time before the start at which it began to run, which is where its turns count from.
    pub before: Span,
    /// Turns of the creator, in order. A turn also ends where a task is created.
    pub turns: Vec<Turn>,
}

/// A turn of a task, from a wakeup to the next sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Time at which it wakes, if it sleeps until then; counted from the start, the creator's from
    /// where it began to run.
    pub wakes: Span,
    /// Time for which it has the CPU.
    pub runs: Span,
    /// The task that it creates at its end, and the CPU on which it then is.
    pub creates: Option<(TaskId, CpuId)>,
}

/// A task's signals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskImage {
    /// `se->avg.util_avg`.
    pub util_avg: Option<Util>,
    /// `se->avg.runnable_avg`.
    pub runnable_avg: Option<Util>,
    /// `se->avg.period_contrib`, which its runqueue shares.
    pub period_contrib: Option<u32>,
    /// `util_sum` of its CPU's runqueue then: `util_avg` says it to a unit, and a frequency may hang
    /// on less.
    pub rq_util_sum: Option<u32>,
    /// `se->avg.util_est`.
    pub util_est: Option<Util>,
}

/// A CPU's signals; `None`: not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuImage {
    /// The CPU.
    pub cpu: CpuId,
    /// `cfs_rq->avg`.
    pub cfs: Option<Signal>,
    /// `rq->avg_dl`.
    pub dl: Option<Signal>,
    /// Time by which PELT's clock is behind the task clock, on a CPU that has been busy.
    pub behind: Option<Span>,
}

/// A signal as it was last updated before the start. The CPU is idle since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// `util_avg`.
    pub util_avg: Util,
    /// `runnable_avg`.
    pub runnable_avg: Util,
    /// `util_sum`.
    pub util_sum: u32,
    /// `period_contrib`.
    pub period_contrib: u32,
    /// Time from `last_update_time` to the start.
    pub before: Span,
}

impl Signal {
    /// The signal at `now`, which is the start in the clock it uses; load is not known.
    pub fn at(&self, decay: &Decay, now: ClockPelt) -> SchedAvg {
        let mut avg = SchedAvg {
            last_update_time: ClockPelt(now.0.wrapping_sub(self.before.0)),
            util_sum: self.util_sum,
            period_contrib: self.period_contrib,
            runnable_avg: self.runnable_avg,
            util_avg: self.util_avg,
            ..SchedAvg::default()
        };
        avg.runnable_sum = self.runnable_avg.0 * u64::from(get_pelt_divider(decay, &avg));
        update_load_avg_cfs_rq(decay, now, &mut avg, Weight(0), 0, false);
        avg
    }
}

/// A frequency domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainImage {
    /// First CPU of the domain.
    pub cpu: CpuId,
    /// Frequency of the domain, which is also what the governor last asked for.
    pub freq: KHz,
    /// Time before the start at which it was last changed.
    pub changed_before: Span,
    /// CPU where the domain's kthread sleeps: the one where it woke last.
    pub kthread_on: Option<CpuId>,
}

/// Events of the other trace after the start, by time from there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Frequency changes.
    pub freqs: Vec<GivenFreq>,
    /// Moves of running or queued tasks: when, which, where to.
    pub moves: Vec<(Span, TaskId, CpuId)>,
    /// Turns of each task in order, in place of its program: how long it has a CPU between two
    /// sleeps is nothing that the signals' arithmetic decides.
    pub turns: Vec<VecDeque<Turn>>,
    /// The CPUs of each task's wakeups, in order; its creation is the first of them where it is
    /// created after the start.
    pub wakeups: Vec<VecDeque<CpuId>>,
    /// Ticks at which a CPU went over to another task, in order: when, and how much later it did so.
    /// Until then the interrupt's work runs in the time of the task that is to go.
    pub held: BTreeMap<CpuId, VecDeque<(Span, Span)>>,
}

/// A frequency change of the other trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenFreq {
    /// Time at which the governor wanted it: at the tick or wakeup just before the kthread woke.
    pub wanted: Span,
    /// Time at which it was in force.
    pub at: Span,
    /// First CPU of the domain.
    pub cpu: CpuId,
    /// The new frequency.
    pub freq: KHz,
}

/// A given change, queued at its time.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// A domain's kthread wakes after so long to change the frequency, and has its CPU after so long.
    Kthread(usize, Span, Span),
    Freq(usize, KHz),
    Move(TaskId, CpuId),
}

/// Changes imposed on a simulation once it is set up, and later through its events.
pub(crate) struct Steers {
    changes: Vec<Change>,
    creating: Option<Rc<RefCell<Creating>>>,
}

/// Puts `simulation` under what `image` and `given` say; `delays`: how long after the start the workload creates each
/// task. The hooks that this takes.
pub(crate) fn impose(
    simulation: &mut Simulation<'_>,
    image: Option<Image>,
    given: Option<Given>,
    start: Instant,
    delays: Vec<Span>,
) -> Option<Box<dyn Hooks>> {
    let creator = image.as_ref().and_then(|image| image.creator.as_ref());
    let creating = creator.map(|c| Rc::new(RefCell::new(Creating::join(simulation, c, start))));
    let changes = given.as_ref().map_or(Vec::new(), |g| changes(&simulation.k, g));
    let given_turns = given.is_some();
    let (held, hooks) = match given {
        None => (BTreeMap::new(), None),
        Some(Given { moves, turns, wakeups, held, .. }) => {
            simulation.user.turns = Some(Box::new(GivenTurns(turns)));
            let hooks = GivenHooks { wakeups: RefCell::new(wakeups), moves };
            (held, Some(Box::new(hooks) as Box<dyn Hooks>))
        }
    };
    let (changes, times) = changes.into_iter().map(|(after, change)| (change, after)).unzip();
    if image.is_some() || given_turns {
        let creating = creating.clone();
        let driver = Start { image, times, held, delays, given_turns, creating };
        simulation.k.driver = Some(Box::new(driver));
    }
    simulation.steers = Some(Steers { changes, creating });
    hooks
}

/// Lists everything that is given, by time from the start.
fn changes(k: &Kernel<'_>, given: &Given) -> Vec<(Span, Change)> {
    let domain = |cpu: &CpuId| k.m.cpu(*cpu).domain;
    let freqs = given.freqs.iter().map(|f| (f.at, Change::Freq(domain(&f.cpu), f.freq)));
    let kthreads = k.kthread.iter().flat_map(|kthread| {
        let waits =
            |f: &GivenFreq| Span(f.at.0.saturating_sub(f.wanted.0 + kthread.until_change.0));
        given
            .freqs
            .iter()
            // Before what led to it reschedules.
            .map(move |f| {
                let wakes = Change::Kthread(domain(&f.cpu), kthread.wakes, waits(f));
                (Span(f.wanted.0.saturating_sub(1)), wakes)
            })
    });
    let moves = given.moves.iter().map(|(after, task, cpu)| (*after, Change::Move(*task, *cpu)));
    kthreads.chain(freqs).chain(moves).collect()
}

impl Steers {
    /// Carries out a given change that is due.
    pub(crate) fn change(&self, k: &mut Kernel<'_>, index: u32) {
        match self.changes.get(index as usize) {
            Some(&Change::Kthread(domain, wakes, waits)) => {
                let there = k.m.domains[domain].kthread.map(|kthread| k.m.task(kthread).cpu);
                let by = there.unwrap_or(k.m.domains[domain].related[0]);
                k.policy(domain).wake_sugov(by, wakes, waits);
            }
            Some(&Change::Freq(domain, freq)) => k.policy(domain).impose_freq(freq),
            Some(&Change::Move(task, to)) => {
                let from = k.m.task(task).cpu;
                if from != to && k.m.task(task).state == State::Runnable {
                    k.rq(from).leave_limbo(task);
                    k.move_queued(task, from, to, Why::Given);
                }
            }
            None => {}
        }
    }

    /// The thread that creates tasks is done with what it did.
    pub(crate) fn advance_creator(&self, k: &mut Kernel<'_>, cpu: CpuId, task: TaskId) {
        if let Some(creating) = &self.creating {
            Creating::advance(creating, k, cpu, task);
        }
    }
}

// ---------------------------------------------------------------------- decisions

/// The other trace's placements and frequencies stand; nobody here moves tasks by himself.
struct GivenHooks {
    wakeups: RefCell<Vec<VecDeque<CpuId>>>,
    moves: Vec<(Span, TaskId, CpuId)>,
}

impl GivenHooks {
    /// The recorded CPU of this task's next wakeup.
    fn wakeup(&self, m: &Machine, task: TaskId) -> Option<CpuId> {
        if !m.start.done {
            return None;
        }
        self.wakeups.borrow_mut().get_mut(task.index())?.pop_front()
    }

    /// The CPU on which the other trace has put this task, which is pushed off a CPU that goes, a
    /// moment later.
    fn push(&self, m: &Machine, task: TaskId) -> Option<CpuId> {
        /// The stopper gets to it within that time.
        const MOMENT: Span = Span::from_ms(1);
        if !m.start.begun {
            return None;
        }
        let soon = |after: Span| {
            let at = m.start.at + after;
            at >= m.now && at.since(m.now) <= MOMENT
        };
        let mut moves = self.moves.iter();
        let (.., to) = moves.find(|(after, moved, _)| *moved == task && soon(*after))?;
        m.root.online.contains(*to).then_some(*to)
    }
}

impl Hooks for GivenHooks {
    fn instead(&self, m: &Machine, point: Point) -> Option<Answer> {
        let there = |cpu: Option<CpuId>| Some(Answer::Cpu(Placed { cpu: cpu?, why: Why::Given }));
        match point {
            Point::Wakeup { task, .. } | Point::Fork { task } => there(self.wakeup(m, task)),
            Point::Push { task } => there(self.push(m, task)),
            Point::Balance { .. } | Point::Step(Step::PushOrPull) if m.start.begun => {
                Some(Answer::Yes(false))
            }
            _ => None,
        }
    }
    fn decided(&self, m: &Machine, point: Point, own: Answer) -> Answer {
        match point {
            Point::Frequency { .. } if m.start.begun => Answer::Freq(None),
            _ => own,
        }
    }
}

/// Turns of each task in the other trace.
struct GivenTurns(Vec<VecDeque<Turn>>);

impl Turns for GivenTurns {
    fn turn(&mut self, current: &mut Current<'_, '_>) -> bool {
        if !current.m().start.done {
            return false;
        }
        let (now, start) = (current.m().now, current.m().start.at);
        let Some(turns) = self.0.get_mut(current.task.index()) else { return false };
        match turns.front().map(|turn| (start + turn.wakes, turn.runs)) {
            Some((wakes, runs)) if wakes <= now => {
                turns.pop_front();
                current.works(Todo::Time(runs));
            }
            next => {
                let until = next.map_or(Instant(u64::MAX), |(wakes, _)| wakes);
                current.fall_asleep(Some(until));
            }
        }
        true
    }
}

// ---------------------------------------------------------------------- the start

/// Brings a machine to its start state, and what is given on its way.
struct Start {
    image: Option<Image>,
    /// Times of the given changes, from the start; their numbers are those of [`Steers`].
    times: Vec<Span>,
    held: BTreeMap<CpuId, VecDeque<(Span, Span)>>,
    delays: Vec<Span>,
    given_turns: bool,
    creating: Option<Rc<RefCell<Creating>>>,
}

impl Driver for Start {
    fn before_start(&mut self, k: &mut Kernel<'_>) {
        for (index, after) in self.times.iter().enumerate() {
            k.q.push(k.m.now + *after, Ev::Given { index: index as u32 });
        }
        if let Some(image) = &self.image {
            apply_machine_image(k, image);
        }
    }

    fn apply_start(&mut self, rq: &mut Rq<'_, '_>, task: TaskId) -> bool {
        let Some(image) = &self.image else { return false };
        // The others keep no signals of their own.
        if rq.m().is_fair(task) {
            apply_task_image(rq, task, &image.task);
        }
        true
    }

    /// A task whose creation is the start has its signals from the first moment.
    fn created_first(&mut self, t: &mut Task) {
        let Some(image) = self.image.as_ref().map(|image| &image.task) else { return };
        t.avg.util_avg = image.util_avg.unwrap_or(t.avg.util_avg);
        t.avg.runnable_avg = image.runnable_avg.unwrap_or(t.avg.util_avg);
    }

    /// A task that has just been created takes as long to begin as it did there.
    fn created(&mut self, now: Instant, task: TaskId, t: &mut Task) -> Span {
        /// Time from when the task has its policy to its program's beginning, in the virtual
        /// machine: 70 to 95 µs of CPU time, seen where a governor's thread came in between. So
        /// deadlines end before the periods of absolute timers do.
        const POLICY_TO_BEGIN: Span = Span::from_us(80);
        let Some(image) = &self.image else { return Span(0) };
        let (begins, from) = (image.begins.get(task.index()), image.timers_from.get(task.index()));
        // Where turns are given, the first one has that in it.
        if let (Some(begins), Some(from), false) = (begins, from, self.given_turns) {
            // Tasks are created at their delay after the first one's creation, the start.
            let delay = self.delays.get(task.index()).copied().unwrap_or_default();
            let start = now.0 - delay.0;
            if t.sched.takes.is_some() {
                t.begins_in = POLICY_TO_BEGIN.min(*begins);
            }
            t.todo = Todo::Time(Span(begins.0 - t.begins_in.0));
            t.timers_from = Some(Instant(start + from.0));
            return image.waits.get(task.index()).copied().unwrap_or_default();
        }
        Span(0)
    }

    fn creates(&mut self, rq: &mut Rq<'_, '_>, creator: TaskId) {
        if let Some(creating) = &self.creating {
            creating.borrow_mut().creates(rq, creator);
        }
    }

    /// Holds the CPU at a tick: if one of the other trace's ticks ended a turn on `cpu` at this
    /// time, it does not reschedule before it did there. Whether it does, and for which task, the
    /// CPU decides itself.
    fn tick(&mut self, m: &Machine, cpu: CpuId) -> Option<Instant> {
        let now = m.now;
        if !m.start.begun {
            return None;
        }
        let held = self.held.get_mut(&cpu)?;
        let (started, tick, mut until) = (m.start.at, m.tick, None);
        while let Some(&(after, late)) = held.front() {
            let at = started + after;
            if at.0 > now.0 + tick.0 / 2 {
                break;
            }
            held.pop_front();
            if at.0 + tick.0 / 2 > now.0 {
                until = until.max(Some(now + late));
            }
        }
        until
    }
}

/// Applies the machine's part of the image before the task that starts is queued, so that its
/// queueing makes the governor look as it did there.
fn apply_machine_image(k: &mut Kernel<'_>, image: &Image) {
    for c in &image.cpus {
        image_of_cpu(&mut k.rq(c.cpu), c);
    }
    for d in &image.domains {
        let Some(domain) = k.m.domains.iter().position(|own| own.cpus[0] == d.cpu) else {
            continue;
        };
        let changed = Instant(k.m.now.0.saturating_sub(d.changed_before.0));
        k.policy(domain).impose_freq(d.freq);
        k.policy(domain).resume(&Resumed::at(d.freq, changed));
        if let (Some(kthread), Some(cpu)) = (k.m.domains[domain].kthread, d.kthread_on)
            && k.m.task(kthread).state != State::Runnable
        {
            k.m.task_mut(kthread).cpu = cpu;
        }
    }
    for memory in &image.idle {
        if memory.cpu.index() < k.m.cpus.len() {
            image_of_idle(&mut k.rq(memory.cpu), memory);
            if let Some(RqMemory { distribute, extra_bw, total_bw, .. }) = memory.rq {
                k.m.classes.distribute[memory.cpu.index()] = distribute;
                k.m.classes.total_bw = total_bw;
                k.m.cpu_mut(memory.cpu).dl.extra_bw = extra_bw;
            }
        }
    }
    if let Some(on) = image.overutilized {
        k.rq(CpuId(0)).set_overutilized(on);
    }
    if let Some(first) = image.first_tick {
        k.move_tick_grid(first);
    }
    for (memory, ticks) in &image.balance {
        if memory.cpu.index() < k.m.cpus.len() {
            image_of_balance(&mut k.rq(memory.cpu), memory, *ticks);
        }
    }
    for change in &image.hotplug {
        let at = k.m.now + change.at;
        k.q.push(at, Ev::Hotplug { cpu: change.cpu, online: change.online });
    }
    for (group, after) in &image.periods {
        let group = k.m.groups.list.get_mut(group.index());
        if let Some(pool) = group.and_then(|group| group.pool.as_mut()) {
            period_ends(pool, k.m.now + *after);
        }
    }
    let next = image.balance.iter().map(|(memory, _)| k.m.cpu(memory.cpu).next_balance);
    if let Some(next) = next.min() {
        k.m.root.next_balance = next;
    }
}

/// The task's part: it has just been queued on `cpu`, whose sums follow by the difference.
fn apply_task_image(rq: &mut Rq<'_, '_>, task: TaskId, image: &TaskImage) {
    if let Some(est) = image.util_est {
        let t = rq.t(task);
        let before = std::mem::replace(&mut t.util_est, UtilEst(est.0 as u32)).value();
        let c = rq.c();
        c.util_est = c.util_est.saturating_sub(before) + est;
        c.needs_changed();
    }
    rq.set_signals(task, image.util_avg, image.runnable_avg, image.period_contrib);
    let avg = &mut rq.c().cfs_avg.avg;
    avg.util_sum = image.rq_util_sum.unwrap_or(avg.util_sum);
}

/// Time that a visit of the agent takes about, by which each CPU's signals come into a trace before
/// its start.
const VISIT: Span = Span(1 << 17);

/// The time before the start at which the CPU has last gone idle.
fn idled(memory: &IdleMemory) -> Span {
    let slept = memory.slept.unwrap_or(memory.before);
    memory.rq.and_then(|rq| rq.idled).unwrap_or(slept)
}

/// The agent, which is of the process, visited the CPU just before it went idle.
pub(super) fn was_visited(rq: &mut Rq<'_, '_>, memory: &IdleMemory) {
    rq.has_run_before(VISIT, idled(memory));
}

/// Sets the CPU's sleep: since when it sleeps, or how long it has slept where it is awake.
fn image_of_idle(rq: &mut Rq<'_, '_>, memory: &IdleMemory) {
    let (tick, clock) = (rq.m().tick, rq.m().sched_clock());
    let slept = memory.slept.unwrap_or(memory.before);
    let resumes = rq.c().idle_governor.resume(&memory.menu);
    let idled = idled(memory);
    was_visited(rq, memory);
    let Parts { c, domain, now, .. } = rq.parts();
    c.idle_stamp = Instant(clock.0.saturating_sub(idled.0));
    match &mut c.idle {
        Some(idle) => idle.since = Instant(now.0.saturating_sub(slept.0)),
        None if resumes => {
            c.idle_governor.update(&domain.idle, memory.state as usize, slept, false, tick);
        }
        None => {}
    }
}

/// Sets the times at which the domains are due. Of `nohz.next_balance` nothing is told: the
/// earliest of all CPUs is what the last look at all of them leaves.
fn image_of_balance(rq: &mut Rq<'_, '_>, memory: &BalanceMemory, ticks: u64) {
    let then = rq.m().jiffies() + ticks;
    let c = rq.c();
    c.next_balance = then.saturating_add_signed(memory.next_balance);
    for (domain, (last, ms)) in c.sched_domains.iter_mut().zip(&memory.domains) {
        domain.last_balance = then.saturating_add_signed(*last);
        domain.balance_interval = *ms;
    }
}

fn image_of_cpu(rq: &mut Rq<'_, '_>, image: &CpuImage) {
    rq.update_rq_clock();
    let decay = rq.m().decay;
    let c = rq.c();
    if let (Some(_), Some(behind)) = (c.curr, image.behind) {
        c.clock.clock_pelt = c.clock.clock_task.0.saturating_sub(behind.0);
    }
    let now = c.clock.rq_clock_pelt();
    if let Some(cfs) = &image.cfs {
        c.cfs_avg.avg = cfs.at(decay, now);
        rq.groups_in_step();
    }
    let c = rq.c();
    if let Some(dl) = &image.dl {
        c.dl_avg = dl.at(decay, now);
    }
    c.needs_changed();
    rq.trace_cfs();
}
