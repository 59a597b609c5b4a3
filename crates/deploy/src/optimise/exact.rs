//! Every deployment, but for those that cannot be the least: branch and bound over OPPs and places.
//!
//! ```text
//! OPPs of all domains, those first that need the least power ([`super::price`])   ── least ≥ best: it is done
//!   places of the nodes at these OPPs ([`super::tree`])
//! ```
//!
//! It begins with what [`mod@super::descent`] finds. Exact up to what rounding of deadlines to µs costs: the model has a µs for it at
//! each node.

use super::deadlines::{Until, spread_until};
use super::descent::{downhill, slacker};
use super::solve::{Solver, solve};
use super::tree::{Aim, Tree, opps};
use super::{Config, Effort, Ended, Found, Objective, Problem};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Places and OPPs, what is known of all others, and of the search.
pub(super) struct Searched {
    pub(super) config: Option<Config>,
    /// No deployment takes less.
    pub(super) bound_nw: u64,
    /// None has a smaller λ, where that was looked for.
    pub(super) bound: f64,
    pub(super) ended: Ended,
    /// Steps that are left.
    pub(super) left: u64,
}

/// The best deployment that is found with that effort for each objective, beside that of `descent`.
pub fn exact(p: &Problem, objective: Objective, effort: Effort<'_>) -> (Option<Found>, Ended) {
    let (found, ended) = solve(std::slice::from_ref(p), objective, Solver::Exact, effort);
    (found.map(|(_, found)| found), ended)
}

/// The least power.
pub(super) fn least(p: &Problem, effort: Effort<'_>) -> Searched {
    let mut tree = Tree::new(p, downhill(p, effort.stop), effort);
    let bound_nw = run(p, &mut tree).0.max(p.base_nw).min(tree.power);
    let (ended, left) = (tree.ended(), tree.cuts.work);
    Searched { config: tree.best, bound_nw, bound: 0.0, ended, left }
}

/// The least λ with no more than so many nW, from there on.
pub(super) fn slackest(p: &Problem, from: Config, most_nw: u64, effort: Effort<'_>) -> Searched {
    let best = slacker(p, from, most_nw, effort.stop);
    let mut tree = Tree::new(p, Some(best.clone()), effort);
    tree.aim = Aim::Slack(most_nw);
    tree.lambda = spread_until(p, &best, Until::Below(f64::INFINITY)).map_or(2.0, |s| s.lambda);
    let (_, bound) = run(p, &mut tree);
    let (ended, left) = (tree.ended(), tree.cuts.work);
    Searched { config: tree.best, bound_nw: 0, bound, ended, left }
}

/// Searches all OPPs, those first that need the least power by what is known. Returns the power
/// that no deployment is below, and the λ.
fn run(p: &Problem, tree: &mut Tree<'_>) -> (u64, f64) {
    let Some(all) = opps(p) else {
        tree.cuts.work = 0;
        return (0, 0.0);
    };
    // Whoever comes up for the first time is priced, and comes up again by that.
    let mut open: BinaryHeap<Reverse<(u64, bool, Vec<usize>)>> =
        all.into_iter().map(|(nw, opp)| Reverse((nw, false, opp))).collect();
    while let Some(Reverse((nw, priced, opp))) = open.pop() {
        if tree.hopeless(nw) {
            break;
        }
        if tree.cuts.work == 0 {
            open.push(Reverse((nw, priced, opp)));
            return left_open(tree, nw, open);
        }
        if !priced {
            if let Some(bound) = tree.price(&opp) {
                open.push(Reverse((bound.max(nw), true, opp)));
            }
            continue;
        }
        tree.search(&opp);
        if tree.cuts.work == 0 {
            open.push(Reverse((nw, priced, opp)));
            return left_open(tree, nw, open);
        }
    }
    (tree.power, tree.lambda)
}

/// Number of OPPs that are priced, and again of those asked for their least λ, where a search has
/// ended: some 10 ms.
const KNOWN: usize = 200;

/// The bounds where these OPPs have not been searched to the end, `nw` being the least power of the
/// first of them.
fn left_open(
    tree: &mut Tree<'_>,
    nw: u64,
    mut open: BinaryHeap<Reverse<(u64, bool, Vec<usize>)>>,
) -> (u64, f64) {
    let Aim::Slack(most) = tree.aim else {
        let mut least = nw;
        for _ in 0..KNOWN {
            let Some(Reverse((nw, priced, opp))) = open.pop() else { return (tree.power, 0.0) };
            least = nw.min(tree.power);
            if priced || nw >= tree.power {
                break;
            }
            if let Some(bound) = tree.price(&opp) {
                open.push(Reverse((bound.max(nw), true, opp)));
            }
        }
        return (least, 0.0);
    };
    // By λ, in 10⁻⁹; the least first, by flows alone until it comes up.
    let of = |lambda: f64| (lambda * 1e9) as u64;
    let mut by: BinaryHeap<Reverse<(u64, bool, Vec<usize>)>> = (open.into_iter())
        .filter(|Reverse((nw, ..))| *nw <= most)
        .map(|Reverse((_, _, opp))| Reverse((of(tree.cuts.bound_of(&opp)), false, opp)))
        .collect();
    let mut least = 0;
    for _ in 0..KNOWN {
        let Some(Reverse((lambda, asked, opp))) = by.pop() else { return (nw, tree.lambda) };
        least = lambda;
        if asked || lambda >= of(tree.lambda) {
            break;
        }
        let known = of(tree.least_lambda(&opp, most, tree.lambda));
        by.push(Reverse((known.max(lambda), true, opp)));
    }
    (nw.min(tree.power), (least as f64 / 1e9).min(tree.lambda))
}
