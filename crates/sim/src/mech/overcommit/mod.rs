//! SCHED_OVERCOMMIT: tasks ask for shares of a CPU. Up to 100 % each has its own by its deadline, above it all have the same part of it.
//!
//! ```text
//!  queue      one a CPU, of requests with virtual deadlines; those below the class have one in it, too
//!  pick       the earliest deadline of those whose time has come; nobody's: the classes below run
//!  settled    at each switch, wakeup, sleep, tick, and by a timer where it is another's turn
//!  wakeup     stays while what the tasks here ask for is no more than the CPU; else goes where least is asked for
//!  push       at ticks, from a CPU of which more is asked than it is, to where the sum is less with it than here
//! ```
//!
//! An idea of OSPM 2023 (S. Rostedt); no kernel has it. What we chose: the rule ([`risetime_kernel::overcommit`] has it, with the
//! reason why it does both), that who has used up its share waits for the next period, and the part of those below. Real-time
//! and deadline tasks come first; the class's clock stands still while they run, so that what they take is taken from all alike.
//!
//! On several CPUs the guarantee is that of each CPU for the tasks that are there: sums are made even by moving one task at a time, so that two
//! CPUs differ by no more than the smallest share that could move. A task that moves takes its request along.
//!
//! What tasks ask for counts as deadline tasks' bandwidth does in what schedutil asks for; what they run, as real-time tasks'.
//! Leaves out: groups, the lag of a task that exits, CPUs that real-time tasks keep busy (placement does not see them).

pub(crate) mod state;

use crate::kernel::class::fair;
use crate::kernel::class::sched_class::{Preempts, SchedClass};
use crate::kernel::placement::Placement;
use crate::kernel::rq::Rq;
use crate::mech::high;
use crate::mech::mechanism::Mechanism;
use crate::mech::muqss;
use crate::mech::overcommit::state::OvercommitRq;
use crate::state::class::{Class, ClassTimer};
use crate::state::effects::Effects;
use crate::state::hooks::{Placed, Waker};
use crate::state::machine::UPTIME;
use crate::state::machine::{Machine, State};
use risetime_kernel::deadline::{BW_UNIT, dl_scaled_delta};
use risetime_kernel::eevdf::{DequeueKind, EnqueueKind};
use risetime_kernel::overcommit::{Ask, Gave, Turn};
use risetime_kernel::units::Instant;
use risetime_kernel::units::{CpuId, TaskId};
use risetime_model::Experiment;
use risetime_model::settings::Group;
use risetime_model::workload::Policy;
use risetime_trace::Why;

impl Mechanism for state::Own {
    fn groups() -> Vec<Group> {
        vec![state::GROUP]
    }
    fn of_cpu(e: &Experiment, _: &Machine, _: CpuId) -> Option<Box<OvercommitRq>> {
        OvercommitRq::of(e, Instant(UPTIME.0))
    }
    fn bends(m: &Machine) -> bool {
        m.cpus.iter().any(|c| c.slots.overcommit.is_some())
    }
}

/// SCHED_OVERCOMMIT.
pub(crate) struct Overcommit;

/// Classes that the guarantee for others is about.
const BELOW: [&dyn SchedClass; 3] = [&high::High, &muqss::Muqss, &fair::Fair];

impl SchedClass for Overcommit {
    fn about(&self) -> (&'static str, &'static str) {
        (
            "SCHED_OVERCOMMIT",
            "shares of a CPU that may come to more than there is: all are late alike then (OSPM 2023)",
        )
    }
    fn enqueue(&self, rq: &mut Rq<'_, '_>, task: TaskId, _: EnqueueKind, _: bool) {
        let t = rq.t(task);
        let Policy::Overcommit { runtime, period } = t.sched.policy else { return };
        let moved = t.slots.overcommit.take();
        if let Some(queue) = rq.c().slots.overcommit.as_deref_mut() {
            if let Some(moved) = moved {
                queue.class.join(task, *moved);
            }
            queue.class.wake(task, Ask { runtime, period });
        }
        rq.cpufreq_update_util();
    }
    fn dequeue(&self, rq: &mut Rq<'_, '_>, task: TaskId, kind: DequeueKind) {
        let stays = matches!(kind, DequeueKind::Sleep | DequeueKind::SleepSpecial)
            && rq.m().task(task).state != State::Exited;
        if stays {
            if let Some(queue) = rq.c().slots.overcommit.as_deref_mut() {
                queue.class.sleep(task);
            }
        } else {
            rq.leave_overcommit(task);
        }
        rq.cpufreq_update_util();
    }
    fn pick(&self, rq: &mut Rq<'_, '_>) -> Option<TaskId> {
        rq.pick_task_overcommit()
    }
    fn wakeup_preempt(&self, rq: &mut Rq<'_, '_>, _: TaskId, task: TaskId, _: bool) -> Preempts {
        match rq.m().overcommit_turn(rq.cpu) {
            Some(Turn::Task(first)) if first == task => Preempts::Now,
            _ => Preempts::No,
        }
    }
    fn put_prev(&self, rq: &mut Rq<'_, '_>, prev: TaskId, next: Option<TaskId>) {
        if next != Some(prev) {
            rq.update_rt(true);
        }
    }
    fn set_next(&self, rq: &mut Rq<'_, '_>, _: TaskId) {
        rq.update_rt(false);
    }
    /// Gives up what `curr` has left of its request.
    fn yield_task(&self, rq: &mut Rq<'_, '_>, curr: TaskId) {
        rq.advance_overcommit();
        if let Some(queue) = rq.c().slots.overcommit.as_deref_mut() {
            queue.class.give_up(curr);
        }
    }
    fn select_task_rq(
        &self,
        m: &Machine,
        _: &mut dyn Placement,
        task: TaskId,
        _: Waker,
        _: &mut Effects,
    ) -> Placed {
        let prev = m.task(task).cpu;
        let stays = m.is_cpu_allowed(task, prev) && m.asked_with(prev, task) <= BW_UNIT;
        m.least_asked(task, stays)
    }
    fn select_task_rq_fork(
        &self,
        m: &Machine,
        _: &mut dyn Placement,
        task: TaskId,
        _: &mut Effects,
    ) -> Placed {
        m.least_asked(task, false)
    }
}

impl Machine {
    /// The bandwidth that would be asked of `cpu` with `task` there, 2²⁰: all of the CPU.
    fn asked_with(&self, cpu: CpuId, task: TaskId) -> u64 {
        let c = self.cpu(cpu);
        let Policy::Overcommit { runtime, period } = self.task(task).sched.policy else { return 0 };
        let own = runtime.0 * BW_UNIT / period.0.max(1);
        let others =
            c.slots.overcommit.as_deref().map_or(0, |queue| queue.class.asked_without(task));
        (own + others) * 1024 / c.capacity.0.max(1)
    }

    /// The CPU of which least is asked with `task` on it, its own first.
    fn least_asked(&self, task: TaskId, stays: bool) -> Placed {
        let prev = self.task(task).cpu;
        let allowed = self.task(task).allowed.and(&self.root.online);
        let least =
            allowed.iter().min_by_key(|cpu| (self.asked_with(*cpu, task), *cpu != prev, *cpu));
        match least.filter(|cpu| !stays && *cpu != prev) {
            Some(cpu) => Placed { cpu, why: Why::LowestRq },
            None => self.within_allowed(task, Placed { cpu: prev, why: Why::PrevCpu }),
        }
    }

    /// The side whose turn `runs` takes; `None`: it is above the class, or in spare time.
    fn turn_of(&self, cpu: CpuId, runs: Option<TaskId>) -> Option<Turn> {
        let runs = runs?;
        match self.class_of(runs) {
            Class::Overcommit => Some(Turn::Task(runs)),
            class if class > Class::Overcommit => {
                let served =
                    self.cpu(cpu).slots.overcommit.as_ref().is_some_and(|queue| queue.served);
                served.then_some(Turn::Below)
            }
            _ => None,
        }
    }

    /// The side whose turn it is; on a tie the one that is running.
    fn overcommit_turn(&self, cpu: CpuId) -> Option<Turn> {
        let c = self.cpu(cpu);
        c.slots.overcommit.as_deref()?.class.turn(self.turn_of(cpu, c.curr))
    }

    /// Whether those below the class want to run.
    fn below_wants(&self, cpu: CpuId) -> bool {
        let c = self.cpu(cpu);
        c.fair_waits()
            || c.slots.high.as_ref().is_some_and(|high| high.nr_queued() > 0)
            || c.slots.muqss.as_ref().is_some_and(|rq| rq.nr_running() > 0)
    }
}

impl Rq<'_, '_> {
    fn overcommit(&mut self) -> Option<&mut OvercommitRq> {
        self.c().slots.overcommit.as_deref_mut()
    }

    /// Tells the class what the CPU has done since the last time.
    pub(crate) fn advance_overcommit(&mut self) {
        let (cpu, m) = (self.cpu, self.m());
        let c = m.cpu(cpu);
        let Some(queue) = c.slots.overcommit.as_deref() else { return };
        let (now, task_now) = (c.clock.clock, c.clock.clock_task.0);
        let real = now.0.saturating_sub(queue.settled.0);
        let ran = task_now.saturating_sub(queue.settled_task);
        let waits = || matches!(queue.class.turn(None), Some(Turn::Task(_)));
        let gave = match (c.curr, m.turn_of(cpu, c.curr)) {
            (_, Some(turn)) => {
                let done = dl_scaled_delta(ran, m.domains[c.domain].freq_scale, c.capacity);
                Gave::Turn(turn, done)
            }
            (None, None) => Gave::Spare(real),
            // A task that the fair class's deadline server lets in stands above, too.
            (Some(curr), None) if m.class_of(curr) < Class::Overcommit || waits() => Gave::Above,
            (Some(_), None) => Gave::Spare(real),
        };
        if let Some(queue) = self.overcommit() {
            (queue.settled, queue.settled_task) = (now, task_now);
            queue.class.advance(real, gave);
        }
    }

    /// Whether it is another's turn, and when it will be.
    pub(crate) fn settle_overcommit(&mut self) {
        let cpu = self.cpu;
        if self.m().cpu(cpu).slots.overcommit.is_none() {
            return;
        }
        let asked = self.asked_of_overcommit();
        self.advance_overcommit();
        let wants = self.m().below_wants(cpu);
        let Some(queue) = self.overcommit() else { return };
        queue.class.below_wants(wants);
        let (curr, turn) = (self.m().cpu(cpu).curr, self.m().overcommit_turn(cpu));
        let waits = matches!(turn, Some(Turn::Task(_)));
        let other = match curr.map(|curr| (curr, self.m().class_of(curr))) {
            None => waits,
            Some((curr, Class::Overcommit)) => turn != Some(Turn::Task(curr)),
            Some((_, class)) if class > Class::Overcommit => {
                if let Some(queue) = self.overcommit() {
                    queue.served = turn == Some(Turn::Below);
                }
                waits
            }
            Some(_) => false,
        };
        if other {
            self.resched_curr();
        }
        if asked != self.asked_of_overcommit() {
            self.cpufreq_update_util();
        }
        self.arm_overcommit(curr);
    }

    fn asked_of_overcommit(&self) -> u64 {
        self.m().cpu(self.cpu).slots.overcommit.as_ref().map_or(0, |queue| queue.class.asked_now())
    }

    fn pick_task_overcommit(&mut self) -> Option<TaskId> {
        let cpu = self.cpu;
        self.overcommit()?;
        let wants = self.m().below_wants(cpu);
        let queue = self.overcommit()?;
        queue.class.below_wants(wants);
        queue.served = false;
        match self.m().overcommit_turn(cpu)? {
            Turn::Task(task) => Some(task),
            Turn::Below => {
                let below = BELOW.iter().find_map(|class| class.pick(self));
                let queue = self.overcommit()?;
                queue.served = below.is_some();
                below.or_else(|| queue.class.task_turn())
            }
        }
    }

    /// Sets the timer to the time at which the turn may change; `runs`: the task that has the CPU
    /// from now on.
    pub(crate) fn arm_overcommit(&mut self, runs: Option<TaskId>) {
        let (cpu, m) = (self.cpu, self.m());
        let c = m.cpu(cpu);
        let Some(queue) = c.slots.overcommit.as_deref() else { return };
        let stands = runs.is_some_and(|runs| m.class_of(runs) < Class::Overcommit);
        let turn = m.turn_of(cpu, runs);
        let (capacity, freq_scale) = m.scale_of(cpu);
        let speed = freq_scale * capacity.0;
        let change = if stands { None } else { queue.class.next_change(turn, speed) };
        let after = change.map(|after| c.clock.clock + after);
        let Some(queue) = self.overcommit() else { return };
        let before = std::mem::replace(&mut queue.expires, after);
        self.arm_changed(ClassTimer::Overcommit(cpu), before, after);
    }

    pub(crate) fn overcommit_timer(&mut self) {
        if let Some(queue) = self.overcommit() {
            queue.expires = None;
        }
        self.settle_overcommit();
    }

    /// Settles the class at each tick, whichever task runs.
    pub(crate) fn tick_overcommit(&mut self) {
        if self.m().cpu(self.cpu).slots.overcommit.is_some() {
            self.settle_overcommit();
            self.push_overcommit();
        }
    }

    /// Takes `task` out, which leaves for another CPU or class and takes its request along.
    fn leave_overcommit(&mut self, task: TaskId) {
        let moved = self.overcommit().and_then(|queue| queue.class.leave(task));
        let exited = self.m().task(task).state == State::Exited;
        self.t(task).slots.overcommit = moved.filter(|_| !exited).map(Box::new);
    }

    /// Takes `task` out, which goes to another CPU in its sleep.
    pub(crate) fn migrate_task_rq_overcommit(&mut self, task: TaskId) {
        if self.m().class_of(task) == Class::Overcommit {
            self.update_rq_clock();
            self.advance_overcommit();
            self.leave_overcommit(task);
        }
    }

    /// Pushes a waiting task away if more is asked of this CPU than it has: to where the sum with
    /// it is less.
    fn push_overcommit(&mut self) {
        let (cpu, m) = (self.cpu, self.m());
        let Some(queue) = m.cpu(cpu).slots.overcommit.as_deref() else { return };
        let waiting = queue
            .class
            .wanting()
            .filter(|t| m.cpu(cpu).curr != Some(*t) && m.task(*t).nr_cpus_allowed > 1);
        let best = waiting.filter_map(|task| {
            let here = m.asked_with(cpu, task);
            let to = m.least_asked(task, false).cpu;
            let there = m.asked_with(to, task);
            (to != cpu && here > BW_UNIT && there < here).then_some((there, task, to))
        });
        if let Some((_, task, to)) = best.min_by_key(|(there, ..)| *there) {
            self.move_queued(task, to, Why::OvercommitPush);
        }
    }
}
