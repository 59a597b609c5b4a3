//! Simulators in which something that costs time does not: the counterfactuals of `explain`.
//!
//! ```text
//! debt(S) = what the same burst loses with every cause in S absent
//! debt(∅) = the real one        debt(all) = what none of these causes explains, about 0
//! ```
//!
//! A cause that is absent does not merely get smaller: whatever it delays happens at once. What
//! that means exactly stands at each [`Cause`]; the mechanisms do not know of it, it is told them by hooks
//! (`Without`). No experiment runs without a cause unless
//! [`Counterfactual`](crate::Counterfactual) asks for it.

use crate::kernel::class::stop::STOP_WORK;
use crate::kernel::clock::FREQ_INVARIANCE;
use crate::kernel::governor::{GoesBy, Works};
use crate::kernel::tracker::TRACKER;
use crate::mech::perf_domain::SCHED_ENERGY_AWARE;
use crate::mech::pressure;
use crate::mech::pressure::caps;
use crate::mech::pressure::emergency::{ABOVE, BELOW};
use crate::mech::pressure::irq::{IRQ, IRQ_PERIOD};
use crate::mech::pressure::limits::MAX_FREQ;
use crate::mech::pressure::thermal::is_on;
use crate::mech::pstate::{goes_by, governor_in_force, hardware_decides};
use crate::run::engine::Simulation;
use crate::state::class::{Class, RT_UCLAMP_MIN, rt_uclamp_min};
use crate::state::class::{POWER_HAL, UCLAMP_MAX, UCLAMP_MIN};
use crate::state::costs::{Costs, FULL};
use crate::state::hooks::{Answer, Busy, Hooks, Point, Step, TaskSignals};
use crate::state::machine::{FreqDomain, Machine, State};
use crate::time::cost;
use risetime_kernel::cpu_util::CfsUtil;
use risetime_kernel::features;
use risetime_kernel::fits::{Fit, util_fits_cpu};
use risetime_kernel::uclamp::{Uclamp, UclampLimits};
use risetime_kernel::units::{Capacity, CpuId, GroupId, KHz, Span, TaskId, Util};
use risetime_model::settings::{Int, Key, Name, Param};
use risetime_model::workload::{Policy, TaskSpec};
use risetime_model::{Experiment, Platform};
use risetime_trace::Why;
use std::sync::Arc;

/// Something that keeps a task from full speed, and what its absence means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// PELT's own ramp. Absent: whoever asks for the util of a task hears 1024, and of a CPU that
    /// has one of the workload's tasks to run, too. (Its signals are tracked and traced as ever.)
    PeltRamp,
    /// Invariance dilation. Absent: the PELT clock runs in plain time at any capacity and
    /// frequency; and where util is not frequency-invariant, schedutil takes it for a share of the highest frequency, not of
    /// the present one.
    Invariance,
    /// The rate limit. Absent: schedutil may change the frequency whenever it looks, and a governor that samples looks
    /// at every update of util, wakeup and tick. (What the response-time series derives from `rate_limit_us`, the
    /// headroom, stays; so does what a sampling period decides but its end: which sleep counts as a long one.)
    RateLimit,
    /// Changing the frequency. Absent: no transition latency, and neither a sugov kthread nor another governor's worker;
    /// the hardware follows at once.
    Transition,
    /// The step from util to an OPP: headroom, rounding, and that a frequency is asked for that
    /// goes with util at all. Absent: a CPU that has one of the workload's tasks to run, other than
    /// a deadline task, asks for its highest OPP, within the clamps, when the governor looks.
    Opp,
    /// The migration margin. Absent: a task does not fit a CPU smaller than the biggest that its
    /// affinity and `uclamp_max` allow, whatever its util.
    Margin,
    /// Waiting for the pull. Absent: a running task that is known not to fit its CPU moves at once
    /// to the smallest idle CPU that is bigger and fits, else to the biggest idle one.
    Pull,
    /// Queueing. Absent: the task in question has the CPU whenever it is runnable, also a bigger
    /// one that it is pulled to.
    Queueing,
    /// Clamps. Absent: no task asks for any, no group limits them, and real-time tasks have the
    /// kernel's default. (A task's s_max, which says what full speed is, stays that of
    /// its clamps, so that the same way is measured with and without them.)
    Clamps,
    /// Heat. Absent: the platform has no thermal zones.
    Heat,
    /// Leaving an idle state. Absent: it takes no time.
    IdleExit,
    /// A deadline task's frequency goes with what such tasks have reserved. Absent: the governor looks when one of the
    /// workload's deadline tasks comes to a CPU, and wants its highest OPP while that belongs there, asleep or awake.
    Reservation,
    /// Used up quotas of groups, reservations of deadline tasks, and time of real-time tasks (before 6.12). Absent:
    /// whoever has used them up goes on.
    Throttling,
    /// Busy hardware threads of the same core. Absent: a thread is as fast beside them as alone.
    Smt,
    /// Time that the kernel takes for itself: switches, wakeups, ticks, interrupts, cold caches.
    /// Absent: they take no time.
    Overhead,
    /// Boost OPPs that are allowed and not asked for. Absent: who asks for the highest ordinary OPP gets the highest of all.
    Boost,
    /// User space's limits on the frequency (`scaling_max_freq`), from the start or later. Absent: there are none. (A task's
    /// s_max stays what it is, as above.)
    UserCap,
    /// A cap of firmware's. Absent: there is none.
    FirmwareCap,
    /// A power budget. Absent: there is none.
    PowerBudget,
    /// A cap of the hardware's. Absent: there is none.
    HwCap,
}

/// A cause with its names.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The cause.
    pub cause: Cause,
    /// Name of the cause in results and on the command line.
    pub name: &'static str,
    /// Name that a person uses.
    pub label: &'static str,
    /// One sentence.
    pub about: &'static str,
}

const fn known(
    cause: Cause,
    name: &'static str,
    label: &'static str,
    about: &'static str,
) -> Known {
    Known { cause, name, label, about }
}

/// All of them, in the order of the signal's way: from what a task does to the CPU that it gets, and what limits that.
#[rustfmt::skip]
pub const CAUSES: [Known; 20] = [
    known(Cause::PeltRamp, "pelt_ramp", "PELT's own ramp",
        "util has to climb before anybody knows"),
    known(Cause::Invariance, "invariance", "invariance dilation",
        "util climbs slower on a small CPU and at a low frequency"),
    known(Cause::Opp, "opp", "OPP rounding and headroom",
        "the frequency goes with util, by headroom and rounded to an OPP, and is not the highest"),
    known(Cause::Reservation, "reservation", "reserved bandwidth",
        "a deadline task's frequency goes with what such tasks have reserved (GRUB-PA)"),
    known(Cause::RateLimit, "rate_limit", "rate limit",
        "the frequency may not change again so soon"),
    known(Cause::Transition, "transition", "transition and kthread",
        "the hardware, and the sugov kthread, take their time"),
    known(Cause::Margin, "margin", "migration margin",
        "util has to reach the margin before a CPU counts as too small"),
    known(Cause::Pull, "pull", "waiting for the pull",
        "a task that does not fit waits until a bigger CPU pulls it"),
    known(Cause::Queueing, "queueing", "queueing",
        "another task has the CPU"),
    known(Cause::Throttling, "throttling", "throttling",
        "a group's quota, a reservation, or real-time tasks' time is used up"),
    known(Cause::IdleExit, "idle_exit", "idle exit",
        "the CPU is leaving an idle state"),
    known(Cause::Smt, "smt", "SMT neighbours",
        "a busy hardware thread of the same core takes part of its speed"),
    known(Cause::Overhead, "overhead", "the kernel's own time",
        "switches, wakeups, ticks and interrupts take time"),
    known(Cause::Clamps, "clamps", "clamps",
        "uclamp_min and uclamp_max, of the task and of its groups"),
    known(Cause::Boost, "boost", "boost not asked for",
        "boost is on, and the governor never asks for a boost frequency"),
    known(Cause::UserCap, "user_cap", "user-space cap",
        "scaling_max_freq allows no more"),
    known(Cause::FirmwareCap, "firmware_cap", "firmware cap",
        "firmware lets its driver ask for no more"),
    known(Cause::PowerBudget, "power_budget", "power budget",
        "a policy's power is limited, and with it its frequency"),
    known(Cause::Heat, "heat", "heat",
        "a thermal zone is too hot, and its cooling caps the frequency"),
    known(Cause::HwCap, "hw_cap", "hardware cap",
        "the hardware caps itself, whatever it is asked for"),
];

impl Cause {
    /// The cause's name in results and on the command line.
    pub fn name(self) -> &'static str {
        CAUSES.iter().find(|c| c.cause == self).map_or("", |c| c.name)
    }

    /// The cause of that name.
    pub fn named(name: &str) -> Option<Cause> {
        CAUSES.iter().find(|c| c.name == name).map(|c| c.cause)
    }

    /// The words for the cause in `experiment`, and one sentence: a governor that samples has no
    /// headroom, and no util.
    pub fn words_in(self, experiment: &Experiment) -> (&'static str, &'static str) {
        let own = CAUSES.iter().find(|c| c.cause == self).map_or(("", ""), |c| (c.label, c.about));
        let goes_by = goes_by(&experiment.platform, &experiment.settings);
        let samples = goes_by == GoesBy::Samples;
        let walt = experiment.settings.get(&TRACKER) == Some("walt");
        match self {
            Cause::PeltRamp if walt => {
                ("WALT's windows", "a window has to end before anybody knows what is in it")
            }
            Cause::PeltRamp if samples => {
                (own.0, "util has to climb before tasks are placed by it")
            }
            Cause::Opp if hardware_decides(&experiment.platform, &experiment.settings) => (
                "the hardware's climb",
                "the hardware goes by how busy the CPU was, and climbs in its own time (a model: hardware_ramp)",
            ),
            Cause::Opp if samples => (
                "thresholds and steps",
                "the frequency goes with how busy the CPU was, by thresholds and steps, and is not the highest",
            ),
            Cause::Invariance if experiment.settings.get(&FREQ_INVARIANCE) == Some("no") => (
                "no frequency invariance",
                "util is a share of the present frequency, from which the governor goes on a quarter at a time",
            ),
            Cause::Opp if goes_by == GoesBy::Fixed => (
                "the governor's fixed choice",
                "the governor never looks, and its frequency is not the highest",
            ),
            Cause::RateLimit if samples => (
                "sampling",
                "the governor looks only every so often, until when an idle CPU has the frequency last asked for",
            ),
            Cause::Transition => {
                match governor_in_force(&experiment.platform, &experiment.settings)
                    .works
                    .in_rev(experiment.policy.kernel)
                {
                    Works::Kworker | Works::KworkerWhereSlow => (
                        "transition and worker",
                        "the hardware, and the worker that changes the frequency, take their time",
                    ),
                    Works::Fifo { .. } => (
                        own.0,
                        "the hardware, and the governor's real-time kthread, take their time",
                    ),
                    Works::WhereSlow | Works::Sugov => own,
                }
            }
            _ => own,
        }
    }

    /// Whether it can make a difference in `experiment` at all; false only if it cannot.
    pub fn acts_in(self, experiment: &Experiment) -> bool {
        let domains = &experiment.platform.domains;
        let goes_by = goes_by(&experiment.platform, &experiment.settings);
        let fixed = matches!(goes_by, GoesBy::Highest | GoesBy::Fixed);
        let opps = domains.iter().any(|d| d.opps.len() > 1);
        let unequal = domains.iter().any(|d| d.capacity != domains[0].capacity);
        let settings = &experiment.settings;
        let set = |of: &Int| settings.is_set_anywhere(of);
        match self {
            Cause::PeltRamp => policies(experiment).any(|p| !is_deadline(&p)),
            Cause::Invariance => opps || domains.iter().any(|d| d.capacity != Capacity(1024)),
            Cause::Opp => {
                opps && goes_by != GoesBy::Highest && policies(experiment).any(|p| !is_deadline(&p))
            }
            Cause::Reservation => opps && !fixed && policies(experiment).any(|p| is_deadline(&p)),
            Cause::RateLimit => {
                let limit =
                    governor_in_force(&experiment.platform, &experiment.settings).rate_limit;
                opps && limit.is_some_and(|limit| settings.all(&limit).any(|limit| limit != 0))
            }
            Cause::Transition => {
                let slow = |d: &risetime_model::platform::Domain| {
                    !d.fast_switch || d.opps.iter().any(|o| o.latency > Span(0))
                };
                !fixed && opps && domains.iter().any(slow)
            }
            // Before 4.20 a task was never too big for a CPU, but where its energy was looked at.
            Cause::Margin | Cause::Pull => {
                let eas = experiment.settings.get(&SCHED_ENERGY_AWARE) == Some(1);
                unequal && (experiment.policy.kernel.has(features::MISFIT) || eas)
            }
            Cause::Queueing => {
                let works = governor_in_force(&experiment.platform, &experiment.settings)
                    .works
                    .in_rev(experiment.policy.kernel);
                experiment.workload.tasks.len() > 1
                    || !experiment.workload.forked.is_empty()
                    || matches!(works, Works::Kworker | Works::KworkerWhereSlow)
                    || set(&STOP_WORK)
                    || settings.is_set(&POWER_HAL)
            }
            Cause::IdleExit => {
                domains.iter().flat_map(|d| &d.idle).any(|s| s.longest_wakeup() > Span(0))
            }
            Cause::Throttling => {
                let throttled_rt = throttles_rt(experiment);
                experiment.workload.groups.iter().any(|g| g.quota.is_some())
                    || policies(experiment)
                        .any(|p| is_deadline(&p) || (throttled_rt && is_real_time(&p)))
            }
            Cause::Smt => cost::shares_cores(experiment),
            Cause::Overhead => cost::takes_time(experiment) || set(&IRQ),
            Cause::Boost => pressure::has_boost(&experiment.settings) && !fixed,
            Cause::UserCap => set(&MAX_FREQ) || set(&caps::USER.settings.most),
            Cause::FirmwareCap => set(&caps::FIRMWARE.settings.most),
            Cause::PowerBudget => set(&caps::BUDGET.settings.most),
            Cause::HwCap => set(&caps::HARDWARE.settings.most),
            Cause::Clamps => clamped(experiment),
            Cause::Heat => {
                let zones = &experiment.platform.thermal;
                let cools =
                    zones.iter().any(|z| !z.cools.is_empty() && z.passive().next().is_some());
                cools && is_on(&experiment.platform, &experiment.settings)
            }
        }
    }
}

/// Whether real-time tasks use up a time of theirs: up to 6.11.
fn throttles_rt(experiment: &Experiment) -> bool {
    experiment.policy.kernel.has(features::RT_BANDWIDTH)
}

/// The policies under which tasks of the workload run.
fn policies(experiment: &Experiment) -> impl Iterator<Item = Policy> + '_ {
    let tasks = experiment.workload.tasks.iter().chain(&experiment.workload.forked);
    let of = |t: &TaskSpec| {
        let phases = t.phases.iter().filter_map(|phase| phase.attr.policy);
        let first = t.attr.policy.unwrap_or(Policy::Other { slice: None });
        std::iter::once(first).chain(phases).collect::<Vec<_>>()
    };
    tasks.flat_map(of)
}

fn is_real_time(policy: &Policy) -> bool {
    matches!(policy, Policy::Fifo { .. } | Policy::Rr { .. })
}

fn is_deadline(policy: &Policy) -> bool {
    matches!(policy, Policy::Deadline { .. })
}

fn clamped(experiment: &Experiment) -> bool {
    let set = |of: &Int, none: i64| experiment.settings.get(of).is_some_and(|v| v != none);
    let workload = &experiment.workload;
    let mut attrs = workload
        .tasks
        .iter()
        .chain(&workload.forked)
        .flat_map(|t| std::iter::once(&t.attr).chain(t.phases.iter().map(|phase| &phase.attr)));
    let clamps = |min: Option<Util>, max: Option<Util>| {
        min.is_some_and(|v| v != Util(0)) || max.is_some_and(|v| v != Util(1024))
    };
    set(&UCLAMP_MIN, 0)
        || set(&UCLAMP_MAX, 1024)
        || set(&RT_UCLAMP_MIN, 1024)
        || attrs.any(|a| clamps(a.uclamp_min, a.uclamp_max))
        || workload.groups.iter().any(|g| clamps(Some(g.uclamp_min), Some(g.uclamp_max)))
}

/// A set of causes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes(u32);

impl Causes {
    /// The empty set.
    pub const NONE: Causes = Causes(0);

    /// Returns this set with `cause`.
    #[must_use]
    pub const fn with(self, cause: Cause) -> Causes {
        Causes(self.0 | 1 << cause as u16)
    }
    /// Whether `cause` is among them.
    #[inline]
    pub const fn has(self, cause: Cause) -> bool {
        self.0 & (1 << cause as u16) != 0
    }
    /// The causes, in the order of [`CAUSES`].
    pub fn iter(self) -> impl Iterator<Item = Cause> {
        CAUSES.into_iter().map(|c| c.cause).filter(move |c| self.has(*c))
    }
}

impl FromIterator<Cause> for Causes {
    fn from_iter<I: IntoIterator<Item = Cause>>(causes: I) -> Causes {
        causes.into_iter().fold(Causes::NONE, Causes::with)
    }
}

impl Causes {
    /// The note for the reader on a run without these causes; `None`: without none.
    pub(crate) fn note(self) -> Option<String> {
        let labels: Vec<&str> =
            CAUSES.iter().filter(|known| self.has(known.cause)).map(|known| known.label).collect();
        (!labels.is_empty()).then(|| format!("no real system: without {}", labels.join(", ")))
    }
}

/// The setting under which a result says what it was run without.
const WITHOUT: Key<Name> = Key::new("without");

impl Causes {
    /// Makes the changes of the experiment by which a cause is absent, where settings and platform
    /// alone do it.
    pub(crate) fn change(self, experiment: &mut Experiment) {
        if self == Causes::NONE {
            return;
        }
        let names: Vec<&str> = self.iter().map(Cause::name).collect();
        let settings = &mut experiment.settings;
        settings.set(&WITHOUT, names.join(",").as_str());
        if self.has(Cause::Transition) {
            switch_at_once(Arc::make_mut(&mut experiment.platform));
        }
        if self.has(Cause::Heat) {
            Arc::make_mut(&mut experiment.platform).thermal.clear();
        }
        let families: [(Cause, &[&[Param]]); 4] = [
            (Cause::FirmwareCap, &[caps::FIRMWARE.settings.params]),
            (Cause::PowerBudget, &[caps::BUDGET.settings.params]),
            (Cause::HwCap, &[caps::HARDWARE.settings.params, &[ABOVE.0, BELOW.0]]),
            (Cause::Overhead, &[&[IRQ_PERIOD.0, IRQ.0, cost::IRQ_EXIT_NS.0]]),
        ];
        for (_, family) in families.into_iter().filter(|(cause, _)| self.has(*cause)) {
            family.iter().for_each(|params| experiment.settings.unset_all(params));
        }
    }

    /// Changes what things cost, and the limits of the frequency, before the machine starts.
    pub(crate) fn change_machine(self, costs: &mut Costs, domains: &mut [FreqDomain]) {
        if self.has(Cause::Smt) {
            costs.beside.fill(FULL);
        }
        if self.has(Cause::Overhead) {
            costs.take_no_time();
        }
        if self.has(Cause::UserCap) {
            domains.iter_mut().for_each(FreqDomain::lift_user);
        }
    }
}

fn switch_at_once(platform: &mut Platform) {
    for domain in &mut platform.domains {
        domain.fast_switch = true;
        domain.opps.iter_mut().for_each(|o| o.latency = Span(0));
    }
}

/// A simulator without some of what costs time; the task that is explained never waits where queueing is absent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Without {
    pub(crate) causes: Causes,
    pub(crate) explained: TaskId,
}

impl Without {
    fn has(&self, cause: Cause) -> bool {
        self.causes.has(cause)
    }

    /// Whether tasks that do not fit move at once ([`pull_at_once`]).
    pub(crate) fn pulls(&self) -> bool {
        self.has(Cause::Pull)
    }

    /// Whether `task` keeps the CPU that it has, whatever balancing wants.
    fn stays(&self, task: TaskId) -> bool {
        self.has(Cause::Queueing) && task == self.explained
    }

    /// The task in question, if it could run on `cpu`; before it the governor's worker, without whom its frequency would
    /// never change.
    fn first_in_line(&self, m: &Machine, cpu: CpuId) -> Option<TaskId> {
        if !self.has(Cause::Queueing) {
            return None;
        }
        let could = |task: &TaskId| {
            m.fair_entity(cpu, *task).is_some_and(|e| !e.sched_delayed)
                && m.task(*task).state == State::Runnable
                && !m.throttled_hierarchy(cpu, m.task(*task).group)
        };
        let domain = &m.domains[m.cpu(cpu).domain];
        let worker = domain.workers.get(m.cpu(cpu).in_domain).copied();
        let first = Some(self.explained).filter(could)?;
        Some(worker.filter(could).unwrap_or(first))
    }
}

const ALL: Util = Util(1024);

impl Hooks for Without {
    fn instead(&self, m: &Machine, point: Point) -> Option<Answer> {
        match point {
            Point::Pick { cpu } => {
                self.first_in_line(m, cpu).map(|first| Answer::Task(Some(first)))
            }
            Point::WakeupPreempt { cpu, curr, woken } => {
                let fair = m.class_of(curr) == Class::Fair && m.class_of(woken) == Class::Fair;
                let first = self.first_in_line(m, cpu).filter(|_| fair)?;
                Some(Answer::Yes(first != curr))
            }
            Point::Move { task, .. } if self.stays(task) => Some(Answer::Yes(false)),
            Point::Step(Step::StopperTakesTime) if self.has(Cause::Queueing) => {
                Some(Answer::Yes(false))
            }
            Point::Step(Step::WorkWaits) if self.has(Cause::Transition) => Some(Answer::Yes(false)),
            Point::Step(Step::RateLimitPassed) if self.has(Cause::RateLimit) => {
                Some(Answer::Yes(true))
            }
            // Nobody has to wait for a PELT period to end before the governor looks.
            Point::Step(Step::LooksAtOnce) if self.has(Cause::PeltRamp) || self.has(Cause::Opp) => {
                Some(Answer::Yes(true))
            }
            Point::Step(Step::LooksAtDeadline) if self.has(Cause::Reservation) => {
                Some(Answer::Yes(true))
            }
            Point::Step(Step::ThrottleDl | Step::ThrottleCfsRq | Step::ThrottleRt)
                if self.has(Cause::Throttling) =>
            {
                Some(Answer::Yes(false))
            }
            Point::Step(Step::GoesByPresentFreq) if self.has(Cause::Invariance) => {
                Some(Answer::Yes(false))
            }
            _ => None,
        }
    }
    fn scale(&self, own: (Capacity, u64)) -> (Capacity, u64) {
        if self.has(Cause::Invariance) { (Capacity(1024), 1024) } else { own }
    }
    fn cfs_util(&self, busy: bool, own: CfsUtil) -> CfsUtil {
        match busy && self.has(Cause::PeltRamp) {
            true => CfsUtil { util_avg: ALL, runnable_avg: ALL, util_est: ALL },
            false => own,
        }
    }
    fn task_util(&self, own: TaskSignals) -> TaskSignals {
        match self.has(Cause::PeltRamp) {
            true => TaskSignals { util_avg: ALL, runnable_avg: ALL, util_est: ALL },
            false => own,
        }
    }
    fn dvfs_util(&self, has: Busy, capacity: Capacity, own: Util) -> Util {
        let all =
            (has.work && self.has(Cause::Opp)) || (has.deadline && self.has(Cause::Reservation));
        if all { own.max(Util(capacity.0)) } else { own }
    }
    /// Raises the highest ordinary OPP to the boost OPPs that are there, without [`Cause::Boost`].
    fn resolve_freq(&self, m: &Machine, domain: usize, _: KHz, own: KHz) -> KHz {
        let boosts = self.has(Cause::Boost) && own >= m.platform.domains[domain].freq_max();
        if boosts { own.max(m.domains[domain].max) } else { own }
    }
    fn start_freq(&self, max: KHz, own: KHz) -> KHz {
        if self.has(Cause::Opp) { max } else { own }
    }
    /// Calls a CPU too small for a task whatever its util, without [`Cause::Margin`], unless it is
    /// the biggest that its affinity allows, or its `uclamp_max` fits there.
    fn task_fits(&self, m: &Machine, task: TaskId, cpu: CpuId, own: Fit) -> Fit {
        let (t, c) = (m.task(task), m.cpu(cpu));
        let by_clamps = || {
            let clamps = t.clamps();
            util_fits_cpu(ALL, clamps.min, clamps.max, c.capacities(), true)
        };
        let too_small = self.has(Cause::Margin)
            && c.capacity < t.max_allowed_capacity
            && by_clamps() != Fit::Fits;
        if too_small { Fit::DoesNotFit } else { own }
    }
    fn uclamp_limits(&self, _: GroupId, own: UclampLimits) -> UclampLimits {
        if self.has(Cause::Clamps) { UclampLimits::default() } else { own }
    }
    fn uclamp_request(&self, real_time: bool, own: Uclamp) -> Uclamp {
        let default = Uclamp::default();
        match (self.has(Cause::Clamps), real_time) {
            (true, true) => Uclamp { min: rt_uclamp_min(None), ..default },
            (true, false) => default,
            (false, _) => own,
        }
    }
}

/// Moves every running task that does not fit its CPU, without [`Cause::Pull`].
pub(crate) fn pull_at_once(simulation: &mut Simulation<'_>) {
    // A CPU that has become idle by it may pull another task down again, which goes up at the
    // next event: at one instant there is an end.
    for _ in 0..simulation.k.m.cpus.len() {
        let Some((task, from, to)) = next_pull(&simulation.k.m, &simulation.without) else {
            return;
        };
        simulation.k.move_queued(task, from, to, Why::Misfit);
        simulation.drain_resched();
    }
}

fn next_pull(m: &Machine, without: &Without) -> Option<(TaskId, CpuId, CpuId)> {
    let cpus = || (0..m.cpus.len() as u32).map(CpuId);
    cpus().filter(|from| m.cpu(*from).misfit_task_load != 0).find_map(|from| {
        let task = m.cpu(from).curr.filter(|t| m.class_of(*t) == Class::Fair)?;
        let t = m.task(task);
        if t.state != State::Runnable || m.task_fits(task, from) == Fit::Fits {
            return None;
        }
        let capacity = |cpu: CpuId| m.cpu(cpu).capacity;
        let preempts = without.stays(task);
        let free = |cpu: &CpuId| m.idle_cpu(*cpu) || preempts;
        let bigger = |cpu: &CpuId| {
            m.is_cpu_allowed(task, *cpu) && capacity(*cpu) > capacity(from) && free(cpu)
        };
        let fits = |cpu: &CpuId| m.task_fits(task, *cpu) == Fit::Fits;
        let busy = |cpu: CpuId| !m.idle_cpu(cpu);
        let smallest =
            || cpus().filter(bigger).filter(fits).min_by_key(|c| (capacity(*c), busy(*c), *c));
        let biggest = || {
            let size = |c: &CpuId| (std::cmp::Reverse(capacity(*c)), busy(*c), *c);
            cpus().filter(bigger).min_by_key(size)
        };
        Some((task, from, smallest().or_else(biggest)?))
    })
}
