//! One look at one domain (`struct lb_env`): who looks, for whom, and what was found out on the
//! way.

use crate::state::cpuset::CpuSet;
use crate::state::topology::SchedDomain;
use risetime_kernel::units::CpuId;

/// Situation in which a CPU balances (`enum cpu_idle_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    Busy,
    Idle,
    NewlyIdle,
}

/// The kind of load to move (`enum migration_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Migrate {
    Load,
    Util,
    Task,
    Misfit,
    /// A task that prefers the cache of who looks.
    Llc,
}

/// One look at one domain (`struct lb_env`).
pub(crate) struct Env {
    /// CPU that looks, and the level at which it does.
    pub(crate) this: CpuId,
    pub(crate) level: usize,
    /// CPU that tasks are pulled for: the one that looks, or another CPU of its group.
    pub(crate) dst: CpuId,
    pub(crate) idle: When,
    /// Kind of load to move (`migration_type`), once that is known.
    pub(crate) kind: Option<Migrate>,
    /// The CPUs to pull from or count; without those whose tasks may all not come.
    pub(crate) cpus: CpuSet,
    /// True while `cpus` are all of the domain's.
    pub(crate) whole: bool,
    /// Affinity forbids every task looked at (`LBF_ALL_PINNED`); some (`LBF_SOME_PINNED`).
    pub(crate) all_pinned: bool,
    pub(crate) some_pinned: bool,
    /// True if tasks looked at stay because their process prefers the cache where they are
    /// (`LBF_LLC_PINNED`).
    pub(crate) llc_pinned: bool,
    /// `new_dst_cpu`: where one of those may go (`LBF_DST_PINNED`).
    pub(crate) new_dst: Option<CpuId>,
}

impl Env {
    pub(super) fn new(this: CpuId, level: usize, idle: When, domain: &SchedDomain) -> Env {
        Env {
            this,
            level,
            dst: this,
            idle,
            kind: None,
            cpus: domain.span,
            whole: true,
            all_pinned: false,
            some_pinned: false,
            llc_pinned: false,
            new_dst: None,
        }
    }

    /// `cpu` is no longer one of those to pull from.
    pub(super) fn leave_out(&mut self, cpu: CpuId) {
        self.cpus.remove(cpu);
        self.whole = false;
    }
}
