//! What the kernel's model of a CPU leaves out, as parameters: switches and cold caches that take time,
//! timers that may come late, work that does not get faster with the clock, threads that share a core.
//!
//! ```text
//! switch to a task      switch_cost_ns, then (where its last CPU had another LLC) cold_cache_ns:
//!                       the task is current, its util grows, its work does not get on
//! timer of a sleep      soft expiry ── timer_slack_ns ── hard expiry = what the hardware is set to;
//!                       any timer interrupt of that CPU after the soft one wakes it, too
//! work w at speed s     w · ((1024 - memory_bound) / s + memory_bound / s(highest OPP)) / 1024
//! a thread of a core    s · smt_speed / 1024 while another thread of the core has a task
//! ```
//!
//! All of this is off unless a setting says so; PELT and every decision go on as if it were not there.
//! A switch to the idle task costs nothing: nobody waits for it. What is left of a cold cache when its
//! task is preempted waits for it; the rest of a switch does not, it keeps the CPU.
//!
//! Timers expire in the order of their hard expiry, up to the first whose soft one is yet to come, so that
//! one with much slack may keep others of less slack from being early, as in the kernel. Tasks that are
//! real-time or deadline tasks when they fall asleep have no slack. Left out: the kernel's default of
//! 50 µs (rt-app sets 1 ns, which is nothing here); caches that a task shares only in part.
//!
//! Source: kernel/time/hrtimer.c:__hrtimer_run_queues, hrtimer_nanosleep (slack); the others are
//! parameters of this simulator.

use crate::engine::Engine;
use crate::machine::Machine;
use crate::placement::Waker;
use risetime_kernel::units::{CpuId, Instant, Span, TaskId};
use risetime_model::settings::{Default, Home, Neutral, Param, Range, Settings};

/// The costs, all of them off unless set.
pub(crate) const PARAMS: &[Param] = &[
    Param {
        name: "switch_cost_ns",
        doc: "time that every switch to a task takes from it",
        unit: "ns",
        range: Range::Int(0, 10_000_000),
        default: Default::Unset,
        home: Home::Simulator(Neutral::Int(0)),
    },
    Param {
        name: "cold_cache_ns",
        doc: "time that a task loses when it goes on under another last-level cache",
        unit: "ns",
        range: Range::Int(0, 100_000_000),
        default: Default::Unset,
        home: Home::Simulator(Neutral::Int(0)),
    },
    Param {
        name: "timer_slack_ns",
        doc: "how late the timers of sleeping fair tasks may come (unset: not at all, as rt-app asks for)",
        unit: "ns",
        range: Range::Int(0, 1_000_000_000),
        default: Default::Unset,
        home: Home::Prctl("PR_SET_TIMERSLACK", Neutral::Int(0)),
    },
    Param {
        name: "memory_bound",
        doc: "share of all work that takes as long at any frequency as at the CPU's highest",
        unit: "of 1024",
        range: Range::Int(0, 1024),
        default: Default::Unset,
        home: Home::Simulator(Neutral::Int(0)),
    },
    Param {
        name: "smt_speed",
        doc: "speed of a hardware thread while another one of its core has a task",
        unit: "of 1024",
        range: Range::Int(1, 1024),
        default: Default::Unset,
        home: Home::Simulator(Neutral::Int(1024)),
    },
];

/// What things cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// Some switch costs something.
    pub(crate) switches: bool,
    switch: Span,
    cold: Span,
    slack: Span,
    memory_bound: u64,
    /// [`FULL`]: threads take nothing from each other.
    smt_speed: u64,
}

const FULL: u64 = 1024;

impl Costs {
    pub(crate) fn of(settings: &Settings) -> Costs {
        let of = |name, unset| settings.int(name).map_or(unset, |v| v.max(0) as u64);
        let (switch, cold) = (Span(of("switch_cost_ns", 0)), Span(of("cold_cache_ns", 0)));
        Costs {
            switches: switch > Span(0) || cold > Span(0),
            switch,
            cold,
            slack: Span(of("timer_slack_ns", 0)),
            memory_bound: of("memory_bound", 0).min(FULL),
            smt_speed: of("smt_speed", FULL).clamp(1, FULL),
        }
    }

    /// The speed of work, part of which waits for memory, on a CPU whose clock makes it `speed`, at most
    /// `highest`. Rounding: down.
    pub(crate) fn bound(&self, speed: u64, highest: u64) -> u64 {
        if self.memory_bound == 0 {
            return speed;
        }
        // 1024 / ((1024 - m) / speed + m / highest)
        let (speed, highest) = (u128::from(speed), u128::from(highest));
        let (m, full) = (u128::from(self.memory_bound), u128::from(FULL));
        let slowed = full * speed * highest / ((full - m) * highest + m * speed).max(1);
        (slowed as u64).max(1)
    }
}

impl Machine {
    /// Work per ns on `cpu`, see [`SPEED_SHIFT`](crate::machine::SPEED_SHIFT).
    pub(crate) fn speed_of(&self, cpu: CpuId) -> u64 {
        let speed = self.domain_of(cpu).speed;
        if self.cpu(cpu).shares_core {
            return ((u128::from(speed) * u128::from(self.costs.smt_speed)) / u128::from(FULL))
                .max(1) as u64;
        }
        speed
    }
}

impl Engine<'_> {
    // ------------------------------------------------------------------ switches

    /// `task` has just got the CPU, which is busy with that for a while.
    pub(crate) fn pay_for_switch(&mut self, cpu: CpuId, task: TaskId) {
        let costs = self.m.costs;
        if !costs.switches {
            return;
        }
        let llc = self.m.cpu(cpu).place.llc_id;
        let t = self.m.task_mut(task);
        if t.ran_under.replace(llc).is_some_and(|before| before != llc) {
            t.cold = costs.cold;
        }
        let cost = Span(costs.switch.0 + t.cold.0);
        let now = self.m.now;
        let c = self.m.cpu_mut(cpu);
        c.run_since = c.run_since.max(now) + cost;
    }

    /// `task` leaves the CPU: what its cache still lacks it will have to wait for.
    pub(crate) fn cool_down(&mut self, cpu: CpuId, task: TaskId) {
        if !self.m.costs.switches {
            return;
        }
        let now = self.m.now;
        let left = Span(self.m.cpu(cpu).run_since.0.saturating_sub(now.0));
        let t = self.m.task_mut(task);
        t.cold = t.cold.min(left);
        let cold = t.cold;
        let c = self.m.cpu_mut(cpu);
        c.run_since.0 -= cold.0;
    }

    // ------------------------------------------------------------------ timers

    /// When the timer of a task that falls asleep until `at` expires at the latest.
    pub(crate) fn hard_expiry(&mut self, task: TaskId, at: Instant) -> Instant {
        let slack = if self.is_fair(task) { self.m.costs.slack } else { Span(0) };
        self.m.task_mut(task).soft_expiry = at;
        Instant(at.0.saturating_add(slack.0))
    }

    /// A timer interrupt on `cpu`: who is past the soft expiry need not wait for the hard one
    /// (`__hrtimer_run_queues`).
    pub(crate) fn run_soft_expired(&mut self, cpu: CpuId) {
        if self.m.costs.slack == Span(0) {
            return;
        }
        let now = self.m.now;
        while let Some((_, task)) = self.m.cpu(cpu).timers.first() {
            if self.m.task(task).soft_expiry > now {
                break;
            }
            self.m.cpu_mut(cpu).timers.remove(task);
            let t = self.m.task_mut(task);
            // Its own event comes too late.
            t.timer_gen = t.timer_gen.wrapping_add(1);
            t.timer_cpu = None;
            self.wake_up(task, Waker::timer(cpu));
        }
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws;
    use crate::machine::SPEED_SHIFT;
    use proptest::prelude::*;
    use risetime_model::settings::Value;

    fn costs(set: &[(&str, i64)]) -> Costs {
        let set = set.iter().map(|(name, v)| (name.to_string(), Value::Int(*v)));
        Costs::of(&Settings(set.collect()))
    }

    #[test]
    fn nothing_costs_anything_unless_somebody_says_so() {
        let none = costs(&[]);
        assert!(!none.switches && none.slack == Span(0) && none.smt_speed == FULL);
        assert_eq!(none.bound(123, 456), 123);
    }

    proptest! {
        #![proptest_config(draws::config(256))]

        /// Time per work is the mean of that at this speed and that at the highest, by shares.
        #[test]
        fn memory_bound_work_takes_the_mean_of_both_times(m in 0..=1024i64, speed in 1..1u64 << SPEED_SHIFT, more in 0..1u64 << SPEED_SHIFT) {
            let highest = speed + more;
            let bound = costs(&[("memory_bound", m)]).bound(speed, highest);
            prop_assert!((speed..=highest).contains(&bound));
            let (m, work) = (m as u128, 1u128 << 60);
            let time = |s: u64| work / u128::from(s);
            let wanted = ((1024 - m) * time(speed) + m * time(highest)) / 1024;
            // One speed less is the rounding.
            prop_assert!(time(bound) + 1 >= wanted && work / u128::from(bound + 1) <= wanted + 1);
        }
    }
}
