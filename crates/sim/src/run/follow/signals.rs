//! The reference's signals: what each is here is noted, and then it is as there.

use super::asked::Compared;
use super::follower::Follower;
use crate::state::class::Class;
use crate::state::machine::UPTIME;
use risetime_kernel::pelt::{Decay, SchedAvg, get_pelt_divider, update_rt_rq_load_avg};
use risetime_kernel::units::{ClockPelt, CpuId, Span, TaskId, Util};
use risetime_kernel::util_est::UtilEst;
use risetime_trace::{Event, PressureClass};

/// A CPU's fair signals, as they were told last.
#[derive(Clone, Copy)]
pub(super) struct CfsTold {
    cpu: CpuId,
    /// `last_update_time`.
    at: ClockPelt,
    /// Values here before: `util_avg`, `runnable_avg`, `util_est`, `load_avg`.
    own: [u64; 4],
    /// Number of values that had been compared by then.
    compared: usize,
}

/// Owner of a value.
#[derive(Clone, Copy)]
pub(super) enum Of {
    Cpu(CpuId),
    /// A task, by its number there.
    Task(TaskId),
}

/// The averages of a CPU as they were told last, which is as they are there: every change is told.
#[derive(Clone, Copy, Default)]
pub(super) struct Averages {
    /// `util_avg` and `runnable_avg` of its fair runqueue.
    cfs: Option<(Util, Util)>,
    /// `util_est` of the CPU.
    est: Option<Util>,
    rt: Option<Util>,
    dl: Option<Util>,
    /// `running_bw`, whose every change makes the governor look.
    running_bw: Option<u64>,
}

impl Follower<'_, '_> {
    /// A CPU's fair averages there.
    pub(super) fn told_cfs(&mut self, cpu: CpuId, util: Util, runnable: Util, est: Util) {
        let told = &mut self.averages[cpu.index()];
        (told.cfs, told.est) = (Some((util, runnable)), Some(est));
    }

    /// A CPU's deadline bandwidth there.
    pub(super) fn told_bw(&mut self, cpu: CpuId, running_bw: u64) {
        self.averages[cpu.index()].running_bw = Some(running_bw);
    }

    /// Sets averages as the reference tells them before a decision: they have not moved here where
    /// they have not there.
    pub(super) fn averages_as_told(&mut self) {
        for (c, told) in self.simulation.k.m.cpus.iter_mut().zip(&self.averages) {
            c.needs_changed();
            let avg = &mut c.cfs_avg.avg;
            (avg.util_avg, avg.runnable_avg) = told.cfs.unwrap_or((avg.util_avg, avg.runnable_avg));
            c.dl.running_bw = told.running_bw.unwrap_or(c.dl.running_bw);
            c.util_est = told.est.unwrap_or(c.util_est);
            c.rt_avg.util_avg = told.rt.unwrap_or(c.rt_avg.util_avg);
            c.dl_avg.util_avg = told.dl.unwrap_or(c.dl_avg.util_avg);
        }
    }

    pub(super) fn compare(&mut self, what: &'static str, of: Of, own: u64, given: u64) {
        let (cpu, task) = match of {
            Of::Cpu(cpu) => (Some(cpu), None),
            Of::Task(task) => (None, Some(task)),
        };
        let (at, own, given) = (self.simulation.k.m.now, own as i64, given as i64);
        self.followed.compared.push(Compared { at, what, cpu, task, own, given });
    }

    /// A signal there: what it is here is noted, and then it is as there.
    pub(super) fn signal(&mut self, event: &Event) {
        match *event {
            Event::PeltTask { .. } => self.pelt_task(event),
            Event::PeltCfs { .. } => self.pelt_cfs(event),
            // Both are told with the signals before.
            Event::TaskLoad { task, load_avg, load_sum } => {
                let of = Of::Task(task);
                let task = self.task(task, CpuId(0));
                let avg = &mut self.simulation.k.m.task_mut(task).avg;
                let own = std::mem::replace(&mut avg.load_avg, load_avg);
                avg.load_sum = load_sum;
                self.compare("task load_avg", of, own, load_avg);
            }
            Event::CfsLoad { cpu, load_avg, load_sum } => {
                let avg = &mut self.simulation.k.m.cpu_mut(cpu).cfs_avg.avg;
                (avg.load_avg, avg.load_sum) = (load_avg, load_sum);
                if let Some(told) = self.cfs_told.filter(|told| told.cpu == cpu) {
                    self.compare("cfs_rq load_avg", Of::Cpu(cpu), told.own[3], load_avg);
                }
            }
            Event::CfsUtilEst { cpu, util_est } => {
                self.averages[cpu.index()].est = Some(util_est);
                let own =
                    std::mem::replace(&mut self.simulation.k.m.cpu_mut(cpu).util_est, util_est);
                self.compare("cfs_rq util_est", Of::Cpu(cpu), own.0, util_est.0);
            }
            Event::UtilEst { task, util_est } => {
                let of = Of::Task(task);
                let task = self.task(task, CpuId(0));
                let t = self.simulation.k.m.task_mut(task);
                let own = t.util_est.value().0;
                t.util_est = UtilEst(util_est.0 as u32);
                // A `util_est` is a sample of signals, which are as there.
                if !self.other_clock.contains(&task) {
                    self.compare("task util_est", of, own, util_est.0);
                }
            }
            Event::PeltPressure { .. } => self.pelt_pressure(event),
            Event::CpuCapacity { cpu, capacity } => {
                let c = self.simulation.k.m.cpu_mut(cpu);
                let own = std::mem::replace(&mut c.cpu_capacity, capacity);
                self.compare("cpu_capacity", Of::Cpu(cpu), own.0, capacity.0);
            }
            _ => {}
        }
    }

    /// Takes over a task's average, and compares it with the own.
    fn pelt_task(&mut self, event: &Event) {
        let Event::PeltTask {
            task,
            cpu,
            util_avg,
            runnable_avg,
            util_sum,
            period_contrib,
            last_update_time,
        } = *event
        else {
            return;
        };

        let of = Of::Task(task);
        let (task, at) = (self.task(task, cpu), clock(last_update_time));
        let m = &mut self.simulation.k.m;
        let (decay, t) = (m.decay, m.task_mut(task));
        let own = (t.avg.util_avg.0, t.avg.runnable_avg.0);
        let same = t.avg.last_update_time.0.abs_diff(at.0) < SAME;
        t.avg.util_avg = util_avg;
        t.avg.runnable_avg = runnable_avg;
        t.avg.util_sum = util_sum as u32;
        t.avg.period_contrib = period_contrib;
        t.avg.runnable_sum = runnable_sum(decay, &t.avg);
        if t.avg.last_update_time.0 != 0 {
            t.avg.last_update_time = at;
        }
        if same {
            self.other_clock.remove(&task);
            self.compare("task util_avg", of, own.0, util_avg.0);
            self.compare("task runnable_avg", of, own.1, runnable_avg.0);
        } else {
            self.other_clock.insert(task);
        }
    }

    /// Takes over the average of a CPU's fair runqueue, and compares it with the own.
    fn pelt_cfs(&mut self, event: &Event) {
        let Event::PeltCfs {
            cpu,
            util_avg,
            runnable_avg,
            util_est,
            util_sum,
            period_contrib,
            last_update_time,
        } = *event
        else {
            return;
        };

        self.told_cfs(cpu, util_avg, runnable_avg, util_est);
        let at = clock(last_update_time);
        // The clock stands still while a lock is held there: it is the same until the next one.
        let mut rq = self.simulation.k.rq(cpu);
        if rq.m().sched_clock().since(rq.m().cpu(cpu).clock.clock) > LOCKED {
            rq.update_rq_clock();
        }
        let m = &mut self.simulation.k.m;
        let (decay, c) = (m.decay, m.cpu_mut(cpu));
        let avg = &mut c.cfs_avg.avg;
        let runnable = avg.runnable_sum / u64::from(get_pelt_divider(decay, avg));
        let own = [of_sum(decay, avg), runnable, c.util_est.0, avg.load_avg];
        let same = avg.last_update_time.0.abs_diff(at.0) < SAME;
        // A task that joins is told of as an update and its joining, both at the same time: here both are done.
        let before = self.cfs_told.filter(|b| (b.cpu, b.at) == (cpu, at));
        let own = before.map_or(own, |b| b.own);
        if let Some(before) = before {
            self.followed.compared.truncate(before.compared);
        }
        self.cfs_told = Some(CfsTold { cpu, at, own, compared: self.followed.compared.len() });
        avg.util_avg = util_avg;
        avg.runnable_avg = runnable_avg;
        avg.util_sum = util_sum as u32;
        avg.period_contrib = period_contrib;
        avg.runnable_sum = runnable_sum(decay, avg);
        avg.last_update_time = at;
        c.util_est = util_est;
        // An idle CPU's clock is its task clock: what it has lost is what differs.
        match c.curr {
            Some(_) => c.clock.clock_pelt = at.0.wrapping_add(c.clock.lost_idle_time),
            None => c.clock.lost_idle_time = c.clock.clock_pelt.wrapping_sub(at.0),
        }
        if same {
            self.compare("cfs_rq util_avg", Of::Cpu(cpu), own[0], util_avg.0);
            self.compare("cfs_rq runnable_avg", Of::Cpu(cpu), own[1], runnable_avg.0);
            self.compare("cfs_rq util_est", Of::Cpu(cpu), own[2], util_est.0);
        }
        self.moved = Some(cpu);
    }

    /// Takes over the average of a class above on a CPU, and compares it with the own.
    fn pelt_pressure(&mut self, event: &Event) {
        let Event::PeltPressure {
            cpu,
            class,
            util_avg,
            util_sum,
            period_contrib,
            last_update_time,
        } = *event
        else {
            return;
        };

        let at = clock(last_update_time);
        let m = &mut self.simulation.k.m;
        let of = match class {
            PressureClass::Rt => Class::Rt,
            _ => Class::Deadline,
        };
        let runs = m.cpu(cpu).curr.is_some_and(|curr| m.class_of(curr) == of);
        let (pelt, c) = (m.decay, m.cpu_mut(cpu));
        let told = &mut self.averages[cpu.index()];
        let (avg, told, what) = match class {
            PressureClass::Rt => (&mut c.rt_avg, &mut told.rt, "rt util_avg"),
            PressureClass::Dl => (&mut c.dl_avg, &mut told.dl, "dl util_avg"),
            _ => return,
        };
        *told = Some(util_avg);
        let same = avg.last_update_time.0.abs_diff(at.0) < SAME;
        // The signal is told where a period ends, which may have been a moment earlier here.
        let mut own = *avg;
        if same && at > own.last_update_time {
            update_rt_rq_load_avg(pelt, at, &mut own, runs);
        }
        let own = of_sum(pelt, &own);
        // An idle CPU's are aged by who balances for it, and then the governor looks.
        let aged = c.curr.is_none();
        (avg.util_avg, avg.util_sum) = (util_avg, util_sum as u32);
        (avg.period_contrib, avg.last_update_time) = (period_contrib, at);
        if same {
            self.compare(what, Of::Cpu(cpu), own, util_avg.0);
        }
        if aged {
            self.moved = Some(cpu);
        }
    }
}

/// Updates that are so far apart in time are not the same one.
const SAME: u64 = 30_000;
/// Time for which a runqueue is locked.
const LOCKED: Span = Span::from_us(40);

/// The reference's time of an update on the clock here.
fn clock(at: ClockPelt) -> ClockPelt {
    ClockPelt(at.0.wrapping_add(UPTIME.0))
}

/// `util_avg` as its sum has it: what it was before a decision has been told since (`averages_as_told`).
fn of_sum(decay: &Decay, avg: &SchedAvg) -> u64 {
    u64::from(avg.util_sum / get_pelt_divider(decay, avg))
}

/// The sum that the reference does not tell: in the middle of what gives its average.
fn runnable_sum(decay: &Decay, avg: &SchedAvg) -> u64 {
    avg.runnable_avg.0 * u64::from(get_pelt_divider(decay, avg))
}
