//! Threads of a trace that tells of them by the kernel's numbers, and the tasks that they are.

use risetime_kernel::units::{Instant, TaskId};
use risetime_model::Name;
use std::collections::BTreeMap;

/// A thread as a task of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The kernel's number of it. Another thread may have it later.
    pub pid: i32,
    /// Name of the thread when it was first seen.
    pub comm: Name,
    /// Time at which it was first seen.
    pub since: Instant,
    /// Part of the thread in what was recorded.
    pub role: Role,
}

/// The part that a thread has in what was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A task of the workload, by its place there.
    Workload(u32),
    /// Whatever else the machine runs.
    System,
}

/// The threads of a trace: each gets the next free [`TaskId`] when it is first seen.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    all: Vec<Thread>,
    alive: Alive,
}

/// Numbers below are looked up by their place; no kernel gives higher ones (`PID_MAX_LIMIT`).
const NEAR: i32 = 1 << 22;
/// Numbers that lie together.
const TOGETHER: usize = 1024;
/// Stands for no task.
const NONE: u32 = u32::MAX;

/// Tasks by the numbers of their threads, for those that are not gone.
#[derive(Clone, Debug, Default)]
struct Alive {
    near: Vec<Option<Box<[u32; TOGETHER]>>>,
    far: BTreeMap<i32, TaskId>,
}

impl Alive {
    #[inline]
    fn get(&self, pid: i32) -> Option<TaskId> {
        if !(0..NEAR).contains(&pid) {
            return self.far.get(&pid).copied();
        }
        let pid = pid as usize;
        let task = self.near.get(pid / TOGETHER)?.as_ref()?[pid % TOGETHER];
        (task != NONE).then_some(TaskId(task))
    }

    fn set(&mut self, pid: i32, task: Option<TaskId>) {
        if !(0..NEAR).contains(&pid) {
            match task {
                Some(task) => _ = self.far.insert(pid, task),
                None => _ = self.far.remove(&pid),
            }
            return;
        }
        let pid = pid as usize;
        let page = pid / TOGETHER;
        if self.near.len() <= page {
            self.near.resize_with(page + 1, || None);
        }
        let page = self.near[page].get_or_insert_with(|| Box::new([NONE; TOGETHER]));
        page[pid % TOGETHER] = task.map_or(NONE, |task| task.0);
    }
}

impl Threads {
    /// Returns the threads of a workload, whose tasks have the first numbers in the order of their places; a task whose thread
    /// never was has a number, too.
    pub fn of_workload<'a>(tasks: impl IntoIterator<Item = (Option<i32>, &'a str)>) -> Threads {
        let mut threads = Threads::default();
        for (place, (pid, comm)) in (0..).zip(tasks) {
            let role = Role::Workload(place);
            let since = Instant(0);
            threads.all.push(Thread { pid: pid.unwrap_or(0), comm: Name::new(comm), since, role });
            pid.into_iter().for_each(|pid| threads.alive.set(pid, Some(TaskId(place))));
        }
        threads
    }

    /// Returns the task of thread `pid`, which is seen now as `comm`; at first sight it is a new one of this role.
    pub fn seen(&mut self, pid: i32, since: Instant, comm: &str, role: Role) -> TaskId {
        if let Some(task) = self.alive.get(pid) {
            return task;
        }
        let next = TaskId(self.all.len() as u32);
        self.alive.set(pid, Some(next));
        self.all.push(Thread { pid, comm: Name::new(comm), since, role });
        next
    }

    /// Returns the task that thread `pid` is now; `None`: it has not been seen, or is gone.
    #[inline]
    pub fn get(&self, pid: i32) -> Option<TaskId> {
        self.alive.get(pid)
    }

    /// Returns who a task is.
    pub fn thread(&self, task: TaskId) -> Option<&Thread> {
        self.all.get(task.0 as usize)
    }

    /// Returns all threads, in the order of their tasks' ids.
    pub fn all(&self) -> &[Thread] {
        &self.all
    }

    /// Calls the thread of a task `comm` from now on.
    pub fn rename(&mut self, task: TaskId, comm: Name) {
        self.all.get_mut(task.index()).into_iter().for_each(|thread| thread.comm = comm);
    }

    /// Ends thread `pid`: whoever has the number next is another task.
    pub fn gone(&mut self, pid: i32) {
        self.alive.set(pid, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_used_again_is_another_task() {
        let mut threads = Threads::default();
        let ui = threads.seen(812, Instant(5), "ui", Role::Workload(0));
        let other = threads.seen(i32::MAX, Instant(6), "kworker/0:1", Role::System);
        assert_eq!((threads.get(i32::MAX), threads.get(-1)), (Some(other), None));
        assert_eq!([ui, other], [TaskId(0), TaskId(1)]);
        assert_eq!(threads.seen(812, Instant(7), "renamed", Role::System), ui, "the same thread");
        assert_eq!((threads.get(812), threads.thread(ui).unwrap().since), (Some(ui), Instant(5)));
        threads.gone(812);
        assert_eq!(threads.get(812), None);
        let new = threads.seen(812, Instant(9), "sh", Role::System);
        assert_eq!((new, &*threads.thread(new).unwrap().comm), (TaskId(2), "sh"));
        assert_eq!(&*threads.thread(ui).unwrap().comm, "ui");
    }

    #[test]
    fn tasks_of_a_workload_have_its_places_as_numbers() {
        let mut threads = Threads::of_workload([(Some(70), "a"), (None, "never"), (Some(71), "b")]);
        assert_eq!([70, 71].map(|pid| threads.get(pid)), [Some(TaskId(0)), Some(TaskId(2))]);
        assert_eq!(threads.thread(TaskId(1)).unwrap().role, Role::Workload(1));
        assert_eq!(threads.seen(1, Instant(3), "init", Role::System), TaskId(3));
    }
}
