//! Deliberately wrong simulators: the yardstick of `verify` is tested with them.
//!
//! Each is the simulator with one mechanism broken in one place. A check that no mutant fails
//! would judge nothing. No experiment runs a mutant unless [`crate::Replay`] asks for it.

use crate::kernel::cpufreq::SUGOV_WORK_NS;
use crate::kernel::governor::schedutil::RATE_LIMIT_US;
use crate::kernel::placement::select_fallback_rq;
use crate::kernel::tunables::{self, BASE_SLICE_NS};
use crate::mech::perf_domain::SCHED_ENERGY_AWARE;
use crate::state::class::Class;
use crate::state::class::{UCLAMP_MAX, UCLAMP_MIN};
use crate::state::group::Groups;
use crate::state::hooks::{Answer, Hooks, Placed, Point, Step};
use crate::state::machine::{Cpu, Machine};
use risetime_kernel::KernelRev;
use risetime_kernel::cfs_rq::CfsRq;
use risetime_kernel::cpu_util::RqUtil;
use risetime_kernel::eevdf::Features;
use risetime_kernel::pelt::Decay;
use risetime_kernel::uclamp::UclampLimits;
use risetime_kernel::units::{Capacity, CpuId, GroupId, Instant, KHz, Span, TaskId, Util};
use risetime_kernel::util_est::UtilEst;
use risetime_model::Experiment;
use risetime_model::workload::{Attr, Policy};
use risetime_trace::Why;
use std::sync::Arc;

/// A fault that a wrong simulator has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// PELT forgets half in 30 periods, not in 32.
    HalfLife30,
    /// The first tick after idle comes one tick late.
    TickOneOff,
    /// DVFS headroom of 1.2, not 1.25.
    Headroom12,
    /// `rate_limit_us` is 0.
    NoRateLimit,
    /// `update_misfit_status` is not called by the tick.
    MisfitAtWakeupOnly,
    /// The PELT clock does not scale with capacity.
    CapacityNotScaled,
    /// The PELT clock does not scale with frequency.
    FrequencyNotScaled,
    /// `util_est` is 0.
    UtilEstNotHeld,
    /// `uclamp_min` and `uclamp_max` of the policy are ignored.
    ClampsIgnored,
    /// A task that migrates arrives with util 0.
    MigrationForgets,
    /// The highest OPP below the wanted frequency, not the lowest above it.
    OppBelow,
    /// No idle CPU is ever kicked to balance.
    NoNohzKick,
    /// A wakeup never preempts.
    NoWakeupPreemption,
    /// The sugov kthread needs 10 ms for a change.
    SlowKthread,
    /// Wakeups do not look at energy.
    NoEnergyAwareness,
    /// An RT wakeup does not preempt a fair task.
    RtWaits,
    /// `scale_rt_capacity` sees no RT or deadline time.
    RtPressureIgnored,
    /// A runnable RT task does not ask for the highest frequency.
    RtAsksNothing,
    /// schedutil does not see the deadline bandwidth.
    RunningBwIgnored,
    /// A deadline task that has used up its budget goes on.
    CbsNeverThrottles,
    /// A deadline task that reclaims is charged for all that it ran.
    NothingReclaimed,
    /// Real-time tasks starve the fair class.
    NoFairServer,
    /// An RT task that cannot run stays where it is.
    RtNeverPushed,
    /// A woken task is placed without its lag (`PLACE_LAG`).
    LagForgotten,
    /// A task that falls asleep leaves the queue at once (`DELAY_DEQUEUE`).
    NoDelayedDequeue,
    /// `base_slice_ns` is twice as long.
    SliceDoubled,
    /// Every fair task has the weight of nice 0.
    NiceIgnored,
    /// Every group has weight 100.
    GroupWeightsIgnored,
    /// The load of a task that joins or leaves a group is not propagated upwards.
    GroupUtilStays,
    /// A group that has used up its quota goes on.
    QuotaIgnored,
    /// Unused quota is not kept.
    BurstIgnored,
    /// CPUs stay online (of the set only events tell it apart, `rpi4/hotplug` outside it).
    HotplugIgnored,
    /// A reschedule that a pick asks for is carried out once more at the next tick.
    FlagClearedBeforePick,
    /// No group is preferred because a task of it has fallen asleep.
    GroupHasNoBuddy,
    /// A turn that a wakeup's accounting ends goes on, and nobody preempts it.
    TurnForgotten,
    /// A wakeup's preemption looks at the policies of groups, not of tasks.
    GroupPolicyDecides,
    /// A task's signals are aged at every wakeup, also where nobody looks at them (`tests/turns.rs`
    /// exposes it).
    SyncedAlways,
    /// A woken fair task runs where it ran before.
    WakesOnPrev,
    /// `select_idle_sibling` takes its target.
    NoIdleSearch,
    /// A new task runs on its parent's CPU.
    ForksStay,
    /// cpuidle's governor learns nothing from sleeps (so far only events tell it apart).
    IdleForgets,
    /// Groups, misfit tasks and failures are balanced in the forms of 6.1 (as well).
    BalancesAs6_1,
    /// Slices of tasks' own do nothing.
    SlicesIgnored,
    /// SCHED_BATCH is SCHED_OTHER.
    BatchIgnored,
    /// SCHED_IDLE is SCHED_OTHER at nice 19.
    IdlePolicyIgnored,
    /// `cpu.idle` of groups does nothing.
    IdleGroupsIgnored,
    /// Clamps of groups do nothing.
    GroupClampsIgnored,
    /// The fair class's deadline server has no bandwidth, which is a floor of the frequency.
    ServerFloorForgotten,
    /// The running task is not protected (`RUN_TO_PARITY`).
    NoParity,
    /// A shorter slice does not break that protection (`PREEMPT_SHORT`).
    ShortSliceWaits,
    /// A task that was dequeued late keeps positive lag (`DELAY_ZERO`).
    LagKept,
    /// CPUs do not look for tasks.
    NeverBalances,
    /// Contention does not raise frequencies: `runnable_avg` counts for nothing.
    RunnableIgnored,
    /// schedutil lowers the frequency of a CPU that has not been idle (`sugov_hold_freq`).
    BusyLowered,
    /// Balancing takes tasks that are cache-hot.
    HotIgnored,
    /// A tick ends no turn.
    TurnsWithoutEnd,
    /// A tick that wakes a CPU counts as an event for cpuidle's governor.
    IdleTicksCount,
}

/// Mutants that `verify` is tested with: mutant, name, one sentence.
pub const MUTANTS: &[(Mutant, &str, &str)] = &[
    (Mutant::HalfLife30, "half-life-30", "PELT forgets half in 30 periods, not in 32"),
    (Mutant::TickOneOff, "tick-one-off", "the first tick after idle comes one tick late"),
    (Mutant::Headroom12, "headroom-1.2", "DVFS headroom of 1.2, not 1.25"),
    (Mutant::NoRateLimit, "no-rate-limit", "rate_limit_us is 0"),
    (Mutant::MisfitAtWakeupOnly, "misfit-at-wakeup", "misfit is not looked for at the tick"),
    (Mutant::CapacityNotScaled, "capacity-not-scaled", "PELT's clock ignores capacity"),
    (Mutant::FrequencyNotScaled, "frequency-not-scaled", "PELT's clock ignores frequency"),
    (Mutant::UtilEstNotHeld, "util_est-not-held", "util_est is 0"),
    (Mutant::ClampsIgnored, "clamps-ignored", "uclamp_min and uclamp_max do nothing"),
    (Mutant::MigrationForgets, "migration-forgets", "a task that migrates arrives with util 0"),
    (Mutant::OppBelow, "opp-below", "the highest OPP below the wanted frequency"),
    (Mutant::NoNohzKick, "no-nohz-kick", "no idle CPU is kicked to balance"),
    (Mutant::NoWakeupPreemption, "no-wakeup-preemption", "a wakeup never preempts"),
    (Mutant::SlowKthread, "slow-kthread", "the sugov kthread needs 10 ms for a change"),
    (Mutant::NoEnergyAwareness, "no-energy-awareness", "wakeups do not look at energy"),
    (Mutant::RtWaits, "rt-waits", "a real-time wakeup does not preempt fair tasks"),
    (Mutant::RtPressureIgnored, "rt-pressure-ignored", "capacity is not less by rt and dl time"),
    (Mutant::RtAsksNothing, "rt-asks-nothing", "rt tasks do not raise the frequency"),
    (Mutant::RunningBwIgnored, "running_bw-ignored", "schedutil does not see running_bw"),
    (Mutant::CbsNeverThrottles, "cbs-never-throttles", "no deadline task is ever throttled"),
    (Mutant::NothingReclaimed, "nothing-reclaimed", "SCHED_FLAG_RECLAIM does nothing"),
    (Mutant::NoFairServer, "no-fair-server", "no dl_server for the fair class"),
    (Mutant::RtNeverPushed, "rt-never-pushed", "waiting rt tasks are neither pushed nor pulled"),
    (Mutant::LagForgotten, "lag-forgotten", "a woken task is placed without its lag"),
    (
        Mutant::NoDelayedDequeue,
        "no-delayed-dequeue",
        "who falls asleep owing service leaves at once",
    ),
    (Mutant::SliceDoubled, "slice-doubled", "base_slice_ns is twice as long"),
    (Mutant::GroupWeightsIgnored, "group-weights-ignored", "every group has weight 100"),
    (Mutant::GroupUtilStays, "group-util-stays", "util that joins a group does not go up"),
    (Mutant::QuotaIgnored, "quota-ignored", "no group is ever throttled"),
    (Mutant::BurstIgnored, "burst-ignored", "unused quota is not kept"),
    (Mutant::ForksStay, "forks-stay", "a new task runs on its parent's CPU"),
];

/// Mutants that figures of real kernels expose (`lab/tests/side_by_side`): what is wrong shows in
/// how often and how long tasks run, some of it only before 7.3.
pub const FIGURE_MUTANTS: &[(Mutant, &str, &str)] = &[
    (Mutant::NiceIgnored, "nice-ignored", "nice values do not change weights"),
    (Mutant::WakesOnPrev, "wakes-on-prev", "a wakeup always takes the previous CPU"),
    (Mutant::NoIdleSearch, "no-idle-search", "no idle CPU is looked for around the target"),
    (
        Mutant::FlagClearedBeforePick,
        "flag-cleared-before-pick",
        "a turn that ends while the next task is picked ends again at the next tick",
    ),
    (
        Mutant::GroupHasNoBuddy,
        "group-has-no-buddy",
        "a group one of whose tasks falls asleep does not come next",
    ),
    (
        Mutant::TurnForgotten,
        "turn-forgotten",
        "a turn that the accounting of a wakeup ends goes on",
    ),
    (
        Mutant::GroupPolicyDecides,
        "group-policy-decides",
        "SCHED_BATCH and SCHED_IDLE tasks in groups preempt, and are, like others",
    ),
];

/// Mutants that decisions of a kernel expose one by one (`verify --mode step`): faults that this
/// simulator had, or a form of one release that it gave to others.
pub const STEP_MUTANTS: &[(Mutant, &str, &str)] = &[
    (Mutant::IdleForgets, "idle-forgets", "cpuidle's governor learns nothing from sleeps"),
    (Mutant::SlicesIgnored, "slices-ignored", "slices of tasks' own do nothing"),
    (Mutant::BatchIgnored, "batch-ignored", "SCHED_BATCH is SCHED_OTHER"),
    (Mutant::IdlePolicyIgnored, "idle-policy-ignored", "SCHED_IDLE is nice 19"),
    (Mutant::IdleGroupsIgnored, "idle-groups-ignored", "cpu.idle does nothing"),
    (Mutant::GroupClampsIgnored, "group-clamps-ignored", "cpu.uclamp.min and max do nothing"),
    (Mutant::ServerFloorForgotten, "server-floor-forgotten", "the dl_server is no floor"),
    (Mutant::NoParity, "no-parity", "RUN_TO_PARITY is off"),
    (Mutant::ShortSliceWaits, "short-slice-waits", "PREEMPT_SHORT is off"),
    (Mutant::LagKept, "lag-kept", "DELAY_ZERO is off"),
    (Mutant::NeverBalances, "never-balances", "nobody looks for tasks to pull"),
    (Mutant::RunnableIgnored, "runnable-ignored", "contention does not raise frequencies"),
    (Mutant::BusyLowered, "busy-lowered", "a CPU that was not idle is slowed down"),
    (Mutant::HotIgnored, "hot-ignored", "no task is cache-hot"),
    (Mutant::TurnsWithoutEnd, "turns-without-end", "a tick ends no turn"),
    (Mutant::IdleTicksCount, "idle-ticks-count", "ticks that wake a CPU count as events"),
];

/// `dl_bw` of the fair class's deadline server: 50 ms of 1 s, of 2²⁰.
const SERVER_BW: u64 = 52_428;

static HALF_LIFE_30: Decay = match Decay::new(30) {
    Some(decay) => decay,
    None => panic!("30 is a half-life"),
};

impl Mutant {
    /// Breaks what the experiment's settings alone can break.
    pub(crate) fn change(self, experiment: &mut Experiment) {
        let rev = experiment.policy.kernel;
        let settings = &mut experiment.settings;
        match self {
            Mutant::NoRateLimit => {
                settings.unset_all(&[RATE_LIMIT_US.0]);
                settings.set(&RATE_LIMIT_US, 0);
            }
            Mutant::ClampsIgnored => {
                settings.unset_all(&[UCLAMP_MIN.0, UCLAMP_MAX.0]);
            }
            Mutant::SlowKthread => {
                let ns = Span::from_ms(10).0 as i64;
                settings.set(&SUGOV_WORK_NS, ns);
            }
            Mutant::NoEnergyAwareness => {
                settings.set(&SCHED_ENERGY_AWARE, 0);
            }
            Mutant::SliceDoubled => {
                let base = experiment.settings.get(&BASE_SLICE_NS);
                let base = base.unwrap_or_else(|| {
                    tunables::of_experiment(experiment).base_slice_ns(rev) as i64
                });
                experiment.settings.set(&BASE_SLICE_NS, 2 * base);
            }
            Mutant::NiceIgnored => {
                let mut workload = (*experiment.workload).clone();
                for task in workload.tasks.iter_mut().chain(&mut workload.forked) {
                    let phases = task.phases.iter_mut().map(|p| &mut p.attr);
                    phases.chain([&mut task.attr]).for_each(|attr| attr.nice = None);
                }
                experiment.workload = Arc::new(workload);
            }
            Mutant::SlicesIgnored | Mutant::BatchIgnored | Mutant::IdlePolicyIgnored => {
                let mut workload = (*experiment.workload).clone();
                for task in workload.tasks.iter_mut().chain(&mut workload.forked) {
                    let phases = task.phases.iter_mut().map(|p| &mut p.attr);
                    phases.chain([&mut task.attr]).for_each(|attr| self.change_attr(attr));
                }
                experiment.workload = Arc::new(workload);
            }
            Mutant::IdleGroupsIgnored => {
                let mut workload = (*experiment.workload).clone();
                workload.groups.iter_mut().for_each(|group| group.idle = false);
                experiment.workload = Arc::new(workload);
            }
            Mutant::GroupWeightsIgnored | Mutant::BurstIgnored => {
                let mut workload = (*experiment.workload).clone();
                for group in &mut workload.groups {
                    if self == Mutant::BurstIgnored {
                        group.burst = Span(0);
                    } else {
                        group.weight = 100;
                    }
                }
                experiment.workload = Arc::new(workload);
            }
            _ => {}
        }
    }

    /// Breaks what is broken from the start of the machine.
    pub(crate) fn prepare(self, m: &mut Machine) {
        match self {
            Mutant::HalfLife30 => m.decay = &HALF_LIFE_30,
            Mutant::LagForgotten => {
                set_features(&mut m.cpus, &mut m.groups, |features| features.place_lag = false);
            }
            Mutant::NoDelayedDequeue => {
                set_features(&mut m.cpus, &mut m.groups, |features| features.delay_dequeue = false);
            }
            Mutant::NoParity => {
                set_features(&mut m.cpus, &mut m.groups, |features| features.run_to_parity = false);
            }
            Mutant::ShortSliceWaits => {
                set_features(&mut m.cpus, &mut m.groups, |features| features.preempt_short = false);
            }
            Mutant::RunnableIgnored => m.slots.series.runnable_boost = false,
            Mutant::LagKept => {
                set_features(&mut m.cpus, &mut m.groups, |features| features.delay_zero = false);
            }
            _ => {}
        }
    }

    /// Changes a task's attributes as the mutant does.
    fn change_attr(self, attr: &mut Attr) {
        attr.policy = match (self, attr.policy.take()) {
            (Mutant::SlicesIgnored, Some(Policy::Other { .. })) => {
                Some(Policy::Other { slice: None })
            }
            (Mutant::SlicesIgnored, Some(Policy::Batch { .. })) => {
                Some(Policy::Batch { slice: None })
            }
            (Mutant::BatchIgnored, Some(Policy::Batch { slice })) => Some(Policy::Other { slice }),
            (Mutant::IdlePolicyIgnored, Some(Policy::Idle)) => {
                attr.nice = Some(19);
                Some(Policy::Other { slice: None })
            }
            (_, policy) => policy,
        };
    }
}

impl Hooks for Mutant {
    fn instead(&self, m: &Machine, point: Point) -> Option<Answer> {
        let skips = |wrong: bool| wrong.then_some(Answer::Yes(false));
        match (*self, point) {
            (Mutant::WakesOnPrev, Point::WakeupFair { task, .. }) => {
                let prev = m.task(task).cpu;
                let allowed = m.is_cpu_allowed(task, prev);
                let cpu = if allowed { prev } else { select_fallback_rq(m, task) };
                Some(Answer::Cpu(Placed { cpu, why: Why::PrevCpu }))
            }
            (Mutant::NoIdleSearch, Point::IdleSibling { target, .. }) => {
                Some(Answer::Cpu(Placed { cpu: target, why: Why::PrevCpu }))
            }
            (Mutant::ForksStay, Point::Fork { task }) if m.class_of(task) == Class::Fair => {
                Some(Answer::Cpu(on_its_cpu(m, task)))
            }
            (Mutant::NoWakeupPreemption, Point::WakeupPreempt { curr, woken, .. }) => {
                let class = |task| m.class_of(task);
                skips(class(curr) == Class::Fair && class(woken) == Class::Fair)
            }
            (Mutant::RtWaits, Point::WakeupPreempt { curr, woken, .. }) => {
                let class = |task| m.class_of(task);
                skips(class(curr) == Class::Fair && class(woken) == Class::Rt)
            }
            (Mutant::NoNohzKick, Point::Kick { .. }) => skips(true),
            (Mutant::TurnsWithoutEnd, Point::TickPreempt { .. }) => skips(true),
            (Mutant::HotIgnored, Point::Move { task, from, .. }) => {
                (m.cpu(from).curr != Some(task)).then_some(Answer::Yes(true))
            }
            (Mutant::NeverBalances, Point::Balance { .. }) => skips(true),
            (Mutant::SyncedAlways, Point::Step(Step::SyncEntityLoadAvg)) => Some(Answer::Yes(true)),
            (_, Point::Step(step)) => skips(self.leaves_out() == Some(step)),
            _ => None,
        }
    }
    fn scale(&self, (capacity, freq): (Capacity, u64)) -> (Capacity, u64) {
        match self {
            Mutant::CapacityNotScaled => (Capacity(1024), freq),
            Mutant::FrequencyNotScaled => (capacity, 1024),
            _ => (capacity, freq),
        }
    }
    fn rq_util(&self, _: CpuId, capacity: bool, mut own: RqUtil) -> RqUtil {
        match self {
            Mutant::RunningBwIgnored => own.dl_running_bw = 0,
            Mutant::RtAsksNothing => own.rt_runnable = false,
            Mutant::ServerFloorForgotten => {
                own.dl_running_bw = own.dl_running_bw.saturating_sub(SERVER_BW);
            }
            Mutant::RtPressureIgnored if capacity => (own.rt, own.dl) = (Util(0), Util(0)),
            _ => {}
        }
        own
    }
    /// `headroom-1.2`: 1.25 · 24/25.
    fn effective_util(&self, own: Util) -> Util {
        if *self == Mutant::Headroom12 { Util(own.0 * 24 / 25) } else { own }
    }
    /// `opp-below`.
    fn resolve_freq(&self, m: &Machine, domain: usize, wanted: KHz, own: KHz) -> KHz {
        if *self != Mutant::OppBelow {
            return own;
        }
        let table = &m.domains[domain].table;
        let below = table.iter().rev().find(|e| e.freq <= wanted);
        below.or(table.first()).map_or(wanted, |e| e.freq)
    }
    fn util_est(&self) -> Option<UtilEst> {
        (*self == Mutant::UtilEstNotHeld).then(UtilEst::default)
    }
    fn first_tick(&self, m: &Machine, own: Instant) -> Instant {
        if *self == Mutant::TickOneOff { own + m.tick } else { own }
    }
    fn uclamp_limits(&self, _: GroupId, own: UclampLimits) -> UclampLimits {
        if *self == Mutant::GroupClampsIgnored { UclampLimits { group: None, ..own } } else { own }
    }
    fn balance_rev(&self, own: KernelRev) -> KernelRev {
        if *self == Mutant::BalancesAs6_1 { KernelRev::V6_1 } else { own }
    }
}

impl Mutant {
    /// The step that it does not go through.
    fn leaves_out(self) -> Option<Step> {
        Some(match self {
            Mutant::MisfitAtWakeupOnly => Step::MisfitAtTick,
            Mutant::MigrationForgets => Step::SignalsMigrate,
            Mutant::RtNeverPushed => Step::PushRt,
            Mutant::NoFairServer => Step::FairServer,
            Mutant::CbsNeverThrottles => Step::ThrottleDl,
            Mutant::NothingReclaimed => Step::GrubReclaim,
            Mutant::GroupUtilStays => Step::Propagate,
            Mutant::QuotaIgnored => Step::ThrottleCfsRq,
            Mutant::HotplugIgnored => Step::Hotplug,
            Mutant::FlagClearedBeforePick => Step::ClearNeedResched,
            Mutant::GroupHasNoBuddy => Step::NextBuddyOfGroup,
            Mutant::TurnForgotten => Step::TurnEndsAtWakeup,
            Mutant::GroupPolicyDecides => Step::TaskPolicyPreempts,
            Mutant::IdleForgets => Step::IdleLearns,
            Mutant::BusyLowered => Step::HoldFreq,
            Mutant::IdleTicksCount => Step::TickWakeup,
            _ => return None,
        })
    }
}

/// `task` where it is, or on the lowest CPU that it may use.
fn on_its_cpu(m: &Machine, task: TaskId) -> Placed {
    let t = m.task(task);
    match t.allowed.lowest() {
        Some(cpu) if !t.allowed.contains(t.cpu) => Placed { cpu, why: Why::Affinity },
        _ => Placed { cpu: t.cpu, why: Why::PrevCpu },
    }
}

/// Changes the switches of every fair queue.
fn set_features(cpus: &mut [Cpu], groups: &mut Groups, change: fn(&mut Features)) {
    let groups = groups.list.iter_mut().flat_map(|g| g.rq.iter_mut().map(|rq| &mut rq.cfs));
    for queue in cpus.iter_mut().map(|c| &mut c.cfs).chain(groups) {
        if let CfsRq::Eevdf(queue) = queue {
            queue.set_features(change);
        }
    }
}
