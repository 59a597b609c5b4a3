//! Actions of tasks there, done here: they are created, wake, move, get a CPU, leave it.

use super::follower::Follower;
use super::timeline::told_with;
use crate::kernel::fork::new_task;
use crate::kernel::placement::Waker;
use crate::state::class::{Class, Sched};
use crate::state::machine::{Machine, Role, State, Task, Todo};
use crate::state::wake_list::Wakee;
use risetime_kernel::deadline::DlId;
use risetime_kernel::eevdf::DequeueKind;
use risetime_kernel::uclamp::UclampRq;
use risetime_kernel::units::{CpuId, GroupId, Instant, Span, TaskId};
use risetime_model::workload::{Event as Does, Policy};
use risetime_trace::{Event, Name, SwitchOut, Why};

impl Follower<'_, '_> {
    /// The task here; it joins the machine, asleep on `cpu`, where it was not seen before.
    pub(super) fn task(&mut self, there: TaskId, cpu: CpuId) -> TaskId {
        if let Some(task) = self.here.get(&there) {
            return *task;
        }
        let name = self.names.get(&there).map_or("", String::as_str);
        let m = &mut self.simulation.k.m;
        let user = there.index() < self.experiment.workload.tasks.len();
        // Two threads may have one name: the agent's.
        let taken = |task: &TaskId| self.shared.borrow().there.contains_key(task);
        let task = match kthread_named(m, name).filter(|task| !taken(task)) {
            _ if user => there,
            Some(kthread) => {
                m.task_mut(kthread).state = State::Sleeping;
                kthread
            }
            // Nothing but the name is known of it.
            None => {
                let comm = Name::new(name);
                let nth = m.names.next(comm);
                let (task, mut t) = new_task(m, comm, nth, Role::Creator);
                match own_cpu(name) {
                    Some(own) => t.set_allowed(&m.cpus, [own].into_iter().collect()),
                    None if self.creator == Some(there) => {}
                    None => drop(self.shared.borrow_mut().strangers.insert(task)),
                }
                if name.starts_with("migration/") {
                    // The stopper runs before all others, and no class counts it.
                    t.sched = Sched::sugov();
                }
                (t.cpu, t.state) = (cpu, State::Sleeping);
                m.tasks.push(t);
                if let Some(cache) = m.slots.cache.as_mut().filter(|_| self.creator == Some(there))
                {
                    cache.main = Some(task);
                }
                task
            }
        };
        self.here.insert(there, task);
        self.shared.borrow_mut().there.insert(task, there);
        task
    }

    /// The task here that is on `cpu` there. The thread that creates tasks has bound itself to that one; while it creates
    /// one it takes on the CPUs of that, which is not told.
    fn task_on(&mut self, there: TaskId, cpu: CpuId) -> TaskId {
        let task = self.task(there, cpu);
        if self.creator == Some(there) {
            let m = &mut self.simulation.k.m;
            m.tasks[task.index()].set_allowed(&m.cpus, [cpu].into_iter().collect());
        }
        task
    }

    pub(super) fn created(&mut self, there: TaskId, user: bool, cpu: CpuId) {
        let first = there.index() < self.experiment.workload.tasks.len();
        if user && !first && self.forked(there, cpu).is_some() {
            return;
        }
        let task = self.task(there, cpu);
        if user && first {
            self.shared.borrow_mut().cpu = Some(cpu);
            self.simulation.k.create(task);
            self.is_on(task, cpu);
        }
    }

    /// A copy of a task of the workload, which one that runs has made: its parent's attributes until it first runs.
    fn forked(&mut self, there: TaskId, cpu: CpuId) -> Option<()> {
        let name = self.names.get(&there)?;
        let forked = &self.experiment.workload.forked;
        // `copy-0003`
        let of = forked.iter().position(|spec| {
            name.strip_prefix(spec.comm.as_str()).is_some_and(|rest| rest.starts_with('-'))
        })?;
        let m = &self.simulation.k.m;
        let forks = |e: &Does| matches!(e, Does::Fork(i) if *i as usize == of);
        let (on, parent) = (0..m.cpus.len() as u32).map(CpuId).find_map(|cpu| {
            let curr = m.cpu(cpu).curr?;
            let spec = self.experiment.workload.tasks.get(curr.index())?;
            spec.phases.iter().any(|p| p.events.iter().any(forks)).then_some((cpu, curr))
        })?;
        let mut current = self.simulation.k.current(on, parent);
        let task = current.copy_process(name.as_str().into());
        let mut attr = forked[of].attr.clone();
        attr.policy = attr.policy.or(Some(Policy::Other { slice: None }));
        attr.nice = attr.nice.or(Some(0));
        self.first_act.insert(task, attr);
        self.here.insert(there, task);
        let mut shared = self.shared.borrow_mut();
        shared.there.insert(task, there);
        shared.cpu = Some(cpu);
        drop(shared);
        self.simulation.k.create(task);
        self.is_on(task, cpu);
        Some(())
    }

    /// Takes a task into a phase, with the attributes that the phase changes.
    pub(super) fn phase(&mut self, there: TaskId, index: usize) {
        let phases = self.experiment.workload.tasks.get(there.index()).map(|t| &t.phases);
        if let Some(phase) = phases.and_then(|p| p.get(index)) {
            let (own, k) = (self.task(there, CpuId(0)), &mut self.simulation.k);
            let cpu = k.m.task(own).cpu;
            k.rq(cpu).set_attr(own, &phase.attr);
        }
    }

    /// Asks where the task of a wakeup that begins on `by` goes; not asked where the task's dequeue
    /// was delayed.
    pub(super) fn asks(&mut self, index: usize, by: CpuId) {
        let Event::Wakeup { task: there, cpu, .. } = self.events[index].1 else { return };
        let task = self.task_on(there, cpu);
        let m = &self.simulation.k.m;
        let prev = m.task(task).cpu;
        if m.task(task).state != State::Sleeping || m.fair_entity(prev, task).is_some() {
            return;
        }
        self.averages_as_told();
        self.shared.borrow_mut().cpu = Some(cpu);
        let _ = self.simulation.k.select_task_rq(task, Waker::timer(by));
        self.shared.borrow_mut().cpu = None;
        self.asked = Some(index);
        self.pends(index, by);
    }

    /// Puts the task of a wakeup that `by` has begun on the wake list of its CPU, if it would be there: until the task is queued,
    /// nobody takes that CPU for idle.
    pub(super) fn pends(&mut self, index: usize, by: CpuId) {
        let Event::Wakeup { task: there, cpu, .. } = self.events[index].1 else { return };
        let task = self.task_on(there, cpu);
        let migrated = self.simulation.k.m.task(task).cpu != cpu;
        let mut rq = self.simulation.k.rq(cpu);
        if by != cpu && rq.ttwu_queue_cond(by) {
            let (heard, why) = (Instant(u64::MAX), Why::Given);
            rq.c().wake_list.push(Wakee { task, heard, migrated, why });
        }
    }

    pub(super) fn woken(&mut self, index: usize) {
        let Event::Wakeup { task: there, cpu, .. } = self.events[index].1 else { return };
        let task = self.task_on(there, cpu);
        let k = &mut self.simulation.k;
        k.rq(cpu).c().wake_list.retain(|wakee| wakee.task != task);
        let prev = k.m.task(task).cpu;
        k.m.cpu_mut(prev).timers.remove(task);
        if k.m.task(task).state != State::Sleeping {
            self.followed.lost.wakeups += 1;
            return;
        }
        if prev != cpu && k.m.fair_entity(prev, task).is_some() {
            // There its delayed dequeue has been completed, or it would wake where it is.
            let group = k.m.task(task).group;
            let mut rq = k.rq(prev);
            rq.update_rq_clock();
            rq.queue_mut(group).depart(task.into());
            rq.take_departed_of(group);
        }
        let asked = self.asked.take_if(|asked| *asked == index).is_some();
        self.shared.borrow_mut().unasked = asked;
        self.wakes_on(task, prev, cpu);
        self.shared.borrow_mut().unasked = false;
    }

    /// `task` is on `cpu` from now on, and nobody is asked about it.
    fn wakes_unasked(&mut self, task: TaskId, cpu: CpuId) {
        self.shared.borrow_mut().unasked = true;
        self.wakes_on(task, cpu, cpu);
        self.shared.borrow_mut().unasked = false;
    }

    /// `task` is woken from `by`, and goes to `cpu` whatever is decided here.
    fn wakes_on(&mut self, task: TaskId, by: CpuId, cpu: CpuId) {
        self.shared.borrow_mut().cpu = Some(cpu);
        let k = &mut self.simulation.k;
        if self.clamped.remove(&task) {
            let on = k.m.task(task).cpu;
            k.rq(on).uclamp(task, |rq, task, _| rq.uclamp_rq_dec(task));
        }
        k.wake_up(task, Waker::timer(by));
        self.is_on(task, cpu);
    }

    /// A task that has been queued is on `cpu`, and nobody else is placed.
    fn is_on(&mut self, task: TaskId, cpu: CpuId) {
        self.shared.borrow_mut().cpu = None;
        let k = &mut self.simulation.k;
        let on = k.m.task(task).cpu;
        if on != cpu {
            k.move_queued(task, on, cpu, Why::Given);
        }
    }

    pub(super) fn moved(&mut self, index: usize, there: TaskId, from: CpuId, to: CpuId) {
        self.task(there, from);
        let task = self.task_on(there, to);
        let more = self.detaches_more(index, from, to);
        let k = &mut self.simulation.k;
        let (state, on) = (k.m.task(task).state, k.m.task(task).cpu);
        // Balancing takes a task along that sleeps with its dequeue delayed.
        let asleep = state == State::Sleeping
            && self.of_sleepers.contains(&index)
            && k.m.fair_entity(on, task).is_some();
        if (state == State::Runnable || asleep) && on != to {
            k.rq(on).detach(task, to, Why::Given);
            self.detached.push((task, on));
        } else if state == State::Sleeping && k.m.class_of(task) == Class::Deadline && on != to {
            // It takes its bandwidth along, of which the governor hears that it leaves.
            k.rq(on).migrate_task_rq(task, to, Why::Given);
            k.rq(to).replenish_here(task);
            k.rq(to).set_task_rq_fair(task, on);
        }
        if !more {
            for (task, from) in self.detached.drain(..).rev() {
                let cpu = k.m.task(task).cpu;
                k.rq(cpu).attach(task, from);
            }
        }
    }

    /// Whether the look that has moved a task there moves another one before the first is queued.
    fn detaches_more(&self, index: usize, from: CpuId, to: CpuId) -> bool {
        /// Time from one to the next.
        const DETACHING_LASTS: Span = Span::from_us(400);
        let (at, _) = self.events[index];
        let next = self.events[index + 1..].iter();
        let next = next.take_while(|(when, _)| when.since(at) < DETACHING_LASTS);
        let told = next.map(|(_, event)| event).find(|event| match **event {
            Event::Migrate { to: cpu, .. }
            | Event::CfsUtilEst { cpu, .. }
            | Event::PeltCfs { cpu, .. }
            | Event::Switch { cpu, .. } => cpu == to,
            _ => false,
        });
        matches!(told, Some(Event::Migrate { from: cpu, .. }) if *cpu == from)
    }

    /// The task that a switch takes from its CPU leaves its queue.
    pub(super) fn leaves(&mut self, index: usize) {
        let Event::Switch { cpu, prev: Some((there, out)), .. } = self.events[index].1 else {
            return;
        };
        let task = self.task(there, cpu);
        let k = &mut self.simulation.k;
        let t = k.m.task(task);
        if out == SwitchOut::Preempted || t.state != State::Runnable || t.cpu != cpu {
            return;
        }
        let (state, kind) = match out {
            SwitchOut::Exited => (State::Exited, DequeueKind::SleepSpecial),
            _ => (State::Sleeping, DequeueKind::Sleep),
        };
        if let Some(wakes) = self.next_wakeups.get(&index) {
            k.m.cpu_mut(cpu).timers.insert((*wakes, task));
        }
        k.rq(cpu).leave_queue(task, state, kind);
    }

    /// Carries out a CPU's switch to another task.
    pub(super) fn switched(&mut self, index: usize) {
        let Event::Switch { cpu, prev, next } = self.events[index].1 else { return };
        let prev = prev.map(|(task, _)| self.task(task, cpu));
        let next = next.map(|there| {
            let known = self.here.contains_key(&there);
            let next = self.task_on(there, cpu);
            self.is_queued(next, cpu, known);
            next
        });
        let k = &mut self.simulation.k;
        if k.m.cpu(cpu).curr != prev {
            self.followed.lost.switches += 1;
        }
        if k.m.cpu(cpu).idle.is_some() {
            k.rq(cpu).leave_idle();
        }
        self.leaves(index);
        self.runtime_is_out(cpu, next);
        for told in told_with(self.events, index).collect::<Vec<_>>() {
            self.told_with_switch(told);
        }
        if next.is_none() {
            self.remembers_sleeps(cpu);
        }
        self.picks(cpu, next);
        self.has_chosen(cpu);
        if let Event::Switch { prev: Some((prev, _)), .. } = self.events[index].1
            && let Some(off) = self.waits_for_quota.get_mut(&prev)
        {
            *off = true;
        }
    }

    /// The group of the task that a switch takes from its CPU has used up its quota.
    pub(super) fn quota_is_out(&mut self, index: usize) {
        let Event::Switch { cpu, prev: Some((there, _)), .. } = self.events[index].1 else {
            return;
        };
        let task = self.task(there, cpu);
        let k = &mut self.simulation.k;
        let t = k.m.task(task);
        if t.state == State::Runnable && t.cpu == cpu && t.group != GroupId::ROOT {
            k.rq(cpu).leave_queue(task, State::Sleeping, DequeueKind::SleepSpecial);
            if k.m.classes.uclamp_used {
                k.rq(cpu).uclamp(task, UclampRq::uclamp_rq_inc);
                self.clamped.insert(task);
            }
            self.waits_for_quota.insert(there, false);
        }
    }

    /// A place of a task that waits for its group's quota is told: it has been queued again.
    pub(super) fn has_quota_again(&mut self, there: TaskId) {
        if self.waits_for_quota.get(&there) == Some(&true) {
            self.waits_for_quota.remove(&there);
            let task = self.task(there, CpuId(0));
            let m = &self.simulation.k.m;
            let cpu = m.task(task).cpu;
            if m.task(task).state == State::Sleeping {
                self.wakes_unasked(task, cpu);
            }
        }
    }

    /// Throttles deadline tasks of a CPU that goes to a task of a class below: they have used up
    /// their runtime, and have some again when they are next. (`dl_throttled` is not told.)
    fn runtime_is_out(&mut self, cpu: CpuId, next: Option<TaskId>) {
        let m = &mut self.simulation.k.m;
        if next.is_none_or(|next| m.class_of(next) != Class::Deadline) {
            let waits = |t: &Task| t.cpu == cpu && t.state == State::Runnable;
            for (i, t) in m.tasks.iter_mut().enumerate().filter(|(_, t)| waits(t)) {
                let id = DlId::Task(TaskId(i as u32));
                if t.sched.class() == Class::Deadline
                    && let Some(dl) = t.sched.dl.as_mut().filter(|dl| !dl.special)
                {
                    dl.throttled = true;
                    m.cpus[cpu.index()].dl.remove(id);
                }
            }
        }
        // Real-time tasks, too, where they are throttled (`rt_throttled`).
        let (throttles, limit) = (m.rt_throttles(), m.slots.sysctls.rt);
        let class = next.map_or(Class::Fair, |next| m.class_of(next));
        let c = m.cpu_mut(cpu);
        match class {
            Class::Rt if c.rt_throttle.throttled => {
                c.rt_throttle.period_over(limit);
                c.rt_throttle.throttled = false;
            }
            Class::Fair if throttles => c.rt_throttle.throttled = !c.rt.is_empty(),
            _ => {}
        }
        let Some(next) = next else { return };
        if let Some(dl) = &mut m.task_mut(next).sched.dl
            && std::mem::take(&mut dl.throttled)
        {
            let deadline = dl.deadline;
            m.cpu_mut(cpu).dl.insert(deadline, DlId::Task(next));
        }
    }

    /// The CPU reschedules: who comes next is asked, and is `next`.
    fn picks(&mut self, cpu: CpuId, next: Option<TaskId>) {
        let k = &mut self.simulation.k;
        let longest = k.m.fair_queued(cpu).map(|(task, _)| task);
        let longest = longest
            .filter(|t| Some(*t) != k.m.cpu(cpu).curr && k.m.task(*t).state == State::Runnable)
            .min_by_key(|t| k.m.task(*t).listed);
        {
            let mut shared = self.shared.borrow_mut();
            (shared.pick, shared.longest) = (Some(next), longest);
        }
        k.rq(cpu).schedule();
        self.shared.borrow_mut().pick = None;
        if k.m.cpu(cpu).curr != next {
            self.followed.lost.picks += 1;
        }
        if let Some(next) = next {
            k.m.task_mut(next).todo = Todo::Time(Span(u64::MAX >> 1));
            k.rq(cpu).enters_group(next);
            k.rq(cpu).take_policy(next);
            if let Some(attr) = self.first_act.remove(&next) {
                k.rq(cpu).set_attr(next, &attr);
            }
        }
    }

    /// Makes sure that the task that gets the CPU there can get it here; `known`: it was seen
    /// before.
    fn is_queued(&mut self, task: TaskId, cpu: CpuId, known: bool) {
        let k = &mut self.simulation.k;
        match k.m.task(task).state {
            State::Runnable if k.m.task(task).cpu == cpu => {}
            State::Runnable => {
                self.followed.lost.wakeups += 1;
                let on = k.m.task(task).cpu;
                k.move_queued(task, on, cpu, Why::Given);
            }
            State::New => {}
            State::Sleeping | State::Waking | State::Exited => {
                self.followed.lost.wakeups += u64::from(known);
                k.m.task_mut(task).state = State::Sleeping;
                self.wakes_unasked(task, cpu);
            }
        }
    }

    /// Puts a CPU into an idle state as there; the first state of a sleep has been asked for
    /// already.
    pub(super) fn idles(&mut self, cpu: CpuId) {
        let k = &self.simulation.k;
        let passed = self.shared.borrow().idles.get(&cpu).is_none_or(|i| i.has_passed(k.m.now));
        if k.m.cpu(cpu).curr.is_some() || passed {
            return;
        }
        self.simulation.k.rq(cpu).leave_idle();
        self.remembers_sleeps(cpu);
        self.simulation.k.rq(cpu).enter_idle();
        self.has_chosen(cpu);
    }
}

/// A kthread of the machine's own.
fn kthread_named(m: &Machine, name: &str) -> Option<TaskId> {
    let named = |t: &crate::state::machine::Task| &*t.comm == name && !matches!(t.role, Role::User);
    m.tasks.iter().position(named).map(|i| TaskId(i as u32))
}

/// The CPU of a thread that each CPU has one of: `kworker/3:1H`, `ksoftirqd/3`, `migration/3`.
fn own_cpu(name: &str) -> Option<CpuId> {
    let (kind, rest) = name.split_once('/')?;
    if kind == "kworker" && rest.starts_with('u') {
        return None;
    }
    let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
    number.parse().ok().map(CpuId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_of_each_cpu_is_told_by_its_name() {
        assert_eq!(own_cpu("kworker/3:1H"), Some(CpuId(3)));
        assert_eq!(own_cpu("migration/12"), Some(CpuId(12)));
        assert_eq!(own_cpu("kworker/u8:2"), None);
        assert_eq!(own_cpu("sugov:0"), None);
    }
}
