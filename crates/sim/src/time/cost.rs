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
//! one with much slack may keep others of less slack from being early, as in the kernel; the tick and the
//! timers of classes stand in the same queue, and have none. Tasks that are
//! real-time or deadline tasks when they fall asleep have no slack. Left out: caches that a task shares only in part.
//!
//! Source: kernel/time/hrtimer.c:__hrtimer_run_queues, hrtimer_nanosleep; __setscheduler_params (slack; alike
//! in 6.1, 6.12, 7.2 and 7.3); the others are parameters of this simulator.

use crate::state::costs::{Costs, FULL};
use crate::state::machine::{Cpu, Task};
use risetime_kernel::units::{Instant, Span};
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
        home: Home::Prctl("PR_SET_TIMERSLACK"),
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

/// As the settings say.
pub(crate) fn of_settings(settings: &Settings) -> Costs {
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

/// `t` has just got the CPU `c`, which is busy with that for a while.
pub(crate) fn pay_for_switch(costs: &Costs, c: &mut Cpu, t: &mut Task, now: Instant) {
    if !costs.switches {
        return;
    }
    let llc = c.place.llc_id;
    if t.ran_under.replace(llc).is_some_and(|before| before != llc) {
        t.cold = costs.cold;
    }
    c.run_since = c.run_since.max(now) + Span(costs.switch.0 + t.cold.0);
}

/// `t` leaves the CPU `c`: what its cache still lacks it will have to wait for.
pub(crate) fn cool_down(costs: &Costs, c: &mut Cpu, t: &mut Task, now: Instant) {
    if !costs.switches {
        return;
    }
    t.cold = t.cold.min(Span(c.run_since.0.saturating_sub(now.0)));
    c.run_since.0 -= t.cold.0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws;
    use crate::state::machine::SPEED_SHIFT;
    use proptest::prelude::*;
    use risetime_model::settings::Value;

    fn costs(set: &[(&str, i64)]) -> Costs {
        let set = set.iter().map(|(name, v)| (name.to_string(), Value::Int(*v)));
        of_settings(&Settings(set.collect()))
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
