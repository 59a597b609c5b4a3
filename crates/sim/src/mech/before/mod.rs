//! Load tracking in older kernels: each fault, mended since, is a setting, too.
//!
//! ```text
//! setting                       mended in  arithmetic      what it changes
//! pelt_remainder=lost           4.12       pelt_before.rs  every signal: small tasks are underestimated
//! pelt_divider=whole            4.13       pelt_before.rs  every average: it goes up and down within a period
//! pelt_invariance=contribution  5.1        pelt_before.rs  every signal: util ends at what the frequency gives
//! pelt_propagate=0              4.10       -               hierarchy.rs: a task's move reaches its group, and no further
//! util_est=0                    4.17       -               util_est.rs: nothing remembers what a task needed
//! nohz_stats=0                  4.17       -               balance: what sleeping tasks left on idle CPUs stays
//! rt_tracking=rt_avg            4.19       rt_avg.rs       capacity left to fair tasks, frequency after RT tasks
//! ```
//!
//! Unset they do what the policy's kernel does. Commits: bb0bd044e65c ("Increase PELT accuracy for small tasks"),
//! 625ed2bf049d ("Make util/load_avg more stable"), 23127296889f ("Update scale invariance of PELT"),
//! 09a43ace1f98 ("Propagate load during synchronous attach/detach"), 7f65ea42eb00 ("Add util_est on top of PELT"),
//! e022e0d38ad4 ("Update blocked load from NEWIDLE"), 371bf4273269 ("Add rt_rq utilization tracking").

pub(crate) mod state;

use crate::kernel::rq::{Parts, Rq};
use crate::mech::before::state::{Before, RtTracking};
use crate::mech::mechanism::Mechanism;
use crate::state::machine::Machine;
use crate::state::machine::UPTIME;
use risetime_kernel::KernelRev;
use risetime_kernel::features::{self, Feature};
use risetime_kernel::pelt::Pelt;
use risetime_kernel::pelt_before::Scale;
use risetime_kernel::rt_avg::capacity_of_pre_4_19;
use risetime_kernel::units::Instant;
use risetime_kernel::units::{Capacity, CpuId, Span};
use risetime_model::Experiment;
use risetime_model::settings::{
    Default, Group, Home, Int, Name, Neutral, Param, Range, Settings, keys,
};
use risetime_model::{InputError, Platform, Policy};

impl Mechanism for state::Own {
    fn groups() -> Vec<Group> {
        vec![GROUP]
    }
    fn of_machine(e: &Experiment, m: &Machine) -> Before {
        of_settings(m.rev, &e.settings)
    }
    fn of_cpu(_: &Experiment, _: &Machine, _: CpuId) -> RtTracking {
        RtTracking::new(Instant(UPTIME.0))
    }
    fn bends(m: &Machine) -> bool {
        m.slots.before.sched_avg_period.is_some()
    }
}

const INVARIANCE: Name = Name::new(former(
    "pelt_invariance",
    "what a slow CPU or frequency scales for load tracking: its time (since 5.1), or, as before, what it adds, so that util ends at what the frequency gives; unset, here and below: as the policy's kernel",
    Range::OneOf(&["time", "contribution"]),
    Neutral::Name("time"),
));
const REMAINDER: Name = Name::new(former(
    "pelt_remainder",
    "what of a time is less than 1024 ns is kept for load tracking's next update (since 4.12), or lost, so that small tasks look smaller",
    Range::OneOf(&["kept", "lost"]),
    Neutral::Name("kept"),
));
const DIVIDER: Name = Name::new(former(
    "pelt_divider",
    "load tracking's averages count of the period under way what has passed (since 4.13), or all of it, so that they go up and down within each",
    Range::OneOf(&["passed", "whole"]),
    Neutral::Name("passed"),
));
const PROPAGATE: Int = Int::new(former(
    "pelt_propagate",
    "the util of a task that joins or leaves a group on a CPU reaches the CPU at once (since 4.10); 0: as the group's own util rises and falls",
    Range::Int(0, 1),
    Neutral::Int(1),
));
const UTIL_EST: Int = Int::new(Param {
    name: keys::UTIL_EST.name(),
    doc: "the util that a task had when it fell asleep is remembered (since 4.17)",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Unset,
    home: Home::Feature("UTIL_EST"),
});
const NOHZ_STATS: Int = Int::new(former(
    "nohz_stats",
    "what sleeping tasks left on idle CPUs is aged by others (since 4.17); 0: when somebody balances for them",
    Range::Int(0, 1),
    Neutral::Int(1),
));
const RT_TRACKING: Name = Name::new(former(
    "rt_tracking",
    "what real-time and deadline tasks and interrupts took of a CPU: as util that fades (pelt, since 4.19), or a mean over sched_time_avg_ms that does not reach the frequency",
    Range::OneOf(&["pelt", "rt_avg"]),
    Neutral::Name("pelt"),
));
const TIME_AVG: Int = Int::new(Param {
    name: "sched_time_avg_ms",
    doc: "period of the mean of real-time running time (only with rt_tracking=rt_avg; unset: 1000)",
    unit: "ms",
    range: Range::Int(2, 100_000),
    default: Default::Unset,
    home: Home::Patched(Some("kernel.sched_time_avg_ms"), Neutral::Any),
});

const fn former(name: &'static str, doc: &'static str, range: Range, neutral: Neutral) -> Param {
    Param { name, doc, unit: "", range, default: Default::Unset, home: Home::Simulator(neutral) }
}

const GROUP: Group = Group::of(&[
    INVARIANCE.0,
    REMAINDER.0,
    DIVIDER.0,
    PROPAGATE.0,
    UTIL_EST.0,
    NOHZ_STATS.0,
    RT_TRACKING.0,
    TIME_AVG.0,
])
.titled("Load tracking of older kernels")
.checked(check);

/// Errors: `sched_time_avg_ms`, and nothing that averages over it.
fn check(_: &Platform, policy: &Policy, settings: &Settings) -> Result<(), InputError> {
    if !settings.is_set(&TIME_AVG) || averages(policy.kernel, settings) {
        return Ok(());
    }
    let what = format!("`{TIME_AVG}` is a setting of {RT_TRACKING}=rt_avg");
    Err(InputError::new(policy.place_of(TIME_AVG.name), what)
        .hint(format!("leave `{TIME_AVG}` out, or add {RT_TRACKING}=rt_avg")))
}

/// Whether `rev` behaves so, unless the setting says otherwise.
fn has(rev: KernelRev, feature: Feature, said: Option<bool>) -> bool {
    said.unwrap_or(rev.has(feature))
}

fn averages(rev: KernelRev, settings: &Settings) -> bool {
    !has(rev, features::RT_PELT, settings.get(&RT_TRACKING).map(|name| name == "pelt"))
}

/// The behaviour that settings ask for, else that of the kernel.
pub(crate) fn of_settings(rev: KernelRev, settings: &Settings) -> Before {
    let on = |of: &Int| settings.get(of).map(|on| on == 1);
    let half = Span::from_us(settings.get(&TIME_AVG).unwrap_or(1000).max(2) as u64 * 1000 / 2);
    Before {
        contribution: !has(
            rev,
            features::PELT_INVARIANCE,
            settings.get(&INVARIANCE).map(|name| name == "time"),
        ),
        propagates: has(rev, features::PELT_PROPAGATE, on(&PROPAGATE)),
        util_est: has(rev, features::UTIL_EST, on(&UTIL_EST)),
        nohz_stats: has(rev, features::NOHZ_STATS, on(&NOHZ_STATS)),
        sched_avg_period: averages(rev, settings).then_some(half),
    }
}

/// Whether PELT loses remainders, and divides by whole periods.
pub(crate) fn of_decay(rev: KernelRev, settings: &Settings) -> (bool, bool) {
    let kept =
        has(rev, features::PELT_REMAINDER, settings.get(&REMAINDER).map(|name| name == "kept"));
    (!kept, !has(rev, features::PELT_DIVIDER, settings.get(&DIVIDER).map(|name| name == "passed")))
}

impl Machine {
    /// The rules by which PELT updates a CPU.
    #[inline]
    pub(crate) fn pelt(&self, cpu: CpuId) -> Pelt<'static> {
        let scale = self.slots.before.contribution.then(|| {
            let (cpu, freq) = self.scale_of(cpu);
            Scale { freq, cpu }
        });
        Pelt { decay: self.decay, scale }
    }
}

/// The class above the fair class that has run.
#[derive(Clone, Copy)]
pub(crate) enum Above {
    Rt,
    Deadline,
}

impl Rq<'_, '_> {
    /// Accounts the class's time in the average beside its PELT signal: up to now its task has run
    /// (`running`), or has not.
    pub(crate) fn rt_avg_update(&mut self, who: Above, running: bool) {
        let Some(period) = self.m().slots.before.sched_avg_period else { return };
        let Parts { c, domain, .. } = self.parts();
        let (clock, task_clock) = (c.clock.clock, c.clock.clock_task);
        let RtTracking { avg, since } = &mut c.slots.before;
        let since = &mut since[who as usize];
        let delta = task_clock.since(std::mem::replace(since, task_clock));
        let ran = if running { delta } else { Span(0) };
        avg.sched_rt_avg_update(clock, period, ran, domain.freq_scale);
    }

    /// Adds the time that an interrupt has taken to the average of RT time.
    pub(crate) fn rt_avg_interrupt(&mut self, took: Span) {
        let Some(period) = self.m().slots.before.sched_avg_period else { return };
        let Parts { c, domain, .. } = self.parts();
        let clock = c.clock.clock;
        c.slots.before.avg.sched_rt_avg_update(clock, period, took, domain.freq_scale);
    }

    /// `capacity_of` before 4.19, where that is asked for.
    pub(crate) fn capacity_pre_4_19(&mut self) -> Option<Capacity> {
        let period = self.m().slots.before.sched_avg_period?;
        let c = self.c();
        let (avg, clock) = (&mut c.slots.before.avg, c.clock.clock);
        avg.sched_avg_update(clock, period);
        let scale = avg.scale_rt_capacity(clock, period);
        Some(capacity_of_pre_4_19(c.capacity, scale))
    }
}
