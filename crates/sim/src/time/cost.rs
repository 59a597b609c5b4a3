//! Costs that the kernel's model of a CPU leaves out, as parameters: switches and cold caches that
//! take time, timers that may come late, work that does not get faster with the clock, threads that
//! share a core. How much of it there is on a real machine: [`crate::time::noise`].
//!
//! ```text
//! timer_irq_ns          a sleeping task's timer expires so much before it is woken
//! wakeup_cost_ns        a task that wakes another gets on with its work so much later
//! resched_delay_ns      a CPU looks for who is to run so much later than its own interrupt wakes a task there
//! remote_resched_delay_ns   the same where another CPU wakes it: meanwhile it waits in the queue, and may be pulled from there
//! irq_exit_ns           after a tick a CPU looks for who is to run so much later; a governor's worker is awake so
//!                       much later than the update of util that gave it work (irq work)
//! call_cost_ns          a program's call (sleep, lock, signal, …) does what it does so much later; its next work is so
//!                       much shorter, as that of a program which goes by its CPU time
//! again_cost_ns         the same of who was woken by another task, until it tries again what it waited for
//! tick_cost_ns          the task that runs gets on so much later, at a tick or where a timer ends a sleep
//! switch to a task      switch_cost_ns, then (where its last CPU had another LLC) cold_cache_ns:
//!                       the task is current, its util grows, its work does not get on
//! timer of a sleep      soft expiry ── timer_slack_ns ── hard expiry = what the hardware is set to;
//!                       any timer interrupt of that CPU after the soft one wakes it, too
//! work w at speed s     w · ((1024 - memory_bound) / s + memory_bound / s(highest OPP)) / 1024
//! a thread of a core    s · smt_speed / 1024 while another thread of the core has a task; with n of them ([`thread_speed`])
//!                       as much less again for each doubling
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

use crate::state::costs::{Amount, Costs, FULL, Kind};
use crate::state::machine::{Cpu, Task};
use crate::time::noise;
use risetime_kernel::units::{Instant, Span};
use risetime_model::Experiment;
use risetime_model::platform::{SMT_SPEED, SMT_SPEED_DEFAULT, thread_speed};
use risetime_model::settings::{Default, Group, Home, Int, Neutral, Param, Range, Value, keys};

const OF_NOISE: &str = "what `noise` says; one that is set here is so much each time";

pub(crate) const COLD_CACHE_NS: Int = Int::new(Param {
    name: "cold_cache_ns",
    doc: "time that a task loses when it goes on under another last-level cache",
    unit: "ns",
    range: Range::Int(0, 100_000_000),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Int(0)),
});

pub(crate) const TIMER_SLACK_NS: Int = Int::new(Param {
    name: keys::TIMER_SLACK_NS.name(),
    doc: "largest delay of the timers of sleeping fair tasks (without noise: none, as rt-app asks for)",
    unit: "ns",
    range: Range::Int(0, 1_000_000_000),
    default: Default::Derived(OF_NOISE, |_, policy| noise::timer_slack(policy)),
    home: Home::Prctl("PR_SET_TIMERSLACK"),
});

pub(crate) const MEMORY_BOUND: Int = Int::new(Param {
    name: "memory_bound",
    doc: "share of all work that takes as long at any frequency as at the CPU's highest",
    unit: "of 1024",
    range: Range::Int(0, 1024),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Int(0)),
});

pub(crate) const TIMER_IRQ_NS: Int = Int::new(Param {
    name: "timer_irq_ns",
    doc: "time from the expiry of a sleeping task's timer to its wakeup (noise: half of them come before this)",
    unit: "ns",
    range: Range::Int(0, 10_000_000),
    default: Default::Derived(OF_NOISE, |_, policy| noise::median(policy, Kind::Timer)),
    home: Home::Simulator(Neutral::Int(0)),
});

pub(crate) const SWITCH_COST_NS: Int = Int::new(Param {
    name: "switch_cost_ns",
    doc: "time that every switch to a task takes from it",
    unit: "ns",
    range: Range::Int(0, 10_000_000),
    default: Default::Derived(OF_NOISE, |_, policy| noise::median(policy, Kind::Switch)),
    home: Home::Simulator(Neutral::Int(0)),
});

pub(crate) const WAKEUP_COST_NS: Int = Int::new(Param {
    name: "wakeup_cost_ns",
    doc: "time that waking another task takes from the one that does",
    unit: "ns",
    range: Range::Int(0, 10_000_000),
    default: Default::Derived(OF_NOISE, |_, policy| noise::median(policy, Kind::Wakeup)),
    home: Home::Simulator(Neutral::Int(0)),
});

pub(crate) const TICK_COST_NS: Int = Int::new(Param {
    name: "tick_cost_ns",
    doc: "time that a tick, or a timer that ends a sleep, takes from the task that runs",
    unit: "ns",
    range: Range::Int(0, 1_000_000),
    default: Default::Derived(OF_NOISE, |_, policy| noise::median(policy, Kind::Tick)),
    home: Home::Simulator(Neutral::Int(0)),
});

pub(crate) const RESCHED_DELAY_NS: Int = Int::new(Param {
    name: "resched_delay_ns",
    doc: "time from a task's wakeup until its CPU looks for the next task (the way out of an idle state comes on top)",
    unit: "ns",
    range: Range::Int(0, 10_000_000),
    default: Default::Derived(OF_NOISE, |_, policy| noise::median(policy, Kind::Resched)),
    home: Home::Simulator(Neutral::Int(0)),
});

pub(crate) const REMOTE_RESCHED_DELAY_NS: Int = Int::new(Param {
    name: "remote_resched_delay_ns",
    doc: "time from a task's wakeup by another CPU until its own CPU looks for the next task; if unset, resched_delay_ns where that is set",
    unit: "ns",
    range: Range::Int(0, 10_000_000),
    default: Default::Derived(OF_NOISE, |_, policy| noise::median(policy, Kind::Remote)),
    home: Home::Simulator(Neutral::Int(0)),
});

pub(crate) const PREEMPT_DELAY_NS: Int = Int::new(Param {
    name: "preempt_delay_ns",
    doc: "under preempt=lazy, time from a task's wakeup by a timer of its own, busy CPU until that looks for the next task: the task that runs is charged with it (one of SCHED_IDLE with 341 times as much virtual time), and gets nothing done",
    unit: "ns",
    range: Range::Int(0, 10_000_000),
    default: Default::Int(0),
    home: Home::Simulator(Neutral::Int(0)),
});

pub(crate) const IRQ_EXIT_NS: Int = Int::new(Param {
    name: "irq_exit_ns",
    doc: "time from a tick to its CPU's look for the next task, and from an update of util that makes ondemand or conservative look to the wakeup of the worker that does",
    unit: "ns",
    range: Range::Int(0, 1_000_000),
    default: Default::Derived(OF_NOISE, |_, policy| noise::median(policy, Kind::Irq)),
    home: Home::Simulator(Neutral::Int(0)),
});

pub(crate) const CALL_COST_NS: Int = Int::new(Param {
    name: "call_cost_ns",
    doc: "time from a program's call to what it does (it sleeps, locks, signals), which counts as part of its next work",
    unit: "ns",
    range: Range::Int(0, 1_000_000),
    default: Default::Derived(OF_NOISE, |_, policy| noise::median(policy, Kind::Call)),
    home: Home::Simulator(Neutral::Int(0)),
});

pub(crate) const AGAIN_COST_NS: Int = Int::new(Param {
    name: "again_cost_ns",
    doc: "time from when a task that another one woke has the CPU until it tries again what it waited for, which counts as part of its next work",
    unit: "ns",
    range: Range::Int(0, 1_000_000),
    default: Default::Derived(OF_NOISE, |_, policy| noise::median(policy, Kind::Again)),
    home: Home::Simulator(Neutral::Int(0)),
});

pub(crate) const THREAD_SPEED: Int = Int::new(Param {
    name: SMT_SPEED.name(),
    doc: "speed of a hardware thread while another one of its core has a task (with four: this squared, with eight: cubed)",
    unit: "of 1024",
    range: Range::Int(1, 1024),
    default: Default::Derived(
        "640 where cores have several threads, an estimate: two do 1.25 of one's work (1.18 on average on Zen 5, Phoronix 2024; up to 1.3, Marr et al., Intel Technology Journal 2002)",
        |platform, _| platform.topology.smt().then_some(Value::Int(SMT_SPEED_DEFAULT as i64)),
    ),
    home: Home::Simulator(Neutral::Int(1024)),
});

/// The costs, all of them off unless set.
pub(crate) const GROUP: Group = Group::of(&[
    noise::NOISE.0,
    TIMER_IRQ_NS.0,
    SWITCH_COST_NS.0,
    WAKEUP_COST_NS.0,
    TICK_COST_NS.0,
    RESCHED_DELAY_NS.0,
    REMOTE_RESCHED_DELAY_NS.0,
    PREEMPT_DELAY_NS.0,
    IRQ_EXIT_NS.0,
    CALL_COST_NS.0,
    AGAIN_COST_NS.0,
    COLD_CACHE_NS.0,
    TIMER_SLACK_NS.0,
    MEMORY_BOUND.0,
    THREAD_SPEED.0,
])
.titled("Costs");

/// The setting that replaces the draws of a kind.
pub(crate) const fn of_kind(kind: Kind) -> Int {
    match kind {
        Kind::Timer => TIMER_IRQ_NS,
        Kind::Switch => SWITCH_COST_NS,
        Kind::Wakeup => WAKEUP_COST_NS,
        Kind::Tick => TICK_COST_NS,
        Kind::Resched => RESCHED_DELAY_NS,
        Kind::Remote => REMOTE_RESCHED_DELAY_NS,
        Kind::Preempt => PREEMPT_DELAY_NS,
        Kind::Irq => IRQ_EXIT_NS,
        Kind::Call => CALL_COST_NS,
        Kind::Again => AGAIN_COST_NS,
    }
}

/// The costs that settings and noise profile ask for.
pub(crate) fn of_experiment(e: &Experiment) -> Costs {
    let of = |of: &Int, unset| e.settings.get(of).map_or(unset, |v| v.max(0) as u64);
    let is_set = |kind| e.policy.said(&of_kind(kind)).is_some();
    let amount = |kind: Kind| {
        let kind = match kind {
            Kind::Remote if !is_set(kind) && is_set(Kind::Resched) => Kind::Resched,
            kind => kind,
        };
        match noise::row(&e.settings, e.policy.kernel) {
            // What somebody says is so much each time.
            Some(row) if !is_set(kind) => row.of(kind),
            _ => Amount::Fixed(Span(of(&of_kind(kind), 0))),
        }
    };
    Costs {
        amounts: Kind::ALL.map(amount),
        seed: e.seed,
        cold: Span(of(&COLD_CACHE_NS, 0)),
        slack: Span(of(&TIMER_SLACK_NS, 0)),
        memory_bound: of(&MEMORY_BOUND, 0).min(FULL),
        beside: std::array::from_fn(|n| thread_speed(of(&THREAD_SPEED, FULL).clamp(1, FULL), n)),
    }
}

/// Whether anything of it takes time.
pub(crate) fn takes_time(e: &Experiment) -> bool {
    let costs = of_experiment(e);
    costs.cold > Span(0) || Kind::ALL.into_iter().any(|kind| !costs.is_free(kind))
}

/// Whether a hardware thread is slower beside a busy one of its core.
pub(crate) fn shares_cores(e: &Experiment) -> bool {
    let threads = e.platform.topology.cores.iter().any(|core| core.len() > 1);
    threads && of_experiment(e).shares_cores()
}

/// Whether switches cost anything.
#[inline]
pub(crate) fn switches(costs: &Costs) -> bool {
    costs.cold > Span(0) || !costs.is_free(Kind::Switch)
}

/// `t` has just got the CPU `c`, which is busy with that for `switch`, and for `cold` if its caches are new to `t`.
pub(crate) fn pay_for_switch(switch: Span, cold: Span, c: &mut Cpu, t: &mut Task, now: Instant) {
    let llc = c.place.llc_id;
    if t.ran_under.replace(llc).is_some_and(|before| before != llc) {
        t.cold = cold;
    }
    c.run_since = c.run_since.max(now) + Span(switch.0 + t.cold.0);
}

/// `t` leaves the CPU `c`: what its cache still lacks it will have to wait for.
pub(crate) fn cool_down(c: &mut Cpu, t: &mut Task, now: Instant) {
    t.cold = t.cold.min(Span(c.run_since.0.saturating_sub(now.0)));
    c.run_since.0 -= t.cold.0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws;
    use crate::state::machine::SPEED_SHIFT;
    use crate::tests::experiment;
    use proptest::prelude::*;
    use risetime_model::{Platform, Workload};

    fn costs(set: &[(&str, i64)]) -> Costs {
        let set: Vec<_> = set.iter().map(|(name, v)| (*name, Value::Int(*v))).collect();
        let (m1, rampup) = (Platform::load("m1"), Workload::load("rampup"));
        let (m1, rampup) = (m1.expect("built in"), rampup.expect("built in"));
        of_experiment(&experiment(m1, rampup, "linux-7.2", &set, Span::from_ms(1)))
    }

    #[test]
    fn nothing_costs_anything_unless_somebody_says_so() {
        let none = costs(&[]);
        assert!(!switches(&none) && none.slack == Span(0) && !none.shares_cores());
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
