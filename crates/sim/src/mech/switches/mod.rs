//! The scheduler's switches (`/sys/kernel/debug/sched/features`), one setting each.
//!
//! Which kernel has which, and with which default: [`risetime_kernel::switches`]. UTIL_EST is a setting of
//! [`crate::mech::before`], NI_RANDOM one of balancing.

pub(crate) mod state;

use crate::mech::mechanism::Mechanism;
use crate::state::machine::Machine;
use risetime_kernel::KernelRev;
use risetime_kernel::switches::{Row, Switch, Switches};
use risetime_model::settings::{Default, Group, Home, Int, Param, Range, Settings};
use risetime_model::{Experiment, InputError, Platform, Policy};

impl Mechanism for state::Own {
    const LISTED_LATE: bool = true;

    fn groups() -> Vec<Group> {
        vec![GROUP]
    }
    /// Returns those of the fair class's tunables, which were read of the settings before.
    fn of_machine(_: &Experiment, m: &Machine) -> Switches {
        m.slots.switches
    }
}

macro_rules! settings {
    ($($switch:ident $name:literal: $doc:literal;)+) => {
        const ITEMS: &[(Switch, Int)] = &[$((Switch::$switch, Int::new(Param {
            name: $name,
            doc: $doc,
            unit: "",
            range: Range::Int(0, 1),
            default: Default::Derived(
                if Switch::$switch.row().on { "1, where the kernel has it" } else { "0, where the kernel has it" },
                // Found out by `of_settings`: a default that is no value of its own costs a run nothing.
                |_, _| None,
            ),
            home: Home::Feature(Switch::$switch.row().name),
        }))),+];
        const PARAMS: &[Param] = &{
            let mut params = [ITEMS[0].1.0; ITEMS.len()];
            let mut i = 0;
            while i < params.len() {
                params[i] = ITEMS[i].1.0;
                i += 1;
            }
            params
        };
    };
}

settings! {
    PlaceLag "place_lag": "an entity comes back with the lag with which it left; 0: with none (since 6.6)";
    PlaceDeadlineInitial "place_deadline_initial": "a new task's first deadline is half a slice away (since 6.12)";
    PlaceRelDeadline "place_rel_deadline": "a deadline keeps its distance across migration and renice (since 6.12)";
    RunToParity "run_to_parity": "the running entity is protected from others up to a point (since 6.6)";
    PreemptShort "preempt_short": "a woken entity with a shorter slice breaks that protection (since 6.12)";
    NextBuddy "next_buddy": "a woken entity is preferred at the next pick, even where it does not preempt";
    LastBuddy "last_buddy": "a preempted task is preferred where many are queued (CFS, up to 6.5)";
    PickBuddy "pick_buddy": "an entity that is said to come next does, if eligible (since 6.12)";
    CacheHotBuddy "cache_hot_buddy": "balancing leaves an entity that is said to come next where it is, if the other CPU has work";
    DelayDequeue "delay_dequeue": "who falls asleep owing service stays queued until it is paid off (since 6.12)";
    DelayZero "delay_zero": "who was dequeued late keeps no positive lag (since 6.12)";
    WakeupPreemption "wakeup_preemption": "a woken fair task may preempt another one at all";
    GentleFairSleepers "gentle_fair_sleepers": "half a latency of sleep counts; 0: a whole one (CFS, up to 6.5)";
    StartDebit "start_debit": "a new task starts behind the period that the others have been promised (CFS, up to 6.5)";
    AltPeriod "alt_period": "a group's period counts the tasks of the whole CPU (CFS, 5.13 to 6.5)";
    BaseSlice "base_slice": "slices are not shorter than the minimal granularity (CFS, 5.13 to 6.5)";
    NontaskCapacity "nontask_capacity": "time of interrupts lowers the capacity that is left to tasks, and raises util";
    TtwuQueue "ttwu_queue": "a CPU queues by itself whom others wake for it, where it is idle or of another cache; 0: the waker does, as under PREEMPT_RT";
    SisUtil "sis_util": "the busier a cache, the fewer of its CPUs a wakeup looks at; 0: at all (since 6.0)";
    LbMin "lb_min": "balancing moves no task with a load below 16, unless it has failed before";
    WaIdle "wa_idle": "of the waker's CPU and the previous one, one that is idle is taken first (since 4.14)";
    WaWeight "wa_weight": "else the one with less load for its capacity (since 4.14)";
    WaBias "wa_bias": "that comparison is biased to the previous CPU, by half of imbalance_pct (since 4.14)";
    NiRate "ni_rate": "with ni_random=1: a CPU that has not looked for work for 4 ms gets back a look (since 7.2)";
}

const GROUP: Group = Group::of(PARAMS).titled("Switches of the scheduler").checked(check);

/// Errors: a switch that this kernel does not have.
fn check(_: &Platform, policy: &Policy, _: &Settings) -> Result<(), InputError> {
    let lacks = |(switch, item): &&(Switch, Int)| {
        policy.said(item).is_some() && !policy.kernel.has(switch.row().there)
    };
    let Some((switch, item)) = ITEMS.iter().find(lacks) else { return Ok(()) };
    let Row { name, there, .. } = switch.row();
    let what =
        format!("`{item}` ({name}) is a switch of kernels {there}, and this is {}", policy.kernel);
    Err(InputError::new(policy.place_of(item.name), what).hint(format!("leave `{item}` out")))
}

/// The switches of `rev` as the settings have them.
pub(crate) fn of_settings(rev: KernelRev, settings: &Settings) -> Switches {
    let mut switches = Switches::of(rev);
    for (switch, item) in ITEMS {
        if let Some(on) = settings.get(item) {
            switches.set(*switch, on == 1);
        }
    }
    switches
}
