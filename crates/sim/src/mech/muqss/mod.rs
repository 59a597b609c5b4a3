//! MuQSS in place of the fair class: a skip list of virtual deadlines on each CPU, and no balancing but that
//! whoever looks for a task looks on all CPUs.
//!
//! ```text
//! wakeup   the task's own CPU if idle, else the nearest idle one, else the one with the least load
//!          ─> an idle CPU is told, else the nearest whose task has a later deadline
//! slice    over (a timer, or a tick with less than 0.1 ms left) ─> new slice, new deadline
//! look     who ran goes back into the skip list
//!          nearest CPU first: best_key read without its lock; if earlier than the best so far
//!              trylock ── held by another ─> that CPU is passed over
//!                      ── taken ─> its first task that may run here
//! ```
//!
//! `sched_interactive=0`: only tasks of longer queues than the best so far are taken, and only CPUs with more
//! load than the task's own are preempted. A lock is held while a CPU looks (`rq_lock_ns`; unset: for no time,
//! so that nobody gives up). Slice, deadline, order and load: [`risetime_kernel::muqss`].
//!
//! It has no PELT, no energy-aware placement, no clamps, no task groups: `util` of a task is not
//! there, and what cpufreq follows is the load of the queue ([`risetime_kernel::muqss::LoadAvg`]), as a share of the CPU.
//!
//! DEVIATES(muqss-rt): with MuQSS real-time tasks stand in its own skip lists, and there is no deadline class.
//! Here they are of the classes that they are of without it, and are pushed, pulled and throttled as the policy's
//! kernel does. It shows where real-time tasks of one CPU compete: they stay in MuQSS until somebody takes them.
//!
//! DEVIATES(muqss-cpufreq): MuQSS has cpufreq look only where the change of load happens on the CPU itself; here also
//! where another CPU wakes a task there, some microseconds earlier. How its schedutil reads the load was not
//! found: it is taken as util of 1024, at most that, and not scaled by the frequency.
//!
//! Left out: SCHED_ISO, SMT nice (a thread beside a nicer one waits), runqueues that CPUs share (`rqshare`, later than
//! 4.14), CPUs without high-resolution timers (the dither of half a tick), sync wakeups (nothing here makes one).
//! Source: kernel/sched/MuQSS.c of linux-ck 4.14, symbols named at each function; see docs/muqss.md.

pub(crate) mod state;

use crate::kernel::class::sched_class::{Preempts, SchedClass};
use crate::kernel::placement::Placement;
use crate::kernel::rq::Rq;
use crate::kernel::tracker::TRACKER;
use crate::mech::mechanism::Mechanism;
use crate::mech::muqss::state::{Locality, MuqssRq};
use crate::state::class::{Class, ClassTimer, fair_policy};
use crate::state::cpuset::CpuSet;
use crate::state::effects::Effects;
use crate::state::hooks::{Placed, Waker};
use crate::state::machine::{Machine, State, Task};
use risetime_kernel::eevdf::{DequeueKind, EnqueueKind, FairPolicy};
use risetime_kernel::features;
use risetime_kernel::muqss::{Entity, LoadAvg, SkipList, Tunables, YieldType};
use risetime_kernel::units::{CpuId, Instant, Span, TaskId};
use risetime_model::settings::{Default, Group, Home, Int, Name, Neutral, Param, Range, Settings};
use risetime_model::{Experiment, InputError, Platform, Policy};
use risetime_trace::Why;

impl Mechanism for state::Own {
    const LISTED_LATE: bool = true;
    fn groups() -> Vec<Group> {
        vec![GROUP]
    }
    fn of_machine(e: &Experiment, _: &Machine) -> Option<state::Muqss> {
        of_settings(&e.settings)
    }
    fn of_cpu(_: &Experiment, m: &Machine, cpu: CpuId) -> Option<Box<MuqssRq>> {
        m.slots.muqss.map(|_| Box::new(queue(m, cpu)))
    }
    fn notes(e: &Experiment) -> Vec<String> {
        notes(e)
    }
}

const FAIR_CLASS: Name = Name::new(Param {
    name: "sched_fair_class",
    doc: "scheduler of tasks with nice values: mainline = CFS or EEVDF, as the policy's kernel; muqss = MuQSS (kernels before 6.12)",
    unit: "",
    range: Range::OneOf(&["mainline", "muqss"]),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Name("mainline")),
});
const RR_INTERVAL: Int = Int::new(sysctl(
    "rr_interval",
    "kernel.rr_interval",
    "slice of every task, and what deadlines are multiples of (only with sched_fair_class=muqss, here and below; unset: 6)",
    "ms",
    Range::Int(1, 1000),
));
const INTERACTIVE: Int = Int::new(sysctl(
    "sched_interactive",
    "kernel.interactive",
    "a CPU takes the earliest deadline of all CPUs; 0 = only from queues longer than its own (unset: 1)",
    "",
    Range::Int(0, 1),
));
const YIELD_TYPE: Int = Int::new(sysctl(
    "sched_yield_type",
    "kernel.yield_type",
    "what sched_yield does: 0 = nothing, 1 = lets an earlier deadline go first, 2 = gives up the slice (unset: 1)",
    "kind",
    Range::Int(0, 2),
));
const LOCK: Int = Int::new(Param {
    name: "rq_lock_ns",
    doc: "time for which a CPU that looks for its next task holds the lock of its queue, so that others which try it give up (unset: 0)",
    unit: "ns",
    range: Range::Int(0, 1_000_000),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Int(0)),
});
/// Settings that mean nothing without MuQSS.
const OWN: &[Int] = &[RR_INTERVAL, INTERACTIVE, YIELD_TYPE, LOCK];

const fn sysctl(
    name: &'static str,
    of: &'static str,
    doc: &'static str,
    unit: &'static str,
    range: Range,
) -> Param {
    let home = Home::Patched(Some(of), Neutral::Any);
    Param { name, doc, unit, range, default: Default::Unset, home }
}

const GROUP: Group = Group::of(&[FAIR_CLASS.0, RR_INTERVAL.0, INTERACTIVE.0, YIELD_TYPE.0, LOCK.0])
    .titled("MuQSS")
    .checked(check);

/// Errors: settings of MuQSS without it; MuQSS with what cannot be beside it.
fn check(_: &Platform, policy: &Policy, settings: &Settings) -> Result<(), InputError> {
    if settings.get(&FAIR_CLASS) != Some("muqss") {
        let Some(name) = OWN.iter().find(|of| settings.is_set(*of)) else {
            return Ok(());
        };
        let what = format!("`{name}` is a setting of {FAIR_CLASS}=muqss");
        return Err(InputError::new(policy.place_of(name.name), what)
            .hint(format!("leave `{name}` out, or add {FAIR_CLASS}=muqss")));
    }
    let refused = if policy.kernel.has(features::FAIR_SERVER) {
        format!("MuQSS knows nothing of the fair server that {} has", policy.kernel)
    } else if settings.get(&TRACKER).is_some_and(|tracker| tracker != "pelt") {
        "MuQSS has no tracker but its own".into()
    } else {
        return Ok(());
    };
    Err(InputError::new(policy.place_of(FAIR_CLASS.name), refused)
        .hint("the preset muqss-4.14 has all that goes with it"))
}

/// The note on what has no effect with MuQSS; empty without it.
fn notes(e: &Experiment) -> Vec<String> {
    let groups = e.workload.group_paths().len() > 1;
    let on = of_settings(&e.settings).is_some() && groups;
    on.then(|| "without effect: task groups: MuQSS has none".to_string()).into_iter().collect()
}

/// The MuQSS state that settings ask for; `None`: the fair class is mainline's.
pub(crate) fn of_settings(settings: &Settings) -> Option<crate::mech::muqss::state::Muqss> {
    let own = Tunables::default();
    let yields = |n: i64| match n {
        0 => YieldType::No,
        1 => YieldType::Better,
        _ => YieldType::Expire,
    };
    let int = |of: &Int| settings.get(of);
    (settings.get(&FAIR_CLASS) == Some("muqss")).then(|| crate::mech::muqss::state::Muqss {
        tunables: Tunables {
            rr_interval: int(&RR_INTERVAL).map_or(own.rr_interval, |ms| ms.max(1) as u64),
            interactive: int(&INTERACTIVE).map_or(own.interactive, |on| on != 0),
            yield_type: int(&YIELD_TYPE).map_or(own.yield_type, yields),
        },
        holds_lock: Span(int(&LOCK).unwrap_or(0).max(0) as u64),
    })
}

/// Creates the queue of `cpu`.
fn queue(m: &Machine, cpu: CpuId) -> MuqssRq {
    let niffies = m.niffies();
    let mut order: Vec<CpuId> = (0..m.cpus.len() as u32).map(CpuId).collect();
    order.sort_by_key(|other| (m.locality(cpu, *other), *other));
    MuqssRq {
        queue: SkipList::default(),
        curr: None,
        last_ran: niffies,
        load: LoadAvg::new(niffies),
        expires: None,
        locked_until: Instant(0),
        looks: false,
        order,
    }
}

/// SCHED_OTHER, SCHED_BATCH, SCHED_IDLE with MuQSS.
pub(crate) struct Muqss;

impl SchedClass for Muqss {
    fn about(&self) -> (&'static str, &'static str) {
        (
            "sched_fair_class=muqss",
            "MuQSS in place of the fair class: virtual deadlines in skip lists (linux-ck 4.14)",
        )
    }
    fn enqueue(&self, rq: &mut Rq<'_, '_>, task: TaskId, kind: EnqueueKind, _: bool) {
        if kind == EnqueueKind::Initial {
            rq.muqss_fork(task);
        }
        rq.enqueue_task_muqss(task);
        if kind == EnqueueKind::Initial && rq.muqss().queue.entries() > 1 {
            rq.resched_idle_beside_parent(task);
        }
    }
    fn dequeue(&self, rq: &mut Rq<'_, '_>, task: TaskId, kind: DequeueKind) {
        if rq.muqss().curr == Some(task) {
            rq.update_cpu_clock(task);
            if matches!(kind, DequeueKind::Sleep | DequeueKind::SleepSpecial) {
                rq.check_deadline(task);
            }
            rq.muqss().curr = None;
            rq.hrexpiry_start(None);
        } else {
            rq.dequeue_task_muqss(task);
        }
    }
    fn pick(&self, rq: &mut Rq<'_, '_>) -> Option<TaskId> {
        rq.m().slots.muqss?;
        rq.return_task();
        let next = rq.earliest_deadline_task();
        if next.is_none() {
            rq.muqss_load();
        }
        rq.set_rq_task(next);
        next
    }
    fn wakeup_preempt(&self, rq: &mut Rq<'_, '_>, curr: TaskId, task: TaskId, _: bool) -> Preempts {
        let m = rq.m();
        // An idle CPU is told instead ([`Self::woken`]).
        let here = !m.muqss_rq(rq.cpu).looks
            && m.best_idle_cpu(task).is_none()
            && m.can_preempt(task, curr);
        if here { Preempts::Now } else { Preempts::No }
    }
    fn put_prev(&self, rq: &mut Rq<'_, '_>, prev: TaskId, next: Option<TaskId>) {
        if next == Some(prev) {
            return;
        }
        if rq.muqss().curr == Some(prev) {
            // A higher class takes the CPU, so that nobody was picked here.
            rq.return_task();
        }
        if next.is_some() && rq.m().task(prev).state == State::Runnable {
            // `resched_suitable_idle`
            if let Some(idle) = rq.m().best_idle_cpu(prev) {
                rq.resched_cpu(idle);
            }
        }
    }
    fn set_next(&self, rq: &mut Rq<'_, '_>, task: TaskId) {
        debug_assert!(rq.muqss().curr == Some(task), "its pick has put it there");
    }
    fn tick(&self, rq: &mut Rq<'_, '_>, curr: TaskId) {
        rq.muqss_load();
        rq.update_cpu_clock(curr);
        // `task_running_tick`
        if rq.m().muqss_entity(curr).is_expired() {
            rq.set_need_resched();
        }
    }
    fn yield_task(&self, rq: &mut Rq<'_, '_>, curr: TaskId) {
        if rq.m().muqss_tunables().yield_type == YieldType::Expire {
            rq.time_slice_expired(curr);
        }
    }
    /// `try_preempt`, on CPUs other than its own.
    fn woken(&self, rq: &mut Rq<'_, '_>, task: TaskId) {
        let (m, cpu) = (rq.m(), rq.cpu);
        if m.muqss_rq(cpu).looks || m.cpu(cpu).curr.is_none() || m.muqss_entity(task).node.is_none()
        {
            return;
        }
        let other = m.best_idle_cpu(task).or_else(|| m.preemptible_cpu(cpu, task));
        if let Some(other) = other.filter(|other| *other != cpu) {
            rq.resched_cpu(other);
        }
    }
    /// `select_best_cpu`.
    fn select_task_rq(
        &self,
        m: &Machine,
        _: &mut dyn Placement,
        task: TaskId,
        _: Waker,
        _: &mut Effects,
    ) -> Placed {
        let prev = m.task(task).cpu;
        if let Some(cpu) = m.best_idle_cpu(task) {
            let why = if cpu == prev { Why::PrevCpu } else { Why::IdleSibling };
            return Placed { cpu, why };
        }
        let order = &m.muqss_rq(prev).order;
        let usable = order.iter().copied().filter(|cpu| m.is_cpu_allowed(task, *cpu));
        // Of equals the first: the nearest.
        match usable.min_by_key(|cpu| m.rq_load(*cpu)) {
            Some(cpu) if cpu != prev => Placed { cpu, why: Why::LeastLoad },
            _ => Placed { cpu: prev, why: Why::PrevCpu },
        }
    }
    /// Places a new task where its parent is, if it may be there; an idle CPU takes it from there.
    fn select_task_rq_fork(
        &self,
        m: &Machine,
        _: &mut dyn Placement,
        task: TaskId,
        _: &mut Effects,
    ) -> Placed {
        m.within_allowed(task, Placed { cpu: m.task(task).cpu, why: Why::PrevCpu })
    }
}

impl Machine {
    /// `cpu_locality` of `b` as `a` sees it.
    fn locality(&self, a: CpuId, b: CpuId) -> Locality {
        let node = |cpu: CpuId| self.platform.topology.nodes.iter().position(|n| n.contains(&cpu));
        if a == b {
            Locality::Same
        } else if self.cpu(a).place.smt.contains(&b) {
            Locality::Smt
        } else if self.cpus_share_cache(a, b) {
            Locality::Cache
        } else if node(a) == node(b) {
            Locality::Node
        } else {
            Locality::Distant
        }
    }

    /// Whether a task is one of MuQSS's.
    fn is_muqss(&self, task: TaskId) -> bool {
        self.class_of(task) == Class::Muqss
    }

    /// `cpu_idle_map`: the CPUs whose current task is the idle one.
    pub(crate) fn cpu_idle_map(&self) -> CpuSet {
        self.root.online.iter().filter(|c| self.cpu(*c).curr.is_none()).collect()
    }

    /// `rq->niffies`, which all CPUs have alike here.
    fn niffies(&self) -> u64 {
        self.sched_clock().0
    }
    fn muqss_rq(&self, cpu: CpuId) -> &MuqssRq {
        self.cpu(cpu).slots.muqss.as_deref().expect("MuQSS is on")
    }
    fn muqss_tunables(&self) -> Tunables {
        self.slots.muqss.map(|muqss| muqss.tunables).unwrap_or_default()
    }
    fn muqss_entity(&self, task: TaskId) -> Entity {
        self.task(task).sched.muqss.unwrap_or_default()
    }
    fn muqss_policy(&self, task: TaskId) -> FairPolicy {
        fair_policy(self.task(task).sched.policy)
    }

    /// Whether `sched_yield` of the task that runs there does not even look.
    pub(crate) fn ignores_yield(&self, cpu: CpuId) -> bool {
        self.slots.muqss.is_some_and(|muqss| muqss.tunables.yield_type == YieldType::No)
            && self.cpu(cpu).curr.is_some_and(|curr| self.is_muqss(curr))
    }

    /// Whether `task` takes the CPU from `curr`.
    fn can_preempt(&self, task: TaskId, curr: TaskId) -> bool {
        let running = (&self.muqss_entity(curr), self.muqss_policy(curr));
        self.is_muqss(curr) && self.muqss_entity(task).can_preempt(self.muqss_policy(task), running)
    }

    /// `rq_load`: tasks that wait there, and whoever runs.
    fn rq_load(&self, cpu: CpuId) -> usize {
        self.muqss_rq(cpu).queue.entries() + usize::from(self.cpu(cpu).curr.is_some())
    }

    /// The idle CPU that suits `task` best (`best_mask_cpu`): its own, else by what they share.
    fn best_idle_cpu(&self, task: TaskId) -> Option<CpuId> {
        let own = self.task(task).cpu;
        let idle = self.task(task).allowed.and(&self.cpu_idle_map());
        if idle.contains(own) {
            return Some(own);
        }
        idle.iter().min_by_key(|cpu| (self.ranking(own, *cpu, &idle), *cpu))
    }

    /// `CPUIDLE_…`: the lower, the better. `idle`: the CPUs that are, as far as the task may use them.
    fn ranking(&self, own: CpuId, cpu: CpuId, idle: &CpuSet) -> u32 {
        const DIFF_THREAD: u32 = 1;
        const DIFF_CORE: u32 = 2;
        const CACHE_BUSY: u32 = 4;
        const DIFF_CPU: u32 = 8;
        const THREAD_BUSY: u32 = 16;
        const DIFF_NODE: u32 = 32;
        let is_idle = |c: CpuId| idle.contains(c) || self.cpu(c).curr.is_none();
        let cache_idle = || {
            let all = (0..self.cpus.len() as u32).map(CpuId);
            all.filter(|c| self.cpus_share_cache(cpu, *c)).all(is_idle)
        };
        let locality = self.locality(own, cpu);
        let apart = match locality {
            Locality::Distant => DIFF_NODE,
            Locality::Node => DIFF_CPU,
            Locality::Cache => DIFF_CORE,
            Locality::Smt | Locality::Same if !cache_idle() => CACHE_BUSY,
            Locality::Smt | Locality::Same => 0,
        };
        let thread = if locality == Locality::Smt { DIFF_THREAD } else { 0 };
        let siblings = self.cpu(cpu).place.smt.iter().copied().all(is_idle);
        apart | thread | if siblings { 0 } else { THREAD_BUSY }
    }

    /// The nearest CPU whose task gives way to `task`, which waits on `cpu` (`try_preempt`).
    fn preemptible_cpu(&self, cpu: CpuId, task: TaskId) -> Option<CpuId> {
        let (interactive, load) = (self.muqss_tunables().interactive, self.rq_load(cpu));
        self.muqss_rq(cpu).order.iter().copied().find(|other| {
            let fuller = interactive || *other == cpu || self.rq_load(*other) > load;
            let curr = self.cpu(*other).curr;
            self.is_cpu_allowed(task, *other)
                && fuller
                && curr.is_some_and(|curr| self.can_preempt(task, curr))
        })
    }

    /// The task that should run on `cpu`, and the CPU where it waits.
    fn earliest_deadline(&self, cpu: CpuId) -> Option<(TaskId, CpuId)> {
        let interactive = self.muqss_tunables().interactive;
        let (mut best, mut best_key, mut best_entries) = (None, u64::MAX, 0);
        for &other in &self.muqss_rq(cpu).order {
            let rq = self.muqss_rq(other);
            if interactive {
                if rq.queue.entries() == 0 {
                    continue;
                }
            } else if best.is_some() && self.locality(cpu, other) == Locality::Distant {
                break;
            } else if rq.queue.entries() <= best_entries {
                continue;
            }
            // Read without the lock; then `trylock_rq`.
            if other != cpu && (rq.queue.best_key() >= best_key || rq.locked_until > self.now) {
                continue;
            }
            for (key, task) in rq.queue.iter().take_while(|(key, _)| *key < best_key) {
                if self.is_cpu_allowed(task, cpu) {
                    (best, best_key) = (Some((task, other)), key);
                    best_entries = rq.queue.entries();
                    break;
                }
                if !interactive {
                    break;
                }
            }
        }
        best
    }
}

impl Rq<'_, '_> {
    fn muqss(&mut self) -> &mut MuqssRq {
        self.c().slots.muqss.as_deref_mut().expect("MuQSS is on")
    }
    fn muqss_change(&mut self, task: TaskId, change: impl FnOnce(&mut Entity)) {
        if let Some(entity) = &mut self.t(task).sched.muqss {
            change(entity);
        }
    }

    /// `enqueue_task`.
    fn enqueue_task_muqss(&mut self, task: TaskId) {
        let (m, niffies) = (self.m(), self.m().niffies());
        let key = m.muqss_entity(task).sl_id(m.muqss_policy(task));
        // What is below about a microsecond is no random number on some machines.
        let node = self.muqss().queue.insert(key, task, (niffies >> 10) as u32);
        self.muqss_change(task, |e| e.node = Some(node));
        self.muqss_load();
    }

    /// `dequeue_task`.
    fn dequeue_task_muqss(&mut self, task: TaskId) {
        let Some(node) = self.m().muqss_entity(task).node else { return };
        self.muqss().queue.delete(node);
        self.muqss_change(task, |e| e.node = None);
        self.muqss_load();
    }

    /// `update_load_avg`.
    fn muqss_load(&mut self) {
        let (niffies, load) = (self.m().niffies(), self.m().rq_load(self.cpu));
        if self.muqss().load.update(niffies, load as u64) {
            self.cpufreq_update_util();
        }
    }

    /// Charges what `curr` ran to its slice.
    fn update_cpu_clock(&mut self, curr: TaskId) {
        let niffies = self.m().niffies();
        let ran = niffies - std::mem::replace(&mut self.muqss().last_ran, niffies);
        self.muqss_change(curr, |e| e.account(ran));
    }

    fn time_slice_expired(&mut self, task: TaskId) {
        let (niffies, tunables) = (self.m().niffies(), self.m().muqss_tunables());
        let nice = self.m().task(task).nice;
        self.muqss_change(task, |e| e.time_slice_expired(&tunables, niffies, nice));
    }

    fn check_deadline(&mut self, task: TaskId) {
        let (niffies, tunables) = (self.m().niffies(), self.m().muqss_tunables());
        let (nice, policy) = (self.m().task(task).nice, self.m().muqss_policy(task));
        self.muqss_change(task, |e| e.check_deadline(&tunables, niffies, nice, policy));
    }

    /// Sets slice and deadline of a new task: half of its parent's slice, if a task has created it
    /// that has enough left; else its own.
    fn muqss_fork(&mut self, task: TaskId) {
        let forked = self.m().is_fork(task);
        let parent = self.muqss().curr.filter(|_| forked);
        let mut shared = None;
        if let Some(parent) = parent {
            self.update_cpu_clock(parent);
            self.muqss_change(parent, |e| shared = e.fork());
            let left = self.m().muqss_entity(parent).left_ns();
            self.hrexpiry_start(Some(left));
        }
        match (shared, parent) {
            (Some(shared), Some(parent)) => {
                let (tunables, m) = (self.m().muqss_tunables(), self.m());
                let (before, nice) = (m.task(parent).nice, m.task(task).nice);
                self.muqss_change(task, |e| {
                    *e = shared;
                    e.adjust_deadline(&tunables, before, nice);
                });
            }
            _ => self.time_slice_expired(task),
        }
    }

    /// A thread that creates tasks and is none of the simulation's is awake on this CPU, so that of several new
    /// tasks here all but the first are for other CPUs.
    fn resched_idle_beside_parent(&mut self, task: TaskId) {
        let m = self.m();
        if m.cpu(self.cpu).curr.is_some() {
            return;
        }
        let mut others = m.task(task).allowed.and(&m.cpu_idle_map());
        others.remove(self.cpu);
        let ranking = |cpu: &CpuId| (m.ranking(self.cpu, *cpu, &others), *cpu);
        if let Some(idle) = others.iter().min_by_key(ranking) {
            self.resched_cpu(idle);
        }
    }

    /// `return_task`: who runs is one of those who wait, with what is left of his slice.
    fn return_task(&mut self) {
        let Some(prev) = self.muqss().curr else { return };
        self.update_cpu_clock(prev);
        self.check_deadline(prev);
        self.muqss().curr = None;
        self.enqueue_task_muqss(prev);
        self.hrexpiry_start(None);
    }

    /// `earliest_deadline_task`: who runs next is here, and in no queue.
    fn earliest_deadline_task(&mut self) -> Option<TaskId> {
        let (task, from) = self.m().earliest_deadline(self.cpu)?;
        if from != self.cpu {
            self.muqss().looks = true;
            self.take_queued(task, from, Why::EarliestDeadline);
            self.muqss().looks = false;
        }
        self.dequeue_task_muqss(task);
        Some(task)
    }

    /// `set_rq_task`; and the lock is held for a while.
    pub(crate) fn set_rq_task(&mut self, task: Option<TaskId>) {
        let (niffies, now) = (self.m().niffies(), self.m().now);
        let holds = self.m().slots.muqss.map_or(Span(0), |muqss| muqss.holds_lock);
        if let Some(task) = task {
            self.dequeue_task_muqss(task);
        }
        let rq = self.muqss();
        (rq.curr, rq.last_ran, rq.locked_until) = (task, niffies, now + holds);
        let left = task.map(|task| self.m().muqss_entity(task).left_ns());
        self.hrexpiry_start(left);
    }

    /// `hrexpiry_start`: the CPU looks in so many ns; `None`: `hrexpiry_clear`.
    fn hrexpiry_start(&mut self, left_ns: Option<u64>) {
        let (cpu, clock) = (self.cpu, self.m().sched_clock());
        let after = left_ns.map(|ns| clock + Span(ns));
        let before = std::mem::replace(&mut self.muqss().expires, after);
        self.arm_changed(ClassTimer::SliceOver(cpu), before, after);
    }

    /// `hrexpiry`.
    pub(crate) fn hrexpiry(&mut self) {
        self.muqss().expires = None;
        if let Some(curr) = self.muqss().curr {
            self.update_cpu_clock(curr);
            self.muqss_change(curr, |e| e.time_slice = 0);
            self.resched_curr();
        }
    }

    /// Changes something of `task` by which it is sorted: it leaves its queue and comes back.
    pub(crate) fn muqss_requeue(&mut self, task: TaskId, change: impl FnOnce(&mut Task)) {
        let waits = self.m().muqss_entity(task).node.is_some();
        if waits {
            self.dequeue_task_muqss(task);
        }
        change(self.t(task));
        if waits {
            self.enqueue_task_muqss(task);
        }
    }

    /// `set_user_nice` of a task whose nice value was `before`: the deadline moves with it.
    pub(crate) fn prio_changed_muqss(&mut self, task: TaskId, before: i8) {
        if !self.m().is_muqss(task) {
            return;
        }
        let (tunables, nice) = (self.m().muqss_tunables(), self.m().task(task).nice);
        self.muqss_requeue(task, |t| {
            if let Some(entity) = &mut t.sched.muqss {
                entity.adjust_deadline(&tunables, before, nice);
            }
        });
        if self.muqss().curr == Some(task) && nice > before {
            self.resched_curr();
        } else if self.m().muqss_entity(task).node.is_some() && nice < before {
            self.wakes(task, false);
        }
    }
}
