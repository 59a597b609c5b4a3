//! A CPU with nothing to run: which state, and does the tick go on?
//!
//! ```text
//! go_idle ─> enter_idle ───────┬─ a short sleep: the tick goes on ─> idle_tick ─> enter_idle …
//!                              └─ a long one: the tick stops; the CPU is one of nohz balancing's
//! leave_idle: for its own timer, or woken from afar; after the state's exit latency
//! ```
//!
//! An idle CPU whose tick goes on balances by itself. Entering a state costs nothing, and the exit
//! latency is not paid for a tick.
//! Who chooses is the setting `cpuidle_governor` ([`risetime_kernel::cpuidle`]).
//! Source: kernel/sched/idle.c, kernel/time/tick-sched.c.

use crate::kernel::Kernel;
use crate::state::hooks::Answer;
use crate::state::hooks::Point;
use crate::state::hooks::Step;
use crate::state::machine::{Cpu, Idle};
use risetime_kernel::cpuidle::{Sleep, single_state_stops_tick};
use risetime_kernel::units::{CpuId, Instant, Span};
use risetime_trace::Event;

/// When the next timer expires that the CPU knows of.
fn next_timer(c: &Cpu) -> Option<Instant> {
    let (task, class) = (c.timers.first().map(|t| t.0), c.class_timers.first().map(|t| t.0));
    match (task, class) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

impl Kernel<'_> {
    /// The CPU has nothing to run (`pick_next_task_idle`): make up for lost time, choose a state.
    pub(crate) fn go_idle(&mut self, cpu: CpuId) {
        let decay = self.m.decay;
        let c = self.m.cpu_mut(cpu);
        let util_sum =
            c.cfs_avg.avg.util_sum.wrapping_add(c.rt_avg.util_sum).wrapping_add(c.dl_avg.util_sum);
        c.clock.update_idle_rq_clock_pelt(decay, util_sum);
        c.work_gen = c.work_gen.wrapping_add(1);
        c.exec_start = c.clock.clock_task.0;
        c.got_idle_tick = false;
        self.update_idle_core(cpu);
        self.nohz_run_idle_balance(cpu);
        self.enter_idle(cpu);
    }

    /// `cpuidle_idle_call`: the state that the governor selects.
    pub(crate) fn enter_idle(&mut self, cpu: CpuId) {
        let (now, tick, next_tick) = (self.m.now, self.m.tick, self.m.next_tick());
        let rev = self.m.rev;
        let utilized = self.m.cpu(cpu).idle_governor.asks_for_util() && self.m.is_utilized(cpu);
        let c = &mut self.m.cpus[cpu.index()];
        if c.pressure.as_ref().is_some_and(|p| p.in_irq()) {
            // When the handler is done ([`crate::kernel::pressure`]).
            return;
        }
        let states = &self.m.domains[c.domain].idle;
        let sleep = Sleep {
            next_timer: next_timer(c).map(|at| at.since(now)),
            next_tick: next_tick.since(now),
            tick_stopped: c.tick_stopped,
            tick,
            utilized,
        };
        let mut selected = c.idle_governor.select(states, sleep);
        if states.len() < 2 {
            selected.stop_tick |= single_state_stops_tick(rev, c.got_idle_tick);
        }
        if let Some(hooks) = &self.m.hooks {
            let own = Answer::Idle { state: selected.state, stop_tick: selected.stop_tick };
            if let Answer::Idle { state, stop_tick } =
                hooks.decided(&self.m, Point::Idle { cpu }, own)
            {
                (selected.state, selected.stop_tick) = (state, stop_tick);
            }
        }
        let states = &self.m.domains[self.m.cpu(cpu).domain].idle;
        let state = (!states.is_empty()).then_some(selected.state as u32);
        let c = &mut self.m.cpus[cpu.index()];
        c.idle = Some(Idle { state, since: now });
        let stops = selected.stop_tick && !c.tick_stopped;
        if selected.stop_tick {
            // `tick_nohz_idle_stop_tick`
            c.idle_calls += 1;
            c.tick_stopped = true;
        }
        if stops {
            c.tick_gen = c.tick_gen.wrapping_add(1);
            self.nohz_balance_enter_idle(cpu);
        }
        if state.is_some() {
            self.emit(Event::Idle { cpu, state });
        }
    }

    /// The idle state ends; its governor learns how long it was.
    fn end_idle(&mut self, cpu: CpuId, by_tick: bool) {
        let (now, tick) = (self.m.now, self.m.tick);
        let forgets = !self.m.does(Step::IdleLearns);
        let c = &mut self.m.cpus[cpu.index()];
        c.got_idle_tick = by_tick;
        let Some(idle) = c.idle.take() else { return };
        self.run_deferred_timer(cpu);
        let c = &mut self.m.cpus[cpu.index()];
        let states = &self.m.domains[c.domain].idle;
        let Some(state) = idle.state else { return };
        let slept = now.since(idle.since);
        if !forgets {
            c.idle_governor.update(states, state as usize, slept, by_tick, tick);
        }
        self.emit(Event::Idle { cpu, state: None });
    }

    /// The tick of an idle CPU: it may be due to balance (`sched_balance_trigger`).
    pub(crate) fn idle_tick(&mut self, cpu: CpuId) {
        if self.m.cpu(cpu).waking {
            return;
        }
        self.end_idle(cpu, true);
        self.update_rq_clock(cpu);
        self.pressure_tick(cpu);
        self.dl_server_update(cpu);
        self.update_others(cpu);
        self.balance_on_own_tick(cpu);
        self.run_soft_expired(cpu);
        self.idle_loop(cpu);
    }

    /// How long leaving the idle state of `cpu` takes.
    pub(crate) fn exit_latency(&self, cpu: CpuId, idle: Idle) -> Span {
        if self.free_idle_exit {
            return Span(0);
        }
        let states = &self.m.platform.domains[self.m.cpu(cpu).domain].idle;
        idle.state.and_then(|i| states.get(i as usize)).map_or(Span(0), |s| s.exit_latency)
    }

    /// The CPU has left its idle state: it is awake, with the idle task current.
    pub(crate) fn leave_idle(&mut self, cpu: CpuId) {
        self.m.cpu_mut(cpu).waking = false;
        self.end_idle(cpu, false);
    }

    pub(crate) fn idle_resched(&mut self, cpu: CpuId) {
        // Its own timer may have woken it meanwhile; the task queued from afar still wants it.
        if self.m.cpu(cpu).curr.is_none() && self.m.root.online.contains(cpu) {
            self.leave_idle(cpu);
            self.m.need_resched.insert(cpu);
        } else if self.m.cpu(cpu).resched_held {
            self.m.need_resched.insert(cpu);
        }
    }

    /// The idle task is done with an interrupt: on to the work that came, or back to idle.
    pub(crate) fn idle_loop(&mut self, cpu: CpuId) {
        let c = self.m.cpu(cpu);
        if c.curr.is_some() || c.idle.is_some() || self.m.need_resched.contains(cpu) {
            return;
        }
        if c.nr_running() > 0 {
            self.m.need_resched.insert(cpu);
        } else {
            self.enter_idle(cpu);
        }
    }
}
