//! This machine's own time between the reference's events: ticks and timers.
//!
//! Ticks come on a grid here, and up to some 100 µs later there. Where they are told of, they come when they do there, so
//! that both account for the same time.

use super::follower::Follower;
use super::listens::Shared;
use crate::kernel::governor::Resumed;
use crate::run::follow::asked::Asked;
use crate::state::cpuset::CpuSet;
use crate::state::hooks::{Answer, Point};
use crate::state::machine::State;
use crate::time::queue::Ev;
use risetime_kernel::units::{CpuId, Instant, Span};

impl Follower<'_, '_> {
    /// Advances this machine's own ticks and timers up to `until`. What tasks do, and when they
    /// wake, is the reference's to say.
    pub(super) fn advance(&mut self, until: Instant) {
        self.shared.borrow_mut().own_time = true;
        self.until(until);
        self.simulation.k.m.now = until;
        self.shared.borrow_mut().own_time = false;
    }

    fn until(&mut self, until: Instant) {
        while let Some((at, ev)) = self.simulation.k.q.pop_until(until) {
            self.simulation.k.m.now = at;
            match ev {
                Ev::Tick { .. } if self.tells.ticks => {}
                Ev::Tick { cpu, generation } => self.tick(cpu, generation, at),
                Ev::ClassTimer { .. } => {
                    // Bandwidth that is free again is looked at at once, and no signal tells of it.
                    self.shared.borrow_mut().own_time = false;
                    self.simulation.dispatch(ev);
                    self.shared.borrow_mut().own_time = true;
                }
                Ev::GovernorTimer { .. }
                | Ev::NohzBalance { .. }
                | Ev::CfsPeriod { .. }
                | Ev::CfsSlack { .. }
                | Ev::Irq { .. }
                | Ev::MechanismFirst(_) => self.simulation.dispatch(ev),
                _ => {}
            }
            self.settle();
        }
    }

    /// A tick that is told of.
    pub(super) fn told_tick(&mut self, cpu: CpuId) {
        let m = &self.simulation.k.m;
        let (generation, now) = (m.cpu(cpu).tick_gen, m.now);
        self.shared.borrow_mut().own_time = true;
        self.tick(cpu, generation, now);
        self.shared.borrow_mut().own_time = false;
    }

    /// The tick of `at`: does the turn of whoever runs end? No, unless the hook hears otherwise.
    fn tick(&mut self, cpu: CpuId, generation: u32, at: Instant) {
        let m = &self.simulation.k.m;
        if m.cpu(cpu).tick_gen != generation {
            return;
        }
        let Some(curr) = m.cpu(cpu).curr else { return self.idle_tick(cpu) };
        if m.is_fair(curr) {
            let of = m.fair_queued(cpu).filter(|(t, _)| m.task(*t).state == State::Runnable);
            let of = of.count();
            let mut s = self.shared.borrow_mut();
            let there = s.there(curr);
            let point = Point::TickPreempt { cpu, curr: there };
            s.note(m.now, point, Answer::Yes(false)).of = of;
        }
        // Where looks are told, this machine's own do not move what says when the next one comes.
        let looks = self.tells.looks;
        let due = self.simulation.k.m.cpu(cpu).next_balance;
        if looks {
            self.simulation.k.m.cpu_mut(cpu).next_balance = u64::MAX;
        }
        self.simulation.dispatch(Ev::Tick { cpu, generation });
        if looks {
            self.simulation.k.m.cpu_mut(cpu).next_balance = due;
        }
        let mut rq = self.simulation.k.rq(cpu);
        let next = at + rq.m().tick;
        rq.start_tick(next);
        if !self.tells.resched {
            self.picks_anew(cpu);
        }
    }

    /// The tick of an idle CPU. That it leaves its idle state for it is the reference's to say.
    fn idle_tick(&mut self, cpu: CpuId) {
        let k = &mut self.simulation.k;
        let (generation, stopped) = (k.m.cpu(cpu).tick_gen, k.m.cpu(cpu).tick_stopped);
        if !stopped {
            k.q.push(k.m.now + k.m.tick, Ev::Tick { cpu, generation });
        }
        let mut rq = k.rq(cpu);
        rq.update_rq_clock();
        rq.pressure_tick();
        if !self.tells.looks {
            rq.balance_on_own_tick();
        }
    }

    /// Ends a CPU's idle state as there: for its tick, or for something else.
    pub(super) fn leaves_idle(&mut self, cpu: CpuId) {
        /// A tick has begun so long ago at most.
        const AT_TICK: u64 = 100_000;
        let k = &mut self.simulation.k;
        let c = k.m.cpu(cpu);
        if c.idle.is_none() {
            return;
        }
        let since_tick = k.m.ticks.since(k.m.now, k.m.tick).0;
        let ticks = !c.tick_stopped || k.m.slots.hrtimers.low_res;
        let by_tick = ticks && since_tick < AT_TICK;
        let mut rq = k.rq(cpu);
        rq.c().waking = false;
        rq.end_idle(by_tick);
    }

    /// A turn that is over may be followed by the same task's next one, which nobody sees there.
    fn picks_anew(&mut self, cpu: CpuId) {
        let k = &mut self.simulation.k;
        let over = |a: &&mut Asked| {
            a.own == Answer::Yes(true)
                && matches!(a.point, Point::TickPreempt { cpu: c, .. } if c == cpu)
        };
        let now = k.m.now;
        let ends = |s: &mut Shared| {
            s.asked.iter_mut().rev().take_while(|a| a.at == now).find(over).is_some()
        };
        if ends(&mut self.shared.borrow_mut()) && k.rq(cpu).pick_next_task() == k.m.cpu(cpu).curr {
            let mut shared = self.shared.borrow_mut();
            let mut asked = shared.asked.iter_mut().rev().take_while(|a| a.at == now);
            if let Some(asked) = asked.find(over) {
                asked.own = Answer::Yes(false);
            }
        }
    }

    /// Forgets what this machine would do next of its own, and sets which CPUs are about to
    /// reschedule as it is there.
    pub(super) fn settle(&mut self) {
        /// Time after which a CPU that has not switched has picked the task that ran already, which
        /// is not told.
        const SOON: Span = Span::from_us(100);
        let k = &mut self.simulation.k;
        let mut shared = self.shared.borrow_mut();
        shared.due.retain(|_, since| k.m.now.since(*since) < SOON);
        k.m.need_resched = shared.due.keys().copied().collect();
        drop(shared);
        k.m.throttle_work = CpuSet::EMPTY;
        k.m.slots.preempt.flagged = CpuSet::EMPTY;
        k.m.cpus.iter_mut().for_each(|c| c.cfs.clear_need_resched());
        // When what sleeping tasks left behind is aged is the reference's to say, by the signals that move then.
        k.m.root.has_blocked &= !self.tells.looks;
        let asked = std::mem::take(&mut self.shared.borrow_mut().asked_governor);
        for cpu in asked {
            let domain = k.m.cpu(cpu).domain;
            if let Some((since, freq)) = self.wanted[domain] {
                k.policy(domain).resume(&Resumed::at(freq, since));
            }
        }
    }
}
