//! uclamp: hints that a task needs at least, or gets at most, so much performance.
//!
//! ```text
//!  effective(task) = min(clamp(request, group_min, group_max), system limit)
//!  rq.min, rq.max  = the largest min, the largest max over the runnable tasks
//!  frequency       : util clamped to [rq.min, rq.max]
//! ```
//!
//! A runqueue does not keep every task's value but counts tasks in a few buckets of clamp values;
//! within a bucket the largest value wins until the bucket empties. A CPU that goes idle keeps its
//! last `max`, so that blocked util does not raise the frequency; the next task resets it.
//!
//! Left out: the default boost of RT tasks (a request of the caller's), the static key
//! (`sched_uclamp_used`: the caller asks for clamps only when somebody uses them).
//!
//! Source: kernel/sched/core.c (uclamp_*), kernel/sched/sched.h.

use crate::units::Util;

/// Most buckets a kernel can be configured with.
pub const UCLAMP_BUCKETS_MAX: usize = 20;
/// The default number of buckets (`CONFIG_UCLAMP_BUCKETS_COUNT`).
pub const UCLAMP_BUCKETS_DEFAULT: usize = 5;
/// No limit.
const NONE_MAX: Util = Util(1024);

/// Choice between the two clamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UclampId {
    /// `UCLAMP_MIN`: at least.
    Min = 0,
    /// `UCLAMP_MAX`: at most.
    Max = 1,
}

impl UclampId {
    /// Both clamps, in the kernel's order.
    pub const ALL: [UclampId; 2] = [UclampId::Min, UclampId::Max];
}

/// A pair of clamp values, 0..1024: requested, effective, or a group's or the system's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uclamp {
    /// Performance at least, of 1024.
    pub min: Util,
    /// Performance at most, of 1024.
    pub max: Util,
}

impl Default for Uclamp {
    /// The absence of clamps: 0 and 1024.
    fn default() -> Uclamp {
        Uclamp { min: Util(0), max: NONE_MAX }
    }
}

impl Uclamp {
    /// The clamp of this `id`.
    pub const fn get(&self, id: UclampId) -> Util {
        match id {
            UclampId::Min => self.min,
            UclampId::Max => self.max,
        }
    }
}

/// The limits that restrict a task's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UclampLimits {
    /// The effective clamps of its cgroup ([`cpu_util_update_eff`]); `None` in the root group and
    /// in autogroups.
    pub group: Option<Uclamp>,
    /// `sched_util_clamp_min` and `sched_util_clamp_max`: neither clamp may exceed its own.
    pub system: Uclamp,
}

impl Default for UclampLimits {
    /// The limits of the root group, with system limits at 1024 as a kernel starts.
    fn default() -> UclampLimits {
        UclampLimits { group: None, system: Uclamp { min: NONE_MAX, max: NONE_MAX } }
    }
}

/// The effective value of one clamp. Source: core.c:uclamp_tg_restrict, uclamp_eff_get.
#[inline]
pub fn uclamp_eff_get(id: UclampId, request: Uclamp, limits: &UclampLimits) -> Util {
    let mut value = request.get(id);
    if let Some(group) = limits.group {
        // The kernel's clamp(): the upper limit wins if the two are crossed.
        value = value.max(group.min).min(group.max);
    }
    value.min(limits.system.get(id))
}

/// The effective clamps of a task that is not queued. Source: core.c:uclamp_eff_value.
#[inline]
pub fn uclamp_eff(request: Uclamp, limits: &UclampLimits) -> Uclamp {
    Uclamp {
        min: uclamp_eff_get(UclampId::Min, request, limits),
        max: uclamp_eff_get(UclampId::Max, request, limits),
    }
}

/// The effective clamps of a cgroup: its request within its parent's (`None`: it is the root),
/// its minimum not above its maximum. Source: core.c:cpu_util_update_eff.
pub fn cpu_util_update_eff(request: Uclamp, parent: Option<Uclamp>) -> Uclamp {
    let parent = parent.unwrap_or(Uclamp { min: Util(u64::MAX), max: Util(u64::MAX) });
    let max = request.max.min(parent.max);
    Uclamp { min: request.min.min(parent.min).min(max), max }
}

/// A task's clamps while it is counted on a runqueue (`p->uclamp[]`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UclampTask {
    /// The requested clamps (`p->uclamp_req[]`).
    pub request: Uclamp,
    /// The effective values it is counted with.
    effective: Uclamp,
    /// Whether it is counted on a runqueue.
    active: bool,
}

impl UclampTask {
    /// A task with this request, not queued.
    pub fn new(request: Uclamp) -> UclampTask {
        UclampTask { request, ..UclampTask::default() }
    }
    /// The values in force: those it is counted with, else those it would be.
    /// Source: core.c:uclamp_eff_value.
    #[inline]
    pub fn uclamp_eff_value(&self, limits: &UclampLimits) -> Uclamp {
        if self.active { self.effective } else { uclamp_eff(self.request, limits) }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bucket {
    /// Largest clamp value in the bucket, at most 1024; the kernel has 11 bits for it.
    value: u32,
    tasks: u32,
}

/// A runqueue's clamps: the maxima over its runnable tasks (`struct uclamp_rq`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UclampRq {
    value: [Util; 2],
    buckets: [[Bucket; UCLAMP_BUCKETS_MAX]; 2],
    nr_buckets: usize,
    /// `UCLAMP_BUCKET_DELTA`.
    bucket_delta: u32,
    idle: bool,
}

impl Default for UclampRq {
    /// An empty runqueue with the default number of buckets.
    fn default() -> UclampRq {
        UclampRq::new(UCLAMP_BUCKETS_DEFAULT)
    }
}

impl UclampRq {
    /// An empty runqueue; `buckets` is held within 5..=[`UCLAMP_BUCKETS_MAX`], what a kernel can
    /// be configured with. Source: core.c:init_uclamp_rq.
    pub fn new(buckets: usize) -> UclampRq {
        let nr_buckets = buckets.clamp(UCLAMP_BUCKETS_DEFAULT, UCLAMP_BUCKETS_MAX);
        let n = nr_buckets as u32;
        UclampRq {
            value: [Util(0), NONE_MAX],
            buckets: [[Bucket::default(); UCLAMP_BUCKETS_MAX]; 2],
            nr_buckets,
            bucket_delta: (1024 + n / 2) / n,
            idle: true,
        }
    }

    /// The clamp in force. Source: sched.h:uclamp_rq_get.
    pub const fn uclamp_rq_get(&self, id: UclampId) -> Util {
        self.value[id as usize]
    }

    /// The two clamps in force.
    pub const fn clamps(&self) -> Uclamp {
        Uclamp { min: self.value[0], max: self.value[1] }
    }

    /// Whether no task is counted: `max` is the last task's. Source: sched.h:uclamp_rq_is_idle.
    pub const fn uclamp_rq_is_idle(&self) -> bool {
        self.idle
    }

    /// Counts a task that becomes runnable, with the limits of this moment.
    /// Source: core.c:uclamp_rq_inc.
    pub fn uclamp_rq_inc(&mut self, task: &mut UclampTask, limits: &UclampLimits) {
        task.effective = uclamp_eff(task.request, limits);
        task.active = true;
        for id in UclampId::ALL {
            self.inc_id(id, task.effective.get(id));
        }
        self.idle = false;
    }

    /// Uncounts a task that is no longer runnable; nothing if it is not counted.
    /// Source: core.c:uclamp_rq_dec.
    pub fn uclamp_rq_dec(&mut self, task: &mut UclampTask) {
        if !task.active {
            return;
        }
        task.active = false;
        for id in UclampId::ALL {
            self.dec_id(id, task.effective.get(id));
        }
    }

    /// Counts a queued task anew after its request or its limits changed.
    /// Source: core.c:uclamp_rq_reinc_id.
    pub fn uclamp_rq_reinc(&mut self, task: &mut UclampTask, limits: &UclampLimits) {
        if !task.active {
            return;
        }
        let (old, new) = (task.effective, uclamp_eff(task.request, limits));
        task.effective = new;
        for id in UclampId::ALL {
            self.dec_id(id, old.get(id));
            self.inc_id(id, new.get(id));
        }
        self.idle = false;
    }

    /// The index of the bucket that `value` belongs to. Source: sched.h:uclamp_bucket_id.
    fn bucket_id(&self, value: Util) -> usize {
        ((value.0.min(1024) as u32 / self.bucket_delta) as usize).min(self.nr_buckets - 1)
    }

    /// Counts a task with clamp `value` into its bucket and raises the value in force. Source:
    /// core.c:uclamp_rq_inc_id.
    fn inc_id(&mut self, id: UclampId, value: Util) {
        let bucket_id = self.bucket_id(value);
        if self.idle {
            self.value[id as usize] = value;
        }
        let bucket = &mut self.buckets[id as usize][bucket_id];
        bucket.tasks += 1;
        let own = value.0.min(1024) as u32;
        if bucket.tasks == 1 || own > bucket.value {
            bucket.value = own;
        }
        let current = &mut self.value[id as usize];
        *current = value.max(*current);
    }

    /// Takes a task with clamp `value` out of its bucket; the value in force falls if that was the
    /// last one. Source: core.c:uclamp_rq_dec_id.
    fn dec_id(&mut self, id: UclampId, value: Util) {
        let bucket_id = self.bucket_id(value);
        let bucket = &mut self.buckets[id as usize][bucket_id];
        bucket.tasks = bucket.tasks.saturating_sub(1);
        if bucket.tasks == 0 && u64::from(bucket.value) >= self.value[id as usize].0 {
            self.value[id as usize] = self.max_value(id, value);
        }
    }

    /// The value of the topmost bucket in use; none: idle. Source: core.c:uclamp_rq_max_value.
    fn max_value(&mut self, id: UclampId, last: Util) -> Util {
        let buckets = &self.buckets[id as usize][..self.nr_buckets];
        if let Some(top) = buckets.iter().rev().find(|b| b.tasks > 0) {
            return Util(top.value.into());
        }
        match id {
            UclampId::Min => Util(0),
            UclampId::Max => {
                self.idle = true;
                last
            }
        }
    }
}

/// `util` within a runqueue's clamps, joined by those of a task considered for it (`task_eff`).
///
/// A minimum at or above the maximum wins. Source: sched.h:uclamp_rq_util_with (up to 6.7; since
/// then the two limits travel beside the util).
pub fn uclamp_rq_util_with(rq: &UclampRq, util: Util, task_eff: Option<Uclamp>) -> Util {
    let of_rq = rq.clamps();
    let Uclamp { min, max } = match task_eff {
        Some(task) if rq.idle => task,
        Some(task) => Uclamp { min: task.min.max(of_rq.min), max: task.max.max(of_rq.max) },
        None => of_rq,
    };
    if min >= max { min } else { util.clamp(min, max) }
}

/// Whether a CPU's util is held down by its `uclamp_max`: schedutil then always lowers the
/// frequency at once. `util` is fair plus RT util. Source: sched.h:uclamp_rq_is_capped.
pub fn uclamp_rq_is_capped(rq: &UclampRq, util: Util) -> bool {
    let max = rq.uclamp_rq_get(UclampId::Max);
    max != NONE_MAX && util >= max
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clamps(min: u64, max: u64) -> Uclamp {
        Uclamp { min: Util(min), max: Util(max) }
    }

    #[test]
    fn request_group_system() {
        let eff = |request, group, system| uclamp_eff(request, &UclampLimits { group, system });
        let open = UclampLimits::default().system;
        assert_eq!(eff(clamps(300, 800), None, open), clamps(300, 800));
        assert_eq!(eff(clamps(300, 800), Some(clamps(400, 600)), open), clamps(400, 600));
        assert_eq!(eff(clamps(300, 800), None, clamps(200, 1024)), clamps(200, 800));
        assert_eq!(eff(clamps(0, 1024), Some(clamps(100, 1024)), clamps(0, 0)), clamps(0, 0));
    }

    #[test]
    fn groups_are_limited_by_their_parents() {
        assert_eq!(cpu_util_update_eff(clamps(300, 800), None), clamps(300, 800));
        assert_eq!(cpu_util_update_eff(clamps(300, 800), Some(clamps(100, 500))), clamps(100, 500));
        assert_eq!(cpu_util_update_eff(clamps(300, 200), None), clamps(200, 200));
    }

    #[test]
    fn the_last_max_stays_while_idle_and_goes_with_the_next_task() {
        let (mut rq, open) = (UclampRq::default(), UclampLimits::default());
        assert_eq!((rq.clamps(), rq.uclamp_rq_is_idle()), (clamps(0, 1024), true));
        let mut capped = UclampTask::new(clamps(100, 300));
        rq.uclamp_rq_inc(&mut capped, &open);
        assert_eq!(rq.clamps(), clamps(100, 300));
        assert!(uclamp_rq_is_capped(&rq, Util(300)) && !uclamp_rq_is_capped(&rq, Util(299)));
        rq.uclamp_rq_dec(&mut capped);
        assert_eq!((rq.clamps(), rq.uclamp_rq_is_idle()), (clamps(0, 300), true));
        rq.uclamp_rq_dec(&mut capped);
        assert_eq!(rq.clamps(), clamps(0, 300), "uncounted only once");
        let mut free = UclampTask::new(Uclamp::default());
        rq.uclamp_rq_inc(&mut free, &open);
        assert_eq!((rq.clamps(), rq.uclamp_rq_is_idle()), (clamps(0, 1024), false));
    }

    #[test]
    fn a_bucket_keeps_its_largest_value_until_it_empties() {
        let (mut rq, open) = (UclampRq::default(), UclampLimits::default());
        // 5 buckets are 205 wide: 210 and 300 share one, 100 has its own.
        let mut tasks = [100, 210, 300].map(|min| UclampTask::new(clamps(min, 1024)));
        for task in &mut tasks {
            rq.uclamp_rq_inc(task, &open);
        }
        assert_eq!(rq.uclamp_rq_get(UclampId::Min), Util(300));
        rq.uclamp_rq_dec(&mut tasks[2]);
        assert_eq!(rq.uclamp_rq_get(UclampId::Min), Util(300), "210 is boosted by its bucket");
        rq.uclamp_rq_dec(&mut tasks[1]);
        assert_eq!(rq.uclamp_rq_get(UclampId::Min), Util(100));
    }

    #[test]
    fn a_change_while_queued_takes_effect_at_once() {
        let (mut rq, open) = (UclampRq::default(), UclampLimits::default());
        let mut task = UclampTask::new(clamps(0, 1024));
        rq.uclamp_rq_inc(&mut task, &open);
        task.request = clamps(512, 700);
        assert_eq!(task.uclamp_eff_value(&open), clamps(0, 1024), "not before it is recounted");
        rq.uclamp_rq_reinc(&mut task, &open);
        assert_eq!((rq.clamps(), rq.uclamp_rq_is_idle()), (clamps(512, 700), false));
        assert_eq!(task.uclamp_eff_value(&open), clamps(512, 700));
    }

    #[test]
    fn util_within_the_clamps_of_runqueue_and_task() {
        let (mut rq, open) = (UclampRq::default(), UclampLimits::default());
        let mut queued = UclampTask::new(clamps(200, 400));
        rq.uclamp_rq_inc(&mut queued, &open);
        let with = |rq: &UclampRq, util, task| uclamp_rq_util_with(rq, Util(util), task).0;
        assert_eq!([100, 300, 900].map(|u| with(&rq, u, None)), [200, 300, 400]);
        assert_eq!(with(&rq, 900, Some(clamps(0, 600))), 600);
        assert_eq!(with(&rq, 0, Some(clamps(500, 100))), 500, "crossed: the minimum");
        rq.uclamp_rq_dec(&mut queued);
        assert_eq!(with(&rq, 900, Some(clamps(0, 300))), 300, "idle: only the task counts");
    }
}
