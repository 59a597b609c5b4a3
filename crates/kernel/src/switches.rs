//! The scheduler's switches: `SCHED_FEAT` of kernel/sched/features.h, `/sys/kernel/debug/sched/features`.
//!
//! A switch is there from some release on, maybe up to another one, with a default; unlike a
//! [behaviour](crate::features) of a release it can be changed while the kernel runs. Switches that only check the
//! kernel itself (WARN_DOUBLE_CLOCK, LATENCY_WARN, PARANOID_AVG) are not here. The defaults of 6.1, 6.12, 7.2 and 7.3
//! were asked of Debian's arm64 kernels.
//!
//! DEVIATES(hrtick): HRTICK and HRTICK_DL, which end a turn by a timer of its own instead of at a tick, are not
//! modelled. They are off up to 7.1, and from 7.2 on where the architecture does not defer the timer's
//! reprogramming (`HRTIMER_REARM_DEFERRED`): arm64 as Debian builds it. Where they are on, turns are up to a tick shorter.
//! DEVIATES(sched-feat): the switches RT_PUSH_IPI, RT_RUNTIME_SHARE (off since 5.10), ATTACH_AGE_LOAD, SIS_PROP,
//! UTIL_EST_FASTUP and DOUBLE_TICK stay at their defaults. Between tasks of different groups NEXT_BUDDY
//! prefers the group that competes, not the task within it; WF_SYNC, which takes the preference back from 7.2 on,
//! no wakeup here has.

use crate::KernelRev;
use crate::features::{self, ALWAYS, Feature, Known, since};

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Name in features.h.
    pub name: &'static str,
    /// Releases in which the switch acts.
    pub there: Feature,
    /// True if it is on unless somebody turns it off.
    pub on: bool,
    /// Source of the releases.
    pub known: Known,
    /// Effect while it is on, in one sentence.
    pub effect: &'static str,
}

macro_rules! switches {
    ($($variant:ident $name:literal: $there:expr, $on:ident, $known:ident, $effect:literal;)+) => {
        /// A switch that is modelled.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Switch {
            $(#[doc = $effect] $variant,)+
        }

        /// Every switch that is modelled, in the order of [`Switch`].
        pub const TABLE: &[Row] = &[$(Row {
            name: $name,
            there: $there,
            on: switches!(@ $on),
            known: Known::$known,
            effect: $effect,
        }),+];
    };
    (@ on) => { true };
    (@ off) => { false };
}

switches! {
    PlaceLag "PLACE_LAG": features::EEVDF, on, C,
        "An entity comes back with the lag with which it left; off: with none.";
    PlaceDeadlineInitial "PLACE_DEADLINE_INITIAL": features::PLACE_DEADLINE_INITIAL, on, C,
        "A new task's first deadline is half a slice away.";
    PlaceRelDeadline "PLACE_REL_DEADLINE": features::PLACE_REL_DEADLINE, on, C,
        "A deadline keeps its distance across migration and renice.";
    RunToParity "RUN_TO_PARITY": features::EEVDF, on, C,
        "The running entity is protected up to a point; off: from 7.2 on for a base slice, before not at all.";
    PreemptShort "PREEMPT_SHORT": features::PREEMPT_SHORT, on, C,
        "A woken entity with a shorter slice breaks that protection.";
    NextBuddy "NEXT_BUDDY": ALWAYS, off, C,
        "A woken entity is preferred at the next pick, even where it does not preempt.";
    LastBuddy "LAST_BUDDY": ALWAYS.until(6, 5), on, Read,
        "A preempted task is preferred where many are queued.";
    PickBuddy "PICK_BUDDY": features::PICK_BUDDY, on, C,
        "An entity that is said to come next does, if eligible.";
    CacheHotBuddy "CACHE_HOT_BUDDY": ALWAYS, on, C,
        "Balancing takes a buddy for cache-hot, where its CPU to be has other work (CFS).";
    DelayDequeue "DELAY_DEQUEUE": features::DELAY_DEQUEUE, on, C,
        "A task that falls asleep owing service stays queued until that is paid off.";
    DelayZero "DELAY_ZERO": features::DELAY_ZERO, on, C,
        "A task whose dequeue was delayed keeps no positive lag.";
    WakeupPreemption "WAKEUP_PREEMPTION": ALWAYS, on, C,
        "A woken fair task may preempt another one at all.";
    GentleFairSleepers "GENTLE_FAIR_SLEEPERS": ALWAYS.until(6, 5), on, Read,
        "Half a latency of sleep counts; off: a whole one.";
    StartDebit "START_DEBIT": ALWAYS.until(6, 5), on, Read,
        "A new task starts behind the period that the others have been promised.";
    AltPeriod "ALT_PERIOD": features::ALT_PERIOD.until(6, 5), on, Read,
        "A group's period counts the tasks of the whole CPU.";
    BaseSlice "BASE_SLICE": features::BASE_SLICE.until(6, 5), on, Read,
        "Slices are not shorter than the minimal granularity.";
    NontaskCapacity "NONTASK_CAPACITY": ALWAYS, on, C,
        "Time of interrupts lowers the capacity that is left to tasks, and raises util.";
    TtwuQueue "TTWU_QUEUE": ALWAYS, on, C,
        "A CPU queues by itself whom others wake for it, where it is idle or of another cache (off under PREEMPT_RT).";
    SisUtil "SIS_UTIL": since(6, 0), on, C,
        "The busier a cache, the fewer of its CPUs a wakeup looks at.";
    LbMin "LB_MIN": ALWAYS, off, C,
        "Balancing moves no task with a load below 16.";
    WaIdle "WA_IDLE": since(4, 14), on, Read,
        "Of the waker's CPU and the previous one, one that is idle is asked first.";
    WaWeight "WA_WEIGHT": since(4, 14), on, Read,
        "Else the loads of the two are compared.";
    WaBias "WA_BIAS": since(4, 14), on, Read,
        "That comparison is biased to the previous CPU, by half of imbalance_pct.";
    NiRate "NI_RATE": features::NI_RATE, on, C,
        "Newidle balancing that is thrown dice about gets back a look for each 4 ms without one.";
}

/// The switches of a kernel as somebody has set them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches(u32);

const _: () = assert!(TABLE.len() <= u32::BITS as usize);

impl Switches {
    /// The defaults of `rev`. A switch that this kernel does not have is off.
    pub fn of(rev: KernelRev) -> Switches {
        let on = TABLE.iter().enumerate().filter(|(_, row)| row.on && rev.has(row.there));
        Switches(on.fold(0, |bits, (i, _)| bits | 1 << i))
    }

    /// Whether `switch` is on.
    #[inline]
    pub const fn on(self, switch: Switch) -> bool {
        self.0 & 1 << switch as u32 != 0
    }

    /// Turns `switch` on or off.
    pub fn set(&mut self, switch: Switch, on: bool) {
        let bit = 1 << switch as u32;
        self.0 = if on { self.0 | bit } else { self.0 & !bit };
    }
}

impl Switch {
    /// The switch's row.
    pub const fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_has_the_switches_that_it_lists() {
        // `cat /sys/kernel/debug/sched/features` of Debian's arm64 kernels, as far as modelled.
        let asked = [
            (
                KernelRev::new(6, 1),
                "GENTLE_FAIR_SLEEPERS START_DEBIT NO_NEXT_BUDDY LAST_BUDDY CACHE_HOT_BUDDY WAKEUP_PREEMPTION \
                 NONTASK_CAPACITY TTWU_QUEUE SIS_UTIL NO_LB_MIN WA_IDLE WA_WEIGHT WA_BIAS ALT_PERIOD BASE_SLICE",
            ),
            (
                KernelRev::V6_12,
                "PLACE_LAG PLACE_DEADLINE_INITIAL PLACE_REL_DEADLINE RUN_TO_PARITY PREEMPT_SHORT NO_NEXT_BUDDY \
                 PICK_BUDDY CACHE_HOT_BUDDY DELAY_DEQUEUE DELAY_ZERO WAKEUP_PREEMPTION NONTASK_CAPACITY TTWU_QUEUE \
                 SIS_UTIL NO_LB_MIN WA_IDLE WA_WEIGHT WA_BIAS",
            ),
            (
                KernelRev::V7_2,
                "PLACE_LAG PLACE_DEADLINE_INITIAL PLACE_REL_DEADLINE RUN_TO_PARITY PREEMPT_SHORT NO_NEXT_BUDDY \
                 PICK_BUDDY CACHE_HOT_BUDDY DELAY_DEQUEUE DELAY_ZERO WAKEUP_PREEMPTION NONTASK_CAPACITY TTWU_QUEUE \
                 SIS_UTIL NO_LB_MIN WA_IDLE WA_WEIGHT WA_BIAS NI_RATE",
            ),
        ];
        for (rev, asked) in asked {
            let mut told: alloc::vec::Vec<_> = asked.split_whitespace().collect();
            told.sort_unstable();
            let ours = TABLE.iter().enumerate().filter(|(_, row)| rev.has(row.there));
            let on = Switches::of(rev);
            let mut ours: alloc::vec::Vec<_> = ours
                .map(|(i, row)| {
                    assert_eq!(on.0 >> i & 1 == 1, row.on);
                    alloc::format!("{}{}", if row.on { "" } else { "NO_" }, row.name)
                })
                .collect();
            ours.sort_unstable();
            assert_eq!(told, ours, "{rev}");
        }
    }

    #[test]
    fn a_switch_is_turned_alone() {
        let before = Switches::of(KernelRev::V7_2);
        let mut after = before;
        after.set(Switch::TtwuQueue, false);
        assert!(before.on(Switch::TtwuQueue) && !after.on(Switch::TtwuQueue));
        after.set(Switch::TtwuQueue, true);
        assert_eq!(before, after);
        assert_eq!(Switch::NiRate.row().name, "NI_RATE");
    }
}
