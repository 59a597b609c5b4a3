//! Objects that tasks wait for each other with: mutexes, conditions, barriers, semaphores, shared
//! timers.
//!
//! State machines without time and without a machine: a task acts, or goes on when it has been
//! woken and has a CPU; the answer is whether it waits, and whom it wakes.
//!
//! ```text
//! mutex      free ─lock→ held ─lock (waits)→ contended ─unlock→ free, and wakes the first waiter,
//!            who only then tries again: whoever locks before it has a CPU is ahead of it
//! cond       wait = unlock, queue; signal wakes the first, broadcast all; each locks again
//! barrier    the last of its users wakes all others and goes on
//! semaphore  post = count + 1, wakes the first waiter, who only then tries again
//! ```
//!
//! A mutex that was waited for is left as contended by who gets it then, as a futex is: its
//! unlock looks for waiters, and wakes one if there is one. Waiters are woken in the order in which they
//! went to sleep.
//!
//! With `pi_enabled` the kernel queues by priority, and hands a mutex to the first: `user/inherit.rs`.
//!
//! Leaves out: the futex's order by priority among real-time tasks.
//! Source: glibc, nptl/lowlevellock.h, pthread_cond_wait.c, sem_waitcommon.c; kernel/futex.

use risetime_kernel::units::{Instant, Span, TaskId};
use risetime_model::workload::{self, Event, Expiry};
use std::collections::VecDeque;

/// Outcome of an act.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Did {
    /// The step is done: the task goes on.
    Done,
    /// The task waits until it is woken.
    Waits,
    /// The task does not hold the mutex of this number.
    NotHeld(u32),
}

/// Object that a task waits in, or was woken from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Wait {
    /// The task waits for nothing.
    #[default]
    Nothing,
    /// A mutex; it has to try again.
    Mutex(u32),
    /// A condition; then it needs the mutex.
    Cond { cond: u32, mutex: u32 },
    /// The tasks that are not there yet, at the barrier of this number.
    Barrier(u32),
    /// A semaphore; it has to try again.
    Semaphore(u32),
}

#[derive(Default)]
struct Mutex {
    owner: Option<TaskId>,
    waiters: VecDeque<TaskId>,
}

#[derive(Default)]
struct Barrier {
    users: u32,
    waiters: Vec<TaskId>,
}

#[derive(Default)]
struct Semaphore {
    count: u64,
    waiters: VecDeque<TaskId>,
}

/// All of them, by number.
#[derive(Default)]
pub(crate) struct Objects {
    mutexes: Vec<Mutex>,
    conds: Vec<VecDeque<TaskId>>,
    barriers: Vec<Barrier>,
    semaphores: Vec<Semaphore>,
    timers: Vec<Option<Instant>>,
    /// True if mutexes are handed to who waits (`pi_enabled`), and pass on its priority.
    pub(crate) pi: bool,
    /// Object that each task waits in, and since when.
    waits: Vec<(Wait, Instant)>,
}

impl Objects {
    /// The objects of a workload, nobody holding or waiting.
    pub(crate) fn new(objects: &workload::Objects) -> Objects {
        let barrier = |b: &workload::Barrier| Barrier { users: b.users, waiters: Vec::new() };
        let mut all = Objects::default();
        all.mutexes.resize_with(objects.mutexes.len(), Mutex::default);
        all.conds.resize_with(objects.conds.len(), VecDeque::default);
        all.barriers.extend(objects.barriers.iter().map(barrier));
        all.semaphores.resize_with(objects.semaphores.len(), Semaphore::default);
        all.timers.resize(objects.timers.len(), None);
        all.pi = objects.pi;
        all
    }

    /// The object that `task` waits in, and since when.
    pub(crate) fn wait_of(&self, task: TaskId) -> (Wait, Instant) {
        self.waits.get(task.index()).copied().unwrap_or_default()
    }

    /// The task that holds a mutex.
    pub(crate) fn owner(&self, mutex: u32) -> Option<TaskId> {
        self.mutexes.get(mutex as usize).and_then(|m| m.owner)
    }

    /// Tasks that wait for a mutex, in the order in which they will be woken.
    pub(crate) fn waiters(&self, mutex: u32) -> impl Iterator<Item = TaskId> + '_ {
        self.mutexes.get(mutex as usize).into_iter().flat_map(|m| m.waiters.iter().copied())
    }

    /// Makes `task`, which waits for the mutex, the first that gets it.
    pub(crate) fn comes_first(&mut self, mutex: u32, task: TaskId) {
        let waiters = &mut self.mutexes[mutex as usize].waiters;
        if let Some(at) = waiters.iter().position(|waiter| *waiter == task) {
            waiters.remove(at);
            waiters.push_front(task);
        }
    }

    /// Mutexes that `task` holds.
    pub(crate) fn held(&self, task: TaskId) -> impl Iterator<Item = u32> + '_ {
        let all = self.mutexes.iter().enumerate();
        all.filter(move |(_, m)| m.owner == Some(task)).map(|(number, _)| number as u32)
    }

    /// `task` carries out `event`, which is one of these objects'; whom it wakes goes into `wakes`.
    pub(crate) fn act(
        &mut self,
        task: TaskId,
        event: Event,
        now: Instant,
        wakes: &mut Vec<TaskId>,
    ) -> Did {
        match event {
            Event::Lock(mutex) => self.lock(task, mutex, now),
            Event::Unlock(mutex) => self.unlock(task, mutex, wakes),
            Event::Wait { cond, mutex } => {
                let did = self.unlock(task, mutex, wakes);
                if did != Did::Done {
                    return did;
                }
                self.conds[cond as usize].push_back(task);
                self.waits(task, Wait::Cond { cond, mutex }, now)
            }
            Event::Signal(cond) => {
                wakes.extend(self.conds[cond as usize].pop_front());
                Did::Done
            }
            Event::Broadcast(cond) => {
                wakes.extend(self.conds[cond as usize].drain(..));
                Did::Done
            }
            Event::Barrier(index) => {
                let barrier = &mut self.barriers[index as usize];
                if barrier.waiters.len() as u32 + 1 >= barrier.users {
                    wakes.append(&mut barrier.waiters);
                    return Did::Done;
                }
                barrier.waiters.push(task);
                self.waits(task, Wait::Barrier(index), now)
            }
            Event::SemWait(index) => self.take(task, index, now),
            Event::SemPost(index) => {
                let semaphore = &mut self.semaphores[index as usize];
                semaphore.count += 1;
                wakes.extend(semaphore.waiters.pop_front());
                Did::Done
            }
            Event::Run(_)
            | Event::RunOf { .. }
            | Event::Runtime { .. }
            | Event::Sleep(_)
            | Event::Timer { .. }
            | Event::Busy(_)
            | Event::Duty(_)
            | Event::Yield
            | Event::Fork(_) => Did::Done,
        }
    }

    /// `task`, which was woken from its wait, has a CPU.
    pub(crate) fn resume(&mut self, task: TaskId, now: Instant) -> Did {
        let Some((wait, _)) = self.waits.get_mut(task.index()) else { return Did::Done };
        match std::mem::take(wait) {
            Wait::Nothing | Wait::Barrier(_) => Did::Done,
            Wait::Mutex(mutex) | Wait::Cond { mutex, .. } => self.lock(task, mutex, now),
            Wait::Semaphore(index) => self.take(task, index, now),
        }
    }

    fn lock(&mut self, task: TaskId, mutex: u32, now: Instant) -> Did {
        let m = &mut self.mutexes[mutex as usize];
        // What is handed over is held before it is asked for again.
        if m.owner.is_none() || (self.pi && m.owner == Some(task)) {
            m.owner = Some(task);
            return Did::Done;
        }
        m.waiters.push_back(task);
        self.waits(task, Wait::Mutex(mutex), now)
    }

    fn unlock(&mut self, task: TaskId, mutex: u32, wakes: &mut Vec<TaskId>) -> Did {
        let m = &mut self.mutexes[mutex as usize];
        if m.owner != Some(task) {
            return Did::NotHeld(mutex);
        }
        let next = m.waiters.pop_front();
        m.owner = next.filter(|_| self.pi);
        wakes.extend(next);
        Did::Done
    }

    fn take(&mut self, task: TaskId, index: u32, now: Instant) -> Did {
        let semaphore = &mut self.semaphores[index as usize];
        if semaphore.count > 0 {
            semaphore.count -= 1;
            return Did::Done;
        }
        semaphore.waiters.push_back(task);
        self.waits(task, Wait::Semaphore(index), now)
    }

    fn waits(&mut self, task: TaskId, wait: Wait, now: Instant) -> Did {
        if self.waits.len() <= task.index() {
            self.waits.resize(task.index() + 1, Default::default());
        }
        self.waits[task.index()] = (wait, now);
        Did::Waits
    }

    /// The next use of a shared timer by a task that began at `began`.
    pub(crate) fn timer(
        &mut self,
        timer: workload::Timer,
        period: Span,
        began: Instant,
        now: Instant,
    ) -> Expiry {
        timer.expiry(&mut self.timers[timer.index as usize], period, began, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws;
    use proptest::prelude::*;

    const NOW: Instant = Instant(0);

    fn objects(mutexes: usize, users: u32) -> Objects {
        let names = |n| vec![String::new(); n];
        Objects::new(&workload::Objects {
            mutexes: names(mutexes),
            conds: names(1),
            barriers: vec![workload::Barrier { name: String::new(), users }],
            semaphores: names(1),
            timers: names(1),
            kinds: Vec::new(),
            pi: false,
        })
    }

    /// Tasks that do one thing after another, whichever runnable one is drawn next.
    struct Tasks {
        o: Objects,
        programs: Vec<Vec<Event>>,
        at: Vec<usize>,
        asleep: Vec<bool>,
        /// Was woken and has not had a CPU since.
        woken: Vec<bool>,
        wakes: Vec<TaskId>,
    }

    impl Tasks {
        fn new(o: Objects, programs: Vec<Vec<Event>>) -> Tasks {
            let n = programs.len();
            Tasks {
                o,
                programs,
                at: vec![0; n],
                asleep: vec![false; n],
                woken: vec![false; n],
                wakes: Vec::new(),
            }
        }

        /// Carries out one act of the drawn task; `None`: no task can go on.
        fn step(&mut self, draw: usize) -> Option<(usize, Event)> {
            let can = |i: &usize| !self.asleep[*i] && self.at[*i] < self.programs[*i].len();
            let able: Vec<usize> = (0..self.programs.len()).filter(can).collect();
            let i = *able.get(draw % able.len().max(1))?;
            let (task, event) = (TaskId(i as u32), self.programs[i][self.at[i]]);
            let did = match self.o.wait_of(task).0 {
                Wait::Nothing => self.o.act(task, event, NOW, &mut self.wakes),
                _ => self.o.resume(task, NOW),
            };
            self.woken[i] = false;
            match did {
                Did::Done => self.at[i] += 1,
                Did::Waits => self.asleep[i] = true,
                Did::NotHeld(_) => panic!("{i} does not hold it"),
            }
            for woken in self.wakes.drain(..) {
                assert!(self.asleep[woken.index()], "only who sleeps is woken");
                self.asleep[woken.index()] = false;
                self.woken[woken.index()] = true;
            }
            (did == Did::Done).then_some((i, event)).or(Some((i, Event::Yield)))
        }

        fn done(&self) -> bool {
            self.at.iter().zip(&self.programs).all(|(at, p)| *at == p.len())
        }
    }

    proptest! {
        #![proptest_config(draws::config(256))]

        #[test]
        fn one_at_a_time_holds_a_mutex_and_everyone_gets_it(
            rounds in proptest::collection::vec(1..6usize, 2..6),
            draws in proptest::collection::vec(any::<usize>(), 400),
        ) {
            let critical = [Event::Lock(0), Event::Yield, Event::Unlock(0)];
            let programs = rounds.iter().map(|n| critical.repeat(*n)).collect();
            let mut tasks = Tasks::new(objects(1, 1), programs);
            let mut inside = None;
            for draw in draws {
                match tasks.step(draw) {
                    Some((i, Event::Lock(_))) => prop_assert_eq!(inside.replace(i), None),
                    Some((i, Event::Unlock(_))) => prop_assert_eq!(inside.take(), Some(i)),
                    _ => {}
                }
                // A free mutex with waiters has one of them on its way, or the wakeup was lost.
                if tasks.o.owner(0).is_none() && !tasks.o.mutexes[0].waiters.is_empty() {
                    prop_assert!(tasks.woken.contains(&true));
                }
            }
            prop_assert!(tasks.done());
        }

        #[test]
        fn a_semaphore_gives_each_post_to_one_waiter(
            (posters, waiters) in (1..4usize, 1..4usize),
            draws in proptest::collection::vec(any::<usize>(), 300),
        ) {
            // As many are given as are taken.
            let n = 12;
            let program = |event, tasks| vec![event; n / tasks];
            let mut programs = vec![program(Event::SemPost(0), posters); posters];
            programs.extend(vec![program(Event::SemWait(0), waiters); waiters]);
            let mut tasks = Tasks::new(objects(0, 1), programs);
            for draw in draws {
                tasks.step(draw);
                let s = &tasks.o.semaphores[0];
                if s.count > 0 && !s.waiters.is_empty() {
                    prop_assert!(tasks.woken.contains(&true), "somebody is on the way to it");
                }
            }
            prop_assert!(tasks.done());
            prop_assert_eq!(tasks.o.semaphores[0].count, 0);
        }

        #[test]
        fn a_barrier_releases_its_users_and_nobody_before(
            users in 1..6u32,
            rounds in 1..6usize,
            draws in proptest::collection::vec(any::<usize>(), 200),
        ) {
            let programs = vec![vec![Event::Barrier(0); rounds]; users as usize];
            let mut tasks = Tasks::new(objects(0, users), programs);
            for draw in draws {
                tasks.step(draw);
                // Nobody is two rounds ahead: a round ends when all have come to it.
                let (least, most) = (tasks.at.iter().min(), tasks.at.iter().max());
                prop_assert!(most.zip(least).is_some_and(|(m, l)| m - l <= 1));
            }
            prop_assert!(tasks.done());
        }

        #[test]
        fn a_signal_wakes_the_first_waiter_and_no_other(
            n in 1..6usize,
            signals in 0..8usize,
        ) {
            let mut o = objects(1, 1);
            let mut wakes = Vec::new();
            for i in 0..n as u32 {
                prop_assert_eq!(o.act(TaskId(i), Event::Lock(0), NOW, &mut wakes), Did::Done);
                let wait = Event::Wait { cond: 0, mutex: 0 };
                prop_assert_eq!(o.act(TaskId(i), wait, NOW, &mut wakes), Did::Waits);
            }
            prop_assert_eq!(wakes.len(), 0, "the mutex was free each time");
            for _ in 0..signals {
                o.act(TaskId(99), Event::Signal(0), NOW, &mut wakes);
            }
            let want: Vec<TaskId> = (0..n.min(signals) as u32).map(TaskId).collect();
            prop_assert_eq!(&wakes, &want);
            wakes.clear();
            o.act(TaskId(99), Event::Broadcast(0), NOW, &mut wakes);
            prop_assert_eq!(wakes.len(), n.saturating_sub(signals));
        }
    }

    #[test]
    fn only_the_owner_unlocks() {
        let mut o = objects(2, 1);
        let mut wakes = Vec::new();
        let (a, b) = (TaskId(0), TaskId(1));
        assert_eq!(o.act(a, Event::Unlock(1), NOW, &mut wakes), Did::NotHeld(1));
        assert_eq!(o.act(a, Event::Lock(1), NOW, &mut wakes), Did::Done);
        assert_eq!(o.act(b, Event::Unlock(1), NOW, &mut wakes), Did::NotHeld(1));
        assert_eq!(o.act(b, Event::Wait { cond: 0, mutex: 1 }, NOW, &mut wakes), Did::NotHeld(1));
        assert_eq!(o.act(a, Event::Lock(1), NOW, &mut wakes), Did::Waits, "not recursive");
    }
}
