//! A class in which tasks ask for shares of a CPU that may come to more than there is: one CPU of it.
//!
//! ```text
//!  ask      C of time in each T; share u = C / T          U    Σ u of those that count
//!  V        the class's clock:  dV = what the class could have had / U,  never ahead of real time
//!  request  C of time, eligible at e, due at d = e + T, both in V; used up: e = d, d += T
//!  pick     the earliest d of those with e ≤ V
//!  wakeup   keeps its request if what is left of it fits before d by its share; else e = V, d = V + T
//!  sleep    counts in U until V has come to d − left / u
//! ```
//!
//! Why one rule gives both. In any stretch of V from a to b, requests that become eligible at a or later and are due by b
//! come to at most Σ u (b − a) = U (b − a), by the rules for what is used up and for wakeups (those of the constant bandwidth
//! server). The CPU gave at least U (b − a) in that stretch, by what V is. So the earliest deadline first
//! has each request done by its d in V.
//!
//! - U ≤ 1: V keeps up with real time, V = t, and d is the deadline that was asked for: none is missed.
//! - U > 1, all of them always wanting to run: V goes at 1/U of real time. Each gets C in each T · U: its share divided by the sum, to
//!   within one C at any time, whatever the others ask for.
//!
//! Time that classes above take is no time that this one could have had: V stands still meanwhile, is behind real time,
//! and makes up for it while U < 1. How far it may be behind is limited to the longest T: what is older is forgotten.
//! What waits below has a request in the same queue, of `below` percent of what the CPU gives: u of it is p, or U p / (1 − p) where
//! that is more. So those below always have p where they want it, and none misses while Σ u ≤ 1 − p.
//!
//! An idea of OSPM 2023 (S. Rostedt: an overcommit scheduler, "which could be implemented as EEVDF"), of which no code is known. The rule
//! is ours; it is EEVDF (Stoica, Abdel-Wahab 1995) with a virtual clock that does not run ahead of the real one.

use crate::units::{Span, TaskId};
use alloc::vec::Vec;

/// A share of 1.
const UNIT: u64 = 1 << 32;
/// A speed of 1: capacity 1024 at the top frequency.
pub const FULL_SPEED: u64 = 1 << 20;
/// Overrun, in ns, for which no task is stopped; it is paid back.
const SLACK: u64 = 1000;
/// Period of the part of the classes below, if no other is given.
const BELOW_PERIOD: Span = Span(20_000_000);

/// Request of a task: `runtime` in each `period`, in time of a CPU of capacity 1024 at its top
/// frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// C.
    pub runtime: Span,
    /// T.
    pub period: Span,
}

impl Ask {
    /// The share C / T, 2³² = 1. Rounding: down.
    fn share(self) -> u64 {
        ((u128::from(self.runtime.0) << 32) / u128::from(self.period.0.max(1))) as u64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Queued or running.
    Wants,
    /// Asleep, with lag left: still counted.
    Lags,
    /// Asleep, and no longer counted.
    Away,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    ask: Ask,
    share: u64,
    /// Runtime left of the request, in ns.
    left: i64,
    eligible: u64,
    due: u64,
    state: State,
}

/// A request between two CPUs: its times are from the clock of the one that it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    request: Request,
    clock: u64,
}

impl Request {
    fn new(ask: Ask) -> Request {
        Request { ask, share: ask.share(), left: 0, eligible: 0, due: 0, state: State::Away }
    }
    fn begin(&mut self, v: u64) {
        (self.left, self.eligible) = (self.ask.runtime.0 as i64, v);
        self.due = v + self.ask.period.0;
    }
    fn use_up(&mut self, least: i64) {
        while self.left <= least {
            self.left += self.ask.runtime.0.max(1) as i64;
            self.eligible = self.due;
            self.due += self.ask.period.0;
        }
    }
    /// The time of zero lag, d − left / u: until then a sleeper counts.
    fn zero_lag(&self) -> u64 {
        let lag = i128::from(self.left) * i128::from(self.ask.period.0);
        (i128::from(self.due) - lag / i128::from(self.ask.runtime.0.max(1))).max(0) as u64
    }
    fn wake(&mut self, v: u64) {
        if self.state == State::Wants {
            return;
        }
        self.state = State::Wants;
        self.use_up(0);
        let fits = || {
            let left = i128::from(self.left) * i128::from(self.ask.period.0);
            left <= i128::from(self.due - v) * i128::from(self.ask.runtime.0)
        };
        if self.due <= v || (self.eligible <= v && !fits()) {
            self.begin(v);
        }
    }
    fn sleep(&mut self) {
        if self.state == State::Wants {
            self.use_up(0);
            self.state = State::Lags;
        }
    }
    fn is_eligible(&self, v: u64) -> bool {
        self.state == State::Wants && self.eligible <= v + SLACK
    }
}

/// The side whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// A task of the class.
    Task(TaskId),
    /// The classes below this one.
    Below,
}

/// Activity of the CPU, and its amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gave {
    /// The CPU ran for `ran` ns in this turn, and did what a CPU of full speed does in `done`.
    Turn(Turn, u64),
    /// The CPU idled, or ran classes below in time that no task of the class wanted.
    Spare(u64),
    /// The CPU ran a class above.
    Above,
}

/// The class on one CPU.
#[derive(Clone, Debug)]
pub struct Overcommit {
    tasks: Vec<(TaskId, Request)>,
    below: Request,
    percent: u64,
    /// V.
    clock: u64,
    /// Real time, less what is forgotten.
    real: u64,
    /// Rest of the last division.
    rest: u64,
    /// U, with those below.
    total: u64,
    /// U of tasks.
    own: u64,
}

impl Overcommit {
    /// A CPU's account without tasks. `percent`: the share of the classes below, clamped to 1..=90.
    pub fn new(percent: u32, now: u64) -> Overcommit {
        let mut class = Overcommit {
            tasks: Vec::new(),
            below: Request::new(Ask { runtime: Span(1), period: Span(1) }),
            percent: percent.clamp(1, 90).into(),
            clock: now,
            real: now,
            rest: 0,
            total: 0,
            own: 0,
        };
        class.recount();
        class
    }

    fn recount(&mut self) {
        let counts = |r: &Request| if r.state == State::Away { 0 } else { r.share };
        self.own = self.tasks.iter().map(|(_, r)| counts(r)).sum();
        let p = self.percent;
        self.below.share = (UNIT / 100 * p).max(self.own / (100 - p) * p);
        // Always as much at a time, so that they wait no longer where more is asked for.
        let runtime = BELOW_PERIOD.0 * p / 100;
        let period = (u128::from(runtime) << 32) / u128::from(self.below.share.max(1));
        self.below.ask = Ask { runtime: Span(runtime), period: Span(period as u64) };
        self.total = self.own + if self.own > 0 { counts(&self.below) } else { 0 };
    }

    fn get(&mut self, task: TaskId) -> Option<&mut Request> {
        self.tasks.iter_mut().find(|(t, _)| *t == task).map(|(_, r)| r)
    }

    /// Advances the clocks by `real` ns of real time, in which the CPU gave `gave`.
    pub fn advance(&mut self, real: u64, gave: Gave) {
        let supply = match gave {
            Gave::Turn(turn, done) => {
                let request = match turn {
                    Turn::Task(task) => self.get(task),
                    Turn::Below => Some(&mut self.below),
                };
                if let Some(request) = request {
                    request.left -= done as i64;
                    request.use_up(-(SLACK as i64));
                }
                done
            }
            Gave::Spare(time) => time,
            Gave::Above => 0,
        };
        self.real += real;
        if self.total == 0 {
            (self.clock, self.rest) = (self.real, 0);
            // The classes below may lag still; their lag counts only beside tasks of this class.
            self.let_go();
            return;
        }
        let (all, total) =
            ((u128::from(supply) << 32) + u128::from(self.rest), u128::from(self.total));
        let ahead = u128::from(self.clock) + all / total;
        if ahead >= u128::from(self.real) {
            (self.clock, self.rest) = (self.real, 0);
        } else {
            (self.clock, self.rest) = (ahead as u64, (all % total) as u64);
        }
        let longest = self.tasks.iter().map(|(_, r)| r.ask.period.0).max().unwrap_or(0);
        self.real = self.real.min(self.clock + longest);
        self.let_go();
    }

    /// Takes sleepers out of the count whose time of zero lag has passed.
    fn let_go(&mut self) {
        let clock = self.clock;
        let mut other = false;
        for r in self.tasks.iter_mut().map(|(_, r)| r).chain(Some(&mut self.below)) {
            if r.state == State::Lags && r.zero_lag() <= clock {
                (r.state, other) = (State::Away, true);
            }
        }
        if other {
            self.recount();
        }
    }

    /// Notes that a task of the class wants to run, new here or not, with what it asks for now.
    pub fn wake(&mut self, task: TaskId, ask: Ask) {
        let clock = self.clock;
        if self.get(task).is_none() {
            self.tasks.push((task, Request::new(ask)));
        }
        if let Some(r) = self.get(task) {
            if r.ask != ask {
                *r = Request { left: 0, due: 0, ..Request::new(ask) };
            }
            r.wake(clock);
        }
        self.recount();
    }

    /// Marks `task` as asleep: its request stops counting at its time of zero lag.
    pub fn sleep(&mut self, task: TaskId) {
        if let Some(r) = self.get(task) {
            r.sleep();
        }
        self.let_go();
    }

    /// Notes whether the classes below want to run.
    pub fn below_wants(&mut self, wants: bool) {
        let clock = self.clock;
        if wants == (self.below.state == State::Wants) {
            return;
        }
        if wants {
            self.below.wake(clock);
        } else {
            self.below.sleep();
        }
        self.recount();
        self.let_go();
    }

    /// Removes `task`, which leaves for another CPU or class; `None` if it is not here.
    pub fn leave(&mut self, task: TaskId) -> Option<Moved> {
        let at = self.tasks.iter().position(|(t, _)| *t == task)?;
        let (_, request) = self.tasks.remove(at);
        self.recount();
        Some(Moved { request, clock: self.clock })
    }

    /// Adds a task that comes from another CPU or class, asleep, its times moved to this clock;
    /// [`Overcommit::wake`] is next.
    pub fn join(&mut self, task: TaskId, Moved { mut request, clock }: Moved) {
        let here =
            |v: u64| (i128::from(v) - i128::from(clock) + i128::from(self.clock)).max(0) as u64;
        (request.eligible, request.due) = (here(request.eligible), here(request.due));
        if request.state == State::Wants {
            request.state = State::Lags;
        }
        self.tasks.push((task, request));
        self.recount();
    }

    /// Drops what `task` has left of its request, as a yield does.
    pub fn give_up(&mut self, task: TaskId) {
        if let Some(r) = self.get(task) {
            r.left = 0;
            r.use_up(0);
        }
    }

    /// The side whose turn it is now; on equal deadlines the one that runs (`runs`). `None`:
    /// neither a task nor the classes below are eligible.
    pub fn turn(&self, runs: Option<Turn>) -> Option<Turn> {
        let mut best: Option<(u64, Turn)> = None;
        let all = self.tasks.iter().map(|(t, r)| (Turn::Task(*t), r));
        for (turn, r) in all.chain(Some((Turn::Below, &self.below))) {
            if r.is_eligible(self.clock)
                && best.is_none_or(|(due, _)| r.due < due || (r.due == due && runs == Some(turn)))
            {
                best = Some((r.due, turn));
            }
        }
        best.map(|(_, turn)| turn)
    }

    /// The task whose turn it is if the classes below cannot take theirs.
    pub fn task_turn(&self) -> Option<TaskId> {
        let eligible = self.tasks.iter().filter(|(_, r)| r.is_eligible(self.clock));
        eligible.min_by_key(|(_, r)| r.due).map(|(t, _)| *t)
    }

    /// The ns until the turn may change, or a task may stop counting, if the CPU goes on as it
    /// does: `runs` is the side whose turn it takes (`None`: spare time), `speed` how fast it is.
    /// `None`: no change is ahead.
    pub fn next_change(&self, runs: Option<Turn>, speed: u64) -> Option<Span> {
        if self.tasks.is_empty() {
            return None;
        }
        let speed = speed.max(1);
        let over = runs.and_then(|turn| {
            let r = match turn {
                Turn::Task(task) => self.tasks.iter().find(|(t, _)| *t == task).map(|(_, r)| r)?,
                Turn::Below => &self.below,
            };
            let left = (r.left + SLACK as i64).max(0) as u128 * u128::from(FULL_SPEED);
            Some(left.div_ceil(speed.into()) as u64)
        });
        let rate = u128::from(if runs.is_some() { speed } else { FULL_SPEED });
        let until = |v: u64| {
            let way = u128::from(v.saturating_sub(self.clock)) * u128::from(self.total);
            let by_supply = way.div_ceil(rate << 12);
            u64::try_from(by_supply).unwrap_or(u64::MAX).max(v.saturating_sub(self.real))
        };
        let all = self.tasks.iter().map(|(_, r)| r).chain(Some(&self.below));
        let changes = all.filter_map(|r| match r.state {
            State::Wants if !r.is_eligible(self.clock) => Some(until(r.eligible)),
            State::Lags => Some(until(r.zero_lag())),
            _ => None,
        });
        // On a slow CPU a few ns come to no work at all, and the timer would expire for ever.
        changes.chain(over).min().map(|ns| Span(ns.max(SLACK)))
    }

    /// The bandwidth that the class's counting tasks ask for, 2²⁰ = a CPU of capacity 1024.
    pub fn asked_now(&self) -> u64 {
        self.own >> 12
    }
    /// The bandwidth that all tasks of the class here ask for, asleep or not, without `task`. 2²⁰ =
    /// a CPU of capacity 1024.
    pub fn asked_without(&self, task: TaskId) -> u64 {
        self.tasks.iter().filter(|(t, _)| *t != task).map(|(_, r)| r.share >> 12).sum()
    }
    /// Iterates over the tasks that want to run.
    pub fn wanting(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.tasks.iter().filter(|(_, r)| r.state == State::Wants).map(|(t, _)| *t)
    }
    /// The number of tasks that could run now.
    pub fn eligible(&self) -> usize {
        self.tasks.iter().filter(|(_, r)| r.is_eligible(self.clock)).count()
    }
    /// The time by which V is behind real time.
    pub fn behind(&self) -> Span {
        Span(self.real - self.clock)
    }
}

#[cfg(test)]
#[path = "overcommit/tests.rs"]
mod tests;
