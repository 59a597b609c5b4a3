//! Timers of a CPU: of the tasks that sleep on it and of its classes, and the tasks that those
//! which run there wake.

use risetime_kernel::units::{Instant, TaskId};

/// Expiry times of a CPU's timers and their owners, the first one last: that one leaves first. Of
/// equal times the order is that of their owners.
#[derive(Clone, Debug)]
pub(crate) struct Timers<T>(Vec<(Instant, T)>);

impl<T> Default for Timers<T> {
    fn default() -> Timers<T> {
        Timers(Vec::new())
    }
}

impl<T: Copy + Ord> Timers<T> {
    /// The first to expire.
    #[inline]
    pub(crate) fn first(&self) -> Option<(Instant, T)> {
        self.0.last().copied()
    }
    /// Iterates over all timers, the first to expire first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Instant, T)> + '_ {
        self.0.iter().rev().copied()
    }
    /// Adds a timer, if it is not there already.
    pub(crate) fn insert(&mut self, timer: (Instant, T)) {
        let at = self.0.partition_point(|other| *other > timer);
        if self.0.get(at) != Some(&timer) {
            self.0.insert(at, timer);
        }
    }
    /// Removes the timer of `owner` at `at`.
    pub(crate) fn remove_at(&mut self, at: Instant, owner: T) {
        self.drop_where(|timer| *timer == (at, owner));
    }
    /// Removes the timer of `owner`, which has one at most: most often the first.
    pub(crate) fn remove(&mut self, owner: T) {
        self.drop_where(|(_, t)| *t == owner);
    }
    /// Removes the timers of `owner` that were due by `now`.
    pub(crate) fn expire(&mut self, owner: T, now: Instant) {
        for i in (0..self.0.len()).rev() {
            match self.0[i] {
                (at, _) if at > now => return,
                (_, t) if t == owner => drop(self.0.remove(i)),
                _ => {}
            }
        }
    }
    /// The first one like that.
    fn drop_where(&mut self, gone: impl Fn(&(Instant, T)) -> bool) {
        if let Some(at) = self.0.iter().rposition(gone) {
            self.0.remove(at);
        }
    }
    /// Takes all timers; none are left.
    pub(crate) fn take(&mut self) -> Timers<T> {
        std::mem::take(self)
    }
}

impl<T> IntoIterator for Timers<T> {
    type Item = (Instant, T);
    type IntoIter = std::vec::IntoIter<(Instant, T)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Wakees of a task (or of a CPU's idle task: its interrupts), and how often another one than last
/// time was woken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wakees {
    pub(crate) last: Option<TaskId>,
    pub(crate) flips: u32,
    /// Time of the last decay, in jiffies.
    pub(crate) decayed_at: u64,
}
