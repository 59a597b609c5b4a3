//! One task: what it does, since when, and the figures of its bursts.
//!
//! ```text
//!   burst   = [t0, end): t0 a creation, or a wakeup after ≥ 4.5 ms asleep;
//!             end where such a sleep begins, at exit, or at the run's end
//! ```
//!
//! A run that ends less than 4.5 ms into a sleep ends the burst (`run_end`): how long the
//! sleep would have been is not known.

use crate::figures::{Figures, Levels, Piece, Sums};
use crate::lost::{Debt, Most, ONE, Place, State};
use crate::machine::{Machine, energy, ms};
use crate::result::{Burst, EndedBy, Migration, Reservation, Throttled};
use crate::stretch::{Position, Watch};
use risetime_kernel::units::{CpuId, TaskId};
use risetime_model::workload::Policy;
use risetime_trace::tracker::{Doing, Task as Followed};

/// A sleep of at least this many ns ends a burst.
pub(crate) const SLEEP_NS: u64 = 4_500_000;

/// The figures of a task of the workload. In memory in this order: first what each piece of time changes; of a server's tasks
/// not all fits into a cache.
#[repr(C, align(64))]
pub(crate) struct Task {
    /// Everything before is accounted.
    since: u64,
    /// Place of the task among the tracker's.
    pub(crate) place: usize,
    util: Option<u64>,
    /// The energy of the CPUs while the task ran, until it was last accounted, in 10⁻¹⁵ J; `None`:
    /// it ran where the power is unknown.
    pub(crate) energy: Option<u128>,
    /// Time by which the task has taken longer so far than at full speed, in ns on the scale of
    /// [`ONE`], and by its last wakeup.
    longer: u128,
    longer_at_wake: u128,
    pub(crate) most: Most,
    util_since: u64,
    present: Box<Figures>,
    /// The best of the earlier bursts.
    best: Option<Box<Figures>>,
    /// A stretch of it that is looked for.
    pub(crate) watch: Option<Box<Watch>>,
    /// The period of its reservation, while it is a deadline task.
    period: Option<u64>,
    pub(crate) id: TaskId,
    pub(crate) bursts: u32,
    /// The task's group among [`Groups`](crate::latency::Groups).
    pub(crate) group: usize,
    /// State in which waiting for a CPU is lost while the task is not throttled.
    pub(crate) waits: State,
    /// True once its present burst is closed, although it may go on: events were lost.
    cut: bool,
    /// Whether anybody wants to hear the news.
    pub(crate) listed: bool,
    /// Position of the task in its program, as far as the trace says.
    position: Position,
    /// Begin of the present activation, as position in the program.
    woke_at: Position,
    /// A change of CPU while it slept: of the burst that begins with its wakeup, if that comes at the same time.
    asleep_moved: Option<Moved>,
    /// Sums of the bursts that are over.
    pub(crate) whole: Sums,
    /// Time by which they took longer than at full speed, by state.
    pub(crate) whole_longer: Debt,
    pub(crate) comm: String,
    /// The policies it ran under, once it had another one than SCHED_OTHER.
    pub(crate) policies: Vec<Policy>,
    /// Number of times that the reservation was used up, and time for which the task waited for the
    /// next period's runtime.
    throttles: u32,
    throttled_ns: u64,
    /// … of which this time, and the longest.
    throttled_now: u64,
    throttled_longest: u64,
    /// News that are not listed yet.
    pub(crate) news: Vec<News>,
}

/// A piece of news about a task.
pub(crate) enum News {
    /// The task has had this burst.
    Burst(Burst),
    /// The task has changed its CPU.
    Migration(Migration),
}

/// A change of CPU: when, from where to where, the kinds of both, why.
type Moved = (u64, (CpuId, CpuId), (usize, usize), &'static str);

impl Task {
    /// A task that became runnable at `now`. `curves`: keep a timeline.
    pub(crate) fn new(place: usize, of: &Followed, most: Most, curves: bool) -> Task {
        let now = of.created;
        let mut present = Box::new(Figures::default());
        if curves {
            present.curves = Some(Box::default());
        }
        present.restart(now);
        Task {
            place,
            id: of.id,
            comm: of.comm.into(),
            most,
            bursts: 1,
            group: 0,
            policies: Vec::new(),
            period: None,
            waits: State::WaitingForCpu,
            throttles: 0,
            throttled_ns: 0,
            throttled_now: 0,
            throttled_longest: 0,
            position: Position::default(),
            watch: None,
            woke_at: Position::default(),
            cut: false,
            longer: 0,
            longer_at_wake: 0,
            energy: Some(0),
            whole: Sums::default(),
            whole_longer: Debt::default(),
            since: now,
            util: None,
            util_since: now,
            asleep_moved: None,
            listed: false,
            news: Vec::new(),
            present,
            best: None,
        }
    }

    /// Sets the policy that the task is under from now on. The one it was created with, if it took
    /// it off again before it had run for some time, does not count: a thread asks for its policy
    /// itself, and needs some µs for that.
    pub(crate) fn set_policy(&mut self, now: u64, first_ran: Option<u64>, policy: Policy) {
        /// A task may change its parameters without end.
        const MANY: usize = 8;
        const SOME_TIME: u64 = 1_000_000;
        self.period = match policy {
            Policy::Deadline { period, .. } => Some(period.0),
            _ => None,
        };
        let ran = first_ran.is_some_and(|at| now - at >= SOME_TIME);
        if !ran {
            self.policies.clear();
        } else if self.policies.is_empty() {
            self.policies.push(Policy::Other { slice: None });
        }
        if !self.policies.contains(&policy) && self.policies.len() < MANY {
            self.policies.push(policy);
        }
    }

    /// Iterates over the figures that are to be told what happens from now on.
    pub(crate) fn figures(&mut self) -> impl Iterator<Item = &mut Figures> {
        std::iter::once(&mut *self.present).chain(self.best.as_deref_mut())
    }

    /// Whether all the time until `now` is accounted.
    #[inline]
    pub(crate) fn is_accounted(&self, now: u64) -> bool {
        self.since == now
    }

    /// Accounts the time until `now`, which is later than what is accounted, of a task that `of` tells of; `place` is where it
    /// runs, if it runs.
    #[inline]
    pub(crate) fn account(
        &mut self,
        (now, tick): (u64, u64),
        of: &Followed,
        place: Option<Place>,
        levels: &Levels,
    ) {
        let dt = now - self.since;
        let from = std::mem::replace(&mut self.since, now);
        if !of.doing.is_awake() {
            return;
        }
        let speed = place.map_or(0, |place| place.speed);
        if let Some(place) = place {
            let more = energy(dt, place.power_uw);
            self.energy = self.energy.zip(more).map(|(all, more)| all + more);
        }
        self.longer += u128::from(dt) * u128::from(ONE.saturating_sub(speed));
        let piece = Piece {
            from,
            dt,
            place,
            util: self.util,
            most: self.most,
            waits: if of.throttled { State::Throttled } else { self.waits },
            reserved: self.period.is_some(),
            tick,
        };
        self.present.add_to_burst(&piece);
        if let Some(watch) = &mut self.watch {
            watch.add(&piece);
        }
        if of.throttled && of.doing == Doing::Waits {
            self.throttled_ns += dt;
            self.throttled_now += dt;
            self.throttled_longest = self.throttled_longest.max(self.throttled_now);
        }
        self.present.add(&piece, levels);
        if self.present.curves.is_some() {
            self.figures().for_each(|f| f.draw(&piece));
        }
    }

    /// Counts `ns` at `speed` under `key` as run without getting on.
    pub(crate) fn stolen(&mut self, key: u32, ns: u64, speed: u64) {
        self.longer += u128::from(ns) * u128::from(speed);
        self.present.stolen(key, ns, speed);
        if let Some(watch) = &mut self.watch {
            watch.stolen(key, ns, speed);
        }
    }

    /// The time by which the present activation is longer than at full speed, in ns.
    pub(crate) fn longer_awake(&self) -> u64 {
        ((self.longer - self.longer_at_wake) / u128::from(ONE)) as u64
    }

    /// The time by which all that the task did took longer than at full speed, until it was last
    /// accounted, in ns on the scale of [`ONE`].
    pub(crate) fn longer(&self) -> u128 {
        self.longer
    }

    /// A number for where in its program its present activation began.
    pub(crate) fn woke_at(&self) -> u64 {
        /// An event has fewer sleeps.
        const SLEEPS: u32 = 16;
        (self.woke_at.step << SLEEPS) + u64::from(self.woke_at.sleeps.min((1 << SLEEPS) - 1))
    }

    /// Notes that the task's reservation is used up (`on`), or that it has its next instance;
    /// accounted until now.
    pub(crate) fn throttle(&mut self, on: bool) {
        self.throttled_now = 0;
        self.throttles += u32::from(on);
    }

    /// Notes that the task begins its event of this number; accounted until `now`.
    pub(crate) fn step(&mut self, now: u64, step: u64) {
        if step != self.position.step {
            self.position = Position { step, sleeps: 0 };
            if let Some(watch) = &mut self.watch {
                watch.steps(now, step);
            }
        }
    }

    /// The state of the task's reservation by `end`; `None`: it has none. `told`: the trace says
    /// when its runtime was used up.
    pub(crate) fn reservation(&self, of: &Followed, end: u64, told: bool) -> Option<Reservation> {
        let period = self.period?;
        let unfinished = of.awake_for(end);
        Some(Reservation {
            unfinished_ms: unfinished.map(ms),
            due: unfinished.map_or(0, |ns| ns / period.max(1)),
            throttled: told.then_some(Throttled {
                n: self.throttles,
                ms: ms(self.throttled_ns),
                longest_ms: ms(self.throttled_longest),
                replenished: self.throttles - u32::from(of.throttled),
            }),
        })
    }

    /// Notes that the task fell asleep; accounted until `now`.
    pub(crate) fn sleep(&mut self, now: u64) {
        self.position.sleeps = self.position.sleeps.saturating_add(1);
        if let Some(watch) = &mut self.watch {
            watch.sleeps(now, self.position);
        }
        if self.present.curves.is_some() {
            self.figures().for_each(|f| f.asleep(now));
        }
    }

    /// Notes that the task has exited, which it had not; accounted until `now`.
    pub(crate) fn exit(&mut self, now: u64) {
        if let Some(watch) = &mut self.watch {
            watch.close(now, EndedBy::Exit);
        }
        self.position = self.position.awake();
        self.figures().for_each(|f| f.asleep(now));
        if !self.cut {
            self.close(now, EndedBy::Exit);
        }
    }

    /// Notes that nothing is known of the task from `now` on, until which it is accounted; `of`: what it did, and since when.
    pub(crate) fn lose(&mut self, now: u64, (doing, since): (Doing, u64)) {
        let asleep = doing == Doing::Sleeps;
        match asleep && now - since >= SLEEP_NS {
            true => self.close(since, EndedBy::Sleep),
            false => self.close(now, EndedBy::RunEnd),
        }
        if let Some(watch) = &mut self.watch {
            watch.close(now, EndedBy::RunEnd);
        }
        self.cut = true;
        if self.present.curves.is_some() {
            self.figures().for_each(|f| f.asleep(now));
        }
    }

    /// Notes that the task, which has just been made, was there before: its first burst begins when it is first seen to run or wake.
    pub(crate) fn was_there(&mut self) {
        self.cut = true;
        self.bursts = 0;
    }

    /// Notes that the task woke up from what it did before, since when; until `now` it is accounted. True: a new burst begins.
    pub(crate) fn wake(&mut self, now: u64, from: (Doing, u64), levels: &Levels) -> bool {
        self.longer_at_wake = self.longer;
        self.woke_at = self.position;
        if let Some(watch) = &mut self.watch {
            watch.wakes(now, self.position);
        }
        let asleep = from.1;
        let new = self.cut || now - asleep >= SLEEP_NS;
        let moved = self.asleep_moved.take();
        // A CPU may be told of before the wakeup that it belongs to.
        let (of_new, of_old) = match moved {
            Some(moved) if new && moved.0 == now => (Some(moved), None),
            moved => (None, moved),
        };
        of_old.into_iter().for_each(|moved| self.moved(moved));
        if !new {
            return false;
        }
        if !std::mem::take(&mut self.cut) {
            self.close(asleep, EndedBy::Sleep);
        }
        self.flush_util(now, levels);
        self.keep();
        let drawn = self.best.as_ref().is_some_and(|best| best.curves.is_some());
        if drawn && self.present.curves.is_none() {
            self.present.curves = Some(Box::default());
        }
        self.present.restart(now);
        self.present.stretch.from = self.position;
        self.bursts += 1;
        of_new.into_iter().for_each(|moved| self.moved(moved));
        true
    }

    fn moved(&mut self, (at, cpus, kinds, why): Moved) {
        self.present.migrated(at, cpus, kinds, why);
    }

    /// Closes the present burst: adds it to the sums, and keeps it if none was better.
    fn keep(&mut self) {
        self.present.cut();
        self.whole.absorb(&self.present.sums);
        self.present.add_longer(&mut self.whole_longer);
        match &mut self.best {
            Some(best) if best.running >= self.present.running => {}
            Some(best) => std::mem::swap(best, &mut self.present),
            None => self.best = Some(std::mem::take(&mut self.present)),
        }
    }

    fn close(&mut self, end: u64, how: EndedBy) {
        self.present.close(end, how);
        self.present.stretch.to = self.position;
        if self.listed {
            self.news.push(News::Burst(self.present.burst()));
        }
    }

    /// Notes that the task went from one CPU to another, asleep or not.
    pub(crate) fn migrate(
        &mut self,
        now: u64,
        (from, to): (CpuId, CpuId),
        asleep: bool,
        why: &'static str,
        machine: &Machine,
    ) {
        if self.listed {
            self.news.push(News::Migration(Migration { at_ms: ms(now), from, to, why }));
        }
        let moved = (now, (from, to), (machine.kind(from), machine.kind(to)), why);
        let earlier = match asleep {
            true => self.asleep_moved.replace(moved),
            false => Some(moved),
        };
        earlier.into_iter().for_each(|moved| self.moved(moved));
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
            if self.present.t0 < now {
                self.present.had_util(since, util, levels);
            }
            if self.present.curves.is_some() {
                let before = self.figures().filter(|f| f.t0 < now);
                before.for_each(|f| f.draw_util(since, util));
            }
        }
    }

    /// Closes the run at `end`, until which the task is accounted that `of` tells of.
    pub(crate) fn finish(&mut self, of: &Followed, end: u64, levels: &Levels) {
        match of.doing {
            Doing::Sleeps if end - of.since >= SLEEP_NS => self.close(of.since, EndedBy::Sleep),
            Doing::Gone => {}
            _ if self.cut => {}
            doing => {
                if doing != Doing::Sleeps {
                    self.position = self.position.awake();
                }
                self.close(end, EndedBy::RunEnd);
            }
        }
        // Also what was recorded at the very end.
        self.flush_util(end.max(self.util_since + 1), levels);
        self.asleep_moved.take().into_iter().for_each(|moved| self.moved(moved));
        self.keep();
    }

    /// The reported burst, once the run is closed.
    pub(crate) fn reported(&mut self) -> &mut Figures {
        self.best.get_or_insert_default()
    }
}
