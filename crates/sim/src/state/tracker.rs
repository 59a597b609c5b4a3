//! Load trackers: how busy tasks and CPUs are taken to be.
//!
//! PELT's signals are in the state itself (`SchedAvg` of tasks and runqueues), and what they say is asked of the
//! machine directly: `Machine::tracker` is `None` then. Any other tracker keeps what it knows to itself, hears of all
//! that happens, and answers in PELT's place whom util guides: schedutil, EAS, misfit. Load, group shares and
//! their propagation stay PELT's.

use risetime_kernel::units::{Capacity, CpuId, Instant, KHz, TaskId, Util};

/// Something that a tracker hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A fair task is queued; `new`: for the first time.
    Enqueue {
        /// The CPU.
        cpu: CpuId,
        /// The task.
        task: TaskId,
        /// True if the task has just been created.
        new: bool,
    },
    /// A fair task leaves its queue.
    Dequeue {
        /// The CPU.
        cpu: CpuId,
        /// The task.
        task: TaskId,
        /// True if the task falls asleep or exits; else it goes elsewhere.
        sleeps: bool,
    },
    /// A fair task is about to wake, and to be placed.
    Wakeup {
        /// CPU where the task slept.
        cpu: CpuId,
        /// The task.
        task: TaskId,
    },
    /// The tick of a CPU.
    Tick {
        /// The CPU.
        cpu: CpuId,
        /// The task that runs; `None`: the idle task.
        task: Option<TaskId>,
    },
    /// A CPU goes from one task to another; `None`: the idle task.
    Switch {
        /// The CPU.
        cpu: CpuId,
        /// The task that had the CPU.
        prev: Option<TaskId>,
        /// The task that has the CPU.
        next: Option<TaskId>,
    },
    /// A task changes its CPU, asleep or not.
    Migrate {
        /// The task.
        task: TaskId,
        /// CPU that the task leaves.
        from: CpuId,
        /// CPU that the task goes to.
        to: CpuId,
    },
    /// A CPU's frequency is another, as the kernel believes.
    Frequency {
        /// The CPU.
        cpu: CpuId,
        /// The new one.
        freq: KHz,
        /// `capacity_curr_of`: what the CPU gives at that.
        capacity: Capacity,
    },
}

/// A load tracker of a machine. Util is of 1024, the biggest CPU at its highest frequency; asked for at any time, it is
/// as of what was heard last.
pub trait Tracker {
    /// Takes in that something has happened. A question asked afterwards is answered as of `now`.
    fn hears(&mut self, now: Instant, heard: Heard);
    /// `task_util`: how much a task has needed.
    fn task_util(&self, task: TaskId) -> Util;
    /// `task_util_est`: how much it is expected to need when it wakes, or goes on.
    fn task_util_est(&self, task: TaskId) -> Util;
    /// `cpu_util`: what the fair tasks of a CPU need.
    fn cpu_util(&self, cpu: CpuId) -> Util;
    /// The util of `cpu` where a frequency is chosen.
    fn cpu_util_freq(&self, cpu: CpuId) -> Util {
        self.cpu_util(cpu)
    }
    /// `cpu_util_without`: [`Tracker::cpu_util`] as if `task` were nowhere.
    fn cpu_util_without(&self, cpu: CpuId, task: TaskId) -> Util;
}
