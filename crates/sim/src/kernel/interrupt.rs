//! Timers that expire on a CPU, which an idle CPU wakes for (devices: [`crate::mech::pressure`]).
//!
//! ```text
//! expires ── idle? ── exit latency ──> awake ── what it is for ── back to work, or to idle (idle_loop)
//! ```
//!
//! DEVIATES(timer-alone): a timer that is due while its CPU is on its way to another one's interrupt has one of its own, as late and
//! after as long a way out of the idle state as if it were alone. In a kernel the first interrupt sees to all that has expired
//! (`hrtimer_interrupt`): a second wakeup comes up to that much earlier.

use crate::kernel::Kernel;
use crate::kernel::rq::Rq;
use crate::state::class::ClassTimer;
use crate::state::costs::Kind;
use crate::state::machine::{Machine, Role};
use crate::time::queue::Ev;
use risetime_kernel::bandwidth::MIN_BANDWIDTH_EXPIRATION;
use risetime_kernel::units::{CpuId, GroupId, Instant, Span, TaskId};

impl Machine {
    /// The CPU on which a task's timer expires, unless it was set anew.
    pub(crate) fn timer_expires(&self, task: TaskId, generation: u32) -> Option<CpuId> {
        (self.task(task).timer_gen == generation).then(|| self.timer_cpu(task)).flatten()
    }
}

impl Rq<'_, '_> {
    /// Handles a task's timer that expires on the CPU it slept on, which may have to wake up for
    /// it.
    pub(crate) fn timer(&mut self, task: TaskId, generation: u32) {
        if matches!(self.m().task(task).role, Role::User) {
            self.counts_interrupt();
        }
        let late = self.takes(Kind::Timer, task);
        match self.interrupted_in(late) {
            Some(at) => self.push(at, Ev::TimerAwake { task, generation }),
            None => self.timer_awake(task),
        }
    }

    /// The time at which the CPU sees to a timer whose interrupt is `late`, once it is out of its
    /// idle state; `None`: now.
    fn interrupted_in(&self, late: Span) -> Option<Instant> {
        let idle = self.m().cpu(self.cpu).idle;
        let at = self.m().now + late;
        let leaves = idle.map(|idle| self.m().exit_latency(self.cpu, idle, at));
        (leaves.is_some() || late > Span(0)).then(|| at + leaves.unwrap_or(Span(0)))
    }

    pub(crate) fn timer_awake(&mut self, task: TaskId) {
        self.t(task).timer_cpu = None;
        // The timers of a kthread's wakeup are none: there it is an interrupt.
        self.c().timers.remove(task);
        self.leave_idle();
        match self.m().task(task).role {
            Role::User => self.wake_up_due(task),
            _ => self.wake_up(task),
        }
        self.hears();
        self.run_soft_expired();
        self.pay_for_interrupt();
        self.idle_loop();
    }

    /// Takes the time of a timer's interrupt from the running task.
    pub(crate) fn pay_for_interrupt(&mut self) {
        if self.m().costs.is_free(Kind::Tick) || self.m().cpu(self.cpu).curr.is_none() {
            return;
        }
        let span = self.takes_on(Kind::Tick);
        self.steal(span);
    }

    /// Handles a class's timer that expires; `awake`: the CPU has left its idle state for it.
    fn class_timer(&mut self, timer: ClassTimer, awake: bool) {
        let cpu = self.cpu;
        if !awake {
            self.counts_interrupt();
            let late = match timer {
                ClassTimer::Replenish(task) => self.takes(Kind::Timer, task),
                _ => Span(0),
            };
            if let Some(at) = self.interrupted_in(late) {
                return self.push(at, Ev::ClassTimer { timer, awake: true });
            }
        }
        let idle = self.m().cpu(cpu).idle;
        self.hears();
        let now = self.m().now;
        self.c().class_timers.expire(timer, now);
        if idle.is_some() {
            self.leave_idle();
        }
        if self.m().cpu(cpu).curr.is_some() && !self.m().costs.is_free(Kind::Irq) {
            let until = now + self.takes_on(Kind::Irq);
            self.ends_later(until);
        }
        self.update_rq_clock();
        match timer {
            ClassTimer::Replenish(task) => self.dl_task_timer(task),
            ClassTimer::Inactive(task) => self.inactive_task_timer(task),
            ClassTimer::Server(_) => self.dl_server_timer(),
            ClassTimer::ServerInactive(_) => self.server_inactive_timer(),
            ClassTimer::GroupServer(_, g) => self.group_server_timer(g),
            ClassTimer::GroupInactive(_, g) => self.group_inactive_timer(g),
            ClassTimer::Overcommit(_) => self.overcommit_timer(),
            ClassTimer::SliceOver(_) => self.hrexpiry(),
            _ => {}
        }
        self.run_soft_expired();
        self.idle_loop();
    }
}

impl Kernel<'_> {
    /// Handles a class's timer that expires; `awake`: its CPU has left its idle state for it.
    pub(crate) fn class_timer(&mut self, timer: ClassTimer, awake: bool) {
        if let ClassTimer::Demotion(task) = timer {
            let cpu = self.m.task(task).cpu;
            return self.rq(cpu).demotion(task);
        }
        let Some((cpu, at)) = self.m.timer_is_due(timer) else { return };
        if timer == ClassTimer::RtPeriod {
            if at > self.m.now {
                return;
            }
            match self.m.waits_for_tick() {
                Some(tick) => self.q.push(tick, Ev::ClassTimer { timer, awake }),
                None => self.rt_period_timer(),
            }
        } else if self.m.slots.hrtimers.at_ticks() && !awake {
            // The tick of the timer's CPU runs it.
        } else if at <= self.m.sched_clock() {
            self.rq(cpu).class_timer(timer, awake);
        }
    }

    /// `sched_cfs_period_timer`.
    pub(crate) fn cfs_period(&mut self, g: GroupId, awake: bool) {
        let now = self.m.now;
        let Some(pool) = &self.m.groups.list[g.index()].pool else { return };
        let (cpu, again) = (pool.cpu, Ev::CfsPeriod { group: g, awake: true });
        if pool.expires.is_none_or(|at| at > now) {
            return;
        }
        if !self.rq(cpu).cfs_timer(ClassTimer::CfsPeriod(g), awake, again) {
            return;
        }
        let Some(pool) = &mut self.m.groups.list[g.index()].pool else { return };
        let throttled = !pool.throttled.is_empty();
        let goes_on = pool.cfs.period(throttled);
        pool.stat.periods += 1;
        pool.stat.throttled += u64::from(throttled);
        let next = pool.next_end(now);
        pool.expires = goes_on.then_some(next);
        if throttled {
            self.distribute_cfs_runtime(g);
        }
        if goes_on {
            self.m.cpu_mut(cpu).class_timers.insert((next, ClassTimer::CfsPeriod(g)));
            self.q.push(next, Ev::CfsPeriod { group: g, awake: false });
            self.rq(cpu).program_event();
        }
        self.rq(cpu).run_soft_expired();
        self.rq(cpu).idle_loop();
    }

    /// `do_sched_cfs_slack_timer`.
    pub(crate) fn cfs_slack(&mut self, g: GroupId, awake: bool) {
        let (now, slice) = (self.m.now, self.m.slots.sysctls.cfs_slice);
        let Some(pool) = &self.m.groups.list[g.index()].pool else { return };
        let Some(cpu) = pool.slack else { return };
        let again = Ev::CfsSlack { group: g, awake: true };
        if !self.rq(cpu).cfs_timer(ClassTimer::CfsSlack(g), awake, again) {
            return;
        }
        let Some(pool) = &mut self.m.groups.list[g.index()].pool else { return };
        pool.slack = None;
        let left = pool.expires.map_or(Span(u64::MAX), |at| at.since(now));
        if left >= MIN_BANDWIDTH_EXPIRATION && pool.cfs.has_slack(slice) {
            self.distribute_cfs_runtime(g);
        }
        self.rq(cpu).run_soft_expired();
        self.rq(cpu).idle_loop();
    }
}

impl Rq<'_, '_> {
    /// Begins to handle a quota's timer on its CPU; returns whether the CPU is awake. An idle one
    /// leaves its idle state first, and `again` comes then.
    pub(crate) fn cfs_timer(&mut self, timer: ClassTimer, awake: bool, again: Ev) -> bool {
        let cpu = self.cpu;
        if self.m().slots.hrtimers.at_ticks() && !awake {
            // The CPU's tick runs the timer.
            return false;
        }
        let idle = self.m().cpu(cpu).idle;
        if let Some(idle) = idle.filter(|_| !awake) {
            let latency = self.m().exit_latency(cpu, idle, self.m().now);
            self.counts_interrupt();
            self.push(self.m().now + latency, again);
            return false;
        }
        self.c().class_timers.expire(timer, Instant(u64::MAX));
        if !awake {
            self.counts_interrupt();
        }
        self.hears();
        if idle.is_some() {
            self.leave_idle();
        }
        true
    }
}
