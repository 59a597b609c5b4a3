//! CFS bandwidth control: groups that have used up their quota wait for the next period.
//!
//! ```text
//!  update_curr ─> account_cfs_rq_runtime ── nothing left, and none in the pool ──> throttle_cfs_rq
//!  from 6.18   the group is marked; each of its tasks leaves (into limbo) where it would go back to
//!              user mode: the running one at once, others when they are picked
//!  up to 6.17  the running task is asked to leave, and at the next put or pick the group's entity is
//!              dequeued, with all that is queued in it
//!  period timer ─> distribute_cfs_runtime ─> unthrottle_cfs_rq: limbo, or the entity, is enqueued
//!  the last task of a CPU leaves ─> its time back to the pool ─> slack timer (5 ms) ─> distribute
//! ```
//!
//! Both timers run on the CPU that started them, which wakes for them.
//!
//! A throttled group's PELT clock stands still, from 6.18 once nothing of it is queued. The
//! arithmetic of the pool: [`risetime_kernel::bandwidth`].
//!
//! DEVIATES(cfs_period_phase): a group's periods end at whole multiples of the period from the
//! run's time 0, or where an image says; the kernel adds a random offset to each group's timer. Which
//! part of a burst a period's end falls into is the kernel's dice.
//! DEVIATES(unthrottle_csd): since 6.4 a CPU that hands out a quota tells the others by an interrupt to
//! go on (`__unthrottle_cfs_rq_async`); here, as up to 6.3, they do so at once. A few µs.
//! Leaves out: `throttled_time` and the other statistics; a quota changed while it runs.
//! Source: kernel/sched/fair.c.

use crate::kernel::Kernel;
use crate::kernel::fair::Join;
use crate::state::bandwidth::throttles_tasks;
use crate::state::class::ClassTimer;
use crate::state::hooks::Step;
use crate::state::machine::State;
use crate::time::queue::Ev;
use risetime_kernel::bandwidth::{
    CFS_BANDWIDTH_SLACK_PERIOD, MIN_BANDWIDTH_EXPIRATION, SCHED_CFS_BANDWIDTH_SLICE,
};
use risetime_kernel::eevdf::{DequeueKind, EnqueueKind};
use risetime_kernel::units::{CpuId, GroupId, Span, TaskId};
use risetime_trace::{Event, Why};

impl Kernel<'_> {
    fn throttles_tasks(&self) -> bool {
        throttles_tasks(self.m.rev)
    }

    fn has_pool(&self, g: GroupId) -> bool {
        self.m.groups.limited && self.m.groups.list[g.index()].pool.is_some()
    }

    /// `update_curr` of a level: its queue's running entity, and the group's account. Where the
    /// entity's turn is over by it, the CPU reschedules.
    pub(crate) fn update_curr(&mut self, cpu: CpuId, g: GroupId) {
        let over = self.m.queue_mut(cpu, g).update_curr();
        self.charge(cpu, g);
        if over {
            self.turn_over(cpu, g);
        }
    }

    /// Books what a level has run.
    pub(crate) fn charge(&mut self, cpu: CpuId, g: GroupId) {
        if !self.has_pool(g) {
            return;
        }
        let now = self.m.cpus[cpu.index()].clock.clock_task.0;
        let rq = self.m.groups.rq_mut(cpu, g);
        if !rq.running {
            return;
        }
        let ran = now.wrapping_sub(std::mem::replace(&mut rq.bandwidth.booked, now));
        if ran > 0 {
            self.account_cfs_rq_runtime(cpu, g, Span(ran));
        }
    }

    fn account_cfs_rq_runtime(&mut self, cpu: CpuId, g: GroupId, ran: Span) {
        let rq = self.m.groups.rq_mut(cpu, g);
        if !rq.bandwidth.runtime.account(ran) {
            return;
        }
        let (running, throttled) = (rq.running, rq.bandwidth.throttled);
        if self.throttles_tasks() {
            if throttled || self.throttle_cfs_rq(cpu, g) {
                self.throttle_work(cpu, g);
            }
        } else if !throttled && !self.assign(cpu, g, SCHED_CFS_BANDWIDTH_SLICE) && running {
            self.resched_curr(cpu);
        }
    }

    /// `__assign_cfs_rq_runtime`; starts the period timer.
    fn assign(&mut self, cpu: CpuId, g: GroupId, target: Span) -> bool {
        self.start_cfs_bandwidth(cpu, g);
        let group = &mut self.m.groups.list[g.index()];
        let Some(pool) = &mut group.pool else { return true };
        group.rq[cpu.index()].bandwidth.runtime.assign(&mut pool.cfs, target)
    }

    fn start_cfs_bandwidth(&mut self, cpu: CpuId, g: GroupId) {
        let now = self.m.now;
        let Some(pool) = &mut self.m.groups.list[g.index()].pool else { return };
        if pool.expires.is_none() {
            let at = pool.next_end(now);
            (pool.expires, pool.cpu) = (Some(at), cpu);
            self.m.cpu_mut(cpu).class_timers.insert((at, ClassTimer::CfsPeriod(g)));
            self.q.push(at, Ev::CfsPeriod { group: g, awake: false });
        }
    }

    /// A period of `g` ends `after` now: so do the others, whole periods away. Its pool is full, as
    /// some periods without a task leave it.
    pub(crate) fn period_ends(&mut self, g: GroupId, after: Span) {
        let at = self.m.now + after;
        let group = self.m.groups.list.get_mut(g.index());
        let Some(pool) = group.and_then(|group| group.pool.as_mut()) else { return };
        pool.phase = Span(at.0 % pool.period.0);
        if pool.expires.is_none() {
            pool.cfs.refill();
        }
    }

    /// The group may not go on here unless the pool has something left; true if it is throttled.
    fn throttle_cfs_rq(&mut self, cpu: CpuId, g: GroupId) -> bool {
        let (tasks, rq) = (self.throttles_tasks(), self.m.groups.rq(cpu, g));
        let goes_on = tasks && rq.running && rq.nr_queued > 0;
        let target = if goes_on { SCHED_CFS_BANDWIDTH_SLICE } else { Span(1) };
        if self.assign(cpu, g, target) || !self.m.does(Step::ThrottleCfsRq) {
            return false;
        }
        if let Some(pool) = &mut self.m.groups.list[g.index()].pool {
            pool.throttled.push(cpu);
        }
        let now = self.m.cpus[cpu.index()].clock.rq_clock_pelt();
        for inner in self.inside(g) {
            let rq = self.m.groups.rq_mut(cpu, inner);
            rq.bandwidth.throttle_count += 1;
            if rq.bandwidth.throttle_count == 1 && (!tasks || rq.nr_queued == 0) {
                rq.bandwidth.stop(now);
            }
        }
        if !tasks {
            let rq = self.m.groups.rq(cpu, g);
            let (queued, runnable) = (rq.h_nr_queued as i32, rq.h_nr_runnable as i32);
            if rq.se.on_rq {
                self.dequeue_upwards(cpu, g, (queued, runnable), DequeueKind::SleepSpecial, false);
            }
        }
        self.m.groups.rq_mut(cpu, g).bandwidth.throttled = true;
        true
    }

    /// `g` and the groups in it, the inner ones last.
    fn inside(&self, g: GroupId) -> Vec<GroupId> {
        let all = (g.0..self.m.groups.list.len() as u32).map(GroupId);
        all.filter(|inner| self.m.groups.holds(g, *inner)).collect()
    }

    /// The running task is to leave when it goes back to user mode, which here it does at the end
    /// of whatever happens now (`task_throttle_setup_work`).
    fn throttle_work(&mut self, cpu: CpuId, g: GroupId) {
        if self.m.groups.rq(cpu, g).running {
            self.m.throttle_work.insert(cpu);
        }
    }

    /// The running tasks that are to leave do so (`throttle_cfs_rq_work`). The first that may go on after
    /// all, until there are none.
    pub(crate) fn drain_throttle_work(&mut self) -> Option<(CpuId, TaskId)> {
        while let Some(cpu) = self.m.throttle_work.lowest() {
            self.m.throttle_work.remove(cpu);
            let Some(task) = self.m.cpu(cpu).curr.filter(|t| self.is_fair(*t)) else { continue };
            let t = self.m.task(task);
            let g = t.group;
            let leaves = t.state == State::Runnable
                && self.m.fair_entity(cpu, task).is_some()
                && self.m.groups.rq(cpu, g).bandwidth.in_throttled_hierarchy();
            if !leaves {
                if self.m.task(task).state == State::Runnable {
                    return Some((cpu, task));
                }
                continue;
            }
            self.update_rq_clock(cpu);
            self.dequeue_task_fair(cpu, task, DequeueKind::SleepSpecial);
            self.m.groups.rq_mut(cpu, g).bandwidth.limbo.push(task);
            self.m.task_mut(task).throttled = true;
            self.m.need_resched.insert(cpu);
        }
        None
    }

    /// The first entity is queued on a level (end of `enqueue_entity`).
    pub(crate) fn first_queued(&mut self, cpu: CpuId, g: GroupId) {
        if !self.m.groups.limited {
            return;
        }
        // `check_enqueue_throttle`
        let rq = self.m.groups.rq(cpu, g);
        if self.has_pool(g) && !rq.running && !rq.bandwidth.throttled {
            if self.throttles_tasks() {
                self.account_cfs_rq_runtime(cpu, g, Span(0));
            } else if self.m.groups.rq_mut(cpu, g).bandwidth.runtime.account(Span(0))
                && !self.assign(cpu, g, SCHED_CFS_BANDWIDTH_SLICE)
            {
                self.throttle_cfs_rq(cpu, g);
            }
        }
        if self.throttles_tasks() {
            let now = self.m.cpus[cpu.index()].clock.rq_clock_pelt();
            self.m.groups.rq_mut(cpu, g).bandwidth.start(now);
        }
    }

    /// The last entity has left a level (end of `dequeue_entity`).
    pub(crate) fn last_dequeued(&mut self, cpu: CpuId, g: GroupId) {
        if !self.m.groups.limited {
            return;
        }
        self.return_cfs_rq_runtime(cpu, g);
        if self.throttles_tasks() && self.m.groups.rq(cpu, g).bandwidth.in_throttled_hierarchy() {
            let now = self.m.cpus[cpu.index()].clock.rq_clock_pelt();
            self.m.groups.rq_mut(cpu, g).bandwidth.stop(now);
        }
    }

    fn return_cfs_rq_runtime(&mut self, cpu: CpuId, g: GroupId) {
        let now = self.m.now;
        let group = &mut self.m.groups.list[g.index()];
        let Some(pool) = &mut group.pool else { return };
        if !group.rq[cpu.index()].bandwidth.runtime.give_back(&mut pool.cfs) {
            return;
        }
        let left = pool.expires.map_or(Span(u64::MAX), |at| at.since(now));
        let soon = left < CFS_BANDWIDTH_SLACK_PERIOD + MIN_BANDWIDTH_EXPIRATION;
        if pool.cfs.has_slack() && !pool.throttled.is_empty() && !soon && pool.slack.is_none() {
            pool.slack = Some(cpu);
            let at = now + CFS_BANDWIDTH_SLACK_PERIOD;
            self.m.cpu_mut(cpu).class_timers.insert((at, ClassTimer::CfsSlack(g)));
            self.q.push(at, Ev::CfsSlack { group: g, awake: false });
        }
    }

    /// `check_cfs_rq_runtime`, which a pick and a put ask (up to 6.17); true if the group is
    /// throttled.
    pub(crate) fn check_cfs_rq_runtime(&mut self, cpu: CpuId, g: GroupId) -> bool {
        if self.throttles_tasks() || !self.has_pool(g) {
            return false;
        }
        let bandwidth = &self.m.groups.rq(cpu, g).bandwidth;
        bandwidth.runtime.remaining() <= 0 && (bandwidth.throttled || self.throttle_cfs_rq(cpu, g))
    }

    /// The same of `g` and all groups above it, for a pick that does not go down them.
    pub(crate) fn check_all_runtime(&mut self, cpu: CpuId, g: GroupId) {
        let mut g = g;
        while g != GroupId::ROOT {
            self.charge(cpu, g);
            self.check_cfs_rq_runtime(cpu, g);
            g = self.m.groups.parent(g);
        }
    }

    /// A task that a pick has told to leave, as its group has used up its time, is told again when it
    /// comes back.
    pub(crate) fn throttled_by_pick(&mut self, cpu: CpuId) {
        if self.m.groups.limited {
            self.m.throttle_work.remove(cpu);
        }
    }

    /// A level has got the CPU, unless it had it (`set`): from now on it runs.
    pub(crate) fn bandwidth_set_next(&mut self, cpu: CpuId, g: GroupId, set: bool) {
        if !self.m.groups.limited {
            return;
        }
        let now = self.m.cpus[cpu.index()].clock.clock_task.0;
        let rq = self.m.groups.rq_mut(cpu, g);
        if !set {
            rq.bandwidth.booked = now;
        }
        if rq.bandwidth.in_throttled_hierarchy() && self.throttles_tasks() {
            self.throttle_work(cpu, g);
        }
        if self.has_pool(g) {
            self.account_cfs_rq_runtime(cpu, g, Span(0));
        }
    }

    /// A quota's timer expires on `cpu`: an idle one leaves its idle state first, and `again` comes
    /// then; true: it is awake.
    fn cfs_timer(&mut self, cpu: CpuId, timer: ClassTimer, awake: bool, again: Ev) -> bool {
        let idle = self.m.cpu(cpu).idle;
        if let Some(idle) = idle.filter(|_| !awake) {
            let latency = self.exit_latency(cpu, idle);
            self.q.push(self.m.now + latency, again);
            return false;
        }
        self.m.cpu_mut(cpu).class_timers.retain(|(_, t)| *t != timer);
        self.hears(cpu);
        if idle.is_some() {
            self.leave_idle(cpu);
        }
        true
    }

    /// `sched_cfs_period_timer`.
    pub(crate) fn cfs_period(&mut self, g: GroupId, awake: bool) {
        let now = self.m.now;
        let Some(pool) = &self.m.groups.list[g.index()].pool else { return };
        let (cpu, again) = (pool.cpu, Ev::CfsPeriod { group: g, awake: true });
        if !self.cfs_timer(cpu, ClassTimer::CfsPeriod(g), awake, again) {
            return;
        }
        let Some(pool) = &mut self.m.groups.list[g.index()].pool else { return };
        let throttled = !pool.throttled.is_empty();
        let goes_on = pool.cfs.period(throttled);
        let next = pool.next_end(now);
        pool.expires = goes_on.then_some(next);
        if throttled {
            self.distribute_cfs_runtime(g);
        }
        if goes_on {
            self.m.cpu_mut(cpu).class_timers.insert((next, ClassTimer::CfsPeriod(g)));
            self.q.push(next, Ev::CfsPeriod { group: g, awake: false });
        }
        self.run_soft_expired(cpu);
        self.idle_loop(cpu);
    }

    /// `do_sched_cfs_slack_timer`.
    pub(crate) fn cfs_slack(&mut self, g: GroupId, awake: bool) {
        let now = self.m.now;
        let Some(pool) = &self.m.groups.list[g.index()].pool else { return };
        let Some(cpu) = pool.slack else { return };
        let again = Ev::CfsSlack { group: g, awake: true };
        if !self.cfs_timer(cpu, ClassTimer::CfsSlack(g), awake, again) {
            return;
        }
        let Some(pool) = &mut self.m.groups.list[g.index()].pool else { return };
        pool.slack = None;
        let left = pool.expires.map_or(Span(u64::MAX), |at| at.since(now));
        if left >= MIN_BANDWIDTH_EXPIRATION && pool.cfs.has_slack() {
            self.distribute_cfs_runtime(g);
        }
        self.run_soft_expired(cpu);
        self.idle_loop(cpu);
    }

    /// Throttled CPUs get their debt paid plus 1 ns, in the order in which they were throttled.
    fn distribute_cfs_runtime(&mut self, g: GroupId) {
        let Some(pool) = &self.m.groups.list[g.index()].pool else { return };
        let waiting = pool.throttled.clone();
        let mut paid = Vec::new();
        for cpu in waiting {
            self.update_rq_clock(cpu);
            self.charge(cpu, g);
            let group = &mut self.m.groups.list[g.index()];
            let Some(pool) = &mut group.pool else { return };
            if pool.cfs.runtime() == Span(0) {
                break;
            }
            if !group.rq[cpu.index()].bandwidth.runtime.distribute(&mut pool.cfs) {
                break;
            }
            paid.push(cpu);
        }
        for cpu in paid {
            self.unthrottle_cfs_rq(cpu, g);
        }
    }

    fn unthrottle_cfs_rq(&mut self, cpu: CpuId, g: GroupId) {
        self.m.groups.rq_mut(cpu, g).bandwidth.throttled = false;
        if let Some(pool) = &mut self.m.groups.list[g.index()].pool {
            pool.throttled.retain(|c| *c != cpu);
        }
        for inner in self.inside(g).into_iter().rev() {
            self.tg_unthrottle_up(cpu, inner);
        }
        if !self.throttles_tasks() {
            let rq = self.m.groups.rq(cpu, g);
            if rq.load != 0 {
                let (queued, runnable) = (rq.h_nr_queued as i32, rq.h_nr_runnable as i32);
                self.enqueue_upwards(cpu, g, queued, runnable);
            }
        }
        if self.m.cpu(cpu).nr_running() >= 2 {
            self.m.root.overloaded = true;
        }
        let queued = self.m.groups.rq(cpu, GroupId::ROOT).h_nr_queued;
        if self.m.cpu(cpu).curr.is_none() && queued > 0 {
            self.resched_curr(cpu);
        }
    }

    /// A task that another trace moves waits in limbo here, if throttled by some µs more: it goes on.
    pub(crate) fn leave_limbo(&mut self, task: TaskId) {
        let (cpu, g) = (self.m.task(task).cpu, self.m.task(task).group);
        if !std::mem::take(&mut self.m.task_mut(task).throttled) {
            return;
        }
        self.m.groups.rq_mut(cpu, g).bandwidth.limbo.retain(|t| *t != task);
        self.update_rq_clock(cpu);
        self.enqueue_task_fair(cpu, task, EnqueueKind::Wakeup, true);
    }

    /// A task in limbo moves to another CPU: into limbo there, or onto the queue where its group has
    /// quota (`dequeue_throttled_task`, `enqueue_throttled_task`).
    pub(crate) fn move_throttled(&mut self, task: TaskId, from: CpuId, to: CpuId, why: Why) {
        let g = self.m.task(task).group;
        self.m.groups.rq_mut(from, g).bandwidth.limbo.retain(|t| *t != task);
        self.update_rq_clock(from);
        self.update_load_avg(from, task, Join::Detach);
        let t = &mut self.m.tasks[task.index()];
        self.m.cpus[from.index()].uclamp.uclamp_rq_dec(&mut t.uclamp);
        t.avg.last_update_time.0 = 0;
        t.cpu = to;
        self.emit(Event::Migrate { task, from, to, why });
        self.update_rq_clock(to);
        if self.m.groups.rq(to, g).bandwidth.in_throttled_hierarchy() {
            let t = &mut self.m.tasks[task.index()];
            self.m.cpus[to.index()].uclamp.uclamp_rq_inc(&mut t.uclamp, &t.limits);
            self.m.groups.rq_mut(to, g).bandwidth.limbo.push(task);
        } else {
            self.m.task_mut(task).throttled = false;
            self.activate(to, task, EnqueueKind::Migrated, false);
            self.wakeup_preempt(to, task, false);
        }
    }

    /// A group in one that is no longer throttled: its clock goes on, and who waits in limbo is
    /// queued again, unless it or a group above it still is.
    fn tg_unthrottle_up(&mut self, cpu: CpuId, g: GroupId) {
        let now = self.m.cpus[cpu.index()].clock.rq_clock_pelt();
        let bandwidth = &mut self.m.groups.rq_mut(cpu, g).bandwidth;
        bandwidth.throttle_count -= 1;
        if bandwidth.throttle_count > 0 {
            return;
        }
        bandwidth.start(now);
        let mut limbo = std::mem::take(&mut bandwidth.limbo);
        while let Some(task) = limbo.pop() {
            if self.m.groups.rq(cpu, g).bandwidth.in_throttled_hierarchy() {
                limbo.push(task);
                break;
            }
            self.m.task_mut(task).throttled = false;
            self.enqueue_task_fair(cpu, task, EnqueueKind::Wakeup, true);
        }
        let rest = &mut self.m.groups.rq_mut(cpu, g).bandwidth.limbo;
        limbo.append(rest);
        *rest = limbo;
    }
}
