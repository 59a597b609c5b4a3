//! A task changes its policy (`sched_setattr` on itself), within its class or from one to another.
//!
//! ```text
//!  put, dequeue ─> new policy, clamps ─> enqueue (before its equals, if its priority fell), set next
//!  fair ─> other   its load leaves the CPU; back again it comes with what is left of it
//!  ─> deadline     admission: all reservations must fit 95 % of the machine's capacity
//!  deadline ─>     its bandwidth stays reserved until its 0-lag time
//! ```
//!
//! DEVIATES(rebuilds): up to 6.14 each rebuild of the sched domains, of which schedutil asks for one at each start, takes what
//! deadline tasks and its kthreads have reserved once more from what may be reclaimed. A simulation begins after the first
//! one; a machine that has booted may have had ten, until the rest wraps and who reclaims is charged the least. What a virtual machine had
//! is told to a simulation beside it.
//!
//! Source: kernel/sched/syscalls.c:__sched_setscheduler, kernel/sched/deadline.c:sched_dl_overflow,
//! switched_from_dl, kernel/sched/fair.c:switched_from_fair, switched_to_fair.

use crate::kernel::fair::Join;
use crate::kernel::rq::Rq;
use crate::state::class::Class;
use crate::state::class::ClassTimer;
use crate::state::class::StopWork;
use crate::state::class::fair_policy;
use crate::state::class::load_of;
use crate::state::machine::State;
use risetime_kernel::deadline::{DlEntity, DlParams, dl_overflow};
use risetime_kernel::eevdf::{DequeueKind, EnqueueKind};
use risetime_kernel::features;
use risetime_kernel::pelt::update_load_avg_blocked_se;
use risetime_kernel::rt_group::cap_scale;
use risetime_kernel::uclamp::{Uclamp, UclampRq};
use risetime_kernel::units::{CpuId, GroupId, Span, TaskId};
use risetime_model::InputError;
use risetime_model::workload::{Attr, Policy};
use risetime_trace::{Event, Why};

impl Rq<'_, '_> {
    /// The part of `attr` that the classes are concerned with.
    pub(crate) fn set_class(&mut self, task: TaskId, attr: &Attr) {
        let before = self.m().task(task).nice;
        if let Some(nice) = attr.nice.filter(|n| *n != before) {
            self.set_nice(task, nice);
            self.prio_changed_fair(task, before);
            self.prio_changed_muqss(task, before);
        }
        if let Some(nice) = attr.latency_nice.filter(|_| self.m().slots.series.latency_nice) {
            self.set_latency_nice(task, nice);
        }
        let Some(asked) = attr.policy else { return };
        let policy = self.m().stands_in_for(asked);
        if self.m().rules.fixed.is_some() && !self.bind_fixed(task, asked, policy) {
            return;
        }
        let new = self.m().task(task).state == State::New;
        if new && matches!(policy, Policy::Deadline { .. } | Policy::Idle) {
            self.t(task).sched.takes = Some(policy);
        } else {
            self.set_policy(task, policy);
        }
    }

    /// `set_user_nice` on a task of this CPU, whether it is queued or not.
    pub(crate) fn set_nice(&mut self, task: TaskId, nice: i8) {
        let load = load_of(self.m().task(task).sched.policy, nice);
        self.reweight_task_fair(task, nice, load);
        self.renice_high(task, load);
    }

    /// A task that was to be a deadline task, or an idle one, becomes one, now that it runs.
    pub(crate) fn take_policy(&mut self, task: TaskId) {
        if let Some(policy) = self.t(task).sched.takes.take() {
            self.set_policy(task, policy);
            self.tell_attributes(task);
        }
    }

    /// `__sched_setscheduler`.
    fn set_policy(&mut self, task: TaskId, policy: Policy) {
        self.end_demotion(task);
        let old = self.m().task(task).sched.policy;
        if policy == old {
            return;
        }
        if policy.is_fair() && old.is_fair() {
            self.muqss_requeue(task, |t| t.sched.policy = policy);
            self.set_fair_policy(task, policy);
        } else if let Err(e) = self.admit(task, policy) {
            self.refuse(e);
        } else {
            self.change_class(task, policy);
            self.goes_home(task);
        }
        self.emit_policy(task);
    }

    /// A deadline task that runs, or waits, on another CPU than its placement has chosen goes there.
    fn goes_home(&mut self, task: TaskId) {
        let (cpu, t) = (self.cpu, self.m().task(task));
        let Some(to) = t.slots.dl_rules.home.filter(|home| *home != cpu) else { return };
        if t.sched.class() != Class::Deadline || t.state != State::Runnable || t.cpu != cpu {
            return;
        }
        if self.m().cpu(cpu).curr == Some(task) && self.m().stops(cpu) {
            return self.stop_one_cpu_nowait(StopWork::Home { task, to });
        }
        self.move_queued(task, to, Why::DlFits);
    }

    /// Tells the trace of the policy that a task is under now.
    pub(crate) fn emit_policy(&mut self, task: TaskId) {
        if self.m().task(task).state != State::New {
            let policy = self.m().task(task).sched.policy;
            self.emit(Event::Policy { task, policy });
        }
    }

    /// Whether `switched_from` comes last. Until 6.18 it comes when the task is in its new class
    /// (`check_class_changed`), later between the two (`sched_change_begin`). So when cpufreq hears
    /// of a deadline task's bandwidth, what it needed as a fair one counts still.
    fn switched_from_last(&self) -> bool {
        !self.m().rev.has(features::SWITCHED_FROM_FIRST)
    }

    /// Moves `task` from one class to another, whoever asked for it.
    pub(crate) fn change_class(&mut self, task: TaskId, policy: Policy) {
        let cpu = self.cpu;
        let from = self.m().class_of(task);
        let queued = self.m().task(task).state == State::Runnable;
        let running = self.m().cpu(cpu).curr == Some(task);
        let old_rank = self.m().rt_rank(task);
        if queued {
            self.update_rq_clock();
            if running && from != Class::Fair {
                self.put_prev_task(Some(task), None);
            }
            let leaves = from == Class::Fair;
            let detaches = leaves && !self.switched_from_last();
            self.deactivate(task, if detaches { DequeueKind::Migrate } else { DequeueKind::Save });
            self.take_departed();
            if leaves && running && self.m().groups.on() {
                let group = self.m().task(task).group;
                self.put_prev_parents(group, None);
            }
        }
        if from == Class::Deadline {
            self.leave_deadline(task);
        }
        self.t(task).sched.policy = policy;
        let class = self.m().class_of(task);
        if class == Class::Deadline {
            self.enter_deadline(task, policy);
        }
        self.set_fair_policy(task, policy);
        self.renew_clamps(task);
        if !queued {
            return;
        }
        if class == Class::Fair {
            self.age_apart(task);
        }
        let c = self.c();
        c.exec_start = c.clock.clock_task.0;
        if class.is_real_time() && self.m().rt_rank(task) < old_rank {
            if self.m().clamps_count(class) {
                self.uclamp(task, UclampRq::uclamp_rq_inc);
            }
            match class {
                Class::RtGroup => self.enqueue_task_rt_group(task, true),
                _ => self.enqueue_task_rt(task, true),
            }
        } else {
            self.activate(task, EnqueueKind::Restore, false);
        }
        if from == Class::Fair && self.switched_from_last() {
            self.update_load_avg(task, Join::Detach);
        }
        if running {
            match class {
                Class::Fair => {
                    self.set_next_task_fair(task);
                }
                Class::Muqss => self.set_rq_task(Some(task)),
                Class::Rt | Class::RtGroup | Class::Overcommit => {
                    self.update_rt(false);
                }
                Class::Deadline => self.update_dl(false),
                Class::High => self.set_next_task_high(task),
                Class::Stop => {}
            }
            // Somebody may come before it now, or wait elsewhere.
            self.resched_curr();
            if from == Class::Rt && self.m().rt_rank(task) < old_rank {
                self.pull_rt_task();
            }
            if from == Class::RtGroup && self.m().rt_rank(task) < old_rank {
                let g = self.m().task(task).sched.served;
                self.pull_rt_group(g);
            }
            if from == Class::Deadline && self.m().cpu(cpu).dl.is_empty() {
                self.pull_dl_task();
            }
        } else {
            self.wakes(task, false);
        }
    }

    /// A new task's first act: it is born in its creator's group and moves to its own, as rt-app's
    /// threads do.
    pub(crate) fn enters_group(&mut self, task: TaskId) {
        let Some(to) = self.m().task(task).moves_to else { return };
        self.t(task).moves_to = None;
        self.change_group(task, to);
        self.tell_attributes(task);
        self.tell_max_speed(task);
    }

    /// `sched_move_task`: the running task goes to another group, or one that does not exist yet will. A real-time one may have other
    /// servers there, or none, or may not go (`sched_rt_can_attach`).
    pub(crate) fn change_group(&mut self, task: TaskId, to: GroupId) {
        let served = self.m().groups.served_by(to);
        let t = self.m().task(task);
        let real_time = t.sched.class().is_real_time() && t.state != State::New;
        if real_time && t.sched.served != served {
            self.move_rt_task(task, to);
        } else {
            self.sched_move_task(task, to);
        }
    }

    fn move_rt_task(&mut self, task: TaskId, to: GroupId) {
        let queued = self.m().task(task).state == State::Runnable;
        let running = self.m().cpu(self.cpu).curr == Some(task);
        let policy = self.m().task(task).sched.policy;
        if let Err(e) = self.m().rt_can_attach(task, policy, to) {
            return self.refuse(e);
        }
        let enter = |rq: &mut Self| {
            let served = rq.m().groups.served_by(to);
            (rq.t(task).group, rq.t(task).sched.served) = (to, served);
            rq.t(task).limits = rq.m().limits_of(to);
        };
        if !queued {
            return enter(self);
        }
        self.update_rq_clock();
        if running {
            self.put_prev_task(Some(task), None);
        }
        self.deactivate(task, DequeueKind::Save);
        enter(self);
        let c = self.c();
        c.exec_start = c.clock.clock_task.0;
        self.activate(task, EnqueueKind::Restore, false);
        if running {
            self.update_rt(false);
            self.resched_curr();
        } else {
            self.wakeup_preempt(task, false);
        }
    }

    /// `__setscheduler_latency`.
    fn set_latency_nice(&mut self, task: TaskId, nice: i8) {
        let group = self.m().task(task).group;
        if !self.queue_mut(group).set_latency_nice(task, nice)
            && let Some(entity) = &mut self.t(task).entity
        {
            entity.latency_nice = nice;
        }
    }

    /// Sets what the fair class keeps of a policy: weight, slice, preemption. SCHED_IDLE leaves the
    /// slice as it was (`fair_policy`, `__setparam_fair`).
    fn set_fair_policy(&mut self, task: TaskId, policy: Policy) {
        let slice = match policy {
            Policy::Batch { slice } | Policy::Other { slice } => Some(slice),
            Policy::Idle => None,
            Policy::Fifo { .. }
            | Policy::Rr { .. }
            | Policy::Overcommit { .. }
            | Policy::High { .. }
            | Policy::Deadline { .. } => return,
        };
        let fair = fair_policy(policy);
        let slice =
            slice.map(|s| s.map(|s| s.0).filter(|_| self.m().rev.has(features::CUSTOM_SLICE)));
        let cpu = self.cpu;
        if self.m().fair_entity(cpu, task).is_some() {
            let group = self.m().task(task).group;
            self.update_rq_clock();
            self.update_curr(group);
            self.queue_mut(group).set_policy(task, fair);
            if let Some(slice) = slice {
                self.queue_mut(group).set_slice(task, slice);
            }
            let nice = self.m().task(task).nice;
            self.prio_changed_fair(task, nice);
        } else if let Some(entity) = &mut self.t(task).entity {
            entity.policy = fair;
            if let Some(slice) = slice {
                entity.request_slice(slice);
            }
        }
        let nice = self.m().task(task).nice;
        if load_of(policy, nice).weight() != self.m().task(task).weight {
            self.set_nice(task, nice);
        }
    }

    /// `prio_changed_fair` of a task whose nice value was `before`: who runs may have to give way.
    pub(crate) fn prio_changed_fair(&mut self, task: TaskId, before: i8) {
        let cpu = self.cpu;
        let Some(curr) = self.m().cpu(cpu).curr.filter(|curr| self.m().is_fair(*curr)) else {
            return;
        };
        if self.m().fair_entity(cpu, task).is_none() || self.m().cpu(cpu).h_nr_queued() < 2 {
            return;
        }
        let nice = self.m().task(task).nice;
        if curr == task && nice > before {
            self.resched_curr();
        } else if curr != task && nice != before {
            self.wakeup_preempt(task, false);
        }
    }

    /// A task back in the fair class: what it was used to has faded while it was away
    /// (`attach_task_cfs_rq` with `ATTACH_AGE_LOAD`).
    fn age_apart(&mut self, task: TaskId) {
        let (cpu, group) = (self.cpu, self.m().task(task).group);
        let now = self.m().cfs_rq_clock_pelt(cpu, group);
        let m = self.parts();
        let t = &mut m.tasks[task.index()];
        if t.avg.last_update_time.0 != 0 {
            update_load_avg_blocked_se(m.decay, now, &mut t.avg, t.weight);
            t.avg.last_update_time.0 = 0;
        }
    }

    // ------------------------------------------------------------------ clamps

    /// The clamps in force: what was asked for, and for an RT task that asked for no `uclamp_min`
    /// the default, the highest (`__setscheduler_uclamp`).
    pub(crate) fn renew_clamps(&mut self, task: TaskId) {
        let t = self.m().task(task);
        let (mut new, real_time) = (t.asked, t.sched.class().is_real_time());
        if real_time && !t.sched.min_asked {
            new.min = self.m().classes.rt_uclamp_min;
        }
        let new = self.m().hook(new, |h, own| h.uclamp_request(real_time, own));
        if new != t.uclamp.request {
            self.set_clamps(task, new);
        }
    }

    /// Puts other clamps in force for a task of this CPU.
    pub(crate) fn set_clamps(&mut self, task: TaskId, clamps: Uclamp) {
        self.t(task).uclamp.request = clamps;
        self.uclamp(task, UclampRq::uclamp_rq_reinc);
    }

    // ------------------------------------------------------------------ reservations

    /// `sched_dl_overflow`.
    ///
    /// Errors: the machine cannot promise that much; its group may have no such tasks.
    fn admit(&mut self, task: TaskId, policy: Policy) -> Result<(), InputError> {
        self.m().rt_can_attach(task, policy, self.m().task(task).group)?;
        let Policy::Deadline { runtime, deadline, period, reclaim } = policy else { return Ok(()) };
        let new = DlEntity::new(DlParams { runtime, deadline, period, reclaim });
        let t = self.m().task(task);
        // What it had counts until its 0-lag time.
        let had = t
            .sched
            .dl
            .as_ref()
            .filter(|dl| t.sched.class() == Class::Deadline || dl.inactive_timer.is_some());
        let had = had.map_or(0, |dl| dl.bw);
        let limit = self.m().cpus[0].dl.max_bw;
        let (tasks, capacity) = self.promised(task);
        let total = tasks + cap_scale(self.m().classes.groups_bw, capacity);
        let limited = self.m().slots.sysctls.rt.runtime.is_some();
        if limited && dl_overflow(limit, capacity, total, had, new.bw) {
            let percent = |bw: u64| bw * 100 / (1 << 20);
            let us = |s: Span| s.0 / 1000;
            let room = ((limit * capacity) >> 10).saturating_sub(total - had);
            return Err(InputError::of_task(
                &t.comm,
                format!(
                    "SCHED_DEADLINE with {} of {} µs is refused: that is {} % of a CPU of capacity \
                     1024, and {} % of one is left to reserve",
                    us(runtime),
                    us(period),
                    percent(new.bw),
                    percent(room)
                ),
            ));
        }
        let Some(home) = self.m().rules.placement.enter(self.m(), task, &new) else {
            let t = self.m().task(task);
            let what = format!(
                "SCHED_DEADLINE with {} of {} µs is refused: dl_placement={} finds no CPU that it may run on with room for it",
                runtime.0 / 1000,
                period.0 / 1000,
                self.m().rules.placement.about().0
            );
            return Err(InputError::of_task(&t.comm, what));
        };
        self.t(task).slots.dl_rules.home = Some(home);
        if limited {
            self.release_bw(had);
            self.reserve_bw(new.bw);
        }
        Ok(())
    }

    /// The bandwidth that is reserved in the task's root domain (`dl_bw`), and the capacity of its
    /// CPUs: an exclusive cpuset's, or all.
    ///
    /// DEVIATES(partitions): what a deadline task may reclaim is counted over all CPUs, in the kernel over those of its root domain;
    /// tasks with `dl-reclaim` in exclusive cpusets get another share of what others leave.
    fn promised(&self, task: TaskId) -> (u64, u64) {
        let (m, t) = (self.m(), self.m().task(task));
        if t.nr_cpus_allowed as usize == m.cpus.len() {
            return (m.classes.total_bw, m.classes.total_capacity);
        }
        let own = m.cpus.iter().enumerate().filter(|(c, _)| t.allowed.contains(CpuId(*c as u32)));
        own.fold((0, 0), |(bw, capacity), (_, c)| {
            (bw + c.dl.this_bw - c.slots.rt_groups.bw(), capacity + c.capacity.0)
        })
    }

    /// `__setparam_dl` and `switched_to_dl`.
    fn enter_deadline(&mut self, task: TaskId, policy: Policy) {
        let Policy::Deadline { runtime, deadline, period, reclaim } = policy else { return };
        let mut new = DlEntity::new(DlParams { runtime, deadline, period, reclaim });
        let old = self.t(task).sched.dl.take();
        if let Some(old) = old {
            // The task's instance goes on, its 0-lag time means nothing any more.
            (new.runtime, new.deadline) = (old.runtime, old.deadline);
            self.arm_changed(ClassTimer::Inactive(task), old.inactive_timer, None);
        }
        self.t(task).sched.dl = Some(Box::new(new));
        self.tell_throttled(task);
    }

    /// `switched_from_dl`.
    fn leave_deadline(&mut self, task: TaskId) {
        let cpu = self.cpu;
        let now = self.m().rq_clock(cpu);
        let before = (self.m().dl(task).timer, self.m().dl(task).inactive_timer);
        let at = self.m().dl(task).zero_lag(now);
        let dl = self.dl_mut(task);
        (dl.timer, dl.throttled, dl.non_contending) = (None, false, false);
        dl.inactive_timer = at;
        let bw = dl.bw;
        self.arm_changed(ClassTimer::Replenish(task), before.0, None);
        self.arm_changed(ClassTimer::Inactive(task), before.1, at);
        self.tell_throttled(task);
        if at.is_none() {
            self.release_bw(bw);
        }
    }
}
