//! The periodic tick: `sched_tick` of a busy CPU, what an idle one does, and the timers that wait for it.
//!
//! Source: kernel/sched/core.c:sched_tick; kernel/time/tick-sched.c:tick_nohz_handler, tick_nohz_idle_restart_tick.

use crate::kernel::governor::Occasion;
use crate::kernel::rq::Rq;
use crate::state::tracker::Heard;
use crate::time::queue::Ev;
use risetime_kernel::units::TaskId;

impl Rq<'_, '_> {
    /// `sched_tick`.
    pub(crate) fn tick(&mut self, generation: u32) {
        let cpu = self.cpu;
        if self.m().cpu(cpu).tick_gen != generation {
            return;
        }
        let low_res = self.m().slots.hrtimers.at_ticks();
        if !(low_res && self.m().cpu(cpu).tick_stopped) {
            self.push(self.m().now + self.m().tick, Ev::Tick { cpu, generation });
        }
        self.counts_interrupt();
        if low_res && self.low_res_tick() {
            return;
        }
        self.scale_freq_tick();
        let Some(curr) = self.m().cpu(cpu).curr else { return self.idle_tick() };
        if let Some(until) = self.interrupt_until() {
            self.ends_later(until);
        }
        self.update_rq_clock();
        self.track(Heard::Tick { cpu, task: Some(curr) });
        self.hears_at_tick();
        self.account_nice(curr);
        self.pressure_tick();
        self.vendor_ramps_up(curr, true);
        self.task_tick(curr);
        self.trigger_load_balance();
        self.governor_attends(Occasion::Tick);
        self.run_soft_expired();
        self.pay_for_interrupt();
        if !self.m().need_resched.contains(cpu) && self.m().cpu(cpu).curr == Some(curr) {
            self.resume_user_mode_work(curr);
        }
        if self.m().cpu(cpu).slots.hrtimers.sched_timer_left {
            // The CPU's tick timer is run by the tick, too, and does all of this again.
            self.account_nice(curr);
            self.pay_for_interrupt();
        }
    }

    /// `account_user_time`: the whole tick is `curr`'s.
    fn account_nice(&mut self, curr: TaskId) {
        if self.m().task(curr).nice > 0 {
            let tick = self.m().tick;
            self.c().nice_time += tick;
        }
    }

    /// The tick of an idle CPU: it may be due to balance (`sched_balance_trigger`).
    pub(crate) fn idle_tick(&mut self) {
        let tick = self.m().tick;
        self.c().idle_time.tick(tick);
        if self.m().cpu(self.cpu).waking {
            return;
        }
        self.end_idle(true);
        self.update_rq_clock();
        self.tick_of_idle();
        self.run_soft_expired();
        self.idle_loop();
    }

    /// Carries out what the scheduler does at the tick of a CPU that was idle.
    pub(crate) fn tick_of_idle(&mut self) {
        let cpu = self.cpu;
        self.track(Heard::Tick { cpu, task: None });
        self.pressure_tick();
        self.dl_server_update();
        self.update_others();
        // A timer of this tick may have brought it a task.
        if !self.m().slots.hrtimers.at_ticks() || self.m().cpu(cpu).nr_running() == 0 {
            self.balance_on_own_tick();
        }
        self.governor_attends(Occasion::Tick);
    }

    /// Runs the timers of the tick, for which the CPU is awake; `done`: they have been run.
    pub(crate) fn run_queues(&mut self, done: bool) {
        if done {
            self.c().slots.hrtimers.running = false;
            return self.idle_loop();
        }
        if self.m().cpu(self.cpu).idle.is_none() {
            return self.hrtimer_run_queues();
        }
        let tick = self.m().tick;
        self.c().idle_time.tick(tick);
        self.c().waking = false;
        self.end_idle(true);
        self.update_rq_clock();
        self.hrtimer_run_queues();
        self.tick_of_idle();
        self.pay_for_interrupt();
        if !self.m().cpu(self.cpu).slots.hrtimers.running {
            self.idle_loop();
        }
    }
}
