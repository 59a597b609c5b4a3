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
//! `throttled_time` counts from when the group is throttled (up to 6.5, whether it has a task or not), from when it is and a
//! task is queued in it (6.6 to 6.17), from when the first of its tasks has left for that reason (since 6.18), to the
//! distribution that lets it go on.
//!
//! A throttled group's PELT clock stands still, from 6.18 once nothing of it is queued. The
//! arithmetic of the pool: [`risetime_kernel::bandwidth`].
//!
//! DEVIATES(cfs_period_phase): a group's periods end at whole multiples of its period from the run's
//! time 0, or where an image says, while the kernel adds a random offset to each group's timer. Which
//! part of a burst is throttled is the kernel's dice; `verify` takes over how they fell.
//! DEVIATES(unthrottle_csd): since 6.4 a CPU that hands out a quota tells the others by an interrupt to
//! go on (`__unthrottle_cfs_rq_async`); here, as up to 6.3, they do so at once: a few µs earlier.
//! Leaves out: a quota changed while it runs.
//! Source: kernel/sched/fair.c.

use crate::kernel::Kernel;
use crate::kernel::rq::Rq;
use crate::state::bandwidth::Pool;
use crate::state::bandwidth::{counts_from_throttling, throttles_tasks};
use crate::state::class::ClassTimer;
use crate::state::hooks::Step;
use crate::state::machine::Machine;
use crate::state::machine::State;
use crate::time::queue::Ev;
use risetime_kernel::bandwidth::{CFS_BANDWIDTH_SLACK_PERIOD, MIN_BANDWIDTH_EXPIRATION};
use risetime_kernel::eevdf::{DequeueKind, EnqueueKind};
use risetime_kernel::units::Instant;
use risetime_kernel::units::{CpuId, GroupId, Span, TaskId};
use risetime_trace::QuotaStat;

impl Rq<'_, '_> {
    /// `update_curr` of a level: its queue's running entity, and the group's account. Where the
    /// entity's turn is over by it, the CPU reschedules.
    pub(crate) fn update_curr(&mut self, g: GroupId) {
        let over = self.queue_mut(g).update_curr();
        if self.m().slots.cache.is_some() {
            self.account_mm_sched(g);
        }
        self.charge(g);
        if over {
            self.turn_over(g);
        }
    }

    /// Books what a level has run.
    pub(crate) fn charge(&mut self, g: GroupId) {
        let cpu = self.cpu;
        if !self.m().has_pool(g) {
            return;
        }
        let now = self.m().cpus[cpu.index()].clock.clock_task.0;
        let rq = self.level(g);
        if !rq.running {
            return;
        }
        let ran = now.wrapping_sub(std::mem::replace(&mut rq.bandwidth.booked, now));
        if ran > 0 {
            self.account_cfs_rq_runtime(g, Span(ran));
        }
    }

    fn account_cfs_rq_runtime(&mut self, g: GroupId, ran: Span) {
        let rq = self.level(g);
        if !rq.bandwidth.runtime.account(ran) {
            return;
        }
        let (running, throttled) = (rq.running, rq.bandwidth.throttled);
        if self.m().throttles_tasks() {
            if throttled || self.throttle_cfs_rq(g) {
                self.throttle_work(g);
            }
        } else if !throttled && !self.assign_slice(g) && running {
            self.resched_curr();
        }
    }

    /// `assign_cfs_rq_runtime`.
    fn assign_slice(&mut self, g: GroupId) -> bool {
        let slice = self.m().slots.sysctls.cfs_slice;
        self.assign(g, slice)
    }

    /// `__assign_cfs_rq_runtime`; starts the period timer.
    fn assign(&mut self, g: GroupId, target: Span) -> bool {
        self.start_cfs_bandwidth(g);
        let Some((pool, own)) = self.pool(g) else { return true };
        own.runtime.assign(&mut pool.cfs, target)
    }

    fn start_cfs_bandwidth(&mut self, g: GroupId) {
        let cpu = self.cpu;
        let now = self.m().now;
        let Some((pool, _)) = self.pool(g) else { return };
        if pool.expires.is_none() {
            let at = pool.next_end(now);
            (pool.expires, pool.cpu) = (Some(at), cpu);
            self.c().class_timers.insert((at, ClassTimer::CfsPeriod(g)));
            self.push(at, Ev::CfsPeriod { group: g, awake: false });
            self.program_event();
        }
    }

    /// Throttles the group here unless the pool has something left; returns whether it is
    /// throttled.
    fn throttle_cfs_rq(&mut self, g: GroupId) -> bool {
        let cpu = self.cpu;
        let (tasks, rq) = (self.m().throttles_tasks(), self.m().groups.rq(cpu, g));
        let goes_on = tasks && rq.running && rq.nr_queued > 0;
        let target = if goes_on { self.m().slots.sysctls.cfs_slice } else { Span(1) };
        if self.assign(g, target) || !self.m().does(Step::ThrottleCfsRq) {
            return false;
        }
        if let Some((pool, _)) = self.pool(g) {
            pool.throttled.push(cpu);
        }
        self.throttles(g);
        true
    }

    /// Marks the group and those inside it as throttled on this CPU.
    pub(crate) fn throttles(&mut self, g: GroupId) {
        let (cpu, tasks) = (self.cpu, self.m().throttles_tasks());
        let now = self.m().cpus[cpu.index()].clock.rq_clock_pelt();
        for inner in self.m().inside(g) {
            let rq = self.level(inner);
            rq.bandwidth.throttle_count += 1;
            if rq.bandwidth.throttle_count == 1 && (!tasks || rq.nr_queued == 0) {
                rq.bandwidth.stop(now);
            }
        }
        if !tasks {
            let rq = self.m().groups.rq(cpu, g);
            let (queued, runnable) = (rq.h_nr_queued as i32, rq.h_nr_runnable as i32);
            if rq.se.on_rq {
                self.dequeue_upwards(g, (queued, runnable), DequeueKind::SleepSpecial, false);
            }
        }
        let (at, queued) = (self.m().now, self.m().groups.rq(cpu, g).h_nr_queued);
        let rev = self.m().rev;
        let bandwidth = &mut self.level(g).bandwidth;
        bandwidth.throttled = true;
        if counts_from_throttling(rev, queued > 0) {
            bandwidth.waits(at);
        }
    }

    /// Asks the running task to leave when it goes back to user mode, which here it does at the end
    /// of whatever happens now (`task_throttle_setup_work`).
    fn throttle_work(&mut self, g: GroupId) {
        let cpu = self.cpu;
        if self.m().groups.rq(cpu, g).running {
            self.set_throttle_work(true);
        }
    }

    /// Charges or throttles the level of `g` as its first entity is queued (end of
    /// `enqueue_entity`).
    pub(crate) fn first_queued(&mut self, g: GroupId) {
        let cpu = self.cpu;
        if !self.m().groups.limited {
            return;
        }
        // `check_enqueue_throttle`
        let rq = self.m().groups.rq(cpu, g);
        if self.m().has_pool(g) && !rq.running && !rq.bandwidth.throttled {
            if self.m().throttles_tasks() {
                self.account_cfs_rq_runtime(g, Span(0));
            } else if self.level(g).bandwidth.runtime.account(Span(0)) && !self.assign_slice(g) {
                self.throttle_cfs_rq(g);
            }
        }
        if self.m().throttles_tasks() {
            let now = self.m().cpus[cpu.index()].clock.rq_clock_pelt();
            self.level(g).bandwidth.start(now);
        } else {
            let now = self.m().now;
            self.level(g).bandwidth.waits(now);
        }
    }

    /// Gives the runtime of the level of `g` back as its last entity has left (end of
    /// `dequeue_entity`).
    pub(crate) fn last_dequeued(&mut self, g: GroupId) {
        let cpu = self.cpu;
        if !self.m().groups.limited {
            return;
        }
        self.return_cfs_rq_runtime(g);
        if self.m().throttles_tasks()
            && self.m().groups.rq(cpu, g).bandwidth.in_throttled_hierarchy()
        {
            let now = self.m().cpus[cpu.index()].clock.rq_clock_pelt();
            self.level(g).bandwidth.stop(now);
        }
    }

    fn return_cfs_rq_runtime(&mut self, g: GroupId) {
        let cpu = self.cpu;
        let (now, slice) = (self.m().now, self.m().slots.sysctls.cfs_slice);
        let Some((pool, own)) = self.pool(g) else { return };
        if !own.runtime.give_back(&mut pool.cfs) {
            return;
        }
        let left = pool.expires.map_or(Span(u64::MAX), |at| at.since(now));
        let soon = left < CFS_BANDWIDTH_SLACK_PERIOD + MIN_BANDWIDTH_EXPIRATION;
        let gathers = pool.slack.is_some() || soon;
        if pool.cfs.has_slack(slice) && !pool.throttled.is_empty() && !gathers {
            pool.slack = Some(cpu);
            let at = now + CFS_BANDWIDTH_SLACK_PERIOD;
            self.c().class_timers.insert((at, ClassTimer::CfsSlack(g)));
            self.push(at, Ev::CfsSlack { group: g, awake: false });
            self.program_event();
        }
    }

    /// `check_cfs_rq_runtime`, which a pick and a put ask (up to 6.17); true if the group is
    /// throttled.
    pub(crate) fn check_cfs_rq_runtime(&mut self, g: GroupId) -> bool {
        let cpu = self.cpu;
        if self.m().throttles_tasks() || !self.m().has_pool(g) {
            return false;
        }
        let bandwidth = &self.m().groups.rq(cpu, g).bandwidth;
        bandwidth.runtime.remaining() <= 0 && (bandwidth.throttled || self.throttle_cfs_rq(g))
    }

    /// `check_cfs_rq_runtime` where a task that has fallen asleep is put, whose group may have used up its time with that.
    ///
    /// DEVIATES(quota-asleep): falling asleep takes 1 ns here, unless a noise profile says more, and some µs in a kernel: a group that has
    /// run exactly its quota has no time left, and not the one ns that a CPU's account begins with. Else its next task would
    /// run until a tick finds that out.
    pub(crate) fn check_runtime_of_sleeper(&mut self, g: GroupId) {
        let rq = self.m().groups.rq(self.cpu, g);
        if g == GroupId::ROOT || !rq.running || self.m().throttles_tasks() || !self.m().has_pool(g)
        {
            return;
        }
        if rq.bandwidth.runtime.remaining() == 1 {
            self.level(g).bandwidth.runtime.account(Span(1));
        }
        self.check_cfs_rq_runtime(g);
    }

    /// `check_cfs_rq_runtime` of `g` and all groups above it, for a pick that does not go down them.
    pub(crate) fn check_all_runtime(&mut self, g: GroupId) {
        let mut g = g;
        while g != GroupId::ROOT {
            self.charge(g);
            self.check_cfs_rq_runtime(g);
            g = self.m().groups.parent(g);
        }
    }

    /// A task that a pick has told to leave, as its group has used up its time, is told again when it
    /// comes back.
    pub(crate) fn throttled_by_pick(&mut self) {
        if self.m().groups.limited {
            self.set_throttle_work(false);
        }
    }

    /// Charges a level that has got the CPU; unless it had the CPU already (`set`), its time counts
    /// from now on.
    pub(crate) fn bandwidth_set_next(&mut self, g: GroupId, set: bool) {
        let cpu = self.cpu;
        if !self.m().groups.limited {
            return;
        }
        let now = self.m().cpus[cpu.index()].clock.clock_task.0;
        let rq = self.level(g);
        if !set {
            rq.bandwidth.booked = now;
        }
        if rq.bandwidth.in_throttled_hierarchy() && self.m().throttles_tasks() {
            self.throttle_work(g);
        }
        if self.m().has_pool(g) {
            self.account_cfs_rq_runtime(g, Span(0));
        }
    }

    pub(crate) fn unthrottle_cfs_rq(&mut self, g: GroupId) {
        let cpu = self.cpu;
        let now = self.m().now;
        let bandwidth = &mut self.level(g).bandwidth;
        bandwidth.throttled = false;
        let waits = bandwidth.waits.take();
        if let Some((pool, _)) = self.pool(g) {
            pool.throttled.retain(|c| *c != cpu);
            waits.into_iter().for_each(|since| pool.waited(now.since(since)));
        }
        for inner in self.m().inside(g).into_iter().rev() {
            self.tg_unthrottle_up(inner);
        }
        if !self.m().throttles_tasks() {
            let rq = self.m().groups.rq(cpu, g);
            if rq.load != 0 {
                let (queued, runnable) = (rq.h_nr_queued as i32, rq.h_nr_runnable as i32);
                self.enqueue_upwards(g, queued, runnable);
            }
        }
        if self.m().cpu(cpu).nr_running() >= 2 {
            self.set_overloaded(true);
        }
        let queued = self.m().groups.rq(cpu, GroupId::ROOT).h_nr_queued;
        if self.m().cpu(cpu).curr.is_none() && queued > 0 {
            self.resched_curr();
        }
    }

    /// A group in one that is no longer throttled: its clock goes on, and who waits in limbo is
    /// queued again, unless it or a group above it still is.
    fn tg_unthrottle_up(&mut self, g: GroupId) {
        let cpu = self.cpu;
        let now = self.m().cpus[cpu.index()].clock.rq_clock_pelt();
        let bandwidth = &mut self.level(g).bandwidth;
        bandwidth.throttle_count -= 1;
        if bandwidth.throttle_count > 0 {
            return;
        }
        bandwidth.start(now);
        let mut limbo = std::mem::take(&mut bandwidth.limbo);
        while let Some(task) = limbo.pop() {
            if self.m().groups.rq(cpu, g).bandwidth.in_throttled_hierarchy() {
                limbo.push(task);
                break;
            }
            self.t(task).throttled = false;
            self.enqueue_task_fair(task, EnqueueKind::Wakeup, true);
        }
        let rest = &mut self.level(g).bandwidth.limbo;
        limbo.append(rest);
        *rest = limbo;
    }
}

/// Sets the phase of a quota's periods so that one ends `at` this moment. The pool is full, as some
/// periods without a task leave it.
pub(crate) fn period_ends(pool: &mut Pool, at: Instant) {
    pool.phase = Span(at.0 % pool.period.0);
    if pool.expires.is_none() {
        pool.cfs.refill();
    }
}

impl Rq<'_, '_> {
    /// Whether the running task, asked to leave, waits: its CPU is in an interrupt, and it leaves
    /// behind that, on its way back to user mode.
    pub(crate) fn throttle_work_waits(&mut self) -> bool {
        let c = self.m().cpu(self.cpu);
        c.resched_held && c.irq_work_until > self.m().now || self.is_in_irq_work()
    }

    /// Takes the running task, which was asked to leave, off its queue (`throttle_cfs_rq_work`); a
    /// task that may go on after all is returned.
    pub(crate) fn throttle_cfs_rq_work(&mut self) -> Option<TaskId> {
        self.set_throttle_work(false);
        let cpu = self.cpu;
        let task = self.m().cpu(cpu).curr.filter(|t| self.m().is_fair(*t))?;
        let t = self.m().task(task);
        let (g, runnable) = (t.group, t.state == State::Runnable);
        let leaves = runnable
            && self.m().fair_entity(cpu, task).is_some()
            && self.m().groups.rq(cpu, g).bandwidth.in_throttled_hierarchy();
        if !leaves {
            return Some(task).filter(|_| runnable);
        }
        self.update_rq_clock();
        self.dequeue_task_fair(task, DequeueKind::SleepSpecial);
        self.level(g).bandwidth.limbo.push(task);
        self.record_throttle_clock(g);
        self.t(task).throttled = true;
        self.set_need_resched();
        None
    }
}

impl Rq<'_, '_> {
    /// Starts the throttled time of `g` and the groups above it: a task of `g` has left because its
    /// time, or that of a group above, is used up (`record_throttle_clock`).
    fn record_throttle_clock(&mut self, g: GroupId) {
        let (now, mut g) = (self.m().now, g);
        while g != GroupId::ROOT {
            self.level(g).bandwidth.waits(now);
            g = self.m().groups.parent(g);
        }
    }
}

impl Kernel<'_> {
    /// Pays throttled CPUs their debt plus 1 ns, in the order in which they were throttled.
    pub(crate) fn distribute_cfs_runtime(&mut self, g: GroupId) {
        let Some(pool) = &self.m.groups.list[g.index()].pool else { return };
        let waiting = pool.throttled.clone();
        let mut paid = Vec::new();
        for cpu in waiting {
            self.rq(cpu).update_rq_clock();
            self.rq(cpu).charge(g);
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
            self.rq(cpu).unthrottle_cfs_rq(g);
        }
    }
}

impl Machine {
    /// Lists the counts of each group's quota (`cpu.stat`).
    pub(crate) fn quotas(&self) -> Vec<(GroupId, QuotaStat)> {
        let groups = (0..).map(GroupId).zip(&self.groups.list);
        groups.filter_map(|(g, group)| Some((g, group.pool.as_ref()?.stat))).collect()
    }

    /// `throttled_hierarchy`: whether `g` or a group above it waits for its quota on `cpu`.
    pub(crate) fn throttled_hierarchy(&self, cpu: CpuId, g: GroupId) -> bool {
        self.groups.limited && self.groups.rq(cpu, g).bandwidth.in_throttled_hierarchy()
    }

    /// Whether a task of `g` would not run on `dst` (`lb_throttled_hierarchy`), or leaves a runqueue
    /// that is frozen (up to 6.17, `throttled_lb_pair`).
    pub(crate) fn lb_throttled(&self, dst: CpuId, src: CpuId, g: GroupId) -> bool {
        self.throttled_hierarchy(dst, g)
            || (!throttles_tasks(self.rev) && self.throttled_hierarchy(src, g))
    }

    /// Whether a walk up the hierarchy ends at `g`, because it is throttled (up to 6.17).
    pub(crate) fn ends_at_throttled(&self, cpu: CpuId, g: GroupId) -> bool {
        self.groups.limited
            && !throttles_tasks(self.rev)
            && self.groups.rq(cpu, g).bandwidth.throttled
    }

    pub(crate) fn throttles_tasks(&self) -> bool {
        throttles_tasks(self.rev)
    }

    pub(crate) fn has_pool(&self, g: GroupId) -> bool {
        self.groups.limited && self.groups.list[g.index()].pool.is_some()
    }

    /// `g` and the groups in it, the inner ones last.
    fn inside(&self, g: GroupId) -> Vec<GroupId> {
        let all = (g.0..self.groups.list.len() as u32).map(GroupId);
        all.filter(|inner| self.groups.holds(g, *inner)).collect()
    }
}
