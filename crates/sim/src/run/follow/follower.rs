//! A machine that follows, and what it remembers of the reference.

use crate::run::engine::Simulation;
use crate::run::follow::asked::Followed;
use crate::run::follow::listens::Shared;
use crate::run::follow::signals::{Averages, CfsTold};
use crate::state::class::ClassTimer;
use crate::state::timers::Timers;
use risetime_kernel::units::{CpuId, GroupId, Instant, KHz, TaskId};
use risetime_model::Experiment;
use risetime_model::workload::Attr;
use risetime_trace::Event;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Facts that the reference tells and not every one does.
#[derive(Clone, Copy)]
pub(super) struct Tells {
    /// True if the reference tells when and where it balances.
    pub(super) looks: bool,
    /// True if it tells from what it chooses idle states.
    pub(super) sleeps: bool,
    /// True if it tells when a task is asked to go.
    pub(super) resched: bool,
    /// True if it tells when governors look, and from what.
    pub(super) governs: bool,
    /// True if it tells when ticks begin.
    pub(super) ticks: bool,
}

/// A machine that follows.
pub(super) struct Follower<'a, 'e> {
    pub(super) simulation: Simulation<'a>,
    pub(super) shared: Rc<RefCell<Shared>>,
    pub(super) tells: Tells,
    pub(super) events: &'e [(Instant, Event)],
    pub(super) names: BTreeMap<TaskId, String>,
    /// Tasks here by their number there.
    pub(super) here: BTreeMap<TaskId, TaskId>,
    /// Creator among the tasks there ([`Beside::creator`](super::Beside::creator)).
    pub(super) creator: Option<TaskId>,
    pub(super) experiment: &'e Experiment,
    /// Attributes that forked tasks take on when they first run.
    pub(super) first_act: BTreeMap<TaskId, Attr>,
    pub(super) next_wakeups: BTreeMap<usize, Instant>,
    /// Moves of tasks that sleep.
    pub(super) of_sleepers: BTreeSet<usize>,
    /// The levels at which domains are looked at there, ascending.
    pub(super) levels: Vec<u32>,
    /// Frequency that the governor there asked for last, and when, by domain.
    pub(super) wanted: Vec<Option<(Instant, KHz)>>,
    /// CPUs whose virtual times are counted from the same origin as there.
    pub(super) same_origin: BTreeSet<(CpuId, GroupId)>,
    /// The wakeup that has been asked for, and where it goes there.
    pub(super) asked: Option<usize>,
    /// The last signals of a CPU, as long as nothing but signals has been told since.
    pub(super) cfs_told: Option<CfsTold>,
    /// Tasks here whose last update there was at another time of their clock here: it stands still for those whose
    /// group's quota is out.
    pub(super) other_clock: BTreeSet<TaskId>,
    /// Averages by CPU.
    pub(super) averages: Vec<Averages>,
    /// Tasks whose groups have used up their quota; false: not off their CPU yet.
    pub(super) waits_for_quota: BTreeMap<TaskId, bool>,
    /// Tasks here whose clamps still count on their CPU: only one that sleeps takes them along.
    pub(super) clamped: BTreeSet<TaskId>,
    /// Timers of the classes of a CPU that chooses an idle state: it is told another next one.
    pub(super) aside: Timers<ClassTimer>,
    /// CPU whose signals have just moved there.
    pub(super) moved: Option<CpuId>,
    /// Tasks that a look has detached, with the CPU that each comes from: what left last comes first.
    pub(super) detached: Vec<(TaskId, CpuId)>,
    pub(super) followed: Followed,
}
