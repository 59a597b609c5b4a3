//! What `verify` imposes on a simulation: a start state read off another trace, and, in the mode
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
//! Nothing is copied after the start in the mode *free*.

use crate::run::engine::Engine;
use crate::run::setup::push_task;
use crate::state::class::Class;
use crate::state::machine::{Role, State, Todo};
use crate::time::queue::Ev;
use risetime_kernel::cpuidle::IdleGovernor;
use risetime_kernel::pelt::{Decay, SchedAvg, get_pelt_divider, update_load_avg_cfs_rq};
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::{ClockPelt, CpuId, GroupId, Instant, KHz, Span, TaskId, Util, Weight};
use risetime_kernel::util_est::UtilEst;
use risetime_model::workload::Hotplug;
use risetime_trace::{BalanceMemory, IdleMemory, Why};
use std::collections::{BTreeMap, VecDeque};

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
    /// From the start to the next tick.
    pub first_tick: Option<Span>,
    /// By task: how long it runs after its creation before its first phase begins (whoever made
    /// the other trace had to create a thread). Missing: no time.
    pub begins: Vec<Span>,
    /// By task: when after the start its first phase began there, which is where its timers start
    /// to count.
    pub timers_from: Vec<Span>,
    /// What the idle governors remember.
    pub idle: Vec<IdleMemory>,
    /// When the CPUs balance next, with how many ticks there are from the start to the look that
    /// told of it.
    pub balance: Vec<(BalanceMemory, u64)>,
    /// When the next period of each group with a quota ends, from the start.
    pub periods: Vec<(GroupId, Span)>,
    /// When CPUs go offline and come back, in place of the workload's own times: how long a kernel takes
    /// to do it is nothing that is simulated.
    pub hotplug: Vec<Hotplug>,
    /// The thread that created the tasks, if they are created from the start on.
    pub creator: Option<Creator>,
}

/// The thread that created the other trace's tasks. It takes CPU time from them there, and parts
/// one from its slice; here it only does that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creator {
    /// Where it stays.
    pub cpu: CpuId,
    /// Its `sched_attr::sched_runtime`.
    pub slice: Span,
    /// How long before the start it began to run, which is where its turns count from.
    pub before: Span,
    /// What it does, in order. A turn also ends where a task is created.
    pub turns: Vec<Turn>,
}

/// What a frequency change costs the sugov kthread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kthread {
    /// From when the governor wants a change until it has the CPU.
    pub waits: Span,
    /// From then until the frequency is another.
    pub until_change: Span,
    /// For how long it has it.
    pub runs: Span,
}

/// A turn of a task, from a wakeup to the next sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// When it wakes, if it sleeps until then; counted from the start, the creator's from where it
    /// began to run.
    pub wakes: Span,
    /// For how long it has the CPU.
    pub runs: Span,
    /// The task that it creates at its end.
    pub creates: Option<TaskId>,
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
    /// Which.
    pub cpu: CpuId,
    /// `cfs_rq->avg`.
    pub cfs: Option<Signal>,
    /// `rq->avg_dl`.
    pub dl: Option<Signal>,
    /// How far PELT's clock is behind the task clock, on a CPU that has been busy.
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
    /// From `last_update_time` to the start.
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
    /// Its first CPU.
    pub cpu: CpuId,
    /// Its frequency, which is also what the governor last asked for.
    pub freq: KHz,
    /// How long before the start it was last changed.
    pub changed_before: Span,
    /// Where its kthread sleeps: any CPU of the domain, wherever it woke last.
    pub kthread_on: Option<CpuId>,
}

/// What happened in the other trace after the start, by time from there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Frequency changes.
    pub freqs: Vec<GivenFreq>,
    /// Moves of running or queued tasks: when, which, where to.
    pub moves: Vec<(Span, TaskId, CpuId)>,
    /// By task, what it does in order, in place of its program: how long it has a CPU between two
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
    /// When the governor wanted it: at the tick or wakeup just before the kthread woke.
    pub wanted: Span,
    /// When it was in force.
    pub at: Span,
    /// First CPU of the domain.
    pub cpu: CpuId,
    /// The new frequency.
    pub freq: KHz,
}

/// The creator at work.
pub(crate) struct Creating {
    /// Its turns to come, and when they are due.
    turns: VecDeque<(Instant, Turn)>,
    slice: Span,
    /// Whom it creates at the end of this turn.
    child: Option<TaskId>,
    /// What is left of its turn once it has its own attributes back.
    left: Option<Span>,
    /// Whom it will create, and what is left of its turn when it prepares to.
    prepares: Option<(TaskId, Span)>,
}

/// A given change, queued at its time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// A domain's kthread wakes to change the frequency, and waits so long for its CPU.
    Kthread(usize, Span),
    Freq(usize, KHz),
    Move(TaskId, CpuId),
}

impl Engine<'_> {
    /// The machine's part of the image takes effect: before the task that starts is queued, so
    /// that its queueing makes the governor look as it did there.
    pub(crate) fn apply_machine_image(&mut self, image: &Image) {
        for c in &image.cpus {
            self.image_of_cpu(c);
        }
        for d in &image.domains {
            let Some(domain) = self.m.domains.iter().position(|own| own.cpus[0] == d.cpu) else {
                continue;
            };
            self.impose_freq(domain, d.freq);
            let changed = Instant(self.m.now.0.saturating_sub(d.changed_before.0));
            self.governors[domain].resume(d.freq, changed);
            if let (Some(kthread), Some(cpu)) = (self.m.domains[domain].kthread, d.kthread_on)
                && self.m.task(kthread).state != State::Runnable
            {
                self.m.task_mut(kthread).cpu = cpu;
            }
        }
        image.idle.iter().for_each(|memory| self.image_of_idle(memory));
        if let Some(on) = image.overutilized {
            self.set_overutilized(on);
        }
        if let Some(first) = image.first_tick {
            self.move_tick_grid(first);
        }
        image.balance.iter().for_each(|(memory, ticks)| self.image_of_balance(memory, *ticks));
        for change in &image.hotplug {
            let at = self.m.now + change.at;
            self.q.push(at, Ev::Hotplug { cpu: change.cpu, online: change.online });
        }
        image.periods.iter().for_each(|(group, after)| self.period_ends(*group, *after));
        let next = image.balance.iter().map(|(memory, _)| self.m.cpu(memory.cpu).next_balance);
        if let Some(next) = next.min() {
            self.m.root.next_balance = next;
        }
    }

    /// The task's part: it has just been queued on `cpu`, whose sums follow by the difference.
    pub(crate) fn apply_task_image(&mut self, cpu: CpuId, task: TaskId, image: &TaskImage) {
        if let Some(est) = image.util_est {
            let t = self.m.task_mut(task);
            let before = std::mem::replace(&mut t.util_est, UtilEst(est.0 as u32)).value();
            let c = self.m.cpu_mut(cpu);
            c.util_est = c.util_est.saturating_sub(before) + est;
        }
        self.set_signals(cpu, task, image.util_avg, image.runnable_avg, image.period_contrib);
        let avg = &mut self.m.cpu_mut(cpu).cfs_avg.avg;
        avg.util_sum = image.rq_util_sum.unwrap_or(avg.util_sum);
    }

    /// The CPU sleeps since then, or has slept that long and is awake.
    fn image_of_idle(&mut self, memory: &IdleMemory) {
        let (now, tick) = (self.m.now, self.m.tick);
        let Some(c) = self.m.cpus.get_mut(memory.cpu.index()) else { return };
        let states = &self.m.domains[c.domain].idle;
        let mut governor = IdleGovernor::Menu(memory.menu.clone());
        let slept = memory.slept.unwrap_or(memory.before);
        match &mut c.idle {
            Some(idle) => idle.since = Instant(now.0.saturating_sub(slept.0)),
            None => governor.update(states, memory.state as usize, slept, false, tick),
        }
        if matches!(c.idle_governor, IdleGovernor::Menu(_)) {
            c.idle_governor = governor;
        }
    }

    /// The domains are due when they were there. Of `nohz.next_balance` nothing is told: the earliest
    /// of all CPUs is what the last look at all of them leaves.
    fn image_of_balance(&mut self, memory: &BalanceMemory, ticks: u64) {
        let then = self.m.jiffies() + ticks;
        let Some(c) = self.m.cpus.get_mut(memory.cpu.index()) else { return };
        c.next_balance = then.saturating_add_signed(memory.next_balance);
        for (domain, (last, ms)) in c.sched_domains.iter_mut().zip(&memory.domains) {
            domain.last_balance = then.saturating_add_signed(*last);
            domain.balance_interval = *ms;
        }
    }

    fn image_of_cpu(&mut self, image: &CpuImage) {
        self.update_rq_clock(image.cpu);
        let decay = self.m.decay;
        let c = self.m.cpu_mut(image.cpu);
        if let (Some(_), Some(behind)) = (c.curr, image.behind) {
            c.clock.clock_pelt = c.clock.clock_task.0.saturating_sub(behind.0);
        }
        let now = c.clock.rq_clock_pelt();
        if let Some(cfs) = &image.cfs {
            c.cfs_avg.avg = cfs.at(decay, now);
            self.m.groups_in_step(image.cpu);
        }
        let c = self.m.cpu_mut(image.cpu);
        if let Some(dl) = &image.dl {
            c.dl_avg = dl.at(decay, now);
        }
        self.trace_cfs(image.cpu);
    }

    /// A task whose creation is the start has its signals from the first moment.
    pub(crate) fn created_as_in_image(&mut self, task: TaskId) {
        let Some(image) = self.image.as_ref().map(|image| &image.task) else { return };
        let (util, runnable) = (image.util_avg, image.runnable_avg);
        let avg = &mut self.m.task_mut(task).avg;
        avg.util_avg = util.unwrap_or(avg.util_avg);
        avg.runnable_avg = runnable.unwrap_or(avg.util_avg);
    }

    /// The creator joins the machine: it wakes in time for the start at `start`.
    pub(crate) fn add_creator(&mut self, creator: &Creator, start: Instant) {
        let turns = creator.turns.iter();
        let before = start.0.saturating_sub(creator.before.0);
        let turns = turns.map(|t| (Instant(before + t.wakes.0), *t)).collect();
        let role =
            Creating { turns, slice: creator.slice, child: None, left: None, prepares: None };
        let task = push_task(self, "creator".into(), Role::Creator(role));
        self.m.creator = Some(task);
        self.m.set_allowed(task, [creator.cpu].into_iter().collect());
        let t = self.m.task_mut(task);
        (t.cpu, t.avg) = (creator.cpu, SchedAvg::default());
        if let Some(entity) = &mut t.entity {
            entity.request_slice(Some(creator.slice.0));
        }
        self.q.push(Instant(before), Ev::Timer { task, generation: 0 });
    }

    /// The creator is done with what it did: it creates the next task, goes on, or sleeps.
    pub(crate) fn advance_creator(&mut self, cpu: CpuId, task: TaskId) {
        let now = self.m.now;
        let Role::Creator(creating) = &mut self.m.task_mut(task).role else { return };
        let slice = creating.slice;
        if let Some(left) = creating.left.take() {
            self.set_nice(task, 0);
            self.m.cpu_mut(cpu).cfs.set_slice(task, Some(slice.0));
            self.set_clamps(task, Uclamp::default());
            self.m.task_mut(task).todo = Todo::Time(left);
            return self.arm_work(cpu);
        }
        if let Some((child, left)) = creating.prepares.take() {
            self.creator_prepares(task, child);
            self.m.task_mut(task).todo = Todo::Time(left);
            return self.arm_work(cpu);
        }
        let child = creating.child.take();
        match creating.turns.front().copied() {
            Some((wakes, turn)) if wakes <= now => {
                creating.turns.pop_front();
                creating.child = turn.creates;
                self.m.task_mut(task).todo = Todo::Time(turn.runs);
                self.creator_will_create(task, turn);
                if let Some(child) = child {
                    self.create(child);
                }
                self.arm_work(cpu);
            }
            next => {
                let until = next.map_or(Instant(u64::MAX), |(wakes, _)| wakes);
                self.fall_asleep(cpu, task, Some(until));
            }
        }
    }

    /// A turn begins at whose end the creator creates a task.
    fn creator_will_create(&mut self, creator: TaskId, turn: Turn) {
        /// From the system call that gives it the child's attributes to the child's first enqueue.
        const MOMENT: Span = Span::from_us(100);
        let Some(child) = turn.creates else { return };
        let t = self.m.task_mut(creator);
        if let Role::Creator(creating) = &mut t.role {
            let left = turn.runs.min(MOMENT);
            creating.prepares = Some((child, left));
            t.todo = Todo::Time(Span(turn.runs.0 - left.0));
        }
    }

    /// The creator takes on the attributes of the task that it will create, for it to inherit.
    ///
    /// Real-time ones only so that the governor hears of it: it is back before anybody would be pulled
    /// here for it.
    fn creator_prepares(&mut self, creator: TaskId, child: TaskId) {
        let (own, pulls) = (self.m.task(creator).sched.policy, self.m.classes.push_rt);
        if self.m.class_of(child) == Class::Rt && self.m.class_of(creator) == Class::Fair {
            self.change_class(creator, self.m.task(child).sched.policy);
            self.change_class(creator, own);
            self.m.classes.push_rt = pulls;
        }
        let (nice, clamps) = (self.m.task(child).nice, self.m.task(child).uclamp.request);
        self.set_nice(creator, nice);
        let cpu = self.m.task(creator).cpu;
        self.m.cpu_mut(cpu).cfs.set_slice(creator, None);
        self.set_clamps(creator, clamps);
    }

    /// The creator has created `child`, and goes back to its own attributes when it has run on for a
    /// moment.
    pub(crate) fn creator_creates(&mut self) {
        /// From the child's first enqueue to the end of the system call that restores them.
        const MOMENT: Span = Span::from_us(28);
        let Some(creator) = self.m.creator else { return };
        let cpu = self.m.task(creator).cpu;
        if self.m.cpu(cpu).curr != Some(creator) {
            return;
        }
        self.update_rq_clock(cpu);
        self.book_progress(cpu);
        let t = self.m.task_mut(creator);
        if let (Role::Creator(creating), Todo::Time(left)) = (&mut t.role, &mut t.todo) {
            let before = (*left).min(MOMENT);
            creating.left = Some(Span(left.0 - before.0 + creating.left.unwrap_or_default().0));
            *left = before;
        }
        self.arm_work(cpu);
    }

    fn set_clamps(&mut self, task: TaskId, clamps: Uclamp) {
        let t = &mut self.m.tasks[task.index()];
        t.uclamp.request = clamps;
        self.m.cpus[t.cpu.index()].uclamp.uclamp_rq_reinc(&mut t.uclamp, &t.limits);
    }

    /// A task that has just been created takes as long to begin as it did there.
    pub(crate) fn begin_as_in_image(&mut self, task: TaskId) {
        let Some(image) = &self.image else { return };
        let (begins, from) = (image.begins.get(task.index()), image.timers_from.get(task.index()));
        if self.given.is_some() {
            // Its first turn has that in it.
        } else if let (Some(begins), Some(from)) = (begins.copied(), from.copied()) {
            // Tasks are created at their delay after the first one's creation, the start.
            let now = self.m.now.0;
            let t = self.m.task_mut(task);
            t.todo = Todo::Time(begins);
            if let Role::User(program) = &mut t.role {
                let start = now - program.spec().delay.0;
                program.count_timers_from(Instant(start + from.0));
            }
        }
    }

    /// Queues everything that is given, from the start on.
    pub(crate) fn start_given(&mut self) {
        let Some(given) = self.given.as_ref() else { return };
        let domain = |cpu: &CpuId| self.m.cpu(*cpu).domain;
        let freqs = given.freqs.iter().map(|f| (f.at, Change::Freq(domain(&f.cpu), f.freq)));
        let kthreads = self.kthread.iter().flat_map(|kthread| {
            let waits =
                |f: &GivenFreq| Span(f.at.0.saturating_sub(f.wanted.0 + kthread.until_change.0));
            given
                .freqs
                .iter()
                // Before what led to it reschedules.
                .map(move |f| {
                    (Span(f.wanted.0.saturating_sub(1)), Change::Kthread(domain(&f.cpu), waits(f)))
                })
        });
        let moves =
            given.moves.iter().map(|(after, task, cpu)| (*after, Change::Move(*task, *cpu)));
        let changes: Vec<(Span, Change)> = kthreads.chain(freqs).chain(moves).collect();
        for (after, change) in changes {
            let index = self.changes.len() as u32;
            self.changes.push(change);
            self.q.push(self.m.now + after, Ev::Given { index });
        }
    }

    /// A given change is due.
    pub(crate) fn given_change(&mut self, index: u32) {
        match self.changes.get(index as usize) {
            Some(&Change::Kthread(domain, waits)) => self.wake_sugov(domain, waits),
            Some(&Change::Freq(domain, freq)) => self.impose_freq(domain, freq),
            Some(&Change::Move(task, to)) => {
                let from = self.m.task(task).cpu;
                if from != to && self.m.task(task).state == State::Runnable {
                    self.leave_limbo(task);
                    self.move_queued(task, from, to, Why::Given);
                }
            }
            None => {}
        }
    }

    /// At a tick: if one of the other trace's ended a turn on `cpu` at this time, it does not
    /// reschedule before it did there. Whether it does, and for whom, it decides itself.
    pub(crate) fn hold_as_given(&mut self, cpu: CpuId) {
        let now = self.m.now;
        let Some(given) = self.given.as_mut().filter(|_| self.start.begun) else { return };
        let Some(held) = given.held.get_mut(&cpu) else { return };
        let (started, tick) = (self.started, self.m.tick);
        while let Some(&(after, late)) = held.front() {
            let at = started + after;
            if at.0 > now.0 + tick.0 / 2 {
                return;
            }
            held.pop_front();
            if at.0 + tick.0 / 2 > now.0 {
                let until = &mut self.m.cpu_mut(cpu).irq_work_until;
                *until = (*until).max(now + late);
            }
        }
    }

    /// Whether decisions are fed in from now on.
    pub(crate) fn is_given(&self) -> bool {
        self.given.is_some() && self.start.begun
    }

    /// The running task's next turn, if its turns are given: true.
    #[inline]
    pub(crate) fn advance_given(&mut self, cpu: CpuId, task: TaskId) -> bool {
        self.given.is_some() && self.given_turn(cpu, task)
    }

    fn given_turn(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let (now, start) = (self.m.now, self.started);
        if !self.start.done {
            return false;
        }
        let Some(turns) = self.given.as_mut().and_then(|g| g.turns.get_mut(task.index())) else {
            return false;
        };
        match turns.front().map(|turn| (start + turn.wakes, turn.runs)) {
            Some((wakes, runs)) if wakes <= now => {
                turns.pop_front();
                self.m.task_mut(task).todo = Todo::Time(runs);
                self.arm_work(cpu);
            }
            next => {
                let until = next.map_or(Instant(u64::MAX), |(wakes, _)| wakes);
                self.fall_asleep(cpu, task, Some(until));
            }
        }
        true
    }

    /// Where the other trace has put this task, which is pushed off a CPU that goes, a moment later.
    pub(crate) fn given_push(&self, task: TaskId) -> Option<CpuId> {
        /// The stopper gets to it within that time.
        const MOMENT: Span = Span::from_ms(1);
        let given = self.given.as_ref().filter(|_| self.start.begun)?;
        let soon = |after: Span| {
            let at = self.started + after;
            at >= self.m.now && at.since(self.m.now) <= MOMENT
        };
        let mut moves = given.moves.iter();
        let (.., to) = moves.find(|(after, moved, _)| *moved == task && soon(*after))?;
        self.m.root.online.contains(*to).then_some(*to)
    }

    /// The recorded CPU of this task's next wakeup.
    #[inline]
    pub(crate) fn given_wakeup(&mut self, task: TaskId) -> Option<CpuId> {
        if self.given.is_none() || !self.start.done {
            return None;
        }
        self.given.as_mut()?.wakeups.get_mut(task.index())?.pop_front()
    }
}
