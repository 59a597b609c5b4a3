//! The core of the scheduler: creation, wakeup, context switch, tick, sleep.
//!
//! ```text
//!  create ─┐                       ┌── tick (while busy) ──┐
//!  timer ──┴─> place ─> enqueue ─> schedule ─> run ─> advance ─> sleep / exit ─> schedule
//!                                     └─ nothing to run: newidle balance, idle state
//! ```
//!
//! A context switch costs nothing unless it is said to ([`crate::time::cost`]); leaving an idle state takes its exit latency: before the
//! timer's handler when the CPU wakes for its own timer, before the switch when another CPU
//! wakes it. The tick stops where the idle state does not end before it ([`crate::kernel::idle`]) and
//! starts on the common grid when the CPU leaves it.
//!
//! Source: kernel/sched/core.c.

use crate::kernel::Kernel;
use crate::kernel::class::select_task_rq_fork;
use crate::kernel::placement::{Placed, Waker};
use crate::kernel::rq::Rq;
use crate::kernel::util_est::take_hints;
use crate::mech::preempt::wakes_from;
use crate::state::class::Class;
use crate::state::class::StopWork;
use crate::state::costs::Kind;
use crate::state::cpuset::CpuSet;
use crate::state::group::level_avg;
use crate::state::hooks::Point;
use crate::state::machine::Role;
use crate::state::machine::{Machine, State};
use crate::state::tracker::Heard;
use crate::state::wake_list::Wakee;
use crate::time::cost;
use crate::time::queue::Ev;
use risetime_kernel::eevdf::{DequeueKind, EnqueueKind};
use risetime_kernel::pelt_cfs::{post_init_entity_util_avg, remove_entity_load_avg};
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::{CpuId, Instant, Span, TaskId};
use risetime_model::workload::{Attr, Policy};
use risetime_trace::{Event, SwitchOut, Why};

impl Rq<'_, '_> {
    /// `task_dead_fair`: what the task was used to goes with it at the next update.
    fn task_dead(&mut self, task: TaskId) {
        let cpu = self.cpu;
        if !self.m().is_fair(task) {
            return;
        }
        let m = self.parts();
        let t = &mut m.tasks[task.index()];
        let cfs = level_avg(m.c, m.groups, cpu, t.group);
        remove_entity_load_avg(m.decay, cfs, &mut t.avg, t.weight);
        t.avg.last_update_time.0 = 0;
    }

    /// Puts the running task to sleep until `until`; `None`: it exits.
    pub(crate) fn fall_asleep(&mut self, task: TaskId, until: Option<Instant>) {
        let (state, kind) = match until {
            Some(_) => (State::Sleeping, DequeueKind::Sleep),
            None => (State::Exited, DequeueKind::SleepSpecial),
        };
        if let Some(at) = until {
            let at = self.hard_expiry(task, at);
            let t = self.t(task);
            t.timer_gen = t.timer_gen.wrapping_add(1);
            let generation = t.timer_gen;
            self.c().timers.insert((at, task));
            if !self.m().slots.hrtimers.at_ticks() {
                self.push(at, Ev::Timer { task, generation });
            }
        }
        self.leave_queue(task, state, kind);
    }

    /// `sched_yield`: the class's own, then another look at the queue.
    pub(crate) fn sched_yield(&mut self) {
        if self.m().ignores_yield(self.cpu) {
            return;
        }
        self.update_rq_clock();
        self.yield_task();
        self.set_need_resched();
    }

    // ------------------------------------------------------------------ tick

    pub(crate) fn start_tick(&mut self, at: Instant) {
        let cpu = self.cpu;
        let at = self.m().grid_first.filter(|first| *first > self.m().now).unwrap_or(at);
        let c = self.c();
        c.tick_stopped = false;
        c.tick_gen = c.tick_gen.wrapping_add(1);
        let generation = c.tick_gen;
        self.push(at, Ev::Tick { cpu, generation });
    }
}

impl Kernel<'_> {
    // ------------------------------------------------------------------ creation and wakeup

    /// `wake_up_new_task`: the first task on its first CPU, the others by fork placement.
    pub(crate) fn create(&mut self, task: TaskId) {
        let first = !self.created_any;
        self.created_any = true;
        let starts = first && self.m.start.phase.is_none();
        if starts {
            self.before_start();
        }
        let placed = if first {
            self.rq(self.m.task(task).cpu).allow_some(task);
            first_cpu_of(&self.m, self.first_cpu, task)
        } else {
            if !self.m.is_fork(task) {
                // The task's parent is the workload's main thread, which stays where the first task
                // began, or another trace's.
                let parent = self.m.creator.map_or(self.parent_cpu, |t| self.m.task(t).cpu);
                self.m.task_mut(task).cpu = parent;
            }
            self.rq(self.m.task(task).cpu).allow_some(task);
            match self.m.cpu_instead(Point::Fork { task }) {
                Some(placed) => placed,
                None => {
                    let effects = &mut self.effects;
                    let placed =
                        select_task_rq_fork(&self.m, self.placement.as_mut(), task, effects);
                    self.m.classes.take_distribute(effects);
                    self.m.cpu_decided(Point::Fork { task }, placed)
                }
            }
        };
        if first {
            self.parent_cpu = placed.cpu;
        }
        let parent = if first { placed.cpu } else { self.m.task(task).cpu };
        self.rq(parent).task_fork_fair(task);
        if let Some(creator) = self.m.creator {
            let on = self.m.task(creator).cpu;
            self.drive(|d, k| d.creates(&mut k.rq(on), creator));
        }
        let cpu = placed.cpu;
        self.rq(cpu).update_rq_clock();
        let m = &mut self.m;
        let (capacity, t) = (m.cpus[cpu.index()].capacity, &mut m.tasks[task.index()]);
        (t.cpu, t.state) = (cpu, State::Runnable);
        // Before it is placed: where it was made.
        t.recent_used_cpu = parent;
        if t.sched.class() == Class::Fair && !m.slots.series.util_avg_0_on_fork {
            let cfs = &level_avg(&mut m.cpus[cpu.index()], &mut m.groups, cpu, t.group).avg;
            post_init_entity_util_avg(m.rev, &mut t.avg, t.weight, cfs, capacity);
        }
        if starts && let Some(driver) = &mut self.driver {
            driver.created_first(&mut self.m.tasks[task.index()]);
        }
        let m = &mut self.m;
        let max_speed = m.max_speed(task);
        m.task_mut(task).max_speed = max_speed;
        if first && m.creator.is_some() {
            // The task's creator is bound to this CPU, and so is the task until it runs.
            let t = &mut m.tasks[task.index()];
            t.binds_itself = Some(Box::new(t.allowed));
            t.set_allowed(&m.cpus, [cpu].into_iter().collect());
        }
        let comm = m.task(task).comm;
        let why = placed.why;
        self.emit(Event::TaskNew { task, comm, user: true, cpu, why, max_speed });
        self.rq(cpu).tell_speed_limits(task);
        if self.m.task(task).sched.policy != (Policy::Other { slice: None }) {
            self.rq(cpu).emit_policy(task);
        }
        self.rq(cpu).tell_attributes(task);
        let (now, t) = (self.m.now, &mut self.m.tasks[task.index()]);
        let waits = self.driver.as_mut().map_or(Span(0), |driver| driver.created(now, task, t));
        if waits > Span(0) && self.m.cpu(cpu).idle.is_some() {
            self.rq(cpu).holds_resched(waits);
        }
        self.m.slots.preempt.waking_on = wakes_from(&self.m, parent, cpu);
        if let Some(nice) = self.rq(cpu).vendor_new_task(task) {
            self.rq(cpu).set_nice(task, nice);
        }
        self.rq(cpu).activate(task, EnqueueKind::Initial, false);
        if starts {
            self.apply_start_state(cpu, task);
        }
        self.rq(cpu).wakes(task, true);
        if self.m.is_fork(task) {
            self.rq(cpu).pay_for_resched(task, Waker { cpu: parent, sync: false, irq: false });
        }
        self.m.slots.preempt.waking_on = None;
    }

    /// `try_to_wake_up`.
    pub(crate) fn wake_up(&mut self, task: TaskId, waker: Waker) {
        let prev = self.m.task(task).cpu;
        match self.m.task(task).state {
            State::Sleeping => {}
            State::New => return self.rq(prev).wake_up_first(task),
            State::Waking | State::Runnable | State::Exited => {
                self.m.task_mut(task).due = None;
                return;
            }
        }
        let now = self.m.now;
        self.m.task_mut(task).due.get_or_insert(now);
        let starts = self.m.enters_start_phase(task);
        if starts {
            self.before_start();
        }
        if self.m.fair_entity(prev, task).is_some() {
            // The task's dequeue was delayed: it wakes where it is (`ttwu_runnable`), whatever another
            // trace says, in which it may have left.
            let _ = self.m.instead(Point::Wakeup { task, waker });
            self.rq(prev).ttwu_do_activate(task, waker, false, Why::PrevCpu);
            if starts {
                self.apply_start_state(prev, task);
            }
            return self.rq(prev).ttwu_do_wakeup(task, waker);
        }
        if self.m.is_fair(task) {
            self.rq(prev).track(Heard::Wakeup { cpu: prev, task });
        }
        let placed = self.select_task_rq(task, waker);
        let cpu = placed.cpu;
        let times = self.rq(cpu).wake_list_times(task, waker).filter(|_| !starts);
        if times.is_some() {
            self.emit(Event::Waking { task, by: waker.cpu });
        }
        if cpu != prev {
            self.rq(prev).migrate_task_rq(task, cpu, placed.why);
            if !self.m.is_fair(task) {
                self.rq(cpu).replenish_here(task);
                self.rq(cpu).set_task_rq_fair(task, prev);
            }
        }
        let (migrated, why) = (cpu != prev, placed.why);
        if let Some(times) = times {
            return self.rq(cpu).ttwu_queue_wakelist(task, times, migrated, why);
        }
        self.rq(cpu).ttwu_do_activate(task, waker, migrated, why);
        if starts {
            self.apply_start_state(cpu, task);
        }
        self.rq(cpu).ttwu_do_wakeup(task, waker);
    }

    /// Wakes `task` on behalf of the task that runs on `by`: at once, or when it has left its CPU,
    /// where it still is (`p->on_cpu`).
    pub(crate) fn wake_up_by(&mut self, by: CpuId, task: TaskId) {
        let (cpu, state) = (self.m.task(task).cpu, self.m.task(task).state);
        if state == State::Sleeping && self.m.cpu(cpu).curr == Some(task) {
            self.q.push(self.m.now, Ev::Woken { task, by });
        } else {
            self.wake_up(task, Waker { cpu: by, sync: false, irq: false });
        }
    }

    /// Brings the machine, at the start, to the state that it should start from.
    fn before_start(&mut self) {
        (self.m.start.begun, self.m.start.at) = (true, self.m.now);
        self.drive(|d, k| d.before_start(k));
    }

    fn apply_start_state(&mut self, cpu: CpuId, task: TaskId) {
        self.m.start.done = true;
        if self.drive(|d, k| d.apply_start(&mut k.rq(cpu), task)) {
            return;
        }
        let start = self.m.start;
        // The other classes keep no signals of their own.
        if self.m.is_fair(task) && (start.util.is_some() || start.period_contrib.is_some()) {
            self.rq(cpu).set_signals(task, start.util, None, start.period_contrib);
        }
        if let Some(first) = start.first_tick {
            self.move_tick_grid(first);
        }
    }

    /// Moves the ticks: the next one comes after `first`, and all later ones from there.
    pub(crate) fn move_tick_grid(&mut self, first: Span) {
        let (now, tick) = (self.m.now, self.m.tick);
        self.m.ticks.set_offset(Span((now.0 + first.0) % tick.0), now, tick);
        let at = self.m.now + first;
        for cpu in (0..self.m.cpus.len() as u32).map(CpuId) {
            if self.m.cpu(cpu).curr.is_some() {
                self.rq(cpu).start_tick(at);
            }
        }
        self.m.grid_first = Some(at);
    }

    // ------------------------------------------------------------------ threads of a core

    /// Whether `cpu` has a task has changed: the threads of its core get slower or faster.
    pub(crate) fn core_shared(&mut self, cpu: CpuId) {
        if !self.m.costs.shares_cores() {
            return;
        }
        let core = &self.m.cpu(cpu).place.smt;
        let threads = core.iter().filter(|c| self.m.cpu(**c).curr.is_some()).count() as u8;
        for i in 0..core.len() {
            let thread = self.m.cpu(cpu).place.smt[i];
            if threads == self.m.cpu(thread).core_threads {
                continue;
            }
            self.rq(thread).tell_progress();
            self.m.cpu_mut(thread).core_threads = threads;
            if thread != cpu && self.m.cpu(thread).curr.is_some() {
                self.rq(thread).arm_work();
            }
        }
    }
}

impl Rq<'_, '_> {
    // ------------------------------------------------------------------ context switch

    /// `__schedule`: put the current task, pick the next, switch. Who goes on in user mode by that.
    pub(crate) fn schedule(&mut self) -> Option<TaskId> {
        let cpu = self.cpu;
        self.update_rq_clock();
        let prev = self.m().cpu(cpu).curr;
        self.c().resched_held = false;
        self.dl_server_update();
        self.account_anew();
        self.prev_balance(prev);
        self.asks_real_time(prev);
        let mut next = self.pick_next_task();
        if next.is_none() {
            // The previous task's averages must stand before others are pulled in.
            self.put_prev_task(prev, None);
            if self.newidle_balance() {
                next = self.pick_next_task();
            }
        }
        match next {
            Some(curr) if next == prev => {
                self.clear_need_resched();
                if self.m().is_fair(curr) {
                    self.util_est_switched(prev, next);
                    self.update_misfit_status(Some(curr));
                }
                self.resume_user_mode_work(curr);
            }
            None if prev.is_none() => {
                self.throttled_by_pick();
                self.clear_need_resched();
                self.go_idle();
            }
            _ => {
                self.put_prev_task(prev, next);
                self.throttled_by_pick();
                self.util_est_switched(prev, next);
                self.vendor_switched(prev);
                return self.switch(prev, next);
            }
        }
        None
    }

    fn switch(&mut self, prev: Option<TaskId>, next: Option<TaskId>) -> Option<TaskId> {
        let cpu = self.cpu;
        self.tell_progress();
        let out = prev.map(|task| {
            let out = match self.m().task(task).state {
                State::Runnable if self.m().waits_for_period(task) => SwitchOut::Sleeping,
                State::Runnable => SwitchOut::Preempted,
                State::Exited => SwitchOut::Exited,
                State::New | State::Sleeping | State::Waking => SwitchOut::Sleeping,
            };
            (task, out)
        });
        if let Some(prev) = prev {
            self.cool_down(prev);
        }
        let (now, c) = (self.m().now, self.c());
        match (prev, next) {
            (Some(_), None) => c.idle_time.begins(now),
            (None, Some(_)) => c.idle_time.ends(now),
            _ => {}
        }
        c.curr = next;
        self.track(Heard::Switch { cpu, prev, next });
        if prev.is_none() || next.is_none() {
            self.counts_cycles(next.is_some());
            self.core_shared();
        }
        self.emit(Event::Switch { cpu, prev: out, next });
        if let Some((task, SwitchOut::Exited)) = out {
            self.task_dead(task);
        }
        if let Some(kind) = next.map(|task| self.m().task(task).kind).filter(|kind| *kind > 0) {
            self.emit(Event::Work { cpu, kind: kind.into() });
        }
        let Some(task) = next else {
            self.clear_need_resched();
            self.go_idle();
            return None;
        };
        if prev.is_none() {
            let first = self.m().next_tick();
            let first = self.m().hook(first, |h, own| h.first_tick(self.m(), own));
            self.start_tick(first);
        }
        self.set_next_task(task);
        self.clear_need_resched();
        if cost::switches(&self.m().costs) {
            let (switch, cold) = (self.takes(Kind::Switch, task), self.m().costs.cold);
            let m = self.parts();
            cost::pay_for_switch(switch, cold, m.c, &mut m.tasks[task.index()], m.now);
        }
        self.resume_user_mode_work(task);
        // Else it leaves again before it is back in user mode.
        (!self.m().throttle_work.contains(cpu)).then_some(task)
    }

    /// A thread that is none of the workload's wakes for the first time in this trace.
    fn wake_up_first(&mut self, task: TaskId) {
        let (cpu, t, max_speed) = (self.cpu, self.m().task(task), self.m().max_speed(task));
        let comm = t.comm;
        self.set_state(task, State::Runnable);
        let why = Why::Affinity;
        self.emit(Event::TaskNew { task, comm, user: false, cpu, why, max_speed });
        self.tell_attributes(task);
        self.update_rq_clock();
        self.activate(task, EnqueueKind::Wakeup, true);
        self.wakes(task, false);
        self.holds_for_kthread(task);
    }

    // ------------------------------------------------------------------ wakeup

    /// Handles the interrupt for the tasks on the wake list (`flush_smp_call_function_queue`), for which an idle CPU comes out of
    /// its idle state; nothing if it has seen to them when it came out for something else.
    pub(crate) fn wake_list_interrupt(&mut self) {
        if !self.is_wake_list_due() {
            return;
        }
        if self.m().root.online.contains(self.cpu) && self.m().cpu(self.cpu).idle.is_some() {
            self.leave_idle();
        }
        self.sched_ttwu_pending();
        self.idle_loop();
    }

    /// `sched_ttwu_pending`: queues the tasks of the wake list of which the CPU has heard.
    fn sched_ttwu_pending(&mut self) {
        let (cpu, now) = (self.cpu, self.m().now);
        while let Some(first) = self.c().wake_list.iter().position(|wakee| wakee.heard <= now) {
            let Wakee { task, migrated, why, .. } = self.c().wake_list.remove(first);
            if !self.m().is_cpu_allowed(task, cpu) {
                self.set_state(task, State::Sleeping);
                self.wake_up(task);
                continue;
            }
            self.ttwu_do_activate(task, Waker::timer(cpu), migrated, why);
            self.ttwu_do_wakeup(task, Waker::timer(cpu));
        }
    }

    /// `ttwu_do_activate`: the task joins this queue, where `waker` puts it; `migrated`: from another CPU.
    pub(crate) fn ttwu_do_activate(
        &mut self,
        task: TaskId,
        waker: Waker,
        migrated: bool,
        why: Why,
    ) {
        let cpu = self.cpu;
        self.update_rq_clock();
        self.set_state(task, State::Runnable);
        self.wakes_demoted(task);
        self.tell_due(task);
        self.emit(Event::Wakeup { task, cpu, why });
        self.preempt().waking_on = wakes_from(self.m(), waker.cpu, cpu);
        let kind = if migrated { EnqueueKind::WakeupMigrated } else { EnqueueKind::Wakeup };
        self.activate(task, kind, true);
    }

    /// Emits how long ago the wakeup of `task` was due, if some time lies between.
    fn tell_due(&mut self, task: TaskId) {
        let now = self.m().now;
        let t = self.t(task);
        let is_user = matches!(t.role, Role::User);
        if let Some(due) = t.due.take().filter(|due| *due < now && is_user) {
            self.emit(Event::Due { task, ago: now.since(due) });
        }
    }

    /// Completes a wakeup: `wakeup_preempt` and `task_woken`, and when the CPU looks for the
    /// next task.
    fn ttwu_do_wakeup(&mut self, task: TaskId, waker: Waker) {
        self.wakes(task, false);
        self.pay_for_resched(task, waker);
        self.holds_for_kthread(task);
        self.preempt().waking_on = None;
    }

    /// Puts off this CPU's look for who is to run, until it is done with the wakeup of `task`: of a busy one in whose system
    /// call that happens, not at all; of another one, or an idle one, to when it comes to it.
    ///
    /// A busy one in whose interrupt that happens looks at the interrupt's end. Under lazy preemption whoever runs is charged
    /// up to there; else not: `wakeup_preempt` sees `TIF_NEED_RESCHED`, and has the next look at the clock left out
    /// (`rq_clock_skip_update`).
    fn pay_for_resched(&mut self, task: TaskId, waker: Waker) {
        let own = waker.cpu == self.cpu;
        let busy = own && self.m().cpu(self.cpu).curr.is_some();
        let kind = match (own, busy) {
            (true, true) => Kind::Preempt,
            (true, false) => Kind::Resched,
            (false, _) => Kind::Remote,
        };
        let lazily = self.m().slots.preempt.flagged.contains(self.cpu);
        let goes_on = busy && !(waker.irq && lazily);
        if goes_on || self.m().costs.is_free(kind) {
            return;
        }
        let takes = self.takes(kind, task);
        if busy {
            self.steal(takes);
        }
        self.holds_resched(takes);
    }

    // ------------------------------------------------------------------ attributes

    /// `sched_setattr` and `sched_setaffinity` of a task on itself.
    pub(crate) fn set_attr(&mut self, task: TaskId, attr: &Attr) {
        let (min, max) = self.forced_clamps();
        let t = self.t(task);
        let asked = t.asked;
        t.asked = Uclamp {
            min: min.or(attr.uclamp_min).unwrap_or(asked.min),
            max: max.or(attr.uclamp_max).unwrap_or(asked.max),
        };
        t.sched.min_asked |= min.or(attr.uclamp_min).is_some();
        let same = t.asked == asked && attr.taskgroup.is_none();
        self.set_class(task, attr);
        self.renew_clamps(task);
        if let Some(cpu) = self.t(task).slots.dl_rules.binds.take() {
            self.set_cpus_allowed(task, cpu);
        }
        if let Some(path) = &attr.taskgroup {
            let group = self.m().groups.find(path);
            self.change_group(task, group);
        }
        self.tell_attributes(task);
        let m = self.parts();
        take_hints(m.series, &mut m.tasks[task.index()], &attr.qos);
        if let Some(cpus) = &attr.cpus {
            let allowed: CpuSet = cpus.iter().copied().collect();
            self.set_cpus_allowed(task, allowed);
        } else if same {
            return;
        }
        self.tell_max_speed(task);
    }

    /// `set_cpus_allowed_ptr`: a running task on a forbidden CPU moves to any allowed one.
    pub(crate) fn set_cpus_allowed(&mut self, task: TaskId, allowed: CpuSet) {
        if allowed == self.m().task(task).allowed {
            return;
        }
        if self.m().task(task).state == State::New {
            // The task will be created with this affinity; no CPU is searched for.
            return self.set_allowed(task, allowed);
        }
        // EINVAL: no such CPU is online. The affinity stays.
        let Some(to) = self.any_of(&allowed) else { return };
        self.set_allowed(task, allowed);
        let from = self.cpu;
        if allowed.contains(from) || self.m().task(task).state != State::Runnable {
            return;
        }
        if self.m().cpu(from).curr == Some(task) && self.m().stops(from) {
            return self.stop_one_cpu_nowait(StopWork::Migrate { task, to });
        }
        self.move_queued(task, to, Why::Affinity);
    }
}

/// The CPU of the first task: `first_cpu`, or the lowest-numbered of the smallest capacity allowed.
fn first_cpu_of(m: &Machine, first_cpu: Option<CpuId>, task: TaskId) -> Placed {
    let allowed = m.task(task).allowed.and(&m.root.online);
    let smallest = allowed.iter().min_by_key(|c| (m.cpu(*c).capacity, *c));
    let wanted = first_cpu.filter(|c| allowed.contains(*c));
    Placed { cpu: wanted.or(smallest).unwrap_or(CpuId(0)), why: Why::FirstCpu }
}

impl Machine {
    // ------------------------------------------------------------------ the start settings

    fn enters_start_phase(&self, task: TaskId) -> bool {
        let start = &self.start;
        !start.done && start.upcoming && task == TaskId(0)
    }
}

impl Rq<'_, '_> {
    /// Sends the CPU, which has nothing to run, to sleep (`pick_next_task_idle`): makes up for lost
    /// time and chooses a state.
    pub(crate) fn go_idle(&mut self) {
        let decay = self.m().decay;
        let c = self.c();
        let util_sum =
            c.cfs_avg.avg.util_sum.wrapping_add(c.rt_avg.util_sum).wrapping_add(c.dl_avg.util_sum);
        c.clock.update_idle_rq_clock_pelt(decay, util_sum);
        c.work_gen = c.work_gen.wrapping_add(1);
        c.exec_start = c.clock.clock_task.0;
        c.got_idle_tick = false;
        self.update_idle_core();
        self.nohz_run_idle_balance();
        self.enter_idle();
    }
}
