//! Results of asking the simulator at each decision of a real kernel: how often both decide the
//! same.
//!
//! Only real choices count: at least two CPUs allowed, at least two tasks runnable, a request that changes the OPP on
//! either side. Beside stands how often a trivial decider is right: the previous CPU, whoever has waited longest.

use risetime_kernel::units::{Instant, Span};
use std::collections::BTreeMap;

/// A kind of decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// The CPU of a waking task (`select_task_rq`).
    Wakeup,
    /// The CPU of a new task.
    Fork,
    /// A frequency request.
    Frequency,
    /// The choice of the next task (`pick_next_task`).
    Pick,
    /// Whether a woken task preempts (`wakeup_preempt`).
    WakeupPreempt,
    /// Whether a tick ends a turn.
    TickPreempt,
    /// The idle state (`cpuidle_select`).
    Idle,
    /// A task that balancing moves: judged by [`Moves`], not by a [`Row`].
    Move,
}

impl Decision {
    /// The words that reports and JSON use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Decision::Wakeup => "wakeup CPU",
            Decision::Fork => "fork CPU",
            Decision::Frequency => "frequency request",
            Decision::Pick => "pick",
            Decision::WakeupPreempt => "preemption at wakeup",
            Decision::TickPreempt => "preemption at tick",
            Decision::Idle => "idle state",
            Decision::Move => "balancing move",
        }
    }
}

impl Decision {
    /// The share of real choices, in percent, that must be decided alike.
    pub const fn wanted(self) -> u64 {
        match self {
            Decision::Wakeup | Decision::Idle => 97,
            Decision::Fork => 93,
            Decision::Frequency => 99,
            Decision::Pick => 98,
            Decision::WakeupPreempt | Decision::TickPreempt => 97,
            Decision::Move => MOVES_WANTED,
        }
    }
}

/// Percentage of the moves by balancing: so many of the reference's are wanted here, and of those
/// wanted here made there.
pub const MOVES_WANTED: u64 = 85;

/// Decisions of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Number of decisions that the simulator was asked for.
    pub asked: u64,
    /// Number of those of which the reference tells what it decided.
    pub comparable: u64,
    /// Number of comparable ones in which there was a choice.
    pub real: u64,
    /// Number of real choices decided alike.
    pub agree: u64,
    /// Number of real choices in which the trivial decider was right.
    pub trivial: u64,
}

/// Moves by balancing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Made by the reference.
    pub given: u64,
    /// Number of given moves that the simulator wanted at that time.
    pub recalled: u64,
    /// Wanted by the simulator.
    pub own: u64,
    /// Number of own moves that the reference made at that time.
    pub precise: u64,
}

/// A value of the state, compared each time before the reference's was taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Name of the state.
    pub what: &'static str,
    /// Number of comparisons.
    pub compared: u64,
    /// Number of comparisons in which both were equal.
    pub equal: u64,
    /// Number of comparisons in which they were no further apart than an update a moment earlier or later explains.
    pub near: u64,
    /// Difference in all but one case of ten, in the value's own unit.
    pub p90: u64,
    /// Largest difference.
    pub most: u64,
}

/// Signals that are told whole, and the share of comparisons, in percent, in which each must be near what it is in the
/// reference; no other value is judged. 99: a number that one event sets. 95: what several set one after another; one
/// comparison in twenty may come between two. 90: a fair queue's, told in the middle of joining and leaving.
const SIGNALS: &[(&str, u64)] = &[
    ("cpu_capacity", 99),
    ("nr_balance_failed", 99),
    ("slice", 99),
    ("util_est at a look", 99),
    ("dl deadline", 95),
    ("dl runtime", 95),
    ("dl util_avg", 95),
    ("rt util_avg", 95),
    ("running_bw", 95),
    ("runnable_avg at a look", 95),
    ("task runnable_avg", 95),
    ("task util_avg", 95),
    ("task util_est", 95),
    ("util_avg at a look", 95),
    ("cfs_rq runnable_avg", 90),
    ("cfs_rq util_avg", 90),
    ("cfs_rq util_est", 90),
];

/// The bounds within which a share lies with 95 % confidence, in percent: Wilson's. `None`: of nothing.
pub fn bounds(n: u64, of: u64) -> Option<(f64, f64)> {
    const Z: f64 = 1.959_963_984_540_054;
    if of == 0 {
        return None;
    }
    let (n, of) = (n as f64, of as f64);
    let (share, all) = (n / of, 1.0 + Z * Z / of);
    let middle = (share + Z * Z / (2.0 * of)) / all;
    let half = Z / all * (share * (1.0 - share) / of + Z * Z / (4.0 * of * of)).sqrt();
    Some((100.0 * (middle - half).max(0.0), 100.0 * (middle + half).min(1.0)))
}

impl State {
    /// The share of comparisons, in percent, in which it must be near; `None`: it is not judged.
    pub fn wanted(&self) -> Option<u64> {
        SIGNALS.iter().find(|(what, _)| *what == self.what).map(|(_, share)| *share)
    }

    /// Whether it is near as often as it must be.
    pub fn holds(&self) -> bool {
        self.wanted().is_none_or(|wanted| 100 * self.near >= wanted * self.compared)
    }
}

/// Cause of a decision that differs, as far as can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The decision would be the same a moment earlier or later.
    Time,
    /// State that belongs to it was found off just before, and not all of it is told.
    State,
    /// The decision differs, and neither time nor state explains it.
    Reason,
}

impl Cause {
    /// The word that reports and JSON use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Cause::Time => "time",
            Cause::State => "state",
            Cause::Reason => "reason",
        }
    }
}

/// A decision that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Name of the experiment.
    pub experiment: String,
    /// Time of the decision.
    pub at: Instant,
    /// Kind of the decision.
    pub decision: Decision,
    /// About whom, and where.
    pub about: String,
    /// The decision here, and why.
    pub own: String,
    /// The decision of the recorded kernel.
    pub given: String,
    /// Cause of the difference.
    pub cause: Cause,
    /// The reason here.
    pub reason: String,
    /// Values with which the decision here would have been theirs.
    pub theirs: String,
}

/// Decisions that differ alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alike<'a> {
    /// Kind of the decision.
    pub decision: Decision,
    /// Cause of the differences.
    pub cause: Cause,
    /// The reason here.
    pub reason: &'a str,
    /// Values with which the decision here would have been theirs.
    pub theirs: &'a str,
}

/// An event around a decision that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Around {
    /// Time of the event.
    pub at: Instant,
    /// The event, in words.
    pub what: String,
}

/// Time before and after a decision that differs for which it is shown what happened.
pub const AROUND: Span = Span::from_us(2000);

/// All of one experiment, or of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stepped {
    /// Decisions by kind.
    pub rows: BTreeMap<Decision, Row>,
    /// Moves by balancing.
    pub moves: Moves,
    /// The state.
    pub states: Vec<State>,
    /// Decisions that differ, in their order.
    pub differences: Vec<Difference>,
    /// Events of the recorded kernel around the first difference.
    pub around: Vec<Around>,
    /// Number of times that the simulator's state had no room for what the reference did.
    pub lost: u64,
}

impl Row {
    /// Whether `percent` of the real choices were decided alike.
    pub fn holds(&self, percent: u64) -> bool {
        100 * self.agree >= percent * self.real
    }

    /// Adds the counts of another experiment.
    pub fn add(&mut self, other: &Row) {
        self.asked += other.asked;
        self.comparable += other.comparable;
        self.real += other.real;
        self.agree += other.agree;
        self.trivial += other.trivial;
    }
}

impl Stepped {
    /// Whether every kind of decision is alike, and every signal near, as often as it must be.
    pub fn holds(&self) -> bool {
        let moves = &self.moves;
        self.states.iter().all(State::holds)
            && self.rows.iter().all(|(decision, row)| row.holds(decision.wanted()))
            && 100 * moves.recalled >= MOVES_WANTED * moves.given
            && 100 * moves.precise >= MOVES_WANTED * moves.own
    }

    /// Decisions that differ, alike ones together, the most frequent of a kind first.
    pub fn grouped(&self) -> Vec<(Alike<'_>, usize)> {
        let mut found: BTreeMap<Alike<'_>, usize> = BTreeMap::new();
        for d in &self.differences {
            let (reason, theirs) = (d.reason.as_str(), d.theirs.as_str());
            let alike = Alike { decision: d.decision, cause: d.cause, reason, theirs };
            *found.entry(alike).or_default() += 1;
        }
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_by_key(|(alike, n)| (alike.decision, usize::MAX - n));
        found
    }

    /// Adds another experiment's results; of how far the state was off, the larger figures stand.
    pub fn add(&mut self, other: Stepped) {
        for (kind, row) in &other.rows {
            self.rows.entry(*kind).or_default().add(row);
        }
        self.moves.given += other.moves.given;
        self.moves.recalled += other.moves.recalled;
        self.moves.own += other.moves.own;
        self.moves.precise += other.moves.precise;
        self.lost += other.lost;
        if self.differences.is_empty() {
            self.around = other.around;
        }
        self.differences.extend(other.differences);
        for state in other.states {
            match self.states.iter_mut().find(|s| s.what == state.what) {
                Some(own) => {
                    own.compared += state.compared;
                    own.equal += state.equal;
                    own.near += state.near;
                    (own.p90, own.most) = (own.p90.max(state.p90), own.most.max(state.most));
                }
                None => self.states.push(state),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(what: &'static str, compared: u64, near: u64) -> State {
        State { what, compared, equal: near / 2, near, p90: 0, most: 700 }
    }

    #[test]
    fn a_state_that_differs_at_decisions_fails_though_every_decision_is_alike() {
        let alike = Row { asked: 250, comparable: 250, real: 250, agree: 250, trivial: 9 };
        let with = |states: Vec<State>| Stepped {
            rows: [(Decision::Frequency, alike)].into(),
            states,
            ..Stepped::default()
        };
        assert!(with(vec![state("running_bw", 250, 238)]).holds(), "95 of 100");
        assert!(!with(vec![state("running_bw", 250, 100)]).holds(), "40 of 100");
        assert!(!with(vec![state("cpu_capacity", 250, 240)]).holds(), "one event sets it");
        assert!(with(vec![state("menu intervals", 250, 1)]).holds(), "it is not judged");
        assert!(with(vec![state("running_bw", 0, 0)]).holds(), "nothing was compared");
    }

    #[test]
    fn every_signal_has_one_threshold() {
        let mut names: Vec<_> = SIGNALS.iter().map(|(what, _)| what).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SIGNALS.len());
        assert!(SIGNALS.iter().all(|(_, share)| (90..100).contains(share)));
    }

    /// 95 of 100: 88.8 to 97.8 % (Wilson 1927; any textbook's example).
    #[test]
    fn bounds_are_wilsons() {
        let near = |(low, high): (f64, f64), l: f64, h: f64| {
            (low - l).abs() < 0.05 && (high - h).abs() < 0.05
        };
        assert!(near(bounds(95, 100).expect("a share"), 88.8, 97.8));
        assert!(near(bounds(10, 10).expect("a share"), 72.2, 100.0));
        assert_eq!(bounds(0, 0), None);
    }
}
