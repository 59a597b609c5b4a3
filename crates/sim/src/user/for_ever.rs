//! Tasks that wait for ever: no other can wake them any more, whatever else happens.
//!
//! ```text
//! at first all that wait are stuck
//! freed    who waits for something that a task which is not stuck may yet give, by what of its program lies ahead of it
//! stuck    who is left once nobody more is freed
//! ```
//!
//! A mutex is given by the task that holds it, a barrier by as many as it wants. What may be given is taken for given: nobody
//! is called stuck who is not.

use crate::state::machine::{Machine, Role, State};
use crate::user::User;
use crate::user::sync::Wait;
use risetime_kernel::units::TaskId;
use risetime_model::Workload;
use risetime_model::workload::Event;
use std::collections::{BTreeMap, BTreeSet};

/// Thing that tasks give each other, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gift {
    Signal(u32),
    Post(u32),
    /// A task that comes to the barrier.
    Barrier(u32),
}

impl User {
    /// Tasks that can never go on.
    pub(crate) fn waits_for_ever(&self, m: &Machine, workload: &Workload) -> Vec<String> {
        /// Number of tasks beyond which only the names are told.
        const LIST: usize = 5;
        let stuck = self.stuck(m, workload);
        let first = stuck.iter().take(LIST);
        let mut notes: Vec<String> = first.map(|t| self.says_of(m, *t, workload)).collect();
        if let [_, ..] = stuck.get(LIST..).unwrap_or_default() {
            let names = stuck[LIST..].iter().map(|t| m.task(*t).comm.to_string());
            let names: Vec<String> = names.collect();
            notes.push(format!("{} more tasks wait for ever: {}", names.len(), names.join(", ")));
        }
        notes
    }

    fn stuck(&self, m: &Machine, workload: &Workload) -> Vec<TaskId> {
        // A service waits for others for as long as they live.
        let user = |task: &TaskId| {
            matches!(m.task(*task).role, Role::User) && self.program(*task).is_some()
        };
        let asleep = |task: &TaskId| {
            m.task(*task).state == State::Sleeping
                && self.together.sync.wait_of(*task).0 != Wait::Nothing
        };
        let gone = |task: TaskId| m.task(task).state == State::Exited;
        let all = || (0..m.tasks.len() as u32).map(TaskId).filter(user);
        let mut stuck: BTreeSet<TaskId> = all().filter(asleep).collect();
        if stuck.is_empty() {
            return Vec::new();
        }
        let mut given = Given::default();
        for free in all().filter(|t| !stuck.contains(t) && !gone(*t)) {
            given.add_all(self.ahead(free, workload));
        }
        loop {
            let freed = |task: &TaskId| match self.together.sync.wait_of(*task).0 {
                Wait::Nothing => true,
                Wait::Cond { cond, .. } => given.has(Gift::Signal(cond)),
                Wait::Semaphore(index) => given.has(Gift::Post(index)),
                Wait::Barrier(index) => {
                    let users =
                        workload.objects.barriers.get(index as usize).map_or(0, |b| b.users);
                    let there =
                        |t: &&TaskId| self.together.sync.wait_of(**t).0 == Wait::Barrier(index);
                    let waiting = stuck.iter().filter(there).count();
                    waiting + given.count(Gift::Barrier(index)) >= users as usize
                }
                Wait::Mutex(mutex) => match self.together.sync.owner(mutex) {
                    None => true,
                    Some(owner) => {
                        let unlocks = |e: &Event| matches!(*e, Event::Unlock(m) | Event::Wait { mutex: m, .. } if m == mutex);
                        !stuck.contains(&owner)
                            && !gone(owner)
                            && self.ahead(owner, workload).iter().any(unlocks)
                    }
                },
            };
            let free: Vec<TaskId> = stuck.iter().copied().filter(freed).collect();
            if free.is_empty() {
                return stuck.into_iter().collect();
            }
            for task in free {
                stuck.remove(&task);
                given.add_all(self.ahead(task, workload));
            }
        }
    }

    /// The events that `task` may yet come to, and those of the tasks that it may fork.
    fn ahead(&self, task: TaskId, workload: &Workload) -> Vec<Event> {
        let Some(program) = self.program(task) else { return Vec::new() };
        let mut events: Vec<Event> = program.ahead().copied().collect();
        let mut seen = BTreeSet::new();
        let mut at = 0;
        while let Some(event) = events.get(at) {
            at += 1;
            if let Event::Fork(index) = *event
                && seen.insert(index)
                && let Some(forked) = workload.forked.get(index as usize)
            {
                events.extend(forked.phases.iter().flat_map(|phase| &phase.events));
            }
        }
        events
    }

    fn says_of(&self, m: &Machine, task: TaskId, workload: &Workload) -> String {
        let (wait, since) = self.together.sync.wait_of(task);
        let o = &workload.objects;
        let name =
            |list: &[String], index: u32| list.get(index as usize).cloned().unwrap_or_default();
        let what = match wait {
            Wait::Mutex(index) => {
                let owner = self.together.sync.owner(index);
                let holder =
                    owner.map_or(String::new(), |t| format!(", which {} holds", m.task(t).comm));
                format!("mutex \"{}\"{holder}", name(&o.mutexes, index))
            }
            Wait::Cond { cond, .. } => format!("a signal of \"{}\"", name(&o.conds, cond)),
            Wait::Barrier(index) => {
                let barrier = o.barriers.get(index as usize);
                format!("the others at barrier \"{}\"", barrier.map_or("", |b| b.name.as_str()))
            }
            Wait::Semaphore(index) => format!("semaphore \"{}\"", name(&o.semaphores, index)),
            Wait::Nothing => String::new(),
        };
        format!(
            "task {} waits for {what} from {:.3} ms to the end: nobody is left to wake it",
            m.task(task).comm,
            since.as_ms()
        )
    }
}

/// Gifts that tasks that go on may give, and by how many of them.
#[derive(Default)]
struct Given(BTreeMap<Gift, usize>);

impl Given {
    fn add_all(&mut self, events: Vec<Event>) {
        let gift = |event: Event| match event {
            Event::Signal(cond) | Event::Broadcast(cond) => Some(Gift::Signal(cond)),
            Event::SemPost(index) => Some(Gift::Post(index)),
            Event::Barrier(index) => Some(Gift::Barrier(index)),
            _ => None,
        };
        let gifts: BTreeSet<Gift> = events.into_iter().filter_map(gift).collect();
        gifts.into_iter().for_each(|gift| *self.0.entry(gift).or_default() += 1);
    }
    fn has(&self, gift: Gift) -> bool {
        self.0.contains_key(&gift)
    }
    fn count(&self, gift: Gift) -> usize {
        self.0.get(&gift).copied().unwrap_or(0)
    }
}
