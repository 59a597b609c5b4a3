//! One runqueue, locked (`struct rq` under `rq->lock`).
//!
//! ```text
//! Kernel ── rq(cpu) ──> Rq    changes   its CPU, the tasks and groups there, its own flags and timers
//!                             reads     all of the machine
//!                             tells     the trace, the event queue, the tracker
//!                             calls up  cpufreq_update_util              its governor looks, at once
//!                                       governor_attends                 its governor hears of more than util
//!                                       wake_up                          its timer wakes a task
//!                                       move_queued                      a task of its own leaves for another CPU
//!                                       push_…, pull_…, newidle_…, …     balancing, of which it is the occasion
//!                                       take_queued, resched_cpu         MuQSS, whose CPUs share their tasks
//!                                       core_shared                      the other threads of its core
//! ```
//!
//! What happens on one CPU is a method of this and cannot reach another CPU but by these names: the field is private to
//! this file. Who looks at several CPUs, or moves tasks between them, has the whole [`Kernel`]. Which tasks are there
//! is not checked: whoever asks for one says that it is here, comes or goes.

use crate::kernel::Kernel;
use crate::kernel::governor::Occasion;
use crate::mech::cache::state::SchedCache;
use crate::mech::preempt::state::Preempt;
use crate::mech::series::state::Series;
use crate::state::bandwidth::{Pool, RqBandwidth};
use crate::state::class::ClassTimer;
use crate::state::costs::{Amount, Kind, quantile};
use crate::state::cpuset::CpuSet;
use crate::state::effects::Effects;
use crate::state::group::{GroupRq, Groups};
use crate::state::hooks::Hooks;
use crate::state::hooks::Waker;
use crate::state::machine::{Cpu, FreqDomain, Machine, Role, State, Task};
use crate::state::tracker::Heard;
use crate::time::queue::Ev;
use risetime_kernel::cfs_rq::CfsRq;
use risetime_kernel::deadline::DlEntity;
use risetime_kernel::pelt::Decay;
use risetime_kernel::uclamp::{UclampLimits, UclampRq, UclampTask};
use risetime_kernel::units::{CpuId, GroupId, Instant, Span, TaskId, Util};
use risetime_kernel::{KernelRev, features};
use risetime_model::InputError;
use risetime_trace::{Event, Hears, Why};

/// A runqueue, and what may be changed with it.
pub(crate) struct Rq<'k, 'a> {
    k: &'k mut Kernel<'a>,
    pub(crate) cpu: CpuId,
}

/// Parts of a runqueue side by side.
pub(crate) struct Parts<'m> {
    pub(crate) c: &'m mut Cpu,
    pub(crate) tasks: &'m mut [Task],
    pub(crate) groups: &'m mut Groups,
    pub(crate) domain: &'m FreqDomain,
    pub(crate) series: &'m Series,
    pub(crate) hooks: Option<&'m dyn Hooks>,
    pub(crate) decay: &'static Decay,
    pub(crate) rev: KernelRev,
    pub(crate) now: Instant,
}

impl<'a> Kernel<'a> {
    /// Locks a runqueue.
    #[inline]
    pub(crate) fn rq(&mut self, cpu: CpuId) -> Rq<'_, 'a> {
        if let Some(tally) = &mut self.m.tally {
            tally.touch(cpu);
        }
        Rq { k: self, cpu }
    }
}

impl Rq<'_, '_> {
    /// The machine, to read.
    #[inline]
    pub(crate) fn m(&self) -> &Machine {
        &self.k.m
    }
    /// The CPU.
    #[inline]
    pub(crate) fn c(&mut self) -> &mut Cpu {
        &mut self.k.m.cpus[self.cpu.index()]
    }
    /// A task that is here, comes or goes.
    #[inline]
    pub(crate) fn t(&mut self, task: TaskId) -> &mut Task {
        &mut self.k.m.tasks[task.index()]
    }
    /// A group's part of this CPU.
    #[inline]
    pub(crate) fn level(&mut self, g: GroupId) -> &mut GroupRq {
        self.k.m.groups.rq_mut(self.cpu, g)
    }
    /// The queue that tasks of `g` are in, its clock at the CPU's.
    #[inline]
    pub(crate) fn queue_mut(&mut self, g: GroupId) -> &mut CfsRq {
        let m = &mut self.k.m;
        m.groups.queue_mut(&mut m.cpus[self.cpu.index()], self.cpu, g)
    }
    /// A deadline task's reservation.
    pub(crate) fn dl_mut(&mut self, task: TaskId) -> &mut DlEntity {
        let t = self.t(task);
        t.sched.dl.as_deref_mut().expect("a deadline task has a reservation")
    }
    /// Borrows several parts of the machine at once.
    #[inline]
    pub(crate) fn parts(&mut self) -> Parts<'_> {
        let m = &mut self.k.m;
        let c = &mut m.cpus[self.cpu.index()];
        Parts {
            domain: &m.domains[c.domain],
            c,
            tasks: &mut m.tasks,
            groups: &mut m.groups,
            series: &m.slots.series,
            hooks: m.hooks.as_deref(),
            decay: m.decay,
            rev: m.rev,
            now: m.now,
        }
    }

    // ------------------------------------------------------------------ what the machine keeps of a CPU

    /// The time that a step of this kind takes a task this time.
    pub(crate) fn takes(&mut self, kind: Kind, task: TaskId) -> Span {
        let amount = self.m().costs.amounts[kind as usize];
        match amount {
            Amount::Fixed(span) => span,
            _ if !matches!(self.m().task(task).role, Role::User) => Span(0),
            Amount::Drawn(_) | Amount::ByBusy(_) => {
                let draw = self.t(task).drawn.next(kind);
                self.amount(amount, draw)
            }
        }
    }
    /// The time that a step of this kind takes on this CPU this time, whichever task runs.
    pub(crate) fn takes_on(&mut self, kind: Kind) -> Span {
        let amount = self.m().costs.amounts[kind as usize];
        match amount {
            Amount::Fixed(span) => span,
            Amount::Drawn(_) | Amount::ByBusy(_) => {
                let draw = self.c().drawn.next(kind);
                self.amount(amount, draw)
            }
        }
    }
    /// The time that `draw` means here and now.
    fn amount(&self, amount: Amount, draw: u64) -> Span {
        match amount {
            Amount::Fixed(span) => span,
            Amount::Drawn(all) => Span(all[(draw >> 61) as usize].into()),
            Amount::ByBusy(all) => {
                let others = self.k.m.cpus.iter().enumerate();
                let busy = others.filter(|(i, c)| *i != self.cpu.index() && c.curr.is_some());
                quantile(&all[busy.take(all.len() - 1).count()], draw)
            }
        }
    }
    /// Keeps the CPU from looking for a task to run for `span` from when it has left its idle
    /// state.
    pub(crate) fn holds_resched(&mut self, span: Span) {
        let (m, cpu) = (self.m(), self.cpu);
        let leaves = m.cpu(cpu).idle.map_or(Span(0), |idle| m.exit_latency(cpu, idle, m.now));
        let until = m.now + leaves + span;
        self.ends_later(until);
    }
    /// Extends the interrupt to `until`; the CPU looks for a task to run behind it.
    pub(crate) fn ends_later(&mut self, until: Instant) {
        let held = &mut self.c().irq_work_until;
        *held = (*held).max(until);
    }
    /// Keeps the CPU from picking a task before a policy's kthread that has woken here can be
    /// picked.
    pub(crate) fn holds_for_kthread(&mut self, task: TaskId) {
        if let Role::Sugov(domain) = self.m().task(task).role {
            let due = self.m().domains[domain].kthread_due;
            self.ends_later(due);
        }
    }
    /// `set_tsk_need_resched`.
    #[inline]
    pub(crate) fn set_need_resched(&mut self) {
        self.k.m.need_resched.insert(self.cpu);
    }
    /// Clears this CPU's need-resched bit.
    #[inline]
    pub(crate) fn unset_need_resched(&mut self) {
        self.k.m.need_resched.remove(self.cpu);
    }
    /// The state of how CPUs learn that they should reschedule.
    #[inline]
    pub(crate) fn preempt(&mut self) -> &mut Preempt {
        &mut self.k.m.slots.preempt
    }
    /// Notes whether the running task leaves before it is back in user mode, as its group is
    /// throttled.
    pub(crate) fn set_throttle_work(&mut self, on: bool) {
        let work = &mut self.k.m.throttle_work;
        if on { work.insert(self.cpu) } else { work.remove(self.cpu) }
    }
    /// `rd->overloaded`.
    #[inline]
    pub(crate) fn set_overloaded(&mut self, on: bool) {
        self.k.m.root.overloaded = on;
    }
    /// `sgc->imbalance` of a group.
    pub(crate) fn set_imbalanced(&mut self, group: usize, on: bool) {
        self.k.m.root.group_imbalance[group] = on;
    }
    /// `nr_idle_scan` of what it shares.
    pub(crate) fn set_nr_idle_scan(&mut self, shared: usize, scan: u32) {
        self.k.m.root.shared[shared].nr_idle_scan = scan;
    }
    /// Brings the sums of that level's groups up to now, before a look at it.
    pub(crate) fn refresh_tally(&mut self, level: usize) {
        let m = &mut self.k.m;
        let (rev, plain) = (m.rev, m.is_plain());
        if let Some(tally) = m.tally.as_mut().filter(|_| plain) {
            let span = &m.cpus[self.cpu.index()].sched_domains[level].span;
            tally.refresh(&m.cpus, span, rev);
        }
    }
    /// Makes the CPU take part in nohz balancing: it has load that fades.
    pub(crate) fn joins_nohz(&mut self) {
        let root = &mut self.k.m.root;
        root.needs_update |= !root.idle_cpus.contains(self.cpu);
        root.idle_cpus.insert(self.cpu);
    }
    /// `nohz.has_blocked`.
    pub(crate) fn set_has_blocked(&mut self) {
        self.k.m.root.has_blocked = true;
    }
    /// Notes that there is an idle core around this CPU.
    pub(crate) fn set_idle_core(&mut self) {
        let m = &mut self.k.m;
        m.root.set_idle_cores(&m.cpus[self.cpu.index()].place, true);
    }
    /// Counts tasks in or out of a level ([`Groups::count`]).
    pub(crate) fn count(&mut self, g: GroupId, queued: i32, runnable: i32) {
        let m = &mut self.k.m;
        m.groups.count(&mut m.cpus[self.cpu.index()], self.cpu, g, (queued, runnable));
    }
    /// A throw of NI_RANDOM's dice; 0: there are none.
    pub(crate) fn dice(&mut self) -> u32 {
        self.k.m.ni_random.as_mut().map_or(0, |dice| dice.throw())
    }
    /// The cache state of the process that the tasks are of, where that matters.
    #[inline]
    pub(crate) fn cache_mut(&mut self) -> Option<&mut SchedCache> {
        self.k.m.slots.cache.as_deref_mut()
    }
    /// The frequency domain of this CPU.
    pub(crate) fn domain(&mut self) -> &mut FreqDomain {
        let domain = self.c().domain;
        &mut self.k.m.domains[domain]
    }
    /// `get_actual_cpu_capacity` is another ([`Cpu::update_actual`]).
    pub(crate) fn update_actual(&mut self) {
        let Parts { c, domain, rev, .. } = self.parts();
        c.update_actual(rev, domain.slots.pressure.taken);
    }
    /// Periods of its groups begin with its own ([`Groups::in_step`]).
    pub(crate) fn groups_in_step(&mut self) {
        let m = &mut self.k.m;
        m.groups.in_step(m.decay, &m.cpus[self.cpu.index()], self.cpu);
    }
    /// A quota's pool, with its account on this CPU.
    pub(crate) fn pool(&mut self, g: GroupId) -> Option<(&mut Pool, &mut RqBandwidth)> {
        let group = &mut self.k.m.groups.list[g.index()];
        Some((group.pool.as_mut()?, &mut group.rq[self.cpu.index()].bandwidth))
    }
    /// Sets the state; nothing else may.
    pub(crate) fn set_state(&mut self, task: TaskId, state: State) {
        self.k.m.task_mut(task).state = state;
    }
    /// Makes the task the head of its runqueue's list (`rq->cfs_tasks`).
    pub(crate) fn list(&mut self, task: TaskId) {
        self.k.listed += 1;
        self.k.m.task_mut(task).listed = self.k.listed;
    }
    /// `set_cpus_allowed_common`: what a task of this CPU may use.
    pub(crate) fn set_allowed(&mut self, task: TaskId, allowed: CpuSet) {
        let m = &mut self.k.m;
        m.tasks[task.index()].set_allowed(&m.cpus, allowed);
    }
    /// `set_rd_overutilized`.
    pub(crate) fn set_overutilized(&mut self, on: bool) {
        if self.k.m.root.overutilized != on {
            self.k.m.root.overutilized = on;
            self.emit(Event::Overutilized { on });
        }
    }
    /// Takes bandwidth of the machine for a reservation of this CPU.
    pub(crate) fn reserve_bw(&mut self, bw: u64) {
        let m = &mut self.k.m;
        m.classes.reserve_bw(&mut m.cpus, bw);
    }
    /// Gives bandwidth back for other reservations.
    pub(crate) fn release_bw(&mut self, bw: u64) {
        let m = &mut self.k.m;
        m.classes.release_bw(&mut m.cpus, bw);
    }
    /// Ends the run, since what a task asks for cannot be given.
    pub(crate) fn refuse(&mut self, why: InputError) {
        self.k.refused.get_or_insert(why);
    }
    /// The period timer of all CPUs' RT runtime.
    pub(crate) fn start_rt_bandwidth(&mut self) {
        if !self.m().rt_throttles() {
            return;
        }
        let (now, period) = (self.m().now, self.m().slots.sysctls.rt.period);
        if let Some(at) = self.k.m.classes.start_rt_bandwidth(now, period) {
            self.push(at, Ev::ClassTimer { timer: ClassTimer::RtPeriod, awake: false });
        }
    }
    /// The counter of interrupts of timers.
    pub(crate) fn timer_interrupts(&mut self) -> &mut u64 {
        &mut self.k.m.slots.hrtimers.interrupts
    }
    /// Whether the CPUs with too many real-time tasks are to push, right after this CPU's switch.
    pub(crate) fn set_push_rt(&mut self, on: bool) {
        self.k.m.classes.push_rt = on;
    }
    /// Whether groups whose server has been throttled here are to push, right after this CPU's switch.
    pub(crate) fn set_push_groups(&mut self, on: bool) {
        self.k.m.classes.push_groups = on;
    }
    /// Picks any online CPU of `allowed`, for a new affinity, which is asked for here: the first
    /// one up to 5.6 (that release is from memory of the commit).
    pub(crate) fn any_of(&mut self, allowed: &CpuSet) -> Option<CpuId> {
        let among = allowed.and(&self.m().root.online);
        if !self.m().rev.has(features::AFFINITY_ANY_DISTRIBUTE) {
            return among.lowest();
        }
        let found = self.m().classes.any_distribute(&among, self.cpu)?;
        self.k.m.classes.distribute[self.cpu.index()] = found;
        Some(found)
    }
    /// Notes where a search for a CPU came to.
    pub(crate) fn take_distribute(&mut self, effects: &mut Effects) {
        self.k.m.classes.take_distribute(effects);
    }
    /// The time until which the tick's interrupt keeps the CPU, if it takes any time; the driver's,
    /// if it tells one.
    pub(crate) fn interrupt_until(&mut self) -> Option<Instant> {
        let told = self.k.driver.as_mut().and_then(|d| d.tick(&self.k.m, self.cpu));
        if told.is_some() || self.m().costs.is_free(Kind::Irq) {
            return told;
        }
        Some(self.m().now + self.takes_on(Kind::Irq))
    }
    /// Clamps that hold for every task.
    pub(crate) fn forced_clamps(&self) -> (Option<Util>, Option<Util>) {
        self.k.forced_clamps
    }

    /// Counts a task's clamps on this CPU, or no longer, by `count`.
    pub(crate) fn uclamp(
        &mut self,
        task: TaskId,
        count: impl FnOnce(&mut UclampRq, &mut UclampTask, &UclampLimits),
    ) {
        let m = self.parts();
        let (before, t) = (m.c.uclamp.clamps(), &mut m.tasks[task.index()]);
        count(&mut m.c.uclamp, &mut t.uclamp, &t.limits);
        let (cpu, clamps) = (self.cpu, self.m().cpu(self.cpu).uclamp.clamps());
        if clamps != before {
            self.tell(Event::CpuClamps { cpu, clamps });
        }
    }

    // ------------------------------------------------------------------ tells

    /// Emits an event into the trace.
    #[inline]
    pub(crate) fn emit(&mut self, event: Event) {
        self.k.emit(event);
    }
    /// Emits an event into a trace that has attributes, too.
    pub(crate) fn tell(&mut self, event: Event) {
        if self.k.listens == Hears::Attributes {
            self.k.sink.event(self.k.m.now, &event);
        }
    }
    /// Tells the trace, where that is wanted, what priority and clamps a task has now.
    pub(crate) fn tell_attributes(&mut self, task: TaskId) {
        if self.m().task(task).state == State::New {
            return;
        }
        self.tell(Event::Prio { task, prio: self.m().prio(task) });
        if self.m().classes.uclamp_used {
            self.tell(Event::Clamps { task, clamps: self.m().task(task).clamps() });
        }
    }
    /// Tells what a task may get at most, where that is new.
    pub(crate) fn tell_max_speed(&mut self, task: TaskId) {
        let max_speed = self.m().max_speed(task);
        let new = std::mem::replace(&mut self.t(task).max_speed, max_speed) != max_speed;
        // The task's creation tells the new speed.
        if self.m().task(task).state == State::New {
            return;
        }
        if new {
            self.emit(Event::MaxSpeed { task, max_speed });
        }
        self.tell_speed_limits(task);
    }

    /// Tells what takes speed from a task, where that is new.
    pub(crate) fn tell_speed_limits(&mut self, task: TaskId) {
        let limits = self.m().speed_limits(task);
        if std::mem::replace(&mut self.t(task).speed_limits, limits) != limits {
            let full = self.m().full_speed();
            let (affinity, clamped) = limits.unwrap_or((full, full));
            self.emit(Event::SpeedLimits { task, affinity, clamped });
        }
    }

    /// Puts an event into the event queue.
    #[inline]
    pub(crate) fn push(&mut self, at: Instant, ev: Ev) {
        self.k.q.push(at, ev);
    }
    /// Passes what has happened on to the tracker.
    #[inline]
    pub(crate) fn track(&mut self, heard: Heard) {
        if let Some(tracker) = &mut self.k.m.tracker {
            tracker.hears(self.k.m.now, heard);
        }
    }

    // ------------------------------------------------------------------ calls up

    /// `cpufreq_update_util`: the governor looks, at once.
    #[inline]
    pub(crate) fn cpufreq_update_util(&mut self) {
        let domain = self.m().cpu(self.cpu).domain;
        self.k.policy(domain).update_util(self.cpu, false);
    }
    /// Tells the governor of an occasion, if it asks for such.
    #[inline]
    pub(crate) fn governor_attends(&mut self, occasion: Occasion) {
        let domain = self.m().cpu(self.cpu).domain;
        if self.m().domains[domain].attends {
            self.k.policy(domain).occasion(self.cpu, occasion);
        }
    }
    /// Counts cycles up to now, where a driver or the kernel goes by them; from now on the CPU is busy, or not.
    #[inline]
    pub(crate) fn counts_cycles(&mut self, busy: bool) {
        if self.m().cpu(self.cpu).slots.pstate.is_some() {
            let domain = self.m().cpu(self.cpu).domain;
            self.k.policy(domain).counts_cycles(self.cpu, busy);
        }
    }
    /// `arch_scale_freq_tick`, where frequencies are known by counters.
    #[inline]
    pub(crate) fn scale_freq_tick(&mut self) {
        if self.m().cpu(self.cpu).slots.pstate.is_some() {
            let domain = self.m().cpu(self.cpu).domain;
            self.k.policy(domain).scale_freq_tick(self.cpu);
        }
    }
    /// `try_to_wake_up`, from this CPU's interrupt.
    pub(crate) fn wake_up(&mut self, task: TaskId) {
        self.k.wake_up(task, Waker::timer(self.cpu));
    }
    /// Wakes a task whose timer has expired (`try_to_wake_up`), and notes when it was due.
    pub(crate) fn wake_up_due(&mut self, task: TaskId) {
        let t = self.t(task);
        t.due = Some(t.soft_expiry);
        self.wake_up(task);
    }
    /// Moves a task of this CPU to another one.
    pub(crate) fn move_queued(&mut self, task: TaskId, to: CpuId, why: Why) {
        self.k.move_queued(task, self.cpu, to, why);
    }
    /// A task that waits on another CPU comes here (`take_task` of MuQSS, `pull_rt_task` of a group).
    pub(crate) fn take_queued(&mut self, task: TaskId, from: CpuId, why: Why) {
        self.k.move_queued(task, from, self.cpu, why);
        self.still_locked();
    }
    /// `resched_cpu`: another CPU looks for who is to run.
    pub(crate) fn resched_cpu(&mut self, cpu: CpuId) {
        self.k.rq(cpu).resched_curr();
    }
    /// Pushes away real-time tasks that wait here.
    pub(crate) fn push_rt_tasks(&mut self) {
        self.k.push_rt_tasks(self.cpu);
    }
    /// `push_dl_tasks`: pushes away deadline tasks that wait here.
    pub(crate) fn push_dl_tasks(&mut self) {
        while self.push_dl_task() {}
    }
    /// Pushes the first deadline task that waits on this CPU away; false: nothing moved.
    pub(crate) fn push_dl_task(&mut self) -> bool {
        self.k.push_dl_task(self.cpu)
    }
    /// Pulls deadline tasks that wait elsewhere.
    pub(crate) fn pull_dl_task(&mut self) {
        self.k.pull_dl_task(self.cpu);
    }
    /// Marks this CPU as changed: balancing looked at the CPUs meanwhile, and the next look has to
    /// see what happens here from now on.
    fn still_locked(&mut self) {
        if let Some(tally) = &mut self.k.m.tally {
            tally.touch(self.cpu);
        }
    }
    /// `sched_balance_newidle`; true if tasks came.
    pub(crate) fn newidle_balance(&mut self) -> bool {
        let pulled = self.k.newidle_balance(self.cpu);
        self.still_locked();
        pulled
    }
    /// Balances after each tick of the busy CPU.
    pub(crate) fn trigger_load_balance(&mut self) {
        self.k.trigger_load_balance(self.cpu);
        self.still_locked();
    }
    /// Balances after a tick of the idle CPU.
    pub(crate) fn balance_on_own_tick(&mut self) {
        self.k.balance_on_own_tick(self.cpu);
        self.still_locked();
    }
    /// Ages what the idle CPUs hold, on this CPU's way to idle.
    pub(crate) fn nohz_run_idle_balance(&mut self) {
        self.k.nohz_run_idle_balance(self.cpu);
        self.still_locked();
    }
    /// Whether it has a task may have changed: the other threads of its core get slower or faster.
    pub(crate) fn core_shared(&mut self) {
        self.k.core_shared(self.cpu);
    }
}
