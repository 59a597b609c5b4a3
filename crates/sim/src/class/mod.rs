//! The scheduling classes, and what core asks each of them.
//!
//! ```text
//!            stop              deadline          real-time         fair              idle
//! enqueue    [stop]            [deadline]        [rt]              [crate::fair]     -
//! pick       migration/N       earliest deadline highest priority  EEVDF             nothing to run
//! wakeup     a higher class preempts a lower one; within one class it decides itself
//! placement  its own CPU       [dl_push]         [rt_push]         [crate::placement]
//! too many   -                 pushed, pulled    pushed, pulled    [crate::balance]
//! ```
//!
//! The fair class has a deadline server ([dl_server]) that lets it in where real-time tasks starve
//! it; before 6.12 they are throttled instead.
//!
//! Source: kernel/sched/core.c:__pick_next_task, wakeup_preempt, __setscheduler;
//! kernel/sched/syscalls.c:__sched_setscheduler. Leaves out: sched_ext, priority inheritance,
//! core scheduling.

mod deadline;
mod dl_push;
mod dl_server;
mod rt;
mod rt_push;
mod setscheduler;
pub(crate) mod stop;
mod timers;

pub(crate) use setscheduler::{fair_policy, load_of};
pub(crate) use timers::ClassTimer;

use crate::engine::Engine;
use crate::fair::Join;
use crate::machine::{Machine, State};
use crate::mutant::Mutant;
use crate::placement::{Placed, Waker, select_fallback_rq};
use risetime_kernel::cfs_rq::is_cfs;
use risetime_kernel::deadline::{DlEntity, DlId};
use risetime_kernel::eevdf::{DequeueKind, EnqueueKind, EntityId, FairPolicy, Wakeup};
use risetime_kernel::rt::{RtPriority, rr_timeslice};
use risetime_kernel::units::{CpuId, GroupId, Instant, Span, TaskId, Util};
use risetime_model::Experiment;
use risetime_model::workload::Policy;
use risetime_trace::{Event, Why};

/// The setting that says how big a CPU an RT task gets that does not say so itself.
pub(crate) const RT_UCLAMP_MIN: &str = "sched_util_clamp_min_rt_default";

/// The class of a task, the highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Stop,
    Deadline,
    Rt,
    Fair,
}

/// A task's policy and what its class keeps of it.
pub(crate) struct Sched {
    /// In force.
    pub(crate) policy: Policy,
    /// Its reservation, also while it is of another class again.
    pub(crate) dl: Option<Box<DlEntity>>,
    /// `p->rt.time_slice`, in ticks.
    pub(crate) rr_left: u32,
    /// Asked for at creation, taken on by the task itself when it first runs: no thread can be
    /// created as a deadline task.
    pub(crate) takes: Option<Policy>,
    /// That its runtime is used up is in the trace.
    pub(crate) told_throttled: bool,
    /// It is a CPU's stopper, whatever its policy (`stop_sched_class`).
    pub(crate) stop: bool,
    /// `uclamp_min` was asked for (`user_defined`), so that the RT default does not apply.
    pub(crate) min_asked: bool,
}

impl Sched {
    /// A task of nice 0.
    pub(crate) fn new() -> Sched {
        Sched {
            policy: Policy::Other { slice: None },
            dl: None,
            rr_left: 0,
            takes: None,
            told_throttled: false,
            stop: false,
            min_asked: false,
        }
    }
    /// A kthread that changes frequencies.
    pub(crate) fn sugov() -> Sched {
        let entity = DlEntity::sugov();
        let p = entity.params;
        let policy = Policy::Deadline {
            runtime: p.runtime,
            deadline: p.deadline,
            period: p.period,
            reclaim: false,
        };
        Sched { policy, dl: Some(Box::new(entity)), ..Sched::new() }
    }
    pub(crate) fn class(&self) -> Class {
        match self.policy {
            _ if self.stop => Class::Stop,
            Policy::Deadline { .. } => Class::Deadline,
            Policy::Fifo { .. } | Policy::Rr { .. } => Class::Rt,
            Policy::Other { .. } | Policy::Batch { .. } | Policy::Idle => Class::Fair,
        }
    }
    /// Its real-time priority; 0: it is no RT task.
    pub(crate) fn rt_priority(&self) -> RtPriority {
        match self.policy {
            Policy::Fifo { priority } | Policy::Rr { priority } => priority,
            _ => 0,
        }
    }
}

/// What the classes above the fair one share on the whole machine.
pub(crate) struct Classes {
    /// Some task of the workload is of another class than the fair one.
    pub(crate) used: bool,
    /// Some task is of SCHED_IDLE, or in a group whose tasks count as such.
    pub(crate) idle_used: bool,
    /// `sched_uclamp_used`: some task asks for clamps, or a group limits them.
    pub(crate) uclamp_used: bool,
    /// `sched_util_clamp_min_rt_default`.
    pub(crate) rt_uclamp_min: Util,
    /// `sched_rr_timeslice`, in ticks.
    pub(crate) rr_timeslice: u32,
    /// When the RT period timer expires next; `None`: it is off.
    pub(crate) rt_period: Option<Instant>,
    /// `dl_bw.total_bw`.
    pub(crate) total_bw: u64,
    /// Capacity of all CPUs.
    pub(crate) total_capacity: u64,
    /// CPUs that have RT tasks to push and got asked to (`rto_mask`, walked after this event).
    pub(crate) push_rt: bool,
    /// `distribute_cpu_mask_prev`, by CPU.
    pub(crate) distribute: Vec<CpuId>,
}

impl Classes {
    pub(crate) fn of(e: &Experiment) -> Classes {
        let attrs = || {
            let tasks = e.workload.tasks.iter().chain(&e.workload.forked);
            tasks.flat_map(|t| std::iter::once(&t.attr).chain(t.phases.iter().map(|p| &p.attr)))
        };
        let clamp = |name: &str| e.settings.int(name).is_some();
        let capacity =
            |cpu| e.platform.domain_of(cpu).map_or(0, |d| e.platform.domains[d].capacity.0);
        Classes {
            used: attrs().any(|a| a.policy.is_some_and(|p| !p.is_fair())),
            idle_used: attrs().any(|a| a.policy == Some(Policy::Idle))
                || e.workload.groups.iter().any(|g| g.idle),
            uclamp_used: clamp("uclamp_min")
                || clamp("uclamp_max")
                || attrs().any(|a| a.uclamp_min.is_some() || a.uclamp_max.is_some())
                || e.workload.groups.iter().any(|g| g.uclamp_min.0 > 0 || g.uclamp_max.0 < 1024),
            rt_uclamp_min: setscheduler::rt_uclamp_min(e.settings.int(RT_UCLAMP_MIN)),
            rr_timeslice: rr_timeslice(e.platform.hz),
            rt_period: None,
            total_bw: 0,
            total_capacity: e.platform.cpus().map(capacity).sum(),
            push_rt: false,
            distribute: vec![CpuId(0); e.platform.nr_cpus()],
        }
    }
}

impl Machine {
    /// Whether it counts in `h_nr_idle`: by its policy, or by that of one of its groups.
    pub(crate) fn is_sched_idle(&self, task: TaskId) -> bool {
        let t = self.task(task);
        t.sched.policy == Policy::Idle || self.groups.is_idle(t.group)
    }
    pub(crate) fn class_of(&self, task: TaskId) -> Class {
        self.task(task).sched.class()
    }
    /// Its priority among RT tasks, a deadline task's above all of them and a fair one's below.
    pub(crate) fn rt_rank(&self, task: TaskId) -> u8 {
        let sched = &self.task(task).sched;
        if sched.class() == Class::Deadline { u8::MAX } else { sched.rt_priority() }
    }
    /// Its reservation. Only deadline tasks are asked.
    pub(crate) fn dl(&self, task: TaskId) -> &DlEntity {
        self.task(task).sched.dl.as_deref().expect("a deadline task has a reservation")
    }
    pub(crate) fn dl_mut(&mut self, task: TaskId) -> &mut DlEntity {
        self.task_mut(task).sched.dl.as_deref_mut().expect("a deadline task has a reservation")
    }
}

impl Engine<'_> {
    /// Whether the task is of the fair class.
    pub(crate) fn is_fair(&self, task: TaskId) -> bool {
        self.m.class_of(task) == Class::Fair
    }

    /// `select_task_rq` of a waking task.
    pub(crate) fn select_task_rq(&mut self, task: TaskId, waker: Waker) -> Placed {
        let prev = self.m.task(task).cpu;
        let class = self.m.class_of(task);
        if class == Class::Stop {
            return Placed { cpu: prev, why: Why::Affinity };
        } else if class != Class::Fair && self.m.task(task).is_kthread() && !self.m.classes.used {
            return Placed { cpu: prev, why: Why::PrevCpu };
        }
        self.allow_some(task);
        if let Some(cpu) = self.given_wakeup(task) {
            return Placed { cpu, why: Why::Given };
        }
        let only = self.m.task(task).nr_cpus_allowed == 1;
        if class == Class::Fair
            && (self.m.is(Mutant::SyncedAlways) || !only && self.m.root.asym_cpucap)
        {
            // Both ways look at how its util fits: `find_energy_efficient_cpu`, and
            // `select_idle_sibling` where capacities differ.
            self.sync_entity_load_avg(task);
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
            Class::Deadline => self.select_task_rq_dl(task, waker.cpu),
            Class::Rt => self.select_task_rq_rt(task, waker.cpu),
            Class::Fair if self.m.is(Mutant::WakesOnPrev) => {
                let cpu = select_fallback_rq(&self.m, task);
                let allowed = self.m.is_cpu_allowed(task, prev);
                Placed { cpu: if allowed { prev } else { cpu }, why: Why::PrevCpu }
            }
            Class::Fair => {
                self.record_wakee(task, waker);
                self.placement.wake(&self.m, task, waker)
            }
        }
    }

    /// `select_task_rq` of a new task, whose parent runs on its CPU, under the same policy: that is
    /// where the task has it from.
    pub(crate) fn select_task_rq_fork(&mut self, task: TaskId) -> Placed {
        match self.m.class_of(task) {
            Class::Rt => self.select_task_rq_rt_fork(task),
            Class::Fair if self.m.is(Mutant::ForksStay) => {
                let parent = Placed { cpu: self.m.task(task).cpu, why: Why::PrevCpu };
                self.within_allowed(task, parent)
            }
            Class::Stop | Class::Deadline | Class::Fair => self.placement.fork(&self.m, task),
        }
    }

    /// `activate_task`: the clamps first, so that cpufreq sees them.
    ///
    /// DEVIATES(uclamp_late_6_12): mainline 6.12 to 6.15 counted a task's clamps after the class had
    /// enqueued it, so that the wakeup's own frequency update missed them. Here it sees them: a clamp
    /// takes effect up to a tick earlier.
    pub(crate) fn activate(&mut self, cpu: CpuId, task: TaskId, kind: EnqueueKind, waking: bool) {
        let class = self.m.class_of(task);
        if self.clamps_count(class) {
            let (c, t) = (&mut self.m.cpus[cpu.index()], &mut self.m.tasks[task.index()]);
            c.uclamp.uclamp_rq_inc(&mut t.uclamp, &t.limits);
        }
        match class {
            Class::Stop => self.queue_stopper(cpu, true),
            Class::Deadline => self.activate_dl(cpu, task, kind),
            Class::Rt => self.enqueue_task_rt(cpu, task, false),
            Class::Fair => {
                let starved = self.m.cpu(cpu).h_nr_queued() == 0;
                self.enqueue_task_fair(cpu, task, kind, waking);
                if starved {
                    self.dl_server_start(cpu);
                }
            }
        }
        // `add_nr_running`
        if self.m.cpu(cpu).nr_running() >= 2 {
            self.m.root.overloaded = true;
        }
    }

    /// Whether the clamps of a queued task of this class count on its CPU (`uclamp_enabled`). Those
    /// of RT tasks, which have a default, do not before anybody has asked for clamps; where nobody
    /// ever does, nobody's do (`sched_uclamp_used`).
    pub(super) fn clamps_count(&self, class: Class) -> bool {
        (class == Class::Fair && !self.m.is_plain())
            || (class == Class::Rt && self.m.classes.uclamp_used)
    }

    /// `deactivate_task`.
    pub(crate) fn deactivate(&mut self, cpu: CpuId, task: TaskId, kind: DequeueKind) {
        let class = self.m.class_of(task);
        if self.clamps_count(class) {
            let (c, t) = (&mut self.m.cpus[cpu.index()], &mut self.m.tasks[task.index()]);
            c.uclamp.uclamp_rq_dec(&mut t.uclamp);
        }
        match class {
            Class::Stop => self.queue_stopper(cpu, false),
            Class::Deadline => self.deactivate_dl(cpu, task, kind),
            Class::Rt => self.dequeue_task_rt(cpu, task),
            Class::Fair => self.dequeue_task_fair(cpu, task, kind),
        }
    }

    /// `wakeup_preempt`: does the newly queued task take the CPU?
    pub(crate) fn wakeup_preempt(&mut self, cpu: CpuId, task: TaskId, fork: bool) {
        let mut fair = false;
        let preempts = match self.m.cpu(cpu).curr {
            None => true,
            Some(curr) => {
                let (own, class) = (self.m.class_of(curr), self.m.class_of(task));
                match class {
                    Class::Rt if own == Class::Fair && self.m.is(Mutant::RtWaits) => false,
                    _ if class != own => class < own,
                    Class::Stop => false,
                    Class::Deadline => self.wakeup_preempt_dl(cpu, curr, task),
                    Class::Rt => self.wakeup_preempt_rt(cpu, curr, task),
                    Class::Fair if self.first_in_line(cpu).is_some() => {
                        self.first_in_line(cpu) != Some(curr)
                    }
                    Class::Fair => {
                        fair = true;
                        self.wakeup_preempt_fair(cpu, curr, task, fork)
                    }
                }
            }
        };
        self.take_departed(cpu);
        if preempts && fair {
            self.resched_curr_lazy(cpu);
        } else if preempts {
            self.resched_curr(cpu);
        }
        // `task_woken`
        match self.m.class_of(task) {
            Class::Deadline => self.task_woken_dl(cpu, task),
            Class::Rt => self.task_woken_rt(cpu, task),
            Class::Stop | Class::Fair => {}
        }
    }

    /// Among fair tasks the policies, the slices and what each has had decide, where the two compete.
    fn wakeup_preempt_fair(&mut self, cpu: CpuId, curr: TaskId, task: TaskId, fork: bool) -> bool {
        if self.m.is(Mutant::NoWakeupPreemption) {
            return false;
        }
        let due = self.is_resched_due(cpu);
        let policy = |task: TaskId| match self.m.is(Mutant::GroupPolicyDecides) {
            true => FairPolicy::Normal,
            false => fair_policy(self.m.task(task).sched.policy),
        };
        let wakeup = Wakeup { fork, due, woken: policy(task), running: policy(curr) };
        if self.m.groups.nested {
            return self.preempts_nested(cpu, curr, task, &wakeup);
        }
        let preempts = self.m.cpu_mut(cpu).cfs.wakeup_preempt_by(task, &wakeup);
        self.after_wakeup_check(cpu, GroupId::ROOT, preempts);
        preempts
    }

    /// `prev_balance`: a CPU whose real-time or deadline task leaves looks for others of them.
    pub(crate) fn prev_balance(&mut self, cpu: CpuId, prev: Option<TaskId>) {
        let Some(prev) = prev.filter(|_| self.m.classes.used) else { return };
        if self.m.class_of(prev) == Class::Deadline {
            if !self.m.cpu(cpu).dl.contains(DlId::Task(prev)) {
                self.pull_dl_task(cpu);
            }
            if self.m.cpu(cpu).dl.is_empty() {
                self.pull_rt_task(cpu);
            }
        } else if self.m.class_of(prev) == Class::Rt {
            let runs = |e: &Self| e.m.cpu(cpu).rt.first().map_or(0, |(priority, _)| priority);
            let left = self.m.task(prev).state != State::Runnable || self.m.task(prev).cpu != cpu;
            if left && runs(self) < self.m.rt_rank(prev) {
                self.pull_rt_task(cpu);
            }
        }
    }

    /// `__pick_next_task`.
    pub(crate) fn pick_next_task(&mut self, cpu: CpuId) -> Option<TaskId> {
        if let Some(stopper) = self.pick_task_stop(cpu) {
            return Some(stopper);
        }
        while let Some(first) = self.m.cpu(cpu).dl.first() {
            match first {
                DlId::Task(task) => return Some(task),
                DlId::FairServer => match self.pick_task_fair(cpu) {
                    Some(task) => return Some(task),
                    None => self.dl_server_stop(cpu),
                },
            }
        }
        let c = self.m.cpu(cpu);
        if let Some((_, task)) = c.rt.first().filter(|_| !c.rt_throttle.throttled) {
            return Some(task);
        }
        self.pick_task_fair(cpu)
    }

    fn pick_task_fair(&mut self, cpu: CpuId) -> Option<TaskId> {
        if let Some(first) = self.first_in_line(cpu) {
            let group = self.m.task(first).group;
            self.update_curr(cpu, group);
            self.check_all_runtime(cpu, group);
            if self.first_in_line(cpu) == Some(first) {
                return Some(first);
            }
        }
        if self.m.groups.nested {
            return self.pick_nested(cpu);
        }
        let picked = self.m.cpu_mut(cpu).cfs.pick();
        self.take_departed(cpu);
        picked.and_then(EntityId::as_task)
    }

    /// The previous task leaves the CPU (it may be asleep already and off its queue).
    pub(crate) fn put_prev_task(&mut self, cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>) {
        let Some(prev) = prev else { return };
        match self.m.class_of(prev) {
            Class::Stop => {}
            Class::Deadline => {
                self.update_curr_dl(cpu);
                self.update_dl(cpu, true);
            }
            Class::Rt => {
                self.update_curr_rt(cpu);
                self.update_rt(cpu, true);
            }
            Class::Fair if next != Some(prev) => {
                let group = self.m.task(prev).group;
                if self.m.queue(cpu, group).curr().is_some_and(|e| e.id == prev) {
                    self.update_curr(cpu, group);
                    self.check_cfs_rq_runtime(cpu, group);
                    self.update_load_avg(cpu, prev, Join::Stay);
                    self.m.queue_mut(cpu, group).put_prev();
                }
                if self.m.groups.on() {
                    let next = next.filter(|next| self.is_fair(*next));
                    self.put_prev_parents(cpu, group, next.map(|next| self.m.task(next).group));
                }
            }
            Class::Fair => {}
        }
    }

    /// `set_next_task`: `task` has the CPU from now on.
    pub(crate) fn set_next_task(&mut self, cpu: CpuId, task: TaskId) {
        let c = self.m.cpu_mut(cpu);
        c.exec_start = c.clock.clock_task.0;
        match self.m.class_of(task) {
            Class::Stop => {}
            Class::Deadline => {
                self.update_dl(cpu, false);
                self.push_dl_tasks(cpu);
            }
            Class::Rt => {
                self.update_rt(cpu, false);
                self.push_rt_tasks(cpu);
            }
            Class::Fair => {
                // Until now it was queued, not running (`set_next_entity`).
                self.update_load_avg(cpu, task, Join::Stay);
                self.set_next_task_fair(cpu, task);
                self.list(task);
                self.update_misfit_status(cpu, Some(task));
            }
        }
    }

    /// `yield_task` of the current task: a fair one gives up its request, an RT one goes to the end
    /// of its priority's list, a deadline one waits for its next instance.
    pub(crate) fn yield_task(&mut self, cpu: CpuId) {
        let Some(curr) = self.m.cpu(cpu).curr else { return };
        match self.m.class_of(curr) {
            Class::Deadline => {
                self.m.dl_mut(curr).yielded = true;
                self.update_curr_dl(cpu);
            }
            Class::Rt => self.m.cpu_mut(cpu).rt.requeue(curr, false),
            Class::Fair if self.m.cpu(cpu).nr_running() > 1 => {
                self.account_anew(cpu);
                let group = self.m.task(curr).group;
                if self.m.groups.nested && is_cfs(self.m.rev) {
                    self.yield_grouped(cpu, curr);
                } else {
                    self.clear_buddies(cpu, group, curr.into());
                    self.m.queue_mut(cpu, group).yield_task();
                }
            }
            Class::Stop | Class::Fair => {}
        }
    }

    /// `task_tick`.
    pub(crate) fn task_tick(&mut self, cpu: CpuId, curr: TaskId) {
        let class = self.m.class_of(curr);
        let c = self.m.cpu(cpu);
        let (dl, rt) = (class == Class::Deadline, class == Class::Rt);
        let (some_dl, some_rt) = (c.dl_avg.util_avg != Util(0), c.rt_avg.util_avg != Util(0));
        if some_dl || some_rt || dl || rt {
            if some_dl || dl {
                self.update_dl(cpu, dl);
            }
            if some_rt || rt {
                self.update_rt(cpu, rt);
            }
        }
        match class {
            Class::Stop => {}
            Class::Deadline => self.update_curr_dl(cpu),
            Class::Rt => self.task_tick_rt(cpu, curr),
            Class::Fair => {
                self.dl_server_update(cpu);
                self.task_tick_fair(cpu, curr);
            }
        }
    }

    /// `__update_blocked_others`: ages what the other classes have used.
    pub(crate) fn update_others(&mut self, cpu: CpuId) {
        let c = self.m.cpu(cpu);
        let (dl, rt) = (c.dl_avg.util_avg != Util(0), c.rt_avg.util_avg != Util(0));
        if dl {
            self.update_dl(cpu, false);
        }
        if rt {
            self.update_rt(cpu, false);
        }
        self.update_pressure(cpu);
    }

    /// Tells the trace of the policy that a task is under now.
    pub(crate) fn emit_policy(&mut self, task: TaskId) {
        if self.m.task(task).state != State::New {
            let policy = self.m.task(task).sched.policy;
            self.emit(Event::Policy { task, policy });
        }
    }

    /// How long the current task of another class than fair (or the idle task) has run since it
    /// was last accounted for (`update_se`).
    fn delta_exec(&mut self, cpu: CpuId) -> Span {
        let c = self.m.cpu_mut(cpu);
        let now = c.clock.clock_task.0;
        let delta = now.saturating_sub(c.exec_start);
        c.exec_start = now;
        Span(delta)
    }
}
