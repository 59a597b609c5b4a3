//! Priority inheritance of mutexes (`pi_enabled`): FUTEX_LOCK_PI.
//!
//! ```text
//! waits       by priority, those of one in the order in which they came; fair tasks are all of one
//! unlock      the mutex is the first waiter's from then on, wherever that one is
//! holds       under SCHED_FIFO with the highest priority of who waits for a mutex of its own, if that is above its own;
//!             who waits itself passes it on
//! ```
//!
//! DEVIATES(pi-deadline): who holds a mutex that a deadline task waits for has the highest real-time priority, where the kernel lends
//! it that task's deadline: it comes behind other deadline tasks. A phase that changes the policy of a task that inherits
//! ends what it inherits until somebody waits anew.
//!
//! DEVIATES(pi-spin): who waits sleeps, where since 5.15 it spins as long as the owner is on a CPU and it is the first in the queue: its
//! CPU is busy for that time, at the energy of work, and lower ones wait. Seen on 6.12 and 7.3.
//!
//! Source: kernel/locking/rtmutex.c:`rt_mutex_adjust_prio_chain`, kernel/sched/core.c:`rt_mutex_setprio`.

use crate::kernel::syscalls::Current;
use crate::user::User;
use crate::user::sync::Wait;
use risetime_kernel::units::TaskId;
use risetime_model::workload::{Event, Policy};

/// The highest priority of SCHED_FIFO.
const HIGHEST: u8 = 99;

/// The real-time priority of a policy; 0: it has none.
fn priority(policy: &Policy) -> u8 {
    match policy {
        Policy::Fifo { priority } | Policy::Rr { priority } => *priority,
        Policy::Deadline { .. } => HIGHEST + 1,
        _ => 0,
    }
}

impl User {
    /// Puts the waiter of the highest priority first, which gets the mutex at the unlock that comes.
    pub(super) fn orders_waiters(&mut self, current: &Current<'_, '_>, event: Event) {
        let (Event::Unlock(mutex) | Event::Wait { mutex, .. }) = event else { return };
        if !self.together.sync.pi {
            return;
        }
        let of = |task: TaskId| priority(&current.m().task(task).sched.policy);
        let waiters: Vec<TaskId> = self.together.sync.waiters(mutex).collect();
        let highest = waiters.iter().map(|task| of(*task)).max();
        if let Some(first) = waiters.iter().find(|task| Some(of(**task)) == highest) {
            self.together.sync.comes_first(mutex, *first);
        }
    }

    /// Gives the one that holds a mutex, and the one that has held it, what they inherit behind an act on it.
    pub(super) fn inherits(&mut self, current: &mut Current<'_, '_>, event: Event) {
        let (Event::Lock(mutex) | Event::Unlock(mutex) | Event::Wait { mutex, .. }) = event else {
            return;
        };
        if !self.together.sync.pi {
            return;
        }
        let mut next = vec![current.task];
        next.extend(self.together.sync.owner(mutex));
        // A circle of tasks that wait for each other would pass it on for ever.
        let mut left = 2 * current.m().tasks.len();
        while let Some(task) = next.pop()
            && left > 0
        {
            left -= 1;
            if self.adjusts(current, task)
                && let Wait::Mutex(mutex) = self.together.sync.wait_of(task).0
            {
                next.extend(self.together.sync.owner(mutex));
            }
        }
    }

    /// Puts `task` under what it inherits, or what is its own; returns whether that is new.
    fn adjusts(&mut self, current: &mut Current<'_, '_>, task: TaskId) -> bool {
        let now = current.m().task(task).sched.policy;
        let own = self.together.own.get(&task).copied().unwrap_or(now);
        let sync = &self.together.sync;
        let waiters = sync.held(task).flat_map(|mutex| sync.waiters(mutex));
        let of = |task: TaskId| priority(&current.m().task(task).sched.policy);
        let most = waiters.map(of).max().unwrap_or(0).min(HIGHEST);
        let wanted = match most > priority(&own) {
            true => Policy::Fifo { priority: most },
            false => own,
        };
        if wanted == own {
            self.together.own.remove(&task);
        } else {
            self.together.own.insert(task, own);
        }
        if wanted != now {
            current.rt_mutex_setprio(task, wanted);
        }
        wanted != now
    }
}
