//! Changes of [`crate::latency_nice`] in CFS: which entity preempts, at wakeups and ticks, and a
//! list of those that want the CPU soon, from their wakeup until they have run for the least time.
//!
//! Groups have none of their own here (`cpu.latency.nice`): their offset is 0.

use super::{CfsRq, Entity, EntityId};
use crate::latency_nice::{calc_latency_offset, wakeup_latency_gran};

impl CfsRq {
    /// `get_sleep_latency`: how much of a sleep counts.
    fn sleep_latency(&self) -> u64 {
        self.tunables.latency_ns >> u32::from(self.features.gentle_fair_sleepers)
    }

    /// `get_latency_max`: nobody has to be further behind.
    fn latency_max(&self) -> i64 {
        self.sleep_latency() as i64 - self.tunables.min_granularity_ns as i64
    }

    fn latency_offset(&self, entity: &Entity) -> i64 {
        calc_latency_offset(self.sleep_latency(), entity.latency_nice)
    }

    pub(super) fn latency_gran(&self, curr: &Entity, woken: &Entity) -> i64 {
        let offset = |e: &Entity| self.latency_offset(e);
        wakeup_latency_gran(offset(curr), offset(woken), self.latency_max())
    }

    /// `wakeup_preempt_entity` of one who is `behind` that far; `gran`: the usual granularity.
    pub(super) fn preempt_by_latency(&self, behind: i64, offset: i64, gran: i64) -> i32 {
        if behind < offset {
            return -1;
        }
        i32::from(behind > (offset + gran).min(self.latency_max()))
    }

    /// The end of `check_preempt_tick`: is `curr`, `ahead` of the leftmost, to be replaced? The kernel compares
    /// the first of the two as unsigned, so that whoever is not ahead, but by the offsets, is.
    pub(super) fn tick_by_latency(
        &self,
        ahead: i64,
        curr: &Entity,
        first: &Entity,
        ideal_runtime: u64,
    ) -> bool {
        ahead >= self.latency_gran(curr, first)
            && (ahead as u64 > ideal_runtime || ahead as u64 > self.latency_max() as u64)
    }

    /// `__enqueue_latency`.
    pub(super) fn enqueue_latency(&mut self, entity: &Entity, woken: bool) {
        let ran = entity.sum_exec_runtime.wrapping_sub(entity.prev_sum_exec_runtime);
        let may = woken || ran < self.tunables.min_granularity_ns;
        if self.tunables.latency_nice && entity.latency_nice < 0 && may {
            self.latency.push(entity.id);
        }
    }

    /// `__dequeue_latency`.
    pub(super) fn dequeue_latency(&mut self, id: EntityId) {
        self.latency.retain(|other| *other != id);
    }

    /// The first of them, if it may come before `picked` (`__pick_first_latency`).
    pub(super) fn sooner_than(&self, picked: EntityId) -> Option<EntityId> {
        let at = |e: &&Entity| e.vruntime.wrapping_add(self.latency_offset(e) as u64);
        // Virtual times wrap; of equals the one that came first.
        let origin = self.min_vruntime;
        let all = self.latency.iter().filter_map(|id| self.timeline.get(*id));
        let first = all.min_by_key(|e| at(e).wrapping_sub(origin) as i64)?;
        let picked = self.get(picked)?;
        (first.id != picked.id && self.wakeup_preempt_entity(first, picked) < 1).then_some(first.id)
    }

    /// Sets another `latency_nice` of the queued `id`; false if it is not queued.
    pub fn set_latency_nice(&mut self, id: impl Into<EntityId>, latency_nice: i8) -> bool {
        let id = id.into();
        let Some(entity) = self.get_mut(id) else { return false };
        entity.latency_nice = latency_nice;
        if latency_nice >= 0 {
            self.dequeue_latency(id);
        }
        true
    }
}
