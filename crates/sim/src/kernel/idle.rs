//! A CPU with nothing to run: which state, and does the tick go on?
//!
//! ```text
//! go_idle ─> enter_idle ───────┬─ a short sleep: the tick goes on ─> idle_tick ─> enter_idle …
//!                              └─ a long one: the tick stops; the CPU is one of nohz balancing's
//! leave_idle: for its own timer, or woken from afar; after the state's exit latency
//! ```
//!
//! An idle CPU whose tick goes on balances by itself. A wakeup while a state is being entered waits for the rest of the entry;
//! neither entry nor exit is paid for a tick, and both take the power of the state.
//! Who chooses is the setting `cpuidle_governor` ([`risetime_kernel::cpuidle`]).
//! Source: kernel/sched/idle.c, kernel/time/tick-sched.c.

use crate::kernel::governor::Occasion;
use crate::kernel::rq::Parts;
use crate::kernel::rq::Rq;
use crate::state::hooks::Answer;
use crate::state::hooks::Point;
use crate::state::hooks::Step;
use crate::state::machine::{Cpu, Idle};
use crate::time::queue::Ev;
use risetime_kernel::cpuidle::{Sleep, single_state_stops_tick, stops_tick_upfront};
use risetime_kernel::units::Instant;
use risetime_trace::Event;

/// The time at which the next timer expires that the CPU knows of.
fn next_timer(c: &Cpu) -> Option<Instant> {
    let (task, class) = (c.timers.first().map(|t| t.0), c.class_timers.first().map(|t| t.0));
    match (task, class) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

impl Rq<'_, '_> {
    /// `cpuidle_idle_call`: the state that the governor selects.
    pub(crate) fn enter_idle(&mut self) {
        let cpu = self.cpu;
        let (now, tick, next_tick) = (self.m().now, self.m().tick, self.m().next_tick());
        let rev = self.m().rev;
        let next = self.next_event();
        let utilized = self.m().cpu(cpu).idle_governor.asks_for_util() && self.m().is_utilized(cpu);
        let Parts { c, domain, .. } = self.parts();
        if c.slots.pressure.as_ref().is_some_and(|p| p.in_irq()) {
            // When the handler is done ([`crate::mech::pressure`]).
            return;
        }
        let states = &domain.idle;
        let sleep = Sleep {
            next_timer: next.map(|at| at.since(now)),
            next_tick: next_tick.since(now),
            tick_stopped: c.tick_stopped,
            tick,
            utilized,
            limits: domain.idle_limits,
        };
        let mut selected = c.idle_governor.select(states, sleep);
        if states.len() < 2 {
            selected.stop_tick |= single_state_stops_tick(rev, c.got_idle_tick);
        }
        selected.stop_tick |= stops_tick_upfront(rev, &sleep);
        if let Some(hooks) = &self.m().hooks {
            let own = Answer::Idle { state: selected.state, stop_tick: selected.stop_tick };
            if let Answer::Idle { state, stop_tick } =
                hooks.decided(self.m(), Point::Idle { cpu }, own)
            {
                (selected.state, selected.stop_tick) = (state, stop_tick);
            }
        }
        // `tick_nohz_next_event`: that tick is the timer's.
        let for_tick = next.is_some_and(|at| at <= next_tick);
        selected.stop_tick &= !(self.m().slots.hrtimers.low_res && for_tick && !sleep.tick_stopped);
        let states = &self.m().domains[self.m().cpu(cpu).domain].idle;
        let state = (!states.is_empty()).then_some(selected.state as u32);
        let c = self.c();
        c.idle = Some(Idle { state, since: now });
        let stops = selected.stop_tick && !c.tick_stopped;
        if selected.stop_tick {
            // `tick_nohz_idle_stop_tick`
            c.idle_calls += 1;
            c.tick_stopped = true;
        }
        if stops {
            c.idle_time.tick_stops(now);
            c.tick_gen = c.tick_gen.wrapping_add(1);
            self.nohz_balance_enter_idle();
        }
        if state.is_some() {
            self.emit(Event::Idle { cpu, state });
        }
        self.program_event();
    }

    /// The next event that the CPU knows of: the interrupt of the first timer.
    fn next_event(&self) -> Option<Instant> {
        let c = self.m().cpu(self.cpu);
        let timer = next_timer(c).map(|at| self.m().event_of(at));
        // A timer that makes no tick any more is due at the next one.
        let left = c.slots.hrtimers.sched_timer_left.then(|| self.m().next_tick());
        timer.into_iter().chain(left).min()
    }

    /// Ends the idle state; its governor learns how long it was.
    pub(crate) fn end_idle(&mut self, by_tick: bool) {
        let cpu = self.cpu;
        let (now, tick) = (self.m().now, self.m().tick);
        let forgets = !self.m().does(Step::IdleLearns);
        let by_tick = by_tick && self.m().does(Step::TickWakeup);
        let c = self.c();
        c.got_idle_tick = by_tick;
        let Some(idle) = c.idle.take() else { return };
        // Awake, it takes the interrupts for its wake list when they come, before it looks for what to do.
        for i in 0..c.wake_list.len() {
            let at = self.c().wake_list[i].heard.max(now);
            self.push(at, Ev::TtwuPending { cpu });
        }
        self.run_deferred_timer();
        self.governor_attends(Occasion::IdleEnd);
        let Some(state) = idle.state else { return };
        let slept = now.since(idle.since);
        if !forgets {
            let Parts { c, domain, .. } = self.parts();
            c.idle_governor.update(&domain.idle, state as usize, slept, by_tick, tick);
        }
        self.emit(Event::Idle { cpu, state: None });
    }

    /// Ends the CPU's idle state: it is awake, with the idle task current.
    pub(crate) fn leave_idle(&mut self) {
        self.c().waking = false;
        self.end_idle(false);
    }

    pub(crate) fn idle_resched(&mut self) {
        let cpu = self.cpu;
        // A timer of the CPU's own may have woken it meanwhile; the task queued from afar still
        // wants it.
        if self.m().cpu(cpu).curr.is_none() && self.m().root.online.contains(cpu) {
            self.leave_idle();
            if !self.is_wake_list_due() {
                self.set_need_resched();
            }
        } else if self.m().cpu(cpu).resched_held {
            self.set_need_resched();
        }
    }

    /// Sends the idle task, done with an interrupt, on to the work that came, or back to idle.
    pub(crate) fn idle_loop(&mut self) {
        let cpu = self.cpu;
        let c = self.m().cpu(cpu);
        let busy = c.curr.is_some() || c.slots.hrtimers.running;
        let told = self.is_wake_list_due() || self.m().need_resched.contains(cpu);
        if busy || c.idle.is_some() || told {
            return;
        }
        if c.nr_running() > 0 {
            self.set_need_resched();
        } else {
            self.enter_idle();
        }
    }
}

impl Rq<'_, '_> {
    /// Enters the CPU, whose tick has stopped, into nohz balancing.
    pub(crate) fn nohz_balance_enter_idle(&mut self) {
        let cpu = self.cpu;
        self.c().has_blocked_load = true;
        if !self.m().cpu(cpu).sched_domains.is_empty() {
            self.joins_nohz();
        }
        self.set_has_blocked();
    }
}

impl Rq<'_, '_> {
    /// Lets the governor's timer that did not wake the idle CPU expire now, as the CPU has left its
    /// idle state.
    #[inline]
    pub(crate) fn run_deferred_timer(&mut self) {
        let cpu = self.cpu;
        let (now, place) = (self.m().now, self.m().cpu(cpu).in_domain);
        let timer = &mut self.domain().timers[place];
        if std::mem::take(&mut timer.deferred) {
            let generation = timer.generation;
            self.push(now, Ev::GovernorTimer { cpu, generation, awake: true });
        }
    }
}
