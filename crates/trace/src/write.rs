//! Sinks that write a trace in a format other tools read.

pub mod ftrace;
pub mod perfetto;

use risetime_kernel::units::TaskId;

/// Numbers that a trace already has, of a file from which it was read: they are kept where it is written again.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// Thread and process of each task, by its id; a process of 0: unknown.
    pub threads: Vec<(i32, i32)>,
    /// Time 0 of the trace, in ns by the clock of the file.
    pub base: u64,
}

/// The process of a workload's threads.
const PROCESS: i64 = 999;

impl Numbers {
    /// The thread of a task: n is thread 1000 + n where no file says, and what does not fit a thread id is the largest one.
    fn tid(&self, task: TaskId) -> i64 {
        match self.threads.get(task.index()) {
            Some((tid, _)) => (*tid).into(),
            None => (i64::from(task.0) + 1000).min(i32::MAX.into()),
        }
    }

    /// The process of a task. `user`: it is one of a workload, whose threads are those of one process.
    fn tgid(&self, task: TaskId, user: bool) -> i64 {
        match self.threads.get(task.index()) {
            Some((_, tgid)) if *tgid > 0 => (*tgid).into(),
            Some((tid, _)) => (*tid).into(),
            None if user => PROCESS,
            None => self.tid(task),
        }
    }
}
