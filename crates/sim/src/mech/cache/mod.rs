//! Cache-aware scheduling (SCHED_CACHE, since 7.2): the tasks of a process gather under one last-level cache (LLC).
//!
//! ```text
//! update_curr ─> account_mm_sched   what a task ran goes to its process's time on this CPU; a process that is too
//!                                   big, or that no tick has seen for epoch_affinity_timeout, prefers nothing any
//!                                   more; the task takes on what its process prefers
//! tick ─> task_tick_cache           once an epoch: work for the task, to be done back in user mode
//!      ─> task_cache_work           of all LLCs the one under which the process has most: preferred from now on, if
//!                                   that is over twice what the preferred one has; how many of its threads run
//! balancing                         who goes where by that: [`llc`]. Wakeups and forks know nothing of it
//! ```
//!
//! A process that runs alone has all of each CPU on which it has run in the last 20 epochs or so (`fraction_mm_sched`),
//! however little that was: so the LLC counts on which most CPUs have run a task of it lately.
//!
//! 7.2 and 7.3 do the same here. In effect they differ by what is around it: up to 7.2 groups below unequal capacities
//! do not ask for siblings (`SD_PREFER_SIBLING`), and with that an idle CPU only pulls to its LLC where it has more idle
//! CPUs than the other.
//!
//! How many threads a process has (`get_nr_threads`) is never too few: beside any of the workload's tasks there is the
//! thread that creates them.
//!
//! DEVIATES(one_process): the tasks of a workload count as threads of one process, as those of rt-app and of the agent
//! do; an Android app and the services that work for it are several, each of which gathers by itself, and a process of
//! one thread not at all.
//! DEVIATES(llc_footprint): on several nodes a process also has to fit into the LLC by the pages that NUMA balancing
//! has seen it touch (`exceed_llc_capacity`), and prefers no LLC of another node than a task's own
//! (`numa_preferred_nid`). Here nothing is known of pages, and every process fits, as on one node.
//! DEVIATES(llc_epochs): epochs end at jiffies of the run's own count. In a kernel they have begun with its boot, so that
//! they may end up to an epoch less a jiffy earlier: at 250 Hz 4 ms of 8. (`verify --mode step` ends them as there.) Whose
//! tasks sleep and wake in step with epochs may be found with other numbers of running threads by that.
//!
//! Left out: counts that a CPU's new domains have lost when another one goes offline, until its tasks are queued again.
//! Source: kernel/sched/fair.c:`account_mm_sched` and around it; kernel/sched/topology.c:`sched_cache_active`.

mod llc;
pub(crate) mod state;

use crate::kernel::rq::Rq;
use crate::mech::cache::state::{Llc, Process, SchedCache};
use crate::mech::mechanism::Mechanism;
use crate::mech::muqss;
use crate::state::cpuset::CpuSet;
use crate::state::machine::{Cpu, Machine, Role};
use risetime_kernel::sched_cache::{CacheTime, CpuEpoch, Knobs, LlcStats, update_avg_scale};
use risetime_kernel::units::{CpuId, GroupId, Span, TaskId};
use risetime_kernel::{KernelRev, features};
use risetime_model::settings::{Default, Group, Home, Int, Param, Range, Settings, Value, keys};
use risetime_model::{Experiment, InputError, Platform, Policy};
use std::cell::Cell;

impl Mechanism for state::Own {
    fn groups() -> Vec<Group> {
        vec![GROUP]
    }
    fn of_machine(e: &Experiment, m: &Machine) -> Option<Box<SchedCache>> {
        of_experiment(e, m)
    }
}

pub(crate) const ENABLED: Int = Int::new(Param {
    name: keys::SCHED_CACHE.name(),
    doc: "the tasks of a workload, threads of one process, gather under one of several last-level caches (SCHED_CACHE, since 7.2)",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Derived(
        "1 from 7.2 on, where a machine has several last-level caches",
        |p, k| of_knobs(p, k, |_| 1),
    ),
    home: Home::Debugfs("sched/llc_balancing/enabled"),
});
pub(crate) const TOLERANCE: Int = Int::new(Param {
    name: "llc_aggr_tolerance",
    doc: "1: a process gathers while less than 80 % of a cache's CPUs run a thread of it; n: of n times as many CPUs; 100: always; 0: never",
    unit: "times",
    range: Range::Int(0, UINT_MAX),
    default: Default::Derived("1, where there is sched_cache", |p, k| {
        of_knobs(p, k, |knobs| knobs.aggr_tolerance.into())
    }),
    home: Home::Debugfs("sched/llc_balancing/aggr_tolerance"),
});
pub(crate) const PERIOD: Int = Int::new(Param {
    name: "llc_epoch_period",
    doc: "jiffies after which what a process has run counts for half, and a cache is chosen anew",
    unit: "jiffies",
    range: Range::Int(0, UINT_MAX),
    default: Default::Derived("10 ms, rounded down, where there is sched_cache", |p, k| {
        of_knobs(p, k, |knobs| knobs.epoch_period)
    }),
    home: Home::Debugfs("sched/llc_balancing/epoch_period"),
});
const TIMEOUT: Int = Int::new(Param {
    name: "llc_epoch_affinity_timeout",
    doc: "a process that no tick has seen for more than so many epochs prefers no cache any more",
    unit: "epochs",
    range: Range::Int(0, UINT_MAX),
    default: Default::Derived("5, where there is sched_cache", |p, k| {
        of_knobs(p, k, |knobs| knobs.epoch_affinity_timeout)
    }),
    home: Home::Debugfs("sched/llc_balancing/epoch_affinity_timeout"),
});
const OVERAGGR: Int = Int::new(Param {
    name: "llc_overaggr_pct",
    doc: "a cache takes in tasks that prefer it up to this util of its CPUs; half as much again where a core has one thread",
    unit: "%",
    range: Range::Int(0, MANY_PERCENT),
    default: Default::Derived("50, where there is sched_cache", |p, k| {
        of_knobs(p, k, |knobs| knobs.overaggr_pct)
    }),
    home: Home::Debugfs("sched/llc_balancing/overaggr_pct"),
});
const IMBALANCE: Int = Int::new(Param {
    name: "llc_imb_pct",
    doc: "a cache beyond that util takes in tasks only while it is by less than this busier than the other",
    unit: "%",
    range: Range::Int(0, MANY_PERCENT),
    default: Default::Derived("20, where there is sched_cache", |p, k| {
        of_knobs(p, k, |knobs| knobs.imb_pct)
    }),
    home: Home::Debugfs("sched/llc_balancing/imb_pct"),
});
const ALL: [Int; 6] = [ENABLED, TOLERANCE, PERIOD, TIMEOUT, OVERAGGR, IMBALANCE];
const UINT_MAX: i64 = u32::MAX as i64;
/// The kernel takes more, but then multiplies it in 32 bits.
const MANY_PERCENT: i64 = 1_000_000;

/// `/sys/kernel/debug/sched/llc_balancing`.
const GROUP: Group =
    Group::of(&[ENABLED.0, TOLERANCE.0, PERIOD.0, TIMEOUT.0, OVERAGGR.0, IMBALANCE.0])
        .titled("Tasks that gather under one cache")
        .checked(check);

/// Whether the kernel as it comes gathers tasks there.
fn is_cache_aware(platform: &Platform, kernel: KernelRev) -> bool {
    kernel.has(features::SCHED_CACHE)
        && platform.caches().iter().filter(|c| !c.is_empty()).count() > 1
}

/// `cpu_smt_num_threads`
fn smt_threads(platform: &Platform) -> u64 {
    platform.topology.cores.iter().map(Vec::len).max().unwrap_or(1).max(1) as u64
}

/// The default of a setting; `None` where there is nothing to gather by.
fn of_knobs(platform: &Platform, policy: &Policy, of: fn(&Knobs) -> u64) -> Option<Value> {
    let knobs = || Knobs::of(platform.hz, smt_threads(platform));
    is_cache_aware(platform, policy.kernel).then(|| Value::Int(of(&knobs()) as i64))
}

/// Errors: such a setting of an older kernel.
fn check(_: &Platform, policy: &Policy, settings: &Settings) -> Result<(), InputError> {
    let set = ALL.into_iter().find(|of| settings.is_set(of));
    let Some(name) = set.filter(|_| !policy.kernel.has(features::SCHED_CACHE)) else {
        return Ok(());
    };
    let what = format!(
        "`{name}` is a setting of cache-aware scheduling, which kernels from 7.2 on have, and this is {}",
        policy.kernel
    );
    Err(InputError::new(policy.place_of(name.name), what))
}

/// The cache-aware state of a machine as it begins, by its settings; `None`: off.
fn of_experiment(e: &Experiment, m: &Machine) -> Option<Box<SchedCache>> {
    let on = e.settings.get(&ENABLED) == Some(1) && is_cache_aware(&e.platform, m.rev);
    if !on || muqss::of_settings(&e.settings).is_some() {
        return None;
    }
    let mut knobs = Knobs::of(e.platform.hz, smt_threads(&e.platform));
    let of = |of: &Int, own: u64| e.settings.get(of).map_or(own, |n| n.max(0) as u64);
    knobs.aggr_tolerance = of(&TOLERANCE, knobs.aggr_tolerance.into()) as u32;
    knobs.epoch_period = of(&PERIOD, knobs.epoch_period);
    knobs.epoch_affinity_timeout = of(&TIMEOUT, knobs.epoch_affinity_timeout);
    knobs.overaggr_pct = of(&OVERAGGR, knobs.overaggr_pct);
    knobs.imb_pct = of(&IMBALANCE, knobs.imb_pct);
    let mut caches = e.platform.caches();
    caches.retain(|cpus| !cpus.is_empty());
    caches.sort();
    let n = m.cpus.len();
    let mut llc_id = vec![0; n];
    for (id, cpu) in caches.iter().enumerate().flat_map(|(id, of)| of.iter().map(move |c| (id, c)))
    {
        llc_id[cpu.index()] = id as u32;
    }
    let process = Process {
        cpu: Cell::new(None),
        epoch: 0,
        next_scan: 0,
        nr_running_avg: 0,
        times: vec![CacheTime::default(); n],
    };
    let mut cache = SchedCache {
        knobs,
        active: false,
        llc_id,
        llcs: Vec::new(),
        preferring: vec![0; n],
        cpus: vec![CpuEpoch::default(); n],
        process,
        tasks: Vec::new(),
        main: None,
    };
    cache.rebuild(&m.cpus, &m.root.online);
    for llc in &cache.llcs {
        // As after a look at an idle machine.
        let capacity = llc.cpus.iter().map(|c| m.cpu(c).cpu_capacity.0).sum();
        llc.stats.set(LlcStats { util_avg: 0, capacity });
    }
    Some(Box::new(cache))
}

impl SchedCache {
    /// Builds the caches' state anew for other domains; nothing has been seen of them yet
    /// (`sched_cache_set`, `init_sched_domain_shared`).
    pub(crate) fn rebuild(&mut self, cpus: &[Cpu], online: &CpuSet) {
        let llcs = self.llc_id.iter().max().map_or(0, |last| *last as usize + 1);
        let mut found: Vec<Llc> = (0..llcs)
            .map(|_| Llc { cpus: CpuSet::EMPTY, size: 1, shared: false, stats: Cell::default() })
            .collect();
        self.active = false;
        for cpu in online.iter() {
            let c = &cpus[cpu.index()];
            let llc = &mut found[self.llc_id[cpu.index()] as usize];
            llc.cpus.insert(cpu);
            llc.shared |= c.place.llc.is_some();
            self.active |= c.place.llc.is_some_and(|level| c.sched_domains.len() > level + 1);
        }
        for llc in found.iter_mut().filter(|llc| llc.shared) {
            llc.size = llc.cpus.len() as u64;
        }
        self.llcs = found;
    }

    /// Epochs end as in a kernel in which it is the jiffy `there`, while here it is `here`: they are counted from its
    /// boot, when that was `INITIAL_JIFFIES`, five minutes before 2³².
    pub(crate) fn epochs_end_as(&mut self, here: u64, there: u64, hz: u32) {
        let initial = (1 << 32) - 300 * u64::from(hz);
        let period = self.knobs.period();
        let over = there.wrapping_sub(initial) % period;
        for rq in &mut self.cpus {
            let ends = (rq.next % period + over + period - here % period) % period;
            rq.next += (period - ends) % period;
        }
    }

    /// Accounts the time that a task of the process has run on `cpu`, up to `ran` ns in all.
    fn account(&mut self, cpu: CpuId, task: TaskId, ran: u64, jiffies: u64) {
        let accounted = std::mem::replace(&mut self.task(task).accounted, ran);
        let delta = ran.wrapping_sub(accounted);
        if delta as i64 <= 0 || !self.active {
            return;
        }
        let (period, size) = (self.knobs.period(), self.llc_size(cpu));
        let (rq, process) = (&mut self.cpus[cpu.index()], &mut self.process);
        let time = &mut process.times[cpu.index()];
        rq.update(time, jiffies, period);
        rq.account(time, delta);
        let unseen = rq.epoch.wrapping_sub(process.epoch) as i64;
        if unseen > self.knobs.epoch_affinity_timeout as i64 || self.invalid_llc_nr(size) {
            self.process.cpu.set(None);
        }
        let preferred = self.pref_llc();
        let before = std::mem::replace(&mut self.task(task).preferred_llc, preferred);
        if before != preferred {
            before.into_iter().for_each(|llc| self.preferring[llc as usize] -= 1);
            preferred.into_iter().for_each(|llc| self.preferring[llc as usize] += 1);
        }
    }

    /// `sd_llc_size`
    pub(crate) fn llc_size(&self, cpu: CpuId) -> u64 {
        self.llcs[self.llc_id[cpu.index()] as usize].size
    }

    /// Whether the process is too big for a cache of so many CPUs.
    pub(crate) fn invalid_llc_nr(&self, llc_size: u64) -> bool {
        self.knobs.invalid_llc_nr(self.process.nr_running_avg, llc_size)
    }

    /// `task_cache_work` on `cpu`: under which cache the process has run most; `running`: where a thread of it runs.
    fn scan(&mut self, cpu: CpuId, running: &CpuSet, jiffies: u64) {
        if jiffies < self.process.next_scan {
            return;
        }
        let (period, size) = (self.knobs.period(), self.llc_size(cpu));
        self.process.next_scan = jiffies + period;
        if self.invalid_llc_nr(size) {
            return self.process.cpu.set(None);
        }
        let preferred = self.pref_llc();
        let (mut most, mut at, mut own, mut nr_running) = (0, None, 0, 0);
        for (id, llc) in self.llcs.iter().enumerate().filter(|(_, llc)| llc.shared) {
            let (mut of_all, mut of_one, mut on) = (0, 0, None);
            for i in llc.cpus.iter() {
                let (rq, time) = (&mut self.cpus[i.index()], &mut self.process.times[i.index()]);
                rq.update(time, jiffies, period);
                let occupancy = rq.fraction(time);
                of_all += occupancy;
                if occupancy > of_one {
                    (of_one, on) = (occupancy, Some(i));
                }
                nr_running += u64::from(running.contains(i));
            }
            if of_all > most {
                (most, at) = (of_all, on);
            }
            if preferred == Some(id as u32) {
                own = of_all;
            }
        }
        if most > 2 * own {
            self.process.cpu.set(at);
        }
        let avg = &mut self.process.nr_running_avg;
        *avg = update_avg_scale(*avg, nr_running, size);
    }
}

impl Rq<'_, '_> {
    /// `account_mm_sched`: what the running task of this level has run since the last time.
    #[inline(never)]
    pub(crate) fn account_mm_sched(&mut self, g: GroupId) {
        let (cpu, m) = (self.cpu, self.m());
        let Some(curr) = m.queue(cpu, g).curr() else { return };
        let Some(task) = curr.id.as_task() else { return };
        let (ran, jiffies) = (curr.sum_exec_runtime, m.jiffies());
        if m.slots.cache.as_deref().is_some_and(|cache| m.has_cache_group(cache, task))
            && let Some(cache) = self.cache_mut()
        {
            cache.account(cpu, task, ran, jiffies);
        }
    }

    /// The picked task's time counts from now on.
    #[inline]
    pub(crate) fn account_from_now(&mut self, task: TaskId) {
        if self.m().slots.cache.is_none() {
            return;
        }
        let ran = self.m().fair_entity(self.cpu, task).map(|e| e.sum_exec_runtime);
        if let (Some(ran), Some(cache)) = (ran, self.cache_mut()) {
            cache.task(task).accounted = ran;
        }
    }

    /// Accounts about `ran` that the process has run here, as another trace says, aged by `ago`,
    /// the time since.
    pub(crate) fn has_run_before(&mut self, ran: Span, ago: Span) {
        let (cpu, jiffies, tick) = (self.cpu.index(), self.m().jiffies(), self.m().tick);
        let Some(cache) = self.cache_mut() else { return };
        let period = cache.knobs.period();
        let epochs = ago.0 / (period * tick.0);
        let (rq, time) = (&mut cache.cpus[cpu], &mut cache.process.times[cpu]);
        rq.update(time, jiffies, period);
        rq.account(time, ran.0.checked_shr(epochs.min(64) as u32).unwrap_or(0));
    }

    /// Gives a task of the process work to do, once an epoch.
    #[inline]
    pub(crate) fn task_tick_cache(&mut self, curr: TaskId) {
        let Some(cache) = self.m().sched_cache() else { return };
        let (has_group, cpu) = (self.m().has_cache_group(cache, curr), self.cpu);
        if let Some(cache) = self.cache_mut().filter(|_| has_group) {
            let epoch = cache.cpus[cpu.index()].epoch;
            if epoch > cache.process.epoch && !std::mem::replace(&mut cache.task(curr).work, true) {
                cache.process.epoch = epoch;
            }
        }
    }

    /// `curr` goes back to user mode, and does what it has been given to do before (`task_work_run`).
    #[inline]
    pub(crate) fn resume_user_mode_work(&mut self, curr: TaskId) {
        let Some(cache) = self.m().sched_cache() else { return };
        if cache.tasks.get(curr.index()).is_some_and(|t| t.work) {
            self.task_cache_work(curr);
        }
    }

    fn task_cache_work(&mut self, curr: TaskId) {
        let (cpu, m) = (self.cpu, self.m());
        let jiffies = m.jiffies();
        let Some(cache) = m.sched_cache() else { return };
        let runs = |c: &CpuId| m.cpu(*c).curr.is_some_and(|task| m.has_cache_group(cache, task));
        let running: CpuSet = m.root.online.iter().filter(runs).collect();
        if let Some(cache) = self.cache_mut() {
            cache.task(curr).work = false;
            cache.scan(cpu, &running, jiffies);
        }
    }
}

impl Machine {
    /// Returns the state of cache-aware scheduling, while it is active.
    #[inline]
    pub(crate) fn sched_cache(&self) -> Option<&SchedCache> {
        self.slots.cache.as_deref().filter(|cache| cache.active)
    }

    /// Whether it is a thread of the process (`p->sched_cache_grp`); kthreads are none.
    pub(crate) fn has_cache_group(&self, cache: &SchedCache, task: TaskId) -> bool {
        match self.task(task).role {
            Role::User => self.service != Some(task),
            Role::Creator => [self.creator, cache.main].contains(&Some(task)),
            Role::Sugov(_) | Role::Stopper => false,
        }
    }

    /// `sd->llc_counts[llc]` of `cpu`: its queued tasks, those asleep whose dequeue is delayed counted, that
    /// prefer that cache.
    pub(crate) fn llc_counts(&self, cache: &SchedCache, cpu: CpuId, llc: u32) -> u64 {
        if self.cpu(cpu).h_nr_queued() == 0 {
            return 0;
        }
        let queued = self.fair_queued(cpu);
        queued.filter(|(task, _)| cache.preferred_llc(*task) == Some(llc)).count() as u64
    }

    /// `rq->nr_pref_llc_running`: its queued tasks that want to run, and in its own cache.
    pub(crate) fn nr_pref_llc_running(&self, cache: &SchedCache, cpu: CpuId) -> usize {
        let own = Some(cache.llc_id[cpu.index()]);
        let queued = self.fair_queued(cpu).filter(|(_, e)| !e.sched_delayed);
        queued.filter(|(task, _)| cache.preferred_llc(*task) == own).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_are_counted_from_a_boot() {
        let mut cache = SchedCache {
            knobs: Knobs { epoch_period: 10, ..Knobs::of(1000, 1) },
            active: true,
            llc_id: vec![0; 2],
            llcs: Vec::new(),
            preferring: vec![0; 2],
            cpus: vec![CpuEpoch { next: 20, ..CpuEpoch::default() }, CpuEpoch::default()],
            process: Process {
                cpu: Cell::new(None),
                epoch: 0,
                next_scan: 0,
                nr_running_avg: 0,
                times: Vec::new(),
            },
            tasks: Vec::new(),
            main: None,
        };
        // 7 jiffies after the end of an epoch there it is jiffy 25 here: they end at 18, 28, 38 here.
        let there = (1 << 32) - 300_000 + 4_567;
        for _ in 0..2 {
            cache.epochs_end_as(25, there, 1000);
            assert_eq!([cache.cpus[0].next, cache.cpus[1].next], [28, 8]);
        }
        cache.epochs_end_as(25 + 40, there + 40, 1000);
        assert_eq!([cache.cpus[0].next, cache.cpus[1].next], [28, 8]);
    }
}
