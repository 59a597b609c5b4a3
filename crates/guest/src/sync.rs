//! Objects that tasks wait for each other with, on futexes. No task spins: one that cannot go on
//! sleeps in the kernel, and is woken in the order in which it came.
//!
//! ```text
//! mutex       0 free, 1 locked, 2 locked and perhaps waited for     glibc's, without its spinning
//! cond        a queue of waiters, each with a word of its own: one signal wakes one
//! barrier     a count and a number of the round
//! semaphore   a count
//! ```
//!
//! With `pi_enabled` a mutex is the kernel's own (FUTEX_LOCK_PI). What each does is what it does in the simulator's `sync.rs`.

use risetime_job::{Event, Expiry, Timer};
use risetime_kernel::units::{Instant, Span};
use rustix::thread::futex::{self, Flags};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};

/// Sleeps while `word` reads `value`; returns at once if it does not.
fn wait_while(word: &AtomicU32, value: u32) {
    // Every caller looks again: an interrupted sleep is as good as a wakeup.
    let _ = futex::wait(word, Flags::PRIVATE, value, None);
}

fn wake(word: &AtomicU32, waiters: u32) {
    let _ = futex::wake(word, Flags::PRIVATE, waiters);
}

/// The thread's id, as a word of a mutex holds it.
fn own_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// The objects of a job, by number.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    mutexes: Vec<AtomicU32>,
    conds: Vec<Mutex<VecDeque<Arc<AtomicU32>>>>,
    barriers: Vec<Barrier>,
    semaphores: Vec<AtomicU32>,
    timers: Vec<Mutex<Option<Instant>>>,
    /// True if mutexes are the kernel's, which pass on priorities.
    pi: bool,
}

#[derive(Debug, Default)]
struct Barrier {
    users: u32,
    came: Mutex<u32>,
    round: AtomicU32,
}

fn list<T: Default>(n: u32) -> Vec<T> {
    (0..n).map(|_| T::default()).collect()
}

impl Objects {
    pub(crate) fn new(objects: &risetime_job::job::Objects) -> Objects {
        let barrier = |users: &u32| Barrier { users: *users, ..Barrier::default() };
        Objects {
            mutexes: list(objects.mutexes),
            conds: list(objects.conds),
            barriers: objects.barriers.iter().map(barrier).collect(),
            semaphores: list(objects.semaphores),
            timers: list(objects.timers),
            pi: objects.pi,
        }
    }

    /// Whether a thread may have been awake while it waited in `event`: who waits for a mutex of the kernel's spins there as long as
    /// its owner is on a CPU (since 5.15, kernel/locking/rtmutex.c:rtmutex_spin_on_owner), which is none of its work.
    pub(crate) fn spins(&self, event: Event) -> bool {
        self.pi && matches!(event, Event::Lock(_) | Event::Wait { .. })
    }

    pub(crate) fn lock(&self, mutex: u32) {
        let word = &self.mutexes[mutex as usize];
        if self.pi {
            return Objects::lock_inherited(word);
        }
        if word.compare_exchange(0, 1, SeqCst, SeqCst).is_err() {
            Objects::lock_contended(word);
        }
    }

    fn lock_contended(word: &AtomicU32) {
        while word.swap(2, SeqCst) != 0 {
            wait_while(word, 2);
        }
    }

    /// Takes a mutex whose word holds its owner's thread id; the kernel queues who has to wait by priority, and hands it over.
    fn lock_inherited(word: &AtomicU32) {
        while word.compare_exchange(0, own_id(), SeqCst, SeqCst).is_err() {
            if futex::lock_pi(word, Flags::PRIVATE, None).is_ok() {
                return;
            }
        }
    }

    pub(crate) fn unlock(&self, mutex: u32) {
        let word = &self.mutexes[mutex as usize];
        if self.pi {
            if word.compare_exchange(own_id(), 0, SeqCst, SeqCst).is_err() {
                let _ = futex::unlock_pi(word, Flags::PRIVATE);
            }
            return;
        }
        if word.swap(0, SeqCst) == 2 {
            wake(word, 1);
        }
    }

    pub(crate) fn wait(&self, cond: u32, mutex: u32) {
        let own = Arc::new(AtomicU32::new(0));
        hold(&self.conds[cond as usize]).push_back(Arc::clone(&own));
        self.unlock(mutex);
        while own.load(SeqCst) == 0 {
            wait_while(&own, 0);
        }
        let word = &self.mutexes[mutex as usize];
        if self.pi { Objects::lock_inherited(word) } else { Objects::lock_contended(word) }
    }

    pub(crate) fn signal(&self, cond: u32) {
        let first = hold(&self.conds[cond as usize]).pop_front();
        if let Some(waiter) = first {
            waiter.store(1, SeqCst);
            wake(&waiter, 1);
        }
    }

    pub(crate) fn broadcast(&self, cond: u32) {
        let all = std::mem::take(&mut *hold(&self.conds[cond as usize]));
        for waiter in all {
            waiter.store(1, SeqCst);
            wake(&waiter, 1);
        }
    }

    pub(crate) fn barrier(&self, barrier: u32) {
        let b = &self.barriers[barrier as usize];
        let mut came = hold(&b.came);
        *came += 1;
        let round = b.round.load(SeqCst);
        if *came >= b.users {
            *came = 0;
            b.round.store(round.wrapping_add(1), SeqCst);
            drop(came);
            wake(&b.round, i32::MAX as u32);
            return;
        }
        drop(came);
        while b.round.load(SeqCst) == round {
            wait_while(&b.round, round);
        }
    }

    pub(crate) fn sem_wait(&self, semaphore: u32) {
        let word = &self.semaphores[semaphore as usize];
        loop {
            let count = word.load(SeqCst);
            if count == 0 {
                wait_while(word, 0);
            } else if word.compare_exchange(count, count - 1, SeqCst, SeqCst).is_ok() {
                return;
            }
        }
    }

    pub(crate) fn sem_post(&self, semaphore: u32) {
        let word = &self.semaphores[semaphore as usize];
        word.fetch_add(1, SeqCst);
        wake(word, 1);
    }

    /// The next use of a shared timer by a task whose timers count from `began`.
    pub(crate) fn timer(&self, timer: Timer, period: Span, began: u64, now: u64) -> Expiry {
        let mut reference = hold(&self.timers[timer.index as usize]);
        timer.expiry(&mut reference, period, Instant(began), Instant(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use risetime_job::job;
    use std::sync::atomic::AtomicU64;
    use std::thread;
    use std::time::Duration;

    fn objects() -> Objects {
        objects_with(false)
    }

    fn objects_with(pi: bool) -> Objects {
        Objects::new(&job::Objects {
            mutexes: 1,
            conds: 1,
            semaphores: 2,
            timers: 1,
            pi,
            barriers: vec![4],
        })
    }

    #[test]
    fn a_mutex_lets_one_in_at_a_time() {
        one_at_a_time(&objects());
    }

    #[test]
    fn a_mutex_that_inherits_lets_one_in_at_a_time() {
        one_at_a_time(&objects_with(true));
    }

    fn one_at_a_time(o: &Objects) {
        let (inside, total) = (AtomicU32::new(0), AtomicU64::new(0));
        thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..500 {
                        o.lock(0);
                        assert_eq!(inside.fetch_add(1, SeqCst), 0);
                        total.store(total.load(SeqCst) + 1, SeqCst);
                        inside.fetch_sub(1, SeqCst);
                        o.unlock(0);
                    }
                });
            }
        });
        assert_eq!(total.load(SeqCst), 2000);
    }

    #[test]
    fn a_signal_wakes_who_came_first_and_only_one() {
        let o = objects();
        let woken = Mutex::new(Vec::new());
        thread::scope(|s| {
            for i in 0..3 {
                let (o, woken) = (&o, &woken);
                s.spawn(move || {
                    o.lock(0);
                    o.wait(0, 0);
                    hold(woken).push(i);
                    o.unlock(0);
                });
                while hold(&o.conds[0]).len() <= i {
                    thread::yield_now();
                }
            }
            o.signal(0);
            while hold(&woken).is_empty() {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(5));
            assert_eq!(*hold(&woken), [0]);
            o.broadcast(0);
        });
        assert_eq!(hold(&woken).len(), 3);
        o.signal(0);
    }

    #[test]
    fn nobody_passes_a_barrier_before_the_last_has_come() {
        let o = objects();
        let came = AtomicU32::new(0);
        thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for round in 1..=50 {
                        came.fetch_add(1, SeqCst);
                        o.barrier(0);
                        assert!(came.load(SeqCst) >= 4 * round);
                        o.barrier(0);
                    }
                });
            }
        });
        assert_eq!(came.load(SeqCst), 200);
    }

    #[test]
    fn a_semaphore_gives_as_often_as_it_was_given() {
        let o = objects();
        thread::scope(|s| {
            for _ in 0..3 {
                s.spawn(|| (0..200).for_each(|_| o.sem_wait(0)));
            }
            (0..600).for_each(|_| o.sem_post(0));
        });
        assert_eq!(o.semaphores[0].load(SeqCst), 0);
    }
}
