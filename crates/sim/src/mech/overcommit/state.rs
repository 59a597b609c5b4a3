//! State of SCHED_OVERCOMMIT on a CPU; [`super`] has its actions.

use crate::mech::slots::Slot;
use risetime_kernel::overcommit::{Moved, Overcommit};
use risetime_kernel::units::Instant;
use risetime_model::Experiment;
use risetime_model::settings::{Default, Group, Home, Int, Neutral, Param, Range};
use risetime_model::workload::{Attr, Policy};

/// The mechanism.
pub(crate) struct Own;

impl Slot for Own {
    type OfMachine = ();
    type OfDomain = ();
    type OfCpu = Option<Box<OvercommitRq>>;
    /// The task's request, while it is of no CPU.
    type OfTask = Option<Box<Moved>>;
}

pub(crate) const GROUP: Group =
    Group::of(&[SHARE.0]).titled("SCHED_OVERCOMMIT, which no kernel has");

const SHARE: Int = Int::new(Param {
    name: "sched_overcommit_fair_percent",
    doc: "least share of a CPU that the classes below SCHED_OVERCOMMIT have where they want it (unset: 6)",
    unit: "%",
    range: Range::Int(1, 50),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Int(SHARE_PERCENT)),
});
/// Share by default, in %: one more than what the fair class's deadline server gives, so that this
/// server has no reason to run.
const SHARE_PERCENT: i64 = 6;

/// SCHED_OVERCOMMIT on one CPU.
pub(crate) struct OvercommitRq {
    pub(crate) class: Overcommit,
    /// True while the task that runs below the class does so in the turn of the classes below.
    pub(crate) served: bool,
    /// Time up to which it is settled, in the CPU's clock …
    pub(crate) settled: Instant,
    /// … and in the task clock.
    pub(crate) settled_task: u64,
    /// Time at which its timer expires, in the CPU's clock.
    pub(crate) expires: Option<Instant>,
}

impl OvercommitRq {
    /// `None` where nobody is ever of the class.
    pub(crate) fn of(e: &Experiment, now: Instant) -> Option<Box<OvercommitRq>> {
        let percent = e.settings.get(&SHARE).unwrap_or(SHARE_PERCENT).max(0) as u32;
        used(e).then(|| {
            Box::new(OvercommitRq {
                class: Overcommit::new(percent, now.0),
                served: false,
                settled: now,
                settled_task: now.0,
                expires: None,
            })
        })
    }
}

/// Whether some task is ever of the class.
fn used(e: &Experiment) -> bool {
    let tasks = e.workload.tasks.iter().chain(&e.workload.forked);
    let of_class = |attr: &Attr| matches!(attr.policy, Some(Policy::Overcommit { .. }));
    tasks.into_iter().any(|t| of_class(&t.attr) || t.phases.iter().any(|p| of_class(&p.attr)))
}
