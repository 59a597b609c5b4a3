//! The table of releases: one row per behaviour in which they differ.
//!
//! Code asks `rev.has(features::DELAY_DEQUEUE)`; no release is compared anywhere else (a wall sees
//! to it). Where an older kernel did something else, the older form stands beside the newer one
//! with a suffix that says until when (`_pre_6_12`). A name is the kernel's own where it has one:
//! that of a switch, a function or a field. Two behaviours that came with one release are two rows.
//! `docs/releases.md` is made of these rows.

use crate::KernelRev;
use core::fmt;

/// Releases that have a behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// The first release that has it.
    pub first: KernelRev,
    /// The last one; `None`: it is there still.
    pub last: Option<KernelRev>,
    /// Older releases whose stable series took it back: one of those means the last form of its
    /// series.
    pub stable: &'static [KernelRev],
}

impl KernelRev {
    /// Whether this release behaves so.
    #[inline(always)]
    pub const fn has(self, feature: Feature) -> bool {
        let number = self.number();
        let ended = match feature.last {
            Some(last) => number > last.number(),
            None => false,
        };
        let mut has = number >= feature.first.number() && !ended;
        let mut i = 0;
        while i < feature.stable.len() {
            has |= number == feature.stable[i].number();
            i += 1;
        }
        has
    }
}

/// Says which releases those are: `from 6.12 on`, `up to 6.5`, `from 5.13 to 6.5`.
impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.first >= KernelRev::OLDEST, self.last) {
            (true, None) => write!(f, "from {} on", self.first),
            (true, Some(last)) => write!(f, "from {} to {last}", self.first),
            (false, None) => f.write_str("of every release"),
            (false, Some(last)) => write!(f, "up to {last}"),
        }
    }
}

/// Source of what is known of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Read in that kernel's C, on either side of the change or at least after it.
    C,
    /// Asked of a running kernel.
    Asked,
    /// Read in the commit, or in what was written about it.
    Read,
    /// Remembered of the commit, and not looked up.
    Memory,
}

/// A row of the table: a behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Name of its constant.
    pub name: &'static str,
    /// Releases that have it.
    pub feature: Feature,
    /// Source of that.
    pub known: Known,
    /// Difference to other releases, in one sentence.
    pub differs: &'static str,
}

/// A part of the table: behaviours of one mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// Name of the mechanism.
    pub title: &'static str,
    /// The behaviours.
    pub rows: &'static [Row],
}

pub(crate) const fn since(major: u16, minor: u16) -> Feature {
    Feature { first: KernelRev::new(major, minor), last: None, stable: &[] }
}

/// Older than every release that a policy may name.
pub(crate) const ALWAYS: Feature = since(0, 0);

impl Feature {
    pub(crate) const fn until(self, major: u16, minor: u16) -> Feature {
        Feature { last: Some(KernelRev::new(major, minor)), ..self }
    }
    const fn stable(self, stable: &'static [KernelRev]) -> Feature {
        Feature { stable, ..self }
    }
}

/// The long-term releases, whose stable maintainers took a fix back to all of them.
///
/// `DEVIATES(stable-fixes)`: what a stable series took back from later releases is known of 6.1.176
/// and 6.12.117, the kernels that this is held to. 6.6 and 6.18 are taken to have what the latter
/// has, and 6.11, which has ended, to lack what 6.8 lacks. 6.1.192 has what 6.1.176 lacks. It
/// decides about forks of tasks bound to few CPUs, and about small CPUs beside full big ones.
const LONG_TERM: &[KernelRev] =
    &[KernelRev::new(6, 1), KernelRev::new(6, 6), KernelRev::new(6, 12), KernelRev::new(6, 18)];
/// The long-term releases that have a fix which 6.1 took back only after 6.1.176.
const BUT_6_1: &[KernelRev] = &[KernelRev::new(6, 6), KernelRev::new(6, 12), KernelRev::new(6, 18)];

/// Releases whose stable series got in May 2025 what 6.15 brought; those between them had ended.
const UNTIL_MAY_2025: &[KernelRev] =
    &[KernelRev::new(6, 6), KernelRev::new(6, 12), KernelRev::new(6, 14)];

macro_rules! features {
    ($($title:literal { $($name:ident: $feature:expr, $known:ident, $differs:literal;)+ })+) => {
        $($(
            #[doc = $differs]
            pub const $name: Feature = $feature;
        )+)+

        /// Every behaviour, by mechanism.
        pub const TABLE: &[Section] = &[$(Section {
            title: $title,
            rows: &[$(Row {
                name: stringify!($name),
                feature: $name,
                known: Known::$known,
                differs: $differs,
            }),+],
        }),+];
    };
}

features! {
    "Fair class" {
        EEVDF: since(6, 6), C,
            "The earliest eligible virtual deadline runs, with a base slice; before, CFS: the \
             smallest vruntime.";
        SCHED_IDLE_ENTITIES: since(5, 15), Read,
            "CFS tells idle entities, groups too, from others on every level: less credit for \
             sleep, shorter slices.";
        ALT_PERIOD: since(5, 13), Read,
            "The period of a group's CFS queue counts the tasks of the whole CPU.";
        BASE_SLICE: since(5, 13), Read,
            "Slices of CFS are not shorter than the minimal granularity.";
        CLEAR_BUDDIES_ON_CHANGE: since(5, 14), Read,
            "Only a pick that changes the running entity of CFS forgets its buddies; before, every \
             pick.";
        CALC_DELTA_FAIR: since(7, 2), C,
            "Virtual time is a division by the weight; before, a product with the weight's 32-bit \
             inverse.";
        BASE_SLICE_700US: since(6, 15).stable(UNTIL_MAY_2025), Read,
            "The base slice of one CPU is 0.7 ms; before, 0.75 ms.";
        CUSTOM_SLICE: since(6, 12), C,
            "A task has a slice of its own (sched_runtime of sched_setattr).";
        CFS_RQ_MIN_SLICE: since(6, 12), C,
            "A group's entity asks for the shortest slice among those queued in it.";
        DELAY_DEQUEUE: since(6, 12), C,
            "A task that falls asleep owing service stays queued until that is paid off.";
        DELAY_ZERO: since(6, 12), C,
            "A task whose dequeue was delayed keeps no positive lag.";
        PLACE_REL_DEADLINE: since(6, 12), C,
            "A deadline keeps its distance across migration and renice.";
        PLACE_DEADLINE_INITIAL: since(6, 12), C,
            "A new task's first deadline is half a slice away; before, it was placed twice, the \
             second time with all of it.";
        PREEMPT_SHORT: since(6, 12), C,
            "A woken entity with a shorter slice breaks the protection of the running one.";
        DID_PREEMPT_SHORT: since(6, 12).until(7, 1), C,
            "Under PREEMPT_SHORT, the turn of an entity that is neither protected nor eligible \
             ends at an update.";
        PICK_BUDDY: since(6, 12), C,
            "A group one of whose tasks fell asleep is picked next, if eligible.";
        ZERO_VRUNTIME: since(6, 12), C,
            "The queue's origin of virtual time moves to the average with each look at that; \
             before, it was min_vruntime, which never goes back.";
        WAKEUP_BY_ENTITY: since(6, 12), C,
            "SCHED_IDLE and SCHED_BATCH count in a wakeup's preemption for the entities that \
             compete; before, the policies of the two tasks decided first.";
        CANCEL_PROTECT_SLICE: since(6, 12), C,
            "An idle entity that is preempted by one that is not loses its protection.";
        YIELD_TASK_FAIR: since(6, 12), C,
            "sched_yield() takes an eligible task to its deadline; before, it put the deadline off \
             by a slice.";
        FINISH_DELAYED_DEQUEUE: since(6, 12).until(7, 1), C,
            "DELAY_ZERO takes positive lag away when a delayed dequeue is completed.";
        UPDATE_ENTITY_LAG: since(7, 2), C,
            "The lag of a delayed entity is updated where it is put off and woken: it may burn \
             what it owes, never gather more.";
        VPROT: since(7, 2), C,
            "The running entity is protected up to a vruntime (vprot), RUN_TO_PARITY or not; \
             before, while its lag field holds its deadline.";
        AVG_VRUNTIME_WEIGHT: since(7, 2), C,
            "Weights count in the average vruntime with their fixed-point bits.";
        VRUNTIME_ELIGIBLE_WIDE: since(7, 2), C,
            "Eligibility is tested with a product that does not wrap at 64 bits.";
        CFS_RQ_MAX_SLICE: since(7, 2), C,
            "Lag is bounded by the longest slice in the queue and a tick; before, by two slices of \
             one's own, or a tick.";
        PLACE_ZERO_LAG: since(7, 2), C,
            "An entity without lag is placed at the average without looking at weights.";
        PLACE_HEAVY: since(7, 2), C,
            "The queue's origin of virtual time goes along with an entity that is heavier than all \
             others.";
        RESCALE_REL_DEADLINE: since(7, 2), C,
            "A new weight of a sleeping task scales its relative deadline, too.";
        REWEIGHT_ENTITY: since(7, 2), C,
            "A new weight of a queued entity keeps its lag, deadline and protection as service; \
             before, reweight_eevdf computed vruntime and deadline anew.";
        WAKEUP_PREEMPT_FAIR: since(7, 2), C,
            "A woken entity that is not picked shortens the running one's protection, and one with \
             a shorter slice is tried without it.";
        PREEMPT_WHEN_DUE: since(7, 3), Asked,
            "Under PREEMPT_SHORT, a wakeup is decided also where the running task is to go \
             already.";
        WAKEUP_PREEMPT_NEXT: since(7, 3), Asked,
            "A woken entity that asks for shorter slices and is eligible comes next, whoever would \
             be picked.";
        PROTECT_WHILE_ELIGIBLE: since(7, 3), Asked,
            "A shorter slice in the queue protects the running entity no longer than it is \
             eligible.";
        LAG_INFLATION: since(7, 3), Asked,
            "The lag with which an entity is placed is scaled in two terms: it wraps later, and \
             rounds otherwise.";
        FLAT_QUEUE: since(7, 3), Asked,
            "The tasks of all groups compete in one queue; before, each group has a queue, and an \
             entity in the queue above.";
        CONCUR_SHARES: since(7, 3), Asked,
            "A group's weight grows with how many of its tasks run at once, and what is runnable \
             is told with its load.";
        UPDATE_TG_LOAD_AVG_RATE: since(6, 7), Read,
            "A CPU tells a group its load at most once in a millisecond.";
        SWITCHED_FROM_FIRST: since(6, 19), Read,
            "A task that changes its class has left the old one before it is in the new one \
             (sched_change_begin); before, switched_from came last.";
        SCHED_CHANGE_END: since(7, 0), C,
            "A task that rises to a real-time policy while it runs is asked for its CPU at once; \
             before, it went on to the next tick.";
    }
    "Load tracking" {
        PELT_PROPAGATE: since(4, 10), Read,
            "The util of a task that joins or leaves a group on a CPU reaches the CPU at once.";
        PELT_REMAINDER: since(4, 12), Read,
            "The part of a time below 1024 ns is kept for load tracking's next update; before, it \
             was lost.";
        PELT_DIVIDER: since(4, 13), Read,
            "Averages count of the period under way what has passed; before, all of it.";
        UTIL_EST: since(4, 17), Read,
            "The util that a task had when it fell asleep is remembered.";
        NOHZ_STATS: since(4, 17), Read,
            "Load that sleeping tasks left on idle CPUs is aged by others; before, only when a CPU \
             balanced for them.";
        RT_PELT: since(4, 19), Read,
            "The share of real-time and deadline tasks and interrupts is util that fades; before, \
             a mean that did not reach the frequency.";
        PELT_INVARIANCE: since(5, 1), Read,
            "A slow CPU or frequency scales the time that load tracking counts; before, what that \
             time adds.";
        UTIL_EST_RUNNABLE: since(6, 8), C,
            "A task that had to wait keeps its util_est: its sample is too low.";
        UTIL_EST_CAPACITY: ALWAYS.until(7, 1), C,
            "A sample above the CPU's capacity does not lower util_est.";
        UTIL_EST_SAMPLE_FIRST: since(6, 12).until(7, 1), C,
            "util_est samples before the dequeue updates util; before and after those releases, \
             when it has.";
        UPDATE_SA: since(7, 2), C,
            "The lower bound of a leaving entity's sums is computed in 64 bits; before, in 32.";
        POST_INIT_ENTITY_UTIL_AVG: since(6, 10), C,
            "A new task's util is its share by weight; before, with the weight's fixed-point bits, \
             nearly always half of what is left.";
        IDLE_TIME_BY_TICKS: since(7, 2), Asked,
            "Idle time is counted in ticks while they come; before, from clock readings.";
    }
    "Frequencies" {
        OD_CLOSEST: since(3, 17), Read,
            "ondemand scales from the lowest frequency on and takes the closest; before, in \
             proportion from 0 on.";
        DBS_COPY_LOAD: since(3, 16), Read,
            "ondemand and conservative carry their load over a sleep; before, it was computed over \
             all of it.";
        DBS_UTIL_HOOK: since(4, 6), Read,
            "Sampling governors look at updates of the scheduler; before, by a timer.";
        DBS_SAMPLING_RATE: since(4, 14), Read,
            "The least sampling rate is two ticks, and less is refused; before, 10 ms, or 20 ticks \
             under conservative, and less is as much.";
        CS_LOW_DOWN_THRESHOLD: since(4, 12), Memory,
            "conservative takes a down_threshold below 11; before, it refused it.";
        DBS_IDLE_PERIODS: since(4, 18), Read,
            "Idle time alone counts as a sleep for sampling governors; before, all time since the \
             last look.";
        CS_DEFERRED: since(4, 10), Read,
            "conservative makes up for steps that a sleep put off.";
        CS_DEFERRED_ONLY_BELOW: since(7, 3).stable(&[KernelRev::new(6, 12)]), C,
            "conservative makes up for steps that a sleep put off only where the sample itself is \
             below down_threshold.";
        SCHEDUTIL: since(4, 7), Read,
            "There is schedutil.";
        SUGOV_KTHREAD: since(4, 10), Read,
            "A real-time thread of its own changes frequencies for schedutil; before, a kworker.";
        SUGOV_DL: since(4, 16), Read,
            "schedutil's thread is a special deadline task; before, one of SCHED_FIFO, priority \
             50.";
        SUGOV_ANY_CPU: since(7, 0), Asked,
            "schedutil's thread may run on any CPU; before, on those whose frequency it changes.";
        SUGOV_HOLD_FREQ: since(4, 12), Read,
            "schedutil does not lower the frequency of a CPU that has not been idle since its last \
             look.";
        SUGOV_NEXT_FREQ_SHARED: since(4, 17), Read,
            "schedutil asks every CPU of a policy anew at each look; before, each as of its own \
             last one, and a task above the fair class got the highest frequency.";
        RT_RQ_CPUFREQ: since(4, 17), Read,
            "cpufreq hears of changes of the real-time queue; before, of the time that its tasks \
             have run.";
        DL_RUNNING_BW: since(4, 16), Read,
            "Frequencies go by what active deadline tasks are promised; before, one that runs gets \
             the highest.";
        UCLAMP_BOOST: since(5, 18), Read,
            "Clamps reach schedutil's iowait boost and its hold of a busy CPU's frequency.";
        SUGOV_EFFECTIVE_CPU_PERF: since(6, 8), C,
            "Util, least and most stay side by side up to schedutil, which adds headroom before \
             the clamps; before, one number was clamped and got headroom afterwards.";
        ARCH_SCALE_FREQ_REF: since(6, 8), C,
            "The frequency that capacity belongs to is known by itself; before, it was the highest \
             of the policy, boosts included.";
        TRANSITION_DELAY_10MS: since(4, 14), Read,
            "The default rate limit is at most 10 ms.";
        TRANSITION_DELAY_2MS: since(6, 9), C,
            "The default rate limit is at most 2 ms, or the latency where that is longer.";
        TRANSITION_DELAY_HALF: since(6, 12), C,
            "The default rate limit is one and a half latencies; before, a thousand of them within \
             limits.";
        CPUFREQ_RELATION_E: since(5, 16), Read,
            "cpufreq skips OPPs that the energy model flags as inefficient.";
        ADJUST_PERF: since(5, 11), Memory,
            "schedutil hands util to drivers that take it (adjust_perf): intel_pstate with HWP, in \
             passive mode.";
        ADJUST_PERF_MAX: since(7, 3), C,
            "adjust_perf hands over the upper clamp, too; intel_pstate keeps to it, amd-pstate does \
             not.";
        INTEL_PSTATE_PASSIVE_HWP: since(5, 9), Memory,
            "intel_pstate has HWP in its passive mode, too.";
        INTEL_PSTATE_NO_HWP_PASSIVE: since(5, 8), Memory,
            "intel_pstate starts in passive mode without HWP; before, in active mode.";
        AMD_PSTATE: since(5, 17), Memory,
            "There is amd-pstate, with its mode passive.";
        AMD_PSTATE_EPP: since(6, 3), Memory,
            "amd-pstate has the mode active, in which the hardware decides by \
             energy_performance_preference.";
        AMD_PSTATE_ACTIVE: since(6, 5), Memory,
            "amd-pstate is in its mode active unless another is asked for.";
        AMD_PSTATE_MIN_NONLINEAR: since(6, 14), Memory,
            "amd-pstate's lower limit is the lowest nonlinear frequency, unless another is asked for; \
             before, the lowest.";
        AMD_PSTATE_GUIDED: since(6, 4), Memory,
            "amd-pstate has the mode guided, in which the hardware chooses above what is asked for.";
        AMD_PSTATE_LIMITS: since(6, 8), Memory,
            "amd-pstate's requests keep to the policy's limits; before, to what the CPU can.";
        AMD_PSTATE_NO_BOOST: since(6, 11), Memory,
            "amd-pstate asks for no more than the nominal level where boost is not supported.";
        AMD_PSTATE_NOMINAL: since(6, 15), Memory,
            "amd-pstate's levels follow from the nominal frequency, rounded up, and the floor is the \
             policy's limit; before, from the highest, to nearest, and the lowest nonlinear level.";
        AMD_PSTATE_NO_BOOST_FIRST: since(7, 1), Read,
            "amd-pstate's desired level is within the nominal one where boost is not supported; \
             before, at least in 6.12, it could be above the most that was asked for.";
    }
    "Energy and capacity" {
        EAS: since(5, 0), Read,
            "There is energy-aware placement, only under schedutil; before, Android's kernels \
             alone had it, under any governor.";
        EAS_INVARIANCE: since(5, 11), Read,
            "EAS wants util that is frequency-invariant.";
        EM_MICROWATTS: since(6, 0), Read,
            "Power in the energy model is in µW; before, in mW.";
        FEEC_ANY_SAVING: since(6, 0), Read,
            "A move for energy has to save anything at all; before, a sixteenth.";
        EM_ANY_COMPLEXITY: since(6, 7), C,
            "EAS has no limit of complexity (EM_MAX_COMPLEXITY).";
        EM_PERFORMANCE: since(6, 9), C,
            "The energy model has a performance for each state, by which costs and states are \
             found, and can be made anew; before, by frequency, with the capacity of the moment.";
        CPPC_EM: since(5, 19), Read,
            "cppc_cpufreq has an artificial energy model.";
        HYBRID_EM: since(6, 16), Read,
            "intel_pstate has an artificial energy model on hybrid processors.";
        CPU_UTIL_BOOST: since(6, 12), C,
            "Runnable boosting takes the larger of util and contention once the woken task is \
             counted; before, first, and the task's util was added to that.";
        RUNNABLE_BOOST: since(6, 5), Read,
            "Frequencies follow how much is runnable where that is more than util.";
        UCLAMP: since(5, 3), Read,
            "Tasks can be clamped (util_min, util_max).";
        MISFIT: since(4, 20), Read,
            "A task that is too big for its CPU is pulled to a bigger one.";
        MAX_ALLOWED_CAPACITY: since(6, 10), C,
            "A task is no misfit on the biggest CPU that it may use.";
        CHECK_MISFIT_STATUS: since(6, 10), C,
            "A misfit task is a reason to balance wherever it is; before, only where a bigger CPU \
             is online, or its own has lost capacity.";
        GET_ACTUAL_CPU_CAPACITY: since(6, 10), C,
            "Pressure is taken off a CPU's capacity before the share of other classes; before, it \
             counted like real-time work, and EAS took the number of the moment.";
        CPUFREQ_PRESSURE: since(6, 10), C,
            "A lowered frequency limit is heard at once as cpufreq pressure; before, a thermal one \
             as an average, another not at all, and who wrote last was right.";
        THERMAL_PRESSURE: since(5, 7), Read,
            "The scheduler hears of caps at all.";
        THERMAL_THRESHOLDS: since(6, 12), C,
            "Thermal governors go by a threshold that follows a trip's hysteresis; before, by its \
             temperature alone.";
    }
    "Choice of a CPU" {
        RECENT_USED_CPU: since(4, 16), Read,
            "A CPU that a task used lately is a candidate where it wakes.";
        TTWU_QUEUE_IDLE: since(6, 0), Read,
            "A waker leaves queueing on an idle CPU to that CPU, under the same cache, too.";
        CLUSTER: since(6, 7), C,
            "Wakeups know who shares an L2.";
        SCHED_IDLE_NOT_FOR_IDLE: since(7, 1), Read,
            "A CPU with SCHED_IDLE tasks alone counts as idle for others than those.";
        ASYM_CORE_IDLE: since(7, 2), C,
            "On unequal CPUs a task fits only on a core without other work.";
        SELECT_IDLE_CAPACITY_CORE: since(7, 2), C,
            "A search for an idle CPU of enough capacity prefers idle cores.";
        SELECT_IDLE_CAPACITY_LIMIT: since(7, 2), C,
            "A search among unequal CPUs ends after as many as idle time allows; before, every CPU \
             was looked at.";
        SD_BALANCE_SHARED_ASYM: since(7, 2), C,
            "Knowledge of idle CPUs is kept with the domain of all capacities; before, with the \
             cache.";
        FORK_ALLOWED: since(6, 19).stable(BUT_6_1), C,
            "A fork counts only CPUs that the task may use.";
        AFFINITY_ANY_DISTRIBUTE: since(5, 7), Memory,
            "A new affinity takes its CPUs in turns (cpumask_any_and_distribute); before, the \
             first one.";
        RT_ANY_DISTRIBUTE: since(5, 11), Memory,
            "Pushing real-time tasks takes equal CPUs in turns (cpumask_any_and_distribute); \
             before, the first one.";
    }
    "Balancing" {
        PREFER_SIBLING_BUSIEST: since(6, 5), C,
            "Tasks spread if the busiest group says so; before, if the own domain below does.";
        FULLY_BUSY_LAST: since(6, 5), C,
            "Of several full groups the last is the busiest; before, the first.";
        SMT_BALANCE: since(6, 6), C,
            "Two busy threads of a core are a kind of group.";
        SIBLING_IMBALANCE: since(6, 6), C,
            "Excess tasks count per core, and only idle CPUs even them out.";
        SMT_VS_NONSMT_GROUPS: since(6, 6), C,
            "Between a core with threads and one without, spare room alone does not decide.";
        SHOULD_WE_BALANCE_CORE: since(6, 6), C,
            "A CPU of an idle core is the first in charge of balancing for its group.";
        MISFIT_FIRST: since(6, 9), C,
            "Of groups whose misfit tasks weigh the same the first is the busiest; before, the \
             last.";
        MIGRATE_MISFIT_FORGIVEN: since(6, 10), C,
            "A misfit task that could not be moved does not count as a failure of balancing.";
        DETACH_LOOP_MAX: since(6, 11).stable(LONG_TERM), C,
            "A look at 32 pinned tasks is given up; before, not until a task might come.";
        H_NR_RUNNABLE: since(6, 14), Read,
            "Tasks whose dequeue is delayed do not count as queued.";
        DELAYED_MOVES_AS_LOAD: since(6, 14), Read,
            "A task that sleeps with its dequeue delayed is moved as load only; before, for whatever \
             reason.";
        NI_RANDOM: since(6, 19).stable(LONG_TERM), Asked,
            "Newidle balancing throws dice about looking for work.";
        NI_RATE: since(7, 2), C,
            "How rarely a CPU looks counts for the dice.";
        DST_CORE_IDLE: since(7, 2).stable(BUT_6_1), C,
            "No misfit task is pulled for a thread beside a busy one.";
        BIGGER_GROUP_FULL: since(7, 2).stable(BUT_6_1), C,
            "Full groups of bigger CPUs are left alone before their kind is compared.";
        GROUP_OVERUTILIZED: since(7, 2), C,
            "With EAS on, only a group with an overutilized CPU can be overloaded.";
        TASK_IS_INELIGIBLE: since(7, 2), C,
            "A task that has had its share stays where it is (task_is_ineligible_on_dst_cpu).";
        SCHED_CACHE: since(7, 2), C,
            "Tasks of a process gather under one cache.";
        PREFER_SIBLING_ASYM: since(7, 3), C,
            "Siblings are preferred also below unequal capacities.";
        MISFIT_HELPED: since(7, 3), C,
            "A misfit task counts only where the looking CPU is bigger.";
        FIND_NEW_ILB_CORE: since(7, 3), C,
            "An idle CPU of an idle core is kicked first to balance for others.";
        ONLY_TASK_GIVEN: since(7, 3), C,
            "A thread beside a busy one, or a like CPU around another L2, gives its only task.";
    }
    "Real-time and deadline tasks" {
        RT_BANDWIDTH: ALWAYS.until(6, 11), C,
            "Real-time tasks of a CPU use up a runtime and are throttled.";
        FAIR_SERVER: since(6, 12), C,
            "Fair tasks have a deadline server on each CPU.";
        DL_DEFER_IDLE: since(7, 2), C,
            "The server of an idle CPU lapses by itself.";
        DL_SERVER_LATE_PERIOD: since(7, 2), C,
            "A server whose next period is past already begins a new one and waits; before, it was \
             replenished and queued.";
        RT_RUNTIME_WHOLE: since(7, 2), Asked,
            "Servers and deadline tasks may reserve a whole CPU (sched_rt_runtime_us is 1 s); \
             before, 95 % of it.";
        RT_TASK_NO_DL: since(6, 12), C,
            "rt_task() says no of deadline tasks.";
        GRUB_RECLAIM: since(6, 5), C,
            "The 5 % of a CPU that may not be reserved are not charged to tasks that reclaim.";
        DL_PUSHABLE_OVERLOADED: since(6, 7), Read,
            "A pushable deadline task makes its CPU overloaded; before, two tasks did.";
        DL_REBUILD: since(5, 4), Memory,
            "Reservations of deadline tasks are counted again when sched domains are built anew.";
        DL_REBUILD_SERVER: since(6, 13), Memory,
            "The fair class's servers are counted again with DL_REBUILD.";
        DL_REBUILD_RIGHT: since(6, 15), Asked,
            "DL_REBUILD leaves reservations as they were, and does not count schedutil's threads.";
    }
    "Quota" {
        TASK_THROTTLE: since(6, 18), C,
            "Tasks wait one by one for their group's quota; before, the group as a whole.";
        THROTTLE_TIME_QUEUED: since(6, 6), Read,
            "Time of a throttled group counts from then on only where it has a task.";
    }
    "Idle states" {
        TICK_AFTER_SELECT: since(4, 17), Read,
            "The tick stops if the idle governor says so; before, upfront, unless the next timer \
             was near.";
        SINGLE_STATE_STOPS_TICK: since(6, 6).until(6, 11), C,
            "A CPU with one idle state stops its tick at once; before and after those releases, \
             only when that has just ended a sleep.";
        MENU_TIMER_IF_WORTH: since(6, 6), C,
            "menu asks for the next timer only where typical sleeps are worth it.";
        MENU_NO_LENGTH: since(6, 6), C,
            "Eight sleeps of no length tell menu nothing; before, it expected another.";
        MENU_NO_INTERACTIVITY: since(6, 12), C,
            "menu does not hold exit latencies against the predicted sleep.";
        MENU_STOPPED_ASKS: since(6, 12), C,
            "menu asks for the next timer wherever the tick is stopped (mainline from 7.0 on, the \
             stable series of 6.12 before).";
        GET_TYPICAL_INTERVAL: since(6, 15), Read,
            "menu leaves out outliers at either end; before, long sleeps only.";
        SAFE_TIMER_RANGE_NS: since(7, 1), C,
            "menu waits for a near timer in a shallow state, tick stopped or not.";
        TEO_DEEPEST_FIRST: since(6, 6), C,
            "teo begins with the deepest state and asks for the next timer only where the \
             candidate may be deep.";
        TEO_TICK_HITS: since(6, 6), C,
            "teo counts sleeps of a tick or more where every state pays off in less.";
        TEO_UTIL: since(6, 6).until(6, 10), C,
            "teo takes a state one shallower on a CPU with util (mainline from 6.3 on).";
        TEO_RECENT: ALWAYS.until(6, 10), C,
            "Recent intercepts count for teo by themselves.";
        TEO_TIMER_AT_SHALLOWEST: since(6, 11), C,
            "teo asks for the next timer also for the shallowest state, to tell hits from \
             intercepts.";
        TEO_ANY_SHALLOWER: since(6, 11), C,
            "teo takes a shallower state that pays off until the timer even where the tick is \
             stopped.";
        TEO_TICK_INTERCEPTS: since(7, 1), C,
            "teo has the form of 7.1: the tick goes on if two thirds of all sleeps ended within \
             one.";
    }
    "Preemption" {
        PREEMPT_LAZY: since(7, 0), Asked,
            "A fair task is preempted at the next tick (lazy) unless somebody says otherwise; \
             before, at once.";
        PREEMPT_TOLD: since(6, 18), Asked,
            "A virtual machine's kernel says its preemption model; before, it is taken as \
             voluntary.";
    }
    "Known only by figures that the simulator misses" {
        RT_NAPS_LOCK_IN: since(7, 2), Asked,
            "Naps of real-time tasks that share a CPU lock into the tick.";
    }
    "What a running kernel tells" {
        IDLE_TYPE_NOT_IDLE_FIRST: since(6, 10), C,
            "enum cpu_idle_type begins with CPU_NOT_IDLE; before, with CPU_IDLE.";
        RETURN_PROBE_ARGS: since(6, 9), Asked,
            "A probe at a function's return can read its arguments.";
        TRACEPOINT_PROBES: since(6, 14), Asked,
            "On arm64 probes can stand on tracepoints, so that an ordinary run shows the \
             scheduler's signals.";
        SCHED_SET_NEED_RESCHED_TP: since(6, 17), Asked,
            "need_resched has a tracepoint.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixes_are_in_long_term_kernels_and_from_their_release_on() {
        let with: [KernelRev; 5] = [
            KernelRev::V6_1,
            KernelRev::V6_6,
            KernelRev::V6_12,
            KernelRev::new(6, 18),
            KernelRev::V7_2,
        ];
        assert!(with.iter().all(|rev| rev.has(NI_RANDOM)));
        assert!(with[1..].iter().all(|rev| rev.has(FORK_ALLOWED)));
        let without = [KernelRev::V6_5, KernelRev::V6_8, KernelRev::new(6, 11)];
        assert!(!without.iter().any(|rev| rev.has(NI_RANDOM)));
        assert!(!without.iter().chain(&with[..1]).any(|rev| rev.has(FORK_ALLOWED)));
    }

    #[test]
    fn a_behaviour_is_there_from_its_first_release_to_its_last() {
        let has = |feature| {
            [(6, 11), (6, 12), (7, 1), (7, 2)].map(|(a, b)| KernelRev::new(a, b).has(feature))
        };
        assert_eq!(has(DELAY_DEQUEUE), [false, true, true, true]);
        assert_eq!(has(UTIL_EST_SAMPLE_FIRST), [false, true, true, false]);
        assert_eq!(has(RT_BANDWIDTH), [true, false, false, false]);
        assert_eq!(has(CS_DEFERRED_ONLY_BELOW), [false, true, false, false]);
    }

    #[test]
    fn rows_have_names_of_their_own_and_a_sentence_each() {
        let rows = || TABLE.iter().flat_map(|section| section.rows);
        for (i, row) in rows().enumerate() {
            assert!(rows().take(i).all(|other| other.name != row.name), "{}", row.name);
            assert!(rows().take(i).all(|other| other.differs != row.differs), "{}", row.name);
            assert!(row.differs.ends_with('.') && !row.differs.contains(". "), "{}", row.name);
            let Feature { first, last, stable } = row.feature;
            assert!(last.is_none_or(|last| first <= last), "{}", row.name);
            assert!(stable.is_empty() || stable.iter().any(|rev| *rev < first), "{}", row.name);
            assert!(first <= KernelRev::NEWEST, "{}", row.name);
        }
    }
}
