//! The account between SCHED_HIGH and the fair class below it: who is owed how much of one CPU.
//!
//! ```text
//!  s       share of the fair class, in %                      t   how long a turn of it is
//!  owed    += s · δ            a task of SCHED_HIGH ran for δ while a fair one waited
//!          −= (100 − s) · δ    a fair task ran for δ in the class's turn, or while one of SCHED_HIGH waited
//!                              (a deadline server may let it in); no less than one turn ahead
//!  turn    begins where owed ≥ (100 − s) · t, ends where owed ≤ 0
//! ```
//!
//! So a turn lasts t, one comes after every t · (100 − s) / s of SCHED_HIGH, and over any number of whole rounds fair
//! tasks that always wait have s % of what the two classes ran together. What runs above both (real-time, deadline
//! and stop tasks, interrupts) is nobody's: it neither ends a turn nor brings the next one nearer. An account of wall
//! time would: a real-time task that holds the CPU through a turn would have used it up. What is run too long, because
//! somebody looks at ticks only, is carried over.
//!
//! The class is a proof of concept shown at OSPM 2023 (S. Rostedt). Of it only the idea is public: between real-time
//! and SCHED_OTHER, priorities and time slices of its own, SCHED_OTHER does not starve. The rule above is ours.

use crate::units::Span;

/// The account of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HighAccount {
    /// Share in %, from 1 to 99.
    share: u32,
    turn: Span,
    /// Hundredths of ns of the fair class.
    owed: i64,
    /// The fair class goes first.
    fair_turn: bool,
}

impl HighAccount {
    /// An account in which neither side is owed time. `share`: in %, clamped to 1..=99.
    pub fn new(share: u32, turn: Span) -> HighAccount {
        HighAccount { share: share.clamp(1, 99), turn, owed: 0, fair_turn: false }
    }

    /// Whether a fair task that waits comes before those of SCHED_HIGH.
    pub fn fair_turn(&self) -> bool {
        self.fair_turn
    }

    /// A task of SCHED_HIGH ran for `ran` while a fair one waited.
    pub fn high_ran(&mut self, ran: Span) {
        self.owed = self.owed.saturating_add(hundredths(ran, self.share));
        if self.owed >= hundredths(self.turn, 100 - self.share) {
            self.fair_turn = true;
        }
    }

    /// A fair task ran for `ran`; `high_waits`: while one of SCHED_HIGH waited. Else, and outside its turn, it takes
    /// nothing from anybody.
    pub fn fair_ran(&mut self, ran: Span, high_waits: bool) {
        if !self.fair_turn && !high_waits {
            return;
        }
        let least = -hundredths(self.turn, 100 - self.share);
        self.owed = self.owed.saturating_sub(hundredths(ran, 100 - self.share)).max(least);
        self.fair_turn = self.owed > 0;
    }
}

/// `percent` of a time, in hundredths of ns.
fn hundredths(span: Span, percent: u32) -> i64 {
    i64::try_from(span.0.saturating_mul(u64::from(percent))).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Runs `slots` slots of `ns` in which both sides always want to run, and returns the times of
    /// (fair, high).
    fn shares(share: u32, turn: Span, ns: impl Fn(u64) -> u64, slots: u64) -> (u64, u64) {
        let mut account = HighAccount::new(share, turn);
        let (mut fair, mut high) = (0, 0);
        for i in 0..slots {
            let ran = ns(i);
            if account.fair_turn() {
                account.fair_ran(Span(ran), true);
                fair += ran;
            } else {
                account.high_ran(Span(ran));
                high += ran;
            }
        }
        (fair, high)
    }

    #[test]
    fn the_fair_class_has_its_share_however_seldom_somebody_looks() {
        for share in [1, 5, 10, 25, 50, 90, 99] {
            for step in [10_000, MS, 4 * MS, 7_777_777] {
                let (fair, high) = shares(share, Span(4 * MS), |i| step + i % 3 * 1000, 400_000);
                let found = fair * 1000 / (fair + high);
                let wanted = u64::from(share) * 10;
                assert!(found.abs_diff(wanted) <= 1, "{share} %, {step}: {found} of {wanted} ‰");
            }
        }
    }

    #[test]
    fn a_turn_lasts_as_long_as_said_and_comes_as_often() {
        let mut account = HighAccount::new(10, Span(4 * MS));
        let mut waited = 0;
        while !account.fair_turn() {
            account.high_ran(Span(1000));
            waited += 1000;
        }
        assert_eq!(waited, 36 * MS);
        account.fair_ran(Span(4 * MS - 1), true);
        assert!(account.fair_turn());
        account.fair_ran(Span(1), true);
        assert!(!account.fair_turn());
    }

    #[test]
    fn what_fair_tasks_run_while_nobody_else_wants_to_counts_for_nothing() {
        let mut account = HighAccount::new(10, Span(4 * MS));
        account.fair_ran(Span(1_000_000 * MS), false);
        account.high_ran(Span(36 * MS));
        assert!(account.fair_turn());
    }

    #[test]
    fn what_a_server_gives_them_is_theirs_already_up_to_a_turn() {
        let mut account = HighAccount::new(10, Span(4 * MS));
        account.fair_ran(Span(2 * MS), true);
        account.high_ran(Span(53 * MS));
        assert!(!account.fair_turn());
        account.high_ran(Span(MS));
        assert!(account.fair_turn());
        account.fair_ran(Span(1000 * MS), true);
        account.high_ran(Span(72 * MS - 1));
        assert!(!account.fair_turn());
        account.high_ran(Span(1));
        assert!(account.fair_turn());
    }

    #[test]
    fn no_time_is_too_long() {
        let mut account = HighAccount::new(99, Span(u64::MAX));
        account.high_ran(Span(u64::MAX));
        account.high_ran(Span(u64::MAX));
        assert!(account.fair_turn());
        account.fair_ran(Span(u64::MAX), true);
        account.fair_ran(Span(u64::MAX), true);
    }
}
