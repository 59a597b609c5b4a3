//! Timers without high resolution: those of sleeping tasks and of classes expire at ticks.
//!
//! ```text
//! highres=on    a timer's interrupt comes when it expires: timer_slack_ns is all that brings several together
//! highres=off   ticks only (hrtimer_run_queues), and each runs whatever is past its soft expiry
//!   CPU busy      tick ── timers, then the scheduler's own (sched_tick)
//!   CPU idle, its tick goes on     likewise; the exit latency is paid where a timer expires
//!   CPU idle, its tick is stopped  one tick, at the first multiple of a tick behind the first hard expiry
//!                                  (cmp_next_hrtimer_event); with a timer before the next tick it is not stopped
//! ```
//!
//! cpuidle is told of that tick and of nothing before it, and learns that a tick woke the CPU: `menu` takes a sleep of more
//! than a tick that ends so for a very long one (`tick_nohz_idle_got_tick`). Governors' timers are the timer wheel's, in
//! jiffies under either.
//!
//! Changed while it runs, which no kernel does: the other way round it is what each CPU does once while it boots
//! (`hrtimer_switch_to_hres`). From high to low resolution each CPU gets an interrupt, the timer that makes its tick
//! (`ts->sched_timer`) has to be taken out of the queue, and a tick of the low kind takes its place. `highres_change=keep_tick`
//! is the change without that. What it does is our reading of T. Gleixner's remark at OSPM 2023 ("the need to stop the tick"):
//! the timer stays in a queue that is now run by the tick, is due at each of them, and each tick's work is done twice; and
//! as its expiry is never further away than one tick, no tick is stopped any more once it runs.
//!
//! DEVIATES(lowres_wheel): jiffies that an idle machine has missed are made up for at once here, so that the next timer is looked for
//! from now; a kernel looks from the last jiffy that somebody counted. HRTICK, which wants high resolution, is not modelled
//! under either.
//!
//! Source: kernel/time/hrtimer.c:hrtimer_run_queues, __hrtimer_run_queues, hrtimer_switch_to_hres; tick-sched.c:tick_nohz_lowres_handler,
//! tick_nohz_next_event, tick_nohz_stop_tick; timer.c:cmp_next_hrtimer_event, run_local_timers. Alike in 6.1, 6.12 and 7.2, but for
//! names (the handler is `tick_nohz_handler` up to 6.7) and for 6.1's stopped tick, whose device is switched off after each
//! interrupt, in 6.12 and 7.2 by the idle loop.

pub(crate) mod state;

use crate::kernel::Kernel;
use crate::kernel::rq::Rq;
use crate::mech::hrtimers::state::Hrtimers;
use crate::mech::mechanism::Mechanism;
use crate::mech::slots::Id;
use crate::state::class::ClassTimer;
use crate::state::costs::Kind;
use crate::state::machine::Machine;
use crate::time::queue::{Ev, Planned};
use risetime_kernel::units::{CpuId, Instant, Span, TaskId};
use risetime_model::Experiment;
use risetime_model::settings::{
    Default, Group, Home, Int, Name, Neutral, Param, Range, Settings, keys,
};

impl Mechanism for state::Own {
    fn groups() -> Vec<Group> {
        vec![GROUP]
    }
    fn of_machine(e: &Experiment, _: &Machine) -> Hrtimers {
        of_settings(&e.settings)
    }
    fn plans(e: &Experiment, _: &Machine) -> Vec<(Instant, Ev)> {
        let at = changes_at(&e.settings).map(|after| Instant(0) + e.phase + after);
        let planned = Ev::MechanismLast(Planned::only(Id::hrtimers));
        at.map(|at| (at, planned)).into_iter().collect()
    }
    /// Changes the resolution on each CPU that is online.
    fn event(k: &mut Kernel, _: Planned) -> bool {
        k.m.slots.hrtimers.low_res = !k.m.slots.hrtimers.low_res;
        let online = k.m.root.online;
        online.iter().for_each(|cpu| k.rq(cpu).changes_resolution());
        false
    }
}

/// Whether timers have a resolution of their own.
pub(crate) const HIGHRES: Name = Name::new(Param {
    name: keys::HIGHRES.name(),
    doc: "timers expire when they are due; off = at ticks only, many at once (unset: on)",
    unit: "",
    range: Range::OneOf(&["on", OFF]),
    default: Default::Unset,
    home: Home::Boot("highres="),
});
const CHANGE: Name = Name::new(Param {
    name: "highres_change",
    doc: "effect of a change of `highres` to off on the timer that makes the tick: stop_tick = takes it out, keep_tick = leaves it queued, so that each tick does its work twice and none is stopped",
    unit: "",
    range: Range::OneOf(&[STOP_TICK, KEEP_TICK]),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Name(STOP_TICK)),
});
const CHANGE_MS: Int = Int::new(Param {
    name: "highres_change_ms",
    doc: "time after the workload's start at which `highres` changes from on to off, or from off to on",
    unit: "ms",
    range: Range::Int(0, 1_000_000_000),
    default: Default::Unset,
    home: Home::Simulator(Neutral::None),
});
const OFF: &str = "off";
const STOP_TICK: &str = "stop_tick";
const KEEP_TICK: &str = "keep_tick";

/// Settings of timers.
const GROUP: Group = Group::of(&[HIGHRES.0, CHANGE_MS.0, CHANGE.0]).titled("Timers");

/// The kind of timers that settings ask for.
pub(crate) fn of_settings(settings: &Settings) -> Hrtimers {
    Hrtimers {
        low_res: settings.get(&HIGHRES) == Some(OFF),
        keeps_tick: settings.get(&CHANGE) == Some(KEEP_TICK),
        ..Hrtimers::default()
    }
}

impl Machine {
    /// Whether a tick of `cpu` would run a timer now.
    fn has_expired(&self, cpu: CpuId) -> bool {
        let c = self.cpu(cpu);
        let soft = c.timers.first().map(|(_, task)| self.task(task).soft_expiry);
        let class = c.class_timers.iter().find(|(_, t)| !matches!(t, ClassTimer::Governor(_)));
        soft.into_iter().chain(class.map(|t| t.0)).any(|at| at <= self.now)
    }
}

/// The time from the workload's start at which timers change; `None`: never.
pub(crate) fn changes_at(settings: &Settings) -> Option<Span> {
    settings.get(&CHANGE_MS).map(|ms| Span::from_ms(ms.max(0) as u64))
}

impl Rq<'_, '_> {
    /// The timers at a tick, before the scheduler's own part; true: that is all of this tick for now, the CPU has to leave its
    /// idle state for them.
    pub(crate) fn low_res_tick(&mut self) -> bool {
        let cpu = self.cpu;
        if !self.m().has_expired(cpu) {
            return false;
        }
        let late = match self.m().cpu(cpu).timers.first() {
            Some((_, task)) => self.takes(Kind::Timer, task),
            None => Span(0),
        };
        let idle = self.m().cpu(cpu).idle;
        let heard = self.m().now + late;
        let leaves = idle.map_or(Span(0), |idle| self.m().exit_latency(cpu, idle, heard));
        if idle.is_some() || late > Span(0) {
            self.push(heard + leaves, Ev::RunQueues { cpu, done: false });
        } else {
            self.hrtimer_run_queues();
        }
        idle.is_some()
    }

    /// `__hrtimer_run_queues`: by hard expiry, up to the first whose soft one is yet to come.
    pub(crate) fn hrtimer_run_queues(&mut self) {
        let (cpu, now) = (self.cpu, self.m().now);
        loop {
            let c = self.m().cpu(cpu);
            let governor = |t: &ClassTimer| matches!(t, ClassTimer::Governor(_));
            let class = c.class_timers.iter().find(|(_, t)| !governor(t));
            let task = c.timers.first();
            match (class, task) {
                (Some((at, timer)), other) if other.is_none_or(|(hard, _)| at <= hard) => {
                    if at > now {
                        break;
                    }
                    self.c().class_timers.remove_at(at, timer);
                    self.c().slots.hrtimers.running = true;
                    self.push(now, class_event(timer, true));
                }
                (_, Some((_, task))) => {
                    if self.m().task(task).soft_expiry > now {
                        break;
                    }
                    self.c().timers.remove(task);
                    self.t(task).timer_cpu = None;
                    self.wake_up_due(task);
                    self.hears();
                }
                (_, None) => break,
            }
        }
        if self.m().cpu(cpu).slots.hrtimers.running {
            self.push(now, Ev::RunQueues { cpu, done: true });
        }
    }

    /// Timers have another resolution from now on; an idle CPU is told so by an interrupt.
    pub(crate) fn changes_resolution(&mut self) {
        let (cpu, now, timers) = (self.cpu, self.m().now, self.m().slots.hrtimers);
        let low_res = timers.low_res;
        self.c().slots.hrtimers.sched_timer_left = low_res && timers.keeps_tick;
        for (at, task) in self.c().timers.take() {
            self.c().timers.insert((at, task));
            let t = self.t(task);
            // What was queued for it counts no longer.
            t.timer_gen = t.timer_gen.wrapping_add(1);
            let generation = t.timer_gen;
            if !low_res {
                self.push(at.max(now), Ev::Timer { task, generation });
            }
        }
        let class: Vec<_> = self.m().cpu(cpu).class_timers.iter().collect();
        for (at, timer) in class.into_iter().filter(|_| !low_res) {
            if !matches!(timer, ClassTimer::Governor(_)) {
                self.push(at.max(now), class_event(timer, false));
            }
        }
        if self.m().cpu(cpu).idle.is_none() {
            return;
        }
        if self.m().cpu(cpu).tick_stopped {
            let c = self.c();
            c.tick_gen = c.tick_gen.wrapping_add(1);
        }
        if !self.m().cpu(cpu).waking {
            self.leave_idle();
            self.idle_loop();
        }
    }
}

impl Rq<'_, '_> {
    /// A timer interrupt on `cpu`: who is past the soft expiry need not wait for the hard one
    /// (`__hrtimer_run_queues`), up to the first timer of any kind whose time is yet to come.
    pub(crate) fn run_soft_expired(&mut self) {
        if self.m().costs.slack == Span(0) || self.m().slots.hrtimers.at_ticks() {
            return;
        }
        let now = self.m().now;
        while let Some((hard, task)) = self.m().cpu(self.cpu).timers.first() {
            if self.m().task(task).soft_expiry > now || self.stands_before(hard) {
                break;
            }
            self.c().timers.remove(task);
            let t = self.t(task);
            // The timer's own event comes too late.
            t.timer_gen = t.timer_gen.wrapping_add(1);
            t.timer_cpu = None;
            self.wake_up_due(task);
        }
    }

    /// A task that sleeps until a time is woken by somebody else: its timer will not expire (`hrtimer_cancel`).
    pub(crate) fn cancels_sleep(&mut self, task: TaskId) {
        self.c().timers.remove(task);
        let t = self.t(task);
        t.timer_gen = t.timer_gen.wrapping_add(1);
        t.timer_cpu = None;
    }

    /// Whether the tick or a timer of a class, which have no slack, is yet to expire and does so by `hard`:
    /// they stand in one queue with the tasks' timers (`ts->sched_timer`, CLOCK_MONOTONIC).
    fn stands_before(&self, hard: Instant) -> bool {
        let (now, c) = (self.m().now, self.m().cpu(self.cpu));
        let tick = (!c.tick_stopped).then(|| self.m().next_tick());
        let class = c.class_timers.iter().map(|(at, _)| at).find(|at| *at > now);
        tick.into_iter().chain(class).any(|at| at <= hard)
    }
}

/// Returns the event of a class's timer that expires.
fn class_event(timer: ClassTimer, awake: bool) -> Ev {
    match timer {
        ClassTimer::CfsPeriod(group) => Ev::CfsPeriod { group, awake },
        ClassTimer::CfsSlack(group) => Ev::CfsSlack { group, awake },
        timer => Ev::ClassTimer { timer, awake },
    }
}
