//! Tasks start when they are due, though real-time tasks keep the thread that creates them from its CPU.
//!
//! ```text
//! creator   sleeps until a task is due, creates it ──────────── in time: the timer is set anew, nobody is woken
//! timer     due + 0.1 ms ── starter (highest priority) wakes ── kept away: the creator gets that priority, too
//! ```
//!
//! Only a job with tasks above ordinary threads has a starter. One that wakes asks for the highest frequency, as every
//! real-time thread does; so it is woken for a thread alone that is kept away by one.
//!
//! A thread above all creates ordinary ones (`SCHED_FLAG_RESET_ON_FORK`), which take on their attributes themselves.

use crate::ender;
use crate::sys;
use risetime_job::job::Job;
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Time after which the creator is late, in ns.
const GRACE: u64 = 100_000;
/// `SCHED_FLAG_RESET_ON_FORK`
const RESET_ON_FORK: u64 = 0x01;

/// The thread that sees to it that tasks start in time.
pub(crate) struct Starter {
    timer: Arc<OwnedFd>,
    creator: Arc<Creator>,
}

/// State of the thread that creates tasks.
#[derive(Default)]
struct Creator {
    /// True from when it was raised until it takes a priority itself.
    above: AtomicBool,
    /// True once it was raised.
    was_above: AtomicBool,
}

impl Creator {
    /// Takes thread `tid` above all others, 0 the calling one.
    fn raise(&self, tid: i32) -> io::Result<()> {
        self.was_above.store(true, Ordering::SeqCst);
        let mut attr = ender::highest();
        attr.flags = RESET_ON_FORK;
        sys::set_attr(tid, attr)?;
        self.above.store(true, Ordering::SeqCst);
        Ok(())
    }
}

impl Starter {
    /// Starts the thread, for the calling one; `None`: no task of `job` is above ordinary threads, or the kernel was built
    /// without timers that are files.
    ///
    /// Errors: the system's.
    pub(crate) fn of(job: &Job, stack: usize) -> io::Result<Option<Starter>> {
        if !ender::is_real_time(job) {
            return Ok(None);
        }
        let timer = match timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC) {
            Err(rustix::io::Errno::NOSYS) => return Ok(None),
            timer => Arc::new(timer?),
        };
        let creator = Arc::new(Creator::default());
        let (own, state) = (Arc::clone(&timer), Arc::clone(&creator));
        let creates = rustix::thread::gettid().as_raw_nonzero().get();
        let watch = move || {
            // Where tasks may not be real-time ones, none keeps anybody away.
            if sys::set_attr(0, ender::highest()).is_err() {
                return;
            }
            // Number of times that it has expired; a timer that was set anew meanwhile has not.
            while rustix::io::read(&*own, &mut [0_u8; 8]).is_ok() {
                let _ = state.raise(creates);
            }
        };
        thread::Builder::new().stack_size(stack).spawn(watch)?;
        Ok(Some(Starter { timer, creator }))
    }

    /// Raises the creator if it has not called this again soon after `due` on CLOCK_MONOTONIC, in ns; `None`: there
    /// is nothing more to create.
    pub(crate) fn watch(&self, due: Option<u64>) -> io::Result<()> {
        let at = due.map_or(0, |due| due + GRACE);
        let part = |ns: u64| Timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as _,
        };
        let value = Itimerspec { it_interval: part(0), it_value: part(at) };
        timerfd_settime(&*self.timer, TimerfdTimerFlags::ABSTIME, &value)?;
        Ok(())
    }

    /// Raises the calling thread, the creator.
    pub(crate) fn raise(&self) -> io::Result<()> {
        self.creator.raise(0)
    }

    /// Whether the creator was raised and has not taken a priority since.
    pub(crate) fn is_above(&self) -> bool {
        self.creator.above.load(Ordering::SeqCst)
    }

    /// Notes that the creator takes a priority of its own.
    pub(crate) fn comes_down(&self) {
        self.creator.above.store(false, Ordering::SeqCst);
    }

    /// Whether a task may have been created by a thread above all: it has no attributes then.
    pub(crate) fn was_above(&self) -> bool {
        self.creator.was_above.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use risetime_job::Policy;
    use risetime_job::job::{Attr, Task};

    fn of(policy: Policy) -> Job {
        let attr = Attr { policy: Some(policy), ..Attr::default() };
        Job { tasks: vec![Task { attr, ..Task::default() }], ..Job::default() }
    }

    #[test]
    fn ordinary_tasks_have_no_starter() {
        assert!(Starter::of(&of(Policy::Idle), 1 << 16).expect("no thread").is_none());
    }

    /// Where real-time threads are not allowed nobody is raised, and no time is too late.
    #[test]
    fn a_creator_that_comes_in_time_is_not_raised() {
        let starter = Starter::of(&of(Policy::Fifo { priority: 1 }), 1 << 16);
        let starter = starter.expect("a thread").expect("real-time tasks");
        for _ in 0..20 {
            starter.watch(Some(sys::mono() + 1_000_000_000)).expect("a timer");
        }
        starter.watch(None).expect("a timer");
        thread::sleep(std::time::Duration::from_millis(5));
        assert!(!starter.is_above() && !starter.was_above());
    }
}
