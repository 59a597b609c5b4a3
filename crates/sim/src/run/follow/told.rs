//! The state from which the kernel there decides, where the trace tells of it: what it is here is noted, and then it is
//! as there.

use super::follower::Follower;
use super::listens::{Idles, Sleeps};
use super::signals::Of;
use crate::kernel::balance::env::When;
use crate::kernel::governor::{Resumed, ResumedCpu};
use crate::state::machine::Machine;
use risetime_kernel::cpuidle::menu::MenuDevice;
use risetime_kernel::cpuidle::{self, IdleState};
use risetime_kernel::deadline::DlId;
use risetime_kernel::eevdf::{Entity, EntityId, Place};
use risetime_kernel::units::{CpuId, GroupId, Instant, Span, TaskId};
use risetime_model::workload::{Attr, Policy};
use risetime_trace::{Event, FreqLook, IdleType, LastSleep, MenuSelect};
use std::collections::BTreeMap;

/// The levels of domains that are looked at.
pub(super) fn levels(events: &[(Instant, Event)]) -> Vec<u32> {
    let looks = events.iter().filter_map(|(_, e)| match e {
        Event::BalanceLook { level, .. } => Some(*level),
        _ => None,
    });
    let mut levels: Vec<u32> = looks.collect();
    levels.sort_unstable();
    levels.dedup();
    levels
}

/// The sleeps of each CPU: as they were chosen, where that is told, or as they were entered.
pub(super) fn sleeps(
    events: &[(Instant, Event)],
    selects: Vec<(Instant, CpuId, MenuSelect)>,
) -> BTreeMap<CpuId, Idles> {
    let mut idles: BTreeMap<CpuId, Idles> = BTreeMap::new();
    let told = !selects.is_empty();
    for (at, cpu, select) in selects {
        let state = select.state.unwrap_or(0) as usize;
        idles.entry(cpu).or_default().all.push((at, Sleeps { state, select: Some(select) }));
    }
    for (at, event) in events.iter().filter(|_| !told) {
        if let Event::Idle { cpu, state: Some(state) } = *event {
            let sleeps = Sleeps { state: state as usize, select: None };
            idles.entry(cpu).or_default().all.push((*at, sleeps));
        }
    }
    idles
}

/// Sets what an entity off its queue keeps: its lag. Returns the lag here and there, if it is told.
fn keeps(entity: &mut Entity, place: &Place) -> Option<(u64, u64)> {
    entity.slice = place.slice;
    // On its way from the queue it may have a turn's deadline there (what protects its slice until 6.16): this one's, or one
    // more, or an earlier one's. A lag is at most two slices or a tick, by its weight (`update_entity_lag`); the longest tick
    // there is, and twice that, since the weight may have been another.
    const TICK: u64 = 10_000_000;
    let limit = TICK.max(2 * place.slice) * 1024 / entity.weight().0.max(1);
    let is_lag = place.vlag.unsigned_abs() <= 2 * limit
        && !(0..=1).contains(&place.vlag.wrapping_sub(place.deadline as i64));
    is_lag.then(|| (std::mem::replace(&mut entity.vlag, place.vlag) as u64, place.vlag as u64))
}

impl Follower<'_, '_> {
    /// Sets the priority of a thread of the system (`p->prio`). Tasks of the workload have the one
    /// that the workload gives them.
    pub(super) fn prio(&mut self, there: TaskId, prio: i32) {
        if there.index() < self.experiment.workload.tasks.len() {
            return;
        }
        let task = self.task(there, CpuId(0));
        let m = &self.simulation.k.m;
        if m.task(task).is_kthread() || m.comm(task).starts_with("migration/") {
            return;
        }
        let attr = match u8::try_from(prio) {
            Ok(prio @ 100..) => Attr {
                policy: Some(Policy::Other { slice: None }),
                nice: Some((i32::from(prio) - 120) as i8),
                ..Attr::default()
            },
            // A deadline is not told: it comes before everybody, as it does there.
            rt => Attr {
                policy: Some(Policy::Fifo { priority: 99 - rt.unwrap_or(0).min(98) }),
                ..Attr::default()
            },
        };
        let cpu = m.task(task).cpu;
        self.simulation.k.rq(cpu).set_class(task, &attr);
    }

    /// Places that are told with a switch, once its task has left.
    pub(super) fn told_with_switch(&mut self, index: usize) {
        match self.events[index].1 {
            Event::Entity { task, place } => self.place(task, &place),
            Event::CfsQueue { cpu, min_vruntime, .. } => {
                self.queue(cpu, GroupId::ROOT, min_vruntime);
            }
            Event::GroupEntity { cpu, group, place } => self.group_place(cpu, group, &place),
            _ => {}
        }
    }

    /// A task's place in its runqueue.
    pub(super) fn place(&mut self, there: TaskId, place: &Place) {
        let Some(task) = self.here.get(&there).copied() else { return };
        let m = &mut self.simulation.k.m;
        let t = m.task(task);
        let (cpu, group) = (t.cpu, t.group);
        if !m.is_fair(task) {
            return;
        }
        // A task that is none of the workload's has asked for a slice of its own if it has another
        // than the base slice.
        let of_workload = there.index() < self.experiment.workload.tasks.len();
        let asks = (!of_workload && place.slice != 0)
            .then(|| Some(place.slice).filter(|slice| *slice != m.base_slice.0));
        if let Some(entity) = m.fair_entity(cpu, task) {
            // A task leaves its queue for a new slice: set again, the slice that it has would put it behind its equals.
            let has = entity.custom_slice.then_some(entity.slice);
            if let Some(asks) = asks.filter(|asks| *asks != has) {
                self.simulation.k.rq(cpu).queue_mut(group).set_slice(task, asks);
            }
            return self.stands((cpu, group), task.into(), place, Of::Task(there));
        }
        let Some(entity) = m.task_mut(task).entity.as_mut() else { return };
        if let Some(asks) = asks {
            entity.request_slice(asks);
        }
        if let Some(off) = keeps(entity, place) {
            self.compare("vlag", Of::Task(there), off.0, off.1);
        }
    }

    /// A group's place in the queue of the one above. Its weight is made here: of others it would not know.
    pub(super) fn group_place(&mut self, cpu: CpuId, group: GroupId, place: &Place) {
        let m = &mut self.simulation.k.m;
        if !m.groups.nested {
            return;
        }
        let (place, above) = (Place { weight: 0, ..*place }, m.groups.parent(group));
        if m.queue(cpu, above).get(group).is_some() {
            return self.stands((cpu, above), group.into(), &place, Of::Cpu(cpu));
        }
        if let Some(entity) = &mut m.groups.rq_mut(cpu, group).se.entity {
            keeps(entity, &place);
        }
    }

    /// Throttles a group on a CPU, or ends that, as there; the groups inside are told with it and
    /// follow from it.
    pub(super) fn group_throttled(&mut self, cpu: CpuId, group: GroupId, on: bool) {
        let mut rq = self.simulation.k.rq(cpu);
        if !rq.m().has_pool(group) || rq.m().throttles_tasks() {
            return;
        }
        let bandwidth = &rq.m().groups.rq(cpu, group).bandwidth;
        let inside = bandwidth.in_throttled_hierarchy() && !bandwidth.throttled;
        if inside || bandwidth.throttled == on {
            return;
        }
        rq.update_rq_clock();
        if on { rq.throttles(group) } else { rq.unthrottle_cfs_rq(group) }
    }

    /// Sets the place of an entity in the queue of a group on a CPU as there, and compares it with
    /// its own.
    fn stands(&mut self, (cpu, of): (CpuId, GroupId), id: EntityId, place: &Place, whose: Of) {
        let queue = if self.simulation.k.m.groups.nested { of } else { GroupId::ROOT };
        if !self.same_origin.contains(&(cpu, queue)) {
            return;
        }
        let mut rq = self.simulation.k.rq(cpu);
        let is_curr = rq.m().queue(cpu, of).curr().is_some_and(|curr| curr.id == id);
        if is_curr {
            rq.update_rq_clock();
            rq.update_curr(of);
        }
        let Some(own) = rq.m().queue(cpu, of).get(id).copied() else { return };
        rq.queue_mut(of).resume_entity(id, place);
        let task = id.as_task().is_some();
        let name = |of_task, of_group| if task { of_task } else { of_group };
        self.compare(name("vruntime", "group vruntime"), whose, own.vruntime, place.vruntime);
        if place.vprot != 0 && is_curr {
            self.compare("vprot", whose, own.vprot, place.vprot);
        }
        if place.weight != 0 {
            self.compare("weight", whose, own.load.scaled(), place.weight);
        }
        if place.slice != 0 {
            self.compare(name("deadline", "group deadline"), whose, own.deadline, place.deadline);
            self.compare(name("slice", "group slice"), whose, own.slice, place.slice);
        }
    }

    /// Sets where the queue of a group on a CPU counts from.
    pub(super) fn queue(&mut self, cpu: CpuId, of: GroupId, zero: u64) {
        if of != GroupId::ROOT && !self.simulation.k.m.groups.nested {
            return;
        }
        // The clock stands still while a task is woken: what it finds is what the check after it finds.
        let mut rq = self.simulation.k.rq(cpu);
        let own = rq.m().queue(cpu, of).zero_vruntime();
        let same = !self.same_origin.insert((cpu, of));
        rq.queue_mut(of).resume(zero, same);
        if same {
            let name = if of == GroupId::ROOT { "zero_vruntime" } else { "group zero_vruntime" };
            self.compare(name, Of::Cpu(cpu), own, zero);
        }
    }

    /// Sets when a CPU balances next. Jiffies are counted from now.
    pub(super) fn balance_due(
        &mut self,
        cpu: CpuId,
        jiffies: u64,
        next_balance: u64,
        domains: [(u64, u64); 2],
    ) {
        let m = &mut self.simulation.k.m;
        let now = m.jiffies();
        let here = |at: u64| (now + at).saturating_sub(jiffies);
        let hz = m.platform.hz;
        if let Some(cache) = &mut m.slots.cache {
            cache.epochs_end_as(now, jiffies, hz);
        }
        let c = m.cpu_mut(cpu);
        let mut off = vec![("next_balance", c.next_balance, here(next_balance))];
        c.next_balance = here(next_balance);
        for (d, (last, interval)) in c.sched_domains.iter_mut().zip(domains) {
            if interval > 0 {
                off.push(("last_balance", d.last_balance, here(last)));
                off.push(("balance_interval", d.balance_interval, interval));
                (d.last_balance, d.balance_interval) = (here(last), interval);
            }
        }
        off.into_iter().for_each(|(what, own, given)| self.compare(what, Of::Cpu(cpu), own, given));
    }

    /// A governor looks at `cpu`: what it asks for here is asked.
    pub(super) fn governs(&mut self, cpu: CpuId, look: &FreqLook) {
        let m = &mut self.simulation.k.m;
        let (domain, now) = (m.cpu(cpu).domain, m.now);
        let place = m.domains[domain].related.iter().position(|c| *c == cpu).unwrap_or(0);
        let c = m.cpu_mut(cpu);
        let avg = &mut c.cfs_avg.avg;
        let own = [avg.util_avg.0, avg.runnable_avg.0, c.util_est.0, c.dl.running_bw];
        let given = [look.util_avg.0, look.runnable_avg.0, look.util_est.0, look.running_bw];
        (avg.util_avg, avg.runnable_avg) = (look.util_avg, look.runnable_avg);
        (c.util_est, c.dl.running_bw) = (look.util_est, look.running_bw);
        let of_cpu = ResumedCpu {
            place,
            bw_min: look.bw_min,
            saved_idle_calls: c.idle_calls.wrapping_sub(u64::from(!look.busy)),
        };
        self.simulation.k.policy(domain).resume(&Resumed {
            freq: look.next_freq,
            since: Instant(now.0.saturating_sub(look.since_ns)),
            cached_raw_freq: look.cached_raw_freq,
            forced: look.forced,
            of_cpu: Some(of_cpu),
        });
        let names =
            ["util_avg at a look", "runnable_avg at a look", "util_est at a look", "running_bw"];
        self.told_cfs(cpu, look.util_avg, look.runnable_avg, look.util_est);
        self.told_bw(cpu, look.running_bw);
        self.averages_as_told();
        for (what, (own, given)) in names.into_iter().zip(own.into_iter().zip(given)) {
            self.compare(what, Of::Cpu(cpu), own, given);
        }
        self.shared.borrow_mut().governs = Some((cpu, *look));
        self.simulation.k.policy(domain).update_util(cpu, false);
        self.shared.borrow_mut().governs = None;
    }

    /// Sets what a deadline task has left of its instance.
    pub(super) fn deadline(&mut self, there: TaskId, runtime: i64, left: i64) {
        let Some(task) = self.here.get(&there).copied() else { return };
        let m = &mut self.simulation.k.m;
        let (clock, t) = (m.sched_clock(), m.task_mut(task));
        let cpu = t.cpu;
        let Some(dl) = &mut t.sched.dl else { return };
        let deadline = Instant(clock.0.saturating_add_signed(left));
        // Who had used up what it has was replenished by its timer: that is as it would be here.
        let mut own = **dl;
        if own.runtime <= 0 && runtime > 0 {
            own.replenish(clock);
        }
        let own = (own.runtime, own.deadline);
        (dl.runtime, dl.deadline) = (runtime, deadline);
        let queue = &mut self.simulation.k.m.cpu_mut(cpu).dl;
        if queue.remove(DlId::Task(task)) {
            queue.insert(deadline, DlId::Task(task));
        }
        self.compare("dl runtime", Of::Task(there), own.0 as u64, runtime as u64);
        self.compare("dl deadline", Of::Task(there), own.1.0, deadline.0);
    }

    /// A CPU looks for tasks in one of its domains: what would be moved is asked.
    pub(super) fn balances(&mut self, cpu: CpuId, level: u32, idle: IdleType, failed: u32) {
        let k = &mut self.simulation.k;
        let domains = k.m.cpu(cpu).sched_domains.len();
        // Domains that are of no use there have no number here: the lowest that is looked at is the lowest.
        let level = self.levels.iter().position(|l| *l == level).unwrap_or(0);
        if level >= domains {
            return;
        }
        let when = match idle {
            IdleType::NotIdle => When::Busy,
            IdleType::Idle => When::Idle,
            IdleType::NewlyIdle => When::NewlyIdle,
        };
        if when == When::NewlyIdle {
            // A task whose dequeue was delayed has left at the pick that found no task.
            k.rq(cpu).pick_next_task();
        }
        self.averages_as_told();
        let k = &mut self.simulation.k;
        let d = &mut k.m.cpu_mut(cpu).sched_domains[level];
        let own = std::mem::replace(&mut d.nr_balance_failed, failed);
        self.shared.borrow_mut().looks = true;
        k.rq(cpu).update_blocked_groups();
        k.sched_balance_rq(cpu, level, when);
        self.shared.borrow_mut().looks = false;
        self.has_balanced(cpu, level, when);
        self.compare("nr_balance_failed", Of::Cpu(cpu), own.into(), failed.into());
    }

    /// Notes that the CPU has looked at one of its domains, and sets when it looks again
    /// (`sched_balance_domains`, `update_next_balance`).
    fn has_balanced(&mut self, cpu: CpuId, level: usize, when: When) {
        let m = &mut self.simulation.k.m;
        let now = m.jiffies();
        let levels = m.cpu(cpu).sched_domains.len();
        let due = |m: &Machine, level: usize| {
            let busy = when == When::Busy;
            m.cpu(cpu).sched_domains[level].last_balance + m.balance_interval(cpu, level, busy)
        };
        if when == When::NewlyIdle {
            let next = due(m, level).min(m.cpu(cpu).next_balance);
            m.cpu_mut(cpu).next_balance = next;
        } else {
            m.cpu_mut(cpu).sched_domains[level].last_balance = now;
            let next = (0..levels).map(|level| due(m, level)).min();
            m.cpu_mut(cpu).next_balance = next.unwrap_or(u64::MAX);
        }
    }

    /// Sets, before a CPU chooses an idle state, what its governor remembers, and the next timer
    /// that it will be told.
    pub(super) fn remembers_sleeps(&mut self, cpu: CpuId) {
        self.shared.borrow_mut().sleeps = Some(cpu);
        let m = &mut self.simulation.k.m;
        let now = m.now;
        let select = self.shared.borrow().idles.get(&cpu).and_then(|i| i.upcoming(now)?.select);
        let Some(select) = select else { return };
        let states = &m.domains[m.cpu(cpu).domain].idle;
        let Some(given) = memory(&select, m.rev, states, m.tick) else { return };
        let c = &mut m.cpus[cpu.index()];
        let own = c.idle_governor.memory().map(MenuDevice::to_parts);
        c.idle_governor.resume(&given);
        // What else needs the tick there, RCU before all, is not told.
        c.tick_stopped = select.tick_stopped;
        // Whoever sleeps there is woken by the reference: that timer stands for all.
        c.timers.take();
        self.aside = c.class_timers.take();
        if let Some(length) = select.sleep_length_ns {
            c.timers.insert((now + Span(length), TaskId(u32::MAX)));
        }
        if let Some((_, _, factors, intervals, _)) = own {
            let (_, _, f, i, _) = given.to_parts();
            let sum = |all: &[u32]| all.iter().map(|n| u64::from(*n)).sum::<u64>();
            self.compare("menu correction_factor", Of::Cpu(cpu), sum(&factors), sum(&f));
            self.compare("menu intervals", Of::Cpu(cpu), sum(&intervals), sum(&i));
        }
    }
}

impl Follower<'_, '_> {
    /// Ends the choice of an idle state: puts the class timers that were set aside back.
    pub(super) fn has_chosen(&mut self, cpu: CpuId) {
        let aside = self.aside.take();
        let timers = &mut self.simulation.k.m.cpu_mut(cpu).class_timers;
        aside.into_iter().for_each(|timer| timers.insert(timer));
        self.shared.borrow_mut().sleeps = None;
    }
}

/// The memory of `menu` there, the sleep before taken in.
fn memory(
    select: &MenuSelect,
    rev: risetime_kernel::KernelRev,
    states: &[IdleState],
    tick: Span,
) -> Option<MenuDevice> {
    let device = MenuDevice::from_parts(
        rev,
        select.next_timer_ns,
        select.bucket as usize,
        select.correction_factor,
        select.intervals_us,
        select.interval_ptr as usize,
    );
    let mut governor = cpuidle::IdleGovernor::Menu(device);
    if let Some(LastSleep { state, slept_ns, by_tick }) = select.last {
        governor.update(states, state as usize, Span(slept_ns), by_tick, tick);
    }
    match governor {
        cpuidle::IdleGovernor::Menu(device) => Some(device),
        _ => None,
    }
}
