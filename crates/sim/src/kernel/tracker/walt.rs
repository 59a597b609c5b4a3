//! `walt`: window-assisted load tracking, as in Android's common kernels 4.4 to 4.14.
//!
//! ```text
//! task_util     what a task needs in a window, from the last five in which it did anything
//! cpu_util      placement, misfit: Σ over the queued tasks (cumulative_runnable_avg)
//!               (at first the same as below: walt_cpu_util=prev_runnable_sum)
//! cpu_util_freq frequency: how busy the CPU was in the last window (prev_runnable_sum)
//! ```
//!
//! Windows roll over when something happens on a CPU: mostly at its tick. Nobody asks for a frequency because one
//! has; the governor's next look sees it. There is no util_est: a task's demand outlives its sleep anyway.
//!
//! `DEVIATES(walt-classes)`: Android's WALT counts the tasks of all classes. Here it counts those of the fair one,
//! and what the others use is added by their PELT signals, as under every tracker: an RT task that has just begun
//! to run raises the frequency at once instead of a window later, and interrupts on an idle CPU count for nothing.
//!
//! `DEVIATES(walt-idle)`: an idle CPU without a tick keeps its sums, and the schedutil of that time left out CPUs
//! that had not been updated for more than a tick. Here the last window of an idle CPU is empty once one has
//! passed, so that every governor sees the same: it lets go of the frequency up to a window later.
//!
//! Arithmetic: [`risetime_kernel::walt`].

use super::{Descriptor, Heard, Tracker};
use risetime_kernel::units::{Capacity, CpuId, Instant, TaskId, Util};
use risetime_kernel::walt::{Ravg, TaskEvent, Update, Walt, WaltRq, WindowStats};
use risetime_model::Platform;
use risetime_model::settings::{Default, Group, Home, Int, Name, Neutral, Param, Range, Settings};

/// Length of a window, in ns.
pub const WINDOW: Int = Int::new(Param {
    name: "walt_ravg_window",
    doc: "the length of a window",
    unit: "ns",
    range: Range::Int(10_000_000, 1_000_000_000),
    default: Default::Int(20_000_000),
    home: Home::Patched(Some("walt_ravg_window="), Neutral::None),
});
/// Demand of a task by its last windows.
pub const STATS: Name = Name::new(Param {
    name: "sched_window_stats_policy",
    doc: "demand of a task by its last five windows: the last, the most, their mean, or the larger of last and mean",
    unit: "",
    range: Range::OneOf(&["recent", "max", "max_recent_avg", "avg"]),
    default: Default::Name("max_recent_avg"),
    home: Home::Patched(Some("kernel.sched_window_stats_policy"), Neutral::None),
});
const WAIT: Int = Int::new(Param {
    name: "sched_account_wait_time",
    doc: "the demand of a task counts the time that it waits for its CPU",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Int(1),
    home: Home::Patched(Some("kernel.sched_account_wait_time"), Neutral::None),
});
const FREQ_WAIT: Int = Int::new(Param {
    name: "sched_freq_account_wait_time",
    doc: "the CPU's busy time counts the time that tasks wait, too, once for each of them",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Int(0),
    home: Home::Patched(Some("kernel.sched_freq_account_wait_time"), Neutral::None),
});
const INIT: Int = Int::new(Param {
    name: "sched_walt_init_task_load_pct",
    doc: "the demand of a new task",
    unit: "%",
    range: Range::Int(0, 100),
    default: Default::Int(15),
    home: Home::Patched(Some("kernel.sched_walt_init_task_load_pct"), Neutral::None),
});
const CPU_UTIL: Name = Name::new(Param {
    name: "walt_cpu_util",
    doc: "util of a CPU for placement and misfit: the demand of its queued tasks, or (as in the first Android kernels with WALT) its last window, as the frequency does",
    unit: "",
    range: Range::OneOf(&[CUMULATIVE, PREV_SUM]),
    default: Default::Name(CUMULATIVE),
    home: Home::Patched(None, Neutral::None),
});
const CUMULATIVE: &str = "cumulative_runnable_avg";
const PREV_SUM: &str = "prev_runnable_sum";

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "walt",
    doc: "busy time in windows, and what each task needed in its last five (Android 4.4 to 4.14)",
    settings: Group::of(&[WINDOW.0, STATS.0, WAIT.0, FREQ_WAIT.0, INIT.0, CPU_UTIL.0]),
    make: |platform, settings| Some(Box::new(Tracked::new(platform, settings))),
};

/// One CPU.
struct Cpu {
    rq: WaltRq,
    /// `capacity_curr_of`.
    capacity_curr: Capacity,
    /// Task that has the CPU; `None`: the idle task.
    curr: Option<TaskId>,
    /// True if that task is a fair one.
    counts: bool,
    /// Account of the idle task, or of one of another class.
    uncounted: Ravg,
    /// Σ demand of the queued tasks.
    cumulative_runnable_avg: u64,
}

/// One task.
#[derive(Clone, Copy)]
struct Task {
    ravg: Ravg,
    /// CPU of the task, now or last; `None`: none yet.
    cpu: Option<CpuId>,
    queued: bool,
}

/// The machine as WALT knows it.
struct Tracked {
    walt: Walt,
    by_prev_sum: bool,
    now: Instant,
    cpus: Vec<Cpu>,
    tasks: Vec<Task>,
    new: Task,
}

impl Tracked {
    fn new(platform: &Platform, settings: &Settings) -> Tracked {
        let int = |of: &Int| settings.get(of).unwrap_or(0).max(0) as u64;
        let walt = Walt {
            window: int(&WINDOW).max(1),
            stats: match settings.get(&STATS) {
                Some("recent") => WindowStats::Recent,
                Some("max") => WindowStats::Max,
                Some("avg") => WindowStats::Avg,
                _ => WindowStats::MaxRecentAvg,
            },
            account_wait_time: int(&WAIT) != 0,
            freq_account_wait_time: int(&FREQ_WAIT) != 0,
            init_task_load_pct: int(&INIT),
        };
        let started = Ravg { mark_start: Some(Instant(0)), ..Ravg::default() };
        let cpu = |_| Cpu {
            rq: WaltRq::default(),
            capacity_curr: Capacity(0),
            curr: None,
            counts: false,
            uncounted: started,
            cumulative_runnable_avg: 0,
        };
        Tracked {
            walt,
            by_prev_sum: settings.get(&CPU_UTIL) == Some(PREV_SUM),
            now: Instant(0),
            cpus: platform.cpus().map(cpu).collect(),
            tasks: Vec::new(),
            new: Task { ravg: walt.init_new_task_load(), cpu: None, queued: false },
        }
    }

    fn task(&self, task: TaskId) -> &Task {
        self.tasks.get(task.index()).unwrap_or(&self.new)
    }

    fn task_mut(&mut self, task: TaskId) -> &mut Task {
        if self.tasks.len() <= task.index() {
            self.tasks.resize(task.index() + 1, self.new);
        }
        &mut self.tasks[task.index()]
    }

    /// `walt_update_task_ravg` of a fair task on `cpu`.
    fn update(&mut self, cpu: CpuId, task: TaskId, event: TaskEvent) {
        self.task_mut(task);
        let (c, t) = (&mut self.cpus[cpu.index()], &mut self.tasks[task.index()]);
        let is_curr = c.counts && c.curr == Some(task);
        let capacity_curr = c.capacity_curr;
        let update = Update { event, wallclock: self.now, is_curr, counts: true, capacity_curr };
        let before = t.ravg.demand;
        self.walt.update_task_ravg(&mut t.ravg, &mut c.rq, &update);
        if t.queued {
            c.cumulative_runnable_avg = c.cumulative_runnable_avg - before + t.ravg.demand;
        }
    }

    /// Updates the window of the task that has the CPU, whether it counts or not.
    fn update_curr(&mut self, cpu: CpuId, event: TaskEvent) {
        let c = &mut self.cpus[cpu.index()];
        if let Some(curr) = c.curr.filter(|_| c.counts) {
            return self.update(cpu, curr, event);
        }
        let (is_curr, counts, capacity_curr) = (true, false, c.capacity_curr);
        let update = Update { event, wallclock: self.now, is_curr, counts, capacity_curr };
        self.walt.update_task_ravg(&mut c.uncounted, &mut c.rq, &update);
    }

    /// Sets the CPU's current task, and whether its time counts.
    fn set_curr(&mut self, cpu: CpuId, curr: Option<TaskId>, counts: bool) {
        let c = &mut self.cpus[cpu.index()];
        (c.curr, c.counts) = (curr, counts);
        c.uncounted.mark_start = Some(self.now);
    }

    fn wakes(&mut self, cpu: CpuId, task: TaskId) {
        self.update_curr(cpu, TaskEvent::Update);
        self.update(cpu, task, TaskEvent::Wake);
    }

    fn enqueue(&mut self, cpu: CpuId, task: TaskId) {
        self.follow(task, cpu);
        // Of one that comes from another class nothing has counted until now.
        self.wakes(cpu, task);
        let t = self.task_mut(task);
        t.cpu = Some(cpu);
        let demand = if std::mem::replace(&mut t.queued, true) { 0 } else { t.ravg.demand };
        let c = &mut self.cpus[cpu.index()];
        c.cumulative_runnable_avg += demand;
        if c.curr == Some(task) {
            self.set_curr(cpu, Some(task), true);
        }
    }

    fn dequeue(&mut self, cpu: CpuId, task: TaskId) {
        let c = &self.cpus[cpu.index()];
        let running = c.counts && c.curr == Some(task);
        if running {
            self.update_curr(cpu, TaskEvent::Update);
        }
        let t = self.task_mut(task);
        let demand = if std::mem::take(&mut t.queued) { t.ravg.demand } else { 0 };
        self.cpus[cpu.index()].cumulative_runnable_avg -= demand;
        if running {
            self.set_curr(cpu, Some(task), false);
        }
    }

    fn switch(&mut self, cpu: CpuId, next: Option<TaskId>) {
        self.update_curr(cpu, TaskEvent::PutPrev);
        let counts = next.is_some_and(|next| self.task(next).queued);
        if let Some(next) = next.filter(|_| counts) {
            self.update(cpu, next, TaskEvent::PickNext);
        }
        self.set_curr(cpu, next, counts);
    }

    /// `walt_fixup_busy_time`: what `task` added goes along with it to `to`.
    fn follow(&mut self, task: TaskId, to: CpuId) {
        let Some(from) = self.task(task).cpu.filter(|from| *from != to) else { return };
        self.update_curr(from, TaskEvent::Update);
        self.update_curr(to, TaskEvent::Update);
        self.update(from, task, TaskEvent::Migrate);
        let Task { ravg, queued, .. } = *self.task(task);
        if queued {
            // In limbo, without quota: nobody has said that it left.
            self.cpus[from.index()].cumulative_runnable_avg -= ravg.demand;
            self.cpus[to.index()].cumulative_runnable_avg += ravg.demand;
        }
        let mut dest = self.cpus[to.index()].rq;
        self.cpus[from.index()].rq.fixup_busy_time(&ravg, &mut dest);
        self.cpus[to.index()].rq = dest;
        self.task_mut(task).cpu = Some(to);
    }

    /// The util of the CPU in the last window.
    fn prev_sum(&self, cpu: CpuId) -> Util {
        let c = &self.cpus[cpu.index()];
        let passed = self.now.since(c.rq.window_start).0 / self.walt.window;
        let sum = match (c.curr, passed) {
            (None, 1) => c.rq.curr_runnable_sum,
            (None, 2..) => 0,
            _ => c.rq.prev_runnable_sum,
        };
        self.walt.util(sum)
    }

    fn cumulative(&self, cpu: CpuId) -> Util {
        self.walt.util(self.cpus[cpu.index()].cumulative_runnable_avg)
    }
}

impl Tracker for Tracked {
    fn hears(&mut self, now: Instant, heard: Heard) {
        self.now = now;
        match heard {
            Heard::Enqueue { cpu, task, .. } => self.enqueue(cpu, task),
            Heard::Dequeue { cpu, task, .. } => self.dequeue(cpu, task),
            Heard::Tick { cpu, .. } => self.update_curr(cpu, TaskEvent::Update),
            Heard::Switch { cpu, next, .. } => self.switch(cpu, next),
            Heard::Wakeup { cpu, task } => self.wakes(cpu, task),
            Heard::Migrate { task, to, .. } => self.follow(task, to),
            // What has passed since the last update counts at the new speed, as in the kernel.
            Heard::Frequency { cpu, capacity, .. } => {
                self.cpus[cpu.index()].capacity_curr = capacity;
            }
        }
    }

    fn task_util(&self, task: TaskId) -> Util {
        self.walt.util(self.task(task).ravg.demand)
    }

    fn task_util_est(&self, task: TaskId) -> Util {
        self.task_util(task)
    }

    fn cpu_util(&self, cpu: CpuId) -> Util {
        if self.by_prev_sum { self.prev_sum(cpu) } else { self.cumulative(cpu) }
    }

    fn cpu_util_freq(&self, cpu: CpuId) -> Util {
        self.prev_sum(cpu)
    }

    /// The util of `cpu` without `task`, which only a queued task is taken off: a sleeping one's
    /// time in the CPU's last window does not fade.
    fn cpu_util_without(&self, cpu: CpuId, task: TaskId) -> Util {
        let t = self.task(task);
        let util = self.cpu_util(cpu);
        if !t.queued || t.cpu != Some(cpu) {
            return util;
        }
        util.saturating_sub(self.task_util(task))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use risetime_model::Policy;

    const CPUS: u32 = 3;
    const TASKS: u32 = 5;
    const WINDOW_NS: u64 = 20_000_000;

    /// A tracker of equal CPUs at full speed.
    fn tracked(set: &str) -> Tracked {
        let platform = Platform::load("hikey620").expect("built in");
        let policy = Policy::from_arg(&format!("mainline+tracker=walt{set}")).expect("a policy");
        let settings = crate::resolve(&platform, &policy).expect("settings");
        let mut walt = Tracked::new(&platform, &settings);
        for cpu in (0..CPUS).map(CpuId) {
            let (freq, capacity) = (platform.domains[0].freq_max(), Capacity(1024));
            walt.hears(Instant(0), Heard::Frequency { cpu, freq, capacity });
        }
        walt
    }

    /// A step of a test: it happens so much later, to a task or on a CPU.
    #[derive(Clone, Copy, Debug)]
    struct Act {
        after: u64,
        kind: u8,
        task: u32,
        cpu: u32,
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = (0..9_000_000u64, 0..6u8, 0..TASKS, 0..CPUS);
        vec(act.prop_map(|(after, kind, task, cpu)| Act { after, kind, task, cpu }), 1..120)
    }

    /// A machine in the tests' own words: who is queued where, who runs, and when each ran.
    #[derive(Default)]
    struct Ran {
        queued: [Option<CpuId>; TASKS as usize],
        last: [CpuId; TASKS as usize],
        curr: [Option<TaskId>; CPUS as usize],
        since: [u64; CPUS as usize],
        ran: Vec<(TaskId, u64, u64)>,
    }

    impl Ran {
        fn switch(&mut self, walt: &mut Tracked, now: Instant, cpu: CpuId, next: Option<TaskId>) {
            let prev = std::mem::replace(&mut self.curr[cpu.index()], next);
            if let Some(prev) = prev {
                self.ran.push((prev, self.since[cpu.index()], now.0));
            }
            self.since[cpu.index()] = now.0;
            walt.hears(now, Heard::Switch { cpu, prev, next });
        }

        /// Leaves its CPU, running or not; whoever is queued there runs instead.
        fn leaves(&mut self, walt: &mut Tracked, now: Instant, task: TaskId, sleeps: bool) {
            let Some(cpu) = self.queued[task.index()].take() else { return };
            walt.hears(now, Heard::Dequeue { cpu, task, sleeps });
            if self.curr[cpu.index()] == Some(task) {
                let next = (0..TASKS).map(TaskId).find(|t| self.queued[t.index()] == Some(cpu));
                self.switch(walt, now, cpu, next);
            }
        }

        fn comes(&mut self, walt: &mut Tracked, now: Instant, task: TaskId, cpu: CpuId) {
            let from = std::mem::replace(&mut self.last[task.index()], cpu);
            if from != cpu {
                walt.hears(now, Heard::Migrate { task, from, to: cpu });
            }
            walt.hears(now, Heard::Enqueue { cpu, task, new: false });
            self.queued[task.index()] = Some(cpu);
            if self.curr[cpu.index()].is_none() {
                self.switch(walt, now, cpu, Some(task));
            }
        }

        fn act(&mut self, walt: &mut Tracked, now: Instant, act: Act) {
            let (task, cpu) = (TaskId(act.task), CpuId(act.cpu));
            match (act.kind, self.queued[task.index()]) {
                (0 | 1, None) => {
                    walt.hears(now, Heard::Wakeup { cpu: self.last[task.index()], task });
                    self.comes(walt, now, task, cpu);
                }
                (0, Some(_)) => self.leaves(walt, now, task, true),
                (1, Some(at)) if at != cpu => {
                    self.leaves(walt, now, task, false);
                    self.comes(walt, now, task, cpu);
                }
                (2, Some(at)) if self.curr[at.index()] != Some(task) => {
                    self.switch(walt, now, at, Some(task));
                }
                _ => walt.hears(now, Heard::Tick { cpu, task: self.curr[cpu.index()] }),
            }
        }

        /// The time that the tasks that are (or were last) on `cpu` ran between `from` and `to`.
        fn between(&self, cpu: CpuId, from: u64, to: u64, now: u64) -> u64 {
            let running = (0..CPUS as usize)
                .filter_map(|c| Some((self.curr[c]?, self.since[c], now)))
                .chain(self.ran.iter().copied());
            running
                .filter(|(task, ..)| self.last[task.index()] == cpu)
                .map(|(_, begin, end)| end.min(to).saturating_sub(begin.max(from)))
                .sum()
        }
    }

    proptest! {
        #![proptest_config(draws::config(256))]

        /// In each window a CPU's sums are what its tasks ran, wherever they ran it.
        #[test]
        fn sums_are_what_the_tasks_ran(acts in acts()) {
            let (mut walt, mut m, mut now) = (tracked(""), Ran::default(), Instant(0));
            for act in acts {
                now.0 += act.after;
                m.act(&mut walt, now, act);
                for cpu in (0..CPUS).map(CpuId) {
                    walt.hears(now, Heard::Tick { cpu, task: m.curr[cpu.index()] });
                    let start = now.0 - now.0 % WINDOW_NS;
                    let rq = walt.cpus[cpu.index()].rq;
                    let last = m.between(cpu, start.saturating_sub(WINDOW_NS), start, now.0);
                    prop_assert_eq!(rq.curr_runnable_sum, m.between(cpu, start, now.0, now.0));
                    prop_assert_eq!(rq.prev_runnable_sum, last);
                    let demands = (0..TASKS).map(TaskId).filter(|t| m.queued[t.index()] == Some(cpu));
                    let demands: u64 = demands.map(|t| walt.task(t).ravg.demand).sum();
                    prop_assert_eq!(walt.cpus[cpu.index()].cumulative_runnable_avg, demands);
                    prop_assert!(walt.cpu_util_without(cpu, TaskId(0)) <= walt.cpu_util(cpu));
                }
                for task in (0..TASKS).map(TaskId) {
                    prop_assert!(walt.task_util(task) <= Util(1024));
                }
            }
        }
    }

    #[test]
    fn a_task_that_always_runs_fills_its_history() {
        let (task, cpu) = (TaskId(0), CpuId(1));
        for (stats, windows) in [("recent", 1), ("max", 1), ("max_recent_avg", 1), ("avg", 5)] {
            let mut walt = tracked(&format!("+sched_window_stats_policy={stats}"));
            let mut m = Ran::default();
            m.comes(&mut walt, Instant(0), task, cpu);
            for ms in (4..).step_by(4).take_while(|ms| *ms < 20 * windows) {
                walt.hears(Instant(ms * 1_000_000), Heard::Tick { cpu, task: Some(task) });
                assert!(walt.task_util(task) < Util(1024), "{stats} {ms}");
            }
            let full = Instant(20 * windows * 1_000_000);
            walt.hears(full, Heard::Tick { cpu, task: Some(task) });
            let utils = [walt.task_util(task), walt.cpu_util(cpu), walt.cpu_util_freq(cpu)];
            assert_eq!(utils, [Util(1024); 3], "{stats}");
        }
    }

    #[test]
    fn an_idle_cpu_forgets_its_last_window_when_it_is_over() {
        let (mut walt, mut m) = (tracked(""), Ran::default());
        let ms = |ms: u64| Instant(ms * 1_000_000);
        m.comes(&mut walt, ms(0), TaskId(0), CpuId(0));
        m.leaves(&mut walt, ms(10), TaskId(0), true);
        // Something happens elsewhere.
        let mut at = |now| {
            walt.hears(ms(now), Heard::Tick { cpu: CpuId(1), task: None });
            (walt.cpu_util_freq(CpuId(0)).0, walt.cpu_util(CpuId(0)).0)
        };
        assert_eq!([at(19), at(20), at(39), at(40)], [(0, 0), (512, 0), (512, 0), (0, 0)]);
    }

    #[test]
    fn a_class_change_while_it_runs_ends_and_begins_what_counts() {
        let (mut walt, mut m) = (tracked(""), Ran::default());
        let (task, cpu) = (TaskId(0), CpuId(0));
        let ms = |ms: u64| Instant(ms * 1_000_000);
        m.comes(&mut walt, ms(0), task, cpu);
        walt.hears(ms(5), Heard::Dequeue { cpu, task, sleeps: false });
        walt.hears(ms(11), Heard::Enqueue { cpu, task, new: false });
        walt.hears(ms(14), Heard::Tick { cpu, task: Some(task) });
        assert_eq!(walt.cpus[0].rq.curr_runnable_sum, 8_000_000);
        assert_eq!(walt.task(task).ravg.sum, 8_000_000);
    }
}
