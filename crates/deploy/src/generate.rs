//! Random sets of tasks, as experiments on schedulability draw them.
//!
//! ```text
//! utilisations  uunifast_discard   the sum left is shared out one task after another, uⁿ⁻ⁱ of it going on; drawn again if one is
//!                                  above 1             (Bini and Buttazzo 2005; Davis and Burns 2009)
//!               randfixedsum       a point of the cube [0, 1]ⁿ whose coordinates have that sum, all equally likely
//!                                                      (Stafford 2006; Emberson, Stafford and Davis 2010)
//! periods       log-uniform from a shortest to a longest one, in whole multiples of a step
//! ```
//!
//! The same seed gives the same set on every machine but for the last bit of `powf` and `ln`; runtimes are rounded to ns.

use crate::Task;
use crate::dice::Dice;
use risetime_kernel::units::Span;

/// Algorithm by which utilisations are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Utilisations {
    /// UUniFast, discarding sets with a task above 1.
    UunifastDiscard,
    /// Stafford's.
    Randfixedsum,
}

/// Range from which periods are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Periods {
    /// The shortest.
    pub from: Span,
    /// The longest.
    pub to: Span,
    /// Step: every period is a whole multiple of it.
    pub step: Span,
}

/// Parameters by which a set is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// Number of tasks.
    pub tasks: usize,
    /// Utilisation of all tasks together: 1 is a CPU of capacity 1024 at its highest frequency.
    pub utilisation: f64,
    /// Algorithm of the utilisations.
    pub by: Utilisations,
    /// Periods; deadlines are the same.
    pub periods: Periods,
}

/// UUniFast is given up after so many sets with a task above 1.
const TRIES: u32 = 10_000;

/// A set of tasks. `None`: there is none (so much of so few tasks), or none was found.
pub fn draw(what: &Drawn, seed: u64) -> Option<Vec<Task>> {
    let mut dice = Dice::new(seed);
    let (n, sum) = (what.tasks, what.utilisation);
    if n == 0 || !(sum > 0.0 && sum <= n as f64) {
        return None;
    }
    let shares = match what.by {
        Utilisations::UunifastDiscard => {
            let found = (0..TRIES).map(|_| uunifast(n, sum, &mut dice));
            found.into_iter().find(|all| all.iter().all(|u| *u <= 1.0))?
        }
        Utilisations::Randfixedsum => randfixedsum(n, sum, &mut dice),
    };
    let task = |(i, share): (usize, f64)| {
        let period = period(&what.periods, &mut dice);
        let work = Span(((period.0 as f64 * share).round() as u64).clamp(1, period.0));
        Task { name: format!("t{i}"), work, period, deadline: period }
    };
    Some(shares.into_iter().enumerate().map(task).collect())
}

pub(crate) fn uunifast(n: usize, sum: f64, dice: &mut Dice) -> Vec<f64> {
    let mut left = sum;
    let mut all = Vec::with_capacity(n);
    for i in 1..n {
        let next = left * dice.unit().powf(1.0 / (n - i) as f64);
        all.push(left - next);
        left = next;
    }
    all.push(left);
    all
}

/// The slice of the cube at `sum` is a union of simplices. `weight[i][j]`: the volume of those that lead, from `i`
/// coordinates still to choose, over `j` steps; `down[i][j]`: how likely the next step is one.
fn randfixedsum(n: usize, sum: f64, dice: &mut Dice) -> Vec<f64> {
    let whole = (sum.floor() as usize).min(n - 1);
    let sum = sum.clamp(whole as f64, whole as f64 + 1.0);
    let above = |i: usize| sum - (whole as f64 - i as f64);
    let below = |i: usize| (whole + n - i) as f64 - sum;
    let mut weight = vec![vec![0.0; n + 2]; n + 1];
    let mut down = vec![vec![0.0; n + 1]; n + 1];
    weight[1][1] = f64::MAX;
    for i in 2..=n {
        for j in 0..i {
            let stay = weight[i - 1][j + 1] * above(j) / i as f64;
            let step = weight[i - 1][j] * below(n - i + j) / i as f64;
            weight[i][j + 1] = stay + step;
            let total = weight[i][j + 1] + f64::MIN_POSITIVE;
            // The one of the two that is the smaller loses less.
            down[i][j] = match below(n - i + j) > above(j) {
                true => step / total,
                false => 1.0 - stay / total,
            };
        }
    }
    let (mut rest, mut j) = (sum, whole);
    let (mut so_far, mut scale) = (0.0, 1.0);
    let mut all = Vec::with_capacity(n);
    for i in (1..n).rev() {
        let step = dice.unit() <= down[i + 1][j];
        let e = if step { 1.0 } else { 0.0 };
        let shrink = dice.unit().powf(1.0 / i as f64);
        so_far += (1.0 - shrink) * scale * rest / (i + 1) as f64;
        scale *= shrink;
        all.push(so_far + scale * e);
        rest -= e;
        j = if step { j.saturating_sub(1) } else { j };
    }
    all.push(so_far + scale * rest);
    for i in (1..n).rev() {
        all.swap(i, dice.below(i as u64 + 1) as usize);
    }
    all
}

fn period(of: &Periods, dice: &mut Dice) -> Span {
    let step = of.step.0.max(1);
    let (from, to) = (of.from.0.max(step) as f64, of.to.0.max(of.from.0).max(step) as f64);
    // A step more at the top, so that the longest one is as likely as its neighbours.
    let drawn = (from.ln() + dice.unit() * ((to + step as f64).ln() - from.ln())).exp() as u64;
    Span((drawn / step * step).clamp(from as u64, to as u64).max(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIODS: Periods =
        Periods { from: Span(10_000_000), to: Span(1_000_000_000), step: Span(1_000_000) };

    fn drawn(by: Utilisations, tasks: usize, utilisation: f64) -> Drawn {
        Drawn { tasks, utilisation, by, periods: PERIODS }
    }

    /// Utilisations of many sets.
    fn shares(what: &Drawn, sets: u64) -> Vec<Vec<f64>> {
        let of = |t: &Task| t.work.0 as f64 / t.period.0 as f64;
        (0..sets).map(|s| draw(what, s).expect("there is one").iter().map(of).collect()).collect()
    }

    #[test]
    fn sums_and_bounds_hold() {
        for by in [Utilisations::UunifastDiscard, Utilisations::Randfixedsum] {
            for (n, sum) in [(1, 0.4), (2, 1.3), (5, 0.9), (5, 2.5), (20, 6.0)] {
                for all in shares(&drawn(by, n, sum), 200) {
                    let found: f64 = all.iter().sum();
                    assert!((found - sum).abs() < 1e-6 * n as f64, "{by:?} {n}: {found}, {sum}");
                    assert!(all.iter().all(|u| (0.0..=1.0 + 1e-9).contains(u)), "{by:?} {all:?}");
                }
            }
        }
        // UUniFast cannot: nearly every set has one above 1.
        let many = shares(&drawn(Utilisations::Randfixedsum, 10, 9.5), 200);
        assert!(many.iter().flatten().all(|u| *u <= 1.0 + 1e-9));
        assert!(draw(&drawn(Utilisations::Randfixedsum, 3, 3.1), 1).is_none());
    }

    /// Both draw the same distribution, where none is above 1: uniform over the simplex, of which each coordinate is below x
    /// with probability 1 − (1 − x/s)ⁿ⁻¹.
    #[test]
    fn coordinates_are_spread_as_in_a_simplex() {
        let (n, s, sets) = (4usize, 0.9, 20_000u64);
        for by in [Utilisations::UunifastDiscard, Utilisations::Randfixedsum] {
            let all = shares(&drawn(by, n, s), sets);
            for place in 0..n {
                for x in [0.1, 0.225, 0.5] {
                    let below = all.iter().filter(|u| u[place] < x).count() as f64 / sets as f64;
                    let wanted = 1.0 - (1.0f64 - x / s).powi(n as i32 - 1);
                    assert!(
                        (below - wanted).abs() < 0.015,
                        "{by:?} {place} {x}: {below}, {wanted}"
                    );
                }
            }
        }
    }

    /// Of two with a sum of 1.2, each is uniform from 0.2 to 1.
    #[test]
    fn above_one_the_cube_cuts_the_simplex() {
        for by in [Utilisations::UunifastDiscard, Utilisations::Randfixedsum] {
            let all = shares(&drawn(by, 2, 1.2), 20_000);
            for x in [0.3, 0.5, 0.9] {
                let below = all.iter().filter(|u| u[0] < x).count() as f64 / 20_000.0;
                assert!((below - (x - 0.2) / 0.8).abs() < 0.015, "{by:?} {x}: {below}");
            }
        }
    }

    #[test]
    fn periods_are_even_in_their_logarithm() {
        let what = drawn(Utilisations::Randfixedsum, 10, 1.0);
        let mut all: Vec<u64> =
            (0..2000).flat_map(|s| draw(&what, s).expect("one")).map(|t| t.period.0).collect();
        assert!(all.iter().all(|p| p % 1_000_000 == 0 && (10_000_000..=1_000_000_000).contains(p)));
        all.sort_unstable();
        let middle = all[all.len() / 2] as f64;
        assert!(
            (middle / 1e8 - 1.0).abs() < 0.05,
            "the geometric mean of 10 and 1000 ms: {middle}"
        );
        assert_eq!(draw(&what, 7), draw(&what, 7));
        assert_ne!(draw(&what, 7), draw(&what, 8));
    }
}
