//! Scheduling classes: of which a task is, what its class keeps of it, and what the machine keeps for all.
//!
//! What each class does: `kernel/class/`.

use crate::mech::pixel::state::form;
use crate::state::cpuset::CpuSet;
use crate::state::effects::Effects;
use crate::state::hooks::Placed;
use crate::state::hooks::Step;
use crate::state::machine::{Cpu, Machine, Task};
use risetime_kernel::deadline::{BW_UNIT, DlEntity, to_ratio};
use risetime_kernel::eevdf::{FairPolicy, LoadWeight};
use risetime_kernel::muqss;
use risetime_kernel::rt::{RtPriority, rt_throttles};
use risetime_kernel::units::{CpuId, GroupId, Instant, Span, TaskId, Util};
use risetime_kernel::{KernelRev, features};
use risetime_model::settings::{Default, Home, Int, Key, Name, Neutral, Param, Range, keys};
use risetime_model::workload::{Attr, Policy};
use risetime_model::{Experiment, InputError};
use risetime_trace::Why;
use std::collections::VecDeque;

pub(crate) const UCLAMP_MIN: Int = Int::new(Param {
    name: keys::UCLAMP_MIN.name(),
    doc: "util_min of every task of the workload",
    unit: "of 1024",
    range: Range::Int(0, 1024),
    default: Default::Unset,
    home: Home::SchedAttr("sched_util_min"),
});

pub(crate) const UCLAMP_MAX: Int = Int::new(Param {
    name: keys::UCLAMP_MAX.name(),
    doc: "util_max of every task of the workload",
    unit: "of 1024",
    range: Range::Int(0, 1024),
    default: Default::Unset,
    home: Home::SchedAttr("sched_util_max"),
});

/// The setting that says whether there are clamps at all.
pub const UCLAMP_TASK: Int = Int::new(Param {
    name: "uclamp_task",
    doc: "0: a kernel without CONFIG_UCLAMP_TASK, as Debian's up to 6.12 on arm64. Real-time tasks ask for the highest frequency, and fit on any CPU",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Int(1)),
});
/// The setting that says how big a CPU an RT task gets that does not say so itself.
pub const RT_UCLAMP_MIN: Int = Int::new(Param {
    name: keys::RT_UCLAMP_MIN.name(),
    doc: "util_min of RT tasks that ask for none: how big a CPU they are given",
    unit: "of 1024",
    range: Range::Int(0, 1024),
    default: Default::Unset,
    home: Home::Sysctl("kernel.sched_util_clamp_min_rt_default"),
});
/// The setting that says who hears of hint sessions, and clamps their threads for it (`user/power_hal`).
pub(crate) const POWER_HAL: Key<Name> = Key::new("power_hal");

/// The class of a task, the highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Stop,
    Deadline,
    /// Real-time tasks of groups with servers.
    RtGroup,
    Rt,
    Overcommit,
    High,
    /// MuQSS, in place of the fair class, where that is asked for.
    Muqss,
    Fair,
}

impl Class {
    /// Whether its tasks come before those of nice values.
    pub(crate) fn is_above_fair(self) -> bool {
        self < Class::Muqss
    }
    /// Whether the class is that of SCHED_FIFO or SCHED_RR, in whatever group.
    pub(crate) fn is_real_time(self) -> bool {
        matches!(self, Class::Rt | Class::RtGroup)
    }
    /// Whether what its tasks run counts in `rt_avg`.
    pub(crate) fn counts_as_rt(self) -> bool {
        self.is_real_time() || matches!(self, Class::Overcommit | Class::High)
    }
}

/// A task's policy and what its class keeps of it.
pub(crate) struct Sched {
    /// Policy in force.
    pub(crate) policy: Policy,
    /// The task's reservation, also while it is of another class again.
    pub(crate) dl: Option<Box<DlEntity>>,
    /// The group whose servers serve it while it is a real-time task; the root: it has none.
    pub(crate) served: GroupId,
    /// `p->rt.time_slice`, in ticks.
    pub(crate) rr_left: u32,
    /// Asked for at creation, taken on by the task itself when it first runs: no thread can be
    /// created as a deadline task.
    pub(crate) takes: Option<Policy>,
    /// True if the trace says that the task's runtime is used up.
    pub(crate) told_throttled: bool,
    /// True for a CPU's stopper, whatever its policy (`stop_sched_class`).
    pub(crate) stop: bool,
    /// `uclamp_min` was asked for (`user_defined`), so that the RT default does not apply.
    pub(crate) min_asked: bool,
    /// The task's slice and deadline, where MuQSS stands in for the fair class.
    pub(crate) muqss: Option<muqss::Entity>,
}

impl Sched {
    /// A task of nice 0.
    pub(crate) fn new() -> Sched {
        Sched {
            policy: Policy::Other { slice: None },
            dl: None,
            served: GroupId::ROOT,
            rr_left: 0,
            takes: None,
            told_throttled: false,
            stop: false,
            min_asked: false,
            muqss: None,
        }
    }
    /// A kthread that changes frequencies.
    pub(crate) fn sugov() -> Sched {
        let entity = DlEntity::sugov();
        let p = entity.params;
        let policy = Policy::Deadline {
            runtime: p.runtime,
            deadline: p.deadline,
            period: p.period,
            reclaim: false,
        };
        Sched { policy, dl: Some(Box::new(entity)), ..Sched::new() }
    }
    /// A kthread that was made a real-time task.
    pub(crate) fn fifo(priority: u8) -> Sched {
        Sched { policy: Policy::Fifo { priority }, ..Sched::new() }
    }
    pub(crate) fn class(&self) -> Class {
        match self.policy {
            _ if self.stop => Class::Stop,
            Policy::Deadline { .. } => Class::Deadline,
            Policy::Fifo { .. } | Policy::Rr { .. } if self.served != GroupId::ROOT => {
                Class::RtGroup
            }
            Policy::Fifo { .. } | Policy::Rr { .. } => Class::Rt,
            Policy::Overcommit { .. } => Class::Overcommit,
            Policy::High { .. } => Class::High,
            Policy::Other { .. } | Policy::Batch { .. } | Policy::Idle => match self.muqss {
                Some(_) => Class::Muqss,
                None => Class::Fair,
            },
        }
    }
    /// The task's real-time priority; 0: it is no RT task.
    pub(crate) fn rt_priority(&self) -> RtPriority {
        match self.policy {
            Policy::Fifo { priority } | Policy::Rr { priority } => priority,
            _ => 0,
        }
    }
}

/// State that the classes above the fair one share on the whole machine.
pub(crate) struct Classes {
    /// Some task of the workload is of another class than the fair one.
    pub(crate) used: bool,
    /// Some task is of SCHED_OVERCOMMIT or SCHED_HIGH.
    pub(crate) between: bool,
    /// Some task is of SCHED_IDLE, or in a group whose tasks count as such.
    pub(crate) idle_used: bool,
    /// `sched_uclamp_used`: some task asks for clamps, a group limits them, or real-time tasks have another default.
    pub(crate) uclamp_used: bool,
    /// `sched_util_clamp_min_rt_default`.
    pub(crate) rt_uclamp_min: Util,
    /// Time at which the RT period timer expires next; `None`: it is off.
    pub(crate) rt_period: Option<Instant>,
    /// Threads that change frequencies are schedutil's, which are deadline tasks.
    pub(crate) schedutil: bool,
    /// `dl_bw.total_bw`.
    pub(crate) total_bw: u64,
    /// Bandwidth that groups of real-time tasks have of each CPU (`get_dl_groups_bw`).
    pub(crate) groups_bw: u64,
    /// Capacity of all CPUs.
    pub(crate) total_capacity: u64,
    /// CPUs that have RT tasks to push and got asked to (`rto_mask`, walked after this event).
    pub(crate) push_rt: bool,
    /// A group's server has been throttled on the CPU that switches.
    pub(crate) push_groups: bool,
    /// `distribute_cpu_mask_prev`, by CPU.
    pub(crate) distribute: Vec<CpuId>,
}

impl Classes {
    /// `__dl_add`: reserved on the machine; what nobody has reserved shrinks on each CPU.
    pub(crate) fn reserve_bw(&mut self, cpus: &mut [Cpu], bw: u64) {
        self.total_bw = self.total_bw.saturating_add(bw);
        let each = bw / cpus.len() as u64;
        cpus.iter_mut().for_each(|c| c.dl.extra_bw = c.dl.extra_bw.wrapping_sub(each));
    }
    /// `__dl_sub`.
    pub(crate) fn release_bw(&mut self, cpus: &mut [Cpu], bw: u64) {
        self.total_bw = self.total_bw.saturating_sub(bw);
        let each = bw / cpus.len() as u64;
        cpus.iter_mut().for_each(|c| c.dl.extra_bw = c.dl.extra_bw.wrapping_add(each));
    }
    /// Counts again what deadline tasks have reserved, after the sched domains are built anew
    /// (`dl_clear_root_domain`, `dl_add_task_root_domain`; 5.4 is from memory of the commit).
    ///
    /// Up to 6.14 schedutil's kthreads count too, though their own request did not, and what is counted again is once more
    /// taken from `extra_bw`, which nobody gives back; 6.12 forgets the fair class's servers. So in the C of 6.1 and 6.12, and
    /// in both running. 7.2 and 7.3 leave all as it was; the commits of 6.13 and 6.15 are from memory.
    pub(crate) fn rebuild_root_domains(
        &mut self,
        rev: KernelRev,
        cpus: &mut [Cpu],
        tasks: &[Task],
    ) {
        if !rev.has(features::DL_REBUILD) || rev.has(features::DL_REBUILD_RIGHT) {
            return;
        }
        self.total_bw = 0;
        for cpu in 0..cpus.len() {
            let counts_server = rev.has(features::DL_REBUILD_SERVER);
            let server = cpus[cpu].fair_server.as_ref().filter(|_| counts_server);
            if let Some(bw) = server.map(|server| server.bw) {
                self.reserve_bw(cpus, bw);
            }
        }
        for t in tasks.iter().filter(|t| t.sched.class() == Class::Deadline) {
            if let Some(params) = t.sched.dl.as_ref().map(|dl| dl.params)
                && (self.schedutil || !t.is_kthread())
            {
                self.reserve_bw(cpus, to_ratio(params.period, params.runtime));
            }
        }
    }
    /// `start_rt_bandwidth`: the period timer of all CPUs runs while RT tasks do. When it expires, if it has
    /// not been set before.
    pub(crate) fn start_rt_bandwidth(&mut self, now: Instant, period: Span) -> Option<Instant> {
        let at = now + period;
        self.rt_period.is_none().then(|| *self.rt_period.insert(at))
    }
    /// `cpumask_any_and_distribute` on `this_cpu`: the next after the one it came to last time.
    pub(crate) fn any_distribute(&self, among: &CpuSet, this_cpu: CpuId) -> Option<CpuId> {
        among.iter_wrap(CpuId(self.distribute[this_cpu.index()].0.saturating_add(1))).next()
    }
    /// Notes where a search for a CPU came to.
    #[inline]
    pub(crate) fn take_distribute(&mut self, effects: &mut Effects) {
        if let Some((this_cpu, found)) = effects.distributed.take() {
            self.distribute[this_cpu.index()] = found;
        }
    }
    pub(crate) fn of(e: &Experiment) -> Classes {
        let attrs = || {
            let tasks = e.workload.tasks.iter().chain(&e.workload.forked);
            tasks.flat_map(|t| std::iter::once(&t.attr).chain(t.phases.iter().map(|p| &p.attr)))
        };
        let capacity =
            |cpu| e.platform.domain_of(cpu).map_or(0, |d| e.platform.domains[d].capacity.0);
        Classes {
            used: attrs().any(|a| a.policy.is_some_and(|p| !p.is_fair())),
            between: false,
            idle_used: attrs().any(|a| a.policy == Some(Policy::Idle))
                || e.workload.groups.iter().any(|g| g.idle),
            uclamp_used: clamps_asked(e),
            rt_uclamp_min: rt_uclamp_min(if has_clamps(e) {
                e.settings.get(&RT_UCLAMP_MIN)
            } else {
                Some(0)
            }),
            rt_period: None,
            schedutil: e
                .settings
                .get(&keys::GOVERNOR)
                .is_none_or(|name| name == keys::governor::SCHEDUTIL),
            total_bw: 0,
            groups_bw: 0,
            total_capacity: e.platform.cpus().map(capacity).sum(),
            push_rt: false,
            push_groups: false,
            distribute: vec![CpuId(0); e.platform.nr_cpus()],
        }
    }
}

impl Machine {
    /// Whether real-time tasks use up a runtime: before 6.12, unless it is unlimited.
    pub(crate) fn rt_throttles(&self) -> bool {
        rt_throttles(self.rev)
            && self.slots.sysctls.rt.runtime.is_some()
            && self.does(Step::ThrottleRt)
    }
    /// Whether frequencies go by what deadline tasks are promised: since 4.16 (commit d4edd662ac16); before, one that
    /// runs gets the highest.
    #[inline]
    pub(crate) fn knows_deadline_bandwidth(&self) -> bool {
        self.rev.has(features::DL_RUNNING_BW)
    }
    /// Whether it counts in `h_nr_idle`: by its policy, or by that of one of its groups.
    pub(crate) fn is_sched_idle(&self, task: TaskId) -> bool {
        let t = self.task(task);
        t.sched.policy == Policy::Idle || self.groups.is_idle(t.group)
    }
    /// Whether `task` is a deadline task that has yielded and waits for its next period.
    pub(crate) fn waits_for_period(&self, task: TaskId) -> bool {
        let dl = self.task(task).sched.dl.as_ref();
        self.class_of(task) == Class::Deadline && dl.is_some_and(|dl| dl.yielded && dl.throttled)
    }
    pub(crate) fn class_of(&self, task: TaskId) -> Class {
        self.task(task).sched.class()
    }
    /// The task's priority among RT tasks, a deadline task's above all of them and a fair one's
    /// below.
    pub(crate) fn rt_rank(&self, task: TaskId) -> u8 {
        let sched = &self.task(task).sched;
        if sched.class() == Class::Deadline { u8::MAX } else { sched.rt_priority() }
    }
    /// `rt_task`: of a priority below MAX_RT_PRIO, which deadline tasks were, too, before 6.12.
    pub(crate) fn rt_task(&self, task: TaskId) -> bool {
        match self.class_of(task) {
            Class::Deadline => !self.rev.has(features::RT_TASK_NO_DL),
            class => class == Class::Stop || class.is_real_time(),
        }
    }
    /// The priority that tracepoints show (`p->prio`, `__normal_prio`).
    pub(crate) fn prio(&self, task: TaskId) -> i32 {
        let t = self.task(task);
        match t.sched.class() {
            Class::Stop => 0,
            Class::Deadline => -1,
            Class::Rt | Class::RtGroup => 99 - i32::from(t.sched.rt_priority()),
            // Between the lowest real-time priority and the highest fair one.
            Class::Overcommit | Class::High => 99,
            Class::Muqss | Class::Fair => 120 + i32::from(t.nice),
        }
    }
    /// Returns the task's reservation. Only deadline tasks are asked.
    pub(crate) fn dl(&self, task: TaskId) -> &DlEntity {
        self.task(task).sched.dl.as_deref().expect("a deadline task has a reservation")
    }
}

/// The fair policy of a task under `policy`; normal for other classes.
pub(crate) fn fair_policy(policy: Policy) -> FairPolicy {
    match policy {
        Policy::Batch { .. } => FairPolicy::Batch,
        Policy::Idle => FairPolicy::Idle,
        Policy::Other { .. }
        | Policy::Overcommit { .. }
        | Policy::High { .. }
        | Policy::Fifo { .. }
        | Policy::Rr { .. }
        | Policy::Deadline { .. } => FairPolicy::Normal,
    }
}

/// The weight of a task of this policy and nice value.
pub(crate) fn load_of(policy: Policy, nice: i8) -> LoadWeight {
    match policy {
        Policy::Idle => LoadWeight::of_idle_policy(),
        _ => LoadWeight::of_nice(i32::from(nice)),
    }
}

/// Whether somebody asks for clamps. Writing another default for real-time tasks does, too
/// (`sysctl_sched_uclamp_handler`).
fn clamps_asked(e: &Experiment) -> bool {
    let set = |of: &Int| e.settings.is_set(of);
    let mut tasks = e.workload.tasks.iter().chain(&e.workload.forked);
    let attr = |a: &Attr| a.uclamp_min.is_some() || a.uclamp_max.is_some();
    e.settings.get(&RT_UCLAMP_MIN).is_some_and(|min| min != 1024)
        || form(&e.settings).is_some()
        || set(&UCLAMP_MIN)
        || set(&UCLAMP_MAX)
        || tasks.any(|t| attr(&t.attr) || t.phases.iter().any(|p| attr(&p.attr)))
        || !e.workload.sessions.is_empty()
            && e.settings.get(&POWER_HAL).is_some_and(|name| name != "none")
        || e.workload.groups.iter().any(|g| g.uclamp_min.0 > 0 || g.uclamp_max.0 < 1024)
}

/// CONFIG_UCLAMP_TASK.
fn has_clamps(e: &Experiment) -> bool {
    e.settings.get(&UCLAMP_TASK) != Some(0)
}

/// Refuses an experiment that asks a kernel without clamps for some.
///
/// Errors: that.
pub(crate) fn check_clamps(e: &Experiment) -> Result<(), InputError> {
    if has_clamps(e) || !clamps_asked(e) {
        return Ok(());
    }
    let what = "a task, a group or a setting asks for clamps, and this kernel has none";
    let hint = "leave `uclamp_task=0` out, or the clamps";
    Err(InputError::new(UCLAMP_TASK.name, what).hint(hint))
}

/// The `uclamp_min` that real-time tasks have by default, of the sysctl.
pub(crate) fn rt_uclamp_min(value: Option<i64>) -> Util {
    Util(value.unwrap_or(1024).clamp(0, 1024) as u64)
}

/// A timer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum ClassTimer {
    /// `dl_timer` of a task.
    Replenish(TaskId),
    /// `inactive_timer` of a task.
    Inactive(TaskId),
    /// `dl_timer` of a CPU's fair server.
    Server(CpuId),
    /// `inactive_timer` of a CPU's fair server.
    ServerInactive(CpuId),
    /// `dl_timer` of a group's server on a CPU.
    GroupServer(CpuId, GroupId),
    /// `inactive_timer` of a group's server on a CPU.
    GroupInactive(CpuId, GroupId),
    /// SCHED_OVERCOMMIT's of a CPU.
    Overcommit(CpuId),
    /// MuQSS's `hrexpiry_timer` of a CPU.
    SliceOver(CpuId),
    /// A task is demoted, or is no longer.
    Demotion(TaskId),
    /// `rt_period_timer`, of all CPUs.
    RtPeriod,
    /// `period_timer` of a group's quota ([`crate::kernel::bandwidth`]).
    CfsPeriod(GroupId),
    /// The slack timer of a group (`slack_timer`).
    CfsSlack(GroupId),
    /// The timer of the governor of the frequency domain of this number (`kernel/cpufreq.rs`).
    Governor(CpuId),
}

/// A CPU's stopper (`struct cpu_stopper`).
pub(crate) struct Stopper {
    pub(crate) task: TaskId,
    /// Time that each work takes.
    pub(crate) takes: Span,
    pub(crate) works: VecDeque<StopWork>,
    pub(crate) doing: Option<StopWork>,
    /// `rq->active_balance`: one is asked for.
    pub(crate) active_balance: bool,
    /// True while the stopper is on the runqueue.
    pub(crate) queued: bool,
}

/// Request to a stopper (`struct cpu_stop_work`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StopWork {
    /// `active_load_balance_cpu_stop`: give a task to `to`.
    ActiveBalance {
        /// `rq->push_cpu`.
        to: CpuId,
        /// Reason of the move.
        why: Why,
    },
    /// Move `task`, a deadline task that belongs elsewhere.
    Home {
        /// The task to send home.
        task: TaskId,
        /// CPU to which it goes.
        to: CpuId,
    },
    /// `migration_cpu_stop`: move `task`, which may not be here.
    Migrate {
        /// The task to migrate.
        task: TaskId,
        /// `dest_cpu`.
        to: CpuId,
    },
}

impl Stopper {
    pub(crate) fn queued(&self) -> bool {
        self.queued
    }
}

impl Machine {
    /// Whether the task is of the fair class.
    pub(crate) fn is_fair(&self, task: TaskId) -> bool {
        self.class_of(task) == Class::Fair
    }
}

/// Placement of deadline tasks. What is not said here is as under global EDF.
pub(crate) trait DlPlacement: Sync {
    /// The placement's name in the setting `dl_placement`, and what it is, in a sentence.
    fn about(&self) -> (&'static str, &'static str);
    /// Takes a task into the class, or gives it another reservation, `asked`, which the machine as
    /// a whole has room for; returns the CPU that it belongs to from now on. `None`: there is none,
    /// and the request is refused.
    fn enter(&self, m: &Machine, task: TaskId, _asked: &DlEntity) -> Option<CpuId> {
        Some(m.task(task).cpu)
    }
    /// The fit by which the placement gives a task a CPU for good, if it does: so it does where
    /// priorities stand in for deadlines, too.
    fn fit(&self) -> Option<Fit> {
        None
    }
    /// Whether a task belongs from then on to the CPU on which it wakes.
    fn adapts(&self) -> bool {
        false
    }
    /// Decides where a waking task goes that may run on several CPUs.
    fn wake(&self, m: &Machine, task: TaskId, this_cpu: CpuId, effects: &mut Effects) -> Placed;
    /// Whether a task that waits, or is about to be placed as under global EDF, may go to `to`.
    fn moves(&self, _: &Machine, _: TaskId, _to: CpuId) -> bool {
        true
    }
}

/// Choice among the CPUs on which a test holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The smallest, then the first.
    First,
    /// The CPU with most room.
    Worst,
}

/// Bandwidth of deadline tasks that frequencies know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DlFrequency {
    /// `running_bw`: of those that are active (GRUB-PA).
    GrubPa,
    /// `this_bw`: of all that belong to the CPU, and nothing of what they use: as long as nobody comes or goes, it stays.
    Admitted,
    /// All of it while one is active.
    Max,
}

/// Key by which the tool gives priorities to tasks that ask for a runtime and a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FixedBy {
    /// The shorter period is higher (RM).
    Period,
    /// The shorter relative deadline is higher (DM).
    Deadline,
    /// All are the same.
    Nothing,
}

/// SCHED_FIFO in place of SCHED_DEADLINE.
pub(crate) struct Fixed {
    by: FixedBy,
    /// Periods or deadlines that there are, ascending.
    keys: Vec<Span>,
}

/// The highest priority that is given; 99 is left to the kernel's own threads.
const HIGHEST: usize = 98;

impl Fixed {
    /// The priorities for the reservations of a workload.
    pub(crate) fn of(e: &Experiment, by: FixedBy) -> Fixed {
        let tasks = e.workload.tasks.iter().chain(&e.workload.forked);
        let attrs = tasks
            .flat_map(|t| std::iter::once(&t.attr).chain(t.phases.iter().map(|phase| &phase.attr)));
        let mut keys: Vec<Span> = attrs.filter_map(|attr| key(by, attr.policy?)).collect();
        keys.sort();
        keys.dedup();
        Fixed { by, keys }
    }

    /// The policy that stands in for `policy`. Where there are more periods than priorities,
    /// neighbours share one.
    pub(crate) fn instead_of(&self, policy: Policy) -> Policy {
        let Some(key) = key(self.by, policy) else { return policy };
        let (at, all) = (self.keys.partition_point(|k| *k < key), self.keys.len());
        let below = if all <= HIGHEST { at } else { at * (HIGHEST - 1) / (all - 1) };
        Policy::Fifo { priority: (HIGHEST - below.min(HIGHEST - 1)) as u8 }
    }
}

fn key(by: FixedBy, policy: Policy) -> Option<Span> {
    let Policy::Deadline { deadline, period, .. } = policy else { return None };
    Some(match by {
        FixedBy::Period => period,
        FixedBy::Deadline => deadline,
        FixedBy::Nothing => Span(0),
    })
}

/// The rules in force.
pub(crate) struct DlRules {
    pub(crate) placement: &'static dyn DlPlacement,
    /// `None`: as the release has it.
    pub(crate) frequency: Option<DlFrequency>,
    /// SCHED_FIFO and SCHED_RR come before SCHED_DEADLINE.
    pub(crate) rt_first: bool,
    /// Reservations are priorities.
    pub(crate) fixed: Option<Fixed>,
}

impl DlRules {
    /// Whether frequencies follow what a stock kernel's do.
    pub(crate) fn stock_frequency(&self) -> bool {
        matches!(self.frequency, None | Some(DlFrequency::GrubPa))
    }
}

impl Cpu {
    /// The bandwidth that deadline tasks are promised here, as far as frequencies know, 2²⁰ = a CPU
    /// of capacity 1024.
    ///
    /// Rounding: that of the admitted up to what a unit of util is, so that its frequency is not below what EDF's test
    /// supposes; that of GRUB-PA is the kernel's, down.
    #[inline]
    pub(crate) fn promised_to_deadline(&self, by: Option<DlFrequency>) -> u64 {
        match by {
            None | Some(DlFrequency::GrubPa) => self.dl.running_bw,
            Some(DlFrequency::Admitted) => self.dl.this_bw.next_multiple_of(BW_UNIT >> 10),
            Some(DlFrequency::Max) => {
                let server = self.fair_server.as_deref();
                let server = server.filter(|s| s.server_active() || s.non_contending);
                let server = server.map_or(0, |s| s.bw);
                if self.dl.running_bw > server { self.capacity.0 << 10 } else { 0 }
            }
        }
    }
}
