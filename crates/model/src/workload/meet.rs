//! Whether those that wait for each other by a name meet.
//!
//! ```text
//! suspend, wait      nobody resumes, signals or broadcasts that name: it waits for ever; the other way round, nobody hears it
//! sem_wait           nobody posts it
//! barrier            fewer tasks come there than it waits for; or one alone, which it holds up for no time
//! lock               never unlocked by the task that locks it
//! ```
//!
//! What one event of a program says is taken for what may happen, in whatever order: of a name that is found there is no doubt.

use super::{Event, TaskSpec, Workload};
use crate::InputError;
use crate::input::{nearest, one_line};
use std::collections::{BTreeMap, BTreeSet};

/// Users of objects, by the object's number: who waits there, and who gives it; a task that is
/// forked stands for many.
#[derive(Default)]
struct Users<'a> {
    wait: BTreeMap<u32, Vec<&'a TaskSpec>>,
    give: BTreeMap<u32, Vec<&'a TaskSpec>>,
}

impl<'a> Users<'a> {
    /// Collects the tasks whose events use an object: `role` is `Some((number, whether it waits))`.
    fn of(w: &'a Workload, role: impl Fn(&Event) -> Option<(u32, bool)>) -> Users<'a> {
        let mut users = Users::default();
        for task in w.tasks.iter().chain(&w.forked) {
            let roles: BTreeSet<_> = events(task).filter_map(&role).collect();
            for (number, waits) in roles {
                let of = if waits { &mut users.wait } else { &mut users.give };
                of.entry(number).or_default().push(task);
            }
        }
        users
    }
}

fn events(task: &TaskSpec) -> impl Iterator<Item = &Event> {
    task.phases.iter().flat_map(|phase| &phase.events)
}

impl Workload {
    /// Tasks that wait for what nobody gives, and those that give what nobody waits for.
    pub fn never_meet(&self) -> Vec<InputError> {
        [self.signals(), self.semaphores(), self.barriers(), self.mutexes()].concat()
    }

    fn doubt(&self, task: &TaskSpec, what: String) -> InputError {
        let place = self.place_of(&task.comm, &format!("task `{}`", one_line(&task.comm)));
        InputError::new(place, what)
    }

    fn is_forked(&self, task: &TaskSpec) -> bool {
        self.forked.iter().any(|forked| std::ptr::eq(forked, task))
    }

    fn signals(&self) -> Vec<InputError> {
        let users = Users::of(self, |event| match *event {
            Event::Wait { cond, .. } => Some((cond, true)),
            Event::Signal(cond) | Event::Broadcast(cond) => Some((cond, false)),
            _ => None,
        });
        let name =
            |number: &u32| self.objects.conds.get(*number as usize).map_or("", |n| n.as_str());
        let none = Vec::new();
        let mut all = Vec::new();
        for (number, waiting) in &users.wait {
            let giving = users.give.get(number).unwrap_or(&none);
            // Whoever waits cannot wake itself.
            let alone =
                |task: &&TaskSpec| !self.is_forked(task) && giving.iter().all(|g| g == task);
            let Some(task) = waiting.iter().find(|t| alone(t)) else { continue };
            let others: Vec<&str> =
                users.give.keys().filter(|n| !users.wait.contains_key(n)).map(name).collect();
            let of = one_line(name(number));
            let what = format!(
                "it waits for \"{of}\", and no other task resumes, signals or broadcasts that: it waits for ever"
            );
            all.push(hinted(self.doubt(task, what), name(number), &others));
        }
        for (number, giving) in users.give.iter().filter(|(n, _)| !users.wait.contains_key(n)) {
            let others: Vec<&str> = users.wait.keys().map(name).collect();
            let of = one_line(name(number));
            let what =
                format!("it resumes or signals \"{of}\", and no task suspends or waits there");
            all.extend(giving.first().map(|t| hinted(self.doubt(t, what), name(number), &others)));
        }
        all
    }

    fn semaphores(&self) -> Vec<InputError> {
        let users = Users::of(self, |event| match *event {
            Event::SemWait(number) => Some((number, true)),
            Event::SemPost(number) => Some((number, false)),
            _ => None,
        });
        let name =
            |number: &u32| self.objects.semaphores.get(*number as usize).map_or("", |n| n.as_str());
        let starved = users.wait.iter().filter(|(number, _)| !users.give.contains_key(number));
        let doubt = |(number, waiting): (&u32, &Vec<&TaskSpec>)| {
            let others: Vec<&str> =
                users.give.keys().filter(|n| !users.wait.contains_key(n)).map(name).collect();
            let of = one_line(name(number));
            let what =
                format!("it waits for semaphore \"{of}\", and no task posts it: it waits for ever");
            let task = waiting.first()?;
            Some(hinted(self.doubt(task, what), name(number), &others))
        };
        starved.filter_map(doubt).collect()
    }

    fn barriers(&self) -> Vec<InputError> {
        let users = Users::of(self, |event| match *event {
            Event::Barrier(number) => Some((number, true)),
            _ => None,
        });
        let doubt = |(number, coming): (&u32, &Vec<&TaskSpec>)| {
            let barrier = self.objects.barriers.get(*number as usize)?;
            let (task, name) = (coming.first()?, one_line(&barrier.name));
            if coming.iter().any(|task| self.is_forked(task)) {
                return None;
            }
            let what = match (barrier.users, coming.len()) {
                (1, _) => format!("nobody else comes to barrier \"{name}\": it holds nobody up"),
                (users, n) if n < users as usize => format!(
                    "barrier \"{name}\" waits for {users}, and {n} task(s) come there: they wait for ever"
                ),
                _ => return None,
            };
            Some(self.doubt(task, what))
        };
        users.wait.iter().filter_map(doubt).collect()
    }

    fn mutexes(&self) -> Vec<InputError> {
        let mut all = Vec::new();
        for task in self.tasks.iter().chain(&self.forked) {
            let locks = events(task).filter_map(|e| match e {
                Event::Lock(mutex) => Some(*mutex),
                _ => None,
            });
            let kept = |mutex: &u32| !events(task).any(|e| *e == Event::Unlock(*mutex));
            for mutex in locks.filter(kept).collect::<BTreeSet<u32>>() {
                let name = self.objects.mutexes.get(mutex as usize).map_or("", |n| n.as_str());
                let what = format!(
                    "it locks mutex \"{}\" and never unlocks it: whoever locks it later waits for ever",
                    one_line(name)
                );
                all.push(self.doubt(task, what));
            }
        }
        all
    }
}

/// Adds as a hint the name that is meant, if one of `others` is near or the only one.
fn hinted(e: InputError, name: &str, others: &[&str]) -> InputError {
    let near = nearest(name, others).or(match others {
        [only] => Some(*only),
        _ => None,
    });
    match near {
        Some(near) => e.hint(format!("\"{}\"?", one_line(near))),
        None => e,
    }
}
