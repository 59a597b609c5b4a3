//! State of SCHED_HIGH on a CPU; [`super`] has its actions.

use crate::mech::slots::Slot;
use risetime_kernel::KernelRev;
use risetime_kernel::cfs_rq::{CfsRq, Tunables};
use risetime_kernel::eevdf::Entity;
use risetime_kernel::sched_high::HighAccount;
use risetime_kernel::units::{Span, TaskId};
use risetime_model::Experiment;
use risetime_model::settings::{Default, Group, Home, Int, Name, Neutral, Param, Range};
use risetime_model::workload::{Attr, Policy};

/// The mechanism.
pub(crate) struct Own;

impl Slot for Own {
    type OfMachine = ();
    type OfDomain = ();
    type OfCpu = Option<Box<HighRq>>;
    /// The task's entity, while it is not queued here; of a task that has been here.
    type OfTask = Option<Box<Entity>>;
}

pub(crate) const GROUP: Group =
    Group::of(&[SHARE.0, TURN.0, SERVER.0]).titled("SCHED_HIGH, which no kernel has");

const SHARE: Int = Int::new(Param {
    name: "sched_high_fair_percent",
    doc: "least share that waiting fair tasks have of the time that SCHED_HIGH and fair tasks run together (unset: 10)",
    unit: "%",
    range: Range::Int(1, 50),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Int(SHARE_PERCENT)),
});
const TURN: Int = Int::new(Param {
    name: "sched_high_fair_turn_us",
    doc: "time for which fair tasks run in one go where SCHED_HIGH lets them in (unset: 4000)",
    unit: "µs",
    range: Range::Int(100, 1_000_000),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Int(TURN_US)),
});
const SERVER: Name = Name::new(Param {
    name: "sched_high_server",
    doc: "whether the deadline server that lets fair tasks in where real-time ones starve them (from 6.12 on) serves SCHED_HIGH, too (unset: no)",
    unit: "",
    range: Range::OneOf(&["yes", "no"]),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Name("no")),
});
const SHARE_PERCENT: i64 = 10;
const TURN_US: i64 = 4000;

/// SCHED_HIGH on one CPU.
pub(crate) struct HighRq {
    /// Tasks of the class, by the rules of the kernel's own fair class. None stays queued asleep.
    pub(crate) queue: CfsRq,
    pub(crate) account: HighAccount,
    /// Time up to which the account is kept, of the task clock.
    pub(crate) accounted: u64,
    /// The fair class's deadline server serves it, too.
    pub(crate) served: bool,
}

impl HighRq {
    /// `None` where nobody is ever of the class.
    pub(crate) fn of(
        e: &Experiment,
        rev: KernelRev,
        tunables: Tunables,
        now: u64,
    ) -> Option<Box<HighRq>> {
        if !used(e) {
            return None;
        }
        let int = |of: &Int, default: i64| e.settings.get(of).unwrap_or(default).max(0) as u64;
        let mut queue = CfsRq::new(rev, tunables);
        queue.keep_no_sleepers();
        queue.update_clock(now);
        Some(Box::new(HighRq {
            queue,
            account: HighAccount::new(
                int(&SHARE, SHARE_PERCENT) as u32,
                Span::from_us(int(&TURN, TURN_US)),
            ),
            accounted: now,
            served: e.settings.get(&SERVER) == Some("yes"),
        }))
    }

    /// The number of the class's tasks here, running or not.
    pub(crate) fn nr_queued(&self) -> usize {
        self.queue.nr_queued()
    }

    /// Iterates over the class's tasks that are not running.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = TaskId> + '_ {
        let runs = self.queue.curr().map(|e| e.id);
        let others = self.queue.iter().filter(move |e| Some(e.id) != runs);
        others.filter_map(|e| e.id.as_task())
    }
}

/// Whether some task is ever of SCHED_HIGH.
pub(crate) fn used(e: &Experiment) -> bool {
    let tasks = e.workload.tasks.iter().chain(&e.workload.forked);
    let high = |attr: &Attr| matches!(attr.policy, Some(Policy::High { .. }));
    tasks.into_iter().any(|t| high(&t.attr) || t.phases.iter().any(|p| high(&p.attr)))
}
