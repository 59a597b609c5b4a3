//! CPUs that go offline and come back (`global.hotplug` of a workload).
//!
//! ```text
//! cpu_down   inactive → domains rebuilt without it → its tasks pushed away (balance_push), the
//!            running one first → timers to another CPU → cpufreq: off its policy → idle for good
//! cpu_up     on its policy → domains rebuilt with it → newly idle: it looks for work elsewhere
//! ```
//!
//! A task asleep keeps its CPU, and is placed anew when it wakes; one whose affinity leaves no CPU
//! that is online may run everywhere from then on (`select_fallback_rq`), and stays so. With the
//! domains go the unequal capacities, SMT and EAS: whatever the CPUs left have. The root domain is a
//! new one: nothing is overutilized or overloaded until someone finds out.
//!
//! DEVIATES(hotplug_instant): a CPU goes offline, and comes back, at one instant, its tasks and timers
//! with it. A kernel takes some 20 ms each way, in steps: tasks are pushed off at the beginning, and the
//! domains change some ms after that. An offline CPU draws what its deepest idle state draws.
//! Leaves out: real-time and deadline tasks, and task groups: such a workload is refused
//! ([`supported`]).
//!
//! Source: kernel/cpu.c, kernel/sched/core.c (sched_cpu_deactivate, balance_push,
//! select_fallback_rq), kernel/time/hrtimer.c (hrtimers_cpu_dying), drivers/cpufreq/cpufreq.c.

use crate::kernel::Kernel;
use crate::kernel::placement::select_fallback_rq;
use crate::kernel::rq::Rq;
use crate::kernel::topology::sched_domains;
use crate::state::hooks::Point;
use crate::state::hooks::Step;
use crate::state::machine::{Idle, State};
use crate::state::tally::Tally;
use crate::time::queue::Ev;
use crate::time::queue::Queue;
use risetime_kernel::pelt::update_load_avg_se;
use risetime_kernel::units::{Capacity, CpuId, Instant, TaskId};
use risetime_model::InputError;
use risetime_model::workload::{Attr, Hotplug, TaskSpec, Workload};
use risetime_trace::{Event, Why};

/// Whether CPUs may go offline under this workload.
///
/// Errors: it has tasks of other classes, or groups.
pub(crate) fn supported(workload: &Workload) -> Result<(), InputError> {
    let place =
        workload.hotplug.first().map(|h| h.error_place(workload.place())).unwrap_or_default();
    let err = |what: &str| Err(InputError::new(place.clone(), what));
    let other = |attr: &Attr| {
        let policy = attr.policy;
        policy.is_some_and(|p| !p.is_fair())
    };
    let attrs = |t: &TaskSpec| other(&t.attr) || t.phases.iter().any(|p| other(&p.attr));
    match () {
        _ if workload.hotplug.is_empty() => Ok(()),
        _ if workload.tasks.iter().chain(&workload.forked).any(attrs) => {
            err("found real-time or deadline tasks beside it, wanted fair ones")
        }
        _ if !workload.groups.is_empty() => err("found task groups beside it, wanted none"),
        _ => Ok(()),
    }
}

impl Rq<'_, '_> {
    /// Takes the CPU out of its policy, which goes on with the CPUs left, or keeps its frequency
    /// until one comes back.
    fn leave_policy(&mut self) {
        let cpu = self.cpu;
        let d = self.domain();
        if d.cpus.len() > 1 {
            d.cpus.retain(|c| *c != cpu);
        } else {
            (d.work_in_progress, d.driver_due) = (false, false);
        }
    }

    fn join_policy(&mut self) {
        let cpu = self.cpu;
        let d = self.domain();
        if !d.cpus.contains(&cpu) {
            d.cpus.push(cpu);
            d.cpus.sort();
        }
    }
}

/// Queues the changes of a workload.
pub(crate) fn plan_hotplug(q: &mut Queue, changes: &[Hotplug], start: Instant) {
    for change in changes {
        let at = start + change.at;
        q.push(at, Ev::Hotplug { cpu: change.cpu, online: change.online });
    }
}

impl Kernel<'_> {
    pub(crate) fn hotplug(&mut self, cpu: CpuId, online: bool) {
        if self.m.root.online.contains(cpu) == online || !self.m.does(Step::Hotplug) {
            return;
        }
        if online {
            self.emit(Event::Hotplug { cpu, online });
            self.cpu_up(cpu);
        } else {
            self.cpu_down(cpu);
            self.emit(Event::Hotplug { cpu, online });
        }
    }

    fn cpu_down(&mut self, cpu: CpuId) {
        self.m.root.online.remove(cpu);
        self.m.root.idle_cpus.remove(cpu);
        self.rebuild_sched_domains();
        let refuge = self.m.root.online.lowest().unwrap_or(CpuId(0));
        if self.parent_cpu == cpu {
            self.parent_cpu = refuge;
        }
        self.rq(cpu).update_rq_clock();
        self.park_stopper(cpu);
        self.balance_push(cpu);
        // `hrtimers_cpu_dying`
        for (at, task) in self.m.cpu_mut(cpu).timers.take() {
            self.m.cpu_mut(refuge).timers.insert((at, task));
            self.m.task_mut(task).timer_cpu = Some(refuge);
        }
        self.rq(refuge).program_event();
        for task in &mut self.m.tasks {
            if task.timer_cpu == Some(cpu) {
                task.timer_cpu = Some(refuge);
            }
        }
        self.m.need_resched.remove(cpu);
        self.rq(cpu).leave_policy();
        // Out of the idle state it is in, into its last one.
        self.rq(cpu).leave_idle();
        let states = self.m.domains[self.m.cpu(cpu).domain].idle.len() as u32;
        let (now, state) = (self.m.now, states.checked_sub(1));
        let c = self.m.cpu_mut(cpu);
        c.idle = Some(Idle { state, since: now });
        (c.waking, c.tick_stopped, c.misfit_task_load) = (false, true, 0);
        c.nohz_kick = Default::default();
        c.tick_gen = c.tick_gen.wrapping_add(1);
        c.work_gen = c.work_gen.wrapping_add(1);
        if state.is_some() {
            self.emit(Event::Idle { cpu, state });
        }
    }

    /// `balance_push`: every task that may move leaves, the running one first. Those asleep whose
    /// dequeue was delayed leave the queue.
    fn balance_push(&mut self, cpu: CpuId) {
        let (m, curr) = (&self.m, self.m.cpu(cpu).curr);
        let ids = (0..m.tasks.len() as u32).map(TaskId);
        let mut tasks: Vec<TaskId> = ids.filter(|t| m.task(*t).cpu == cpu).collect();
        tasks.sort_by_key(|t| (Some(*t) != curr, m.task(*t).listed));
        for task in tasks {
            if self.m.task(task).state == State::Runnable && self.m.task(task).cpu == cpu {
                self.rq(cpu).allow_some(task);
                let given = self.m.cpu_instead(Point::Push { task });
                let to = given.map_or_else(|| select_fallback_rq(&self.m, task), |to| to.cpu);
                self.move_queued(task, cpu, to, Why::Hotplug);
            } else if let Some(entity) = self.m.cpu_mut(cpu).cfs.finish_delayed(task) {
                let now = self.m.cpu(cpu).clock.rq_clock_pelt();
                let pelt = self.m.pelt(cpu);
                let t = &mut self.m.tasks[task.index()];
                update_load_avg_se(pelt, now, &mut t.avg, t.weight, true, 0, false);
                t.entity = Some(entity);
            }
        }
        // A kthread asleep here wakes where its policy still has a CPU.
        for task in 0..self.m.tasks.len() as u32 {
            let task = TaskId(task);
            if self.m.class_of(task).is_above_fair()
                && !self.m.task(task).sched.stop
                && self.m.task(task).cpu == cpu
                && self.m.task(task).state != State::Exited
            {
                let to = select_fallback_rq(&self.m, task);
                self.m.task_mut(task).cpu = to;
                // A trace has not seen one that has not woken yet.
                if to != cpu && self.m.task(task).state != State::New {
                    self.emit(Event::Migrate { task, from: cpu, to, why: Why::Hotplug });
                }
            }
        }
    }

    fn cpu_up(&mut self, cpu: CpuId) {
        self.m.root.online.insert(cpu);
        self.rq(cpu).join_policy();
        self.rebuild_sched_domains();
        self.rq(cpu).update_rq_clock();
        self.rq(cpu).leave_idle();
        let next = self.m.next_tick();
        self.rq(cpu).start_tick(next);
        // The kthreads that bring it up are awake there together, and the last one that falls asleep
        // leaves it newly idle.
        self.m.root.overloaded = true;
        self.m.need_resched.insert(cpu);
    }

    /// `rebuild_sched_domains` and `rebuild_sched_domains_energy`.
    pub(crate) fn rebuild_sched_domains(&mut self) {
        let m = &mut self.m;
        let capacity: Vec<Capacity> = m.cpus.iter().map(|c| c.capacity).collect();
        let online = m.root.online;
        let built = sched_domains(&m.platform, &capacity, m.rev, &online);
        let now = m.jiffies();
        for ((c, mut domains), place) in m.cpus.iter_mut().zip(built.of).zip(built.places) {
            domains.iter_mut().for_each(|d| d.last_balance = now);
            (c.sched_domains, c.place) = (domains, place);
        }
        let root = &mut m.root;
        root.shared = built.shared;
        root.group_imbalance = vec![false; built.nr_groups];
        (root.smt, root.cluster, root.asym_cpucap) = (built.smt, built.cluster, built.asym_cpucap);
        root.overloaded = false;
        m.root.energy_aware = m.sched_is_eas_possible();
        if let Some(cache) = &mut m.slots.cache {
            cache.rebuild(&m.cpus, &online);
        }
        if m.tally.is_some() {
            m.tally = Some(Tally::new(m));
        }
        for cpu in online.iter() {
            let idle = self.m.idle_cpu(cpu);
            if idle {
                self.rq(cpu).update_idle_core();
            }
            self.core_shared(cpu);
        }
        self.rq(CpuId(0)).set_overutilized(false);
        let m = &mut self.m;
        m.classes.rebuild_root_domains(m.rev, &mut m.cpus, &m.tasks);
    }
}
