//! One task: what it does, since when, and the figures of its bursts.
//!
//! ```text
//!   burst   = [t0, end): t0 a creation, or a wakeup after ≥ 4.5 ms asleep;
//!             end where such a sleep begins, at exit, or at the run's end
//! ```
//!
//! A run that ends less than 4.5 ms into a sleep ends the burst (`run_end`): how long the
//! sleep would have been is not known.

use crate::figures::{Figures, Levels, Piece};
use crate::lost::Place;
use crate::machine::ms;
use crate::result::{Burst, EndedBy, Reservation};
use crate::stretch::{Position, Watch};
use risetime_kernel::units::{CpuId, TaskId};
use risetime_model::workload::Policy;

/// A sleep of at least this many ns ends a burst.
pub(crate) const SLEEP_NS: u64 = 4_500_000;

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Runnable, not running.
    Waits,
    /// Running there.
    Runs(CpuId),
    /// Asleep since.
    Sleeps(u64),
    /// Has exited.
    Gone,
}

/// A task of the workload.
pub(crate) struct Task {
    pub(crate) id: TaskId,
    pub(crate) comm: String,
    pub(crate) doing: Doing,
    pub(crate) cpu: CpuId,
    /// On the scale of [`ONE`](crate::lost::ONE).
    pub(crate) s_max: u64,
    pub(crate) bursts: u32,
    /// Every burst that is over, if they are wanted.
    pub(crate) all: Option<Vec<Burst>>,
    /// Its group among [`Groups`](crate::latency::Groups).
    pub(crate) group: usize,
    /// The policies it ran under, once it had another one than SCHED_OTHER.
    pub(crate) policies: Vec<Policy>,
    /// The period of its reservation, while it is a deadline task.
    period: Option<u64>,
    /// Its reservation is used up; how often it was, and how long it waited for the next.
    throttled: bool,
    throttles: u32,
    throttled_ns: u64,
    /// Where it is in its program, as far as the trace says.
    position: Position,
    /// A stretch of it that is looked for.
    pub(crate) watch: Option<Box<Watch>>,
    /// When it first had a CPU.
    pub(crate) first_ran: Option<u64>,
    /// When its present activation began.
    woke: u64,
    /// It waits for a CPU since this wakeup, or its creation.
    pub(crate) woken: Option<u64>,
    /// When it exited.
    pub(crate) gone: Option<u64>,
    pub(crate) created: u64,
    /// Work done, in ns of full speed on the scale of [`ONE`](crate::lost::ONE).
    pub(crate) work: u128,
    /// Energy of the CPUs while it ran, in µW · ns; `None`: it ran where the power is unknown.
    pub(crate) energy_fj: Option<u128>,
    /// Everything before is accounted.
    since: u64,
    util: Option<u64>,
    util_since: u64,
    last_migration: Option<(u64, CpuId, CpuId, &'static str)>,
    present: Box<Figures>,
    /// The best of the earlier bursts, unless the present one has more running time.
    best: Option<Box<Figures>>,
    /// Memory to use again.
    spare: Option<Box<Figures>>,
}

impl Task {
    /// A task that became runnable at `now`. `curves`: keep a timeline.
    pub(crate) fn new(
        id: TaskId,
        comm: &str,
        cpu: CpuId,
        now: u64,
        s_max: u64,
        curves: bool,
    ) -> Task {
        let mut present = Box::new(Figures::default());
        if curves {
            present.curves = Some(Box::default());
        }
        present.restart(now);
        Task {
            id,
            comm: comm.to_owned(),
            doing: Doing::Waits,
            cpu,
            s_max,
            bursts: 1,
            all: None,
            group: 0,
            policies: Vec::new(),
            period: None,
            throttled: false,
            throttles: 0,
            throttled_ns: 0,
            position: Position::default(),
            watch: None,
            first_ran: None,
            woke: now,
            woken: Some(now),
            gone: None,
            created: now,
            work: 0,
            energy_fj: Some(0),
            since: now,
            util: None,
            util_since: now,
            last_migration: None,
            present,
            best: None,
            spare: None,
        }
    }

    /// It is under `policy` from now on. What it was created with, and took off again before it ran, does
    /// not count.
    pub(crate) fn set_policy(&mut self, now: u64, policy: Policy) {
        /// A task may change its parameters without end.
        const MANY: usize = 8;
        self.period = match policy {
            Policy::Deadline { period, .. } => Some(period.0),
            _ => None,
        };
        let ran = self.first_ran.is_some_and(|at| at < now);
        if !ran {
            self.policies.clear();
        } else if self.policies.is_empty() {
            self.policies.push(Policy::Other { slice: None });
        }
        if !self.policies.contains(&policy) && self.policies.len() < MANY {
            self.policies.push(policy);
        }
    }

    /// Everything that is to be told what happens from now on.
    pub(crate) fn figures(&mut self) -> impl Iterator<Item = &mut Figures> {
        std::iter::once(&mut *self.present).chain(self.best.as_deref_mut())
    }

    /// Accounts the time until `now`; `place` is where it runs, if it runs.
    #[inline]
    pub(crate) fn account(&mut self, now: u64, place: Option<Place>, tick: u64, levels: &Levels) {
        let dt = now - self.since;
        if dt == 0 {
            return;
        }
        let from = std::mem::replace(&mut self.since, now);
        if !matches!(self.doing, Doing::Waits | Doing::Runs(_)) {
            return;
        }
        if let Some(place) = &place {
            self.work += u128::from(dt) * u128::from(place.speed);
            let piece = u128::from(dt) * u128::from(place.power_uw);
            self.energy_fj = self.energy_fj.filter(|_| piece > 0).map(|all| all + piece);
        }
        let piece = Piece { from, dt, place, util: self.util, s_max: self.s_max, tick };
        self.present.add_to_burst(&piece);
        if let Some(watch) = &mut self.watch {
            watch.add(&piece);
        }
        if self.throttled && self.doing == Doing::Waits {
            self.throttled_ns += dt;
        }
        // Not by `figures()`: this is where the analysis spends its time.
        self.present.add(&piece, levels);
        if let Some(best) = &mut self.best {
            best.add(&piece, levels);
        }
        if self.best.as_ref().is_some_and(|b| b.running < self.present.running) {
            self.spare = self.best.take();
        }
    }

    /// How long its present activation has taken; `None`: it is not awake.
    pub(crate) fn awake_for(&self, now: u64) -> Option<u64> {
        matches!(self.doing, Doing::Waits | Doing::Runs(_)).then_some(now - self.woke)
    }

    /// Its reservation is used up, or it has its next instance; accounted until now.
    pub(crate) fn throttle(&mut self, on: bool) {
        self.throttled = on;
        self.throttles += u32::from(on);
    }

    /// It begins its event of this number; accounted until `now`.
    pub(crate) fn step(&mut self, now: u64, step: u64) {
        if step != self.position.step {
            self.position = Position { step, sleeps: 0 };
            if let Some(watch) = &mut self.watch {
                watch.steps(now, step);
            }
        }
    }

    /// What became of its reservation by `end`; `None`: it has none.
    /// `told`: the trace says when its runtime was used up.
    pub(crate) fn reservation(&self, end: u64, told: bool) -> Option<Reservation> {
        let period = self.period?;
        let unfinished = self.awake_for(end);
        Some(Reservation {
            unfinished_ms: unfinished.map(ms),
            due: unfinished.map_or(0, |ns| ns / period.max(1)),
            throttled: told.then_some((self.throttles, ms(self.throttled_ns))),
        })
    }

    /// It fell asleep; accounted until `now`.
    pub(crate) fn sleep(&mut self, now: u64) {
        self.doing = Doing::Sleeps(now);
        self.position.sleeps = self.position.sleeps.saturating_add(1);
        if let Some(watch) = &mut self.watch {
            watch.sleeps(now, self.position);
        }
        self.figures().for_each(|f| f.asleep(now));
    }

    /// It has exited; accounted until `now`.
    pub(crate) fn exit(&mut self, now: u64) {
        if self.doing != Doing::Gone {
            if let Some(watch) = &mut self.watch {
                watch.close(now, EndedBy::Exit);
            }
            self.position = self.position.awake();
            self.figures().for_each(|f| f.asleep(now));
            self.close(now, EndedBy::Exit);
            self.doing = Doing::Gone;
            self.gone = Some(now);
        }
    }

    /// It woke up, if it slept. True: a new burst begins.
    pub(crate) fn wake(&mut self, now: u64, levels: &Levels) -> bool {
        let Doing::Sleeps(asleep) = self.doing else {
            return false;
        };
        self.doing = Doing::Waits;
        (self.since, self.woke) = (now, now);
        self.woken = Some(now);
        if let Some(watch) = &mut self.watch {
            watch.wakes(now, self.position);
        }
        if now - asleep < SLEEP_NS {
            return false;
        }
        self.close(asleep, EndedBy::Sleep);
        self.flush_util(now, levels);
        let mut fresh = self.spare.take().unwrap_or_default();
        if self.present.curves.is_some() && fresh.curves.is_none() {
            fresh.curves = Some(Box::default());
        }
        fresh.restart(now);
        fresh.stretch.from = self.position;
        self.bursts += 1;
        let over = std::mem::replace(&mut self.present, fresh);
        // The earlier best is still here only if it has at least as much running time.
        match &self.best {
            None => self.best = Some(over),
            Some(_) => self.spare = Some(over),
        }
        if let Some((at, from, to, why)) = self.last_migration
            && at == now
        {
            self.present.migrated(at, from, to, why);
        }
        true
    }

    fn close(&mut self, end: u64, how: EndedBy) {
        self.present.close(end, how);
        self.present.stretch.to = self.position;
        if let Some(all) = &mut self.all {
            all.push(self.present.burst());
        }
    }

    /// It is now on `to`.
    pub(crate) fn migrate(&mut self, now: u64, to: CpuId, why: &'static str) {
        let from = std::mem::replace(&mut self.cpu, to);
        if from != to {
            self.last_migration = Some((now, from, to, why));
            self.figures().for_each(|f| f.migrated(now, from, to, why));
        }
    }

    /// util_avg is now `util`; accounted until `now`. Of several updates at the same time the
    /// last counts.
    pub(crate) fn set_util(&mut self, now: u64, util: u64, levels: &Levels) {
        self.flush_util(now, levels);
        self.util = Some(util);
        self.util_since = now;
    }
    /// Whether `util` would change anything.
    pub(crate) fn has_util(&self, util: u64) -> bool {
        self.util == Some(util)
    }

    /// Tells the figures about the util that was in force until `now`.
    fn flush_util(&mut self, now: u64, levels: &Levels) {
        if let Some(util) = self.util
            && now > self.util_since
        {
            // A burst that begins now never had it: a wakeup is traced before its PELT update.
            let since = self.util_since;
            let before = self.figures().filter(|f| f.t0 < now);
            before.for_each(|f| f.had_util(since, util, levels));
        }
    }

    /// Closes the run at `end`, until which it is accounted: the reported figures.
    pub(crate) fn finish(&mut self, end: u64, levels: &Levels) -> &mut Figures {
        match self.doing {
            Doing::Sleeps(asleep) if end - asleep >= SLEEP_NS => self.close(asleep, EndedBy::Sleep),
            Doing::Gone => {}
            doing => {
                if !matches!(doing, Doing::Sleeps(_)) {
                    self.position = self.position.awake();
                }
                self.close(end, EndedBy::RunEnd);
            }
        }
        // Also what was recorded at the very end.
        self.flush_util(end.max(self.util_since + 1), levels);
        self.best.as_mut().unwrap_or(&mut self.present)
    }
}
