//! The scheduling classes, and what core asks each of them.
//!
//! ```text
//!            stop              deadline          real-time         fair              idle
//! enqueue    [stop]            [deadline]        [rt]              [crate::kernel::fair]     -
//! pick       migration/N       earliest deadline highest priority  EEVDF             nothing to run
//! wakeup     a higher class preempts a lower one; within one class it decides itself
//! placement  its own CPU       [dl_push]         [rt_push]         [crate::kernel::placement]
//! too many   -                 pushed, pulled    pushed, pulled    [crate::kernel::balance]
//! ```
//!
//! Where deadline tasks go and whether real-time ones come before them can be ruled otherwise ([`crate::mech::dl_rules`]).
//! Real-time tasks of groups with a runtime of their own come with their group's server, a deadline ([`crate::mech::rt_groups`]).
//! Between real-time and fair there are SCHED_OVERCOMMIT ([`crate::mech::overcommit`]) and SCHED_HIGH ([`crate::mech::high`]), where a workload asks for them.
//!
//! The fair class has a deadline server ([dl_server]) that lets it in where real-time tasks starve
//! it; before 6.12 they are throttled instead. Where [MuQSS](crate::mech::muqss) stands in for the fair class, that has no tasks.
//!
//! Source: kernel/sched/core.c:__pick_next_task, wakeup_preempt, __setscheduler;
//! kernel/sched/syscalls.c:__sched_setscheduler. Leaves out: sched_ext, priority inheritance,
//! core scheduling.

mod cpudl;
mod cpupri;
mod deadline;
pub(crate) mod dl_push;
pub(crate) mod dl_server;
pub(crate) mod fair;
pub(crate) mod nearest;
mod rt;
mod rt_push;
pub(crate) mod sched_class;
mod setscheduler;
pub(crate) mod stop;
mod timers;

use crate::kernel::Kernel;
use crate::kernel::class::sched_class::Preempts;
use crate::kernel::class::sched_class::SchedClass;
use crate::kernel::governor::Occasion;
use crate::kernel::placement::{Placed, Placement, Waker, select_fallback_rq};
use crate::kernel::policy::take_looks;
use crate::kernel::rq::Rq;
use crate::state::class::Class;
use crate::state::cpuset::CpuSet;
use crate::state::effects::Effects;
use crate::state::hooks::Answer;
use crate::state::hooks::Point;
use crate::state::hooks::Step;
use crate::state::machine::Cpu;
use crate::state::machine::Machine;
use crate::state::machine::{State, Task};
use crate::state::topology::RootDomain;
use risetime_kernel::eevdf::{DequeueKind, EnqueueKind};
use risetime_kernel::uclamp::UclampRq;
use risetime_kernel::units::{CpuId, TaskId, Util};
use risetime_trace::Why;

/// All classes, the highest first, in the order of [`Class`].
pub(crate) const CLASSES: [&dyn SchedClass; 8] = [
    &stop::Stop,
    &deadline::Deadline,
    &crate::mech::rt_groups::RtGroups,
    &rt::RealTime,
    &crate::mech::overcommit::Overcommit,
    &crate::mech::high::High,
    &crate::mech::muqss::Muqss,
    &fair::Fair,
];

/// The order in which they are asked where real-time tasks come before deadline tasks (`class_order`): the two swapped, as one
/// swaps `rt.c` and `deadline.c` in the kernel, and nothing else. So servers, which are deadlines, come behind
/// real-time tasks of the root group, and so do the sugov kthreads; where classes look for CPUs (cpudl, cpupri) they take no notice.
const RT_FIRST: [&dyn SchedClass; CLASSES.len()] = {
    let mut all = CLASSES;
    (all[1], all[2], all[3]) = (CLASSES[3], CLASSES[1], CLASSES[2]);
    all
};

/// Lists what each class asks of a task, and what it is, the highest first.
pub fn about() -> impl Iterator<Item = (&'static str, &'static str)> {
    CLASSES.iter().map(|class| class.about())
}

impl Class {
    /// The implementation of the class.
    #[inline]
    pub(crate) fn of(self) -> &'static dyn SchedClass {
        CLASSES[self as usize]
    }
}

impl Rq<'_, '_> {
    /// `activate_task`: the clamps first, so that cpufreq sees them.
    ///
    /// DEVIATES(uclamp_late_6_12): mainline 6.12 to 6.15 counted a task's clamps after the class had
    /// enqueued it, so that the wakeup's own frequency update missed them. Here it sees them: a clamp
    /// takes effect up to a tick earlier.
    pub(crate) fn activate(&mut self, task: TaskId, kind: EnqueueKind, waking: bool) {
        let cpu = self.cpu;
        let class = self.m().class_of(task);
        self.account_between();
        // A task that is moved asleep, its dequeue delayed, has been counted out.
        let asleep = self.m().task(task).entity.is_some_and(|e| e.sched_delayed);
        self.vendor_before_enqueue(task);
        if self.m().clamps_count(class) && !asleep {
            self.uclamp(task, UclampRq::uclamp_rq_inc);
        }
        class.of().enqueue(self, task, kind, waking);
        if self.m().classes.between {
            self.settle_overcommit();
        }
        // `add_nr_running`
        if !self.m().root.overloaded && self.m().cpu(cpu).nr_running() >= 2 {
            self.set_overloaded(true);
        }
    }

    /// Tells the classes between real-time and fair what the CPU has done since the last time.
    #[inline]
    fn account_between(&mut self) {
        if self.m().classes.between {
            self.account_high();
            self.advance_overcommit();
        }
    }

    /// `deactivate_task`.
    pub(crate) fn deactivate(&mut self, task: TaskId, kind: DequeueKind) {
        let class = self.m().class_of(task);
        self.account_between();
        let moves_asleep = kind == DequeueKind::Migrate
            && self.m().fair_entity(self.cpu, task).is_some_and(|e| e.sched_delayed);
        if self.m().clamps_count(class) && !moves_asleep {
            self.uclamp(task, |rq, task, _| rq.uclamp_rq_dec(task));
        }
        class.of().dequeue(self, task, kind);
    }

    /// Takes the running task off its CPU's queue.
    pub(crate) fn leave_queue(&mut self, task: TaskId, state: State, kind: DequeueKind) {
        self.update_rq_clock();
        self.set_state(task, state);
        self.deactivate(task, kind);
        self.set_need_resched();
    }

    /// `__pick_next_task`.
    pub(crate) fn pick_next_task(&mut self) -> Option<TaskId> {
        self.account_between();
        if self.m().is_plain() && self.m().has_fair_alone(self.cpu) {
            return self.pick_task_fair();
        }
        let classes = if self.m().rules.rt_first { &RT_FIRST } else { &CLASSES };
        let next = classes.iter().find_map(|class| class.pick(self));
        if self.m().classes.between {
            self.arm_overcommit(next);
        }
        next
    }

    /// Tells the governor where the real-time class is asked and has nobody (`pick_next_task_rt`): a fair
    /// task that leaves none but fair ones behind asks its own class alone.
    pub(crate) fn asks_real_time(&mut self, prev: Option<TaskId>) {
        let cpu = self.cpu;
        if prev.is_none_or(|task| !self.m().is_fair(task)) && self.m().has_fair_alone(cpu) {
            self.governor_attends(Occasion::NoRealTime);
        }
    }

    /// Takes the CPU from the previous task (which may be asleep already and off its queue).
    pub(crate) fn put_prev_task(&mut self, prev: Option<TaskId>, next: Option<TaskId>) {
        let Some(prev) = prev else { return };
        self.m().class_of(prev).of().put_prev(self, prev, next);
    }

    /// `yield_task` of the current task: a fair one gives up its request, an RT one goes to the end
    /// of its priority's list, a deadline one waits for its next instance.
    pub(crate) fn yield_task(&mut self) {
        let cpu = self.cpu;
        let Some(curr) = self.m().cpu(cpu).curr else { return };
        self.m().class_of(curr).of().yield_task(self, curr);
    }

    /// `task_tick`.
    pub(crate) fn task_tick(&mut self, curr: TaskId) {
        let cpu = self.cpu;
        let class = self.m().class_of(curr);
        let c = self.m().cpu(cpu);
        let (dl, rt) = (class == Class::Deadline, class.counts_as_rt());
        let (some_dl, some_rt) = (c.dl_avg.util_avg != Util(0), c.rt_avg.util_avg != Util(0));
        if some_dl || some_rt || dl || rt {
            if some_dl || dl {
                self.update_dl(dl);
            }
            if some_rt || rt {
                self.update_rt(rt);
            }
        }
        class.of().tick(self, curr);
        if self.m().classes.between {
            self.tick_high();
            self.tick_overcommit();
        }
    }

    /// `__update_blocked_others`: ages what the other classes have used.
    pub(crate) fn update_others(&mut self) {
        let cpu = self.cpu;
        let c = self.m().cpu(cpu);
        let (dl, rt) = (c.dl_avg.util_avg != Util(0), c.rt_avg.util_avg != Util(0));
        if dl {
            self.update_dl(false);
        }
        if rt {
            self.update_rt(false);
        }
        self.update_pressure();
    }
}

impl Kernel<'_> {
    /// `rto_push_irq_work_func`, on every CPU with RT tasks that wait, or such of SCHED_HIGH.
    pub(crate) fn rto_push(&mut self) {
        self.m.classes.push_rt = false;
        for cpu in (0..self.m.cpus.len() as u32).map(CpuId) {
            if self.m.next_pushable_rt(cpu).is_some() {
                self.rq(cpu).update_rq_clock();
                self.rq(cpu).push_rt_tasks();
            }
            if self.m.classes.between && self.m.waiting_high(cpu).is_some() {
                self.rq(cpu).push_high_task();
            }
        }
    }

    /// `select_task_rq` of a waking task.
    pub(crate) fn select_task_rq(&mut self, task: TaskId, waker: Waker) -> Placed {
        let placed = self.select_task_rq_by_class(task, waker);
        self.m.cpu_decided(Point::Wakeup { task, waker }, placed)
    }

    fn select_task_rq_by_class(&mut self, task: TaskId, waker: Waker) -> Placed {
        let prev = self.m.task(task).cpu;
        let class = self.m.class_of(task);
        if class == Class::Stop {
            return Placed { cpu: prev, why: Why::Affinity };
        } else if class.is_above_fair() && self.m.task(task).is_kthread() && !self.m.classes.used {
            return Placed { cpu: prev, why: Why::PrevCpu };
        }
        self.rq(prev).allow_some(task);
        if let Some(placed) = self.m.cpu_instead(Point::Wakeup { task, waker }) {
            return placed;
        }
        let only = self.m.task(task).nr_cpus_allowed == 1;
        if class == Class::Fair
            && self.m.yes(Point::Step(Step::SyncEntityLoadAvg), !only && self.m.root.asym_cpucap)
        {
            // Both ways look at how its util fits: `find_energy_efficient_cpu`, and
            // `select_idle_sibling` where capacities differ.
            self.rq(prev).sync_entity_load_avg(task);
        }
        if only {
            // No class is asked.
            return if self.m.is_cpu_allowed(task, prev) {
                Placed { cpu: prev, why: Why::PrevCpu }
            } else {
                Placed { cpu: select_fallback_rq(&self.m, task), why: Why::Affinity }
            };
        }
        let fair = class == Class::Fair;
        if fair {
            if let Some(placed) = self.m.cpu_instead(Point::WakeupFair { task, waker }) {
                return placed;
            }
            self.rq(waker.cpu).record_wakee(task);
        }
        let (placement, effects) = (self.placement.as_mut(), &mut self.effects);
        let placed = class.of().select_task_rq(&self.m, placement, task, waker, effects);
        if !fair {
            self.m.classes.take_distribute(effects);
            if class == Class::Deadline && self.m.rules.placement.adapts() {
                self.m.task_mut(task).slots.dl_rules.home = Some(placed.cpu);
            }
            return placed;
        }
        let m = &mut self.m;
        placement_effects(effects, &mut m.root, &mut m.cpus, &mut m.tasks[task.index()]);
        self.m.cpu_decided(Point::WakeupFair { task, waker }, placed)
    }
}

/// `select_task_rq` of a new task, whose parent runs on its CPU, under the same policy: that is
/// where the task has it from.
pub(crate) fn select_task_rq_fork(
    m: &Machine,
    placement: &mut dyn Placement,
    task: TaskId,
    effects: &mut Effects,
) -> Placed {
    m.class_of(task).of().select_task_rq_fork(m, placement, task, effects)
}

/// Stores what the placement of `t` has found out on its way.
#[inline]
fn placement_effects(effects: &mut Effects, root: &mut RootDomain, cpus: &mut [Cpu], t: &mut Task) {
    if let Some(cpu) = effects.recent_used_cpu.take() {
        t.recent_used_cpu = cpu;
    }
    if let Some(cpu) = effects.no_idle_core.take() {
        root.set_idle_cores(&cpus[cpu.index()].place, false);
    }
    take_looks(effects, cpus);
}

impl Rq<'_, '_> {
    /// `wakeup_preempt`: does the newly queued task take the CPU?
    pub(crate) fn wakeup_preempt(&mut self, task: TaskId, fork: bool) {
        let cpu = self.cpu;
        let sure = |yes: bool| if yes { Preempts::Now } else { Preempts::No };
        let preempts = match self.m().cpu(cpu).curr {
            None => Preempts::Now,
            Some(curr) => {
                let (own, class) = (self.m().class_of(curr), self.m().class_of(task));
                let point = Point::WakeupPreempt { cpu, curr, woken: task };
                let instead = self.m().instead(point);
                let preempts = match instead {
                    Some(instead) => sure(instead == Answer::Yes(true)),
                    None if class != own => sure(self.m().class_before(class, own)),
                    None => class.of().wakeup_preempt(self, curr, task, fork),
                };
                let yes = preempts != Preempts::No;
                match self.m().decided(point, Answer::Yes(yes)) {
                    Answer::Yes(other) if other != yes => sure(other),
                    _ => preempts,
                }
            }
        };
        self.take_departed();
        match preempts {
            Preempts::No => {}
            Preempts::Now => self.resched_curr(),
            Preempts::Lazily => self.resched_curr_lazy(),
        }
    }

    /// Lets a task that has woken (`ttwu_do_wakeup`, `wake_up_new_task`), or come to its class,
    /// take the CPU; it may be sent on at once (`task_woken`). One that is pushed, pulled or
    /// balanced to a CPU is not.
    pub(crate) fn wakes(&mut self, task: TaskId, fork: bool) {
        self.wakeup_preempt(task, fork);
        self.m().class_of(task).of().woken(self, task);
    }

    /// `prev_balance`: a CPU whose real-time or deadline task leaves looks for others of them.
    pub(crate) fn prev_balance(&mut self, prev: Option<TaskId>) {
        let Some(prev) = prev.filter(|_| self.m().classes.used) else { return };
        self.m().class_of(prev).of().balance(self, prev);
        if self.m().classes.between {
            self.pull_high_task();
        }
    }

    /// `set_next_task`: `task` has the CPU from now on.
    pub(crate) fn set_next_task(&mut self, task: TaskId) {
        let c = self.c();
        c.exec_start = c.clock.clock_task.0;
        self.m().class_of(task).of().set_next(self, task);
    }
}

impl Machine {
    /// Whether no other class has anything queued on `cpu`, a server included: none has anything to
    /// pick, or to charge before it picks (`__pick_next_task` asks for `rq->nr_running ==
    /// rq->cfs.h_nr_queued`).
    #[inline]
    fn has_fair_alone(&self, cpu: CpuId) -> bool {
        let c = self.cpu(cpu);
        let between = self.classes.between || self.slots.muqss.is_some();
        let stops = c.stopper.as_ref().is_some_and(|s| s.queued());
        c.dl.first().is_none() && c.rt.is_empty() && !between && !stops
    }

    /// Whether the clamps of a queued task of this class count on its CPU (`uclamp_enabled`). Those
    /// of RT tasks, which have a default, do not before anybody has asked for clamps; where nobody
    /// ever does, nobody's do (`sched_uclamp_used`).
    pub(super) fn clamps_count(&self, class: Class) -> bool {
        (matches!(class, Class::Fair | Class::High) && !self.is_plain())
            || (class.is_real_time() && self.classes.uclamp_used)
    }
}

impl Rq<'_, '_> {
    /// A task whose affinity leaves no CPU that is online may run on all.
    pub(crate) fn allow_some(&mut self, task: TaskId) {
        let t = self.m().task(task);
        if t.nr_cpus_allowed as usize == self.m().cpus.len() {
            return;
        }
        if !t.allowed.intersects(&self.m().root.online) {
            let all = CpuSet::first(self.m().cpus.len());
            self.set_allowed(task, all);
            self.tell_max_speed(task);
        }
    }
}
