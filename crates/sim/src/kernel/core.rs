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
use crate::kernel::placement::{Placed, Waker};
use crate::state::class::Class;
use crate::state::class::StopWork;
use crate::state::costs::FULL;
use crate::state::cpuset::CpuSet;
use crate::state::group::level_avg;
use crate::state::hooks::Point;
use crate::state::hooks::Step;
use crate::state::machine::{State, Todo};
use crate::state::tracker::Heard;
use crate::time::cost;
use crate::time::queue::Ev;
use crate::time::work;
use risetime_kernel::eevdf::{DequeueKind, EnqueueKind};
use risetime_kernel::pelt_cfs::{
    migrate_se_pelt_lag, post_init_entity_util_avg, remove_entity_load_avg,
};
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::{CpuId, Instant, Span, TaskId, Util};
use risetime_model::workload::{Attr, Policy};
use risetime_trace::{Event, SwitchOut, Why};

impl Kernel<'_> {
    /// `update_rq_clock`: brings all clocks of the CPU to now, at its current speed.
    pub(crate) fn update_rq_clock(&mut self, cpu: CpuId) {
        let now = self.m.sched_clock();
        let c = &mut self.m.cpus[cpu.index()];
        let delta = now.since(c.clock.clock);
        if delta == Span(0) {
            return;
        }
        if let Some(tally) = &mut self.m.tally {
            tally.touch(cpu);
        }
        let (mut capacity, mut scale) = (c.capacity, self.m.domains[c.domain].freq_scale);
        if let Some(hooks) = &self.m.hooks {
            (capacity, scale) = hooks.scale((capacity, scale));
        }
        let irq = c.pressure.as_mut().map_or(Span(0), |p| p.take_irq_time(delta));
        c.clock.update_rq_clock(delta, irq, c.curr.is_none(), capacity, scale);
        c.cfs.update_clock(c.clock.clock_task.0);
        if irq > Span(0) {
            self.update_irq(cpu, irq);
        }
    }

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
            self.first_cpu_of(task)
        } else {
            if !self.m.is_fork(task) {
                // Its parent is the workload's main thread, which stays where the first task began.
                self.m.task_mut(task).cpu = self.parent_cpu;
            }
            self.allow_some(task);
            match self.m.cpu_instead(Point::Fork { task }) {
                Some(placed) => placed,
                None => {
                    let placed = self.select_task_rq_fork(task);
                    self.m.cpu_decided(Point::Fork { task }, placed)
                }
            }
        };
        if first {
            self.parent_cpu = placed.cpu;
        }
        let parent = if first { placed.cpu } else { self.m.task(task).cpu };
        self.task_fork_fair(parent, task);
        self.drive(|d, k| d.creates(k));
        let cpu = placed.cpu;
        self.update_rq_clock(cpu);
        let m = &mut self.m;
        let (capacity, t) = (m.cpus[cpu.index()].capacity, &mut m.tasks[task.index()]);
        (t.cpu, t.state) = (cpu, State::Runnable);
        t.recent_used_cpu = cpu;
        if t.sched.class() == Class::Fair && !m.series.util_avg_0_on_fork {
            let cfs = &level_avg(&mut m.cpus, &mut m.groups, cpu, t.group).avg;
            post_init_entity_util_avg(m.rev, &mut t.avg, t.weight, cfs, capacity);
        }
        if starts {
            self.drive(|d, k| d.created_first(k, task));
        }
        let m = &mut self.m;
        let max_speed = m.max_speed(task);
        m.task_mut(task).max_speed = max_speed;
        let comm = m.task(task).comm.clone();
        let why = placed.why;
        self.emit(Event::TaskNew { task, comm: &comm, user: true, cpu, why, max_speed });
        if self.m.task(task).sched.policy != (Policy::Other { slice: None }) {
            self.emit_policy(task);
        }
        self.drive(|d, k| d.created(k, task));
        self.wakes_from(parent, cpu);
        self.activate(cpu, task, EnqueueKind::Initial, false);
        if starts {
            self.apply_start_state(cpu, task);
        }
        self.wakeup_preempt(cpu, task, true);
        self.woken_up();
    }

    /// DESIGN's first CPU: `first_cpu`, or the lowest-numbered of the smallest capacity allowed.
    fn first_cpu_of(&mut self, task: TaskId) -> Placed {
        self.allow_some(task);
        let allowed = self.m.task(task).allowed.and(&self.m.root.online);
        let smallest = allowed.iter().min_by_key(|c| (self.m.cpu(*c).capacity, *c));
        let wanted = self.first_cpu.filter(|c| allowed.contains(*c));
        Placed { cpu: wanted.or(smallest).unwrap_or(CpuId(0)), why: Why::FirstCpu }
    }

    /// `try_to_wake_up`.
    pub(crate) fn wake_up(&mut self, task: TaskId, waker: Waker) {
        let prev = self.m.task(task).cpu;
        match self.m.task(task).state {
            State::Sleeping => {}
            State::New => return self.wake_up_first(task),
            State::Runnable | State::Exited => return,
        }
        let starts = self.enters_start_phase(task);
        if starts {
            self.before_start();
        }
        if self.m.fair_entity(prev, task).is_some() {
            // Its dequeue was delayed: it wakes where it is (`ttwu_runnable`), whatever another
            // trace says, in which it may have left.
            let _ = self.m.instead(Point::Wakeup { task, waker });
            self.update_rq_clock(prev);
            self.set_state(task, State::Runnable);
            self.emit(Event::Wakeup { task, cpu: prev, why: Why::PrevCpu });
            self.wakes_from(waker.cpu, prev);
            self.activate(prev, task, EnqueueKind::Wakeup, true);
            if starts {
                self.apply_start_state(prev, task);
            }
            self.wakeup_preempt(prev, task, false);
            return self.woken_up();
        }
        let placed = self.select_task_rq(task, waker);
        let cpu = placed.cpu;
        if cpu != prev {
            self.migrate_asleep(task, cpu, placed.why);
        }
        self.update_rq_clock(cpu);
        let kind = if cpu == prev { EnqueueKind::Wakeup } else { EnqueueKind::WakeupMigrated };
        self.set_state(task, State::Runnable);
        self.emit(Event::Wakeup { task, cpu, why: placed.why });
        self.wakes_from(waker.cpu, cpu);
        self.activate(cpu, task, kind, true);
        if starts {
            self.apply_start_state(cpu, task);
        }
        self.wakeup_preempt(cpu, task, false);
        self.woken_up();
    }

    /// A thread that is none of the workload's wakes for the first time in this trace.
    fn wake_up_first(&mut self, task: TaskId) {
        let (cpu, comm, max_speed) =
            (self.m.task(task).cpu, self.m.task(task).comm.clone(), self.m.max_speed(task));
        self.set_state(task, State::Runnable);
        self.emit(Event::TaskNew {
            task,
            comm: &comm,
            user: false,
            cpu,
            why: Why::Affinity,
            max_speed,
        });
        self.update_rq_clock(cpu);
        self.activate(cpu, task, EnqueueKind::Wakeup, true);
        self.wakeup_preempt(cpu, task, false);
    }

    /// A sleeping task moves: its load is taken off its old runqueue at that one's next update
    /// (`migrate_task_rq_fair`).
    fn migrate_asleep(&mut self, task: TaskId, to: CpuId, why: Why) {
        if !self.is_fair(task) {
            let from = self.m.task(task).cpu;
            self.migrate_task_rq_dl(task);
            self.m.task_mut(task).cpu = to;
            self.replenish_here(task);
            self.emit(Event::Migrate { task, from, to, why });
            return self.set_task_rq_fair(task, from, to);
        }
        self.migrate_vruntime(task);
        let m = &mut self.m;
        let (now, decay) = (m.sched_clock(), m.decay);
        let t = &mut m.tasks[task.index()];
        let from = t.cpu;
        let (clock, idle) = (m.cpus[from.index()].clock, m.cpus[from.index()].curr.is_none());
        let cfs = level_avg(&mut m.cpus, &mut m.groups, from, t.group);
        remove_entity_load_avg(decay, cfs, &mut t.avg, t.weight);
        migrate_se_pelt_lag(decay, cfs, &clock, idle, now, &mut t.avg, t.weight);
        if m.series.tracks_waiting() {
            t.waiting.catch_up(decay, &t.avg);
        }
        t.avg.last_update_time.0 = 0;
        t.cpu = to;
        m.track(Heard::Migrate { task, from, to });
        self.emit(Event::Migrate { task, from, to, why });
    }

    /// Ages a sleeping task's load to its runqueue's last update, so that placement sees it.
    pub(crate) fn sync_entity_load_avg(&mut self, task: TaskId) {
        let m = &mut self.m;
        let t = &mut m.tasks[task.index()];
        let cfs = level_avg(&mut m.cpus, &mut m.groups, t.cpu, t.group);
        risetime_kernel::pelt_cfs::sync_entity_load_avg(m.decay, cfs, &mut t.avg, t.weight);
    }

    // ------------------------------------------------------------------ the start settings

    fn enters_start_phase(&self, task: TaskId) -> bool {
        let start = &self.m.start;
        !start.done && start.upcoming && task == TaskId(0)
    }

    /// The start has come: the machine is brought to the state it should start from.
    fn before_start(&mut self) {
        (self.m.start.begun, self.m.start.at) = (true, self.m.now);
        self.drive(|d, k| d.before_start(k));
    }

    fn apply_start_state(&mut self, cpu: CpuId, task: TaskId) {
        self.m.start.done = true;
        if self.drive(|d, k| d.apply_start(k, cpu, task)) {
            return;
        }
        let start = self.m.start;
        // The other classes keep no signals of their own.
        if self.is_fair(task) && (start.util.is_some() || start.period_contrib.is_some()) {
            self.set_signals(cpu, task, start.util, None, start.period_contrib);
        }
        if let Some(first) = start.first_tick {
            self.move_tick_grid(first);
        }
    }

    /// The next tick comes after `first`, and all later ones from there.
    pub(crate) fn move_tick_grid(&mut self, first: Span) {
        self.m.set_tick_offset(Span((self.m.now.0 + first.0) % self.m.tick.0));
        for cpu in 0..self.m.cpus.len() as u32 {
            if self.m.cpu(CpuId(cpu)).curr.is_some() {
                self.start_tick(CpuId(cpu), self.m.now + first);
            }
        }
        self.grid_first = Some(self.m.now + first);
    }

    // ------------------------------------------------------------------ context switch

    /// `__schedule`: put the current task, pick the next, switch. Who goes on in user mode by that.
    pub(crate) fn schedule(&mut self, cpu: CpuId) -> Option<TaskId> {
        self.update_rq_clock(cpu);
        let prev = self.m.cpu(cpu).curr;
        self.m.cpu_mut(cpu).resched_held = false;
        self.dl_server_update(cpu);
        self.account_anew(cpu);
        self.prev_balance(cpu, prev);
        let mut next = self.pick_next_task(cpu);
        if next.is_none() {
            // Its averages must stand before others are pulled in.
            self.put_prev_task(cpu, prev, None);
            if self.newidle_balance(cpu) {
                next = self.pick_next_task(cpu);
            }
        }
        match next {
            Some(curr) if next == prev => {
                self.clear_need_resched(cpu);
                if self.is_fair(curr) {
                    self.util_est_switched(cpu, prev, next);
                    self.update_misfit_status(cpu, Some(curr));
                }
            }
            None if prev.is_none() => {
                self.throttled_by_pick(cpu);
                self.clear_need_resched(cpu);
                self.go_idle(cpu);
            }
            _ => {
                self.put_prev_task(cpu, prev, next);
                self.throttled_by_pick(cpu);
                self.util_est_switched(cpu, prev, next);
                return self.switch(cpu, prev, next);
            }
        }
        None
    }

    fn switch(&mut self, cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>) -> Option<TaskId> {
        self.book_progress(cpu);
        let out = prev.map(|task| {
            let out = match self.m.task(task).state {
                State::Runnable => SwitchOut::Preempted,
                State::Exited => SwitchOut::Exited,
                State::New | State::Sleeping => SwitchOut::Sleeping,
            };
            (task, out)
        });
        let m = &mut self.m;
        if let Some(prev) = prev {
            let (c, t) = (&mut m.cpus[cpu.index()], &mut m.tasks[prev.index()]);
            cost::cool_down(&m.costs, c, t, m.now);
        }
        let (now, c) = (self.m.now, self.m.cpu_mut(cpu));
        match (prev, next) {
            (Some(_), None) => c.idle_from = now,
            (None, Some(_)) => c.idle_time += now.since(c.idle_from),
            _ => {}
        }
        c.curr = next;
        self.m.track(Heard::Switch { cpu, prev, next });
        self.core_shared(cpu);
        self.emit(Event::Switch { cpu, prev: out, next });
        if let Some((task, SwitchOut::Exited)) = out {
            self.task_dead(cpu, task);
        }
        let Some(task) = next else {
            self.clear_need_resched(cpu);
            self.go_idle(cpu);
            return None;
        };
        if prev.is_none() {
            let first = self.m.next_tick();
            let first = self.m.hook(first, |h, own| h.first_tick(&self.m, own));
            self.start_tick(cpu, first);
        }
        self.set_next_task(cpu, task);
        self.clear_need_resched(cpu);
        let m = &mut self.m;
        let (c, t) = (&mut m.cpus[cpu.index()], &mut m.tasks[task.index()]);
        cost::pay_for_switch(&m.costs, c, t, m.now);
        // Else it leaves again before it is back in user mode.
        (!self.m.throttle_work.contains(cpu)).then_some(task)
    }

    /// `task_dead_fair`: what the task was used to goes with it at the next update.
    fn task_dead(&mut self, cpu: CpuId, task: TaskId) {
        if !self.is_fair(task) {
            return;
        }
        let m = &mut self.m;
        let t = &mut m.tasks[task.index()];
        let cfs = level_avg(&mut m.cpus, &mut m.groups, cpu, t.group);
        remove_entity_load_avg(m.decay, cfs, &mut t.avg, t.weight);
        t.avg.last_update_time.0 = 0;
    }

    // ------------------------------------------------------------------ threads of a core

    /// Whether `cpu` has a task may have changed: the other threads of its core get slower or faster.
    pub(crate) fn core_shared(&mut self, cpu: CpuId) {
        if self.m.costs.smt_speed == FULL {
            return;
        }
        for i in 0..self.m.cpu(cpu).place.smt.len() {
            let thread = self.m.cpu(cpu).place.smt[i];
            let others = self.m.cpu(cpu).place.smt.iter().filter(|c| **c != thread);
            let shares = others.clone().any(|c| self.m.cpu(*c).curr.is_some());
            if shares == self.m.cpu(thread).shares_core {
                continue;
            }
            self.book_progress(thread);
            self.m.cpu_mut(thread).shares_core = shares;
            if thread != cpu && self.m.cpu(thread).curr.is_some() {
                self.arm_work(thread);
            }
        }
    }

    // ------------------------------------------------------------------ sleep

    /// The sugov kthread's step is over: on to the next one.
    pub(crate) fn advance_sugov(&mut self, cpu: CpuId, task: TaskId, domain: usize) {
        if self.sugov_next(domain) {
            let work = || work::at_full_speed(self.sugov_work);
            let todo = self.kthread.map_or_else(work, |k| Todo::Time(k.runs));
            self.m.task_mut(task).todo = todo;
            self.arm_work(cpu);
        } else {
            self.update_rq_clock(cpu);
            self.set_state(task, State::Sleeping);
            self.deactivate(cpu, task, DequeueKind::SleepSpecial);
            self.m.need_resched.insert(cpu);
        }
    }

    /// The running task sleeps until `until`, or exits.
    pub(crate) fn fall_asleep(&mut self, cpu: CpuId, task: TaskId, until: Option<Instant>) {
        let (state, kind) = match until {
            Some(_) => (State::Sleeping, DequeueKind::Sleep),
            None => (State::Exited, DequeueKind::SleepSpecial),
        };
        if let Some(at) = until {
            let at = self.hard_expiry(task, at);
            let t = self.m.task_mut(task);
            t.timer_gen = t.timer_gen.wrapping_add(1);
            let generation = t.timer_gen;
            self.m.cpu_mut(cpu).timers.insert((at, task));
            self.q.push(at, Ev::Timer { task, generation });
        }
        self.leave_queue(cpu, task, state, kind);
    }

    /// The running task leaves its CPU's queue.
    pub(crate) fn leave_queue(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        state: State,
        kind: DequeueKind,
    ) {
        self.update_rq_clock(cpu);
        self.set_state(task, state);
        self.deactivate(cpu, task, kind);
        self.m.need_resched.insert(cpu);
    }

    /// `sched_setattr` and `sched_setaffinity` of a task on itself.
    pub(crate) fn set_attr(&mut self, task: TaskId, attr: &Attr) {
        let t = &mut self.m.tasks[task.index()];
        let asked = t.asked;
        t.asked = Uclamp {
            min: self.forced_clamps.0.or(attr.uclamp_min).unwrap_or(asked.min),
            max: self.forced_clamps.1.or(attr.uclamp_max).unwrap_or(asked.max),
        };
        t.sched.min_asked |= self.forced_clamps.0.or(attr.uclamp_min).is_some();
        let same = t.asked == asked && attr.taskgroup.is_none();
        self.set_class(task, attr);
        self.renew_clamps(task);
        if let Some(path) = &attr.taskgroup {
            self.sched_move_task(task, self.m.groups.find(path));
        }
        self.take_hints(task, &attr.qos);
        if let Some(cpus) = &attr.cpus {
            let allowed: CpuSet = cpus.iter().copied().collect();
            self.set_cpus_allowed(task, allowed);
        } else if same {
            return;
        }
        let max_speed = self.m.max_speed(task);
        if max_speed != self.m.task(task).max_speed {
            self.m.task_mut(task).max_speed = max_speed;
            if self.m.task(task).state != State::New {
                self.emit(Event::MaxSpeed { task, max_speed });
            }
        }
    }

    /// `set_cpus_allowed_ptr`: a running task on a forbidden CPU moves to the first allowed one.
    fn set_cpus_allowed(&mut self, task: TaskId, allowed: CpuSet) {
        if !allowed.intersects(&self.m.root.online) {
            // EINVAL: no such CPU is online. The affinity stays.
            return;
        }
        self.m.set_allowed(task, allowed);
        let from = self.m.task(task).cpu;
        if allowed.contains(from) || self.m.task(task).state != State::Runnable {
            return;
        }
        let Some(to) = allowed.and(&self.m.root.online).lowest() else { return };
        if self.m.cpu(from).curr == Some(task) && self.stops(from) {
            return self.stop_one_cpu_nowait(from, StopWork::Migrate { task, to });
        }
        self.move_queued(task, from, to, Why::Affinity);
    }

    /// Takes a queued or running task to another CPU (`move_queued_task`, and what the stopper
    /// does in active balance).
    pub(crate) fn move_queued(&mut self, task: TaskId, from: CpuId, to: CpuId, why: Why) {
        if self.m.task(task).throttled {
            return self.move_throttled(task, from, to, why);
        }
        self.update_rq_clock(from);
        let running = self.m.cpu(from).curr == Some(task);
        if running {
            self.book_progress(from);
        }
        self.deactivate(from, task, DequeueKind::Migrate);
        if running {
            // It leaves the CPU runnable: the stopper has taken its place.
            if self.m.groups.on() {
                self.put_prev_parents(from, self.m.task(task).group, None);
            }
            let m = &mut self.m;
            let (c, t) = (&mut m.cpus[from.index()], &mut m.tasks[task.index()]);
            cost::cool_down(&m.costs, c, t, m.now);
            let (now, c) = (self.m.now, self.m.cpu_mut(from));
            (c.curr, c.idle_from) = (None, now);
            self.m.track(Heard::Switch { cpu: from, prev: Some(task), next: None });
            self.core_shared(from);
            self.m.cpu_mut(from).work_gen += 1;
            self.emit(Event::Switch {
                cpu: from,
                prev: Some((task, SwitchOut::Preempted)),
                next: None,
            });
            self.m.need_resched.insert(from);
        }
        let forgets = !self.m.does(Step::SignalsMigrate);
        let fair = self.is_fair(task);
        let t = self.m.task_mut(task);
        if fair {
            t.avg.last_update_time.0 = 0;
        }
        if forgets {
            (t.avg.util_avg, t.avg.util_sum) = (Util(0), 0);
        }
        t.cpu = to;
        if fair {
            self.m.track(Heard::Migrate { task, from, to });
        }
        self.emit(Event::Migrate { task, from, to, why });
        if !fair {
            self.set_task_rq_fair(task, from, to);
        }
        self.update_rq_clock(to);
        self.activate(to, task, EnqueueKind::Migrated, false);
        self.wakeup_preempt(to, task, false);
    }

    /// `sched_yield`: the class's own, then another look at the queue.
    pub(crate) fn sched_yield(&mut self, cpu: CpuId) {
        self.update_rq_clock(cpu);
        self.yield_task(cpu);
        self.m.need_resched.insert(cpu);
    }

    // ------------------------------------------------------------------ tick

    pub(crate) fn start_tick(&mut self, cpu: CpuId, at: Instant) {
        let at = self.grid_first.filter(|first| *first > self.m.now).unwrap_or(at);
        let c = self.m.cpu_mut(cpu);
        c.tick_stopped = false;
        c.tick_gen = c.tick_gen.wrapping_add(1);
        let generation = c.tick_gen;
        self.q.push(at, Ev::Tick { cpu, generation });
    }

    /// `sched_tick`.
    pub(crate) fn tick(&mut self, cpu: CpuId, generation: u32) {
        if self.m.cpu(cpu).tick_gen != generation {
            return;
        }
        self.q.push(self.m.now + self.m.tick, Ev::Tick { cpu, generation });
        let Some(curr) = self.m.cpu(cpu).curr else { return self.idle_tick(cpu) };
        self.drive(|d, k| d.tick(k, cpu));
        self.update_rq_clock(cpu);
        self.hears_at_tick(cpu);
        self.pressure_tick(cpu);
        self.task_tick(cpu, curr);
        self.trigger_load_balance(cpu);
        self.run_soft_expired(cpu);
    }
}
