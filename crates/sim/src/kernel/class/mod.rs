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
//! The fair class has a deadline server ([dl_server]) that lets it in where real-time tasks starve
//! it; before 6.12 they are throttled instead.
//!
//! Source: kernel/sched/core.c:__pick_next_task, wakeup_preempt, __setscheduler;
//! kernel/sched/syscalls.c:__sched_setscheduler. Leaves out: sched_ext, priority inheritance,
//! core scheduling.

mod cpudl;
mod cpupri;
mod deadline;
mod dl_push;
pub(crate) mod dl_server;
mod rt;
mod rt_push;
mod setscheduler;
pub(crate) mod stop;
mod timers;

use crate::kernel::Kernel;
use crate::kernel::class::dl_push::select_task_rq_dl;
use crate::kernel::class::rt_push::select_task_rq_rt;
use crate::kernel::class::rt_push::select_task_rq_rt_fork;
use crate::kernel::fair::Join;
use crate::kernel::placement::{Placed, Placement, Waker, select_fallback_rq};
use crate::kernel::policy::take_looks;
use crate::kernel::rq::Rq;
use crate::state::class::Class;
use crate::state::class::fair_policy;
use crate::state::cpuset::CpuSet;
use crate::state::effects::Effects;
use crate::state::hooks::Answer;
use crate::state::hooks::Point;
use crate::state::hooks::Step;
use crate::state::machine::Cpu;
use crate::state::machine::Machine;
use crate::state::machine::RootDomain;
use crate::state::machine::State;
use crate::state::machine::Task;
use crate::state::tracker::Heard;
use risetime_kernel::cfs_rq::is_cfs;
use risetime_kernel::deadline::DlId;
use risetime_kernel::eevdf::{DequeueKind, EnqueueKind, EntityId, FairPolicy, Wakeup};
use risetime_kernel::units::{GroupId, TaskId, Util};
use risetime_trace::{Event, Why};

impl Rq<'_, '_> {
    /// `activate_task`: the clamps first, so that cpufreq sees them.
    ///
    /// DEVIATES(uclamp_late_6_12): mainline 6.12 to 6.15 counted a task's clamps after the class had
    /// enqueued it, so that the wakeup's own frequency update missed them. Here it sees them: a clamp
    /// takes effect up to a tick earlier.
    pub(crate) fn activate(&mut self, task: TaskId, kind: EnqueueKind, waking: bool) {
        let cpu = self.cpu;
        let class = self.m().class_of(task);
        if self.m().clamps_count(class) {
            let m = self.parts();
            let (c, t) = (m.c, &mut m.tasks[task.index()]);
            c.uclamp.uclamp_rq_inc(&mut t.uclamp, &t.limits);
        }
        match class {
            Class::Stop => self.queue_stopper(true),
            Class::Deadline => self.activate_dl(task, kind),
            Class::Rt => self.enqueue_task_rt(task, false),
            Class::Fair => {
                self.track(Heard::Enqueue { cpu, task, new: kind == EnqueueKind::Initial });
                let starved = self.m().cpu(cpu).h_nr_queued() == 0;
                self.enqueue_task_fair(task, kind, waking);
                if starved {
                    self.dl_server_start();
                }
            }
        }
        // `add_nr_running`
        if self.m().cpu(cpu).nr_running() >= 2 {
            self.set_overloaded(true);
        }
    }

    /// `deactivate_task`.
    pub(crate) fn deactivate(&mut self, task: TaskId, kind: DequeueKind) {
        let cpu = self.cpu;
        let class = self.m().class_of(task);
        if self.m().clamps_count(class) {
            let m = self.parts();
            let (c, t) = (m.c, &mut m.tasks[task.index()]);
            c.uclamp.uclamp_rq_dec(&mut t.uclamp);
        }
        match class {
            Class::Stop => self.queue_stopper(false),
            Class::Deadline => self.deactivate_dl(task, kind),
            Class::Rt => self.dequeue_task_rt(task),
            Class::Fair => {
                let sleeps = matches!(kind, DequeueKind::Sleep | DequeueKind::SleepSpecial);
                self.track(Heard::Dequeue { cpu, task, sleeps });
                self.dequeue_task_fair(task, kind);
            }
        }
    }

    /// Among fair tasks the policies, the slices and what each has had decide, where the two compete.
    fn wakeup_preempt_fair(&mut self, curr: TaskId, task: TaskId, fork: bool) -> bool {
        let cpu = self.cpu;
        let due = self.m().is_resched_due(cpu);
        let policy = |task: TaskId| match self.m().does(Step::TaskPolicyPreempts) {
            true => fair_policy(self.m().task(task).sched.policy),
            false => FairPolicy::Normal,
        };
        let wakeup = Wakeup { fork, due, woken: policy(task), running: policy(curr) };
        if self.m().groups.nested {
            return self.preempts_nested(curr, task, &wakeup);
        }
        let preempts = self.c().cfs.wakeup_preempt_by(task, &wakeup);
        self.after_wakeup_check(GroupId::ROOT, preempts);
        preempts
    }

    /// `__pick_next_task`.
    pub(crate) fn pick_next_task(&mut self) -> Option<TaskId> {
        let cpu = self.cpu;
        if let Some(stopper) = self.m().pick_task_stop(cpu) {
            return Some(stopper);
        }
        while let Some(first) = self.m().cpu(cpu).dl.first() {
            match first {
                DlId::Task(task) => return Some(task),
                DlId::FairServer => match self.pick_task_fair() {
                    Some(task) => return Some(task),
                    None => self.dl_server_stop(),
                },
            }
        }
        let c = self.m().cpu(cpu);
        if let Some((_, task)) = c.rt.first().filter(|_| !c.rt_throttle.throttled) {
            return Some(task);
        }
        self.pick_task_fair()
    }

    fn pick_task_fair(&mut self) -> Option<TaskId> {
        let cpu = self.cpu;
        let picked = self.pick_task_fair_itself();
        match self.m().decided(Point::Pick { cpu }, Answer::Task(picked)) {
            Answer::Task(picked) => picked,
            _ => picked,
        }
    }

    fn pick_task_fair_itself(&mut self) -> Option<TaskId> {
        let cpu = self.cpu;
        let instead = |k: &Self| match k.m().instead(Point::Pick { cpu }) {
            Some(Answer::Task(first)) => first,
            _ => None,
        };
        if let Some(first) = instead(self) {
            let group = self.m().task(first).group;
            self.update_curr(group);
            self.check_all_runtime(group);
            if instead(self) == Some(first) {
                return Some(first);
            }
        }
        if self.m().groups.nested {
            return self.pick_nested();
        }
        let picked = self.c().cfs.pick();
        self.take_departed();
        picked.and_then(EntityId::as_task)
    }

    /// The previous task leaves the CPU (it may be asleep already and off its queue).
    pub(crate) fn put_prev_task(&mut self, prev: Option<TaskId>, next: Option<TaskId>) {
        let cpu = self.cpu;
        let Some(prev) = prev else { return };
        match self.m().class_of(prev) {
            Class::Stop => {}
            Class::Deadline => {
                self.update_curr_dl();
                self.update_dl(true);
            }
            Class::Rt => {
                self.update_curr_rt();
                self.update_rt(true);
            }
            Class::Fair if next != Some(prev) => {
                let group = self.m().task(prev).group;
                if self.m().queue(cpu, group).curr().is_some_and(|e| e.id == prev) {
                    self.update_curr(group);
                    self.check_cfs_rq_runtime(group);
                    self.update_load_avg(prev, Join::Stay);
                    self.queue_mut(group).put_prev();
                }
                if self.m().groups.on() {
                    let next = next.filter(|next| self.m().is_fair(*next));
                    self.put_prev_parents(group, next.map(|next| self.m().task(next).group));
                }
            }
            Class::Fair => {}
        }
    }

    /// `yield_task` of the current task: a fair one gives up its request, an RT one goes to the end
    /// of its priority's list, a deadline one waits for its next instance.
    pub(crate) fn yield_task(&mut self) {
        let cpu = self.cpu;
        let Some(curr) = self.m().cpu(cpu).curr else { return };
        match self.m().class_of(curr) {
            Class::Deadline => {
                self.dl_mut(curr).yielded = true;
                self.update_curr_dl();
            }
            Class::Rt => self.c().rt.requeue(curr, false),
            Class::Fair if self.m().cpu(cpu).nr_running() > 1 => {
                self.account_anew();
                let group = self.m().task(curr).group;
                if self.m().groups.nested && is_cfs(self.m().rev) {
                    self.yield_grouped(curr);
                } else {
                    self.clear_buddies(group, curr.into());
                    self.queue_mut(group).yield_task();
                }
            }
            Class::Stop | Class::Fair => {}
        }
    }

    /// `task_tick`.
    pub(crate) fn task_tick(&mut self, curr: TaskId) {
        let cpu = self.cpu;
        let class = self.m().class_of(curr);
        let c = self.m().cpu(cpu);
        let (dl, rt) = (class == Class::Deadline, class == Class::Rt);
        let (some_dl, some_rt) = (c.dl_avg.util_avg != Util(0), c.rt_avg.util_avg != Util(0));
        if some_dl || some_rt || dl || rt {
            if some_dl || dl {
                self.update_dl(dl);
            }
            if some_rt || rt {
                self.update_rt(rt);
            }
        }
        match class {
            Class::Stop => {}
            Class::Deadline => self.update_curr_dl(),
            Class::Rt => self.task_tick_rt(curr),
            Class::Fair => {
                self.track(Heard::Tick { cpu, task: curr });
                self.dl_server_update();
                self.task_tick_fair(curr);
            }
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
        } else if class != Class::Fair && self.m.task(task).is_kthread() && !self.m.classes.used {
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
        match class {
            Class::Stop => Placed { cpu: prev, why: Why::Affinity },
            Class::Deadline => {
                let placed = select_task_rq_dl(&self.m, task, waker.cpu, &mut self.effects);
                self.m.classes.take_distribute(&mut self.effects);
                placed
            }
            Class::Rt => {
                let placed = select_task_rq_rt(&self.m, task, waker.cpu, &mut self.effects);
                self.m.classes.take_distribute(&mut self.effects);
                placed
            }
            Class::Fair => {
                if let Some(placed) = self.m.cpu_instead(Point::WakeupFair { task, waker }) {
                    return placed;
                }
                self.rq(waker.cpu).record_wakee(task);
                let placed = self.placement.wake(&self.m, task, waker, &mut self.effects);
                let (effects, m) = (&mut self.effects, &mut self.m);
                let t = &mut m.tasks[task.index()];
                placement_effects(effects, &mut m.root, &mut m.cpus, t);
                self.m.cpu_decided(Point::WakeupFair { task, waker }, placed)
            }
        }
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
    match m.class_of(task) {
        Class::Rt => select_task_rq_rt_fork(m, task, effects),
        Class::Stop | Class::Deadline | Class::Fair => placement.fork(m, task),
    }
}

/// What the placement of `t` has found out on its way.
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
        let mut fair = false;
        let preempts = match self.m().cpu(cpu).curr {
            None => true,
            Some(curr) => {
                let (own, class) = (self.m().class_of(curr), self.m().class_of(task));
                let point = Point::WakeupPreempt { cpu, curr, woken: task };
                let instead = self.m().instead(point);
                let preempts = match class {
                    _ if instead.is_some() => instead == Some(Answer::Yes(true)),
                    _ if class != own => class < own,
                    Class::Stop => false,
                    Class::Deadline => self.wakeup_preempt_dl(curr, task),
                    Class::Rt => self.wakeup_preempt_rt(curr, task),
                    Class::Fair => {
                        fair = true;
                        self.wakeup_preempt_fair(curr, task, fork)
                    }
                };
                self.m().decided(point, Answer::Yes(preempts)) == Answer::Yes(true)
            }
        };
        self.take_departed();
        if preempts && fair {
            self.resched_curr_lazy();
        } else if preempts {
            self.resched_curr();
        }
        // `task_woken`
        match self.m().class_of(task) {
            Class::Deadline => self.task_woken_dl(task),
            Class::Rt => self.task_woken_rt(task),
            Class::Stop | Class::Fair => {}
        }
    }

    /// `prev_balance`: a CPU whose real-time or deadline task leaves looks for others of them.
    pub(crate) fn prev_balance(&mut self, prev: Option<TaskId>) {
        let cpu = self.cpu;
        let Some(prev) = prev.filter(|_| self.m().classes.used) else { return };
        if self.m().class_of(prev) == Class::Deadline {
            if !self.m().cpu(cpu).dl.contains(DlId::Task(prev)) {
                self.pull_dl_task();
            }
            if self.m().cpu(cpu).dl.is_empty() {
                self.pull_rt_task();
            }
        } else if self.m().class_of(prev) == Class::Rt {
            let runs = |e: &Self| e.m().cpu(cpu).rt.first().map_or(0, |(priority, _)| priority);
            let left =
                self.m().task(prev).state != State::Runnable || self.m().task(prev).cpu != cpu;
            if left && runs(self) < self.m().rt_rank(prev) {
                self.pull_rt_task();
            }
        }
    }

    /// `set_next_task`: `task` has the CPU from now on.
    pub(crate) fn set_next_task(&mut self, task: TaskId) {
        let c = self.c();
        c.exec_start = c.clock.clock_task.0;
        match self.m().class_of(task) {
            Class::Stop => {}
            Class::Deadline => {
                self.update_dl(false);
                self.push_dl_tasks();
            }
            Class::Rt => {
                self.update_rt(false);
                self.push_rt_tasks();
            }
            Class::Fair => {
                // Until now it was queued, not running (`set_next_entity`).
                self.update_load_avg(task, Join::Stay);
                self.set_next_task_fair(task);
                self.list(task);
                self.update_misfit_status(Some(task));
            }
        }
    }

    /// Tells the trace of the policy that a task is under now.
    pub(crate) fn emit_policy(&mut self, task: TaskId) {
        if self.m().task(task).state != State::New {
            let policy = self.m().task(task).sched.policy;
            self.emit(Event::Policy { task, policy });
        }
    }
}

impl Machine {
    /// Whether the clamps of a queued task of this class count on its CPU (`uclamp_enabled`). Those
    /// of RT tasks, which have a default, do not before anybody has asked for clamps; where nobody
    /// ever does, nobody's do (`sched_uclamp_used`).
    pub(super) fn clamps_count(&self, class: Class) -> bool {
        (class == Class::Fair && !self.is_plain())
            || (class == Class::Rt && self.classes.uclamp_used)
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
            let max_speed = self.m().max_speed(task);
            self.t(task).max_speed = max_speed;
            self.emit(Event::MaxSpeed { task, max_speed });
        }
    }
}
