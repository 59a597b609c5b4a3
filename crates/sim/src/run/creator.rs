//! The thread that created the other trace's tasks: it takes CPU time from them there, and parts one from its
//! slice; here it only does that.

use crate::kernel::Kernel;
use crate::kernel::fork::new_task;
use crate::kernel::rq::Rq;
use crate::run::engine::Simulation;
use crate::run::replay::{Creator, Turn};
use crate::state::class::Class;
use crate::state::machine::{Role, Task, Todo};
use crate::time::queue::Ev;
use risetime_kernel::features;
use risetime_kernel::pelt::SchedAvg;
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::{CpuId, Instant, Span, TaskId};
use risetime_model::Name;
use risetime_model::workload::Policy;
use std::cell::RefCell;
use std::collections::VecDeque;

/// The creator at work.
pub(crate) struct Creating {
    /// Turns of the creator to come, and when they are due.
    turns: VecDeque<(Instant, Turn)>,
    /// The CPU that it is bound to but for when it creates a task that may not run there: it takes on that one's CPUs.
    home: CpuId,
    slice: Span,
    /// Task that it creates at the end of this turn.
    child: Option<TaskId>,
    /// Rest of its turn, once it has its own attributes back.
    left: Option<Span>,
    /// Task that it will create, the CPU that it is on then, and the rest of its turn when it
    /// prepares to.
    prepares: Option<(TaskId, CpuId, Span)>,
    /// True while its affinity is another one than its home.
    elsewhere: bool,
    /// Policy of its own, while it has another one.
    own: Option<Policy>,
}

impl Creating {
    /// Adds the creator to the machine; it wakes in time for the start at `start`.
    pub(crate) fn join(
        simulation: &mut Simulation<'_>,
        creator: &Creator,
        start: Instant,
    ) -> Creating {
        let k = &mut simulation.k;
        let turns = creator.turns.iter();
        let before = start.0.saturating_sub(creator.before.0);
        let turns = turns.map(|t| (Instant(before + t.wakes.0), *t)).collect();
        let comm = Name::of("creator");
        let nth = k.m.names.next(comm);
        let (task, mut t) = new_task(&k.m, comm, nth, Role::Creator);
        k.m.creator = Some(task);
        t.set_allowed(&k.m.cpus, [creator.cpu].into_iter().collect());
        (t.cpu, t.avg) = (creator.cpu, SchedAvg::default());
        if let Some(entity) = &mut t.entity {
            entity.request_slice(Some(creator.slice.0));
        }
        k.m.tasks.push(t);
        k.q.push(Instant(before), Ev::Timer { task, generation: 0 });
        let (home, slice) = (creator.cpu, creator.slice);
        Creating {
            turns,
            home,
            slice,
            child: None,
            left: None,
            prepares: None,
            elsewhere: false,
            own: None,
        }
    }

    /// Advances the creator, which is done with what it did: it creates the next task, goes on, or
    /// sleeps. (Creating asks the driver, which has the same creator: so nothing of it is held
    /// meanwhile.)
    pub(crate) fn advance(this: &RefCell<Creating>, k: &mut Kernel<'_>, cpu: CpuId, task: TaskId) {
        let now = k.m.now;
        let mut creating = this.borrow_mut();
        let (home, slice) = (creating.home, creating.slice);
        if let Some(left) = creating.left.take() {
            let mut rq = k.rq(cpu);
            if let Some(own) = creating.own.take() {
                rq.change_class(task, own);
            }
            rq.set_nice(task, 0);
            rq.c().cfs.set_slice(task, Some(slice.0));
            rq.set_clamps(task, Uclamp::default());
            rq.t(task).todo = Todo::Time(left);
            let home = [home].into_iter().collect();
            if std::mem::take(&mut creating.elsewhere) {
                rq.any_of(&home);
            }
            rq.set_cpus_allowed(task, home);
            return rq.arm_work();
        }
        if let Some((child, on, left)) = creating.prepares.take() {
            // The first one binds itself.
            let first = !k.created_any;
            let mut rq = k.rq(cpu);
            creating.own = prepares(&mut rq, task, child);
            rq.t(task).todo = Todo::Time(left);
            let allowed = rq.m().task(child).allowed;
            creating.elsewhere = !first && allowed != [home].into_iter().collect();
            if creating.elsewhere {
                rq.any_of(&allowed);
            }
            rq.set_cpus_allowed(task, [on].into_iter().collect());
            return rq.arm_work();
        }
        let child = creating.child.take();
        match creating.turns.front().copied() {
            Some((wakes, turn)) if wakes <= now => {
                creating.turns.pop_front();
                creating.child = turn.creates.map(|(child, _)| child);
                k.m.task_mut(task).todo = Todo::Time(turn.runs);
                creating.will_create(k.m.task_mut(task), turn);
                drop(creating);
                if let Some(child) = child {
                    k.create(child);
                }
                k.rq(cpu).arm_work();
            }
            next => {
                let until = next.map_or(Instant(u64::MAX), |(wakes, _)| wakes);
                k.rq(cpu).fall_asleep(task, Some(until));
            }
        }
    }

    /// Begins a turn at whose end the creator creates a task.
    fn will_create(&mut self, creator: &mut Task, turn: Turn) {
        /// Time from the system call that gives it the child's attributes to the child's first
        /// enqueue.
        const MOMENT: Span = Span::from_us(100);
        let Some((child, on)) = turn.creates else { return };
        let left = turn.runs.min(MOMENT);
        self.prepares = Some((child, on, left));
        creator.todo = Todo::Time(Span(turn.runs.0 - left.0));
    }

    /// Ends the creation of a task: the creator goes back to its own attributes when it has run on
    /// for a moment.
    pub(crate) fn creates(&mut self, rq: &mut Rq<'_, '_>, creator: TaskId) {
        /// Time from the child's first enqueue to the end of the system call that restores them.
        const MOMENT: Span = Span::from_us(28);
        if rq.m().cpu(rq.cpu).curr != Some(creator) {
            return;
        }
        rq.update_rq_clock();
        rq.book_progress();
        if let Todo::Time(left) = &mut rq.t(creator).todo {
            let before = (*left).min(MOMENT);
            self.left = Some(Span(left.0 - before.0 + self.left.unwrap_or_default().0));
            *left = before;
        }
        rq.arm_work();
    }
}

/// Gives the creator the attributes of the task that it will create, to inherit; returns its own
/// policy, if it leaves that for longer than a moment.
///
/// Since 7.0 who rises to a real-time policy is asked for its CPU (`sched_change_end`, so in 7.2 and 7.3), and waits among
/// its like for its turn. Before (6.12), it goes on to the next tick, and is back before that: the governor hears of it,
/// and nobody is pulled. What lies between was not read: no preset stands there.
fn prepares(rq: &mut Rq<'_, '_>, creator: TaskId, child: TaskId) -> Option<Policy> {
    let m = rq.m();
    let (own, pulls) = (m.task(creator).sched.policy, m.classes.push_rt);
    let policy = m.task(child).sched.policy;
    let rises = m.class_of(child) == Class::Rt && m.class_of(creator) == Class::Fair;
    let stays = rises && m.rev.has(features::SCHED_CHANGE_END);
    if rises {
        rq.change_class(creator, policy);
    }
    if rises && !stays {
        rq.change_class(creator, own);
        rq.set_push_rt(pulls);
    }
    let (nice, clamps) = (rq.m().task(child).nice, rq.m().task(child).uclamp.request);
    rq.set_nice(creator, nice);
    rq.c().cfs.set_slice(creator, None);
    rq.set_clamps(creator, clamps);
    stays.then_some(own)
}
