//! The end of a run whose real-time tasks leave ordinary threads no time.
//!
//! ```text
//! ender    waits, highest priority ──────────── end + 1 ms: has the thread that ends the run come to it?
//! yes      nothing
//! no       `rt end`, and the highest priority for that thread, too
//! ```
//!
//! A SCHED_FIFO task that never sleeps keeps a CPU's fair tasks away for as long as it likes: on kernels
//! without fair servers and without a limit, and where `fair_server_runtime_ns` is 0.

use crate::sys::{self, SchedAttr};
use risetime_job::Policy;
use risetime_job::job::{Attr, Job};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Thread};

/// Time after the end by which the thread that ends the run is late, in ns.
const GRACE: u64 = 1_000_000;
/// The thread that sees to the end.
pub(crate) struct Ender {
    thread: Thread,
    told: Arc<Told>,
}

/// Facts that the thread is told.
#[derive(Default)]
struct Told {
    /// End of the workload on CLOCK_MONOTONIC, in ns; 0: not known yet.
    end: AtomicU64,
    /// True once the run has come to its end.
    reached: AtomicBool,
}

impl Ender {
    /// Starts the thread, for the calling one; `None`: no task of `job` is above ordinary threads.
    /// `overdue` is called when the end is past and was not reached.
    ///
    /// Errors: the system's.
    pub(crate) fn of(
        job: &Job,
        stack: usize,
        overdue: impl FnOnce() + Send + 'static,
    ) -> io::Result<Option<Ender>> {
        if !is_real_time(job) {
            return Ok(None);
        }
        let told = Arc::new(Told::default());
        let (own, ends) = (Arc::clone(&told), rustix::thread::gettid());
        let watch = move || {
            // Where tasks may not be real-time ones, none keeps anybody away.
            if sys::set_attr(0, highest()).is_err() {
                return;
            }
            while own.end.load(Ordering::Acquire) == 0 {
                thread::park();
            }
            sys::sleep_until(own.end.load(Ordering::Acquire) + GRACE);
            if !own.reached.load(Ordering::Acquire) {
                overdue();
                let _ = sys::set_attr(ends.as_raw_nonzero().get(), highest());
            }
        };
        let thread = thread::Builder::new().stack_size(stack).spawn(watch)?.thread().clone();
        Ok(Some(Ender { thread, told }))
    }

    /// Tells the thread when the workload ends, on CLOCK_MONOTONIC in ns.
    pub(crate) fn tell(&self, end: u64) {
        self.told.end.store(end, Ordering::Release);
        self.thread.unpark();
    }

    /// Notes that the run has come to its end.
    pub(crate) fn reached(&self) {
        self.told.reached.store(true, Ordering::Release);
    }
}

/// SCHED_FIFO of the highest priority.
pub(crate) fn highest() -> SchedAttr {
    let mut attr = SchedAttr::default();
    (attr.policy, attr.priority) = (1, 99);
    attr
}

/// Makes ordinary threads of tasks, so that they keep nobody away from what comes after the run.
pub(crate) fn demote(pids: impl Iterator<Item = i32>) {
    for pid in pids.filter(|pid| *pid != 0) {
        // A thread that has ended by itself is none.
        let _ = sys::set_attr(pid, SchedAttr::default());
    }
}

/// Whether a task of `job` may be above ordinary threads.
pub(crate) fn is_real_time(job: &Job) -> bool {
    let above = |attr: &Attr| {
        matches!(
            attr.policy,
            Some(Policy::Fifo { .. } | Policy::Rr { .. } | Policy::Deadline { .. })
        )
    };
    let all = job.tasks.iter().chain(&job.forked);
    all.flat_map(|t| t.phases.iter().map(|p| &p.attr).chain([&t.attr])).any(above)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(policy: Option<Policy>) -> Job {
        let attr = Attr { policy, ..Attr::default() };
        let task = risetime_job::job::Task { attr, ..Default::default() };
        Job { forked: vec![task], ..Job::default() }
    }

    #[test]
    fn only_a_job_with_tasks_above_ordinary_threads_has_a_thread_for_its_end() {
        assert!(!is_real_time(&of(None)) && !is_real_time(&of(Some(Policy::Idle))));
        assert!(is_real_time(&of(Some(Policy::Fifo { priority: 1 }))));
        assert!(Ender::of(&of(None), 1 << 16, || ()).expect("no thread").is_none());
    }

    /// Where real-time threads are not allowed, the thread ends at once, and nothing is overdue.
    #[test]
    fn an_end_that_is_reached_is_not_overdue() {
        let overdue = Arc::new(AtomicBool::new(false));
        let late = Arc::clone(&overdue);
        let job = of(Some(Policy::Fifo { priority: 1 }));
        let set = move || late.store(true, Ordering::Release);
        let ender = Ender::of(&job, 1 << 16, set).expect("a thread").expect("real-time tasks");
        ender.reached();
        ender.tell(sys::mono());
        thread::sleep(std::time::Duration::from_millis(20));
        assert!(!overdue.load(Ordering::Acquire));
    }
}
